//! The command line: which commands there are, and what each of them is done by.
//!
//! A command has its arguments and what it does in a file of its own; options that several share are in `options.rs`.

use std::ffi::OsString;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::failure::Failure;
use crate::{
    accounts, alerts, backfill, backfills, calendar, capacity, change, check, completions, cron, deploy, doctor,
    examples, export, failures, flow, graph, groups, import, init, key, list, login, logs, man, new, nodes, overview,
    pause, plan, queue, relatives, remote_worker, run_job, schedule, schedules, schema, serve, shadow, source, sql,
    start, storage, stuck, submit, tell, test, types, up, verify, watch, why, worker, workers,
};

const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  failure: a check or a run failed, or the server refused the request
  2  usage error: unknown option, invalid time, missing folder
  3  no server is reachable
  4  the database is damaged: `kelos verify` says what, and can accept it

Clients use the server given by --server or KELOS_SERVER, else that of `kelos up`
in the current folder, else http://127.0.0.1:7437.

Times are now, -90m, -2d, today, yesterday, 06:00, \"yesterday 06:00\", 2016-01-01,
2016-01-01T12:00Z or 2016-01-01T12:00+02:00. Without an offset they are those of the time
zone of the workflow's schedule, or of --zone.
A workflow can be named by what follows the last dot of its name, if that is unique.";

/// The command line.
#[derive(Parser)]
#[command(name = "kelos", version, about = "A scheduler for recurring data jobs that explains every decision", after_help = EXIT_CODES, disable_help_subcommand = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Cli {
    /// Reads what was typed, or makes the help that was asked for.
    pub(crate) fn read(words: Vec<OsString>) -> Result<Cli, clap::Error> {
        let matches = overview::grouped(examples::added(Cli::command())).try_get_matches_from(words)?;
        Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut Cli::command()))
    }
}

