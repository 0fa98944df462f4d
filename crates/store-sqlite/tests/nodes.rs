//! Nodes with a file each, over one log.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use kelos_model::history::Trim;
use kelos_model::time::{CronSchedule, Schedule};
use kelos_model::workflow::{Job, Moments, PlanState, WorkflowRow};
use kelos_model::{Workflow, WorkflowId};
use kelos_store::log::{
    FORM, Holder, Inbox, LeaseTiming, LocalState, Log, LogEntry, LogError, LogJournal, LogParts, LogState, LogStore,
    MemoryLogStore, Reign,
};
use kelos_store::suite::{Place, history, log_suite, suite_of_nodes};
use kelos_store::{Commit, Journal, MemoryStore, PageRequest, StoreError, StoredState, UnreadableRow};
use kelos_store_sqlite::{SharedLogStore, SqliteState, SqliteStore};
use tempfile::TempDir;

struct Nodes {
    log: MemoryLogStore,
    folder: TempDir,
    opened: usize,
    clock: Arc<AtomicU64>,
}

impl Nodes {
    fn new() -> Self {
        Self { log: MemoryLogStore::new(), folder: tempfile::tempdir().unwrap(), opened: 0, clock: Arc::default() }
    }

    fn file(&self, name: &str) -> PathBuf {
        let folder = self.folder.path().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        folder.join("kelos.db")
    }

    fn node(&self, name: &str) -> Result<(LogJournal<SqliteState>, LogState), StoreError> {
        LogJournal::inline(self.parts(name)?)
    }

    fn parts(&self, name: &str) -> Result<LogParts<SqliteState>, StoreError> {
        let clock = self.clock.clone();
        Ok(LogParts {
            store: Arc::new(self.log.clone()),
            state: SqliteState::open(self.file(name))?,
            folder: self.folder.path().join(name),
            holder: Holder { node: name.to_owned(), ..Holder::default() },
            form: FORM,
            timing: LeaseTiming::DEFAULT,
            monotonic: Arc::new(move || Duration::from_millis(clock.load(Ordering::Relaxed))),
            wall: Arc::new(|| 0),
            nonce: Box::new(|| 4),
        })
    }
}

impl Place for Nodes {
    fn open(&mut self) -> Box<dyn Journal> {
        self.opened += 1;
        Box::new(self.node(&self.opened.to_string()).unwrap().0)
    }
}

#[test]
fn nodes_with_files_keep_the_contract() {
    suite_of_nodes(&mut || Box::new(Nodes::new()));
}

