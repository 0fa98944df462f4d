//! The server, the user and the keys of a login: from the URI, the environment and `~/.ssh/config`.

use std::path::{Path, PathBuf};

use super::pattern;
use crate::StorageError;

/// The default port of SSH.
const PORT: u16 = 22;

/// The names of the keys that are tried if no key is configured.
const USUAL_KEYS: [&str; 3] = ["id_ed25519", "id_ecdsa", "id_rsa"];

/// The places of SSH's keys and known hosts. [`SshSettings::from_env`] looks where the command `ssh` does.
#[derive(Debug, Clone, Default)]
pub struct SshSettings {
    /// The folder with `config`, `known_hosts` and keys: `~/.ssh`.
    pub folder: Option<PathBuf>,
    /// The only file of known hosts, in place of those of `ssh`: `KELOS_SSH_KNOWN_HOSTS`.
    pub known_hosts: Option<PathBuf>,
    /// The only key, in place of those of `ssh`: `KELOS_SSH_KEY`.
    pub key: Option<PathBuf>,
    /// The socket of an agent: `SSH_AUTH_SOCK`.
    pub agent: Option<PathBuf>,
    /// The user if neither the URI nor `config` names one.
    pub user: Option<String>,
}

impl SshSettings {
    /// Reads the settings from the environment.
    #[must_use]
    pub fn from_env() -> Self {
        let path = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let text = |name| std::env::var(name).ok().filter(|value: &String| !value.is_empty());
        Self {
            folder: std::env::home_dir().map(|home| home.join(".ssh")),
            known_hosts: path("KELOS_SSH_KNOWN_HOSTS"),
            key: path("KELOS_SSH_KEY"),
            agent: path("SSH_AUTH_SOCK"),
            user: text("USER").or_else(|| text("LOGNAME")),
        }
    }

    fn below_home(&self, path: &str) -> PathBuf {
        let home = self.folder.as_deref().and_then(Path::parent);
        match (path.strip_prefix("~/"), home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => PathBuf::from(path),
        }
    }
}

/// A server, and all that is needed for a login.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    /// `sftp://user@host:port`, as it was written: for messages.
    pub(super) endpoint: String,
    /// The host to connect to.
    pub(super) host: String,
    pub(super) port: u16,
    /// The name under which the server is known: the one that was written, unless `config` gives another.
    pub(super) known_as: String,
    pub(super) user: String,
    /// Files of known hosts; a new key belongs in the first one.
    pub(super) known_hosts: Vec<PathBuf>,
    /// Keys that are configured: a missing one is reported.
    pub(super) named_keys: Vec<PathBuf>,
    /// Keys with default names, which may be missing.
    pub(super) usual_keys: Vec<PathBuf>,
    pub(super) agent: Option<PathBuf>,
}

impl Target {
    /// Reads `user@host:port`; contacts no server.
    pub(super) fn of(authority: &str, settings: &SshSettings) -> Result<Target, StorageError> {
        let (user, host, port) = split(authority)?;
        let config = settings.folder.as_ref().and_then(|folder| std::fs::read_to_string(folder.join("config")).ok());
        let config = HostConfig::of(config.as_deref().unwrap_or_default(), &host);
        let shown = |reason: String| bad(authority, reason);
        if let Some(word) = config.proxy {
            return Err(shown(format!(
                "~/.ssh/config has a {word} for it, which is not supported; use a host that can be reached directly, or forward a port with ssh -L"
            )));
        }
        let user = user.or(config.user).or_else(|| settings.user.clone());
        let user = user.ok_or_else(|| shown("expected a user name in it, such as sftp://ann@host/path".to_owned()))?;
        let named = match &settings.key {
            Some(key) => vec![key.clone()],
            None => config.identity_files.iter().map(|file| settings.below_home(file)).collect(),
        };
        let usual = match (&settings.folder, named.is_empty()) {
            (Some(folder), true) => USUAL_KEYS.iter().map(|name| folder.join(name)).collect(),
            _ => Vec::new(),
        };
        Ok(Target {
            endpoint: format!("sftp://{authority}"),
            port: port.or(config.port).unwrap_or(PORT),
            host: config.host_name.clone().unwrap_or_else(|| host.clone()),
            known_as: config.host_name.unwrap_or(host),
            user,
            known_hosts: known_hosts(settings, &config.known_hosts_files),
            named_keys: named,
            usual_keys: usual,
            agent: settings.agent.clone(),
        })
    }
}

fn known_hosts(settings: &SshSettings, configured: &[String]) -> Vec<PathBuf> {
    if let Some(only) = &settings.known_hosts {
        return vec![only.clone()];
    }
    let mut files: Vec<PathBuf> = configured.iter().map(|file| settings.below_home(file)).collect();
    if files.is_empty() {
        files.extend(settings.folder.iter().map(|folder| folder.join("known_hosts")));
    }
    files.push(PathBuf::from("/etc/ssh/ssh_known_hosts"));
    files
}

type Split = (Option<String>, String, Option<u16>);

fn split(authority: &str) -> Result<Split, StorageError> {
    let (user, rest) = match authority.rsplit_once('@') {
        Some((user, rest)) => (Some(user), rest),
        None => (None, authority),
    };
    if user.is_some_and(|user| user.contains(':')) {
        let reason =
            "a password in it would be seen by others; use a key: an agent (SSH_AUTH_SOCK), KELOS_SSH_KEY or ~/.ssh";
        return Err(bad(&format!("***@{rest}"), reason.to_owned()));
    }
    let decode = |text: &str| percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned();
    let (host, port) = host_and_port(rest).map_err(|reason| bad(authority, reason))?;
    Ok((user.filter(|user| !user.is_empty()).map(decode), host, port))
}

