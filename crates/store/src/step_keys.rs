//! The keys of the steps of a run, as texts in their order.

use kelos_model::{SlotKey, StepKey};

use crate::commit::SlotRow;
use crate::error::StoreError;
use crate::paging::{Order, Page, PageRequest};

/// The letter that follows the dot in the order of letters: no key contains it.
const AFTER_DOT: &str = "/";

/// The keys of the steps of a run, among the texts of all keys of steps.
///
/// All of them begin alike. Where the run is a job whose id is the beginning of another one's (`~a` and `~a.b`), steps of that one lie
/// among them.
pub struct StepKeys {
    prefix: String,
}

impl StepKeys {
    /// The keys of the steps of a run.
    #[must_use]
    pub fn of(run: &SlotKey) -> StepKeys {
        StepKeys { prefix: StepKey::prefix(run) }
    }

    /// The texts between which the keys of a page lie, both not among them.
    ///
    /// # Errors
    /// If the cursor of the page is not the key of a step of the run.
    pub fn between(&self, paging: &PageRequest<'_>) -> Result<(String, String), StoreError> {
        let last = self.prefix.strip_suffix('.').unwrap_or(&self.prefix);
        let whole = (self.prefix.clone(), format!("{last}{AFTER_DOT}"));
        let Some(cursor) = paging.from else { return Ok(whole) };
        let is_step = SlotKey::parse(cursor).is_ok_and(|key| key.step().is_some());
        if !is_step || !cursor.starts_with(&self.prefix) || self.others(cursor).is_some() {
            return Err(StoreError::Cursor { cursor: cursor.to_owned() });
        }
        Ok(match paging.order {
            Order::Newest => (cursor.to_owned(), whole.1),
            Order::Oldest => (whole.0, cursor.to_owned()),
        })
    }

    /// If a key that begins like those of the run's steps is of a step of another run, the texts between which it and its like lie.
    #[must_use]
    pub fn others(&self, key: &str) -> Option<(String, String)> {
        let (run, _) = key.strip_prefix(&self.prefix)?.split_once('.')?;
        Some((format!("{}{run}.", self.prefix), format!("{}{run}{AFTER_DOT}", self.prefix)))
    }

    /// The page of rows that were found, of which there is one more than fits where others come after it.
    #[must_use]
    pub fn page(mut rows: Vec<SlotRow>, paging: &PageRequest<'_>) -> Page<SlotRow> {
        let is_full = rows.len() > paging.size();
        rows.truncate(paging.size());
        let next = rows.last().filter(|_| is_full).map(|row| row.id.key.to_string());
        Page { rows, next }
    }
}

#[cfg(test)]
mod tests {
    use kelos_model::StepName;

    use super::*;

    fn step(run: &str, name: &str) -> String {
        let step = StepKey::new(&SlotKey::parse(run).unwrap(), &StepName::new(name).unwrap()).unwrap();
        SlotKey::Step(step).to_string()
    }

    #[test]
    fn steps_of_other_runs_that_lie_among_those_of_a_job_are_told() {
        let keys = StepKeys::of(&SlotKey::Job("a".into()));
        let (first, last) = keys.between(&PageRequest::newest(1)).unwrap();
        let own = [step("~a", "a"), step("~a", "b"), step("~a", "b-"), step("~a", "bc")];
        assert!(own.iter().all(|key| *key > first && *key < last && keys.others(key).is_none()), "{own:?}");
        for other in [step("~a.b", "a"), step("~a.b", "z"), step("~a.b.c", "x")] {
            let (before, after) = keys.others(&other).unwrap();
            assert!(other > first && other < last && other > before && other < after, "{other}");
            assert!(own.iter().all(|key| *key < before || *key > after), "{other}");
        }
        for outside in [step("~a-b", "a"), step("~ab", "a"), step(".a", "b"), step("~b.a", "b")] {
            assert!(outside < first || outside > last, "{outside}");
        }
    }

    #[test]
    fn a_page_goes_on_beyond_its_cursor_and_nonsense_is_named() {
        let keys = StepKeys::of(&SlotKey::Job("a".into()));
        let (first, last) = keys.between(&PageRequest::newest(1)).unwrap();
        let cursor = step("~a", "b");
        let after = |paging: PageRequest<'_>| keys.between(&paging.after(Some(&cursor))).unwrap();
        assert_eq!(after(PageRequest::newest(1)), (cursor.clone(), last));
        assert_eq!(after(PageRequest::oldest(1)), (first, cursor.clone()));
        for nonsense in ["", "x", ".~a.", ".~b.a", ".~a.b.c", ".a.b", "~a"] {
            assert!(keys.between(&PageRequest::newest(1).after(Some(nonsense))).is_err(), "{nonsense}");
        }
    }
}
