//! The words of a scenario's inputs.
//!
//! ```text
//! window 24h | limit 2 | at-once 3 | frontier 4 | executors slow | executors prompt      before anything is defined, or later
//! at 2016-01-01T02:30Z | at 02:30:20 | at +20s                  the clock moves, and a tick follows
//! clock 03:00                                                   the clock moves, and nothing follows
//! step | step a b                                               a step that looks at everything again, or at some
//! ticks off | ticks on                                          whether reports are followed by a tick
//! define wc every "0 0 * * * ?" when local-path(/in/${hour}) serial 1 retry 2 delay 10s doubling timeout 60s from T
//! define wc in pool:4 in other:8x2 ...                          runs take 1 of 4 permits of a pool, and 2 of 8 of another
//! define wc periods 1h batch 6 600s          runs serve up to 6 adjacent slots, which wait so long for others
//! define wc like other ... | define wc ... unknown fails        a dependent schedule; harm in running twice
//! define wc may pool:4 ...                                      its runs may take permits of a pool while they are live
//! define wc does http | define wc on gpu       another executor than command; the labels of the workers that may run it
//! remove wc | pause wc | resume wc | restart
//! plant wc planning | looking | collecting | dispatching | reporting | asking       an invariant of it breaks by that from now on
//! mend                                                          nothing breaks any more; either comes with a restart
//! unread etl 1                                                     a restart that can't read a past definition any more
//! restore | load                                                a restart in two steps: definitions come later
//! answer /in/00 yes | no | never | failed why
//! report wc@00:00#1 started | succeeded | killed | never-started
//! report wc@00:00#1 gave name=value       a value such as *70000 is so long
//! report wc@00:00#1 asks 3 1=pool:2+other:1 2=pool:1            all that it asks for, after the third change
//! report wc@00:00#1 failed why | refused why | unknown why | deferred why
//! rerun wc@00:00 | kill wc@00:00 | mark wc@00:00 | skip wc@00:00 | inspect wc@00:00 | capacity
//! downstream wc@00:00 [killing] [dry] [because why]             a rerun with all that depends on it
//! backfill name wc from 00:00 to 05:00 missing | unsuccessful | all [priority 5] [dry]
//! cancel name
//! define p program | define s runs p when partitions(ds,2) must concurrency(1,abort) window(22:00-06:00)~ enabled lives 60s with k=v
//! create s runs p ... | change s runs p ... | delete s | enable s | disable s | fire s [unconstrained]
//! deploys yes | no | keeping                                    whether definitions that come change event schedules
//! tell partitions(ds,2) ended(p,succeeded)as:name signal(x)     facts, in their order
//! reenable T1 T2 s1 s2                                          those that were disabled in a range
//! show | show wc                                                the slots as they are stored
//! ```
//!
//! A time without a date is one of the day of the first `at`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kelos_core::{
    BackfillRequest, CancelBackfill, ChangeSchedule, CreateSchedules, DeleteSchedules, Disable, DownstreamRequest,
    Enable, EnableByTime, FireRequest, Input, Inspect, InspectCapacity, Kill, MarkSuccess, Pause, PauseBackfill,
    PlantedBreach, PlantedIn, PrioritiseBackfill, Rerun, RerunBackfill, Resume, ResumeBackfill, Skip, SourcePosition,
    SubmitRequest, Tell, WorkflowFilter,
};
use kelos_model::backfill::BackfillMode;
use kelos_model::jobs::{Direction, Feed, JobKeys};
use kelos_model::probe::Verdict;
use kelos_model::ranges::Range;
use kelos_model::retry::Growth;
use kelos_model::run::Report;
use kelos_model::time::{Calendar, Cron, CronSchedule, Schedule, Zone, format_short, parse_instant};
use kelos_model::workflow::{EventKeys, Job, Keys, Program, ProjectVersion, VersionError, WaitStart};
use kelos_model::{
    Arguments, BackfillId, BatchRule, Outcome, PoolId, PoolUse, Probe, ProbeAnswer, RunId, SlotKey, SlotRef, Workflow,
    WorkflowId,
};

