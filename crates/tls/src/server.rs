//! The certificate that a server shows, read again when its files change.

use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use jiff::{SignedDuration, Timestamp};
use rustls::crypto::CryptoProvider;
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};

use crate::certificate::Certificate;
use crate::files;

/// How long before its end a certificate is a problem.
const SOON: SignedDuration = SignedDuration::from_hours(7 * 24);

/// The files of a server's certificate, in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerFiles {
    /// The certificate, and those between it and its authority.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// The authorities of client certificates, if clients may show some.
    pub client_authorities: Option<PathBuf>,
}

/// The certificate of a server. Cheap to clone; all clones show the same.
#[derive(Clone, Debug)]
pub struct ServerCertificate {
    files: Arc<ServerFiles>,
    held: Arc<RwLock<ServerState>>,
    told: Arc<OnceLock<Listener>>,
}

/// The function that is told of a new certificate.
struct Listener(Box<dyn Fn(&Certificate) + Send + Sync>);

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Listener")
    }
}

/// The outcome of a look at the files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Nothing, or too little to tell yet: the files are replaced one after the other.
    None,
    /// New connections are shown the new certificate.
    Renewed,
    /// The new files can't be used, and the old certificate is still shown; the reason completes "failed to …".
    Broken(String),
}

#[derive(Debug)]
struct ServerState {
    loaded: Material,
    /// The state of the files when they were last taken or refused.
    seen: Vec<Option<Stamp>>,
    /// The state of files that could not be used at the last look.
    suspect: Option<Vec<Option<Stamp>>>,
    /// The reason for which the present files are not used.
    broken: Option<String>,
}

#[derive(Debug)]
struct Material {
    config: Arc<ServerConfig>,
    certificate: Arc<Certificate>,
}

/// The marks that change when a file is replaced, also by a rename or through a link to a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    file: (u64, u64),
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    fn of(path: &Path) -> Option<Stamp> {
        let found = std::fs::metadata(path).ok()?;
        Some(Stamp {
            file: (found.dev(), found.ino()),
            size: found.size(),
            modified: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
        })
    }
}

impl ServerFiles {
    fn stamps(&self) -> Vec<Option<Stamp>> {
        let all = [Some(&self.certificate), Some(&self.key), self.client_authorities.as_ref()];
        all.into_iter().flatten().map(|file| Stamp::of(file)).collect()
    }

    fn load(&self) -> Result<Material, String> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let chain = files::certificates(&self.certificate, "a certificate")?;
        let key = files::key(&self.key)?;
        let fail = |why: String| format!("use {} as a certificate: {why}", self.certificate.display());
        let read = chain.first().and_then(|first| Certificate::read(first));
        let certificate = read.ok_or_else(|| fail("its first certificate can't be read".to_owned()))?;
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| fail(error.to_string()))?;
        let builder = match &self.client_authorities {
            None => builder.with_no_client_auth(),
            Some(file) => builder.with_client_cert_verifier(verifier(file, provider)?),
        };
        let mut config = builder.with_single_cert(chain, key).map_err(|error| fail(files::of_key(&error)))?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Material { config: Arc::new(config), certificate: Arc::new(certificate) })
    }
}

/// Verifies client certificates by the authorities of a file; a client may have none.
fn verifier(
    file: &Path,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn rustls::server::danger::ClientCertVerifier>, String> {
    const WHAT: &str = "a file of authorities";
    let fail = |why: String| format!("use {} as {WHAT}: {why}", file.display());
    let mut roots = RootCertStore::empty();
    for one in files::certificates(file, WHAT)? {
        roots.add(one).map_err(|error| fail(error.to_string()))?;
    }
    let built = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).allow_unauthenticated().build();
    built.map_err(|error| fail(error.to_string()))
}

impl ServerCertificate {
    /// Reads the files.
    ///
    /// # Errors
    /// When they can't be used; the message completes "failed to …".
    pub fn open(files: ServerFiles) -> Result<ServerCertificate, String> {
        let seen = files.stamps();
        let held = ServerState { loaded: files.load()?, seen, suspect: None, broken: None };
        Ok(ServerCertificate { files: Arc::new(files), held: Arc::new(RwLock::new(held)), told: Arc::default() })
    }

    /// Has a function called with each new certificate. Only the first function counts.
    pub fn on_renewal(&self, tell: impl Fn(&Certificate) + Send + Sync + 'static) {
        let _ = self.told.set(Listener(Box::new(tell)));
    }

    /// The configuration for the next connection.
    #[must_use]
    pub fn config(&self) -> Arc<ServerConfig> {
        self.held.read().unwrap_or_else(PoisonError::into_inner).loaded.config.clone()
    }

    /// The certificate that is shown now.
    #[must_use]
    pub fn certificate(&self) -> Arc<Certificate> {
        self.held.read().unwrap_or_else(PoisonError::into_inner).loaded.certificate.clone()
    }

    /// The file of the certificate.
    #[must_use]
    pub fn file(&self) -> &Path {
        &self.files.certificate
    }

