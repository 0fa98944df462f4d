//! The bundle of `kelos doctor --bundle`: a file for whoever helps, by allow-lists. There are no outputs and arguments of runs in it, no values
//! of registers and variables, and no scripts unless they are asked for.

mod config;
mod content;
mod log;
mod redaction;
mod secrets;

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use jiff::Timestamp;
use kelos_store_sqlite::SqliteStore;
use serde_json::{Value, json};

use super::diagnosis::Diagnosis;
use super::installation::Installation;
use super::readings::Readings;
use crate::failure::Failure;
use crate::host::LONGEST_CONFIG;
use crate::text::count;
use redaction::Redaction;

/// The folder in the archive.
const FOLDER: &str = "kelos-doctor";
/// A larger database is not read as a whole for the sizes of its tables.
const LARGEST: u64 = 2 << 30;
/// Longest script that is taken in.
const LONGEST_SCRIPT: u64 = 1 << 20;

const README: &str = "\
What `kelos doctor --bundle` found of an installation of Kelos.

checks.json        the results of the checks
versions.json      versions of the program, of the server, of nodes and workers, and the kind of machine
health.json, problems.json, endpoints.json, workflows.json, nodes.json, workers.json, stuck.json
                   answers of the server, of each only the fields that are known to hold no secrets
tables.json        rows and bytes of each table of the database
config.json        the file of --config, as far as its values are known to be no secrets
environment.json   the names of variables that Kelos reads and that are set, without their values
log.jsonl          the end of the server's log: time, level, origin and message of each line
scripts/           only with --with-scripts

Addresses are cut, quoted values that are no names of workflows, projects or files are left out, and values that are known to be secret are
masked. Names of workflows, files, hosts and slots are in it. Read it before you send it.
";

/// The options of the bundle.
#[derive(clap::Args)]
pub(crate) struct BundleOptions {
    /// Write what was found into this new file, for whoever helps: without secrets, outputs and scripts
    #[arg(long, value_name = "FILE.tar.gz", value_hint = clap::ValueHint::FilePath)]
    bundle: Option<PathBuf>,
    /// With --bundle: put the scripts in, too, as they are
    #[arg(long, requires = "bundle")]
    with_scripts: bool,
}

impl BundleOptions {
    /// Refuses a file that can't be a bundle, before anything is read for it.
    pub(super) fn check(&self) -> Result<(), Failure> {
        let Some(path) = &self.bundle else { return Ok(()) };
        let fail = |why: &str| Err(Failure::usage(format!("write the bundle {}: {why}", path.display())));
        if !path.to_string_lossy().ends_with(".tar.gz") {
            return fail("expected a name that ends with .tar.gz");
        }
        if path.exists() { fail("there is such a file already; remove it, or name another one") } else { Ok(()) }
    }

    /// Writes the bundle, if one was asked for; gives a line about it.
    pub(super) fn write(&self, installation: &Installation, readings: &Readings) -> Result<Option<String>, Failure> {
        let Some(path) = &self.bundle else { return Ok(None) };
        let entries = entries(installation, readings, self.with_scripts);
        let fail = |error: std::io::Error| Failure::bad(format!("write the bundle {}: {error}", path.display()));
        archive(path, &entries).map_err(fail)?;
        let without =
            if self.with_scripts { "secrets and outputs; with scripts" } else { "secrets, outputs and scripts" };
        let files = count(entries.len(), "file");
        Ok(Some(format!("wrote {}: {files}, without {without}. Read it before you send it", path.display())))
    }
}

/// A file in the archive.
struct Entry {
    name: String,
    text: String,
}

/// Writes a file that only its owner may read.
fn archive(path: &Path, entries: &[Entry]) -> std::io::Result<()> {
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    let mut archive = tar::Builder::new(GzEncoder::new(file, Compression::default()));
    let modified = u64::try_from(Timestamp::now().as_second()).unwrap_or(0);
    for Entry { name, text } in entries {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o600);
        header.set_mtime(modified);
        archive.append_data(&mut header, format!("{FOLDER}/{name}"), text.as_bytes())?;
    }
    archive.into_inner()?.finish()?.flush()
}

