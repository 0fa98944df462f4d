//! The slots of a state that have rows of their own, in pages. Times of backlogs are none: those of a backfill of years would be all that is
//! read.

use kelos_model::SlotState;
use kelos_store::{Page, PageRequest, SlotFilter, StoreError};

/// Slots that are read in one query.
const AT_ONCE: usize = 5_000;

/// Hands the slots of a state, as a query reads them, to a receiver, the oldest first, until it returns that it takes no more. Returns
/// whether it took all.
pub(crate) fn each<T>(
    state: SlotState,
    read: impl Fn(&SlotFilter, PageRequest<'_>) -> Result<Page<T>, StoreError>,
    mut takes: impl FnMut(T) -> Result<bool, StoreError>,
) -> Result<bool, StoreError> {
    let filter = SlotFilter { states: vec![state], without_backlogs: true, ..SlotFilter::default() };
    let mut from = None;
    loop {
        let page = read(&filter, PageRequest::oldest(AT_ONCE).after(from.as_deref()))?;
        for row in page.rows {
            if !takes(row)? {
                return Ok(false);
            }
        }
        from = page.next;
        if from.is_none() {
            return Ok(true);
        }
    }
}

/// The states of live slots.
pub(crate) fn live_states() -> impl Iterator<Item = SlotState> {
    SlotState::ALL.into_iter().filter(|state| !state.is_final())
}
