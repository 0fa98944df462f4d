//! The cost of a connection: memory and processor time of a server with all its routes while clients connect, stay, and ask
//! once. Both ends are in this process, so the figures are upper bounds.
//!
//!     cargo run --release -p kelos-server --example connections -- 2000

use std::error::Error;
use std::time::{Duration, Instant};

use kelos::{Node, NodeConfig};
use kelos_front::App;
use kelos_server::{Limits, router};
use kelos_store::MemoryStore;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const ASK: &[u8] = b"GET /api/v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n";
/// More than the limits of most machines allow for two ends of each connection.
const MOST: usize = 100_000;

/// What the process has used so far: resident memory in kB, and time on all processors.
#[derive(Clone, Copy)]
struct Usage {
    resident: f64,
    processor: Duration,
}

impl Usage {
    fn now() -> Result<Usage, Box<dyn Error>> {
        let status = std::fs::read_to_string("/proc/self/status")?;
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS in the status")?;
        let resident = resident.trim().trim_end_matches(" kB").parse()?;
        // For each thread: nanoseconds on a processor, then two other numbers.
        let mut nanos = 0;
        for thread in std::fs::read_dir("/proc/self/task")? {
            let text = std::fs::read_to_string(thread?.path().join("schedstat")).unwrap_or_default();
            nanos += text.split(' ').next().and_then(|first| first.parse::<u64>().ok()).unwrap_or_default();
        }
        Ok(Usage { resident, processor: Duration::from_nanos(nanos) })
    }

    fn print_since(self, what: &str, connections: usize) -> Result<Usage, Box<dyn Error>> {
        let now = Usage::now()?;
        let each = |whole: f64| whole / connections as f64;
        println!(
            "{what}: {:.1} kB and {:.3} ms of processor for each of {connections} connections",
            each(now.resident - self.resident),
            each((now.processor - self.processor).as_secs_f64() * 1000.0)
        );
        Ok(now)
    }
}

async fn ask(stream: &mut TcpStream) -> Result<(), Box<dyn Error>> {
    stream.write_all(ASK).await?;
    let mut answer = [0; 4096];
    let read = stream.read(&mut answer).await?;
    match answer.get(..read) {
        Some(answer) if answer.starts_with(b"HTTP/1.1 200") => Ok(()),
        answer => Err(format!("the server answered {:?}", answer.map(String::from_utf8_lossy)).into()),
    }
}

async fn measure(connections: usize) -> Result<(), Box<dyn Error>> {
    let folder = std::env::temp_dir().join(format!("kelos-connections-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let config = NodeConfig::new(folder.clone(), vec!["false".into()]);
    let node = Node::start(config, Box::new(MemoryStore::new()), tokio::runtime::Handle::current())?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let app = App::new(node.clone(), "bench");
    let limits = Limits { connections: connections.min(MOST), ..Limits::of_process() };
    tokio::spawn(kelos_server::serve(listener, router(app), limits, std::future::pending()));
    ask(&mut TcpStream::connect(address).await?).await?;

    let begun = Usage::now()?;
    let mut streams = Vec::with_capacity(connections);
    for _ in 0..connections {
        streams.push(TcpStream::connect(address).await?);
    }
    // The last one is answered once all before it have been accepted.
    if let Some(last) = streams.last_mut() {
        ask(last).await?;
    }
    let idle = begun.print_since("connected, nothing asked", connections)?;
    for stream in &mut streams {
        ask(stream).await?;
    }
    idle.print_since("one request on each", connections)?;
    let more = Instant::now();
    ask(&mut TcpStream::connect(address).await?).await?;
    println!("one connection more than the limit: answered after {:.2} ms", more.elapsed().as_secs_f64() * 1000.0);
    drop(streams);
    node.stop().await;
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let connections = std::env::args().nth(1).map_or(Ok(400), |text| text.parse())?;
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(measure(connections))
}
