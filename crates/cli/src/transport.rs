//! Options of a server that are about how it is reached: its certificate, and who may see it.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use kelos_front::{Hosts, TrustedProxies};
use kelos_tls::{ServerCertificate, ServerFiles};

use crate::failure::Failure;

/// The options of how a server is reached.
#[derive(Clone, Default, clap::Args)]
#[command(next_help_heading = "Transport")]
pub(crate) struct TransportOptions {
    /// File of the certificate to show, with those up to its authority, in PEM; the server speaks HTTPS then. The file
    /// is read again when it changes
    #[arg(long, value_name = "FILE", requires = "tls_key", value_hint = clap::ValueHint::FilePath)]
    tls_cert: Option<PathBuf>,
    /// File of the certificate's private key
    #[arg(long, value_name = "FILE", requires = "tls_cert", value_hint = clap::ValueHint::FilePath)]
    tls_key: Option<PathBuf>,
    /// File of authorities whose client certificates are accepted; a client may come without one
    #[arg(long, value_name = "FILE", requires = "tls_cert", value_hint = clap::ValueHint::FilePath)]
    tls_client_ca: Option<PathBuf>,
    /// Networks of proxies that speak TLS in front of the server: its clients are those that X-Forwarded-For and
    /// X-Forwarded-Proto name, and requests that come past the proxies are refused, except those of this machine
    #[arg(long, value_name = "CIDR", value_delimiter = ',')]
    trusted_proxy: Vec<String>,
    /// Name that requests may be addressed to, beside localhost, --bind and the names of the certificate
    #[arg(long, value_name = "NAME")]
    host: Vec<String>,
    /// Let other machines in without TLS or authentication, and by any name unless --host is given. Anyone who can reach
    /// the port can then do everything
    #[arg(long)]
    insecure: bool,
}

/// The way in which a server is reached, once the options are read.
#[derive(Clone, Default)]
pub(crate) struct Reach {
    /// The certificate that it shows, if it speaks TLS.
    pub(crate) certificate: Option<ServerCertificate>,
    /// The proxies before it.
    pub(crate) proxies: Option<TrustedProxies>,
    names: Vec<String>,
    any_name: bool,
    is_unprotected: bool,
}

impl Reach {
    /// Tells the log that others may come in unprotected, if so.
    pub(crate) fn warn(&self, bound: SocketAddr) {
        if self.is_unprotected {
            tracing::warn!("other machines reach {bound} without TLS or without authentication, because of --insecure");
        }
    }

    /// The hosts that requests to a socket may be addressed to.
    pub(crate) fn hosts(&self, bound: SocketAddr) -> Hosts {
        let hosts = Hosts::for_bind(bound, self.names.clone()).with_certificate(self.certificate.clone());
        hosts.or_any(self.any_name)
    }
}

impl TransportOptions {
    /// The first of these options that is used.
    pub(crate) fn first(&self) -> Option<&'static str> {
        let used = [
            ("--tls-cert", self.tls_cert.is_some()),
            ("--trusted-proxy", !self.trusted_proxy.is_empty()),
            ("--host", !self.host.is_empty()),
            ("--insecure", self.insecure),
        ];
        used.into_iter().find_map(|(name, is_used)| is_used.then_some(name))
    }

    /// Reads the options, and refuses to open the server to others if it is not protected.
    pub(crate) fn reach(&self, bind: IpAddr, has_authentication: bool) -> Result<Reach, Failure> {
        let named = self.trusted_proxy.iter().map(String::as_str);
        let proxies = (!self.trusted_proxy.is_empty()).then(|| TrustedProxies::parse(named)).transpose();
        let proxies = proxies.map_err(|why| Failure::usage(format!("use --trusted-proxy: {why}")))?;
        self.host.iter().try_for_each(|name| check_host(name))?;
        let certificate = self.certificate()?;
        // A proxy on this machine lets others in as well.
        let is_open = !bind.is_loopback() || proxies.is_some();
        let has_tls = certificate.is_some() || proxies.is_some();
        let protected = if is_open { exposure(bind, has_tls, has_authentication) } else { Ok(()) };
        let is_unprotected = protected.is_err();
        if !self.insecure {
            protected?;
        }
        let any_name = self.insecure && is_open && self.host.is_empty();
        Ok(Reach { certificate, proxies, names: self.host.clone(), any_name, is_unprotected })
    }

    /// Reads the certificate, if the server is to have one.
    fn certificate(&self) -> Result<Option<ServerCertificate>, Failure> {
        let (Some(certificate), Some(key)) = (&self.tls_cert, &self.tls_key) else { return Ok(None) };
        let files = ServerFiles {
            certificate: whole(certificate)?,
            key: whole(key)?,
            client_authorities: self.tls_client_ca.as_deref().map(whole).transpose()?,
        };
        ServerCertificate::open(files).map(Some).map_err(Failure::usage)
    }
}

