//! Permits within runs: how long requests of live functions take.

use std::time::{Duration, Instant};

use kelos::embed::{Context, Places, PlatformError, Project, Rate, Retry, RunningProject, job};

use crate::support::{Outcome, load, millis};

/// Runs that ask at the same time.
const RUNS: usize = 1_000;

async fn takes_tokens(context: Context, times: usize, rate: Rate) -> Result<(), PlatformError> {
    for _ in 0..times {
        let _token = context.on(&rate).await?;
    }
    Ok(())
}

async fn takes_places(context: Context, times: usize, places: Places) -> Result<(), PlatformError> {
    for _ in 0..times {
        let _place = context.on(&places).await?;
    }
    Ok(())
}

/// So many tokens of a rate that is no limit, and a tenth as many places, of runs that ask at the same time.
pub(crate) fn run(requests: usize) -> Outcome {
    tokio::runtime::Runtime::new()?.block_on(async {
        let rate = Rate::new("rate", 1_000_000, Duration::from_millis(1)).burst(1_000_000);
        let places = Places::new("places", 100);
        let config = kelos::Config { max_running: u32::MAX, ..kelos::Config::default() };
        let project = Project::new("within", "1")
            .config(config)
            .add(job("tokens", takes_tokens).with(rate.clone()).may_use(&rate).retry(Retry::never()).on_demand())
            .add(job("places", takes_places).with(places.clone()).may_use(&places).retry(Retry::never()).on_demand());
        let running = project.start().await?;
        for (job, requests, runs) in
            [("tokens", requests, RUNS), ("tokens", requests / 100, 1), ("places", requests / 10, RUNS)]
        {
            let time = through(&running, job, requests / runs, runs).await?;
            println!(
                "{requests} requests of {runs} runs for {job}: {:.0} ms, {:.1} µs each; load {}",
                millis(time),
                millis(time) * 1000.0 / requests as f64,
                load()
            );
        }
        running.stop().await;
        Ok(())
    })
}

async fn through(
    running: &RunningProject,
    job: &str,
    times: usize,
    runs: usize,
) -> Result<Duration, Box<dyn std::error::Error>> {
    let begin = Instant::now();
    let mut slots = Vec::new();
    for _ in 0..runs {
        slots.push(running.start(job, &times).await?);
    }
    for slot in &slots {
        let ended = running.end(slot).await?;
        if !ended.is_success() {
            return Err(format!("{slot} failed: {:?}", ended.reason()).into());
        }
    }
    Ok(begin.elapsed())
}
