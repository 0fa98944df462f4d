//! Workers: those that are away, and jobs that no worker can take.

use std::collections::BTreeSet;

use kelos_wire::WorkerDto;

use super::named;
use crate::doctor::diagnosis::Diagnosis;
use crate::text::count;

const CHECK: &str = "workers";

/// The labels that the jobs of a workflow need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::doctor) struct LabelNeed {
    pub(in crate::doctor) workflow: String,
    pub(in crate::doctor) labels: BTreeSet<String>,
}

/// Judges the workers of a server, and whether one can take the jobs of each workflow.
pub(in crate::doctor) fn judge(workers: &[WorkerDto], needs: &[LabelNeed]) -> Vec<Diagnosis> {
    let away: Vec<String> = workers
        .iter()
        .filter_map(|one| Some(format!("{} since {}", one.name, one.away_since.as_ref()?.short())))
        .collect();
    let mut found = Vec::new();
    if !away.is_empty() {
        let words = format!("the server has not heard of {}", named(&away));
        let advice =
            "look at the machine, and at the network between them; when its lease has run out, its runs are made again";
        found.push(Diagnosis::warning(CHECK, words, advice));
    }
    // Without any worker the server may run jobs itself: labels say nothing then.
    if !workers.is_empty() {
        let lacking: Vec<String> = needs.iter().filter(|need| !is_met(need, workers)).map(lacks).collect();
        if !lacking.is_empty() {
            let words = format!("no worker can take the jobs of {}", named(&lacking));
            found.push(Diagnosis::wrong(CHECK, words, "start one with these labels: kelos worker --labels"));
        }
    }
    if found.is_empty() {
        let words = match workers.len() {
            0 => "none is connected: the server runs jobs itself, or they wait".to_owned(),
            connected => format!("{} connected", count(connected, "worker")),
        };
        found.push(Diagnosis::ok(CHECK, words));
    }
    found
}

fn is_met(need: &LabelNeed, workers: &[WorkerDto]) -> bool {
    workers.iter().any(|worker| {
        let takes = worker.workflows.is_empty() || worker.workflows.contains(&need.workflow);
        takes && !worker.leaves && need.labels.iter().all(|label| worker.labels.contains(label))
    })
}

fn lacks(need: &LabelNeed) -> String {
    match need.labels.is_empty() {
        true => need.workflow.clone(),
        false => format!("{} ({})", need.workflow, need.labels.iter().cloned().collect::<Vec<_>>().join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worker(name: &str, labels: &[&str]) -> WorkerDto {
        let labels = labels.iter().map(|label| (*label).to_owned()).collect();
        WorkerDto { name: name.to_owned(), labels, ..WorkerDto::default() }
    }

    fn need(workflow: &str, labels: &[&str]) -> LabelNeed {
        let labels = labels.iter().map(|label| (*label).to_owned()).collect();
        LabelNeed { workflow: workflow.to_owned(), labels }
    }

    fn told(workers: &[WorkerDto], needs: &[LabelNeed]) -> Vec<String> {
        judge(workers, needs).iter().map(|one| format!("{:?} {}", one.level, one.found)).collect()
    }

    #[test]
    fn workers_that_are_away_are_named() {
        assert_eq!(
            told(&[], &[need("a", &["gpu"])]),
            ["Ok none is connected: the server runs jobs itself, or they wait"]
        );
        let since = "2026-11-26T16:00:00.000Z".parse::<jiff::Timestamp>().expect("a time");
        let lost = WorkerDto { away_since: Some(since.into()), ..worker("w2", &[]) };
        let both = [worker("w1", &[]), lost];
        assert_eq!(told(&both, &[]), ["Warning the server has not heard of w2 since 2026-11-26T16:00Z"]);
        assert_eq!(told(&both[..1], &[]), ["Ok 1 worker connected"]);
    }

    #[test]
    fn jobs_that_no_worker_can_take_are_wrong() {
        let workers = [worker("w1", &["gpu"]), WorkerDto { leaves: true, ..worker("w2", &["eu", "gpu"]) }];
        let needs = [need("a", &["gpu"]), need("b", &["eu", "gpu"]), need("c", &[])];
        assert_eq!(told(&workers, &needs), ["Wrong no worker can take the jobs of b (eu, gpu)"]);
        let limited = [WorkerDto { workflows: vec!["a".to_owned()], ..worker("w1", &["gpu"]) }];
        assert_eq!(told(&limited, &needs), ["Wrong no worker can take the jobs of b (eu, gpu); c"]);
    }
}
