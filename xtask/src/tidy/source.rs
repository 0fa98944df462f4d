//! Rust source without comments and texts, cut off where its tests begin.

/// The beginning of a file's tests.
const TESTS: &str = "#[cfg(test)]\nmod tests";

/// The part of a file before its tests.
pub(super) fn product(text: &str) -> &str {
    text.split(TESTS).next().unwrap_or_default()
}

/// Whether a file is for tests alone.
pub(super) fn is_for_tests(path: &str) -> bool {
    ["/tests/", "/tests.rs", "/examples/", "/suite/"].iter().any(|part| path.contains(part))
}

/// The folder of the crate that a file belongs to.
pub(super) fn crate_of(path: &str) -> &str {
    path.split_once("/src/").or_else(|| path.rsplit_once('/')).map_or(path, |(folder, _)| folder)
}

/// The same text with blanks in place of comments and quoted texts. Lines stay where they are.
pub(super) fn code(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < chars.len() {
        let end = beyond(&chars, at);
        if end == at {
            out.push(chars[at]);
            at += 1;
        } else {
            out.extend(chars[at..end].iter().map(|c| if *c == '\n' { '\n' } else { ' ' }));
            at = end;
        }
    }
    out
}

/// The end of the comment or the literal that begins here; `at` itself if none does.
fn beyond(chars: &[char], at: usize) -> usize {
    let next = |n: usize| chars.get(at + n).copied().unwrap_or_default();
    match chars[at] {
        '/' if next(1) == '/' => find(chars, at, |n| chars[n] == '\n'),
        '/' if next(1) == '*' => find(chars, at + 2, |n| chars[n - 1] == '*' && chars[n] == '/') + 1,
        '"' => quoted(chars, at + 1, '"'),
        '\'' if next(1) == '\\' || next(2) == '\'' => quoted(chars, at + 1, '\''),
        'r' if !follows_a_word(chars, at) => raw(chars, at),
        _ => at,
    }
    .min(chars.len())
}

fn follows_a_word(chars: &[char], at: usize) -> bool {
    at > 0 && (chars[at - 1].is_alphanumeric() && chars[at - 1] != 'b' || chars[at - 1] == '_')
}

/// The end of `r"…"` or `r#"…"#`; `at` itself if it is a name that begins with r.
fn raw(chars: &[char], at: usize) -> usize {
    let hashes = chars[at + 1..].iter().take_while(|c| **c == '#').count();
    if chars.get(at + 1 + hashes) != Some(&'"') {
        return at;
    }
    let begin = at + hashes + 2;
    let closes =
        |n: usize| chars[n] == '"' && chars[n + 1..].iter().take(hashes).filter(|c| **c == '#').count() == hashes;
    find(chars, begin, closes) + 1 + hashes
}

/// The place after the quote that ends a text.
fn quoted(chars: &[char], mut at: usize, quote: char) -> usize {
    while at < chars.len() && chars[at] != quote {
        at += if chars[at] == '\\' { 2 } else { 1 };
    }
    at + 1
}

fn find(chars: &[char], from: usize, is_it: impl Fn(usize) -> bool) -> usize {
    (from..chars.len()).find(|n| is_it(*n)).unwrap_or(chars.len())
}

/// The names in a line of code.
pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_texts_are_no_code() {
        let text = "a(\"{ // \\\" \", 'x', '\\'', b\"}\") // }\nlet r = r#\"\"{\"#; /* {\n} */ fn f<'a>(x: &'a str)";
        let found = code(text);
        assert_eq!(found.lines().count(), 3);
        assert!(!found.contains(['{', '}', '"']), "{found}");
        assert!(found.contains("let r =") && found.contains("fn f<'a>(x: &'a str)"), "{found}");
    }

    #[test]
    fn product_code_ends_where_tests_begin() {
        assert_eq!(product("a\n#[cfg(test)]\nmod tests {\nb\n}"), "a\n");
        assert!(is_for_tests("crates/a/tests/b.rs") && !is_for_tests("crates/a/src/b.rs"));
    }

    #[test]
    fn crates_are_folders() {
        assert_eq!(
            ["crates/a/src/b/c.rs", "crates/a/build.rs", "xtask/src/main.rs"].map(crate_of),
            ["crates/a", "crates/a", "xtask"]
        );
    }
}
