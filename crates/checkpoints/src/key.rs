//! Keys of checkpoints: Ed25519, in the PEM files that OpenSSL reads and writes.

use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::{Signer as _, SigningKey, VerifyingKey};

/// A signature.
pub(crate) type Signature = [u8; 64];

/// The bytes before the 32 of a private key in PKCS #8.
const PRIVATE: [u8; 16] = [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];
/// The bytes before the 32 of a public key in X.509's form.
const PUBLIC: [u8; 12] = [0x30, 0x2a, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 3, 0x21, 0];
/// The longest file of a key.
const LONGEST_FILE: u64 = 64 << 10;

/// The key that signs.
pub struct PrivateKey(SigningKey);

/// The key by which signatures are checked.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PublicKey([u8; 32]);

impl PrivateKey {
    /// The key in a file, which is made if it does not exist: for its owner only. Errors complete "failed to …".
    ///
    /// # Errors
    /// When it can't be made or read, others may read it, or it is no such key.
    pub fn keep(file: &Path) -> Result<PrivateKey, String> {
        match PrivateKey::open(file)? {
            Some(key) => Ok(key),
            None => {
                make(file).map_err(|error| format!("make the key of checkpoints {}: {error}", file.display()))?;
                PrivateKey::open(file)?.ok_or_else(|| format!("read the key of checkpoints {}", file.display()))
            }
        }
    }

    /// The key in a file; none if there is no such file. Errors complete "failed to …".
    ///
    /// # Errors
    /// When it can't be read, others may read it, or it is no such key.
    pub fn open(file: &Path) -> Result<Option<PrivateKey>, String> {
        let fail = |why: String| format!("read the key of checkpoints {}: {why}", file.display());
        let opened = match fs::File::open(file) {
            Ok(opened) => opened,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(fail(error.to_string())),
        };
        let mode = opened.metadata().map_err(|error| fail(error.to_string()))?.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(fail(format!("its permissions are {mode:04o}, expected 0600: others could sign in its name")));
        }
        let mut text = String::new();
        opened.take(LONGEST_FILE).read_to_string(&mut text).map_err(|error| fail(error.to_string()))?;
        let bytes = of_pem(&text, "PRIVATE KEY", &PRIVATE);
        let expected =
            "it is no private key of Ed25519 in PEM, expected such as `openssl genpkey -algorithm ed25519` makes";
        let seed = bytes.ok_or_else(|| fail(expected.to_owned()))?;
        Ok(Some(PrivateKey(SigningKey::from_bytes(&seed))))
    }

    #[cfg(test)]
    pub(crate) fn of_seed(seed: [u8; 32]) -> PrivateKey {
        PrivateKey(SigningKey::from_bytes(&seed))
    }

    /// Its public half.
    #[must_use]
    pub fn public(&self) -> PublicKey {
        PublicKey(self.0.verifying_key().to_bytes())
    }

    pub(crate) fn sign(&self, text: &[u8]) -> Signature {
        self.0.sign(text).to_bytes()
    }
}

impl PublicKey {
    /// Reads a public key: 64 hexadecimal digits, or PEM.
    ///
    /// # Errors
    /// The mistake, and what was expected.
    pub fn read(text: &str) -> Result<PublicKey, String> {
        let text = text.trim();
        let found = match unhex(text) {
            Some(bytes) => bytes.try_into().ok(),
            None => of_pem(text, "PUBLIC KEY", &PUBLIC),
        };
        let expected =
            "it is no public key of Ed25519, expected 64 hexadecimal digits or PEM, as `kelos key show` prints";
        let bytes = found.filter(|bytes| VerifyingKey::from_bytes(bytes).is_ok());
        bytes.map(PublicKey).ok_or_else(|| expected.to_owned())
    }

    /// Reads a public key from a file, or that of a private key in it. Errors complete "failed to …".
    ///
    /// # Errors
    /// When the file can't be read, or has no key.
    pub fn open(file: &Path) -> Result<PublicKey, String> {
        let fail = |why: String| format!("read the public key {}: {why}", file.display());
        let mut text = String::new();
        let opened = fs::File::open(file).map_err(|error| fail(error.to_string()))?;
        opened.take(LONGEST_FILE).read_to_string(&mut text).map_err(|error| fail(error.to_string()))?;
        if let Some(seed) = of_pem(&text, "PRIVATE KEY", &PRIVATE) {
            return Ok(PrivateKey(SigningKey::from_bytes(&seed)).public());
        }
        PublicKey::read(&text).map_err(fail)
    }

