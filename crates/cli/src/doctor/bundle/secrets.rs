//! The values on this machine that are known to be secret, so that they can be masked wherever they stand. The allow-lists do without
//! them; this is the second line of defence.

use std::collections::BTreeSet;

use kelos_store::{RegisterKeys, StoredState};
use kelos_store_sqlite::SqliteStore;
use serde_json::Value;

use crate::access::{OWNER, SESSIONS};
use crate::doctor::installation::Installation;
use crate::doctor::readings::Readings;
use crate::location::{Location, SERVER_JSON};

/// Parts of the names of variables that hold secrets.
const SECRET_NAMES: [&str; 6] = ["SECRET", "TOKEN", "PASSWORD", "PASSWD", "CREDENTIAL", "KEY"];
/// The beginnings of the names of variables that Kelos reads.
const READ: [&str; 2] = ["KELOS_", "STOLOS_"];

/// The values that are known to be secret.
pub(super) fn known(installation: &Installation, readings: &Readings) -> BTreeSet<String> {
    let mut found: BTreeSet<String> = std::env::vars()
        .filter(|(name, _)| SECRET_NAMES.iter().any(|part| name.to_ascii_uppercase().contains(part)))
        .map(|(_, value)| value)
        .collect();
    if let Some(state) = &installation.state {
        let files = [OWNER, SESSIONS, kelos_checkpoints::KEY].map(|name| state.join(name));
        let texts = files.iter().chain(&installation.token_file).filter_map(|path| std::fs::read_to_string(path).ok());
        found.extend(texts.flat_map(|text| text.lines().map(|line| line.trim().to_owned()).collect::<Vec<_>>()));
        let location = Location::read(state).filter(|_| state.join(SERVER_JSON).exists());
        found.extend(location.and_then(|location| location.token).map(|token| token.to_string()));
    }
    if let Some(data) = &readings.data
        && let Ok(store) = SqliteStore::look(&data.path)
    {
        let registers = store.reader().registers(None, RegisterKeys::Prefix("")).unwrap_or_default();
        registers.iter().for_each(|register| texts_of(&register.value, &mut found));
    }
    found.retain(|value| !value.is_empty());
    found
}

/// All texts in a value.
fn texts_of(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::String(text) => {
            found.insert(text.clone());
        }
        Value::Array(items) => items.iter().for_each(|item| texts_of(item, found)),
        Value::Object(fields) => fields.values().for_each(|field| texts_of(field, found)),
        _ => {}
    }
}

/// The names of the variables that Kelos reads and that are set.
pub(super) fn variables() -> Value {
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let names: BTreeSet<String> = names.filter(|name| READ.iter().any(|begin| name.starts_with(begin))).collect();
    names.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_texts_of_a_register_are_found() {
        let mut found = BTreeSet::new();
        texts_of(&serde_json::json!({ "a": ["b", { "c": "d" }], "e": 1 }), &mut found);
        assert_eq!(found, BTreeSet::from(["b".to_owned(), "d".to_owned()]));
    }
}
