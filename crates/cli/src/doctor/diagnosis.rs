//! The result of one check: how it stands, what was found, and what to do.

use serde::Serialize;

use crate::render;
use crate::text::{self, count};

/// The severity of a diagnosis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Level {
    /// Nothing is wrong.
    Ok,
    /// It works, and somebody should look at it.
    Warning,
    /// It does not work, or will not for long.
    Wrong,
}

impl Level {
    fn word(self) -> &'static str {
        match self {
            Level::Ok => "ok",
            Level::Warning => "warning",
            Level::Wrong => "wrong",
        }
    }

    /// The state of a slot that has the same colour.
    fn colour(self) -> &'static str {
        match self {
            Level::Ok => "succeeded",
            Level::Warning => "running",
            Level::Wrong => "failed",
        }
    }
}

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Diagnosis {
    /// The check: `clock`, `disk` and so on.
    pub(super) check: &'static str,
    pub(super) level: Level,
    /// The observation, in words.
    pub(super) found: String,
    /// The way to mend it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) advice: Option<String>,
}

impl Diagnosis {
    pub(super) fn ok(check: &'static str, found: impl Into<String>) -> Diagnosis {
        Diagnosis { check, level: Level::Ok, found: found.into(), advice: None }
    }

    pub(super) fn warning(check: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Diagnosis {
        Diagnosis { check, level: Level::Warning, found: found.into(), advice: Some(advice.into()) }
    }

    pub(super) fn wrong(check: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Diagnosis {
        Diagnosis { check, level: Level::Wrong, found: found.into(), advice: Some(advice.into()) }
    }

    /// The lines for people: the second one says what to do.
    fn lines(&self) -> Vec<String> {
        let level = format!("{:<8}", self.level.word());
        let first = format!("{} {:<12} {}", render::paint(&level, self.level.colour()), self.check, self.found);
        let second = self.advice.as_ref().map(|advice| format!("{:<21} hint: {advice}", ""));
        [Some(first), second].into_iter().flatten().collect()
    }
}

/// Whether nothing is wrong.
pub(super) fn is_well(all: &[Diagnosis]) -> bool {
    all.iter().all(|one| one.level != Level::Wrong)
}

/// The results and their sum, as lines for people.
pub(super) fn lines(all: &[Diagnosis]) -> Vec<String> {
    let mut lines: Vec<String> = all.iter().flat_map(Diagnosis::lines).collect();
    lines.push(sum(all));
    lines
}

/// Prints the results and their sum.
pub(super) fn print(all: &[Diagnosis]) {
    lines(all).iter().for_each(text::line);
}

fn sum(all: &[Diagnosis]) -> String {
    let of = |level: Level| all.iter().filter(|one| one.level == level).count();
    let wrong = match of(Level::Wrong) {
        0 => "nothing is wrong".to_owned(),
        1 => "1 thing is wrong".to_owned(),
        many => format!("{many} things are wrong"),
    };
    match of(Level::Warning) {
        0 => wrong,
        warnings => format!("{wrong}, {}", count(warnings, "warning")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_result_is_a_line_and_the_last_line_is_the_sum() {
        let all = [
            Diagnosis::ok("clock", "it is right"),
            Diagnosis::warning("disk", "4 % are free", "make room"),
            Diagnosis::wrong("store", "it is damaged", "restore a backup"),
        ];
        assert_eq!(
            lines(&all).join("\n"),
            "ok       clock        it is right\n\
             warning  disk         4 % are free\n                      hint: make room\n\
             wrong    store        it is damaged\n                      hint: restore a backup\n\
             1 thing is wrong, 1 warning"
        );
        assert!(!is_well(&all) && is_well(&all[..2]));
        assert_eq!(sum(&all[..1]), "nothing is wrong");
        let json = serde_json::to_value(&all[1]).expect("JSON");
        let expected =
            serde_json::json!({ "check": "disk", "level": "warning", "found": "4 % are free", "advice": "make room" });
        assert_eq!(json, expected);
    }
}
