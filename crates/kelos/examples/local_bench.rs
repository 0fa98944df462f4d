//! Prints how long local commands take, one after the other and side by side: `cargo run --release
//! --example local_bench`.

use std::time::{Duration, Instant};

use kelos::local::{Launcher, Limits, RunRef, RunSpec, own_shim, shim_main};

const SEQUENTIAL: u64 = 40;
const SIDE_BY_SIDE: u64 = 100;
const ROUNDS: usize = 5;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    if std::env::args_os().nth(1).is_some_and(|arg| arg == "__shim") {
        std::process::exit(shim_main());
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let root = std::env::temp_dir().join(format!("kelos-local-bench-{}", std::process::id()));
    let launcher = Launcher::new(&root, own_shim(), Limits::default())?;
    for round in 1..=ROUNDS {
        let sequential = runtime.block_on(sequential(&launcher, round))?;
        let side_by_side = runtime.block_on(side_by_side(&launcher, round))?;
        println!(
            "round {round}: {SEQUENTIAL} in sequence {:.0} ms, {SIDE_BY_SIDE} side by side {:.0} ms",
            millis(sequential),
            millis(side_by_side)
        );
    }
    std::fs::remove_dir_all(&root)?;
    Ok(())
}

async fn sequential(launcher: &Launcher, round: usize) -> Result<Duration, Box<dyn std::error::Error>> {
    let begin = Instant::now();
    for number in 0..SEQUENTIAL {
        run_one(launcher.clone(), format!("sequential-{round}"), number).await?;
    }
    Ok(begin.elapsed())
}

async fn side_by_side(launcher: &Launcher, round: usize) -> Result<Duration, Box<dyn std::error::Error>> {
    let begin = Instant::now();
    let mut runs = tokio::task::JoinSet::new();
    for number in 0..SIDE_BY_SIDE {
        let (launcher, workflow) = (launcher.clone(), format!("side-by-side-{round}"));
        runs.spawn(async move { run_one(launcher, workflow, number).await.map_err(|error| error.to_string()) });
    }
    while let Some(result) = runs.join_next().await {
        result??;
    }
    Ok(begin.elapsed())
}

async fn run_one(launcher: Launcher, workflow: String, number: u64) -> Result<(), Box<dyn std::error::Error>> {
    let run = RunRef::new(workflow, "key", number);
    launcher.start(&RunSpec::new(run.clone(), run.to_string(), ["true"])).await?;
    let exit = launcher.wait(&run).await?;
    if exit.is_success() { Ok(()) } else { Err(format!("run {run} ended with {exit:?}").into()) }
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}
