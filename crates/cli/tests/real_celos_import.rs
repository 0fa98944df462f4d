//! A state database of Celos whose jobs are in a real Oozie: taken over, gone on with, and given back.

mod real {
    use std::collections::BTreeMap;
    use std::path::Path;

    use jiff::{SignedDuration, Timestamp};
    use serde_json::{Value, json};

    use crate::support::cluster::{Cluster, PATIENCE, tool};
    use crate::support::{Folder, Server, run_in, within};

    /// A job that Oozie never had: whoever asks about it, or does its work again, is found out.
    const LONG_GONE: &str = "0000001-151225000000000-oozie-oozi-W";
    /// Slots are named by how many hours they lie before the current one. These are RUNNING in Celos.
    const LOST: i64 = 8;
    const ENDED: i64 = 7;
    const HELD: i64 = 6;
    const UNSTARTED: i64 = 5;
    /// The others are as they are called.
    const SUCCEEDED: i64 = 4;
    const FAILED: i64 = 3;
    const RETRIED: i64 = 2;
    const READY: i64 = 1;
    /// Celos has no record of it.
    const NEW: i64 = 0;
    /// Far out of Celos's window: one marked for rerun, one forgotten.
    const MARKED: i64 = 20 * 24;
    const FORGOTTEN: i64 = 20 * 24 + 1;
    /// All whose job makes its folder in the end.
    const WORKED: [i64; 7] = [MARKED, LOST, ENDED, HELD, UNSTARTED, RETRIED, READY];

    const WORKFLOW: &str = r#"
        var ROOT = "/tmp/OWN", STAMP = "${year}-${month}-${day}T${hour}";
        function define(id, trigger, startTime) {
            celos.defineWorkflow({
                "id": id,
                "schedule": celos.hourlySchedule(),
                "schedulingStrategy": celos.serialSchedulingStrategy(4),
                "trigger": trigger,
                "startTime": startTime,
                "maxRetryCount": 2,
                "externalService": celos.oozieExternalService({
                    "user.name": "celos",
                    "nameNode": "HDFS",
                    "jobTracker": "TRACKER",
                    "oozie.wf.application.path": "HDFS" + ROOT + "/workflow.xml",
                    "out": "HDFS" + ROOT + "/out-" + celos.getRegister("OWN", "count").next + "/" + STAMP
                }, "OOZIE")
            });
        }
        define("OWN", celos.hdfsCheckTrigger(ROOT + "/in/" + STAMP, "HDFS"), "START");
        define("OWN-paused", celos.alwaysTrigger(), "PAUSED_START");
    "#;

    /// A job with a gate waits for it; all make a folder.
    const APPLICATION: &str = r#"<workflow-app xmlns="uri:oozie:workflow:0.5" name="${celosWorkflowName}">
        <start to="kind"/>
        <decision name="kind"><switch>
            <case to="hold">${not empty wf:conf('gate')}</case><default to="make"/>
        </switch></decision>
        <action name="hold">
            <shell xmlns="uri:oozie:shell-action:0.3">
                <job-tracker>${jobTracker}</job-tracker><name-node>${nameNode}</name-node>
                <exec>timeout</exec><argument>600</argument><argument>sh</argument><argument>-c</argument>
                <argument>until [ -e ${gate} ]; do sleep 0.2; done</argument>
            </shell>
            <ok to="make"/><error to="failed"/>
        </action>
        <action name="make"><fs><mkdir path="${out}"/></fs><ok to="end"/><error to="failed"/></action>
        <kill name="failed"><message>gave up</message></kill>
        <end name="end"/>
    </workflow-app>"#;

    /// The servers, the folders, and Kelos between them.
    struct House {
        cluster: Cluster,
        folder: Folder,
        /// The workflow, and whatever else must be this test's own.
        own: String,
        /// The current hour, when all began.
        hour: Timestamp,
        server: Option<Server>,
    }

