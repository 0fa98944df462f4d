//! The notices that were due, by a plain scan of the whole log: for each cause the time in which it lasted, and each minute of it asked for each rule
//! whether something is to be told.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use kelos_alerts::{Condition, Directory, Rule};
use kelos_model::{Event, EventRecord, Outcome, SlotEvent, WorkflowEvent, WorkflowId};
use serde_json::Value;

use crate::recorded::Workflows;

const MINUTE: SignedDuration = SignedDuration::from_mins(1);
const SPACING: SignedDuration = SignedDuration::from_mins(15);
const FORGOTTEN: SignedDuration = SignedDuration::from_mins(60);

/// A notice that is due.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Due {
    rule: String,
    condition: String,
    workflow: String,
    opened: String,
    pub(crate) at: String,
    pub(crate) phase: String,
}

impl Due {
    /// A notice that was received, read from its body.
    pub(crate) fn of(body: &Value) -> Due {
        let text = |name: &str| body[name].as_str().unwrap_or_else(|| panic!("{name} in {body}")).to_owned();
        Due {
            rule: text("rule"),
            condition: text("condition"),
            workflow: text("workflow"),
            opened: text("openedAt"),
            at: text("dueAt"),
            phase: text("phase"),
        }
    }

    /// Whether both are of one incident and one rule.
    pub(crate) fn is_of_same(&self, other: &Due) -> bool {
        (&self.rule, &self.condition, &self.workflow, &self.opened)
            == (&other.rule, &other.condition, &other.workflow, &other.opened)
    }
}

/// The time in which a cause lasted.
struct Lasted {
    condition: Condition,
    from: Timestamp,
    /// The workflows that it is about, with the moment since when.
    about: Vec<(String, Timestamp)>,
    /// None if it was not over.
    until: Option<Timestamp>,
    news: BTreeSet<Timestamp>,
}

/// All that was due by a moment.
pub(crate) fn of(log: &[EventRecord], rules: &[Rule], end: Timestamp) -> Vec<Due> {
    let mut due = Vec::new();
    for lasted in lasted(log) {
        for rule in rules {
            let is_told = |workflow: &str| {
                let workflow = WorkflowId::new(workflow).expect("a name");
                rule.tells(lasted.condition, &Workflows.about(&workflow))
            };
            if let Some((workflow, since)) = lasted.about.iter().find(|(workflow, _)| is_told(workflow)) {
                tell(&lasted, (rule, workflow), *since, end, &mut due);
            }
        }
    }
    due
}

/// Asks each minute whether a rule tells something.
fn tell(lasted: &Lasted, (rule, workflow): (&Rule, &str), since: Timestamp, end: Timestamp, due: &mut Vec<Due>) {
    let is_quiet = |at: Timestamp| rule.sends.as_ref().is_some_and(|sends| !sends.is_open(at));
    let mut add = |at: Timestamp, phase: &str| {
        due.push(Due {
            rule: rule.name.clone(),
            condition: lasted.condition.as_str().to_owned(),
            workflow: workflow.to_owned(),
            opened: lasted.from.to_string(),
            at: at.to_string(),
            phase: phase.to_owned(),
        });
    };
    // When it was told last, and the news that were told then.
    let mut told: Option<(Timestamp, Timestamp)> = None;
    let mut at = since;
    while at <= lasted.until.unwrap_or(end).min(end) {
        // What happens in a minute comes after what is due in it.
        for news in [lasted.news.range(..at).next_back().filter(|_| at > since), lasted.news.range(..=at).next_back()] {
            let Some(news) = news.copied() else { continue };
            let phase = match told {
                None => (at >= since + rule.patience(lasted.condition)).then_some("opened"),
                Some((last, known)) if news > known => (at >= last + SPACING).then_some("again"),
                Some((last, _)) => {
                    let repeat = rule.repeat.filter(|_| !lasted.condition.is_moment());
                    repeat.filter(|repeat| at >= last + *repeat).map(|_| "still")
                }
            };
            if let Some(phase) = phase.filter(|_| !is_quiet(at)) {
                add(at, phase);
                told = Some((at, news));
            }
        }
        at += MINUTE;
    }
    let Some(mut over) = lasted.until.filter(|_| told.is_some() && !lasted.condition.is_moment()) else { return };
    while is_quiet(over) {
        over += MINUTE;
    }
    if over <= end {
        add(over, "over");
    }
}

