//! The deadlines of slots, and whether they have missed them.

use jiff::Timestamp;

use super::Workflow;
use crate::key::SlotKey;
use crate::slot::Slot;

impl Workflow {
    /// The deadline of a slot; none where its workflow has none, for a step of a flow, and for a slot by time that was asked for when its
    /// deadline had passed: a rerun of last month is not late.
    #[must_use]
    pub fn deadline_of(&self, key: &SlotKey, slot: &Slot) -> Option<Timestamp> {
        let deadline = self.deadline.as_ref().filter(|_| key.step().is_none())?;
        match self.due_by_schedule(key) {
            Some(due) => deadline.after(due).filter(|at| slot.asked_at.is_none_or(|asked| asked < *at)),
            None => deadline.after(slot.asked_at.or_else(|| key.time())?),
        }
    }

    /// When a slot that its schedule names is due.
    fn due_by_schedule(&self, key: &SlotKey) -> Option<Timestamp> {
        self.keys.due(key).filter(|_| matches!(key, SlotKey::Time(_)))
    }

    /// The deadline that a slot has missed at a moment; none where it is in time, or has ended in time. What the scheduler has recorded
    /// counts first; a slot that it has not looked at yet is as late.
    #[must_use]
    pub fn missed_deadline(&self, key: &SlotKey, slot: &Slot, now: Timestamp) -> Option<Timestamp> {
        let is_open = || !slot.state.is_final();
        slot.late.or_else(|| self.deadline_of(key, slot).filter(|at| is_open() && *at <= now))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::Job;
    use crate::actor::Actor;
    use crate::deadline::Deadline;
    use crate::event::{Origin, SlotEvent};
    use crate::slot::apply;
    use crate::state::SlotState;
    use crate::time::{Calendar, CronSchedule, Schedule, Zone};

    fn at(text: &str) -> Timestamp {
        text.parse().expect("an instant")
    }

    fn workflow(schedule: Schedule, value: &Value) -> Workflow {
        let plain = Workflow::new("w".parse().expect("an id"), schedule, Job::new("command", serde_json::Map::new()));
        Workflow { deadline: Deadline::read(value, &Zone::utc()).ok(), ..plain }
    }

    #[test]
    fn a_slot_about_a_period_is_due_at_its_end() {
        let daily = Schedule::Calendar(Calendar::daily(Zone::parse("Europe/Berlin").expect("a zone")));
        let daily = workflow(daily, &json!({"at": "07:30", "zone": "Europe/Berlin"}));
        let key = SlotKey::Time(at("2026-03-27T23:00Z"));
        let slot = Slot::new(SlotState::Waiting, at("2026-03-28T23:00Z"));
        assert_eq!(daily.deadline_of(&key, &slot), Some(at("2026-03-29T05:30Z")), "the morning after 2026-03-28");
        assert_eq!(daily.missed_deadline(&key, &slot, at("2026-03-29T05:29Z")), None);
        assert_eq!(daily.missed_deadline(&key, &slot, at("2026-03-29T05:30Z")), Some(at("2026-03-29T05:30Z")));
        let done = Slot { state: SlotState::Succeeded, ..slot };
        assert_eq!(daily.missed_deadline(&key, &done, at("2026-04-01T00:00Z")), None);
    }

    #[test]
    fn a_job_that_was_fed_while_there_was_no_deadline_has_one_from_its_next_opening_on() {
        let hourly = workflow(Schedule::Cron(CronSchedule::hourly()), &json!("2h"));
        let (key, opened) = (SlotKey::Job("j".into()), at("2026-03-01T05:00Z"));
        let fed = apply(None, &SlotEvent::planned(Origin::Schedule, 0), opened, 1).expect("a slot");
        assert_eq!(hourly.deadline_of(&key, &fed), None);
        let (by, reason) = (Actor::person("ann"), None);
        let killed = SlotEvent::Killed { by: by.clone(), reason: reason.clone() };
        let killed = apply(Some(fed), &killed, at("2026-03-01T08:00Z"), 2).expect("a killed slot");
        let reopened = SlotEvent::Reopened { by, reason, priority: 0, backfill: None };
        let reopened = apply(Some(killed), &reopened, at("2026-03-01T09:00Z"), 3).expect("a slot again");
        assert_eq!(hourly.deadline_of(&key, &reopened), Some(at("2026-03-01T11:00Z")));
    }

    #[test]
    fn a_slot_that_is_asked_for_after_its_deadline_has_none() {
        let hourly = workflow(Schedule::Cron(CronSchedule::hourly()), &json!("2h"));
        let key = SlotKey::Time(at("2026-03-01T00:00Z"));
        let planned = |origin| apply(None, &SlotEvent::planned(origin, 0), at("2026-03-01T05:00Z"), 1).expect("a slot");
        assert_eq!(hourly.deadline_of(&key, &planned(Origin::Schedule)), Some(at("2026-03-01T02:00Z")), "planned late");
        assert_eq!(hourly.deadline_of(&key, &planned(Origin::Backfill)), None);
        assert_eq!(
            hourly.deadline_of(&SlotKey::Job("j".into()), &planned(Origin::Request)),
            Some(at("2026-03-01T07:00Z"))
        );
        assert_eq!(
            hourly.deadline_of(&SlotKey::Job("j".into()), &planned(Origin::Feed)),
            Some(at("2026-03-01T07:00Z"))
        );
    }
}
