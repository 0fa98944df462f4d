//! The trust of a client: authorities of the system and others, pins, and the certificate that it shows itself.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use jiff::Timestamp;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use serde_json::Value;

use crate::certificate::Certificate;
use crate::distrust::Distrust;
use crate::files;
use crate::fingerprint::Fingerprint;

/// The settings of what a client trusts, beside the authorities of the system, and shows of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustSettings {
    /// Files with more authorities, in PEM.
    pub authorities: Vec<PathBuf>,
    /// The pins of hosts: the fingerprint of their certificate or of its public key, which counts in place of authority, name
    /// and dates.
    pub pins: BTreeMap<String, Vec<Fingerprint>>,
    /// The pin of every other host.
    pub pin: Option<Fingerprint>,
    /// The files of the certificate and of the key that the client shows where it is asked for one.
    pub own: Option<(PathBuf, PathBuf)>,
}

impl TrustSettings {
    /// The settings of the variable `KELOS_CA`: files with authorities, separated like those of `PATH`.
    #[must_use]
    pub fn of_environment() -> TrustSettings {
        let files = std::env::var_os("KELOS_CA").unwrap_or_default();
        let authorities = std::env::split_paths(&files).filter(|file| !file.as_os_str().is_empty()).collect();
        TrustSettings { authorities, ..TrustSettings::default() }
    }

    /// The settings of a client of Kelos: those of `KELOS_CA`, `KELOS_PIN`, `KELOS_CLIENT_CERT` and `KELOS_CLIENT_KEY`.
    ///
    /// # Errors
    /// When the pin is no fingerprint.
    pub fn of_client_environment() -> Result<TrustSettings, String> {
        let file = |name: &str| std::env::var_os(name).filter(|file| !file.is_empty()).map(PathBuf::from);
        let pin = std::env::var("KELOS_PIN").ok().filter(|pin| !pin.is_empty()).map(|pin| pin.parse());
        let pin = pin.transpose().map_err(|why| format!("use KELOS_PIN: {why}"))?;
        let own = file("KELOS_CLIENT_CERT").map(|cert| (cert.clone(), file("KELOS_CLIENT_KEY").unwrap_or(cert)));
        Ok(TrustSettings { pin, own, ..TrustSettings::of_environment() })
    }

    /// The same, with those of `"tls"` in a file of settings:
    /// `{"ca": "FILE", "pin": {"oozie.example": "sha256:…"}, "cert": "FILE", "key": "FILE"}`. `ca` and each pin may be a list.
    ///
    /// # Errors
    /// When the text is no JSON, or `tls` has another form.
    pub fn with_file(mut self, text: &str) -> Result<TrustSettings, String> {
        let file: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let Some(tls) = file.get("tls") else { return Ok(self) };
        let tls = tls.as_object().ok_or("\"tls\" is no object, expected {\"ca\": \"FILE\", \"pin\": {…}}")?;
        let (mut cert, mut key) = (None, None);
        for (name, value) in tls {
            match name.as_str() {
                "ca" => self.authorities.extend(texts("ca", value)?.into_iter().map(PathBuf::from)),
                "pin" => self.pins.extend(pins(value)?),
                "cert" => cert = Some(PathBuf::from(text_of("cert", value)?)),
                "key" => key = Some(PathBuf::from(text_of("key", value)?)),
                other => return Err(format!("\"tls\" has \"{other}\", expected ca, pin, cert or key")),
            }
        }
        match (cert, key) {
            (Some(cert), Some(key)) => self.own = Some((cert, key)),
            (None, None) => {}
            _ => return Err("\"tls\" has one of \"cert\" and \"key\", expected both or none".to_owned()),
        }
        Ok(self)
    }
}

fn text_of<'a>(name: &str, value: &'a Value) -> Result<&'a str, String> {
    value.as_str().filter(|text| !text.is_empty()).ok_or_else(|| format!("\"{name}\" of \"tls\" is no text"))
}

fn texts<'a>(name: &str, value: &'a Value) -> Result<Vec<&'a str>, String> {
    match value {
        Value::Array(all) => all.iter().map(|one| text_of(name, one)).collect(),
        one => Ok(vec![text_of(name, one)?]),
    }
}

fn pins(value: &Value) -> Result<BTreeMap<String, Vec<Fingerprint>>, String> {
    const EXPECTED: &str = "expected {\"HOST\": \"sha256:…\"}";
    let all = value.as_object().ok_or_else(|| format!("\"pin\" of \"tls\" is no object, {EXPECTED}"))?;
    let pin = |(host, value): (&String, &Value)| {
        let name = host.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
        if ServerName::try_from(name.as_str()).is_err() {
            return Err(format!("\"{host}\" is no name of a host, {EXPECTED}: a pin is for all ports of its host"));
        }
        let pins: Result<Vec<Fingerprint>, String> = texts("pin", value)?.into_iter().map(str::parse).collect();
        Ok((name, pins.map_err(|why| format!("the pin of \"{host}\": {why}"))?))
    };
    all.iter().map(pin).collect()
}

