//! Which jobs wait for which: one relation, from both sides.

use std::collections::BTreeSet;
use std::sync::Arc;

use kelos_model::WorkflowId;
use kelos_model::jobs::{DateForm, Fault, Group, Job, JobGraph, JobKeys, JobTemplate, Kind, Member, Wanted};
use proptest::prelude::*;
use proptest::sample::subsequence;

fn id(text: &str) -> WorkflowId {
    WorkflowId::new(text).unwrap()
}

fn texts(list: &[&str]) -> Vec<Arc<str>> {
    list.iter().map(|text| Arc::from(*text)).collect()
}

fn keys(template: &str, domains: &[(&str, &[&str])], depends_on: Vec<Group>) -> JobKeys {
    JobKeys {
        domains: domains.iter().map(|(name, values)| (Arc::from(*name), texts(values))).collect(),
        depends_on,
        ..JobKeys::new(JobTemplate::new(template).unwrap())
    }
}

fn member(workflows: &[&str], values: &[(&str, &[&str])]) -> Member {
    let wanted = |list: &[&str]| if list == ["all"] { Wanted::All } else { Wanted::Of(texts(list)) };
    Member {
        workflows: workflows.iter().map(|text| id(text)).collect(),
        values: values.iter().map(|(name, list)| (Arc::from(*name), wanted(list))).collect(),
        job_ids: None,
    }
}

fn group(name: &str, members: Vec<Member>) -> Group {
    Group { name: name.to_owned(), members, functions: None }
}

fn graph(workflows: Vec<(&str, JobKeys)>) -> Result<JobGraph, Vec<String>> {
    let told = |faults: Vec<Fault>| faults.iter().map(ToString::to_string).collect();
    JobGraph::new(workflows.into_iter().map(|(name, keys)| (id(name), keys)).collect()).map_err(told)
}

fn parents(graph: &JobGraph, workflow: &str, job: &str) -> Vec<String> {
    let found = graph.parents(&id(workflow), job).unwrap();
    found
        .iter()
        .flat_map(|one| one.jobs.iter().map(|job| format!("{}/{}:{}", job.workflow, job.id, one.group)))
        .collect()
}

fn children(graph: &JobGraph, workflow: &str, job: &str) -> Vec<String> {
    let found = graph.children(&id(workflow), job).unwrap();
    found.iter().map(|(job, group)| format!("{}/{}:{group}", job.workflow, job.id)).collect()
}

#[test]
fn a_job_waits_for_its_namesake() {
    let graph = graph(vec![
        ("a", keys("{date}_{client}", &[], vec![])),
        ("b", keys("{date}_{client}", &[], vec![group("default", vec![member(&["a"], &[])])])),
    ])
    .unwrap();
    assert_eq!(parents(&graph, "b", "20140601_7"), ["a/20140601_7:default"]);
    assert_eq!(children(&graph, "a", "20140601_7"), ["b/20140601_7:default"]);
    assert_eq!(parents(&graph, "a", "20140601_7"), Vec::<String>::new());
}

#[test]
fn members_of_one_group_bound_each_other_s_children() {
    // The second member says nothing of `kind`; the first one does, for both.
    let graph = graph(vec![
        ("a", keys("{date}_{kind}", &[], vec![])),
        ("b", keys("{date}", &[], vec![])),
        (
            "c",
            keys(
                "{date}_{kind}",
                &[],
                vec![group("g", vec![member(&["a"], &[("kind", &["x", "y"])]), member(&["b"], &[])])],
            ),
        ),
    ])
    .unwrap();
    assert_eq!(children(&graph, "b", "1"), ["c/1_x:g", "c/1_y:g"]);
    assert_eq!(parents(&graph, "c", "1_x"), ["a/1_x:g", "a/1_y:g", "b/1:g"]);
    assert_eq!(parents(&graph, "c", "1_z"), Vec::<String>::new());
}

#[test]
fn a_job_that_two_members_name_counts_once() {
    let both = group("g", vec![member(&["a"], &[("x", &["p", "q"])]), member(&["a"], &[("x", &["q", "r"])])]);
    let graph = graph(vec![("a", keys("{d}_{x}", &[], vec![])), ("c", keys("{d}", &[], vec![both]))]).unwrap();
    assert_eq!(parents(&graph, "c", "1"), ["a/1_p:g", "a/1_q:g", "a/1_r:g"]);
    assert_eq!(children(&graph, "a", "1_q"), ["c/1:g"]);
}

