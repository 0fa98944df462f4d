//! Mistakes in queries and paths, described for people.

use crate::fault::Fault;

/// The fault of a query, from the parser's message.
#[must_use]
pub fn bad_query(said: &str) -> Fault {
    let said = said.strip_prefix("Failed to deserialize query string: ").unwrap_or(said);
    // The name of an unknown parameter occurs twice, before the message and in it.
    let said = match said.split_once(": ") {
        Some((name, rest)) if rest.contains(&format!("`{name}`")) => rest,
        _ => said,
    };
    let said = said
        .replace("unknown field", "unknown query parameter")
        .replace("duplicate field", "repeated query parameter")
        .replace("there are no fields", "expected none");
    Fault::bad_request("bad-query", plain_words(&said))
}

/// The messages of the standard library about invalid texts, reworded to name what was expected.
#[must_use]
pub fn plain_words(said: &str) -> String {
    said.replace("invalid digit found in string", "expected a number of digits only")
        .replace("cannot parse integer from empty string", "expected a number")
        .replace("number too large to fit in target type", "expected a smaller number")
        .replace("provided string was not `true` or `false`", "expected true or false")
        .replace(" to a `u32`", ", expected a number")
}
