// Common to all pages: light and dark, the sheet of keys, and single keys that open pages.
"use strict";

(() => {
  const root = document.documentElement;
  const kept = () => { try { return localStorage.getItem("kelos-theme"); } catch { return null; } };
  const show = (theme) => { if (theme === "light" || theme === "dark") root.dataset.theme = theme; };
  // Before anything is painted.
  show(kept());
  root.classList.add("scripted");

  const dark = () => (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const switchTheme = () => {
    const theme = dark() ? "light" : "dark";
    show(theme);
    try { localStorage.setItem("kelos-theme", theme); } catch { /* It holds for this page. */ }
  };

  // Whether keys are text here, or belong to an open dialog.
  const typing = (event) =>
    event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]") !== null
    || event.target.closest("input, select, textarea, [contenteditable]") !== null;

  let lost;

  const sayLost = () => {
    if (document.getElementById("offline")) return;
    const sign = document.createElement("p");
    sign.id = "offline";
    sign.className = "offline bad";
    sign.setAttribute("role", "status");
    sign.textContent = "The server does not answer; this may be outdated";
    document.body.append(sign);
  };

  // For a stream without which a page becomes outdated: shows that while the server is unreachable. A server that answers
  // with an error closes a stream for good; `again` is to open another.
  const attend = (stream, again) => {
    stream.addEventListener("open", () => {
      clearTimeout(lost);
      document.getElementById("offline")?.remove();
    });
    stream.addEventListener("error", () => {
      clearTimeout(lost);
      lost = setTimeout(sayLost, 1500);
      if (stream.readyState === EventSource.CLOSED) setTimeout(again, 3000);
    });
  };

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

  // Times in the reader's own zone if the page requests it: <time datetime>.
  window.Kelos = {
    typing,
    attend,
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
  document.addEventListener("DOMContentLoaded", () => {
    const button = (id, act) => {
      const found = document.getElementById(id);
      found.hidden = false;
      found.addEventListener("click", act);
    };
    button("theme", switchTheme);
    button("keys-button", () => document.getElementById("keys").showModal());
  });
})();
