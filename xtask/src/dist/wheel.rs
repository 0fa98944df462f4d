//! Python wheels that carry the program: `pip install` puts it on the path, its manual pages and completions beside it.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

use super::Product;
use super::archive::Entry;
use super::platform::Platform;
use super::zip::zip;
use crate::workspace::Outcome;

/// Folders below the prefix whose files a wheel has, too. systemd does not look into an environment of Python.
const BESIDE: [&str; 4] = ["share/bash-completion/", "share/fish/", "share/man/", "share/zsh/"];

/// Licences below the prefix.
const LICENCES: [&str; 2] = ["share/doc/kelos/LICENSE", "share/doc/kelos/THIRD-PARTY.md"];

pub(super) fn wheel(
    version: &str,
    platform: &Platform,
    entries: &[Entry],
    readme: &str,
    seconds: u64,
) -> Outcome<Product> {
    let name = format!("kelos-{version}-py3-none-{}.whl", platform.tag);
    let info = format!("kelos-{version}.dist-info");
    let mut files: Vec<Entry> = entries.iter().filter_map(|entry| placed(version, &info, entry)).collect();
    files.push(Entry::file(format!("{info}/METADATA"), metadata(version, readme)));
    files.push(Entry::file(format!("{info}/WHEEL"), tags(platform)));
    // The record is the last, as it lists the others; the description of the wheel is expected at the end.
    files.sort_by_key(|file| (file.path.contains(".dist-info/"), file.path.clone()));
    files.push(record(&info, &files));
    let bytes = zip(&files, seconds).map_err(|error| format!("pack {name}: {error}"))?;
    Ok(Product { name, bytes })
}

/// A file with its place in the wheel, if it is in there.
fn placed(version: &str, info: &str, entry: &Entry) -> Option<Entry> {
    let path = if let Some(program) = entry.path.strip_prefix("bin/") {
        format!("kelos-{version}.data/scripts/{program}")
    } else if BESIDE.iter().any(|folder| entry.path.starts_with(folder)) {
        format!("kelos-{version}.data/data/{}", entry.path)
    } else if LICENCES.contains(&entry.path.as_str()) {
        format!("{info}/licenses/{}", entry.path.rsplit('/').next()?)
    } else {
        return None;
    };
    Some(Entry { path, mode: entry.mode, bytes: entry.bytes.clone() })
}

fn metadata(version: &str, readme: &str) -> String {
    format!(
        "Metadata-Version: 2.1\nName: kelos\nVersion: {version}\n\
         Summary: A scheduler for recurring data jobs that explains every decision\n\
         License: Apache-2.0\nProject-URL: Source, {}\n\
         Classifier: Operating System :: POSIX :: Linux\nRequires-Python: >=3\n\
         Description-Content-Type: text/markdown\n\n{readme}",
        env!("CARGO_PKG_REPOSITORY"),
    )
}

fn tags(platform: &Platform) -> String {
    let tags = platform.tag.split('.').map(|tag| format!("Tag: py3-none-{tag}\n")).collect::<String>();
    format!("Wheel-Version: 1.0\nGenerator: kelos-xtask\nRoot-Is-Purelib: false\n{tags}")
}

/// The list by which pip checks and removes files.
fn record(info: &str, files: &[Entry]) -> Entry {
    let path = format!("{info}/RECORD");
    let line = |file: &Entry| {
        let digest = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(&file.bytes));
        format!("{},sha256={digest},{}\n", file.path, file.bytes.len())
    };
    let lines = files.iter().map(line).collect::<String>();
    Entry::file(&path, format!("{lines}{path},,\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dist::platform;

    fn entries() -> Vec<Entry> {
        let paths = ["lib/systemd/system/kelos.service", "share/doc/kelos/LICENSE", "share/man/man1/kelos.1"];
        let files = paths.iter().map(|path| Entry::file(*path, *b"abc"));
        std::iter::once(Entry::program("bin/kelos", *b"\x7fELF")).chain(files).collect()
    }

    #[test]
    fn files_have_the_places_of_wheels() {
        let places: Vec<_> =
            entries().iter().map(|entry| placed("1.2.3", "i", entry).map(|entry| entry.path)).collect();
        let expected = [
            Some("kelos-1.2.3.data/scripts/kelos"),
            None,
            Some("i/licenses/LICENSE"),
            Some("kelos-1.2.3.data/data/share/man/man1/kelos.1"),
        ];
        assert_eq!(places.iter().map(Option::as_deref).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn the_record_lists_everything_but_itself() {
        let record = record("i", &entries());
        let text = String::from_utf8(record.bytes).unwrap();
        assert!(
            text.contains("share/doc/kelos/LICENSE,sha256=ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0,3\n"),
            "{text}"
        );
        assert!(text.ends_with("i/RECORD,,\n") && text.lines().count() == 5, "{text}");
    }

    #[test]
    fn a_wheel_is_named_after_its_platform() {
        let wheel = wheel("1.2.3", &platform::ALL[0], &entries(), "# Kelos", 0).unwrap();
        assert_eq!(wheel.name, "kelos-1.2.3-py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64.whl");
        assert_eq!(tags(&platform::ALL[0]).matches("Tag: py3-none-manylinux").count(), 2);
    }
}
