//! Samples on three nodes over each real store, while nodes are killed at random: they end as they do on one machine. Compared are the
//! slots with their states and what they collected, the steps of flows with what they gave, and files. Left out is what is no part of
//! the result: moments, nodes, and numbers of runs, as a run that a node was killed before it began is dispatched again. No workflow has
//! a retry: a node that comes back within its lease has its runs still, or it is known that they never began.
//!
//! KELOS_BATCHES says how much work there is, and KELOS_SEED who is killed; both are printed.

mod real {
    use std::collections::BTreeSet;
    use std::path::{Path, PathBuf};
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::{Duration, Instant};

    use serde_json::Value;

    use crate::support::nodes::Nodes;
    use crate::support::oozie::Oozie;
    use crate::support::stores::{Random, Store, number};
    use crate::support::{Folder, Said, Server, copy, run_in, sample, within};

    /// How long a batch may take, with all kills, on a busy machine.
    const PATIENCE: Duration = Duration::from_secs(120);
    const NODES: usize = 3;
    const BATCHES: u64 = 2;
    /// As many nodes are killed for each batch, at most.
    const KILLS: u64 = 3;
    /// The time within which a node that was killed has come back, in seconds, also on a busy machine.
    const LEASE: &str = "30";
    /// States in which nothing happens any more.
    const ENDED: [&str; 4] = ["succeeded", "failed", "expired", "killed"];

    /// Samples that are played together.
    #[derive(Clone, Copy, PartialEq, Eq)]
    enum Samples {
        /// celos-quickstart, schedules and orders-flow, deployed to a server.
        Deployed,
        /// jobs, in the folders of workers.
        Jobs,
    }

    /// Somebody who uses the samples, and asks any node that is up until it has done what is asked.
    struct User {
        dir: PathBuf,
        oozie: Oozie,
        addresses: Mutex<Vec<Option<String>>>,
        asked: AtomicUsize,
    }

    impl User {
        fn new(dir: &Path) -> User {
            let dir = dir.to_owned();
            User { dir, oozie: Oozie::start(), addresses: Mutex::default(), asked: AtomicUsize::new(0) }
        }

        fn path(&self, name: &str) -> String {
            self.dir.join(name).to_str().expect("text").to_owned()
        }

        fn note(&self, nodes: &Nodes) {
            let now = nodes.all.iter().map(|node| node.is_up().then(|| node.address())).collect();
            *self.addresses.lock().expect("addresses") = now;
        }

        fn address(&self) -> Option<String> {
            let addresses = self.addresses.lock().expect("addresses");
            addresses[self.asked.fetch_add(1, Ordering::Relaxed) % addresses.len()].clone()
        }

        fn try_ask(&self, args: &[&str]) -> Option<Said> {
            let server = self.address()?;
            Some(run_in(&self.dir, &[args, &["--server", &server]].concat()))
        }

        /// Asks until it is done.
        #[track_caller]
        fn ask(&self, args: &[&str]) -> String {
            self.ask_until(args, |said| said.code == 0)
        }

        /// Asks until an answer says that it is done.
        #[track_caller]
        fn ask_until(&self, args: &[&str], is_done: impl Fn(&Said) -> bool) -> String {
            let mut last = String::new();
            let until = Instant::now() + PATIENCE;
            while Instant::now() < until {
                match self.try_ask(args) {
                    Some(said) if is_done(&said) => return said.out,
                    Some(said) => last = said.err,
                    None => {}
                }
                std::thread::sleep(Duration::from_millis(50));
            }
            panic!("still not done: {args:?}: {last}");
        }

        fn json(&self, args: &[&str]) -> Value {
            let out = self.ask(&[args, &["--json"]].concat());
            serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"))
        }

        /// All slots, without those that wait for files that never come.
        fn slots(&self) -> Vec<Value> {
            let listed = self.json(&["slots", "--all"]);
            let items = listed["items"].as_array().expect("items").iter();
            let waits = |slot: &Value| {
                slot["state"] == "waiting" && slot["workflow"].as_str().expect("a name").starts_with("wordcount")
            };
            items.filter(|slot| !waits(slot)).cloned().collect()
        }

