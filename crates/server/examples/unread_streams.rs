//! How late a workflow is while clients open streams of events and read nothing.
//!
//!     cargo run --release -p kelos-server --example unread_streams -- 1000 30 1024
//!
//! The arguments are the number of streams, the seconds that are measured, and the descriptors that the server may have. The clients are a
//! process of their own; they look at the first bytes of each answer without taking them.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use kelos::{
    CronSchedule, Executor, Executors, Job, Node, NodeConfig, Report, Reports, RunId, Schedule, Start, Workflow,
};
use kelos_core::SetRegister;
use kelos_engine::Status;
use kelos_front::limits::LimitSettings;
use kelos_front::{App, Limiter};
use kelos_model::{Actor, Outcome};
use kelos_server::{Limits, router};
use kelos_store_sqlite::SqliteStore;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};

type Outcomes<T> = Result<T, Box<dyn Error>>;

/// Events in the log, so that a stream from its beginning has much to read: about 10 MB.
const EVENTS: usize = 20_000;
/// The job of the workflow, which is done at once.
const INSTANT: &str = "instant";

/// Notes how late each run starts, and ends it.
struct Clocked(Sender<Duration>);

impl Executor for Clocked {
    fn start(&self, start: Start, reports: Reports) {
        let due = start.run.slot.key.time().unwrap_or_default();
        let late = Timestamp::now().duration_since(due).try_into().unwrap_or_default();
        // There is no listener between two measurements.
        let _ = self.0.send(late);
        reports.run(&start.run, Report::Ended { outcome: Outcome::Succeeded });
    }

    fn check(&self, run: &RunId, _: Option<&str>, reports: Reports) {
        reports.run(run, Report::NeverStarted);
    }

    fn cancel(&self, run: &RunId, _: Option<&str>, reports: Reports) {
        reports.run(run, Report::Ended { outcome: Outcome::Killed });
    }
}

fn main() -> Outcomes<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    if let [mode, address, count] = &arguments[..]
        && mode == "clients"
    {
        return runtime.block_on(open_streams(address, count.parse()?));
    }
    let number = |place: usize, usual: u64| arguments.get(place).map_or(Ok(usual), |text| text.parse::<u64>());
    runtime.block_on(measure(number(0, 1000)?, number(1, 30)?, number(2, 1024)?))
}

/// Opens streams, says how they were answered, and keeps them until the input ends.
async fn open_streams(address: &str, count: usize) -> Outcomes<()> {
    let ask = format!("GET /api/v1/events/stream?after=0 HTTP/1.1\r\nHost: {address}\r\n\r\n");
    let (mut streams, mut answers) = (Vec::new(), BTreeMap::<String, usize>::new());
    for _ in 0..count {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(ask.as_bytes()).await?;
        streams.push(stream);
    }
    for stream in &streams {
        let mut head = [0; 12];
        let peeked = tokio::time::timeout(Duration::from_secs(30), stream.peek(&mut head)).await;
        let answer = match peeked {
            Ok(Ok(12)) => String::from_utf8_lossy(&head[9..]).into_owned(),
            Ok(Ok(_)) => "closed".to_owned(),
            Ok(Err(error)) => error.kind().to_string(),
            Err(_) => "no answer".to_owned(),
        };
        *answers.entry(answer).or_default() += 1;
    }
    let told: Vec<String> = answers.iter().map(|(answer, count)| format!("{count} × {answer}")).collect();
    println!("{}", told.join(", "));
    tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new())).await??;
    Ok(())
}

