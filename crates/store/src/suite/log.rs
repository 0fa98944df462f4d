//! The contract of a log as a suite of tests that each adapter runs.

use std::time::{Duration, Instant};

use crate::log::{Holder, LeaseRecord, Log, LogEnds, LogError, LogStore};

type Case = (&'static str, fn(&dyn LogStore));

/// Runs the whole contract; `fresh` makes an empty log each time.
///
/// # Panics
/// Where the adapter breaks the contract.
pub fn log_suite(fresh: &mut dyn FnMut() -> Box<dyn LogStore>) {
    let cases: &[Case] = &[
        ("an empty log answers", an_empty_log_answers),
        ("a lease is taken once", a_lease_is_taken_once),
        ("a lease that is given back is taken at once", a_lease_is_given_back),
        ("epochs go on where others ended", epochs_go_on),
        ("of many who take the lease one gets it", one_of_many_gets_it),
        ("entries are read in order", entries_are_read_in_order),
        ("a stale epoch appends nothing", a_stale_epoch_appends_nothing),
        ("only the next entry is appended", only_the_next_entry_is_appended),
        ("of two who append one does", one_of_two_appends),
        ("large entries are kept", large_entries_are_kept),
        ("waiting ends with an entry", waiting_ends_with_an_entry),
        ("snapshots are read back", snapshots_are_read_back),
        ("a log begins behind a snapshot", a_log_begins_behind_a_snapshot),
        ("a log is trimmed behind its snapshot", a_log_is_trimmed),
    ];
    for (name, case) in cases {
        println!("contract of a log: {name}");
        case(&*fresh());
    }
}

/// Entries that were acknowledged before the server of a log was killed are there when it is up again, and both sides go on.
///
/// # Panics
/// Where something is missing.
pub fn log_survives_a_crash(store: &dyn LogStore, crash: &mut dyn FnMut(), up: &mut dyn FnMut()) {
    let mut leader = store.open().unwrap();
    let held = take(&mut *leader, "leader");
    for position in 1..=20 {
        leader.append(held.epoch, position, b"entry").unwrap();
    }
    crash();
    let failed = leader.append(held.epoch, 21, b"entry");
    assert!(matches!(failed, Err(LogError::Medium { .. } | LogError::Unknown { .. })), "{failed:?}");
    up();
    let mut follower = store.open().unwrap();
    let last = follower.ends().unwrap().last;
    assert!((20..=21).contains(&last));
    assert_eq!(leader.lease().unwrap(), held);
    leader.append(held.epoch, last + 1, b"entry").unwrap();
}

/// A lease that is given back ends a wait for entries: for stores that tell of it.
///
/// # Panics
/// When the wait does not end before its time.
pub fn log_tells_of_releases(store: &dyn LogStore) {
    let (mut leader, mut follower) = (store.open().unwrap(), store.open().unwrap());
    let mut held = take(&mut *leader, "leader");
    leader.append(held.epoch, 1, b"entry").unwrap();
    let began = Instant::now();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(move || follower.wait(1, Duration::from_secs(60)).unwrap());
        // It may not wait yet when the lease is given back for the first time.
        while !waiting.is_finished() {
            leader.release(&held).unwrap();
            held = take(&mut *leader, "leader");
            std::thread::yield_now();
        }
        waiting.join().unwrap();
    });
    assert!(began.elapsed() < Duration::from_secs(50), "it waited for {:?}", began.elapsed());
}

fn holder(node: &str) -> Holder {
    Holder { node: node.to_owned(), address: Some(format!("http://{node}:1")), ..Holder::default() }
}

/// Takes the lease as it is.
#[track_caller]
fn take(log: &mut dyn Log, node: &str) -> LeaseRecord {
    let seen = log.lease().unwrap();
    log.take(&seen, 7, &holder(node)).unwrap().expect("nothing has changed")
}

