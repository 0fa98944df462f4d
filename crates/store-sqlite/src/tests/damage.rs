//! Damage on disk: bits that flip, logs that are cut, files that disappear.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use kelos_model::backfill::BackfillMode;
use kelos_model::ranges::Range;
use kelos_model::retry::scramble;
use kelos_model::slot::{PartInFlow, RunOfFlow, StepOfRun};
use kelos_model::workflow::{Source, WorkflowRow};
use kelos_model::{Actor, Outcome, Slot, SlotKey, SlotState, StepKey, StepName};
use kelos_store::{Queries, StoredState};

use super::*;

/// A workflow with a definition and its source.
fn defined(name: &str) -> WorkflowRow {
    let id = WorkflowId::new(name).unwrap();
    let job = Job::new("command", serde_json::Map::new());
    let mut definition = Workflow::new(id.clone(), Schedule::Cron(CronSchedule::hourly()), job);
    definition.source = Source::file(format!("{name}.js"), 0);
    WorkflowRow {
        id,
        definition: Arc::new(definition),
        version: 1,
        present: true,
        enabled: true,
        paused: false,
        planned: Default::default(),
        moments: Moments::default(),
    }
}

fn backfill(name: &str, workflow: &str) -> Backfill {
    Backfill {
        id: BackfillId::new(name).unwrap(),
        workflow: WorkflowId::new(workflow).unwrap(),
        range: Range::new(moment(0), moment(600_000)),
        mode: BackfillMode::All,
        priority: 3,
        by: Actor::person("ann"),
        created_at: moment(5),
        cancelled_at: None,
        slots: 10,
        reason: Some("lost".to_owned()),
        paused: Some(Pause { at: moment(7), by: Actor::person("bob") }),
        resumed_at: None,
    }
}

/// A turn with something of everything, after the log's `last`.
pub(super) fn turn(workflow: &str, last: u64, count: u64) -> Commit {
    let mut commit = planning(workflow, last, count);
    commit.at = moment(5);
    for (index, row) in commit.slots.iter_mut().enumerate() {
        if index % 3 == 1 {
            row.slot.state = [SlotState::Running, SlotState::Succeeded, SlotState::Failed][index / 3 % 3];
            row.slot.last_run = 1;
            row.slot.last_run_seq = row.slot.last_event;
            row.slot.external_id = Some("4711".to_owned());
            let mut ran = run(workflow, row.slot.last_event);
            ran.state = [RunState::Running, RunState::Succeeded, RunState::Failed][index / 3 % 3];
            ran.outcome = Some(Outcome::Succeeded).filter(|_| ran.state != RunState::Running);
            commit.runs.push(ran);
        }
    }
    with_steps(&mut commit);
    tell(&mut commit, &format!("{last}"));
    commit.workflows.push(defined(workflow));
    commit.sources = BTreeMap::from([(format!("{workflow}.js"), Arc::from(format!("// {workflow}")))]);
    commit.backfills.push(backfill(&format!("past of {workflow}"), workflow));
    commit.registers.push(("b".to_owned(), workflow.to_owned(), Some(serde_json::json!({ "rows": last }))));
    commit
}

/// Makes the first slot a run of a flow, with some steps. Nothing is told of them in the log, which these tests don't fold.
fn with_steps(commit: &mut Commit) {
    let run = &mut commit.slots[0];
    let part = RunOfFlow { definition: 1, since_run: 1, ..RunOfFlow::default() };
    run.slot.flow = Some(Box::new(PartInFlow::Run(part)));
    let (id, before) = (run.id.clone(), run.slot.last_event);
    let step = StepKey::new(&id.key, &StepName::new("each").unwrap()).unwrap();
    for number in 0..8 {
        let states = [SlotState::Waiting, SlotState::Running, SlotState::Succeeded, SlotState::Failed];
        let mut slot = Slot::new(states[number as usize % 4], moment(5));
        slot.last_event = before;
        let inputs = serde_json::Map::from_iter([("item".to_owned(), number.into())]);
        slot.flow = Some(Box::new(PartInFlow::Step(StepOfRun { run: 1, inputs, ..StepOfRun::default() })));
        let id = SlotRef::new(id.workflow.clone(), SlotKey::Step(step.item(number)));
        commit.slots.push(SlotRow { id, slot });
    }
}

