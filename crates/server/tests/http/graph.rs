//! The graph: the page, its picture, the API, and what is in a slot's way.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::support::{NOW, Server, slot, workflow};

/// Four in a row, one of which looks an hour back, one that borrows times, and one that waits for nobody's success.
fn chain() -> String {
    workflow("a", "tags: ['raw']")
        + &workflow("b", "trigger: celos.successTrigger('a')")
        + &workflow(
            "c",
            "trigger: celos.andTrigger(celos.successTrigger('b'), celos.offsetTrigger(-3600, celos.successTrigger('b')))",
        )
        + &workflow("d", "schedule: celos.dependentSchedule('c'), trigger: celos.successTrigger('c')")
        + &workflow("e", "trigger: celos.successTrigger('gone')")
}

async fn page(server: &Server, uri: &str) -> String {
    let reply = server.get(uri).await;
    assert_eq!(reply.status, StatusCode::OK, "{reply:?}");
    assert!(reply.header("content-security-policy").starts_with("default-src 'none'; script-src 'self'"));
    assert!(!reply.text.contains("style=\""), "the policy forbids styles inside of pages");
    reply.text
}

/// The names of the nodes that a page draws.
fn drawn(page: &str) -> Vec<&str> {
    page.split("data-w=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect()
}

#[track_caller]
fn says(page: &str, texts: &[&str]) {
    for text in texts {
        assert!(page.contains(text), "\"{text}\" is not in {page}");
    }
}

#[tokio::test]
async fn the_page_draws_what_depends_on_what() {
    let server = Server::start(&chain()).await;
    let all = page(&server, "/ui/graph").await;
    assert_eq!(drawn(&all), ["a", "b", "c", "d", "e", "gone"]);
    says(
        &all,
        &[
            "aria-label=\"6 workflows and 5 arrows, which lead from what is waited for to what waits\"",
            "<title>c waits for b: the slot 1 h earlier, the slot of the same time</title>",
            "<title>d has slots at the times of c</title>",
            "gone: not defined, but others depend on it",
            "href=\"/ui/graph?focus=a\"",
            "<a href=\"/ui/graph\" data-key=\"g\" aria-current=\"page\">Graph</a>",
        ],
    );
    let near = page(&server, "/ui/graph?focus=b&up=0&down=1").await;
    assert_eq!(drawn(&near), ["b", "c"]);
    says(&near, &[">+1</text>", "<h2><a href=\"/ui/workflows/b\">b</a></h2>", "1 more, which are not shown"]);
    assert_eq!(drawn(&page(&server, "/ui/graph?tag=raw").await), ["a"]);
    assert_eq!(drawn(&page(&server, "/ui/graph?find=gone&project=").await), ["gone"]);
}

#[tokio::test]
async fn what_is_not_there_is_said() {
    let server = Server::start(&chain()).await;
    says(&page(&server, "/ui/graph?find=nobody").await, &["No workflow matches", "Show all 6"]);
    says(&page(&server, "/ui/graph?focus=zebra").await, &["No workflow matches"]);
    let empty = Server::start("").await;
    says(&page(&empty, "/ui/graph").await, &["No workflows yet", "celos.successTrigger"]);
    for (uri, said) in [
        ("/ui/graph?up=many", "&quot;up&quot; is &quot;many&quot;, expected a number from 0 to 99."),
        ("/ui/graph?hours=0", "expected a number from 1 to"),
        ("/ui/graph?slot=a", "expected a slot such as ID@2015-09-13T13:40Z or ID@JOB_ID"),
        ("/ui/graph?slot=a@never", "never"),
        ("/ui/graph?as=%3Cb%3E", "&quot;as&quot; is &quot;&lt;b&gt;&quot;, expected list or picture."),
        ("/ui/graph?nonsense=1", "nonsense"),
        ("/ui/graph/nodes?of=a/b", "slash"),
        ("/ui/graph/nodes?hours=x", "hours"),
    ] {
        let reply = server.get(uri).await;
        assert_eq!(reply.status, 400, "{uri}");
        assert!(reply.text.contains(said), "{uri}: {}", reply.text);
    }
}

/// A server on which `a` failed at a time and all others wait.
async fn failed() -> Server {
    let server = Server::start(&chain()).await;
    server.step(NOW).await;
    // Serially, the oldest went first.
    server.end(&slot("a", "2015-09-06T16:00Z"), 1, false).await;
    server.step(NOW).await;
    server
}

#[tokio::test]
async fn the_path_leads_from_a_slot_to_its_causes() {
    let server = failed().await;
    let way = page(&server, "/ui/graph?slot=d@2015-09-06T16:00Z").await;
    says(
        &way,
        &[
            "Blocked by",
            "The causes",
            "<a href=\"/ui/workflows/a/slots/2015-09-06T16:00Z\">a@2015-09-06T16:00Z</a>",
            "<b>failed</b>: run 1 ended at",
            "b@2015-09-06T15:00Z",
            "class=\"node bad along root\"",
            "class=\"edge along\"",
        ],
    );
    let hours = server.get("/api/v1/workflows/d/slots/2015-09-06T16:00Z/upstream").await.ok().json();
    let steps: Vec<Value> = hours["steps"].as_array().unwrap().clone();
    let told: Vec<_> =
        steps.iter().map(|step| (step["workflow"].as_str().unwrap(), step["level"].as_u64().unwrap())).collect();
    assert_eq!(told, [("d", 0), ("c", 1), ("b", 2), ("b", 2), ("a", 3)]);
    let causes: Vec<_> = steps.iter().filter_map(|step| step["obstacles"][0]["kind"].as_str()).collect();
    assert_eq!(causes, ["missing", "failed"], "before the first one that was planned there is none");
    let waits = page(&server, "/ui/workflows/d/slots/2015-09-06T16:00Z").await;
    says(&waits, &["<a href=\"/ui/graph?slot=d%402015-09-06T16:00Z\">What blocks it"]);
    says(&page(&server, "/ui/workflows/d").await, &["<a href=\"/ui/graph?focus=d\">in the graph</a>"]);
}

#[tokio::test]
async fn nodes_tell_how_their_slots_do() {
    let server = failed().await;
    let nodes = server.get("/ui/graph/nodes?hours=240&of=a&of=e&of=nobody").await.ok().json();
    assert_eq!(nodes.as_array().unwrap().len(), 2);
    assert_eq!((&nodes[0][0], &nodes[0][1], &nodes[0][2]), (&json!("a"), &json!("bad"), &json!("F")));
    assert!(nodes[0][4].as_str().unwrap().starts_with("a: 1 failed, 1 "), "{nodes}");
    let focus = page(&server, "/ui/graph?focus=a&hours=240").await;
    says(&focus, &["Slots that have not succeeded", "<title>a: 1 failed, 1 "]);
    says(&page(&server, "/ui/graph?focus=b").await, &["Slots that have not succeeded", "What blocks it?"]);
    says(&page(&server, "/ui/graph?hours=240").await, &["Failing"]);
}

#[tokio::test]
async fn the_api_gives_nodes_and_edges() {
    let server = failed().await;
    let graph = server.get("/api/v1/graph?focus=c&up=1&down=1&hours=240").await.ok().json();
    let ids: Vec<_> = graph["nodes"].as_array().unwrap().iter().map(|node| node["id"].as_str().unwrap()).collect();
    assert_eq!((ids, &graph["total"]), (vec!["b", "c", "d"], &json!(6)));
    assert_eq!(graph["nodes"][0]["hiddenUp"], 1);
    assert_eq!(graph["edges"][0], json!({ "from": "b", "to": "c", "kind": "success", "laterSeconds": -3600 }));
    assert_eq!(graph["edges"][3], json!({ "from": "c", "to": "d", "kind": "schedule" }));
    assert_eq!(server.get("/api/v1/graph?focus=zebra").await.status, 404);
    assert_eq!(server.get("/api/v1/graph?up=1").await.status, 400);
    assert_eq!(server.get("/api/v1/graph?hours=99999").await.status, 400);
    assert_eq!(server.get("/api/v1/workflows/zebra/slots/2015-09-13T15:00Z/upstream").await.status, 404);
    let svg = server.get("/api/v1/graph.svg").await.ok();
    assert_eq!(svg.header("content-type"), "image/svg+xml");
    assert!(svg.text.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" width=") && !svg.text.contains("<a "));
}

