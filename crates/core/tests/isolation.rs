//! Projects that are kept apart: each kind of reference with each role and each consent, in definitions and in requests.

#![allow(clippy::disallowed_methods, reason = "the tests make sets; the core does not")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use kelos_core::{
    AnyAnswer, Ask, Command, Config, Core, CreateSchedules, Deployment, DownstreamRequest, FireRequest, Input, Refusal,
    Reply, SetRegister, Tell, Warrant,
};
use kelos_model::arguments::MAPPING;
use kelos_model::sharing::{Reference, Scope, Shares};
use kelos_model::time::{CronSchedule, Schedule};
use kelos_model::workflow::{EventKeys, Keys, Program, Provenance};
use kelos_model::{
    Actor, Arguments, Event, Fact, Job, Occurrence, SlotEvent, SlotRef, SlotState, Trigger, Workflow, WorkflowId,
};
use serde_json::{Map, Value, json};

#[path = "support/finished.rs"]
mod finished;

use finished::FinishedSlots;

struct Server {
    core: Core,
    past: FinishedSlots,
    events: Vec<Event>,
}

impl Server {
    /// A server whose files define these workflows.
    fn with(isolated: bool, definitions: Vec<Workflow>) -> Server {
        let config = Config { isolated, ..Config::default() };
        let mut server = Server { core: Core::new(config), past: FinishedSlots::default(), events: Vec::new() };
        server.define(definitions);
        server
    }

    fn define(&mut self, definitions: Vec<Workflow>) {
        let projects: BTreeSet<String> = definitions.iter().map(|one| one.project.clone()).collect();
        let how = Deployment { digest: Some("x".to_owned()), update_schedules: true, by: None };
        let deployed: BTreeMap<String, Deployment> =
            projects.into_iter().map(|project| (project, how.clone())).collect();
        let all = definitions.into_iter().map(Arc::new).collect();
        self.take(Input::Definitions { provenance: Provenance::File, all, deployed });
    }

    fn take(&mut self, input: Input) -> Option<Reply> {
        let now = Timestamp::UNIX_EPOCH;
        let mut reply = None;
        for input in [input, Input::Woke { only: None, look_again: false }] {
            let step = self.core.step(now, input, &mut self.past).expect("a step");
            self.events.extend(step.events.into_iter().map(|record| record.event));
            reply = reply.or(step.commands.into_iter().find_map(|command| match command {
                Command::Reply { reply, .. } => Some(reply),
                _ => None,
            }));
        }
        self.past.0.extend(self.core.rows().slots);
        self.core.settle();
        reply
    }

    fn ask(&mut self, warrant: Option<Warrant>, ask: impl Into<Ask>) -> Reply {
        let (by, warrant) = (Actor::person("ann"), warrant.map(Arc::new));
        self.take(Input::Asked { token: 1, by, ask: ask.into(), warrant }).expect("a reply")
    }

    /// What a workflow has collected.
    fn collected(&self, id: &str) -> Vec<&Occurrence> {
        let of = |event: &Event| matches!(event, Event::Slot { slot, .. } if slot.workflow.as_str() == id);
        let all = self.events.iter().filter(|event| of(event));
        all.filter_map(|event| match event {
            Event::Slot { what: SlotEvent::Collected { what, .. }, .. } => Some(what),
            _ => None,
        })
        .collect()
    }

    fn unshared(&self) -> Vec<String> {
        self.core
            .unshared()
            .iter()
            .map(|one| format!("{}: {}", one.workflow.as_ref().expect("a workflow"), one.reference))
            .collect()
    }
}

fn id(text: &str) -> WorkflowId {
    text.parse().expect("an id")
}

fn job(command: &str) -> Job {
    Job::new("command", Map::from_iter([("command".to_owned(), Value::from(command))]))
}

fn workflow(project: &str, name: &str) -> Workflow {
    let one = Workflow::new(id(name), Schedule::Cron(CronSchedule::hourly()), job("true"));
    Workflow { project: project.to_owned(), ..one }
}

fn program(project: &str, name: &str) -> Workflow {
    let keys = Keys::Requests(Box::new(Program { name: name.to_owned(), kind: None }));
    Workflow { project: project.to_owned(), ..Workflow::keyed(id(name), keys, job("true")) }
}

fn schedule(project: &str, name: &str, program: &str, trigger: Trigger) -> Workflow {
    let keys = EventKeys { enabled: true, ..EventKeys::new(name, id(program)) };
    let one = Workflow::keyed(id(name), Keys::Events(Box::new(keys)), job("true"));
    Workflow { project: project.to_owned(), trigger, ..one }
}

