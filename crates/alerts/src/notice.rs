//! Notices: what is to be sent to one channel, with the key by which a receiver knows it again.

use jiff::Timestamp;
use kelos_model::RunId;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::condition::Condition;
use crate::incident::Incident;
use crate::phase::Phase;
use crate::rule::About;

/// Bytes of a digest that a key has.
const KEY_BYTES: usize = 16;
/// Members of an incident that a notice names.
const MOST_NAMED: usize = 20;

/// A notice for one channel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Notice {
    /// The key by which a receiver that gets it twice knows it again.
    pub key: String,
    /// The name of the incident for receivers, the same in all of its notices from one rule.
    pub incident: String,
    /// The rule.
    pub rule: String,
    /// The channel.
    pub channel: String,
    /// Its place in the life of the incident.
    pub phase: Phase,
    /// The condition.
    pub condition: Condition,
    /// The workflow that it is about.
    #[serde(default)]
    pub about: About,
    /// When it was due. It may be later than what it tells of, because of quiet hours.
    pub due: Timestamp,
    /// When the incident began.
    pub opened_at: Timestamp,
    /// The event, in one sentence.
    pub words: String,
    /// The run that has the last lines of output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// The member of the event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latest: Option<String>,
    /// The first of the slots, files or endpoints that it is about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<String>,
    /// The number of all of them.
    #[serde(default)]
    pub count: u64,
}

impl Notice {
    /// A notice of an incident, about a workflow, from a rule to a channel. `position` is that of the event in the log that it tells of, or
    /// a count where it tells of none.
    #[must_use]
    pub fn of(
        incident: &Incident,
        about: About,
        (rule, channel): (&str, &str),
        (phase, position): (Phase, u64),
        due: Timestamp,
    ) -> Notice {
        let name = Notice::name(incident, rule);
        let own = key(&[&name, channel, phase.as_str(), &position.to_string()]);
        Notice {
            key: own,
            incident: name,
            rule: rule.to_owned(),
            channel: channel.to_owned(),
            phase,
            condition: incident.condition,
            about,
            due,
            opened_at: incident.opened_at,
            words: incident.words.clone(),
            run: incident.run.clone(),
            latest: incident.latest.clone(),
            members: incident.members.keys().take(MOST_NAMED).cloned().collect(),
            count: incident.count(),
        }
    }

    /// The name of an incident in all notices of a rule.
    pub(crate) fn name(incident: &Incident, rule: &str) -> String {
        key(&[rule, incident.condition.as_str(), &incident.cause, &incident.opened.to_string()])
    }

    /// The notice by which somebody tries a channel.
    #[must_use]
    pub fn test(channel: &str, now: Timestamp, by: &str) -> Notice {
        let own = key(&["test", channel, &now.to_string()]);
        Notice {
            incident: own.clone(),
            key: own,
            rule: "test".to_owned(),
            channel: channel.to_owned(),
            phase: Phase::Test,
            condition: Condition::Failed,
            about: About::default(),
            due: now,
            opened_at: now,
            words: format!("{by} tries the channel {channel}: nothing has happened"),
            run: None,
            latest: None,
            members: Vec::new(),
            count: 0,
        }
    }
}

/// A key made of parts, the same in every process.
pub(crate) fn key(parts: &[&str]) -> String {
    let mut digest = Sha256::new();
    for part in parts {
        digest.update(part.len().to_le_bytes());
        digest.update(part.as_bytes());
    }
    digest.finalize().iter().take(KEY_BYTES).map(|byte| format!("{byte:02x}")).collect()
}
