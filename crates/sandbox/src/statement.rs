//! Function statements without a name, `function (x) { … };`, which Rhino takes and JavaScript does not.

/// The prefix of the names that are inserted.
const NAME: &str = "__unnamed";

/// The token before a position in a script, as far as it decides what may follow.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    /// A statement may begin here.
    Statement,
    /// A value has ended here, so that `/` divides it.
    Value,
    /// A value may begin here.
    Operator,
}

/// The text with a name in each function statement that has none; none if there is no such statement. Line numbers stay
/// the same. Meant for texts that the engine can't parse: only as much is tokenised as finding those statements needs.
pub(crate) fn with_names(text: &str) -> Option<String> {
    let mut named = String::new();
    let (mut copied, mut at, mut before, mut number) = (0, 0, Before::Statement, 0);
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let length = blank(rest);
        if length > 0 {
            at += length;
            continue;
        }
        let (length, after) = token(rest, before);
        if before == Before::Statement && &rest[..length] == "function" && is_unnamed(&rest[length..]) {
            number += 1;
            named.push_str(&text[copied..at + length]);
            named.push_str(&format!(" {NAME}{number}"));
            copied = at + length;
        }
        (at, before) = (at + length, after);
    }
    (number > 0).then(|| named + &text[copied..])
}

/// Whether parameters follow at the position of a name.
fn is_unnamed(mut rest: &str) -> bool {
    loop {
        match blank(rest) {
            0 => return rest.starts_with('('),
            length => rest = &rest[length..],
        }
    }
}

/// The length of the blanks or the comment at the beginning of a text.
fn blank(rest: &str) -> usize {
    if rest.starts_with("//") {
        return rest.find('\n').unwrap_or(rest.len());
    }
    if let Some(inside) = rest.strip_prefix("/*") {
        return inside.find("*/").map_or(rest.len(), |end| end + 4);
    }
    rest.len() - rest.trim_start().len()
}

/// The length of the token at the beginning of a text, and its effect on the next one.
fn token(rest: &str, before: Before) -> (usize, Before) {
    let first = rest.chars().next().unwrap_or(' ');
    match first {
        '"' | '\'' | '`' => (quoted(rest, first), Before::Value),
        '/' if before != Before::Value => (pattern(rest), Before::Value),
        ';' | '{' | '}' => (1, Before::Statement),
        ')' | ']' => (1, Before::Value),
        c if is_of_word(c) => {
            let length = rest.find(|c| !is_of_word(c)).unwrap_or(rest.len());
            let operators = ["return", "typeof", "case", "in", "of", "do", "else", "void", "delete", "throw", "new"];
            (length, if operators.contains(&&rest[..length]) { Before::Operator } else { Before::Value })
        }
        c => (c.len_utf8(), Before::Operator),
    }
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

/// The length of a text in quotes; what is inside `${…}` of a template counts as its text.
fn quoted(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return at + c.len_utf8(),
            '\n' if quote != '`' => return at,
            _ => {}
        }
    }
    rest.len()
}

/// The length of a regular expression without its flags.
fn pattern(rest: &str) -> usize {
    let (mut escaped, mut in_class) = (false, false);
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '[' => in_class = true,
            ']' => in_class = false,
            '/' if !in_class => return at + 1,
            '\n' => return at,
            _ => {}
        }
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::with_names;

    #[test]
    fn only_statements_get_a_name() {
        for (text, expected) in [
            ("function (x) { return x; };", Some("function __unnamed1 (x) { return x; };")),
            (
                "a();\nfunction(){}\nfunction /* b */ () {}",
                Some("a();\nfunction __unnamed1(){}\nfunction __unnamed2 /* b */ () {}"),
            ),
            ("if (x) { function () {} }", Some("if (x) { function __unnamed1 () {} }")),
            (
                "// it\u{2019}s\nfunction ü() {} function () {}",
                Some("// it\u{2019}s\nfunction ü() {} function __unnamed1 () {}"),
            ),
            ("var f = function () {};", None),
            ("f(function () {}, [function () {}], !function () {});", None),
            ("x = \"; function () {}\" + '; function () {}' + `; function () {}`;", None),
            ("// ; function () {}\n/* ; function () {} */ a / 2; b = /; function () {}[/]/g;", None),
            ("return function () {}", None),
            ("function", None),
            ("'open", None),
        ] {
            assert_eq!(with_names(text).as_deref(), expected, "{text}");
        }
    }
}
