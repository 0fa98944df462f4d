//! The contract of a log on a real ZooKeeper, and its faults.

mod real {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

    use kelos_store::log::{Holder, LeaseRecord, Log, LogError, LogStore};
    use kelos_store::suite::{log_faults, log_suite, log_survives_a_crash, log_tells_of_releases};
    use kelos_store_zookeeper::ZooKeeperLog;
    use kelos_test_servers::{address, crash, up};
    use kelos_tls::{Trust, TrustSettings};
    use kelos_zookeeper::{Access, Session, Write};

    /// A path that no test had.
    fn path() -> String {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros();
        format!("logs/t{now}.{}", NEXT.fetch_add(1, Ordering::Relaxed))
    }

    fn log(hosts: &str) -> ZooKeeperLog {
        ZooKeeperLog::of(&format!("zookeeper://{hosts}/{}", path())).unwrap()
    }

    /// The server, without the logs of earlier tests: it has all nodes in memory.
    fn hosts() -> Option<String> {
        let hosts = address("KELOS_TEST_ZOOKEEPER")?;
        let (access, _) = Access::read(&format!("kelos:secret@{hosts}"), None).unwrap();
        let mut session = Session::open(&access, 0).unwrap();
        erase(&mut session, "/logs");
        erase(&mut session, "/closed");
        Some(hosts)
    }

    fn erase(session: &mut Session, path: &str) {
        for child in session.children(path).unwrap().unwrap_or_default() {
            erase(session, &format!("{path}/{child}"));
        }
        let _ = session.write(&[Write::Delete { path }]).unwrap();
    }

    #[track_caller]
    fn take(log: &mut dyn Log) -> LeaseRecord {
        let seen = log.lease().unwrap();
        log.take(&seen, 7, &Holder::default()).unwrap().expect("nothing has changed")
    }

    #[test]
    #[ignore = "needs a real server: servers/run with zookeeper -- cargo test -- --ignored real::"]
    fn it_keeps_the_contract_of_logs() {
        let Some(hosts) = hosts() else { return };
        log_suite(&mut || Box::new(log(&hosts)));
    }

    #[test]
    #[ignore = "needs a real server: servers/run with zookeeper -- cargo test -- --ignored real::"]
    fn it_keeps_the_contract_with_tls_and_a_user() {
        let (Some(_), Some(hosts)) = (hosts(), address("KELOS_TEST_ZOOKEEPER_TLS")) else { return };
        let ca = std::env::var_os("KELOS_TEST_ZOOKEEPER_CA").expect("it is set with the address");
        let trust = Trust::new(TrustSettings { authorities: vec![ca.into()], ..TrustSettings::default() }).unwrap();
        log_suite(&mut || {
            let log = ZooKeeperLog::of(&format!("zookeepers://kelos:secret@{hosts}/closed/{}", path())).unwrap();
            Box::new(log.with_trust(trust.clone()))
        });
    }

    #[test]
    #[ignore = "needs a real server: servers/run with zookeeper -- cargo test -- --ignored real::"]
    fn a_connection_that_breaks_loses_nothing() {
        let Some(hosts) = hosts() else { return };
        let run = path();
        log_faults(&hosts, &|number, at| {
            Box::new(ZooKeeperLog::of(&format!("zookeeper://{at}/{run}/{number}")).unwrap())
        });
    }

    #[test]
    #[ignore = "needs a real server: servers/run with zookeeper -- cargo test -- --ignored real::"]
    fn a_server_that_is_killed_loses_nothing() {
        let Some(hosts) = hosts() else { return };
        let store = log(&hosts);
        log_survives_a_crash(&store, &mut || crash("zookeeper"), &mut || up("zookeeper"));
    }

    #[test]
    #[ignore = "needs a real server: servers/run with zookeeper -- cargo test -- --ignored real::"]
    fn a_lease_that_is_given_back_wakes_those_who_wait() {
        let Some(hosts) = hosts() else { return };
        log_tells_of_releases(&log(&hosts));
    }

    /// A wait ends before the interval in which the node would be read again without a notice.
    #[test]
    #[ignore = "needs a real server: servers/run with zookeeper -- cargo test -- --ignored real::"]
    fn an_entry_wakes_those_who_wait() {
        let Some(hosts) = hosts() else { return };
        let store = log(&hosts);
        let (mut leader, mut follower) = (store.open().unwrap(), store.open().unwrap());
        let held = take(&mut *leader);
        let mut delays = Vec::new();
        for position in 1..=5 {
            let waiting = std::thread::spawn(move || {
                follower.wait(position - 1, Duration::from_secs(30)).unwrap();
                (Instant::now(), follower)
            });
            leader.append(held.epoch, position, b"entry").unwrap();
            let appended = Instant::now();
            let (woken, back) = waiting.join().unwrap();
            follower = back;
            delays.push(woken.saturating_duration_since(appended));
        }
        delays.sort();
        assert!(delays[2] < Duration::from_secs(1), "{delays:?}");
    }

