//! Messages over a connection that may be encrypted.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use kelos_tls::pki_types::ServerName;
use kelos_tls::{ClientConnection, StreamOwned, Trust};

use crate::PATIENCE;

/// The longest answer that is read: the list of a node's children has no limit of its own.
const LONGEST: usize = 256 << 20;

trait Stream: Read + Write + Send {}
impl<T: Read + Write + Send> Stream for T {}

/// A connection, and the bytes of a message that has not come completely.
pub(crate) struct Frames {
    stream: Box<dyn Stream>,
    socket: TcpStream,
    begun: Vec<u8>,
}

impl Frames {
    pub(crate) fn connect(host: &str, port: u16, trust: Option<&Trust>) -> io::Result<Frames> {
        let mut refused = io::Error::other("the name has no address");
        let host = host.trim_matches(['[', ']']);
        for address in (host, port).to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, PATIENCE) {
                Ok(socket) => return Frames::over(socket, host, trust),
                Err(error) => refused = error,
            }
        }
        Err(refused)
    }

    fn over(socket: TcpStream, host: &str, trust: Option<&Trust>) -> io::Result<Frames> {
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.set_write_timeout(Some(PATIENCE))?;
        socket.set_nodelay(true)?;
        let plain = socket.try_clone()?;
        let stream: Box<dyn Stream> = match trust {
            None => Box::new(plain),
            Some(trust) => {
                let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
                let connection = ClientConnection::new(Arc::new(trust.config()), name).map_err(io::Error::other)?;
                Box::new(StreamOwned::new(connection, plain))
            }
        };
        Ok(Frames { stream, socket, begun: Vec::new() })
    }

    pub(crate) fn send(&mut self, framed: &[u8]) -> io::Result<()> {
        self.stream.write_all(framed)?;
        self.stream.flush()
    }

    /// The next message. One that does not come within the patience is an error.
    pub(crate) fn receive(&mut self, patience: Duration) -> io::Result<Vec<u8>> {
        // A timeout of 0 would be one without end.
        self.socket.set_read_timeout(Some(patience.max(Duration::from_millis(1))))?;
        let mut buffer = [0; 1 << 14];
        loop {
            if let Some(message) = self.complete()? {
                return Ok(message);
            }
            match self.stream.read(&mut buffer) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(length) => self.begun.extend(&buffer[..length]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// A message that has come.
    fn complete(&mut self) -> io::Result<Option<Vec<u8>>> {
        let Some((length, _)) = self.begun.split_first_chunk() else { return Ok(None) };
        let length = usize::try_from(i32::from_be_bytes(*length)).ok().filter(|length| *length <= LONGEST);
        let length = length.ok_or_else(|| io::Error::other("it does not answer as ZooKeeper does"))?;
        if self.begun.len() < 4 + length {
            return Ok(None);
        }
        let rest = self.begun.split_off(4 + length);
        let message = std::mem::replace(&mut self.begun, rest).split_off(4);
        Ok(Some(message))
    }
}
