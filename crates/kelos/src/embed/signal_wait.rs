//! Waits for signals within the functions of steps.

use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::time::Duration;

use jiff::Timestamp;
use kelos_model::SlotRef;
use kelos_model::time::text::format_short;
use kelos_store::StoreError;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::context::Context;
use super::outlook::Alarm;

/// A wait for a signal within a function, which begins when it is awaited: see [`Context::signal`].
///
/// ```
/// use kelos::embed::{Context, SignalError};
///
/// async fn pay(context: Context, _: (), _: ()) -> Result<String, SignalError> {
///     context.signal::<String>("approval").await
/// }
/// ```
#[must_use = "a wait begins when it is awaited"]
pub struct SignalWait<'c, T> {
    context: &'c Context,
    name: String,
    within: Option<Duration>,
    says: PhantomData<fn() -> T>,
}

/// A signal that a function does not get.
///
/// ```
/// use std::time::Duration;
/// use kelos::embed::{Context, SignalError};
///
/// async fn pay(context: Context, _: (), _: ()) -> Result<bool, SignalError> {
///     match context.signal::<bool>("approval").within(Duration::from_secs(3600)).await {
///         // Who says nothing agrees.
///         Err(SignalError::TooLate { .. }) => Ok(true),
///         said => said,
///     }
/// }
/// ```
#[derive(Debug, thiserror::Error)]
pub enum SignalError {
    /// The job is no step of a flow: only runs of flows get signals.
    #[error("wait for the signal \"{signal}\": only a step of a flow can, and this is none")]
    NoStep {
        /// The signal.
        signal: String,
    },
    /// The step does not say that it may wait for it.
    #[error("wait for the signal \"{signal}\": its step does not say so; add `.may_wait_for::<T>(\"{signal}\")` to it")]
    Unexpected {
        /// The signal.
        signal: String,
    },
    /// It did not come in time.
    #[error("wait for the signal \"{signal}\": it did not come within {} s", .within.as_secs_f64())]
    TooLate {
        /// The signal.
        signal: String,
        /// The time.
        within: Duration,
    },
    /// Its payload is of another type.
    #[error("read the signal \"{signal}\": {reason}")]
    Unfit {
        /// The signal.
        signal: String,
        /// The reason, with the place in it.
        reason: String,
    },
    /// The run is to end.
    #[error("wait for the signal \"{signal}\": the run is to end")]
    Ended {
        /// The signal.
        signal: String,
    },
    /// The store can't be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl<'c, T: DeserializeOwned> SignalWait<'c, T> {
    pub(super) fn new(context: &'c Context, name: &str) -> SignalWait<'c, T> {
        SignalWait { context, name: name.to_owned(), within: None, says: PhantomData }
    }

    /// The longest time for which this attempt waits; without it the wait has no end.
    ///
    /// ```
    /// use std::time::Duration;
    /// use kelos::embed::{Context, SignalError};
    ///
    /// async fn pay(context: Context, _: (), _: ()) -> Result<String, SignalError> {
    ///     context.signal::<String>("approval").within(Duration::from_secs(2 * 24 * 3600)).await
    /// }
    /// ```
    pub fn within(self, time: Duration) -> SignalWait<'c, T> {
        SignalWait { within: Some(time), ..self }
    }

    async fn wait(self) -> Result<T, SignalError> {
        let signal = || self.name.clone();
        let run = self.context.run_of_flow().ok_or_else(|| SignalError::NoStep { signal: signal() })?;
        if !self.context.may_wait_for(&self.name) {
            return Err(SignalError::Unexpected { signal: signal() });
        }
        let outlook = self.context.outlook();
        let mut changes = outlook.changes();
        if let Some(said) = outlook.signal(&run, &self.name)? {
            return self.read(said);
        }
        let since = outlook.now();
        let until = self.within.and_then(|time| since.checked_add(time).ok());
        let words = self.words(since, until);
        let said = self.context.park(&words, async {
            let alarm = outlook.alarm(until);
            loop {
                let too_late = || SignalError::TooLate { signal: signal(), within: self.within.unwrap_or_default() };
                tokio::select! {
                    // The other end is kept as long as the run lives.
                    _ = changes.changed() => {}
                    () = outlook.sleep(self.within) => return Err(too_late()),
                    () = self.context.cancel().asked() => return Err(SignalError::Ended { signal: signal() }),
                }
                if let Some(said) = outlook.signal(&run, &self.name)? {
                    return Ok(said);
                }
                if alarm.as_ref().is_some_and(Alarm::is_due) {
                    return Err(too_late());
                }
            }
        });
        let said = said.await?;
        self.read(said)
    }

    /// `the signal approval since 2026-11-21T10:00Z, until 2026-11-21T12:00Z`
    fn words(&self, since: Timestamp, until: Option<Timestamp>) -> String {
        let until = until.map(|until| format!(", until {}", format_short(until))).unwrap_or_default();
        format!("the signal {} since {}{until}", self.name, format_short(since))
    }

    fn read(&self, said: Value) -> Result<T, SignalError> {
        serde_path_to_error::deserialize(said).map_err(|error| {
            let reason = format!("at {}: {}", error.path(), error.inner());
            SignalError::Unfit { signal: self.name.clone(), reason }
        })
    }
}

impl<'c, T: DeserializeOwned + Send + 'c> IntoFuture for SignalWait<'c, T> {
    type Output = Result<T, SignalError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'c>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.wait())
    }
}

impl Context {
    /// Waits for a signal to the run of the flow that this is a step of, and gives what it says. The step names it by
    /// [`may_wait_for`](super::Step::may_wait_for).
    ///
    /// Signals are kept with the run: one that came before is there at once, and one for which an earlier attempt waited, before a
    /// restart or a failure, is there for the next one. Meanwhile the run is shown as waiting for it.
    ///
    /// ```
    /// use kelos::embed::{Context, Project, Rehearsal, SignalError, flow, step};
    /// use std::time::Duration;
    ///
    /// async fn pay(context: Context, (): (), (): ()) -> Result<String, SignalError> {
    ///     let by: String = context.signal("approval").within(Duration::from_secs(3600)).await?;
    ///     Ok(format!("approved by {by}"))
    /// }
    ///
    /// let pay = step("pay", pay).with(()).may_wait_for::<String>("approval");
    /// let mut rehearsal = Rehearsal::at("2026-03-28T00:00Z", Project::new("shop", "1.0").add(flow("purchase", pay)))?;
    /// rehearsal.flow("purchase").start("order-42", &())?;
    /// rehearsal.flow("purchase").signal_after("order-42", "approval", &"Ann", Duration::from_secs(600))?;
    /// rehearsal.run_until("2026-03-28T01:00Z")?;
    /// assert_eq!(rehearsal.flow("purchase").look("order-42")?.output::<String>()?, "approved by Ann");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn signal<T: DeserializeOwned>(&self, name: &str) -> SignalWait<'_, T> {
        SignalWait::new(self, name)
    }

    /// The run of the flow that this is a step of.
    fn run_of_flow(&self) -> Option<SlotRef> {
        let key = self.slot().key.step()?.run();
        Some(SlotRef::new(self.slot().workflow.clone(), key))
    }
}
