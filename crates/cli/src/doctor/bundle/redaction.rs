//! Texts without secrets: quoted values that are no known names go, addresses keep their scheme and host, and values that are known to be
//! secret are masked wherever they stand.

use std::collections::BTreeSet;

use serde_json::Value;

/// The text in the place of a secret.
pub(super) const MASK: &str = "••••";
/// The text in the place of anything that is left out.
const GAP: &str = "…";
/// Values that are shorter are no secrets, and would be found in words.
const SHORTEST: usize = 6;
/// The schemes of file systems, whose paths are names; other addresses may have a token in their path.
const FILES: [&str; 8] = ["hdfs", "webhdfs", "swebhdfs", "s3", "gs", "abfs", "sftp", "file"];

/// The rules by which texts lose their secrets.
#[derive(Default)]
pub(super) struct Redaction {
    /// The names that may be quoted: of workflows, projects and files.
    names: BTreeSet<String>,
    /// The values that are known to be secret, the longest first.
    secrets: Vec<String>,
}

impl Redaction {
    pub(super) fn new(names: BTreeSet<String>, secrets: BTreeSet<String>) -> Redaction {
        let mut secrets: Vec<String> = secrets.into_iter().filter(|value| value.len() >= SHORTEST).collect();
        secrets.sort_by_key(|value| std::cmp::Reverse(value.len()));
        Redaction { names, secrets }
    }

    /// The text with known secrets masked, and otherwise as it is.
    pub(super) fn masked(&self, text: &str) -> String {
        self.secrets.iter().fold(text.to_owned(), |text, secret| text.replace(secret.as_str(), MASK))
    }

    /// The value with known secrets masked in its texts. The names of its fields are ours, and stay.
    pub(super) fn masked_value(&self, value: Value) -> Value {
        match value {
            Value::String(text) => self.masked(&text).into(),
            Value::Array(items) => items.into_iter().map(|item| self.masked_value(item)).collect(),
            Value::Object(fields) => fields.into_iter().map(|(name, value)| (name, self.masked_value(value))).collect(),
            other => other,
        }
    }

    /// A message: known secrets are masked, quoted values that are no known names left out, and addresses cut.
    pub(super) fn message(&self, text: &str) -> String {
        let masked = self.masked(text);
        let mut out = String::new();
        let mut rest = masked.as_str();
        while let Some(at) = rest.find(['"', '\'', '`']) {
            let (before, from) = rest.split_at(at);
            let mark = from.chars().next().unwrap_or('"');
            // An apostrophe within a word quotes nothing.
            let is_apostrophe = mark == '\'' && before.chars().next_back().is_some_and(char::is_alphanumeric);
            let inner = from.get(1..).unwrap_or_default();
            let Some(end) = inner.find(mark).filter(|_| !is_apostrophe) else {
                out.push_str(&addresses(before));
                // An open quote may have a secret behind it, up to the end.
                if !is_apostrophe {
                    out.push(mark);
                    out.push_str(GAP);
                    return out;
                }
                out.push(mark);
                rest = inner;
                continue;
            };
            let (quoted, after) = inner.split_at(end);
            out.push_str(&addresses(before));
            out.push(mark);
            out.push_str(self.quoted(quoted, mark));
            out.push(mark);
            rest = after.get(1..).unwrap_or_default();
        }
        out.push_str(&addresses(rest));
        out
    }

    fn quoted<'a>(&self, text: &'a str, mark: char) -> &'a str {
        let is_command = mark == '`' && text.starts_with("kelos ") && !text.contains("://");
        if is_command || self.names.contains(text) { text } else { GAP }
    }
}

