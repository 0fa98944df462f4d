//! Importing into a store in memory.

use kelos_model::event::Origin;
use kelos_model::{Answer, Finding, Reason, ReasonKind};
use kelos_sandbox::apps::AppsSource;
use kelos_sandbox::{Folders, Limits};
use kelos_store::{MemoryStore, StoredState};

use super::*;

const TASKS: &str = r#"{
    "a": {"job_id": "{n}", "bash_cmd": "true"},
    "b": {"job_id": "{n}", "bash_cmd": "true", "depends_on": {"app_name": ["a"]}}
}"#;

fn definitions() -> AppDefinitions {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("tasks.json"), TASKS).unwrap();
    std::fs::write(folder.path().join("identifiers.json"), r#"{"n": "integer"}"#).unwrap();
    let folders = Folders { workflows: folder.path().to_owned(), defaults: folder.path().to_owned() };
    let apps = AppsSource::of_file(&folder.path().join("tasks.json"), None);
    let loaded = kelos_sandbox::check(folders, Limits::default(), Arc::new(crate::TasksJson), Some(apps)).unwrap();
    assert_eq!(loaded.problems, []);
    let workflows = loaded.workflows.into_iter().map(|one| (one.id.clone(), one)).collect();
    AppDefinitions { workflows, sources: loaded.sources }
}

fn now() -> Timestamp {
    "2016-01-01T00:00:00Z".parse().unwrap()
}

fn put(state: &mut StolosState, app: &str, job: &str, is: &str, retries: u32) {
    *state.job(app, job) = JobRecord { state: is.to_owned(), retries, is_running: false };
}

fn run(store: &mut MemoryStore, state: &StolosState, dry_run: bool) -> ImportReport {
    import(store, state, &definitions(), now(), dry_run).unwrap()
}

fn slot(store: &MemoryStore, app: &str, job: &str) -> Option<Slot> {
    store.reader().slot(&SlotRef::job(WorkflowId::new(app).unwrap(), job.into())).unwrap()
}

fn state_of(store: &MemoryStore, app: &str, job: &str) -> Option<SlotState> {
    slot(store, app, job).map(|slot| slot.state)
}

#[test]
fn each_state_becomes_one_of_ours() {
    let mut state = StolosState::default();
    for (n, is) in ["completed", "failed", "skipped", "pending", "", "running"].iter().enumerate() {
        put(&mut state, "a", &n.to_string(), is, 2);
    }
    put(&mut state, "a", "007", "completed", 0);
    put(&mut state, "a", "7", "pending", 0);
    put(&mut state, "a", "x", "completed", 0);
    put(&mut state, "gone", "1", "completed", 0);
    state.apps.get_mut("a").unwrap().queued.insert("3".to_owned(), 100);
    let mut store = MemoryStore::new();
    let expected = run(&mut store, &state, true);
    assert_eq!(store.reader().last_seq().unwrap(), 0, "a dry run writes nothing");
    let report = run(&mut store, &state, false);
    assert_eq!(report, expected);
    let app = &report.apps[0];
    assert_eq!(app.imported, BTreeMap::from([("succeeded", 2), ("failed", 1), ("skipped", 1), ("waiting", 1)]));
    assert_eq!((app.queued, report.stateless, report.undefined["gone"]), (1, 1, 1));
    assert_eq!(
        report.troubles,
        [
            "a@5: its state is \"running\", expected pending, completed, failed or skipped",
            "a@7: 7 is the same job, and was imported",
            "a@x: \"x\" is no job id of the form {n}: n is \"x\", expected a whole number",
        ]
    );
    let waiting = slot(&store, "a", "3").unwrap();
    assert_eq!((waiting.state, waiting.retries), (SlotState::Waiting, 2));
    assert_eq!(state_of(&store, "a", "7"), Some(SlotState::Succeeded));
    let history = store.reader().history(&SlotRef::job(WorkflowId::new("a").unwrap(), "0".into())).unwrap();
    let Event::Slot { what: SlotEvent::Imported { from, there, .. }, .. } = &history[0].event else {
        panic!("{history:?}")
    };
    assert_eq!((from.as_str(), there.as_str()), ("stolos", "completed"));
}

#[test]
fn what_was_imported_is_not_imported_again_and_what_changed_here_is_kept() {
    let mut state = StolosState::default();
    put(&mut state, "a", "1", "pending", 0);
    put(&mut state, "a", "2", "pending", 0);
    put(&mut state, "b", "1", "completed", 0);
    let mut store = MemoryStore::new();
    assert_eq!(run(&mut store, &state, false).events, 5);
    let again = run(&mut store, &state, false);
    assert_eq!((again.events, again.apps[0].same), (0, 2));
    put(&mut state, "a", "1", "completed", 0);
    put(&mut state, "b", "1", "failed", 0);
    let later = run(&mut store, &state, false);
    assert_eq!((later.events, later.apps[0].jobs()), (1, 1));
    assert_eq!(state_of(&store, "a", "1"), Some(SlotState::Succeeded));
    let kept = KeptJob { job: "1".to_owned(), here: SlotState::Succeeded, there: "failed".to_owned() };
    assert_eq!(later.apps[1].kept, [kept]);
}

