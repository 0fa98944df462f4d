//! The outside: files that appear and vanish, runs that take some time and have some outcome. Pure functions
//! of the seed, so that every observer sees the same.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kelos_model::facts::{Collection, Tally};
use kelos_model::probe::Verdict;
use kelos_model::ranges::Range;
use kelos_model::time::{CronSchedule, parse_instant};
use kelos_model::trigger::Facts;
use kelos_model::{Outcome, PoolId, Probe, ProbeAnswer, RunId, SlotRef, SlotState, Subject, Workflow, WorkflowId};
use serde_json::{Map, Value, json};

use crate::rng::draw;

/// The environment of the scheduler.
#[derive(Debug, Clone)]
pub struct World {
    seed: u64,
    /// The executions of runs, which survive every crash of the scheduler.
    pub runs: BTreeMap<RunId, Execution>,
}

/// An execution of a run.
#[derive(Debug, Clone)]
pub struct Execution {
    /// When it started.
    pub started_at: Timestamp,
    /// When it ends or ended.
    pub ends_at: Timestamp,
    /// The outcome.
    pub outcome: Outcome,
}

/// A wish of a run for permits of pools.
#[derive(Debug, Clone)]
pub struct Wish {
    /// The number of the request.
    pub number: u64,
    /// How long after its start the run asks.
    pub after: SignedDuration,
    /// How long after that it wants them no more.
    pub lasts: SignedDuration,
    /// The number of permits by pool.
    pub wanted: BTreeMap<PoolId, u32>,
}

/// The requests of a live run for permits, as its executor reports them.
#[derive(Debug, Clone, Default)]
pub struct RunRequests {
    /// How often they have changed.
    pub version: u64,
    /// The number of permits by pool, of each request by its number.
    pub open: BTreeMap<u64, BTreeMap<PoolId, u32>>,
}

impl RunRequests {
    /// Notes that a wish came up, or went.
    pub fn change(&mut self, number: u64, wanted: Option<BTreeMap<PoolId, u32>>) {
        self.version += 1;
        match wanted {
            Some(wanted) => drop(self.open.insert(number, wanted)),
            None => drop(self.open.remove(&number)),
        }
    }
}

/// All facts at a moment.
pub struct WorldView<'a> {
    /// The moment.
    pub now: Timestamp,
    /// A moment of the past, for questions about the clock then.
    pub past: Option<Timestamp>,
    /// The outside.
    pub world: &'a World,
    /// The state of a slot, if it exists.
    pub state: &'a dyn Fn(&SlotRef) -> Option<SlotState>,
    /// The workflows and their schedules, of which the periods are scanned.
    pub times: &'a Scan,
    /// The collection of the evaluated slot.
    pub collected: Option<&'a Collection>,
}

impl Facts for WorldView<'_> {
    fn now(&self) -> Timestamp {
        self.past.unwrap_or(self.now)
    }

    fn slot(&self, slot: &SlotRef) -> Option<Option<SlotState>> {
        Some((self.state)(slot))
    }

    fn period(&self, workflow: &WorkflowId, time: Timestamp) -> Option<Range> {
        self.times.period(workflow, time)
    }

    fn slots_in(&self, workflow: &WorkflowId, interval: Range) -> Option<Vec<Timestamp>> {
        self.times.slots_in(workflow, interval)
    }

    fn probe(&self, probe: &Probe) -> Option<ProbeAnswer> {
        Some(self.world.answer(probe, self.now))
    }

    fn collected(&self, subject: &Subject) -> Option<&Tally> {
        self.collected.and_then(|collected| collected.of(subject))
    }
}

/// The schedules of workflows with their bounds, for a plain scan of all periods: each time around an interval is tried.
#[derive(Debug, Clone, Default)]
pub struct Scan(BTreeMap<WorkflowId, (CronSchedule, Range)>);

/// No period of the simulation is longer, nor lies farther from its slot.
const AROUND: SignedDuration = SignedDuration::from_hours(26);

