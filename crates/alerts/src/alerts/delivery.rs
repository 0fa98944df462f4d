//! The sending to one channel: one notice after the other, until it is accepted.

use std::time::Duration;

use kelos_engine::wait_after;
use tokio::time::{sleep, timeout};

use super::Alerts;
use crate::channel::SendError;
use crate::details::Details;
use crate::notice::Notice;

/// The longest wait for the end of quiet hours without a look at the clock.
const LOOK: Duration = Duration::from_secs(30);

impl Alerts {
    /// Sends a channel what is due, again and again until it is accepted.
    pub(super) async fn keep_delivering(&self, channel: &str) {
        let mut stored = self.shared.stored.subscribe();
        let mut failures = 0;
        loop {
            stored.mark_unchanged();
            let sending = self.shared.sending.read().await;
            let Some(notice) = self.next_notice(channel).filter(|_| *sending) else {
                drop(sending);
                if let Ok(Err(_)) = timeout(LOOK, stored.changed()).await {
                    return;
                }
                continue;
            };
            let sent = self.deliver(channel, &notice).await;
            self.note(&notice, &sent);
            if let Err(SendError::Away(_)) = sent {
                drop(sending);
                failures += 1;
                sleep(wait_after(failures)).await;
                continue;
            }
            failures = 0;
            let now = self.shared.handle.now();
            if let Some(book) = &mut self.state().book {
                if sent.is_ok() {
                    book.accept(channel, now);
                }
                book.settle(&notice.key);
            }
            self.shared.settled.send_modify(|count| *count += 1);
        }
    }

    /// The first notice that is due for a channel and stored.
    fn next_notice(&self, channel: &str) -> Option<Notice> {
        let now = self.shared.handle.now();
        let state = self.state();
        let due = state.book.as_ref()?.due_for(channel, now)?;
        state.sendable.contains(&due.key).then(|| due.clone())
    }

    async fn deliver(&self, channel: &str, notice: &Notice) -> Result<(), SendError> {
        let shared = &self.shared;
        let Some(channel) = shared.settings.channels.get(channel) else { return Ok(()) };
        let (alerts, read) = (self.clone(), notice.clone());
        let details = tokio::task::spawn_blocking(move || {
            let shared = &alerts.shared;
            Details::read(&read, &**shared.handle.reader(), shared.handle.now(), shared.url.as_deref())
        });
        let details = details.await.unwrap_or_default();
        let details = match &notice.run {
            Some(run) => details.with_output(run, &shared.handle, &shared.hub).await,
            None => details,
        };
        channel.send(notice, &details, &shared.clients, shared.handle.now()).await
    }
}
