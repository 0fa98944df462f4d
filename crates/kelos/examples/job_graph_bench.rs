//! How fast relations of job ids are read: `cargo run --release -p kelos --example job_graph_bench`.
//!
//! Figures are of the machine they are measured on; nothing asserts them.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kelos_model::WorkflowId;
use kelos_model::jobs::{DateForm, Group, JobGraph, JobKeys, JobTemplate, Kind, Member, ValueFilter};

fn main() {
    let graph = wide(400);
    let (day, one) = ("20140601", "20140601_7");
    per_second("parents of one child, 400 each", || {
        count(graph.parents(&id("child"), day).map(|all| all[0].jobs.len()))
    });
    per_second("children of one parent, 400 each", || {
        count(graph.children(&id("root"), day).map(|all| all.jobs.len()))
    });
    per_second("the one child of a parent", || count(graph.children(&id("parent"), one).map(|all| all.jobs.len())));
    for workflows in [100, 10_000] {
        let chain = chain(workflows);
        let began = Instant::now();
        let graph = JobGraph::new(chain);
        println!("{workflows} workflows checked: {:.1} ms", millis(began.elapsed()));
        drop(black_box(graph));
    }
}

fn count<E: std::fmt::Debug>(found: Result<usize, E>) -> usize {
    found.expect("a job id of the graph")
}

/// One parent workflow of `size` values below one child, and `size` children below one root.
fn wide(size: u32) -> JobGraph {
    let values: Vec<Arc<str>> = (0..size).map(|value| value.to_string().into()).collect();
    let member = |workflow: &str, wanted: BTreeMap<Arc<str>, ValueFilter>| Group {
        name: "default".to_owned(),
        members: vec![Member { workflows: vec![id(workflow)], values: wanted, job_ids: None }],
        functions: None,
    };
    let all = BTreeMap::from([("client".into(), ValueFilter::All)]);
    let domains = BTreeMap::from([("client".into(), values)]);
    let workflows = vec![
        (id("root"), keys("{date}", BTreeMap::new(), vec![])),
        (id("parent"), keys("{date}_{client}", domains, vec![member("root", BTreeMap::new())])),
        (id("child"), keys("{date}", BTreeMap::new(), vec![member("parent", all)])),
    ];
    JobGraph::new(workflows).expect("a graph")
}

/// Workflows of which each waits for the one before it.
fn chain(length: usize) -> Vec<(WorkflowId, JobKeys)> {
    let on = |at: usize| Group {
        name: "default".to_owned(),
        members: vec![Member { workflows: vec![id(&format!("w{at}"))], ..Member::default() }],
        functions: None,
    };
    let depends_on = |at: usize| at.checked_sub(1).map(on).into_iter().collect();
    (0..length).map(|at| (id(&format!("w{at}")), keys("{date}_{client}", BTreeMap::new(), depends_on(at)))).collect()
}

fn keys(template: &str, domains: BTreeMap<Arc<str>, Vec<Arc<str>>>, depends_on: Vec<Group>) -> JobKeys {
    let identifiers = BTreeMap::from([
        ("date".into(), Kind::Date { form: DateForm::Compact }),
        ("client".into(), Kind::Integer { min: None, max: None }),
    ]);
    let template = JobTemplate::new(template).expect("a template");
    JobKeys { identifiers, domains, depends_on, ..JobKeys::new(template) }
}

fn id(name: &str) -> WorkflowId {
    WorkflowId::new(name).expect("a name")
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn per_second(what: &str, ask: impl Fn() -> usize) {
    let began = Instant::now();
    let mut found = 0;
    while began.elapsed() < Duration::from_secs(1) {
        found += black_box(ask());
    }
    println!("{what}: {:.2} M jobs/s on one thread", found as f64 / began.elapsed().as_secs_f64() / 1e6);
}
