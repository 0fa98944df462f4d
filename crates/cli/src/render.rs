//! Tables, marks and colours.

use std::borrow::Cow;
use std::io::IsTerminal;

use comfy_table::{Attribute, Cell, Color, ContentArrangement, Row, Table, presets};

use crate::terminal::{BLUE, GREEN, RED, RESET, YELLOW, shown, with_colours};

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

/// A plain table with headings, if there are any; no lines, so that it can be cut and counted.
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
    if !headings.is_empty() {
        table.set_header(headings.iter().map(|heading| Cell::new(heading).add_attribute(Attribute::Bold)));
    }
    table
}

/// Prints a table, flush with the margin.
pub(crate) fn print(table: Table) {
    for line in lines(table) {
        crate::text::raw(&(line + "\n"));
    }
}

/// The lines of a table, flush with the margin.
pub(crate) fn lines(mut table: Table) -> Vec<String> {
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    for row in table.row_iter_mut() {
        let contents: Vec<String> = row.cell_iter().map(Cell::content).collect();
        if contents.iter().any(|content| matches!(shown(content), Cow::Owned(_))) {
            *row = Row::from(contents.iter().map(|content| Cell::new(shown(content))).collect::<Vec<_>>());
        }
    }
    table.lines().map(|line| with_colours(line.trim_end())).collect()
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

/// A text in the colour of a state, once it is printed.
pub(crate) fn paint(text: &str, state: &str) -> String {
    let colour = match colour(state) {
        Some(Color::Green) => GREEN,
        Some(Color::Red) => RED,
        Some(Color::Yellow) => YELLOW,
        Some(Color::Blue) => BLUE,
        _ => return text.to_owned(),
    };
    if coloured() { format!("{colour}{text}{RESET}") } else { text.to_owned() }
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
