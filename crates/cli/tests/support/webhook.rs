//! A server that receives posts of JSON.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};

use serde_json::Value;

/// A post: its headers in small letters, each in a line, and its body.
pub(crate) struct Post {
    pub(crate) head: String,
    pub(crate) body: Value,
}

/// Receives posts, and answers each by its number, from 0 on, with a status such as `204 No Content`.
pub(crate) fn webhook(status: impl Fn(usize) -> &'static str + Send + 'static) -> (String, Receiver<Post>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}/hook", listener.local_addr().expect("an address"));
    let (send, receive) = channel();
    std::thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            let mut stream = BufReader::new(stream.expect("a connection"));
            let mut head = String::new();
            loop {
                let mut line = String::new();
                if stream.read_line(&mut line).expect("a line") == 0 || line == "\r\n" {
                    break;
                }
                head += &line.to_ascii_lowercase();
            }
            let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
            let length = length.map_or(0, |length| length.trim().parse().expect("a length"));
            let mut body = vec![0; length];
            stream.read_exact(&mut body).expect("a body");
            let answer = format!("HTTP/1.1 {}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n", status(number));
            stream.get_mut().write_all(answer.as_bytes()).expect("an answer");
            let _ = send.send(Post { head, body: serde_json::from_slice(&body).expect("JSON") });
        }
    });
    (address, receive)
}
