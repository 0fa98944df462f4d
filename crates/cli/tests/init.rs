//! `kelos init`: what it writes is right, tested and runs; what it refuses stays as it is.

use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use crate::support::{Folder, Server, eventually, run_in};

/// Names that a shell, a URL or an option would take for something else.
const ODD_NAMES: [&str; 4] = ["first", "it's a \"né\" $(touch x); #1?&%41\\", "-x", "workflows"];

const FILES: [&str; 5] = [".gitignore", "jsconfig.json", "kelos.d.ts", "tests/hello.test.js", "workflows/hello.js"];

/// All files of a folder but for the state, with their text.
fn files(dir: &Path) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
            if entry.ends_with(".kelos") {
                continue;
            }
            if entry.is_dir() {
                folders.push(entry);
            } else {
                let name = entry.strip_prefix(dir).expect("a path below").to_str().expect("text").to_owned();
                all.insert(name, std::fs::read_to_string(&entry).expect("text"));
            }
        }
    }
    all
}

/// The commands that were proposed, as a shell runs them.
fn proposed(said: &str) -> Vec<String> {
    let after = said.split_once("Next:\n").expect("what to do next").1;
    after.lines().map(|line| line.trim().to_owned()).collect()
}

/// A shell in which the program is on the path.
fn shell(dir: &Path, script: &str) -> Command {
    let bin = dir.join("bin");
    if !bin.exists() {
        std::fs::create_dir(&bin).expect("a folder");
        symlink(assert_cmd::cargo::cargo_bin!("kelos"), bin.join("kelos")).expect("a link");
    }
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script]).current_dir(dir).env("PATH", format!("{}:{path}", bin.display()));
    command.env_remove("KELOS_SERVER").env_remove("STOLOS_TASKS_JSON");
    command
}

#[test]
fn a_first_project_is_right_and_its_tests_pass_whatever_its_folder_is_called() {
    for name in ODD_NAMES {
        let around = Folder::with(&[]);
        let said = around.run(&["init", "--", name]).ok();
        let project = around.path().join(name);
        assert_eq!(files(&project).into_keys().collect::<Vec<_>>(), FILES, "{name}");
        FILES.iter().for_each(|file| assert!(said.contains(file), "{said}"));
        let checked = around.run(&["check", "--", name]).ok();
        assert!(checked.ends_with("\n1 workflow in 1 file: no problems\n"), "{checked}");
        assert!(checked.contains("past slots will run: hello "), "{checked}");
        let commands = proposed(&said);
        assert_eq!(commands.len(), 2, "{said}");
        let output = shell(around.path(), &commands[0]).output().expect("a shell");
        let printed = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && printed.contains("2 tests: 2 passed"), "{}: {printed}", commands[0]);
        let left = std::fs::read_dir(around.path()).expect("a folder").count();
        assert_eq!(left, 2, "the project and the program are all that there is");
    }
}

#[test]
fn a_first_project_runs_at_once() {
    let around = Folder::with(&[]);
    let name = ODD_NAMES[1];
    let said = around.run(&["init", name]).ok();
    let up = proposed(&said).pop().expect("a command");
    let server = Server::run(&mut shell(around.path(), &format!("exec {up}")), "Stop with Ctrl-C");
    assert!(server.said.contains("workflows  1"), "{}", server.said);
    assert!(server.said.contains("past slots will run: hello "), "{}", server.said);
    let project = around.path().join(name);
    let counts = eventually("all hours have said hello", || {
        let listed: serde_json::Value =
            serde_json::from_str(&run_in(&project, &["slots", "hello", "--all", "--json"]).ok()).expect("JSON");
        let slots = listed["items"].as_array().expect("slots").clone();
        (!slots.is_empty() && slots.iter().all(|slot| slot["state"] == "succeeded")).then_some(slots.len())
    });
    assert!((24..=49).contains(&counts), "the hours of yesterday and today: {counts}");
    let slots: serde_json::Value =
        serde_json::from_str(&run_in(&project, &["slots", "hello", "--limit", "1", "--json"]).ok()).expect("JSON");
    let time = slots["items"][0]["time"].as_str().expect("a time").to_owned();
    let log = run_in(&project, &["logs", "hello", &time]).ok();
    assert!(log.starts_with("hello from "), "{log}");
    assert_eq!(files(&project).len(), FILES.len());
}

#[test]
fn a_server_without_scripts_says_where_to_write_one() {
    for (kept, file) in [("README.md", "first.js"), ("workflows/README.md", "workflows/first.js")] {
        let folder = Folder::with(&[(kept, "mine\n")]);
        let server = Server::up(&folder);
        assert!(server.said.contains(&format!("write {file}; it is picked up")), "{}", server.said);
        assert!(server.said.contains("`kelos init`"), "{}", server.said);
        folder.write(file, include_str!("../src/init/hello.js"));
        eventually("the workflow is there", || folder.run(&["ls"]).ok().contains("hello").then_some(()));
    }
}

#[test]
fn the_folder_of_the_command_is_the_default_and_may_be_a_repository() {
    let folder = Folder::with(&[("README.md", "mine\n"), (".gitignore", "/target\n")]);
    let said = folder.run(&["init"]).ok();
    assert!(said.contains(".gitignore was kept as it is; add the line /.kelos/ to it"), "{said}");
    assert_eq!(proposed(&said), ["kelos test", "kelos up"]);
    assert_eq!(files(folder.path())[".gitignore"], "/target\n");
    let again = Folder::with(&[]);
    let json = again.json(&["init", "--json"]);
    assert_eq!(json["written"].as_array().expect("files").len(), FILES.len());
    assert_eq!(json["kept"], serde_json::json!([]));
}

#[test]
fn nothing_that_is_there_is_overwritten() {
    let unless = FILES.iter().filter(|file| **file != ".gitignore");
    for file in unless {
        let folder = Folder::with(&[(file, "mine\n")]);
        let before = files(folder.path());
        let err = folder.run(&["init"]).fails(1);
        assert!(err.contains("exists") || err.contains("it has 1 script already"), "{err}");
        assert_eq!(files(folder.path()), before, "{file}");
    }
    let linked = Folder::with(&[]);
    symlink("elsewhere.json", linked.path().join("jsconfig.json")).expect("a link");
    linked.run(&["init"]).fails(1);
    assert!(!linked.path().join("elsewhere.json").exists(), "a link to nothing is something");
}

#[test]
fn a_project_is_not_made_in_another_one() {
    // Scripts beside a folder `workflows` are not read.
    let folder = Folder::with(&[("mine.js", "")]);
    let err = folder.run(&["init"]).fails(1);
    assert!(err.contains("it has 1 script already"), "{err}");
    let folder = Folder::with(&[("tasks.json", "{}")]);
    let err = folder.run(&["init"]).fails(1);
    assert!(err.contains("it has a tasks.json") && err.contains("hint: nothing was written"), "{err}");
}

#[test]
fn what_was_written_is_removed_if_the_rest_cant_be() {
    let folder = Folder::with(&[("tests", "a file\n")]);
    let err = folder.run(&["init"]).fails(1);
    assert!(err.contains("write ./tests/hello.test.js: "), "{err}");
    assert_eq!(files(folder.path()).into_keys().collect::<Vec<_>>(), ["tests"]);
    let err = folder.run(&["init", "tests"]).fails(2);
    assert!(err.contains("it is a file, expected a folder"), "{err}");
    folder.run(&["init", ""]).fails(2);
}
