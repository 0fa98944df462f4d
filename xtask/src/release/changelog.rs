//! The changelog: the open section gets a version and its day.

use crate::workspace::Outcome;

const OPEN: &str = "## [Unreleased]\n";

/// The changelog with the open section closed under a version; unchanged if the version has a section already and nothing is open.
pub(super) fn closed(text: &str, version: &str, date: &str) -> Outcome<String> {
    let (before, after) = text.split_once(OPEN).ok_or("close CHANGELOG.md: expected a section ## [Unreleased]")?;
    let open = after.split("\n## [").next().unwrap_or_default();
    let has_section = text.contains(&format!("\n## [{version}]"));
    match (open.trim().is_empty(), has_section) {
        (true, true) => Ok(text.to_owned()),
        (true, false) => Err("close CHANGELOG.md: expected something under ## [Unreleased]".to_owned()),
        (false, true) => {
            Err(format!("close CHANGELOG.md: {version} has a section, and more stands under ## [Unreleased]"))
        }
        (false, false) => Ok(format!("{before}{OPEN}\n## [{version}] - {date}\n{after}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "# Changelog\n\n";

    #[test]
    fn the_open_section_gets_version_and_day() {
        let text = format!("{HEAD}## [Unreleased]\n\n### Added\n\n- x\n\n## [0.1.0] - 2026-11-23\n\n- y\n");
        let expected = format!(
            "{HEAD}## [Unreleased]\n\n## [0.2.0] - 2026-12-01\n\n### Added\n\n- x\n\n## [0.1.0] - 2026-11-23\n\n- y\n"
        );
        assert_eq!(closed(&text, "0.2.0", "2026-12-01").unwrap(), expected);
        assert_eq!(closed(&expected, "0.2.0", "2026-12-02").unwrap(), expected, "once more");
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let fault = |text: &str, version: &str| closed(text, version, "2026-12-01").unwrap_err();
        assert!(fault(HEAD, "0.2.0").contains("expected a section"));
        assert!(fault("## [Unreleased]\n\n## [0.1.0] - x\n", "0.2.0").contains("expected something"));
        assert!(fault("## [Unreleased]\n\n- x\n\n## [0.1.0] - x\n", "0.1.0").contains("has a section"));
    }
}
