//! Topics as sources of facts, and messages that are sent, with a real broker. What is read is checked against another client of Kafka.

mod real {
    use std::io::Write as _;
    use std::process::{Command, Stdio};
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::{Duration, Instant};

    use kelos_engine::sources::FactSource;
    use kelos_kafka::{Cluster, Kafka, KafkaError, Setting, Start, Topic, TopicPosition};
    use kelos_model::secret::SecretSource;
    use kelos_model::{Fact, Occurrence};
    use serde_json::{Value, json};

    /// The longest time that anything may take; only a broken program needs it.
    const PATIENCE: Duration = Duration::from_secs(120);

    /// A topic of a test's own.
    struct Broker {
        address: String,
        tool: String,
        topic: String,
    }

    impl Broker {
        /// A topic with partitions; none where no broker was started.
        fn with_topic(name: &str, partitions: u32) -> Option<Broker> {
            static NUMBER: AtomicU32 = AtomicU32::new(0);
            let address = kelos_test_servers::address("KELOS_TEST_KAFKA")?;
            let tool = kelos_test_servers::address("KELOS_TEST_KAFKA_TOOL")?;
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis();
            let broker = Broker { address, tool, topic: format!("{name}-{since}-{number}") };
            broker.run(&["create", &broker.topic, &partitions.to_string()], "");
            Some(broker)
        }

        #[track_caller]
        fn run(&self, args: &[&str], input: &str) -> String {
            let mut command = Command::new(&self.tool);
            let mut child = command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
            child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success(), "{args:?}");
            String::from_utf8(output.stdout).unwrap()
        }

        #[track_caller]
        fn produce(&self, messages: impl IntoIterator<Item = Value>) {
            let lines: String = messages.into_iter().map(|message| format!("{message}\n")).collect();
            self.run(&["produce", &self.topic], &lines);
        }

        #[track_caller]
        fn consume(&self, topic: &str) -> Vec<Value> {
            self.run(&["consume", topic], "").lines().map(|line| serde_json::from_str(line).unwrap()).collect()
        }

        fn cluster(&self) -> Cluster {
            Cluster::new("main", &self.address)
        }

        /// The topic, as partitions of a dataset with names.
        fn dataset(&self) -> Topic {
            Topic { partition: Some("${value}".to_owned()), ..Topic::partitions_of(&self.topic, "ds") }
        }

        fn reader(&self, topic: Topic) -> Reader {
            Reader::of(self.cluster().topic(topic))
        }

