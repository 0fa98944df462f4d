//! Versions of projects, and history that moves: starts, calendars and jobs that change over restarts.

use std::path::Path;

use jiff::{SignedDuration, Timestamp};
use kelos::embed::{Calendar, Context, HoldBack, Period, Project, Rehearsal, RunningProject, StartError, job};
use kelos::requests::{BackfillMode, BackfillRequest, Range};
use kelos::{CatchUp, DefinitionVersion, ProjectVersion, SlotRef, SlotState};

fn run<T>(test: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap().block_on(test)
}

async fn nothing(_: Context, (): (), (): ()) -> Result<(), String> {
    Ok(())
}

async fn count(_: Context, _: Period, (): ()) -> Result<(), String> {
    Ok(())
}

fn version(number: u32, project: &str) -> Option<DefinitionVersion> {
    Some(DefinitionVersion { number, project: ProjectVersion::new(project).ok() })
}

#[test]
fn what_ends_says_which_version_made_it() {
    let folder = tempfile::tempdir().unwrap();
    let project = |version: &str| {
        let fixed = job("fixed", nothing).with(()).version("rules-2").on_demand();
        Project::new("shop", version).folder(folder.path()).add(job("any", nothing).with(()).on_demand()).add(fixed)
    };
    let versions = |project: Project| {
        run(async {
            let running = project.start().await.unwrap();
            let versions = ["any", "fixed"].map(|job| running.run(job, &()));
            let mut told = Vec::new();
            for ended in versions {
                told.push(ended.await.unwrap().version);
            }
            running.stop().await;
            told
        })
    };
    assert_eq!(versions(project("1.3")), [version(1, "1.3"), version(1, "rules-2")]);
    assert_eq!(versions(project("1.4")), [version(2, "1.4"), version(1, "rules-2")]);
    assert_eq!(versions(project("")), [Some(DefinitionVersion { number: 3, project: None }), version(1, "rules-2")]);
}

#[test]
fn unsound_versions_are_mistakes() {
    let own = job("a", nothing).with(()).version("#1").on_demand();
    let mistakes = Project::new("shop", " ").add(own).check().unwrap_err();
    let told: Vec<String> = mistakes.0.iter().map(|one| one.message.clone()).collect();
    assert_eq!(
        told,
        [
            "job \"a\": its version is refused: a version can't begin with \"#\", as the number of a definition does: \"#1\"",
            "project \"shop\": its version is refused: a version can't be only whitespace",
        ]
    );
}

#[test]
fn what_a_version_made_is_made_again() {
    let project = Project::new("shop", "1.3").add(job("clicks", count).with(()).every(&Calendar::hourly()));
    let mut rehearsal = Rehearsal::at("2026-03-28T00:00Z", project).unwrap();
    rehearsal.run_until("2026-03-28T06:30Z").unwrap();
    let again = |made_by: &str| BackfillRequest {
        id: "again".parse().unwrap(),
        workflow: "clicks".parse().unwrap(),
        range: Range::new("2026-03-28T01:00Z".parse().unwrap(), "2026-03-29T00:00Z".parse().unwrap()),
        mode: BackfillMode::Missing,
        priority: -1,
        made_by: Some(made_by.parse().unwrap()),
        arguments: kelos::Arguments::new(),
        reason: None,
        dry_run: false,
    };
    let refused = rehearsal.ask(again("1.4")).unwrap_err().to_string();
    assert!(refused.ends_with("no definition of clicks has the version 1.4, expected 1.3 (#1)"), "{refused}");
    assert_eq!(rehearsal.ask(again("1.3")).unwrap().reopened.count, 5);
    rehearsal.run_until("2026-03-28T06:40Z").unwrap();
    assert_eq!(rehearsal.attempts("clicks", "2026-03-28T01:00Z").unwrap(), 2);
    assert_eq!(rehearsal.attempts("clicks", "2026-03-28T00:00Z").unwrap(), 1);
}

/// A moment so many hours before the present one.
fn hours_ago(hours: i64) -> Timestamp {
    let hour = Timestamp::now().as_second() / 3600 * 3600;
    Timestamp::from_second(hour - hours * 3600).unwrap()
}

/// Hours up to five hours ago, so that no hour that ends meanwhile is among them.
fn clicks(folder: &Path, since: Timestamp, until: Timestamp, catch_up: CatchUp) -> Project {
    let clicks = job("clicks", count).with(()).every(&Calendar::hourly()).since(since).until(until).catch_up(catch_up);
    Project::new("shop", "1.0").folder(folder).add(clicks)
}

