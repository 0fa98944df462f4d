//! Signed checkpoints: where they go, and what `kelos verify --against` finds with them.

use std::io::{Read, Write};
use std::path::Path;

use crate::support::webhook::webhook;
use crate::support::{Folder, Server, eventually};
use kelos_store::{Digest, PageRequest, StoredState};
use kelos_store_sqlite::SqliteStore;
use rusqlite::Connection;
use serde_json::Value;

const WORKFLOWS: &str = r#"celos.defineWorkflow({
    "id": "tick",
    "schedule": celos.minutelySchedule(),
    "schedulingStrategy": celos.serialSchedulingStrategy(3),
    "trigger": celos.alwaysTrigger(),
    "maxRetryCount": 0,
    "externalService": celos.commandExternalService({"command": ["true"]})
});
"#;

const DATABASE: &str = ".kelos/kelos.db";

/// A folder whose checkpoints go to `outside`, a folder of its own, each second.
fn folder(to: &[&str]) -> Folder {
    let folder = Folder::with(&[("workflows/tick.js", WORKFLOWS)]);
    let outside = folder.path().join("outside").display().to_string();
    let to: Vec<&str> = to.iter().copied().chain([outside.as_str()]).collect();
    let config = serde_json::json!({"checkpoints": {"every": "1s", "to": to, "instance": "shop"}});
    folder.write("config.json", &config.to_string());
    folder
}

fn up(folder: &Folder) -> Server {
    Server::start(folder.path(), &["up", "--config", "config.json"], "Stop with Ctrl-C")
}

/// The names of the objects outside.
fn objects(folder: &Folder) -> Vec<String> {
    let Ok(listed) = std::fs::read_dir(folder.path().join("outside")) else { return Vec::new() };
    let mut names: Vec<String> =
        listed.map(|entry| entry.expect("an entry").file_name().into_string().expect("a name")).collect();
    names.sort();
    names
}

/// Waits until there are this many more checkpoints outside.
fn await_more(folder: &Folder, more: usize) {
    let before = objects(folder).len();
    eventually("checkpoints", || (objects(folder).len() >= before + more).then_some(()));
}

/// The codes and words of what `kelos verify --against` finds.
fn contradictions(folder: &Folder, code: i32) -> Vec<(String, String)> {
    let said = folder.run(&["verify", "--against", "outside", "--json"]);
    assert_eq!(said.code, code, "{}{}", said.out, said.err);
    let found: Value = serde_json::from_str(&said.out).expect("JSON");
    let listed = found["checkpoints"]["contradictions"].as_array().expect("contradictions");
    let text = |one: &Value, name: &str| one[name].as_str().expect("a text").to_owned();
    listed.iter().map(|one| (text(one, "code"), text(one, "what"))).collect()
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for entry in std::fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        if entry.file_type().expect("a kind").is_file() {
            std::fs::copy(entry.path(), to.join(entry.file_name())).expect("a copy");
        }
    }
}

/// Changes an event and recomputes the chain from there on, as somebody does who knows the program. Returns the turn of the event.
fn replace_history(database: &Path) -> u64 {
    let conn = Connection::open(database).expect("a database");
    let number = |sql: &str| conn.query_row(sql, [], |row| row.get::<_, u64>(0)).expect("a number");
    let event = number("SELECT min(seq) FROM events WHERE instr(body, 'started')");
    let changed = number(&format!("SELECT max(turn) FROM turns WHERE first_event <= {event}"));
    conn.execute(&format!("UPDATE events SET at = at + 1, check_value = NULL WHERE seq = {event}"), [])
        .expect("a change");
    let reader = SqliteStore::look(database).expect("a store").reader();
    let turns = reader.turns(PageRequest::oldest(100_000)).expect("turns").rows;
    let mut before = Digest::default();
    for turn in turns {
        before = reader.recount(&turn, &before).expect("a digest").digest;
        let at = turn.at.as_millisecond();
        let numbers = [turn.turn, turn.epoch, at as u64, turn.first_event, turn.events, turn.body.into()];
        let mut row: Vec<u8> = numbers.iter().flat_map(|number| [&[1][..], &number.to_le_bytes()].concat()).collect();
        row.extend([4, 32, 0, 0, 0, 0, 0, 0, 0]);
        row.extend(before.as_bytes());
        let sql = "UPDATE turns SET digest = ?1, check_value = ?2 WHERE turn = ?3";
        conn.execute(sql, (before.as_bytes(), crc32fast::hash(&row), turn.turn)).expect("a change");
    }
    changed
}

