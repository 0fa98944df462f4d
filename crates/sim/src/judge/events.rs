//! Judges of facts and event schedules: run after every turn, on the log and the definitions in it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kelos_core::{AnyAnswer, Ask, Command, Tell};
use kelos_model::constraint::{Circumstances, Constraint, LastStart, judge};
use kelos_model::event::{Event, WorkflowEvent};
use kelos_model::facts::ENDS;
use kelos_model::ranges::Range;
use kelos_model::{
    Answer, EventRecord, Fact, FactKey, Gate, Occurrence, Otherwise, Reason, ReasonKind, Run, Slot, SlotEvent, SlotRef,
    SlotState, Subject, Workflow, WorkflowId, slot,
};
use kelos_store::{EventFilter, MemoryDisk, MemoryStore, PageRequest, Queries, StoredState};
use serde_json::{Map, Value};

use super::waits::Waits;
use crate::workload::Workload;

/// A judge that follows the log, turn by turn.
#[derive(Default)]
pub struct Watch {
    /// The log; none if a seed has no event schedules.
    reader: Option<Arc<dyn Queries>>,
    seq: u64,
    slots: BTreeMap<SlotRef, Slot>,
    workflows: BTreeMap<WorkflowId, WorkflowRecord>,
    waits: Waits,
    names: BTreeSet<FactKey>,
    facts: Vec<Fact>,
    /// The facts and runs that must be collected before the turn is over, and their collectors.
    expected: BTreeSet<(CollectedItem, Collector)>,
    /// The slots that must be ended before the turn is over.
    to_abort: BTreeSet<SlotRef>,
    /// The workflows whose cron times fire in the turn.
    fired: BTreeSet<WorkflowId>,
    /// The event schedules that change in the turn.
    touched: BTreeSet<WorkflowId>,
    /// When the latest run of each slot started.
    started: BTreeMap<SlotRef, Timestamp>,
    /// The last dispatched successful run of each workflow, and when it started.
    last_runs: BTreeMap<WorkflowId, (u64, Timestamp)>,
    /// The output that the latest run of each slot reported, and of those that ended a slot, by the run's id.
    gave: BTreeMap<SlotRef, (u32, Map<String, Value>)>,
    given: BTreeMap<String, Map<String, Value>>,
    /// The publishers that got an acknowledgement.
    acknowledged: BTreeSet<u64>,
}

