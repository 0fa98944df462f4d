//! `kelos doctor`, beside a real server, without one, and from elsewhere; and its bundle, in which secrets are looked for.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::support::{Folder, Said, Server, eventually, kelos};
use rusqlite::Connection;
use serde_json::Value;

const WORKFLOWS: &str = r#"kelos.workflow("tick", {schedule: "* * * * *", shell: "true"});
"#;

fn folder() -> Folder {
    Folder::with(&[("workflows/tick.js", WORKFLOWS)])
}

/// The results of a check, as level and text.
fn results(told: &Value, check: &str) -> Vec<String> {
    let all = told["checks"].as_array().expect("checks").iter().filter(|one| one["check"] == check);
    all.map(|one| format!("{} {}", one["level"].as_str().expect("a level"), one["found"].as_str().expect("words")))
        .collect()
}

fn json(said: Said, code: i32) -> Value {
    assert_eq!(said.code, code, "{}{}", said.out, said.err);
    serde_json::from_str(&said.out).expect("JSON")
}

fn doctor(folder: &Folder, more: &[&str], code: i32) -> Value {
    json(folder.run(&[&["doctor", "--json"], more].concat()), code)
}

#[test]
fn beside_a_server_all_checks_say_what_they_found() {
    let folder = folder();
    let before = doctor(&folder, &[], 0);
    assert_eq!(results(&before, "server"), ["warning no server runs: nothing is scheduled"]);
    assert_eq!(results(&before, "permissions"), ["ok no server has made its files here yet"]);
    assert!(results(&before, "store")[0].starts_with("ok there is no database yet"), "{before}");

    let server = Server::up(&folder);
    // Turns are verified while they are written.
    let told = eventually("a quiet server", || {
        Some(doctor(&folder, &[], 0)).filter(|told| results(told, "lag")[0].starts_with("ok nothing is stuck"))
    });
    assert_eq!(told["ok"], true);
    assert_eq!(results(&told, "server"), [format!("ok {} leads and schedules", server.address())]);
    let clock = &results(&told, "clock")[0];
    assert!(clock.starts_with("ok this machine, the server and the newest turn agree"), "{clock}");
    assert!(results(&told, "permissions")[0].starts_with("ok 3 secrets and "), "{told}");
    assert!(
        results(&told, "store")[0].contains(" digest") && results(&told, "store")[0].ends_with(" leads on it"),
        "{told}"
    );
    assert!(results(&told, "scripts")[0].ends_with("without errors; the server has loaded all of its files"), "{told}");
    let all: Vec<&str> =
        told["checks"].as_array().expect("checks").iter().filter_map(|one| one["check"].as_str()).collect();
    let names =
        ["server", "clock", "disk", "permissions", "store", "versions", "scripts", "endpoints", "workers", "lag"];
    assert_eq!(all, names);

    let elsewhere = tempfile::tempdir().expect("a folder");
    let said = Said::of(
        kelos(&["doctor", "--server", server.address()]).current_dir(elsewhere.path()).output().expect("kelos"),
    );
    let told = said.ok();
    assert!(!told.contains("permissions") && told.contains("leads and schedules"), "{told}");
    assert!(told.ends_with("nothing is wrong\n"), "{told}");

    // A server that was killed leaves its address behind, where the server of another test may listen by now.
    server.crash();
    let told = doctor(&folder, &[], 1);
    let found = &results(&told, "server")[0];
    assert!(found.starts_with("wrong failed to reach ") && found.contains(" at http://127.0.0.1:"), "{told}");
    assert!(results(&told, "store")[0].ends_with("no server leads on it"), "{told}");
}

#[test]
fn what_is_wrong_is_named_with_what_to_do() {
    let folder = folder();
    let server = Server::up(&folder);
    assert!(server.stop().success());
    let state = folder.path().join(".kelos");
    std::fs::set_permissions(state.join("session.key"), Permissions::from_mode(0o644)).expect("rights");
    std::fs::write(folder.path().join("workflows/broken.js"), "kelos.workflow(\n").expect("a script");
    let conn = Connection::open(state.join("kelos.db")).expect("a database");
    conn.execute_batch("UPDATE turns SET at = at + 7200000 WHERE turn = (SELECT max(turn) FROM turns)")
        .expect("a change");
    drop(conn);
    let told = doctor(&folder, &[], 1);
    let key = state.canonicalize().expect("a path").join("session.key");
    let wrong = format!("wrong other users have rights on {}: its mode is 644", key.display());
    assert_eq!(results(&told, "permissions"), [wrong]);
    assert!(results(&told, "scripts")[0].contains("broken.js:"), "{told}");
    // The row has a checksum, so that it is damaged, too.
    assert!(results(&told, "store")[0].starts_with("wrong "), "{told}");

    let said = folder.run(&["doctor"]);
    assert_eq!(said.code, 1, "{}", said.err);
    assert!(said.out.contains("hint: chmod 600 ") && said.out.contains("things are wrong"), "{}", said.out);
}

