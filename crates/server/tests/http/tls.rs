//! TLS over a real port: who trusts whom, what is told to those who don't, and certificates that are replaced.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::routing::get;
use futures_util::stream::{self, StreamExt};
use kelos_front::{ClientAddress, ClientCertificate};
use kelos_server::{Limits, Transport};
use kelos_tls::pki_types::ServerName;
use kelos_tls::{Change, Distrust, Fingerprint, ServerCertificate, ServerFiles, Trust, TrustSettings, explain};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair, SanType,
    date_time_ymd,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::support::PATIENCE;

/// An authority, and a folder with the files of what it has issued.
struct Authority {
    dir: tempfile::TempDir,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Authority {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "the authority");
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("ca.pem"), issuer.pem()).unwrap();
        Authority { dir, issuer }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Issues a certificate in `NAME.pem`, with its key in `NAME-key.pem`; gives its fingerprint.
    fn issue(&self, name: &str, params: CertificateParams) -> Fingerprint {
        let key = KeyPair::generate().unwrap();
        let issued = params.signed_by(&key, &self.issuer).unwrap();
        self.put(&format!("{name}.pem"), &issued.pem());
        self.put(&format!("{name}-key.pem"), &key.serialize_pem());
        Fingerprint::of(issued.der())
    }

    /// Replaces a file at once.
    fn put(&self, name: &str, text: &str) {
        let beside = self.file("beside");
        std::fs::write(&beside, text).unwrap();
        std::fs::rename(beside, self.file(name)).unwrap();
    }

    fn server_files(&self, client_authorities: Option<&Path>) -> ServerFiles {
        let client_authorities = client_authorities.map(Path::to_owned);
        ServerFiles { certificate: self.file("server.pem"), key: self.file("server-key.pem"), client_authorities }
    }

    fn trusted(&self) -> TrustSettings {
        TrustSettings { authorities: vec![self.file("ca.pem")], ..TrustSettings::default() }
    }

    fn trusted_with(&self, own: &Authority, name: &str) -> TrustSettings {
        let own = (own.file(&format!("{name}.pem")), own.file(&format!("{name}-key.pem")));
        TrustSettings { own: Some(own), ..self.trusted() }
    }
}

fn named(names: &[&str]) -> CertificateParams {
    CertificateParams::new(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()).unwrap()
}

fn of_client(name: &str) -> CertificateParams {
    let mut params = named(&[]);
    params.distinguished_name.push(DnType::CommonName, name);
    params.subject_alt_names.push(SanType::URI(format!("spiffe://team/{name}").as_str().try_into().unwrap()));
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    params
}

/// A server with a certificate of the authority for `localhost`.
struct Secure {
    address: SocketAddr,
    shown: ServerCertificate,
    authority: Authority,
}

const LIMITS: Limits =
    Limits { connections: 16, connections_per_address: 16, head: PATIENCE, body: PATIENCE, stall: PATIENCE };

impl Secure {
    async fn start() -> Secure {
        Secure::with(named(&["localhost"]), None, LIMITS).await
    }

    async fn with(params: CertificateParams, client_authorities: Option<&Path>, limits: Limits) -> Secure {
        let authority = Authority::new();
        authority.issue("server", params);
        let shown = ServerCertificate::open(authority.server_files(client_authorities)).unwrap();
        let ticks = || async {
            let tick = |n| Ok::<_, Infallible>(Bytes::from(format!("tick {n}\n")));
            Body::from_stream(stream::iter(0..1).map(tick).chain(stream::pending()))
        };
        let router = Router::new().route("/who", get(who)).route("/stream", get(ticks));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let transport = Transport { certificate: Some(shown.clone()), ..limits.into() };
        tokio::spawn(kelos_server::serve(listener, router, transport, std::future::pending()));
        Secure { address, shown, authority }
    }

    async fn connect(&self, trust: TrustSettings) -> Result<TlsStream<TcpStream>, Distrust> {
        let connector = TlsConnector::from(Arc::new(Trust::new(trust).unwrap().config()));
        let stream = TcpStream::connect(self.address).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let shaken = timeout(PATIENCE, connector.connect(name, stream)).await.unwrap();
        shaken.map_err(|error| explain(&error).unwrap_or_else(|| panic!("another error: {error}")))
    }

    async fn distrusted(&self, trust: TrustSettings) -> Distrust {
        match self.connect(trust).await {
            Ok(_) => panic!("it was trusted"),
            Err(distrust) => distrust,
        }
    }
}

