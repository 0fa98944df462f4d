//! The steps by which people who know Stolos begin: its names, its variables, and a file like its own example.

use std::path::Path;
use std::process::Command;

use crate::support::{Folder, kelos};

/// What Stolos's file of variables says.
const VARIABLES: [(&str, &str); 14] = [
    ("STOLOS_JOB_ID_DEFAULT_TEMPLATE", "{date}_{client_id}_{collection_name}"),
    ("STOLOS_JOB_ID_VALIDATIONS", "stolos.examples.job_id_validations"),
    ("STOLOS_QUEUE_BACKEND", "redis"),
    ("STOLOS_QB_REDIS_DB", "0"),
    ("STOLOS_QB_REDIS_HOST", "localhost"),
    ("STOLOS_QB_REDIS_PORT", "6379"),
    ("STOLOS_QB_REDIS_SOCKET_TIMEOUT", "3"),
    ("STOLOS_QB_REDIS_LOCK_TIMEOUT", "5"),
    ("STOLOS_QB_REDIS_MAX_NETWORK_DELAY", "4"),
    ("STOLOS_QB_ZOOKEEPER_HOSTS", "localhost:2181"),
    ("STOLOS_QB_ZOOKEEPER_TIMEOUT", "5"),
    ("STOLOS_TASKS_JSON", "./stolos/examples/tasks.json"),
    // A job is waited for longer here, where the machine may be busy.
    ("STOLOS_TIMEOUT", "60"),
    ("KELOS_SERVER", ""),
];

/// A copy of Stolos as it is cloned: nothing stands in its folder but folders.
fn clone() -> Folder {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/stolos/example/tasks.json");
    let folder = Folder::with(&[]);
    let examples = folder.path().join("stolos/examples");
    std::fs::create_dir_all(&examples).expect("a folder");
    std::fs::copy(example, examples.join("tasks.json")).expect("the example");
    folder
}

/// Runs a command of Stolos, or of Kelos where it is called so, with these variables.
fn run(folder: &Folder, variables: &[(&str, &str)], name: &str, args: &[&str]) -> (i32, String, String) {
    let bin = folder.path().join("bin");
    std::fs::create_dir_all(&bin).expect("a folder");
    let program = bin.join(name);
    if !program.exists() {
        std::os::unix::fs::symlink(assert_cmd::cargo::cargo_bin!("kelos"), &program).expect("a link");
    }
    let output = Command::new(program).args(args).current_dir(folder.path()).envs(variables.iter().copied()).output();
    let output = output.expect("a command");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}

#[test]
fn the_quick_start_of_stolos_works_line_by_line() {
    let folder = clone();
    let said = |name: &str, args: &[&str]| {
        let (code, out, err) = run(&folder, &VARIABLES, name, args);
        assert_eq!(code, 0, "{name} {args:?}: {out}{err}");
        out
    };
    assert_eq!(said("kelos", &["slots"]), "no slots\n");
    let submitted = said("stolos-submit", &["-a", "app1", "--job_id", "20140101_123_profile"]);
    assert_eq!(submitted, "app1@20140101_123_profile was opened\n");
    assert_eq!(said("stolos", &["-a", "app1"]), "app1\n");
    let parents = said("kelos", &["parents", "app2", "20140101_123_profile"]);
    assert_eq!(parents, "app2 20140101_123_profile waits for 1 job\n  app1  20140101_123_profile\n");
    assert!(said("kelos", &["slots", "app1"]).contains("succeeded"));
    assert_eq!(said("stolos", &["-a", "app2"]), "app2\n");
    // One app calls a function of Python: it and what waits for it lie dormant, and say why.
    let (code, checked, _) = run(&folder, &VARIABLES, "kelos", &["check"]);
    assert!(code == 1 && checked.contains("tasks.json:8:30: valid_if_or calls a function of Python"), "{checked}");
    let listed = said("kelos", &["ls"]);
    let line = |app: &str| listed.lines().find(|line| line.contains(app)).unwrap_or_default().to_owned();
    assert!(line("app3 ").contains("valid_if_or calls"), "{listed}");
    assert!(line("app4 ").contains("it depends on app3, which lies"), "{listed}");
    let (code, _, refused) = run(&folder, &VARIABLES, "stolos-submit", &["-a", "app4", "-j", "20140101_123_profile"]);
    assert!(code != 0 && refused.contains("it depends on app3, which lies dormant"), "{refused}");
}

