//! Starts from transactions of users in PostgreSQL, from the SQL function and from Rust to the runs, on nodes that take over from each other.

mod real {
    use std::collections::BTreeMap;
    use std::path::Path;
    use std::sync::Arc;
    use std::time::{Duration, SystemTime, UNIX_EPOCH};

    use kelos::embed::Inbox;
    use kelos::nodes::{self, LogConfig, LogPlace};
    use kelos::{Job, Node, NodeConfig, SlotRef, SlotState, Status, Workflow, WorkflowId};
    use kelos_model::workflow::{Keys, Program};
    use kelos_model::{RunName, SlotKey};
    use kelos_test_servers::address;
    use serde_json::json;
    use tokio_postgres::{Client, NoTls};

    /// The address of the server with the password of the user.
    fn server() -> Option<String> {
        let url = address("KELOS_TEST_POSTGRES")?;
        let file = std::env::var_os("KELOS_TEST_POSTGRES_PASSWORD_FILE").expect("it is set with the address");
        Some(url.replace("kelos@", &format!("kelos:{}@", std::fs::read_to_string(file).unwrap().trim())))
    }

    async fn client(url: &str) -> Client {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
        tokio::spawn(connection);
        client
    }

    fn buy() -> WorkflowId {
        WorkflowId::new("buy").unwrap()
    }

    /// A node over the log, with a workflow that is started by hand.
    async fn node(store: &str, folder: &Path, name: &str) -> Node {
        let state = folder.join(name);
        std::fs::create_dir_all(&state).unwrap();
        let log = LogPlace::new(store, &kelos_tls::Trust::default());
        let of = LogConfig { log, state: state.clone(), node: name.to_owned(), address: None };
        let (journal, log) = tokio::task::spawn_blocking(move || nodes::open(&of)).await.unwrap().unwrap();
        let shim = vec![crate::local_support::SHIM.into(), "__shim".into()];
        let config = NodeConfig { log: Some(log), ..NodeConfig::new(state.join("runs"), shim) };
        let node = Node::start(config, journal, tokio::runtime::Handle::current()).unwrap();
        let settings = json!({ "command": ["true"] }).as_object().unwrap().clone();
        let keys = Keys::Requests(Box::new(Program { name: "buy".to_owned(), kind: None }));
        let definition =
            Workflow { concurrency: Some(100), ..Workflow::keyed(buy(), keys, Job::new("command", settings)) };
        node.handle().define(vec![Arc::new(definition)], BTreeMap::new()).unwrap();
        node
    }

    async fn leads(node: &Node) {
        let leads = |status: &Status| matches!(status, Status::Leading { .. });
        let mut status = node.handle().watch_status();
        let leading = status.wait_for(leads);
        tokio::time::timeout(Duration::from_secs(60), leading).await.expect("it leads").unwrap();
    }

    async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
        let waiting = async {
            while !holds().await {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(120), waiting).await.unwrap_or_else(|_| panic!("never came: {what}"));
    }

    fn run(node: &Node, name: &str) -> Option<SlotState> {
        let slot = SlotRef::new(buy(), SlotKey::Named(RunName::new(name).unwrap()));
        node.reader().slot(&slot).unwrap().map(|slot| slot.state)
    }

    #[tokio::test(flavor = "multi_thread")]
    #[ignore = "needs a real server: servers/run with postgres -- cargo test -- --ignored real::"]
    async fn a_run_begins_with_the_commit_of_a_user_whoever_leads() {
        let Some(url) = server() else { return };
        let schema = format!("t{}", SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros());
        let store = format!("{url}?schema={schema}");
        let folder = tempfile::tempdir().unwrap();
        let first = node(&store, folder.path(), "a").await;
        leads(&first).await;
        let mut user = client(&url).await;
        let table = format!("SELECT to_regclass('{schema}.inbox') IS NOT NULL");
        until("the table", async || user.query_one(&table, &[]).await.unwrap().get(0)).await;
        let inbox = Inbox::of_schema(&schema);

        let mut transaction = user.transaction().await.unwrap();
        inbox.flow("buy").start_in(&mut transaction, "taken-back", &()).await.unwrap();
        transaction.rollback().await.unwrap();
        let mut transaction = user.transaction().await.unwrap();
        inbox.flow("buy").start_in(&mut transaction, "order-1", &json!({ "amount": 3 })).await.unwrap();
        inbox.flow("sell").start_in(&mut transaction, "order-2", &()).await.unwrap();
        inbox.flow("buy").start_in(&mut transaction, "order-1", &json!({ "amount": 4 })).await.unwrap();
        assert_eq!(run(&first, "order-1"), None);
        transaction.commit().await.unwrap();
        until("the run", async || run(&first, "order-1") == Some(SlotState::Succeeded)).await;
        until("the problem", async || !first.problems().is_empty()).await;
        let problem = &first.problems()[0];
        let shown = format!("{} {}", problem.code.as_str(), problem.message);
        let expected = "request-refused request 3 of kelos, to start sell@order-2, was set aside: ";
        assert!(shown.starts_with(expected), "{shown}");
        assert_eq!(run(&first, "taken-back"), None);

        // The leader changes while users commit.
        let second = node(&store, folder.path(), "b").await;
        for number in 10..210 {
            if number == 60 {
                // Only its own machine knows how a command ends that is live then.
                let ended = async || {
                    (10..60).all(|number| run(&first, &format!("order-{number}")) == Some(SlotState::Succeeded))
                };
                until("the runs before", ended).await;
                first.stop().await;
            }
            let text = format!("SELECT {schema}.start('buy', 'order-{number}')");
            user.batch_execute(&text).await.unwrap();
        }
        leads(&second).await;
        let ends =
            async || (10..210).all(|number| run(&second, &format!("order-{number}")) == Some(SlotState::Succeeded));
        until("all runs", ends).await;
        for number in 10..210 {
            let slot = SlotRef::new(buy(), SlotKey::Named(RunName::new(&format!("order-{number}")).unwrap()));
            assert_eq!(second.reader().slot_runs(&slot).unwrap().len(), 1, "{slot}");
        }
        let open = format!("SELECT count(*) FROM {schema}.inbox WHERE problem IS NULL");
        until("an empty inbox", async || user.query_one(&open, &[]).await.unwrap().get::<_, i64>(0) == 0).await;
        second.stop().await;
    }
}
