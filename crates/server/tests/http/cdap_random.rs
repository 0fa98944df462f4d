//! A client of CDAP's dialect that sends whatever comes to its mind: mostly right, often with one thing wrong. It is never told
//! of a fault of the server, each refusal names what is wrong, and what is taken is taken as a whole.

use axum::http::Method;
use serde_json::{Map, Value, json};

use crate::cdap_support::Cdap;
use crate::dice::{Dice, seeds};
use crate::support::Reply;

/// Something that hardly any field expects.
fn junk(dice: &mut Dice) -> Value {
    let long = "x".repeat(700);
    dice.value(vec![
        json!(null),
        json!(0),
        json!(-1),
        json!(1.5),
        json!(1e30),
        json!(true),
        json!(""),
        json!(" "),
        json!("a/b"),
        json!("a:b"),
        json!("☃\u{0}"),
        json!(long),
        json!([]),
        json!({}),
        json!([null]),
        json!({ "x": {} }),
        json!(18_446_744_073_709_551_615_u64),
        json!("0 0 30 2 *"),
        json!("* * *"),
        json!("Mars/North"),
        json!("25:00"),
        json!("DONE"),
    ])
}

/// Puts junk somewhere into a value, or a field there that nobody knows.
fn spoil(dice: &mut Dice, value: &mut Value) {
    let count = value.as_object().map(Map::len).or_else(|| value.as_array().map(Vec::len)).unwrap_or_default();
    if count == 0 || dice.one_in(4) {
        *value = junk(dice);
        return;
    }
    let chosen = dice.below(count);
    match value {
        Value::Object(fields) if dice.one_in(6) => drop(fields.insert("colour".to_owned(), junk(dice))),
        Value::Object(fields) => {
            let name = fields.keys().nth(chosen).unwrap().clone();
            if dice.one_in(6) { drop(fields.remove(&name)) } else { spoil(dice, &mut fields[&name]) }
        }
        Value::Array(elements) => spoil(dice, &mut elements[chosen]),
        _ => unreachable!("what has something in it is an object or a list"),
    }
}

fn trigger(dice: &mut Dice, depth: usize) -> Value {
    let kinds = if depth == 0 { 4 } else { 6 };
    match dice.below(kinds) {
        0 => {
            json!({ "type": dice.of(&["TIME", "time"]), "cronExpression": dice.of(&["0 4 * * *", "*/5 * * * * ?", "0 4 * * *  "]) })
        }
        1 => json!({
            "type": "PARTITION", "numPartitions": dice.value(vec![json!(1), json!(7), json!(3.0)]),
            "dataset": { "namespace": dice.of(&["default", "prod"]), "dataset": dice.of(&["ds", "a.b", "ünï"]), "entity": "DATASET" },
        }),
        2 => json!({ "type": "SIGNAL", "signal": "go" }),
        3 => json!({
            "type": "PROGRAM_STATUS", "programStatuses": dice.value(vec![json!(["COMPLETED"]), json!(["failed", "KILLED"])]),
            "programId": {
                "namespace": "default", "application": dice.of(&["App", "A.b"]), "version": dice.of(&["-SNAPSHOT", "1.2"]),
                "type": dice.of(&["Workflow", "SPARK"]), "program": dice.of(&["Wf", "x.y", "Loader"]), "entity": "PROGRAM",
            },
        }),
        kind => {
            let triggers: Vec<Value> = (0..=dice.below(3)).map(|_| trigger(dice, depth - 1)).collect();
            json!({ "type": if kind == 4 { "AND" } else { "or" }, "triggers": triggers })
        }
    }
}

fn constraint(dice: &mut Dice) -> Value {
    dice.value(vec![
        json!({ "type": "CONCURRENCY", "maxConcurrency": 2, "waitUntilMet": false }),
        json!({ "type": "delay", "millisAfterTrigger": 1000, "waitUntilMet": true }),
        json!({ "type": "LAST_RUN", "millisSinceLastRun": 5000 }),
        json!({ "type": "TIME_RANGE", "startTime": "22:00", "endTime": "06:00", "timeZone": "PST", "waitUntilMet": true }),
    ])
}

