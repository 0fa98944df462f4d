//! The account of a slot: its state now or at any past moment, read from the log and not guessed.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use kelos_core::{Inspect, Inspection, WorkerWait};
use kelos_model::event::{Event, Origin};
use kelos_model::retry::MOST_AGAIN;
use kelos_model::time::text;
use kelos_model::workers::{Label, labels_in_words};
use kelos_model::workflow::{DefinitionVersion, WaitStart, WorkflowRow};
use kelos_model::{
    Actor, Answer, EventRecord, Reason, ReasonKind, Run, Slot, SlotEvent, SlotRef, SlotState, Workflow, reason,
};
use kelos_store::{Queries, StoreError};
use kelos_wire::words::{Act, because};
use serde::Serialize;

mod absent;
mod backlog;
mod batches;
mod constraints;
mod ends;
mod facts;
mod flows;
mod outages;
mod parents;
mod pools;
#[cfg(test)]
mod tests;

use crate::definitions::Definitions;
use crate::expectation::Expectation;
use crate::flow::words::listed;
use crate::history::{Remains, fold, remains};
use crate::{schedule, schedules};
use absent::{Absent, out_of_range};
use kelos_engine::Handle;
use kelos_model::run::shown_id;

/// The account of a slot at a moment.
#[derive(Debug, Clone, Serialize)]
pub struct Account {
    /// The slot.
    pub slot: SlotRef,
    /// The moment it is about.
    pub at: Timestamp,
    /// The state then; none where the slot did not exist.
    pub state: Option<SlotState>,
    /// Since when it was in that state.
    pub since: Option<Timestamp>,
    /// The answer in one sentence.
    pub headline: String,
    /// The event that put it into that state.
    pub decision: Option<EventRecord>,
    /// The trigger's tree as it was last found to answer, with each leaf's evidence.
    pub trigger: Option<Reason>,
    /// When that was found.
    pub found_at: Option<Timestamp>,
    /// The last evaluation of its constraints, since it last began to wait.
    pub constraints: Option<Reason>,
    /// When that was found.
    pub constraints_at: Option<Timestamp>,
    /// When it expires, if it still waits then; only of what collects facts for an event schedule.
    pub expires: Option<Timestamp>,
    /// Its deadline, where its workflow has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// Whether it had missed that.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub late: bool,
    /// Its expected end, if it has a deadline and is live; only for the present.
    #[serde(skip)]
    pub expected: Option<Expectation>,
    /// The moment from which its wait timeout counts.
    #[serde(skip)]
    pub wait_from: WaitStart,
    /// The obstacles, in words; the slot is unblocked when they change.
    pub blockers: Vec<String>,
    /// The reason for which it waits for no job though its workflow has dependencies; only for the present.
    pub no_group: Option<String>,
    /// The reason for which its workflow, as it is now, would not plan it: a start moved, another calendar, a removal; only for
    /// the present.
    pub out_of_range: Option<String>,
    /// The version of the definition with which its latest run by then began.
    #[serde(skip)]
    pub version: Option<DefinitionVersion>,
    /// The jobs that wait for it and are never opened, since they can't be named; only for the present.
    pub nameless_children: Option<String>,
    /// When it is looked at next by itself; only for the present, and only while this server leads.
    pub next_look: Option<Timestamp>,
    /// The runs that had been dispatched by then, oldest first.
    pub runs: Vec<Run>,
}

/// Reads the account of a slot, with what is known of it otherwise. Blocks.
///
/// # Errors
/// When the store can't be read.
pub fn read(
    reader: &dyn Queries,
    slot: &SlotRef,
    now: Timestamp,
    at_present: bool,
    inspection: Option<&Inspection>,
) -> Result<Account, StoreError> {
    read_with(&Definitions::new(reader), slot, now, at_present, inspection)
}

