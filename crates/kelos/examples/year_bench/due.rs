//! The notices that were due, by the log alone: for each workflow the times in which something of it had failed, or was late, and from
//! these each rule's notices. It shares nothing with the book of alerts but the rules.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use kelos_alerts::{Condition, Rule};
use kelos_model::{Event, EventRecord, SlotEvent};
use serde_json::Value;

const SPACING: SignedDuration = SignedDuration::from_mins(15);

/// A notice, by all that tells it from others.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Due {
    rule: String,
    workflow: String,
    opened: Timestamp,
    at: Timestamp,
    phase: String,
}

impl Due {
    /// A notice that was received.
    pub(crate) fn of(body: &Value) -> Due {
        let text = |name: &str| body[name].as_str().unwrap_or_default().to_owned();
        let moment = |name: &str| text(name).parse().expect("a moment");
        Due {
            rule: text("rule"),
            workflow: text("workflow"),
            opened: moment("openedAt"),
            at: moment("dueAt"),
            phase: text("phase"),
        }
    }

    /// Its place in the life of the alert.
    pub(crate) fn phase(&self) -> &str {
        &self.phase
    }

    /// Whether a later notice of the same may be sent in place of this one, if it still waits.
    pub(crate) fn gives_way_to(&self, later: &Due) -> bool {
        matches!(self.phase.as_str(), "again" | "still")
            && (&self.rule, &self.workflow, self.opened) == (&later.rule, &later.workflow, later.opened)
            && later.at >= self.at
            && later != self
    }
}

/// A time in which slots of a workflow were in a condition.
struct Period {
    from: Timestamp,
    until: Option<Timestamp>,
    /// When a slot came into it, each time.
    news: Vec<Timestamp>,
    members: BTreeSet<String>,
}

/// The periods of the log so far.
#[derive(Default)]
pub(crate) struct Periods {
    seq: u64,
    open: BTreeMap<(Condition, String), Period>,
    past: Vec<(Condition, String, Period)>,
}

impl Periods {
    /// Notes an event, unless it was noted before.
    pub(crate) fn note(&mut self, record: &EventRecord) {
        if record.seq <= self.seq {
            return;
        }
        self.seq = record.seq;
        let Event::Slot { slot, what } = &record.event else { return };
        let (workflow, member) = (slot.workflow.to_string(), slot.to_string());
        match what {
            SlotEvent::Failed { .. } => {
                self.end(Condition::Late, &workflow, &member, record.at);
                self.begin(Condition::Failed, workflow, member, record.at);
            }
            SlotEvent::Late { .. } => self.begin(Condition::Late, workflow, member, record.at),
            SlotEvent::Succeeded { .. } => {
                self.end(Condition::Failed, &workflow, &member, record.at);
                self.end(Condition::Late, &workflow, &member, record.at);
            }
            _ => {}
        }
    }

    fn begin(&mut self, condition: Condition, workflow: String, member: String, at: Timestamp) {
        let new = || Period { from: at, until: None, news: Vec::new(), members: BTreeSet::new() };
        let period = self.open.entry((condition, workflow)).or_insert_with(new);
        period.news.push(at);
        period.members.insert(member);
    }

    fn end(&mut self, condition: Condition, workflow: &str, member: &str, at: Timestamp) {
        let cause = (condition, workflow.to_owned());
        let Some(period) = self.open.get_mut(&cause) else { return };
        if period.members.remove(member) && period.members.is_empty() {
            let period = self.open.remove(&cause).expect("it is there");
            self.past.push((condition, cause.1, Period { until: Some(at), ..period }));
        }
    }

    /// All that was due by a moment.
    pub(crate) fn due(&self, rules: &[Rule], end: Timestamp) -> BTreeSet<Due> {
        let open = self.open.iter().map(|((condition, workflow), period)| (*condition, workflow, period));
        let past = self.past.iter().map(|(condition, workflow, period)| (*condition, workflow, period));
        let mut due = BTreeSet::new();
        for (condition, workflow, period) in past.chain(open) {
            for rule in rules.iter().filter(|rule| rule.when.contains(&condition)) {
                due.extend(period.told(rule, condition, end).into_iter().map(|(at, phase)| Due {
                    rule: rule.name.clone(),
                    workflow: workflow.clone(),
                    opened: period.from,
                    at,
                    phase: phase.to_owned(),
                }));
            }
        }
        due
    }
}

impl Period {
    /// The notices of a rule.
    fn told(&self, rule: &Rule, condition: Condition, end: Timestamp) -> Vec<(Timestamp, &'static str)> {
        let until = self.until.unwrap_or(Timestamp::MAX).min(end);
        let mut told = Vec::new();
        let mut at = self.from + rule.patience(condition);
        let (mut phase, mut known) = ("opened", 1);
        while at <= until {
            told.push((at, phase));
            // What comes at the moment of a notice is news for the next one.
            known = known.max(self.news.partition_point(|news| *news < at));
            let still = rule.repeat.map(|repeat| at + repeat);
            match (self.news.get(known), still) {
                (Some(news), still) if still.is_none_or(|still| *news < still) => {
                    (at, phase, known) = ((at + SPACING).max(*news), "again", known + 1);
                }
                (_, Some(still)) => (at, phase) = (still, "still"),
                (_, None) => break,
            }
        }
        if let Some(over) = self.until.filter(|over| *over <= end && !told.is_empty()) {
            told.push((over, "over"));
        }
        told
    }
}
