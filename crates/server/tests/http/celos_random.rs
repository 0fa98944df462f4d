//! A client of Celos's dialect that does whatever comes to its mind, while the clock moves, files change and runs end. Each answer
//! is what a small model of Celos says.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use axum::http::Method;
use jiff::Timestamp;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use crate::celos_model::{Answered, File, Flow, Model, Refused, Schedule, Trigger, full};
use crate::dice::{Dice, seeds};
use crate::support::{NOW, Reply, Server, Setup, at, slot};

const HOUR: i64 = 3600;
const DAY: i64 = 24 * HOUR;

/// The workflows of a seed; the first has a schedule of its own.
const IDS: [&str; 4] = ["a", "wörk flow", "b@c", "x.y"];

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

/// A server, its model, and what was done to both.
struct Pair {
    server: Server,
    model: Model,
    seed: u64,
    dice: Dice,
    done: String,
    mistakes: Vec<String>,
}

impl Drop for Pair {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("KELOS_SEED={}\n{}", self.seed, self.done);
        }
    }
}

/// Paths below a folder, some of which are written oddly.
fn path(dice: &mut Dice, root: &str) -> Trigger {
    let path = dice.value(vec![
        format!("{root}/in-${{hour}}"),
        format!("{root}//a/.././in-${{hour}}/"),
        format!("{root}/p%20q-${{hour}}"),
        format!("{root}/ünï ${{day}}"),
        format!("{root}/file/in-${{hour}}"),
        format!("{root}/{}", "n".repeat(300)),
        "p%20q/../nowhere-${minute}".to_owned(),
        format!("{root}/in-${{hour}}"),
    ]);
    let system = dice.value(vec!["file:///", "file:", "file:///sub", "file:/sub/x/"]);
    Trigger::Path(path, system)
}

fn trigger(dice: &mut Dice, root: &str, depth: usize) -> Trigger {
    let some = |dice: &mut Dice| (0..dice.below(3)).map(|_| trigger(dice, root, depth - 1)).collect();
    match dice.below(if depth == 0 { 7 } else { 12 }) {
        0 | 1 => Trigger::Always,
        2 | 3 => path(dice, root),
        4 => Trigger::Delay(dice.value(vec![0, -HOUR, 60, HOUR, 2 * DAY])),
        5 | 6 => Trigger::Success(dice.of(&["a", "wörk flow", "nobody"]).to_owned()),
        7 => Trigger::Not(Box::new(trigger(dice, root, depth - 1))),
        8 | 9 => {
            let by = dice.value(vec![0, -HOUR, HOUR, -DAY, 90]);
            Trigger::Offset(by, Box::new(trigger(dice, root, depth - 1)))
        }
        10 => Trigger::And(some(dice)),
        _ => Trigger::Or(some(dice)),
    }
}

fn flow(dice: &mut Dice, root: &str, id: &str, now: i64) -> Flow {
    let schedule = match dice.below(6) {
        0 if id != IDS[0] => Schedule::Dependent(IDS[0].to_owned()),
        1 => Schedule::Every(1, 0),
        2 => Schedule::Every(1, 30),
        3 => Schedule::Every(4, 0),
        _ => Schedule::Every(6, 30),
    };
    let hours = dice.value(vec![0, 3, 12, 12, 30, 200, -5]);
    let trigger = trigger(dice, root, 2);
    // Answers about paths come in any order, and whoever has one first takes the place: there is one for each.
    let places = if trigger.has_path() { vec![0, 10_000, 10_000] } else { vec![1, 2, 5, 0] };
    Flow {
        id: id.to_owned(),
        schedule,
        start: (!dice.one_in(6)).then(|| (now - hours * HOUR).div_euclid(1800) * 1800),
        trigger,
        places: dice.value(places),
        retries: dice.value(vec![0, 0, 1, 3]),
        timeout: dice.one_in(3).then(|| dice.value(vec![0, HOUR, 6 * HOUR, 2 * DAY])),
    }
}

