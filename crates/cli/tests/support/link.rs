//! A link to a server that can be cut: connections over it hang, as they do when a network is parted.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Nothing arrives at the server.
pub(crate) const TO_SERVER: u8 = 1;
/// Nothing arrives from it.
pub(crate) const FROM_SERVER: u8 = 2;

/// The interval at which a cut link looks whether it is whole again.
const LOOK: Duration = Duration::from_millis(20);

/// A port whose connections are those of a server.
pub(crate) struct Link {
    address: SocketAddr,
    server: Arc<Mutex<SocketAddr>>,
    cut: Arc<AtomicU8>,
    /// How often something was passed on to the server.
    requests: Arc<AtomicU64>,
}

impl Link {
    /// A link to a server, which may be down at times.
    pub(crate) fn to(server: SocketAddr) -> Link {
        Link::by(TcpListener::bind("127.0.0.1:0").expect("a port"), server)
    }

    /// The same, of connections that come to this listener.
    pub(crate) fn by(listener: TcpListener, server: SocketAddr) -> Link {
        let address = listener.local_addr().expect("its address");
        let (cut, requests) = (Arc::<AtomicU8>::default(), Arc::<AtomicU64>::default());
        let server = Arc::new(Mutex::new(server));
        let of = (cut.clone(), requests.clone(), server.clone());
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let (cut, requests, server) = of.clone();
                let server = *server.lock().unwrap_or_else(PoisonError::into_inner);
                std::thread::spawn(move || join(client.ok()?, server, &cut, requests));
            }
        });
        Link { address, server, cut, requests }
    }

    /// Leads new connections to another server.
    pub(crate) fn lead_to(&self, server: SocketAddr) {
        *self.server.lock().unwrap_or_else(PoisonError::into_inner) = server;
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many requests it has passed on, if each is sent at once.
    pub(crate) fn requests(&self) -> u64 {
        self.requests.load(Ordering::SeqCst)
    }

    /// Cuts it in these directions, or in none.
    pub(crate) fn cut(&self, directions: u8) {
        self.cut.store(directions, Ordering::SeqCst);
    }
}

/// Joins a client to the server for as long as both are there.
fn join(client: TcpStream, server: SocketAddr, cut: &Arc<AtomicU8>, requests: Arc<AtomicU64>) -> Option<()> {
    let server = TcpStream::connect(server).ok()?;
    let (from, to) = (client.try_clone().ok()?, server.try_clone().ok()?);
    let of = cut.clone();
    std::thread::spawn(move || pass(from, to, &of, TO_SERVER, &requests));
    pass(server, client, cut, FROM_SERVER, &AtomicU64::default());
    Some(())
}

/// Passes bytes on, in one direction; what comes while that is cut is late.
fn pass(mut from: TcpStream, mut to: TcpStream, cut: &AtomicU8, direction: u8, passed: &AtomicU64) {
    let mut buffer = [0; 1 << 16];
    let _ = from.set_read_timeout(Some(LOOK * 10));
    loop {
        let read = match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => continue,
            Err(_) => break,
        };
        while cut.load(Ordering::SeqCst) & direction != 0 {
            std::thread::sleep(LOOK);
        }
        passed.fetch_add(1, Ordering::SeqCst);
        if to.write_all(&buffer[..read]).is_err() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
