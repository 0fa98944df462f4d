//! The workers that may run a job, and what happens to a run whose worker is lost.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The executor of functions: code of a program, which runs nowhere else.
pub const FUNCTION: &str = "function";

/// The most labels of a worker or a job.
pub const MOST_LABELS: usize = 32;

/// Longest label, in bytes.
pub const LONGEST_LABEL: usize = 63;

/// A label of workers, such as `gpu`: a job that names it runs only where it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Label(Arc<str>);

/// The reason for which a text is no label. It completes "failed to …".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "use \"{0}\" as a label of workers: expected 1 to {LONGEST_LABEL} letters, digits, `_`, `.`, `-`, `/` or `=`, such as \"gpu\""
)]
pub struct LabelError(String);

impl Label {
    /// The label of this text.
    ///
    /// # Errors
    /// When the text is empty, too long, or has other characters than labels have.
    pub fn new(text: &str) -> Result<Label, LabelError> {
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_.-/=".contains(letter);
        if text.is_empty() || text.len() > LONGEST_LABEL || !text.chars().all(is_plain) {
            return Err(LabelError(text.chars().take(LONGEST_LABEL + 1).collect()));
        }
        Ok(Label(text.into()))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Label {
    type Error = LabelError;

    fn try_from(text: String) -> Result<Label, LabelError> {
        Label::new(&text)
    }
}

impl From<Label> for String {
    fn from(label: Label) -> String {
        label.0.to_string()
    }
}

impl FromStr for Label {
    type Err = LabelError;

    fn from_str(text: &str) -> Result<Label, LabelError> {
        Label::new(text)
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A worker on another machine, as the log has it. It is stored before the worker is told anything, so that each later leader knows
/// whose runs may be alive, and for how long.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkerRecord {
    /// The longest time in milliseconds that one of its runs may go on without an answer of a leader.
    pub lease_millis: u64,
    /// The name of its machine.
    pub host: String,
    /// The version of its program.
    pub version: String,
    /// The node that it belongs to; none if it is a process of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Its process, as the machine knows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process: Option<String>,
    /// Its labels.
    pub labels: BTreeSet<Label>,
    /// The place to which it copies the output of its ended runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outputs: Option<String>,
}

impl WorkerRecord {
    /// The longest time that one of its runs may go on without an answer of a leader.
    #[must_use]
    pub fn lease(&self) -> Duration {
        Duration::from_millis(self.lease_millis)
    }
}

/// Labels in words: `gpu and eu`.
#[must_use]
pub fn labels_in_words(labels: &BTreeSet<Label>) -> String {
    let all: Vec<&str> = labels.iter().map(Label::as_str).collect();
    match all.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, before)) => format!("{} and {last}", before.join(", ")),
        None => String::new(),
    }
}

/// The treatment of a run whose worker is on another machine and sends no heartbeat any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LossPolicy {
    /// Once its lease is over, the run ends with an unknown outcome, and the retry policy says what follows.
    #[default]
    Retry,
    /// Once its lease is over, the slot fails and waits for a person, however many retries are left.
    End,
    /// The run continues without its worker for this many seconds, and the worker may come back to it until then.
    Wait(u64),
}

/// The reason for which a text is no treatment of lost workers. It completes "failed to …".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "read \"{0}\" as what happens to a run whose worker is lost: expected \"retry\", \"end\" or a wait such as \"wait 30m\""
)]
pub struct LossPolicyError(String);

impl FromStr for LossPolicy {
    type Err = LossPolicyError;

    fn from_str(text: &str) -> Result<LossPolicy, LossPolicyError> {
        let seconds = |length: &str| {
            let (unit, digits) = (length.chars().next_back()?, length.get(..length.len() - 1)?);
            let unit = [('s', 1), ('m', 60), ('h', 3600), ('d', 86_400), ('w', 604_800)]
                .into_iter()
                .find(|one| one.0 == unit)?;
            digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse::<u64>().ok()?.checked_mul(unit.1))?
        };
        let read = match text {
            "retry" => Some(LossPolicy::Retry),
            "end" => Some(LossPolicy::End),
            _ => text.strip_prefix("wait ").filter(|length| length.is_ascii()).and_then(seconds).map(LossPolicy::Wait),
        };
        read.ok_or_else(|| LossPolicyError(text.chars().take(LONGEST_LABEL).collect()))
    }
}

impl LossPolicy {
    /// Whether it is what holds where nothing is said.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == LossPolicy::default()
    }

    /// The seconds for which a run continues without its worker; none beyond the lease of a worker.
    #[must_use]
    pub fn wait_seconds(self) -> u64 {
        match self {
            LossPolicy::Wait(seconds) => seconds,
            LossPolicy::Retry | LossPolicy::End => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_a_short_plain_word() {
        for good in ["gpu", "zone=eu-1", "disk/ssd", "a_b.c", &"x".repeat(63)] {
            assert_eq!(Label::new(good).unwrap().as_str(), good);
        }
        for bad in ["", "two words", "a,b", "größe", &"x".repeat(64)] {
            assert!(Label::new(bad).unwrap_err().to_string().contains("expected 1 to 63 letters"), "{bad}");
        }
    }

    #[test]
    fn labels_are_listed_in_words() {
        let of = |all: &[&str]| labels_in_words(&all.iter().map(|one| Label::new(one).unwrap()).collect());
        assert_eq!((of(&[]), of(&["gpu"])), (String::new(), "gpu".to_owned()));
        assert_eq!(of(&["gpu", "eu", "ssd"]), "eu, gpu and ssd");
    }

    #[test]
    fn a_record_of_a_worker_keeps_its_stored_form_and_needs_only_what_it_had_at_first() {
        let stored = r#"{"leaseMillis":60000,"host":"gpu1","version":"0.1.0","node":"a","labels":["eu","gpu"],"outputs":"s3://o"}"#;
        let record: WorkerRecord = serde_json::from_str(stored).unwrap();
        assert_eq!((record.lease(), record.node.as_deref()), (Duration::from_secs(60), Some("a")));
        assert_eq!(serde_json::to_string(&record).unwrap(), stored);
        let least: WorkerRecord = serde_json::from_str(r#"{"leaseMillis":5}"#).unwrap();
        assert_eq!(least, WorkerRecord { lease_millis: 5, ..WorkerRecord::default() });
    }

    #[test]
    fn the_loss_of_a_worker_is_stored_as_a_word_or_with_a_wait() {
        let text = |one: LossPolicy| serde_json::to_string(&one).unwrap();
        assert_eq!("wait 30m".parse(), Ok(LossPolicy::Wait(1800)));
        assert_eq!(("end".parse(), "retry".parse()), (Ok(LossPolicy::End), Ok(LossPolicy::Retry)));
        let bad = [
            "",
            "wait",
            "wait ",
            "wait m",
            "wait 30",
            "wait 30 m",
            "wait -1m",
            "wait 99999999999999999999w",
            "wait 3ü",
        ];
        for bad in bad {
            assert!(bad.parse::<LossPolicy>().unwrap_err().to_string().contains("such as \"wait 30m\""), "{bad}");
        }
        assert_eq!(
            (text(LossPolicy::End), text(LossPolicy::Wait(1800))),
            (r#""end""#.to_owned(), r#"{"wait":1800}"#.to_owned())
        );
    }
}
