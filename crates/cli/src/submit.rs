//! `kelos submit`: opening jobs by their ids, with the ancestors that are missing.

use serde_json::{Value, json};

use crate::client::{items, number, slot, text};
use crate::failure::Failure;
use crate::fleet;
use crate::options::{Because, Door};
use crate::render;
use crate::text::{self as words, count};

#[derive(clap::Args)]
pub(crate) struct SubmitArgs {
    /// Apps of the jobs
    #[arg(short, long = "app", value_name = "APP", required = true, num_args = 1.., alias = "app_name")]
    apps: Vec<String>,
    /// Job ids; each is submitted for each app
    #[arg(short, long = "job", value_name = "JOB_ID", required = true, num_args = 1.., visible_alias = "job-id", alias = "job_id")]
    jobs: Vec<String>,
    /// Reopen jobs that have ended, together with everything downstream that has ended
    #[arg(long)]
    readd: bool,
    /// Priority: 1 runs first, 100 last [default: 100]
    #[arg(long, value_name = "P", value_parser = clap::value_parser!(u8).range(1..=100))]
    priority: Option<u8>,
    /// Preview only: change nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    because: Because,
    #[command(flatten)]
    door: Door,
}

const DOING: &str = "submit";

pub(crate) fn run(args: &SubmitArgs) -> Result<u8, Failure> {
    // Without a server this process is one, until the jobs are stored.
    let answer = fleet::ask(&args.door, |client| client.post(DOING, "/jobs", &args.request()))?;
    if args.door.form.json {
        words::json(&answer);
        return Ok(0);
    }
    let lines = if args.dry_run { expected(&answer) } else { items(&answer, "items").iter().flat_map(told).collect() };
    lines.iter().for_each(words::line);
    Ok(0)
}

impl SubmitArgs {
    /// Each job id with each app, ids outer.
    fn request(&self) -> Value {
        let named = |id| self.apps.iter().map(move |app| json!({ "workflow": app, "job": id }));
        let jobs: Vec<Value> = self.jobs.iter().flat_map(named).collect();
        let mut request = json!({ "jobs": jobs, "readd": self.readd, "dryRun": self.dry_run });
        if let Some(priority) = self.priority {
            request["priority"] = priority.into();
        }
        if let Some(reason) = &self.because.reason {
            request["reason"] = reason.as_str().into();
        }
        request
    }
}

/// What became of a job, and what to look at where it waits for nobody.
fn told(one: &Value) -> Vec<String> {
    [became(one)].into_iter().chain(warning(one)).chain(nameless(one)).collect()
}

/// A mistyped id has no parents.
fn warning(one: &Value) -> Option<String> {
    one["noGroup"].as_str().map(|why| format!("  warning: it waits for no job: {why}"))
}

/// A child whose id can't be written is never opened.
fn nameless(one: &Value) -> Option<String> {
    one["namelessChildren"].as_str().map(|why| format!("  warning: it does not open all of its children: {why}"))
}

/// `app1@20140601_1 was opened`
fn became(one: &Value) -> String {
    let name = slot(one);
    match text(one, "result") {
        "existed" => format!("{name} exists: it is {}", render::paint(text(one, "state"), text(one, "state"))),
        "reopened" => match usize::try_from(number(one, "descendants")).unwrap_or(usize::MAX) {
            0 => format!("{name} was opened again"),
            others => format!("{name} was opened again, with {others} more that depend on it"),
        },
        result => format!("{name} was {result}"),
    }
}

/// A line for each job that would have to do with it, in the order in which they would run.
fn expected(answer: &Value) -> Vec<String> {
    let rows = items(answer, "items");
    let width = rows.iter().map(|one| slot(one).chars().count()).max().unwrap_or(0);
    let mut lines: Vec<String> = rows
        .iter()
        .flat_map(|one| {
            let line = format!("  {:<width$}  {:<10}  {}", slot(one), text(one, "role"), fate(one));
            [line.trim_end().to_owned()].into_iter().chain(warning(one).map(|warning| format!("  {warning}")))
        })
        .collect();
    let runs = usize::try_from(number(&answer["counts"], "runs")).unwrap_or(usize::MAX);
    let more = if answer["cut"] == true { ", and more than is shown" } else { "" };
    lines.insert(0, format!("{} would run{more}, in this order", count(runs, "job")));
    lines.push("nothing was changed".to_owned());
    lines
}

