//! What a job waits for, in words.

use kelos_model::Answer;
use kelos_model::SlotRef;
use kelos_model::trigger::{Evidence, Explanation, TriggerKind};

use crate::awaited::{Awaited, AwaitedGroup, Standing};

/// Parents of a group that an explanation names; of the others there is a number.
const NAMED: usize = 5;

/// What a job waits for, in words. Counts are left out where they would make each step of a parent a new line of the log.
pub(crate) fn explained(awaited: &Awaited) -> Explanation {
    let groups = awaited.groups();
    let is_met = awaited.is_met();
    let text = match (is_met, awaited.way()) {
        (true, _) if groups.is_empty() => "it has no parents".to_owned(),
        (true, _) => "its parents have succeeded".to_owned(),
        (false, Some(way)) => format!("it waits for its parents{}", by_way(groups, way)),
        (false, None) => format!("it is blocked: {}", blocked(groups)),
    };
    Explanation {
        kind: TriggerKind::Parents,
        answer: if is_met { Answer::Met } else { Answer::NotYet },
        text,
        evidence: None,
        nested: groups.iter().enumerate().map(|(at, group)| explained_group(awaited, at, group)).collect(),
    }
}

/// Why no group can be met.
fn blocked(groups: &[AwaitedGroup]) -> &'static str {
    let is_hopeless = |group: &AwaitedGroup| !group.unwritable.is_empty();
    if groups.iter().all(is_hopeless) {
        "it waits for jobs that can't be named"
    } else if groups.iter().any(is_hopeless) {
        "parents ended without success, or can't be named"
    } else {
        "parents ended without success"
    }
}

/// Which of several groups is meant.
fn by_way(groups: &[AwaitedGroup], way: usize) -> String {
    match groups.get(way) {
        Some(group) if groups.len() > 1 => format!(" of group {}", group.name),
        _ => String::new(),
    }
}

fn explained_group(awaited: &Awaited, at: usize, group: &AwaitedGroup) -> Explanation {
    let is_met = group.missing == 0;
    let parents = if group.total == 1 { "1 parent".to_owned() } else { format!("{} parents", group.total) };
    let succeeded = if is_met { "succeeded" } else { "must succeed" };
    // The name of the only group says nothing.
    let text = match (awaited.groups().len(), group.dead) {
        (0 | 1, _) => format!("{parents} {succeeded}"),
        (_, 0) => format!("group {}: {parents} {succeeded}", group.name),
        (_, _) => format!("group {} is blocked: {parents} {succeeded}", group.name),
    };
    // Who blocks it comes first.
    let rank = |standing: Standing| match standing {
        Standing::Dead(_) => 0,
        Standing::Absent | Standing::Unknown => 1,
        Standing::Live(_) => 2,
        Standing::Done => 3,
    };
    let mut named: Vec<_> = awaited.of_group(at).filter(|(_, standing)| *standing != Standing::Done).collect();
    named.sort_by_key(|(_, standing)| rank(*standing));
    let nested = named.into_iter().take(NAMED).map(|(slot, standing)| Explanation {
        kind: TriggerKind::Job,
        answer: Answer::NotYet,
        text: told(slot, standing),
        evidence: Some(Evidence::Slot { slot: slot.clone(), state: standing.state() }),
        nested: Vec::new(),
    });
    let unwritable = group.unwritable.iter().take(NAMED).map(|one| Explanation {
        kind: TriggerKind::Job,
        answer: Answer::NotYet,
        text: format!("it waits for {one}"),
        evidence: None,
        nested: Vec::new(),
    });
    Explanation {
        kind: TriggerKind::Group,
        answer: if is_met { Answer::Met } else { Answer::NotYet },
        text,
        evidence: None,
        nested: unwritable.chain(nested).collect(),
    }
}

fn told(slot: &SlotRef, standing: Standing) -> String {
    match standing {
        Standing::Dead(state) => format!("{} {state}", slot.short()),
        Standing::Absent => format!("{} was never opened", slot.short()),
        _ => format!("{} has not succeeded yet", slot.short()),
    }
}
