//! Files of schedules come, change, break and go, and people change the same schedules meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kelos_core::{ChangeSchedule, Config, CreateSchedules, Enable, Refusal, Request, TakenName};
use kelos_engine as engine;
use kelos_engine::executor::Executors;
use kelos_engine::job::NoFunctions;
use kelos_engine::{AskError, EngineParts, Handle, Pace, Status};
use kelos_model::workflow::{EventKeys, Job, Keys, Program, Provenance, Source, WorkflowRow};
use kelos_model::{Actor, Trigger, Workflow, WorkflowId};
use kelos_sandbox::{Folders, Limits};
use kelos_scripts::ScriptFolder;
use kelos_storage::{Storage, StorageConfig};
use kelos_store::{MemoryDisk, MemoryStore, StoredState};
use tempfile::TempDir;

/// A node on a disk that outlives it, and a folder of scripts.
struct House {
    disk: MemoryDisk,
    folder: TempDir,
    update_schedules: bool,
}

/// The engine and its scripts.
struct Living {
    handle: Handle,
    scripts: ScriptFolder,
}

impl House {
    fn new(update_schedules: bool) -> House {
        House { disk: MemoryDisk::default(), folder: tempfile::tempdir().unwrap(), update_schedules }
    }

    fn write(&self, file: &str, text: &str) {
        fs::write(self.folder.path().join(file), text).unwrap();
    }

    fn remove(&self, file: &str) {
        fs::remove_file(self.folder.path().join(file)).unwrap();
    }

    async fn start(&self) -> Living {
        let store = Box::new(MemoryStore::on(&self.disk));
        let folders =
            Folders { workflows: self.folder.path().to_owned(), defaults: self.folder.path().join("defaults") };
        let scripts = ScriptFolder::open(
            folders,
            std::sync::Arc::new(kelos_door_stolos::TasksJson),
            None,
            Limits::default(),
            store.reader(),
            |_| Ok(false),
        )
        .unwrap();
        let handle = engine::start(EngineParts {
            store,
            node: "test".to_owned(),
            clock: Arc::new(|| Timestamp::from_second(1_451_620_800).unwrap()),
            pace: Pace::Stepped,
            config: Config::default(),
            executors: Executors::default(),
            functions: Arc::new(NoFunctions),
            storage: Storage::new(StorageConfig::default()),
            runtime: tokio::runtime::Handle::current(),
            lease: Duration::from_secs(10),
            traces: false,
        })
        .unwrap();
        let living = Living { handle, scripts: scripts.updating_schedules(self.update_schedules) };
        while !matches!(living.handle.status(), Status::Leading { .. }) {
            tokio::task::yield_now().await;
        }
        living.load().await;
        living
    }
}

impl Living {
    /// Loads the files, and waits until the engine has taken them in.
    async fn load(&self) {
        self.scripts.reload(&self.handle);
        let nobody = self.ask(Enable { schedule: id("nobody"), reason: None }).await;
        assert!(matches!(nobody, Err(AskError::Refused(Refusal::NoEventSchedule(_)))), "{nobody:?}");
    }

    async fn ask(&self, request: impl Request) -> Result<(), AskError> {
        self.handle.ask(&Actor::person("test"), request).await.map(drop)
    }

    fn row(&self, name: &str) -> Option<WorkflowRow> {
        self.handle.reader().workflow(&id(name)).unwrap().filter(|row| row.present)
    }

    fn names(&self) -> Vec<String> {
        let rows = self.handle.reader().workflows(None).unwrap();
        rows.into_iter().filter(|row| row.present).map(|row| row.id.to_string()).collect()
    }

    /// The number of partitions that a schedule waits for.
    fn count(&self, name: &str) -> u32 {
        match self.row(name).unwrap().definition.trigger {
            Trigger::Partitions { count, .. } => count,
            ref other => panic!("{other:?}"),
        }
    }

