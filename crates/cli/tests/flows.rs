//! Runs of flows on the command line: started by a name, followed, shown, signalled and resumed.

use crate::support::{Folder, Server, eventually};

const SCRIPT: &str = r#"
kelos.flow("etl", { concurrency: 9, steps: {
  load: { shell: 'test -z "$fails" || test -e MENDED || exit 3; printf \'{"files": ["a", "b"]}\' > "$KELOS_OUTPUTS"' },
  each: { needs: "load", forEach: "files", shell: 'echo $item' },
  ok: { needs: "load", signal: "approval" },
  ship: { needs: ["each", "ok"], shell: 'echo $approval' },
}});
kelos.workflow("plain", { schedule: "0 0 1 1 *", catchUp: "skip", shell: "exit $code" });
"#;

fn up() -> (Folder, Server) {
    let folder = Folder::with(&[]);
    let mended = folder.path().join("mended").display().to_string();
    folder.write("workflows/etl.js", &SCRIPT.replace("MENDED", &mended));
    let server = Server::up(&folder);
    eventually("the workflows", || folder.run(&["ls"]).ok().contains("plain").then_some(()));
    (folder, server)
}

fn until(folder: &Folder, run: &str, said: &str) -> String {
    eventually(said, || Some(folder.run(&["steps", "etl", run]).ok()).filter(|text| text.contains(said)))
}

#[test]
fn a_run_is_started_once_waits_for_its_signal_and_is_followed_to_its_end() {
    let (folder, server) = up();
    let said = folder.run(&["start", "etl", "--key", "order-42"]).ok();
    assert!(said.starts_with("etl@order-42 is "), "{said}");
    let again = folder.run(&["start", "etl", "--key", "order-42"]).ok();
    assert!(again.trim_end().ends_with(", and was started before"), "{again}");
    let shown = until(&folder, "order-42", "waits for the signal approval since");
    assert!(shown.contains("ship") && shown.contains("waits for"), "{shown}");
    let why = folder.run(&["why", "etl", "order-42"]).ok();
    assert!(why.contains("ok waits for the signal approval since"), "{why}");
    assert!(folder.run(&["why", "etl", "order-42.ship"]).ok().contains("to succeed"));
    let items = eventually("the items", || {
        Some(folder.run(&["steps", "etl", "order-42", "--items", "each"]).ok())
            .filter(|text| text.matches("succeeded").count() == 2)
    });
    assert!(items.starts_with("ITEM"), "{items}");
    assert!(eventually("output", || Some(folder.run(&["logs", "etl", "order-42.each:1"]).ok())).contains('b'));
    let given = folder.run(&["signal", "etl", "order-42", "approval", "--payload", "\"yes\""]).ok();
    assert_eq!(given, "etl@order-42 has the signal approval\n");
    let followed = folder.run(&["start", "etl", "--key", "order-42", "--wait"]).ok();
    let steps: Vec<&str> = followed.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!((steps.len(), *steps.last().unwrap()), (5, "etl@order-42"), "{followed}");
    assert!(followed.ends_with("etl@order-42 is succeeded\n"), "{followed}");
    let shown = folder.run(&["steps", "etl", "order-42"]).ok();
    assert!(shown.contains("critical path") && shown.contains("signal approval \"yes\""), "{shown}");
    let json: serde_json::Value =
        serde_json::from_str(&folder.run(&["steps", "etl", "order-42", "--json"]).ok()).unwrap();
    assert_eq!(json["steps"][3]["state"], "succeeded");
    let over = folder.run(&["signal", "etl", "order-42", "approval"]).fails(1);
    assert!(over.contains("only a run that has not ended takes signals"), "{over}");
    server.stop();
}

#[test]
fn what_failed_is_resumed_and_the_exit_code_is_the_outcome() {
    let (folder, server) = up();
    let start = ["start", "etl", "--key", "bad-1", "--argument", "fails=1", "--wait"];
    let failed = folder.run(&start);
    assert!(failed.out.contains("etl@bad-1 is failed: step load failed: "), "{}", failed.out);
    failed.fails(1);
    let shown = folder.run(&["steps", "etl"]).ok();
    assert!(shown.contains("never runs: it needs load, which failed"), "{shown}");
    assert!(folder.run(&["failures"]).ok().contains("step load failed"));
    folder.write("mended", "");
    folder.run(&["signal", "etl", "good-1", "approval"]).ok();
    let resumed = folder.run(&["resume", "etl", "--run", "bad-1", "--from", "load"]).ok();
    assert!(resumed.starts_with("etl@bad-1 is "), "{resumed}");
    until(&folder, "bad-1", "waits for the signal approval since");
    folder.run(&["kill", "etl", "bad-1.ok"]).ok();
    until(&folder, "bad-1", "step ok failed: it was killed");
    let plain = folder.run(&["start", "plain", "--argument", "code=3", "--wait"]);
    assert!(plain.out.contains(" is failed"), "{}", plain.out);
    plain.fails(1);
    assert!(folder.run(&["start", "plain", "--argument", "code=0", "--wait"]).ok().ends_with(" is succeeded\n"));
    server.stop();
}