    /// Looks whether the files have changed, and reads them again if so. Files that can't be used are refused at the second
    /// look that finds them so, because a certificate and its key are never replaced at the same moment.
    pub fn look(&self) -> Change {
        let stamps = self.files.stamps();
        if stamps == self.held.read().unwrap_or_else(PoisonError::into_inner).seen {
            return Change::None;
        }
        let loaded = self.files.load();
        let mut held = self.held.write().unwrap_or_else(PoisonError::into_inner);
        match loaded {
            Ok(loaded) => {
                let renewed = loaded.certificate.clone();
                *held = ServerState { loaded, seen: stamps, suspect: None, broken: None };
                drop(held);
                if let Some(Listener(tell)) = self.told.get() {
                    tell(&renewed);
                }
                Change::Renewed
            }
            Err(why) if held.suspect.as_ref() == Some(&stamps) => {
                (held.seen, held.suspect, held.broken) = (stamps, None, Some(why.clone()));
                Change::Broken(why)
            }
            Err(_) => {
                held.suspect = Some(stamps);
                Change::None
            }
        }
    }

    /// The problem of the certificate or its files at a moment, if there is one: a sentence without its end.
    #[must_use]
    pub fn problem(&self, now: Timestamp) -> Option<String> {
        let held = self.held.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(why) = &held.broken {
            return Some(format!("failed to {why}; the certificate that was read before is still shown"));
        }
        let ends = held.loaded.certificate.not_after;
        let left = ends.duration_since(now);
        let file = self.files.certificate.display();
        if left <= SignedDuration::ZERO {
            return Some(format!("the certificate of {file} expired at {ends}"));
        }
        (left <= SOON).then(|| format!("the certificate of {file} expires at {ends}"))
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    use super::*;

    struct Folder(tempfile::TempDir);

    impl Folder {
        fn new() -> Folder {
            Folder(tempfile::tempdir().unwrap())
        }

        fn files(&self) -> ServerFiles {
            let at = |name: &str| self.0.path().join(name);
            ServerFiles { certificate: at("live/cert.pem"), key: at("live/key.pem"), client_authorities: None }
        }

        /// Writes a pair to a folder of this name.
        fn issue(&self, name: &str, until: i32) {
            let mut params = CertificateParams::new(["localhost".to_owned()]).unwrap();
            params.not_after = date_time_ymd(until, 1, 1);
            let key = KeyPair::generate().unwrap();
            let made = params.self_signed(&key).unwrap();
            let dir = self.0.path().join(name);
            std::fs::create_dir_all(&dir).unwrap();
            std::fs::write(dir.join("cert.pem"), made.pem()).unwrap();
            std::fs::write(dir.join("key.pem"), key.serialize_pem()).unwrap();
        }

        /// Points the link `live` to a folder at once, as Kubernetes does.
        fn switch(&self, name: &str) {
            let (next, live) = (self.0.path().join("next"), self.0.path().join("live"));
            std::os::unix::fs::symlink(name, &next).unwrap();
            std::fs::rename(next, live).unwrap();
        }

        fn replace(&self, name: &str, file: &str) {
            let (from, to) = (self.0.path().join(name).join(file), self.0.path().join("live").join(file));
            let beside = to.with_extension("new");
            std::fs::copy(from, &beside).unwrap();
            std::fs::rename(beside, to).unwrap();
        }
    }

    #[test]
    fn a_switched_link_is_noticed() {
        let folder = Folder::new();
        folder.issue("first", 2040);
        folder.issue("second", 2041);
        folder.switch("first");
        let shown = ServerCertificate::open(folder.files()).unwrap();
        assert_eq!(shown.look(), Change::None);
        let before = shown.certificate();
        folder.switch("second");
        assert_eq!(shown.look(), Change::Renewed);
        assert_ne!(shown.certificate().fingerprint, before.fingerprint);
        assert_eq!(shown.look(), Change::None);
    }

    #[test]
    fn files_may_be_replaced_one_after_the_other() {
        let folder = Folder::new();
        folder.issue("live", 2040);
        folder.issue("second", 2041);
        let shown = ServerCertificate::open(folder.files()).unwrap();
        folder.replace("second", "cert.pem");
        assert_eq!(shown.look(), Change::None);
        folder.replace("second", "key.pem");
        assert_eq!(shown.look(), Change::Renewed);
        assert_eq!(shown.certificate().not_after.to_string(), "2041-01-01T00:00:00Z");
    }

    #[test]
    fn broken_files_leave_the_old_certificate() {
        let folder = Folder::new();
        folder.issue("live", 2040);
        folder.issue("second", 2041);
        let shown = ServerCertificate::open(folder.files()).unwrap();
        let (before, now) = (shown.certificate(), "2030-01-01T00:00:00Z".parse().unwrap());
        assert_eq!(shown.problem(now), None);
        folder.replace("second", "cert.pem");
        assert_eq!(shown.look(), Change::None);
        let Change::Broken(why) = shown.look() else { panic!("a key of another certificate is refused") };
        assert!(why.ends_with("its key is that of another certificate"), "{why}");
        assert_eq!((shown.look(), shown.certificate()), (Change::None, before));
        let problem = shown.problem(now).unwrap();
        assert!(problem.ends_with("the certificate that was read before is still shown"), "{problem}");
        folder.replace("second", "key.pem");
        assert_eq!((shown.look(), shown.problem(now)), (Change::Renewed, None));
    }

    #[test]
    fn the_end_of_a_certificate_is_a_problem_a_week_before() {
        let folder = Folder::new();
        folder.issue("live", 2040);
        let shown = ServerCertificate::open(folder.files()).unwrap();
        let told = |now: &str| shown.problem(now.parse().unwrap());
        assert_eq!(told("2039-12-24T00:00:00Z"), None);
        assert!(told("2039-12-26T00:00:00Z").unwrap().ends_with("expires at 2040-01-01T00:00:00Z"));
        assert!(told("2040-01-01T00:00:00Z").unwrap().ends_with("expired at 2040-01-01T00:00:00Z"));
    }
}
