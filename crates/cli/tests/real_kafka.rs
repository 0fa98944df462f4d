//! Kafka with a real broker: a flow whose steps send messages and wait for others, and a server that is killed while it reads.

mod support;

mod real {
    use std::collections::BTreeMap;
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    use rusqlite::{Connection, OpenFlags};
    use serde_json::{Value, json};

    use crate::support::{Folder, Server, eventually, kelos};

    /// Orders that are asked for by a message, and approved by one.
    const SCRIPT: &str = r#"
kelos.flow("buy", { concurrency: 1000, steps: {
  check: { shell: 'printf \'{"sum": 12}\' > "$KELOS_OUTPUTS"' },
  ask: { needs: "check", job: kelos.kafkaMessage({ topic: "REQUESTS", key: "${order}", headers: { kind: "request" } }) },
  ok: { needs: "ask", signal: "approval" },
  ship: { needs: "ok", shell: 'echo "$by approved ${message}"' },
}});
program("History", celos.commandExternalService({ command: ["true"] }));
schedule("late", "History").triggerOnPartitions("purchases", 1000000);
"#;

    struct Shop {
        folder: Folder,
        tool: String,
        requests: String,
        approvals: String,
        purchases: String,
    }

    impl Shop {
        fn open(partitions: u32) -> Option<Shop> {
            let broker = kelos_test_servers::address("KELOS_TEST_KAFKA")?;
            let tool = kelos_test_servers::address("KELOS_TEST_KAFKA_TOOL")?;
            let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis();
            let topic = |name: &str| format!("{name}-{since}");
            let (requests, approvals, purchases) = (topic("requests"), topic("approvals"), topic("purchases"));
            let folder = Folder::with(&[("shop.js", &SCRIPT.replace("REQUESTS", &requests))]);
            let config = json!({ "kafka": [{ "name": "main", "brokers": broker, "topics": [
                { "topic": approvals, "signal": "approval", "workflow": "buy" },
                { "topic": purchases, "dataset": "purchases", "partition": "${value/day}" },
            ]}]});
            folder.write("config.json", &config.to_string());
            let shop = Shop { folder, tool, requests, approvals, purchases };
            for topic in [&shop.requests, &shop.approvals, &shop.purchases] {
                shop.tool(&["create", topic, &partitions.to_string()], "");
            }
            Some(shop)
        }

        #[track_caller]
        fn tool(&self, args: &[&str], input: &str) -> String {
            produced(&self.tool, args, input)
        }

        fn up(&self) -> Server {
            let mut command = kelos(&["up", "--config", "config.json"]);
            Server::run(command.current_dir(self.folder.path()), "Stop with Ctrl-C")
        }

