//! Asking the outside world: one look at a folder answers every slot that waits below it.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::DirEntry;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kelos_core::Input;
use kelos_model::trigger::Verdict;
use kelos_model::{Probe, ProbeAnswer};
use percent_encoding::percent_decode_str;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use crate::clock::Clock;
use crate::executor::Reports;
use crate::job::Functions;

/// Paths of one folder from which on it is listed instead of each being looked up.
const WORTH_LISTING: usize = 8;

/// Looks under way at a time; a file system that hangs holds no more threads than this.
const LOOKS_AT_A_TIME: usize = 16;

/// How long a look may take before it counts as failed.
const PATIENCE: Duration = Duration::from_secs(10);

/// Answers probes.
#[derive(Clone)]
pub struct Prober {
    runtime: Handle,
    clock: Clock,
    functions: Arc<dyn Functions>,
    places: Arc<Semaphore>,
}

impl Prober {
    /// A prober that works on a runtime.
    #[must_use]
    pub fn new(runtime: Handle, clock: Clock, functions: Arc<dyn Functions>) -> Self {
        Self { runtime, clock, functions, places: Arc::new(Semaphore::new(LOOKS_AT_A_TIME)) }
    }

    /// Asks these questions; each gets an answer, if only that it could not be asked.
    pub fn ask(&self, probes: Vec<Probe>, reports: &Reports) {
        let mut folders: BTreeMap<PathBuf, Vec<(Probe, PathBuf)>> = BTreeMap::new();
        for probe in probes {
            match local_path(&probe) {
                Some(Ok(path)) => {
                    let folder = path.parent().unwrap_or(Path::new("/")).to_owned();
                    folders.entry(folder).or_default().push((probe, path));
                }
                Some(Err(reason)) => reports.deliver(self.answer(probe, Verdict::Failed, reason)),
                None => self.call(probe, reports),
            }
        }
        for (folder, asked) in folders {
            self.look(folder, asked, reports);
        }
    }

    fn look(&self, folder: PathBuf, asked: Vec<(Probe, PathBuf)>, reports: &Reports) {
        let (prober, reports) = (self.clone(), reports.clone());
        let probes: Vec<Probe> = asked.iter().map(|(probe, _)| probe.clone()).collect();
        self.runtime.spawn(async move {
            let found = prober.within_patience(move || look_up(&folder, &asked)).await;
            let found = found.unwrap_or_else(|reason| {
                probes.into_iter().map(|probe| (probe, Verdict::Failed, reason.clone())).collect()
            });
            for (probe, verdict, detail) in found {
                reports.deliver(prober.answer(probe, verdict, detail));
            }
        });
    }

    fn call(&self, probe: Probe, reports: &Reports) {
        let Probe::Function { function, workflow, key } = probe.clone() else { return };
        let (prober, reports) = (self.clone(), reports.clone());
        self.runtime.spawn(async move {
            let functions = prober.functions.clone();
            let said = prober.within_patience(move || functions.ask(&function, &workflow, &key)).await;
            let (verdict, detail) = match said.and_then(|said| said) {
                Ok(verdict) => (verdict, String::new()),
                Err(reason) => (Verdict::Failed, reason),
            };
            reports.deliver(prober.answer(probe, verdict, detail));
        });
    }

    /// Runs a blocking look on a thread of its own; one that hangs keeps its place until it returns.
    async fn within_patience<T: Send + 'static>(&self, look: impl FnOnce() -> T + Send + 'static) -> Result<T, String> {
        let place = tokio::time::timeout(PATIENCE, self.places.clone().acquire_owned()).await;
        let Ok(Ok(place)) = place else {
            return Err(format!("no place to look within {} s: earlier looks hang", PATIENCE.as_secs()));
        };
        let work = tokio::task::spawn_blocking(move || {
            let _place = place;
            look()
        });
        match tokio::time::timeout(PATIENCE, work).await {
            Ok(Ok(found)) => Ok(found),
            Ok(Err(_)) => Err("the look ended in a panic".to_owned()),
            Err(_) => Err(format!("no answer within {} s", PATIENCE.as_secs())),
        }
    }

    fn answer(&self, probe: Probe, verdict: Verdict, detail: String) -> Input {
        let at: Timestamp = (self.clock)();
        Input::ProbeAnswered { probe, answer: ProbeAnswer { verdict, detail, at } }
    }
}

