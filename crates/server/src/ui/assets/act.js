// Rerunning and killing what is selected on the board: a summary asks before, a bar shows, a result names what failed.
"use strict";

(() => {
  if (!window.Kelos?.board) return;
  const dialog = document.getElementById("act"), body = document.getElementById("act-body");
  const go = document.getElementById("act-go"), bar = document.getElementById("act-progress");
  const title = document.getElementById("act-title");
  const MOST = 5000, AT_ONCE = 4, NAMED = 50;
  const final = new Set(["succeeded", "failed", "expired", "skipped", "killed"]);
  const acts = {
    rerun: { word: "Rerun", done: "asked to run again", takes: (slot) => final.has(slot.state), others: "not final yet; kill first what is to run again" },
    kill: { word: "Kill", done: "killed", takes: (slot) => !final.has(slot.state), others: "final already" },
  };
  let run = 0;

  const make = (tag, text, ...children) => {
    const made = document.createElement(tag);
    if (text) made.textContent = text;
    made.append(...children);
    return made;
  };
  const slots = (count) => `${count} slot${count === 1 ? "" : "s"}`;
  const nameOf = (slot) => `${slot.workflow} @ ${slot.time.replace(":00.000Z", "Z")}`;
  const named = (items) => {
    const list = make("ul", "", ...items.slice(0, NAMED).map((item) => make("li", item)));
    if (items.length > NAMED) list.append(make("li", `and ${items.length - NAMED} more`));
    return list;
  };
  const path = (slot, act) =>
    `/api/v1/workflows/${encodeURIComponent(slot.workflow)}/slots/${encodeURIComponent(slot.time)}/${act}`;

  // The slots behind what is selected, page by page.
  const gather = async (mine) => {
    const found = [];
    for (const { id, from, to } of Kelos.board.stretches()) {
      let cursor = null;
      do {
        const query = new URLSearchParams({ workflow: id, from: new Date(from).toISOString(), to: new Date(to).toISOString(), limit: 1000 });
        if (cursor) query.set("cursor", cursor);
        const answer = await fetch(`/api/v1/slots?${query}`);
        const page = await answer.json();
        if (!answer.ok) throw new Error(page.detail);
        if (mine !== run) return found;
        found.push(...page.items);
        cursor = page.next;
        if (found.length > MOST) throw new Error(`More than ${MOST} slots are selected; select fewer.`);
      } while (cursor);
    }
    return found;
  };

  const summary = (act, chosen, others) => {
    const counts = new Map();
    for (const slot of chosen) counts.set(slot.state, (counts.get(slot.state) ?? 0) + 1);
    const workflows = new Set(chosen.map((slot) => slot.workflow)).size;
    const states = [...counts].map(([state, count]) => `${count} ${state}`).join(", ");
    const parts = [make("p", chosen.length ? `${slots(chosen.length)} of ${workflows} workflow${workflows === 1 ? "" : "s"}: ${states}.` : "There is nothing to do.")];
    if (others.length) parts.push(make("p", `${slots(others.length)} will be left alone: ${act.others}.`));
    if (chosen.length) parts.push(named(chosen.map((slot) => `${nameOf(slot)} (${slot.state})`)));
    return parts;
  };

  const perform = async (name, chosen) => {
    const mine = run, failed = [];
    let next = 0, done = 0;
    bar.max = chosen.length;
    bar.value = 0;
    bar.hidden = false;
    go.hidden = true;
    const worker = async () => {
      while (next < chosen.length && mine === run) {
        const slot = chosen[next++];
        try { await Kelos.post(path(slot, name)); } catch (error) { failed.push(`${nameOf(slot)}: ${error.message}`); }
        bar.value = ++done;
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
    if (mine !== run) return;
    bar.hidden = true;
    const parts = [make("p", `${slots(done - failed.length)} ${acts[name].done}.`)];
    if (failed.length) parts.push(make("p", `${slots(failed.length)} could not be:`), named(failed));
    body.replaceChildren(...parts);
    if (!failed.length) Kelos.board.clear();
  };

  Kelos.board.act = async (name) => {
    const act = acts[name], mine = ++run;
    title.textContent = act.word;
    body.replaceChildren(make("p", "Looking at the slots …"));
    bar.hidden = true;
    go.hidden = true;
    dialog.showModal();
    try {
      const found = await gather(mine);
      if (mine !== run) return;
      const chosen = found.filter(act.takes).reverse(), others = found.filter((slot) => !act.takes(slot));
      body.replaceChildren(...summary(act, chosen, others));
      go.textContent = `${act.word} ${slots(chosen.length)}`;
      go.className = name === "kill" ? "danger" : "primary";
      go.hidden = chosen.length === 0;
      go.onclick = () => perform(name, chosen);
      if (chosen.length) go.focus();
    } catch (error) {
      if (mine === run) body.replaceChildren(make("p", `That did not work: ${error.message}`));
    }
  };
  // What is not yet asked for when the dialog closes is left alone.
  dialog.addEventListener("close", () => { run++; });
})();
