//! Random folders of files that are written for Celos, some with a mistake, changed again and again. The loaded
//! definitions are those of Celos's reference; a broken file keeps its last good version, is reported, and keeps no
//! other from being loaded.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kelos_model::template::KeyValues;
use kelos_model::trigger::{FileSystem, PathCheck};
use kelos_model::{Trigger, WorkflowId};
use kelos_sandbox::{Limits, LoadResult};

use crate::support::Folder;

/// Draws of one seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % end as u64).unwrap()
    }

    fn one_in(&mut self, many: usize) -> bool {
        self.below(many) == 0
    }

    fn of<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())].clone()
    }
}

/// The seeds: `KELOS_SEED=7` takes that one alone, `KELOS_SEEDS=500` so many; both so many from there.
fn seeds(usual: u64) -> std::ops::Range<u64> {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect(name));
    match number("KELOS_SEED") {
        Some(seed) => seed..seed + number("KELOS_SEEDS").unwrap_or(1),
        None => 0..number("KELOS_SEEDS").unwrap_or(usual),
    }
}

/// A workflow as it is drawn.
#[derive(Debug, Clone, PartialEq)]
struct Expected {
    id: String,
    trigger: Trigger,
    concurrency: u32,
    retries: u32,
    start: Option<String>,
    timeout: Option<u64>,
}

/// The text of a file, with the workflows that it defines, or a part of its error message.
#[derive(Debug, Clone)]
struct Drawn {
    text: String,
    outcome: Result<Vec<Expected>, &'static str>,
}

