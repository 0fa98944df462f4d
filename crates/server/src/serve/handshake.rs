//! The beginning of a TLS connection.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use kelos_front::ClientCertificate;
use kelos_tls::{ServerConfig, explain};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// The first byte of every TLS connection: a record with a part of a handshake.
const HANDSHAKE: u8 = 22;
/// How long a client without TLS gets to take its answer.
const PARTING: Duration = Duration::from_secs(1);
/// Most bytes of a request without TLS that are taken before the connection is closed.
const MOST_TAKEN: usize = 64 << 10;

/// An encrypted connection with the certificate of the client, if it has shown one. None if there was no handshake within the limit:
/// a client that speaks plain HTTP has been told so by then.
pub(super) async fn shake_hands(
    stream: TcpStream,
    config: Arc<ServerConfig>,
    limit: Duration,
) -> Option<(TlsStream<TcpStream>, Option<ClientCertificate>)> {
    let shaken = async {
        let mut first = [0];
        match stream.peek(&mut first).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ if first == [HANDSHAKE] => TlsAcceptor::from(config).accept(stream).await,
            _ => Err(refuse_plain(stream).await),
        }
    };
    let stream = match tokio::time::timeout(limit, shaken).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => {
            let why = explain(&error).map_or_else(|| error.to_string(), |distrust| distrust.reason);
            tracing::debug!("a connection ended at its handshake: {why}");
            return None;
        }
        Err(_) => {
            tracing::debug!("a handshake took longer than {} ms", limit.as_millis());
            return None;
        }
    };
    let shown = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
    let certificate = shown.and_then(|shown| ClientCertificate::read(shown));
    Some((stream, certificate))
}

/// Tells a client of plain HTTP what this port speaks. Its request is taken, as far as it has come: closing the connection with
/// bytes unread would lose the answer.
async fn refuse_plain(mut stream: TcpStream) -> io::Error {
    const ANSWER: &[u8] = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Type: text/plain\r\n\
        Content-Length: 55\r\n\r\nfailed to answer: this port speaks HTTPS, use https://\n";
    let parting = async {
        let mut taken = [0; 4096];
        let mut all = stream.read(&mut taken).await?;
        stream.write_all(ANSWER).await?;
        stream.shutdown().await?;
        while all < MOST_TAKEN {
            match stream.read(&mut taken).await? {
                0 => break,
                more => all += more,
            }
        }
        Ok::<(), io::Error>(())
    };
    let _ = tokio::time::timeout(PARTING, parting).await;
    io::Error::new(io::ErrorKind::InvalidData, "it speaks no TLS")
}
