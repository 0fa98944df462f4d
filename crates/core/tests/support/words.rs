//! The results of an input in words.

use jiff::Timestamp;
use kelos_core::{
    AnyAnswer, BackfillOutcome, Capacity, Command, DownstreamOutcome, FactTally, Inspection, PoolState, Reply,
    StartAnswer, Step, SubmitOutcome, Waiter, WorkerWait,
};
use kelos_model::event::{BackfillEvent, Event, Origin};
use kelos_model::jobs::Direction;
use kelos_model::reason::words;
use kelos_model::time::format_short;
use kelos_model::workers::labels_in_words;
use kelos_model::{
    Batch, EventRecord, Occurrence, Outcome, PermitAnswer, Reason, Recall, RunId, SlotEvent, SlotKey, SlotRef,
    StepName, WorkflowEvent,
};
use serde_json::Value;

/// The most equal lines about neighbouring slots that are not merged.
const FEW: usize = 3;

/// Formats times of one day without their date.
pub(crate) struct Words {
    pub(crate) day: Option<Timestamp>,
}

/// A line about a slot, or about anything else.
struct Line {
    slot: Option<SlotRef>,
    mark: &'static str,
    text: String,
}

impl Words {
    pub(crate) fn time(&self, at: Timestamp) -> String {
        let full = format_short(at);
        let today = self.day.map(|day| format_short(day)[..10].to_owned());
        match today.and_then(|day| full.strip_prefix(&format!("{day}T")).map(str::to_owned)) {
            Some(time) => time.trim_end_matches('Z').to_owned(),
            None => full,
        }
    }

    pub(crate) fn slot(&self, slot: &SlotRef) -> String {
        format!("{}@{}", slot.workflow, self.key(&slot.key))
    }

    fn key(&self, key: &SlotKey) -> String {
        match key {
            SlotKey::Time(at) | SlotKey::Moment(at) => self.time(*at),
            SlotKey::Job(_) | SlotKey::Named(_) | SlotKey::Step(_) => key.short(),
        }
    }

    pub(crate) fn step(&self, reads: &[Recall], step: &Step) -> Vec<String> {
        let events = step.events.iter().map(|record| self.event(record)).filter(|line| !line.text.is_empty());
        let reads = reads.iter().map(|recall| self.read(recall));
        let commands = step.commands.iter().map(|command| self.command(command));
        self.gather(events.chain(reads).chain(commands).collect())
    }

    fn read(&self, recall: &Recall) -> Line {
        let text = match recall {
            Recall::Slots(slots) => slots.iter().map(|slot| self.slot(slot)).collect::<Vec<_>>().join(", "),
            Recall::Range { workflow, start, end } => {
                format!("{workflow} from {} to {}", self.time(*start), self.time(*end))
            }
            Recall::Steps(run) => format!("the steps of {}", self.slot(run)),
        };
        Line { slot: None, mark: "! ", text: format!("recall {text}") }
    }

    /// Merges lines about neighbouring slots of a workflow.
    fn gather(&self, lines: Vec<Line>) -> Vec<String> {
        let same = |a: &Line, b: &Line| match (&a.slot, &b.slot) {
            (Some(x), Some(y)) => x.workflow == y.workflow && a.text == b.text && a.mark == b.mark,
            _ => false,
        };
        let mut gathered = Vec::new();
        for group in lines.chunk_by(same) {
            match (group.first(), group.last()) {
                (Some(Line { slot: Some(first), mark, text }), Some(Line { slot: Some(last), .. }))
                    if group.len() > FEW =>
                {
                    let range = format!("{}..{}", self.slot(first), self.key(&last.key));
                    gathered
                        .push(mark.to_string() + &text.replacen('@', &range, 1) + &format!(" ({} slots)", group.len()));
                }
                _ => gathered.extend(group.iter().map(|line| {
                    let slot = line.slot.as_ref().map(|slot| line.text.replacen('@', &self.slot(slot), 1));
                    line.mark.to_owned() + slot.as_ref().unwrap_or(&line.text)
                })),
            }
        }
        gathered
    }

