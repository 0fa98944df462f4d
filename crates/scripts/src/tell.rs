//! Change notifications for folders, in place of reading them again and again.
//!
//! Only where the system reports every change: on a file system of this machine, and not through symbolic links. Other
//! folders have to be polled.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kelos_sandbox::Folders;
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};
use nix::sys::statfs::{
    BTRFS_SUPER_MAGIC, EXT4_SUPER_MAGIC, F2FS_SUPER_MAGIC, FsType, OVERLAYFS_SUPER_MAGIC, TMPFS_MAGIC, statfs,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// XFS; musl has no name for it.
const XFS_SUPER_MAGIC: FsType = FsType(0x5846_5342);

/// A watch on folders of scripts.
pub(super) struct FolderWatch {
    inotify: Inotify,
    /// Each folder with its identity then; none if it did not exist.
    folders: Vec<(PathBuf, Identity)>,
}

/// Device and inode: another folder under the same name is another one.
type Identity = Option<(u64, u64)>;

impl FolderWatch {
    /// Listens from now on, also to the folder `beside` the scripts; none where that can't be relied on.
    pub(super) fn listen(folders: &Folders, beside: Option<&Path>) -> Option<FolderWatch> {
        let inotify = Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK).ok()?;
        let all = [&*folders.workflows, &*folders.defaults].into_iter().chain(beside);
        let folders_of = |folder: &Path| (folder.to_owned(), identity(folder));
        let told = FolderWatch { inotify, folders: all.map(folders_of).collect() };
        let reliable = told.listen_to(&folders.workflows, true)
            && told.listen_to(&folders.defaults, false)
            && beside.is_none_or(|beside| told.listen_to(beside, true));
        reliable.then_some(told)
    }

    fn listen_to(&self, folder: &Path, may_have_folders: bool) -> bool {
        if identity(folder).is_none() {
            // Its coming is seen by its identity.
            return true;
        }
        let changes = AddWatchFlags::IN_MODIFY
            | AddWatchFlags::IN_CLOSE_WRITE
            | AddWatchFlags::IN_ATTRIB
            | AddWatchFlags::IN_CREATE
            | AddWatchFlags::IN_DELETE
            | AddWatchFlags::IN_MOVE
            | AddWatchFlags::IN_MOVE_SELF
            | AddWatchFlags::IN_DELETE_SELF
            | AddWatchFlags::IN_ONLYDIR;
        // Listen first: a link that is created after the check is reported.
        is_of_this_machine(folder)
            && self.inotify.add_watch(folder, changes).is_ok()
            && is_plain(folder, may_have_folders)
    }

    /// Waits for a change, at most so long. Returns whether there may have been one; then the watch has to be made
    /// anew.
    pub(super) fn changed_within(&self, wait: Duration) -> bool {
        let wait =
            Timespec { tv_sec: i64::try_from(wait.as_secs()).unwrap_or(i64::MAX), tv_nsec: wait.subsec_nanos().into() };
        let told = poll(&mut [PollFd::new(&self.inotify, PollFlags::IN)], Some(&wait));
        !matches!(told, Ok(0)) || self.folders.iter().any(|(folder, before)| identity(folder) != *before)
    }
}

fn identity(folder: &Path) -> Identity {
    let folder = folder.to_owned();
    kelos_sandbox::answered(move || std::fs::metadata(folder)).ok().map(|meta| (meta.dev(), meta.ino()))
}

/// Whether its file system can be changed by this system only.
fn is_of_this_machine(folder: &Path) -> bool {
    let own =
        [BTRFS_SUPER_MAGIC, EXT4_SUPER_MAGIC, F2FS_SUPER_MAGIC, OVERLAYFS_SUPER_MAGIC, TMPFS_MAGIC, XFS_SUPER_MAGIC];
    let folder = folder.to_owned();
    let looked = kelos_sandbox::answered(move || {
        let reached_directly = std::path::absolute(&folder).ok() == std::fs::canonicalize(&folder).ok();
        Ok(reached_directly && statfs(&folder).is_ok_and(|of| own.contains(&of.filesystem_type())))
    });
    looked.unwrap_or(false)
}

/// Whether all its contents are inside it: no links, and no folders where those matter.
fn is_plain(folder: &Path, may_have_folders: bool) -> bool {
    let Ok(entries) = std::fs::read_dir(folder) else { return false };
    let mut kinds = entries.map(|entry| entry.and_then(|entry| entry.file_type()));
    kinds.all(|kind| kind.is_ok_and(|kind| kind.is_file() || (may_have_folders && kind.is_dir())))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::ZERO;

    fn folders(root: &Path) -> Folders {
        let folders = Folders { workflows: root.join("workflows"), defaults: root.join("defaults") };
        std::fs::create_dir(&folders.workflows).unwrap();
        folders
    }

    /// None if the tests run on a file system without notifications.
    fn told(folders: &Folders) -> Option<FolderWatch> {
        is_of_this_machine(&folders.workflows).then(|| FolderWatch::listen(folders, None).unwrap())
    }

    #[test]
    fn tells_of_files_that_come_change_and_go() {
        let root = tempfile::tempdir().unwrap();
        let folders = folders(root.path());
        let file = folders.workflows.join("a.js");
        let steps: [&dyn Fn(); 4] = [
            &|| std::fs::write(&file, "1").unwrap(),
            &|| std::fs::write(&file, "2").unwrap(),
            &|| std::fs::rename(&file, folders.workflows.join("b.js")).unwrap(),
            &|| std::fs::remove_file(folders.workflows.join("b.js")).unwrap(),
        ];
        for step in steps {
            let Some(told) = told(&folders) else { return };
            assert!(!told.changed_within(NOW));
            step();
            assert!(told.changed_within(NOW));
        }
    }

    #[test]
    fn tells_of_apps_beside_the_scripts() {
        let root = tempfile::tempdir().unwrap();
        let folders = folders(root.path());
        let listen =
            || is_of_this_machine(root.path()).then(|| FolderWatch::listen(&folders, Some(root.path())).unwrap());
        let file = root.path().join("tasks.json");
        for text in ["{}", "{\"a\": {}}"] {
            let Some(told) = listen() else { return };
            assert!(!told.changed_within(NOW));
            std::fs::write(&file, text).unwrap();
            assert!(told.changed_within(NOW));
        }
    }

    #[test]
    fn tells_of_folders_that_come_and_are_replaced() {
        let root = tempfile::tempdir().unwrap();
        let folders = folders(root.path());
        let Some(before) = told(&folders) else { return };
        std::fs::create_dir(&folders.defaults).unwrap();
        assert!(before.changed_within(NOW));
        let Some(before) = told(&folders) else { return };
        std::fs::rename(&folders.workflows, root.path().join("old")).unwrap();
        std::fs::create_dir(&folders.workflows).unwrap();
        assert!(before.changed_within(NOW));
        assert!(told(&folders).is_some_and(|told| !told.changed_within(NOW)));
    }

    #[test]
    fn does_not_rely_on_being_told_through_links() {
        let root = tempfile::tempdir().unwrap();
        let folders = folders(root.path());
        std::os::unix::fs::symlink(root.path(), root.path().join("link")).unwrap();
        let through = Folders { workflows: root.path().join("link/workflows"), ..folders.clone() };
        assert!(FolderWatch::listen(&through, None).is_none());
        std::os::unix::fs::symlink(root.path().join("elsewhere.js"), folders.workflows.join("a.js")).unwrap();
        assert!(FolderWatch::listen(&folders, None).is_none());
    }
}
