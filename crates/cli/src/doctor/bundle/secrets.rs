//! The values on this machine that are known to be secret, so that they can be masked wherever they stand. The allow-lists do without
//! them; this is the second line of defence.

use std::collections::BTreeSet;

use jiff::{Timestamp, civil};
use kelos_model::register::{ALERTS_BUCKET, HISTORY_BUCKET, TELEMETRY_BUCKET, WORKERS_BUCKET};
use kelos_store::{Register, RegisterKeys, StoredState};
use kelos_store_sqlite::SqliteStore;
use serde_json::Value;

use super::redaction::place;
use crate::access::{OWNER, SESSIONS};
use crate::doctor::installation::Installation;
use crate::doctor::readings::Readings;
use crate::location::{Location, SERVER_JSON};

/// Parts of the names of variables that hold secrets.
const SECRET_NAMES: [&str; 6] = ["SECRET", "TOKEN", "PASSWORD", "PASSWD", "CREDENTIAL", "KEY"];
/// The ends of the names of fields that hold secrets, without what is neither letter nor digit.
const SECRET_FIELDS: [&str; 8] =
    ["SECRET", "TOKEN", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "APIKEY", "ACCESSKEY"];
/// The buckets of Kelos itself that have states, times, names and positions in them, and no secrets.
const WITHOUT_SECRETS: [&str; 3] = [ALERTS_BUCKET, HISTORY_BUCKET, TELEMETRY_BUCKET];
/// The register of the groups of the board: names of groups and workflows.
const GROUPS: (&str, &str) = ("kelos", "board-groups");
/// Longest word of letters alone that is taken for an ordinary one.
const LONGEST_WORD: usize = 12;
/// The beginnings of the names of variables that Kelos reads.
const READ: [&str; 2] = ["KELOS_", "STOLOS_"];

/// The values that are known to be secret, or may be; the names of workflows, projects and files are not.
pub(super) fn known(installation: &Installation, readings: &Readings, names: &BTreeSet<String>) -> BTreeSet<String> {
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
        registers.iter().for_each(|register| of_register(register, names, &mut found));
    }
    found.retain(|value| !value.is_empty());
    found
}

/// Adds the texts of a register that may be secret. Buckets that are not known to have none, those of users and tokens among them, are taken
/// to have some.
fn of_register(register: &Register, names: &BTreeSet<String>, found: &mut BTreeSet<String>) {
    let Register { bucket, key, value } = register;
    if WITHOUT_SECRETS.contains(&bucket.as_str()) || (bucket.as_str(), key.as_str()) == GROUPS {
        return;
    }
    let is_of_workers = bucket == WORKERS_BUCKET;
    texts_of(value, key, &mut |field, text| {
        let is_taken = match is_of_workers {
            // Names, versions and labels, and the address to which outputs are copied.
            true => text.contains("://") && place(text) != text,
            false => is_of_secrets(field) || !is_ordinary(text, names),
        };
        if is_taken {
            found.insert(text.to_owned());
        }
    });
}

/// Calls a function with each text in a value, and the name of the field that it is in.
fn texts_of(value: &Value, field: &str, call: &mut impl FnMut(&str, &str)) {
    match value {
        Value::String(text) => call(field, text),
        Value::Array(items) => items.iter().for_each(|item| texts_of(item, field, call)),
        Value::Object(fields) => fields.iter().for_each(|(field, value)| texts_of(value, field, call)),
        _ => {}
    }
}

/// Whether a field of this name holds a secret, whatever that looks like.
fn is_of_secrets(field: &str) -> bool {
    let name: String = field.chars().filter(char::is_ascii_alphanumeric).collect();
    SECRET_FIELDS.iter().any(|end| name.to_ascii_uppercase().trim_end_matches('S').ends_with(end))
}

/// Whether a text is no secret by its form: the name of something, a word, or a time. If it were masked, it would be missing in messages and
/// names that have nothing to do with the register.
fn is_ordinary(text: &str, names: &BTreeSet<String>) -> bool {
    let is_time = || text.parse::<Timestamp>().is_ok() || text.parse::<civil::DateTime>().is_ok();
    names.contains(text) || is_word(text) || is_time()
}

