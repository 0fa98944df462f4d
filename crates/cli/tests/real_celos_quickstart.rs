//! The sample for Celos's users, with nothing but its addresses changed, on a real HDFS and a real Oozie: from a door of
//! Celos to words counted in HDFS, while one after the other is killed and comes back.

mod real {
    use std::path::Path;
    use std::time::{Duration, Instant};

    use serde_json::Value;

    use crate::support::cluster::{Cluster, PATIENCE, tool};
    use crate::support::{Folder, Server, run, within};

    const CENTRES: [&str; 2] = ["lax", "nyc"];
    /// As many as the test needs.
    const HOURS: u8 = 5;

    /// The servers, the folders, and Kelos between them.
    struct House {
        cluster: Cluster,
        folder: Folder,
        /// Jobs of the same names from other times.
        old_jobs: Vec<String>,
        server: Option<Server>,
    }

    impl House {
        /// The sample with the addresses of the servers, its application in HDFS, and no data yet.
        fn build() -> Option<House> {
            let cluster = Cluster::find()?;
            let addresses = [
                ("http://localhost:11000/oozie", &cluster.oozie),
                ("hdfs://localhost:8020", &cluster.hdfs),
                ("localhost:8032", &cluster.job_tracker),
            ];
            let folder = Folder::with(&[("db/.keep", ""), ("logs/.keep", "")]);
            let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples/celos-quickstart");
            tool("cp", &["-r", sample.to_str()?, &format!("{}/sample", folder.text())]);
            let read = |name: &str| std::fs::read_to_string(sample.join(name)).expect(name);
            let defaults = addresses.iter().fold(read("defaults.js"), |text, (old, new)| text.replace(old, new));
            folder.write("workflows/wordcount.js", &read("workflow.js"));
            folder.write("defaults/wordcount.js", &defaults);
            let mut house = House { cluster, folder, old_jobs: Vec::new(), server: None };
            house.old_jobs = (0..HOURS).flat_map(|hour| CENTRES.map(|dc| house.jobs(dc, hour))).flatten().collect();
            house.cluster.web("DELETE", "/user/celos/quickstart", "DELETE&recursive=true");
            house.sample("fetch-jar", &[]);
            house.put("sample/hdfs", "wordcount");
            Some(house)
        }

        fn sample(&self, program: &str, args: &[&str]) {
            tool(&format!("{}/sample/bin/{program}", self.folder.text()), args);
        }

        fn put(&self, folder: &str, path: &str) {
            let from = format!("{}/{folder}", self.folder.text());
            self.sample("put", &[&self.cluster.webhdfs, "celos", &from, &format!("/user/celos/quickstart/{path}")]);
        }

        /// One hour of both data centres comes in.
        fn deliver(&self, hour: u8) {
            let input = format!("{}/input-{hour}", self.folder.text());
            self.sample("make-data", &[&input, "1", &format!("2015-09-01T{:02}:00Z", hour + 1)]);
            self.put(&format!("input-{hour}"), "input");
        }

        /// Starts Kelos as Celos is started.
        fn open(&mut self) {
            let mut args = vec!["serve", "--port", "0", "--workflows", "workflows", "--defaults", "defaults"];
            args.extend(["--logs", "logs", "--db", "db", "--autoSchedule", "1"]);
            self.server = Some(Server::start(self.folder.path(), &args, "it schedules automatically"));
        }

        fn address(&self) -> String {
            self.server.as_ref().expect("it is open").address().to_owned()
        }

        fn celos(&self, method: &str, path: &str) -> String {
            let url = format!("{}{path}", self.address());
            tool("curl", &["--silent", "--show-error", "--fail", "--request", method, &url])
        }

        /// Opens the slots of an hour in both data centres.
        fn rerun(&self, hour: u8) {
            for dc in CENTRES {
                self.celos("POST", &format!("/rerun?id=wordcount-{dc}&time=2015-09-01T{hour:02}:00Z"));
            }
        }

        /// The slot of an hour as Celos shows it.
        fn slot(&self, dc: &str, hour: u8) -> Value {
            let time = format!("2015-09-01T{hour:02}:00:00.000Z");
            let slots = self.celos("GET", &format!("/workflow-slots?id=wordcount-{dc}&end=2015-09-02T00:00Z"));
            let slots: Value = serde_json::from_str(&slots).expect("JSON");
            let slot = slots["slots"].as_array().expect("slots").iter().find(|slot| slot["time"] == time.as_str());
            slot.cloned().unwrap_or_default()
        }

        fn is(&self, hour: u8, status: &str) -> bool {
            CENTRES.iter().all(|dc| self.slot(dc, hour)["status"] == status)
        }

        #[track_caller]
        fn until(&self, hour: u8, status: &str) {
            let what = || CENTRES.map(|dc| self.slot(dc, hour)).map(|slot| slot.to_string()).join(" ");
            let until = Instant::now() + PATIENCE;
            while !self.is(hour, status) {
                assert!(Instant::now() < until, "not {status}: {}", what());
                let failed = CENTRES.iter().any(|dc| self.slot(dc, hour)["status"] == "FAILURE");
                assert!(!failed, "{}\n{}", what(), self.why("lax", hour) + &self.why("nyc", hour));
                std::thread::sleep(Duration::from_millis(200));
            }
        }