    fn record(status: &str, external_id: Option<&str>, retries: u32) -> Value {
        json!({ "status": status, "externalID": external_id, "retryCount": retries })
    }

    impl House {
        fn build() -> Option<House> {
            let cluster = Cluster::find()?;
            let now = Timestamp::now();
            let hour = Timestamp::from_second(now.as_second() / 3600 * 3600).ok()?;
            let own = format!("import-{}-{}", std::process::id(), now.as_millisecond());
            let folder = Folder::with(&[("db/.keep", ""), ("defaults/.keep", ""), ("workflow.xml", APPLICATION)]);
            let house = House { cluster, folder, own, hour, server: None };
            let changes = [
                ("PAUSED_START", house.time(READY)),
                ("START", house.time(LOST)),
                ("OWN", house.own.clone()),
                ("OOZIE", house.cluster.oozie.clone()),
                ("HDFS", house.cluster.hdfs.clone()),
                ("TRACKER", house.cluster.job_tracker.clone()),
            ];
            let script = changes.iter().fold(WORKFLOW.to_owned(), |text, (old, new)| text.replace(old, new));
            house.folder.write("workflows/own.js", &script);
            house.cluster.upload(&house.folder, "workflow.xml", &house.path("workflow.xml"));
            Some(house)
        }

        fn path(&self, rest: &str) -> String {
            format!("/tmp/{}/{rest}", self.own)
        }

        fn time(&self, hours: i64) -> String {
            kelos_model::time::format_full(self.hour - SignedDuration::from_hours(hours))
        }

        /// The day and the hour, as they stand in paths.
        fn stamp(&self, hours: i64) -> String {
            self.time(hours)[..13].to_owned()
        }

        /// What jobs of a slot are called.
        fn name(&self, workflow: &str, hours: i64) -> String {
            format!("{workflow}@{}Z", &self.time(hours)[..16])
        }

        fn jobs(&self, hours: i64) -> Vec<String> {
            self.cluster.jobs(&self.name(&self.own, hours))
        }

        /// What a slot's trigger waits for.
        fn deliver(&self, hours: i64) {
            self.cluster.web("PUT", &self.path(&format!("in/{}", self.stamp(hours))), "MKDIRS");
        }

        /// The folders that jobs made.
        fn made(&self) -> Vec<String> {
            let listed: Value =
                serde_json::from_str(&self.cluster.web("GET", &self.path("out-7"), "LISTSTATUS")).expect("JSON");
            let entries = listed["FileStatuses"]["FileStatus"].as_array().expect("entries").iter();
            entries.map(|entry| entry["pathSuffix"].as_str().expect("a name").to_owned()).collect()
        }

        /// Submits the job of a slot as Celos does: without a name of ours.
        fn submit(&self, hours: i64, more: &[(&str, &str)]) -> String {
            let (time, root) = (self.time(hours), format!("{}{}", self.cluster.hdfs, self.path("")));
            let name = self.name(&self.own, hours);
            let (application, out) = (format!("{root}workflow.xml"), format!("{root}out-7/{}", self.stamp(hours)));
            let mut properties = vec![
                ("user.name", "celos"),
                ("nameNode", &self.cluster.hdfs),
                ("jobTracker", &self.cluster.job_tracker),
                ("oozie.wf.application.path", &application),
                ("out", &out),
                ("celosWorkflowName", &name),
            ];
            let parts = [("year", 0..4), ("month", 5..7), ("day", 8..10), ("hour", 11..13), ("minute", 14..16)];
            properties.extend(parts.into_iter().map(|(part, at)| (part, &time[at])));
            properties.extend(more);
            let line = |(name, value): &(&str, &str)| {
                format!("<property><name>{name}</name><value>{value}</value></property>")
            };
            let body: String = properties.iter().map(line).collect();
            let body = format!("<configuration>{body}</configuration>");
            let answer = self.oozie("POST", "jobs", &["--header", "Content-Type: application/xml", "--data", &body]);
            let answer: Value = serde_json::from_str(&answer).expect("JSON");
            answer["id"].as_str().expect("an id").to_owned()
        }

