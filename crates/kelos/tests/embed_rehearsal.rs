//! Projects on a virtual clock.

use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use kelos::embed::{
    AtTime, Calendar, Context, InPeriod, Period, Places, Project, Rate, Rehearsal, Retry, ScheduledTime, Zone, job,
};
use kelos::{CatchUp, Config, SlotState, Trigger};
use kelos_core::{Kill, Rerun};
use kelos_model::SlotRef;
use kelos_store::SlotFilter;
use tokio::sync::Notify;

async fn import(context: Context, hour: ScheduledTime, (): ()) -> Result<String, String> {
    context.log(format!("importing {}", hour.time));
    Ok(hour.time.to_string())
}

async fn report(_: Context, day: ScheduledTime, (): ()) -> Result<(), String> {
    if day.time.to_string().starts_with("2026-03-30") { Err("no figures".to_owned()) } else { Ok(()) }
}

fn project() -> Project {
    let warehouse = Places::new("warehouse", 1);
    let import = job("import", import).with(()).cron("0 * * * *").on(&warehouse);
    let report =
        job("report", report).with(()).cron("0 6 * * *").retry(Retry::fixed(Duration::from_secs(3600)).times(2));
    let report = report.on(&warehouse).when(Trigger::Success { workflow: "import".parse().unwrap() });
    Project::new("shop", "1.0").add(import).add(report)
}

fn rehearsal() -> Rehearsal {
    Rehearsal::at("2026-03-28T00:00Z", project()).unwrap()
}

#[test]
fn days_pass_in_no_time() {
    let mut rehearsal = rehearsal();
    rehearsal.run_until("2026-03-30T05:59Z").unwrap();
    let states: Vec<SlotState> = rehearsal.slots("import").unwrap().into_iter().map(|(_, state)| state).collect();
    assert_eq!((states.len(), states.iter().all(|state| *state == SlotState::Succeeded)), (54, true));
    assert_eq!(rehearsal.slots("report").unwrap().len(), 2);
    assert_eq!(rehearsal.output::<String>("import", "2026-03-29T01:00Z").unwrap(), "2026-03-29T01:00:00Z");
    assert_eq!(rehearsal.lines("import", "2026-03-29T01:00Z").unwrap(), ["importing 2026-03-29T01:00:00Z"]);
}

#[test]
fn failures_are_tried_again_in_virtual_time() {
    let mut rehearsal = rehearsal();
    rehearsal.fail("import", "2026-03-28T06:00Z", 2).unwrap();
    rehearsal.run_until("2026-03-28T06:07Z").unwrap();
    assert_eq!(rehearsal.state("import", "2026-03-28T06:00Z").unwrap(), Some(SlotState::Backoff));
    let why = rehearsal.why("report", "2026-03-28T06:00Z").unwrap();
    assert!(why.contains("import"), "{why}");
    // After 5 minutes, and 10 more.
    rehearsal.run_until("2026-03-28T06:16Z").unwrap();
    assert_eq!(rehearsal.attempts("import", "2026-03-28T06:00Z").unwrap(), 3);
    assert_eq!(rehearsal.state("report", "2026-03-28T06:00Z").unwrap(), Some(SlotState::Succeeded));
}

#[test]
fn a_slot_that_fails_for_good_says_why() {
    let mut rehearsal = rehearsal();
    rehearsal.run_until("2026-03-30T08:01Z").unwrap();
    assert_eq!(rehearsal.attempts("report", "2026-03-30T06:00Z").unwrap(), 3);
    let why = rehearsal.why("report", "2026-03-30T06:00Z").unwrap();
    assert!(why.contains("failed") && why.contains("no figures"), "{why}");
}

#[test]
fn the_oldest_slot_gets_the_place_first() {
    let mut rehearsal = rehearsal();
    rehearsal.takes("import", Duration::from_secs(90 * 60)).unwrap();
    rehearsal.run_until("2026-03-28T09:00Z").unwrap();
    let order: Vec<String> =
        rehearsal.started().iter().map(|(at, run)| format!("{} {run}", at.strftime("%H:%M"))).collect();
    assert_eq!(
        order[..4],
        [
            "00:00 import@2026-03-28T00:00:00.000Z#1",
            "01:30 import@2026-03-28T01:00:00.000Z#1",
            "03:00 import@2026-03-28T02:00:00.000Z#1",
            "04:30 import@2026-03-28T03:00:00.000Z#1",
        ]
    );
}

