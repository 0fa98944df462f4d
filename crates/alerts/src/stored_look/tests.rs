use jiff::SignedDuration;
use kelos_explain::expectation::{Expectation, RunTimes};
use kelos_model::{BackfillId, RunId};
use kelos_store::{MemoryStore, StoredState};

use super::*;

struct Shop;

impl Directory for Shop {
    fn about(&self, workflow: &WorkflowId) -> About {
        About { workflow: Some(workflow.clone()), project: Some("shop".to_owned()), tags: Vec::new() }
    }

    fn is_defined(&self, _: &WorkflowId) -> bool {
        true
    }

    fn workflow_of(&self, _: &BackfillId) -> Option<WorkflowId> {
        None
    }

    fn worker_of(&self, _: &RunId) -> Option<String> {
        None
    }
}

fn at(hour: i64) -> Timestamp {
    Timestamp::from_second(hour * 3600).unwrap()
}

fn slot(id: &str, hour: i64) -> SlotRef {
    SlotRef::at(id.parse().unwrap(), at(hour))
}

fn stuck(id: &str, kind: Kind, root: Option<(&str, ObstacleKind)>) -> Stuck {
    let root = root.map(|(id, kind)| Root {
        slot: slot(id, 1),
        state: None,
        kind,
        way: Vec::new(),
        left_out: 0,
        cause: String::new(),
        path: None,
        run: None,
        alike: 0,
    });
    Stuck {
        slot: slot(id, 1),
        kind,
        state: None,
        since: at(1),
        usual: None,
        beyond: SignedDuration::ZERO,
        reason: "it waits".to_owned(),
        next: None,
        others: 2,
        followers: 0,
        root,
    }
}

#[test]
fn slots_that_one_slot_makes_late_are_one_trouble() {
    let takes = RunTimes { median: SignedDuration::from_mins(40), high: SignedDuration::from_mins(50), runs: 12 };
    let late = |id: &str, decides: &str| {
        let expected = Expectation { end: at(7), latest: at(8), decided_by: slot(decides, 1), takes };
        LateAhead { slot: slot(id, 1), deadline: at(6), expected }
    };
    let troubles = will_be_late(vec![late("report", "load"), late("sums", "sums"), late("chart", "load")], &Shop);
    let told: Vec<_> = troubles.iter().map(|one| (one.cause.as_str(), one.members.len())).collect();
    assert_eq!(told, [("load@1970-01-01T01:00Z", 2), ("sums@1970-01-01T01:00Z", 1)]);
    assert_eq!(
        troubles[0].words,
        "report@1970-01-01T01:00Z will be late: expected 1970-01-01T07:00Z, deadline 1970-01-01T06:00Z; \
         decided by load@1970-01-01T01:00Z, which takes 40 min as a rule (12 runs)"
    );
    assert_eq!(troubles[0].members[0].1.project.as_deref(), Some("shop"));
}

#[test]
fn stuck_slots_are_told_by_what_holds_them_and_once() {
    let store = MemoryStore::new();
    let look = StoredLook { reader: &*store.reader(), wanted: &BTreeSet::new(), now: at(9) };
    let cause = |kind, root| look.cause(&stuck("report", kind, root), &BTreeSet::new()).unwrap();
    assert_eq!(cause(Kind::Long, None).as_deref(), Some("report@1970-01-01T01:00Z"));
    assert_eq!(
        cause(Kind::Late, Some(("load", ObstacleKind::UnderWay))).as_deref(),
        Some("load@1970-01-01T01:00Z"),
        "the same as that of its long run"
    );
    assert_eq!(cause(Kind::Late, Some(("load", ObstacleKind::Queued))).as_deref(), Some("the queue of load"));
    assert_eq!(cause(Kind::Late, Some(("load", ObstacleKind::Backoff))).as_deref(), Some("retries of load"));
    assert_eq!(cause(Kind::Backoff, None).as_deref(), Some("retries of report"));
    for told in [ObstacleKind::Failed, ObstacleKind::Expired, ObstacleKind::Paused, ObstacleKind::Frozen] {
        assert_eq!(cause(Kind::Late, Some(("load", told))), None, "{told:?} is told by another condition");
    }
    let told = |kind| is_untold(&stuck("w", kind, None));
    assert!(told(Kind::Late) && told(Kind::Expiring) && told(Kind::Long));
    assert!(!told(Kind::Backoff), "a retry in time is no trouble");
    assert!(![Kind::Overdue, Kind::Failed, Kind::Paused, Kind::Frozen].into_iter().any(told));
}

#[test]
fn the_trouble_of_one_cause_counts_all_slots() {
    let rows = [stuck("load", Kind::Long, None), stuck("report", Kind::Late, None)];
    let trouble = of_stuck("load".to_owned(), &rows, &Shop);
    assert_eq!((trouble.members.len(), trouble.more), (2, 4));
    assert_eq!(trouble.words, "load@1970-01-01T01:00Z runs for longer than usual: it waits");
}
