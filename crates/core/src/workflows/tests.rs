//! Tests of workflows without a scheduler.

use std::sync::Arc;

use kelos_model::time::{CronSchedule, Firing, Schedule, Zone};
use kelos_model::workflow::{CatchUp, EventKeys, Keys, Program};
use kelos_model::{Actor, Job, Trigger};

use super::*;
use crate::deployment::{Deployment, Deployments};
use crate::moments::TICK;

fn id(name: &str) -> WorkflowId {
    name.parse().expect("an id")
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("a time")
}

/// Seconds of an hour.
const HOUR: i64 = 3600;

fn job() -> Job {
    Job::new("command", serde_json::Map::new())
}

fn hourly(name: &str) -> Arc<Workflow> {
    Arc::new(Workflow::new(id(name), Schedule::Cron(CronSchedule::hourly()), job()))
}

fn program(name: &str) -> Workflow {
    let keys = Keys::Requests(Box::new(Program { name: name.to_owned(), kind: None }));
    Workflow { project: "shop".to_owned(), ..Workflow::keyed(id(name), keys, job()) }
}

/// An event schedule of a program, with a cron time each hour.
fn every_hour(name: &str, of: &str, catch_up: CatchUp) -> Workflow {
    let keys = EventKeys { catch_up, enabled: true, ..EventKeys::new(name, id(of)) };
    let firing = Firing::parse("0 * * * *", Zone::utc()).expect("a cron expression");
    let trigger = Trigger::Fired { firing };
    Workflow {
        project: "shop".to_owned(),
        trigger,
        ..Workflow::keyed(id(name), Keys::Events(Box::new(keys)), Job::new("", serde_json::Map::new()))
    }
}

/// Workflows that were defined at the beginning of time, in an earlier turn.
fn with(definitions: impl IntoIterator<Item = Arc<Workflow>>) -> Workflows {
    let mut workflows = Workflows::default();
    for one in definitions {
        workflows.define(&one.id, &one, at(0));
    }
    workflows.settle();
    workflows
}

fn changed(workflows: &Workflows) -> Vec<String> {
    workflows.changed().map(|row| row.id.to_string()).collect()
}

fn deployment(project: &str) -> Deployments {
    let how = Deployment { digest: None, update_schedules: true, by: Some(Actor::system("test")) };
    BTreeMap::from([(project.to_owned(), how)])
}

#[test]
fn a_definition_that_is_the_same_changes_nothing() {
    let mut workflows = with([hourly("a")]);
    assert_eq!(workflows.define(&id("a"), &hourly("a"), at(1)), None);
    assert_eq!(changed(&workflows), [""; 0]);
    let mut other = Workflow::clone(&hourly("a"));
    other.concurrency = Some(3);
    let redefined = workflows.define(&id("a"), &Arc::new(other), at(1));
    assert_eq!(redefined, Some(Redefinition { version: 2, begins_anew: false }));
    assert_eq!((changed(&workflows), workflows.superseded().count()), (vec!["a".to_owned()], 0));
}

