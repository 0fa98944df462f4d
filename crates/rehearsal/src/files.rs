//! The paths of a rehearsal: which are there, and who asked for them.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use kelos_engine::prober::judge;
use kelos_model::probe::Verdict;
use kelos_model::{Probe, ProbeAnswer};
use kelos_storage::{Entry, Kind};
use percent_encoding::percent_decode_str;

/// A path of some file system.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    /// Without a slash at the end.
    pub(super) path: String,
    /// `file`, or the URI before the path; empty matches any.
    system: String,
}

impl Place {
    /// The place that a test means by a path: without a scheme, this path of any file system.
    pub(super) fn named(text: &str) -> Place {
        Place::read(text, "")
    }

    /// The place that a probe asks for: without a scheme, a path of this machine.
    fn asked(uri: &str) -> Place {
        Place::read(uri, "file")
    }

    fn read(text: &str, without_scheme: &str) -> Place {
        let scheme = text.split_once(':').filter(|(scheme, _)| is_scheme(scheme));
        let Some((scheme, rest)) = scheme else {
            return Place { path: tidy(text), system: without_scheme.to_owned() };
        };
        let (authority, path) = match rest.strip_prefix("//") {
            Some(rest) => rest.split_at(rest.find('/').unwrap_or(rest.len())),
            None => ("", rest),
        };
        if scheme.eq_ignore_ascii_case("file") {
            let path = percent_decode_str(path).decode_utf8_lossy();
            return Place { path: tidy(&path), system: "file".to_owned() };
        }
        Place { path: tidy(path), system: format!("{scheme}://{authority}") }
    }

    fn is_of(&self, system: &str) -> bool {
        self.system.is_empty() || system.is_empty() || self.system == system
    }

    /// The path and all folders above it.
    fn lineage(&self) -> impl Iterator<Item = &str> {
        let path = self.path.as_str();
        std::iter::successors(Some(path), |path| Some(&path[..path.rfind('/')?]))
    }
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
}

/// Without empty parts, `.` and a slash at the end.
fn tidy(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    let root = if path.starts_with('/') { "/" } else { "" };
    format!("{root}{}", parts.join("/"))
}

#[derive(Debug, Clone)]
struct StoredFile {
    system: String,
    bytes: u64,
    modified: Timestamp,
    is_folder: bool,
}

/// The existing paths, and who asked for them.
#[derive(Debug, Default)]
pub(super) struct Files {
    there: BTreeMap<String, Vec<StoredFile>>,
    asked: BTreeMap<String, BTreeSet<Probe>>,
    /// The folder of a test with real commands, without a slash at the end: paths below it and paths relative to it
    /// are the same, of whichever file system.
    sandbox: Option<String>,
}

impl Files {
    pub(super) fn in_sandbox(root: &str) -> Files {
        Files { sandbox: Some(root.trim_end_matches('/').to_owned()), ..Files::default() }
    }

    /// The place under which a path is stored.
    pub(super) fn place(&self, place: Place) -> Place {
        let Some(root) = &self.sandbox else { return place };
        let path = place.path.strip_prefix(root.as_str()).unwrap_or(&place.path);
        Place { path: path.trim_start_matches('/').to_owned(), system: String::new() }
    }

    /// Puts something at a path; gives the answers that this changes.
    pub(super) fn put(&mut self, place: &Place, bytes: u64, is_folder: bool, now: Timestamp) -> Vec<TimedAnswer> {
        let place = self.place(place.clone());
        let stored = StoredFile { system: place.system.clone(), bytes, modified: now, is_folder };
        let here = self.there.entry(place.path.clone()).or_default();
        here.retain(|one| one.system != stored.system);
        here.push(stored);
        self.news(&place, now)
    }

    /// Removes a path and what is below it; gives the answers that this changes.
    pub(super) fn remove(&mut self, place: &Place, now: Timestamp) -> Vec<TimedAnswer> {
        let place = self.place(place.clone());
        let below: Vec<String> = self.below(&place.path).map(|(path, _)| path.clone()).collect();
        let mut news = Vec::new();
        for path in std::iter::once(place.path.clone()).chain(below) {
            let Some(here) = self.there.get_mut(&path) else { continue };
            here.retain(|one| !place.is_of(&one.system));
            if here.is_empty() {
                self.there.remove(&path);
            }
            news.extend(self.news(&Place { path, ..place.clone() }, now));
        }
        news
    }

    /// The entry at a path.
    pub(super) fn find(&self, place: &Place) -> Option<Entry> {
        let place = self.place(place.clone());
        let name = place.path.rsplit('/').next().unwrap_or_default().to_owned();
        let here = self.there.get(&place.path).into_iter().flatten().find(|one| place.is_of(&one.system));
        if let Some(one) = here.filter(|one| !one.is_folder) {
            return Some(Entry { name, kind: Kind::File, bytes: one.bytes, modified: Some(one.modified) });
        }
        let inside = self.below(&place.path).flat_map(|(_, all)| all).filter(|one| place.is_of(&one.system));
        let newest = inside.chain(here).map(|one| one.modified).max()?;
        Some(Entry { name, kind: Kind::Folder, bytes: 0, modified: Some(newest) })
    }