/// Whether a text is a short word, in small or capital letters or with the first one as a capital.
fn is_word(text: &str) -> bool {
    let rest = text.get(1..).unwrap_or_default();
    let is_of_one_case = rest.chars().all(|letter| letter.is_ascii_lowercase())
        || text.chars().all(|letter| letter.is_ascii_uppercase());
    text.len() <= LONGEST_WORD && text.chars().all(|letter| letter.is_ascii_alphabetic()) && is_of_one_case
}

/// The names of the variables that Kelos reads and that are set.
pub(super) fn variables() -> Value {
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let names: BTreeSet<String> = names.filter(|name| READ.iter().any(|begin| name.starts_with(begin))).collect();
    names.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(bucket: &str, value: Value) -> Vec<String> {
        let (register, names) = (Register { bucket: bucket.to_owned(), key: "k".to_owned(), value }, "nightly-sums-2");
        let mut found = BTreeSet::new();
        of_register(&register, &BTreeSet::from([names.to_owned()]), &mut found);
        found.into_iter().collect()
    }

    #[test]
    fn texts_of_registers_that_may_be_secret_are_found_at_any_depth() {
        let value =
            json!({"a": ["b1", {"c": "correct horse"}], "e": 1, "url": "https://u:p@h/x", "long": "incomprehensible"});
        assert_eq!(found("b", value), ["b1", "correct horse", "https://u:p@h/x", "incomprehensible"]);
        // A bucket of Kelos that is not known has secrets, too.
        assert_eq!(found("kelos.future", json!("aB3")), ["aB3"]);
        assert_eq!(found("b", json!("xYzzyPlugh")), ["xYzzyPlugh"], "no word is written like that");
    }

    #[test]
    fn records_of_users_and_tokens_have_secrets_beside_words() {
        let user = json!({"roles": ["operate"], "password": "$argon2id$v=19$abc"});
        assert_eq!(found("kelos.access", user), ["$argon2id$v=19$abc"]);
        let token = json!({"name": "prometheus", "digest": "0f".repeat(32), "madeAt": "2026-01-01T00:00:00Z"});
        assert_eq!(found("kelos.access", token), ["0f".repeat(32)]);
    }

    #[test]
    fn a_word_is_secret_only_in_a_field_of_secrets() {
        let value =
            json!({"state": "failed", "Mode": "PAUSED", "of": "Running", "sortKey": "orders", "tokens": ["swordfish"]});
        assert_eq!(found("b", value), ["swordfish"]);
        assert_eq!(
            found("b", json!({"db_password": "swordfish", "api-key": "opensesame"})),
            ["opensesame", "swordfish"]
        );
    }

    #[test]
    fn names_and_times_are_no_secrets() {
        let value = json!(["nightly-sums-2", "2026-03-01", "2026-03-01T00:00Z", "2026-03-01T00:00:00"]);
        assert_eq!(found("b", value), Vec::<String>::new());
    }

    #[test]
    fn buckets_of_kelos_have_no_secrets_but_those_of_users_and_in_addresses() {
        let book = json!({"open": [{"state": "failed", "output": ["exited with status 3"], "slot": "load@2026"}]});
        for bucket in WITHOUT_SECRETS {
            assert_eq!(found(bucket, book.clone()), Vec::<String>::new());
        }
        let worker = |outputs: &str| json!({"host": "worker-17", "version": "0.10.0", "outputs": outputs});
        assert_eq!(found(WORKERS_BUCKET, worker("s3://outputs/kelos")), Vec::<String>::new());
        assert_eq!(found(WORKERS_BUCKET, worker("s3://u:p@outputs/kelos")), ["s3://u:p@outputs/kelos"]);
        let mut kept = BTreeSet::new();
        let (bucket, key) = (GROUPS.0.to_owned(), GROUPS.1.to_owned());
        of_register(&Register { bucket, key, value: json!([{"name": "Sales 2026"}]) }, &BTreeSet::new(), &mut kept);
        assert_eq!(kept, BTreeSet::new());
    }
}
