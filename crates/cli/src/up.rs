//! `kelos up`: a folder of scripts at work, with everything it needs beside them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use kelos_engine::Pace;
use kelos_model::time::resolve;
use kelos_model::workflow::WorkflowRow;

use crate::apps::{self, Apps};
use crate::failure::Failure;
use crate::host::{self, Tunables};
use crate::location::{self, Location, PORT, STATE};
use crate::node::DataPlace;
use crate::options::Lease;
use crate::text::{self, count, to_the_second};
use crate::{folder, logging};

#[derive(clap::Args)]
pub(crate) struct UpArgs {
    /// Folder with scripts in workflows/*.js or *.js, their imports in defaults/, and apps in tasks.json
    #[arg(default_value = ".", value_hint = clap::ValueHint::DirPath)]
    dir: PathBuf,
    /// Port to listen on [default: 7437, or a free one if that is taken]
    #[arg(long)]
    port: Option<u16>,
    #[command(flatten)]
    apps: Apps,
    /// Leave commands to workers, started by `kelos worker`, and run none in this process
    #[arg(long)]
    workers: bool,
    #[command(flatten)]
    lease: Lease,
    #[command(flatten)]
    tunables: Tunables,
}

pub(crate) fn run(args: &UpArgs) -> Result<u8, Failure> {
    let from = std::env::current_dir().unwrap_or_default();
    // Before the folder is entered, because the path is as people see it from outside.
    let pages = host::Pages::read(&args.tunables)?;
    let reach = args.tunables.reach(&pages)?;
    let dir = folder::existing("folder of scripts", &args.dir)?;
    let apps = args.apps.source(&dir)?;
    // Commands start where the scripts are, so that relative paths mean the same to all of them.
    std::env::set_current_dir(&dir).map_err(|error| Failure::usage(format!("work in {}: {error}", dir.display())))?;
    // The first problems are part of the welcome.
    let _logging = logging::start("warn,kelos_scripts=info,kelos::first_load=off", None)?;
    let state = dir.join(STATE);
    location::make_state(&state)?;
    let folders = folder::folders(&dir, None);
    let listener = host::listen(args.tunables.bind, args.port, PORT)?;
    let address = host::address(&listener, reach.certificate.is_some());
    let token = args.workers.then(location::random).transpose()?;
    let instance = Some(location::random()?);
    let certificate = reach.certificate.clone();
    let pin = certificate.as_ref().map(|shown| shown.certificate().fingerprint);
    let location = Location { address: address.clone(), instance, token: token.clone(), pin, owner: None };
    let host = host::start(host::Plan {
        folders: folders.clone(),
        apps: apps.clone(),
        data: DataPlace::Embedded(state.clone()),
        pace: Pace::ByItself,
        reload_every: Duration::from_secs(1),
        tunables: &args.tunables,
        pages,
        listener,
        reach,
        leases: args.lease.of_workers(),
        worker_token: token,
        instance: location.instance.clone(),
        own_worker: None,
    })?;
    let trouble = match host.role() {
        host::Role::Leader => None,
        host::Role::Standby => Some(taken(&dir, &state)),
        host::Role::Troubled(reason) => Some(Failure::bad(reason)),
        host::Role::Damaged(reason) => Some(Failure::damaged(reason)),
    };
    if let Some(trouble) = trouble {
        host.give_up();
        return Err(trouble);
    }
    let files = folder::scripts(&folders).unwrap_or(0);
    let shown = format!("{} ({})", host::shown(&folders.workflows, &from), count(files, "file"));
    let scripts = match (files, apps.is_there()) {
        (0, true) => apps.name().to_owned(),
        (_, true) => format!("{shown}, and {}", apps.name()),
        (_, false) => shown,
    };
    let welcome = welcome(&host.node, &dir, &from, &scripts, &address);
    let served = host.serve(|| {
        // Clients of this machine know the certificate of now, also after it was renewed.
        if let Some(certificate) = certificate {
            let (state, location) = (state.clone(), location.clone());
            certificate.on_renewal(move |renewed| {
                write(&Location { pin: Some(renewed.fingerprint), ..location.clone() }, &state);
            });
        }
        write(&location, &state);
        text::print(&welcome);
    });
    Location::remove(&state);
    served?;
    text::tell("stopped; running commands continue, and the next `kelos up` adopts them");
    Ok(0)
}

fn write(location: &Location, state: &Path) {
    if let Err(failure) = location.write(state) {
        tracing::warn!("failed to {failure}; clients need --server {}", location.address);
    }
}

fn taken(dir: &Path, state: &Path) -> Failure {
    let failure = Failure::bad(format!("use {}: another kelos already runs there", dir.display()));
    match Location::read(state) {
        Some(location) => failure.hint(format!("it answers at {}", location.address)),
        None => failure.hint("stop that one first"),
    }
}

fn welcome(node: &kelos::Node, dir: &Path, from: &Path, scripts: &str, address: &str) -> String {
    let rows: Vec<WorkflowRow> = node.reader().workflows(None).unwrap_or_default();
    let rows: Vec<WorkflowRow> = rows.into_iter().filter(|row| row.present).collect();
    let problems = node.problems();
    let mut lines = vec![
        format!("kelos {} is up at {address}", env!("CARGO_PKG_VERSION")),
        format!("  scripts    {scripts}"),
        format!("  workflows  {}", rows.len()),
        format!("  state      {}", host::shown(&dir.join(STATE), from)),
        format!("  board      {address}/ui"),
    ];
    lines.extend(node.past_slots().lines().into_iter().map(|line| format!("  catch-up   {line}")));
    if !problems.is_empty() {
        lines.push(format!("  problems   {}", problems.len()));
        let shown = problems.iter().flat_map(folder::problem_lines);
        lines.extend(shown.map(|line| format!("    {line}")));
    }
    let there = if dir == from { String::new() } else { format!(", in {}", dir.display()) };
    lines.push(format!("Try, from another terminal{there}:"));
    let mut tries = vec!["kelos ls".to_owned(), "kelos slots".to_owned(), "kelos events -f".to_owned()];
    tries.extend(example(&rows).map(|(id, at)| format!("kelos why {} {}", text::operand(&id), to_the_second(at))));
    let job = apps::example(&rows, Timestamp::now());
    tries.extend(job.map(|(app, id)| format!("kelos submit -a {} -j {}", text::quoted(&app), text::quoted(&id))));
    if rows.is_empty() && problems.is_empty() {
        let first = folder::folders(dir, None).workflows.join("first.js");
        let write = format!("write {}; it is picked up within a second", host::shown(&first, from));
        tries = vec![write, "or stop it, and write a first project with `kelos init`".to_owned()];
    }
    lines.extend(tries.into_iter().map(|one| format!("  {one}")));
    lines.push("Stop with Ctrl-C; running commands continue.".to_owned());
    lines.join("\n") + "\n"
}

/// The newest slot of the first workflow that has one.
fn example(rows: &[WorkflowRow]) -> Option<(String, Timestamp)> {
    let schedules = rows.iter().filter_map(|row| Some((row.id.clone(), row.definition.keys.schedule()?)));
    let now = Timestamp::now();
    resolve(&schedules.collect()).into_iter().find_map(|(id, schedule)| {
        let at = schedule.ok()?.previous_before(now)?;
        Some((id.to_string(), at))
    })
}
