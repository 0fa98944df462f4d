//! Zip archives, as far as wheels need them: deflated files with permissions, all of one time.

use std::io::{self, Write as _};

use flate2::Compression;
use flate2::write::DeflateEncoder;
use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::archive::Entry;

/// Made by Unix, so that permissions are read; version 2.0 of the format.
const MADE_BY: u16 = (3 << 8) | 20;
const NEEDS: u16 = 20;
/// Names are UTF-8.
const FLAGS: u16 = 1 << 11;
const DEFLATED: u16 = 8;
const REGULAR_FILE: u32 = 0o100_000;

/// Writes an archive whose files are all of the same time, in seconds since 1970.
pub(super) fn zip(entries: &[Entry], seconds: u64) -> io::Result<Vec<u8>> {
    let (mut out, mut directory) = (Vec::new(), Vec::new());
    for entry in entries {
        let deflated = deflated(&entry.bytes)?;
        let described = described(entry, &deflated, seconds)?;
        let offset = small(out.len())?;
        out.extend(b"PK\x03\x04");
        out.extend(&described);
        out.extend(0_u16.to_le_bytes());
        out.extend(entry.path.as_bytes());
        out.extend(deflated);
        directory.extend(b"PK\x01\x02");
        directory.extend(MADE_BY.to_le_bytes());
        directory.extend(&described);
        // Neither an extra field, nor a comment, nor other disks, nor hints about the content.
        directory.extend([0; 8]);
        directory.extend(((REGULAR_FILE | entry.mode) << 16).to_le_bytes());
        directory.extend(offset.to_le_bytes());
        directory.extend(entry.path.as_bytes());
    }
    let (count, begins) = (u16::try_from(entries.len()).map_err(io::Error::other)?, small(out.len())?);
    let size = small(directory.len())?;
    out.extend(directory);
    out.extend(b"PK\x05\x06\0\0\0\0");
    out.extend([count.to_le_bytes(), count.to_le_bytes()].concat());
    out.extend([size.to_le_bytes(), begins.to_le_bytes()].concat());
    out.extend([0; 2]);
    Ok(out)
}

fn deflated(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes)?;
    encoder.finish()
}

/// The fields of a file that its own header and the directory share, up to the length of its name.
fn described(entry: &Entry, deflated: &[u8], seconds: u64) -> io::Result<Vec<u8>> {
    let name = u16::try_from(entry.path.len()).map_err(io::Error::other)?;
    let mut fields = [NEEDS, FLAGS, DEFLATED].map(u16::to_le_bytes).concat();
    fields.extend(moment(seconds).to_le_bytes());
    fields.extend(crc32fast::hash(&entry.bytes).to_le_bytes());
    fields.extend(small(deflated.len())?.to_le_bytes());
    fields.extend(small(entry.bytes.len())?.to_le_bytes());
    fields.extend(name.to_le_bytes());
    Ok(fields)
}

fn small(length: usize) -> io::Result<u32> {
    u32::try_from(length).map_err(io::Error::other)
}

/// A moment as DOS has it: in the upper half the day since 1980, in the lower half the time in steps of two seconds.
fn moment(seconds: u64) -> u32 {
    let at = i64::try_from(seconds).ok().and_then(|seconds| Timestamp::from_second(seconds).ok()).unwrap_or_default();
    let at = at.to_zoned(TimeZone::UTC).datetime();
    let part = |value: i8, shift: u32| u32::from(value.unsigned_abs()) << shift;
    let years = u32::try_from(i32::from(at.year()) - 1980).unwrap_or(0);
    (years << 25)
        | part(at.month(), 21)
        | part(at.day(), 16)
        | part(at.hour(), 11)
        | part(at.minute(), 5)
        | part(at.second() / 2, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_those_of_dos() {
        // 2026-11-23T12:34:56Z
        let expected = (46 << 25) | (11 << 21) | (23 << 16) | (12 << 11) | (34 << 5) | 28;
        assert_eq!(moment(1_795_437_296), expected);
        assert_eq!(moment(0) >> 25, 0, "before 1980");
    }

    #[test]
    fn an_archive_ends_with_its_directory() {
        let entries = [Entry::file("a", b"aaaa".to_vec()), Entry::program("b/c", vec![])];
        let zip = zip(&entries, 1_795_437_296).unwrap();
        assert!(zip.starts_with(b"PK\x03\x04"));
        let end = &zip[zip.len() - 22..];
        assert!(end.starts_with(b"PK\x05\x06"));
        let begins = u32::from_le_bytes(end[16..20].try_into().unwrap()) as usize;
        assert!(zip[begins..].starts_with(b"PK\x01\x02"));
        assert_eq!(u16::from_le_bytes([end[10], end[11]]), 2);
    }
}