#[test]
fn literal_jobs_agree_with_their_children_in_what_both_have() {
    let mut literal = member(&["a"], &[("x", &["m"])]);
    literal.job_ids = Some(texts(&["20150101", "20150102"]));
    let graph = graph(vec![
        ("a", keys("{date}", &[], vec![])),
        ("c", keys("{date}_{x}", &[], vec![group("g", vec![literal])])),
    ])
    .unwrap();
    assert_eq!(children(&graph, "a", "20150101"), ["c/20150101_m:g"]);
    assert_eq!(parents(&graph, "c", "20150101_m"), ["a/20150101:g"]);
    assert_eq!(children(&graph, "a", "20150103"), Vec::<String>::new());
    assert_eq!(parents(&graph, "c", "20150105_m"), Vec::<String>::new());
}

#[test]
fn a_value_that_could_not_be_read_back_makes_no_job() {
    let graph = graph(vec![
        ("a", keys("{date}_{name}", &[], vec![])),
        ("b", keys("{name}_{date}", &[], vec![group("g", vec![member(&["a"], &[])])])),
    ])
    .unwrap();
    assert_eq!(children(&graph, "a", "1_x"), ["b/x_1:g"]);
    assert_eq!(children(&graph, "a", "1_x_y"), Vec::<String>::new());
}

#[test]
fn everything_wrong_is_told_at_once_with_its_place() {
    let mut dated = keys("{date}_{x}", &[("y", &["1"])], vec![]);
    dated.identifiers.insert("date".into(), Kind::Date { form: DateForm::Compact });
    let faults = graph(vec![
        ("a", dated),
        (
            "b",
            keys(
                "{date}_{z}",
                &[],
                vec![
                    group("g", vec![member(&["nobody"], &[])]),
                    group("g", vec![member(&["a"], &[("date", &["20140631"]), ("clinet", &["1"]), ("x", &["all"])])]),
                    group("h", vec![member(&["a"], &[("x", &["1", "1"]), ("z", &["1"])])]),
                    group("empty", vec![]),
                    group("i", vec![member(&["a"], &[("date", &["20140601"])])]),
                ],
            ),
        ),
    ])
    .unwrap_err();
    assert_eq!(
        faults,
        [
            "a: it lists values of y, which is no part of {date}_{x}",
            "b, group g: there is another group of this name",
            "b, group g, member 1: no workflow is named \"nobody\"",
            "b, group g, member 1: no workflow here has an identifier clinet",
            "b, group g, member 1: date lists \"20140631\", expected a day of the calendar as yyyymmdd",
            "b, group g, member 1: all x of a: that workflow does not say which there are",
            "b, group g, member 1: date is of another kind in a",
            "b, group g, member 1: nothing says which x of a it waits for: list them, or say \"all\"",
            "b, group g, member 1: nothing says which z a job of a leads to: list values of z",
            "b, group h, member 1: x lists \"1\" twice",
            "b, group h, member 1: date is of another kind in a",
            "b, group h, member 1: nothing says which x of a it waits for: list them, or say \"all\"",
            "b, group empty: it has no members",
            "b, group i, member 1: nothing says which x of a it waits for: list them, or say \"all\"",
            "b, group i, member 1: nothing says which z a job of a leads to: list values of z",
        ]
    );
}

#[test]
fn a_round_of_workflows_is_told() {
    let on = |name: &str| vec![group("default", vec![member(&[name], &[])])];
    let faults = graph(vec![
        ("a", keys("{d}", &[], on("c"))),
        ("b", keys("{d}", &[], on("a"))),
        ("c", keys("{d}", &[], on("b"))),
        ("e", keys("{d}", &[], on("c"))),
    ])
    .unwrap_err();
    assert_eq!(faults, ["a: it waits for itself: a waits for c waits for b waits for a"]);
    let itself = graph(vec![("a", keys("{d}", &[], on("a")))]).unwrap_err();
    assert_eq!(itself, ["a: it waits for itself: a waits for a"]);
}

const IDENTIFIERS: [&str; 4] = ["w", "x", "y", "z"];
const VALUES: [&str; 3] = ["1", "2", "3"];

fn some_values() -> impl Strategy<Value = Vec<&'static str>> {
    subsequence(VALUES.to_vec(), 1..=3)
}

