//! A server with a certificate, and the commands that ask it.

use std::process::Command;

use crate::support::{Folder, Server, eventually, kelos};
use rcgen::{CertificateParams, KeyPair};

/// A folder with a self-signed certificate for these names.
fn folder(names: &[&str]) -> Folder {
    let folder = Folder::with(&[]);
    issue(&folder, names);
    folder
}

fn issue(folder: &Folder, names: &[&str]) {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let key = KeyPair::generate().expect("a key");
    let made = CertificateParams::new(names).and_then(|params| params.self_signed(&key)).expect("a certificate");
    folder.write("tls/next/cert.pem", &made.pem());
    folder.write("tls/next/key.pem", &key.serialize_pem());
    let _ = std::fs::remove_dir_all(folder.path().join("tls/live"));
    std::fs::rename(folder.path().join("tls/next"), folder.path().join("tls/live")).expect("a rename");
}

const CERTIFICATE: [&str; 4] = ["--tls-cert", "tls/live/cert.pem", "--tls-key", "tls/live/key.pem"];

fn up(folder: &Folder) -> Server {
    Server::start(folder.path(), &[&["up"], &CERTIFICATE[..]].concat(), "Stop with Ctrl-C")
}

/// A folder whose trigger and whose job ask the server over TLS, with a file of settings.
fn client_of(server: &Server) -> Folder {
    let address = server.address().replace("127.0.0.1", "localhost");
    let script = format!(
        r#"celos.defineWorkflow({{
            id: "asks",
            schedule: celos.minutelySchedule(),
            startTime: "{}",
            schedulingStrategy: celos.serialSchedulingStrategy(1),
            trigger: celos.pathTrigger("{address}/api/v1/version"),
            externalService: celos.httpExternalService({{method: "GET", url: "{address}/api/v1/version"}})
        }});"#,
        jiff::Timestamp::from_second(jiff::Timestamp::now().as_second() - 90).expect("a time"),
    );
    Folder::with(&[("workflows/asks.js", &script)])
}

#[test]
fn jobs_and_paths_trust_what_the_file_of_the_server_says() {
    let service = folder(&["localhost"]);
    let server = up(&service);
    let folder = client_of(&server);
    let certificate = service.path().join("tls/live/cert.pem");
    let settings = serde_json::json!({"tls": {"ca": certificate}, "limits": {"streams": 8}});
    folder.write("settings.json", &settings.to_string());
    let _server = Server::start(folder.path(), &["up", "--config", "settings.json"], "Stop with Ctrl-C");
    eventually("the job has asked", || folder.states("asks").contains(&"succeeded".to_owned()).then_some(()));
}

#[test]
fn what_is_not_trusted_is_told_where_it_is_asked_about() {
    let service = folder(&["localhost"]);
    let server = up(&service);
    let folder = client_of(&server);
    let _server = Server::up(&folder);
    let told = eventually("told", || {
        let why = folder.run(&["why", "asks"]);
        (why.code == 0 && why.out.contains("signed by no authority")).then_some(why.out)
    });
    assert!(told.contains("its certificate is signed by no authority that is trusted here"), "{told}");
    let pins = serde_json::json!({"tls": {"pin": {"localhost": "sha256:0"}}});
    folder.write("settings.json", &pins.to_string());
    let told = folder.run(&["up", "--config", "settings.json"]).fails(2);
    assert!(told.contains("the pin of \"localhost\""), "{told}");
    let said = folder.run(&["check", "--config", "settings.json"]);
    assert!(said.code == 1 && said.out.contains("the pin of \"localhost\""), "{} {}", said.code, said.out);
}

#[test]
fn workers_find_a_leader_that_speaks_tls() {
    let folder = folder(&["kelos.example"]);
    let tasks = serde_json::json!({"app1": {"job_id": "{date}_{client_id}", "bash_cmd": "true"}});
    folder.write("tasks.json", &tasks.to_string());
    let server = Server::start(folder.path(), &[&["up", "--workers"], &CERTIFICATE[..]].concat(), "Stop with Ctrl-C");
    assert!(server.address().starts_with("https://"), "{}", server.said);
    let _worker = Server::start(folder.path(), &["worker"], "is running");
    folder.run(&["submit", "-a", "app1", "-j", "20140101_1"]).ok();
    eventually("done", || folder.states("app1").contains(&"succeeded".to_owned()).then_some(()));
}

