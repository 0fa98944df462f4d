//! Access: each route for each role, projects that do not see each other, sessions, tokens, and the record of it all.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Method, Request, StatusCode};
use kelos_front::{Access, AccessSettings, App, ClientAddress, MetricSettings};
use kelos_model::{AccessEvent, Event};
use kelos_server::router;
use kelos_store::{About, EventFilter, PageRequest};
use kelos_trust::{Provider, Rules};
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::support::{PATIENCE, Reply, Server, Setup, workflow};

/// The token of the server's owner.
pub(crate) const OWNER: &str = "the token of the owner";
/// The token of workers on the same machine.
const WORKER: &str = "the token of workers";
/// The token of the nodes that share a log.
const NODE: &str = "the token of nodes";
/// A password.
const PASSWORD: &str = "correct horse battery";

/// A server that asks who its callers are.
pub(crate) struct Guarded {
    pub(crate) server: Server,
    router: Router,
    access: Access,
}

/// The credential of a request in a test.
#[derive(Clone, Copy)]
pub(crate) enum By<'a> {
    Nobody,
    Token(&'a str),
    /// A session, as the header `cookie` has it.
    Session(&'a str),
}

impl Guarded {
    async fn with_rules(rules: Value, scripts: &[(&str, String)]) -> Guarded {
        Guarded::with_provider(rules, None, scripts).await
    }

    /// The same, with a provider at which people sign in.
    pub(crate) async fn with_provider(
        rules: Value,
        provider: Option<Arc<dyn Provider>>,
        scripts: &[(&str, String)],
    ) -> Guarded {
        let server = Server::with(Setup { on_disk: true, isolated: true, ..Setup::default() }, "").await;
        for (name, script) in scripts {
            server.write(name, script);
        }
        server.post("/clear-cache").await.ok();
        let rules = Rules::parse(&json!({ "access": rules }).to_string()).expect("rules").unwrap_or_default();
        let access = Access::new(AccessSettings {
            required: true,
            rules,
            provider,
            key: None,
            owner: Some(OWNER.into()),
            worker: Some(WORKER.into()),
            nodes: Some(NODE.into()),
            open_to_workers: false,
        });
        let router = router(App::new(server.node.clone(), "1.2.3").with_access(access.clone()));
        Guarded { server, router, access }
    }

    /// The same, whose metrics everybody may read.
    pub(crate) fn with_public_metrics(self) -> Guarded {
        let settings = MetricSettings { public: true, ..MetricSettings::default() };
        let app = App::new(self.server.node.clone(), "1.2.3").with_access(self.access.clone()).with_metrics(settings);
        Guarded { router: router(app), ..self }
    }

    pub(crate) async fn start(scripts: &[(&str, String)]) -> Guarded {
        Guarded::with_rules(json!({}), scripts).await
    }

    pub(crate) async fn send(&self, by: By<'_>, method: &str, uri: &str, body: &str) -> Reply {
        self.send_from(by, method, uri, body, &[]).await
    }

    pub(crate) async fn send_from(
        &self,
        by: By<'_>,
        method: &str,
        uri: &str,
        body: &str,
        headers: &[(&str, &str)],
    ) -> Reply {
        let response = self.open(by, method, uri, body, headers).await;
        let (parts, body) = response.into_parts();
        let bytes = tokio::time::timeout(PATIENCE, to_bytes(body, usize::MAX)).await.unwrap().unwrap();
        Reply { status: parts.status, headers: parts.headers, text: String::from_utf8(bytes.to_vec()).unwrap() }
    }

    async fn open(
        &self,
        by: By<'_>,
        method: &str,
        uri: &str,
        body: &str,
        headers: &[(&str, &str)],
    ) -> axum::response::Response {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let mut request = Request::builder().method(method).uri(uri).header("host", "localhost");
        request = match by {
            By::Nobody => request,
            By::Token(token) => request.header("authorization", format!("Bearer {token}")),
            By::Session(cookie) => request.header("cookie", cookie),
        };
        request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let mut request = request.body(Body::from(body.to_owned())).unwrap();
        let peer = headers.iter().find(|(name, _)| *name == "x-test-peer").map_or("10.0.0.9", |(_, peer)| peer);
        request.extensions_mut().insert(ClientAddress::direct(peer.parse().unwrap(), false));
        tokio::time::timeout(PATIENCE, self.router.clone().oneshot(request)).await.unwrap().unwrap()
    }

    pub(crate) async fn get(&self, by: By<'_>, uri: &str) -> Reply {
        self.send(by, "GET", uri, "").await
    }

    /// A token with roles.
    pub(crate) async fn token(&self, name: &str, roles: &[&str]) -> String {
        let body = json!({ "name": name, "roles": roles }).to_string();
        let made = self.send(By::Token(OWNER), "POST", "/api/v1/tokens", &body).await.ok().json();
        made["secret"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn user(&self, name: &str, roles: &[&str]) {
        let body = json!({ "roles": roles, "password": PASSWORD }).to_string();
        self.send(By::Token(OWNER), "PUT", &format!("/api/v1/users/{name}"), &body).await.ok();
    }

    /// Signs in on the page; the cookie of the session.
    async fn sign_in(&self, name: &str) -> String {
        let form = format!("name={name}&password={}", PASSWORD.replace(' ', "+"));
        let headers = [("content-type", "application/x-www-form-urlencoded")];
        let reply = self.send_from(By::Nobody, "POST", "/ui/sign-in", &form, &headers).await;
        assert_eq!(reply.status, StatusCode::SEE_OTHER, "{reply:?}");
        reply.header("set-cookie").split(';').next().unwrap().to_owned()
    }

    /// Waits until an event of access is on record, for which no request waits.
    pub(crate) async fn until_recorded(&self, is_it: impl Fn(&AccessEvent) -> bool) {
        let holds = |server: &Server| {
            let (about, all) = (EventFilter::about(About::Access), PageRequest::newest(100));
            let page = server.node.reader().events(&about, all).unwrap();
            page.rows.iter().any(|record| matches!(&record.event, Event::Access { what, .. } if is_it(what)))
        };
        self.server.until(holds).await;
    }

    /// The proof in the forms of a page.
    async fn proof(&self, cookie: &str, page: &str) -> String {
        let page = self.get(By::Session(cookie), page).await.ok().text;
        let (_, rest) = page.split_once("name=\"kelos-proof\" value=\"").expect("a form with a proof");
        rest.split('"').next().unwrap().to_owned()
    }
}

/// The paths of a router, from its description for debugging; there is no other way to ask one.
fn paths(router: &Router) -> BTreeSet<String> {
    let told = format!("{router:?}");
    let quoted = told.split('"').skip(1).step_by(2);
    quoted.filter(|text| text.starts_with('/') && !text.contains("__private")).map(str::to_owned).collect()
}

/// A path with something in each place.
fn filled(path: &str) -> String {
    let values = [
        ("{*rest}", "x/y"),
        ("{version}", "1"),
        ("{number}", "1"),
        ("{time}", "2015-09-13T15:00Z"),
        ("{namespace}", "default"),
    ];
    let path = values.iter().fold(path.to_owned(), |path, (place, value)| path.replace(place, value));
    let mut filled = String::new();
    for part in path.split_inclusive('/') {
        let end = if part.ends_with('/') { "/" } else { "" };
        let part = part.trim_end_matches('/');
        filled.push_str(if part.starts_with('{') { "a" } else { part });
        filled.push_str(end);
    }
    filled
}

/// Whether a request came past the rights of its route; what became of it then does not matter.
async fn passes(guarded: &Guarded, by: By<'_>, method: &str, path: &str) -> bool {
    let response = guarded.open(by, method, &filled(path), "", &[("accept", "text/html")]).await;
    match response.status() {
        StatusCode::UNAUTHORIZED => {
            // A wrong password is no lack of a right.
            path == "/ui/sign-in" || path == "/api/v1/login"
        }
        StatusCode::SEE_OTHER => !response.headers()["location"].to_str().unwrap().starts_with("/ui/sign-in?"),
        StatusCode::FORBIDDEN => {
            let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();
            let told = String::from_utf8_lossy(&bytes);
            // A role that is missing for one project was asked for behind the route.
            let of_projects = [" for the project ", " for all projects"].iter().any(|place| told.contains(place));
            !told.contains(" needs the role ") || of_projects
        }
        _ => true,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_route_is_open_to_the_roles_that_its_right_says() {
    let guarded = Guarded::start(&[("a.js", workflow("a", ""))]).await;
    let mut roles = vec![("nobody", None)];
    for role in ["view", "operate", "author", "admin", "audit"] {
        // For one project, which is enough to come past the route.
        roles.push((role, Some(guarded.token(role, &[&format!("{role}@a")]).await)));
    }
    roles.push(("worker", Some(WORKER.to_owned())));
    let (mut table, mut routes) = (String::new(), 0);
    for path in paths(&guarded.router) {
        // A method that no path has is answered with those that it has.
        let allow = guarded.open(By::Token(OWNER), "BREW", &filled(&path), "", &[]).await;
        let allowed = allow.headers().get("allow").map(|allow| allow.to_str().unwrap().to_owned());
        let methods = allowed.unwrap_or_else(|| "GET".to_owned());
        for method in methods.split(',').filter(|method| *method != "HEAD") {
            routes += 1;
            let mut who = Vec::new();
            for (role, token) in &roles {
                let by = token.as_deref().map_or(By::Nobody, By::Token);
                if passes(&guarded, by, method, &path).await {
                    who.push(*role);
                }
            }
            assert!(!who.is_empty(), "{method} {path} is open to nobody: it declares no right");
            writeln!(table, "{method} {path}: {}", who.join(" ")).unwrap();
        }
    }
    assert!(routes > 170, "only {routes} routes were found");
    insta::assert_snapshot!(table);
}

/// The script of a project whose workflow is seen, and of one whose workflow is not.
fn two_projects() -> Vec<(&'static str, String)> {
    vec![("a.js", workflow("a", "")), ("b.js", workflow("b", ""))]
}

/// The paths of the native API about everything.
const OF_THE_API: [&str; 29] = [
    "health",
    "problems",
    "endpoints",
    "workflows",
    "schedules",
    "facts",
    "facts/sources",
    "graph",
    "graph.svg",
    "projects",
    "slots",
    "jobs",
    "stuck",
    "failures",
    "calendar?from=2015-09-13&to=2015-09-14",
    "focus",
    "capacity",
    "runs",
    "events",
    "backfills",
    "board/groups",
    "workers",
    "registers/b",
    "registers/b/k",
    "registers/a",
    "registers/kelos.access",
    "registers/kelos",
    "tokens",
    "whoami",
];

/// The paths of the native API about a workflow, below its own.
const OF_A_WORKFLOW: [&str; 5] = ["", "/definitions", "/definitions/1", "/times", "/queue"];

/// The paths of the native API about a slot, below its own.
const OF_A_SLOT: [&str; 10] =
    ["", "/history", "/why", "/critical-path", "/flow", "/items", "/upstream", "/runs", "/runs/1", "/runs/1/log"];

/// The pages about everything.
const PAGES: [&str; 17] = [
    "",
    "/graph",
    "/timeline",
    "/calendar",
    "/schedules",
    "/facts",
    "/backfills",
    "/new-backfill",
    "/stuck",
    "/capacity",
    "/problems",
    "/activity",
    "/board/failing",
    "/board/late",
    "/board/groups",
    "/access",
    "/focus",
];

/// The paths of the dialects about everything.
const OF_DIALECTS: [&str; 6] = [
    "/workflow-list",
    "/list-register-keys?bucket=b",
    "/register?bucket=b&key=k",
    "/v3/namespaces",
    "/v3/dashboard",
    "/v3/namespaces/default/apps",
];

/// The paths of all doors about a workflow, in which NAME is its name.
const OF_ALL_DOORS: [&str; 11] = [
    "/api/v1/slots?workflow=NAME",
    "/api/v1/events?workflow=NAME",
    "/api/v1/backfills/NAME-past",
    "/ui/workflows/NAME",
    "/ui/workflows/NAME/slots/2015-09-13T14:00Z",
    "/ui/backfills/NAME-past",
    "/workflow?id=NAME",
    "/workflow-slots?id=NAME",
    "/slot-state?id=NAME&time=2015-09-13T14:00Z",
    "/trigger-status?id=NAME&time=2015-09-13T14:00Z",
    "/v3/namespaces/default/apps/NAME/schedules",
];

/// All that a viewer of the project `a` may ask, with the names of both projects, and of none, in all places.
fn questions() -> Vec<String> {
    let of_everything = OF_THE_API.iter().map(|path| format!("/api/v1/{path}"));
    let mut questions: Vec<String> = of_everything.chain(OF_DIALECTS.map(str::to_owned)).collect();
    questions.extend(PAGES.map(|page| format!("/ui{page}")));
    for name in ["a", "b", "nobody"] {
        let workflow = format!("/api/v1/workflows/{name}");
        questions.extend(OF_A_WORKFLOW.map(|path| format!("{workflow}{path}")));
        questions.extend(OF_A_SLOT.map(|path| format!("{workflow}/slots/2015-09-13T14:00Z{path}")));
        questions.extend(OF_ALL_DOORS.map(|path| path.replace("NAME", name)));
    }
    questions
}

/// An answer without positions in the log, which count what everybody does.
fn without_positions(text: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        let (before, after) = rest.split_at(at);
        kept.push_str(before);
        let digits = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
        let is_position = [
            "\"seq\":",
            "\"lastSeq\":",
            "\"last\":",
            "data-seq=\"",
            "\"fact\":",
            "data-after=\"",
            "data-last=\"",
            "after=",
            "alike-",
            "before=",
        ]
        .iter()
        .any(|name| before.ends_with(name));
        kept.push_str(if is_position { "N" } else { &after[..digits] });
        rest = &after[digits..];
    }
    kept + rest
}

/// Has things happen to a workflow: runs, a failure, a pause, a backfill, a register.
async fn live(guarded: &Guarded, id: &str) {
    let by = By::Token(OWNER);
    for time in ["2015-09-13T13:00Z", "2015-09-13T14:00Z"] {
        guarded.send(by, "POST", &format!("/api/v1/workflows/{id}/slots/{time}/skip"), "{}").await;
        guarded.send(by, "POST", &format!("/api/v1/workflows/{id}/slots/{time}/rerun"), r#"{"reason":"again"}"#).await;
    }
    let backfill =
        json!({ "name": format!("{id}-past"), "workflow": id, "from": "2015-09-12T00:00Z", "to": "2015-09-12T03:00Z" });
    guarded.send(by, "POST", "/api/v1/backfills", &backfill.to_string()).await.ok();
    guarded.send(by, "PUT", &format!("/api/v1/registers/{id}/k"), "1").await.ok();
    guarded.send(by, "POST", &format!("/api/v1/workflows/{id}/pause"), r#"{"reason":"a look"}"#).await.ok();
}

#[tokio::test(flavor = "multi_thread")]
async fn for_a_viewer_of_one_project_no_other_one_exists() {
    let mut scripts = two_projects();
    scripts[0].1 += &workflow("a2", "");
    let (alone, beside) = (Guarded::start(&scripts[..1]).await, Guarded::start(&scripts).await);
    let mut tokens = Vec::new();
    for guarded in [&alone, &beside] {
        guarded.server.step("2015-09-13T15:00Z").await;
        live(guarded, "a").await;
        tokens.push(guarded.token("viewer", &["view@a"]).await);
    }
    live(&beside, "b").await;
    beside.token("another", &["admin@b"]).await;
    beside.server.write("b.js", &(workflow("b", "") + workflow("c", "").as_str()));
    beside.server.post("/clear-cache").await.ok();
    beside.server.write("broken.js", "this is no script");
    beside.server.post("/clear-cache").await.ok();
    let mut compared = 0;
    for question in questions() {
        let one = alone.get(By::Token(&tokens[0]), &question).await;
        let other = beside.get(By::Token(&tokens[1]), &question).await;
        assert_eq!(one.status, other.status, "{question}: {} / {}", one.text, other.text);
        let clean = |reply: &Reply, token: &str| without_positions(&reply.text.replace(&token[6..14], "TOKENIDS"));
        let (one, other) = (clean(&one, &tokens[0]), clean(&other, &tokens[1]));
        let at = one.bytes().zip(other.bytes()).take_while(|(one, other)| one == other).count();
        let near =
            |text: &str| text.get(at.saturating_sub(80)..).unwrap_or_default().chars().take(200).collect::<String>();
        assert!(one == other, "{question}\n{}\n{}", near(&one), near(&other));
        compared += 1;
    }
    assert!(compared > 120, "only {compared} questions");
    let mut pages = Vec::new();
    for (guarded, token) in [(&alone, &tokens[0]), (&beside, &tokens[1])] {
        let (mut all, mut query) = (Vec::new(), String::new());
        loop {
            let page = guarded.get(By::Token(token), &format!("/api/v1/slots?limit=7{query}")).await.ok();
            all.push(page.text.clone());
            let Some(next) = page.json()["next"].as_str().map(str::to_owned) else { break };
            query = format!("&cursor={next}");
        }
        pages.push(all);
    }
    assert!(pages[0].len() > 40, "only {} pages", pages[0].len());
    assert_eq!(pages[0].len(), pages[1].len());
    assert!(pages[0].iter().zip(&pages[1]).all(|(one, other)| without_positions(one) == without_positions(other)));
    // And what somebody may not see they can't change either: it does not exist.
    let token = beside.token("operator", &["operate@a"]).await;
    for uri in [
        "/api/v1/workflows/NAME/pause",
        "/api/v1/workflows/NAME/slots/2015-09-13T14:00Z/kill",
        "/api/v1/workflows/NAME/slots/2015-09-13T14:00Z/rerun",
        "/api/v1/backfills/NAME-past/cancel",
    ] {
        let there = beside.send(By::Token(&token), "POST", &uri.replace("NAME", "b"), "{}").await;
        let nowhere = beside.send(By::Token(&token), "POST", &uri.replace("NAME", "nobody"), "{}").await;
        assert_eq!(there.status, StatusCode::NOT_FOUND, "{there:?}");
        let named = |reply: &Reply, name: &str| reply.json()["detail"].as_str().unwrap().replace(name, "NAME");
        assert_eq!(named(&there, "\"b"), named(&nowhere, "\"nobody"), "{uri}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn at_the_border_a_name_and_a_state_are_seen_and_no_more() {
    let trigger = "trigger: celos.andTrigger(celos.successTrigger('b'))";
    let scripts = [("a.js", workflow("a", trigger)), ("b.js", workflow("b", ""))];
    let guarded = Guarded::start(&scripts).await;
    guarded.server.step("2015-09-13T15:00Z").await;
    guarded
        .send(
            By::Token(OWNER),
            "POST",
            "/api/v1/workflows/b/slots/2015-09-13T14:00Z/kill",
            r#"{"reason":"a secret reason"}"#,
        )
        .await
        .ok();
    guarded.server.step("2015-09-13T15:00Z").await;
    let token = guarded.token("viewer", &["view@a"]).await;
    for path in ["why", "upstream", "critical-path", "history", ""] {
        let uri = format!("/api/v1/workflows/a/slots/2015-09-13T14:00Z/{path}");
        let seen = guarded.get(By::Token(&token), uri.trim_end_matches('/')).await.ok().text;
        assert!(!seen.contains("secret"), "{path}: {seen}");
    }
    let why = guarded.get(By::Token(&token), "/api/v1/workflows/a/slots/2015-09-13T14:00Z/why").await.ok().text;
    assert!(why.contains("b@2015-09-13T14:00Z") && why.contains("killed"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rerun_downstream_stays_within_the_projects_that_one_may_operate() {
    let trigger = "trigger: celos.andTrigger(celos.successTrigger('a'))";
    let guarded = Guarded::start(&[("a.js", workflow("a", "")), ("b.js", workflow("b", trigger))]).await;
    guarded.server.step("2015-09-13T15:00Z").await;
    for name in ["a", "b"] {
        let mark = format!("/api/v1/workflows/{name}/slots/2015-09-13T13:00Z/mark");
        guarded.send(By::Token(OWNER), "POST", &mark, r#"{"state":"succeeded"}"#).await.ok();
    }
    let rerun = "/api/v1/workflows/a/slots/2015-09-13T13:00Z/rerun";
    let body = r#"{"downstream":true}"#;
    let narrow = guarded.token("narrow", &["operate@a"]).await;
    assert_eq!(guarded.send(By::Token(&narrow), "POST", rerun, body).await.status, StatusCode::FORBIDDEN);
    let wide = guarded.token("wide", &["operate@a", "operate@b"]).await;
    guarded.send(By::Token(&wide), "POST", rerun, body).await.ok();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_offers_what_one_may_do_in_its_project() {
    let guarded = Guarded::start(&two_projects()).await;
    let token = guarded.token("mixed", &["operate@a", "view@b"]).await;
    for (workflow, may_only_look) in [("a", false), ("b", true)] {
        for path in ["", "/slots/2015-09-13T14:00Z"] {
            let page = guarded.get(By::Token(&token), &format!("/ui/workflows/{workflow}{path}")).await.ok().text;
            let body = page.split_once("<body").and_then(|(_, rest)| rest.split_once('>')).unwrap().0;
            assert_eq!(body.contains("looks"), may_only_look, "{workflow}{path}: {body}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_begins_with_a_password_and_ends_with_it() {
    let guarded = Guarded::start(&two_projects()).await;
    guarded.user("anna", &["operate@a"]).await;
    let page = guarded.send_from(By::Nobody, "GET", "/ui/stuck?x=1", "", &[("accept", "text/html")]).await;
    assert_eq!((page.status.as_u16(), page.header("location")), (303, "/ui/sign-in?back=%2Fui%2Fstuck%3Fx%3D1"));
    let cookie = guarded.sign_in("anna").await;
    let by = By::Session(&cookie);
    assert!(guarded.get(by, "/ui").await.ok().text.contains("anna"));
    let proof = guarded.proof(&cookie, "/ui/workflows/a").await;
    let headers = [("content-type", "application/x-www-form-urlencoded")];
    let post = |form: String| {
        let (guarded, headers) = (&guarded, &headers);
        async move { guarded.send_from(by, "POST", "/ui/workflows/a/pause", &form, headers).await }
    };
    assert_eq!(post("reason=x".to_owned()).await.status, StatusCode::FORBIDDEN);
    assert_eq!(post("kelos-proof=AAAA".to_owned()).await.status, StatusCode::FORBIDDEN);
    assert_eq!(post(format!("kelos-proof={proof}")).await.status, StatusCode::SEE_OTHER);
    // Another project, and a page of another session's proof.
    let foreign =
        guarded.send_from(by, "POST", "/ui/workflows/b/pause", &format!("kelos-proof={proof}"), &headers).await;
    assert_eq!(foreign.status, StatusCode::NOT_FOUND);
    // A script with the cookie alone changes nothing over the API.
    let api = guarded.send(by, "POST", "/api/v1/workflows/a/resume", "{}").await;
    assert_eq!((api.status, &api.json()["code"]), (StatusCode::FORBIDDEN, &json!("no-proof")));
    let api = guarded.send_from(by, "POST", "/api/v1/workflows/a/resume", "{}", &[("kelos-proof", &proof)]).await;
    assert_eq!(api.status, StatusCode::OK);
    let second = guarded.sign_in("anna").await;
    assert_eq!(guarded.send_from(by, "POST", "/ui/sign-out", "", &headers).await.status, StatusCode::FORBIDDEN);
    let form = format!("kelos-proof={proof}");
    assert_eq!(guarded.send_from(by, "POST", "/ui/sign-out", &form, &headers).await.status, StatusCode::SEE_OTHER);
    assert_eq!(guarded.get(by, "/api/v1/slots").await.status, StatusCode::UNAUTHORIZED);
    guarded.get(By::Session(&second), "/api/v1/slots").await.ok();
    guarded.user("anna", &["operate@a"]).await;
    assert_eq!(guarded.get(By::Session(&second), "/api/v1/slots").await.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_are_scoped_shown_once_hashed_expire_and_are_revoked() {
    let guarded = Guarded::start(&two_projects()).await;
    let token = guarded.token("nightly", &["operate@a"]).await;
    let by = By::Token(&token);
    guarded.send(by, "POST", "/api/v1/workflows/a/pause", "{}").await.ok();
    assert_eq!(guarded.send(by, "PUT", "/api/v1/projects/a", "{}").await.status, StatusCode::FORBIDDEN);
    let listed = guarded.get(By::Token(OWNER), "/api/v1/tokens").await.ok();
    let id = listed.json()["items"][0]["id"].as_str().unwrap().to_owned();
    let secret = token.rsplit('_').next().unwrap();
    assert!(!listed.text.contains(secret) && listed.json()["items"][0]["lastUsedAt"].is_string(), "{listed:?}");
    let log = guarded.get(By::Token(OWNER), "/api/v1/events?limit=1000").await.ok().text;
    assert!(!log.contains(secret) && !log.contains("digest"), "{log}");
    // Nothing that is stored has it either.
    let folder = guarded.server.folder.path();
    for file in ["kelos.db", "kelos.db-wal"] {
        let bytes = std::fs::read(folder.join(file)).unwrap_or_default();
        assert!(!bytes.windows(secret.len()).any(|window| window == secret.as_bytes()), "{file}");
    }
    // A token of a machine makes no other one.
    let more = guarded.send(by, "POST", "/api/v1/tokens", r#"{"name":"x","roles":["operate@a"]}"#).await;
    assert_eq!(more.status, StatusCode::FORBIDDEN);
    guarded.send(By::Token(OWNER), "DELETE", &format!("/api/v1/tokens/{id}"), "").await.ok();
    let gone = guarded.get(by, "/api/v1/slots").await;
    assert_eq!((gone.status, &gone.json()["code"]), (StatusCode::UNAUTHORIZED, &json!("unknown-token")));
    let body = json!({ "name": "short", "roles": ["view"], "expiresIn": 60 }).to_string();
    let short = guarded.send(By::Token(OWNER), "POST", "/api/v1/tokens", &body).await.ok().json();
    let short = short["secret"].as_str().unwrap().to_owned();
    guarded.get(By::Token(&short), "/api/v1/slots").await.ok();
    guarded.server.set_clock(crate::support::at("2015-09-13T15:02:00Z"));
    assert_eq!(guarded.get(By::Token(&short), "/api/v1/slots").await.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_hands_on_what_they_have_and_no_more() {
    let guarded = Guarded::start(&two_projects()).await;
    guarded.user("anna", &["operate@a"]).await;
    let login = json!({ "user": "anna", "password": PASSWORD, "name": "laptop" }).to_string();
    let token = guarded.send(By::Nobody, "POST", "/api/v1/login", &login).await.ok().json();
    let token = token["secret"].as_str().unwrap().to_owned();
    guarded.send(By::Token(&token), "POST", "/api/v1/workflows/a/pause", "{}").await.ok();
    let cookie = guarded.sign_in("anna").await;
    let proof = guarded.proof(&cookie, "/ui/workflows/a").await;
    let make = |roles: Value| {
        let body = json!({ "name": "mine", "roles": roles }).to_string();
        let (guarded, cookie, proof) = (&guarded, cookie.clone(), proof.clone());
        async move {
            guarded.send_from(By::Session(&cookie), "POST", "/api/v1/tokens", &body, &[("kelos-proof", &proof)]).await
        }
    };
    assert_eq!(make(json!(["view@a"])).await.status, StatusCode::OK);
    for roles in [json!(["view"]), json!(["admin@a"]), json!(["operate@b"]), json!(["worker"]), json!(["owner"])] {
        let refused = make(roles.clone()).await;
        assert!(refused.status.is_client_error(), "{roles}: {refused:?}");
    }
    // A role that is taken away from a user is taken away from their tokens.
    let body = json!({ "roles": ["view@a"] }).to_string();
    guarded.send(By::Token(OWNER), "PUT", "/api/v1/users/anna", &body).await.ok();
    let refused = guarded.send(By::Token(&token), "POST", "/api/v1/workflows/a/resume", "{}").await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
    guarded.send(By::Token(OWNER), "DELETE", "/api/v1/users/anna", "").await.ok();
    assert_eq!(guarded.get(By::Token(&token), "/api/v1/slots").await.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test(flavor = "multi_thread")]
async fn guessing_takes_longer_and_longer_and_is_on_record() {
    let guarded = Guarded::start(&[]).await;
    guarded.user("anna", &["view"]).await;
    let guess = |user: &str| {
        let body = json!({ "user": user, "password": "wrong wrong wrong", "name": "x" }).to_string();
        let guarded = &guarded;
        async move { guarded.send(By::Nobody, "POST", "/api/v1/login", &body).await }
    };
    let (unknown, known) = (guess("bob").await, guess("anna").await);
    assert_eq!((unknown.status, unknown.text.replace("bob", "anna")), (StatusCode::UNAUTHORIZED, known.text));
    for _ in 0..4 {
        guess("anna").await;
    }
    let refused = guess("anna").await;
    assert_eq!((refused.status, &refused.json()["code"]), (StatusCode::TOO_MANY_REQUESTS, &json!("too-many-tries")));
    // The right password has to wait, too, or guessing would go on.
    let right = json!({ "user": "anna", "password": PASSWORD, "name": "x" }).to_string();
    assert_eq!(guarded.send(By::Nobody, "POST", "/api/v1/login", &right).await.status, StatusCode::TOO_MANY_REQUESTS);
    guarded.server.set_clock(crate::support::at("2015-09-13T15:05:00Z"));
    guarded.send(By::Nobody, "POST", "/api/v1/login", &right).await.ok();
    guarded.until_recorded(|what| *what == AccessEvent::SignedIn).await;
    let record = guarded.get(By::Token(OWNER), "/api/v1/audit").await.ok();
    let names: Vec<_> =
        record.json()["items"].as_array().unwrap().iter().map(|row| row["event"]["event"].clone()).collect();
    assert!(names.contains(&json!("sign-in-failed")) && names.contains(&json!("signed-in")), "{names:?}");
    let row = record.json()["items"]
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["event"]["event"] == "sign-in-failed")
        .cloned();
    assert_eq!(row.unwrap()["address"], "10.0.0.9");
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_are_on_record_with_who_and_from_where() {
    let guarded = Guarded::start(&two_projects()).await;
    let token = guarded.token("nightly", &["view@a"]).await;
    guarded.send(By::Token(&token), "POST", "/api/v1/workflows/a/pause", "{}").await;
    guarded.until_recorded(|what| matches!(what, AccessEvent::Refused { .. })).await;
    let record = guarded.get(By::Token(OWNER), "/api/v1/audit?who=nightly").await.ok().json();
    let row = &record["items"][0];
    assert_eq!((&row["who"], &row["kind"], &row["address"]), (&json!("nightly"), &json!("token"), &json!("10.0.0.9")));
    assert_eq!(row["event"]["action"], "POST /api/v1/workflows/{id}/pause");
    let auditor = guarded.token("auditor", &["audit"]).await;
    guarded.get(By::Token(&auditor), "/api/v1/audit").await.ok();
    guarded.get(By::Token(&auditor), "/api/v1/users").await.ok();
    assert_eq!(
        guarded.send(By::Token(&auditor), "POST", "/api/v1/workflows/a/pause", "{}").await.status,
        StatusCode::FORBIDDEN
    );
    // An auditor of one project does not see who may do what on the server.
    let local = guarded.token("local", &["audit@a"]).await;
    assert_eq!(guarded.get(By::Token(&local), "/api/v1/users").await.status, StatusCode::FORBIDDEN);
}

#[tokio::test(flavor = "multi_thread")]
async fn addresses_and_proxies_count_only_where_a_rule_says_so() {
    let rules = json!({
        "addresses": [{ "from": "10.1.0.0/16", "name": "hadoop", "roles": ["operate@a"] }],
        "proxy": { "from": ["10.2.0.1/32"] },
        "groups": { "data": ["operate@b"] },
        "reasons": ["b"],
    });
    let guarded = Guarded::with_rules(rules, &two_projects()).await;
    let old_client = |uri: &'static str, peer: &'static str| {
        let guarded = &guarded;
        async move { guarded.send_from(By::Nobody, "POST", uri, "", &[("x-test-peer", peer)]).await }
    };
    assert!(old_client("/pause?id=a&paused=true", "10.1.2.3").await.status.is_success());
    assert_eq!(old_client("/pause?id=b&paused=true", "10.1.2.3").await.status, StatusCode::NOT_FOUND);
    assert_eq!(old_client("/pause?id=a&paused=true", "10.3.2.3").await.status, StatusCode::UNAUTHORIZED);
    let forwarded = |peer: &'static str, groups: &'static str, body: &'static str| {
        let guarded = &guarded;
        let headers = [("x-test-peer", peer), ("x-forwarded-user", "carl"), ("x-forwarded-groups", groups)];
        async move { guarded.send_from(By::Nobody, "POST", "/api/v1/workflows/b/pause", body, &headers).await }
    };
    assert_eq!(forwarded("10.2.0.1", "x, data", r#"{"reason":"r"}"#).await.status, StatusCode::OK);
    let reasonless = forwarded("10.2.0.1", "data", "{}").await;
    assert_eq!((reasonless.status, &reasonless.json()["code"]), (StatusCode::BAD_REQUEST, &json!("reason-missing")));
    assert_eq!(forwarded("10.2.0.1", "x", r#"{"reason":"r"}"#).await.status, StatusCode::FORBIDDEN);
    assert_eq!(forwarded("10.2.0.2", "data", r#"{"reason":"r"}"#).await.status, StatusCode::UNAUTHORIZED);
    let bad = [("x-test-peer", "10.2.0.1"), ("x-forwarded-user", "<b>")];
    assert_eq!(guarded.send_from(By::Nobody, "GET", "/api/v1/slots", "", &bad).await.status, StatusCode::BAD_REQUEST);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stolen_token_of_a_worker_opens_nothing_but_the_work_of_workers() {
    let guarded = Guarded::start(&two_projects()).await;
    let by = By::Token(WORKER);
    for uri in ["/api/v1/slots", "/api/v1/events", "/api/v1/users", "/ui", "/workflow-list", "/v3/namespaces"] {
        assert_eq!(guarded.get(by, uri).await.status, StatusCode::FORBIDDEN, "{uri}");
    }
    assert_eq!(guarded.send(by, "POST", "/api/v1/workflows/a/pause", "{}").await.status, StatusCode::FORBIDDEN);
    let wrong = guarded.send(By::Token("the token of workerz"), "POST", "/api/v1/workers/w/offer", "{}").await;
    assert_eq!(wrong.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_author_of_one_project_deploys_no_other_one() {
    let guarded = Guarded::start(&two_projects()).await;
    let token = guarded.token("author", &["author@a"]).await;
    let by = By::Token(&token);
    let bundle = |script: &str| json!({ "workflow": script }).to_string();
    let put = |project: &str, script: String| {
        let uri = format!("/api/v1/projects/{project}?plan=true");
        let guarded = &guarded;
        async move { guarded.send(by, "PUT", &uri, &script).await }
    };
    put("a", bundle(&workflow("a", "maxRetryCount: 3"))).await.ok();
    assert_eq!(put("b", bundle(&workflow("b", ""))).await.status, StatusCode::FORBIDDEN);
    // A name that is another project's, from a script of one's own.
    assert_eq!(put("a", bundle(&workflow("b", ""))).await.status.as_u16() / 100, 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_server_makes_no_accounts_for_whoever_reaches_it() {
    let server = Server::start("").await;
    let body = json!({ "roles": ["admin"], "password": PASSWORD }).to_string();
    assert_eq!(server.ask(Method::PUT, "/api/v1/users/mallory", &body).await.status, StatusCode::FORBIDDEN);
    assert_eq!(
        server.post_json("/api/v1/tokens", r#"{"name":"x","roles":["admin"]}"#).await.status,
        StatusCode::FORBIDDEN
    );
    let set = server.ask(Method::PUT, "/api/v1/registers/kelos.access/user/mallory", "{}").await;
    assert!(set.status.is_client_error(), "{set:?}");
    let set = server.ask(Method::PUT, "/register?bucket=kelos.access&key=mallory", "{}").await;
    assert!(set.status.is_client_error(), "{set:?}");
}

#[tokio::test]
async fn a_node_tells_of_itself_by_the_token_of_nodes_alone() {
    let guarded = Guarded::start(&[]).await;
    let token = guarded.token("elsewhere", &["worker"]).await;
    let report = json!({ "address": "http://10.0.0.9", "version": "1", "followed": 1 }).to_string();
    for by in [WORKER, token.as_str()] {
        let refused = guarded.send(By::Token(by), "POST", "/api/v1/nodes/n", &report).await;
        assert_eq!((refused.status, refused.json()["code"].as_str()), (StatusCode::FORBIDDEN, Some("not-a-node")));
        assert!(guarded.server.node.roster().list().is_empty());
    }
    guarded.send(By::Token(NODE), "POST", "/api/v1/nodes/n", &report).await.ok();
    assert_eq!(guarded.server.node.roster().list()[0].1.address.as_deref(), Some("http://10.0.0.9"));
}
