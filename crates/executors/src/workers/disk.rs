//! The disk of a worker that does not share the leader's folder: its runs, their lease, and which of them are not over yet.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use kelos_model::RunId;
use kelos_model::nesting;
use kelos_wire::{FoldersDto, ProcessDto, RemoteWorkerDto, WorkerFoldersDto};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use super::Process;
use crate::local::{BootMoment, Launcher, LeaseFile, RunDirs, fnv1a_128, mark_new, unique};
use crate::run_ref;

/// The folder of the runs.
const RUNS: &str = "runs";
/// The folder with a file for each run that is not over.
const HELD: &str = "held";
/// The file with the end of the worker's name, which stays the same.
const NAME: &str = "name";
/// The file with the addresses of the server whose runs these are, a line for each.
const SERVER: &str = "server";
/// The file with the processes that have had the folder.
const PROCESSES: &str = "processes";
/// So many of them are kept.
const MOST_PROCESSES: usize = 16;
/// The file that one process has locked.
const LOCK: &str = "lock";
/// Letters of that end.
const TAIL: usize = 8;

/// The reason for which a folder can't be a worker's. Messages complete "failed to …".
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    /// Another process has it.
    #[error("work in {}: another worker is running there", .0.display())]
    Taken(PathBuf),
    /// It has runs of another server, of which some may have the same names.
    #[error("work in {} for the server {server}: it has runs of the server {other}", .folder.display())]
    OtherServer {
        /// The folder.
        folder: PathBuf,
        /// The server that is to be worked for.
        server: String,
        /// The server whose runs are there.
        other: String,
    },
    /// A file can't be read or written.
    #[error("use {} as the folder of a worker: {source}", .path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

/// The folder of a worker. One process at a time has it, and the next one goes on with the runs of the former.
#[derive(Debug)]
pub struct Disk {
    folder: PathBuf,
    tail: String,
    lease: LeaseFile,
    launcher: Option<Launcher>,
    about: RemoteWorkerDto,
    told: Arc<Mutex<Option<WorkerFoldersDto>>>,
    /// Former processes that have certainly ended.
    ended: Vec<ProcessDto>,
    /// The lock, until it is released.
    lock: Option<File>,
}

/// A run that is not over, as the next process of the worker finds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct HeldRun {
    pub(super) run: RunId,
    pub(super) executor: String,
    #[serde(default)]
    pub(super) lease_millis: Option<u64>,
}

fn at<T>(path: &Path, result: io::Result<T>) -> Result<T, DiskError> {
    result.map_err(|source| DiskError::Io { path: path.to_owned(), source })
}

/// Enters this process into the list of those that have had a folder, and gives the others that have certainly ended. Of one on another
/// machine, or before a restart of this one, that is not known: the folder may be a copy.
fn succeed(path: &Path) -> io::Result<Vec<ProcessDto>> {
    let former: Vec<Process> = match fs::read(path) {
        Ok(text) => serde_json::from_slice(&text).unwrap_or_default(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error),
    };
    let own = Process::own()?;
    let ended = former.iter().filter(|one| one.is_here() && !one.id.is_alive()).cloned().map(ProcessDto::from);
    let ended = ended.collect();
    let mut all: Vec<Process> = former.into_iter().filter(|one| *one != own).collect();
    all.push(own);
    let kept = &all[all.len().saturating_sub(MOST_PROCESSES)..];
    let beside = path.with_extension("new");
    fs::write(&beside, serde_json::to_vec(kept)?)?;
    fs::rename(&beside, path)?;
    Ok(ended)
}

fn usual_in(folder: &Path, servers: &[impl AsRef<str>], project: Option<&str>) -> Option<PathBuf> {
    let plain = |text: &str| -> String {
        text.chars().map(|letter| if letter.is_alphanumeric() { letter } else { '-' }).collect()
    };
    let project = project.map(|project| format!("-{}", plain(project))).unwrap_or_default();
    let of = |server: &str| format!("{}{project}", plain(server.split("://").last().unwrap_or_default()));
    let candidates: Vec<PathBuf> = servers.iter().map(|server| folder.join(of(server.as_ref()))).collect();
    let has_runs = |one: &&PathBuf| fs::read_dir(one.join(HELD)).is_ok_and(|mut held| held.next().is_some());
    let busy = candidates.iter().find(has_runs);
    busy.or_else(|| candidates.iter().find(|one| one.is_dir())).or(candidates.first()).cloned()
}