#[test]
fn checkpoints_go_outside_and_tell_a_log_from_another() {
    let (hook, posted) = webhook(|_| "204 No Content");
    let folder = folder(&[&format!("{hook}?token=secret")]);
    let server = up(&folder);
    await_more(&folder, 2);
    let posts: Vec<Value> = (0..2).map(|_| posted.recv().expect("a post").body).collect();
    // Beside a server that goes on.
    assert_eq!(contradictions(&folder, 0), []);
    assert!(server.stop().success());

    // The last turn has one, because the server ended in good order.
    let said = folder.run(&["verify", "--against", "outside"]).ok();
    assert!(said.contains(": all agree\n") && !said.contains("have no checkpoint yet"), "{said}");
    assert!(said.contains("checkpoints hold, up to turn "), "{said}");
    let names = objects(&folder);
    let text = std::fs::read_to_string(folder.path().join("outside").join(&names[0])).expect("a checkpoint");
    let first: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(posts[0], first);
    assert_eq!(first["instance"], "shop");
    // The file beside the database has them, too, and the key is its owner's.
    assert!(folder.run(&["verify", "--against", ".kelos/checkpoints.jsonl"]).ok().contains(" hold, up to turn "));
    let key = folder.json(&["key", "show", "--json"]);
    assert_eq!(key["key"], first["key"]);
    let pem = folder.run(&["key", "show"]).ok();
    folder.write("checkpoint.pem", &pem);
    let args = ["verify", "--against", "outside", "--public-key", "checkpoint.pem"];
    assert!(folder.run(&args).ok().contains(" hold, up to turn "));

    // Somebody recomputes the whole chain: without checkpoints, nothing is wrong.
    let state = folder.path().join(".kelos");
    let kept = folder.path().join("kept");
    copy(&state, &kept);
    let changed = replace_history(&folder.path().join(DATABASE));
    let alone = folder.json(&["verify", "--json"]);
    assert_eq!((&alone["damage"], &alone["disagreements"]), (&serde_json::json!([]), &serde_json::json!([])));
    let found = contradictions(&folder, 4);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].0, "history-replaced");
    let first_after =
        names.iter().map(|name| name[11..31].parse::<u64>().expect("a turn")).find(|turn| *turn >= changed);
    let expected = format!("turn {} has another digest than the checkpoint of ", first_after.expect("a later one"));
    assert!(found[0].1.starts_with(&expected), "{found:?}, {changed}");
    let said = folder.run(&["verify", "--against", "outside"]).out;
    assert!(said.ends_with("agrees with itself, and not with the checkpoints: restore a backup that does\n"), "{said}");

    // An older copy is put back, together with the file that would say so.
    copy(&kept, &state);
    let server = up(&folder);
    await_more(&folder, 1);
    assert!(server.stop().success());
    copy(&kept, &state);
    std::fs::remove_file(state.join("kelos.db-wal")).ok();
    let found = contradictions(&folder, 4);
    assert_eq!(found.iter().map(|one| &*one.0).collect::<Vec<_>>(), ["tail-cut"], "{found:?}");
    assert!(found[0].1.ends_with("its tail was cut off, or an older copy restored"), "{found:?}");

    // A checkpoint that was changed, and one by another hand.
    let target = folder.path().join("outside").join(&names[0]);
    std::fs::write(&target, text.replace("\"epoch\":", "\"epoch\":1")).expect("a change");
    let found = contradictions(&folder, 4);
    assert_eq!(found[0].0, "no-signature");
    assert!(found[0].1.contains("its signature does not agree with what it says"), "{found:?}");
}

#[test]
fn a_target_that_is_away_is_a_problem_and_gets_all_later() {
    let folder = folder(&["http://127.0.0.1:1/hook"]);
    // A file is where the folder should be.
    let outside = folder.write("outside", "");
    let server = up(&folder);
    let address = server.address().to_owned();
    let mut api = || {
        let said = crate::support::run(&["ls", "--server", &address]);
        assert_eq!(said.code, 0, "{}", said.err);
        let text = get(&format!("{address}/api/v1/problems"));
        let found: Value = serde_json::from_str(&text).expect("JSON");
        let of = |one: &Value| one["code"] == "checkpoint-fails";
        let listed = found["items"].as_array().expect("items").clone();
        let files: Vec<String> =
            listed.into_iter().filter(of).map(|one| one["file"].as_str().expect("a file").to_owned()).collect();
        (files.len() >= 2).then_some(files)
    };
    let files = eventually("problems", &mut api);
    assert!(files.contains(&"http://127.0.0.1:1/hook".to_owned()), "{files:?}");
    assert!(get(&format!("{address}/ui/problems")).contains("<h2>Checkpoints</h2>"));
    std::fs::remove_file(outside).expect("to be removed");
    await_more(&folder, 2);
    assert_eq!(contradictions(&folder, 0), []);
    assert!(server.stop().success());
}