#[test]
fn bad_input_says_what_was_expected() {
    let folder = folder();
    let usage = |args: &[&str]| folder.run(&[&["doctor"], args].concat()).fails(2);
    assert!(usage(&["--bundle", "kelos.zip"]).contains("expected a name that ends with .tar.gz"));
    std::fs::write(folder.path().join("a.tar.gz"), "").expect("a file");
    assert!(usage(&["--bundle", "a.tar.gz"]).contains("there is such a file already"));
    assert!(usage(&["--db", "nowhere"]).contains("there is no such folder"));
    assert!(usage(&["--dir", ".", "--db", "."]).contains("cannot be used with"));
    assert!(usage(&["--server", "ftp://a"]).contains("expected an address such as http://127.0.0.1:7437"));
    assert!(usage(&["--with-scripts"]).contains("--bundle"));
    let told = doctor(&folder, &["--store", "file:nowhere"], 1);
    assert_eq!(results(&told, "store")[1], "wrong failed to open the log in nowhere: there is no such folder");
}

#[test]
fn a_node_is_compared_with_the_log_that_it_follows() {
    let folder = Folder::with(&[]);
    std::fs::create_dir(folder.path().join("log")).expect("a folder");
    let args = ["serve", "--port=0", "--store=file:log", "--state=state"];
    let server = Server::start(folder.path(), &args, "`kelos deploy --server`\n");
    let asked = ["--state=state", "--store=file:log", "--server", server.address(), "--token-file=state/owner.token"];
    let told = eventually("a leader", || {
        let said = folder.run(&[&["doctor", "--json"], &asked[..]].concat());
        let told: Value = serde_json::from_str(&said.out).expect("JSON");
        Some(told).filter(|told| results(told, "store").get(1).is_some_and(|log| log.starts_with("ok file:")))
    });
    let store = results(&told, "store");
    assert!(store[0].contains("; it has followed a log up to entry "), "{told}");
    assert!(store[1].contains(" leads in epoch 1, entries 1 to ") && store[1].ends_with(" behind"), "{told}");
    assert_eq!(results(&told, "scripts"), ["ok the server has loaded all of its files"]);
    assert!(results(&told, "versions")[0].starts_with("ok this program is version"), "{told}");
    assert!(server.stop().success());
    let told = json(folder.run(&["doctor", "--json", "--state=state", "--store=file:log"]), 0);
    assert_eq!(results(&told, "store")[1..], ["warning no node leads over file:log"]);
}

/// A script with secrets in all places where people put them.
const SECRETS: &str = r#"kelos.workflow("load", {
    schedule: "* * * * *",
    shell: "echo SECRET-in-output; exit 1",
    env: {A: {secret: "env:KELOS_SECRET_A"}, B: {secret: "file:/SECRET-path"}, C: "SECRET-plain"},
    description: "SECRET-about"
});
throw new Error("SECRET-thrown");
"#;

/// The text of all files in a bundle, and their names.
fn unpacked(path: &Path) -> (String, Vec<String>) {
    let out = Command::new("tar").arg("-xzOf").arg(path).output().expect("tar");
    assert!(out.status.success());
    let names = Command::new("tar").arg("-tzf").arg(path).output().expect("tar");
    let names = String::from_utf8(names.stdout).expect("text").lines().map(str::to_owned).collect();
    (String::from_utf8(out.stdout).expect("text"), names)
}

/// Writes a bundle beside a server of `kelos serve`, and unpacks it.
fn bundle_of(folder: &Folder, file: &str, more: &[&str]) -> (String, Vec<String>) {
    let place = ["--db=db", "--workflows=workflows", "--defaults=defaults", "--logs=logs", "--config=config.json"];
    let args = [&["doctor", "--bundle", file], &place[..], more].concat();
    let mut command = kelos(&args);
    command.current_dir(folder.path()).env("KELOS_SECRET_A", "SECRET-environment");
    command.env("AWS_ACCESS_KEY_ID", "SECRET-aws");
    let said = Said::of(command.output().expect("kelos"));
    assert!(said.out.contains(&format!("wrote {file}: ")), "{}{}", said.out, said.err);
    let path = folder.path().join(file);
    assert_eq!(std::fs::metadata(&path).expect("a file").permissions().mode() & 0o777, 0o600);
    unpacked(&path)
}

