//! The guard that keeps foreign web pages from sending requests to this server through a user's browser.
//!
//! There are two attacks: a foreign page sends a request here (the browser then adds its origin), or a foreign name
//! resolves to this machine (the request then carries that name). Programs such as curl do
//! neither, and need no extra header.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use kelos_tls::ServerCertificate;

use crate::fault::{Fault, is_native};

/// The host names that requests may be addressed to, and the server that they may be meant for. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Hosts {
    any: bool,
    names: Arc<[String]>,
    /// The address that other machines reach; the unspecified one stands for all of this machine.
    open: Option<IpAddr>,
    /// The certificate whose names count, too.
    certificate: Option<ServerCertificate>,
    instance: Option<Arc<str>>,
}

/// The header with the id of the server that a request is meant for: another server may have got its port. The id is stored beside
/// the database.
pub const INSTANCE: &str = "kelos-instance";

impl Hosts {
    /// Loopback names and addresses only.
    #[must_use]
    pub fn loopback() -> Hosts {
        Hosts { any: false, names: Arc::default(), open: None, certificate: None, instance: None }
    }

    /// The hosts for a listener: names of this machine and `names`, and its address where other machines can connect.
    #[must_use]
    pub fn for_bind(bound: SocketAddr, names: impl IntoIterator<Item = String>) -> Hosts {
        let names = names.into_iter().map(|name| name.trim_end_matches('.').to_ascii_lowercase()).collect();
        let open = Some(bound.ip().to_canonical()).filter(|ip| !ip.is_loopback());
        Hosts { names, open, ..Hosts::loopback() }
    }

    /// The same, and the names of the certificate that the server shows at the time of a request.
    #[must_use]
    pub fn with_certificate(self, certificate: Option<ServerCertificate>) -> Hosts {
        Hosts { certificate, ..self }
    }

    /// Any name, for a server that is not to be protected by names.
    #[must_use]
    pub fn or_any(self, any: bool) -> Hosts {
        Hosts { any, ..self }
    }

    /// The same, of the server with this name; without one, requests that are meant for a certain server are refused.
    #[must_use]
    pub fn of_instance(self, instance: Option<Arc<str>>) -> Hosts {
        Hosts { instance, ..self }
    }

    /// Whether a request may be addressed to `host`, which may carry a port.
    fn allow(&self, host: &str) -> bool {
        self.any || self.is_ours(host)
    }

    fn is_ours(&self, host: &str) -> bool {
        let name = without_port(host).trim_end_matches('.').to_ascii_lowercase();
        let address = name.trim_start_matches('[').trim_end_matches(']');
        name == "localhost" || address.parse().is_ok_and(|address| self.is_own_address(address)) || self.is_named(&name)
    }

    /// A page of another name can't take an address for its own, so that any of this machine will do.
    fn is_own_address(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_loopback() || self.open.is_some_and(|open| open.is_unspecified() || open == address)
    }

    /// Whether a name was configured, or is one of the certificate.
    fn is_named(&self, name: &str) -> bool {
        let is_of_certificate = |shown: &ServerCertificate| {
            let shown = shown.certificate();
            let matches = |known: &String| match (known.strip_prefix("*."), name.split_once('.')) {
                (Some(domain), Some((_, rest))) => domain.eq_ignore_ascii_case(rest),
                _ => known.eq_ignore_ascii_case(name.trim_start_matches('[').trim_end_matches(']')),
            };
            shown.names.iter().any(matches)
        };
        self.names.iter().any(|known| known == name) || self.certificate.as_ref().is_some_and(is_of_certificate)
    }
}

/// `localhost:8080` and `[::1]:8080` without the port.
fn without_port(host: &str) -> &str {
    match host.rfind(':') {
        Some(colon) if !host[colon..].contains(']') => &host[..colon],
        _ => host,
    }
}

/// Headers that decide whether a request is let through or in whose name it acts. More than one of a kind is refused:
/// the one that counts would be unclear.
const SINGLE: [&str; 6] = ["host", "origin", "sec-fetch-site", "kelos-user", "authorization", INSTANCE];

