//! How names and values are written into the address of a request.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// The characters that are escaped: all that could have a meaning in a path or a query.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// The query of a request: names and values after the question mark.
#[derive(Clone, Default)]
pub(crate) struct Query(String);

impl Query {
    pub(crate) fn new() -> Query {
        Query::default()
    }

    pub(crate) fn add(&mut self, name: &str, value: impl ToString) {
        self.0.push(if self.0.is_empty() { '?' } else { '&' });
        self.0.push_str(name);
        self.0.push('=');
        self.0.push_str(&escape(&value.to_string()));
    }

    pub(crate) fn add_some(&mut self, name: &str, value: Option<impl ToString>) {
        if let Some(value) = value {
            self.add(name, value);
        }
    }

    /// The query with its question mark; empty where it has no values.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// A name as a part of a path.
pub(crate) fn escape(name: &str) -> String {
    utf8_percent_encode(name, ESCAPED).to_string()
}

/// The path of a slot.
pub(crate) fn slot_path(workflow: &str, key: &str) -> String {
    format!("/workflows/{}/slots/{}", escape(workflow), escape(key))
}
