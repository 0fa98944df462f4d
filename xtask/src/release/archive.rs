//! Archives: the program with its documents, and their checksums.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest, Sha256};

use super::Outcome;

/// Files that are packed with the program.
const BESIDE: [&str; 3] = ["CHANGELOG.md", "LICENSE", "README.md"];

/// An archive, and its line for `sha256sum --check`.
pub(super) struct Archive {
    pub(super) path: PathBuf,
    pub(super) sum: String,
}

/// The name of an archive for this platform, without its extension.
pub(super) fn name(version: &str) -> String {
    format!("kelos-{version}-{}-{}", std::env::consts::ARCH, std::env::consts::OS)
}

/// Packs a program: the same program gives the same archive.
pub(super) fn pack(root: &Path, program: &Path, name: &str, into: &Path) -> Outcome<Archive> {
    let folder = into.join(name);
    let failed = |what: &str, error: std::io::Error| format!("{what}: {error}");
    fs::create_dir_all(&folder).map_err(|error| failed("make the folder of the archive", error))?;
    let copy = |from: &Path, name: &str| {
        fs::copy(from, folder.join(name)).map_err(|error| failed(&format!("pack {}", from.display()), error))
    };
    copy(program, "kelos")?;
    for file in BESIDE {
        copy(&root.join(file), file)?;
    }
    let path = into.join(format!("{name}.tar.gz"));
    let steady = ["--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner"];
    let status = Command::new("tar").args(steady).arg("-czf").arg(&path).arg("-C").arg(into).arg(name).status();
    let status = status.map_err(|error| failed("run tar", error))?;
    if !status.success() {
        return Err(format!("run tar: {status}"));
    }
    fs::remove_dir_all(&folder).map_err(|error| failed("remove what is packed", error))?;
    let sum =
        format!("{}  {name}.tar.gz", sha256(&fs::read(&path).map_err(|error| failed("read the archive", error))?));
    add_sum(&into.join("SHA256SUMS"), &sum)?;
    Ok(Archive { path, sum })
}

/// Adds a line to the file of checksums, replacing an older one of the same archive.
fn add_sum(file: &Path, sum: &str) -> Outcome<()> {
    let before = fs::read_to_string(file).unwrap_or_default();
    let name = sum.split("  ").last().unwrap_or_default();
    let mut lines: Vec<&str> = before.lines().filter(|line| line.split("  ").last() != Some(name)).collect();
    lines.push(sum);
    fs::write(file, lines.join("\n") + "\n").map_err(|error| format!("write {}: {error}", file.display()))
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

    #[test]
    fn sums_are_those_of_sha256() {
        assert_eq!(sha256(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }

    #[test]
    fn a_program_is_packed_the_same_each_time() {
        let root = std::env::temp_dir().join(format!("kelos-archive-{}", std::process::id()));
        fs::create_dir_all(&root).unwrap();
        for file in BESIDE.into_iter().chain(["program"]) {
            fs::write(root.join(file), file).unwrap();
        }
        let pack = || pack(&root, &root.join("program"), "kelos-0.0.1-a-b", &root.join("archives")).unwrap();
        let (first, second) = (pack(), pack());
        assert_eq!(first.sum, second.sum);
        assert!(first.path.ends_with("archives/kelos-0.0.1-a-b.tar.gz"));
        let sums = fs::read_to_string(root.join("archives/SHA256SUMS")).unwrap();
        assert_eq!(sums, first.sum + "\n");
        fs::remove_dir_all(&root).unwrap();
    }
}
