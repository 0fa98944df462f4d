// Keeps a page as it would be when loaded again: parts with `data-live` are swapped when something happened.
"use strict";

(() => {
  const source = document.querySelector("[data-events]");
  if (!source) return;
  // Pages that cost the server more request longer batches.
  const BATCH = Number(source.dataset.batch || 250);
  let waits = false;
  let asks = false;
  let again = false;

  // A part in use is not updated until the user has left it.
  const busy = (part) => part.contains(document.activeElement) && document.activeElement.matches("input, select, textarea")
    || part.querySelector("details.action[open]") !== null;

  // Details that the user has opened stay open.
  const keepOpen = (part, fresh) => {
    for (const opened of part.querySelectorAll("details[id][open]")) fresh.getElementById(opened.id)?.setAttribute("open", "");
  };

  const swap = (fresh) => {
    for (const part of document.querySelectorAll("[data-live]")) {
      const other = fresh.getElementById(part.id);
      keepOpen(part, fresh);
      if (!other || other.innerHTML === part.innerHTML || busy(part)) continue;
      part.replaceChildren(...other.childNodes);
    }
    document.dispatchEvent(new CustomEvent("kelos:fresh", { detail: fresh }));
  };

  const refresh = async () => {
    waits = false;
    if (asks) { again = true; return; }
    asks = true;
    try {
      const answer = await fetch(source.dataset.page || location.href, { headers: { accept: "text/html" } });
      if (answer.ok) swap(new DOMParser().parseFromString(await answer.text(), "text/html"));
    } catch { /* The stream comes back by itself, and then there is another try. */ }
    asks = false;
    if (again) { again = false; soon(); }
  };

  const soon = () => {
    if (waits || document.hidden) return;
    waits = true;
    setTimeout(refresh, BATCH);
  };

  Kelos.follow(source.dataset.events, soon);
  document.addEventListener("visibilitychange", soon);
  const every = Number(source.dataset.every || 0);
  if (every > 0) setInterval(soon, every * 1000);
})();
