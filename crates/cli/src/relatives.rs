//! `kelos parents` and `kelos children`: what a job waits for, and what waits for it; by what a server has loaded, with where
//! each stands, or by a `tasks.json`.

use std::path::{Path, PathBuf};

use kelos_door_stolos::{Tasks, read};
use kelos_model::WorkflowId;
use kelos_model::jobs::{Job, JobError, Parents, Unwritable};
use kelos_sandbox::apps::{Mistake, Settings};
use kelos_wire::{ChildrenDto, Code, GroupDto, KeyDto, ParentsDto, RelativeDto, SlotNameDto, UnwritableDto};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::address::{Query, escape};
use crate::apps::TASKS_JSON;
use crate::client::Reply;
use crate::connection::{self, Connection};
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
        let here = || Some(PathBuf::from(TASKS_JSON)).filter(|path| path.exists() && !connection::is_named(&self.door));
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
            words::note(format!("{}:{mistake}", path.display()));
        }
        for warning in &tasks.warnings {
            words::note(format!("warning: {}:{warning}", path.display()));
        }
        Ok(tasks)
    }

    /// The answer of a server about the job.
    fn ask<T: DeserializeOwned>(&self, what: &str) -> Result<Reply<T>, Failure> {
        let (client, doing) = (Connection::to_read(&self.door)?, "ask about the job");
        let path = |app: &str| format!("/jobs/{}/{}/{what}", escape(app), escape(&self.job_id));
        let mut query = Query::new();
        query.add("limit", LISTED);
        client.by_name(doing, self.workflow.as_str(), |app| client.get(doing, &path(app), &query))
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

fn named(job: &Job) -> SlotNameDto {
    SlotNameDto {
        workflow: job.workflow.to_string(),
        key: KeyDto { job: Some(job.id.to_string()), ..KeyDto::default() },
    }
}

/// The jobs that can't be named.
fn unwritable(all: &[Unwritable]) -> Vec<UnwritableDto> {
    all.iter().map(UnwritableDto::from).collect()
}

/// The answer of a file about a job, in the form of a server's answer.
fn parents_by_file(tasks: &Tasks, args: &RelativesArgs) -> Result<ParentsDto, JobError> {
    let job = tasks.graph.job(&args.workflow, &args.job_id)?;
    let relative = |one: &Job| RelativeDto { slot: named(one), ..RelativeDto::default() };
    let group = |found: &Parents| GroupDto {
        group: found.group.to_string(),
        total: found.total(),
        unwritable: unwritable(&found.unwritable),
        jobs: found.jobs.iter().map(relative).collect(),
        ..GroupDto::default()
    };
    let any_of = tasks.graph.parents(&job.workflow, &job.id)?.iter().map(group).collect();
    Ok(ParentsDto { slot: named(&job), any_of, no_group: tasks.graph.no_group(&job.workflow, &job.id) })
}

fn children_by_file(tasks: &Tasks, args: &RelativesArgs) -> Result<ChildrenDto, JobError> {
    let job = tasks.graph.job(&args.workflow, &args.job_id)?;
    let child = |(child, group): &(Job, std::sync::Arc<str>)| RelativeDto {
        slot: named(child),
        group: Some(group.to_string()),
        ..RelativeDto::default()
    };
    let found = tasks.graph.children(&job.workflow, &job.id)?;
    let children: Vec<RelativeDto> = found.jobs.iter().map(child).collect();
    let total = children.len();
    Ok(ChildrenDto { slot: named(&job), total, children, unwritable: unwritable(&found.unwritable) })
}

type ByFile<T> = fn(&Tasks, &RelativesArgs) -> Result<T, JobError>;

fn run<T: DeserializeOwned + Serialize>(
    args: &RelativesArgs,
    what: &str,
    by_file: ByFile<T>,
    tell: fn(&T) -> Vec<String>,
) -> Result<u8, Failure> {
    match args.file() {
        Some(path) => {
            let found = by_file(&args.tasks(&path)?, args).map_err(|error| unknown(&error))?;
            print(args, &found, &tell(&found));
        }
        None => {
            let found: Reply<T> = args.ask(what)?;
            print(args, &found, &tell(&found));
        }
    }
    Ok(0)
}

fn print(args: &RelativesArgs, found: &impl Serialize, lines: &[String]) {
    if args.door.form.json {
        words::json(found);
    } else {
        lines.iter().for_each(words::line);
    }
}

pub(crate) fn parents(args: &RelativesArgs) -> Result<u8, Failure> {
    run(args, "parents", parents_by_file, told_parents)
}

pub(crate) fn children(args: &RelativesArgs) -> Result<u8, Failure> {
    run(args, "children", children_by_file, told_children)
}

/// Jobs as lines, what they have in common one below the other.
fn lines(jobs: &[RelativeDto]) -> Vec<String> {
    let named = |job: &RelativeDto| (job.slot.workflow.clone(), job.slot.key.to_string());
    let (apps, ids) = jobs
        .iter()
        .map(named)
        .fold((0, 0), |(apps, ids), (app, id)| (apps.max(app.chars().count()), ids.max(id.chars().count())));
    let line = |job: &RelativeDto| {
        let group = job.group.as_ref().filter(|group| *group != UNNAMED);
        let group = group.map(|group| format!("  (group {group})")).unwrap_or_default();
        // Only a server knows their states.
        let state = job.state.as_ref().map(|state| state.as_ref().map_or("never opened", Code::as_str));
        let state = state.map(|state| format!("  {}", render::paint(state, state))).unwrap_or_default();
        let (app, id) = named(job);
        format!("  {app:apps$}  {id:ids$}{state}{group}").trim_end().to_owned()
    };
    jobs.iter().map(line).collect()
}

/// `app1 20140601_1`
fn spoken(slot: &SlotNameDto) -> String {
    format!("{} {}", slot.workflow, slot.key)
}

fn told_parents(found: &ParentsDto) -> Vec<String> {
    let (name, groups) = (spoken(&found.slot), &found.any_of);
    let is_named = |group: &GroupDto| groups.len() > 1 || group.group != UNNAMED;
    if groups.is_empty() {
        let because = found.no_group.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
        return vec![format!("{name} waits for nothing{because}")];
    }
    let mut told = Vec::new();
    for (at, group) in groups.iter().enumerate() {
        let start = if at == 0 { format!("{name} waits for") } else { "or for".to_owned() };
        let succeeded = group.succeeded.map(|done| format!(", {done} of them succeeded")).unwrap_or_default();
        let of = if is_named(group) { format!(" of group {}", group.group) } else { String::new() };
        told.push(format!("{start} {}{of}{succeeded}", words::count(group.total, "job")));
        told.extend(nameless(&group.unwritable));
        told.extend(lines(&group.jobs));
        let nameless: usize = group.unwritable.iter().map(|one| one.count).sum();
        told.extend(more(group.total, group.jobs.len() + nameless));
    }
    told
}

fn told_children(found: &ChildrenDto) -> Vec<String> {
    let jobs = match found.total {
        0 => "nothing waits".to_owned(),
        1 => "1 job waits".to_owned(),
        count => format!("{count} jobs wait"),
    };
    let mut told = vec![format!("{jobs} for {}", spoken(&found.slot))];
    told.extend(nameless(&found.unwritable));
    told.extend(lines(&found.children));
    told.extend(more(found.total, found.children.len()));
    told
}

/// Jobs that belong to it and can't be named, a line for each reason.
fn nameless(unwritable: &[UnwritableDto]) -> Vec<String> {
    let line = |one: &UnwritableDto| {
        let count = words::count(one.count, "job");
        let group = Some(&one.group).filter(|group| *group != UNNAMED);
        let group = group.map(|group| format!("  (group {group})")).unwrap_or_default();
        format!("  {}  {count} that can't be named: {}{group}", one.workflow, one.why)
    };
    unwritable.iter().map(line).collect()
}

fn more(total: usize, shown: usize) -> Option<String> {
    total.checked_sub(shown).filter(|more| *more > 0).map(|more| format!("  and {more} more"))
}
