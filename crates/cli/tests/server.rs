//! `up` and `serve`, and the commands that ask them.

use std::path::Path;

use crate::support::{Folder, Follower, Server, eventually, run_in};
use jiff::{Timestamp, ToSpan};
use serde_json::Value;

/// The minute that is `back` minutes before this one.
fn minute(back: i64) -> String {
    let now = Timestamp::now().as_second() / 60 * 60;
    let at = Timestamp::from_second(now).expect("a time") - back.minutes();
    at.to_string()
}

/// A workflow with a slot for each minute of the last few, and no more.
fn minutely(id: &str, trigger: &str, shell: &str) -> String {
    format!(
        r#"celos.defineWorkflow({{
            "id": "{id}",
            "schedule": celos.minutelySchedule(),
            "startTime": "{}",
            "schedulingStrategy": celos.serialSchedulingStrategy(2),
            "trigger": {trigger},
            "externalService": celos.commandExternalService({{"shell": {shell:?}}})
        }});
"#,
        minute(5)
    )
}

/// 1 run of it is live until there is a file `go`, or the folder is gone; each start is noted.
const SLOW: &str = "echo started >> starts; echo hello; \
     while [ -e starts ] && [ ! -e go ]; do sleep 0.05; done; echo done";

fn folder() -> Folder {
    let always = "celos.alwaysTrigger()";
    let gate = r#"celos.andTrigger(celos.delayTrigger(1), celos.fileCheckTrigger("file:gate/${hour}${minute}"))"#;
    Folder::with(&[
        ("workflows/tick.js", &minutely("tick", always, "echo tick ${hour}:${minute}; test ! -e broken")),
        ("workflows/gate.js", &minutely("gate", gate, "true")),
        ("workflows/slow.js", &minutely("slow", always, SLOW)),
    ])
}

/// Waits until the slots of the last minutes have all succeeded; gives the time of the oldest.
#[track_caller]
fn oldest_succeeded(folder: &Folder, workflow: &str) -> String {
    eventually("all succeeded", || {
        let slots = folder.json(&["slots", workflow, "--all", "--json"]);
        let slots = slots["items"].as_array().expect("items").clone();
        let all = slots.len() >= 5 && slots.iter().all(|slot| slot["state"] == "succeeded");
        all.then(|| slots[slots.len() - 1]["time"].as_str().expect("a time").to_owned())
    })
}

#[test]
fn a_folder_comes_up_and_can_be_asked() {
    let folder = folder();
    let server = Server::up(&folder);
    assert!(server.said.contains("workflows  3"), "{}", server.said);
    assert!(server.said.contains("kelos why gate "), "{}", server.said);
    let at = oldest_succeeded(&folder, "tick");

    let out = folder.run(&["ls"]).ok();
    assert!(out.starts_with("WORKFLOW"), "{out}");
    assert!(out.contains("  minutely  ") && out.contains(" succeeded"), "{out}");
    assert_eq!(folder.json(&["ls", "--json"])["items"].as_array().map(Vec::len), Some(3));

    let out = folder.run(&["slots", "tick", "--limit", "1"]).ok();
    assert!(out.contains("succeeded") && out.contains("the newest 1 slot of more"), "{out}");
    assert_eq!(folder.run(&["slots", "tick", "--state", "failed"]).ok(), "no slots\n");
    assert!(folder.run(&["slots", "tack"]).fails(1).contains("no workflow is named \"tack\""));

    let out = folder.run(&["why", "tick", &at]).ok();
    assert!(out.contains("  run 1 succeeded at ") && out.contains("+ ") && out.contains("\n  #1  succeeded"), "{out}");
    let out = folder.run(&["why", "tick", &at, "--at", "2016-01-01"]).ok();
    assert!(!out.contains("#1"), "it did not exist then: {out}");
    assert_eq!(folder.json(&["why", "tick", &at, "--json"])["state"], "succeeded");

    assert!(folder.run(&["logs", "tick", &at]).ok().starts_with("tick "));
    assert_eq!(folder.json(&["logs", "tick", &at, "--json"])["ended"], true);
    assert!(folder.run(&["logs", "tick", &at, "--run", "7"]).fails(1).contains("failed to print the output"));

    folder.write("broken", "");
    let out = folder.run(&["rerun", "tick", &at, "--reason", "to see it fail"]).ok();
    assert!(out.starts_with("tick@") && out.contains(" is "), "{out}");
    eventually("failed", || folder.states("tick").contains(&"failed".to_owned()).then_some(()));
    assert!(folder.run(&["why", "tick", &at]).ok().contains("exited with status 1"));

    let out = folder.run(&["events", "--workflow", "tick", "--limit", "1000"]).ok();
    assert!(out.contains("reopened: by ann, to see it fail"), "{out}");
    assert!(out.contains("failed: run 2, exited with status 1"), "{out}");
    let lines = folder.run(&["events", "--json", "--limit", "3"]).ok();
    assert_eq!(lines.lines().filter(|line| serde_json::from_str::<Value>(line).is_ok()).count(), 3);
    assert!(server.stop().success());
    assert!(!folder.path().join(".kelos/server.json").exists());
}

