//! Commands that need no server.

use crate::support::{Folder, run};
use serde_json::Value;

const GOOD: &str = r#"
celos.defineWorkflow({
    "id": "hourly",
    "schedule": celos.hourlySchedule(),
    "schedulingStrategy": celos.serialSchedulingStrategy(2),
    "trigger": celos.fileCheckTrigger("/in/${year}-${month}-${day}/${hour}00/_READY"),
    "externalService": celos.commandExternalService({"command": ["true"]})
});
celos.defineWorkflow({
    "id": "after",
    "schedule": celos.dependentSchedule("hourly"),
    "schedulingStrategy": celos.serialSchedulingStrategy(),
    "trigger": celos.andTrigger(celos.delayTrigger(60), celos.successTrigger("hourly")),
    "externalService": celos.commandExternalService({"command": ["true"]})
});
"#;

fn plan(args: &[&str]) -> Value {
    let folder = Folder::with(&[("workflows/good.js", GOOD)]);
    let mut all = vec!["plan", folder.text(), "--json"];
    all.extend(args);
    serde_json::from_str(&run(&all).ok()).expect("JSON")
}

fn workflow<'a>(plan: &'a Value, id: &str) -> &'a Value {
    let all = plan["workflows"].as_array().expect("workflows");
    all.iter().find(|one| one["id"] == id).expect("the workflow")
}

#[test]
fn cron_prints_the_times_after_a_moment() {
    let json = |args: &[&str]| {
        let mut all = vec!["cron", "--json"];
        all.extend(args);
        run(&all).ok()
    };
    assert_eq!(
        json(&["0 0 12 * * ?", "--after", "2016-01-01T00:00Z", "--count", "2"]),
        "{\"times\":[\"2016-01-01T12:00:00Z\",\"2016-01-02T12:00:00Z\"]}\n"
    );
    assert_eq!(
        json(&["0 0 12 * * ?", "--after", "2016-01-01T12:00Z", "--count", "1"]),
        "{\"times\":[\"2016-01-02T12:00:00Z\"]}\n"
    );
    assert_eq!(
        json(&["0 30 2 * * ?", "--after", "2016-03-26T12:00Z", "--count", "2", "--zone", "Europe/Berlin"]),
        "{\"times\":[\"2016-03-27T01:00:00Z\",\"2016-03-28T00:30:00Z\"]}\n",
        "the night without a 02:30"
    );
    assert_eq!(json(&["0 0 0 1 1 ? 2015", "--after", "2016-01-01"]), "{\"times\":[]}\n");
}

#[test]
fn cron_prints_local_times_beside_those_in_utc() {
    let out = run(&["cron", "0 0 12 ? * MON", "--after", "2016-01-01", "--count", "1", "--zone", "Asia/Tokyo"]).ok();
    assert_eq!(out, "2016-01-04T03:00Z  Mon 2016-01-04 12:00:00 JST\n");
}

#[test]
fn a_bad_expression_is_pointed_at() {
    let err = run(&["cron", "0 0 12 ? * 8"]).fails(2);
    let expected = "error: failed to read the cron expression: day-of-week field \"8\" is out of range: \
                    expected 1-7 or SUN-SAT (field 6 of \"0 0 12 ? * 8\")\n  0 0 12 ? * 8\n             ^\n";
    assert!(err.starts_with(expected), "{err}");
    let err = run(&["cron", "0 0 12 *"]).fails(2);
    assert!(err.contains("day-of-week field is missing") && err.contains("six and seven are Quartz's"), "{err}");
    assert!(run(&["cron", "0 0 12 * * ?", "--zone", "Berlin"]).fails(2).contains("Europe/Berlin"));
    assert!(run(&["cron", "0 0 12 * * ?", "--after", "soon"]).fails(2).contains("2013-11-26T17:23Z"));
}

#[test]
fn five_fields_are_those_of_a_crontab() {
    let times = |line: &str| run(&["cron", line, "--after", "2024-01-01T13:00Z", "--count", "2"]).ok();
    assert_eq!(times("*/5 * * * *"), "2024-01-01T13:05Z  Mon\n2024-01-01T13:10Z  Mon\n");
    assert_eq!(times("0 12 * * 1"), "2024-01-08T12:00Z  Mon\n2024-01-15T12:00Z  Mon\n");
    assert_eq!(times("0 0 12 ? * 1"), "2024-01-07T12:00Z  Sun\n2024-01-14T12:00Z  Sun\n");
    assert_eq!(times("0 12 3 * MON"), "2024-01-03T12:00Z  Wed\n2024-01-08T12:00Z  Mon\n");
    let err = run(&["cron", "0 12 ? * 2"]).fails(2);
    assert!(err.contains("has numbers beside the \"?\" of Quartz"), "{err}");
}