    fn event(&self, record: &EventRecord) -> Line {
        let mark = "  ";
        match &record.event {
            Event::Slot { slot, what } => {
                Line { slot: Some(slot.clone()), mark, text: format!("@ {}", self.slot_event(what)) }
            }
            Event::Workflow { workflow, what } => {
                Line { slot: None, mark, text: format!("{workflow} {}", self.workflow_event(what)) }
            }
            Event::Backfill { backfill, what } => {
                let text = match what {
                    BackfillEvent::Created { slots, .. } => format!("backfill {backfill} created over {slots} slots"),
                    BackfillEvent::Cancelled { .. } => format!("backfill {backfill} cancelled"),
                    BackfillEvent::Paused { .. } => format!("backfill {backfill} paused"),
                    BackfillEvent::Resumed { .. } => format!("backfill {backfill} resumed"),
                    BackfillEvent::Prioritised { priority, .. } => {
                        format!("backfill {backfill} has priority {priority}")
                    }
                    BackfillEvent::Reopened { slots, .. } => format!("backfill {backfill}: {slots} failures reopened"),
                };
                Line { slot: None, mark, text }
            }
            Event::Fact { fact, .. } => {
                Line { slot: None, mark, text: format!("{} tells: {}", fact.source, fact.what) }
            }
            Event::Access { what, by } => Line { slot: None, mark, text: format!("{by}: {what:?}") },
            Event::Register { bucket, .. } if bucket == kelos_core::DEPLOYMENTS => {
                Line { slot: None, mark, text: String::new() }
            }
            Event::Register { bucket, key, .. } => {
                Line { slot: None, mark, text: format!("register {bucket} {key} set") }
            }
        }
    }

    fn slot_event(&self, what: &SlotEvent) -> String {
        match what {
            SlotEvent::Planned { origin, priority, by, reason, .. } => {
                let who = by.as_ref().map(|by| format!(" of {by}")).unwrap_or_default();
                format!("planned by {}{who}{}{}", self.origin(origin), because(reason), weight(*priority))
            }
            SlotEvent::Looked { explanation } => format!("waits: {}", blockers(explanation)),
            SlotEvent::TriggerMet { .. } => "trigger met".to_owned(),
            SlotEvent::Collected { what, .. } => format!("collected: {}", self.occurrence(what)),
            SlotEvent::FiredBy { by, unconstrained, repeats, .. } => {
                let again = repeats.as_ref().and_then(|one| Some((one.key()?, one.definition, one)));
                let again = again.map(|(step, definition, one)| {
                    let of_item = if one.is_item { " as an item" } else { "" };
                    format!(" to do {step} again{of_item}, with definition {definition}")
                });
                let whatever = if *unconstrained { " whatever its constraints say" } else { "" };
                format!("fired by {by}{whatever}{}", again.unwrap_or_default())
            }
            SlotEvent::ArgumentsSet { by, arguments } => {
                format!("given {} by {by}", serde_json::to_string(arguments).expect("JSON"))
            }
            SlotEvent::Held { .. } => "trigger met, held".to_owned(),
            SlotEvent::ConstraintsMet { .. } => "constraints met".to_owned(),
            SlotEvent::Aborted { cause, .. } => format!("aborted: its schedule was {}", json_word(cause)),
            SlotEvent::Acquired { run, request, permits } => {
                let permits: Vec<_> = permits.iter().map(|(pool, count)| format!("{count} of {pool}")).collect();
                format!("#{run} took {} by request {request}", permits.join(" and "))
            }
            SlotEvent::Released { run, request } => format!("#{run} returned what it took by request {request}"),
            SlotEvent::Given { run, inputs } => format!("#{run} is given {}", serde_json::json!(inputs)),
            SlotEvent::Gave { run, .. } => format!("#{run} said what it gives"),
            SlotEvent::Expired { timeout_seconds, explanation } => {
                format!("waited more than {timeout_seconds} s: {}", blockers(explanation))
            }
            SlotEvent::Skipped { explanation } => format!("will never go: {}", blockers(explanation)),
            SlotEvent::Dispatched { run, worker: None, batch: None } => format!("dispatched #{run}"),
            SlotEvent::Dispatched { run, batch: Some(Batch { first, run: its, last, slots }), .. } => {
                let (first, last) = (self.time(*first), self.time(*last));
                format!("dispatched #{run}, {slots} slots to {last} by the run {first}#{its}")
            }
            SlotEvent::Dispatched { run, worker: Some(worker), .. } => format!("dispatched #{run} to {worker}"),
            SlotEvent::Deferred { run, reason } => format!("#{run} deferred: {reason}"),
            SlotEvent::Withdrawn { run } => format!("#{run} withdrawn, queued again"),
            SlotEvent::Started { run, external_id } => format!("#{run} started as {external_id}"),
            SlotEvent::Succeeded { run } => format!("#{run} succeeded"),
            SlotEvent::BackedOff { run, outcome, due, again: 0 } => {
                format!("#{run} ended ({}), retry due {}", ended(outcome), self.time(*due))
            }
            SlotEvent::BackedOff { run, outcome, due, again } => {
                format!("#{run} ended ({}), done again at {}, {again} of 3 times", ended(outcome), self.time(*due))
            }
            SlotEvent::BackoffEnded => "back-off ended".to_owned(),
            SlotEvent::Failed { run, outcome } => format!("#{run} ended ({}), failed", ended(outcome)),
            SlotEvent::Late { deadline } => format!("late: its deadline was {}", self.time(*deadline)),
            SlotEvent::Killed { by, reason } => format!("killed by {by}{}", because(reason)),
            SlotEvent::MarkedSucceeded { by, reason } => format!("marked as succeeded by {by}{}", because(reason)),
            SlotEvent::SkippedBy { by, reason } => format!("skipped by {by}{}", because(reason)),
            SlotEvent::RunEnded { run, outcome } => format!("#{run} is gone ({})", ended(outcome)),
            SlotEvent::Reopened { by, priority, .. } => format!("reopened by {by}{}", weight(*priority)),
            SlotEvent::Prioritised { priority, backfill, by: None, .. } => {
                format!("adopted by {backfill}, priority {priority}")
            }
            SlotEvent::Prioritised { priority, .. } => format!("has priority {priority}"),
            SlotEvent::Requested { by, .. } => format!("asked for by {by}"),
            SlotEvent::Imported { from, there, .. } => format!("imported from {from}, {there} there"),
            of_flow => flow_event(of_flow),
        }
    }

