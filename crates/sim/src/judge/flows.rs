//! The judge of flows: the log and the definitions alone say which steps may be opened, what each is given, and how a run ends.

mod given;
mod repeats;
mod rest;

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use kelos_model::arguments::kept_arguments;
use kelos_model::event::Event;
use kelos_model::flow::{FlowEnd, FlowGraph, StepProgress};
use kelos_model::slot::StepOfRun;
use kelos_model::{
    EventRecord, Outcome, Slot, SlotEvent, SlotKey, SlotRef, SlotState, Step, StepKey, StepName, Workflow, WorkflowId,
};
use kelos_store::{PageRequest, Queries};
use serde_json::{Map, Value, json};

use given::Before;
pub(super) use rest::{StepsAtRest, is_accounted_for};

/// A live run of a flow.
struct LiveRun {
    workflow: Workflow,
    graph: FlowGraph,
    /// The steps that earlier runs have done, and that are to be done again.
    undone: BTreeSet<usize>,
    /// The steps and items that this run has opened.
    opened: BTreeSet<SlotRef>,
}

/// The items of a list, and what else each of them is given.
type ListToDo = (Vec<Value>, Map<String, Value>);

/// The state of all flows as the log has told it so far.
struct FlowsWatch<'a> {
    reader: &'a dyn Queries,
    slots: BTreeMap<SlotRef, Slot>,
    runs: BTreeMap<SlotRef, LiveRun>,
    graphs: BTreeMap<(WorkflowId, u32), (Workflow, FlowGraph)>,
    /// The outputs of the latest run of each slot.
    outputs: BTreeMap<SlotRef, Map<String, Value>>,
    /// The outcome of the latest run of each slot that failed.
    errors: BTreeMap<SlotRef, String>,
    /// The steps that were opened, and have had no run since.
    unbegun: BTreeSet<SlotRef>,
}

/// Checks all flows in the log, and that their steps are in the table as the log has them. Returns these.
///
/// # Errors
/// The violation.
pub(super) fn hold(reader: &dyn Queries, log: &[EventRecord]) -> Result<BTreeMap<SlotRef, Slot>, String> {
    let (graphs, outputs, errors) = Default::default();
    let (slots, runs, unbegun) = Default::default();
    let mut watch = FlowsWatch { reader, slots, runs, graphs, outputs, errors, unbegun };
    for record in log {
        let Event::Slot { slot, what } = &record.event else { continue };
        let judged = match slot.key.step() {
            Some(key) => watch.of_step(slot, key, what, record.at),
            None => watch.of_run(slot, what),
        };
        judged.map_err(|wrong| format!("event {} of {slot}, {what:?}: {wrong}", record.seq))?;
        super::fold(&mut watch.slots, record)?;
        watch.after(slot, what)?;
    }
    watch.agrees_with_the_table()
}

/// All steps of a run in the table.
fn stored(reader: &dyn Queries, run: &SlotRef) -> Result<BTreeMap<SlotRef, Slot>, String> {
    let page = reader.steps(run, PageRequest::newest(crate::ALL)).map_err(|error| error.to_string())?;
    Ok(page.rows.into_iter().map(|row| (row.id, row.slot)).collect())
}

fn run_of(step: &SlotRef, key: &StepKey) -> SlotRef {
    SlotRef::new(step.workflow.clone(), key.run())
}

fn step_of(run: &SlotRef, step: &Step) -> Result<SlotRef, String> {
    let key = StepKey::new(&run.key, &step.name).ok_or("a step has steps")?;
    Ok(SlotRef::new(run.workflow.clone(), SlotKey::Step(key)))
}

fn check(holds: bool, wrong: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(wrong.to_owned()) }
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, found: &T, wanted: &T) -> Result<(), String> {
    if found == wanted { Ok(()) } else { Err(format!("{what}: expected {wanted:?}")) }
}