#[tokio::test]
async fn circles_are_drawn_and_told() {
    let script =
        workflow("a", "trigger: celos.successTrigger('b')") + &workflow("b", "trigger: celos.successTrigger('a')");
    let server = Server::start(&script).await;
    server.step(NOW).await;
    assert_eq!(drawn(&page(&server, "/ui/graph").await), ["a", "b"]);
    says(&page(&server, "/ui/graph?slot=a@2015-09-13T14:00Z").await, &["depend on each other in a cycle"]);
}

#[tokio::test]
async fn hostile_names_stay_names() {
    let hostile = "<svg onload=alert(1)><script>alert(2)\\\"'&@\u{202e}עברית";
    let script =
        workflow("WILL BE REPLACED", "trigger: celos.successTrigger('<b>bold')").replace("WILL BE REPLACED", hostile);
    let server = Server::start(&script).await;
    server.step(NOW).await;
    for uri in ["/ui/graph", "/ui/graph?as=list", "/ui/graph?find=%3Cb%3E", "/ui/graph.svg", "/api/v1/graph.svg"] {
        let text = server.get(uri).await.ok().text;
        assert!(
            !text.contains("<script>alert") && !text.contains("<svg onload") && !text.contains("<b>bold"),
            "{uri}: {text}"
        );
    }
    assert_eq!(server.get("/ui/graph?focus=a/b").await.status, 400, "no name has a slash");
}

