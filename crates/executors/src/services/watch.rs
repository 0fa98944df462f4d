//! Watching a job to its end.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kelos_engine::clock::Clock;
use kelos_model::{FailureCode, Outcome, RunId};
use tokio::sync::Notify;

use super::service::{self, Client, Look};
use super::ticket::Ticket;

/// The longest wait for a status that can't be read, unless the interval of checks is longer.
const LONGEST_WAIT: Duration = Duration::from_secs(300);

/// For how long a service may not know a job before nothing more is expected of it: longer than a deployment of the service takes.
const LONGEST_ABSENCE: Duration = Duration::from_secs(3600);

/// The connection between the watch of a job and the rest of the executor. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct Line(Arc<LastNote>);

#[derive(Default)]
struct LastNote {
    unwanted: Notify,
    trouble: Mutex<Option<String>>,
}

impl Line {
    /// Orders the end of the job. A repeated order repeats the request to the service.
    pub(super) fn end(&self) {
        self.0.unwanted.notify_one();
    }

    /// The reason for which the state of the job isn't known at present.
    pub(super) fn trouble(&self) -> Option<String> {
        self.trouble_now().clone()
    }

    fn trouble_now(&self) -> MutexGuard<'_, Option<String>> {
        self.0.trouble.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps what is wrong, and logs it where it is something new.
    fn tell(&self, run: &RunId, trouble: String) {
        let mut before = self.trouble_now();
        if before.as_ref() != Some(&trouble) {
            tracing::warn!(%run, "{trouble}; trying again");
            *before = Some(trouble);
        }
    }
}

/// The progress of an ordered end of the job.
#[derive(Clone, Copy, PartialEq)]
enum End {
    Unwanted,
    /// The service has not understood yet.
    Wanted,
    /// The service accepted it.
    Understood,
}

/// One job that is watched.
pub(super) struct Watch<'a> {
    client: &'a Client,
    clock: &'a Clock,
    run: &'a RunId,
    ticket: &'a Ticket,
    line: &'a Line,
    end: End,
    /// Since when the service has not known the job, in milliseconds since 1970.
    gone_since: Option<i64>,
}

impl<'a> Watch<'a> {
    pub(super) fn new(
        client: &'a Client,
        clock: &'a Clock,
        run: &'a RunId,
        ticket: &'a Ticket,
        line: &'a Line,
    ) -> Self {
        Self { client, clock, run, ticket, line, end: End::Unwanted, gone_since: None }
    }

    /// Checks the job's status until it has ended, and requests its end if that was ordered.
    pub(super) async fn follow(mut self, at_once: bool) -> Outcome {
        let mut wait = if at_once { Duration::ZERO } else { self.every() };
        loop {
            tokio::select! {
                () = tokio::time::sleep(self.within(wait)) => {}
                () = self.line.0.unwanted.notified() => self.end = End::Wanted,
            }
            if self.end == End::Wanted {
                if self.ticket.cancel.is_none() {
                    return given_up();
                }
                self.ask_for_the_end().await;
            }
            let look = self.lasting(service::look(self.client, self.ticket).await);
            match look {
                Look::Going => wait = self.as_usual(),
                Look::Hidden(why) => wait = self.longer(wait, why),
                Look::Gone(why) if self.end != End::Understood => wait = self.longer(wait, why),
                over => return self.outcome(over),
            }
            if self.is_late() {
                return self.too_late().await;
            }
        }
    }

    fn outcome(&self, over: Look) -> Outcome {
        match over {
            Look::Done => Outcome::Succeeded,
            Look::Failed(reason) if self.end == End::Unwanted => {
                Outcome::Failed { reason, exit_status: None, code: Some(FailureCode::REPORTED) }
            }
            // The service took it: another attempt might do it twice.
            Look::Removed(why) if self.end == End::Unwanted => {
                let reason = format!("the service took it, and does not know it any more: it answered {why}");
                Outcome::Lost { reason }
            }
            _ => Outcome::Killed,
        }
    }

    /// The same look, but a job that was gone for too long is taken to be removed.
    fn lasting(&mut self, look: Look) -> Look {
        match look {
            Look::Gone(why) => {
                let now = (self.clock)().as_millisecond();
                let since = *self.gone_since.get_or_insert(now);
                let longest = i64::try_from(LONGEST_ABSENCE.as_millis()).unwrap_or(i64::MAX);
                if now.saturating_sub(since) < longest { Look::Gone(why) } else { Look::Removed(why) }
            }
            // A service that does not answer says nothing about the job.
            Look::Hidden(_) => look,
            other => {
                self.gone_since = None;
                other
            }
        }
    }

    async fn ask_for_the_end(&mut self) {
        match service::cancel(self.client, self.ticket).await {
            Ok(()) => self.end = End::Understood,
            Err(why) => self.line.tell(self.run, format!("it can't be ended: {why}")),
        }
    }

    fn every(&self) -> Duration {
        self.ticket.poll.pause()
    }

    /// The wait after a check that found the job running.
    fn as_usual(&self) -> Duration {
        if self.end != End::Wanted {
            *self.line.trouble_now() = None;
        }
        self.every()
    }

    /// The wait after a check that failed.
    fn longer(&self, wait: Duration, why: String) -> Duration {
        self.line.tell(self.run, format!("its status can't be had: {why}"));
        (wait * 2).clamp(self.every(), self.every().max(LONGEST_WAIT))
    }

    /// The wait, or less where the job's time is up before.
    fn within(&self, wait: Duration) -> Duration {
        let Some(deadline) = self.ticket.deadline else { return wait };
        let left = deadline.saturating_sub((self.clock)().as_millisecond());
        wait.min(Duration::from_millis(u64::try_from(left).unwrap_or(0)))
    }

    fn is_late(&self) -> bool {
        self.ticket.deadline.is_some_and(|deadline| (self.clock)().as_millisecond() >= deadline)
    }

    async fn too_late(self) -> Outcome {
        if let Err(why) = service::cancel(self.client, self.ticket).await {
            tracing::warn!(run = %self.run, "failed to have a job ended that took too long: {why}");
        }
        if self.end == End::Unwanted {
            let reason = "took longer than its timeout allows".to_owned();
            return Outcome::Failed { reason, exit_status: None, code: Some(FailureCode::TIMED_OUT) };
        }
        Outcome::Killed
    }
}

fn given_up() -> Outcome {
    let reason = "it was given up: the job has no `cancel`, so the service may go on with it".to_owned();
    Outcome::Lost { reason }
}