#[test]
fn slots_are_killed_workflows_paused_and_gates_explained() {
    let folder = folder();
    let _server = Server::up(&folder);
    eventually("planned", || (folder.states("gate").len() >= 5).then_some(()));
    let at = folder.json(&["slots", "gate", "--json"])["items"][2]["time"].as_str().expect("a time").to_owned();
    let out = eventually("looked at", || {
        let out = folder.run(&["why", "gate", &at]).ok();
        out.contains("not there, checked").then_some(out)
    });
    assert!(out.contains(". all of\n") && out.contains("`-. File "), "{out}");
    assert!(out.contains("blocked by\n  File ") && out.contains("next check  20"), "{out}");
    assert!(folder.run(&["logs", "gate", &at]).fails(1).contains("has not run yet"));

    assert!(folder.run(&["kill", "gate", &at, "--reason", "no"]).ok().ends_with(" is killed\n"));
    assert!(folder.run(&["kill", "gate", &at]).fails(1).contains("only a slot that has not ended can be killed"));
    assert!(folder.run(&["why", "gate", &at]).ok().contains("killed by ann"), "its history");
    let refused = folder.run(&["rerun", "gate", "2016-01-01T00:00:30Z"]).fails(1);
    assert!(refused.contains("is not a time of its workflow's schedule"), "{refused}");
    assert!(folder.run(&["skip", "gate"]).fails(2).contains("required"));
    folder.run(&["kill", "gate", "--from", &minute(60), "--to", "now"]).ok();
    let out = folder.run(&["kill", "gate", "--from", &minute(60), "--to", &minute(1)]).ok();
    assert_eq!(out, "no slot to kill\n");

    assert_eq!(folder.run(&["pause", "gate", "tick"]).ok(), "gate is paused\ntick is paused\n");
    assert!(folder.run(&["ls"]).ok().contains("paused"));
    assert_eq!(folder.run(&["resume", "gate"]).ok(), "gate is resumed\n");
    let refused = folder.run(&["pause", "gote"]).fails(1);
    assert!(refused.contains("hint: did you mean \"gate\"? `kelos ls`"), "{refused}");
}

