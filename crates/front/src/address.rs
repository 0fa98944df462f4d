//! The other end of a request, in its extensions: its address, and whether others can listen.

use std::net::IpAddr;

/// The address from which a request comes. Behind a proxy that the server trusts it is the one that the proxy names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientAddress {
    /// The address, an IPv4 one always as such.
    pub ip: IpAddr,
    /// The other end of the connection, which is the proxy if there is one.
    pub peer: IpAddr,
    /// Whether the request was encrypted on its way: on this server's port, or on that of a trusted proxy.
    pub is_secure: bool,
    /// Whether it comes from this machine, past any proxy.
    pub is_local: bool,
}

impl ClientAddress {
    /// The address of a connection that no proxy has made.
    #[must_use]
    pub fn direct(ip: IpAddr, is_secure: bool) -> ClientAddress {
        let ip = ip.to_canonical();
        ClientAddress { ip, peer: ip, is_secure, is_local: ip.is_loopback() }
    }
}
