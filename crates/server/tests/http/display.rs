//! The choices of a viewer: zone, theme, direction, folded groups, and the part of the log.

use axum::body::Body;
use axum::http::{Request, StatusCode};

use crate::board::between;
use crate::pages::{assert_harmless, assert_says, form, page, words};
use crate::support::{NOW, Reply, Server, slot, workflow};

async fn with_cookies(server: &Server, uri: &str, cookies: &str) -> Reply {
    server.send(Request::get(uri).header("cookie", cookies).body(Body::empty()).unwrap()).await
}

#[tokio::test]
async fn a_choice_is_kept_by_the_browser_and_mistakes_are_named() {
    let server = Server::start("").await;
    let sent =
        form(&server, "/ui/display", "zone=europe%2Fberlin&theme=dark&order=oldest&back=%2Fui%2Fstuck", "same-origin")
            .await;
    assert_eq!((sent.status, sent.header("location")), (StatusCode::SEE_OTHER, "/ui/stuck"));
    let kept: Vec<&str> = sent.headers.get_all("set-cookie").iter().map(|cookie| cookie.to_str().unwrap()).collect();
    let ends = "; Path=/ui; Max-Age=31536000; SameSite=Lax";
    assert_eq!(
        kept,
        ["kelos-zone=Europe%2FBerlin", "kelos-theme=dark", "kelos-order=oldest"].map(|one| format!("{one}{ends}"))
    );
    for (fields, said) in [
        (
            "zone=Berlin",
            "Unknown time zone &quot;Berlin&quot;: expected an IANA name such as &quot;Europe/Berlin&quot;",
        ),
        ("theme=pink", "The field &quot;theme&quot; is &quot;pink&quot;, expected one of: system, light, dark"),
        ("order=x", "expected one of: newest, oldest"),
    ] {
        let refused = form(&server, "/ui/display", fields, "same-origin").await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{fields}");
        assert!(refused.text.contains(said), "{}", refused.text);
    }
    assert_eq!(form(&server, "/ui/display", "theme=dark", "cross-site").await.status, StatusCode::FORBIDDEN);
    let away = form(&server, "/ui/display", "theme=dark&back=https%3A%2F%2Fevil.example", "same-origin").await;
    assert_eq!(away.header("location"), "/ui");
}

#[tokio::test]
async fn every_page_has_the_times_of_the_chosen_zone_and_the_exact_ones() {
    let server = Server::start(&(workflow("up", "") + &workflow("down", "trigger: celos.successTrigger('up')"))).await;
    server.step(NOW).await;
    server.end(&slot("up", "2015-09-06T16:00Z"), 1, false).await;
    let berlin = "kelos-zone=Europe%2FBerlin; kelos-theme=dark";
    for uri in [
        "/ui",
        "/ui/stuck",
        "/ui/activity",
        "/ui/workflows/up",
        "/ui/workflows/up/slots/2015-09-06T16:00Z",
        "/ui/nothing",
        "/ui/problems",
    ] {
        let shown = with_cookies(&server, uri, berlin).await.text;
        assert!(shown.contains("<html lang=\"en\" data-theme=\"dark\" data-zone=\"Europe/Berlin\""), "{uri}: {shown}");
        assert!(!server.get(uri).await.text.contains("data-theme"), "{uri}: the system's");
    }
    let shown = with_cookies(&server, "/ui/workflows/up", berlin).await.text;
    assert!(
        shown.contains("<time datetime=\"2015-09-13T16:00Z\" title=\"2015-09-13T16:00Z\">2015-09-13 18:00 CEST</time>"),
        "{shown}"
    );
    let log = with_cookies(&server, "/ui/activity", berlin).await.text;
    assert!(words(&log).contains("2015-09-13 17:01 CEST") && log.contains(" data-relative>"), "{log}");
    let board = with_cookies(&server, "/ui", berlin).await.text;
    assert!(board.contains("title=\"2015-09-13 17:00 CEST\">17<") && board.contains("data-zone=\"Europe/Berlin\""));
    assert!(
        with_cookies(&server, "/ui?zone=UTC", berlin).await.text.contains("title=\"2015-09-13 15:00 UTC\">15<"),
        "the address goes first"
    );
    let timeline = with_cookies(&server, "/ui/timeline", berlin).await.text;
    assert!(timeline.contains(" CEST: "), "{timeline}");
    let nonsense = with_cookies(&server, "/ui", "kelos-zone=<b>; kelos-room=x; kelos-folded=%00%ff; kelos-order").await;
    assert_eq!(nonsense.status, StatusCode::OK, "no page fails for a cookie");
}

#[tokio::test]
async fn a_board_has_as_many_columns_as_have_room_and_those_that_read_below_those_that_produce() {
    let needs = |id: &str, on: &str| workflow(id, &format!("trigger: celos.successTrigger('{on}')"));
    let script = needs("a-report", "m-model")
        + &workflow("z-source", "")
        + &needs("m-model", "z-source")
        + &workflow("b-alone", "");
    let server = Server::start(&script).await;
    server.step(NOW).await;
    let rows = |page: &str| between(page, "data-w=\"", "\"").into_iter().map(str::to_owned).collect::<Vec<_>>();
    let usual = server.get("/ui").await.text;
    assert_eq!(rows(&usual), ["b-alone", "z-source", "m-model", "a-report"]);
    assert!(usual.contains("data-count=\"48\" data-room=\"0\""), "{usual}");
    let wide = with_cookies(&server, "/ui", "kelos-room=2300").await.text;
    assert!(wide.contains("data-count=\"95\"") && wide.contains("columns=95&amp;after="), "{wide}");
    assert!(
        with_cookies(&server, "/ui", "kelos-room=270; kelos-order=oldest")
            .await
            .text
            .contains("data-count=\"11\" data-room=\"270\" data-order=\"oldest\"")
    );
    assert!(server.get("/ui?columns=999").await.text.contains("expected the number of columns, 4 to 400"));
}

