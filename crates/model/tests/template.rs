//! Templates: what is filled, and what stays as it is.

use jiff::Timestamp;
use kelos_model::SlotKey;
use kelos_model::template::{KeyValues, fill_from};
use proptest::prelude::*;

fn key(text: &str) -> KeyValues {
    KeyValues::at(SlotKey::parse(text).unwrap().time().unwrap())
}

fn fill(template: &str, values: &KeyValues) -> String {
    values.fill(template).into_owned()
}

#[test]
fn every_part_of_a_time_is_padded() {
    let all = "${year}|${month}|${day}|${hour}|${minute}|${second}|${millisecond}";
    assert_eq!(fill(all, &key("2016-01-02T03:04:05.006Z")), "2016|01|02|03|04|05|006");
    assert_eq!(fill(all, &key("0001-12-31T23:59:59.999Z")), "0001|12|31|23|59|59|999");
}

#[test]
fn all_occurrences_are_filled() {
    assert_eq!(fill("${day}${day}/${day}", &key("2016-01-02")), "0202/02");
}

#[test]
fn what_the_key_does_not_know_stays() {
    let strange =
        ["${wf:id()}", "${nameNode}", "${Year}", "${ year}", "$year", "{year}", "${", "${year", "$${", "}", "${}"];
    for text in strange {
        assert_eq!(fill(text, &key("2016-01-02")), text);
    }
}

#[test]
fn a_template_inside_something_unfinished_is_found() {
    assert_eq!(fill("${${year}}", &key("2016-01-02")), "${2016}");
    assert_eq!(fill("$${year}", &key("2016-01-02")), "$2016");
    assert_eq!(fill("${a ${year} ${hour", &key("2016-01-02")), "${a 2016 ${hour");
}

#[test]
fn a_value_is_not_filled_again() {
    let values = [("a", "${b}".to_owned()), ("b", "${a}".to_owned())];
    assert_eq!(fill_from("${a}${b}", &values), "${b}${a}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn text_without_a_template_stays(text in "[^$]{0,40}", ms in 0_i64..4_000_000_000_000) {
        let key = KeyValues::at(Timestamp::from_millisecond(ms).unwrap());
        prop_assert_eq!(fill(&text, &key), text.clone());
    }

    #[test]
    fn each_name_is_replaced_by_its_value(
        parts in prop::collection::vec(("[a-z/ü$-]{0,6}", 0_usize..7), 0..8),
        ms in 0_i64..4_000_000_000_000,
    ) {
        let key = KeyValues::at(Timestamp::from_millisecond(ms).unwrap());
        let values = key.named();
        let template: String = parts.iter().map(|(text, name)| format!("{text}${{{}}}", values[*name].0)).collect();
        let wanted: String = parts.iter().map(|(text, name)| format!("{text}{}", values[*name].1)).collect();
        prop_assert_eq!(fill(&template, &key), wanted);
    }

    #[test]
    fn whatever_comes_is_taken(template in "\\PC{0,40}") {
        let _ = fill(&template, &key("2016-01-02"));
    }
}
