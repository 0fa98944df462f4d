//! The command line.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use jiff::{SignedDuration, Timestamp};

use crate::text;

const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  the thing asked about is bad or failed, or the server refused
  2  the command line makes no sense: unknown option, bad time, no such folder
  3  no server answers

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

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Run a folder of scripts: everything it needs is kept beside them
    Up(UpArgs),
    /// Run a server with Celos's options
    Serve(ServeArgs),
    /// Look for problems in a folder of scripts, without running anything
    Check(CheckArgs),
    /// Print the next times of a cron expression
    Cron(CronArgs),
    /// Print which slots would exist in a range and how they would move; nothing is run
    Plan(PlanArgs),
    /// Put a project in the place where a server reads it, after checking everything
    Deploy(DeployArgs),
    /// Take a project away
    Undeploy(DeployArgs),
    /// Deploy or undeploy with the arguments of Celos's own tool
    #[command(hide = true)]
    Ci(DeployArgs),
    /// Play workflows through over a virtual clock, and hold them against test files
    Test(TestArgs),
    /// List the workflows
    Ls(LsArgs),
    /// List slots, newest first
    Slots(SlotsArgs),
    /// Explain why a slot stands where it stands
    Why(WhyArgs),
    /// Print the output of a run
    Logs(LogsArgs),
    /// Open slots again that have ended, or open ones that were never planned
    Rerun(RerunArgs),
    /// End slots and their runs, or see to it that they never go
    Kill(ChangeArgs),
    /// Pass over slots that have not ended, and end their runs
    Skip(ChangeArgs),
    /// Take slots for succeeded that have no live run, so that what depends on them may go
    Mark(MarkArgs),
    /// Leave workflows alone: nothing of them is planned or started until they are resumed
    Pause(NamesArgs),
    /// End a pause
    Resume(NamesArgs),
    /// Open the slots of a range in the past, and watch them
    Backfill(BackfillArgs),
    /// Print what happened
    Events(EventsArgs),
    /// Take over the state of another scheduler; while no server runs
    Import(ImportArgs),
    /// Write the state for another scheduler, so that it can go on; while no server runs
    Export(ExportArgs),
    /// Run beside a live Celos without acting, and say slot by slot where the two disagree
    Shadow(ShadowArgs),
    /// Print kelos.d.ts: with it beside the scripts, editors complete and explain what they may use
    Types,
    /// Print completions for a shell
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
}