/// Refuses to let other machines in without TLS or without authentication.
fn exposure(bind: IpAddr, has_tls: bool, has_authentication: bool) -> Result<(), Failure> {
    let lacks = match (has_tls, has_authentication) {
        (true, true) => return Ok(()),
        (false, true) => "TLS",
        (true, false) => "authentication",
        (false, false) => "TLS and without authentication",
    };
    let failure = Failure::usage(format!("let other machines reach {bind}: the server is without {lacks}"));
    let ways = [
        (has_tls, "--tls-cert and --tls-key give it TLS, --trusted-proxy leaves that to a proxy"),
        (has_authentication, "--auth asks everybody for a credential"),
        (false, "--insecure lets anyone who can reach the port do everything"),
    ];
    let ways: Vec<&str> = ways.into_iter().filter(|(is_there, _)| !is_there).map(|(_, way)| way).collect();
    Err(failure.hint(ways.join("; ")))
}

/// Refuses what can't be a name of a server.
fn check_host(name: &str) -> Result<(), Failure> {
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    let is_name = |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-._".contains(c));
    if bare.parse::<IpAddr>().is_ok() || is_name(name) {
        return Ok(());
    }
    Err(Failure::usage(format!("use --host {name}: expected a name such as kelos.example, without scheme and port")))
}

/// The whole path of a file, because it is read again when this process is in another folder.
fn whole(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path).map_err(|error| Failure::usage(format!("find {}: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        options: TransportOptions,
    }

    fn reach(bind: &str, has_authentication: bool, args: &[&str]) -> Result<Reach, (String, String)> {
        let line = Line::try_parse_from([&["kelos"], args].concat()).expect("options");
        let reach = line.options.reach(bind.parse().expect("an address"), has_authentication);
        reach.map_err(|failure| (failure.message, failure.hint.unwrap_or_default()))
    }

    #[test]
    fn other_machines_are_let_in_over_tls_and_with_authentication() {
        assert!(reach("127.0.0.1", false, &[]).is_ok() && reach("::1", false, &[]).is_ok());
        for (authenticated, args, lacks) in [
            (false, &[][..], Some("TLS and without authentication")),
            (true, &[], Some("TLS")),
            (false, &["--trusted-proxy", "10.0.0.0/8"], Some("authentication")),
            (true, &["--trusted-proxy", "10.0.0.0/8,fd00::/8"], None),
            (false, &["--insecure"], None),
        ] {
            let told = reach("0.0.0.0", authenticated, args).err().map(|(message, hint)| {
                let lacks = |what| lacks.is_some_and(|lacks| lacks.contains(what));
                let ways = ["--tls-cert", "--auth", "--insecure"].map(|way| hint.contains(way));
                assert_eq!(ways, [lacks("TLS"), lacks("authentication"), true], "{hint}");
                message
            });
            let expected =
                lacks.map(|lacks| format!("let other machines reach 0.0.0.0: the server is without {lacks}"));
            assert_eq!(told, expected, "{args:?}");
        }
        // A proxy on this machine lets others in, too.
        assert!(reach("127.0.0.1", false, &["--trusted-proxy", "127.0.0.1"]).is_err());
    }

    #[test]
    fn any_name_will_do_only_where_nothing_is_protected() {
        let allows = |bind: &str, args: &[&str]| {
            let reach = reach(bind, true, args).expect("options");
            reach.any_name
        };
        assert!(allows("0.0.0.0", &["--insecure"]));
        assert!(!allows("0.0.0.0", &["--insecure", "--host", "kelos.example"]));
        assert!(!allows("0.0.0.0", &["--trusted-proxy", "10.0.0.1"]));
        assert!(!allows("127.0.0.1", &["--insecure"]));
    }

    #[test]
    fn texts_that_are_no_names_and_networks_are_refused() {
        for (args, why) in [
            (["--host", "https://kelos.example"], "expected a name such as kelos.example, without scheme and port"),
            (["--host", "kelos.example:7437"], "expected a name such as kelos.example"),
            (["--trusted-proxy", "proxy"], "use --trusted-proxy: \"proxy\" is no network, expected an address"),
        ] {
            let (told, _) = reach("127.0.0.1", true, &args).err().expect("a failure");
            assert!(told.contains(why), "{told}");
        }
        assert!(reach("127.0.0.1", true, &["--host", "[::1]", "--host", "kelos.example"]).is_ok());
    }
}
