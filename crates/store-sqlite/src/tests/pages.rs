//! Pages of slots that lie among many others.

use kelos_model::{Slot, SlotKey, SlotState};
use kelos_store::{Commit, Journal, PageRequest, SlotFilter, StoredState};

use super::{Folder, lead, moment, planning};

/// So many slots of a workflow that succeeded, one a minute, but for some that wait.
fn done(workflow: &str, last: u64, count: u64, waits: impl Fn(u64) -> bool) -> Commit {
    let mut commit = planning(workflow, last, count);
    for (minute, (row, record)) in (1..).zip(commit.slots.iter_mut().zip(&mut commit.events)) {
        row.id.key = SlotKey::Time(moment(minute * 60_000));
        if !waits(minute.unsigned_abs()) {
            row.slot = Slot { state: SlotState::Succeeded, ..row.slot.clone() };
        }
        if let kelos_model::Event::Slot { slot, .. } = &mut record.event {
            *slot = row.id.clone();
        }
    }
    commit
}

/// Among the slots of a time, the workflow that was defined first comes first in the table, and last in lists. A page may pass over 4,000
/// rows: with one more of the other workflow, it ends just before the slot of the minute 2,201.
#[test]
fn no_slot_is_lost_between_pages_that_end_among_slots_of_others() {
    for extra in 0..2 {
        let folder = Folder::new();
        let mut store = folder.open();
        let lease = lead(&mut store);
        store.commit(lease, &done("zzz", 0, 4_200 + extra, |_| false)).unwrap();
        store.commit(lease, &done("aaa", 4_200 + extra, 4_200, |minute| minute == 2_201 || minute == 2_000)).unwrap();
        let reader = store.reader();
        let workflow = Some("aaa".parse().unwrap());
        let filter = SlotFilter { workflow, states: vec![SlotState::Waiting], ..SlotFilter::default() };
        for oldest in [false, true] {
            let (mut found, mut from) = (Vec::new(), None::<String>);
            loop {
                let paging = if oldest { PageRequest::oldest(7) } else { PageRequest::newest(7) };
                let page = reader.slots(&filter, paging.after(from.as_deref())).unwrap();
                found.extend(page.rows.into_iter().map(|row| row.id));
                from = page.next;
                if from.is_none() {
                    break;
                }
            }
            let number = found.len();
            found.sort();
            found.dedup();
            assert_eq!((number, found.len()), (2, 2), "{extra} more, the oldest first: {oldest}");
        }
    }
}
