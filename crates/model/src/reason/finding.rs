//! Findings of the nodes of a reason: a code that is kept for ever, and data.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::Evidence;
use crate::id::WorkflowId;
use crate::jobs::{Flaw, Unwritable};
use crate::key::SlotRef;
use crate::probe::{Probe, Verdict};
use crate::state::SlotState;
use crate::time::Window;
use crate::unknown::UnknownCode;

/// A finding. Stored events have the codes, so they and the names of fields stay as they are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "code", rename_all = "kebab-case")]
pub enum Finding {
    /// There is nothing to wait for.
    Always,
    /// All that is nested has to be met.
    AllOf,
    /// One of what is nested has to be met.
    AnyOf,
    /// The nested trigger must not be met.
    NoneOf,
    /// The nested trigger was evaluated for the slot that lies so many seconds later.
    Offset {
        /// Seconds into the future, or into the past where negative.
        seconds: i64,
    },
    /// The slot that lies so many seconds later would lie beyond the end of time.
    OffsetBeyondTime {
        /// Seconds into the future, or into the past where negative.
        seconds: i64,
    },
    /// A moment that a slot's time and a delay make.
    DelayUntil {
        /// The clock at the time.
        now: Timestamp,
        /// The moment.
        until: Timestamp,
    },
    /// A delay that leads beyond the end of time.
    DelayBeyondTime {
        /// Its seconds.
        seconds: i64,
    },
    /// A job whose id names no day has no time to count from.
    NoDay,
    /// The store is being asked for another slot.
    UpstreamAsked {
        /// The slot.
        slot: SlotRef,
    },
    /// Another slot does not exist.
    UpstreamMissing {
        /// The slot.
        slot: SlotRef,
    },
    /// Another slot has a state.
    UpstreamIs {
        /// The slot.
        slot: SlotRef,
        /// Its state.
        state: SlotState,
    },
    /// So many of the periods of another workflow that intersect an interval have succeeded. Some of the others are nested.
    PeriodsCounted {
        /// The workflow.
        workflow: WorkflowId,
        /// The beginning of the interval.
        from: Timestamp,
        /// Its end, exclusive.
        to: Timestamp,
        /// How many have.
        succeeded: u64,
        /// How many there are.
        total: u64,
    },
    /// A workflow has no schedule, so that its slots have no periods.
    NoPeriods {
        /// The workflow.
        workflow: WorkflowId,
    },
    /// A template gave an empty job id.
    EmptyJobId {
        /// The workflow of the jobs.
        workflow: WorkflowId,
    },
    /// The outside world is being asked.
    ProbeAsked {
        /// The question.
        probe: Probe,
    },
    /// The outside world answered, or could not be asked.
    ProbeAnswered {
        /// The question.
        probe: Probe,
        /// The answer.
        verdict: Verdict,
        /// Details in the words of the prober: what was seen, or why it failed.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        detail: String,
        /// When it was looked at.
        looked_at: Timestamp,
    },
    /// So many new partitions of a dataset have come.
    PartitionsCounted {
        /// The dataset.
        dataset: Arc<str>,
        /// The number that has come.
        have: u64,
        /// The number that is needed.
        want: u32,
    },
    /// No run of a program has ended in one of these states yet.
    RunAwaited {
        /// The program.
        program: WorkflowId,
        /// The states.
        states: Vec<SlotState>,
    },
    /// A run of a program has ended.
    RunEnded {
        /// The program.
        program: WorkflowId,
        /// The state in which it ended.
        state: SlotState,
        /// The name of the run, where it is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        run: Option<String>,
    },
    /// No time of a cron expression has passed yet.
    TimeAwaited {
        /// Its name.
        cron: Arc<str>,
    },
    /// A time of a cron expression has passed.
    TimeFired {
        /// Its name.
        cron: Arc<str>,
        /// The time.
        time: Timestamp,
    },
    /// A signal was not given yet.
    SignalAwaited {
        /// Its name.
        name: Arc<str>,
    },
    /// A signal was given.
    SignalGiven {
        /// Its name.
        name: Arc<str>,
    },
    /// Fired by hand without its trigger.
    FiredByHand,
    /// Its trigger was met before, and stays so.
    MetBefore,
    /// The parents of a job and its trigger, which are nested.
    ParentsAndTrigger,
    /// A job has no parents.
    NoParents,
    /// The parents of a job have succeeded.
    ParentsSucceeded,
    /// A job waits for its parents.
    ParentsAwaited {
        /// The group that can be met first, where there are several.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        group: Option<Arc<str>>,
    },
    /// No group of a job's parents can be met.
    ParentsBlocked {
        /// By what.
        by: Blockage,
    },
    /// Functions are being asked what a job waits for.
    ParentsAsked,
    /// Functions could not say what a job waits for.
    ParentsUnknown {
        /// The reason, in the script's words.
        message: String,
    },
    /// A group of parents.
    ParentGroup {
        /// Its name, where there are several.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        group: Option<Arc<str>>,
        /// How many jobs are in it.
        parents: u64,
        /// Whether one of several groups has a parent that ended without success.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        blocked: bool,
    },
    /// How many of a group of parents have succeeded, counted when the question was asked.
    GroupProgress {
        /// Its name, where there are several.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        group: Option<Arc<str>>,
        /// How many have.
        succeeded: u64,
        /// How many jobs are in it.
        total: u64,
    },
    /// The store is being asked for a parent.
    ParentAsked {
        /// The slot.
        slot: SlotRef,
    },
    /// A parent was never opened.
    ParentMissing {
        /// The slot.
        slot: SlotRef,
    },
    /// A parent has a state other than success.
    ParentIs {
        /// The slot.
        slot: SlotRef,
        /// Its state.
        state: SlotState,
        /// Whether it stays there because its workflow is paused.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        paused: bool,
    },
    /// Parents whose ids can't be written.
    ParentsUnnamed {
        /// The workflow of the jobs.
        workflow: WorkflowId,
        /// The group by which they are parents.
        group: Arc<str>,
        /// The number of jobs.
        count: u64,
        /// The reason; a sentence in older logs.
        why: Flaw,
    },
    /// A run has succeeded, and what waits for its job is known once the definitions have been read.
    DefinitionsAwaited,
    /// A run has succeeded, and functions are being asked what waits for its job.
    ChildrenAsked,
    /// A run has succeeded, and functions could not say what waits for its job.
    ChildrenUnknown {
        /// The reason, in the script's words.
        message: String,
    },
    /// None of a job's identifiers has a value that its workflow lists.
    NotListed {
        /// The listed values, by identifier.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        values: BTreeMap<Arc<str>, Vec<Arc<str>>>,
    },
    /// The constraints of a workflow, which are nested.
    Constraints,
    /// So many runs of a program are live.
    RunsCounted {
        /// The program.
        program: WorkflowId,
        /// The number of live runs.
        active: u32,
        /// The limit.
        limit: u32,
    },
    /// A moment before which a slot may not start.
    NotBefore {
        /// The clock at the time.
        now: Timestamp,
        /// The moment.
        until: Timestamp,
    },
    /// A window of the day is open.
    WindowOpen {
        /// The window.
        window: Window,
    },
    /// A window of the day is closed.
    WindowClosed {
        /// The window.
        window: Window,
        /// The clock at the time.
        now: Timestamp,
        /// When it opens next; none where it doesn't in the days to come.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        opens_at: Option<Timestamp>,
    },
    /// No run of a program has succeeded yet.
    NoLastRun {
        /// The program.
        program: WorkflowId,
    },
    /// The last run of a program that succeeded, or may yet.
    LastRun {
        /// The program.
        program: WorkflowId,
        /// When it was started, which says which it is.
        started_at: Timestamp,
        /// Whether it has ended.
        over: bool,
        /// The clock at the time.
        now: Timestamp,
        /// When the next one may start.
        until: Timestamp,
    },
    /// A sentence of a log of before, when sentences were stored.
    Text {
        /// The sentence.
        text: String,
        /// The finding that it rests on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        about: Option<Box<Finding>>,
    },
    /// A question of a log of before, of which only that it was on its way was stored.
    Asked,
    /// A finding of a newer version.
    #[serde(untagged)]
    Unknown(UnknownCode),
}

