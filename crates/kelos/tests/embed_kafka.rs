//! Kafka in a program: a step sends a message, and another waits for a signal that comes by one.

mod real {
    use std::io::Write as _;
    use std::process::{Command, Stdio};
    use std::time::Duration;

    use kelos::embed::{Context, FlowRun, Project, RequestError, flow, signal, step};
    use kelos::kafka::{Cluster, Kafka, OutgoingMessage, Topic};
    use serde_json::{Value, json};

    fn tool(args: &[&str]) -> String {
        let tool = kelos_test_servers::address("KELOS_TEST_KAFKA_TOOL").expect("the tool of the broker");
        let mut child = Command::new(tool).args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().flush().unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{args:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    #[derive(Clone)]
    struct Outbox {
        kafka: Kafka,
        topic: String,
    }

    async fn ask(
        context: Context,
        order: Value,
        outbox: Outbox,
    ) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        let message = OutgoingMessage::json(&outbox.topic, "order-42", &order)?.of_run(context.run());
        let sent = outbox.kafka.deliver(message).await?;
        Ok(json!({ "asked": sent.name() }))
    }

    #[tokio::test(flavor = "multi_thread")]
    #[ignore = "needs a real server: servers/run with kafka -- cargo test -- --ignored real::"]
    async fn a_step_sends_a_message_and_another_waits_for_one() {
        let Some(broker) = kelos_test_servers::address("KELOS_TEST_KAFKA") else { return };
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis();
        let (requests, approvals) = (format!("embed-requests-{since}"), format!("embed-approvals-{since}"));
        tool(&["create", &requests, "1"]);
        tool(&["create", &approvals, "1"]);
        let cluster = Cluster::new("main", &broker).topic(Topic::signals(&approvals, "approval", "purchase"));
        let kafka = Kafka::new(cluster).unwrap();
        let outbox = Outbox { kafka: kafka.clone(), topic: requests.clone() };
        let part = step("ask", ask).with(outbox) >> signal::<String>("approval").within(Duration::from_secs(3600));
        let running = Project::new("shop", "1.0").kafka(&kafka).add(flow("purchase", part)).start().await.unwrap();
        let purchase = running.flow("purchase");
        purchase.start("order-42", &json!({ "amount": 300 })).await.unwrap();
        // Whoever approves answers by the same handle here.
        running.kafka("main").unwrap().send(&approvals, "order-42", &"Ann").await.unwrap();
        let ended: FlowRun = purchase.end("order-42").await.unwrap();
        assert!(ended.is_success(), "{ended:?}");
        assert_eq!(ended.output::<String>().unwrap(), "Ann");
        let sent: Value = serde_json::from_str(tool(&["consume", &requests]).lines().next().unwrap()).unwrap();
        assert_eq!((&sent["key"], &sent["value"]), (&json!("order-42"), &json!("{\"amount\":300}")));
        assert_eq!(sent["headers"]["kelos-slot"], "purchase@.order-42.ask");
        let unknown = running.kafka("other").unwrap_err();
        assert!(matches!(&unknown, RequestError::Kafka(name) if name == "other"));
        assert_eq!(unknown.to_string(), "find the Kafka cluster \"other\": the project was given none of this name");
        running.stop().await;
    }
}
