//! Ends of runs as databases have them: each reads back with its code and its words, of before and of a newer version too, and is
//! written as it was.

use kelos_model::Outcome;

/// As stored, the code, and the words. Lines are added, never changed.
const STORED: &[(&str, &str, &str)] = &[
    (r#"{"result":"succeeded"}"#, "succeeded", "succeeded"),
    (r#"{"result":"failed","reason":"exited with status 3","exit_status":3}"#, "exit-status", "exited with status 3"),
    (r#"{"result":"failed","reason":"it failed in Celos"}"#, "failed", "it failed in Celos"),
    (r#"{"result":"failed","reason":"ended by signal 9","code":"signal"}"#, "signal", "ended by signal 9"),
    (r#"{"result":"failed","reason":"took too long","code":"timed-out"}"#, "timed-out", "took too long"),
    (r#"{"result":"failed","reason":"the job says so","code":"reported"}"#, "reported", "the job says so"),
    (r#"{"result":"failed","reason":"of tomorrow","code":"evicted"}"#, "evicted", "of tomorrow"),
    (r#"{"result":"refused","reason":"no such file"}"#, "refused", "could not be started: no such file"),
    (
        r#"{"result":"refused","reason":"70000 bytes","code":"arguments-too-large"}"#,
        "arguments-too-large",
        "could not be started: 70000 bytes",
    ),
    (r#"{"result":"killed"}"#, "killed", "killed"),
    (r#"{"result":"unknown","reason":"it is gone"}"#, "unknown", "outcome unknown: it is gone"),
    (r#"{"result":"lost","reason":"it is gone"}"#, "lost", "outcome unknown: it is gone"),
];

#[test]
fn every_stored_end_has_its_code_and_its_words() {
    for (stored, code, words) in STORED {
        let outcome: Outcome = serde_json::from_str(stored).unwrap();
        assert_eq!((outcome.code(), outcome.to_string().as_str()), (*code, *words), "{stored}");
        assert_eq!(serde_json::to_string(&outcome).unwrap(), *stored);
    }
}

#[test]
fn every_code_is_documented() {
    let listed = include_str!("../../../docs/codes.md");
    let known = STORED.iter().filter(|(_, code, _)| *code != "evicted");
    let missing: Vec<_> = known.filter(|(_, code, _)| !listed.contains(&format!("| `{code}` |"))).collect();
    assert!(missing.is_empty(), "docs/codes.md does not name {missing:?}");
}