/// A schedule of a file that was stored while Quartz read its five fields keeps its days, whatever else of it changes; a request
/// means what it says.
#[test]
fn five_fields_that_are_stored_keep_their_meaning() {
    let of = |firing: Firing, provenance| {
        let one = Workflow { trigger: Trigger::Fired { firing }, ..every_hour("s", "p", CatchUp::Latest) };
        Arc::new(one).given_by(provenance)
    };
    let days = |workflows: &Workflows| {
        let Trigger::Fired { firing } = &workflows.get(&id("s")).expect("it is known").definition().trigger else {
            panic!("a time")
        };
        firing.schedule().cron().weekdays().and_then(|days| days.iter().position(|day| *day))
    };
    let quartz = Firing::read_by_quartz("0 4 * * 1", Zone::utc()).expect("a cron expression");
    let unix = |text: &str| Firing::parse(text, Zone::utc()).expect("a cron expression");
    let mut workflows = with([of(quartz, Provenance::File)]);
    assert_eq!(workflows.define(&id("s"), &of(unix("0 4 * * 1"), Provenance::File), at(1)), None);
    let mut other = of(unix("0 4 * * 1"), Provenance::File);
    Arc::make_mut(&mut other).about.description = Some("another".to_owned());
    assert!(workflows.define(&id("s"), &other, at(2)).is_some());
    assert_eq!(days(&workflows), Some(0), "still Sunday");
    workflows.define(&id("s"), &of(unix("0 5 * * 1"), Provenance::File), at(3));
    assert_eq!(days(&workflows), Some(1), "a new expression is crontab's");
    let quartz = Firing::read_by_quartz("0 4 * * 1", Zone::utc()).expect("a cron expression");
    let mut workflows = with([of(quartz, Provenance::Api)]);
    workflows.define(&id("s"), &of(unix("0 4 * * 1"), Provenance::Api), at(1));
    assert_eq!(days(&workflows), Some(1), "a request is crontab's");
}

#[test]
fn each_version_of_a_turn_leaves_a_row() {
    let mut workflows = with([]);
    for concurrency in 1..=3 {
        let one = Workflow { concurrency: Some(concurrency), ..Workflow::clone(&hourly("a")) };
        workflows.define(&id("a"), &Arc::new(one), at(1));
    }
    let versions = workflows.superseded().chain(workflows.changed()).map(|row| row.version);
    assert_eq!(versions.collect::<Vec<_>>(), [1, 2, 3]);
}

#[test]
fn what_nobody_gives_any_more_is_gone_and_what_nobody_was_asked_about_stands() {
    let mut workflows = with([hourly("file").given_by(Provenance::File), hourly("code").given_by(Provenance::Code)]);
    assert!(workflows.hear(Provenance::File, Vec::new()), "nobody has said anything before");
    let all = workflows.in_force(Provenance::File, &Deployments::new());
    let gone: Vec<_> = workflows.gone_with(&all).into_iter().map(|(id, _)| id).collect();
    assert_eq!(gone, [id("file")]);
    workflows.remove(&id("file"));
    assert!(workflows.present(&id("file")).is_err());
    assert!(workflows.get(&id("file")).is_some(), "its slots may still be there");
}

#[test]
fn the_projects_of_programs_stand_after_a_start_and_have_names_of_their_own() {
    let of = |project: &str, id: &str| Arc::new(Workflow { project: project.to_owned(), ..(*hourly(id)).clone() });
    let mut workflows =
        with([of("reports", "a").given_by(Provenance::Code), of("scripts", "b").given_by(Provenance::File)]);
    workflows.hear(Provenance::File, vec![of("scripts", "b")]);
    let all = workflows.in_force(Provenance::File, &Deployments::new());
    assert_eq!(all.keys().map(WorkflowId::as_str).collect::<Vec<_>>(), ["a", "b"]);
    let deploys = |project: &str, ids: &[&str]| {
        let definitions: Vec<_> = ids.iter().map(|id| of(project, id)).collect();
        workflows.check_deployed(project, &definitions).map_err(|refusal| refusal.to_string())
    };
    assert_eq!(deploys("reports", &["a", "c"]), Ok(()));
    let of_file = "the project \"scripts\" is defined by the file , expected a project of another name";
    assert_eq!(deploys("scripts", &["c"]), Err(of_file.to_owned()));
    let taken = |id: &str, project: &str| {
        Err(format!("a workflow named \"{id}\" exists already in the project {project}, expected a new name"))
    };
    assert_eq!(deploys("reports", &["b"]), taken("b", "scripts"));
    assert_eq!(deploys("others", &["a"]), taken("a", "reports"));
}