const FILES: [&str; 3] = ["kelos.db", "kelos.db-wal", "kelos.db.lock"];

/// The files of a leader that was killed: a part of the data in the database, the rest in its log.
struct Image(Vec<(&'static str, Vec<u8>)>);

impl Image {
    fn of_a_killed_leader() -> Image {
        let folder = Folder::new();
        let mut store = folder.open();
        let lease = lead(&mut store);
        store.commit(lease, &turn("a", 0, 60)).unwrap();
        store.release(lease).unwrap();
        let lease = lead(&mut store);
        store.commit(lease, &turn("b", 62, 40)).unwrap();
        store.commit(lease, &turn("c", 104, 40)).unwrap();
        Image(FILES.map(|name| (name, std::fs::read(folder.0.path().join(name)).unwrap())).to_vec())
    }

    /// The files of a leader that ended in good order: everything is in the database.
    fn of_a_leader_that_left() -> Image {
        let folder = Image::of_a_killed_leader().lay_out();
        let mut store = folder.open();
        let lease = lead(&mut store);
        store.release(lease).unwrap();
        drop(store);
        let left = ["kelos.db", "kelos.db.lock"];
        Image(left.map(|name| (name, std::fs::read(folder.0.path().join(name)).unwrap())).to_vec())
    }

    fn lay_out(&self) -> Folder {
        let folder = Folder::new();
        for (name, bytes) in &self.0 {
            std::fs::write(folder.0.path().join(name), bytes).unwrap();
        }
        folder
    }

    fn bytes(&mut self, name: &str) -> &mut Vec<u8> {
        &mut self.0.iter_mut().find(|(known, _)| *known == name).unwrap().1
    }
}

/// Leads, and reads everything in every way.
fn pending(reader: &dyn Queries, workflow: WorkflowId) -> Result<Vec<SlotRow>, StoreError> {
    let (workflow, states) = (Some(workflow), PENDING.to_vec());
    let filter = SlotFilter { workflow, states, collecting: true, ..SlotFilter::default() };
    Ok(reader.slots(&filter, PageRequest::newest(100))?.rows)
}

fn read_all(path: &Path) -> Result<String, StoreError> {
    let mut store = SqliteStore::open(path)?;
    store.writer.conn.pragma_update(None, "synchronous", "OFF").unwrap();
    store.lease("node", Timestamp::UNIX_EPOCH, 1000)?.expect("nobody leads");
    let mut restored = store.restore()?;
    restored.slots.sort_by(|a, b| a.id.cmp(&b.id));
    restored.runs.sort_by_key(|run| run.seq);
    restored.workflows.sort_by(|a, b| a.id.cmp(&b.id));
    let reader = store.reader();
    let mut told = format!("{restored:?}\n");
    for workflow in [None, Some("a"), Some("b"), Some("c")] {
        let workflow = workflow.map(|name| WorkflowId::new(name).unwrap());
        for states in [vec![], vec![SlotState::Waiting], vec![SlotState::Failed]] {
            let filter = SlotFilter { workflow: workflow.clone(), states, ..SlotFilter::default() };
            told += &format!("{:?}\n", reader.slots(&filter, PageRequest::newest(1000))?.rows);
            told += &format!("{:?}\n", reader.slot_states(&filter, PageRequest::newest(1000))?.rows);
            told += &format!("{:?}\n", reader.slot_counts(&filter)?);
        }
        for states in [vec![], vec![RunState::Running], vec![RunState::Failed]] {
            for with_steps in [false, true] {
                let (workflow, states) = (workflow.clone(), states.clone());
                let filter = RunFilter { workflow, states, with_steps, ..RunFilter::default() };
                told += &format!("{:?}\n", reader.runs(&filter, PageRequest::newest(1000))?.rows);
            }
        }
        if let Some(workflow) = workflow {
            for run in reader.slots(&SlotFilter::default(), PageRequest::newest(1000))?.rows {
                told += &format!("{:?}\n", reader.steps(&run.id, PageRequest::newest(5))?);
            }
            told += &format!("{:?}\n{:?}\n", reader.definitions(&workflow, None)?, pending(&*reader, workflow)?);
        }
    }
    let (events, facts) = (
        reader.events(&EventFilter::default(), PageRequest::oldest(1000))?.rows,
        reader.events(&EventFilter::about(About::Facts), PageRequest::newest(1000))?.rows,
    );
    let known = store.known_facts(&["0", "62", "104", "none"].map(fact_key))?;
    let registers = reader.registers(Some("b"), RegisterKeys::Prefix(""))?;
    told += &format!("{:?}\n", reader.turns(PageRequest::oldest(1000))?.rows);
    told += &format!(
        "{events:?}\n{facts:?}\n{known:?}\n{registers:?}\n{:?}\n",
        reader.backfills(&BackfillFilter::default())?
    );
    match store.damage(1)?.pop() {
        Some(what) => Err(StoreError::Corrupt { place: String::new(), what }),
        None => Ok(told),
    }
}

/// A number that the environment may set.
fn number(variable: &str, usual: u64) -> u64 {
    let given = std::env::var(variable);
    given.map_or(usual, |text| text.parse().unwrap_or_else(|_| panic!("{variable}: expected a number, got {text:?}")))
}

/// Flips so many bits of the files of an image, one at a time, and reads everything. Gives how many changed nothing.
fn flip_bits(mut image: Image, count: u64, seed: u64) -> u64 {
    let truth = read_all(&image.lay_out().path()).unwrap();
    let mut tally: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    let files = image.0.len() as u64;
    for number in 0..count {
        let draw = scramble(seed.wrapping_mul(count).wrapping_add(number));
        // The lock file is small.
        let file = (draw % (3 * files - 2) / 3) as usize;
        let (name, bytes) = &mut image.0[file];
        let (name, bit) = (*name, (scramble(draw) % (bytes.len() as u64 * 8)) as usize);
        bytes[bit / 8] ^= 1 << (bit % 8);
        let read = read_all(&image.lay_out().path());
        let (all, harmless) = tally.entry(name).or_default();
        *all += 1;
        if let Ok(told) = read {
            assert_eq!(told, truth, "seed {seed}: bit {bit} of {name} was flipped, and nobody noticed");
            *harmless += 1;
        }
        image.bytes(name)[bit / 8] ^= 1 << (bit % 8);
    }
    for (name, (all, harmless)) in &tally {
        println!("{name}: {all} flipped, {} noticed, {harmless} changed nothing that is read", all - harmless);
    }
    tally.values().map(|(_, harmless)| harmless).sum()
}

/// `KELOS_FLIPS` and `KELOS_SEED` set how many bits are flipped, and which.
#[test]
fn a_schema_that_changed_by_itself_is_damage() {
    let folder = Folder::new();
    drop(folder.open());
    for (from, to) in [("TEXT", "DEXT"), ("INTEGER", "INTEGEZ")] {
        let conn = Connection::open(folder.path()).unwrap();
        conn.pragma_update(None, "writable_schema", true).unwrap();
        let replaced = |from: &str, to: &str| {
            let sql =
                "UPDATE sqlite_schema SET sql = replace(sql, ?1, ?2) WHERE name = 'registers' AND instr(sql, ?1) > 0";
            conn.execute(sql, [from, to]).unwrap()
        };
        assert_eq!(replaced(from, to), 1);
        let mut store = SqliteStore::open(folder.path()).unwrap();
        let told = store.damage(99).unwrap_or_else(|error| vec![error.to_string()]);
        assert!(told.iter().any(|one| one.contains("registers")), "{from}: {told:?}");
        drop(store);
        replaced(to, from);
    }
    assert_eq!(folder.open().damage(9).unwrap(), Vec::<String>::new());
    Connection::open(folder.path()).unwrap().execute_batch("DROP INDEX runs_open").unwrap();
    assert_eq!(folder.open().damage(9).unwrap(), ["its schema lacks the index runs_open"]);
}

#[test]
fn a_bit_that_flips_is_noticed_or_changes_nothing() {
    let (count, seed) = (number("KELOS_FLIPS", 300), number("KELOS_SEED", 18));
    let harmless = flip_bits(Image::of_a_killed_leader(), count / 2, seed)
        + flip_bits(Image::of_a_leader_that_left(), count - count / 2, seed);
    assert!(harmless * 5 < count * 4, "{harmless} of {count} flipped bits were in nobody's way");
}

/// The error when a process tries to lead on these files.
#[track_caller]
fn refusal(folder: &Folder) -> String {
    let mut store = folder.open();
    match store.lease("node", Timestamp::UNIX_EPOCH, 1000) {
        Err(StoreError::Corrupt { what, .. }) => {
            assert_eq!(store.damage(9).unwrap()[0], what, "it is told to whoever asks, too");
            what
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_log_that_is_gone_or_cut_is_missed() {
    let mut image = Image::of_a_killed_leader();
    let whole = image.bytes("kelos.db-wal").clone();
    for length in (0..whole.len()).step_by(whole.len() / 23).chain([31, 32, whole.len() - 1]) {
        image.bytes("kelos.db-wal").truncate(length);
        let words = refusal(&image.lay_out());
        assert!(words.contains("had been committed") || words.contains("had led"), "{length}: {words}");
        *image.bytes("kelos.db-wal") = whole.clone();
    }
    let folder = image.lay_out();
    std::fs::remove_file(folder.0.path().join("kelos.db-wal")).unwrap();
    assert_eq!(refusal(&folder), "it ends with event 62, and event 146 had been committed");
    // Pages after the last commit may be torn: they were never acknowledged.
    image.bytes("kelos.db-wal").extend([7; 5000]);
    read_all(&image.lay_out().path()).unwrap();
}

#[test]
fn an_old_backup_goes_on_where_people_say_so() {
    let folder = Folder::new();
    let mut store = folder.open();
    let lease = lead(&mut store);
    store.commit(lease, &turn("a", 0, 60)).unwrap();
    store.release(lease).unwrap();
    let backup = std::fs::read(folder.path()).unwrap();
    let lease = lead(&mut store);
    store.commit(lease, &turn("b", 62, 40)).unwrap();
    store.release(lease).unwrap();
    drop(store);
    std::fs::write(folder.path(), &backup).unwrap();
    assert_eq!(refusal(&folder), "it ends with event 62, and event 104 had been committed");
    assert_eq!(folder.open().accept().unwrap(), Some(()));
    let mut store = folder.open();
    let lease = lead(&mut store);
    assert_eq!(folder.open().accept().unwrap(), None, "somebody leads");
    store.commit(lease, &turn("b", 62, 40)).unwrap();
    assert_eq!(store.damage(9).unwrap(), [] as [&str; 0]);
    // A copy without its lock file is accepted as it is.
    let copy = Folder::new();
    std::fs::write(copy.path(), &backup).unwrap();
    read_all(&copy.path()).unwrap();
}

#[test]
fn a_row_that_changed_by_itself_ends_the_lead_of_whoever_is_told() {
    let folder = Folder::new();
    let mut store = folder.open();
    let lease = lead(&mut store);
    store.commit(lease, &turn("a", 0, 60)).unwrap();
    let changes = [
        "UPDATE slots SET since = since + 1 WHERE scheduled_at = 120000",
        "UPDATE slots SET external_id = '4712' WHERE external_id = '4711'",
        "UPDATE slots SET flow = replace(flow, '1', '2') WHERE flow IS NOT NULL",
        "UPDATE steps SET flow = NULL WHERE state = 6",
        "UPDATE steps SET state = 6 WHERE state = 7",
        "UPDATE steps SET key = replace(key, 'each:', 'each:1')",
        "UPDATE runs SET earlier = 2 WHERE seq = 11",
        "UPDATE runs SET state = 4 WHERE seq = 11",
        "UPDATE events SET at = at + 1 WHERE seq = 7",
        "UPDATE workflows SET paused = 1",
        "UPDATE workflows SET slots = slots + 1",
        "UPDATE definitions SET definition = replace(definition, 'command', 'commend')",
        "UPDATE backfills SET priority = 4",
        "UPDATE registers SET value = '{}'",
        "UPDATE facts SET seq = 3",
        "UPDATE sources SET text = ''",
        "UPDATE leadership SET epoch = epoch + 1",
    ];
    drop(store);
    let intact = std::fs::read(folder.path()).unwrap();
    for change in changes {
        let folder = Folder::new();
        std::fs::write(folder.path(), &intact).unwrap();
        let changed = Connection::open(folder.path()).unwrap().execute(change, []).unwrap();
        assert!(changed > 0, "{change}");
        read_all(&folder.path()).unwrap_err();
        let mut store = folder.open();
        let found = store.damage(100).unwrap();
        assert!(!found.is_empty(), "{change}");
        // Data that is not read before leading doesn't prevent it until they are read.
        assert!(
            matches!(store.lease("node", Timestamp::UNIX_EPOCH, 1000), Err(StoreError::Corrupt { .. })),
            "{change}"
        );
        drop(store);
        if !change.contains("sources") {
            assert_eq!(folder.open().accept().unwrap(), Some(()), "{change}");
            assert_eq!(folder.open().damage(9).unwrap(), [] as [&str; 0], "{change}");
            read_all(&folder.path()).unwrap();
        }
    }
}

#[test]
fn who_reads_what_is_damaged_has_the_leader_write_nothing_more() {
    let folder = Folder::new();
    let mut store = folder.open();
    let lease = lead(&mut store);
    store.commit(lease, &turn("a", 0, 60)).unwrap();
    store.commit(lease, &turn("b", 62, 3)).unwrap();
    Connection::open(folder.path()).unwrap().execute("UPDATE events SET at = at + 1 WHERE seq = 7", []).unwrap();
    store.commit(lease, &turn("c", 67, 3)).unwrap();
    let told = store.reader().events(&EventFilter::default(), PageRequest::oldest(10)).unwrap_err();
    assert!(told.to_string().contains("an event beginning with (7, 6, 0)"), "{told}");
    let refused = store.commit(lease, &turn("d", 72, 3));
    assert!(matches!(refused, Err(StoreError::Corrupt { .. })), "{refused:?}");
    let refused = store.lease("node", Timestamp::UNIX_EPOCH, 1000);
    assert!(matches!(refused, Err(StoreError::Corrupt { .. })), "{refused:?}");
    // Undamaged data can still be read.
    assert_eq!(store.reader().last_seq().unwrap(), 72);
    assert_eq!(store.reader().events(&EventFilter::after(7), PageRequest::oldest(10)).unwrap().rows.len(), 10);
}

#[test]
fn files_that_go_under_a_leader_are_noticed_with_the_next_turn() {
    let wal = |folder: &Folder| folder.0.path().join("kelos.db-wal");
    type Deed = fn(&Path, &Path);
    let deeds: [(Deed, &str); 6] = [
        (|database, _| std::fs::remove_file(database).unwrap(), "the file was deleted while it was in use"),
        (
            |database, _| {
                std::fs::write(database.with_extension("x"), "")
                    .and_then(|()| std::fs::rename(database.with_extension("x"), database))
                    .unwrap()
            },
            "the file was replaced while it was in use",
        ),
        (|_, wal| std::fs::remove_file(wal).unwrap(), "its write-ahead log was deleted while it was in use"),
        (|_, wal| cut(wal, 5000), "its write-ahead log was cut while it was in use"),
        (|_, wal| cut(wal, 0), "its write-ahead log lost its head while it was in use"),
        (|_, wal| cut(wal, 20), "its write-ahead log lost its head while it was in use"),
    ];
    for (deed, words) in deeds {
        let folder = Folder::new();
        let mut store = folder.open();
        let lease = lead(&mut store);
        store.commit(lease, &turn("a", 0, 60)).unwrap();
        deed(&folder.path(), &wal(&folder));
        let refused = store.commit(lease, &turn("b", 62, 3)).unwrap_err();
        assert!(matches!(refused, StoreError::Corrupt { .. }) && refused.to_string().contains(words), "{refused}");
    }
}

fn cut(path: &Path, length: u64) {
    std::fs::OpenOptions::new().write(true).open(path).unwrap().set_len(length).unwrap();
}

#[test]
fn a_log_that_others_moved_into_the_database_is_not_missed() {
    let folder = Folder::new();
    let mut store = folder.open();
    let lease = lead(&mut store);
    store.commit(lease, &turn("a", 0, 60)).unwrap();
    let other = Connection::open(folder.path()).unwrap();
    other.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    store.commit(lease, &turn("b", 62, 3)).unwrap();
    // After a crash, a person opens the file with SQLite's own tool, which deletes the log.
    let files = FILES.map(|name| (name, std::fs::read(folder.0.path().join(name)).unwrap())).to_vec();
    let copy = Image(files).lay_out();
    let looking = Connection::open(copy.path()).unwrap();
    looking.query_row("SELECT count(*) FROM events", [], |_| Ok(())).unwrap();
    drop(looking);
    assert!(!copy.0.path().join("kelos.db-wal").exists());
    read_all(&copy.path()).unwrap();
}
