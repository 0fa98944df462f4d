//! Many questions about one file system, answered by few requests.
//!
//! If several paths are below one folder, the folder is listed once: nothing below a missing entry has to be asked for,
//! however deep, and a listed entry needs no request of its own. A night of missing data so costs one listing, however
//! many slots wait for it.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use futures_util::future::{BoxFuture, FutureExt};
use futures_util::{StreamExt, stream};
use kelos_storage::{Entry, FileSystem, Kind, StorageError};

/// The number of paths below one folder from which on it is listed, instead of each being looked up.
pub(super) const WORTH_LISTING: usize = 8;

/// A folder is not listed when it holds so many times more than what is asked for.
const TOO_FULL: usize = 64;

/// Folders whose fill is remembered; beyond that all are forgotten.
const REMEMBERED: usize = 10_000;

/// The most requests of one walk that are under way at once.
const SIDE_BY_SIDE: usize = 8;

/// The entry at the path with this index; none if nothing is there.
pub(super) type PathAnswer = (usize, Result<Option<Entry>, StorageError>);

/// Remembers over walks how full folders were. Shared by all walks of one endpoint.
#[derive(Default)]
pub(super) struct Fill(Mutex<BTreeMap<String, usize>>);

impl Fill {
    fn is_worth_listing(&self, folder: &str, asked: usize) -> bool {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(folder).copied();
        asked >= WORTH_LISTING && known.is_none_or(|entries| entries <= asked.saturating_mul(TOO_FULL))
    }

    fn remember(&self, folder: &str, entries: usize) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if entries <= WORTH_LISTING * TOO_FULL {
            known.remove(folder);
            return;
        }
        if known.len() >= REMEMBERED {
            known.clear();
        }
        known.insert(folder.to_owned(), entries);
    }
}

/// Checks all of these paths. Each is answered exactly once.
pub(super) async fn look(files: &dyn FileSystem, fill: &Fill, paths: &[String]) -> Vec<PathAnswer> {
    let asked = paths.iter().enumerate().map(|(index, path)| WalkItem { index, path, rest: rest(path) });
    // A way up is found by the file system alone: it may lead through links.
    let (odd, plain) = asked.partition(|one| one.path.split('/').any(|part| part == "." || part == ".."));
    let walk = Walk { files, fill };
    let mut found = walk.each(odd).await;
    found.extend(walk.below(String::new(), plain).await);
    found
}

/// A question, on its way down the tree.
struct WalkItem<'a> {
    index: usize,
    path: &'a str,
    /// The part of the path below the present folder.
    rest: &'a str,
}

/// The path as seen from the root, without empty parts before it.
fn rest(path: &str) -> &str {
    path.trim_start_matches('/')
}

type Children<'a> = BTreeMap<&'a str, Vec<WalkItem<'a>>>;

struct Walk<'f> {
    files: &'f dyn FileSystem,
    fill: &'f Fill,
}

impl Walk<'_> {
    /// Answers questions about paths below a folder, which is given without a slash at its end.
    fn below<'a>(&'a self, folder: String, asked: Vec<WalkItem<'a>>) -> BoxFuture<'a, Vec<PathAnswer>> {
        async move {
            if asked.len() < WORTH_LISTING {
                return self.each(asked).await;
            }
            let (here, children) = by_child(asked);
            let mut found = self.each(here).await;
            found.extend(match self.fill.is_worth_listing(&folder, children.len()) {
                true => self.by_listing(&folder, children).await,
                false => self.one_by_one(&folder, children).await,
            });
            found
        }
        .boxed()
    }

    /// Looks up each path.
    async fn each(&self, asked: Vec<WalkItem<'_>>) -> Vec<PathAnswer> {
        let looks = asked
            .into_iter()
            .map(|WalkItem { index, path, .. }| self.files.stat(path).map(move |found| (index, found)));
        stream::iter(looks.collect::<Vec<_>>()).buffer_unordered(SIDE_BY_SIDE).collect().await
    }

    /// Continues below each child of a folder, without listing the folder.
    async fn one_by_one(&self, folder: &str, children: Children<'_>) -> Vec<PathAnswer> {
        let mut found = Vec::new();
        for (name, asked) in children {
            found.extend(self.below(format!("{folder}/{name}"), asked).await);
        }
        found
    }

    async fn by_listing(&self, folder: &str, children: Children<'_>) -> Vec<PathAnswer> {
        let entries = match self.files.list(folder_path(folder)).await {
            Ok(entries) => entries.unwrap_or_default(),
            Err(error) if error.is_of_endpoint() => return all(children, &Err(error)),
            // It may be no folder that can be listed; its paths may be there all the same.
            Err(_) => return self.each(children.into_values().flatten().collect()).await,
        };
        self.fill.remember(folder, entries.len());
        let entries: BTreeMap<&str, &Entry> = entries.iter().map(|entry| (entry.name.as_str(), entry)).collect();
        let mut found = Vec::new();
        for (name, asked) in children {
            match entries.get(name) {
                Some(entry) => found.extend(self.at(entry, format!("{folder}/{name}"), asked).await),
                None => found.extend(asked.iter().map(|one| (one.index, Ok(None)))),
            }
        }
        found
    }

    /// Answers questions about a listed entry, and about paths below it.
    async fn at(&self, entry: &Entry, path: String, asked: Vec<WalkItem<'_>>) -> Vec<PathAnswer> {
        let (it, below): (Vec<_>, Vec<_>) = asked.into_iter().partition(|one| one.rest.is_empty());
        let mut found: Vec<PathAnswer> = it.iter().map(|one| (one.index, Ok(Some(entry.clone())))).collect();
        found.extend(match entry.kind {
            Kind::File => below.iter().map(|one| (one.index, Ok(None))).collect(),
            Kind::Folder => self.below(path, below).await,
        });
        found
    }
}

fn folder_path(folder: &str) -> &str {
    if folder.is_empty() { "/" } else { folder }
}

fn all(children: Children<'_>, answer: &Result<Option<Entry>, StorageError>) -> Vec<PathAnswer> {
    children.into_values().flatten().map(|one| (one.index, answer.clone())).collect()
}

/// The questions about the folder itself, and those about its contents, by the name of the child.
fn by_child(asked: Vec<WalkItem<'_>>) -> (Vec<WalkItem<'_>>, Children<'_>) {
    let mut here = Vec::new();
    let mut children = Children::new();
    for one in asked {
        if one.rest.is_empty() {
            here.push(one);
            continue;
        }
        let (child, below) = one.rest.split_once('/').unwrap_or((one.rest, ""));
        children.entry(child).or_default().push(WalkItem { rest: rest(below), ..one });
    }
    (here, children)
}
