//! `kelos import stolos` from a real Redis and a real ZooKeeper, filled as a Stolos fills them; and that the jobs go on here.

mod real {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    use serde_json::{Value, json};

    use crate::support::{Folder, Said, Server, eventually, kelos};

    const TASKS: &str = r#"{
        "fetch": {"job_id": "{date}_{client_id}", "bash_cmd": "echo fetched {client_id}", "max_retry": 5},
        "model": {"job_id": "{date}_{client_id}", "bash_cmd": "true", "depends_on": {"app_name": ["fetch"]}}
    }"#;

    /// The jobs of both stores: app, job id, state, failed attempts; and the queues.
    const JOBS: [(&str, &str, &str, u32); 7] = [
        ("fetch", "20140601_1", "completed", 3),
        ("fetch", "20140601_2", "failed", 5),
        ("fetch", "20140601_3", "pending", 1),
        ("model", "20140601_1", "pending", 0),
        ("model", "20140601_3", "pending", 0),
        ("model", "20140601_4", "pending", 0),
        ("model", "20140601_5", "skipped", 0),
    ];
    const QUEUED: [(&str, &str, u32); 3] =
        [("fetch", "20140601_3", 100), ("model", "20140601_1", 100), ("model", "20140601_4", 5)];

    fn folder() -> Folder {
        Folder::with(&[("tasks.json", TASKS), ("identifiers.json", r#"{"date": "date", "client_id": "integer"}"#)])
    }

    fn import(folder: &Folder, from: &str, more: &[&str]) -> Said {
        folder.run(&[&["import", "stolos", "--from", from], more].concat())
    }

    fn state(folder: &Folder, app: &str, id: &str) -> Value {
        let slots = folder.json(&["slots", app, "--all", "--json"]);
        let all = slots["items"].as_array().expect("items");
        all.iter().find(|one| one["job"] == id).map_or(Value::Null, |one| one["state"].clone())
    }

    /// The imported jobs are those that were there, and go on once a server runs.
    fn is_imported_and_goes_on(folder: &Folder, from: &str, prefix: &str) {
        let dry = import(folder, from, &["--dry-run"]).ok();
        assert!(dry.contains("would import 7 jobs of 2 apps into ") && dry.contains("nothing was written"), "{dry}");
        assert!(!folder.path().join(".kelos/kelos.db").exists());
        let said = import(folder, from, &[]).ok();
        let left_out = format!("{prefix}: no app here has this name: 1 job was left out\n");
        assert!(said.contains(&left_out), "{said}");
        assert!(said.contains("1 record of Stolos has no state: its job was never submitted\n"), "{said}");
        assert!(said.contains("imported 7 jobs of 2 apps into "), "{said}");
        // A question leads for a moment, and queues nothing.
        assert!(folder.run(&["queue", "model"]).ok().starts_with("model: 0 queued; 0 running, 3 waiting, "));
        folder.run(&["why", "model", "20140601_1"]).ok();
        assert_eq!(state(folder, "model", "20140601_1"), "waiting");
        let again = import(folder, from, &["--json"]).ok();
        let again: Value = serde_json::from_str(&again).expect("JSON");
        assert_eq!(again["imported"]["events"], 0);
        assert_eq!([&again["imported"]["apps"][0]["same"], &again["imported"]["apps"][1]["same"]], [3, 4]);
        folder.run(&["verify"]).ok();
        let server = Server::up(folder);
        for (app, id, expected) in [
            ("fetch", "20140601_1", "succeeded"),
            ("fetch", "20140601_2", "failed"),
            ("fetch", "20140601_3", "succeeded"),
            ("model", "20140601_1", "succeeded"),
            ("model", "20140601_3", "succeeded"),
            ("model", "20140601_4", "succeeded"),
            ("model", "20140601_5", "skipped"),
            // It was missing in Stolos, and model@20140601_4 waits for it.
            ("fetch", "20140601_4", "succeeded"),
        ] {
            eventually(&format!("{app}@{id} is {expected}"), || (state(folder, app, id) == expected).then_some(()));
        }
        let why = folder.run(&["why", "fetch", "20140601_1"]).ok();
        assert!(why.contains("when it was imported from stolos, where it was completed"), "{why}");
        assert!(import(folder, from, &[]).fails(1).contains("a server uses"), "a server runs");
        server.stop();
        let kept = import(folder, from, &[]).ok();
        assert!(kept.contains("fetch: kept: 20140601_3 is succeeded here, pending in Stolos\n"), "{kept}");
    }

    /// A Redis database of its own for a test, as Stolos would use it.
    struct Redis {
        address: String,
        database: String,
    }

    impl Redis {
        fn new(number: u8) -> Option<Redis> {
            let address = kelos_test_servers::address("KELOS_TEST_REDIS")?;
            let redis = Redis { address, database: number.to_string() };
            redis.ask(&["FLUSHDB"]);
            Some(redis)
        }

        fn url(&self) -> String {
            format!("{}/{}", self.address, self.database)
        }

        fn ask(&self, words: &[&str]) {
            let mut command = Command::new("redis-cli");
            command.args(["-u", &self.address, "-n", &self.database]).args(words);
            let said = Said::of(command.output().expect("redis-cli"));
            assert!(!said.out.starts_with("ERR") && said.code == 0, "{}{}", said.out, said.err);
        }

        fn fill(&self) {
            for (app, job, state, retries) in JOBS {
                let key = format!("{app}/all_subtasks/{job}");
                self.ask(&["SET", &key, state]);
                if retries > 0 {
                    self.ask(&["SET", &format!("{key}/retry_count"), &retries.to_string()]);
                }
            }
            for (at, (app, job, priority)) in QUEUED.into_iter().enumerate() {
                self.ask(&["ZADD", app, "0", &format!("{priority}:14170000{at:02}.123456:{job}")]);
            }
            self.ask(&["SET", "model/all_subtasks/20140601_3/num_complete_parents", "1"]);
            self.ask(&["SET", "fetch/all_subtasks/20140601_9", "--STOLOSEMPTYSTRING--"]);
            self.ask(&["SET", "gone/all_subtasks/x", "completed"]);
            // Traces of jobs that were taken, and something of another program.
            self.ask(&["SET", "100:1416999999.123456:20140601_1", "completed"]);
            self.ask(&["SET", ".fetch", "7"]);
            self.ask(&["HSET", "cache", "a", "b"]);
        }
    }

    #[test]
    #[ignore = "needs a real server: servers/run with redis -- cargo test -- --ignored real::"]
    fn jobs_in_redis_are_imported_and_go_on() {
        let Some(redis) = Redis::new(11) else { return };
        redis.fill();
        is_imported_and_goes_on(&folder(), &redis.url(), "gone");
    }

    #[test]
    #[ignore = "needs a real server: servers/run with redis -- cargo test -- --ignored real::"]
    fn a_redis_whose_runners_work_is_not_imported() {
        let Some(redis) = Redis::new(12) else { return };
        redis.fill();
        redis.ask(&["SET", "fetch/all_subtasks/20140601_3/execute_lock", "1", "EX", "600"]);
        let folder = folder();
        let refused = import(&folder, &redis.url(), &[]).fails(1);
        assert!(refused.contains("import while Stolos runs jobs: fetch@20140601_3; stop its runners"), "{refused}");
        assert!(!folder.path().join(".kelos").exists(), "it left a folder of state");
        let dry = import(&folder, &redis.url(), &["--dry-run"]).ok();
        assert!(dry.contains("fetch@20140601_3 is run by Stolos now"), "{dry}");
    }

    #[test]
    #[ignore = "needs a real server: servers/run with redis -- cargo test -- --ignored real::"]
    fn redis_may_have_tls_and_a_password() {
        let (Some(redis), Some(address)) = (Redis::new(13), kelos_test_servers::address("KELOS_TEST_REDIS_TLS")) else {
            return;
        };
        redis.fill();
        let named = |name: &str| kelos_test_servers::address(name).expect("a variable");
        let (password, authority) = (named("KELOS_TEST_REDIS_PASSWORD_FILE"), named("KELOS_TEST_REDIS_CA"));
        let folder = folder();
        let run = |authority: Option<&str>, password: &str| {
            let mut command =
                kelos(&["import", "stolos", "--dry-run", "--from", &format!("{address}/13"), "--password", password]);
            command.current_dir(folder.path()).env_remove("KELOS_CA");
            authority.map(|file| command.env("KELOS_CA", file));
            Said::of(command.output().expect("kelos"))
        };
        let file = format!("file:{password}");
        assert!(run(Some(&authority), &file).ok().contains("would import 7 jobs of 2 apps"));
        let distrusted = run(None, &file).fails(1);
        assert!(distrusted.contains("failed to read redis localhost:"), "{distrusted}");
        let wrong = run(Some(&authority), "exec:echo wrong-secret").fails(1);
        assert!(wrong.contains("failed to read redis localhost:") && !wrong.contains("wrong-secret"), "{wrong}");
        let missing = run(Some(&authority), "env:KELOS_NO_SUCH").fails(2);
        assert!(missing.contains("read the password from env:KELOS_NO_SUCH: the variable is not set"), "{missing}");
    }

    #[test]
    #[ignore = "needs a real server: servers/run with zookeeper -- cargo test -- --ignored real::"]
    fn jobs_in_zookeeper_are_imported_and_go_on() {
        let Some(zookeeper) = ZooKeeper::new("goes-on") else { return };
        zookeeper.fill();
        is_imported_and_goes_on(&folder(), &zookeeper.url(), "gone");
    }

    #[test]
    #[ignore = "needs a real server: servers/run with zookeeper -- cargo test -- --ignored real::"]
    fn a_zookeeper_whose_runners_work_is_not_imported() {
        let Some(zookeeper) = ZooKeeper::new("locked") else { return };
        zookeeper.fill();
        let mut lock = Command::new(&zookeeper.tool);
        lock.args(["lock", &format!("{}/fetch", zookeeper.root), "20140601_3"]);
        let mut lock = lock.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the tool");
        let mut said = String::new();
        BufReader::new(lock.stdout.take().expect("its output")).read_line(&mut said).expect("a line");
        assert_eq!(said, "locked\n");
        let folder = folder();
        let refused = import(&folder, &zookeeper.url(), &[]).fails(1);
        assert!(refused.contains("import while Stolos runs jobs: fetch@20140601_3; stop its runners"), "{refused}");
        drop(lock.stdin.take());
        assert!(lock.wait().expect("its end").success());
        assert!(import(&folder, &zookeeper.url(), &[]).ok().contains("imported 7 jobs of 2 apps"));
    }

    #[test]
    #[ignore = "needs a real server: servers/run with zookeeper -- cargo test -- --ignored real::"]
    fn zookeeper_may_have_tls_and_a_password() {
        let Some(zookeeper) = ZooKeeper::new("closed") else { return };
        zookeeper.fill();
        zookeeper.ask(&["close", &zookeeper.root, "ann", "zoo-secret"]);
        let named = |name: &str| kelos_test_servers::address(name).expect("a variable");
        let (address, authority) = (named("KELOS_TEST_ZOOKEEPER_TLS"), named("KELOS_TEST_ZOOKEEPER_CA"));
        let folder = folder();
        let run = |user: &str, password: Option<&str>, authority: &str| {
            let url = format!("zookeepers://{user}{address}{}", zookeeper.root);
            let mut command = kelos(&["import", "stolos", "--dry-run", "--from", &url]);
            command.args(password.map(|_| "--password=env:ZOO_PASSWORD"));
            command.current_dir(folder.path()).env("KELOS_CA", authority).env("ZOO_PASSWORD", password.unwrap_or(""));
            Said::of(command.output().expect("kelos"))
        };
        assert!(run("ann@", Some("zoo-secret"), &authority).ok().contains("would import 7 jobs of 2 apps"));
        let closed = run("", None, &authority).fails(1);
        assert!(closed.contains(&format!("{} may only be read by others: name a user", zookeeper.root)), "{closed}");
        let wrong = run("ann@", Some("not-the-one"), &authority).fails(1);
        assert!(wrong.contains("may only be read by others") && !wrong.contains("not-the-one"), "{wrong}");
        let distrusted = run("ann@", Some("zoo-secret"), "").fails(1);
        assert!(distrusted.contains("failed to read zookeeper localhost:"), "{distrusted}");
        let unknown = import(&folder, &format!("{}/nix", zookeeper.url()), &["--dry-run"]).fails(1);
        assert!(unknown.contains(&format!("there is no node {}/nix", zookeeper.root)), "{unknown}");
    }

    /// A node of its own for a test, below which everything is as at the root of a Stolos's ZooKeeper.
    struct ZooKeeper {
        address: String,
        tool: String,
        root: String,
    }

    impl ZooKeeper {
        fn new(test: &str) -> Option<ZooKeeper> {
            let address = kelos_test_servers::address("KELOS_TEST_ZOOKEEPER")?;
            let tool = kelos_test_servers::address("KELOS_TEST_ZOOKEEPER_TOOL")?;
            Some(ZooKeeper { address, tool, root: format!("/{test}-{}", std::process::id()) })
        }

        fn url(&self) -> String {
            format!("zookeeper://{}{}", self.address, self.root)
        }

        fn ask(&self, words: &[&str]) {
            let said = Said::of(Command::new(&self.tool).args(words).output().expect("the tool"));
            assert_eq!(said.code, 0, "{}", said.err);
        }

        fn fill(&self) {
            let app = |app: &str| format!("{}/{app}", self.root);
            for (of, job, state, retries) in JOBS {
                self.ask(&["job", &app(of), job, state, &retries.to_string()]);
            }
            for (of, job, priority) in QUEUED {
                self.ask(&["queue", &app(of), job, &priority.to_string()]);
            }
            self.ask(&["job", &app("fetch"), "20140601_9", ""]);
            self.ask(&["job", &app("gone"), "x", "completed"]);
        }
    }

    #[test]
    #[ignore = "needs a real server: servers/run with redis -- cargo test -- --ignored real::"]
    fn what_is_reported_is_data() {
        let Some(redis) = Redis::new(14) else { return };
        redis.fill();
        let said = import(&folder(), &redis.url(), &["--json"]).ok();
        let mut said: Value = serde_json::from_str(&said).expect("JSON");
        assert!(said["imported"]["events"].take().as_u64() > Some(7));
        let expected = json!({
            "dryRun": false,
            "imported": {
                "apps": [
                    { "id": "fetch", "imported": { "failed": 1, "succeeded": 1, "waiting": 1 }, "queued": 1, "same": 0, "kept": [] },
                    { "id": "model", "imported": { "skipped": 1, "waiting": 3 }, "queued": 2, "same": 0, "kept": [] },
                ],
                "undefined": { "gone": 1 }, "troubles": [], "running": [], "stateless": 1, "events": null,
            },
            "problems": [],
        });
        assert_eq!(said, expected);
    }
}
