//! Few requests, and the same answers as from many.

use std::sync::Mutex;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::io::AsyncRead;

use super::*;

/// A file system of paths that are made up, which counts what it is asked.
#[derive(Default)]
struct Counting {
    files: BTreeSet<String>,
    stats: Mutex<usize>,
    lists: Mutex<usize>,
    dead: bool,
}

impl Counting {
    fn with(files: &[&str]) -> Self {
        Self { files: files.iter().map(|path| (*path).to_owned()).collect(), ..Self::default() }
    }

    fn kind(&self, path: &str) -> Option<Kind> {
        let below = format!("{}/", path.trim_end_matches('/'));
        match self.files.contains(path) {
            true => Some(Kind::File),
            false => self.files.iter().any(|file| file.starts_with(&below)).then_some(Kind::Folder),
        }
    }

    fn entry(&self, path: &str) -> Option<Entry> {
        let name = path.rsplit('/').next().unwrap_or_default().to_owned();
        Some(Entry { name, kind: self.kind(path)?, bytes: 1, modified: None })
    }

    fn refuse(&self) -> Result<(), StorageError> {
        let unreachable = || StorageError::Unreachable { endpoint: "n:".to_owned(), detail: "refused".to_owned() };
        if self.dead { Err(unreachable()) } else { Ok(()) }
    }

    fn asked(&self) -> (usize, usize) {
        (*self.stats.lock().unwrap(), *self.lists.lock().unwrap())
    }
}

#[async_trait]
impl FileSystem for Counting {
    async fn stat(&self, path: &str) -> Result<Option<Entry>, StorageError> {
        *self.stats.lock().unwrap() += 1;
        self.refuse()?;
        Ok(self.entry(path))
    }

    async fn list(&self, folder: &str) -> Result<Option<Vec<Entry>>, StorageError> {
        *self.lists.lock().unwrap() += 1;
        self.refuse()?;
        if self.kind(folder).is_none() {
            return Ok(None);
        }
        let below = format!("{}/", folder.trim_end_matches('/'));
        let names: BTreeSet<&str> = self.files.iter().filter_map(|file| file.strip_prefix(&below)).collect();
        let names: BTreeSet<&str> = names.into_iter().filter_map(|rest| rest.split('/').next()).collect();
        Ok(Some(names.into_iter().filter_map(|name| self.entry(&format!("{below}{name}"))).collect()))
    }

    async fn read(&self, _: &str, _: u64) -> Result<Bytes, StorageError> {
        unreachable!("a prober reads nothing")
    }

    async fn put(&self, _: &str, _: &mut (dyn AsyncRead + Send + Unpin)) -> Result<(), StorageError> {
        unreachable!("a prober writes nothing")
    }

    async fn make_folder(&self, _: &str) -> Result<(), StorageError> {
        unreachable!("a prober writes nothing")
    }

    async fn rename(&self, _: &str, _: &str) -> Result<(), StorageError> {
        unreachable!("a prober writes nothing")
    }

    async fn remove(&self, _: &str) -> Result<(), StorageError> {
        unreachable!("a prober writes nothing")
    }
}

/// A week of hours: `/in/DAY/HOUR/_READY`.
fn week() -> Vec<String> {
    (1..=7).flat_map(|day| (0..24).map(move |hour| format!("/in/{day:02}/{hour:02}/_READY"))).collect()
}

async fn looked(files: &Counting, paths: &[String]) -> Vec<Option<Kind>> {
    let mut found = walk::look(files, &Fill::default(), paths).await;
    found.sort_by_key(|(index, _)| *index);
    assert_eq!(found.iter().map(|(index, _)| *index).collect::<Vec<_>>(), (0..paths.len()).collect::<Vec<_>>());
    found.into_iter().map(|(_, found)| found.unwrap().map(|entry| entry.kind)).collect()
}

#[tokio::test]
async fn a_week_that_is_missing_costs_a_look_per_day_and_not_per_hour() {
    let files = Counting::default();
    assert!(looked(&files, &week()).await.iter().all(Option::is_none));
    assert_eq!(files.asked(), (0, 7));
}

#[tokio::test]
async fn what_a_listing_shows_is_looked_into_and_what_it_lacks_is_not() {
    let files = Counting::with(&["/in/03/05/_READY", "/in/03/06/_LATER", "/in/04/07"]);
    let found = looked(&files, &week()).await;
    let there: Vec<usize> = (0..found.len()).filter(|index| found[*index].is_some()).collect();
    assert_eq!(there, [2 * 24 + 5]);
    assert_eq!(files.asked(), (2, 7), "the two hours that are folders, and one listing a day");
}

#[tokio::test]
async fn few_looks_find_what_many_would() {
    let files = Counting::with(&["/a/0", "/a/1/x", "/a/2/deep/er", "/b", "/a/9"]);
    let mut paths: Vec<String> = (0..12).map(|n| format!("/a/{n}")).collect();
    paths.extend(["/a/1/x", "/a/2/deep", "/a/2/deep/er", "/a/0/below", "/a", "/b", "/c/d", "/"].map(str::to_owned));
    let single: Vec<Option<Kind>> = paths.iter().map(|path| files.kind(path)).collect();
    assert_eq!(looked(&files, &paths).await, single);
    let (stats, lists) = files.asked();
    assert!(stats + lists < paths.len(), "{stats} looks at paths, {lists} listings");
}

#[tokio::test]
async fn ways_up_are_left_to_the_file_system() {
    let files = Counting::with(&["/a/0"]);
    let mut paths: Vec<String> = (0..12).map(|n| format!("/a/{n}")).collect();
    paths.push("/a/b/../0".to_owned());
    assert_eq!(looked(&files, &paths).await[12], None, "as this file system sees it");
    assert_eq!(files.asked(), (1, 1));
}

#[tokio::test]
async fn a_folder_that_is_too_full_is_not_listed_again_for_few() {
    let files: Vec<String> = (0..1000).map(|n| format!("/in/{n}")).collect();
    let files = Counting::with(&files.iter().map(String::as_str).collect::<Vec<_>>());
    let paths: Vec<String> = (0..8).map(|n| format!("/in/{n}")).collect();
    let fill = Fill::default();
    walk::look(&files, &fill, &paths).await;
    assert_eq!(files.asked(), (0, 1));
    walk::look(&files, &fill, &paths).await;
    assert_eq!(files.asked(), (8, 1));
}

#[tokio::test]
async fn a_dead_server_is_asked_once_for_all() {
    let files = Counting { dead: true, ..Counting::default() };
    let paths: Vec<String> = (0..100).map(|n| format!("/in/{n}")).collect();
    let found = walk::look(&files, &Fill::default(), &paths).await;
    assert_eq!(found.len(), 100);
    assert!(found.iter().all(|(_, found)| found.is_err()));
    assert_eq!(files.asked(), (0, 1));
}
