//! The target file: the folders of a server's scripts, and the configuration of its HDFS.

use kelos_sandbox::closest;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value};

use super::DeployError;

const HDFS_SITE: &str = "hadoop.hdfs-site.xml";
const CORE_SITE: &str = "hadoop.core-site.xml";
const WORKFLOWS: &str = "workflows.dir.uri";
const DEFAULTS: &str = "defaults.dir.uri";
/// The required keys.
const KEYS: [&str; 4] = [HDFS_SITE, CORE_SITE, WORKFLOWS, DEFAULTS];
/// A key that only Celos's tests use.
const UNUSED: &str = "hive.jdbc.url";

/// Characters that are not encoded in the user of a URI.
const IN_USER: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.');

/// A parsed target file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetFile {
    /// The place of the file.
    pub place: String,
    /// URI of the folder of workflows.
    pub workflows: String,
    /// URI of the folder of defaults.
    pub defaults: String,
    /// URI of `hdfs-site.xml`.
    pub hdfs_site: String,
    /// URI of `core-site.xml`.
    pub core_site: String,
    /// Notes on harmless mistakes.
    pub notes: Vec<String>,
}

impl TargetFile {
    /// Reads the text of a target file; `user` replaces the users in its `sftp:` URLs.
    ///
    /// # Errors
    /// If it is not JSON, lacks a key, or has other URLs than `file:` and `sftp:`.
    pub fn parse(place: &str, text: &str, user: Option<&str>) -> Result<TargetFile, DeployError> {
        let mut notes = Vec::new();
        let fail = |reason: String| DeployError::Target { place: place.to_owned(), reason };
        let keys = object(text, &mut notes).map_err(fail)?;
        require(&keys).map_err(fail)?;
        for key in keys.keys().filter(|key| !KEYS.contains(&key.as_str()) && *key != UNUSED) {
            notes.push(format!("the target file has \"{key}\", which means nothing here"));
        }
        let url = |key: &str| url(key, &keys[key], user).map_err(fail);
        Ok(TargetFile {
            place: place.to_owned(),
            workflows: url(WORKFLOWS)?,
            defaults: url(DEFAULTS)?,
            hdfs_site: url(HDFS_SITE)?,
            core_site: url(CORE_SITE)?,
            notes,
        })
    }
}

fn object(text: &str, notes: &mut Vec<String>) -> Result<Map<String, Value>, String> {
    let text = text.trim_start_matches('\u{feff}');
    let parsed = serde_json::from_str(text).or_else(|error| {
        let repaired = serde_json::from_str(&without_trailing_commas(text)).map_err(|_| error);
        notes.extend(repaired.is_ok().then(|| "the target file has a comma before a bracket, which is no JSON".into()));
        repaired
    });
    match parsed {
        Ok(Value::Object(keys)) => Ok(keys),
        Ok(_) => Err(format!("expected a JSON object with {}", quoted(&KEYS))),
        Err(error) => Err(format!("it is not JSON: {error}")),
    }
}

/// The example that many users of Celos have copied ends with a comma.
fn without_trailing_commas(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let (mut quoted, mut escaped) = (false, false);
    for (at, c) in text.char_indices() {
        let trails = !quoted && c == ',' && text[at + 1..].trim_start().starts_with(['}', ']']);
        kept.push(if trails { ' ' } else { c });
        quoted ^= c == '"' && !escaped;
        escaped = quoted && c == '\\' && !escaped;
    }
    kept
}