/// The trust of a client. Cheap to clone; the authorities of the system are read at the first handshake.
#[derive(Clone, Debug)]
pub struct Trust {
    verifier: Arc<Verifier>,
    own: Option<Arc<Own>>,
}

#[derive(Debug)]
struct Own {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

impl Default for Trust {
    /// Trust in the authorities of the system.
    fn default() -> Trust {
        Trust { verifier: Arc::new(Verifier::new(Vec::new(), TrustSettings::default())), own: None }
    }
}

impl Trust {
    /// Reads the files of the settings.
    ///
    /// # Errors
    /// When a file can't be used; the message completes "failed to …".
    pub fn new(settings: TrustSettings) -> Result<Trust, String> {
        let mut authorities = Vec::new();
        for file in &settings.authorities {
            let found = files::certificates(file, "a file of authorities")?;
            // A certificate that can't be an authority would be passed over in silence otherwise.
            let mut store = RootCertStore::empty();
            for one in &found {
                store
                    .add(one.clone())
                    .map_err(|error| format!("use {} as a file of authorities: {error}", file.display()))?;
            }
            authorities.extend(found);
        }
        let own = settings.own.as_ref().map(|(certificate, key)| {
            let (chain, key) = (files::certificates(certificate, "a client certificate")?, files::key(key)?);
            Ok::<_, String>((certificate.clone(), Own { chain, key }))
        });
        let trust = Trust { verifier: Arc::new(Verifier::new(authorities, settings)), own: None };
        let Some((file, own)) = own.transpose()? else { return Ok(trust) };
        let trust = Trust { own: Some(Arc::new(own)), ..trust };
        // A key of another certificate is told now, and not at a handshake.
        match trust.built() {
            Ok(_) => Ok(trust),
            Err(error) => Err(format!("use {} as a client certificate: {}", file.display(), files::of_key(&error))),
        }
    }

    /// All authorities that are trusted, in PEM, for a client with a TLS of its own; none where these are those of the system.
    #[must_use]
    pub fn authorities(&self) -> Option<String> {
        let own = &self.verifier.authorities;
        let all = || rustls_native_certs::load_native_certs().certs.into_iter().chain(own.iter().cloned());
        (!own.is_empty()).then(|| all().map(|one| files::pem(&one)).collect())
    }

    /// The configuration of a client that trusts so.
    #[must_use]
    pub fn config(&self) -> ClientConfig {
        self.built().unwrap_or_else(|error| unreachable!("the certificate and its key were verified: {error}"))
    }

    fn built(&self) -> Result<ClientConfig, rustls::Error> {
        let provider = self.verifier.provider.clone();
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .dangerous()
            .with_custom_certificate_verifier(self.verifier.clone());
        match &self.own {
            Some(own) => builder.with_client_auth_cert(own.chain.clone(), own.key.clone_key()),
            None => Ok(builder.with_no_client_auth()),
        }
    }
}

/// Verifies certificates of servers: by a pin where there is one, else by authorities, names and dates.
#[derive(Debug)]
struct Verifier {
    provider: Arc<CryptoProvider>,
    authorities: Vec<CertificateDer<'static>>,
    settings: TrustSettings,
    by_authority: OnceLock<Result<Arc<WebPkiServerVerifier>, Distrust>>,
}

impl Verifier {
    fn new(authorities: Vec<CertificateDer<'static>>, settings: TrustSettings) -> Verifier {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        Verifier { provider, authorities, settings, by_authority: OnceLock::new() }
    }

    fn pins(&self, name: &ServerName<'_>) -> Option<&[Fingerprint]> {
        let host = name.to_str().to_ascii_lowercase();
        let all = || self.settings.pin.as_ref().map(std::slice::from_ref);
        self.settings.pins.get(&host).map(Vec::as_slice).or_else(all)
    }

    fn by_authority(&self) -> Result<&Arc<WebPkiServerVerifier>, Distrust> {
        self.by_authority.get_or_init(|| self.with_roots()).as_ref().map_err(Clone::clone)
    }

