//! Values at the limits, at each door.

use axum::http::Method;
use serde_json::{Value, json};

use crate::support::Server;

const PROGRAM: &str = r#"
application({ name: "a" });
program("p", celos.commandExternalService({ command: ["true"] }));
"#;

const SCRIPT: &str = r#"
kelos.flow("given", {"steps": {"one": {"command": ["true"]}}});
kelos.workflow("hourly", {"schedule": "hourly", "command": ["true"]});
kelos.flow("flow", {"steps": {"wait": {"signal": "go"}, "last": {"needs": "wait", "command": ["true"]}}});
"#;

fn lists(levels: usize) -> String {
    format!("{}1{}", "[".repeat(levels), "]".repeat(levels))
}

/// The method, the path and the body of a request, where `@` is a value, and how many levels around the value are the user's, too.
const DOORS: [(Method, &str, &str, usize); 10] = [
    (Method::PUT, "/api/v1/registers/b/k", "@", 0),
    (Method::PUT, "/register?bucket=b&key=k", "@", 0),
    (Method::POST, "/api/v1/workflows/given/start", r#"{"arguments": {"a": @}}"#, 1),
    (Method::POST, "/api/v1/workflows/flow/start", r#"{"key": "s1", "arguments": {"a": @}}"#, 1),
    (Method::POST, "/api/v1/workflows/flow/slots/.s1/signal", r#"{"signal": "go", "payload": @}"#, 0),
    (Method::POST, "/api/v1/facts", r#"{"signal": "go", "payload": @}"#, 0),
    (Method::POST, "/api/v1/facts", r#"{"program": "x", "state": "succeeded", "outputs": {"o": @}}"#, 1),
    (Method::POST, "/api/v1/facts", r#"{"program": "x", "state": "succeeded", "arguments": {"a": @}}"#, 1),
    (Method::POST, "/api/v1/workflows/hourly/slots/2015-09-13T14:00Z/rerun", r#"{"arguments": {"a": @}}"#, 1),
    (
        Method::POST,
        "/api/v1/backfills",
        r#"{"workflow": "hourly", "from": "2015-09-01T00:00Z", "to": "2015-09-01T02:00Z", "arguments": {"a": @}}"#,
        1,
    ),
];

#[tokio::test(flavor = "multi_thread")]
async fn no_door_takes_more_than_64_levels() {
    let server = Server::start(SCRIPT).await;
    for (method, uri, body, own) in DOORS {
        for levels in [65, 66, 100, 126, 127, 128, 150, 192, 193, 5000] {
            let body = body.replace('@', &lists(levels - own));
            let reply = server.ask(method.clone(), uri, &body).await;
            let (status, told) = reply.told();
            assert!((400..500).contains(&status), "{uri} {levels}: {status} {told}");
            assert!(told.contains("levels deep, expected at most 64"), "{uri} {levels}: {told}");
        }
        let reply = server.ask(method, uri, &body.replace('@', &lists(64 - own))).await;
        assert!(!reply.told().1.contains("levels deep"), "{uri}: {:?}", reply.told());
    }
    let register = server.get("/api/v1/registers/b/k").await.ok().json();
    assert_eq!(register["value"].to_string(), lists(64));
}

#[tokio::test(flavor = "multi_thread")]
async fn triggers_are_nested_in_64_levels_at_the_most_in_words_and_in_json() {
    let server = Server::start(PROGRAM).await;
    let words = |levels: usize| json!(format!("{}signal(go){}", "and(".repeat(levels - 1), ")".repeat(levels - 1)));
    let nested = |levels: usize| {
        (1..levels)
            .fold(json!({"type": "signal", "signal": "go"}), |inner, _| json!({"type": "and", "nested": [inner]}))
    };
    let body = |id: &str, trigger: Value| json!({"name": id, "program": "a.p", "trigger": trigger}).to_string();
    for (form, trigger) in [("words", words(64)), ("json", nested(64))] {
        server.post_json("/api/v1/schedules", &body(form, trigger)).await.ok();
        server.get(&format!("/api/v1/schedules/a.{form}")).await.ok();
    }
    for trigger in [words(65), nested(65), words(1000)] {
        let reply = server.post_json("/api/v1/schedules", &body("deep", trigger)).await;
        let (status, told) = reply.told();
        assert!(status == 400 && told.contains("nested more than 64 deep"), "{status} {told}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_door_takes_control_characters_in_cron_expressions() {
    let server = Server::start(PROGRAM).await;
    let program = json!({ "programName": "p", "programType": "WORKFLOW" });
    for control in '\0'..' ' {
        for cron in [format!("{control} 4 * * *"), format!("0 4 * * {control}*"), format!("0 {control}4 * * *")] {
            let trigger = json!({ "type": "TIME", "cronExpression": cron });
            let body = json!({ "program": program, "trigger": trigger }).to_string();
            let reply = server.ask(Method::PUT, "/v3/namespaces/default/apps/a/schedules/s", &body).await;
            assert!(reply.told().0 == 400, "{cron:?}: {:?}", reply.told());
            assert!(reply.told().1.contains("control character"), "{cron:?}: {:?}", reply.told());
            let body =
                json!({ "name": "n", "program": "a.p", "trigger": { "type": "time", "cron": cron } }).to_string();
            assert_eq!(server.post_json("/api/v1/schedules", &body).await.told().0, 400, "{cron:?}");
        }
    }
}
