//! `kelos start`: a run of a workflow, now.

use kelos_wire::{SlotDto, StartRequest};

use crate::address::escape;
use crate::client::Reply;
use crate::connection::Connection;
use crate::failure::Failure;
use crate::options::{ArgumentOptions, Because, Door};
use crate::render;
use crate::text as words;

#[derive(clap::Args)]
pub(crate) struct StartArgs {
    /// Id of a workflow, or of an event schedule
    workflow: String,
    #[command(flatten)]
    arguments: ArgumentOptions,
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
    let body =
        StartRequest { priority: args.priority, ..body(&doing, &args.arguments, args.unconstrained, &args.because)? };
    let client = Connection::open(&args.door)?;
    let id = client.workflow(&doing, &args.workflow)?.summary.id;
    let slot: Reply<SlotDto> = client.post(&doing, &format!("/workflows/{}/start", escape(&id)), &body)?;
    tell(&args.door, &slot);
    Ok(0)
}

/// The body of a request for a run.
pub(crate) fn body(
    doing: &str,
    arguments: &ArgumentOptions,
    unconstrained: bool,
    because: &Because,
) -> Result<StartRequest, Failure> {
    Ok(StartRequest { arguments: arguments.read(doing)?, priority: 0, unconstrained, reason: because.reason.clone() })
}

/// Says which slot goes.
pub(crate) fn tell(door: &Door, slot: &Reply<SlotDto>) {
    if door.form.json {
        return words::json(slot);
    }
    let state = slot.state.as_str();
    words::line(format!("{} is {}", slot.slot, render::paint(state, state)));
}
