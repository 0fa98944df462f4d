//! Prints how long local commands take, one after the other and side by side: `cargo run --release
//! --example local_bench`.

#[path = "bench/floor.rs"]
mod floor;

use std::time::{Duration, Instant};

use kelos_executors::local::{Launcher, Limits, RunRef, RunSpec, own_shim, shim_main};

/// How many commands, whether side by side, and how often it is measured.
const CASES: [(u64, bool, usize); 4] = [(40, false, 5), (100, true, 5), (2_000, true, 3), (5_000, true, 3)];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    if std::env::args_os().nth(1).is_some_and(|arg| arg == "__shim") {
        std::process::exit(shim_main());
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    // Kept to the end: ext4 looks for inodes more slowly for some seconds after many were freed.
    let mut folders = Vec::new();
    for (commands, side_by_side, rounds) in CASES {
        let what = if side_by_side { "side by side" } else { "in sequence" };
        for _ in 0..rounds {
            let folder = tempfile::tempdir()?;
            // In pairs: the machine and its disk are not the same a minute later.
            let least = millis(floor::floor(folder.path(), commands, side_by_side)?);
            let launcher = Launcher::new(folder.path().join("runs"), own_shim(), Limits::default())?;
            let took = millis(runtime.block_on(all(launcher, commands, side_by_side))?);
            println!("{commands} commands {what}: {took:.0} ms, floor {least:.0} ms, ratio {:.2}", took / least);
            folders.push(folder);
        }
    }
    Ok(())
}

async fn all(launcher: Launcher, commands: u64, side_by_side: bool) -> Result<Duration, Box<dyn std::error::Error>> {
    let begin = Instant::now();
    let mut runs = tokio::task::JoinSet::new();
    for number in 0..commands {
        if side_by_side {
            let launcher = launcher.clone();
            runs.spawn(async move { run_one(launcher, number).await.map_err(|error| error.to_string()) });
        } else {
            run_one(launcher.clone(), number).await?;
        }
    }
    while let Some(result) = runs.join_next().await {
        result??;
    }
    Ok(begin.elapsed())
}

async fn run_one(launcher: Launcher, number: u64) -> Result<(), Box<dyn std::error::Error>> {
    let run = RunRef::new("flow", "key", number);
    launcher.start(&RunSpec::new(run.clone(), run.to_string(), ["/bin/true"])).await?;
    let exit = launcher.wait(&run).await?;
    if exit.is_success() { Ok(()) } else { Err(format!("run {run} ended with {exit:?}").into()) }
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}