impl Pair {
    async fn start(seed: u64) -> Pair {
        let setup = Setup { on_disk: seed % 4 == 3, max_running: 10_000, ..Setup::default() };
        let server = Server::with(setup, "").await;
        let works_in = std::env::current_dir().unwrap();
        let model = Model::new(at(NOW).as_second(), works_in);
        let mut pair = Pair { server, model, seed, dice: Dice(seed), done: String::new(), mistakes: Vec::new() };
        std::fs::create_dir(pair.root()).unwrap();
        std::fs::write(format!("{}/file", pair.root()), "").unwrap();
        for id in IDS {
            pair.edit(id);
        }
        pair
    }

    fn root(&self) -> String {
        format!("{}/data", self.server.folder.path().display())
    }

    fn note(&mut self, text: impl AsRef<str>) {
        writeln!(self.done, "  {} {}", full(self.model.now), text.as_ref()).unwrap();
    }

    /// Changes the file of a workflow; the next load reads it.
    fn edit(&mut self, id: &str) {
        let (root, now) = (self.root(), self.model.now);
        let file = match self.model.files.get(id) {
            Some(_) if self.dice.one_in(6) => File::Broken,
            Some(_) if self.dice.one_in(6) => File::Gone,
            Some(File::Good(old)) if self.dice.one_in(2) => {
                let new = flow(&mut self.dice, &root, id, now);
                File::Good(Flow { start: new.start, ..old.clone() })
            }
            _ => File::Good(flow(&mut self.dice, &root, id, now)),
        };
        let name = format!("f{}.js", IDS.iter().position(|one| *one == id).unwrap());
        match &file {
            File::Good(flow) => self.server.write(&name, &flow.script()),
            File::Broken => {
                let text =
                    self.dice.of(&["var x = ;", "celos.nothing();", "throw 'up';", "while (1) { throw celos; }"]);
                self.server.write(&name, text);
            }
            File::Gone => drop(std::fs::remove_file(self.server.folder.path().join("workflows").join(&name))),
        }
        self.note(format!("file {name}: {file:?}"));
        self.model.files.insert(id.to_owned(), file);
    }

    /// Makes a file that triggers look for, or takes it away.
    fn touch(&mut self) {
        let (hour, day) = (self.dice.below(24), 6 + self.dice.below(10));
        let name = match self.dice.below(4) {
            0 => format!("p%20q-{hour:02}"),
            1 => format!("ünï {day:02}"),
            _ => format!("in-{hour:02}"),
        };
        let path = format!("{}/{name}", self.root());
        let there = Path::new(&path);
        match there.exists() {
            true if there.is_dir() => std::fs::remove_dir(there).unwrap(),
            true => std::fs::remove_file(there).unwrap(),
            false if self.dice.one_in(4) => std::fs::create_dir(there).unwrap(),
            false => std::fs::write(there, "").unwrap(),
        }
        self.note(format!("touch {name}: {}", there.exists()));
    }

    fn id(&mut self) -> String {
        if self.dice.one_in(15) { "nobody".to_owned() } else { self.dice.of(&IDS).to_owned() }
    }

    /// A time of a slot, or one that is like it.
    fn time(&mut self, id: &str) -> i64 {
        let mine: Vec<i64> = self.model.slots.keys().filter(|(one, _)| one == id).map(|(_, time)| *time).collect();
        let near = self.model.now.div_euclid(1800) * 1800;
        match self.dice.below(8) {
            0..=3 if !mine.is_empty() => *self.dice.pick(&mine),
            4 => near + 1 + i64::try_from(self.dice.below(90)).unwrap(),
            5 => near - 9 * DAY + i64::try_from(self.dice.below(48)).unwrap() * 1800,
            _ => near - DAY + i64::try_from(self.dice.below(60)).unwrap() * 1800,
        }
    }

    async fn ask(&mut self, method: Method, path: &str) -> Reply {
        self.note(format!("{method} {path}"));
        self.server.ask(method, path, "").await
    }

    fn mistake(&mut self, what: String) {
        self.note(format!("MISTAKE {what}"));
        self.mistakes.push(what);
    }

    /// Holds a refusal, or that there was none, against the model.
    fn hold(&mut self, reply: &Reply, expected: Result<(), Refused>) {
        let (status, text) = match expected {
            Ok(()) => (200, None),
            Err(refused) => refused,
        };
        if reply.status.as_u16() != status || text.as_ref().is_some_and(|text| *text != reply.text) {
            self.mistake(format!("expected {status} {text:?}, got {} {:?}", reply.status, reply.text));
        } else if status != 200 && reply.text.trim().is_empty() {
            self.mistake(format!("{status} says nothing"));
        }
    }

