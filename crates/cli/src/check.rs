//! `kelos check`: what is wrong with a folder of scripts, the apps beside them, and the configuration of their server.

mod config;

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use kelos_core::Config;
use kelos_model::WorkflowId;
use kelos_model::references::Ownership;
use kelos_model::secret::AllowList;
use kelos_model::workflow::{EndlessWait, HeldBack, PastSlots, Source, WorkflowRow};
use kelos_sandbox::apps::AppsSource;
use kelos_sandbox::{
    Folders, Limits, LoadResult, Problem, ProblemCode, Severity, check, endless_waits, not_allowed, unserved,
};
use kelos_storage::Storage;
use kelos_store::StoredState;
use kelos_store_sqlite::SqliteStore;
use miette::{GraphicalReportHandler, LabeledSpan, MietteDiagnostic, NamedSource, Report, SourceOffset};
use serde_json::json;

use crate::apps::{self, Apps};
use crate::failure::{BAD, Failure};
use crate::location::{DATABASE, STATE};
use crate::options::{Form, Scripts};
use crate::text::{self, count};
use crate::trust::storage_config;
use crate::{folder, terminal};

#[derive(clap::Args)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    scripts: Scripts,
    #[command(flatten)]
    apps: Apps,
    /// Check the JSON file of a server's `--config`, too: groups, links, watched prefixes, and what projects may use
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    config: Option<PathBuf>,
    #[command(flatten)]
    form: Form,
}

pub(crate) fn run(args: &CheckArgs) -> Result<u8, Failure> {
    let dir = folder::existing("folder of scripts", &args.scripts.dir)?;
    let folders = folder::folders(&dir, args.scripts.defaults.as_deref());
    let apps = args.apps.source(&dir)?;
    let files = folder::scripts(&folders)? + usize::from(apps.is_there());
    if files == 0 {
        let place = folders.workflows.display();
        return Err(Failure::usage(format!("find a script: there is no *.js in {place}, and no {}", apps.name())));
    }
    let mut loaded = load(folders, apps, args.config.as_deref())?;
    let (window, now) = (Config::default().planning_window, Timestamp::now());
    loaded.problems.extend(endless_waits(&loaded, window, now));
    sort(&mut loaded.problems);
    let stored = stored(&dir);
    let past = PastSlots::of(&loaded.workflows, stored.as_deref().unwrap_or_default(), window, now);
    let of_new = stored.map(|_| PastSlots::of(&loaded.workflows, &[], window, now).opened());
    let files = files + usize::from(args.config.is_some());
    if args.form.json {
        let ids: Vec<&str> = loaded.workflows.iter().map(|one| one.id.as_str()).collect();
        text::json(
            &json!({ "ok": !loaded.has_errors(), "files": files, "workflows": ids, "problems": loaded.problems, "pastSlots": opened(&past), "heldBack": held_back(&past), "waiting": waiting(&past) }),
        );
    } else {
        print(&loaded, &past, of_new, files);
    }
    Ok(if loaded.has_errors() { BAD } else { 0 })
}

/// The workflows of the server that keeps its data in a folder; none where there is no such data, or they can't be read.
fn stored(dir: &Path) -> Option<Vec<WorkflowRow>> {
    let database = dir.join(STATE).join(DATABASE);
    let store = database.is_file().then(|| SqliteStore::look(&database))?.ok()?;
    store.reader().workflows(None).ok()
}

/// The definitions of a folder with all of its problems, and those of the configuration of its server. Nothing is run.
pub(crate) fn load(folders: Folders, apps: AppsSource, config: Option<&Path>) -> Result<LoadResult, Failure> {
    let loaded = check(folders, Limits::default(), apps::format(), Some(apps));
    let mut loaded = loaded.map_err(|error| Failure::bad(format!("start a thread: {error}")))?;
    let storage = Storage::new(storage_config()?);
    let serves = |uri: &str| storage.check(uri).map_err(|error| error.to_string());
    let unserved = unserved(&loaded, &serves);
    loaded.problems.extend(unserved);
    let more = match config {
        Some(config) => config::problems(config, &mut loaded, &serves)?,
        None => not_allowed_without_config(&loaded),
    };
    loaded.problems.extend(more);
    loaded.problems.extend(not_shared(&loaded));
    sort(&mut loaded.problems);
    Ok(loaded)
}

/// Sorts problems by their places.
fn sort(problems: &mut [Problem]) {
    problems.sort_by(|a, b| (&a.file, a.line, a.column).cmp(&(&b.file, b.line, b.column)));
}

/// The jobs that a server without `--config` does not allow: only warnings, because the one that is meant may have one.
fn not_allowed_without_config(loaded: &LoadResult) -> Vec<Problem> {
    let found = not_allowed(loaded, &AllowList::default()).into_iter();
    let hint = || Some("check it with the file of the server: kelos check --config FILE".to_owned());
    found.map(|problem| Problem { severity: Severity::Warning, hint: hint(), ..problem }).collect()
}

