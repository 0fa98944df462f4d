//! Files of definitions with line numbers, and with the lines of one definition marked.

use kelos_model::secret::masks::masked_source;
use maud::{Markup, html};

/// Lines that are shown of a longer file, those of the definition in their midst.
const SHOWN: usize = 400;

/// A whole file, or the part around the definition that begins at `line`, from 1; 0 where that is unknown.
pub(super) fn file(text: &str, line: u32) -> Markup {
    let text = masked_source(text);
    let lines: Vec<&str> = text.lines().collect();
    let begin = line as usize;
    let end = if begin == 0 { 0 } else { end(&lines, begin) };
    let first = if lines.len() <= SHOWN { 1 } else { begin.saturating_sub(SHOWN / 4).max(1) };
    let shown = lines.iter().enumerate().map(|(n, text)| (n + 1, *text)).skip(first - 1).take(SHOWN);
    html! {
        pre.source tabindex="0" role="group" aria-label="source" {
            @for (number, text) in shown {
                span.line.own[(begin..=end).contains(&number) && begin > 0] id=(format!("L{number}")) {
                    span.number aria-hidden="true" { (number) }
                    code { (text) } "\n"
                }
            }
        }
        @if lines.len() > SHOWN { p.dim { "Of " (lines.len()) " lines, " (SHOWN) " are shown." } }
    }
}

/// The line with a problem, and a mark below the position.
pub(super) fn excerpt(text: &str, line: u32, column: u32) -> Markup {
    let column = column as usize;
    let before: String = text.chars().take(column.saturating_sub(1)).map(blank).collect();
    html! {
        pre.source tabindex="0" role="group" aria-label="The line" {
            span.line { span.number { (line) } code { (masked_source(text)) } "\n" }
            @if column > 0 {
                span.line aria-hidden="true" { span.number {} code { (before) b.bad-mark { "^" } } "\n" }
            }
        }
    }
}

fn blank(letter: char) -> char {
    if letter == '\t' { '\t' } else { ' ' }
}

/// The last line of the call that begins at a line: where its brackets are closed.
fn end(lines: &[&str], begin: usize) -> usize {
    let mut depth = 0_i32;
    let mut quote = None;
    for (n, line) in lines.iter().enumerate().skip(begin - 1) {
        let mut letters = line.chars().peekable();
        while let Some(letter) = letters.next() {
            match (quote, letter) {
                (Some(_), '\\') => {
                    letters.next();
                }
                (Some(open), close) if open == close => quote = None,
                (Some(_), _) => {}
                (None, '\'' | '"' | '`') => quote = Some(letter),
                (None, '/') if letters.peek() == Some(&'/') => break,
                (None, '(' | '[' | '{') => depth += 1,
                (None, ')' | ']' | '}') => depth -= 1,
                _ => {}
            }
        }
        // Only a template continues after the end of a line.
        quote = quote.filter(|open| *open == '`');
        if depth <= 0 && quote.is_none() {
            return n + 1;
        }
    }
    lines.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_ends_where_its_brackets_do() {
        let text = "var a = 1;\ncelos.defineWorkflow({ // (\n  id: ')',\n  job: [`(\n`]\n});\nmore();";
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!((end(&lines, 2), end(&lines, 7), end(&lines, 1)), (6, 7, 1));
    }

    #[test]
    fn the_mark_stands_below_its_column() {
        let shown = excerpt("\tx = <b>;", 7, 6).into_string();
        assert!(shown.contains("<code>\tx = &lt;b&gt;;</code>"), "{shown}");
        assert!(shown.contains("<code>\t    <b class=\"bad-mark\">^</b></code>"), "{shown}");
    }
}