#[test]
fn a_name_that_several_give_is_its_holders() {
    let mut workflows = with([hourly("a").given_by(Provenance::Code)]);
    workflows.hear(Provenance::File, vec![hourly("a")]);
    assert_eq!(workflows.in_force(Provenance::File, &Deployments::new()).len(), 1);
    workflows.hear(Provenance::Code, vec![hourly("a")]);
    let all = workflows.in_force(Provenance::Code, &Deployments::new());
    assert_eq!(all.get(&id("a")).map(|one| one.provenance()), Some(Provenance::Code));
    let taken: Vec<_> = workflows.taken_names().iter().map(|one| (one.workflow.clone(), one.holder)).collect();
    assert_eq!(taken, [(id("a"), Provenance::Code)]);
}

#[test]
fn an_event_schedule_goes_with_its_program_and_runs_its_job() {
    let mut workflows = with([]);
    let schedule = every_hour("s", "p", CatchUp::Latest);
    workflows.hear(Provenance::File, vec![Arc::new(program("p")), Arc::new(schedule)]);
    let all = workflows.in_force(Provenance::File, &deployment("shop"));
    assert_eq!(all.get(&id("s")).map(|one| &one.job), Some(&job()));
    for (id, one) in &all {
        workflows.define(id, one, at(0));
    }
    workflows.hear(Provenance::File, Vec::new());
    let all = workflows.in_force(Provenance::File, &deployment("shop"));
    assert!(all.is_empty());
}

#[test]
fn what_was_planned_by_one_schedule_is_not_planned_by_another() {
    let mut workflows = with([hourly("a")]);
    let hourly = CronSchedule::hourly();
    assert_eq!(workflows.reschedule(&id("a"), Ok(hourly.clone()), at(0)), Some(NewSchedule { replanned: None }));
    assert_eq!(workflows.reschedule(&id("a"), Ok(hourly), at(0)), None);
    workflows.cover(&id("a"), Range::new(at(0), at(HOUR)));
    workflows.cover(&id("a"), Range::new(at(3 * HOUR), at(4 * HOUR)));
    let replanned = Some(Range::new(at(0), at(4 * HOUR)));
    assert_eq!(workflows.reschedule(&id("a"), Ok(CronSchedule::minutely()), at(0)), Some(NewSchedule { replanned }));
    assert!(workflows.get(&id("a")).is_some_and(|one| one.planned().ranges.ranges().is_empty()));
}

#[test]
fn a_pause_is_for_workflows_and_a_switch_for_event_schedules() {
    let mut workflows = with([hourly("a"), Arc::new(every_hour("s", "p", CatchUp::Latest))]);
    assert_eq!(workflows.set_paused(&id("a"), true, at(0)), Ok(true));
    assert_eq!(workflows.set_paused(&id("a"), true, at(0)), Ok(false));
    assert_eq!(workflows.set_paused(&id("s"), true, at(0)), Err(Refusal::NotPausable(id("s"))));
    assert_eq!(workflows.set_paused(&id("b"), true, at(0)), Err(Refusal::NoWorkflow(id("b"))));
    assert_eq!((workflows.is_enabled(&id("s")), workflows.is_enabled(&id("a")).is_err()), (Ok(true), true));
    assert_eq!(changed(&workflows), ["a"]);
}

#[test]
fn a_frozen_workflow_sets_reports_aside_until_it_is_thawed() {
    let mut workflows = with([hourly("a")]);
    let breach = Breach::of(Invariant::TimersAreSet, &id("a"));
    let run = RunId { slot: SlotRef::at(id("b"), at(0)), number: 1 };
    assert!(!workflows.set_aside(&id("a"), Some(&run)), "it is not frozen");
    assert_eq!([1, 2].map(|second| workflows.freeze(&breach, at(second))), [true, false]);
    assert!(workflows.set_aside(&id("a"), Some(&run)) && workflows.is_unheard(&run));
    let rows: Vec<_> = workflows.changed().collect();
    let mut restored = Workflows::default();
    rows.into_iter().for_each(|row| restored.restore(row));
    assert!(restored.is_unheard(&run), "no restart has it heard again");
    assert_eq!(restored.thaw(&id("a"), at(2)).map(|freeze| freeze.at), Some(at(1)));
    assert!(!restored.is_unheard(&run) && restored.thaw(&id("a"), at(2)).is_none());
}