/// The facts that the server knows of the other end.
async fn who(request: Request) -> String {
    let client = request.extensions().get::<ClientAddress>().unwrap();
    let shown = request.extensions().get::<ClientCertificate>();
    let shown =
        shown.map_or_else(|| "nobody".to_owned(), |shown| format!("{} {}", shown.names.join(" "), shown.fingerprint));
    format!("{} {} {shown}.", client.ip, if client.is_secure { "secure" } else { "open" })
}

async fn ask(stream: &mut TlsStream<TcpStream>, path: &str, last: &str) -> Result<String, Distrust> {
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let mut answer = Vec::new();
    let told = async {
        stream.write_all(request.as_bytes()).await?;
        while !answer.ends_with(last.as_bytes()) && stream.read_buf(&mut answer).await? > 0 {}
        Ok::<(), std::io::Error>(())
    };
    timeout(PATIENCE, told).await.unwrap().map_err(|error| explain(&error).unwrap_or_else(|| panic!("{error}")))?;
    Ok(String::from_utf8(answer).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_authority_of_ones_own_is_trusted_and_a_stranger_is_not() {
    let server = Secure::start().await;
    let mut stream = server.connect(server.authority.trusted()).await.unwrap();
    let answer = ask(&mut stream, "/who", "nobody.").await.unwrap();
    assert!(answer.ends_with("127.0.0.1 secure nobody."), "{answer}");
    // The connection is kept, as it is without TLS.
    assert!(ask(&mut stream, "/who", "nobody.").await.unwrap().starts_with("HTTP/1.1 200 OK"));
    let why = server.distrusted(Authority::new().trusted()).await;
    assert_eq!(why.reason, "its certificate is signed by no authority that is trusted here");
    let presented = server.shown.certificate().fingerprint.to_string();
    assert!(why.hint.contains("--ca FILE") && why.hint.contains(&presented), "{}", why.hint);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_for_others_or_of_the_past_is_refused_with_what_it_says() {
    let server = Secure::with(named(&["kelos.example", "etl.example"]), None, LIMITS).await;
    let why = server.distrusted(server.authority.trusted()).await;
    assert_eq!(why.reason, "its certificate is for kelos.example, etl.example, and not for localhost");
    let mut params = named(&["localhost"]);
    params.not_before = date_time_ymd(2020, 1, 1);
    params.not_after = date_time_ymd(2021, 1, 1);
    let server = Secure::with(params, None, LIMITS).await;
    let why = server.distrusted(server.authority.trusted()).await;
    assert_eq!(why.reason, "its certificate expired at 2021-01-01T00:00:00Z");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pin_counts_in_place_of_an_authority() {
    let server = Secure::with(named(&["kelos.example"]), None, LIMITS).await;
    let shown = server.shown.certificate();
    for pin in [shown.fingerprint, shown.key] {
        let pinned = TrustSettings { pin: Some(pin), ..TrustSettings::default() };
        assert!(server.connect(pinned).await.is_ok());
    }
    let other = Fingerprint::of(b"another");
    // The pin of a host counts more than its authority.
    let pins = [("localhost".to_owned(), vec![other])].into();
    let why = server.distrusted(TrustSettings { pins, ..server.authority.trusted() }).await;
    assert_eq!(why.reason, format!("its certificate is {}, and {other} is pinned", shown.fingerprint));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_self_signed_certificate_is_its_own_authority() {
    let server = Secure::start().await;
    let mut params = named(&["localhost"]);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    server.authority.put("server.pem", &params.self_signed(&key).unwrap().pem());
    server.authority.put("server-key.pem", &key.serialize_pem());
    assert_eq!(server.shown.look(), Change::Renewed);
    let own = vec![server.authority.file("server.pem")];
    assert!(server.connect(TrustSettings { authorities: own, ..TrustSettings::default() }).await.is_ok());
    assert!(server.distrusted(server.authority.trusted()).await.hint.contains("--ca FILE"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_is_replaced_while_a_stream_goes_on() {
    let server = Secure::start().await;
    let first = server.shown.certificate().fingerprint;
    let mut stream = server.connect(server.authority.trusted()).await.unwrap();
    assert!(ask(&mut stream, "/stream", "tick 0\n\r\n").await.unwrap().starts_with("HTTP/1.1 200 OK"));
    let second = server.authority.issue("server", named(&["localhost"]));
    // The server looks by itself, too, and one of both is first.
    while server.shown.look() != Change::None {}
    assert_eq!(server.shown.certificate().fingerprint, second);
    let pinned = |pin| TrustSettings { pin: Some(pin), ..TrustSettings::default() };
    assert!(server.connect(pinned(second)).await.is_ok());
    assert!(server.distrusted(pinned(first)).await.reason.ends_with("is pinned"));
    // The stream of before is open still.
    let silence = timeout(Duration::from_millis(50), stream.read(&mut [0; 16])).await;
    assert!(silence.is_err(), "{silence:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn client_certificates_are_facts_where_they_are_verified() {
    let clients = Authority::new();
    let fingerprint = clients.issue("loader", of_client("loader"));
    let server = Secure::with(named(&["localhost"]), Some(&clients.file("ca.pem")), LIMITS).await;
    let trusted = || server.authority.trusted_with(&clients, "loader");
    let mut stream = server.connect(trusted()).await.unwrap();
    let answer = ask(&mut stream, "/who", ".").await.unwrap();
    assert!(answer.ends_with(&format!("secure spiffe://team/loader loader {fingerprint}.")), "{answer}");
    // Without one, a client is nobody in particular.
    let mut stream = server.connect(server.authority.trusted()).await.unwrap();
    assert!(ask(&mut stream, "/who", "nobody.").await.unwrap().ends_with("secure nobody."));
    let strangers = Authority::new();
    strangers.issue("loader", of_client("loader"));
    let trust = server.authority.trusted_with(&strangers, "loader");
    // In TLS 1.3 the client hears of it with the first answer.
    let why = match server.connect(trust).await {
        Ok(mut stream) => ask(&mut stream, "/who", ".").await.unwrap_err(),
        Err(why) => why,
    };
    assert!(why.reason.starts_with("it does not accept the client certificate"), "{}", why.reason);
    let mut past = of_client("loader");
    (past.not_before, past.not_after) = (date_time_ymd(2020, 1, 1), date_time_ymd(2021, 1, 1));
    clients.issue("loader", past);
    let why = match server.connect(trusted()).await {
        Ok(mut stream) => ask(&mut stream, "/who", ".").await.unwrap_err(),
        Err(why) => why,
    };
    assert_eq!(why.reason, "it does not accept the client certificate: it has expired");
}

#[tokio::test(flavor = "multi_thread")]
async fn plain_http_is_told_what_the_port_speaks() {
    let server = Secure::start().await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(b"GET /who HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    timeout(PATIENCE, stream.read_to_string(&mut answer)).await.unwrap().unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 400") && head.contains(&format!("Content-Length: {}", body.len())), "{answer}");
    assert_eq!(body, "failed to answer: this port speaks HTTPS, use https://\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handshake_that_does_not_end_is_given_up_and_makes_room_for_others() {
    let soon = Limits { head: Duration::from_millis(20), ..LIMITS };
    let server = Secure::with(named(&["localhost"]), None, soon).await;
    let is_closed = async |stream: &mut TcpStream| {
        matches!(timeout(PATIENCE, stream.read(&mut [0; 64])).await.unwrap(), Ok(0) | Err(_))
    };
    for begun in [&b""[..], &[22, 3, 1, 1, 0]] {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all(begun).await.unwrap();
        assert!(is_closed(&mut stream).await);
    }
    let few = Limits { connections: 2, ..LIMITS };
    let server = Secure::with(named(&["localhost"]), None, few).await;
    let mut silent = TcpStream::connect(server.address).await.unwrap();
    let _other = TcpStream::connect(server.address).await.unwrap();
    let mut stream = server.connect(server.authority.trusted()).await.unwrap();
    assert!(ask(&mut stream, "/who", "nobody.").await.unwrap().starts_with("HTTP/1.1 200 OK"));
    assert!(is_closed(&mut silent).await);
    // Where all are busy, one more is let go, without an answer that it could not read.
    let stream_of = async |server: &Secure| {
        let mut stream = server.connect(server.authority.trusted()).await.unwrap();
        ask(&mut stream, "/stream", "tick 0\n\r\n").await.unwrap();
        stream
    };
    drop(stream);
    let _busy = (stream_of(&server).await, stream_of(&server).await);
    let mut late = TcpStream::connect(server.address).await.unwrap();
    assert!(is_closed(&mut late).await);
}
