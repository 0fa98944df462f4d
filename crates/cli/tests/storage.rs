//! `kelos storage`: what takes how much, and folders of runs that go.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::support::{Folder, Server, eventually};

const SCRIPT: &str = r#"
celos.defineWorkflow({ id: "report", schedule: celos.cronSchedule("0 0 * * * ?"), startTime: "2026-01-01T00:00Z",
  schedulingStrategy: celos.serialSchedulingStrategy(), trigger: celos.fileCheckTrigger("/nowhere/${year}"),
  externalService: celos.commandExternalService({ command: ["echo", "hello"] }) });
"#;

const CONFIG: &str = r#"{"history": {"days": 1, "runs": 0}}"#;

/// The folders of all runs below a folder.
fn runs(root: &Path) -> Vec<PathBuf> {
    let below = |dir: PathBuf| fs::read_dir(dir).into_iter().flatten().map(|entry| entry.unwrap().path());
    let dirs = below(root.to_owned()).filter(|path| path.is_dir());
    dirs.flat_map(below).flat_map(below).collect()
}

fn up(folder: &Folder) -> Server {
    Server::start(folder.path(), &["up", "--port", "0", "--config", "kelos.json"], "Stop with Ctrl-C")
}

/// A folder with one run that ended three days ago.
fn with_old_run() -> Folder {
    let folder = Folder::with(&[("workflows/report.js", SCRIPT), ("kelos.json", CONFIG)]);
    let server = up(&folder);
    eventually("the workflow", || folder.run(&["ls"]).ok().contains("report").then_some(()));
    folder.run(&["start", "report"]).ok();
    eventually("the end", || (folder.states("report").contains(&"succeeded".to_owned())).then_some(()));
    let found =
        eventually("a look", || Some(folder.json(&["storage", "--json"])).filter(|found| !found["runs"].is_null()));
    assert_eq!(found["consent"], "new");
    assert_eq!(found["terms"], "1 day, and at most 10 GB in all");
    assert!(found["database"]["events"].as_u64() > Some(0) && found["database"]["bytes"].as_u64() > Some(0));
    assert!(server.stop().success());
    let [run] = &runs(&folder.path().join(".kelos/runs"))[..] else { panic!("one run") };
    let end = SystemTime::now() - Duration::from_secs(3 * 86_400);
    File::options().write(true).open(run.join("exit.json")).unwrap().set_modified(end).unwrap();
    folder
}

#[test]
fn folders_of_runs_go_when_their_time_is_over_and_their_output_says_so() {
    let folder = with_old_run();
    let server = up(&folder);
    let is_gone = || folder.json(&["storage", "--json"])["removed"]["folders"].as_u64() == Some(1);
    eventually("the removal", || is_gone().then_some(()));
    assert_eq!(runs(&folder.path().join(".kelos/runs")), Vec::<PathBuf>::new());
    let said = folder.run(&["logs", "report"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.err.contains("it was removed on") && said.err.contains("after 1 day"), "{said:?}");
    let told = folder.run(&["storage"]).ok();
    assert!(told.contains("removed    1 folder with") && told.contains("kept       1 day"), "{told}");
    assert!(server.stop().success());
}

#[test]
fn folders_from_before_stay_until_somebody_agrees() {
    let folder = with_old_run();
    let root = folder.path().join(".kelos/runs");
    fs::remove_file(root.join(".bounded")).unwrap();
    let server = up(&folder);
    let told = eventually("a look", || Some(folder.run(&["storage"]).ok()).filter(|told| told.contains("would go")));
    assert!(told.contains("would go   1 folder with") && told.contains("`kelos storage --agree`"), "{told}");
    assert_eq!((runs(&root).len(), folder.run(&["logs", "report"]).ok().trim()), (1, "hello"));
    let agreed = folder.run(&["storage", "--agree", "--reason", "it is archived"]).ok();
    assert_eq!(agreed.trim(), "Agreed: history and folders of runs are removed as the settings say, from now on.");
    eventually("the removal", || runs(&root).is_empty().then_some(()));
    assert!(folder.run(&["events"]).ok().contains("it is archived"));
    assert!(server.stop().success());
}