    fn hold_json(&mut self, reply: &Reply, expected: Answered) {
        match expected {
            Ok(value) if reply.status == 200 => {
                let shown: Value = serde_json::from_str(&reply.text).unwrap_or_default();
                if let Some(what) = difference("", &value, &shown) {
                    self.mistake(what);
                }
            }
            other => self.hold(reply, other.map(drop)),
        }
    }

    async fn step(&mut self) {
        let by = self.dice.value(vec![0, 1, 60, 1020, HOUR, HOUR, 6 * HOUR, 6 * HOUR, DAY, 4 * DAY]);
        self.model.now += by;
        self.server.set_clock(Timestamp::from_second(self.model.now).unwrap());
        let only: Option<BTreeSet<String>> = self.dice.one_in(5).then(|| (0..2).map(|_| self.id()).collect());
        let ids = only.iter().map(|ids| format!("ids={}", encoded(&ids.iter().cloned().collect::<Vec<_>>().join(","))));
        let time = (!self.dice.one_in(3)).then(|| format!("time={}", full(self.model.now)));
        let query: Vec<String> = ids.chain(time).collect();
        let reply = self.ask(Method::POST, &format!("/scheduler?{}", query.join("&"))).await;
        self.model.step(only.as_ref());
        self.hold(&reply, Ok(()));
        self.look_at_all().await;
    }

    /// All slots of all workflows, in pieces that one request may ask for.
    async fn look_at_all(&mut self) {
        for id in IDS {
            for start in [self.model.now - 14 * DAY, self.model.now - 7 * DAY, self.model.now] {
                let end = start + 7 * DAY;
                let path = format!("/workflow-slots?id={}&start={}&end={}", encoded(id), full(start), full(end));
                let reply = self.server.get(&path).await;
                let expected = self.model.workflow_slots(id, Some(start), Some(end));
                self.hold_json(&reply, expected);
            }
        }
    }

    async fn end_a_run(&mut self) {
        let running = self.model.running();
        if running.is_empty() {
            return;
        }
        let key = self.dice.pick(&running).clone();
        let (number, succeeded) = (self.model.slots[&key].runs, !self.dice.one_in(3));
        self.note(format!("end {key:?} {number}: {succeeded}"));
        self.server.end(&slot(&key.0, &full(key.1)), number, succeeded).await;
        self.model.end(&key, succeeded);
    }

    async fn post(&mut self) {
        let id = self.id();
        let time = self.time(&id);
        let query = format!("id={}&time={}", encoded(&id), full(time));
        match self.dice.below(7) {
            0..=2 => {
                let reply = self.ask(Method::POST, &format!("/rerun?{query}")).await;
                let expected = self.model.rerun(&id, time);
                self.hold(&reply, expected);
            }
            3 | 4 => {
                let reply = self.ask(Method::POST, &format!("/kill?{query}")).await;
                let expected = self.model.kill(&id, time);
                let is_dead = reply.status == 200;
                self.hold(&reply, expected);
                if is_dead {
                    let id = slot(&id, &full(time));
                    let alive = |server: &Server| server.node.reader().slot(&id).unwrap().unwrap().run_alive;
                    self.server.until(|server| !alive(server)).await;
                }
            }
            5 => {
                let word = self.dice.of(&["&paused=true", "&paused=TRUE", "&paused=false", ""]);
                let reply = self.ask(Method::POST, &format!("/pause?id={}{word}", encoded(&id))).await;
                let expected = self.model.pause(&id, word.to_lowercase().ends_with("true"));
                self.hold(&reply, expected);
            }
            _ => {
                let reply = self.ask(Method::POST, "/clear-cache").await;
                self.model.load();
                self.hold(&reply, Ok(()));
            }
        }
    }