    fn occurrence(&self, what: &Occurrence) -> String {
        match what {
            Occurrence::Fired { cron, time } => format!("{cron} fired for {}", self.time(*time)),
            Occurrence::Ended { program, state, outputs, .. } if outputs.is_empty() => format!("{program} {state}"),
            Occurrence::Ended { program, state, outputs, .. } => {
                format!("{program} {state}, which gave {}", Value::from(outputs.clone()))
            }
            other => other.to_string(),
        }
    }

    fn origin(&self, origin: &Origin) -> String {
        match origin {
            Origin::Parent(job) => format!("its parent {}", self.slot(job)),
            Origin::Child(job) => format!("its child {}", self.slot(job)),
            other => json_word(other),
        }
    }

    fn workflow_event(&self, what: &WorkflowEvent) -> String {
        match what {
            WorkflowEvent::Defined { version, .. } => format!("defined, version {version}"),
            WorkflowEvent::Removed { .. } => "removed".to_owned(),
            WorkflowEvent::Missed { range, times } => {
                format!("missed {times} times from {} to {}", self.time(range.start), self.time(range.end))
            }
            WorkflowEvent::Planned { range, slots, backlog } => {
                let later = if *backlog > 0 { format!(", {backlog} in the backlog") } else { String::new() };
                format!("planned {slots} slots from {} to {}{later}", self.time(range.start), self.time(range.end))
            }
            WorkflowEvent::Replanned { range } => {
                format!("has another schedule: {} to {} is planned anew", self.time(range.start), self.time(range.end))
            }
            WorkflowEvent::Enabled { .. } => "enabled".to_owned(),
            WorkflowEvent::Disabled { .. } => "disabled".to_owned(),
            WorkflowEvent::Paused { .. } => "paused".to_owned(),
            WorkflowEvent::Resumed { .. } => "resumed".to_owned(),
            WorkflowEvent::Frozen { breach } => format!("frozen: {breach}"),
            WorkflowEvent::SetAside { input, .. } => format!("{input} was set aside"),
            WorkflowEvent::Thawed { .. } => "resumed after it was frozen".to_owned(),
            WorkflowEvent::Imported { from, slots, .. } => format!("{slots} slots imported from {from}"),
        }
    }

