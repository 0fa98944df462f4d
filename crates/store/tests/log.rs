//! The log in memory keeps the contract of logs.

use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use kelos_store::log::{
    EntryBody, FORM, Holder, Inbox, LeaseRecord, LeaseTiming, Log, LogEnds, LogEntry, LogError, LogJournal, LogParts,
    LogState, LogStore, MemoryLog, MemoryLogStore, RaiseError, SnapshotPolicy, entry_bytes, form_of, read_entry,
};
use kelos_store::suite::{Place, history, log_suite, log_tells_of_releases, suite_of_nodes};
use kelos_store::{Commit, Journal, Lease, MemoryCopies, MemoryDisk, MemoryStore, StoreError, StoredState, TurnRecord};

#[test]
fn memory_keeps_the_contract_of_logs() {
    log_suite(&mut || Box::new(MemoryLogStore::new()));
    log_tells_of_releases(&MemoryLogStore::new());
}

/// Nodes over one log, each with a memory of its own; a clock that each look at the lease moves.
struct Nodes {
    log: MemoryLogStore,
    copies: MemoryCopies,
    clock: Arc<AtomicU64>,
}

impl Place for Nodes {
    fn open(&mut self) -> Box<dyn Journal> {
        let clock = self.clock.clone();
        let parts = LogParts {
            store: Arc::new(self.log.clone()),
            state: MemoryStore::on(&MemoryDisk::with_copies(&self.copies)),
            folder: std::env::temp_dir(),
            holder: Holder { node: "contract".to_owned(), ..Holder::default() },
            form: FORM,
            timing: LeaseTiming::DEFAULT,
            monotonic: Arc::new(move || Duration::from_millis(clock.load(Ordering::Relaxed))),
            wall: Arc::new(|| 0),
            nonce: Box::new(|| 4),
        };
        Box::new(LogJournal::inline(parts).unwrap().0)
    }
}

#[test]
fn a_journal_over_a_log_keeps_the_contract_of_stores() {
    suite_of_nodes(&mut || {
        Box::new(Nodes { log: MemoryLogStore::new(), copies: MemoryCopies::default(), clock: Arc::default() })
    });
}

/// Whatever is written to a log is read from it unchanged: else nodes had different pasts.
#[test]
fn entries_are_read_as_they_were_written() {
    for seed in 0..20 {
        for commit in history(seed, 30) {
            let record = TurnRecord::of_commit(None, 0, 3, &commit);
            let body = entry_bytes(FORM, &EntryBody::Turn { record, commit: Box::new(commit.clone()) }).unwrap();
            let read = read_entry(&LogEntry { position: 1, epoch: 3, body }, FORM).unwrap();
            let EntryBody::Turn { record: again, commit: back } = read else { panic!("a turn") };
            assert_eq!((again, format!("{back:?}")), (record, format!("{commit:?}")));
        }
    }
}

#[test]
fn an_entry_of_a_newer_program_is_told_from_nonsense() {
    let told =
        |body: &[u8]| read_entry(&LogEntry { position: 9, epoch: 1, body: body.to_vec() }, 1).unwrap_err().to_string();
    assert_eq!(
        told(b"K2{}"),
        "follow the log: its entry 9 is of form 2, and this program reads up to form 1; use the program of the leader"
    );
    assert_eq!(told(b"hello"), "read entry 9 of the log: it is no entry of ours");
    assert!(told(b"K1{\"turn\":{}}").contains("missing field `record`"));
}

/// A log whose answers to renewals take a second of the clock, and which shows readers nothing, where that is wanted.
#[derive(Clone, Default)]
struct SlowLogStore {
    log: MemoryLogStore,
    clock: Arc<AtomicU64>,
    renews_slowly: Arc<AtomicBool>,
    shows_nothing: Arc<AtomicBool>,
    /// Whether the lease is being taken, and whether the answer is held back.
    is_taken: Arc<AtomicBool>,
    takes_slowly: Arc<AtomicBool>,
    loses_answers: Arc<AtomicBool>,
    /// Whether its own clock is shown, which is the same as the nodes' monotonic clock.
    tells_time: Arc<AtomicBool>,
    is_down: Arc<AtomicBool>,
}

struct SlowLog(SlowLogStore, MemoryLog);