/// How to reach a server and how to answer.
#[derive(Args)]
pub(crate) struct Door {
    /// Address of the server
    #[arg(long, env = "KELOS_SERVER", value_name = "URL", hide_env_values = true)]
    pub(crate) server: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// What the scheduler of a server may use.
#[derive(Args)]
pub(crate) struct Tunables {
    /// Address to listen on
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub(crate) bind: IpAddr,
    /// How far back from now slots are planned
    #[arg(long, value_name = "DURATION", default_value = "7d", value_parser = text::duration)]
    pub(crate) planning_window: SignedDuration,
    /// Runs of all workflows side by side
    #[arg(long, value_name = "N", default_value_t = 256)]
    pub(crate) max_running: u32,
    /// Take deployments over HTTP: whoever reaches the port may then have any command run
    #[arg(long)]
    pub(crate) allow_deploy: bool,
    /// JSON file that groups workflows on the board [default: by project]
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub(crate) config: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct UpArgs {
    /// The folder: scripts in workflows/*.js or *.js, what they import in defaults/
    #[arg(default_value = ".", value_hint = clap::ValueHint::DirPath)]
    pub(crate) dir: PathBuf,
    /// Port to listen on [default: 7437, or a free one when that is taken]
    #[arg(long)]
    pub(crate) port: Option<u16>,
    #[command(flatten)]
    pub(crate) tunables: Tunables,
}

#[derive(Args)]
#[command(rename_all = "camelCase")]
pub(crate) struct ServeArgs {
    /// HTTP port
    #[arg(long)]
    pub(crate) port: u16,
    /// Workflows directory
    #[arg(long, value_name = "PATH", default_value = "/etc/celos/workflows", value_hint = clap::ValueHint::DirPath)]
    pub(crate) workflows: PathBuf,
    /// Defaults directory
    #[arg(long, value_name = "PATH", default_value = "/etc/celos/defaults", value_hint = clap::ValueHint::DirPath)]
    pub(crate) defaults: PathBuf,
    /// Logs directory: a file of JSON lines for each day [default: /var/log/celos, if it exists]
    #[arg(long, value_name = "PATH", value_hint = clap::ValueHint::DirPath)]
    pub(crate) logs: Option<PathBuf>,
    /// How many daily log files are kept
    #[arg(long, value_name = "DAYS", default_value = "30", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) log_days: u16,
    /// State database directory
    #[arg(long, value_name = "PATH", default_value = "/var/lib/celos/db", value_hint = clap::ValueHint::DirPath)]
    pub(crate) db: PathBuf,
    /// Schedule by itself, picking up changed scripts within this many seconds; without it, each step is
    /// waited for: POST /scheduler
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) auto_schedule: Option<u64>,
    #[command(flatten)]
    pub(crate) tunables: Tunables,
}

#[derive(Args)]
pub(crate) struct CheckArgs {
    /// The folder: scripts in workflows/*.js or *.js, what they import in defaults/
    #[arg(default_value = ".", value_hint = clap::ValueHint::DirPath)]
    pub(crate) dir: PathBuf,
    /// What the scripts import, where that is elsewhere
    #[arg(long, value_name = "PATH", value_hint = clap::ValueHint::DirPath)]
    pub(crate) defaults: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct CronArgs {
    /// Quartz expression of six or seven fields, such as "0 0 12 ? * MON-FRI"
    pub(crate) expression: String,
    /// Print times after this one [default: now]
    #[arg(long, value_name = "TIME", value_parser = text::time)]
    pub(crate) after: Option<Timestamp>,
    /// How many times
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub(crate) count: usize,
    /// Time zone in which the expression is read, such as Europe/Berlin [default: UTC]
    #[arg(long)]
    pub(crate) zone: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct PlanArgs {
    /// The folder: scripts in workflows/*.js or *.js, what they import in defaults/
    #[arg(default_value = ".", value_hint = clap::ValueHint::DirPath)]
    pub(crate) dir: PathBuf,
    /// What the scripts import, where that is elsewhere
    #[arg(long, value_name = "PATH", value_hint = clap::ValueHint::DirPath)]
    pub(crate) defaults: Option<PathBuf>,
    /// First moment of the range
    #[arg(long, value_name = "TIME", value_parser = text::time)]
    pub(crate) from: Timestamp,
    /// End of the range; a slot at this very moment is not in it
    #[arg(long, value_name = "TIME", value_parser = text::time)]
    pub(crate) to: Timestamp,
    /// Only print these workflows
    #[arg(long, value_name = "ID")]
    pub(crate) workflow: Vec<String>,
    /// Suppose that paths that start so are not there
    #[arg(long, value_name = "PATH-PREFIX")]
    pub(crate) without: Vec<String>,
    /// Suppose that each run takes this long
    #[arg(long, value_name = "SECONDS", default_value = "0", value_parser = text::duration)]
    pub(crate) run_time: SignedDuration,
    /// Print each slot with the time of each of its moves
    #[arg(long)]
    pub(crate) slots: bool,
    /// Runs of all workflows side by side
    #[arg(long, value_name = "N", default_value_t = 256)]
    pub(crate) max_running: u32,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// What Celos's own tool was told to do.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DeployMode {
    /// Put a project in its place
    Deploy,
    /// Take it away
    Undeploy,
    /// Run its tests
    Test,
}

#[derive(Args)]
#[command(rename_all = "camelCase")]
pub(crate) struct DeployArgs {
    /// What to do
    #[arg(long, value_enum, ignore_case = true, hide = true)]
    pub(crate) mode: Option<DeployMode>,
    /// Name of the project
    #[arg(long, value_name = "NAME", alias = "workflow-name")]
    pub(crate) workflow_name: String,
    /// The deployment directory: workflow.js, defaults.js, hdfs/
    #[arg(long, value_name = "PATH", alias = "deploy-dir", value_hint = clap::ValueHint::DirPath)]
    pub(crate) deploy_dir: Option<PathBuf>,
    /// The target file, a file: or sftp: URL; without it, the server deploys into its own folders
    #[arg(long, value_name = "URL")]
    pub(crate) target: Option<String>,
    /// Root of deployed folders in HDFS [default: /user/celos/app]
    #[arg(long, value_name = "PATH", alias = "hdfs-root")]
    pub(crate) hdfs_root: Option<String>,
    /// Leave HDFS as it is
    #[arg(long = "no-hdfs")]
    pub(crate) no_hdfs: bool,
    /// Only say what would change
    #[arg(long)]
    pub(crate) plan: bool,
    #[command(flatten)]
    pub(crate) door: Door,
}

#[derive(Args)]
pub(crate) struct TestArgs {
    /// Test files, or folders: those of a project are in tests/**/*.test.js and *.test.js
    #[arg(default_value = ".", value_name = "DIR|FILE", value_hint = clap::ValueHint::AnyPath)]
    pub(crate) paths: Vec<PathBuf>,
    /// The scripts that are tested [default: workflows/ of the nearest folder above a test that has it]
    #[arg(long, value_name = "PATH", value_hint = clap::ValueHint::DirPath)]
    pub(crate) workflows: Option<PathBuf>,
    /// What the scripts import, where that is elsewhere
    #[arg(long, value_name = "PATH", value_hint = clap::ValueHint::DirPath)]
    pub(crate) defaults: Option<PathBuf>,
    /// Only tests with this in their name, or in that of their file
    #[arg(long, value_name = "TEXT")]
    pub(crate) filter: Option<String>,
    /// Run the tests that run real commands, too; without it they are skipped
    #[arg(long)]
    pub(crate) real: bool,
    /// Leave the folders of real commands behind, and print where they are
    #[arg(long, requires = "real")]
    pub(crate) keep: bool,
    /// Write a report for CI servers
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub(crate) junit: Option<PathBuf>,
    /// Print warnings and more of each test
    #[arg(long, short)]
    pub(crate) verbose: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct LsArgs {
    /// Only workflows with this tag
    #[arg(long)]
    pub(crate) tag: Option<String>,
    #[command(flatten)]
    pub(crate) door: Door,
}

#[derive(Args)]
pub(crate) struct SlotsArgs {
    /// Only slots of this workflow
    pub(crate) workflow: Option<String>,
    /// Only slots in these states
    #[arg(long, value_name = "STATE", value_delimiter = ',', value_parser = state_parser())]
    pub(crate) state: Vec<String>,
    /// Only slots from this time on
    #[arg(long, value_name = "TIME", value_parser = text::time)]
    pub(crate) from: Option<Timestamp>,
    /// Only slots before this time
    #[arg(long, value_name = "TIME", value_parser = text::time)]
    pub(crate) to: Option<Timestamp>,
    /// How many at the most
    #[arg(long, value_name = "N", default_value_t = 50, conflicts_with = "all")]
    pub(crate) limit: usize,
    /// All of them
    #[arg(long)]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) door: Door,
}

fn state_parser() -> clap::builder::PossibleValuesParser {
    kelos_model::SlotState::ALL.map(kelos_model::SlotState::as_str).into()
}

#[derive(Args)]
pub(crate) struct WhyArgs {
    /// Whose slot
    pub(crate) workflow: String,
    /// Which slot
    #[arg(value_parser = text::time)]
    pub(crate) time: Timestamp,
    /// As it was at this moment [default: now]
    #[arg(long, value_name = "TIME", value_parser = text::time)]
    pub(crate) at: Option<Timestamp>,
    #[command(flatten)]
    pub(crate) door: Door,
}

#[derive(Args)]
pub(crate) struct LogsArgs {
    /// Whose slot
    pub(crate) workflow: String,
    /// Which slot
    #[arg(value_parser = text::time)]
    pub(crate) time: Timestamp,
    /// Which run, from 1 [default: the latest]
    #[arg(long, value_name = "N")]
    pub(crate) run: Option<u64>,
    /// Go on until the run has ended
    #[arg(short, long)]
    pub(crate) follow: bool,
    #[command(flatten)]
    pub(crate) door: Door,
}

#[derive(Args)]
pub(crate) struct ChangeArgs {
    /// Whose slots
    pub(crate) workflow: String,
    /// Which slots
    #[arg(value_parser = text::time, required_unless_present_all = ["from", "to"], conflicts_with_all = ["from", "to"])]
    pub(crate) times: Vec<Timestamp>,
    /// All existing slots that it can be done to, from this time on
    #[arg(long, value_name = "TIME", value_parser = text::time, requires = "to")]
    pub(crate) from: Option<Timestamp>,
    /// And before this time
    #[arg(long, value_name = "TIME", value_parser = text::time, requires = "from")]
    pub(crate) to: Option<Timestamp>,
    /// Why; goes into the history
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    #[command(flatten)]
    pub(crate) door: Door,
}

#[derive(Args)]
pub(crate) struct RerunArgs {
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
    /// Also rerun all slots that depend on them
    #[arg(long)]
    pub(crate) downstream: bool,
    /// Only say what would happen
    #[arg(long, requires = "downstream")]
    pub(crate) dry_run: bool,
    /// Kill those that are dispatched or running first; otherwise they are in the way
    #[arg(long, requires = "downstream")]
    pub(crate) kill_live: bool,
}

/// How a slot can be said to have ended.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Marked {
    /// What it was for is done
    Succeeded,
}

#[derive(Args)]
pub(crate) struct MarkArgs {
    /// Whose slots
    pub(crate) workflow: String,
    /// Which slots
    #[arg(value_parser = text::time, required = true, num_args = 1..)]
    pub(crate) times: Vec<Timestamp>,
    /// How they ended
    #[arg(value_enum)]
    pub(crate) state: Marked,
    /// Why; goes into the history
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    #[command(flatten)]
    pub(crate) door: Door,
}

#[derive(Args)]
pub(crate) struct NamesArgs {
    /// Which workflows
    #[arg(required = true)]
    pub(crate) workflows: Vec<String>,
    #[command(flatten)]
    pub(crate) door: Door,
}

/// Which existing slots a backfill opens again.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Mode {
    /// None: only slots that do not exist are planned
    Missing,
    /// Those that ended without success
    Unsuccessful,
    /// All that have ended
    All,
}

#[derive(Args)]
pub(crate) struct BackfillArgs {
    /// Whose slots
    pub(crate) workflow: String,
    /// First moment of the range
    #[arg(long, value_name = "TIME", value_parser = text::time)]
    pub(crate) from: Timestamp,
    /// End of the range; a slot at this very moment is not in it
    #[arg(long, value_name = "TIME", value_parser = text::time)]
    pub(crate) to: Timestamp,
    /// Which existing slots are opened again
    #[arg(long, value_enum, default_value_t = Mode::Missing)]
    pub(crate) mode: Mode,
    /// Larger goes first; below 0 goes after current work [default: -1]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) priority: Option<i32>,
    /// Its name [default: made of the workflow and the range]
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Only say what would happen
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Don't wait until it is done
    #[arg(long)]
    pub(crate) no_wait: bool,
    #[command(flatten)]
    pub(crate) door: Door,
}

#[derive(Args)]
pub(crate) struct EventsArgs {
    /// Only events of this workflow
    #[arg(long, value_name = "ID")]
    pub(crate) workflow: Option<String>,
    /// Go on with what happens from now on
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Only events after this position of the log [default: the last 50]
    #[arg(long, value_name = "POSITION")]
    pub(crate) after: Option<u64>,
    /// How many at the most
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) limit: usize,
    #[command(flatten)]
    pub(crate) door: Door,
}

/// Another scheduler.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum System {
    /// Celos: the folder that its server was given as --db
    Celos,
}

