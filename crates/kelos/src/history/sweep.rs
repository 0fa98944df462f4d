//! One look at all folders of runs, and the removal of those that go.

use std::collections::{BTreeMap, BinaryHeap};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Instant;

use jiff::{SignedDuration, Timestamp};
use kelos_executors::local::{FoundRun, LocalError, RemovedRuns, WalkEntry, finish_removal, remove_kept, walk};
use kelos_model::history::{HistorySettings, Keepsake, Policy, Ranks, Removal, Term};

use super::TOLD;
use super::consent::Consent;
use super::figures::{Figures, Tally};
use super::names::Names;
use super::pause::Pause;
use super::witness::{SweepError, Witness};

/// Folders that are removed after one look, the oldest ones; further ones go after the next.
const AT_ONCE: usize = 50_000;
/// The time ahead for which it is told how much goes.
const AHEAD: SignedDuration = SignedDuration::from_hours(7 * 24);

/// One look at all folders, and what follows from it.
pub(super) struct Sweep<'a> {
    pub(super) settings: &'a HistorySettings,
    pub(super) roots: &'a [PathBuf],
    pub(super) witness: &'a mut dyn Witness,
    pub(super) now: Timestamp,
    pub(super) pause: Pause,
    /// Whether it has to end.
    pub(super) is_over: &'a dyn Fn() -> bool,
}

/// A folder that goes.
#[derive(Debug, PartialEq, Eq)]
struct Departure {
    ended_at: Timestamp,
    root: usize,
    run: FoundRun,
    why: Removal,
}

/// The folders that go.
#[derive(Debug, Default)]
struct Departures {
    /// The oldest first, as many as are removed at once.
    going: Vec<Departure>,
    /// The end of the oldest run among the others.
    oldest_staying: Option<Timestamp>,
}

/// By the end of their runs, the youngest first.
impl Ord for Departure {
    fn cmp(&self, other: &Departure) -> std::cmp::Ordering {
        let key =
            |one: &Departure| (one.ended_at, one.root, one.run.workflow.clone(), one.run.key.clone(), one.run.number);
        key(self).cmp(&key(other))
    }
}

impl PartialOrd for Departure {
    fn partial_cmp(&self, other: &Departure) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Sweep<'_> {
    /// Looks at all folders, and removes those that go; again while there are more than it removes at once. What it sees, and what it
    /// has removed, is told each time.
    pub(super) fn run(mut self, note: &dyn Fn(Figures, Tally)) -> Result<(), SweepError> {
        loop {
            let began = Instant::now();
            let names = self.witness.names()?;
            let may_remove = self.witness.consent()?;
            let (mut figures, Departures { going, oldest_staying }) = self.look(&names, may_remove)?;
            figures.took = began.elapsed();
            if (self.is_over)() {
                return Ok(());
            }
            note(figures.clone(), Tally::default());
            if !may_remove.is_given() || going.is_empty() {
                return Ok(());
            }
            let is_rest = going.len() == AT_ONCE;
            figures.oldest = oldest_staying;
            let removed = self.remove(&going, &names, &mut figures);
            if removed.folders > 0 {
                tracing::info!("removed {} folders of runs with {} bytes", removed.folders, removed.bytes);
            }
            note(figures, removed);
            if !is_rest || removed.folders == 0 || (self.is_over)() {
                return Ok(());
            }
        }
    }

