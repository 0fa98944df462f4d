//! Deadlines: schedules get them over both APIs, and the board is told which slots missed theirs.

use axum::http::Method;
use serde_json::{Value, json};

use crate::cdap_support::{Cdap, body, time};
use crate::support::{NOW, Server, at, workflow};

const SCRIPT: &str = r#"
    application({ name: "Purchase" });
    program("History", celos.commandExternalService({ command: ["true"] }));
    schedule("Nightly", "History").withDeadline("4h").triggerByTime("0 4 * * *");
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_keeps_its_deadline_until_it_is_changed() {
    let server = Server::start(SCRIPT).await;
    let nightly = "/api/v1/schedules/Purchase.Nightly";
    let ask = async |method: Method, path: &str, body: Value| server.ask(method, path, &body.to_string()).await;
    let patch = async |body: Value| ask(Method::PATCH, nightly, body).await;
    assert_eq!(server.get(nightly).await.ok().json()["deadline"], "4h");
    assert_eq!(patch(json!({ "description": "later" })).await.ok().json()["deadline"], "4h");
    let local = patch(json!({ "timeZone": "Europe/Berlin", "deadline": { "at": "07:30" } })).await.ok().json();
    assert_eq!(local["deadline"], json!({ "at": "07:30", "zone": "Europe/Berlin" }));
    let wrong = patch(json!({ "deadline": "soon" })).await;
    assert_eq!(wrong.status, 400);
    let told = "`deadline`: \"soon\" is no deadline: expected a length of time such as \"2h\", or {at: \"07:30\", zone: \"Europe/Berlin\"}";
    assert_eq!(wrong.json()["detail"], told);
    assert_eq!(patch(json!({ "deadline": null })).await.ok().json().get("deadline"), None);

    let trigger = json!({ "type": "fired", "cron": "0 5 * * *" });
    let put = async |body: Value| ask(Method::PUT, nightly, body).await.ok().json();
    assert_eq!(put(json!({ "trigger": trigger, "deadline": "30m" })).await["deadline"], "30m");
    assert_eq!(put(json!({ "trigger": trigger })).await.get("deadline"), None, "what is missing is as in a new one");
    let new = json!({ "name": "Other", "program": "Purchase.History", "trigger": trigger, "deadline": "1h" });
    assert_eq!(ask(Method::POST, "/api/v1/schedules", new).await.ok().json()["deadline"], "1h");
    let definition = server.get("/api/v1/workflows/Purchase.Other").await.ok().json();
    assert_eq!(definition["definition"]["deadline"], "1h", "{definition}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_update_of_cdap_keeps_the_deadline_that_it_does_not_name() {
    let server = Cdap::start().await;
    let mut sent = body(time("0 4 * * *"));
    sent["deadline"] = json!({ "at": "07:30", "zone": "Europe/Berlin", "businessDays": true });
    server.put("apps/App/schedules/s", &sent).await.ok();
    let shown = async || server.get("apps/App/schedules/s").await.ok().json();
    let update = async |fields: Value| server.post("apps/App/schedules/s/update", &fields).await;
    assert_eq!(shown().await["deadline"], sent["deadline"]);
    update(json!({ "description": "later", "constraints": [], "properties": {} })).await.ok();
    assert_eq!(shown().await["deadline"], sent["deadline"]);
    update(json!({ "deadline": "2h" })).await.ok();
    update(json!({ "deadline": null })).await.ok();
    assert_eq!(shown().await["deadline"], "2h", "null is as if it were left out");
    let wrong = update(json!({ "deadline": 7 })).await;
    assert!(wrong.told().1.contains("expected a length of time such as \"2h\""), "{:?}", wrong.told());
    update(json!({ "deadline": "" })).await.ok();
    assert_eq!(shown().await.get("deadline"), None);
}

#[tokio::test]
async fn the_board_is_told_which_slots_missed_their_deadlines() {
    let server = Server::start(&workflow("a", "deadline: \"2h\", startTime: \"2015-09-13T11:00Z\"")).await;
    server.step(NOW).await;
    let told = server.get("/ui/board/late").await.ok().json();
    let late = |text: &str| at(text).as_millisecond();
    assert_eq!(told["overdue"], json!({ "a": 3 }), "{told}");
    let times = ["2015-09-13T11:00Z", "2015-09-13T12:00Z", "2015-09-13T13:00Z"].map(late);
    assert_eq!(told["overdueAt"], json!({ "a": times }));
}
