//! `kelos import stolos`: the jobs in the Redis or the ZooKeeper of a Stolos.

use jiff::Timestamp;
use kelos_door_stolos::import::{
    AppDefinitions, ImportError, ImportReport, ImportedApp, StateSource, import, refuse_running,
};
use kelos_engine::clock::whole_millis;
use kelos_engine::secrets::read_secret;
use kelos_model::secret::SecretSource;
use kelos_sandbox::{Host, Limits, Problem, Scripts};
use kelos_tls::{Trust, TrustSettings};
use serde_json::json;

use super::store;
use crate::apps::{self, Apps};
use crate::data::{self, Data, Place};
use crate::failure::Failure;
use crate::options::Form;
use crate::text::{self, count};
use crate::{folder, render};

#[derive(clap::Args)]
pub(crate) struct StolosArgs {
    /// Store of Stolos: redis://HOST:PORT, or zookeeper://HOST:PORT,HOST:PORT/PATH; rediss:// and zookeepers:// for TLS, with
    /// the authorities of KELOS_CA beside those of this machine. A user stands before the host
    #[arg(long, value_name = "URL", value_hint = clap::ValueHint::Url)]
    from: String,
    /// Password for it: env:NAME, file:PATH or exec:COMMAND
    #[arg(long, value_name = "SECRET", value_parser = SecretSource::parse)]
    password: Option<SecretSource>,
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    apps: Apps,
    /// Preview only: write nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    form: Form,
}

/// Jobs that are named before the rest is only counted.
const NAMED: usize = 20;

pub(crate) fn run(args: &StolosArgs) -> Result<u8, Failure> {
    let data = data::find(&args.place)?;
    let (definitions, problems) = definitions(args, &data)?;
    let trust = Trust::new(TrustSettings::of_environment()).map_err(Failure::usage)?;
    let password = args.password.as_ref().map(|source| {
        read_secret(source).map_err(|why| Failure::usage(format!("read the password from {source}: {why}")))
    });
    let source = StateSource::new(&args.from, password.transpose()?.as_deref(), &trust);
    let source = source.map_err(|error| Failure::usage(error.to_string()))?;
    let state = source.read().map_err(|error| Failure::bad(error.to_string()))?;
    if !args.dry_run {
        // Before anything is made here.
        refuse_running(&state).map_err(|error| Failure::bad(error.to_string()))?;
    }
    let mut store = store(&data, args.dry_run)?;
    let now = whole_millis(Timestamp::now());
    let imported = import(&mut *store, &state, &definitions, now, args.dry_run).map_err(|error| match error {
        ImportError::InUse => data.in_use("import"),
        other => Failure::bad(other.to_string()),
    })?;
    if args.form.json {
        let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        text::json(&json!({ "dryRun": args.dry_run, "imported": imported, "problems": problems }));
    } else {
        print(args, &imported, &problems, &data);
    }
    Ok(0)
}

/// The apps as a server of the same folder would have them.
fn definitions(args: &StolosArgs, data: &Data) -> Result<(AppDefinitions, Vec<Problem>), Failure> {
    let folders = data.folders(&args.place)?;
    let apps = args.apps.source(args.place.db.as_ref().map_or(&args.place.dir, |_| &folders.workflows))?;
    let host = Host::dry().with_format(apps::format()).with_apps(Some(apps));
    let scripts = Scripts::start(folders, Limits::default(), host);
    let loaded = scripts.map_err(|error| Failure::bad(format!("start a thread: {error}")))?.load();
    let workflows = loaded.workflows.into_iter().map(|one| (one.id.clone(), one)).collect();
    let problems = loaded.problems.into_iter().filter(Problem::is_error).collect();
    Ok((AppDefinitions { workflows, sources: loaded.sources }, problems))
}