    /// Looks at all folders, with those that go, the oldest first.
    fn look(&mut self, names: &Names, consent: Consent) -> Result<(Figures, Departures), SweepError> {
        let mut figures = Figures::new(self.now, consent);
        let mut shares: BTreeMap<String, Tally> = BTreeMap::new();
        let mut ranks = self.settings.term().map(|term: &Term| Ranks::new(term.clone(), self.now));
        self.each(|_, _, found| match found {
            WalkEntry::Run(run) => {
                let one = Tally { folders: 1, bytes: run.bytes };
                figures.all.add(one);
                figures.age(run.ended_at);
                shares.entry(names.told(&run.workflow).to_owned()).or_default().add(one);
                if let Some(ranks) = &mut ranks {
                    ranks.note(keepsake(&run, names));
                }
            }
            WalkEntry::Unreadable(why) => figures.failures.add(why),
            WalkEntry::Leftover { .. } => {}
        })?;
        figures.share(shares, TOLD);
        let Some(ranks) = ranks else { return Ok((figures, Departures::default())) };
        let mut room = ranks.room();
        self.each(|_, _, found| {
            if let WalkEntry::Run(run) = found {
                room.note(keepsake(&run, names));
            }
        })?;
        let going = self.judge(names, &room.policy(), &mut figures)?;
        Ok((figures, going))
    }

    /// The folders that go.
    fn judge(&mut self, names: &Names, policy: &Policy, figures: &mut Figures) -> Result<Departures, SweepError> {
        let roots = self.roots;
        let soon = self.now.checked_add(AHEAD).unwrap_or(Timestamp::MAX);
        let mut failed = None;
        let mut going = BinaryHeap::new();
        let mut oldest_staying: Option<Timestamp> = None;
        let mut stays = |at: Timestamp| oldest_staying = Some(oldest_staying.map_or(at, |oldest| oldest.min(at)));
        self.each(|witness, root, found| {
            let WalkEntry::Run(run) = found else { return };
            let (folder, one) = (keepsake(&run, names), Tally { folders: 1, bytes: run.bytes });
            if policy.ripe(folder).is_none() {
                stays(run.ended_at);
                if let Some(at) = policy.due(folder) {
                    figures.due(at, names.told(&run.workflow), one, soon);
                }
                return;
            }
            match witness.situation(&roots[root], &run, names).map(|standing| policy.verdict(folder, standing)) {
                Ok(Some(why)) => {
                    figures.going.add(one);
                    going.push(Departure { ended_at: run.ended_at, root, run, why });
                    if going.len() > AT_ONCE
                        && let Some(later) = going.pop()
                    {
                        stays(later.ended_at);
                    }
                }
                Ok(None) => {
                    stays(run.ended_at);
                    figures.held.add(one);
                }
                Err(error) => failed = Some(error),
            }
        })?;
        match failed {
            Some(error) => Err(error),
            None => Ok(Departures { going: going.into_sorted_vec(), oldest_staying }),
        }
    }

    /// Removes folders; a folder that can't be removed is passed over.
    fn remove(&mut self, going: &[Departure], names: &Names, figures: &mut Figures) -> Tally {
        let mut removed = Tally::default();
        for one in going {
            self.pause.take();
            if (self.is_over)() {
                figures.age(one.ended_at);
                break;
            }
            let tally = Tally { folders: 1, bytes: one.run.bytes };
            match self.remove_one(one) {
                Ok(()) => {
                    removed.add(tally);
                    figures.gone(names.told(&one.run.workflow), tally);
                }
                Err(error) => {
                    figures.age(one.ended_at);
                    figures.failures.add(error.to_string());
                }
            }
        }
        removed
    }

    fn remove_one(&self, one: &Departure) -> Result<(), LocalError> {
        let (root, FoundRun { workflow, key, number, .. }) = (&self.roots[one.root], &one.run);
        let record = RemovedRuns::new(root);
        let note = || record.note(&format!("{workflow}/{key}/{number}"), self.now, &one.why.words());
        // Written first, so that a run whose folder is gone says so after a crash, too.
        let noted = note();
        remove_kept(root, workflow, key, *number)?;
        if noted.is_err() {
            // On a full disk there is room for it only now.
            note()?;
        }
        Ok(())
    }

