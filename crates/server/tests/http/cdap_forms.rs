//! Bodies of the dialect of CDAP: what is read, what is written, and what is said about what can't be read.

use serde_json::{Value, json};

use crate::cdap_support::{Cdap, START, all, any, body, ended, partition, time};

/// Every trigger, as the server writes it.
fn triggers() -> Vec<Value> {
    let loader = json!({
        "type": "PROGRAM_STATUS", "programStatuses": ["COMPLETED", "FAILED", "KILLED"],
        "programId": {
            "namespace": "prod", "application": "Load", "version": "1.2", "type": "Spark", "program": "Loader",
            "entity": "PROGRAM",
        },
    });
    let mapper = json!({
        "type": "PROGRAM_STATUS", "programStatuses": ["KILLED"],
        "programId": {
            "namespace": "default", "application": "App", "version": "-SNAPSHOT", "type": "Mapreduce",
            "program": "Mr", "entity": "PROGRAM",
        },
    });
    let far = json!({
        "type": "PARTITION", "numPartitions": 7,
        "dataset": { "namespace": "prod", "dataset": "purchases", "entity": "DATASET" },
    });
    let zoned = json!({ "type": "TIME", "cronExpression": "0 0 4 ? * MON-FRI", "timeZone": "Europe/Berlin" });
    let nested = any(&[all(&[far.clone(), any(&[loader.clone(), time("*/5 * * * *")])]), ended("P1", &["FAILED"])]);
    let signal = json!({ "type": "SIGNAL", "signal": "go" });
    vec![time("0 4 * * *"), zoned, partition("ds", 1), far, ended("P1", &["COMPLETED"]), loader, mapper, nested, signal]
}

fn constraints() -> Value {
    json!([
        { "type": "CONCURRENCY", "maxConcurrency": 3, "waitUntilMet": true },
        { "type": "CONCURRENCY", "maxConcurrency": 5, "waitUntilMet": false },
        { "type": "DELAY", "millisAfterTrigger": 900_000, "waitUntilMet": true },
        { "type": "LAST_RUN", "millisSinceLastRun": 3_600_000, "waitUntilMet": false },
        { "type": "LAST_RUN", "millisSinceLastRun": 1, "waitUntilMet": true },
        { "type": "TIME_RANGE", "startTime": "22:00", "endTime": "06:00", "timeZone": "PST", "waitUntilMet": true },
        { "type": "TIME_RANGE", "startTime": "3:17", "endTime": "06:00", "timeZone": "GMT+02:00", "waitUntilMet": false },
    ])
}

