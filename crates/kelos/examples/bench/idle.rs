//! What a node costs that has nothing to do: processor time and memory.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::SignedDuration;
use kelos::{Node, NodeConfig};
use kelos_engine::Status;
use kelos_engine::clock::{Clock, whole_millis};
use kelos_engine::executor::Executors;
use kelos_executors::local::own_shim;
use kelos_model::{SlotState, Workflow};
use kelos_sandbox::Folders;
use kelos_store::SlotFilter;
use kelos_store_sqlite::SqliteStore;

use crate::support::{
    BenchArguments, INSTANT, Instantly, Outcome, cpu, folder, load, millis, moment, resident_mb, runtime, workflow,
};

const WORKFLOWS: usize = 500;
const WEEK: usize = 168;
/// By then the store has given its memory back and the stamps of new files are trusted.
const SETTLES: Duration = Duration::from_secs(45);

/// Ten minutes past an hour, and on from there: no hour ends while this is measured.
fn quiet_clock() -> Clock {
    let begin = Instant::now();
    let base = moment("2026-01-08T00:10:00Z");
    Arc::new(move || {
        let passed = SignedDuration::try_from(begin.elapsed()).unwrap_or_default();
        whole_millis(base + passed)
    })
}

pub(crate) fn run(seconds: usize) -> Outcome {
    let folder = folder()?;
    let path = folder.path().join("kelos.db");
    let mut wanted = BenchArguments::new(&path);
    wanted.clock = quiet_clock();
    wanted.config.max_running = 4_096;
    let engine = wanted.start()?;
    engine.leads();
    let begin = Instant::now();
    engine.define((0..WORKFLOWS).map(hourly).collect());
    engine.until(None, SlotState::Succeeded, (WORKFLOWS * WEEK) as u64)?;
    println!("{} slots planned and run in {:.1?}", WORKFLOWS * WEEK, begin.elapsed());
    measure("engine alone", seconds);
    engine.stop();
    let scripts = folder.path().join("scripts");
    write_scripts(&scripts)?;
    let node = Started::node(folder.path(), Some(&scripts))?;
    let succeeded = SlotFilter::default();
    let counts = node.node.reader().slot_counts(&succeeded)?;
    println!("with a folder of {WORKFLOWS} scripts: {counts:?}");
    measure("node with scripts", seconds);
    node.stop();
    Ok(())
}

fn hourly(n: usize) -> Workflow {
    let mut hourly = workflow(&format!("hourly-{n:03}"), "0 0 * * * ?");
    hourly.start_time = Some(moment("2026-01-01T01:00:00Z"));
    hourly.concurrency = Some(1);
    hourly
}

/// The same workflows as scripts.
fn write_scripts(folder: &Path) -> Outcome {
    std::fs::create_dir_all(folder.join("workflows"))?;
    std::fs::create_dir_all(folder.join("defaults"))?;
    for n in 0..WORKFLOWS {
        let text = format!(
            "celos.defineWorkflow({{\n    \"id\": \"hourly-{n:03}\",\n    \"schedule\": celos.hourlySchedule(),\n    \
             \"schedulingStrategy\": celos.serialSchedulingStrategy(),\n    \"trigger\": celos.alwaysTrigger(),\n    \
             \"startTime\": \"2026-01-01T01:00:00Z\",\n    \"maxRetryCount\": 0,\n    \
             \"externalService\": celos.commandExternalService({{\"command\": [\"/bin/true\"]}})\n}});\n"
        );
        std::fs::write(folder.join("workflows").join(format!("hourly-{n:03}.js")), text)?;
    }
    Ok(())
}

/// Lets it settle, and then counts what is spent.
pub(crate) fn measure(what: &str, seconds: usize) {
    std::thread::sleep(SETTLES);
    let (before, begin) = (cpu(), Instant::now());
    std::thread::sleep(Duration::from_secs(seconds as u64));
    let (after, passed) = (cpu(), begin.elapsed());
    let a_minute = 60.0 / passed.as_secs_f64();
    let mut total = 0.0;
    let mut parts = Vec::new();
    for (thread, spent) in &after {
        let own = millis(spent.saturating_sub(before.get(thread).copied().unwrap_or_default())) * a_minute;
        total += own;
        if own > 0.01 {
            parts.push(format!("{thread} {own:.2}"));
        }
    }
    println!(
        "{what}: {total:.2} ms of processor a minute ({}), over {passed:.0?}; {:.0} MB resident; load {}",
        parts.join(", "),
        resident_mb(),
        load()
    );
}

/// A node and what it runs on.
struct Started {
    node: Node,
    runtime: tokio::runtime::Runtime,
}

impl Started {
    fn node(data: &Path, scripts: Option<&Path>) -> Outcome<Started> {
        let runtime = runtime()?;
        let mut config = NodeConfig::new(data.join("runs"), own_shim());
        config.folders =
            scripts.map(|folder| Folders { workflows: folder.join("workflows"), defaults: folder.join("defaults") });
        config.clock = quiet_clock();
        config.executors = Executors::default().with(INSTANT, Instantly::default());
        let store = SqliteStore::open(data.join("kelos.db"))?;
        let node = Node::start(config, Box::new(store), runtime.handle().clone())?;
        let mut status = node.handle().watch_status();
        let leads = status.wait_for(|status| matches!(status, Status::Leading { .. }));
        runtime.block_on(leads)?;
        Ok(Started { node, runtime })
    }

    fn stop(self) {
        self.runtime.block_on(self.node.stop());
        self.runtime.shutdown_timeout(Duration::from_secs(2));
    }
}

/// The memory of a node with ten workflows in a folder of scripts, after a week of their slots.
pub(crate) fn memory() -> Outcome {
    println!("{:.1} MB before anything is started", resident_mb());
    let folder = folder()?;
    let scripts = folder.path().join("scripts");
    write_scripts(&scripts)?;
    for n in 10..WORKFLOWS {
        std::fs::remove_file(scripts.join("workflows").join(format!("hourly-{n:03}.js")))?;
    }
    let begin = Instant::now();
    let node = Started::node(folder.path(), Some(&scripts))?;
    println!("{:.1} MB once it leads, after {:.0?}", resident_mb(), begin.elapsed());
    let ten = 10 * WEEK as u64;
    while node.node.reader().slot_counts(&SlotFilter::default())?.get(&SlotState::Succeeded).is_none_or(|n| *n < ten) {
        std::thread::sleep(Duration::from_millis(100));
    }
    println!("{:.1} MB after {ten} commands", resident_mb());
    std::thread::sleep(SETTLES);
    println!("{:.1} MB 15 s later", resident_mb());
    node.stop();
    Ok(())
}
