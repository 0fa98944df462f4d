//! The connections that are open: their number, and which of them have nothing to do.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// All open connections of a server. An idle one, the longest idle first, makes room for a new one.
pub(super) struct Connections {
    most: usize,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    /// Numbers connections, and orders the moments at which they became idle.
    next: u64,
    open: BTreeMap<u64, Open>,
    /// Idle connections, by the order in which they became idle.
    idle: BTreeMap<u64, u64>,
}

struct Open {
    /// The key in `idle` while no request is under way.
    idle_since: Option<u64>,
    /// Ends the connection when it is dropped.
    _end: oneshot::Sender<()>,
}

impl Table {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn remove(&mut self, id: u64) {
        if let Some(since) = self.open.remove(&id).and_then(|open| open.idle_since) {
            self.idle.remove(&since);
        }
    }

    /// Ends the connection that has been idle longest.
    fn evict(&mut self) -> bool {
        let Some((_, id)) = self.idle.pop_first() else { return false };
        self.open.remove(&id);
        true
    }

    fn set_idle(&mut self, id: u64, idle: bool) {
        let since = idle.then(|| self.number());
        let Some(open) = self.open.get_mut(&id) else { return };
        if let Some(before) = std::mem::replace(&mut open.idle_since, since) {
            self.idle.remove(&before);
        }
        if let Some(since) = since {
            self.idle.insert(since, id);
        }
    }
}

impl Connections {
    pub(super) fn new(most: usize) -> Connections {
        Connections { most, table: Mutex::default() }
    }

    /// Counts a new connection, which is idle; none where all others have requests under way.
    pub(super) fn admit(self: &Arc<Self>) -> Option<Admission> {
        let mut table = self.table();
        if table.open.len() >= self.most && !table.evict() {
            return None;
        }
        let id = table.number();
        let (end, ended) = oneshot::channel();
        table.open.insert(id, Open { idle_since: None, _end: end });
        table.set_idle(id, true);
        Some(Admission { handle: Arc::new(Handle { connections: self.clone(), id }), ended })
    }

    /// Ends the connection that has been idle longest, if any is idle.
    pub(super) fn evict(&self) {
        self.table().evict();
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        // Nothing is left half done by a panic between two statements of the table.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right to one connection; dropping it and all its requests gives the right back.
pub(super) struct Admission {
    pub(super) handle: Arc<Handle>,
    /// Done, with an error, once the connection is to end in favour of another.
    pub(super) ended: oneshot::Receiver<()>,
}

/// An open connection, as its requests know it.
pub(super) struct Handle {
    connections: Arc<Connections>,
    id: u64,
}

impl Handle {
    /// Marks the connection as busy until the request is dropped.
    pub(super) fn begin(self: &Arc<Self>) -> RequestGuard {
        self.connections.table().set_idle(self.id, false);
        RequestGuard(self.clone())
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.connections.table().remove(self.id);
    }
}

/// A request under way, up to the last byte of its answer.
pub(super) struct RequestGuard(Arc<Handle>);

impl Drop for RequestGuard {
    fn drop(&mut self) {
        self.0.connections.table().set_idle(self.0.id, true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open_and_idle(connections: &Connections) -> (usize, usize) {
        let table = connections.table();
        (table.open.len(), table.idle.len())
    }

    fn has_ended(admission: &mut Admission) -> bool {
        admission.ended.try_recv() == Err(oneshot::error::TryRecvError::Closed)
    }

    #[test]
    fn the_longest_idle_connection_makes_room() {
        let connections = Arc::new(Connections::new(2));
        let (mut first, mut second) = (connections.admit().unwrap(), connections.admit().unwrap());
        // The first one has had a request since, so the second has been idle longer.
        drop(first.handle.begin());
        let third = connections.admit().unwrap();
        assert!(!has_ended(&mut first) && has_ended(&mut second));
        drop((first, second, third));
        assert_eq!(open_and_idle(&connections), (0, 0));
    }

    #[test]
    fn a_busy_connection_is_never_ended_for_another() {
        let connections = Arc::new(Connections::new(1));
        let mut only = connections.admit().unwrap();
        let request = only.handle.begin();
        assert!(connections.admit().is_none());
        connections.evict();
        assert!(!has_ended(&mut only));
        drop(request);
        let next = connections.admit();
        assert!(next.is_some() && has_ended(&mut only));
        // An ended connection changes nothing of the new one.
        drop(only.handle.begin());
        drop(only);
        assert_eq!(open_and_idle(&connections), (1, 1));
    }
}
