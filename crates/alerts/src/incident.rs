//! Incidents: what has one cause, from its first sign until it is over.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use kelos_model::RunId;
use serde::{Deserialize, Serialize};

use crate::condition::Condition;
use crate::phase::Phase;
use crate::rule::{About, Rule};

/// The most members whose names are kept; of the others there is a number, and the incident is over without them.
const MOST_MEMBERS: usize = 1_000;
/// The most workflows that an incident is known to be about; of the others it is known which rules tell one of them.
const MOST_CONCERNS: usize = 100;
/// The least time between two notices of one incident: failures of one cause that come one after the other are told together.
const AT_MOST_EVERY: SignedDuration = SignedDuration::from_mins(15);
/// The time after its last sign at which something that happened, and does not last, is forgotten.
const FORGOTTEN_AFTER: SignedDuration = SignedDuration::from_hours(1);

/// Everything that has one cause.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Incident {
    /// The condition.
    pub condition: Condition,
    /// The name of the cause.
    pub cause: String,
    /// The first workflows that it is about.
    #[serde(default)]
    pub concerns: Vec<Concern>,
    /// Whether it is about others, too.
    #[serde(default)]
    pub is_wider: bool,
    /// The first workflow of each rule, by its name, that tells only others.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    beyond: BTreeMap<String, Concern>,
    /// When it began.
    pub opened_at: Timestamp,
    /// The position in the log at which it began.
    pub opened: u64,
    /// The position and moment of its latest sign.
    pub news: (u64, Timestamp),
    /// The last event, in one sentence.
    pub words: String,
    /// The run that ended last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// The member of the last event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latest: Option<String>,
    /// The members in this condition, such as slots that failed, each with the position since when.
    #[serde(default)]
    pub members: BTreeMap<String, u64>,
    /// Members beyond those.
    #[serde(default)]
    pub more: u64,
    /// The record of each rule that has told it.
    #[serde(default)]
    pub told: BTreeMap<String, RuleReport>,
}

/// A workflow that an incident is about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Concern {
    /// The workflow.
    pub about: About,
    /// Since when the incident is about it.
    pub since: Timestamp,
}

/// The record of a rule that has told an incident.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleReport {
    /// When it was told last.
    pub at: Timestamp,
    /// The position of the news that was told.
    pub news: u64,
    /// The number of times that it was told.
    pub count: u64,
    /// The channels by which it was told.
    #[serde(default)]
    pub to: BTreeSet<String>,
}

impl Incident {
    /// The incident of a cause that begins at a position of the log and a moment, without members.
    pub(crate) fn new((condition, cause): &(Condition, String), seq: u64, now: Timestamp) -> Incident {
        Incident {
            condition: *condition,
            cause: cause.clone(),
            concerns: Vec::new(),
            is_wider: false,
            beyond: BTreeMap::new(),
            opened_at: now,
            opened: seq,
            news: (seq, now),
            words: String::new(),
            run: None,
            latest: None,
            members: BTreeMap::new(),
            more: 0,
            told: BTreeMap::new(),
        }
    }

    /// Adds a member with what it is about, unless there are too many.
    pub(crate) fn add(&mut self, member: String, about: About, seq: u64, rules: &[Rule]) {
        self.concern(about, self.news.1, rules);
        if self.members.len() < MOST_MEMBERS || self.members.contains_key(&member) {
            self.members.insert(member.clone(), seq);
        } else {
            self.more += 1;
        }
        self.latest = Some(member);
    }

    /// Gives it the members that a look found. They are no news: it lasts, and is told again by `repeat`.
    pub(crate) fn set_members(&mut self, members: Vec<(String, About)>, seq: u64, now: Timestamp, rules: &[Rule]) {
        let before = std::mem::take(&mut self.members);
        for (member, about) in members {
            self.concern(about, now, rules);
            if self.members.len() < MOST_MEMBERS {
                let since = before.get(&member).copied().unwrap_or(seq);
                self.members.insert(member, since);
            } else {
                self.more += 1;
            }
        }
    }

    /// Notes that it is about something since a moment.
    pub(crate) fn concern(&mut self, about: About, since: Timestamp, rules: &[Rule]) {
        if self.concerns.iter().any(|one| one.about == about) {
            return;
        }
        let concern = Concern { about, since };
        if self.concerns.len() < MOST_CONCERNS {
            self.concerns.push(concern);
            return;
        }
        self.is_wider = true;
        for rule in rules.iter().filter(|rule| rule.tells(self.condition, &concern.about)) {
            if self.concern_of(rule).is_none() {
                self.beyond.insert(rule.name.clone(), concern.clone());
            }
        }
    }

    /// The first workflow that it is about and that a rule tells; none if there is none.
    pub(crate) fn concern_of(&self, rule: &Rule) -> Option<&Concern> {
        let mut known = self.concerns.iter().chain(self.beyond.get(&rule.name));
        known.find(|one| rule.tells(self.condition, &one.about))
    }

    /// Sets back what was noted by a clock that was ahead.
    pub(crate) fn set_back(&mut self, now: Timestamp) {
        let told = self.told.values_mut().map(|told| &mut told.at);
        let concerns = self.concerns.iter_mut().chain(self.beyond.values_mut()).map(|one| &mut one.since);
        let own = [&mut self.opened_at, &mut self.news.1];
        told.chain(concerns).chain(own).for_each(|at| *at = now.min(*at));
    }

    /// The number of its members.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.members.len() as u64 + self.more
    }

    /// The next notice of a rule, if it tells the incident: when it is due, its phase, and the number that makes its key. No rule opens
    /// anything before the moment `ruled_at`, since when the rules are what they are.
    pub(crate) fn next(&self, rule: &Rule, ruled_at: Timestamp) -> Option<(Timestamp, Phase, u64)> {
        let plus = |at: Timestamp, wait| at.saturating_add(wait).unwrap_or(Timestamp::MAX);
        let since = self.concern_of(rule)?.since;
        let is_heard_by_all = |told: &&RuleReport| rule.to.iter().all(|channel| told.to.contains(channel));
        let (due, phase, number) = match self.told.get(&rule.name).filter(is_heard_by_all) {
            None => (plus(since, rule.patience(self.condition)).max(ruled_at), Phase::Opened, self.opened),
            Some(told) if self.news.0 > told.news => {
                (plus(told.at, AT_MOST_EVERY).max(self.news.1), Phase::Again, self.news.0)
            }
            Some(told) => {
                let repeat = rule.repeat.filter(|_| !self.condition.is_moment())?;
                (plus(told.at, repeat), Phase::Still, told.count)
            }
        };
        Some((rule.awake(due), phase, number))
    }

    /// When it is forgotten, if it is one of those that are never over.
    pub(crate) fn forgotten_at(&self) -> Option<Timestamp> {
        self.condition.is_moment().then(|| self.news.1.saturating_add(FORGOTTEN_AFTER).unwrap_or(Timestamp::MAX))
    }
}