        /// Waits until so many slots of a workflow are in a state.
        #[track_caller]
        fn until(&self, workflow: &str, state: &str, count: u64) {
            let until = Instant::now() + PATIENCE;
            loop {
                let slots = self.slots();
                let slots: Vec<&Value> = slots.iter().filter(|slot| slot["workflow"] == workflow).collect();
                if slots.iter().filter(|slot| slot["state"] == state).count() as u64 >= count {
                    return;
                }
                assert!(Instant::now() < until, "still not {count} {state}: {slots:#?}");
                std::thread::sleep(Duration::from_millis(200));
            }
        }

        fn deploy(&self, name: &str, files: &[(&str, String)]) {
            let folder = self.path(&format!("deploy/{name}"));
            std::fs::create_dir_all(&folder).expect("a folder");
            for (file, text) in files {
                std::fs::write(format!("{folder}/{file}"), text).expect("a file");
            }
            self.ask(&["deploy", "--workflowName", name, "--deployDir", &folder, "--no-hdfs"]);
        }

        /// Deploys the samples, with the addresses of this test.
        fn deploy_all(&self) {
            let read = |name: &str| std::fs::read_to_string(sample(name)).expect("a sample");
            let addresses = [
                ("http://localhost:11000/oozie", self.oozie.url()),
                ("hdfs://localhost:8020", "file:///".to_owned()),
                ("\"/user/\"", format!("\"{}/\"", self.path("user"))),
            ];
            let defaults = read("celos-quickstart/defaults.js");
            let defaults = addresses.iter().fold(defaults, |text, (old, new)| text.replace(old, new));
            let workflow = read("celos-quickstart/workflow.js");
            self.deploy("wordcount", &[("workflow.js", workflow), ("defaults.js", defaults)]);
            let defaults = read("schedules/defaults/schedules.js");
            self.deploy("schedules", &[("workflow.js", String::new()), ("defaults.js", defaults)]);
            for name in ["Triggered", "Processing", "FourPartitions"] {
                self.deploy(name, &[("workflow.js", read(&format!("schedules/workflows/{name}.js")))]);
            }
            self.deploy("orders", &[("workflow.js", read("orders-flow/workflows/orders.js"))]);
        }

        fn play(&self, samples: Samples, batches: u64) {
            match samples {
                Samples::Deployed => {
                    self.deploy_all();
                    (1..=batches).for_each(|batch| self.batch(batch));
                }
                Samples::Jobs => {
                    for batch in 1..=batches {
                        let date = (20_140_600 + 2 * batch).to_string();
                        self.ask(&["submit", "-a", "report", "-j", &date]);
                        let cleaned: Vec<String> =
                            (1..=3).map(|client| format!("{}_{client}", 20_140_601 + 2 * batch)).collect();
                        let cleaned: Vec<&str> = cleaned.iter().map(String::as_str).collect();
                        self.ask(&[&["submit", "-a", "preprocess", "-j"], &cleaned[..]].concat());
                        self.until("report", "succeeded", 2 * batch);
                    }
                }
            }
            self.rests();
        }

        fn batch(&self, batch: u64) {
            let name = format!("run-{batch}");
            for dc in ["lax", "nyc"] {
                let folder = self.path(&format!("user/celos/quickstart/input/{dc}/2015-09-01/{batch:02}00"));
                std::fs::create_dir_all(&folder).expect("a folder");
                std::fs::write(format!("{folder}/_READY"), "").expect("a file");
                self.ask(&["rerun", &format!("wordcount-{dc}"), &format!("2015-09-01T{batch:02}:00Z")]);
            }
            let data = format!("folder={}", self.path(&name));
            self.ask(&["start", "orders", "--key", &name, "--argument", "shops=paris rome nice", "--argument", &data]);
            self.ask(&["start", "Processing.dataProcessingWorkflow", "--key", &name, "--argument", "src=/data/in"]);
            self.ask(&["tell", "partitions", "myDataset", "1", "--key", &name]);
            self.ask(&["start", "Triggered.Workflow1", "--key", &name]);
            self.ask(&["start", "Triggered.Workflow2", "--key", &name]);
            // A node that was killed before it answered may have taken the signal, without which the run does not succeed.
            let signal = ["signal", "orders", &name, "approval", "--payload", "{\"by\": \"Ann\"}"];
            self.ask_until(&signal, |said| {
                said.code == 0 || said.err.contains(" is succeeded: only a run that has not ended")
            });
            self.until("Triggered.Workflow1AndWorkflow2CompletedSchedule", "succeeded", batch);
            self.until("Processing.onDataProcessingFail", "succeeded", batch);
            self.until("orders", "succeeded", batch);
            for dc in ["lax", "nyc"] {
                self.until(&format!("wordcount-{dc}"), "succeeded", batch);
            }
        }

