//! The board, as browsers and those without scripts get it.

use axum::body::Body;
use axum::http::Request;
use kelos_front::{App, Groups};
use kelos_model::SlotState;
use kelos_server::router;
use serde_json::json;

use crate::streams::EventStream;
use crate::support::{NOW, Server, slot, workflow};

/// The texts of the elements that a piece of HTML begins, one after the other.
pub(crate) fn between<'a>(html: &'a str, before: &str, after: &str) -> Vec<&'a str> {
    html.split(before).skip(1).filter_map(|rest| rest.split(after).next()).collect()
}

fn letters(html: &str) -> Vec<&str> {
    between(html, "class=\"cells\"", "<")
        .into_iter()
        .filter_map(|text| text.split_once('>'))
        .map(|(_, text)| text)
        .collect()
}

#[tokio::test]
async fn a_row_is_a_letter_for_each_column() {
    let server = Server::start(
        &(workflow("first", "") + &workflow("second", "trigger: celos.notTrigger(celos.alwaysTrigger())")),
    )
    .await;
    server.step(NOW).await;
    server.end(&slot("first", "2015-09-06T16:00Z"), 1, false).await;
    let page = server.get("/ui?time=2015-09-06T18:00Z").await.ok().text;
    assert_eq!(between(&page, "data-w=\"", "\""), ["first", "second"]);
    // Serially, the oldest went first; nothing else goes before the next step.
    let rows = letters(&page);
    assert!(rows[0].starts_with("QQF.") && rows[0].len() == 48, "{rows:?}");
    assert!(rows[1].starts_with("WWW."), "{rows:?}");
    let days = server.get("/ui?zoom=1440").await.ok().text;
    assert_eq!(letters(&days)[1], "WWWWWWW");
    assert_eq!(between(&days, "data-n=\"", "\"")[1], "0:16,1:24,2:24,3:24,4:24,5:24,6:24");
}

#[tokio::test]
async fn the_newest_column_is_at_the_end_that_one_likes() {
    let server = Server::start(&workflow("w", "")).await;
    server.step(NOW).await;
    let newest = server.get("/ui?time=2015-09-06T16:00Z").await.ok().text;
    let oldest = server.get("/ui?time=2015-09-06T16:00Z&order=oldest").await.ok().text;
    assert_eq!(letters(&newest)[0].chars().rev().collect::<String>(), letters(&oldest)[0]);
    assert_ne!(letters(&newest), letters(&oldest));
}

#[tokio::test]
async fn marks_are_in_the_zone_that_is_asked_for() {
    let server = Server::start(&workflow("w", "")).await;
    let berlin = server.get("/ui?zone=Europe/Berlin").await.ok().text;
    assert!(berlin.contains("title=\"2015-09-13 17:00 CEST\">17<"), "{berlin}");
    assert!(server.get("/ui").await.ok().text.contains("title=\"2015-09-13 15:00 UTC\">15<"));
}

#[tokio::test]
async fn what_is_wrong_with_an_address_is_said_on_a_page() {
    let server = Server::start(&workflow("w", "")).await;
    for (uri, status, said) in [
        ("/ui?zoom=%3Cb%3E", 400, "The parameter &quot;zoom&quot; is &quot;&lt;b&gt;&quot;, expected the minutes"),
        ("/ui?time=soon", 400, "The parameter &quot;time&quot; is not understood"),
        ("/ui?zone=Moon", 400, "The parameter &quot;zone&quot; is not understood: unknown time zone &quot;Moon&quot;"),
        ("/ui/board/cell?workflow=w", 400, "The parameter &quot;from&quot; is missing"),
        ("/ui/board/cell?workflow=a/b&from=2015-09-13&to=2015-09-14", 400, "The parameter &quot;workflow&quot;"),
        ("/ui/nothing/%3Cscript%3E", 404, "There is nothing at"),
        ("/ui/assets/0/board.js", 404, "There is no file board.js"),
    ] {
        let reply = server.get(uri).await;
        assert_eq!(reply.status, status, "{uri}");
        assert!(reply.text.contains(said) && !reply.text.contains("<script>"), "{uri}: {}", reply.text);
        assert!(reply.header("content-security-policy").starts_with("default-src 'none'"), "{uri}");
    }
}

#[tokio::test]
async fn hostile_names_are_text() {
    let id = "<img src=x onerror=alert(1)>\"'&amp;";
    let fields = "tags: ['\"><script>alert(2)</script>'], description: '\"><script>alert(3)<\\/script>'";
    let server = Server::start(&workflow(id, fields)).await;
    server.step(NOW).await;
    let page = server.get("/ui?find=%22%3E%3Cscript%3E").await.ok().text;
    assert!(!page.contains("<img") && !page.contains("<script>"), "{page}");
    assert!(page.contains("&lt;img src=x onerror=alert(1)&gt;&quot;'&amp;amp;"));
}