#[tokio::test]
async fn a_folded_group_shows_the_worst_of_each_column() {
    let script = workflow("a", "tags: ['one']") + &workflow("b", "tags: ['one']") + &workflow("c", "tags: ['two']");
    let server = Server::start(&script).await;
    server.step(NOW).await;
    server.end(&slot("a", "2015-09-06T16:00Z"), 1, false).await;
    let uri = "/ui?time=2015-09-06T18:00Z&columns=4&by=tag";
    let sent = form(&server, "/ui/display", "fold=one&back=%2Fui", "same-origin").await;
    assert!(sent.header("set-cookie").starts_with("kelos-folded=one;"), "{sent:?}");
    let shown = with_cookies(&server, uri, "kelos-folded=one%0Agone").await.text;
    let folded = between(&shown, "<div class=\"rows folded\"", "data-w=\"a\"");
    assert_eq!(folded.len(), 1, "{shown}");
    assert!(folded[0].contains("aria-expanded=\"false\""), "{}", folded[0]);
    let cells = between(folded[0], "class=\"cells worst\"", "</span>");
    assert!(cells[0].ends_with("QQF.") && cells[0].contains("data-n=\"0:2,1:2,2:2\""), "{cells:?}");
}

#[tokio::test]
async fn a_cell_says_why_in_one_line() {
    let server = Server::start(&(workflow("up", "") + &workflow("down", "trigger: celos.successTrigger('up')"))).await;
    server.step(NOW).await;
    server.end(&slot("up", "2015-09-06T16:00Z"), 1, false).await;
    let why = async |cell: &str| {
        server.get(&format!("/ui/board/why?{cell}")).await.ok().json()["why"].as_str().unwrap().to_owned()
    };
    let failed = why("workflow=up&from=2015-09-06T16:00Z&to=2015-09-06T17:00Z").await;
    assert!(failed.contains("exited with status 3") && !failed.contains('\n'), "{failed}");
    let waits = why("workflow=down&from=2015-09-06T16:00Z&to=2015-09-06T18:00Z").await;
    assert!(waits.starts_with("2015-09-06T") && waits.contains("up"), "the worst of several is named: {waits}");
    assert_eq!(why("workflow=down&from=2000-01-01&to=2000-01-02").await, "");
    assert_eq!(server.get("/ui/board/why?workflow=down").await.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn the_log_is_filtered_by_kind_person_and_time_and_says_what_to_change() {
    let server = Server::start(&(workflow("up", "") + &workflow("down", ""))).await;
    server.step(NOW).await;
    server.end(&slot("up", "2015-09-06T16:00Z"), 1, false).await;
    form(&server, "/ui/workflows/down/pause", "reason=tired", "same-origin").await;
    let log = async |query: &str| {
        let shown = page(&server, &format!("/ui/activity?{query}")).await;
        assert_harmless(&shown);
        between(&shown, "<div id=\"events\"", "</nav>").concat()
    };
    let failures = log("kind=failures").await;
    assert_eq!(failures.matches("<li>").count(), 1, "{failures}");
    assert!(failures.contains("failed") && !failures.contains("planned"));
    assert_says(&log("kind=paused,resumed&who=web&workflow=down&from=today&to=%2B1h").await, &["paused by web, tired"]);
    let none = log("kind=failed&who=me&from=-3d&to=-2d").await;
    assert_says(
        &none,
        &["No event is like that.", "of any kind", "by anybody, also by the scheduler itself", "at any time"],
    );
    assert!(
        none.contains("href=\"/ui/activity?kind=failed&amp;from=-3d&amp;to=-2d\""),
        "each takes one condition away: {none}"
    );
    assert_says(
        &log("workflow=donw").await,
        &["No workflow has ever been named \"donw\". Did you mean \"down\"?", "of all workflows"],
    );
    for (query, said) in [
        (
            "kind=faild",
            "The parameter &quot;kind&quot; is &quot;faild&quot;, which no event is. Did you mean &quot;failed&quot;?",
        ),
        ("from=yesteday", "did you mean &quot;yesterday&quot;?"),
        ("from=-1h&to=-2h", "which is not before &quot;to&quot;"),
        ("to=25:00", "The parameter &quot;to&quot; is not understood"),
        ("when=now", "when"),
    ] {
        let refused = server.get(&format!("/ui/activity?{query}")).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{query}");
        assert!(refused.text.contains(said), "{query}: {}", refused.text);
    }
}

#[tokio::test]
async fn pages_of_a_filtered_log_follow_each_other_without_gap() {
    let server = Server::start(&workflow("w", "")).await;
    server.step(NOW).await;
    let whole = server.get("/api/v1/events?limit=1000").await.ok().json();
    let (mut uri, mut seen) = ("/ui/activity?kind=planned&from=2015-09-01&to=2015-09-14".to_owned(), 0);
    for _ in 0..20 {
        let shown = page(&server, &uri).await;
        seen += between(&shown, "<ol class=\"activity\"", "</nav>").concat().matches("class=\"subject\"").count();
        let Some(next) = between(&shown, "rel=\"next\" href=\"", "\"").first().map(|next| next.replace("&amp;", "&"))
        else {
            break;
        };
        assert!(next.contains("kind=planned&from=2015-09-01&to="), "{next}");
        uri = next;
    }
    let planned = whole["items"].as_array().unwrap().iter().filter(|event| event["event"] == "planned").count();
    assert!(seen >= planned && planned > 100, "{seen} of {planned}");
}
