//! Requests and their answers.

use std::io;
use std::time::{Duration, Instant};

use crate::error::{Code, words};
use crate::frames::Frames;
use crate::wire::{Answer, Request, kind};
use crate::{Access, Login, Node, PATIENCE, Write, ZooKeeperError};

/// How long a server keeps the session without a request.
const SESSION_MILLIS: i32 = 30_000;
/// The numbers of requests without an order of their own.
const PING: i32 = -2;
const AUTH: i32 = -4;
/// The number of a notice about a node that is watched.
const NOTICE: i32 = -1;
/// Requests that are sent before their answers are awaited.
const TOGETHER: usize = 16;

/// A session.
pub struct Session {
    frames: Frames,
    requests: i32,
    has_user: bool,
    /// The latest change that a server has told of.
    seen: i64,
    is_noticed: bool,
}

impl Session {
    /// Opens a session with the first server that answers, and that knows all changes up to one that was seen before.
    ///
    /// # Errors
    /// [`ZooKeeperError::Unreachable`] and [`ZooKeeperError::Password`].
    pub fn open(access: &Access, seen: i64) -> Result<Session, ZooKeeperError> {
        let mut refused = Vec::new();
        for (host, port) in &access.hosts {
            let connected = Frames::connect(host, *port, access.trust.as_ref());
            match connected.and_then(|frames| Session::begin(frames, access, seen)) {
                Ok(mut session) => {
                    if let Some(login) = &access.login {
                        session.authenticate(login)?;
                    }
                    return Ok(session);
                }
                Err(error) => refused.push(format!("{host}:{port}: {}", words(&error))),
            }
        }
        Err(ZooKeeperError::Unreachable(refused.join(", ")))
    }

    fn begin(frames: Frames, access: &Access, seen: i64) -> io::Result<Session> {
        let mut session = Session { frames, requests: 0, has_user: access.login.is_some(), seen, is_noticed: false };
        let request =
            Request::default().int(0).long(seen).int(SESSION_MILLIS).long(0).bytes(&[0; 16]).flag(access.is_reading);
        session.frames.send(&request.framed())?;
        let answer = session.frames.receive(PATIENCE)?;
        let timeout = Answer(&answer).skip(4).and_then(Answer::int).map(|(millis, _)| millis);
        match timeout {
            Some(millis) if millis > 0 => Ok(session),
            _ => Err(io::Error::other("it refused the session")),
        }
    }

    fn authenticate(&mut self, login: &Login) -> Result<(), ZooKeeperError> {
        let password = format!("{}:{}", login.user, login.password);
        let request = Request::new(AUTH, kind::AUTH).int(0).text("digest").text(&password);
        let answered = self.frames.send(&request.framed()).and_then(|()| self.answer(AUTH));
        match answered.map_err(|error| ZooKeeperError::Unreachable(words(&error)))? {
            (0, _) => Ok(()),
            _ => Err(ZooKeeperError::Password(login.user.clone())),
        }
    }

    /// The latest change that a server has told of: the next session is to know it, too.
    #[must_use]
    pub fn seen(&self) -> i64 {
        self.seen
    }

    /// Shows the server a sign of life, and finds out whether it gives one.
    ///
    /// # Errors
    /// [`ZooKeeperError::Lost`].
    pub fn ping(&mut self) -> Result<(), ZooKeeperError> {
        let sent = self.frames.send(&Request::new(PING, kind::PING).framed());
        let answered = sent.and_then(|()| self.answer(PING));
        answered.map(drop).map_err(|error| ZooKeeperError::lost(&error))
    }

    /// The node at a path; none if there is none.
    ///
    /// # Errors
    /// [`ZooKeeperError::Refused`] and [`ZooKeeperError::Lost`].
    pub fn node(&mut self, path: &str) -> Result<Option<Node>, ZooKeeperError> {
        self.nodes(&[path]).map(|mut nodes| nodes.pop().flatten())
    }