/// The same for one of many slots, which share what is defined. Blocks.
///
/// # Errors
/// When the store can't be read.
pub(crate) fn read_with(
    definitions: &Definitions<'_>,
    slot: &SlotRef,
    now: Timestamp,
    at_present: bool,
    inspection: Option<&Inspection>,
) -> Result<Account, StoreError> {
    let reader = definitions.reader();
    let mut history = reader.history(slot)?;
    let runs = reader.slot_runs(slot)?;
    let workflow = reader.workflow(&slot.workflow)?;
    let planned = workflow.as_ref().filter(|_| history.is_empty());
    let planned = planned.map(|row| backlog::part_of(reader, row, slot)).transpose()?.flatten();
    if let Some((row, stretch)) = workflow.as_ref().zip(planned.as_ref()) {
        history = backlog::history(reader, row, slot, stretch, now)?;
    }
    let flow = flows::of(reader, slot, workflow.as_ref(), (!at_present).then_some(now))?;
    let definition = match &flow {
        Some(flow) if slot.key.step().is_some() => flow.definition(reader, slot)?,
        _ => workflow.as_ref().map(|row| in_force(reader, row, &history, now)).transpose()?,
    };
    let removed = remains(reader, slot, &history)?;
    let mut why = account(slot, now, history.clone(), runs, definition.as_deref(), inspection);
    if at_present && why.trigger.as_ref().and_then(parents::part).is_some_and(|part| part.answer != Answer::Met) {
        why.look_at_parents(definitions, &history)?;
    }
    if at_present {
        why.count_periods(reader)?;
    }
    if let Some(run) = why.runs.last() {
        why.version = reader.versions_at(&slot.workflow, &[run.seq])?.pop().flatten();
    }
    let mut no_way = None;
    if at_present && slot.key.job().is_some() {
        let jobs = definitions.jobs()?;
        (why.no_group, no_way) = (jobs.no_group(slot), jobs.no_way(slot));
        why.nameless_children = jobs.nameless_children(slot);
    }
    if planned.is_some() {
        // It is in no line of the log.
        why.decision = None;
    }
    let schedule = workflow.as_ref().filter(|_| at_present || why.state.is_none());
    let schedule = schedule.map(|row| schedule::resolved(reader, row)).transpose()?;
    if let Some(remains) = removed.filter(|_| why.state.is_none()) {
        why.tell_remains(&remains);
    } else if why.state.is_some() {
        let known = workflow.as_ref().zip(schedule.as_ref());
        why.out_of_range =
            known.filter(|_| at_present).and_then(|(row, schedule)| out_of_range(row, schedule, &slot.key));
    } else {
        let planned_at = history.first().map(|first| first.at);
        let absent = Absent { workflow: workflow.as_ref(), schedule, planned_at, no_way };
        why.headline = absent.because(slot, now, at_present);
    }
    if let Some(flow) = &flow {
        flow.tell(&mut why);
    }
    Ok(why)
}

/// The definition by which a slot was judged at a moment.
fn in_force(
    reader: &dyn Queries,
    row: &WorkflowRow,
    history: &[EventRecord],
    at: Timestamp,
) -> Result<Arc<Workflow>, StoreError> {
    let last = history.iter().rev().find(|record| record.at <= at);
    let ended = last.filter(|record| matches!(record.event, Event::Slot { what: SlotEvent::Aborted { .. }, .. }));
    let is_last = ended.is_none() && history.last().is_none_or(|last| last.at <= at);
    if row.version == 1 || is_last || row.definition.trigger.subjects().is_empty() {
        return Ok(row.definition.clone());
    }
    // A change of a schedule ends what it has pending, which was judged by what held before.
    let past = reader.definitions(&row.id, None)?;
    let held = past.iter().find(|past| ended.map_or(past.at <= at, |ended| past.at < ended.at));
    Ok(held.map_or_else(|| row.definition.clone(), |past| Arc::new(past.definition.clone())))
}

impl Account {
    /// Its deadline in words, and whether it missed it: `late since 07:30Z, its deadline`; none where it has none.
    #[must_use]
    pub fn deadline_words(&self) -> Option<String> {
        let deadline = text::format_short(self.deadline?);
        let is_over = self.state.is_some_and(SlotState::is_final);
        Some(match (self.late, is_over) {
            (true, false) => format!("late since {deadline}, its deadline"),
            (true, true) => format!("was late: its deadline was {deadline}"),
            (false, true) => format!("was in time: its deadline was {deadline}"),
            (false, false) => format!("its deadline is {deadline}"),
        })
    }

