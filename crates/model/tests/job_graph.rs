//! Which jobs wait for which: one relation, from both sides.

use std::collections::BTreeSet;
use std::sync::Arc;

use kelos_model::WorkflowId;
use kelos_model::function::FunctionRef;
use kelos_model::jobs::{
    DateForm, Fault, Group, Job, JobGraph, JobKeys, JobTemplate, Kind, Member, Parents, TwoWay, ValueFilter,
};
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
    let wanted = |list: &[&str]| if list == ["all"] { ValueFilter::All } else { ValueFilter::Of(texts(list)) };
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
    let writable = |one: &Parents| {
        let named: Vec<String> =
            one.jobs.iter().map(|job| format!("{}/{}:{}", job.workflow, job.id, one.group)).collect();
        named.into_iter().chain(one.unwritable.iter().map(ToString::to_string)).collect::<Vec<_>>()
    };
    found.iter().flat_map(writable).collect()
}

fn children(graph: &JobGraph, workflow: &str, job: &str) -> Vec<String> {
    let found = graph.children(&id(workflow), job).unwrap();
    let writable = found.jobs.iter().map(|(job, group)| format!("{}/{}:{group}", job.workflow, job.id));
    writable.chain(found.unwritable.iter().map(ToString::to_string)).collect()
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
fn a_list_of_literal_jobs_without_any_is_a_fault() {
    let mut literal = member(&["a"], &[]);
    literal.job_ids = Some(Vec::new());
    let faults =
        graph(vec![("a", keys("{date}", &[], vec![])), ("c", keys("{date}", &[], vec![group("g", vec![literal])]))])
            .unwrap_err();
    assert_eq!(faults, ["c, group g, member 1: its list of job_id is empty"]);
}

#[test]
fn a_child_that_could_not_be_read_back_is_told_of() {
    let graph = graph(vec![
        ("a", keys("{date}_{name}", &[], vec![])),
        ("b", keys("{name}_{date}", &[], vec![group("g", vec![member(&["a"], &[])])])),
    ])
    .unwrap();
    assert_eq!(children(&graph, "a", "1_x"), ["b/x_1:g"]);
    let why = "a job of b that can't be named: name \"x_y\" can't be told from what follows it in {name}_{date}";
    assert_eq!(children(&graph, "a", "1_x_y"), [why]);
}

#[test]
fn a_parent_that_can_not_be_written_is_never_left_out() {
    let all_y = || vec![group("g", vec![member(&["a"], &[("y", &["all"])]), member(&["c"], &[])])];
    let parent = || ("a", keys("{x}_{y}", &[("y", &["1", "2"])], vec![]));
    let graph_of = |child| graph(vec![parent(), ("c", keys("{x}", &[], vec![])), ("b", child)]).unwrap();
    let one = graph_of(keys("{x}", &[], all_y()));
    assert_eq!(parents(&one, "b", "p"), ["a/p_1:g", "a/p_2:g", "c/p:g"]);
    let why = "2 jobs of a that can't be named: x \"p_q\" can't be told from what follows it in {x}_{y}";
    assert_eq!(parents(&one, "b", "p_q"), ["c/p_q:g", why]);
    assert_eq!(one.no_way(&id("b"), "p_q"), Some(format!("it waits for {why}")));
    assert_eq!(one.no_way(&id("b"), "p"), None);
    // Another group may still be met.
    let mut either = all_y();
    either.push(group("h", vec![member(&["c"], &[])]));
    let two = graph_of(keys("{x}", &[], either));
    assert_eq!(parents(&two, "b", "p_q"), ["c/p_q:g", why, "c/p_q:h"]);
    assert_eq!(two.no_way(&id("b"), "p_q"), None);
}

#[test]
fn a_parent_without_a_name_or_with_too_long_a_one_is_never_left_out() {
    let on = |name: &str| vec![group("g", vec![member(&[name], &[("y", &["all"])])])];
    let long = "l".repeat(300);
    let graph = graph(vec![
        ("a", keys("{x}", &[], vec![])),
        ("l", keys("{x}_{y}", &[("y", &["1", &long])], vec![])),
        ("b", keys("{x}_{z}", &[("z", &["1"])], vec![group("g", vec![member(&["a"], &[])])])),
        ("c", keys("{x}", &[], on("l"))),
    ])
    .unwrap();
    let empty = "a job of a that can't be named: x is empty, and with it the whole of {x}";
    assert_eq!(parents(&graph, "b", "_1"), [empty]);
    let long = "l".repeat(300);
    let name = format!("l/{long}_1:g");
    let why = "a job of l that can't be named: its id by {x}_{y} would be longer than 512 bytes";
    assert_eq!(parents(&graph, "c", &long), [name.as_str(), why]);
}

#[test]
fn a_template_or_a_domain_that_no_job_id_fits_is_a_fault() {
    let faults = graph(vec![
        ("a", keys("run/{x}", &[], vec![])),
        ("b", keys("{x}_{y}", &[("x", &["p", "p_q"])], vec![])),
        ("c", keys("{x}", &[("x", &[""])], vec![])),
    ])
    .unwrap_err();
    assert_eq!(
        faults,
        [
            "a: its job ids can't contain '/', expected other texts in run/{x}",
            "b: x \"p_q\" can't be told from what follows it in {x}_{y}",
            "c: x is empty, and with it the whole of {x}",
        ]
    );
}

#[test]
fn what_a_function_names_is_a_job_that_reads_back_to_the_same() {
    let function = |index| FunctionRef { file: "a.js".to_owned(), index, digest: String::new() };
    let functions = TwoWay { workflows: vec![id("a")], parents: function(1), children: function(2) };
    let asked = Group { name: "g".to_owned(), members: vec![], functions: Some(functions) };
    let graph = graph(vec![("a", keys("{x}_{y}", &[], vec![])), ("b", keys("{x}", &[], vec![asked]))]).unwrap();
    let question = graph.asks_parents(&id("b"), "p").remove(0);
    let named = |x: &str| {
        let values = [("x", x), ("y", "1")].map(|(name, value)| (Arc::from(name), Arc::from(value)));
        graph.answered(&question, &vec![(id("a"), values.into_iter().collect())])
    };
    assert_eq!(named("p").map(|jobs| jobs[0].id.to_string()), Ok("p_1".to_owned()));
    let why = "a job of a can't be named: x \"p_q\" can't be told from what follows it in {x}_{y}";
    assert_eq!(named("p_q"), Err(why.to_owned()));
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

/// Values that jobs have: a few more than the lists have, some of which not every template can write.
const MORE_VALUES: [&str; 7] = ["1", "2", "3", "4", "", "1_2", "_"];

/// Every job id of a template over those values.
fn all_ids(keys: &JobKeys) -> Vec<String> {
    let mut all = vec![Vec::new()];
    for _ in keys.template.identifiers() {
        let longer = |one: &Vec<Arc<str>>, value: &str| one.iter().cloned().chain([value.into()]).collect::<Vec<_>>();
        all = all.iter().flat_map(|one| MORE_VALUES.iter().map(|value| longer(one, value))).collect();
    }
    all.iter().filter_map(|values| Some(keys.template.id_of(values).ok()?.to_string())).collect()
}

/// How many parents a group names for each child that it is about, where no job is named outright and none twice.
fn written(group: &Group, workflows: &[(WorkflowId, JobKeys)]) -> Option<usize> {
    let mut total = 0;
    let mut seen = BTreeSet::new();
    for member in &group.members {
        for id in &member.workflows {
            let (_, keys) = workflows.iter().find(|(known, _)| known == id)?;
            if member.job_ids.is_some() || !seen.insert(id) {
                return None;
            }
            let count = |name: &Arc<str>| match member.values.get(name) {
                Some(ValueFilter::Of(values)) => values.len(),
                Some(ValueFilter::All) => keys.domains[name].len(),
                None => 1,
            };
            total += keys.template.identifiers().map(count).product::<usize>();
        }
    }
    Some(total)
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
                    let keys = &workflows.iter().find(|(id, _)| id == workflow).unwrap().1;
                    let group = keys.depends_on.iter().find(|group| *group.name == *found.group).unwrap();
                    let total = written(group, &workflows);
                    prop_assert!(total.is_none_or(|total| total == found.total()), "as many as were written");
                    for parent in &found.jobs {
                        prop_assert_eq!(graph.job(&parent.workflow, &parent.id), Ok(parent.clone()), "it reads back");
                    }
                    let all: BTreeSet<_> = found.jobs.iter().collect();
                    prop_assert_eq!(all.len(), found.jobs.len(), "each parent once");
                    up.extend(found.jobs.into_iter().filter(|parent| ids.contains(parent)).map(|parent| (parent, found.group.clone(), me.clone())));
                }
                let children = graph.children(workflow, text).unwrap();
                let all: BTreeSet<_> = children.jobs.iter().collect();
                prop_assert_eq!(all.len(), children.jobs.len(), "each child once in each group");
                down.extend(children.jobs.into_iter().map(|(child, group)| (me.clone(), group, child)));
        }
        prop_assert_eq!(up, down);
    }
}
