//! `cargo xtask dist`: what people install. For each platform a tarball and a Python wheel; a container file; their checksums.
//!
//! The same commit gives the same bytes: nothing of this machine, its user or the hour gets into them.

mod archive;
mod build;
mod platform;
mod third_party;
mod wheel;
mod zip;

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use sha2::{Digest, Sha256};

use crate::packages;
use crate::workspace::{Outcome, read, root};
use archive::Entry;
use platform::Platform;

#[derive(clap::Args)]
pub(crate) struct DistArguments {
    /// The platform, once for each; all of them where none is named.
    #[arg(long, value_name = "TRIPLE", value_parser = platform::named)]
    target: Vec<&'static Platform>,
    /// The profile of cargo. Any other than the default is for tests.
    #[arg(long, default_value = "dist", value_name = "NAME")]
    profile: String,
    /// Leave out the connectors (HDFS, object stores, Redis, SFTP): for tests.
    #[arg(long)]
    no_default_features: bool,
    /// The folder for the results: new, empty, or that of an earlier call, whose files are replaced.
    #[arg(long, default_value = "target/dist-files", value_name = "FOLDER")]
    out: PathBuf,
    /// Build from files that are not committed, too.
    #[arg(long)]
    allow_dirty: bool,
}

/// The checksums of all other results.
const SUMS: &str = "SHA256SUMS";

/// A name and the bytes of a file to install or to publish.
struct Product {
    name: String,
    bytes: Vec<u8>,
}

pub(crate) fn run(arguments: &DistArguments) -> ExitCode {
    match dist(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(wrong) => {
            eprintln!("failed to {wrong}");
            ExitCode::FAILURE
        }
    }
}

fn dist(arguments: &DistArguments) -> Outcome<()> {
    let root = root();
    let commit = Commit::read(&root, arguments.allow_dirty)?;
    let out = root.join(&arguments.out);
    clear(&out)?;
    let manifest = read(&root, "Cargo.toml")?;
    let version =
        packages::version(&manifest).ok_or("find the version in Cargo.toml: expected it in [workspace.package]")?;
    let mut products =
        vec![Product { name: "Containerfile".to_owned(), bytes: read(&root, "packaging/Containerfile")?.into() }];
    let all = if arguments.target.is_empty() { platform::ALL.iter().collect() } else { arguments.target.clone() };
    for platform in all {
        let began = Instant::now();
        let program = build::program(&root, platform, arguments, commit.seconds)?;
        let built = began.elapsed();
        let entries = entries(&root, platform, &program)?;
        products.push(archive::tarball(&version, platform, &entries, commit.seconds)?);
        products.push(wheel::wheel(&version, platform, &entries, &read(&root, "README.md")?, commit.seconds)?);
        println!(
            "{}: built in {:.0} s, packed in {:.0} s",
            platform.triple,
            built.as_secs_f64(),
            (began.elapsed() - built).as_secs_f64()
        );
    }
    products.sort_by(|a, b| a.name.cmp(&b.name));
    products.push(sums(&products));
    for product in &products {
        let path = out.join(&product.name);
        fs::write(&path, &product.bytes).map_err(|error| format!("write {}: {error}", path.display()))?;
        println!("{:>10} bytes  {}", product.bytes.len(), path.display());
    }
    Ok(())
}

/// The commit that everything is made from.
struct Commit {
    /// When it was made, in seconds since 1970: the time of all files in the archives.
    seconds: u64,
}

impl Commit {
    fn read(root: &Path, allow_dirty: bool) -> Outcome<Commit> {
        let changed = git(root, &["status", "--porcelain"])?;
        if let Some(first) = changed.lines().next().filter(|_| !allow_dirty) {
            let more = changed.lines().count() - 1;
            let others = if more == 0 { String::new() } else { format!(" and {more} more") };
            return Err(format!(
                "build from this tree: expected all files to be committed, but found {}{others}; --allow-dirty builds all the same",
                first.get(3..).unwrap_or(first)
            ));
        }
        let seconds = git(root, &["log", "-1", "--format=%ct"])?;
        let seconds = seconds.trim().parse().map_err(|error| format!("read the time of the last commit: {error}"))?;
        Ok(Commit { seconds })
    }
}

