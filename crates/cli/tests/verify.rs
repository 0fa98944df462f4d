//! `kelos verify`, on what a real server left behind, and on what hands and disks make of it.

use std::path::Path;

use crate::support::{Folder, Server, eventually};
use rusqlite::Connection;
use serde_json::Value;

const WORKFLOWS: &str = r#"celos.defineWorkflow({
    "id": "tick",
    "schedule": celos.minutelySchedule(),
    "schedulingStrategy": celos.serialSchedulingStrategy(9),
    "trigger": celos.alwaysTrigger(),
    "maxRetryCount": 0,
    "externalService": celos.commandExternalService({"shell": "test $(($(date -u +%s) % 3)) -ne 0"})
});
"#;

const DATABASE: &str = ".kelos/kelos.db";

/// What a server leaves that had its runs, and was stopped.
fn left_behind() -> Folder {
    let folder = Folder::with(&[("workflows/tick.js", WORKFLOWS)]);
    let server = Server::up(&folder);
    eventually("runs", || {
        let told = folder.run(&["slots", "tick", "--all"]).ok();
        (told.matches("succeeded").count() + told.matches("failed").count() >= 9).then_some(())
    });
    // Beside a server that goes on.
    let told = folder.run(&["verify"]).ok();
    assert!(told.contains(": all agree\n"), "{told}");
    assert!(server.stop().success());
    folder
}

/// Copies what one of them left, and changes it behind everybody's back.
fn changed(left: &Folder, sql: &str) -> Folder {
    let folder = Folder::with(&[("workflows/tick.js", WORKFLOWS)]);
    std::fs::create_dir(folder.path().join(".kelos")).expect("a folder");
    for name in ["kelos.db", "kelos.db.lock"] {
        let of = |folder: &Path| folder.join(".kelos").join(name);
        std::fs::copy(of(left.path()), of(folder.path())).expect("a copy");
    }
    Connection::open(folder.path().join(DATABASE)).expect("a database").execute_batch(sql).expect("to be changed");
    folder
}

/// What is found: the damage, and the first disagreement.
fn found(folder: &Folder) -> (Vec<Value>, Value) {
    let output = folder.run(&["verify", "--json"]);
    assert_eq!(output.code, 4, "{}{}", output.out, output.err);
    let told: Value = serde_json::from_str(&output.out).expect("JSON");
    (told["damage"].as_array().expect("damage").clone(), told["disagreements"][0].clone())
}

