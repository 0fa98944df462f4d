//! A log on PostgreSQL whose primary dies, and whose standby is promoted with all that was acknowledged, or without its end.

mod real {
    use std::process::Command;

    use crate::support::nodes::Nodes;
    use crate::support::stores::Store;
    use crate::support::{Folder, eventually};

    const SERVER: &str = "postgres-pair";

    /// Two nodes over a primary and its standby, one of which leads. A fresh pair for each test: a promotion can't be undone.
    fn nodes() -> Option<(Nodes, usize)> {
        let store = Store::postgres_pair()?;
        kelos_test_servers::crash(SERVER);
        kelos_test_servers::up(SERVER);
        let mut nodes = Nodes::through(Folder::with(&[]), &store, &vec![store.at.clone(); 2]);
        nodes.all.iter_mut().for_each(|node| node.start());
        let leader = nodes.led();
        Some((nodes, leader))
    }

    /// The answer of one of the two servers.
    #[track_caller]
    fn sql(role: &str, statement: &str) -> String {
        let server =
            kelos_test_servers::address("KELOS_TEST_POSTGRES_PAIR_SERVER").expect("it is set with the address");
        let answer = Command::new(server).args(["sql", role, statement]).output().expect("an answer");
        assert!(answer.status.success(), "{}", String::from_utf8_lossy(&answer.stderr));
        String::from_utf8_lossy(&answer.stdout).trim().to_owned()
    }

    #[track_caller]
    fn set(role: &str, setting: &str) {
        sql(role, &format!("ALTER SYSTEM SET {setting}"));
        sql(role, "SELECT pg_reload_conf()");
    }

    #[track_caller]
    fn put(nodes: &Nodes, node: usize, key: &str, value: u64) {
        eventually("it is written", || nodes.all[node].put(key, value).filter(|answer| answer.status == 200));
    }

    fn promote() {
        kelos_test_servers::crash(SERVER);
        assert_eq!(sql("standby", "SELECT pg_promote()"), "t");
    }

    #[test]
    #[ignore = "needs a real server: servers/run with postgres-pair -- cargo test -- --ignored real::"]
    fn a_synchronous_standby_that_is_promoted_has_everything() {
        let Some((nodes, leader)) = nodes() else { return };
        set("primary", "synchronous_standby_names = '*'");
        let key = |number: u64| format!("key{number}");
        for number in 0..40 {
            put(&nodes, (leader + 1) % 2, &key(number), number);
        }
        promote();
        put(&nodes, leader, "after", 1);
        for node in [0, 1] {
            for number in 0..40 {
                assert_eq!(nodes.all[node].register(&key(number)), Some(number), "{number} at {node}");
            }
            eventually("it follows", || (nodes.all[node].register("after") == Some(1)).then_some(()));
        }
    }

    #[test]
    #[ignore = "needs a real server: servers/run with postgres-pair -- cargo test -- --ignored real::"]
    fn the_end_that_a_promoted_standby_lacks_is_put_back_by_a_node() {
        let Some((mut nodes, leader)) = nodes() else { return };
        put(&nodes, leader, "early", 1);
        let behind = "SELECT count(*) FROM pg_stat_replication WHERE replay_lsn < pg_current_wal_lsn()";
        eventually("the standby has it", || (sql("primary", behind) == "0").then_some(()));
        set("standby", "primary_conninfo = ''");
        eventually("it is cut off", || {
            (sql("primary", "SELECT count(*) FROM pg_stat_replication") == "0").then_some(())
        });
        put(&nodes, leader, "late", 2);
        promote();
        // It must not go on with less, whichever node is asked.
        for node in [leader, 1 - leader] {
            assert_ne!(nodes.all[node].put("wrong", 1).map(|answer| answer.status), Some(200));
        }
        for node in [0, 1] {
            eventually("it says so", || {
                let health = nodes.all[node].get("/api/v1/health")?.body.to_string();
                health.contains("which the log, whose last entry is").then_some(())
            });
        }
        nodes.all.iter_mut().for_each(|node| node.stop());
        let found = nodes.all[leader].recover(&[]);
        assert_eq!(found.code, 1, "{}{}", found.out, found.err);
        nodes.all[leader].recover(&["--append-tail"]).ok();
        nodes.all.iter_mut().for_each(|node| node.start());
        put(&nodes, 0, "after", 3);
        for (key, value) in [("early", Some(1)), ("late", Some(2)), ("after", Some(3)), ("wrong", None)] {
            assert_eq!(nodes.all[0].register(key), value, "{key}");
        }
    }
}
