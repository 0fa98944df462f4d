//! The contract of a log on a real PostgreSQL, its faults, and the order of takings and appends.

mod real {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::{Duration, SystemTime, UNIX_EPOCH};

    use kelos_store::log::{Holder, InboxRequest, LeaseRecord, Log, LogError, LogStore};
    use kelos_store::suite::{log_faults, log_suite, log_survives_a_crash, log_tells_of_releases};
    use kelos_store_postgres::PostgresLog;
    use kelos_test_servers::{address, crash, up};
    use kelos_tls::{Trust, TrustSettings};
    use tokio_postgres::{Client, NoTls};

    /// The address with the password of the user, and without.
    fn server() -> Option<(String, String)> {
        let url = address("KELOS_TEST_POSTGRES")?;
        let file = std::env::var_os("KELOS_TEST_POSTGRES_PASSWORD_FILE").expect("it is set with the address");
        let password = std::fs::read_to_string(file).unwrap();
        let with_password = url.replace("kelos@", &format!("kelos:{}@", password.trim()));
        Some((with_password, url))
    }

    /// The name of a schema that no test had.
    fn schema() -> String {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros();
        format!("t{now}_{}", NEXT.fetch_add(1, Ordering::Relaxed))
    }

    fn log(url: &str) -> PostgresLog {
        PostgresLog::of(&format!("{url}?schema={}", schema())).unwrap()
    }

    fn holder(node: &str) -> Holder {
        Holder { node: node.to_owned(), ..Holder::default() }
    }

    #[track_caller]
    fn take(log: &mut dyn Log, node: &str) -> LeaseRecord {
        let seen = log.lease().unwrap();
        log.take(&seen, 7, &holder(node)).unwrap().expect("nothing has changed")
    }

    #[test]
    #[ignore = "needs a real server: servers/run with postgres -- cargo test -- --ignored real::"]
    fn it_keeps_the_contract_of_logs() {
        let Some((url, _)) = server() else { return };
        log_suite(&mut || Box::new(log(&url)));
    }

    #[test]
    #[ignore = "needs a real server: servers/run with postgres -- cargo test -- --ignored real::"]
    fn it_keeps_the_contract_without_notices_and_with_tls() {
        let Some((url, _)) = server() else { return };
        let ca = std::env::var_os("KELOS_TEST_POSTGRES_CA").expect("it is set with the address");
        let trust = Trust::new(TrustSettings { authorities: vec![ca.into()], ..TrustSettings::default() }).unwrap();
        let url = url.replace("127.0.0.1", "localhost");
        log_suite(&mut || {
            let url = format!("{url}?schema={}&notify=off&sslmode=verify-full", schema());
            Box::new(PostgresLog::of(&url).unwrap().with_trust(trust.clone()))
        });
    }

    #[test]
    #[ignore = "needs a real server: servers/run with postgres -- cargo test -- --ignored real::"]
    fn a_connection_that_breaks_loses_nothing() {
        let Some((url, _)) = server() else { return };
        let target = url.rsplit_once('@').unwrap().1.split('/').next().unwrap();
        let run = schema();
        log_faults(target, &|number, at| {
            // The connection breaks, not the disk, which need not be waited for at each of a thousand commits.
            let relaxed = "options=-c%20synchronous_commit%3Doff&durability=relaxed";
            let url = format!("{}?schema={run}_{number}&{relaxed}", url.replace(target, at));
            Box::new(PostgresLog::of(&url).unwrap())
        });
    }

    /// A taking waits for an append in flight, and an append that waits for a taking finds the new epoch.
    #[test]
    #[ignore = "needs a real server: servers/run with postgres -- cargo test -- --ignored real::"]
    fn takings_and_appends_wait_for_each_other() {
        let Some((url, _)) = server() else { return };
        let schema = schema();
        let store = PostgresLog::of(&format!("{url}?schema={schema}")).unwrap();
        let (mut leader, mut other) = (store.open().unwrap(), store.open().unwrap());
        let held = take(&mut *leader, "leader");
        // Within a transaction the activity of others stands still.
        let (client, watch) = (Sql::connect(&url), Sql::connect(&url));
        // The entry is inserted by hand in a transaction that stays open, as the adapter does it in one that ends by itself.
        client.run(&format!(
            "BEGIN; SELECT 1 FROM {schema}.log FOR SHARE; INSERT INTO {schema}.entries VALUES (1, {}, 'one')",
            held.epoch
        ));
        let taking = std::thread::spawn(move || {
            let lease = take(&mut *other, "other");
            (other, lease)
        });
        watch.until_somebody_waits(&format!("UPDATE {schema}.log"));
        assert!(!taking.is_finished());
        client.run("COMMIT");
        let (mut other, lease) = taking.join().unwrap();
        assert_eq!(lease.epoch, held.epoch + 1);
        assert_eq!(other.read(0, 9).unwrap().len(), 1);
        assert_eq!(
            leader.append(held.epoch, 2, b"two"),
            Err(LogError::Deposed { held: held.epoch, current: lease.epoch })
        );
        // The other way round.
        client.run(&format!("BEGIN; UPDATE {schema}.log SET epoch = epoch + 1, nonce = 9"));
        let appending = std::thread::spawn(move || other.append(lease.epoch, 2, b"two"));
        watch.until_somebody_waits("WITH held AS");
        assert!(!appending.is_finished());
        client.run("COMMIT");
        let refused = appending.join().unwrap();
        assert_eq!(refused, Err(LogError::Deposed { held: lease.epoch, current: lease.epoch + 1 }));
        assert_eq!(leader.ends().unwrap().last, 1);
    }