#[test]
fn what_does_not_agree_is_named() {
    let left = left_behind();
    let told = changed(&left, "").json(&["verify", "--json"]);
    assert!(told["turns"].as_u64() > Some(2) && told["slots"].as_u64() >= Some(9), "{told}");
    assert_eq!((&told["damage"], &told["disagreements"]), (&Value::Array(vec![]), &Value::Array(vec![])));

    let conn = Connection::open(left.path().join(DATABASE)).expect("a database");
    let number = |sql: &str| conn.query_row(sql, [], |row| row.get::<_, u64>(0)).expect("a number");
    let (started, turn) = (number("SELECT min(seq) FROM events WHERE instr(body, 'started')"), |event: u64| {
        number(&format!("SELECT max(turn) FROM turns WHERE first_event <= {event}"))
    });

    // A byte of an event flips, and its check value with it is not what it was.
    let sql = format!("UPDATE events SET body = replace(body, 'started', 'startee') WHERE seq = {started}");
    let (damage, first) = found(&changed(&left, &sql));
    assert!(
        damage[0].as_str().expect("words").contains(&format!("an event beginning with ({started}, ")),
        "{damage:?}"
    );
    assert_eq!(first["turn"], turn(started));
    assert!(first["what"].as_str().expect("words").contains("does not agree with its digest"), "{first}");

    // Somebody changed it with care.
    let sql = format!("UPDATE events SET at = at + 1, check_value = NULL WHERE seq = {started}");
    let (damage, first) = found(&changed(&left, &sql));
    assert_eq!((damage.len(), &first["turn"]), (0, &turn(started).into()));

    // A slot that was changed, and accepted, is not that of the log.
    let folder = changed(&left, "UPDATE slots SET retries = 7 WHERE state = 6");
    assert!(folder.run(&["verify", "--accept"]).ok().contains("is accepted as it is"));
    let (damage, first) = found(&folder);
    assert_eq!(damage.len(), 0);
    assert!(first["slot"].as_str().expect("a slot").starts_with("tick@"), "{first}");
    assert!(first["event"].as_u64() > Some(0) && first["turn"].as_u64() > Some(0), "{first}");
    assert!(first["what"].as_str().expect("words").ends_with("retries is 0 by the log, 7 in the table"), "{first}");
    let told = folder.run(&["verify"]).out;
    assert!(told.contains("retries is 0 by the log, 7 in the table\n") && told.contains(" not agree\n"), "{told}");

    // A slot that is gone, and one that was never planned.
    let sql = "DELETE FROM slots WHERE state = 6; UPDATE workflows SET slots = (SELECT count(*) FROM slots), counts_check = NULL";
    let (damage, first) = found(&changed(&left, sql));
    assert_eq!((damage.len(), &first["what"]), (0, &"it happened to a slot that the table does not have".into()));
    let columns =
        "workflow, key, kind, state, since, retries, last_run, last_run_seq, run_alive, priority, said, last_event";
    let sql = format!(
        "INSERT INTO slots (scheduled_at, {columns}) SELECT scheduled_at + 1, {columns} FROM slots LIMIT 1; \
         UPDATE workflows SET slots = slots + 1, counts_check = NULL"
    );
    let (damage, first) = found(&changed(&left, &sql));
    assert_eq!((damage.len(), &first["what"]), (0, &"the table has it, and the log knows nothing of it".into()));
    // One whose key is of no kind.
    let (_, first) = found(&changed(&left, &sql.replace("workflow, key, kind,", "workflow, key,")));
    assert!(first["what"].as_str().expect("words").contains("kind"), "{first}");

    // An event, and a turn.
    let (damage, first) = found(&changed(&left, &format!("DELETE FROM events WHERE seq = {started}")));
    // If the server had just noted its last event, the note tells as well that one is missing.
    let told = |one: &Value| one.as_str().expect("words").starts_with("the log ends with event");
    assert!(damage.iter().any(told), "{damage:?}");
    assert_eq!((&first["turn"], &first["event"]), (&turn(started).into(), &started.into()));
    assert_eq!(first["what"], "it is missing");
    let (_, first) = found(&changed(&left, "DELETE FROM turns WHERE turn = 2"));
    assert_eq!((&first["turn"], &first["what"]), (&3.into(), &"turn 2 before it is missing".into()));
    let (_, first) = found(&changed(&left, "DELETE FROM turns WHERE turn = (SELECT max(turn) FROM turns)"));
    assert!(first["what"].as_str().expect("words").starts_with("no turn has it"), "{first}");
}

#[test]
fn an_older_database_is_left_as_it_is() {
    let folder = Folder::with(&[("workflows/tick.js", WORKFLOWS)]);
    std::fs::create_dir(folder.path().join(".kelos")).expect("a folder");
    let path = folder.path().join(DATABASE);
    let conn = Connection::open(&path).expect("a database");
    conn.execute_batch(include_str!("../../../fixtures/databases/schema-10.sql")).expect("to be written");
    // What programs of before did not write down of a slot is not missed.
    let sql = "UPDATE slots SET said = said + 1, asked_at = NULL, check_value = NULL; DROP TABLE turns; PRAGMA user_version = 9";
    conn.execute_batch(sql).expect("to be changed");
    drop(conn);
    let before = std::fs::read(&path).expect("a database");
    let told = folder.run(&["verify"]).fails(1);
    assert!(told.contains("its schema is version 9"), "{told}");
    assert_eq!(std::fs::read(&path).expect("a database"), before);
    // Once it was brought up to date all of it agrees.
    let server = Server::up(&folder);
    assert!(server.stop().success());
    assert!(folder.run(&["verify"]).ok().contains(": all agree\n"));
}
