//! Projects in trouble: beside another one, with far too much output, with a job that is gone, with times that never meet.

use std::future::pending;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use jiff::SignedDuration;
use kelos::embed::{
    Calendar, Context, Definition, Period, Places, Project, Retry, RunningProject, ScheduledTime, Zone, flow, job, step,
};
use kelos::{SlotRef, SlotState, Status, Trigger};
use kelos_executors::local::last_line;
use kelos_executors::run_ref;

const PATIENCE: Duration = Duration::from_secs(60);

/// Runs a test on a runtime of its own.
fn run<T>(test: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap().block_on(test)
}

async fn nothing(_: Context, _: Period, (): ()) -> Result<(), String> {
    Ok(())
}

async fn is_in(running: &RunningProject, slot: &SlotRef, state: SlotState) {
    let mut commits = running.handle().watch_commits();
    while running.reader().slot(slot).unwrap().is_none_or(|slot| slot.state != state) {
        commits.changed().await.unwrap();
    }
}

#[test]
fn two_projects_in_one_process_know_nothing_of_each_other() {
    run(async {
        let project = |number: u32| {
            let count = job("count", async |context: Context, (): (), number: u32| {
                // The name of a lock belongs to its project.
                let _lock = context.lock("all").await;
                Ok::<_, String>(number)
            });
            Project::new("shop", "1.0").add(count.with(number).on_demand())
        };
        let (one, two) = (project(1).start().await.unwrap(), project(2).start().await.unwrap());
        one.pause("count").await.unwrap();
        let waiting = one.start("count", &()).await.unwrap();
        assert_eq!(two.run("count", &()).await.unwrap().output::<u32>().unwrap(), 2);
        assert!(!one.reader().slot(&waiting).unwrap().unwrap().state.is_final());
        one.resume("count").await.unwrap();
        assert_eq!(one.end(&waiting).await.unwrap().output::<u32>().unwrap(), 1);
        one.stop().await;
        assert_eq!(two.run("count", &()).await.unwrap().output::<u32>().unwrap(), 2);
        two.stop().await;
    });
}

#[test]
fn a_folder_is_that_of_one_project_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let project = || Project::new("shop", "1.0").folder(folder.path());
    run(async {
        let first = project().start().await.unwrap();
        let error = match project().start().await {
            Ok(_) => panic!("two projects write to one folder"),
            Err(error) => error.to_string(),
        };
        let words = format!("use the folder {}: another project of this program works in it", folder.path().display());
        assert!(error.starts_with(&words), "{error}");
        first.stop().await;
        project().start().await.unwrap().stop().await;
    });
}

#[test]
fn of_a_hundred_megabytes_of_output_the_last_ones_are_kept() {
    let size = |folder: &Path| -> u64 {
        let files = std::fs::read_dir(folder).unwrap().map(|one| one.unwrap().metadata().unwrap());
        files.filter(std::fs::Metadata::is_file).map(|one| one.len()).sum()
    };
    run(async {
        let chatty = job("chatty", async |context: Context, (): (), ()| {
            let line = "x".repeat((1 << 20) - 1);
            (0..100).for_each(|_| context.log(&line));
            context.log("the end");
            Ok::<_, String>(())
        });
        let running = Project::new("shop", "1.0").add(chatty.with(()).on_demand()).start().await.unwrap();
        let ended = running.run("chatty", &()).await.unwrap();
        assert!(ended.is_success());
        let dir = running.node().launcher().dirs().path(&run_ref(&ended.run.unwrap().id));
        assert!(size(&dir) < 40 << 20, "{} bytes", size(&dir));
        let text = last_line(&dir).unwrap();
        assert_eq!(text.as_deref(), Some("the end"));
        running.stop().await;
    });
}

