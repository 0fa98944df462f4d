//! Watched prefixes: files that appear below one are new partitions of a dataset.
//!
//! A file counts once, by its path and its version; one that is rewritten counts again. Files that exist when the watch
//! begins count too, unless it has a start time.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt};
use globset::{GlobBuilder, GlobMatcher};
use jiff::{SignedDuration, Timestamp};
use kelos_model::project::dataset_named;
use kelos_model::{Fact, Occurrence};
use kelos_storage::{Entry, Kind, Place, Storage};
use serde::Deserialize;
use serde_json::Value;

use super::{FactSource, Findings};
use crate::clock::Clock;

/// The default interval of listings.
const EVERY: Duration = Duration::from_secs(10);

/// The shortest interval of listings.
const SHORTEST: Duration = Duration::from_millis(100);

/// A file that was written so short a time ago may still grow, where a system shows files before they are whole.
const SETTLED: Duration = Duration::from_secs(10);

/// The schemes of file systems where files appear complete.
const ATOMIC: [&str; 7] = ["s3:", "s3a:", "s3n:", "gs:", "abfs:", "abfss:", "http"];

/// Files and folders below one prefix.
const MOST: usize = 200_000;

/// A prefix, and the dataset whose partitions are stored there.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Watch {
    /// A folder by its URI, or a path of this machine.
    pub prefix: String,
    /// The dataset.
    pub dataset: String,
    /// The interval of listings.
    #[serde(default = "every", deserialize_with = "duration")]
    pub every: Duration,
    /// The files that count: a pattern for their names, or with `/` for their paths below the prefix.
    #[serde(default)]
    pub pattern: Option<String>,
    /// The least age of a file that counts.
    #[serde(default, deserialize_with = "some_duration")]
    pub min_age: Option<Duration>,
    /// Files that were last written before don't count.
    #[serde(default)]
    pub since: Option<Timestamp>,
}

/// The part of a server's file that is about what is watched.
#[derive(Deserialize)]
struct File {
    #[serde(default)]
    watch: Vec<Watch>,
}

impl Watch {
    /// A watch of all files below a prefix.
    #[must_use]
    pub fn new(prefix: &str, dataset: &str) -> Watch {
        let (prefix, dataset) = (prefix.to_owned(), dataset.to_owned());
        Watch { prefix, dataset, every: EVERY, pattern: None, min_age: None, since: None }
    }

    /// Parses the text of the file that a server is started with; its other parts are ignored.
    ///
    /// # Errors
    /// The mistake, and what was expected.
    pub fn parse(text: &str) -> Result<Vec<Watch>, String> {
        const FORM: &str = "{\"watch\": [{\"prefix\": \"s3://…/\", \"dataset\": \"…\", \"every\": \"10s\", \"pattern\": \"*.parquet\"}]}";
        let file: File = serde_json::from_str(text).map_err(|error| format!("{error}; expected {FORM}"))?;
        for watch in &file.watch {
            watch.check().map_err(|why| format!("the watch of \"{}\": {why}", watch.prefix))?;
        }
        let named = |watch: Watch| Watch { dataset: dataset_named(&watch.dataset), ..watch };
        Ok(file.watch.into_iter().map(named).collect())
    }

    fn check(&self) -> Result<(), String> {
        if self.dataset.trim().is_empty() {
            return Err("its dataset has no name".to_owned());
        }
        if self.every < SHORTEST {
            return Err(format!("`every` is {:?}, expected at least {SHORTEST:?}", self.every));
        }
        self.matcher().map(drop)
    }

    fn matcher(&self) -> Result<Option<GlobMatcher>, String> {
        let compiled = |pattern: &String| GlobBuilder::new(pattern).literal_separator(true).build();
        let pattern = self.pattern.as_ref().map(compiled).transpose();
        pattern
            .map(|glob| glob.map(|glob| glob.compile_matcher()))
            .map_err(|error| format!("its pattern is wrong: {error}, expected such as *.parquet"))
    }

    fn min_age(&self) -> Duration {
        let is_atomic = ATOMIC.iter().any(|scheme| self.prefix.starts_with(scheme));
        self.min_age.unwrap_or(if is_atomic { Duration::ZERO } else { SETTLED })
    }
}

fn every() -> Duration {
    EVERY
}

fn duration<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(deserializer)?;
    let read = text.parse::<SignedDuration>().ok().and_then(|read| Duration::try_from(read).ok());
    read.ok_or_else(|| {
        serde::de::Error::custom(format!("\"{text}\" is no duration, expected such as \"10s\" or \"5m\""))
    })
}

fn some_duration<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    duration(deserializer).map(Some)
}

/// A source that lists a prefix periodically.
pub struct WatchedPrefix {
    watch: Watch,
    name: Arc<str>,
    source: Arc<str>,
    matcher: Option<GlobMatcher>,
    storage: Storage,
    clock: Clock,
    /// The names of the facts whose files are there, and that are stored.
    seen: BTreeSet<Arc<str>>,
    /// The files of the last listing whose facts are stored.
    found: BTreeSet<Arc<str>>,
}

