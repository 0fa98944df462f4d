//! The contract of a log on a real Redis, and its faults.

mod real {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

    use kelos_store::log::{Holder, LeaseRecord, Log, LogStore};
    use kelos_store::suite::{log_faults, log_suite, log_survives_a_crash, log_tells_of_releases};
    use kelos_store_redis::RedisLog;
    use kelos_test_servers::{address, crash, up};
    use kelos_tls::{Trust, TrustSettings};

    /// A prefix of keys that no test had.
    fn prefix() -> String {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros();
        format!("t{now}.{}", NEXT.fetch_add(1, Ordering::Relaxed))
    }

    fn log(url: &str) -> RedisLog {
        RedisLog::of(&format!("{url}?prefix={}", prefix())).unwrap()
    }

    #[track_caller]
    fn take(log: &mut dyn Log) -> LeaseRecord {
        let seen = log.lease().unwrap();
        log.take(&seen, 7, &Holder::default()).unwrap().expect("nothing has changed")
    }

    #[test]
    #[ignore = "needs a real server: servers/run with redis -- cargo test -- --ignored real::"]
    fn it_keeps_the_contract_of_logs() {
        let Some(url) = address("KELOS_TEST_REDIS") else { return };
        log_suite(&mut || Box::new(log(&url)));
    }

    #[test]
    #[ignore = "needs a real server: servers/run with redis -- cargo test -- --ignored real::"]
    fn it_keeps_the_contract_with_tls() {
        let Some(url) = address("KELOS_TEST_REDIS_TLS") else { return };
        let ca = std::env::var_os("KELOS_TEST_REDIS_CA").expect("it is set with the address");
        let trust = Trust::new(TrustSettings { authorities: vec![ca.into()], ..TrustSettings::default() }).unwrap();
        let file = std::env::var_os("KELOS_TEST_REDIS_PASSWORD_FILE").expect("it is set with the address");
        let password = std::fs::read_to_string(file).unwrap();
        let url = url.replace("ops@", &format!("ops:{}@", password.trim()));
        log_suite(&mut || Box::new(log(&url).with_trust(trust.clone())));
    }

    #[test]
    #[ignore = "needs a real server: servers/run with redis -- cargo test -- --ignored real::"]
    fn it_keeps_the_contract_of_logs_by_sentinel() {
        let Some(url) = address("KELOS_TEST_REDIS_SENTINEL") else { return };
        log_suite(&mut || Box::new(log(&url)));
    }

    #[test]
    #[ignore = "needs a real server: servers/run with redis -- cargo test -- --ignored real::"]
    fn a_connection_that_breaks_loses_nothing() {
        let Some(url) = address("KELOS_TEST_REDIS") else { return };
        let run = prefix();
        log_faults(url.strip_prefix("redis://").unwrap(), &|number, at| {
            Box::new(RedisLog::of(&format!("redis://{at}?prefix={run}.{number}")).unwrap())
        });
    }

    #[test]
    #[ignore = "needs a real server: servers/run with redis -- cargo test -- --ignored real::"]
    fn a_server_that_is_killed_loses_nothing() {
        let Some(url) = address("KELOS_TEST_REDIS") else { return };
        let store = log(&url);
        log_survives_a_crash(&store, &mut || crash("redis"), &mut || up("redis"));
    }

    #[test]
    #[ignore = "needs a real server: servers/run with redis -- cargo test -- --ignored real::"]
    fn a_lease_that_is_given_back_wakes_those_who_wait() {
        let Some(url) = address("KELOS_TEST_REDIS") else { return };
        log_tells_of_releases(&log(&url));
    }

    #[test]
    #[ignore = "needs a real server: servers/run with redis -- cargo test -- --ignored real::"]
    fn an_entry_wakes_those_who_wait() {
        let Some(url) = address("KELOS_TEST_REDIS") else { return };
        let store = log(&url);
        let (mut leader, mut follower) = (store.open().unwrap(), store.open().unwrap());
        let held = take(&mut *leader);
        let mut watch = redis::Client::open(url.as_str()).unwrap().get_connection().unwrap();
        let mut delays = Vec::new();
        for position in 1..=5 {
            let waiting = std::thread::spawn(move || {
                follower.wait(position - 1, Duration::from_secs(30)).unwrap();
                (Instant::now(), follower)
            });
            while !redis::cmd("INFO").arg("clients").query::<String>(&mut watch).unwrap().contains("blocked_clients:1")
            {
                std::thread::yield_now();
            }
            leader.append(held.epoch, position, b"entry").unwrap();
            let appended = Instant::now();
            let (woken, back) = waiting.join().unwrap();
            follower = back;
            delays.push(woken.saturating_duration_since(appended));
        }
        delays.sort();
        assert!(delays[2] < Duration::from_millis(300), "{delays:?}");
    }