#[test]
fn work_of_a_job_that_is_gone_ends_and_stays_to_be_seen() {
    let folder = tempfile::tempdir().unwrap();
    let calls = Arc::new(AtomicU32::new(0));
    let with_job = || {
        let hang = job("hang", async |_: Context, (): (), calls: Arc<AtomicU32>| {
            calls.fetch_add(1, Ordering::SeqCst);
            pending::<Result<(), String>>().await
        });
        Project::new("shop", "1.0")
            .folder(folder.path())
            .add(hang.with(calls.clone()).retry(Retry::never()).on_demand())
    };
    let slot = run(async {
        let running = with_job().start().await.unwrap();
        let slot = running.start("hang", &()).await.unwrap();
        is_in(&running, &slot, SlotState::Running).await;
        // As if the program were killed.
        running.handle().stop().await;
        slot
    });
    run(async {
        let running = Project::new("shop", "1.1").folder(folder.path()).start().await.unwrap();
        let ended = running.end(&slot).await.unwrap();
        assert_eq!(ended.state, SlotState::Failed);
        assert_eq!(ended.reason(), Some("the program that did it has ended"));
        let refusal = running.start("hang", &()).await.unwrap_err().to_string();
        assert!(refusal.contains("hang"), "{refusal}");
        running.stop().await;
    });
    assert_eq!(calls.load(Ordering::SeqCst), 1);
}

#[test]
fn a_job_that_starts_before_what_it_waits_for_is_a_mistake() {
    let series = |id: &str, since: &str| {
        job(id, nothing).with(()).every(&Calendar::daily(Zone::utc())).since(since.parse().unwrap())
    };
    let after = |since: &str| {
        let when = Trigger::Success { workflow: "load".parse().unwrap() };
        Project::new("shop", "1.0").add(series("load", "2026-02-01T00:00:00Z")).add(series("sum", since).when(when))
    };
    assert!(after("2026-02-01T00:00:00Z").check().is_ok());
    let mistakes = after("2026-01-01T00:00:00Z").check().unwrap_err();
    let said = mistakes.to_string();
    assert!(
        said.contains("\"sum\": it starts at 2026-01-01T00:00:00Z, and waits for \"load\", which starts at"),
        "{said}"
    );
    assert!(said.contains("hint: let it start with \"load\", or later"), "{said}");
}

#[test]
fn a_start_in_the_middle_of_a_period_is_the_next_one() {
    let days = Calendar::daily(Zone::parse("Europe/Paris").unwrap());
    let bounded = |since: &str, until: &str| {
        let visits = job("visits", nothing).with(()).every(&days);
        let visits = visits.since(since.parse().unwrap()).until(until.parse().unwrap());
        Project::new("shop", "1.0").add(visits).check()
    };
    // Midnight in UTC is one o'clock in Paris: the first whole day is the second of January, the last the third.
    let visits = bounded("2026-01-01T00:00:00Z", "2026-01-04T00:00:00Z").unwrap().remove(0);
    let moment = |text: &str| Some(text.parse::<jiff::Timestamp>().unwrap());
    assert_eq!((visits.start_time, visits.end_time), (moment("2026-01-01T23:00Z"), moment("2026-01-03T23:00Z")));
    let aligned = bounded("2026-01-01T00:00:00+01:00", "2026-01-04T00:00:00+01:00").unwrap().remove(0);
    assert_eq!((aligned.start_time, aligned.end_time), (moment("2025-12-31T23:00Z"), moment("2026-01-03T23:00Z")));
    let mistake = bounded("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z").unwrap_err().0.remove(0);
    let words = "no period lies between its start 2026-01-01T00:00:00Z and its end 2026-01-02T00:00:00Z";
    assert_eq!(mistake.message, format!("job \"visits\": {words}"));
}

/// The mistakes of a project with these jobs.
fn mistakes(jobs: impl IntoIterator<Item = Definition>) -> Vec<String> {
    let project = jobs.into_iter().fold(Project::new("shop", "1.0"), Project::add);
    project.check().err().map_or_else(Vec::new, |all| all.0.into_iter().map(|one| one.message).collect())
}

async fn at(_: Context, _: ScheduledTime, (): ()) -> Result<(), String> {
    Ok(())
}

async fn asked(_: Context, (): (), (): ()) -> Result<(), String> {
    Ok(())
}