fn detail(dice: &mut Dice) -> Value {
    let mut fields = json!({
        "program": { "programName": dice.of(&["Wf", "Wf", "P1", "Mr"]), "programType": dice.of(&["WORKFLOW", "Workflow"]) },
        "trigger": trigger(dice, 2),
    });
    let more = [
        ("description", json!("told")),
        ("properties", json!({ "a": "1", "n": 5, "on": true })),
        (
            "properties",
            json!({ "triggering.properties.mapping": dice.value(vec![json!({ "a": "b" }), json!({ "arguments": 5 })]) }),
        ),
        ("constraints", json!([constraint(dice), constraint(dice)])),
        ("timeoutMillis", dice.value(vec![json!(1), json!(8.64e7), json!(0)])),
        ("startTime", json!("2026-12-01T00:00Z")),
        ("endTime", dice.value(vec![json!("2027-01-01T00:00Z"), json!(1_700_000_000_000_i64)])),
        ("jitterMillis", json!(5)),
        ("catchUp", json!("all")),
        ("status", json!("SCHEDULED")),
        ("lastUpdateTime", json!(5)),
        ("name", json!("another")),
    ];
    for (name, value) in more {
        if dice.one_in(5) {
            fields[name] = value;
        }
    }
    fields
}

fn about_programs(dice: &mut Dice) -> Value {
    let one = |dice: &mut Dice| {
        json!({
            "appId": dice.of(&["App", "Nope", "A:B"]), "programType": dice.of(&["Workflow", "SPARK", "workflows"]),
            "programId": dice.of(&["Wf", "Loader", "No"]),
        })
    };
    Value::Array((0..dice.below(4)).map(|_| one(dice)).collect())
}

fn fact(dice: &mut Dice) -> Value {
    let one = dice.value(vec![
        json!({ "dataset": "ds", "partitions": 2, "keys": ["a", "b"], "key": "k" }),
        json!({ "dataset": "prod:ds", "keys": ["a"] }),
        json!({ "program": "App.Wf", "state": "failed", "run": "1", "arguments": { "a": "b" }, "outputs": { "n": 1 } }),
        json!({ "signal": "go", "payload": [1], "source": "me" }),
    ]);
    if dice.one_in(3) { json!([one, { "signal": "go" }]) } else { one }
}

/// Parameters of a query, each with a value that may do.
fn query(dice: &mut Dice, names: &[&str]) -> String {
    let values = [
        "",
        "0",
        "-1",
        "5",
        "1795000000",
        "x",
        "1.5",
        "99999999999999999999",
        "time",
        "SCHEDULED",
        "COMPLETED",
        "default",
        "App",
        "workflows",
        "Wf",
        "%00",
    ];
    let mut parts = Vec::new();
    for name in names {
        let many = if dice.one_in(8) { dice.below(3) } else { 1 };
        parts.extend((0..many).map(|_| format!("{name}={}", dice.of(&values))));
    }
    if parts.is_empty() { String::new() } else { format!("?{}", parts.join("&")) }
}

struct Sent {
    method: Method,
    path: String,
    body: String,
    /// What a schedule is to be afterwards, where it is taken.
    detail: Option<Value>,
    is_fact: bool,
}

fn segment<'a>(dice: &mut Dice, usual: &'a str) -> &'a str {
    if !dice.one_in(12) {
        return usual;
    }
    dice.of(&["%00", "a%2Fb", "..", "%FF", "%20", "a.b", "a:b", "~", "%E2%98%83", "a~.b", "status"])
}

/// The paths of a namespace, an app, a schedule and a program that a request is about.
struct Paths {
    base: String,
    own: String,
    schedule: String,
    program: String,
}

