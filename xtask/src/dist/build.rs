//! The program of a platform, and what it says of itself: completions and manual pages.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::DistArguments;
use super::archive::Entry;
use super::platform::Platform;
use crate::workspace::{Outcome, cargo, cargo_with};

/// Between the options in `CARGO_ENCODED_RUSTFLAGS`.
const SEPARATOR: &str = "\x1f";

/// Builds the program, and checks that it runs elsewhere.
pub(super) fn program(root: &Path, platform: &Platform, arguments: &DistArguments, seconds: u64) -> Outcome<PathBuf> {
    tools(platform)?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |path| root.join(path));
    cargo(root, &["fetch", "--locked", "--quiet", "--target", platform.triple])?;
    let zig = platform.zig();
    let mut words = vec!["zigbuild", "--locked", "--package", "kelos-cli", "--bin", "kelos", "--target", &zig];
    words.extend(["--profile", &arguments.profile]);
    if arguments.no_default_features {
        words.push("--no-default-features");
    }
    let places = places(root, &target)?;
    cargo_with(root, &words, &variables(platform, &arguments.profile, &places, seconds))?;
    let folder = if arguments.profile == "dev" { "debug" } else { &arguments.profile };
    let program = target.join(platform.triple).join(folder).join("kelos");
    let bytes = fs::read(&program).map_err(|error| format!("read {}: {error}", program.display()))?;
    check(platform, &bytes, &places)?;
    Ok(program)
}

/// Checks that the tools are there that link for other systems than this one.
fn tools(platform: &Platform) -> Outcome<()> {
    if !cfg!(all(target_arch = "x86_64", target_os = "linux")) {
        return Err("build for x86_64 Linux: expected to run on it, as the program writes its own manual".to_owned());
    }
    let zigbuild = Command::new("cargo-zigbuild").arg("--version").output();
    if !zigbuild.is_ok_and(|output| output.status.success()) {
        return Err(
            "run cargo-zigbuild: expected it on the path; pip install -r packaging/requirements.txt installs it"
                .to_owned(),
        );
    }
    let library = sysroot()?.join("lib/rustlib").join(platform.triple).join("lib");
    if !library.is_dir() {
        return Err(format!("find Rust's library for {0}: rustup target add {0} installs it", platform.triple));
    }
    Ok(())
}

fn sysroot() -> Outcome<PathBuf> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).args(["--print", "sysroot"]).output();
    let output = output.map_err(|error| format!("run rustc: {error}"))?;
    Ok(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()))
}

/// The folders of this machine that sources are in, and what stands for each in the program.
fn places(root: &Path, target: &Path) -> Outcome<Vec<(String, &'static str)>> {
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let cargo = std::env::var_os("CARGO_HOME").map_or_else(|| home.join(".cargo"), PathBuf::from);
    let text = |path: &Path| {
        path.to_str().map(str::to_owned).ok_or_else(|| format!("build in {}: expected UTF-8", path.display()))
    };
    // Of those that fit a path the last one counts, and the target folder is mostly in the root.
    Ok(vec![
        (text(&sysroot()?)?, "/rust"),
        (text(&cargo)?, "/cargo"),
        (text(root)?, "/kelos"),
        (text(target)?, "/target"),
    ])
}