impl LogStore for SlowLogStore {
    fn name(&self) -> String {
        "slow".to_owned()
    }

    fn open(&self) -> Result<Box<dyn Log>, LogError> {
        if self.is_down.load(Ordering::Acquire) {
            return Err(LogError::Medium { doing: "connect".to_owned(), cause: "connection refused".to_owned() });
        }
        Ok(Box::new(SlowLog(self.clone(), self.log.connect())))
    }

    /// Users have no transactions of their own here.
    fn inbox(&self) -> Result<Option<Box<dyn Inbox>>, LogError> {
        Ok(None)
    }
}

impl Log for SlowLog {
    fn lease(&mut self) -> Result<LeaseRecord, LogError> {
        self.1.lease()
    }

    fn take(&mut self, seen: &LeaseRecord, nonce: u64, holder: &Holder) -> Result<Option<LeaseRecord>, LogError> {
        let answer = self.1.take(seen, nonce, holder);
        self.0.is_taken.store(true, Ordering::Release);
        while self.0.takes_slowly.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
        answer
    }

    fn renew(&mut self, held: &LeaseRecord) -> Result<Option<LeaseRecord>, LogError> {
        let answer = self.1.renew(held);
        if self.0.loses_answers.load(Ordering::Relaxed) {
            return Err(lost("renew the lease"));
        }
        if self.0.renews_slowly.load(Ordering::Relaxed) {
            self.0.clock.fetch_add(3000, Ordering::Relaxed);
        }
        answer
    }

    fn release(&mut self, held: &LeaseRecord) -> Result<(), LogError> {
        self.1.release(held)
    }

    fn append(&mut self, epoch: u64, position: u64, body: &[u8]) -> Result<(), LogError> {
        self.1.append(epoch, position, body)?;
        if self.0.loses_answers.load(Ordering::Relaxed) { Err(lost("append an entry")) } else { Ok(()) }
    }

    fn read(&mut self, after: u64, limit: usize) -> Result<Vec<LogEntry>, LogError> {
        if self.0.shows_nothing.load(Ordering::Relaxed) { Ok(Vec::new()) } else { self.1.read(after, limit) }
    }

    fn ends(&mut self) -> Result<LogEnds, LogError> {
        self.1.ends()
    }

    fn clock_millis(&mut self) -> Result<Option<i64>, LogError> {
        Ok(self.0.tells_time.load(Ordering::Relaxed).then(|| self.0.millis()))
    }

    fn wait(&mut self, after: u64, patience: Duration) -> Result<(), LogError> {
        self.1.wait(after, patience)
    }

    fn put_snapshot(&mut self, position: u64, source: &mut dyn Read) -> Result<(), LogError> {
        self.1.put_snapshot(position, source)
    }

    fn snapshot(&mut self) -> Result<Option<u64>, LogError> {
        self.1.snapshot()
    }

    fn read_snapshot(&mut self, position: u64, target: &mut dyn Write) -> Result<(), LogError> {
        self.1.read_snapshot(position, target)
    }

    fn trim(&mut self, before: u64) -> Result<(), LogError> {
        self.1.trim(before)
    }
}

fn lost(doing: &str) -> LogError {
    LogError::Unknown { doing: doing.to_owned(), cause: "the answer was lost".to_owned() }
}

impl SlowLogStore {
    fn millis(&self) -> i64 {
        i64::try_from(self.clock.load(Ordering::Relaxed)).unwrap()
    }

    fn node(&self, name: &str, disk: &MemoryDisk) -> Result<LogJournal<MemoryStore>, StoreError> {
        Ok(self.node_of_form(name, disk, FORM)?.0)
    }

    /// A node whose program knows entries up to a form.
    fn node_of_form(
        &self,
        name: &str,
        disk: &MemoryDisk,
        form: u32,
    ) -> Result<(LogJournal<MemoryStore>, LogState), StoreError> {
        LogJournal::inline(LogParts { form, ..self.parts(name, disk) })
    }

    fn parts(&self, name: &str, disk: &MemoryDisk) -> LogParts<MemoryStore> {
        let clock = self.clock.clone();
        LogParts {
            store: Arc::new(self.clone()),
            state: MemoryStore::on(disk),
            folder: std::env::temp_dir(),
            holder: Holder { node: name.to_owned(), ..Holder::default() },
            form: FORM,
            timing: LeaseTiming::DEFAULT,
            monotonic: Arc::new(move || Duration::from_millis(clock.load(Ordering::Relaxed))),
            wall: Arc::new(|| 0),
            nonce: Box::new(|| 4),
        }
    }
}