fn an_empty_log_answers(store: &dyn LogStore) {
    let mut log = store.open().unwrap();
    assert_eq!(log.lease().unwrap(), LeaseRecord::default());
    assert_eq!(log.ends().unwrap(), LogEnds { first: 1, last: 0 });
    assert_eq!(log.read(0, 10).unwrap(), []);
    assert_eq!(log.snapshot().unwrap(), None);
    // Whichever clock a store has, it is after the day on which this was written.
    assert!(log.clock_millis().unwrap().is_none_or(|millis| millis > 1_795_651_200_000));
    log.wait(0, Duration::from_millis(1)).unwrap();
    assert_eq!(log.append(1, 1, b"x"), Err(LogError::Deposed { held: 1, current: 0 }));
    assert!(log.read_snapshot(3, &mut Vec::new()).is_err());
    assert!(!store.name().is_empty());
}

fn a_lease_is_taken_once(store: &dyn LogStore) {
    let (mut first, mut second) = (store.open().unwrap(), store.open().unwrap());
    let seen = second.lease().unwrap();
    let held = take(&mut *first, "first");
    assert_eq!((held.epoch, held.renewals, held.is_free), (1, 0, false));
    assert_eq!((held.nonce, &held.holder), (7, &holder("first")));
    assert_eq!(second.take(&seen, 8, &holder("second")).unwrap(), None, "it has changed");
    assert_eq!(second.lease().unwrap(), held);
    let renewed = first.renew(&held).unwrap().unwrap();
    assert_eq!(renewed, held.renewed());
    assert_eq!(second.take(&held, 8, &holder("second")).unwrap(), None, "it was renewed");
    let again = first.renew(&renewed).unwrap().unwrap();
    assert_eq!(first.renew(&held).unwrap().unwrap().renewals, again.renewals + 1, "the taking counts");
    let taken = take(&mut *second, "second");
    assert_eq!((taken.epoch, taken.renewals), (2, 0));
    assert_eq!(first.renew(&again).unwrap(), None, "it has gone over");
    first.release(&again).unwrap();
    assert_eq!(second.lease().unwrap(), taken, "who does not hold it gives nothing back");
    // Another taking of the same number, as after a loss of the end of the store.
    let stranger = LeaseRecord { nonce: taken.nonce + 1, ..taken.clone() };
    assert_eq!(first.renew(&stranger).unwrap(), None);
}

fn a_lease_is_given_back(store: &dyn LogStore) {
    let (mut first, mut second) = (store.open().unwrap(), store.open().unwrap());
    let held = take(&mut *first, "first");
    first.release(&held).unwrap();
    let seen = second.lease().unwrap();
    assert!(seen.is_free && seen.is_same_taking(&held));
    assert_eq!(first.renew(&held).unwrap(), None, "it was given back");
    let taken = second.take(&seen, 9, &holder("second")).unwrap().unwrap();
    assert_eq!((taken.epoch, taken.is_free), (2, false));
    let mut third = store.open().unwrap();
    assert_eq!(third.lease().unwrap(), taken);
}

fn epochs_go_on(store: &dyn LogStore) {
    let mut log = store.open().unwrap();
    let seen = log.lease().unwrap();
    let lease = log.take(&seen, 7, &Holder { after: 57, ..holder("first") }).unwrap().expect("nothing has changed");
    assert_eq!((lease.epoch, &log.lease().unwrap()), (58, &lease));
    log.append(58, 1, b"one").unwrap();
    let lease = log.take(&lease, 8, &Holder { after: 57, ..holder("second") }).unwrap().expect("nothing has changed");
    assert_eq!((lease.epoch, &log.lease().unwrap()), (59, &lease));
    log.append(59, 2, b"two").unwrap();
}

fn one_of_many_gets_it(store: &dyn LogStore) {
    for round in 0..5 {
        let seen = store.open().unwrap().lease().unwrap();
        let taken = std::thread::scope(|scope| {
            let takers: Vec<_> = (0..4)
                .map(|taker| {
                    let seen = seen.clone();
                    scope.spawn(move || store.open().unwrap().take(&seen, taker, &holder("some")).unwrap().is_some())
                })
                .collect();
            takers.into_iter().map(|taker| taker.join().unwrap()).filter(|taken| *taken).count()
        });
        assert_eq!(taken, 1, "in round {round}");
    }
}