#[test]
fn cron_times_that_were_missed_are_left_out_as_the_policy_has_it() {
    let missed = |times: u32| {
        let range = Range::new(at(HOUR), at(i64::from(times) * HOUR) + TICK);
        Some(CronTimes::Missed(Misfires { range, times }))
    };
    let next = |hour| Some(CronTimes::Next(at(hour * HOUR), vec![(at(hour * HOUR), "0 * * * *".into())]));
    let passed = |policy| {
        let mut workflows = with([Arc::new(every_hour("s", "p", policy))]);
        [(); 2].map(|()| workflows.take_passed(&id("s"), at(5 * HOUR + 600)))
    };
    assert_eq!(passed(CatchUp::All), [next(1), next(2)]);
    assert_eq!(passed(CatchUp::Latest), [missed(4), next(5)]);
    assert_eq!(passed(CatchUp::Skip), [missed(5), None]);
}

#[test]
fn an_event_schedule_that_is_enabled_begins_anew() {
    let mut workflows = with([Arc::new(every_hour("s", "p", CatchUp::All))]);
    assert_eq!(workflows.next_firing(&id("s"), at(0)), Some(at(HOUR)));
    assert_eq!(workflows.set_enabled(&id("s"), false, at(10)), Ok(()));
    assert_eq!(workflows.next_firing(&id("s"), at(10)), None);
    assert_eq!(workflows.set_enabled(&id("s"), true, at(5 * HOUR)), Ok(()));
    assert_eq!(workflows.set_enabled(&id("s"), true, at(5 * HOUR)), Err(Refusal::AlreadyEnabled(id("s"))));
    assert_eq!(workflows.next_firing(&id("s"), at(5 * HOUR)), Some(at(6 * HOUR)));
}

#[test]
fn slots_without_times_are_named_by_moments_that_are_free() {
    let mut workflows = with([Arc::new(program("p"))]);
    let moments = [1, 1, 0, 2].map(|second| workflows.next_moment(&id("p"), at(second)).as_millisecond());
    assert_eq!(moments, [1000, 1001, 1002, 2000]);
}

#[test]
fn a_start_beside_a_schedule_is_at_no_whole_second_and_keeps_what_is_planned() {
    let schedule = Schedule::Cron(CronSchedule::hourly());
    let hourly = Workflow::new(id("w"), schedule, Job::new("command", serde_json::Map::new()));
    let mut workflows = with([Arc::new(hourly)]);
    workflows.cover(&id("w"), Range::new(at(0), at(7200)));
    let planned = workflows.get(&id("w")).expect("it is known").planned().clone();
    let moments = [1, 1, 0, 2].map(|second| workflows.next_moment(&id("w"), at(second)).as_millisecond());
    assert_eq!(moments, [1001, 1002, 1003, 2001]);
    assert_eq!(*workflows.get(&id("w")).expect("it is known").planned(), planned);
}

#[test]
fn the_last_run_stays_with_the_program_that_it_was_of() {
    let mut workflows = with([Arc::new(every_hour("s", "p", CatchUp::All)), Arc::new(program("p"))]);
    let run = LastRun { seq: 7, started: at(0) };
    workflows.note_last_run(&id("s"), run, [&id("s"), &id("p")].into_iter());
    workflows.hand_over_last_run(&id("s"), &id("p"));
    let last = |name| workflows.get(&id(name)).and_then(WorkflowState::last_run);
    assert_eq!((last("s"), last("p")), (None, Some(run)));
}

#[test]
fn account_of_a_workflow_that_nobody_knows_is_a_breach() {
    let mut workflows = with([]);
    workflows.cover(&id("a"), Range::new(at(0), at(1)));
    assert_eq!(workflows.take_breach(), Some(Breach::of(Invariant::WorkflowIsKnown, &id("a"))));
    assert!(workflows.known(&id("b")).is_none() && workflows.take_breach().is_some());
}
