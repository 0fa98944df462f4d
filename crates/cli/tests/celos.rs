//! Coming from Celos, and going back: import, export, shadow.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use crate::support::{Folder, Server, run};
use serde_json::{Value, json};

const AS_OF: &str = "2016-02-10T12:05Z";

fn fixture(part: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/celos-db").join(part)
}

fn database() -> String {
    fixture("db").to_str().expect("text").to_owned()
}

/// A folder with the scripts of the fixture.
fn scripts() -> Folder {
    let text = |name: &str| std::fs::read_to_string(fixture(name)).expect("a script");
    let (ingest, cluster) = (text("workflows/ingest.js"), text("defaults/cluster.js"));
    Folder::with(&[("workflows/ingest.js", &ingest), ("defaults/cluster.js", &cluster)])
}

fn import(folder: &Folder, more: &[&str]) -> crate::support::Said {
    let database = database();
    let mut args = vec!["import", "celos", &database, "--as-of", AS_OF];
    args.extend(more);
    folder.run(&args)
}

#[test]
fn an_import_says_what_came_over_and_a_second_one_that_nothing_did() {
    let folder = scripts();
    let dry = import(&folder, &["--dry-run"]).ok();
    assert!(dry.contains("would import 30 slots of 3 workflows and 1 register into"), "{dry}");
    assert!(!folder.path().join(".kelos").exists());
    let said = import(&folder, &[]).ok();
    let expected = "\
workflow   imported  states                                                  same  kept  last in Celos
ingest     15        1 failed, 1 killed, 1 running, 10 succeeded, 2 waiting  0     0     2016-02-10T12:00Z
report     12        3 expired, 9 succeeded                                  0     0     2016-02-10T11:00Z
wörk flow  3         1 killed, 1 succeeded, 1 waiting                        0     0     2016-02-10T06:30Z
wörk flow: paused, as it is in Celos
imported 30 slots of 3 workflows and 1 register into ";
    assert!(said.starts_with(expected), "{said}");
    let again: Value = serde_json::from_str(&import(&folder, &["--json"]).ok()).expect("JSON");
    assert_eq!(again["imported"]["events"], 0);
    assert_eq!(again["imported"]["workflows"][0]["same"], 15);
}

#[test]
fn an_import_tells_of_slots_that_neither_scheduler_plans() {
    let slot = r#"{"time":"2016-01-01T00:00:00.000Z","status":"SUCCESS","externalID":"x","retryCount":0}"#;
    let folder = scripts();
    folder.write("old/state/ingest/2016-01-01/00:00:00.000Z", slot);
    folder.write("old/state/wörk flow/2016-02-10/00:30:00.000Z", slot);
    let gap = |as_of: &str| folder.run(&["import", "celos", "old", "--dry-run", "--as-of", as_of]).ok();
    let said = gap("2016-03-01T00:00Z");
    // What the scripts have begin on the tenth of February has nothing before that.
    let backfill = "not planned by itself; kelos backfill ingest --from 2016-02-10T00:00Z --to 2016-02-23T00:00Z";
    assert!(said.contains(backfill), "{said}");
    let said = gap("2016-02-12T00:00Z");
    assert!(!said.contains("backfill"), "{said}");
}

#[test]
fn an_import_does_not_work_on_what_a_server_uses() {
    let folder = Folder::with(&[]);
    let server = Server::up(&folder);
    let refused = import(&folder, &[]).fails(1);
    assert!(refused.starts_with("error: failed to import: a server uses "), "{refused}");
    assert!(refused.contains(&format!("stop it first; it answers at {}", server.address())), "{refused}");
    let database = folder.path().join("out");
    let refused = folder.run(&["export", "celos", database.to_str().expect("text")]).fails(1);
    assert!(refused.contains("failed to export: a server uses "), "{refused}");
    assert!(server.stop().success());
    import(&folder, &[]).ok();
    let _server = Server::up(&folder);
    let why = folder.run(&["why", "ingest", "2016-02-10T03:00Z"]).ok();
    assert!(why.contains("when it was imported from celos, where it was FAILURE"), "{why}");
    let events = folder.run(&["events", "--workflow", "report"]).ok();
    assert!(events.contains("report  imported: from celos, "), "{events}");
}

#[test]
fn what_is_no_database_of_celos_is_refused() {
    let folder = Folder::with(&[("some/file", "")]);
    let refused = folder.run(&["import", "celos", "some"]).fails(1);
    assert!(refused.contains("expected a folder with one of state, rerun, paused and register in it"), "{refused}");
    assert!(folder.run(&["import", "celos", "missing"]).fails(2).contains("there is no such folder"));
    assert!(folder.run(&["import", "cron", "some"]).fails(2).contains("unrecognized subcommand 'cron'"));
    let hint = folder.run(&["export", "celos", "some"]).fails(2);
    assert!(hint.contains("name the folder of `kelos up` with --dir"), "{hint}");
}