        /// Waits until everything has ended but what waits for partitions.
        #[track_caller]
        fn rests(&self) {
            within(PATIENCE, "at rest", || {
                let live = |slot: &&Value| !ENDED.contains(&slot["state"].as_str().unwrap_or_default());
                let slots = self.slots();
                let live: Vec<&Value> = slots.iter().filter(live).collect();
                live.iter().all(|slot| slot["workflow"] == "FourPartitions.onPartitionWithDelay").then_some(())
            });
        }

        /// The result, a line for each thing.
        fn result(&self, samples: Samples, batches: u64) -> Vec<String> {
            let mut lines: Vec<String> = self.slots().iter().map(of_slot).collect();
            if samples == Samples::Deployed {
                for batch in 1..=batches {
                    let name = format!("run-{batch}");
                    let run = self.json(&["steps", "orders", &name]);
                    for step in run["steps"].as_array().expect("steps") {
                        let (step, state, gave) = (&step["step"], &step["state"], &step["run"]["outputs"]);
                        lines.push(format!("{name} {step} {state} {gave}").replace(&self.path(""), "/"));
                    }
                    let text = std::fs::read_to_string(self.path(&format!("{name}/published")));
                    lines.push(format!("{name} published {text:?}"));
                }
                let jobs: BTreeSet<String> = self.oozie.succeeded().into_keys().collect();
                lines.extend(jobs.iter().map(|folder| folder.replace(&self.path(""), "/")));
            }
            lines.sort();
            lines
        }
    }

    /// A slot without the moments of this play.
    fn of_slot(slot: &Value) -> String {
        let (workflow, state) = (&slot["workflow"], &slot["state"]);
        let by_time = slot["time"].as_str().is_some_and(|time| time.starts_with("2015"));
        let name = if by_time { &slot["time"] } else { &slot["key"] };
        let job = &slot["job"];
        let tallies = slot["collected"]["tallies"].as_array().into_iter().flatten();
        let counts: Vec<String> = tallies.map(|tally| format!("{} {}", tally["about"], tally["count"])).collect();
        format!("{workflow} {name} {job} {state} {counts:?}")
    }

    /// Plays samples on one machine, and gives their result.
    fn alone(samples: Samples, batches: u64) -> Vec<String> {
        let folder = Folder::with(&[("user/.keep", ""), ("deploy/.keep", "")]);
        let user = User::new(folder.path());
        let server = if samples == Samples::Jobs {
            copy(&sample("jobs"), &folder.path().join("jobs"));
            Server::start(&folder.path().join("jobs"), &["up", "--port", "0"], "Stop with Ctrl-C")
        } else {
            for name in ["workflows", "defaults", "db"] {
                std::fs::create_dir(folder.path().join(name)).expect("a folder");
            }
            let args = [
                "serve",
                "--port=0",
                "--workflows=workflows",
                "--defaults=defaults",
                "--db=db",
                "--autoSchedule=1",
                "--allow-deploy",
            ];
            Server::start(folder.path(), &args, "every 1 s\n")
        };
        *user.addresses.lock().expect("addresses") = vec![Some(server.address().to_owned())];
        user.play(samples, batches);
        user.result(samples, batches)
    }

