//! Scripts in, JSON out: every fixture has its expected definitions or problems beside it.
//! Run with `KELOS_BLESS=1` to write what comes out now; read the difference before you commit it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kelos_sandbox::{Folders, Host, Limits, LoadResult, RegisterError, Registers, Scripts, check};
use serde_json::{Value, json};

struct Colours;

impl Registers for Colours {
    fn get(&self, project: &str, bucket: &str, key: &str) -> Result<Option<Value>, RegisterError> {
        Ok(self.all(project, bucket)?.into_iter().find(|(known, _)| known == key).map(|(_, value)| value))
    }

    fn all(&self, _: &str, bucket: &str) -> Result<Vec<(String, Value)>, RegisterError> {
        let all = || vec![("green".into(), json!({"hex": "0f0"})), ("red".into(), json!({"hex": "f00"}))];
        Ok(if bucket == "colours" { all() } else { Vec::new() })
    }
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/definitions")
}

fn load(folder: PathBuf) -> LoadResult {
    let folders = Folders { workflows: folder, defaults: fixtures().join("defaults") };
    let host = Host::new(Arc::new(Colours), |uri| Ok(uri == "hdfs://nameservice1/there/2015"))
        .with_format(std::sync::Arc::new(kelos_door_stolos::TasksJson))
        .with_clock(|| "2016-02-11T10:20:30.456Z".parse().unwrap());
    Scripts::start(folders, Limits::default(), host).unwrap().load()
}

/// Compares with the file, or writes it.
fn expect(path: &Path, found: &str) {
    if std::env::var_os("KELOS_BLESS").is_some() {
        fs::write(path, found).unwrap();
    }
    let expected = fs::read_to_string(path).unwrap_or_default();
    assert!(expected == found, "{} differs from what came out:\n{found}", path.display());
}

#[test]
fn good_files_yield_their_definitions() {
    let loaded = load(fixtures());
    let problems: Vec<String> = loaded.problems.iter().map(ToString::to_string).collect();
    assert_eq!(problems, [""; 0]);
    let mut by_file: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    for workflow in &loaded.workflows {
        by_file.entry(&workflow.source.file).or_default().push(serde_json::to_value(workflow).unwrap());
    }
    assert_eq!(by_file.len(), loaded.evaluated);
    for (file, workflows) in by_file {
        let found = serde_json::to_string_pretty(&workflows).unwrap() + "\n";
        expect(&fixtures().join(file).with_extension("json"), &found);
    }
}

#[test]
fn definitions_survive_their_json() {
    for workflow in load(fixtures()).workflows {
        let json = serde_json::to_string(&workflow).unwrap();
        assert_eq!(serde_json::from_str::<kelos_model::Workflow>(&json).unwrap(), *workflow);
    }
}

#[test]
fn the_examples_of_the_document_of_schedules_yield_their_definitions() {
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples/schedules");
    let folders = Folders { workflows: sample.join("workflows"), defaults: sample.join("defaults") };
    let loaded = check(folders, Limits::default(), std::sync::Arc::new(kelos_door_stolos::TasksJson), None).unwrap();
    let problems: Vec<String> = loaded.problems.iter().map(ToString::to_string).collect();
    assert_eq!(problems, [""; 0]);
    let found = serde_json::to_string_pretty(&loaded.workflows).unwrap() + "\n";
    let expected = fixtures().join("../samples");
    expect(&expected.join("schedules.json"), &found);
}

#[test]
fn bad_files_say_what_was_expected_and_where() {
    let loaded = load(fixtures().join("errors"));
    let mut found = String::new();
    for problem in &loaded.problems {
        writeln!(found, "{problem} [{}]", problem.code).unwrap();
        if let Some(line) = &problem.source_line {
            writeln!(found, "    | {}", line.chars().take(110).collect::<String>()).unwrap();
        }
    }
    expect(&fixtures().join("errors/problems.txt"), &found);
    let files = fs::read_dir(fixtures().join("errors"))
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().path().extension().is_some_and(|extension| extension == "js"));
    assert_eq!(files.count(), loaded.evaluated);
    for problem in loaded.problems.iter().filter(|problem| !problem.message.contains("thrown")) {
        assert!(problem.line > 0 || problem.message.contains("promises"), "no place: {problem}");
    }
}