use super::events;
use super::flows;
use super::jobs;
use super::words::Words;
use super::world::World;

type Said = Result<Vec<String>, String>;

/// Performs one input and describes its results.
pub(crate) fn perform(world: &mut World, input: &str) -> Said {
    let mut words = Script { words: split(input).into() };
    let verb = words.next("a verb")?;
    let said = match verb.as_str() {
        "at" => at(world, &mut words)?,
        "clock" => {
            world.now = words.time(world)?;
            Vec::new()
        }
        "step" => {
            let only = words.workflows()?;
            world.step(Vec::new(), only, true)
        }
        "define" => define(world, &mut words)?,
        "create" | "change" | "delete" | "enable" | "disable" | "reenable" | "fire" => {
            about_schedules(world, &verb, &mut words)?
        }
        "tell" => {
            let facts: Result<Vec<_>, _> = words.words.drain(..).map(|word| events::fact(&word)).collect();
            world.ask(Tell::of(facts?))
        }
        "read" => {
            let (source, position) = (words.next("a source")?, words.next("a position")?);
            let facts = words.words.drain(..).map(|word| events::fact(&word)).collect::<Result<_, _>>()?;
            world.ask(Tell { facts, position: Some(SourcePosition { source, position: position.into() }) })
        }
        "program" => define_by_program(world, &mut words)?,
        "taken" => world.taken_names(),
        "remove" => {
            world.defined.remove(&words.workflow()?);
            world.define()
        }
        "pause" => world.ask(Pause { workflow: words.workflow()?, reason: None }),
        "resume" => world.ask(Resume { workflow: words.workflow()?, reason: None }),
        "restart" => world.restart(),
        "plant" => plant(world, &mut words)?,
        "mend" => {
            world.config.planted = None;
            world.restart()
        }
        "unread" => world.lose_definition(words.workflow()?, words.number()?),
        "restore" => world.restore(),
        "load" => world.define(),
        "answer" => answer(world, &mut words)?,
        "report" => report(world, &mut words)?,
        "rerun" => world.ask(Rerun { slot: words.slot(world)?, arguments: words.given()?, reason: None }),
        "kill" => world.ask(Kill { slot: words.slot(world)?, reason: None }),
        "mark" => world.ask(MarkSuccess { slot: words.slot(world)?, reason: None }),
        "skip" => world.ask(Skip { slot: words.slot(world)?, reason: None }),
        "start" | "signal" | "go-on" | "repeat" => about_flows(world, &verb, &mut words)?,
        "downstream" => downstream(world, &mut words)?,
        "submit" => submit(world, &mut words)?,
        "said" => said(world, &mut words)?,
        "offer" => offer(world, &mut words)?,
        "capacity" => world.ask(InspectCapacity),
        "inspect" => world.ask(Inspect { slot: words.slot(world)? }),
        "backfill" => backfill(world, &mut words)?,
        "cancel" | "pause-backfill" | "resume-backfill" | "prioritise" | "rerun-backfill" => {
            about_backfill(world, &verb, &mut words)?
        }
        "show" => show(world, &mut words),
        "window" | "limit" | "at-once" | "frontier" | "workers" | "executors" | "ticks" | "deploys" => {
            configure(world, &verb, &mut words)?
        }
        other => return Err(format!("no input is named {other:?}")),
    };
    if words.words.is_empty() { Ok(said) } else { Err(format!("not understood: {:?}", words.words)) }
}

struct Script {
    words: std::collections::VecDeque<String>,
}

