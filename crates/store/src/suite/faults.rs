//! The faults of a connection to a log: it breaks at each message, and what was acknowledged is in the log all the same.

use std::time::{Duration, Instant};

use super::proxy::{Break, Proxy};
use crate::log::{Holder, LeaseRecord, Log, LogError, LogStore};

/// The entries that are appended beside plugs.
const ENTRIES: usize = 3;
/// Patience with a log whose connection is broken once.
const TRIES: usize = 5;

/// Breaks the connection of an adapter at each message of a short story, in several ways. `target` is the server as `host:port`;
/// `log_at` gives the log with a number at an address of that kind.
///
/// # Panics
/// Where something was acknowledged and is not there, or was said not to be written and is there.
pub fn log_faults(target: &str, log_at: &dyn Fn(usize, &str) -> Box<dyn LogStore>) {
    let proxy = Proxy::to(target);
    let mut number = 0;
    for fate in [Break::Lost, Break::Half, Break::Late] {
        for messages in 0.. {
            number += 1;
            proxy.arm(messages, fate);
            let mut story = Story::begin(&proxy, log_at(number, &proxy.address()), messages % 2 == 0);
            story.tell();
            let was_broken = proxy.disarm();
            proxy.deliver();
            let mut log = again(|| log_at(number, target).open());
            let first = log.ends().unwrap().first;
            let kept: Vec<_> = log.read(first - 1, 99).unwrap().into_iter().map(|entry| entry.body).collect();
            assert_eq!(story.entries[first as usize - 1..], kept, "{fate:?} after {messages} messages");
            if !was_broken {
                println!("faults of a log: {fate:?} at each of {messages} messages");
                break;
            }
        }
    }
    a_silent_server_is_not_waited_for(&proxy, &*log_at(number + 1, &proxy.address()));
}

struct Story<'a> {
    proxy: &'a Proxy,
    log: Box<dyn Log>,
    lease: LeaseRecord,
    takings: u64,
    /// Whether a request that is late arrives before the plug of the next epoch.
    is_late_before_plug: bool,
    /// The bodies of entries that are in the log.
    entries: Vec<Vec<u8>>,
}

impl Story<'_> {
    fn begin(proxy: &Proxy, store: Box<dyn LogStore>, is_late_before_plug: bool) -> Story<'_> {
        let log = again(|| store.open());
        let lease = LeaseRecord::default();
        let mut story = Story { proxy, log, lease, takings: 0, is_late_before_plug, entries: Vec::new() };
        story.take();
        story
    }

    /// Takes the lease, also where it is not known whether it was taken.
    fn take(&mut self) {
        self.takings += 1;
        for _ in 0..TRIES {
            let seen = again(|| self.log.lease());
            if seen.epoch > self.lease.epoch && seen.nonce == self.takings {
                self.lease = seen;
                return;
            }
            match self.log.take(&seen, self.takings, &Holder::default()) {
                Ok(Some(lease)) => {
                    self.lease = lease;
                    return;
                }
                Ok(None) => {}
                Err(error) => assert_fault(&error),
            }
        }
        panic!("the lease was not taken");
    }

    fn tell(&mut self) {
        for number in 0..ENTRIES {
            self.append(format!("entry {number}").into_bytes());
        }
        if !again(|| self.log.renew(&self.lease)).is_some_and(|lease| lease.is_same_taking(&self.lease)) {
            panic!("the lease was lost");
        }
        let last = self.entries.len() as u64;
        let state = vec![7; 100_000];
        again(|| self.log.put_snapshot(last - 1, &mut &state[..]));
        let read = again(|| {
            let mut read = Vec::new();
            self.log.read_snapshot(last - 1, &mut read).map(|()| read)
        });
        assert!(read == state);
        again(|| self.log.trim(2));
        assert_eq!(again(|| self.log.ends()).first, 2);
        again(|| self.log.release(&self.lease));
        assert!(again(|| self.log.lease()).is_free);
    }

    /// Appends an entry, as a leader does: where it is unknown whether it was written, it takes over from itself.
    fn append(&mut self, body: Vec<u8>) {
        let position = self.entries.len() as u64 + 1;
        for _ in 0..TRIES {
            match self.log.append(self.lease.epoch, position, &body) {
                Ok(()) => {
                    self.entries.push(body);
                    return;
                }
                Err(LogError::Unknown { .. }) => return self.take_over(body),
                // Nothing was written, and nothing will be.
                Err(LogError::Medium { .. }) => {}
                Err(other) => panic!("{other}"),
            }
        }
        panic!("nothing was appended");
    }

    fn take_over(&mut self, doubtful: Vec<u8>) {
        self.take();
        if self.is_late_before_plug {
            self.proxy.deliver();
        }
        let plug = format!("plug of epoch {}", self.lease.epoch).into_bytes();
        for _ in 0..TRIES {
            let next = again(|| self.log.ends()).last + 1;
            match self.log.append(self.lease.epoch, next, &plug) {
                Ok(()) => break,
                Err(LogError::NotNext { .. } | LogError::Medium { .. }) => {}
                Err(other) => panic!("{other}"),
            }
        }
        self.proxy.deliver();
        let known = self.entries.len() as u64;
        let tail: Vec<_> = again(|| self.log.read(known, 9)).into_iter().map(|entry| entry.body).collect();
        assert!(tail == [plug.clone()] || tail == [doubtful, plug], "{tail:?}");
        self.entries.extend(tail);
    }
}

/// Tries again what fails as a broken connection makes it fail.
#[track_caller]
fn again<T>(mut doing: impl FnMut() -> Result<T, LogError>) -> T {
    for _ in 0..TRIES {
        match doing() {
            Ok(done) => return done,
            Err(error) => assert_fault(&error),
        }
    }
    panic!("the connection was broken once, and it failed {TRIES} times")
}

#[track_caller]
fn assert_fault(error: &LogError) {
    assert!(matches!(error, LogError::Unknown { .. } | LogError::Medium { .. }), "{error}");
}

fn a_silent_server_is_not_waited_for(proxy: &Proxy, store: &dyn LogStore) {
    println!("faults of a log: silence");
    let mut log = store.open().unwrap();
    let seen = log.lease().unwrap();
    let lease = log.take(&seen, 1, &Holder::default()).unwrap().expect("nothing has changed");
    proxy.arm(0, Break::Silent);
    let began = Instant::now();
    let appended = log.append(lease.epoch, 1, b"one");
    assert!(matches!(appended, Err(LogError::Unknown { .. } | LogError::Medium { .. })), "{appended:?}");
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    let position = again(|| log.ends()).last + 1;
    log.append(lease.epoch, position, b"two").unwrap();
}
