//! Changes from load to load: files are changed, broken, added and removed.

use std::fs;
use std::sync::Arc;

use kelos_model::probe::Verdict;
use kelos_model::trigger::Trigger;
use kelos_model::workflow::Properties;
use kelos_sandbox::{CallError, Folders, Limits, Severity, check, warnings};
use serde_json::json;

use crate::support::{Folder, id, ids, key, with, words, workflow};

const COMMAND: &str = "celos.commandExternalService({command: [\"true\"]})";

#[test]
fn unchanged_files_are_not_evaluated_again() {
    let folder = Folder::new();
    folder.write("a.js", &workflow("a"));
    folder.write("b.js", &(workflow("b") + &workflow("b2")));
    let first = folder.load();
    assert_eq!((first.evaluated, first.unchanged), (2, 0));
    folder.write("b.js", &(workflow("b") + "// a remark\n" + &workflow("b2").replace("hourly", "minutely")));
    let second = folder.load();
    assert_eq!((second.evaluated, second.unchanged), (1, 1));
    let same: Vec<bool> = first.workflows.iter().zip(&second.workflows).map(|(a, b)| Arc::ptr_eq(a, b)).collect();
    assert_eq!((ids(&second), same), (vec!["a", "b", "b2"], vec![true, true, false]));
    assert_eq!(folder.load().evaluated, 0);
}

#[test]
fn a_change_of_the_same_length_is_noticed() {
    let folder = Folder::new();
    for name in ["aaa", "bbb", "ccc", "ddd"] {
        folder.write("a.js", &workflow(name));
        assert_eq!(ids(&folder.load()), [name]);
    }
}

#[test]
fn a_broken_file_keeps_its_last_good_version_whole() {
    let folder = Folder::new();
    folder.write("a.js", &(workflow("one") + &workflow("two")));
    let good = folder.load();
    folder.write("a.js", &(workflow("three") + "\n  celos.nonsense();\n"));
    let broken = folder.load();
    assert_eq!(ids(&broken), ["one", "two"]);
    assert!(Arc::ptr_eq(&good.workflows[0], &broken.workflows[0]));
    let problem = &broken.problems[0];
    assert_eq!((problem.line, problem.column, problem.kept_last_good), (3, 3, true));
    assert_eq!(problem.source_line.as_deref(), Some("  celos.nonsense();"));
    assert!(broken.sources["a.js"].contains("nonsense"));
    assert_eq!(words(&folder.load()), words(&broken), "an unchanged broken file keeps its problem");
    folder.write("a.js", &workflow("three"));
    assert_eq!(ids(&folder.load()), ["three"]);
}

#[test]
fn files_that_were_deployed_together_are_one_project_with_its_own_defaults() {
    let folder = Folder::new();
    let script = |id: &str| format!("celos.importDefaults('names');\n{}", workflow(&format!("{id}-\" + NAME + \"")));
    folder.write("shop+a.js", &script("a"));
    folder.write("shop+b.js", &script("b"));
    folder.write("other.js", &script("c"));
    folder.write("defaults/names.js", "var NAME = 'all';");
    folder.write("defaults/shop+names.js", "var NAME = 'shop';");
    let loaded = folder.load();
    assert_eq!((ids(&loaded), words(&loaded)), (vec!["a-shop", "b-shop", "c-all"], vec![]));
    let projects: Vec<&str> = loaded.workflows.iter().map(|one| one.project.as_str()).collect();
    assert_eq!(projects, ["shop", "shop", "other"]);
    assert!(loaded.sources.contains_key("defaults/shop+names.js"), "{:?}", loaded.sources.keys());
    fs::remove_file(folder.path("defaults/shop+names.js")).unwrap();
    assert_eq!(ids(&folder.load()), ["a-all", "b-all", "c-all"], "the common one is left");
    folder.write("defaults/shop+names.js", "var NAME = 'anew';");
    let anew = folder.load();
    assert_eq!((ids(&anew), anew.evaluated), (vec!["a-anew", "b-anew", "c-all"], 2));
}

