//! The evidence that a node has of a client whose request it sends on to the leader: the address and the certificate are facts of a connection that
//! the leader has no part in, and its rules are about them.
//!
//! The evidence is signed with the key of sessions, for this one request and a minute. A leader with another key does not believe it, and
//! takes the node itself for the client, as it does for everybody who invents such a header.

use std::net::IpAddr;

use axum::http::{Extensions, HeaderName, HeaderValue, Method, Uri};
use jiff::{SignedDuration, Timestamp};
use kelos_tls::Fingerprint;
use kelos_trust::SessionKey;
use serde::{Deserialize, Serialize};

use crate::address::ClientAddress;
use crate::certificate::ClientCertificate;

/// The header with the evidence.
pub const EVIDENCE: HeaderName = HeaderName::from_static("kelos-client");
/// How far the clocks of two nodes may be apart, with the time that a request is on its way.
const LASTS: SignedDuration = SignedDuration::from_secs(60);
const PURPOSE: &str = "client of a node";

/// The account of a client that a node saw, as it is signed.
#[derive(Serialize, Deserialize)]
pub(crate) struct ClientEvidence {
    /// The method and the path of the request, with its query.
    request: String,
    at: Timestamp,
    ip: IpAddr,
    peer: IpAddr,
    is_secure: bool,
    is_local: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    certificate: Option<CertificateEvidence>,
}

#[derive(Serialize, Deserialize)]
struct CertificateEvidence {
    names: Vec<String>,
    fingerprint: String,
}

fn named(method: &Method, uri: &Uri) -> String {
    format!("{method} {}", uri.path_and_query().map_or("/", |rest| rest.as_str()))
}

impl ClientEvidence {
    /// The signed evidence about the client of a request; none where nothing is known of its connection.
    pub(crate) fn sign(
        key: &SessionKey,
        (method, uri): (&Method, &Uri),
        seen: &Extensions,
        now: Timestamp,
    ) -> Option<HeaderValue> {
        let ClientAddress { ip, peer, is_secure, is_local } = *seen.get()?;
        let certificate = seen.get::<ClientCertificate>().map(|shown| CertificateEvidence {
            names: shown.names.to_vec(),
            fingerprint: shown.fingerprint.to_string(),
        });
        let request = named(method, uri);
        let evidence = ClientEvidence { request, at: now, ip, peer, is_secure, is_local, certificate };
        HeaderValue::from_str(&key.seal(PURPOSE, &evidence)).ok()
    }

    /// The evidence in a header, if this key signed it for this request within the last minute.
    pub(crate) fn read(
        key: &SessionKey,
        (method, uri): (&Method, &Uri),
        header: &HeaderValue,
        now: Timestamp,
    ) -> Option<ClientEvidence> {
        let evidence: ClientEvidence = key.unseal(PURPOSE, header.to_str().ok()?)?;
        let is_fresh = now.duration_since(evidence.at).abs() < LASTS;
        (is_fresh && evidence.request == named(method, uri)).then_some(evidence)
    }

    /// Puts what the node saw in the place of the connection from the node.
    pub(crate) fn put(self, seen: &mut Extensions) {
        let ClientEvidence { ip, peer, is_secure, is_local, certificate, .. } = self;
        seen.insert(ClientAddress { ip, peer, is_secure, is_local });
        seen.remove::<ClientCertificate>();
        if let Some(CertificateEvidence { names, fingerprint }) = certificate
            && let Ok(fingerprint) = fingerprint.parse::<Fingerprint>()
        {
            seen.insert(ClientCertificate { names: names.into(), fingerprint });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen() -> Extensions {
        let mut seen = Extensions::new();
        let address = ClientAddress { is_secure: true, ..ClientAddress::direct([192, 0, 2, 7].into(), true) };
        seen.insert(address);
        let fingerprint = Fingerprint::of(b"abc");
        seen.insert(ClientCertificate { names: vec!["etl.example".to_owned()].into(), fingerprint });
        seen
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_700_000_000 + second).unwrap()
    }

    #[test]
    fn evidence_is_believed_for_one_request_and_a_minute_by_whoever_has_the_key() {
        let (key, other) = (SessionKey::draw().unwrap(), SessionKey::draw().unwrap());
        let uri: Uri = "/api/v1/facts?dry=1".parse().unwrap();
        let header = ClientEvidence::sign(&key, (&Method::POST, &uri), &seen(), at(0)).unwrap();
        let read = |key, method: &Method, uri: &str, second| {
            ClientEvidence::read(key, (method, &uri.parse().unwrap()), &header, at(second))
        };

        let mut found = Extensions::new();
        found.insert(ClientAddress::direct([10, 0, 0, 2].into(), false));
        read(&key, &Method::POST, "/api/v1/facts?dry=1", 59).unwrap().put(&mut found);
        assert_eq!(found.get::<ClientAddress>(), seen().get::<ClientAddress>());
        assert_eq!(found.get::<ClientCertificate>(), seen().get::<ClientCertificate>());

        assert!(read(&key, &Method::POST, "/api/v1/facts?dry=1", -59).is_some(), "clocks may be apart");
        assert!(read(&key, &Method::POST, "/api/v1/facts?dry=1", 61).is_none());
        assert!(read(&key, &Method::POST, "/api/v1/facts", 0).is_none());
        assert!(read(&key, &Method::PUT, "/api/v1/facts?dry=1", 0).is_none());
        assert!(read(&other, &Method::POST, "/api/v1/facts?dry=1", 0).is_none());
        let forged = HeaderValue::from_static("eyJpcCI6IjEuMi4zLjQifQ.AAAA");
        assert!(ClientEvidence::read(&key, (&Method::POST, &uri), &forged, at(0)).is_none());
        assert!(ClientEvidence::sign(&key, (&Method::POST, &uri), &Extensions::new(), at(0)).is_none());
    }

    #[test]
    fn a_client_without_a_certificate_has_none_of_the_nodes() {
        let key = SessionKey::draw().unwrap();
        let mut plain = seen();
        plain.remove::<ClientCertificate>();
        let uri = Uri::from_static("/");
        let header = ClientEvidence::sign(&key, (&Method::GET, &uri), &plain, at(0)).unwrap();
        let mut found = seen();
        ClientEvidence::read(&key, (&Method::GET, &uri), &header, at(1)).unwrap().put(&mut found);
        assert!(found.get::<ClientCertificate>().is_none());
    }
}
