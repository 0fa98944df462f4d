// Interactive parts of the timeline: describes bars, lets live runs grow with the clock, and moves through time by keys.
"use strict";

(() => {
  const $ = (id) => document.getElementById(id);
  const usual = $("told") ? $("told").textContent : "";
  // Bars are measured by the server's clock.
  let since = performance.now();
  let focused = null;

  const tell = (event) => {
    const link = event.target.closest?.(".timeline a, .path-rows g");
    const told = $("told");
    if (told) told.textContent = link?.querySelector("title")?.textContent ?? usual;
  };
  document.addEventListener("mouseover", tell);
  document.addEventListener("focusin", (event) => {
    focused = event.target.closest?.(".timeline a")?.getAttribute("href") ?? null;
    tell(event);
  });

  const grow = () => {
    const chart = $("timeline");
    if (!chart || document.hidden) return;
    const { start, width, now } = chart.dataset;
    const at = Number(now) + performance.now() - since;
    const percent = (millis) => Math.min(Math.max((millis - Number(start)) / Number(width) * 100, 0), 100);
    for (const bar of chart.querySelectorAll("rect[data-from]")) {
      const wide = percent(at) - percent(Number(bar.dataset.from));
      if (wide * chart.clientWidth / 100 > 4) bar.setAttribute("width", wide.toFixed(3) + "%");
    }
    for (const line of chart.querySelectorAll("#now-line")) {
      line.setAttribute("x1", percent(at) + "%");
      line.setAttribute("x2", percent(at) + "%");
    }
  };
  setInterval(grow, 1000);

  // Restores the focus in a part that was replaced.
  document.addEventListener("kelos:fresh", (event) => {
    const chart = $("timeline"), fresh = event.detail?.getElementById("timeline");
    if (chart && fresh) for (const [name, value] of Object.entries(fresh.dataset)) chart.dataset[name] = value;
    since = performance.now();
    if (focused && document.activeElement === document.body) {
      document.querySelector(`.timeline a[href="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
    }
  });

  const places = { "[": "earlier", "]": "later", "n": "now", "+": "nearer", "-": "wider" };
  document.addEventListener("keydown", (event) => {
    if (Kelos.typing(event)) return;
    if (event.key === "/") { event.preventDefault(); $("find")?.focus(); return; }
    const link = $(places[event.key]);
    if (link) { event.preventDefault(); link.click(); }
  });

  const keys = document.querySelector("#keys dl");
  for (const [key, what] of [["[", "earlier"], ["]", "later"], ["n", "now"], ["+", "nearer"], ["-", "wider"], ["/", "find"]]) {
    const term = document.createElement("dt"), kbd = document.createElement("kbd"), told = document.createElement("dd");
    kbd.textContent = key;
    told.textContent = what;
    term.append(kbd);
    keys?.append(term, told);
  }
})();