    /// An append that has to wait too long was not done, and the server says so.
    #[test]
    #[ignore = "needs a real server: servers/run with postgres -- cargo test -- --ignored real::"]
    fn an_append_that_waits_too_long_is_not_done() {
        let Some((url, _)) = server() else { return };
        let schema = schema();
        let mut leader = PostgresLog::of(&format!("{url}?schema={schema}")).unwrap().open().unwrap();
        let held = take(&mut *leader, "leader");
        let client = Sql::connect(&url);
        client.run(&format!("BEGIN; SELECT 1 FROM {schema}.log FOR UPDATE"));
        let refused = leader.append(held.epoch, 1, b"one");
        assert!(matches!(&refused, Err(LogError::Medium { cause, .. }) if cause.contains("timeout")), "{refused:?}");
        client.run("COMMIT");
        leader.append(held.epoch, 1, b"one").unwrap();
    }

    #[test]
    #[ignore = "needs a real server: servers/run with postgres -- cargo test -- --ignored real::"]
    fn a_server_that_is_killed_loses_nothing() {
        let Some((url, _)) = server() else { return };
        let store = log(&url);
        log_survives_a_crash(&store, &mut || crash("postgres"), &mut || up("postgres"));
    }

    #[test]
    #[ignore = "needs a real server: servers/run with postgres -- cargo test -- --ignored real::"]
    fn a_lease_that_is_given_back_wakes_those_who_wait() {
        let Some((url, _)) = server() else { return };
        log_tells_of_releases(&log(&url));
    }

    #[test]
    #[ignore = "needs a real server: servers/run with postgres -- cargo test -- --ignored real::"]
    fn an_entry_wakes_those_who_wait() {
        let Some((url, _)) = server() else { return };
        let store = log(&url);
        let (mut leader, mut follower) = (store.open().unwrap(), store.open().unwrap());
        let held = take(&mut *leader, "leader");
        let mut delays = Vec::new();
        for position in 1..=5 {
            let waiting = std::thread::spawn(move || {
                follower.wait(position - 1, Duration::from_secs(30)).unwrap();
                (std::time::Instant::now(), follower)
            });
            let watch = Sql::connect(&url);
            watch.until_somebody("wait_event = 'ClientRead' AND query LIKE '%max(position)%' OR query LIKE 'LISTEN%'");
            leader.append(held.epoch, position, b"entry").unwrap();
            let appended = std::time::Instant::now();
            let (woken, back) = waiting.join().unwrap();
            follower = back;
            delays.push(woken.saturating_duration_since(appended));
        }
        // A poll alone would take half a second on average.
        delays.sort();
        assert!(delays[2] < Duration::from_millis(300), "{delays:?}");
    }