impl Paths {
    fn random(dice: &mut Dice) -> Paths {
        let (namespace, app) = (segment(dice, "default"), segment(dice, "App"));
        let version = if dice.one_in(4) { format!("/versions/{}", segment(dice, "-SNAPSHOT")) } else { String::new() };
        let base = format!("/v3/namespaces/{namespace}");
        let own = format!("{base}/apps/{app}{version}");
        let usual = dice.of(&["s", "t", "a.b"]);
        let schedule = format!("{own}/schedules/{}", segment(dice, usual));
        let program = format!("{own}/{}/{}", segment(dice, "workflows"), segment(dice, "Wf"));
        Paths { base, own, schedule, program }
    }
}

/// A method, a path and a body, which is null for none.
type Request = (Method, String, Value);

fn request(dice: &mut Dice, paths: &Paths) -> Request {
    let Paths { base, own, schedule, program } = paths;
    let get = |path: String| (Method::GET, path, Value::Null);
    match dice.below(22) {
        0..=5 => (Method::PUT, schedule.clone(), detail(dice)),
        6 | 7 => (Method::POST, format!("{schedule}/update"), detail(dice)),
        8 => {
            let verb = dice.of(&["enable", "disable", "resume", "suspend", "poem"]);
            (Method::POST, format!("{schedule}/{verb}"), Value::Null)
        }
        9 => (Method::DELETE, schedule.clone(), Value::Null),
        10 => get(format!("{own}/schedules{}", query(dice, &["trigger-type", "schedule-status"]))),
        11 => get(format!("{program}/runs{}", query(dice, &["start", "end", "limit", "status"]))),
        12 => get(format!("/v3/dashboard{}", query(dice, &["start", "duration", "namespace"]))),
        13 => {
            let what = dice.of(&["nextruntime", "previousruntime", "status", "runs", "runcount", "instances"]);
            (Method::POST, format!("{base}/{what}"), about_programs(dice))
        }
        14 => (Method::POST, format!("{program}/start"), json!({ "a": "b", "n": 5, "on": true })),
        15 => {
            let what =
                dice.of(&["stop", "runs/x/stop", "runs/App.s@2026-11-21T10:00Z~1/stop", "debug", "stop?graceful=5"]);
            (Method::POST, format!("{program}/{what}"), Value::Null)
        }
        16 => get(format!("{program}/{}", dice.of(&PROGRAM_VIEWS))),
        number @ 17..=20 => request_of_namespace(dice, base, number),
        _ => (Method::POST, "/api/v1/facts".to_owned(), fact(dice)),
    }
}

const PROGRAM_VIEWS: [&str; 8] =
    ["runcount", "runs/x", "status", "schedules", "nextruntime", "previousruntime", "runtimeargs", ""];

const TRIGGER_PARAMETERS: [&str; 5] = [
    "trigger-namespace-id",
    "trigger-app-name",
    "trigger-program-type",
    "trigger-program-name",
    "trigger-program-statuses",
];

/// A request about profiles, or about all schedules of a namespace.
fn request_of_namespace(dice: &mut Dice, base: &str, number: usize) -> Request {
    match number {
        17 => (Method::PUT, format!("{base}/profiles/{}", segment(dice, "big")), json!({ "description": "many" })),
        18 => {
            let verb = dice.of(&["enable", "disable", "poem"]);
            (Method::POST, format!("{base}/profiles/big/{verb}"), Value::Null)
        }
        19 => {
            let query = query(dice, &TRIGGER_PARAMETERS);
            (Method::GET, format!("{base}/schedules/trigger-type/program-status{query}"), Value::Null)
        }
        _ => {
            let query = query(dice, &["start-time-millis", "end-time-millis"]);
            (Method::PUT, format!("{base}/schedules/re-enable{query}"), Value::Null)
        }
    }
}

fn sent(dice: &mut Dice) -> Sent {
    let paths = Paths::random(dice);
    let (method, path, mut body) = request(dice, &paths);
    let is_fact = path.ends_with("/facts");
    if !body.is_null() && dice.one_in(2) {
        spoil(dice, &mut body);
    }
    let is_detail = method == Method::PUT && path == paths.schedule || path.ends_with("/update");
    let detail = is_detail.then(|| body.clone());
    let slash = if dice.one_in(10) && !path.contains('?') && !is_fact { "/" } else { "" };
    let mut body = if body.is_null() { String::new() } else { body.to_string() };
    if dice.one_in(40) {
        body.truncate(body.floor_char_boundary(body.len() / 2));
    }
    Sent { method, path: format!("{path}{slash}"), body, detail, is_fact }
}

