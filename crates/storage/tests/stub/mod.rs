//! A web server of a few lines, for answers that real servers give too seldom.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A server on a port of its own; it ends with the test's runtime.
pub(crate) struct Stub {
    /// Its host and port.
    pub(crate) address: String,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Stub {
    /// Answers each request, given without its body, by what `answer` makes of it: status line, headers and body.
    pub(crate) async fn answering(answer: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (seen, answer) = (Arc::new(Mutex::new(Vec::new())), Arc::new(answer));
        let noted = seen.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (noted, answer) = (noted.clone(), answer.clone());
                tokio::spawn(async move { serve(stream, &noted, &*answer).await });
            }
        });
        Self { address, seen }
    }

    /// The first lines of all requests so far.
    pub(crate) fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}

async fn serve(mut stream: TcpStream, seen: &Mutex<Vec<String>>, answer: &(impl Fn(&str) -> String + ?Sized)) {
    let mut request = Vec::new();
    let mut piece = [0; 4096];
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read(&mut piece).await {
            Ok(read) if read > 0 => request.extend_from_slice(&piece[..read]),
            _ => return,
        }
    }
    let request = String::from_utf8_lossy(&request).into_owned();
    seen.lock().unwrap().push(request.lines().next().unwrap_or_default().to_owned());
    let _ = stream.write_all(answer(&request).as_bytes()).await;
    let _ = stream.shutdown().await;
}

/// A whole answer with a body.
pub(crate) fn answer(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {}\r\n{headers}\r\n{body}", body.len())
}
