//! The part of a server's file that is about checkpoints.

use std::path::PathBuf;
use std::time::Duration;

use jiff::SignedDuration;
use serde::Deserialize;

use crate::checkpoint::named;
use crate::target::Target;

/// The usual time between two checkpoints.
const EVERY: Duration = Duration::from_secs(3600);
/// The shortest and the longest time between two.
const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(7 * 24 * 3600);
/// The most places to which they are sent.
const MOST_TARGETS: usize = 16;

/// When checkpoints are made, and where they go besides the server's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The time between two checkpoints while turns happen.
    pub(crate) every: Duration,
    /// The places to which they are sent.
    pub(crate) to: Vec<Target>,
    /// The file of the private key, if it is not in the folder of state.
    pub(crate) key: Option<PathBuf>,
    /// The name of the instance; that of the machine by default.
    pub(crate) instance: Option<String>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { every: EVERY, to: Vec::new(), key: None, instance: None }
    }
}

/// The file.
#[derive(Deserialize)]
struct File {
    checkpoints: Option<Part>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Part {
    every: Option<String>,
    #[serde(default)]
    to: Vec<String>,
    key: Option<PathBuf>,
    instance: Option<String>,
}

impl Settings {
    /// Parses the text of the file that a server is started with; its other parts are ignored. A relative path of a key begins at the
    /// working directory.
    ///
    /// # Errors
    /// The mistake, and what was expected.
    pub fn parse(text: &str) -> Result<Settings, String> {
        const FORM: &str =
            "{\"checkpoints\": {\"every\": \"1h\", \"to\": [\"s3://bucket/checkpoints\", \"https://host/hook\"]}}";
        let file: File = serde_json::from_str(text).map_err(|error| format!("{error}; expected {FORM}"))?;
        let Some(part) = file.checkpoints else { return Ok(Settings::default()) };
        let of = |why: String| format!("its checkpoints: {why}");
        if part.to.len() > MOST_TARGETS {
            return Err(of(format!("they go to {} places, expected at most {MOST_TARGETS}", part.to.len())));
        }
        let targets = part
            .to
            .iter()
            .map(|to| Target::read(to).map_err(|why| format!("`to` has \"{}\": {why}", Target::safe(to))));
        let to: Vec<Target> = targets.collect::<Result<_, _>>().map_err(of)?;
        if let Some((at, target)) =
            to.iter().enumerate().find(|(at, target)| to.iter().take(*at).any(|one| one == *target))
        {
            return Err(of(format!("`to` has \"{target}\" twice, the second time at place {}", at + 1)));
        }
        let key = part.key.map(std::path::absolute).transpose();
        Ok(Settings {
            every: part.every.as_deref().map_or(Ok(EVERY), every).map_err(of)?,
            to,
            key: key.map_err(|error| of(format!("`key` is no path: {error}")))?,
            instance: part
                .instance
                .map(|name| named(&name).map_err(|why| of(format!("`instance`: {why}"))))
                .transpose()?,
        })
    }
}

fn every(text: &str) -> Result<Duration, String> {
    let read = text.parse::<SignedDuration>().ok().and_then(|read| Duration::try_from(read).ok());
    let fits = read.filter(|every| (SHORTEST..=LONGEST).contains(every));
    fits.ok_or_else(|| format!("`every` is \"{text}\", expected a duration from 1s to 7d (168h), such as \"1h\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_says_when_and_where() {
        let text = r#"{"groups": [], "checkpoints": {"every": "15m", "to": ["/backup/checkpoints", "s3://b/c/", "https://a.example/hook?x=1"],
            "key": "/etc/kelos/checkpoint.key", "instance": "shop"}}"#;
        let settings = Settings::parse(text).unwrap();
        assert_eq!(settings.every, Duration::from_secs(900));
        let names: Vec<String> = settings.to.iter().map(ToString::to_string).collect();
        assert_eq!(names, ["/backup/checkpoints", "s3://b/c", "https://a.example/hook"]);
        assert_eq!(
            (settings.key, settings.instance),
            (Some("/etc/kelos/checkpoint.key".into()), Some("shop".to_owned()))
        );
        assert_eq!(Settings::parse("{}"), Ok(Settings::default()));
    }

    #[test]
    fn mistakes_say_what_was_expected() {
        for (part, words) in [
            (
                r#"{"every": "0s"}"#,
                "its checkpoints: `every` is \"0s\", expected a duration from 1s to 7d (168h), such as \"1h\"",
            ),
            (
                r#"{"to": ["backup"]}"#,
                "its checkpoints: `to` has \"backup\": expected a URI of a folder such as s3://bucket/folder, an absolute path, or the https: address of a webhook",
            ),
            (
                r#"{"to": ["https://me:secret@host/"]}"#,
                "its checkpoints: `to` has \"https://host/\": a name or password does not belong in a URL: it would be seen in logs",
            ),
            (r#"{"to": ["/a", "/a/"]}"#, "its checkpoints: `to` has \"/a\" twice, the second time at place 2"),
            (
                r#"{"instance": "a\nb"}"#,
                "its checkpoints: `instance`: expected a name of at most 200 bytes without control characters",
            ),
        ] {
            assert_eq!(Settings::parse(&format!("{{\"checkpoints\": {part}}}")), Err(words.to_owned()));
        }
        let unknown = Settings::parse(r#"{"checkpoints": {"too": []}}"#).unwrap_err();
        assert!(
            unknown.starts_with("unknown field `too`, expected one of `every`, `to`, `key`, `instance` at line 1"),
            "{unknown}"
        );
    }
}