    /// The key in PEM, for OpenSSL.
    #[must_use]
    pub fn pem(&self) -> String {
        pem("PUBLIC KEY", &PUBLIC, &self.0)
    }

    pub(crate) fn has_signed(&self, text: &[u8], signature: &Signature) -> bool {
        let signature = ed25519_dalek::Signature::from_bytes(signature);
        VerifyingKey::from_bytes(&self.0).is_ok_and(|key| key.verify_strict(text, &signature).is_ok())
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Makes a file with a new key. Of several processes that do so at once, one succeeds, and the others find its key.
fn make(file: &Path) -> io::Result<()> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let mut seed = [0; 32];
    fs::File::open("/dev/urandom")?.read_exact(&mut seed)?;
    let beside = file.with_extension(format!("key.{}", std::process::id()));
    let mut written = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
    written.write_all(pem("PRIVATE KEY", &PRIVATE, &seed).as_bytes())?;
    written.sync_all()?;
    let linked = fs::hard_link(&beside, file);
    fs::remove_file(&beside)?;
    fs::File::open(folder)?.sync_all()?;
    linked.or_else(|error| if error.kind() == io::ErrorKind::AlreadyExists { Ok(()) } else { Err(error) })
}

fn pem(label: &str, before: &[u8], bytes: &[u8; 32]) -> String {
    let text = STANDARD.encode([before, bytes].concat());
    let lines: Vec<&str> = text.as_bytes().chunks(64).filter_map(|line| std::str::from_utf8(line).ok()).collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}

fn of_pem(text: &str, label: &str, before: &[u8]) -> Option<[u8; 32]> {
    let (_, rest) = text.split_once(&format!("-----BEGIN {label}-----"))?;
    let (body, _) = rest.split_once(&format!("-----END {label}-----"))?;
    let body: String = body.chars().filter(|c| !c.is_whitespace()).collect();
    STANDARD.decode(body).ok()?.strip_prefix(before)?.try_into().ok()
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u32> = text.chars().map(|c| c.to_digit(16)).collect::<Option<_>>()?;
    let pairs = digits.chunks_exact(2);
    if digits.is_empty() || !pairs.remainder().is_empty() {
        return None;
    }
    pairs.map(|pair| u8::try_from(pair.iter().fold(0, |byte, digit| byte * 16 + digit)).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_made_once_and_for_its_owner_only() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("keys/checkpoint.key");
        assert!(PrivateKey::open(&file).unwrap().is_none());
        let made = PrivateKey::keep(&file).unwrap().public();
        assert_eq!(PrivateKey::keep(&file).unwrap().public(), made);
        assert_eq!(PublicKey::open(&file), Ok(made));
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(folder.path().join("keys")).unwrap().count(), 1);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        let refused = PrivateKey::keep(&file).err().unwrap();
        assert!(
            refused.ends_with("its permissions are 0640, expected 0600: others could sign in its name"),
            "{refused}"
        );
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(&file, "secret").unwrap();
        assert!(PrivateKey::keep(&file).err().unwrap().contains("it is no private key of Ed25519 in PEM"));
    }

    #[test]
    fn public_keys_are_read_in_both_forms() {
        let key = PrivateKey::of_seed([1; 32]).public();
        assert_eq!(PublicKey::read(&key.to_string()), Ok(key));
        assert_eq!(PublicKey::read(&key.pem()), Ok(key));
        for wrong in ["", "00", "x", &"g".repeat(64), "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----", "é"]
        {
            assert!(PublicKey::read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_pem_is_what_openssl_makes() {
        let key = PrivateKey::of_seed([0; 32]).public();
        assert_eq!(
            key.pem(),
            "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAO2onvM62pC1io6jQKm8Nc2UyFXcd4kOmOsBIoYtZ2ik=\n-----END PUBLIC KEY-----\n"
        );
    }
}