#[test]
fn a_backfill_is_tried_dry_and_then_watched() {
    let folder = folder();
    let _server = Server::up(&folder);
    oldest_succeeded(&folder, "tick");
    let from = minute(90);
    let to = (from.parse::<Timestamp>().expect("a time") + 10.minutes()).to_string();
    let range = ["--from", from.as_str(), "--to", to.as_str()];
    let backfill = |more: &[&str]| {
        let mut args = vec!["backfill", "tick"];
        args.extend(range);
        args.extend(more);
        folder.run(&args)
    };
    let out = backfill(&["--dry-run"]).ok();
    assert!(out.contains("10 new, 0 opened again") && out.ends_with("nothing was changed\n"), "{out}");
    let out = backfill(&["--name", "past"]).ok();
    assert!(out.starts_with("backfill past: 10 new") && out.ends_with("ended: 10 succeeded\n"), "{out}");
    assert!(backfill(&["--name", "past"]).fails(1).contains("exists already"));
    let made: Value = serde_json::from_str(&backfill(&["--mode", "all", "--no-wait", "--json"]).ok()).expect("JSON");
    assert_eq!(made["reopened"]["count"], 10);
    // One that would hasten nothing takes nothing over.
    eventually("ended", || {
        let live = folder.run(&["slots", "tick", "--state", "queued,dispatched,running", "--to", &to]).ok();
        (live == "no slots\n").then_some(())
    });
    assert!(backfill(&[]).ok().ends_with("nothing to do\n"), "all exist");
    let refused = backfill(&["--made-by", "1.4"]).fails(1);
    assert!(refused.contains("no definition of tick has the version 1.4, expected #1"), "{refused}");
    assert!(backfill(&["--made-by", "1.4", "--mode", "all"]).fails(2).contains("cannot be used with"));
    assert!(backfill(&["--made-by", "#1", "--dry-run"]).ok().contains("0 new, 10 opened again"));
    folder.write("broken", "");
    let said = backfill(&["--mode", "all", "--name", "again"]);
    assert_eq!((said.code, said.err.as_str()), (1, ""), "some failed, and a short one is not followed in words");
    let why = "  10 failed: exited with status 1\n    | tick ";
    assert!(said.out.contains(why) && said.out.contains(" and 7 more: kelos logs tick "), "{}", said.out);
    let end = "10 failures: `kelos backfills rerun again` runs them again\n";
    assert!(said.out.ends_with(end), "{}", said.out);
    let shown = folder.json(&["backfills", "show", "again", "--json"]);
    assert_eq!((&shown["failures"], &shown["causes"][0]["exitStatus"]), (&10.into(), &1.into()), "{shown}");
    assert!(folder.run(&["backfills", "show", "again"]).ok().contains(why));
    // Minutes pass meanwhile, and their events with them.
    assert!(folder.run(&["events", "--limit", "1000"]).ok().contains("backfill "));
}

#[test]
fn a_backfill_that_is_followed_outlives_its_server_and_its_follower() {
    let folder = folder();
    let server = Server::up(&folder);
    oldest_succeeded(&folder, "tick");
    let (from, to) = (minute(90), minute(80));
    let asked = ["backfill", "slow", "--from", &from, "--to", &to, "--name", "past"];
    let mut follower = Follower::start(&folder, &asked);
    follower.hear("backfill past: 10 new");
    server.crash();
    follower.hear("; trying again for 10 min");
    let _server = Server::up(&folder);
    follower.hear("the server answers again");
    follower.interrupt();
    let hint = "the backfill goes on: `kelos backfills show --follow past` follows it, `kelos backfills cancel past` cancels it";
    follower.hear(hint);
    assert_eq!(follower.end(), Some(130));

    folder.write("go", "");
    let out = folder.run(&["backfills", "show", "past", "--follow"]).ok();
    assert!(out.contains("10 of 10 ended: 10 succeeded\n"), "{out}");
    let refused = folder.run(&["backfills", "show", "pats", "--follow"]).fails(1);
    assert!(refused.contains("no backfill is named \"pats\""), "{refused}");
    assert!(refused.contains("did you mean \"past\"? `kelos backfills` lists"), "{refused}");
}

#[test]
fn a_server_that_has_got_the_port_of_another_is_not_taken_for_it() {
    let (folder, other) = (folder(), folder());
    let server = Server::up(&folder);
    let written = std::fs::read_to_string(folder.path().join(".kelos/server.json")).expect("where the server is");
    let mut place: Value = serde_json::from_str(&written).expect("JSON");
    place["instance"] = "one that has died".into();
    other.write(".kelos/server.json", &place.to_string());
    let refused = other.run(&["pause", "tick"]).fails(3);
    assert!(refused.contains("failed to reach the server of this folder at http://127"), "{refused}");
    assert!(refused.contains("it has ended, and another server uses its port"), "{refused}");
    assert!(!folder.run(&["ls"]).ok().contains("paused"), "nothing was done by the wrong one");
    assert!(server.stop().success());
}