fn host_and_port(text: &str) -> Result<(String, Option<u16>), String> {
    let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, rest)) => (host, rest.strip_prefix(':')),
        None => text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port))),
    };
    if host.is_empty() {
        return Err("expected a host, such as sftp://host/path".to_owned());
    }
    let port = port.filter(|port| !port.is_empty()).map(str::parse).transpose();
    let port = port.map_err(|_| "expected a port from 1 to 65535 after the colon".to_owned())?;
    Ok((host.to_owned(), port))
}

fn bad(authority: &str, reason: String) -> StorageError {
    StorageError::BadUri { uri: format!("sftp://{authority}"), reason }
}

/// The section of `~/.ssh/config` for a host; of each keyword, the first that matches.
#[derive(Debug, Default, PartialEq, Eq)]
struct HostConfig {
    host_name: Option<String>,
    user: Option<String>,
    port: Option<u16>,
    identity_files: Vec<String>,
    known_hosts_files: Vec<String>,
    proxy: Option<&'static str>,
}

impl HostConfig {
    fn of(text: &str, host: &str) -> HostConfig {
        let mut found = HostConfig::default();
        let mut applies = true;
        for line in text.lines() {
            let Some((word, value)) = words(line) else { continue };
            match word.as_str() {
                "host" => applies = pattern::any(value.split_whitespace(), host),
                // Unknown conditions match no host.
                "match" => applies = value == "all",
                _ if applies => found.take(&word, value),
                _ => {}
            }
        }
        found
    }

    fn take(&mut self, word: &str, value: &str) {
        let text = || Some(value.trim_matches('"').to_owned());
        match word {
            "hostname" => self.host_name = self.host_name.take().or_else(text),
            "user" => self.user = self.user.take().or_else(text),
            "port" => self.port = self.port.or_else(|| value.parse().ok()),
            "identityfile" => self.identity_files.extend(text()),
            "userknownhostsfile" if self.known_hosts_files.is_empty() => {
                self.known_hosts_files = value.split_whitespace().map(str::to_owned).collect();
            }
            "proxyjump" if value != "none" => self.proxy = Some("ProxyJump"),
            "proxycommand" if value != "none" => self.proxy = Some("ProxyCommand"),
            _ => {}
        }
    }
}

/// A keyword and its value, written as `Word value`, `Word=value` or `Word = value`; the keyword in lower case.
fn words(line: &str) -> Option<(String, &str)> {
    let line = line.trim();
    let end = line.find(|c: char| c.is_whitespace() || c == '=')?;
    let value = line[end..].trim_start().trim_start_matches('=').trim();
    (!line.starts_with('#') && !value.is_empty()).then(|| (line[..end].to_ascii_lowercase(), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(folder: &Path) -> SshSettings {
        SshSettings { folder: Some(folder.to_owned()), user: Some("me".to_owned()), ..SshSettings::default() }
    }

    #[test]
    fn the_uri_says_most_and_the_config_the_rest() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join(".ssh");
        std::fs::create_dir(&folder).unwrap();
        let config = "Host !no* prod *.example\n  HostName = real.example\n  User deploy\n  Port 2222\n\
                      \tIdentityFile ~/.ssh/prod\nHost *\n  User everybody\n  Port 9\n";
        std::fs::write(folder.join("config"), config).unwrap();
        let target = Target::of("prod", &settings(&folder)).unwrap();
        assert_eq!((target.user.as_str(), target.host.as_str(), target.port), ("deploy", "real.example", 2222));
        assert_eq!(target.named_keys, [folder.join("prod")]);
        assert_eq!(target.usual_keys, Vec::<PathBuf>::new());
        let target = Target::of("ann@[::1]:77", &settings(&folder)).unwrap();
        assert_eq!((target.user.as_str(), target.host.as_str(), target.port), ("ann", "::1", 77));
        let none = Target::of("noexample", &SshSettings { user: None, ..settings(&home.path().join("none")) });
        let told = "understand \"sftp://noexample\": expected a user name in it, such as sftp://ann@host/path";
        assert_eq!(none.unwrap_err().to_string(), told);
    }

    #[test]
    fn passwords_are_refused_and_not_shown() {
        let error = Target::of("ann:secret@host", &SshSettings::default()).unwrap_err().to_string();
        assert!(!error.contains("secret"), "{error}");
        assert_eq!(
            error,
            "understand \"sftp://***@host\": a password in it would be seen by others; use a key: an agent \
             (SSH_AUTH_SOCK), KELOS_SSH_KEY or ~/.ssh"
        );
    }

    #[test]
    fn a_host_that_is_only_reached_through_another_is_told() {
        let config = HostConfig::of("Host inner\nProxyJump outer", "inner");
        assert_eq!(config.proxy, Some("ProxyJump"));
        assert_eq!(HostConfig::of("Match host inner\nUser x", "inner"), HostConfig::default());
    }

    #[test]
    fn ports_are_numbers() {
        let error = Target::of("host:ssh", &SshSettings::default()).unwrap_err().to_string();
        assert_eq!(error, "understand \"sftp://host:ssh\": expected a port from 1 to 65535 after the colon");
    }
}