fn print(args: &StolosArgs, imported: &ImportReport, problems: &[Problem], data: &Data) {
    let mut table = render::table(&["app", "imported", "states", "in the queue", "same", "kept"]);
    for one in &imported.apps {
        let states: Vec<String> = one.imported.iter().map(|(state, jobs)| format!("{jobs} {state}")).collect();
        table.add_row(vec![
            one.id.clone(),
            one.jobs().to_string(),
            states.join(", "),
            one.queued.to_string(),
            one.same.to_string(),
            one.kept.len().to_string(),
        ]);
    }
    render::print(table);
    for (app, jobs) in &imported.undefined {
        text::line(format!("{app}: no app here has this name: {} left out", jobs_were(*jobs)));
    }
    imported.apps.iter().for_each(kept);
    named(&imported.troubles, |trouble| trouble.clone());
    named(&imported.running, |job| format!("{job} is run by Stolos now: it has to end before the import"));
    if imported.stateless > 0 {
        text::line(stateless(imported.stateless));
    }
    for problem in problems {
        folder::problem_lines(problem).iter().for_each(text::line);
    }
    text::line(summary(&args.from, args.dry_run, imported, data));
}

fn kept(one: &ImportedApp) {
    named(&one.kept, |kept| {
        format!("{}: kept: {} is {} here, {} in Stolos", one.id, kept.job, kept.here.as_str(), kept.there)
    });
}

fn named<T>(all: &[T], line: impl Fn(&T) -> String) {
    all.iter().take(NAMED).for_each(|one| text::line(line(one)));
    if all.len() > NAMED {
        text::line(format!("and {} more; --json names them all", all.len() - NAMED));
    }
}

fn jobs_were(jobs: usize) -> String {
    format!("{} {}", count(jobs, "job"), if jobs == 1 { "was" } else { "were" })
}

fn stateless(records: usize) -> String {
    let have = if records == 1 { "has no state: its job was" } else { "have no state: their jobs were" };
    format!("{} of Stolos {have} never submitted", count(records, "record"))
}

fn summary(from: &str, dry_run: bool, imported: &ImportReport, data: &Data) -> String {
    let place = data.database().display().to_string();
    if imported.events == 0 {
        return nothing(from, imported, &place);
    }
    let jobs: u32 = imported.apps.iter().map(ImportedApp::jobs).sum();
    let what = format!("{} of {}", count(jobs as usize, "job"), count(imported.apps.len(), "app"));
    if dry_run {
        format!("would import {what} into {place}; nothing was written")
    } else {
        format!("imported {what} into {place}")
    }
}

/// The reason for which nothing was imported.
fn nothing(from: &str, imported: &ImportReport, place: &str) -> String {
    let known: usize = imported.apps.iter().map(|one| one.same as usize + one.kept.len()).sum();
    let left_out = imported.undefined.values().sum::<usize>() + imported.troubles.len();
    let left_out = |before: &str| format!("{before}{} left out, see above", jobs_were(left_out));
    match (known, imported.undefined.is_empty() && imported.troubles.is_empty()) {
        (0, true) if imported.stateless > 0 => "nothing imported: its jobs were never submitted".to_owned(),
        (0, true) => format!("nothing imported: {from} has no jobs of Stolos"),
        (0, false) => left_out("nothing imported: "),
        (_, true) => format!("nothing new: {place} has it already"),
        (_, false) => left_out(&format!("nothing new: {place} has the others already; ")),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn what_was_not_imported_is_told_with_its_reason() {
        let told = |report: &ImportReport| nothing("redis://h:6379", report, "kelos.db");
        let known = ImportedApp { id: "a".to_owned(), same: 2, ..ImportedApp::default() };
        let undefined = BTreeMap::from([("b".to_owned(), 2), ("c".to_owned(), 1)]);
        let mut report = ImportReport::default();
        assert_eq!(told(&report), "nothing imported: redis://h:6379 has no jobs of Stolos");
        report.stateless = 1;
        assert_eq!(told(&report), "nothing imported: its jobs were never submitted");
        report.undefined = undefined;
        assert_eq!(told(&report), "nothing imported: 3 jobs were left out, see above");
        report.apps.push(known);
        assert_eq!(told(&report), "nothing new: kelos.db has the others already; 3 jobs were left out, see above");
        report.undefined.clear();
        assert_eq!(told(&report), "nothing new: kelos.db has it already");
    }
}
