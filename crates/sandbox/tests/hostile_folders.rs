//! Folders of users with other contents than scripts: every load ends, and each of them is reported.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;

use kelos_sandbox::apps::AppsSource;
use kelos_sandbox::{Folders, Host, Limits, Scripts};

use crate::support::{ids, words, workflow};

fn fifo(path: &Path) {
    let _ = fs::remove_file(path);
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

fn scripts(folder: &Path) -> Scripts {
    let folders = Folders { workflows: folder.join("workflows"), defaults: folder.join("defaults") };
    let apps = AppsSource::of_file(&folder.join("tasks.json"), Some("{d}".to_owned()));
    Scripts::start(
        folders,
        Limits::default(),
        Host::dry().with_format(std::sync::Arc::new(kelos_door_stolos::TasksJson)).with_apps(Some(apps)),
    )
    .unwrap()
}

/// A FIFO in the folder of workflows blocked the server at its start, and its scripts at run time.
#[test]
fn whatever_lies_in_a_folder_its_scripts_are_loaded() {
    let root = tempfile::tempdir().unwrap();
    let (workflows, defaults) = (root.path().join("workflows"), root.path().join("defaults"));
    for folder in [&workflows, &defaults] {
        fs::create_dir(folder).unwrap();
    }
    fs::write(workflows.join("good.js"), workflow("good")).unwrap();
    fs::write(workflows.join("uses.js"), "importDefaults(\"blocked\");\n".to_owned() + &workflow("uses")).unwrap();
    fifo(&defaults.join("blocked.js"));
    fifo(&workflows.join("fifo.js"));
    let _socket = UnixListener::bind(workflows.join("socket.js")).unwrap();
    fs::File::create(workflows.join("sparse.js")).unwrap().set_len(5 << 30).unwrap();
    for (name, to) in
        [("zero.js", "/dev/zero"), ("loop.js", "loop.js"), ("parent.js", ".."), ("linked.js", "good.js.txt")]
    {
        symlink(to, workflows.join(name)).unwrap();
    }
    fs::write(workflows.join("good.js.txt"), workflow("linked")).unwrap();
    fs::write(workflows.join(OsStr::from_bytes(b"latin\xe9.js")), workflow("latin")).unwrap();
    fifo(&root.path().join("tasks.json"));
    let scripts = scripts(root.path());
    let loaded = scripts.load();
    assert_eq!(ids(&loaded), ["good", "linked"]);
    let told = words(&loaded).join("\n");
    for expected in [
        "fifo.js: the file is a FIFO, expected a file",
        "socket.js: the file is a socket, expected a file",
        "sparse.js: the file is longer than 4194304 bytes",
        "zero.js: the file is a device, expected a file",
        "parent.js: the file is a folder, expected a file",
        "loop.js: the file can't be read: ",
        "latin\u{fffd}.js: the file has a name that is not UTF-8",
        "tasks.json: the file is a FIFO, expected a file",
        "blocked",
    ] {
        assert!(told.contains(expected), "{expected} in {told}");
    }
    // The last good version stays while something else is at its path.
    fifo(&workflows.join("good.js"));
    fifo(&root.path().join("identifiers.json"));
    fs::remove_file(root.path().join("tasks.json")).unwrap();
    fs::write(root.path().join("tasks.json"), r#"{"app": {"bash_cmd": "true"}}"#).unwrap();
    let loaded = scripts.load();
    assert_eq!(ids(&loaded), ["good", "linked"]);
    let told = words(&loaded).join("\n");
    assert!(
        told.contains("good.js: the file is a FIFO") && told.contains("identifiers.json: the file is a FIFO"),
        "{told}"
    );
}
