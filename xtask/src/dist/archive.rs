//! Tarballs: files below a folder of their own, to be unpacked below a prefix such as `/usr/local`.

use std::io::{self, Write as _};

use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{Builder, EntryType, Header};

use super::Product;
use super::platform::Platform;
use crate::workspace::Outcome;

/// A file in an archive.
pub(super) struct Entry {
    /// Path below the prefix.
    pub(super) path: String,
    /// Permissions of the file.
    pub(super) mode: u32,
    pub(super) bytes: Vec<u8>,
}

impl Entry {
    pub(super) fn file(path: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Entry {
        Entry { path: path.into(), mode: 0o644, bytes: bytes.into() }
    }

    pub(super) fn program(path: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Entry {
        Entry { mode: 0o755, ..Entry::file(path, bytes) }
    }
}

/// Packs files, all of one time and without an owner: the same files give the same bytes.
pub(super) fn tarball(version: &str, platform: &Platform, entries: &[Entry], seconds: u64) -> Outcome<Product> {
    let name = format!("kelos-{version}-{}", platform.triple);
    let failed = |error: io::Error| format!("pack {name}.tar.gz: {error}");
    let mut tar = Builder::new(Vec::new());
    for entry in entries {
        let mut header = Header::new_ustar();
        header.set_entry_type(EntryType::Regular);
        header.set_mode(entry.mode);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(seconds);
        header.set_size(entry.bytes.len() as u64);
        tar.append_data(&mut header, format!("{name}/{}", entry.path), entry.bytes.as_slice()).map_err(failed)?;
    }
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    let bytes = tar.into_inner().and_then(|tar| gzip.write_all(&tar)).and_then(|()| gzip.finish()).map_err(failed)?;
    Ok(Product { name: format!("{name}.tar.gz"), bytes })
}

#[cfg(test)]
mod tests {
    use flate2::read::GzDecoder;

    use super::*;
    use crate::dist::platform;

    #[test]
    fn files_are_packed_the_same_each_time_below_one_folder() {
        let entries = [Entry::program("bin/kelos", *b"\x7fELF"), Entry::file("share/doc/kelos/LICENSE", *b"yes")];
        let pack = || tarball("0.0.1", &platform::ALL[0], &entries, 1_795_437_296).unwrap();
        let product = pack();
        assert_eq!(product.name, "kelos-0.0.1-x86_64-unknown-linux-gnu.tar.gz");
        assert_eq!(product.bytes, pack().bytes);
        let mut archive = tar::Archive::new(GzDecoder::new(product.bytes.as_slice()));
        let headers = archive.entries().unwrap().map(|entry| entry.unwrap());
        let found: Vec<_> = headers
            .map(|entry| {
                let header = entry.header();
                let (mode, owner) = (header.mode().unwrap(), header.uid().unwrap() + header.gid().unwrap());
                (entry.path().unwrap().display().to_string(), mode, owner, header.mtime().unwrap())
            })
            .collect();
        let folder = "kelos-0.0.1-x86_64-unknown-linux-gnu";
        assert_eq!(
            found,
            [
                (format!("{folder}/bin/kelos"), 0o755, 0, 1_795_437_296),
                (format!("{folder}/share/doc/kelos/LICENSE"), 0o644, 0, 1_795_437_296),
            ]
        );
    }
}
