//! `kelos tell`: what happened outside, for triggers that wait for it.

use kelos_model::WorkflowId;
use kelos_wire::{FactDto, FactRequest, TellResultDto};

use crate::address::Query;
use crate::client::Reply;
use crate::connection::Connection;
use crate::failure::Failure;
use crate::options::{self, Door};
use crate::schedule;
use crate::text as words;
use crate::times;

#[derive(clap::Args)]
pub(crate) struct TellArgs {
    #[command(subcommand)]
    what: Report,
}

#[derive(clap::Subcommand)]
enum Report {
    /// New partitions of a dataset
    #[command(visible_alias = "partition")]
    Partitions(PartitionsArgs),
    /// The end of a run of a program
    Ended(EndedArgs),
    /// A signal
    Signal(SignalArgs),
}

/// The options of all facts.
#[derive(clap::Args)]
struct Common {
    /// Idempotency key: a fact that is published twice counts once
    #[arg(long)]
    key: Option<String>,
    /// Source of the fact, within which keys are unique [default: you]
    #[arg(long)]
    source: Option<String>,
    #[command(flatten)]
    door: Door,
}

#[derive(clap::Args)]
struct PartitionsArgs {
    /// Name of the dataset
    dataset: String,
    /// Number of partitions [default: as many as are named, or 1]
    number: Option<u32>,
    /// Name of a partition
    #[arg(long = "partition", value_name = "NAME")]
    partitions: Vec<String>,
    #[command(flatten)]
    common: Common,
}

#[derive(clap::Args)]
struct EndedArgs {
    /// Name of the program
    program: String,
    /// State of the run: succeeded (or completed), failed, killed
    state: String,
    /// Name of the run
    #[arg(long)]
    run: Option<String>,
    /// Argument that the run had
    #[arg(long = "argument", value_name = "NAME=VALUE")]
    arguments: Vec<String>,
    /// Output that the run gave
    #[arg(long = "output", value_name = "NAME=VALUE")]
    outputs: Vec<String>,
    #[command(flatten)]
    common: Common,
}

#[derive(clap::Args)]
struct SignalArgs {
    /// Name of the signal
    name: String,
    /// Payload of the signal
    #[arg(value_name = "JSON")]
    payload: Option<String>,
    #[command(flatten)]
    common: Common,
}

const DOING: &str = "publish the fact";

fn usage(why: String) -> Failure {
    Failure::usage(format!("{DOING}: {why}"))
}

pub(crate) fn run(args: &TellArgs) -> Result<u8, Failure> {
    let (fact, common) = match &args.what {
        Report::Partitions(args) => (args.fact(), &args.common),
        Report::Ended(args) => (args.fact()?, &args.common),
        Report::Signal(args) => (args.fact()?, &args.common),
    };
    let fact = FactRequest { key: common.key.clone(), source: common.source.clone(), ..fact };
    let told: Reply<TellResultDto> = Connection::open(&common.door)?.post(DOING, "/facts", &fact)?;
    if common.door.form.json {
        words::json(&told);
        return Ok(0);
    }
    words::line(if told.new > 0 { "told" } else { "already known, and counted once" });
    Ok(0)
}

impl PartitionsArgs {
    fn fact(&self) -> FactRequest {
        let keys = (!self.partitions.is_empty()).then(|| self.partitions.clone());
        FactRequest { dataset: Some(self.dataset.clone()), partitions: self.number, keys, ..FactRequest::default() }
    }
}

impl EndedArgs {
    fn fact(&self) -> Result<FactRequest, Failure> {
        let outputs = options::pairs(&self.outputs).map_err(usage)?;
        let arguments = options::pairs(&self.arguments).map_err(usage)?;
        Ok(FactRequest {
            program: Some(WorkflowId::new(&self.program).map_err(|error| usage(error.to_string()))?),
            state: Some(schedule::end(&self.state).map_err(usage)?.to_owned()),
            run: self.run.clone(),
            arguments: Some(arguments.into_iter().map(|(name, value)| (name, value.into())).collect()),
            outputs: Some(outputs.into_iter().map(|(name, value)| (name, value.into())).collect()),
            ..FactRequest::default()
        })
    }
}

impl SignalArgs {
    fn fact(&self) -> Result<FactRequest, Failure> {
        let payload = self.payload.as_ref().map(|text| {
            kelos_model::json::value(text.as_bytes())
                .map_err(|error| usage(format!("\"{text}\" is not JSON ({error}): quote a text, as in '\"monday\"'")))
        });
        Ok(FactRequest { signal: Some(self.name.clone()), payload: payload.transpose()?, ..FactRequest::default() })
    }
}

/// The selection of facts.
#[derive(clap::Args)]
pub(crate) struct FactsArgs {
    /// Only facts about this subject: partition:DATASET, ended:STATE:PROGRAM, signal:NAME
    #[arg(long, value_name = "WHAT")]
    about: Option<String>,
    /// Only facts of this source
    #[arg(long)]
    source: Option<String>,
    /// Show at most this many, newest first
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: usize,
    #[command(flatten)]
    door: Door,
}

pub(crate) fn facts(args: &FactsArgs) -> Result<u8, Failure> {
    let mut query = Query::new();
    query.add_some("about", args.about.as_ref());
    query.add_some("source", args.source.as_ref());
    let (rows, more) =
        Connection::open(&args.door)?.list::<Reply<FactDto>>("list the facts", "/facts", &query, args.limit.max(1))?;
    if args.door.form.json {
        words::json_rows(&rows, more);
        return Ok(0);
    }
    if rows.is_empty() {
        words::line("no facts");
        return Ok(0);
    }
    let mut table = crate::render::table(&["AT", "SOURCE", "KEY", "WHAT"]);
    for row in &rows {
        table.add_row([
            times::since(row.at),
            row.source.clone(),
            row.key.clone().unwrap_or_default(),
            row.what.clone(),
        ]);
    }
    crate::render::print(table);
    if more {
        words::line("and more; --limit N prints the others");
    }
    Ok(0)
}
