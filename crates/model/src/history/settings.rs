//! The settings of history as a server's file gives them.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::size::{read_size, size_text};

/// The form that messages about mistakes show.
const FORM: &str = r#"{"history": {"days": 90, "runs": 100, "output": "10 GB", "projects": {"warehouse": {"days": 365}}}} or {"history": "all"}"#;

/// Longest time that is kept by number, in days: longer than any log.
const MOST_DAYS: u32 = 36_500;
/// Largest number of runs of each workflow that is kept by number. Their moments are in memory while folders are looked at.
const MOST_RUNS: u32 = 10_000;

/// The folders of runs of a workflow that are kept: those of so many days, and the newest ones however old they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Days since the end of a run.
    pub days: u32,
    /// The newest runs of each workflow.
    pub runs: u32,
}

/// The terms on which folders of runs are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Term {
    /// The terms of projects that are not named.
    pub usual: Retention,
    /// The terms of the projects that are named.
    pub projects: BTreeMap<String, Retention>,
    /// The bytes that all folders together may take on a machine.
    pub output: u64,
    /// The URI of the folder that gets history before it is removed from the database; none if nothing keeps it.
    pub archive: Option<String>,
}

/// The settings of history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HistorySettings {
    /// Everything is kept.
    All,
    /// Older folders go.
    Bounded(Term),
}

impl Default for Term {
    fn default() -> Term {
        Term {
            usual: Retention { days: 90, runs: 100 },
            projects: BTreeMap::new(),
            output: 10_000_000_000,
            archive: None,
        }
    }
}

impl Default for HistorySettings {
    fn default() -> HistorySettings {
        HistorySettings::Bounded(Term::default())
    }
}

impl Term {
    /// The terms of a project.
    #[must_use]
    pub fn of(&self, project: &str) -> Retention {
        self.projects.get(project).copied().unwrap_or(self.usual)
    }

    /// The terms in words: `90 days, the newest 100 runs of each workflow, and at most 10 GB in all`.
    #[must_use]
    pub fn words(&self) -> String {
        format!("{}, and at most {} in all", self.usual.words(), size_text(self.output))
    }
}

impl Retention {
    /// The terms in words: `90 days, the newest 100 runs of each workflow`.
    #[must_use]
    pub fn words(self) -> String {
        let days = if self.days == 1 { "1 day".to_owned() } else { format!("{} days", self.days) };
        match self.runs {
            0 => days,
            1 => format!("{days}, the newest run of each workflow"),
            runs => format!("{days}, the newest {runs} runs of each workflow"),
        }
    }
}

