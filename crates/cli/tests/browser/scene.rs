//! A shop, as pictures show it: two days of it are told by the file of state, the hour that has begun goes on by itself.

use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use crate::house::House;
use crate::past;

/// Hours before this one.
const HOURS: i64 = 50;

const SHARED: &str = r#"
var START = "HOUR";
function define(id, needs, seconds, words, more) {
    const triggers = needs.map((need) => celos.successTrigger(need));
    celos.defineWorkflow(Object.assign({
        id: id, schedule: celos.hourlySchedule(), startTime: START, schedulingStrategy: celos.serialSchedulingStrategy(2),
        trigger: triggers.length ? celos.andTrigger(...triggers) : celos.alwaysTrigger(),
        externalService: celos.commandExternalService({ command: ["sh", "-c", words + "; sleep " + seconds] }),
    }, more));
}
"#;

const INGEST: &str = r#"
celos.importDefaults("shop");
const io = { pools: [celos.pool("database", 2)], tags: ["input"] };
define("ingest-clicks", [], 2, "echo read 48211 clicks", io);
define("ingest-orders", [], 3, "echo read 1204 orders", io);
define("ingest-payments", [], 0, "echo connecting to the payments database; echo connection refused: is it up? >&2; exit 1",
    Object.assign({ description: "copies the payments of an hour" }, io));
define("ingest-stock", [], 2, "echo read 311 shelves", io);
define("ingest-weather", [], 1, "echo the service is busy, try later >&2; exit 75", Object.assign({ retry: { count: 5, delaySeconds: 1800 } }, io));
"#;

const WAREHOUSE: &str = r#"
celos.importDefaults("shop");
const cluster = { pools: [celos.pool("cluster", 4, 2)], tags: ["tables"] };
for (const what of ["clicks", "orders", "payments", "stock", "weather"]) define("clean-" + what, ["ingest-" + what], 3, "echo cleaned " + what, cluster);
define("sessions", ["clean-clicks"], 900, "echo 3802 sessions so far", cluster);
define("order-lines", ["clean-orders", "clean-payments"], 4, "echo joined", cluster);
define("inventory", ["clean-stock", "clean-orders"], 5, "echo 97 articles are short", cluster);
"#;

const MODELS: &str = r#"
celos.importDefaults("shop");
const cluster = { pools: [celos.pool("cluster", 4, 2)], tags: ["models"] };
define("demand-forecast", ["inventory", "clean-weather"], 5, "echo fitted", cluster);
define("recommendations", ["sessions", "order-lines"], 5, "echo fitted", cluster);
define("shelf-plan", ["inventory"], 900, "echo planning", cluster);
"#;

const REPORTS: &str = r#"
celos.importDefaults("shop");
const report = { tags: ["reports"] };
define("daily-revenue", ["order-lines"], 1, "echo sent", report);
define("stock-report", ["inventory"], 2, "echo sent to 12 readers", report);
define("board-report", ["daily-revenue", "stock-report", "recommendations"], 1, "echo sent", report);
define("partner-export", ["inventory"], 1, "echo sent", Object.assign({}, report, { trigger: celos.fileCheckTrigger("file:partner/${hour}/_READY") }));
"#;

/// What runs when facts come.
const EVENTS: &str = r#"
application({ name: "Purchase" });
const run = (words) => celos.commandExternalService({ command: ["sh", "-c", words] });
program("PurchaseHistory", run("echo built the history of 4 partitions; sleep 2"), { description: "builds the history of purchases" });
program("Cleanup", run("echo removed 318 old files"), { description: "removes what is old" });
schedule("DataSchedule", "PurchaseHistory").withDescription("four new partitions of purchases").setProperties({ "input.dataset": "purchases" })
    .withConcurrency(1).enabled().triggerOnPartitions("purchases", 4);
schedule("DailySchedule", "PurchaseHistory").withConcurrency(1).abortIfNotMet().enabled().triggerByTime("0 4 * * *");
schedule("NightlyCleanup", "Cleanup").withTimeWindow("OPENS", "CLOSES").withDurationSinceLastRun(6, TimeUnit.HOURS).enabled()
    .triggerOn(getTriggerFactory().and(getTriggerFactory().onPartitions("purchases", 4), getTriggerFactory().onProgramStatus(ProgramType.WORKFLOW, "PurchaseHistory", ProgramStatus.COMPLETED)));
schedule("AfterFailure", "Cleanup").enabled().triggerOnProgramStatus(ProgramType.WORKFLOW, "PurchaseHistory", ProgramStatus.FAILED);
schedule("OnDemand", "Cleanup").triggerOn(celos.signalTrigger("clean"));
"#;

/// The facts of the shop: one schedule has run, one is held, one collects.
fn events(house: &House) {
    let tell = |n: u32, partitions: u32| {
        let fact =
            json!({ "source": "loader", "key": format!("load-{n}"), "dataset": "purchases", "partitions": partitions });
        house.post("facts", &fact);
    };
    tell(1, 1);
    tell(2, 3);
    house.until_slots("Purchase.DataSchedule", "succeeded", 1);
    house.until_slots("Purchase.NightlyCleanup", "held", 1);
    tell(3, 2);
    tell(4, 1);
    house.until_slots("Purchase.DataSchedule", "waiting", 1);
}

/// A mistake in a script, with a line.
const BROKEN: &str = "celos.importDefaults(\"shop\");\n\ndefine(\"returns\", [\"ingest-returns\"], 2, \"echo\", {\n    retry: { count: \"many\" },\n});\n";

/// The shop, once its hour is as far as it gets.
pub(crate) fn scene() -> Option<House> {
    let hour = Timestamp::from_second(Timestamp::now().as_second() / 3600 * 3600).expect("an hour");
    // Nothing may go before its past is written.
    let later = SHARED.replace("HOUR", "2100-01-01T00:00Z");
    let files = [
        ("defaults/shop.js", &*later),
        ("workflows/ingest.js", INGEST),
        ("workflows/warehouse.js", WAREHOUSE),
        ("workflows/models.js", MODELS),
        ("workflows/reports.js", REPORTS),
    ];
    let house = House::with_past(&files, |folder| {
        past::fill(folder, HOURS);
        folder.write("defaults/shop.js", &SHARED.replace("HOUR", &hour.to_string()));
        folder.write("workflows/returns.js", BROKEN);
        let clock = |hours| (Timestamp::now() + SignedDuration::from_hours(hours)).strftime("%H:00").to_string();
        folder.write("workflows/purchase.js", &EVENTS.replace("OPENS", &clock(2)).replace("CLOSES", &clock(8)));
    })?;
    house.until_slots("ingest-payments", "failed", 1);
    house.until_slots("ingest-weather", "backoff", 1);
    house.until_slots("sessions", "running", 1);
    events(&house);
    Some(house)
}
