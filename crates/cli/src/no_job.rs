//! Why `kelos run` did no job, in words: what the leader knows of those that it could have done.

use std::sync::Arc;
use std::time::Duration;

use kelos_model::{SlotRef, SlotState, WorkflowId};
use kelos_wire::{Code, SlotDto, WhyDto, words};

use crate::address::{Query, slot_path};
use crate::client::Client;
use crate::failure::Failure;
use crate::fleet::Fleet;
use crate::text::{count, operand, quoted};

/// No job came.
pub(crate) const NO_JOB: u8 = 4;

/// The first and the longest wait between two looks at whether a job has ended without a run.
const LOOKS: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(1)];

/// Jobs that are counted.
const MOST: usize = 1000;

/// Waits until a job has ended though nobody ran it: it is not valid, or somebody skipped or killed it.
pub(crate) async fn ended_unrun(fleet: &Arc<Fleet>, job: &SlotRef) {
    let path = slot_path(job.workflow.as_str(), &job.key.short());
    let [mut wait, longest] = LOOKS;
    loop {
        let look = |client: &Client| client.get::<SlotDto>("read the job", &path, &Query::new());
        // Whoever does not answer now is asked again.
        let found = tokio::task::block_in_place(|| fleet.ask(look));
        if found.is_ok_and(|slot| is_final(&slot.state) && slot.last_run == 0) {
            return;
        }
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(longest);
    }
}

/// Whether a slot in this state has ended.
pub(crate) fn is_final(state: &Code) -> bool {
    SlotState::parse(state.as_str()).is_some_and(SlotState::is_final)
}

/// The reason that this job was not run.
pub(crate) fn of_job(fleet: &Fleet, job: &SlotRef, within: Duration) -> Failure {
    let (app, id) = (&job.workflow, job.key.short());
    match why(fleet, app.as_str(), &id) {
        Some(why) if why.state.as_ref().is_some_and(is_final) => {
            Failure::bad(format!("run {app}@{id}: {}", ended(&why)))
        }
        why => {
            let waits = why.as_ref().map(|why| format!(": {}", blockers(why))).unwrap_or_default();
            let what = format!("run {app}@{id}: it could not start within {} s{waits}", within.as_secs_f64());
            Failure::new(NO_JOB, what).hint(format!(
                "it stays submitted; `kelos why {} {}` says what it waits for",
                operand(app.as_str()),
                quoted(&id)
            ))
        }
    }
}

/// The reason that there was no job of an app.
pub(crate) fn of_app(fleet: &Fleet, app: &WorkflowId, within: Duration) -> Failure {
    let none = format!("find a job of {app} within {} s", within.as_secs_f64());
    let (waiting, more) = fleet.ask(|client| waiting(client, app)).unwrap_or_default();
    let Some(one) = waiting.first() else {
        return Failure::new(NO_JOB, none).hint(format!("`kelos submit -a {app} -j JOB_ID` submits one"));
    };
    let job = one.slot.key.to_string();
    let why = why(fleet, app.as_str(), &job).unwrap_or_default();
    let is_for_parents = why.trigger.as_ref().is_some_and(|trigger| trigger.kind == "parents");
    let for_parents = if is_for_parents { " for parents" } else { "" };
    let many = if more { format!("more than {MOST} jobs") } else { count(waiting.len(), "job") };
    let wait = if waiting.len() == 1 { "waits" } else { "wait" };
    let such = format!("such as {}: {}", one.slot, blockers(&why));
    let what = format!("{none}: {many} of {app} {wait}{for_parents}, {such}");
    let app = operand(app.as_str());
    Failure::new(NO_JOB, what)
        .hint(format!("`kelos why {app} {}` says more, and `kelos slots {app}` lists them", quoted(&job)))
}

fn waiting(client: &Client, app: &WorkflowId) -> Result<(Vec<SlotDto>, bool), Failure> {
    let mut query = Query::new();
    query.add("workflow", app);
    query.add("state", "waiting,held,backoff");
    client.list("look for jobs that wait", "/slots", &query, MOST)
}

fn why(fleet: &Fleet, app: &str, job: &str) -> Option<WhyDto> {
    let path = format!("{}/why", slot_path(app, job));
    fleet.ask(|client| client.get("explain the job", &path, &Query::new())).ok()
}

/// `it was skipped: the job is not valid: expected n to be one of 1, 2`
fn ended(why: &WhyDto) -> String {
    let state = why.state.as_ref().map_or("gone", Code::as_str);
    match why.decision.as_ref().and_then(|event| words::explanation(event)) {
        Some(explained) => format!("it was {state}: {}", explained.text),
        None => format!("it was {}", why.headline),
    }
}

/// The obstacles of a job.
fn blockers(why: &WhyDto) -> String {
    if why.blockers.is_empty() { why.headline.clone() } else { why.blockers.join("; ") }
}
