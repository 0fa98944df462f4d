//! Every state of a slot against every event, as one table; and what holds for all histories.
//! `KELOS_BLESS=1` writes the table that comes out now.

#![allow(clippy::disallowed_methods, reason = "the tests read files; the model does not")]

use std::collections::BTreeMap;
use std::fmt::Write as _;

use jiff::Timestamp;
use kelos_model::slot::apply;
use kelos_model::{Actor, Hold, Outcome, Slot, SlotEvent, SlotState};
use proptest::prelude::*;

use crate::support::{events, expect};

fn name(event: &SlotEvent) -> String {
    let json = serde_json::to_value(event).unwrap();
    json["event"].as_str().unwrap().to_owned()
}

/// A slot in a state, with a run alive where there must be one.
fn slot(state: SlotState) -> Slot {
    Slot {
        retries: 1,
        last_run: 1,
        last_run_seq: 1,
        run_alive: matches!(state, SlotState::Dispatched | SlotState::Running),
        external_id: Some("x".to_owned()),
        last_event: 1,
        ..Slot::new(state, Timestamp::UNIX_EPOCH)
    }
}

#[test]
fn every_state_meets_every_event() {
    let mut table = format!("{:<18}", "");
    for state in SlotState::ALL {
        write!(table, "{:<11}", state.as_str()).unwrap();
    }
    table.truncate(table.trim_end().len());
    for event in events(1) {
        let mut row = format!("\n{:<18}", name(&event));
        for state in SlotState::ALL {
            let after = state.after(&event).map_or("-", SlotState::as_str);
            write!(row, "{after:<11}").unwrap();
        }
        table += row.trim_end();
    }
    expect("matrix.txt", &(table + "\n"));
}

#[test]
fn applying_agrees_with_the_table() {
    for state in SlotState::ALL {
        for event in events(1) {
            let ends = matches!(event, SlotEvent::RunEnded { .. } | SlotEvent::Released { .. });
            // Only what has not run yet can be imported.
            let ran = u32::from(!matches!(event, SlotEvent::Imported { .. }));
            let mut before = Slot { run_alive: ends || slot(state).run_alive, last_run: ran, ..slot(state) };
            // Only what is held can be returned.
            before.held.extend(matches!(event, SlotEvent::Released { .. }).then(holding));
            let event = if let SlotEvent::Dispatched { .. } = event {
                SlotEvent::Dispatched { run: 2, worker: None, batch: None }
            } else {
                event
            };
            let after = apply(Some(before), &event, Timestamp::UNIX_EPOCH, 2).map(|slot| slot.state);
            assert_eq!(after, state.after(&event), "{state} {}", name(&event));
        }
    }
}

fn holding() -> Hold {
    Hold { request: 1, permits: BTreeMap::new(), since: Timestamp::UNIX_EPOCH }
}

#[test]
fn what_a_run_holds_ends_with_it_and_is_held_once() {
    let running = Slot { held: vec![holding()], ..slot(SlotState::Running) };
    let after = |event: &SlotEvent| apply(Some(running.clone()), event, Timestamp::UNIX_EPOCH, 2);
    let acquired = |request| SlotEvent::Acquired { run: 1, request, permits: BTreeMap::new() };
    assert_eq!(after(&acquired(1)), None, "it has it");
    assert_eq!(after(&acquired(2)).unwrap().held.len(), 2);
    assert_eq!(after(&SlotEvent::Released { run: 1, request: 2 }), None, "it does not hold it");
    assert_eq!(after(&SlotEvent::Released { run: 1, request: 1 }).unwrap().held, []);
    assert_eq!(after(&SlotEvent::Succeeded { run: 1 }).unwrap().held, []);
    let killed = after(&SlotEvent::Killed { by: Actor::person("ann"), reason: None }).unwrap();
    assert_eq!(killed.held, [holding()], "its run has not ended");
    let outcome = Outcome::Killed;
    let ended = apply(Some(killed), &SlotEvent::RunEnded { run: 1, outcome }, Timestamp::UNIX_EPOCH, 3).unwrap();
    assert_eq!(ended.held, []);
}

