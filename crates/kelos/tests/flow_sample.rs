//! The sample of a flow, from its script to its last command, by a whole node.

use std::path::Path;
use std::time::Duration;

use kelos::{Node, NodeConfig};
use kelos_core::{FireRequest, SignalFlow};
use kelos_engine::Status;
use kelos_model::{Actor, RunName, SlotKey, SlotRef, SlotState, StepKey, WorkflowId};
use kelos_sandbox::Folders;
use kelos_store::MemoryStore;
use serde_json::{Value, json};

/// The longest time that the flow may take on a busy machine before the test gives up.
const DEADLINE: Duration = Duration::from_secs(240);

/// Waits until a slot is in a state.
async fn reaches(node: &Node, slot: &SlotRef, state: SlotState) {
    let mut commits = node.handle().watch_commits();
    let waiting = async {
        while node.reader().slot(slot).unwrap().map(|slot| slot.state) != Some(state) {
            commits.changed().await.unwrap();
        }
    };
    tokio::time::timeout(DEADLINE, waiting).await.unwrap_or_else(|_| panic!("{slot} is not {state}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sample_publishes_what_is_approved() {
    let temp = tempfile::tempdir().unwrap();
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples/orders-flow");
    let folders = Folders { workflows: sample.join("workflows"), defaults: sample.join("defaults") };
    let shim = vec![crate::local_support::SHIM.into(), "__shim".into()];
    let config = NodeConfig { folders: Some(folders), ..NodeConfig::new(temp.path().join("runs"), shim) };
    let node = Node::start(config, Box::new(MemoryStore::new()), tokio::runtime::Handle::current()).unwrap();
    let leads = |status: &Status| matches!(status, Status::Leading { .. });
    node.handle().watch_status().wait_for(leads).await.unwrap();

    let (ann, orders) = (Actor::person("ann"), WorkflowId::new("orders").unwrap());
    let folder = temp.path().join("orders");
    let arguments = [("folder", folder.to_str().unwrap()), ("shops", "paris rome")];
    let start = || FireRequest {
        workflow: orders.clone(),
        arguments: arguments.map(|(name, value)| (name.to_owned(), value.into())).into(),
        key: Some(RunName::new("order-42").unwrap()),
        priority: 0,
        unconstrained: false,
        reason: None,
    };
    // The definitions of the folder come a moment after the lead.
    let run = tokio::time::timeout(DEADLINE, async {
        loop {
            match node.handle().ask(&ann, start()).await {
                Ok(fired) => return fired.slot,
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    });
    let run = run.await.unwrap();
    let step = |name: &str| {
        let key = StepKey::new(&run.key, &name.parse().unwrap()).unwrap();
        SlotRef::new(orders.clone(), SlotKey::Step(key))
    };
    reaches(&node, &step("total"), SlotState::Succeeded).await;
    let payload = json!({"by": "ann"});
    let signal = SignalFlow { run: run.clone(), signal: "approval".to_owned(), payload, reason: None };
    node.handle().ask(&ann, signal).await.unwrap();
    reaches(&node, &run, SlotState::Succeeded).await;

    assert_eq!(std::fs::read_to_string(folder.join("published")).unwrap(), "84, approved by ann\n");
    let given = node.reader().slot(&step("publish")).unwrap().unwrap();
    let inputs = Value::Object(given.step_of_run().unwrap().inputs.clone());
    assert_eq!((&inputs["total"], &inputs["by"]), (&json!(84), &json!("ann")));
    assert!(node.reader().slot(&step("tell")).unwrap().is_none());
}