#[test]
fn types_are_for_editors() {
    let out = run(&["types"]).ok();
    assert!(out.contains("function defineWorkflow("), "{out}");
}

#[test]
fn check_says_that_a_folder_is_good() {
    let folder = Folder::with(&[("workflows/good.js", GOOD)]);
    let told =
        "at the first start 336 past slots will run: after 168, hourly 168\n2 workflows in 1 file: no problems\n";
    assert_eq!(run(&["check", folder.text()]).ok(), told);
    let flat = Folder::with(&[("good.js", GOOD)]);
    let found: Value = serde_json::from_str(&run(&["check", flat.text(), "--json"]).ok()).expect("JSON");
    assert_eq!(found["ok"], true);
    assert_eq!(found["workflows"], serde_json::json!(["after", "hourly"]));
    assert_eq!(found["pastSlots"], serde_json::json!({ "after": 168, "hourly": 168 }));
    let chosen = GOOD.replace("\"trigger\"", "\"catchUp\": \"latest\", \"trigger\"");
    let folder = Folder::with(&[("good.js", &*chosen)]);
    assert_eq!(run(&["check", folder.text()]).ok(), "2 workflows in 1 file: no problems\n");
    let chosen =
        GOOD.replace("\"trigger\"", "\"catchUp\": \"latest\", \"startTime\": \"2024-01-01T00:00Z\", \"trigger\"");
    let folder = Folder::with(&[("good.js", &*chosen)]);
    let said = run(&["check", folder.text()]).ok();
    assert!(said.starts_with("at the first start ") && !said.contains("will run"), "{said}");
    assert!(said.contains(" past slots of hourly are not planned, 2024-01-01T00:00Z to "), "{said}");
    let way = ": catchUp is \"latest\"; `kelos backfill hourly --from 2024-01-01T00:00Z --to ";
    assert!(said.contains(way) && said.contains("` opens them\n"), "{said}");
    let found: Value = serde_json::from_str(&run(&["check", folder.text(), "--json"]).ok()).expect("JSON");
    let held = &found["heldBack"]["hourly"];
    assert_eq!((&held["by"], &held["first"]), (&"latest".into(), &"2024-01-01T00:00:00Z".into()), "{found}");
}

#[test]
fn check_says_where_a_folder_is_broken() {
    let broken = "var x = 1;\n\nceloss.defineWorkflow({});\n";
    let folder = Folder::with(&[("workflows/good.js", GOOD), ("workflows/broken.js", broken)]);
    let said = run(&["check", folder.text()]);
    assert_eq!(said.code, 1);
    assert!(said.out.starts_with("broken.js:3:"), "{}", said.out);
    assert!(said.out.contains("    celoss.defineWorkflow({});\n    ^"), "{}", said.out);
    assert!(said.out.ends_with("2 workflows in 2 files: 1 problem\n"), "{}", said.out);
    let said = run(&["check", folder.text(), "--json"]);
    let found: Value = serde_json::from_str(&said.out).expect("JSON");
    assert_eq!((said.code, &found["ok"]), (1, &Value::Bool(false)));
    assert_eq!(found["problems"][0]["file"], "broken.js");
    assert_eq!(found["problems"][0]["line"], 3);
}

#[test]
fn check_wants_a_folder_with_scripts() {
    let empty = Folder::with(&[]);
    assert!(run(&["check", empty.text()]).fails(2).contains("there is no *.js in"));
    assert!(run(&["check", "/no/such/folder"]).fails(2).contains("there is no such folder"));
}

#[test]
fn check_finds_defaults_beside_a_folder_of_workflows() {
    let script = "celos.importDefaults(\"site\"); if (!SITE) throw new Error(\"no site\");";
    let folder = Folder::with(&[("workflows/a.js", script), ("defaults/site.js", "var SITE = 1;")]);
    let workflows = folder.path().join("workflows");
    run(&["check", workflows.to_str().expect("text")]).ok();
    run(&["check", folder.text()]).ok();
}

#[test]
fn plan_counts_the_slots_of_a_leap_year() {
    let plan = plan(&["--from", "2016-01-01", "--to", "2017-01-01"]);
    let hourly = workflow(&plan, "hourly");
    assert_eq!(hourly["slots"], 8784);
    assert_eq!(hourly["first"], "2016-01-01T00:00:00.000Z");
    assert_eq!(hourly["last"], "2016-12-31T23:00:00.000Z");
    assert_eq!(hourly["states"], serde_json::json!({ "succeeded": 8784 }));
    assert_eq!(workflow(&plan, "after")["states"], serde_json::json!({ "succeeded": 8784 }));
}