#[test]
fn what_is_not_there_can_only_be_planned_or_imported() {
    for event in events(1) {
        let born = apply(None, &event, Timestamp::UNIX_EPOCH, 1);
        assert_eq!(
            born.is_some(),
            matches!(event, SlotEvent::Planned { .. } | SlotEvent::Imported { .. } | SlotEvent::StepOpened { .. }),
            "{}",
            name(&event)
        );
    }
}

#[test]
fn an_imported_slot_is_whole_or_not_at_all() {
    let imported = |state, external_id: Option<&str>| {
        let external_id = external_id.map(str::to_owned);
        let event = SlotEvent::Imported {
            from: "celos".to_owned(),
            state,
            retries: 3,
            external_id,
            requested: false,
            there: String::new(),
        };
        apply(None, &event, Timestamp::UNIX_EPOCH, 7)
    };
    let running = imported(SlotState::Running, Some("x")).unwrap();
    assert!(running.run_alive && running.is_live());
    assert_eq!((running.last_run, running.last_run_seq, running.retries), (1, 7, 3));
    let killed = imported(SlotState::Killed, None).unwrap();
    assert!(!killed.is_live());
    assert_eq!((killed.last_run, killed.last_run_seq), (0, 0));
    assert_eq!(imported(SlotState::Running, None), None, "nobody could be asked about its run");
    assert_eq!(imported(SlotState::Waiting, Some("x")), None, "what waits has no run");
    for state in [SlotState::Held, SlotState::Queued, SlotState::Dispatched, SlotState::Backoff] {
        assert_eq!(imported(state, None), None, "{state}");
    }
}

#[test]
fn what_is_done_again_is_counted_until_the_slot_is_opened_again() {
    let apply_all = |slot: Slot, events: Vec<SlotEvent>| {
        let at = Timestamp::UNIX_EPOCH;
        events.iter().zip(2..).fold(slot, |slot, (event, seq)| apply(Some(slot), event, at, seq).unwrap())
    };
    let backed_off = |again| {
        let (outcome, due) = (Outcome::Unknown { reason: "?".to_owned() }, Timestamp::UNIX_EPOCH);
        SlotEvent::BackedOff { run: 1, outcome, due, again }
    };
    let begun = Slot { retries: 0, ..slot(SlotState::Running) };
    let again = apply_all(begun.clone(), vec![backed_off(1)]);
    assert_eq!((again.retries, again.again), (1, 1));
    let failed = apply_all(Slot { state: SlotState::Running, run_alive: true, ..again.clone() }, vec![backed_off(0)]);
    assert_eq!((failed.retries, failed.again), (2, 1), "a failed attempt is none that is done again");
    for reset in [
        SlotEvent::Killed { by: Actor::person("ann"), reason: None },
        SlotEvent::Reopened { by: Actor::person("ann"), reason: None, priority: 0, backfill: None },
    ] {
        let before = if matches!(reset, SlotEvent::Killed { .. }) { SlotState::Backoff } else { SlotState::Failed };
        let after = apply_all(Slot { state: before, ..again.clone() }, vec![reset]);
        assert_eq!((after.retries, after.again), (0, 0));
    }
    let json = serde_json::to_value(&begun).unwrap();
    assert!(json.get("again").is_none(), "what was stored before stays as it was: {json}");
}

#[test]
fn nothing_is_marked_as_succeeded_while_its_run_is_alive() {
    let mark = SlotEvent::MarkedSucceeded { by: Actor::person("ann"), reason: None };
    let marked = |slot| apply(Some(slot), &mark, Timestamp::UNIX_EPOCH, 2);
    let killed = slot(SlotState::Killed);
    assert_eq!(marked(Slot { run_alive: true, ..killed.clone() }), None);
    assert_eq!(marked(killed).map(|slot| (slot.state, slot.retries)), Some((SlotState::Succeeded, 1)));
}