#[tokio::test(flavor = "multi_thread")]
async fn cdap_12_every_trigger_and_constraint_comes_back_as_it_was_sent() {
    let server = Cdap::start().await;
    for (n, trigger) in triggers().into_iter().enumerate() {
        let mut sent = body(trigger.clone());
        sent["constraints"] = constraints();
        server.put(&format!("apps/App/schedules/s{n}"), &sent).await.ok();
        let shown = server.get(&format!("apps/App/schedules/s{n}")).await.ok().json();
        assert_eq!(shown["trigger"], trigger);
        assert_eq!(shown["constraints"], constraints());
        // What is shown can be sent: fields of the path's are passed over.
        let mut again = shown.clone();
        again["name"] = json!(format!("again{n}"));
        server.put(&format!("apps/App/schedules/again{n}"), &again).await.ok();
        let shown_again = server.get(&format!("apps/App/schedules/again{n}")).await.ok().json();
        assert_eq!(shown_again, again);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn cdap_12_a_schedule_is_shown_with_all_its_fields() {
    let server = Cdap::start().await;
    server.put("apps/App/schedules/s", &body(time("0 4 * * *"))).await.ok();
    let now: jiff::Timestamp = START.parse().unwrap();
    let expected = json!({
        "namespace": "default", "application": "App", "applicationVersion": "-SNAPSHOT", "name": "s",
        "description": "", "program": { "programName": "Wf", "programType": "WORKFLOW" }, "properties": {},
        "trigger": { "type": "TIME", "cronExpression": "0 4 * * *" }, "constraints": [],
        "timeoutMillis": 86_400_000, "status": "SUSPENDED", "lastUpdateTime": now.as_millisecond(),
    });
    assert_eq!(server.get("apps/App/schedules/s").await.ok().json(), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn cdap_11_a_zone_is_shown_as_it_was_named() {
    let server = Cdap::start().await;
    let mut sent = body(partition("ds", 1));
    sent["constraints"] =
        json!([{ "type": "TIME_RANGE", "startTime": "16:00", "endTime": "17:00", "timeZone": "PST" }]);
    server.put("apps/App/schedules/s", &sent).await.ok();
    let shown = server.get("apps/App/schedules/s").await.ok().json();
    assert_eq!(shown["constraints"][0]["timeZone"], "PST");
    sent["constraints"][0]["endTime"] = json!("16:00");
    let empty = server.put("apps/App/schedules/t", &sent).await;
    let why = "constraints[0]: the window starts and ends at 16:00: expected two different times";
    assert_eq!(empty.told(), (400, why));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_said_of_waiting_is_the_default_of_the_kind() {
    let server = Cdap::start().await;
    let mut sent = body(partition("ds", 1));
    sent["constraints"] = json!([
        { "type": "CONCURRENCY", "maxConcurrency": 1 },
        { "type": "DELAY", "millisAfterTrigger": 1 },
        { "type": "LAST_RUN", "millisSinceLastRun": 1 },
        { "type": "TIME_RANGE", "startTime": "22:00", "endTime": "06:00", "timeZone": "UTC" },
    ]);
    server.put("apps/App/schedules/s", &sent).await.ok();
    let shown = server.get("apps/App/schedules/s").await.ok().json();
    let waits: Vec<_> =
        shown["constraints"].as_array().unwrap().iter().map(|one| one["waitUntilMet"].clone()).collect();
    assert_eq!(waits, [false, true, false, true]);
}

#[tokio::test(flavor = "multi_thread")]
async fn names_of_kinds_are_read_in_any_case() {
    let server = Cdap::start().await;
    let sent = json!({
        "program": { "programName": "Wf", "programType": "workflow" },
        "trigger": { "type": "or", "triggers": [
            { "type": "Time", "cronExpression": "0 4 * * *" },
            { "type": "program_status", "programStatuses": ["completed", "Killed", "COMPLETED"], "programId": {
                "namespace": "default", "application": "App", "type": "workflow", "program": "P1",
            } },
        ] },
        "constraints": [{ "type": "Concurrency", "maxConcurrency": 1 }],
        "status": "SCHEDULED", "lastUpdateTime": 5, "namespace": "elsewhere", "application": 7, "unknown": null,
    });
    server.put("apps/App/schedules/s", &sent).await.ok();
    let shown = server.get("apps/App/schedules/s").await.ok().json();
    assert_eq!(shown["trigger"], any(&[time("0 4 * * *"), ended("P1", &["COMPLETED", "KILLED"])]));
    assert_eq!((&shown["status"], &shown["namespace"]), (&json!("SUSPENDED"), &json!("default")));
}

/// Bodies that can't be read, each with what is said about it.
fn wrong_triggers() -> Vec<(Value, &'static str)> {
    let cron = |text: &str| json!({ "type": "TIME", "cronExpression": text });
    let ended_by = |statuses: Value| {
        let mut trigger = ended("P1", &[]);
        trigger["programStatuses"] = statuses;
        trigger
    };
    let without = |mut trigger: Value, field: &str| {
        trigger.as_object_mut().unwrap().remove(field);
        trigger
    };
    let counted = |count: Value| {
        let mut trigger = partition("ds", 1);
        trigger["numPartitions"] = count;
        trigger
    };
    let statuses = "trigger.programStatuses";
    vec![
        (cron("* * * * 0"), "trigger.cronExpression: "),
        (cron("0  4 * * *"), "trigger.cronExpression: \"0  4 * * *\" has 6 fields, expected 5"),
        (cron("0 4 * *"), "has 4 fields, expected 5"),
        (without(cron("x"), "cronExpression"), "trigger.cronExpression is missing, expected a cron expression"),
        (json!({ "type": "TIME", "cronExpression": 4 }), "trigger.cronExpression is 4, expected a text"),
        (
            json!({ "type": "TIME", "cronExpression": "0 4 * * *", "timeZone": "Berlin" }),
            "trigger.timeZone: unknown time zone \"Berlin\": expected an IANA name such as \"Europe/Berlin\"",
        ),
        (counted(json!(0)), "trigger.numPartitions is 0, expected a whole number from 1"),
        (counted(json!(-1)), "trigger.numPartitions is -1, expected a whole number from 1"),
        (counted(json!(1.5)), "trigger.numPartitions is 1.5, expected a whole number from 1"),
        (
            counted(json!("3")),
            "trigger.numPartitions is \"3\", expected a whole number from 1 to 2147483647, not a text",
        ),
        (counted(Value::Null), "trigger.numPartitions is missing"),
        (without(partition("ds", 1), "dataset"), "trigger.dataset is missing"),
        (
            json!({ "type": "PARTITION", "dataset": { "dataset": "ds" }, "numPartitions": 1 }),
            "trigger.dataset.namespace is missing",
        ),
        (partition("a:b", 1), "trigger.dataset.dataset is \"a:b\", expected a name without \":\""),
        (
            without(ended("P1", &[]), "programStatuses"),
            "trigger.programStatuses is missing, expected COMPLETED, FAILED",
        ),
        (ended_by(json!([])), statuses),
        (
            ended_by(json!(["RUNNING"])),
            "trigger.programStatuses[0] is \"RUNNING\", expected COMPLETED, FAILED or KILLED",
        ),
        (ended_by(json!("COMPLETED")), "trigger.programStatuses is \"COMPLETED\", expected a list"),
        (json!({ "type": "AND", "triggers": [] }), "trigger.triggers is [], expected at least one trigger"),
        (
            json!({ "type": "OR", "triggers": [time("* * * * *"), null] }),
            "trigger.triggers[1] is null, expected an object",
        ),
        (all(&[any(&[counted(json!(0))])]), "trigger.triggers[0].triggers[0].numPartitions is 0"),
        (json!({ "type": "TIDE" }), "trigger.type is \"TIDE\", expected TIME, PARTITION, PROGRAM_STATUS, AND, OR"),
        (json!({ "type": "STREAM_SIZE", "triggerMB": 1 }), "there are no streams"),
        (json!({}), "trigger.type is missing"),
        (json!("0 4 * * *"), "trigger is \"0 4 * * *\", expected an object"),
        (Value::Null, "trigger is missing"),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trigger_that_is_wrong_is_named_with_what_was_expected() {
    let server = Cdap::start().await;
    for (trigger, why) in wrong_triggers() {
        let reply = server.put("apps/App/schedules/s", &body(trigger.clone())).await;
        assert_eq!(reply.status, 400, "{trigger}: {reply:?}");
        assert!(reply.text.contains(why), "{trigger}: {}", reply.text);
        assert!(reply.header("content-type").starts_with("text/plain"), "{reply:?}");
    }
    let mut deep = time("* * * * *");
    for _ in 0..64 {
        deep = all(&[deep]);
    }
    let deep = server.put("apps/App/schedules/s", &body(deep)).await;
    assert!(deep.status == 400 && deep.text.contains("nested at most 64 deep"), "{deep:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn vectors_of_cron_expressions_are_judged_as_they_were() {
    let server = Cdap::start().await;
    let invalid = "* * * ?|* * * * 1 ? *|* * * ? 1 ?|2 6 ? * 0,1,4,5|* * * * 1 *|* * * * 1 1|* * * 1 1 *|0 4 1 * 1";
    for cron in invalid.split('|') {
        assert_eq!(server.put("apps/App/schedules/s", &body(time(cron))).await.status, 400, "{cron}");
    }
    let valid =
        "* * * 1 *|* * 1 1 *|* * * 1 1|2 6 ? * 1,4,5|* * ? 1 1|* * * 1 ?|* * ? 1 *|* * * ? 1 1|* * * * 1 ?|* * * ? 1 *";
    for (n, cron) in valid.split('|').enumerate() {
        server.put(&format!("apps/App/schedules/s{n}"), &body(time(cron))).await.ok();
        assert_eq!(server.trigger(&format!("s{n}")).await["cronExpression"], cron);
    }
    server.put("apps/App/schedules/blanks", &body(time("0 4 * * *  "))).await.ok();
    assert_eq!(server.trigger("blanks").await["cronExpression"], "0 4 * * *", "blanks at the end are no fields");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_constraint_that_is_wrong_is_named_with_what_was_expected() {
    let server = Cdap::start().await;
    let range = |start: &str, end: &str, zone: &str| json!({ "type": "TIME_RANGE", "startTime": start, "endTime": end, "timeZone": zone });
    let wrong = [
        (
            json!({ "type": "DELAY", "millisAfterTrigger": 5, "waitUntilMet": false }),
            "constraints[0]: a delay can't abort",
        ),
        (json!({ "type": "DELAY", "millisAfterTrigger": 0 }), "constraints[0].millisAfterTrigger is 0"),
        (json!({ "type": "CONCURRENCY", "maxConcurrency": 0 }), "constraints[0].maxConcurrency is 0"),
        (
            json!({ "type": "CONCURRENCY", "maxConcurrency": "1" }),
            "expected a whole number from 1 to 2147483647, not a text",
        ),
        (json!({ "type": "CONCURRENCY" }), "constraints[0].maxConcurrency is missing"),
        (
            json!({ "type": "CONCURRENCY", "maxConcurrency": 1, "waitUntilMet": "yes" }),
            "waitUntilMet is \"yes\", expected true or false",
        ),
        (json!({ "type": "LAST_RUN", "millisSinceLastRun": -5 }), "constraints[0].millisSinceLastRun is -5"),
        (range("25:00", "06:00", "UTC"), "constraints[0]: \"25:00\" is not a time of the day: expected HH:mm"),
        (range("10:75", "06:00", "UTC"), "\"10:75\" is not a time of the day"),
        (range("22:00", "22:00", "UTC"), "the window starts and ends at 22:00"),
        (range("22:00", "06:00", "Mars/Olympus"), "constraints[0].timeZone: unknown time zone"),
        (
            json!({ "type": "TIME_RANGE", "startTime": "22:00", "endTime": "06:00" }),
            "constraints[0].timeZone is missing",
        ),
        (
            json!({ "type": "TIDE" }),
            "constraints[0].type is \"TIDE\", expected CONCURRENCY, DELAY, LAST_RUN or TIME_RANGE",
        ),
        (json!(null), "constraints[0] is null, expected an object"),
    ];
    for (constraint, why) in wrong {
        let mut sent = body(partition("ds", 1));
        sent["constraints"] = json!([constraint]);
        let reply = server.put("apps/App/schedules/s", &sent).await;
        assert!(reply.status == 400 && reply.text.contains(why), "{constraint}: {reply:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn other_fields_that_are_wrong_are_named_too() {
    let server = Cdap::start().await;
    let wrong = [
        ("timeoutMillis", json!(0), "timeoutMillis is 0, expected a whole number from 1"),
        ("timeoutMillis", json!(-1), "timeoutMillis is -1"),
        ("timeoutMillis", json!("60000"), "timeoutMillis is \"60000\""),
        ("name", json!("other"), "name is \"other\", and the path names \"s\""),
        ("description", json!(5), "description is 5, expected a text"),
        ("properties", json!({ "k": { "a": 1 } }), "properties.k is {\"a\":1}, expected a text"),
        ("properties", json!([]), "properties is [], expected an object"),
        ("constraints", json!({}), "constraints is {}, expected a list"),
        ("program", json!("Wf"), "program is \"Wf\", expected an object"),
        (
            "program",
            json!({ "programName": "Wf", "programType": "POEM" }),
            "program.programType is \"POEM\", expected WORKFLOW",
        ),
        ("program", json!({ "programName": "Wf" }), "program.programType is missing"),
        ("program", json!({ "programType": "WORKFLOW" }), "program.programName is missing"),
        ("program", json!(null), "program is missing"),
        ("startTime", json!("tomorrow"), "startTime: "),
        ("endTime", json!(true), "endTime is true, expected a time"),
        ("jitterMillis", json!(-1), "jitterMillis is -1"),
        ("catchUp", json!("some"), "catchUp is \"some\", expected skip, latest or all"),
    ];
    for (field, value, why) in wrong {
        let mut sent = body(partition("ds", 1));
        sent[field] = value;
        let reply = server.put("apps/App/schedules/s", &sent).await;
        assert!(reply.status == 400 && reply.text.contains(why), "{sent}: {reply:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_of_ours_are_taken_and_kept_by_updates() {
    let server = Cdap::start().await;
    let mut sent = body(time("0 4 * * *"));
    sent["startTime"] = json!("2026-12-01T00:00Z");
    sent["endTime"] = json!(1_800_000_000_000_i64);
    sent["jitterMillis"] = json!(5000);
    sent["catchUp"] = json!("all");
    server.put("apps/App/schedules/s", &sent).await.ok();
    server.post("apps/App/schedules/s/update", &json!({ "description": "new" })).await.ok();
    let shown = server.get("apps/App/schedules/s").await.ok().json();
    let expected = json!(["2026-12-01T00:00:00.000Z", "2027-01-15T08:00:00.000Z", 5000, "all", "new"]);
    let fields = ["startTime", "endTime", "jitterMillis", "catchUp", "description"];
    assert_eq!(fields.map(|field| shown[field].clone()).to_vec(), *expected.as_array().unwrap());
    server.post("apps/App/schedules/s/update", &json!({ "endTime": "" })).await.ok();
    assert_eq!(server.get("apps/App/schedules/s").await.json().get("endTime"), None);
    let reversed = server.post("apps/App/schedules/s/update", &json!({ "endTime": "2026-11-30T00:00Z" })).await;
    assert_eq!(reversed.told(), (400, "it ends before it starts: expected an endTime after the startTime"));
}

#[tokio::test(flavor = "multi_thread")]
async fn whole_numbers_may_be_written_with_an_exponent() {
    let server = Cdap::start().await;
    let sent = body(partition("ds", 7)).to_string().replace("\"numPartitions\":7", "\"numPartitions\":7.0");
    let sent = sent.replacen('{', "{\"timeoutMillis\":8.64E7,", 1);
    server.ask(axum::http::Method::PUT, "apps/App/schedules/s", &sent).await.ok();
    let shown = server.get("apps/App/schedules/s").await.ok().json();
    assert_eq!((&shown["timeoutMillis"], &shown["trigger"]["numPartitions"]), (&json!(86_400_000), &json!(7)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mapping_may_be_the_object_that_it_is() {
    let server = Cdap::start().await;
    let mut sent = body(ended("P1", &["FAILED"]));
    sent["properties"] = json!({ "triggering.properties.mapping": { "cleanup_dir": "src" }, "n": 5, "on": true });
    server.put("apps/App/schedules/s", &sent).await.ok();
    let shown = server.get("apps/App/schedules/s").await.ok().json();
    let expected = json!({ "triggering.properties.mapping": "{\"cleanup_dir\":\"src\"}", "n": "5", "on": "true" });
    assert_eq!(shown["properties"], expected);
}
