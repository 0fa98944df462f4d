//! The output of a query while it is read. A thread of its own writes it: the query holds a read transaction, and output that nobody takes
//! would hold it for ever.

use std::io::{self, ErrorKind, Write};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The most bytes that wait to be written, beside one row.
const MOST_BYTES: usize = 1 << 20;
/// The time between two tries where there are as many.
const PAUSE: Duration = Duration::from_millis(5);

/// The reason for which an answer was not printed to its end.
#[derive(Debug, thiserror::Error)]
pub(super) enum OutletError {
    /// Too much waited to be written when the time was over.
    #[error("its reader did not take it within {} s", .0.as_secs_f64())]
    Stalled(Duration),
    /// It could not be written.
    #[error(transparent)]
    Broken(#[from] io::Error),
}

/// The standard output, which is written without those waiting who fill it.
pub(super) struct Outlet {
    unsent: Vec<u8>,
    chunks: SyncSender<Vec<u8>>,
    writer: JoinHandle<io::Result<()>>,
    limit: Duration,
    /// The end of the limit; none if it is beyond all time.
    until: Option<Instant>,
    is_stalled: bool,
}

impl Outlet {
    /// Opens it for a query with a time limit.
    pub(super) fn open(limit: Duration) -> io::Result<Outlet> {
        let (chunks, taken) = sync_channel(1);
        let writer = thread::Builder::new().name("output".to_owned()).spawn(move || write(&taken))?;
        let until = Instant::now().checked_add(limit);
        Ok(Outlet { unsent: Vec::new(), chunks, writer, limit, until, is_stalled: false })
    }

    /// Adds a text, and waits where too much waits to be written. False if no more is taken.
    pub(super) fn takes(&mut self, text: &[u8]) -> bool {
        self.unsent.extend_from_slice(text);
        loop {
            match self.chunks.try_send(std::mem::take(&mut self.unsent)) {
                Ok(()) => return true,
                Err(TrySendError::Disconnected(_)) => return false,
                Err(TrySendError::Full(unsent)) => self.unsent = unsent,
            }
            if self.unsent.len() < MOST_BYTES {
                return true;
            }
            if self.until.is_some_and(|until| Instant::now() >= until) {
                self.is_stalled = true;
                return false;
            }
            thread::sleep(PAUSE);
        }
    }

    /// Writes what is left, however long it takes: the query has ended. A reader that went away is no failure, as with other filters.
    pub(super) fn close(self, end: &[u8]) -> Result<(), OutletError> {
        if self.is_stalled {
            return Err(OutletError::Stalled(self.limit));
        }
        let rest = [&self.unsent, end].concat();
        // One who has ended says why.
        drop(self.chunks.send(rest));
        drop(self.chunks);
        match self.writer.join() {
            Ok(Err(error)) if error.kind() != ErrorKind::BrokenPipe => Err(error.into()),
            _ => Ok(()),
        }
    }
}

fn write(chunks: &Receiver<Vec<u8>>) -> io::Result<()> {
    let mut out = io::stdout().lock();
    while let Ok(chunk) = chunks.recv() {
        out.write_all(&chunk)?;
    }
    out.flush()
}
