//! The pages of a workflow and of a slot, the problems and the activity.

use axum::http::{Method, Request, StatusCode};
use kelos_front::{App, Groups, Links};
use kelos_model::SlotRef;
use kelos_server::router;
use serde_json::{Value, json};

use crate::support::{NOW, Reply, Server, moment, slot, workflow};

/// An id that would be a script, if pages let it.
const HOSTILE: &str = "a<img src=x onerror=alert(1)>\\\"'&";
const HOSTILE_HREF: &str = "a%3Cimg%20src%3Dx%20onerror%3Dalert%281%29%3E%22%27%26";

const TIME: &str = "2015-09-13T13:00Z";
const EARLIER: &str = "2015-09-13T12:00Z";

pub(crate) async fn page(server: &Server, uri: &str) -> String {
    let reply = server.get(uri).await;
    assert_eq!(reply.status, StatusCode::OK, "{reply:?}");
    assert_eq!(reply.header("content-type"), "text/html; charset=utf-8");
    assert!(reply.header("content-security-policy").starts_with("default-src 'none'; script-src 'self'"));
    reply.text
}

/// The text of a page, without its marks and with single spaces.
pub(crate) fn words(page: &str) -> String {
    // A time is a part of its sentence.
    let page = page.replace("</time>", "");
    let pieces = page.split('<').map(|piece| piece.split_once('>').map_or(piece, |(_, text)| text));
    let text = pieces.collect::<Vec<_>>().join(" ");
    let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[track_caller]
pub(crate) fn assert_says(page: &str, expected: &[&str]) {
    let said = words(page);
    for text in expected {
        assert!(said.contains(text), "\"{text}\" is not in: {said}");
    }
}

/// Nothing that came from a script, a command or a request is a part of the page's own marks.
#[track_caller]
pub(crate) fn assert_harmless(page: &str) {
    for text in ["<img", "<script>", "onerror=\"", "href=\"javascript:", "style=\"", "<b>bold"] {
        assert!(!page.contains(text), "{text} in {page}");
    }
}

pub(crate) async fn form(server: &Server, uri: &str, fields: &str, site: &str) -> Reply {
    let request = Request::builder().method(Method::POST).uri(uri).header("sec-fetch-site", site);
    let request = request.header("content-type", "application/x-www-form-urlencoded");
    server.send(request.body(fields.to_owned().into()).unwrap()).await
}

async fn hostile() -> Server {
    let fields = "description: '<b>bold</b>', url: 'javascript:alert(1)', tags: ['<script>alert(2)</script>'],
        externalService: celos.oozieExternalService({ password: 'hunter2', note: '<script>x</script>' }, 'http://oozie')";
    let script = workflow("WILL BE REPLACED", fields).replace("WILL BE REPLACED", HOSTILE);
    let server = Server::start(&script).await;
    server.step(TIME).await;
    server
}

#[tokio::test]
async fn a_workflow_says_what_it_is() {
    let fields = "trigger: celos.andTrigger(celos.delayTrigger(90), celos.successTrigger('up')), maxRetryCount: 2";
    let script = workflow("down", fields) + "\n" + &workflow("up", "description: 'First of all'");
    let server = Server::start(&script).await;
    server.step(TIME).await;
    let down = page(&server, "/ui/workflows/down").await;
    let expected = [
        "W waiting",
        "Trigger all of 1 min 30 s after its time success of the same slot of up",
        "Retry failed slots are retried up to 2 times, at once",
        "Executor oozie",
        "Next times 2015-09-13T16:00Z 2015-09-13T17:00Z",
        "Waits for up Downstream No other workflow waits for it.",
        "Source test.js:1",
        "1 celos.defineWorkflow(Object.assign({",
    ];
    assert_says(&down, &expected);
    let up = page(&server, "/ui/workflows/up").await;
    assert_says(&up, &["First of all", "Downstream down", "R running"]);
}

#[tokio::test]
async fn nothing_that_a_script_says_becomes_a_part_of_a_page() {
    let server = hostile().await;
    let base = format!("/ui/workflows/{HOSTILE_HREF}");
    let own = page(&server, &base).await;
    assert_harmless(&own);
    assert!(!own.contains("hunter2"), "neither in the definition nor in its source");
    assert_says(&own, &["<b>bold</b>", "<script>alert(2)</script>", "password ••••••"]);
    let slot_page = page(&server, &format!("{base}/slots/{TIME}")).await;
    assert_harmless(&slot_page);
    let reason = "reason=%3Cscript%3Ealert(3)%3C%2Fscript%3E";
    let kill = form(&server, &format!("{base}/slots/{TIME}/kill"), reason, "same-origin").await;
    assert_eq!((kill.status, kill.header("location")), (StatusCode::SEE_OTHER, &*format!("{base}/slots/{TIME}")));
    for uri in [format!("{base}/slots/{TIME}"), "/ui/activity".to_owned()] {
        let killed = page(&server, &uri).await;
        assert_harmless(&killed);
        assert_says(&killed, &["killed by web, <script>alert(3)</script>"]);
    }
}

#[tokio::test]
async fn a_slot_tells_why_and_what_became_of_it() {
    let server = Server::start(&(workflow("up", "") + &workflow("down", "trigger: celos.successTrigger('up')"))).await;
    server.step(TIME).await;
    let down = page(&server, &format!("/ui/workflows/down/slots/{EARLIER}")).await;
    assert_says(&down, &["W waiting", "Why … ", "Inputs up@2015-09-13T12:00Z", "Runs None yet."]);
    let up = page(&server, &format!("/ui/workflows/up/slots/{EARLIER}")).await;
    assert_says(
        &up,
        &["Downstream down@2015-09-13T12:00Z W waiting", "Its life queued: 2 h 1 min", "planned", "trigger-met"],
    );
    let there = page(&server, &format!("/ui/workflows/up/slots/{EARLIER}?at=2015-09-13T11:00")).await;
    assert_says(&there, &["This is how it was at 2015-09-13T11:00Z", "Nothing has happened to it."]);
    assert!(!there.contains("<form method=\"post\""), "the past can't be changed");
}

#[tokio::test]
async fn who_writes_the_paths_of_a_slot_is_beside_it_and_above_it_on_the_board() {
    let reader = "trigger: celos.fileCheckTrigger('/nowhere/${year}-${month}-${day}/${hour}/_READY')";
    let writer = "writes: ['/nowhere/${year}-${month}-${day}/${hour}']";
    let server = Server::start(&(workflow("reader", reader) + &workflow("writer", writer))).await;
    server.step(TIME).await;
    let reader = page(&server, &format!("/ui/workflows/reader/slots/{EARLIER}")).await;
    assert_says(&reader, &["writer@2015-09-13T12:00Z Q queued Downstream"]);
    let writer = page(&server, &format!("/ui/workflows/writer/slots/{EARLIER}")).await;
    assert_says(&writer, &["Downstream reader@2015-09-13T12:00Z"]);
    assert!(!words(&writer).contains("No other slot waits for it."));
    assert_says(&page(&server, "/ui/workflows/reader").await, &["Waits for writer"]);
    assert_says(&page(&server, "/ui/workflows/writer").await, &["Downstream reader"]);
    let board = page(&server, "/ui").await;
    let [reads, writes] = ["reader", "writer"].map(|id| board.find(&format!(">{id}</a>")).expect(&board));
    assert!(writes < reads, "what produces something is above what reads it");
}

#[tokio::test]
async fn runs_are_listed_with_their_outcome() {
    let server = Server::start(&workflow("w", "")).await;
    server.step("2015-09-13T12:30Z").await;
    let first = server.slots("w", "2015-09-13T12:30Z").await.last().cloned().unwrap().0;
    let (id, time) = (slot("w", &first), first);
    server.end(&id, 1, false).await;
    let told = page(&server, &format!("/ui/workflows/w/slots/{time}")).await;
    assert_harmless(&told);
    assert_says(
        &told,
        &["F failed", "#1 F failed exited with status 3", "oozie 0000001-oozie-W", "It has written nothing here."],
    );
    // The error comes first, then what can be done, then why it ran.
    let place = |text: &str| told.find(text).unwrap_or_else(|| panic!("{text} is not in {told}"));
    let order = ["it failed (exited with status 3)", "What to do:", "/rerun\"", "Why it ran", "<h2>Runs"].map(place);
    assert!(order.is_sorted(), "{order:?}");
    let log = server.get(&format!("/ui/workflows/w/slots/{time}/runs/1/log.txt")).await.ok();
    assert!(log.header("content-disposition").starts_with("attachment; filename=\"w-2015-"), "{log:?}");
    let none = server.get(&format!("/ui/workflows/w/slots/{time}/runs/9/log.txt")).await;
    assert_eq!(none.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn people_act_by_forms_of_this_site_only() {
    let server = Server::start(&workflow("w", "")).await;
    server.step(TIME).await;
    let uri = format!("/ui/workflows/w/slots/{TIME}");
    let foreign = form(&server, &format!("{uri}/kill"), "reason=", "cross-site").await;
    assert_eq!(foreign.status, StatusCode::FORBIDDEN);
    for action in ["kill", "rerun", "skip", "rerun", "kill", "mark"] {
        let done = form(&server, &format!("{uri}/{action}"), "reason=", "same-origin").await;
        assert_eq!(done.status, StatusCode::SEE_OTHER, "{action}: {done:?}");
    }
    let again = form(&server, &format!("{uri}/skip"), "reason=", "same-origin").await;
    assert_eq!(again.status, StatusCode::CONFLICT);
    assert_eq!(form(&server, &format!("{uri}/dance"), "reason=", "same-origin").await.status, StatusCode::NOT_FOUND);
    form(&server, "/ui/workflows/w/pause", "", "same-origin").await;
    assert_says(&page(&server, "/ui/workflows/w").await, &["paused Nothing of it is planned", "Resume"]);
    form(&server, "/ui/workflows/w/resume", "", "same-origin").await;
    assert_says(&page(&server, "/ui/activity?who=*").await, &["killed by web", "paused by web", "resumed by web"]);
}

#[tokio::test]
async fn a_rerun_takes_what_depends_on_it_along() {
    let server = Server::start(&(workflow("up", "") + &workflow("down", "trigger: celos.successTrigger('up')"))).await;
    server.step(TIME).await;
    let uri = |id: &str| format!("/ui/workflows/{id}/slots/{EARLIER}");
    for id in ["up", "down"] {
        form(&server, &format!("{}/mark", uri(id)), "reason=", "same-origin").await;
        assert_says(&page(&server, &uri(id)).await, &["S succeeded"]);
    }
    let asked = form(&server, &format!("{}/rerun", uri("up")), "reason=again&downstream=1", "same-origin").await.ok();
    let expected = [
        "It would reopen 2 slots.",
        "Would be reopened up@2015-09-13T12:00Z S succeeded down@2015-09-13T12:00Z S succeeded",
        "Rerun 2 slots Back",
    ];
    assert_says(&asked.text, &expected);
    assert!(asked.text.contains("name=\"reason\" value=\"again\""));
    assert_says(&page(&server, &uri("down")).await, &["S succeeded"]);
    let rerun = form(&server, &format!("{}/rerun", uri("up")), "reason=&downstream=1&seen=1", "same-origin").await;
    assert_eq!(rerun.status, StatusCode::SEE_OTHER, "{rerun:?}");
    assert_says(&page(&server, &uri("down")).await, &["W waiting", "reopened by web"]);
}

#[tokio::test]
async fn a_slot_shows_what_its_job_is_given_for_it() {
    let settings = "{ day: '${year}-${month}-${day}', password: 'hunter2' }";
    let fields = format!(
        "startTime: '2015-09-13T11:00Z', externalService: celos.oozieExternalService({settings}, 'http://oozie')"
    );
    let server = Server::start(&workflow("w", &fields)).await;
    server.step(TIME).await;
    let told = page(&server, &format!("/ui/workflows/w/slots/{EARLIER}")).await;
    assert_says(&told, &["What its job is given", "day 2015-09-13", "password ••••••"]);
    assert!(!told.contains("hunter2"));
    let broken =
        "externalService: celos.oozieExternalService(function (slot) { throw new Error('<b>bold'); }, 'http://oozie')";
    server.write("test.js", &workflow("w", broken));
    server.post("/clear-cache").await.ok();
    let told = page(&server, &format!("/ui/workflows/w/slots/{EARLIER}")).await;
    assert_harmless(&told);
    assert_says(&told, &["failed to fill them in: ", "<b>bold"]);
}

#[tokio::test]
async fn runs_lead_to_pages_of_other_systems() {
    let mut server = Server::start(&workflow("w", "startTime: '2015-09-13T12:00Z'")).await;
    let file =
        r#"{"links": [{"name": "<b>bold", "url": "https://logs.example/${workflow}?day=${day}&id=${externalId}"}]}"#;
    let links = Links::parse(file).unwrap().with_hue("https://hue.example/oozie").unwrap();
    let app = App::new(server.node.clone(), "1.2.3").with_groups(Groups::of_file(file).unwrap()).with_links(links);
    server.router = router(app);
    server.step(TIME).await;
    let told = page(&server, &format!("/ui/workflows/w/slots/{EARLIER}")).await;
    assert_harmless(&told);
    assert!(told.contains("href=\"https://logs.example/w?day=13&amp;id=0000001-oozie-W\""), "{told}");
    assert!(told.contains("href=\"https://hue.example/oozie/list_oozie_workflow/0000001-oozie-W\""), "{told}");
    assert_says(&page(&server, "/ui").await, &["test"]);
}

#[tokio::test]
async fn a_workflow_shows_what_its_slots_wait_for_and_how_they_did() {
    let fields =
        "startTime: '2015-09-13T11:00Z', trigger: celos.andTrigger(celos.delayTrigger(60), celos.successTrigger('up'))";
    let script = workflow("down", fields) + &workflow("up", "startTime: '2015-09-13T11:00Z', maxRetryCount: 0");
    let server = Server::start(&script).await;
    server.step(TIME).await;
    server.end(&slot("up", "2015-09-13T11:00Z"), 1, true).await;
    server.step(TIME).await;
    server.end(&slot("up", EARLIER), 1, false).await;
    let up = page(&server, "/ui/workflows/up").await;
    let expected =
        ["1 of the latest 2 runs succeeded. Median", "1 of 2 slots that ended in the latest 1 day succeeded: 50 %."];
    assert_says(&up, &expected);
    let down = page(&server, "/ui/workflows/down").await;
    assert_says(&down, &["What its slots wait for", "W waiting for success of the same slot of up"]);
}

#[tokio::test]
async fn versions_show_what_they_changed_without_secrets() {
    let settings = |day: &str, password: &str| {
        let fields = format!("{{ day: '{day}', note: '<b>bold', password: '{password}' }}");
        let fields = format!("externalService: celos.oozieExternalService({fields}, 'http://oozie')");
        workflow("w", &format!("startTime: '2015-09-13T12:00Z', {fields}"))
    };
    let server = Server::start(&settings("old", "hunter1")).await;
    server.step(TIME).await;
    assert!(!page(&server, "/ui/workflows/w").await.contains("versions"));
    server.write("test.js", &settings("new", "hunter2"));
    server.post("/clear-cache").await.ok();
    assert_says(&page(&server, "/ui/workflows/w").await, &["2 versions version 2 , since", "version 1 , since"]);
    let second = page(&server, "/ui/workflows/w/versions/2").await;
    assert_harmless(&second);
    assert!(!second.contains("hunter"), "neither old nor new");
    let expected =
        ["and holds now.", "− removed \"day\": \"old\",", "+ added \"day\": \"new\",", "In its file", "← version 1"];
    assert_says(&second, &expected);
    let first = page(&server, "/ui/workflows/w/versions/1").await;
    assert_says(&first, &["and was replaced at", "It is the first version that is known.", "version 2 →"]);
    assert_eq!(server.get("/ui/workflows/w/versions/3").await.status, StatusCode::NOT_FOUND);
}

const PROGRAM: &str = "application({ name: 'App' }); program('P', celos.oozieExternalService({}, 'http://oozie'));";

/// Starts the program, and gives the slot of it and where its page is.
async fn started(server: &Server, arguments: &Value) -> (SlotRef, String) {
    let body = json!({ "arguments": arguments }).to_string();
    let begun = server.post_json("/api/v1/workflows/App.P/start", &body).await.ok().json();
    server.step(NOW).await;
    let time = begun["time"].as_str().unwrap().to_owned();
    (moment("App.P", &time), format!("/ui/workflows/App.P/slots/{time}"))
}

#[tokio::test]
async fn a_slot_shows_what_its_runs_were_given_and_gave() {
    let server = Server::start(PROGRAM).await;
    let (slot, uri) = started(&server, &json!({ "day": "<script>", "password": "hunter2" })).await;
    server.give(&slot, 1, &json!({ "rows": { "good": 3 }, "token": "hunter2", "file": "<img src=x>" })).await;
    let told = page(&server, &uri).await;
    assert_harmless(&told);
    assert!(!told.contains("hunter2"), "{told}");
    assert!(told.contains("<details class=\"job\" id=\"run-1-given\" open"), "what is short is open: {told}");
    let expected = [
        "What run 1 was given and gave Job Executor",
        "Arguments day <script>",
        "password ••••••",
        "Outputs rows { \"good\": 3 } token •••••• file <img src=x>",
    ];
    assert_says(&told, &expected);
    let (slot, uri) = started(&server, &json!({})).await;
    server.give(&slot, 1, &json!({ "rows": "x".repeat(60_000) })).await;
    let told = page(&server, &uri).await;
    assert!(told.contains("id=\"run-1-given\">"), "what is long is folded");
    assert_says(&told, &["Outputs rows xxx"]);
}

#[tokio::test]
async fn problems_show_the_place_and_a_good_server_says_so() {
    let server = Server::start(&workflow("w", "")).await;
    assert_says(&page(&server, "/ui/problems").await, &["fine Every file of definitions is loaded"]);
    server.write("broken.js", "var a = 1;\n  celos.nope('<script>');");
    server.post("/clear-cache").await.ok();
    let told = page(&server, "/ui/problems").await;
    assert_harmless(&told);
    assert_says(&told, &["error broken.js:2:3", "celos has no function 'nope'", "2 celos.nope('<script>');"]);
    assert_says(&told, &["· unknown-function"]);
    let listed = server.get("/api/v1/problems").await.ok().json();
    assert_eq!(listed["items"][0]["code"], "unknown-function");
}

#[tokio::test]
async fn the_activity_is_filtered_and_paged() {
    let server = Server::start(&(workflow("a", "") + &workflow("b", ""))).await;
    server.step(TIME).await;
    let all = page(&server, "/ui/activity").await;
    assert_eq!(all.matches("<li>").count(), 100);
    assert!(all.contains("Earlier"), "{all}");
    // What is said of many slots one after the other is one line, with all of them in it.
    assert!(all.contains("<summary>96 × <b class=\"plain-text\">trigger-met</b></summary>"), "{all}");
    let mine = page(&server, "/ui/activity?workflow=a&who=").await;
    assert!(mine.contains("a@2015-") && !mine.contains("b@2015-"));
    let oldest = page(&server, "/ui/activity?before=3").await;
    assert_eq!(oldest.matches("<li>").count(), 2);
    assert!(!oldest.contains("Earlier") && oldest.contains("Newest"));
    assert_says(&page(&server, "/ui/activity?who=nobody").await, &["No event is like that.", "by anybody"]);
}

#[tokio::test]
async fn pages_without_anything_say_what_to_do_next() {
    let server = Server::start("").await;
    for (uri, said, document) in [
        ("/ui", "kelos init FOLDER", "README.md#your-first-workflow"),
        ("/ui/graph", "lets a slot start once", "docs/concepts.md#"),
        ("/ui/timeline", "When the trigger of a slot is met its job runs", "docs/pages.md#timeline"),
        ("/ui/schedules", "kelos schedule add NAME for PROGRAM", "docs/event-schedules.md#"),
        ("/ui/backfills", "kelos backfill WORKFLOW --from TIME --to TIME", "docs/pages.md#backfills"),
        ("/ui/stuck", "appear here by themselves", "docs/pages.md#stuck"),
        ("/ui/capacity", "A pool limits how many runs", "docs/pages.md#capacity"),
    ] {
        let page = page(&server, uri).await;
        assert_says(&page, &[said]);
        assert!(page.contains(&format!("/blob/main/{document}")), "{uri} does not link to {document}: {page}");
    }
}

#[tokio::test]
async fn what_is_not_there_is_told_as_a_page() {
    let server = Server::start(&workflow("w", "")).await;
    for (uri, status, said) in [
        ("/ui/workflows/none", 404, "No workflow has ever been named \"none\"."),
        ("/ui/workflows/none/slots/2015-09-13T13:00Z", 404, "No workflow has ever been named \"none\"."),
        ("/ui/workflows/none/slots/1_a", 404, "No workflow has ever been named \"none\"."),
        ("/ui/workflows/w/slots/yesterday", 400, "has no year of four digits"),
        ("/ui/activity?wokflow=a", 400, "Unknown query parameter `wokflow`"),
    ] {
        let reply = server.get(uri).await;
        assert_eq!(reply.status.as_u16(), status, "{reply:?}");
        assert_says(&reply.text, &[said]);
    }
}

#[tokio::test]
async fn a_mistyped_address_is_told_of_in_words_of_the_pages() {
    let server = Server::start("").await;
    let reply = server.get("/ui/activity?limit=3").await;
    assert_eq!(reply.status, StatusCode::BAD_REQUEST);
    assert_says(&reply.text, &["Unknown query parameter `limit`, expected one of `workflow`"]);
    assert_says(&server.get("/ui/activity?before=x").await.text, &["expected a number of digits only"]);

    let reply = server.get("/ui/").await;
    assert_eq!((reply.status, reply.header("location")), (StatusCode::PERMANENT_REDIRECT, "/ui"));
}