    /// A person makes, or changes, a schedule so that it waits for so many partitions.
    async fn change(&self, name: &str, count: u32, is_new: bool) {
        let keys = EventKeys::new(name.split_once('.').unwrap().1, id("shop.wf"));
        let schedule = Arc::new(Workflow {
            project: "shop".to_owned(),
            trigger: Trigger::Partitions { dataset: "ds".into(), count },
            ..Workflow::keyed(id(name), Keys::Events(Box::new(keys)), Job::new("command", serde_json::Map::new()))
        });
        let asked = match is_new {
            true => self.ask(CreateSchedules { new: vec![schedule], reason: None }).await,
            false => self.ask(ChangeSchedule { changed: schedule, reason: None }).await,
        };
        asked.unwrap();
    }
}

fn id(name: &str) -> WorkflowId {
    WorkflowId::new(name).unwrap()
}

const PROGRAM: &str = "program('wf', celos.commandExternalService({command: ['true']}));\n";

fn shop(partitions: u32) -> String {
    format!("{PROGRAM}schedule('s', 'wf').triggerOnPartitions('ds', {partitions});\n")
}

#[tokio::test]
async fn what_people_changed_holds_until_the_file_changes() {
    let house = House::new(true);
    house.write("shop.js", &shop(1));
    let living = house.start().await;
    assert_eq!(living.names(), ["shop.s", "shop.wf"]);
    assert!(!living.row("shop.s").unwrap().enabled);
    living.ask(Enable { schedule: id("shop.s"), reason: None }).await.unwrap();
    living.change("shop.s", 7, false).await;
    living.change("shop.own", 5, true).await;
    // Another file is no deployment of this one, and neither is a restart.
    house.write("other.js", "");
    living.load().await;
    assert_eq!((living.count("shop.s"), living.count("shop.own")), (7, 5));
    living.handle.stop().await;
    let living = house.start().await;
    assert_eq!((living.count("shop.s"), living.count("shop.own")), (7, 5));
    house.write("shop.js", &shop(2));
    living.load().await;
    assert_eq!(living.names(), ["shop.s", "shop.wf"]);
    assert_eq!(living.count("shop.s"), 2);
    assert!(living.row("shop.s").unwrap().enabled, "a change keeps the status");
}

#[tokio::test]
async fn a_broken_file_takes_nothing_away_and_undoes_nothing() {
    let house = House::new(true);
    house.write("shop.js", &shop(1));
    house.write("gone.js", &shop(1));
    let living = house.start().await;
    living.change("shop.s", 7, false).await;
    house.write("shop.js", "schedule('s', 'nothing').triggerByTime('0 4 * * *');");
    house.write("other.js", PROGRAM);
    house.remove("gone.js");
    living.load().await;
    assert_eq!(living.names(), ["gone.s", "other.wf", "shop.s", "shop.wf"], "gone.s waits until all files are good");
    assert_eq!(living.count("shop.s"), 7);
    living.handle.stop().await;
    let living = house.start().await;
    assert_eq!(living.count("shop.s"), 7);
    house.write("shop.js", &shop(1));
    living.load().await;
    assert_eq!(living.names(), ["other.wf", "shop.s", "shop.wf"]);
    assert_eq!(living.count("shop.s"), 7, "the file says again what it said when it was deployed");
}

#[tokio::test]
async fn an_application_whose_file_is_gone_takes_its_schedules_with_it() {
    let house = House::new(false);
    let text = format!("application({{name: 'shop', 'app.deploy.update.schedules': true}});\n{}", shop(1));
    house.write("file.js", &text);
    let living = house.start().await;
    assert_eq!(living.names(), ["shop.s", "shop.wf"]);
    house.remove("file.js");
    living.load().await;
    assert_eq!(living.names(), [""; 0]);
    // A project that returns starts anew.
    house.write("file.js", &text);
    living.load().await;
    assert_eq!(living.names(), ["shop.s", "shop.wf"]);
}

