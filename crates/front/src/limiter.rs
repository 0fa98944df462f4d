//! Limits on what one client may ask: requests by a token bucket, and streams at a time.
//!
//! Clients are told apart by a key, which is made elsewhere: who somebody is, or else from where the request comes. What is *absent*: a
//! clock.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::http::Extensions;

use crate::address::ClientAddress;
use crate::identity::{Credential, of_request};
use crate::limits::Quota;

/// The number of clients from which on those are forgotten that have asked nothing for long.
const FEW: usize = 1024;

/// The client that a request counts for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ClientKey {
    /// The name of somebody known, from any address; none for those who are known by their address alone.
    pub actor: Option<Arc<str>>,
    /// The address, of IPv6 the network of one line.
    pub address: Option<IpAddr>,
}

impl ClientKey {
    /// The key of whoever sends a request from an address; none for this machine, which has no limits.
    #[must_use]
    pub fn by_address(extensions: &Extensions) -> Option<ClientKey> {
        let client = extensions.get::<ClientAddress>().filter(|client| !client.is_local)?;
        Some(ClientKey { actor: None, address: Some(line(client.ip)) })
    }
}

impl ClientKey {
    /// The key of somebody who has shown a credential, or else of the address.
    #[must_use]
    pub fn by_identity(extensions: &Extensions) -> Option<ClientKey> {
        let by_address = ClientKey::by_address(extensions)?;
        let identity = of_request(extensions).ok().filter(|identity| identity.actor.credential.is_some());
        // All requests from addresses with a rule are one actor, and many clients.
        let known = identity.filter(|identity| !matches!(identity.credential, Credential::Address));
        Some(match known {
            Some(identity) => ClientKey { actor: Some(identity.actor.name.clone()), address: None },
            None => by_address,
        })
    }
}

/// An address without what its owner chooses freely: half of an IPv6 address.
#[must_use]
pub fn line(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() & (u128::MAX << 64)).into(),
        other => other,
    }
}

/// The limits of all clients. Cheap to clone; all clones count together.
#[derive(Clone)]
pub struct Limiter {
    quota: Quota,
    table: Arc<Mutex<Table>>,
}

#[derive(Default)]
struct Table {
    /// When the bucket of a client is full again.
    full_at: HashMap<ClientKey, Instant>,
    /// The number of clients at which the table is next tidied.
    tidy_at: usize,
    streams: HashMap<ClientKey, u32>,
    all_streams: u32,
}

/// The reason for which a stream is not opened, with the number of those that are open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TooManyStreams {
    /// The client has as many as it may have.
    OfClient(u32),
    /// All clients together have as many as they may have.
    OfAll(u32),
}

impl Limiter {
    /// Limits of those who are known by their names, and of others by their addresses.
    #[must_use]
    pub fn new(quota: Quota) -> Limiter {
        Limiter { quota, table: Arc::default() }
    }

    /// The limits of each client.
    #[must_use]
    pub fn quota(&self) -> &Quota {
        &self.quota
    }

    /// Takes the token of one request at a moment.
    ///
    /// # Errors
    /// When the bucket is empty: the time until there is a token.
    pub fn take(&self, key: &ClientKey, now: Instant) -> Result<(), Duration> {
        let interval = Duration::from_secs(1) / self.quota.requests_per_second.max(1);
        let mut table = self.table();
        if table.full_at.len() >= table.tidy_at.max(FEW) {
            table.full_at.retain(|_, full_at| *full_at > now);
            table.tidy_at = 2 * table.full_at.len();
        }
        let full_at = table.full_at.get(key).map_or(now, |full_at| (*full_at).max(now)) + interval;
        let most = interval * self.quota.burst.max(1);
        match (full_at - now).checked_sub(most) {
            Some(wait) if !wait.is_zero() => Err(wait),
            _ => {
                table.full_at.insert(key.clone(), full_at);
                Ok(())
            }
        }
    }

