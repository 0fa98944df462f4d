//! The sources of secrets and the users of the system that the operator of a server, or of a worker, lets projects use.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::declared::{SecretSource, is_plain_path};

/// The form that messages about mistakes show.
pub const ALLOW_FORM: &str = "{\"secrets\": {\"PROJECT\": [\"env:KELOS_SECRET_*\", \"file:/run/secrets/db\"]}, \"runAs\": {\"PROJECT\": [\"USER\"]}}";

/// The secrets that every project may use where the operator says nothing.
pub const DEFAULT_SECRETS: &str = "env:KELOS_SECRET_*";

/// The name that stands for every project; for users, for every project that is not named.
const ALL: &str = "*";

/// The sources of secrets and the users of the system that projects may use.
///
/// Without a list of secrets every project may use [`DEFAULT_SECRETS`], and with one exactly what it says. A project with a
/// list of users runs its commands as one of them, and never as the server's own user unless that is listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowList {
    secrets: Option<BTreeMap<String, Vec<SourcePattern>>>,
    run_as: BTreeMap<String, Vec<String>>,
}

/// A source of secrets, or all sources that begin so.
#[derive(Clone, Debug, PartialEq, Eq)]
enum SourcePattern {
    One(SecretSource),
    EnvFrom(String),
    FileFrom(String),
}

/// The parts of a server's file that are read here.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct File {
    secrets: Option<BTreeMap<String, Vec<String>>>,
    #[serde(default)]
    run_as: BTreeMap<String, Vec<String>>,
}

impl SourcePattern {
    fn parse(text: &str) -> Result<SourcePattern, String> {
        let Some(begin) = text.strip_suffix('*') else { return SecretSource::parse(text).map(SourcePattern::One) };
        match begin.split_once(':') {
            Some(("env", name)) if name.is_empty() || SecretSource::parse(begin).is_ok() => {
                Ok(SourcePattern::EnvFrom(name.to_owned()))
            }
            // The beginning ends with a folder, or with a part of a name.
            Some(("file", path)) if is_plain_path(path.strip_suffix('/').unwrap_or(path)) => {
                Ok(SourcePattern::FileFrom(path.to_owned()))
            }
            Some(("exec", _)) => Err("a command is allowed as a whole, without *".to_owned()),
            _ => Err("expected * only at the end of the name of a variable or of an absolute path".to_owned()),
        }
    }

    fn holds(&self, source: &SecretSource) -> bool {
        match (self, source) {
            (SourcePattern::One(one), source) => one == source,
            (SourcePattern::EnvFrom(begin), SecretSource::Env(name)) => name.starts_with(begin.as_str()),
            (SourcePattern::FileFrom(begin), SecretSource::File(path)) => path.starts_with(begin.as_str()),
            _ => false,
        }
    }
}

impl AllowList {
    /// Reads the text of the file that a server or a worker is started with; its other parts are ignored.
    ///
    /// # Errors
    /// The mistake, and what was expected.
    pub fn parse(text: &str) -> Result<AllowList, String> {
        let File { secrets, run_as } =
            serde_json::from_str(text).map_err(|error| format!("{error}; expected {ALLOW_FORM}"))?;
        let patterns = |(project, list): (String, Vec<String>)| {
            let read = list.iter().map(|text| {
                SourcePattern::parse(text).map_err(|why| format!("\"{text}\" in the secrets of \"{project}\": {why}"))
            });
            Ok::<_, String>((project.clone(), read.collect::<Result<Vec<_>, _>>()?))
        };
        let secrets = secrets.map(|all| all.into_iter().map(patterns).collect()).transpose()?;
        for (project, users) in &run_as {
            if users.is_empty() {
                return Err(format!("runAs of \"{project}\" lists nobody: expected the names of users of the system"));
            }
            if let Some(user) = users.iter().find(|user| !is_user(user)) {
                return Err(format!(
                    "runAs of \"{project}\" lists \"{user}\": expected the name of a user of the system, such as \"etl\""
                ));
            }
        }
        Ok(AllowList { secrets, run_as })
    }

    /// Whether a project may use a source.
    ///
    /// # Errors
    /// When it may not: the reason, and what the operator can do.
    pub fn secret(&self, project: &str, source: &SecretSource) -> Result<(), String> {
        let is_allowed = match &self.secrets {
            None => matches!(source, SecretSource::Env(name) if name.starts_with(super::SECRET_VARIABLES)),
            Some(all) => [ALL, project].iter().filter_map(|name| all.get(*name)).flatten().any(|one| one.holds(source)),
        };
        if is_allowed {
            return Ok(());
        }
        let usual = match (&self.secrets, source) {
            (None, SecretSource::Env(_)) => format!("name the variable {}…, or have", super::SECRET_VARIABLES),
            _ => "have".to_owned(),
        };
        Err(format!(
            "the secret {source} is not allowed for the project \"{project}\": {usual} the operator allow it in the file of \
             --config, as in {{\"secrets\": {{\"{project}\": [\"{source}\"]}}}}"
        ))
    }