/// The reason that none of a job's groups of parents can be met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Blockage {
    /// Each group has parents that can't be named.
    Unnamed,
    /// Some have parents that can't be named, the others parents that ended without success.
    EndedOrUnnamed,
    /// Each has parents that ended without success.
    Ended,
}

impl Blockage {
    /// Its name in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Blockage::Unnamed => "unnamed",
            Blockage::EndedOrUnnamed => "ended-or-unnamed",
            Blockage::Ended => "ended",
        }
    }
}

/// The code of each finding, once for [`Finding::code`] and for the list of all.
macro_rules! codes {
    ($($variant:ident $code:literal,)*) => {
        impl Finding {
            /// The codes of all findings that this version knows.
            pub const CODES: &[&str] = &[$($code),*];

            /// Its code, which stays the same for ever.
            #[must_use]
            pub fn code(&self) -> &str {
                match self {
                    $(Finding::$variant { .. } => $code,)*
                    Finding::Unknown(unknown) => &unknown.code,
                }
            }
        }
    };
}

codes! {
    Always "always",
    AllOf "all-of",
    AnyOf "any-of",
    NoneOf "none-of",
    Offset "offset",
    OffsetBeyondTime "offset-beyond-time",
    DelayUntil "delay-until",
    DelayBeyondTime "delay-beyond-time",
    NoDay "no-day",
    UpstreamAsked "upstream-asked",
    UpstreamMissing "upstream-missing",
    UpstreamIs "upstream-is",
    PeriodsCounted "periods-counted",
    NoPeriods "no-periods",
    EmptyJobId "empty-job-id",
    ProbeAsked "probe-asked",
    ProbeAnswered "probe-answered",
    PartitionsCounted "partitions-counted",
    RunAwaited "run-awaited",
    RunEnded "run-ended",
    TimeAwaited "time-awaited",
    TimeFired "time-fired",
    SignalAwaited "signal-awaited",
    SignalGiven "signal-given",
    FiredByHand "fired-by-hand",
    MetBefore "met-before",
    ParentsAndTrigger "parents-and-trigger",
    NoParents "no-parents",
    ParentsSucceeded "parents-succeeded",
    ParentsAwaited "parents-awaited",
    ParentsBlocked "parents-blocked",
    ParentsAsked "parents-asked",
    ParentsUnknown "parents-unknown",
    ParentGroup "parent-group",
    GroupProgress "group-progress",
    ParentAsked "parent-asked",
    ParentMissing "parent-missing",
    ParentIs "parent-is",
    ParentsUnnamed "parents-unnamed",
    DefinitionsAwaited "definitions-awaited",
    ChildrenAsked "children-asked",
    ChildrenUnknown "children-unknown",
    NotListed "not-listed",
    Constraints "constraints",
    RunsCounted "runs-counted",
    NotBefore "not-before",
    WindowOpen "window-open",
    WindowClosed "window-closed",
    NoLastRun "no-last-run",
    LastRun "last-run",
    Text "text",
    Asked "asked",
}

