//! The removal of the folder of one run that has ended.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, openat, unlinkat};

use super::super::error::{At, LocalError};
use super::super::paths::GONE;
use super::super::state::{Look, look};

/// Removes the folder of a run below a root, by the names of its folders; whether it was there. The folder of its key goes with the last
/// of its runs. That of its workflow stays: a link may lead to it.
///
/// # Errors
/// When the run is live, or a file can't be removed.
pub fn remove_kept(root: &Path, workflow: &str, key: &str, number: u64) -> Result<bool, LocalError> {
    let shown = root.join(workflow).join(key).join(number.to_string());
    let Some((parents, place)) = open_parents(root, workflow, key).at("open", &shown)? else { return Ok(false) };
    let (dir, gone) = (place.join(number.to_string()), place.join(format!("{GONE}{number}")));
    let was_there = dir.symlink_metadata().is_ok_and(|found| found.is_dir());
    if was_there && matches!(look(&dir)?, Look::Running { .. }) {
        return Err(LocalError::StillRunning(format!("{workflow}/{key}/{number}")));
    }
    remove_if_there(&gone).at("remove", &shown)?;
    if was_there {
        // Renamed first, so that a crash in between leaves no part of it that looks like a run that never started.
        match fs::rename(&dir, &gone) {
            // Another process on the same folder was faster.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            renamed => renamed.at("remove", &shown)?,
        }
        remove_if_there(&gone).at("remove", &shown)?;
    }
    // Refused while there are other runs.
    let _ = unlinkat(&parents.workflow, key, AtFlags::REMOVEDIR);
    Ok(was_there)
}

/// Finishes the removal of the folder of a run that was interrupted.
///
/// # Errors
/// When a file can't be removed.
pub fn finish_removal(root: &Path, workflow: &str, key: &str, number: u64) -> Result<(), LocalError> {
    let name = format!("{GONE}{number}");
    let shown = root.join(workflow).join(key).join(&name);
    let Some((parents, place)) = open_parents(root, workflow, key).at("open", &shown)? else { return Ok(()) };
    remove_if_there(&place.join(name)).at("remove", &shown)?;
    // Refused while there are other runs.
    let _ = unlinkat(&parents.workflow, key, AtFlags::REMOVEDIR);
    Ok(())
}

fn remove_if_there(dir: &Path) -> io::Result<()> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Handles of the folders above a run, which stay those folders whatever is put into their place.
struct Parents {
    workflow: OwnedFd,
    _key: OwnedFd,
}

/// Opens the folders above a run, none of which may be a link; with the path of the folder of its key by its handle.
fn open_parents(root: &Path, workflow: &str, key: &str) -> io::Result<Option<(Parents, PathBuf)>> {
    let plain = OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::RDONLY;
    let opened = openat(CWD, root, plain, Mode::empty())
        .and_then(|root| openat(&root, workflow, plain | OFlags::NOFOLLOW, Mode::empty()))
        .and_then(|above| Ok((openat(&above, key, plain | OFlags::NOFOLLOW, Mode::empty())?, above)));
    match opened {
        Ok((key, workflow)) => {
            let place = PathBuf::from(format!("/proc/self/fd/{}", key.as_raw_fd()));
            Ok(Some((Parents { workflow, _key: key }, place)))
        }
        Err(rustix::io::Errno::NOENT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn run(root: &Path, path: &str) {
        fs::create_dir_all(root.join(path)).unwrap();
        fs::write(root.join(path).join("exit.json"), r#"{"outcome":{"exited":{"code":0}},"ended_at_ms":1}"#).unwrap();
    }

    #[test]
    fn a_run_goes_with_the_folder_of_its_key_when_it_was_the_last() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path();
        run(root, "w/k/1");
        run(root, "w/k/2");
        fs::create_dir_all(root.join("w/k/.gone-1/half")).unwrap();
        fs::create_dir_all(root.join("w/k/.gone-2/half")).unwrap();
        finish_removal(root, "w", "k", 2).unwrap();
        finish_removal(root, "w", "k", 3).unwrap();
        assert!(root.join("w/k/2").is_dir() && !root.join("w/k/.gone-2").exists());
        assert!(remove_kept(root, "w", "k", 1).unwrap());
        assert!(!remove_kept(root, "w", "k", 1).unwrap(), "it is gone");
        assert_eq!(fs::read_dir(root.join("w/k")).unwrap().count(), 1);
        assert!(remove_kept(root, "w", "k", 2).unwrap());
        assert!(root.join("w").is_dir() && !root.join("w/k").exists());
        assert!(!remove_kept(root, "other", "k", 2).unwrap());
    }

    #[test]
    fn what_links_lead_to_stays() {
        let (place, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let root = place.path();
        for path in ["k/1", "1", "file"] {
            run(outside.path(), path);
        }
        fs::create_dir_all(root.join("w/k")).unwrap();
        symlink(outside.path(), root.join("linked")).unwrap();
        symlink(outside.path(), root.join("w/linked")).unwrap();
        symlink(outside.path(), root.join("w/k/1")).unwrap();
        assert!(remove_kept(root, "linked", "k", 1).is_err());
        assert!(remove_kept(root, "w", "linked", 1).is_err());
        assert!(!remove_kept(root, "w", "k", 1).unwrap());
        run(root, "w/k/2");
        symlink(outside.path(), root.join("w/k/2/inside")).unwrap();
        assert!(remove_kept(root, "w", "k", 2).unwrap());
        for path in ["k/1", "1", "file"] {
            assert!(outside.path().join(path).join("exit.json").is_file(), "{path}");
        }
    }
}