    /// The user whose rights the commands of a project get; none for the server's own. `asked` is the user that the job names.
    ///
    /// # Errors
    /// When the operator did not allow it: the reason, and what the operator can do.
    pub fn user<'a>(&'a self, project: &str, asked: Option<&'a str>) -> Result<Option<&'a str>, String> {
        let listed = self.run_as.get(project).or_else(|| self.run_as.get(ALL));
        match (asked, listed) {
            (None, None) => Ok(None),
            (None, Some(users)) => Ok(users.first().map(String::as_str)),
            (Some(user), Some(users)) if users.iter().any(|one| one == user) => Ok(Some(user)),
            (Some(user), listed) => {
                let may = listed.map(|users| format!("; it may run as {}", users.join(", "))).unwrap_or_default();
                Err(format!(
                    "the project \"{project}\" may not run commands as the user \"{user}\"{may}: the operator allows it in the \
                     file of --config, as in {{\"runAs\": {{\"{project}\": [\"{user}\"]}}}}"
                ))
            }
        }
    }

    /// The projects that it names.
    pub fn projects(&self) -> impl Iterator<Item = &str> {
        let all = self.secrets.iter().flat_map(BTreeMap::keys).chain(self.run_as.keys());
        all.map(String::as_str).filter(|name| *name != ALL)
    }
}

/// Whether a text can be the name of a user of the system.
fn is_user(name: &str) -> bool {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || "_-.".contains(letter);
    !name.is_empty() && name.len() <= 64 && name.chars().all(is_part) && !name.starts_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> AllowList {
        AllowList::parse(text).unwrap()
    }

    fn may(list: &AllowList, project: &str, source: &str) -> bool {
        list.secret(project, &SecretSource::parse(source).unwrap()).is_ok()
    }

    #[test]
    fn without_a_list_only_variables_for_secrets_are_allowed() {
        let usual = list("{}");
        assert!(may(&usual, "a", "env:KELOS_SECRET_DB"));
        for source in ["env:HOME", "file:/etc/shadow", "exec:id", "env:KELOS_SECRE"] {
            assert!(!may(&usual, "a", source), "{source}");
        }
        let told = usual.secret("a", &SecretSource::parse("env:DB").unwrap()).unwrap_err();
        assert_eq!(
            told,
            "the secret env:DB is not allowed for the project \"a\": name the variable KELOS_SECRET_…, or have the operator allow \
             it in the file of --config, as in {\"secrets\": {\"a\": [\"env:DB\"]}}"
        );
    }

    #[test]
    fn with_a_list_exactly_what_it_says_is_allowed() {
        let given = list(
            r#"{"secrets": {"*": ["env:SHARED"], "a": ["env:A_*", "file:/run/secrets/a/*", "exec:pass show a"]}, "groups": 1}"#,
        );
        for source in ["env:SHARED", "env:A_X", "file:/run/secrets/a/db", "exec:pass show a"] {
            assert!(may(&given, "a", source), "{source}");
        }
        for source in ["env:KELOS_SECRET_DB", "file:/run/secrets/ab", "exec:pass show a; id", "exec:pass show"] {
            assert!(!may(&given, "a", source), "{source}");
        }
        assert!(may(&given, "b", "env:SHARED") && !may(&given, "b", "env:A_X"));
        assert!(!may(&list(r#"{"secrets": {}}"#), "a", "env:KELOS_SECRET_DB"));
    }

    #[test]
    fn a_project_with_users_runs_as_one_of_them() {
        let given = list(r#"{"runAs": {"a": ["etl", "web"]}}"#);
        assert_eq!(given.user("a", None), Ok(Some("etl")), "it can't leave its user out to get the server's rights");
        assert_eq!(given.user("a", Some("web")), Ok(Some("web")));
        assert_eq!(given.user("b", None), Ok(None));
        assert_eq!(
            given.user("a", Some("root")).unwrap_err(),
            "the project \"a\" may not run commands as the user \"root\"; it may run as etl, web: the operator allows it in the file of \
             --config, as in {\"runAs\": {\"a\": [\"root\"]}}"
        );
        assert!(given.user("b", Some("etl")).is_err());
        let all = list(r#"{"runAs": {"*": ["nobody"], "a": ["etl"]}}"#);
        assert_eq!(all.user("b", None), Ok(Some("nobody")));
        assert!(all.user("a", Some("nobody")).is_err(), "what is said of a project counts alone");
    }

    #[test]
    fn mistakes_say_what_was_expected() {
        let wrong = |text: &str| AllowList::parse(text).unwrap_err();
        assert_eq!(
            wrong(r#"{"secrets": {"a": ["exec:pass show *"]}}"#),
            "\"exec:pass show *\" in the secrets of \"a\": a command is allowed as a whole, without *"
        );
        assert_eq!(
            wrong(r#"{"secrets": {"a": ["*"]}}"#),
            "\"*\" in the secrets of \"a\": expected * only at the end of the name of a variable or of an absolute path"
        );
        assert!(wrong(r#"{"secrets": {"a": ["file:etc/*"]}}"#).contains("expected * only at the end"));
        assert_eq!(
            wrong(r#"{"runAs": {"a": []}}"#),
            "runAs of \"a\" lists nobody: expected the names of users of the system"
        );
        assert!(wrong(r#"{"runAs": {"a": ["x y"]}}"#).contains("expected the name of a user of the system"));
        assert!(wrong(r#"{"runAs": ["etl"]}"#).contains("; expected {\"secrets\""));
    }
}