    /// The comparison of its expected end with its deadline, in words.
    #[must_use]
    pub fn outlook(&self) -> Option<String> {
        Some(self.expected.as_ref()?.words(self.deadline?, self.late))
    }

    /// Tells what is known of a slot at a moment whose events were removed.
    fn tell_remains(&mut self, remains: &Remains) {
        let Remains { now, is_all, until } = remains;
        let until = text::format_short(*until);
        if *is_all && now.since <= self.at {
            (self.state, self.since) = (Some(now.state), Some(now.since));
            self.headline = format!(
                "{} since {}; how it came to that was removed with the history up to {until}",
                now.state,
                text::format_short(now.since)
            );
        } else {
            self.headline = format!("what it was then is not known any more: the history up to {until} was removed");
        }
    }

    /// Whether its first sentence contains the obstacle, which then isn't repeated.
    #[must_use]
    pub fn is_told(&self) -> bool {
        self.slot.key.job().is_some() && self.blockers.iter().all(|blocker| self.headline.contains(blocker))
    }

    /// Reads the present states of the parents of a waiting job. The log has only some of them, in less detail, so that
    /// it does not grow with every step of each.
    fn look_at_parents(&mut self, definitions: &Definitions<'_>, history: &[EventRecord]) -> Result<(), StoreError> {
        let Some((slot, _)) = fold(history).filter(|(slot, _)| slot.state == SlotState::Waiting) else { return Ok(()) };
        let said = self.trigger.iter().flat_map(parents::part).flat_map(reason::words::blockers).collect::<Vec<_>>();
        let own = self.blockers.iter().filter(|blocker| !said.contains(blocker)).cloned();
        let mut blockers: Vec<String> = own.collect();
        if let Some(part) = self.trigger.as_mut().and_then(parents::part_mut) {
            blockers.extend(parents::blockers(definitions, &self.slot, self.at, part)?);
            self.found_at = Some(self.at);
        }
        self.blockers = blockers;
        self.headline = headline(self, Some(&slot));
        Ok(())
    }
}

impl Account {
    /// Reads which of the periods that the slot waits for have succeeded by now. The log doesn't tell of each.
    fn count_periods(&mut self, reader: &dyn Queries) -> Result<(), StoreError> {
        let waits = self.state == Some(SlotState::Waiting);
        let Some(told) = self.trigger.clone().filter(|told| waits && told.answer == Answer::NotYet) else {
            return Ok(());
        };
        let facts = facts::StoreFacts::new(reader, self.at);
        let counted = told.clone().with_periods(&facts);
        facts.check()?;
        if counted == told {
            return Ok(());
        }
        let (before, after) = (reason::words::blockers(&told), reason::words::blockers(&counted));
        for (before, after) in before.iter().zip(after) {
            self.headline = self.headline.replace(before, &after);
            self.blockers
                .iter_mut()
                .filter(|blocker| *blocker == before)
                .for_each(|blocker| blocker.clone_from(&after));
        }
        (self.trigger, self.found_at) = (Some(counted), Some(self.at));
        Ok(())
    }
}

/// The part of a slot's state that only the memory of the scheduler has.
pub(crate) async fn inspect(handle: &Handle, slot: &SlotRef) -> Option<Inspection> {
    // The state in memory is optional: an engine that is busy or stands by does not delay the answer.
    let by = Actor::system("why");
    let asked = handle.ask(&by, Inspect { slot: slot.clone() });
    match tokio::time::timeout(std::time::Duration::from_secs(1), asked).await {
        Ok(Ok(inspection)) => Some(inspection),
        _ => None,
    }
}

