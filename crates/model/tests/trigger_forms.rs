//! Both written forms of triggers: what is printed reads back as the same, and what is wrong is told with its place.

use kelos_model::facts::ENDS;
use kelos_model::form::{Nests, Position, SIGNATURES, Signature};
use kelos_model::function::FunctionRef;
use kelos_model::nesting::DEEPEST;
use kelos_model::probe::Conditions;
use kelos_model::project::dataset_named;
use kelos_model::time::{Firing, Zone};
use kelos_model::trigger::{FileSystem, PathCheck};
use kelos_model::{Trigger, WorkflowId};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Text in which all that means something in the forms may stand.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        "[a-z]{1,6}",
        "[a-z0-9 /${}\"\\\\:@é✓(),=+*]{0,16}",
        "(base|glob|minCount) ?=[a-z(),]{0,4}",
    ]
}

fn workflow() -> impl Strategy<Value = WorkflowId> {
    "[a-zñ.,()\"=@+~-][a-zñ .,()\"=@+~-]{0,8}".prop_map(|name| WorkflowId::new(&name).unwrap())
}

fn path() -> impl Strategy<Value = Trigger> {
    let system = prop::sample::select(vec![FileSystem::Any, FileSystem::Hdfs, FileSystem::Local]);
    let base = prop_oneof![Just("file:///".to_owned()), text()];
    let conditions = (prop::option::of(text()), any::<Option<u32>>(), any::<Option<u64>>(), any::<Option<u32>>());
    (system, text(), base, conditions).prop_map(
        |(system, path, base, (glob, min_count, min_bytes, min_age_seconds))| {
            let conditions = Conditions { glob, min_count, min_bytes, min_age_seconds };
            Trigger::Path(PathCheck { system, path, base, conditions })
        },
    )
}

fn leaf() -> impl Strategy<Value = Trigger> {
    let zone = prop::sample::select(vec!["UTC", "Asia/Tokyo", "PST"]);
    let cron = prop::sample::select(vec!["0 4 * * *", "*/5 1,2 1,15 * ?", "0 0/5 14,18 ? * MON-FRI", "0 0 4 ? * 2#1"]);
    let ends = prop::collection::vec(prop::sample::select(ENDS.to_vec()), 1..4);
    prop_oneof![
        Just(Trigger::Always),
        any::<i64>().prop_map(|seconds| Trigger::Delay { seconds }),
        (-200_i64..200).prop_map(|minutes| Trigger::Delay { seconds: minutes * 60 }),
        workflow().prop_map(|workflow| Trigger::Success { workflow }),
        (workflow(), text()).prop_map(|(workflow, job)| Trigger::Job { workflow, job }),
        path(),
        // A dataset is counted by one name only.
        (text(), any::<u32>())
            .prop_map(|(text, count)| Trigger::Partitions { dataset: dataset_named(&text).into(), count }),
        (workflow(), ends).prop_map(|(program, states)| Trigger::Ended { program, states }),
        (cron, zone).prop_map(|(cron, zone)| Trigger::Fired {
            firing: Firing::parse(cron, Zone::parse(zone).unwrap()).unwrap()
        }),
        text().prop_map(|name| Trigger::Signal { name: name.into() }),
        (text(), any::<u32>(), text())
            .prop_map(|(file, index, digest)| Trigger::Function { function: FunctionRef { file, index, digest } }),
    ]
}

fn trigger() -> impl Strategy<Value = Trigger> {
    leaf().prop_recursive(6, 48, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(|triggers| Trigger::And { triggers }),
            prop::collection::vec(inner.clone(), 0..4).prop_map(|triggers| Trigger::Or { triggers }),
            inner.clone().prop_map(|trigger| Trigger::Not { trigger: Box::new(trigger) }),
            (any::<i64>(), inner)
                .prop_map(|(seconds, trigger)| Trigger::Offset { seconds, trigger: Box::new(trigger) }),
        ]
    })
}

