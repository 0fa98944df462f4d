//! A project outside of the workspace, built from packages as its author would have them: how many crates it needs, how long
//! they take, how large the program is, and whether its tests pass.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use flate2::read::GzDecoder;

use crate::workspace::{Outcome, read};

/// The name of the project.
const NAME: &str = "shop";

/// Makes a project with the command `kelos new --rust`, and builds and tests it from the packages of these names, which are in the
/// target folder. The first build is that of a program with its state in memory and without scripts.
pub(crate) fn build(root: &Path, target: &Path, kelos: &Path, packages: &BTreeSet<&str>) -> Outcome<()> {
    let outside = target.join("outside");
    // What an earlier run has built would take no time.
    if outside.exists() {
        fs::remove_dir_all(&outside).map_err(|error| format!("empty {}: {error}", outside.display()))?;
    }
    let unpacked = unpack(target, &outside, packages)?;
    let project = outside.join(NAME);
    let mut new = Command::new(kelos);
    run(new.args(["new", "--rust"]).arg(&project))?;
    write(&outside.join(".cargo/config.toml"), &patches(&unpacked)?)?;
    // Its own workspace, since the target folder may be in that of Kelos; and the versions of Kelos's own, which are here already.
    write(&outside.join("Cargo.toml"), &format!("[workspace]\nmembers = [\"{NAME}\"]\nresolver = \"3\"\n"))?;
    write(&outside.join("Cargo.lock"), &read(root, "Cargo.lock")?)?;

    let memory = ["--no-default-features"];
    let crates = crates(&project, &memory)?;
    let began = Instant::now();
    run(cargo(&project).args(["build", "--offline", "--quiet"]).args(memory))?;
    let seconds = began.elapsed().as_secs_f64();
    let program = project.join("target/debug").join(NAME);
    let size = fs::metadata(&program).map_err(|error| format!("find {}: {error}", program.display()))?.len();
    println!(
        "a project outside of the workspace: features embed, {crates} crates, {seconds:.0} s, {:.0} MB in the dev profile",
        size as f64 / 1e6
    );
    let began = Instant::now();
    run(cargo(&project).args(["test", "--offline", "--quiet"]))?;
    println!("its tests, features embed and sqlite: {:.0} s", began.elapsed().as_secs_f64());
    Ok(())
}

/// The folders of packages, by their names.
fn unpack<'a>(target: &Path, outside: &Path, packages: &BTreeSet<&'a str>) -> Outcome<Vec<(&'a str, PathBuf)>> {
    let mut folders = Vec::new();
    for name in packages {
        let package = format!("{name}-{}", env!("CARGO_PKG_VERSION"));
        let file = target.join("package").join(format!("{package}.crate"));
        let bytes = fs::read(&file).map_err(|error| format!("read {}: {error}", file.display()))?;
        let unpacked = tar::Archive::new(GzDecoder::new(bytes.as_slice())).unpack(outside);
        unpacked.map_err(|error| format!("unpack {}: {error}", file.display()))?;
        folders.push((*name, outside.join(package)));
    }
    Ok(folders)
}

/// The settings of cargo by which packages are taken from folders.
fn patches(folders: &[(&str, PathBuf)]) -> Outcome<String> {
    let mut text = "[patch.crates-io]\n".to_owned();
    for (name, folder) in folders {
        let folder = folder.to_str().ok_or_else(|| format!("name {}, which is no text", folder.display()))?;
        text.push_str(&format!("{name} = {{ path = {} }}\n", serde_json::Value::from(folder)));
    }
    Ok(text)
}

/// The number of crates that the project is built from.
fn crates(project: &Path, features: &[&str]) -> Outcome<usize> {
    let mut tree = cargo(project);
    tree.args(["tree", "--offline", "--edges", "normal,build", "--prefix", "none", "--format", "{p}"]).args(features);
    let output = tree.output().map_err(|error| format!("run {tree:?}: {error}"))?;
    if !output.status.success() {
        return Err(format!("run {tree:?}: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).lines().collect::<BTreeSet<_>>().len())
}

/// Cargo in the project, with a target folder of its own.
fn cargo(project: &Path) -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(project).env("CARGO_TARGET_DIR", project.join("target"));
    cargo
}

fn write(path: &Path, text: &str) -> Outcome<()> {
    let folder = path.parent().map_or(Ok(()), fs::create_dir_all);
    folder.and_then(|()| fs::write(path, text)).map_err(|error| format!("write {}: {error}", path.display()))
}

fn run(command: &mut Command) -> Outcome<()> {
    let status = command.status().map_err(|error| format!("run {command:?}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("run {command:?}: {status}")) }
}
