//! The connection to a server of mail, which is trusted as every other server is.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use kelos_tls::pki_types::ServerName;
use kelos_tls::{Trust, explain};
use lettre::transport::smtp::client::{AsyncSmtpConnection, AsyncTokioStream};
use lettre::transport::smtp::commands::Starttls;
use lettre::transport::smtp::extension::ClientId;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// A greeting, which servers don't repeat once a connection that they had greeted is encrypted.
const GREETING: &[u8] = b"220 encrypted\r\n";

/// A server that takes mail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MailServer {
    /// Its name or address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// The protection of what is sent.
    pub protection: Protection,
}

/// The protection of a connection to a server of mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protection {
    /// It is encrypted from the beginning.
    Tls,
    /// It is encrypted by `STARTTLS` before anything is sent; a server without it gets nothing.
    StartTls,
    /// None: the server is on this machine, or somebody chose it.
    Plain,
}

/// Connects, and says hello by a name. The message completes "failed to send mail by …:".
pub(super) async fn connect(server: &MailServer, name: &str, trust: &Trust) -> Result<AsyncSmtpConnection, String> {
    let stream = TcpStream::connect((server.host.as_str(), server.port)).await.map_err(|error| error.to_string())?;
    let hello = ClientId::Domain(name.to_owned());
    let stream: Box<dyn AsyncTokioStream> = match server.protection {
        Protection::Plain => Box::new(stream),
        Protection::Tls => Box::new(encrypted(stream, server, trust, &[]).await?),
        Protection::StartTls => {
            let stream = start_tls(stream, &hello).await?;
            Box::new(encrypted(stream, server, trust, GREETING).await?)
        }
    };
    AsyncSmtpConnection::connect_with_transport(stream, &hello).await.map_err(|error| error.to_string())
}

/// Asks a server to encrypt what follows.
async fn start_tls(stream: TcpStream, hello: &ClientId) -> Result<TcpStream, String> {
    let io = |error: io::Error| error.to_string();
    // The client keeps its end for itself, with all that it has read by then: nothing of that counts as encrypted.
    let stream = stream.into_std().map_err(io)?;
    let plain = TcpStream::from_std(stream.try_clone().map_err(io)?).map_err(io)?;
    let asked = AsyncSmtpConnection::connect_with_transport(Box::new(plain), hello).await;
    let mut asked = asked.map_err(|error| error.to_string())?;
    if !asked.can_starttls() {
        return Err("it does not offer STARTTLS; use smtps:// if it has a port for that".to_owned());
    }
    asked.command(Starttls).await.map_err(|error| error.to_string())?;
    TcpStream::from_std(stream).map_err(io)
}

async fn encrypted(
    stream: TcpStream,
    server: &MailServer,
    trust: &Trust,
    heard: &'static [u8],
) -> Result<EncryptedLine, String> {
    let name = ServerName::try_from(server.host.clone()).map_err(|error| error.to_string())?;
    let connected = TlsConnector::from(Arc::new(trust.config())).connect(name, stream).await;
    let words = |error: io::Error| explain(&error).map_or_else(|| error.to_string(), |distrust| distrust.to_string());
    Ok(EncryptedLine { heard, stream: connected.map_err(words)? })
}

/// An encrypted connection, on which something is heard first that came before.
#[derive(Debug)]
struct EncryptedLine {
    heard: &'static [u8],
    stream: TlsStream<TcpStream>,
}

impl AsyncTokioStream for EncryptedLine {
    fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.stream.get_ref().0.peer_addr()
    }
}

impl AsyncRead for EncryptedLine {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.heard.is_empty() {
            return Pin::new(&mut self.stream).poll_read(cx, buf);
        }
        let (now, later) = self.heard.split_at(self.heard.len().min(buf.remaining()));
        buf.put_slice(now);
        self.heard = later;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for EncryptedLine {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
