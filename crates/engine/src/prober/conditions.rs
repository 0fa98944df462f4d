//! Whether what was found is as it should be.

use globset::Glob;
use jiff::Timestamp;
use kelos_model::probe::{Conditions, Verdict};
use kelos_storage::{Entry, Kind};

/// A verdict and what it rests on, in words.
pub type Judgement = (Verdict, String);

/// Judges what is at a path. `within` are the files directly in it, where it is a folder and they were asked for.
pub fn judge(conditions: &Conditions, found: Option<&Entry>, within: &[Entry], now: Timestamp) -> Judgement {
    let Some(found) = found else { return (Verdict::No, missing(conditions)) };
    if conditions.is_empty() {
        return (Verdict::Yes, String::new());
    }
    let files = match files_in_question(conditions, found, within) {
        Ok(files) => files,
        Err(judgement) => return judgement,
    };
    let problem = too_few(conditions, &files).or_else(|| too_small(conditions, &files)).or_else(|| {
        let newest = files.iter().copied().chain([found]).filter_map(|entry| entry.modified).max();
        too_young(conditions, newest, now)
    });
    problem.unwrap_or((Verdict::Yes, String::new()))
}

/// Whether the conditions of a folder need its contents.
pub(super) fn looks_within(conditions: &Conditions) -> bool {
    conditions.is_about_files_within() || conditions.min_bytes.is_some() || conditions.min_age_seconds.is_some()
}

fn missing(conditions: &Conditions) -> String {
    if conditions.is_empty() { String::new() } else { "nothing is there".to_owned() }
}

fn files_in_question<'a>(
    conditions: &Conditions,
    found: &'a Entry,
    within: &'a [Entry],
) -> Result<Vec<&'a Entry>, Judgement> {
    if found.kind == Kind::File {
        let about_folder = conditions.is_about_files_within();
        let is_file = || (Verdict::No, "it is a file, and the condition is about the files of a folder".to_owned());
        return if about_folder { Err(is_file()) } else { Ok(vec![found]) };
    }
    let wanted = matcher(conditions.glob.as_deref())?;
    Ok(within.iter().filter(|entry| entry.kind == Kind::File && wanted(&entry.name)).collect())
}

/// The names that count. Without a pattern, those are ignored that Hadoop's jobs ignore, too: marks, and files that are
/// still being written. A pattern matches names with a leading dot only if it begins with one, as in a shell.
fn matcher(glob: Option<&str>) -> Result<impl Fn(&str) -> bool, Judgement> {
    let wrong = |error| (Verdict::Failed, format!("the pattern is wrong: {error}"));
    let pattern = glob.map(|glob| Glob::new(glob).map(|glob| glob.compile_matcher())).transpose().map_err(wrong)?;
    let sees_dots = glob.is_some_and(|glob| glob.starts_with('.'));
    Ok(move |name: &str| match &pattern {
        None => !name.starts_with(['.', '_']),
        Some(pattern) => (sees_dots || !name.starts_with('.')) && pattern.is_match(name),
    })
}

fn too_few(conditions: &Conditions, files: &[&Entry]) -> Option<Judgement> {
    let wanted = if conditions.is_about_files_within() { conditions.min_count.unwrap_or(1) } else { 0 };
    let there = files.len();
    (there < wanted as usize).then(|| (Verdict::No, format!("{there} of {wanted} files are there")))
}

fn too_small(conditions: &Conditions, files: &[&Entry]) -> Option<Judgement> {
    let wanted = conditions.min_bytes?;
    let there = files.iter().fold(0_u64, |sum, file| sum.saturating_add(file.bytes));
    (there < wanted).then(|| (Verdict::No, format!("{there} of {wanted} bytes are there")))
}

