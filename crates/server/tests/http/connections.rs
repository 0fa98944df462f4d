//! Connections over a real port: what clients do to a server that they ask nothing of, or too much.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::routing::{get, post};
use futures_util::stream::{self, StreamExt};
use kelos_server::Limits;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use crate::support::PATIENCE;

const ASK: &[u8] = b"GET /ok HTTP/1.1\r\nHost: localhost\r\n\r\n";

fn limits(connections: usize) -> Limits {
    Limits { connections, connections_per_address: connections, head: PATIENCE, body: PATIENCE, stall: PATIENCE }
}

/// Set once the body of an answer has been dropped.
#[derive(Clone, Default)]
struct Dropped(Arc<AtomicBool>);

struct SetOnDrop(Dropped);

impl Drop for SetOnDrop {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::SeqCst);
    }
}

/// Serves a few routes: `/ok`, `/stream`, which never says anything more, `/flood`, which never stops, and `/body`.
async fn serve(limits: Limits) -> (SocketAddr, Dropped) {
    let dropped = Dropped::default();
    let guard = dropped.clone();
    let silent = || async { Body::from_stream(stream::pending::<Result<Bytes, Infallible>>()) };
    let flood = move || async move {
        let guard = Arc::new(SetOnDrop(guard));
        let piece = move |()| {
            let _ = &guard;
            Ok::<_, Infallible>(Bytes::from_static(&[b'x'; 1 << 14]))
        };
        Body::from_stream(stream::repeat(()).map(piece))
    };
    let router = Router::new()
        .route("/ok", get(|| async { "ok" }))
        .route("/stream", get(silent))
        .route("/flood", get(flood))
        .route("/body", post(|text: String| async move { text }));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(kelos_server::serve(listener, router, limits, std::future::pending()));
    (address, dropped)
}

/// Sends bytes and reads up to the end of the connection, or until the answer ends with `last`.
async fn talk(stream: &mut TcpStream, sent: &[u8], last: &str) -> String {
    stream.write_all(sent).await.unwrap();
    let mut answer = Vec::new();
    while last.is_empty() || !answer.ends_with(last.as_bytes()) {
        match timeout(PATIENCE, stream.read_buf(&mut answer)).await.unwrap() {
            Ok(0) | Err(_) => break,
            Ok(_) => {}
        }
    }
    String::from_utf8(answer).unwrap()
}

async fn connect(address: SocketAddr) -> TcpStream {
    TcpStream::connect(address).await.unwrap()
}

async fn is_closed(stream: &mut TcpStream) -> bool {
    !matches!(timeout(PATIENCE, stream.read(&mut [0; 16])).await.unwrap(), Ok(1..))
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_connections_never_keep_others_from_an_answer() {
    let (address, _) = serve(limits(8)).await;
    let mut idle = Vec::new();
    for _ in 0..40 {
        idle.push(connect(address).await);
    }
    let mut last = connect(address).await;
    assert!(talk(&mut last, ASK, "ok").await.starts_with("HTTP/1.1 200"));
    // The oldest were given up; those that came last still get an answer.
    for stream in &mut idle[..32] {
        assert!(is_closed(stream).await);
    }
    assert!(talk(&mut idle[39], ASK, "ok").await.starts_with("HTTP/1.1 200"));
}

#[tokio::test(flavor = "multi_thread")]
async fn where_all_connections_are_busy_one_more_is_told_so() {
    let (address, _) = serve(limits(3)).await;
    let mut busy = Vec::new();
    for _ in 0..3 {
        let mut stream = connect(address).await;
        assert!(
            talk(&mut stream, b"GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n", "\r\n\r\n").await.contains("200 OK")
        );
        busy.push(stream);
    }
    let refused = talk(&mut connect(address).await, b"", "").await;
    let (head, body) = refused.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 503") && head.contains(&format!("Content-Length: {}", body.len())), "{refused}");
    assert_eq!(body, "failed to answer: all connections of the server are in use\n");
    drop(busy.pop());
    let answered = async { while !talk(&mut connect(address).await, ASK, "ok").await.starts_with("HTTP/1.1 200") {} };
    timeout(PATIENCE, answered).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_or_body_that_never_comes_ends_the_connection() {
    let soon = Duration::from_millis(20);
    let (address, _) = serve(Limits { head: soon, body: soon, ..limits(8) }).await;
    for begun in [&b""[..], b"GET /ok HT", b"GET /ok HTTP/1.1\r\nHost: localhost\r\nX: y\r\n"] {
        let mut stream = connect(address).await;
        stream.write_all(begun).await.unwrap();
        let mut rest = Vec::new();
        let _ = timeout(PATIENCE, stream.read_to_end(&mut rest)).await.unwrap();
        assert!(!String::from_utf8_lossy(&rest).contains("200"), "{rest:?}");
    }
    let half = b"POST /body HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nhalf";
    let answer = talk(&mut connect(address).await, half, "").await;
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_takes_nothing_of_an_endless_answer_is_dropped() {
    let (address, dropped) = serve(Limits { stall: Duration::from_millis(20), ..limits(8) }).await;
    let mut stream = connect(address).await;
    stream.write_all(b"GET /flood HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    let gone = async {
        while !dropped.0.load(Ordering::SeqCst) {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, gone).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_connections_are_let_go_in_good_order() {
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = asked.clone();
    let count = move || async move {
        counted.fetch_add(1, Ordering::SeqCst);
        "ok"
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = Router::new().route("/ok", get(count));
    let shutdown = async { drop(stopped.await) };
    let serving = tokio::spawn(kelos_server::serve(listener, router, limits(100), shutdown));
    let mut kept = Vec::new();
    for n in 0..1000 {
        let mut stream = connect(address).await;
        if n % 10 == 0 {
            talk(&mut stream, ASK, "ok").await;
        }
        kept.push(stream);
        // This process has the other ends of all connections, too, and few descriptors on some machines.
        if kept.len() > 150 {
            kept.remove(0);
        }
    }
    assert_eq!(asked.load(Ordering::SeqCst), 100);
    stop.send(()).unwrap();
    timeout(PATIENCE, serving).await.unwrap().unwrap().unwrap();
    for stream in &mut kept {
        assert!(is_closed(stream).await);
    }
}