    /// Visits all folders, with the number of their root, and finishes removals that were interrupted.
    fn each(&mut self, mut visit: impl FnMut(&dyn Witness, usize, WalkEntry)) -> Result<(), SweepError> {
        let (roots, pause, is_over, witness) = (self.roots, &mut self.pause, self.is_over, &*self.witness);
        for (number, root) in roots.iter().enumerate() {
            walk(root, &mut |found| {
                pause.take();
                if let WalkEntry::Leftover { workflow, key, number } = &found {
                    if let Err(error) = finish_removal(root, workflow, key, *number) {
                        visit(witness, 0, WalkEntry::Unreadable(error.to_string()));
                    }
                    return ControlFlow::Continue(());
                }
                visit(witness, number, found);
                if is_over() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })?;
        }
        Ok(())
    }
}

fn keepsake<'a>(run: &'a FoundRun, names: &'a Names) -> Keepsake<'a> {
    let (project, workflow) = (names.project(&run.workflow), names.told(&run.workflow));
    Keepsake { project, workflow, ended_at: run.ended_at, bytes: run.bytes }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::BTreeMap as Map;
    use std::fs;
    use std::path::Path;
    use std::sync::Arc;
    use std::time::{Duration, SystemTime};

    use kelos_executors::local::{RunDirs, mark_new};
    use kelos_executors::run_ref;
    use kelos_model::workflow::{Job, Keys, Moments, PlanState, Program, WorkflowRow};
    use kelos_model::{Run, RunId, RunState, Slot, SlotKey, SlotRef, SlotState, Workflow, WorkflowId};
    use kelos_store::{Commit, Journal, MemoryStore, SlotRow, StoredState};

    use super::super::witness::LogWitness;
    use super::*;

    const NOW: u64 = 100 * 86_400;

    fn workflow() -> WorkflowRow {
        let id = WorkflowId::new("w").unwrap();
        let keys = Keys::Requests(Box::new(Program { name: "w".to_owned(), kind: None }));
        let definition = Arc::new(Workflow::keyed(id.clone(), keys, Job::new("command", serde_json::Map::new())));
        let (planned, moments) = (PlanState::default(), Moments::default());
        WorkflowRow { id, definition, version: 1, present: true, enabled: true, paused: false, planned, moments }
    }

    fn slot_of(day: i64) -> SlotRef {
        let at = Timestamp::from_second(day * 86_400).unwrap();
        SlotRef::new(WorkflowId::new("w").unwrap(), SlotKey::Moment(at))
    }

    fn run(day: i64, state: RunState) -> Run {
        let at = Timestamp::from_second(day * 86_400).unwrap();
        Run {
            id: RunId { slot: slot_of(day), number: 1 },
            seq: u64::try_from(day).unwrap(),
            previous: 0,
            state,
            executor: "command".to_owned(),
            external_id: None,
            dispatched_at: at,
            started_at: Some(at),
            ended_at: Some(at),
            outcome: None,
            arguments: Map::new(),
            outputs: None,
            batch: None,
        }
    }

    /// A store with a slot for each day, in these states.
    fn store(of: &[(i64, RunState, SlotState)]) -> MemoryStore {
        let mut store = MemoryStore::new();
        let lease = store.lease("node", Timestamp::UNIX_EPOCH, 1000).unwrap().unwrap();
        let slot = |(day, _, state): &(i64, RunState, SlotState)| SlotRow {
            id: slot_of(*day),
            slot: Slot { last_run_seq: run(*day, RunState::Succeeded).seq, ..Slot::new(*state, Timestamp::UNIX_EPOCH) },
        };
        let slots = of.iter().map(slot).collect();
        let runs = of.iter().map(|(day, state, _)| run(*day, *state)).collect();
        let commit = Commit { workflows: vec![workflow()], slots, runs, sources: Map::new(), ..Commit::default() };
        store.commit(lease, &commit).unwrap();
        // A turn a day, so that no clock has leapt.
        for day in 1..=NOW / 86_400 {
            let at = Timestamp::from_second(i64::try_from(day).unwrap() * 86_400).unwrap();
            let registers = vec![("days".to_owned(), "last".to_owned(), Some(day.into()))];
            store.commit(lease, &Commit { at, registers, ..Commit::default() }).unwrap();
        }
        store
    }

    fn folder(root: &Path, day: i64) -> PathBuf {
        let dir = RunDirs::new(root).path(&run_ref(&run(day, RunState::Succeeded).id));
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("exit.json"), "{}").unwrap();
        let end = SystemTime::UNIX_EPOCH + Duration::from_secs(day.unsigned_abs() * 86_400);
        fs::File::options().write(true).open(dir.join("exit.json")).unwrap().set_modified(end).unwrap();
        dir
    }

    fn swept(root: &Path, store: &MemoryStore, settings: &str) -> Vec<(Figures, Tally)> {
        let noted = RefCell::new(Vec::new());
        let (settings, roots) = (HistorySettings::parse(settings).unwrap(), [root.to_owned()]);
        let reader = store.reader();
        let now = Timestamp::from_second(i64::try_from(NOW).unwrap()).unwrap();
        let pause = Pause::default();
        let witness = &mut LogWitness { reader: &*reader, roots: &roots, term: settings.term(), now };
        let sweep = Sweep { settings: &settings, roots: &roots, witness, now, pause, is_over: &|| false };
        sweep.run(&|figures, removed| noted.borrow_mut().push((figures, removed))).unwrap();
        noted.into_inner()
    }

    const DAYS: &str = r#"{"history": {"days": 10, "runs": 0}}"#;

    #[test]
    fn what_is_live_or_unknown_stays_and_the_rest_goes() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("runs");
        mark_new(&root).unwrap();
        let store = store(&[
            (1, RunState::Succeeded, SlotState::Succeeded),
            (2, RunState::Failed, SlotState::Failed),
            (3, RunState::Running, SlotState::Running),
            (4, RunState::Unknown, SlotState::Failed),
            (5, RunState::Failed, SlotState::Waiting),
            (95, RunState::Succeeded, SlotState::Succeeded),
        ]);
        let dirs: Vec<PathBuf> = [1, 2, 3, 4, 5, 6, 95].into_iter().map(|day| folder(&root, day)).collect();
        let noted = swept(&root, &store, DAYS);
        let is_there: Vec<bool> = dirs.iter().map(|dir| dir.exists()).collect();
        assert_eq!(is_there, [false, false, true, true, true, true, true]);
        let (before, after) = (&noted[0].0, &noted[1].0);
        assert_eq!((before.all.folders, before.going.folders, before.held.folders), (7, 2, 4));
        assert_eq!((after.all.folders, after.going.folders, noted[1].1.folders), (5, 0, 2));
        assert_eq!((after.soon.folders, after.consent), (1, Consent::New));
        let path = dirs[0].strip_prefix(&root).unwrap().to_str().unwrap();
        assert_eq!(RemovedRuns::new(&root).find(path).unwrap().1, "after 10 days");
        assert_eq!(swept(&root, &store, DAYS).len(), 1, "nothing is left to do");
    }

    #[test]
    fn nothing_goes_of_folders_from_before_and_of_those_that_are_kept() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("runs");
        let store = store(&[(1, RunState::Succeeded, SlotState::Succeeded)]);
        let dir = folder(&root, 1);
        let noted = swept(&root, &store, DAYS);
        assert_eq!((noted.len(), noted[0].0.consent, noted[0].0.going.folders), (1, Consent::Missing, 1));
        fs::remove_dir_all(&root).unwrap();
        mark_new(&root).unwrap();
        folder(&root, 1);
        assert_eq!(swept(&root, &store, r#"{"history": "all"}"#)[0].0.going.folders, 0);
        assert!(dir.exists());
    }

    #[test]
    fn a_removal_that_was_interrupted_is_finished() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("runs");
        mark_new(&root).unwrap();
        let store = store(&[(1, RunState::Succeeded, SlotState::Succeeded)]);
        let dir = folder(&root, 1);
        fs::rename(&dir, dir.with_file_name(".gone-1")).unwrap();
        swept(&root, &store, DAYS);
        assert!(!dir.parent().unwrap().exists());
    }
}
