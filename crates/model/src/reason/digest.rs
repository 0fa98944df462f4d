//! A number for what a reason says. It is stored with each slot that waits, so it has to be the same in every version: it is made
//! of codes and of what they are about, never of words, of what was counted, of the time of the evaluation, or of what others said.

use jiff::Timestamp;

use super::finding::Topic;
use super::fnv::hashed;
use super::{Answer, Finding, Reason, old};
use crate::id::WorkflowId;
use crate::key::SlotRef;
use crate::probe::{Conditions, Probe, Verdict};
use crate::state::SlotState;

impl Reason {
    /// A digest of what it says, whenever it was asked: another digest is worth a new line in the log. Never 0.
    #[must_use]
    pub fn digest(&self) -> u32 {
        let hash = if let Finding::Text { .. } = self.finding {
            old::hash(self, OFFSET)
        } else {
            let mut digest = Digest(OFFSET);
            digest.reason(self);
            digest.0
        };
        ((hash ^ (hash >> 32)) as u32).max(1)
    }
}

/// FNV-1a, 64 bits.
struct Digest(u64);

const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;

/// Ends a part: no text has this byte.
const END: u8 = 0xff;

impl Digest {
    fn bytes(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().chain(&[END]).fold(self.0, |hash, byte| hashed(hash, *byte));
    }

    fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    fn number(&mut self, number: i64) {
        self.bytes(&number.to_le_bytes());
    }

    fn moment(&mut self, at: Timestamp) {
        self.number(at.as_millisecond());
    }

    fn flag(&mut self, flag: bool) {
        self.bytes(&[u8::from(flag)]);
    }

    fn workflow(&mut self, id: &WorkflowId) {
        self.text(id.as_str());
    }

    fn slot(&mut self, slot: &SlotRef) {
        self.workflow(&slot.workflow);
        self.text(&slot.key.to_string());
    }

    /// The live state of another slot is no news; how it has ended is.
    fn state(&mut self, state: SlotState) {
        self.text(if state.is_final() { state.as_str() } else { "live" });
    }

    fn group(&mut self, group: Option<&str>) {
        self.text(group.unwrap_or_default());
    }

    fn reason(&mut self, reason: &Reason) {
        self.text(reason.kind.as_str());
        self.text(match reason.answer {
            Answer::Met => "met",
            Answer::NotYet => "not-yet",
            Answer::Never => "never",
        });
        self.finding(&reason.finding);
        self.text("(");
        reason.nested.iter().filter(|nested| is_news(reason, nested)).for_each(|nested| self.reason(nested));
        self.text(")");
    }

    /// The code, and what names the question: what the definition says of it counts, what was seen doesn't.
    fn finding(&mut self, finding: &Finding) {
        self.text(finding.code());
        match finding.topic() {
            Topic::Trigger => self.trigger(finding),
            Topic::Facts => self.facts(finding),
            Topic::Jobs => self.jobs(finding),
            Topic::Constraints => self.constraints(finding),
            Topic::Log => {
                if let Finding::Text { text, about } = finding {
                    self.text(text);
                    about.iter().for_each(|about| self.finding(about));
                }
            }
        }
    }

    fn trigger(&mut self, finding: &Finding) {
        match finding {
            Finding::Offset { seconds }
            | Finding::OffsetBeyondTime { seconds }
            | Finding::DelayBeyondTime { seconds } => self.number(*seconds),
            Finding::DelayUntil { until, .. } => self.moment(*until),
            Finding::UpstreamAsked { slot } | Finding::UpstreamMissing { slot } => self.slot(slot),
            Finding::UpstreamIs { slot, state } => {
                self.slot(slot);
                self.state(*state);
            }
            Finding::PeriodsCounted { workflow, from, to, .. } => {
                self.workflow(workflow);
                self.moment(*from);
                self.moment(*to);
            }
            Finding::EmptyJobId { workflow } | Finding::NoPeriods { workflow } => self.workflow(workflow),
            Finding::ProbeAsked { probe } => self.probe(probe),
            Finding::ProbeAnswered { probe, verdict, .. } => {
                self.probe(probe);
                self.text(match verdict {
                    Verdict::Yes => "yes",
                    Verdict::No => "no",
                    Verdict::Never => "never",
                    Verdict::Failed => "failed",
                });
            }
            // The code says it all.
            _ => {}
        }
    }

