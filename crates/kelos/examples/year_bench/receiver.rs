//! A server that receives notices, and is away for some of them: it refuses, or takes one and does not answer.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use kelos_model::retry::scramble;
use serde_json::Value;

/// One notice in so many is refused, and one taken without an answer.
const AWAY: u64 = 20;

/// The server.
pub(crate) struct Receiver {
    pub(crate) address: String,
    received: Arc<Mutex<Vec<Value>>>,
    is_well: Arc<AtomicBool>,
}

impl Receiver {
    pub(crate) fn start(seed: u64) -> Receiver {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = format!("http://{}/", listener.local_addr().expect("an address"));
        let (received, is_well) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicBool::new(false)));
        let (all, well) = (received.clone(), is_well.clone());
        std::thread::spawn(move || {
            for (number, stream) in (0..).zip(listener.incoming()) {
                let mood = scramble(seed ^ number) % AWAY;
                // A client that is gone gets no answer.
                let _ =
                    stream.and_then(|stream| serve(stream, if well.load(Ordering::Relaxed) { 2 } else { mood }, &all));
            }
        });
        Receiver { address, received, is_well }
    }

    /// Ends all failures.
    pub(crate) fn recover(&self) {
        self.is_well.store(true, Ordering::Relaxed);
    }

    pub(crate) fn received(&self) -> Vec<Value> {
        self.received.lock().expect("no panic").clone()
    }
}

fn serve(stream: TcpStream, mood: u64, received: &Mutex<Vec<Value>>) -> std::io::Result<()> {
    let (mut reader, mut length, mut line) = (BufReader::new(stream), 0, String::new());
    while reader.read_line(&mut line)? > 0 && !line.trim().is_empty() {
        let header = line.to_ascii_lowercase();
        length = header.strip_prefix("content-length:").and_then(|text| text.trim().parse().ok()).unwrap_or(length);
        line.clear();
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let answer: &[u8] = match mood {
        0 => b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
        1 => b"",
        _ => b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
    };
    if mood > 0 {
        received.lock().expect("no panic").push(serde_json::from_slice(&body)?);
    }
    reader.get_mut().write_all(answer)
}
