//! The surroundings of a rehearsal's scheduler: functions, their ends and requests, and what is there.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kelos_core::{Input, Reply};
use kelos_engine::executor::{Reports, Start};
use kelos_model::probe::Verdict;
use kelos_model::run::Report;
use kelos_model::{FailureCode, Outcome, PermitAnswer, Probe, ProbeAnswer, RunId, SlotRef, WorkflowId};
use kelos_store::Queries;
use tokio::runtime::Runtime;

use super::call::Call;
use super::context::Context;
use super::function::{FailedCall, FunctionEnd, Functions, succeeded};
use super::input::{self, SlotInput};
use super::locks::Locks;
use super::outlook::Outlook;
use super::run_output::RunOutput;
use super::scheduler::OwnPlanner;
use super::steps::SignalTypes;

/// The time that a function may take in earnest, before it is taken for one that never ends.
const PATIENCE: Duration = Duration::from_secs(30);

/// The surroundings of the scheduler: functions, their ends, and what is there.
pub(super) struct RehearsalStage {
    functions: Functions,
    pub(super) planners: BTreeMap<WorkflowId, OwnPlanner>,
    runtime: Runtime,
    locks: Locks,
    outlook: Arc<Outlook>,
    /// The reports that are due, by moment and then in the order in which the runs were begun.
    due: BinaryHeap<Reverse<(Timestamp, u64)>>,
    reports: BTreeMap<u64, (RunId, Vec<Report>)>,
    /// Numbers the runs, and the requests that are made later.
    begun: u64,
    /// The requests that are due, by moment and then in the order in which they were made.
    later: BTreeMap<(Timestamp, u64), Input>,
    /// The functions that have not ended, by the numbers of their runs.
    calls: BTreeMap<u64, LiveCall>,
    /// The requests of runs for what is scarce, and what they return, since they were last taken.
    requests: Arc<Mutex<Vec<Input>>>,
    pub(super) failing: BTreeMap<SlotRef, u32>,
    /// The durations of the runs of jobs and of steps of flows.
    pub(super) lengths: BTreeMap<(WorkflowId, Option<String>), SignedDuration>,
    pub(super) signals: SignalTypes,
    pub(super) paths: BTreeSet<String>,
    pub(super) started: Vec<(Timestamp, RunId)>,
    pub(super) lines: BTreeMap<SlotRef, Vec<String>>,
    pub(super) reply: Option<Reply>,
}

/// The function of a live run.
struct LiveCall {
    run: RunId,
    call: Call,
    /// The moment before which the run does not end well.
    ends: Timestamp,
    patience: Duration,
}

impl RehearsalStage {
    /// A stage on which nothing has happened.
    pub(super) fn new(
        functions: Functions,
        planners: BTreeMap<WorkflowId, OwnPlanner>,
        reader: Arc<dyn Queries>,
    ) -> std::io::Result<RehearsalStage> {
        Ok(RehearsalStage {
            functions,
            planners,
            runtime: tokio::runtime::Builder::new_current_thread().enable_all().build()?,
            locks: Locks::default(),
            outlook: Arc::new(Outlook::rehearsed(reader)),
            due: BinaryHeap::new(),
            reports: BTreeMap::new(),
            begun: 0,
            later: BTreeMap::new(),
            signals: SignalTypes::default(),
            calls: BTreeMap::new(),
            requests: Arc::default(),
            failing: BTreeMap::new(),
            lengths: BTreeMap::new(),
            paths: BTreeSet::new(),
            started: Vec::new(),
            lines: BTreeMap::new(),
            reply: None,
        })
    }

    /// Calls the function of a run, and returns the reports of its start.
    pub(super) fn begin(&mut self, now: Timestamp, start: &Start) -> Vec<Report> {
        self.started.push((now, start.run.clone()));
        self.begun += 1;
        let step = start.run.slot.key.step().map(|step| step.step().to_owned());
        let length = self.lengths.get(&(start.workflow.id.clone(), step)).copied().unwrap_or_default();
        let ends = now.checked_add(length).unwrap_or(now);
        let mut reports = vec![Report::Started { external_id: "rehearsal".to_owned() }];
        if let Some(end) = self.call(now, ends, start) {
            reports.extend(self.report(self.begun, now, ends, &start.run, end));
        }
        reports
    }