        fn begin(&self, job: &str) {
            self.oozie("PUT", &format!("job/{job}?action=start"), &[]);
        }

        fn oozie(&self, method: &str, path: &str, more: &[&str]) -> String {
            let url = format!("{}/v2/{path}", self.cluster.oozie);
            tool("curl", &[&["-sS", "--fail", "--request", method, &url], more].concat())
        }

        fn status(&self, job: &str) -> String {
            let info: Value = serde_json::from_str(&self.oozie("GET", &format!("job/{job}"), &[])).expect("JSON");
            info["status"].as_str().expect("a status").to_owned()
        }

        /// Writes a record as Celos keeps it.
        fn keep(&self, workflow: &str, hours: i64, record: &Value) {
            let time = self.time(hours);
            let mut record = record.clone();
            record["time"] = json!(time);
            self.celos(&format!("state/{workflow}/{}", time.replacen('T', "/", 1)), &record.to_string());
        }

        fn celos(&self, name: &str, text: &str) {
            self.folder.write(&format!("celos/{name}"), text);
        }

        fn open(&mut self) {
            let args = ["--workflows", "workflows", "--defaults", "defaults", "--db", "db", "--autoSchedule", "1"];
            let args = [&["serve", "--port", "0"], &args[..]].concat();
            self.server = Some(Server::start(self.folder.path(), &args, "it schedules automatically"));
        }

        fn server(&self) -> &Server {
            self.server.as_ref().expect("it is open")
        }

        /// The slot of an hour as Celos shows it.
        fn slot(&self, workflow: &str, hours: i64) -> Value {
            let (time, end) = (self.time(hours), self.time(hours - 1));
            // Without a start Celos shows nothing from before the workflow's own.
            let url = format!("{}/workflow-slots?id={workflow}&start={time}&end={end}", self.server().address());
            let slots: Value = serde_json::from_str(&tool("curl", &["-sS", "--fail", &url])).expect("JSON");
            let slot = slots["slots"].as_array().expect("slots").iter().find(|slot| slot["time"] == time.as_str());
            slot.map(record_of).unwrap_or_default()
        }

        #[track_caller]
        fn until(&self, hours: i64, status: &str) {
            let what = format!("{status} {}", self.name(&self.own, hours));
            within(PATIENCE, &what, || {
                let slot = self.slot(&self.own, hours);
                let over = slot["status"] == "FAILURE" && status != "FAILURE";
                assert!(!over, "{what}: {slot}\n{}", self.why(hours));
                (slot["status"] == status).then_some(())
            });
        }

        fn why(&self, hours: i64) -> String {
            let words = ["why", &self.own, &self.time(hours), "--server", self.server().address()];
            run_in(self.folder.path(), &words).ok()
        }

        /// The record of a slot that the export wrote.
        fn given_back(&self, workflow: &str, hours: i64) -> Value {
            let path = format!("back/state/{workflow}/{}", self.time(hours).replacen('T', "/", 1));
            let path = self.folder.path().join(path);
            let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            record_of(&serde_json::from_str(&text).expect("JSON"))
        }
    }

    /// The part of a slot that is in Celos's records and in its answers.
    fn record_of(slot: &Value) -> Value {
        json!({ "status": slot["status"], "externalID": slot["externalID"], "retryCount": slot["retryCount"] })
    }

    /// The jobs that Celos knew when it stopped.
    struct Jobs {
        lost: String,
        ended: String,
        held: String,
        unstarted: String,
    }

