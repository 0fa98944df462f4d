//! PEM files of certificates and keys.

use std::io::Read;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustls::pki_types::pem::{Error, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// Longest file that is read: all authorities of a system have a tenth of it.
const LONGEST: u64 = 4 << 20;

/// The certificates of a file, at least one. Errors complete "failed to …".
pub(crate) fn certificates(path: &Path, what: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let fail = |why: &str| format!("use {} as {what}: {why}", path.display());
    let text = text(path).map_err(|why| fail(&why))?;
    let found: Result<Vec<_>, Error> = CertificateDer::pem_slice_iter(&text).collect();
    let found = found.map_err(|error| fail(&format!("it is no PEM file: {error}")))?;
    if found.is_empty() {
        return Err(fail("it has no certificate, expected PEM with -----BEGIN CERTIFICATE-----"));
    }
    Ok(found)
}

/// The private key of a file. Errors complete "failed to …", and have nothing of the key.
pub(crate) fn key(path: &Path) -> Result<PrivateKeyDer<'static>, String> {
    let fail = |why: &str| format!("use {} as a private key: {why}", path.display());
    let text = text(path).map_err(|why| fail(&why))?;
    PrivateKeyDer::from_pem_slice(&text).map_err(|error| {
        if text.windows(9).any(|part| part == b"ENCRYPTED") {
            return fail("it is encrypted, expected a key without a passphrase");
        }
        match error {
            Error::NoItemsFound => fail("it has no key, expected PEM with -----BEGIN PRIVATE KEY-----"),
            other => fail(&format!("it is no PEM file: {other}")),
        }
    })
}

/// A certificate as PEM.
pub(crate) fn pem(certificate: &CertificateDer<'_>) -> String {
    let text = STANDARD.encode(certificate);
    let lines = text.as_bytes().chunks(64).map(String::from_utf8_lossy).collect::<Vec<_>>().join("\n");
    format!("-----BEGIN CERTIFICATE-----\n{lines}\n-----END CERTIFICATE-----\n")
}

/// The error of a key that does not belong to its certificate, or is of a kind that is not known.
pub(crate) fn of_key(error: &rustls::Error) -> String {
    match error {
        rustls::Error::InconsistentKeys(_) => "its key is that of another certificate".to_owned(),
        other => other.to_string(),
    }
}

fn text(path: &Path) -> Result<Vec<u8>, String> {
    let mut text = Vec::new();
    let file = std::fs::File::open(path).map_err(|error| error.to_string())?;
    file.take(LONGEST + 1).read_to_end(&mut text).map_err(|error| error.to_string())?;
    match u64::try_from(text.len()) {
        Ok(length) if length <= LONGEST => Ok(text),
        _ => Err(format!("it has more than {} MiB", LONGEST >> 20)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_files_are_refused_with_what_was_expected() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file.pem");
        let told = |text: &str| {
            std::fs::write(&file, text).unwrap();
            (certificates(&file, "a certificate").unwrap_err(), key(&file).unwrap_err())
        };
        let (certificate, key_of) = told("nothing");
        assert!(certificate.ends_with("it has no certificate, expected PEM with -----BEGIN CERTIFICATE-----"));
        assert!(key_of.ends_with("it has no key, expected PEM with -----BEGIN PRIVATE KEY-----"), "{key_of}");
        let (_, key_of) = told("-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n");
        assert!(key_of.ends_with("it is encrypted, expected a key without a passphrase"), "{key_of}");
        let (certificate, _) = told("-----BEGIN CERTIFICATE-----\n?\n-----END CERTIFICATE-----\n");
        assert!(certificate.contains("it is no PEM file"), "{certificate}");
        std::fs::remove_file(&file).unwrap();
        assert!(key(&file).unwrap_err().contains("No such file"));
    }
}