#[test]
fn a_function_that_never_ends_does_not_hang_the_test() {
    let stuck = job("stuck", async |_: Context, (): (), ()| std::future::pending::<Result<(), String>>().await);
    let stuck = stuck.with(()).timeout(Duration::from_millis(10)).retry(Retry::never()).on_demand();
    let mut rehearsal = Rehearsal::at("2026-03-28T00:00Z", Project::new("shop", "1.0").add(stuck)).unwrap();
    let slot = rehearsal.start("stuck", &()).unwrap();
    let state = rehearsal.state("stuck", &slot.key.to_string()).unwrap();
    assert_eq!(state, Some(SlotState::Failed));
}

#[test]
fn mistakes_in_tests_are_said() {
    let mut rehearsal = rehearsal();
    let words = rehearsal.run_until("tomorrow").unwrap_err().to_string();
    assert!(words.starts_with("read the moment \"tomorrow\": "), "{words}");
    assert!(rehearsal.start("nothing", &()).is_err());
}

async fn visits(_: Context, day: Period, (): ()) -> Result<(String, i64), String> {
    Ok((day.date().to_string(), day.hours()))
}

#[test]
fn days_have_as_many_hours_as_they_have() {
    let paris = Calendar::daily(Zone::parse("Europe/Paris").unwrap());
    let project = || Project::new("web", "1.0").add(job("visits", visits).with(()).every(&paris));
    let mut spring = Rehearsal::at("2026-03-28T12:00Z", project()).unwrap();
    spring.run_until("2026-03-29T21:59Z").unwrap();
    let why = spring.why("visits", "2026-03-28T23:00Z").unwrap();
    assert!(why.contains("2026-03-29T22:00"), "{why}");
    spring.run_until("2026-03-30T12:00Z").unwrap();
    let day = spring.output::<(String, i64)>("visits", "2026-03-28T23:00Z").unwrap();
    assert_eq!(day, ("2026-03-29".to_owned(), 23));

    let mut autumn = Rehearsal::at("2026-10-25T00:00Z", project()).unwrap();
    autumn.run_until("2026-10-26T12:00Z").unwrap();
    assert_eq!(autumn.output::<(String, i64)>("visits", "2026-10-24T22:00Z").unwrap().1, 25);
}

async fn clicks(_: Context, _: Period, (): ()) -> Result<(), String> {
    Ok(())
}

/// Hours of clicks from a moment on, each of which takes two hours to import, and days of visits that cover them.
fn covering(since: &str) -> Project {
    let paris = Calendar::daily(Zone::parse("Europe/Paris").unwrap());
    let clicks = job("clicks", clicks).with(()).every(&Calendar::hourly()).since(since.parse().unwrap());
    let visits = job("visits", visits).with(()).every(&paris).covers(&clicks);
    Project::new("web", "1.0").add(clicks.retry(Retry::never())).add(visits)
}

#[test]
fn a_day_waits_for_the_hours_that_it_has() {
    let mut spring = Rehearsal::at("2026-03-28T22:00Z", covering("2026-03-28T23:00:00Z")).unwrap();
    spring.takes("clicks", Duration::from_secs(2 * 3600)).unwrap();
    spring.run_until("2026-03-29T22:30Z").unwrap();
    assert_eq!(spring.state("visits", "2026-03-28T23:00Z").unwrap(), Some(SlotState::Waiting));
    let words = spring.why("visits", "2026-03-28T23:00Z").unwrap();
    let two = "2 of 23 periods of clicks: 2026-03-29T20:00Z (running), 2026-03-29T21:00Z (running)";
    assert!(words.contains(two), "{words}");
    spring.run_until("2026-03-29T23:30Z").unwrap();
    let words = spring.why("visits", "2026-03-28T23:00Z").unwrap();
    assert!(words.contains("1 of 23 periods of clicks: 2026-03-29T21:00Z (running)"), "{words}");
    spring.run_until("2026-03-30T00:01Z").unwrap();
    assert_eq!(spring.state("visits", "2026-03-28T23:00Z").unwrap(), Some(SlotState::Succeeded));

    let mut autumn = Rehearsal::at("2026-10-24T21:00Z", covering("2026-10-24T22:00:00Z")).unwrap();
    autumn.takes("clicks", Duration::from_secs(2 * 3600)).unwrap();
    autumn.run_until("2026-10-25T23:30Z").unwrap();
    let words = autumn.why("visits", "2026-10-24T22:00Z").unwrap();
    assert!(words.contains("2 of 25 periods of clicks: 2026-10-25T21:00Z (running)"), "{words}");
}

