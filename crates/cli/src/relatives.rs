//! `kelos parents` and `kelos children`: what a job waits for, and what waits for it; by what a server has loaded, with where
//! each stands, or by a `tasks.json`.

use std::path::{Path, PathBuf};

use kelos_door_stolos::{Tasks, read};
use kelos_model::WorkflowId;
use kelos_model::jobs::{Job, JobError, Parents, Unwritable};
use kelos_sandbox::apps::{Mistake, Settings};
use serde_json::{Value, json};

use crate::client::{self, Client, Query, escape, items, number, text};
use crate::failure::Failure;
use crate::options::Door;
use crate::{render, text as words};

/// Jobs that a server is asked to list of each group.
const LISTED: usize = 10_000;
/// The group of those who gave it no name.
pub(crate) const UNNAMED: &str = "default";
/// Mistakes that are shown at a time.
const SHOWN: usize = 20;

#[derive(clap::Args)]
pub(crate) struct RelativesArgs {
    /// App of the job
    #[arg(value_name = "APP")]
    workflow: WorkflowId,
    /// Job id
    #[arg(allow_negative_numbers = true)]
    job_id: String,
    /// Read the dependencies from this file instead of a server [default: tasks.json, if it is in this folder and no
    /// server is running]
    #[arg(long, value_name = "FILE", env = "STOLOS_TASKS_JSON", hide_env_values = true, value_hint = clap::ValueHint::FilePath)]
    tasks_json: Option<PathBuf>,
    /// JSON file that restricts the values of identifiers, such as {"date": "date", "client_id": "integer"} [default:
    /// identifiers.json beside the file of apps, if it exists]
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    identifiers: Option<PathBuf>,
    /// Job id template of apps that have none, such as {date}_{client_id}
    #[arg(long, value_name = "TEMPLATE", env = "STOLOS_JOB_ID_DEFAULT_TEMPLATE", hide_env_values = true)]
    template: Option<String>,
    #[command(flatten)]
    door: Door,
}

impl RelativesArgs {
    /// The file to read in place of asking a server.
    fn file(&self) -> Option<PathBuf> {
        let here = || Some(PathBuf::from("tasks.json")).filter(|path| path.exists() && !client::is_named(&self.door));
        self.tasks_json.clone().or_else(here)
    }

    fn tasks(&self, path: &Path) -> Result<Tasks, Failure> {
        let beside = path.with_file_name("identifiers.json");
        let identifiers = self.identifiers.as_deref().or_else(|| beside.exists().then_some(&*beside));
        let identifiers = identifiers.map(file).transpose()?;
        let settings = Settings::new(self.template.as_deref(), identifiers.as_deref());
        let settings = settings.map_err(|error| Failure::usage(error.to_string()))?;
        let tasks = read(&file(path)?, &settings).map_err(|mistakes| mistaken(path, &mistakes))?;
        if tasks.faulty.contains(&self.workflow) {
            return Err(mistaken(path, &tasks.mistakes));
        }
        for mistake in tasks.mistakes.iter().take(SHOWN) {
            eprintln!("{}:{mistake}", path.display());
        }
        for warning in &tasks.warnings {
            eprintln!("warning: {}:{warning}", path.display());
        }
        Ok(tasks)
    }

    /// What a server says of the job.
    fn ask(&self, what: &str) -> Result<Value, Failure> {
        let path = format!("/jobs/{}/{}/{what}", escape(self.workflow.as_str()), escape(&self.job_id));
        let mut query = Query::new();
        query.add("limit", LISTED);
        Client::new(&self.door)?.get("ask about the job", &path, &query)
    }
}

fn mistaken(path: &Path, mistakes: &[Mistake]) -> Failure {
    let path = path.display();
    let mut shown: Vec<String> = mistakes.iter().take(SHOWN).map(|mistake| format!("{path}:{mistake}")).collect();
    shown.extend(mistakes.len().checked_sub(SHOWN).filter(|more| *more > 0).map(|more| format!("and {more} more")));
    Failure::bad(format!("read {path}: {} in it", words::count(mistakes.len(), "mistake"))).show(shown)
}

/// Longest file of apps.
const LONGEST: u64 = 64 << 20;

fn file(path: &Path) -> Result<String, Failure> {
    let read = kelos_sandbox::read_text(path, LONGEST);
    read.map(|text| text.to_string()).map_err(|why| Failure::usage(format!("read {}: it {why}", path.display())))
}

/// The question was about something that is not there.
fn unknown(error: &JobError) -> Failure {
    Failure::usage(format!("ask about the job: {error}"))
}

fn named(job: &Job) -> Value {
    json!({ "workflow": job.workflow, "job": job.id })
}

/// Adds the jobs that can't be named, where there are any.
fn with_unwritable(mut found: Value, all: &[Unwritable]) -> Value {
    let told = |one: &Unwritable| {
        let (code, why) = (one.why.code(), one.why.to_string());
        json!({ "workflow": one.workflow, "group": one.group, "count": one.count, "code": code, "why": why })
    };
    if !all.is_empty() {
        found["unwritable"] = all.iter().map(told).collect();
    }
    found
}

/// What the relation of a file says of a job, in the form in which a server says it.
fn parents_by_file(tasks: &Tasks, args: &RelativesArgs) -> Result<Value, JobError> {
    let job = tasks.graph.job(&args.workflow, &args.job_id)?;
    let group = |found: &Parents| {
        let jobs: Vec<Value> = found.jobs.iter().map(named).collect();
        with_unwritable(json!({ "group": found.group, "total": found.total(), "jobs": jobs }), &found.unwritable)
    };
    let groups: Vec<Value> = tasks.graph.parents(&job.workflow, &job.id)?.iter().map(group).collect();
    let mut found = json!({ "workflow": job.workflow, "job": job.id, "anyOf": groups });
    if let Some(no_group) = tasks.graph.no_group(&job.workflow, &job.id) {
        found["noGroup"] = no_group.into();
    }
    Ok(found)
}