#[test]
fn a_step_is_done_again_with_another_argument() {
    let (folder, server) = up();
    folder.run(&["start", "etl", "--key", "bad-1", "--argument", "fails=1", "--wait"]).fails(1);
    let again = ["start", "etl", "--step", "load", "--of", "bad-1", "--key", "again-1", "--argument", "fails="];
    let said = folder.run(&again).ok();
    assert!(said.starts_with("etl@again-1 is ") && said.ends_with(", and does bad-1.load again\n"), "{said}");
    let shown = until(&folder, "again-1", "succeeded at");
    assert!(shown.contains("  does etl@bad-1.load again, and nothing else\n"), "{shown}");
    assert!(shown.contains("not-in-run") && shown.contains("arguments {\"fails\":\"\"}"), "{shown}");
    let why = folder.run(&["why", "etl", "again-1"]).ok();
    assert!(why.contains("it only does etl@bad-1.load again"), "{why}");
    let bad = ["start", "etl", "--step", "load", "--of", "bad-1", "--wait"];
    let failed = folder.run(&bad);
    assert!(failed.out.contains(" is failed: step load failed: "), "{}", failed.out);
    failed.fails(1);
    server.stop();
}

#[test]
fn a_name_without_digits_needs_no_dot_once_there_is_such_a_run() {
    let (folder, server) = up();
    let early = folder.run(&["signal", "etl", "monday", "approval"]).fails(2);
    assert!(
        early.contains("no run of etl is named monday; one that nobody has started yet is written .monday"),
        "{early}"
    );
    folder.run(&["signal", "etl", ".monday", "approval"]).ok();
    folder.run(&["start", "etl", "--key", "monday", "--wait"]).ok();
    assert!(folder.run(&["steps", "etl", "monday"]).ok().contains("monday  succeeded"));
    assert!(folder.run(&["why", "etl", "monday"]).ok().contains("succeeded"));
    assert!(folder.run(&["why", "etl", "monday.ship"]).ok().contains("succeeded"));
    assert!(folder.run(&["logs", "etl", "monday.each:1"]).ok().contains('b'));
    server.stop();
}

#[test]
fn what_makes_no_sense_is_told() {
    let (folder, server) = up();
    for (words, code, said) in [
        (&["steps", "etl"][..], 1, "it has no run yet"),
        (&["steps", "etl", "nobody-1"], 1, "there is no slot etl@nobody-1"),
        (&["steps", "etl", "2015-13-01"], 2, "expected"),
        (&["steps", "etl", "noon"], 2, "expected"),
        (&["start", "etl", "--key", "a b"], 1, "\"a b\" can't name a run"),
        (&["signal", "etl", "a1", "aproval"], 1, "did you mean approval?"),
        (&["signal", "etl", "a1", "approval", "--payload", "{"], 2, "expected JSON such as"),
        (&["signal", "plain", "a1", "approval"], 1, "plain is no flow"),
        (&["resume", "etl", "--run", "a1"], 1, "expected the name of a run that somebody started"),
        (&["resume", "etl", "plain", "--run", "a1"], 2, "expected the one it is of"),
        (&["resume", "etl", "--from", "a"], 2, "--run"),
        (&["start", "etl", "--step", "load"], 2, "--of"),
        (&["start", "etl", "--of", "a1"], 2, "--step"),
        (&["start", "etl", "--step", "load", "--of", "a1"], 1, "etl@a1 does not exist"),
        (&["rerun", "etl", "a1.load"], 1, "expected the name of a run that somebody started"),
    ] {
        let told = folder.run(words).fails(code);
        assert!(told.contains(said), "{words:?}: {told}");
    }
    server.stop();
}

/// Steps that kill the process that looks after them: one the first time, one always.
const DYING: &str = r#"
kelos.flow("again", { steps: { one: { shell: "true" },
  two: { needs: "one", shell: 'echo again >> BEGUN; test "$(grep -c again BEGUN)" = 2 || kill -9 "$PPID"' } } });
kelos.flow("once", { onLost: "end", steps: { two: { shell: 'echo once >> BEGUN; kill -9 "$PPID"' } } });
"#;

#[test]
fn a_step_that_a_crash_ended_is_done_again_unless_it_must_not_be() {
    let folder = Folder::with(&[]);
    let begun = folder.path().join("begun").display().to_string();
    folder.write("workflows/dying.js", &DYING.replace("BEGUN", &begun));
    let server = Server::up(&folder);
    eventually("the workflows", || folder.run(&["ls"]).ok().contains("once").then_some(()));
    let followed = folder.run(&["start", "again", "--key", "a-1", "--wait"]).ok();
    assert!(followed.ends_with("again@a-1 is succeeded\n"), "{followed}");
    let events = folder.run(&["events"]).ok();
    assert!(events.contains("the process that looked after the command died"), "{events}");
    assert!(events.contains(", 1 of 3 times"), "{events}");
    let failed = folder.run(&["start", "once", "--key", "o-1", "--wait"]);
    assert!(failed.out.contains("once@o-1 is failed: step two failed: "), "{}", failed.out);
    failed.fails(1);
    let begun = std::fs::read_to_string(folder.path().join("begun")).unwrap();
    assert_eq!(begun, "again\nagain\nonce\n");
    server.stop();
}
