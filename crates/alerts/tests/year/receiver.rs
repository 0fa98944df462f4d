//! A server that receives notices, and fails at random: it refuses, or takes a notice and does not answer.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::Value;

use crate::recorded::Dice;

pub(crate) struct Receiver {
    pub(crate) address: String,
    received: Arc<Mutex<Vec<Value>>>,
    is_well: Arc<AtomicBool>,
}

impl Receiver {
    pub(crate) fn start(seed: u64) -> Receiver {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = format!("http://{}/hook", listener.local_addr().expect("an address"));
        let (received, is_well) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicBool::new(false)));
        let (all, well, mut dice) = (received.clone(), is_well.clone(), Dice::new(seed + 2));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let mood = if well.load(Ordering::Relaxed) { 9 } else { dice.below(10) };
                // A client that is gone gets no answer.
                let _ = serve(stream, mood, &all);
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

fn serve(stream: TcpStream, mood: usize, received: &Mutex<Vec<Value>>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let (mut length, mut key) = (0, String::new());
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 || line.trim().is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').unwrap_or_default();
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse().expect("a length"),
            "idempotency-key" => value.trim().clone_into(&mut key),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let body: Value = serde_json::from_slice(&body).expect("JSON");
    assert_eq!(body["key"], key.as_str(), "the key is in the header, too");
    let answer: &[u8] = match mood {
        0 | 1 => b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
        2 => b"",
        _ => b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
    };
    if mood > 1 {
        received.lock().expect("no panic").push(body);
    }
    reader.get_mut().write_all(answer)
}
