// The output of a run: follows new output, searches it, and loads more of its beginning.
"use strict";

(() => {
  // How many characters of a long output a page keeps; the rest is in the download.
  const KEPT = 2_000_000;
  const PIECE = 65536;
  const part = (name) => document.getElementById(name);
  let stream = null;
  let found = [];
  let here = -1;

  // Removes escapes of terminals for colours, titles and cursors.
  const ESCAPES = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[ -/]*[0-~])/g;
  const plain = (text) => text.replace(ESCAPES, "");

  const append = (text) => {
    const log = part("log-text");
    log.append(plain(text));
    log.normalize();
    const over = log.firstChild ? log.firstChild.length - KEPT : 0;
    if (over > 0) log.firstChild.deleteData(0, over);
    part("log-empty").hidden = true;
    if (part("log-follow").checked) log.scrollTop = log.scrollHeight;
    if (part("log-find").value) find();
  };

  const follow = () => {
    stream?.close();
    const path = part("log")?.dataset.stream;
    if (!path) return;
    stream = new EventSource(path);
    stream.addEventListener("log", (event) => append(JSON.parse(event.data).text));
    stream.addEventListener("end", () => stream.close());
  };

  const paint = () => {
    if (!window.CSS?.highlights) return;
    CSS.highlights.set("found", new Highlight(...found));
    CSS.highlights.set("found-here", new Highlight(...(found[here] ? [found[here]] : [])));
  };

  const find = () => {
    const words = part("log-find").value.toLowerCase();
    const node = part("log-text").firstChild;
    found = [];
    if (words && node) {
      const text = node.data.toLowerCase();
      for (let at = text.indexOf(words); at >= 0 && found.length < 5000; at = text.indexOf(words, at + words.length)) {
        const range = new Range();
        range.setStart(node, at);
        range.setEnd(node, at + words.length);
        found.push(range);
      }
    }
    here = Math.min(here, found.length - 1);
    tell(words);
    paint();
  };

  const tell = (words) => {
    const place = here >= 0 ? `${here + 1} of ` : "";
    part("log-found").textContent = words ? `${place}${found.length} found` : "";
  };

  const go = (step) => {
    if (found.length === 0) return;
    here = (here + step + found.length) % found.length;
    const log = part("log-text");
    const top = found[here].getBoundingClientRect().top - log.getBoundingClientRect().top;
    part("log-follow").checked = false;
    log.scrollTop += top - log.clientHeight / 3;
    tell(part("log-find").value);
    paint();
  };

  const earlier = async () => {
    const log = part("log");
    const from = Number(log.dataset.from);
    const start = Math.max(0, from - PIECE);
    const answer = await fetch(`${log.dataset.log}?offset=${start}&limit=${from - start}`);
    if (!answer.ok) return;
    // Bytes in the middle of a long output are not kept: there is nothing before them to show here.
    const dropped = Number(answer.headers.get("kelos-dropped") || 0);
    const text = dropped >= from - start ? "" : await answer.text();
    const pre = part("log-text");
    const below = pre.scrollHeight - pre.scrollTop;
    pre.prepend(plain(text));
    pre.normalize();
    pre.scrollTop = pre.scrollHeight - below;
    log.dataset.from = String(start);
    part("log-earlier").hidden = start === 0;
    find();
  };

  const begin = () => {
    if (!part("log-text")) return;
    part("log-text").textContent = plain(part("log-text").textContent);
    part("log-find").addEventListener("input", () => { here = -1; find(); });
    part("log-find").addEventListener("keydown", (event) => {
      if (event.key === "Enter") { event.preventDefault(); go(event.shiftKey ? -1 : 1); }
      if (event.key === "Escape") { event.target.value = ""; find(); }
    });
    part("log-earlier").addEventListener("click", earlier);
    part("log-text").scrollTop = part("log-text").scrollHeight;
    follow();
  };

  // A new run has begun, or the selected one: its output replaces the shown one.
  document.addEventListener("kelos:fresh", (event) => {
    const old = part("log");
    const fresh = event.detail.getElementById("log");
    if (!fresh || (old && old.dataset.run === fresh.dataset.run)) return;
    if (old) old.replaceWith(fresh); else part("runs").after(fresh);
    begin();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && part("log-find") && !Kelos.typing(event)) { event.preventDefault(); part("log-find").focus(); }
  });
  begin();
})();
