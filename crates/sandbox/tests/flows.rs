//! Flows in scripts: what only all files together, or a whole check, can show.

use kelos_model::workflow::Keys;
use kelos_sandbox::warnings;

use crate::support::Folder;

/// The problems of a text and of its definitions, each with its code.
fn told(text: &str) -> Vec<String> {
    let folder = Folder::new();
    folder.write("a.js", text);
    let loaded = folder.load();
    let found = warnings(&loaded);
    loaded.problems.iter().chain(&found).map(|problem| format!("{problem} [{}]", problem.code)).collect()
}

#[test]
fn placeholders_of_steps_are_checked_where_they_stand() {
    let text = r#"kelos.flow("etl", { steps: {
    list: { command: ["list", "${yaer}"] },
    load: { needs: "list", forEach: "files", command: ["load", "${files}", "${rows}"] },
} });"#;
    assert_eq!(
        told(text),
        [
            "a.js:2:32: warning: \"${yaer}\" in step list of \"etl\" has ${yaer}, which has no value (did you mean ${year}?) \
             [unknown-placeholder]",
            "a.js:3:65: \"${files}\" in step load of \"etl\" has ${files}, which has no value (did you mean ${item}?) \
             [unknown-placeholder]",
        ]
    );
}

#[test]
fn pools_of_steps_have_one_size_as_all_others() {
    let text = r#"
        kelos.workflow("a", { schedule: "daily", shell: "true", pools: [celos.pool("crm", 2)] });
        kelos.flow("b", { steps: { load: { shell: "true", pools: [celos.pool("crm", 4, 3)] } } });"#;
    let told = told(text);
    assert!(told[0].contains("pool \"crm\" has 4 permits by \"b\", and 2 by \"a\""), "{told:?}");
    assert!(told[1].contains("[pool-too-small]"), "{told:?}");
}

#[test]
fn an_event_schedule_runs_the_flow_that_is_its_program() {
    let folder = Folder::new();
    folder.write(
        "a.js",
        r#"
        const etl = kelos.flow("etl", { steps: { load: { shell: "true" } } });
        schedule("Daily", etl).triggerByTime("0 4 * * *");"#,
    );
    let loaded = folder.load();
    assert!(loaded.problems.is_empty(), "{:?}", loaded.problems);
    let (schedules, programs): (Vec<_>, Vec<_>) =
        loaded.workflows.iter().partition(|one| matches!(one.keys, Keys::Events(_)));
    assert_eq!((schedules.len(), programs.len()), (1, 1));
    assert!(schedules[0].flow.is_some() && schedules[0].flow == programs[0].flow);
    assert_eq!(schedules[0].job, programs[0].job);
    assert!(matches!(&programs[0].keys, Keys::Requests(program) if program.name == "etl"));
}

#[test]
fn a_flow_is_whole_or_not_there() {
    let folder = Folder::new();
    folder.write("a.js", "kelos.flow('etl', { steps: { a: { needs: 'a', shell: 'true' } } });");
    assert!(folder.load().workflows.is_empty());
    let twice = told(
        "kelos.flow('a', { steps: { x: { shell: 'true' } } }); kelos.flow('a', { steps: { x: { shell: 'true' } } });",
    );
    assert!(twice[0].contains("Workflow with this ID already exists: a"), "{twice:?}");
    let later = told("celos.functionTrigger(() => { kelos.flow('a', {}); });");
    assert!(later.is_empty(), "{later:?}");
}