#[test]
fn priorities_come_along() {
    let mut state = StolosState::default();
    put(&mut state, "a", "1", "pending", 0);
    state.apps.get_mut("a").unwrap().queued.insert("1".to_owned(), 5);
    let mut store = MemoryStore::new();
    run(&mut store, &state, false);
    let slot = slot(&store, "a", "1").unwrap();
    assert_eq!((slot.state, slot.priority), (SlotState::Waiting, 95));
    let history = store.reader().history(&SlotRef::job(WorkflowId::new("a").unwrap(), "1".into())).unwrap();
    let Event::Slot { what: SlotEvent::Planned { origin: Origin::Request, by, reason, .. }, .. } = &history[0].event
    else {
        panic!("{history:?}")
    };
    assert_eq!(by.as_ref().unwrap().name.as_ref(), "import from stolos");
    assert_eq!(reason.as_deref(), Some("pending in Stolos, with priority 5"));
}

/// Has the scheduler queue a job that waits.
fn queue(store: &mut MemoryStore, app: &str, job: &str) {
    let id = SlotRef::job(WorkflowId::new(app).unwrap(), job.into());
    let (slot, last) = (slot(store, app, job), store.reader().last_seq().unwrap());
    let lease = store.lease("a command", now(), LEASE_MILLIS).unwrap();
    let mut commit = NextCommit::new(lease, last, now());
    let explanation = Reason::leaf(ReasonKind::Always, Answer::Met, Finding::Always);
    commit.slot(&id, slot.as_ref(), SlotEvent::TriggerMet { explanation });
    commit.flush(store).unwrap();
    store.release(lease.unwrap()).unwrap();
}

#[test]
fn jobs_that_have_a_priority_or_were_queued_are_untouched() {
    let mut state = StolosState::default();
    for job in ["1", "2", "3", "4"] {
        put(&mut state, "a", job, "pending", 0);
    }
    state.apps.get_mut("a").unwrap().queued.extend([("1".to_owned(), 5), ("2".to_owned(), 5)]);
    let mut store = MemoryStore::new();
    run(&mut store, &state, false);
    for job in ["2", "3", "4"] {
        queue(&mut store, "a", job);
    }
    let again = run(&mut store, &state, false);
    assert_eq!((again.events, again.apps[0].same, &again.apps[0].kept), (0, 4, &vec![]));
    for (job, is) in [("1", "completed"), ("2", "failed"), ("3", "skipped")] {
        put(&mut state, "a", job, is, 0);
    }
    put(&mut state, "a", "4", "pending", 1);
    let later = run(&mut store, &state, false);
    assert_eq!((later.apps[0].jobs(), &later.apps[0].kept), (4, &vec![]));
    let found = ["1", "2", "3", "4"].map(|job| slot(&store, "a", job).unwrap());
    let expected = [SlotState::Succeeded, SlotState::Failed, SlotState::Skipped, SlotState::Waiting];
    assert_eq!((found.clone().map(|slot| slot.state), found[3].retries), (expected, 1));
}

#[test]
fn nothing_is_imported_while_stolos_runs_jobs() {
    let mut state = StolosState::default();
    for n in 0..7 {
        put(&mut state, "a", &n.to_string(), "pending", 0);
        state.job("a", &n.to_string()).is_running = true;
    }
    let mut store = MemoryStore::new();
    let refused = import(&mut store, &state, &definitions(), now(), false).unwrap_err().to_string();
    assert_eq!(
        refused,
        "import while Stolos runs jobs: a@0, a@1, a@2, a@3, a@4 and 2 more; stop its runners, and wait until its locks have expired"
    );
    assert_eq!(run(&mut store, &state, true).running.len(), 7);
    assert_eq!(store.reader().last_seq().unwrap(), 0);
}

#[test]
fn addresses_are_told_what_is_wrong_without_their_secrets() {
    let told = |address: &str| {
        StateSource::new(address, None, &kelos_tls::Trust::default()).err().map(|error| error.to_string()).unwrap()
    };
    assert!(told("localhost:6379").starts_with("use the address: it has no scheme; expected such as redis://"));
    assert!(told("http://ann:secret@h").contains("its scheme is none of redis, rediss, zookeeper and zookeepers"));
    assert!(told("redis://ann:secret@h").contains("a password in it would be seen by everyone"));
    assert!(!told("redis://ann:secret@h").contains("secret"));
}
