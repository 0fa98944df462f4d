//! Reasons as logs have them: every finding reads back and has its words, of this version, of before and of a newer one; and
//! what is hashed of them stays the same number.

#![allow(clippy::disallowed_methods, reason = "the tests read files; the model does not")]

use std::collections::BTreeSet;
use std::fmt::Write as _;

use jiff::Timestamp;
use kelos_model::jobs::Flaw;
use kelos_model::probe::Verdict;
use kelos_model::reason::{Evidence, words};
use kelos_model::time::Window;
use kelos_model::time::Zone;
use kelos_model::{
    Answer, Collection, Finding, Occurrence, Probe, ProbeAnswer, Reason, ReasonKind, SlotEvent, SlotRef, SlotState,
    WorkflowId,
};
use serde_json::{Value, json};

use crate::support::expect;

/// Events as they were stored, one a line. Lines are added, never changed: databases have them.
const EVENTS: &str = include_str!("reasons/events.jsonl");

fn reasons() -> Vec<(&'static str, Reason)> {
    let read = |line: &'static str| match serde_json::from_str(line) {
        Ok(SlotEvent::Looked { explanation }) => (line, explanation),
        other => panic!("{line} reads as {other:?}"),
    };
    EVENTS.lines().map(read).collect()
}

fn nodes(reason: &Reason) -> Vec<&Reason> {
    [reason].into_iter().chain(reason.nested.iter().flat_map(nodes)).collect()
}

/// The codes in a finding that this version knows.
fn codes(finding: &Finding) -> Vec<&str> {
    match finding {
        Finding::Unknown(_) => Vec::new(),
        Finding::Text { about: Some(about), .. } => [finding.code()].into_iter().chain(codes(about)).collect(),
        _ => vec![finding.code()],
    }
}

fn draw(reason: &Reason, depth: usize, out: &mut String) {
    let indent = "  ".repeat(depth);
    let (kind, code, text) = (reason.kind.as_str(), reason.finding.code(), words::text(reason));
    writeln!(out, "{indent}{kind} {code}: {text}").unwrap();
    if let Some(evidence) = reason.evidence() {
        writeln!(out, "{indent}  by {}", told(evidence)).unwrap();
    }
    reason.nested.iter().for_each(|nested| draw(nested, depth + 1, out));
}

fn told(evidence: Evidence<'_>) -> String {
    match evidence {
        Evidence::Clock { now, until } => format!("the clock, {now}, and {until}"),
        Evidence::Slot { slot, state } => {
            format!("{} that is {}", slot.short(), state.map_or("not there", SlotState::as_str))
        }
        Evidence::Probe { probe, verdict, detail, looked_at } => {
            format!("{probe}: {verdict:?} \"{detail}\" at {looked_at}")
        }
        Evidence::Asked => "nothing yet".to_owned(),
    }
}

#[test]
fn every_stored_finding_has_its_words() {
    let mut drawn = String::new();
    for (_, reason) in reasons() {
        draw(&reason, 0, &mut drawn);
        for blocker in words::blockers(&reason) {
            writeln!(drawn, "  = {blocker}").unwrap();
        }
    }
    expect("reasons.txt", &drawn);
}

/// Another number would have every slot that waits so write an event after an upgrade.
#[test]
fn the_digest_of_a_reason_is_the_same_for_ever() {
    let mut drawn = String::new();
    for (_, reason) in reasons() {
        writeln!(drawn, "{:08x} {} {}", reason.digest(), reason.kind.as_str(), reason.finding.code()).unwrap();
    }
    expect("digests.txt", &drawn);
}

#[test]
fn every_finding_is_in_the_file() {
    let reasons = reasons();
    let findings = reasons.iter().flat_map(|(_, reason)| nodes(reason)).flat_map(|node| codes(&node.finding));
    let found: BTreeSet<&str> = findings.collect();
    let missing: Vec<_> = Finding::CODES.iter().filter(|code| !found.contains(**code)).collect();
    assert_eq!(missing, [&""; 0], "add an event with each of them to tests/reasons/events.jsonl");
    let nodes = reasons.iter().flat_map(|(_, reason)| nodes(reason));
    let flaws: BTreeSet<String> =
        nodes.filter_map(|node| flaw(&node.finding)).map(|flaw| flaw.code().to_owned()).collect();
    let missing: Vec<_> = Flaw::CODES.iter().filter(|code| !flaws.contains(**code)).collect();
    assert_eq!(missing, [&""; 0], "add an event with each of them to tests/reasons/events.jsonl");
    let nameless = serde_json::from_value::<Reason>(json!({"kind": "and", "answer": "met", "finding": {}}));
    assert!(nameless.is_err(), "a finding has a code");
}

fn flaw(finding: &Finding) -> Option<&Flaw> {
    if let Finding::ParentsUnnamed { why, .. } = finding { Some(why) } else { None }
}

#[test]
fn every_flaw_is_documented() {
    let listed = include_str!("../../../docs/codes.md");
    let missing: Vec<_> = Flaw::CODES.iter().filter(|code| !listed.contains(&format!("| `{code}` |"))).collect();
    assert!(missing.is_empty(), "docs/codes.md does not name {missing:?}");
}

#[test]
fn what_this_version_writes_it_writes_back_unchanged() {
    for (line, reason) in reasons() {
        let before: Value = serde_json::from_str(line).unwrap();
        let after = serde_json::to_value(SlotEvent::Looked { explanation: reason }).unwrap();
        if before["explanation"]["finding"].is_object() {
            assert_eq!(after, before);
        }
    }
}

