//! Codes of problems: a word for each kind, the same for ever. Programs go by it, while the words around it may get better.

use std::fmt;

use kelos_model::jobs::{Fault, FaultKind};
use serde::{Deserialize, Serialize};

/// The kinds, once for the type, for the list of all and for their codes.
macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident $code:literal,)*) => {
        /// The kind of a problem.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum ProblemCode {
            $($(#[$doc])* $variant,)*
            /// One that this version does not know.
            #[default]
            #[serde(other)]
            Unknown,
        }

        impl ProblemCode {
            /// All that this version knows.
            pub const ALL: &[ProblemCode] = &[$(ProblemCode::$variant),*];

            /// The code, as it is shown: it never changes.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(ProblemCode::$variant => $code,)*
                    ProblemCode::Unknown => "unknown",
                }
            }

            /// The meaning of a code.
            #[must_use]
            pub fn read(code: &str) -> Option<ProblemCode> {
                ProblemCode::ALL.iter().copied().find(|one| one.as_str() == code)
            }
        }
    };
}

codes! {
    /// The folder of workflows can't be read.
    FolderUnreadable "folder-unreadable",
    /// A file can't be read, or is no text.
    FileUnreadable "file-unreadable",
    /// A text is no JavaScript, or no JSON.
    SyntaxError "syntax-error",
    /// A script uses a name that it has not.
    UnknownName "unknown-name",
    /// `celos` or `kelos` has no such function.
    UnknownFunction "unknown-function",
    /// A script threw something of its own.
    ScriptThrew "script-threw",
    /// A script took longer than it may.
    OutOfTime "out-of-time",
    /// A script needed more memory than it may, or nested calls too deep.
    OutOfMemory "out-of-memory",
    /// The machine was too busy to read a script in time.
    MachineBusy "machine-busy",
    /// A script left promises behind, which are never resolved.
    PromisesLeft "promises-left",
    /// A fault of Kelos.
    Bug "bug",
    /// An argument or an option is not what is expected there.
    BadArgument "bad-argument",
    /// A text is no cron expression.
    BadCron "bad-cron",
    /// A text names no time zone.
    UnknownZone "unknown-zone",
    /// A text is no time.
    BadTime "bad-time",
    /// A text can't be the name of a workflow, a pool, a program or an application.
    BadName "bad-name",
    /// Nothing reads an option of that name.
    UnknownOption "unknown-option",
    /// An option that has to be there is not.
    MissingOption "missing-option",
    /// Options that exclude each other are given together, or one without the option that it needs.
    ConflictingOptions "conflicting-options",
    /// A value is taken for something else, or has no effect.
    OddValue "odd-value",
    /// A trigger is nested too deep, or has too many parts.
    TooComplex "too-complex",
    /// An argument of a command is longer than the system takes.
    TooLong "too-long",
    /// A script contains a secret, where everyone can read it.
    SecretInScript "secret-in-script",
    /// A secret or a user of the system that the operator does not allow.
    NotAllowed "not-allowed",
    /// A defaults file can't be imported.
    ImportFailed "import-failed",
    /// A register can't be read.
    RegisterUnreadable "register-unreadable",
    /// A path can't be read.
    PathUnreadable "path-unreadable",
    /// A question of a script to the outside was not asked, because the script is only checked.
    NotAsked "not-asked",
    /// A definition or an option is given at a place, or at a time, where it isn't allowed.
    OutOfPlace "out-of-place",
    /// Something of that name is defined already.
    NameTaken "name-taken",
    /// A definition refers to something of another project that does not share it.
    NotShared "not-shared",
    /// A schedule is begun, and neither ended nor taken in.
    ScheduleUnfinished "schedule-unfinished",
    /// The trigger of a schedule can never be met, or nothing begins it.
    TriggerNeverMet "trigger-never-met",
    /// A schedule, or a trigger, names a program that isn't defined.
    UnknownProgram "unknown-program",
    /// A trigger names a workflow that isn't defined.
    UnknownWorkflow "unknown-workflow",
    /// A trigger waits for a job of a workflow that has none.
    NoJobs "no-jobs",
    /// A trigger waits for periods of a workflow that has no schedule.
    NoPeriods "no-periods",
    /// The end of its own program has a schedule go again, for ever.
    GoesRound "goes-round",
    /// The schedule of a workflow can't be resolved.
    NoSchedule "no-schedule",
    /// Workflows wait for each other in a circle.
    Deadlock "deadlock",
    /// Slots wait for slots of another workflow that will never be.
    WaitsForever "waits-forever",
    /// A path, a job id or a job has a placeholder without a value.
    UnknownPlaceholder "unknown-placeholder",
    /// A placeholder is read in UTC, and has another value in the zone of its schedule.
    UtcPlaceholder "utc-placeholder",
    /// No day is as a cron expression has it.
    NeverFires "never-fires",
    /// A time window is shut at all times of a schedule.
    WindowShut "window-shut",
    /// A period lies across the start or the end of its workflow.
    UnalignedBound "unaligned-bound",
    /// A weekday is a number that means another day in another dialect of cron.
    AmbiguousWeekday "ambiguous-weekday",
    /// No connector or endpoint serves a path.
    PathUnserved "path-unserved",
    /// Two workflows write one path.
    PathWrittenTwice "path-written-twice",
    /// A file of `--config` is wrong.
    BadConfig "bad-config",
    /// The certificate of the server ends soon, or its new files can't be used.
    BadCertificate "bad-certificate",
    /// Definitions differ in the size of a pool.
    PoolDisputed "pool-disputed",
    /// A run takes more permits than its pool has, or more tokens than add up.
    PoolTooSmall "pool-too-small",
    /// The steps of a flow don't fit together.
    BadFlow "bad-flow",
    /// A source of facts can't be read.
    SourceFails "source-fails",
    /// Something that a source of facts has read is no fact, or is gone.
    SourceNotice "source-notice",
    /// A file on the disk of a node is ignored, whose definitions come from the log that nodes share.
    FileIgnored "file-ignored",
    /// Folders of runs can't be looked at or removed.
    HistoryFails "history-fails",
    /// The requests in the store of the log can't be read.
    InboxFails "inbox-fails",
    /// A request in the store of the log was set aside.
    RequestRefused "request-refused",
    /// A checkpoint can't be made or sent, or the log contradicts it.
    CheckpointFails "checkpoint-fails",
    /// Traces or lineage can't be sent.
    TelemetryFails "telemetry-fails",
    /// An alert can't be kept or sent.
    AlertFails "alert-fails",
    /// The description of an app is wrong.
    BadApp "bad-app",
    /// An app has nothing to run.
    NothingToRun "nothing-to-run",
    /// The description of identifiers is wrong.
    BadIdentifiers "bad-identifiers",
    /// A relation between job ids makes no sense.
    BadRelation "bad-relation",
    /// Jobs wait for each other in a circle.
    JobsGoRound "jobs-go-round",
    /// Jobs depend on dormant ones.
    ParentDormant "parent-dormant",
    /// There are more problems of the same kind than are reported one by one.
    MoreAlike "more-alike",
    /// A function is not there any more, or was changed.
    FunctionGone "function-gone",
    /// A function returned what it may not.
    BadAnswer "bad-answer",
    /// The two functions of a relation say different things.
    FunctionsDisagree "functions-disagree",
    /// A test makes no sense with the workflows that it is about.
    BadTest "bad-test",
}