#[test]
fn where_only_variables_name_the_apps_nobody_else_is_asked() {
    let folder = clone();
    let unused =
        std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port").local_addr().expect("an address").port();
    let port = unused.to_string();
    let variables = [
        ("STOLOS_CONFIGURATION_BACKEND", "redis"),
        ("STOLOS_REDIS_HOST", "127.0.0.1"),
        ("STOLOS_REDIS_PORT", &*port),
        ("KELOS_SERVER", ""),
    ];
    // Redis is not there: what is asked is told of it, and not of a server that is somewhere else.
    let (code, _, said) = run(&folder, &variables, "stolos-submit", &["-a", "app1", "-j", "20140101_1_profile"]);
    assert!(code != 0 && said.contains("no workflow is named \"app1\""), "{said}");
    let (code, said, _) = run(&folder, &variables, "kelos", &["slots"]);
    assert_eq!((code, &*said), (0, "no slots\n"));
    assert!(folder.path().join(".kelos").exists(), "this folder was asked");
    let folder = clone();
    folder.write("hourly.js", "");
    let output = kelos(&["slots"]).current_dir(folder.path()).envs(variables).output().expect("kelos");
    let said = String::from_utf8(output.stderr).expect("text");
    assert!(said.contains("find the server of this folder, whose apps the environment names"), "{said}");
}

mod real {
    use std::io::{Read, Write};
    use std::net::TcpStream;

    use super::{clone, run};

    /// Sets a field of a hash in Redis.
    fn set(server: &str, key: &str, field: &str, value: &str) {
        let mut line = TcpStream::connect(server).expect("Redis");
        let words = ["HSET", key, field, value].map(|word| format!("${}\r\n{word}\r\n", word.len()));
        line.write_all(format!("*4\r\n{}", words.concat()).as_bytes()).expect("to say it");
        let mut answer = [0; 4];
        line.read_exact(&mut answer).expect("an answer");
        assert_eq!(&answer, b":1\r\n", "{key} {field}");
    }

    #[test]
    #[ignore = "needs a real server: servers/run with redis -- cargo test -- --ignored real::"]
    fn where_the_variables_name_redis_its_apps_are_those_of_the_folder() {
        let Some(address) = kelos_test_servers::address("KELOS_TEST_REDIS") else { return };
        let server = address.trim_start_matches("redis://");
        let (host, port) = server.rsplit_once(':').expect("a port");
        let prefix = format!("quick-start-{}/", std::process::id());
        let app = |name: &str, field: &str, value: &str| set(server, &format!("{prefix}{name}"), field, value);
        app("app1", "'bash_cmd'", "'echo {app_name} {date}'");
        app("app2", "'bash_cmd'", "u'echo {job_id}'");
        app("app2", "'depends_on'", "{'app_name': ['app1']}");
        let variables = [
            ("STOLOS_CONFIGURATION_BACKEND", "redis"),
            ("STOLOS_REDIS_HOST", host),
            ("STOLOS_REDIS_PORT", port),
            ("STOLOS_REDIS_KEY_PREFIX", &*prefix),
            ("STOLOS_JOB_ID_DEFAULT_TEMPLATE", "{date}_{client_id}"),
            ("STOLOS_TIMEOUT", "60"),
            ("KELOS_SERVER", ""),
        ];
        // Nothing stands in it: no script, no file of apps.
        let folder = clone();
        let tried = |name: &str, args: &[&str]| run(&folder, &variables, name, args);
        let said = |name: &str, args: &[&str]| {
            let (code, out, err) = tried(name, args);
            assert_eq!(code, 0, "{name} {args:?}: {out}{err}");
            out
        };
        assert_eq!(said("kelos", &["slots"]), "no slots\n");
        assert_eq!(
            said("kelos", &["parents", "app2", "20140101_7"]),
            "app2 20140101_7 waits for 1 job, 0 of them succeeded\n  app1  20140101_7  never opened\n"
        );
        assert_eq!(
            said("kelos", &["children", "app1", "20140101_7"]),
            "1 job waits for app1 20140101_7\n  app2  20140101_7  never opened\n"
        );
        assert_eq!(said("stolos-submit", &["-a", "app2", "-j", "20140101_7"]), "app2@20140101_7 was opened\n");
        assert!(said("kelos", &["why", "app2", "20140101_7"]).contains("waits for 1 job: app1@20140101_7"));
        // The success of the parent opens the way.
        assert_eq!(said("stolos", &["-a", "app1"]), "app1 20140101\n");
        assert_eq!(said("stolos", &["-a", "app2"]), "20140101_7\n");
        let listed = said("kelos", &["slots"]);
        assert_eq!(listed.matches("succeeded").count(), 2, "{listed}");
        let (code, _, refused) = tried("stolos-submit", &["-a", "app3", "-j", "20140101_7"]);
        assert!(code != 0 && refused.contains("no workflow is named \"app3\""), "{refused}");
        // Apps that are written there later are there for the next command.
        app("app3", "'bash_cmd'", "'true'");
        assert_eq!(said("stolos-submit", &["-a", "app3", "-j", "20140101_7"]), "app3@20140101_7 was opened\n");
    }
}