async fn ended(running: &RunningProject, at: Timestamp) {
    let slot = SlotRef::at("clicks".parse().unwrap(), at);
    assert_eq!(running.end(&slot).await.unwrap().state, SlotState::Succeeded);
}

fn stored(running: &RunningProject) -> Vec<SlotRef> {
    let found = running.reader().slots(&kelos::SlotFilter::default(), kelos::PageRequest::oldest(999)).unwrap();
    found.rows.into_iter().map(|row| row.id).collect()
}

#[test]
fn a_start_that_moves_is_told_before_and_opens_no_past_by_surprise() {
    let folder = tempfile::tempdir().unwrap();
    let (first, end) = (hours_ago(10), hours_ago(5));
    run(async {
        let project = clicks(folder.path(), first, end, CatchUp::All);
        let changes = project.changes().unwrap();
        assert_eq!(changes.to_string(), "new: clicks\n5 past slots will run: clicks 5");
        assert!(!folder.path().join("kelos.db").exists(), "looking makes nothing");
        let running = project.confirm_above(5).start().await.unwrap();
        assert_eq!(*running.changes(), changes);
        ended(&running, end - SignedDuration::from_hours(1)).await;
        running.stop().await;
    });
    let moved = |catch_up| clicks(folder.path(), first - SignedDuration::from_hours(9000), end, catch_up);
    // With all of them the window reaches back a week, and the rest is held back; the second look refuses that.
    let changes = moved(CatchUp::All).changes().unwrap();
    let (opened, held) =
        (changes.past.opened(), changes.past.by_workflow().values().next().unwrap().held_back.unwrap());
    assert_eq!((opened + held.times.slots, held.by), (9000, HoldBack::Window), "{changes}");
    assert!((158..=159).contains(&opened), "{changes}");
    let refused = run(moved(CatchUp::All).confirm_above(100).start()).err().unwrap();
    let expected = format!("start the project: {opened} slots of the past would run, expected at most 100; ");
    assert!(refused.to_string().starts_with(&expected), "{refused}");
    let Err(StartError::Unconfirmed { limit: 100, changes: told }) = Err::<(), _>(refused) else { panic!("refused") };
    assert_eq!((&told.changed, told.past.opened()), (&vec!["clicks".parse().unwrap()], opened));
    // By default nothing of it runs, and it is said how it would.
    let latest = moved(CatchUp::Latest);
    let changes = latest.changes().unwrap();
    let held = changes.past.by_workflow().values().next().unwrap().held_back.unwrap();
    assert_eq!((changes.past.opened(), held.times.slots, held.by), (0, 9000, HoldBack::Latest), "{changes}");
    assert!(changes.to_string().contains("9000 past slots of clicks are not planned, "), "{changes}");
    let json = serde_json::to_value(&changes).unwrap();
    assert_eq!(json["past"]["clicks"]["heldBack"]["slots"], 9000, "{json}");
    run(async {
        let running = latest.confirm_above(0).start().await.unwrap();
        running.handle().settled().await.unwrap();
        assert_eq!(stored(&running).len(), 5);
        running.stop().await;
    });
    assert!(moved(CatchUp::Latest).changes().unwrap().is_empty(), "it is told once");
}

#[test]
fn a_job_that_is_removed_leaves_what_it_did() {
    let folder = tempfile::tempdir().unwrap();
    let (first, end) = (hours_ago(8), hours_ago(6));
    run(async {
        let running = clicks(folder.path(), first, end, CatchUp::All).start().await.unwrap();
        ended(&running, first + SignedDuration::from_hours(1)).await;
        running.stop().await;
    });
    let without = || {
        let other = job("other", nothing).with(()).on_demand();
        Project::new("shop", "1.1").folder(folder.path()).add(other)
    };
    assert_eq!(without().changes().unwrap().to_string(), "new: other\nremoved: clicks");
    run(async {
        let running = without().start().await.unwrap();
        let slot = stored(&running).remove(0);
        let why = kelos_explain::why::read(&**running.reader(), &slot, Timestamp::now(), true, None).unwrap();
        assert_eq!(why.out_of_range.as_deref(), Some("its workflow is no longer defined"));
        assert_eq!(why.version, version(1, "1.0"));
        running.stop().await;
    });
}
