//! `cargo xtask package`: checks that the crates that outsiders depend on can be packaged: `kelos`, and all that it needs.
//!
//! The list follows from the manifests. Only these crates may be published, and only they have a version in the manifests of others, so
//! that crates for tests are left out of the packages.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::Value;

use crate::outside;
use crate::workspace::{cargo, metadata, root};

/// The crate that outsiders depend on.
const FACE: &str = "kelos";

/// The fields that the manifest of a published package must have.
const FIELDS: [&str; 4] = ["description", "license", "readme", "repository"];

#[derive(clap::Args)]
pub(crate) struct PackageArguments {
    /// Build each package from its own content.
    #[arg(long)]
    verify: bool,
    /// Build and test a project outside of the workspace from the packages; the project is made with this program `kelos`.
    #[arg(long, value_name = "KELOS")]
    outside: Option<PathBuf>,
}

pub(crate) fn run(arguments: &PackageArguments) -> ExitCode {
    match package(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(wrong) => {
            eprintln!("failed to {wrong}");
            ExitCode::FAILURE
        }
    }
}

fn package(arguments: &PackageArguments) -> Result<(), String> {
    let root = root();
    let metadata = metadata(&root, &["--no-deps"])?;
    let published = needed(&metadata);
    let mut command = vec!["package", "--offline", "--locked", "--allow-dirty", "--quiet"];
    if !arguments.verify {
        command.push("--no-verify");
    }
    command.extend(published.iter().flat_map(|name| ["--package", name]));
    cargo(&root, &command)?;
    println!("{} packages: {}", published.len(), Vec::from_iter(published.iter().copied()).join(", "));
    let Some(kelos) = &arguments.outside else { return Ok(()) };
    let target = metadata["target_directory"].as_str().ok_or("find the target folder")?;
    let kelos = kelos.canonicalize().map_err(|error| format!("find {}: {error}", kelos.display()))?;
    outside::build(&root, Path::new(target), &kelos, &published)
}

