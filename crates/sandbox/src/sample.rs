//! Samples of the pairs of functions that relate jobs: each of the two has to be the inverse of the other.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kelos_model::jobs::{Direction, Job, JobGraph, JobKeys, Kind, Relation};
use kelos_model::workflow::keyed;
use kelos_model::{Workflow, WorkflowId};

use crate::code::ProblemCode;
use crate::load::LoadResult;
use crate::problem::Problem;
use crate::scripts::Scripts;

/// Jobs of one workflow that are asked about.
const SAMPLES: usize = 50;

/// Days that are tried where an identifier is a date: ends of months and years are where functions go wrong.
const DAYS: [&str; 8] =
    ["2014-06-01", "2014-06-15", "2014-06-30", "2014-07-01", "2014-12-31", "2015-01-01", "2016-02-28", "2016-02-29"];

/// Warnings about groups whose two functions disagree, or one of which fails.
pub(crate) fn disagreements(scripts: &Scripts, loaded: &LoadResult) -> Vec<Problem> {
    let keyed = keyed(loaded.workflows.iter().map(|one| &**one));
    let keys: BTreeMap<&WorkflowId, &JobKeys> = keyed.clone().collect();
    // Functions of dormant workflows are not called.
    let (graph, _) = JobGraph::fitting(keyed);
    if !graph.asks_functions() {
        return Vec::new();
    }
    let mut found: BTreeMap<(WorkflowId, Arc<str>), String> = BTreeMap::new();
    for (id, keys) in &keys {
        for job in samples(keys) {
            let parents = graph.asks_parents(id, &job);
            for relation in parents.into_iter().chain(graph.asks_children(id, &job)) {
                if let Err(why) = holds(scripts, &graph, &relation) {
                    found.entry((relation.child, relation.group)).or_insert(why);
                }
            }
        }
    }
    let problem = |((child, group), why)| {
        let defined = loaded.workflows.iter().find(|one| one.id == child);
        told(loaded, defined, format!("{child}, group {group}: {why}"))
    };
    found.into_iter().map(problem).collect()
}

/// Checks that a relation that one function returns is also returned by the other.
fn holds(scripts: &Scripts, graph: &JobGraph, relation: &Relation) -> Result<(), String> {
    let of = format!("{} {}", relation.of.workflow, relation.of.key.short());
    let (there, back) = match relation.direction {
        Direction::Parents => ("parentsOf", "childrenOf"),
        Direction::Children => ("childrenOf", "parentsOf"),
    };
    for job in said(scripts, graph, relation).map_err(|why| format!("{there} fails for {of}: {why}"))? {
        let Some(question) = opposite(graph, relation, &job) else { continue };
        let name = format!("{} {}", job.workflow, job.id);
        let answer = said(scripts, graph, &question).map_err(|why| format!("{back} fails for {name}: {why}"))?;
        let is_it = |one: &Job| one.workflow == relation.of.workflow && Some(&one.id) == relation.of.key.job();
        if !answer.iter().any(is_it) {
            return Err(format!("{there} says that {of} has {name}, but {back} of {name} does not name {of}"));
        }
    }
    Ok(())
}

fn said(scripts: &Scripts, graph: &JobGraph, relation: &Relation) -> Result<Vec<Job>, String> {
    graph.answered(relation, &scripts.related(relation).map_err(|error| error.to_string())?)
}

/// The question about a job that leads back.
fn opposite(graph: &JobGraph, relation: &Relation, job: &Job) -> Option<Relation> {
    let all = match relation.direction {
        Direction::Parents => graph.asks_children(&job.workflow, &job.id),
        Direction::Children => graph.asks_parents(&job.workflow, &job.id),
    };
    all.into_iter().find(|one| one.child == relation.child && one.group == relation.group)
}

/// Some jobs of a workflow: of what is known of its identifiers, a choice.
fn samples(keys: &JobKeys) -> BTreeSet<Arc<str>> {
    let choices: Vec<Vec<Arc<str>>> = keys.template.identifiers().map(|name| choices(keys, name)).collect();
    let all = choices.iter().fold(1_usize, |product, choices| product.saturating_mul(choices.len()));
    let stride = if all > SAMPLES { all / SAMPLES + 1 } else { 1 };
    let sample = |n: usize| keys.template.id_of(&combination(&choices, n.wrapping_mul(stride) % all)).ok();
    (0..all.min(SAMPLES)).filter_map(sample).collect()
}

/// One choice of each, by the number of the combination.
fn combination(choices: &[Vec<Arc<str>>], mut number: usize) -> Vec<Arc<str>> {
    let mut pick = |choices: &Vec<Arc<str>>| {
        let at = number % choices.len();
        number /= choices.len();
        choices[at].clone()
    };
    choices.iter().map(&mut pick).collect()
}

fn choices(keys: &JobKeys, name: &Arc<str>) -> Vec<Arc<str>> {
    if let Some(domain) = keys.domains.get(name).filter(|domain| !domain.is_empty()) {
        return domain.clone();
    }
    match keys.identifiers.get(name) {
        Some(Kind::Date { .. }) => {
            let forms = DAYS.iter().flat_map(|day| [(*day).to_owned(), day.replace('-', "")]);
            let kind = &keys.identifiers[name];
            forms.filter_map(|day| kind.normal(&day).ok()).collect()
        }
        Some(kind @ Kind::Integer { min, .. }) => {
            let from = min.unwrap_or(1);
            (from..from.saturating_add(3)).filter_map(|number| kind.normal(&number.to_string()).ok()).collect()
        }
        Some(Kind::Choice { of }) => of.clone(),
        _ => vec!["x".into()],
    }
}

fn told(loaded: &LoadResult, defined: Option<&Arc<Workflow>>, what: String) -> Problem {
    let source = defined.map(|one| one.source.clone()).unwrap_or_default();
    let line = usize::try_from(source.line).unwrap_or(0).saturating_sub(1);
    let text = loaded.sources.get(&source.file).and_then(|text| text.lines().nth(line));
    Problem {
        line: source.line,
        column: u32::from(source.line > 0),
        hint: Some("each function has to be the other one read backwards".to_owned()),
        workflow: defined.map(|one| one.id.clone()),
        source_line: text.map(str::to_owned),
        ..Problem::error(&source.file, ProblemCode::FunctionsDisagree, what)
    }
}
