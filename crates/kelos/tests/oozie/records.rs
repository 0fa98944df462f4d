//! With an engine and its store around the executor: what runs were started with, and the installation's name.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use kelos::core::Config;
use kelos::engine::{self, EngineParts, Handle, Pace};
use kelos::executor::{Executors, NodeRecords, OozieExecutor, Records as _};
use kelos::http::Http;
use kelos::job::NoFunctions;
use kelos::model::time::parse_instant;
use kelos::model::workflow::Properties;
use kelos::model::{SlotState, Workflow};
use kelos::store::{MemoryDisk, MemoryStore, Store};
use kelos_storage::{Storage, StorageConfig};
use serde_json::json;

use crate::stub::{Stub, value_of};
use crate::support::{WAITS, eventually, run, talking, workflow};

const NOW: &str = "2013-11-26T17:30Z";
const LATER: &str = "2013-11-26T17:31Z";

/// A workflow with one slot, whose job goes to an Oozie.
fn defined(url: &str) -> Arc<Workflow> {
    let mut defined = workflow(run(1).slot.workflow);
    defined.start_time = Some(parse_instant("2013-11-26T17:00Z").unwrap());
    defined.job.settings.insert("url".to_owned(), json!(url));
    let properties = json!({"user.name": "ada", "oozie.wf.application.path": "/wf/${year}"});
    defined.job.properties = Properties::Fixed(properties.as_object().unwrap().clone());
    Arc::new(defined)
}

/// An engine as a process has it, and the records of its executor.
fn node(store: Box<dyn Store>, url: &str, now: &'static str) -> (Handle, Arc<NodeRecords>) {
    let records = Arc::new(NodeRecords::new(store.reader(), Arc::new(NoFunctions)));
    let runtime = tokio::runtime::Handle::current();
    let executor = OozieExecutor::with_waits(Http::default(), records.clone(), runtime.clone(), WAITS);
    let handle = engine::start(EngineParts {
        store,
        node: "test".to_owned(),
        clock: Arc::new(move || parse_instant(now).unwrap()),
        pace: Pace::ByItself,
        config: Config { planning_window: SignedDuration::from_hours(3), ..Config::default() },
        executors: Executors::default().with("oozie", executor),
        functions: Arc::new(NoFunctions),
        storage: Storage::new(StorageConfig::default()),
        runtime,
        lease: Duration::from_secs(10),
    });
    let handle = handle.unwrap();
    records.connect(handle.clone());
    handle.define(vec![defined(url)], BTreeMap::new()).unwrap();
    (handle, records)
}

#[test]
fn a_restart_goes_on_with_the_job_where_it_was_started() {
    talking(async {
        let (stub, disk) = (Stub::start().await, MemoryDisk::default());
        let (handle, records) = node(Box::new(MemoryStore::on(&disk)), &stub.url(), NOW);
        let job =
            eventually("its start", || Some(stub.jobs().first()?.1.clone()).filter(|job| job.status == "RUNNING"))
                .await;
        assert_eq!(value_of(&job.conf, "oozie.wf.application.path").as_deref(), Some("/wf/2013"));
        let name = records.installation().await.unwrap();
        assert!(job.external_id.starts_with(&format!("kelos:{name}:wf@2013-11-26T17:00")), "{}", job.external_id);
        handle.stop().await;

        // Meanwhile the script names another Oozie, which is not there.
        let (handle, records) = node(Box::new(MemoryStore::on(&disk)), "http://127.0.0.1:9/oozie", LATER);
        assert_eq!(records.installation().await.unwrap(), name);
        stub.all_become("SUCCEEDED", "[]");
        let slot = job_slot(&handle);
        eventually("its end", || (slot() == Some(SlotState::Succeeded)).then_some(())).await;
        assert_eq!(stub.jobs().len(), 1);
        handle.stop().await;
    });
}

fn job_slot(handle: &Handle) -> impl Fn() -> Option<SlotState> + use<> {
    let reader = handle.reader().clone();
    let time = parse_instant("2013-11-26T17:00Z").unwrap();
    let slot = kelos::model::SlotRef::at(run(1).slot.workflow, time);
    move || reader.slot(&slot).unwrap().map(|slot| slot.state)
}

#[test]
fn two_stores_are_two_installations() {
    talking(async {
        let url = "http://127.0.0.1:9/oozie";
        let (one, its_records) = node(Box::new(MemoryStore::new()), url, NOW);
        let (other, other_records) = node(Box::new(MemoryStore::new()), url, NOW);
        assert_ne!(its_records.installation().await.unwrap(), other_records.installation().await.unwrap());
        one.stop().await;
        other.stop().await;
    });
}