/// Looks at a URI at once, for scripts that decide by what is there while they are loaded.
pub(crate) fn is_there(uri: &str) -> Result<bool, String> {
    let probe = Probe::Path { uri: uri.to_owned() };
    let path = local_path(&probe).unwrap_or_else(|| Err("it is not a path".to_owned()))?;
    match look_up_one(&probe, &path) {
        (_, Verdict::Failed, reason) => Err(reason),
        (_, verdict, _) => Ok(verdict == Verdict::Yes),
    }
}

/// The local path that a probe asks about; none where it does not ask about a path.
fn local_path(probe: &Probe) -> Option<Result<PathBuf, String>> {
    let Probe::Path { uri } = probe else { return None };
    let path = match uri.split_once(':') {
        _ if uri.starts_with('/') => Ok(PathBuf::from(uri)),
        Some(("file", rest)) => Ok(file_path(rest)),
        Some((scheme, _)) => Err(format!("this version can't look at {scheme}: paths, only at file: paths")),
        None => Err("it is neither an absolute path nor a URI".to_owned()),
    };
    Some(path)
}

/// `file:/p`, `file:///p` and `file://host/p` name `/p`.
fn file_path(rest: &str) -> PathBuf {
    let path =
        rest.strip_prefix("//").map_or(rest, |with_host| with_host.find('/').map_or("/", |start| &with_host[start..]));
    use std::os::unix::ffi::OsStringExt;
    PathBuf::from(OsString::from_vec(percent_decode_str(path).collect()))
}

type Found = Vec<(Probe, Verdict, String)>;

fn look_up(folder: &Path, asked: &[(Probe, PathBuf)]) -> Found {
    if asked.len() >= WORTH_LISTING
        && let Ok(entries) = std::fs::read_dir(folder)
    {
        // A link may lead nowhere.
        let is_link = |entry: &DirEntry| entry.file_type().map_or(true, |kind| kind.is_symlink());
        let (links, others): (Vec<DirEntry>, Vec<DirEntry>) = entries.filter_map(Result::ok).partition(is_link);
        let names =
            |entries: Vec<DirEntry>| entries.into_iter().map(|entry| entry.file_name()).collect::<BTreeSet<_>>();
        let (links, others) = (names(links), names(others));
        let one = |(probe, path): &(Probe, PathBuf)| match path.file_name() {
            Some(name) if !links.contains(name) => (probe.clone(), yes_or_no(others.contains(name)), String::new()),
            _ => look_up_one(probe, path),
        };
        return asked.iter().map(one).collect();
    }
    asked.iter().map(|(probe, path)| look_up_one(probe, path)).collect()
}

fn look_up_one(probe: &Probe, path: &Path) -> (Probe, Verdict, String) {
    match std::fs::symlink_metadata(path).and_then(|_| path.try_exists()) {
        Ok(there) => (probe.clone(), yes_or_no(there), String::new()),
        Err(error) if matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) => {
            (probe.clone(), Verdict::No, String::new())
        }
        Err(error) => (probe.clone(), Verdict::Failed, error.to_string()),
    }
}

fn yes_or_no(there: bool) -> Verdict {
    if there { Verdict::Yes } else { Verdict::No }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_look_at_a_folder_finds_what_single_looks_find() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: String| folder.path().join(name);
        std::fs::write(path("0".to_owned()), "").unwrap();
        std::os::unix::fs::symlink("0", path("1".to_owned())).unwrap();
        std::os::unix::fs::symlink("nowhere", path("2".to_owned())).unwrap();
        std::fs::create_dir(path("3".to_owned())).unwrap();
        let ask = |n: usize| {
            let path = path(n.to_string());
            (Probe::Path { uri: path.display().to_string() }, path)
        };
        let asked: Vec<_> = (0..WORTH_LISTING).map(ask).collect();
        let single: Found = asked.iter().map(|(probe, path)| look_up_one(probe, path)).collect();
        assert_eq!(look_up(folder.path(), &asked), single);
        let there = single.iter().filter(|(_, verdict, _)| *verdict == Verdict::Yes).count();
        assert_eq!(there, 3, "{single:?}");
    }

    #[test]
    fn file_uris_in_all_their_forms() {
        for uri in ["file:/a/b c", "file:///a/b%20c", "file://localhost/a/b%20c", "/a/b c"] {
            let probe = Probe::Path { uri: uri.to_owned() };
            assert_eq!(local_path(&probe).unwrap().unwrap(), Path::new("/a/b c"), "{uri}");
        }
        let probe = Probe::Path { uri: "hdfs://n/a".to_owned() };
        assert!(local_path(&probe).unwrap().unwrap_err().contains("hdfs:"));
    }
}
