//! The settings that a description of apps leaves out: the usual template, and the kinds of identifiers.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use kelos_model::function::FunctionRef;
use kelos_model::jobs::{JobTemplate, Kind, Pattern, TemplateError};
use kelos_model::json::without_mark;
use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// The settings that all apps of a file share.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The template of job ids where an app has none of its own.
    pub template: Option<JobTemplate>,
    /// The kind of each identifier; one without a kind may be any text.
    pub identifiers: BTreeMap<Arc<str>, Kind>,
    /// The folder whose subfolder `plugins` holds more kinds of jobs; none if it isn't known.
    pub folder: Option<PathBuf>,
    /// Functions of a script that know identifiers.
    pub checks: BTreeMap<Arc<str>, FunctionRef>,
    /// Whether it is a script that describes the apps: it can say more.
    pub of_a_script: bool,
}

/// An error in settings. Messages complete "failed to …".
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// The usual template is none.
    #[error("read the default template of job ids: {0}")]
    Template(#[from] TemplateError),
    /// The kinds of identifiers are not understood.
    #[error(
        "read the kinds of identifiers: {0}; expected such as {{\"date\": \"date\", \"client_id\": \"integer\", \"target\": [\"a\", \"b\"]}}"
    )]
    Identifiers(#[from] serde_json::Error),
}

/// A kind as people write it.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "expected \"text\", \"integer\", \"date\", \"yyyy-mm-dd\", a list of choices, or an object with \"kind\""
)]
enum KindForm {
    Named(KindName),
    Choice(Vec<Arc<str>>),
    Pattern { pattern: Pattern },
    Whole(Kind),
}

#[derive(Deserialize)]
enum KindName {
    #[serde(rename = "text")]
    Text,
    #[serde(rename = "integer")]
    Integer,
    #[serde(rename = "date", alias = "yyyymmdd")]
    Date,
    #[serde(rename = "yyyy-mm-dd")]
    Dashed,
}

impl KindForm {
    /// Whether no text is of the kind.
    fn is_impossible(&self) -> bool {
        match self {
            KindForm::Choice(of) | KindForm::Whole(Kind::Choice { of }) => of.is_empty(),
            _ => false,
        }
    }

    fn kind(self) -> Kind {
        use kelos_model::jobs::DateForm::{Compact, Dashed};
        match self {
            KindForm::Named(KindName::Text) => Kind::Text,
            KindForm::Named(KindName::Integer) => Kind::Integer { min: None, max: None },
            KindForm::Named(KindName::Date) => Kind::Date { form: Compact },
            KindForm::Named(KindName::Dashed) => Kind::Date { form: Dashed },
            KindForm::Choice(of) => Kind::Choice { of },
            KindForm::Pattern { pattern } => Kind::Pattern { pattern },
            KindForm::Whole(kind) => kind,
        }
    }
}

impl Settings {
    /// Reads settings from a template and the text of a JSON file that defines kinds of identifiers.
    ///
    /// # Errors
    /// If either of them can't be parsed.
    pub fn new(template: Option<&str>, identifiers: Option<&str>) -> Result<Settings, SettingsError> {
        let template = template.map(JobTemplate::new).transpose()?;
        let written: IdentifiersFile =
            identifiers.map_or(Ok(IdentifiersFile::default()), |text| serde_json::from_str(without_mark(text)))?;
        let identifiers = written.0.into_iter().map(|(name, kind)| (name, kind.kind())).collect();
        Ok(Settings { template, identifiers, folder: None, checks: BTreeMap::new(), of_a_script: false })
    }

    /// The same, for apps that a script describes: what identifiers are, and functions that know it.
    pub(crate) fn of_script(template: Option<&str>, [kinds, checks]: [&str; 2]) -> Result<Settings, SettingsError> {
        let checks = serde_json::from_str(checks)?;
        Ok(Settings { checks, of_a_script: true, ..Settings::new(template, Some(kinds))? })
    }
}

/// The key of a JSON file under which editors find the schema to check it by. It is part of no file's content.
pub const SCHEMA: &str = "$schema";

/// Identifiers by name, as `identifiers.json` has them.
#[derive(Default)]
struct IdentifiersFile(BTreeMap<Arc<str>, KindForm>);

impl<'de> Deserialize<'de> for IdentifiersFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Identifiers;

        impl<'de> Visitor<'de> for Identifiers {
            type Value = IdentifiersFile;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of identifiers by name")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<IdentifiersFile, A::Error> {
                let mut found = IdentifiersFile::default();
                while let Some(name) = map.next_key::<Arc<str>>()? {
                    match &*name {
                        SCHEMA => drop(map.next_value::<String>()?),
                        _ => {
                            let kind: KindForm = map.next_value()?;
                            if kind.is_impossible() {
                                let why = format!("{name} is an empty list of choices, which no job id fits");
                                return Err(A::Error::custom(why));
                            }
                            found.0.insert(name, kind);
                        }
                    }
                }
                Ok(found)
            }
        }

        deserializer.deserialize_map(Identifiers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_written_shortly_or_whole() {
        let text = r#"{"date": "date", "day": "yyyy-mm-dd", "client": "integer", "free": "text", "target": ["a", "b"],
                       "name": {"pattern": "^x"}, "n": {"kind": "integer", "min": 1}}"#;
        let settings = Settings::new(Some("{date}_{client}"), Some(text)).unwrap();
        assert_eq!(settings.identifiers.len(), 7);
        assert_eq!(settings.identifiers["n"], Kind::Integer { min: Some(1), max: None });
        assert_eq!(settings.identifiers["target"], Kind::Choice { of: vec!["a".into(), "b".into()] });
        let checked = Settings::new(None, Some(r#"{"$schema": "./identifiers.schema.json", "n": "integer"}"#)).unwrap();
        assert_eq!(
            checked.identifiers.keys().map(|name| &**name).collect::<Vec<_>>(),
            ["n"],
            "the schema is for editors"
        );
        let error = |template, text| Settings::new(template, text).unwrap_err().to_string();
        assert!(error(None, Some(r#"{"date": "day"}"#)).contains("expected \"text\", \"integer\""));
        assert!(error(None, Some(r#"{"job_id": []}"#)).contains("job_id is an empty list of choices"));
        assert!(
            error(Some("{date"), None).starts_with("read the default template of job ids: \"{date\" is no template")
        );
    }
}
