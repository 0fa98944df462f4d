//! Versions of projects, and history that moves: starts, calendars and jobs that change over restarts.


use kelos::embed::{Calendar, Context, Period, Project, Rehearsal, job};
use kelos::requests::{BackfillMode, BackfillRequest, Range};
use kelos::{DefinitionVersion, ProjectVersion};

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