#[test]
fn a_new_file_that_can_not_be_used_is_a_problem_and_the_old_certificate_stays() {
    let folder = folder(&["kelos.example"]);
    let server = up(&folder);
    folder.write("tls/live/cert.pem", "broken");
    let problem = eventually("told", || {
        let problems: serde_json::Value = asked(&folder, &server, "/api/v1/problems");
        problems["items"].as_array().and_then(|all| all.first().cloned())
    });
    assert_eq!(problem["code"], "bad-certificate");
    let message = problem["message"].as_str().expect("text");
    assert!(message.contains("it has no certificate") && message.contains("is still shown"), "{message}");
    assert_eq!(folder.run(&["ls"]).ok(), "no workflows\n");
}

/// The answer of the server of a folder, with its recorded pin.
fn asked(folder: &Folder, server: &Server, path: &str) -> serde_json::Value {
    let record = std::fs::read_to_string(folder.path().join(".kelos/server.json")).expect("a record");
    let record: serde_json::Value = serde_json::from_str(&record).expect("JSON");
    let pin = record["pin"].as_str().and_then(|pin| pin.parse().ok());
    let trust = kelos_tls::Trust::new(kelos_tls::TrustSettings { pin, ..Default::default() }).expect("trust");
    let runtime = tokio::runtime::Runtime::new().expect("threads");
    let http = kelos_executors::http::Http::new(&trust);
    let url = format!("{}{path}", server.address()).parse().expect("a URL");
    let request = http.request(kelos_executors::http::Method::GET, url).expect("a request");
    runtime.block_on(http.send(request)).expect("an answer").json().expect("JSON").value().clone()
}

#[test]
fn other_machines_are_not_let_in_unprotected() {
    let folder = folder(&["localhost"]);
    let told = folder.run(&["up", "--bind", "0.0.0.0"]).fails(2);
    assert!(told.contains("failed to let other machines reach 0.0.0.0: the server is without TLS"), "{told}");
    assert!(told.contains("--insecure lets anyone who can reach the port do everything"), "{told}");
    let server = Server::start(folder.path(), &["up", "--bind", "0.0.0.0", "--insecure"], "Stop with Ctrl-C");
    assert!(server.address().starts_with("http://127.0.0.1:"), "{}", server.said);
}

fn fails(mut command: Command, code: i32) -> String {
    let out = command.output().expect("kelos");
    assert_eq!(out.status.code(), Some(code), "{out:?}");
    String::from_utf8(out.stderr).expect("text")
}

