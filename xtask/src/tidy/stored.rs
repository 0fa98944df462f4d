//! Stored JSON is written by the stored forms of the store, never by serde of the model: a field that is renamed there
//! must not change a byte of a database.

use std::collections::BTreeSet;

use super::source::product;
use super::{Faults, Text, Tree};

const STORE: &str = "crates/store/src/";
const FORMS: &str = "crates/store/src/stored/";
/// The folders of the forms of all versions: `v1` and later ones.
const VERSIONS: &str = "crates/store/src/stored/v";
/// The places of tests of stores.
const TESTS: [&str; 3] = ["/suite/", "/tests/", "/tests.rs"];
/// Calls that turn values into JSON, and JSON into values.
const CALLS: [&str; 2] = ["serde_json::to_", "serde_json::from_"];

pub(super) fn check(tree: &Tree) -> Faults {
    let of_store = |file: &&Text| file.path.starts_with(STORE) && !TESTS.iter().any(|part| file.path.contains(part));
    let (forms, others): (Vec<&Text>, Vec<&Text>) =
        tree.ending(".rs").filter(of_store).partition(|file| file.path.starts_with(FORMS));
    let twins = forms.into_iter().filter(|file| file.path.starts_with(VERSIONS));
    others.into_iter().flat_map(calls).chain(twins.flat_map(bare_fields)).collect()
}

fn calls(file: &Text) -> Faults {
    let code = product(&file.text);
    let bad = code.lines().enumerate().filter(|(_, line)| CALLS.iter().any(|call| line.contains(call)));
    bad.map(|(n, _)| format!("{}:{}: JSON beside the stored forms: expected a call of `stored`", file.path, n + 1))
        .collect()
}

/// Fields of the model's types that have no form.
fn bare_fields(file: &Text) -> Faults {
    let types = types_of_the_model(&file.text);
    let (mut faults, mut in_item, mut field) = (Faults::new(), false, String::new());
    for (n, line) in file.text.lines().enumerate() {
        if !line.starts_with([' ', '}']) {
            in_item = (line.contains("struct ") || line.contains("enum ")) && line.ends_with('{');
            field.clear();
            continue;
        }
        field.push_str(line.trim());
        if !in_item || line.trim().starts_with("//") || !line.ends_with([',', '{', '}']) {
            continue;
        }
        let formed = field.contains("with = ");
        if !formed && words(type_of(line)).any(|word| types.contains(word)) {
            faults.push(format!("{}:{}: a type of the model without a form: {}", file.path, n + 1, line.trim()));
        }
        field.clear();
    }
    faults
}

/// The type of a field or a variant, in its line.
fn type_of(line: &str) -> &str {
    line.split_once(": ").or_else(|| line.split_once('(')).map_or("", |(_, rest)| rest)
}

fn types_of_the_model(text: &str) -> BTreeSet<&str> {
    let uses = text.split("\nuse kelos_model").skip(1).filter_map(|rest| rest.split(';').next());
    uses.flat_map(words).filter(|word| word.starts_with(char::is_uppercase)).collect()
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> Text {
        Text { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn json_beside_the_forms_is_found() {
        let bad =
            "fn a() {\n    serde_json::to_string(&slot);\n}\n#[cfg(test)]\nmod tests {\n serde_json::from_str(x);\n}";
        assert_eq!(calls(&file("crates/store/src/a.rs", bad)).len(), 1);
    }

    #[test]
    fn fields_of_the_model_without_a_form_are_found() {
        let text = "\nuse kelos_model::{Actor,\n    Fact};\nuse other::Thing;\n#[derive(Serialize)]\nenum StoredEvent {\n    \
            #[serde(with = \"As::<StoredFact>\")]\n    Fact(Fact),\n    Other {\n        thing: Thing,\n        by: Option<Actor>,\n    },\n}\n\
            fn read(actor: Actor) {\n    let one: Actor = actor,\n}\n";
        let found = bare_fields(&file("a.rs", text));
        assert_eq!(found, ["a.rs:11: a type of the model without a form: by: Option<Actor>,"]);
    }
}