        /// The same where Oozie may have suspended jobs in between.
        #[track_caller]
        fn until_resumed(&self, hour: u8, status: &str) {
            let what = || CENTRES.map(|dc| self.slot(dc, hour)).map(|slot| slot.to_string()).join(" ");
            let until = Instant::now() + PATIENCE;
            while !self.is(hour, status) {
                assert!(Instant::now() < until, "not {status}: {}", what());
                for job in CENTRES.iter().filter_map(|dc| self.slot(dc, hour)["externalID"].as_str().map(str::to_owned))
                {
                    self.cluster.resume_if_suspended(&job);
                }
                std::thread::sleep(Duration::from_secs(1));
            }
        }

        fn why(&self, dc: &str, hour: u8) -> String {
            let time = format!("2015-09-01T{hour:02}:00Z");
            run(&["why", &format!("wordcount-{dc}"), &time, "--server", &self.address()]).ok()
        }

        #[track_caller]
        fn until_why_says(&self, hour: u8, words: &str) {
            within(PATIENCE, words, || self.why("lax", hour).contains(words).then_some(()));
        }

        /// The ids of all jobs that Oozie was given for a slot: the sample names them after it.
        fn jobs(&self, dc: &str, hour: u8) -> Vec<String> {
            let ids = self.cluster.jobs(&format!("wordcount-{dc}@2015-09-01T{hour:02}:00Z"));
            ids.into_iter().filter(|id| !self.old_jobs.contains(id)).collect()
        }

        /// Both slots of an hour went well, by one job for each run, the last of which counted what there is. Oozie itself
        /// fails jobs that lose their name node; no run has two.
        #[track_caller]
        fn is_counted(&self, hour: u8) {
            for dc in CENTRES {
                let slot = self.slot(dc, hour);
                let id = slot["externalID"].as_str().expect("an external id").to_owned();
                let (jobs, retries) = (self.jobs(dc, hour), slot["retryCount"].as_u64().expect("a count"));
                assert!(jobs.contains(&id) && jobs.len() as u64 == retries + 1, "{jobs:?} for {slot}");
                let folder = format!("/user/celos/quickstart/output/{dc}/2015-09-01/{hour:02}00");
                let counted = self.cluster.web("GET", &format!("{folder}/part-r-00000"), "OPEN");
                let words: u32 = counted.lines().filter_map(|line| line.split('\t').nth(1)?.parse::<u32>().ok()).sum();
                assert_eq!(words, 30, "{counted}");
            }
        }
    }

    #[test]
    #[ignore = "needs a real server: servers/run with hdfs oozie -- cargo test -- --ignored real::"]
    fn celos_quickstart_counts_words_whatever_is_killed_meanwhile() {
        let Some(mut house) = House::build() else { return };
        house.open();
        let workflows = within(PATIENCE, "the workflows", || {
            let list = house.celos("GET", "/workflow-list");
            list.contains("wordcount-nyc").then_some(list)
        });
        assert!(workflows.contains("wordcount-lax"));

        // As in Celos's own first steps: slots wait for their hour, which is delivered, and turn green.
        house.rerun(0);
        house.until_why_says(0, "/user/celos/quickstart/input/lax/2015-09-01/0000/_READY");
        assert!(house.is(0, "WAITING"));
        house.deliver(0);
        house.until(0, "SUCCESS");
        house.is_counted(0);

        // Oozie dies under running jobs, and Kelos with it.
        house.deliver(1);
        house.rerun(1);
        house.until(1, "RUNNING");
        kelos_test_servers::crash("oozie");
        house.server.take().expect("it is open").crash();
        house.open();
        within(PATIENCE, "the workflows", || {
            house.celos("GET", "/workflow-list").contains("wordcount-nyc").then_some(())
        });
        assert!(house.is(1, "RUNNING"));
        // Another hour comes in; one data centre's go one after the other, so it has to wait for its place.
        house.deliver(2);
        house.rerun(2);
        within(PATIENCE, "places to be waited for", || house.is(2, "READY").then_some(()));
        kelos_test_servers::up("oozie");
        house.until(1, "SUCCESS");
        house.is_counted(1);
        house.until(2, "SUCCESS");
        house.is_counted(2);

        // Oozie is away when slots are to be submitted: they stay where they are.
        kelos_test_servers::crash("oozie");
        house.deliver(3);
        house.rerun(3);
        house.until_why_says(3, "Connection refused");
        assert!(house.is(3, "READY"));
        kelos_test_servers::up("oozie");
        house.until(3, "SUCCESS");
        house.is_counted(3);

        // The name node dies, so that triggers can't look; and again under running jobs.
        house.deliver(4);
        kelos_test_servers::crash("hdfs");
        house.rerun(4);
        house.until_why_says(4, "can't be checked");
        assert!(house.is(4, "WAITING"));
        kelos_test_servers::up("hdfs");
        house.until(4, "RUNNING");
        kelos_test_servers::crash("hdfs");
        kelos_test_servers::up("hdfs");
        house.until_resumed(4, "SUCCESS");
        house.is_counted(4);
        assert!(house.server.take().expect("it is open").stop().success());
    }
}
