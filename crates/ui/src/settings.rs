//! Settings of jobs, as rows of a list.

use kelos_model::secret::masks;
use maud::{Markup, html};
use serde_json::{Map, Value};

/// The names and values of settings; secrets are masked.
pub(crate) fn rows(settings: &Map<String, Value>) -> Markup {
    html! {
        @for (name, value) in &masks::masked_fields(settings) {
            dt { code { (name) } }
            dd {
                @match value {
                    Value::String(text) => code { (text) },
                    other => code { (serde_json::to_string_pretty(other).unwrap_or_default()) },
                }
            }
        }
    }
}
