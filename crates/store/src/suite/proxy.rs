//! A proxy between a client and its server that breaks the connection at the n-th message.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The fate of the message at which the connection breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Break {
    /// It is lost.
    Lost,
    /// A half of it arrives.
    Half,
    /// A request arrives only when [`Proxy::deliver`] is called; an answer is lost.
    Late,
    /// It is lost, and the connection stays open without another word.
    Silent,
}

/// A proxy to one server. Messages are what is read from a socket at once, in both directions.
pub struct Proxy {
    address: SocketAddr,
    plan: Arc<Mutex<Plan>>,
}

#[derive(Default)]
struct Plan {
    /// The messages that still pass, and the fate of the one after them.
    armed: Option<(usize, Break)>,
    late: Option<Late>,
}

/// A request that is on its way.
struct Late {
    message: Vec<u8>,
    server: TcpStream,
    /// Ends when the server has closed the connection.
    closed: Receiver<()>,
}

impl Proxy {
    /// Starts a proxy to a server at `host:port`.
    ///
    /// # Panics
    /// If it can't listen.
    #[must_use]
    pub fn to(target: &str) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address");
        let plan = Arc::<Mutex<Plan>>::default();
        let (shared, target) = (plan.clone(), target.to_owned());
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(server) = TcpStream::connect(&target) else { continue };
                join(client, server, &shared);
            }
        });
        Proxy { address, plan }
    }

    /// The address at which it listens.
    #[must_use]
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// Breaks the connection behind the next `messages`.
    pub fn arm(&self, messages: usize, fate: Break) {
        self.plan().armed = Some((messages, fate));
    }

    /// Breaks nothing any more; whether the connection was broken.
    pub fn disarm(&self) -> bool {
        self.plan().armed.take().is_none()
    }

    /// Delivers the request that is late, and waits until the server has processed it.
    ///
    /// # Panics
    /// If the server does not close the connection.
    pub fn deliver(&self) {
        let late = self.plan().late.take();
        let Some(mut late) = late else { return };
        if late.server.write_all(&late.message).is_ok() {
            let _ = late.server.shutdown(Shutdown::Write);
            let _ = late.closed.recv_timeout(Duration::from_secs(30));
        }
    }

    fn plan(&self) -> MutexGuard<'_, Plan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn join(client: TcpStream, server: TcpStream, plan: &Arc<Mutex<Plan>>) {
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let copies = || Some((client.try_clone().ok()?, server.try_clone().ok()?));
    let (Some(up), Some(down)) = (copies(), copies()) else { return };
    let (closing, closed) = channel();
    let requests = plan.clone();
    std::thread::spawn(move || pump(up.0, up.1, &requests, Some(closed)));
    let answers = plan.clone();
    std::thread::spawn(move || {
        pump(down.1, down.0, &answers, None);
        drop(closing);
    });
}

/// Passes messages on until one is to break the connection. The one of requests holds the end of the answers.
fn pump(mut from: TcpStream, mut to: TcpStream, plan: &Mutex<Plan>, closed: Option<Receiver<()>>) {
    let mut buffer = vec![0; 1 << 16];
    loop {
        let length = from.read(&mut buffer).unwrap_or(0);
        if length == 0 {
            break;
        }
        let message = &buffer[..length];
        let mut plan = plan.lock().unwrap_or_else(PoisonError::into_inner);
        let fate = match &mut plan.armed {
            Some((0, fate)) => Some(*fate),
            Some((messages, _)) => {
                *messages -= 1;
                None
            }
            None => None,
        };
        let Some(fate) = fate else {
            drop(plan);
            if to.write_all(message).is_err() {
                break;
            }
            continue;
        };
        plan.armed = None;
        match (fate, closed) {
            (Break::Silent, _) => {
                drop(plan);
                while from.read(&mut buffer).is_ok_and(|length| length > 0) {}
                return;
            }
            (Break::Late, Some(closed)) => {
                // The client is told at once; the answers go nowhere.
                plan.late = Some(Late { message: message.to_vec(), server: to, closed });
                let _ = from.shutdown(Shutdown::Both);
                return;
            }
            (Break::Half, _) => {
                let _ = to.write_all(&message[..length / 2]);
            }
            (Break::Lost | Break::Late, _) => {}
        }
        break;
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}