/// Sees to it that a folder is that of a server with these addresses, or of none yet.
fn belongs(folder: &Path, servers: &[impl AsRef<str>]) -> Result<(), DiskError> {
    let path = folder.join(SERVER);
    let known = match fs::read_to_string(&path) {
        Ok(known) => known,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return at(&path, Err(error)),
    };
    let mut all: Vec<&str> = known.lines().collect();
    let servers = || servers.iter().map(AsRef::as_ref);
    if !all.is_empty() && !servers().any(|server| all.contains(&server)) {
        return Err(DiskError::OtherServer {
            folder: folder.to_owned(),
            server: servers().collect::<Vec<_>>().join(", "),
            other: all.join(", "),
        });
    }
    let new: Vec<&str> = servers().filter(|server| !all.contains(server)).collect();
    if new.is_empty() {
        return Ok(());
    }
    all.extend(new);
    // Appears whole: a part of it would be another server.
    let beside = path.with_extension("new");
    at(&path, fs::write(&beside, all.join("\n")).and_then(|()| fs::rename(&beside, &path)))
}

impl Disk {
    /// The folder of a worker that is given none, for the server with these addresses, and for a project if it has one: of those that would
    /// be that of one of the addresses, one with runs that are not over, else one that is there, else the first one. None where the
    /// environment names no folder of state.
    #[must_use]
    pub fn usual(servers: &[impl AsRef<str>], project: Option<&str>) -> Option<PathBuf> {
        let named = |variable: &str| std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from);
        let state = named("XDG_STATE_HOME").or_else(|| named("HOME").map(|home| home.join(".local/state")))?;
        usual_in(&state.join("kelos/worker"), servers, project)
    }

    /// Takes a folder for runs of a server, which is known by these addresses. It is made where it is missing, and it is that of the
    /// server if it has been taken for any of them before; then it is for all of them.
    ///
    /// # Errors
    /// When it can't be written, another process has it, or it has runs of another server.
    pub fn take(folder: &Path, servers: &[impl AsRef<str>]) -> Result<Disk, DiskError> {
        let runs = folder.join(RUNS);
        at(&runs, mark_new(&runs))?;
        for one in [folder.to_owned(), folder.join(HELD)] {
            at(&one, DirBuilder::new().recursive(true).mode(0o700).create(&one))?;
        }
        let path = folder.join(LOCK);
        let lock = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path);
        let lock = at(&path, lock)?;
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Err(DiskError::Taken(folder.to_owned()));
        }
        belongs(folder, servers)?;
        let path = folder.join(NAME);
        let tail = match fs::read_to_string(&path) {
            Ok(tail) if tail.len() == TAIL && tail.bytes().all(|byte| byte.is_ascii_hexdigit()) => tail,
            Ok(_) => return at(&path, Err(io::Error::other("it is damaged, expected 8 hexadecimal digits"))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let drawn: String = at(&path, unique())?.chars().filter(char::is_ascii_hexdigit).take(TAIL).collect();
                at(&path, fs::write(&path, &drawn))?;
                drawn
            }
            Err(error) => return at(&path, Err(error)),
        };
        let path = folder.join(PROCESSES);
        let ended = at(&path, succeed(&path))?;
        let lease = at(&runs, LeaseFile::open(&runs))?;
        let about = RemoteWorkerDto::default();
        Ok(Disk {
            folder: folder.to_owned(),
            tail,
            lease,
            launcher: None,
            about,
            told: Arc::default(),
            ended,
            lock: Some(lock),
        })
    }

    /// The end of the worker's name, the same in each of its processes.
    #[must_use]
    pub fn tail(&self) -> &str {
        &self.tail
    }

    /// The folder of its runs.
    #[must_use]
    pub fn runs(&self) -> PathBuf {
        self.folder.join(RUNS)
    }

    /// The folders of its runs that the server still has to hear of.
    #[must_use]
    pub fn held_runs(&self) -> HeldRuns {
        HeldRuns { held: self.folder.join(HELD), dirs: RunDirs::new(self.runs()), told: self.told.clone() }
    }

    /// The same, with the launcher that reads the output of its runs, and what the leader shows of the worker.
    #[must_use]
    pub fn with(self, launcher: Launcher, about: RemoteWorkerDto) -> Disk {
        Disk { launcher: Some(launcher), about, ..self }
    }

    /// Leaves the folder to the next process.
    pub(super) fn release(&mut self) {
        self.lock = None;
    }

    pub(super) fn about(&self) -> &RemoteWorkerDto {
        &self.about
    }

    /// Former processes of the folder that have certainly ended.
    pub(super) fn ended(&self) -> &[ProcessDto] {
        &self.ended
    }

    /// The folders of its runs as of the last look, if there was one.
    pub(super) fn told(&self) -> Option<WorkerFoldersDto> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn launcher(&self) -> Option<&Launcher> {
        self.launcher.as_ref()
    }

    /// Notes that the leader has answered a message that was sent at this moment.
    pub(super) fn renew(&mut self, asked: BootMoment) {
        if let Err(error) = self.lease.renew(asked) {
            tracing::warn!("failed to renew the lease of the runs in {}: {error}", self.folder.display());
        }
    }

    fn path_of(&self, run: &RunId) -> PathBuf {
        self.folder.join(HELD).join(format!("{:032x}", fnv1a_128(run.to_string().as_bytes())))
    }

    /// Notes that a run is about to begin.
    pub(super) fn hold(&self, held: &HeldRun) -> io::Result<()> {
        let path = self.path_of(&held.run);
        let beside = path.with_extension("new");
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
        file.write_all(&serde_json::to_vec(held)?)?;
        fs::rename(&beside, &path)
    }

    /// Notes that a run is over, and that the leader knows.
    pub(super) fn let_go(&self, run: &RunId) {
        let _ = fs::remove_file(self.path_of(run));
    }

    /// The runs of the former process that are not over.
    pub(super) fn held(&self) -> Vec<HeldRun> {
        let entries = fs::read_dir(self.folder.join(HELD)).into_iter().flatten().flatten();
        let whole = entries.map(|entry| entry.path()).filter(|path| path.extension().is_none());
        whole.filter_map(|path| nesting::read(&fs::read(path).ok()?).ok()).collect()
    }
}

