//! Scenarios: scripts of times and inputs with the expected results after each input.
//!
//! Every file in `scenarios/` is one. Lines that start with `> ` are inputs (see `support/script.rs` for their syntax),
//! and `#` starts a comment. The lines after an input are its results: events in words, and after `!` the reads of the
//! past and the commands. `KELOS_BLESS=1` writes the present results; read the difference before you commit it.

#![allow(clippy::disallowed_methods, reason = "the tests read files; the scheduler does not")]

mod support;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use support::world::World;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios")
}

/// The text of a scenario with its present results.
fn play(name: &str, text: &str) -> String {
    let mut world = World::new();
    let mut played = String::new();
    for (number, line) in text.lines().enumerate() {
        if let Some(input) = line.strip_prefix("> ") {
            let out = support::script::perform(&mut world, input);
            let out = out.unwrap_or_else(|problem| panic!("{name}:{}: {problem}: {line}", number + 1));
            writeln!(played, "{line}").unwrap();
            for line in out {
                writeln!(played, "{line}").unwrap();
            }
        } else if line.is_empty() || line.starts_with('#') {
            writeln!(played, "{line}").unwrap();
        }
    }
    played
}

/// The first line in which two texts differ.
fn difference(expected: &str, found: &str) -> String {
    let lines = expected.lines().map(Some).chain(std::iter::repeat(None));
    let others = found.lines().map(Some).chain(std::iter::repeat(None));
    let pairs = lines.zip(others).take_while(|pair| *pair != (None, None)).enumerate();
    let different = pairs.into_iter().find(|(_, (a, b))| a != b);
    different
        .map_or_else(String::new, |(line, (a, b))| format!("line {}:\n  expected {a:?}\n  found    {b:?}", line + 1))
}

#[test]
fn scenarios_come_out_as_they_are_written() {
    let bless = env::var_os("KELOS_BLESS").is_some();
    let mut files: Vec<_> = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() > 20, "the scenarios are missing");
    let mut differences = Vec::new();
    for path in files {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let expected = fs::read_to_string(&path).unwrap();
        let found = play(&name, &expected);
        if bless && found != expected {
            fs::write(&path, &found).unwrap();
        } else if found != expected {
            differences.push(format!("{name}, {}", difference(&expected, &found)));
        }
    }
    assert!(differences.is_empty(), "{}\nwith KELOS_BLESS=1 they become what is expected", differences.join("\n"));
}

#[test]
fn the_same_scenario_comes_out_the_same_twice() {
    for entry in fs::read_dir(folder()).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        assert_eq!(play("first", &text), play("second", &text));
    }
}

#[test]
fn who_makes_up_thousands_of_missed_times_keeps_nobody_else_waiting() {
    let mut world = World::new();
    let mut tick = |input: &str| support::script::perform(&mut world, input).unwrap();
    tick("limit 20000");
    tick("executors slow");
    tick("at 2026-11-20T10:00:30Z");
    tick("define p program");
    tick("define flood runs p when time(* * * * *) catches all enabled");
    tick("define q program");
    tick("define other runs q when time(0 10 27 * *) enabled");
    let came = tick("at 2026-11-27T10:00:30Z");
    let missed = |came: &[String]| came.iter().filter(|line| line.contains("flood@")).count();
    assert!(came.iter().any(|line| line.contains("other@") && line.contains("dispatched")), "{came:#?}");
    assert!((1..5000).contains(&missed(&came)), "{}", missed(&came));
    assert!(missed(&tick("at +1s")) > 0, "the rest comes with the next ticks");
}
