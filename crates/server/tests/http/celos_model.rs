//! A small model of what Celos does and answers, as its reference has it, with the differences of decision 0007. It knows
//! nothing of the server: times are seconds, triggers are asked one by one, and a step looks at every slot.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde_json::{Value, json};

const HOUR: i64 = 3600;
const WINDOW: i64 = 168 * HOUR;

/// A moment as Celos writes it.
pub(crate) fn full(seconds: i64) -> String {
    Timestamp::from_second(seconds).unwrap().strftime("%Y-%m-%dT%H:%M:%S.000Z").to_string()
}

#[derive(Clone, Debug)]
pub(crate) enum Trigger {
    Always,
    /// A path of the machine's, and the file system that the script names.
    Path(String, &'static str),
    Delay(i64),
    Success(String),
    Offset(i64, Box<Trigger>),
    Not(Box<Trigger>),
    And(Vec<Trigger>),
    Or(Vec<Trigger>),
}

impl Trigger {
    pub(crate) fn has_path(&self) -> bool {
        match self {
            Trigger::Path(..) => true,
            Trigger::Offset(_, inner) | Trigger::Not(inner) => inner.has_path(),
            Trigger::And(some) | Trigger::Or(some) => some.iter().any(Trigger::has_path),
            Trigger::Always | Trigger::Delay(_) | Trigger::Success(_) => false,
        }
    }

