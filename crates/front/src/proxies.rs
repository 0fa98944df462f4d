//! Proxies in front of a server: which are believed, and what they say of their clients.

use std::net::IpAddr;
use std::sync::Arc;

use axum::http::{HeaderMap, StatusCode};
use ipnet::IpNet;

use crate::address::ClientAddress;
use crate::fault::Fault;

/// The header with the addresses of clients, the last of them added by the nearest proxy.
const FOR: &str = "x-forwarded-for";
/// The header with the scheme that the client used.
const PROTO: &str = "x-forwarded-proto";

/// The networks of proxies that speak TLS with clients in place of the server. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustedProxies(Arc<[IpNet]>);

impl TrustedProxies {
    /// The proxies of these networks, each an address or `ADDRESS/BITS`.
    ///
    /// # Errors
    /// The text that is no network, and what was expected; also when there is none.
    pub fn parse<'a>(networks: impl IntoIterator<Item = &'a str>) -> Result<TrustedProxies, String> {
        const EXPECTED: &str = "expected an address or a network such as 10.0.0.0/8 or fd00::/8";
        let network = |text: &'a str| {
            let address = text.parse::<IpAddr>().map(IpNet::from);
            address.or_else(|_| text.parse::<IpNet>()).map_err(|_| format!("\"{text}\" is no network, {EXPECTED}"))
        };
        let all = networks.into_iter().map(|text| network(text.trim())).collect::<Result<Vec<IpNet>, String>>()?;
        if all.is_empty() { Err(EXPECTED.to_owned()) } else { Ok(TrustedProxies(all.into())) }
    }

    /// Whether an address is that of a trusted proxy.
    #[must_use]
    pub fn include(&self, ip: IpAddr) -> bool {
        let ip = ip.to_canonical();
        self.0.iter().any(|network| network.contains(&ip))
    }

    /// The client behind a request that came over a connection: the one that the proxy names, or a client of this machine that comes
    /// past it.
    ///
    /// # Errors
    /// When the connection is neither, or the proxy names no address.
    pub fn client(&self, connection: ClientAddress, headers: &HeaderMap) -> Result<ClientAddress, Fault> {
        if !self.include(connection.ip) {
            let why =
                format!("{} is no proxy of this server, which answers requests of its proxies alone", connection.ip);
            return if connection.is_local { Ok(connection) } else { Err(refusal(why)) };
        }
        let is_secure = last(headers, PROTO).is_none_or(|scheme| scheme.eq_ignore_ascii_case("https"));
        let ip = self.named(headers)?.unwrap_or(connection.ip);
        Ok(ClientAddress { ip, is_secure, is_local: false, ..connection })
    }

    /// The nearest address that is no trusted proxy's, or the farthest if all are; none where none is named. What is farther than that
    /// may be anybody's invention.
    fn named(&self, headers: &HeaderMap) -> Result<Option<IpAddr>, Fault> {
        let mut farthest = None;
        for value in headers.get_all(FOR).iter().rev() {
            for text in value.to_str().unwrap_or("?").rsplit(',') {
                let ip = address(text.trim()).ok_or_else(|| {
                    let why = format!(
                        "the header `X-Forwarded-For` of the proxy has \"{}\", expected an address",
                        text.trim()
                    );
                    Fault::new(StatusCode::BAD_REQUEST, "bad-header", why)
                })?;
                if !self.include(ip) {
                    return Ok(Some(ip));
                }
                farthest = Some(ip);
            }
        }
        Ok(farthest)
    }
}

fn refusal(why: String) -> Fault {
    Fault::new(StatusCode::FORBIDDEN, "not-through-proxy", why)
}

fn last<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get_all(name).iter().next_back()?.to_str().ok()?.rsplit(',').next().map(str::trim)
}

/// An address, also with a port and in brackets.
fn address(text: &str) -> Option<IpAddr> {
    let with_port = || text.parse::<std::net::SocketAddr>().ok().map(|address| address.ip());
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    bare.parse().ok().or_else(with_port).map(|ip: IpAddr| ip.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxies() -> TrustedProxies {
        TrustedProxies::parse(["10.0.0.0/8", "127.0.0.1", "fd00::/8"]).unwrap()
    }

    fn seen(connection: &str, headers: &[(&'static str, &str)]) -> Result<(String, bool, bool), String> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        let connection = ClientAddress::direct(connection.parse().unwrap(), false);
        let client = proxies().client(connection, &map).map_err(|fault| fault.what)?;
        Ok((client.ip.to_string(), client.is_secure, client.is_local))
    }

    #[test]
    fn the_nearest_address_that_is_no_proxys_is_the_client() {
        let client = |headers: &[(&'static str, &str)]| seen("10.0.0.1", headers).unwrap();
        assert_eq!(client(&[(FOR, "192.0.2.7")]), ("192.0.2.7".to_owned(), true, false));
        // The first one was sent by the client itself.
        assert_eq!(client(&[(FOR, "1.2.3.4, 192.0.2.7, 10.9.9.9")]).0, "192.0.2.7");
        assert_eq!(client(&[(FOR, "1.2.3.4"), (FOR, "192.0.2.7")]).0, "192.0.2.7");
        assert_eq!(client(&[(FOR, "[2001:db8::7]:4000")]).0, "2001:db8::7");
        assert_eq!(client(&[(FOR, "10.1.1.1, 10.2.2.2")]).0, "10.1.1.1");
        // A check of the proxy's own.
        assert_eq!(client(&[]).0, "10.0.0.1");
    }

    #[test]
    fn the_proxy_says_whether_the_client_used_tls() {
        assert!(!seen("10.0.0.1", &[(PROTO, "http")]).unwrap().1);
        assert!(seen("10.0.0.1", &[(PROTO, "http, HTTPS")]).unwrap().1);
    }

    #[test]
    fn what_others_say_does_not_count() {
        let told = seen("192.0.2.7", &[(FOR, "10.0.0.1")]).unwrap_err();
        assert_eq!(told, "192.0.2.7 is no proxy of this server, which answers requests of its proxies alone");
        assert_eq!(seen("::1", &[(FOR, "192.0.2.7")]), Ok(("::1".to_owned(), false, true)));
        // A proxy on this machine makes nobody local.
        assert_eq!(seen("127.0.0.1", &[]), Ok(("127.0.0.1".to_owned(), true, false)));
        let told = seen("10.0.0.1", &[(FOR, "unknown")]).unwrap_err();
        assert_eq!(told, "the header `X-Forwarded-For` of the proxy has \"unknown\", expected an address");
    }

    #[test]
    fn networks_are_told_from_other_texts() {
        let told = TrustedProxies::parse(["10.0.0.0/33"]).unwrap_err();
        assert_eq!(
            told,
            "\"10.0.0.0/33\" is no network, expected an address or a network such as 10.0.0.0/8 or fd00::/8"
        );
        assert!(TrustedProxies::parse(["proxy.example"]).is_err());
        assert!(TrustedProxies::parse([]).is_err());
    }
}