/// Splits at blanks, except within quotes or parentheses.
fn split(input: &str) -> Vec<String> {
    let (mut quoted, mut depth) = (false, 0);
    let mut words = vec![String::new()];
    for c in input.chars() {
        match c {
            '"' => quoted = !quoted,
            ' ' if !quoted && depth == 0 => words.push(String::new()),
            _ => {
                depth += i32::from(c == '(') - i32::from(c == ')');
                words.last_mut().expect("one word at least").push(c);
            }
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

impl Script {
    fn next(&mut self, what: &str) -> Result<String, String> {
        self.words.pop_front().ok_or_else(|| format!("expected {what}"))
    }

    fn rest(&mut self) -> String {
        std::mem::take(&mut self.words).into_iter().collect::<Vec<_>>().join(" ")
    }

    fn number<T: std::str::FromStr>(&mut self) -> Result<T, String> {
        let word = self.next("a number")?;
        word.parse().map_err(|_| format!("{word:?} is not a number"))
    }

    fn seconds(&mut self) -> Result<u64, String> {
        let span = duration(&self.next("a duration")?)?;
        u64::try_from(span.as_secs()).map_err(|error| error.to_string())
    }

    fn workflow(&mut self) -> Result<WorkflowId, String> {
        WorkflowId::new(&self.next("a workflow")?).map_err(|error| error.to_string())
    }

    /// All remaining words as workflows; none means all workflows.
    fn workflows(&mut self) -> Result<WorkflowFilter, String> {
        let mut only = BTreeSet::new();
        while !self.words.is_empty() {
            only.insert(self.workflow()?);
        }
        Ok((!only.is_empty()).then(|| Arc::new(only)))
    }

    fn rest_workflows(&mut self) -> Result<Vec<WorkflowId>, String> {
        let mut ids = Vec::new();
        while !self.words.is_empty() {
            ids.push(self.workflow()?);
        }
        Ok(ids)
    }

    /// Arguments: each `given name=value`.
    fn given(&mut self) -> Result<Arguments, String> {
        let mut all = Arguments::new();
        while self.words.front().is_some_and(|word| word == "given") {
            self.next("given")?;
            all.extend([events::argument(&self.next("name=value")?)?]);
        }
        Ok(all)
    }

    fn backfill(&mut self) -> Result<BackfillId, String> {
        BackfillId::new(&self.next("a backfill")?).map_err(|error| error.to_string())
    }

    fn time(&mut self, world: &World) -> Result<Timestamp, String> {
        time(world, &self.next("a time")?)
    }

    /// All words that are left.
    fn all(&mut self) -> Vec<String> {
        self.words.drain(..).collect()
    }

    fn slot(&mut self, world: &World) -> Result<SlotRef, String> {
        slot(world, &self.next("a slot")?)
    }
}

fn slot(world: &World, word: &str) -> Result<SlotRef, String> {
    let (workflow, at) = word.split_once('@').ok_or("expected workflow@time")?;
    let workflow = WorkflowId::new(workflow).map_err(|error| error.to_string())?;
    if let Some(key) = flows::key(at) {
        return Ok(SlotRef::new(workflow, key));
    }
    if world.jobs.contains(&workflow) {
        return Ok(SlotRef::job(workflow, at.into()));
    }
    let at = time(world, at)?;
    Ok(SlotRef::new(
        workflow.clone(),
        // Times of schedules are whole seconds.
        if world.moments.contains(&workflow) || at.subsec_nanosecond() != 0 {
            SlotKey::Moment(at)
        } else {
            SlotKey::Time(at)
        },
    ))
}

fn duration(word: &str) -> Result<SignedDuration, String> {
    let (number, unit) = word.split_at(word.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(word.len()));
    let number: i64 = number.parse().map_err(|_| format!("{word:?} is not a duration"))?;
    match unit {
        "ms" => Ok(SignedDuration::from_millis(number)),
        "s" => Ok(SignedDuration::from_secs(number)),
        "m" => Ok(SignedDuration::from_mins(number)),
        "h" => Ok(SignedDuration::from_hours(number)),
        "d" => Ok(SignedDuration::from_hours(24 * number)),
        _ => Err(format!("{word:?} is not a duration")),
    }
}

fn time(world: &World, word: &str) -> Result<Timestamp, String> {
    if word.starts_with(['+', '-']) {
        return Ok(world.now + duration(word)?);
    }
    let full = match world.day {
        Some(day) if !word.contains('-') => format!("{}T{word}Z", &format_short(day)[..10]),
        _ => word.to_owned(),
    };
    parse_instant(&full).map_err(|error| error.to_string())
}

fn at(world: &mut World, words: &mut Script) -> Said {
    world.now = words.time(world)?;
    world.day = world.day.or(Some(world.now));
    Ok(world.turn(vec![]))
}

fn configure(world: &mut World, verb: &str, words: &mut Script) -> Said {
    match verb {
        "window" => world.config.planning_window = duration(&words.next("a duration")?)?,
        "limit" => world.config.max_running = words.number()?,
        "at-once" => world.config.at_once = words.number()?,
        "frontier" => world.config.frontier = words.number()?,
        "workers" => {
            let is_on = words.next("on or off")? == "on";
            world.config.by_workers = ["command", "held"].into_iter().filter(|_| is_on).map(str::to_owned).collect();
        }
        "ticks" => world.ticks = words.next("on or off")? == "on",
        "deploys" => {
            world.deploys = match words.next("yes, no or keeping")?.as_str() {
                "yes" => Some(true),
                "keeping" => Some(false),
                _ => None,
            };
        }
        _ => world.prompt = words.next("prompt or slow")? == "prompt",
    }
    let restarts = matches!(verb, "window" | "limit" | "at-once" | "frontier" | "workers");
    Ok(if restarts { world.restart() } else { Vec::new() })
}

fn define(world: &mut World, words: &mut Script) -> Said {
    let workflow = workflow(world, words)?;
    world.defined.insert(workflow.id.clone(), workflow);
    Ok(world.define())
}

/// Changes the definitions of the program.
fn define_by_program(world: &mut World, words: &mut Script) -> Said {
    let verb = words.next("define or remove")?;
    let mut all = world.of_program.take().unwrap_or_default();
    if verb == "define" {
        let workflow = workflow(world, words)?;
        all.insert(workflow.id.clone(), workflow);
    } else {
        all.remove(&words.workflow()?);
    }
    world.of_program = Some(all);
    Ok(world.define_by_program())
}

fn workflow(world: &mut World, words: &mut Script) -> Result<Arc<Workflow>, String> {
    let id = words.workflow()?;
    let mut workflow = plain(&id);
    while let Ok(word) = words.next("") {
        match word.as_str() {
            "every" => workflow.keys = Keys::Schedule(cron(&words.next("a cron expression")?)?),
            "program" => {
                world.moments.insert(id.clone());
                of_app(&mut workflow, Keys::Requests(Box::new(Program { name: id.to_string(), kind: None })));
            }
            "runs" => {
                world.moments.insert(id.clone());
                of_app(&mut workflow, Keys::Events(Box::new(EventKeys::new(id.as_str(), words.workflow()?))));
            }
            "must" => workflow.constraints.push(events::constraint(&words.next("a constraint")?)?),
            "enabled" => schedule(&mut workflow)?.enabled = true,
            "lives" => schedule(&mut workflow)?.timeout_millis = words.seconds()? * 1000,
            "catches" => events::catch_up_with(&mut workflow, &words.next("skip, latest or all")?)?,
            "jitter" => schedule(&mut workflow)?.jitter_millis = words.seconds()? * 1000,
            "until" => schedule(&mut workflow)?.end_time = Some(words.time(world)?),
            "with" => {
                let word = words.next("name=value")?;
                let (name, value) = word.split_once('=').ok_or("expected name=value")?;
                schedule(&mut workflow)?.properties.insert(name.to_owned(), long(&value.replace('\'', "\"")));
            }
            "jobs" => {
                (workflow.keys, workflow.concurrency) =
                    (Keys::Jobs(Box::new(jobs::template(&words.next("a template")?)?)), None);
                world.jobs.insert(id.clone());
            }
            "values" => keys(&mut workflow)?.domains.extend([jobs::values(&words.next("values")?)?]),
            "after" => {
                let group = jobs::group(&words.next("a group")?)?;
                keys(&mut workflow)?.depends_on.push(group);
            }
            "asks" => keys(&mut workflow)?.depends_on.push(jobs::functions(&words.next("workflows")?)?),
            "valid" => jobs::valid(keys(&mut workflow)?, &words.next("values")?)?,
            "fed" => {
                let schedule = cron(&words.next("a cron expression")?)?;
                keys(&mut workflow)?.feed = Some(Feed { identifier: "date".into(), schedule });
            }
            "like" => workflow.keys = Keys::Schedule(Schedule::Dependent(words.workflow()?)),
            "when" => workflow.trigger = events::trigger(&words.next("a trigger")?)?,
            "writes" => workflow.writes.push(words.next("a path")?),
            "takes" => workflow.parameters.push(events::parameter(&words.next("a parameter")?)?),
            "may" => workflow.within.push(pool_use(&words.next("a pool")?)?),
            "in" => workflow.pools.push(pool_use(&words.next("a pool")?)?),
            "batch" => workflow.batch = Some(batch(words.number()?, words.seconds()?)),
            "does" | "on" => executed(&mut workflow, &word, &words.next("an executor or labels")?)?,
            "serial" => workflow.concurrency = Some(words.number()?),
            "step" => flows::add_step(&mut workflow, &words.next("a step")?)?,
            "retry" => workflow.retry.count = words.number()?,
            "delay" => workflow.retry.delay_seconds = words.seconds()?,
            "doubling" => workflow.retry.growth = Growth::Exponential,
            "unknown" => workflow.retry.on_unknown = events::on_unknown(&words.next("fails, again or retries")?),
            "timeout" => workflow.wait_timeout_seconds = Some(words.seconds()?),
            "deadline" => workflow.deadline = Some(events::deadline(&words.next("a deadline")?)?),
            "opening" => workflow.wait_from = WaitStart::Opening,
            "periods" => workflow.keys = Keys::Schedule(calendar(&words.next("2h, or a zone for days")?)?),
            "ends" => workflow.end_time = Some(words.time(world)?),
            "from" => workflow.start_time = Some(words.time(world)?),
            "version" => workflow.version = Some(version(&words.next("a version")?)?),
            other => return Err(format!("not understood: {other}")),
        }
    }
    Ok(Arc::new(workflow))
}

/// Makes it a workflow of an app, whose runs no limit holds back.
fn of_app(workflow: &mut Workflow, keys: Keys) {
    (workflow.keys, workflow.concurrency) = (keys, None);
    "app".clone_into(&mut workflow.project);
}

/// Sets the executor of a job, or the labels of the workers that may run it.
fn executed(workflow: &mut Workflow, verb: &str, word: &str) -> Result<(), String> {
    match verb {
        "does" => workflow.job.executor = word.to_owned(),
        _ => workflow.job.runs_on = jobs::labels(word)?,
    }
    Ok(())
}

fn cron(word: &str) -> Result<Schedule, String> {
    let cron = Cron::parse(word).map_err(|error| error.to_string())?;
    Ok(Schedule::Cron(CronSchedule::utc(cron)))
}

fn batch(size: u32, seconds: u64) -> BatchRule {
    BatchRule { size, delay_millis: seconds * 1000 }
}

fn version(word: &str) -> Result<ProjectVersion, String> {
    ProjectVersion::new(word).map_err(|error| error.to_string())
}

fn calendar(word: &str) -> Result<Schedule, String> {
    let calendar = match word.strip_suffix('h').and_then(|hours| hours.parse().ok()) {
        Some(hours) => Calendar::hours(hours).map_err(|error| error.to_string()),
        None => Zone::parse(word).map(Calendar::daily).map_err(|error| error.to_string()),
    };
    calendar.map(Schedule::Calendar)
}

fn schedule(workflow: &mut Workflow) -> Result<&mut EventKeys, String> {
    match &mut workflow.keys {
        Keys::Events(keys) => Ok(keys),
        _ => Err("expected runs before it".to_owned()),
    }
}

fn keys(workflow: &mut Workflow) -> Result<&mut JobKeys, String> {
    match &mut workflow.keys {
        Keys::Jobs(keys) => Ok(keys),
        _ => Err("expected jobs before it".to_owned()),
    }
}

/// Requests about runs of flows.
fn about_flows(world: &mut World, verb: &str, words: &mut Script) -> Said {
    if verb == "start" {
        let workflow = words.workflow()?;
        let request = flows::start(workflow, &words.all())?;
        return Ok(world.ask(request));
    }
    let run = words.slot(world)?;
    Ok(match verb {
        "signal" => world.ask(flows::signal(run, &words.all())?),
        "repeat" => world.ask(flows::repeat(run, &words.all())?),
        _ => world.ask(flows::go_on(run, &words.all())?),
    })
}

/// Requests about event schedules.
fn about_schedules(world: &mut World, verb: &str, words: &mut Script) -> Said {
    Ok(match verb {
        "create" => {
            let schedule = workflow(world, words)?;
            world.ask(CreateSchedules { new: vec![schedule], reason: None })
        }
        "change" => {
            let schedule = workflow(world, words)?;
            world.ask(ChangeSchedule { changed: schedule, reason: None })
        }
        "delete" => world.ask(DeleteSchedules { schedules: words.rest_workflows()?, reason: None }),
        "enable" => world.ask(Enable { schedule: words.workflow()?, reason: None }),
        "disable" => world.ask(Disable { schedule: words.workflow()?, reason: None }),
        "reenable" => {
            let range = Range::new(words.time(world)?, words.time(world)?);
            world.ask(EnableByTime { schedules: words.rest_workflows()?, range, reason: None })
        }
        _ => {
            let workflow = words.workflow()?;
            let arguments = words.given()?;
            let unconstrained = words.words.pop_front().is_some();
            world.ask(FireRequest { workflow, arguments, key: None, priority: 0, unconstrained, reason: None })
        }
    })
}

fn plant(world: &mut World, words: &mut Script) -> Said {
    let workflow = words.workflow()?;
    let when = match words.next("what breaks it")?.as_str() {
        "planning" => PlantedIn::Planning,
        "looking" => PlantedIn::Looking,
        "collecting" => PlantedIn::Collecting,
        "dispatching" => PlantedIn::Dispatching,
        "reporting" => PlantedIn::Reporting,
        "asking" => PlantedIn::Asking,
        other => return Err(format!("nothing breaks by {other:?}")),
    };
    world.config.planted = Some(PlantedBreach { workflow, within: Range::new(world.now, Timestamp::MAX), when });
    Ok(world.restart())
}

fn submit(world: &mut World, words: &mut Script) -> Said {
    let mut request =
        SubmitRequest { jobs: Vec::new(), priority: 0, readd: false, arguments: Arguments::new(), reason: None };
    while let Ok(word) = words.next("") {
        match word.as_str() {
            "priority" => request.priority = words.number()?,
            "readd" => request.readd = true,
            "given" => request.arguments.extend([events::argument(&words.next("name=value")?)?]),
            job => request.jobs.push(slot(world, job)?),
        }
    }
    Ok(world.ask(request))
}

fn said(world: &mut World, words: &mut Script) -> Said {
    let direction =
        if words.next("parents or children")? == "parents" { Direction::Parents } else { Direction::Children };
    let of = words.slot(world)?;
    let asked = world.asked.iter().find(|asked| asked.of == of && asked.direction == direction).cloned();
    let relation = asked.ok_or("expected a job that functions are asked about")?;
    world.asked.remove(&relation);
    let rest: Vec<String> = std::mem::take(&mut words.words).into();
    let answer = match rest.split_first() {
        Some((word, why)) if word == "failed" => Err(why.join(" ")),
        _ => Ok(rest.iter().map(|word| jobs::named(word)).collect::<Result<_, _>>()?),
    };
    Ok(world.turn(vec![Input::Related { relation, answer }]))
}

fn offer(world: &mut World, words: &mut Script) -> Said {
    let worker = words.next("a worker")?.into();
    let offer = jobs::offer(&std::mem::take(&mut words.words).into_iter().collect::<Vec<_>>())?;
    Ok(world.turn(vec![Input::Offered { worker, offer }]))
}

/// `pool:8` or `pool:8x2`
fn pool_use(word: &str) -> Result<PoolUse, String> {
    let (pool, numbers) = word.split_once(':').ok_or("expected pool:size")?;
    let (size, permits) = numbers.split_once('x').unwrap_or((numbers, "1"));
    let number = |text: &str| text.parse().map_err(|_| format!("{text:?} is not a number"));
    let pool = PoolId::new(pool).map_err(|error| error.to_string())?;
    Ok(PoolUse { pool, size: number(size)?, permits: number(permits)?, rate: None })
}

/// `3 1=pool:2+other:1 2=pool:1`
fn asks(words: &str) -> Result<Report, String> {
    let number = |text: &str| text.parse::<u64>().map_err(|_| format!("{text:?} is not a number"));
    let mut words = words.split_whitespace();
    let version = number(words.next().ok_or("expected the number of changes")?)?;
    let mut requests = BTreeMap::new();
    for word in words {
        let (request, uses) = word.split_once('=').ok_or("expected request=pool:permits")?;
        let mut permits = BTreeMap::new();
        for one in uses.split('+') {
            let (pool, count) = one.split_once(':').ok_or("expected pool:permits")?;
            let count = u32::try_from(number(count)?).map_err(|error| error.to_string())?;
            permits.insert(PoolId::new(pool).map_err(|error| error.to_string())?, count);
        }
        requests.insert(number(request)?, permits);
    }
    Ok(Report::Asks { version, requests })
}

/// An hourly workflow that is always ready and runs one slot at a time.
fn plain(id: &WorkflowId) -> Workflow {
    Workflow::new(id.clone(), Schedule::Cron(CronSchedule::hourly()), Job::new("command", serde_json::Map::new()))
}

fn answer(world: &mut World, words: &mut Script) -> Said {
    let probe = Probe::path(format!("file://{}", words.next("a path")?));
    let verdict = match words.next("an answer")?.as_str() {
        "yes" => Verdict::Yes,
        "no" => Verdict::No,
        "never" => Verdict::Never,
        "failed" => Verdict::Failed,
        other => return Err(format!("no answer is named {other:?}")),
    };
    let answer = ProbeAnswer { verdict, detail: words.rest(), at: world.now };
    Ok(world.turn(vec![Input::ProbeAnswered { probe, answer }]))
}

fn report(world: &mut World, words: &mut Script) -> Said {
    let run = words.next("a run")?;
    let (of, number) = run.split_once('#').ok_or("expected workflow@time#number")?;
    let number = number.parse().map_err(|_| "expected the number of a run")?;
    let run = RunId { slot: slot(world, of)?, number };
    let verb = words.next("a report")?;
    let reason = words.rest();
    let report = match verb.as_str() {
        "started" => Report::Started { external_id: format!("x{number}") },
        "deferred" => Report::Deferred { reason },
        "never-started" => Report::NeverStarted,
        "succeeded" => Report::Ended { outcome: Outcome::Succeeded },
        "failed" => Report::Ended { outcome: Outcome::Failed { reason, exit_status: None, code: None } },
        "refused" => Report::Ended { outcome: Outcome::refused(reason) },
        "unknown" => Report::Ended { outcome: Outcome::Unknown { reason } },
        "lost" => Report::Ended { outcome: Outcome::Lost { reason } },
        "killed" => Report::Ended { outcome: Outcome::Killed },
        "gave" => {
            let (name, value) = reason.split_once('=').ok_or("expected name=value")?;
            let value = if value.starts_with(['[', '{']) { flows::json(value) } else { long(value).into() };
            Report::Gave { outputs: [(name.to_owned(), value)].into_iter().collect() }
        }
        "asks" => asks(&reason)?,
        other => return Err(format!("no report is named {other:?}")),
    };
    let input = Input::RunReported { run, report };
    Ok(if world.ticks { world.turn(vec![input]) } else { world.note(input) })
}

fn downstream(world: &mut World, words: &mut Script) -> Said {
    let slot = words.slot(world)?;
    let mut request =
        DownstreamRequest { slot, arguments: Arguments::new(), reason: None, kill_live: false, dry_run: false };
    while let Ok(word) = words.next("") {
        match word.as_str() {
            "killing" => request.kill_live = true,
            "given" => request.arguments.extend([events::argument(&words.next("name=value")?)?]),
            "dry" => request.dry_run = true,
            "because" => request.reason = Some(words.rest()),
            other => return Err(format!("not understood: {other}")),
        }
    }
    Ok(world.ask(request))
}

fn backfill(world: &mut World, words: &mut Script) -> Said {
    let (id, workflow) = (words.backfill()?, words.workflow()?);
    let mut request = BackfillRequest::missing(id, workflow, Range::new(world.now, world.now));
    while let Ok(word) = words.next("") {
        match word.as_str() {
            "from" => request.range.start = words.time(world)?,
            "to" => request.range.end = words.time(world)?,
            "missing" => request.mode = BackfillMode::Missing,
            "unsuccessful" => request.mode = BackfillMode::Unsuccessful,
            "all" => request.mode = BackfillMode::All,
            "priority" => request.priority = words.number()?,
            "given" => request.arguments.extend([events::argument(&words.next("name=value")?)?]),
            "made-by" => {
                let version = words.next("a version")?.parse().map_err(|error: VersionError| error.to_string())?;
                request.made_by = Some(version);
            }
            "dry" => request.dry_run = true,
            other => return Err(format!("not understood: {other}")),
        }
    }
    Ok(world.ask(request))
}

fn about_backfill(world: &mut World, verb: &str, words: &mut Script) -> Said {
    let backfill = words.backfill()?;
    let reason = None;
    Ok(match verb {
        "cancel" => world.ask(CancelBackfill { backfill, reason }),
        "pause-backfill" => world.ask(PauseBackfill { backfill, reason }),
        "resume-backfill" => world.ask(ResumeBackfill { backfill, reason }),
        "rerun-backfill" => world.ask(RerunBackfill { backfill, reason }),
        _ => world.ask(PrioritiseBackfill { backfill, priority: words.number()?, reason }),
    })
}

/// The stored slots, neighbours of the same state in one line.
fn show(world: &World, words: &mut Script) -> Vec<String> {
    let only = words.next("").ok();
    let wanted = |id: &SlotRef| only.as_ref().is_none_or(|only| id.workflow.as_str() == only);
    let slots: Vec<_> = world.disk.slots.iter().filter(|(id, _)| wanted(id)).collect();
    let told = Words { day: world.day };
    let line = |group: &[(&SlotRef, &kelos_model::Slot)]| {
        let ((first, slot), (last, _)) = (group.first()?, group.last()?);
        let range = if group.len() == 1 {
            String::new()
        } else {
            format!("..{}", last.key.time().map_or_else(|| last.key.short(), |at| told.time(at)))
        };
        let many = if group.len() == 1 { String::new() } else { format!(" ({} slots)", group.len()) };
        let retries = if slot.retries == 0 { String::new() } else { format!(", {} retries", slot.retries) };
        Some(format!("  {}{range} {}{retries}{many}", told.slot(first), slot.state))
    };
    let same = |a: &(&SlotRef, &kelos_model::Slot), b: &(&SlotRef, &kelos_model::Slot)| {
        a.0.workflow == b.0.workflow && a.1.state == b.1.state && a.1.retries == b.1.retries
    };
    let mut lines: Vec<_> = slots.chunk_by(same).filter_map(line).collect();
    let rows = world.disk.workflows.values().filter(|row| only.as_ref().is_none_or(|only| row.id.as_str() == only));
    for row in rows {
        for stretch in row.planned.backlog.stretches() {
            let (start, end) = (told.time(stretch.range.start), told.time(stretch.range.end));
            let of = stretch.backfill.as_ref().map(|backfill| format!(" of backfill {backfill}")).unwrap_or_default();
            let priority =
                if stretch.priority == 0 { String::new() } else { format!(", priority {}", stretch.priority) };
            lines.push(format!("  {}@{start}..{end} {} in the backlog{of}{priority}", row.id, stretch.state()));
        }
    }
    if lines.is_empty() { vec!["  no slots".to_owned()] } else { lines }
}

/// A value; `*70000` stands for that many letters.
fn long(value: &str) -> String {
    let length = value.strip_prefix('*').and_then(|length| length.parse().ok());
    length.map_or_else(|| value.to_owned(), |length| "x".repeat(length))
}
