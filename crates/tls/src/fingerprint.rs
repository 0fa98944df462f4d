//! The fingerprint of a certificate or of its public key.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest, Sha256};

/// A SHA-256 digest, written `sha256:` and 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// The fingerprint of these bytes: of a certificate, or of its public key, in DER.
    #[must_use]
    pub fn of(der: &[u8]) -> Fingerprint {
        Fingerprint(Sha256::digest(der).into())
    }
}

impl FromStr for Fingerprint {
    type Err = String;

    /// Reads a fingerprint, also with the colons and capitals of `openssl x509 -fingerprint -sha256`.
    fn from_str(text: &str) -> Result<Fingerprint, String> {
        const EXPECTED: &str = "expected sha256: and 64 hexadecimal digits, of the certificate or of its public key";
        let fail = |why: &str| format!("\"{text}\" {why}, {EXPECTED}");
        let digits = text.strip_prefix("sha256:").ok_or_else(|| fail("does not begin with sha256:"))?;
        let digits: Vec<char> = digits.chars().filter(|c| *c != ':').collect();
        let values: Option<Vec<u8>> = digits.iter().map(|c| u8::try_from(c.to_digit(16)?).ok()).collect();
        let values = values.ok_or_else(|| fail("has other characters"))?;
        let (pairs, rest) = values.as_chunks::<2>();
        let bytes: Vec<u8> = pairs.iter().map(|[high, low]| high << 4 | low).collect();
        let bytes = bytes.try_into().ok().filter(|_| rest.is_empty());
        bytes.map(Fingerprint).ok_or_else(|| fail(&format!("has {} digits", digits.len())))
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sha256:")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprints_are_read_as_openssl_prints_them() {
        let text = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(Fingerprint::of(b"abc").to_string(), text);
        assert_eq!(text.parse(), Ok(Fingerprint::of(b"abc")));
        let printed =
            "sha256:BA:78:16:BF:8F:01:CF:EA:41:41:40:DE:5D:AE:22:23:B0:03:61:A3:96:17:7A:9C:B4:10:FF:61:F2:00:15:AD";
        assert_eq!(printed.parse(), Ok(Fingerprint::of(b"abc")));
    }

    #[test]
    fn other_texts_are_refused() {
        for (bad, why) in [
            ("", "does not begin with sha256:"),
            ("sha1:00", "does not begin with sha256:"),
            ("sha256:00", "has 2 digits"),
            ("sha256:xyz", "has other characters"),
        ] {
            let told = bad.parse::<Fingerprint>().unwrap_err();
            assert!(told.contains(why) && told.contains("64 hexadecimal digits"), "{told}");
        }
        assert!(format!("sha256:{}", "0".repeat(65)).parse::<Fingerprint>().is_err());
    }
}
