//! The connections that are open: their number, whose they are, and which of them have nothing to do.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// All open connections of a server. An idle one, the longest idle first, makes room for a new one, and one of the same address where
/// that has as many as it may.
pub(super) struct Connections {
    most: usize,
    most_of_address: usize,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    /// Numbers connections, and orders the moments at which they became idle.
    next: u64,
    open: BTreeMap<u64, Open>,
    /// Idle connections, by the order in which they became idle.
    idle: BTreeMap<u64, u64>,
    addresses: HashMap<IpAddr, OfAddress>,
}

/// The connections of one address.
#[derive(Default)]
struct OfAddress {
    open: usize,
    idle: BTreeMap<u64, u64>,
}

struct Open {
    /// The address that it counts for, if any.
    address: Option<IpAddr>,
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
        self.set_idle(id, false);
        let Some(address) = self.open.remove(&id).and_then(|open| open.address) else { return };
        if let Some(of_address) = self.addresses.get_mut(&address) {
            of_address.open -= 1;
            if of_address.open == 0 {
                self.addresses.remove(&address);
            }
        }
    }

    /// Ends the connection that has been idle longest, of all or of an address.
    fn evict(&mut self, address: Option<IpAddr>) -> bool {
        let idle = match address {
            None => Some(&self.idle),
            Some(address) => self.addresses.get(&address).map(|of_address| &of_address.idle),
        };
        let Some(id) = idle.and_then(|idle| idle.first_key_value()).map(|(_, id)| *id) else { return false };
        self.remove(id);
        true
    }

    fn of_address(&self, address: IpAddr) -> usize {
        self.addresses.get(&address).map_or(0, |of_address| of_address.open)
    }

    fn set_idle(&mut self, id: u64, idle: bool) {
        let since = idle.then(|| self.number());
        let Some(open) = self.open.get_mut(&id) else { return };
        let before = std::mem::replace(&mut open.idle_since, since);
        let of_address = open.address.and_then(|address| self.addresses.get_mut(&address));
        for idle in [Some(&mut self.idle), of_address.map(|of_address| &mut of_address.idle)].into_iter().flatten() {
            before.map(|before| idle.remove(&before));
            since.map(|since| idle.insert(since, id));
        }
    }
}

impl Connections {
    pub(super) fn new(most: usize, most_of_address: usize) -> Connections {
        Connections { most, most_of_address, table: Mutex::default() }
    }

    /// Counts a new connection, which is idle, for its address if that has a limit; none where all others, or all others of the address,
    /// have requests under way.
    pub(super) fn admit(self: &Arc<Self>, address: Option<IpAddr>) -> Option<Admission> {
        let mut table = self.table();
        let is_full = |address| table.of_address(address) >= self.most_of_address;
        if address.is_some_and(is_full) && !table.evict(address) {
            return None;
        }
        if table.open.len() >= self.most && !table.evict(None) {
            return None;
        }
        let id = table.number();
        let (end, ended) = oneshot::channel();
        if let Some(address) = address {
            table.addresses.entry(address).or_default().open += 1;
        }
        table.open.insert(id, Open { address, idle_since: None, _end: end });
        table.set_idle(id, true);
        Some(Admission { handle: Arc::new(Handle { connections: self.clone(), id }), ended })
    }

    /// Ends the connection that has been idle longest, if any is idle.
    pub(super) fn evict(&self) {
        self.table().evict(None);
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
        let connections = Arc::new(Connections::new(2, 2));
        let (mut first, mut second) = (connections.admit(None).unwrap(), connections.admit(None).unwrap());
        // The first one has had a request since, so the second has been idle longer.
        drop(first.handle.begin());
        let third = connections.admit(None).unwrap();
        assert!(!has_ended(&mut first) && has_ended(&mut second));
        drop((first, second, third));
        assert_eq!(open_and_idle(&connections), (0, 0));
    }

    #[test]
    fn one_address_can_not_take_all_connections() {
        let (one, other) = (Some([192, 0, 2, 7].into()), Some([192, 0, 2, 8].into()));
        let connections = Arc::new(Connections::new(8, 2));
        let mut theirs = connections.admit(other).unwrap();
        let (mut first, second) = (connections.admit(one).unwrap(), connections.admit(one).unwrap());
        // An idle one of the same address makes room, and none of another.
        let third = connections.admit(one).unwrap();
        assert!(has_ended(&mut first) && !has_ended(&mut theirs));
        let requests = (second.handle.begin(), third.handle.begin());
        assert!(connections.admit(one).is_none());
        // Others, and those whose address has no limit, are let in.
        assert!(connections.admit(other).is_some() && connections.admit(None).is_some());
        drop(requests);
        assert!(connections.admit(one).is_some());
        drop((first, second, third, theirs));
        assert_eq!(open_and_idle(&connections), (0, 0));
        assert!(connections.table().addresses.is_empty());
    }

    #[test]
    fn a_busy_connection_is_never_ended_for_another() {
        let connections = Arc::new(Connections::new(1, 1));
        let mut only = connections.admit(None).unwrap();
        let request = only.handle.begin();
        assert!(connections.admit(None).is_none());
        connections.evict();
        assert!(!has_ended(&mut only));
        drop(request);
        let next = connections.admit(None);
        assert!(next.is_some() && has_ended(&mut only));
        // An ended connection changes nothing of the new one.
        drop(only.handle.begin());
        drop(only);
        assert_eq!(open_and_idle(&connections), (1, 1));
    }
}
