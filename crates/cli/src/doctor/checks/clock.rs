//! Clocks: this machine's against those of the server, of the store and of the newest turn, and the time zone of this machine.

use jiff::{SignedDuration, Timestamp};
use kelos_model::time::text::span;

use crate::doctor::diagnosis::Diagnosis;

const CHECK: &str = "clock";

/// The difference of two clocks that is no matter.
const CLOSE: SignedDuration = SignedDuration::from_secs(2);
/// The difference from which times of people and of slots are wrong.
const FAR: SignedDuration = SignedDuration::from_secs(60);

/// The time of another clock, as it was read.
#[derive(Debug, Clone, Copy)]
pub(in crate::doctor) struct ClockReading {
    /// The time here when it was asked for.
    pub(in crate::doctor) asked: Timestamp,
    /// The time there.
    pub(in crate::doctor) there: Timestamp,
    /// The time here when the answer came.
    pub(in crate::doctor) answered: Timestamp,
}

/// The clocks.
#[derive(Debug, Clone)]
pub(in crate::doctor) struct Clocks {
    pub(in crate::doctor) now: Timestamp,
    pub(in crate::doctor) server: Option<ClockReading>,
    /// The clock of the store of a log, if it tells it.
    pub(in crate::doctor) store: Option<ClockReading>,
    /// The moment of the newest turn in the database.
    pub(in crate::doctor) newest_turn: Option<Timestamp>,
    /// The leap of the clock for which the server removes no history, in words.
    pub(in crate::doctor) leap: Option<String>,
    /// The time zone of this machine, or the reason for which it is not known.
    pub(in crate::doctor) zone: Result<String, String>,
}

impl ClockReading {
    /// By how much the other clock is ahead at least, whenever within its answer it was read; negative if it is behind.
    fn ahead(&self) -> SignedDuration {
        if self.there > self.answered {
            self.there.duration_since(self.answered)
        } else if self.there < self.asked {
            self.there.duration_since(self.asked)
        } else {
            SignedDuration::ZERO
        }
    }
}

/// Judges the clocks.
pub(in crate::doctor) fn judge(clocks: &Clocks) -> Vec<Diagnosis> {
    let mut found = Vec::new();
    let others = [("server", clocks.server), ("store", clocks.store)];
    let read: Vec<(&str, ClockReading)> =
        others.into_iter().filter_map(|(name, reading)| Some((name, reading?))).collect();
    for (name, ahead) in read.iter().map(|(name, reading)| (name, reading.ahead())) {
        if ahead.abs() > CLOSE {
            let side = if ahead.is_negative() { "behind" } else { "ahead of" };
            let words = format!("the {name}'s clock is {} {side} this machine's", seconds(ahead));
            let advice = "set both by NTP; `timedatectl` says on each whether it is synchronised";
            found.push(by_size(ahead, words, advice));
        }
    }
    if let Some(turn) = clocks.newest_turn {
        let future = turn.duration_since(clocks.now);
        if future > CLOSE {
            let words = format!(
                "the newest turn in the database is {} in the future: the clock went back, or was ahead",
                seconds(future)
            );
            let advice =
                "set the clock of this machine by NTP; no slot is due a second time, and new ones wait for their time";
            found.push(by_size(future, words, advice));
        }
    }
    if let Some(leap) = &clocks.leap {
        let words = format!("{leap}: no history is removed until somebody agrees");
        let advice = "set the clock by NTP if it is ahead; if it is right, `kelos storage --agree`";
        found.push(Diagnosis::warning(CHECK, words, advice));
    }
    if let Err(why) = &clocks.zone {
        let advice = "times of day on the command line can't be read until then; those with Z or an offset can";
        found.push(Diagnosis::warning(CHECK, why, advice));
    }
    if !found.is_empty() {
        return found;
    }
    let zone = clocks.zone.as_deref().unwrap_or("UTC");
    let turn = clocks.newest_turn.map(|_| "newest turn");
    let names: Vec<String> = read.iter().map(|(name, _)| *name).chain(turn).map(|name| format!("the {name}")).collect();
    let agrees = match names.split_last() {
        None => "nothing to compare it with".to_owned(),
        Some((last, [])) => format!("this machine and {last} agree"),
        Some((last, first)) => format!("this machine, {} and {last} agree", first.join(", ")),
    };
    vec![Diagnosis::ok(CHECK, format!("{agrees}; the time zone is {zone}"))]
}