fn ask(journal: &mut LogJournal<MemoryStore>) -> Result<Option<Lease>, StoreError> {
    journal.lease("", Timestamp::UNIX_EPOCH, 60_000)
}

/// Writes so many turns, and returns the lease.
fn write(journal: &mut LogJournal<MemoryStore>, count: usize) -> Lease {
    let lease = ask(journal).unwrap().unwrap();
    let turns = history(6, 3 * count).into_iter().filter(|turn| !turn.is_empty());
    turns.take(count).for_each(|turn| journal.commit(lease, &turn).unwrap());
    lease
}

#[test]
fn a_renewal_that_took_too_long_is_no_right_to_lead() {
    let (store, disk) = (SlowLogStore::default(), MemoryDisk::new());
    let mut leader = store.node("leader", &disk).unwrap();
    let lease = write(&mut leader, 1);
    store.clock.fetch_add(1400, Ordering::Relaxed);
    store.renews_slowly.store(true, Ordering::Relaxed);
    assert_eq!(ask(&mut leader).unwrap(), None, "another node may have taken it meanwhile");
    store.renews_slowly.store(false, Ordering::Relaxed);
    assert_eq!(ask(&mut leader).unwrap(), Some(lease), "no other has, and it is renewed");
}

/// A node that ends just after a change of leader, before it knows that it leads, would else keep the others waiting for the end of its lease.
#[test]
fn a_lease_that_is_taken_while_the_node_ends_is_given_back() {
    let (store, disk) = (SlowLogStore::default(), MemoryDisk::new());
    store.takes_slowly.store(true, Ordering::Release);
    let (mut node, _) = LogJournal::start(store.parts("node", &disk), SnapshotPolicy::DEFAULT).unwrap();
    assert_eq!(ask(&mut node).unwrap(), None, "it is being taken");
    while !store.is_taken.load(Ordering::Acquire) {
        std::thread::yield_now();
    }
    assert!(!store.open().unwrap().lease().unwrap().is_free);
    let ends = std::thread::spawn(move || drop(node));
    std::thread::yield_now();
    store.takes_slowly.store(false, Ordering::Release);
    ends.join().unwrap();
    assert!(store.open().unwrap().lease().unwrap().is_free);
}

#[test]
fn a_reader_that_is_behind_takes_nothing_for_lost() {
    let (store, disk) = (SlowLogStore::default(), MemoryDisk::new());
    write(&mut store.node("leader", &disk).unwrap(), 3);
    let mut again = store.node("leader", &disk).unwrap();
    store.shows_nothing.store(true, Ordering::Relaxed);
    let refused = ask(&mut again).unwrap_err().to_string();
    assert_eq!(refused, "read entry 4 of the log: the store has it, and does not show it yet");
    store.shows_nothing.store(false, Ordering::Relaxed);
    assert!(ask(&mut again).unwrap().is_some());
}

#[test]
fn a_node_ahead_of_the_log_lets_others_lead() {
    let (store, disk, behind) = (SlowLogStore::default(), MemoryDisk::new(), MemoryDisk::new());
    write(&mut store.node("ahead", &disk).unwrap(), 4);
    store.log.lose_after(3);
    let mut ahead = store.node("ahead", &disk).unwrap();
    let is_ahead = |journal: &mut LogJournal<MemoryStore>| matches!(ask(journal), Err(StoreError::Ahead { .. }));
    assert!(is_ahead(&mut ahead));
    let mut other = store.node("other", &behind).unwrap();
    let lease = ask(&mut other).unwrap().expect("the lease was given back");
    store.clock.fetch_add(60_000, Ordering::Relaxed);
    disk.fill(true);
    assert!(is_ahead(&mut ahead), "and it does not ask for it, or write to its disk");
    assert_eq!(ask(&mut other).unwrap(), Some(lease));
}

