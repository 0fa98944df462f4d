//! Where tests find the real servers that `servers/run` has started. For tests alone.
//!
//! Absent: starting anything by itself. A test whose server is not there says so and passes, but fails where `CI` is
//! set, so that nothing is left out unseen.

use std::path::PathBuf;
use std::process::Command;

/// The value of a server's variable, such as `KELOS_TEST_S3`. Where it is not set: none and a word on stderr.
///
/// # Panics
/// Where it is not set and `CI` is.
#[must_use]
pub fn address(variable: &str) -> Option<String> {
    let value = std::env::var(variable).ok().filter(|value| !value.is_empty());
    if value.is_none() {
        let skipped = format!("SKIPPED: {variable} is not set; run it by servers/run with NAME -- COMMAND");
        assert!(std::env::var_os("CI").is_none(), "{skipped}");
        eprintln!("{skipped}");
    }
    value
}

/// Ends a server at once; its data stays.
///
/// # Panics
/// If that fails.
pub fn crash(name: &str) {
    run("crash", name);
}

/// Starts a server, with the data and the ports it had, and returns when it answers.
///
/// # Panics
/// If that fails.
pub fn up(name: &str) {
    run("up", name);
}

fn run(word: &str, name: &str) {
    // Of several clones that share a target folder, the one whose servers these are.
    let script = std::env::var_os("KELOS_SERVERS_RUN").map(PathBuf::from);
    let script = script.unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("run"));
    let status = Command::new(&script).args([word, name]).status();
    let done = status.as_ref().is_ok_and(|status| status.success());
    assert!(done, "servers/run {word} {name} failed: {status:?}");
}
