//! Which workflows stand together on the board, and who says so.

use axum::http::Method;
use kelos_core::SetRegister;
use kelos_front::{App, Groups};
use kelos_model::Actor;
use kelos_server::router;
use serde_json::json;

use crate::board::between;
use crate::pages::form;
use crate::streams::EventStream;
use crate::support::{NOW, Server, slot, workflow};

const GROUPS: &str = "/api/v1/board/groups";
const FORM: &str = "/ui/board/groups";

fn names(page: &str) -> Vec<&str> {
    between(page, "role=\"rowgroup\" aria-label=\"", "\"")
}

fn rows(page: &str) -> Vec<&str> {
    between(page, "data-w=\"", "\"")
}

async fn three() -> Server {
    Server::start(&(workflow("b", "tags: ['x', 'y']") + &workflow("a", "tags: ['y']") + &workflow("c", ""))).await
}

#[tokio::test]
async fn what_is_set_wins_over_the_file_until_it_is_taken_back() {
    let mut server = three().await;
    let by_project = json!({"from": "projects", "groups": [{"name": "test", "workflows": ["a", "b", "c"]}]});
    assert_eq!(server.get(GROUPS).await.ok().json(), by_project);
    let file = r#"{"groups": [{"name": "File", "workflows": ["b"]}]}"#;
    server.router = router(App::new(server.node.clone(), "1.2.3").with_groups(Groups::parse(file).unwrap()));
    assert_eq!(server.get(GROUPS).await.ok().json()["from"], "file");
    let groups = json!([{"name": "Z", "workflows": ["c", "gone"]}, {"name": "A", "workflows": ["a"]}]);
    // What the API gave may be sent back as it is.
    let set = server.ask(Method::PUT, GROUPS, &json!({"groups": groups, "from": "file"}).to_string()).await.ok().json();
    assert_eq!(set, json!({"from": "api", "groups": groups}));
    let page = server.get("/ui").await.ok().text;
    assert_eq!((names(&page), rows(&page)), (vec!["Z", "A", "Unlisted workflows"], vec!["c", "a", "b"]));
    assert_eq!(server.ask(Method::DELETE, GROUPS, "").await.ok().json()["from"], "file");
    assert_eq!(names(&server.get("/ui").await.ok().text), ["File", "Unlisted workflows"]);
}

