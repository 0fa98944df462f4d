//! `kelos source`: the file that a workflow was defined by, now or in an earlier version.

use comfy_table::Cell;
use kelos_wire::{ListDto, PastDefinitionDto, RunDto, WorkflowDetailDto};

use crate::address::{Query, escape, slot_path};
use crate::client::{Client, Reply};
use crate::connection::Connection;
use crate::failure::Failure;
use crate::options::Door;
use crate::render;
use crate::text as words;
use crate::times;

#[derive(clap::Args)]
pub(crate) struct SourceArgs {
    /// Workflow
    workflow: String,
    /// Version to show [default: the latest]
    #[arg(long, value_name = "N")]
    version: Option<u32>,
    /// Version that this run used [example: 2026-11-22T10:00Z#2]
    #[arg(long, value_name = "KEY#N", conflicts_with = "version")]
    run: Option<String>,
    /// List the versions instead
    #[arg(long, conflicts_with_all = ["version", "run"])]
    versions: bool,
    #[command(flatten)]
    door: Door,
}

pub(crate) fn run(args: &SourceArgs) -> Result<u8, Failure> {
    let client = Connection::open(&args.door)?;
    let doing = "read the definitions";
    let workflow = client.workflow(doing, &args.workflow)?;
    let id = &workflow.summary.id;
    let path = format!("/workflows/{}/definitions", escape(id));
    let past: Reply<ListDto<Reply<PastDefinitionDto>>> = client.get(doing, &path, &Query::new())?;
    if args.versions {
        return Ok(list(args, &past));
    }
    let version = args.run.as_ref().map(|run| version_of(&client, &workflow, run)).transpose()?.or(args.version);
    let wanted = |one: &&Reply<PastDefinitionDto>| version.is_none_or(|version| one.version == version);
    let Some(one) = past.items.iter().find(wanted) else {
        let known: Vec<String> = past.items.iter().map(|one| one.version.to_string()).collect();
        let fail = format!("show version {} of {}: there is none", version.unwrap_or_default(), id);
        return Err(Failure::bad(fail).hint(format!("there are: {}", known.join(", "))));
    };
    if args.door.form.json {
        words::json(one);
        return Ok(0);
    }
    let Some(source) = &one.source else {
        let fail = format!("show version {} of {}: its text was not kept", one.version, id);
        return Err(Failure::bad(fail).hint("--json prints the definition itself"));
    };
    words::print(source);
    Ok(0)
}

/// The version with which a run began.
fn version_of(client: &Client, workflow: &WorkflowDetailDto, run: &str) -> Result<u32, Failure> {
    let Some((key, number)) = run.rsplit_once('#') else {
        let fail = format!("find the run \"{run}\": expected its slot and its number");
        return Err(Failure::bad(fail).hint("such as 2026-11-22T10:00Z#2"));
    };
    let (doing, id) = ("read the run", &workflow.summary.id);
    let slot = slot_path(id, &client.key(doing, workflow, key)?);
    let found: RunDto = client.get(doing, &format!("{slot}/runs/{}", escape(number)), &Query::new())?;
    let unknown = || Failure::bad(format!("show the definition of {id}@{run}: the log does not say which it was"));
    found.definition_version.ok_or_else(unknown)
}

fn list(args: &SourceArgs, past: &Reply<ListDto<Reply<PastDefinitionDto>>>) -> u8 {
    if args.door.form.json {
        words::json(past);
        return 0;
    }
    let mut table = render::table(&["VERSION", "SINCE"]);
    for one in &past.items {
        table.add_row([Cell::new(one.version), Cell::new(times::since(one.at))]);
    }
    render::print(table);
    0
}