#[test]
fn jobs_that_wait_for_what_never_is_are_mistakes() {
    let load = || job("load", at).with(());
    let success = || Trigger::Success { workflow: "nobody".parse().unwrap() };
    let not_there = "job \"load\": it waits for slots of \"nobody\", which is not in the project";
    assert_eq!(mistakes([load().cron("0 6 * * *").after("nobody").into()]), [not_there]);
    assert_eq!(mistakes([load().cron("0 6 * * *").when(success()).into()]), [not_there]);
    let on_demand = job("asked", asked).with(()).on_demand();
    let found = mistakes([load().cron("0 6 * * *").after(&on_demand).into(), on_demand.clone().into()]);
    assert_eq!(found, ["job \"load\": it waits for slots of \"asked\", which has no schedule"]);
    let early = job("early", at).with(()).cron("30 5 * * *");
    let found = mistakes([load().cron("0 6 * * *").after(&early).into(), early.into()]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("job \"load\": it can never run: its slot "), "{found:?}");
    assert!(found[0].ends_with(", a time that \"early\" does not have"), "{found:?}");
    let ended = job("ended", at).with(()).cron("0 6 * * *").until("2026-02-01T00:00Z".parse().unwrap());
    let found = mistakes([load().cron("0 6 * * *").after(&ended).into(), ended.into()]);
    assert!(found[0].ends_with(", but \"ended\" ends at 2026-02-01T00:00Z"), "{found:?}");
    let february = load().cron("0 6 30 2 *");
    assert_eq!(mistakes([february.into()]), ["job \"load\": its cron expression \"0 6 30 2 *\" has no times"]);
}

#[test]
fn conditions_periods_and_times_that_say_nothing_are_mistakes() {
    let other = job("other", at).with(()).cron("0 6 * * *");
    let words = "it has conditions, and it is started by requests, which ask for none";
    let found = mistakes([job("asked", asked).with(()).on_demand().after(&other).into(), other.clone().into()]);
    assert_eq!(found, [format!("job \"asked\": {words}")]);
    let found = mistakes([flow("buy", step("pay", asked).with(())).after(&other).into(), other.clone().into()]);
    assert_eq!(found, [format!("flow \"buy\": {words}")]);
    let found = mistakes([flow("buy", step("pay", nothing).with(())).into()]);
    assert_eq!(found, ["flow \"buy\": step \"pay\" is about a period, and the flow has no times"]);
    let hours = Calendar::hourly();
    assert_eq!(mistakes([flow("buy", step("pay", nothing).with(())).every(&hours).into()]), [""; 0]);
    let found = mistakes([job("asked", asked).with(()).on_demand().once().into()]);
    assert_eq!(found, ["job \"asked\": its times are said by `.on_demand()` and `.once()`"]);
    let clicks = || job("clicks", nothing).with(()).every(&hours);
    let visits = |from, to| {
        let days = Calendar::daily(Zone::parse("Europe/Paris").unwrap());
        let (from, to) = (SignedDuration::from_hours(from), SignedDuration::from_hours(to));
        job("visits", nothing).with(()).every(&days).covers_from("clicks", from, to)
    };
    assert_eq!(mistakes([clicks().into(), visits(1, -1).into()]), [""; 0]);
    let wrong = "job \"visits\": it covers nothing of \"clicks\": the shifted interval ends before it begins";
    assert_eq!(mistakes([clicks().into(), visits(0, -25).into()]), [wrong]);
}

#[test]
fn a_platform_of_two_sizes_and_a_name_that_is_none_are_mistakes() {
    let on = |id: &str, places: u32| job(id, asked).with(()).on(Places::new("gpu", places)).on_demand();
    assert_eq!(mistakes([on("a", 2).into(), on("b", 2).into()]), [""; 0]);
    let found = mistakes([on("a", 2).into(), on("b", 1).into()]);
    assert_eq!(found, ["job \"b\": \"gpu\" is 1 place here, and 2 places in \"a\""]);
    for name in ["", "a/b c", ".hidden"] {
        let mistake = Project::new(name, "1.0").check().unwrap_err().0.remove(0);
        assert_eq!(mistake.message, format!("project \"{name}\": its name is refused"));
    }
}

