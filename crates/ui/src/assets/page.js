// Common to all pages: light and dark, times, the sheet of keys, single keys that open pages, and what is said of a silent server.
"use strict";

(() => {
  const root = document.documentElement;
  // Before anything is painted.
  root.classList.add("scripted");

  // ---- Choices, as the server reads them.
  const keep = (name, value) => {
    document.cookie = `kelos-${name}=${encodeURIComponent(value)}; Path=/ui; Max-Age=31536000; SameSite=Lax`;
  };
  const dark = () => (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const switchTheme = () => {
    root.dataset.theme = dark() ? "light" : "dark";
    keep("theme", root.dataset.theme);
  };

  // Whether keys are text here, or belong to an open dialog.
  const typing = (event) =>
    event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]") !== null
    || event.target.closest("input, select, textarea, [contenteditable]") !== null;

  // ---- Times: how long ago something is, by the server's clock.
  const ahead = Number(root.dataset.now || Date.now()) - Date.now();
  const now = () => Date.now() + ahead;
  const UNITS = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const span = (seconds) => {
    const parts = [];
    for (const [size, unit] of UNITS) {
      if (seconds >= size && parts.length < 2) parts.push(`${Math.floor(seconds / size)} ${unit}`);
      seconds %= size;
    }
    return parts.join(" ");
  };
  const relative = (millis) => {
    const seconds = Math.floor(now() / 1000) - Math.floor(millis / 1000);
    return seconds >= 1 ? `${span(seconds)} ago` : seconds <= -1 ? `in ${span(-seconds)}` : "now";
  };
  const freshen = () => {
    if (document.hidden) return;
    for (const time of document.querySelectorAll("time[data-relative]")) {
      const told = relative(Date.parse(time.dateTime));
      if (time.textContent !== told) time.textContent = told;
    }
  };

  // ---- Whether the server answers.
  // A stream is never silent for longer: the server sends a beat every 5 seconds.
  const SILENCE = 12_000;
  let heard = now(), attended = false, lost;

  const sayLost = () => {
    if (document.getElementById("offline")) return;
    const sign = document.createElement("p"), since = document.createElement("time");
    sign.id = "offline";
    sign.className = "banner offline";
    sign.setAttribute("role", "alert");
    since.dateTime = since.title = new Date(heard).toISOString();
    since.dataset.relative = "";
    since.textContent = relative(heard);
    sign.append("The server does not answer; it was last heard from ", since, ". This page may be outdated.");
    document.querySelector("header.top").after(sign);
    root.classList.add("stale");
  };
  const hear = () => {
    heard = now();
    clearTimeout(lost);
    document.getElementById("offline")?.remove();
    root.classList.remove("stale");
  };

  // For a stream without which a page becomes outdated: shows that while the server is silent. A server that answers with an
  // error closes a stream for good, and one that hangs says nothing: `again` is to open another.
  const attend = (stream, again) => {
    attended = true;
    const reopen = () => { stream.close(); again(); };
    const await_ = () => { lost = setTimeout(() => { sayLost(); reopen(); }, SILENCE); };
    for (const name of ["open", "beat", "changed", "rows", "workflows"]) stream.addEventListener(name, () => { hear(); await_(); });
    stream.addEventListener("error", () => {
      clearTimeout(lost);
      lost = setTimeout(sayLost, 1500);
      if (stream.readyState === EventSource.CLOSED) setTimeout(again, 3000);
    });
    clearTimeout(lost);
    await_();
  };

  // Follows what happens to the subject of a query, or only whether the server is there: `changed` is called after each change.
  const follow = (query, changed) => {
    const stream = new EventSource(`/ui/stream${query}`);
    stream.addEventListener("changed", changed);
    // Also the first time: nothing else reports changes since the page was read.
    stream.addEventListener("open", changed);
    attend(stream, () => follow(query, changed));
    addEventListener("pagehide", () => stream.close());
  };

  // ---- Keys.
  let waitsForPlace = false;
  const onKey = (event) => {
    if (typing(event)) return;
    if (waitsForPlace) {
      waitsForPlace = false;
      const link = document.querySelector(`header nav a[data-key="${CSS.escape(event.key)}"]`);
      if (link) { event.preventDefault(); link.click(); }
      return;
    }
    if (event.key === "?") document.getElementById("keys").showModal();
    else if (event.key === "t") switchTheme();
    else if (event.key === "g") { waitsForPlace = true; setTimeout(() => { waitsForPlace = false; }, 1500); }
  };

  window.Kelos = {
    typing,
    attend,
    follow,
    keep,
    // Changes something by the native API. Returns the answer, or throws the fault in words.
    async post(path, body) {
      const answer = await fetch(path, {
        method: "POST",
        headers: { "content-type": "application/json", "kelos-user": "web" },
        body: JSON.stringify(body ?? {}),
      });
      const said = await answer.json().catch(() => null);
      if (!answer.ok) throw new Error(said?.detail ?? `the server answered ${answer.status}`);
      return said;
    },
  };

  document.addEventListener("keydown", onKey);
  document.addEventListener("visibilitychange", freshen);
  setInterval(freshen, 1000);
  document.addEventListener("DOMContentLoaded", () => {
    const button = (id, act) => {
      const found = document.getElementById(id);
      found.hidden = false;
      found.addEventListener("click", act);
    };
    button("theme", switchTheme);
    button("keys-button", () => document.getElementById("keys").showModal());
    const own = Intl.DateTimeFormat().resolvedOptions().timeZone, zone = document.getElementById("display-zone");
    if (zone && own) {
      button("display-own", () => { zone.value = own; });
      document.getElementById("display-own").textContent = `Zone of this browser: ${own}`;
    }
    // A page that shows nothing live still says that the server leads.
    if (!attended && document.getElementById("health")) follow("?beats=1", () => {});
  });
})();
