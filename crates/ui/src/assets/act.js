// Rerunning, marking, skipping and killing selected slots of the board: a confirmation before, a progress bar, and a list of failures.
"use strict";

(() => {
  if (!window.Kelos?.board) return;
  const dialog = document.getElementById("act"), body = document.getElementById("act-body");
  const go = document.getElementById("act-go"), bar = document.getElementById("act-progress");
  const title = document.getElementById("act-title");
  const MOST = 5000, AT_ONCE = 4, NAMED = 50, PREVIEWED = 50;
  const final = new Set(["succeeded", "failed", "expired", "skipped", "killed"]);
  const isFinal = (slot) => final.has(slot.state);
  const acts = {
    rerun: { word: "Rerun", done: "will run again", takes: isFinal, others: "not final yet; kill first what is to run again" },
    mark: { word: "Mark as succeeded", done: "marked as succeeded", body: { state: "succeeded" }, takes: (slot) => slot.state !== "succeeded" && !slot.runAlive, others: "succeeded already, or running; kill first what runs" },
    skip: { word: "Skip", done: "skipped", takes: (slot) => !isFinal(slot), others: "final already" },
    kill: { word: "Kill", done: "killed", takes: (slot) => !isFinal(slot), others: "final already" },
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
  const marked = (text) => Object.assign(make("p", text), { className: "note" });
  const path = (slot, act) =>
    `/api/v1/workflows/${encodeURIComponent(slot.workflow)}/slots/${encodeURIComponent(slot.time)}/${act}`;

  // The selected slots, page by page.
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
    const changed = Kelos.board.changed();
    if (changed) parts.push(marked(`${changed} of the selected cells changed since they were selected; this is how they are now.`));
    if (chosen.length) parts.push(named(chosen.map((slot) => `${nameOf(slot)} (${slot.state})`)));
    return parts;
  };

  // The options of the action: the reason, and for a rerun whether everything downstream is rerun, too.
  const questions = (name, chosen) => {
    const reason = make("input");
    reason.id = "act-reason";
    reason.maxLength = 500;
    reason.placeholder = "for the log; may stay empty";
    const asked = [make("p", "", make("label", "", "Why: ", reason))];
    if (name === "rerun") {
      const box = make("input");
      box.type = "checkbox";
      box.id = "act-downstream";
      const told = make("p");
      box.addEventListener("change", () => preview(box, told, chosen));
      asked.push(make("p", "", make("label", "", box, " with everything that depends on them")), told);
    }
    return asked;
  };

  const touchedBy = (answer) => [answer.created, answer.reopened, answer.killed].flatMap((touched) => touched.slots);
  const preview = async (box, told, chosen) => {
    told.textContent = "";
    if (!box.checked) return;
    if (chosen.length > PREVIEWED) { told.textContent = `What depends on more than ${PREVIEWED} slots is not counted here.`; return; }
    const mine = run, own = new Set(chosen.map(nameOf)), more = new Map(), blocked = new Set();
    told.textContent = "Looking at what depends on them …";
    try {
      for (const slot of chosen) {
        const answer = await Kelos.post(path(slot, "rerun"), { downstream: true, dryRun: true });
        if (mine !== run || !box.checked) return;
        for (const touched of touchedBy(answer)) if (!own.has(nameOf(touched))) more.set(nameOf(touched), touched);
        for (const live of answer.killed.slots) blocked.add(nameOf(live));
      }
      const workflows = new Set([...more.values()].map((slot) => slot.workflow)).size;
      told.textContent = more.size ? `These are ${slots(more.size)} more, of ${workflows} workflow${workflows === 1 ? "" : "s"}.` : "Nothing that has ended depends on them.";
      if (blocked.size) told.textContent += ` In the way, because they run: ${[...blocked].slice(0, 5).join(", ")}.`;
    } catch (error) {
      told.textContent = error.message;
    }
  };

  // Only slots that were shown are changed: if a slot changed since the confirmation, there is another one.
  const confirmed = async (name, chosen) => {
    const mine = run, act = acts[name];
    go.disabled = true;
    try {
      const found = await gather(mine);
      if (mine !== run) return;
      const now = new Map(found.map((slot) => [nameOf(slot), slot]));
      const same = (slot) => { const other = now.get(nameOf(slot)); return other && act.takes(other) && (name !== "rerun" || other.state === slot.state); };
      const moved = chosen.filter((slot) => !same(slot));
      if (!moved.length) { await perform(name, chosen); return; }
      const reason = document.getElementById("act-reason").value;
      propose(name, found);
      body.prepend(marked(`${slots(moved.length)} went on meanwhile: ${moved.slice(0, 5).map(nameOf).join(", ")}. Nothing was done; look again.`));
      const why = document.getElementById("act-reason");
      if (why) why.value = reason;
    } catch (error) {
      if (mine === run) body.prepend(marked(`Nothing was done: ${error.message}`));
    } finally {
      go.disabled = false;
    }
  };

  const perform = async (name, chosen) => {
    const mine = run, failed = [], opened = new Set();
    const downstream = document.getElementById("act-downstream")?.checked ?? false;
    const reason = document.getElementById("act-reason").value.trim();
    const said = { ...acts[name].body, ...(reason && { reason }), ...(downstream && { downstream }) };
    const ask = async (slot) => {
      // A slot that an earlier request has opened is waiting already.
      if (opened.has(nameOf(slot))) return;
      const answer = await Kelos.post(path(slot, name), said);
      if (downstream) for (const touched of touchedBy(answer)) opened.add(nameOf(touched));
    };
    let next = 0, done = 0;
    bar.max = chosen.length;
    bar.value = 0;
    bar.hidden = false;
    go.hidden = true;
    const worker = async () => {
      while (next < chosen.length && mine === run) {
        const slot = chosen[next++];
        try { await ask(slot); } catch (error) { failed.push(`${nameOf(slot)}: ${error.message}`); }
        bar.value = ++done;
      }
    };
    await Promise.all(Array.from({ length: downstream ? 1 : AT_ONCE }, worker));
    if (mine !== run) return;
    bar.hidden = true;
    const parts = [make("p", `${slots(done - failed.length)} ${acts[name].done}.`)];
    if (failed.length) parts.push(make("p", `${slots(failed.length)} could not be:`), named(failed));
    body.replaceChildren(...parts);
    if (!failed.length) Kelos.board.clear();
  };

  // The summary, and the button that has it done.
  const propose = (name, found) => {
    const act = acts[name], others = found.filter((slot) => !act.takes(slot));
    const chosen = found.filter(act.takes).sort((a, b) => (a.time < b.time ? -1 : 1));
    body.replaceChildren(...summary(act, chosen, others), ...(chosen.length ? questions(name, chosen) : []));
    go.textContent = `${act.word} ${slots(chosen.length)}`;
    go.className = name === "kill" ? "danger" : "primary";
    go.hidden = chosen.length === 0;
    go.onclick = () => confirmed(name, chosen);
    if (chosen.length) go.focus();
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
      if (mine === run) propose(name, found);
    } catch (error) {
      if (mine === run) body.replaceChildren(make("p", `That did not work: ${error.message}`));
    }
  };
  // Requests that are not sent when the dialog closes are dropped.
  dialog.addEventListener("close", () => { run++; });
})();