impl FlowsWatch<'_> {
    fn definition(&mut self, workflow: &WorkflowId, number: u32) -> Result<(Workflow, FlowGraph), String> {
        let key = (workflow.clone(), number);
        if !self.graphs.contains_key(&key) {
            let mut past = self.reader.definitions(workflow, Some(number)).map_err(|error| error.to_string())?;
            let definition = past.pop().map(|past| past.definition).ok_or("it follows no definition")?;
            let flow = definition.flow.clone().ok_or("it follows a definition without a flow")?;
            let graph = FlowGraph::new(&flow).map_err(|flaws| format!("{flaws:?}"))?;
            self.graphs.insert(key.clone(), (definition, graph));
        }
        Ok(self.graphs[&key].clone())
    }

    /// Follows what has happened.
    fn after(&mut self, id: &SlotRef, what: &SlotEvent) -> Result<(), String> {
        match what {
            SlotEvent::StepOpened { .. } => {
                self.unbegun.insert(id.clone());
                self.undo_after(id)?;
            }
            SlotEvent::Dispatched { .. } => {
                self.unbegun.remove(id);
                self.outputs.remove(id);
                self.errors.remove(id);
                let part = self.slots[id].run_of_flow().cloned();
                if let Some(part) = part.filter(|part| part.definition > 0) {
                    let (workflow, whole) = self.definition(&id.workflow, part.definition)?;
                    let graph = repeats::graph_of(&whole, &part)?;
                    let undone = self.undone(id, &graph)?;
                    self.runs.insert(id.clone(), LiveRun { workflow, graph, undone, opened: BTreeSet::new() });
                }
            }
            SlotEvent::Gave { outputs, .. } => drop(self.outputs.insert(id.clone(), outputs.clone())),
            SlotEvent::Failed { outcome, .. } => drop(self.errors.insert(id.clone(), outcome.to_string())),
            SlotEvent::MarkedSucceeded { .. } => {
                // A step that a person marks as done is done.
                if let Some((run, at)) = self.position(id)
                    && let Some(live) = self.runs.get_mut(&run)
                {
                    live.undone.remove(&at);
                }
            }
            _ => {}
        }
        let is_over = !matches!(self.slots[id].state, SlotState::Dispatched | SlotState::Running);
        if id.key.step().is_none() && is_over {
            self.runs.remove(id);
        }
        Ok(())
    }

    /// The run of a step that is no item, and its position.
    fn position(&self, id: &SlotRef) -> Option<(SlotRef, usize)> {
        let key = id.key.step().filter(|key| key.item_number().is_none())?;
        let run = run_of(id, key);
        let at = self.runs.get(&run)?.graph.position(key.step())?;
        Some((run, at))
    }

    /// Notes that everything after a step that is opened is to be done again.
    fn undo_after(&mut self, id: &SlotRef) -> Result<(), String> {
        let Some((run, at)) = self.position(id) else { return Ok(()) };
        let graph = self.runs[&run].graph.clone();
        let number = self.slots[&run].last_run;
        for later in graph.with_all_after(at).into_iter().filter(|later| *later != at) {
            let opened = self.opened(&run, &graph, later)?;
            if opened.is_some_and(|opened| opened < number) {
                self.runs.get_mut(&run).into_iter().for_each(|live| {
                    live.undone.insert(later);
                });
            }
        }
        Ok(())
    }

    /// The number of the run that opened a step last.
    fn opened(&self, run: &SlotRef, graph: &FlowGraph, at: usize) -> Result<Option<u32>, String> {
        let id = step_of(run, graph.step(at).ok_or("there is no such step")?)?;
        Ok(self.slots.get(&id).and_then(|slot| slot.step_of_run()).map(|step| step.run))
    }

    /// The first run whose work counts for each step.
    fn first_runs(&self, run: &SlotRef, graph: &FlowGraph) -> Vec<u32> {
        let part = self.slots[run].run_of_flow().cloned().unwrap_or_default();
        let mut first = vec![part.since_run; graph.len()];
        for (step, since) in &part.again {
            let after = graph.position(step.as_str()).map(|at| graph.with_all_after(at)).unwrap_or_default();
            after.into_iter().for_each(|at| first[at] = first[at].max(*since));
        }
        first
    }

    /// The steps that a run which begins has to do, although an earlier one did them.
    fn undone(&self, run: &SlotRef, graph: &FlowGraph) -> Result<BTreeSet<usize>, String> {
        let first = self.first_runs(run, graph);
        let mut undone = BTreeSet::new();
        for (at, first) in first.iter().enumerate() {
            let Some(opened) = self.opened(run, graph, at)? else { continue };
            let id = step_of(run, graph.step(at).ok_or("there is no such step")?)?;
            if opened < *first {
                undone.insert(at);
            } else if StepProgress::from(self.slots[&id].state) == StepProgress::Failed {
                undone.extend(graph.with_all_after(at));
            }
            for later in graph.with_all_after(at) {
                if self.opened(run, graph, later)?.is_some_and(|other| other < opened) {
                    undone.insert(later);
                }
            }
        }
        Ok(undone)
    }

    /// The progress of the steps of a run.
    fn states(&self, run: &SlotRef) -> Result<Vec<StepProgress>, String> {
        let live = self.runs.get(run).ok_or("its run is not live")?;
        let state = |at: usize| {
            let id = step_of(run, live.graph.step(at).ok_or("there is no such step")?)?;
            let slot = self.slots.get(&id).filter(|_| live.opened.contains(&id) || !live.undone.contains(&at));
            Ok(slot.map_or(StepProgress::Unopened, |slot| slot.state.into()))
        };
        (0..live.graph.len()).map(state).collect()
    }

    fn before<'g>(&self, run: &SlotRef, graph: &'g FlowGraph, at: usize, failed: bool) -> Result<Before<'g>, String> {
        let step = graph.step(at).ok_or("there is no such step")?;
        let id = step_of(run, step)?;
        let error = match self.slots.get(&id).map(|slot| slot.state) {
            Some(SlotState::Expired) => "what it waited for did not come in time".to_owned(),
            Some(SlotState::Killed) => "it was killed".to_owned(),
            _ => self.errors.get(&id).cloned().unwrap_or_default(),
        };
        // A step that ended before it ran says nothing of the run before, unless a person says that it is done.
        let is_of_past = self.unbegun.contains(&id) && failed;
        let outputs = self.outputs.get(&id).filter(|_| !is_of_past).cloned().unwrap_or_default();
        Ok(Before { name: step.name.as_str(), outputs, error: failed.then_some(error) })
    }

    /// The inputs that a step is to be given.
    fn inputs(&self, run: &SlotRef, at: usize) -> Result<Map<String, Value>, String> {
        let (graph, states) = (&self.runs[run].graph, self.states(run)?);
        let mut before = Vec::new();
        for other in graph.needs(at) {
            before.push(self.before(run, graph, *other, false)?);
        }
        for other in graph.handles(at).iter().filter(|other| states[**other] == StepProgress::Failed) {
            before.push(self.before(run, graph, *other, true)?);
        }
        let slot = &self.slots[run];
        let arguments = repeats::given_to(slot).unwrap_or_else(|| {
            let arguments = kept_arguments(&self.runs[run].workflow, slot.collected.as_deref(), &run.key);
            arguments.unwrap_or_default().into_iter().collect()
        });
        Ok(given::inputs(graph.step(at).ok_or("there is no such step")?, &arguments, &before))
    }

    fn of_step(&mut self, id: &SlotRef, key: &StepKey, what: &SlotEvent, now: Timestamp) -> Result<(), String> {
        let run = run_of(id, key);
        let Some(live) = self.runs.get(&run) else {
            let is_of_past = matches!(what, SlotEvent::RunEnded { .. } | SlotEvent::MarkedSucceeded { .. });
            let is_ended = matches!(what, SlotEvent::Killed { .. } | SlotEvent::SkippedBy { .. });
            return check(is_of_past || is_ended && self.slots[&run].run_alive, "its run is over");
        };
        let at = live.graph.position(key.step()).ok_or("its flow has no such step")?;
        match what {
            SlotEvent::StepOpened { run: number, awaits, .. } => {
                same("it is opened by", number, &self.slots[&run].last_run)?;
                check(!live.opened.contains(id), "it is opened twice")?;
                let is_left = self.slots.get(id).is_none_or(|slot| slot.state.is_final());
                check(is_left, "it is opened while it is live")?;
                match key.item_number() {
                    Some(number) => self.may_open_item(&run, at, id, number)?,
                    None => self.may_open(&run, at, awaits)?,
                }
                self.runs.get_mut(&run).into_iter().for_each(|live| {
                    live.opened.insert(id.clone());
                });
                Ok(())
            }
            SlotEvent::StepReady { inputs } => self.is_ready(&run, at, id, key, inputs),
            SlotEvent::Dispatched { .. } => check(!self.slots[id].run_alive, "it has a live run"),
            SlotEvent::Expired { timeout_seconds, .. } => {
                let wait = live.graph.step(at).and_then(|step| step.signal.clone()).ok_or("it waits for no signal")?;
                let came = self.slots[&run].run_of_flow().is_some_and(|part| part.signals.contains_key(&wait.name));
                check(!came, "its signal had come")?;
                let seconds = i64::try_from(*timeout_seconds).unwrap_or(i64::MAX);
                let is_over = now >= self.slots[id].since + SignedDuration::from_secs(seconds);
                check(wait.within_seconds == Some(*timeout_seconds) && is_over, "its time is not over")
            }
            SlotEvent::Gave { outputs, .. } if key.item_number().is_none() => self.may_give(&run, at, outputs),
            SlotEvent::Succeeded { .. } | SlotEvent::Failed { .. } if key.item_number().is_none() => {
                self.may_end(&run, at, id, what)
            }
            _ => Ok(()),
        }
    }

    fn may_open(&self, run: &SlotRef, at: usize, awaits: &[StepName]) -> Result<(), String> {
        let (graph, states) = (&self.runs[run].graph, self.states(run)?);
        let step = graph.step(at).ok_or("there is no such step")?;
        check(states[at] == StepProgress::Unopened, "an earlier run has done it")?;
        let is = |others: &[usize], state| others.iter().map(|other| states[*other] == state).collect::<Vec<_>>();
        if step.handles.is_empty() {
            check(is(graph.needs(at), StepProgress::Succeeded).iter().all(|is| *is), "not all it needs has succeeded")?;
        } else {
            check(is(graph.handles(at), StepProgress::Failed).contains(&true), "nothing failed that it handles")?;
        }
        let all = (0..graph.len()).filter(|at| states[*at] == StepProgress::Live);
        let live: Vec<_> = all.filter_map(|at| Some(graph.step(at)?.name.clone())).collect();
        let waits = step.is_error_step() && !step.at_once;
        same("it awaits", &awaits.to_vec(), &if waits { live } else { Vec::new() })
    }

    /// The list of a step and what else its items are given; none where it has no list that fits.
    fn list(&self, run: &SlotRef, at: usize) -> Result<Option<ListToDo>, String> {
        let step = self.runs[run].graph.step(at).ok_or("there is no such step")?;
        let id = step_of(run, step)?;
        let mut rest = self.slots[&id].step_of_run().map(|step| step.inputs.clone()).unwrap_or_default();
        let list = step.for_each.as_ref().ok_or("it has no list")?;
        let items = rest.remove(&given::plain_name(&list.input));
        let fits = items.and_then(|items| items.as_array().cloned()).filter(|items| items.len() <= list.most as usize);
        Ok(fits.map(|items| (items, rest)))
    }

    /// The inputs of an item.
    fn item_inputs(&self, run: &SlotRef, at: usize, number: u32) -> Result<Map<String, Value>, String> {
        let (items, mut rest) = self.list(run, at)?.ok_or("it is given no list that fits")?;
        let item = items.get(number as usize).cloned().ok_or("the list has no such item")?;
        rest.insert("item".to_owned(), item);
        rest.insert("index".to_owned(), json!(number));
        Ok(rest)
    }

    fn may_open_item(&self, run: &SlotRef, at: usize, id: &SlotRef, number: u32) -> Result<(), String> {
        let inputs = self.item_inputs(run, at, number)?;
        let step = step_of(run, self.runs[run].graph.step(at).ok_or("there is no such step")?)?;
        check(self.slots[&step].state == SlotState::Running, "its list does not run")?;
        check(!self.is_done_before(run, at, id, &inputs), "an earlier run has done it")
    }

    /// Whether an earlier run of the same pass has done the same for an item.
    fn is_done_before(&self, run: &SlotRef, at: usize, id: &SlotRef, inputs: &Map<String, Value>) -> bool {
        let first = self.first_runs(run, &self.runs[run].graph)[at];
        let is_same = |step: &StepOfRun| step.run >= first && step.inputs == *inputs;
        let slot = self.slots.get(id).filter(|slot| slot.state == SlotState::Succeeded);
        slot.and_then(|slot| slot.step_of_run()).is_some_and(is_same)
    }

    fn is_ready(
        &self,
        run: &SlotRef,
        at: usize,
        id: &SlotRef,
        key: &StepKey,
        inputs: &Map<String, Value>,
    ) -> Result<(), String> {
        let slot = &self.slots[id];
        let part = slot.step_of_run().cloned().unwrap_or_default();
        if slot.retries > 0 {
            return same("it is given again", inputs, &part.inputs);
        }
        if let Some(number) = key.item_number() {
            return same("it is given", inputs, &self.item_inputs(run, at, number)?);
        }
        let (graph, states) = (&self.runs[run].graph, self.states(run)?);
        let is_live =
            |name: &StepName| graph.position(name.as_str()).is_some_and(|at| states[at] == StepProgress::Live);
        check(!part.awaits.iter().any(is_live), "what it awaits has not ended")?;
        // A step that can't start is told nothing.
        let is_misfit = |step: &Step| step.for_each.is_some() && inputs.is_empty();
        if graph.step(at).is_some_and(is_misfit) {
            return Ok(());
        }
        same("it is given", inputs, &self.inputs(run, at)?)
    }

    fn may_give(&self, run: &SlotRef, at: usize, outputs: &Map<String, Value>) -> Result<(), String> {
        let step = self.runs[run].graph.step(at).ok_or("there is no such step")?;
        if let Some(wait) = &step.signal {
            let part = self.slots[run].run_of_flow().cloned().unwrap_or_default();
            let said = part.signals.get(&wait.name).ok_or("its signal has not come")?;
            let wanted = match said {
                Value::Object(said) => said.clone(),
                other => Map::from_iter([(given::plain_name(&wait.name), other.clone())]),
            };
            return same("its signal said", outputs, &wanted);
        }
        if step.for_each.is_some() {
            let (items, _) = self.list(run, at)?.ok_or("it has no list that fits")?;
            let mut all = Vec::new();
            for number in 0..items.len() {
                let id = self.item(run, step, number)?;
                all.push(Value::Object(self.outputs.get(&id).cloned().unwrap_or_default()));
            }
            let wanted = Map::from_iter([(given::plain_name(step.name.as_str()), Value::Array(all))]);
            return same("its items gave", outputs, &wanted);
        }
        Ok(())
    }

    fn item(&self, run: &SlotRef, step: &Step, number: usize) -> Result<SlotRef, String> {
        let key = StepKey::new(&run.key, &step.name).ok_or("a step has steps")?;
        let number = u32::try_from(number).map_err(|error| error.to_string())?;
        Ok(SlotRef::new(run.workflow.clone(), SlotKey::Step(key.item(number))))
    }

    /// Whether a step may end like this that the scheduler itself carries out.
    fn may_end(&self, run: &SlotRef, at: usize, id: &SlotRef, what: &SlotEvent) -> Result<(), String> {
        let live = &self.runs[run];
        let step = live.graph.step(at).ok_or("there is no such step")?;
        if let Some(wait) = &step.signal {
            let came = self.slots[run].run_of_flow().is_some_and(|part| part.signals.contains_key(&wait.name));
            return check(came && matches!(what, SlotEvent::Succeeded { .. }), "its signal has not come");
        }
        if step.for_each.is_none() || self.slots[id].state != SlotState::Running {
            return Ok(());
        }
        let (items, _) = self.list(run, at)?.ok_or("it has no list that fits")?;
        let mut all_succeeded = true;
        for number in 0..items.len() {
            let item = self.item(run, step, number)?;
            let slot = self.slots.get(&item).ok_or_else(|| format!("{item} was not opened"))?;
            check(slot.state.is_final(), &format!("{item} is live"))?;
            let index = u32::try_from(number).map_err(|error| error.to_string())?;
            let inputs = self.item_inputs(run, at, index)?;
            let is_done = live.opened.contains(&item) || self.is_done_before(run, at, &item, &inputs);
            check(is_done, &format!("{item} was not done again"))?;
            all_succeeded &= slot.state == SlotState::Succeeded;
        }
        same("all its items succeeded", &matches!(what, SlotEvent::Succeeded { .. }), &all_succeeded)
    }

    fn of_run(&mut self, id: &SlotRef, what: &SlotEvent) -> Result<(), String> {
        if let SlotEvent::FiredBy { repeats: Some(repeats), arguments, .. } = what {
            return self.may_repeat(id, repeats, arguments);
        }
        let Some(slot) = self.slots.get(id).filter(|slot| slot.run_of_flow().is_some()) else { return Ok(()) };
        let is_end = matches!(
            what,
            SlotEvent::Succeeded { .. }
                | SlotEvent::Recovered { .. }
                | SlotEvent::Failed { .. }
                | SlotEvent::BackedOff { .. }
                | SlotEvent::RunEnded { .. }
        );
        if is_end {
            let prefix = |other: &SlotRef| other.key.step().is_some_and(|key| run_of(other, key) == *id);
            let live = self.slots.iter().find(|(other, slot)| prefix(other) && slot.is_live());
            if let Some((step, _)) = live {
                return Err(format!("{step} is live"));
            }
        }
        if let SlotEvent::Dispatched { .. } = what {
            return check(!slot.run_alive, "it has a live run");
        }
        let Some(live) = self.runs.get(id) else { return Ok(()) };
        match what {
            SlotEvent::Gave { outputs, .. } => {
                let states = self.states(id)?;
                let mut last = Vec::new();
                for at in live.graph.leaves().filter(|at| states[*at] == StepProgress::Succeeded) {
                    last.push(self.before(id, &live.graph, at, false)?);
                }
                same("its last steps gave", outputs, &given::outputs(&last))
            }
            SlotEvent::Succeeded { .. } | SlotEvent::Recovered { .. } | SlotEvent::Failed { .. } => {
                self.ends_well(id, what)
            }
            SlotEvent::BackedOff { outcome, .. } => self.fails(id, outcome),
            _ => Ok(()),
        }
    }

    /// Whether nothing of a run is left to do, and it ends as its steps did.
    fn ends_well(&self, id: &SlotRef, what: &SlotEvent) -> Result<(), String> {
        if let SlotEvent::Failed { outcome, .. } = what {
            return self.fails(id, outcome);
        }
        let wanted = self.end(id)?;
        let found = match what {
            SlotEvent::Recovered { failed, .. } => FlowEnd::Recovered { failed: failed.clone() },
            _ => FlowEnd::Succeeded,
        };
        let states = self.states(id)?;
        let is_last = |at: &usize| states[*at] == StepProgress::Succeeded;
        let graph = &self.runs[id].graph;
        let mut last = Vec::new();
        for at in graph.leaves().filter(is_last) {
            last.push(self.before(id, graph, at, false)?);
        }
        let given = self.outputs.get(id).cloned().unwrap_or_default();
        same("it gave", &given, &given::outputs(&last))?;
        same("its steps end it", &found, &wanted)
    }

    fn fails(&self, id: &SlotRef, outcome: &Outcome) -> Result<(), String> {
        let FlowEnd::Failed { failed } = self.end(id)? else { return Err("no step failed unhandled".to_owned()) };
        let Outcome::Failed { reason, .. } = outcome else { return Err("a flow fails by its steps".to_owned()) };
        let names = |name: &StepName| reason.contains(name.as_str());
        check(failed.iter().all(names), &format!("{failed:?} failed"))
    }

    fn end(&self, id: &SlotRef) -> Result<FlowEnd, String> {
        let (graph, states) = (&self.runs[id].graph, self.states(id)?);
        let ready = (0..graph.len()).find(|at| graph.is_ready(*at, &states));
        if let Some(step) = ready.and_then(|at| graph.step(at)) {
            return Err(format!("{} is still to be done", step.name));
        }
        Ok(graph.end(&states))
    }

    fn agrees_with_the_table(self) -> Result<BTreeMap<SlotRef, Slot>, String> {
        let (steps, others): (BTreeMap<_, _>, BTreeMap<_, _>) =
            self.slots.into_iter().partition(|(id, _)| id.key.step().is_some());
        let mut table = BTreeMap::new();
        for run in others.iter().filter(|(_, slot)| slot.run_of_flow().is_some()).map(|(id, _)| id) {
            table.append(&mut stored(self.reader, run)?);
        }
        for (id, slot) in &steps {
            if table.get(id) != Some(slot) {
                return Err(format!("the log has {id} as {slot:?}, the table as {:?}", table.get(id)));
            }
        }
        match table.keys().find(|id| !steps.contains_key(*id)) {
            Some(id) => Err(format!("the table has {id}, the log has not")),
            None => Ok(steps),
        }
    }
}
