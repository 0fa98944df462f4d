//! Blocks of commands in documents have a mark that says how they are run.

use super::{Faults, Text, Tree};

/// Programs whose names begin commands.
const PROGRAMS: [&str; 26] = [
    "apt-get",
    "cargo",
    "cat",
    "cd",
    "cp",
    "curl",
    "docker",
    "eval",
    "export",
    "for",
    "git",
    "javac",
    "kelos",
    "kill",
    "ln",
    "mkdir",
    "npm",
    "rm",
    "rustup",
    "sed",
    "sh",
    "sqlite3",
    "stolos",
    "stolos-submit",
    "systemctl",
    "tar",
];

/// The beginnings of marks.
const MARKS: [&str; 4] = ["<!-- run -->", "<!-- run ", "<!-- file ", "<!-- not run: "];

/// A block of code.
struct Block<'a> {
    /// Its first line, from 1.
    line: usize,
    /// The text behind the fence; none for an indented block.
    language: Option<&'a str>,
    /// The line above it.
    above: &'a str,
    text: Vec<&'a str>,
}

/// Blocks without a mark, and the places of those that are not run.
pub(super) fn check(tree: &Tree) -> (Faults, Vec<String>) {
    let mut faults = Faults::new();
    let mut not_run = Vec::new();
    for page in tree.ending(".md") {
        for block in blocks(&page.text).iter().filter(|block| is_of_commands(tree, page, block)) {
            let place = format!("{}:{}", page.path, block.line);
            if block.above.starts_with("<!-- not run: ") {
                not_run.push(place);
            } else if !MARKS.iter().any(|mark| block.above.starts_with(mark)) {
                faults.push(format!(
                    "{place}: commands without a mark: expected <!-- run --> or <!-- not run: REASON --> in the line above; \
                     CONTRIBUTING.md says more"
                ));
            }
        }
    }
    (faults, not_run)
}

/// The blocks of code of a page.
fn blocks(text: &str) -> Vec<Block<'_>> {
    let lines: Vec<&str> = text.lines().collect();
    let mut blocks = Vec::new();
    let mut n = 0;
    while n < lines.len() {
        let above = if n == 0 { "" } else { lines[n - 1].trim() };
        if let Some(language) = lines[n].trim_start().strip_prefix("```") {
            let inside = lines[n + 1..].iter().take_while(|line| !line.trim_start().starts_with("```"));
            let text: Vec<&str> = inside.copied().collect();
            let end = n + text.len() + 2;
            blocks.push(Block { line: n + 1, language: Some(language.trim()), above, text });
            n = end;
        } else if begins_indented(lines[n], above) {
            let inside = lines[n..].iter().take_while(|line| line.starts_with("    ") || line.trim().is_empty());
            let text: Vec<&str> = inside.map(|line| line.trim_start()).collect();
            let end = n + text.len();
            blocks.push(Block { line: n + 1, language: None, above, text });
            n = end;
        } else {
            n += 1;
        }
    }
    blocks
}

/// Whether an indented block begins here: below an empty line or a mark, and not as an item of a list.
fn begins_indented(line: &str, above: &str) -> bool {
    let item = line.trim_start().starts_with(['-', '*', '|']);
    line.starts_with("    ") && !line.trim().is_empty() && !item && (above.is_empty() || above.starts_with("<!--"))
}

fn is_of_commands(tree: &Tree, page: &Text, block: &Block<'_>) -> bool {
    match block.language {
        Some("sh" | "bash" | "console" | "shell") => true,
        None | Some("" | "text") => {
            let first = block.text.first().copied().unwrap_or_default();
            block.text.iter().any(|line| line.starts_with("$ ")) || is_command(tree, page, first)
        }
        Some(_) => false,
    }
}

/// Whether a line calls a program: a known one, or a file of the tree.
fn is_command(tree: &Tree, page: &Text, line: &str) -> bool {
    let is_assignment = |word: &&str| word.split_once('=').is_some_and(|(name, _)| name.chars().all(is_of_a_name));
    let word = line.split_whitespace().find(|word| !is_assignment(word)).unwrap_or_default();
    let folder = page.path.rsplit_once('/').map_or(String::new(), |(folder, _)| format!("{folder}/"));
    let is_file = |path: &str| tree.files.iter().any(|file| file.path == path);
    PROGRAMS.contains(&word) || word.contains('/') && (is_file(word) || is_file(&format!("{folder}{word}")))
}

fn is_of_a_name(c: char) -> bool {
    c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(text: &str) -> Tree {
        let file = |path: &str, text: &str| Text { path: path.to_owned(), text: text.to_owned() };
        Tree { root: "/".into(), files: vec![file("samples/a/README.md", text), file("samples/a/bin/put", "")] }
    }

    fn unmarked(text: &str) -> usize {
        check(&tree(text)).0.iter().filter(|fault| fault.contains("without a mark")).count()
    }

    #[test]
    fn commands_without_a_mark_are_found() {
        assert_eq!(unmarked("Do\n\n    kelos up\n"), 1);
        assert_eq!(unmarked("```\n$ anything\nsaid\n```\n"), 1);
        assert_eq!(unmarked("1. Do\n\n       bin/put x\n"), 1);
        assert_eq!(unmarked("```sh\nwhatever\n```\n\n    KELOS_X=1 cargo test\n"), 2);
    }

    #[test]
    fn marked_blocks_and_other_code_pass() {
        assert_eq!(check(&tree("<!-- not run: it is long -->\n    kelos up\n")).1, ["samples/a/README.md:2"]);
        assert_eq!(unmarked("<!-- run -->\n    kelos up\n\n<!-- not run: it is long -->\n```sh\nx\n```\n"), 0);
        assert_eq!(unmarked("```js\ncargo\n```\n\n```\nkelos is up\n".replace("kelos", "it").as_str()), 0);
        assert_eq!(unmarked("- a\n\n    - kelos\n\n    [Unit]\n"), 0);
    }
}