/// A job whose first attempt never ends.
fn hanging(folder: &Path, calls: &Arc<AtomicU32>) -> Project {
    let hang = job("hang", async |_: Context, (): (), calls: Arc<AtomicU32>| {
        if calls.fetch_add(1, Ordering::SeqCst) == 0 {
            pending::<()>().await;
        }
        Ok::<_, String>(())
    });
    Project::new("shop", "1.0").folder(folder).add(hang.with(calls.clone()).retry(Retry::never()).on_demand())
}

#[test]
fn a_dropped_project_ends_and_the_next_one_goes_on_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let calls = Arc::new(AtomicU32::new(0));
    run(async {
        let slot = {
            let running = hanging(folder.path(), &calls).start().await.unwrap();
            let slot = running.start("hang", &()).await.unwrap();
            is_in(&running, &slot, SlotState::Running).await;
            slot
        };
        let running = hanging(folder.path(), &calls).start().await.unwrap();
        // It was given back, so that no retry is needed.
        assert!(running.end(&slot).await.unwrap().is_success());
        running.stop().await;
    });
    assert_eq!(calls.load(Ordering::SeqCst), 2);
}

#[test]
fn a_project_that_outlives_its_runtime_ends_with_its_drop() {
    let folder = tempfile::tempdir().unwrap();
    let calls = Arc::new(AtomicU32::new(1));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let running = runtime.block_on(hanging(folder.path(), &calls).start()).unwrap();
    drop(runtime);
    drop(running);
    run(async {
        let running = hanging(folder.path(), &calls).start().await.unwrap();
        assert!(running.run("hang", &()).await.unwrap().is_success());
        running.stop().await;
    });
}

#[test]
fn dropped_and_refused_projects_leave_no_engine() {
    let folder = tempfile::tempdir().unwrap();
    let calls = Arc::new(AtomicU32::new(1));
    run(async {
        let mut engines = Vec::new();
        for _ in 0..50 {
            let running = Project::new("shop", "1.0").start().await.unwrap();
            engines.push(running.handle().clone());
        }
        for engine in engines {
            let mut status = engine.watch_status();
            let ends = status.wait_for(|status| *status == Status::Stopped);
            tokio::time::timeout(PATIENCE, ends).await.expect("its engine goes on").unwrap();
        }
        // The engine of a start that was refused does not take the folder over later.
        let first = hanging(folder.path(), &calls).start().await.unwrap();
        assert!(hanging(folder.path(), &calls).start().await.is_err());
        first.stop().await;
        hanging(folder.path(), &calls).start().await.unwrap().stop().await;
    });
}

#[test]
fn who_waits_for_an_end_is_told_of_a_stop() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let calls = Arc::new(AtomicU32::new(0));
        let running = Arc::new(hanging(folder.path(), &calls).start().await.unwrap());
        running.pause("hang").await.unwrap();
        let slot = running.start("hang", &()).await.unwrap();
        let waiting = tokio::spawn({
            let running = running.clone();
            async move { running.end(&slot).await.map(drop).unwrap_err().to_string() }
        });
        running.stop().await;
        let told = tokio::time::timeout(PATIENCE, waiting).await.expect("it waits").unwrap();
        assert!(told.contains("the scheduler has ended"), "{told}");
    });
}

#[test]
fn the_jobs_of_another_project_are_removed_by_consent_only() {
    let folder = tempfile::tempdir().unwrap();
    let project = |name: &str| Project::new(name, "1.0").folder(folder.path());
    run(async {
        let count = job("count", asked).with(()).on_demand();
        project("shop").add(count).start().await.unwrap().stop().await;
        let refused = project("webshop").start().await.err().map(|error| error.to_string()).unwrap();
        assert!(
            refused.starts_with("start the project \"webshop\": what is stored has the jobs of \"shop\""),
            "{refused}"
        );
        let running = project("webshop").replaces("shop").start().await.unwrap();
        assert_eq!(running.changes().to_string(), "removed: count");
        running.stop().await;
        project("webshop").start().await.unwrap().stop().await;
    });
}
