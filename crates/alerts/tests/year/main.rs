//! A recorded year on a virtual clock: what was due, computed from the log alone by a plain scan, against what a receiving server got
//! while the channel failed at random, and the process that sends died at random and went on from what it had stored.

mod due;
mod receiver;
mod recorded;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use jiff::{SignedDuration, Timestamp};
use kelos_alerts::{Book, Clients, Details, SendError, Settings};
use kelos_model::EventRecord;
use kelos_tls::Trust;
use serde_json::Value;

use due::Due;
use receiver::Receiver;
use recorded::{Dice, Workflows, recorded};

/// The rules of the year, for a receiver at an address.
fn settings(address: &str) -> Settings {
    let text = format!(
        r#"{{"alerts": {{"channels": {{"hook": {{"webhook": "{address}"}}}}, "rules": [
            {{"name": "etl", "when": ["failed"], "workflow": "etl.*", "to": ["hook"], "repeat": "12h"}},
            {{"name": "night", "when": ["failed", "paused", "frozen"], "to": ["hook"], "after": "30m", "repeat": "1d",
              "quiet": {{"from": "22:00", "until": "07:00", "zone": "Europe/Berlin"}}}},
            {{"name": "workers", "when": ["worker", "paused"], "project": "shop", "to": ["hook"]}}
        ]}}}}"#
    );
    Settings::parse(&text).expect("settings")
}

/// The process that sends, which may die at any time: what it has stored is all that is left then.
struct Sender<'a> {
    settings: &'a Settings,
    log: &'a [EventRecord],
    book: Book,
    stored: Value,
    clients: Clients,
    /// How often it can't be known whether a notice was accepted, by its key.
    unsure: BTreeMap<String, usize>,
    deaths: usize,
}

impl Sender<'_> {
    fn die(&mut self) {
        self.deaths += 1;
        self.book = Book::restore(self.settings.rules.clone(), self.stored.clone()).expect("a stored book");
    }

    /// Reads all that had happened by a moment.
    fn read(&mut self, now: Timestamp) {
        let from = usize::try_from(self.book.cursor()).expect("a position");
        self.log[from..]
            .iter()
            .take_while(|record| record.at <= now)
            .for_each(|record| self.book.read(record, &Workflows));
        self.book.advance(now);
    }

    /// Sends what is due, until the channel fails or the process dies.
    async fn send(&mut self, now: Timestamp, dice: &mut Dice) {
        self.stored = self.book.stored();
        while let Some(notice) = self.book.due_for("hook", now).cloned() {
            let channel = &self.settings.channels["hook"];
            match channel.send(&notice, &Details::default(), &self.clients, now).await {
                Ok(()) if dice.one_in(20) => {
                    *self.unsure.entry(notice.key).or_default() += 1;
                    return self.die();
                }
                Ok(()) => {
                    self.book.settle(&notice.key);
                    self.stored = self.book.stored();
                }
                Err(SendError::Refused(why)) => panic!("{why}"),
                Err(SendError::Away(_)) => {
                    *self.unsure.entry(notice.key).or_default() += 1;
                    return;
                }
            }
        }
    }
}

#[tokio::test]
async fn everybody_hears_of_what_was_due_and_of_nothing_else() {
    let seed = std::env::var("KELOS_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let log = recorded(seed, 12_000);
    let receiver = Receiver::start(seed);
    let settings = settings(&receiver.address);
    let book = Book::new(settings.rules.clone(), 0, log[0].at);
    let stored = book.stored();
    let clients = Clients::new(&Trust::default());
    let mut sender =
        Sender { settings: &settings, log: &log, book, stored, clients, unsure: BTreeMap::new(), deaths: 0 };
    let mut dice = Dice::new(seed + 1);
    let mut next = 0;
    while next < log.len() {
        next = (next + 1 + dice.below(8)).min(log.len());
        let now = log[next - 1].at;
        sender.read(now);
        if dice.one_in(10) {
            sender.die();
            continue;
        }
        sender.send(now, &mut dice).await;
    }
    receiver.recover();
    let end = log[log.len() - 1].at + SignedDuration::from_hours(12);
    sender.read(end);
    while sender.book.due_for("hook", end).is_some() {
        sender.send(end, &mut dice).await;
    }
    let due = due::of(&log, &settings.rules, end);
    let phases: BTreeSet<&str> = due.iter().map(|one| one.phase.as_str()).collect();
    assert_eq!(
        phases,
        BTreeSet::from(["again", "opened", "over", "still"]),
        "a year without one of the phases shows little"
    );
    assert!(due.len() > 500 && sender.deaths > 50, "{} were due, it died {} times", due.len(), sender.deaths);
    compare(&due, &receiver.received(), &sender.unsure);
}

/// Compares what was due with what was received.
fn compare(due: &[Due], received: &[Value], unsure: &BTreeMap<String, usize>) {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut keys: BTreeMap<Due, &str> = BTreeMap::new();
    for body in received {
        let key = body["key"].as_str().expect("a key");
        *counts.entry(key).or_default() += 1;
        let one = Due::of(body);
        assert!(due.contains(&one), "nobody was to hear of {one:?}");
        assert_eq!(*keys.entry(one).or_insert(key), key, "the same has two keys");
    }
    assert_eq!(keys.len(), counts.len(), "two have one key");
    for (key, count) in &counts {
        let most = 1 + unsure.get(*key).copied().unwrap_or_default();
        assert!(*count <= most, "{key} came {count} times, at most {most} were to be expected");
    }
    for (place, one) in due.iter().enumerate() {
        let is_superseded = || {
            let later = due[place + 1..].iter().filter(|later| later.is_of_same(one));
            matches!(one.phase.as_str(), "again" | "still") && later.into_iter().any(|later| keys.contains_key(later))
        };
        assert!(keys.contains_key(one) || is_superseded(), "nobody heard of {one:?}");
    }
}

/// The figure of `docs/benchmarks.md`: `cargo test -p kelos-alerts --test year -- --ignored --nocapture figure`.
#[test]
#[ignore = "it prints a figure and asserts nothing"]
fn figure() {
    let log = recorded(7, 300_000);
    let settings = settings("http://127.0.0.1:1/");
    let mut book = Book::new(settings.rules, 0, log[0].at);
    let began = Instant::now();
    for record in &log {
        book.read(record, &Workflows);
        // Its channel accepts all at once.
        let key = book.notices().next().map(|notice| notice.key.clone());
        key.iter().for_each(|key| book.settle(key));
    }
    let took = began.elapsed();
    let rate = log.len() as f64 / took.as_secs_f64();
    let share = 100_000.0 / rate / 3600.0 * 100.0;
    println!("{} events in {took:.2?}: {rate:.0} a second; 100,000 an hour take {share:.3} % of a core", log.len());
}
