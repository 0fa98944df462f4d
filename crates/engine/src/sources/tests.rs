use std::collections::{BTreeMap, VecDeque};

use futures_util::future::FutureExt;
use kelos_core::{Config, FactTally, Tell};
use kelos_model::{Actor, Event, Occurrence};
use kelos_storage::{Storage, StorageConfig};
use kelos_store::{About, EventFilter, MemoryStore, PageRequest, Queries};

use super::*;
use crate as engine;
use crate::clock::{Clock, system_clock};
use crate::executor::Executors;
use crate::job::NoFunctions;
use crate::{EngineParts, Pace};

fn engine() -> Handle {
    let parts = EngineParts {
        store: Box::new(MemoryStore::new()),
        node: "test".to_owned(),
        clock: system_clock(),
        pace: Pace::ByItself,
        config: Config::default(),
        executors: Executors::default(),
        functions: Arc::new(NoFunctions),
        storage: storage(),
        runtime: Runtime::current(),
        lease: Duration::from_secs(10),
        traces: false,
    };
    engine::start(parts).unwrap()
}

fn storage() -> Storage {
    Storage::new(StorageConfig::default())
}

fn at(second: i64) -> Clock {
    Arc::new(move || Timestamp::from_second(second).unwrap())
}

/// The keys of the facts that are stored, oldest first.
fn stored(reader: &dyn Queries) -> Vec<String> {
    let rows = reader.events(&EventFilter::about(About::Facts), PageRequest::newest(1000)).unwrap().rows;
    let key = |event: Event| match event {
        Event::Fact { fact, .. } => fact.key.unwrap().to_string(),
        other => panic!("expected a fact, not {other:?}"),
    };
    rows.into_iter().rev().map(|row| key(row.event)).collect()
}

/// A broker with one partition of messages that gives again what was not acknowledged, and now and then what was.
struct Broker {
    messages: VecDeque<u32>,
    acknowledged: Arc<Mutex<u32>>,
    given: u32,
    polls: u32,
}

impl FactSource for Broker {
    fn name(&self) -> Arc<str> {
        "broker".into()
    }

    fn every(&self) -> Duration {
        Duration::from_millis(1)
    }

    fn poll(&mut self, _: Option<Value>) -> BoxFuture<'_, Result<Findings, String>> {
        self.polls += 1;
        let acknowledged = *self.acknowledged.lock().unwrap();
        // After a rebalance a consumer starts over a little before.
        let from = if self.polls.is_multiple_of(3) { acknowledged.saturating_sub(2) } else { acknowledged };
        let fact = |offset: u32| Fact {
            source: "broker".into(),
            key: Some(format!("0/{offset}").into()),
            what: Occurrence::Partitions { dataset: "ds".into(), count: 1, keys: Vec::new() },
        };
        let end = (from + 4).min(u32::try_from(self.messages.len()).unwrap());
        self.given = end.max(acknowledged);
        let answer = if self.polls.is_multiple_of(4) {
            Err("reach the broker".to_owned())
        } else {
            Ok(Findings::of((from..end).map(fact).collect()))
        };
        async { answer }.boxed()
    }

    fn acknowledge(&mut self) -> BoxFuture<'_, Result<(), String>> {
        // Each other acknowledgement is lost.
        if self.polls % 2 == 1 {
            *self.acknowledged.lock().unwrap() = self.given;
        }
        async { Ok(()) }.boxed()
    }
}

#[tokio::test]
async fn what_a_broker_gives_again_counts_once_and_nothing_is_lost() {
    let handle = engine();
    let acknowledged = Arc::new(Mutex::new(0));
    let broker = Broker { messages: (0..20).collect(), acknowledged: acknowledged.clone(), given: 0, polls: 0 };
    let sources = Sources::start(vec![Box::new(broker)], &handle, &Runtime::current());
    let mut commits = handle.watch_commits();
    let all = async {
        while stored(&**handle.reader()).len() < 20 {
            commits.changed().await.unwrap();
        }
    };
    tokio::time::timeout(Duration::from_secs(60), all).await.expect("all are stored in time");
    let expected: Vec<String> = (0..20).map(|offset| format!("0/{offset}")).collect();
    assert_eq!(stored(&**handle.reader()), expected);
    assert!(sources.standings()[0].new <= 20);
    handle.stop().await;
}

/// A topic that is read from the stored position on, two messages at a time; each third makes no sense.
struct Numbers;

impl FactSource for Numbers {
    fn name(&self) -> Arc<str> {
        "numbers".into()
    }

    fn every(&self) -> Duration {
        Duration::from_millis(1)
    }

    fn longest_wait(&self) -> Duration {
        Duration::from_millis(8)
    }

