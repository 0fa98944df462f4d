//! The reasons for which a TLS connection did not come about, in words.

use std::error::Error;
use std::fmt;
use std::io;

use jiff::Timestamp;
use rustls::pki_types::{ServerName, UnixTime};
use rustls::{AlertDescription, CertificateError, InvalidMessage, OtherError};

/// A reason not to trust a server, or the server's reason not to trust this client, with a way out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Distrust {
    /// The reason, as a sentence without its end: "its certificate expired at …".
    pub reason: String,
    /// The way out.
    pub hint: String,
}

impl fmt::Display for Distrust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.reason, self.hint)
    }
}

impl Error for Distrust {}

impl Distrust {
    pub(crate) fn new(reason: impl Into<String>, hint: impl Into<String>) -> Distrust {
        Distrust { reason: reason.into(), hint: hint.into() }
    }

    /// The reason that the verification of a server's certificate gave; `presented` is its fingerprint.
    pub(crate) fn of_certificate(error: &CertificateError, name: &ServerName<'_>, presented: &str) -> Distrust {
        let trust = format!(
            "trust its authority with --ca FILE, KELOS_CA or \"tls\" in the file of --config, or pin the certificate, \
             once you know that {presented} is its own"
        );
        match error {
            // A bad signature is mostly that of an authority which was made anew under its old name.
            CertificateError::UnknownIssuer | CertificateError::BadSignature => {
                Distrust::new("its certificate is signed by no authority that is trusted here", trust)
            }
            CertificateError::ExpiredContext { not_after, .. } => Distrust::new(
                format!("its certificate expired at {}", time(*not_after)),
                "renew it, or check the clock of this machine",
            ),
            CertificateError::NotValidYetContext { not_before, .. } => Distrust::new(
                format!("its certificate is not valid before {}", time(*not_before)),
                "check the clock of this machine",
            ),
            CertificateError::NotValidForNameContext { presented, .. } => {
                let names: Vec<String> = presented.iter().map(|name| plain(name)).collect();
                let names = if names.is_empty() { "no name".to_owned() } else { names.join(", ") };
                Distrust::new(
                    format!("its certificate is for {names}, and not for {}", name.to_str()),
                    "use one of these names, or have it issued for this one",
                )
            }
            CertificateError::Other(_) => Distrust::new(
                "its certificate is that of an authority, as self-signed ones mostly are, and is not trusted here",
                trust,
            ),
            other => Distrust::new(format!("its certificate is not accepted: {other}"), trust),
        }
    }

    pub(crate) fn into_error(self) -> rustls::Error {
        CertificateError::Other(OtherError(std::sync::Arc::new(self))).into()
    }
}

/// `DnsName("a.example")` without what it is.
fn plain(name: &str) -> String {
    name.split('"').nth(1).map_or_else(|| name.to_owned(), str::to_owned)
}

fn time(at: UnixTime) -> String {
    let at = i64::try_from(at.as_secs()).ok().and_then(|second| Timestamp::from_second(second).ok());
    at.map_or_else(|| "a time that can't be shown".to_owned(), |at| at.to_string())
}

/// The reason of TLS for which a connection failed, found among the causes of an error; none if it had another one.
#[must_use]
pub fn explain(error: &(dyn Error + 'static)) -> Option<Distrust> {
    let mut cause = Some(error);
    while let Some(one) = cause {
        if let Some(error) = one.downcast_ref::<rustls::Error>() {
            return Some(of_tls(error));
        }
        cause = match one.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(inner) => Some(inner as &(dyn Error + 'static)),
            None => one.source(),
        };
    }
    None
}

fn of_tls(error: &rustls::Error) -> Distrust {
    const REFUSED: &str = "it does not accept the client certificate";
    match error {
        rustls::Error::InvalidCertificate(CertificateError::Other(OtherError(reason))) => {
            reason.downcast_ref::<Distrust>().cloned().unwrap_or_else(|| Distrust::new(error.to_string(), EITHER_END))
        }
        rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
            Distrust::new("it does not speak TLS on this port", "use http:// where nobody can listen, or another port")
        }
        rustls::Error::AlertReceived(AlertDescription::CertificateRequired) => {
            Distrust::new("it asks for a client certificate", "give one with --cert FILE and --key FILE")
        }
        rustls::Error::AlertReceived(AlertDescription::UnknownCA) => {
            Distrust::new(REFUSED, "it has to be signed by an authority of its --tls-client-ca")
        }
        rustls::Error::AlertReceived(AlertDescription::CertificateExpired) => {
            Distrust::new(format!("{REFUSED}: it has expired"), "renew it")
        }
        rustls::Error::AlertReceived(
            AlertDescription::BadCertificate
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::CertificateUnknown
            | AlertDescription::DecryptError,
        ) => Distrust::new(REFUSED, "check --cert and --key"),
        other => Distrust::new(other.to_string(), EITHER_END),
    }
}

const EITHER_END: &str = "check the settings of TLS at both ends";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_found_below_other_errors() {
        let reason = Distrust::new("it is", "do");
        let io = io::Error::new(io::ErrorKind::InvalidData, reason.clone().into_error());
        let outer = io::Error::other(io);
        assert_eq!(explain(&outer), Some(reason));
        assert_eq!(explain(&io::Error::other("plain")), None);
    }
}