#[test]
fn an_hour_that_failed_is_named_first() {
    let mut spring = Rehearsal::at("2026-03-28T22:00Z", covering("2026-03-28T23:00:00Z")).unwrap();
    spring.fail("clicks", "2026-03-29T03:00Z", 1).unwrap();
    spring.run_until("2026-03-29T23:00Z").unwrap();
    let words = spring.why("visits", "2026-03-28T23:00Z").unwrap();
    assert!(words.contains("1 of 23 periods of clicks: 2026-03-29T03:00Z (failed)"), "{words}");
}

#[test]
fn offsets_widen_what_is_covered_and_of_itself_the_past_counts() {
    let days = Calendar::daily(Zone::utc());
    let since = "2026-05-04T00:00:00Z".parse().unwrap();
    let hour = SignedDuration::from_hours(1);
    let clicks = job("clicks", clicks).with(()).every(&Calendar::hourly()).since(since).retry(Retry::never());
    let visits = job("visits", visits).with(()).every(&days).since(since).retry(Retry::never());
    let visits = visits.covers_from(&clicks, -hour, SignedDuration::ZERO).covers_from(
        "visits",
        hour * -24,
        SignedDuration::ZERO,
    );
    let score = job("score", visits_of_an_hour).with(()).every(&Calendar::hourly()).since(since).covers("visits");
    let project = Project::new("web", "1.0").add(clicks).add(visits).add(score);
    let mut rehearsal = Rehearsal::at("2026-05-04T00:00Z", project).unwrap();
    rehearsal.fail("clicks", "2026-05-04T23:00Z", 1).unwrap();
    rehearsal.run_until("2026-05-07T01:00Z").unwrap();
    // The hour belongs to the 4th, and to the 5th by the offset; the 6th waits for the 5th.
    let states =
        |days: &Rehearsal| days.slots("visits").unwrap().into_iter().map(|(_, state)| state).collect::<Vec<_>>();
    assert_eq!(states(&rehearsal), [SlotState::Waiting; 3]);
    let words = rehearsal.why("visits", "2026-05-05T00:00Z").unwrap();
    assert!(words.contains("1 of 25 periods of clicks: 2026-05-04T23:00Z (failed)"), "{words}");
    assert!(words.contains("1 of 1 periods of visits: 2026-05-04T00:00Z (waiting)"), "{words}");
    let words = rehearsal.why("score", "2026-05-05T03:00Z").unwrap();
    assert!(words.contains("1 of 1 periods of visits: 2026-05-05T00:00Z (waiting)"), "{words}");
    let slot = "clicks@2026-05-04T23:00Z".parse().unwrap();
    rehearsal.ask(Rerun::of(slot)).unwrap();
    rehearsal.run_until("2026-05-07T01:01Z").unwrap();
    assert_eq!(states(&rehearsal), [SlotState::Succeeded; 3]);
    assert_eq!(rehearsal.state("score", "2026-05-05T03:00Z").unwrap(), Some(SlotState::Succeeded));
}

async fn visits_of_an_hour(_: Context, _: Period, (): ()) -> Result<(), String> {
    Ok(())
}

#[test]
fn what_can_not_be_covered_is_a_mistake() {
    let days = || Calendar::daily(Zone::utc());
    let project = Project::new("web", "1.0")
        .add(job("visits", visits).with(()).every(&days()).covers("clcks"))
        .add(job("itself", visits).with(()).every(&days()).covers("itself"))
        .add(job("calls", visits).with(()).every(&days()).covers("call"))
        .add(job("call", call).with(()).on_demand());
    let words: Vec<String> = project.check().unwrap_err().0.into_iter().map(|one| one.message).collect();
    assert_eq!(
        words,
        [
            "job \"visits\": it waits for periods of \"clcks\", which is not in the project",
            "job \"itself\": it waits for itself: itself -> itself",
            "job \"calls\": it waits for periods of \"call\", which has no schedule",
        ]
    );
}

