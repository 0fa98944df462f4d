//! Names with separators in them: what is called alike once its parts are put together is still told apart.

use std::collections::BTreeMap;

use kelos_core::{Deployment, Input};
use kelos_model::WorkflowId;
use serde_json::{Value, json};

use crate::cdap_support::{Cdap, body, partition, program, programs, time};

/// Has programs of other projects beside the usual ones.
async fn define(server: &Cdap, more: &[(&str, &str)]) {
    let mut all = programs();
    all.extend(more.iter().map(|(project, name)| program(project, name)));
    let deployed = more.iter().map(|(project, _)| {
        ((*project).to_owned(), Deployment { digest: Some(more.len().to_string()), update_schedules: false, by: None })
    });
    let deployed: BTreeMap<_, _> = deployed.collect();
    server
        .node
        .handle()
        .deliver(Input::Definitions { provenance: kelos_model::workflow::Provenance::Code, all, deployed })
        .unwrap();
    server.settle().await;
}

fn version(version: &str, rest: &str) -> String {
    format!("apps/V/versions/{version}/{rest}").trim_end_matches('/').to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_with_dots_and_a_name_with_dots_never_meet() {
    let server = Cdap::start().await;
    define(&server, &[("V~1.2", "Wf")]).await;
    server.put(&version("1.2", "schedules/3.W"), &body(partition("ds", 1))).await.ok();
    server.post(&version("1.2", "schedules/3.W/enable"), &Value::Null).await.ok();
    // A program of a later version, whose name looks the same once it is put together.
    define(&server, &[("V~1.2", "Wf"), ("V~1.2.3", "W")]).await;
    let shown = server.get(&version("1.2", "schedules/3.W")).await.ok().json();
    assert_eq!(
        (&shown["name"], &shown["applicationVersion"], &shown["status"]),
        (&json!("3.W"), &json!("1.2"), &json!("SCHEDULED"))
    );
    let programs = server.get(&version("1.2.3", "")).await.ok().json()["programs"].clone();
    assert_eq!((programs.as_array().unwrap().len(), &programs[0]["name"]), (1, &json!("W")));
    server.partitions("ds", 1).await;
    server.post(&version("1.2.3", "workflows/W/start"), &Value::Null).await.ok();
    server.settle().await;
    assert_eq!((server.runs("V~1.2.3~.W"), server.runs("V~1.2.3.W")), (1, 1));
    assert_eq!(server.get(&version("1.2.3", "schedules/W")).await.status, 404);
    let names = server.names(&version("1.2", "schedules")).await;
    assert_eq!(names, ["3.W"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_application_with_dots_and_a_program_with_dots_never_meet() {
    let server = Cdap::start().await;
    define(&server, &[("A", "Wf"), ("A.b", "Wf")]).await;
    let mut second = body(time("0 5 * * *"));
    second["description"] = json!("second");
    server.put("apps/A/schedules/b.c", &body(time("0 4 * * *"))).await.ok();
    server.put("apps/A.b/schedules/c", &second).await.ok();
    let shown = async |path: &str| server.get(path).await.ok().json()["description"].clone();
    assert_eq!(shown("apps/A/schedules/b.c").await, json!(""));
    assert_eq!(shown("apps/A.b/schedules/c").await, json!("second"));
    server.delete("apps/A/schedules/b.c").await.ok();
    assert_eq!(shown("apps/A.b/schedules/c").await, json!("second"));
    // A workflow is no Spark program, whatever it is called.
    server.put("apps/App/schedules/spark:Loader", &body(time("0 4 * * *"))).await.ok();
    assert!(server.node.reader().workflow(&WorkflowId::new("App.spark:Loader").unwrap()).unwrap().is_some());
    assert_eq!(server.names("apps/App/schedules").await, ["spark:Loader"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_that_are_not_there_are_shown_as_they_were_named() {
    let server = Cdap::start().await;
    for (application, version, name) in
        [("A", "1.2", "3.W"), ("A", "1.2.3", "W"), ("A.b", "-SNAPSHOT", "c"), ("A", "-SNAPSHOT", "b.c")]
    {
        let program = json!({
            "namespace": "default", "application": application, "version": version, "type": "Workflow", "program": name,
            "entity": "PROGRAM",
        });
        let trigger = json!({ "type": "PROGRAM_STATUS", "programId": program, "programStatuses": ["COMPLETED"] });
        server.schedule("s", trigger.clone()).await;
        assert_eq!(server.trigger("s").await, trigger);
        server.delete("apps/App/schedules/s").await.ok();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dataset_of_the_usual_namespace_may_be_named_with_it() {
    let server = Cdap::start().await;
    server.schedule("s", partition("ds", 1)).await;
    let fact = axum::http::Request::post("/api/v1/facts").header("content-type", "application/json");
    server.send(fact.body(json!({ "dataset": "default:ds" }).to_string().into()).unwrap()).await.ok();
    server.settle().await;
    assert_eq!(server.runs("App.s"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn profiles_with_slashes_are_told_apart() {
    let server = Cdap::start().await;
    let path = |namespace: &str, name: &str| format!("/v3/namespaces/{namespace}/profiles/{name}");
    server.put(&path("a%2Fb", "c"), &json!({ "description": "one" })).await.ok();
    server.put(&path("a", "b%2Fc"), &json!({ "description": "two" })).await.ok();
    let shown =
        async |namespace: &str, name: &str| server.get(&path(namespace, name)).await.ok().json()["description"].clone();
    assert_eq!((shown("a%2Fb", "c").await, shown("a", "b%2Fc").await), (json!("one"), json!("two")));
    assert_eq!(server.names("/v3/namespaces/a/profiles").await, ["b/c"]);
}