/// Text that is nearly a trigger.
fn hostile() -> impl Strategy<Value = String> {
    let word = prop::sample::select(vec![
        "and",
        "or",
        "not",
        "offset",
        "time",
        "partitions",
        "ended",
        "signal",
        "path",
        "always",
        "delay",
        "(",
        ")",
        ",",
        "\"",
        "\\",
        "@",
        "=",
        "base=",
        "glob",
        " ",
        "4",
        "-1d",
        "0 4 * * *",
        "é",
        "\u{202e}",
        "\0",
        "${year}",
    ]);
    prop_oneof!["\\PC{0,40}", prop::collection::vec(word, 0..24).prop_map(|words| words.concat())]
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        prop::sample::select(vec!["and", "fired", "path", "ended", "signal", "time(0 4 * * *)", "x(", ""])
            .prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 5, |inner| {
        let name = prop::sample::select(vec![
            "type",
            "nested",
            "seconds",
            "workflow",
            "states",
            "cron",
            "zone",
            "path",
            "conditions",
            "minCount",
            "x",
        ]);
        let fields = prop::collection::vec((name, inner.clone()), 0..5);
        prop_oneof![
            prop::collection::vec(inner, 0..4).prop_map(Value::from),
            fields.prop_map(|fields| fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) })]

    #[test]
    fn what_is_printed_reads_back_as_the_same(trigger in trigger()) {
        let text = trigger.to_string();
        let back = text.parse::<Trigger>().map_err(|error| TestCaseError::fail(format!("{error}: {text}")))?;
        prop_assert_eq!(&back, &trigger, "{}", text);
        prop_assert_eq!(back.to_string(), text);
    }

    #[test]
    fn what_is_written_as_json_reads_back_as_the_same(trigger in trigger()) {
        let value = trigger.to_json();
        let back = Trigger::from_json(&value, &Zone::utc(), "trigger");
        let back = back.map_err(|error| TestCaseError::fail(format!("{error}: {value}")))?;
        prop_assert_eq!(&back, &trigger, "{}", value);
        // A text may stand where an object may.
        let text = Value::from(trigger.to_string());
        prop_assert_eq!(Trigger::from_json(&text, &Zone::utc(), "trigger"), Ok(trigger));
    }

    #[test]
    fn blanks_between_words_mean_nothing(trigger in trigger(), blank in "[ \n\t]{0,3}") {
        let text = format!("{blank}{trigger}{blank}");
        prop_assert_eq!(text.parse::<Trigger>(), Ok(trigger));
    }

    #[test]
    fn no_text_is_too_odd(text in hostile()) {
        if let Err(error) = text.parse::<Trigger>() {
            prop_assert!(error.to_string().starts_with("at character "), "{}", error);
        }
    }

    #[test]
    fn no_json_is_too_odd(value in json_value()) {
        if let Err(error) = Trigger::from_json(&value, &Zone::utc(), "trigger") {
            prop_assert!(error.to_string().starts_with("`trigger"), "{}", error);
        }
    }
}

#[test]
fn examples_are_printed_as_they_are_written() {
    for signature in SIGNATURES {
        let trigger: Trigger = signature.example.parse().expect(signature.example);
        assert_eq!(trigger.to_string(), signature.example);
        assert_eq!(trigger.signature().name, signature.name);
        assert_eq!(Trigger::from_json(&trigger.to_json(), &Zone::utc(), "trigger"), Ok(trigger), "{}", signature.name);
        assert!(signature.usage.starts_with(signature.name), "{}", signature.usage);
    }
}

#[test]
fn what_is_left_out_has_a_meaning() {
    for (short, whole) in [
        ("any(partition(ds), ended(p, COMPLETED+failed))", "or(partitions(ds, 1), ended(p, succeeded, failed))"),
        ("all-of( delay(900) ,success( w ) )", "and(delay(15m), success(w))"),
        ("ended(p)", "ended(p, succeeded, failed, killed)"),
        ("cron(0 4 1,15 * ? @ Europe/Berlin)", "time(0 4 1,15 * ? @ Europe/Berlin)"),
        ("time(0 4 * * * @ UTC)", "time(0 4 * * *)"),
        ("partitions(default:ds, 2)", "partitions(ds, 2)"),
        ("path(base=hdfs://nn, /in, minCount = 3)", "path(/in, base=hdfs://nn, minCount=3)"),
        ("signal(\"a\\u0062, c\")", "signal(\"ab, c\")"),
        ("signal(a(b, c))", "signal(\"a(b, c)\")"),
        ("always()", "always"),
    ] {
        assert_eq!(short.parse::<Trigger>().expect(short).to_string(), whole);
    }
    let tokyo = Zone::parse("Asia/Tokyo").unwrap();
    let trigger = Trigger::parse("or(time(0 4 * * *), time(0 5 * * * @ UTC))", &tokyo).unwrap();
    assert_eq!(trigger.to_string(), "or(time(0 4 * * * @ Asia/Tokyo), time(0 5 * * *))");
    let given =
        json!({ "type": "or", "nested": ["time(0 4 * * *)", { "type": "fired", "cron": "0 5 * * *", "zone": "UTC" }] });
    assert_eq!(Trigger::from_json(&given, &tokyo, "trigger"), Ok(trigger));
}