    /// Counts a stream until the guard is dropped. Without a key it is one of this machine, which leaves half of all streams to others.
    ///
    /// # Errors
    /// When the client, or all of them, have too many.
    pub fn open_stream(&self, key: Option<&ClientKey>) -> Result<StreamGuard, TooManyStreams> {
        let (all, of_client) = (self.quota.all_streams, self.quota.streams);
        let key = key.cloned().unwrap_or(ClientKey { actor: None, address: None });
        let most =
            if key.address.is_none() && key.actor.is_none() { all.div_ceil(2).max(of_client) } else { of_client };
        let mut table = self.table();
        let open = table.streams.get(&key).copied().unwrap_or_default();
        if table.all_streams >= all {
            return Err(TooManyStreams::OfAll(all));
        }
        if open >= most {
            return Err(TooManyStreams::OfClient(most));
        }
        table.streams.insert(key.clone(), open + 1);
        table.all_streams += 1;
        Ok(StreamGuard { table: self.table.clone(), key })
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An open stream of a client.
pub struct StreamGuard {
    table: Arc<Mutex<Table>>,
    key: ClientKey,
}

impl Drop for StreamGuard {
    fn drop(&mut self) {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(open) = table.streams.get_mut(&self.key) {
            *open -= 1;
            if *open == 0 {
                table.streams.remove(&self.key);
            }
            table.all_streams -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limiter() -> Limiter {
        Limiter::new(Quota { requests_per_second: 10, burst: 3, streams: 2, all_streams: 6 })
    }

    fn key(address: &str) -> ClientKey {
        let mut extensions = Extensions::new();
        extensions.insert(ClientAddress::direct(address.parse().unwrap(), true));
        ClientKey::by_address(&extensions).unwrap()
    }

    #[test]
    fn a_bucket_has_a_burst_and_is_filled_again() {
        let (limiter, client, start) = (limiter(), key("192.0.2.7"), Instant::now());
        let at = |millis| start + Duration::from_millis(millis);
        assert_eq!([0, 0, 0].map(|now| limiter.take(&client, at(now))), [Ok(()); 3]);
        assert_eq!(limiter.take(&client, at(0)), Err(Duration::from_millis(100)));
        // A refused request costs nothing.
        assert_eq!(limiter.take(&client, at(40)), Err(Duration::from_millis(60)));
        assert_eq!(limiter.take(&client, at(100)), Ok(()));
        assert_eq!(limiter.take(&client, at(100)), Err(Duration::from_millis(100)));
        assert_eq!([9000; 3].map(|now| limiter.take(&client, at(now))), [Ok(()); 3]);
        assert!(limiter.take(&client, at(9000)).is_err());
    }

    #[test]
    fn clients_do_not_share_buckets_but_lines_and_names_do() {
        let (limiter, now) = (limiter(), Instant::now());
        let exhaust = |key: &ClientKey| (0..10).filter(|_| limiter.take(key, now).is_ok()).count();
        assert_eq!(exhaust(&key("192.0.2.7")), 3);
        assert_eq!(exhaust(&key("192.0.2.8")), 3);
        assert_eq!(exhaust(&key("2001:db8::1")) + exhaust(&key("2001:db8::2")), 3);
        assert_eq!(exhaust(&key("2001:db8:0:1::1")), 3);
        let anna = ClientKey { actor: Some("anna".into()), address: None };
        assert_eq!(exhaust(&anna) + exhaust(&anna.clone()), 3);
    }

    #[test]
    fn this_machine_has_no_limits() {
        let mut extensions = Extensions::new();
        assert_eq!(ClientKey::by_address(&extensions), None);
        extensions.insert(ClientAddress::direct("::ffff:127.0.0.1".parse().unwrap(), false));
        assert_eq!(ClientKey::by_address(&extensions), None);
    }

    #[test]
    fn clients_that_ask_nothing_are_forgotten() {
        let (limiter, start) = (limiter(), Instant::now());
        for n in 0..10_000_u32 {
            let client = key(&std::net::Ipv4Addr::from(0x0A00_0000 + n).to_string());
            limiter.take(&client, start + Duration::from_millis(n.into())).unwrap();
        }
        assert!(limiter.table().full_at.len() <= FEW);
    }

    #[test]
    fn streams_are_counted_while_they_are_open() {
        let (limiter, client) = (limiter(), key("192.0.2.7"));
        let open = || limiter.open_stream(Some(&client));
        let (first, second) = (open().unwrap(), open().unwrap());
        assert_eq!(open().err(), Some(TooManyStreams::OfClient(2)));
        assert!(limiter.open_stream(Some(&key("192.0.2.8"))).is_ok());
        drop(first);
        let third = open().unwrap();
        drop((second, third));
        assert!(limiter.table().streams.is_empty());
    }

    #[test]
    fn this_machine_and_all_clients_together_have_limits_of_streams() {
        let limiter = limiter();
        let own: Vec<_> = (0..3).map(|_| limiter.open_stream(None).unwrap()).collect();
        assert_eq!(limiter.open_stream(None).err(), Some(TooManyStreams::OfClient(3)));
        let others: Vec<_> =
            ["192.0.2.7", "192.0.2.8", "192.0.2.9"].map(|one| limiter.open_stream(Some(&key(one))).unwrap()).into();
        assert_eq!(limiter.open_stream(Some(&key("192.0.2.9"))).err(), Some(TooManyStreams::OfAll(6)));
        drop(own);
        assert!(limiter.open_stream(Some(&key("192.0.2.9"))).is_ok());
        drop(others);
        assert_eq!(limiter.table().all_streams, 0);
    }
}