    /// Pieces of an entry that was never appended are nothing, and are deleted with the entries around it.
    #[test]
    #[ignore = "needs a real server: servers/run with zookeeper -- cargo test -- --ignored real::"]
    fn what_is_left_over_is_swept() {
        let Some(hosts) = hosts() else { return };
        let at = path();
        let store = ZooKeeperLog::of(&format!("zookeeper://{hosts}/{at}")).unwrap();
        let (mut leader, mut other) = (store.open().unwrap(), store.open().unwrap());
        let held = take(&mut *leader);
        let large = vec![7; 2_000_000];
        leader.append(held.epoch, 1, &large).unwrap();
        // The one that is deposed meanwhile has written its pieces already.
        leader.append(held.epoch, 2, b"two").unwrap();
        let lease = take(&mut *other);
        let refused = leader.append(held.epoch, 3, &large);
        assert_eq!(refused, Err(LogError::Deposed { held: held.epoch, current: lease.epoch }));
        other.append(lease.epoch, 3, &large).unwrap();
        let (access, _) = Access::read(&hosts, None).unwrap();
        let mut session = Session::open(&access, 0).unwrap();
        let mut count = |name: &str| session.children(&format!("/{at}/{name}")).unwrap().unwrap().len();
        assert_eq!((count("entries"), count("pieces")), (3, 9));
        other.put_snapshot(3, &mut &vec![1; 1_500_000][..]).unwrap();
        other.put_snapshot(3, &mut &b"small"[..]).unwrap();
        other.trim(4).unwrap();
        assert_eq!((count("entries"), count("pieces"), count("parts")), (0, 0, 1));
        let mut all = vec![0; 9 << 20];
        all[0] = 1;
        insta::assert_snapshot!(other.put_snapshot(3, &mut &all[..]).unwrap_err(), @r#"store the snapshot at entry 3: it has more than 8 MB, which is too much for ZooKeeper; keep snapshots on a storage URL with --snapshots URL"#);
        let mut read = Vec::new();
        leader.read_snapshot(3, &mut read).unwrap();
        assert_eq!(read, b"small");
    }

    #[test]
    #[ignore = "needs a real server: servers/run with zookeeper -- cargo test -- --ignored real::"]
    fn what_can_not_be_used_says_why_without_the_password() {
        let Some(hosts) = hosts() else { return };
        let tls = address("KELOS_TEST_ZOOKEEPER_TLS").unwrap();
        let own = format!("closed/{}", path());
        ZooKeeperLog::of(&format!("zookeeper://kelos:secret@{hosts}/{own}")).unwrap().open().unwrap();
        let opened = |url: &str| {
            let error = ZooKeeperLog::of(url).unwrap().open().err().expect("it can't be used").to_string();
            assert!(!error.contains("secret"), "{error}");
            let error = [&hosts, &tls].iter().fold(error, |error, hosts| error.replace(*hosts, "HOST:PORT"));
            let error = error.replace(&own, "PATH");
            error.split_once("sha256:").map_or(error.clone(), |(before, after)| format!("{before}PIN{}", &after[64..]))
        };
        insta::assert_snapshot!(
            [
                opened(&format!("zookeeper://other:secret@{hosts}/{own}")),
                opened(&format!("zookeeper://{hosts}/{own}")),
                opened("zookeeper://u:secret@127.0.0.1:1,127.0.0.1:2/kelos"),
                opened(&format!("zookeepers://{tls}")),
            ]
            .join("\n"),
            @r#"
        open the log: zookeeper://other@HOST:PORT/PATH can't be used: /PATH/last: it may only be used by others: name a user and its password in the address
        open the log: zookeeper://HOST:PORT/PATH can't be used: /PATH/last: it may only be used by others: name a user and its password in the address
        open the log: zookeeper://u@127.0.0.1:1,127.0.0.1:2/kelos can't be used: 127.0.0.1:1: Connection refused (os error 111), 127.0.0.1:2: Connection refused (os error 111)
        open the log: zookeepers://HOST:PORT can't be used: HOST:PORT: its certificate is that of an authority, as self-signed ones mostly are, and is not trusted here; trust its authority with --ca FILE, KELOS_CA or "tls" in the file of --config, or pin the certificate, once you know that PIN is its own
        "#
        );
    }
}