#[test]
fn periods_lie_between_start_and_end() {
    let days = Calendar::daily(Zone::utc());
    let bounded = job("visits", visits).with(()).every(&days).catch_up(CatchUp::All);
    let bounded = bounded.since("2026-03-03T00:00:00Z".parse().unwrap()).until("2026-03-05T00:00:00Z".parse().unwrap());
    let mut rehearsal = Rehearsal::at("2026-03-06T12:00Z", Project::new("web", "1.0").add(bounded)).unwrap();
    rehearsal.run_until("2026-03-07T12:00Z").unwrap();
    let slots: Vec<String> = rehearsal.slots("visits").unwrap().into_iter().map(|(key, _)| key.short()).collect();
    assert_eq!(slots, ["2026-03-03T00:00Z", "2026-03-04T00:00Z"]);
}

#[test]
fn the_zone_of_a_cron_expression_may_be_given_before_it() {
    let project = Project::new("web", "1.0").add(job("import", import).with(()).zone("Europe/Paris").cron("0 6 * * *"));
    let mut rehearsal = Rehearsal::at("2026-07-01T00:00Z", project).unwrap();
    rehearsal.run_until("2026-07-02T00:00Z").unwrap();
    assert_eq!(rehearsal.state("import", "2026-07-01T04:00Z").unwrap(), Some(SlotState::Succeeded));
}

async fn call(_: Context, customer: String, (): ()) -> Result<(), String> {
    drop(customer);
    Ok(())
}

#[test]
fn a_rate_lets_calls_go_at_its_pace_and_says_when_the_next_goes() {
    let crm = Rate::new("crm-api", 6, Duration::from_secs(60)).burst(2);
    let project = Project::new("crm", "1.0").add(job("call", call).with(()).on(&crm).on_demand());
    let mut rehearsal = Rehearsal::at("2026-03-28T12:00Z", project).unwrap();
    let slots: Vec<_> = (0..4).map(|n| rehearsal.start("call", &n.to_string()).unwrap()).collect();
    rehearsal.run_until("2026-03-28T12:00:05Z").unwrap();
    let third = slots[2].key.to_string();
    let why = rehearsal.why("call", &third).unwrap();
    assert!(why.contains("waits for crm-api: next token at 2026-03-28T12:00:10Z"), "{why}");
    rehearsal.run_until("2026-03-28T12:01Z").unwrap();
    let starts: Vec<_> = rehearsal.started().iter().map(|(at, _)| at.to_string()).collect();
    assert_eq!(starts[2..], ["2026-03-28T12:00:10Z", "2026-03-28T12:00:20Z"], "{starts:?}");
}

#[test]
fn rates_that_never_let_anything_start_are_mistakes() {
    let mistakes = |rate: Rate| {
        let job = job("call", call).with(()).on((&rate, 3)).on_demand();
        Project::new("crm", "1.0").add(job).check().unwrap_err().to_string()
    };
    let minute = Duration::from_secs(60);
    assert!(mistakes(Rate::new("crm", 0, minute).burst(3)).contains("whose rate is zero: expected at least one token"));
    assert!(mistakes(Rate::new("crm", 9, Duration::ZERO).burst(3)).contains("expected a time from a millisecond"));
    assert!(mistakes(Rate::new("crm", 9, minute)).contains("of which at most 1 add up: expected a larger burst"));
    assert!(
        mistakes(Rate::new("crm", 9, minute).burst(3).concurrent(2))
            .contains("takes 3 permits of \"crm\", which has 2")
    );
}

async fn approved(context: Context, _: ScheduledTime, approval: Arc<Notify>) -> Result<(), String> {
    context.log("asked");
    context.park("the approval", approval.notified()).await;
    context.log("approved");
    Ok(())
}