    /// The nodes at paths, asked for at once.
    ///
    /// # Errors
    /// [`ZooKeeperError::Refused`] and [`ZooKeeperError::Lost`].
    pub fn nodes<T: AsRef<str>>(&mut self, paths: &[T]) -> Result<Vec<Option<Node>>, ZooKeeperError> {
        let mut nodes = Vec::with_capacity(paths.len());
        for paths in paths.chunks(TOGETHER) {
            let questions = self.questions(paths);
            self.frames.send(&questions).map_err(|error| ZooKeeperError::lost(&error))?;
            nodes.extend(self.found(paths)?);
        }
        Ok(nodes)
    }

    /// The same of a few nodes with all changes that were made before, in one message: a server answers a session in the order of its
    /// requests.
    ///
    /// # Errors
    /// [`ZooKeeperError::Refused`] and [`ZooKeeperError::Lost`].
    pub fn latest_nodes<T: AsRef<str>>(&mut self, paths: &[T]) -> Result<Vec<Option<Node>>, ZooKeeperError> {
        let Some(path) = paths.first() else { return Ok(Vec::new()) };
        self.requests += 1;
        let sync = self.requests;
        let mut questions = Request::new(sync, kind::SYNC).text(path.as_ref()).framed();
        questions.extend(self.questions(paths));
        let sent = self.frames.send(&questions);
        let synced = sent.and_then(|()| self.answer(sync)).map_err(|error| ZooKeeperError::lost(&error))?;
        let nodes = self.found(paths)?;
        content_of(path.as_ref(), synced)?;
        Ok(nodes)
    }

    /// The requests for the nodes at paths.
    fn questions<T: AsRef<str>>(&mut self, paths: &[T]) -> Vec<u8> {
        let mut all = Vec::new();
        for path in paths {
            self.requests += 1;
            all.extend(Request::new(self.requests, kind::GET_DATA).text(path.as_ref()).flag(false).framed());
        }
        all
    }

    /// The answers to the last requests, which were for the nodes at these paths.
    fn found<T: AsRef<str>>(&mut self, paths: &[T]) -> Result<Vec<Option<Node>>, ZooKeeperError> {
        let many = i32::try_from(paths.len()).unwrap_or(i32::MAX);
        let first = self.requests.wrapping_sub(many).wrapping_add(1);
        let answers: io::Result<Vec<_>> = (first..).zip(paths).map(|(number, _)| self.answer(number)).collect();
        let answers = answers.map_err(|error| ZooKeeperError::lost(&error))?;
        paths.iter().zip(answers).map(|(path, answer)| node_of(path.as_ref(), answer)).collect()
    }

    /// The node at a path; [`Session::wait`] ends when it changes.
    ///
    /// # Errors
    /// [`ZooKeeperError::Refused`] and [`ZooKeeperError::Lost`].
    pub fn watch(&mut self, path: &str) -> Result<Option<Node>, ZooKeeperError> {
        self.is_noticed = false;
        let answer = self.ask(kind::GET_DATA, |request| request.text(path).flag(true))?;
        node_of(path, answer)
    }

    /// Waits until a watched node changes, at most for a time; whether it has changed.
    ///
    /// # Errors
    /// [`ZooKeeperError::Lost`].
    pub fn wait(&mut self, patience: Duration) -> Result<bool, ZooKeeperError> {
        let began = Instant::now();
        while !self.is_noticed {
            let left = patience.saturating_sub(began.elapsed());
            match self.frames.receive(left) {
                Ok(message) => self.is_noticed |= Answer(&message).int().is_some_and(|(number, _)| number == NOTICE),
                Err(error) if matches!(error.kind(), io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock) => break,
                Err(error) => return Err(ZooKeeperError::lost(&error)),
            }
        }
        Ok(self.is_noticed)
    }

    /// The names of a node's children, ascending; none if there is no such node.
    ///
    /// # Errors
    /// [`ZooKeeperError::Refused`] and [`ZooKeeperError::Lost`].
    pub fn children(&mut self, path: &str) -> Result<Option<Vec<String>>, ZooKeeperError> {
        let answer = self.ask(kind::GET_CHILDREN, |request| request.text(path).flag(false))?;
        let Some(content) = content_of(path, answer)? else { return Ok(None) };
        Answer(&content).names().map(Some).ok_or_else(|| senseless(path))
    }