/// Builds the account from what was read.
fn account(
    id: &SlotRef,
    at: Timestamp,
    history: Vec<EventRecord>,
    runs: Vec<Run>,
    definition: Option<&Workflow>,
    inspection: Option<&Inspection>,
) -> Account {
    let history: Vec<_> = history.into_iter().filter(|record| record.at <= at).collect();
    let folded = fold(&history);
    let slot = folded.as_ref().map(|(slot, _)| slot);
    let progress = definition.zip(slot).and_then(|(definition, slot)| progress(definition, id, slot, &history, at));
    let now = |told| up_to_date(told, slot, &history, at, inspection);
    let (trigger, found_at) = progress.or_else(|| last_explanation(&history)).map(now).unzip();
    let (constraints, constraints_at) = constraints::last(&history).map(now).unzip();
    let runs = runs.into_iter().filter(|run| run.dispatched_at <= at).collect();
    let mut why = Account {
        slot: id.clone(),
        at,
        state: folded.as_ref().map(|(slot, _)| slot.state),
        since: folded.as_ref().map(|(slot, _)| slot.since),
        headline: String::new(),
        decision: folded.as_ref().map(|(_, decision)| (*decision).clone()),
        blockers: Vec::new(),
        trigger,
        found_at,
        constraints,
        constraints_at,
        wait_from: definition.map(|definition| definition.wait_from).unwrap_or_default(),
        expires: definition.zip(slot).and_then(|(definition, slot)| schedules::expires(definition, id, slot)),
        deadline: definition.zip(slot).and_then(|(definition, slot)| definition.deadline_of(&id.key, slot)),
        late: definition.zip(slot).is_some_and(|(one, slot)| one.missed_deadline(&id.key, slot, at).is_some()),
        expected: None,
        no_group: None,
        out_of_range: None,
        version: None,
        nameless_children: None,
        next_look: inspection.and_then(|inspection| inspection.next_look),
        runs,
    };
    why.blockers = blockers(&why, &history, definition, inspection);
    why.headline = headline(&why, slot);
    if let Some(fired) = ends::fired(&history).filter(|_| why.state == Some(SlotState::Queued)) {
        why.headline = format!("{}{fired}", why.headline);
    }
    why
}

/// The progress of a slot whose evaluations are not in the log, because only facts decide about it; with its time.
fn progress(
    definition: &Workflow,
    id: &SlotRef,
    slot: &Slot,
    history: &[EventRecord],
    at: Timestamp,
) -> Option<(Reason, Timestamp)> {
    let looked = history.iter().rev().take_while(|record| !begins(record)).any(|record| explanation(record).is_some());
    let collected = slot.collected.as_deref();
    let goes_anyway = collected.is_some_and(|collected| collected.asked.is_some() || collected.met);
    if looked || goes_anyway || slot.last_run > 0 || !definition.trigger.is_of_facts() {
        return None;
    }
    let at = if slot.state.is_final() { slot.since } else { at };
    Some((schedules::progress(definition, id, collected, at), at))
}

/// The last evaluation and its time, with the counts of an evaluation now: such evaluations are not in the log.
fn up_to_date(
    (told, found_at): (Reason, Timestamp),
    slot: Option<&Slot>,
    history: &[EventRecord],
    at: Timestamp,
    inspection: Option<&Inspection>,
) -> (Reason, Timestamp) {
    let Some(slot) = slot.filter(|_| told.answer == Answer::NotYet) else { return (told, found_at) };
    let moment = if slot.state.is_final() { slot.since } else { at };
    let answers = inspection.map_or(&[][..], |inspection| &inspection.answers);
    let counted = told.clone().as_of(moment, slot.collected.as_deref());
    let counts = |record: &&EventRecord| matches!(record.event, Event::Slot { what: SlotEvent::Collected { .. }, .. });
    let counted_at = history.iter().rev().find(counts).filter(|_| counted != told).map(|record| record.at);
    let seen = counted.clone().with_answers(answers);
    let seen_at = answers.iter().map(|(_, answer)| answer.at).max().filter(|_| seen != counted);
    (seen, [Some(found_at), counted_at, seen_at].into_iter().flatten().max().unwrap_or(found_at))
}