/// Whose data a command works on.
#[derive(Args)]
pub(crate) struct Place {
    /// The folder that `kelos up` runs
    #[arg(long, value_name = "PATH", default_value = ".", conflicts_with = "db", value_hint = clap::ValueHint::DirPath)]
    pub(crate) dir: PathBuf,
    /// The state database directory that `kelos serve` is given
    #[arg(long, value_name = "PATH", value_hint = clap::ValueHint::DirPath)]
    pub(crate) db: Option<PathBuf>,
    /// With --db: workflows directory
    #[arg(long, value_name = "PATH", default_value = "/etc/celos/workflows", value_hint = clap::ValueHint::DirPath)]
    pub(crate) workflows: PathBuf,
    /// With --db: defaults directory
    #[arg(long, value_name = "PATH", default_value = "/etc/celos/defaults", value_hint = clap::ValueHint::DirPath)]
    pub(crate) defaults: PathBuf,
}

#[derive(Args)]
pub(crate) struct ImportArgs {
    /// From which scheduler
    #[arg(value_enum)]
    pub(crate) _system: System,
    /// Its state database
    #[arg(value_name = "DATABASE", value_hint = clap::ValueHint::DirPath)]
    pub(crate) database: PathBuf,
    #[command(flatten)]
    pub(crate) place: Place,
    /// Only say what would happen
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Let unfinished slots wait again that Celos had forgotten because they were older than 7 days and not
    /// marked for rerun; without it they are expired
    #[arg(long)]
    pub(crate) revive_forgotten: bool,
    /// When the 7 days and the 14 days of a mark for rerun end [default: now]
    #[arg(long, value_name = "TIME", value_parser = text::time)]
    pub(crate) as_of: Option<Timestamp>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct ExportArgs {
    /// For which scheduler
    #[arg(value_enum)]
    pub(crate) _system: System,
    /// The folder to write; made where it is missing
    #[arg(value_name = "DATABASE", value_hint = clap::ValueHint::DirPath)]
    pub(crate) database: PathBuf,
    #[command(flatten)]
    pub(crate) place: Place,
    /// Write into a folder of something else, and replace files that say something else
    #[arg(long)]
    pub(crate) force: bool,
    /// Only say what would happen
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct ShadowArgs {
    /// Address of the Celos server, such as http://celos:8080; it is only ever asked
    #[arg(value_name = "URL")]
    pub(crate) celos: String,
    /// Its workflows directory
    #[arg(long, value_name = "PATH", default_value = "/etc/celos/workflows", value_hint = clap::ValueHint::DirPath)]
    pub(crate) workflows: PathBuf,
    /// Its defaults directory
    #[arg(long, value_name = "PATH", default_value = "/etc/celos/defaults", value_hint = clap::ValueHint::DirPath)]
    pub(crate) defaults: PathBuf,
    /// Its state database, where that can be read from here: for scripts that read registers
    #[arg(long, value_name = "PATH", value_hint = clap::ValueHint::DirPath)]
    pub(crate) registers: Option<PathBuf>,
    /// Answer once: when all agree, or when what differs has differed for as long as the grace
    #[arg(long, conflicts_with = "length")]
    pub(crate) once: bool,
    /// Wait between two looks
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = text::duration)]
    pub(crate) every: SignedDuration,
    /// End after this time [default: go on until stopped]
    #[arg(long = "for", value_name = "DURATION", value_parser = text::duration)]
    pub(crate) length: Option<SignedDuration>,
    /// What differs for a shorter time does not count: three of Celos's steps, mostly
    #[arg(long, value_name = "DURATION", default_value = "3m", value_parser = text::duration)]
    pub(crate) grace: SignedDuration,
    /// Print JSON, a line for each look
    #[arg(long)]
    pub(crate) json: bool,
}
