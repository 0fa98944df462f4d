//! The settings of metrics as a server's file gives them.

use serde::Deserialize;

/// The form that messages about mistakes show.
const FORM: &str = r#"{"metrics": {"workflows": 1000, "public": false}}"#;

/// The settings of metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct MetricSettings {
    /// The number of workflows with numbers of their own. Those of all others are added up.
    pub workflows: usize,
    /// Whether the metrics are shown to callers without a credential.
    pub public: bool,
}

impl Default for MetricSettings {
    fn default() -> Self {
        Self { workflows: 1000, public: false }
    }
}

/// The part of a server's file that is about metrics.
#[derive(Deserialize)]
struct MetricsFile {
    #[serde(default)]
    metrics: MetricSettings,
}

impl MetricSettings {
    /// Parses the text of the file that a server is started with; its other parts are ignored.
    ///
    /// # Errors
    /// The mistake, and what was expected.
    pub fn parse(text: &str) -> Result<MetricSettings, String> {
        let MetricsFile { metrics } =
            serde_json::from_str(text).map_err(|error| format!("\"metrics\": {error}; expected {FORM}"))?;
        Ok(metrics)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_from_the_file_and_others_are_ignored() {
        let settings = MetricSettings::parse(r#"{"groups": [], "metrics": {"workflows": 5}}"#);
        assert_eq!(settings, Ok(MetricSettings { workflows: 5, public: false }));
        assert_eq!(MetricSettings::parse("{}"), Ok(MetricSettings::default()));
    }

    #[test]
    fn a_mistake_is_told_with_what_was_expected() {
        let wrong = MetricSettings::parse(r#"{"metrics": {"workflow": 5}}"#).unwrap_err();
        let what = "\"metrics\": unknown field `workflow`, expected `workflows` or `public` at line 1 column ";
        let expected = "; expected {\"metrics\": {\"workflows\": 1000, \"public\": false}}";
        assert!(wrong.starts_with(what) && wrong.ends_with(expected), "{wrong}");
        let wrong = MetricSettings::parse(r#"{"metrics": {"workflows": -1}}"#).unwrap_err();
        assert!(wrong.contains("invalid value: integer `-1`, expected usize"), "{wrong}");
    }
}