    #[test]
    #[ignore = "needs a real server: servers/run with postgres -- cargo test -- --ignored real::"]
    fn what_can_not_be_used_says_why_without_the_password() {
        let Some((url, without)) = server() else { return };
        let port = without.rsplit_once(':').unwrap().1.split('/').next().unwrap();
        let sql = Sql::connect(&url);
        let newer = schema();
        sql.run(&format!("CREATE SCHEMA {newer}; CREATE TABLE {newer}.log AS SELECT 9 AS form"));
        let opened = |url: &str| {
            let error = PostgresLog::of(url).unwrap().open().err().expect("it can't be used").to_string();
            assert!(!error.contains("secret"), "{error}");
            let error = error.replace(port, "PORT").replace(&newer, "SCHEMA");
            error.split_once("sha256:").map_or(error.clone(), |(before, after)| format!("{before}PIN{}", &after[64..]))
        };
        let wrong = without.replace("kelos@", "kelos:other-secret@");
        insta::assert_snapshot!(
            [
                opened(&wrong),
                opened(&without),
                opened(&format!("{}/nothing", url.rsplit_once('/').unwrap().0)),
                opened(&url.replace(port, "1")),
                opened(&format!("{url}?sslmode=require")),
                opened(&format!("{url}?options=-c%20synchronous_commit%3Doff")),
                opened(&format!("{url}?schema={newer}")),
            ]
            .join("\n"),
            @r#"
        open the log: postgres://kelos@127.0.0.1:PORT/kelos can't be used: password authentication failed for user "kelos"
        open the log: postgres://kelos@127.0.0.1:PORT/kelos can't be used: invalid configuration: password missing
        open the log: postgres://kelos@127.0.0.1:PORT/nothing can't be used: database "nothing" does not exist
        open the log: postgres://kelos@127.0.0.1:1/kelos can't be used: error connecting to server: Connection refused (os error 111)
        open the log: postgres://kelos@127.0.0.1:PORT/kelos can't be used: its certificate is that of an authority, as self-signed ones mostly are, and is not trusted here; trust its authority with --ca FILE, KELOS_CA or "tls" in the file of --config, or pin the certificate, once you know that PIN is its own; sslmode=disable in the address does without TLS
        open the log: postgres://kelos@127.0.0.1:PORT/kelos can't be used: synchronous_commit of this server is off: a crash loses entries that it acknowledged; switch it on, or accept that with durability=relaxed in the address
        open the log: postgres://kelos@127.0.0.1:PORT/kelos?schema=SCHEMA can't be used: its tables have form 9, and this program knows form 1: use a newer one
        "#
        );
        let relaxed = format!("{url}?options=-c%20synchronous_commit%3Doff&durability=relaxed&schema={}", schema());
        assert!(PostgresLog::of(&relaxed).unwrap().open().is_ok());
    }

