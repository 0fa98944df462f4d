//! Runs as bars, oldest first: how long each took, how it ended, and how many of those around it succeeded.

use jiff::Timestamp;
use kelos::model::{Run, RunState};
use maud::{Markup, html};

use super::words;

/// Height of the drawing, in its own units; its width is one unit for each run, times this.
const HEIGHT: f64 = 100.0;
const STEP: f64 = 10.0;
/// Bars that are no longer than this would not be seen.
const LEAST: f64 = 2.0;
/// Runs over which the share of successes is taken.
const AROUND: usize = 10;

/// A bar: a run that has ended.
struct Bar {
    number: u32,
    slot: Timestamp,
    seconds: f64,
    state: RunState,
    took: String,
}

/// The runs that have ended, which come newest first, as a plot with its words; nothing where there are too few.
pub(super) fn durations(runs: &[Run]) -> Option<Markup> {
    let bars: Vec<Bar> = runs.iter().rev().filter_map(bar).collect();
    let longest = bars.iter().map(|bar| bar.seconds).fold(0.0, f64::max);
    if bars.len() < 2 {
        return None;
    }
    let good = bars.iter().filter(|bar| bar.state == RunState::Succeeded).count();
    let told = format!(
        "{} of the latest {} runs succeeded; the longest took {}, the median {}",
        good,
        bars.len(),
        words::span(longest.round() as i64),
        words::span(median(&bars).round() as i64),
    );
    let width = bars.len() as f64 * STEP;
    Some(html! {
        figure.plot {
            svg role="img" aria-label=(told) viewBox=(format!("0 0 {width} {HEIGHT}")) preserveAspectRatio="none" {
                @for (n, bar) in bars.iter().enumerate() {
                    (drawn(n, bar, longest))
                }
                polyline.share points=(share(&bars)) vector-effect="non-scaling-stroke" {}
            }
            figcaption { (told) ". The line is the share of successes among " (AROUND) " runs." }
        }
    })
}

fn bar(run: &Run) -> Option<Bar> {
    let (begin, end) = (run.started_at?, run.ended_at?);
    let millis = end.as_millisecond() - begin.as_millisecond();
    Some(Bar {
        number: run.id.number,
        slot: run.id.slot.key.scheduled_at(),
        seconds: (millis.max(0) as f64) / 1000.0,
        state: run.state,
        took: words::took(begin, end),
    })
}

fn drawn(n: usize, bar: &Bar, longest: f64) -> Markup {
    let height = if longest > 0.0 { (bar.seconds / longest * HEIGHT).max(LEAST) } else { LEAST };
    let x = n as f64 * STEP + 1.0;
    html! {
        rect class=(format!("run-{}", bar.state.as_str())) x=(rounded(x)) y=(rounded(HEIGHT - height))
            width=(STEP - 2.0) height=(rounded(height)) {
            title { (words::moment(bar.slot)) " run " (bar.number) ": " (bar.state.as_str()) " after " (bar.took) }
        }
    }
}

/// The share of successes among the last runs up to each, as points of a line.
fn share(bars: &[Bar]) -> String {
    let at = |n: usize| {
        let last = &bars[(n + 1).saturating_sub(AROUND)..=n];
        let good = last.iter().filter(|bar| bar.state == RunState::Succeeded).count();
        let share = good as f64 / last.len() as f64;
        let (x, y) = (n as f64 * STEP + STEP / 2.0, 1.0 + (HEIGHT - 2.0) * (1.0 - share));
        format!("{},{}", rounded(x), rounded(y))
    };
    (0..bars.len()).map(at).collect::<Vec<_>>().join(" ")
}

fn median(bars: &[Bar]) -> f64 {
    let mut seconds: Vec<f64> = bars.iter().map(|bar| bar.seconds).collect();
    seconds.sort_by(f64::total_cmp);
    seconds.get(seconds.len() / 2).copied().unwrap_or(0.0)
}

fn rounded(number: f64) -> f64 {
    (number * 10.0).round() / 10.0
}