/// The part of a server's file that is about history.
#[derive(Deserialize)]
struct HistoryFile {
    history: Option<HistoryForm>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum HistoryForm {
    Word(String),
    Term(serde_json::Map<String, serde_json::Value>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TermForm {
    days: Option<u32>,
    runs: Option<u32>,
    output: Option<String>,
    archive: Option<String>,
    #[serde(default)]
    projects: BTreeMap<String, RetentionForm>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RetentionForm {
    days: Option<u32>,
    runs: Option<u32>,
}

impl RetentionForm {
    fn over(&self, usual: Retention) -> Result<Retention, String> {
        let (days, runs) = (self.days.unwrap_or(usual.days), self.runs.unwrap_or(usual.runs));
        if !(1..=MOST_DAYS).contains(&days) {
            return Err(format!("\"days\" is {days}, expected 1 to {MOST_DAYS}"));
        }
        if runs > MOST_RUNS {
            return Err(format!("\"runs\" is {runs}, expected 0 to {MOST_RUNS}"));
        }
        Ok(Retention { days, runs })
    }
}

impl HistorySettings {
    /// Parses the text of the file that a server is started with; its other parts are ignored.
    ///
    /// # Errors
    /// The mistake, and what was expected.
    pub fn parse(text: &str) -> Result<HistorySettings, String> {
        HistorySettings::find(text).map(Option::unwrap_or_default)
    }

    /// The same; none where the text does not say how long history is kept.
    ///
    /// # Errors
    /// The mistake, and what was expected.
    pub fn find(text: &str) -> Result<Option<HistorySettings>, String> {
        read(text).map_err(|why| format!("\"history\": {why}; expected {FORM}"))
    }

    /// The terms; none if everything is kept.
    #[must_use]
    pub fn term(&self) -> Option<&Term> {
        match self {
            HistorySettings::All => None,
            HistorySettings::Bounded(term) => Some(term),
        }
    }
}

fn read(text: &str) -> Result<Option<HistorySettings>, String> {
    let file: HistoryFile = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let form = match file.history {
        None => return Ok(None),
        Some(HistoryForm::Word(word)) if word == "all" => return Ok(Some(HistorySettings::All)),
        Some(HistoryForm::Word(word)) => return Err(format!("\"{word}\" is unknown")),
        Some(HistoryForm::Term(form)) => form,
    };
    let form: TermForm = serde_json::from_value(form.into()).map_err(|error| error.to_string())?;
    let standard = Term::default();
    let usual = RetentionForm { days: form.days, runs: form.runs }.over(standard.usual)?;
    let mut projects = BTreeMap::new();
    for (name, own) in form.projects {
        let own = own.over(usual).map_err(|why| format!("project \"{name}\": {why}"))?;
        projects.insert(name, own);
    }
    let output = form.output.map_or(Ok(standard.output), |text| read_size(&text))?;
    Ok(Some(HistorySettings::Bounded(Term { usual, projects, output, archive: form.archive })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_from_the_file_and_the_rest_is_usual() {
        assert_eq!(HistorySettings::parse(r#"{"groups": []}"#), Ok(HistorySettings::default()));
        assert_eq!(HistorySettings::find(r#"{"groups": []}"#), Ok(None));
        assert_eq!(HistorySettings::find(r#"{"history": {}}"#), Ok(Some(HistorySettings::default())));
        assert_eq!(HistorySettings::parse(r#"{"history": {}}"#), Ok(HistorySettings::default()));
        assert_eq!(HistorySettings::parse(r#"{"history": "all"}"#), Ok(HistorySettings::All));
        let text = r#"{"history": {"days": 30, "output": "2 TB", "projects": {"warehouse": {"days": 365}, "tmp": {"runs": 0}}}}"#;
        let settings = HistorySettings::parse(text).unwrap();
        let term = settings.term().unwrap();
        assert_eq!(term.of("warehouse"), Retention { days: 365, runs: 100 });
        assert_eq!(term.of("tmp"), Retention { days: 30, runs: 0 });
        assert_eq!((term.of("other").days, term.output), (30, 2_000_000_000_000));
        assert_eq!(term.words(), "30 days, the newest 100 runs of each workflow, and at most 2 TB in all");
    }

    #[test]
    fn a_mistake_is_told_with_what_was_expected() {
        for (text, why) in [
            (r#"{"history": {"day": 90}}"#, "unknown field `day`"),
            (r#"{"history": {"days": 0}}"#, "\"days\" is 0, expected 1 to 36500"),
            (r#"{"history": {"runs": 20000}}"#, "\"runs\" is 20000, expected 0 to 10000"),
            (r#"{"history": {"output": "10"}}"#, "\"10\" is no size"),
            (r#"{"history": {"projects": {"a": {"output": "1 GB"}}}}"#, "unknown field `output`"),
            (r#"{"history": {"projects": {"a": {"days": 0}}}}"#, "project \"a\": \"days\" is 0"),
            (r#"{"history": "none"}"#, "\"none\" is unknown"),
            (r#"{"history": false}"#, "did not match any variant"),
        ] {
            let told = HistorySettings::parse(text).unwrap_err();
            assert!(told.starts_with("\"history\": ") && told.contains(why) && told.ends_with(FORM), "{told}");
        }
    }
}
