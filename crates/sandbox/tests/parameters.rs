//! Parameters of scripts, with their mistakes where they stand.

use crate::support::Folder;
use kelos_model::{Parameter, ParameterKind};
use serde_json::json;

/// The problems of a text, each with its place.
fn problems(text: &str) -> Vec<String> {
    let folder = Folder::new();
    folder.write("a.js", text);
    folder.load().problems.iter().map(ToString::to_string).collect()
}

#[test]
fn workflows_apps_programs_and_their_schedules_have_them() {
    let folder = Folder::new();
    folder.write(
        "a.js",
        r#"
        const job = celos.commandExternalService({command: ["true"]});
        const parameters = {day: {type: "date", default: "${year}-${month}-${day}", about: "the day"}, rows: 1000};
        kelos.workflow("w", {schedule: "hourly", shell: "true", parameters});
        celos.defineWorkflow({id: "v", schedule: celos.hourlySchedule(), schedulingStrategy: celos.serialSchedulingStrategy(),
            trigger: celos.alwaysTrigger(), externalService: job, parameters});
        celos.defineJobGraph({jobs: {job_id: "{n}", externalService: job, parameters: {rows: 1000}}}, {identifiers: {n: "integer"}});
        program("p", job, {parameters});
        schedule("s", "p").withProperties({rows: 3}).triggerByTime("0 4 * * *");"#,
    );
    let loaded = folder.load();
    assert!(loaded.problems.is_empty(), "{:?}", loaded.problems);
    let day = Parameter::new("day", ParameterKind::Date).about("the day");
    let day = Parameter { default: Some(json!("${year}-${month}-${day}")), ..day };
    let rows = Parameter::plain("rows", json!(1000));
    for one in &loaded.workflows {
        match one.id.as_str() {
            "jobs" => assert_eq!(one.parameters, std::slice::from_ref(&rows)),
            id => assert_eq!(one.parameters, [day.clone(), rows.clone()], "{id}"),
        }
    }
    assert_eq!(loaded.workflows.len(), 5);
}

#[test]
fn mistakes_are_told_with_their_lines() {
    let workflow = |parameters: &str| {
        problems(&format!(
            "\nkelos.workflow(\"w\", {{schedule: \"hourly\", shell: \"true\", parameters: {parameters}}});"
        ))
        .join("\n")
    };
    for (parameters, told) in [
        (
            "{day: {type: \"dat\"}}",
            "a.js:2:1: kelos.workflow \"w\": parameters: the type of day is \"dat\", expected text,",
        ),
        (
            "{day: {type: \"date\"}}",
            "a.js:2:1: the parameters of \"w\" are wrong: day has no default, and nobody gives a value",
        ),
        ("{day: {type: \"date\", default: \"x\"}}", "the default of day is \"x\", expected a date such as 2026-11-21"),
        (
            "[\"day\"]",
            "a.js:2:1: kelos.workflow \"w\": parameters: expected an object such as {day: {type: \"date\"}, rows: 1000}",
        ),
        ("{size: {type: \"choice\"}}", "size is a choice, expected a list of choices for a choice alone"),
    ] {
        let found = workflow(parameters);
        assert!(found.contains(told), "{parameters}: {found}");
    }
    let schedule = "const job = celos.commandExternalService({command: [\"true\"]});\n\
        program(\"p\", job, {parameters: {day: {type: \"date\"}}});\n\
        schedule(\"s\", \"p\").triggerByTime(\"0 4 * * *\");";
    let found = problems(schedule).join("\n");
    assert!(
        found.contains("a.js:3:") && found.contains("the program requires day, expected it among the properties"),
        "{found}"
    );
}
