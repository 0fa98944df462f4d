//! What a function gives, as what a run gives: a JSON object.

use kelos_model::SlotRef;
use kelos_model::flow::formatted_key;
use kelos_model::run::{LARGEST_GIVEN, beyond_largest};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::finite::has_odd_number;

/// The name under which what is no struct is given.
pub(super) const OUTPUT: &str = "output";

/// An output that can't be read. Messages complete "failed to …".
///
/// ```
/// # use kelos::embed::{Context, Project, job};
/// # async fn greet(_: Context, name: String, _: ()) -> Result<String, String> { Ok(format!("hello {name}")) }
/// # let greet = job("greet", greet).with(()).on_demand();
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// let running = Project::new("hello", "1.0").add(greet).start().await?;
/// let ended = running.run("greet", &"Ann").await?;
/// assert!(ended.output::<u32>().is_err_and(|error| error.to_string().starts_with("read the output of greet@")));
/// # running.stop().await;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// The run gave nothing.
    #[error("read the output of {0}: it gave none")]
    Absent(String),
    /// The output is of another type.
    #[error("read the output of {slot}: {source}")]
    Unfit {
        /// The slot.
        slot: String,
        /// The reason.
        source: serde_json::Error,
    },
}

/// The stored form of an output; none of `()`. What is no object stands under a name, which of a step is its own.
///
/// # Errors
/// In words, when it can't be JSON, or is too large to be kept.
pub(super) fn of<T: Serialize>(given: &T, slot: &SlotRef) -> Result<Option<Map<String, Value>>, String> {
    let value = serde_json::to_value(given).map_err(|error| format!("its output can't be JSON: {error}"))?;
    if has_odd_number(given) {
        return Err("its output can't be JSON: a number is not finite; return an `Option`".to_owned());
    }
    let name = || slot.key.step().map_or_else(|| OUTPUT.to_owned(), |step| formatted_key(step.step()));
    let object = match value {
        Value::Null => return Ok(None),
        Value::Object(object) => object,
        other => Map::from_iter([(name(), other)]),
    };
    match beyond_largest(&object) {
        None => Ok(Some(object)),
        Some(bytes) => Err(format!(
            "its output has {bytes} bytes as JSON, expected {LARGEST_GIVEN} at the most: store it elsewhere and return its place"
        )),
    }
}

/// Reads what [`of`] made.
pub(super) fn read<T: DeserializeOwned>(slot: &str, outputs: Option<&Map<String, Value>>) -> Result<T, OutputError> {
    let unfit = |source| OutputError::Unfit { slot: slot.to_owned(), source };
    let Some(outputs) = outputs else {
        // A type that asks for nothing takes nothing.
        return serde_json::from_value(Value::Null).map_err(|_| OutputError::Absent(slot.to_owned()));
    };
    match serde_json::from_value(Value::Object(outputs.clone())) {
        Ok(read) => Ok(read),
        Err(source) => match outputs.get(OUTPUT) {
            Some(one) if outputs.len() == 1 => serde_json::from_value(one.clone()).map_err(unfit),
            _ => Err(unfit(source)),
        },
    }
}

/// The same where the one value of an object may have any name.
pub(super) fn read_any<T: DeserializeOwned>(who: &str, outputs: Option<&Map<String, Value>>) -> Result<T, OutputError> {
    let whole = read(who, outputs);
    match (whole, outputs.filter(|outputs| outputs.len() == 1).and_then(|outputs| outputs.values().next())) {
        (Err(OutputError::Unfit { slot, source }), Some(one)) => {
            serde_json::from_value(one.clone()).map_err(|_| OutputError::Unfit { slot, source })
        }
        (whole, _) => whole,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of<T: Serialize>(given: &T) -> Result<Option<Map<String, Value>>, String> {
        super::of(given, &"s@~1".parse().unwrap())
    }

    #[test]
    fn what_a_step_gives_stands_under_its_name() {
        let given = super::of(&7, &"s@.order-42.load-all:3".parse().unwrap()).unwrap().unwrap();
        assert_eq!(given, Map::from_iter([("load_all".to_owned(), Value::from(7))]));
    }

    #[test]
    fn what_is_given_is_read_back() {
        assert_eq!(read::<u32>("s", of(&7_u32).unwrap().as_ref()).unwrap(), 7);
        assert_eq!(read::<Vec<u8>>("s", of(&vec![1_u8, 2]).unwrap().as_ref()).unwrap(), [1, 2]);
        let map = Map::from_iter([("rows".to_owned(), Value::from(3))]);
        assert_eq!(read::<Map<String, Value>>("s", of(&map).unwrap().as_ref()).unwrap(), map);
        assert_eq!(of(&()).unwrap(), None);
        read::<()>("s", None).unwrap();
        assert_eq!(read::<u32>("s", None).unwrap_err().to_string(), "read the output of s: it gave none");
    }

    #[test]
    fn a_number_that_is_none_is_no_output() {
        let words = "its output can't be JSON: a number is not finite; return an `Option`";
        assert_eq!(of(&f64::NAN).unwrap_err(), words);
        assert_eq!(of(&vec![1.0, f64::INFINITY]).unwrap_err(), words);
        assert_eq!(of(&None::<f64>).unwrap(), None);
    }

    #[test]
    fn too_much_is_refused_with_what_to_do() {
        let words = of(&"x".repeat(100 << 20)).unwrap_err();
        assert!(words.starts_with("its output has 104857") && words.ends_with("return its place"), "{words}");
    }
}
