//! Space on disks, the sizes of the database, and limits of the process on files.

use std::time::Duration;

use kelos_executors::local::{DiskSpace, FULL, LOW, LOW_PART};
use kelos_model::time::text::span;

use super::bytes;
use crate::doctor::diagnosis::Diagnosis;

const CHECK: &str = "disk";

/// The size of the write-ahead log from which it is a question why it does not shrink.
const LONG_LOG: u64 = 1 << 30;
/// Open files that a server needs.
const FILES: u64 = 1024;
/// The age of a log from which its growth says something.
const DAY: u64 = 86_400;
/// Days until the disk is full that are worth a warning.
const SOON: u64 = 30;

/// The space of a file system.
#[derive(Debug, Clone)]
pub(in crate::doctor) struct Space {
    /// The folders that are on it, in words.
    pub(in crate::doctor) holds: String,
    pub(in crate::doctor) disk: DiskSpace,
}

/// The files of the database.
#[derive(Debug, Clone)]
pub(in crate::doctor) struct DatabaseFiles {
    pub(in crate::doctor) bytes: u64,
    /// The bytes of its write-ahead log.
    pub(in crate::doctor) log_bytes: u64,
    /// The time that its history covers.
    pub(in crate::doctor) age: Option<Duration>,
}

/// The folders of runs.
#[derive(Debug, Clone, Copy)]
pub(in crate::doctor) struct RunFolders {
    pub(in crate::doctor) count: u64,
    pub(in crate::doctor) bytes: u64,
    /// Whether there are more, which were not counted.
    pub(in crate::doctor) has_more: bool,
}

/// The limits of a process on files; none if there is no limit.
#[derive(Debug, Clone)]
pub(in crate::doctor) struct FileLimits {
    /// The process, in words.
    pub(in crate::doctor) of: String,
    pub(in crate::doctor) file_size: Option<u64>,
    pub(in crate::doctor) open_files: Option<u64>,
}

/// Space, sizes and limits.
#[derive(Debug, Clone)]
pub(in crate::doctor) struct DiskUsage {
    /// The file systems; that of the state comes first.
    pub(in crate::doctor) spaces: Vec<Space>,
    pub(in crate::doctor) database: Option<DatabaseFiles>,
    /// The folders of runs; none if they can't be read.
    pub(in crate::doctor) runs: Option<RunFolders>,
    pub(in crate::doctor) limits: FileLimits,
}

/// Judges space, sizes and limits.
pub(in crate::doctor) fn judge(usage: &DiskUsage) -> Vec<Diagnosis> {
    let mut found: Vec<Diagnosis> = usage.spaces.iter().filter_map(space).collect();
    found.extend(usage.spaces.iter().filter_map(files));
    if let Some(database) = &usage.database {
        found.extend(log(database));
        found.extend(usage.spaces.first().and_then(|space| growth(database, space)));
    }
    found.extend(file_size(usage));
    found.extend(open_files(&usage.limits));
    if found.is_empty() {
        found.push(Diagnosis::ok(CHECK, summary(usage)));
    }
    found
}

fn summary(usage: &DiskUsage) -> String {
    let free = |space: &Space| {
        format!("{} of {} are free for {}", bytes(space.disk.free), bytes(space.disk.total), space.holds)
    };
    let mut parts: Vec<String> = usage.spaces.iter().map(free).collect();
    if let Some(DatabaseFiles { bytes: size, log_bytes, .. }) = &usage.database {
        parts.push(format!("kelos.db has {}, its write-ahead log {}", bytes(*size), bytes(*log_bytes)));
    }
    parts.extend(usage.runs.as_ref().map(|runs| {
        let least = if runs.has_more { "more than " } else { "" };
        let folders = if runs.count == 1 { "folder" } else { "folders" };
        format!("runs/ has {least}{} {folders} with {least}{}", runs.count, bytes(runs.bytes))
    }));
    parts.join("; ")
}

fn space(space: &Space) -> Option<Diagnosis> {
    let is_low = space.disk.is_low();
    let words = format!("only {} of {} are free for {}", bytes(space.disk.free), bytes(space.disk.total), space.holds);
    let advice = "make room: let folders of runs go sooner, by \"history\" in the file of --config; kelos storage says what takes how much";
    match (space.disk.free < FULL, is_low) {
        (true, _) => Some(Diagnosis::wrong(CHECK, words, advice)),
        (false, true) => Some(Diagnosis::warning(CHECK, words, advice)),
        (false, false) => None,
    }
}

fn files(space: &Space) -> Option<Diagnosis> {
    let free = space.disk.free_files.filter(|_| space.disk.total_files > 0)?;
    let words = format!("only {free} more files can be made for {} (inodes)", space.holds);
    let advice = "delete small files there: each run has a folder with five of them in runs/";
    match free {
        0..1000 => Some(Diagnosis::wrong(CHECK, words, advice)),
        _ if free < space.disk.total_files / LOW_PART && free < 100_000 => {
            Some(Diagnosis::warning(CHECK, words, advice))
        }
        _ => None,
    }
}

fn log(database: &DatabaseFiles) -> Option<Diagnosis> {
    let words = format!("the write-ahead log kelos.db-wal has {}", bytes(database.log_bytes));
    let advice = "a reader that does not end keeps it from being moved into kelos.db: end backups and sqlite3 shells that are open, then restart the server";
    (database.log_bytes > LONG_LOG).then(|| Diagnosis::warning(CHECK, words, advice))
}

