use std::collections::{BTreeMap, BTreeSet};

use kelos_core::Config;
use kelos_model::workflow::{Keys, Program};
use kelos_model::{Event, Job, SlotEvent, Workflow};
use kelos_storage::{Storage, StorageConfig};
use kelos_store::log::Log;
use kelos_store::{About, EventFilter, MemoryStore, PageRequest, Queries};

use super::*;
use crate::clock::system_clock;
use crate::executor::Executors;
use crate::job::NoFunctions;
use crate::{EngineParts, Pace};

/// The requests in a store whose operations fail.
#[derive(Clone, Default)]
struct Shelf(Arc<Mutex<Content>>);

#[derive(Default)]
struct Content {
    requests: BTreeMap<i64, (InboxRequest, Option<String>)>,
    operations: usize,
    /// The operation that fails, and whether it is done all the same.
    fault: Option<(usize, bool)>,
}

impl Shelf {
    fn with<T>(&self, act: impl FnOnce(&mut Content) -> T) -> T {
        act(&mut self.0.lock().unwrap())
    }

    /// Does an operation, unless it is the one that fails.
    fn operate<T>(&self, act: impl FnOnce(&mut Content) -> T) -> Result<T, LogError> {
        self.with(|content| {
            content.operations += 1;
            let fault = content.fault.filter(|(number, _)| *number == content.operations);
            let lost = || LogError::Unknown { doing: "ask".to_owned(), cause: "the connection broke".to_owned() };
            match fault {
                Some((_, false)) => Err(lost()),
                Some((_, true)) => {
                    act(content);
                    Err(lost())
                }
                None => Ok(act(content)),
            }
        })
    }

    fn ask(&self, number: i64, workflow: &str, key: &str, arguments: Option<&str>) {
        let (workflow, key, user) = (workflow.to_owned(), key.to_owned(), "shop".to_owned());
        let arguments = arguments.map(str::to_owned);
        let request = InboxRequest { number, user, workflow, key, arguments, priority: 0, reason: None };
        self.with(|content| content.requests.insert(number, (request, None)));
    }

    /// The problems of the requests that are there, once none is left to be taken.
    async fn problems(&self) -> Vec<String> {
        let problems = || {
            self.with(|content| {
                let all = content.requests.values();
                all.map(|(request, problem)| problem.as_ref().map(|problem| format!("{}: {problem}", request.number)))
                    .collect::<Option<Vec<String>>>()
            })
        };
        let waiting = async {
            loop {
                if let Some(problems) = problems() {
                    return problems;
                }
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), waiting).await.expect("requests are taken")
    }
}

impl LogStore for Shelf {
    fn name(&self) -> String {
        "shelf".to_owned()
    }

    fn open(&self) -> Result<Box<dyn Log>, LogError> {
        Err(LogError::Medium { doing: "open the log".to_owned(), cause: "it has requests alone".to_owned() })
    }

    fn inbox(&self) -> Result<Option<Box<dyn Inbox>>, LogError> {
        self.operate(|_| ())?;
        Ok(Some(Box::new(self.clone())))
    }
}

impl Inbox for Shelf {
    fn requests(&mut self, limit: usize) -> Result<Vec<InboxRequest>, LogError> {
        self.operate(|content| {
            let open = content.requests.values().filter(|(_, problem)| problem.is_none());
            open.take(limit).map(|(request, _)| request.clone()).collect()
        })
    }

    fn finish(&mut self, numbers: &[i64]) -> Result<(), LogError> {
        self.operate(|content| content.requests.retain(|number, _| !numbers.contains(number)))
    }

    fn set_aside(&mut self, _: u64, number: i64, problem: &str) -> Result<(), LogError> {
        self.operate(|content| {
            if let Some((_, noted)) = content.requests.get_mut(&number) {
                *noted = Some(problem.to_owned());
            }
        })
    }

    fn refused(&mut self, limit: usize) -> Result<Vec<RefusedRequest>, LogError> {
        self.operate(|content| {
            let refused = content.requests.values().rev().filter_map(|(request, problem)| {
                let InboxRequest { number, user, workflow, key, .. } = request.clone();
                Some(RefusedRequest { number, user, workflow, key, problem: problem.clone()? })
            });
            refused.take(limit).collect()
        })
    }

    /// It hears of nothing, and is asked again at once.
    fn wait(&mut self, _: Duration) -> Result<(), LogError> {
        std::thread::yield_now();
        Ok(())
    }
}

fn engine() -> Handle {
    let parts = EngineParts {
        store: Box::new(MemoryStore::new()),
        node: "test".to_owned(),
        clock: system_clock(),
        pace: Pace::ByItself,
        config: Config::default(),
        executors: Executors::default(),
        functions: Arc::new(NoFunctions),
        storage: Storage::new(StorageConfig::default()),
        runtime: Runtime::current(),
        lease: Duration::from_secs(10),
        traces: false,
    };
    let handle = crate::start(parts).unwrap();
    let id = WorkflowId::new("buy").unwrap();
    let job = Job::new("nothing", serde_json::Map::new());
    let keys = Keys::Requests(Box::new(Program { name: "buy".to_owned(), kind: None }));
    let buy = Workflow::keyed(id, keys, job);
    handle.define(vec![Arc::new(buy)], BTreeMap::new()).unwrap();
    handle
}