#[tokio::test]
async fn the_log_tells_who_set_groups_and_open_boards_hear_of_it() {
    let server = three().await;
    let page = server.get("/ui").await.ok().text;
    let stream = between(&page, "data-stream=\"", "\"")[0].replace("&amp;", "&");
    let mut followed = EventStream::open(&server, &stream, None).await;
    server.ask(Method::PUT, GROUPS, r#"{"groups": [{"name": "G", "workflows": []}]}"#).await.ok();
    assert_eq!(followed.next().await.unwrap().name, "workflows");
    let events = server.get("/api/v1/events?limit=1000").await.ok().json();
    let last = events["items"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(
        (&last["subject"], &last["key"], &last["by"]),
        (&json!("register"), &json!("board-groups"), &json!("api"))
    );
}

#[tokio::test]
async fn groups_that_are_not_understood_are_refused_with_what_is_wrong() {
    let server = three().await;
    for (body, said) in [
        ("{", "failed to read the groups: EOF while parsing an object at line 1 column 1; expected {\\\"groups\\\""),
        (r#"{"groups": [{"name": "g"}]}"#, "missing field `workflows`"),
        (r#"{"groups": [{"name": " ", "workflows": []}]}"#, "is no name of a group"),
        (r#"{"groups": [{"name": "g", "workflows": ["a", "a"]}]}"#, "twice in group"),
    ] {
        let reply = server.ask(Method::PUT, GROUPS, body).await;
        assert_eq!(reply.status, 400, "{body}");
        assert!(reply.text.contains(said) && reply.text.contains("urn:kelos:problem:bad-groups"), "{}", reply.text);
    }
    // The register itself is for nobody to set; whatever an older version let in, the board goes on without.
    let set = server.ask(Method::PUT, "/api/v1/registers/kelos/board-groups", "7").await;
    assert_eq!((set.status.as_u16(), &set.json()["code"]), (403, &"reserved-bucket".into()));
    let (bucket, key) = ("kelos".to_owned(), "board-groups".to_owned());
    let nonsense = SetRegister { bucket, key, value: Some(7.into()), reason: None };
    server.node.handle().ask(&Actor::system("test"), nonsense).await.unwrap();
    let page = server.get("/ui").await.ok().text;
    assert!(page.contains("Groups that were set are left out: the register kelos/board-groups is of no use"), "{page}");
    assert_eq!(names(&page), ["test"]);
}

fn fields(groups: &str, before: &str, act: &str) -> String {
    let encoded =
        |text: &str| percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string();
    format!("groups={}&before={}&act={act}", encoded(groups), encoded(before))
}

fn before(page: &str) -> String {
    between(page, "name=\"before\" value=\"", "\"")[0].replace("&quot;", "\"")
}

#[tokio::test]
async fn groups_are_set_by_a_form_that_loses_nothing() {
    let server = three().await;
    let page = server.get(FORM).await.ok().text;
    assert!(page.contains("None are set: there is one group per project."));
    assert!(page.contains("data-workflows=\"[&quot;a&quot;,&quot;b&quot;,&quot;c&quot;]\""), "{page}");
    let shown = before(&page);
    let wanted = r#"{"groups": [{"name": "<b>", "workflows": ["b"]}]}"#;
    let broken = form(&server, FORM, &fields("{\"groups\": <", &shown, "save"), "same-origin").await;
    assert_eq!(broken.status, 400);
    assert!(
        broken.text.contains("Not saved: expected value")
            && broken.text.contains("{&quot;groups&quot;: &lt;</textarea>")
    );
    let saved = form(&server, FORM, &fields(wanted, &shown.replace('\n', "\r\n"), "save"), "same-origin").await;
    assert_eq!((saved.status.as_u16(), saved.header("location")), (303, "/ui"));
    assert_eq!(names(&server.get("/ui").await.ok().text), ["&lt;b&gt;", "Unlisted workflows"]);
    let stale = form(&server, FORM, &fields(r#"{"groups": []}"#, &shown, "save"), "same-origin").await;
    assert_eq!(stale.status, 409);
    assert!(stale.text.contains("The groups or the workflows have changed meanwhile"));
    assert_eq!(form(&server, FORM, &fields("", "", "reset"), "same-origin").await.status, 303);
    assert_eq!(server.get(GROUPS).await.ok().json()["from"], "projects");
}

#[tokio::test]
async fn rows_stand_by_project_or_by_their_first_tag_if_one_likes() {
    let server = three().await;
    server.ask(Method::PUT, GROUPS, r#"{"groups": [{"name": "G", "workflows": ["c"]}]}"#).await.ok();
    assert_eq!(names(&server.get("/ui?by=project").await.ok().text), ["test"]);
    let by_tag = server.get("/ui?by=tag").await.ok().text;
    assert_eq!((names(&by_tag), rows(&by_tag)), (vec!["x", "y", "Without tags"], vec!["b", "a", "c"]));
    assert!(by_tag.contains("data-tags=\"x\ny\""));
    // There is one project only, so there is nothing to choose.
    assert!(by_tag.contains("<select id=\"tag\"") && !by_tag.contains("<select id=\"project\""));
    let wrong = server.get("/ui?by=size").await;
    assert_eq!(wrong.status, 400);
    assert!(wrong.text.contains("expected groups, project or tag"));
}

#[tokio::test]
async fn one_line_says_whether_it_is_fine() {
    let of = |id: &str| workflow(id, "startTime: '2015-09-06T16:00Z'");
    let server = Server::start(&(of("a") + &of("b") + &of("c"))).await;
    // What catches up is late from its planning on, so the first hours are planned in time.
    server.step("2015-09-06T16:01Z").await;
    server.step("2015-09-06T17:01Z").await;
    server.step(NOW).await;
    let first = "/ui?time=2015-09-06T18:00Z";
    let said = |page: &str| {
        let line = between(page, "id=\"verdict\"", "</p>")[0].split_once('>').unwrap().1.to_owned();
        let words: Vec<&str> = line.split(['<', '>']).step_by(2).filter(|text| !text.is_empty()).collect();
        words.join("|")
    };
    assert_eq!(said(&server.get(first).await.ok().text), "All fine|3 workflows");
    // Not all of it can be told by letters: the second hour has been due for a week.
    assert_eq!(server.get("/ui/board/late").await.ok().json(), json!({"late": 3, "overdue": {}, "overdueAt": {}}));
    server.end(&slot("a", "2015-09-06T16:00Z"), 1, false).await;
    server.post("/api/v1/workflows/b/pause").await.ok();
    assert_eq!(said(&server.get(first).await.ok().text), "1 of 3 workflows failing|a|1 paused");
}

#[tokio::test]
async fn columns_may_be_weeks_and_months() {
    let server = three().await;
    server.step(NOW).await;
    let weeks = server.get("/ui?zoom=10080").await.ok().text;
    // Marks are the Mondays, below the months that begin.
    assert!(weeks.contains("title=\"2015-09-07 00:00 UTC\">07<") && weeks.contains(">Sep</b>"), "{weeks}");
    assert_eq!(between(&weeks, "data-n=\"", "\"")[0], "0:160,1:8");
    assert!(server.get("/ui?zoom=43200").await.ok().text.contains("data-n=\"0:168\""));
}
