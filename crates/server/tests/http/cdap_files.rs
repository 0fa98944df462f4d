//! Applications that files define, seen through the dialect of CDAP.

use axum::http::Method;
use serde_json::{Value, json};

use crate::cdap_support::{partition, time};
use crate::support::{Reply, Server};

const FILE: &str = r#"
    application({ namespace: "prod", name: "Purchase", version: "1.2" });
    const echo = celos.commandExternalService({ command: ["echo", "purchases"] });
    program("PurchaseHistoryWorkflow", echo);
    program("Loader", echo, { kind: ProgramType.SPARK });
    schedule(buildSchedule("DailySchedule", ProgramType.WORKFLOW, "PurchaseHistoryWorkflow")
        .withConcurrency(1).abortIfNotMet()
        .triggerByTime("0 4 * * *"));
    schedule(buildSchedule("afterLoader", ProgramType.WORKFLOW, "PurchaseHistoryWorkflow")
        .triggerOnProgramStatus(ProgramType.SPARK, "Loader", ProgramStatus.COMPLETED, ProgramStatus.KILLED));
    schedule("mixed", "PurchaseHistoryWorkflow").triggerOn(celos.andTrigger(
        celos.partitionsTrigger("ds", 2), celos.hdfsCheckTrigger("/ready", "hdfs://nameservice1")));
"#;

const APP: &str = "/v3/namespaces/prod/apps/Purchase/versions/1.2";

async fn ask(server: &Server, method: Method, path: &str, body: &Value) -> Reply {
    server.ask(method, &format!("{APP}/{path}"), &body.to_string()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_file_defines_is_shown_and_can_be_changed() {
    let server = Server::start(FILE).await;
    let daily = server.get(&format!("{APP}/schedules/DailySchedule")).await.ok().json();
    assert_eq!((&daily["namespace"], &daily["application"]), (&json!("prod"), &json!("Purchase")));
    assert_eq!((&daily["applicationVersion"], &daily["status"]), (&json!("1.2"), &json!("SUSPENDED")));
    assert_eq!(daily["program"], json!({ "programName": "PurchaseHistoryWorkflow", "programType": "WORKFLOW" }));
    assert_eq!(daily["trigger"], time("0 4 * * *"));
    assert_eq!(daily["constraints"], json!([{ "type": "CONCURRENCY", "maxConcurrency": 1, "waitUntilMet": false }]));
    let after = server.get(&format!("{APP}/schedules/afterLoader")).await.ok().json();
    let loader = json!({
        "namespace": "prod", "application": "Purchase", "version": "1.2", "type": "Spark", "program": "Loader",
        "entity": "PROGRAM",
    });
    assert_eq!(after["trigger"]["programId"], loader);
    assert_eq!(after["trigger"]["programStatuses"], json!(["COMPLETED", "KILLED"]));
    ask(&server, Method::POST, "schedules/DailySchedule/update", &json!({ "trigger": time("0 5 * * *") })).await.ok();
    let changed = server.get(&format!("{APP}/schedules/DailySchedule")).await.ok().json();
    assert_eq!((&changed["trigger"], &changed["constraints"]), (&time("0 5 * * *"), &daily["constraints"]));
    let found = server
        .get(
            "/v3/namespaces/x/schedules/trigger-type/program-status?trigger-namespace-id=prod&trigger-app-name=Purchase\
             &trigger-app-version=1.2&trigger-program-type=spark&trigger-program-name=Loader",
        )
        .await;
    assert_eq!(found.ok().json()[0]["name"], "afterLoader");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_only_scripts_can_say_is_shown_and_stays() {
    let server = Server::start(FILE).await;
    let shown = async || server.get(&format!("{APP}/schedules/mixed")).await.ok().json();
    let trigger = shown().await["trigger"].clone();
    assert_eq!((&trigger["type"], &trigger["triggers"][1]["type"]), (&json!("AND"), &json!("SCRIPT")));
    assert_eq!(trigger["triggers"][1]["trigger"]["type"], "path");
    ask(&server, Method::POST, "schedules/mixed/update", &json!({ "description": "new" })).await.ok();
    assert_eq!(shown().await["trigger"], trigger);
    // Clients that change a part may send back all that they were shown.
    let mut whole = shown().await;
    whole["description"] = json!("newer");
    ask(&server, Method::POST, "schedules/mixed/update", &whole).await.ok();
    assert_eq!((&shown().await["trigger"], &shown().await["description"]), (&trigger, &json!("newer")));
    let mut other = trigger.clone();
    other["triggers"][0]["numPartitions"] = json!(3);
    let sent = ask(&server, Method::POST, "schedules/mixed/update", &json!({ "trigger": other })).await;
    assert!(sent.status == 400 && sent.text.contains("trigger.triggers[1].type is \"SCRIPT\""), "{sent:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_workflows_of_a_file_can_be_scheduled() {
    let server = Server::start(FILE).await;
    let of = |kind: &str, name: &str| json!({ "program": { "programName": name, "programType": kind }, "trigger": partition("ds", 1) });
    let add =
        async |kind: &str, name: &str| ask(&server, Method::PUT, "schedules/s", &of(kind, name)).await.status.as_u16();
    assert_eq!(add("SPARK", "Loader").await, 400);
    assert_eq!(add("WORKFLOW", "Loader").await, 404);
    assert_eq!(add("WORKFLOW", "PurchaseHistoryWorkflow").await, 200);
    assert_eq!(add("WORKFLOW", "PurchaseHistoryWorkflow").await, 409);
    let sent = of("WORKFLOW", "PurchaseHistoryWorkflow").to_string();
    let elsewhere = server.ask(Method::PUT, "/v3/namespaces/prod/apps/Purchase/schedules/s", &sent).await;
    assert_eq!(elsewhere.status, 404, "another version");
}