/// A difference that is a warning while it is small.
fn by_size(difference: SignedDuration, words: String, advice: &str) -> Diagnosis {
    match difference.abs() > FAR {
        true => Diagnosis::wrong(CHECK, words, advice),
        false => Diagnosis::warning(CHECK, words, advice),
    }
}

fn seconds(length: SignedDuration) -> String {
    span(length.abs().as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).expect("a time")
    }

    fn told(there: Option<i64>, turn: Option<i64>, zone: Result<&str, &str>) -> Vec<String> {
        told_with_store(there, None, turn, zone)
    }

    fn told_with_store(
        server: Option<i64>,
        store: Option<i64>,
        turn: Option<i64>,
        zone: Result<&str, &str>,
    ) -> Vec<String> {
        let read = |there| ClockReading { asked: at(0), there: at(there), answered: at(1) };
        let (server, store) = (server.map(read), store.map(read));
        let zone = zone.map(str::to_owned).map_err(str::to_owned);
        let found = judge(&Clocks { now: at(1), server, store, newest_turn: turn.map(at), leap: None, zone });
        found.iter().map(|one| format!("{:?} {}", one.level, one.found)).collect()
    }

    #[test]
    fn clocks_that_agree_are_one_line() {
        let all = ["this machine, the server and the newest turn agree", "nothing to compare it with"];
        let all = all.map(|words| vec![format!("Ok {words}; the time zone is Europe/Berlin")]);
        assert_eq!(told(Some(0), Some(-500), Ok("Europe/Berlin")), all[0]);
        assert_eq!(told(Some(3), Some(1), Ok("Europe/Berlin")), all[0], "the answer was on its way");
        assert_eq!(told(None, None, Ok("Europe/Berlin")), all[1]);
    }

    #[test]
    fn a_clock_that_is_off_is_named_with_its_side() {
        assert_eq!(told(Some(31), None, Ok("UTC")), ["Warning the server's clock is 30 s ahead of this machine's"]);
        assert_eq!(told(Some(-3600), None, Ok("UTC")), ["Wrong the server's clock is 1 h behind this machine's"]);
    }

    #[test]
    fn the_clock_of_a_store_is_judged_like_that_of_a_server() {
        let both = told_with_store(Some(0), Some(0), Some(0), Ok("UTC"));
        assert_eq!(both, ["Ok this machine, the server, the store and the newest turn agree; the time zone is UTC"]);
        let off = told_with_store(Some(0), Some(100), None, Ok("UTC"));
        assert_eq!(off, ["Wrong the store's clock is 1 min 39 s ahead of this machine's"]);
    }

    #[test]
    fn a_clock_that_leapt_holds_up_history_and_that_is_said() {
        let leap = Some("the clock went from A to B without a turn between".to_owned());
        let clocks =
            Clocks { now: at(1), server: None, store: None, newest_turn: None, leap, zone: Ok("UTC".to_owned()) };
        let told: Vec<String> = judge(&clocks).iter().map(|one| format!("{one:?}")).collect();
        assert!(told.len() == 1 && told[0].contains("no history is removed until somebody agrees"), "{told:?}");
        assert!(told[0].contains("kelos storage --agree"), "{told:?}");
    }

    #[test]
    fn a_clock_that_went_back_is_seen_by_the_newest_turn() {
        let found = told(None, Some(7201), Ok("UTC"));
        assert_eq!(
            found,
            ["Wrong the newest turn in the database is 2 h in the future: the clock went back, or was ahead"]
        );
        assert!(told(None, Some(11), Ok("UTC"))[0].starts_with("Warning the newest turn"));
        assert_eq!(told(None, None, Err("TZ is \"x\"")), ["Warning TZ is \"x\""]);
    }
}
