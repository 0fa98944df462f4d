//! `kelos run`: one job of an app, and then the end; the exit code tells how the job ended.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kelos::local_executors;
use kelos_engine::executor::{Executors, Reports, RunInput, Start};
use kelos_engine::job::{NoFunctions, filled};
use kelos_engine::secrets::Secrets;
use kelos_executors::local::Launcher;
use kelos_executors::run_ref;
use kelos_executors::workers::{News, RunEnd, Worker, WorkerOffer};
use kelos_model::run::Report;
use kelos_model::{Outcome, RunId, SlotKey, SlotRef, Workflow, WorkflowId};
use kelos_sandbox::{Limits, check};
use kelos_wire::{Code, JobName, OutlookDto, SubmitRequest, SubmittedListDto};
use tokio::sync::mpsc::UnboundedReceiver;

use crate::apps::{self, Apps};
use crate::failure::{BAD, Failure};
use crate::machine::launcher;
use crate::options::{self, AllowOptions, Lease};
use crate::signals::Signals;
use crate::worker::{self, Crew, Extras, Line, ended, useless};
use crate::{folder, logging, no_job, text};

/// How often the output of a run is looked at: nothing tells when a file has grown.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Bytes of output that are read at once.
const PIECE: usize = 64 << 10;

/// The exit code of a command that Ctrl-C ended, as shells have it.
const INTERRUPTED: i32 = 130;

const EXIT_CODES: &str = "\
Exit codes:
  0  the job succeeded
  1  it failed, or was refused: it exists already, is not valid, or there is no such app
  2  the command line makes no sense
  3  the leader does not answer
  4  there was no job to be run within --timeout
  130  it was interrupted again on its way out";

#[derive(clap::Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct RunArgs {
    /// App of the job
    #[arg(value_name = "APP")]
    pub(crate) app: WorkflowId,
    /// Folder with scripts, tasks.json and the state that all its workers share [default: this one, or the nearest above it]
    #[arg(default_value = ".", hide_default_value = true, value_hint = clap::ValueHint::DirPath)]
    pub(crate) dir: PathBuf,
    /// Run this job, which must not have been submitted before [default: the next job in the queue]
    #[arg(long, value_name = "JOB_ID", allow_hyphen_values = true)]
    pub(crate) job_id: Option<String>,
    /// Run the job without queue, store or parents; nothing is recorded
    #[arg(long, requires = "job_id")]
    pub(crate) bypass_scheduler: bool,
    /// How long to wait for a job
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = patience)]
    pub(crate) timeout: Duration,
    /// Total number of attempts before the job has failed [default: as its app says]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_retry: Option<u32>,
    /// Kill the job after this time, overriding its app
    #[arg(long, value_name = "SECONDS", value_parser = options::seconds)]
    watch: Option<Duration>,
    /// Append these words, and the rest of the line, to the command of the app. Placeholders are filled in
    #[arg(long, value_name = "WORD", num_args = 1.., allow_hyphen_values = true)]
    bash_cmd: Vec<String>,
    #[command(flatten)]
    pub(crate) described: Apps,
    #[command(flatten)]
    pub(crate) allowed: AllowOptions,
    #[command(flatten)]
    pub(crate) lease: Lease,
}

fn patience(text: &str) -> Result<Duration, String> {
    let read = text.parse::<f64>().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    read.ok_or_else(|| "expected a number of seconds".to_owned())
}

impl RunArgs {
    /// The options beyond the definition of the app.
    fn extras(&self) -> Extras {
        Extras { words: self.bash_cmd.join(" "), watch: self.watch }
    }
}

pub(crate) fn run(args: &RunArgs) -> Result<u8, Failure> {
    match &args.job_id {
        Some(job) if args.bypass_scheduler => bypass(args, job),
        _ => with_queue(args),
    }
}