#[test]
fn a_parked_function_waits_while_time_passes() {
    let approval = Arc::new(Notify::new());
    let ask = job("ask", approved).with(approval.clone()).cron("0 6 * * *");
    let mut rehearsal = Rehearsal::at("2026-03-28T00:00Z", Project::new("shop", "1").add(ask)).unwrap();
    rehearsal.run_until("2026-03-28T10:00Z").unwrap();
    let state = |rehearsal: &Rehearsal| rehearsal.state("ask", "2026-03-28T06:00Z").unwrap();
    assert_eq!(state(&rehearsal), Some(SlotState::Running));
    assert_eq!(rehearsal.lines("ask", "2026-03-28T06:00Z").unwrap(), ["asked"]);
    let why = rehearsal.why("ask", "2026-03-28T06:00Z").unwrap();
    assert!(why.ends_with("; waits for the approval"), "{why}");
    approval.notify_one();
    rehearsal.run_until("2026-03-28T11:00Z").unwrap();
    assert_eq!(state(&rehearsal), Some(SlotState::Succeeded));
    assert_eq!(rehearsal.lines("ask", "2026-03-28T06:00Z").unwrap(), ["asked", "approved"]);
}

#[test]
fn a_parked_function_times_out_in_virtual_time_or_is_killed() {
    let ask = job("ask", approved).with(Arc::default()).cron("0 6,7 * * *").at_a_time(2).retry(Retry::never());
    let ask = ask.timeout(Duration::from_secs(2 * 3600));
    let mut rehearsal = Rehearsal::at("2026-03-28T00:00Z", Project::new("shop", "1").add(ask)).unwrap();
    rehearsal.run_until("2026-03-28T07:30Z").unwrap();
    let seven = SlotRef::at("ask".parse().unwrap(), "2026-03-28T07:00Z".parse().unwrap());
    rehearsal.ask(Kill { slot: seven, reason: None }).unwrap();
    assert_eq!(rehearsal.state("ask", "2026-03-28T07:00Z").unwrap(), Some(SlotState::Killed));
    assert_eq!(rehearsal.state("ask", "2026-03-28T06:00Z").unwrap(), Some(SlotState::Running));
    rehearsal.run_until("2026-03-28T08:30Z").unwrap();
    assert_eq!(rehearsal.state("ask", "2026-03-28T06:00Z").unwrap(), Some(SlotState::Failed));
    let why = rehearsal.why("ask", "2026-03-28T06:00Z").unwrap();
    assert!(why.contains("timed out after 7200 s"), "{why}");
}

#[test]
fn a_test_says_how_runs_end_before_anything_happens() {
    let clicks = job("clicks", clicks).with(()).every(&Calendar::hourly()).catch_up(CatchUp::All);
    let clicks = clicks.since("2026-03-28T00:00:00Z".parse().unwrap()).retry(Retry::never());
    let mut rehearsal = Rehearsal::at("2026-03-28T06:00Z", Project::new("web", "1").add(clicks)).unwrap();
    assert_eq!((rehearsal.started().len(), rehearsal.slots("clicks").unwrap().len()), (0, 0));
    rehearsal.fail("clicks", "2026-03-28T00:00Z", 1).unwrap();
    rehearsal.run_until("2026-03-28T06:00Z").unwrap();
    assert_eq!(rehearsal.state("clicks", "2026-03-28T00:00Z").unwrap(), Some(SlotState::Failed));
    assert_eq!(rehearsal.state("clicks", "2026-03-28T01:00Z").unwrap(), Some(SlotState::Succeeded));
}

#[test]
fn ten_years_of_hours_that_are_behind_are_a_range_and_few_slots() {
    let clicks = job("clicks", clicks).with(()).every(&Calendar::hourly()).catch_up(CatchUp::All).at_a_time(1);
    let clicks = clicks.since("2016-01-01T00:00:00Z".parse().unwrap());
    let config = Config { planning_window: SignedDuration::from_hours(11 * 366 * 24), ..Config::default() };
    let project = Project::new("web", "1").config(config).add(clicks);
    let mut rehearsal = Rehearsal::at("2026-01-01T00:00Z", project).unwrap();
    rehearsal.takes("clicks", Duration::from_secs(60)).unwrap();
    rehearsal.run_until("2026-01-01T00:00Z").unwrap();
    let counts = rehearsal.reader().slot_counts(&SlotFilter::default()).unwrap();
    // The last hour is over a millisecond later.
    assert_eq!(counts.values().sum::<u64>(), 10 * 365 * 24 + 3 * 24 - 1);
    assert_eq!(counts[&SlotState::Queued] + counts[&SlotState::Running], 33);
    assert!(rehearsal.reader().last_seq().unwrap() < 100);
}