/// The runs of a worker that are not over for its server, as they are on its disk.
#[derive(Debug, Clone)]
pub struct HeldRuns {
    held: PathBuf,
    dirs: RunDirs,
    told: Arc<Mutex<Option<WorkerFoldersDto>>>,
}

/// The folders of the runs of a worker, as a look found and left them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldFolders {
    /// The time of the look.
    pub looked_at: Timestamp,
    /// Their number, and the bytes that they take.
    pub all: (u64, u64),
    /// The end of the oldest run.
    pub oldest_at: Option<Timestamp>,
    /// The number of those that were removed since the start, and the bytes that they took.
    pub removed: (u64, u64),
}

impl HeldRuns {
    /// The folder of the runs.
    #[must_use]
    pub fn root(&self) -> &Path {
        self.dirs.root()
    }

    /// Has the server hear of the folders with the next heartbeats.
    pub fn tell(&self, HeldFolders { looked_at, all, oldest_at, removed }: HeldFolders) {
        let tally = |(folders, bytes)| FoldersDto { folders, bytes };
        let (all, removed, oldest_at) = (tally(all), tally(removed), oldest_at.map(Into::into));
        let told = WorkerFoldersDto { looked_at: looked_at.into(), all, oldest_at, removed };
        *self.told.lock().unwrap_or_else(PoisonError::into_inner) = Some(told);
    }