/// The files of the bundle.
fn entries(installation: &Installation, readings: &Readings, with_scripts: bool) -> Vec<Entry> {
    let names = names(readings);
    let secrets = secrets::known(installation, readings, &names);
    let redaction = Redaction::new(names, secrets);
    let answers = &readings.answers;
    let results: Vec<Diagnosis> = readings.judge_without_foreign_words();
    let mut files: Vec<(&str, Option<Value>)> = vec![
        ("checks.json", Some(content::checks(&results, &redaction))),
        ("versions.json", Some(content::versions(readings))),
        ("health.json", answers.health.as_ref().map(|health| content::health(health, &redaction))),
        (
            "problems.json",
            answers
                .problems
                .as_ref()
                .map(|found| found.items.iter().map(|one| content::problem(one, &redaction)).collect()),
        ),
        (
            "endpoints.json",
            answers
                .endpoints
                .as_ref()
                .map(|found| found.items.iter().map(|one| content::endpoint(one, &redaction)).collect()),
        ),
        ("workflows.json", answers.workflows.as_ref().map(|found| found.items.iter().map(content::workflow).collect())),
        ("nodes.json", answers.nodes.as_ref().map(|found| content::nodes(found, &redaction))),
        ("workers.json", answers.workers.as_ref().map(|found| found.items.iter().map(content::worker).collect())),
        ("stuck.json", answers.stuck.as_ref().map(|found| found.items.iter().map(content::stuck).collect())),
        ("tables.json", readings.data.as_ref().map(|data| tables(&data.path))),
        ("environment.json", Some(secrets::variables())),
    ];
    let config = installation.config.as_ref().map(|path| match kelos_sandbox::read_text(path, LONGEST_CONFIG) {
        Ok(text) => config::shown(&text),
        Err(why) => json!({ "problem": why.to_string() }),
    });
    files.push(("config.json", config));
    let pretty = |value: Value| serde_json::to_string_pretty(&value).unwrap_or_default() + "\n";
    let mut entries = vec![Entry { name: "README.txt".to_owned(), text: README.to_owned() }];
    let given = files.into_iter().filter_map(|(name, value)| Some((name, value?)));
    // Names and addresses are in all of them: known secrets are masked in all texts.
    let masked = |value| pretty(redaction.masked_value(value));
    entries.extend(given.map(|(name, value)| Entry { name: name.to_owned(), text: masked(value) }));
    let log = installation.logs.as_deref().and_then(|folder| log::end_of(folder, &redaction));
    entries.extend(log.map(|text| Entry { name: "log.jsonl".to_owned(), text }));
    if with_scripts {
        entries.extend(scripts(installation, &redaction));
    }
    entries
}

/// The names that messages may quote.
fn names(readings: &Readings) -> std::collections::BTreeSet<String> {
    let workflows = readings.answers.workflows.iter().flat_map(|found| &found.items);
    let files = readings.answers.problems.iter().flat_map(|found| &found.items).map(|one| one.file.clone());
    workflows.flat_map(|one| [one.id.clone(), one.project.clone()]).chain(files).collect()
}

/// The sizes of the tables of a database.
fn tables(path: &Path) -> Value {
    let bytes = std::fs::metadata(path).map_or(0, |meta| meta.len());
    if bytes > LARGEST {
        return json!({ "bytes": bytes, "leftOut": "the database is too large to be read for it" });
    }
    let read = SqliteStore::look(path).and_then(|store| store.tables());
    match read {
        Ok(tables) => {
            let table =
                |one: &kelos_store_sqlite::TableSize| json!({ "name": one.name, "rows": one.rows, "bytes": one.bytes });
            json!({ "bytes": bytes, "schema": SqliteStore::schema(), "tables": tables.iter().map(table).collect::<Vec<_>>() })
        }
        Err(error) => json!({ "bytes": bytes, "problem": error.to_string() }),
    }
}

/// The scripts, in which known secrets are masked.
fn scripts(installation: &Installation, redaction: &Redaction) -> Vec<Entry> {
    let Some((folders, _)) = &installation.scripts else { return Vec::new() };
    let mut found = Vec::new();
    for (within, folder) in [("workflows", &folders.workflows), ("defaults", &folders.defaults)] {
        let Ok(listed) = std::fs::read_dir(folder) else { continue };
        let mut paths: Vec<PathBuf> = listed.filter_map(Result::ok).map(|entry| entry.path()).collect();
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "js"));
        paths.sort();
        for path in paths {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let text = kelos_sandbox::read_text(&path, LONGEST_SCRIPT);
            let text = text.map_or_else(|why| format!("// it {why}\n"), |text| redaction.masked(&text));
            found.push(Entry { name: format!("scripts/{within}/{name}"), text });
        }
    }
    found
}
