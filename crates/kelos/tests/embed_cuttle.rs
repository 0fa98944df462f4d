//! What the tests of Cuttle assert of its time series, in the words of Kelos.

use jiff::{SignedDuration, Timestamp};
use kelos::embed::{Calendar, Context, Job, Period, Places, Project, Rehearsal, Retry, job};
use kelos::requests::{BackfillMode, BackfillRequest, Pause, Range, Rerun, Resume};
use kelos::{CatchUp, SlotState};
use kelos_model::ranges::RangeSet;

const HOUR: SignedDuration = SignedDuration::from_hours(1);

async fn nothing(_: Context, _: Period, (): ()) -> Result<(), String> {
    Ok(())
}

fn moment(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// The full hour of a day.
fn hour(hour: i64) -> Timestamp {
    moment("2026-05-04T00:00:00Z") + HOUR * i32::try_from(hour).unwrap()
}

fn key(at: i64) -> String {
    hour(at).to_string()
}

/// The range from one full hour to another.
fn hours(start: i64, end: i64) -> Range {
    Range::new(hour(start), hour(end))
}

/// An hourly job from a full hour on, without attempts after the first.
#[track_caller]
fn hourly(id: &str, since: i64) -> Job<Period> {
    let job = job(id, nothing).with(()).every(&Calendar::hourly()).since(hour(since));
    job.catch_up(CatchUp::All).retry(Retry::never())
}

fn rehearsal(at: i64, jobs: impl IntoIterator<Item = Job<Period>>) -> Rehearsal {
    let project = jobs.into_iter().fold(Project::new("series", "1"), Project::add);
    let mut rehearsal = Rehearsal::at(&key(at), project).unwrap();
    pass(&mut rehearsal, at);
    rehearsal
}

/// Lets time pass until a full hour is over by a second: a period is planned right after its end.
fn pass(rehearsal: &mut Rehearsal, at: i64) {
    rehearsal.run_until(&(hour(at) + SignedDuration::from_secs(1)).to_string()).unwrap();
}

/// The hours of a job's periods that are in a state.
fn periods(rehearsal: &Rehearsal, job: &str, state: SlotState) -> Vec<i64> {
    let slots = rehearsal.slots(job).unwrap().into_iter().filter(|(_, found)| *found == state);
    slots.map(|(key, _)| (key.time().unwrap().duration_since(hour(0))).as_hours()).collect()
}

fn mistakes(jobs: impl IntoIterator<Item = Job<Period>>) -> Vec<String> {
    let project = jobs.into_iter().fold(Project::new("series", "1"), Project::add);
    project.check().err().into_iter().flat_map(|mistakes| mistakes.0).map(|one| one.message).collect()
}

#[test]
fn ranges_that_touch_or_overlap_become_one() {
    let mut done = RangeSet::default();
    [hours(1, 2), hours(4, 6), hours(2, 3), hours(5, 7)].into_iter().for_each(|range| done.insert(range));
    assert_eq!(done.ranges(), [hours(1, 3), hours(4, 7)]);
    done.insert(hours(3, 4));
    assert_eq!(done.ranges(), [hours(1, 7)]);
    let mut parts = RangeSet::default();
    [hours(1, 2), hours(2, 3)].into_iter().for_each(|range| parts.insert(range));
    assert_eq!(parts.gaps(hours(0, 3)), [hours(0, 1)]);
}

#[test]
fn periods_of_some_hours_divide_a_day() {
    let allowed: Vec<u8> = (0..=25).filter(|hours| Calendar::hours(*hours).is_ok()).collect();
    assert_eq!(allowed, [1, 2, 3, 4, 6, 8, 12]);
    let words = Calendar::hours(5).unwrap_err().to_string();
    assert_eq!(words, "5 hours don't divide a day: expected 1, 2, 3, 4, 6, 8 or 12, or days, weeks or months");
}

#[test]
fn a_day_has_periods_of_one_length_without_gaps() {
    for length in [1, 2, 3, 4, 6, 8, 12] {
        let calendar = Calendar::hours(length).unwrap();
        let series = job("parts", nothing).with(()).every(&calendar).since(hour(0)).catch_up(CatchUp::All);
        let day = rehearsal(24, [series]);
        let expected: Vec<i64> = (0..24).step_by(usize::from(length)).collect();
        assert_eq!(periods(&day, "parts", SlotState::Succeeded), expected, "{length}");
        let ends: Vec<_> = expected.iter().map(|start| calendar.period_of(hour(*start)).map(|one| one.end)).collect();
        let starts: Vec<_> = expected.iter().skip(1).map(|start| Some(hour(*start))).chain([Some(hour(24))]).collect();
        assert_eq!(ends, starts, "{length}");
    }
}

#[test]
fn what_is_open_since_two_is_at_five_three_periods() {
    let series = rehearsal(5, [hourly("count", 2)]);
    assert_eq!(periods(&series, "count", SlotState::Succeeded), [2, 3, 4]);
    assert_eq!(series.slots("count").unwrap().len(), 3);
}

#[test]
fn a_child_with_an_offset_waits_for_all_hours_that_it_looks_at() {
    let child = hourly("child", 2).covers_from("parent", -HOUR, SignedDuration::ZERO);
    let project = Project::new("series", "1").add(hourly("parent", 1)).add(child);
    let mut series = Rehearsal::at(&key(1), project).unwrap();
    series.fail("parent", &key(4), 1).unwrap();
    pass(&mut series, 5);
    // It looks at the hour before as well: that of 4 is missing for 4 and 5.
    assert_eq!(periods(&series, "parent", SlotState::Succeeded), [1, 2, 3]);
    assert_eq!(periods(&series, "child", SlotState::Succeeded), [2, 3]);
    assert_eq!(periods(&series, "child", SlotState::Waiting), [4]);
    let why = series.why("child", &key(4)).unwrap();
    assert!(why.contains("1 of 2 periods of parent: 2026-05-04T04:00Z (failed)"), "{why}");
    let slot = format!("parent@{}", key(4)).parse().unwrap();
    series.ask(Rerun::of(slot)).unwrap();
    pass(&mut series, 6);
    assert_eq!(periods(&series, "child", SlotState::Succeeded), [2, 3, 4, 5]);
}

#[test]
fn a_period_that_is_done_is_not_done_again() {
    let mut series = rehearsal(5, [hourly("count", 2)]);
    let begun = series.started().len();
    series.ask(backfill("count", hours(0, 5), BackfillMode::Missing)).unwrap();
    pass(&mut series, 5);
    assert_eq!(periods(&series, "count", SlotState::Succeeded), [0, 1, 2, 3, 4]);
    assert_eq!(series.started().len(), begun + 2);
    for at in 2..5 {
        assert_eq!(series.attempts("count", &key(at)).unwrap(), 1);
    }
}

fn backfill(job: &str, range: Range, mode: BackfillMode) -> BackfillRequest {
    let (id, workflow) = ("again".parse().unwrap(), job.parse().unwrap());
    BackfillRequest {
        id,
        workflow,
        range,
        mode,
        priority: -1,
        reason: None,
        made_by: None,
        arguments: kelos::Arguments::new(),
        dry_run: false,
    }
}

#[test]
fn a_backfill_of_one_period_does_that_one_again() {
    let mut series = rehearsal(5, [hourly("count", 2)]);
    let outcome = series.ask(backfill("count", hours(3, 4), BackfillMode::All)).unwrap();
    assert_eq!((outcome.created.count, outcome.reopened.count), (0, 1));
    pass(&mut series, 5);
    let attempts: Vec<u32> = (2..5).map(|at| series.attempts("count", &key(at)).unwrap()).collect();
    assert_eq!(attempts, [1, 2, 1]);
    assert_eq!(periods(&series, "count", SlotState::Succeeded), [2, 3, 4]);
}

#[test]
fn a_backfill_over_what_is_partly_done_is_one_with_what_is_missing() {
    let mut series = rehearsal(5, [hourly("count", 2)]);
    series.fail("count", &key(6), 1).unwrap();
    pass(&mut series, 8);
    let plan = BackfillRequest { dry_run: true, ..backfill("count", hours(0, 8), BackfillMode::Unsuccessful) };
    let outcome = series.ask(plan).unwrap();
    assert_eq!((outcome.created.count, outcome.reopened.count, outcome.untouched), (2, 1, 5));
}

#[test]
fn projects_of_any_shape_are_right() {
    let nine = (0..9).map(|n| hourly(&format!("child-{n}"), 0).covers("root"));
    let shapes: [Vec<Job<Period>>; 5] = [
        vec![],
        vec![hourly("alone", 0)],
        vec![hourly("a", 0), hourly("b", 0).covers("a"), hourly("c", 0).covers("b")],
        std::iter::once(hourly("root", 0)).chain(nine).collect(),
        vec![hourly("early", -5), hourly("late", 0).covers("early")],
    ];
    for jobs in shapes {
        assert_eq!(mistakes(jobs), [""; 0]);
    }
}

#[test]
fn circles_and_ids_that_are_taken_are_said_all_at_once() {
    let jobs = [
        hourly("a", 0).covers("c"),
        hourly("b", 0).covers("a"),
        hourly("c", 0).covers("b"),
        hourly("d", 0).covers("a"),
        hourly("d", 0),
    ];
    let words = mistakes(jobs);
    assert_eq!(words.len(), 2, "{words:?}");
    assert_eq!(words[0], "job \"a\": it waits for itself: a -> c -> b -> a");
    assert!(
        words[1].starts_with("job \"d\": its id is taken by the job of crates/kelos/tests/embed_cuttle.rs:"),
        "{words:?}"
    );
}

#[test]
fn a_child_that_begins_before_its_parent_waits_for_the_periods_that_there_are() {
    let child = hourly("child", 0).covers("parent");
    let series = rehearsal(4, [hourly("parent", 2), child]);
    assert_eq!(periods(&series, "parent", SlotState::Succeeded), [2, 3]);
    assert_eq!(periods(&series, "child", SlotState::Succeeded), [0, 1, 2, 3]);
}

#[test]
fn while_a_job_is_paused_nothing_of_it_runs_and_then_nothing_is_left() {
    let place = Places::new("warehouse", 1);
    let root = job("root", nothing).with(()).every(&Calendar::hourly()).since(hour(0)).until(hour(1)).on(&place);
    let child = job("child", nothing).with(()).every(&Calendar::hourly()).since(hour(0)).until(hour(1)).on(&place);
    let child = child.covers("root").retry(Retry::fixed(std::time::Duration::from_secs(600)));
    let mut series = rehearsal(0, [root, child]);
    series.fail("child", &key(0), 1).unwrap();
    pass(&mut series, 1);
    assert_eq!(series.state("root", &key(0)).unwrap(), Some(SlotState::Succeeded));
    assert_eq!(series.state("child", &key(0)).unwrap(), Some(SlotState::Backoff));
    series.ask(Pause { workflow: "child".parse().unwrap(), reason: None }).unwrap();
    pass(&mut series, 5);
    assert_eq!(series.started().len(), 2, "nothing runs");
    series.ask(Resume { workflow: "child".parse().unwrap(), reason: None }).unwrap();
    pass(&mut series, 24);
    assert_eq!(series.state("child", &key(0)).unwrap(), Some(SlotState::Succeeded));
    assert_eq!(series.started().len(), 3);
    let left =
        ["root", "child"].map(|job| series.slots(job).unwrap().into_iter().filter(|(_, one)| !one.is_final()).count());
    assert_eq!(left, [0, 0]);
}
