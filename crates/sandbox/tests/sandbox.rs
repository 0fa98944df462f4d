//! The limits of scripts: endless loops, memory, access to the machine, effects on other files.

use std::time::Instant;

use kelos_model::function::FunctionRef;
use kelos_model::probe::Verdict;
use kelos_model::trigger::Trigger;
use kelos_sandbox::{CallError, Limits};

use crate::support::{Folder, id, ids, key, with, words, workflow};

fn tight() -> Limits {
    Limits { load_millis: 200, call_millis: 100, memory_bytes: 16 << 20, ..Limits::default() }
}

/// Loads a file with `text` between two good ones; the good ones must not notice. Returns its problem.
fn beside(text: &str) -> String {
    let folder = Folder::with(tight());
    folder.write("a.js", &workflow("a"));
    folder.write("b.js", &(workflow("b") + text));
    folder.write("c.js", &workflow("c"));
    let loaded = folder.load();
    assert_eq!(ids(&loaded), ["a", "c"], "{text}");
    assert_eq!(loaded.problems.len(), 1, "{:?}", loaded.problems);
    assert_eq!(loaded.problems[0].file, "b.js");
    loaded.problems[0].message.clone()
}

#[test]
fn loops_without_an_end_are_stopped() {
    for text in [
        "while (true) {}",
        "while (true) { try { while (true) {} } catch (e) {} finally { continue; } }",
        "for (;;) celos.alwaysTrigger();",
        "/^(a+)+$/.test('a'.repeat(40) + 'b');",
        "[1].sort(function () { while (true) {} }); [2, 1].sort(function () { while (true) {} });",
        "throw {toJSON: function () { while (true) {} }};",
        "throw Object.defineProperty(new Error(), 'message', {get: function () { while (true) {} }});",
    ] {
        let message = beside(text);
        assert!(
            message.contains("stopped after") || message.starts_with("thrown") || message.contains("without a message"),
            "{text}: {message}"
        );
    }
    let folder = Folder::with(tight());
    // Stopped at the jump back, the engine names the statement before the loop.
    folder.write("loop.js", "var a = [];\n\na.sort(); while (true) { a.sort(); }\n");
    let loaded = folder.load();
    assert_eq!(
        (loaded.problems[0].line, loaded.problems[0].source_line.as_deref()),
        (3, Some("a.sort(); while (true) { a.sort(); }"))
    );
}

#[test]
fn a_stopped_file_is_not_tried_again_at_once() {
    let folder = Folder::with(tight());
    folder.write("loop.js", "while (true) {}");
    assert_eq!(folder.load().evaluated, 1);
    let began = Instant::now();
    let loaded = folder.load();
    assert_eq!((loaded.evaluated, loaded.problems.len()), (0, 1));
    assert!(began.elapsed().as_millis() < 200);
}

#[test]
fn a_stopped_file_is_tried_again_later() {
    let folder = Folder::with(Limits { retry_stopped_millis: 0, ..tight() });
    folder.write("loop.js", "while (true) {}");
    assert_eq!([folder.load().evaluated, folder.load().evaluated], [1, 1]);
}

#[test]
fn memory_bombs_are_stopped() {
    for text in [
        "var a = []; while (true) a.push(new Array(1000).fill(7));",
        "var s = 'x'; while (true) s = s + s + 'y';",
        "function bomb() { var a = []; while (true) a.push({a: [1, 2, 3]}); } bomb();",
        "var m = new Map(); for (var i = 0; ; i++) m.set(i, 'value ' + i);",
        "var b = 3n; while (true) b = b * b;",
        "new Array(4e9).fill(1);",
        "JSON.parse('['.repeat(1000000));",
        "eval('['.repeat(100000));",
    ] {
        let message = beside(text);
        let known = ["out of memory", "RangeError", "stopped after", "SyntaxError", "string too long"];
        assert!(known.iter().any(|word| message.contains(word)), "{text}: {message}");
    }
    assert!(beside("var a = []; while (true) a.push(new Array(1000).fill(7));").contains("at most 16 MiB"));
}

#[test]
fn recursion_without_an_end_is_an_error_of_the_script() {
    for text in [
        "function f() { return f() + 1; } f();",
        "var o = {get a() { return this.a; }}; o.a;",
        "var t = celos.alwaysTrigger(); while (true) t = celos.notTrigger(t);",
    ] {
        let message = beside(text);
        assert!(message.contains("stack") || message.contains("nested deeper"), "{text}: {message}");
    }
    let doubling = "var t = celos.alwaysTrigger(); for (var i = 0; i < 40; i++) t = celos.andTrigger(t, t);";
    assert!(beside(doubling).contains("more than 10000 parts"));
    assert!(beside("(".repeat(200_000).as_str()).contains("stack"));
}