    /// Plays samples on three nodes and kills nodes meanwhile; says how many, and gives the result.
    fn among_kills(samples: Samples, batches: u64, store: &Store, seed: u64) -> (u64, Vec<String>) {
        let mut nodes = Nodes::through(Folder::with(&[]), store, &vec![store.at.clone(); NODES]);
        if samples == Samples::Jobs {
            nodes = nodes.with_jobs(&sample("jobs"));
        }
        let data = Folder::with(&[]);
        let user = User::new(data.path());
        for node in 0..NODES {
            nodes = nodes.with(node, &["--lease", LEASE]);
        }
        nodes.all.iter_mut().for_each(|node| node.start());
        user.note(&nodes);
        nodes.led();
        let (mut random, mut kills) = (Random(seed), 0);
        std::thread::scope(|scope| {
            let playing = scope.spawn(|| user.play(samples, batches));
            while !playing.is_finished() && kills < batches * KILLS {
                std::thread::sleep(random.millis(500, 2500));
                let any = random.below_size(NODES);
                let node = if random.below(3) > 0 { nodes.leader().unwrap_or(any) } else { any };
                nodes.all[node].kill();
                user.note(&nodes);
                kills += 1;
                std::thread::sleep(random.millis(0, 2500));
                nodes.all[node].start();
                user.note(&nodes);
            }
            playing.join().expect("the samples");
        });
        let result = user.result(samples, batches);
        nodes.all.iter_mut().for_each(|node| node.stop());
        (kills, result)
    }

    fn ends_alike(samples: Samples, store: Option<Store>) {
        let Some(store) = store else { return };
        let (batches, seed) = (number("KELOS_BATCHES", BATCHES), number("KELOS_SEED", 1));
        println!("{}: {batches} batches with KELOS_SEED={seed}", store.name);
        let expected = alone(samples, batches);
        let (kills, found) = among_kills(samples, batches, &store, seed);
        let lines = |of: &[String]| of.join("\n");
        assert!(expected == found, "on one machine:\n{}\non three nodes:\n{}", lines(&expected), lines(&found));
        println!("{}: {} things end as on one machine, after {kills} kills", store.name, found.len());
    }

    #[test]
    #[ignore = "needs a real server: servers/run with postgres -- cargo test -- --ignored real::"]
    fn samples_end_as_on_one_machine_over_postgres() {
        ends_alike(Samples::Deployed, Store::postgres());
    }

    #[test]
    #[ignore = "needs a real server: servers/run with redis -- cargo test -- --ignored real::"]
    fn samples_end_as_on_one_machine_over_redis() {
        ends_alike(Samples::Deployed, Store::redis());
    }

    #[test]
    #[ignore = "needs a real server: servers/run with zookeeper -- cargo test -- --ignored real::"]
    fn samples_end_as_on_one_machine_over_zookeeper() {
        ends_alike(Samples::Deployed, Store::zookeeper());
    }

    #[test]
    #[ignore = "needs a real server: servers/run with s3 -- cargo test -- --ignored real::"]
    fn samples_end_as_on_one_machine_over_s3() {
        ends_alike(Samples::Deployed, Store::s3());
    }

    #[test]
    #[ignore = "needs a real server: servers/run with postgres -- cargo test -- --ignored real::"]
    fn jobs_end_as_on_one_machine_over_postgres() {
        ends_alike(Samples::Jobs, Store::postgres());
    }

    #[test]
    #[ignore = "needs a real server: servers/run with redis -- cargo test -- --ignored real::"]
    fn jobs_end_as_on_one_machine_over_redis() {
        ends_alike(Samples::Jobs, Store::redis());
    }

    #[test]
    #[ignore = "needs a real server: servers/run with zookeeper -- cargo test -- --ignored real::"]
    fn jobs_end_as_on_one_machine_over_zookeeper() {
        ends_alike(Samples::Jobs, Store::zookeeper());
    }

    #[test]
    #[ignore = "needs a real server: servers/run with s3 -- cargo test -- --ignored real::"]
    fn jobs_end_as_on_one_machine_over_s3() {
        ends_alike(Samples::Jobs, Store::s3());
    }
}
