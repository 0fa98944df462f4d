//! Apps that are kept in Redis, by the real one.

mod real {
    use std::time::{Duration, Instant};

    use kelos_door_stolos::RedisApps;
    use kelos_sandbox::apps::AppsSource;
    use kelos_sandbox::{Folders, Host, Limits, LoadResult, Scripts};
    use kelos_test_servers::address;
    use redis::{Client, Connection, cmd};

    /// The time within which a change must be noticed.
    const DEADLINE: Duration = Duration::from_secs(60);

    struct Place {
        redis: Connection,
        prefix: String,
        apps: AppsSource,
        scripts: Scripts,
        _folder: tempfile::TempDir,
    }

    impl Place {
        /// None where there is no Redis.
        fn new(test: &str) -> Option<Place> {
            let server = address("KELOS_TEST_REDIS")?;
            let redis = Client::open(server.as_str()).unwrap().get_connection().unwrap();
            let prefix = format!("{test}-{}/", std::process::id());
            let folder = tempfile::tempdir().unwrap();
            let apps =
                RedisApps::new(&format!("{server}/0?prefix={prefix}"), None, &kelos_tls::Trust::default()).unwrap();
            let apps = apps.source(folder.path(), Some("{date}".to_owned())).unwrap();
            let folders = Folders { workflows: folder.path().to_owned(), defaults: folder.path().to_owned() };
            let scripts = Scripts::start(
                folders,
                Limits::default(),
                Host::dry()
                    .with_format(std::sync::Arc::new(kelos_door_stolos::TasksJson))
                    .with_apps(Some(apps.clone())),
            )
            .unwrap();
            Some(Place { redis, prefix, apps, scripts, _folder: folder })
        }

        fn set(&mut self, app: &str, name: &str, value: &str) {
            let key = format!("{}{app}", self.prefix);
            let () = cmd("HSET").arg(key).arg(name).arg(value).query(&mut self.redis).unwrap();
        }

        /// Loads until something is seen.
        fn until(&self, what: &str, holds: impl Fn(&LoadResult) -> bool) -> LoadResult {
            let began = Instant::now();
            loop {
                let loaded = self.scripts.load();
                if holds(&loaded) {
                    return loaded;
                }
                assert!(began.elapsed() < DEADLINE, "waited in vain for {what}: {:?}", loaded.problems);
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }

    fn ids(loaded: &LoadResult) -> Vec<&str> {
        loaded.workflows.iter().map(|one| one.id.as_str()).collect()
    }

    #[test]
    #[ignore = "needs a real server: servers/run with redis -- cargo test -- --ignored real::"]
    fn apps_are_read_and_followed() {
        let Some(mut place) = Place::new("followed") else { return };
        assert!(!place.apps.is_there());
        let () = cmd("CONFIG").arg("SET").arg("notify-keyspace-events").arg("K$h").query(&mut place.redis).unwrap();
        place.set("a", "'bash_cmd'", "'echo {date}'");
        place.set("b", "'bash_cmd'", "u'true'");
        place.set("b", "'depends_on'", "{'app_name': ['a']}");
        let loaded = place.until("both apps", |loaded| ids(loaded) == ["a", "b"]);
        assert_eq!(loaded.problems, []);
        assert_eq!(loaded.workflows[0].job.settings["shell"], "echo {date}");
        place.set("a", "'bash_cmd'", "__import__('os').system('id')");
        let broken = place.until("what is wrong", LoadResult::has_errors);
        assert_eq!(ids(&broken), ["a", "b"]);
        assert!(broken.problems[0].message.ends_with("bash_cmd: expected a value at character 1, not '_'"));
        assert!(broken.problems[0].kept_last_good);
        place.set("a", "'bash_cmd'", "'true'");
        place.until("that it is good again", |loaded| !loaded.has_errors());
    }

    #[test]
    #[ignore = "needs a real server: servers/run with redis -- cargo test -- --ignored real::"]
    fn a_server_that_is_gone_leaves_the_last_good_version() {
        let Some(mut place) = Place::new("gone") else { return };
        place.set("a", "'bash_cmd'", "'true'");
        place.until("the app", |loaded| ids(loaded) == ["a"]);
        kelos_test_servers::crash("redis");
        let gone = place.until("that nobody answers", LoadResult::has_errors);
        assert_eq!(ids(&gone), ["a"]);
        assert!(gone.problems[0].message.contains("can't be read"), "{}", gone.problems[0]);
        kelos_test_servers::up("redis");
        place.until("that it is good again", |loaded| !loaded.has_errors());
    }
}