    pub(crate) fn script(&self) -> String {
        let all = |some: &[Trigger]| some.iter().map(Trigger::script).collect::<Vec<_>>().join(", ");
        match self {
            Trigger::Always => "celos.alwaysTrigger()".to_owned(),
            Trigger::Path(path, system) => format!("celos.hdfsCheckTrigger({path:?}, {system:?})"),
            Trigger::Delay(seconds) => format!("celos.delayTrigger({seconds})"),
            Trigger::Success(of) => format!("celos.successTrigger({of:?})"),
            Trigger::Offset(seconds, inner) => format!("celos.offsetTrigger({seconds}, {})", inner.script()),
            Trigger::Not(inner) => format!("celos.notTrigger({})", inner.script()),
            Trigger::And(some) => format!("celos.andTrigger({})", all(some)),
            Trigger::Or(some) => format!("celos.orTrigger({})", all(some)),
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Schedule {
    /// Each so many hours from midnight, at a minute.
    Every(i64, i64),
    Dependent(String),
}

#[derive(Clone, Debug)]
pub(crate) struct Flow {
    pub(crate) id: String,
    pub(crate) schedule: Schedule,
    pub(crate) start: Option<i64>,
    pub(crate) trigger: Trigger,
    pub(crate) places: usize,
    pub(crate) retries: u32,
    pub(crate) timeout: Option<i64>,
}

impl Flow {
    pub(crate) fn script(&self) -> String {
        let schedule = match &self.schedule {
            Schedule::Every(1, 0) => "celos.hourlySchedule()".to_owned(),
            Schedule::Every(hours, minute) => format!("celos.cronSchedule('0 {minute} 0/{hours} * * ?')"),
            Schedule::Dependent(on) => format!("celos.dependentSchedule({on:?})"),
        };
        let start = self.start.map_or(String::new(), |start| format!("startTime: {:?},", full(start)));
        let timeout = self.timeout.map_or(String::new(), |seconds| format!("waitTimeoutSeconds: {seconds},"));
        format!(
            "celos.defineWorkflow({{ id: {:?}, schedule: {schedule}, {start} {timeout} maxRetryCount: {}, \
             schedulingStrategy: celos.serialSchedulingStrategy({}), trigger: {}, \
             externalService: celos.oozieExternalService({{}}, 'http://oozie') }});",
            self.id,
            self.retries,
            self.places,
            self.trigger.script()
        )
    }

    fn begin(&self) -> i64 {
        self.start.unwrap_or(0)
    }
}

/// The content of a file of the folder.
#[derive(Clone, Debug)]
pub(crate) enum File {
    Good(Flow),
    Broken,
    Gone,
}

/// A slot that came to be.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    pub(crate) status: &'static str,
    retries: u32,
    external: Option<String>,
    /// Whether Celos would have written a record of it.
    pub(crate) recorded: bool,
    /// How many runs it has had.
    pub(crate) runs: u32,
    /// Whether somebody asked for it, and when last.
    asked: Option<i64>,
    /// When it came to its status.
    since: i64,
}

impl Slot {
    fn waiting(asked: Option<i64>) -> Slot {
        Slot { status: "WAITING", retries: 0, external: None, recorded: false, runs: 0, asked, since: 0 }
    }

    fn enter(&mut self, status: &'static str, now: i64) {
        (self.status, self.since, self.recorded) = (status, now, true);
    }

    fn is_over(&self) -> bool {
        !["WAITING", "READY", "RUNNING"].contains(&self.status)
    }

    fn json(slot: Option<&Slot>, time: i64) -> Value {
        let waiting = Slot::waiting(None);
        let slot = slot.unwrap_or(&waiting);
        json!({ "time": full(time), "status": slot.status, "externalID": slot.external, "retryCount": slot.retries })
    }
}

/// A refusal: a status and, where Celos's clients know it, the text.
pub(crate) type Refused = (u16, Option<String>);
pub(crate) type Answered = Result<Value, Refused>;

fn refused<T>(status: u16, text: impl Into<String>) -> Result<T, Refused> {
    Err((status, Some(text.into())))
}

#[derive(Debug, Default)]
pub(crate) struct Model {
    pub(crate) now: i64,
    /// Below which the paths of triggers lie that are relative.
    works_in: PathBuf,
    pub(crate) files: BTreeMap<String, File>,
    pub(crate) loaded: BTreeMap<String, Flow>,
    /// How often each workflow tries again, also one that is gone.
    retries: BTreeMap<String, u32>,
    paused: BTreeSet<String>,
    pub(crate) slots: BTreeMap<(String, i64), Slot>,
}

impl Model {
    pub(crate) fn new(now: i64, works_in: PathBuf) -> Model {
        Model { now, works_in, ..Model::default() }
    }

    /// Reads the files; a broken one stays what it was.
    pub(crate) fn load(&mut self) {
        for (id, file) in &self.files {
            match file {
                File::Good(flow) => {
                    self.retries.insert(id.clone(), flow.retries);
                    self.loaded.insert(id.clone(), flow.clone());
                }
                File::Broken => {}
                File::Gone => drop(self.loaded.remove(id)),
            }
        }
    }

    fn flow(&self, id: &str) -> Result<&Flow, Refused> {
        self.loaded.get(id).map_or_else(|| refused(404, format!("Workflow not found: {id}")), Ok)
    }

    /// The hours and the minute of a workflow's schedule.
    fn schedule(&self, flow: &Flow) -> Result<(i64, i64), Refused> {
        match &flow.schedule {
            Schedule::Every(hours, minute) => Ok((*hours, *minute)),
            Schedule::Dependent(on) => match self.loaded.get(on) {
                Some(other) => self.schedule(other),
                None => Err((400, None)),
            },
        }
    }

    fn has_time(&self, flow: &Flow, time: i64) -> Result<bool, Refused> {
        let (hours, minute) = self.schedule(flow)?;
        Ok(time.rem_euclid(hours * HOUR) == minute * 60)
    }

    fn times(&self, flow: &Flow, start: i64, end: i64) -> Result<Vec<i64>, Refused> {
        let (hours, minute) = self.schedule(flow)?;
        let step = hours * HOUR;
        let all = (start.div_euclid(step)..=end.div_euclid(step)).map(|number| number * step + minute * 60);
        Ok(all.filter(|time| (start..end).contains(time)).collect())
    }

    /// A step, until nothing more can happen at its moment.
    pub(crate) fn step(&mut self, only: Option<&BTreeSet<String>>) {
        self.load();
        let flows: Vec<Flow> = self.loaded.values().cloned().collect();
        let goes = |flow: &&Flow| !self.paused.contains(&flow.id) && only.is_none_or(|ids| ids.contains(&flow.id));
        let flows: Vec<&Flow> = flows.iter().filter(goes).collect();
        for flow in flows {
            let window = (self.now - WINDOW).max(flow.begin());
            let Ok(times) = self.times(flow, window, self.now) else { continue };
            for time in times {
                self.slots.entry((flow.id.clone(), time)).or_insert_with(|| Slot::waiting(None));
            }
            self.gate(flow);
            self.start(flow);
        }
    }

    /// The slots that a step looks at.
    fn live(&self, flow: &Flow) -> Vec<(String, i64)> {
        let mine = self.slots.iter().filter(|((id, _), _)| *id == flow.id);
        let here = mine.filter(|((_, time), slot)| {
            self.has_time(flow, *time) == Ok(true) && (*time >= flow.begin() || slot.asked.is_some())
        });
        here.map(|(key, _)| key.clone()).collect()
    }

    fn gate(&mut self, flow: &Flow) {
        for key in self.live(flow).into_iter().filter(|key| self.slots[key].status == "WAITING").collect::<Vec<_>>() {
            let slot = &self.slots[&key];
            let last = flow.timeout.map(|seconds| key.1 + seconds).filter(|last| self.now > *last);
            let is_met = self.ask(&flow.trigger, key.1, self.now);
            // A trigger that the clock or another slot met only after the timeout was met too late.
            let in_time = last.filter(|_| slot.runs == 0).is_none_or(|last| {
                let moment = slot.asked.map_or(last, |asked| last.max(asked));
                self.ask(&flow.trigger, key.1, moment)
            });
            let status = match (is_met && in_time, last) {
                (true, _) => "READY",
                (false, Some(_)) => "WAIT_TIMEOUT",
                (false, None) => continue,
            };
            let now = self.now;
            self.slots.get_mut(&key).unwrap().enter(status, now);
        }
    }

    fn start(&mut self, flow: &Flow) {
        let running = self.slots.iter().filter(|((id, _), slot)| *id == flow.id && slot.status == "RUNNING").count();
        let ready = self.live(flow).into_iter().filter(|key| self.slots[key].status == "READY");
        let now = self.now;
        for key in ready.take(flow.places.saturating_sub(running)).collect::<Vec<_>>() {
            let slot = self.slots.get_mut(&key).unwrap();
            slot.runs += 1;
            slot.external = Some(format!("{:07}-oozie-W", slot.runs));
            slot.enter("RUNNING", now);
        }
    }

    /// Whether a trigger was met at a moment; what is there counts as having been there.
    fn ask(&self, trigger: &Trigger, time: i64, moment: i64) -> bool {
        self.answer(trigger, time, moment)["ready"] == json!(true)
    }

    /// The answer of `/trigger-status`.
    fn answer(&self, trigger: &Trigger, time: i64, moment: i64) -> Value {
        let nested = |some: &[Trigger]| some.iter().map(|one| self.answer(one, time, moment)).collect::<Vec<_>>();
        let ready = |all: &Value| all["ready"] == json!(true);
        let show = |kind: &str, ready: bool, text: String, nested: Vec<Value>| json!({ "type": kind, "ready": ready, "description": text, "subStatuses": nested });
        let word = |met: bool| if met { "is ready" } else { "is not ready" };
        match trigger {
            Trigger::Always => show("AlwaysTrigger", true, "Always ready".to_owned(), vec![]),
            Trigger::Path(path, _) => {
                let path = resolved(&filled(path, time));
                let met = self.works_in.join(&path).exists();
                show("HDFSCheckTrigger", met, format!("HDFS path {path} {}", word(met)), vec![])
            }
            Trigger::Delay(seconds) => {
                let (until, met) = (full(time + seconds), moment > time + seconds);
                let text = if met { format!("Ready since {until}") } else { format!("Delayed until {until}") };
                show("DelayTrigger", met, text, vec![])
            }
            Trigger::Success(of) => {
                let slot = self.slots.get(&(of.clone(), time));
                let met = slot.is_some_and(|slot| slot.status == "SUCCESS" && slot.since <= moment);
                show("SuccessTrigger", met, format!("Workflow slot {of}@{} {}", full(time), word(met)), vec![])
            }
            Trigger::Offset(seconds, inner) => {
                let inner = self.answer(inner, time + seconds, moment);
                let word = if ready(&inner) { "ready" } else { "not ready" };
                let text = format!("Nested trigger offset by {seconds} seconds {word}");
                show("OffsetTrigger", ready(&inner), text, vec![inner])
            }
            Trigger::Not(inner) => {
                let inner = self.answer(inner, time, moment);
                let text = match ready(&inner) {
                    true => "Not ready, nested trigger is ready",
                    false => "Ready, nested trigger isn't ready",
                };
                show("NotTrigger", !ready(&inner), text.to_owned(), vec![inner])
            }
            Trigger::And(some) => {
                let nested = nested(some);
                let met = nested.iter().all(ready);
                let text = if met { "All nested triggers are ready" } else { "Not all nested triggers are ready" };
                show("AndTrigger", met, text.to_owned(), nested)
            }
            Trigger::Or(some) => {
                let nested = nested(some);
                let met = nested.iter().any(ready);
                let text = match met {
                    true => "One or more nested triggers are ready",
                    false => "None of the nested triggers are ready",
                };
                show("OrTrigger", met, text.to_owned(), nested)
            }
        }
    }

    /// The runs that go on.
    pub(crate) fn running(&self) -> Vec<(String, i64)> {
        self.slots.iter().filter(|(_, slot)| slot.status == "RUNNING").map(|(key, _)| key.clone()).collect()
    }

    /// A run ends.
    pub(crate) fn end(&mut self, key: &(String, i64), succeeded: bool) {
        let (now, retries) = (self.now, self.retries[&key.0]);
        let slot = self.slots.get_mut(key).unwrap();
        match succeeded {
            true => slot.enter("SUCCESS", now),
            false if slot.retries < retries => {
                slot.retries += 1;
                slot.external = None;
                slot.enter("WAITING", now);
            }
            false => slot.enter("FAILURE", now),
        }
    }

    /// Refuses a slot of no workflow, or of no time of its schedule.
    fn check(&self, id: &str, time: i64) -> Result<(), Refused> {
        let flow = self.flow(id)?;
        match self.has_time(flow, time)? {
            true => Ok(()),
            false => refused(404, format!("Slot is not found: {id}@{}", full(time))),
        }
    }

    pub(crate) fn rerun(&mut self, id: &str, time: i64) -> Result<(), Refused> {
        self.check(id, time)?;
        let (begin, now) = (self.flow(id)?.begin(), self.now);
        let slot = self.slots.entry((id.to_owned(), time)).or_insert_with(|| Slot::waiting(Some(now)));
        if slot.is_over() {
            (slot.retries, slot.external, slot.asked) = (0, None, Some(now));
            slot.enter("WAITING", now);
        } else if time < begin && slot.asked.is_none() {
            // Celos refuses it where it has a record, and leaves it alone for ever.
            slot.asked = Some(now);
        } else if slot.recorded {
            return refused(400, format!("Slot must be in successful or failed, but is: {}", slot.status));
        }
        Ok(())
    }

    pub(crate) fn kill(&mut self, id: &str, time: i64) -> Result<(), Refused> {
        self.check(id, time)?;
        let now = self.now;
        let slot = self.slots.entry((id.to_owned(), time)).or_insert_with(|| Slot::waiting(Some(now)));
        if slot.is_over() {
            return refused(400, format!("Slot must be in indeterminate state, but is: {}", slot.status));
        }
        slot.retries = 0;
        slot.enter("KILLED", now);
        Ok(())
    }

    pub(crate) fn pause(&mut self, id: &str, paused: bool) -> Result<(), Refused> {
        self.flow(id)?;
        if paused {
            self.paused.insert(id.to_owned())
        } else {
            self.paused.remove(id)
        };
        Ok(())
    }

    pub(crate) fn list(&self) -> Value {
        json!({ "ids": self.loaded.keys().collect::<Vec<_>>() })
    }

    fn shown(&self, id: &str, start: Option<i64>, end: Option<i64>) -> Result<Vec<Value>, Refused> {
        let flow = self.flow(id)?;
        let end = end.unwrap_or(self.now);
        let start = start.unwrap_or_else(|| (end - WINDOW).max(flow.begin()));
        if start < end - WINDOW {
            return refused(400, "Time interval between start and end is limited to: 168 hours");
        }
        let times = self.times(flow, start, end)?;
        Ok(times.into_iter().map(|time| Slot::json(self.slots.get(&(id.to_owned(), time)), time)).collect())
    }

    pub(crate) fn workflow_slots(&self, id: &str, start: Option<i64>, end: Option<i64>) -> Answered {
        let mut slots = self.shown(id, start, end)?;
        slots.reverse();
        let info = json!({ "url": null, "contacts": [] });
        Ok(json!({ "info": info, "paused": self.paused.contains(id), "slots": slots }))
    }

    pub(crate) fn workflow(&self, id: &str, end: Option<i64>) -> Answered {
        let slots = self.shown(id, None, end)?;
        let named = slots.into_iter().map(|slot| (slot["time"].as_str().unwrap().to_owned(), slot));
        Ok(Value::Object(named.collect()))
    }

    pub(crate) fn slot_state(&self, id: &str, time: i64) -> Answered {
        match self.slots.get(&(id.to_owned(), time)).filter(|slot| slot.recorded) {
            Some(slot) => Ok(Slot::json(Some(slot), time)),
            None => refused(404, format!("Slot not found: {id}")),
        }
    }

    pub(crate) fn trigger_status(&self, id: &str, time: i64) -> Answered {
        Ok(self.answer(&self.flow(id)?.trigger, time, self.now))
    }
}

/// A text with the parts of a moment in it.
fn filled(text: &str, time: i64) -> String {
    let at = Timestamp::from_second(time).unwrap();
    [
        ("${year}", "%Y"),
        ("${month}", "%m"),
        ("${day}", "%d"),
        ("${hour}", "%H"),
        ("${minute}", "%M"),
        ("${second}", "%S"),
    ]
    .iter()
    .fold(text.to_owned(), |text, (name, form)| text.replace(name, &at.strftime(form).to_string()))
}

/// A path as Hadoop takes it: by its text alone, whatever file system it is resolved against.
fn resolved(path: &str) -> String {
    let path = path.strip_prefix("file:").unwrap_or(path);
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/').filter(|part| !matches!(*part, "" | ".")) {
        match part {
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    let root = if Path::new(path).is_absolute() { "/" } else { "" };
    format!("{root}{}", parts.join("/"))
}