impl Scan {
    /// The schedules of a set of definitions.
    #[must_use]
    pub fn of<'w>(all: impl Iterator<Item = &'w Arc<Workflow>>) -> Scan {
        let all: Vec<Arc<Workflow>> = all.cloned().collect();
        let schedules = crate::workload::schedules(&all);
        let bounds = |one: &Arc<Workflow>| {
            let schedule = schedules.get(&one.id)?.clone();
            let end = one.end_time.unwrap_or(Timestamp::MAX);
            Some((one.id.clone(), (schedule, Range::new(one.start_time.unwrap_or(Timestamp::MIN), end))))
        };
        Scan(all.iter().filter_map(bounds).collect())
    }

    /// The period of the slot at a time.
    pub(crate) fn period(&self, workflow: &WorkflowId, time: Timestamp) -> Option<Range> {
        let (schedule, _) = self.0.get(workflow)?;
        let end = schedule.times(time, time + AROUND).find(|other| *other > time);
        Some(Range::new(time, end.unwrap_or(time + AROUND)))
    }

    /// The slots whose periods intersect an interval.
    pub(crate) fn slots_in(&self, workflow: &WorkflowId, interval: Range) -> Option<Vec<Timestamp>> {
        let (schedule, bounds) = self.0.get(workflow)?;
        let (mut found, mut before) = (Vec::new(), None);
        for time in schedule.times(interval.start - AROUND, interval.end + AROUND) {
            if let Some(start) = before.replace(time) {
                // A slot about a period must end within the bounds, any other must begin there.
                let is_last = if schedule.is_of_periods() { time <= bounds.end } else { start < bounds.end };
                let intersects = start < interval.end && time > interval.start && !interval.is_empty();
                if intersects && start >= bounds.start && is_last {
                    found.push(start);
                }
            }
        }
        Some(found)
    }
}

/// The outputs of a step: most often a list for the steps after it, sometimes of something else than items.
fn of_step(drawn: u64) -> Option<Map<String, Value>> {
    let items = || (0..(drawn >> 8) % 5).map(|n| if n % 2 == 0 { json!(n) } else { json!({"n-o": n}) }).collect();
    let outputs = match drawn % 8 {
        0 => return None,
        1 => json!({"items": (drawn >> 8) % 9}),
        2 => json!({"a-b": {"c.d": [{"e-f": 1}]}, "x.y": null}),
        3 => json!({"rows": drawn % 1000, "item": "one"}),
        4 => json!({"rows": "many", "items": Value::Array(items())}),
        _ => json!({"items": Value::Array(items())}),
    };
    outputs.as_object().cloned()
}

fn seconds(seconds: u64) -> SignedDuration {
    SignedDuration::from_secs(i64::try_from(seconds).unwrap_or(0))
}

impl World {
    /// The world of a seed.
    #[must_use]
    pub fn new(seed: u64) -> World {
        World { seed, runs: BTreeMap::new() }
    }

    /// Whether something exists at a path at a moment. The path ends with the time it belongs to: most
    /// appear around it or some hours later, some never, some vanish again.
    #[must_use]
    pub fn is_there(&self, uri: &str, now: Timestamp) -> bool {
        let draw = draw(self.seed, uri);
        let time = uri.rsplit('/').next().and_then(|tail| parse_instant(tail).ok());
        let Some(time) = time else { return draw.is_multiple_of(2) };
        let appears = time + seconds(draw % 9000) - seconds(1800);
        let vanishes = appears + seconds(3 * 3600);
        !draw.is_multiple_of(11) && now >= appears && (!draw.is_multiple_of(7) || now < vanishes)
    }

    /// The answer to a probe.
    #[must_use]
    pub fn answer(&self, probe: &Probe, now: Timestamp) -> ProbeAnswer {
        let verdict = match probe {
            Probe::Path { uri, .. } if self.is_there(uri, now) => Verdict::Yes,
            Probe::Path { .. } => Verdict::No,
            Probe::Function { workflow, key, .. } => self.said(&format!("{workflow} {key}"), now),
        };
        ProbeAnswer { verdict, detail: String::new(), at: now }
    }

    /// The answer of a script's function for a slot: most often yes, and sometimes that it can't be called before some hour.
    fn said(&self, slot: &str, now: Timestamp) -> Verdict {
        let draw = draw(self.seed, slot);
        match draw % 10 {
            0..=6 => Verdict::Yes,
            7 => Verdict::No,
            8 => Verdict::Never,
            _ if now.as_second() < 1_459_000_000 + ((draw >> 8) % 150_000).cast_signed() => Verdict::Failed,
            _ => Verdict::Yes,
        }
    }