/// The causes, each with the time in which it lasted.
fn lasted(log: &[EventRecord]) -> Vec<Lasted> {
    let mut all = Vec::new();
    // The members of what lasts, by its condition and cause, and where each belongs.
    let mut open: BTreeMap<(Condition, String), (Lasted, BTreeSet<String>)> = BTreeMap::new();
    for record in log {
        let at = record.at;
        let (condition, member, cause) = match change(record) {
            Some(Sign::Bad(condition, member, cause, behind)) => {
                let home = |member: &String| {
                    open.iter().find(|((one, _), (_, members))| *one == condition && members.contains(member))
                };
                let known =
                    home(&member).or_else(|| behind.as_ref().and_then(home)).map(|((_, cause), _)| cause.clone());
                (condition, member, known.unwrap_or(cause))
            }
            Some(Sign::Good(condition, member)) => {
                let home =
                    open.iter_mut().find(|((one, _), (_, members))| *one == condition && members.contains(&member));
                let Some((name, (_, members))) = home else { continue };
                members.remove(&member);
                if members.is_empty() {
                    let name = name.clone();
                    let (lasted, _) = open.remove(&name).expect("it is there");
                    all.push(Lasted { until: Some(at), ..lasted });
                }
                continue;
            }
            None => continue,
        };
        let name = (condition, cause);
        let is_forgotten = |(lasted, _): &(Lasted, BTreeSet<String>)| {
            condition.is_moment() && lasted.news.last().is_some_and(|last| *last + FORGOTTEN <= at)
        };
        if open.get(&name).is_some_and(is_forgotten) {
            all.push(forgotten(open.remove(&name).expect("it is there").0));
        }
        let about = member.split('@').next().unwrap_or_default().to_owned();
        let (lasted, members) = open.entry(name).or_insert_with(|| {
            (Lasted { condition, from: at, until: None, about: Vec::new(), news: BTreeSet::new() }, BTreeSet::new())
        });
        lasted.news.insert(at);
        if lasted.about.iter().all(|(known, _)| *known != about) {
            lasted.about.push((about, at));
        }
        members.insert(member);
    }
    all.extend(
        open.into_values().map(|(lasted, _)| if lasted.condition.is_moment() { forgotten(lasted) } else { lasted }),
    );
    all
}

fn forgotten(lasted: Lasted) -> Lasted {
    let until = lasted.news.last().map(|last| *last + FORGOTTEN);
    Lasted { until, ..lasted }
}

/// A change that an event tells.
enum Sign {
    /// It came into a condition, by a cause, perhaps behind a slot.
    Bad(Condition, String, String, Option<String>),
    /// It left it.
    Good(Condition, String),
}

fn change(record: &EventRecord) -> Option<Sign> {
    match &record.event {
        Event::Slot { slot, what } => {
            let (member, workflow) = (slot.to_string(), slot.workflow.to_string());
            Some(match what {
                SlotEvent::Failed { .. } => Sign::Bad(Condition::Failed, member, workflow, None),
                SlotEvent::Expired { explanation, .. } => {
                    let Some(kelos_model::reason::Evidence::Slot { slot, .. }) = explanation.evidence() else {
                        return None;
                    };
                    Sign::Bad(Condition::Failed, member, workflow, Some(slot.to_string()))
                }
                SlotEvent::BackedOff { outcome: Outcome::Lost { .. }, .. } => {
                    Sign::Bad(Condition::Worker, member, format!("worker of {workflow}"), None)
                }
                SlotEvent::Succeeded { .. } | SlotEvent::MarkedSucceeded { .. } | SlotEvent::SkippedBy { .. } => {
                    Sign::Good(Condition::Failed, member)
                }
                _ => return None,
            })
        }
        Event::Workflow { workflow, what } => {
            let name = workflow.to_string();
            Some(match what {
                WorkflowEvent::Paused { .. } => Sign::Bad(Condition::Paused, name.clone(), name, None),
                WorkflowEvent::Frozen { .. } => Sign::Bad(Condition::Frozen, name.clone(), name, None),
                WorkflowEvent::Resumed { .. } => Sign::Good(Condition::Paused, name),
                WorkflowEvent::Thawed { .. } => Sign::Good(Condition::Frozen, name),
                _ => return None,
            })
        }
        _ => None,
    }
}