fn some_member(of: usize) -> impl Strategy<Value = Member> {
    let wanted = prop_oneof![Just(vec!["all"]), some_values(), some_values()];
    let values = proptest::collection::btree_map(proptest::sample::select(IDENTIFIERS.to_vec()), wanted, 0..=4);
    let literals = proptest::option::weighted(0.15, proptest::collection::vec(some_values(), 1..=3));
    (subsequence((0..of).collect::<Vec<_>>(), 1..=of.min(2)), values, literals).prop_map(
        |(workflows, values, literals)| {
            let names: Vec<String> = workflows.iter().map(|at| format!("a{at}")).collect();
            let values: Vec<(&str, &[&str])> = values.iter().map(|(name, list)| (*name, list.as_slice())).collect();
            let mut member = member(&names.iter().map(String::as_str).collect::<Vec<_>>(), &values);
            member.job_ids = literals.map(|ids| ids.iter().map(|id| id.join("_").into()).collect());
            member
        },
    )
}

fn some_keys(at: usize) -> impl Strategy<Value = JobKeys> {
    let template = subsequence(IDENTIFIERS.to_vec(), 1..=3);
    let domains = proptest::collection::btree_map(proptest::sample::select(IDENTIFIERS.to_vec()), some_values(), 0..=3);
    let members = proptest::collection::vec(some_member(at.max(1)), 1..=2);
    let groups = proptest::collection::vec(members, if at == 0 { 0..=0 } else { 0..=2 });
    (template, domains, groups).prop_map(|(names, domains, groups)| {
        let text: Vec<String> = names.iter().map(|name| format!("{{{name}}}")).collect();
        let domains: Vec<(&str, &[&str])> = domains
            .iter()
            .filter(|(name, _)| names.contains(name))
            .map(|(name, list)| (*name, list.as_slice()))
            .collect();
        let groups = groups.into_iter().enumerate().map(|(n, members)| group(&format!("g{n}"), members)).collect();
        keys(&text.join("_"), &domains, groups)
    })
}

/// Workflows of which those that can't be put to the others are left out, one after another.
fn some_graph() -> impl Strategy<Value = (JobGraph, Vec<(WorkflowId, JobKeys)>)> {
    (some_keys(0), some_keys(1), some_keys(2), some_keys(3)).prop_map(|(a, b, c, d)| {
        let mut kept = Vec::new();
        for (at, keys) in [a, b, c, d].into_iter().enumerate() {
            let JobKeys { depends_on, .. } = keys.clone();
            kept.push((id(&format!("a{at}")), JobKeys { depends_on: vec![], ..keys }));
            for group in depends_on {
                kept[at].1.depends_on.push(group);
                if JobGraph::new(kept.clone()).is_err() {
                    kept[at].1.depends_on.pop();
                }
            }
        }
        (JobGraph::new(kept.clone()).unwrap(), kept)
    })
}

/// Every job id of a template over a few more values than the lists have.
fn all_ids(keys: &JobKeys) -> Vec<String> {
    let mut ids = vec![String::new()];
    for _ in keys.template.identifiers() {
        let longer = |id: &String, value: &str| if id.is_empty() { value.to_owned() } else { format!("{id}_{value}") };
        ids = ids
            .iter()
            .flat_map(|id| ["1", "2", "3", "4"].iter().map(|value| longer(id, value)).collect::<Vec<_>>())
            .collect();
    }
    ids
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn p_is_a_parent_of_c_exactly_when_c_is_a_child_of_p((graph, workflows) in some_graph()) {
        // Literal job ids may lie outside of what is looked at.
        let ids: BTreeSet<Job> = workflows.iter().flat_map(|(workflow, keys)| {
            all_ids(keys).into_iter().map(|text| Job { workflow: workflow.clone(), id: text.into() })
        }).collect();
        let (mut up, mut down) = (BTreeSet::new(), BTreeSet::new());
        for me in &ids {
                let (workflow, text) = (&me.workflow, &me.id);
                for found in graph.parents(workflow, text).unwrap() {
                    let all: BTreeSet<_> = found.jobs.iter().collect();
                    prop_assert_eq!(all.len(), found.jobs.len(), "each parent once");
                    up.extend(found.jobs.into_iter().filter(|parent| ids.contains(parent)).map(|parent| (parent, found.group.clone(), me.clone())));
                }
                let children = graph.children(workflow, text).unwrap();
                let all: BTreeSet<_> = children.iter().collect();
                prop_assert_eq!(all.len(), children.len(), "each child once in each group");
                down.extend(children.into_iter().map(|(child, group)| (me.clone(), group, child)));
        }
        prop_assert_eq!(up, down);
    }
}