fn with_queue(args: &RunArgs) -> Result<u8, Failure> {
    let crew = Crew::join(&args.dir, &args.described, &args.allowed, args.lease.of_folder(), logging::OF_COMMANDS)?;
    let mistakes = crew.fleet.mistakes(&[args.app.as_str()]);
    match crew.must_know(std::slice::from_ref(&args.app)) {
        Ok(()) => mistakes.iter().for_each(text::tell),
        Err(failure) if failure.shown.is_empty() => return Err(failure.show(mistakes)),
        Err(failure) => return Err(failure),
    }
    let job = args.job_id.as_deref().map(|job| unopened(&crew, args, job)).transpose()?;
    let wanted = WorkerOffer {
        workflows: [args.app.clone()].into(),
        project: None,
        labels: [].into(),
        held: job.is_some(),
        job: job.clone(),
        at_a_time: 1,
        in_all: Some(1),
        attempts: args.max_retry,
    };
    let mut signals = {
        let _within = crew.runtime.enter();
        Signals::listen()?
    };
    let outcome = crew.runtime.block_on(async {
        let (worker, mut news) = crew.start(wanted, args.extras())?;
        tokio::select! {
            came = came(&mut news) => came?,
            () = signals.wait() => return Ok(None),
        }
        if let Some(job) = &job {
            // It is offered to do before it is there, so that nobody else gets it.
            if let Err(failure) = tokio::task::block_in_place(|| open(&crew, args, job)) {
                worker.decline().await;
                return Err(failure);
            }
            worker.go();
        }
        let first = first(&crew, &mut news, &mut signals, args.timeout, job.as_ref()).await;
        one_job(&crew.launcher, &worker, &mut news, &mut signals, first).await
    });
    // Nothing that is left to do is worth waiting for somebody who wants to go.
    crew.runtime.spawn(async move {
        signals.wait().await;
        std::process::exit(INTERRUPTED);
    });
    // The leader knows why there was none, and that may be this process.
    let outcome = outcome.and_then(|over| over.ok_or_else(|| none_came(&crew, args, job.as_ref())));
    crew.fleet.leave()?;
    outcome.map(|over| told(&format!("run {} of {}", over.run.number, over.run.slot.short()), &over.outcome))
}

fn none_came(crew: &Crew, args: &RunArgs, job: Option<&SlotRef>) -> Failure {
    match job {
        Some(job) => no_job::of_job(&crew.fleet, job, args.timeout),
        None => no_job::of_app(&crew.fleet, &args.app, args.timeout),
    }
}

/// Says how a job ended, to whoever reads and to whoever asked.
fn told(name: &str, outcome: &Outcome) -> u8 {
    text::note(format!("{name} {}", ended(outcome)));
    if *outcome == Outcome::Succeeded { 0 } else { BAD }
}

/// Waits until the leader has heard what this worker offers.
async fn came(news: &mut UnboundedReceiver<News>) -> Result<(), Failure> {
    match news.recv().await {
        Some(News::Useless(why)) => Err(useless(&why)),
        _ => Ok(()),
    }
}

/// The job, in its normal form, if it was never opened.
fn unopened(crew: &Crew, args: &RunArgs, job: &str) -> Result<SlotRef, Failure> {
    let doing = format!("run {} {job}", args.app);
    let body = SubmitRequest { dry_run: true, ..submit(&args.app, job) };
    let answer: OutlookDto = crew.fleet.ask(|client| client.post(&doing, "/jobs", &body))?;
    let asked = answer.items.into_iter().find(|item| item.role == "asked");
    let asked = asked.ok_or_else(|| Failure::bad(format!("{doing}: the leader's answer is not understood")))?;
    match asked.state {
        None => Ok(SlotRef::job(args.app.clone(), asked.slot.key.job.unwrap_or_default().as_str().into())),
        Some(state) => Err(exists(&doing, state.as_str())),
    }
}

/// A request to open one job.
fn submit(app: &WorkflowId, job: &str) -> SubmitRequest {
    let jobs = vec![JobName { workflow: app.clone(), job: job.to_owned() }];
    SubmitRequest { jobs, ..SubmitRequest::default() }
}

