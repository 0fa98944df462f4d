//! The contract of a log on a real object store, and its faults.

mod real {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::{SystemTime, UNIX_EPOCH};

    use kelos_storage::{S3Keys, S3Settings, Secret, StorageConfig};
    use kelos_store::log::{Holder, LeaseRecord, Log, LogEnds, LogError, LogStore};
    use kelos_store::suite::{log_faults, log_suite};
    use kelos_store_objects::ObjectLog;
    use kelos_test_servers::{address, crash, up};

    /// The endpoint and a bucket.
    fn server() -> Option<(String, String)> {
        Some((address("KELOS_TEST_S3")?, address("KELOS_TEST_S3_BUCKET")?))
    }

    fn settings(endpoint: &str) -> StorageConfig {
        let keys = S3Keys { id: "kelos".to_owned(), secret: Secret("secret".to_owned()) };
        let s3 = S3Settings { endpoint: Some(endpoint.to_owned()), keys: Some(keys), ..S3Settings::default() };
        StorageConfig { s3, ..StorageConfig::default() }
    }

    /// A folder that no test had.
    fn folder() -> String {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros();
        format!("logs/t{now}.{}", NEXT.fetch_add(1, Ordering::Relaxed))
    }

    fn log(endpoint: &str, bucket: &str) -> ObjectLog {
        ObjectLog::of(&format!("s3://{bucket}/{}", folder())).unwrap().with_storage(settings(endpoint))
    }

    #[track_caller]
    fn take(log: &mut dyn Log) -> LeaseRecord {
        let seen = log.lease().unwrap();
        log.take(&seen, 7, &Holder::default()).unwrap().expect("nothing has changed")
    }

    #[test]
    #[ignore = "needs a real server: servers/run with s3 -- cargo test -- --ignored real::"]
    fn it_keeps_the_contract_of_logs() {
        let Some((endpoint, bucket)) = server() else { return };
        log_suite(&mut || Box::new(log(&endpoint, &bucket)));
    }

    #[test]
    #[ignore = "needs a real server: servers/run with s3 -- cargo test -- --ignored real::"]
    fn a_connection_that_breaks_loses_nothing() {
        let Some((endpoint, bucket)) = server() else { return };
        let run = folder();
        log_faults(endpoint.strip_prefix("http://").unwrap(), &|number, at| {
            let log = ObjectLog::of(&format!("s3://{bucket}/{run}/{number}")).unwrap();
            Box::new(log.with_storage(settings(&format!("http://{at}"))))
        });
    }

    /// The objects of this server are in its memory: what is tested is the client.
    #[test]
    #[ignore = "needs a real server: servers/run with s3 -- cargo test -- --ignored real::"]
    fn a_server_that_is_away_is_told_and_comes_back() {
        let Some((endpoint, bucket)) = server() else { return };
        let mut leader = log(&endpoint, &bucket).open().unwrap();
        let held = take(&mut *leader);
        leader.append(held.epoch, 1, b"entry").unwrap();
        crash("s3");
        // The lease is read before: it is certain that nothing was written.
        let failed = leader.append(held.epoch, 2, b"entry");
        assert!(matches!(failed, Err(LogError::Medium { .. })), "{failed:?}");
        up("s3");
        let gone = leader.append(held.epoch, 2, b"entry");
        assert!(matches!(gone, Err(LogError::Corrupt { .. })), "{gone:?}");
        let mut leader = log(&endpoint, &bucket).open().unwrap();
        let held = take(&mut *leader);
        leader.append(held.epoch, 1, b"entry").unwrap();
    }

    /// A leader that slept finds its number taken, although the entry is trimmed.
    #[test]
    #[ignore = "needs a real server: servers/run with s3 -- cargo test -- --ignored real::"]
    fn a_trimmed_entry_is_not_written_again() {
        let Some((endpoint, bucket)) = server() else { return };
        let store = log(&endpoint, &bucket);
        let (mut leader, mut other) = (store.open().unwrap(), store.open().unwrap());
        let held = take(&mut *leader);
        leader.append(held.epoch, 1, b"one").unwrap();
        for position in 2..=5 {
            other.append(held.epoch, position, b"other").unwrap();
        }
        other.put_snapshot(5, &mut &b"state"[..]).unwrap();
        other.trim(6).unwrap();
        let refused = leader.append(held.epoch, 2, b"two");
        assert_eq!(refused, Err(LogError::NotNext { position: 2, last: 5 }));
        assert_eq!(other.ends().unwrap(), LogEnds { first: 6, last: 5 });
    }

    /// A program with a runtime of its own opens a log from within it.
    #[test]
    #[ignore = "needs a real server: servers/run with s3 -- cargo test -- --ignored real::"]
    fn it_is_used_within_another_runtime() {
        let Some((endpoint, bucket)) = server() else { return };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let mut leader = log(&endpoint, &bucket).open().unwrap();
            let held = take(&mut *leader);
            leader.append(held.epoch, 1, b"entry").unwrap();
            assert_eq!(leader.read(0, 9).unwrap().len(), 1);
        });
    }

    #[test]
    #[ignore = "needs a real server: servers/run with s3 -- cargo test -- --ignored real::"]
    fn what_can_not_be_used_says_why() {
        let Some((endpoint, bucket)) = server() else { return };
        let opened = |bucket: &str, endpoint: &str| {
            let log = ObjectLog::of(&format!("s3://{bucket}/kelos")).unwrap().with_storage(settings(endpoint));
            let error = log.open().err().expect("it can't be used").to_string();
            assert!(!error.contains("secret"), "{error}");
            error
        };
        insta::assert_snapshot!(
            [opened("no-such-bucket-here", &endpoint), opened(&bucket, "http://127.0.0.1:1")].join("\n"),
            @r#"
        open the log: s3://no-such-bucket-here/kelos can't be used: failed to write s3://no-such-bucket-here/kelos/check: there is no such bucket
        open the log: s3://kelos-test/kelos can't be used: failed to reach s3://kelos-test: connection refused
        "#
        );
    }
}