#[test]
fn the_run_of_a_skipped_slot_still_comes_to_its_end() {
    let skip = SlotEvent::SkippedBy { by: Actor::person("ann"), reason: None };
    let skipped = apply(Some(slot(SlotState::Running)), &skip, Timestamp::UNIX_EPOCH, 2).unwrap();
    assert!(skipped.state == SlotState::Skipped && skipped.is_live());
    let end = SlotEvent::RunEnded { run: 1, outcome: kelos_model::Outcome::Killed };
    let ended = apply(Some(skipped), &end, Timestamp::UNIX_EPOCH, 3).unwrap();
    assert!(ended.state == SlotState::Skipped && !ended.is_live());
}

#[test]
fn states_are_read_back_from_their_names() {
    for state in SlotState::ALL {
        assert_eq!(SlotState::parse(state.as_str()), Some(state));
        assert_eq!(serde_json::to_value(state).unwrap(), state.as_str());
    }
    assert_eq!(SlotState::parse("Waiting"), None);
}

fn history() -> impl Strategy<Value = Vec<(usize, u32)>> {
    prop::collection::vec((0_usize..19, 1_u32..5), 1..120)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) })]

    #[test]
    fn final_states_are_left_only_by_reopening(history in history()) {
        walk(&history, |before, event, after| {
            let left = before.state.is_final() && after.state != before.state;
            let opened = matches!(event, SlotEvent::Reopened { .. }) && after.state == SlotState::Waiting;
            let marked = matches!(event, SlotEvent::MarkedSucceeded { .. }) && after.state == SlotState::Succeeded;
            !left || opened || marked
        })?;
    }

    #[test]
    fn no_run_is_dispatched_while_one_is_alive(history in history()) {
        walk(&history, |before, event, after| {
            let dispatched = matches!(event, SlotEvent::Dispatched { .. });
            let busy = matches!(after.state, SlotState::Dispatched | SlotState::Running);
            (!dispatched || !before.run_alive && after.run_alive) && (!busy || after.run_alive)
        })?;
    }

    #[test]
    fn numbers_of_runs_count_up_and_never_reset(history in history()) {
        walk(&history, |before, event, after| {
            let dispatched = u32::from(matches!(event, SlotEvent::Dispatched { .. } | SlotEvent::Imported { .. }));
            after.last_run == before.last_run + dispatched
        })?;
    }

    #[test]
    fn what_ended_cannot_end_again(history in history()) {
        walk(&history, |before, event, after| {
            let ended = matches!(
                event,
                SlotEvent::Succeeded { .. }
                    | SlotEvent::Withdrawn { .. }
                    | SlotEvent::Failed { .. }
                    | SlotEvent::BackedOff { .. }
                    | SlotEvent::RunEnded { .. }
            );
            !ended || before.run_alive && !after.run_alive
        })?;
    }

    #[test]
    fn a_retry_is_due_only_in_back_off(history in history()) {
        walk(&history, |_, _, after| after.due.is_some() == (after.state == SlotState::Backoff))?;
    }
}

/// Applies a history, of which what can't happen is left out, and holds each step against a rule.
fn walk(history: &[(usize, u32)], rule: impl Fn(&Slot, &SlotEvent, &Slot) -> bool) -> Result<(), TestCaseError> {
    let mut now = None;
    for (seq, (kind, run)) in (1..).zip(history) {
        let event = events(*run).remove(*kind);
        let Some(after) = apply(now.clone(), &event, Timestamp::UNIX_EPOCH, seq) else { continue };
        if let Some(before) = &now {
            prop_assert!(rule(before, &event, &after), "{before:?}\n{event:?}\n{after:?}");
        }
        now = Some(after);
    }
    Ok(())
}
