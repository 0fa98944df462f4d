//! The space on the disk of a folder.

use std::path::Path;

use rustix::fs::statvfs;

/// Free space below which nothing can be written soon, in bytes.
pub const FULL: u64 = 200 << 20;
/// Free space that is worth a warning.
pub const LOW: u64 = 1 << 30;
/// On small disks the same as a part of the whole: one of so many.
pub const LOW_PART: u64 = 20;
/// Free space that is enough, however large the disk is.
const PLENTY: u64 = 20 << 30;

/// The space on a disk, in bytes and in files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskSpace {
    /// The free part, for this program.
    pub free: u64,
    /// All of it.
    pub total: u64,
    /// Files that can still be made, for this program; none if its kind of file system does not count them.
    pub free_files: Option<u64>,
    /// All files that it can have.
    pub total_files: u64,
}

impl DiskSpace {
    /// The space on the disk of a folder; none if it can't be read.
    #[must_use]
    pub fn of(folder: &Path) -> Option<DiskSpace> {
        let stat = statvfs(folder).ok()?;
        let bytes = |blocks: u64| blocks.saturating_mul(stat.f_frsize);
        Some(DiskSpace {
            free: bytes(stat.f_bavail),
            total: bytes(stat.f_blocks),
            free_files: Some(stat.f_favail).filter(|_| stat.f_files > 0),
            total_files: stat.f_files,
        })
    }

    /// Whether it is nearly full: less than a gigabyte is free, or less than a twentieth of a disk that is not very large.
    #[must_use]
    pub fn is_low(&self) -> bool {
        self.free < LOW || (self.free < self.total / LOW_PART && self.free < PLENTY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_is_nearly_full_by_its_size() {
        let low = |free: u64, total: u64| {
            DiskSpace { free: free << 30, total: total << 30, free_files: None, total_files: 0 }.is_low()
        };
        assert!(low(0, 100) && low(4, 100) && low(19, 1000));
        assert!(!low(5, 100) && !low(20, 1000) && !low(1, 20));
        let folder = tempfile::tempdir().unwrap();
        assert!(DiskSpace::of(folder.path()).is_some_and(|space| space.free <= space.total && space.total > 0));
        assert_eq!(DiskSpace::of(&folder.path().join("missing")), None);
    }
}
