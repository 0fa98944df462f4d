//! Both written forms of constraints: what is printed reads back as the same, and errors have their place.

use kelos_model::constraint::{Constraint, Gate, Otherwise};
use kelos_model::form::{CONSTRAINTS, Signature};
use kelos_model::time::{Window, Zone};
use proptest::prelude::*;
use serde_json::{Value, json};

fn window() -> impl Strategy<Value = Window> {
    let zone = prop::sample::select(vec!["UTC", "Asia/Tokyo", "PST", "Etc/GMT-5", "America/Port-au-Prince"]);
    let time = || (0_u8..24, 0_u8..60, any::<bool>());
    (time(), time(), zone).prop_filter_map("two different times", |(from, to, zone)| {
        let text = |(hour, minute, is_short): (u8, u8, bool)| match is_short {
            true => format!("{hour}:{minute:02}"),
            false => format!("{hour:02}:{minute:02}"),
        };
        Window::new(&text(from), &text(to), Zone::parse(zone).unwrap()).ok()
    })
}

fn constraint() -> impl Strategy<Value = Constraint> {
    let gate = prop_oneof![
        any::<u32>().prop_map(Gate::Concurrency),
        any::<u64>().prop_map(Gate::Delay),
        (0_u64..10_000).prop_map(|minutes| Gate::Delay(minutes * 60_000)),
        any::<u64>().prop_map(Gate::SinceLastRun),
        window().prop_map(Gate::Window),
    ];
    (gate, prop::sample::select(vec![Otherwise::Wait, Otherwise::Abort]))
        .prop_map(|(gate, otherwise)| Constraint { gate, otherwise })
}

/// Text that is nearly a constraint.
fn hostile() -> impl Strategy<Value = String> {
    let word = prop::sample::select(vec![
        "concurrency",
        "delay",
        "window",
        "since-last-run",
        "(",
        ")",
        ",",
        "\"",
        "\\",
        "@",
        "-",
        "22:00",
        "06:00",
        "15m",
        "wait",
        "abort",
        "1",
        " ",
        "é",
        "\0",
        "Europe/Berlin",
    ]);
    prop_oneof!["\\PC{0,40}", prop::collection::vec(word, 0..16).prop_map(|words| words.concat())]
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = || {
        prop_oneof![
            Just(Value::Null),
            any::<i64>().prop_map(Value::from),
            prop::sample::select(vec!["concurrency", "window", "wait", "22:00", "6:00", "PST", "delay(1m)", "x("])
                .prop_map(Value::from),
        ]
    };
    let name = prop::sample::select(vec!["type", "limit", "millis", "from", "to", "zone", "otherwise", "x"]);
    let object = prop::collection::btree_map(name, leaf(), 0..6);
    prop_oneof![leaf(), object.prop_map(|fields| json!(fields))]
}

proptest! {
    #[test]
    fn what_is_printed_reads_back_as_the_same(constraint in constraint()) {
        let text = constraint.to_string();
        let elsewhere = Zone::parse("Asia/Tokyo").unwrap();
        prop_assert_eq!(&text.parse::<Constraint>().unwrap(), &constraint, "{}", text);
        let json = constraint.to_json();
        prop_assert_eq!(&Constraint::from_json(&json, &elsewhere, "constraint").unwrap(), &constraint, "{}", json);
        let line = Value::from(text);
        prop_assert_eq!(&Constraint::from_json(&line, &Zone::utc(), "constraint").unwrap(), &constraint);
    }

    #[test]
    fn no_text_and_no_json_makes_the_readers_panic(text in hostile(), json in json_value()) {
        if let Ok(constraint) = text.parse::<Constraint>() {
            prop_assert_eq!(constraint.to_string().parse::<Constraint>().unwrap(), constraint);
        }
        let _ = Constraint::from_json(&json, &Zone::utc(), "constraint");
    }
}