/// The runs that were started, with the number of starts of each.
fn starts(reader: &dyn Queries) -> BTreeMap<String, usize> {
    let id = WorkflowId::new("buy").unwrap();
    let rows = reader.events(&EventFilter::about(About::Workflow(id)), PageRequest::newest(1000)).unwrap().rows;
    let mut starts = BTreeMap::new();
    for row in rows {
        if let Event::Slot { slot, what: SlotEvent::FiredBy { .. } } = row.event {
            *starts.entry(slot.key.short().to_string()).or_default() += 1;
        }
    }
    starts
}

/// Each run is started once, and what can't be done is set aside, whichever operation fails, done or not.
#[tokio::test(flavor = "multi_thread")]
async fn each_request_is_done_once_whatever_fails() {
    let faults = (1..=10).flat_map(|number| [(number, false), (number, true)]);
    join_all(faults.map(|fault| tokio::spawn(play(fault)))).await.into_iter().for_each(Result::unwrap);
}

async fn play(fault: (usize, bool)) {
    let shelf = Shelf::default();
    shelf.with(|content| content.fault = Some(fault));
    shelf.ask(1, "buy", "order-1", Some("{}"));
    shelf.ask(2, "nothing", "order-2", Some("{}"));
    shelf.ask(3, "buy", "order-3", Some(r#"{"amount": 3}"#));
    let handle = engine();
    let _reader = InboxReader::start(Arc::new(shelf.clone()), &handle, &Runtime::current()).unwrap();
    assert_eq!(shelf.problems().await.len(), 1, "{fault:?}");
    // A later one of the same name is the same run; one with a smaller number was committed late.
    shelf.ask(5, "buy", "order-3", Some("{}"));
    shelf.ask(4, "buy", "order-4", Some("{}"));
    assert_eq!(shelf.problems().await.len(), 1, "{fault:?}");
    let expected = ["order-1", "order-3", "order-4"].map(|key| (key.to_owned(), 1));
    assert_eq!(starts(&**handle.reader()), expected.into(), "{fault:?}");
    handle.stop().await;
}

/// Requests that can never be done are set aside with the reason, and those after them go on.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_says_what_was_expected_and_stops_nothing() {
    let shelf = Shelf::default();
    let large = format!(r#"{{"text": "{}"}}"#, "a".repeat(70_000));
    let deep = "[".repeat(1000) + &"]".repeat(1000);
    let wrong = [
        ("", "order-1", Some("{}")),
        ("sell", "order-2", Some("{}")),
        ("buy", "order 3", Some("{}")),
        ("buy", "2026-11-26T03:00Z", Some("{}")),
        ("buy", "order-5", Some("[1]")),
        ("buy", "order-6", Some("3")),
        ("buy", "order-7", None),
        ("buy", "order-8", Some(r#"{"a": 1e999}"#)),
        ("buy", "order-9", Some(&deep)),
        ("buy", "order-10", Some(&large)),
    ];
    for ((workflow, key, arguments), number) in wrong.into_iter().zip(1..) {
        shelf.ask(number, workflow, key, arguments);
    }
    shelf.ask(11, "buy", "order-11", Some("{}"));
    let handle = engine();
    let reader = InboxReader::start(Arc::new(shelf.clone()), &handle, &Runtime::current()).unwrap();
    insta::assert_snapshot!(shelf.problems().await.join("\n"), @r#"
    1: workflow id can't be only whitespace
    2: no workflow is named "sell"
    3: "order 3" can't name a run: expected at most 200 letters, digits, _, - or :, beginning with a letter or a digit, and no time, such as order-42
    4: "2026-11-26T03:00Z" can't name a run: expected at most 200 letters, digits, _, - or :, beginning with a letter or a digit, and no time, such as order-42
    5: its arguments are no object of JSON: invalid type: sequence, expected a map at line 1 column 0
    6: its arguments are no object of JSON: invalid type: integer `3`, expected a map at line 1 column 1
    7: its arguments were not kept: they were too large
    8: its arguments are no object of JSON: number out of range at line 1 column 11
    9: its arguments are no object of JSON: invalid type: sequence, expected a map at line 1 column 0
    10: the arguments have 70046 bytes, expected at most 65536
    "#);
    assert_eq!(starts(&**handle.reader()).into_keys().collect::<BTreeSet<_>>(), ["order-11".to_owned()].into());
    while reader.status().refused.len() < 10 {
        tokio::task::yield_now().await;
    }
    handle.stop().await;
}
