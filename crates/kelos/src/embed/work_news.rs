//! Events of a program that works for a server, for the program itself.

use std::fmt;
use std::sync::Arc;

use kelos_executors::workers::News;
use kelos_model::{Outcome, RunId};

/// An event of a program that works for a server. It prints as a line for people.
///
/// ```
/// use kelos::embed::WorkNews;
///
/// assert_eq!(WorkNews::Back.to_string(), "the server answers again");
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum WorkNews {
    /// The server took it as a worker.
    Connected,
    /// A run began.
    Began(RunId),
    /// A run ended.
    Ended(RunId, Outcome),
    /// The server can't be reached, and is tried again. The reason completes "failed to …".
    Away(String),
    /// The server answers again.
    Back,
    /// The server received no heartbeat for too long, and gave its runs up.
    RunsLost,
    /// These workflows have another definition on the server by now: it gets no new runs of them. None once that is over.
    Outdated(Vec<String>),
    /// The server takes it no more. The reason completes "failed to …".
    Refused(String),
}

impl From<News> for WorkNews {
    fn from(news: News) -> WorkNews {
        match news {
            News::Came => WorkNews::Connected,
            News::Began(run) => WorkNews::Began(run),
            News::Over(end) => WorkNews::Ended(end.run, end.outcome),
            News::Away(why) => WorkNews::Away(why),
            News::Back => WorkNews::Back,
            News::GivenUp => WorkNews::RunsLost,
            News::Outdated(all) => WorkNews::Outdated(all.iter().map(ToString::to_string).collect()),
            News::Useless(why) => WorkNews::Refused(why),
        }
    }
}

impl fmt::Display for WorkNews {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WorkNews::Connected => f.write_str("the server hands its runs to this program"),
            WorkNews::Began(run) => write!(f, "{} run {} began", run.slot.short(), run.number),
            WorkNews::Ended(run, outcome) => {
                let (slot, number) = (run.slot.short(), run.number);
                match outcome {
                    Outcome::Succeeded => write!(f, "{slot} run {number} succeeded"),
                    Outcome::Killed => write!(f, "{slot} run {number} was killed"),
                    Outcome::Failed { reason, .. } => write!(f, "{slot} run {number} failed: {reason}"),
                    other => write!(f, "{slot} run {number} {other}"),
                }
            }
            WorkNews::Away(why) => write!(f, "no answer from the server, trying again: failed to {why}"),
            WorkNews::Back => f.write_str("the server answers again"),
            WorkNews::RunsLost => f.write_str(
                "the server received no heartbeat for too long and took the runs away; the program registers again",
            ),
            WorkNews::Outdated(all) if all.is_empty() => {
                f.write_str("the definitions of this program are those of the server again")
            }
            WorkNews::Outdated(all) => write!(
                f,
                "another program deployed other definitions of {}: this one gets no new runs of them until it is started in that version",
                all.join(", ")
            ),
            WorkNews::Refused(why) => write!(f, "the program stops working for the server: failed to {why}"),
        }
    }
}

/// The receiver of events.
#[derive(Clone)]
pub(super) struct Teller(Arc<dyn Fn(&WorkNews) + Send + Sync>);

impl Default for Teller {
    fn default() -> Teller {
        Teller::to(|news| match news {
            WorkNews::Away(_) | WorkNews::RunsLost | WorkNews::Outdated(_) | WorkNews::Refused(_) => {
                tracing::warn!("{news}");
            }
            _ => tracing::info!("{news}"),
        })
    }
}

impl Teller {
    pub(super) fn to(tell: impl Fn(&WorkNews) + Send + Sync + 'static) -> Teller {
        Teller(Arc::new(tell))
    }

    pub(super) fn tell(&self, news: &WorkNews) {
        (self.0)(news);
    }
}