#[tokio::test]
async fn pages_load_nothing_but_their_own_assets_which_are_kept() {
    let server = Server::start(&workflow("w", "")).await;
    let page = server.get("/ui").await.ok();
    assert_eq!(page.header("x-content-type-options"), "nosniff");
    assert_eq!(page.header("referrer-policy"), "no-referrer");
    assert!(!page.text.contains(" style=") && !page.text.contains(" onclick="));
    let scripts = between(&page.text, "<script src=\"", "\"");
    let styles = between(&page.text, "<link rel=\"stylesheet\" href=\"", "\"");
    assert!(scripts.len() >= 3 && styles.len() >= 2);
    for asset in scripts.into_iter().chain(styles) {
        let reply = server.get(asset).await.ok();
        assert_eq!(reply.header("cache-control"), "public, max-age=31536000, immutable", "{asset}");
        assert!(["text/javascript; charset=utf-8", "text/css; charset=utf-8"].contains(&reply.header("content-type")));
    }
}

#[tokio::test]
async fn browsers_are_led_to_the_board_and_programs_are_not() {
    let server = Server::start("").await;
    let accepts = |accept: &str| Request::get("/").header("accept", accept).body(Body::empty()).unwrap();
    let led = server.send(accepts("text/html,application/xhtml+xml")).await;
    assert_eq!((led.status.as_u16(), led.header("location")), (303, "/ui"));
    assert!(server.send(accepts("*/*")).await.ok().text.starts_with("This is Kelos."));
    assert!(server.get("/ui").await.ok().text.contains("No workflows yet"));
}

#[tokio::test]
async fn a_cell_leads_to_its_slot_or_lists_several() {
    let server = Server::start(&workflow("w", "")).await;
    server.step(NOW).await;
    let one = server.get("/ui/board/cell?workflow=w&from=2015-09-13T15:00Z&to=2015-09-13T16:00Z").await;
    assert_eq!((one.status.as_u16(), one.header("location")), (303, "/ui/workflows/w/slots/2015-09-13T15:00Z"));
    let several = server.get("/ui/board/cell?workflow=w&from=2015-09-13T13:00Z&to=2015-09-13T16:00Z").await.ok().text;
    assert_eq!(between(&several, "<td><a href=\"/ui/workflows/w/slots/", "\"").len(), 3);
    let none = server.get("/ui/board/cell?workflow=w&from=2035-09-13&to=2035-09-14").await.ok().text;
    assert!(none.contains("There are none."));
}

#[tokio::test]
async fn rows_are_told_as_they_change() {
    let server = Server::start(&workflow("w", "")).await;
    server.step(NOW).await;
    let first = slot("w", "2015-09-06T16:00Z");
    server.until_state(&first, SlotState::Running).await;
    let page = server.get("/ui?time=2015-09-06T16:00Z").await.ok().text;
    let stream = between(&page, "data-stream=\"", "\"")[0].replace("&amp;", "&");
    let mut followed = EventStream::open(&server, &stream, None).await;
    server.end(&first, 1, true).await;
    let sent = followed.next().await.unwrap();
    assert_eq!(sent.name, "rows");
    assert_eq!(sent.data, json!([["w", format!("S{}", ".".repeat(47)), ""]]));
    assert!(sent.id > 0);
}

#[tokio::test]
async fn pausing_is_told_as_a_change_of_workflows() {
    let server = Server::start(&workflow("w", "")).await;
    server.step(NOW).await;
    let page = server.get("/ui").await.ok().text;
    let stream = between(&page, "data-stream=\"", "\"")[0].replace("&amp;", "&");
    let mut followed = EventStream::open(&server, &stream, None).await;
    server.post("/api/v1/workflows/w/pause").await.ok();
    assert_eq!(followed.next().await.unwrap().name, "workflows");
    let page = server.get("/ui").await.ok().text;
    assert!(page.contains("<em>paused</em>"), "{page}");
}

#[tokio::test]
async fn workflows_stand_as_a_file_says_or_by_project() {
    let mut server = Server::start(&(workflow("b", "") + &workflow("a", "") + &workflow("c", ""))).await;
    let by_project = server.get("/ui").await.ok().text;
    assert_eq!(between(&by_project, "role=\"rowgroup\" aria-label=\"", "\""), ["test"]);
    assert_eq!(between(&by_project, "data-w=\"", "\""), ["a", "b", "c"]);
    let text =
        r#"{"groups": [{"name": "<First>", "workflows": ["c", "gone"]}, {"name": "Second", "workflows": ["a"]}]}"#;
    let app = App::new(server.node.clone(), "1.2.3").with_groups(Groups::parse(text).unwrap());
    server.router = router(app);
    let grouped = server.get("/ui").await.ok().text;
    let names = between(&grouped, "role=\"rowgroup\" aria-label=\"", "\"");
    assert_eq!(names, ["&lt;First&gt;", "Second", "Unlisted workflows"]);
    assert_eq!(between(&grouped, "data-w=\"", "\""), ["c", "a", "b"]);
    assert!(grouped.contains("gone (missing)"));
}
