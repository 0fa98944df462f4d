//! The outside of the scheduler: runs that take their time, files that come to be, and people who repair what failed. A seed determines it.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use kelos_core::{Command, Input, Rerun};
use kelos_model::probe::Verdict;
use kelos_model::retry::scramble;
use kelos_model::run::Report;
use kelos_model::{Actor, Outcome, Probe, ProbeAnswer, RunId, SlotRef};

use crate::quickstart::kind;

/// One run in so many has trouble: a delivery or a total fails for good, a count takes hours.
pub(crate) const TROUBLE: u64 = 2_500;
/// One count in so many fails, and is tried again.
const FAILS_ONCE: u64 = 400;

/// Something that is to happen.
enum Happening {
    Ends(RunId, Outcome),
    IsRepaired(SlotRef),
}

/// The outside of the scheduler.
pub(crate) struct World {
    seed: u64,
    /// One run in so many has trouble.
    trouble: u64,
    agenda: BTreeMap<(Timestamp, u64), Happening>,
    /// Counts what was put on the agenda.
    number: u64,
    /// Files that are there and that have not been counted yet, by the end of their path.
    files: BTreeSet<String>,
    /// The questions for files that are not there.
    asked: BTreeMap<String, Probe>,
    pub(crate) runs: u64,
}

impl World {
    pub(crate) fn new(seed: u64, trouble: u64) -> World {
        let (agenda, files, asked) = (BTreeMap::new(), BTreeSet::new(), BTreeMap::new());
        World { seed, trouble, agenda, number: 0, files, asked, runs: 0 }
    }

    /// When something happens next.
    pub(crate) fn next(&self) -> Option<Timestamp> {
        self.agenda.keys().next().map(|(at, _)| *at)
    }

    /// All that happens by a moment.
    pub(crate) fn happened(&mut self, now: Timestamp) -> Vec<Input> {
        let mut inputs = Vec::new();
        while let Some(entry) = self.agenda.first_entry().filter(|entry| entry.key().0 <= now) {
            match entry.remove() {
                Happening::Ends(run, outcome) => self.end(run, outcome, now, &mut inputs),
                Happening::IsRepaired(slot) => {
                    let (by, ask) = (Actor::person("ann"), Rerun::of(slot).into());
                    inputs.push(Input::Asked { token: 0, by, ask, warrant: None });
                }
            }
        }
        inputs
    }

    fn end(&mut self, run: RunId, outcome: Outcome, now: Timestamp, inputs: &mut Vec<Input>) {
        let file = delivered(&run.slot).filter(|_| outcome == Outcome::Succeeded);
        match (kind(&run.slot.workflow), file) {
            ("deliver", Some(file)) => {
                // Files tell of themselves: nobody asks twice a minute whether they are there.
                let answer = ProbeAnswer { verdict: Verdict::Yes, detail: String::new(), at: now };
                let asked = self.asked.remove(&file);
                inputs.extend(asked.map(|probe| Input::ProbeAnswered { probe, answer }));
                self.files.insert(file);
            }
            // It is counted, and nobody asks for it again.
            ("wordcount", Some(file)) => drop(self.files.remove(&file)),
            _ => {}
        }
        inputs.push(Input::RunReported { run, report: Report::Ended { outcome } });
    }

    /// Performs a command. Returns what is known of it at once.
    pub(crate) fn perform(&mut self, command: Command, now: Timestamp) -> Option<Input> {
        match command {
            Command::Probe(probe) => {
                let Probe::Path { uri, .. } = &probe else { return None };
                let file = uri.split("data/input/").last().unwrap_or_default().to_owned();
                let is_there = self.files.contains(&file);
                if !is_there {
                    self.asked.insert(file, probe.clone());
                }
                let verdict = if is_there { Verdict::Yes } else { Verdict::No };
                Some(Input::ProbeAnswered { probe, answer: ProbeAnswer { verdict, detail: String::new(), at: now } })
            }
            Command::StartRun { run, .. } => {
                self.start(&run, now);
                let external_id = format!("{} {}", 300 + scramble(self.number) % 32_000, now.as_second() / 10);
                Some(Input::RunReported { run, report: Report::Started { external_id } })
            }
            _ => None,
        }
    }

    /// Decides when a run ends, and how.
    fn start(&mut self, run: &RunId, now: Timestamp) {
        self.runs += 1;
        let kind = kind(&run.slot.workflow);
        let dice = self.dice(run);
        let one_in = |many: u64, draw: u64| scramble(dice ^ draw).is_multiple_of(many);
        let is_first = run.number == 1;
        let (is_bad, is_final) = match kind {
            "wordcount" => (is_first && (one_in(FAILS_ONCE, 1) || is_torn(&run.slot)), false),
            _ => (is_first && one_in(self.trouble, 1), true),
        };
        let is_slow = kind == "wordcount" && one_in(self.trouble, 2);
        let share = |draw: u64, most: u64| i64::try_from(scramble(dice ^ draw) % most).unwrap_or_default();
        let minutes = if is_slow { 240 + share(3, 300) } else { 1 + share(3, 5) };
        // Whole minutes, so that some runs end together.
        let end = whole_minute(now) + SignedDuration::from_mins(minutes);
        if is_bad && is_final {
            let repaired = end + SignedDuration::from_mins(60 + share(4, 600));
            self.plan(repaired, Happening::IsRepaired(run.slot.clone()));
        }
        let failed = Outcome::Failed { reason: "exited with status 1".to_owned(), exit_status: Some(1), code: None };
        self.plan(end, Happening::Ends(run.clone(), if is_bad { failed } else { Outcome::Succeeded }));
    }

    fn plan(&mut self, at: Timestamp, what: Happening) {
        self.number += 1;
        self.agenda.insert((at, self.number), what);
    }

    /// A number that the seed and the run determine.
    fn dice(&self, run: &RunId) -> u64 {
        let hour = run.slot.key.time().map_or(0, |at| at.as_second().unsigned_abs());
        let name = run.slot.workflow.as_str().bytes();
        let mixed = name.fold(scramble(self.seed ^ hour), |mixed, byte| scramble(mixed ^ u64::from(byte)));
        scramble(mixed ^ u64::from(run.number))
    }
}

fn whole_minute(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_second() - at.as_second() % 60).expect("a moment")
}

/// Whether the line broke in this hour, as in the sample: the text of lax at 13:00 is torn.
fn is_torn(slot: &SlotRef) -> bool {
    let hour = slot.key.time().map(|at| at.as_second() / 3_600 % 24);
    slot.workflow.as_str().starts_with("wordcount-lax") && hour == Some(13)
}

/// The file of an hour of a data centre, below the folder of inputs.
fn delivered(slot: &SlotRef) -> Option<String> {
    let (_, centre) = slot.workflow.as_str().split_once('-')?;
    let hour = slot.key.time()?.strftime("%Y-%m-%d/%H00").to_string();
    Some(format!("{centre}/{hour}/_READY"))
}
