//! The Python package in `python/`: its own tests against a real server, and its bridge, by which an app runs a plugin. Without Python 3
//! they say so, and check nothing.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{Folder, Said, Server, eventually, kelos};
use serde_json::json;

fn package() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python").canonicalize().expect("the package")
}

/// Whether there is a Python that can run the package; says so if there is none.
fn has_python() -> bool {
    let found = Command::new("python3").args(["-c", "import sys; sys.exit(sys.version_info < (3, 8))"]).status();
    let is_there = found.is_ok_and(|status| status.success());
    if !is_there {
        eprintln!("SKIPPED: python: there is no python3 of version 3.8 or later");
    }
    is_there
}

#[test]
fn the_calls_of_stolos_are_answered() {
    if !has_python() {
        return;
    }
    let sample = |name: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples/jobs").join(name);
        std::fs::read_to_string(path).expect("a file of the sample")
    };
    let folder =
        Folder::with(&[("tasks.json", &sample("tasks.json")), ("identifiers.json", &sample("identifiers.json"))]);
    let server = Server::up(&folder);
    eventually("the apps", || folder.run(&["ls"]).ok().contains("jobs {date}_{client_id}").then_some(()));
    let mut tests = Command::new("python3");
    tests.args(["-m", "unittest", "--verbose"]).current_dir(package()).env("KELOS_SERVER", server.address());
    for name in ["KELOS_TOKEN", "KELOS_TOKEN_FILE", "KELOS_CA"] {
        tests.env_remove(name);
    }
    let said = Said::of(tests.env("PYTHONDONTWRITEBYTECODE", "1").output().expect("python3"));
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.err.contains("\nOK\n") && !said.err.contains("skipped"), "{}", said.err);
    server.stop();
}

#[test]
fn a_plugin_with_an_import_path_runs_jobs() {
    if !has_python() {
        return;
    }
    let tasks = json!({
        "visits": { "job_id": "{date}_{client_id}", "job_type": "plugins_of_ours.counting", "table": "visits_raw", "max_retry": 1 },
        "empty": { "job_id": "{date}_{client_id}", "job_type": "plugins_of_ours.counting", "table": "", "max_retry": 1 },
    });
    let plugin = std::fs::read_to_string(package().join("tests/plugins/counting.py")).expect("the plugin");
    let folder = Folder::with(&[
        ("tasks.json", &tasks.to_string()),
        ("identifiers.json", r#"{"date": "date", "client_id": "integer"}"#),
        ("plugins_of_ours/__init__.py", ""),
        ("plugins_of_ours/counting.py", &plugin),
    ]);
    let run = |app: &str| {
        let mut run = kelos(&["run", app, "--job-id", "20140601_7", "--timeout", "60"]);
        run.current_dir(folder.path()).env("PYTHONPATH", package()).env("PYTHONDONTWRITEBYTECODE", "1");
        Said::of(run.output().expect("kelos"))
    };
    let said = run("visits").ok();
    assert!(said.starts_with("visits 20140601_7: 7 of visits_raw, up to 100\n"), "{said}");
    let failed = run("empty");
    assert_eq!(failed.code, 1, "{}", failed.err);
    let said = format!("{}{}", failed.out, failed.err);
    assert!(said.contains("plugins_of_ours.counting failed: there is no table\n"), "{said}");
}

#[test]
fn a_configuration_backend_of_stolos_is_printed_and_read() {
    if !has_python() {
        return;
    }
    let backend = std::fs::read_to_string(package().join("tests/plugins/backend.py")).expect("the backend");
    let folder = Folder::with(&[("backend.py", &backend)]);
    let check = |class: &str| {
        let mut check = kelos(&["check"]);
        check.current_dir(folder.path()).env("PYTHONPATH", package()).env("PYTHONDONTWRITEBYTECODE", "1");
        check.env("STOLOS_CONFIGURATION_BACKEND", format!("exec:python3 -m kelos.config {class}"));
        Said::of(check.output().expect("kelos"))
    };
    assert_eq!(check("backend.Apps").ok(), "1 workflow in 1 file: no problems\n");
    let broken = check("backend.Nothing");
    assert_eq!(broken.code, 1, "{}", broken.err);
    let expected = "exec:python3 -m kelos.config backend.Nothing prints no apps: the command failed: exit status: 1";
    assert!(broken.out.contains(expected), "{}", broken.out);
    assert!(broken.err.contains("failed to use backend.Nothing as a configuration backend"), "{}", broken.err);
}

#[test]
fn a_server_with_tls_and_access_is_found_by_its_folder() {
    if !has_python() {
        return;
    }
    let key = rcgen::KeyPair::generate().expect("a key");
    let named = rcgen::CertificateParams::new(vec!["kelos.example".to_owned()]);
    let certificate = named.and_then(|params| params.self_signed(&key)).expect("a certificate");
    let folder = Folder::with(&[
        ("tasks.json", r#"{"a": {"job_id": "{n}", "bash_cmd": "true"}}"#),
        ("cert.pem", &certificate.pem()),
        ("key.pem", &key.serialize_pem()),
    ]);
    let up = ["up", "--auth", "--tls-cert", "cert.pem", "--tls-key", "key.pem"];
    let server = Server::start(folder.path(), &up, "Stop with Ctrl-C");
    eventually("the app", || folder.run(&["ls"]).ok().contains("jobs {n}").then_some(()));
    let ask = |more: &[(&str, &str)]| {
        let mut python = Command::new("python3");
        python.args(["-c", "from kelos import api; api.initialize(); print(api.maybe_add_subtask('a', '1'))"]);
        python.current_dir(folder.path()).env("PYTHONPATH", package()).env("PYTHONDONTWRITEBYTECODE", "1");
        for name in ["KELOS_TOKEN", "KELOS_TOKEN_FILE", "KELOS_CA", "KELOS_SERVER"] {
            python.env_remove(name);
        }
        Said::of(python.envs(more.iter().copied()).output().expect("python3"))
    };
    assert_eq!(ask(&[]).ok(), "True\n");
    assert_eq!(ask(&[]).ok(), "False\n");
    let wrong = ask(&[("KELOS_TOKEN", "kelos_wrong")]).fails(1);
    assert!(wrong.contains("kelos.exceptions.ServerError: "), "{wrong}");
    let distrusted = ask(&[("KELOS_SERVER", server.address())]).fails(1);
    assert!(distrusted.contains("kelos.exceptions.ServerError: failed to reach https://"), "{distrusted}");
    let file = folder.path().join(".kelos/server.json");
    let record = std::fs::read_to_string(&file).expect("the record");
    let at = record.find("sha256:").expect("a pin") + "sha256:".len();
    let other = if record[at..].starts_with('0') { "1" } else { "0" };
    std::fs::write(&file, format!("{}{other}{}", &record[..at], &record[at + 1..])).expect("another pin");
    let pinned = ask(&[]).fails(1);
    assert!(pinned.contains("failed to trust https://") && pinned.contains(", expected sha256:"), "{pinned}");
    server.stop();
}