/// The state of a workflow.
struct WorkflowRecord {
    definition: Arc<Workflow>,
    present: bool,
    /// Whether it is disabled; or paused, if it is no event schedule.
    off: bool,
    /// Whether an invariant of it broke, and nobody has resumed it.
    frozen: bool,
    /// The log position of the fact that it collected last.
    last_fact: u64,
    /// When it last changed, and until when its cron times are accounted for since.
    updated: Option<Timestamp>,
    checked: Option<Timestamp>,
    /// The cron times that it has collected since.
    times: BTreeSet<(Timestamp, Arc<str>)>,
    missed: Vec<Range>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum CollectedItem {
    Fact(u64),
    End(String, SlotState),
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Collector {
    Schedule(WorkflowId),
    Slot(SlotRef),
}

impl WorkflowRecord {
    fn is_schedule(&self) -> bool {
        self.definition.keys.events().is_some()
    }

    /// Whether it collects facts about a subject at a moment.
    fn wants(&self, subject: &Subject, now: Timestamp) -> bool {
        let asks = self.present && !self.frozen && self.definition.trigger.subjects().contains(subject);
        let Some(events) = self.definition.keys.events() else { return asks };
        let begun = self.definition.start_time.is_none_or(|start| start <= now);
        asks && begun && !self.off && events.end_time.is_none_or(|end| now < end)
    }
}

impl Watch {
    /// A judge of a disk, from the beginning of its log.
    #[must_use]
    pub fn new(workload: &Workload, disk: &MemoryDisk) -> Watch {
        let reader = (!workload.schedules.is_empty()).then(|| MemoryStore::on(disk).reader());
        Watch { reader, ..Watch::default() }
    }

    /// Notes an acknowledgement.
    pub fn replied(&mut self, command: &Command) {
        if let Command::Reply { token, reply: Ok(AnyAnswer::Tally(_)) } = command {
            self.acknowledged.insert(*token);
        }
    }

    /// Checks the results of a turn.
    ///
    /// # Errors
    /// The violation.
    pub fn after_turn(&mut self) -> Result<(), String> {
        let Some(reader) = self.reader.clone() else { return Ok(()) };
        let log = reader
            .events(&EventFilter::after(self.seq), PageRequest::oldest(crate::ALL))
            .map_err(|error| error.to_string())?
            .rows;
        for record in &log {
            self.follow(record, &*reader).map_err(|wrong| format!("event {}: {wrong}", record.seq))?;
        }
        if let Some((what, collector)) = self.expected.pop_first() {
            return Err(format!("{what:?} was not collected by {collector:?}"));
        }
        for slot in std::mem::take(&mut self.to_abort) {
            if self.slots.get(&slot).is_some_and(|slot| !slot.state.is_final()) {
                return Err(format!("{slot} is pending, and its schedule was disabled"));
            }
        }
        for id in std::mem::take(&mut self.touched) {
            self.collects_once(&id)?;
        }
        for id in std::mem::take(&mut self.fired) {
            self.times_are_accounted_for(&id, &*reader)?;
        }
        Ok(())
    }

    fn follow(&mut self, record: &EventRecord, reader: &dyn Queries) -> Result<(), String> {
        self.seq = record.seq;
        match &record.event {
            Event::Fact { fact, .. } => self.follow_fact(fact, record),
            Event::Workflow { workflow, what } => self.follow_workflow(workflow, what, record.at, reader),
            Event::Backfill { backfill, what } => {
                self.waits.follow_backfill(backfill, what, record.at);
                Ok(())
            }
            Event::Slot { slot, what } => self.follow_slot(slot, what, record),
            _ => Ok(()),
        }
    }

    fn follow_fact(&mut self, fact: &Fact, record: &EventRecord) -> Result<(), String> {
        if let Some(name) = fact.name()
            && !self.names.insert(name)
        {
            return Err(format!("{fact:?} counts twice"));
        }
        self.facts.push(fact.clone());
        self.expect(CollectedItem::Fact(record.seq), &fact.what.subject(), record.at);
        Ok(())
    }

    /// Notes the workflows that must collect a fact or a run.
    fn expect(&mut self, what: CollectedItem, subject: &Subject, now: Timestamp) {
        for (id, seen) in self.workflows.iter().filter(|(_, seen)| seen.wants(subject, now)) {
            if seen.is_schedule() {
                self.expected.insert((what.clone(), Collector::Schedule(id.clone())));
            } else if matches!(what, CollectedItem::Fact(_)) {
                // A slot that a person started collects nothing, and one whose time is over nothing more.
                let waits = |(id, slot): &(&SlotRef, &Slot)| {
                    let last = self.waits.last(&seen.definition, seen.off || seen.frozen, id, slot);
                    let was_started = slot.collected.as_ref().is_some_and(|collected| collected.asked.is_some());
                    slot.state == SlotState::Waiting && !was_started && last.is_none_or(|last| now <= last)
                };
                let waiting = slots_of(&self.slots, id).filter(waits).map(|(slot, _)| Collector::Slot(slot.clone()));
                self.expected.extend(waiting.map(|slot| (what.clone(), slot)));
            }
        }
    }

    fn follow_workflow(
        &mut self,
        id: &WorkflowId,
        what: &WorkflowEvent,
        at: Timestamp,
        reader: &dyn Queries,
    ) -> Result<(), String> {
        match what {
            WorkflowEvent::Defined { version, .. } => self.define(id, *version, reader)?,
            WorkflowEvent::Removed { .. } => {
                let pending = slots_of(&self.slots, id).find(|(_, slot)| slot.state.is_idle());
                let seen = self.workflows.get_mut(id).ok_or("what was never defined was removed")?;
                seen.present = false;
                if let Some((slot, _)) = pending.filter(|_| seen.is_schedule()) {
                    return Err(format!("{slot} is pending, and its schedule is gone"));
                }
            }
            WorkflowEvent::Paused { .. } | WorkflowEvent::Resumed { .. } => {
                let Some(seen) = self.workflows.get_mut(id) else { return Ok(()) };
                if seen.is_schedule() {
                    return Err(format!("the event schedule {id} was paused or resumed"));
                }
                seen.off = matches!(what, WorkflowEvent::Paused { .. });
                seen.times.clear();
                self.waits.follow(id, what, at);
            }
            WorkflowEvent::Enabled { .. } | WorkflowEvent::Disabled { .. } => {
                let Some(seen) = self.workflows.get_mut(id) else { return Ok(()) };
                if !seen.is_schedule() {
                    return Err(format!("{id} is no event schedule, and was enabled or disabled"));
                }
                seen.off = matches!(what, WorkflowEvent::Disabled { .. });
                seen.times.clear();
                if seen.off {
                    let pending =
                        slots_of(&self.slots, id).filter(|(_, slot)| slot.last_run == 0 && slot.state.is_idle());
                    self.to_abort.extend(pending.map(|(slot, _)| slot.clone()));
                }
            }
            WorkflowEvent::Frozen { .. } | WorkflowEvent::Thawed { .. } => {
                if let Some(seen) = self.workflows.get_mut(id) {
                    seen.frozen = matches!(what, WorkflowEvent::Frozen { .. });
                }
                self.waits.follow(id, what, at);
            }
            WorkflowEvent::Missed { range, .. } => {
                self.fired.insert(id.clone());
                if let Some(seen) = self.workflows.get_mut(id) {
                    seen.missed.push(*range);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn define(&mut self, id: &WorkflowId, version: u32, reader: &dyn Queries) -> Result<(), String> {
        let past = reader.definitions(id, None).map_err(|error| error.to_string())?;
        let exact = past.iter().find(|one| one.version == version).or(past.last());
        let definition = exact.map(|one| Arc::new(one.definition.clone())).ok_or("a definition is not kept")?;
        let begins_off = definition.keys.events().is_some_and(|events| !events.enabled);
        let is_schedule = definition.keys.events().is_some();
        let (updated, checked, times) = (None, None, BTreeSet::new());
        let seen = self.workflows.entry(id.clone()).or_insert(WorkflowRecord {
            definition: definition.clone(),
            present: false,
            off: false,
            frozen: false,
            last_fact: 0,
            updated,
            checked,
            times,
            missed: Vec::new(),
        });
        if !seen.present && is_schedule {
            seen.off = begins_off;
        }
        seen.present = true;
        // It starts anew, and a clock that was set back lets times pass again.
        seen.times.clear();
        let before = std::mem::replace(&mut seen.definition, definition.clone());
        if before.program() != definition.program() {
            self.hand_over_last_run(id, before.program());
        }
        Ok(())
    }

    /// Keeps the last run of a program for that program, if the workflow now runs another one.
    fn hand_over_last_run(&mut self, id: &WorkflowId, before: &WorkflowId) {
        if let Some(run) = self.last_runs.remove(id).filter(|_| before != id) {
            let last = self.last_runs.entry(before.clone()).or_insert(run);
            *last = run.max(*last);
        }
    }

    fn follow_slot(&mut self, id: &SlotRef, what: &SlotEvent, record: &EventRecord) -> Result<(), String> {
        match what {
            SlotEvent::Collected { what, fact } => self.judge_collected(id, what, *fact)?,
            SlotEvent::Gave { run, outputs } => drop(self.gave.insert(id.clone(), (*run, outputs.clone()))),
            SlotEvent::ConstraintsMet { .. } => {
                self.judge_constraints(id, record.at)?;
                self.judge_timeout(id, record.at)?;
            }
            SlotEvent::Skipped { explanation } if explanation.kind == ReasonKind::Constraints => {
                self.judge_skipped(id, explanation)?;
            }
            _ => {}
        }
        let before = self.slots.remove(id);
        let went_on =
            before.as_ref().is_some_and(|slot| matches!(slot.state, SlotState::Dispatched | SlotState::Running));
        let after = slot::apply(before, what, record.at, record.seq).ok_or_else(|| format!("{what:?} of {id}"))?;
        if after.state.is_final() {
            // It may be reopened in the same turn.
            self.to_abort.remove(id);
        }
        if let SlotEvent::Dispatched { .. } | SlotEvent::Started { .. } = what {
            self.started.insert(id.clone(), record.at);
        }
        let Some(seen) = self.workflows.get(&id.workflow) else { return Ok(()) };
        let program = seen.definition.program().clone();
        // A step that is done again is no end of a run to whoever waits for one.
        let is_repeat = after.run_of_flow().is_some_and(|run| run.repeats.is_some());
        if went_on && !is_repeat && ENDS.contains(&after.state) {
            let run = format!("{}#{}", id.short(), after.last_run);
            let last = |(number, _): &&(u32, _)| *number == after.last_run && after.state != SlotState::Killed;
            let given = self.gave.get(id).filter(last).map(|(_, outputs)| outputs.clone());
            self.given.insert(run.clone(), given.unwrap_or_default());
            self.expect(CollectedItem::End(run, after.state), &Subject::Ended(program.clone(), after.state), record.at);
        }
        if matches!(what, SlotEvent::Succeeded { .. }) {
            self.note_success(id, &program, after.last_run_seq);
        }
        if self.workflows[&id.workflow].is_schedule() {
            self.touched.insert(id.workflow.clone());
        }
        self.slots.insert(id.clone(), after);
        Ok(())
    }

    /// Checks that each fact is collected once by each slot that waits for it, in order, and by no other.
    fn judge_collected(&mut self, id: &SlotRef, what: &Occurrence, fact: Option<u64>) -> Result<(), String> {
        let seen = self.workflows.get_mut(&id.workflow).ok_or("a slot of no workflow collects")?;
        let is_schedule = seen.is_schedule();
        let collector =
            if is_schedule { Collector::Schedule(id.workflow.clone()) } else { Collector::Slot(id.clone()) };
        let expected = match (what, fact) {
            (Occurrence::Ended { run: Some(run), outputs, .. }, None) if self.given.get(run) != Some(outputs) => {
                return Err(format!("{id} hears that {run} gave {outputs:?}, which it did not"));
            }
            (_, Some(fact)) => {
                if is_schedule && std::mem::replace(&mut seen.last_fact, fact) >= fact {
                    return Err(format!("{id} collects fact {fact} out of order"));
                }
                CollectedItem::Fact(fact)
            }
            (Occurrence::Fired { cron, time }, None) => {
                if is_schedule && (seen.off || !seen.present) {
                    return Err(format!("{id} collects a time, and its schedule is disabled"));
                }
                self.fired.insert(id.workflow.clone());
                return if seen.times.insert((*time, cron.clone())) || !is_schedule {
                    Ok(())
                } else {
                    Err(format!("{id} collects {cron} of {time} a second time"))
                };
            }
            (Occurrence::Ended { run: Some(run), state, .. }, None) if is_schedule => {
                CollectedItem::End(run.clone(), *state)
            }
            _ => return Ok(()),
        };
        if self.expected.remove(&(expected.clone(), collector)) {
            Ok(())
        } else {
            Err(format!("{id} collects {expected:?}, which is not for it, or was collected before"))
        }
    }

    /// Checks that a slot that passed its constraints was allowed to.
    fn judge_constraints(&self, id: &SlotRef, now: Timestamp) -> Result<(), String> {
        let Some(seen) = self.workflows.get(&id.workflow) else { return Ok(()) };
        for Constraint { gate, .. } in &seen.definition.constraints {
            let passes = match gate {
                Gate::Concurrency(limit) => self.runs_of(seen.definition.program()) < *limit,
                Gate::Window(window) => window.is_open(now),
                Gate::Delay(span) => self.created(id, seen).is_none_or(|since| now >= since + millis(*span)),
                Gate::SinceLastRun(span) => {
                    self.last_start_of(seen.definition.program(), now).is_none_or(|last| now >= last + millis(*span))
                }
            };
            if !passes {
                return Err(format!("{id} passed {gate:?} at {now}"));
            }
        }
        Ok(())
    }

    /// Checks that a slot that passes its constraints after its time is over did so in time, as far as the clock shows it.
    fn judge_timeout(&self, id: &SlotRef, now: Timestamp) -> Result<(), String> {
        let (Some(seen), Some(slot)) = (self.workflows.get(&id.workflow), self.slots.get(id)) else { return Ok(()) };
        let Some(since) = self.created(id, seen).filter(|_| slot.last_run == 0) else { return Ok(()) };
        let last = match seen.definition.keys.events() {
            Some(events) => Some(since + millis(events.timeout_millis)),
            None => self.waits.last(&seen.definition, seen.off || seen.frozen, id, slot),
        };
        let Some(last) = last.filter(|last| *last < now) else { return Ok(()) };
        let last = slot.asked_at.map_or(last, |asked| last.max(asked));
        // A constraint that aborts was due when the trigger was met, not at the end.
        for Constraint { gate, .. } in seen.definition.constraints.iter().filter(|one| one.otherwise == Otherwise::Wait)
        {
            let passes = match gate {
                Gate::Window(window) => window.is_open(last),
                Gate::Delay(span) => last >= since + millis(*span),
                Gate::Concurrency(_) | Gate::SinceLastRun(_) => true,
            };
            if !passes {
                return Err(format!("{id} passed {gate:?} at {now}, and its time was over at {last}"));
            }
        }
        Ok(())
    }

    fn created(&self, id: &SlotRef, seen: &WorkflowRecord) -> Option<Timestamp> {
        let since = self.slots.get(id)?.collected.as_ref().map(|collected| collected.since);
        if id.key.is_moment() { since } else { seen.definition.keys.due(&id.key) }
    }

    /// The number of live runs of a program, and of slots that are queued for one.
    fn runs_of(&self, program: &WorkflowId) -> u32 {
        let mine = self.slots_of_program(program);
        mine.map(|(_, slot)| u32::from(slot.run_alive) + u32::from(slot.state == SlotState::Queued)).sum()
    }

    fn slots_of_program(&self, program: &WorkflowId) -> impl Iterator<Item = (&SlotRef, &Slot)> {
        let mine = move |id: &SlotRef| {
            self.workflows.get(&id.workflow).is_some_and(|seen| seen.definition.program() == program)
        };
        self.slots.iter().filter(move |(id, _)| mine(id))
    }

    /// When the last run of a program started that succeeded or may yet; one that is about to start counts as now.
    fn last_start_of(&self, program: &WorkflowId, now: Timestamp) -> Option<Timestamp> {
        if self.slots_of_program(program).any(|(_, slot)| slot.state == SlotState::Queued) {
            return Some(now);
        }
        let mine = self.workflows.iter().filter(|(_, seen)| seen.definition.program() == program);
        let over = mine.filter_map(|(id, _)| self.last_runs.get(id)).copied();
        let going = self.slots_of_program(program).filter(|(_, slot)| slot.run_alive);
        let going = going.filter_map(|(id, slot)| Some((slot.last_run_seq, *self.started.get(id)?)));
        over.chain(going).max().map(|(_, at)| at)
    }

    fn note_success(&mut self, id: &SlotRef, program: &WorkflowId, dispatched: u64) {
        let members = self.workflows.values().filter(|seen| seen.definition.program() == program);
        let mut gates = members.flat_map(|seen| &seen.definition.constraints);
        let asked_for = gates.any(|one| matches!(one.gate, Gate::SinceLastRun(_)));
        let is_moment = self.workflows[&id.workflow].definition.keys.are_moments();
        if let Some(started) = self.started.get(id).filter(|_| asked_for || is_moment) {
            let last = self.last_runs.entry(id.workflow.clone()).or_default();
            *last = (dispatched, *started).max(*last);
        }
    }

    /// Checks that a slot that a constraint ends names the constraint, and has not run before.
    fn judge_skipped(&self, id: &SlotRef, explanation: &Reason) -> Result<(), String> {
        let constraints = self.workflows.get(&id.workflow).map(|seen| &seen.definition.constraints[..]);
        let both = explanation.nested.iter().zip(constraints.unwrap_or_default());
        let mut ending = both.filter(|(said, one)| said.answer == Answer::Never && one.otherwise == Otherwise::Abort);
        if ending.next().is_none() {
            return Err(format!("{id} is ended by no constraint: {explanation:?}"));
        }
        let ran = self.slots.get(id).is_some_and(|slot| slot.last_run > 0);
        if ran { Err(format!("a constraint ends {id}, which has run before")) } else { Ok(()) }
    }

    /// Checks that no schedule has two collecting slots.
    fn collects_once(&self, id: &WorkflowId) -> Result<(), String> {
        let collecting: Vec<&SlotRef> =
            slots_of(&self.slots, id).filter(|(_, slot)| slot.is_collecting()).map(|(slot, _)| slot).collect();
        if collecting.len() > 1 { Err(format!("several slots collect: {collecting:?}")) } else { Ok(()) }
    }

    /// Checks that every cron time since a schedule last changed was collected, or recorded as a misfire.
    fn times_are_accounted_for(&mut self, id: &WorkflowId, reader: &dyn Queries) -> Result<(), String> {
        let row = reader.workflow(id).map_err(|error| error.to_string())?.ok_or("a workflow without a row")?;
        let Some(seen) = self.workflows.get_mut(id).filter(|seen| seen.is_schedule()) else { return Ok(()) };
        if seen.updated != row.moments.updated {
            seen.updated = row.moments.updated;
            seen.checked = row.moments.updated;
        }
        let (Some(from), Some(until)) = (seen.checked, row.moments.fired_until) else { return Ok(()) };
        let start = seen.definition.start_time.unwrap_or(Timestamp::MIN);
        for firing in seen.definition.trigger.firings() {
            for time in firing.schedule().times(from, until + millis(1)).filter(|at| *at > from && *at >= start) {
                let missed = seen.missed.iter().any(|range| range.start <= time && time < range.end);
                if !missed && !seen.times.contains(&(time, firing.name())) {
                    return Err(format!("{} of {id} at {time} was neither collected nor missed", firing.name()));
                }
            }
        }
        seen.checked = Some(until.max(from));
        Ok(())
    }

    /// Checks that acknowledged facts are in the log, schedules are as enabled as the log says, and no cron time is overdue.
    ///
    /// # Errors
    /// The violation.
    pub fn at_rest(&self, workload: &Workload, now: Timestamp) -> Result<(), String> {
        let Some(reader) = &self.reader else { return Ok(()) };
        for token in &self.acknowledged {
            let ask = usize::try_from(*token).ok().and_then(|token| workload.asks.get(token));
            let Some((_, Ask::Tell(Tell { facts, .. }))) = ask else { continue };
            let known = |fact: &&Fact| match fact.name() {
                Some(name) => self.names.contains(&name),
                None => self.facts.contains(fact),
            };
            if let Some(lost) = facts.iter().find(|fact| !known(fact)) {
                return Err(format!("{lost:?} was acknowledged, and is lost"));
            }
        }
        for row in reader.workflows(None).map_err(|error| error.to_string())? {
            let seen = self.workflows.get(&row.id).filter(|seen| seen.is_schedule());
            let Some(seen) = seen else { continue };
            if (seen.off, seen.present) != (!row.enabled, row.present) || row.paused {
                return Err(format!("{} is not as enabled as the log has it", row.id));
            }
            if row.present && row.enabled {
                is_up_to_date(&row.definition, row.moments.fired_until, now)?;
            }
        }
        Ok(())
    }
}

/// The reason why a slot named by a moment should not wait any more: it has waited too long, or starts whatever its
/// trigger answers.
#[must_use]
pub fn is_overdue(definition: &Workflow, (id, slot): (&SlotRef, &Slot), early: Timestamp) -> Option<&'static str> {
    let collected = slot.collected.as_ref().filter(|_| id.key.is_moment())?;
    let goes = collected.met || collected.asked.is_some();
    if slot.state == SlotState::Waiting && slot.since < early && goes {
        return Some("it needs no trigger any more");
    }
    let timeout = definition.keys.events().filter(|_| slot.last_run == 0)?.timeout_millis;
    let pending = matches!(slot.state, SlotState::Waiting | SlotState::Held);
    (pending && collected.since + millis(timeout) < early).then_some("it has waited too long")
}

/// The answers of the constraints of a held slot at a moment.
///
/// # Errors
/// When the store fails.
pub fn judgement(
    reader: &dyn Queries,
    definition: &Workflow,
    slots: &BTreeMap<SlotRef, Slot>,
    (id, slot): (&SlotRef, &Slot),
    now: Timestamp,
) -> Result<Answer, String> {
    let rows = reader.workflows(None).map_err(|error| error.to_string())?;
    let members = rows.iter().filter(|row| row.definition.program() == definition.program());
    let members: BTreeMap<&WorkflowId, _> = members.map(|row| (&row.id, row.moments.last_run)).collect();
    let mine = || slots.iter().filter(|(id, _)| members.contains_key(&id.workflow));
    let active = mine().map(|(_, slot)| u32::from(slot.run_alive) + u32::from(slot.state == SlotState::Queued)).sum();
    let since = slot.collected.as_ref().map_or(slot.since, |collected| collected.since);
    let created = if id.key.is_moment() { since } else { definition.keys.due(&id.key).unwrap_or(since) };
    let over = members.values().flatten().map(|run| (run.seq, LastStart { at: run.started, over: true }));
    let mut starts: Vec<(u64, LastStart)> = over.collect();
    for (id, slot) in mine() {
        if slot.state == SlotState::Queued {
            starts.push((u64::MAX, LastStart { at: now, over: false }));
        }
        let runs = reader.slot_runs(id).map_err(|error| error.to_string())?;
        let going = runs.iter().filter(|run| slot.run_alive && run.seq == slot.last_run_seq);
        let start = |run: &Run| LastStart { at: run.started_at.unwrap_or(run.dispatched_at), over: false };
        starts.extend(going.map(|run| (run.seq, start(run))));
    }
    let last_start = starts.into_iter().max_by_key(|(seq, _)| *seq).map(|(_, start)| start);
    let world =
        Circumstances { now, created, program: definition.program(), active, last_start, again: slot.last_run > 0 };
    Ok(judge(&definition.constraints, &world).explanation.answer)
}

/// Checks that no cron time is overdue.
fn is_up_to_date(definition: &Workflow, until: Option<Timestamp>, now: Timestamp) -> Result<(), String> {
    let Some(events) = definition.keys.events() else { return Ok(()) };
    let from = until.unwrap_or(now).max(definition.start_time.map_or(Timestamp::MIN, |start| start - millis(1)));
    let overdue = now - super::SLACK - millis(events.jitter_millis);
    let end = events.end_time.unwrap_or(Timestamp::MAX);
    for firing in definition.trigger.firings() {
        let next = firing.schedule().next_after(from).filter(|next| *next < overdue && *next < end);
        if let Some(next) = next {
            return Err(format!("{} of {} is due since {next}", firing.name(), definition.id));
        }
    }
    Ok(())
}

/// The slots of a workflow.
fn slots_of<'a>(
    slots: &'a BTreeMap<SlotRef, Slot>,
    id: &'a WorkflowId,
) -> impl Iterator<Item = (&'a SlotRef, &'a Slot)> {
    slots.iter().filter(move |(slot, _)| slot.workflow == *id)
}

fn millis(millis: u64) -> SignedDuration {
    SignedDuration::from_millis(i64::try_from(millis).unwrap_or(i64::MAX))
}
