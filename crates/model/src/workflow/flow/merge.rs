//! The merge of what is given: to a step its default inputs, the arguments of the run, and the outputs of the steps before it; to a slot
//! the outputs of the slots that it depends on.
//!
//! The rules are those that the documentation of Cuttle states. Only the first level is merged. A name that several give becomes an
//! object with the value of each under the name of the step or workflow that gave it; a default of the step itself stands under the step's
//! own name. Then letters that are no part of a plain name become underscores, also in objects within.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::step_name::StepName;

/// Collects what a step or a slot is given, by the names of the steps or workflows that give it.
#[derive(Debug, Clone)]
pub struct InputMerge<'a> {
    own: &'a str,
    values: Map<String, Value>,
    /// The giver of the value of each name, if it is one alone so far.
    givers: BTreeMap<String, Option<&'a str>>,
}

/// A step that failed, as the step that handles it is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedStep<'a> {
    /// Its name.
    pub step: &'a StepName,
    /// The error in words.
    pub error: String,
}

impl<'a> InputMerge<'a> {
    /// Begins with the default inputs of a step. An argument of the run of the same name stands in for a default.
    #[must_use]
    pub fn new(own: &'a str, defaults: &Map<String, Value>, arguments: &Map<String, Value>) -> InputMerge<'a> {
        let is_kept = |(name, _): &(&String, &Value)| !arguments.contains_key(*name);
        let values: Map<String, Value> =
            defaults.iter().filter(is_kept).map(|(name, value)| (name.clone(), value.clone())).collect();
        let givers = values.keys().map(|name| (name.clone(), Some(own))).collect();
        InputMerge { own, values, givers }
    }

    /// Adds the outputs of a step or a slot before it.
    pub fn add(&mut self, from: &'a str, outputs: &Map<String, Value>) {
        for (name, value) in outputs {
            self.add_value(from, name, value.clone());
        }
    }

    fn add_value(&mut self, from: &'a str, name: &str, value: Value) {
        match self.givers.get(name).copied() {
            None => {
                self.values.insert(name.to_owned(), value);
                self.givers.insert(name.to_owned(), Some(from));
            }
            Some(giver) => {
                let before = self.values.remove(name).unwrap_or_default();
                let mut all = match (giver, before) {
                    (None, Value::Object(all)) => all,
                    (giver, before) => {
                        let giver = giver.unwrap_or(self.own);
                        Map::from_iter([(giver.to_owned(), before)])
                    }
                };
                all.insert(from.to_owned(), value);
                self.values.insert(name.to_owned(), Value::Object(all));
                self.givers.insert(name.to_owned(), None);
            }
        }
    }

    /// Says which steps failed, and why: `failed` is the first of them, `error` what went wrong there, and `errors` has all.
    pub fn fail(&mut self, failed: &[FailedStep<'_>]) {
        let Some(first) = failed.first() else { return };
        let text = |text: &str| Value::String(text.to_owned());
        let all = failed.iter().map(|one| (one.step.to_string(), text(&one.error)));
        self.values.insert("errors".to_owned(), Value::Object(all.collect()));
        self.values.insert("error".to_owned(), text(&first.error));
        self.values.insert("failed".to_owned(), text(first.step.as_str()));
    }

    /// The inputs: with the arguments of the run under the names that nobody gave.
    #[must_use]
    pub fn finish(mut self, arguments: &Map<String, Value>) -> Map<String, Value> {
        for (name, value) in arguments {
            if !self.values.contains_key(name) {
                self.values.insert(name.clone(), value.clone());
            }
        }
        formatted(self.values)
    }
}

/// The outputs of one of several in a list that has a name. One that gave one value under that name gave that value.
#[must_use]
pub fn listed_outputs(name: &str, outputs: &Map<String, Value>) -> Value {
    match outputs.get(name).filter(|_| outputs.len() == 1) {
        Some(value) => value.clone(),
        None => Value::Object(outputs.clone()),
    }
}

/// The same with formatted keys, also of objects within, but not of those in lists. Of several keys that become the same, the one that
/// is written so counts, or else the last of them in the order of their letters.
#[must_use]
pub fn formatted(values: Map<String, Value>) -> Map<String, Value> {
    let mut all = Map::new();
    let mut written: BTreeMap<String, String> = BTreeMap::new();
    for (key, value) in values {
        let name = formatted_key(&key);
        let rank = |key: &str| (key == name, key.to_owned());
        if written.get(&name).is_some_and(|before| rank(before) > rank(&key)) {
            continue;
        }
        let value = match value {
            Value::Object(inner) => Value::Object(formatted(inner)),
            other => other,
        };
        written.insert(name.clone(), key);
        all.insert(name, value);
    }
    all
}

/// A key with an underscore in the place of each run of white space and of `. - * + ? $ ^ / \` and the backtick.
#[must_use]
pub fn formatted_key(key: &str) -> String {
    let mut all = String::with_capacity(key.len());
    let mut is_within = false;
    for letter in key.chars() {
        let is_other = letter.is_whitespace() || ".-*+?$`^/\\".contains(letter);
        if is_other && !is_within {
            all.push('_');
        } else if !is_other {
            all.push(letter);
        }
        is_within = is_other;
    }
    all
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn name(text: &str) -> StepName {
        text.parse().unwrap()
    }

    fn map(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    fn merged(own: Value, arguments: Value, parents: &[(&str, Value)]) -> Value {
        let (step, names) = (name("job-final"), parents.iter().map(|(step, _)| name(step)).collect::<Vec<_>>());
        let mut input = InputMerge::new(step.as_str(), &map(own), &map(arguments.clone()));
        for (from, (_, outputs)) in names.iter().zip(parents) {
            input.add(from.as_str(), &map(outputs.clone()));
        }
        Value::Object(input.finish(&map(arguments)))
    }

    #[test]
    fn what_several_give_is_labelled_by_who_gave_it() {
        let [two, four] = [("job2", json!({"newval": 2, "a": 1})), ("job4", json!({"newval": 4, "b.c": 1}))];
        let both = json!({"a": 1, "b_c": 1, "newval": {"job2": 2, "job4": 4}});
        assert_eq!(merged(json!({}), json!({}), &[two.clone(), four.clone()]), both);
        let with_own = json!({"a": 1, "b_c": 1, "newval": {"job_final": 0, "job2": 2, "job4": 4}});
        assert_eq!(merged(json!({"newval": 0}), json!({}), &[two.clone(), four]), with_own);
        // A value that happens to be an object is not taken for one of several.
        let object = [("x", json!({"v": {"a": 1}})), ("y", json!({"v": {"b": 2}})), ("z", json!({"v": 3}))];
        assert_eq!(merged(json!({}), json!({}), &object), json!({"v": {"x": {"a": 1}, "y": {"b": 2}, "z": 3}}));
    }

    #[test]
    fn arguments_stand_in_for_defaults_and_not_for_outputs() {
        let one = [("a", json!({"rows": 3}))];
        let day = json!({"day": "2026-11-21", "rows": 0});
        assert_eq!(merged(json!({"day": "today", "n": 1}), day, &one), json!({"day": "2026-11-21", "n": 1, "rows": 3}));
    }

    #[test]
    fn keys_are_formatted_at_every_level_but_in_lists() {
        for (key, formatted) in [
            ("something-else", "something_else"),
            ("a. -b", "a_b"),
            ("step-one", "step_one"),
            ("a`$^/\\?", "a_"),
            ("ü:b", "ü:b"),
        ] {
            assert_eq!(formatted_key(key), formatted);
        }
        let given = [("a", json!({"x-y": {"p.q": [{"r-s": 1}]}}))];
        assert_eq!(merged(json!({}), json!({}), &given), json!({"x_y": {"p_q": [{"r-s": 1}]}}));
    }

    #[test]
    fn of_keys_that_become_the_same_the_one_that_is_written_so_counts() {
        let (plain, other, third) = (("a", json!({"x_y": 1})), ("b", json!({"x-y": 2})), ("c", json!({"x.y": 3})));
        for given in [[plain.clone(), other.clone()], [other.clone(), plain]] {
            assert_eq!(merged(json!({}), json!({}), &given), json!({"x_y": 1}));
        }
        for given in [[third.clone(), other.clone()], [other, third]] {
            assert_eq!(merged(json!({}), json!({}), &given), json!({"x_y": 3}), "the last by its letters");
        }
    }

    #[test]
    fn an_error_step_is_told_what_failed_and_why() {
        let [step, pay] = ["sorry", "pay"].map(name);
        let mut input = InputMerge::new(step.as_str(), &Map::new(), &Map::new());
        input.add(pay.as_str(), &map(json!({"code": 402})));
        input.fail(&[FailedStep { step: &pay, error: "no money".to_owned() }]);
        let told = json!({"code": 402, "failed": "pay", "error": "no money", "errors": {"pay": "no money"}});
        assert_eq!(Value::Object(input.finish(&Map::new())), told);
    }
}
