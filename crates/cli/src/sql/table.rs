//! Rows as a table, printed in parts: each part is as wide as its widest value, and no more is kept than one part.

use comfy_table::{Cell, ColumnConstraint, Width};
use kelos_store_sqlite::{SqlRows, SqlValue};

use super::outlet::{Outlet, OutletError};
use super::{Printer, plain};
use crate::render;

/// The most rows, and about the most bytes, of a part.
const ROWS: usize = 1000;
const BYTES: usize = 1 << 20;
/// The longest value that is printed whole, in characters.
const LONGEST: usize = 10_000;

/// Rows as a table.
pub(super) struct TablePrinter {
    out: Outlet,
    names: Vec<String>,
    /// The part that is not printed yet.
    part: Vec<Vec<String>>,
    bytes: usize,
    /// The widths of the columns of the first part; none before it is printed.
    widths: Option<Vec<u16>>,
}

impl TablePrinter {
    pub(super) fn new(out: Outlet) -> TablePrinter {
        TablePrinter { out, names: Vec::new(), part: Vec::new(), bytes: 0, widths: None }
    }

    /// Prints the part; false if no more is taken.
    fn print(&mut self) -> bool {
        self.bytes = 0;
        let rows = std::mem::take(&mut self.part);
        let headings: Vec<&str> = match &self.widths {
            None => self.names.iter().map(String::as_str).collect(),
            Some(_) => Vec::new(),
        };
        let mut table = render::table(&headings);
        table.add_rows(rows.into_iter().map(|row| row.into_iter().map(Cell::new).collect::<Vec<_>>()));
        match &self.widths {
            // With the two blanks that are printed after each column.
            None => self.widths = Some(table.column_max_content_widths().iter().map(|width| width + 2).collect()),
            Some(widths) => {
                let least = widths.iter().map(|width| ColumnConstraint::LowerBoundary(Width::Fixed(*width)));
                table.set_constraints(least);
            }
        }
        let text: String = render::lines(table).into_iter().map(|line| line + "\n").collect();
        self.out.takes(text.as_bytes())
    }
}

/// A value as it is printed in a table.
fn cell(value: &SqlValue) -> String {
    let long = match value {
        SqlValue::Text(text) => text.len(),
        SqlValue::Bytes(bytes) => bytes.len(),
        SqlValue::Null | SqlValue::Integer(_) | SqlValue::Real(_) => 0,
    };
    if long <= LONGEST {
        return plain(value, "–");
    }
    let start = match value {
        SqlValue::Text(text) => SqlValue::Text(text.chars().take(LONGEST).collect()),
        SqlValue::Bytes(bytes) => SqlValue::Bytes(bytes[..LONGEST / 2].to_vec()),
        other => other.clone(),
    };
    format!("{}… (cut: {long} bytes; --json prints all)", plain(&start, ""))
}

impl SqlRows for TablePrinter {
    fn columns(&mut self, names: &[String]) {
        self.names = names.iter().map(|name| name.to_uppercase()).collect();
    }

    fn row(&mut self, values: Vec<SqlValue>) -> bool {
        let row: Vec<String> = values.iter().map(cell).collect();
        self.bytes += row.iter().map(String::len).sum::<usize>();
        self.part.push(row);
        (self.part.len() < ROWS && self.bytes < BYTES) || self.print()
    }
}

impl Printer for TablePrinter {
    fn rows(&mut self) -> &mut dyn SqlRows {
        self
    }

    fn end(mut self: Box<Self>) -> Result<(), OutletError> {
        // A query that was refused has no columns.
        if !self.part.is_empty() || (self.widths.is_none() && !self.names.is_empty()) {
            self.print();
        }
        self.out.close(b"")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_values_are_cut() {
        assert_eq!(cell(&SqlValue::Text("ä".repeat(5000))).chars().count(), 5000);
        let cut = cell(&SqlValue::Text("ä".repeat(1_000_000)));
        assert!(cut.starts_with(&"ä".repeat(LONGEST)) && cut.ends_with("ä… (cut: 2000000 bytes; --json prints all)"));
        let cut = cell(&SqlValue::Bytes(vec![0xab; 1_000_000]));
        assert!(cut.starts_with(&"ab".repeat(LONGEST / 2)) && cut.len() < LONGEST + 100);
    }
}