#[test]
fn the_bundle_has_no_secrets() {
    let good = SECRETS.split("throw").next().expect("a script");
    let config = r#"{"links": [{"name": "x", "url": "https://h/SECRET-link"}],
        "secrets": {"*": ["env:KELOS_SECRET_A", "file:/SECRET-path", "exec:SECRET-exec"]},
        "alerts": {"channels": {"team": {"webhook": "http://127.0.0.1:9/SECRET-channel"}}, "rules": [{"to": ["team"]}]},
        "checkpoints": {"to": ["https://127.0.0.1:9/SECRET-webhook"]}}"#;
    let folder = Folder::with(&[("workflows/load.js", good), ("config.json", config)]);
    let db = folder.path().join("db");
    for name in ["defaults", "db", "logs"] {
        std::fs::create_dir(folder.path().join(name)).expect("a folder");
    }
    let mut args = vec!["serve", "--port=0", "--workflows=workflows", "--defaults=defaults", "--db=db", "--logs=logs"];
    args.extend(["--autoSchedule=1", "--planning-window=10m", "--config=config.json"]);
    let server = Server::start(folder.path(), &args, "every 1 s\n");
    let door = ["--server", server.address(), "--token-file", "db/owner.token"];
    let ask = |args: &[&str]| folder.run(&[args, &door].concat()).ok();
    eventually("failures", || ask(&["failures"]).contains("load").then_some(()));
    let put = ureq::put(format!("{}/api/v1/registers/b/k", server.address()))
        .header(
            "authorization",
            format!("Bearer {}", std::fs::read_to_string(db.join("owner.token")).expect("a token").trim()),
        )
        .header("content-type", "application/json")
        .send(
            r#"{"a": "SECRET-register", "state": "failed", "of": "load", "last": "paused", "password": "swordfish"}"#,
        );
    assert!(put.is_ok(), "{put:?}");
    ask(&["start", "load", "--argument", "password=SECRET-argument"]);
    std::fs::write(folder.path().join("workflows/bad.js"), SECRETS.replace("load", "bad")).expect("a script");
    eventually("a problem", || {
        let url = format!("{}/api/v1/problems", server.address());
        let told = ureq::get(url).call().ok()?.body_mut().read_to_string().ok()?;
        told.contains("SECRET-thrown").then_some(())
    });
    // The server makes one at its first checkpoint, in an hour.
    std::fs::create_dir_all(db.join("keys")).expect("a folder");
    std::fs::write(db.join("keys/checkpoint.key"), "SECRET-key\n").expect("a key");
    let name = "kelos.2999-01-01.log";
    let line = r#"{"timestamp":"t","level":"WARN","target":"x","message":"failed to read https://u:SECRET-log@h/SECRET-path of \"SECRET-quoted\": SECRET-register, swordfish","argument":"SECRET-field"}"#;
    std::fs::write(folder.path().join("logs").join(name), format!("{line}\nSECRET-line\n")).expect("a log");

    // The book of alerts has words of all kinds in it.
    eventually("an alert", || ask(&["alerts"]).contains("load").then_some(()));

    let bundle = |file: &str, more: &[&str]| bundle_of(&folder, file, &[&door[..], more].concat());
    let (text, names) = bundle("all.tar.gz", &[]);
    for name in
        ["README.txt", "checks.json", "config.json", "tables.json", "log.jsonl", "environment.json", "problems.json"]
    {
        assert!(names.contains(&format!("kelos-doctor/{name}")), "{names:?}");
    }
    let found: Vec<&str> = text.lines().filter(|line| line.contains("SECRET-") || line.contains("swordfish")).collect();
    assert_eq!(found, Vec::<&str>::new());
    for file in ["owner.token", "session.key"] {
        let secret = std::fs::read_to_string(db.join(file)).expect("a secret");
        let secret = secret.lines().map(str::trim).find(|line| !line.starts_with("---")).expect("a line");
        assert!(!text.contains(secret), "{file} is in the bundle");
    }
    // All that helps is there.
    for told in ["\"script-threw\"", "\"KELOS_SECRET_A\"", "\"load\"", "\"slots\"", "https://h/…"] {
        assert!(text.contains(told), "{told} in {text}");
    }
    for told in ["\"paused\": false", "\"state\": \"failed\"", "failed to read https://h/… of \\\"…\\\": ••••, ••••"]
    {
        assert!(text.contains(told), "{told} in {text}");
    }
    let (text, names) = bundle("scripts.tar.gz", &["--with-scripts"]);
    assert!(names.contains(&"kelos-doctor/scripts/workflows/load.js".to_owned()), "{names:?}");
    assert!(text.contains("SECRET-about") && !text.contains("SECRET-register"), "{text}");
}
