//! `kelos start`: a run of a workflow, now.

use kelos_wire::{SlotDto, StartRequest, StartedDto};

use crate::address::escape;
use crate::client::Reply;
use crate::connection::Connection;
use crate::failure::Failure;
use crate::options::{ArgumentOptions, Because, Door};
use crate::text as words;
use crate::{flow, render, selection};

#[derive(clap::Args)]
pub(crate) struct StartArgs {
    /// Id of a workflow, or of an event schedule
    workflow: String,
    #[command(flatten)]
    arguments: ArgumentOptions,
    /// Name of the run, such as order-42: a run of this name is started once
    #[arg(long, value_name = "NAME")]
    key: Option<String>,
    /// Do only this step of a flow again, as its run OF did it, with the arguments in the place of what it was given: load, or load:3 for
    /// an item of its list
    #[arg(long, value_name = "STEP", requires = "of")]
    step: Option<String>,
    /// Run of the flow whose step is done again; it has ended
    #[arg(long, value_name = "RUN", requires = "step", value_parser = selection::key, allow_hyphen_values = true)]
    of: Option<String>,
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
    let asked = body(&doing, &args.arguments, args.unconstrained, &args.because)?;
    let mut client = Connection::open(&args.door)?;
    let workflow = client.workflow(&doing, &args.workflow)?;
    let of = args.of.as_ref().map(|run| client.key(&doing, &workflow, run)).transpose()?;
    let (key, step, priority) = (args.key.clone(), args.step.clone(), args.priority);
    let body = StartRequest { key, step, of, priority, ..asked };
    let id = workflow.summary.id;
    let started: Reply<StartedDto> = client.post(&doing, &format!("/workflows/{}/start", escape(&id)), &body)?;
    if args.wait {
        return flow::follow(&mut client, &args.door, &id, &started.slot.slot.key.to_string());
    }
    if args.door.form.json {
        words::json(&started);
    } else {
        let (slot, before) = (&started.slot, if started.existed { ", and was started before" } else { "" });
        let state = slot.state.as_str();
        let again = args.step.as_deref().zip(args.of.as_deref());
        let again = again.map(|(step, of)| format!(", and does {of}.{step} again")).unwrap_or_default();
        words::line(format!("{} is {}{again}{before}", slot.slot, render::paint(state, state)));
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
