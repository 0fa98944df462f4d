//! Check values: a number in each row that is computed from its other columns, so that corruption on disk is noticed
//! when the row is read.

use std::cell::RefCell;

use rusqlite::types::ValueRef;
use rusqlite::{Row, Statement};

use super::fault::Fault;

/// The columns of a row, as they are summed up. Nulls at the end add nothing: a column that a later schema puts there leaves the check
/// values of old rows as they are, where it is null in them.
#[derive(Debug, Default)]
pub(super) struct Sum {
    bytes: Vec<u8>,
    /// Nulls since the last value.
    nulls: usize,
}

impl Sum {
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.nulls = 0;
    }

    pub(super) fn number(&mut self, value: Option<i64>) {
        match value {
            None => self.nulls += 1,
            Some(value) => self.add(1, &value.to_le_bytes()),
        }
    }

    pub(super) fn text(&mut self, value: Option<&str>) {
        match value {
            None => self.nulls += 1,
            Some(value) => self.sized(3, value.as_bytes()),
        }
    }

    pub(super) fn bytes(&mut self, value: &[u8]) {
        self.sized(4, value);
    }

    fn sized(&mut self, kind: u8, bytes: &[u8]) {
        self.add(kind, &(bytes.len() as u64).to_le_bytes());
        self.bytes.extend(bytes);
    }

    fn add(&mut self, kind: u8, bytes: &[u8]) {
        self.bytes.extend(std::iter::repeat_n(0, self.nulls));
        self.nulls = 0;
        self.bytes.push(kind);
        self.bytes.extend(bytes);
    }

    pub(super) fn value(&mut self, value: ValueRef<'_>) {
        match value {
            ValueRef::Null => self.number(None),
            ValueRef::Integer(value) => self.number(Some(value)),
            ValueRef::Text(text) => self.sized(3, text),
            // No column of ours holds one.
            ValueRef::Real(value) => self.sized(2, &value.to_le_bytes()),
            ValueRef::Blob(bytes) => self.bytes(bytes),
        }
    }

    /// The check value. Never change how it is made: old databases hold it.
    pub(super) fn check_value(&self) -> i64 {
        crc32fast::hash(&self.bytes).into()
    }
}

/// Binds the columns of a row to a statement, one after the other, and sums them up on the way.
pub(super) struct Binding<'a, 'c> {
    statement: &'a mut Statement<'c>,
    sum: &'a mut Sum,
    index: usize,
}

impl<'a, 'c> Binding<'a, 'c> {
    pub(super) fn new(statement: &'a mut Statement<'c>, sum: &'a mut Sum) -> Self {
        sum.clear();
        Self { statement, sum, index: 0 }
    }

    pub(super) fn number(&mut self, value: impl Into<Option<i64>>) -> Result<&mut Self, Fault> {
        let value = value.into();
        self.index += 1;
        self.statement.raw_bind_parameter(self.index, value)?;
        self.sum.number(value);
        Ok(self)
    }

    pub(super) fn text<'t>(&mut self, value: impl Into<Option<&'t str>>) -> Result<&mut Self, Fault> {
        let value = value.into();
        self.index += 1;
        self.statement.raw_bind_parameter(self.index, value)?;
        self.sum.text(value);
        Ok(self)
    }

    pub(super) fn bytes(&mut self, value: &[u8]) -> Result<&mut Self, Fault> {
        self.index += 1;
        self.statement.raw_bind_parameter(self.index, value)?;
        self.sum.bytes(value);
        Ok(self)
    }

    /// Binds the check value of the columns up to here, and begins another one.
    pub(super) fn check_value(&mut self) -> Result<&mut Self, Fault> {
        self.index += 1;
        self.statement.raw_bind_parameter(self.index, self.sum.check_value())?;
        self.sum.clear();
        Ok(self)
    }

    /// Sums a number up that was bound before.
    pub(super) fn again(&mut self, value: i64) -> &mut Self {
        self.sum.number(Some(value));
        self
    }

    /// Executes the statement and returns the number of changed rows.
    pub(super) fn execute(&mut self) -> Result<usize, Fault> {
        Ok(self.statement.raw_execute()?)
    }
}

