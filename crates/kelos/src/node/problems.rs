//! The problems of a node that no script has.

#[cfg(feature = "checkpoints")]
use kelos_checkpoints::Recorder;
use kelos_core::TakenName;
use kelos_engine::inbox::InboxStatus;
use kelos_engine::sources::SourceStatus;
use kelos_model::references::MissingConsent;
use kelos_model::time::text::format_short;
use kelos_sandbox::{Problem, ProblemCode, Severity};
use kelos_store::log::RefusedRequest;

use crate::history::History;

/// The problems of a source of facts, which has no file.
pub(super) fn source_problems(source: &SourceStatus) -> Vec<Problem> {
    let of = |code, message| Problem::error(&source.name, code, message);
    let hint =
        source.answered_at.map_or("it has not answered yet", |_| "it is tried again, and nothing is lost meanwhile");
    let fails = source.problem.iter().map(|problem| Problem {
        hint: Some(hint.to_owned()),
        ..of(ProblemCode::SourceFails, format!("failed to {problem}"))
    });
    let notices = source.notices.iter().map(|notice| Problem {
        severity: Severity::Warning,
        ..of(ProblemCode::SourceNotice, format!("{}: {}", format_short(notice.at), notice.text))
    });
    fails.chain(notices).collect()
}

/// The problems of the requests in the store of the log.
pub(super) fn inbox_problems(inbox: &InboxStatus) -> Vec<Problem> {
    let fails = inbox.problem.iter().map(|problem| Problem {
        hint: Some("it is tried again, and nothing is lost meanwhile".to_owned()),
        ..Problem::error("inbox", ProblemCode::InboxFails, format!("failed to {problem}"))
    });
    let refused = inbox.refused.iter().map(|request| {
        let RefusedRequest { number, user, workflow, key, problem } = request;
        let message = format!("request {number} of {user}, to start {workflow}@{key}, was set aside: {problem}");
        let hint = format!(
            "in its table, set the problem of row {number} to NULL to try it again once it can be done, or delete the row"
        );
        Problem { hint: Some(hint), ..Problem::error("inbox", ProblemCode::RequestRefused, message) }
    });
    fails.chain(refused).collect()
}

/// The problem of folders of runs that can't be looked at or removed.
pub(super) fn history_problem(history: &History) -> Option<Problem> {
    let problem = history.problem()?;
    let hint = "it is tried again within hours; kelos storage says what takes how much".to_owned();
    let problem = Problem::error("history", ProblemCode::HistoryFails, format!("failed to {problem}"));
    Some(Problem { severity: Severity::Warning, hint: Some(hint), ..problem })
}

/// The problems of checkpoints, which have no file.
#[cfg(feature = "checkpoints")]
pub(super) fn checkpoint_problems(recorder: &Recorder) -> Vec<Problem> {
    let own = recorder.problems().into_iter().map(|problem| {
        let hint = Some("compare the log with the checkpoints: kelos verify --against PLACE".to_owned());
        Problem { hint, ..Problem::error("checkpoints", ProblemCode::CheckpointFails, problem) }
    });
    let away = recorder.targets().into_iter().filter_map(|target| {
        let lacks = target.lacks;
        let hint = format!(
            "it lacks {lacks} checkpoint{}; it is tried again, and gets them then",
            if lacks == 1 { "" } else { "s" }
        );
        let problem =
            Problem::error(&target.name, ProblemCode::CheckpointFails, format!("failed to {}", target.problem?));
        Some(Problem { hint: Some(hint), ..problem })
    });
    own.chain(away).collect()
}

/// The problem of a definition or a script that refers to something of another project which does not share it.
#[must_use]
pub fn not_shared(unshared: &MissingConsent) -> Problem {
    let hint = format!("in the script of the project that it belongs to: {}", unshared.line());
    let consequence = if unshared.workflow.is_some() { "it lies dormant" } else { "it is not loaded" };
    let message = format!("{unshared}; {consequence}");
    let problem = Problem::error(&format!("{}.js", unshared.project), ProblemCode::NotShared, message);
    Problem { hint: Some(hint), workflow: unshared.workflow.clone(), ..problem }
}

/// The problem of a definition whose name is taken.
pub(super) fn name_taken(TakenName { workflow, source, holder }: TakenName) -> Problem {
    let message = format!("{workflow} is left out: a workflow of that name is {}", holder.whose());
    let file = if source.file.is_empty() { "(program)" } else { &source.file };
    Problem {
        line: source.line,
        hint: Some("give it another name, or take the other one away".to_owned()),
        workflow: Some(workflow),
        ..Problem::error(file, ProblemCode::NameTaken, message)
    }
}