    /// The duration and the outcome of a run.
    #[must_use]
    pub fn fate(&self, run: &RunId) -> (SignedDuration, Outcome) {
        let draw = draw(self.seed, &run.to_string());
        // Of steps most succeed, so that flows come to their ends.
        let (longest, lot) = match run.slot.key.step() {
            Some(_) if (draw >> 40).is_multiple_of(2) => (1800, (draw >> 32) % 20),
            Some(_) => (1800, 0),
            None => (5400, (draw >> 32) % 20),
        };
        let takes = if draw.is_multiple_of(3) { 0 } else { (draw >> 8) % longest };
        let failed = |reason: &str| Outcome::Failed { reason: reason.to_owned(), exit_status: Some(1), code: None };
        let outcome = match lot {
            0..=13 => Outcome::Succeeded,
            14..=17 => failed("exited with status 1"),
            18 => Outcome::refused("not like this".to_owned()),
            _ if (draw >> 16).is_multiple_of(4) => Outcome::Lost { reason: "it may go on".to_owned() },
            _ => Outcome::Unknown { reason: "lost sight of it".to_owned() },
        };
        (seconds(takes), outcome)
    }

    /// The output of a run for those that it triggers: most have none, some the same as another attempt of their slot.
    #[must_use]
    pub fn outputs(&self, run: &RunId) -> Option<Map<String, Value>> {
        let drawn = draw(self.seed ^ 0x6A7E, &run.to_string());
        if run.slot.key.step().is_some() {
            return of_step(drawn);
        }
        let outputs = match drawn % 6 {
            0 => [("run".to_owned(), run.to_string().into())],
            1 | 2 => [("rows".to_owned(), 1.into())],
            _ => return None,
        };
        Some(outputs.into_iter().collect())
    }

    /// The wishes of a run for permits while it is live: one half asks once or twice, for permits of one pool or two, which it wants for a while.
    #[must_use]
    pub fn wishes(&self, run: &RunId) -> Vec<Wish> {
        let drawn = |what: &str| draw(self.seed ^ 0x3157, &format!("{run} {what}"));
        let (takes, _) = self.fate(run);
        let count = [0, 0, 1, 2][usize::try_from(drawn("wishes") % 4).unwrap_or(0)];
        let wish = |n: u64| {
            let drawn = |what: &str| drawn(&format!("{n} {what}"));
            let within = u64::try_from(takes.as_secs()).unwrap_or(0) + 1;
            let pool = |what: &str| PoolId::new(&format!("p{}", drawn(what) % 4)).ok();
            let permits = |what: &str| u32::try_from(drawn(what) % 3 + 1).unwrap_or(1);
            let mut wanted: BTreeMap<PoolId, u32> = BTreeMap::new();
            wanted.extend(pool("pool").map(|pool| (pool, permits("permits"))));
            wanted
                .extend(pool("other").filter(|_| drawn("both").is_multiple_of(2)).map(|pool| (pool, permits("more"))));
            Wish { number: n, after: seconds(drawn("after") % within), lasts: seconds(drawn("lasts") % 3600), wanted }
        };
        (1..=count).map(wish).collect()
    }

    /// Starts a run, unless it has been started. Returns whether it did.
    pub fn start(&mut self, run: &RunId, now: Timestamp) -> bool {
        if self.runs.contains_key(run) {
            return false;
        }
        let (takes, outcome) = self.fate(run);
        self.runs.insert(run.clone(), Execution { started_at: now, ends_at: now + takes, outcome });
        true
    }

    /// Ends a run at a moment, if it is live then.
    pub fn cancel(&mut self, run: &RunId, now: Timestamp) {
        let execution = self.runs.entry(run.clone()).or_insert(Execution {
            started_at: now,
            ends_at: now,
            outcome: Outcome::Killed,
        });
        if execution.ends_at > now {
            execution.ends_at = now;
            execution.outcome = Outcome::Killed;
        }
    }

    /// The runs that are live at a moment.
    pub fn alive(&self, now: Timestamp) -> impl Iterator<Item = &RunId> {
        self.runs.iter().filter(move |(_, run)| run.ends_at > now).map(|(id, _)| id)
    }
}