    async fn get(&mut self) {
        let id = self.id();
        let time = self.time(&id);
        let (name, given) = (encoded(&id), (!self.dice.one_in(6)).then_some(time));
        let and = |name: &str, time: Option<i64>| time.map_or(String::new(), |time| format!("&{name}={}", full(time)));
        let (path, expected) = match self.dice.below(6) {
            0 => ("/workflow-list".to_owned(), Ok(self.model.list())),
            1 => {
                let end = given.map(|time| time + i64::try_from(self.dice.below(200)).unwrap() * HOUR);
                let start = self.dice.one_in(2).then_some(time);
                let path = format!("/workflow-slots?id={name}{}{}", and("start", start), and("end", end));
                (path, self.model.workflow_slots(&id, start, end))
            }
            2 => (format!("/workflow?id={name}{}", and("time", given)), self.model.workflow(&id, given)),
            3 => {
                let expected = self.model.slot_state(&id, given.unwrap_or(self.model.now));
                (format!("/slot-state?id={name}{}", and("time", given)), expected)
            }
            _ => {
                let expected = self.model.trigger_status(&id, given.unwrap_or(self.model.now));
                (format!("/trigger-status?id={name}{}", and("time", given)), expected)
            }
        };
        let reply = self.ask(Method::GET, &path).await;
        self.hold_json(&reply, expected);
    }

    /// A request that no client should send.
    async fn odd(&mut self) {
        let id = self.dice.of(&["", "?id=", "?id=%20", "?id=a%2Fb", "?time=2015-09-13T15:00Z"]);
        let time = self.dice.of(&[
            "yesterday",
            "",
            "2015-13-01",
            "2015-09-13T15:00%2B01:00",
            "2015-09-13T25:00Z",
            "99999-01-01T00:00Z",
            "0",
        ]);
        let at_no_time = format!("?id=a&time={time}");
        let (method, path, status) = match self.dice.below(4) {
            0 => (Method::POST, format!("{}{id}", self.dice.of(&["/rerun", "/kill", "/pause"])), 400),
            1 => {
                let servlet = self.dice.of(&["/workflow-slots", "/workflow", "/slot-state", "/trigger-status"]);
                (Method::GET, format!("{servlet}{id}"), 400)
            }
            2 => {
                let servlet = self.dice.of(&["/rerun", "/kill", "/scheduler", "/scheduler?ids=&x="]);
                let path = if servlet.contains('?') { servlet.to_owned() } else { format!("{servlet}{at_no_time}") };
                (Method::POST, path, 400)
            }
            _ => {
                let (method, servlet) = self.dice.value(vec![
                    (Method::GET, "/rerun"),
                    (Method::GET, "/scheduler"),
                    (Method::POST, "/workflow-list"),
                    (Method::PUT, "/pause"),
                    (Method::DELETE, "/slot-state"),
                ]);
                (method, format!("{servlet}{at_no_time}"), 405)
            }
        };
        let reply = self.ask(method, &path).await;
        self.hold(&reply, Err((status, None)));
    }

    async fn go_on(&mut self) {
        match self.dice.below(16) {
            0..=3 => self.step().await,
            4 | 5 => self.end_a_run().await,
            6 => self.touch(),
            7 => {
                let id = self.dice.of(&IDS);
                self.edit(id);
            }
            8..=11 => self.post().await,
            12..=14 => self.get().await,
            _ => self.odd().await,
        }
    }
}

/// Where what is shown is something else than the model's.
fn difference(at: &str, expected: &Value, shown: &Value) -> Option<String> {
    match (expected, shown) {
        (Value::Array(all), Value::Array(others)) if all.len() == others.len() => {
            let mut pairs = all.iter().zip(others).enumerate();
            pairs.find_map(|(n, (one, other))| {
                let name = one["time"].as_str().map_or_else(|| n.to_string(), str::to_owned);
                difference(&format!("{at}[{name}]"), one, other)
            })
        }
        (Value::Object(all), Value::Object(others)) if all.keys().eq(others.keys()) => {
            all.iter().find_map(|(name, one)| difference(&format!("{at}.{name}"), one, &others[name]))
        }
        (one, other) if one == other => None,
        _ => Some(format!("{at}: expected {expected}, got {shown}")),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_a_client_does_it_is_answered_as_by_celos() {
    let mut told = Vec::new();
    for seed in seeds(3) {
        let mut pair = Pair::start(seed).await;
        for _ in 0..150 {
            pair.go_on().await;
            if !pair.mistakes.is_empty() {
                told.push(format!("KELOS_SEED={seed}\n{}", std::mem::take(&mut pair.done)));
                break;
            }
        }
        if told.len() > 2 {
            break;
        }
    }
    assert!(told.is_empty(), "{}", told.join("\n"));
}