    /// The folders of those runs at this moment.
    ///
    /// # Errors
    /// When one of the notes can't be read.
    pub fn folders(&self) -> Result<BTreeSet<PathBuf>, DiskError> {
        let mut folders = BTreeSet::new();
        for entry in at(&self.held, fs::read_dir(&self.held))? {
            let path = at(&self.held, entry)?.path();
            if path.extension().is_some() {
                continue;
            }
            let read = match fs::read(&path) {
                // The server has just heard of its end.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                read => read.and_then(|text| Ok(nesting::read::<HeldRun>(&text)?)),
            };
            folders.insert(self.dirs.path(&run_ref(&at(&path, read)?.run)));
        }
        Ok(folders)
    }
}

#[cfg(test)]
mod tests {
    use kelos_model::{SlotRef, WorkflowId};

    use super::*;

    #[test]
    fn the_next_process_has_the_same_name_and_finds_the_runs_that_are_not_over() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("worker");
        let disk = Disk::take(&home, &["http://a"]).unwrap();
        let held = |number| HeldRun {
            run: RunId { slot: SlotRef::job(WorkflowId::new("a").unwrap(), "1".into()), number },
            executor: "command".to_owned(),
            lease_millis: Some(1000),
        };
        disk.hold(&held(1)).unwrap();
        disk.hold(&held(2)).unwrap();
        let path = |number| RunDirs::new(disk.runs()).path(&run_ref(&held(number).run));
        assert_eq!(disk.held_runs().folders().unwrap(), [path(1), path(2)].into());
        disk.let_go(&held(1).run);
        assert_eq!(disk.held_runs().folders().unwrap(), [path(2)].into());
        assert!(crate::local::is_new(disk.held_runs().root()));
        assert_eq!(disk.told(), None);
        let looked_at = Timestamp::UNIX_EPOCH;
        disk.held_runs().tell(HeldFolders { looked_at, all: (2, 4000), oldest_at: None, removed: (1, 500) });
        assert_eq!(disk.told().unwrap().all, FoldersDto { folders: 2, bytes: 4000 });
        let again = Disk::take(&home, &["http://a"]).unwrap_err().to_string();
        assert_eq!(again, format!("work in {}: another worker is running there", home.display()));
        let name = disk.tail().to_owned();
        drop(disk);
        let other = Disk::take(&home, &["http://b"]).unwrap_err().to_string();
        assert!(other.ends_with("for the server http://b: it has runs of the server http://a"), "{other}");
        let disk = Disk::take(&home, &["http://a"]).unwrap();
        assert_eq!((disk.tail(), disk.held()), (&*name, vec![held(2)]));
        drop(disk);
        fs::write(home.join(NAME), "x").unwrap();
        assert!(Disk::take(&home, &["http://a"]).unwrap_err().to_string().contains("expected 8 hexadecimal digits"));
    }

    #[test]
    fn a_folder_is_that_of_each_address_of_its_server_in_whichever_order() {
        let folder = tempfile::tempdir().unwrap();
        let find = |servers: &[&str]| usual_in(folder.path(), servers, None).unwrap();
        let of_a = find(&["https://a:1"]);
        assert_eq!(of_a, folder.path().join("a-1"));
        assert_eq!(usual_in(folder.path(), &["https://a:1"], Some("x.y")).unwrap(), folder.path().join("a-1-x-y"));
        drop(Disk::take(&of_a, &["https://a:1"]).unwrap());
        assert_eq!(find(&["https://b", "https://a:1"]), of_a);
        drop(Disk::take(&of_a, &["https://b", "https://a:1"]).unwrap());
        drop(Disk::take(&of_a, &["https://b", "https://c"]).unwrap());
        let other = Disk::take(&of_a, &["https://d", "https://e"]).unwrap_err().to_string();
        assert!(
            other.ends_with("server https://d, https://e: it has runs of the server https://a:1, https://b, https://c")
        );
        // One with runs that are not over goes before one that is only there.
        fs::create_dir_all(folder.path().join("b").join(HELD)).unwrap();
        assert_eq!(find(&["https://b", "https://a:1"]), folder.path().join("b"));
        fs::write(of_a.join(HELD).join("1"), "{}").unwrap();
        assert_eq!(find(&["https://b", "https://a:1"]), of_a);
    }
}
