//! Makes checkpoints while an engine leads, and sends them.
//!
//! It reads turns and writes none: no turn waits for it. A target that is away is tried again, and what it lacks is kept.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use jiff::Timestamp;
use kelos_engine::{Handle, wait_after};
use kelos_executors::http::Http;
use kelos_storage::Storage;
use kelos_store::{PageRequest, Queries, TurnRecord};
use tokio::runtime::Handle as Runtime;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::book::Book;
use crate::checkpoint::Checkpoint;
use crate::compare::turn_of;
use crate::key::PrivateKey;
use crate::settings::Settings;
use crate::target::Target;

/// How long an orderly end waits for targets; what they lack is sent after the next start.
const AT_THE_END: Duration = Duration::from_secs(5);
/// The file of the key, in the folder of state.
pub const KEY: &str = "keys/checkpoint.key";
/// The longest name of this machine that is used.
const LONGEST_HOST: usize = 200;

/// The parts that a recorder is made of.
pub struct RecorderParts {
    /// When checkpoints are made, and where they go.
    pub settings: Settings,
    /// The folder of state.
    pub folder: PathBuf,
    /// The file systems of targets.
    pub storage: Storage,
    /// The client of webhooks.
    pub http: Http,
    /// The engine whose turns they are of.
    pub handle: Handle,
}

/// The status of a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetStatus {
    /// Its address, without anything secret.
    pub name: String,
    /// The number of checkpoints that it lacks.
    pub lacks: usize,
    /// The reason for which it lacks them, as a message that completes "failed to …".
    pub problem: Option<String>,
}

/// Makes checkpoints and sends them. Cheap to clone.
#[derive(Clone)]
pub struct Recorder {
    shared: Arc<RecorderState>,
}

struct RecorderState {
    settings: Settings,
    instance: String,
    key: PathBuf,
    book: Book,
    storage: Storage,
    http: Http,
    handle: Handle,
    /// Held while one is made: two at once would be of the same turn.
    making: Mutex<()>,
    /// Changes with each that is made.
    made: watch::Sender<u64>,
    standings: Mutex<Standings>,
}

#[derive(Default)]
struct Standings {
    targets: Vec<TargetStatus>,
    /// The reason for which none is made.
    making: Option<String>,
    /// The newest checkpoint that the log contradicts.
    contradiction: Option<String>,
}

impl Recorder {
    /// Makes and sends checkpoints until the engine ends, and while it leads.
    #[must_use]
    pub fn start(parts: RecorderParts, runtime: &Runtime) -> Recorder {
        let RecorderParts { settings, folder, storage, http, handle } = parts;
        let status = |target: &Target| TargetStatus { name: target.to_string(), lacks: 0, problem: None };
        let standings = Standings { targets: settings.to.iter().map(status).collect(), ..Standings::default() };
        let shared = Arc::new(RecorderState {
            instance: settings.instance.clone().unwrap_or_else(host),
            key: settings.key.clone().unwrap_or_else(|| folder.join(KEY)),
            book: Book::in_folder(&folder),
            settings,
            storage,
            http,
            handle,
            making: Mutex::default(),
            made: watch::Sender::new(0),
            standings: Mutex::new(standings),
        });
        let recorder = Recorder { shared };
        runtime.spawn(recorder.clone().run());
        recorder
    }

    /// The statuses of the targets, in the order of the settings.
    #[must_use]
    pub fn targets(&self) -> Vec<TargetStatus> {
        self.standings().targets.clone()
    }

    /// The problems besides those of targets: that none can be made (which completes "failed to …"), and that the log contradicts the newest one.
    #[must_use]
    pub fn problems(&self) -> Vec<String> {
        let standings = self.standings();
        let making = standings.making.as_ref().map(|why| format!("failed to {why}"));
        making.into_iter().chain(standings.contradiction.clone()).collect()
    }

    /// Makes a checkpoint of the newest turn, unless that has one: to be called before history is trimmed, too. It is sent by and by.
    ///
    /// # Errors
    /// When the log or the key can't be read, or nothing can be written. The message completes "failed to …".
    pub async fn make(&self) -> Result<Option<Checkpoint>, String> {
        let recorder = self.clone();
        let made = tokio::task::spawn_blocking(move || recorder.make_here()).await.map_err(|error| error.to_string());
        let made = made.and_then(|made| made);
        self.standings().making = made.as_ref().err().cloned();
        made
    }

