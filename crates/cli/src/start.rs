//! `kelos start`: a run of a workflow, now.

use kelos_wire::{SlotDto, StartRequest, StartedDto};

use crate::address::escape;
use crate::client::Reply;
use crate::connection::Connection;
use crate::failure::Failure;
use crate::options::{ArgumentOptions, Because, Door};
use crate::text as words;
use crate::{flow, render};

#[derive(clap::Args)]
pub(crate) struct StartArgs {
    /// Id of a workflow, or of an event schedule
    workflow: String,
    #[command(flatten)]
    arguments: ArgumentOptions,
    /// Name of the run, such as order-42: a run of this name is started once
    #[arg(long, value_name = "NAME")]
    key: Option<String>,
    /// Wait until the run has ended, and print the steps of a flow as they end; the exit code is the outcome
    #[arg(long)]
    wait: bool,
    /// Priority of the slot: larger runs first
    #[arg(long, default_value_t, value_name = "N", allow_negative_numbers = true)]
    priority: i32,
    /// Ignore constraints
    #[arg(long)]
    unconstrained: bool,
    #[command(flatten)]
    because: Because,
    #[command(flatten)]
    door: Door,
}

pub(crate) fn run(args: &StartArgs) -> Result<u8, Failure> {
    let doing = format!("start {}", args.workflow);
    let body = StartRequest {
        key: args.key.clone(),
        priority: args.priority,
        ..body(&doing, &args.arguments, args.unconstrained, &args.because)?
    };
    let mut client = Connection::open(&args.door)?;
    let id = client.workflow(&doing, &args.workflow)?.summary.id;
    let started: Reply<StartedDto> = client.post(&doing, &format!("/workflows/{}/start", escape(&id)), &body)?;
    if args.wait {
        return flow::follow(&mut client, &args.door, &id, &started.slot.slot.key.to_string());
    }
    if args.door.form.json {
        words::json(&started);
    } else {
        let (slot, before) = (&started.slot, if started.existed { ", and was started before" } else { "" });
        let state = slot.state.as_str();
        words::line(format!("{} is {}{before}", slot.slot, render::paint(state, state)));
    }
    Ok(0)
}

/// The body of a request for a run.
pub(crate) fn body(
    doing: &str,
    arguments: &ArgumentOptions,
    unconstrained: bool,
    because: &Because,
) -> Result<StartRequest, Failure> {
    let (arguments, reason) = (arguments.read(doing)?, because.reason.clone());
    Ok(StartRequest { arguments, unconstrained, reason, ..StartRequest::default() })
}

/// Says which slot goes.
pub(crate) fn tell(door: &Door, slot: &Reply<SlotDto>) {
    if door.form.json {
        return words::json(slot);
    }
    let state = slot.state.as_str();
    words::line(format!("{} is {}", slot.slot, render::paint(state, state)));
}
