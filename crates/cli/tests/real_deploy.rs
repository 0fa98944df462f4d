//! A project's life over a real SSH server and a real HDFS: deployed, run, changed, taken away.

mod real {
    use std::path::{Path, PathBuf};
    use std::process::Command;

    use serde_json::Value;

    use crate::support::{Folder, Server, eventually, kelos};

    /// A site behind SSH: folders of scripts, Hadoop's files, and a target file that names them without a user.
    struct Site {
        /// On the other side of SSH, which is this machine.
        far: PathBuf,
        uri: String,
        user: String,
        conf: String,
        key: String,
        known_hosts: String,
        near: Folder,
    }

    impl Site {
        fn build(test: &str) -> Option<Site> {
            let address = kelos_test_servers::address("KELOS_TEST_SFTP")?;
            let conf = kelos_test_servers::address("KELOS_TEST_HADOOP_CONF_DIR")?;
            let var = |name: &str| std::env::var(name).ok();
            let (user, host) = address.strip_prefix("sftp://")?.split_once('@')?;
            let far = Path::new(&var("KELOS_TEST_SFTP_DIR")?).join(format!("{test}-{}", std::process::id()));
            for name in ["workflows", "defaults", "conf"] {
                std::fs::create_dir_all(far.join(name)).ok()?;
            }
            for name in ["core-site.xml", "hdfs-site.xml"] {
                std::fs::copy(Path::new(&conf).join(name), far.join("conf").join(name)).ok()?;
            }
            let uri = format!("sftp://{host}{}", far.to_str()?);
            let target = format!(
                "{{\"hadoop.hdfs-site.xml\": \"{uri}/conf/hdfs-site.xml\", \"hadoop.core-site.xml\": \
                 \"{uri}/conf/core-site.xml\", \"workflows.dir.uri\": \"{uri}/workflows\", \"defaults.dir.uri\": \
                 \"{uri}/defaults\",}}"
            );
            std::fs::write(far.join("target.json"), target).ok()?;
            let near = Folder::with(&[("db/.keep", ""), ("home/.keep", "")]);
            let (key, known_hosts) = (var("KELOS_TEST_SFTP_KEY")?, var("KELOS_TEST_SFTP_KNOWN_HOSTS")?);
            Some(Site { far, uri, user: user.to_owned(), conf, key, known_hosts, near })
        }

        fn write_project(&self, cron: &str, path: &str) {
            let hdfs = std::env::var("KELOS_TEST_HDFS").expect("an HDFS");
            self.near.write("project/defaults.js", &format!("var READY = '{path}';"));
            self.near.write("project/hdfs/workflow.xml", "<workflow-app name='x'/>");
            self.near.write("project/hdfs/lib/code.jar", "bytes");
            let script = format!(
                "importDefaults('words');\ncelos.defineWorkflow({{ id: 'words', schedule: celos.cronSchedule('{cron}'), \
                 schedulingStrategy: celos.serialSchedulingStrategy(9), trigger: celos.hdfsCheckTrigger(READY, '{hdfs}'), \
                 externalService: celos.commandExternalService({{ command: ['true'] }}) }});\n"
            );
            self.near.write("project/workflow.js", &script);
        }

        fn command(&self, words: &[&str]) -> Command {
            let mut command = kelos(words);
            command.current_dir(self.near.path());
            command.env_remove("SSH_AUTH_SOCK").env("HOME", self.near.path().join("home"));
            command.env("CELOS_CI_USERNAME", &self.user);
            command.env("KELOS_SSH_KEY", &self.key).env("KELOS_SSH_KNOWN_HOSTS", &self.known_hosts);
            command
        }

        fn words<'a>(&'a self, verb: &'a str, target: &'a str, root: &'a str) -> Vec<&'a str> {
            let mut words = vec![verb, "--workflowName", "words", "--target", target, "--hdfsRoot", root];
            if verb == "deploy" {
                words.extend(["--deployDir", "project"]);
            }
            words
        }

        fn serve(&self) -> Server {
            let (workflows, defaults) = (self.far.join("workflows"), self.far.join("defaults"));
            let (workflows, defaults) = (workflows.to_str().expect("text"), defaults.to_str().expect("text"));
            let words = ["serve", "--port", "0", "--workflows", workflows, "--defaults", defaults, "--db", "db"];
            let mut command = self.command(&[&words[..], &["--autoSchedule", "1"]].concat());
            // Paths in HDFS are looked at with the same configuration that the target file names.
            Server::run(command.env("HADOOP_CONF_DIR", &self.conf), "it schedules automatically")
        }

        fn scripts(&self) -> Vec<String> {
            let names = |name: &str| {
                let entries = std::fs::read_dir(self.far.join(name)).expect(name).map(Result::unwrap);
                entries.map(|entry| format!("{name}/{}", entry.file_name().to_string_lossy())).collect::<Vec<_>>()
            };
            [names("workflows"), names("defaults")].concat()
        }
    }