    /// Makes the last checkpoint of an engine that has ended in good order and had led, and waits a little until targets have it.
    pub async fn end(&self) {
        if let Err(problem) = self.make().await {
            tracing::warn!("failed to {problem}");
        }
        let last = (0..self.shared.settings.to.len()).map(|target| self.deliver(target));
        if timeout(AT_THE_END, join_all(last)).await.is_err() {
            tracing::warn!("checkpoints are not yet sent to all targets; the next start continues");
        }
    }

    async fn run(self) {
        while self.shared.handle.while_leading(self.make_and_send()).await {}
    }

    async fn make_and_send(&self) {
        let targets = (0..self.shared.settings.to.len()).map(|target| self.keep_delivering(target));
        tokio::select! {
            () = self.keep_making() => {}
            _ = join_all(targets), if !self.shared.settings.to.is_empty() => {}
        }
    }

    /// Makes one whenever it is due.
    async fn keep_making(&self) {
        let (every, began) = (self.shared.settings.every, self.shared.handle.now());
        let mut commits = self.shared.handle.watch_commits();
        self.compare_newest().await;
        let mut failures = 0;
        loop {
            sleep(self.until_due(began)).await;
            commits.mark_unchanged();
            match self.make().await {
                Ok(Some(_)) => failures = 0,
                // Nothing has happened since the last one; the next turn has it at once.
                Ok(None) => {
                    failures = 0;
                    if commits.changed().await.is_err() {
                        return;
                    }
                }
                Err(problem) => {
                    tracing::warn!("failed to {problem}; trying again");
                    failures += 1;
                    sleep(wait_after(failures).min(every)).await;
                }
            }
        }
    }

    /// How long it is until the next one is due.
    fn until_due(&self, began: Timestamp) -> Duration {
        let every = self.shared.settings.every;
        let last = self.shared.book.newest().ok().flatten().map_or(began, |newest| newest.at);
        let passed = Duration::try_from(self.shared.handle.now().duration_since(last)).unwrap_or_default();
        every.saturating_sub(passed)
    }

    /// Compares the newest checkpoint with the log, once for each time that this process begins to lead.
    async fn compare_newest(&self) {
        let recorder = self.clone();
        let compared = tokio::task::spawn_blocking(move || recorder.contradiction()).await;
        let found = match compared.map_err(|error| error.to_string()).and_then(|compared| compared) {
            Ok(found) => found,
            Err(problem) => return tracing::warn!("failed to {problem}: the newest checkpoint is not compared"),
        };
        if let Some(words) = &found {
            tracing::error!("{words}");
        }
        self.standings().contradiction = found;
    }

    fn contradiction(&self) -> Result<Option<String>, String> {
        let Some(checkpoint) = self.shared.book.newest()? else { return Ok(None) };
        contradiction(&**self.shared.handle.reader(), &checkpoint)
    }

    fn make_here(&self) -> Result<Option<Checkpoint>, String> {
        let shared = &self.shared;
        let _one = shared.making.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(turn) = newest_turn(&**shared.handle.reader())? else { return Ok(None) };
        let newest = shared.book.newest()?;
        if newest.is_some_and(|newest| (newest.turn, newest.digest) == (turn.turn, turn.digest)) {
            return Ok(None);
        }
        let key = PrivateKey::keep(&shared.key)?;
        let checkpoint = Checkpoint::sign(&key, &shared.instance, &turn, shared.handle.now());
        shared.book.add(&checkpoint)?;
        tracing::info!("{}", checkpoint.json());
        shared.made.send_modify(|made| *made += 1);
        Ok(Some(checkpoint))
    }

    /// Sends a target all that is made.
    async fn keep_delivering(&self, target: usize) {
        let mut made = self.shared.made.subscribe();
        let mut failures = 0;
        loop {
            made.mark_unchanged();
            if self.deliver(target).await {
                failures = 0;
                if made.changed().await.is_err() {
                    return;
                }
            } else {
                failures += 1;
                sleep(wait_after(failures)).await;
            }
        }
    }

    /// Sends a target what it lacks; whether it has all then.
    async fn deliver(&self, place: usize) -> bool {
        let Some(target) = self.shared.settings.to.get(place) else { return true };
        let name = target.to_string();
        let lacking = match self.shared.book.lacking(&name) {
            Ok(lacking) => lacking,
            Err(problem) => return self.show(place, 1, Some(problem)),
        };
        let count = lacking.len();
        for (at, (number, checkpoint)) in lacking.into_iter().enumerate() {
            let delivered = target.deliver(&checkpoint, &self.shared.storage, &self.shared.http).await;
            if let Err(problem) = delivered.and_then(|()| self.shared.book.has(&name, number)) {
                return self.show(place, count - at, Some(problem));
            }
        }
        self.show(place, 0, None)
    }

