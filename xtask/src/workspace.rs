//! The workspace: its root and its metadata, and cargo itself.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// A result, or why there is none, which completes "failed to …".
pub(crate) type Outcome<T> = Result<T, String>;

/// Its root.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}

/// The metadata of its packages. `options` choose which.
pub(crate) fn metadata(root: &Path, options: &[&str]) -> Result<Value, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--offline", "--format-version", "1"])
        .args(options)
        .current_dir(root)
        .output()
        .map_err(|error| format!("run cargo metadata: {error}"))?;
    if !output.status.success() {
        return Err(format!("read the manifests: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| format!("read what cargo metadata says: {error}"))
}

/// Runs cargo in the workspace.
pub(crate) fn cargo(root: &Path, arguments: &[&str]) -> Result<(), String> {
    cargo_with(root, arguments, &[])
}

/// Runs cargo in the workspace, with these variables.
pub(crate) fn cargo_with(root: &Path, arguments: &[&str], variables: &[(String, String)]) -> Result<(), String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let variables = variables.iter().map(|(name, value)| (name, value));
    let status = Command::new(cargo).args(arguments).envs(variables).current_dir(root).status();
    let status = status.map_err(|error| format!("run cargo {}: {error}", arguments.join(" ")))?;
    if status.success() { Ok(()) } else { Err(format!("run cargo {}: {status}", arguments.join(" "))) }
}

/// The text of a file of the workspace.
pub(crate) fn read(root: &Path, name: &str) -> Result<String, String> {
    std::fs::read_to_string(root.join(name)).map_err(|error| format!("read {name}: {error}"))
}