    /// Calls the function of a run, and returns its end; none while it rests.
    fn call(&mut self, now: Timestamp, ends: Timestamp, start: &Start) -> Option<FunctionEnd> {
        let slot = &start.run.slot;
        let (key, json) = (start.subject(), input::json(&start.given.arguments));
        let input = SlotInput::of(start, &key, json.as_deref());
        if self.lets_fail(slot, &input) {
            let reason = "the test lets it fail".to_owned();
            return Some(Err(FailedCall { reason, ..FailedCall::default() }));
        }
        self.outlook.pass(now);
        let Some(job) = self.functions.of(slot) else {
            return Some(Err(FailedCall::last("it is no job of this project".to_owned())));
        };
        let requests = self.requests.clone();
        let reports = Reports::new(move |input| lock(&requests).push(input));
        let context =
            Context::new((start, &job.signals), RunOutput::lines(), self.outlook.clone(), self.locks.clone(), reports);
        let mut call = match Call::new(job, context, &input) {
            Ok(call) => call,
            Err(failure) => return Some(Err(failure)),
        };
        let patience = job.timeout.unwrap_or(PATIENCE).min(PATIENCE);
        let end = call.go_on(&self.runtime, patience);
        keep_lines(&mut self.lines, call.context(), end.is_some());
        if end.is_none() {
            if let Some(timeout) = job.timeout {
                self.time_out(now, timeout, &start.run);
            }
            self.calls.insert(self.begun, LiveCall { run: start.run.clone(), call, ends, patience });
        }
        end
    }

    /// Whether the test has a run fail: that of a slot, or of a batch in which such a slot is.
    fn lets_fail(&mut self, slot: &SlotRef, input: &SlotInput<'_>) -> bool {
        let others = input.times().into_iter().filter(|_| input.batch.is_some());
        let served = others.map(|time| SlotRef::at(slot.workflow.clone(), time)).chain([slot.clone()]);
        let mut any = false;
        for slot in served.collect::<BTreeSet<SlotRef>>() {
            if let Some(left) = self.failing.get_mut(&slot).filter(|left| **left > 0) {
                *left -= 1;
                any = true;
            }
        }
        any
    }

    /// Has the latest run end by its timeout, if it is not over before.
    fn time_out(&mut self, now: Timestamp, timeout: Duration, run: &RunId) {
        let Ok(at) = now.checked_add(timeout) else { return };
        let reason = format!("timed out after {} s", timeout.as_secs_f64());
        let outcome = FailedCall { reason, code: Some(FailureCode::TIMED_OUT), data: None }.outcome();
        self.due.push(Reverse((at, self.begun)));
        self.reports.insert(self.begun, (run.clone(), vec![Report::Ended { outcome }]));
    }

    /// The reports of the end of a function, if they are due; otherwise they are kept until then.
    fn report(&mut self, number: u64, now: Timestamp, ends: Timestamp, run: &RunId, end: FunctionEnd) -> Vec<Report> {
        let reports = end.map_or_else(FailedCall::reports, succeeded);
        if ends <= now {
            self.reports.remove(&number);
            return reports;
        }
        self.due.push(Reverse((ends, number)));
        self.reports.insert(number, (run.clone(), reports));
        Vec::new()
    }

    /// Goes on with the functions that something woke, and returns what they ask for, and the reports of those that have ended.
    pub(super) fn go_on(&mut self, now: Timestamp) -> Vec<Input> {
        let mut inputs = self.end_calls(now);
        inputs.extend(std::mem::take(&mut *lock(&self.requests)));
        inputs
    }

    fn end_calls(&mut self, now: Timestamp) -> Vec<Input> {
        let mut inputs = Vec::new();
        if self.calls.is_empty() {
            return inputs;
        }
        self.outlook.pass(now);
        // Real timers and sockets may wake functions, too.
        self.runtime.block_on(tokio::task::yield_now());
        while let Some((number, live)) = self.calls.iter_mut().find(|(_, live)| live.call.is_woken()) {
            let number = *number;
            let end = live.call.go_on(&self.runtime, live.patience);
            keep_lines(&mut self.lines, live.call.context(), end.is_some());
            let Some(end) = end else { continue };
            let Some(LiveCall { run, ends, .. }) = self.calls.remove(&number) else { continue };
            let reports = self.report(number, now, ends, &run, end).into_iter();
            inputs.extend(reports.map(|report| Input::RunReported { run: run.clone(), report }));
        }
        inputs
    }