#[tokio::test]
async fn the_list_says_what_the_picture_shows() {
    let server = Server::start(&chain()).await;
    let list = page(&server, "/ui/graph?as=list&focus=c").await;
    assert!(drawn(&list).is_empty());
    says(
        &list,
        &[
            "<th scope=\"row\"><a href=\"/ui/graph?focus=b&amp;as=list\">b</a></th>",
            "the slot 1 h earlier",
            "the times",
        ],
    );
}

#[tokio::test]
async fn why_goes_to_the_root_through_any_number_of_workflows() {
    let server = failed().await;
    let of = |id: &str| format!("/api/v1/workflows/{id}/slots/2015-09-06T16:00Z/why");
    let why = server.get(&of("d")).await.ok().json();
    let cause = "failed at 2015-09-13T15:01Z (run 1: exited with status 3)";
    let root = &why["roots"][0];
    assert_eq!((&root["workflow"], &root["time"]), (&json!("a"), &json!("2015-09-06T16:00:00.000Z")));
    assert_eq!((&root["kind"], &root["state"], &root["run"]), (&json!("failed"), &json!("failed"), &json!(1)));
    assert_eq!(root["cause"], cause);
    assert_eq!(
        root["text"],
        format!(
            "waits for c@2015-09-06T16:00Z, which waits for b@2015-09-06T16:00Z, which waits for a@2015-09-06T16:00Z, \
             which {cause}"
        )
    );
    let way: Vec<&Value> = root["way"].as_array().unwrap().iter().map(|step| &step["workflow"]).collect();
    assert_eq!(way, ["d", "c", "b", "a"]);
    // An hour before it, nobody plans.
    assert_eq!(
        why["roots"][1]["text"].as_str().unwrap().split(": ").next(),
        Some("waits for c@2015-09-06T16:00Z, which waits for b@2015-09-06T15:00Z, which does not exist")
    );
    let then = server.get(&format!("{}?at=2015-09-13T15:00:30Z", of("d"))).await.ok().json();
    assert_eq!(then["roots"][0]["kind"], "missing", "it was not planned then: {then}");
    let page = page(&server, "/ui/workflows/d/slots/2015-09-06T16:00Z").await;
    let words = ["failed at <time", " (run 1: exited with status 3)", "By way of "];
    says(&page, &["<h2>Root causes</h2>", "/ui/workflows/a/slots/2015-09-06T16"]);
    says(&page, &words);
}

#[tokio::test]
async fn why_names_a_pause_and_a_full_limit_upstream() {
    let server = failed().await;
    server.post_json("/api/v1/workflows/b/pause", "").await.ok();
    let root = |id: &'static str, time: &'static str| {
        let uri = format!("/api/v1/workflows/{id}/slots/{time}/why");
        let server = &server;
        async move { server.get(&uri).await.ok().json()["roots"].clone() }
    };
    let paused = root("d", "2015-09-06T17:00Z").await;
    let texts: Vec<&str> = paused.as_array().unwrap().iter().map(|root| root["text"].as_str().unwrap()).collect();
    assert!(
        texts.contains(&"waits for c@2015-09-06T17:00Z, which waits for b@2015-09-06T16:00Z, which waits, and its workflow is paused"),
        "{texts:?}"
    );
    let queued = root("b", "2015-09-06T18:00Z").await;
    let texts: Vec<&str> = queued.as_array().unwrap().iter().map(|root| root["text"].as_str().unwrap()).collect();
    assert!(
        texts.contains(&"waits for a@2015-09-06T18:00Z, which is queued since 2015-09-13T15:01Z: 1 of 1 places of its workflow are taken"),
        "{texts:?}"
    );
}