    fn with_roots(&self) -> Result<Arc<WebPkiServerVerifier>, Distrust> {
        let mut roots = RootCertStore::empty();
        let of_system = rustls_native_certs::load_native_certs();
        roots.add_parsable_certificates(of_system.certs);
        roots.add_parsable_certificates(self.authorities.iter().cloned());
        if roots.is_empty() {
            let errors: Vec<String> = of_system.errors.iter().map(ToString::to_string).collect();
            let why = if errors.is_empty() { String::new() } else { format!(" ({})", errors.join(", ")) };
            let hint =
                "install the package ca-certificates, or name a file of authorities in SSL_CERT_FILE or KELOS_CA";
            return Err(Distrust::new(format!("this machine has no authorities to trust{why}"), hint));
        }
        let built = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), self.provider.clone()).build();
        built.map_err(|error| Distrust::new(error.to_string(), "check the files of authorities"))
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let presented = Fingerprint::of(end_entity);
        if let Some(pins) = self.pins(server_name) {
            let key = Certificate::read(end_entity).map(|read| read.key);
            if pins.iter().any(|pin| *pin == presented || Some(*pin) == key) {
                return Ok(ServerCertVerified::assertion());
            }
            let pins: Vec<String> = pins.iter().map(ToString::to_string).collect();
            let reason = format!("its certificate is {presented}, and {} is pinned", pins.join(" or "));
            let hint = "pin the new one if it was replaced on purpose; else somebody may be in between";
            return Err(Distrust::new(reason, hint).into_error());
        }
        let told = |error| match &error {
            rustls::Error::InvalidCertificate(why) => {
                Distrust::of_certificate(why, server_name, &presented.to_string()).into_error()
            }
            _ => error,
        };
        // `openssl req -x509` makes an authority, which is no certificate of a server for the rules of the web.
        if self.authorities.iter().any(|own| own == end_entity) {
            return self_signed(end_entity, server_name, now).map_err(told);
        }
        let verifier = self.by_authority().map_err(Distrust::into_error)?;
        verifier.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now).map_err(told)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// Verifies the name and the dates of a certificate that is itself among the authorities.
fn self_signed(
    certificate: &CertificateDer<'_>,
    name: &ServerName<'_>,
    now: UnixTime,
) -> Result<ServerCertVerified, rustls::Error> {
    verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
    let read = Certificate::read(certificate).ok_or(CertificateError::BadEncoding)?;
    let unix = |at: Timestamp| {
        UnixTime::since_unix_epoch(Duration::from_secs(u64::try_from(at.as_second()).unwrap_or_default()))
    };
    let (not_before, not_after) = (unix(read.not_before), unix(read.not_after));
    if now > not_after {
        return Err(CertificateError::ExpiredContext { time: now, not_after }.into());
    }
    if now < not_before {
        return Err(CertificateError::NotValidYetContext { time: now, not_before }.into());
    }
    Ok(ServerCertVerified::assertion())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<TrustSettings, String> {
        TrustSettings::default().with_file(text)
    }

    #[test]
    fn settings_of_a_file() {
        let pin = format!("sha256:{}", "ab".repeat(32));
        let text = format!(
            r#"{{"tls": {{"ca": ["a.pem", "b.pem"], "pin": {{"Oozie.example": "{pin}", "::1": ["{pin}", "{pin}"]}}, "cert": "c", "key": "k"}}}}"#
        );
        let settings = read(&text).unwrap();
        assert_eq!(settings.authorities, [PathBuf::from("a.pem"), PathBuf::from("b.pem")]);
        assert_eq!(settings.pins["oozie.example"], [pin.parse().unwrap()]);
        assert_eq!(settings.pins["::1"].len(), 2);
        assert_eq!(settings.own, Some(("c".into(), "k".into())));
        assert_eq!(read("{}"), Ok(TrustSettings::default()));
    }

    #[test]
    fn other_settings_are_refused_with_what_was_expected() {
        for (text, why) in [
            (r#"{"tls": 1}"#, "\"tls\" is no object, expected"),
            (r#"{"tls": {"cas": "x"}}"#, "\"tls\" has \"cas\", expected ca, pin, cert or key"),
            (r#"{"tls": {"ca": [1]}}"#, "\"ca\" of \"tls\" is no text"),
            (r#"{"tls": {"pin": []}}"#, "\"pin\" of \"tls\" is no object, expected"),
            (r#"{"tls": {"pin": {"a": "x"}}}"#, "the pin of \"a\": \"x\" does not begin with sha256:"),
            (r#"{"tls": {"pin": {"a:443": "x"}}}"#, "a pin is for all ports of its host"),
            (r#"{"tls": {"cert": "x"}}"#, "expected both or none"),
        ] {
            let told = read(text).unwrap_err();
            assert!(told.contains(why), "{told}");
        }
    }
}