#[test]
fn a_server_that_dies_in_mid_run_finds_the_run_again() {
    let folder = folder();
    let server = Server::up(&folder);
    let running = |wanted: usize| {
        let states = folder.states("slow");
        (states.iter().filter(|state| *state == "running").count() == wanted).then_some(())
    };
    eventually("two run", || running(2));
    server.crash();
    // The port is free, or belongs to the server of another test by now, which says that it is not the one meant.
    assert!(folder.run(&["ls"]).fails(3).contains("failed to reach "));

    let server = Server::up(&folder);
    eventually("two run", || running(2));
    let starts = || std::fs::read_to_string(folder.path().join("starts")).unwrap_or_default().lines().count();
    assert_eq!(starts(), 2, "none of them was started again");
    let slots = folder.json(&["slots", "slow", "--all", "--json"]);
    let oldest = slots["items"].as_array().and_then(|items| items.last()).expect("a slot");
    let at = oldest["time"].as_str().expect("a time").to_owned();
    folder.write("go", "");
    assert_eq!(folder.run(&["logs", "slow", &at, "-f"]).ok(), "hello\ndone\n");
    oldest_succeeded(&folder, "slow");
    let runs = folder.json(&["why", "slow", &at, "--json"])["runs"].as_array().map(Vec::len);
    assert_eq!(runs, Some(1), "the run that had been started is the one that succeeded");
    assert!(server.stop().success());
}

#[test]
fn a_run_goes_on_without_its_server() {
    let folder = folder();
    let server = Server::up(&folder);
    eventually("two run", || {
        (folder.states("slow").iter().filter(|state| *state == "running").count() == 2).then_some(())
    });
    assert!(server.stop().success());
    folder.write("go", "");
    let _server = Server::up(&folder);
    let at = oldest_succeeded(&folder, "slow");
    assert_eq!(folder.run(&["logs", "slow", &at]).ok(), "hello\ndone\n");
}

#[test]
fn output_is_printed_as_it_is_or_line_by_line() {
    let always = "celos.alwaysTrigger()";
    // Text that is written to both streams at once may change places: each part waits until the one before has been read.
    let waits = |name: &str| format!("while [ -e gates ] && [ ! -e gates/{name} ]; do sleep 0.01; done");
    let shell = format!("printf 'one\\ntwo'; {}; echo bad >&2; {}; echo ' more'", waits("first"), waits("second"));
    let folder = Folder::with(&[("workflows/talk.js", &minutely("talk", always, &shell)), ("gates/README", "")]);
    let _server = Server::up(&folder);
    let at = eventually("slots", || {
        let slots = folder.json(&["slots", "talk", "--all", "--json"]);
        slots["items"].as_array()?.last()?["time"].as_str().map(str::to_owned)
    });
    let logs = |more: &[&str]| folder.run(&[&["logs", "talk", &at], more].concat());
    for (gate, read) in [("first", "one\ntwo"), ("second", "one\ntwobad\n")] {
        eventually(read, || (logs(&[]).out == read).then_some(()));
        folder.write(&format!("gates/{gate}"), "");
    }
    assert_eq!(oldest_succeeded(&folder, "talk"), at);
    let logs = |more: &[&str]| logs(more).ok();
    assert_eq!(logs(&[]), "one\ntwobad\n more\n", "to a pipe, byte by byte");
    assert_eq!(logs(&["--streams"]), "out   one\nout   two\nerr   bad\nout    more\n");
    assert_eq!(logs(&["--stderr"]), "bad\n");
    assert_eq!(logs(&["--stdout", "-f"]), "one\ntwo\n more\n");
    let stamped = logs(&["-t"]);
    let read = |line: &str| {
        let (at, text) = line.split_once(' ').expect("a time and a text");
        (at.parse::<Timestamp>().expect("a time"), text.to_owned())
    };
    let lines: Vec<_> = stamped.lines().map(read).collect();
    assert_eq!(lines.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>(), ["one", "two", "bad", " more"]);
    assert!(lines[0].0 < lines[2].0 && lines[2].0 < lines[3].0, "{stamped}");
    let json = folder.json(&["logs", "talk", &at, "--json", "--stderr"]);
    assert_eq!((&json["run"], &json["ended"], &json["lines"][0]["text"]), (&1.into(), &true.into(), &"bad".into()));
    assert_eq!(json["lines"].as_array().map(Vec::len), Some(1));
}

#[test]
fn a_folder_has_one_server_and_mistakes_are_shown() {
    let folder = folder();
    folder.write("workflows/broken.js", "celos.defineWorkflow({});");
    let server = Server::up(&folder);
    assert!(server.said.contains("problems   1") && server.said.contains("broken.js:1:"), "{}", server.said);
    let err = folder.run(&["up"]).fails(1);
    assert!(err.contains("another kelos already runs there") && err.contains(server.address()), "{err}");
    for list in ["ls", "slots"] {
        assert!(folder.run(&[list]).err.contains("broken.js:1:"), "{list}");
    }

    std::fs::remove_file(folder.path().join("workflows/broken.js")).expect("a file");
    let below = folder.path().join("workflows");
    eventually("mended", || run_in(&below, &["ls"]).err.is_empty().then_some(()));
}

