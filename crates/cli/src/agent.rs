//! The HTTP client of commands: plain, or over TLS with the trust that was asked for.

use std::fmt;
use std::io::{Read, Write};
use std::sync::Arc;

use kelos_tls::pki_types::ServerName;
use kelos_tls::{ClientConfig, ClientConnection, Distrust, StreamOwned, Trust, explain};
use ureq::config::Config;
use ureq::unversioned::resolver::DefaultResolver;
use ureq::unversioned::transport::{
    Buffers, ConnectProxyConnector, ConnectionDetails, Connector, Either, LazyBuffers, NextTimeout, TcpConnector,
    Transport, TransportAdapter,
};
use ureq::{Agent, Error};

/// An agent that trusts servers of `https://` so; one without trust speaks plain HTTP alone.
pub(crate) fn agent(config: Config, trust: Option<&Trust>) -> Agent {
    let tls = TlsConnector(trust.map(|trust| Arc::new(trust.config())));
    let connector = ConnectProxyConnector::default().chain(TcpConnector::default()).chain(tls);
    Agent::with_parts(config, connector, DefaultResolver::default())
}

/// The reason of TLS for which a request failed, if it was one.
pub(crate) fn distrust(error: &Error) -> Option<Distrust> {
    match error {
        Error::Io(error) => explain(error),
        _ => None,
    }
}

/// Encrypts the connections of others.
struct TlsConnector(Option<Arc<ClientConfig>>);

impl<In: Transport> Connector<In> for TlsConnector {
    type Out = Either<In, TlsTransport>;

    fn connect(&self, details: &ConnectionDetails<'_>, chained: Option<In>) -> Result<Option<Self::Out>, Error> {
        let Some(transport) = chained else { return Ok(None) };
        let Some(config) = self.0.clone().filter(|_| details.needs_tls() && !transport.is_tls()) else {
            return Ok(Some(Either::A(transport)));
        };
        let host = details.uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
        let name = ServerName::try_from(host.to_owned()).map_err(|_| Error::Tls("the server has no valid name"))?;
        let connection = ClientConnection::new(config, name).map_err(std::io::Error::other)?;
        let mut stream =
            StreamOwned::new(connection, TransportAdapter::new(transport.boxed(), details.current_time.clone()));
        stream.sock.set_timeout(details.timeout);
        stream.conn.complete_io(&mut stream.sock)?;
        let buffers = LazyBuffers::new(details.config.input_buffer_size(), details.config.output_buffer_size());
        Ok(Some(Either::B(TlsTransport { buffers, stream })))
    }
}

impl fmt::Debug for TlsConnector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TlsConnector").field(&self.0.is_some()).finish()
    }
}

/// An encrypted connection.
struct TlsTransport {
    buffers: LazyBuffers,
    stream: StreamOwned<ClientConnection, TransportAdapter>,
}

impl Transport for TlsTransport {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), Error> {
        self.stream.sock.set_timeout(timeout);
        self.stream.write_all(&self.buffers.output()[..amount])?;
        Ok(())
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, Error> {
        self.stream.sock.set_timeout(timeout);
        let amount = self.stream.read(self.buffers.input_append_buf())?;
        self.buffers.input_appended(amount);
        Ok(amount > 0)
    }

    fn is_open(&mut self) -> bool {
        self.stream.sock.get_mut().is_open()
    }

    fn is_tls(&self) -> bool {
        true
    }
}

impl fmt::Debug for TlsTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsTransport").finish_non_exhaustive()
    }
}
