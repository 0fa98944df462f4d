//! The patterns of SSH's own files: `*`, `?`, and `!` for negation.

/// Whether one of the patterns matches, and no negated one.
pub(super) fn any<'a>(patterns: impl IntoIterator<Item = &'a str>, name: &str) -> bool {
    let mut found = false;
    for pattern in patterns {
        match pattern.strip_prefix('!') {
            Some(not) if fits(not.as_bytes(), name.as_bytes()) => return false,
            Some(_) => {}
            None => found |= fits(pattern.as_bytes(), name.as_bytes()),
        }
    }
    found
}

fn fits(pattern: &[u8], name: &[u8]) -> bool {
    match (pattern.split_first(), name.split_first()) {
        (None, None) => true,
        (Some((b'*', rest)), _) => fits(rest, name) || name.split_first().is_some_and(|(_, less)| fits(pattern, less)),
        (Some((b'?', rest)), Some((_, less))) => fits(rest, less),
        (Some((one, rest)), Some((other, less))) => one.eq_ignore_ascii_case(other) && fits(rest, less),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_and_marks_and_negations() {
        assert!(any(["*.example"], "a.EXAMPLE"));
        assert!(any(["host?"], "host1"));
        assert!(!any(["host?"], "host"));
        assert!(!any(["!a.example", "*.example"], "a.example"));
        assert!(!any(["!b"], "a"), "a negation alone means nobody");
    }
}
