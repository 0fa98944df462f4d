//! `kelos pause` and `kelos resume`.

use kelos_wire::WorkflowDto;

use crate::address::escape;
use crate::client::Reply;
use crate::connection::Connection;
use crate::failure::Failure;
use crate::options::{Because, Door};
use crate::text as words;
use crate::{flow, selection};

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

#[derive(clap::Args)]
pub(crate) struct ResumeArgs {
    // Options of connections have a heading of their own, which what follows them would be under.
    /// Resume this run of the flow instead, by its name, time or job id: the steps that failed are done again, with what the others gave
    #[arg(long, value_name = "RUN", value_parser = selection::key)]
    run: Option<String>,
    /// Do this step again and all that come after it, whether they failed or not
    #[arg(long, value_name = "STEP", requires = "run")]
    from: Option<String>,
    #[command(flatten)]
    names: NamesArgs,
}

pub(crate) fn pause(args: &NamesArgs) -> Result<u8, Failure> {
    each(args, "pause", "paused")
}

pub(crate) fn resume(args: &ResumeArgs) -> Result<u8, Failure> {
    let ResumeArgs { names, run, from } = args;
    let Some(run) = run else { return each(names, "resume", "resumed") };
    match &names.workflows[..] {
        [workflow] => flow::resume(workflow, (run, from.as_ref()), &names.because, &names.door),
        _ => {
            Err(Failure::usage(format!("resume the run {run}: several workflows are named, expected the one it is of")))
        }
    }
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