/// What would become of a job, in words.
fn fate(one: &Value) -> String {
    let state = one["state"].as_str();
    match (text(one, "fate"), state) {
        ("runs", _) if one["askedWhenOpened"] == true => {
            "would run, if a function of its app finds it valid".to_owned()
        }
        ("runs", None) => "would run".to_owned(),
        ("runs", Some("waiting")) => "waits already, and would run".to_owned(),
        ("runs", Some(state)) => format!("is {state}, and would run again"),
        ("under-way", Some(state)) => format!("is {state}"),
        ("ended", Some(state)) => format!("is {state}, and stays so"),
        ("paused", Some(state @ ("waiting" | "queued" | "backoff" | "held"))) => {
            format!("is {state}: its workflow is paused")
        }
        ("paused", _) => "would wait: its workflow is paused".to_owned(),
        ("skipped", _) => "would be skipped: it is not valid".to_owned(),
        ("blocked", _) if one["noWay"].is_string() => format!("would never run: {}", text(one, "noWay")),
        ("blocked", _) => {
            let mut by: Vec<String> = items(one, "blockedBy").iter().map(slot).collect();
            by.extend(Some(number(one, "moreBlockers")).filter(|more| *more > 0).map(|more| format!("{more} more")));
            if by.is_empty() { "would wait".to_owned() } else { format!("would wait for {}", by.join(", ")) }
        }
        (fate, _) => fate.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_became_of_a_job_is_a_sentence() {
        let one = |result: &str, more: Value| {
            let mut one = json!({ "workflow": "a", "job": "1", "result": result });
            one.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            became(&one)
        };
        assert_eq!(one("opened", json!({})), "a@1 was opened");
        assert_eq!(one("existed", json!({ "state": "running" })), "a@1 exists: it is running");
        assert_eq!(one("reopened", json!({ "descendants": 0 })), "a@1 was opened again");
        assert_eq!(one("reopened", json!({ "descendants": 1 })), "a@1 was opened again, with 1 more that depend on it");
    }

    #[test]
    fn a_job_that_no_group_is_about_is_warned_of() {
        let one = json!({ "workflow": "c", "job": "9", "result": "opened", "noGroup": "no group of c is about it: n 9 is not 1" });
        let warning = "  warning: it waits for no job: no group of c is about it: n 9 is not 1";
        assert_eq!(told(&one), ["c@9 was opened", warning]);
        let why = "a job of b that can't be named: x is empty, and with it the whole of {x}";
        let one = json!({ "workflow": "c", "job": "9", "result": "opened", "namelessChildren": why });
        assert_eq!(told(&one)[1], format!("  warning: it does not open all of its children: {why}"));
    }

    #[test]
    fn a_dry_run_says_what_comes_of_each_job() {
        let answer = json!({ "dryRun": true, "cut": false, "counts": { "runs": 1, "blocked": 1 }, "items": [
            { "workflow": "app1", "job": "1", "state": null, "role": "ancestor", "fate": "runs" },
            { "workflow": "b", "job": "1", "state": "failed", "role": "asked", "fate": "blocked",
              "blockedBy": [{ "workflow": "c", "job": "1" }], "moreBlockers": 2 },
            { "workflow": "p", "job": "1", "state": null, "role": "ancestor", "fate": "paused" },
        ]});
        let expected_lines = [
            "1 job would run, in this order",
            "  app1@1  ancestor    would run",
            "  b@1     asked       would wait for c@1, 2 more",
            "  p@1     ancestor    would wait: its workflow is paused",
            "nothing was changed",
        ];
        assert_eq!(expected(&answer), expected_lines);
    }
}
