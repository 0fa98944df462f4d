//! `kelos submit`: opening jobs by their ids, with the ancestors that are missing.

use kelos_model::WorkflowId;
use kelos_wire::{Code, ExpectedDto, JobName, OutlookDto, SubmitRequest, SubmittedDto, SubmittedListDto};
use serde::de::DeserializeOwned;

use crate::client::Reply;
use crate::connection;
use crate::failure::Failure;
use crate::options::{ArgumentOptions, Because, Door};
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
    #[command(flatten)]
    arguments: ArgumentOptions,
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
    if args.dry_run {
        return submit(args, expected);
    }
    submit(args, |answer: &SubmittedListDto| answer.items.iter().flat_map(told).collect())
}

fn submit<T: DeserializeOwned>(args: &SubmitArgs, lines: impl Fn(&T) -> Vec<String>) -> Result<u8, Failure> {
    args.request(&args.apps)?;
    // Without a server this process is one, until the jobs are stored.
    let answer: Reply<T> = connection::ask(&args.door, &args.apps, |client| {
        client.by_names(DOING, &args.apps, |apps| client.post(DOING, "/jobs", &args.request(apps)?))
    })?;
    if args.door.form.json {
        words::json(&answer);
    } else {
        lines(&answer).iter().for_each(words::line);
    }
    Ok(0)
}

impl SubmitArgs {
    /// Each job id with each app, ids outer.
    fn request(&self, apps: &[String]) -> Result<SubmitRequest, Failure> {
        let id = |app: &String| WorkflowId::new(app).map_err(|error| Failure::usage(format!("{DOING}: {error}")));
        let apps = apps.iter().map(id).collect::<Result<Vec<_>, _>>()?;
        let named = |job: &String| apps.iter().map(|app| JobName { workflow: app.clone(), job: job.clone() }).collect();
        Ok(SubmitRequest {
            jobs: self.jobs.iter().flat_map(|job| -> Vec<JobName> { named(job) }).collect(),
            priority: self.priority.map(i32::from),
            readd: self.readd,
            arguments: self.arguments.read(DOING)?,
            reason: self.because.reason.clone(),
            dry_run: self.dry_run,
        })
    }
}

/// The result for a job, and a hint if it has no parents.
fn told(one: &SubmittedDto) -> Vec<String> {
    let nameless = one.nameless_children.as_ref();
    // A child whose id can't be written is never opened.
    let nameless = nameless.map(|why| format!("  warning: it does not open all of its children: {why}"));
    [became(one)].into_iter().chain(warning(one.no_group.as_ref())).chain(nameless).collect()
}

/// A mistyped id has no parents.
fn warning(no_group: Option<&String>) -> Option<String> {
    no_group.map(|why| format!("  warning: it waits for no job: {why}"))
}

/// `app1@20140601_1 was opened`
fn became(one: &SubmittedDto) -> String {
    let name = &one.slot;
    match one.result.as_str() {
        "existed" => {
            let state = one.state.as_ref().map_or("there", Code::as_str);
            format!("{name} exists: it is {}", render::paint(state, state))
        }
        "reopened" => match one.descendants.unwrap_or(0) {
            0 => format!("{name} was opened again"),
            others => format!("{name} was opened again, with {others} more that depend on it"),
        },
        result => format!("{name} was {result}"),
    }
}

/// A line for each job that would have to do with it, in the order in which they would run.
fn expected(answer: &OutlookDto) -> Vec<String> {
    let rows = &answer.items;
    let width = rows.iter().map(|one| one.slot.to_string().chars().count()).max().unwrap_or(0);
    let mut lines: Vec<String> = rows
        .iter()
        .flat_map(|one| {
            let line = format!("  {:<width$}  {:<10}  {}", one.slot.to_string(), one.role, fate(one));
            let warning = warning(one.no_group.as_ref()).map(|warning| format!("  {warning}"));
            [line.trim_end().to_owned()].into_iter().chain(warning)
        })
        .collect();
    let runs = answer.counts.get("runs").copied().unwrap_or(0);
    let more = if answer.cut { ", and more than is shown" } else { "" };
    lines.insert(0, format!("{} would run{more}, in this order", count(runs, "job")));
    lines.push("nothing was changed".to_owned());
    lines
}

/// The preview of a job in words.
fn fate(one: &ExpectedDto) -> String {
    let state = one.state.as_ref().map(Code::as_str);
    match (one.fate.as_str(), state) {
        ("runs", _) if one.asked_when_opened => "would run, if a function of its app finds it valid".to_owned(),
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
        ("blocked", _) => match &one.no_way {
            Some(no_way) => format!("would never run: {no_way}"),
            None => blocked(one),
        },
        (fate, _) => fate.to_owned(),
    }
}

fn blocked(one: &ExpectedDto) -> String {
    let mut by: Vec<String> = one.blocked_by.iter().map(ToString::to_string).collect();
    by.extend((one.more_blockers > 0).then(|| format!("{} more", one.more_blockers)));
    if by.is_empty() { "would wait".to_owned() } else { format!("would wait for {}", by.join(", ")) }
}

#[cfg(test)]
mod tests {
    use kelos_wire::{KeyDto, SlotNameDto};

    use super::*;

    fn job(workflow: &str, job: &str) -> SlotNameDto {
        SlotNameDto { workflow: workflow.to_owned(), key: KeyDto { time: None, job: Some(job.to_owned()), key: None } }
    }

    #[test]
    fn what_became_of_a_job_is_a_sentence() {
        let one = |result: &'static str| SubmittedDto {
            slot: job("a", "1"),
            result: result.into(),
            ..SubmittedDto::default()
        };
        assert_eq!(became(&one("opened")), "a@1 was opened");
        let existed = SubmittedDto { state: Some("running".into()), ..one("existed") };
        assert_eq!(became(&existed), "a@1 exists: it is running");
        let reopened = |others| SubmittedDto { descendants: Some(others), ..one("reopened") };
        assert_eq!(became(&reopened(0)), "a@1 was opened again");
        assert_eq!(became(&reopened(1)), "a@1 was opened again, with 1 more that depend on it");
    }

    #[test]
    fn a_job_that_no_group_is_about_is_warned_of() {
        let opened = SubmittedDto { slot: job("c", "9"), result: "opened".into(), ..SubmittedDto::default() };
        let why = "no group of c is about it: n 9 is not 1";
        let one = SubmittedDto { no_group: Some(why.to_owned()), ..opened.clone() };
        assert_eq!(told(&one), ["c@9 was opened".to_owned(), format!("  warning: it waits for no job: {why}")]);
        let why = "a job of b that can't be named: x is empty, and with it the whole of {x}";
        let one = SubmittedDto { nameless_children: Some(why.to_owned()), ..opened };
        assert_eq!(told(&one)[1], format!("  warning: it does not open all of its children: {why}"));
    }

    #[test]
    fn a_dry_run_says_what_comes_of_each_job() {
        let one = |workflow: &str, role: &'static str, fate: &'static str| ExpectedDto {
            slot: job(workflow, "1"),
            role: role.into(),
            fate: fate.into(),
            ..ExpectedDto::default()
        };
        let blocked = ExpectedDto {
            state: Some("failed".into()),
            blocked_by: vec![job("c", "1")],
            more_blockers: 2,
            ..one("b", "asked", "blocked")
        };
        let answer = OutlookDto {
            dry_run: true,
            counts: [("runs".into(), 1), ("blocked".into(), 1)].into(),
            items: vec![one("app1", "ancestor", "runs"), blocked, one("p", "ancestor", "paused")],
            cut: false,
        };
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