    fn poll(&mut self, position: Option<Value>) -> BoxFuture<'_, Result<Findings, String>> {
        let next = position.and_then(|position| position.as_u64()).unwrap_or(0);
        let is_odd = |number: &u64| number % 3 == 2;
        let fact = |number: u64| Fact {
            source: "numbers".into(),
            key: Some(number.to_string().into()),
            what: Occurrence::Signal {
                name: "go".into(),
                payload: number.into(),
                run: (number == 0).then(|| "nobody@.run".parse().unwrap()),
            },
        };
        let (odd, sound): (Vec<u64>, Vec<u64>) = (next..next + 2).partition(is_odd);
        let found = Findings {
            facts: sound.into_iter().map(fact).collect(),
            position: Some((next + 2).into()),
            passed_over: odd.len() as u64,
            notices: odd.into_iter().map(|number| format!("{number} makes no sense")).collect(),
        };
        async { Ok(found) }.boxed()
    }

    fn acknowledge(&mut self) -> BoxFuture<'_, Result<(), String>> {
        async { Ok(()) }.boxed()
    }
}

#[tokio::test]
async fn a_source_goes_on_from_the_position_that_is_stored_with_its_facts() {
    let handle = engine();
    handle.watch_status().wait_for(|status| matches!(status, Status::Leading { .. })).await.unwrap();
    let shown = Sources::start(Vec::new(), &handle, &Runtime::current());
    shown.lock().push(SourceStatus::new("numbers".into()));
    let feed = || Feed { source: Box::new(Numbers), place: 0, handle: handle.clone(), shown: shown.clone() };
    let position = || handle.reader().register(POSITIONS, "numbers").unwrap();
    feed().once().await.unwrap();
    assert_eq!(position(), Some(2.into()));
    // Another leader knows nothing of the first.
    feed().once().await.unwrap();
    feed().once().await.unwrap();
    assert_eq!(
        (stored(&**handle.reader()), position()),
        (["0", "1", "3", "4"].map(str::to_owned).to_vec(), Some(6.into()))
    );
    let standing = shown.standings().remove(0);
    assert_eq!((standing.new, standing.passed_over), (4, 2));
    let notices: Vec<&str> = standing.notices.iter().map(|notice| notice.text.as_str()).collect();
    let refused = "the signal of message 0 was refused: no workflow is named \"nobody\"";
    assert_eq!(notices, [refused, "2 makes no sense", "5 makes no sense"]);
    // A person who moves it back has nothing count twice.
    let moved = kelos_core::SetRegister {
        bucket: POSITIONS.to_owned(),
        key: "numbers".to_owned(),
        value: Some(0.into()),
        reason: None,
    };
    handle.ask(&Actor::person("ann"), moved).await.unwrap();
    feed().once().await.unwrap();
    assert_eq!((stored(&**handle.reader()).len(), position()), (4, Some(2.into())));
    assert_eq!(feed().wait(9), Duration::from_millis(8));
    handle.stop().await;
}

#[test]
fn notices_are_shown_for_a_day_and_the_newest_are_kept() {
    let mut status = SourceStatus::new("numbers".into());
    let at = |hour: i64| Timestamp::from_second(hour * 3600).unwrap();
    (0..30).for_each(|hour| status.notice(at(hour), format!("notice {hour}")));
    assert_eq!((status.notices.len(), status.notices[0].text.as_str()), (MOST_NOTICES, "notice 10"));
    let shown = status.at(at(40));
    assert_eq!((shown.notices.len(), shown.notices[0].text.as_str()), (13, "notice 17"));
}

fn watched(folder: &std::path::Path, adjust: impl FnOnce(&mut Watch), clock: Clock) -> WatchedPrefix {
    let mut watch = Watch::new(&folder.display().to_string(), "ds");
    watch.min_age = Some(Duration::ZERO);
    adjust(&mut watch);
    WatchedPrefix::new(watch, storage(), clock).unwrap()
}

fn put(folder: &std::path::Path, path: &str, second: i64) {
    let path = folder.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, "x").unwrap();
    let modified = std::time::UNIX_EPOCH + Duration::from_secs(second.unsigned_abs());
    std::fs::File::options().write(true).open(&path).unwrap().set_modified(modified).unwrap();
}

async fn names(watched: &mut WatchedPrefix) -> Vec<String> {
    let facts = watched.poll(None).await.unwrap().facts;
    let name = |fact: Fact| match fact.what {
        Occurrence::Partitions { keys, count: 1, .. } => keys.concat(),
        other => panic!("expected a partition, not {other:?}"),
    };
    facts.into_iter().map(name).collect()
}

