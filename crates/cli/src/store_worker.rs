//! `kelos worker --store`: one of any number of equal workers without a server, over a log that they share.
//!
//! Each is a node: whichever leads, all run jobs. Commands in the folder find the worker that was started there.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

use kelos_engine::Pace;

use crate::failure::Failure;
use crate::host::{self, Plan, Role, Tunables};
use crate::location::{self, Location, STATE};
use crate::machine::processors;
use crate::node::{DataPlace, NodeWorkerPlan, definitions};
use crate::transport::Reach;
use crate::worker::WorkerArgs;
use crate::{folder, logging, text};

/// Works until it is told to end.
pub(crate) fn run(args: &WorkerArgs, store: &str) -> Result<u8, Failure> {
    let options = &args.shared;
    let dir = folder::existing("folder of jobs", &args.dir)?;
    let apps = args.described.source(&dir)?;
    let allowed = args.allowed.read()?;
    std::env::set_current_dir(&dir).map_err(|error| Failure::usage(format!("work in {}: {error}", dir.display())))?;
    let _logging = logging::start(logging::USUAL, None)?;
    let bind = options.bind.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
    if !bind.is_loopback() && !options.insecure {
        let failure =
            Failure::usage(format!("let other machines reach {bind}: a worker is without TLS and authentication"));
        return Err(
            failure.hint("`kelos serve --store` has both; --insecure lets anyone who can reach the port do everything")
        );
    }
    let state = dir.join(STATE);
    location::make_state(&state)?;
    let listener = host::listen(bind, Some(options.port.unwrap_or(0)), 0)?;
    let address = host::address(&listener, false);
    let pages = host::Pages::without_file()?.allowing(allowed);
    let config = options.name.config(store, &state, &listener, &address, pages.trust())?;
    let name = config.node.clone();
    let own_worker = NodeWorkerPlan {
        at_a_time: args.at_a_time.unwrap_or_else(processors),
        workflows: args.apps.clone(),
        labels: args.labels.clone(),
        token: args.trust.token.named()?.map(Into::into),
        secrets: pages.secrets(),
        trust: pages.trust().clone(),
    };
    let location = Location { address, instance: Some(location::random()?), token: None, pin: None, owner: None };
    let host = host::start(Plan {
        folders: definitions(&config)?,
        apps,
        data: DataPlace::Node(config),
        pace: Pace::ByItself,
        reload_every: std::time::Duration::from_secs(1),
        tunables: &Tunables::default(),
        pages,
        listener,
        reach: Reach::default(),
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
        if let Err(failure) = location.write(&state) {
            tracing::warn!("failed to {failure}; clients need --server {}", location.address);
        }
        text::line(format!("{name} is running at {}; stop it with Ctrl-C", location.address));
    });
    Location::remove(&PathBuf::from(&state));
    served.map(|()| 0)
}
