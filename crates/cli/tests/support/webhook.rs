//! A server that receives posts of JSON.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};

use serde_json::Value;

/// A post: its headers in small letters, each in a line, and its body.
pub(crate) struct Post {
    pub(crate) head: String,
    pub(crate) body: Value,
}

/// Receives posts, and answers each by its number, from 0 on, with a status such as `204 No Content`.
pub(crate) fn webhook(status: impl Fn(usize) -> &'static str + Send + Sync + 'static) -> (String, Receiver<Post>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}/hook", listener.local_addr().expect("an address"));
    let (send, receive) = channel();
    let (status, count) = (Arc::new(status), Arc::new(AtomicUsize::new(0)));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (send, status, count) = (send.clone(), status.clone(), count.clone());
            let stream = BufReader::new(stream.expect("a connection"));
            // Clients open connections in advance, and say nothing on them.
            std::thread::spawn(move || {
                let answer = |_: &Post| status(count.fetch_add(1, Ordering::Relaxed));
                hear(stream, answer).map(|post| send.send(post))
            });
        }
    });
    (address, receive)
}

/// Hears one post and answers it; none of a client that says nothing, or dies.
fn hear(mut stream: BufReader<TcpStream>, status: impl Fn(&Post) -> &'static str) -> Option<Post> {
    let mut head = String::new();
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if line == "\r\n" {
            break;
        }
        head += &line.to_ascii_lowercase();
    }
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    let mut body = vec![0; length?.trim().parse().ok()?];
    stream.read_exact(&mut body).ok()?;
    let post = Post { head, body: serde_json::from_slice(&body).expect("JSON") };
    let answer = format!("HTTP/1.1 {}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n", status(&post));
    stream.get_mut().write_all(answer.as_bytes()).ok()?;
    Some(post)
}