#[tokio::test]
async fn a_file_counts_once_until_it_is_written_anew() {
    let folder = tempfile::tempdir().unwrap();
    let mut watched = watched(folder.path(), |_| {}, at(1000));
    assert!(names(&mut watched).await.is_empty());
    put(folder.path(), "b/part-0", 5);
    put(folder.path(), "a", 9);
    put(folder.path(), "_temporary/x", 5);
    put(folder.path(), "_SUCCESS", 5);
    assert_eq!(names(&mut watched).await, ["b/part-0", "a"]);
    assert_eq!(names(&mut watched).await, ["b/part-0", "a"], "given again until it is acknowledged");
    watched.acknowledge().await.unwrap();
    assert!(names(&mut watched).await.is_empty());
    put(folder.path(), "a", 10);
    assert_eq!(names(&mut watched).await, ["a"]);
}

/// A watched folder with links, a FIFO and a socket in it: nothing is waited for, and only files count, each once.
#[tokio::test]
async fn what_is_no_file_is_no_partition() {
    use std::os::unix::fs::symlink;
    let folder = tempfile::tempdir().unwrap();
    let at_path = |name: &str| folder.path().join(name);
    put(folder.path(), "in/a", 5);
    assert!(std::process::Command::new("mkfifo").arg(at_path("in/fifo")).status().unwrap().success());
    let _socket = std::os::unix::net::UnixListener::bind(at_path("in/socket")).unwrap();
    for (name, to) in [("zero", "/dev/zero"), ("self", "self"), ("back", "."), ("up", ".."), ("nowhere", "gone")] {
        symlink(to, at_path("in").join(name)).unwrap();
    }
    let mut watched = watched(folder.path(), |_| {}, at(1000));
    assert_eq!(names(&mut watched).await, ["in/a"]);
}

#[tokio::test]
async fn patterns_and_ages_say_what_counts() {
    let folder = tempfile::tempdir().unwrap();
    for (path, second) in [("d=1/_SUCCESS", 500), ("d=1/a.parquet", 500), ("d=2/b.parquet", 995), ("old.parquet", 5)] {
        put(folder.path(), path, second);
    }
    let mut marks = watched(folder.path(), |watch| watch.pattern = Some("_SUCCESS".to_owned()), at(1000));
    assert_eq!(names(&mut marks).await, ["d=1/_SUCCESS"]);
    let adjust = |watch: &mut Watch| {
        watch.pattern = Some("**/*.parquet".to_owned());
        watch.min_age = Some(Duration::from_secs(10));
        watch.since = Some(Timestamp::from_second(100).unwrap());
    };
    assert_eq!(names(&mut watched(folder.path(), adjust, at(1000))).await, ["d=1/a.parquet"]);
    assert_eq!(names(&mut watched(folder.path(), adjust, at(1005))).await, ["d=1/a.parquet", "d=2/b.parquet"]);
}

#[tokio::test]
async fn two_leaders_count_a_file_once() {
    let folder = tempfile::tempdir().unwrap();
    put(folder.path(), "a", 5);
    let handle = engine();
    handle.watch_status().wait_for(|status| matches!(status, Status::Leading { .. })).await.unwrap();
    let mut counted = BTreeMap::new();
    for leader in ["first", "second"] {
        let facts = watched(folder.path(), |_| {}, at(1000)).poll(None).await.unwrap().facts;
        counted.insert(leader, handle.ask(&Actor::system(leader), Tell::of(facts)).await.unwrap());
    }
    let counts = |new, known| FactTally { new, known, ..FactTally::default() };
    assert_eq!(counted, [("first", counts(1, 0)), ("second", counts(0, 1))].into());
    handle.stop().await;
}

