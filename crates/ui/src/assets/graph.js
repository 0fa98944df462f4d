// Moves the graph about, and keeps its nodes up to date.
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  const BATCH = 250;
  const MOST_ASKED = 100;
  const canvas = document.getElementById("canvas");
  const form = document.getElementById("choose");
  let picture = document.getElementById("picture");

  // --- The view: its corner in units of the picture, and the number of pixels of a unit. ---

  // The picture is moved as a whole, like an image: a new layout of its texts at each step would take far longer.
  let seen = { x: 0, y: 0, scale: 1 };
  const room = { width: 1, height: 1 };
  const whole = () => ({ width: Number(picture.getAttribute("width")), height: Number(picture.getAttribute("height")) });

  let painted = 0;
  const paint = () => {
    painted = 0;
    picture.style.transform = `scale(${seen.scale}) translate(${-seen.x}px, ${-seen.y}px)`;
  };
  const look = (next) => {
    seen = { ...next, scale: Math.min(Math.max(next.scale, 0.03), 4) };
    painted ||= requestAnimationFrame(paint);
  };

  // All of it, but no larger than drawn; in the middle.
  const fit = () => {
    const { width, height } = whole();
    const scale = Math.min(room.width / width, room.height / height, 1);
    look({ x: (width - room.width / scale) / 2, y: (height - room.height / scale) / 2, scale });
  };

  // Nearer or farther, with the point at these pixels staying where it is.
  const zoom = (factor, x = room.width / 2, y = room.height / 2) => {
    const [px, py] = [seen.x + x / seen.scale, seen.y + y / seen.scale];
    look({ ...seen, scale: seen.scale * factor });
    look({ x: px - x / seen.scale, y: py - y / seen.scale, scale: seen.scale });
    remember();
  };

  const move = (dx, dy) => { look({ ...seen, x: seen.x - dx / seen.scale, y: seen.y - dy / seen.scale }); remember(); };

  // Brings a node into sight.
  const reveal = (node, far) => {
    const [x, y, wide, high] = ["x", "y", "width", "height"].map((name) => Number(node.querySelector("rect").getAttribute(name)));
    const [width, height] = [room.width / seen.scale, room.height / seen.scale];
    const inside = x > seen.x && y > seen.y && x + wide < seen.x + width && y + high < seen.y + height;
    if (inside && !far) return;
    look({ ...seen, x: x + wide / 2 - width / 2, y: y + high / 2 - height / 2 });
  };

  // The address holds the view, so that it can be shared.
  let remembers = 0;
  const remember = () => {
    clearTimeout(remembers);
    remembers = setTimeout(() => {
      const said = [seen.x, seen.y, seen.scale * 1000].map(Math.round).join(",");
      history.replaceState(null, "", `${location.pathname}${location.search}#at=${said}`);
    }, BATCH);
  };
  const remembered = () => {
    const at = /^#at=(-?\d+),(-?\d+),(\d+)$/.exec(location.hash);
    return at && { x: Number(at[1]), y: Number(at[2]), scale: Number(at[3]) / 1000 };
  };

  // A picture that would be too small to read is shown at a readable size, centred on the important part.
  const begin = () => {
    [room.width, room.height] = [canvas.clientWidth || 1, canvas.clientHeight || 1];
    const at = remembered();
    fit();
    if (at) { look(at); return; }
    const first = picture.querySelector(".node.focus") ?? picture.querySelector(".node.root") ?? picture.querySelector(".node.bad");
    if (seen.scale < 0.45 && first) {
      look({ ...seen, scale: 0.75 });
      reveal(first, true);
    }
  };

  // --- Wheel, drag and pinch ---

  const pointers = new Map();
  let dragged = 0;

  const at = (event) => {
    const box = canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };

  const onWheel = (event) => {
    event.preventDefault();
    const lines = event.deltaMode === 1 ? 16 : 1;
    const { x, y } = at(event);
    if (event.shiftKey) move(-event.deltaY * lines - event.deltaX * lines, 0);
    else zoom(Math.exp(-event.deltaY * lines * (event.ctrlKey ? 0.01 : 0.0018)), x, y);
  };

  const onDown = (event) => {
    if (event.button !== 0) return;
    if (pointers.size === 0) dragged = 0;
    pointers.set(event.pointerId, at(event));
  };

  const spread = () => {
    const [a, b] = [...pointers.values()];
    return { far: Math.hypot(a.x - b.x, a.y - b.y), x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 };
  };

  const onMove = (event) => {
    const before = pointers.get(event.pointerId);
    if (!before) return;
    const now = at(event);
    if (pointers.size === 2) {
      const was = spread();
      pointers.set(event.pointerId, now);
      const is = spread();
      if (was.far > 0) zoom(is.far / was.far, is.x, is.y);
      move(is.x - was.x, is.y - was.y);
      dragged = 99;
      return;
    }
    pointers.set(event.pointerId, now);
    dragged += Math.abs(now.x - before.x) + Math.abs(now.y - before.y);
    if (dragged < 5) return;
    // Only now: a click must reach the node that it is on.
    if (event.isTrusted && !canvas.hasPointerCapture(event.pointerId)) canvas.setPointerCapture(event.pointerId);
    canvas.classList.add("moves");
    move(now.x - before.x, now.y - before.y);
  };

  const onUp = (event) => {
    pointers.delete(event.pointerId);
    canvas.classList.remove("moves");
  };

  const onClick = (event) => { if (dragged >= 5) { event.preventDefault(); event.stopPropagation(); } };

  // --- Keys ---

  const STEP = 70;
  const KEYS = {
    ArrowLeft: () => move(STEP, 0),
    ArrowRight: () => move(-STEP, 0),
    ArrowUp: () => move(0, STEP),
    ArrowDown: () => move(0, -STEP),
    "+": () => zoom(1.25),
    "=": () => zoom(1.25),
    "-": () => zoom(0.8),
    0: () => { fit(); remember(); },
  };

  const onKey = (event) => {
    if (Kelos.typing(event)) return;
    if (event.key === "/" && form) { event.preventDefault(); form.elements.find.select(); return; }
    const act = picture && KEYS[event.key];
    const elsewhere = event.key.startsWith("Arrow") && event.target !== document.body && !canvas?.contains(event.target);
    if (!act || elsewhere) return;
    event.preventDefault();
    act();
  };

  const tellKeys = () => {
    const sheet = document.querySelector("#keys dl");
    if (!sheet || !picture) return;
    for (const [keys, what] of [["/", "find"], ["+ -", "larger, smaller"], ["0", "all of it"], ["← → ↑ ↓", "move the picture"], ["Tab", "go from workflow to workflow"]]) {
      const [term, told] = [document.createElement("dt"), document.createElement("dd")];
      for (const key of keys.split(" ")) { const kbd = document.createElement("kbd"); kbd.textContent = key; term.append(kbd, " "); }
      told.textContent = what;
      sheet.append(term, told);
    }
  };

  // --- Updates ---

  const LOOKS = ["bad", "again", "goes", "waits", "good", "ended", "none", "missing"];
  const known = new Map();
  let special = false;
  const node = (id) => known.get(id);
  // Which nodes there are, and whether some are in focus or on a path.
  const learn = () => {
    known.clear();
    for (const one of picture?.querySelectorAll(".node") ?? []) known.set(one.getAttribute("data-w"), one);
    special = [...known.values()].some((one) => one.matches(".focus, .along"));
  };

  const draw = ([id, look, letter, note, words]) => {
    const one = node(id);
    if (!one) return;
    one.classList.remove(...LOOKS);
    one.classList.add(look);
    one.querySelector(".letter").textContent = letter;
    one.querySelector(".below").textContent = note;
    one.querySelector("title").textContent = words;
  };

  // The page as it would be when loaded again, seen from where one is.
  const again = async () => {
    const answer = await fetch(location.pathname + location.search, { headers: { accept: "text/html" } });
    if (!answer.ok) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    const other = fresh.getElementById("picture");
    if (Boolean(other) !== Boolean(picture)) { location.reload(); return; }
    for (const id of ["words", "list"]) {
      const [part, next] = [document.getElementById(id), fresh.getElementById(id)];
      if (part && next && part.innerHTML !== next.innerHTML) part.replaceChildren(...next.childNodes);
    }
    if (!other) return;
    const held = document.activeElement?.getAttribute("data-w");
    for (const name of ["width", "height", "aria-label"]) picture.setAttribute(name, other.getAttribute(name));
    for (const id of ["edges", "nodes"]) document.getElementById(id).replaceWith(fresh.getElementById(id));
    learn();
    if (held) node(held)?.focus();
  };

  const changed = new Set();
  let all = false;
  let waits = false;
  let asks = false;

  const refresh = async () => {
    waits = false;
    if (asks || document.hidden) return;
    const ids = [...changed].filter((id) => node(id));
    const whole = all || ids.length > MOST_ASKED;
    changed.clear();
    all = false;
    asks = true;
    try {
      if (whole) await again();
      else if (ids.length > 0) {
        const query = ids.map((id) => `of=${encodeURIComponent(id)}`).join("&");
        const answer = await fetch(`/ui/graph/nodes?hours=${canvas.dataset.hours}&${query}`);
        if (answer.ok) for (const one of await answer.json()) draw(one);
      }
    } catch { all = true; }
    asks = false;
    if (all || changed.size > 0) soon();
  };

  const soon = () => { if (!waits) { waits = true; setTimeout(refresh, BATCH); } };

  // The text beside the picture describes the focus and the path; without these, nodes in trouble.
  const told = (id) => !special || Boolean(node(id)?.matches(".focus, .along"));

  const listen = () => {
    const onSlot = (what, workflow) => {
      if (what === "looked" && !told(workflow)) return;
      changed.add(workflow);
      if (told(workflow)) later();
      soon();
    };
    const everything = () => { all = true; soon(); };
    let wasOpen = false;
    Kelos.follow(`?after=${document.getElementById("since").dataset.after}`, (event) => {
      if (event.type === "open") { if (wasOpen) everything(); wasOpen = true; return; }
      const changes = JSON.parse(event.data);
      if (!changes) everything();
      for (const [subject, what, workflow] of changes ?? []) {
        if (subject === "slot") onSlot(what, workflow);
        else if (subject === "workflow" && !["planned", "replanned"].includes(what)) everything();
      }
    });
    document.addEventListener("visibilitychange", () => { if (!document.hidden) { all = true; soon(); } });
  };

  // The text needs the whole page: nodes are updated at once, the text for the focus within a second, that for all later.
  let follows = false;
  const later = () => {
    if (follows) return;
    follows = true;
    setTimeout(() => { follows = false; all = true; soon(); }, special || !picture ? 500 : 5000);
  };

  if (picture) {
    begin();
    canvas.addEventListener("wheel", onWheel, { passive: false });
    canvas.addEventListener("pointerdown", onDown);
    canvas.addEventListener("pointermove", onMove);
    for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, onUp);
    canvas.addEventListener("click", onClick, true);
    canvas.addEventListener("dragstart", (event) => event.preventDefault());
    // Browsers would scroll to the focused element; the picture is moved instead.
    canvas.addEventListener("scroll", () => canvas.scrollTo(0, 0));
    picture.addEventListener("focusin", (event) => { const one = event.target.closest(".node"); if (one && dragged < 5 && one.matches(":focus-visible")) reveal(one, false); });
    new ResizeObserver(() => { [room.width, room.height] = [canvas.clientWidth || 1, canvas.clientHeight || 1]; }).observe(canvas);
    const zooms = { in: () => zoom(1.25), out: () => zoom(0.8), fit: () => { fit(); remember(); } };
    for (const button of document.querySelectorAll("[data-zoom]")) button.addEventListener("click", zooms[button.dataset.zoom]);
  }
  document.addEventListener("keydown", onKey);
  for (const field of form?.querySelectorAll("select, .level") ?? []) field.addEventListener("change", () => form.requestSubmit());
  form?.addEventListener("submit", () => { for (const field of form.elements) if (field.value === "") field.disabled = true; });
  tellKeys();
  learn();
  listen();
});