#[test]
fn what_a_newer_version_adds_to_a_finding_is_kept() {
    let newer = json!({"kind": "window", "answer": "not-yet", "finding": {"code": "window-closed", "doors": 2}});
    let reason: Reason = serde_json::from_value(newer.clone()).unwrap();
    assert_eq!(words::text(&reason), "window closed: doors 2");
    assert_eq!(serde_json::to_value(&reason).unwrap(), newer);
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn program() -> WorkflowId {
    WorkflowId::new("p").unwrap()
}

/// Pairs that differ in nothing but what was counted, seen or said by others, or in when that was.
#[test]
fn what_was_counted_or_said_by_others_is_in_no_digest() {
    let (early, late) = (at("2026-01-01T12:00:00Z"), at("2026-01-01T13:00:00Z"));
    let window = || Window::new("22:00", "06:00", Zone::utc()).unwrap();
    let answered = |detail: &str, looked_at| Finding::ProbeAnswered {
        probe: Probe::path("/in"),
        verdict: Verdict::No,
        detail: detail.to_owned(),
        looked_at,
    };
    let is = |state| Finding::UpstreamIs { slot: SlotRef::at(program(), early), state };
    let pairs = [
        (answered("1 of 3 files are there", early), answered("2 of 3 files are there", late)),
        (
            Finding::PartitionsCounted { dataset: "ds".into(), have: 1, want: 4 },
            Finding::PartitionsCounted { dataset: "ds".into(), have: 3, want: 4 },
        ),
        (
            Finding::RunsCounted { program: program(), active: 2, limit: 2 },
            Finding::RunsCounted { program: program(), active: 3, limit: 2 },
        ),
        (
            Finding::WindowClosed { window: window(), now: early, opens_at: Some(early) },
            Finding::WindowClosed { window: window(), now: late, opens_at: None },
        ),
        (Finding::DelayUntil { now: early, until: late }, Finding::DelayUntil { now: late, until: late }),
        (
            Finding::ParentsUnknown { message: "it threw".to_owned() },
            Finding::ParentsUnknown { message: "it timed out".to_owned() },
        ),
        (
            Finding::ParentGroup { group: None, parents: 2, blocked: false },
            Finding::ParentGroup { group: None, parents: 3, blocked: false },
        ),
        (is(SlotState::Waiting), is(SlotState::Running)),
    ];
    let digest = |finding| Reason::leaf(ReasonKind::Always, Answer::NotYet, finding).digest();
    for (one, other) in pairs {
        assert_eq!(digest(one.clone()), digest(other), "{}", one.code());
    }
    assert_ne!(digest(is(SlotState::Running)), digest(is(SlotState::Failed)));
}

#[test]
fn where_a_tree_nests_is_in_its_digest() {
    let leaf = || Reason::leaf(ReasonKind::Always, Answer::Met, Finding::Always);
    let and = |nested| Reason { kind: ReasonKind::And, answer: Answer::Met, finding: Finding::AllOf, nested };
    let (one, other) = (and(vec![and(vec![leaf()]), leaf()]), and(vec![and(vec![leaf(), leaf()])]));
    assert_ne!(one.digest(), other.digest());
}

#[test]
fn counts_openings_and_details_are_brought_up_to_date() {
    let window = Window::new("22:00", "06:00", Zone::utc()).unwrap();
    let looked_at = at("2026-01-01T12:00:00Z");
    let detail = "1 of 3 files are there".to_owned();
    let probe = Probe::path("file:///in");
    let nested = vec![
        Finding::PartitionsCounted { dataset: "ds".into(), have: 1, want: 4 },
        Finding::WindowClosed { window, now: looked_at, opens_at: Some(at("2026-01-01T22:00:00Z")) },
        Finding::ProbeAnswered { probe: probe.clone(), verdict: Verdict::No, detail, looked_at },
    ];
    let nested = nested.into_iter().map(|finding| Reason::leaf(ReasonKind::LocalPath, Answer::NotYet, finding));
    let found =
        Reason { kind: ReasonKind::And, answer: Answer::NotYet, finding: Finding::AllOf, nested: nested.collect() };
    let mut collected = Collection::new(looked_at);
    collected.add(&Occurrence::Partitions { dataset: "ds".into(), count: 3, keys: Vec::new() });
    let now = at("2026-01-02T08:00:00Z");
    let answer = ProbeAnswer { verdict: Verdict::No, detail: "2 of 3 files are there".to_owned(), at: now };
    let present = found.clone().as_of(now, Some(&collected)).with_answers(&[(probe, answer)]);
    let expected = [
        "3 of 4 partitions of ds",
        "The window 22:00-06:00 UTC is closed, and opens at 2026-01-02T22:00Z",
        "File /in is not ready: 2 of 3 files are there",
    ];
    assert_eq!(words::blockers(&present), expected);
    assert_eq!(present.digest(), found.digest());
    // The same answer again: only the moment is another.
    let (Some(last), later) = (present.nested.last().and_then(Reason::evidence), at("2026-01-02T09:00:00Z")) else {
        panic!("the path is the last leaf");
    };
    let Evidence::Probe { probe, verdict, detail, looked_at } = last else { panic!("it was looked at") };
    assert_eq!(looked_at, now);
    let answer = ProbeAnswer { verdict, detail: detail.to_owned(), at: later };
    let again = present.clone().with_answers(&[(probe.clone(), answer)]);
    assert_eq!(words::blockers(&again), expected);
    assert_ne!(again, present);
}