/// The text with its addresses cut to what may be shown.
fn addresses(text: &str) -> String {
    let cut = |word: &str| match word.find("://") {
        Some(_) => {
            let start = word.find(|c: char| c.is_ascii_alphanumeric()).unwrap_or(0);
            let (before, address) = word.split_at(start);
            let end = address.trim_end_matches([',', '.', ':', ';', ')', ']']).len();
            let (address, after) = address.split_at(end);
            format!("{before}{}{after}", place(address))
        }
        None => word.to_owned(),
    };
    text.split_inclusive(char::is_whitespace)
        .map(|word| {
            let end = word.trim_end().len();
            let (word, space) = word.split_at(end);
            cut(word) + space
        })
        .collect()
}

/// An address without user, password, query and fragment; of one that is no file system only scheme and host.
pub(super) fn place(address: &str) -> String {
    let Some((scheme, rest)) = address.split_once("://") else {
        // `file:/path` and `hdfs:/path` have no host; what else has no `//` is no address.
        return match address.split_once(":/") {
            Some((scheme, path)) if FILES.contains(&scheme) => format!("{scheme}:/{}", path_of(path)),
            _ => GAP.to_owned(),
        };
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    match FILES.contains(&scheme) {
        true => format!("{scheme}://{host}{}", path_of(path)),
        false if path.is_empty() || path == "/" => format!("{scheme}://{host}"),
        false => format!("{scheme}://{host}/{GAP}"),
    }
}

fn path_of(path: &str) -> &str {
    path.split(['?', '#']).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redaction() -> Redaction {
        let names = BTreeSet::from(["totals".to_owned(), "a.js".to_owned()]);
        Redaction::new(names, BTreeSet::from(["hunter2-or-more".to_owned(), "hunter2".to_owned(), "abc".to_owned()]))
    }

    #[test]
    fn addresses_lose_users_passwords_queries_and_tokens_in_their_path() {
        let shown = [
            ("postgres://kelos:pw@db:5432/kelos?sslmode=x", "postgres://db:5432/…"),
            ("https://hooks.example/services/T0/B0/token", "https://hooks.example/…"),
            ("http://127.0.0.1:7437", "http://127.0.0.1:7437"),
            ("redis://:pw@a:1,b:2/0", "redis://a:1,b:2/…"),
            ("s3://key:secret@bucket/in/day?x=1#y", "s3://bucket/in/day"),
            ("hdfs:/in/day?x=1", "hdfs:/in/day"),
            ("exec:pass show db", "…"),
            ("https://a@b@c/p@q", "https://c/…"),
        ];
        for (address, expected) in shown {
            assert_eq!(place(address), expected);
        }
    }

    #[test]
    fn quoted_values_that_are_no_names_are_left_out() {
        let shown = [
            (
                "workflow \"totals\" has \"pw\", see `kelos why totals`",
                "workflow \"totals\" has \"…\", see `kelos why totals`",
            ),
            ("it's the server's 'value' and `other`", "it's the server's '…' and `…`"),
            ("an open \"quote with a password", "an open \"…"),
            ("read `kelos login http://u:p@h`", "read `…`"),
            ("é \"ü\" 'totals'", "é \"…\" 'totals'"),
        ];
        for (text, expected) in shown {
            assert_eq!(redaction().message(text), expected);
        }
    }

    #[test]
    fn known_secrets_are_masked_wherever_they_stand() {
        assert_eq!(redaction().message("curl -u ann:hunter2-or-more, then hunter2x"), "curl -u ann:••••, then ••••x");
        assert_eq!(redaction().masked("abc \"hunter2\""), "abc \"••••\"", "short values are no secrets");
        let value = serde_json::json!({ "hunter2": ["hunter2", { "a": "x hunter2" }], "b": 1 });
        let masked = serde_json::json!({ "hunter2": ["••••", { "a": "x ••••" }], "b": 1 });
        assert_eq!(redaction().masked_value(value), masked, "names of fields are no secrets");
        assert_eq!(
            redaction().message("failed to reach (https://u:p@h/x/y), or s3://b/c: why"),
            "failed to reach (https://h/…), or s3://b/c: why"
        );
    }
}