fn git(root: &Path, arguments: &[&str]) -> Outcome<String> {
    let output = Command::new("git").args(arguments).current_dir(root).output();
    let output = output.map_err(|error| format!("run git {}: {error}", arguments.join(" ")))?;
    if !output.status.success() {
        let wrong = String::from_utf8_lossy(&output.stderr);
        return Err(format!("run git {}: {}; expected a clone with a commit", arguments.join(" "), wrong.trim()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Makes the folder, and removes what an earlier call left there. Other people's files are not touched.
fn clear(out: &Path) -> Outcome<()> {
    let failed = |error: io::Error| format!("use {} as the folder for the results: {error}", out.display());
    fs::create_dir_all(out).map_err(failed)?;
    let earlier = fs::read_to_string(out.join(SUMS)).unwrap_or_default();
    let mut ours: Vec<&str> = earlier.lines().filter_map(|line| line.split("  ").nth(1)).collect();
    ours.push(SUMS);
    let found = fs::read_dir(out).and_then(Iterator::collect::<io::Result<Vec<_>>>).map_err(failed)?;
    let foreign = found.iter().map(|entry| entry.file_name()).find(|name| !ours.iter().any(|one| name == one));
    if let Some(name) = foreign {
        return Err(format!(
            "use {} as the folder for the results: {} is in it; expected a new or empty folder, or that of an earlier call",
            out.display(),
            name.display()
        ));
    }
    found.iter().try_for_each(|entry| fs::remove_file(entry.path())).map_err(failed)
}

/// The files below the prefix of an installation, in order.
fn entries(root: &Path, platform: &Platform, program: &Path) -> Outcome<Vec<Entry>> {
    let bytes = fs::read(program).map_err(|error| format!("read {}: {error}", program.display()))?;
    let mut entries = vec![Entry::program("bin/kelos", bytes)];
    for (path, file) in [
        ("lib/systemd/system/kelos.service", "packaging/kelos.service"),
        ("lib/sysusers.d/kelos.conf", "packaging/sysusers.conf"),
        ("share/doc/kelos/CHANGELOG.md", "CHANGELOG.md"),
        ("share/doc/kelos/LICENSE", "LICENSE"),
        ("share/doc/kelos/README.md", "README.md"),
    ] {
        entries.push(Entry::file(path, read(root, file)?));
    }
    entries.push(Entry::file("share/doc/kelos/THIRD-PARTY.md", third_party::licences(root, platform)?));
    entries.extend(build::completions(program)?);
    entries.extend(build::manual(program)?);
    entries.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(entries)
}

/// The checksums, as `sha256sum --check` reads them.
fn sums(products: &[Product]) -> Product {
    let lines = products.iter().map(|product| format!("{}  {}\n", sha256(&product.bytes), product.name));
    Product { name: SUMS.to_owned(), bytes: lines.collect::<String>().into() }
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An empty folder for a test, which is removed at its end.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let path = std::env::temp_dir().join(format!("kelos-dist-{}-{name}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Folder(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn sums_are_those_of_sha256() {
        let product = Product { name: "a.tar.gz".to_owned(), bytes: b"abc".to_vec() };
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  a.tar.gz\n";
        assert_eq!(String::from_utf8(sums(&[product]).bytes).unwrap(), expected);
    }

    #[test]
    fn earlier_results_are_replaced_and_other_files_never_touched() {
        let folder = Folder::new("out");
        let out = folder.0.join("new/one");
        clear(&out).unwrap();
        fs::write(out.join("kelos-1.tar.gz"), "old").unwrap();
        fs::write(out.join(SUMS), "0123  kelos-1.tar.gz\n").unwrap();
        fs::write(out.join("thesis.txt"), "mine").unwrap();
        let wrong = clear(&out).unwrap_err();
        assert!(wrong.contains("thesis.txt is in it; expected a new or empty folder"), "{wrong}");
        assert!(out.join("kelos-1.tar.gz").exists(), "nothing is removed where something is foreign");
        fs::remove_file(out.join("thesis.txt")).unwrap();
        clear(&out).unwrap();
        assert_eq!(fs::read_dir(&out).unwrap().count(), 0);
        fs::write(folder.0.join("file"), "").unwrap();
        assert!(clear(&folder.0.join("file")).unwrap_err().contains("as the folder for the results"));
    }

    #[test]
    fn what_is_not_committed_is_refused_unless_told() {
        let folder = Folder::new("tree");
        let read = |dirty| Commit::read(&folder.0, dirty).map(|commit| commit.seconds);
        let who = ["-c", "user.name=a", "-c", "user.email=a@b"];
        let run = |words: &[&str]| git(&folder.0, &[&who[..], words].concat()).unwrap();
        assert!(read(true).unwrap_err().contains("expected a clone with a commit"));
        run(&["init", "--quiet"]);
        run(&["commit", "--quiet", "--allow-empty", "--message", "x", "--date", "2026-11-23T00:00:00Z"]);
        assert!(read(false).is_ok());
        fs::write(folder.0.join("new.rs"), "").unwrap();
        fs::write(folder.0.join("newer.rs"), "").unwrap();
        let wrong = read(false).unwrap_err();
        assert!(wrong.contains("new.rs and 1 more") && wrong.contains("--allow-dirty"), "{wrong}");
        assert_eq!(read(true), Ok(run(&["log", "-1", "--format=%ct"]).trim().parse().unwrap()));
    }

    #[test]
    fn a_platform_that_is_not_known_is_refused_with_those_that_are() {
        let wrong = platform::named("aarch64-apple-darwin").unwrap_err();
        assert_eq!(wrong, "expected x86_64-unknown-linux-gnu or x86_64-unknown-linux-musl");
    }
}