    impl House {
        /// Two jobs that end before anybody looks again, one that goes on, one that Celos died before it started.
        fn jobs_of_celos(&self, gate: &Path) -> Jobs {
            let lost = self.submit(LOST, &[]);
            self.oozie("PUT", &format!("job/{lost}?action=kill"), &[]);
            let (ended, unstarted) = (self.submit(ENDED, &[]), self.submit(UNSTARTED, &[]));
            let held = self.submit(HELD, &[("gate", gate.to_str().expect("text"))]);
            self.begin(&ended);
            self.begin(&held);
            within(PATIENCE, "the end of a job", || (self.status(&ended) == "SUCCEEDED").then_some(()));
            assert_eq!((self.status(&held), self.status(&unstarted)), ("RUNNING".to_owned(), "PREP".to_owned()));
            Jobs { lost, ended, held, unstarted }
        }

        fn database_of_celos(&self, jobs: &Jobs) {
            let (own, paused) = (&self.own, format!("{}-paused", self.own));
            self.keep(own, LOST, &record("RUNNING", Some(&jobs.lost), 1));
            self.keep(own, ENDED, &record("RUNNING", Some(&jobs.ended), 0));
            self.keep(own, HELD, &record("RUNNING", Some(&jobs.held), 1));
            self.keep(own, UNSTARTED, &record("RUNNING", Some(&jobs.unstarted), 0));
            self.keep(own, SUCCEEDED, &record("SUCCESS", Some(LONG_GONE), 0));
            self.keep(own, FAILED, &record("FAILURE", Some(LONG_GONE), 2));
            self.keep(own, RETRIED, &record("WAITING", None, 1));
            self.keep(own, READY, &record("READY", None, 0));
            self.keep(own, MARKED, &record("WAITING", None, 0));
            self.keep(own, FORGOTTEN, &record("WAITING", None, 0));
            let marked = json!({ "rerunTime": kelos_model::time::format_full(Timestamp::now()) });
            self.celos(&format!("rerun/{own}/{}", self.time(MARKED).replacen('T', "/", 1)), &marked.to_string());
            self.keep(&paused, READY, &record("WAITING", None, 1));
            self.celos(&format!("paused/{paused}"), "");
            self.celos(&format!("register/{own}/count"), r#"{"next":7}"#);
        }

        fn import(&self, more: &[&str]) -> Value {
            let args = ["import", "celos", "celos", "--db", "db", "--workflows", "workflows", "--defaults", "defaults"];
            let said = self.folder.run(&[&args[..], &["--json"], more].concat()).ok();
            serde_json::from_str(&said).expect("JSON")
        }
    }

