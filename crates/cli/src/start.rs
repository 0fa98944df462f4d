//! `kelos start`: a run of a program, now.

use serde_json::{Value, json};

use crate::client::{Client, escape, slot as name, text};
use crate::failure::Failure;
use crate::options::{Because, Door, pairs};
use crate::render;
use crate::text as words;

#[derive(clap::Args)]
pub(crate) struct StartArgs {
    /// Id of a workflow without a schedule, or of an event schedule
    program: String,
    /// Argument of the run
    #[arg(long = "argument", value_name = "NAME=VALUE")]
    arguments: Vec<String>,
    /// Ignore constraints
    #[arg(long)]
    unconstrained: bool,
    #[command(flatten)]
    because: Because,
    #[command(flatten)]
    door: Door,
}

pub(crate) fn run(args: &StartArgs) -> Result<u8, Failure> {
    let doing = format!("start {}", args.program);
    let body = body(&doing, &args.arguments, args.unconstrained, &args.because)?;
    let slot = Client::new(&args.door)?.post(&doing, &format!("/workflows/{}/start", escape(&args.program)), &body)?;
    tell(&args.door, &slot);
    Ok(0)
}

/// What is wanted of a run.
pub(crate) fn body(
    doing: &str,
    arguments: &[String],
    unconstrained: bool,
    because: &Because,
) -> Result<Value, Failure> {
    let arguments = pairs(arguments).map_err(|why| Failure::usage(format!("{doing}: {why}")))?;
    let mut body = json!({ "arguments": arguments, "unconstrained": unconstrained });
    if let Some(reason) = &because.reason {
        body["reason"] = reason.as_str().into();
    }
    Ok(body)
}

/// Says which slot goes.
pub(crate) fn tell(door: &Door, slot: &Value) {
    if door.form.json {
        return words::json(slot);
    }
    let state = text(slot, "state");
    words::line(format!("{} is {}", name(slot), render::paint(state, state)));
}
