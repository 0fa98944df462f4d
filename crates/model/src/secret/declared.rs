//! A secret as definitions declare it: `{secret: "env:NAME"}`.

use std::fmt;

use serde_json::{Map, Value};

/// The field of a declaration that has the source.
const SECRET: &str = "secret";

/// The field of a declaration that has the text before the value.
const PREFIX: &str = "prefix";

/// The place of a secret, outside of all definitions.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SecretSource {
    /// A variable in the environment of the process that starts the run.
    Env(String),
    /// The content of a file, by its absolute path.
    File(String),
    /// The output of a command.
    Exec(String),
}

impl SecretSource {
    /// Reads `env:NAME`, `file:PATH` or `exec:COMMAND`.
    ///
    /// # Errors
    /// The mistake, and what was expected. The text is not repeated, because it may be a secret.
    pub fn parse(text: &str) -> Result<SecretSource, String> {
        if text.contains("${") || text.contains(['\0', '\n', '\r']) {
            return Err("the source of a secret has a placeholder or a line break, expected a fixed text such as \
                        \"env:KELOS_SECRET_DB\""
                .to_owned());
        }
        match text.split_once(':') {
            Some(("env", name)) if is_variable(name) => Ok(SecretSource::Env(name.to_owned())),
            Some(("env", _)) => Err("expected the name of a variable behind env:, such as \"env:KELOS_SECRET_DB\"".to_owned()),
            Some(("file", path)) if is_plain_path(path) => Ok(SecretSource::File(path.to_owned())),
            Some(("file", _)) => {
                Err("expected an absolute path without . and .. behind file:, such as \"file:/run/secrets/db\"".to_owned())
            }
            Some(("exec", command)) if !command.trim().is_empty() => Ok(SecretSource::Exec(command.trim().to_owned())),
            Some(("exec", _)) => Err("expected a command behind exec:, such as \"exec:pass show warehouse/db\"".to_owned()),
            _ => Err("expected the source of a secret, not the secret itself: \"env:NAME\", \"file:PATH\" or \"exec:COMMAND\""
                .to_owned()),
        }
    }
}

impl fmt::Display for SecretSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SecretSource::Env(name) => write!(f, "env:{name}"),
            SecretSource::File(path) => write!(f, "file:{path}"),
            SecretSource::Exec(command) => write!(f, "exec:{command}"),
        }
    }
}

fn is_variable(name: &str) -> bool {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    !name.is_empty() && name.chars().all(is_part) && !name.starts_with(|letter: char| letter.is_ascii_digit())
}

/// Whether a path is absolute, and has no parts that lead elsewhere than its text says.
pub(super) fn is_plain_path(path: &str) -> bool {
    let Some(rest) = path.strip_prefix('/') else { return false };
    !rest.is_empty() && rest.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

/// A secret in the settings of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeclaredSecret {
    /// Its place.
    pub source: SecretSource,
    /// The text before its value, such as `Bearer `.
    pub prefix: String,
}

impl DeclaredSecret {
    /// Reads `{secret: "env:NAME"}`, perhaps with a `prefix`; none where the value declares no secret. An object with other
    /// fields beside these, or whose `secret` is no text, is data.
    ///
    /// # Errors
    /// When the source makes no sense.
    pub fn of(value: &Value) -> Option<Result<DeclaredSecret, String>> {
        let fields = value.as_object()?;
        let source = fields.get(SECRET)?.as_str()?;
        if fields.keys().any(|name| name != SECRET && name != PREFIX) {
            return None;
        }
        let prefix = match fields.get(PREFIX) {
            None => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(_) => return Some(Err("the prefix of a secret must be a text, such as \"Bearer \"".to_owned())),
        };
        Some(SecretSource::parse(source).map(|source| DeclaredSecret { source, prefix }))
    }
}

/// The paths of all secrets that settings declare, such as `env.DB_PASSWORD`, each with what it declares.
#[must_use]
pub fn secret_paths(settings: &Map<String, Value>) -> Vec<(String, Result<DeclaredSecret, String>)> {
    let mut found = Vec::new();
    settings.iter().for_each(|(name, value)| collect(name, value, &mut found));
    found
}

fn collect(path: &str, value: &Value, found: &mut Vec<(String, Result<DeclaredSecret, String>)>) {
    if let Some(declared) = DeclaredSecret::of(value) {
        return found.push((path.to_owned(), declared));
    }
    match value {
        Value::Object(fields) => {
            fields.iter().for_each(|(name, value)| collect(&format!("{path}.{name}"), value, found));
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(n, item)| collect(&format!("{path}[{n}]"), item, found));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn sources_are_read_and_shown_alike() {
        for text in ["env:KELOS_SECRET_DB", "file:/run/secrets/db", "exec:pass show db"] {
            assert_eq!(SecretSource::parse(text).unwrap().to_string(), text);
        }
        for (text, expected) in [
            ("hunter2", "not the secret itself"),
            ("http://u:p@h", "not the secret itself"),
            ("env:", "the name of a variable"),
            ("env:A-B", "the name of a variable"),
            ("env:1A", "the name of a variable"),
            ("file:db", "an absolute path"),
            ("file:/run/secrets/../../etc/shadow", "without . and .."),
            ("file:/run//x", "without . and .."),
            ("exec: ", "a command"),
            ("env:KELOS_SECRET_${client}", "placeholder"),
        ] {
            let told = SecretSource::parse(text).unwrap_err();
            assert!(told.contains(expected) && !told.contains("hunter2"), "{text}: {told}");
        }
    }

    #[test]
    fn a_declaration_has_a_source_and_maybe_a_prefix_and_nothing_else() {
        let read = |value: Value| DeclaredSecret::of(&value);
        let declared = read(json!({"secret": "env:T", "prefix": "Bearer "})).unwrap().unwrap();
        assert_eq!((declared.source, &*declared.prefix), (SecretSource::Env("T".to_owned()), "Bearer "));
        assert!(read(json!({"secret": "hunter2"})).unwrap().is_err());
        assert!(read(json!({"secret": "env:T", "prefix": 1})).unwrap().is_err());
        for data in [json!({"secret": "env:T", "user": "u"}), json!({"secret": {"secret": "env:T"}}), json!("env:T")] {
            assert!(read(data).is_none());
        }
    }

    #[test]
    fn all_secrets_of_settings_are_found_where_they_stand() {
        let settings = json!({
            "env": {"A": {"secret": "env:A"}, "B": "b"}, "body": {"list": [1, {"secret": {"secret": "file:/x"}}]},
        });
        let found: Vec<String> =
            secret_paths(settings.as_object().unwrap()).into_iter().map(|(path, _)| path).collect();
        assert_eq!(found, ["env.A", "body.list[1].secret"]);
    }
}