#[test]
fn scripts_reach_nothing_of_the_machine() {
    let names = "require std os process fetch print console setTimeout module load readFile scriptArgs Packages java \
                 XMLHttpRequest WebAssembly performance Atomics SharedArrayBuffer navigator Deno bjson Worker host";
    let checks: Vec<String> = names.split_whitespace().map(|name| format!("typeof {name}")).collect();
    let folder = Folder::new();
    folder.write("a.js", &format!("var types = [{}];\nthrow new Error(types.join());", checks.join(", ")));
    let loaded = folder.load();
    let types = &loaded.problems[0].message;
    assert!(types.split(',').all(|one| one == "undefined"), "{names}: {types}");
}

#[test]
fn modules_and_top_level_await_lead_nowhere() {
    for text in ["import x from 'std';", "import('std');throw new Error('went on')", "await 1;", "export var a = 1;"] {
        assert!(!beside(text).is_empty());
    }
}

#[test]
fn the_handle_may_go_anywhere() {
    fn anywhere<T: Send + Sync + Clone + 'static>() {}
    anywhere::<kelos_sandbox::Scripts>();
}

#[test]
fn files_share_nothing() {
    let folder = Folder::with(Limits { threads: 1, ..Limits::default() });
    folder.write(
        "a.js",
        "leak = 1; Array.prototype.map = null; JSON.stringify = null; celos.alwaysTrigger = null; Error = null;",
    );
    folder.write("b.js", &(workflow("b") + "if (typeof leak !== 'undefined' || ![1].map) throw new Error('leaked');"));
    let loaded = folder.load();
    assert_eq!((ids(&loaded), words(&loaded)), (vec!["b"], vec![]));
}

#[test]
fn a_script_can_break_its_own_world_only() {
    for text in [
        "Error.prepareStackTrace = function () { return 7; }; celos.nothing;",
        "Error.stackTraceLimit = 0; celos.nothing;",
        "globalThis.Error = function () {}; celos.nothing;",
        "Object.keys = null; celos.defineWorkflow({});",
        "delete globalThis.celos; celos.alwaysTrigger();",
        "throw new Proxy({}, {get: function () { throw 1; }});",
        "throw Symbol('x');",
        "throw undefined;",
    ] {
        beside(text);
    }
}

fn function_of(folder: &Folder, name: &str) -> FunctionRef {
    let loaded = folder.load();
    let workflow = loaded.workflows.iter().find(|workflow| workflow.id.as_str() == name);
    match workflow.map(|workflow| &workflow.trigger) {
        Some(Trigger::Function { function }) => function.clone(),
        other => panic!("{other:?} {:?}", loaded.problems),
    }
}

fn trigger(id: &str, function: &str) -> String {
    with(id, &format!("celos.functionTrigger({function})"), "celos.commandExternalService({command: [\"true\"]})")
}

/// The error of calling a trigger's function.
fn failure(function: &str) -> String {
    let folder = Folder::with(tight());
    folder.write("a.js", &trigger("a", function));
    folder.write("b.js", &trigger("b", "function () { return true; }"));
    let (a, b) = (function_of(&folder, "a"), function_of(&folder, "b"));
    let failure = match folder.scripts.ask(&a, &id("a"), &key()) {
        Err(CallError::Failed(problem)) => problem.to_string(),
        other => panic!("{function}: {other:?}"),
    };
    assert_eq!(folder.scripts.ask(&b, &id("b"), &key()).unwrap(), Verdict::Yes);
    failure
}

#[test]
fn calls_are_limited_and_checked_too() {
    assert!(failure("function () { while (true) {} }").contains("a.js:1:"));
    assert!(failure("function () { while (true) {} }").contains("stopped after 100 ms"));
    assert!(
        failure("function () { var a = []; while (true) a.push(new Array(1000).fill(7)); }").contains("out of memory")
    );
    assert!(failure("function f() { f(); }").contains("stack"));
    let promise = failure("function () { return (async function () { return true; })(); }");
    assert!(promise.contains("true, false or \"never\", not a promise"), "{promise}");
    assert!(promise.starts_with("a.js:1:"), "{promise}");
    assert!(failure("function () { return 1; }").contains("not 1"));
    assert!(failure("function () {}").contains("not undefined"));
    assert!(failure("function () { throw 'text'; }").contains("thrown text: text"));
    assert!(failure("function () { throw null; }").contains("null was thrown"));
    assert!(failure("function () { return missing; }").contains("ReferenceError: missing is not defined"));
    let define = format!("function () {{ {} }}", workflow("late"));
    assert!(failure(&define).contains("only while the file is evaluated"));
}

#[test]
fn a_stopped_call_leaves_the_function_usable() {
    let folder = Folder::with(tight());
    folder.write(
        "a.js",
        &trigger(
            "a",
            "function (slot, now) { while (slot.getScheduledTime().getYear() === 2015) {} return \"never\"; }",
        ),
    );
    let function = function_of(&folder, "a");
    let other = kelos_model::SlotKey::parse("2016-01-01").unwrap();
    assert!(folder.scripts.ask(&function, &id("a"), &key()).is_err());
    assert_eq!(folder.scripts.ask(&function, &id("a"), &other).unwrap(), Verdict::Never);
}