#[test]
fn the_two_forms_of_each_kind() {
    for (text, json) in [
        ("concurrency(1)", json!({ "type": "concurrency", "limit": 1, "otherwise": "abort" })),
        ("concurrency(2, wait)", json!({ "type": "concurrency", "limit": 2, "otherwise": "wait" })),
        ("delay(15m)", json!({ "type": "delay", "millis": 900_000, "otherwise": "wait" })),
        (
            "window(22:00-06:00 @ Europe/Berlin, abort)",
            json!({
                "type": "window", "from": "22:00", "to": "06:00", "zone": "Europe/Berlin", "otherwise": "abort",
            }),
        ),
        (
            "window(22:00-6:30)",
            json!({ "type": "window", "from": "22:00", "to": "6:30", "zone": "UTC", "otherwise": "wait" }),
        ),
        ("since-last-run(1500ms)", json!({ "type": "since-last-run", "millis": 1500, "otherwise": "abort" })),
    ] {
        let constraint: Constraint = text.parse().unwrap();
        assert_eq!((constraint.to_string().as_str(), constraint.to_json()), (text, json));
    }
}

#[test]
fn a_window_without_a_zone_is_in_the_one_given() {
    let tokyo = Zone::parse("Asia/Tokyo").unwrap();
    let window = Constraint::parse("window( 22:00 - 06:00 )", &tokyo).unwrap();
    assert_eq!(window.to_string(), "window(22:00-06:00 @ Asia/Tokyo)");
    let json = json!({ "type": "window", "from": "22:00", "to": "06:00", "zone": null, "otherwise": null });
    assert_eq!(Constraint::from_json(&json, &tokyo, "constraint").unwrap(), window);
}

#[test]
fn examples_are_printed_as_they_are_written() {
    for signature in CONSTRAINTS {
        let constraint: Constraint = signature.example.parse().unwrap();
        assert_eq!(constraint.to_string(), signature.example);
        assert!(std::ptr::eq(constraint.signature(), signature));
    }
}

#[test]
fn errors_have_their_place_and_what_was_expected() {
    let text = |text: &str| text.parse::<Constraint>().expect_err(text).to_string();
    let all = "expected concurrency(N, OTHERWISE), window(FROM-TO @ ZONE, OTHERWISE), delay(DURATION), \
               since-last-run(DURATION, OTHERWISE)";
    assert_eq!(
        text("concurency(1)"),
        format!("at character 1: \"concurency\" is no constraint: {all}; did you mean \"concurrency\"?")
    );
    assert_eq!(text("concurrency(1, stop)"), "at character 16: \"stop\" is unknown here: expected wait or abort");
    assert_eq!(
        text("window(22:00)"),
        "at character 1: `window` lacks its to: expected window(FROM-TO @ ZONE, OTHERWISE)"
    );
    assert!(text("window(22:00-25:00)").starts_with("at character 1: \"25:00\" is not a time of the day"));
    assert!(text("delay(soon)").starts_with("at character 7: \"soon\" is not a duration"));
    assert!(text("delay(1m) delay(2m)").ends_with("the constraint has ended before this: expected nothing more"));
    let json =
        |value: Value| Constraint::from_json(&value, &Zone::utc(), "constraints[0]").expect_err("wrong").to_string();
    assert_eq!(
        json(json!({ "type": "concurrency", "limit": 1, "millis": 2 })),
        "`constraints[0].millis`: unknown field of `concurrency`: expected `limit`, `otherwise`"
    );
    assert_eq!(
        json(json!({ "type": "gap" })),
        "`constraints[0].type`: \"gap\" is no type of constraint: expected one of `concurrency`, `window`, `delay`, \
         `since-last-run`"
    );
    assert_eq!(json(json!({ "type": "delay" })), "`constraints[0]`: `delay` lacks `millis`");
}

#[test]
fn the_documentation_has_each_signature() {
    let page = include_str!("../../../docs/event-schedules.md");
    let row = |one: &Signature<Constraint>| {
        let fields: Vec<String> = one.parameters.iter().map(|one| format!("`{}`", one.name)).collect();
        format!("| `{}` | `{}`: {} | {} |", one.usage, one.json, fields.join(", "), one.meaning)
    };
    let rows: Vec<String> = CONSTRAINTS.into_iter().map(row).collect();
    assert!(page.contains(&rows.join("\n")), "docs/event-schedules.md lacks these rows:\n{}", rows.join("\n"));
}
