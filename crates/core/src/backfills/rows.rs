//! The rows of backfills, and those of them that the turn has changed.

use std::collections::{BTreeMap, BTreeSet};

use kelos_model::BackfillId;
use kelos_model::backfill::Backfill;

use crate::Refusal;
use crate::slots::SlotTable;

/// All backfills that ever existed: a name is used once.
#[derive(Default)]
pub(crate) struct Backfills {
    rows: BTreeMap<BackfillId, Backfill>,
    /// The backfills that this turn changed.
    changed: BTreeSet<BackfillId>,
}

impl Backfills {
    /// Restores a row from the store.
    pub(crate) fn restore(&mut self, row: Backfill) {
        self.rows.insert(row.id.clone(), row);
    }

    /// Replaces the row of a backfill.
    pub(crate) fn change(&mut self, row: Backfill) {
        self.changed.insert(row.id.clone());
        self.restore(row);
    }

    /// The row of a backfill.
    pub(crate) fn get(&self, id: &BackfillId) -> Option<&Backfill> {
        self.rows.get(id)
    }

    /// Whether a name is taken.
    pub(crate) fn contains_key(&self, id: &BackfillId) -> bool {
        self.rows.contains_key(id)
    }

    /// A backfill that is not cancelled.
    pub(crate) fn standing(&self, id: &BackfillId) -> Result<Backfill, Refusal> {
        let row = self.get(id).ok_or_else(|| Refusal::NoBackfill(id.clone()))?;
        if row.cancelled_at.is_some() {
            return Err(Refusal::BackfillCancelled(id.clone()));
        }
        Ok(row.clone())
    }

    /// A backfill that is not cancelled and has live slots.
    pub(crate) fn going_on(&self, id: &BackfillId, slots: &SlotTable) -> Result<Backfill, Refusal> {
        let row = self.standing(id)?;
        if slots.is_going_on(&row) { Ok(row) } else { Err(Refusal::BackfillOver(id.clone())) }
    }

    /// The rows that the turn changed, in their current state.
    pub(crate) fn changed(&self) -> Vec<Backfill> {
        self.changed.iter().filter_map(|id| self.rows.get(id).cloned()).collect()
    }

    /// Ends a turn.
    pub(crate) fn settle(&mut self) {
        self.changed.clear();
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use kelos_model::Actor;
    use kelos_model::backfill::BackfillMode;
    use kelos_model::ranges::Range;

    use super::*;

    fn row(name: &str) -> Backfill {
        let at = Timestamp::UNIX_EPOCH;
        Backfill {
            id: name.parse().expect("a name"),
            workflow: "wf".parse().expect("an id"),
            range: Range::new(at, at),
            mode: BackfillMode::Missing,
            priority: 0,
            by: Actor::system("test"),
            created_at: at,
            cancelled_at: None,
            slots: 0,
            reason: None,
            paused: None,
            resumed_at: None,
        }
    }

    #[test]
    fn a_turn_tells_the_rows_that_it_changed_and_no_others() {
        let mut backfills = Backfills::default();
        backfills.restore(row("old"));
        backfills.change(row("new"));
        assert_eq!(backfills.changed(), vec![row("new")]);
        backfills.settle();
        assert_eq!(backfills.changed(), Vec::new());
        assert!(backfills.contains_key(&row("new").id), "its name is taken for ever");
    }

    #[test]
    fn nothing_can_be_done_to_one_that_is_cancelled() {
        let mut backfills = Backfills::default();
        let id = row("b").id;
        assert_eq!(backfills.standing(&id), Err(Refusal::NoBackfill(id.clone())));
        backfills.change(row("b"));
        assert_eq!(backfills.standing(&id), Ok(row("b")));
        backfills.change(Backfill { cancelled_at: Some(Timestamp::UNIX_EPOCH), ..row("b") });
        assert_eq!(backfills.standing(&id), Err(Refusal::BackfillCancelled(id)));
    }
}