fn signal(name: &str) -> Trigger {
    Trigger::Signal { name: name.into() }
}

fn partitions(dataset: &str) -> Trigger {
    Trigger::Partitions { dataset: dataset.into(), count: 1 }
}

fn ended(program: &str) -> Trigger {
    Trigger::Ended { program: id(program), states: vec![SlotState::Succeeded] }
}

/// What beta has: a program, a workflow by the hour, and schedules that wait for a signal, a dataset and the end of the program.
fn beta(shares: Value) -> Vec<Workflow> {
    let shares = Shares::read(shares).expect("shares");
    let all = vec![
        program("beta", "beta-prog"),
        workflow("beta", "beta-load"),
        schedule(
            "beta",
            "beta-waits",
            "beta-prog",
            Trigger::Or { triggers: vec![signal("beta.sig"), partitions("beta.ds")] },
        ),
        schedule("beta", "beta-next", "beta-prog", ended("beta-prog")),
    ];
    all.into_iter().map(|one| Workflow { shares: shares.clone(), ..one }).collect()
}

/// One reference of each kind to what beta has, and its number: a new kind does not compile without.
fn kinds() -> Vec<Reference> {
    fn number(kind: &Reference) -> usize {
        match kind {
            Reference::State(_) => 0,
            Reference::Times(_) => 1,
            Reference::End(_) => 2,
            Reference::Runs(_) => 3,
            Reference::Partitions(_) => 4,
            Reference::Signal(_) => 5,
            Reference::Start(_) => 6,
            Reference::ReportEnd(_) => 7,
            Reference::ReportPartitions(_) => 8,
            Reference::GiveSignal(_) => 9,
            Reference::Registers(_) => 10,
        }
    }
    let all = vec![
        Reference::State(id("beta-load")),
        Reference::Times(id("beta-load")),
        Reference::End(id("beta-prog")),
        Reference::Runs(id("beta-prog")),
        Reference::Partitions("beta.ds".into()),
        Reference::Signal("beta.sig".into()),
        Reference::Start(id("beta-prog")),
        Reference::ReportEnd(id("beta-prog")),
        Reference::ReportPartitions("beta.ds".into()),
        Reference::GiveSignal("beta.sig".into()),
        Reference::Registers("beta.state".into()),
    ];
    assert!(all.iter().map(number).eq(0..11), "each kind once");
    all
}

/// The declaration by which beta allows alpha a reference.
fn consent(kind: &Reference) -> Value {
    let line = kind.allowing_line("alpha");
    match kind {
        Reference::State(_) | Reference::Times(_) | Reference::End(_) => {
            assert_eq!(line, None, "no consent is needed");
            json!({})
        }
        Reference::Runs(_) => json!({"alpha": {"sees": {"runs": ["beta-prog", "beta-load"]}}}),
        Reference::Partitions(_) => json!({"alpha": {"sees": {"datasets": ["beta.ds"]}}}),
        Reference::Signal(_) => json!({"alpha": {"sees": {"signals": ["beta.sig"]}}}),
        Reference::Start(_) => json!({"alpha": {"sends": {"starts": ["beta-prog"]}}}),
        Reference::ReportEnd(_) => json!({"alpha": {"sends": {"ends": ["beta-prog"]}}}),
        Reference::ReportPartitions(_) => json!({"alpha": {"sends": {"datasets": ["beta.ds"]}}}),
        Reference::GiveSignal(_) => json!({"alpha": {"sends": {"signals": ["beta.sig"]}}}),
        Reference::Registers(_) => json!({"alpha": {"sees": {"registers": ["beta.state"]}}}),
    }
}

