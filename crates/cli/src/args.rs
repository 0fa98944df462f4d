//! The command line: which commands there are, and what each of them is done by.
//!
//! A command has its arguments and what it does in a file of its own; options that several share are in `options.rs`.

use clap::{Parser, Subcommand};

use crate::failure::Failure;
use crate::{
    backfill, backfills, capacity, change, check, completions, cron, deploy, export, graph, groups, import, list, logs,
    pause, plan, relatives, run_job, schedule, schedules, serve, shadow, source, start, stuck, submit, tell, test,
    types, up, verify, watch, why, worker,
};

const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  the thing asked about is bad or failed, or the server refused
  2  the command line makes no sense: unknown option, bad time, no such folder
  3  no server answers
  4  what is stored is damaged: `kelos verify` says what, and goes on with it

A client finds the server by --server, by KELOS_SERVER, by the `kelos up` whose
folder it is in, or at http://127.0.0.1:7437. Times are in UTC, such as
2016-01-01T12:00Z, or `now`.";

/// What was typed.
#[derive(Parser)]
#[command(name = "kelos", version, about = "Plans, gates, runs and explains recurring data work", after_help = EXIT_CODES, disable_help_subcommand = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Makes the commands out of lines that say what a command is for, its name, its arguments and the function that
/// does it.
macro_rules! commands {
    ($($(#[$about:meta])* $name:ident($args:ty) => $run:path,)*) => {
        /// What is to be done.
        #[derive(Subcommand)]
        pub(crate) enum Command {
            $($(#[$about])* $name($args),)*
        }

        impl Command {
            /// The exit code, once it is done.
            pub(crate) fn run(&self) -> Result<u8, Failure> {
                match self {
                    $(Command::$name(args) => $run(args),)*
                }
            }
        }
    };
}

commands! {
    /// Run a folder of scripts: everything it needs is kept beside them
    Up(up::UpArgs) => up::run,
    /// Run a server with Celos's options
    Serve(serve::ServeArgs) => serve::run,
    /// Do jobs of a folder, without a server: any number of workers share its state, and one of them leads
    Worker(worker::WorkerArgs) => worker::run,
    /// Do one job of an app, and end; the exit code tells how the job ended
    Run(run_job::RunArgs) => run_job::run,
    /// Look for problems in a folder of scripts, without running anything
    Check(check::CheckArgs) => check::run,
    /// Print the next times of a cron expression
    Cron(cron::CronArgs) => cron::run,
    /// Print which slots would exist in a range and how they would move; nothing is run
    Plan(plan::PlanArgs) => plan::run,
    /// Put a project in the place where a server reads it, after checking everything
    Deploy(deploy::DeployArgs) => deploy::deploy,
    /// Take a project away
    Undeploy(deploy::DeployArgs) => deploy::undeploy,
    /// Deploy or undeploy with the arguments of Celos's own tool
    #[command(hide = true)]
    Ci(deploy::DeployArgs) => deploy::ci,
    /// Print what a job waits for
    Parents(relatives::RelativesArgs) => relatives::parents,
    /// Print what waits for a job
    Children(relatives::RelativesArgs) => relatives::children,
    /// Play workflows through over a virtual clock, and hold them against test files
    Test(test::TestArgs) => test::run,
    /// List the workflows
    Ls(list::LsArgs) => list::workflows,
    /// List slots, newest first
    Slots(list::SlotsArgs) => list::slots,
    /// Open jobs by their ids, with the ancestors that are missing
    Submit(submit::SubmitArgs) => submit::run,
    /// List the event schedules, with what each has pending and how far that is
    Schedules(schedules::SchedulesArgs) => schedules::run,
    /// Add, change, enable, disable, delete, fire or explain an event schedule
    Schedule(schedule::ScheduleArgs) => schedule::run,
    /// Start a workflow that has no schedule of its own
    Start(start::StartArgs) => start::run,
    /// Tell of something that triggers wait for: new partitions, the end of a run, a signal
    Tell(tell::TellArgs) => tell::run,
    /// List what was told, newest first
    Facts(tell::FactsArgs) => tell::facts,
    /// Explain why a slot stands where it stands
    Why(why::WhyArgs) => why::run,
    /// Print what depends on what, or what is in a slot's way upstream
    Graph(graph::GraphArgs) => graph::run,
    /// List what is stuck: late, in back-off, running for long, failed or paused; the worst first
    Stuck(stuck::StuckArgs) => stuck::run,
    /// Print the script that defines a workflow, now or in an earlier version
    Source(source::SourceArgs) => source::run,
    /// Print the output of a run
    Logs(logs::LogsArgs) => logs::run,
    /// Open slots again that have ended, or open ones that were never planned
    Rerun(change::RerunArgs) => change::rerun,
    /// End slots and their runs, or see to it that they never go
    Kill(change::ChangeArgs) => change::kill,
    /// Pass over slots that have not ended, and end their runs
    Skip(change::ChangeArgs) => change::skip,
    /// Take slots for succeeded that have no live run, so that what depends on them may go
    Mark(change::MarkArgs) => change::mark,
    /// Leave workflows alone: nothing of them is planned or started until they are resumed
    Pause(pause::NamesArgs) => pause::pause,
    /// End a pause
    Resume(pause::NamesArgs) => pause::resume,
    /// Open the slots of a range in the past, and watch them
    Backfill(backfill::BackfillArgs) => backfill::run,
    /// List the backfills, and pause, resume, prioritise, rerun or cancel one
    Backfills(backfills::BackfillsArgs) => backfills::run,
    /// Print who holds what runs need (all runs, pools, workflows at their limit), and who waits
    Capacity(capacity::CapacityArgs) => capacity::run,
    /// Print or set which workflows stand together on the board
    Groups(groups::GroupsArgs) => groups::run,
    /// Print what happened
    Events(watch::EventsArgs) => watch::run,
    /// Take over the state of another scheduler; while no server runs
    Import(import::ImportArgs) => import::run,
    /// Write the state for another scheduler, so that it can go on; while no server runs
    Export(export::ExportArgs) => export::run,
    /// Hold what is stored against itself: turns, log, slots, check values; after damage, or to go on with an old backup, take it as it is
    Verify(verify::VerifyArgs) => verify::run,
    /// Run beside a live Celos without acting, and say slot by slot where the two disagree
    Shadow(shadow::ShadowArgs) => shadow::run,
    /// Print kelos.d.ts: with it beside the scripts, editors complete and explain what they may use
    Types(types::TypesArgs) => types::run,
    /// Print completions for a shell
    Completions(completions::CompletionsArgs) => completions::run,
}