#[test]
fn plan_supposes_what_it_is_told() {
    let args = ["--from", "2016-01-01", "--to", "2016-01-02", "--without", "/in/2016-01-01/07", "--slots"];
    let plan = plan(&args);
    let (hourly, after) = (workflow(&plan, "hourly"), workflow(&plan, "after"));
    assert_eq!(hourly["states"], serde_json::json!({ "waiting": 1, "succeeded": 23 }));
    assert_eq!(after["states"], serde_json::json!({ "waiting": 1, "succeeded": 23 }));
    let waiting = &hourly["list"][7];
    assert_eq!(waiting["time"], "2016-01-01T07:00:00.000Z");
    assert_eq!(waiting["state"], "waiting");
    assert!(waiting["waitsFor"][0].as_str().expect("words").contains("/in/2016-01-01/0700/_READY"));
}

#[test]
fn plan_tells_the_moves_of_each_slot() {
    let args =
        ["--from", "2016-01-01", "--to", "2016-01-01T04Z", "--slots", "--run-time", "2h", "--workflow", "hourly"];
    let plan = plan(&args);
    assert_eq!(plan["workflows"].as_array().map(Vec::len), Some(1));
    let hourly = workflow(&plan, "hourly");
    assert_eq!(hourly["mostAtOnce"], 2, "two at a time, each of two hours, one new each hour");
    let moves = hourly["list"][1]["moves"].as_array().expect("moves");
    let names: Vec<&str> = moves.iter().map(|one| one["state"].as_str().expect("a state")).collect();
    assert_eq!(names, ["waiting", "queued", "dispatched", "running", "succeeded"]);
    assert_eq!(moves[0]["at"], "2016-01-01T01:00:00.001Z", "a slot exists once its time has passed");
    assert_eq!(moves[4]["at"], "2016-01-01T03:00:00.001Z");
}

#[test]
fn plan_supposes_that_the_past_went_well() {
    let later = r#"celos.defineWorkflow({
        "id": "later",
        "schedule": celos.hourlySchedule(),
        "schedulingStrategy": celos.serialSchedulingStrategy(),
        "trigger": celos.offsetTrigger(-3600, celos.successTrigger("hourly")),
        "externalService": celos.commandExternalService({"command": ["true"]})
    });"#;
    let folder = Folder::with(&[("good.js", GOOD), ("later.js", later)]);
    let plan = folder.json(&["plan", "--from", "2016-01-01", "--to", "2016-01-02", "--json"]);
    assert_eq!(workflow(&plan, "later")["states"], serde_json::json!({ "succeeded": 24 }));
}

#[test]
fn plan_says_what_it_assumed_of_the_outside() {
    let gated = r#"celos.defineWorkflow({
        "id": "gated",
        "schedule": celos.hourlySchedule(),
        "schedulingStrategy": celos.serialSchedulingStrategy(),
        "pools": [celos.pool("spark", 4)],
        "trigger": celos.andTrigger(celos.fileCheckTrigger("file:///in/${year}-${month}-${day}/${hour}"), celos.offsetTrigger(-86400, celos.successTrigger("hourly"))),
        "externalService": celos.commandExternalService({"command": ["true"]})
    });"#;
    let folder = Folder::with(&[("good.js", GOOD), ("gated.js", gated)]);
    let plan = ["plan", "--from", "2016-01-01", "--to", "2016-01-02", "--workflow", "gated", "--run-time", "90"];
    let plan = |more: &[&str]| folder.run(&[&plan[..], &["--without", "/in/2016-01-01/03"], more].concat()).ok();
    let said = plan(&[]);
    let expected = [
        "assumed, since nothing outside was asked:\n",
        "  there: file:///in/2016-01-01/00, and 22 others that differ in digits alone\n",
        "  not there: file:///in/2016-01-01/03\n",
        "succeed and take 1 min 30 s each: ",
        "  pool spark has 4 permits, and nothing else takes any\n",
        "  slots before 2016-01-01T00:00Z have succeeded\n",
    ];
    expected.iter().for_each(|line| assert!(said.contains(line), "{line}: {said}"));
    let told: Value = serde_json::from_str(&plan(&["--json"])).expect("JSON");
    let assumed = &told["assumed"];
    let first = |group: &&Value| group["first"] == "file:///in/2016-01-01/00" && group["there"] == true;
    let paths = assumed["paths"].as_array().expect("paths");
    assert_eq!(paths.iter().find(first).expect("those that are there")["count"], 23, "{assumed}");
    assert_eq!((&assumed["runSeconds"], &assumed["earlierSlotsSucceeded"]), (&90.into(), &true.into()), "{assumed}");
    let plain = Folder::with(&[("good.js", "")]).run(&["plan", "--from", "2016-01-01", "--to", "2016-01-02"]).ok();
    assert!(!plain.contains("assumed"), "{plain}");
}