#[test]
fn a_folder_whose_state_can_not_be_used_does_not_come_up() {
    let folder = folder();
    std::fs::create_dir_all(folder.path().join(".kelos/kelos.db.lock")).expect("a folder where the lock is to be");
    let err = folder.run(&["up"]).fails(1);
    assert!(err.lines().last().is_some_and(|line| line.starts_with("error: failed to lock ")), "{err}");
}

/// The lines of the daily log files, each of which must be a JSON object.
fn log_lines(folder: &Path) -> Vec<Value> {
    let files = std::fs::read_dir(folder.join("logs")).expect("a folder").map(|file| file.expect("a file").path());
    let day = |path: &Path| {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        name.strip_prefix("kelos.").and_then(|rest| rest.strip_suffix(".log")).map(str::to_owned)
    };
    let text = |path: std::path::PathBuf| {
        let day = day(&path).expect("kelos.DAY.log");
        assert!(day.parse::<jiff::civil::Date>().is_ok(), "{day}");
        std::fs::read_to_string(path).expect("a text")
    };
    let texts: Vec<String> = files.map(text).collect();
    // The last line may be half-written.
    let whole = texts.iter().flat_map(|text| text.split_inclusive('\n').filter(|line| line.ends_with('\n')));
    whole.map(|line| serde_json::from_str(line).expect("a JSON object")).collect()
}

#[test]
fn problems_are_logged_when_they_come_and_when_the_last_one_goes() {
    let folder = folder();
    for name in ["db", "logs", "defaults"] {
        std::fs::create_dir(folder.path().join(name)).expect("a folder");
    }
    let args = ["serve", "--port", "0", "--workflows", "workflows", "--defaults", "defaults", "--logs", "logs"];
    let args = [&args[..], &["--db", "db", "--autoSchedule", "1"]].concat();
    let _server = Server::start(folder.path(), &args, "it schedules automatically");
    let logged = |what: &str| {
        let lines = log_lines(folder.path());
        lines.iter().any(|line| line["message"].as_str().is_some_and(|said| said.contains(what))).then_some(())
    };
    folder.write("workflows/tick.js", "celos.defineWorkflow({");
    eventually("logged", || logged("tick.js:1:"));
    eventually("said what holds", || logged("; its last good version stays in force"));
    folder.write("workflows/tick.js", "");
    eventually("mended", || logged("all scripts are good again"));
}

#[test]
fn a_run_that_wrote_nothing_is_told_from_an_empty_file() {
    let folder = Folder::with(&[("workflows/a.js", &minutely("a", "celos.alwaysTrigger()", "exit 3"))]);
    let _server = Server::up(&folder);
    eventually("failed", || folder.states("a").contains(&"failed".to_owned()).then_some(()));
    let slots = folder.json(&["slots", "a", "--state", "failed", "--json"]);
    let at = slots["items"][0]["time"].as_str().expect("a time").to_owned();
    let said = folder.run(&["logs", "a", &at]);
    assert_eq!((said.out.as_str(), said.err.as_str()), ("", "run 1 wrote nothing: exited with status 3\n"));
}

#[test]
fn events_are_followed_as_they_happen() {
    let folder = folder();
    let server = Server::up(&folder);
    let at = oldest_succeeded(&folder, "tick");
    let follower = Server::start(folder.path(), &["events", "-f", "--workflow", "tick"], "succeeded: run 1");
    folder.run(&["rerun", "tick", &at]).ok();
    drop(follower);
    let follower = Server::start(folder.path(), &["events", "-f", "--after", "0", "--json"], "\"reopened\"");
    assert!(server.stop().success(), "a stream does not hold the end up");
    drop(follower);
}

/// A step, asked for as Celos's users ask.
fn step(address: &str) {
    let answer = ureq::post(format!("{address}/scheduler")).send_empty().expect("an answer");
    assert_eq!(answer.status(), 200);
}

