//! A backfill that is followed until it has ended: a live line on a terminal, a line now and then in a file. It ends with its slots,
//! with Ctrl-C, which leaves the backfill as it is, or where the server stays away.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use jiff::Timestamp;
use kelos_model::time::text::span;
use kelos_wire::{BackfillCausesDto, CauseDto, ProgressDto};

use crate::address::{Query, escape};
use crate::client::{Client, Reply};
use crate::connection::Connection;
use crate::failure::{Failure, UNREACHABLE};
use crate::options::Door;
use crate::text::{self as words, count, grouped, operand, quoted};
use crate::{render, terminal};

/// The least time between two requests for the progress.
const LOOK_EVERY: Duration = Duration::from_millis(300);
/// Answers are waited for no longer than this share of the time: a request may take this many times as long as it took before
/// it is made again.
const SHARE: u32 = 10;
/// The time between two lines in a file.
const LINE_EVERY: Duration = Duration::from_secs(30);
/// The time between two attempts to reach a server that does not answer.
const RETRY_EVERY: Duration = Duration::from_secs(1);
/// How long a server may stay away.
const PATIENCE: Duration = Duration::from_secs(600);
/// The exit code of a program that was interrupted, as shells have it.
const INTERRUPTED: i32 = 130;
/// Causes of failures that are printed.
const CAUSES: usize = 5;
/// Slots that are named of each.
const NAMED: usize = 3;

/// The address of a backfill in the API.
pub(crate) fn path(name: &str) -> String {
    format!("/backfills/{}", escape(name))
}

/// Waits until no slot of a backfill is live, and gives its progress then.
pub(crate) fn follow(connection: &mut Connection, door: &Door, name: &str) -> Result<Reply<ProgressDto>, Failure> {
    let doing = format!("follow the backfill {name}");
    let line = Line::new(door);
    say_at_interrupt(&line, name)?;
    let mut last_line = Instant::now();
    loop {
        let asked = Instant::now();
        let far = ask(connection, &doing, name, &line)?;
        line.show(&far);
        if far.ended >= far.total || far.backfill.cancelled_at.is_some() {
            line.bar.finish_and_clear();
            return Ok(far);
        }
        if line.is_due(last_line.elapsed()) {
            words::note(in_words(&far, Timestamp::now()));
            last_line = Instant::now();
        }
        std::thread::sleep(LOOK_EVERY.max(asked.elapsed() * SHARE));
    }
}

/// Asks for the progress. A server that is gone is waited for, and said to be.
fn ask(connection: &mut Connection, doing: &str, name: &str, line: &Line) -> Result<Reply<ProgressDto>, Failure> {
    let since = Instant::now();
    let mut is_said = false;
    loop {
        match connection.get(doing, &path(name), &Query::new()) {
            Err(failure) if failure.code == UNREACHABLE && since.elapsed() < PATIENCE => {
                if !is_said {
                    line.say(&format!("failed to {failure}; trying again for {} min", PATIENCE.as_secs() / 60));
                }
                is_said = true;
                std::thread::sleep(RETRY_EVERY);
                connection.renew();
            }
            Err(failure) if failure.code == UNREACHABLE => {
                return Err(failure.hint(format!(
                    "the backfill goes on with its server; `kelos backfills show --follow {}` follows it then",
                    operand(name)
                )));
            }
            Ok(_) if is_said => {
                line.say("the server answers again");
                is_said = false;
            }
            answer => return answer,
        }
    }
}

/// The place for progress: a live line on a terminal, lines now and then in a file, nothing beside JSON.
struct Line {
    bar: ProgressBar,
    is_quiet: bool,
    is_live: bool,
}

impl Line {
    fn new(door: &Door) -> Line {
        let (is_quiet, is_live) = (door.form.json, std::io::stderr().is_terminal());
        let bar = if is_quiet || !is_live { ProgressBar::hidden() } else { ProgressBar::new(0) };
        bar.set_style(style());
        Line { bar, is_quiet, is_live }
    }

    fn show(&self, far: &ProgressDto) {
        self.bar.set_length(far.total);
        self.bar.set_position(far.ended);
        self.bar.set_message(terminal::shown_line(&in_words(far, Timestamp::now())));
    }

    /// Whether a file gets another line, so long after the one before.
    fn is_due(&self, after: Duration) -> bool {
        !self.is_quiet && !self.is_live && after >= LINE_EVERY
    }

    /// Says something of the server, which is no part of the answer.
    fn say(&self, text: &str) {
        self.bar.suspend(|| words::note(text));
    }
}

fn style() -> ProgressStyle {
    let style = ProgressStyle::with_template("{bar:24} {wide_msg}");
    let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
    if render::unicode() { style.progress_chars("━╸─") } else { style.progress_chars("=>-") }
}