    /// Another value of a setting of the server, for as long as this exists.
    struct Setting(&'static str, &'static str, redis::Connection);

    impl Setting {
        fn new(url: &str, name: &'static str, value: &str, usual: &'static str) -> Setting {
            let connection = redis::Client::open(url).unwrap().get_connection().unwrap();
            let mut setting = Setting(name, usual, connection);
            setting.set(value);
            setting
        }

        fn set(&mut self, value: &str) {
            redis::cmd("CONFIG").arg("SET").arg(self.0).arg(value).exec(&mut self.2).unwrap();
        }
    }

    impl Drop for Setting {
        fn drop(&mut self) {
            self.set(self.1);
        }
    }

    #[test]
    #[ignore = "needs a real server: servers/run with redis -- cargo test -- --ignored real::"]
    fn what_can_not_be_used_says_why_without_the_password() {
        let Some(url) = address("KELOS_TEST_REDIS") else { return };
        let tls = address("KELOS_TEST_REDIS_TLS").unwrap();
        let sentinel = address("KELOS_TEST_REDIS_SENTINEL").unwrap();
        let opened = |url: &str| {
            let error = RedisLog::of(url).unwrap().open().err().expect("it can't be used").to_string();
            assert!(!error.contains("secret"), "{error}");
            // The authorities of this machine may have one of the same name.
            let error = error.replace("BadSignature", "UnknownIssuer");
            let error: Vec<String> = error.split(':').map(port_hidden).collect();
            error.join(":")
        };
        let lossy = {
            let _setting = Setting::new(&url, "appendfsync", "everysec", "always");
            assert!(RedisLog::of(&format!("{url}?durability=relaxed")).unwrap().open().is_ok());
            opened(&url)
        };
        let evicting = {
            let _setting = Setting::new(&url, "maxmemory-policy", "allkeys-lru", "noeviction");
            opened(&url)
        };
        insta::assert_snapshot!(
            [
                opened(&url.replace("//", "//u:secret@")),
                opened(&format!("{url}/77")),
                opened("redis://u:secret@127.0.0.1:1"),
                opened(&tls),
                opened(&sentinel.replace("kelos-test", "other")),
                opened("redis+sentinel://:secret@127.0.0.1:1,127.0.0.1:2/main"),
                lossy,
                evicting,
            ]
            .join("\n"),
            @r#"
        open the log: redis://u@127.0.0.1:N can't be used: Password authentication failed - AuthenticationFailed
        open the log: redis://127.0.0.1:N/77 can't be used: ERR DB index is out of range
        open the log: redis://u@127.0.0.1:1 can't be used: Connection refused (os error 111)
        open the log: rediss://ops@localhost:N can't be used: invalid peer certificate: UnknownIssuer; trust its authority with --ca FILE or KELOS_CA
        open the log: redis+sentinel://127.0.0.1:N/other can't be used: no sentinel tells the primary: 127.0.0.1:N knows no primary "other"
        open the log: redis+sentinel://127.0.0.1:1,127.0.0.1:2/main can't be used: no sentinel tells the primary: 127.0.0.1:1: Connection refused (os error 111), 127.0.0.1:2: Connection refused (os error 111)
        open the log: redis://127.0.0.1:N can't be used: it has appendfsync everysec: a crash of its machine loses up to two seconds; set appendfsync always, or accept that with durability=relaxed in the address
        open the log: redis://127.0.0.1:N can't be used: it has maxmemory-policy allkeys-lru: it deletes the log when its memory is full; set maxmemory-policy noeviction, or accept that with durability=relaxed in the address
        "#
        );
    }

    /// Numbers of ports and fingerprints differ from run to run.
    fn port_hidden(part: &str) -> String {
        let end = part.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(part.len());
        if end > 3 { format!("N{}", &part[end..]) } else { part.to_owned() }
    }

    /// A user who may not read the configuration is believed, and a warning says so.
    #[test]
    #[ignore = "needs a real server: servers/run with redis -- cargo test -- --ignored real::"]
    fn a_server_that_does_not_tell_its_configuration_is_used() {
        let Some(url) = address("KELOS_TEST_REDIS") else { return };
        let mut connection = redis::Client::open(url.as_str()).unwrap().get_connection().unwrap();
        let user = prefix();
        let rights = ["on", ">secret", "~*", "+@all", "-config", "-role"];
        redis::cmd("ACL").arg("SETUSER").arg(&user).arg(&rights).exec(&mut connection).unwrap();
        let mut leader = log(&url.replace("//", &format!("//{user}:secret@"))).open().unwrap();
        let held = take(&mut *leader);
        leader.append(held.epoch, 1, b"entry").unwrap();
        redis::cmd("ACL").arg("DELUSER").arg(&user).exec(&mut connection).unwrap();
    }
}
