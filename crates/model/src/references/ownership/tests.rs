use serde_json::{Map, Value, json};

use super::*;
use crate::arguments::MAPPING;
use crate::state::SlotState;
use crate::time::{CronSchedule, Schedule};
use crate::workflow::{EventKeys, Job, Keys};
use crate::{Trigger, WorkflowId};

fn id(text: &str) -> WorkflowId {
    text.parse().expect("an id")
}

fn job(text: &str) -> Job {
    Job::new("command", Map::from_iter([("command".to_owned(), Value::from(text))]))
}

fn workflow(project: &str, name: &str, trigger: Trigger, command: &str) -> Workflow {
    let one = Workflow::new(id(name), Schedule::Cron(CronSchedule::hourly()), job(command));
    Workflow { project: project.to_owned(), trigger, ..one }
}

fn schedule(project: &str, name: &str, program: &str, trigger: Trigger) -> Workflow {
    let one = Workflow::keyed(id(name), Keys::Events(Box::new(EventKeys::new(name, id(program)))), job("true"));
    Workflow { project: project.to_owned(), trigger, ..one }
}

fn signal(name: &str) -> Trigger {
    Trigger::Signal { name: name.into() }
}

fn partitions(name: &str) -> Trigger {
    Trigger::Partitions { dataset: name.into(), count: 1 }
}

fn ended(program: &str) -> Trigger {
    Trigger::Ended { program: id(program), states: vec![SlotState::Succeeded] }
}

fn after(name: &str) -> Trigger {
    Trigger::Success { workflow: id(name) }
}

fn sharing(project: &str, name: &str, shares: Value) -> Workflow {
    Workflow { shares: Shares::read(shares).expect("shares"), ..workflow(project, name, Trigger::Always, "true") }
}

fn unshared(index: &Ownership, definition: &Workflow) -> Vec<String> {
    index.unshared_by(definition).iter().map(MissingConsent::line).collect()
}

#[test]
fn each_kind_of_reference_is_allowed_by_its_own_line_and_by_no_other() {
    let kinds = [
        Reference::State(id("load")),
        Reference::Times(id("load")),
        Reference::End(id("load")),
        Reference::Runs(id("load")),
        Reference::Partitions("beta.ds".into()),
        Reference::Signal("beta.sig".into()),
        Reference::Registers("beta.state".into()),
        Reference::Start(id("load")),
        Reference::ReportEnd(id("load")),
        Reference::ReportPartitions("beta.ds".into()),
        Reference::GiveSignal("beta.sig".into()),
    ];
    for kind in &kinds {
        let consenting = |shares: Value| Ownership::of([(&sharing("beta", "load", shares), true)]);
        let bare = consenting(json!({}));
        let Some(line) = kind.allowing_line("alpha") else {
            assert!(bare.allows("alpha", kind), "{kind}");
            continue;
        };
        assert!(!bare.allows("alpha", kind) && bare.allows("beta", kind), "{kind}");
        // The line is JavaScript whose argument is JSON but for the names of its fields.
        let argument =
            line.strip_prefix("kelos.project({ shares: ").and_then(|rest| rest.strip_suffix(" })")).expect(&line);
        let quoted = ["sees", "sends", "runs", "datasets", "signals", "registers", "starts", "ends"]
            .iter()
            .fold(argument.to_owned(), |text, field| text.replace(&format!("{field}:"), &format!("\"{field}\":")));
        let shares: Value = serde_json::from_str(&quoted).expect(&quoted);
        let index = consenting(shares);
        assert!(index.allows("alpha", kind) && !index.allows("gamma", kind), "{line}");
        for other in kinds.iter().filter(|other| *other != kind && other.allowing_line("alpha").is_some()) {
            assert!(!index.allows("alpha", other), "{line} allows {other}");
        }
    }
}

