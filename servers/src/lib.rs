//! The addresses of the real servers that `servers/run` has started, for tests. For tests alone.
//!
//! Absent: starting a server by itself. A test whose server is missing prints that and passes, but fails if `CI` is
//! set, so that no test is skipped unnoticed.

use std::path::PathBuf;
use std::process::Command;

/// The value of a server's variable, such as `KELOS_TEST_S3`. If it is not set: none, and a message on stderr.
///
/// # Panics
/// If it is not set and `CI` is.
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

/// Starts a server with its former data and ports, and returns once it answers.
///
/// # Panics
/// If that fails.
pub fn up(name: &str) {
    run("up", name);
}

fn run(word: &str, name: &str) {
    // If several clones share a target folder, the one whose servers these are.
    let script = std::env::var_os("KELOS_SERVERS_RUN").map(PathBuf::from);
    let script = script.unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("run"));
    let status = Command::new(&script).args([word, name]).status();
    let done = status.as_ref().is_ok_and(|status| status.success());
    assert!(done, "servers/run {word} {name} failed: {status:?}");
}
