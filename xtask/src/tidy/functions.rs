//! No function is long.

use std::collections::BTreeMap;

use super::Tree;
use super::ratchet::KnownFaults;
use super::source::{code, words};

/// How many lines a function may have, from its name to its last brace.
const LONGEST: usize = 70;

pub(super) fn standing(tree: &Tree) -> KnownFaults {
    let mut standing = BTreeMap::new();
    for file in tree.ending(".rs") {
        for function in functions(&file.text).into_iter().filter(|function| function.lines > LONGEST) {
            let place = format!("{}:{}", file.path, function.line);
            standing.insert(format!("function {} {}", file.name(), function.name), (function.lines, vec![place]));
        }
    }
    standing
}

struct Function {
    name: String,
    /// The line on which it begins, from 1.
    line: usize,
    lines: usize,
}

/// All functions that have a body.
fn functions(text: &str) -> Vec<Function> {
    let code = code(text);
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(at) = code[from..].find("fn ").map(|at| from + at) {
        from = at + 3;
        let begins = !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let Some(name) = words(&code[from..]).next().filter(|_| begins && !code[from..].starts_with(' ')) else {
            continue;
        };
        if let Some(end) = end_of_body(&code[from..]) {
            let lines = 1 + code[at..from + end].matches('\n').count();
            found.push(Function { name: name.to_owned(), line: 1 + code[..at].matches('\n').count(), lines });
        }
    }
    found
}

/// The end of the body of a function whose name begins here; none if it has no body.
fn end_of_body(code: &str) -> Option<usize> {
    let (mut depth, mut brackets) = (0, 0);
    for (at, c) in code.char_indices() {
        match c {
            '(' | '[' => brackets += 1,
            ')' | ']' if depth == 0 && brackets == 0 => return None,
            ')' | ']' => brackets -= 1,
            ';' if depth == 0 && brackets == 0 => return None,
            '{' => depth += 1,
            '}' if depth == 0 => return None,
            '}' => depth -= 1,
            _ => continue,
        }
        if c == '}' && depth == 0 {
            return Some(at);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::Text;
    use super::*;

    #[test]
    fn long_functions_are_found() {
        let body = "    x();\n".repeat(LONGEST);
        let text = format!(
            "trait T {{\n    fn none(&self, a: [u8; 3]);\n}}\nfn short() {{ let s = \"{{\"; }}\nfn long() {{\n{body}}}\n"
        );
        let files = vec![Text { path: "crates/a/src/b.rs".to_owned(), text }];
        let found = standing(&Tree { root: "/".into(), files });
        assert_eq!(
            found.into_iter().collect::<Vec<_>>(),
            [("function b.rs long".to_owned(), (LONGEST + 2, vec!["crates/a/src/b.rs:5".to_owned()]))]
        );
    }

    #[test]
    fn types_of_functions_are_no_functions() {
        assert!(functions("type F = fn (u8) -> u8;\nstruct S { f: Box<dyn Fn(u8)> }\nlet my_fn = 3;").is_empty());
    }
}