/// A value that a field may have, and what it is taken for; none where the field is left out.
type Field<T> = (Option<&'static str>, T);

const CONCURRENCY: [Field<u32>; 7] = [
    (None, 1),
    (Some("undefined"), 1),
    (Some("3"), 3),
    (Some("'2'"), 2),
    (Some("2.9"), 2),
    (Some("0"), 0),
    (Some("-4"), 0),
];
const RETRIES: [Field<u32>; 12] = [
    (None, 0),
    (Some("undefined"), 0),
    (Some("null"), 0),
    (Some("0"), 0),
    (Some("''"), 0),
    (Some("false"), 0),
    (Some("NaN"), 0),
    (Some("-1"), 0),
    (Some("'-2'"), 0),
    (Some("7"), 7),
    (Some("'3'"), 3),
    (Some("2.9"), 2),
];
const STARTS: [Field<Option<&str>>; 9] = [
    (None, None),
    (Some("null"), None),
    (Some("''"), None),
    (Some("'2015-09-13T01:02Z'"), Some("2015-09-13T01:02Z")),
    (Some("'2015-09-13T14Z'"), Some("2015-09-13T14:00Z")),
    (Some("'2015-W37-7T00:00Z'"), Some("2015-09-13T00:00Z")),
    (Some("'2015-256T00:00Z'"), Some("2015-09-13T00:00Z")),
    (Some("'2015-09-13T01:02:03.123456Z'"), Some("2015-09-13T01:02:03.123Z")),
    (Some("new ScheduledTime('2015-09-13T00:00+00:00').plusHours(5)"), Some("2015-09-13T05:00Z")),
];
const TIMEOUTS: [Field<Option<u64>>; 7] = [
    (None, None),
    (Some("undefined"), None),
    (Some("0"), Some(0)),
    (Some("86400"), Some(86_400)),
    (Some("5.7"), Some(5)),
    (Some("-1"), Some(0)),
    (Some("-0.5"), Some(0)),
];

/// Fields that Celos refuses, with its messages.
const REFUSED: [(&str, &str); 16] = [
    ("maxRetryCount: 'foo'", "maxRetryCount"),
    ("maxRetryCount: 1e10", "maxRetryCount"),
    ("waitTimeoutSeconds: null", "waitTimeoutSeconds must be a number: null"),
    ("waitTimeoutSeconds: '5'", "waitTimeoutSeconds must be a number: 5"),
    ("waitTimeoutSeconds: NaN", "waitTimeoutSeconds must be a number"),
    ("startTime: 'soon'", "startTime"),
    ("startTime: '2015-09-13T00:00+01:00'", "UTC"),
    ("schedule: undefined", "schedule is"),
    ("trigger: null", "trigger is null"),
    ("schedule: celos.alwaysTrigger()", "schedule: expected"),
    ("id: 7", "Workflow ID must be a string: 7"),
    ("id: ' '", "id"),
    ("id: 'a/b'", "id"),
    ("url: 'nowhere'", "url"),
    ("contacts: [{email: 'a b'}]", "email"),
    ("schedulingStrategy: celos.serialSchedulingStrategy(null)", "serialSchedulingStrategy"),
];

/// Statements that break a file, with a part of each message.
const BROKEN: [(&str, &str); 20] = [
    ("var x = ;", ""),
    ("celos.nothing();", "nothing"),
    ("throw 'mine';", "mine"),
    ("throw {a: 1};", ""),
    ("throw undefined;", ""),
    ("celos.cronSchedule('');", "Undefined cron expression"),
    ("celos.cronSchedule('0 0 0 * * *');", "cronSchedule"),
    ("celos.cronSchedule('0 60 * * * ?');", "cronSchedule"),
    ("null.x;", "null"),
    ("importDefaults('nowhere');", "nowhere"),
    ("importDefaults('broken');", "broken"),
    ("while (true) {}", "time"),
    ("(function f() { f(); })();", ""),
    ("var a = ['x']; while (true) a.push(a.join());", ""),
    ("for each (var x in [1]) {}", "for each"),
    ("Packages.java.lang.System.exit(1);", "Packages"),
    ("celos.hdfsCheck('/broken/x', null, 'hdfs://nn');", "the name node is gone"),
    ("celos.successTrigger('a/b');", "successTrigger"),
    ("celos.andTrigger(celos.hourlySchedule());", "andTrigger"),
    ("\u{0}", "NUL"),
];

/// Calls that throw a text, as scripts catch it.
const THROWN: [(&str, &str); 9] = [
    ("celos.cronSchedule(null)", "Undefined cron expression"),
    ("celos.hdfsCheckTrigger('', 'hdfs://nn')", "Undefined path in hdfsCheckTrigger"),
    ("celos.hdfsPath('')", "Undefined path in hdfsPath"),
    ("celos.notTrigger(null)", "Undefined sub trigger"),
    ("celos.delayTrigger('5')", "Undefined seconds"),
    ("celos.offsetTrigger(5)", "Undefined trigger"),
    ("celos.successTrigger('')", "Undefined workflow name in success trigger"),
    ("celos.defineWorkflow({id: {}})", "Workflow ID must be a string: [object Object]"),
    ("celos.hdfsCheck('/a', {}, 'hdfs://nn')", "slotID should be instance of com.collective.celos.SlotID"),
];

/// Statements that scripts for Rhino have around their definitions, and that change nothing.
const AROUND: [&str; 9] = [
    "",
    "// a word\n",
    "/* words */\r\nvar leaked = 1;\r\n",
    "\u{feff}",
    "function (x) { return x; };\n",
    "importDefaults('good');\n",
    "celos.forEachRegister('nothing', function (key, value) { throw key; });\n",
    "if (celos.getRegister('b', 'k') !== null) throw 'a value';\n",
    "if (typeof leaked !== 'undefined' && leaked === 2) throw 'leaked';\nleaked = 2;\n",
];

fn trigger(dice: &mut Dice, depth: usize) -> (String, Trigger) {
    let some = |dice: &mut Dice| -> (Vec<String>, Vec<Trigger>) {
        (0..dice.below(4)).map(|_| trigger(dice, depth - 1)).unzip()
    };
    match dice.below(if depth == 0 { 5 } else { 9 }) {
        0 => ("celos.alwaysTrigger()".to_owned(), Trigger::Always),
        1 => {
            let (text, seconds) = dice.of(&[("0", 0), ("-60", -60), ("90.9", 90), ("1e3", 1000), ("-0.5", 0)]);
            (format!("celos.delayTrigger({text})"), Trigger::Delay { seconds })
        }
        2 => {
            let (text, of) = dice.of(&[("'a'", "a"), ("5", "5"), ("'wörk flow'", "wörk flow"), ("'..'", "..")]);
            let workflow = WorkflowId::new(of).unwrap();
            (format!("celos.successTrigger({text})"), Trigger::Success { workflow })
        }
        3 | 4 => path(dice),
        5 => {
            let (text, inner) = trigger(dice, depth - 1);
            (format!("celos.notTrigger({text})"), Trigger::Not { trigger: Box::new(inner) })
        }
        6 => {
            let (by, seconds) = dice.of(&[("0", 0), ("-3600", -3600), ("86400.5", 86_400)]);
            let (text, inner) = trigger(dice, depth - 1);
            (format!("celos.offsetTrigger({by}, {text})"), Trigger::Offset { seconds, trigger: Box::new(inner) })
        }
        7 => {
            let (texts, triggers) = some(dice);
            (format!("celos.andTrigger({})", texts.join(", ")), Trigger::And { triggers })
        }
        _ => {
            let (texts, triggers) = some(dice);
            (format!("celos.orTrigger({})", texts.join(",\n  ")), Trigger::Or { triggers })
        }
    }
}

fn path(dice: &mut Dice) -> (String, Trigger) {
    let absolute = if dice.one_in(4) { "" } else { "/" };
    let parts = ["a", "b c", "..", ".", "", "%20", "p%2", "x#y", "q?z", "ü", "${year}-${month}", "${hour}", "${other}"];
    let path = format!("{absolute}x/{}", (0..=dice.below(5)).map(|_| dice.of(&parts)).collect::<Vec<_>>().join("/"));
    let (own, given) = dice.of(&[
        ("", "hdfs://nn"),
        ("", "hdfs://nn:8020/sub/"),
        ("", "file:///"),
        ("", "file:/sub"),
        ("hdfs://other:1", "hdfs://nn"),
        ("file:", "hdfs://nn"),
    ]);
    let own = if path.starts_with('/') { own } else { "" };
    let path = format!("{own}{path}");
    // The variable of the defaults is used if no argument is given.
    let (argument, base) = match dice.below(6) {
        0 => (String::new(), "hdfs://usual"),
        1 => (", ''".to_owned(), "hdfs://usual"),
        _ => (format!(", {given:?}"), given),
    };
    let check = PathCheck::new(FileSystem::Hdfs, &path, base);
    (format!("celos.hdfsCheckTrigger({path:?}{argument})"), Trigger::Path(check))
}

/// Arithmetic of times that a script does, with what comes of it.
fn times(dice: &mut Dice) -> String {
    let second = 1_400_000_000 + i64::try_from(dice.below(100_000_000)).unwrap();
    let time = Timestamp::from_second(second).unwrap();
    let by = i64::try_from(dice.below(5000)).unwrap() - 2500;
    let (name, unit) = dice.of(&[("Hours", 3600), ("Minutes", 60), ("Seconds", 1), ("Days", 86_400)]);
    let moved = time + SignedDuration::from_secs(by * unit);
    let full = |at: Timestamp| at.strftime("%Y-%m-%dT%H:%M:%S.000Z").to_string();
    let (before, after) = (full(time), full(moved));
    let filled = moved.strftime("%Y/%m/%d-%H:%M:%S ${x}");
    format!(
        "(function () {{ var t = new ScheduledTime('{before}').plus{name}({by});\n\
         if (String(t) !== '{after}' || String(t.minus{name}({by})) !== '{before}') throw 'moved to ' + t;\n\
         var f = celos.replaceTimeVariables('${{year}}/${{month}}/${{day}}-${{hour}}:${{minute}}:${{second}} ${{x}}', t);\n\
         if (f !== '{filled}') throw 'filled ' + f; }})();\n"
    )
}

fn thrown(dice: &mut Dice) -> String {
    let (call, text) = dice.of(&THROWN);
    format!(
        "try {{ {call}; throw 'nothing'; }} catch (e) {{ if (e !== {text:?} || typeof e !== 'string') throw 'not: ' + e; }}\n"
    )
}

/// A definition, and what it is to be; some have a field that is refused.
fn definition(dice: &mut Dice, id: &str, refused: Option<&str>) -> (String, Expected) {
    let (text, trigger) = trigger(dice, 2);
    let (places, concurrency) = dice.of(&CONCURRENCY);
    let ((retry, retries), (start, start_time)) = (dice.of(&RETRIES), dice.of(&STARTS));
    let (timeout, seconds) = dice.of(&TIMEOUTS);
    let schedule =
        dice.of(&["celos.hourlySchedule()", "celos.minutelySchedule()", "celos.cronSchedule(' 0 0 22-2 ? * 6L ')"]);
    let given = |name: &str, value: Option<&str>| value.map_or(String::new(), |value| format!("{name}: {value},\n"));
    let (places, refused) = (places.unwrap_or_default(), refused.unwrap_or_default());
    let text = format!(
        "celos.{}({{ id: {id:?}, schedule: {schedule}, trigger: {text},\n\
         schedulingStrategy: celos.serialSchedulingStrategy({places}), {}{}{}\
         externalService: celos.oozieExternalService({{'a.b': '${{year}}'}}, 'http://oozie'),\n{refused} }});\n",
        dice.of(&["defineWorkflow", "addWorkflow"]),
        given("maxRetryCount", retry),
        given("startTime", start),
        given("waitTimeoutSeconds", timeout),
    );
    let start = start_time.map(str::to_owned);
    (text, Expected { id: id.to_owned(), trigger, concurrency, retries, start, timeout: seconds })
}

fn drawn(dice: &mut Dice) -> Drawn {
    let mut text = dice.of(&AROUND).to_owned();
    text += "importDefaults('system');\n";
    let mistake = dice.one_in(3);
    let place = dice.below(3);
    let mut said = None;
    let mut defined: Vec<Expected> = Vec::new();
    for n in 0..1 + dice.below(2) {
        if mistake && said.is_none() && place == n && dice.one_in(2) {
            let (statement, words) = dice.of(&BROKEN);
            text += &format!("{statement}\n");
            said = said.or(Some(words));
        }
        let (refused, words) = dice.of(&REFUSED);
        let refused = (mistake && said.is_none() && dice.one_in(3)).then_some(refused);
        said = said.or(refused.is_some().then_some(words));
        let id = dice.of(&["a", "b", "wörk flow", "x.y", "..", "m@n", "c", "d"]);
        let twice = defined.iter().any(|one| one.id == id);
        said = said.or((twice && refused.is_none()).then_some("Workflow with this ID already exists"));
        let (definition, expected) = definition(dice, id, refused);
        text += &definition;
        defined.push(expected);
        text += &match dice.below(3) {
            0 => times(dice),
            1 => thrown(dice),
            _ => dice.of(&AROUND[1..8]).to_owned(),
        };
    }
    Drawn { text, outcome: said.map_or(Ok(defined), Err) }
}

/// A folder, and what its files are to be.
struct Model {
    folder: Folder,
    dice: Dice,
    files: BTreeMap<String, Drawn>,
    /// The last version of each file that was good.
    good: BTreeMap<String, Vec<Expected>>,
}

impl Model {
    fn new(seed: u64) -> Model {
        let limits = Limits { load_millis: 250, memory_bytes: 8 << 20, retry_stopped_millis: 0, ..Limits::default() };
        let folder = Folder::with(limits);
        folder.write("defaults/system.js", "var CELOS_DEFAULT_HDFS = 'hdfs://usual';\n");
        folder.write("defaults/good.js", "function () {};\nvar leaked = 3;\n");
        folder.write("defaults/broken.js", "var x = 1;\nthrow 'broken';\n");
        Model { folder, dice: Dice(seed), files: BTreeMap::new(), good: BTreeMap::new() }
    }

    fn change(&mut self) {
        let name = self.dice.of(&["a.js", "b.js", "c.js", "d e.js"]).to_owned();
        if self.files.contains_key(&name) && self.dice.one_in(5) {
            self.folder.remove(&name);
            self.files.remove(&name);
            return;
        }
        let drawn = drawn(&mut self.dice);
        self.folder.write(&name, &drawn.text);
        self.files.insert(name, drawn);
    }

    /// Loads, and returns the differences from the expected result.
    fn load(&mut self) -> Vec<String> {
        self.good.retain(|name, _| self.files.contains_key(name));
        for (name, file) in &self.files {
            if let Ok(defined) = &file.outcome {
                self.good.insert(name.clone(), defined.clone());
            }
        }
        let (answer, answered) = std::sync::mpsc::channel();
        let scripts = self.folder.scripts.clone();
        std::thread::spawn(move || answer.send(scripts.load()));
        let loaded = answered.recv_timeout(Duration::from_secs(60)).expect("a load that ends");
        let mut wrong = Vec::new();
        for (name, file) in &self.files {
            let of = loaded.problems.iter().filter(|one| one.is_error() && one.file == *name);
            let told: Vec<String> = of.map(ToString::to_string).collect();
            match &file.outcome {
                Err(words) if !told.iter().any(|one| one.contains(words)) => {
                    wrong.push(format!("{name}: nothing says {words:?}: {:?}", loaded.problems));
                }
                Ok(_) if told.iter().any(|one| !one.contains("already exists")) => {
                    wrong.push(format!("{name}: is good, and told of: {told:?}"));
                }
                _ => {}
            }
        }
        wrong.extend(self.differences(&loaded));
        wrong
    }

    /// Workflows that differ from the expected ones: of two files that define one, the first has it.
    fn differences(&self, loaded: &LoadResult) -> Vec<String> {
        let mut expected: BTreeMap<&str, &Expected> = BTreeMap::new();
        for one in self.good.values().flatten() {
            expected.entry(&one.id).or_insert(one);
        }
        let mut shown: BTreeMap<&str, Expected> = BTreeMap::new();
        for workflow in &loaded.workflows {
            let start = workflow.start_time.map(kelos_model::time::format_short);
            let one = Expected {
                id: workflow.id.to_string(),
                trigger: workflow.trigger.clone(),
                concurrency: workflow.concurrency.expect("a limit"),
                retries: workflow.retry.count,
                start,
                timeout: workflow.wait_timeout_seconds,
            };
            shown.insert(workflow.id.as_str(), one);
        }
        let mut wrong = Vec::new();
        for id in expected.keys().chain(shown.keys()) {
            if expected.get(id).copied() != shown.get(id) {
                wrong.push(format!("{id}: expected {:?}, got {:?}", expected.get(id), shown.get(id)));
            }
        }
        wrong.extend(expected.values().flat_map(|one| misplaced(&one.trigger)));
        wrong
    }
}

/// The paths of a trigger that are resolved differently from Hadoop.
fn misplaced(trigger: &Trigger) -> Vec<String> {
    let Trigger::Path(check) = trigger else { return trigger.nested().iter().flat_map(misplaced).collect() };
    let at: Timestamp = "2015-09-03T04:00Z".parse().unwrap();
    let path = check.path.replace("${year}", "2015").replace("${month}", "09").replace("${hour}", "04");
    let (system, path) = match path.split_once(":/") {
        Some(("file", path)) => ("file:", format!("/{path}")),
        Some((scheme, rest)) => {
            let slash = 1 + rest[1..].find('/').unwrap();
            (&path[..scheme.len() + 2 + slash], rest[slash..].to_owned())
        }
        None if check.base.starts_with("file") => ("file:", path.clone()),
        None => (check.base.trim_end_matches("/sub/"), path.clone()),
    };
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/').filter(|part| !matches!(*part, "" | ".")) {
        match part {
            ".." if parts.last().is_some_and(|last| *last != "..") => drop(parts.pop()),
            ".." if path.starts_with('/') => {}
            part => parts.push(part),
        }
    }
    let (parts, is_local) = (parts.join("/"), system == "file:");
    let expected = match (is_local, path.starts_with('/')) {
        (true, true) => format!("file:///{}", parts.replace('%', "%25")),
        (true, false) => format!("file:{}", parts.replace('%', "%25")),
        (false, true) => format!("{system}/{parts}"),
        (false, false) => format!("{system}/./{parts}"),
    };
    let found = check.uri(&KeyValues::at(at));
    if found == expected { Vec::new() } else { vec![format!("{check:?}: expected {expected}, got {found}")] }
}

#[test]
fn whatever_is_in_a_folder_what_is_good_is_loaded_as_by_celos() {
    let mut told = Vec::new();
    for seed in seeds(12) {
        let mut model = Model::new(seed);
        for round in 0..8 {
            (0..=model.dice.below(3)).for_each(|_| model.change());
            let wrong = model.load();
            if !wrong.is_empty() {
                let texts = model
                    .files
                    .iter()
                    .map(|(name, file)| format!("--- {name} {:?}\n{}", file.outcome.is_ok(), file.text));
                let texts = texts.collect::<Vec<_>>().join("\n");
                told.push(format!("KELOS_SEED={seed} round {round}:\n{}\n{texts}", wrong.join("\n")));
                break;
            }
        }
    }
    told.truncate(3);
    assert!(told.is_empty(), "{}", told.join("\n\n"));
}
