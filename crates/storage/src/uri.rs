//! Parsing of URIs, in the way of each system.
//!
//! Hadoop and similar systems use a path verbatim: `%`, `#`, `?` and spaces are parts of names. `file:` and `sftp:` decode
//! percent-encoding; `http:` keeps everything but the fragment. A path of HDFS that begins with `/./` is relative to the home folder of the
//! user.

use crate::StorageError;

/// The schemes; synonyms are one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Scheme {
    File,
    Hdfs,
    WebHdfs,
    SWebHdfs,
    S3,
    Gs,
    Abfs,
    Http,
    Https,
    Sftp,
}

/// A URI in parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Uri {
    pub(crate) scheme: Scheme,
    /// The server, with user and port if given; empty without a server.
    pub(crate) authority: String,
    /// The path: absolute, decoded, without a slash at the end; with its query for `http:`.
    pub(crate) path: String,
}

/// The beginning of a path in the home folder of the user.
const HOME: &str = "/./";

const KNOWN: &str = "file, hdfs, webhdfs, swebhdfs, s3, s3a, gs, abfs, abfss, http, https, sftp";

impl Scheme {
    fn of(name: &str) -> Option<Self> {
        Some(match name {
            "file" => Self::File,
            "hdfs" => Self::Hdfs,
            "webhdfs" => Self::WebHdfs,
            "swebhdfs" => Self::SWebHdfs,
            "s3" | "s3a" | "s3n" => Self::S3,
            "gs" => Self::Gs,
            "abfs" | "abfss" => Self::Abfs,
            "http" => Self::Http,
            "https" => Self::Https,
            "sftp" => Self::Sftp,
            _ => return None,
        })
    }

    /// The name of the scheme in messages and comparisons: one for all synonyms.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Hdfs => "hdfs",
            Self::WebHdfs => "webhdfs",
            Self::SWebHdfs => "swebhdfs",
            Self::S3 => "s3",
            Self::Gs => "gs",
            Self::Abfs => "abfs",
            Self::Http => "http",
            Self::Https => "https",
            Self::Sftp => "sftp",
        }
    }

    fn decodes(self) -> bool {
        matches!(self, Self::File | Self::Sftp)
    }

    fn is_http(self) -> bool {
        matches!(self, Self::Http | Self::Https)
    }

    /// Whether the case of the server is ignored: not for name services and buckets.
    fn folds_case(self) -> bool {
        self.is_http()
    }
}

impl Uri {
    /// Resolves a path in a home folder; `user` is the user of the connection.
    pub(crate) fn at_home(self, user: Option<&str>) -> Result<Uri, String> {
        // The home folder itself has lost its last slash.
        let rest = if self.path == HOME.trim_end_matches('/') { Some("") } else { self.path.strip_prefix(HOME) };
        let Some(rest) = rest else { return Ok(self) };
        let user = user
            .ok_or("it is relative to the home folder of a user, and neither HADOOP_USER_NAME nor USER says which")?;
        Ok(Uri { path: without_slash(&format!("/user/{user}/{rest}")), ..self })
    }
}

/// Parses a URI, or an absolute path of this machine. `file:` may also be followed by a relative path.
pub(crate) fn parse(text: &str) -> Result<Uri, StorageError> {
    parts(text).map_err(|reason| StorageError::BadUri { uri: shown(text), reason })
}

fn parts(text: &str) -> Result<Uri, String> {
    if text.starts_with('/') {
        return Ok(Uri { scheme: Scheme::File, authority: String::new(), path: without_slash(text) });
    }
    let (name, rest) = scheme_and_rest(text).ok_or("it is neither an absolute path nor a URI")?;
    let scheme = Scheme::of(&name).ok_or_else(|| unknown(&name))?;
    let (authority, path) = rest.strip_prefix("//").map_or(("", rest), |rest| split_authority(scheme, rest));
    check_authority(scheme, authority)?;
    let path = path_of(scheme, path)?;
    let authority = if scheme.folds_case() { authority.to_ascii_lowercase() } else { authority.to_owned() };
    Ok(Uri { scheme, authority, path })
}

