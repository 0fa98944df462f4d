//! The reason why a job waits for its parents.

use kelos_model::reason::Blockage;
use kelos_model::{Answer, Finding, Reason, ReasonKind, SlotRef};

use super::awaited::{AwaitedGroup, Dependencies, ParentStatus};

/// The most parents of a group that a reason names.
const NAMED: usize = 5;

/// The reason why a job waits. It leaves out how many parents of a group have succeeded: otherwise each change of a
/// parent would be another event in the log.
pub(super) fn explained(awaited: &Dependencies) -> Reason {
    let groups = awaited.groups();
    let is_met = awaited.is_met();
    let finding = match (is_met, awaited.way()) {
        (true, _) if groups.is_empty() => Finding::NoParents,
        (true, _) => Finding::ParentsSucceeded,
        (false, Some(way)) => {
            // The name of a single group adds nothing.
            let group = groups.get(way).filter(|_| groups.len() > 1);
            Finding::ParentsAwaited { group: group.map(|group| group.name.clone()) }
        }
        (false, None) => Finding::ParentsBlocked { by: blockage(groups) },
    };
    Reason {
        kind: ReasonKind::Parents,
        answer: answer_of(is_met),
        finding,
        nested: groups.iter().enumerate().map(|(at, group)| explained_group(awaited, at, group)).collect(),
    }
}

/// The reason why no group can be met.
fn blockage(groups: &[AwaitedGroup]) -> Blockage {
    let is_hopeless = |group: &AwaitedGroup| !group.unwritable.is_empty();
    if groups.iter().all(is_hopeless) {
        Blockage::Unnamed
    } else if groups.iter().any(is_hopeless) {
        Blockage::EndedOrUnnamed
    } else {
        Blockage::Ended
    }
}

fn explained_group(awaited: &Dependencies, at: usize, group: &AwaitedGroup) -> Reason {
    let has_others = awaited.groups().len() > 1;
    let finding = Finding::ParentGroup {
        group: has_others.then(|| group.name.clone()),
        parents: group.total as u64,
        blocked: has_others && group.dead > 0,
    };
    // Parents that block it come first.
    let rank = |standing: ParentStatus| match standing {
        ParentStatus::Dead(_) => 0,
        ParentStatus::Absent | ParentStatus::Unknown => 1,
        ParentStatus::Live(_) => 2,
        ParentStatus::Done => 3,
    };
    let mut named: Vec<_> = awaited.of_group(at).filter(|(_, standing)| *standing != ParentStatus::Done).collect();
    named.sort_by_key(|(_, standing)| rank(*standing));
    let leaf = |finding| Reason::leaf(ReasonKind::Job, Answer::NotYet, finding);
    let nested = named.into_iter().take(NAMED).map(|(slot, standing)| leaf(parent(slot, standing)));
    let unwritable = group.unwritable.iter().take(NAMED).map(|one| leaf(Finding::from(one)));
    Reason {
        kind: ReasonKind::Group,
        answer: answer_of(group.missing == 0),
        finding,
        nested: unwritable.chain(nested).collect(),
    }
}

fn answer_of(is_met: bool) -> Answer {
    if is_met { Answer::Met } else { Answer::NotYet }
}

fn parent(slot: &SlotRef, standing: ParentStatus) -> Finding {
    let slot = slot.clone();
    match (standing, standing.state()) {
        (_, Some(state)) => Finding::ParentIs { slot, state, paused: false },
        (ParentStatus::Absent, None) => Finding::ParentMissing { slot },
        (_, None) => Finding::ParentAsked { slot },
    }
}