#[test]
fn a_plug_is_not_followed_from_another_past() {
    let (store, disk) = (SlowLogStore::default(), MemoryDisk::new());
    write(&mut store.node("ahead", &disk).unwrap(), 3);
    store.log.lose_after(3);
    // The first plug has the place of the lost entry, the second one follows on it.
    let other = MemoryDisk::new();
    write(&mut store.node("other", &other).unwrap(), 0);
    write(&mut store.node("other", &other).unwrap(), 0);
    let refused = store.node("ahead", &disk).map(drop);
    assert!(matches!(refused, Err(StoreError::Ahead { local: 4, log: 5 })), "{refused:?}");
}

/// Nodes that look at the lease each fifth of a second, in turn.
struct Group {
    store: SlowLogStore,
    disks: Vec<MemoryDisk>,
    nodes: Vec<(LogJournal<MemoryStore>, LogState)>,
}

impl Group {
    fn new(names: &[&str]) -> Group {
        Group::of(SlowLogStore::default(), names, |_, _| 0)
    }

    /// Nodes whose clocks show another time than that of the store.
    fn of(
        store: SlowLogStore,
        names: &[&str],
        clock: impl Fn(usize, i64) -> i64 + Copy + Send + Sync + 'static,
    ) -> Group {
        let copies = MemoryCopies::default();
        let disks: Vec<MemoryDisk> = names.iter().map(|_| MemoryDisk::with_copies(&copies)).collect();
        let node = |(number, name): (usize, &&str)| {
            let shown = store.clone();
            let wall = Arc::new(move || clock(number, shown.millis()));
            LogJournal::inline(LogParts { wall, ..store.parts(name, &disks[number]) }).unwrap()
        };
        let nodes = names.iter().enumerate().map(node).collect();
        Group { store, disks, nodes }
    }

    /// The outcome of a look of each node at the lease; nodes that failed count as followers.
    fn look(&mut self) {
        self.store.clock.fetch_add(200, Ordering::Relaxed);
        for (node, _) in &mut self.nodes {
            let _ = node.lease("", Timestamp::UNIX_EPOCH, 20_000);
        }
    }

    fn leader(&self) -> Option<usize> {
        self.nodes.iter().position(|(_, shown)| shown.status().leads)
    }

    /// The first node that leads, and after how many milliseconds.
    #[track_caller]
    fn led_by(&mut self, is_wanted: impl Fn(usize) -> bool) -> (usize, i64) {
        let began = self.store.millis();
        for _ in 0..1000 {
            self.look();
            if let Some(leader) = self.leader().filter(|leader| is_wanted(*leader)) {
                return (leader, self.store.millis() - began);
            }
        }
        panic!("no such node leads after {} ms", self.store.millis() - began)
    }

    fn release(&mut self, node: usize) {
        let epoch = self.store.log.connect().lease().unwrap().epoch;
        self.nodes[node].0.release(Lease { epoch }).unwrap();
    }

    fn trouble(&self, node: usize) -> String {
        self.nodes[node].1.status().trouble.unwrap()
    }

    fn write(&mut self, node: usize) -> Result<(), StoreError> {
        let last = self.nodes[node].0.restore()?.last_seq;
        let bucket = |value: u64| vec![("b".to_owned(), "k".to_owned(), Some(serde_json::json!(value)))];
        let commit = Commit { at: Timestamp::UNIX_EPOCH, registers: bucket(last), ..Commit::default() };
        let epoch = self.nodes[node].1.status().lease.epoch;
        self.nodes[node].0.commit(Lease { epoch }, &commit)
    }
}

#[test]
fn a_leader_that_can_not_write_its_state_lets_another_lead_until_it_can() {
    let mut group = Group::new(&["a", "b", "c"]);
    let (leader, _) = group.led_by(|_| true);
    group.write(leader).unwrap();
    group.disks[leader].fill(true);
    assert!(matches!(group.write(leader), Err(StoreError::Medium { .. })));
    let (next, millis) = group.led_by(|_| true);
    assert!(next != leader && millis <= 1000, "{next} after {millis} ms");
    group.write(next).unwrap();
    // The leader of before says why it does not compete, even if it is the only one.
    group.release(next);
    group.disks.iter().for_each(|disk| disk.fill(true));
    (0..100).for_each(|_| group.look());
    assert_eq!(group.leader(), None);
    assert_eq!(group.trouble(leader), "write to the memory: it is full");
    // There is room again at the first one alone.
    group.disks[leader].fill(false);
    let (again, _) = group.led_by(|_| true);
    assert_eq!(again, leader);
    group.write(leader).unwrap();
}

