//! Rights on the files of a server: secrets for their owner alone, folders that can be written, scripts that can be read, and a program
//! that can be started.

use std::path::PathBuf;

use super::named;
use crate::doctor::diagnosis::Diagnosis;
use crate::text::{count, quoted};

const CHECK: &str = "permissions";

/// The content of a file, as far as its rights are concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::doctor) enum Content {
    /// A key or a token.
    Secret,
    /// Data that may contain secrets.
    Private,
    /// A folder with such files.
    Folder,
}

/// A file or a folder, with its rights.
#[derive(Debug, Clone)]
pub(in crate::doctor) struct FileRights {
    pub(in crate::doctor) path: PathBuf,
    pub(in crate::doctor) content: Content,
    pub(in crate::doctor) mode: u32,
    /// The id of the user that it belongs to.
    pub(in crate::doctor) owner: u32,
}

/// The rights on the files of a server.
#[derive(Debug, Clone)]
pub(in crate::doctor) struct Rights {
    /// The id of the user that runs this.
    pub(in crate::doctor) user: u32,
    pub(in crate::doctor) files: Vec<FileRights>,
    /// The files and folders that can't be written, each with the reason.
    pub(in crate::doctor) unwritable: Vec<String>,
    /// Scripts that can't be read, each with the reason.
    pub(in crate::doctor) unreadable: Vec<String>,
    /// Programs that every command needs and that can't be started, each with the reason.
    pub(in crate::doctor) unstartable: Vec<String>,
}

/// Judges the rights.
pub(in crate::doctor) fn judge(rights: &Rights) -> Vec<Diagnosis> {
    let mut found: Vec<Diagnosis> = rights.files.iter().filter_map(open_to_others).collect();
    let strange: Vec<&FileRights> =
        rights.files.iter().filter(|file| rights.user != 0 && file.owner != rights.user).collect();
    if let Some(first) = strange.first() {
        let words = format!(
            "{} of {} belong to another user, such as {} to the user with the id {}; this is {}",
            strange.len(),
            count(rights.files.len(), "file"),
            first.path.display(),
            first.owner,
            rights.user
        );
        let advice = "run `kelos doctor` as the user of the server; if the server fails, change the owner: chown";
        found.push(Diagnosis::warning(CHECK, words, advice));
    }
    let failures = [
        (&rights.unwritable, "write to", "the server must own what it writes; a file system may be mounted read-only"),
        (
            &rights.unreadable,
            "read",
            "make them readable for the user of the server: chmod a+r, and a+x on their folders",
        ),
        (&rights.unstartable, "start", "commands can't run without it: install it, and make it executable: chmod a+x"),
    ];
    for (which, doing, advice) in failures {
        if !which.is_empty() {
            found.push(Diagnosis::wrong(CHECK, format!("failed to {doing} {}", named(which)), advice));
        }
    }
    if found.is_empty() {
        let secrets = rights.files.iter().filter(|file| file.content == Content::Secret).count();
        let words = match rights.files.len() {
            0 => "no server has made its files here yet".to_owned(),
            all => {
                let (secrets, others) = (count(secrets, "secret"), count(all - secrets, "other file"));
                format!("{secrets} and {others} are closed to other users, and writable")
            }
        };
        found.push(Diagnosis::ok(CHECK, words));
    }
    found
}

fn open_to_others(file: &FileRights) -> Option<Diagnosis> {
    if file.mode & 0o077 == 0 {
        return None;
    }
    let path = file.path.display().to_string();
    let words = format!("other users have rights on {path}: its mode is {:o}", file.mode & 0o777);
    Some(match file.content {
        Content::Secret => Diagnosis::wrong(CHECK, words, format!("chmod 600 {}", quoted(&path))),
        Content::Private => Diagnosis::warning(CHECK, words, format!("chmod 600 {}", quoted(&path))),
        Content::Folder => Diagnosis::warning(CHECK, words, format!("chmod 700 {}", quoted(&path))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, content: Content, mode: u32, owner: u32) -> FileRights {
        FileRights { path: path.into(), content, mode: 0o100_000 | mode, owner }
    }

    fn rights(files: Vec<FileRights>) -> Rights {
        Rights { user: 7, files, unwritable: Vec::new(), unreadable: Vec::new(), unstartable: Vec::new() }
    }

    fn told(rights: &Rights) -> Vec<String> {
        let line =
            |one: &Diagnosis| format!("{:?} {} / {}", one.level, one.found, one.advice.as_deref().unwrap_or("-"));
        judge(rights).iter().map(line).collect()
    }

    #[test]
    fn closed_files_are_one_line() {
        let all = vec![file("a/session.key", Content::Secret, 0o600, 7), file("a", Content::Folder, 0o700, 7)];
        assert_eq!(told(&rights(Vec::new())), ["Ok no server has made its files here yet / -"]);
        assert_eq!(told(&rights(all)), ["Ok 1 secret and 1 other file are closed to other users, and writable / -"]);
    }

    #[test]
    fn what_others_may_read_is_named_with_the_command_that_closes_it() {
        let all = vec![
            file("a b/session.key", Content::Secret, 0o640, 7),
            file("kelos.db", Content::Private, 0o604, 7),
            file("runs", Content::Folder, 0o755, 7),
        ];
        assert_eq!(
            told(&rights(all)),
            [
                "Wrong other users have rights on a b/session.key: its mode is 640 / chmod 600 'a b/session.key'",
                "Warning other users have rights on kelos.db: its mode is 604 / chmod 600 kelos.db",
                "Warning other users have rights on runs: its mode is 755 / chmod 700 runs",
            ]
        );
    }

    #[test]
    fn another_owner_is_no_matter_for_root() {
        let mut strange = rights(vec![file("kelos.db", Content::Private, 0o600, 8)]);
        assert!(told(&strange)[0].starts_with(
            "Warning 1 of 1 file belong to another user, such as kelos.db to the user with the id 8; this is 7"
        ));
        strange.user = 0;
        assert!(told(&strange)[0].starts_with("Ok"));
    }

    #[test]
    fn files_that_can_not_be_used_are_named() {
        let mut bad = rights(Vec::new());
        bad.unwritable = vec!["/state: Read-only file system".to_owned()];
        bad.unreadable = vec!["a.js: Permission denied".to_owned()];
        bad.unstartable = vec!["/bin/sh: No such file or directory".to_owned()];
        let told = told(&bad);
        assert!(told[0].starts_with("Wrong failed to write to /state: Read-only file system / "), "{told:?}");
        assert!(told[1].starts_with("Wrong failed to read a.js: Permission denied / "), "{told:?}");
        assert!(told[2].starts_with("Wrong failed to start /bin/sh: No such"), "{told:?}");
    }
}
