//! Refusals: each has a stable code and a text.

#![allow(clippy::disallowed_methods, reason = "the tests read files; the core does not")]

use std::collections::BTreeSet;
use std::{env, fs};

use jiff::Timestamp;
use kelos_core::Refusal;
use kelos_model::references::MissingConsent;
use kelos_model::sharing::Reference;
use kelos_model::workflow::{DefinitionVersion, ProjectVersion, VersionChoice};
use kelos_model::{BackfillId, Breach, Invariant, SlotRef, SlotState, WorkflowId};

/// One refusal of each kind.
fn all() -> Vec<Refusal> {
    let workflow = || WorkflowId::new("w").unwrap();
    let program = || WorkflowId::new("p").unwrap();
    let slot = || SlotRef::at(workflow(), Timestamp::UNIX_EPOCH);
    let job = || SlotRef::job(workflow(), "a_1".into());
    let backfill = || BackfillId::new("b").unwrap();
    let version = |text: &str| text.parse::<VersionChoice>().unwrap();
    let project = |n: u32| (n > 1).then(|| ProjectVersion::new(&format!("1.{n}")).unwrap());
    let one = |number| DefinitionVersion { number, project: project(number) };
    let defined = |count| (1..=count).map(one).collect();
    vec![
        Refusal::NoWorkflow(workflow()),
        Refusal::NeverOpened(job()),
        Refusal::NoEventSchedule(workflow()),
        Refusal::NotStartable(workflow()),
        Refusal::ScheduleTaken(workflow()),
        Refusal::ProjectOfFile { project: "reports".to_owned(), file: "reports.js".to_owned() },
        Refusal::NameOfProject { workflow: workflow(), project: "reports".to_owned() },
        Refusal::NoProgram { schedule: workflow(), program: program() },
        Refusal::AlreadyEnabled(workflow()),
        Refusal::AlreadyDisabled(workflow()),
        Refusal::ArgumentsTooLarge { bytes: 70_000 },
        Refusal::Unreadable { what: "the definition of w".to_owned(), why: "a field is missing".to_owned() },
        Refusal::TooDeep("the value is nested 65 levels deep, expected at most 64".to_owned()),
        Refusal::ArgumentsMismatched {
            workflow: workflow(),
            mistakes: vec!["n is missing, expected a number such as 2.5".to_owned(), "x is no parameter".to_owned()],
        },
        Refusal::NotPausable(workflow()),
        Refusal::NeverCameToBe(slot()),
        Refusal::NotInSchedule(slot()),
        Refusal::NoJobId(job(), "1 is no letter".to_owned()),
        Refusal::NoSchedule(workflow(), "it goes round".to_owned()),
        Refusal::StillLive(slot(), SlotState::Running),
        Refusal::AlreadyFinal(slot(), SlotState::Succeeded),
        Refusal::NotSkippable(slot(), SlotState::Succeeded),
        Refusal::AlreadySucceeded(slot()),
        Refusal::RunAlive(slot(), 2),
        Refusal::DownstreamLive(slot(), SlotState::Running, 1),
        Refusal::DownstreamLive(slot(), SlotState::Running, 3),
        Refusal::TooManyDownstream { limit: 10 },
        Refusal::NameTaken(backfill()),
        Refusal::NoBackfill(backfill()),
        Refusal::BackfillCancelled(backfill()),
        Refusal::BackfillOver(backfill()),
        Refusal::NoVersion { workflow: workflow(), version: version("1.5"), known: defined(0) },
        Refusal::NoVersion { workflow: workflow(), version: version("1.5"), known: defined(1) },
        Refusal::NoVersion { workflow: workflow(), version: version("#4"), known: defined(3) },
        Refusal::NoVersion { workflow: workflow(), version: version("1.5"), known: defined(20) },
    ]
    .into_iter()
    .chain(of_callers())
    .chain(of_steps())
    .collect()
}

/// Those of callers and of the scheduler itself.
fn of_callers() -> Vec<Refusal> {
    let workflow = || WorkflowId::new("w").unwrap();
    let slot = SlotRef::at(workflow(), Timestamp::UNIX_EPOCH);
    vec![
        Refusal::NotAllowed { right: "operate", project: Some("reports".to_owned()) },
        Refusal::NotAllowed { right: "operate", project: None },
        Refusal::ReasonMissing { project: "reports".to_owned() },
        Refusal::Masked { name: "properties.token".to_owned() },
        Refusal::NotShared(Box::new(MissingConsent {
            workflow: Some(workflow()),
            project: "reports".into(),
            reference: Reference::Signal("refresh".into()),
        })),
        Refusal::Broken(Breach::of_slot(Invariant::EventFits, &slot)),
        Refusal::TooMany { slots: 11, limit: 10 },
    ]
}

/// Those of steps that are done again.
fn of_steps() -> Vec<Refusal> {
    let job = || SlotRef::job(WorkflowId::new("w").unwrap(), "a_1".into());
    let step = |text: &str| text.parse::<SlotRef>().unwrap();
    vec![
        Refusal::StepOfLiveRun(job(), SlotState::Running),
        Refusal::NeverRan(step("w@.order-42.load")),
        Refusal::NeverRan(step("w@.order-42.load:7")),
        Refusal::OnlyWaits(step("w@.order-42.ok"), "approval".to_owned()),
        Refusal::RunNameTaken(step("w@.again-1"), step("w@.order-42.load")),
        Refusal::InputsMismatched {
            step: step("w@.order-42.load"),
            mistakes: vec!["rows is \"x\", expected a number such as 2.5".to_owned()],
        },
    ]
}

#[test]
fn every_refusal_has_its_code_and_its_words() {
    let told: String = all().iter().map(|refusal| format!("{}: {refusal}\n", refusal.code())).collect();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/refusals.txt");
    if env::var_os("KELOS_BLESS").is_some() {
        fs::write(path, &told).unwrap();
    }
    let expected = fs::read_to_string(path).unwrap_or_default();
    assert!(expected == told, "{path} differs from what came out:\n{told}");
}

#[test]
fn every_code_is_documented() {
    let listed = include_str!("../../../docs/codes.md");
    let codes: BTreeSet<&str> = all().iter().map(Refusal::code).collect();
    let missing: Vec<_> = codes.into_iter().filter(|code| !listed.contains(&format!("| `{code}` |"))).collect();
    assert!(missing.is_empty(), "docs/codes.md does not name {missing:?}");
}

#[test]
fn every_invariant_is_documented() {
    let listed = include_str!("../../../docs/codes.md");
    let codes = Invariant::ALL.into_iter().map(Invariant::code);
    let missing: Vec<_> = codes.filter(|code| !listed.contains(&format!("| `{code}` |"))).collect();
    assert!(missing.is_empty(), "docs/codes.md does not name {missing:?}");
}