#[test]
fn a_node_that_is_unfit_tests_itself_now_and_then() {
    let mut group = Group::new(&["a"]);
    group.led_by(|_| true);
    group.disks[0].fill(true);
    assert!(group.write(0).is_err());
    group.look();
    group.disks[0].fill(false);
    // Each look is a fifth of a second.
    (0..24).for_each(|_| group.look());
    assert_eq!(group.trouble(0), "write to the memory: it is full");
    group.look();
    assert_eq!(group.nodes[0].1.status().trouble, None);
}

#[test]
fn two_nodes_that_do_not_reach_each_other_take_the_lead_at_growing_intervals() {
    let mut group = Group::new(&["a", "b"]);
    let (first, _) = group.led_by(|_| true);
    let (mut leader, mut times) = (first, Vec::new());
    while times.len() < 12 {
        let (began, standby) = (group.store.millis(), 1 - leader);
        while group.leader() != Some(standby) {
            group.look();
            let seen = group.nodes[standby].1.status().lease;
            if group.leader() == Some(leader) && seen.holder.node == ["a", "b"][leader] {
                group.nodes[standby].1.depose(&seen, "it was not reached".to_owned());
            }
        }
        times.push((group.store.millis() - began) / 1000);
        leader = standby;
    }
    assert!(times[0] <= 3 && times[1] <= 7, "{times:?}");
    assert!(times[6] >= 3 * times[2] && times[11] >= 160, "{times:?}");
}

#[test]
fn a_leader_that_nobody_reaches_is_deposed_and_lets_others_go_first() {
    let mut group = Group::new(&["a", "b", "c"]);
    let (leader, _) = group.led_by(|_| true);
    let standby = (leader + 1) % 3;
    let depose = |group: &mut Group, leader: usize, standby: usize| {
        let seen = group.nodes[standby].1.status().lease;
        assert!(!seen.is_free && seen.holder.node == ["a", "b", "c"][leader]);
        group.nodes[standby].1.depose(&seen, "it was not reached".to_owned());
        group.led_by(|node| node != leader).1
    };
    group.look();
    let millis = depose(&mut group, leader, standby);
    assert!((3000..=3500).contains(&millis), "the leader of before trusts its lease until then: {millis} ms");
    assert!(group.write(leader).is_err(), "the log refuses its epoch");
    group.write(standby).unwrap();
    assert_eq!(group.nodes[standby].1.reigns(1).unwrap()[0].reason, "it was not reached");
    // It goes on hearing of the lease, and the next leader is another one whenever there is one.
    (0..5).for_each(|_| group.look());
    let third = 3 - leader - standby;
    group.disks[standby].fill(true);
    assert!(group.write(standby).is_err());
    assert_eq!(group.led_by(|_| true).0, third);
    // Alone it leads, too, after a longer wait.
    group.disks[third].fill(true);
    assert!(group.write(third).is_err());
    let (again, millis) = group.led_by(|_| true);
    assert!(again == leader && millis >= 4000, "{again} after {millis} ms");
}

#[test]
fn a_node_whose_clock_differs_from_that_of_the_store_does_not_lead() {
    const DAY: i64 = 86_400_000;
    let store = SlowLogStore::default();
    store.tells_time.store(true, Ordering::Relaxed);
    static AHEAD: AtomicU64 = AtomicU64::new(0);
    let clock = |node: usize, now: i64| match node {
        0 => now + DAY,
        1 => now + i64::try_from(AHEAD.load(Ordering::Relaxed)).unwrap(),
        _ => now - 4_000,
    };
    let mut group = Group::of(store, &["ahead", "b", "c"], clock);
    let (leader, _) = group.led_by(|_| true);
    assert_ne!(leader, 0);
    let trouble = group.trouble(0);
    assert!(trouble.contains("the clock of this node is 86400 s ahead of that of the store"), "{trouble}");
    // A clock that is put wrong costs the lead.
    AHEAD.store(60_000, Ordering::Relaxed);
    let (leader, _) = group.led_by(|node| node == 2);
    (0..50).for_each(|_| group.look());
    assert_eq!((leader, group.leader()), (2, Some(2)));
    AHEAD.store(0, Ordering::Relaxed);
    (0..50).for_each(|_| group.look());
    assert_eq!(group.nodes[1].1.status().trouble, None);
}