async fn measure(streams: u64, seconds: u64, descriptors: u64) -> Outcomes<()> {
    let folder = tempfile::tempdir()?;
    let (send, late) = channel();
    let mut config = NodeConfig::new(folder.path().join("runs"), vec!["false".into()]);
    config.executors = Executors::default().with(INSTANT, Clocked(send));
    let store = Box::new(SqliteStore::open(folder.path().join("kelos.db"))?);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    // The clients keep the limit of before.
    let mut clients = clients(&address.to_string(), streams)?;
    setrlimit(Resource::Nofile, Rlimit { current: Some(descriptors), ..getrlimit(Resource::Nofile) })?;
    let node = Node::start(config, store, tokio::runtime::Handle::current())?;
    let leads = |status: &Status| matches!(status, Status::Leading { .. });
    node.handle().watch_status().wait_for(leads).await?;
    fill(&node).await?;
    let schedule = CronSchedule::utc("* * * * * ?".parse()?);
    let mut by_second =
        Workflow::new("by-second".parse()?, Schedule::Cron(schedule), Job::new(INSTANT, serde_json::Map::new()));
    by_second.start_time = Some(Timestamp::now());
    node.handle().define(vec![by_second.into()], BTreeMap::new())?;
    let limits = Limits::of_process();
    let limiter = Limiter::new(LimitSettings::default().quota(limits.connections));
    let app = App::new(node.clone(), "bench").with_limiter(limiter);
    tokio::spawn(kelos_server::serve(listener, router(app), limits, std::future::pending()));
    println!("{descriptors} descriptors, {EVENTS} events");
    let taken = Duration::from_secs(seconds);
    tokio::task::spawn_blocking(move || -> Result<(), String> {
        println!("without streams: {}", figures(&late, taken));
        let begun = clients.begin().map_err(|error| error.to_string())?;
        println!("beside {streams} streams that nobody reads: {}", figures(&late, taken));
        println!("they were answered: {}", begun.recv().map_err(|error| error.to_string())?);
        Ok(())
    })
    .await??;
    node.stop().await;
    Ok(())
}

/// Fills the log with events.
async fn fill(node: &Node) -> Outcomes<()> {
    let by = Actor::system("bench");
    let value = serde_json::Value::String("x".repeat(400));
    let asked = (0..EVENTS).map(|n| {
        let (bucket, key, value) = ("bench".to_owned(), format!("{n}"), Some(value.clone()));
        node.handle().ask(&by, SetRegister { bucket, key, value, reason: None })
    });
    futures_util::future::try_join_all(asked).await?;
    Ok(())
}

/// The process of the clients.
struct Clients(Child);

fn clients(address: &str, count: u64) -> std::io::Result<Clients> {
    let mut command = Command::new("sh");
    // They wait for a line before they begin.
    let script = "read begin; exec \"$0\" clients \"$1\" \"$2\"";
    command.args(["-c", script]).arg(std::env::current_exe()?).args([address, &count.to_string()]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map(Clients)
}

impl Clients {
    /// Has them open their streams. Gives the answers in words, once all have one.
    fn begin(&mut self) -> std::io::Result<Receiver<String>> {
        if let Some(input) = &mut self.0.stdin {
            input.write_all(b"begin\n")?;
        }
        let (send, told) = channel();
        let output = self.0.stdout.take();
        std::thread::spawn(move || {
            let mut line = String::new();
            let read = output.map(|output| BufReader::new(output).read_line(&mut line));
            drop(send.send(format!("{}{}", line.trim(), if read.is_none() { "nothing" } else { "" })));
        });
        Ok(told)
    }
}

impl Drop for Clients {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The delays of a time, with what the process uses.
fn figures(late: &Receiver<Duration>, taken: Duration) -> String {
    while late.try_recv().is_ok() {}
    let until = Instant::now() + taken;
    let (mut all, mut most) = (Vec::new(), [0; 3]);
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        all.extend(late.recv_timeout(left.min(Duration::from_millis(200))));
        most = std::array::from_fn(|place| most[place].max(usage()[place]));
    }
    all.sort();
    let at = |part: f64| all.get(((all.len().max(1) - 1) as f64 * part).round() as usize).copied().unwrap_or_default();
    let millis = |part: f64| at(part).as_secs_f64() * 1000.0;
    let [threads, megabytes, files] = most;
    format!(
        "{} starts, {:.1} ms late at p50, {:.1} at p99, {:.1} at most; {threads} threads, {megabytes} MB, {files} descriptors",
        all.len(),
        millis(0.5),
        millis(0.99),
        millis(1.0)
    )
}

/// The threads, the resident megabytes and the descriptors of this process.
fn usage() -> [usize; 3] {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let of = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        line.trim().trim_end_matches(" kB").parse::<usize>().unwrap_or_default()
    };
    let files = std::fs::read_dir("/proc/self/fd").map(Iterator::count).unwrap_or_default();
    [of("Threads:"), of("VmRSS:") / 1024, files]
}