#[test]
fn a_definition_names_all_that_it_refers_to() {
    let all = Trigger::And { triggers: vec![after("load"), signal("go"), partitions("ds"), ended("prog")] };
    let one = schedule("alpha", "s", "beta-prog", all);
    let expected = [
        Reference::State(id("load")),
        Reference::End(id("prog")),
        Reference::Partitions("ds".into()),
        Reference::Signal("go".into()),
        Reference::Start(id("beta-prog")),
    ];
    assert_eq!(one.references(), expected);
    let mut mapped = one;
    if let Keys::Events(events) = &mut mapped.keys {
        events.properties.insert(MAPPING.to_owned(), r#"{"target": "source"}"#.to_owned());
    }
    assert!(mapped.references().contains(&Reference::Runs(id("prog"))));
    assert!(!mapped.references().contains(&Reference::Runs(id("load"))));
}

#[test]
fn a_job_refers_to_outputs_where_nothing_else_can_give_it_a_value() {
    let uses = |command: &str| {
        let one = workflow("alpha", "report", after("load"), command);
        one.references().contains(&Reference::Runs(id("load")))
    };
    for command in ["echo ${rows}", "echo $KELOS_ARG_rows", "jq . <<< \"$KELOS_ARGUMENTS\"", "echo ${load-rows}"] {
        assert!(uses(command), "{command}");
    }
    for command in [
        "echo ${year}-${month}",
        "echo ${HOME} $PATH",
        "day=3; echo ${day_name} day_name=2",
        "echo",
        "for d in 1 2; do echo ${d}; done",
    ] {
        assert!(!uses(command), "{command}");
    }
    let alone = workflow("alpha", "report", Trigger::Always, "echo ${rows}");
    assert!(alone.references().is_empty());
}

#[test]
fn a_name_belongs_to_the_project_that_it_begins_with_and_a_plain_name_to_nobody() {
    let definitions = [
        workflow("beta", "beta-load", Trigger::Always, "true"),
        schedule("beta", "b", "beta-load", signal("plain")),
        sharing("delta", "d", json!({"gamma": {"sees": {"datasets": ["orders"]}}})),
        workflow("beta.secret", "hidden", Trigger::Always, "true"),
    ];
    let index = Ownership::of(definitions.iter().map(|one| (one, true)));
    let owner = |referent: Referent| index.owner(&referent).map(|one| &**one);
    assert_eq!(owner(Referent::Dataset("beta.orders".into())), Some("beta"));
    assert_eq!(owner(Referent::Signal("beta/x".into())), Some("beta"));
    assert_eq!(owner(Referent::Bucket("beta".into())), Some("beta"));
    assert_eq!(owner(Referent::Signal("beta.secret.x".into())), Some("beta.secret"));
    assert_eq!(owner(Referent::Workflow(id("beta-load"))), Some("beta"));
    assert_eq!(owner(Referent::Workflow(id("beta.elsewhere"))), Some("beta"));
    // Neither waiting for a name nor declaring it makes it a project's own.
    assert_eq!(owner(Referent::Signal("plain".into())), None);
    assert_eq!(owner(Referent::Dataset("orders".into())), None);
    assert_eq!(owner(Referent::Signal("betamax".into())), None);
    assert_eq!(index.project_named("beta.secret").map(|one| &**one), Some("beta.secret"));
    assert_eq!(index.project_named("beta.other").map(|one| &**one), Some("beta"));
}

#[test]
fn a_name_is_declared_with_or_without_the_project_before_it() {
    for name in ["sig", "beta.sig"] {
        let index = Ownership::of([(&sharing("beta", "b", json!({"alpha": {"sees": {"signals": [name]}}})), true)]);
        assert!(index.allows("alpha", &Reference::Signal("beta.sig".into())), "{name}");
        assert!(!index.allows("gamma", &Reference::Signal("beta.sig".into())), "{name}");
    }
}

#[test]
fn a_script_reads_its_own_buckets_common_ones_and_those_that_are_shared_with_it() {
    let beta = sharing("beta", "b", json!({"alpha": {"sees": {"registers": ["beta.open"]}}}));
    let index = Ownership::of([(&beta, true)]);
    let read = |project: &str, bucket: &str| index.unshared_read(&project.into(), &bucket.into());
    for (project, bucket) in [("beta", "beta"), ("beta", "beta.state"), ("alpha", "celos"), ("alpha", "beta.open")] {
        assert_eq!(read(project, bucket), None, "{bucket} by {project}");
    }
    for (project, bucket) in [("gamma", "beta.open"), ("alpha", "beta"), ("alpha", "beta/open")] {
        let missing = read(project, bucket).expect("no consent");
        let line =
            format!("kelos.project({{ shares: {{ \"{project}\": {{ sees: {{ registers: [\"{bucket}\"] }} }} }} }})");
        assert_eq!(missing.line(), line);
        assert!(missing.to_string().starts_with("the script refers to another project"), "{missing}");
    }
}

#[test]
fn a_definition_that_takes_from_others_is_refused() {
    let beta = [workflow("beta", "load", Trigger::Always, "true"), schedule("beta", "b", "load", signal("beta.sig"))];
    let index = Ownership::of(beta.iter().map(|one| (one, true)));
    assert_eq!(unshared(&index, &workflow("alpha", "a", after("load"), "true")), [""; 0]);
    assert_eq!(
        unshared(&index, &workflow("alpha", "a", after("load"), "echo ${rows}")),
        [r#"kelos.project({ shares: { "alpha": { sees: { runs: ["load"] } } } })"#]
    );
    assert_eq!(
        unshared(&index, &schedule("alpha", "a", "load", signal("beta.sig"))),
        [
            r#"kelos.project({ shares: { "alpha": { sees: { signals: ["beta.sig"] } } } })"#,
            r#"kelos.project({ shares: { "alpha": { sends: { starts: ["load"] } } } })"#
        ]
    );
}

#[test]
fn a_plain_name_can_not_be_taken_from_others_by_waiting_for_it_or_declaring_it_first() {
    let claim = Workflow {
        shares: Shares::read(json!({"*": {"sees": {"signals": ["sig"]}}})).expect("shares"),
        ..schedule("mallory", "m", "m-prog", signal("sig"))
    };
    let index = Ownership::of([(&claim, true)]);
    assert_eq!(unshared(&index, &schedule("beta", "b", "b-prog", signal("sig"))), [""; 0]);
    assert_eq!(index.owner(&Referent::Signal("sig".into())), None);
}

#[test]
fn a_change_concerns_those_whose_references_it_decides_about() {
    let mut index = Ownership::default();
    let reader = workflow("alpha", "a", after("load"), "echo ${rows}");
    index.put(&reader, true);
    assert!(index.unshared(&reader.id).is_empty(), "nobody has the workflow yet");
    let concerned = index.put(&workflow("beta", "load", Trigger::Always, "true"), true);
    assert!(concerned.contains(&reader.id));
    assert_eq!(index.unshared(&reader.id).len(), 1);
    // Consent may come with any definition of the project, and go with it.
    let consent = sharing("beta", "other", json!({"alpha": {"sees": {"runs": ["load"]}}}));
    assert!(index.put(&consent, true).contains(&reader.id));
    assert!(index.unshared(&reader.id).is_empty());
    assert!(index.put(&consent, false).contains(&reader.id));
    assert_eq!(index.all_unshared().len(), 1);
    // A new project takes what has its name before it.
    let waiting = schedule("alpha", "w", "a", signal("gamma.go"));
    index.put(&waiting, true);
    assert!(index.unshared(&waiting.id).is_empty());
    assert!(index.put(&workflow("gamma", "g", Trigger::Always, "true"), true).contains(&waiting.id));
    assert_eq!(index.unshared(&waiting.id).len(), 1);
    let consent = sharing("gamma", "g", json!({"alpha": {"sees": {"signals": ["go"]}}}));
    assert!(index.put(&consent, true).contains(&waiting.id));
    assert!(index.unshared(&waiting.id).is_empty());
}

#[test]
fn plain_names_that_several_projects_wait_for_are_listed() {
    let mut index = Ownership::default();
    index.put(&schedule("alpha", "a", "p", partitions("ds")), true);
    index.put(&schedule("alpha", "own", "p", partitions("alpha.ds")), true);
    assert!(index.common().is_empty());
    index.put(&schedule("beta", "b", "q", partitions("ds")), true);
    let common = index.common();
    assert_eq!(common.len(), 1);
    assert_eq!(common[0].1.iter().map(|one| &**one).collect::<Vec<_>>(), ["alpha", "beta"]);
    assert!(index.all_unshared().is_empty());
}
