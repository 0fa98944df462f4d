//! Tables, marks and colours.

use std::io::IsTerminal;

use comfy_table::{Attribute, Cell, Color, ContentArrangement, Table, presets};

/// Whether the terminal's language settings promise UTF-8.
pub(crate) fn unicode() -> bool {
    let set = ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .filter_map(|name| std::env::var(name).ok())
        .find(|set| !set.is_empty());
    set.is_some_and(|set| {
        let set = set.to_ascii_lowercase();
        set.contains("utf-8") || set.contains("utf8")
    })
}

/// Whether output is coloured: on a terminal, unless `NO_COLOR` says otherwise.
pub(crate) fn coloured() -> bool {
    std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|set| set.is_empty())
}

/// A plain table with a heading; no lines, so that it can be cut and counted.
pub(crate) fn table(headings: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    // A pipe gets every row on one line, however long.
    table.set_content_arrangement(if std::io::stdout().is_terminal() {
        ContentArrangement::Dynamic
    } else {
        ContentArrangement::Disabled
    });
    if !coloured() {
        table.force_no_tty();
    }
    table.set_header(headings.iter().map(|heading| Cell::new(heading).add_attribute(Attribute::Bold)));
    table
}

/// Prints a table, flush with the margin.
pub(crate) fn print(mut table: Table) {
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    for line in table.lines() {
        crate::text::line(line.trim_end());
    }
}

/// A state in the colour that it has everywhere.
pub(crate) fn state(name: &str) -> Cell {
    let cell = Cell::new(name);
    match colour(name) {
        Some(colour) => cell.fg(colour),
        None => cell,
    }
}

fn colour(state: &str) -> Option<Color> {
    match state {
        "succeeded" => Some(Color::Green),
        "failed" | "expired" | "killed" => Some(Color::Red),
        "running" | "dispatched" | "queued" => Some(Color::Yellow),
        "waiting" | "held" | "backoff" => Some(Color::Blue),
        _ => None,
    }
}

/// A text in the colour of a state.
pub(crate) fn paint(text: &str, state: &str) -> String {
    if !coloured() {
        return text.to_owned();
    }
    let code = match colour(state) {
        Some(Color::Green) => "32",
        Some(Color::Red) => "31",
        Some(Color::Yellow) => "33",
        Some(Color::Blue) => "34",
        _ => return text.to_owned(),
    };
    format!("\x1b[{code}m{text}\x1b[0m")
}

/// The mark of a trigger's answer.
pub(crate) fn mark(answer: &str) -> String {
    let (sign, plain, like) = match answer {
        "met" => ("✓", "+", "succeeded"),
        "never" => ("✗", "x", "failed"),
        _ => ("…", ".", "waiting"),
    };
    paint(if unicode() { sign } else { plain }, like)
}