impl From<&Unwritable> for Finding {
    fn from(one: &Unwritable) -> Finding {
        Finding::ParentsUnnamed {
            workflow: one.workflow.clone(),
            group: one.group.clone(),
            count: one.count as u64,
            why: one.why.clone(),
        }
    }
}

/// The question that a finding is about. Digests and words are made by topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Topic {
    /// Whether a trigger is met that looks at the clock, at other slots or at the outside world.
    Trigger,
    /// Whether facts have come.
    Facts,
    /// The parents and children of a job, and whether it is worth running.
    Jobs,
    /// Whether constraints are met.
    Constraints,
    /// Findings from logs of other versions.
    Log,
}

impl Finding {
    /// Its topic.
    pub(super) fn topic(&self) -> Topic {
        match self {
            Finding::Always
            | Finding::AllOf
            | Finding::AnyOf
            | Finding::NoneOf
            | Finding::Offset { .. }
            | Finding::OffsetBeyondTime { .. }
            | Finding::DelayUntil { .. }
            | Finding::DelayBeyondTime { .. }
            | Finding::NoDay
            | Finding::UpstreamAsked { .. }
            | Finding::UpstreamMissing { .. }
            | Finding::UpstreamIs { .. }
            | Finding::PeriodsCounted { .. }
            | Finding::NoPeriods { .. }
            | Finding::EmptyJobId { .. }
            | Finding::ProbeAsked { .. }
            | Finding::ProbeAnswered { .. }
            | Finding::FiredByHand
            | Finding::MetBefore => Topic::Trigger,
            Finding::PartitionsCounted { .. }
            | Finding::RunAwaited { .. }
            | Finding::RunEnded { .. }
            | Finding::TimeAwaited { .. }
            | Finding::TimeFired { .. }
            | Finding::SignalAwaited { .. }
            | Finding::SignalGiven { .. } => Topic::Facts,
            Finding::ParentsAndTrigger
            | Finding::NoParents
            | Finding::ParentsSucceeded
            | Finding::ParentsAwaited { .. }
            | Finding::ParentsBlocked { .. }
            | Finding::ParentsAsked
            | Finding::ParentsUnknown { .. }
            | Finding::ParentGroup { .. }
            | Finding::GroupProgress { .. }
            | Finding::ParentAsked { .. }
            | Finding::ParentMissing { .. }
            | Finding::ParentIs { .. }
            | Finding::ParentsUnnamed { .. }
            | Finding::DefinitionsAwaited
            | Finding::ChildrenAsked
            | Finding::ChildrenUnknown { .. }
            | Finding::NotListed { .. } => Topic::Jobs,
            Finding::Constraints
            | Finding::RunsCounted { .. }
            | Finding::NotBefore { .. }
            | Finding::WindowOpen { .. }
            | Finding::WindowClosed { .. }
            | Finding::NoLastRun { .. }
            | Finding::LastRun { .. } => Topic::Constraints,
            Finding::Text { .. } | Finding::Asked | Finding::Unknown(_) => Topic::Log,
        }
    }

