//! Rust source without its tests, its comments and its texts.

/// The attribute of an item that only tests are built with.
const FOR_TESTS: &str = "#[cfg(test)]";

/// The same text with empty lines in place of the items that only tests are built with, wherever they stand. Lines stay where they are,
/// but those at the end are left out.
pub(super) fn product(text: &str) -> String {
    let code = code(text);
    let code: Vec<&str> = code.lines().collect();
    let mut lines: Vec<&str> = text.lines().collect();
    let mut at = 0;
    while at < code.len() {
        if code[at].trim() == FOR_TESTS {
            let end = at + 1 + item(&code[at + 1..]);
            lines[at..end].fill("");
            at = end;
        } else {
            at += 1;
        }
    }
    let kept = lines.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1);
    lines[..kept].iter().flat_map(|line| [*line, "\n"]).collect()
}

/// How many lines the item takes that begins here: up to its semicolon, or to the last brace of its body.
fn item(code: &[&str]) -> usize {
    let mut depth = 0;
    for (n, line) in code.iter().enumerate() {
        for c in line.chars() {
            match c {
                '{' | '(' | '[' => depth += 1,
                '}' | ')' | ']' => depth -= 1,
                _ => {}
            }
            if depth <= 0 && matches!(c, ';' | '}') {
                return n + 1;
            }
        }
    }
    code.len()
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
    fn items_for_tests_are_left_out_wherever_they_stand() {
        assert_eq!(product("a\n#[cfg(test)]\nmod tests {\n{b}\n}"), "a\n");
        assert_eq!(product("#[cfg(test)]\nmod tests;\nuse a;\n"), "\n\nuse a;\n");
        assert_eq!(product("a\n#[cfg(test)]\nmod real {\n    fn b() {\"}\"}\n}\nc"), "a\n\n\n\n\nc\n");
        assert_eq!(product("impl A {\n    #[cfg(test)]\n    fn b(c: [u8; 2]) {\n    }\n}"), "impl A {\n\n\n\n}\n");
        assert_eq!(product("#[cfg(test)]\nconst A: [u8; 2] = [\n    1,\n];\nb"), "\n\n\n\nb\n");
        assert_eq!(product("let a = \"\n#[cfg(test)]\nmod tests;\";\n"), "let a = \"\n#[cfg(test)]\nmod tests;\";\n");
    }

    #[test]
    fn files_of_tests_are_known_by_their_path() {
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
