// Groups of the board: the text of the form as cards, which are moved by mouse and by keys. The text is sent.
"use strict";

(() => {
  const editor = document.getElementById("editor"), text = document.getElementById("text");
  if (!editor) return;
  const said = document.getElementById("said"), form = document.getElementById("groups-form");
  const known = JSON.parse(editor.dataset.workflows);
  const defined = new Set(known);
  const REST = "Unlisted workflows";
  let groups = [], changed = false;

  const make = (tag, properties, ...children) => {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...children);
    return made;
  };
  const button = (sign, title, act) => {
    const made = make("button", { type: "button", textContent: sign, title, onclick: act });
    made.setAttribute("aria-label", title);
    return made;
  };
  const rest = () => {
    const listed = new Set(groups.flatMap((group) => group.workflows));
    return known.filter((id) => !listed.has(id));
  };

  // The parsed text, or null if it is invalid; the server reports the mistake when it is sent.
  const read = () => {
    try {
      const found = JSON.parse(text.value).groups;
      const good = Array.isArray(found) && found.every((group) => typeof group.name === "string" && Array.isArray(group.workflows) && group.workflows.every((id) => typeof id === "string"));
      return good ? found.map(({ name, workflows }) => ({ name, workflows: [...workflows] })) : null;
    } catch { return null; }
  };
  const write = (told) => {
    text.value = JSON.stringify({ groups }, null, 2);
    changed = true;
    if (told) said.textContent = told;
  };

  // ---- Moving. A position is a group's index, or that of the rest, and an index in it.
  const idsOf = (place) => groups[place]?.workflows ?? rest();
  const nameOf = (place) => groups[place]?.name ?? REST;
  const put = (id, place, before) => {
    for (const group of groups) {
      const at = group.workflows.indexOf(id);
      if (at < 0) continue;
      if (group === groups[place] && at < before) before--;
      group.workflows.splice(at, 1);
    }
    groups[place]?.workflows.splice(before, 0, id);
    const ids = idsOf(place);
    write(`${id} is in ${nameOf(place)}, ${ids.indexOf(id) + 1} of ${ids.length}`);
    draw();
    editor.querySelector(`li[data-id="${CSS.escape(id)}"]`)?.focus();
  };
  // Up and down, and on into the group beside.
  const step = (id, place, by) => {
    const at = idsOf(place).indexOf(id), to = at + by;
    const within = place < groups.length && to >= 0 && to < idsOf(place).length;
    if (within) put(id, place, by > 0 ? to + 1 : to);
    else leap(id, place, by);
  };
  const leap = (id, place, by) => {
    const to = place + by;
    if (to < 0 || to > groups.length) return;
    put(id, to, by > 0 ? 0 : idsOf(to).length);
  };
  const shift = (place, by) => {
    const [group] = groups.splice(place, 1);
    groups.splice(place + by, 0, group);
    write(`${group.name} is group ${place + by + 1} of ${groups.length}`);
    draw();
    editor.querySelectorAll(".card")[place + by]?.querySelector(by < 0 ? "[data-up]" : "[data-down]")?.focus();
  };
  const remove = (place) => {
    const [group] = groups.splice(place, 1);
    write(`${group.name} is gone, its workflows are not listed`);
    draw();
    document.getElementById("add").focus();
  };

  // ---- Drawing: all of it, which is at most some hundred names.
  const row = (id, place) => {
    const name = make("span", {}, id);
    if (!defined.has(id)) name.append(" ", make("small", { textContent: "(missing)" }));
    const made = make("li", { draggable: true, tabIndex: 0, title: "Alt and ↑ or ↓ moves it, with Page up or Page down to the next group" }, name,
      button("↑", `${id} up`, () => step(id, place, -1)), button("↓", `${id} down`, () => step(id, place, 1)));
    made.dataset.id = id;
    return made;
  };
  const card = (place) => {
    const own = place < groups.length;
    const header = make("header", {});
    if (own) {
      const name = make("input", { value: groups[place].name, maxLength: 200, required: true });
      name.setAttribute("aria-label", "Name of the group");
      name.addEventListener("input", () => { groups[place].name = name.value; write(); });
      const up = button("↑", `${groups[place].name} earlier`, () => shift(place, -1)), down = button("↓", `${groups[place].name} later`, () => shift(place, 1));
      up.dataset.up = down.dataset.down = "";
      up.disabled = place === 0;
      down.disabled = place === groups.length - 1;
      header.append(name, up, down, button("✕", `Take ${groups[place].name} away`, () => remove(place)));
    } else header.append(make("b", { textContent: REST }));
    const ids = idsOf(place);
    const list = make("ul", {}, ...(ids.length ? ids.map((id) => row(id, place)) : [make("li", { className: "empty-card", textContent: own ? "Drag workflows here" : "None" })]));
    const made = make("section", { className: "card" }, header, list);
    made.setAttribute("aria-label", nameOf(place));
    made.dataset.place = place;
    return made;
  };
  const draw = () => {
    const add = button("Add a group", "Add a group", () => {
      groups.push({ name: `Group ${groups.length + 1}`, workflows: [] });
      write(`Group ${groups.length} was added`);
      draw();
      editor.querySelectorAll(".card")[groups.length - 1].querySelector("input").select();
    });
    add.id = "add";
    const scrolled = [...editor.querySelectorAll(".card ul")].map((list) => list.scrollTop);
    editor.replaceChildren(...groups.map((_, place) => card(place)), card(groups.length), add);
    editor.querySelectorAll(".card ul").forEach((list, index) => { list.scrollTop = scrolled[index] ?? 0; });
  };

  editor.addEventListener("keydown", (event) => {
    const at = event.target.closest("li[data-id]");
    if (event.key === "Enter" && event.target.tagName === "INPUT") event.preventDefault();
    if (!at || event.target !== at) return;
    const id = at.dataset.id, place = Number(at.closest(".card").dataset.place);
    const acts = { ArrowUp: () => step(id, place, -1), ArrowDown: () => step(id, place, 1), PageUp: () => leap(id, place, -1), PageDown: () => leap(id, place, 1) };
    if (event.altKey && acts[event.key]) acts[event.key]();
    else if (event.key === "ArrowUp") at.previousElementSibling?.focus();
    else if (event.key === "ArrowDown") at.nextElementSibling?.focus();
    else return;
    event.preventDefault();
  });

  // ---- Dragging.
  let held = null;
  const unmark = () => { for (const marked of editor.querySelectorAll(".over, .before")) marked.classList.remove("over", "before"); };
  editor.addEventListener("dragstart", (event) => {
    const at = event.target.closest?.("li[data-id]");
    if (!at) return;
    held = at.dataset.id;
    at.classList.add("held");
    event.dataTransfer.effectAllowed = "move";
    event.dataTransfer.setData("text/plain", held);
  });
  editor.addEventListener("dragover", (event) => {
    const over = event.target.closest(".card");
    if (held === null || !over) return;
    event.preventDefault();
    unmark();
    over.classList.add("over");
    event.target.closest("li[data-id]")?.classList.add("before");
  });
  editor.addEventListener("drop", (event) => {
    const over = event.target.closest(".card");
    if (held === null || !over) return;
    event.preventDefault();
    const place = Number(over.dataset.place), before = event.target.closest("li[data-id]")?.dataset.id;
    const ids = idsOf(place), id = held;
    held = null;
    if (before !== id) put(id, place, before === undefined ? ids.length : ids.indexOf(before));
  });
  editor.addEventListener("dragend", () => {
    held = null;
    unmark();
    editor.querySelector(".held")?.classList.remove("held");
  });

  // ---- Begin.
  const take = () => {
    const found = read();
    editor.hidden = found === null;
    // Invisible fields must not keep the form from being sent.
    if (found) { groups = found; draw(); } else editor.replaceChildren();
    return found !== null;
  };
  text.addEventListener("input", () => { changed = true; take(); });
  form.addEventListener("submit", () => { changed = false; });
  addEventListener("beforeunload", (event) => { if (changed) event.preventDefault(); });
  if (take()) document.getElementById("as-text").open = false;
})();