#[test]
fn a_watch_is_read_from_the_file_of_a_server() {
    let text =
        r#"{"groups": [], "watch": [{"prefix": "s3://b/in", "dataset": "ds", "every": "1m", "pattern": "*.csv"}]}"#;
    let watches = Watch::parse(text).unwrap();
    assert_eq!((watches[0].every, watches[0].pattern.as_deref()), (Duration::from_secs(60), Some("*.csv")));
    assert!(Watch::parse("{}").unwrap().is_empty());
    let wrong = |watch: &str| Watch::parse(&format!("{{\"watch\": [{{\"prefix\": \"/in\", {watch}}}]}}")).unwrap_err();
    assert_eq!(
        wrong(r#""dataset": "ds", "pattern": "[""#).split(", expected").next().unwrap(),
        "the watch of \"/in\": its pattern is wrong: error parsing glob '[': unclosed character class; missing ']'"
    );
    assert_eq!(wrong(r#""dataset": " ""#), "the watch of \"/in\": its dataset has no name");
    assert!(wrong(r#""dataset": "ds", "every": "soon""#).starts_with("\"soon\" is no duration, expected such as"));
    assert!(wrong(r#""dataset": "ds", "every": "1ms""#).ends_with("`every` is 1ms, expected at least 100ms"));
}

#[tokio::test]
async fn a_source_that_fails_is_asked_with_growing_waits() {
    let handle = engine();
    let shown = Sources::start(Vec::new(), &handle, &Runtime::current());
    let source = Box::new(watched(std::path::Path::new("/nowhere"), |_| {}, at(1)));
    let feed = Feed { source, place: 0, handle: handle.clone(), shown };
    let waits = [0, 1, 2, 4, 5, 60].map(|failures| feed.wait(failures).as_secs());
    assert_eq!(waits, [10, 20, 40, 160, 300, 300]);
    handle.stop().await;
}

/// A server that refuses, and one that does not know such paths.
#[tokio::test]
async fn what_is_wrong_with_a_source_is_shown_until_it_answers() {
    let (folder, handle) = (tempfile::tempdir().unwrap(), engine());
    handle.watch_status().wait_for(|status| matches!(status, Status::Leading { .. })).await.unwrap();
    let shown = Sources::start(Vec::new(), &handle, &Runtime::current());
    shown.lock().push(SourceStatus::new("w".into()));
    let feed = |prefix: &str| {
        let watch = Watch { min_age: Some(Duration::ZERO), ..Watch::new(prefix, "ds") };
        let source = Box::new(WatchedPrefix::new(watch, storage(), system_clock()).unwrap());
        Feed { source, place: 0, handle: handle.clone(), shown: shown.clone() }
    };
    let mut dead = feed("hdfs://127.0.0.1:1/in");
    let outcome = dead.once().await;
    dead.show(outcome);
    let problem = shown.standings()[0].problem.clone().unwrap();
    assert!(problem.contains("hdfs://127.0.0.1:1"), "{problem}");
    put(folder.path(), "a", 5);
    let mut sound = feed(&folder.path().display().to_string());
    let outcome = sound.once().await;
    sound.show(outcome);
    let standing = shown.standings().remove(0);
    assert_eq!((standing.problem, standing.new), (None, 1));
    handle.stop().await;
}

mod real {
    use kelos_storage::{S3Keys, S3Settings, Secret};

    use super::*;

    /// A file that appears, and is written anew.
    async fn holds(storage: Storage, prefix: &str) {
        let place = storage.place(prefix).unwrap();
        place.files.remove(&place.path).await.unwrap();
        let watch = Watch { min_age: Some(Duration::ZERO), ..Watch::new(prefix, "ds") };
        // Their clock may be ahead of ours.
        let later: Clock = Arc::new(|| Timestamp::now() + Duration::from_secs(60));
        let mut watched = WatchedPrefix::new(watch, storage, later).unwrap();
        assert!(names(&mut watched).await.is_empty());
        for content in ["x", "longer"] {
            place.files.put(&format!("{}/deep/a", place.path), &mut content.as_bytes()).await.unwrap();
            assert_eq!(names(&mut watched).await, ["deep/a"]);
            watched.acknowledge().await.unwrap();
            assert!(names(&mut watched).await.is_empty());
        }
        place.files.remove(&place.path).await.unwrap();
    }

    #[tokio::test]
    #[ignore = "needs a real server: servers/run with s3 -- cargo test -- --ignored real::"]
    async fn a_prefix_of_s3_is_watched() {
        let Some(endpoint) = kelos_test_servers::address("KELOS_TEST_S3") else { return };
        let Some(bucket) = kelos_test_servers::address("KELOS_TEST_S3_BUCKET") else { return };
        let keys = S3Keys { id: "kelos".to_owned(), secret: Secret("secret".to_owned()) };
        let s3 = S3Settings { endpoint: Some(endpoint), keys: Some(keys), ..S3Settings::default() };
        let storage = Storage::new(StorageConfig { s3, ..StorageConfig::default() });
        holds(storage, &format!("s3://{bucket}/kelos watch")).await;
    }

    #[tokio::test]
    #[ignore = "needs a real server: servers/run with hdfs -- cargo test -- --ignored real::"]
    async fn a_folder_of_hdfs_is_watched() {
        let Some(address) = kelos_test_servers::address("KELOS_TEST_HDFS") else { return };
        let storage = Storage::new(StorageConfig { hadoop_user: Some("eve".to_owned()), ..StorageConfig::default() });
        holds(storage, &format!("{address}/tmp/kelos watch")).await;
    }
}