#[test]
fn plan_refuses_what_makes_no_sense() {
    let folder = Folder::with(&[("good.js", GOOD)]);
    let plan = |args: &[&str]| {
        let mut all = vec!["plan", folder.text()];
        all.extend(args);
        run(&all).fails(2)
    };
    assert!(plan(&["--from", "2016-01-02", "--to", "2016-01-01"]).contains("the range is empty"));
    let err = plan(&["--from", "2016-01-01", "--to", "2016-01-02", "--workflow", "hurly"]);
    assert!(err.contains("did you mean \"hourly\"? there are: after, hourly"), "{err}");
}

#[test]
fn nothing_is_left_behind_by_check_and_plan() {
    let folder = Folder::with(&[("good.js", GOOD)]);
    folder.run(&["check"]).ok();
    folder.run(&["plan", "--from", "2016-01-01", "--to", "2016-01-02"]).ok();
    assert_eq!(std::fs::read_dir(folder.path()).expect("the folder").count(), 1);
}

#[test]
fn serve_wants_its_folders() {
    let folder = Folder::with(&[("workflows/good.js", GOOD)]);
    assert!(run(&["serve"]).fails(2).contains("--port"));
    let err = folder.run(&["serve", "-port", "0", "-workflows", "nowhere"]).fails(2);
    assert!(err.contains("failed to use nowhere as the workflows directory: there is no such folder"), "{err}");
    assert!(err.contains("--workflows"), "{err}");
    let err = folder.run(&["serve", "--port=0", "--workflows=workflows", "--defaults=nowhere"]).fails(2);
    assert!(err.contains("defaults directory"), "{err}");
    let args = ["serve", "--port=0", "--workflows=workflows", "--defaults=workflows", "--db=nowhere"];
    assert!(folder.run(&args).fails(2).contains("state database directory"));
}

#[test]
fn completions_know_the_commands() {
    for shell in ["bash", "zsh", "fish"] {
        let out = run(&["completions", shell]).ok();
        assert!(out.contains("backfill") && out.contains("autoSchedule"), "{shell}");
        assert!(!out.contains("__shim"), "{shell}");
    }
}

#[test]
fn a_mistyped_command_is_guessed() {
    assert!(run(&["bakfill"]).fails(2).contains("'backfill'"));
    assert!(run(&["slots", "--state", "runing"]).fails(2).contains("'running'"));
}

#[test]
fn no_server_is_an_exit_code_of_its_own() {
    let err = run(&["ls", "--server", "http://127.0.0.1:1"]).fails(3);
    assert!(err.contains("failed to reach a server at http://127.0.0.1:1: nothing is listening there"), "{err}");
    assert!(err.contains("kelos up"), "{err}");
}

#[test]
fn words_that_others_use_are_commands_too() {
    for command in [&["status"][..], &["trigger", "w"], &["start", "w"]] {
        let err = run(&[command, &["--server", "http://127.0.0.1:1"]].concat()).fails(3);
        assert!(err.contains("nothing is listening there"), "{command:?}: {err}");
    }
}

#[test]
fn the_options_of_a_command_stand_above_those_of_its_connection() {
    let help = run(&["resume", "--help"]).ok();
    let at = |words: &str| help.find(words).unwrap_or_else(|| panic!("{words} is not in {help}"));
    assert!(at("--run <RUN>") < at("TLS:") && at("--from <STEP>") < at("TLS:"), "{help}");
}

#[test]
fn the_exit_codes_are_in_the_help() {
    let out = run(&["--help"]).ok();
    assert!(out.contains("Exit codes:") && out.contains("3  no server is reachable"), "{out}");
}

#[test]
fn groups_that_are_not_understood_keep_a_server_from_starting() {
    let twice = r#"{"groups": [{"name": "a", "workflows": ["x", "x"]}]}"#;
    let folder = Folder::with(&[("workflows/good.js", GOOD), ("groups.json", twice)]);
    let missing = folder.run(&["up", "--port", "0", "--config", "missing.json"]).fails(2);
    assert!(missing.contains("use missing.json as the file of --config: it is not there"), "{missing}");
    let bad = folder.run(&["up", "--port", "0", "--config", "groups.json"]).fails(2);
    assert!(bad.contains("the workflow \"x\" is twice in group \"a\", expected it once"), "{bad}");
}