/// Opens a job that must never have been opened.
fn open(crew: &Crew, args: &RunArgs, job: &SlotRef) -> Result<(), Failure> {
    let doing = format!("run {} {}", args.app, job.key.short());
    let reason = Some("kelos run --job-id".to_owned());
    let body = SubmitRequest { reason, ..submit(&args.app, &job.key.short()) };
    let answer: SubmittedListDto = crew.fleet.ask(|client| client.post(&doing, "/jobs", &body))?;
    match answer.items.first() {
        Some(item) if item.result == "opened" => Ok(()),
        item => Err(exists(&doing, item.and_then(|item| item.state.as_ref()).map_or("there", Code::as_str))),
    }
}

fn exists(doing: &str, state: &str) -> Failure {
    Failure::bad(format!("{doing}: it exists already, and is {state}"))
        .hint("without --job-id the next job of the queue is run; `kelos rerun` opens it again")
}

/// Waits for a job; none where none came in time, or the one that was asked for will not be run.
async fn first(
    crew: &Crew,
    news: &mut UnboundedReceiver<News>,
    signals: &mut Signals,
    timeout: Duration,
    job: Option<&SlotRef>,
) -> Option<News> {
    let ended_unrun = async {
        match job {
            Some(job) => no_job::ended_unrun(&crew.fleet, job).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        first = tokio::time::timeout(timeout, news.recv()) => first.ok().flatten(),
        () = signals.wait() => None,
        () = ended_unrun => None,
    }
}

/// Does one job, and says how it ended; none where none came.
async fn one_job(
    launcher: &Launcher,
    worker: &Worker<Line>,
    news: &mut UnboundedReceiver<News>,
    signals: &mut Signals,
    first: Option<News>,
) -> Result<Option<RunEnd>, Failure> {
    let first = match first {
        Some(first) => Some(first),
        None => on_its_way_out(worker, news, signals).await,
    };
    let run = match first {
        Some(News::Began(run)) => run,
        Some(News::Useless(why)) => return Err(useless(&why)),
        _ => return Ok(None),
    };
    let over = follow(launcher, &run, signals, over(&run, news)).await;
    tokio::select! {
        () = worker.leave() => {}
        () = signals.wait() => eprintln!("the leader did not receive its outcome; the next leader reads it from the folder of the run"),
    }
    over.map(Some)
}

/// Does the job that a worker may be given while it leaves. None where it gets none, or a signal comes.
async fn on_its_way_out(
    worker: &Worker<Line>,
    news: &mut UnboundedReceiver<News>,
    signals: &mut Signals,
) -> Option<News> {
    let left = worker.leave();
    tokio::pin!(left);
    loop {
        tokio::select! {
            biased;
            told = news.recv() => match told {
                Some(News::Came) => {}
                told => return told,
            },
            () = &mut left => return news.try_recv().ok(),
            () = signals.wait() => return None,
        }
    }
}

/// Waits for the end of the one run.
async fn over(run: &RunId, news: &mut UnboundedReceiver<News>) -> Result<RunEnd, Failure> {
    loop {
        match news.recv().await {
            Some(News::Over(over)) => return Ok(over),
            Some(News::Useless(why)) => return Err(useless(&why)),
            Some(News::GivenUp) | None => {
                let why = "the leader received no heartbeat from it for too long and took the job away";
                return Err(Failure::bad(format!("finish {}: {why}", run.slot.short())));
            }
            Some(News::Began(_) | News::Came | News::Away(_) | News::Back | News::Outdated(_)) => {}
        }
    }
}

/// Prints the output of a run until it is over; a signal ends it.
async fn follow<T>(launcher: &Launcher, run: &RunId, signals: &mut Signals, over: impl Future<Output = T>) -> T {
    tokio::pin!(over);
    let mut offset = 0;
    loop {
        let outcome = tokio::select! {
            outcome = &mut over => Some(outcome),
            () = signals.wait() => {
                let (launcher, run) = (launcher.clone(), run_ref(run));
                tokio::spawn(async move { launcher.cancel(&run).await });
                None
            }
            () = tokio::time::sleep(LOOK_EVERY) => None,
        };
        offset = print(launcher, run, offset).await;
        if let Some(outcome) = outcome {
            return outcome;
        }
    }
}

/// Prints what a run has written since; gives where to go on.
async fn print(launcher: &Launcher, run: &RunId, mut offset: u64) -> u64 {
    while let Ok(piece) = launcher.output(&run_ref(run)).piece(offset, PIECE).await {
        offset = piece.next_offset;
        if piece.bytes.is_empty() {
            break;
        }
        // The job goes on, whatever becomes of its output.
        text::tell_bytes(&piece.bytes);
    }
    offset
}

/// Runs a job past everything, in a folder that is gone afterwards.
fn bypass(args: &RunArgs, job: &str) -> Result<u8, Failure> {
    let secrets = Secrets::new(args.allowed.read()?);
    let (dir, apps) = worker::enter(&args.dir, &args.described)?;
    let loaded = check(folder::folders(&dir, None), Limits::default(), apps::format(), Some(apps));
    let loaded = loaded.map_err(|error| Failure::bad(format!("start a thread: {error}")))?;
    let found = loaded.workflows.iter().find(|workflow| workflow.id == args.app);
    let Some(workflow) = found else {
        let shown = loaded.problems.iter().flat_map(folder::problem_lines).collect();
        return Err(Failure::bad(format!("run {}: there is no such app", args.app)).show(shown));
    };
    let doing = format!("run {} {job}", args.app);
    let key = workflow.keys.read(job).map_err(|why| Failure::bad(format!("{doing}: {why}")))?;
    let kept = tempfile::tempdir().map_err(|error| Failure::bad(format!("make a folder: {error}")))?;
    let (launcher, runtime) = (launcher(kept.path())?, worker::runtime()?);
    let name = SlotRef::new(args.app.clone(), key.clone()).short();
    let mut start = start(workflow, key).map_err(|why| Failure::bad(format!("{doing}: {why}")))?;
    args.extras().apply(&mut start);
    let outcome = runtime.block_on(alone(local_executors(&launcher, &secrets, runtime.handle()), &launcher, start))?;
    Ok(told(&name, &outcome))
}

fn start(workflow: &Arc<Workflow>, key: SlotKey) -> Result<Start, String> {
    let run = RunId { slot: SlotRef::new(workflow.id.clone(), key), number: 1 };
    let filled = filled(workflow, &run.slot.key, None, None, &NoFunctions)?;
    let (settings, properties) = (filled.settings, filled.properties);
    Ok(Start {
        run,
        workflow: workflow.clone(),
        settings,
        properties,
        given: RunInput::default(),
        worker: None,
        lease: None,
        earlier: Vec::new(),
    })
}

/// Does a run for nobody else.
async fn alone(executors: Executors, launcher: &Launcher, start: Start) -> Result<Outcome, Failure> {
    let mut signals = Signals::listen()?;
    let (says, mut heard) = tokio::sync::mpsc::unbounded_channel();
    let reports = Reports::new(move |input| {
        if let kelos_core::Input::RunReported { report, .. } = input {
            let _ = says.send(report);
        }
    });
    let run = start.run.clone();
    executors.get(&start.workflow.job.executor).start(start, reports);
    let over = async {
        loop {
            match heard.recv().await {
                Some(Report::Ended { outcome }) => return outcome,
                Some(Report::Deferred { reason }) => return Outcome::refused(reason),
                Some(_) => {}
                None => return Outcome::Unknown { reason: "no outcome was reported".to_owned() },
            }
        }
    };
    Ok(follow(launcher, &run, &mut signals, over).await)
}