fn variables(
    platform: &Platform,
    profile: &str,
    places: &[(String, &'static str)],
    seconds: u64,
) -> Vec<(String, String)> {
    let rust: Vec<String> = places.iter().map(|(from, to)| format!("--remap-path-prefix={from}={to}")).collect();
    let c: Vec<String> = places.iter().map(|(from, to)| format!("-ffile-prefix-map={from}={to}")).collect();
    let profile = format!("CARGO_PROFILE_{}", profile.replace('-', "_").to_uppercase());
    vec![
        // Sections for debuggers name folders that can't be renamed: those of the linker's own libraries.
        (format!("{profile}_DEBUG"), "0".to_owned()),
        (format!("{profile}_STRIP"), "symbols".to_owned()),
        ("CARGO_ENCODED_RUSTFLAGS".to_owned(), rust.join(SEPARATOR)),
        (format!("CFLAGS_{}", platform.triple.replace('-', "_")), c.join(" ")),
        ("SOURCE_DATE_EPOCH".to_owned(), seconds.to_string()),
    ]
}

/// Checks that a program needs no newer glibc than that of its platform, and names no folder of this machine.
fn check(platform: &Platform, program: &[u8], places: &[(String, &'static str)]) -> Outcome<()> {
    let oldest = platform.glibc.unwrap_or(0);
    if let Some(newest) = versions(program).into_iter().next_back().filter(|newest| *newest > oldest) {
        return Err(format!(
            "link for {}: expected glibc 2.{oldest} or older, but it needs 2.{newest}",
            platform.triple
        ));
    }
    let named = places.iter().find(|(folder, _)| finds(program, folder.as_bytes()).next().is_some());
    named.map_or(Ok(()), |(folder, _)| Err(format!("keep {folder} out of the program: it is named there")))
}

/// The versions of glibc that a program asks for, each as the number after `2.`.
fn versions(program: &[u8]) -> BTreeSet<u32> {
    const MARK: &[u8] = b"GLIBC_2.";
    let digits = |at: usize| program[at + MARK.len()..].iter().take_while(|byte| byte.is_ascii_digit());
    finds(program, MARK).filter_map(|at| String::from_utf8(digits(at).copied().collect()).ok()?.parse().ok()).collect()
}

/// The places of some bytes in others.
fn finds<'a>(bytes: &'a [u8], part: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
    bytes.windows(part.len()).enumerate().filter(move |(_, window)| *window == part).map(|(at, _)| at)
}

/// The completions of the shells, where each looks for them below the prefix.
pub(super) fn completions(program: &Path) -> Outcome<Vec<Entry>> {
    let shells = [
        ("bash", "share/bash-completion/completions/kelos"),
        ("fish", "share/fish/vendor_completions.d/kelos.fish"),
        ("zsh", "share/zsh/site-functions/_kelos"),
    ];
    shells.into_iter().map(|(shell, path)| Ok(Entry::file(path, said(program, &["completions", shell])?))).collect()
}

/// The manual, a page for each command.
pub(super) fn manual(program: &Path) -> Outcome<Vec<Entry>> {
    let folder = program.with_file_name("man");
    let failed = |error: std::io::Error| format!("read the manual in {}: {error}", folder.display());
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(failed)?;
    }
    said(program, &["man", &folder.to_string_lossy()])?;
    let mut pages = Vec::new();
    for entry in fs::read_dir(&folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        pages.push(Entry::file(format!("share/man/man1/{name}"), fs::read(&path).map_err(failed)?));
    }
    Ok(pages)
}

/// The output of the program, without the environment of the user.
fn said(program: &Path, words: &[&str]) -> Outcome<Vec<u8>> {
    let output = Command::new(program).args(words).env_clear().output();
    let output = output.map_err(|error| format!("run {}: {error}", program.display()))?;
    if !output.status.success() {
        return Err(format!("run kelos {}: {}", words.join(" "), String::from_utf8_lossy(&output.stderr).trim()));
    }
    Ok(output.stdout)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dist::platform;

    #[test]
    fn a_program_that_needs_a_newer_library_is_refused() {
        let [gnu, musl] = &platform::ALL;
        assert_eq!(versions(b"\0GLIBC_2.2.5\0GLIBC_2.17\0GLIBC_PRIVATE\0GLIBC_2."), BTreeSet::from([2, 17]));
        assert!(check(gnu, b"GLIBC_2.2.5 GLIBC_2.17", &[]).is_ok());
        assert!(
            check(gnu, b"GLIBC_2.18", &[]).unwrap_err().contains("expected glibc 2.17 or older, but it needs 2.18")
        );
        assert!(check(musl, b"GLIBC_2.2.5", &[]).is_err(), "a static program needs none");
    }

    #[test]
    fn a_program_that_names_a_folder_of_this_machine_is_refused() {
        let places = [("/folders/kelos".to_owned(), "/kelos")];
        assert!(check(&platform::ALL[0], b"/kelos/crates/cli", &places).is_ok());
        assert!(check(&platform::ALL[0], b"x/folders/kelos/crates", &places).unwrap_err().contains("/folders/kelos"));
    }

    #[test]
    fn sources_are_renamed_for_both_compilers() {
        let places = [("/a b".to_owned(), "/kelos"), ("/a b/target".to_owned(), "/target")];
        let variables = variables(&platform::ALL[0], "my-own", &places, 7);
        let value = |name: &str| variables.iter().find(|(one, _)| one == name).map(|(_, value)| value.as_str());
        let rust = "--remap-path-prefix=/a b=/kelos\x1f--remap-path-prefix=/a b/target=/target";
        assert_eq!(value("CARGO_ENCODED_RUSTFLAGS"), Some(rust));
        assert!(value("CFLAGS_x86_64_unknown_linux_gnu").is_some());
        assert_eq!(value("CARGO_PROFILE_MY_OWN_STRIP"), Some("symbols"));
    }
}