#[test]
fn without_a_clock_of_the_store_those_of_the_other_nodes_count() {
    let mut group = Group::new(&["a", "b"]);
    let (leader, _) = group.led_by(|_| true);
    group.nodes[leader].1.note_clock(Some("compete for the lead: its clock is off".to_owned()));
    let (other, millis) = group.led_by(|node| node != leader);
    assert!(other != leader && millis <= 600, "{millis} ms");
}

#[test]
fn a_second_process_of_one_name_does_not_lead_and_says_why() {
    let mut group = Group::new(&["a", "a", "b"]);
    let (leader, _) = group.led_by(|node| node < 2);
    (0..20).for_each(|_| group.look());
    let twin = 1 - leader;
    let trouble = group.trouble(twin);
    assert!(trouble.starts_with("take part as node a: another process has this name and is alive"), "{trouble}");
    group.release(leader);
    let (next, _) = group.led_by(|_| true);
    assert_ne!(next, twin);
    group.disks[leader].fill(true);
    assert!(next == 2 || group.write(next).is_err());
    group.led_by(|node| node == 2);
    group.look();
    assert_eq!(group.nodes[twin].1.status().trouble, None, "the next leader would hear of two");
    // The other one dies, and no third node is there.
    let mut group = Group::new(&["a", "a"]);
    let (leader, _) = group.led_by(|_| true);
    (0..20).for_each(|_| group.look());
    let twin = 1 - leader;
    assert!(group.trouble(twin).starts_with("take part as node a"));
    let _dead = group.nodes.remove(leader);
    group.led_by(|_| true);
    // A process that is started again under its name is no twin of the one that ended.
    let mut group = Group::new(&["a"]);
    group.led_by(|_| true);
    let again = Group::of(group.store.clone(), &["a"], |_, _| 0);
    drop(std::mem::replace(&mut group, again));
    group.led_by(|_| true);
    assert_eq!(group.nodes[0].1.status().trouble, None);
}

#[test]
fn a_node_that_starts_while_the_store_is_away_waits_for_it_if_it_has_something_to_read() {
    let (store, disk) = (SlowLogStore::default(), MemoryDisk::new());
    write(&mut store.node("node", &disk).unwrap(), 2);
    store.is_down.store(true, Ordering::Release);
    let start = |disk: &MemoryDisk| LogJournal::start(store.parts("node", disk), SnapshotPolicy::DEFAULT);
    let refused = start(&MemoryDisk::new()).map(drop).unwrap_err().to_string();
    assert_eq!(refused, "connect: connection refused");
    let (mut node, shown) = start(&disk).unwrap();
    assert_eq!(shown.status().followed, 3);
    assert_eq!(shown.status().trouble.as_deref(), Some("connect: connection refused"));
    assert!(node.restore().unwrap().last_turn.is_some());
    store.is_down.store(false, Ordering::Release);
    while !shown.status().leads {
        store.clock.fetch_add(10, Ordering::Relaxed);
        let _ = ask(&mut node);
        std::thread::yield_now();
    }
}

/// The forms of all entries of a log.
fn forms(store: &SlowLogStore) -> Vec<Option<u32>> {
    store.log.connect().read(0, 100).unwrap().iter().map(form_of).collect()
}

