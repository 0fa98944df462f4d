// The output of a run: follows new lines, searches them, and loads more of them.
"use strict";

(() => {
  // How many characters of a long output a page keeps; the rest is in the download.
  const KEPT = 2_000_000;
  const part = (name) => document.getElementById(name);
  let stream = null;
  let length = 0;
  let found = [];
  let here = -1;

  const offset = (row) => Number(row.dataset.offset ?? -1);

  // Rows of the server, whose texts are escaped: a line that was not ended when it came is replaced by itself.
  const append = (rows) => {
    const log = part("log-text");
    for (const row of [...rows]) {
      const last = log.lastElementChild;
      if (last && offset(last) === offset(row) && offset(row) >= 0) {
        length -= last.textContent.length;
        last.replaceWith(row);
      } else {
        log.append(row);
      }
      length += row.textContent.length;
    }
    while (length > KEPT && log.childElementCount > 1) {
      length -= log.firstElementChild.textContent.length;
      log.firstElementChild.remove();
    }
    part("log-empty").hidden = true;
    if (part("log-follow").checked) log.scrollTop = log.scrollHeight;
    if (part("log-find").value) find();
  };

  const rowsOf = (html) => {
    const made = document.createElement("template");
    made.innerHTML = html;
    return made.content.children;
  };

  const follow = () => {
    stream?.close();
    const path = part("log")?.dataset.stream;
    if (!path) return;
    stream = new EventSource(path);
    stream.addEventListener("lines", (event) => append(rowsOf(JSON.parse(event.data).rows)));
    stream.addEventListener("end", () => stream.close());
  };

  const paint = () => {
    if (!window.CSS?.highlights) return;
    CSS.highlights.set("found", new Highlight(...found));
    CSS.highlights.set("found-here", new Highlight(...(found[here] ? [found[here]] : [])));
  };

  // The texts within the output, and where each of them begins in all of it.
  const texts = () => {
    const walker = document.createTreeWalker(part("log-text"), NodeFilter.SHOW_TEXT);
    const nodes = [], starts = [];
    let all = "";
    while (walker.nextNode()) {
      nodes.push(walker.currentNode);
      starts.push(all.length);
      all += walker.currentNode.data;
    }
    return { all, nodes, starts };
  };

  const find = () => {
    const words = part("log-find").value.toLowerCase();
    found = [];
    if (words) {
      const { all, nodes, starts } = texts();
      const text = all.toLowerCase();
      let node = 0;
      const place = (at) => {
        while (node + 1 < nodes.length && starts[node + 1] <= at) node += 1;
        return [nodes[node], Math.min(at - starts[node], nodes[node].length)];
      };
      for (let at = text.indexOf(words); at >= 0 && found.length < 5000; at = text.indexOf(words, at + words.length)) {
        const range = new Range();
        range.setStart(...place(at));
        range.setEnd(...place(at + words.length - 1));
        range.setEnd(range.endContainer, range.endOffset + 1);
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

  const show = (top) => {
    const log = part("log-text");
    part("log-follow").checked = false;
    log.scrollTop += top - log.getBoundingClientRect().top - log.clientHeight / 3;
  };

  const go = (step) => {
    if (found.length === 0) return;
    here = (here + step + found.length) % found.length;
    show(found[here].getBoundingClientRect().top);
    tell(part("log-find").value);
    paint();
  };

  // Another part of the output, from the page that shows it.
  const load = async (href) => {
    const answer = await fetch(href);
    if (!answer.ok) return null;
    return new DOMParser().parseFromString(await answer.text(), "text/html");
  };

  const exchange = (id, fresh) => {
    const old = part(id), other = fresh.getElementById(id);
    if (old && other) old.replaceWith(other); else old?.remove();
  };

  const earlier = async (link) => {
    const fresh = await load(link.href);
    if (!fresh) return;
    const log = part("log-text"), first = offset(log.firstElementChild);
    const rows = [...fresh.querySelectorAll("#log-text > .row")].filter((row) => offset(row) < first);
    const below = log.scrollHeight - log.scrollTop;
    rows.forEach((row) => { length += row.textContent.length; });
    log.prepend(...rows);
    log.scrollTop = log.scrollHeight - below;
    exchange("log-earlier", fresh);
    find();
  };

  const later = async (link) => {
    const fresh = await load(link.href);
    if (!fresh) return;
    append(fresh.querySelectorAll("#log-text > .row"));
    const box = part("log-later").parentElement, other = fresh.getElementById("log-later")?.parentElement;
    if (other) box.replaceWith(other); else box.remove();
  };

  const firstError = () => {
    const row = part("first-error");
    if (row) show(row.getBoundingClientRect().top);
    return row;
  };

  const begin = () => {
    const log = part("log-text");
    if (!log) return;
    length = log.textContent.length;
    part("log-find").addEventListener("input", () => { here = -1; find(); });
    part("log-find").addEventListener("keydown", (event) => {
      if (event.key === "Enter") { event.preventDefault(); go(event.shiftKey ? -1 : 1); }
      if (event.key === "Escape") { event.target.value = ""; find(); }
    });
    part("log").addEventListener("click", (event) => {
      const link = event.target.closest("#log-earlier:not([data-jumps]), #log-later");
      if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      if (link.id === "log-later") later(link); else earlier(link);
    });
    if (location.hash !== "#first-error" || !firstError()) log.scrollTop = part("log-later") ? 0 : log.scrollHeight;
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
