//! `kelos deploy` and `kelos undeploy`: by a target file, or through a server.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use jiff::Timestamp;
use kelos_door_celos::deploy::{
    self, Bundle, BundleScripts, DeployError, DeploymentPlan, HDFS_ROOT, ProjectName, Site,
};
use kelos_wire::{BundleDto, Code, DeploymentDto, FileChangeDto, SlotEffectDto};
use serde::Serialize;

use crate::address::{Query, escape};
use crate::apps;
use crate::client::Reply;
use crate::connection::Connection;
use crate::failure::Failure;
use crate::folder::problem_lines;
use crate::options::Door;
use crate::render;
use crate::terminal::shown_line;
use crate::text::{self as words, count};
use crate::trust::storage_config;

/// The mode of Celos's own tool.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum DeployMode {
    /// Deploy a project
    Deploy,
    /// Remove a project
    Undeploy,
    /// Run its tests
    Test,
}

#[derive(clap::Args)]
#[command(rename_all = "camelCase")]
pub(crate) struct DeployArgs {
    /// Action of the tool
    #[arg(long, value_enum, ignore_case = true, hide = true)]
    mode: Option<DeployMode>,
    /// Name of the project
    #[arg(long, value_name = "NAME", alias = "workflow-name")]
    workflow_name: String,
    /// Deployment directory: workflow.js and defaults.js, or workflows/ and defaults/; hdfs/ for Oozie
    #[arg(long, value_name = "PATH", alias = "deploy-dir", value_hint = clap::ValueHint::DirPath)]
    deploy_dir: Option<PathBuf>,
    /// Target file, as a file: or sftp: URL. Without it, the server deploys into its own folders
    #[arg(long, value_name = "URL")]
    target: Option<String>,
    /// Root of deployed folders in HDFS [default: /user/celos/app]
    #[arg(long, value_name = "PATH", alias = "hdfs-root")]
    hdfs_root: Option<String>,
    /// Leave HDFS unchanged
    #[arg(long = "no-hdfs")]
    no_hdfs: bool,
    /// Preview only: change nothing
    #[arg(long)]
    plan: bool,
    #[command(flatten)]
    door: Door,
}

/// The user for `sftp:` URLs, as Celos's tool takes it.
const USER: &str = "CELOS_CI_USERNAME";

/// Changed lines of a file that a plan prints.
const SHOWN_LINES: usize = 40;

/// Larger projects go by a target file.
const LARGEST_UPLOAD: u64 = 40 << 20;

/// The commands whose options may be written with one dash.
const COMMANDS: [&str; 3] = ["deploy", "undeploy", "ci"];
const OPTIONS: [&str; 5] = ["mode", "workflowName", "deployDir", "target", "hdfsRoot"];

/// Celos's tool takes `-target` for `--target`.
pub(crate) fn double_dashes(words: Vec<OsString>) -> Vec<OsString> {
    let ours = words.get(1).and_then(|word| word.to_str()).is_some_and(|word| COMMANDS.contains(&word));
    if ours { crate::serve::doubled(words, &OPTIONS) } else { words }
}

/// Celos's tool by its own arguments: the mode has to be said.
pub(crate) fn ci(args: &DeployArgs) -> Result<u8, Failure> {
    match args.mode {
        Some(mode) => run(args, mode),
        None => Err(Failure::usage("choose what to do: expected --mode deploy or --mode undeploy")),
    }
}

pub(crate) fn deploy(args: &DeployArgs) -> Result<u8, Failure> {
    run(args, DeployMode::Deploy)
}

pub(crate) fn undeploy(args: &DeployArgs) -> Result<u8, Failure> {
    run(args, DeployMode::Undeploy)
}

