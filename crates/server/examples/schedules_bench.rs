//! What pages and lists of event schedules cost the server: `cargo run --release -p kelos-server --example schedules_bench [schedules]`.
//!
//! 10,000 schedules, some with a long past, in SQLite. Figures are of the machine they are measured on; nothing asserts them.

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::Request;
use jiff::Timestamp;
use kelos::{Node, NodeConfig};
use kelos_engine::Pace;
use kelos_front::App;
use kelos_server::router;
use kelos_store_sqlite::SqliteStore;
use tower::ServiceExt;

#[path = "../../kelos/examples/bench/schedules_past.rs"]
mod schedules_past;

type Answer<T = ()> = Result<T, Box<dyn Error>>;

const ROUNDS: usize = 20;
const NOW: i64 = 1_763_730_000;
/// Lists, the pages of one with a long past, of one with much pending, and of a program that a thousand run.
const ASKED: [&str; 19] = [
    "/ui/schedules",
    "/ui/schedules?after=9000",
    "/ui/schedules?find=s09999",
    "/ui/workflows/App0.s00000",
    "/ui/workflows/App0.s00001",
    "/ui/workflows/App0.s00001/slots/2025-11-21T13:00Z",
    "/ui/workflows/App5.s05000",
    "/ui/workflows/App0.P",
    "/ui/facts",
    "/api/v1/schedules",
    "/api/v1/schedules?limit=1000",
    "/api/v1/schedules?name=s00001",
    "/api/v1/schedules/App0.s00000",
    "/api/v1/schedules/App0.s00000/decisions",
    "/api/v1/schedules/App0.s00001/decisions",
    "/v3/namespaces/default/apps/App0/schedules",
    "/v3/namespaces/default/apps/App0/schedules/s00000",
    "/v3/namespaces/default/apps/App0/workflows/P/runs",
    "/v3/namespaces/default/schedules/trigger-type/program-status?trigger-namespace-id=default&trigger-app-name=App1\
     &trigger-program-type=workflows&trigger-program-name=P",
];

#[tokio::main]
async fn main() -> Answer {
    let schedules = std::env::args().nth(1).map_or(Ok(10_000), |count| count.parse())?;
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("kelos.db");
    let slots = schedules_past::fill(&path, schedules, Timestamp::from_second(NOW)?)?;
    println!("{schedules} event schedules, {slots} slots");
    let mut config = NodeConfig::new(folder.path().join("runs"), Vec::new());
    std::fs::create_dir(folder.path().join("runs"))?;
    config.pace = Pace::Stepped;
    config.clock = Arc::new(|| Timestamp::from_second(NOW).unwrap_or_default());
    let node = Node::start(config, Box::new(SqliteStore::open(&path)?), tokio::runtime::Handle::current())?;
    let router = router(App::new(node.clone(), "bench"));
    for uri in ASKED {
        page(&router, uri).await?;
    }
    node.stop().await;
    Ok(())
}

async fn page(router: &Router, uri: &str) -> Answer {
    let (mut taken, mut size) = (Vec::new(), 0);
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        let response = router.clone().oneshot(Request::get(uri).body(Body::empty())?).await?;
        let status = response.status();
        size = to_bytes(response.into_body(), usize::MAX).await?.len();
        if !status.is_success() {
            return Err(format!("{uri}: {status}").into());
        }
        taken.push(begun.elapsed());
    }
    tell(uri, taken, size);
    Ok(())
}

/// Prints the median and the worst of some rounds.
fn tell(what: &str, mut taken: Vec<Duration>, size: usize) {
    taken.sort();
    let worst = taken.last().copied().unwrap_or_default();
    println!("p50 {:>9.2?}  worst {worst:>9.2?}  {size:>9} bytes  {what}", taken[taken.len() / 2]);
}