fn scheme_and_rest(text: &str) -> Option<(String, &str)> {
    let (name, rest) = text.split_once(':')?;
    let is_name = name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    is_name.then(|| (name.to_ascii_lowercase(), rest))
}

fn unknown(name: &str) -> String {
    let hint = match name {
        "wasb" | "wasbs" | "adl" => "; use abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/PATH",
        "viewfs" | "har" => "; use the hdfs: path that it leads to",
        _ => "",
    };
    format!("no file system of the scheme \"{name}\" is known: expected one of {KNOWN}{hint}")
}

fn split_authority(scheme: Scheme, rest: &str) -> (&str, &str) {
    let ends = |c| c == '/' || (scheme.is_http() && (c == '?' || c == '#'));
    rest.find(ends).map_or((rest, ""), |end| rest.split_at(end))
}

fn check_authority(scheme: Scheme, authority: &str) -> Result<(), String> {
    let (user, server) = authority.rsplit_once('@').map_or(("", authority), |(user, server)| (user, server));
    if user.contains(':') || (scheme.is_http() && !user.is_empty()) {
        return Err("a password does not belong in a URI: it would be seen in logs and definitions".to_owned());
    }
    if authority.contains(|c: char| c.is_whitespace() || c.is_control() || "\\?#<>\"".contains(c)) {
        return Err(format!("\"{server}\" is not the name of a server"));
    }
    let expected = match scheme {
        Scheme::File | Scheme::Hdfs => return check_port(server),
        Scheme::S3 | Scheme::Gs => "the name of a bucket, as s3://BUCKET/PATH",
        Scheme::Abfs => "abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/PATH",
        _ => "the name of a server after \"//\"",
    };
    if server.is_empty() || (scheme == Scheme::Abfs && user.is_empty()) {
        return Err(format!("expected {expected}"));
    }
    check_port(server)
}

fn check_port(server: &str) -> Result<(), String> {
    let after_host = server.rsplit_once(']').map_or(server, |(_, after)| after);
    match after_host.rsplit_once(':') {
        Some((_, port)) if port.parse::<u16>().is_err() => {
            // It is not shown: it might be the beginning of a password.
            Err("expected a port from 1 to 65535 after \":\"".to_owned())
        }
        _ => Ok(()),
    }
}

fn path_of(scheme: Scheme, path: &str) -> Result<String, String> {
    if scheme.is_http() {
        let path = path.split_once('#').map_or(path, |(path, _)| path);
        return Ok(if path.starts_with('/') { path.to_owned() } else { format!("/{path}") });
    }
    if !path.is_empty() && !path.starts_with('/') && scheme != Scheme::File {
        return Err("expected an absolute path, one that begins with \"/\"".to_owned());
    }
    if scheme.decodes() {
        let bytes: Vec<u8> = percent_encoding::percent_decode_str(path).collect();
        let path = String::from_utf8_lossy(&bytes);
        return if path.starts_with('/') || path.is_empty() { Ok(without_slash(&path)) } else { where_we_work(&path) };
    }
    let has_home = matches!(scheme, Scheme::Hdfs | Scheme::WebHdfs | Scheme::SWebHdfs);
    // HTTP clients resolve these, and would ask for another path.
    let parts = path.strip_prefix(HOME).filter(|_| has_home).unwrap_or(path);
    if parts.split('/').any(|part| part == "." || part == "..") {
        return Err("expected a path without the parts \".\" and \"..\"".to_owned());
    }
    Ok(without_slash(path))
}

/// Resolves a relative path, such as `file:data/in`, against the working directory of the process, which its commands have, too.
fn where_we_work(path: &str) -> Result<String, String> {
    let absolute = std::path::absolute(path).map_err(|error| format!("it is relative, and {error}"))?;
    Ok(without_slash(&absolute.to_string_lossy()))
}

fn without_slash(path: &str) -> String {
    match path.trim_end_matches('/') {
        "" => "/".to_owned(),
        path => path.to_owned(),
    }
}