fn run(args: &DeployArgs, mode: DeployMode) -> Result<u8, Failure> {
    let mode = args.mode.unwrap_or(mode);
    let project = ProjectName::new(args.workflow_name.as_str()).map_err(|error| Failure::usage(error.to_string()))?;
    let bundle = match mode {
        DeployMode::Deploy => Some(bundle(args)?),
        DeployMode::Undeploy => None,
        DeployMode::Test => {
            let failure = Failure::usage("test in this mode: tests have a command of their own");
            return Err(failure.hint("kelos test runs them"));
        }
    };
    match (&args.target, server(args)) {
        (Some(target), _) => to_target(args, target, project, bundle),
        (None, true) => to_server(args, &project, bundle.as_ref()),
        (None, false) => {
            Err(Failure::usage("choose the target: expected --target URL of a target file, or --server URL"))
        }
    }
}

/// Whether a server was named.
fn server(args: &DeployArgs) -> bool {
    args.door.server.as_ref().is_some_and(|server| !server.is_empty())
}

fn bundle(args: &DeployArgs) -> Result<Bundle, Failure> {
    let dir = args.deploy_dir.as_deref();
    let dir = dir.ok_or_else(|| Failure::usage("find the project: expected --deployDir PATH"))?;
    Bundle::read(dir).map_err(|error| failure(&error))
}

fn to_target(args: &DeployArgs, target: &str, project: ProjectName, bundle: Option<Bundle>) -> Result<u8, Failure> {
    let runtime = tokio::runtime::Runtime::new().map_err(|error| Failure::bad(format!("start threads: {error}")))?;
    let foreseen = if args.plan && server(args) { Some(ask(args, &project, bundle.as_ref(), true)) } else { None };
    let done = runtime.block_on(async {
        let prepared = prepare(args, target, project, bundle).await?;
        let mut plan = kelos_server::deployment(prepared.plan(), !args.plan);
        add_foreseen(&mut plan, foreseen);
        if args.plan {
            return Ok(plan);
        }
        let people = !args.door.form.json;
        let tell = |step: &deploy::Step| {
            if people {
                words::line(format!("done: {step}"));
            }
        };
        prepared.carry_out(tell).await.map(|()| plan).map_err(|error| failure(&error))
    });
    // What was abandoned in another thread is not waited for.
    runtime.shutdown_background();
    let plan = done?;
    say(args, &plan, &plan);
    Ok(0)
}

async fn prepare(
    args: &DeployArgs,
    target: &str,
    project: ProjectName,
    bundle: Option<Bundle>,
) -> Result<DeploymentPlan, Failure> {
    let user = std::env::var(USER).ok().filter(|user| !user.is_empty());
    let root = args.hdfs_root.as_deref().unwrap_or(HDFS_ROOT);
    let site = Site::of_target(&url(target)?, user.as_deref(), root, storage_config()?, apps::format()).await;
    let mut site = site.map_err(|error| failure(&error))?;
    if args.no_hdfs {
        site.hdfs = site.hdfs.left_alone();
    }
    deploy::prepare(project, bundle, site, Timestamp::now()).await.map_err(|error| failure(&error))
}

/// A path of this machine stands for its URL.
fn url(target: &str) -> Result<String, Failure> {
    let scheme = target.split_once(':').map_or("", |(scheme, _)| scheme);
    match scheme {
        "file" | "sftp" => Ok(target.to_owned()),
        _ if !target.contains("://") => std::path::absolute(target)
            .map(|path| path.to_string_lossy().into_owned())
            .map_err(|error| Failure::usage(format!("use the target file {target}: {error}"))),
        _ => Err(Failure::usage(format!("use the target file {target}: expected a file: or sftp: URL, or a path"))),
    }
}

/// Takes over what the server says of its slots; in vain is no failure.
fn add_foreseen(plan: &mut DeploymentDto, foreseen: Option<Result<Reply<DeploymentDto>, Failure>>) {
    match foreseen {
        Some(Ok(by_server)) => plan.slots = by_server.slots.clone(),
        Some(Err(failure)) => {
            plan.notes.push(format!("failed to {}: only schedules were compared", failure.message));
        }
        None => {}
    }
}