struct SharedFolder(SharedLogStore, #[allow(dead_code, reason = "the folder lives as long as it")] TempDir);

impl LogStore for SharedFolder {
    fn name(&self) -> String {
        self.0.name()
    }

    fn open(&self) -> Result<Box<dyn Log>, LogError> {
        self.0.open()
    }

    /// Users have no transactions of their own here.
    fn inbox(&self) -> Result<Option<Box<dyn Inbox>>, LogError> {
        Ok(None)
    }
}

#[test]
fn a_log_in_a_shared_file_keeps_the_contract() {
    log_suite(&mut || {
        let folder = tempfile::tempdir().unwrap();
        Box::new(SharedFolder(SharedLogStore::new(folder.path()), folder))
    });
}

/// The digest of the last turn, and all that is read with it.
fn digest(journal: &mut dyn Journal) -> String {
    let snapshot = journal.restore().unwrap();
    let turns = journal.reader().turns(PageRequest::newest(3)).unwrap();
    format!("{snapshot:?} {turns:?} {:?}", journal.reader().damage(9).unwrap())
}

/// Turns that write something.
fn turns(seed: u64, count: usize) -> Vec<Commit> {
    history(seed, 2 * count).into_iter().filter(|turn| !turn.is_empty()).take(count).collect()
}

fn write(journal: &mut LogJournal<SqliteState>, turns: &[Commit]) {
    let lease = journal.lease("", Timestamp::UNIX_EPOCH, 60_000).unwrap().unwrap();
    turns.iter().for_each(|turn| journal.commit(lease, turn).unwrap());
}

#[test]
fn a_node_that_was_away_follows_from_a_snapshot_and_its_tail() {
    let nodes = Nodes::new();
    let turns = turns(5, 60);
    let (mut leader, _) = nodes.node("leader").unwrap();
    write(&mut leader, &turns[..20]);
    drop(nodes.node("away").unwrap());
    write(&mut leader, &turns[20..40]);
    let position = leader.snapshot(3).unwrap();
    assert_eq!(position, 41, "forty turns and a plug");
    write(&mut leader, &turns[40..]);
    let expected = digest(&mut leader);
    for name in ["away", "new", "leader-once-more"] {
        assert_eq!(digest(&mut nodes.node(name).unwrap().0), expected, "{name}");
    }
    // Each leads as the first one would have.
    drop(leader);
    let (mut next, shown) = nodes.node("away").unwrap();
    write(&mut next, &[]);
    assert!(shown.status().leads);
    let reigns = shown.reigns(9).unwrap();
    assert_eq!(reigns.iter().map(|reign| &*reign.node).collect::<Vec<_>>(), ["away", "leader"]);
    assert_eq!(reigns[0].reason, "the leader before gave the lead back");
}

#[test]
fn entries_that_another_node_wrote_are_counted_as_they_are_applied() {
    let nodes = Nodes::new();
    let (mut leader, leads) = nodes.node("leader").unwrap();
    write(&mut leader, &turns(7, 9));
    let (mut standby, follows) = nodes.node("standby").unwrap();
    assert_eq!(digest(&mut standby), digest(&mut leader));
    let count = |shown: &LogState| shown.applied().counts.iter().sum::<u64>();
    assert_eq!(count(&follows), 10, "nine turns and a plug");
    assert_eq!(count(&leads), 0, "its own entries are those of its turns");
}

#[test]
fn a_node_ahead_of_the_log_refuses_to_lead_and_keeps_what_it_has() {
    let nodes = Nodes::new();
    let turns = turns(6, 10);
    let (mut leader, _) = nodes.node("leader").unwrap();
    write(&mut leader, &turns);
    let expected = digest(&mut leader);
    drop(leader);
    nodes.log.lose_after(8);
    let (mut leader, _) = nodes.node("leader").unwrap();
    let refused = leader.lease("", Timestamp::UNIX_EPOCH, 60_000).unwrap_err();
    assert!(matches!(refused, StoreError::Ahead { local: 11, log: 8 }), "{refused}");
    assert_eq!(digest(&mut leader), expected);
    drop(leader);
    // Another node has led meanwhile: the same numbers, and other turns.
    let (mut other, _) = nodes.node("other").unwrap();
    write(&mut other, &[]);
    write(&mut other, &turns[7..]);
    drop(other);
    let refused = nodes.node("leader").and_then(|(mut leader, _)| leader.lease("", Timestamp::UNIX_EPOCH, 60_000));
    assert!(matches!(refused, Err(StoreError::Ahead { .. } | StoreError::Corrupt { .. })), "{refused:?}");
    // Nor does it take the snapshot of a past that is not its own, once the entries that differ are trimmed.
    let (mut other, _) = nodes.node("other").unwrap();
    write(&mut other, &[]);
    assert_eq!(other.snapshot(0).unwrap(), 13);
    drop(other);
    let refused = nodes.node("leader").map(drop);
    assert!(matches!(refused, Err(StoreError::Ahead { local: 11, log: 13 })), "{refused:?}");
    let mut kept = SqliteState::open(nodes.file("leader")).unwrap();
    assert_eq!(kept.position().unwrap().entry, 11, "it keeps what it has");
}

#[test]
fn a_file_is_its_own_log_or_the_state_of_a_node() {
    let nodes = Nodes::new();
    drop(nodes.node("one").unwrap());
    let mut embedded = SqliteStore::open(nodes.file("one")).unwrap();
    let refused = embedded.lease("", Timestamp::UNIX_EPOCH, 1000).unwrap_err().to_string();
    assert!(
        refused.ends_with("start the node with `--store`, or take its data from there with `kelos move`"),
        "{refused}"
    );
    drop(embedded);
    let (_held, _) = nodes.node("one").unwrap();
    let refused = nodes.node("one").map(drop).unwrap_err().to_string();
    assert!(refused.ends_with("another process uses it; each node needs a folder of its own"), "{refused}");

    let mut embedded = SqliteStore::open(nodes.file("two")).unwrap();
    let lease = embedded.lease("", Timestamp::UNIX_EPOCH, 1000).unwrap().unwrap();
    turns(1, 3).iter().for_each(|turn| embedded.commit(lease, turn).unwrap());
    drop(embedded);
    let refused = nodes.node("two").map(drop).unwrap_err().to_string();
    assert!(refused.contains("it has a history of its own"), "{refused}");
    SqliteState::of_embedded(nodes.file("two"), 40).unwrap();
    assert_eq!(SqliteState::open(nodes.file("two")).unwrap().position().unwrap().entry, 40);
    SqliteState::into_embedded(nodes.file("two")).unwrap();
    let mut embedded = SqliteStore::open(nodes.file("two")).unwrap();
    assert!(embedded.lease("", Timestamp::UNIX_EPOCH, 1000).unwrap().is_some());
}

/// A workflow as an earlier version could store it: of its cron expression one field is missing, and the expression can't be read.
fn broken(entry: &LogEntry) -> Vec<u8> {
    let text = String::from_utf8(entry.body.clone()).unwrap();
    assert!(text.contains("0 0 * * * ?"), "{text}");
    text.replace("0 0 * * * ?", "0 0 * *").into_bytes()
}

fn defined(name: &str) -> Commit {
    let id: WorkflowId = name.parse().unwrap();
    let job = Job::new("command", serde_json::Map::from_iter([("command".to_owned(), "true".into())]));
    let row = WorkflowRow {
        definition: Arc::new(Workflow::new(id.clone(), Schedule::Cron(CronSchedule::hourly()), job)),
        id,
        version: 1,
        present: true,
        enabled: true,
        paused: false,
        planned: PlanState::default(),
        moments: Moments::default(),
    };
    Commit { workflows: vec![row], ..Commit::default() }
}

#[test]
fn an_entry_with_a_definition_that_can_not_be_read_freezes_its_workflow_and_is_followed() {
    let (whole, nodes) = (Nodes::new(), Nodes::new());
    let (mut leader, _) = whole.node("leader").unwrap();
    let lease = leader.lease("", Timestamp::UNIX_EPOCH, 60_000).unwrap().expect("the lease");
    for name in ["broken", "sound"] {
        leader.commit(lease, &defined(name)).unwrap();
    }
    // The same log, as an earlier version wrote it.
    let entries = whole.log.connect().read(0, 10).unwrap();
    let mut log = nodes.log.connect();
    let free = log.lease().unwrap();
    let held = log.take(&free, 4, &Holder::default()).unwrap().expect("the lease");
    for entry in &entries {
        let body = if entry.position == 2 { broken(entry) } else { entry.body.clone() };
        log.append(held.epoch, entry.position, &body).unwrap();
    }
    let (mut follower, shown) = nodes.node("follower").unwrap();
    assert_eq!(follower.lease("", Timestamp::UNIX_EPOCH, 60_000).unwrap(), None, "another node leads");
    assert_eq!(shown.status().followed, entries.len() as u64);
    let rows = follower.reader().workflows(None).unwrap();
    assert_eq!(rows.iter().map(|row| row.id.as_str()).collect::<Vec<_>>(), ["broken", "sound"]);
    assert_eq!((rows[0].definition.keys.schedule(), &*rows[0].definition.job.executor), (None, "command"));
    // The engine freezes what is met, and `kelos verify` lists the same.
    let breaches: Vec<_> = follower.unreadable().iter().filter_map(UnreadableRow::breach).collect();
    assert_eq!(breaches.iter().map(|one| one.workflow.as_str()).collect::<Vec<_>>(), ["broken"]);
    let told: Vec<String> = follower.reader().unreadable(10).unwrap().iter().map(ToString::to_string).collect();
    assert!(told.len() == 1 && told[0].starts_with("broken: version 1 of its definition can't be read"), "{told:?}");
    // Memory is a state like a file.
    let (mut memory, _) = LogJournal::inline(LogParts {
        store: Arc::new(nodes.log.clone()),
        state: MemoryStore::new(),
        folder: nodes.folder.path().to_owned(),
        holder: Holder::default(),
        form: FORM,
        timing: LeaseTiming::DEFAULT,
        monotonic: Arc::new(Duration::default),
        wall: Arc::new(|| 0),
        nonce: Box::new(|| 5),
    })
    .unwrap();
    assert_eq!(memory.lease("", Timestamp::UNIX_EPOCH, 60_000).unwrap(), None);
    assert_eq!(memory.unreadable(), follower.unreadable());
}

#[test]
fn nothing_is_done_again_in_a_log_of_an_older_form() {
    for (form, knows) in [(3, false), (FORM, true)] {
        let nodes = Nodes::new();
        let parts = LogParts { form, ..nodes.parts("here").unwrap() };
        let (mut journal, _) = LogJournal::inline(parts).unwrap();
        assert!(journal.lease("here", Timestamp::UNIX_EPOCH, 60_000).unwrap().is_some());
        assert_eq!(journal.knows_again(), knows, "form {form}");
    }
}

#[test]
fn a_node_that_was_away_takes_a_copy_whose_history_was_removed() {
    let nodes = Nodes::new();
    let mut states = ["here", "away"].map(|name| SqliteState::open(nodes.file(name)).unwrap());
    let reign =
        Reign { epoch: 1, node: "here".to_owned(), address: None, at: Timestamp::UNIX_EPOCH, reason: String::new() };
    states.iter_mut().for_each(|state| state.begin(1, &reign).unwrap());
    let [here, away] = &mut states;
    let mut position = 1;
    for (turn, commit) in history(7, 12).into_iter().filter(|commit| !commit.is_empty()).enumerate() {
        position += 1;
        here.follow(position, 1, &commit, &mut |_| Ok(())).unwrap();
        if turn < 2 {
            away.follow(position, 1, &commit, &mut |_| Ok(())).unwrap();
        }
    }
    let trim = Some(Trim { until: 5, stretches: vec![(1, 3)] });
    here.follow(position + 1, 1, &Commit { trim, ..Commit::default() }, &mut |_| Ok(())).unwrap();
    let (_, mut copy) = here.copy(nodes.folder.path()).unwrap();
    away.adopt(&mut *copy, nodes.folder.path(), &mut |_| Ok(())).unwrap();
    assert_eq!(away.position().unwrap(), here.position().unwrap());
    assert_eq!(away.reader().removed_history().unwrap().turn, 5);
}