fn too_young(conditions: &Conditions, newest: Option<Timestamp>, now: Timestamp) -> Option<Judgement> {
    let wanted = i64::from(conditions.min_age_seconds?);
    let Some(newest) = newest else {
        return Some((Verdict::Failed, "its file system does not tell when it was written".to_owned()));
    };
    let age = now.duration_since(newest).as_secs();
    (age < wanted).then(|| (Verdict::No, format!("it was written at {newest:.0}, less than {wanted} s ago")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn file(name: &str, bytes: u64, second: i64) -> Entry {
        Entry { name: name.to_owned(), kind: Kind::File, bytes, modified: Some(at(second)) }
    }

    fn folder(second: i64) -> Entry {
        Entry { kind: Kind::Folder, bytes: 0, ..file("in", 0, second) }
    }

    fn judged(conditions: &Conditions, found: &Entry, within: &[Entry]) -> Judgement {
        judge(conditions, Some(found), within, at(100))
    }

    fn yes() -> Judgement {
        (Verdict::Yes, String::new())
    }

    fn no(words: &str) -> Judgement {
        (Verdict::No, words.to_owned())
    }

    #[test]
    fn without_conditions_being_there_is_enough() {
        assert_eq!(judged(&Conditions::default(), &folder(100), &[]), yes());
        assert_eq!(judge(&Conditions::default(), None, &[], at(0)), no(""));
        let large = Conditions { min_bytes: Some(1), ..Conditions::default() };
        assert_eq!(judge(&large, None, &[], at(0)), no("nothing is there"));
    }

    #[test]
    fn size_is_of_the_file_or_of_all_files_in_the_folder() {
        let large = Conditions { min_bytes: Some(10), ..Conditions::default() };
        assert_eq!(judged(&large, &file("a", 10, 0), &[]), yes());
        assert_eq!(judged(&large, &file("a", 9, 0), &[]), no("9 of 10 bytes are there"));
        assert_eq!(judged(&large, &folder(0), &[file("a", 4, 0), file("b", 6, 0)]), yes());
        assert_eq!(judged(&large, &folder(0), &[file("a", 4, 0), folder(0)]), no("4 of 10 bytes are there"));
    }

    #[test]
    fn only_files_that_match_count() {
        let parts = Conditions { glob: Some("part-*".to_owned()), min_count: Some(2), ..Conditions::default() };
        let there = [file("part-0", 1, 0), file("part-1", 1, 0), file("_tmp", 1, 0)];
        assert_eq!(judged(&parts, &folder(0), &there), yes());
        assert_eq!(judged(&parts, &folder(0), &there[1..]), no("1 of 2 files are there"));
        let alone = Conditions { glob: Some("part-*".to_owned()), ..Conditions::default() };
        assert_eq!(judged(&alone, &folder(0), &there[2..]), no("0 of 1 files are there"));
        let words = "it is a file, and the condition is about the files of a folder";
        assert_eq!(judged(&parts, &file("part-0", 1, 0), &[]), no(words));
    }

    #[test]
    fn marks_and_unfinished_files_are_not_counted_unless_asked_for() {
        let there = [file("a", 1, 0), file("_SUCCESS", 1, 0), file(".a.unfinished", 1, 0)];
        let two = Conditions { min_count: Some(2), ..Conditions::default() };
        assert_eq!(judged(&two, &folder(0), &there), no("1 of 2 files are there"));
        let like = |glob: &str| Conditions { glob: Some(glob.to_owned()), ..two.clone() };
        assert_eq!(judged(&like("*"), &folder(0), &there), yes());
        assert_eq!(judged(&like(".*"), &folder(0), &there), no("1 of 2 files are there"));
    }

    #[test]
    fn a_wrong_pattern_is_told_and_not_taken_for_an_answer() {
        let wrong = Conditions { glob: Some("part-[".to_owned()), ..Conditions::default() };
        let (verdict, words) = judged(&wrong, &folder(0), &[]);
        assert_eq!(verdict, Verdict::Failed);
        assert!(words.starts_with("the pattern is wrong: error parsing glob 'part-['"), "{words}");
    }

    #[test]
    fn age_is_that_of_the_newest() {
        let quiet = Conditions { min_age_seconds: Some(30), ..Conditions::default() };
        assert_eq!(judged(&quiet, &file("a", 1, 70), &[]), yes());
        let young = no("it was written at 1970-01-01T00:01:11Z, less than 30 s ago");
        assert_eq!(judged(&quiet, &file("a", 1, 71), &[]), young);
        assert_eq!(judged(&quiet, &folder(0), &[file("a", 1, 0), file("b", 1, 71)]), young);
        let unknown = Entry { modified: None, ..file("a", 1, 0) };
        assert_eq!(judged(&quiet, &unknown, &[]).0, Verdict::Failed);
    }
}
