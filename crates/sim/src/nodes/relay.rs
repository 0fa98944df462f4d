//! The virtual time of threads that take turns: only one runs at a time, and which one is decided by the moments until which they sleep.
//! So a node can stand still anywhere in real code, and a seed always leads to the same sequence.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;

/// Threads that take turns.
pub(super) struct Relay {
    line: Mutex<Line>,
    woken: Vec<Condvar>,
}

struct Line {
    now: Timestamp,
    /// The threads that sleep, by the moment until which they do. Of two of the same moment the first to lie down is the first to rise.
    sleeping: BTreeMap<(Timestamp, u64), usize>,
    count: u64,
    running: Option<usize>,
    is_over: bool,
}

impl Relay {
    /// A relay of threads that all begin at a moment, the first of them first.
    pub(super) fn new(threads: usize, now: Timestamp) -> Relay {
        let sleeping = (0..threads).map(|thread| ((now, thread as u64), thread)).collect();
        let mut line = Line { now, sleeping, count: threads as u64, running: None, is_over: false };
        line.running = line.next();
        Relay { line: Mutex::new(line), woken: (0..threads).map(|_| Condvar::new()).collect() }
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn now(&self) -> Timestamp {
        self.line().now
    }

    /// Whether it has ended; nobody sleeps from then on.
    pub(super) fn is_over(&self) -> bool {
        self.line().is_over
    }

    /// Waits for the first turn of a thread.
    pub(super) fn join(&self, me: usize) {
        self.wait(self.line(), me);
    }

    /// Has the other threads go on, and returns at a moment.
    pub(super) fn sleep(&self, me: usize, until: Timestamp) {
        let mut line = self.line();
        if line.is_over {
            return;
        }
        line.count += 1;
        let place = (until.max(line.now), line.count);
        line.sleeping.insert(place, me);
        self.pass(&mut line);
        self.wait(line, me);
    }

    /// Ends the turns of a thread.
    pub(super) fn leave(&self) {
        let mut line = self.line();
        if !line.is_over {
            self.pass(&mut line);
        }
    }

    /// Ends all.
    pub(super) fn end(&self) {
        self.line().is_over = true;
        self.woken.iter().for_each(Condvar::notify_all);
    }

    fn pass(&self, line: &mut Line) {
        line.running = line.next();
        if let Some(woken) = line.running.and_then(|next| self.woken.get(next)) {
            woken.notify_all();
        }
    }

    fn wait(&self, line: MutexGuard<'_, Line>, me: usize) {
        let waits = |line: &mut Line| !line.is_over && line.running != Some(me);
        if let Some(woken) = self.woken.get(me) {
            drop(woken.wait_while(line, waits));
        }
    }
}

impl Line {
    fn next(&mut self) -> Option<usize> {
        let ((at, _), thread) = self.sleeping.pop_first()?;
        self.now = at;
        Some(thread)
    }
}
