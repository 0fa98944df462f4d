//! The meaning of a job's status for its run.

use kelos_model::{FailureCode, Outcome};

use super::rest::{Job, JobAction};

/// More of a reason than this is not kept.
const LONGEST_REASON: usize = 600;

/// The status of a job by Oozie's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JobStatus {
    /// It is submitted, and waits to be started.
    Prepared,
    Running,
    /// The job was suspended in Oozie, and may be resumed there.
    Suspended,
    Succeeded,
    /// It failed or was killed; its details say why.
    Ended,
    /// A status that is not known here: taken for running, because a second run would do harm.
    Unheard,
}

impl JobStatus {
    pub(super) fn of(status: &str) -> JobStatus {
        match status {
            "PREP" => JobStatus::Prepared,
            "RUNNING" => JobStatus::Running,
            "SUSPENDED" => JobStatus::Suspended,
            "SUCCEEDED" => JobStatus::Succeeded,
            "FAILED" | "KILLED" => JobStatus::Ended,
            _ => JobStatus::Unheard,
        }
    }
}

/// The outcome of a run whose job failed or was killed. `wanted`: Kelos had asked Oozie to kill it.
pub(super) fn outcome(id: &str, job: &Job, wanted: bool) -> Outcome {
    let killed = job.status.as_deref() == Some("KILLED");
    if killed && wanted {
        return Outcome::Killed;
    }
    let mut reason = match failed_action(job) {
        Some(action) => of_action(id, action),
        None if killed => format!("Oozie job {id} was killed in Oozie"),
        None => format!("Oozie job {id} failed, and no action says why: see its log in Oozie"),
    };
    if let Some((end, _)) = reason.char_indices().nth(LONGEST_REASON) {
        reason.truncate(end);
        reason.push('…');
    }
    if let Some(url) = job.console_url.as_deref().filter(|url| is_shown(url)) {
        reason.push_str(&format!(" ({url})"));
    }
    Outcome::Failed { reason, exit_status: None, code: Some(FailureCode::REPORTED) }
}

/// The action that brought the job down: one that failed, rather than one that was killed along with it, and rather
/// the action itself than the kill node that it led to.
fn failed_action(job: &Job) -> Option<&JobAction> {
    let in_error = |action: &&JobAction| matches!(action.status.as_deref(), Some("ERROR" | "FAILED"));
    let told = |action: &&JobAction| action.error_code.as_deref().is_some_and(is_shown);
    let by_itself = |action: &&JobAction| action.error_code.as_deref() != Some(KILL_NODE);
    let all = || job.actions.iter();
    all().find(|action| in_error(action) && by_itself(action)).or_else(|| all().find(|action| told(action)))
}

/// The code of a kill node's message.
const KILL_NODE: &str = "E0729";

fn of_action(id: &str, action: &JobAction) -> String {
    let name = action.name.as_deref().unwrap_or("?");
    let shown = |text: &Option<String>| text.as_deref().filter(|text| is_shown(text)).map(str::trim).map(str::to_owned);
    let (code, message) = (shown(&action.error_code), shown(&action.error_message));
    let why = match (code, message) {
        (Some(code), Some(message)) if message.starts_with(&code) => message,
        (Some(code), Some(message)) => format!("{code}: {message}"),
        (code, message) => code.or(message).unwrap_or_else(|| "no reason given".to_owned()),
    };
    let log = action.console_url.as_deref().filter(|url| is_shown(url) && *url != "-");
    let log = log.map(|url| format!(", log: {url}")).unwrap_or_default();
    format!("action \"{name}\" of Oozie job {id} failed: {why}{log}")
}