    #[test]
    #[ignore = "needs a real server: servers/run with hdfs oozie -- cargo test -- --ignored real::"]
    fn jobs_of_celos_go_on_in_kelos_and_nothing_runs_twice() {
        let Some(mut house) = House::build() else { return };
        let gate = house.folder.path().join("gate");
        let jobs = house.jobs_of_celos(&gate);
        house.database_of_celos(&jobs);
        // All that Celos might run has what it waits for, but for one.
        for hours in [LOST, ENDED, HELD, UNSTARTED, SUCCEEDED, FAILED, READY, MARKED, FORGOTTEN] {
            house.deliver(hours);
        }
        house.import(&["--dry-run"]);
        let done = house.import(&[]);
        let states = json!({ "expired": 1, "failed": 1, "running": 4, "succeeded": 1, "waiting": 3 });
        assert_eq!(done["imported"]["workflows"][0]["imported"], states, "{done}");

        house.open();
        house.until(LOST, "SUCCESS");
        house.until(ENDED, "SUCCESS");
        house.until(UNSTARTED, "SUCCESS");
        house.until(READY, "SUCCESS");
        house.until(MARKED, "SUCCESS");
        assert_eq!(house.slot(&house.own, HELD), record("RUNNING", Some(&jobs.held), 1));
        assert_eq!(house.slot(&house.own, RETRIED), record("WAITING", None, 1));
        let why = house.why(HELD);
        assert!(why.contains("when it was imported from celos, where it was RUNNING"), "{why}");
        // Whoever takes over from Kelos does no worse.
        house.server.take().expect("it is open").crash();
        house.open();
        std::fs::write(&gate, "").expect("a gate");
        house.until(HELD, "SUCCESS");
        house.deliver(RETRIED);
        house.until(RETRIED, "SUCCESS");
        let shown = all_hours(|hours| house.slot(&house.own, hours));
        assert_eq!(shown, expected(&house, &jobs));
        assert_eq!(house.status(&jobs.held), "SUCCEEDED");
        assert_eq!(house.made(), { WORKED.map(|hours| house.stamp(hours)) });
        let paused = format!("{}-paused", house.own);
        assert_eq!(house.slot(&paused, READY), record("WAITING", None, 1));
        assert_eq!(house.cluster.jobs(&house.name(&paused, READY)), [""; 0]);

        assert!(house.server.take().expect("it is open").stop().success());
        let args = ["export", "celos", "back", "--db", "db", "--workflows", "workflows", "--defaults", "defaults"];
        house.folder.run(&args).ok();
        assert_eq!(all_hours(|hours| house.given_back(&house.own, hours)), shown);
        assert_eq!(house.given_back(&paused, READY), record("WAITING", None, 1));
        let back = house.folder.path().join("back");
        assert!(back.join("paused").join(&paused).exists() && !back.join("paused").join(&house.own).exists());
        assert!(!back.join("rerun").join(&house.own).exists(), "what was marked is done");
        let count = std::fs::read_to_string(back.join("register").join(&house.own).join("count")).expect("a register");
        assert_eq!(serde_json::from_str::<Value>(&count).expect("JSON"), json!({ "next": 7 }));
    }

    fn all_hours(record: impl Fn(i64) -> Value) -> BTreeMap<i64, Value> {
        let hours = [FORGOTTEN, MARKED, LOST, ENDED, HELD, UNSTARTED, SUCCEEDED, FAILED, RETRIED, READY, NEW];
        hours.map(|hours| (hours, record(hours))).into()
    }

    /// Where all slots stand in the end, after which jobs in Oozie: one each, and Celos's own where it had one.
    #[track_caller]
    fn expected(house: &House, jobs: &Jobs) -> BTreeMap<i64, Value> {
        let known = [(ENDED, &jobs.ended, 0), (HELD, &jobs.held, 1), (UNSTARTED, &jobs.unstarted, 0)];
        let mut all = BTreeMap::new();
        for (hours, job, retries) in known {
            assert_eq!(house.jobs(hours), [job.as_str()]);
            all.insert(hours, record("SUCCESS", Some(job), retries));
        }
        for (hours, retries) in [(READY, 0), (RETRIED, 1), (MARKED, 0)] {
            let [job] = &house.jobs(hours)[..] else { panic!("{:?}", house.jobs(hours)) };
            all.insert(hours, record("SUCCESS", Some(job), retries));
        }
        // Somebody had killed its job in Oozie: it was tried once more, by the latest job of two.
        let tried = house.jobs(LOST);
        let [again] = &tried.iter().filter(|job| **job != jobs.lost).collect::<Vec<_>>()[..] else {
            panic!("{tried:?}")
        };
        assert_eq!(tried.len(), 2);
        all.insert(LOST, record("SUCCESS", Some(again), 2));
        all.insert(SUCCEEDED, record("SUCCESS", Some(LONG_GONE), 0));
        all.insert(FAILED, record("FAILURE", Some(LONG_GONE), 2));
        all.insert(FORGOTTEN, record("WAIT_TIMEOUT", None, 0));
        all.insert(NEW, record("WAITING", None, 0));
        for hours in [SUCCEEDED, FAILED, FORGOTTEN, NEW] {
            assert_eq!(house.jobs(hours), [""; 0]);
        }
        all
    }
}