    impl Drop for Site {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.far);
        }
    }

    #[track_caller]
    fn said(command: &mut Command, code: i32) -> String {
        let done = command.output().expect("kelos");
        let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        assert_eq!(done.status.code(), Some(code), "{out}{err}");
        if code == 0 { out.into_owned() } else { err.into_owned() }
    }

    /// The states of all slots; none before the server has read the script.
    fn states(server: &Server) -> Vec<String> {
        let done = kelos(&["slots", "words", "--all", "--json", "--server", server.address()]).output().expect("kelos");
        let slots: Value = serde_json::from_slice(&done.stdout).unwrap_or_default();
        let items = slots["items"].as_array().into_iter().flatten();
        items.map(|slot| slot["state"].as_str().expect("a state").to_owned()).collect()
    }

    #[test]
    #[ignore = "needs a real server: servers/run with sftp hdfs -- cargo test -- --ignored real::"]
    fn a_project_is_deployed_run_changed_and_taken_away() {
        let Some(site) = Site::build("life") else { return };
        let root = format!("/tmp/kelos-deploy-{}", std::process::id());
        let target = format!("{}/target.json", site.uri);
        let server = site.serve();
        site.write_project("0 0 0 * * ?", &format!("{root}/words/workflow.xml"));
        let (deploy, undeploy) = (site.words("deploy", &target, &root), site.words("undeploy", &target, &root));

        let plan = said(&mut site.command(&[&deploy[..], &["--plan"]].concat()), 0);
        assert!(plan.contains(&format!("{root}/words/lib/code.jar")), "{plan}");
        assert!(plan.contains("7 slots of words in the last 7 days are new: "), "{plan}");
        assert!(plan.ends_with("this is a plan: nothing was changed\n"), "{plan}");
        assert_eq!(site.scripts(), Vec::<String>::new());

        let done = said(&mut site.command(&deploy), 0);
        assert!(done.ends_with("words is deployed\n"), "{done}");
        assert_eq!(site.scripts(), ["workflows/words.js", "defaults/words.js"]);
        eventually("seven runs", || (states(&server) == ["succeeded"; 7]).then_some(()));

        let again = said(&mut site.command(&deploy), 0);
        assert!(again.ends_with("words is deployed as it is: nothing to change\n"), "{again}");
        site.write_project("0 0 0,12 * * ?", &format!("{root}/nothing"));
        site.near.write("project/hdfs/lib/code.jar", "other bytes");
        let changed = said(&mut site.command(&deploy), 0);
        assert!(changed.contains("done: put the files of hdfs/ at hdfs:"), "{changed}");
        eventually("seven more that wait", || {
            let states = states(&server);
            (states.iter().filter(|state| *state == "waiting").count() == 7 && states.len() == 14).then_some(())
        });

        let gone = said(&mut site.command(&undeploy), 0);
        assert!(gone.ends_with("words is undeployed\n"), "{gone}");
        assert_eq!(site.scripts(), Vec::<String>::new());
        let again = said(&mut site.command(&undeploy), 0);
        assert!(again.ends_with("words is not there: nothing to change\n"), "{again}");
    }

    #[test]
    #[ignore = "needs a real server: servers/run with sftp hdfs -- cargo test -- --ignored real::"]
    fn what_stands_in_the_way_is_told_and_nothing_is_touched() {
        let Some(site) = Site::build("refused") else { return };
        let target = format!("{}/target.json", site.uri);
        site.write_project("0 0 0 * * ?", "/nothing");

        let deploy = site.words("deploy", &target, "/private/app");
        let told = said(site.command(&deploy).env("HADOOP_USER_NAME", "nobody"), 1);
        assert!(told.contains("permission denied"), "{told}");
        assert!(told.contains("/private/app"), "{told}");
        assert_eq!(site.scripts(), Vec::<String>::new());

        let deploy = site.words("deploy", &target, "/tmp/kelos-refused");
        let told = said(site.command(&deploy).env("KELOS_SSH_KNOWN_HOSTS", "/dev/null"), 1);
        assert!(told.contains("error: failed to log in to sftp://"), "{told}");
        assert!(told.contains("its host key is not known: "), "{told}");
        assert!(told.contains("then: ssh-keyscan -p "), "{told}");
        let wrong = std::env::var("KELOS_TEST_SFTP_WRONG_KEY").expect("a wrong key");
        let told = said(site.command(&deploy).env("KELOS_SSH_KEY", &wrong), 1);
        assert!(told.contains(&format!("the server refused the key {wrong}")), "{told}");
        assert_eq!(site.scripts(), Vec::<String>::new());

        let missing = format!("{}/nothing.json", site.uri);
        let told = said(&mut site.command(&site.words("deploy", &missing, "/x")), 1);
        assert!(told.contains("failed to find the target file sftp://"), "{told}");
    }
}
