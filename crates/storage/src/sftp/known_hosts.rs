//! Verification of a server: its key is compared with the files of known hosts.

use std::path::{Path, PathBuf};

use hmac::{Hmac, KeyInit, Mac};
use russh::keys::ssh_key::known_hosts::{Entry, HostPatterns, Marker};
use russh::keys::{Algorithm, HashAlg, PublicKey};
use sha1::Sha1;

use super::pattern;
use super::settings::Target;

/// A line about a server.
struct Line {
    file: PathBuf,
    number: usize,
    revoked: bool,
    key: PublicKey,
}

/// The known keys of a server.
pub(super) struct KnownKeys {
    /// The name of the server in the files.
    name: String,
    host: String,
    port: u16,
    /// The file in which a new key belongs.
    file: PathBuf,
    lines: Vec<Line>,
}

impl KnownKeys {
    /// Reads the files that exist.
    pub(super) fn of(target: &Target) -> KnownKeys {
        let name = match target.port {
            22 => target.known_as.clone(),
            port => format!("[{}]:{port}", target.known_as),
        };
        let mut lines = Vec::new();
        for file in &target.known_hosts {
            if let Ok(text) = std::fs::read_to_string(file) {
                lines.extend(lines_about(&name, file, &text));
            }
        }
        let file = target.known_hosts.first().cloned().unwrap_or_else(|| PathBuf::from("~/.ssh/known_hosts"));
        KnownKeys { name, host: target.known_as.clone(), port: target.port, file, lines }
    }

    /// Whether a kind of key is known: the client prefers such kinds.
    pub(super) fn has(&self, algorithm: &Algorithm) -> bool {
        self.lines.iter().any(|line| !line.revoked && alike(&line.key.algorithm(), algorithm))
    }

    /// Accepts a key, or gives the reason for refusing it.
    pub(super) fn judge(&self, offered: &PublicKey) -> Result<(), String> {
        let same = |line: &&Line| line.key.key_data() == offered.key_data();
        let print = format!("{} {}", offered.algorithm(), offered.fingerprint(HashAlg::Sha256));
        if let Some(line) = self.lines.iter().filter(|line| line.revoked).find(same) {
            let (file, number) = (line.file.display(), line.number);
            return Err(format!(
                "it offers the host key {print}, which {file}, line {number}, revokes: don't connect to it"
            ));
        }
        if self.lines.iter().any(|line| same(&line)) {
            return Ok(());
        }
        let kept: Vec<&Line> = self.lines.iter().filter(|line| !line.revoked).collect();
        Err(match kept.iter().find(|line| alike(&line.key.algorithm(), &offered.algorithm())).or(kept.first()) {
            Some(line) => self.changed(line, &print),
            None => self.unknown(&print),
        })
    }

    fn unknown(&self, print: &str) -> String {
        let Self { name, host, port, .. } = self;
        let file = self.file.display();
        format!(
            "its host key is not known: {name} is not in {file}, and it offers {print}; compare that fingerprint \
             with what those who run the server say, then: ssh-keyscan -p {port} {host} >> {file}"
        )
    }

    fn changed(&self, line: &Line, print: &str) -> String {
        let (name, file, number) = (&self.name, line.file.display(), line.number);
        let expected = format!("{} {}", line.key.algorithm(), line.key.fingerprint(HashAlg::Sha256));
        format!(
            "its host key has changed: it offers {print}, but {file}, line {number}, has {expected}; somebody may be \
             in between. If those who run the server confirm the new fingerprint: ssh-keygen -f {file} -R '{name}', \
             then: ssh-keyscan -p {} {} >> {file}",
            self.port, self.host
        )
    }
}

/// The lines of a file about a server; lines that can't be read are skipped.
fn lines_about(name: &str, file: &Path, text: &str) -> Vec<Line> {
    let about = |(number, line): (usize, &str)| {
        let entry: Entry = line.trim().parse().ok()?;
        // Keys of authorities are only for certificates, which are not requested.
        let revoked = match entry.marker() {
            Some(Marker::CertAuthority) => return None,
            Some(Marker::Revoked) => true,
            None => false,
        };
        let key = entry.public_key().clone();
        names(entry.host_patterns(), name).then(|| Line { file: file.to_owned(), number: number + 1, revoked, key })
    };
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with('#'));
    lines.filter_map(about).collect()
}