#[test]
fn all_mistyped_fields_of_a_file_are_found_and_refuse_it() {
    let folder = Folder::new();
    folder.write("a.js", &workflow("one"));
    folder.load();
    let mistyped = |id: &str, field: &str| with(id, "celos.alwaysTrigger()", &format!("{COMMAND}, {field}"));
    folder.write("a.js", &(mistyped("one", "maxRetryCont: 3, owner: 'ann'") + &mistyped("two", "tagz: []")));
    folder.write("b.js", &with("three", "celos.successTrigger('two')", COMMAND));
    let loaded = folder.load();
    let expected = [
        ("a.js:1:", ": celos.defineWorkflow: unknown field 'maxRetryCont'; did you mean 'maxRetryCount'?"),
        ("a.js:1:", ": warning: celos.defineWorkflow: unknown field 'owner' is ignored; known fields: "),
        ("a.js:2:", ": celos.defineWorkflow: unknown field 'tagz'; did you mean 'tags'?"),
    ];
    let found = words(&loaded);
    let is_told = |(one, (line, told)): (&String, (&str, &str))| one.starts_with(line) && one.contains(told);
    assert!(found.len() == 3 && found.iter().zip(expected).all(is_told), "{found:?}");
    assert!(loaded.problems.iter().all(|problem| problem.column > 1), "each at its field: {found:?}");
    let errors: Vec<bool> = loaded.problems.iter().map(|one| one.kept_last_good).collect();
    assert_eq!((ids(&loaded), errors), (vec!["one", "three"], vec![true, false, true]));
    assert!(warnings(&loaded).is_empty(), "who waits for what was refused is not wrong: {:?}", warnings(&loaded));
}

#[test]
fn a_file_that_was_never_good_yields_nothing() {
    let folder = Folder::new();
    folder.write("a.js", &(workflow("one") + "celos.nonsense();"));
    let loaded = folder.load();
    assert!(loaded.workflows.is_empty() && loaded.has_errors() && !loaded.problems[0].kept_last_good);
}

#[test]
fn a_remembered_version_is_used_while_the_file_is_broken() {
    let before = Folder::new();
    before.write(
        "a.js",
        &(workflow("plain") + &with("asked", "celos.functionTrigger(function () { return true; })", COMMAND)),
    );
    let remembered = before.load().workflows;

    let folder = Folder::new();
    folder.write("a.js", "celos.nonsense();");
    folder.scripts.remember("a.js", remembered.clone());
    folder.scripts.remember("gone.js", remembered.clone());
    let loaded = folder.load();
    assert_eq!(ids(&loaded), ["asked", "plain"]);
    assert!(loaded.problems[0].kept_last_good);
    let Trigger::Function { function } = &loaded.workflows[0].trigger else { panic!() };
    let refusal = folder.scripts.ask(function, &id("asked"), &key()).unwrap_err().to_string();
    assert_eq!(
        refusal,
        "function 0 of a.js is not there: the file was broken when Kelos started, and only its data is remembered"
    );

    folder.write(
        "a.js",
        &(workflow("plain") + &with("asked", "celos.functionTrigger(function () { return true; })", COMMAND)),
    );
    let mended = folder.load();
    assert!(Arc::ptr_eq(&mended.workflows[0], &remembered[0]), "an equal definition stays the same");
    assert_eq!(folder.scripts.ask(function, &id("asked"), &key()).unwrap(), Verdict::Yes);
}

#[test]
fn files_come_and_go() {
    let folder = Folder::new();
    folder.write("b.js", &workflow("b"));
    folder.write("notes.txt", "nothing");
    folder.write(".hidden.js", "nonsense(");
    assert_eq!(ids(&folder.load()), ["b"]);
    folder.write("a.js", &workflow("a"));
    assert_eq!(ids(&folder.load()), ["a", "b"]);
    folder.remove("b.js");
    let loaded = folder.load();
    assert_eq!((ids(&loaded), loaded.sources.len()), (vec!["a"], 1));
}

#[test]
fn a_folder_that_goes_away_takes_nothing_with_it() {
    let folder = Folder::new();
    folder.write("a.js", &workflow("a"));
    let _first = folder.load();
    fs::rename(folder.path("workflows"), folder.path("elsewhere")).unwrap();
    let loaded = folder.load();
    assert_eq!(ids(&loaded), ["a"]);
    assert!(loaded.problems[0].kept_last_good && loaded.problems[0].message.contains("folder of workflows"));
    fs::rename(folder.path("elsewhere"), folder.path("workflows")).unwrap();
    assert_eq!(words(&folder.load()), [""; 0]);
}

