//! What a document says that commands print, held against what they print.

use regex_lite::Regex;

/// A command, and what is printed by it.
pub(crate) struct Exchange {
    pub(crate) command: String,
    pub(crate) printed: Vec<String>,
}

/// The commands of a transcript, each behind `$ `, with the lines below it.
pub(crate) fn exchanges(text: &[String]) -> Vec<Exchange> {
    let mut all: Vec<Exchange> = Vec::new();
    for line in text {
        match (line.strip_prefix("$ "), all.last_mut()) {
            (Some(command), _) => all.push(Exchange { command: command.to_owned(), printed: Vec::new() }),
            (None, Some(last)) => last.printed.push(line.clone()),
            (None, None) => {}
        }
    }
    all
}

/// Whether output is what a document says. Times and durations are not compared, nor, `roughly`, any number. `…` in a
/// line stands for anything, and a line of it alone for any number of lines.
pub(crate) fn agrees(document: &[String], output: &str, roughly: bool) -> bool {
    let document: Vec<String> = document.iter().map(|line| steady(line, roughly)).collect();
    let output: Vec<String> = output.lines().map(|line| steady(line, roughly)).collect();
    lines_agree(&document, &output)
}

fn lines_agree(document: &[String], output: &[String]) -> bool {
    let Some((first, rest)) = document.split_first() else {
        return output.iter().all(String::is_empty);
    };
    if first.trim() == "…" {
        return (0..=output.len()).any(|n| lines_agree(rest, &output[n..]));
    }
    match output.split_first() {
        Some((line, output)) => line_agrees(first, line) && lines_agree(rest, output),
        None => first.is_empty() && lines_agree(rest, output),
    }
}

fn line_agrees(document: &str, line: &str) -> bool {
    let mut pieces = document.split('…');
    let Some(mut rest) = line.strip_prefix(pieces.next().unwrap_or_default()) else { return false };
    let mut last = None;
    for piece in pieces {
        let Some(at) = rest.find(piece) else { return false };
        rest = &rest[at + piece.len()..];
        last = Some(piece);
    }
    last.map_or(rest.is_empty(), |piece| piece.is_empty() || line.ends_with(piece))
}

/// A line with all times and durations alike, and, `roughly`, all numbers.
fn steady(line: &str, roughly: bool) -> String {
    let time = Regex::new(r"\d{4}-\d\d-\d\d([T-]\d\d(:\d\d(:\d\d(\.\d+)?)?Z?)?)?").expect("a pattern");
    let duration = Regex::new(r"\d+(\.\d+)? (ms|s|min|h)\b").expect("a pattern");
    let line = time.replace_all(line.trim_end(), "TIME");
    let line = duration.replace_all(&line, "DURATION");
    let number = Regex::new(r"\d+(,\d\d\d)*").expect("a pattern");
    if !roughly {
        return line.into_owned();
    }
    // Columns are as wide as what is in them.
    let gap = Regex::new(" {2,}").expect("a pattern");
    gap.replace_all(&number.replace_all(&line, "NUMBER"), "  ").into_owned()
}

#[test]
fn transcripts_are_compared_but_for_times_and_what_is_left_out() {
    let says = |document: &[&str], output: &str| {
        agrees(&document.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>(), output, false)
    };
    assert!(says(&["a  in/2026-11-21-09.txt after 3 s"], "a  in/2026-11-23-11.txt after 41.5 s\n"));
    assert!(says(&["first", "…", "last"], "first\nx\ny\nlast\n") && says(&["pid … ended"], "pid 7 ended\n"));
    assert!(!says(&["3 jobs"], "4 jobs\n") && !says(&["one"], "one\ntwo\n") && !says(&["one", "two"], "one\n"));
    assert!(!says(&["pid … ended"], "pid 7 ended badly\n"));
}