    fn command(&self, command: &Command) -> Line {
        let plain = |text: String| Line { slot: None, mark: "! ", text };
        let about_slot = |slot: &SlotRef, text: String| Line { slot: Some(slot.clone()), mark: "! ", text };
        let about = |run: &RunId, text: String| Line { slot: Some(run.slot.clone()), mark: "! ", text };
        let named = |id: &Option<String>| id.as_ref().map(|id| format!(" ({id})")).unwrap_or_default();
        match command {
            Command::Relate(relation) => {
                let what = match relation.direction {
                    Direction::Parents => "what it waits for",
                    Direction::Children => "what waits for it",
                };
                about_slot(&relation.of, format!("ask a function of {} about @: {what}", relation.child))
            }
            Command::Probe(probe) => plain(format!("look at {probe}")),
            Command::StartRun { run, worker, batch, workflow, inputs, about: of, .. } => {
                let by = worker.as_ref().map(|worker| format!(" by {worker:?}")).unwrap_or_default();
                let upto = batch.map(|batch| format!(" up to {}", self.time(batch.last))).unwrap_or_default();
                let all = Some(&**inputs).filter(|_| !workflow.parameters.is_empty());
                let given = all.map(|all| format!(" with {}", serde_json::json!(all))).unwrap_or_default();
                let of = of.as_ref().map(|key| format!(" about {}", key.short())).unwrap_or_default();
                about(run, format!("start @#{}{by}{upto}{given}{of}", run.number))
            }
            Command::CheckRun { run, external_id, .. } => {
                about(run, format!("check @#{}{}", run.number, named(external_id)))
            }
            Command::CancelRun { run, external_id, .. } => {
                about(run, format!("cancel @#{}{}", run.number, named(external_id)))
            }
            Command::AnswerRun { run, request, answer, .. } => {
                let answer = match answer {
                    PermitAnswer::Held => "granted".to_owned(),
                    PermitAnswer::Spent => "spent".to_owned(),
                    PermitAnswer::Refused(why) => format!("refused: {why}"),
                };
                about(run, format!("answer @#{}: request {request} is {answer}", run.number))
            }
            Command::Reply { reply, .. } => plain(self.reply(reply)),
        }
    }

    fn reply(&self, reply: &Reply) -> String {
        match reply {
            Ok(AnyAnswer::Done(())) => "done".to_owned(),
            Ok(AnyAnswer::Tally(FactTally { new, known, refused })) => {
                let refused = refused.iter().map(|one| format!("; refused: {}", one.refusal)).collect::<String>();
                format!("told: {new} new, {known} known{refused}")
            }
            Ok(AnyAnswer::Enabled(ids)) => format!("enabled {}", ids.len()),
            Ok(AnyAnswer::Fired(StartAnswer { slot, existed: false })) => format!("fired {}", self.slot(slot)),
            Ok(AnyAnswer::Fired(StartAnswer { slot, existed: true })) => {
                format!("{} was fired before", self.slot(slot))
            }
            Ok(AnyAnswer::Submitted(each)) => {
                let each: Vec<String> = each.iter().map(|one| submitted(*one)).collect();
                format!("submitted: {}", each.join(", "))
            }
            Ok(AnyAnswer::Backfill(BackfillOutcome { created, reopened, adopted, untouched })) => format!(
                "done: {} created, {} reopened, {} adopted, {untouched} untouched",
                created.count, reopened.count, adopted.count
            ),
            Ok(AnyAnswer::Reopened(slots)) => format!("done: {} reopened", slots.len()),
            Ok(AnyAnswer::Downstream(DownstreamOutcome { created, reopened, killed, untouched })) => format!(
                "done: {} created, {} reopened, {} killed, {untouched} untouched",
                created.iter().len(),
                reopened.len(),
                killed.len()
            ),
            Ok(AnyAnswer::Inspection(inspection)) => self.inspection(inspection),
            Ok(AnyAnswer::Capacity(capacity)) => self.capacity(capacity),
            Ok(AnyAnswer::Deployed(all)) => {
                let all: Vec<String> = all.iter().map(|one| format!("{} #{}", one.workflow, one.version)).collect();
                format!("deployed {}", all.join(", "))
            }
            Err(refusal) => format!("refused: {refusal}"),
        }
    }

    fn inspection(&self, found: &Inspection) -> String {
        let next = found.next_look.map_or("when something wakes it".to_owned(), |at| self.time(at));
        let full = if found.at_global_limit { ", all places taken" } else { "" };
        let finishing = found.finishing.as_ref().map(|why| format!(", {}", words::text(why))).unwrap_or_default();
        let worker = match &found.worker {
            Some(WorkerWait::None(_)) => ", no worker serves it".to_owned(),
            Some(WorkerWait::Program { outdated, .. }) => format!(", no program has its functions, {outdated} others"),
            Some(WorkerWait::Labels(labels, workers)) => {
                format!(", none of {workers} has {}", labels_in_words(labels))
            }
            Some(WorkerWait::Busy(_)) => ", all workers that serve it are busy".to_owned(),
            None => String::new(),
        };
        let dormant = found.dormant.as_ref().map(|why| format!(", left alone: {why}")).unwrap_or_default();
        let place = |one: &kelos_core::PoolPlace| {
            format!("; takes {} of {}; {} ahead there", one.permits, self.pool(&one.state), one.ahead)
        };
        let pools: String = found.pools.iter().map(place).collect();
        let details = found.answers.iter().map(|(_, answer)| &answer.detail).filter(|detail| !detail.is_empty());
        let seen: String = details.map(|detail| format!(", sees {detail}")).collect();
        format!(
            "next look {next}, {} ahead, {} active{full}{dormant}{finishing}{worker}{seen}{pools}",
            found.ahead, found.active
        )
    }