impl fmt::Display for ProblemCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A refusal that the desk gives a script: its words and its kind.
#[derive(Debug)]
pub(crate) struct ScriptRefusal {
    pub(crate) code: ProblemCode,
    pub(crate) words: String,
}

impl ScriptRefusal {
    pub(crate) fn new(code: ProblemCode, words: impl Into<String>) -> ScriptRefusal {
        ScriptRefusal { code, words: words.into() }
    }

    /// For the prelude: the code and the words, each as a text.
    pub(crate) fn told(self) -> Vec<String> {
        vec![self.code.to_string(), self.words]
    }
}

/// Most of what is refused is an argument.
impl From<String> for ScriptRefusal {
    fn from(words: String) -> ScriptRefusal {
        ScriptRefusal::new(ProblemCode::BadArgument, words)
    }
}

/// The code and the message of a refusal, for the prelude.
pub(crate) fn refused(checked: Result<(), ScriptRefusal>) -> Option<Vec<String>> {
    checked.err().map(ScriptRefusal::told)
}

/// The kind of a fault between workflows with job ids.
#[must_use]
pub fn fault_code(fault: &Fault) -> ProblemCode {
    match fault.kind {
        FaultKind::Mistake => ProblemCode::BadApp,
        FaultKind::Relation => ProblemCode::BadRelation,
        FaultKind::Circle => ProblemCode::JobsGoRound,
        FaultKind::Dormant => ProblemCode::ParentDormant,
    }
}
