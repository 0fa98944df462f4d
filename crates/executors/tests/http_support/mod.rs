//! A service on a loopback port that answers as a test defines, and records the requests.
#![allow(dead_code, unreachable_pub)] // Each test program uses a part of it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// A request as it came.
#[derive(Debug, Clone)]
pub struct ServiceRequest {
    /// `POST /jobs?x=1`.
    pub line: String,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl ServiceRequest {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// The answer to a request.
pub enum Reply {
    /// Status, headers in lines, body.
    Answer(u16, String, String),
    /// These bytes, and the connection is closed.
    Bytes(Vec<u8>),
    /// The connection is closed.
    HangUp,
    /// Nothing, for ever.
    Silence,
}

/// An answer without headers of its own.
pub fn answer(status: u16, body: &str) -> Reply {
    Reply::Answer(status, String::new(), body.to_owned())
}

/// The service. It ends with the runtime of the test.
pub struct Service {
    pub address: String,
    asked: Arc<Mutex<Vec<ServiceRequest>>>,
}

impl Service {
    /// Answers each request with what a function makes of it.
    pub async fn new(reply: impl Fn(&ServiceRequest) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (reply, kept) = (Arc::new(reply), asked.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (reply, kept) = (reply.clone(), kept.clone());
                tokio::spawn(async move { serve(stream, &*reply, &kept).await });
            }
        });
        Self { address, asked }
    }

    /// All requests so far.
    pub fn asked(&self) -> Vec<ServiceRequest> {
        self.asked.lock().unwrap().clone()
    }

    /// Their first lines.
    pub fn lines(&self) -> Vec<String> {
        self.asked().into_iter().map(|asked| asked.line).collect()
    }
}

async fn serve(
    stream: TcpStream,
    reply: &(dyn Fn(&ServiceRequest) -> Reply + Send + Sync),
    kept: &Mutex<Vec<ServiceRequest>>,
) {
    let mut stream = BufReader::new(stream);
    let Some(asked) = read(&mut stream).await else { return };
    kept.lock().unwrap().push(asked.clone());
    match reply(&asked) {
        Reply::HangUp => {}
        Reply::Bytes(bytes) => {
            let _ = stream.write_all(&bytes).await;
        }
        Reply::Silence => tokio::time::sleep(Duration::from_secs(3600)).await,
        Reply::Answer(status, headers, body) => {
            let head =
                format!("HTTP/1.1 {status} x\r\nconnection: close\r\ncontent-length: {}\r\n{headers}\r\n", body.len());
            let _ = stream.write_all(format!("{head}{body}").as_bytes()).await;
        }
    }
}

async fn read(stream: &mut BufReader<TcpStream>) -> Option<ServiceRequest> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let headers: Vec<(String, String)> = lines
        .iter()
        .skip(1)
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let line = lines.first()?.trim_end_matches(" HTTP/1.1").to_owned();
    let mut asked = ServiceRequest { line, headers, body: String::new() };
    let length = asked.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    asked.body = String::from_utf8(body).ok()?;
    Some(asked)
}
