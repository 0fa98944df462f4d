//! What the template of a path that runs write may look like, in scripts and in other formats.

/// Checks the template of a path that runs write: a file or a folder below a root.
///
/// # Errors
/// In words, what was expected instead.
pub fn check_written_path(path: &str) -> Result<(), String> {
    const SUCH: &str = "\"/data/${year}-${month}-${day}/orders\"";
    if path.is_empty() {
        return Err(format!("expected a string such as {SUCH}, not \"\""));
    }
    if path.starts_with('~') {
        return Err(format!("expected a path such as \"/data/out\", not {path:?}: no shell reads it"));
    }
    if path.contains(['*', '?']) {
        return Err(format!(
            "expected the path of a file or a folder, not the pattern {path:?}; a folder stands for all that is in it"
        ));
    }
    if below_root(path).chars().all(|letter| matches!(letter, '/' | '.')) {
        return Err(format!("expected a path below the root, such as \"/data/out\", not {path:?}"));
    }
    Ok(())
}

/// The path without its scheme and host.
fn below_root(path: &str) -> &str {
    let Some((scheme, rest)) = path.split_once(':') else { return path };
    let mut letters = scheme.chars();
    let is_scheme = letters.next().is_some_and(|first| first.is_ascii_alphabetic())
        && letters.all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '+' | '.' | '-'));
    match rest.strip_prefix("//") {
        _ if !is_scheme => path,
        Some(authority) => authority.find('/').and_then(|at| authority.get(at..)).unwrap_or_default(),
        None => rest,
    }
}

#[cfg(test)]
mod tests {
    use super::check_written_path;

    #[test]
    fn a_path_is_below_a_root_and_is_no_pattern() {
        for path in ["/a", "a/b", "hdfs://nn/a", "hdfs:/a", "s3://bucket/a/", "/${year}", "file:///x", "a:b"] {
            assert_eq!(check_written_path(path), Ok(()), "{path}");
        }
        for path in ["", "~/a", "/a/*", "/a?", "/", "./..", "hdfs://nn", "s3://bucket/", "file:///", "x:"] {
            assert!(check_written_path(path).unwrap_err().starts_with("expected "), "{path}");
        }
    }
}