#[test]
fn the_server_of_a_folder_is_found_also_after_its_certificate_was_renewed() {
    let folder = folder(&["kelos.example"]);
    let server = up(&folder);
    assert!(server.address().starts_with("https://127.0.0.1:"), "{}", server.said);
    assert_eq!(folder.run(&["ls"]).ok(), "no workflows\n");
    let record = || std::fs::read_to_string(folder.path().join(".kelos/server.json")).expect("a record");
    let before = record();
    assert!(before.contains(r#""pin":"sha256:"#), "{before}");
    issue(&folder, &["kelos.example"]);
    eventually("renewed", || (record() != before).then_some(()));
    assert_eq!(folder.run(&["ls"]).ok(), "no workflows\n");
}

#[test]
fn a_server_that_is_named_has_to_be_trusted() {
    let (folder, elsewhere) = (folder(&["localhost"]), Folder::with(&[]));
    let server = up(&folder);
    let address = server.address().replace("127.0.0.1", "localhost");
    let ls = |more: &[&str]| elsewhere.run(&[&["ls", "--server", &address], more].concat());
    let told = ls(&[]).fails(3);
    assert!(told.contains("failed to trust the server at https://localhost:"), "{told}");
    assert!(told.contains("--ca FILE"), "{told}");
    let file = folder.path().join("tls/live/cert.pem");
    let file = file.to_str().expect("text");
    assert_eq!(ls(&["--ca", file]).ok(), "no workflows\n");
    let by_environment = kelos(&["ls", "--server", &address]).env("KELOS_CA", file).output().expect("kelos");
    assert!(by_environment.status.success(), "{by_environment:?}");
    let by_system = kelos(&["ls", "--server", &address]).env("SSL_CERT_FILE", file).output().expect("kelos");
    assert!(by_system.status.success(), "{by_system:?}");
    let other = format!("sha256:{}", "0".repeat(64));
    assert!(ls(&["--pin", &other]).fails(3).contains(" is pinned"));
    assert!(ls(&["--pin", "sha256:1"]).fails(2).contains("expected sha256: and 64 hexadecimal digits"));
    assert!(ls(&["--ca", "missing.pem"]).fails(2).contains("use missing.pem as a file of authorities"));
    assert!(ls(&["--client-key", file]).fails(2).contains("--client-cert"));
    // Without TLS nobody could tell the server from another.
    let plain = address.replace("https://", "http://");
    let told = elsewhere.run(&["ls", "--server", &plain]).fails(1);
    assert!(told.contains("this port speaks HTTPS, use https://"), "{told}");
    let told = elsewhere.run(&["ls", "--server", &plain, "--pin", &other]).fails(2);
    assert!(told.contains("a pin is given, expected https://"), "{told}");
}

#[test]
fn a_port_without_tls_is_told_as_such() {
    let folder = Folder::with(&[]);
    let server = Server::up(&folder);
    let address = server.address().replace("http://", "https://");
    let told = fails(kelos(&["ls", "--server", &address]), 3);
    assert!(told.contains("it does not speak TLS on this port"), "{told}");
}

#[test]
fn files_that_can_not_be_used_end_the_server_at_once() {
    let folder = folder(&["localhost"]);
    let up = |args: &[&str]| folder.run(&[&["up"], args].concat()).fails(2);
    assert!(up(&["--tls-cert", "tls/live/cert.pem"]).contains("--tls-key"));
    assert!(up(&["--tls-client-ca", "tls/live/cert.pem"]).contains("--tls-cert"));
    let told = up(&["--tls-cert", "tls/live/key.pem", "--tls-key", "tls/live/key.pem"]);
    assert!(told.contains("it has no certificate, expected PEM with -----BEGIN CERTIFICATE-----"), "{told}");
    let key = KeyPair::generate().expect("a key").serialize_pem();
    folder.write("other.pem", &key);
    let told = up(&["--tls-cert", "tls/live/cert.pem", "--tls-key", "other.pem"]);
    assert!(told.contains("its key is that of another certificate"), "{told}");
}

#[test]
fn a_worker_over_a_log_has_a_certificate_and_users() {
    let folder = folder(&["127.0.0.1"]);
    let args = ["worker", ".", "--store", "file:log", "--at-a-time", "1", "--auth", "--ca", "tls/live/cert.pem"];
    let worker = Server::start(folder.path(), &[&args, &CERTIFICATE[..]].concat(), "is running at");
    assert!(worker.address().starts_with("https://"), "{}", worker.address());
    // Its own worker reaches the leader over TLS, with the key of sessions that the nodes have.
    let workers = || folder.run(&["workers"]);
    let listed = eventually("its worker", || Some(workers()).filter(|said| said.code == 0 && said.out.contains(":")));
    assert!(listed.out.contains("connected") || listed.out.contains("working"), "{}", listed.out);
    let elsewhere = Folder::with(&[]);
    let certificate = folder.path().join("tls/live/cert.pem");
    let certificate = certificate.to_str().expect("text");
    let said = elsewhere.run(&["workers", "--server", worker.address(), "--ca", certificate]);
    assert!(said.code != 0, "{}", said.out);
    assert!(worker.stop().success());
    let open = ["worker", ".", "--store", "file:log", "--bind", "0.0.0.0"];
    let told = folder.run(&open).fails(2);
    assert!(told.contains("the server is without TLS and without authentication"), "{told}");
}