fn to_server(args: &DeployArgs, project: &ProjectName, bundle: Option<&Bundle>) -> Result<u8, Failure> {
    let plan = ask(args, project, bundle, args.plan)?;
    say(args, &plan, &plan);
    Ok(0)
}

fn ask(
    args: &DeployArgs,
    project: &ProjectName,
    bundle: Option<&Bundle>,
    plan: bool,
) -> Result<Reply<DeploymentDto>, Failure> {
    let client = Connection::open(&args.door)?;
    let path = format!("/projects/{}", escape(project.as_str()));
    let mut query = Query::new();
    query.add("plan", plan);
    let root = args.hdfs_root.as_ref().filter(|_| !args.no_hdfs);
    match bundle {
        Some(bundle) => client.put(&format!("deploy {project}"), &path, &query, &body(args, bundle)?),
        None => {
            query.add_some("hdfsRoot", root);
            client.delete(&format!("undeploy {project}"), &path, &query)
        }
    }
}

fn body(args: &DeployArgs, bundle: &Bundle) -> Result<BundleDto, Failure> {
    let files = bundle.hdfs.as_ref().filter(|_| !args.no_hdfs);
    let bytes: u64 = files.iter().flat_map(|files| files.values()).map(|file| file.bytes).sum();
    if bytes > LARGEST_UPLOAD {
        let failure =
            Failure::bad(format!("send hdfs/ to a server: it has {bytes} bytes, and {LARGEST_UPLOAD} are taken"));
        return Err(failure.hint("deploy with --target"));
    }
    let encoded = |(path, file): (&String, &deploy::BundleFile)| {
        let read = file.read().map_err(|error| Failure::bad(format!("read hdfs/{path}: {error}")));
        read.map(|bytes| (path.clone(), BASE64.encode(bytes)))
    };
    let files = files.map(|files| files.iter().map(encoded).collect::<Result<BTreeMap<_, _>, _>>()).transpose()?;
    let hdfs_root = args.hdfs_root.clone();
    Ok(match &bundle.scripts {
        BundleScripts::Single { workflow, defaults } => BundleDto {
            workflow: Some(workflow.clone()),
            defaults: defaults.clone(),
            files: None,
            hdfs: files,
            hdfs_root,
        },
        BundleScripts::Several(several) => {
            BundleDto { workflow: None, defaults: None, files: Some(several.paths()), hdfs: files, hdfs_root }
        }
    })
}