/// All that a refusal may name: fields of bodies, parameters, and parts of paths.
const NAMED: [&str; 58] = [
    "the body",
    "name",
    "description",
    "program",
    "programName",
    "programType",
    "programId",
    "properties",
    "trigger",
    "constraints",
    "timeoutMillis",
    "startTime",
    "endTime",
    "jitterMillis",
    "catchUp",
    "type",
    "cronExpression",
    "timeZone",
    "dataset",
    "namespace",
    "numPartitions",
    "programStatuses",
    "application",
    "version",
    "entity",
    "triggers",
    "signal",
    "maxConcurrency",
    "millisAfterTrigger",
    "millisSinceLastRun",
    "waitUntilMet",
    "trigger-type",
    "schedule-status",
    "start",
    "end",
    "limit",
    "status",
    "duration",
    "trigger-namespace-id",
    "trigger-app-name",
    "trigger-program-type",
    "trigger-program-name",
    "trigger-program-statuses",
    "start-time-millis",
    "end-time-millis",
    "appId",
    "runid",
    "kind of programs",
    "can't be done to",
    "colour",
    "is not running",
    "`app`",
    "`version`",
    "`kind`",
    "`profile`",
    "the run in the path",
    "`run`",
    "in the path",
];

const FACT_FIELDS: [&str; 13] = [
    "source",
    "key",
    "dataset",
    "partitions",
    "keys",
    "program",
    "state",
    "run",
    "arguments",
    "outputs",
    "signal",
    "payload",
    "colour",
];

/// Whether a refusal names what is wrong.
fn names_it(sent: &Sent, text: &str) -> bool {
    let body = serde_json::from_str::<Value>(&sent.body).unwrap_or_default();
    if !sent.is_fact {
        let names_own =
            |fields: &Map<String, Value>| fields.keys().any(|name| text.starts_with(&format!("{name} is ")));
        // An element of a list is named by its number.
        return text.starts_with('[')
            || NAMED.iter().any(|name| text.contains(name))
            || body.as_object().is_some_and(names_own);
    }
    let of_objects = match &body {
        Value::Array(all) => !all.is_empty() && all.iter().all(Value::is_object),
        other => other.is_object(),
    };
    !of_objects || FACT_FIELDS.iter().any(|field| text.contains(&format!("`{field}")))
}

/// What is said of where a schedule is, and of its status, is passed over.
const PASSED_OVER: [&str; 5] = ["namespace", "application", "applicationVersion", "status", "lastUpdateTime"];

/// Where what is shown is something else than what was sent.
fn difference(at: &str, sent: &Value, shown: &Value) -> Option<String> {
    let differ = || Some(format!("{at}: {sent} became {shown}"));
    match sent {
        Value::Null => None,
        Value::Object(fields) => fields.iter().find_map(|(name, value)| {
            let inner = format!("{at}.{name}");
            match name.as_str() {
                name if at.is_empty() && PASSED_OVER.contains(&name) => None,
                "properties" => of_properties(&inner, value, &shown[name]),
                "startTime" | "endTime" if at.is_empty() => {
                    moment(value, &shown[name]).then(|| format!("{inner}: {value} became {}", shown[name]))
                }
                "programStatuses" => {
                    let named = |list: &Value| {
                        let mut names: Vec<String> = list
                            .as_array()
                            .into_iter()
                            .flatten()
                            .map(|one| one.as_str().unwrap_or("?").to_uppercase())
                            .collect();
                        names.sort();
                        names.dedup();
                        names
                    };
                    (named(value) != named(&shown[name])).then(|| format!("{inner}: {value} became {}", shown[name]))
                }
                // Blanks at the end of an expression say nothing.
                "cronExpression" if value.is_string() => {
                    let plain = value.as_str().map(|text| json!(text.trim_end_matches(' ')));
                    difference(&inner, &plain.unwrap_or_default(), &shown[name])
                }
                // What goes without saying is not shown.
                "jitterMillis" | "catchUp" | "timeZone" if shown.get(name).is_none() => None,
                _ => difference(&inner, value, &shown[name]),
            }
        }),
        Value::Array(all) => {
            let others = shown.as_array().filter(|others| others.len() == all.len());
            let Some(others) = others else { return differ() };
            all.iter().zip(others).find_map(|(one, other)| difference(&format!("{at}[]"), one, other))
        }
        Value::String(text) => {
            let same = shown.as_str().is_some_and(|other| other.eq_ignore_ascii_case(text));
            if same { None } else { differ() }
        }
        Value::Number(number) => {
            if number.as_f64() == shown.as_f64() {
                None
            } else {
                differ()
            }
        }
        Value::Bool(_) => {
            if sent == shown {
                None
            } else {
                differ()
            }
        }
    }
}

