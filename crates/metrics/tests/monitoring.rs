//! The table of docs/metrics.md, the dashboard and the alert rules agree with the numbers that there are.

use std::collections::BTreeSet;
use std::path::PathBuf;

use kelos_metrics::{FAMILIES, Family, Kind};

fn read(path: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn the_table_of_the_document_has_each_family() {
    let document = read("docs/metrics.md");
    let rows: Vec<&str> = document.lines().filter(|line| line.starts_with("| `kelos_")).collect();
    let row = |family: &&Family| {
        let labels: Vec<String> = family.labels.iter().map(|label| format!("`{label}`")).collect();
        let labels = if labels.is_empty() { "–".to_owned() } else { labels.join(", ") };
        format!("| `{}` | {} | {labels} | {} |", family.name, family.kind.name(), family.help)
    };
    assert_eq!(rows, FAMILIES.iter().map(row).collect::<Vec<_>>());
}

#[test]
fn names_end_with_their_units() {
    for family in FAMILIES {
        assert_eq!(family.kind == Kind::Counter, family.name.ends_with("_total"), "{}", family.name);
        assert!(family.kind != Kind::Histogram || family.name.ends_with("_seconds"), "{}", family.name);
    }
}

/// The names of numbers in a text.
fn names(text: &str) -> BTreeSet<&str> {
    let words = text.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'));
    words.filter(|word| word.starts_with("kelos_")).collect()
}

/// The family of a number.
fn family_of(name: &str) -> Option<&'static Family> {
    let is_of = |family: &&&Family| match family.kind {
        Kind::Histogram => {
            ["_bucket", "_sum", "_count"].iter().any(|suffix| format!("{}{suffix}", family.name) == name)
        }
        Kind::Counter | Kind::Gauge => family.name == name,
    };
    FAMILIES.iter().find(is_of).copied()
}

#[test]
fn the_dashboard_and_the_rules_use_numbers_that_there_are() {
    let dashboard = read("monitoring/grafana/kelos.json");
    serde_json::from_str::<serde_json::Value>(&dashboard).expect("JSON");
    for (file, text) in [("the dashboard", dashboard), ("the rules", read("monitoring/prometheus/kelos.rules.yml"))] {
        let unknown: Vec<&str> = names(&text).into_iter().filter(|name| family_of(name).is_none()).collect();
        assert!(unknown.is_empty(), "{file} uses {unknown:?}");
        assert!(names(&text).len() > 10, "{file} uses few numbers");
    }
}

/// Only a label that a family has can be asked for; `job` and `instance` are those of Prometheus.
#[test]
fn the_rules_ask_only_for_labels_that_there_are() {
    let rules = read("monitoring/prometheus/kelos.rules.yml");
    for line in rules.lines().filter(|line| line.trim_start().starts_with("expr:")) {
        for part in line.split("kelos_").skip(1) {
            let Some((name, rest)) = part.split_once('{') else { continue };
            if !name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_') {
                continue;
            }
            let family = family_of(&format!("kelos_{name}")).expect(name);
            let labels = rest.split('}').next().unwrap_or_default().split(',');
            for label in labels.filter_map(|label| label.split(['=', '!']).next()) {
                assert!(family.labels.contains(&label), "{line}: {label}");
            }
        }
    }
}

mod real {
    use std::process::Command;

    use super::*;

    #[test]
    #[ignore = "needs a real server: servers/run with prometheus -- cargo test -- --ignored real::"]
    fn promtool_takes_the_rules_and_their_alerts_fire() {
        let promtool = std::env::var("KELOS_TEST_PROMTOOL").expect("KELOS_TEST_PROMTOOL, which servers/run sets");
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../monitoring/prometheus");
        for words in [&["check", "rules", "kelos.rules.yml"][..], &["test", "rules", "kelos.rules.test.yml"]] {
            let output = Command::new(&promtool).args(words).current_dir(&folder).output().expect("promtool");
            assert!(output.status.success(), "{words:?}: {output:?}");
        }
    }
}