/// `412 done, 3 failed, 4 running, 581 left, done in about 6 min`
fn in_words(far: &ProgressDto, now: Timestamp) -> String {
    let sum = |states: &[&str]| states.iter().filter_map(|state| far.counts.get(*state)).sum::<u64>();
    let (failed, running) = (sum(&["failed", "expired", "killed"]), sum(&["running", "dispatched"]));
    let done = sum(&["succeeded", "skipped"]);
    let left = sum(&["waiting", "held", "queued", "backoff"]);
    let numbers = [(done, "done"), (failed, "failed"), (running, "running"), (left, "left")];
    let numbers = numbers.map(|(number, name)| format!("{} {name}", grouped(number)));
    let end = match far.estimate.done_at {
        Some(at) => format!("done in about {}", span(at.0.as_second().saturating_sub(now.as_second()).max(1))),
        None => far.estimate.text.clone(),
    };
    format!("{}, {end}", numbers.join(", "))
}

/// Makes Ctrl-C say what becomes of the backfill, which does not end with this command.
fn say_at_interrupt(line: &Line, name: &str) -> Result<(), Failure> {
    let fail = |error: std::io::Error| Failure::bad(format!("listen to signals: {error}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(fail)?;
    let (bar, name) = (line.bar.clone(), name.to_owned());
    let mut interrupt = {
        let _runtime = runtime.enter();
        tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt()).map_err(fail)?
    };
    std::thread::spawn(move || {
        runtime.block_on(interrupt.recv());
        bar.finish_and_clear();
        words::note(farewell(&name));
        std::process::exit(INTERRUPTED);
    });
    Ok(())
}

fn farewell(name: &str) -> String {
    let name = operand(name);
    format!(
        "the backfill goes on: `kelos backfills show --follow {name}` follows it, `kelos backfills cancel {name}` cancels it"
    )
}

/// The causes for which slots of a backfill failed.
pub(crate) fn causes(client: &Client, name: &str) -> Result<Reply<BackfillCausesDto>, Failure> {
    client.get(&format!("list the failures of the backfill {name}"), &format!("{}/causes", path(name)), &Query::new())
}

/// Prints causes of failures, the most frequent first, with the command that prints the output of one slot of each.
pub(crate) fn print_causes(found: &BackfillCausesDto, workflow: &str) {
    for cause in found.items.iter().take(CAUSES) {
        of_cause(cause, workflow).iter().for_each(words::line);
    }
    let more = found.items.len().saturating_sub(CAUSES);
    if more > 0 {
        words::line(format!("  and {}; --json prints all", count(more, "other cause")));
    }
    if found.failures > found.read {
        let (read, all) = (grouped(found.read), grouped(found.failures));
        words::line(format!("  these are the latest {read} of {all} failures"));
    }
}

fn of_cause(cause: &CauseDto, workflow: &str) -> Vec<String> {
    let state = cause.state.as_str();
    let head = render::paint(&format!("{} {state}", grouped(cause.slots.len() as u64)), state);
    let mut lines = vec![format!("  {head}: {}", cause.reason)];
    if let Some(last) = &cause.last_line {
        lines.push(format!("    | {last}"));
    }
    let keys: Vec<String> = cause.slots.iter().take(NAMED).map(|slot| slot.slot.key.to_string()).collect();
    let more = cause.slots.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let first =
        cause.slots.first().map(|slot| (slot.slot.key.to_string(), if slot.last_run > 0 { "logs" } else { "why" }));
    let (key, verb) = first.unwrap_or_default();
    lines.push(format!("    {}{more}: kelos {verb} {} {}", keys.join(", "), operand(workflow), quoted(&key)));
    lines
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn far(value: serde_json::Value) -> ProgressDto {
        let mut whole = json!({
            "id": "b", "workflow": "w", "from": "2016-01-01T00:00:00.000Z", "to": "2016-01-02T00:00:00.000Z", "mode": "missing",
            "priority": -1, "by": "ann", "createdAt": "2016-01-01T00:00:00.000Z", "slots": 9, "counts": {}, "total": 9, "ended": 1,
            "share": 0.1, "failures": 0, "estimate": { "text": "no estimate yet: it is paused by ann" }
        });
        for (name, value) in value.as_object().expect("an object") {
            whole[name] = value.clone();
        }
        serde_json::from_value(whole).expect("a progress")
    }

    #[test]
    fn a_line_says_what_is_done_and_when_the_rest_will_be() {
        let now: Timestamp = "2016-01-01T12:00:00Z".parse().expect("a time");
        let counts = json!({ "succeeded": 1412, "failed": 2, "expired": 1, "running": 3, "dispatched": 1, "queued": 80, "waiting": 500 });
        let goes = far(json!({ "counts": counts, "estimate": { "doneAt": "2016-01-01T12:06:00.000Z", "text": "" } }));
        assert_eq!(in_words(&goes, now), "1,412 done, 3 failed, 4 running, 580 left, done in about 6 min");
        let held = far(json!({ "counts": { "waiting": 9 } }));
        assert_eq!(in_words(&held, now), "0 done, 0 failed, 0 running, 9 left, no estimate yet: it is paused by ann");
    }

    #[test]
    fn a_file_gets_a_line_now_and_then_and_nothing_beside_json() {
        let line = |is_quiet, is_live| Line { bar: ProgressBar::hidden(), is_quiet, is_live };
        let due = |line: Line| [29, 30, 300].map(|seconds| line.is_due(Duration::from_secs(seconds)));
        assert_eq!(due(line(false, false)), [false, true, true]);
        assert_eq!(due(line(true, false)), [false, false, false]);
        assert_eq!(due(line(false, true)), [false, false, false]);
    }
}