/// Whether a slot begins to wait with an event.
fn begins(record: &EventRecord) -> bool {
    let Event::Slot { what, .. } = &record.event else { return false };
    matches!(
        what,
        SlotEvent::Planned { .. }
            | SlotEvent::Reopened { .. }
            | SlotEvent::Resumed { .. }
            | SlotEvent::StepOpened { .. }
            | SlotEvent::BackoffEnded
    )
}

/// The latest reason tree of the trigger; one that was met before is only used if there is no other.
fn last_explanation(history: &[EventRecord]) -> Option<(Reason, Timestamp)> {
    let told = history.iter().rev().filter_map(|record| Some((explanation(record)?, record.at)));
    let told: Vec<_> = told.filter(|(told, _)| told.kind != ReasonKind::Constraints).collect();
    let whole = told.iter().find(|(told, _)| told.kind != ReasonKind::Asked).or(told.first());
    whole.map(|(told, at)| ((*told).clone(), *at))
}

/// The reason tree of an event: that of a trigger, or of constraints.
fn explanation(record: &EventRecord) -> Option<&Reason> {
    let Event::Slot { what, .. } = &record.event else { return None };
    match what {
        SlotEvent::Looked { explanation }
        | SlotEvent::TriggerMet { explanation }
        | SlotEvent::Held { explanation, .. }
        | SlotEvent::ConstraintsMet { explanation }
        | SlotEvent::Skipped { explanation }
        | SlotEvent::Expired { explanation, .. } => Some(explanation),
        _ => None,
    }
}

/// The reason for which the executor deferred the start of the dispatched run.
fn deferral(history: &[EventRecord]) -> Option<String> {
    let dispatch =
        |record: &&EventRecord| matches!(record.event, Event::Slot { what: SlotEvent::Dispatched { .. }, .. });
    history.iter().rev().take_while(|record| !dispatch(record)).find_map(|record| match &record.event {
        Event::Slot { what: SlotEvent::Deferred { reason, .. }, .. } => Some(reason.clone()),
        _ => None,
    })
}

fn blockers(
    why: &Account,
    history: &[EventRecord],
    definition: Option<&Workflow>,
    inspection: Option<&Inspection>,
) -> Vec<String> {
    let mut blockers = Vec::new();
    let live = why.state.is_some_and(|state| !state.is_final());
    if live && let Some(dormant) = inspection.and_then(|inspection| inspection.dormant.as_ref()) {
        blockers.push(dormant.to_string());
    }
    if live && let Some(finishing) = inspection.and_then(|inspection| inspection.finishing.as_ref()) {
        blockers.push(reason::words::text(finishing));
    }
    match why.state {
        Some(SlotState::Waiting) if why.trigger.as_ref().is_some_and(|now| now.answer == Answer::Met) => {
            blockers.push(backlog::turn(inspection));
        }
        Some(SlotState::Waiting) => blockers.extend(why.trigger.iter().flat_map(|now| outages::blockers(now, history))),
        Some(SlotState::Held) => blockers.extend(constraints::blockers(why.constraints.as_ref(), inspection)),
        Some(SlotState::Queued) => blockers.extend(queue_blockers(definition, inspection)),
        Some(SlotState::Dispatched) => blockers.extend(deferral(history)),
        // A run may wait for permits, too.
        Some(SlotState::Running) => {
            blockers.extend(inspection.iter().flat_map(|now| &now.pools).filter_map(pools::blocker))
        }
        _ => {}
    }
    blockers
}

fn queue_blockers(definition: Option<&Workflow>, inspection: Option<&Inspection>) -> Vec<String> {
    let concurrency = definition.map_or(Some(1), |definition| definition.concurrency);
    let Some(inspection) = inspection else {
        let limit = |most| format!("its workflow runs {most} slots at a time, by priority and then oldest first");
        return Vec::from_iter(concurrency.map(limit));
    };
    let mut blockers = Vec::new();
    blockers.extend(inspection.worker.as_ref().map(worker_wait));
    if let Some(places) = concurrency.filter(|places| inspection.active >= *places) {
        blockers.push(format!("{} of {places} places of its workflow are taken", inspection.active));
    }
    // Those of its batch go together with it.
    if inspection.ahead > 0 && inspection.batch.is_none() {
        blockers.push(format!("{} queued slots of its workflow go first", inspection.ahead));
    }
    if inspection.at_global_limit {
        blockers.push("all places for runs on this server are taken".to_owned());
    }
    blockers.extend(inspection.pools.iter().filter_map(pools::blocker));
    blockers.extend(inspection.batch.map(batches::wait));
    blockers
}