        /// A number from the database, which a server may be writing.
        fn count(&self, query: &str) -> i64 {
            let path = self.folder.path().join(".kelos/kelos.db");
            let read = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)
                .and_then(|db| db.query_row(query, [], |row| row.get(0)));
            read.unwrap_or(0)
        }
    }

    #[track_caller]
    fn produced(tool: &str, args: &[&str], input: &str) -> String {
        let mut child =
            Command::new(tool).args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the tool");
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{args:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn problems_of(server: &Server) -> Vec<Value> {
        let mut answer = ureq::get(format!("{}/api/v1/problems", server.address())).call().expect("an answer");
        let text = answer.body_mut().read_to_string().expect("a text");
        let found: Value = serde_json::from_str(&text).expect("JSON");
        found["items"].as_array().expect("items").clone()
    }

    #[test]
    #[ignore = "needs a real server: servers/run with kafka -- cargo test -- --ignored real::"]
    fn a_flow_asks_by_a_message_and_is_answered_by_one() {
        let Some(shop) = Shop::open(1) else { return };
        let checked = shop.folder.run(&["check", ".", "--config", "config.json"]).ok();
        assert!(checked.ends_with("no problems\n"), "{checked}");
        let server = shop.up();
        // The answer to one order comes before anybody has started its run.
        let approval =
            |key: &str, by: &str| json!({ "key": key, "value": json!({ "by": by }).to_string() }).to_string();
        shop.tool(&["produce", &shop.approvals], &approval("order-43", "Ben"));
        for order in ["order-42", "order-43"] {
            shop.folder.run(&["start", "buy", "--key", order, "--argument", &format!("order={order}")]).ok();
        }
        let asked: Vec<Value> = eventually("both requests", || {
            let lines = shop.tool(&["consume", &shop.requests], "");
            let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            (lines.len() == 2).then_some(lines)
        });
        let first = asked.iter().find(|one| one["key"] == "order-42").expect("the request");
        let given: Value = serde_json::from_str(first["value"].as_str().unwrap()).unwrap();
        assert_eq!(given, json!({ "order": "order-42", "sum": 12 }));
        let headers =
            json!({ "kind": "request", "kelos-run": "buy@.order-42.ask#1", "kelos-slot": "buy@.order-42.ask" });
        assert_eq!(first["headers"], headers);
        shop.tool(&["produce", &shop.approvals], &approval("order-42", "Ann"));
        let followed = shop.folder.run(&["start", "buy", "--key", "order-42", "--wait"]).ok();
        assert!(followed.ends_with("buy@order-42 is succeeded\n"), "{followed}");
        let followed = shop.folder.run(&["start", "buy", "--key", "order-43", "--wait"]).ok();
        assert!(followed.ends_with("buy@order-43 is succeeded\n"), "{followed}");
        let log = shop.folder.run(&["logs", "buy", "order-42.ship"]).ok();
        assert!(log.starts_with("Ann approved "), "{log}");
        let steps = shop.folder.json(&["steps", "buy", "order-42", "--json"]);
        let name = format!("{}/0/{}", shop.requests, first["offset"]);
        assert!(steps.to_string().contains(&format!("\"message\":\"{name}\"")), "{steps}");
        let facts = shop.folder.run(&["facts"]).ok();
        assert!(facts.contains("signal approval for buy@order-42"), "{facts}");
        assert!(facts.contains(&format!("kafka:main/{}", shop.approvals)), "{facts}");
        // A run that is over takes none, and what makes no sense is told.
        assert!(problems_of(&server).is_empty());
        let odd = format!("{}\n{}\n", approval("order-42", "late"), json!({ "key": "x", "value": "oops" }));
        shop.tool(&["produce", &shop.approvals], &odd);
        let problems = eventually("both notices", || Some(problems_of(&server)).filter(|all| all.len() == 2));
        let said = |n: usize| problems[n]["message"].as_str().unwrap().to_owned();
        assert_eq!((&problems[0]["code"], &problems[0]["severity"]), (&json!("source-notice"), &json!("warning")));
        let refused = "was refused: buy@order-42 is succeeded: only a run that has not ended takes signals";
        assert!(said(0).ends_with(refused), "{}", said(0));
        assert!(said(1).ends_with("was passed over: its value is no JSON: expected value at line 1 column 1"));
        server.stop();
    }

    #[test]
    #[ignore = "needs a real server: servers/run with kafka -- cargo test -- --ignored real::"]
    fn a_broker_that_is_away_is_a_problem_and_delays_only_what_needs_it() {
        let Some(shop) = Shop::open(1) else { return };
        let server = shop.up();
        eventually("no problem", || problems_of(&server).is_empty().then_some(()));
        kelos_test_servers::crash("kafka");
        // The client may say that no broker answers before it says why.
        let refused = |problem: &Value| {
            let said = problem["message"].as_str().unwrap();
            said.starts_with("failed to reach Kafka \"main\" at ") && said.ends_with(": Connection refused")
        };
        let problems = eventually("two problems, with their reason", || {
            Some(problems_of(&server)).filter(|all| all.len() == 2 && refused(&all[0]))
        });
        assert_eq!((&problems[0]["code"], &problems[0]["severity"]), (&json!("source-fails"), &json!("error")));
        shop.folder.run(&["start", "buy", "--key", "order-1", "--argument", "order=order-1"]).ok();
        let why = eventually("a reason", || {
            Some(shop.folder.run(&["why", "buy", "order-1.ask"]).ok())
                .filter(|why| why.contains("failed to reach Kafka"))
        });
        assert!(why.contains("Connection refused"), "{why}");
        kelos_test_servers::up("kafka");
        shop.tool(
            &["produce", &shop.approvals],
            &json!({ "key": "order-1", "value": "{\"by\": \"Ann\"}" }).to_string(),
        );
        let followed = shop.folder.run(&["start", "buy", "--key", "order-1", "--wait"]).ok();
        assert!(followed.ends_with("buy@order-1 is succeeded\n"), "{followed}");
        eventually("no problem any more", || problems_of(&server).is_empty().then_some(()));
        server.stop();
    }

    /// The number of messages that are sent to each of the two topics, in so many parts.
    const EACH: usize = 5000;
    const PARTS: usize = 20;
    /// The number of runs that the signals are for.
    const RUNS: usize = 250;

    /// A ledger of 10,000 messages: while they are sent the server is killed at random points, and once the broker.
    #[test]
    #[ignore = "needs a real server: servers/run with kafka -- cargo test -- --ignored real::"]
    fn of_ten_thousand_messages_none_is_lost_and_none_counts_twice() {
        let Some(shop) = Shop::open(3) else { return };
        let mut random = Random::new();
        println!("KELOS_SEED={}", random.0);
        let (tool, approvals, purchases) = (shop.tool.clone(), shop.approvals.clone(), shop.purchases.clone());
        let sender = std::thread::spawn(move || {
            for part in 0..PARTS {
                let numbers = || (0..EACH).skip(part).step_by(PARTS);
                let signals = numbers().map(|n| {
                    json!({ "key": format!("order-{}", n % RUNS), "value": json!({ "n": n }).to_string() }).to_string()
                });
                let days = numbers().map(|n| json!({ "value": json!({ "day": n }).to_string() }).to_string());
                produced(&tool, &["produce", &approvals], &signals.collect::<Vec<_>>().join("\n"));
                produced(&tool, &["produce", &purchases], &days.collect::<Vec<_>>().join("\n"));
            }
        });
        let all = i64::try_from(2 * EACH).unwrap();
        let stored = || shop.count("SELECT count(*) FROM facts");
        let (mut kills, mut server) = (0, Some(shop.up()));
        while stored() < all {
            let next = (stored() + 1 + random.below(1200)).min(all);
            eventually("more facts", || (stored() >= next).then_some(()));
            if let Some(server) = server.take() {
                server.crash();
                kills += 1;
            }
            if kills == 3 && !sender.is_finished() {
                // The sender waits for it.
                kelos_test_servers::crash("kafka");
                kelos_test_servers::up("kafka");
            }
            server = Some(shop.up());
        }
        sender.join().expect("all are sent");
        println!("{kills} kills");
        assert!(kills >= 5, "{kills} kills are too few");
        // Nothing more comes of what is read again.
        eventually("all positions", || {
            (position(&shop, &shop.approvals) + position(&shop, &shop.purchases) >= all).then_some(())
        });
        server.take().expect("a server").stop();
        assert_eq!(position(&shop, &shop.approvals) + position(&shop, &shop.purchases), all);
        assert_eq!(stored(), all);
        let told = "SELECT count(*) FROM events WHERE workflow IS NULL AND json_extract(body, '$.subject') = 'fact'";
        assert_eq!(shop.count(told), all);
        // Each signal is in the history of its run once.
        let given = ledger(
            &shop,
            "SELECT json_extract(body, '$.payload.n') FROM events WHERE json_extract(body, '$.event') = 'signalled'",
        );
        assert_eq!(given, (0..EACH).map(|n| (n.to_string(), 1)).collect());
        let days = "SELECT json_extract(body, '$.fact.what.keys[0]') FROM events WHERE workflow IS NULL \
                    AND json_extract(body, '$.fact.what.occurrence') = 'partitions'";
        assert_eq!(ledger(&shop, days), (0..EACH).map(|n| (n.to_string(), 1)).collect());
        let verified = shop.folder.run(&["verify"]).ok();
        assert!(verified.contains("all agree"), "{verified}");
    }

    /// The number of times that each value is in the log.
    fn ledger(shop: &Shop, query: &str) -> BTreeMap<String, u32> {
        let db =
            Connection::open_with_flags(shop.folder.path().join(".kelos/kelos.db"), OpenFlags::SQLITE_OPEN_READ_ONLY);
        let db = db.expect("the database");
        let mut statement = db.prepare(query).expect("a query");
        let rows = statement.query_map([], |row| row.get::<_, rusqlite::types::Value>(0)).expect("rows");
        let mut found = BTreeMap::new();
        for value in rows {
            let text = match value.expect("a row") {
                rusqlite::types::Value::Text(text) => text,
                rusqlite::types::Value::Integer(number) => number.to_string(),
                other => panic!("{other:?} is neither a text nor a number"),
            };
            *found.entry(text).or_insert(0) += 1;
        }
        found
    }

    /// The number of messages of a topic that have been read.
    fn position(shop: &Shop, topic: &str) -> i64 {
        let next = "SELECT sum(json_extract(each.value, '$.next')) FROM registers, json_each(registers.value) AS each WHERE registers.key = ";
        shop.count(&format!("{next}'kafka:main/{topic}'"))
    }

    /// Numbers that the seed in `KELOS_SEED` repeats.
    struct Random(u64);

    impl Random {
        fn new() -> Random {
            let given = std::env::var("KELOS_SEED").ok().and_then(|seed| seed.parse().ok());
            Random(given.unwrap_or_else(|| u64::from(std::process::id())))
        }

        fn below(&mut self, end: u64) -> i64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            i64::try_from((self.0 >> 33) % end).unwrap()
        }
    }
}
