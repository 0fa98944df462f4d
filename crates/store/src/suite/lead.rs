//! Leadership: the lease and its fencing token.

use crate::{Lease, StoreError};
use jiff::SignedDuration;

use super::Place;
use super::world::{World, hour, lead, slot_at};

pub(super) fn one_leads_at_a_time(place: &mut dyn Place) {
    let (mut first, mut second) = (place.open(), place.open());
    let lease = lead(&mut *first);
    assert_eq!(second.lease("second", hour(0), 60_000).unwrap(), None, "the lead is taken");
    assert_eq!(first.lease("contract", hour(0), 60_000).unwrap(), Some(lease), "renewing keeps the epoch");

    first.release(lease).unwrap();
    let taken = lead(&mut *second);
    assert!(taken.epoch > lease.epoch, "{taken:?} after {lease:?}");
    assert_eq!(first.lease("contract", hour(0), 60_000).unwrap(), None, "the lead has gone over");
    first.release(lease).unwrap();
    assert_eq!(second.lease("second", hour(0), 60_000).unwrap(), Some(taken), "who does not lead gives nothing back");
}

pub(super) fn a_crash_makes_room(place: &mut dyn Place) {
    let mut before = place.open();
    let lease = lead(&mut *before);
    let mut standby = place.open();
    assert_eq!(standby.lease("standby", hour(0), 60_000).unwrap(), None);
    drop(before);
    let taken = lead(&mut *standby);
    assert!(taken.epoch > lease.epoch);
    drop(standby);
    let taken_again = lead(&mut *place.open());
    assert!(taken_again.epoch > taken.epoch);
}

pub(super) fn a_lease_that_ran_out_is_taken(place: &mut dyn Place) {
    let at = |millis| hour(0) + SignedDuration::from_millis(millis);
    let (mut first, mut second) = (place.open(), place.open());
    let lease = first.lease("first", at(0), 60_000).unwrap().unwrap();
    assert_eq!(second.lease("second", at(59_999), 60_000).unwrap(), None, "the lease holds");
    assert_eq!(first.lease("first", at(50_000), 60_000).unwrap(), Some(lease));
    assert_eq!(second.lease("second", at(60_000), 60_000).unwrap(), None, "it was renewed");
    assert_eq!(second.lease("second", at(109_999), 60_000).unwrap(), None);
    let mut world = World::default();
    world.plan(&slot_at("a", 1));
    let turn = world.take();
    let taken = second.lease("second", at(110_000), 60_000).unwrap().expect("the first one stands still");
    assert!(taken.epoch > lease.epoch, "{taken:?} after {lease:?}");
    refused(first.commit(lease, &turn), lease);
    assert_eq!(first.lease("first", at(110_001), 60_000).unwrap(), None, "it stands by from now on");
    assert_eq!(second.reader().last_seq().unwrap(), 0, "nothing of it was written");
    second.commit(taken, &turn).unwrap();
    // A third one waits for the second, although the first one had led before.
    let mut third = place.open();
    assert_eq!(third.lease("third", at(150_000), 60_000).unwrap(), None);
    drop(second);
    let after = third.lease("third", at(150_000), 60_000).unwrap().expect("the second one is gone");
    assert!(after.epoch > taken.epoch);
    assert_eq!(first.lease("first", at(200_000), 60_000).unwrap(), None);
    assert_eq!(third.reader().last_seq().unwrap(), 1);
}

pub(super) fn a_stale_lease_writes_nothing(place: &mut dyn Place) {
    let mut store = place.open();
    let stale = lead(&mut *store);
    store.release(stale).unwrap();
    let mut world = World::default();
    world.plan(&slot_at("a", 1));
    let turn = world.take();
    refused(store.commit(stale, &turn), stale);
    let lease = lead(&mut *store);
    refused(store.commit(stale, &turn), stale);
    refused(store.commit(Lease { epoch: lease.epoch + 1 }, &turn), Lease { epoch: lease.epoch + 1 });
    assert_eq!(store.reader().last_seq().unwrap(), 0);
    assert_eq!(store.reader().slot(&slot_at("a", 1)).unwrap(), None);
    store.commit(lease, &turn).unwrap();
    assert_eq!(store.reader().last_seq().unwrap(), 1);
}

fn refused(outcome: Result<(), StoreError>, lease: Lease) {
    match outcome {
        Err(StoreError::Deposed { held, current }) => {
            assert!(held == lease.epoch && current != held)
        }
        Err(StoreError::LeaseLost { held }) => assert_eq!(held, lease.epoch),
        other => panic!("a stale lease was answered with {other:?}"),
    }
}
