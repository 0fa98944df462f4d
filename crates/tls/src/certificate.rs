//! The contents of a certificate: its names, its end, its fingerprints.

use std::net::IpAddr;

use jiff::Timestamp;
use x509_cert::der::{Decode, Encode};
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;

use crate::fingerprint::Fingerprint;

/// A certificate that was read. Nothing of it is verified here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// Its names: DNS names, URIs, email addresses and IP addresses of its subject, and the common name, each once.
    pub names: Vec<String>,
    /// The beginning of its validity.
    pub not_before: Timestamp,
    /// The end of its validity.
    pub not_after: Timestamp,
    /// The fingerprint of the whole certificate.
    pub fingerprint: Fingerprint,
    /// The fingerprint of its public key, which stays when a certificate is renewed for the same key.
    pub key: Fingerprint,
}

impl Certificate {
    /// Reads a certificate in DER; none if it is none.
    #[must_use]
    pub fn read(der: &[u8]) -> Option<Certificate> {
        let read = x509_cert::Certificate::from_der(der).ok()?;
        let subject = read.tbs_certificate();
        let alternatives = subject.get_extension::<SubjectAltName>().ok().flatten();
        let mut names: Vec<String> =
            alternatives.iter().flat_map(|(_, names)| names.0.iter()).filter_map(name_of).collect();
        if let Ok(Some(common)) = subject.subject().common_name() {
            names.push(common.value().into_owned());
        }
        let mut known = std::collections::BTreeSet::new();
        names.retain(|name| !name.is_empty() && known.insert(name.clone()));
        let key = subject.subject_public_key_info().to_der().ok()?;
        Some(Certificate {
            names,
            not_before: time(subject.validity().not_before)?,
            not_after: time(subject.validity().not_after)?,
            fingerprint: Fingerprint::of(der),
            key: Fingerprint::of(&key),
        })
    }
}

fn time(time: x509_cert::time::Time) -> Option<Timestamp> {
    Timestamp::from_second(i64::try_from(time.to_unix_duration().as_secs()).ok()?).ok()
}

fn name_of(name: &GeneralName) -> Option<String> {
    Some(match name {
        GeneralName::DnsName(name) => name.as_str().to_ascii_lowercase(),
        GeneralName::UniformResourceIdentifier(name) => name.as_str().to_owned(),
        GeneralName::Rfc822Name(name) => name.as_str().to_owned(),
        GeneralName::IpAddress(octets) => address_of(octets.as_bytes())?.to_string(),
        _ => return None,
    })
}

fn address_of(octets: &[u8]) -> Option<IpAddr> {
    let four = <[u8; 4]>::try_from(octets).map(IpAddr::from);
    four.or_else(|_| <[u8; 16]>::try_from(octets).map(IpAddr::from)).ok()
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, KeyPair, SanType, date_time_ymd};

    use super::*;

    #[test]
    fn all_names_are_read() {
        let mut params = CertificateParams::new(["Kelos.Example".to_owned(), "10.0.0.7".to_owned()]).unwrap();
        params.subject_alt_names.push(SanType::URI("spiffe://team/loader".try_into().unwrap()));
        params.subject_alt_names.push(SanType::Rfc822Name("etl@example.org".try_into().unwrap()));
        params.distinguished_name.push(DnType::CommonName, "loader");
        params.not_after = date_time_ymd(2040, 1, 2);
        let key = KeyPair::generate().unwrap();
        let made = params.self_signed(&key).unwrap();
        let read = Certificate::read(made.der()).unwrap();
        let common = read.names.last().unwrap();
        assert_eq!(read.names[..4], ["kelos.example", "10.0.0.7", "spiffe://team/loader", "etl@example.org"]);
        assert_eq!(common, "loader");
        assert_eq!(read.not_after.to_string(), "2040-01-02T00:00:00Z");
        assert_eq!(read.fingerprint, Fingerprint::of(made.der()));
        assert_ne!(read.key, read.fingerprint);
    }

    #[test]
    fn what_is_no_certificate_is_none() {
        assert_eq!(Certificate::read(b""), None);
        assert_eq!(Certificate::read(&[0x30, 0x82, 0xff, 0xff, 0x30]), None);
    }
}
