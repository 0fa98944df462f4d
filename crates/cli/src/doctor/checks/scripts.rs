//! Problems of definitions: those that `kelos check` finds in the folder, and those that the server has.

use super::named;
use crate::doctor::diagnosis::Diagnosis;
use crate::text::count;

const CHECK: &str = "scripts";

/// A problem, with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::doctor) struct ProblemLine {
    pub(in crate::doctor) is_error: bool,
    /// The code of its kind.
    pub(in crate::doctor) code: String,
    /// Its file and line; empty for one that has none.
    pub(in crate::doctor) place: String,
    pub(in crate::doctor) message: String,
}

impl ProblemLine {
    /// The problem in one line.
    pub(super) fn line(&self) -> String {
        if self.place.is_empty() { self.message.clone() } else { format!("{}: {}", self.place, self.message) }
    }
}

/// The problems of definitions.
#[derive(Debug, Clone, Default)]
pub(in crate::doctor) struct ScriptProblems {
    /// The problems of the folder, with its name and the number of its workflows; or the reason for which it was not read.
    pub(in crate::doctor) folder: Option<Result<FolderProblems, String>>,
    /// The problems that the server has, without those of its endpoints.
    pub(in crate::doctor) server: Option<Vec<ProblemLine>>,
}

/// The problems of a folder.
#[derive(Debug, Clone)]
pub(in crate::doctor) struct FolderProblems {
    pub(in crate::doctor) folder: String,
    pub(in crate::doctor) workflows: usize,
    pub(in crate::doctor) problems: Vec<ProblemLine>,
}

/// Judges the definitions; nothing where neither a folder nor a server is known.
pub(in crate::doctor) fn judge(problems: &ScriptProblems) -> Vec<Diagnosis> {
    let mut found = Vec::new();
    let mut known: &[ProblemLine] = &[];
    let mut words = Vec::new();
    match &problems.folder {
        Some(Ok(read)) => {
            known = &read.problems;
            let advice = format!("`kelos check {}` shows each with its line", crate::text::quoted(&read.folder));
            found.extend(of(&read.folder, known, &advice));
            words.push(format!("{} in {} without errors", count(read.workflows, "workflow"), read.folder));
        }
        Some(Err(why)) => {
            let advice = "name the folders of scripts with --workflows and --defaults";
            found.push(Diagnosis::wrong(CHECK, format!("failed to {why}"), advice));
        }
        None => {}
    }
    if let Some(served) = &problems.server {
        let new: Vec<ProblemLine> = served.iter().filter(|one| !known.contains(one)).cloned().collect();
        found.extend(of("the server", &new, "the page Problems of the server shows each with its hint"));
        if served.iter().all(|one| !one.is_error) {
            words.push("the server has loaded all of its files".to_owned());
        }
    }
    if found.is_empty() && !words.is_empty() {
        found.push(Diagnosis::ok(CHECK, words.join("; ")));
    }
    found
}

/// The problems of one place, the worst ones as one result each.
fn of(place: &str, problems: &[ProblemLine], advice: &str) -> Vec<Diagnosis> {
    let lines = |are_errors: bool| -> Vec<String> {
        problems.iter().filter(|one| one.is_error == are_errors).map(ProblemLine::line).collect()
    };
    let (errors, warnings) = (lines(true), lines(false));
    let words = |lines: &[String], noun: &str| format!("{} of {place}: {}", count(lines.len(), noun), named(lines));
    let wrong = (!errors.is_empty()).then(|| Diagnosis::wrong(CHECK, words(&errors, "problem"), advice));
    let warned = (!warnings.is_empty()).then(|| Diagnosis::warning(CHECK, words(&warnings, "warning"), advice));
    wrong.into_iter().chain(warned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(is_error: bool, place: &str, message: &str) -> ProblemLine {
        let code = "syntax-error".to_owned();
        ProblemLine { is_error, code, place: place.to_owned(), message: message.to_owned() }
    }

    fn told(folder: Option<Result<Vec<ProblemLine>, &str>>, server: Option<Vec<ProblemLine>>) -> Vec<String> {
        let read = |problems| FolderProblems { folder: "etl".to_owned(), workflows: 3, problems };
        let folder = folder.map(|found| found.map(read).map_err(str::to_owned));
        judge(&ScriptProblems { folder, server }).iter().map(|one| format!("{:?} {}", one.level, one.found)).collect()
    }

    #[test]
    fn scripts_without_problems_are_one_line() {
        let both = "Ok 3 workflows in etl without errors; the server has loaded all of its files";
        assert_eq!(told(Some(Ok(Vec::new())), Some(Vec::new())), [both]);
        assert_eq!(told(None, Some(Vec::new())), ["Ok the server has loaded all of its files"]);
        assert_eq!(told(None, None), Vec::<String>::new());
    }

    #[test]
    fn a_problem_that_folder_and_server_have_is_named_once() {
        let (bad, odd) = (problem(true, "a.js:3:7", "no JavaScript"), problem(false, "b.js", "odd"));
        let server = Some(vec![bad.clone(), odd]);
        assert_eq!(
            told(Some(Ok(vec![bad])), server),
            ["Wrong 1 problem of etl: a.js:3:7: no JavaScript", "Warning 1 warning of the server: b.js: odd"]
        );
        assert_eq!(told(Some(Err("use it: it is gone")), None), ["Wrong failed to use it: it is gone"]);
    }
}
