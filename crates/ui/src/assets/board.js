// The board: paints rows when they become visible, keeps them up to date, finds, filters, selects.
"use strict";

(() => {
  const grid = document.getElementById("grid");
  const $ = (id) => document.getElementById(id);
  // If the board is empty, rows may be added later.
  const empty = $("empty");
  const followEmpty = () => {
    const stream = new EventSource(empty.dataset.stream);
    stream.addEventListener("workflows", () => location.reload());
    Kelos.attend(stream, followEmpty);
  };
  if (empty) followEmpty();
  if (!grid) return;
  // The duration of painting, for measurements: their sum is all scripting before the board is usable.
  const measured = (act) => {
    const start = performance.now();
    const done = act();
    performance.measure("kelos:paint", { start });
    return done;
  };

  // ---- The meaning of letters, from the legend.
  const looks = {};
  for (const sample of document.querySelectorAll(".legend b")) {
    looks[sample.dataset.letter] = { css: sample.className, word: sample.dataset.word, trouble: "trouble" in sample.dataset, weight: Number(sample.dataset.weight) };
  }
  // A cell shows its worst state, and nothing is worse than trouble.
  const troubled = (row) => [...row.letters].some((letter) => looks[letter]?.trouble);

  // ---- Rows: their elements and their data.
  let columns, rows, groups, byId, sight, times;

  const folds = (group) => group.section.classList.contains("folded");
  const countsOf = (text) => {
    const counts = new Map();
    for (const pair of text ? text.split(",") : []) {
      const [place, count] = pair.split(":");
      counts.set(Number(place), Number(count));
    }
    return counts;
  };

  const takeIn = () => {
    columns = {
      start: Number(grid.dataset.start), width: Number(grid.dataset.width), count: Number(grid.dataset.count),
      newestFirst: grid.dataset.order === "newest",
      // Days of a zone whose clocks change are not all of one width.
      edges: grid.dataset.edges?.split(",").map(Number),
    };
    rows = [...grid.querySelectorAll(".row[data-w]")].map((element, index) => {
      const cells = element.querySelector(".cells");
      const section = element.closest(".rows");
      const { project, tags = "" } = element.dataset;
      const text = [element.dataset.w, tags, project, section.getAttribute("aria-label")].join(" ");
      return {
        project, tags: tags.split("\n"), index, element, cells, section, id: element.dataset.w, text: text.toLowerCase(), painted: false,
        paused: element.classList.contains("paused"), letters: cells.textContent, counts: countsOf(cells.dataset.n), steps: [], late: new Set(),
      };
    });
    // The steps of a flow that is unfolded are below its row.
    for (const row of rows) {
      for (let next = row.element.nextElementSibling; next?.classList.contains("step"); next = next.nextElementSibling) row.steps.push(next);
    }
    byId = new Map(rows.map((row) => [row.id, row]));
    // A folded group is a row of its own.
    groups = [...grid.querySelectorAll(".rows")].map((section) => {
      const element = section.querySelector(".heading"), cells = element.querySelector(".cells");
      return {
        section, element, cells, id: section.getAttribute("aria-label"), painted: false, letters: cells.textContent,
        counts: countsOf(cells.dataset.n), rows: rows.filter((row) => row.section === section),
      };
    });
    times = Array.from({ length: columns.count }, (_, place) => shown(edge(place)));
    sight?.disconnect();
    sight = new IntersectionObserver((seen) => {
      measured(() => {
        for (const { isIntersecting, target } of seen) {
          if (isIntersecting) { paint(byId.get(target.dataset.w)); sight.unobserve(target); }
        }
      });
    }, { root: grid, rootMargin: "600px 0px" });
    for (const row of rows) sight.observe(row.element);
    for (const group of groups) if (folds(group)) paint(group);
  };

  // How many slots a cell has, if it is more than one.
  const many = (row, place) => {
    const count = row.counts.get(place), most = columns.width >= 86_400_000 ? 9999 : 99;
    return count ? ` data-n="${count > most ? `${most}+` : count}"` : "";
  };

  // A slot past its deadline has a corner.
  const corner = (row, place) => row.late?.has(place) ? " data-late" : "";

  // Only letters, digits and names of classes get in here: nothing that anybody else wrote.
  const paint = (row) => {
    if (row.painted) return;
    row.painted = true;
    let html = "";
    for (let place = 0; place < row.letters.length; place++) {
      const look = looks[row.letters[place]], label = `${times[place]}: ${what(row, place)}`;
      html += look ? `<i class="${look.css}" role="gridcell" aria-label="${label}"${many(row, place)}${corner(row, place)}>${row.letters[place]}</i>` : `<i role="gridcell" aria-label="${label}">.</i>`;
    }
    row.cells.innerHTML = html;
  };

  const repaint = (row, letters, counts) => {
    const before = { letters: row.letters, counts: row.counts };
    row.letters = letters;
    row.counts = counts;
    if (!row.painted) { row.cells.textContent = letters; return; }
    for (let place = 0; place < letters.length; place++) {
      if (before.letters[place] === letters[place] && before.counts.get(place) === row.counts.get(place)) continue;
      const cell = row.cells.children[place];
      const look = looks[letters[place]];
      const picked = cell.classList.contains("picked");
      if (look) cell.className = `${look.css} fresh${picked ? " picked" : ""}`; else cell.removeAttribute("class");
      cell.textContent = look ? letters[place] : ".";
      const count = /"(.*)"/.exec(many(row, place))?.[1];
      if (look && count) cell.dataset.n = count; else delete cell.dataset.n;
      // Whether it is late still, the server says.
      if (row.late?.delete(place)) { cell.removeAttribute("data-late"); askForLateSoon(); }
      name(cell, row, place);
      setTimeout(() => cell.classList.remove("fresh"), 1300);
    }
  };

  // The worst state of each column of a group, and how many slots it has.
  const summarize = (group) => {
    let letters = "";
    const counts = new Map();
    for (let place = 0; place < columns.count; place++) {
      let worst = ".", slots = 0;
      for (const { letters: own, counts: of } of group.rows) {
        if (!looks[own[place]]) continue;
        slots += of.get(place) ?? 1;
        if (worst === "." || looks[own[place]].weight > looks[worst].weight) worst = own[place];
      }
      letters += worst;
      if (slots > 1) counts.set(place, slots);
    }
    repaint(group, letters, counts);
  };

  // ---- Times and names of cells.
  const indexOf = (place) => columns.newestFirst ? columns.count - 1 - place : place;
  const edgeAt = (index) => columns.edges ? columns.edges[index] : columns.start + columns.width * index;
  const edge = (place) => edgeAt(indexOf(place));
  const endOf = (place) => edgeAt(indexOf(place) + 1);
  const indexAt = (time) => columns.edges ? columns.edges.findLastIndex((begins) => begins <= time) : Math.floor((time - columns.start) / columns.width);
  const iso = (millis) => new Date(millis).toISOString();
  const short = (millis) => iso(millis).replace(":00.000Z", "Z");
  // In the zone of the marks.
  const zone = grid.dataset.zone;
  const formatIn = (timeZone) => {
    // A browser may not know every zone that the server knows.
    try { return new Intl.DateTimeFormat("sv-SE", { timeZone, dateStyle: "short", timeStyle: "short" }); } catch { return null; }
  };
  const inZone = zone === "UTC" ? null : formatIn(zone);
  const shown = (millis) => inZone ? `${inZone.format(millis)} ${zone}` : short(millis);
  const what = (row, place) => {
    const look = looks[row.letters[place]];
    const count = row.counts.get(place) ?? 1;
    const late = !row.late?.has(place) ? "" : count > 1 ? ", some past the deadline" : ", past its deadline";
    return !look ? "no slot" : (count > 1 ? `${count} slots, the worst ${look.word}` : look.word) + late;
  };
  // Who reads row by row has heard the workflow; who moves about has not.
  const name = (cell, row, place, why) => {
    cell.title = `${row.id} ${times[place]}: ${what(row, place)}${why ? ` – ${why}` : ""}`;
    cell.setAttribute("aria-label", cell.title);
  };
  // The cell under the mouse or the cursor, described in the footer and marked: a tooltip is late, and does not work with keys.
  let above = null;
  const point = ({ cell, row, place }) => {
    name(cell, row, place);
    $("here").textContent = cell.title;
    explain({ cell, row, place });
    above?.classList.remove("here");
    above = grid.querySelectorAll(".head .row:last-child .marks > *")[place];
    above.classList.add("here");
  };
  const cellQuery = (row, place) =>
    new URLSearchParams({ workflow: row.id, from: iso(edge(place)), to: iso(endOf(place)) });
  // Why a cell is as it is: asked for once one stays at it, and again only after it has changed.
  const reasons = new Map();
  let pointed = null, staying = 0;
  const explain = (at) => {
    const { cell, row, place } = at, state = looks[row.letters[place]];
    pointed = at;
    clearTimeout(staying);
    if (!state || state.word === "succeeded") return;
    const id = `${edge(place)} ${columns.width} ${row.id}`, looked = look(row, place), known = reasons.get(id);
    if (known?.looked === looked) { tell(at, known.why); return; }
    staying = setTimeout(async () => {
      try {
        const answer = await fetch(`/ui/board/why?${cellQuery(row, place)}`);
        if (!answer.ok) return;
        const { why } = await answer.json();
        if (reasons.size > 500) reasons.clear();
        reasons.set(id, { looked, why });
        if (pointed?.cell === cell) tell(at, why);
      } catch { /* The cell says its state without it. */ }
    }, 120);
  };
  const tell = ({ cell, row, place }, why) => {
    if (!why) return;
    name(cell, row, place, why);
    $("here").textContent = cell.title;
    // Screen readers say it to people who move by keys; the state was read with the cell.
    if (document.activeElement === cell) $("cell-why").textContent = why;
  };
  const found = (target) => {
    const cell = target.closest?.(".row[data-w] .cells > i");
    if (!cell) return null;
    const row = byId.get(cell.closest(".row").dataset.w);
    return { cell, row, place: [...row.cells.children].indexOf(cell) };
  };
  const hasSlot = (row, place) => looks[row.letters[place]] !== undefined;

  // ---- Finding and filtering. The address bar holds both.
  const find = $("find"), only = $("only");
  const choices = [only, $("project"), $("tag")].filter(Boolean);
  const stateLetters = {};
  for (const [letter, look] of Object.entries(looks)) stateLetters[look.word] = letter;

  const passes = (row, words, wanted) => {
    if (!words.every((word) => row.text.includes(word))) return false;
    const chosen = (id) => $(id)?.value;
    if (chosen("project") && row.project !== chosen("project")) return false;
    if (chosen("tag") && !row.tags.includes(chosen("tag"))) return false;
    if (!wanted) return true;
    if (wanted === "paused") return row.paused;
    if (wanted === "trouble") return troubled(row);
    return row.letters.includes(stateLetters[wanted] ?? "?");
  };

  const filter = () => {
    const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    const sections = new Set();
    for (const row of rows) {
      const passing = passes(row, words, only.value);
      row.element.hidden = !passing;
      for (const step of row.steps) step.hidden = !passing;
      if (passing) { shown++; sections.add(row.section); }
    }
    // A row that is searched for is shown, also in a folded group.
    for (const section of grid.querySelectorAll(".rows")) section.classList.toggle("searched", words.length > 0);
    const filtered = words.length > 0 || choices.some((choice) => choice.value !== "");
    for (const section of grid.querySelectorAll(".rows")) section.hidden = filtered && !sections.has(section);
    for (const missing of grid.querySelectorAll(".row.missing")) missing.hidden = filtered;
    const some = filtered ? `${shown} of ${rows.length}` : `${rows.length}`;
    $("count").textContent = `${some} workflow${rows.length === 1 ? "" : "s"}`;
  };

  const inAddress = (address) => {
    const url = new URL(address, location.href);
    for (const { id: key, value } of [find, ...choices]) {
      if (value) url.searchParams.set(key, value); else url.searchParams.delete(key);
    }
    return url.pathname + url.search;
  };
  const unfolded = () => new URL(location.href).searchParams.get("unfold");
  const onFilter = () => {
    filter();
    history.replaceState(null, "", inAddress(location.href));
    for (const link of document.querySelectorAll("a.go")) {
      const url = new URL(inAddress(link.href), location.href);
      if (unfolded()) url.searchParams.set("unfold", unfolded()); else url.searchParams.delete("unfold");
      link.setAttribute("href", url.pathname + url.search);
    }
  };

  // ---- Is it fine? The line above all rows, as the server wrote it.
  let late = 0, overdue = {}, overdueAt = {}, asksForLate = 0;
  // The failing workflows are the server's to tell: rows don't show which slot only waits for another one's failure, nor other times.
  let failing = new Set(), outside = 0, asksSoon = 0;
  const takeFailing = (line) => { failing = new Set(JSON.parse(line.dataset.failing)); outside = Number(line.dataset.outside); };
  const lookForFailing = async () => {
    asksSoon = 0;
    try {
      const answer = await fetch(`/ui/board/failing${location.search}`);
      if (answer.ok) { const said = await answer.json(); failing = new Set(said.failing); outside = said.outside; verdict(); }
    } catch { /* The next change asks again. */ }
  };
  const lookSoon = () => { asksSoon ||= setTimeout(lookForFailing, 1_000); };
  // Data that no letter shows is requested once the board is painted, and then each minute.
  const askForLate = async () => {
    clearTimeout(asksForLate);
    asksForLate = 0;
    try {
      const answer = await fetch("/ui/board/late");
      if (answer.ok) { ({ late, overdue, overdueAt } = await answer.json()); markOverdue(); verdict(); }
    } catch { /* There is another look. */ }
  };
  const askForLateSoon = () => { asksForLate ||= setTimeout(askForLate, 1_000); };
  const lookForLate = async () => {
    // Slots at other times are in no row that the stream tells of.
    if (!document.hidden) lookSoon();
    if (!document.hidden && grid.dataset.holds) await askForLate();
    setTimeout(lookForLate, 60_000);
  };
  // Slots past their deadline are counted in words beside the name of their workflow, and each has a corner.
  const placeAt = (time) => indexOf(indexAt(time));
  const markOverdue = () => {
    for (const row of rows) {
      const { id, element, cells } = row, before = row.late;
      row.late = new Set((overdueAt[id] ?? []).map(placeAt).filter((place) => looks[row.letters[place]]));
      for (const place of row.painted ? new Set([...before, ...row.late]) : []) {
        if (before.has(place) === row.late.has(place)) continue;
        cells.children[place].toggleAttribute("data-late", row.late.has(place));
        name(cells.children[place], row, place);
      }
      const heading = element.querySelector(".name"), count = overdue[id];
      heading.querySelector("em.overdue")?.remove();
      if (!count) continue;
      const mark = document.createElement("em");
      mark.className = "overdue";
      mark.title = `${count} of its slots missed the deadline`;
      mark.textContent = `${count} late`;
      heading.append(mark);
    }
  };
  const verdict = () => {
    const line = $("verdict"), named = Number(line.dataset.named);
    const bad = rows.filter((row) => failing.has(row.id)), paused = rows.filter((row) => row.paused).length;
    const part = (tag, text, href) => { const made = document.createElement(tag); made.textContent = text; if (href) made.setAttribute("href", href); return made; };
    const all = `${rows.length} workflow${rows.length === 1 ? "" : "s"}`;
    const parts = [];
    if (bad.length === 0) parts.push(part("strong", late ? "None failing" : "All fine"), part("span", all));
    else {
      const url = new URL(location.href);
      url.searchParams.set("only", "trouble");
      const link = part("a", "", rows.some(troubled) ? url.pathname + url.search : "/ui/problems#failures");
      link.append(part("strong", `${bad.length} of ${all} failing`));
      parts.push(link, ...bad.slice(0, named).map((row) => part("a", row.id, row.element.querySelector(".name a").getAttribute("href"))));
      if (bad.length > named) parts.push(part("span", `and ${bad.length - named} more`));
      if (outside) parts.push(part("a", `${outside} failure${outside === 1 ? "" : "s"} outside of what is shown`, "/ui/problems#failures"));
    }
    if (late) parts.push(part("a", `${late} late or running long`, "/ui/stuck"));
    if (paused) parts.push(part("span", `${paused} paused`));
    const words = parts.map((made) => made.textContent).join(" ");
    if (line.dataset.words === words) return;
    line.dataset.words = words;
    line.className = `verdict ${bad.length ? "bad" : late ? "again" : "good"}`;
    line.replaceChildren(...parts.flatMap((made) => [made, " "]));
  };
  $("verdict").addEventListener("click", (event) => {
    if (!event.target.closest("strong") || event.ctrlKey || event.metaKey || !rows.some(troubled)) return;
    event.preventDefault();
    only.value = "trouble";
    onFilter();
  });

  // ---- Selection: cells by row and place, with how they looked when they were selected.
  const picked = new Map();
  const key = (row, place) => `${place} ${row.id}`;
  const look = (row, place) => `${row.letters[place]}${row.counts.get(place) ?? 1}`;
  let anchor = null, stretched = [], gone = 0;
  // Selected cells that have changed since, or are no longer visible.
  const changed = () => gone + [...picked.values()].filter(({ row, place, looked }) => look(row, place) !== looked).length;

  const pick = (row, place, on) => {
    if (on && !hasSlot(row, place)) return;
    if (on && !picked.has(key(row, place))) picked.set(key(row, place), { row, place, looked: look(row, place) });
    if (!on) picked.delete(key(row, place));
    paint(row);
    const cell = row.cells.children[place];
    cell.classList.toggle("picked", on);
    if (on) cell.setAttribute("aria-selected", "true"); else cell.removeAttribute("aria-selected");
  };
  const showSelection = () => {
    let slots = 0;
    for (const { row, place } of picked.values()) slots += row.counts.get(place) ?? 1;
    if (picked.size === 0) gone = 0;
    const others = changed();
    $("selection").hidden = picked.size === 0;
    $("selected").textContent = `${slots} slot${slots === 1 ? "" : "s"} selected${others ? `, ${others} changed since` : ""}`;
  };
  const clear = () => {
    anchor = null;
    stretched = [];
    for (const { row, place } of [...picked.values()]) pick(row, place, false);
    showSelection();
  };
  const pickRectangle = (from, to) => {
    const [top, bottom] = [from.row.index, to.row.index].sort((a, b) => a - b);
    const [left, right] = [from.place, to.place].sort((a, b) => a - b);
    // If the rectangle shrinks, the cells outside are deselected.
    for (const { row, place } of stretched) pick(row, place, false);
    stretched = [];
    for (const row of rows.slice(top, bottom + 1)) {
      if (row.element.hidden) continue;
      for (let place = left; place <= right; place++) {
        if (picked.has(key(row, place)) || !hasSlot(row, place)) continue;
        pick(row, place, true);
        stretched.push({ row, place });
      }
    }
    showSelection();
  };
  const toggle = (at) => {
    pick(at.row, at.place, !picked.has(key(at.row, at.place)));
    anchor = at;
    stretched = [];
    showSelection();
  };

  const open = ({ row, place }) => {
    if (!hasSlot(row, place)) return;
    location.href = `/ui/board/cell?${cellQuery(row, place)}`;
  };

  // ---- The keyboard: one cell of the grid is the one that keys move from.
  let current = null;
  const focus = (row, place) => {
    if (!row) return;
    paint(row);
    place = Math.max(0, Math.min(columns.count - 1, place));
    current?.cell.removeAttribute("tabindex");
    const cell = row.cells.children[place];
    current = { cell, row, place };
    cell.tabIndex = 0;
    point(current);
    cell.focus({ preventScroll: true });
    reveal(cell);
  };
  // Scrolls to the part of the grid that the sticky header and the names leave free.
  const reveal = (cell) => {
    const box = cell.getBoundingClientRect(), room = grid.getBoundingClientRect();
    const top = room.top + grid.querySelector(".head").offsetHeight + 4;
    const left = room.left + grid.querySelector(".name").offsetWidth + 4;
    if (box.top < top) grid.scrollTop -= top - box.top + 30;
    else if (box.bottom > room.bottom - 16) grid.scrollTop += box.bottom - room.bottom + 30;
    if (box.left < left) grid.scrollLeft -= left - box.left;
    else if (box.right > room.right - 16) grid.scrollLeft += box.right - room.right + 16;
  };
  const neighbour = (row, by) => {
    for (let index = row.index + by; rows[index]; index += by) if (!rows[index].element.hidden) return rows[index];
    return row;
  };
  const moves = {
    ArrowUp: (at) => [neighbour(at.row, -1), at.place], ArrowDown: (at) => [neighbour(at.row, 1), at.place],
    ArrowLeft: (at) => [at.row, at.place - 1], ArrowRight: (at) => [at.row, at.place + 1],
    Home: (at) => [at.row, 0], End: (at) => [at.row, columns.count - 1],
  };

  grid.addEventListener("keydown", (event) => {
    const at = found(event.target);
    if (!at || Kelos.typing(event)) return;
    const move = moves[event.key];
    if (move) {
      if (event.shiftKey) anchor ??= at;
      focus(...move(at));
      if (event.shiftKey) pickRectangle(anchor, current); else { anchor = null; stretched = []; }
    } else if (event.key === "Enter") open(at);
    else if (event.key === " ") toggle(at);
    else return;
    event.preventDefault();
  });

  grid.addEventListener("click", (event) => {
    const at = found(event.target);
    if (!at) return;
    if (event.shiftKey) { pickRectangle(anchor ?? at, at); anchor ??= at; focus(at.row, at.place); }
    else if (event.ctrlKey || event.metaKey || picked.size > 0) { toggle(at); focus(at.row, at.place); }
    else open(at);
  });
  grid.addEventListener("mousedown", (event) => { if (event.shiftKey && found(event.target)) event.preventDefault(); });
  grid.addEventListener("mouseover", (event) => {
    const at = found(event.target);
    if (at) point(at);
  });
  // A long press selects, as in other applications.
  grid.addEventListener("contextmenu", (event) => {
    const at = found(event.target);
    if (at && event.pointerType === "touch") { event.preventDefault(); toggle(at); }
  });

  const acts = { r: "rerun", m: "mark", s: "skip", x: "kill" };
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !document.querySelector("dialog[open]")) { clear(); if (event.target === find) find.blur(); }
    if (Kelos.typing(event)) return;
    const go = { "[": "earlier", "]": "later", n: "now" }[event.key];
    if (go) $(go)?.click();
    else if (event.key === "/") find.focus();
    else if (event.key === "f") { only.value = only.value === "trouble" ? "" : "trouble"; onFilter(); }
    else if (acts[event.key] && picked.size) Kelos.board.act(acts[event.key]);
    else if (event.key === "ArrowDown" && !found(event.target)) focus(rows.find((row) => !row.element.hidden), columns.newestFirst ? 0 : columns.count - 1);
    else return;
    event.preventDefault();
  });

  // ---- Live: rows as they change, all of it when more than rows changed or time moves on.
  let source, boundary, refreshing = false, refreshes = 0;

  const refresh = async () => {
    clearTimeout(refreshes);
    refreshes = 0;
    if (refreshing) return;
    refreshing = true;
    try {
      const answer = await fetch(location.href, { headers: { accept: "text/html" } });
      if (!answer.ok) throw new Error(String(answer.status));
      const page = new DOMParser().parseFromString(await answer.text(), "text/html"), fresh = page.getElementById("grid");
      if (!fresh) { location.reload(); return; }
      const scrolled = [grid.scrollLeft, grid.scrollTop];
      const kept = [...picked.values()].map(({ row, place, looked }) => [row.id, edge(place), looked]);
      const focused = current && grid.contains(document.activeElement) ? [current.row.id, edge(current.place)] : null;
      picked.clear();
      current = anchor = null;
      stretched = [];
      for (const [name, value] of Object.entries(fresh.dataset)) grid.dataset[name] = value;
      for (const name of ["holds", "edges"]) if (!(name in fresh.dataset)) delete grid.dataset[name];
      // A step is most of what is shown.
      for (const id of ["earlier", "later"]) if ($(id) && page.getElementById(id)) $(id).setAttribute("href", inAddress(page.getElementById(id).href));
      grid.replaceChildren(...fresh.childNodes);
      for (const choice of choices) {
        const value = choice.value, now = page.getElementById(choice.id);
        if (now) choice.replaceChildren(...now.childNodes);
        choice.value = value;
      }
      takeIn();
      markOverdue();
      filter();
      takeFailing(page.getElementById("verdict"));
      verdict();
      [grid.scrollLeft, grid.scrollTop] = scrolled;
      const placeOf = (time) => indexOf(columns.edges ? indexAt(time) : Math.round((time - columns.start) / columns.width));
      for (const [id, time, looked] of kept) {
        const row = byId.get(id), place = placeOf(time);
        if (row && place >= 0 && place < columns.count) pick(row, place, true);
        const still = row && picked.get(key(row, place));
        if (still) still.looked = looked; else gone++;
      }
      showSelection();
      if (focused && byId.has(focused[0])) focus(byId.get(focused[0]), placeOf(focused[1]));
      follow();
    } catch {
      setTimeout(refresh, 3000);
    } finally {
      refreshing = false;
    }
  };

  const follow = () => {
    source?.close();
    clearTimeout(boundary);
    source = new EventSource(grid.dataset.stream);
    let opened = false;
    source.addEventListener("open", () => {
      // A page that was in the background may have missed more than rows.
      if (opened) refresh();
      opened = true;
    });
    Kelos.attend(source, refresh);
    source.addEventListener("rows", (event) => {
      let strange = false, steps = false;
      const stale = new Set();
      for (const [id, letters, counts] of JSON.parse(event.data)) {
        const row = byId.get(id);
        const was = row && troubled(row);
        if (row) repaint(row, letters, countsOf(counts)); else strange = true;
        if (row) stale.add(row.section);
        if (row?.steps.length || unfolded()?.split(",").includes(id)) steps = true;
        if (row && (was || troubled(row) || failing.has(id))) lookSoon();
      }
      for (const group of groups) if (stale.has(group.section) && folds(group)) summarize(group);
      if (only.value) filter();
      verdict();
      if (picked.size) showSelection();
      if (strange) refresh();
      else if (steps) refreshes ||= setTimeout(refresh, 700);
    });
    source.addEventListener("workflows", refresh);
    if (grid.dataset.holds) boundary = setTimeout(refresh, Math.max(250, Number(grid.dataset.holds) + 50));
  };

  // ---- As many columns as have room. The server remembers the room, so that the next page fits at once.
  const fit = () => {
    if (!("room" in grid.dataset)) return;
    const room = Math.max(0, grid.clientWidth - grid.querySelector(".head .name").offsetWidth);
    if (room === Number(grid.dataset.room)) return;
    Kelos.keep("room", room);
    grid.dataset.room = room;
    const cell = parseFloat(getComputedStyle(grid).getPropertyValue("--cell"));
    if (Math.floor(room / cell) !== columns.count) refresh();
  };
  let fits = 0;
  addEventListener("resize", () => { clearTimeout(fits); fits = setTimeout(fit, 200); });

  // ---- Flows that are unfolded: the address says which.
  grid.addEventListener("click", async (event) => {
    const link = event.target.closest?.("a.unfold");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const flow = link.closest(".row").dataset.w;
    history.replaceState(null, "", inAddress(link.href));
    await refresh();
    onFilter();
    byId.get(flow)?.element.querySelector("a.unfold")?.focus({ preventScroll: true });
  });

  // ---- Groups that are folded; the server remembers them, too.
  grid.addEventListener("submit", (event) => {
    const button = event.target.querySelector(".fold");
    if (!button) return;
    event.preventDefault();
    const section = button.closest(".rows"), folded = section.classList.toggle("folded");
    button.setAttribute("aria-expanded", String(!folded));
    const group = groups.find((one) => one.section === section);
    if (folded) { summarize(group); paint(group); }
    const all = [...grid.querySelectorAll(".rows.folded .fold")].map((one) => one.value);
    // A cookie is small.
    while (encodeURIComponent(all.join("\n")).length > 2500) all.pop();
    Kelos.keep("folded", all.join("\n"));
  });

  // ---- The board's entries on the sheet of keys.
  const keys = [["/", "find workflows"], ["f", "only failing"], ["[ ]", "earlier, later"], ["n", "now"],
    ["↓", "into the board; arrows move"], ["Enter", "open the slot"], ["Space", "select; shift and arrows select more"],
    ["r m s x", "rerun, mark, skip, kill what is selected"], ["Click", "opens; with ctrl it selects, with shift up to there"]];
  for (const [sign, words] of keys) {
    const term = document.createElement("dt"), what = document.createElement("dd"), kbd = document.createElement("kbd");
    kbd.textContent = sign;
    what.textContent = words;
    term.append(kbd);
    document.querySelector("#keys dl").append(term, what);
  }

  // ---- Begin.
  measured(takeIn);
  find.hidden = false;
  find.addEventListener("input", onFilter);
  for (const choice of choices) {
    choice.hidden = false;
    choice.value = choice.dataset.value;
    choice.addEventListener("change", onFilter);
  }
  if (!columns.newestFirst) grid.scrollLeft = grid.scrollWidth;
  const paintAll = () => measured(() => { for (const row of rows) paint(row); });
  addEventListener("beforeprint", () => {
    paintAll();
    // 48 columns are as wide as the paper.
    if (columns.count > 48) grid.style.setProperty("--cell", `${792 / columns.count}px`);
  });
  addEventListener("afterprint", () => grid.style.removeProperty("--cell"));
  for (const button of document.querySelectorAll("[data-act]")) {
    button.addEventListener("click", () => button.dataset.act === "clear" ? clear() : Kelos.board.act(button.dataset.act));
  }
  // Adjacent cells are requested together.
  const stretches = () => {
    const sorted = [...picked.values()].sort((a, b) => a.row.index - b.row.index || edge(a.place) - edge(b.place));
    const found = [];
    for (const { row, place } of sorted) {
      const last = found.at(-1);
      if (last && last.id === row.id && last.to === edge(place)) last.to = endOf(place);
      else found.push({ id: row.id, from: edge(place), to: endOf(place) });
    }
    return found;
  };
  Kelos.board = { stretches, clear, refresh, changed, paintAll };
  takeFailing($("verdict"));
  measured(() => { filter(); verdict(); });
  follow();
  fit();
  lookForLate();
})();
