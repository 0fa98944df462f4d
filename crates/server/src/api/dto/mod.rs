//! Answers made from results of the library, which the crate of the wire does not know.

mod critical_path;
mod event_schedule;
mod flow;
mod project;

use kelos_explain::roots::{Root, WayStep};
use kelos_explain::why::Account;
use kelos_model::secret::masks;
use kelos_sandbox::{Problem, Severity};
use kelos_store::{PastDefinition, SlotRow};
use kelos_wire::{
    EventDto, ExplanationDto, Instant, ListDto, PageDto, PastDefinitionDto, ProblemDto, RootDto, RunDto, SlotDto,
    WayStepDto, WhyDto,
};

pub(super) use event_schedule::{has_kind, schedule, zone_of};
pub use project::deployment;

/// An answer made from a result of the library.
pub(crate) trait FromLibrary<M>: Sized {
    /// The wire's form of it.
    fn from_library(said: M) -> Self;
}

/// A page of answers.
pub(super) fn page<M, T>(page: kelos_store::Page<M>, answer: impl FnMut(M) -> T) -> PageDto<T> {
    PageDto { items: page.rows.into_iter().map(answer).collect(), next: page.next }
}

/// A list of answers.
pub(super) fn list<M, T: FromLibrary<M>>(rows: impl IntoIterator<Item = M>) -> ListDto<T> {
    ListDto { items: rows.into_iter().map(T::from_library).collect() }
}

impl FromLibrary<SlotRow> for SlotDto {
    fn from_library(row: SlotRow) -> SlotDto {
        SlotDto::new(&row.id, row.slot)
    }
}

impl FromLibrary<Account> for WhyDto {
    fn from_library(why: Account) -> WhyDto {
        WhyDto {
            slot: (&why.slot).into(),
            at: why.at.into(),
            state: why.state.map(|state| state.as_str().into()),
            since: why.since.map(Instant),
            deadline: why.deadline.map(Instant),
            late: why.late,
            deadline_words: why.deadline_words(),
            expected_end: why.expected.as_ref().map(|expected| Instant(expected.end)),
            outlook: why.outlook(),
            headline: why.headline,
            blockers: why.blockers,
            no_group: why.no_group,
            out_of_range: why.out_of_range,
            definition_version: why.version.as_ref().map(|version| version.number),
            project_version: why.version.and_then(|version| version.project).map(String::from),
            nameless_children: why.nameless_children,
            next_look: why.next_look.map(Instant),
            decision: why.decision.map(EventDto::from),
            trigger: why.trigger.map(ExplanationDto::from),
            found_at: why.found_at.map(Instant),
            constraints: why.constraints.map(ExplanationDto::from),
            constraints_at: why.constraints_at.map(Instant),
            expires: why.expires.map(Instant),
            runs: why.runs.into_iter().map(RunDto::from).collect(),
            ..WhyDto::default()
        }
    }
}

impl FromLibrary<Root> for RootDto {
    fn from_library(root: Root) -> RootDto {
        let step = |step: &WayStep| WayStepDto {
            slot: (&step.slot).into(),
            state: step.state.map(|state| state.as_str().into()),
            writes: step.writes.clone(),
        };
        RootDto {
            slot: (&root.slot).into(),
            state: root.state.map(|state| state.as_str().into()),
            kind: root.kind.as_str().into(),
            text: root.sentence(),
            way: root.way.iter().map(step).collect(),
            left_out: root.left_out,
            cause: root.cause,
            path: root.path,
            run: root.run.map(|run| run.number),
            alike: root.alike,
            last_lines: Vec::new(),
        }
    }
}

impl FromLibrary<PastDefinition> for PastDefinitionDto {
    fn from_library(past: PastDefinition) -> PastDefinitionDto {
        PastDefinitionDto {
            version: past.version,
            at: past.at.into(),
            definition: (&past.definition).into(),
            source: past.source.as_deref().map(masks::masked_source),
        }
    }
}

impl FromLibrary<Problem> for ProblemDto {
    fn from_library(problem: Problem) -> ProblemDto {
        ProblemDto {
            severity: match problem.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
            }
            .into(),
            code: problem.code.as_str().into(),
            file: problem.file,
            line: problem.line,
            column: problem.column,
            message: problem.message,
            hint: problem.hint,
            workflow: problem.workflow.map(String::from),
            kept_last_good: problem.kept_last_good,
            source_line: problem.source_line.as_deref().map(masks::masked_source),
        }
    }
}
