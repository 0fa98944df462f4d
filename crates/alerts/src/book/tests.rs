use kelos_model::event::BackfillEvent;
use kelos_model::{Actor, Event, Outcome, RunId, SlotEvent, SlotRef};

use super::*;
use crate::settings::Settings;

fn rules(rules: &str) -> Vec<Rule> {
    let text = format!(r#"{{"alerts": {{"channels": {{"c": {{"command": ["true"]}}}}, "rules": {rules}}}}}"#);
    Settings::parse(&text).unwrap().rules
}

fn at(minute: i64) -> Timestamp {
    Timestamp::from_second(minute * 60).unwrap()
}

/// A look that found these slots late because of one.
fn late_ahead(cause: &str, slots: &[&str]) -> Observation {
    let about =
        |slot: &str| About { workflow: slot.split('@').next().and_then(|id| id.parse().ok()), ..About::default() };
    let members: Vec<_> = slots.iter().map(|slot| ((*slot).to_owned(), about(slot))).collect();
    let trouble = Trouble {
        condition: Condition::WillBeLate,
        cause: cause.to_owned(),
        members,
        concerns: Vec::new(),
        more: 0,
        words: "soon".to_owned(),
    };
    let troubles = if slots.is_empty() { Vec::new() } else { vec![trouble] };
    Observation { troubles, knows: [Condition::WillBeLate].into(), ..Observation::default() }
}

fn told(book: &Book) -> Vec<(Phase, u64, i64)> {
    book.notices().map(|notice| (notice.phase, notice.count, notice.due.as_second() / 60)).collect()
}

#[test]
fn slots_with_one_cause_are_one_alert_until_none_is_left() {
    let mut book = Book::new(rules(r#"[{"to": ["c"], "when": ["will-be-late"]}]"#), 7, at(0));
    book.observe(&late_ahead("load@1", &["report@1", "chart@1"]), at(0));
    book.advance(at(4));
    assert_eq!(told(&book), [], "it has to last");
    book.observe(&late_ahead("load@1", &["report@1", "chart@1", "sums@1"]), at(4));
    book.advance(at(5));
    assert_eq!(told(&book), [(Phase::Opened, 3, 5)]);
    // Others are no news, and a look that does not know everything ends nothing.
    book.observe(&late_ahead("load@1", &["sums@1", "sums@2"]), at(30));
    book.observe(&Observation::default(), at(40));
    book = Book::restore(rules(r#"[{"to": ["c"], "when": ["will-be-late"]}]"#), book.stored()).unwrap();
    assert_eq!(told(&book).len(), 1);
    assert_eq!(book.incidents().next().map(|one| one.members.keys().cloned().collect::<Vec<_>>()), {
        Some(vec!["sums@1".to_owned(), "sums@2".to_owned()])
    });
    book.observe(&late_ahead("load@1", &[]), at(50));
    assert_eq!(told(&book), [(Phase::Opened, 3, 5), (Phase::Over, 2, 50)]);
    assert_eq!(book.incidents().count(), 0);
}

#[test]
fn a_rule_of_a_workflow_hears_of_its_slots_from_when_one_is_among_them() {
    let mut book = Book::new(rules(r#"[{"to": ["c"], "when": ["will-be-late"], "workflow": "chart"}]"#), 7, at(0));
    book.observe(&late_ahead("load@1", &["report@1"]), at(0));
    book.observe(&late_ahead("load@1", &["report@1", "chart@1"]), at(60));
    book.advance(at(64));
    assert_eq!(told(&book), []);
    book.advance(at(65));
    assert_eq!(told(&book), [(Phase::Opened, 2, 65)]);
}

/// A sequence of numbers that look random, the same each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

/// Takes the notices that are due, and says which causes people believe to last.
fn hear(book: &mut Book, now: Timestamp, lasts: &BTreeMap<String, i64>, told: &mut BTreeSet<String>) -> usize {
    let mut opened = 0;
    while let Some(notice) = book.due_for("c", now).cloned() {
        match notice.phase {
            Phase::Opened => {
                assert!(lasts.contains_key(&notice.words) && told.insert(notice.words), "{now}");
                opened += 1;
            }
            Phase::Over => assert!(!lasts.contains_key(&notice.words) && told.remove(&notice.words), "{now}"),
            other => panic!("{other:?}"),
        }
        book.settle(&notice.key);
    }
    opened
}

#[test]
fn of_many_causes_each_is_opened_and_over_once_whenever_the_process_dies() {
    let rules = rules(r#"[{"to": ["c"], "when": ["will-be-late"], "after": "630s"}]"#);
    let (mut book, mut dice) = (Book::new(rules.clone(), 7, at(0)), Dice(1));
    let (mut stored, mut version) = (book.stored(), book.version());
    // Since when each of ten causes lasts without a pause, and those that people believe to last.
    let (mut lasts, mut told): (BTreeMap<String, i64>, BTreeSet<String>) = Default::default();
    let (mut opened, mut deaths, mut since_death) = (0, 0, 0);
    for minute in 1..20_000 {
        let half_before = at(minute) - jiff::SignedDuration::from_secs(30);
        book.advance(half_before);
        opened += hear(&mut book, half_before, &lasts, &mut told);
        let cause = format!("load@{}", dice.below(10));
        if dice.below(8) == 0 && lasts.remove(&cause).is_none() {
            lasts.insert(cause, minute);
        }
        let troubles = lasts.keys().map(|cause| {
            let members = vec![(format!("report of {cause}"), About::default())];
            Trouble {
                condition: Condition::WillBeLate,
                cause: cause.clone(),
                members,
                concerns: Vec::new(),
                more: 0,
                words: cause.clone(),
            }
        });
        let known = Observation { knows: [Condition::WillBeLate].into(), ..Observation::default() };
        book.observe(&Observation { troubles: troubles.collect(), ..known }, at(minute));
        hear(&mut book, at(minute), &lasts, &mut told);
        if book.version() != version {
            (stored, version) = (book.stored(), book.version());
        }
        // A trouble that was not stored is looked for anew after a death, and has to last again.
        let mut overdue = lasts.iter().filter(|(_, since)| minute - **since >= 11 && since_death >= 11);
        assert!(overdue.all(|(cause, _)| told.contains(cause)), "minute {minute}");
        since_death += 1;
        if dice.below(60) == 0 {
            (deaths, since_death) = (deaths + 1, 0);
            book = Book::restore(rules.clone(), stored.clone()).unwrap();
            version = book.version();
        }
    }
    assert!(opened > 300 && deaths > 200, "{opened} {deaths}");
}

#[test]
fn a_stored_alert_is_told_only_once_a_look_has_seen_that_it_lasts() {
    let rules = rules(r#"[{"to": ["c"], "when": ["will-be-late"]}]"#);
    let mut book = Book::new(rules.clone(), 7, at(0));
    book.observe(&late_ahead("load@1", &["report@1"]), at(0));
    let mut book = Book::restore(rules, book.stored()).unwrap();
    book.advance(at(60));
    assert_eq!(told(&book), [], "it may be over");
    book.observe(&late_ahead("load@1", &["report@1"]), at(60));
    book.advance(at(60));
    assert_eq!(told(&book), [(Phase::Opened, 1, 5)]);
}

/// The directory of workflows that are all defined, but for one.
struct Shop;

impl Directory for Shop {
    fn about(&self, workflow: &WorkflowId) -> About {
        About { workflow: Some(workflow.clone()), project: Some("shop".to_owned()), tags: Vec::new() }
    }

    fn is_defined(&self, workflow: &WorkflowId) -> bool {
        workflow.as_str() != "gone"
    }

    fn workflow_of(&self, _: &BackfillId) -> Option<WorkflowId> {
        Some("load".parse().unwrap())
    }

    fn worker_of(&self, _: &RunId) -> Option<String> {
        Some("w1".to_owned())
    }
}

fn event(seq: u64, minute: i64, event: Event) -> EventRecord {
    EventRecord { seq, at: at(minute), previous: 0, event }
}

fn of_slot(seq: u64, minute: i64, workflow: &str, what: SlotEvent) -> EventRecord {
    event(seq, minute, Event::Slot { slot: SlotRef::at(workflow.parse().unwrap(), at(0)), what })
}

fn failed(seq: u64, minute: i64, workflow: &str) -> EventRecord {
    of_slot(seq, minute, workflow, SlotEvent::Failed { run: 1, outcome: Outcome::Killed })
}

fn succeeded(seq: u64, minute: i64, workflow: &str) -> EventRecord {
    of_slot(seq, minute, workflow, SlotEvent::Succeeded { run: 2 })
}

fn backfilled(seq: u64, minute: i64, what: BackfillEvent) -> EventRecord {
    event(seq, minute, Event::Backfill { backfill: "b1".parse().unwrap(), what })
}

/// The phase, the channel and the rule of what waits.
fn waiting(book: &Book) -> Vec<(Phase, &str, &str)> {
    book.notices().map(|one| (one.phase, one.channel.as_str(), one.rule.as_str())).collect()
}

/// Sends all that waits.
fn send(book: &mut Book) {
    let keys: Vec<String> = book.notices().map(|notice| notice.key.clone()).collect();
    keys.iter().for_each(|key| book.settle(key));
}

/// Rules of a file with two channels.
fn rules_of_two(rules: &str) -> Vec<Rule> {
    let channels = r#"{"team": {"command": ["true"]}, "mail": {"command": ["true"]}}"#;
    Settings::parse(&format!(r#"{{"alerts": {{"channels": {channels}, "rules": {rules}}}}}"#)).unwrap().rules
}

#[test]
fn a_clock_that_was_ahead_keeps_nothing_from_being_told() {
    let mut book = Book::new(rules(r#"[{"to": ["c"], "when": ["failed"], "repeat": "1h"}]"#), 0, at(0));
    book.read(&failed(1, 5, "load"), &Shop);
    book.advance(at(5));
    send(&mut book);
    // A year ahead for one look, and a failure by that clock.
    book.advance(at(525_600));
    book.read(&failed(2, 525_601, "sums"), &Shop);
    send(&mut book);
    let mut book = Book::restore(book.rules.clone(), book.stored()).unwrap();
    book.read(&failed(3, 10, "report"), &Shop);
    book.advance(at(10));
    assert!(book.due_for("c", at(10)).is_some());
    assert!(book.notices().any(|notice| notice.words.starts_with("report@")));
    send(&mut book);
    book.advance(at(71));
    assert_eq!(waiting(&book).len(), 3, "what lasts is told again an hour later, not a year");
}

#[test]
fn a_rule_with_other_channels_tells_these_what_nobody_heard_of() {
    let mut book = Book::new(rules_of_two(r#"[{"name": "r", "to": ["team"], "when": ["failed"]}]"#), 0, at(0));
    book.read(&failed(1, 5, "load"), &Shop);
    book.advance(at(5));
    assert_eq!(waiting(&book), [(Phase::Opened, "team", "r")]);
    let changed = rules_of_two(r#"[{"name": "r", "to": ["mail"], "when": ["failed"]}]"#);
    let mut book = Book::restore(changed, book.stored()).unwrap();
    book.take_rules(1, at(60));
    book.advance(at(60));
    assert_eq!(waiting(&book), [(Phase::Opened, "mail", "r")]);
    send(&mut book);
    book.read(&succeeded(2, 70, "load"), &Shop);
    assert_eq!(waiting(&book), [(Phase::Over, "mail", "r")]);
}

#[test]
fn the_end_is_told_to_those_who_heard_of_the_beginning() {
    let before = rules_of_two(r#"[{"to": ["team"], "when": ["failed"]}, {"to": ["mail"], "when": ["paused"]}]"#);
    let mut book = Book::new(before, 0, at(0));
    book.read(&failed(1, 5, "load"), &Shop);
    book.advance(at(5));
    send(&mut book);
    // The two change places, and so their names.
    let after = rules_of_two(r#"[{"to": ["mail"], "when": ["paused"]}, {"to": ["team"], "when": ["late"]}]"#);
    let mut book = Book::restore(after, book.stored()).unwrap();
    book.take_rules(1, at(60));
    book.read(&succeeded(2, 70, "load"), &Shop);
    book.advance(at(70));
    assert_eq!(waiting(&book), [(Phase::Over, "team", "1")]);
}

#[test]
fn a_new_rule_tells_what_lasts_and_nothing_that_is_over() {
    let mut book = Book::new(rules(r#"[{"to": ["c"], "when": ["paused"]}]"#), 0, at(0));
    let stored = book.stored();
    let lost = Outcome::Lost { reason: "the worker is gone".to_owned() };
    let log = [
        failed(1, 5, "load"),
        succeeded(2, 10, "load"),
        of_slot(3, 15, "sums", SlotEvent::RunEnded { run: 1, outcome: lost.clone() }),
        failed(4, 20, "sums"),
        of_slot(5, 10_060, "report", SlotEvent::RunEnded { run: 1, outcome: lost }),
    ];
    log.iter().for_each(|record| book.read(record, &Shop));
    let quiet = r#""quiet": {"from": "00:00", "until": "08:00"}"#;
    let changed = rules(&format!(r#"[{{"to": ["c"], "when": ["failed", "worker"], {quiet}}}]"#));
    let mut book = Book::restore(changed.clone(), stored).unwrap();
    // A week later, at night.
    book.take_rules(5, at(10_100));
    log.iter().for_each(|record| book.read(record, &Shop));
    assert_eq!(waiting(&book), []);
    book.advance(at(10_100));
    assert_eq!(waiting(&book), [], "it is not told at night, though it began by day");
    book.advance(at(10_560));
    let words: Vec<&str> = book.notices().map(|notice| notice.words.as_str()).collect();
    assert_eq!(words.len(), 2, "{words:?}");
    assert!(words.iter().any(|words| words.starts_with("sums@")), "{words:?}");
    assert!(words.iter().any(|words| words.contains("report@")), "{words:?}");
    // The same rules after a death: all that is stored is news.
    let mut book = Book::restore(changed, book.stored()).unwrap();
    book.take_rules(9, at(10_600));
    book.read(&failed(6, 10_590, "chart"), &Shop);
    book.read(&succeeded(7, 10_595, "chart"), &Shop);
    book.advance(at(10_600));
    assert_eq!(waiting(&book).len(), 4, "{:?}", waiting(&book));
}

#[test]
fn a_rule_hears_of_its_workflow_however_many_came_before_it() {
    let only = r#"[{"to": ["c"], "when": ["will-be-late"], "workflow": "billing"}]"#;
    let mut book = Book::new(rules(only), 7, at(0));
    let many: Vec<String> = (0..300).map(|number| format!("report-{number}@1")).collect();
    let slots: Vec<&str> = many.iter().map(String::as_str).chain(["billing@1"]).collect();
    book.observe(&late_ahead("load@1", &slots), at(0));
    let mut book = Book::restore(rules(only), book.stored()).unwrap();
    book.observe(&late_ahead("load@1", &slots), at(5));
    book.advance(at(5));
    let about = book.notices().next().and_then(|notice| notice.about.workflow.clone());
    assert_eq!(about.map(|workflow| workflow.to_string()).as_deref(), Some("billing"));
    assert!(book.incidents().all(|one| one.is_wider));
}

#[test]
fn an_endpoint_that_no_look_names_any_more_is_over_after_an_hour() {
    let rules = rules(r#"[{"to": ["c"], "when": ["endpoint"]}]"#);
    let mut book = Book::new(rules.clone(), 7, at(0));
    let away = Trouble::new(Condition::Endpoint, "hdfs://old".to_owned(), About::default(), "away".to_owned());
    let look = Observation { troubles: vec![away], ..Observation::default() };
    book.observe(&look, at(0));
    book.advance(at(1));
    assert_eq!(book.notices().count(), 1);
    let mut book = Book::restore(rules, book.stored()).unwrap();
    book.observe(&Observation::default(), at(10));
    book.observe(&look, at(30));
    book.observe(&Observation::default(), at(89));
    assert_eq!(book.notices().count(), 1);
    book.observe(&Observation::default(), at(90));
    assert_eq!(book.notices().last().map(|notice| notice.phase), Some(Phase::Over));
}

#[test]
fn the_end_of_a_backfill_that_was_opened_again_is_told_by_a_rule_of_its_project() {
    let mut book = Book::new(rules(r#"[{"to": ["c"], "when": ["backfill"], "project": "shop"}]"#), 0, at(0));
    let id: BackfillId = "b1".parse().unwrap();
    book.read(&backfilled(1, 5, BackfillEvent::Reopened { slots: 2, by: Actor::system("test"), reason: None }), &Shop);
    book.finish(&id, "done".to_owned(), at(10));
    book.advance(at(10));
    assert_eq!(book.notices().count(), 1);
}

#[test]
fn what_ended_in_history_that_is_gone_is_over() {
    let mut book = Book::new(rules(r#"[{"to": ["c"], "when": ["failed"]}]"#), 0, at(0));
    book.read(&failed(1, 5, "load"), &Shop);
    book.read(&failed(2, 6, "sums"), &Shop);
    book.advance(at(6));
    send(&mut book);
    book.end_unless(|_, member| member.starts_with("sums"));
    assert_eq!(waiting(&book), [(Phase::Over, "c", "1")]);
    assert_eq!(book.incidents().map(|one| one.cause.as_str()).collect::<Vec<_>>(), ["sums"]);
}

#[test]
fn a_run_that_fails_once_its_workflow_was_removed_opens_nothing() {
    let mut book = Book::new(rules(r#"[{"to": ["c"], "when": ["failed"]}]"#), 0, at(0));
    book.read(&failed(1, 5, "gone"), &Shop);
    book.advance(at(5));
    assert_eq!((book.notices().count(), book.incidents().count()), (0, 0));
}

#[test]
fn a_book_that_begins_tells_what_lasts_and_nothing_that_is_over() {
    let by_failures = rules(r#"[{"to": ["c"], "when": ["failed"]}]"#);
    // The turns of the start are read after it.
    let mut book = Book::since(by_failures.clone(), 7, 10, at(9 * 60));
    book.read(&failed(8, 8 * 60, "lasts"), &Shop);
    book.read(&failed(9, 8 * 60, "over"), &Shop);
    book.read(&succeeded(10, 8 * 60, "over"), &Shop);
    book.advance(at(9 * 60));
    assert_eq!(told(&book), [(Phase::Opened, 1, 9 * 60)]);
    assert_eq!(book.incidents().map(|one| one.cause.as_str()).collect::<Vec<_>>(), ["lasts"]);
    let restored = Book::restore(by_failures, book.stored()).unwrap();
    assert_eq!(told(&restored), told(&book), "it is not told again");
}

#[test]
fn a_channel_that_accepted_a_notice_is_known_to_work_after_a_restart() {
    let by_failures = rules(r#"[{"to": ["c"], "when": ["failed"]}]"#);
    let mut book = Book::new(by_failures.clone(), 0, at(0));
    assert_eq!(book.accepted_at("c"), None);
    book.accept("c", at(5));
    assert_eq!(Book::restore(by_failures, book.stored()).unwrap().accepted_at("c"), Some(at(5)));
}
