//! `kelos init`: the files of a first project, from templates.

use std::path::{Path, PathBuf};

use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use crate::apps::TASKS_JSON;
use crate::failure::Failure;
use crate::folder;
use crate::options::Form;
use crate::templates::{self, Template, is_there};
use crate::text;

#[derive(clap::Args)]
pub(crate) struct InitArgs {
    /// Folder of the project; it is made if it does not exist
    #[arg(default_value = ".", value_hint = clap::ValueHint::DirPath)]
    dir: PathBuf,
    #[command(flatten)]
    form: Form,
}

/// A file that is kept as it is if there is one: repositories have it before they have a project.
const GITIGNORE: &str = ".gitignore";

const TEMPLATES: [Template; 5] = [
    Template { path: "workflows/hello.js", about: "a workflow that runs each hour", text: include_str!("hello.js") },
    Template { path: "tests/hello.test.js", about: "its tests", text: include_str!("hello.test.js") },
    Template { path: "kelos.d.ts", about: "what scripts can say, for editors and people", text: kelos_sandbox::TYPES },
    Template { path: "jsconfig.json", about: "makes editors read it", text: include_str!("jsconfig.json") },
    Template { path: GITIGNORE, about: "leaves the state out of git", text: include_str!("gitignore") },
];

/// The day that stands in templates for the start of the first workflow, and the one after it.
const FIRST_DAY: &str = "2000-01-01";
const SECOND_DAY: &str = "2000-01-02";

pub(crate) fn run(args: &InitArgs) -> Result<u8, Failure> {
    let dir = &args.dir;
    let doing = format!("make a project in {}", dir.display());
    if dir.as_os_str().is_empty() {
        return Err(Failure::usage("make a project: the name of its folder is empty"));
    }
    refuse_projects(dir, &doing)?;
    let (kept, new): (Vec<&Template>, Vec<&Template>) =
        TEMPLATES.iter().partition(|one: &&Template| one.path == GITIGNORE && is_there(&dir.join(one.path)));
    let taken = templates::taken(dir, &new);
    if !taken.is_empty() {
        let exist = format!("{doing}: {} exists", taken.join(", "));
        return Err(Failure::bad(exist).hint(templates::NOTHING_WRITTEN));
    }
    let now = Timestamp::now();
    let written = templates::write(dir, &new, |text| filled(text, now));
    written.map_err(|error| Failure::bad(format!("{doing}: {error}")))?;
    if args.form.json {
        let paths = |files: &[&Template]| files.iter().map(|one| one.path).collect::<Vec<_>>();
        text::json(&json!({ "dir": dir.to_string_lossy(), "written": paths(&new), "kept": paths(&kept) }));
    } else {
        text::line(report(dir, &new, !kept.is_empty()));
    }
    Ok(0)
}

/// Refuses a folder whose scripts or apps would no longer be read, or run beside those of the templates.
fn refuse_projects(dir: &Path, doing: &str) -> Result<(), Failure> {
    if dir.exists() && !dir.is_dir() {
        return Err(Failure::usage(format!("{doing}: it is a file, expected a folder")));
    }
    let folders = folder::folders(dir, None);
    let what = match (folder::scripts(&folders)?, is_there(&dir.join(TASKS_JSON))) {
        (0, false) => return Ok(()),
        (0, true) => format!("it has a {TASKS_JSON}"),
        (scripts, _) => format!("it has {} already", text::count(scripts, "script")),
    };
    let hint = "nothing was written; name another folder, or write a script beside those: `kelos types` has the API";
    Err(Failure::bad(format!("{doing}: {what}")).hint(hint))
}

/// A template with its days: the first is yesterday, so that some hours of the workflow are past, but not many.
fn filled(template: &str, now: Timestamp) -> String {
    let day = |ago: i64| {
        now.checked_sub(SignedDuration::from_hours(24 * ago)).unwrap_or(now).strftime("%Y-%m-%d").to_string()
    };
    template.replace(FIRST_DAY, &day(1)).replace(SECOND_DAY, &day(0))
}

/// The list of the files that were written, and the next two commands.
fn report(dir: &Path, written: &[&Template], keeps_gitignore: bool) -> String {
    let mut lines = templates::listed(dir, written);
    if keeps_gitignore {
        lines.push(format!("{GITIGNORE} was kept as it is; add the line /.kelos/ to it"));
    }
    let (place, argument) = templates::argument(dir);
    lines.push(format!("Next{place}:"));
    lines.push(format!("  kelos test{argument}"));
    lines.push(format!("  kelos up{argument}"));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_days_of_a_project_are_yesterday_and_today() {
        let now: Timestamp = "2026-03-01T00:30:00Z".parse().expect("a time");
        assert_eq!(filled("2000-01-01 2000-01-02", now), "2026-02-28 2026-03-01");
        assert!(TEMPLATES.iter().all(|one| !filled(one.text, now).contains("2000-")));
    }
}