/// The wait of a slot for a worker, in words.
fn worker_wait(wait: &WorkerWait) -> String {
    let with = |labels: &BTreeSet<Label>| match labels.len() {
        0 => String::new(),
        1 => format!(" and has the label {}", labels_in_words(labels)),
        _ => format!(" and has the labels {}", labels_in_words(labels)),
    };
    match wait {
        WorkerWait::None(labels) => {
            format!("no worker that is connected does jobs of its workflow{}", with(labels))
        }
        WorkerWait::Program { project, version, outdated } => {
            let version = version.as_ref().map(|version| format!(", version {version}")).unwrap_or_default();
            let others = match outdated {
                0 => String::new(),
                1 => "; the program that is connected has another definition of it".to_owned(),
                _ => format!("; {outdated} programs that are connected have other definitions of it"),
            };
            format!("no worker that is connected has the project {project} as it was deployed last{version}{others}")
        }
        WorkerWait::Labels(labels, workers) => {
            let (word, them) = if labels.len() == 1 { ("label", "it") } else { ("labels", "them") };
            let labels = labels_in_words(labels);
            match workers {
                1 => format!("it waits for a worker with the {word} {labels}; the only worker lacks {them}"),
                _ => format!("it waits for a worker with the {word} {labels}; of {workers} workers none has {them}"),
            }
        }
        WorkerWait::Busy(labels) if labels.is_empty() => "all workers that do jobs of its workflow are busy".to_owned(),
        WorkerWait::Busy(labels) => {
            let word = if labels.len() == 1 { "label" } else { "labels" };
            format!("all workers with the {word} {} are busy", labels_in_words(labels))
        }
    }
}

fn headline(why: &Account, slot: Option<&Slot>) -> String {
    let Some(slot) = slot else { return "it does not exist".to_owned() };
    let since = text::format_short(slot.since);
    match why.decision.as_ref().map(|record| &record.event) {
        Some(Event::Slot { what, .. }) => {
            let together = batches::together(slot, what, why).unwrap_or_default();
            format!("{}{together}", decided(slot, what, why, &since))
        }
        _ => format!("{} since {since}", slot.state),
    }
}

