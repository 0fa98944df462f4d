//! The two streams of a command's output, as the shim reads them.

use std::io::{self, PipeReader, PipeWriter, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{Timespec, epoll};

use super::marks::Stream;

/// The read ends of the pipes of a command's output; each is open until every writer has closed it.
///
/// A pipe for each stream, because it is not said who wrote what to one of both. What is lost is the order of what is
/// written to both within the moment that it takes to wake the shim. As near as it gets: the system lists descriptors in
/// the order in which they became readable, which `poll` does not.
pub(crate) struct Streams {
    epoll: OwnedFd,
    stdout: Option<PipeReader>,
    stderr: Option<PipeReader>,
}

/// A descriptor with something to take.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ready {
    Output(Stream),
    /// The other descriptor.
    Other,
}

impl Streams {
    /// The streams, and the ends to which standard output and standard error are written. What `other` has to say is
    /// waited for, too.
    pub(crate) fn new(other: impl AsFd) -> io::Result<(Self, PipeWriter, PipeWriter)> {
        let ((stdout, to_stdout), (stderr, to_stderr)) = (io::pipe()?, io::pipe()?);
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let add = |descriptor: BorrowedFd<'_>, ready: Ready| {
            epoll::add(&epoll, descriptor, epoll::EventData::new_u64(ready.code()), epoll::EventFlags::IN)
        };
        add(stdout.as_fd(), Ready::Output(Stream::Stdout))?;
        add(stderr.as_fd(), Ready::Output(Stream::Stderr))?;
        add(other.as_fd(), Ready::Other)?;
        Ok((Self { epoll, stdout: Some(stdout), stderr: Some(stderr) }, to_stdout, to_stderr))
    }

    /// Waits until there is something to take. Nothing when the time is up, or a signal came.
    pub(crate) fn wait(&self, wait: Option<Duration>) -> Vec<Ready> {
        let timeout = wait.and_then(|wait| Timespec::try_from(wait).ok());
        let mut events = [MaybeUninit::uninit(); 3];
        match epoll::wait(&self.epoll, &mut events, timeout.as_ref()) {
            Ok((events, _)) => events.iter().map(|event| Ready::of(event.data.u64())).collect(),
            Err(_) => Vec::new(),
        }
    }

    /// Reads what there is of a stream that is ready; nothing at its end.
    pub(crate) fn read(&mut self, stream: Stream, buffer: &mut [u8]) -> usize {
        let pipe = if stream == Stream::Stderr { &mut self.stderr } else { &mut self.stdout };
        let read = match pipe {
            Some(pipe) => pipe.read(buffer),
            None => Ok(0),
        };
        match read {
            Ok(read) if read > 0 => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
            _ => {
                if let Some(ended) = pipe.take() {
                    // Closing would do, unless a process was just forked that has not been executed yet.
                    let _ = epoll::delete(&self.epoll, ended);
                }
                0
            }
        }
    }

    /// Whether both streams have ended.
    pub(crate) fn have_ended(&self) -> bool {
        self.stdout.is_none() && self.stderr.is_none()
    }
}

impl Ready {
    const fn code(self) -> u64 {
        match self {
            Ready::Output(stream) => stream as u64,
            Ready::Other => u64::MAX,
        }
    }

    fn of(code: u64) -> Ready {
        let streams = [Stream::Stdout, Stream::Stderr];
        streams.into_iter().find(|stream| *stream as u64 == code).map_or(Ready::Other, Ready::Output)
    }
}