/// Makes the commands out of lines that say what a command is for, its name, its arguments and the function that
/// does it.
macro_rules! commands {
    ($($(#[$about:meta])* $name:ident($args:ty) => $run:path,)*) => {
        /// The commands.
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
    /// Write a first project: a script, its tests, settings for editors
    Init(init::InitArgs) => init::run,
    /// Write a Rust program with jobs of its own
    New(new::NewArgs) => new::run,
    /// Run a folder of scripts, with its state kept in that folder
    Up(up::UpArgs) => up::run,
    /// Run a server, with the options of Celos
    Serve(serve::ServeArgs) => serve::run,
    /// Run jobs: of a folder without a server, where workers share its state and one of them leads; or of a server on another machine
    Worker(worker::WorkerArgs) => remote_worker::run,
    /// List the workers of a server
    Workers(workers::WorkersArgs) => workers::run,
    /// List open alerts, rules and channels; try a channel
    Alerts(alerts::AlertsArgs) => alerts::run,
    /// Run one job of an app and exit; the exit code is the outcome of the job
    Run(run_job::RunArgs) => run_job::run,
    /// Check a folder of scripts for problems, without running anything
    Check(check::CheckArgs) => check::run,
    /// Print the next times of a cron expression
    Cron(cron::CronArgs) => cron::run,
    /// Simulate a range: print its slots and their states, without running anything
    Plan(plan::PlanArgs) => plan::run,
    /// Deploy a project to where a server reads it, after checking everything
    Deploy(deploy::DeployArgs) => deploy::deploy,
    /// Remove a deployed project
    Undeploy(deploy::DeployArgs) => deploy::undeploy,
    /// Deploy or undeploy with the arguments of Celos's own tool
    #[command(hide = true)]
    Ci(deploy::DeployArgs) => deploy::ci,
    /// Print what a job waits for
    Parents(relatives::RelativesArgs) => relatives::parents,
    /// Print what waits for a job
    Children(relatives::RelativesArgs) => relatives::children,
    /// Test workflows on a virtual clock against test files
    Test(test::TestArgs) => test::run,
    /// List workflows
    #[command(alias = "status")]
    Ls(list::LsArgs) => list::workflows,
    /// List slots, newest first
    Slots(list::SlotsArgs) => list::slots,
    /// Submit jobs by id, together with their missing ancestors
    Submit(submit::SubmitArgs) => submit::run,
    /// Print how many jobs of an app could start, run, wait and have failed, for autoscalers
    Queue(queue::QueueArgs) => queue::run,
    /// List event schedules, with their pending slots and progress
    Schedules(schedules::SchedulesArgs) => schedules::run,
    /// Add, update, enable, disable, delete, fire or explain an event schedule
    Schedule(schedule::ScheduleArgs) => schedule::run,
    /// Start a workflow now, without its trigger
    #[command(alias = "trigger")]
    Start(start::StartArgs) => start::run,
    /// List the steps of a run of a flow, with what each waits for
    Steps(flow::StepsArgs) => flow::steps,
    /// Give a run of a flow a signal that a step waits for, now or later
    Signal(flow::SignalArgs) => flow::signal,
    /// Publish a fact that triggers wait for: new partitions, the end of a run, a signal
    Tell(tell::TellArgs) => tell::run,
    /// List published facts, newest first
    Facts(tell::FactsArgs) => tell::facts,
    /// Explain the state of a slot: what it waits for, or why it ended
    Why(why::WhyArgs) => why::run,
    /// Print the dependency graph, or what blocks a slot upstream
    Graph(graph::GraphArgs) => graph::run,
    /// List unrepaired failures, latest first, each with the slots that wait for it
    Failures(failures::FailuresArgs) => failures::run,
    /// List stuck slots, worst first: late, in back-off, running for long, failed or paused
    Stuck(stuck::StuckArgs) => stuck::run,
    /// Print how much of each day is done, by the times of slots
    Calendar(calendar::CalendarArgs) => calendar::run,
    /// Print the script that defines a workflow, now or in an earlier version
    Source(source::SourceArgs) => source::run,
    /// Print the output of a run
    Logs(logs::LogsArgs) => logs::run,
    /// Rerun slots that have ended, or run ones that were never planned
    Rerun(change::RerunArgs) => change::rerun,
    /// Kill slots and their runs; a slot without a run will never start
    Kill(change::ChangeArgs) => change::kill,
    /// Skip slots that have not ended, and kill their runs
    Skip(change::SkipArgs) => change::skip,
    /// Mark slots without a live run as succeeded, so that downstream slots can start
    Mark(change::MarkArgs) => change::mark,
    /// Pause workflows: nothing is planned or started until they are resumed
    Pause(pause::NamesArgs) => pause::pause,
    /// Resume paused or frozen workflows, or with --run a run of a flow that has ended
    Resume(pause::ResumeArgs) => pause::resume,
    /// Run the slots of a past range, and show their progress
    Backfill(backfill::BackfillArgs) => backfill::run,
    /// List backfills; show, pause, resume, prioritise, rerun or cancel one
    Backfills(backfills::BackfillsArgs) => backfills::run,
    /// Print who holds permits (global limit, pools, workflows at their limit), and who waits for them
    Capacity(capacity::CapacityArgs) => capacity::run,
    /// List the nodes that share a log: which one leads, since when and why, and how far the others have followed
    Nodes(nodes::NodesArgs) => nodes::run,
    /// Move the data of a server to a log that several nodes share, or back
    Move(nodes::MoveArgs) => nodes::move_data,
    /// Say what a node has that its log has lost, put it back, or accept the loss
    Recover(nodes::RecoverArgs) => nodes::recover,
    /// Print or set the groups of workflows on the board
    Groups(groups::GroupsArgs) => groups::run,
    /// List, add, change or remove users
    User(accounts::UserArgs) => accounts::user,
    /// List, add or revoke tokens of programs
    Token(accounts::TokenArgs) => accounts::token,
    /// List what people and programs did: who, from where, by which credential
    Audit(accounts::AuditArgs) => accounts::audit,
    /// Keep a token for a server, for the other commands
    Login(login::LoginArgs) => login::login,
    /// Forget and revoke the token that was kept for a server
    Logout(login::LogoutArgs) => login::logout,
    /// Print who you are to a server, and what you may do there
    Whoami(login::WhoamiArgs) => login::whoami,
    /// Print the event log
    Events(watch::EventsArgs) => watch::run,
    /// Query the data with SQL: slots, runs, events and more, as a table, JSON or CSV
    Sql(sql::SqlArgs) => sql::run,
    /// Import the state of another scheduler; only while no server runs
    Import(import::ImportArgs) => import::run,
    /// Export the state for another scheduler, or the log for whoever verifies it without Kelos
    Export(export::ExportArgs) => export::run,
    /// Verify the integrity of the database: turns, log, slots, checksums. Can accept a damaged one or an old backup
    Verify(verify::VerifyArgs) => verify::run,
    /// Print what takes how much, how long history is kept, and what goes next
    Storage(storage::StorageArgs) => storage::run,
    /// Look for what is wrong with an installation: clock, disk, permissions, store, versions, scripts, endpoints, workers, delays
    Doctor(doctor::DoctorArgs) => doctor::run,
    /// Print the public key by which checkpoints of the log are verified
    Key(key::KeyArgs) => key::run,
    /// Run in parallel with a live Celos without acting, and report every slot on which the two disagree
    Shadow(shadow::ShadowArgs) => shadow::run,
    /// Print kelos.d.ts, the type definitions of the script API for editors
    Types(types::TypesArgs) => types::run,
    /// Print the JSON schema of a file, for editors: that of --config, tasks.json or identifiers.json
    Schema(schema::SchemaArgs) => schema::run,
    /// Print completions for a shell
    Completions(completions::CompletionsArgs) => completions_of,
    /// Write the manual pages, one for each command
    #[command(hide = true)]
    Man(man::ManArgs) => manual_of,
    /// Print the names of workflows that complete a command line
    #[command(hide = true)]
    Complete(completions::CompleteArgs) => complete,
}

/// The completions of all of this command line, which only this module knows.
fn completions_of(args: &completions::CompletionsArgs) -> Result<u8, Failure> {
    completions::run(args, &mut Cli::command())
}

/// The manual of all of this command line.
fn manual_of(args: &man::ManArgs) -> Result<u8, Failure> {
    man::run(args, Cli::command())
}

fn complete(args: &completions::CompleteArgs) -> Result<u8, Failure> {
    let mut command = Cli::command();
    command.build();
    completions::complete(args, &command)
}
