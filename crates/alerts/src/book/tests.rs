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
            Trouble { condition: Condition::WillBeLate, cause: cause.clone(), members, more: 0, words: cause.clone() }
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