async fn load(context: Context, hours: Period, (): ()) -> Result<usize, String> {
    context.log(format!("loading {hours}"));
    Ok(hours.periods().count())
}

/// Hours in batches of six that wait for each other, and the days that they make.
fn in_batches(retry: Retry) -> Rehearsal {
    let hours = job("load", load).with(()).every(&Calendar::hourly()).retry(retry);
    let first = "2026-05-01T00:00Z".parse().unwrap();
    let hours = hours.since(first).in_batches(6, Duration::from_secs(6 * 3600));
    let days = job("days", days).with(()).every(&Calendar::daily(Zone::utc())).since(first).covers(&hours);
    Rehearsal::at("2026-05-01T00:00Z", Project::new("web", "1.0").add(hours).add(days)).unwrap()
}

async fn days(_: Context, day: Period, (): ()) -> Result<String, String> {
    Ok(day.to_string())
}

#[test]
fn a_day_of_hours_takes_four_runs_of_six() {
    let mut rehearsal = in_batches(Retry::never());
    rehearsal.run_until("2026-05-01T03:30Z").unwrap();
    let why = rehearsal.why("load", "2026-05-01T01:00Z").unwrap();
    assert!(why.contains("waits for its batch: 3 of 6, until 2026-05-01T07:00:00.001Z"), "{why}");
    rehearsal.run_until("2026-05-02T00:30Z").unwrap();
    let started: Vec<String> =
        rehearsal.started().iter().map(|(at, run)| format!("{} {run}", at.strftime("%H:%M"))).collect();
    assert_eq!(
        started,
        [
            "06:00 load@2026-05-01T00:00:00.000Z#1",
            "12:00 load@2026-05-01T06:00:00.000Z#1",
            "18:00 load@2026-05-01T12:00:00.000Z#1",
            "00:00 load@2026-05-01T18:00:00.000Z#1",
            "00:00 days@2026-05-01T00:00:00.000Z#1",
        ]
    );
    // Each hour has what the run gave and wrote.
    assert_eq!(rehearsal.output::<usize>("load", "2026-05-01T08:00Z").unwrap(), 6);
    assert_eq!(
        rehearsal.lines("load", "2026-05-01T08:00Z").unwrap(),
        ["loading 2026-05-01T06:00:00Z to 2026-05-01T12:00:00Z"]
    );
    let why = rehearsal.why("load", "2026-05-01T08:00Z").unwrap();
    assert_eq!(
        why,
        "run 1 succeeded at 2026-05-01T12:00:00.001Z; together with 2026-05-01T06:00Z to 2026-05-01T11:00Z, in run 1 of 2026-05-01T06:00Z"
    );
    let why = rehearsal.why("load", "2026-05-01T06:00Z").unwrap();
    assert!(why.ends_with("; together with the slots up to 2026-05-01T11:00Z, 6 in all"), "{why}");
}

#[test]
fn a_batch_that_fails_is_tried_again_whole_and_holds_up_the_day() {
    let mut rehearsal = in_batches(Retry::fixed(Duration::from_secs(3 * 3600)).times(1));
    rehearsal.fail("load", "2026-05-01T09:00Z", 1).unwrap();
    rehearsal.fail("load", "2026-05-01T20:00Z", 2).unwrap();
    rehearsal.run_until("2026-05-01T12:30Z").unwrap();
    assert_eq!(rehearsal.state("load", "2026-05-01T06:00Z").unwrap(), Some(SlotState::Backoff));
    rehearsal.run_until("2026-05-02T12:00Z").unwrap();
    assert_eq!(rehearsal.attempts("load", "2026-05-01T11:00Z").unwrap(), 2);
    let runs = rehearsal.started().iter().filter(|(_, run)| run.slot.workflow.as_str() == "load").count();
    // Four of the day, two of them twice, and two of the next day.
    assert_eq!((runs, rehearsal.slots("days").unwrap()[0].1), (7, SlotState::Waiting));
    let why = rehearsal.why("days", "2026-05-01T00:00Z").unwrap();
    assert!(why.contains("6 of 24 periods of load") && why.contains("failed"), "{why}");
    // A rerun of one slot runs it by itself.
    rehearsal.ask(Rerun::of("load@2026-05-01T20:00Z".parse().unwrap())).unwrap();
    rehearsal.run_until("2026-05-02T12:01Z").unwrap();
    assert_eq!(rehearsal.output::<usize>("load", "2026-05-01T20:00Z").unwrap(), 1);
}

