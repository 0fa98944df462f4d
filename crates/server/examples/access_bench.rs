//! Measures what access costs: `cargo run --release -p kelos-server --example access_bench`.
//!
//! A server in memory with 200 projects of five workflows each, 1,000 users and 1,000 tokens: a token is checked, a page of slots is
//! read by somebody who sees everything and by somebody who sees one project, and both once without access control.

use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Extensions, HeaderMap, Request, header};
use kelos::{Node, NodeConfig};
use kelos_engine::{Pace, Status};
use kelos_front::identity::Door;
use kelos_front::{Access, AccessSettings, App};
use kelos_model::time::{Cron, CronSchedule, Schedule};
use kelos_model::workflow::Job;
use kelos_model::{Actor, Workflow, WorkflowId};
use kelos_server::router;
use kelos_store::MemoryStore;
use kelos_trust::{AccountName, Grant, Token, TokenRecord, UserRecord};
use tower::ServiceExt;

const PROJECTS: usize = 200;
const USERS: usize = 1_000;

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("threads");
    runtime.block_on(measure());
}

async fn measure() {
    let folder = std::env::temp_dir().join(format!("kelos-access-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let mut config = NodeConfig::new(folder.clone(), Vec::new());
    config.pace = Pace::Stepped;
    let node = Node::start(config, Box::new(MemoryStore::new()), tokio::runtime::Handle::current()).expect("a node");
    let leads = |status: &Status| matches!(status, Status::Leading { .. });
    node.handle().watch_status().wait_for(leads).await.expect("a leader");
    node.handle().define(workflows(), Default::default()).expect("definitions");
    node.handle().settled().await.expect("a commit");
    node.handle().step(node.handle().now(), None).await.expect("a step");
    let access = Access::new(AccessSettings { required: true, ..AccessSettings::default() });
    let by = Actor::system("bench");
    let mut tokens = Vec::new();
    for n in 0..USERS {
        let roles = vec![Grant::of(kelos_trust::Role::Operate, &format!("project-{}", n % PROJECTS))];
        let name = AccountName::new(&format!("user-{n}")).expect("a name");
        let user = UserRecord { roles: roles.clone(), password: None, disabled: false, epoch: 0 };
        let value = serde_json::to_value(user).expect("JSON");
        access.set(node.handle(), &by, UserRecord::key(&name), Some(value), None).await.expect("a user");
        let token = Token::draw().expect("a token");
        let roles = if n == 0 { vec![Grant::everywhere(kelos_trust::Role::Admin)] } else { roles };
        let made_at = node.handle().now();
        let record = TokenRecord { name, digest: token.digest(), roles, owner: None, made_at, expires_at: None };
        let value = serde_json::to_value(record).expect("JSON");
        access.set(node.handle(), &by, TokenRecord::key(token.id()), Some(value), None).await.expect("a token");
        tokens.push(token.reveal().to_owned());
    }
    println!("{PROJECTS} projects with {} workflows, {USERS} users, {USERS} tokens", PROJECTS * 5);
    let checked = checks(&access, &node, &tokens);
    println!("a token checked: {}", told(checked));
    let open = router(App::new(node.clone(), "bench"));
    let guarded = router(App::new(node.clone(), "bench").with_access(access));
    for (name, router, token) in [
        ("without access control", &open, None),
        ("by an administrator", &guarded, Some(&tokens[0])),
        ("by an operator of one project of 200", &guarded, Some(&tokens[1])),
    ] {
        for path in ["/api/v1/slots?limit=100", "/api/v1/workflows/project-1.w1", "/api/v1/version"] {
            println!("GET {path} {name}: {}", told(requests(router, path, token).await));
        }
    }
    node.stop().await;
    let _ = std::fs::remove_dir_all(folder);
}

fn workflows() -> Vec<std::sync::Arc<Workflow>> {
    let workflow = |n: usize| {
        let schedule = Schedule::Cron(CronSchedule::utc(Cron::parse("0 0 * * * ?").expect("an expression")));
        let id = WorkflowId::new(&format!("project-{}.w{n}", n % PROJECTS)).expect("a name");
        let mut workflow = Workflow::new(id, schedule, Job::new("command", serde_json::Map::new()));
        workflow.project = format!("project-{}", n % PROJECTS);
        std::sync::Arc::new(workflow)
    };
    (0..PROJECTS * 5).map(workflow).collect()
}

/// How long a check of a token takes, each of another one.
fn checks(access: &Access, node: &Node, tokens: &[String]) -> Vec<Duration> {
    let mut times = Vec::new();
    for token in tokens.iter().cycle().take(20_000) {
        let mut headers = HeaderMap::new();
        headers.insert(header::AUTHORIZATION, format!("Bearer {token}").parse().expect("a header"));
        let begun = Instant::now();
        access.identify(node.handle(), &headers, &Extensions::new(), Door::Api).expect("an identity");
        times.push(begun.elapsed());
    }
    times
}

async fn requests(router: &Router, path: &str, token: Option<&String>) -> Vec<Duration> {
    let mut times = Vec::new();
    for _ in 0..100 {
        let mut request = Request::get(path).header("host", "localhost");
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let request = request.body(Body::empty()).expect("a request");
        let begun = Instant::now();
        let answer = router.clone().oneshot(request).await.expect("an answer");
        assert!(answer.status().is_success(), "{answer:?}");
        to_bytes(answer.into_body(), usize::MAX).await.expect("a body");
        times.push(begun.elapsed());
    }
    times
}

fn told(mut times: Vec<Duration>) -> String {
    times.sort();
    let at = |percent: usize| times[(times.len() - 1) * percent / 100];
    format!("p50 {:?}, p99 {:?}", at(50), at(99))
}
