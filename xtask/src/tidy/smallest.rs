//! The library with its smallest set of features, for a program that embeds Kelos without any.

use std::path::Path;
use std::process::Command;

use super::Faults;

/// Dependencies that need a feature: JavaScript, clients of servers, the store on disk, the HTTP server.
const BY_FEATURE: [&str; 10] =
    ["rquickjs", "rusqlite", "hdfs-native", "opendal", "russh", "redis", "reqwest", "axum", "maud", "clap"];

/// Asks cargo for the dependencies of the smallest set; the lock file decides, and nothing is downloaded.
pub(super) fn check(root: &Path) -> Result<Faults, String> {
    let arguments = ["tree", "--locked", "--offline", "--package", "kelos", "--no-default-features"];
    let shape = ["--edges", "normal", "--prefix", "none", "--format", "{p}"];
    let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(arguments)
        .args(shape)
        .current_dir(root)
        .output();
    let output = output.map_err(|error| format!("ask cargo for the dependencies of kelos: {error}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("ask cargo for the dependencies of kelos: {}", said.trim()));
    }
    Ok(faults(&String::from_utf8_lossy(&output.stdout)))
}

fn faults(tree: &str) -> Faults {
    let name = |line: &str| line.split(' ').next().unwrap_or_default().to_owned();
    let needed: Vec<String> = tree.lines().map(name).collect();
    let fault = |name: &&str| format!("kelos: without features it needs {name}, expected that to come with one");
    BY_FEATURE.iter().filter(|name| needed.iter().any(|one| one == *name)).map(fault).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_with_a_feature_is_found() {
        assert_eq!(faults("kelos v0.1.0 (/k)\nserde v1.0.0\nopendal-core v1.0.0"), [""; 0]);
        let told = "kelos: without features it needs redis, expected that to come with one";
        assert_eq!(faults("kelos v0.1.0 (/k)\nredis v1.0.0 (*)"), [told]);
    }
}
