//! A dead name node and one that hangs, beside what is well: only those who wait for them notice.

mod real {
    use std::net::TcpListener;
    use std::process::Command;
    use std::time::Duration;

    use jiff::Timestamp;
    use serde_json::Value;

    use crate::support::{Folder, Server, kelos, within};

    /// How long servers may take to come and go, and how long an endpoint may be left alone, on a busy machine.
    const PATIENCE: Duration = Duration::from_secs(300);
    /// So many slots of each workflow are waited for, before the outage, in it, and after.
    const ENOUGH: usize = 10;
    const WELL: [&str; 2] = ["ha", "local"];

    /// Workflows with a slot every other second, each of which waits for a place of its own.
    struct House {
        folder: Folder,
        server: Server,
        /// The endpoint that dies.
        dead: String,
        /// The one that hangs all the time.
        hanging: String,
        _hangs: TcpListener,
    }

    fn workflow(id: &str, uri: &str) -> String {
        format!(
            "celos.defineWorkflow({{ id: '{id}', schedule: celos.cronSchedule('0/2 * * * * ?'), startTime: '{}', \
             schedulingStrategy: celos.serialSchedulingStrategy(9), trigger: celos.pathTrigger('{uri}'), \
             externalService: celos.commandExternalService({{ command: ['true'] }}) }});\n",
            Timestamp::from_second(Timestamp::now().as_second()).unwrap()
        )
    }

    impl House {
        fn build() -> Option<House> {
            let dead = kelos_test_servers::address("KELOS_TEST_HDFS")?;
            let service = kelos_test_servers::address("KELOS_TEST_HDFS_HA")?;
            let conf = kelos_test_servers::address("KELOS_TEST_HDFS_HA_CONF_DIR")?;
            let hangs = TcpListener::bind("127.0.0.1:0").unwrap();
            let hanging = format!("hdfs://{}", hangs.local_addr().unwrap());
            let folder = Folder::with(&[]);
            let roots = [("dead", dead.as_str()), ("hangs", &hanging), ("ha", &service), ("local", "file://")];
            for (id, root) in roots {
                folder.write(&format!("workflows/{id}.js"), &workflow(id, &format!("{root}/tmp")));
            }
            let mut command = kelos(&["up"]);
            command.current_dir(folder.path()).env("HADOOP_CONF_DIR", conf);
            let server = Server::run(&mut command, "Stop with Ctrl-C");
            Some(House { folder, server, dead, hanging, _hangs: hangs })
        }

        /// The slots of a workflow from a moment on, oldest first.
        fn slots(&self, workflow: &str, from: Timestamp) -> Vec<Slot> {
            let slots = self.folder.json(&["slots", workflow, "--all", "--json"]);
            let slots = slots["items"].as_array().expect("items").iter().map(Slot::of);
            let mut slots: Vec<Slot> = slots.filter(|slot| slot.time >= from).collect();
            slots.reverse();
            slots
        }

        /// Waits until enough slots of a moment and later have succeeded; tells how late the latest of them was.
        #[track_caller]
        fn goes_on(&self, workflow: &str, from: Timestamp) {
            let delays = within(PATIENCE, workflow, || {
                let slots = self.slots(workflow, from);
                let first = slots.get(..ENOUGH)?;
                first.iter().all(|slot| slot.state == "succeeded").then(|| first.iter().map(Slot::delay).collect())
            });
            let delays: Vec<Duration> = delays;
            println!("{workflow}: {ENOUGH} slots succeeded, the latest {:?} after its time", delays.iter().max());
        }

        /// Why an endpoint is left alone.
        fn broken(&self, endpoint: &str) -> Option<Value> {
            let url = format!("{}/api/v1/endpoints", self.server.address());
            let done = Command::new("curl").args(["--silent", "--fail", &url]).output().expect("curl");
            let list: Value = serde_json::from_slice(&done.stdout).expect("JSON");
            let items = list["items"].as_array().expect("items");
            let found = items.iter().find(|item| item["name"] == endpoint).expect("the endpoint");
            found.get("broken").cloned()
        }

        fn why(&self, workflow: &str, slot: &Slot) -> String {
            self.folder.run(&["why", workflow, &slot.time.to_string()]).ok()
        }
    }

    struct Slot {
        time: Timestamp,
        state: String,
        since: Timestamp,
    }

    impl Slot {
        fn of(json: &Value) -> Slot {
            let text = |name: &str| json[name].as_str().expect(name);
            let moment = |name: &str| text(name).parse().expect(name);
            Slot { time: moment("time"), state: text("state").to_owned(), since: moment("since") }
        }

        fn delay(&self) -> Duration {
            self.since.duration_since(self.time).unsigned_abs()
        }
    }

    #[test]
    #[ignore = "needs a real server: servers/run with hdfs hdfs-ha -- cargo test -- --ignored real::"]
    fn a_dead_name_node_delays_its_own_slots_and_nothing_else() {
        let Some(house) = House::build() else { return };
        let start = Timestamp::now();
        for workflow in WELL.iter().chain(&["dead"]) {
            house.goes_on(workflow, start);
        }
        assert_eq!(house.broken(&house.dead), None);

        kelos_test_servers::crash("hdfs");
        let crashed = Timestamp::now();
        for workflow in WELL {
            house.goes_on(workflow, crashed);
        }
        let broken = within(PATIENCE, "broken", || house.broken(&house.dead));
        println!("dead: {broken}");
        assert_eq!(broken["lastError"], "connection refused");
        let since: Timestamp = broken["since"].as_str().expect("since").parse().expect("a moment");
        println!("hangs: {}", within(PATIENCE, "broken", || house.broken(&house.hanging)));
        for workflow in ["dead", "hangs"] {
            let slots = house.slots(workflow, crashed);
            assert!(slots.len() >= ENOUGH && slots.iter().all(|slot| slot.state == "waiting"), "{workflow}");
            let words =
                within(PATIENCE, "why", || Some(house.why(workflow, &slots[0])).filter(|why| why.contains("so since")));
            println!("{words}");
            assert!(words.contains("can't be checked"), "{words}");
        }

        kelos_test_servers::up("hdfs");
        let back = Timestamp::now();
        // All of them, those first that waited longest, and those that came later.
        for moment in [since, back] {
            house.goes_on("dead", moment);
        }
        within(PATIENCE, "none waits that came before", || {
            let slots = house.slots("dead", crashed);
            slots.iter().filter(|slot| slot.time < back).all(|slot| slot.state == "succeeded").then_some(())
        });
        assert_eq!(house.broken(&house.dead), None);
        assert!(house.server.stop().success());
    }
}