/// The time until the disk is full, if the database goes on growing as it did on average.
fn growth(database: &DatabaseFiles, space: &Space) -> Option<Diagnosis> {
    let days = database.age?.as_secs() / DAY;
    let daily = database.bytes.checked_div(days).filter(|daily| *daily > 0)?;
    let left = space.disk.free / daily;
    let words = format!("kelos.db grows by {} a day: the disk is full in {}", bytes(daily), span(days_long(left)));
    let advice = "plan a larger disk, or fewer slots";
    (left < SOON).then(|| Diagnosis::warning(CHECK, words, advice))
}

fn days_long(days: u64) -> i64 {
    i64::try_from(days.saturating_mul(DAY)).unwrap_or(i64::MAX)
}

fn file_size(usage: &DiskUsage) -> Option<Diagnosis> {
    let limit = usage.limits.file_size?;
    let size = usage.database.as_ref().map_or(0, |files| files.bytes.max(files.log_bytes));
    let words = format!("{} may write files of up to {} (ulimit -f)", usage.limits.of, bytes(limit));
    let advice = "remove the limit: `ulimit -f unlimited`, or LimitFSIZE=infinity in the unit of systemd";
    match (limit < size.saturating_add(FULL), limit < size.saturating_mul(2).max(LOW)) {
        (true, _) => Some(Diagnosis::wrong(CHECK, words, advice)),
        (false, true) => Some(Diagnosis::warning(CHECK, words, advice)),
        (false, false) => None,
    }
}

fn open_files(limits: &FileLimits) -> Option<Diagnosis> {
    let limit = limits.open_files.filter(|limit| *limit < FILES)?;
    let words = format!("{} may open {limit} files and connections (ulimit -n), expected {FILES} or more", limits.of);
    Some(Diagnosis::warning(CHECK, words, "raise it: `ulimit -n 65536`, or LimitNOFILE=65536 in the unit of systemd"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    fn space_of(free: u64, total: u64, free_files: u64) -> Space {
        let holds = "the state".to_owned();
        Space { holds, disk: DiskSpace { free, total, free_files: Some(free_files), total_files: 1_000_000 } }
    }

    fn usage(space: Space, [bytes, log_bytes, days]: [u64; 3], [file_size, open_files]: [u64; 2]) -> DiskUsage {
        let age = Some(Duration::from_secs(days * DAY));
        let limits = FileLimits {
            of: "this process".to_owned(),
            file_size: Some(file_size).filter(|limit| *limit > 0),
            open_files: Some(open_files),
        };
        let runs = Some(RunFolders { count: 12, bytes: 3 << 20, has_more: false });
        DiskUsage { spaces: vec![space], runs, database: Some(DatabaseFiles { bytes, log_bytes, age }), limits }
    }

    fn told(usage: &DiskUsage) -> Vec<String> {
        judge(usage).iter().map(|one| format!("{:?} {}", one.level, one.found)).collect()
    }

    #[test]
    fn a_disk_with_room_is_one_line() {
        let well = usage(space_of(40 * GIB, 100 * GIB, 900_000), [GIB, 4 << 20, 100], [0, 4096]);
        assert_eq!(
            told(&well),
            [
                "Ok 40 GiB of 100 GiB are free for the state; kelos.db has 1.0 GiB, its write-ahead log 4.0 MiB; runs/ has 12 folders with 3.0 MiB"
            ]
        );
    }

    #[test]
    fn space_and_inodes_that_end_are_named() {
        let sizes = [1 << 20, 0, 0];
        let of = |free, total, files| told(&usage(space_of(free, total, files), sizes, [0, 4096]));
        assert_eq!(of(3 * GIB, 100 * GIB, 900_000), ["Warning only 3.0 GiB of 100 GiB are free for the state"]);
        assert_eq!(of(100 << 20, GIB, 900_000), ["Wrong only 100 MiB of 1.0 GiB are free for the state"]);
        assert_eq!(of(40 * GIB, 4000 * GIB, 900_000).len(), 1, "enough, however large the disk is");
        assert_eq!(of(40 * GIB, 50 * GIB, 7), ["Wrong only 7 more files can be made for the state (inodes)"]);
        assert!(of(40 * GIB, 50 * GIB, 20_000)[0].starts_with("Warning only 20000 more files"));
    }

    #[test]
    fn a_database_that_fills_its_disk_is_named_with_the_time_that_is_left() {
        let grows = usage(space_of(30 * GIB, 100 * GIB, 900_000), [200 * GIB, 2 * GIB, 100], [0, 4096]);
        assert_eq!(
            told(&grows),
            [
                "Warning the write-ahead log kelos.db-wal has 2.0 GiB",
                "Warning kelos.db grows by 2.0 GiB a day: the disk is full in 15 d"
            ]
        );
    }

    #[test]
    fn limits_of_the_process_are_compared_with_the_files() {
        let room = || space_of(40 * GIB, 100 * GIB, 900_000);
        let of = |limits| told(&usage(room(), [GIB, 0, 0], limits));
        assert_eq!(of([GIB, 4096]), ["Wrong this process may write files of up to 1.0 GiB (ulimit -f)"]);
        assert!(of([3 * GIB / 2, 4096])[0].starts_with("Warning this process may write"));
        let few = "Warning this process may open 256 files and connections (ulimit -n), expected 1024 or more";
        assert_eq!(of([0, 256]), [few]);
    }
}
