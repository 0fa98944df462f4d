//! The machine: space on its disks, rights on files, limits of processes.

use std::collections::BTreeMap;
use std::fs::{File, Metadata};
use std::ops::ControlFlow;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use kelos_executors::local::{DiskSpace, WalkEntry, walk};
use rustix::fs::{Access, access};
use rustix::process::geteuid;

use super::data::DataReading;
use crate::access::{OWNER, SESSIONS};
use crate::doctor::checks::disk::{DiskUsage, FileLimits, RunFolders, Space};
use crate::doctor::checks::permissions::{Content, FileRights, Rights};
use crate::doctor::installation::Installation;
use crate::location::{DATABASE, Location, SERVER_JSON};

/// Folders of runs that are counted.
const MOST_COUNTED: u64 = 100_000;

/// The folder of runs, in the folder of state.
const RUNS: &str = "runs";

/// Space for the state, the runs and temporary files, and the limits of the process of a server that is up.
pub(super) fn disk(state: &Path, data: Option<&DataReading>, is_up: bool) -> DiskUsage {
    // The folder of state may not have been made yet.
    let existing = |path: PathBuf| path.ancestors().find(|path| path.exists()).map(Path::to_owned);
    let places =
        [("the state", state.to_owned()), ("runs", state.join(RUNS)), ("temporary files", std::env::temp_dir())];
    let mut by_device: BTreeMap<u64, usize> = BTreeMap::new();
    let mut spaces: Vec<(DiskSpace, Vec<&str>)> = Vec::new();
    for (holds, path) in places {
        let Some(path) = existing(path) else { continue };
        let Ok(device) = std::fs::metadata(&path).map(|meta| meta.dev()) else { continue };
        match by_device.get(&device) {
            Some(known) => {
                if let Some((_, held)) = spaces.get_mut(*known) {
                    held.push(holds);
                }
            }
            None => {
                by_device.insert(device, spaces.len());
                spaces.extend(DiskSpace::of(&path).map(|disk| (disk, vec![holds])));
            }
        }
    }
    let spaces = spaces.into_iter().map(|(disk, held)| Space { holds: enumerated(&held), disk }).collect();
    let (database, runs) = (data.and_then(|data| data.files.clone()), run_folders(&state.join(RUNS)));
    DiskUsage { spaces, database, runs, limits: limits(state, is_up) }
}