#[test]
fn files_that_are_no_text_are_problems() {
    let folder = Folder::with(Limits { file_bytes: 1000, ..Limits::default() });
    fs::write(folder.path("workflows/a.js"), b"var a = 1;\n\xff\xfe").unwrap();
    fs::write(folder.path("workflows/b.js"), b"var a = '\0';").unwrap();
    fs::write(folder.path("workflows/c.js"), "x".repeat(2000)).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink("nowhere", folder.path("workflows/d.js")).unwrap();
    let found = words(&folder.load());
    assert_eq!(found[0], "a.js: the file is not UTF-8 text: the first bad byte is in line 2");
    assert_eq!(found[1], "b.js: the file contains a NUL character in line 1, column 10");
    assert_eq!(found[2], "c.js: the file is longer than 1000 bytes");
    #[cfg(unix)]
    assert_eq!(found[3], "d.js: the file is not there");
}

#[test]
fn one_id_in_two_files_belongs_to_the_first_and_both_are_named() {
    let folder = Folder::new();
    folder.write("b.js", &workflow("x"));
    assert_eq!(folder.load().workflows[0].source.file, "b.js");
    folder.write("a.js", &("\n".to_owned() + &workflow("x")));
    folder.write("b.js", &(workflow("x") + &workflow("y")));
    let loaded = folder.load();
    assert_eq!(ids(&loaded), ["x", "y"]);
    assert_eq!(loaded.workflows[0].source.file, "a.js");
    let problem = &loaded.problems[0];
    assert_eq!(
        problem.to_string(),
        "b.js:1:1: Workflow with this ID already exists: x is defined in a.js:2 and in b.js:1; the first one is used"
    );
    assert_eq!((problem.severity, problem.workflow.clone()), (Severity::Error, Some(id("x"))));
    folder.remove("a.js");
    let loaded = folder.load();
    assert_eq!((loaded.workflows[0].source.file.as_str(), loaded.problems.len()), ("b.js", 0));
}

#[test]
fn a_changed_defaults_file_has_its_importers_evaluated_again() {
    let folder = Folder::new();
    folder.write("defaults/site.js", "var name = 'old';");
    folder.write("a.js", &("importDefaults('site');\n".to_owned() + &workflow("a").replace("\"a\"", "name")));
    folder.write("b.js", &workflow("b"));
    let loaded = folder.load();
    assert_eq!(ids(&loaded), ["b", "old"]);
    assert_eq!(&*loaded.sources["defaults/site.js"], "var name = 'old';");
    folder.write("defaults/site.js", "var name = 'new';");
    let loaded = folder.load();
    assert_eq!((ids(&loaded), loaded.evaluated), (vec!["b", "new"], 1));
    fs::remove_file(folder.path("defaults/site.js")).unwrap();
    let loaded = folder.load();
    assert_eq!((ids(&loaded), loaded.problems.len()), (vec!["b", "new"], 1));
    folder.write("defaults/site.js", "var name = 'new';");
    assert_eq!(words(&folder.load()), [""; 0]);
}

#[test]
fn a_changed_register_has_its_readers_evaluated_again() {
    let folder = Folder::new();
    let all = "celos.forEachRegister('jobs', function (key, value) { WORKFLOW });"
        .replace("WORKFLOW", &workflow("a").replace("\"a\"", "value.id"));
    folder.write("all.js", &all);
    folder.write("one.js", &("var one = celos.getRegister('other', 'k');\n".to_owned() + &workflow("one")));
    assert_eq!(ids(&folder.load()), ["one"]);
    folder.registers.0.lock().unwrap().push(("jobs".into(), "k".into(), json!({"id": "made"})));
    let loaded = folder.load();
    assert_eq!((ids(&loaded), loaded.evaluated), (vec!["made", "one"], 1));
    assert_eq!(folder.load().evaluated, 0);
}

#[test]
fn a_file_that_looks_at_paths_is_evaluated_each_time() {
    let folder = Folder::new();
    folder.write("a.js", "if (celos.hdfsCheck('/there', null, 'hdfs://n')) throw new Error('is there');");
    folder.write("b.js", "celos.hdfsCheck('/broken', null, 'hdfs://n');");
    let loaded = folder.load();
    assert_eq!(words(&loaded), ["a.js:1:60: is there", "b.js:1:6: celos.hdfsCheck: the name node is gone"]);
    assert_eq!(folder.load().evaluated, 2);
}

