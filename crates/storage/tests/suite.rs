//! What holds for every file system that can be written to. Each part works in a folder of its own below `root`.

use kelos_storage::{Entry, FileSystem, Kind, StorageError};

/// Names that are one part of a path on every system.
const NAMES: &[&str] =
    &["plain", "with space", "100%", "a%20b", "ünï→💾", "a+b=c&d", "semi;colon", "#hash?", "'quotes\"", "{x}"];

/// Runs all parts and removes what they left.
pub(crate) async fn suite(files: &dyn FileSystem, root: &str) {
    files.remove(root).await.unwrap();
    absent(files, &format!("{root}/absent")).await;
    whole_files(files, &format!("{root}/files")).await;
    folders(files, &format!("{root}/folders")).await;
    odd_names(files, &format!("{root}/odd")).await;
    renames(files, &format!("{root}/renames")).await;
    removals(files, &format!("{root}/removals")).await;
    large(files, &format!("{root}/large")).await;
    files.remove(root).await.unwrap();
    assert_eq!(files.stat(root).await.unwrap(), None, "everything is removed");
}

async fn absent(files: &dyn FileSystem, path: &str) {
    assert_eq!(files.stat(path).await.unwrap(), None);
    assert_eq!(files.list(path).await.unwrap(), None);
    files.remove(path).await.unwrap();
    let read = files.read(path, 10).await.unwrap_err();
    assert!(matches!(read, StorageError::NotFound { .. }), "{read}");
    assert!(read.to_string().ends_with(&format!("{path}: nothing is there")), "{read}");
    files.rename(path, &format!("{path}2")).await.unwrap_err();
}

async fn whole_files(files: &dyn FileSystem, root: &str) {
    let path = format!("{root}/deep/er/file");
    put(files, &path, b"one").await;
    let found = files.stat(&path).await.unwrap().expect("it was put");
    assert_eq!((found.name.as_str(), found.kind, found.bytes), ("file", Kind::File, 3));
    assert!(found.modified.is_some_and(|at| at.as_second() > 1_700_000_000), "{found:?}");
    assert_eq!(&files.read(&path, 3).await.unwrap()[..], b"one");
    put(files, &path, b"another").await;
    assert_eq!(&files.read(&path, 100).await.unwrap()[..], b"another", "it was replaced");
    assert_eq!(names(files, &format!("{root}/deep/er")).await, ["file"], "nothing unfinished stays");
    let refused = files.read(&path, 6).await.unwrap_err();
    assert!(refused.to_string().ends_with("it is larger than the 6 bytes that are read at most"), "{refused}");
    let empty = format!("{root}/empty");
    put(files, &empty, b"").await;
    assert_eq!(files.stat(&empty).await.unwrap().expect("it was put").bytes, 0);
    assert!(files.read(&empty, 10).await.unwrap().is_empty());
    assert_eq!(files.list(&empty).await.unwrap(), None, "a file is no folder");
    assert_eq!(files.stat(&format!("{empty}/below")).await.unwrap(), None, "nothing is below a file");
}

async fn folders(files: &dyn FileSystem, root: &str) {
    files.make_folder(&format!("{root}/a/b")).await.unwrap();
    files.make_folder(&format!("{root}/a/b")).await.unwrap();
    assert_eq!(files.list(&format!("{root}/a/b")).await.unwrap(), Some(Vec::new()));
    put(files, &format!("{root}/a/z"), b"zz").await;
    put(files, &format!("{root}/a/b/c"), b"c").await;
    let folder = files.stat(&format!("{root}/a")).await.unwrap().expect("it was made");
    assert_eq!((folder.name.as_str(), folder.kind, folder.bytes), ("a", Kind::Folder, 0));
    let listed = files.list(&format!("{root}/a")).await.unwrap().expect("it is there");
    let told: Vec<(&str, Kind, u64)> = listed.iter().map(|entry| (&*entry.name, entry.kind, entry.bytes)).collect();
    assert_eq!(told, [("b", Kind::Folder, 0), ("z", Kind::File, 2)]);
    assert_eq!(files.stat("/").await.unwrap().map(|root| root.kind), Some(Kind::Folder));
}

