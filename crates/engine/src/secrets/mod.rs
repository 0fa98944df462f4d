//! Secrets at the start of a run: their values are read where the run starts, handed to its job, and hidden in what comes back.
//!
//! A value is in memory only. Absent: the sources that definitions name and the rules of who may use them, which are in the
//! model ([`kelos_model::secret`]).

mod mask;
mod read;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use kelos_model::secret::{AllowList, DeclaredSecret, SecretSource};
use kelos_model::{FailureCode, Outcome};
use serde_json::{Map, Value};

pub use mask::{Mask, MaskStream};
pub use read::{LARGEST_SECRET, SHORTEST_SECRET, read_secret};

/// The reason for which a job can't be given a secret. Messages contain its source and never its value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    /// The operator does not allow it, or it makes no sense: waiting solves nothing.
    #[error("{0}")]
    Refused(String),
    /// Its value can't be read now.
    #[error("failed to read the secret {source_name}: {why}")]
    Unread {
        /// Its source.
        source_name: String,
        /// The reason.
        why: String,
    },
}

impl SecretError {
    /// The end of the run whose job lacks a secret.
    #[must_use]
    pub fn outcome(self) -> Outcome {
        match self {
            SecretError::Refused(reason) => Outcome::refused(reason),
            error @ SecretError::Unread { .. } => {
                Outcome::Failed { reason: error.to_string(), exit_status: None, code: Some(FailureCode::SECRET_UNREAD) }
            }
        }
    }
}

/// The secrets that the jobs of a process may be given, and the users as whom they may run. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Secrets {
    allowed: Arc<AllowList>,
    /// Whether a stand-in takes the place of each value.
    rehearses: bool,
}

/// Settings of a job with the values of their secrets.
#[derive(Clone, Default)]
pub struct FilledSettings {
    /// The settings, with a text in the place of each declaration.
    pub settings: Map<String, Value>,
    /// The values, for masks.
    pub values: Vec<String>,
}

/// Shows that there are values, and none of them.
impl fmt::Debug for FilledSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FilledSettings").field("secrets", &self.values.len()).finish_non_exhaustive()
    }
}

impl FilledSettings {
    /// The mask of its values.
    #[must_use]
    pub fn mask(&self) -> Mask {
        Mask::of(&self.values)
    }
}

impl Secrets {
    /// Those that an operator allows.
    #[must_use]
    pub fn new(allowed: AllowList) -> Secrets {
        Secrets { allowed: Arc::new(allowed), rehearses: false }
    }

    /// Those of a rehearsal: nothing is read, and a stand-in takes the place of each value.
    #[must_use]
    pub fn of_rehearsal() -> Secrets {
        Secrets { rehearses: true, ..Secrets::default() }
    }

    /// The list of the operator.
    #[must_use]
    pub fn allowed(&self) -> &AllowList {
        &self.allowed
    }

    /// The user of the system as whom the commands of a project run; none for the user of this process, as which those of a
    /// rehearsal run.
    ///
    /// # Errors
    /// When the operator does not allow the one that the job asks for.
    pub fn user(&self, project: &str, asked: Option<&str>) -> Result<Option<String>, String> {
        match self.rehearses {
            true => Ok(None),
            false => Ok(self.allowed.user(project, asked)?.map(str::to_owned)),
        }
    }

    /// Reads the secrets that a job of a project declares in its settings.
    ///
    /// # Errors
    /// When the operator does not allow one, or one can't be read.
    pub async fn fill(&self, project: &str, settings: &Map<String, Value>) -> Result<FilledSettings, SecretError> {
        let mut sources = BTreeMap::new();
        for (path, declared) in kelos_model::secret::secret_paths(settings) {
            let DeclaredSecret { source, .. } =
                declared.map_err(|why| SecretError::Refused(format!("`{path}`: {why}")))?;
            if !self.rehearses {
                self.allowed.secret(project, &source).map_err(SecretError::Refused)?;
            }
            sources.entry(source.to_string()).or_insert(source);
        }
        let mut values = BTreeMap::new();
        for (name, source) in sources {
            let value =
                self.read(source).await.map_err(|why| SecretError::Unread { source_name: name.clone(), why })?;
            values.insert(name, value);
        }
        let settings = settings.iter().map(|(name, value)| (name.clone(), filled(value, &values))).collect();
        Ok(FilledSettings { settings, values: values.into_values().collect() })
    }

    async fn read(&self, source: SecretSource) -> Result<String, String> {
        if self.rehearses {
            return Ok(format!("stand-in for {source}"));
        }
        tokio::task::spawn_blocking(move || read_secret(&source)).await.unwrap_or_else(|error| Err(error.to_string()))
    }
}

/// A value with what it declares filled in.
fn filled(value: &Value, values: &BTreeMap<String, String>) -> Value {
    if let Some(Ok(DeclaredSecret { source, prefix })) = DeclaredSecret::of(value) {
        let value = values.get(&source.to_string()).map(String::as_str).unwrap_or_default();
        return Value::String(format!("{prefix}{value}"));
    }
    match value {
        Value::Object(fields) => {
            Value::Object(fields.iter().map(|(name, value)| (name.clone(), filled(value, values))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(|item| filled(item, values)).collect()),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn settings(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[tokio::test]
    async fn values_take_the_place_of_what_is_declared() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        std::fs::write(&path, "t0psecret\n").unwrap();
        let source = format!("file:{}", path.display());
        let allowed = AllowList::parse(&json!({"secrets": {"p": [source]}}).to_string()).unwrap();
        let secrets = Secrets::new(allowed);
        let given = settings(json!({
            "headers": {"A": {"secret": source, "prefix": "Bearer "}}, "body": [{"secret": {"secret": source}}, 1],
        }));
        let filled = secrets.fill("p", &given).await.unwrap();
        assert_eq!(
            Value::Object(filled.settings.clone()),
            json!({"headers": {"A": "Bearer t0psecret"}, "body": [{"secret": "t0psecret"}, 1]})
        );
        assert_eq!(filled.mask().text("it was t0psecret"), "it was ••••••");
        assert!(!format!("{filled:?}").contains("t0psecret"));
        let refused = secrets.fill("q", &given).await.unwrap_err();
        assert!(matches!(&refused, SecretError::Refused(why) if why.contains("not allowed for the project \"q\"")));
        std::fs::remove_file(path).unwrap();
        let unread = secrets.fill("p", &given).await.unwrap_err();
        assert!(unread.to_string().starts_with(&format!("failed to read the secret {source}: ")), "{unread}");
        let Outcome::Failed { code, .. } = unread.outcome() else { panic!("it may be tried again") };
        assert_eq!(code, Some(FailureCode::SECRET_UNREAD));
    }

    #[tokio::test]
    async fn a_rehearsal_reads_nothing() {
        let given = settings(json!({"env": {"A": {"secret": "file:/nowhere"}}}));
        let filled = Secrets::of_rehearsal().fill("p", &given).await.unwrap();
        assert_eq!(filled.settings["env"]["A"], "stand-in for file:/nowhere");
    }
}