#[test]
fn json_has_the_fields_of_the_api() {
    for (text, expected) in [
        ("partitions(purchases, 4)", json!({ "type": "partitions", "dataset": "purchases", "count": 4 })),
        ("time(0 4 * * *)", json!({ "type": "fired", "cron": "0 4 * * *", "zone": "UTC" })),
        ("ended(p, failed)", json!({ "type": "ended", "workflow": "p", "states": ["failed"] })),
        ("not(signal(go))", json!({ "type": "not", "nested": [{ "type": "signal", "signal": "go" }] })),
        (
            "hdfs-path(/in, base=hdfs://n, glob=*.csv, minBytes=1)",
            json!({
                "type": "hdfs-path", "path": "/in", "base": "hdfs://n",
                "conditions": { "glob": "*.csv", "minBytes": 1 },
            }),
        ),
        ("path(/in)", json!({ "type": "path", "path": "/in", "base": "file:///" })),
        (
            "offset(-1d, success(w))",
            json!({ "type": "offset", "seconds": -86_400, "nested": [{ "type": "success", "workflow": "w" }] }),
        ),
        ("and()", json!({ "type": "and" })),
    ] {
        assert_eq!(text.parse::<Trigger>().expect(text).to_json(), expected);
    }
}

#[test]
fn wrong_text_is_told_with_its_place_and_what_was_expected() {
    let wrong = |text: &str| text.parse::<Trigger>().expect_err(text).to_string();
    let starts = |text: &str, expected: &str| assert!(wrong(text).starts_with(expected), "{text}: {}", wrong(text));
    starts(
        "whenever",
        "at character 1: \"whenever\" is no trigger: expected time(CRON @ ZONE), partitions(DATASET, N), ",
    );
    starts("", "at character 1: expected a trigger: time(CRON @ ZONE), ");
    starts("and(signal(a), )", "at character 16: expected a trigger: ");
    let typo = wrong("and(signal(é), partitons(ds, 4))");
    assert!(typo.starts_with("at character 16: \"partitons\" is no trigger: "), "{typo}");
    assert!(typo.ends_with("; did you mean \"partitions\"?"), "{typo}");
    for (text, expected) in [
        ("and(signal(a), signal(b)", "at character 4: the bracket that opens here is not closed: expected a \")\""),
        ("signal(a(b)", "at character 7: the bracket that opens here is not closed: expected a \")\""),
        ("signal(a(b", "at character 9: the bracket that opens here is not closed: expected a \")\""),
        (
            "signal(a))",
            "at character 10: the trigger has ended before this: expected nothing more, or and(...) or or(...) around both",
        ),
        (
            "signal(a) signal(b)",
            "at character 11: the trigger has ended before this: expected nothing more, or and(...) or or(...) around both",
        ),
        ("signal", "at character 7: expected \"(\" after `signal`: signal(NAME)"),
        ("signal()", "at character 1: `signal` lacks its signal: expected signal(NAME)"),
        ("signal(a, b)", "at character 11: `signal` takes no more than this: signal(NAME)"),
        ("signal(\"a)", "at character 8: the quote that begins here does not end: expected another '\"'"),
        ("signal(\"a\" b)", "at character 12: expected \",\" or \")\""),
        (
            "partitions(ds, many)",
            "at character 16: \"many\" is no such number: expected a whole number from 0 to 4294967295",
        ),
        ("partitions(, 4)", "at character 12: expected a word here, or \"\" for none"),
        ("ended(p, lost)", "at character 10: \"lost\" is not how a run ends: expected succeeded, failed or killed"),
        ("success(a/b)", "at character 9: workflow id can't contain slash: \"a/b\""),
        ("delay(soon)", "at character 7: \"soon\" is not a duration: expected a form such as 90s, 15m, 36h, 7d or 2w"),
        (
            "time(0 4 * *)",
            "at character 6: \"0 4 * *\" has 4 fields, expected 5 (minute hour day-of-month month day-of-week), or 6 (second first) or 7 (year last), \
             each after a single space",
        ),
        (
            "time(0 4 * * * @ Mars/North)",
            "at character 18: unknown time zone \"Mars/North\": expected an IANA name such as \"Australia/North\"",
        ),
        (
            "not(signal(a), signal(b))",
            "at character 1: `not` has 2 nested triggers, expected exactly one: not(TRIGGER)",
        ),
        (
            "path(/in, minCount=x)",
            "at character 20: \"x\" is no such number: expected a whole number from 0 to 4294967295",
        ),
        ("path(/in, base=a, base=b)", "at character 24: base is given twice: expected one value"),
    ] {
        assert_eq!(wrong(text), expected, "{text}");
    }
}