#[test]
fn what_makes_no_sense_is_refused() {
    let folder = folder(&[]);
    folder.write("bad.json", r#"{"checkpoints": {"every": "soon"}}"#);
    let said = folder.run(&["up", "--config", "bad.json"]).fails(2);
    assert!(said.contains("its checkpoints: `every` is \"soon\", expected a duration from 1s to 7d (168h)"), "{said}");
    let server = up(&folder);
    await_more(&folder, 1);
    assert!(server.stop().success());
    let said = folder.run(&["verify", "--against", "nowhere"]).fails(2);
    assert!(said.contains("nowhere: nothing is there"), "{said}");
    let said = folder.run(&["verify", "--against", "workflows"]).fails(2);
    assert!(said.contains("read checkpoints from workflows: there are none"), "{said}");
    let said = folder.run(&["verify", "--against", "outside", "--public-key", "config.json"]).fails(2);
    assert!(said.contains("it is no public key of Ed25519, expected 64 hexadecimal digits or PEM"), "{said}");
    folder.write("other.hex", "ea4a6c63e29c520abef5507b132ec5f9954776aebebe7b92421eea691446d22c");
    let said = folder.run(&["verify", "--against", "outside", "--public-key", "other.hex"]);
    assert_eq!(said.code, 4);
    assert!(said.out.contains("no checkpoint there is signed with the expected key\n"), "{}", said.out);
}

/// The body of a page.
fn get(url: &str) -> String {
    let (host, path) = url.strip_prefix("http://").expect("a URL").split_once('/').expect("a path");
    let mut stream = std::net::TcpStream::connect(host).expect("a connection");
    write!(stream, "GET /{path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n").expect("a request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer.split_once("\r\n\r\n").expect("a body").1.to_owned()
}

/// Recomputes the digests of an exported log, as somebody does without Kelos; returns the number of turns.
fn recomputed(log: &str) -> usize {
    use sha2::{Digest as _, Sha256};
    fn column(hash: &mut Sha256, value: &Value) {
        match value {
            Value::Null => hash.update([0]),
            Value::Number(number) => {
                hash.update([1]);
                hash.update(number.as_i64().expect("a number").to_le_bytes());
            }
            Value::String(text) => {
                hash.update([3]);
                hash.update((text.len() as u64).to_le_bytes());
                hash.update(text.as_bytes());
            }
            other => panic!("{other}"),
        }
    }
    let (mut before, mut turns, mut open) = (Vec::new(), 0, None::<(Sha256, Value)>);
    let unhex = |text: &str| {
        (0..32).map(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).expect("hex")).collect::<Vec<u8>>()
    };
    let mut end = |open: Option<(Sha256, Value)>, before: &mut Vec<u8>| {
        let Some((hash, digest)) = open else { return };
        *before = hash.finalize().to_vec();
        assert_eq!(*before, unhex(digest.as_str().expect("a digest")));
        turns += 1;
    };
    for line in log.lines() {
        let line: Value = serde_json::from_str(line).expect("JSON");
        if let Some(digest) = line["before"].as_str() {
            before = unhex(digest);
        } else if line["turn"].is_u64() {
            end(open.take(), &mut before);
            let mut hash = Sha256::new();
            hash.update(&before);
            ["turn", "epoch", "at", "firstEvent", "events", "body"]
                .iter()
                .for_each(|name| column(&mut hash, &line[*name]));
            open = Some((hash, line["digest"].clone()));
        } else {
            let hash = &mut open.as_mut().expect("a turn").0;
            line["event"]
                .as_array()
                .into_iter()
                .flatten()
                .chain(line.get("deletions"))
                .for_each(|value| column(hash, value));
        }
    }
    end(open, &mut before);
    turns
}

#[test]
fn an_exported_log_is_verified_without_kelos() {
    let folder = folder(&[]);
    let server = up(&folder);
    await_more(&folder, 1);
    assert!(server.stop().success());
    let said = folder.run(&["export", "log", "log.jsonl"]).ok();
    assert!(said.starts_with("wrote ") && said.ends_with(" to log.jsonl\n"), "{said}");
    let log = std::fs::read_to_string(folder.path().join("log.jsonl")).expect("a log");
    let turns = recomputed(&log);
    assert!(turns > 2);
    let part = folder.run(&["export", "log", "-", "--from", "2", "--to", "4"]).ok();
    assert_eq!(recomputed(&part), 3);
    let part = folder.run(&["export", "log", "-", "--from", "3", "--to", "3"]).ok();
    assert_eq!(recomputed(&part), 1);
    let events = folder.run(&["export", "log", "-", "--workflow", "tick"]).ok();
    assert!(events.lines().count() > 3 && events.lines().all(|line| line.starts_with("{\"event\":[")), "{events}");
    let said = folder.run(&["export", "log", "log.jsonl"]).fails(1);
    assert!(said.contains("write log.jsonl: File exists") && said.contains("hint: --force overwrites it"), "{said}");
    folder.run(&["export", "log", "log.jsonl", "--force"]).ok();
    let said = folder.run(&["export", "log", "-", "--from", "4", "--to", "2"]).fails(2);
    assert!(said.contains("export turns 4 to 2: expected --from before --to"), "{said}");
}