/// The check value that these columns of a row make.
pub(super) fn made_of(row: &Row<'_>, columns: impl IntoIterator<Item = usize>) -> Result<i64, Fault> {
    thread_local! {
        static SUM: RefCell<Sum> = RefCell::default();
    }
    SUM.with_borrow_mut(|sum| {
        sum.clear();
        for column in columns {
            sum.value(row.get_ref(column)?);
        }
        Ok(sum.check_value())
    })
}

/// Whether columns of a row agree with the check value in another one. A row without any was last written before there were any.
pub(super) fn agrees(row: &Row<'_>, columns: impl IntoIterator<Item = usize>, check: usize) -> Result<bool, Fault> {
    match row.get_ref(check)? {
        ValueRef::Null => Ok(true),
        ValueRef::Integer(kept) => Ok(made_of(row, columns)? == kept),
        _ => Ok(false),
    }
}

/// Fails when columns of a row do not agree with the check value in another one; `what` begins with the kind of row.
pub(super) fn test(
    row: &Row<'_>,
    columns: impl IntoIterator<Item = usize>,
    check: usize,
    what: &str,
) -> Result<(), Fault> {
    if agrees(row, columns, check)? {
        return Ok(());
    }
    Err(Fault::Damaged(disagreement(what, &first_values(row))))
}

/// The message for a row that doesn't match its check value.
pub(super) fn disagreement(what: &str, values: &str) -> String {
    format!("{what} beginning with ({values}) does not agree with its check value: it changed by itself")
}

/// The first columns of a row, to find it by. They may be what is wrong.
pub(super) fn first_values(row: &Row<'_>) -> String {
    let shown = |column| match row.get_ref(column) {
        Ok(ValueRef::Integer(value)) => value.to_string(),
        Ok(ValueRef::Text(text)) => format!("{:?}", String::from_utf8_lossy(text).chars().take(60).collect::<String>()),
        _ => "null".to_owned(),
    };
    (0..3).map(shown).collect::<Vec<_>>().join(", ")
}

/// The check value of a row whose first columns it is made of, with some of them changed and others put after them.
pub(super) fn checked<'a>(
    row: &'a Row<'_>,
    columns: usize,
    new: impl Fn(usize) -> Option<ValueRef<'a>>,
    after: impl IntoIterator<Item = ValueRef<'a>>,
) -> Result<Option<i64>, Fault> {
    let kept = row.get::<_, Option<i64>>(columns)?;
    if kept.is_none() || !agrees(row, 0..columns, columns)? {
        return Ok(kept);
    }
    let mut sum = Sum::default();
    for column in 0..columns {
        match new(column) {
            Some(value) => sum.value(value),
            None => sum.value(row.get_ref(column)?),
        }
    }
    after.into_iter().for_each(|value| sum.value(value));
    Ok(Some(sum.check_value()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_value_of_a_row_stays_what_it_is() {
        let mut sum = Sum::default();
        sum.number(Some(-5));
        sum.text(None);
        sum.text(Some("a"));
        sum.number(None);
        sum.text(None);
        let bytes = [1, 251, 255, 255, 255, 255, 255, 255, 255, 0, 3, 1, 0, 0, 0, 0, 0, 0, 0, b'a'];
        assert_eq!(sum.check_value(), i64::from(crc32fast::hash(&bytes)));
    }

    #[test]
    fn texts_side_by_side_are_told_apart() {
        let of = |texts: &[&str]| {
            let mut sum = Sum::default();
            texts.iter().for_each(|text| sum.text(Some(text)));
            sum.check_value()
        };
        assert_ne!(of(&["ab", "c"]), of(&["a", "bc"]));
        assert_ne!(of(&["", "a"]), of(&["a", ""]));
    }
}
