//! `kelos shadow`: run beside a live Celos without acting, and say where the two disagree.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use kelos_door_celos::celos_db::Database;
use kelos_door_celos::shadow::{
    ComparisonReport, Difference, Shadow, ShadowParts, Theirs, asked_until, read_list, read_slots,
};
use kelos_engine::clock::{system_clock, whole_millis};
use kelos_model::WorkflowId;
use kelos_model::time::format_full;
use kelos_sandbox::Folders;
use kelos_storage::Storage;
use serde_json::json;
use tokio::runtime::Runtime;
use ureq::Agent;

use crate::address::escape;
use crate::failure::{BAD, Failure, UNREACHABLE};
use crate::options::{CELOS_DEFAULTS, CELOS_WORKFLOWS};
use crate::text::{self, count, to_the_second};
use crate::trust::{TrustOptions, storage_config};
use crate::{agent, apps, folder, logging};

#[derive(clap::Args)]
pub(crate) struct ShadowArgs {
    /// Address of the Celos server, such as http://celos:8080; requests to it only read
    #[arg(value_name = "URL")]
    celos: String,
    /// Its workflows directory
    #[arg(long, value_name = "PATH", default_value = CELOS_WORKFLOWS, value_hint = clap::ValueHint::DirPath)]
    workflows: PathBuf,
    /// Its defaults directory
    #[arg(long, value_name = "PATH", default_value = CELOS_DEFAULTS, value_hint = clap::ValueHint::DirPath)]
    defaults: PathBuf,
    /// Its state database, if readable from here; needed for scripts that read registers
    #[arg(long, value_name = "PATH", value_hint = clap::ValueHint::DirPath)]
    registers: Option<PathBuf>,
    /// Exit after one answer: when everything agrees, or when a difference has lasted for the grace period
    #[arg(long, conflicts_with = "length")]
    once: bool,
    /// Time between two comparisons
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = text::duration)]
    every: SignedDuration,
    /// Stop after this time [default: run until interrupted]
    #[arg(long = "for", value_name = "DURATION", value_parser = text::duration)]
    length: Option<SignedDuration>,
    /// Grace period: ignore differences shorter than this; three steps of Celos is a good value
    #[arg(long, value_name = "DURATION", default_value = "3m", value_parser = text::duration)]
    grace: SignedDuration,
    /// Print JSON, one line per comparison
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    trust: TrustOptions,
}

/// How long Celos may take to answer: it answers nothing while it steps.
const PATIENCE: Duration = Duration::from_secs(300);

/// Longest answer that is read, in bytes.
const LONGEST_ANSWER: u64 = 64 << 20;

pub(crate) fn run(args: &ShadowArgs) -> Result<u8, Failure> {
    logging::start("warn", None)?;
    let celos = Celos::at(&args.celos, &args.trust)?;
    let folders = Folders {
        workflows: folder::existing("workflows directory", &args.workflows)?,
        defaults: folder::existing("defaults directory", &args.defaults)?,
    };
    let registers = match &args.registers {
        Some(database) => Database::open(database).map_err(|error| Failure::bad(error.to_string()))?.registers(),
        None => BTreeMap::new(),
    };
    let runtime = Runtime::new().map_err(|error| Failure::bad(format!("start threads: {error}")))?;
    let now = whole_millis(Timestamp::now());
    let parts = ShadowParts {
        format: apps::format(),
        folders,
        registers,
        storage: Storage::new(storage_config()?),
        runtime: runtime.handle().clone(),
        clock: system_clock(),
        grace: args.grace,
    };
    let shadow = Shadow::start(parts, &celos.all(now)?, now).map_err(|error| Failure::bad(error.to_string()))?;
    let code = watch(args, &celos, shadow, &runtime);
    // A look at a dead file system may hang in a thread; the process does not wait for it.
    runtime.shutdown_timeout(Duration::from_secs(2));
    code
}

/// Looks again and again, until the time is up.
fn watch(args: &ShadowArgs, celos: &Celos, mut shadow: Shadow, runtime: &Runtime) -> Result<u8, Failure> {
    let started = Instant::now();
    let every = Duration::try_from(args.every).unwrap_or_default();
    let until = args.length.and_then(|length| Duration::try_from(length).ok());
    let mut disagreed = false;
    loop {
        let now = whole_millis(Timestamp::now());
        let looked = match celos.all(now) {
            Ok(theirs) => {
                let looked = runtime.block_on(shadow.look(&theirs, asked_until(now)));
                Some(looked.map_err(|error| Failure::bad(error.to_string()))?)
            }
            // Celos may be down for a while; what differs is found out when it is back.
            Err(failure) if until.is_some_and(|until| started.elapsed() >= until) || args.once => return Err(failure),
            Err(failure) => {
                failure.print();
                None
            }
        };
        if let Some(looked) = &looked {
            disagreed |= !looked.differences.is_empty();
            tell(args, looked);
        }
        let settled = looked.is_some_and(|looked| looked.pending == 0);
        if (args.once && settled) || until.is_some_and(|until| started.elapsed() + every > until) {
            runtime.block_on(shadow.stop());
            return Ok(if disagreed { BAD } else { 0 });
        }
        std::thread::sleep(if args.once { every.min(grace(args)) } else { every });
    }
}

