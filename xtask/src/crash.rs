//! `cargo xtask crash`: a busy server that is killed with SIGKILL again and again must neither lose nor repeat anything.
//!
//! Each command writes a line into a ledger when it starts and when it ends. In the end the ledger,
//! the server's list of runs, and the definitions must agree.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::workspace::Outcome;

#[derive(clap::Args)]
pub(crate) struct CrashArguments {
    /// How often the server is killed.
    #[arg(long, default_value_t = 20)]
    kills: u32,
    /// The program.
    #[arg(long, default_value = "target/release/kelos")]
    program: PathBuf,
    /// The seed of the moments of the kills.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Pairs of workflows with a slot each five minutes over a week; one in seven fails at first, and the
/// second of a pair waits for the first.
const SCRIPT: &str = r#"
function busy(id, trigger) {
    celos.defineWorkflow({
        "id": id,
        "schedule": celos.cronSchedule("0 0/5 * * * ?"),
        "schedulingStrategy": celos.serialSchedulingStrategy(6),
        "trigger": trigger,
        "retry": { "count": 3, "delaySeconds": 1 },
        "externalService": celos.commandExternalService({
            "shell": "echo \"start $KELOS_SLOT $KELOS_RUN\" >> ledger; sleep 0.0${minute#?}; " +
                "echo \"end $KELOS_SLOT $KELOS_RUN\" >> ledger; " +
                "[ $KELOS_RUN -gt 1 ] || [ $(( (1$hour + 1$minute) % 7 )) -ne 0 ]"
        })
    });
}
for (var pair = 1; pair <= PAIRS; pair++) {
    busy("first-" + pair, celos.alwaysTrigger());
    busy("second-" + pair, celos.successTrigger("first-" + pair));
}
"#;

/// How long everything may take once the kills are over.
const PATIENCE: Duration = Duration::from_secs(600);

pub(crate) fn run(arguments: &CrashArguments) -> ExitCode {
    match crash(arguments) {
        Ok(told) => {
            println!("{told}");
            ExitCode::SUCCESS
        }
        Err(wrong) => {
            eprintln!("failed to hold: {wrong}");
            ExitCode::FAILURE
        }
    }
}

fn crash(arguments: &CrashArguments) -> Outcome<String> {
    let program = fs::canonicalize(&arguments.program).map_err(|error| {
        format!("find {}: {error}; build it with: cargo build --release -p kelos-cli", arguments.program.display())
    })?;
    let folder = std::env::temp_dir().join(format!("kelos-crash-{}", std::process::id()));
    fs::create_dir_all(folder.join("workflows")).map_err(words)?;
    // Enough to do for the server to be busy until the last kill.
    let script = format!("var PAIRS = {};\n{SCRIPT}", 1 + arguments.kills / 40);
    fs::write(folder.join("workflows/busy.js"), script).map_err(words)?;
    let mut server = start(&program, &folder)?;
    let mut draw = arguments.seed;
    for _ in 0..arguments.kills {
        draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        std::thread::sleep(Duration::from_millis(50 + (draw >> 33) % 900));
        server.kill().map_err(words)?;
        server.wait().map_err(words)?;
        server = start(&program, &folder)?;
    }
    let slots = settle(&folder)?;
    let told = judge(&folder, &slots, arguments.kills);
    let _ = server.kill();
    let _ = server.wait();
    if told.is_ok() {
        let _ = fs::remove_dir_all(&folder);
    }
    told.map_err(|wrong| format!("{wrong}; the evidence is in {}", folder.display()))
}

fn words(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn start(program: &Path, folder: &Path) -> Outcome<Child> {
    let log = fs::OpenOptions::new().create(true).append(true).open(folder.join("server.log")).map_err(words)?;
    let errors = log.try_clone().map_err(words)?;
    Command::new(program)
        .args(["up", "."])
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(log)
        .stderr(errors)
        .spawn()
        .map_err(words)
}

/// Asks the server whose address the folder names, until it answers.
fn get(folder: &Path, path: &str) -> Outcome<Value> {
    let until = Instant::now() + PATIENCE;
    loop {
        let answer = ask(folder, path);
        if answer.is_ok() || Instant::now() > until {
            return answer;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn ask(folder: &Path, path: &str) -> Outcome<Value> {
    let place = fs::read_to_string(folder.join(".kelos/server.json")).map_err(words)?;
    let place: Value = serde_json::from_str(&place).map_err(words)?;
    let address = place["address"].as_str().ok_or("no address in server.json")?;
    let mut answer = ureq::get(format!("{address}/api/v1{path}")).call().map_err(words)?;
    serde_json::from_str(&answer.body_mut().read_to_string().map_err(words)?).map_err(words)
}

/// Every page of a list.
fn pages(folder: &Path, path: &str) -> Outcome<Vec<Value>> {
    let mut rows = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = get(folder, &format!("{path}{cursor}"))?;
        rows.extend(page["items"].as_array().cloned().ok_or_else(|| format!("no items in {page}"))?);
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return Ok(rows),
        }
    }
}

/// Waits until no slot is live, and returns all slots.
fn settle(folder: &Path) -> Outcome<Vec<Value>> {
    let until = Instant::now() + PATIENCE;
    loop {
        let slots = pages(folder, "/slots?limit=1000")?;
        let done = slots.iter().filter(|slot| slot["state"] == "succeeded").count();
        if done == slots.len() && done > 1000 {
            return Ok(slots);
        }
        if Instant::now() > until {
            let other = slots.iter().find(|slot| slot["state"] != "succeeded");
            return Err(format!("{done} of {} slots succeeded; one that did not: {other:?}", slots.len()));
        }
        std::thread::sleep(Duration::from_millis(500));
    }
}

fn judge(folder: &Path, slots: &[Value], kills: u32) -> Outcome<String> {
    let ledger = fs::read_to_string(folder.join("ledger")).map_err(words)?;
    let mut lines: BTreeMap<&str, u32> = BTreeMap::new();
    for line in ledger.lines() {
        *lines.entry(line).or_default() += 1;
    }
    if let Some((line, times)) = lines.iter().find(|(_, times)| **times != 1) {
        return Err(format!("\"{line}\" stands {times} times in the ledger"));
    }
    let runs = pages(folder, "/runs?limit=1000")?;
    if let Some(unknown) = runs.iter().find(|run| run["state"] == "unknown") {
        return Err(format!("the outcome of a run is unknown: {unknown}"));
    }
    let (started, ended) = lines.keys().partition::<Vec<&str>, _>(|line| line.starts_with("start "));
    if started.len() != ended.len() || started.len() != runs.len() {
        return Err(format!(
            "{} commands started, {} ended, the server knows {} runs",
            started.len(),
            ended.len(),
            runs.len()
        ));
    }
    let failed = runs.iter().filter(|run| run["state"] == "failed").count();
    if runs.len() - failed != slots.len() {
        return Err(format!("{} slots, {} runs that succeeded", slots.len(), runs.len() - failed));
    }
    Ok(format!(
        "{kills} kills: {} slots succeeded, {} runs ({failed} failed and were tried again), each executed once and accounted for once",
        slots.len(),
        runs.len(),
    ))
}
