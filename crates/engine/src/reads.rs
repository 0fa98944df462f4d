//! Reads of the store for requests, on so many threads that the scheduler keeps its own.
//!
//! Each thread that reads has a connection to the database, with its descriptors and its memory, and takes processor time from the
//! scheduler. So their number is bounded for the process, however many clients ask: further reads wait for their turn. Streams have a
//! few threads of their own, because a client can have one read on for ever.

use kelos_store::StoreError;
use tokio::sync::Semaphore;

/// Reads for requests at a time.
const REQUESTS: usize = 16;
/// Reads for streams at a time.
const STREAMS: usize = 2;
/// Reads at a time that show whether the store can be read.
const HEALTH: usize = 2;

static FOR_REQUESTS: Semaphore = Semaphore::const_new(REQUESTS);
static FOR_STREAMS: Semaphore = Semaphore::const_new(STREAMS);
static FOR_HEALTH: Semaphore = Semaphore::const_new(HEALTH);

/// The threads that a read may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Lane {
    /// Those of requests that are answered at once.
    #[default]
    Requests,
    /// Those of streams.
    Streams,
    /// Those of questions whether the server works, which don't wait for requests that take long.
    Health,
}

impl Lane {
    fn permits(self) -> &'static Semaphore {
        match self {
            Lane::Requests => &FOR_REQUESTS,
            Lane::Streams => &FOR_STREAMS,
            Lane::Health => &FOR_HEALTH,
        }
    }

    /// Reads on a thread that may block, once there is one. `doing` completes "failed to …" if the process is ending.
    ///
    /// # Errors
    /// When the read fails.
    pub async fn read<T: Send + 'static>(
        self,
        doing: &'static str,
        read: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let ending = |cause: String| Err(StoreError::Medium { doing: doing.to_owned(), cause });
        let permit = match self.permits().acquire().await {
            Ok(permit) => permit,
            Err(closed) => return ending(closed.to_string()),
        };
        // The permit goes with the thread: whoever asked may give up, and the thread still reads.
        let reading = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            read()
        });
        match reading.await {
            Ok(answer) => answer,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(error) => ending(error.to_string()),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, Condvar, Mutex};

    use super::*;

    /// A gate that holds reads until it is opened, and counts those that came.
    #[derive(Default)]
    struct Gate {
        is_open: Mutex<bool>,
        opened: Condvar,
        waiting: AtomicUsize,
    }

    impl Gate {
        fn pass(&self) {
            self.waiting.fetch_add(1, Ordering::SeqCst);
            let is_open = self.is_open.lock().unwrap();
            drop(self.opened.wait_while(is_open, |is_open| !*is_open).unwrap());
        }

        fn open(&self) {
            *self.is_open.lock().unwrap() = true;
            self.opened.notify_all();
        }
    }

    #[tokio::test]
    async fn streams_that_read_leave_threads_to_requests() {
        let gate = Arc::new(Gate::default());
        let reads: Vec<_> = (0..50)
            .map(|_| {
                let gate = gate.clone();
                let read = move || {
                    gate.pass();
                    Ok(())
                };
                tokio::spawn(Lane::Streams.read("read", read))
            })
            .collect();
        while gate.waiting.load(Ordering::SeqCst) < STREAMS {
            tokio::task::yield_now().await;
        }
        assert_eq!(Lane::Requests.read("read", || Ok(7)).await.unwrap(), 7);
        assert_eq!(gate.waiting.load(Ordering::SeqCst), STREAMS, "the others wait for their turn");
        // Those who give up take no thread, and those who read keep theirs to the end.
        reads[STREAMS..40].iter().for_each(tokio::task::JoinHandle::abort);
        gate.open();
        for read in reads {
            let _ = read.await;
        }
        assert_eq!(FOR_STREAMS.available_permits(), STREAMS);
    }
}
