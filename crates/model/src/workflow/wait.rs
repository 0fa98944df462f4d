//! How long a slot by time may wait.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::Workflow;
use crate::key::SlotKey;
use crate::slot::Slot;
use crate::state::SlotState;

/// The moment from which a wait timeout counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WaitStart {
    /// The time of the slot, as in Celos, however late the slot came to be; of a slot about a period the end of that.
    #[default]
    Time,
    /// The moment from which the slot could first have gone: its time or, where that is later, when it was planned, opened again or
    /// taken over by a backfill, or when its workflow or backfill was last resumed.
    Opening,
}

impl WaitStart {
    /// The word for it in definitions.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            WaitStart::Time => "time",
            WaitStart::Opening => "opening",
        }
    }

    /// Whether it is the time of the slot.
    #[must_use]
    pub fn is_time(&self) -> bool {
        *self == WaitStart::Time
    }
}

impl Workflow {
    /// The last moment until which a slot may wait; none if it may wait for ever. Its workflow, or its backfill, was last resumed at
    /// the moment that is given, if ever.
    ///
    /// A slot of a time has a timeout. Where that counts from the opening, a slot that has run since then was in time, and waits for
    /// ever.
    #[must_use]
    pub fn waits_until(&self, key: &SlotKey, slot: &Slot, resumed: Option<Timestamp>) -> Option<Timestamp> {
        let time = self.keys.due(key)?;
        let wait = SignedDuration::from_secs(i64::try_from(self.wait_timeout_seconds?).ok()?);
        let start = match self.wait_from {
            WaitStart::Time => time,
            WaitStart::Opening if slot.retries > 0 => return None,
            WaitStart::Opening => [slot.opened_at(), resumed].into_iter().flatten().fold(time, Timestamp::max),
        };
        start.checked_add(wait).ok()
    }
}

impl Slot {
    /// When a slot that has not run since was opened, as far as it is known.
    #[must_use]
    pub fn opened_at(&self) -> Option<Timestamp> {
        let opened = match self.state {
            SlotState::Waiting => Some(self.since),
            _ => self.collected.as_ref().map(|collected| collected.since),
        };
        opened.max(self.asked_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Origin, SlotEvent};
    use crate::slot::apply;
    use crate::time::{CronSchedule, Schedule};
    use crate::{Actor, Answer, Finding, Job, Reason, ReasonKind};

    fn at(hour: i64) -> Timestamp {
        Timestamp::from_second(hour * 3600).expect("a time")
    }

    fn workflow(wait_from: WaitStart) -> Workflow {
        let schedule = Schedule::Cron(CronSchedule::hourly());
        let plain = Workflow::new("w".parse().expect("an id"), schedule, Job::new("command", serde_json::Map::new()));
        Workflow { wait_timeout_seconds: Some(3600), wait_from, ..plain }
    }

    /// A slot of hour 0 that was planned at hour 5, after some events.
    fn slot(events: &[(i64, SlotEvent)]) -> Slot {
        let planned = (5, SlotEvent::planned(Origin::Schedule, 0));
        let all = std::iter::once(&planned).chain(events);
        let folded = all.fold(None, |slot, (hour, event)| Some(apply(slot, event, at(*hour), 1).expect("it fits")));
        folded.expect("a slot")
    }

    fn until(wait_from: WaitStart, slot: &Slot, resumed: Option<i64>) -> Option<Timestamp> {
        workflow(wait_from).waits_until(&SlotKey::Time(at(0)), slot, resumed.map(at))
    }

    #[test]
    fn by_the_rule_of_celos_only_the_time_counts() {
        let reopened = SlotEvent::Reopened { by: Actor::system("t"), reason: None, priority: 0, backfill: None };
        let killed = SlotEvent::Killed { by: Actor::system("t"), reason: None };
        for slot in [slot(&[]), slot(&[(6, killed), (9, reopened)])] {
            assert_eq!(until(WaitStart::Time, &slot, Some(20)), Some(at(1)));
        }
    }

    #[test]
    fn a_wait_counts_from_the_last_moment_at_which_a_slot_was_opened() {
        use WaitStart::Opening;
        let by = || Actor::system("t");
        let killed = (6, SlotEvent::Killed { by: by(), reason: None });
        let reopened = (9, SlotEvent::Reopened { by: by(), reason: None, priority: 0, backfill: None });
        let explanation = Reason::leaf(ReasonKind::Always, Answer::Met, Finding::MetBefore);
        let held = |opened| (11, SlotEvent::Held { explanation: explanation.clone(), opened });
        let looked = (7, SlotEvent::Looked { explanation: explanation.clone() });
        assert_eq!(until(Opening, &slot(&[looked]), None), Some(at(6)), "planned late, and looked at");
        assert_eq!(until(Opening, &slot(&[]), Some(8)), Some(at(9)), "resumed");
        assert_eq!(until(Opening, &slot(&[]), Some(2)), Some(at(6)), "resumed before");
        assert_eq!(until(Opening, &slot(&[killed.clone(), reopened.clone()]), None), Some(at(10)), "opened again");
        let again = slot(&[killed, reopened, held(Some(at(9)))]);
        assert_eq!(until(Opening, &again, None), Some(at(10)), "held after that");
        assert_eq!(until(Opening, &slot(&[held(Some(at(5)))]), None), Some(at(6)), "held, as planned");
        let taken =
            SlotEvent::Prioritised { priority: 1, backfill: "b".parse().expect("a name"), by: None, reason: None };
        assert_eq!(until(Opening, &slot(&[(8, taken)]), None), Some(at(9)), "taken over by a backfill");
        let mut ran = slot(&[]);
        ran.retries = 1;
        assert_eq!(until(Opening, &ran, None), None, "it was in time");
        let early = workflow(Opening).waits_until(&SlotKey::Time(at(30)), &slot(&[]), None);
        assert_eq!(early, Some(at(31)), "never from before its time");
    }
}
