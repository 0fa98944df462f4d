//! Figures of a look at the folders of runs.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use super::consent::Consent;

/// A number of folders, and the bytes that they take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// The number of folders.
    pub folders: u64,
    /// The bytes that they take.
    pub bytes: u64,
}

impl Tally {
    pub(super) fn add(&mut self, other: Tally) {
        self.folders += other.folders;
        self.bytes = self.bytes.saturating_add(other.bytes);
    }

    pub(super) fn take(&mut self, other: Tally) {
        self.folders = self.folders.saturating_sub(other.folders);
        self.bytes = self.bytes.saturating_sub(other.bytes);
    }
}

/// The folders of one workflow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Share {
    /// The workflow; the name of a folder if none has it.
    pub workflow: String,
    /// Its folders.
    pub tally: Tally,
}

/// Folders that can't be read or removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Failures {
    /// Their number.
    pub count: u64,
    /// The first one, in words that complete "failed to …".
    pub first: Option<String>,
}

impl Failures {
    pub(super) fn add(&mut self, why: String) {
        self.count += 1;
        self.first.get_or_insert(why);
    }

    /// All of them in words that complete "failed to …"; none if there are none.
    #[must_use]
    pub fn words(&self) -> Option<String> {
        let first = self.first.as_ref()?;
        Some(match self.count {
            0 | 1 => first.clone(),
            count => format!("{first} (the first of {count} folders)"),
        })
    }
}

/// Figures of a look at the folders of runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Figures {
    /// When it began.
    pub at: Timestamp,
    /// The duration of the look.
    pub took: Duration,
    /// Whether folders may be removed.
    pub consent: Consent,
    /// All folders.
    pub all: Tally,
    /// Those of the workflows that have most, the largest first.
    pub largest: Vec<Share>,
    /// Further workflows.
    pub more_workflows: u64,
    /// Folders that go by the settings: they are still there because they wait for consent, or are the rest of many.
    pub going: Tally,
    /// Folders that would go, but stay because their run or its slot is live, or its outcome is not known.
    pub held: Tally,
    /// Folders that will go within the next seven days.
    pub soon: Tally,
    /// When the next one goes, and its workflow.
    pub next: Option<(Timestamp, String)>,
    /// The end of the oldest run whose folder is there.
    pub oldest: Option<Timestamp>,
    /// Folders that can't be read or removed.
    pub failures: Failures,
}

impl Figures {
    /// Figures that have nothing yet.
    pub(super) fn new(at: Timestamp, consent: Consent) -> Figures {
        Figures {
            at,
            took: Duration::ZERO,
            consent,
            all: Tally::default(),
            largest: Vec::new(),
            more_workflows: 0,
            going: Tally::default(),
            held: Tally::default(),
            soon: Tally::default(),
            next: None,
            oldest: None,
            failures: Failures::default(),
        }
    }

    /// Takes in the shares of workflows, of which so many are told.
    pub(super) fn share(&mut self, shares: BTreeMap<String, Tally>, told: usize) {
        let mut all: Vec<Share> = shares.into_iter().map(|(workflow, tally)| Share { workflow, tally }).collect();
        all.sort_by(|one, other| {
            other.tally.bytes.cmp(&one.tally.bytes).then_with(|| one.workflow.cmp(&other.workflow))
        });
        self.more_workflows = all.len().saturating_sub(told) as u64;
        all.truncate(told);
        self.largest = all;
    }

    /// Takes in the end of a run whose folder is there.
    pub(super) fn age(&mut self, ended_at: Timestamp) {
        self.oldest = Some(self.oldest.map_or(ended_at, |oldest| oldest.min(ended_at)));
    }

    /// Takes in that a folder that was to go is gone.
    pub(super) fn gone(&mut self, workflow: &str, one: Tally) {
        self.all.take(one);
        self.going.take(one);
        if let Some(share) = self.largest.iter_mut().find(|share| share.workflow == workflow) {
            share.tally.take(one);
        }
    }

    /// Takes in a folder that stays for now, and goes at a moment.
    pub(super) fn due(&mut self, at: Timestamp, workflow: &str, one: Tally, soon: Timestamp) {
        if at <= soon {
            self.soon.add(one);
        }
        if self.next.as_ref().is_none_or(|(known, _)| at < *known) {
            self.next = Some((at, workflow.to_owned()));
        }
    }
}