#[test]
fn functions_see_their_slot_and_the_present() {
    let folder = Folder::new();
    folder.write("defaults/site.js", "var CELOS_DEFAULT_OOZIE_PROPERTIES = {a: 'default', b: 'default'};");
    let oozie = "celos.oozieExternalService(function (slot) { return {b: slot, c: slot.getWorkflowID(), n: seen++}; }, 'http://o')";
    let command = "celos.commandExternalService(function (slot) { return {command: ['run', slot.getScheduledTime().hour()], env: {A: 1}}; })";
    let trigger = "celos.functionTrigger(function (slot, now) { return now.getYear() > 2020 && celos.hdfsCheck('/there', slot, 'hdfs://n'); })";
    let text = "importDefaults('site'); var seen = 1;\n".to_owned()
        + &with("a", trigger, oozie)
        + &with("b", "celos.alwaysTrigger()", command);
    folder.write("f.js", &text);
    let loaded = folder.load();
    let properties = |n: usize| {
        let workflow = &loaded.workflows[n];
        let Properties::Function(function) = &workflow.job.properties else { panic!() };
        folder.scripts.properties(function, &workflow.id, &key()).unwrap()
    };
    let slot = "a@2015-09-13T13:40:00.000Z";
    assert_eq!(json!(properties(0)), json!({"a": "default", "b": slot, "c": "a", "n": "1"}));
    assert_eq!(json!(properties(0))["n"], "2", "the world is kept for further calls");
    assert_eq!(json!(properties(1)), json!({"command": ["run", "13"], "env": {"A": "1"}}));
}

#[test]
fn references_hold_until_their_function_changes() {
    let trigger = "celos.functionTrigger(function (slot, now) { return now.getYear() > 2020 && celos.hdfsCheck('/there', slot, 'hdfs://n'); })";
    let text = with("a", trigger, COMMAND);
    let folder = Folder::new();
    folder.write("f.js", &text);
    let loaded = folder.load();
    let Trigger::Function { function } = &loaded.workflows[0].trigger else { panic!() };
    assert_eq!(folder.scripts.ask(function, &id("a"), &key()).unwrap(), Verdict::Yes);

    // A load that leaves the function as it was leaves its reference valid, another one doesn't.
    folder.write("f.js", &(text.clone() + "// more\n"));
    assert_eq!(folder.load().evaluated, 1);
    assert_eq!(folder.scripts.ask(function, &id("a"), &key()).unwrap(), Verdict::Yes);
    folder.write("f.js", "celos.nonsense();");
    assert!(folder.load().problems[0].kept_last_good);
    assert_eq!(folder.scripts.ask(function, &id("a"), &key()).unwrap(), Verdict::Yes, "of the last good version");
    folder.write("f.js", &text.replace("2020", "9000"));
    let _changed = folder.load();
    let refusal = folder.scripts.ask(function, &id("a"), &key());
    assert!(matches!(refusal, Err(CallError::Unknown { reason: "the function was changed since", .. })), "{refusal:?}");
    folder.remove("f.js");
    let _gone = folder.load();
    let refusal = folder.scripts.ask(function, &id("a"), &key()).unwrap_err();
    assert_eq!(refusal.to_string(), "function 0 of f.js is not there: the file is not loaded");
}

#[test]
fn more_files_than_kept_worlds_can_be_called() {
    let folder = Folder::with(Limits { kept_worlds: 2, threads: 2, ..Limits::default() });
    for n in 0..12 {
        folder.write(
            &format!("f{n}.js"),
            &with(
                &format!("w{n}"),
                &format!("celos.functionTrigger(function () {{ return {}; }})", n % 2 == 0),
                COMMAND,
            ),
        );
    }
    let loaded = folder.load();
    for _ in 0..2 {
        for workflow in &loaded.workflows {
            let Trigger::Function { function } = &workflow.trigger else { panic!() };
            let even = workflow.id.as_str()[1..].parse::<u32>().unwrap() % 2 == 0;
            let verdict = folder.scripts.ask(function, &workflow.id, &key()).unwrap();
            assert_eq!(verdict, if even { Verdict::Yes } else { Verdict::No });
        }
    }
}

#[test]
fn checking_asks_nothing_and_warns_of_what_leads_nowhere() {
    let folder = Folder::new();
    folder.write(
        "a.js",
        &(with("a", "celos.successTrigger('bb')", COMMAND)
            + &workflow("b").replace("hourlySchedule()", "dependentSchedule('c')")),
    );
    folder.write("c.js", &workflow("c").replace("hourlySchedule()", "dependentSchedule('b')"));
    folder.write("d.js", "if (celos.hdfsCheck('/there', null, 'hdfs://n')) throw new Error('asked');");
    folder.write("e.js", &workflow("e").replace("hourlySchedule()", "dependentSchedule('nobody')"));
    let folders = Folders { workflows: folder.path("workflows"), defaults: folder.path("defaults") };
    let loaded = check(folders, Limits::default(), std::sync::Arc::new(kelos_door_stolos::TasksJson), None).unwrap();
    assert!(!loaded.has_errors());
    let found = words(&loaded);
    assert_eq!(found.len(), 5, "{found:#?}");
    assert!(
        found[0].starts_with("d.js: warning: celos.hdfsCheck of hdfs://n/there is taken to be false"),
        "{}",
        found[0]
    );
    assert_eq!(
        found[1],
        "a.js:1:1: warning: the trigger of \"a\" waits for workflow \"bb\", which nobody defines (did you mean \"b\"?)"
    );
    assert!(found[2].contains("b -> c -> b") && found[3].contains("b -> c -> b"), "{found:#?}");
    assert!(found[4].contains("\"nobody\""));
}