    fn pool(&self, pool: &PoolState) -> String {
        let holder = |one: &kelos_core::Holder| {
            format!("{}({}{})", self.slot(&one.run.slot), one.permits, within(one.is_within))
        };
        let holders: Vec<_> = pool.holders.iter().map(holder).collect();
        let size = pool.size.map_or("?".to_owned(), |size| size.to_string());
        let disputed = if pool.is_disputed { " (disputed)" } else { "" };
        format!("{}: {}/{size}{disputed} held by [{}]", pool.pool, pool.held, holders.join(" "))
    }

    fn waiter(&self, waiter: &Waiter) -> String {
        format!(
            "{}({}{}) and {} more",
            self.slot(&waiter.slot),
            waiter.permits,
            within(waiter.is_within),
            waiter.behind
        )
    }

    fn capacity(&self, found: &Capacity) -> String {
        let waiters = |waiters: &[Waiter]| waiters.iter().map(|one| self.waiter(one)).collect::<Vec<_>>().join(", ");
        let pool = |one: &PoolState| format!("\n!   {}, wanted by [{}]", self.pool(one), waiters(&one.first));
        let full = |one: &kelos_core::FullWorkflow| {
            format!("\n!   {}: {}/{} with {} queued", one.workflow, one.active, one.concurrency, one.queued)
        };
        let pools: String = found.pools.iter().map(pool).collect();
        let full: String = found.full.iter().map(full).collect();
        format!("{}/{} runs, wanted by [{}]{pools}{full}", found.running, found.limit, waiters(&found.first))
    }
}

fn because(reason: &Option<String>) -> String {
    reason.as_ref().map(|why| format!(": {why}")).unwrap_or_default()
}

/// The end of a run, with the kind of its outcome.
fn ended(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Succeeded | Outcome::Killed => outcome.to_string(),
        Outcome::Failed { reason, .. } => format!("failed: {reason}"),
        Outcome::Refused { .. } | Outcome::Unknown { .. } | Outcome::Lost { .. } => outcome.to_string(),
    }
}

fn blockers(explanation: &Reason) -> String {
    match words::blockers(explanation) {
        none if none.is_empty() => words::text(explanation),
        some => some.join("; "),
    }
}

fn within(is_within: bool) -> &'static str {
    if is_within { " within its run" } else { "" }
}

fn weight(priority: i32) -> String {
    if priority == 0 { String::new() } else { format!(", priority {priority}") }
}

fn json_word(value: &impl serde::Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

fn submitted(one: SubmitOutcome) -> String {
    match one {
        SubmitOutcome::Opened => "opened".to_owned(),
        SubmitOutcome::Reopened { descendants } => format!("reopened with {descendants}"),
        SubmitOutcome::Existed(state) => format!("{state} already"),
    }
}

/// An event of a run of a flow, or to one of its steps.
fn flow_event(what: &SlotEvent) -> String {
    match what {
        SlotEvent::Resumed { by, from, reason } => {
            let from = from.as_ref().map(|step| format!(" from {step}")).unwrap_or_default();
            format!("resumed by {by}{from}{}", because(reason))
        }
        SlotEvent::Pinned { definition } => format!("follows definition {definition}"),
        SlotEvent::Signalled { name, payload, by, .. } => format!("signal {name} {payload} by {by}"),
        SlotEvent::StepOpened { run, awaits, priority } => {
            let awaits: Vec<&str> = awaits.iter().map(StepName::as_str).collect();
            let awaits = if awaits.is_empty() { String::new() } else { format!(", awaits {}", awaits.join(" ")) };
            format!("opened by #{run}{awaits}{}", weight(*priority))
        }
        SlotEvent::StepReady { inputs } if inputs.is_empty() => "ready".to_owned(),
        SlotEvent::StepReady { inputs } => format!("ready, given {}", Value::from(inputs.clone())),
        SlotEvent::Recovered { run, failed } => {
            let failed: Vec<&str> = failed.iter().map(StepName::as_str).collect();
            format!("#{run} succeeded, recovered from the failure of {}", failed.join(" "))
        }
        other => format!("{other:?}"),
    }
}