    /// Shows how a target is; whether it is well.
    fn show(&self, place: usize, lacks: usize, problem: Option<String>) -> bool {
        let mut standings = self.standings();
        let Some(standing) = standings.targets.get_mut(place) else { return true };
        if let Some(problem) = problem.as_ref().filter(|problem| standing.problem.as_ref() != Some(problem)) {
            tracing::warn!(place = standing.name, "failed to {problem}; trying again");
        }
        standing.lacks = lacks;
        standing.problem = problem;
        standing.problem.is_none()
    }

    fn standings(&self) -> MutexGuard<'_, Standings> {
        self.shared.standings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The way in which a log contradicts a checkpoint; none if it does not.
fn contradiction(reader: &dyn Queries, checkpoint: &Checkpoint) -> Result<Option<String>, String> {
    let words = |error: kelos_store::StoreError| error.to_string();
    let last = newest_turn(reader)?;
    if last.is_none_or(|last| last.turn < checkpoint.turn) {
        let last = last.map_or(0, |last| last.turn);
        return Ok(Some(format!(
            "the log ends at turn {last}, before {checkpoint}: an older copy was put in its place"
        )));
    }
    let found = turn_of(reader, checkpoint.turn).map_err(words)?;
    // Without the record of a turn that was removed there is nothing to compare: newer checkpoints vouch for what is left.
    let is_removed = found.is_none() && checkpoint.turn < reader.removed_history().map_err(words)?.turn;
    let holds = is_removed || found.is_some_and(|turn| turn.digest == checkpoint.digest);
    Ok((!holds).then(|| format!("turn {} has another digest than {checkpoint}: history was replaced", checkpoint.turn)))
}

fn newest_turn(reader: &dyn Queries) -> Result<Option<TurnRecord>, String> {
    let newest = reader.turns(PageRequest::newest(1)).map_err(|error| error.to_string())?;
    Ok(newest.rows.into_iter().next())
}

/// The name of this machine.
fn host() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name: String = name.trim().chars().filter(|c| !c.is_control()).take(LONGEST_HOST / 4).collect();
    if name.is_empty() { "localhost".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use kelos_model::history::Trim;
    use kelos_store::{Commit, Digest, Journal, Lease, MemoryStore, StoredState};

    use super::*;

    fn commit(store: &mut MemoryStore, lease: Lease, trim: Option<Trim>) {
        let registers = vec![("b".to_owned(), "k".to_owned(), Some(serde_json::json!(1)))];
        store.commit(lease, &Commit { registers, trim, ..Commit::default() }).unwrap();
    }

    #[test]
    fn the_newest_checkpoint_is_not_contradicted_by_the_removal_of_its_turn() {
        let mut store = MemoryStore::new();
        let lease = store.lease("node", Timestamp::UNIX_EPOCH, 1000).unwrap().unwrap();
        (0..5).for_each(|_| commit(&mut store, lease, None));
        let signed =
            |turn: &TurnRecord| Checkpoint::sign(&PrivateKey::of_seed([7; 32]), "a", turn, Timestamp::UNIX_EPOCH);
        let reader = store.reader();
        let [second, fourth] = [2, 4].map(|turn| turn_of(&*reader, turn).unwrap().unwrap());
        let replaced = TurnRecord { digest: Digest::default(), ..fourth };
        assert_eq!(contradiction(&*reader, &signed(&second)).unwrap(), None);
        commit(&mut store, lease, Some(Trim { until: 4, stretches: Vec::new() }));
        let reader = store.reader();
        assert_eq!(turn_of(&*reader, 2).unwrap(), None, "its record was removed");
        assert_eq!(contradiction(&*reader, &signed(&second)).unwrap(), None);
        assert_eq!(contradiction(&*reader, &signed(&fourth)).unwrap(), None);
        let words = contradiction(&*reader, &signed(&replaced)).unwrap().unwrap();
        assert!(words.ends_with("history was replaced"), "{words}");
        let words = contradiction(&*reader, &signed(&TurnRecord { turn: 9, ..fourth })).unwrap().unwrap();
        assert!(words.ends_with("an older copy was put in its place"), "{words}");
    }
}