    /// Has the server know all changes that were made before.
    ///
    /// # Errors
    /// [`ZooKeeperError::Refused`] and [`ZooKeeperError::Lost`].
    pub fn sync(&mut self, path: &str) -> Result<(), ZooKeeperError> {
        let answer = self.ask(kind::SYNC, |request| request.text(path))?;
        content_of(path, answer).map(drop)
    }

    /// Does all writes or none; in the latter case the index and the reason of the first one that is refused.
    ///
    /// # Errors
    /// [`ZooKeeperError::Lost`] where it is not known whether they were done.
    pub fn write(&mut self, writes: &[Write<'_>]) -> Result<Result<(), (usize, Code)>, ZooKeeperError> {
        let has_user = self.has_user;
        let (code, content) = self.ask(kind::MULTI, |request| {
            writes.iter().fold(request, |request, write| request.write(write, has_user)).end()
        })?;
        let failed = Answer(&content).failed_write();
        let refused = match (code, failed) {
            (0, Some(None)) => return Ok(Ok(())),
            (_, Some(Some(refused))) => refused,
            (0, None) => return Err(ZooKeeperError::Lost("the answer to writes makes no sense".to_owned())),
            (code, _) => (0, code),
        };
        match Code::of(refused.1) {
            Some(code) => Ok(Err((refused.0, code))),
            None => Err(ZooKeeperError::Lost(format!("error {} of ZooKeeper", refused.1))),
        }
    }

    fn ask(&mut self, kind: i32, content: impl FnOnce(Request) -> Request) -> Result<(i32, Vec<u8>), ZooKeeperError> {
        self.requests += 1;
        let request = content(Request::new(self.requests, kind));
        let sent = self.frames.send(&request.framed());
        sent.and_then(|()| self.answer(self.requests)).map_err(|error| ZooKeeperError::lost(&error))
    }

    /// The code and the content of the answer to a request.
    fn answer(&mut self, request: i32) -> io::Result<(i32, Vec<u8>)> {
        loop {
            let mut message = self.frames.receive(PATIENCE)?;
            let header = Answer(&message).int().and_then(|(of, rest)| {
                let (change, rest) = rest.long()?;
                let (code, rest) = rest.int()?;
                Some((of, change, code, message.len() - rest.0.len()))
            });
            let Some((of, change, code, length)) = header else {
                return Err(io::Error::other("an answer is too short"));
            };
            self.seen = self.seen.max(change);
            if of == NOTICE {
                self.is_noticed = true;
            }
            if of == request {
                return Ok((code, message.split_off(length)));
            }
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let request = Request::new(self.requests.wrapping_add(1), kind::CLOSE);
        // A session that can't be closed ends by itself.
        let _ = self.frames.send(&request.framed());
    }
}

/// The content of an answer; none if there is no such node.
fn content_of(path: &str, (code, content): (i32, Vec<u8>)) -> Result<Option<Vec<u8>>, ZooKeeperError> {
    match Code::of(code) {
        _ if code == 0 => Ok(Some(content)),
        Some(Code::NoNode) => Ok(None),
        Some(code) => Err(ZooKeeperError::Refused { path: path.to_owned(), code }),
        None => Err(ZooKeeperError::Lost(format!("{path}: error {code} of ZooKeeper"))),
    }
}

fn node_of(path: &str, answer: (i32, Vec<u8>)) -> Result<Option<Node>, ZooKeeperError> {
    let Some(content) = content_of(path, answer)? else { return Ok(None) };
    let (data, version) = Answer(&content).node().ok_or_else(|| senseless(path))?;
    Ok(Some(Node { data, version }))
}

fn senseless(path: &str) -> ZooKeeperError {
    ZooKeeperError::Lost(format!("the answer about {path} makes no sense"))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn a_server_that_is_none_is_told() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let answer = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
        });
        let (access, _) = Access::read(&format!("127.0.0.1:{port}"), None).unwrap();
        let told = Session::open(&access, 0).err().unwrap();
        assert_eq!(told.to_string(), format!("127.0.0.1:{port}: it does not answer as ZooKeeper does"));
        answer.join().unwrap();
    }
}