#[test]
fn a_rate_that_never_lets_anything_start_is_refused_and_two_are_told_of() {
    let rated = |id: &str, rate: &str| {
        let pools = format!("schedulingStrategy: celos.serialSchedulingStrategy(), pools: [celos.rate({rate})]");
        workflow(id).replace("schedulingStrategy: celos.serialSchedulingStrategy()", &pools)
    };
    let told = |files: &[&str]| {
        let folder = Folder::new();
        files.iter().enumerate().for_each(|(n, text)| folder.write(&format!("{n}.js"), text));
        let folders = Folders { workflows: folder.path("workflows"), defaults: folder.path("defaults") };
        let syntax = std::sync::Arc::new(kelos_door_stolos::TasksJson);
        words(&check(folders, Limits::default(), syntax, None).unwrap()).join("\n")
    };
    assert_eq!(told(&[&rated("a", "'crm', 60, 60, {burst: 10, concurrent: 4}")]), "");
    for (rate, words) in [
        ("'crm', 0, 60", "tokens: expected a number >= 1"),
        ("'crm', 60, 0", "seconds: expected a number from 0.001"),
        ("'crm', 60", "seconds: expected a number"),
        ("'crm', 60, 60, {brust: 1}", "unknown option \"brust\""),
        ("'crm', 60, 60, {burst: 2, permits: 3}", "takes 3 at once of a rate that gives 2 could never go"),
        ("'a/b', 60, 60", "slash"),
    ] {
        assert!(told(&[&rated("a", rate)]).contains(words), "{rate}: {}", told(&[&rated("a", rate)]));
    }
    let disputed = told(&[&rated("a", "'crm', 60, 60"), &rated("b", "'crm', 1, 2")]);
    assert!(disputed.contains("the slowest rate holds"), "{disputed}");
    assert!(!disputed.contains("never runs"), "{disputed}");
    let pooled = rated("b", "").replace("celos.rate()", "celos.pool('crm', 4, 2)");
    let too_many = told(&[&rated("a", "'crm', 1, 60"), &pooled]);
    let words = "\"b\" never runs: a run of it takes 2 tokens of pool \"crm\", of which at most 1 add up by \"a\"";
    assert!(too_many.contains(words), "{too_many}");
}

#[test]
fn a_pool_of_several_sizes_is_told_of_with_who_gives_them() {
    let folder = Folder::new();
    let pooled = |id: &str, pool: &str| {
        let pools = format!("schedulingStrategy: celos.serialSchedulingStrategy(), pools: [celos.pool({pool})]");
        workflow(id).replace("schedulingStrategy: celos.serialSchedulingStrategy()", &pools)
    };
    folder.write("a.js", &(pooled("a", "'spark', 8, 6") + &pooled("b", "'other', 3")));
    folder.write("c.js", &pooled("c", "'spark', 4"));
    let folders = Folders { workflows: folder.path("workflows"), defaults: folder.path("defaults") };
    let found =
        words(&check(folders, Limits::default(), std::sync::Arc::new(kelos_door_stolos::TasksJson), None).unwrap());
    assert_eq!(
        found,
        [
            "a.js:1:1: warning: pool \"spark\" has 8 permits by \"a\", and 4 by \"c\": the smallest size holds \
             (define it once, in a file of the defaults folder)",
            "a.js:1:1: warning: \"a\" never runs: a run of it takes 6 permits of pool \"spark\", which has 4 by \"c\"",
        ]
    );
}

#[test]
fn a_missing_folder_is_a_problem() {
    let folders = Folders { workflows: "no-such-folder".into(), defaults: "no-such-folder".into() };
    let loaded = check(folders, Limits::default(), std::sync::Arc::new(kelos_door_stolos::TasksJson), None).unwrap();
    assert!(
        loaded.has_errors() && loaded.problems[0].to_string().starts_with("no-such-folder: the folder of workflows")
    );
}
