//! `kelos pause` and `kelos resume`.

use kelos_wire::WorkflowDto;

use crate::address::escape;
use crate::client::Reply;
use crate::connection::Connection;
use crate::failure::Failure;
use crate::options::{Because, Door};
use crate::text as words;

#[derive(clap::Args)]
pub(crate) struct NamesArgs {
    /// Workflows
    #[arg(required = true)]
    workflows: Vec<String>,
    #[command(flatten)]
    because: Because,
    #[command(flatten)]
    door: Door,
}

pub(crate) fn pause(args: &NamesArgs) -> Result<u8, Failure> {
    each(args, "pause", "paused")
}

pub(crate) fn resume(args: &NamesArgs) -> Result<u8, Failure> {
    each(args, "resume", "resumed")
}

fn each(args: &NamesArgs, verb: &str, past: &str) -> Result<u8, Failure> {
    let client = Connection::open(&args.door)?;
    let (mut done, body) = (Vec::new(), args.because.body());
    for name in &args.workflows {
        let doing = format!("{verb} {name}");
        let id = client.workflow(&doing, name)?.summary.id;
        let answer: Reply<WorkflowDto> = client.post(&doing, &format!("/workflows/{}/{verb}", escape(&id)), &body)?;
        if !args.door.form.json {
            words::line(format!("{id} is {past}"));
        }
        done.push(answer);
    }
    if args.door.form.json {
        words::json_items(&done);
    }
    Ok(0)
}