#[test]
fn an_export_can_be_imported_again() {
    let folder = scripts();
    import(&folder, &[]).ok();
    let refused = folder.run(&["export", "celos", "workflows"]).fails(1);
    assert!(refused.contains("not empty and no state database of Celos"), "{refused}");
    let said = folder.run(&["export", "celos", "back"]).ok();
    assert!(said.contains("wrote 36 files into back, 0 were the same"), "{said}");
    let again: Value = serde_json::from_str(&folder.run(&["import", "celos", "back", "--json"]).ok()).expect("JSON");
    assert_eq!(again["imported"]["events"], 0, "{again}");
}

/// A folder with a workflow that runs commands, and had its first slot some hours ago.
fn commands(trigger: &str) -> Folder {
    let start = jiff::Timestamp::now() - jiff::SignedDuration::from_hours(4);
    let script = format!(
        r#"celos.defineWorkflow({{
            "id": "w",
            "schedule": celos.hourlySchedule(),
            "schedulingStrategy": celos.serialSchedulingStrategy(2),
            "trigger": {trigger},
            "startTime": "{}",
            "externalService": celos.commandExternalService({{"command": ["true"]}})
        }});"#,
        kelos_model::time::format_full(start)
    );
    let folder = Folder::with(&[("workflows/w.js", &script)]);
    std::fs::create_dir(folder.path().join("defaults")).expect("a folder");
    folder
}

fn shadow(folder: &Folder, address: &str, more: &[&str]) -> crate::support::Said {
    let mut args = vec!["shadow", address, "--workflows", "workflows", "--defaults", "defaults", "--once"];
    args.extend(more);
    folder.run(&args)
}

#[test]
fn a_shadow_agrees_with_a_server_that_does_the_same() {
    let folder = commands("celos.alwaysTrigger()");
    let server = Server::up(&folder);
    crate::support::eventually("all slots succeeded", || {
        let states = folder.states("w");
        (states.len() >= 4 && states.iter().all(|state| state == "succeeded")).then_some(())
    });
    let said = shadow(&folder, server.address(), &[]).ok();
    assert!(said.contains("of 1 workflow agree, 0 disagreements"), "{said}");
    // The same workflow, which another script has wait for what never comes.
    let other = commands("celos.fileCheckTrigger(\"/nowhere/at/all\")");
    assert!(shadow(&other, server.address(), &[]).ok().contains("0 disagreements"), "what ended there has ended here");
}

/// Answers like a Celos that has one workflow, and notes what it is asked.
fn stub(slots: Value) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    let asked = Arc::new(Mutex::new(Vec::new()));
    let notes = asked.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a client");
            let mut lines = BufReader::new(stream.try_clone().expect("a stream")).lines();
            let first = lines.next().and_then(Result::ok).unwrap_or_default();
            while lines.next().and_then(Result::ok).is_some_and(|line| !line.is_empty()) {}
            let body = if first.contains("/workflow-list") { json!({ "ids": ["w"] }) } else { slots.clone() };
            notes.lock().expect("notes").push(first);
            let body = body.to_string();
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
            let _ = stream.write_all(format!("{head}{body}").as_bytes());
        }
    });
    (address, asked)
}

#[test]
fn a_shadow_tells_of_disagreements_and_only_ever_asks() {
    let folder = commands("celos.fileCheckTrigger(\"/nowhere/at/all\")");
    let hour = jiff::Timestamp::from_second(jiff::Timestamp::now().as_second() / 3600 * 3600 - 3600).expect("a time");
    let time = kelos_model::time::format_full(hour);
    let ready = json!({ "time": time, "status": "READY", "externalID": null, "retryCount": 0 });
    let (address, asked) = stub(json!({ "info": {}, "paused": false, "slots": [ready] }));
    let said = shadow(&folder, &address, &["--grace", "0s"]);
    assert_eq!(said.code, 1, "{}{}", said.out, said.err);
    assert!(said.out.contains("READY in Celos, waiting in Kelos, since "), "{}", said.out);
    assert!(said.out.contains("    File /nowhere/at/all is not ready\n"), "{}", said.out);
    assert!(said.out.contains("no such slot in Celos, waiting in Kelos"), "{}", said.out);
    let json: Value = serde_json::from_str(&shadow(&folder, &address, &["--grace", "0s", "--json"]).out).expect("JSON");
    let ready = json["differences"].as_array().expect("differences").iter().find(|one| one["celos"] == "READY");
    assert_eq!(ready.expect("the ready slot")["kelos"], "waiting", "{json}");
    for line in asked.lock().expect("notes").iter() {
        assert!(line.starts_with("GET /workflow-list") || line.starts_with("GET /workflow-slots?id=w&end="), "{line}");
    }
}

#[test]
fn a_shadow_of_nobody_says_that_nobody_answers() {
    let folder = commands("celos.alwaysTrigger()");
    let failed = shadow(&folder, "http://127.0.0.1:1", &[]).fails(3);
    assert!(failed.contains("failed to get an answer from Celos at http://127.0.0.1:1"), "{failed}");
    assert!(shadow(&folder, "ftp://celos", &[]).fails(2).contains("expected an address such as http://celos:8080"));
    let help = run(&["shadow", "--help"]).ok();
    assert!(help.contains("requests to it only read"), "{help}");
}