/// For one answer: looked at often enough to see what goes by itself.
fn grace(args: &ShadowArgs) -> Duration {
    let grace = Duration::try_from(args.grace).unwrap_or_default();
    (grace / 3).max(Duration::from_millis(100))
}

fn tell(args: &ShadowArgs, looked: &ComparisonReport) {
    if args.json {
        text::json(&json!(looked));
        return;
    }
    let fresh = looked.differences.iter().filter(|difference| difference.new);
    fresh.for_each(tell_difference);
    for over in &looked.over {
        text::line(format!("{}: over: {}", over.subject, over.difference));
    }
    let at = to_the_second(looked.at);
    let pending = match looked.pending {
        0 => String::new(),
        pending => format!(", {pending} may still settle"),
    };
    text::line(format!(
        "{at}  {} of {} agree, {}{pending}",
        count(looked.agreed, "slot"),
        count(looked.workflows, "workflow"),
        count(looked.differences.len(), "disagreement")
    ));
}

fn tell_difference(difference: &Difference) {
    let since = to_the_second(difference.since);
    text::line(format!("{}: {}, since {since}", difference.subject, difference.difference));
    for because in &difference.because {
        text::line(format!("    {because}"));
    }
}

/// A live Celos. It is only ever asked, never told: there is no way here to do anything but GET.
struct Celos {
    agent: Agent,
    base: String,
}

impl Celos {
    fn at(address: &str, trust: &TrustOptions) -> Result<Celos, Failure> {
        let base = if address.contains("://") { address.to_owned() } else { format!("http://{address}") };
        if !base.starts_with("http://") && !base.starts_with("https://") {
            return Err(Failure::usage(format!(
                "use the Celos at {base}: expected an address such as http://celos:8080"
            )));
        }
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .timeout_connect(Some(Duration::from_secs(5)))
            .timeout_global(Some(PATIENCE))
            .user_agent(concat!("kelos-shadow/", env!("CARGO_PKG_VERSION")))
            .build();
        let trust = base.starts_with("https://").then(|| trust.read()).transpose()?;
        let agent = agent::agent(config, trust.as_ref());
        Ok(Celos { agent, base: base.trim_end_matches('/').to_owned() })
    }

    /// All that it says of the slots before a moment.
    fn all(&self, now: Timestamp) -> Result<Theirs, Failure> {
        let list = self.get("/workflow-list")?.and_then(|answer| read_list(&answer));
        let ids = list.map_err(|why| Failure::bad(format!("ask {} for its workflows: {why}", self.base)))?;
        ids.into_iter().map(|id| Ok((id.clone(), self.slots(&id, now)?))).collect()
    }

    fn slots(
        &self,
        id: &WorkflowId,
        now: Timestamp,
    ) -> Result<Result<kelos_door_celos::shadow::CelosWorkflow, String>, Failure> {
        let end = escape(&format_full(asked_until(now)));
        let answer = self.get(&format!("/workflow-slots?id={}&end={end}", escape(id.as_str())))?;
        Ok(answer.and_then(|answer| read_slots(&answer)))
    }

    /// An answer, or the words with which it was refused.
    fn get(&self, path: &str) -> Result<Result<String, String>, Failure> {
        let answer = self.agent.get(format!("{}{path}", self.base)).call().map_err(|error| self.silent(&error))?;
        let status = answer.status();
        let mut text = String::new();
        let read = answer.into_body().into_reader().take(LONGEST_ANSWER).read_to_string(&mut text);
        read.map_err(|error| self.silent(&ureq::Error::Io(error)))?;
        if status.is_success() {
            return Ok(Ok(text));
        }
        let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        let first: String = first.chars().take(200).collect();
        Ok(Err(format!("{status} {first}").trim().to_owned()))
    }

    fn silent(&self, error: &ureq::Error) -> Failure {
        if let Some(distrust) = agent::distrust(error) {
            let why = format!("trust Celos at {}: {}", self.base, distrust.reason);
            return Failure::new(UNREACHABLE, why).hint(distrust.hint);
        }
        Failure::new(UNREACHABLE, format!("get an answer from Celos at {}: {error}", self.base))
            .hint("expected the address of a Celos server that runs, such as http://celos:8080")
    }
}
