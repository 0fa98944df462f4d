//! Kerberos: the credentials, and advice when a login fails.
//!
//! Absent: the protocol, which the HDFS client and the system library implement.

use std::fs::File;
use std::time::Duration;

use crate::java::first_line;

/// How long a login may take: less than a stat, so that there is time left to report its failure.
pub(crate) const LOG_IN: Duration = Duration::from_secs(8);
/// The time after [`LOG_IN`] in which the library may still report a silent name node. A login that takes longer waits for the KDC.
pub(crate) const TO_TELL: Duration = Duration::from_secs(1);

/// The beginnings of messages of the system library, before their cause.
const PREAMBLES: [&str; 2] = [
    "No credentials were supplied, or the credentials were unavailable or inaccessible: ",
    "Unspecified GSS failure.  Minor code may provide more information: ",
];

/// The credentials for clusters with Kerberos. The default is the credential cache (`kinit`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Kerberos {
    /// The principal, such as `kelos@EXAMPLE.ORG`: `KELOS_KERBEROS_PRINCIPAL`.
    pub principal: Option<String>,
    /// The file with its keys: `KELOS_KERBEROS_KEYTAB`.
    pub keytab: Option<String>,
}

impl Kerberos {
    /// Checks that principal and keytab are both set, or neither.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.keytab.is_some() && self.principal.is_none() {
            return Err("KELOS_KERBEROS_KEYTAB needs KELOS_KERBEROS_PRINCIPAL, whose keys it holds".to_owned());
        }
        Ok(())
    }

    /// Checks that the keytab can be read, which the library does not report. It may be renewed at any time, so each login checks it.
    pub(crate) fn check_keytab(&self) -> Result<(), String> {
        let Some(keytab) = &self.keytab else { return Ok(()) };
        let opened = File::open(keytab).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => "nothing is there".to_owned(),
            _ => error.to_string(),
        });
        opened.map(drop).map_err(|why| format!("KELOS_KERBEROS_KEYTAB ({keytab}) can't be read: {why}"))
    }

    /// A message of the system library, with advice.
    pub(crate) fn advice(&self, detail: &str) -> String {
        let reason = PREAMBLES.iter().find_map(|preamble| detail.strip_prefix(preamble)).unwrap_or(detail);
        let reason = first_line(reason);
        if reason.contains("contact any KDC") {
            return format!("{reason}; is the KDC up that krb5.conf (KRB5_CONFIG) names?");
        }
        match self {
            Self { keytab: Some(keytab), principal: Some(principal) } => {
                // The library looks there after the keys have failed.
                let reason = if reason.starts_with("No credentials cache") { "no ticket was given" } else { &reason };
                format!("{reason}; are keys of {principal} in KELOS_KERBEROS_KEYTAB? klist -k {keytab} lists them")
            }
            Self { principal: Some(principal), .. } => {
                format!("{reason}; run kinit {principal}, or set KELOS_KERBEROS_KEYTAB")
            }
            _ => format!("{reason}; run kinit, or set KELOS_KERBEROS_PRINCIPAL and KELOS_KERBEROS_KEYTAB"),
        }
    }
}

/// The message about a login that timed out.
pub(crate) fn silent_kdc() -> String {
    let seconds = (LOG_IN + TO_TELL).as_secs();
    format!("no ticket came within {seconds} s; is the KDC well that krb5.conf (KRB5_CONFIG) names?")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_is_about_what_is_set() {
        let told = |principal: Option<&str>, keytab: Option<&str>, detail: &str| {
            Kerberos { principal: principal.map(str::to_owned), keytab: keytab.map(str::to_owned) }.advice(detail)
        };
        let none = format!("{}No credentials cache found\nmore", PREAMBLES[0]);
        assert_eq!(
            told(None, None, &none),
            "No credentials cache found; run kinit, or set KELOS_KERBEROS_PRINCIPAL and KELOS_KERBEROS_KEYTAB"
        );
        assert_eq!(
            told(Some("a@B"), None, &none),
            "No credentials cache found; run kinit a@B, or set KELOS_KERBEROS_KEYTAB"
        );
        assert_eq!(
            told(Some("a@B"), Some("/k"), &none),
            "no ticket was given; are keys of a@B in KELOS_KERBEROS_KEYTAB? klist -k /k lists them"
        );
        assert_eq!(
            told(Some("a@B"), Some("/k"), &format!("{}Cannot contact any KDC for realm 'B'", PREAMBLES[1])),
            "Cannot contact any KDC for realm 'B'; is the KDC up that krb5.conf (KRB5_CONFIG) names?"
        );
    }

    #[test]
    fn a_keytab_is_looked_for() {
        let kerberos = Kerberos { principal: Some("a@B".to_owned()), keytab: Some("/no/such".to_owned()) };
        let told = kerberos.check_keytab().unwrap_err();
        assert_eq!(told, "KELOS_KERBEROS_KEYTAB (/no/such) can't be read: nothing is there");
        assert_eq!(Kerberos::default().check_keytab(), Ok(()));
    }
}