fn children_by_file(tasks: &Tasks, args: &RelativesArgs) -> Result<Value, JobError> {
    let job = tasks.graph.job(&args.workflow, &args.job_id)?;
    let child = |(child, group): &(Job, std::sync::Arc<str>)| json!({ "workflow": child.workflow, "job": child.id, "group": group });
    let found = tasks.graph.children(&job.workflow, &job.id)?;
    let children: Vec<Value> = found.jobs.iter().map(child).collect();
    let told = json!({ "workflow": job.workflow, "job": job.id, "total": children.len(), "children": children });
    Ok(with_unwritable(told, &found.unwritable))
}

type ByFile = fn(&Tasks, &RelativesArgs) -> Result<Value, JobError>;

fn run(args: &RelativesArgs, what: &str, by_file: ByFile, tell: fn(&Value) -> Vec<String>) -> Result<u8, Failure> {
    let found = match args.file() {
        Some(path) => by_file(&args.tasks(&path)?, args).map_err(|error| unknown(&error))?,
        None => args.ask(what)?,
    };
    if args.door.form.json {
        words::json(&found);
    } else {
        tell(&found).iter().for_each(words::line);
    }
    Ok(0)
}

pub(crate) fn parents(args: &RelativesArgs) -> Result<u8, Failure> {
    run(args, "parents", parents_by_file, told_parents)
}

pub(crate) fn children(args: &RelativesArgs) -> Result<u8, Failure> {
    run(args, "children", children_by_file, told_children)
}

/// Jobs as lines, what they have in common one below the other.
fn lines(jobs: &[Value]) -> Vec<String> {
    let width = |name: &str| jobs.iter().map(|job| text(job, name).chars().count()).max().unwrap_or(0);
    let (apps, ids) = (width("workflow"), width("job"));
    let line = |job: &Value| {
        let group = job["group"].as_str().filter(|group| *group != UNNAMED);
        let group = group.map(|group| format!("  (group {group})")).unwrap_or_default();
        // Only a server knows where they stand.
        let state = job.get("state").map(|state| state.as_str().unwrap_or("never opened"));
        let state = state.map(|state| format!("  {}", render::paint(state, state))).unwrap_or_default();
        format!("  {:apps$}  {:ids$}{state}{group}", text(job, "workflow"), text(job, "job")).trim_end().to_owned()
    };
    jobs.iter().map(line).collect()
}

fn told_parents(found: &Value) -> Vec<String> {
    let (name, groups) = (format!("{} {}", text(found, "workflow"), text(found, "job")), items(found, "anyOf"));
    let is_named = |group: &Value| groups.len() > 1 || text(group, "group") != UNNAMED;
    if groups.is_empty() {
        let because = found["noGroup"].as_str().map(|why| format!(": {why}")).unwrap_or_default();
        return vec![format!("{name} waits for nothing{because}")];
    }
    let mut told = Vec::new();
    for (at, group) in groups.iter().enumerate() {
        let start = if at == 0 { format!("{name} waits for") } else { "or for".to_owned() };
        let total = usize::try_from(number(group, "total")).unwrap_or(usize::MAX);
        let succeeded =
            group["succeeded"].as_u64().map(|done| format!(", {done} of them succeeded")).unwrap_or_default();
        let of = if is_named(group) { format!(" of group {}", text(group, "group")) } else { String::new() };
        told.push(format!("{start} {}{of}{succeeded}", words::count(total, "job")));
        told.extend(nameless(group));
        told.extend(lines(items(group, "jobs")));
        told.extend(more(total, items(group, "jobs").len() + count_nameless(group)));
    }
    told
}

fn told_children(found: &Value) -> Vec<String> {
    let total = usize::try_from(number(found, "total")).unwrap_or(usize::MAX);
    let jobs = match total {
        0 => "nothing waits".to_owned(),
        1 => "1 job waits".to_owned(),
        count => format!("{count} jobs wait"),
    };
    let mut told = vec![format!("{jobs} for {} {}", text(found, "workflow"), text(found, "job"))];
    told.extend(nameless(found));
    told.extend(lines(items(found, "children")));
    told.extend(more(total, items(found, "children").len()));
    told
}

/// Jobs that belong to it and can't be named, a line for each reason.
fn nameless(found: &Value) -> Vec<String> {
    let line = |one: &Value| {
        let count = words::count(usize::try_from(number(one, "count")).unwrap_or(usize::MAX), "job");
        let group = Some(text(one, "group")).filter(|group| *group != UNNAMED);
        let group = group.map(|group| format!("  (group {group})")).unwrap_or_default();
        format!("  {}  {count} that can't be named: {}{group}", text(one, "workflow"), text(one, "why"))
    };
    items(found, "unwritable").iter().map(line).collect()
}

fn count_nameless(group: &Value) -> usize {
    let all = items(group, "unwritable").iter().map(|one| number(one, "count"));
    usize::try_from(all.sum::<u64>()).unwrap_or(usize::MAX)
}

fn more(total: usize, shown: usize) -> Option<String> {
    total.checked_sub(shown).filter(|more| *more > 0).map(|more| format!("  and {more} more"))
}
