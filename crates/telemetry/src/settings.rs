//! The parts of a server's file that are about traces and lineage.

use std::collections::BTreeMap;

use kelos_executors::http::{Url, header, shown};
use kelos_model::secret::{DeclaredSecret, SecretSource};
use serde::Deserialize;
use serde_json::Value;

/// The name of this installation that is shown if no other is given.
const NAME: &str = "kelos";
/// The longest name.
const LONGEST_NAME: usize = 200;

/// The collectors that are told of runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TelemetrySettings {
    pub(crate) traces: Option<Collector>,
    pub(crate) lineage: Option<Collector>,
}

/// A collector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Collector {
    /// The address to which is posted.
    pub(crate) to: Url,
    /// The name of this installation: the service of traces, the namespace of lineage.
    pub(crate) name: String,
    /// Headers of requests.
    pub(crate) headers: BTreeMap<String, HeaderValue>,
}

/// The value of a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HeaderValue {
    Plain(String),
    /// A secret, read for each request, and the text before it.
    Secret {
        source: SecretSource,
        prefix: String,
    },
}

/// The file.
#[derive(Deserialize)]
struct File {
    traces: Option<TracesPart>,
    lineage: Option<LineagePart>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TracesPart {
    to: String,
    service: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LineagePart {
    to: String,
    namespace: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, Value>,
}

impl TelemetrySettings {
    /// Parses the text of the file that a server is started with; its other parts are ignored.
    ///
    /// # Errors
    /// The mistake, and what was expected.
    pub fn parse(text: &str) -> Result<TelemetrySettings, String> {
        const FORM: &str = "{\"traces\": {\"to\": \"http://127.0.0.1:4318/v1/traces\"}, \
            \"lineage\": {\"to\": \"http://127.0.0.1:5000/api/v1/lineage\"}}";
        let file: File = serde_json::from_str(text).map_err(|error| format!("{error}; expected {FORM}"))?;
        let traces = file.traces.map(|part| collector(&part.to, "service", part.service, part.headers));
        let lineage = file.lineage.map(|part| collector(&part.to, "namespace", part.namespace, part.headers));
        Ok(TelemetrySettings {
            traces: traces.transpose().map_err(|why| format!("its traces: {why}"))?,
            lineage: lineage.transpose().map_err(|why| format!("its lineage: {why}"))?,
        })
    }

    /// Whether runs are given the context of their trace.
    #[must_use]
    pub fn has_traces(&self) -> bool {
        self.traces.is_some()
    }
}

fn collector(
    to: &str,
    word: &str,
    name: Option<String>,
    headers: BTreeMap<String, Value>,
) -> Result<Collector, String> {
    let url = Url::parse(to).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    let url = url.ok_or_else(|| {
        format!("`to` is {to:?}, expected an address such as https://collector.example:4318/v1/traces")
    })?;
    if !url.username().is_empty() || url.password().is_some() {
        let shown = shown(&url);
        return Err(format!(
            "`to` is \"{shown}\" with a name or password: it would be seen in logs; give it in `headers`"
        ));
    }
    let name = name.unwrap_or_else(|| NAME.to_owned());
    if name.trim().is_empty() || name.len() > LONGEST_NAME || name.chars().any(char::is_control) {
        return Err(format!("`{word}` is {name:?}, expected a name of at most {LONGEST_NAME} bytes"));
    }
    let headers = headers.into_iter().map(|(name, value)| value_of(&name, value).map(|value| (name, value)));
    Ok(Collector { to: url, name, headers: headers.collect::<Result<_, _>>()? })
}

fn value_of(name: &str, value: Value) -> Result<HeaderValue, String> {
    if header::HeaderName::try_from(name).is_err() {
        return Err(format!("`headers` has {name:?}, which is no name of a header"));
    }
    match (DeclaredSecret::of(&value), value) {
        (Some(declared), _) => {
            let DeclaredSecret { source, prefix } = declared.map_err(|why| format!("`headers.{name}`: {why}"))?;
            Ok(HeaderValue::Secret { source, prefix: prefix.to_string() })
        }
        (None, Value::String(text)) if header::HeaderValue::try_from(&text).is_ok() => Ok(HeaderValue::Plain(text)),
        _ => Err(format!(
            "`headers.{name}` is no text of one line, expected one or {{\"secret\": \"env:NAME\", \"prefix\": \"Bearer \"}}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_names_collectors_and_their_headers() {
        let settings = TelemetrySettings::parse(
            r#"{"groups": [], "traces": {"to": "https://otel.example/v1/traces", "service": "shop",
                "headers": {"authorization": {"secret": "env:OTEL_TOKEN", "prefix": "Bearer "}, "x-team": "data"}},
                "lineage": {"to": "http://marquez:5000/api/v1/lineage"}}"#,
        )
        .expect("settings");
        let traces = settings.traces.clone().expect("traces");
        assert_eq!((traces.to.as_str(), &*traces.name), ("https://otel.example/v1/traces", "shop"));
        assert_eq!(traces.headers["x-team"], HeaderValue::Plain("data".to_owned()));
        assert!(matches!(&traces.headers["authorization"], HeaderValue::Secret { prefix, .. } if prefix == "Bearer "));
        assert_eq!(settings.lineage.map(|lineage| lineage.name).as_deref(), Some("kelos"));
        assert_eq!(TelemetrySettings::parse("{}"), Ok(TelemetrySettings::default()));
    }

    #[test]
    fn mistakes_say_what_was_expected() {
        for (text, words) in [
            (r#"{"traces": {"to": "collector:4318"}}"#, "its traces: `to` is \"collector:4318\", expected an address"),
            (
                r#"{"lineage": {"to": "https://me:word@host/"}}"#,
                "its lineage: `to` is \"https://host/\" with a name or password: it would be seen in logs",
            ),
            (
                r#"{"lineage": {"to": "http://h/", "namespace": " "}}"#,
                "its lineage: `namespace` is \" \", expected a name",
            ),
            (
                r#"{"traces": {"to": "http://h/", "headers": {"a": 1}}}"#,
                "its traces: `headers.a` is no text of one line",
            ),
            (r#"{"traces": {"to": "http://h/", "headers": {"a b": "c"}}}"#, "its traces: `headers` has \"a b\""),
            (r#"{"traces": {"too": "http://h/"}}"#, "unknown field `too`, expected one of `to`, `service`, `headers`"),
        ] {
            let told = TelemetrySettings::parse(text).expect_err("a mistake");
            assert!(told.starts_with(words), "{told}");
        }
    }
}
