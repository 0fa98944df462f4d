//! With an engine and its store around the executor: what runs were started with, and the installation's name.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use kelos_core::Config;
use kelos_door_celos::celos_db::Database;
use kelos_door_celos::import::{Definitions, ImportOptions, import};
use kelos_engine as engine;
use kelos_engine::executor::Executors;
use kelos_engine::job::NoFunctions;
use kelos_engine::secrets::Secrets;
use kelos_engine::{EngineParts, Handle, Pace};
use kelos_executors::http::Http;
use kelos_executors::{NodeRecords, OozieExecutor, Records as _};
use kelos_model::time::parse_instant;
use kelos_model::workflow::Properties;
use kelos_model::{RunId, SlotRef, SlotState, Workflow};
use kelos_storage::{Storage, StorageConfig};
use kelos_store::{Journal, MemoryDisk, MemoryStore, StoredState};
use serde_json::json;

use super::stub::{Stub, value_of};
use super::support::{WAITS, eventually, run, talking, workflow};

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
fn node(store: Box<dyn Journal>, url: &str, now: &'static str) -> (Handle, Arc<NodeRecords>) {
    let records = Arc::new(NodeRecords::new(store.reader(), Arc::new(NoFunctions)));
    let runtime = tokio::runtime::Handle::current();
    let executor =
        OozieExecutor::with_waits(Http::default(), Secrets::default(), records.clone(), runtime.clone(), WAITS);
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
        traces: false,
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

fn only_slot() -> SlotRef {
    SlotRef::at(run(1).slot.workflow, parse_instant("2013-11-26T17:00Z").unwrap())
}

fn job_slot(handle: &Handle) -> impl Fn() -> Option<SlotState> + use<> {
    let reader = handle.reader().clone();
    let slot = only_slot();
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

/// A store with a job of Celos that runs, whose workflow had no script when it came.
fn with_a_job_of_celos(disk: &MemoryDisk) -> MemoryStore {
    let celos = tempfile::tempdir().unwrap();
    let day = celos.path().join("state").join(only_slot().workflow.as_str()).join("2013-11-26");
    std::fs::create_dir_all(&day).unwrap();
    let record = json!({"time": "2013-11-26T17:00:00.000Z", "status": "RUNNING", "externalID": "job", "retryCount": 0});
    std::fs::write(day.join("17:00:00.000Z"), record.to_string()).unwrap();
    let mut store = MemoryStore::on(disk);
    let now = parse_instant(NOW).unwrap();
    let options = ImportOptions { now, as_of: now, revive: false, dry_run: false };
    import(&mut store, Database::open(celos.path()).unwrap(), &Definitions::default(), &options).unwrap();
    store
}

#[test]
fn an_imported_job_belongs_to_the_first_script_that_comes() {
    talking(async {
        let (disk, run) = (MemoryDisk::default(), RunId { slot: only_slot(), number: 1 });
        let store = with_a_job_of_celos(&disk);
        let refused = NodeRecords::new(store.reader(), Arc::new(NoFunctions)).start_of(&run).unwrap_err();
        assert!(refused.ends_with("#1 runs: no script says which Oozie; put its workflow's script back"), "{refused}");
        drop(store);
        for url in ["http://127.0.0.1:9/oozie", "http://127.0.0.1:9/another"] {
            let (handle, records) = node(Box::new(MemoryStore::on(&disk)), url, LATER);
            let latest = || handle.reader().definitions(&run.slot.workflow, None).unwrap().swap_remove(0).definition;
            eventually("its script", || (latest().job.settings.get("url") == Some(&json!(url))).then_some(())).await;
            assert_eq!(records.start_of(&run).unwrap().settings["url"], "http://127.0.0.1:9/oozie");
            handle.stop().await;
        }
    });
}
