//! The folders of runs of a worker on another machine, kept within the settings of that machine.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};

use jiff::Timestamp;
use kelos_engine::clock::Clock;
use kelos_executors::workers::{HeldFolders, HeldRuns};
use kelos_model::history::HistorySettings;

use super::consent::Consent;
use super::pause::Pause;
use super::sweep::Sweep;
use super::witness::DiskWitness;
use super::{Knowledge, Order, follow, lock, note};

/// The history of a worker, which looks at its folders until it is dropped.
pub struct WorkerHistory {
    known: Arc<Mutex<Knowledge>>,
    orders: Sender<Order>,
}

impl WorkerHistory {
    /// Begins to look at the folders of the runs of a worker. Without settings they are the usual ones; settings are the consent to remove
    /// folders from before history was bounded.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn start(settings: Option<HistorySettings>, held: HeldRuns, clock: Clock) -> std::io::Result<WorkerHistory> {
        let (orders, given) = channel();
        let history = WorkerHistory { known: Arc::default(), orders };
        let known = history.known.clone();
        let work = move || follow(&given, &known, || sweep(settings.as_ref(), &held, clock(), &known));
        std::thread::Builder::new().name("history".to_owned()).spawn(work)?;
        Ok(history)
    }
}

impl Drop for WorkerHistory {
    fn drop(&mut self) {
        lock(&self.known).is_over = true;
        let _ = self.orders.send(Order::End);
    }
}

/// Looks at all folders once, and removes what goes.
fn sweep(said: Option<&HistorySettings>, held: &HeldRuns, now: Timestamp, known: &Mutex<Knowledge>) {
    let usual = HistorySettings::default();
    let (settings, is_agreed) = (said.unwrap_or(&usual), said.is_some());
    let Some(term) = settings.term() else { return };
    let is_over = || lock(known).is_over;
    let by_project = !term.projects.is_empty();
    let mut witness = DiskWitness { held, is_agreed, by_project, open: BTreeSet::new() };
    let (roots, pause): ([PathBuf; 1], _) = ([held.root().to_owned()], Pause::default());
    let sweep = Sweep { settings, roots: &roots, witness: &mut witness, now, pause, is_over: &is_over };
    let outcome = sweep.run(&|figures, removed| {
        let (looked_at, oldest_at) = (figures.at, figures.oldest);
        let all = (figures.all.folders, figures.all.bytes);
        note(known, figures, removed);
        let removed = lock(known).removed;
        held.tell(HeldFolders { looked_at, all, oldest_at, removed: (removed.folders, removed.bytes) });
    });
    if let Err(error) = outcome {
        tracing::warn!("failed to {error}; the folders of runs stay as they are for now");
        return;
    }
    let known = lock(known);
    if let Some(why) = &known.problem {
        tracing::warn!("failed to {why}");
    }
    let waiting = known.figures.as_ref().filter(|figures| figures.consent == Consent::Missing).map(|all| all.going);
    if let Some(going) = waiting.filter(|going| going.folders > 0) {
        let (root, folders) = (held.root().display(), going.folders);
        tracing::warn!(
            "{folders} folders of runs in {root} are from before history was bounded: \"history\" in --config lets them go"
        );
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::time::{Duration, SystemTime};

    use kelos_executors::local::{RunDirs, RunRef};
    use kelos_executors::workers::Disk;

    use super::*;

    const DAY: u64 = 86_400;

    /// The folder of a run that ended on this day, of this project.
    fn folder(root: &Path, workflow: &str, day: u64, project: &str) -> PathBuf {
        let run = RunRef::new(workflow, "k", day);
        let dir = RunDirs::new(root).path(&run);
        fs::create_dir_all(&dir).unwrap();
        let spec = serde_json::json!({
            "run": run, "run_id": "r", "argv": [], "env": {}, "inherit_env": true, "cwd": null, "log_limit_bytes": null,
            "project": project,
        });
        fs::write(dir.join("spec.json"), spec.to_string()).unwrap();
        fs::write(dir.join("exit.json"), "{}").unwrap();
        let end = SystemTime::UNIX_EPOCH + Duration::from_secs(day * DAY);
        fs::File::options().write(true).open(dir.join("exit.json")).unwrap().set_modified(end).unwrap();
        dir
    }

    fn swept(disk: &Disk, said: &str) {
        let said = HistorySettings::find(said).unwrap();
        let now = Timestamp::from_second(i64::try_from(100 * DAY).unwrap()).unwrap();
        let known = Mutex::default();
        sweep(said.as_ref(), &disk.held_runs(), now, &known);
        assert_eq!(lock(&known).problem, None);
    }

    #[test]
    fn what_ended_goes_by_the_terms_of_its_project_and_what_did_not_end_stays() {
        let place = tempfile::tempdir().unwrap();
        let home = place.path().join("worker");
        let disk = Disk::take(&home, &["http://a"]).unwrap();
        let root = disk.runs();
        let old = folder(&root, "w", 1, "here");
        let open = folder(&root, "w", 2, "here");
        fs::remove_file(open.join("exit.json")).unwrap();
        fs::File::open(&open).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
        let long = folder(&root, "long", 3, "long kept");
        let note = r#"{"run": {"slot": {"workflow": "w", "key": "~k"}, "number": 4}, "executor": "command"}"#;
        let unheard = folder(&root, "w", 4, "here");
        fs::rename(unheard.parent().unwrap(), root.join("w/%7Ek")).unwrap();
        fs::write(home.join("held/1"), note).unwrap();
        let unheard = root.join("w/%7Ek/4");
        let is_there = || [&*old, &*root.join("w/%7Ek/1"), &*long, &*unheard].map(Path::exists);
        assert_eq!(is_there(), [false, true, true, true]);
        let settings = r#"{"history": {"days": 10, "runs": 0, "projects": {"long kept": {"days": 1000, "runs": 0}}}}"#;
        swept(&disk, r#"{"history": "all"}"#);
        assert_eq!(is_there(), [false, true, true, true]);
        swept(&disk, settings);
        assert_eq!(is_there(), [false, false, true, true], "the server has not heard of the end of the last one");
        assert!(root.join("w/%7Ek/2").exists(), "its outcome is not known");
        fs::remove_file(home.join("held/1")).unwrap();
        swept(&disk, settings);
        assert_eq!(is_there(), [false, false, true, false]);
    }

    #[test]
    fn folders_from_before_wait_until_somebody_says_how_long_they_are_kept() {
        let place = tempfile::tempdir().unwrap();
        let home = place.path().join("worker");
        fs::create_dir_all(home.join("runs")).unwrap();
        let disk = Disk::take(&home, &["http://a"]).unwrap();
        let old = folder(&disk.runs(), "w", 1, "");
        let settings = r#"{"history": {"days": 10, "runs": 0}}"#;
        swept(&disk, "{}");
        assert!(old.exists());
        swept(&disk, settings);
        assert!(!old.exists());
    }
}