#[test]
fn sizes_of_batches_are_from_two_to_a_thousand() {
    for size in [0, 1, 1001] {
        let one = job("load", load).with(()).every(&Calendar::hourly()).in_batches(size, Duration::ZERO);
        let project = Project::new("web", "1.0").add(one);
        let mistake = Rehearsal::at("2026-05-01T00:00Z", project).err().unwrap().to_string();
        assert!(
            mistake.contains(&format!("its batches are refused: expected a size from 2 to 1000, not {size}")),
            "{mistake}"
        );
    }
}

/// The hours that ran on a machine that slept from the 28th to the 31st, and whose clock was then set back to the 30th.
fn hours_around_a_clock_that_is_set(catch_up: CatchUp) -> Vec<String> {
    let import = job("import", import).with(()).cron("0 * * * *").catch_up(catch_up);
    let mut rehearsal = Rehearsal::at("2026-03-28T00:00Z", Project::new("shop", "1.0").add(import)).unwrap();
    rehearsal.run_until("2026-03-28T03:30Z").unwrap();
    let past = rehearsal.started().len() - 4;
    rehearsal.set_clock("2026-03-31T03:30Z").unwrap();
    let all = rehearsal.started().len();
    rehearsal.set_clock("2026-03-30T03:30Z").unwrap();
    rehearsal.run_until("2026-03-31T03:59Z").unwrap();
    assert_eq!(rehearsal.started().len(), all, "what was done stays done");
    rehearsal.run_until("2026-03-31T04:01Z").unwrap();
    rehearsal.started().iter().skip(past).map(|(_, run)| run.slot.key.to_string()).collect()
}

#[test]
fn a_clock_that_is_set_loses_no_time_and_repeats_none() {
    let all = hours_around_a_clock_that_is_set(CatchUp::All);
    assert_eq!((all.len(), all.is_sorted()), (4 + 72 + 1, true), "{all:?}");
    // The hours that were slept through are made up for as those of an outage are.
    let latest = hours_around_a_clock_that_is_set(CatchUp::Latest);
    let last: Vec<&str> = latest.iter().rev().take(3).rev().map(String::as_str).collect();
    assert_eq!(last, ["2026-03-28T03:00:00.000Z", "2026-03-31T03:00:00.000Z", "2026-03-31T04:00:00.000Z"]);
}

#[test]
fn runs_and_retries_outlive_a_clock_that_is_set() {
    let import = job("import", import).with(()).cron("0 6 * * *").retry(Retry::fixed(Duration::from_secs(600)));
    let mut rehearsal = Rehearsal::at("2026-03-28T00:00Z", Project::new("shop", "1.0").add(import)).unwrap();
    rehearsal.takes("import", Duration::from_secs(3600)).unwrap();
    rehearsal.fail("import", "2026-03-28T06:00Z", 1).unwrap();
    let state = |rehearsal: &Rehearsal| rehearsal.state("import", "2026-03-28T06:00Z").unwrap().unwrap();
    rehearsal.run_until("2026-03-28T06:30Z").unwrap();
    assert_eq!(state(&rehearsal), SlotState::Running);
    // The run goes on for half an hour, whatever time it is said to be.
    rehearsal.set_clock("2026-03-28T02:00Z").unwrap();
    rehearsal.run_until("2026-03-28T02:29Z").unwrap();
    assert_eq!(state(&rehearsal), SlotState::Running);
    rehearsal.run_until("2026-03-28T02:31Z").unwrap();
    assert_eq!(state(&rehearsal), SlotState::Backoff);
    // The moment of the next attempt stays, also if the clock passes it over.
    rehearsal.set_clock("2026-03-28T09:00Z").unwrap();
    assert_eq!(state(&rehearsal), SlotState::Running);
    rehearsal.run_until("2026-03-28T10:01Z").unwrap();
    assert_eq!(
        (state(&rehearsal), rehearsal.attempts("import", "2026-03-28T06:00Z").unwrap()),
        (SlotState::Succeeded, 2)
    );
}