fn of_properties(at: &str, sent: &Value, shown: &Value) -> Option<String> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let fields = sent.as_object()?;
    fields.iter().find_map(|(name, value)| {
        (shown[name].as_str() != Some(&text(value))).then(|| format!("{at}.{name}: {value} became {}", shown[name]))
    })
}

/// Whether a moment became another one.
fn moment(sent: &Value, shown: &Value) -> bool {
    let shown = shown.as_str().map(|text| text.parse::<jiff::Timestamp>().unwrap().as_millisecond());
    match sent {
        Value::Number(millis) => shown != millis.as_i64(),
        Value::String(text) if text.is_empty() => shown.is_some(),
        Value::String(text) => {
            shown != kelos_model::time::parse_instant(text).ok().map(jiff::Timestamp::as_millisecond)
        }
        _ => true,
    }
}

/// What is wrong with an answer.
async fn mistake(server: &Cdap, sent: &Sent, reply: &Reply) -> Option<String> {
    let told = |why: &str| {
        let Sent { method, path, body, .. } = sent;
        Some(format!("{why}: {method} {path} {body}\n  {} {}", reply.status, reply.text))
    };
    let status = reply.status.as_u16();
    if ![200, 400, 404, 405, 409, 501].contains(&status) {
        return told("no answer to expect");
    }
    if status != 200 && reply.text.trim().is_empty() {
        return told("says nothing");
    }
    if status == 400 && !names_it(sent, &reply.text) {
        return told("names nothing");
    }
    let detail = sent.detail.as_ref().filter(|_| status == 200)?;
    let shown = server.get(sent.path.trim_end_matches('/').trim_end_matches("/update")).await;
    if shown.status != 200 {
        return told("is not there afterwards");
    }
    difference("", detail, &shown.json()).and_then(|what| told(&what))
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_a_client_sends_it_is_answered_plainly_and_nothing_is_taken_silently() {
    let (mut statuses, mut mistakes) = (std::collections::BTreeMap::new(), Vec::new());
    for seed in seeds(4) {
        let server = Cdap::start().await;
        let mut dice = Dice(seed);
        for _ in 0..500 {
            let sent = sent(&mut dice);
            let mut request = axum::http::Request::builder().method(sent.method.clone()).uri(&sent.path);
            if sent.is_fact {
                request = request.header("content-type", "application/json");
            }
            let reply = server.send(request.body(sent.body.clone().into()).unwrap()).await;
            *statuses.entry((reply.status.as_u16(), sent.detail.is_some())).or_insert(0) += 1;
            mistakes.extend(mistake(&server, &sent, &reply).await.map(|what| format!("seed {seed}: {what}")));
            if dice.one_in(10) {
                server.end_all(true).await;
            }
        }
    }
    mistakes.truncate(30);
    assert!(mistakes.is_empty(), "{}", mistakes.join("\n"));
    let schedules_taken = statuses.get(&(200, true)).copied().unwrap_or(0);
    assert!(schedules_taken > 50, "too few were taken for the test to say much: {statuses:?}");
}