/// The face and all crates of the workspace that it needs.
fn needed(metadata: &Value) -> BTreeSet<&str> {
    let packages: BTreeMap<&str, &Value> =
        list(&metadata["packages"]).filter_map(|package| Some((package["name"].as_str()?, package))).collect();
    let (mut needed, mut next) = (BTreeSet::new(), vec![FACE]);
    while let Some((name, package)) = next.pop().and_then(|name| packages.get_key_value(name)) {
        if needed.insert(*name) {
            let normal = list(&package["dependencies"]).filter(|dependency| dependency["kind"] != "dev");
            next.extend(
                normal.filter_map(|dependency| dependency["name"].as_str()).filter(|name| packages.contains_key(name)),
            );
        }
    }
    needed
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// The faults of the packages in the manifests, by `cargo metadata --no-deps`.
pub(crate) fn check(metadata: &Value) -> Vec<String> {
    let needed = needed(metadata);
    let mut faults = Vec::new();
    for package in list(&metadata["packages"]) {
        let name = package["name"].as_str().unwrap_or_default();
        let may_be_published = package["publish"].is_null();
        if may_be_published != needed.contains(name) {
            let (must, why) = if may_be_published { ("have", "does not need") } else { ("not have", "needs") };
            faults.push(format!("{name}: its manifest must {must} publish = false: {FACE} {why} it"));
        }
        if !needed.contains(name) {
            continue;
        }
        let missing = FIELDS.iter().filter(|field| package[**field].is_null());
        faults.extend(missing.map(|field| format!("{name}: expected a {field} in its manifest")));
        faults.extend(list(&package["dependencies"]).filter_map(|dependency| unfit(name, dependency)));
    }
    faults
}

/// The fault of a dependency on another package of the workspace. A dependency has a version. One for tests alone has
/// none, and is left out of the package: it may be unpublished, or need this package itself.
fn unfit(package: &str, dependency: &Value) -> Option<String> {
    let name = dependency["name"].as_str()?;
    dependency["path"].as_str()?;
    let has_version = dependency["req"] != "*";
    let is_for_tests = dependency["kind"] == "dev";
    if !is_for_tests && !has_version {
        return Some(format!("{package}: expected a version beside the path of {name}"));
    }
    (is_for_tests && has_version).then(|| format!("{package}: expected {name}, which is for tests, by its path alone"))
}

/// The version of the workspace.
pub(crate) fn version(manifest: &str) -> Option<String> {
    let section = manifest.split_once("[workspace.package]")?.1;
    let line = section.lines().take_while(|line| !line.starts_with('[')).find(|line| line.starts_with("version = "))?;
    Some(line.split('"').nth(1)?.to_owned())
}

/// The workspace's manifest with another version, also where crates name each other.
pub(crate) fn with_version(manifest: &str, version: &str) -> String {
    let Some(before) = self::version(manifest) else { return manifest.to_owned() };
    let ours = |line: &str| line.starts_with("version = ") || line.starts_with("kelos") && line.contains("path = ");
    let replaced = manifest.lines().map(|line| match ours(line) {
        true => line.replace(&format!("version = \"{before}\""), &format!("version = \"{version}\"")),
        false => line.to_owned(),
    });
    replaced.map(|line| line + "\n").collect()
}

/// The lock file with another version of the packages without a source: those of the workspace.
pub(crate) fn locked_with_version(lock: &str, version: &str) -> String {
    let packages = lock.split("[[package]]\n").map(|package| {
        let ours = package.starts_with("name = ") && !package.contains("\nsource = ");
        let line = package.lines().find(|line| line.starts_with("version = ")).filter(|_| ours);
        line.map_or_else(|| package.to_owned(), |line| package.replacen(line, &format!("version = \"{version}\""), 1))
    });
    packages.collect::<Vec<_>>().join("[[package]]\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn dependency(name: &str, kind: Option<&str>, req: &str) -> Value {
        json!({ "name": name, "kind": kind, "req": req, "path": format!("/{name}") })
    }

    fn workspace(face: &[Value]) -> Value {
        let fields = |name: &str, publish: Value, dependencies: &[Value]| {
            json!({ "name": name, "publish": publish, "dependencies": dependencies, "description": "d", "license": "l",
                    "readme": "r", "repository": "r" })
        };
        json!({ "packages": [
            fields("kelos", Value::Null, face),
            fields("kelos-model", Value::Null, &[]),
            fields("kelos-cli", json!([]), &[dependency("kelos", None, "^0.1.0")]),
        ] })
    }

    #[test]
    fn a_workspace_that_can_be_packaged_passes() {
        let face = [dependency("kelos-model", None, "^0.1.0"), dependency("kelos-cli", Some("dev"), "*")];
        let workspace = workspace(&face);
        assert_eq!(needed(&workspace), BTreeSet::from(["kelos", "kelos-model"]));
        assert_eq!(check(&workspace), Vec::<String>::new());
    }

    #[test]
    fn what_can_not_be_packaged_is_found() {
        let faults = |face: &[Value]| check(&workspace(face)).join("; ");
        assert!(
            faults(&[dependency("kelos-model", None, "*")])
                .contains("kelos: expected a version beside the path of kelos-model")
        );
        assert!(faults(&[]).contains("kelos-model: its manifest must have publish = false"));
        let tests = [dependency("kelos-model", None, "^0.1.0"), dependency("kelos-cli", Some("dev"), "^0.1.0")];
        assert!(faults(&tests).contains("kelos-cli, which is for tests, by its path alone"));
        let cli = [dependency("kelos-model", None, "^0.1.0"), dependency("kelos-cli", None, "^0.1.0")];
        assert!(faults(&cli).contains("kelos-cli: its manifest must not have publish = false"));
    }

    #[test]
    fn versions_are_set_where_they_are_ours() {
        let manifest = "[workspace.package]\nversion = \"0.1.0\"\n\n[workspace.dependencies]\n\
                        kelos = { path = \"crates/kelos\", version = \"0.1.0\" }\nhex = { version = \"0.1.0\" }\n";
        let expected = manifest.replacen("0.1.0", "0.2.0", 2);
        assert_eq!(version(manifest).as_deref(), Some("0.1.0"));
        assert_eq!(with_version(manifest, "0.2.0"), expected);
        let lock = "version = 4\n\n[[package]]\nname = \"hex\"\nversion = \"0.1.0\"\nsource = \"r\"\n\n[[package]]\nname = \"kelos\"\nversion = \"0.1.0\"\n";
        assert_eq!(
            locked_with_version(lock, "0.2.0"),
            lock.replace("\"kelos\"\nversion = \"0.1.0\"", "\"kelos\"\nversion = \"0.2.0\"")
        );
    }
}
