//! Explanations of a slot for people: its account, with what only the scheduler's memory, its executor and recorded runs tell.

use jiff::Timestamp;
use kelos_engine::Handle;
use kelos_engine::reads::Lane;
use kelos_model::{SlotRef, SlotState};
use kelos_store::StoreError;

use crate::account::inspect;
pub use crate::account::{Account, read};
use crate::forecast;

/// Explains a slot at a moment; none means now.
///
/// # Errors
/// When the store can't be read.
pub async fn why(handle: &Handle, slot: &SlotRef, at: Option<Timestamp>) -> Result<Account, StoreError> {
    let inspection = match at {
        None => inspect(handle, slot).await,
        Some(_) => None,
    };
    let now = at.unwrap_or_else(|| handle.now());
    let (reader, slot) = (handle.reader().clone(), slot.clone());
    let read = move || {
        let mut why = read(&*reader, &slot, now, at.is_none(), inspection.as_ref())?;
        if why.deadline.is_some() && at.is_none() {
            why.expected = forecast::read(&*reader, &slot, now)?;
        }
        Ok(why)
    };
    let read = Lane::Requests.read("read the history of a slot", read).await;
    read.map(|mut why| {
        why.blockers.extend(note(handle, &why, at.is_none()));
        why
    })
}

/// The obstacle to the live run, from its executor.
fn note(handle: &Handle, why: &Account, at_present: bool) -> Option<String> {
    let run = why.runs.last().filter(|_| at_present && why.state == Some(SlotState::Running))?;
    handle.executors().get(&run.executor).note(&run.leader())
}
