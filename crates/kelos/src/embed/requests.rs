//! Requests of a run for what is scarce, while it is live.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kelos_engine::executor::Reports;
use kelos_model::run::Report;
use kelos_model::{IdError, PermitAnswer, PermitRefusal, PoolId, RunId};
use tokio::sync::oneshot;

use super::cancel::Cancel;

/// A part of something scarce that a run did not get. Messages complete "failed to …".
///
/// ```
/// # use kelos::embed::{Context, Places, PlatformError};
/// async fn train(context: Context, _: (), gpus: Places) -> Result<(), String> {
///     match context.on(&gpus).await {
///         Ok(_gpu) => Ok(()),
///         Err(error) => Err(format!("failed to {error}")),
///     }
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlatformError {
    /// It can never be given.
    #[error("take {what}: {refusal}")]
    Refused {
        /// The platforms.
        what: String,
        /// The reason.
        refusal: PermitRefusal,
    },
    /// The run holds something, or waits for it: two runs that wait for what the other holds would wait for ever.
    #[error(
        "take {what}: the run has taken {held} and not returned it: take everything at once, `context.on((&a, &b))`"
    )]
    Holding {
        /// The platforms.
        what: String,
        /// The platforms that it holds or waits for.
        held: String,
    },
    /// The run was to end.
    #[error("take {what}: the run is to end")]
    Ended {
        /// The platforms.
        what: String,
    },
    /// A name is no name.
    #[error("take what is scarce: {0}")]
    Name(#[from] IdError),
}

/// The parts of what is scarce that a run has taken. Dropping them returns what is not spent.
///
/// ```
/// # use kelos::embed::{Context, Places, PlatformError};
/// async fn train(context: Context, _: (), gpus: Places) -> Result<(), PlatformError> {
///     let gpu = context.on(&gpus).await?;
///     context.log("training");
///     drop(gpu);
///     context.log("writing, while another run trains");
///     Ok(())
/// }
/// ```
#[derive(Debug)]
#[must_use = "what is taken is returned when this is dropped"]
pub struct Permits {
    requests: RunRequests,
    /// The number of the request; none if all is spent.
    held: Option<u64>,
}

impl Permits {
    /// Does something with them, and returns them.
    ///
    /// ```
    /// # use kelos::embed::{Context, Places, PlatformError};
    /// async fn train(context: Context, _: (), gpus: Places) -> Result<u32, PlatformError> {
    ///     Ok(context.on(&gpus).await?.call(async { 42 }).await)
    /// }
    /// ```
    pub async fn call<T>(self, work: impl Future<Output = T>) -> T {
        let done = work.await;
        drop(self);
        done
    }
}

impl Drop for Permits {
    fn drop(&mut self) {
        if let Some(number) = self.held {
            self.requests.end(number);
        }
    }
}

/// The requests of one run. Cheap to clone.
#[derive(Clone)]
pub(super) struct RunRequests(Arc<RequestsState>);

struct RequestsState {
    run: RunId,
    reports: Reports,
    open: Mutex<OpenRequests>,
}

#[derive(Default)]
struct OpenRequests {
    /// Counts the changes, and numbers the requests.
    version: u64,
    by_number: BTreeMap<u64, OpenRequest>,
}

/// A request that waits or holds something.
struct OpenRequest {
    permits: BTreeMap<PoolId, u32>,
    /// Whether its holder may ask for nothing else meanwhile.
    is_last: bool,
    /// The waiter; none once it is answered.
    answer: Option<oneshot::Sender<PermitAnswer>>,
}

impl std::fmt::Debug for RunRequests {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RunRequests({})", self.0.run)
    }
}

impl RunRequests {
    pub(super) fn new(run: RunId, reports: Reports) -> RunRequests {
        RunRequests(Arc::new(RequestsState { run, reports, open: Mutex::default() }))
    }

    fn open(&self) -> MutexGuard<'_, OpenRequests> {
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes permits, all at once. Nothing else may be taken before they are returned.
    pub(super) async fn take(&self, permits: BTreeMap<PoolId, u32>, cancel: &Cancel) -> Result<Permits, PlatformError> {
        let (number, answered) = {
            let mut open = self.open();
            let held = names(open.by_number.values().filter(|one| !one.is_last).flat_map(|one| one.permits.keys()));
            if !held.is_empty() {
                return Err(PlatformError::Holding { what: names(permits.keys()), held });
            }
            self.ask(&mut open, permits, false)
        };
        self.wait(number, answered, cancel).await
    }