#[tokio::test]
async fn who_keeps_schedules_loses_those_of_programs_that_are_gone_alone() {
    let house = House::new(true);
    let keeping = |rest: &str| format!("application({{'app.deploy.update.schedules': 'false'}});\n{rest}");
    house.write("shop.js", &keeping(&shop(1)));
    let living = house.start().await;
    assert_eq!(living.names(), ["shop.wf"], "nothing is created from the file");
    living.change("shop.own", 5, true).await;
    house.write("shop.js", &keeping(&shop(9)));
    living.load().await;
    assert_eq!((living.names().len(), living.count("shop.own")), (2, 5));
    house.write("shop.js", &keeping("program('other', celos.commandExternalService({command: ['true']}));"));
    living.load().await;
    assert_eq!(living.names(), ["shop.other"]);
}

#[tokio::test]
async fn a_server_can_keep_the_schedules_of_all() {
    let house = House::new(false);
    house.write("shop.js", &shop(1));
    let living = house.start().await;
    assert_eq!(living.names(), ["shop.wf"]);
}

#[tokio::test]
async fn defaults_that_a_file_uses_are_a_part_of_what_it_says() {
    let house = House::new(true);
    fs::create_dir(house.folder.path().join("defaults")).unwrap();
    house.write("defaults/much.js", "var MUCH = 3;");
    house.write(
        "shop.js",
        &format!("importDefaults('much');\n{PROGRAM}schedule('s', 'wf').triggerOnPartitions('ds', MUCH);"),
    );
    let living = house.start().await;
    assert_eq!(living.count("shop.s"), 3);
    house.write("defaults/much.js", "var MUCH = 4;");
    living.load().await;
    assert_eq!(living.count("shop.s"), 4);
}

/// A workflow that the embedding program defines, and people start.
fn of_program(name: &str) -> Arc<Workflow> {
    let keys = Keys::Requests(Box::new(Program { name: name.to_owned(), kind: None }));
    Arc::new(Workflow::keyed(id(name), keys, Job::new("command", serde_json::Map::new())))
}

#[tokio::test]
async fn files_requests_and_the_program_define_side_by_side() {
    let house = House::new(true);
    house.write("shop.js", &shop(1));
    let living = house.start().await;
    let define = async |names: &[&str]| {
        living.handle.define(names.iter().map(|name| of_program(name)).collect(), BTreeMap::new()).unwrap();
        living.handle.settled().await.unwrap();
    };
    define(&["coded", "gone"]).await;
    living.change("shop.own", 3, true).await;
    living.change("shop.s", 2, false).await;
    define(&["coded"]).await;
    living.load().await;
    let provenance = |name: &str| living.row(name).unwrap().definition.provenance();
    assert_eq!(living.names(), ["coded", "shop.own", "shop.s", "shop.wf"]);
    let all = ["coded", "shop.own", "shop.s", "shop.wf"].map(provenance);
    assert_eq!(all, [Provenance::Code, Provenance::Api, Provenance::Api, Provenance::File]);

    // A name is whose it was, and the other one waits.
    define(&["coded", "shop.wf"]).await;
    let taken = TakenName { workflow: id("shop.wf"), source: Source::default(), holder: Provenance::File };
    assert_eq!(living.handle.taken_names(), [taken].into());
    assert_eq!(living.row("shop.wf").unwrap().version, 1);
    house.remove("shop.js");
    living.load().await;
    assert_eq!(living.names(), ["coded", "shop.wf"], "event schedules go with the project that has them");
    assert_eq!((provenance("shop.wf"), living.handle.taken_names()), (Provenance::Code, BTreeSet::new()));
    living.handle.stop().await;

    // Definitions that were not sent again after the restart stay in force.
    let living = house.start().await;
    assert_eq!(living.names(), ["coded", "shop.wf"]);
}