fn entries_are_read_in_order(store: &dyn LogStore) {
    let (mut log, mut other) = (store.open().unwrap(), store.open().unwrap());
    let lease = take(&mut *log, "first");
    for position in 1..=25 {
        log.append(lease.epoch, position, format!("entry {position}").as_bytes()).unwrap();
    }
    assert_eq!(other.ends().unwrap(), LogEnds { first: 1, last: 25 });
    let mut read = Vec::new();
    loop {
        let page = other.read(read.len() as u64, 10).unwrap();
        assert!(page.len() <= 10);
        if page.is_empty() {
            break;
        }
        read.extend(page);
    }
    assert_eq!(read.len(), 25);
    for (position, entry) in (1..).zip(&read) {
        assert_eq!((entry.position, entry.epoch), (position, lease.epoch));
        assert_eq!(entry.body, format!("entry {position}").into_bytes());
    }
    assert_eq!(other.read(24, 10).unwrap(), read[24..]);
    assert_eq!(other.read(25, 10).unwrap(), []);
}

fn a_stale_epoch_appends_nothing(store: &dyn LogStore) {
    let (mut first, mut second) = (store.open().unwrap(), store.open().unwrap());
    let stale = take(&mut *first, "first");
    first.append(stale.epoch, 1, b"one").unwrap();
    let lease = take(&mut *second, "second");
    second.append(lease.epoch, 2, b"plug").unwrap();
    let refused = first.append(stale.epoch, 3, b"three");
    assert_eq!(refused, Err(LogError::Deposed { held: stale.epoch, current: lease.epoch }));
    let refused = first.append(stale.epoch, 2, b"two");
    assert!(matches!(refused, Err(LogError::Deposed { .. } | LogError::NotNext { .. })), "{refused:?}");
    let ahead = second.append(lease.epoch + 1, 3, b"three");
    assert_eq!(ahead, Err(LogError::Deposed { held: lease.epoch + 1, current: lease.epoch }));
    second.append(lease.epoch, 3, b"three").unwrap();
    let bodies: Vec<_> = first.read(0, 9).unwrap().into_iter().map(|entry| entry.body).collect();
    assert_eq!(bodies, [b"one".to_vec(), b"plug".to_vec(), b"three".to_vec()]);
}

fn only_the_next_entry_is_appended(store: &dyn LogStore) {
    let mut log = store.open().unwrap();
    let lease = take(&mut *log, "first");
    assert_eq!(log.append(lease.epoch, 2, b"two"), Err(LogError::NotNext { position: 2, last: 0 }));
    log.append(lease.epoch, 1, b"one").unwrap();
    assert_eq!(log.append(lease.epoch, 1, b"again"), Err(LogError::NotNext { position: 1, last: 1 }));
    assert_eq!(log.append(lease.epoch, 3, b"three"), Err(LogError::NotNext { position: 3, last: 1 }));
    log.append(lease.epoch, 2, b"").unwrap();
    assert_eq!(log.ends().unwrap().last, 2);
    assert_eq!(log.read(0, 1).unwrap()[0].body, b"one");
    assert_eq!(log.read(1, 1).unwrap()[0].body, b"");
}

fn one_of_two_appends(store: &dyn LogStore) {
    let lease = take(&mut *store.open().unwrap(), "first");
    for position in 1..=10 {
        let appended = std::thread::scope(|scope| {
            let append = |name: &'static str| {
                scope.spawn(move || store.open().unwrap().append(lease.epoch, position, name.as_bytes()))
            };
            let both = [append("left"), append("right")];
            both.map(|appending| appending.join().unwrap()).iter().filter(|outcome| outcome.is_ok()).count()
        });
        assert_eq!(appended, 1, "at {position}");
    }
    assert_eq!(store.open().unwrap().ends().unwrap().last, 10);
}

fn large_entries_are_kept(store: &dyn LogStore) {
    let mut log = store.open().unwrap();
    let lease = take(&mut *log, "first");
    let body = |position: u64| -> Vec<u8> {
        let length = 1 + position as usize * 900_000;
        (0..length).map(|n| (n as u64 * 31 + position) as u8).collect()
    };
    for position in 1..=4 {
        log.append(lease.epoch, position, &body(position)).unwrap();
    }
    let mut read = Vec::new();
    while read.len() < 4 {
        let page = log.read(read.len() as u64, 100).unwrap();
        assert!(!page.is_empty());
        read.extend(page);
    }
    assert!(read.iter().all(|entry| entry.body == body(entry.position)));
}

