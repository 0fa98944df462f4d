//! Programs and event schedules in scripts, beside what the fixtures show.

use std::fs;
use std::path::PathBuf;

use kelos_model::trigger::Trigger;
use kelos_model::workflow::Keys;
use kelos_sandbox::{Folders, Limits, LoadResult, Project, check};

use crate::support::{Folder, ids, words, workflow};

const PROGRAM: &str = "program('wf', celos.commandExternalService({command: ['true']}));\n";

fn one(text: &str) -> LoadResult {
    let folder = Folder::new();
    folder.write("a.js", &format!("{PROGRAM}{text}"));
    folder.load()
}

/// The messages of a check of a file.
fn checked(text: &str) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.js"), format!("{PROGRAM}{text}")).unwrap();
    let folders = Folders { workflows: folder.path().to_owned(), defaults: PathBuf::from("none") };
    words(&check(folders, Limits::default(), std::sync::Arc::new(kelos_door_stolos::TasksJson), None).unwrap())
}

/// The program that schedule `s` of a file waits for.
fn awaited(loaded: &LoadResult) -> &str {
    let schedule = loaded.workflows.iter().find(|one| one.id.as_str() == "a.s").unwrap();
    match &schedule.trigger {
        Trigger::Ended { program, .. } => program.as_str(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn scripts_may_take_the_words_of_schedules_for_themselves() {
    let taken = "let schedule = 1; const ProgramType = 2; var TimeUnit = 3; function program() { return 4; }\n";
    let used = "if (schedule + ProgramType + TimeUnit + program() !== 10) throw new Error('no');\n";
    let folder = Folder::new();
    let own = "celos.program('p', celos.commandExternalService({command: ['true']}));\n\
               celos.schedule('s', 'p').triggerByTime('0 4 * * *');\n";
    folder.write("a.js", &(taken.to_owned() + used + &workflow("w") + own));
    let loaded = folder.load();
    assert_eq!((words(&loaded), ids(&loaded)), (vec![], vec!["a.p", "a.s", "w"]));
}

#[test]
fn a_program_has_labels_of_workers_and_its_schedules_the_same() {
    let folder = Folder::new();
    let program = |job: &str| {
        format!(
            "celos.program('p', {job}, {{ runsOn: ['gpu', 'eu'], onLost: 'end' }});\ncelos.schedule('s', 'p').triggerByTime('0 4 * * *');"
        )
    };
    folder.write("a.js", &program("celos.commandExternalService({command: ['true']})"));
    let loaded = folder.load();
    assert_eq!((words(&loaded), ids(&loaded)), (vec![], vec!["a.p", "a.s"]));
    for workflow in &loaded.workflows {
        let labels: Vec<&str> = workflow.job.runs_on.iter().map(|label| label.as_str()).collect();
        assert_eq!((labels, workflow.job.on_lost), (vec!["eu", "gpu"], kelos_model::workers::LossPolicy::End));
    }
    folder.write("a.js", &program("celos.httpExternalService({url: 'http://x'})"));
    let told = words(&folder.load());
    assert!(told[0].contains("celos.program \"p\": runsOn is about workers"), "{told:?}");
}

#[test]
fn a_schedule_may_stand_before_its_program() {
    let folder = Folder::new();
    folder.write("a.js", &format!("schedule('s', 'wf').triggerByTime('0 4 * * *');\n{PROGRAM}"));
    let loaded = folder.load();
    assert_eq!((words(&loaded), ids(&loaded)), (vec![], vec!["a.s", "a.wf"]));
    let Keys::Events(keys) = &loaded.workflows[0].keys else { panic!("no schedule") };
    assert_eq!(keys.program.as_str(), "a.wf");
    assert_eq!(loaded.workflows[0].job, loaded.workflows[1].job);
}

#[test]
fn a_name_is_that_of_a_program_of_the_application_or_of_any_workflow() {
    for (trigger, expected) in [
        ("celos.programStatusTrigger('wf', 'failed')", "a.wf"),
        ("celos.programStatusTrigger('a.wf', 'failed')", "a.wf"),
        ("celos.programStatusTrigger('w', 'failed')", "w"),
        ("celos.programStatusTrigger('elsewhere', 'failed')", "elsewhere"),
        ("getTriggerFactory().onProgramStatus(ProgramType.WORKFLOW, 'wf')", "a.wf"),
        ("getTriggerFactory().onProgramStatus(ProgramType.WORKFLOW, 'w')", "w"),
        ("getTriggerFactory().onProgramStatus(ProgramType.WORKFLOW, 'elsewhere')", "a.elsewhere"),
        ("getTriggerFactory().onProgramStatus('ns', 'App', ProgramType.SPARK, 'p')", "ns:App.spark:p"),
    ] {
        let loaded = one(&format!("{}schedule('s', 'wf').triggerOn({trigger});", workflow("w")));
        assert_eq!((words(&loaded), awaited(&loaded)), (vec![], expected), "{trigger}");
    }
}

#[test]
fn a_mistake_in_many_lines_is_told_where_it_begins() {
    let loaded = one(
        "schedule(\n  buildSchedule(\n    's',\n    ProgramType.WORKFLOW,\n    'wg')\n  .triggerByTime('0 4 * * *'));",
    );
    assert_eq!(
        words(&loaded),
        ["a.js:3:1: schedule \"s\": there is no program \"wg\" in application a; did you mean \"wf\"?"]
    );
}

#[test]
fn a_check_warns_of_programs_that_somebody_meant_to_define() {
    let warned = checked("schedule('s', 'wf').triggerOnProgramStatus(ProgramType.WORKFLOW, 'Loader');");
    assert_eq!(
        warned,
        ["a.js:2:1: warning: the trigger of \"a.s\" waits for runs of \"a.Loader\", which nobody defines"]
    );
    let close = checked(&format!(
        "{}schedule('s', 'wf').triggerOn(celos.programStatusTrigger('loadr', 'failed'));",
        workflow("loader")
    ));
    assert_eq!(close.len(), 1);
    assert!(
        close[0].ends_with("waits for runs of \"loadr\", which nobody defines (did you mean \"loader\"?)"),
        "{close:?}"
    );
    let outside = "schedule('s', 'wf').triggerOnProgramStatus('Elsewhere', ProgramType.WORKFLOW, 'Loader');";
    assert_eq!(checked(outside), [""; 0]);
}

#[test]
fn files_of_one_application_are_one_project() {
    let folder = Folder::new();
    let file = |name: &str, update: &str| {
        format!(
            "application({{name: 'shop'{update}}});\nprogram('{name}', celos.commandExternalService({{command: ['true']}}));\n"
        )
    };
    folder.write("a.js", &file("a", ""));
    folder.write("b.js", &file("b", ", 'app.deploy.update.schedules': false"));
    let first = folder.load();
    let shop = |loaded: &LoadResult| -> Project { loaded.projects["shop"].clone() };
    assert_eq!((ids(&first), first.projects.len()), (vec!["shop.a", "shop.b"], 1));
    assert_eq!((shop(&first).update_schedules, shop(&first).is_whole), (Some(false), true));
    folder.write("b.js", "nonsense(");
    let broken = folder.load();
    assert_eq!((ids(&broken), shop(&broken).is_whole), (vec!["shop.a", "shop.b"], false));
    folder.write("b.js", &file("c", ""));
    let third = folder.load();
    assert!(shop(&third).is_whole && shop(&third).digest != shop(&first).digest);
    assert_eq!(shop(&folder.load()), shop(&third));
}