#[test]
fn the_form_of_a_log_stays_until_somebody_raises_it() {
    let (store, [old, new]) = (SlowLogStore::default(), [MemoryDisk::new(), MemoryDisk::new()]);
    let (mut first, shown_by_old) = store.node_of_form("old", &old, 1).unwrap();
    let mut turns = history(6, 30).into_iter().filter(|turn| !turn.is_empty());
    let mut write = |journal: &mut LogJournal<MemoryStore>| {
        let lease = ask(journal).unwrap().unwrap();
        journal.commit(lease, &turns.next().unwrap()).unwrap();
        lease
    };
    let lease = write(&mut first);
    first.release(lease).unwrap();
    // A newer program leads, and writes what the old one reads.
    let (mut second, shown) = store.node_of_form("new", &new, 2).unwrap();
    assert_eq!(shown.raise(2), Err(RaiseError::Standby));
    let lease = write(&mut second);
    assert_eq!(forms(&store), [Some(1); 4], "a plug and a turn of each");
    let refused = shown.ask_to_raise(3).unwrap_err().to_string();
    assert_eq!(
        refused,
        "raise the form of entries to 3: it is written in form 1, and this program writes up to form 2"
    );
    assert!(shown.ask_to_raise(1).is_err());
    assert_eq!(ask(&mut first).unwrap(), None);

    shown.ask_to_raise(2).unwrap();
    let raised = ask(&mut second).unwrap().expect("it takes over from itself");
    assert!(raised.epoch > lease.epoch, "{raised:?} after {lease:?}");
    assert!(!second.holds(lease), "what was decided before is restored");
    assert_eq!(write(&mut second), raised);
    assert_eq!(forms(&store)[4..], [Some(2), Some(2)]);
    let lease = shown.status().lease;
    assert_eq!((lease.writes(), lease.least()), (2, 2));
    assert_eq!(shown.reigns(1).unwrap()[0].reason, "the form of entries was raised from 1 to 2");

    // The old one stops in front of the first entry that it can't read, and goes on answering.
    let newer =
        "follow the log: its entry 5 is of form 2, and this program reads up to form 1; use the program of the leader";
    assert_eq!(ask(&mut first).unwrap_err().to_string(), newer);
    assert_eq!(shown_by_old.status().followed, 4);
    assert!(first.reader().last_seq().unwrap() > 0);
    // It never leads, however long nobody does.
    second.release(raised).unwrap();
    for _ in 0..4 {
        store.clock.fetch_add(60_000, Ordering::Relaxed);
        assert!(matches!(ask(&mut first), Err(StoreError::NewerForm { entry: 5, form: 2, reads: 1 })));
    }
    assert_eq!(shown_by_old.status().lease.holder.node, "new");
    drop(first);
    let (mut upgraded, shown) = store.node_of_form("old", &old, 2).unwrap();
    assert_eq!(shown.status().followed, 6);
    let lease = write(&mut upgraded);
    assert_eq!(shown.status().lease.writes(), 2, "and the form stays with the next leader: {lease:?}");
}

/// A new log is written in the newest form of the program that begins it.
#[test]
fn a_new_log_begins_with_the_form_of_its_first_leader() {
    let (store, disk) = (SlowLogStore::default(), MemoryDisk::new());
    write(&mut store.node_of_form("new", &disk, 2).unwrap().0, 1);
    assert_eq!(forms(&store), [Some(2), Some(2)]);
}

#[test]
fn a_leader_whose_answers_are_lost_takes_over_from_itself_at_once() {
    let (store, disk) = (SlowLogStore::default(), MemoryDisk::new());
    let mut leader = store.node("leader", &disk).unwrap();
    let lease = write(&mut leader, 1);
    // The store renews the lease and appends the turn, and the answers to both are lost.
    store.loses_answers.store(true, Ordering::Relaxed);
    store.clock.fetch_add(600, Ordering::Relaxed);
    assert_eq!(ask(&mut leader).unwrap(), Some(lease), "it is trusted for a while yet");
    let turn = history(6, 9).into_iter().filter(|turn| !turn.is_empty()).nth(1).unwrap();
    assert!(leader.commit(lease, &turn).is_err());
    store.loses_answers.store(false, Ordering::Relaxed);
    let _ = ask(&mut leader);
    let again = ask(&mut leader).unwrap().expect("no time passed, and nobody else can hold it");
    assert!(again.epoch > lease.epoch);
    let log = store.log.connect().ends().unwrap();
    assert_eq!(log.last, 4, "the plug of the second time follows on the turn");
}

#[test]
fn a_log_that_does_not_show_its_end_is_asked_again_later() {
    let (store, disk) = (SlowLogStore::default(), MemoryDisk::new());
    let lease = write(&mut store.node("before", &MemoryDisk::new()).unwrap(), 1);
    let mut next = store.node("next", &disk).unwrap();
    store.log.connect().append(lease.epoch, 3, &[]).unwrap();
    store.shows_nothing.store(true, Ordering::Relaxed);
    store.clock.fetch_add(60_000, Ordering::Relaxed);
    assert!(ask(&mut next).is_err(), "and it does not ask for ever");
}