    fn facts(&mut self, finding: &Finding) {
        match finding {
            Finding::PartitionsCounted { dataset, want, .. } => {
                self.text(dataset);
                self.number(i64::from(*want));
            }
            Finding::RunAwaited { program, states } => {
                self.workflow(program);
                states.iter().for_each(|state| self.state(*state));
            }
            Finding::RunEnded { program, state, .. } => {
                self.workflow(program);
                self.state(*state);
            }
            Finding::TimeAwaited { cron: name }
            | Finding::TimeFired { cron: name, .. }
            | Finding::SignalAwaited { name }
            | Finding::SignalGiven { name } => self.text(name),
            _ => {}
        }
    }

    fn jobs(&mut self, finding: &Finding) {
        match finding {
            Finding::ParentAsked { slot } | Finding::ParentMissing { slot } => self.slot(slot),
            Finding::ParentIs { slot, state, .. } => {
                self.slot(slot);
                self.state(*state);
            }
            Finding::ParentsAwaited { group } | Finding::GroupProgress { group, .. } => self.group(group.as_deref()),
            Finding::ParentsBlocked { by } => self.text(by.as_str()),
            Finding::ParentGroup { group, blocked, .. } => {
                self.group(group.as_deref());
                self.flag(*blocked);
            }
            Finding::ParentsUnnamed { workflow, group, .. } => {
                self.workflow(workflow);
                self.text(group);
            }
            Finding::NotListed { values } => {
                for (name, listed) in values {
                    self.text(name);
                    listed.iter().for_each(|value| self.text(value));
                }
            }
            // The code says it all, or what a script said in its own words.
            _ => {}
        }
    }

    fn constraints(&mut self, finding: &Finding) {
        match finding {
            Finding::RunsCounted { program, limit, .. } => {
                self.workflow(program);
                self.number(i64::from(*limit));
            }
            Finding::NotBefore { until, .. } => self.moment(*until),
            Finding::WindowOpen { window } | Finding::WindowClosed { window, .. } => {
                self.text(window.start());
                self.text(window.end());
                self.text(window.zone().name());
            }
            Finding::NoLastRun { program } => self.workflow(program),
            // A run has no other name here than the moment of its start.
            Finding::LastRun { program, started_at, over, until, .. } => {
                self.workflow(program);
                self.moment(*started_at);
                self.flag(*over);
                self.moment(*until);
            }
            _ => {}
        }
    }

    fn probe(&mut self, probe: &Probe) {
        match probe {
            Probe::Path { uri, conditions } => {
                self.text(uri);
                self.conditions(conditions);
            }
            // A file that was edited asks the same. Of several functions of a file their places in the tree tell.
            Probe::Function { function, .. } => self.text(&function.file),
        }
    }

    fn conditions(&mut self, conditions: &Conditions) {
        let Conditions { glob, min_count, min_bytes, min_age_seconds } = conditions;
        self.group(glob.as_deref());
        self.number(min_count.map_or(-1, i64::from));
        self.number(min_bytes.map_or(-1, |bytes| i64::try_from(bytes).unwrap_or(i64::MAX)));
        self.number(min_age_seconds.map_or(-1, i64::from));
    }
}

/// Whether what is nested counts. Of the periods that a slot waits for, only those that ended without success are worth a line.
fn is_news(reason: &Reason, nested: &Reason) -> bool {
    match (&reason.finding, &nested.finding) {
        (Finding::PeriodsCounted { .. }, Finding::UpstreamIs { state, .. }) => state.is_final(),
        (Finding::PeriodsCounted { .. }, _) => false,
        _ => true,
    }
}
