//! Permits, as a page and as JSON.

use kelos_model::SlotState;
use serde_json::{Value, json};

use crate::support::{Server, slot, workflow};

async fn capacity(server: &Server) -> Value {
    server.get("/api/v1/capacity").await.ok().json()
}

/// Three workflows that share a pool of three permits, of which one's runs take two.
fn shared() -> String {
    let pooled = |id: &str, strategy: u32, pool: &str| {
        let strategy = format!("schedulingStrategy: celos.serialSchedulingStrategy({strategy})");
        workflow(id, &format!("startTime: '2015-09-13T14:00Z', {strategy}, pools: [celos.pool({pool})]"))
    };
    pooled("big", 1, "'spark <1>', 3, 2")
        + &pooled("many", 9, "'spark <1>', 3")
        + &workflow("alone", "startTime: '2015-09-13T13:00Z'")
}

#[tokio::test(flavor = "multi_thread")]
async fn without_pools_the_page_teaches_them() {
    let server = Server::start(&workflow("w", "startTime: '2015-09-13T15:00Z'")).await;
    let page = server.get("/ui/capacity").await.ok().text;
    for text in ["No slot waits for a permit", "No workflow names a pool", "celos.pool(&quot;spark&quot;, 4)"] {
        assert!(page.contains(text), "{text} is not in {page}");
    }
    let found = capacity(&server).await;
    assert_eq!((&found["runs"]["held"], &found["runs"]["limit"]), (&json!(0), &json!(256)));
    assert_eq!((&found["pools"], &found["workflows"]), (&json!([]), &json!([])));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_holds_permits_and_who_waits_is_told_everywhere() {
    let server = Server::start(&shared()).await;
    server.step("2015-09-13T15:00:30Z").await;
    let waiting = slot("many", "2015-09-13T15:00Z");
    server.until_state(&waiting, SlotState::Queued).await;
    let found = capacity(&server).await;
    let pool = &found["pools"][0];
    assert_eq!((&pool["name"], &pool["size"], &pool["held"]), (&json!("spark <1>"), &json!(3), &json!(3)), "{found}");
    assert_eq!((&pool["holders"][0]["workflow"], &pool["holders"][0]["permits"]), (&json!("big"), &json!(2)), "{pool}");
    assert_eq!((&pool["first"][0]["workflow"], &pool["queued"]), (&json!("many"), &json!(1)), "{pool}");
    let full: Vec<_> = found["workflows"].as_array().unwrap().iter().map(|one| &one["workflow"]).collect();
    assert_eq!(full, ["alone", "big"], "{found}");
    let page = server.get("/ui/capacity").await.ok().text;
    for text in ["spark &lt;1&gt;", "3 of 3", "many@2015-09-13T15:00Z", "big@2015-09-13T14:00Z", "(2 permits)"] {
        assert!(page.contains(text), "{text} is not in {page}");
    }
    let why = server.get("/api/v1/workflows/many/slots/2015-09-13T15:00Z/why").await.ok().text;
    assert!(why.contains("3 of 3 permits of pool spark <1> are held by big@2015-09-13T14:00Z(2), many@"), "{why}");
    let page = server.get("/ui/workflows/big").await.ok().text;
    assert!(page.contains("/ui/capacity#pool-spark%20%3C1%3E"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pool_of_two_sizes_is_a_problem() {
    let pooled = |id: &str, size: u32| workflow(id, &format!("pools: [celos.pool('db', {size})]"));
    let server = Server::start(&(pooled("a", 4) + &pooled("b", 2))).await;
    let problems = server.get("/api/v1/problems").await.ok().text;
    assert!(
        problems.contains(r#"pool \"db\" has 4 permits by \"a\", and 2 by \"b\": the smallest size holds"#),
        "{problems}"
    );
    let found = capacity(&server).await;
    assert_eq!((&found["pools"][0]["size"], &found["pools"][0]["disputed"]), (&json!(2), &json!(true)), "{found}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_pool_of_a_step_is_known_before_it_has_run() {
    let flow = r#"kelos.flow("sync", { steps: {
        read: { command: ["true"], pools: [celos.pool("crm", 2)] },
        write: { needs: "read", command: ["true"], pools: [celos.pool("crm", 2)] }
    } });"#;
    let server = Server::start(flow).await;
    let found = capacity(&server).await;
    let pool = &found["pools"][0];
    assert_eq!((&pool["name"], &pool["size"], &pool["held"]), (&json!("crm"), &json!(2), &json!(0)), "{found}");
    assert_eq!((&pool["disputed"], &pool["queued"]), (&json!(false), &json!(0)), "{found}");
    let page = server.get("/ui/capacity").await.ok().text;
    assert!(page.contains("crm") && !page.contains("No workflow names a pool"), "{page}");
}