#[test]
fn a_server_that_is_stepped_waits_for_steps() {
    let folder = folder();
    for name in ["defaults", "db", "logs"] {
        std::fs::create_dir(folder.path().join(name)).expect("a folder");
    }
    let mut args = vec!["serve", "-port", "0", "-workflows", "workflows", "-defaults", "defaults"];
    args.extend(["-db", "db", "-logs", "logs"]);
    let server = Server::start(folder.path(), &args, "schedules automatically)");
    let address = server.address().to_owned();
    assert!(server.said.contains("it schedules only on request: curl -X POST http://"), "{}", server.said);
    assert!(folder.path().join("db/kelos.db").exists());
    eventually("logged", || log_lines(folder.path()).first().filter(|line| line["level"].is_string()).map(|_| ()));
    let slots = |dir: &Path| run_in(dir, &["slots", "tick", "--server", &address, "--all"]).ok();
    assert_eq!(slots(folder.path()), "no slots\n");
    step(&address);
    assert!(slots(folder.path()).contains("tick  "));
    eventually("succeeded", || {
        step(&address);
        (slots(folder.path()).matches("succeeded").count() >= 5).then_some(())
    });
    assert!(server.stop().success());
}

#[test]
fn a_server_with_auto_schedule_needs_no_steps() {
    let folder = folder();
    for name in ["defaults", "db"] {
        std::fs::create_dir(folder.path().join(name)).expect("a folder");
    }
    let mut args = vec!["serve", "--port=0", "--workflows=workflows", "--defaults=defaults"];
    args.extend(["--db=db", "--autoSchedule=1", "--max-running=3", "--planning-window=1h"]);
    let server = Server::start(folder.path(), &args, "every 1 s\n");
    let address = server.address().to_owned();
    eventually("succeeded", || {
        let out = folder.run(&["slots", "tick", "--server", &address]).ok();
        (out.matches("succeeded").count() >= 5).then_some(())
    });
    assert!(server.stop().success());
}

#[test]
fn a_backfill_stays_paused_over_a_crash() {
    let folder = folder();
    let server = Server::up(&folder);
    oldest_succeeded(&folder, "tick");
    let (from, to) = (minute(400), minute(100));
    let range = ["backfill", "tick", "--from", &from, "--to", &to, "--name", "past", "--reason", "lost", "--no-wait"];
    folder.run(&range).ok();
    let backfills = |args: &[&str]| folder.run(&[&["backfills"], args].concat());
    let said = backfills(&["pause", "past", "--reason", "lunch"]).ok();
    assert!(said.starts_with("backfill past of tick: paused by ") && said.contains(": lost\n"), "{said}");
    server.crash();

    let _server = Server::up(&folder);
    let said = backfills(&["show", "past"]).ok();
    assert!(said.contains("no estimate yet: it is paused by "), "{said}");
    assert!(folder.run(&["why", "tick", &held_back(&folder, &to)]).ok().contains("its backfill past is paused by "));
    assert!(backfills(&["priority", "past", "-7"]).ok().contains("priority -7\n"));
    assert!(backfills(&["resume", "past"]).ok().starts_with("backfill past of tick: going on\n"));
    assert!(backfills(&["cancel", "past"]).ok().starts_with("backfill past of tick: cancelled\n"));
    assert!(backfills(&["resume", "past"]).fails(1).contains("was cancelled"));
    assert!(backfills(&["pause", "none"]).fails(1).contains("no backfill is named \"none\""));
    assert!(backfills(&[]).ok().contains("cancelled"));
    let all = folder.json(&["backfills", "--workflow", "tick", "--json"]);
    assert_eq!(all["items"][0]["id"], "past");
}

/// A slot of before a time that has no run yet.
fn held_back(folder: &Folder, to: &str) -> String {
    let slots = folder.json(&["slots", "tick", "--state", "waiting,queued", "--to", to, "--json"]);
    slots["items"][0]["time"].as_str().expect("a slot that waits").to_owned()
}

#[test]
fn state_is_closed_to_other_users_even_where_it_was_open() {
    use std::os::unix::fs::PermissionsExt;
    let folder = folder();
    let state = folder.path().join(".kelos");
    std::fs::create_dir(&state).expect("a folder");
    std::fs::set_permissions(&state, std::fs::Permissions::from_mode(0o755)).expect("open to all");
    let _server = Server::up(&folder);
    for dir in [state.clone(), state.join("runs")] {
        let mode = std::fs::metadata(&dir).expect("a folder").permissions().mode() & 0o777;
        assert_eq!(mode, 0o700, "{dir:?}");
    }
}