    /// Makes a request at a moment.
    pub(super) fn later(&mut self, at: Timestamp, request: Input) {
        self.begun += 1;
        self.later.insert((at, self.begun), request);
    }

    /// Moves the ends of live runs with the clock: they take as long as they do, whatever time it is said to be.
    pub(super) fn shift(&mut self, by: SignedDuration) {
        let shifted = |at: Timestamp| at.checked_add(by).unwrap_or(at);
        let due = std::mem::take(&mut self.due);
        self.due = due.into_iter().map(|Reverse((at, number))| Reverse((shifted(at), number))).collect();
        self.calls.values_mut().for_each(|live| live.ends = shifted(live.ends));
        self.outlook.shift(by);
    }

    /// The moment of the next report or request.
    pub(super) fn next_due(&self) -> Option<Timestamp> {
        let report = self.due.peek().map(|Reverse((at, _))| *at);
        let request = self.later.first_key_value().map(|((at, _), _)| *at);
        report.into_iter().chain(request).chain(self.outlook.next_due()).min()
    }

    /// The reports and requests that are due.
    pub(super) fn take_due(&mut self, now: Timestamp) -> Vec<Input> {
        let mut inputs: Vec<Input> =
            self.later.extract_if(..=(now, u64::MAX), |_, _| true).map(|(_, ask)| ask).collect();
        while let Some(Reverse((_, number))) = self.due.peek().filter(|Reverse((at, _))| *at <= now).copied() {
            self.due.pop();
            let Some((run, reports)) = self.reports.remove(&number) else { continue };
            self.drop_call(number);
            inputs.extend(reports.into_iter().map(|report| Input::RunReported { run: run.clone(), report }));
        }
        inputs
    }

    pub(super) fn end(&mut self, run: &RunId) -> Input {
        self.reports.retain(|_, (live, _)| live != run);
        let number = self.calls.iter().find(|(_, live)| live.run == *run).map(|(number, _)| *number);
        number.into_iter().for_each(|number| self.drop_call(number));
        Input::RunReported { run: run.clone(), report: Report::Ended { outcome: Outcome::Killed } }
    }

    /// Asks a function to end, lets it go on once more, and drops it.
    fn drop_call(&mut self, number: u64) {
        if let Some(mut live) = self.calls.remove(&number) {
            live.call.context().cancel().ask();
            live.call.go_on(&self.runtime, live.patience);
            keep_lines(&mut self.lines, live.call.context(), true);
        }
    }

    /// Tells a function what became of its request.
    pub(super) fn answer_run(&self, run: &RunId, request: u64, answer: PermitAnswer) {
        if let Some(live) = self.calls.values().find(|live| live.run == *run) {
            live.call.context().answered(request, answer);
        }
    }

    /// The words for what a live function waits for, or its progress.
    pub(super) fn note(&self, run: &RunId) -> Option<String> {
        self.calls.values().find(|live| live.run == *run)?.call.context().note()
    }

    pub(super) fn answer(&self, now: Timestamp, probe: Probe) -> Input {
        let is_there = match &probe {
            Probe::Path { uri, .. } => self.paths.contains(uri),
            _ => false,
        };
        let verdict = if is_there { Verdict::Yes } else { Verdict::No };
        Input::ProbeAnswered { probe, answer: ProbeAnswer { verdict, detail: String::new(), at: now } }
    }
}

/// Takes the lines that a run has written since they were last taken.
fn keep_lines(all: &mut BTreeMap<SlotRef, Vec<String>>, context: &Context, is_over: bool) {
    let lines = context.take_lines(is_over);
    if !lines.is_empty() {
        all.entry(context.slot().clone()).or_default().extend(lines);
    }
}

fn lock(requests: &Mutex<Vec<Input>>) -> MutexGuard<'_, Vec<Input>> {
    requests.lock().unwrap_or_else(PoisonError::into_inner)
}
