//! Deploying with a target file on this machine, and through a server.

use crate::support::{Folder, Said, Server, run_in};

const SCRIPT: &str = r#"
importDefaults("words");
celos.defineWorkflow({
    "id": "words",
    "schedule": celos.cronSchedule("0 0 0 * * ?"),
    "schedulingStrategy": celos.serialSchedulingStrategy(9),
    "trigger": celos.fileCheckTrigger(READY),
    "externalService": celos.commandExternalService({"command": ["true"]})
});
"#;

/// A project in `project`, and a site in `site` with a target file beside it.
fn folder() -> Folder {
    let folder = Folder::with(&[
        ("project/workflow.js", SCRIPT),
        ("project/defaults.js", "var READY = '/nowhere/ready';"),
        ("site/workflows/.keep", ""),
        ("site/defaults/.keep", ""),
    ]);
    let site = format!("file://{}/site", folder.text());
    let target = format!(
        "{{\"hadoop.hdfs-site.xml\": \"{site}/hdfs-site.xml\", \"hadoop.core-site.xml\": \"{site}/core-site.xml\", \
         \"workflows.dir.uri\": \"{site}/workflows\", \"defaults.dir.uri\": \"{site}/defaults\"}}"
    );
    folder.write("target.json", &target);
    folder
}

fn deploy(folder: &Folder, more: &[&str]) -> Said {
    let words = ["deploy", "--workflowName", "words", "--deployDir", "project", "--target", "target.json"];
    run_in(folder.path(), &[&words[..], more].concat())
}

#[test]
fn celos_s_own_arguments_deploy_and_undeploy() {
    let folder = folder();
    let site = format!("file:{}/site", folder.text());
    let plan = deploy(&folder, &["--plan"]).ok();
    assert!(plan.contains("7 slots of words in the last 7 days are new: "), "{plan}");
    assert!(plan.contains("\n7 past slots will run\n"), "{plan}");
    assert!(plan.ends_with("this is a plan: nothing was changed\n"), "{plan}");
    let words = ["ci", "-mode", "DEPLOY", "-workflowName", "words", "-deployDir", "project", "-target", "target.json"];
    let done = run_in(folder.path(), &words).ok();
    let expected = format!(
        "done: write {site}/defaults/words.js\ndone: write {site}/workflows/words.js\nworkflow words is new\n\
         note: there is no folder hdfs: HDFS is not touched, no workflow uses Oozie\nwords is deployed\n"
    );
    assert_eq!(done, expected);
    assert_eq!(folder.json(&["check", "site", "--json"])["workflows"], serde_json::json!(["words"]));
    let words = ["ci", "--mode", "undeploy", "--workflowName", "words", "--target", "target.json", "--no-hdfs"];
    assert!(run_in(folder.path(), &words).ok().ends_with("words is undeployed\n"));
    assert!(run_in(folder.path(), &words).ok().ends_with("words is not there: nothing to change\n"));
}

#[test]
fn command_lines_that_make_no_sense_are_told_what_was_expected() {
    let folder = folder();
    let told = |words: &[&str]| run_in(folder.path(), words).fails(2);
    let nowhere = told(&["deploy", "--workflowName", "words", "--deployDir", "project"]);
    assert_eq!(
        nowhere,
        "error: failed to choose the target: expected --target URL of a target file, or --server URL\n"
    );
    let nothing = told(&["deploy", "--workflowName", "words", "--target", "target.json"]);
    assert_eq!(nothing, "error: failed to find the project: expected --deployDir PATH\n");
    let mode = told(&["ci", "--workflowName", "words", "--target", "target.json"]);
    assert_eq!(mode, "error: failed to choose what to do: expected --mode deploy or --mode undeploy\n");
    let test = told(&["ci", "--mode", "test", "--workflowName", "words", "--target", "target.json"]);
    assert!(test.ends_with("hint: kelos test runs them\n"), "{test}");
    let name = told(&["undeploy", "--workflowName", "../x", "--target", "target.json"]);
    assert!(name.starts_with("error: failed to name a project \"../x\": expected letters"), "{name}");
    let root = told(&["undeploy", "--workflowName", "words", "--target", "target.json", "--hdfsRoot", "app"]);
    assert!(root.starts_with("error: failed to use \"app\" as the root in HDFS: expected an absolute path"), "{root}");
}