/// References between projects that need a line in the script of the other one: only warnings, because they count on servers with `--auth`
/// alone.
fn not_shared(loaded: &LoadResult) -> Vec<Problem> {
    let sharing = Ownership::of(loaded.workflows.iter().map(|one| (&**one, true)));
    let source = |id: &WorkflowId| loaded.workflows.iter().find(|one| one.id == *id).map(|one| one.source.clone());
    let problem = |id: &WorkflowId, message: String, hint: String| {
        let Source { file, line, .. } = source(id).unwrap_or_default();
        let problem = Problem::error(&file, ProblemCode::NotShared, message);
        let (severity, workflow) = (Severity::Warning, Some(id.clone()));
        Problem { severity, workflow, line, hint: Some(hint), ..problem }
    };
    let unshared = sharing.all_unshared().into_iter().filter_map(|one| {
        let owner = sharing.owner(&one.reference.referent())?;
        let hint = format!("in {owner}.js: {}", one.line());
        let message = format!("{one}; it lies dormant on a server with --auth");
        Some(problem(one.workflow.as_ref()?, message, hint))
    });
    let common = sharing.common().into_iter().filter_map(|(referent, waiting)| {
        let names: Vec<&str> = waiting.iter().map(|project| &**project).collect();
        let message = format!("{referent} is awaited by {}, and belongs to no project", names.join(" and "));
        let message = format!("{message}: on a server with --auth facts about it need a role for all projects");
        let hint = format!("if it is {0}'s, name it \"{0}.{1}\"", names.first()?, referent.name());
        Some(problem(sharing.referring(&referent).next()?, message, hint))
    });
    let reads = loaded.reads.iter().filter_map(|read| {
        let missing = sharing.unshared_read(&read.project, &read.bucket)?;
        let owner = sharing.owner(&missing.reference.referent())?;
        let message = format!("{missing}; it is not loaded by a server with --auth");
        let problem = Problem::error(&read.file, ProblemCode::NotShared, message);
        Some(Problem {
            severity: Severity::Warning,
            hint: Some(format!("in {owner}.js: {}", missing.line())),
            ..problem
        })
    });
    unshared.chain(common).chain(reads).collect()
}

/// The numbers of slots that are opened, by workflow.
fn opened(past: &PastSlots) -> BTreeMap<&WorkflowId, u64> {
    past.by_workflow().iter().filter_map(|(id, past)| Some((id, past.opened?.slots))).collect()
}

/// The times that are left alone, by workflow.
fn held_back(past: &PastSlots) -> BTreeMap<&WorkflowId, HeldBack> {
    past.by_workflow().iter().filter_map(|(id, past)| Some((id, past.held_back?))).collect()
}

/// The first slots that wait forever.
fn waiting(past: &PastSlots) -> Vec<&EndlessWait> {
    past.by_workflow().values().flat_map(|past| &past.waiting).collect()
}

/// Prints all problems, and the past of a new server, or of the one whose data is there: `of_new` is how many past slots would run on a new
/// one then.
fn print(loaded: &LoadResult, past: &PastSlots, of_new: Option<u64>, files: usize) {
    let people = std::io::stdout().is_terminal();
    for problem in &loaded.problems {
        if people {
            text::raw(&report(loaded, problem));
        } else {
            folder::problem_lines(problem).iter().for_each(text::line);
        }
    }
    let place = if of_new.is_some() { "on this server" } else { "at the first start" };
    if let Some(of_new) = of_new.filter(|of_new| *of_new > 0 && past.opened() == 0) {
        text::line(format!("on this server no past slots will run; on a new one {of_new} would"));
    }
    past.lines().iter().for_each(|line| text::line(format!("{place} {line}")));
    let errors = loaded.problems.iter().filter(|problem| problem.is_error()).count();
    let warnings = loaded.problems.len() - errors;
    let found = match (errors, warnings) {
        (0, 0) => "no problems".to_owned(),
        (0, warnings) => count(warnings, "warning"),
        (errors, 0) => count(errors, "problem"),
        (errors, warnings) => format!("{}, {}", count(errors, "problem"), count(warnings, "warning")),
    };
    text::line(format!("{} in {}: {found}", count(loaded.workflows.len(), "workflow"), count(files, "file")));
}

/// A problem with the lines around it, drawn for a terminal.
fn report(loaded: &LoadResult, problem: &Problem) -> String {
    let severity = match problem.severity {
        Severity::Error => miette::Severity::Error,
        Severity::Warning => miette::Severity::Warning,
    };
    // The place comes first, so that editors and terminals make a link of it.
    let words = Problem { hint: None, ..problem.clone() }.to_string();
    let mut diagnostic =
        MietteDiagnostic::new(terminal::shown_line(&words)).with_severity(severity).with_code(problem.code.as_str());
    diagnostic.help = problem.hint.as_deref().map(terminal::shown_line);
    let source = loaded.sources.get(&problem.file).filter(|_| problem.line > 0);
    let shown = source.map(|source| terminal::shown(&source.replace("\r\n", "\n")).into_owned());
    if let Some((source, shown)) = source.zip(shown.as_ref()) {
        let line = usize::try_from(problem.line).unwrap_or(1).max(1);
        let column = usize::try_from(problem.column).unwrap_or(1).saturating_sub(1);
        let known = source.lines().nth(line - 1).unwrap_or_default();
        let at = SourceOffset::from_location(shown, line, folder::shown_width(known, column) + 1);
        diagnostic = diagnostic.with_label(LabeledSpan::underline(at));
    }
    let report = Report::new(diagnostic);
    let report = match shown {
        Some(shown) => report.with_source_code(NamedSource::new(terminal::shown_line(&problem.file), shown)),
        None => report,
    };
    let mut drawn = String::new();
    let handler = GraphicalReportHandler::new_themed(theme());
    match handler.render_report(&mut drawn, report.as_ref()) {
        Ok(()) => drawn,
        Err(_) => folder::problem_lines(problem).join("\n") + "\n",
    }
}

fn theme() -> miette::GraphicalTheme {
    let colours = std::env::var_os("NO_COLOR").is_none_or(|set| set.is_empty());
    match (crate::render::unicode(), colours) {
        (true, true) => miette::GraphicalTheme::unicode(),
        (true, false) => miette::GraphicalTheme::unicode_nocolor(),
        (false, _) => miette::GraphicalTheme::none(),
    }
}
