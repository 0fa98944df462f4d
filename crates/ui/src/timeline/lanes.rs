//! Bars in lanes: the place of each run, and the merging of runs that are too thin to be drawn.

use jiff::Timestamp;
use kelos_model::{Run, RunState};

/// The usual width of windows in pixels; runs that are thinner than a few of these are merged.
pub(super) const USUAL_WIDTH: i64 = 1_100;
/// Marks on a page at the most.
const MOST_MARKS: usize = 2_500;
/// Pixels within which thin bars become one block, tried until the page has few enough marks.
const GAPS: [i64; 6] = [2, 6, 20, 60, 200, 600];
/// How many lanes a row has at most; further overlapping runs are on the last one.
const MOST_LANES: usize = 24;

/// A run, or several that are drawn as one.
pub(super) struct Mark<'a> {
    pub(super) from: i64,
    pub(super) until: i64,
    pub(super) lane: usize,
    /// One run, or all that are too thin.
    pub(super) runs: Vec<&'a Run>,
}

/// How bad a state is: a block shows its worst.
fn weight(state: RunState) -> u8 {
    match state {
        RunState::Succeeded => 0,
        RunState::Dispatched => 1,
        RunState::Running => 2,
        RunState::Killed => 3,
        RunState::Unknown => 4,
        RunState::Failed => 5,
    }
}

impl Mark<'_> {
    /// The worst state among its runs.
    pub(super) fn state(&self) -> RunState {
        let states = self.runs.iter().map(|run| run.state);
        states.max_by_key(|state| weight(*state)).unwrap_or(RunState::Succeeded)
    }
}

/// Milliseconds from a run's dispatch to its end, or to now.
fn span(run: &Run, now: Timestamp) -> (i64, i64) {
    let from = run.dispatched_at.as_millisecond();
    let until = run.ended_at.unwrap_or(if run.state.is_final() { run.dispatched_at } else { now });
    (from, until.as_millisecond().max(from))
}

/// The marks of every row: few enough for a page that scrolls smoothly. Runs of `kept` are never merged.
pub(super) fn arrange<'a>(
    rows: &[Vec<&'a Run>],
    width: i64,
    now: Timestamp,
    kept: impl Fn(&Run) -> bool,
) -> Vec<Vec<Mark<'a>>> {
    let mut arranged = Vec::new();
    for pixels in GAPS {
        let gap = (width * pixels / USUAL_WIDTH).max(1);
        arranged = rows.iter().map(|runs| row(runs, gap, now, &kept)).collect();
        if arranged.iter().map(Vec::len).sum::<usize>() <= MOST_MARKS {
            break;
        }
    }
    arranged
}

fn row<'a>(runs: &[&'a Run], gap: i64, now: Timestamp, kept: &impl Fn(&Run) -> bool) -> Vec<Mark<'a>> {
    let mut marks: Vec<Mark<'a>> = Vec::new();
    let mut open: Option<Mark<'a>> = None;
    let mut sorted: Vec<(i64, i64, &Run)> =
        runs.iter().map(|run| (span(run, now), *run)).map(|((a, b), run)| (a, b, run)).collect();
    sorted.sort_by_key(|(from, _, run)| (*from, run.seq));
    for (from, until, run) in sorted {
        let mark = Mark { from, until, lane: 0, runs: vec![run] };
        if until - from > gap || kept(run) {
            marks.push(mark);
            continue;
        }
        match &mut open {
            Some(block) if from - block.until <= gap => {
                block.until = block.until.max(until);
                block.runs.push(run);
            }
            _ => marks.extend(open.replace(mark)),
        }
    }
    marks.extend(open);
    lay(&mut marks, gap);
    marks
}

/// Gives each mark the first lane in which it overlaps none.
fn lay(marks: &mut [Mark<'_>], gap: i64) {
    marks.sort_by_key(|mark| mark.from);
    let mut ends: Vec<i64> = Vec::new();
    for mark in marks {
        let free = ends.iter().position(|end| *end < mark.from);
        mark.lane = free.unwrap_or(ends.len()).min(MOST_LANES - 1);
        if mark.lane == ends.len() {
            ends.push(i64::MIN);
        }
        // Thin ones are drawn a little wider than they are.
        ends[mark.lane] = mark.until.max(mark.from + gap);
    }
}

#[cfg(test)]
mod tests {
    use kelos_model::{RunId, SlotRef, WorkflowId};

    use super::*;

    fn run(seq: u64, from: i64, until: Option<i64>, state: RunState) -> Run {
        let at = |millis| Timestamp::from_millisecond(millis).unwrap();
        Run {
            id: RunId { slot: SlotRef::at(WorkflowId::new("w").unwrap(), at(0)), number: 1 },
            seq,
            previous: 0,
            state,
            executor: "command".to_owned(),
            external_id: None,
            dispatched_at: at(from),
            started_at: None,
            ended_at: until.map(at),
            outcome: None,
            arguments: Default::default(),
            outputs: None,
            batch: None,
        }
    }

    fn told(runs: &[Run], width: i64) -> Vec<String> {
        let now = Timestamp::from_millisecond(1_000_000).unwrap();
        let rows = [runs.iter().collect::<Vec<_>>()];
        let marks = arrange(&rows, width, now, |run| run.seq == 99).remove(0);
        let tell = |mark: &Mark<'_>| {
            format!("{}-{} lane {} x{} {}", mark.from, mark.until, mark.lane, mark.runs.len(), mark.state().as_str())
        };
        marks.iter().map(tell).collect()
    }

    #[test]
    fn what_overlaps_lies_in_lanes_and_what_is_thin_is_merged() {
        use RunState::{Failed, Running, Succeeded};
        let runs = [
            run(1, 0, Some(400_000), Succeeded),
            run(2, 100_000, Some(500_000), Failed),
            run(3, 600_000, None, Running),
            run(4, 700_000, Some(700_100), Succeeded),
            run(5, 700_200, Some(700_300), Failed),
            run(99, 700_250, Some(700_300), Succeeded),
            run(6, 900_000, Some(900_000), Succeeded),
        ];
        let expected = [
            "0-400000 lane 0 x1 succeeded",
            "100000-500000 lane 1 x1 failed",
            "600000-1000000 lane 0 x1 running",
            "700000-700300 lane 1 x2 failed",
            "700250-700300 lane 2 x1 succeeded",
            "900000-900000 lane 1 x1 succeeded",
        ];
        assert_eq!(told(&runs, 1_100_000), expected);
    }

    #[test]
    fn many_runs_become_few_marks() {
        let runs: Vec<Run> =
            (0..20_000).map(|n| run(n as u64, n * 3_000, Some(n * 3_000 + 2_900), RunState::Succeeded)).collect();
        let marks = told(&runs, 60_000_000);
        assert!(marks.len() <= MOST_MARKS, "{}", marks.len());
        let all = told(&[], 1_000);
        assert!(all.is_empty());
    }

    #[test]
    fn a_run_of_a_clock_that_was_put_back_has_no_negative_width() {
        let runs = [run(1, 5_000, Some(1_000), RunState::Failed)];
        assert_eq!(told(&runs, 1_000_000), ["5000-5000 lane 0 x1 failed"]);
    }
}