async fn odd_names(files: &dyn FileSystem, root: &str) {
    for name in NAMES {
        let path = format!("{root}/{name}");
        put(files, &path, name.as_bytes()).await;
        let found = files.stat(&path).await.unwrap().unwrap_or_else(|| panic!("{path} was put"));
        assert_eq!(&found.name, name);
        assert_eq!(&files.read(&path, 100).await.unwrap()[..], name.as_bytes());
    }
    let mut expected: Vec<&str> = NAMES.to_vec();
    expected.sort_unstable();
    assert_eq!(names(files, root).await, expected);
    for name in NAMES {
        let (from, to) = (format!("{root}/{name}"), format!("{root}/{name}-2"));
        files.rename(&from, &to).await.unwrap();
        files.remove(&to).await.unwrap();
    }
    let left = files.list(root).await.unwrap().unwrap_or_default();
    assert!(left.is_empty(), "{left:?}");
}

async fn renames(files: &dyn FileSystem, root: &str) {
    put(files, &format!("{root}/from/a"), b"a").await;
    put(files, &format!("{root}/from/b/c"), b"c").await;
    put(files, &format!("{root}/other"), b"o").await;
    files.rename(&format!("{root}/from"), &format!("{root}/to")).await.unwrap();
    assert_eq!(names(files, root).await, ["other", "to"]);
    assert_eq!(&files.read(&format!("{root}/to/b/c"), 10).await.unwrap()[..], b"c");
    files.rename(&format!("{root}/other"), &format!("{root}/to/b/c")).await.unwrap_err();
    files.rename(&format!("{root}/other"), &format!("{root}/to")).await.unwrap_err();
    assert_eq!(&files.read(&format!("{root}/other"), 10).await.unwrap()[..], b"o", "all is as before");
    assert_eq!(&files.read(&format!("{root}/to/b/c"), 10).await.unwrap()[..], b"c", "all is as before");
}

async fn removals(files: &dyn FileSystem, root: &str) {
    put(files, &format!("{root}/a/b/c"), b"c").await;
    put(files, &format!("{root}/ab"), b"ab").await;
    files.remove(&format!("{root}/a")).await.unwrap();
    assert_eq!(names(files, root).await, ["ab"], "nothing beside it is removed");
    files.remove(&format!("{root}/ab")).await.unwrap();
    assert_eq!(files.stat(&format!("{root}/ab")).await.unwrap(), None);
}

/// More than one piece, one packet, one part.
async fn large(files: &dyn FileSystem, root: &str) {
    let content: Vec<u8> = (0..20_000_003_u32).map(|at| (at % 251) as u8).collect();
    let path = format!("{root}/large");
    put(files, &path, &content).await;
    let read = files.read(&path, 30_000_000).await.unwrap();
    assert!(read[..] == content[..], "what was read is not what was written");
}

/// A look, a list, a read and a change that are refused, at a path whose owner is somebody else.
pub(crate) async fn forbidden(files: &dyn FileSystem, folder: &str) {
    let inside = format!("{folder}/secret");
    let refusals = [
        files.stat(&format!("{inside}/x")).await.unwrap_err(),
        files.list(folder).await.unwrap_err(),
        files.read(&format!("{inside}/x"), 10).await.unwrap_err(),
        files.put(&format!("{folder}/new"), &mut b"x".as_slice()).await.unwrap_err(),
        files.make_folder(&format!("{folder}/new")).await.unwrap_err(),
        files.remove(&inside).await.unwrap_err(),
    ];
    for refusal in refusals {
        assert!(matches!(refusal, StorageError::Denied { .. }), "{refusal}");
        assert!(!refusal.to_string().contains('\n'), "{refusal}");
    }
}

async fn put(files: &dyn FileSystem, path: &str, mut content: &[u8]) {
    files.put(path, &mut content).await.unwrap_or_else(|error| panic!("failed to {error}"));
}

async fn names(files: &dyn FileSystem, folder: &str) -> Vec<String> {
    let listed: Option<Vec<Entry>> = files.list(folder).await.unwrap();
    listed.expect("it is there").into_iter().map(|entry| entry.name).collect()
}