/// The folders of runs, up to a number.
fn run_folders(root: &Path) -> Option<RunFolders> {
    let mut runs = RunFolders { count: 0, bytes: 0, has_more: false };
    let walked = walk(root, &mut |found| {
        if let WalkEntry::Run(run) = found {
            (runs.count, runs.bytes) = (runs.count + 1, runs.bytes.saturating_add(run.bytes));
            runs.has_more = runs.count >= MOST_COUNTED;
        }
        if runs.has_more { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    walked.ok().map(|()| runs)
}

/// Names with commas, and with an `and` before the last one.
fn enumerated(names: &[&str]) -> String {
    match names {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        _ => names.concat(),
    }
}

/// The limits of the server's process where it is known, else of this one.
fn limits(state: &Path, is_up: bool) -> FileLimits {
    // The process of a server that is gone may be another one by now.
    let server = Location::process(state).filter(|_| is_up).and_then(|pid| {
        let text = std::fs::read_to_string(format!("/proc/{pid}/limits")).ok()?;
        Some((format!("the server's process {pid}"), text))
    });
    let own = || ("this process".to_owned(), std::fs::read_to_string("/proc/self/limits").unwrap_or_default());
    let (of, text) = server.unwrap_or_else(own);
    FileLimits { of, file_size: limit(&text, "Max file size"), open_files: limit(&text, "Max open files") }
}

/// The soft limit of a line of `/proc/PID/limits`; none if there is no limit.
fn limit(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?.parse().ok()
}

/// The rights on the files of a server.
pub(super) fn rights(state: &Path, installation: &Installation) -> Rights {
    let mut files: Vec<FileRights> = Vec::new();
    let mut add = |path: PathBuf, content: Content| {
        files.extend(std::fs::metadata(&path).ok().map(|meta| rights_on(path, content, &meta)));
    };
    add(state.to_owned(), Content::Folder);
    add(state.join(RUNS), Content::Folder);
    let database = [DATABASE, "kelos.db-wal", "kelos.db-shm", "kelos.db.lock"];
    database.into_iter().for_each(|name| add(state.join(name), Content::Private));
    [OWNER, SESSIONS, SERVER_JSON].into_iter().for_each(|name| add(state.join(name), Content::Secret));
    add(state.join(kelos_checkpoints::KEY), Content::Secret);
    installation.token_file.iter().for_each(|file| add(file.clone(), Content::Secret));
    let written = [state.to_owned(), state.join(RUNS), state.join(DATABASE)];
    let written = written.into_iter().filter(|path| path.exists());
    Rights {
        user: geteuid().as_raw(),
        files,
        unwritable: written.filter_map(|path| refused(&path, Access::WRITE_OK)).collect(),
        unreadable: unreadable(installation),
        unstartable: unstartable(),
    }
}

fn rights_on(path: PathBuf, content: Content, meta: &Metadata) -> FileRights {
    FileRights { path, content, mode: meta.mode(), owner: meta.uid() }
}

/// The path with the reason for which it can't be used so; none if it can.
fn refused(path: &Path, wanted: Access) -> Option<String> {
    let error = access(path, wanted).err()?;
    Some(format!("{}: {}", path.display(), std::io::Error::from(error)))
}

/// The scripts that can't be read.
fn unreadable(installation: &Installation) -> Vec<String> {
    let Some((folders, _)) = &installation.scripts else { return Vec::new() };
    let mut found = Vec::new();
    for folder in [&folders.workflows, &folders.defaults] {
        let Ok(entries) = std::fs::read_dir(folder) else { continue };
        for path in entries.filter_map(Result::ok).map(|entry| entry.path()) {
            let is_script = path.extension().is_some_and(|extension| extension == "js");
            let error = is_script.then(|| File::open(&path).err()).flatten();
            found.extend(error.map(|error| format!("{}: {error}", path.display())));
        }
    }
    found.sort();
    found
}

/// The programs without which no command runs: the shell, and this program, which is the shim of each command.
fn unstartable() -> Vec<String> {
    let own = std::env::current_exe().ok().filter(|path| path.exists());
    let needed = [Some(PathBuf::from("/bin/sh")), own];
    needed.into_iter().flatten().filter_map(|path| refused(&path, Access::EXEC_OK)).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_last_of_several_names_has_an_and() {
        let names = ["a", "b", "c"];
        assert_eq!([1, 2, 3].map(|count| enumerated(&names[..count])), ["a", "a and b", "a, b and c"]);
    }

    #[test]
    fn soft_limits_are_read() {
        let text = "Limit                     Soft Limit           Hard Limit           Units     \n\
                    Max file size             unlimited            unlimited            bytes     \n\
                    Max open files            1024                 524288               files     \n";
        assert_eq!((limit(text, "Max file size"), limit(text, "Max open files")), (None, Some(1024)));
        assert_eq!(limit("", "Max open files"), None);
    }

    #[test]
    fn a_folder_that_is_not_there_yet_has_the_space_of_the_one_above() {
        let dir = tempfile::tempdir().expect("a folder");
        let usage = disk(&dir.path().join("none/state"), None, false);
        assert!(usage.spaces[0].disk.total > 0 && usage.spaces[0].holds.starts_with("the state"), "{usage:?}");
    }

    #[test]
    fn scripts_without_the_right_to_be_read_and_programs_without_that_to_be_started_are_named() {
        let dir = tempfile::tempdir().expect("a folder");
        let script = dir.path().join("run.sh");
        std::fs::write(&script, "").expect("a file");
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o600)).expect("rights");
        let told = refused(&script, Access::EXEC_OK).expect("a refusal");
        assert!(told.ends_with("run.sh: Permission denied (os error 13)"), "{told}");
        assert_eq!((refused(&script, Access::READ_OK), unstartable()), (None, Vec::new()));
    }
}
