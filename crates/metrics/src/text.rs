//! The text format of Prometheus, version 0.0.4.

use std::fmt::{Display, Write};

use kelos_store::durations::{BOUNDS, CountedDurations};

/// The content type of the text.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The kind of a family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A number that only grows, until the process ends.
    Counter,
    /// A number that goes up and down.
    Gauge,
    /// Numbers that are counted by range.
    Histogram,
}

impl Kind {
    /// Its name in the text.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        }
    }
}

/// A family of numbers of one name.
#[derive(Debug, PartialEq, Eq)]
pub struct Family {
    /// Its name, which ends with its unit.
    pub name: &'static str,
    /// Its kind.
    pub kind: Kind,
    /// The names of its labels.
    pub labels: &'static [&'static str],
    /// A description, in one line.
    pub help: &'static str,
}

/// A text that grows. Numbers of one family are written one after the other.
#[derive(Default)]
pub(crate) struct Text {
    text: String,
}

impl Text {
    /// Makes room for so many more bytes.
    pub(crate) fn reserve(&mut self, bytes: usize) {
        self.text.reserve(bytes);
    }

    pub(crate) fn end(self) -> String {
        self.text
    }

    /// Begins a family.
    pub(crate) fn family(&mut self, family: &'static Family) -> FamilyText<'_> {
        let Family { name, kind, help, .. } = family;
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {}", kind.name());
        FamilyText { text: &mut self.text, name }
    }

    /// A family with one number and no labels.
    pub(crate) fn one(&mut self, family: &'static Family, value: impl Display) {
        self.family(family).add("", value);
    }
}

/// The text of a family.
pub(crate) struct FamilyText<'a> {
    text: &'a mut String,
    name: &'static str,
}

impl FamilyText<'_> {
    /// Adds a number with labels as [`labels`] writes them.
    pub(crate) fn add(&mut self, labels: &str, value: impl Display) {
        self.line("", labels, "", "", value);
    }

    /// Adds a number with labels, and one more label whose value needs no escapes.
    pub(crate) fn add_with(&mut self, labels: &str, label: &str, of: &str, value: impl Display) {
        self.line("", labels, label, of, value);
    }

    /// Adds a histogram of counts by range, each counted once, of which the last has no upper bound.
    pub(crate) fn histogram(&mut self, labels: &str, bounds: &[&str], counts: &[u64], sum: f64) {
        let mut total = 0;
        for (count, bound) in counts.iter().zip(bounds.iter().chain(&["+Inf"])) {
            total += count;
            self.line("_bucket", labels, "le", bound, total);
        }
        self.line("_sum", labels, "", "", sum);
        self.line("_count", labels, "", "", total);
    }

    /// Adds durations that were counted by range.
    pub(crate) fn durations(&mut self, labels: &str, durations: &CountedDurations) {
        let bounds = BOUNDS.map(|bound| bound.to_string());
        let bounds: Vec<&str> = bounds.iter().map(String::as_str).collect();
        self.histogram(labels, &bounds, &durations.counts, durations.sum.as_secs_f64());
    }

    fn line(&mut self, suffix: &str, labels: &str, label: &str, of: &str, value: impl Display) {
        let text = &mut *self.text;
        text.push_str(self.name);
        text.push_str(suffix);
        if !(labels.is_empty() && label.is_empty()) {
            text.push('{');
            text.push_str(labels);
            if !label.is_empty() {
                if !labels.is_empty() {
                    text.push(',');
                }
                text.push_str(label);
                text.push_str("=\"");
                text.push_str(of);
                text.push('"');
            }
            text.push('}');
        }
        let _ = writeln!(text, " {value}");
    }
}

/// Labels and their values, as they are written between braces.
pub(crate) fn labels(pairs: &[(&str, &str)]) -> String {
    let mut text = String::new();
    for (name, value) in pairs {
        if !text.is_empty() {
            text.push(',');
        }
        text.push_str(name);
        text.push_str("=\"");
        for letter in value.chars() {
            match letter {
                '\\' => text.push_str("\\\\"),
                '"' => text.push_str("\\\""),
                '\n' => text.push_str("\\n"),
                other => text.push(other),
            }
        }
        text.push('"');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    static TIMES: Family = Family { name: "times_seconds", kind: Kind::Histogram, labels: &["kind"], help: "Times." };

    #[test]
    fn values_of_labels_are_escaped() {
        assert_eq!(labels(&[("a", "x\\y"), ("b", "\"\n")]), r#"a="x\\y",b="\"\n""#);
    }

    #[test]
    fn a_histogram_adds_its_ranges_up() {
        let mut text = Text::default();
        text.family(&TIMES).histogram("kind=\"a\"", &["1", "5"], &[2, 0, 1], 12.5);
        assert_eq!(
            text.end(),
            "# HELP times_seconds Times.\n# TYPE times_seconds histogram\n\
             times_seconds_bucket{kind=\"a\",le=\"1\"} 2\ntimes_seconds_bucket{kind=\"a\",le=\"5\"} 2\n\
             times_seconds_bucket{kind=\"a\",le=\"+Inf\"} 3\ntimes_seconds_sum{kind=\"a\"} 12.5\n\
             times_seconds_count{kind=\"a\"} 3\n"
        );
    }
}