#[derive(serde::Deserialize)]
struct Extracted {
    rows: u64,
}

#[derive(serde::Deserialize)]
struct Hours {
    extract: Vec<Extracted>,
}

#[test]
fn a_job_reads_what_those_gave_that_it_depends_on() {
    let extract = async |_: Context, hour: Period, ()| {
        Ok::<_, String>(serde_json::json!({ "rows": hour.start.as_second() / 3600 % 24 }))
    };
    let load = async |_: Context, hour: InPeriod<Extracted>, ()| Ok::<_, String>(hour.input.rows * 10);
    let sum = async |context: Context, day: InPeriod<Hours>, ()| {
        context.log(format!("{} hours", day.input.extract.len()));
        Ok::<u64, String>(day.input.extract.iter().map(|hour| hour.rows).sum())
    };
    let extract = job("extract", extract).with(()).every(&Calendar::hourly());
    let load = job("load", load).with(()).every(&Calendar::hourly()).after(&extract);
    let sum = job("sum", sum).with(()).every(&Calendar::daily(Zone::utc())).covers(&extract);
    let project = Project::new("shop", "1.0").add(extract).add(load).add(sum);
    let mut rehearsal = Rehearsal::at("2026-03-28T00:00Z", project).unwrap();
    rehearsal.run_until("2026-03-29T00:01Z").unwrap();
    assert_eq!(rehearsal.output::<u64>("load", "2026-03-28T05:00Z").unwrap(), 50);
    assert_eq!(rehearsal.output::<u64>("sum", "2026-03-28T00:00Z").unwrap(), 276);
    assert_eq!(rehearsal.lines("sum", "2026-03-28T00:00Z").unwrap(), ["24 hours"]);
}

#[derive(serde::Deserialize)]
struct Counts {
    count: Vec<u64>,
}

#[test]
fn an_output_that_is_no_struct_is_one_in_a_list_too() {
    let count = async |_: Context, hour: Period, ()| Ok::<_, String>(hour.start.as_second() / 3600 % 24);
    let sum = async |_: Context, day: InPeriod<Counts>, ()| Ok::<u64, String>(day.input.count.iter().sum());
    let count = job("count", count).with(()).every(&Calendar::hourly());
    let sum = job("sum", sum).with(()).every(&Calendar::daily(Zone::utc())).covers(&count);
    let project = Project::new("shop", "1.0").add(count).add(sum);
    let mut rehearsal = Rehearsal::at("2026-03-28T00:00Z", project).unwrap();
    rehearsal.run_until("2026-03-29T00:01Z").unwrap();
    assert_eq!(rehearsal.output::<u64>("sum", "2026-03-28T00:00Z").unwrap(), 276);
}

#[test]
fn what_does_not_fit_is_the_end_and_says_where() {
    let extract = async |_: Context, _: ScheduledTime, ()| Ok::<_, String>(serde_json::json!({ "rows": "many" }));
    let load = async |_: Context, given: AtTime<Extracted>, ()| Ok::<_, String>(given.input.rows);
    let extract = job("extract", extract).with(()).cron("0 * * * *");
    let load = job("load", load).with(()).cron("0 * * * *").after(&extract);
    let mut rehearsal = Rehearsal::at("2026-03-28T00:30Z", Project::new("shop", "1.0").add(extract).add(load)).unwrap();
    rehearsal.run_until("2026-03-28T01:30Z").unwrap();
    assert_eq!(rehearsal.state("load", "2026-03-28T01:00Z").unwrap(), Some(SlotState::Failed));
    let why = rehearsal.why("load", "2026-03-28T01:00Z").unwrap();
    assert!(why.contains("at rows: invalid type: string \"many\", expected u64"), "{why}");
}

#[test]
fn what_a_job_is_after_needs_an_id() {
    let load = async |_: Context, _: ScheduledTime, ()| Ok::<(), String>(());
    let load = job("load", load).with(()).cron("0 * * * *").after("a b/");
    let told = Project::new("shop", "1.0").add(load).check().unwrap_err().to_string();
    assert!(told.contains("the id of what it is after is refused"), "{told}");
}