/// A file that was found: its path below the prefix, and its entry in the listing.
type WatchedFile = (String, Entry);

impl WatchedPrefix {
    /// Watches through a storage.
    ///
    /// # Errors
    /// In words, when the watch makes no sense.
    pub fn new(watch: Watch, storage: Storage, clock: Clock) -> Result<WatchedPrefix, String> {
        watch.check()?;
        let matcher = watch.matcher()?;
        let name = format!("watch of {}", watch.prefix).into();
        let source = format!("storage:{}", watch.dataset).into();
        let (seen, found) = (BTreeSet::new(), BTreeSet::new());
        Ok(WatchedPrefix { watch, name, source, matcher, storage, clock, seen, found })
    }

    async fn look(&mut self) -> Result<Vec<Fact>, String> {
        let place = self.storage.place(&self.watch.prefix).map_err(|error| error.to_string())?;
        let files = self.walk(&place).await?;
        self.found.clear();
        let mut facts = Vec::new();
        for (path, entry) in files {
            let name = name_of(&place, &path, &entry);
            if !self.seen.contains(&name) {
                facts.push(self.fact(path, name.clone()));
            }
            self.found.insert(name);
        }
        Ok(facts)
    }

    /// All files below the prefix that count.
    async fn walk(&self, place: &Place) -> Result<Vec<WatchedFile>, String> {
        let mut folders = vec![String::new()];
        let (mut files, mut met) = (Vec::new(), 0);
        while let Some(folder) = folders.pop() {
            let path = format!(
                "{}{}",
                place.path,
                folder.strip_suffix('/').map(|path| format!("/{path}")).unwrap_or_default()
            );
            let entries = place.files.list(&path).await.map_err(|error| error.to_string())?;
            for entry in entries.unwrap_or_default() {
                met += 1;
                if met > MOST {
                    let words =
                        "it has more than the {} files and folders that are watched at most: watch one below it";
                    return Err(format!("look at {}: {}", self.watch.prefix, words.replace("{}", &MOST.to_string())));
                }
                let path = format!("{folder}{}", entry.name);
                match entry.kind {
                    Kind::Folder if !is_hidden(&entry.name) => folders.push(format!("{path}/")),
                    Kind::File if self.counts(&path, &entry) => files.push((path, entry)),
                    _ => {}
                }
            }
        }
        files.sort_by(|(left, a), (right, b)| (a.modified, left).cmp(&(b.modified, right)));
        Ok(files)
    }

    fn counts(&self, path: &str, entry: &Entry) -> bool {
        self.is_wanted(path, &entry.name) && self.is_of_age(entry)
    }

    /// Without a pattern that asks for them those are left out that Hadoop's jobs leave out, too.
    fn is_wanted(&self, path: &str, name: &str) -> bool {
        let Some(matcher) = &self.matcher else { return !is_hidden(name) };
        let pattern = self.watch.pattern.as_deref().unwrap_or_default();
        let subject = if pattern.contains('/') { path } else { name };
        let last = pattern.rsplit('/').next().unwrap_or_default();
        (!is_hidden(name) || is_hidden(last)) && matcher.is_match(subject)
    }

    fn is_of_age(&self, entry: &Entry) -> bool {
        let Some(modified) = entry.modified else { return true };
        let settled = modified.checked_add(self.watch.min_age()).is_ok_and(|settled| settled <= (self.clock)());
        settled && self.watch.since.is_none_or(|since| modified >= since)
    }

    fn fact(&self, path: String, key: Arc<str>) -> Fact {
        let what = Occurrence::Partitions { dataset: self.watch.dataset.as_str().into(), count: 1, keys: vec![path] };
        Fact { source: self.source.clone(), key: Some(key), what }
    }
}

/// The idempotency key of this version of a file.
fn name_of(place: &Place, path: &str, entry: &Entry) -> Arc<str> {
    let at = entry.modified.map_or_else(String::new, |at| format!(".{}", at.as_millisecond()));
    format!("{}{}/{path}@{}{at}", place.endpoint, place.path, entry.bytes).into()
}

fn is_hidden(name: &str) -> bool {
    name.starts_with(['.', '_'])
}

impl FactSource for WatchedPrefix {
    fn name(&self) -> Arc<str> {
        self.name.clone()
    }

    fn every(&self) -> Duration {
        self.watch.every
    }

    fn poll(&mut self, _: Option<Value>) -> BoxFuture<'_, Result<Findings, String>> {
        async { self.look().await.map(Findings::of) }.boxed()
    }

    fn acknowledge(&mut self) -> BoxFuture<'_, Result<(), String>> {
        self.seen = std::mem::take(&mut self.found);
        async { Ok(()) }.boxed()
    }
}