/// A request that is refused: the status, the kind of problem, and the reason.
type Refusal = (StatusCode, &'static str, String);

/// Lets a request through, or refuses it.
pub async fn check(State(hosts): State<Hosts>, request: Request, next: Next) -> Response {
    match refuse(&hosts, &request) {
        None => next.run(request).await,
        Some((status, code, why)) => {
            let fault = Fault::new(status, code, why);
            // A refused request gets no page, whatever its path.
            if is_native(request.uri().path()) { fault.into_response() } else { fault.text(status, fault.what.clone()) }
        }
    }
}

fn refuse(hosts: &Hosts, request: &Request) -> Option<Refusal> {
    let headers = request.headers();
    if let Some(name) = SINGLE.iter().find(|name| headers.get_all(**name).iter().nth(1).is_some()) {
        let why = format!("the header `{name}` is there more than once, expected it once at most");
        return Some((StatusCode::BAD_REQUEST, "bad-header", why));
    }
    let Some(host) = text(headers, header::HOST.as_str()) else {
        let why = "the header `Host` is missing, expected the name of this server".to_owned();
        return Some((StatusCode::BAD_REQUEST, "bad-header", why));
    };
    // A request may name its server twice, and the name in its first line counts.
    let named = request.uri().authority().map(|authority| authority.as_str());
    if let Some(host) = named.into_iter().chain([host]).find(|host| !hosts.allow(host)) {
        let why = format!(
            "this server does not answer to the host name \"{host}\", expected localhost, its address, a name of its certificate or one of --host"
        );
        return Some((StatusCode::FORBIDDEN, "unknown-host", why));
    }
    if text(headers, INSTANCE).is_some_and(|meant| hosts.instance.as_deref() != Some(meant)) {
        let why = "the request is meant for another server, which had this address before".to_owned();
        return Some((StatusCode::MISDIRECTED_REQUEST, "other-server", why));
    }
    if matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS) {
        return None;
    }
    let from = foreign_site(hosts, named.unwrap_or(host), headers)?;
    let why = format!("a web page of {from} may not change anything on this server");
    Some((StatusCode::FORBIDDEN, "cross-site", why))
}

/// The site whose page sent a request, unless it is this server's own page or no page at all.
fn foreign_site(hosts: &Hosts, host: &str, headers: &HeaderMap) -> Option<String> {
    let origin = text(headers, header::ORIGIN.as_str());
    let other = || origin.unwrap_or("another site").to_owned();
    if let Some(site) = text(headers, "sec-fetch-site") {
        return (!matches!(site, "same-origin" | "none")).then(other);
    }
    let authority = origin?.split_once("://").map(|(_, authority)| authority);
    let named = |authority: &str| hosts.is_named(&without_port(authority).to_ascii_lowercase());
    let own = authority.is_some_and(|from| from.eq_ignore_ascii_case(host) || named(from));
    (!own).then(other)
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).map(|value| value.to_str().unwrap_or("an unreadable name"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_names_with_and_without_port() {
        let hosts = Hosts::for_bind("127.0.0.1:80".parse().unwrap(), ["kelos.example".to_owned()]);
        for host in ["localhost", "LOCALHOST:8080", "127.0.0.1:1", "127.0.0.1", "[::1]:80", "[::1]", "kelos.example:80"]
        {
            assert!(hosts.allow(host), "{host}");
        }
        for host in ["evil.example", "localhost.evil.example", "10.0.0.1", "[::2]", "", "kelos.example.evil"] {
            assert!(!hosts.allow(host), "{host}");
        }
    }

    #[test]
    fn a_listener_for_other_machines_answers_to_its_addresses_and_names() {
        let allowed = |bound: &str, host: &str| {
            let hosts = Hosts::for_bind(bound.parse().unwrap(), ["Kelos.example.".to_owned()]);
            (hosts.allow(host), hosts.or_any(true).allow(host))
        };
        assert_eq!(allowed("0.0.0.0:80", "scheduler.example:80"), (false, true));
        assert_eq!(allowed("0.0.0.0:80", "10.0.0.7:80"), (true, true));
        assert_eq!(allowed("[::]:80", "[2001:db8::7]:80"), (true, true));
        assert_eq!(allowed("10.0.0.7:80", "10.0.0.7"), (true, true));
        assert_eq!(allowed("10.0.0.7:80", "10.0.0.8"), (false, true));
        assert_eq!(allowed("10.0.0.7:80", "kelos.example"), (true, true));
        assert_eq!(allowed("127.0.0.1:80", "10.0.0.7"), (false, true));
    }
}