fn is_shown(text: &str) -> bool {
    !text.trim().is_empty()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn reason(job: serde_json::Value, wanted: bool) -> Outcome {
        outcome("7-W", &serde_json::from_value(job).unwrap(), wanted)
    }

    #[test]
    fn the_action_that_failed_is_named_rather_than_the_kill_node() {
        let failed = reason(
            json!({"status": "KILLED", "consoleUrl": "http://o/?job=7-W", "actions": [
                {"name": ":start:", "status": "OK", "errorCode": null},
                {"name": "fail", "status": "OK", "errorCode": "E0729", "errorMessage": "it broke"},
                {"name": "count", "status": "ERROR", "errorCode": "JA018", "errorMessage": "Output exists", "consoleUrl": "http://rm/1"},
            ]}),
            false,
        );
        let expected =
            "action \"count\" of Oozie job 7-W failed: JA018: Output exists, log: http://rm/1 (http://o/?job=7-W)";
        assert_eq!(
            failed,
            Outcome::Failed { reason: expected.to_owned(), exit_status: None, code: Some(FailureCode::REPORTED) }
        );
    }

    /// An answer that was recorded from a real Oozie.
    fn recorded(file: &str) -> Job {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/oozie").join(file);
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        serde_json::from_str(text.split_once("\n\n").unwrap().1).unwrap()
    }

    #[test]
    fn answers_of_a_real_oozie_are_understood() {
        let standing = |file: &str| JobStatus::of(recorded(file).status.as_deref().unwrap());
        assert_eq!(standing("info-prep.http"), JobStatus::Prepared);
        assert_eq!(standing("info-running.http"), JobStatus::Running);
        assert_eq!(standing("info-suspended.http"), JobStatus::Suspended);
        assert_eq!(standing("info-succeeded.http"), JobStatus::Succeeded);
        let reason = |file: &str| match outcome("7-W", &recorded(file), false) {
            Outcome::Failed { reason, .. } => reason.split(" (http").next().unwrap().to_owned(),
            other => panic!("{other:?}"),
        };
        let expected = "action \"work\" of Oozie job 7-W failed: FS009: chmod, path(s) that matches \
                        [hdfs://namenode.example:8020/user/celos/is-not-there] does not exist";
        assert_eq!(reason("info-killed-by-error.http"), expected);
        let expected = "action \"work\" of Oozie job 7-W failed: EL_ERROR: variable [nobodySetThis] cannot be resolved";
        assert_eq!(reason("info-failed.http"), expected);
        assert_eq!(reason("info-killed.http"), "Oozie job 7-W was killed in Oozie");
    }

    #[test]
    fn a_kill_node_that_nothing_led_to_gives_its_message() {
        let job = json!({"status": "KILLED", "actions": [
            {"name": "no-data", "status": "OK", "errorCode": "E0729", "errorMessage": "no data", "consoleUrl": "-"}]});
        let expected = "action \"no-data\" of Oozie job 7-W failed: E0729: no data";
        assert_eq!(
            reason(job, false),
            Outcome::Failed { reason: expected.to_owned(), exit_status: None, code: Some(FailureCode::REPORTED) }
        );
    }

    #[test]
    fn killed_means_killed_only_where_kelos_asked_for_it() {
        let job = json!({"status": "KILLED", "actions": [{"name": "a", "status": "KILLED"}]});
        assert_eq!(reason(job.clone(), true), Outcome::Killed);
        let expected = "Oozie job 7-W was killed in Oozie";
        assert_eq!(
            reason(job, false),
            Outcome::Failed { reason: expected.to_owned(), exit_status: None, code: Some(FailureCode::REPORTED) }
        );
    }

    #[test]
    fn long_reasons_are_cut() {
        let job = json!({"status": "FAILED", "actions": [{"name": "a", "status": "ERROR", "errorMessage": "ä".repeat(5000)}]});
        let Outcome::Failed { reason, .. } = reason(job, false) else { panic!("it failed") };
        assert_eq!(reason.chars().count(), LONGEST_REASON + 1);
    }

    #[test]
    fn unheard_statuses_are_no_end() {
        assert_eq!(JobStatus::of("IGNORED"), JobStatus::Unheard);
        assert_eq!(JobStatus::of(""), JobStatus::Unheard);
    }
}