    /// A program with a runtime of its own opens a log from within it.
    #[test]
    #[ignore = "needs a real server: servers/run with postgres -- cargo test -- --ignored real::"]
    fn it_is_used_within_another_runtime() {
        let Some((url, _)) = server() else { return };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let mut leader = log(&url).open().unwrap();
            let held = take(&mut *leader, "leader");
            leader.append(held.epoch, 1, b"entry").unwrap();
            assert_eq!(leader.read(0, 9).unwrap().len(), 1);
        });
    }

    /// Of several hosts the one is used that answers.
    #[test]
    #[ignore = "needs a real server: servers/run with postgres -- cargo test -- --ignored real::"]
    fn the_host_that_answers_is_used() {
        let Some((url, _)) = server() else { return };
        let both = url.replace("@127.0.0.1", "@127.0.0.1:1,127.0.0.1");
        assert!(log(&both).open().unwrap().lease().is_ok());
    }

    /// Requests are those of committed transactions, also of one that commits late, and wake the one who waits.
    #[test]
    #[ignore = "needs a real server: servers/run with postgres -- cargo test -- --ignored real::"]
    fn requests_are_there_with_the_commit_of_their_user() {
        let Some((url, _)) = server() else { return };
        let schema = schema();
        let store = PostgresLog::of(&format!("{url}?schema={schema}")).unwrap();
        let mut leader = store.open().unwrap();
        let held = take(&mut *leader, "leader");
        let mut inbox = store.inbox().unwrap().expect("it has one");
        // A second opening, as by another node, changes nothing.
        drop(store.inbox().unwrap());
        let (early, late) = (Sql::connect(&url), Sql::connect(&url));
        early.run(&format!("BEGIN; SELECT {schema}.start('buy', key => 'order-1', arguments => '{{\"amount\": 3}}')"));
        late.run(&format!("SELECT {schema}.start('buy', 'order-2', priority => 5, reason => 'a test')"));
        late.run(&format!("BEGIN; SELECT {schema}.start('buy', 'order-3'); ROLLBACK"));
        let found = inbox.requests(10).unwrap();
        let [request] = &found[..] else { panic!("expected one, not {found:?}") };
        let InboxRequest { number, user, workflow, key, arguments, priority, reason } = request.clone();
        assert_eq!((user.as_str(), workflow.as_str(), key.as_str(), priority), ("kelos", "buy", "order-2", 5));
        assert_eq!((arguments.as_deref(), reason.as_deref()), (Some("{}"), Some("a test")));
        inbox.finish(&[number]).unwrap();
        let waiting = std::thread::spawn(move || {
            let began = std::time::Instant::now();
            while inbox.requests(10).unwrap().is_empty() {
                assert!(began.elapsed() < Duration::from_secs(30), "a request that was committed late is never found");
                inbox.wait(Duration::from_secs(1)).unwrap();
            }
            inbox
        });
        early.run("COMMIT");
        let mut inbox = waiting.join().unwrap();
        let found = inbox.requests(10).unwrap();
        assert_eq!((found[0].number, found[0].key.as_str()), (1, "order-1"));
        assert_eq!(found[0].arguments.as_deref(), Some(r#"{"amount": 3}"#));
        // A former leader may be wrong about a request.
        inbox.set_aside(held.epoch + 1, 1, "there is no buy").unwrap();
        assert_eq!(inbox.refused(10).unwrap(), []);
        inbox.set_aside(held.epoch, 1, "there is no buy").unwrap();
        assert_eq!(inbox.refused(10).unwrap()[0].problem, "there is no buy");
        assert_eq!(inbox.requests(10).unwrap(), []);
        early.run(&format!("UPDATE {schema}.inbox SET problem = NULL WHERE id = 1"));
        assert_eq!(inbox.requests(10).unwrap().len(), 1);
        inbox.finish(&[1]).unwrap();
        // Arguments that are too large are set aside where they are written. A run without a key has a name all the same.
        early.run(&format!("SELECT {schema}.start('buy', 'large', jsonb_build_object('a', repeat('x', 300000)))"));
        assert_eq!(inbox.refused(10).unwrap()[0].problem, "the arguments have 300009 bytes, expected at most 65536");
        early.run(&format!("SELECT {schema}.start(NULL, NULL, NULL, NULL)"));
        let found = inbox.requests(10).unwrap();
        assert_eq!((found[0].workflow.as_str(), found[0].arguments.as_deref()), ("", Some("{}")));
        assert!(found[0].key.starts_with("sql-20"), "{}", found[0].key);
    }

    /// A user who may call the function needs no other right, and has none without it.
    #[test]
    #[ignore = "needs a real server: servers/run with postgres -- cargo test -- --ignored real::"]
    fn a_user_needs_the_right_to_call_the_function_alone() {
        let Some((url, _)) = server() else { return };
        let schema = schema();
        let store = PostgresLog::of(&format!("{url}?schema={schema}")).unwrap();
        drop(store.open().unwrap());
        let mut inbox = store.inbox().unwrap().expect("it has one");
        let (owner, shop) = (Sql::connect(&url), Sql::connect(&url.replace("//kelos:", "//shop:")));
        let start = format!("SELECT {schema}.start('buy', 'order-1')");
        let refused = |sql: &Sql| {
            let error = sql.0.block_on(sql.1.batch_execute(&start)).unwrap_err();
            error.as_db_error().unwrap().message().to_owned()
        };
        owner.run(&format!("GRANT USAGE ON SCHEMA {schema} TO shop"));
        assert_eq!(refused(&shop), "permission denied for function start");
        owner.run(&format!("GRANT EXECUTE ON FUNCTION {schema}.start TO shop"));
        shop.run(&start);
        assert_eq!(inbox.requests(10).unwrap()[0].user, "shop");
        let others = shop.0.block_on(shop.1.batch_execute(&format!("SELECT * FROM {schema}.inbox"))).unwrap_err();
        assert_eq!(others.as_db_error().unwrap().message(), "permission denied for table inbox");
    }

    /// A client beside the adapter.
    struct Sql(tokio::runtime::Runtime, Client);

    impl Sql {
        fn connect(url: &str) -> Sql {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
            let (client, connection) = runtime.block_on(tokio_postgres::connect(url, NoTls)).unwrap();
            runtime.spawn(connection);
            Sql(runtime, client)
        }

        fn run(&self, text: &str) {
            self.0.block_on(self.1.batch_execute(text)).unwrap();
        }

        /// Returns once a statement that begins so waits for a lock.
        fn until_somebody_waits(&self, text: &str) {
            self.until_somebody(&format!("wait_event_type = 'Lock' AND query LIKE '{text}%'"));
        }

        fn until_somebody(&self, condition: &str) {
            let text = format!("SELECT count(*) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND ({condition})");
            for _ in 0..2000 {
                let row = self.0.block_on(self.1.query_one(&text, &[])).unwrap();
                if row.get::<_, i64>(0) > 0 {
                    return;
                }
                std::thread::yield_now();
            }
            panic!("nobody: {condition}");
        }
    }
}