fn decided(slot: &Slot, what: &SlotEvent, why: &Account, since: &str) -> String {
    match what {
        SlotEvent::Planned { origin, by, reason, .. } => {
            let opened = opened_words(origin, by.as_ref(), reason.as_deref());
            format!("waiting since {since}{opened}{}{}", rest(why), expires(why))
        }
        SlotEvent::BackoffEnded => format!("waiting since {since}{}", rest(why)),
        SlotEvent::Reopened { by, .. } => format!("waiting since {since}, when {by} reopened it{}", rest(why)),
        SlotEvent::Resumed { by, .. } => format!("waiting since {since}, when {by} resumed it{}", rest(why)),
        SlotEvent::Held { .. } => format!("held since {since}{}{}", rest(why), expires(why)),
        SlotEvent::TriggerMet { .. } | SlotEvent::ConstraintsMet { .. } | SlotEvent::StepReady { .. } => {
            format!("queued since {since}{}", rest(why))
        }
        SlotEvent::Dispatched { run, .. } if !why.blockers.is_empty() => {
            format!("run {run} was dispatched at {since} and could not be started yet: {}", why.blockers.join("; "))
        }
        SlotEvent::Dispatched { run, .. } => {
            format!("run {run} was dispatched at {since}; its executor has not confirmed the start")
        }
        SlotEvent::Started { run, external_id } => {
            format!("run {run} ({}) goes on since {since}{}", shown_id(external_id), rest(why))
        }
        SlotEvent::Succeeded { run } => format!("run {run} succeeded at {since}"),
        SlotEvent::Recovered { run, failed } => {
            format!("run {run} succeeded at {since}, recovered from the failure of {}", listed(failed))
        }
        SlotEvent::BackedOff { run, outcome, due, again } => {
            let (words, due) = (failed_words(outcome), text::format_full(*due));
            let next = match again {
                0 => format!("retry {} is due at {due}", slot.retries),
                again => format!("done again at {due}, {again} of {MOST_AGAIN} times"),
            };
            format!("run {run} ended at {since}: {words}; {next}")
        }
        SlotEvent::Failed { run, outcome: outcome @ kelos_model::Outcome::Unknown { .. } } if slot.again > 0 => {
            let (words, again) = (failed_words(outcome), count_words(slot.again));
            format!("run {run} ended at {since}: {words}; it was done again {again}, and no retry is left")
        }
        SlotEvent::Failed { run, outcome } => {
            format!("run {run} ended at {since}: {}; no retry is left", failed_words(outcome))
        }
        SlotEvent::Killed { .. } | SlotEvent::MarkedSucceeded { .. } | SlotEvent::SkippedBy { .. } => {
            Act::of_slot(what).map(|act| act.with(&format!(" at {since}"))).unwrap_or_default()
        }
        SlotEvent::Expired { timeout_seconds, explanation } => {
            format!("expired at {since}{}", ends::expired(slot, why, *timeout_seconds, explanation))
        }
        SlotEvent::Aborted { cause, by, reason } => {
            let reason = because(reason.as_deref());
            format!("skipped at {since}, {}", ends::aborted(*cause, by.as_ref(), &reason, why))
        }
        SlotEvent::Imported { from, there, .. } => {
            let rest = rest(why);
            format!("{} since {since}, when it was imported from {from}, where it was {there}{rest}", slot.state)
        }
        SlotEvent::Skipped { explanation } if explanation.kind == ReasonKind::Constraints => {
            format!("skipped at {since} by {}", ends::skipped(explanation))
        }
        SlotEvent::Skipped { explanation } => format!("skipped at {since}: {}", never_words(explanation)),
        _ => format!("{} since {since}", slot.state),
    }
}

/// The obstacles, as the rest of a sentence after the state.
fn rest(why: &Account) -> String {
    if why.blockers.is_empty() { String::new() } else { format!(": {}", why.blockers.join("; ")) }
}

/// `; expires at 2016-01-01T12:00Z`, where that is known.
fn expires(why: &Account) -> String {
    why.expires.map(|at| format!("; expires at {}", text::format_short(at))).unwrap_or_default()
}

/// The job or the actor that opened a job.
fn opened_words(origin: &Origin, by: Option<&Actor>, reason: Option<&str>) -> String {
    match origin {
        Origin::Parent(parent) => format!(", when its parent {} had succeeded", parent.short()),
        Origin::Child(child) => format!(", when it was opened for {}", child.short()),
        Origin::Request => by.map(|by| format!(", when {by} asked for it{}", because(reason))).unwrap_or_default(),
        Origin::Fact => ", when the first fact came".to_owned(),
        Origin::Signal => ", when the first signal for it came".to_owned(),
        Origin::Schedule | Origin::Feed | Origin::Backfill => String::new(),
    }
}

fn count_words(count: u32) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

fn failed_words(outcome: &kelos_model::Outcome) -> String {
    match outcome {
        kelos_model::Outcome::Failed { reason, .. } => format!("it failed ({reason})"),
        kelos_model::Outcome::Unknown { reason } => format!("its outcome is unknown ({reason})"),
        kelos_model::Outcome::Lost { reason } => {
            format!(
                "its outcome is unknown, and it was begun for certain, so that it is not tried again by itself ({reason})"
            )
        }
        other => format!("it {other}"),
    }
}

fn never_words(explanation: &Reason) -> String {
    let deepest = explanation.nested.iter().find(|nested| nested.answer == Answer::Never);
    deepest.map_or_else(|| reason::words::text(explanation), never_words)
}