fn names(patterns: &HostPatterns, name: &str) -> bool {
    match patterns {
        HostPatterns::Patterns(patterns) => pattern::any(patterns.iter().map(String::as_str), name),
        HostPatterns::HashedName { salt, hash } => {
            let Ok(sum) = Hmac::<Sha1>::new_from_slice(salt) else { return false };
            sum.chain_update(name).verify_slice(hash).is_ok()
        }
    }
}

/// Whether two algorithms use the same key: an RSA key is the same for any hash.
fn alike(one: &Algorithm, other: &Algorithm) -> bool {
    one == other || matches!((one, other), (Algorithm::Rsa { .. }, Algorithm::Rsa { .. }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJdD7y3aLq454yWBdwLWbieU1ebz9/cu7/QEXn9OIeZJ";
    const OTHER: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILIG2T/B0l0gaqj3puu510tu9N1OkQ4znY3LYuEm5zCF";

    fn known(lines: &str, port: u16) -> KnownKeys {
        let name = if port == 22 { "host.example".to_owned() } else { format!("[host.example]:{port}") };
        let file = PathBuf::from("known_hosts");
        let lines = lines_about(&name, &file, lines);
        KnownKeys { name, host: "host.example".to_owned(), port, file, lines }
    }

    fn key() -> PublicKey {
        KEY.parse().unwrap()
    }

    #[test]
    fn a_key_that_is_written_down_is_taken() {
        assert_eq!(known(&format!("# x\n\nother,host.example {KEY}\n"), 22).judge(&key()), Ok(()));
        assert_eq!(known(&format!("[host.example]:2222 {KEY}"), 2222).judge(&key()), Ok(()));
        assert_eq!(known(&format!("*.example {KEY} a comment"), 22).judge(&key()), Ok(()));
        let two = format!("host.example {OTHER}\nhost.example {KEY}");
        assert_eq!(known(&two, 22).judge(&key()), Ok(()), "a server may have several");
    }

    #[test]
    fn names_may_be_hashed() {
        // printf host.example | openssl sha1 -mac hmac, with a salt of twenty bytes of 1.
        let mut sum = Hmac::<Sha1>::new_from_slice(&[1; 20]).unwrap();
        sum.update(b"host.example");
        let hash: [u8; 20] = sum.finalize().into_bytes().into();
        assert!(names(&HostPatterns::HashedName { salt: vec![1; 20], hash }, "host.example"));
        assert!(!names(&HostPatterns::HashedName { salt: vec![1; 20], hash }, "other.example"));
    }

    #[test]
    fn an_unknown_key_is_refused_with_what_to_do() {
        assert_eq!(
            known(&format!("host.example {KEY}"), 2222).judge(&key()).unwrap_err(),
            "its host key is not known: [host.example]:2222 is not in known_hosts, and it offers ssh-ed25519 \
             SHA256:T7SvZ2cslqpPj6nKzitCBHHlpVF3r3MvLwmFL0fk0IE; compare that fingerprint with what those who run the \
             server say, then: ssh-keyscan -p 2222 host.example >> known_hosts"
        );
    }

    #[test]
    fn a_changed_key_is_refused() {
        let told = known(&format!("\nhost.example {OTHER}"), 22).judge(&key()).unwrap_err();
        assert!(told.starts_with("its host key has changed: it offers ssh-ed25519 SHA256:"), "{told}");
        assert!(told.contains("but known_hosts, line 2, has ssh-ed25519 SHA256:"), "{told}");
        assert!(told.contains("ssh-keygen -f known_hosts -R 'host.example'"), "{told}");
    }

    #[test]
    fn a_revoked_key_is_refused_even_if_it_is_known() {
        let told = known(&format!("host.example {KEY}\n@revoked * {KEY}"), 22).judge(&key()).unwrap_err();
        assert!(told.contains("known_hosts, line 2, revokes"), "{told}");
        assert!(known(&format!("@cert-authority * {KEY}"), 22).judge(&key()).is_err());
    }
}