        fn key(&self, partition: i32, offset: i64) -> String {
            format!("{}/{partition}/{offset}", self.topic)
        }
    }

    /// A source that is read as the engine does it.
    struct Reader {
        source: Box<dyn FactSource>,
        position: Option<Value>,
        facts: Vec<Fact>,
        notices: Vec<String>,
        passed_over: u64,
    }

    impl Reader {
        fn of(cluster: Cluster) -> Reader {
            let source = Kafka::new(cluster).unwrap().sources().remove(0);
            Reader { source, position: None, facts: Vec::new(), notices: Vec::new(), passed_over: 0 }
        }

        async fn poll(&mut self) -> Result<(), String> {
            let found = self.source.poll(self.position.clone()).await?;
            self.position = found.position.or(self.position.take());
            self.facts.extend(found.facts);
            self.notices.extend(found.notices);
            self.passed_over += found.passed_over;
            self.source.acknowledge().await
        }

        #[track_caller]
        fn keys(&self) -> Vec<String> {
            let mut keys: Vec<String> = self.facts.iter().map(|fact| fact.key.clone().unwrap().to_string()).collect();
            keys.sort();
            keys
        }

        /// Polls until something holds.
        async fn until(&mut self, what: &str, holds: impl Fn(&Reader) -> bool) {
            let until = Instant::now() + PATIENCE;
            while !holds(self) {
                assert!(Instant::now() < until, "still not: {what}; {:?} {:?}", self.keys(), self.notices);
                self.poll().await.unwrap();
            }
        }

        /// Polls until it fails.
        async fn failure(&mut self) -> String {
            let until = Instant::now() + PATIENCE;
            loop {
                if let Err(error) = self.poll().await {
                    return error;
                }
                assert!(Instant::now() < until, "still no failure");
            }
        }
    }

    fn message(partition: i32, value: &str) -> Value {
        json!({ "key": "k", "value": Value::from(value).to_string(), "partition": partition })
    }

    #[tokio::test(flavor = "multi_thread")]
    #[ignore = "needs a real server: servers/run with kafka -- cargo test -- --ignored real::"]
    async fn messages_are_facts_that_a_position_and_a_key_tell_apart() {
        let Some(broker) = Broker::with_topic("facts", 2) else { return };
        broker.produce([message(0, "a"), message(0, "b"), message(1, "c")]);
        let mut reader = broker.reader(broker.dataset());
        reader.until("three facts", |reader| reader.facts.len() >= 3).await;
        let expected = [broker.key(0, 0), broker.key(0, 1), broker.key(1, 0)];
        assert_eq!(reader.keys(), expected);
        let names = reader.facts.iter().map(|fact| match &fact.what {
            Occurrence::Partitions { keys, count: 1, .. } => keys.concat(),
            other => panic!("expected a partition, not {other:?}"),
        });
        assert_eq!(names.collect::<std::collections::BTreeSet<_>>(), ["a", "b", "c"].map(str::to_owned).into());
        assert_eq!(reader.position, Some(json!({ "0": { "next": 2 }, "1": { "next": 1 } })));
        // Another leader goes on from the position.
        let mut next = broker.reader(broker.dataset());
        next.position = reader.position.clone();
        broker.produce([message(1, "d")]);
        next.until("one fact", |reader| !reader.facts.is_empty()).await;
        assert_eq!(next.keys(), [broker.key(1, 1)]);
        // Where a commit was lost the same is given again, under the same keys.
        reader.position = Some(json!({ "0": { "next": 1 }, "1": { "next": 0 } }));
        reader.facts.clear();
        reader.until("three facts", |reader| reader.facts.len() >= 3).await;
        assert_eq!(reader.keys(), [broker.key(0, 1), broker.key(1, 0), broker.key(1, 1)]);
    }

    #[tokio::test(flavor = "multi_thread")]
    #[ignore = "needs a real server: servers/run with kafka -- cargo test -- --ignored real::"]
    async fn a_topic_may_begin_with_what_comes_later_and_new_partitions_are_read_whole() {
        let Some(broker) = Broker::with_topic("latest", 1) else { return };
        broker.produce([message(0, "old")]);
        let mut reader = broker.reader(Topic { from: Start::Latest, ..broker.dataset() });
        reader.until("a position", |reader| reader.position.is_some()).await;
        assert_eq!(reader.position, Some(json!({ "0": { "next": 1 } })));
        broker.run(&["partitions", &broker.topic, "2"], "");
        broker.produce([message(0, "new"), message(1, "first")]);
        reader.until("two facts", |reader| reader.facts.len() >= 2).await;
        assert_eq!(reader.keys(), [broker.key(0, 1), broker.key(1, 0)]);
    }

    #[tokio::test(flavor = "multi_thread")]
    #[ignore = "needs a real server: servers/run with kafka -- cargo test -- --ignored real::"]
    async fn what_makes_no_sense_stops_nothing() {
        let Some(broker) = Broker::with_topic("odd", 1) else { return };
        let Some(rejected) = Broker::with_topic("rejected", 1) else { return };
        let odd = json!({ "key": "k", "value": "oops", "headers": { "a": "b" } });
        broker.produce([message(0, "a"), odd, message(0, "b")]);
        let mut reader = broker.reader(broker.dataset());
        reader.until("two facts", |reader| reader.facts.len() >= 2).await;
        let why = "its value is no JSON: expected value at line 1 column 1";
        let notice = format!("message {} was passed over: {why}", broker.key(0, 1));
        assert_eq!((reader.passed_over, reader.notices.clone()), (1, vec![notice]));
        assert_eq!(reader.keys(), [broker.key(0, 0), broker.key(0, 2)]);
        let rejecting = |to: &str| Topic { rejected_to: Some(to.to_owned()), ..broker.dataset() };
        let mut reader = broker.reader(rejecting(&rejected.topic));
        reader.until("two facts", |reader| reader.facts.len() >= 2).await;
        assert_eq!(reader.notices, [format!("message {} was sent to {}: {why}", broker.key(0, 1), rejected.topic)]);
        let sent = broker.consume(&rejected.topic);
        assert_eq!((sent.len(), &sent[0]["key"], &sent[0]["value"]), (1, &json!("k"), &json!("oops")));
        assert_eq!(sent[0]["headers"], json!({ "a": "b", "kelos-reason": why, "kelos-message": broker.key(0, 1) }));
        // A topic for them that is not there must not stop it either.
        let cluster = broker.cluster().setting("topic.metadata.propagation.max.ms", Setting::Value("1000".to_owned()));
        let mut reader = Reader::of(cluster.topic(rejecting("no-such-topic")));
        reader.until("two facts", |reader| reader.facts.len() >= 2).await;
        let notice = format!(
            "message {} was passed over, since Kelos failed to send a message to the topic no-such-topic of Kafka \"main\": unknown topic or \
             partition: {why}",
            broker.key(0, 1)
        );
        assert_eq!(
            reader
                .notices
                .iter()
                .map(|one| one.replace("unknown topic:", "unknown topic or partition:"))
                .collect::<Vec<_>>(),
            [notice]
        );
    }

    #[tokio::test(flavor = "multi_thread")]
    #[ignore = "needs a real server: servers/run with kafka -- cargo test -- --ignored real::"]
    async fn messages_that_are_gone_are_counted_and_the_rest_is_read() {
        let Some(broker) = Broker::with_topic("gone", 1) else { return };
        broker.produce((0..10).map(|n| message(0, &n.to_string())));
        broker.run(&["trim", &broker.topic, "0", "4"], "");
        let mut reader = broker.reader(broker.dataset());
        reader.position = Some(json!({ "0": { "next": 1 } }));
        reader.until("six facts", |reader| reader.facts.len() >= 6).await;
        let words =
            "of {}: 3 messages are gone before they were read, 1 to 3: the topic keeps messages for too short a time";
        assert_eq!(reader.notices, [format!("partition 0 {}", words.replace("{}", &broker.topic))]);
        assert_eq!((reader.facts.len(), reader.position.clone()), (6, Some(json!({ "0": { "next": 10 } }))));
        // The same while it is being read.
        broker.produce((0..5).map(|n| message(0, &n.to_string())));
        broker.run(&["trim", &broker.topic, "0", "14"], "");
        reader.until("fifteen messages", |reader| reader.position == Some(json!({ "0": { "next": 15 } }))).await;
        // Messages that were fetched before it was removed are no loss.
        let read = reader.facts.len();
        let told = reader.notices.len() == 2 && reader.notices[1].contains("gone before");
        assert!(read == 11 || (7..11).contains(&read) && told, "{read} facts, {:?}", reader.notices);
    }

    #[tokio::test(flavor = "multi_thread")]
    #[ignore = "needs a real server: servers/run with kafka -- cargo test -- --ignored real::"]
    async fn a_topic_that_is_created_again_is_another_one() {
        let Some(broker) = Broker::with_topic("again", 1) else { return };
        broker.produce([message(0, "a"), message(0, "b")]);
        let mut reader = broker.reader(broker.dataset());
        reader.until("two facts", |reader| reader.facts.len() >= 2).await;
        broker.run(&["delete", &broker.topic], "");
        let told = reader.failure().await;
        assert_eq!(told, format!("find the topic {} of Kafka \"main\": there is none of this name", broker.topic));
        broker.run(&["create", &broker.topic, "1"], "");
        broker.produce([message(0, "c")]);
        let until = Instant::now() + PATIENCE;
        while reader.facts.len() < 3 {
            // It may not be known at once.
            let _ = reader.poll().await;
            assert!(Instant::now() < until, "{:?}", reader.notices);
        }
        let again = format!("{}/1", broker.key(0, 0));
        assert_eq!(reader.keys(), [broker.key(0, 0), again, broker.key(0, 1)]);
        assert!(reader.notices[0].ends_with("the topic was created again, and is read from its beginning"));
        let stored = TopicPosition::read(reader.position.clone().unwrap()).unwrap();
        assert_eq!((stored.0[&0].next, stored.0[&0].recreated), (1, 1));
    }

    #[tokio::test(flavor = "multi_thread")]
    #[ignore = "needs a real server: servers/run with kafka -- cargo test -- --ignored real::"]
    async fn a_broker_that_is_away_is_told_and_nothing_is_lost() {
        let Some(broker) = Broker::with_topic("away", 1) else { return };
        broker.produce([message(0, "a")]);
        let mut reader = broker.reader(broker.dataset());
        reader.until("a fact", |reader| !reader.facts.is_empty()).await;
        let kafka =
            Kafka::new(broker.cluster().setting("message.timeout.ms", Setting::Value("3000".to_owned()))).unwrap();
        kafka.send(&broker.topic, "k", &"b").await.unwrap();
        kelos_test_servers::crash("kafka");
        let away = format!("reach Kafka \"main\" at {}: ", broker.address);
        // The client may say that no broker answers before it says why.
        let until = Instant::now() + PATIENCE;
        while reader.failure().await != format!("{away}Connection refused") {
            assert!(Instant::now() < until, "still no reason");
        }
        let lost = kafka.send(&broker.topic, "k", &"lost").await.unwrap_err();
        assert!(matches!(&lost, KafkaError::Away { .. }) && lost.to_string().starts_with(&away), "{lost}");
        kelos_test_servers::up("kafka");
        kafka.send(&broker.topic, "k", &"c").await.unwrap();
        let until = Instant::now() + PATIENCE;
        while reader.facts.len() < 3 {
            let _ = reader.poll().await;
            assert!(Instant::now() < until, "{:?}", reader.keys());
        }
        assert_eq!(reader.keys(), [broker.key(0, 0), broker.key(0, 1), broker.key(0, 2)]);
    }

    #[tokio::test(flavor = "multi_thread")]
    #[ignore = "needs a real server: servers/run with kafka -- cargo test -- --ignored real::"]
    async fn a_login_takes_its_password_from_a_file() {
        let Some(broker) = Broker::with_topic("login", 1) else { return };
        let Some(address) = kelos_test_servers::address("KELOS_TEST_KAFKA_LOGIN") else { return };
        let Some(password) = kelos_test_servers::address("KELOS_TEST_KAFKA_PASSWORD_FILE") else { return };
        let value = |text: &str| Setting::Value(text.to_owned());
        let cluster = |password: Setting| {
            Cluster::new("main", &address)
                .setting("security.protocol", value("SASL_PLAINTEXT"))
                .setting("sasl.mechanism", value("PLAIN"))
                .setting("sasl.username", value("kelos"))
                .setting("sasl.password", password)
                .topic(broker.dataset())
        };
        let file = |path: &str| Setting::Secret(SecretSource::File(path.to_owned()));
        let right = cluster(file(&password));
        let sent = Kafka::new(right.clone()).unwrap().send(&broker.topic, "k", &"a").await.unwrap();
        assert_eq!(sent.name(), broker.key(0, 0));
        let mut reader = Reader::of(right);
        reader.until("a fact", |reader| !reader.facts.is_empty()).await;
        let wrong = std::env::temp_dir().join(format!("kelos-wrong-{}", std::process::id()));
        std::fs::write(&wrong, "wr0ng").unwrap();
        let told = Reader::of(cluster(file(&wrong.display().to_string()))).failure().await;
        std::fs::remove_file(&wrong).unwrap();
        assert!(told.ends_with(": Invalid username or password") && !told.contains("wr0ng"), "{told}");
    }

    #[tokio::test(flavor = "multi_thread")]
    #[ignore = "needs a real server: servers/run with kafka -- cargo test -- --ignored real::"]
    async fn a_message_is_sent_with_key_value_and_headers() {
        let Some(broker) = Broker::with_topic("out", 1) else { return };
        let cluster = broker.cluster().setting("topic.metadata.propagation.max.ms", Setting::Value("1000".to_owned()));
        let kafka = Kafka::new(cluster).unwrap();
        let run = kelos_model::RunId { slot: "buy@.order-42".parse().unwrap(), number: 1 };
        let message = kelos_kafka::OutgoingMessage::json(&broker.topic, "order-42", &json!({ "sum": 12 })).unwrap();
        let sent = kafka.deliver(message.header("kind", "new").of_run(&run)).await.unwrap();
        assert_eq!(sent.name(), broker.key(0, 0));
        let headers = json!({ "kind": "new", "kelos-run": "buy@.order-42#1", "kelos-slot": "buy@.order-42" });
        let expected =
            json!({ "partition": 0, "offset": 0, "key": "order-42", "value": "{\"sum\":12}", "headers": headers });
        assert_eq!(broker.consume(&broker.topic), [expected]);
        let told = kafka.send("no-such-topic", "k", &1).await.unwrap_err().to_string();
        assert!(
            told.starts_with("send a message to the topic no-such-topic of Kafka \"main\": unknown topic"),
            "{told}"
        );
        let told = kafka.send("no such topic", "k", &1).await.unwrap_err().to_string();
        assert!(told.ends_with("\"no such topic\" is no name of a topic"), "{told}");
    }
}