fn waiting_ends_with_an_entry(store: &dyn LogStore) {
    let (mut log, mut other) = (store.open().unwrap(), store.open().unwrap());
    let lease = take(&mut *log, "first");
    log.append(lease.epoch, 1, b"one").unwrap();
    other.wait(0, Duration::from_secs(60)).unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(move || {
            while other.ends().unwrap().last < 2 {
                other.wait(1, Duration::from_secs(60)).unwrap();
            }
        });
        log.append(lease.epoch, 2, b"two").unwrap();
        waiting.join().unwrap();
    });
}

fn snapshots_are_read_back(store: &dyn LogStore) {
    let (mut log, mut other) = (store.open().unwrap(), store.open().unwrap());
    let lease = take(&mut *log, "first");
    for position in 1..=3 {
        log.append(lease.epoch, position, b"entry").unwrap();
    }
    let large: Vec<u8> = (0..3_000_001_u32).map(|n| (n % 251) as u8).collect();
    log.put_snapshot(2, &mut &large[..]).unwrap();
    assert_eq!(other.snapshot().unwrap(), Some(2));
    let mut read = Vec::new();
    other.read_snapshot(2, &mut read).unwrap();
    assert!(read == large);
    log.put_snapshot(3, &mut &b"small"[..]).unwrap();
    assert_eq!(other.snapshot().unwrap(), Some(3));
    let mut read = Vec::new();
    other.read_snapshot(3, &mut read).unwrap();
    assert_eq!(read, b"small");
    // A source that breaks leaves the older one.
    struct Broken;
    impl std::io::Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("a broken disk"))
        }
    }
    assert!(log.put_snapshot(3, &mut Broken).is_err());
    let mut read = Vec::new();
    other.read_snapshot(3, &mut read).unwrap();
    assert_eq!(read, b"small");
    assert_eq!(other.ends().unwrap(), LogEnds { first: 1, last: 3 });
}

fn a_log_begins_behind_a_snapshot(store: &dyn LogStore) {
    let mut log = store.open().unwrap();
    log.put_snapshot(40, &mut &b"state"[..]).unwrap();
    assert_eq!(log.ends().unwrap(), LogEnds { first: 41, last: 40 });
    let lease = take(&mut *log, "first");
    assert_eq!(log.append(lease.epoch, 1, b"one"), Err(LogError::NotNext { position: 1, last: 40 }));
    log.append(lease.epoch, 41, b"plug").unwrap();
    assert_eq!(log.read(0, 1), Err(LogError::RemovedHistory { after: 0, first: 41 }));
    assert_eq!(log.read(40, 9).unwrap().len(), 1);
    assert_eq!(log.ends().unwrap(), LogEnds { first: 41, last: 41 });
}

fn a_log_is_trimmed(store: &dyn LogStore) {
    let (mut log, mut other) = (store.open().unwrap(), store.open().unwrap());
    let lease = take(&mut *log, "first");
    for position in 1..=10 {
        log.append(lease.epoch, position, b"entry").unwrap();
    }
    assert!(log.trim(2).is_err(), "nothing is trimmed without a snapshot");
    log.put_snapshot(6, &mut &b"state"[..]).unwrap();
    assert!(log.trim(8).is_err(), "nothing is trimmed before its snapshot");
    log.trim(5).unwrap();
    assert_eq!(other.ends().unwrap(), LogEnds { first: 5, last: 10 });
    assert_eq!(other.read(3, 9), Err(LogError::RemovedHistory { after: 3, first: 5 }));
    assert_eq!(other.read(4, 9).unwrap().len(), 6);
    log.put_snapshot(10, &mut &b"state"[..]).unwrap();
    log.trim(11).unwrap();
    assert_eq!(other.ends().unwrap(), LogEnds { first: 11, last: 10 });
    assert_eq!(other.read(10, 9).unwrap(), []);
    assert_eq!(other.read(9, 9), Err(LogError::RemovedHistory { after: 9, first: 11 }));
    log.append(lease.epoch, 11, b"entry").unwrap();
    assert_eq!(other.ends().unwrap(), LogEnds { first: 11, last: 11 });
}
