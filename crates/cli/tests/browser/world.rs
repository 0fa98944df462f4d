//! Workflows in every state that pages know, made within seconds.

use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use crate::house::House;
use crate::support::eventually;

/// Slots of each hourly workflow.
pub(crate) const HOURS: usize = 6;

/// Now, once no hour begins within the next minute: columns of boards would move under what is being looked at.
fn quiet_now() -> Timestamp {
    eventually("an hour that goes on", || {
        let now = Timestamp::now();
        (now.as_second() % 3600 < 3540).then_some(now)
    })
}

/// The workflows. `long` goes on until there is a file `go`, and says more once there is a file `more`; `flaky` fails
/// until there is a file `mended`.
fn scripts() -> [String; 2] {
    let now = quiet_now();
    let start = now - SignedDuration::from_hours(HOURS as i64) + SignedDuration::from_secs(1);
    let last = now - SignedDuration::from_hours(1) + SignedDuration::from_secs(1);
    [SCRIPT, EXPIRING].map(|text| text.replace("START", &start.to_string()).replace("LAST", &last.to_string()))
}

const SCRIPT: &str = r#"
function define(id, words, more) {
    celos.defineWorkflow(Object.assign({
        id: id, schedule: celos.hourlySchedule(), startTime: "START", schedulingStrategy: celos.serialSchedulingStrategy(9),
        trigger: celos.alwaysTrigger(), externalService: celos.commandExternalService({ command: ["sh", "-c", words] }),
    }, more));
}
define("source", "echo delivered 20 lines", { tags: ["input"], description: "delivers on the hour" });
define("flaky", "test -e mended || { echo no such table: people >&2; exit 3; }", { tags: ["people"] });
define("again", "exit 4", { retry: { count: 3, delaySeconds: 3600 } });
define("sums", "echo added up", {
    schedule: celos.dependentSchedule("source"), tags: ["people"],
    trigger: celos.andTrigger(celos.successTrigger("source"), celos.successTrigger("flaky"), celos.fileCheckTrigger("file:in/${hour}")),
});
define("quiet", "true", { startTime: "LAST" });
define("next", "true", { startTime: "LAST", trigger: celos.fileCheckTrigger("file:begun"), pools: [celos.pool("people", 1)] });
// A run outlives its server; this one ends with its folder, too.
define("long", "echo begun | tee begun; until [ -e more ] || [ ! -e begun ]; do sleep 0.2; done; echo and more; until [ -e go ] || [ ! -e begun ]; do sleep 0.2; done; echo ended", { startTime: "LAST", pools: [celos.pool("people", 1)] });
"#;

/// In a file of its own, so that it can go.
const EXPIRING: &str = r#"
celos.defineWorkflow({
    id: "expiring", schedule: celos.hourlySchedule(), startTime: "START", schedulingStrategy: celos.serialSchedulingStrategy(),
    trigger: celos.fileCheckTrigger("file:never/${hour}"), waitTimeoutSeconds: 60, externalService: celos.commandExternalService({ command: ["true"] }),
});
"#;

/// A program and its event schedules: one collects, one is held by a window that is closed, one is disabled.
const EVENTS: &str = r#"
application({ name: "Shop" });
program("Load", celos.commandExternalService({ command: ["sh", "-c", "echo loaded"] }), { description: "loads what came" });
schedule("AfterFour", "Load").withDescription("every four partitions").setProperties({ table: "orders" }).enabled().triggerOnPartitions("orders", 4);
schedule("ByNight", "Load").withTimeWindow("OPENS", "CLOSES").withDurationSinceLastRun(6, TimeUnit.HOURS).enabled().triggerOnPartitions("clicks", 1);
schedule("Daily", "Load").withConcurrency(1).triggerByTime("0 4 * * *");
"#;

/// The script of event schedules, with a window that opens in two hours.
pub(crate) fn events() -> String {
    let clock = |hours| (Timestamp::now() + SignedDuration::from_hours(hours)).strftime("%H:%M").to_string();
    EVENTS.replace("OPENS", &clock(2)).replace("CLOSES", &clock(3))
}

/// Tells of new partitions of a dataset.
pub(crate) fn tell(house: &House, dataset: &str, partitions: u32) {
    house.post("facts", &json!({ "source": "test", "dataset": dataset, "partitions": partitions }));
}

/// An app with job ids, one of whose jobs fails.
const TASKS: &str = r#"{
    "fetch": {"job_id": "{date}_{client_id}", "bash_cmd": "test {client_id} != 3", "autofill_values": {"client_id": [1, 2, 3]}},
    "report": {"job_id": "{date}", "bash_cmd": "true", "depends_on": {"app_name": ["fetch"], "client_id": "all"}}
}"#;
const IDENTIFIERS: &str = r#"{"date": "date", "client_id": "integer"}"#;

/// A broken script, which problems tell of.
const BROKEN: &str = "celos.defineWorkflow({ id: \"broken\" });\n";

/// A server with all of it, once everything is where it stays.
pub(crate) fn world() -> Option<House> {
    let [script, expiring] = scripts();
    let files = [
        ("workflows/world.js", &*script),
        ("workflows/expiring.js", &*expiring),
        ("workflows/broken.js", BROKEN),
        ("workflows/shop.js", &events()),
        ("tasks.json", TASKS),
        ("identifiers.json", IDENTIFIERS),
    ];
    let house = House::of(&files)?;
    tell(&house, "orders", 3);
    tell(&house, "clicks", 1);
    house.until_slots("Shop.AfterFour", "waiting", 1);
    house.until_slots("Shop.ByNight", "held", 1);
    house.until_slots("source", "succeeded", HOURS);
    house.until_slots("flaky", "failed", HOURS);
    house.until_slots("again", "backoff", HOURS);
    house.until_slots("sums", "waiting", HOURS);
    house.until_slots("expiring", "expired", HOURS);
    house.until_slots("long", "running", 1);
    house.until_slots("next", "queued", 1);
    house.pause("quiet");
    house.post("jobs", &json!({ "jobs": [{ "workflow": "report", "job": "20140601" }] }));
    let from = Timestamp::now() - SignedDuration::from_hours(HOURS as i64 - 1);
    let again = json!({
        "name": "once-more", "workflow": "source", "from": from.to_string(), "to": Timestamp::now().to_string(), "mode": "all", "reason": "to see it",
    });
    house.post("backfills", &again);
    house.until_slots("source", "succeeded", HOURS);
    Some(house)
}

/// The address of a slot's page.
pub(crate) fn slot(workflow: &str, time: &str) -> String {
    format!("/ui/workflows/{workflow}/slots/{time}")
}