/// A URI without anything that might be a password, for messages. In doubt it hides more.
pub(crate) fn shown(uri: &str) -> String {
    let uri = uri.split_once('?').filter(|_| uri.starts_with("http")).map_or(uri, |(uri, _)| uri);
    let Some((start, rest)) = uri.split_once("//") else { return uri.to_owned() };
    let Some((user, server)) = rest.rsplit_once('@') else { return uri.to_owned() };
    let Some((name, _)) = user.split_once(':') else { return uri.to_owned() };
    format!("{start}//{name}:…@{server}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(uri: &str) -> (Scheme, String, String) {
        let Uri { scheme, authority, path } = parse(uri).unwrap();
        (scheme, authority, path)
    }

    fn of(scheme: Scheme, authority: &str, path: &str) -> (Scheme, String, String) {
        (scheme, authority.to_owned(), path.to_owned())
    }

    #[test]
    fn every_scheme_takes_paths_as_its_own_tools_do() {
        for (uri, expected) in [
            ("/a b/%20/", of(Scheme::File, "", "/a b/%20")),
            ("file:/a%20b", of(Scheme::File, "", "/a b")),
            ("file:///a%2520b/", of(Scheme::File, "", "/a%20b")),
            ("file:a%20b/c/", of(Scheme::File, "", &format!("{}/a b/c", std::env::current_dir().unwrap().display()))),
            ("hdfs:/p", of(Scheme::Hdfs, "", "/p")),
            ("hdfs:///p/", of(Scheme::Hdfs, "", "/p")),
            ("HDFS://NameService_1/a b#c?d%20e", of(Scheme::Hdfs, "NameService_1", "/a b#c?d%20e")),
            ("hdfs://nn:8020", of(Scheme::Hdfs, "nn:8020", "/")),
            ("webhdfs://NN:9870/x?y", of(Scheme::WebHdfs, "NN:9870", "/x?y")),
            ("s3a://Bucket/key with#all?", of(Scheme::S3, "Bucket", "/key with#all?")),
            ("s3n://b/k", of(Scheme::S3, "b", "/k")),
            ("gs://b", of(Scheme::Gs, "b", "/")),
            ("abfss://box@acc.dfs.core.windows.net/a", of(Scheme::Abfs, "box@acc.dfs.core.windows.net", "/a")),
            ("http://Host?q=1", of(Scheme::Http, "host", "/?q=1")),
            ("https://host:8443/a/?b=c%20d#e", of(Scheme::Https, "host:8443", "/a/?b=c%20d")),
            ("sftp://me@host:22/a%20b", of(Scheme::Sftp, "me@host:22", "/a b")),
            ("hdfs://[::1]:8020/p", of(Scheme::Hdfs, "[::1]:8020", "/p")),
        ] {
            assert_eq!(parsed(uri), expected, "{uri}");
        }
    }

    #[test]
    fn a_relative_path_of_hdfs_belongs_to_the_home_folder_of_the_user() {
        let at_home = |uri: &str, user| parse(uri).unwrap().at_home(user).map(|uri| uri.path);
        assert_eq!(at_home("hdfs://nn/./in/04", Some("ann")).unwrap(), "/user/ann/in/04");
        assert_eq!(at_home("hdfs://nn/./", Some("ann")).unwrap(), "/user/ann");
        assert_eq!(at_home("hdfs://nn/in/04", None).unwrap(), "/in/04");
        assert!(at_home("hdfs://nn/./in", None).unwrap_err().contains("HADOOP_USER_NAME"));
        assert!(parse("hdfs://nn/./../in").is_err());
        assert!(parse("s3://b/./in").is_err());
    }

    #[test]
    fn says_what_is_wrong_and_shows_no_password() {
        let problems = [
            "a/b",
            "ftp://host/x",
            "wasbs://c@a.blob.core.windows.net/x",
            "s3:///key",
            "abfss://acc.dfs.core.windows.net/x",
            "sftp:/x",
            "hdfs://nn:port/x",
            "hdfs:x",
            "hdfs://nn/a/../b",
            "sftp://me:geheim@host/x",
            "http://me:ge/heim@host/x",
            "https://me@host/x?token=geheim",
            "hdfs://a b/x",
        ]
        .map(|uri| parse(uri).unwrap_err().to_string())
        .join("\n");
        assert!(!problems.contains("heim"), "{problems}");
        assert_eq!(problems, include_str!("uri_problems.txt").trim_end());
    }
}