    /// Takes permits whose holder asks for nothing else, so that they may be taken beside others.
    pub(super) async fn take_last(
        &self,
        permits: BTreeMap<PoolId, u32>,
        cancel: &Cancel,
    ) -> Result<Permits, PlatformError> {
        let (number, answered) = self.ask(&mut self.open(), permits, true);
        self.wait(number, answered, cancel).await
    }

    /// Whether the run holds permits of a pool.
    pub(super) fn holds(&self, pool: &str) -> bool {
        let open = self.open();
        let of = |one: &OpenRequest| !one.is_last && one.permits.keys().any(|id| id.as_str() == pool);
        open.by_number.values().any(of)
    }

    fn ask(
        &self,
        open: &mut OpenRequests,
        permits: BTreeMap<PoolId, u32>,
        is_last: bool,
    ) -> (u64, oneshot::Receiver<PermitAnswer>) {
        let (answer, answered) = oneshot::channel();
        open.version += 1;
        let number = open.version;
        open.by_number.insert(number, OpenRequest { permits, is_last, answer: Some(answer) });
        self.report(open);
        (number, answered)
    }

    async fn wait(
        &self,
        number: u64,
        answered: oneshot::Receiver<PermitAnswer>,
        cancel: &Cancel,
    ) -> Result<Permits, PlatformError> {
        // A dropped future wants it no more.
        let mut permits = Permits { requests: self.clone(), held: Some(number) };
        let what = self.open().by_number.get(&number).map(|one| names(one.permits.keys())).unwrap_or_default();
        let answer = tokio::select! {
            biased;
            answer = answered => answer,
            () = cancel.asked() => return Err(PlatformError::Ended { what }),
        };
        match answer {
            Ok(PermitAnswer::Held) => Ok(permits),
            Ok(PermitAnswer::Spent) => {
                permits.held = None;
                Ok(permits)
            }
            Ok(PermitAnswer::Refused(refusal)) => {
                permits.held = None;
                Err(PlatformError::Refused { what, refusal })
            }
            Err(_) => Err(PlatformError::Ended { what }),
        }
    }

    /// Hears what became of a request.
    pub(super) fn answered(&self, number: u64, answer: PermitAnswer) {
        let mut open = self.open();
        let Some(one) = open.by_number.get_mut(&number) else {
            // It is not wanted any more.
            if answer == PermitAnswer::Held {
                self.report(&open);
            }
            return;
        };
        let waiter = one.answer.take();
        if answer != PermitAnswer::Held {
            open.by_number.remove(&number);
        }
        if let Some(waiter) = waiter {
            // A waiter that has just gone returns what it held.
            let _ = waiter.send(answer);
        }
    }

    fn end(&self, number: u64) {
        let mut open = self.open();
        if open.by_number.remove(&number).is_some() {
            open.version += 1;
            self.report(&open);
        }
    }

    /// Reports all requests once more, if there were any.
    pub(super) fn repeat(&self) {
        let open = self.open();
        if open.version > 0 {
            self.report(&open);
        }
    }

    fn report(&self, open: &OpenRequests) {
        let requests = open.by_number.iter().map(|(number, one)| (*number, one.permits.clone())).collect();
        self.0.reports.run(&self.0.run, Report::Asks { version: open.version, requests });
    }

    /// The platforms that the run waits for, as a text; none if it waits for none.
    pub(super) fn waits_for(&self) -> Option<String> {
        let open = self.open();
        let waiting = open.by_number.values().filter(|one| one.answer.is_some());
        Some(names(waiting.flat_map(|one| one.permits.keys()))).filter(|names| !names.is_empty())
    }
}

/// Names in one text: `crm-api and yarn`.
fn names<'p>(pools: impl Iterator<Item = &'p PoolId>) -> String {
    let pools: std::collections::BTreeSet<&str> = pools.map(PoolId::as_str).collect();
    pools.into_iter().collect::<Vec<_>>().join(" and ")
}