fn require(keys: &Map<String, Value>) -> Result<(), String> {
    let missing: Vec<&str> = KEYS.into_iter().filter(|key| !keys.contains_key(*key)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let meant = |key: &String| {
        let close = closest(key, missing.iter().copied())?;
        (!KEYS.contains(&key.as_str())).then(|| format!("; it has \"{key}\", did you mean \"{close}\"?"))
    };
    let meant: String = keys.keys().filter_map(meant).collect();
    let verb = if missing.len() == 1 { "is" } else { "are" };
    Err(format!("{} {verb} missing{meant}", quoted(&missing)))
}

fn quoted(names: &[&str]) -> String {
    names.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ")
}

fn url(key: &str, value: &Value, user: Option<&str>) -> Result<String, String> {
    match value.as_str() {
        Some(url) if url.starts_with("file:/") => Ok(url.to_owned()),
        Some(url) if url.starts_with("sftp://") => Ok(user.map_or(url.to_owned(), |user| with_user(url, user, true))),
        Some(path) if path.starts_with('/') => {
            Err(format!("\"{key}\" must be a file: or sftp: URL, not \"{path}\"; did you mean \"file://{path}\"?"))
        }
        _ => Err(format!("\"{key}\" must be a file: or sftp: URL, such as \"file:///etc/celos\", not {value}")),
    }
}

/// The URL with a user, if it is one of `sftp:`; its own user is kept, unless it is to be replaced.
#[must_use]
pub fn with_user(url: &str, user: &str, replace: bool) -> String {
    let Some(rest) = url.strip_prefix("sftp://") else { return url.to_owned() };
    let end = rest.find('/').unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let host = match authority.rsplit_once('@') {
        Some((_, host)) if replace => host,
        Some(_) => return url.to_owned(),
        None => authority,
    };
    format!("sftp://{}@{host}{path}", utf8_percent_encode(user, IN_USER))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> String {
        TargetFile::parse("t.json", text, None).unwrap_err().to_string()
    }

    const GOOD: &str = r#"{
        "hadoop.hdfs-site.xml": "sftp://h.example/etc/hadoop/conf/hdfs-site.xml",
        "hadoop.core-site.xml": "file:///etc/hadoop/conf/core-site.xml",
        "defaults.dir.uri": "sftp://ann@h.example:2222/etc/celos/defaults",
        "workflows.dir.uri": "sftp://h.example/etc/celos/workflows",
    }"#;

    #[test]
    fn the_documented_example_is_read_with_its_comma() {
        let target = TargetFile::parse("t.json", GOOD, None).unwrap();
        assert_eq!(target.workflows, "sftp://h.example/etc/celos/workflows");
        assert_eq!(target.notes, ["the target file has a comma before a bracket, which is no JSON"]);
        let strict = GOOD.replace("workflows\",", "workflows\"");
        assert_eq!(TargetFile::parse("t.json", &strict, None).unwrap().notes, Vec::<String>::new());
    }

    #[test]
    fn a_user_of_the_environment_replaces_those_of_the_file() {
        let target = TargetFile::parse("t.json", GOOD, Some("b o")).unwrap();
        assert_eq!(target.workflows, "sftp://b%20o@h.example/etc/celos/workflows");
        assert_eq!(target.defaults, "sftp://b%20o@h.example:2222/etc/celos/defaults");
        assert_eq!(target.core_site, "file:///etc/hadoop/conf/core-site.xml");
        assert_eq!(with_user("sftp://ann@h/p", "bob", false), "sftp://ann@h/p");
    }

    #[test]
    fn what_is_wrong_is_named() {
        assert_eq!(
            told(r#"{"defaults.dir.uri": "file:///d", "hadoop.core-site.xml": "file:///c", "workflow.dir.uri": "x"}"#),
            "read the target file t.json: \"hadoop.hdfs-site.xml\", \"workflows.dir.uri\" are missing; it has \
             \"workflow.dir.uri\", did you mean \"workflows.dir.uri\"?"
        );
        assert_eq!(
            told("[]"),
            "read the target file t.json: expected a JSON object with \"hadoop.hdfs-site.xml\", \
             \"hadoop.core-site.xml\", \"workflows.dir.uri\", \"defaults.dir.uri\""
        );
        assert!(told("{").starts_with("read the target file t.json: it is not JSON: EOF"));
        assert_eq!(
            told(&GOOD.replace("file:///etc/hadoop/conf/core-site.xml", "/etc/core-site.xml")),
            "read the target file t.json: \"hadoop.core-site.xml\" must be a file: or sftp: URL, not \
             \"/etc/core-site.xml\"; did you mean \"file:///etc/core-site.xml\"?"
        );
        assert_eq!(
            told(&GOOD.replace("\"file:///etc/hadoop/conf/core-site.xml\"", "7")),
            "read the target file t.json: \"hadoop.core-site.xml\" must be a file: or sftp: URL, such as \
             \"file:///etc/celos\", not 7"
        );
    }

    #[test]
    fn other_keys_are_told_and_no_error() {
        let more = GOOD.replacen('{', r#"{"hive.jdbc.url": "jdbc:hive", "colour": "red", "#, 1);
        let notes = TargetFile::parse("t.json", &more, None).unwrap().notes;
        assert_eq!(notes[1], "the target file has \"colour\", which means nothing here");
        assert_eq!(notes.len(), 2);
    }

    #[test]
    fn commas_in_texts_stay() {
        assert_eq!(without_trailing_commas(r#"{"a,}": "\",]", }"#), r#"{"a,}": "\",]"  }"#);
    }
}