fn failure(error: &DeployError) -> Failure {
    let failure = Failure::bad(error.to_string());
    let failure = match error {
        DeployError::Scripts { problems, .. } => failure.show(problems.iter().flat_map(problem_lines).collect()),
        DeployError::Incomplete { done, left, .. } => failure.show(steps(done, left)),
        DeployError::BadName { .. } | DeployError::HdfsRoot { .. } => Failure::usage(error.to_string()),
        _ => failure,
    };
    match error.hint() {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

fn steps(done: &[String], left: &[String]) -> Vec<String> {
    let line = |word: &'static str| move |step: &String| format!("{word} {step}");
    done.iter().map(line("done:    ")).chain(left.iter().map(line("not done:"))).collect()
}

/// Prints what changes; `said` is the same word for word.
fn say(args: &DeployArgs, plan: &DeploymentDto, said: &impl Serialize) {
    if args.door.form.json {
        words::json(said);
        return;
    }
    if !plan.done {
        say_files(plan);
    }
    say_workflows(plan);
    if !plan.done {
        say_slots(&plan.slots);
    }
    for warning in &plan.warnings {
        words::line(format!("warning: {}: {} [{}]", warning.file, warning.message, warning.code));
    }
    for note in &plan.notes {
        words::line(format!("note: {note}"));
    }
    words::line(last_line(plan));
}

fn last_line(plan: &DeploymentDto) -> String {
    let project = &plan.project;
    let differs = plan.files.iter().any(|file| file.change != "same");
    match (plan.done, differs, plan.undeploy) {
        (false, true, _) => "this is a plan: nothing was changed".to_owned(),
        (_, false, false) => format!("{project} is deployed as it is: nothing to change"),
        (_, false, true) => format!("{project} is not there: nothing to change"),
        (true, true, false) => format!("{project} is deployed"),
        (true, true, true) => format!("{project} is undeployed"),
    }
}

fn say_files(plan: &DeploymentDto) {
    let mut table = render::table(&["CHANGE", "FILE", ""]);
    for file in &plan.files {
        table.add_row([file.change.to_string(), file.place.clone(), size(file)]);
    }
    render::print(table);
    for file in plan.files.iter().filter(|file| !file.diff.is_empty()) {
        words::line(format!("lines of {}:", file.place));
        file.diff.iter().take(SHOWN_LINES).for_each(|line| words::line(format!("  {}", shown_line(line))));
        let more = file.diff.len().saturating_sub(SHOWN_LINES) + file.diff_more;
        if more > 0 {
            words::line(format!("  and {} more", count(more, "line")));
        }
    }
}

/// `+3 -1 lines`, or how long it is.
fn size(file: &FileChangeDto) -> String {
    match (file.change.as_str(), file.lines_added) {
        ("same", _) => String::new(),
        (_, Some(added)) => format!("+{added} -{} lines", file.lines_removed.unwrap_or(0)),
        ("removed", None) => String::new(),
        (_, None) => format!("{} bytes", file.bytes.unwrap_or(0)),
    }
}

fn say_workflows(plan: &DeploymentDto) {
    for workflow in &plan.workflows {
        let parts: Vec<&str> = workflow.parts.iter().map(Code::as_str).collect();
        let parts = if parts.is_empty() { String::new() } else { format!(": {}", parts.join(", ")) };
        let project = &workflow.project;
        let of = if *project == plan.project { String::new() } else { format!(" of {project}") };
        words::line(format!("workflow {}{of} {}{parts}", workflow.id, becomes(workflow.change.as_str())));
    }
}

fn becomes(change: &str) -> &'static str {
    match change {
        "new" => "is new",
        "removed" => "goes",
        _ => "changes",
    }
}

fn say_slots(slots: &SlotEffectDto) {
    let [created, dropped, unblocked] = match slots.from_server {
        true => ["planned at once", "no longer scheduled from then on", "ready at once"],
        false => ["in the last 7 days are new", "in the last 7 days go", "ready"],
    };
    for (slots, what) in [(&slots.created, created), (&slots.dropped, dropped), (&slots.unblocked, unblocked)] {
        for some in slots {
            let (first, last) = (some.first.short(), some.last.short());
            let when = if first == last { first } else { format!("{first} to {last}") };
            words::line(format!("{} of {} {what}: {when}", count(some.count, "slot"), some.workflow));
        }
    }
    slots.held_back.iter().for_each(words::line);
    let past: usize = slots.created.iter().map(|some| some.count).sum();
    if past > 0 {
        words::line(format!("{} will run", count(past, "past slot")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_celos_s_tool_take_one_dash() {
        let words = ["kelos", "ci", "-mode", "deploy", "-target=x", "--plan"].map(OsString::from).to_vec();
        assert_eq!(double_dashes(words), ["kelos", "ci", "--mode", "deploy", "--target=x", "--plan"]);
    }

    #[test]
    fn targets_are_urls_or_paths() {
        assert_eq!(url("sftp://h/t.json").unwrap(), "sftp://h/t.json");
        assert_eq!(url("/t.json").unwrap(), "/t.json");
        assert!(url("t.json").unwrap().ends_with("/t.json"));
        assert!(url("http://h/t.json").is_err());
    }
}
