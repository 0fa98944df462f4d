//! The tasks of a hub: they follow the engine, its commits, and the time.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use kelos_engine::Status;
use tokio::sync::{Notify, watch};

use super::{APPS_AGE, HubState};
use crate::workers::session::Now;

/// Sends all offers again to a core that begins to lead, at first or after trouble with its store: it remembers none.
pub(super) async fn offer_anew(desk: Weak<HubState>, mut status: watch::Receiver<Status>) {
    // It may lead already.
    status.mark_changed();
    while status.changed().await.is_ok() {
        let Some(desk) = desk.upgrade() else { return };
        let leads = matches!(*status.borrow_and_update(), Status::Leading { .. });
        if leads {
            desk.lead().await;
        }
    }
}

/// Looks for new workflows after commits, at most once in a while, for the workers that wait.
pub(super) async fn follow_apps(desk: Weak<HubState>, mut commits: watch::Receiver<u64>) {
    while commits.changed().await.is_ok() {
        // A list that was read just before the commit is out of date by then.
        tokio::time::sleep(APPS_AGE).await;
        let Some(desk) = desk.upgrade() else { return };
        let has_workers = !desk.state().sessions.is_empty();
        if has_workers {
            desk.look_for_apps().await;
        }
    }
}

/// Checks periodically while there are workers or runs: an idle hub costs nothing. If the task itself was held up, it
/// missed the messages of that time, and extends the lease of each worker.
pub(super) async fn look_around(desk: Weak<HubState>, stirred: Arc<Notify>, every: Duration) {
    let every = every.max(Duration::from_millis(20));
    let mut looked = Instant::now();
    let is_idle = |desk: Arc<HubState>| {
        let state = desk.state();
        state.is_idle() && !desk.elsewhere.awaits_any(&state)
    };
    loop {
        let Some(is_idle) = desk.upgrade().map(is_idle) else { return };
        if is_idle {
            stirred.notified().await;
            looked = Instant::now();
        }
        tokio::time::sleep(every).await;
        let Some(desk) = desk.upgrade() else { return };
        let now = Instant::now();
        let pause = now.duration_since(looked);
        if pause > desk.terms.shortest() / 2 {
            desk.state().was_deaf(now, pause);
        }
        looked = now;
        desk.look(Now::read());
    }
}