    /// The files directly in a folder.
    fn within(&self, place: &Place) -> Vec<Entry> {
        let place = self.place(place.clone());
        let skip = place.path.len() + 1;
        let files = self.below(&place.path).filter_map(|(path, all)| {
            let name = path.get(skip..).filter(|name| !name.contains('/'))?;
            let one = all.iter().find(|one| place.is_of(&one.system) && !one.is_folder)?;
            Some(Entry { name: name.to_owned(), kind: Kind::File, bytes: one.bytes, modified: Some(one.modified) })
        });
        files.collect()
    }

    fn below(&self, path: &str) -> impl Iterator<Item = (&String, &Vec<StoredFile>)> {
        // `0` comes right after the slash.
        let path = path.trim_end_matches('/');
        self.there.range(format!("{path}/")..format!("{path}0"))
    }

    /// All paths that are there.
    pub(super) fn paths(&self) -> Vec<String> {
        let full = |(path, all): (&String, &Vec<StoredFile>)| {
            let with = |one: &StoredFile| match one.system.as_str() {
                "" | "file" => path.clone(),
                system => format!("{system}{path}"),
            };
            all.iter().map(with).collect::<Vec<_>>()
        };
        self.there.iter().flat_map(full).collect()
    }

    /// Answers a question about a path, and keeps in mind who asked.
    pub(super) fn ask(&mut self, probe: &Probe, now: Timestamp) -> Option<TimedAnswer> {
        let Probe::Path { uri, .. } = probe else { return None };
        let place = self.place(Place::asked(uri));
        self.asked.entry(place.path).or_default().insert(probe.clone());
        self.answer(probe, now)
    }

    fn answer(&self, probe: &Probe, now: Timestamp) -> Option<TimedAnswer> {
        let Probe::Path { uri, conditions } = probe else { return None };
        let place = Place::asked(uri);
        let found = self.find(&place);
        let within = if conditions.is_empty() { Vec::new() } else { self.within(&place) };
        let (verdict, detail) = judge(conditions, found.as_ref(), &within, now);
        let age = conditions.min_age_seconds.map(|seconds| SignedDuration::from_secs(i64::from(seconds)));
        let newest = within.iter().chain(&found).filter_map(|entry| entry.modified).max();
        let old_at = newest.zip(age).and_then(|(newest, age)| newest.checked_add(age).ok());
        Some(TimedAnswer {
            probe: probe.clone(),
            answer: ProbeAnswer { verdict, detail, at: now },
            again_at: old_at.filter(|at| verdict == Verdict::No && *at > now),
        })
    }

    /// Whether something is at a URI.
    pub(super) fn is_there(&self, uri: &str) -> bool {
        self.find(&Place::asked(uri)).is_some()
    }

    /// The answers to all questions that a change at a path concerns.
    fn news(&self, place: &Place, now: Timestamp) -> Vec<TimedAnswer> {
        let concerned = place.lineage().filter_map(|path| self.asked.get(path)).flatten();
        concerned.filter_map(|probe| self.answer(probe, now)).collect()
    }
}

/// An answer, and when it will be another one by itself.
#[derive(Debug)]
pub(super) struct TimedAnswer {
    pub(super) probe: Probe,
    pub(super) answer: ProbeAnswer,
    pub(super) again_at: Option<Timestamp>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn files(paths: &[&str]) -> Files {
        let mut files = Files::default();
        for path in paths {
            files.put(&Place::named(path), 1, false, at(0));
        }
        files
    }

    #[test]
    fn a_path_is_found_in_the_file_systems_that_it_may_mean() {
        let files = files(&["/any/a", "hdfs://nn/b", "file:///c d", "data/e"]);
        for there in
            ["/any/a", "hdfs://other/any/a", "hdfs://nn/b", "file:/c%20d", "/c d", "file:data/e", "hdfs://nn/any"]
        {
            assert!(files.is_there(there), "{there}");
        }
        for absent in ["hdfs://other/b", "/b", "hdfs://nn/c d", "/data/e", "/any/ab", "/an"] {
            assert!(!files.is_there(absent), "{absent}");
        }
        assert!(files.find(&Place::named("/b")).is_some(), "a test need not name the file system");
    }

    #[test]
    fn what_comes_and_goes_is_told_to_whoever_asked_above_it() {
        let mut files = Files::default();
        let probe = Probe::Path { uri: "hdfs://nn/in".to_owned(), conditions: Default::default() };
        files.ask(&probe, at(0));
        let said = |news: Vec<TimedAnswer>| news.first().map(|answered| answered.answer.verdict);
        assert_eq!(said(files.put(&Place::named("/in/a/b"), 1, false, at(1))), Some(Verdict::Yes));
        assert_eq!(said(files.put(&Place::named("/inn"), 1, false, at(1))), None);
        assert_eq!(said(files.remove(&Place::named("/in"), at(2))), Some(Verdict::No));
        assert_eq!(files.paths(), ["/inn"]);
    }

    #[test]
    fn in_a_sandbox_all_paths_are_below_its_folder() {
        let mut files = Files::in_sandbox("/tmp/t/");
        files.put(&Place::named("/in/a"), 1, false, at(0));
        for there in ["/in/a", "in/a", "/tmp/t/in/a", "hdfs://nn/tmp/t/in/a", "file:in/a"] {
            assert!(files.is_there(there), "{there}");
        }
    }
}