/// The definitions of alpha that make a reference; none where requests alone or scripts make it.
fn definitions(kind: &Reference) -> Vec<Workflow> {
    let own = program("alpha", "alpha-prog");
    let waits = |trigger| schedule("alpha", "alpha-waits", "alpha-prog", trigger);
    match kind {
        Reference::State(load) => {
            vec![Workflow { trigger: Trigger::Success { workflow: load.clone() }, ..workflow("alpha", "alpha-waits") }]
        }
        Reference::Times(load) => {
            let keys = Keys::Schedule(Schedule::Dependent(load.clone()));
            vec![Workflow { keys, ..workflow("alpha", "alpha-waits") }]
        }
        Reference::End(program) => vec![own, waits(ended(program.as_str()))],
        Reference::Runs(program) => {
            let mut mapped = waits(ended(program.as_str()));
            if let Keys::Events(events) = &mut mapped.keys {
                events.properties.insert(MAPPING.to_owned(), r#"{"target": "source"}"#.to_owned());
            }
            vec![own, mapped]
        }
        Reference::Partitions(dataset) => vec![own, waits(partitions(dataset))],
        Reference::Signal(name) => vec![own, waits(signal(name))],
        Reference::Start(program) => vec![schedule("alpha", "alpha-waits", program.as_str(), signal("alphasig"))],
        Reference::ReportEnd(_) | Reference::ReportPartitions(_) | Reference::GiveSignal(_) => Vec::new(),
        Reference::Registers(_) => Vec::new(),
    }
}

/// The fact whose publication is a reference.
fn fact(kind: &Reference) -> Option<Fact> {
    let arguments = Arguments::from([("target".to_owned(), json!("/EVIL"))]);
    let what = match kind {
        Reference::ReportEnd(program) => Occurrence::Ended {
            program: program.clone(),
            state: SlotState::Succeeded,
            run: None,
            arguments,
            outputs: Map::new(),
        },
        Reference::ReportPartitions(dataset) => {
            Occurrence::Partitions { dataset: dataset.clone(), count: 1, keys: Vec::new() }
        }
        Reference::GiveSignal(name) => Occurrence::Signal { name: name.clone(), payload: json!("x"), run: None },
        Reference::State(_)
        | Reference::Times(_)
        | Reference::End(_)
        | Reference::Runs(_)
        | Reference::Partitions(_)
        | Reference::Signal(_)
        | Reference::Registers(_)
        | Reference::Start(_) => return None,
    };
    Some(Fact { source: "test".into(), key: None, what })
}

fn scope(projects: &[&str]) -> Scope {
    match projects {
        ["*"] => Scope::All,
        some => Scope::Only(some.iter().map(|one| (*one).into()).collect()),
    }
}

/// The rights of roles such as `operate@alpha`.
fn roles(all: &[&str]) -> Warrant {
    let of = |names: &[&str]| {
        let projects: Vec<&str> = all
            .iter()
            .filter_map(|role| role.split_once('@'))
            .filter(|(role, _)| names.contains(role))
            .map(|(_, project)| project)
            .collect();
        scope(&projects)
    };
    Warrant {
        view: of(&["view", "operate", "author"]),
        operate: of(&["operate", "author"]),
        author: of(&["author"]),
        reasons: BTreeSet::new(),
    }
}

#[test]
fn a_fact_needs_the_right_for_the_project_that_it_is_about_or_its_consent() {
    for kind in kinds() {
        let Some(fact) = fact(&kind) else { continue };
        for declared in std::iter::once(json!({})).chain(kinds().iter().map(consent)) {
            let consents = declared == consent(&kind);
            for (who, is_alpha, is_beta) in [
                (&["view@alpha"][..], false, false),
                (&["operate@alpha"], true, false),
                (&["author@alpha"], true, false),
                (&["operate@gamma"], false, false),
                (&["operate@beta"], false, true),
                (&["operate@alpha", "view@beta"], true, false),
                (&["operate@alpha", "operate@beta"], true, true),
                (&["operate@*"], false, true),
            ] {
                let mut server = Server::with(true, beta(declared.clone()));
                let reply = server.ask(Some(roles(who)), Tell::of(vec![fact.clone()]));
                let is_allowed = is_beta || is_alpha && consents;
                assert_eq!(reply.is_ok(), is_allowed, "{kind} by {who:?}, where beta declares {declared}: {reply:?}");
                let reached = server.collected("beta-waits").len() + server.collected("beta-next").len();
                assert_eq!(reached, usize::from(is_allowed), "{kind} by {who:?}");
                if let Err(refusal) = reply {
                    let told = refusal.to_string();
                    assert!(!told.contains("beta") || who.contains(&"view@beta"), "{told}");
                }
            }
        }
    }
}

#[test]
fn a_subject_of_nobody_and_one_of_a_project_that_is_not_seen_are_refused_alike() {
    let operator = || Some(roles(&["operate@alpha"]));
    let mut server = Server::with(true, beta(json!({})));
    let tell = |what: Occurrence| Tell::of(vec![Fact { source: "test".into(), key: None, what }]);
    let given = |name: &str| tell(Occurrence::Signal { name: name.into(), payload: Value::Null, run: None });
    assert_eq!(server.ask(operator(), given("beta.sig")), server.ask(operator(), given("nobodys")));
    // Its own names are alpha's before anything of alpha is defined.
    assert!(server.ask(operator(), given("alpha.go")).is_ok());
    assert!(server.ask(None, given("nobodys")).is_ok(), "Kelos itself and its sources publish anything");
}

#[test]
fn a_plain_name_belongs_to_nobody_whoever_waits_for_it_or_declares_it_first() {
    let shares = Shares::read(json!({"*": {"sees": {"signals": ["plain"]}, "sends": {"signals": ["plain"]}}}));
    let claim = Workflow {
        shares: shares.expect("shares"),
        ..schedule("mallory", "mallory-waits", "mallory-prog", signal("plain"))
    };
    let first = vec![program("mallory", "mallory-prog"), claim];
    let own = schedule("beta", "beta-plain", "beta-prog", signal("plain"));
    let given = || {
        let what = Occurrence::Signal { name: "plain".into(), payload: Value::Null, run: None };
        Tell::of(vec![Fact { source: "test".into(), key: None, what }])
    };
    let mut server = Server::with(true, [first, beta(json!({}))].concat());
    // Beta can still wait for it.
    let new = CreateSchedules { new: vec![Arc::new(own)], reason: None };
    server.ask(Some(roles(&["author@beta"])), new).expect("created");
    assert_eq!(server.unshared(), [""; 0]);
    for who in ["operate@mallory", "author@mallory", "operate@beta", "author@beta", "view@*"] {
        let refused = server.ask(Some(roles(&[who])), given());
        assert_eq!(refused, Err(Refusal::NotAllowed { right: "operate", project: None }), "{who}");
    }
    server.ask(Some(roles(&["operate@*"])), given()).expect("published");
    assert_eq!((server.collected("mallory-waits").len(), server.collected("beta-plain").len()), (1, 1));
}

#[test]
fn a_definition_lies_dormant_until_the_other_project_consents_and_then_goes_on() {
    for kind in kinds() {
        let alpha = definitions(&kind);
        if alpha.is_empty() {
            continue;
        }
        let with = |declared: &Value| beta(declared.clone()).into_iter().chain(alpha.clone()).collect::<Vec<_>>();
        let is_free = kind.allowing_line("alpha").is_none();
        let mut server = Server::with(true, with(&json!({})));
        let expected = if is_free { Vec::new() } else { vec![format!("alpha-waits: {kind}")] };
        assert_eq!(server.unshared(), expected, "{kind}");
        for other in kinds().iter().filter(|other| consent(other) != consent(&kind)) {
            server.define(with(&consent(other)));
            assert_eq!(server.unshared(), expected, "{kind}, where beta allows {other}");
        }
        server.define(with(&consent(&kind)));
        assert_eq!(server.unshared(), [""; 0], "{kind}");
        server.define(with(&json!({})));
        assert_eq!(server.unshared(), expected, "{kind}, after the consent was taken back");
        assert_eq!(Server::with(false, with(&json!({}))).unshared(), [""; 0], "{kind} on a server without --auth");
    }
}

#[test]
fn a_schedule_is_refused_by_whoever_it_is_created_until_the_other_project_consents() {
    for kind in kinds() {
        let Some(new) = definitions(&kind).into_iter().find(|one| one.keys.events().is_some()) else { continue };
        let new = || CreateSchedules { new: vec![Arc::new(new.clone())], reason: None };
        for (who, may) in [
            (&["view@alpha"][..], false),
            (&["operate@alpha"], false),
            (&["author@beta"], false),
            (&["author@alpha"], true),
            (&["author@*"], true),
        ] {
            for declared in std::iter::once(json!({})).chain(kinds().iter().map(consent)) {
                let consents = kind.allowing_line("alpha").is_none() || declared == consent(&kind);
                let mut server =
                    Server::with(true, [beta(declared.clone()), vec![program("alpha", "alpha-prog")]].concat());
                let reply = server.ask(Some(roles(who)), new());
                assert_eq!(
                    reply.is_ok(),
                    may && consents,
                    "{kind} by {who:?}, where beta declares {declared}: {reply:?}"
                );
                if may && !consents && !matches!(kind, Reference::Start(_)) {
                    assert!(matches!(reply, Err(Refusal::NotShared(_))), "{reply:?}");
                }
            }
        }
        let mut open = Server::with(false, [beta(json!({})), vec![program("alpha", "alpha-prog")]].concat());
        assert!(open.ask(None, new()).is_ok(), "{kind} on a server without --auth");
    }
}

#[test]
fn a_program_of_a_project_that_is_not_seen_does_not_exist() {
    let new = |program: &str| {
        let one = schedule("alpha", "alpha-runs", program, signal("alphasig"));
        CreateSchedules { new: vec![Arc::new(one)], reason: None }
    };
    let mut server = Server::with(true, beta(json!({})));
    let author = || Some(roles(&["author@alpha"]));
    let [hidden, none] = ["beta-prog", "ghost"].map(|program| server.ask(author(), new(program)).expect_err("refused"));
    assert_eq!(hidden.to_string(), none.to_string().replace("ghost", "beta-prog"));
}

#[test]
fn the_end_of_a_run_comes_without_its_arguments_and_outputs_where_these_are_not_shared() {
    for (declared, shared) in [(json!({}), false), (json!({"*": {"sees": {"runs": ["beta-prog"]}}}), true)] {
        let alpha =
            vec![program("alpha", "alpha-prog"), schedule("alpha", "alpha-waits", "alpha-prog", ended("beta-prog"))];
        let mut server = Server::with(true, [beta(declared), alpha].concat());
        let fact = fact(&Reference::ReportEnd(id("beta-prog"))).expect("a fact");
        server.ask(Some(roles(&["operate@beta"])), Tell::of(vec![fact])).expect("published");
        let arguments = |id: &str| match server.collected(id).as_slice() {
            [Occurrence::Ended { arguments, .. }] => arguments.len(),
            other => panic!("{id} collected {other:?}"),
        };
        assert_eq!((arguments("beta-next"), arguments("alpha-waits")), (1, usize::from(shared)));
    }
}

#[test]
fn a_rerun_downstream_is_refused_in_the_turn_where_it_reaches_another_project() {
    let start = Timestamp::UNIX_EPOCH;
    let after =
        Workflow { trigger: Trigger::Success { workflow: id("alpha-load") }, ..workflow("beta", "beta-report") };
    let mut server = Server::with(true, vec![workflow("alpha", "alpha-load"), after]);
    let slot = |name: &str| SlotRef::at(id(name), start);
    let mark = |name: &str| kelos_core::MarkSuccess { slot: slot(name), reason: None };
    server.ask(None, mark("alpha-load")).expect("marked");
    server.ask(None, mark("beta-report")).expect("marked");
    for dry_run in [true, false] {
        let request = || DownstreamRequest {
            slot: slot("alpha-load"),
            arguments: Arguments::new(),
            reason: None,
            kill_live: true,
            dry_run,
        };
        let refused = server.ask(Some(roles(&["operate@alpha", "view@beta"])), request());
        assert_eq!(refused, Err(Refusal::NotAllowed { right: "operate", project: None }));
        let allowed = server.ask(Some(roles(&["operate@alpha", "operate@beta"])), request());
        assert!(matches!(allowed, Ok(AnyAnswer::Downstream(_))), "{allowed:?}");
    }
}

#[test]
fn a_bucket_belongs_to_the_longest_project_whose_name_it_begins_with() {
    let definitions = || vec![workflow("alpha", "a"), workflow("alpha.secret", "s")];
    let set = |bucket: &str| SetRegister {
        bucket: bucket.to_owned(),
        key: "k".to_owned(),
        value: Some(json!(1)),
        reason: None,
    };
    let mut server = Server::with(true, definitions());
    for (bucket, alpha, secret) in [
        ("alpha", true, false),
        ("alpha.state", true, false),
        ("alpha/state", true, false),
        ("alpha.secret", false, true),
        ("alpha.secret.x", false, true),
        ("alpha.secrets", true, false),
        ("alphabet", false, false),
        ("kelos.access", false, false),
    ] {
        for (who, is_allowed) in [("operate@alpha", alpha), ("operate@alpha.secret", secret), ("view@alpha", false)] {
            let reply = server.ask(Some(roles(&[who])), set(bucket));
            assert_eq!(reply.is_ok(), is_allowed, "{bucket} by {who}: {reply:?}");
        }
    }
}

#[test]
fn a_request_for_a_workflow_that_is_not_seen_is_answered_as_if_there_were_none() {
    let mut server = Server::with(true, beta(json!({})));
    let fire = |workflow: &str| FireRequest {
        workflow: id(workflow),
        arguments: Arguments::new(),
        key: None,
        priority: 0,
        unconstrained: false,
        reason: None,
    };
    for name in ["beta-prog", "ghost"] {
        let reply = server.ask(Some(roles(&["operate@alpha"])), fire(name));
        assert_eq!(reply, Err(Refusal::NoWorkflow(id(name))));
    }
    let seen = server.ask(Some(roles(&["operate@alpha", "view@beta"])), fire("beta-prog"));
    assert_eq!(seen, Err(Refusal::NotAllowed { right: "operate", project: Some("beta".to_owned()) }));
    let mut strict = roles(&["operate@beta"]);
    strict.reasons = BTreeSet::from(["beta".into()]);
    let reply = server.ask(Some(strict), fire("beta-prog"));
    assert_eq!(reply, Err(Refusal::ReasonMissing { project: "beta".to_owned() }));
}
