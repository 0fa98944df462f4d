//! `kelos parents` and `kelos children`: what a job of a `tasks.json` waits for, and what waits for it.

use std::path::{Path, PathBuf};

use kelos::stolos::{Mistake, Settings, Tasks, read};
use kelos_model::WorkflowId;
use kelos_model::jobs::{Job, JobError, Parents};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::options::Form;
use crate::text;

/// Mistakes that are shown at a time.
const SHOWN: usize = 20;

#[derive(clap::Args)]
pub(crate) struct RelativesArgs {
    /// Whose job
    #[arg(value_name = "APP")]
    workflow: WorkflowId,
    /// Which of its jobs
    job_id: String,
    /// The file that says what depends on what
    #[arg(long, value_name = "FILE", env = "STOLOS_TASKS_JSON", hide_env_values = true, default_value = "tasks.json", value_hint = clap::ValueHint::FilePath)]
    tasks_json: PathBuf,
    /// A JSON file that says what may stand for each identifier, such as {"date": "date", "client_id": "integer"}
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    identifiers: Option<PathBuf>,
    /// The template of apps that have none, such as {date}_{client_id}
    #[arg(long, value_name = "TEMPLATE", env = "STOLOS_JOB_ID_DEFAULT_TEMPLATE", hide_env_values = true)]
    template: Option<String>,
    #[command(flatten)]
    form: Form,
}

impl RelativesArgs {
    fn tasks(&self) -> Result<Tasks, Failure> {
        let identifiers = self.identifiers.as_deref().map(file).transpose()?;
        let settings = Settings::new(self.template.as_deref(), identifiers.as_deref());
        let settings = settings.map_err(|error| Failure::usage(error.to_string()))?;
        let tasks = read(&file(&self.tasks_json)?, &settings).map_err(|mistakes| self.mistaken(&mistakes))?;
        for warning in &tasks.warnings {
            eprintln!("warning: {}:{warning}", self.tasks_json.display());
        }
        Ok(tasks)
    }

    fn mistaken(&self, mistakes: &[Mistake]) -> Failure {
        let path = self.tasks_json.display();
        let mut shown: Vec<String> = mistakes.iter().take(SHOWN).map(|mistake| format!("{path}:{mistake}")).collect();
        shown.extend(mistakes.len().checked_sub(SHOWN).filter(|more| *more > 0).map(|more| format!("and {more} more")));
        Failure::bad(format!("read {path}: {} in it", text::count(mistakes.len(), "mistake"))).show(shown)
    }
}

fn file(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path).map_err(|error| Failure::usage(format!("read {}: {error}", path.display())))
}

/// The question was about something that is not there.
fn unknown(error: &JobError) -> Failure {
    Failure::usage(format!("ask about the job: {error}"))
}

fn named(job: &Job) -> Value {
    json!({ "workflow": job.workflow, "jobId": job.id })
}

/// Jobs as lines, their ids one below the other.
fn lines<'a>(jobs: impl Iterator<Item = (&'a Job, String)> + Clone) -> impl Iterator<Item = String> {
    let width = jobs.clone().map(|(job, _)| job.workflow.as_str().chars().count()).max().unwrap_or(0);
    jobs.map(move |(job, more)| format!("  {:width$}  {}{more}", job.workflow.as_str(), job.id))
}

pub(crate) fn parents(args: &RelativesArgs) -> Result<u8, Failure> {
    let tasks = args.tasks()?;
    let job = tasks.graph.job(&args.workflow, &args.job_id).map_err(|error| unknown(&error))?;
    let groups = tasks.graph.parents(&job.workflow, &job.id).map_err(|error| unknown(&error))?;
    if args.form.json {
        let group =
            |found: &Parents| json!({ "group": found.group, "jobs": found.jobs.iter().map(named).collect::<Vec<_>>() });
        let groups: Vec<Value> = groups.iter().map(group).collect();
        text::json(&json!({ "workflow": job.workflow, "jobId": job.id, "anyOf": groups }));
        return Ok(0);
    }
    if groups.is_empty() {
        text::line(format!("{} {} waits for nothing", job.workflow, job.id));
    }
    for (at, found) in groups.iter().enumerate() {
        let start = if at == 0 { format!("{} {} waits for", job.workflow, job.id) } else { "or for".to_owned() };
        let jobs = text::count(found.jobs.len(), "job");
        text::line(format!("{start} {jobs} of group {}", found.group));
        lines(found.jobs.iter().map(|job| (job, String::new()))).for_each(text::line);
    }
    Ok(0)
}

pub(crate) fn children(args: &RelativesArgs) -> Result<u8, Failure> {
    let tasks = args.tasks()?;
    let job = tasks.graph.job(&args.workflow, &args.job_id).map_err(|error| unknown(&error))?;
    let found = tasks.graph.children(&job.workflow, &job.id).map_err(|error| unknown(&error))?;
    if args.form.json {
        let child = |(child, group): &(Job, std::sync::Arc<str>)| json!({ "workflow": child.workflow, "jobId": child.id, "group": group });
        let children: Vec<Value> = found.iter().map(child).collect();
        text::json(&json!({ "workflow": job.workflow, "jobId": job.id, "children": children }));
        return Ok(0);
    }
    let jobs = match found.len() {
        0 => "nothing waits".to_owned(),
        1 => "1 job waits".to_owned(),
        count => format!("{count} jobs wait"),
    };
    text::line(format!("{jobs} for {} {}", job.workflow, job.id));
    let width = found.iter().map(|(child, _)| child.id.chars().count()).max().unwrap_or(0);
    let group = |child: &Job, group: &str| format!("{}  (group {group})", " ".repeat(width - child.id.chars().count()));
    lines(found.iter().map(|(child, name)| (child, group(child, name)))).for_each(text::line);
    Ok(0)
}
