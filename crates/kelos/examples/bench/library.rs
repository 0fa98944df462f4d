//! Projects of the library: a year on a virtual clock, ten years of periods, backfills of millions, jobs in sequence.

use std::time::{Duration, Instant};

use jiff::SignedDuration;
use jiff::civil::date;
use kelos::embed::{Calendar, Context, Job, Period, Project, Rehearsal, Retry, Zone, job};
use kelos::requests::{BackfillMode, BackfillRequest, Range};
use kelos::{Config, Trigger};
use kelos_explain::backfill;
use kelos_explain::periods::{self, CalendarQuery, Selection};
use kelos_model::workflow::CatchUp;
use kelos_store::{BackfillFilter, SlotFilter};

use crate::support::{Outcome, load, median, millis, moment, resident_mb};

/// The moment at which rehearsals begin.
const NOW: &str = "2026-01-01T00:00Z";

async fn nothing(_: Context, _: Period, (): ()) -> Result<(), String> {
    Ok(())
}

fn name(n: usize) -> String {
    format!("series-{n:04}")
}

/// A project that plans all that was missed in eleven years, where the default is a week.
fn project() -> Project {
    let planning_window = SignedDuration::from_hours(11 * 366 * 24);
    Project::new("series", "1").config(Config { planning_window, ..Config::default() })
}

/// An hourly time series that began at a moment, with one run at a time.
fn hourly(id: &str, since: &str) -> Job<Period> {
    let series = job(id, nothing).with(()).every(&Calendar::hourly()).since(moment(since));
    series.catch_up(CatchUp::All).at_a_time(1).retry(Retry::never())
}

/// So many of them.
fn series(number: usize, since: &str) -> Project {
    (0..number).map(|n| hourly(&name(n), since)).fold(project(), Project::add)
}

/// So many of them, whose runs wait for those of another one, which waits for a century.
fn waiting_series(number: usize, since: &str) -> Project {
    let never = hourly("never", since).when(Trigger::Delay { seconds: 100 * 366 * 86_400 });
    let after = |n| hourly(&name(n), since).when(Trigger::Success { workflow: "never".parse().expect("a name") });
    (0..number).map(after).fold(project().add(never), Project::add)
}

/// A year of hourly time series, on a virtual clock.
pub(crate) fn year(jobs: usize) -> Outcome {
    let mut slots = 0;
    let mut times = Vec::new();
    for _ in 0..3 {
        let begin = Instant::now();
        let mut rehearsal = Rehearsal::at("2025-01-01T00:00Z", series(jobs, "2025-01-01T00:00:00Z"))?;
        rehearsal.run_until(NOW)?;
        times.push(millis(begin.elapsed()));
        slots = rehearsal.started().len();
    }
    println!("a year of {jobs} hourly series rehearsed: median {:.0} ms, {slots} runs; load {}", median(times), load());
    Ok(())
}

/// Ten years of hourly time series that are all behind: planned, begun, and completions of some hours.
pub(crate) fn decade(jobs: usize) -> Outcome {
    let since = "2016-01-01T00:00:00Z";
    let say = |what: &str, begin: Instant| {
        let (time, memory, load) = (millis(begin.elapsed()), resident_mb(), load());
        println!("{jobs} series of ten years of hours {what}: {time:.0} ms, the process {memory:.0} MB; load {load}");
    };
    let begin = Instant::now();
    let mut waiting = Rehearsal::at(NOW, waiting_series(jobs, since))?;
    waiting.run_until(NOW)?;
    say("planned, while none may start", begin);
    let planned: u64 = waiting.reader().slot_counts(&SlotFilter::default())?.values().sum();
    println!("… {planned} periods wait");
    drop(waiting);
    let begin = Instant::now();
    let mut rehearsal = Rehearsal::at(NOW, series(jobs, since))?;
    for n in 0..jobs {
        rehearsal.takes(&name(n), Duration::from_secs(1800))?;
    }
    rehearsal.run_until(NOW)?;
    let begun = rehearsal.started().len();
    say(&format!("planned, and {begun} runs begun"), begin);
    let begin = Instant::now();
    rehearsal.run_until("2026-01-01T04:59Z")?;
    let ended = rehearsal.started().len() - begun;
    println!(
        "… a completion and the next start: {:.3} ms, of {ended}; load {}",
        millis(begin.elapsed()) / ended as f64,
        load()
    );
    Ok(())
}

/// Finished years of many series backfilled again by their ranges, and shown.
pub(crate) fn backfills(jobs: usize) -> Outcome {
    let mut rehearsal = Rehearsal::at(NOW, series(jobs, "2026-01-01T00:00:00Z"))?;
    for n in 0..jobs {
        rehearsal.takes(&name(n), Duration::from_secs(1800))?;
    }
    let range = Range::new(moment("2016-01-01T00:00:00Z"), moment("2026-01-01T00:00:00Z"));
    let before = resident_mb();
    let begin = Instant::now();
    let mut periods = 0;
    for n in 0..jobs {
        let outcome = rehearsal.ask(BackfillRequest {
            id: format!("again-{n}").parse()?,
            workflow: name(n).parse()?,
            range,
            mode: BackfillMode::Missing,
            priority: -1,
            made_by: None,
            arguments: kelos::Arguments::new(),
            reason: None,
            dry_run: false,
        })?;
        periods += outcome.created.count;
    }
    println!(
        "{periods} periods of {jobs} series backfilled by {jobs} ranges: {:.0} ms, {:.0} MB; load {}",
        millis(begin.elapsed()),
        resident_mb() - before,
        load()
    );
    let reader = rehearsal.reader();
    let begin = Instant::now();
    let mut left = 0;
    let all = reader.backfills(&BackfillFilter::default())?;
    for one in all {
        left += backfill::progress(reader.as_ref(), one, moment(NOW))?.left;
    }
    println!("… their progress: {:.1} ms, {left} periods left; load {}", millis(begin.elapsed()), load());
    let query = CalendarQuery {
        of: Selection::default(),
        zone: Zone::utc(),
        first: date(2025, 12, 1),
        last: date(2025, 12, 31),
    };
    let begin = Instant::now();
    let month = periods::calendar(reader.as_ref(), &query, moment(NOW))?;
    println!(
        "… the calendar of a month: {:.1} ms, {} days; load {}",
        millis(begin.elapsed()),
        month.days.len(),
        load()
    );
    Ok(())
}

/// Jobs on demand, one after the other, with the state in memory.
pub(crate) fn sequence(jobs: usize) -> Outcome {
    tokio::runtime::Runtime::new()?.block_on(async {
        let greet = job("greet", async |_: Context, (): (), ()| Ok::<_, String>(()));
        let running = Project::new("sequence", "1").add(greet.with(()).on_demand()).start().await?;
        let mut times = Vec::new();
        for _ in 0..20 {
            let begin = Instant::now();
            for _ in 0..jobs {
                running.run("greet", &()).await?;
            }
            times.push(millis(begin.elapsed()));
        }
        println!("{jobs} jobs in sequence, state in memory: median {:.1} ms; load {}", median(times), load());
        running.stop().await;
        Ok(())
    })
}
