//! Random paths and file systems against a small model of how Hadoop resolves a path against a file system.

use kelos_model::template::KeyValues;
use kelos_model::trigger::{FileSystem, PathCheck};
use proptest::prelude::*;

/// Where Hadoop looks: the server, whether the path is below the home or working folder, and the parts of the path.
type Place = (String, bool, Vec<String>);

/// The model: a path is a text whose parts are taken one by one; the path of the file system has no meaning.
fn hadoop(path: &str, server: &str) -> Place {
    let is_relative = !path.starts_with('/');
    let mut parts: Vec<String> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| last != "..") => drop(parts.pop()),
            ".." if !is_relative => {}
            part => parts.push(part.to_owned()),
        }
    }
    (server.to_owned(), is_relative, parts)
}

/// Reads a URI of ours as the storage does: that of this machine is decoded, and `/./` means the home folder.
fn looked_at(uri: &str) -> Place {
    let (server, path) = match uri.strip_prefix("file:") {
        Some(rest) => ("file:", rest.strip_prefix("//").unwrap_or(rest).replace("%25", "%")),
        None => {
            let at = uri.match_indices('/').nth(2).map_or(uri.len(), |(at, _)| at);
            (&uri[..at], uri[at..].to_owned())
        }
    };
    let (is_relative, path) = match path.strip_prefix("/./") {
        Some(rest) if server != "file:" => (true, rest.to_owned()),
        _ => (!path.starts_with('/'), path),
    };
    let parts = path.split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect();
    (server.to_owned(), is_relative, parts)
}

fn path() -> impl Strategy<Value = String> {
    let part = prop::sample::select(vec!["a", "b c", "..", ".", "", "%20", "p%2", "x#y", "q?z", "ü"]);
    (any::<bool>(), prop::collection::vec(part, 1..7))
        .prop_map(|(absolute, parts)| format!("{}{}", if absolute { "/" } else { "" }, parts.join("/")))
        .prop_filter("Hadoop refuses an empty path", |path| !path.is_empty())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2_000) })]

    #[test]
    fn paths_are_resolved_as_by_hadoop(
        path in path(),
        (base, server) in prop::sample::select(vec![
            ("file:///", "file:"), ("file:", "file:"), ("file:/sub", "file:"), ("file:///sub/x/", "file:"),
            ("hdfs://nn", "hdfs://nn"), ("hdfs://nn:8020/", "hdfs://nn:8020"), ("hdfs://nn/sub", "hdfs://nn"),
        ]),
        own: bool,
    ) {
        let values = KeyValues::at("2015-09-03T04:00Z".parse().unwrap());
        let expected = hadoop(&path, server);
        // A path that names its file system is absolute there.
        let named = own && path.starts_with('/') && !path.starts_with("//");
        let text = if named { format!("{server}{path}") } else { path.clone() };
        let base = if named { "hdfs://elsewhere" } else { base };
        let uri = PathCheck::new(FileSystem::Hdfs, &text, base).uri(&values);
        prop_assert_eq!(looked_at(&uri), expected, "{} of {} is {}", text, base, uri);
    }
}
