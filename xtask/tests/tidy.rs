//! The house is tidy: a plain `cargo test` holds ARCHITECTURE.md, the manifests and the documents together.

use std::process::Command;

/// Licences need the manifests of all dependencies, which a test of this crate alone may not have: `.ci/run`
/// looks at them.
#[test]
fn the_house_is_tidy() {
    let output = Command::new(env!("CARGO_BIN_EXE_xtask")).args(["tidy", "--without-licences"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo xtask tidy:\n{said}");
}
