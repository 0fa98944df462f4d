//! The metrics of a worker: what it has to do, and whether its leader answers.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kelos_executors::workers::News;

use crate::families;
use crate::text::{Text, labels};
use crate::workflow::{OUTCOMES, place_of};

/// The metrics of a worker. Cheap to clone.
#[derive(Clone)]
pub struct WorkerMetrics {
    version: Arc<str>,
    places: u32,
    counts: Arc<Mutex<WorkerCounts>>,
}

#[derive(Default)]
struct WorkerCounts {
    /// Whether the leader has answered, and its last message was answered, too.
    is_connected: bool,
    busy: u64,
    ended: [u64; OUTCOMES.len()],
    lost: u64,
}

impl WorkerMetrics {
    /// The metrics of a worker with so many places.
    #[must_use]
    pub fn new(version: &str, places: u32) -> WorkerMetrics {
        WorkerMetrics { version: version.into(), places, counts: Arc::default() }
    }

    fn counts(&self) -> MutexGuard<'_, WorkerCounts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts what a worker tells of itself.
    pub fn hear(&self, news: &News) {
        let mut counts = self.counts();
        match news {
            News::Came | News::Back => counts.is_connected = true,
            News::Began(_) => counts.busy += 1,
            News::Over(over) => {
                counts.busy = counts.busy.saturating_sub(1);
                counts.ended[place_of(&over.outcome)] += 1;
            }
            News::Away(_) | News::Useless(_) => counts.is_connected = false,
            News::GivenUp => (counts.busy, counts.lost) = (0, counts.lost + 1),
            // Only programs hear of it, which have no metrics of their own.
            News::Outdated(_) => {}
        }
    }

    /// Whether its leader answers.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.counts().is_connected
    }

    /// The text for Prometheus.
    #[must_use]
    pub fn text(&self) -> String {
        let counts = self.counts();
        let mut text = Text::default();
        text.family(&families::BUILD_INFO).add(&labels(&[("version", &self.version)]), 1);
        text.one(&families::READY, u8::from(counts.is_connected));
        text.one(&families::WORKER_CONNECTED, u8::from(counts.is_connected));
        text.one(&families::WORKER_PLACES, self.places);
        text.one(&families::WORKER_BUSY, counts.busy);
        let mut family = text.family(&families::WORKER_ENDED);
        for (outcome, count) in OUTCOMES.iter().zip(counts.ended) {
            family.add_with("", "outcome", outcome, count);
        }
        text.one(&families::WORKER_LOST, counts.lost);
        text.end()
    }
}