#[test]
fn wrong_json_is_told_with_its_path_and_what_was_expected() {
    let wrong = |value: Value| Trigger::from_json(&value, &Zone::utc(), "trigger").expect_err("wrong").to_string();
    let signal = json!({ "type": "signal", "signal": "go" });
    let typo = wrong(json!({ "type": "and", "nested": [signal, { "type": "partition" }] }));
    assert!(
        typo.starts_with("`trigger.nested[1].type`: \"partition\" is no type of trigger: expected one of `fired`, "),
        "{typo}"
    );
    assert!(typo.ends_with("; did you mean \"partitions\"?"), "{typo}");
    for (value, expected) in [
        (json!(7), "`trigger`: 7 is no trigger: expected an object with a `type`, or a text"),
        (json!({ "type": "and", "nested": {} }), "`trigger.nested`: an object is not a list of triggers"),
        (json!({ "type": "not" }), "`trigger`: `not` has 0 nested triggers, expected exactly one: not(TRIGGER)"),
        (json!({ "type": "signal" }), "`trigger`: `signal` lacks `signal`"),
        (json!({ "type": "signal", "signal": 5 }), "`trigger.signal`: 5 is not a text: expected one in quotes"),
        (
            json!({ "type": "partitions", "dataset": "ds", "number": 1 }),
            "`trigger.number`: unknown field of `partitions`: expected `dataset`, `count`",
        ),
        (
            json!({ "type": "partitions", "dataset": "ds", "count": -1 }),
            "`trigger.count`: -1 is no such number: expected a whole number from 0 to 4294967295",
        ),
        (
            json!({ "type": "ended", "workflow": "w", "states": ["failed", "running"] }),
            "`trigger.states[1]`: \"running\" is not how a run ends: expected succeeded, failed or killed",
        ),
        (
            json!({ "type": "path", "path": "/in", "conditions": { "most": 5 } }),
            "`trigger.conditions.most`: unknown field of `path`: expected `glob`, `minCount`, `minBytes`, `minAgeSeconds`",
        ),
        (
            json!({ "type": "or", "nested": ["signal(a)", "delay(soon)"] }),
            "`trigger.nested[1]`, at character 7: \"soon\" is not a duration: expected a form such as 90s, 15m, 36h, 7d or 2w",
        ),
        (
            json!({ "type": "delay", "seconds": "5" }),
            "`trigger.seconds`: \"5\" is no length of time: expected a whole number of seconds",
        ),
    ] {
        assert_eq!(wrong(value), expected);
    }
}

#[test]
fn what_is_nested_too_deep_is_refused() {
    let deep = |levels: usize| format!("{}always{}", "not(".repeat(levels), ")".repeat(levels));
    let deepest = deep(DEEPEST - 1).parse::<Trigger>().expect("a trigger");
    assert!(Trigger::from_json(&deepest.to_json(), &Zone::utc(), "trigger").is_ok());
    let told = "triggers are nested more than 64 deep: expected fewer levels";
    assert_eq!(deep(DEEPEST).parse::<Trigger>().unwrap_err().to_string(), format!("at character 257: {told}"));
    assert!(deep(100_000).parse::<Trigger>().is_err());
    let too_deep = Trigger::Not { trigger: Box::new(deepest) }.to_json();
    let error = Trigger::from_json(&too_deep, &Zone::utc(), "trigger").unwrap_err().to_string();
    assert!(error.ends_with(told) && error.starts_with("`trigger.nested[0].nested[0]"), "{error}");
    // A text takes no longer than it is long.
    let long = format!("and({}", "signal(x), ".repeat(100_000));
    assert!(long.parse::<Trigger>().is_err());
}

/// The row of a signature in the documentation.
fn row(signature: &Signature) -> String {
    let (conditions, fields): (Vec<_>, Vec<_>) =
        signature.parameters.iter().partition(|one| one.position == Position::Condition);
    let mut fields: Vec<String> = fields.into_iter().map(|one| format!("`{}`", one.name)).collect();
    if !conditions.is_empty() {
        let names: Vec<String> = conditions.into_iter().map(|one| format!("`{}`", one.name)).collect();
        fields.push(format!("`conditions` ({})", names.join(", ")));
    }
    if signature.nests != Nests::Nothing {
        fields.push("`nested`".to_owned());
    }
    let (usage, json, meaning) = (signature.usage, signature.json, signature.meaning);
    let fields = if fields.is_empty() { String::new() } else { format!(": {}", fields.join(", ")) };
    format!("| `{usage}` | `{json}`{fields} | {meaning} |")
}

#[test]
fn the_documentation_has_each_signature() {
    let page = include_str!("../../../docs/event-schedules.md");
    let rows: Vec<String> = SIGNATURES.into_iter().map(row).collect();
    assert!(page.contains(&rows.join("\n")), "docs/event-schedules.md lacks these rows:\n{}", rows.join("\n"));
}
