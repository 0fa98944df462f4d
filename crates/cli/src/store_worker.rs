//! `kelos worker --store`: one of any number of equal workers without a server, over a log that they share.
//!
//! Each is a node: whichever leads, all run jobs. Commands in the folder find the worker that was started there.

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

use kelos_engine::Pace;

use crate::failure::Failure;
use crate::host::{self, Plan, Role, Tunables};
use crate::location::{self, Location, STATE};
use crate::machine::processors;
use crate::node::{DataPlace, NodeWorkerPlan, definitions};
use crate::worker::WorkerArgs;
use crate::{fleet, folder, logging, text};

/// Works until it is told to end.
pub(crate) fn run(args: &WorkerArgs, store: &str) -> Result<u8, Failure> {
    if args.metrics.is_some() {
        let failure =
            Failure::usage("answer at --metrics: a worker over a log is a server, and has /metrics at its own address");
        return Err(failure.hint("--bind and --port say where that is"));
    }
    let options = &args.shared;
    let dir = folder::existing("folder of jobs", &fleet::named_folder(&args.dir))?;
    let apps = args.described.source(&dir)?;
    let (allowed, rules) = (args.allowed.read()?, args.allowed.rules()?);
    // Before the folder is entered, because paths to files are as people see them from outside.
    let (trust, token) = (args.trust.read()?, args.trust.token.named()?);
    let tunables = tunables(args);
    let pages = host::Pages::of_worker(trust, allowed, rules);
    let reach = tunables.reach(&pages)?;
    std::env::set_current_dir(&dir).map_err(|error| Failure::usage(format!("work in {}: {error}", dir.display())))?;
    let _logging = logging::start(logging::USUAL, None)?;
    let state = dir.join(STATE);
    location::make_state(&state)?;
    let listener = host::listen(tunables.bind, Some(options.port.unwrap_or(0)), 0)?;
    let address = host::address(&listener, reach.certificate.is_some());
    let config = options.name.config(store, &state, &listener, &address, pages.trust())?;
    let name = config.node.clone();
    let own_worker = NodeWorkerPlan {
        at_a_time: args.at_a_time.unwrap_or_else(processors),
        workflows: args.apps.clone(),
        labels: args.labels.clone(),
        token: token.map(Into::into),
        secrets: pages.secrets(),
        trust: pages.trust().clone(),
    };
    let certificate = reach.certificate.clone();
    let pin = certificate.as_ref().map(|shown| shown.certificate().fingerprint);
    let location = Location { address, instance: Some(location::random()?), token: None, pin, owner: None };
    let host = host::start(Plan {
        folders: definitions(&config)?,
        apps,
        data: DataPlace::Node(config),
        pace: Pace::ByItself,
        reload_every: std::time::Duration::from_secs(1),
        tunables: &tunables,
        pages,
        listener,
        reach,
        leases: args.lease.of_workers(),
        worker_token: None,
        instance: location.instance.clone(),
        own_worker: Some(own_worker),
    })?;
    if let Role::Damaged(reason) = host.role() {
        host.give_up();
        return Err(Failure::damaged(reason));
    }
    let served = host.serve(|| {
        // Clients of this machine know the certificate of now, also after it was renewed.
        if let Some(certificate) = certificate {
            let (state, location) = (state.clone(), location.clone());
            certificate.on_renewal(move |renewed| {
                write(&Location { pin: Some(renewed.fingerprint), ..location.clone() }, &state);
            });
        }
        write(&location, &state);
        text::line(format!("{name} is running at {}; stop it with Ctrl-C", location.address));
    });
    Location::remove(&state);
    served.map(|()| 0)
}

fn tunables(args: &WorkerArgs) -> Tunables {
    Tunables {
        bind: args.shared.bind.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        access: args.access.clone(),
        transport: args.transport.clone(),
        ..Tunables::default()
    }
}

fn write(location: &Location, state: &Path) {
    if let Err(failure) = location.write(state) {
        tracing::warn!("failed to {failure}; clients need --server {}", location.address);
    }
}
