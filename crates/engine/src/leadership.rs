//! Work that is done while an engine leads, beside its turns: it reads the log and reports outside.

use std::time::Duration;

use tokio::sync::watch;

use crate::Status;
use crate::handle::Handle;

/// The first and the longest wait after a failure.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(300);

impl Handle {
    /// Waits until the engine leads, and does something until it does not any more; false once it has ended. To be called again and
    /// again, since it may lead again.
    pub async fn while_leading(&self, work: impl Future<Output = ()>) -> bool {
        do_while_leading(&mut self.watch_status(), work).await
    }
}

async fn do_while_leading(status: &mut watch::Receiver<Status>, work: impl Future<Output = ()>) -> bool {
    let is_ready = |status: &Status| matches!(status, Status::Leading { .. } | Status::Stopped);
    let leads = status.wait_for(is_ready).await.is_ok_and(|status| *status != Status::Stopped);
    if leads {
        tokio::select! {
            () = work => {}
            _ = status.wait_for(|status| !matches!(status, Status::Leading { .. })) => {}
        }
    }
    leads
}

/// The wait after so many failures in a row of what is tried until it works: it doubles from a second to five minutes.
#[must_use]
pub fn wait_after(failures: u32) -> Duration {
    FIRST_WAIT.saturating_mul(1 << failures.saturating_sub(1).min(16)).min(LONGEST_WAIT)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::future::pending;

    use super::*;

    #[tokio::test]
    async fn it_is_done_while_the_engine_leads_and_again() {
        let (show, mut status) = watch::channel(Status::Starting);
        let begun = Cell::new(0);
        let work = async || {
            begun.set(begun.get() + 1);
            // The engine is seen to lead by now.
            show.send_replace(Status::Troubled { reason: "no space left".to_owned() });
            pending::<()>().await;
        };
        show.send_replace(Status::Leading { epoch: 1 });
        assert!(do_while_leading(&mut status, work()).await);
        let lead = async {
            tokio::task::yield_now().await;
            assert_eq!(begun.get(), 1, "it does not lead");
            show.send_replace(Status::Leading { epoch: 2 });
        };
        assert!(tokio::join!(do_while_leading(&mut status, work()), lead).0);
        assert_eq!(begun.get(), 2);
        show.send_replace(Status::Stopped);
        assert!(!do_while_leading(&mut status, work()).await);
        assert_eq!(begun.get(), 2);
    }

    #[test]
    fn waits_double_up_to_five_minutes() {
        let waits = [0, 1, 2, 5, 9, 10, 1_000].map(|failures| wait_after(failures).as_secs());
        assert_eq!(waits, [1, 1, 2, 16, 256, 300, 300]);
    }
}
