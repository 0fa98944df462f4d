//! A session that is opened when it is needed, and opened again after an error.

use std::time::{Duration, Instant};

use kelos_store::log::LogError;
use kelos_store::log::adapter::Action;
use kelos_zookeeper::{Code, Session, Write, ZooKeeperError};

use crate::ZooKeeperLog;
use crate::layout::Layout;

/// A session that was idle for longer is tried before it is used: an answer that is lost leaves doubt, and a closed connection none.
const IDLE: Duration = Duration::from_secs(3);

pub(crate) struct Link {
    pub(crate) place: ZooKeeperLog,
    pub(crate) layout: Layout,
    session: Option<Session>,
    used: Instant,
    /// The latest change that was seen: another server that lags behind is not used.
    seen: i64,
}

/// A refusal of one of several writes: its index and the reason.
pub(crate) type Refusal = (usize, Code);

impl Link {
    pub(crate) fn new(place: ZooKeeperLog) -> Link {
        let layout = Layout::new(&place.root);
        Link { place, layout, session: None, used: Instant::now(), seen: 0 }
    }

    /// Asks ZooKeeper without changing anything.
    pub(crate) fn ask<T>(
        &mut self,
        action: Action<'_>,
        question: impl FnOnce(&mut Session) -> Result<T, ZooKeeperError>,
    ) -> Result<T, LogError> {
        self.request(action.asking(), question)
    }

    /// Its refusals say that nothing was done.
    fn request<T>(
        &mut self,
        action: Action<'_>,
        question: impl FnOnce(&mut Session) -> Result<T, ZooKeeperError>,
    ) -> Result<T, LogError> {
        self.connect(action)?;
        let Some(session) = &mut self.session else { unreachable!("it was opened") };
        let answer = question(session);
        self.used = Instant::now();
        self.seen = session.seen();
        answer.map_err(|error| {
            // A session that ended is refused by its server, and another one is not.
            self.session = None;
            match &error {
                ZooKeeperError::Lost(why) => action.lost(why.clone()),
                _ => action.failed(error.to_string()),
            }
        })
    }

    /// Does several writes together, or none.
    pub(crate) fn write(&mut self, action: Action<'_>, writes: &[Write<'_>]) -> Result<Result<(), Refusal>, LogError> {
        let done = self.request(action, |session| session.write(writes))?;
        match done {
            Err((_, code @ (Code::SessionEnded | Code::NotPermitted | Code::ReadOnly | Code::Quota))) => {
                self.session = None;
                Err(action.failed(code.to_string()))
            }
            done => Ok(done),
        }
    }

    /// Opens a session unless there is one. Nothing was asked before, so an error here is no doubt.
    fn connect(&mut self, action: Action<'_>) -> Result<(), LogError> {
        if self.used.elapsed() > IDLE {
            self.session.take_if(|session| session.ping().is_err());
        }
        if self.session.is_some() {
            return Ok(());
        }
        let told = |error: ZooKeeperError| action.failed(format!("{} can't be used: {error}", self.place.name));
        let mut session = Session::open(&self.place.access, self.seen).map_err(told)?;
        prepare(&mut session, &self.layout).map_err(told)?;
        self.session = Some(session);
        self.used = Instant::now();
        Ok(())
    }
}

/// Makes the nodes that each log has.
fn prepare(session: &mut Session, layout: &Layout) -> Result<(), ZooKeeperError> {
    if session.node(&layout.last)?.is_some() {
        return Ok(());
    }
    for (path, data) in layout.nodes() {
        match session.write(&[Write::Create { path: &path, data: &data }])? {
            Ok(()) | Err((_, Code::Exists)) => {}
            Err((_, code)) => return Err(ZooKeeperError::Refused { path, code }),
        }
    }
    Ok(())
}