#[test]
fn errors_of_scripts_are_shown_where_they_are() {
    let folder = folder();
    folder.write("project/workflow.js", "celos.defineWorkflow({\n    id: 7\n});");
    let told = deploy(&folder, &[]).fails(1);
    assert!(told.starts_with("error: failed to deploy words: words.js would break\n  words.js:1:"), "{told}");
    assert!(told.ends_with("  hint: nothing was changed\n"), "{told}");
}

#[test]
fn a_deadlock_is_found_by_the_plan() {
    let folder = folder();
    let waits = SCRIPT.replace("celos.fileCheckTrigger(READY)", "celos.successTrigger(\"words\")");
    folder.write("project/workflow.js", &waits);
    let told = deploy(&folder, &["--plan"]).fails(1);
    assert!(told.contains("words.js:3:1: \"words\" can never run: it waits for the success of its own slot"), "{told}");
}

#[test]
fn a_server_that_may_deploys_into_its_own_folders() {
    let folder = folder();
    folder.write("served/workflows/.keep", "");
    folder.write("served/defaults/.keep", "");
    let dir = folder.path().join("served");
    let server = Server::start(&dir, &["up", "--port", "0", "--allow-deploy"], "Stop with Ctrl-C");
    let words = |verb: &'static str| [verb, "--workflowName", "words", "--server", server.address()];
    let deploy = [&words("deploy")[..], &["--deployDir", "project"]].concat();
    let plan = run_in(folder.path(), &[&deploy[..], &["--plan"]].concat()).ok();
    assert!(plan.contains("7 slots of words planned at once: "), "{plan}");
    assert!(plan.contains("\n7 past slots will run\n"), "{plan}");
    let done = run_in(folder.path(), &deploy).ok();
    assert!(done.ends_with("words is deployed\n"), "{done}");
    assert!(dir.join("workflows/words.js").exists());
    let slots = folder.json(&["slots", "words", "--json", "--server", server.address()]);
    assert_eq!(slots["items"].as_array().map(Vec::len), Some(7));
    assert!(run_in(folder.path(), &words("undeploy")).ok().ends_with("words is undeployed\n"));
    assert!(!dir.join("workflows/words.js").exists());
}

#[test]
fn what_init_writes_is_deployed_with_all_its_files() {
    let folder = folder();
    run_in(folder.path(), &["init", "shop"]).ok();
    let days = "kelos.workflow('days', {schedule: celos.calendar('business', {holidays: 'holidays.txt'}), command: ['true']});";
    folder.write("shop/workflows/days.js", days);
    folder.write("shop/defaults/holidays.txt", "2026-12-25\n");
    folder.write("served/workflows/.keep", "");
    folder.write("served/defaults/.keep", "");
    let dir = folder.path().join("served");
    let server = Server::start(&dir, &["up", "--port", "0", "--allow-deploy"], "Stop with Ctrl-C");
    let words = ["deploy", "--workflowName", "shop", "--deployDir", "shop", "--server", server.address()];
    let plan = run_in(folder.path(), &[&words[..], &["--plan"]].concat()).ok();
    assert!(plan.contains("\nworkflow days is new\n"), "{plan}");
    assert!(run_in(folder.path(), &words).ok().ends_with("shop is deployed\n"));
    for file in ["workflows/shop+hello.js", "workflows/shop+days.js", "defaults/shop+holidays.txt"] {
        assert!(dir.join(file).exists(), "{file}");
    }
    let target = ["deploy", "--workflowName", "shop", "--deployDir", "shop", "--target", "target.json"];
    assert!(run_in(folder.path(), &target).ok().ends_with("shop is deployed\n"));
    folder.write("shop/defaults/holidays.txt", "2026-12-25\n2026-12-28\n");
    let plan = run_in(folder.path(), &[&words[..], &["--plan"]].concat()).ok();
    assert!(plan.contains("shop+holidays.txt:\n  + 2026-12-28\nworkflow days changes: schedule\n"), "{plan}");
}

#[test]
fn a_plan_goes_on_without_a_server_that_does_not_answer() {
    let folder = folder();
    let plan = deploy(&folder, &["--plan", "--server", "http://127.0.0.1:1"]).ok();
    let note = "note: failed to reach a server at http://127.0.0.1:1: nothing is listening there: only schedules were compared";
    assert!(plan.contains(note), "{plan}");
    assert!(plan.contains("7 slots of words in the last 7 days are new: "), "{plan}");
}