    /// The evidence that it rests on.
    #[must_use]
    pub fn evidence(&self) -> Option<Evidence<'_>> {
        match self {
            Finding::DelayUntil { now, until }
            | Finding::NotBefore { now, until }
            | Finding::LastRun { now, until, .. }
            | Finding::WindowClosed { now, opens_at: Some(until), .. } => {
                Some(Evidence::Clock { now: *now, until: *until })
            }
            Finding::UpstreamIs { slot, state } | Finding::ParentIs { slot, state, .. } => {
                Some(Evidence::Slot { slot, state: Some(*state) })
            }
            Finding::UpstreamMissing { slot } | Finding::ParentMissing { slot } | Finding::ParentAsked { slot } => {
                Some(Evidence::Slot { slot, state: None })
            }
            Finding::ProbeAnswered { probe, verdict, detail, looked_at } => {
                Some(Evidence::Probe { probe, verdict: *verdict, detail, looked_at: *looked_at })
            }
            Finding::UpstreamAsked { .. }
            | Finding::ProbeAsked { .. }
            | Finding::ParentsAsked
            | Finding::ChildrenAsked
            | Finding::Asked => Some(Evidence::Asked),
            Finding::Text { about, .. } => about.as_deref().and_then(Finding::evidence),
            _ => None,
        }
    }
}
