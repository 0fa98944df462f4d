//! An error that carries data.

use std::error::Error;
use std::fmt;

use kelos_model::SlotRef;
use serde::Serialize;
use serde_json::{Map, Value};

use super::output;

/// An error that carries data: the run fails, and keeps the data as its output. In a flow the [error step](super::Part::or_else) is given
/// it. Boxed or as the cause of another error it is found as well.
///
/// ```
/// use kelos::embed::{Context, Failure, step};
/// use serde_json::{Value, json};
///
/// async fn pay(_: Context, order: Value, _: ()) -> Result<(), Failure> {
///     let amount = order["amount"].as_u64().ok_or_else(|| Failure::new("expected an amount"))?;
///     if amount < 100 { Ok(()) } else { Err(Failure::new("no money").with(json!({ "missing": amount - 100 }))) }
/// }
///
/// let pay = step("pay", pay).with(());
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    words: String,
    data: Result<Value, String>,
}

impl Failure {
    /// An error in words.
    ///
    /// ```
    /// assert_eq!(kelos::embed::Failure::new("no money").to_string(), "no money");
    /// ```
    #[must_use]
    pub fn new(words: impl Into<String>) -> Failure {
        Failure { words: words.into(), data: Ok(Value::Null) }
    }

    /// The same with data.
    ///
    /// ```
    /// use kelos::embed::Failure;
    ///
    /// let failure = Failure::new("no money").with(serde_json::json!({ "code": 402 }));
    /// ```
    #[must_use]
    pub fn with(self, data: impl Serialize) -> Failure {
        Failure { data: serde_json::to_value(data).map_err(|error| error.to_string()), ..self }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)
    }
}

impl Error for Failure {}

/// The data of an error, or of the first of its causes that has some, as the run of a slot keeps it.
///
/// # Errors
/// In words, when it can't be kept.
pub(super) fn data_of(error: &(dyn Error + 'static), slot: &SlotRef) -> Result<Option<Map<String, Value>>, String> {
    let mut error = Some(error);
    while let Some(one) = error {
        match one.downcast_ref::<Failure>().map(|failure| &failure.data) {
            Some(Ok(data)) => return output::of(data, slot),
            Some(Err(reason)) => return Err(format!("its data can't be JSON: {reason}")),
            None => error = one.source(),
        }
    }
    Ok(None)
}
