//! Following the log: nothing is lost, whoever is slow or comes back.

use std::collections::VecDeque;

use axum::body::{Body, BodyDataStream};
use axum::http::Request;
use futures_util::StreamExt;
use kelos_server::Limits;
use serde_json::Value;

use crate::support::{NOW, PATIENCE, Server, workflow};

/// Server-sent events as a browser takes them.
pub(crate) struct EventStream {
    body: BodyDataStream,
    text: String,
    ready: VecDeque<Sent>,
}

/// One of them.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Sent {
    pub(crate) id: u64,
    pub(crate) name: String,
    pub(crate) data: Value,
}

impl EventStream {
    pub(crate) async fn open(server: &Server, uri: &str, last: Option<u64>) -> EventStream {
        let mut request = Request::get(uri);
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        let response = server.open(request.body(Body::empty()).unwrap()).await;
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        EventStream { body: response.into_body().into_data_stream(), text: String::new(), ready: VecDeque::new() }
    }

    /// The next one; none when the stream has ended.
    pub(crate) async fn next(&mut self) -> Option<Sent> {
        while self.ready.is_empty() {
            let bytes = tokio::time::timeout(PATIENCE, self.body.next()).await.expect("an event in time")?;
            self.text.push_str(std::str::from_utf8(&bytes.unwrap()).unwrap());
            while let Some((event, rest)) = self.text.split_once("\n\n") {
                self.ready.extend(parse(event));
                self.text = rest.to_owned();
            }
        }
        self.ready.pop_front()
    }

    async fn take(&mut self, count: u64) -> Vec<Sent> {
        let mut sent = Vec::new();
        for _ in 0..count {
            sent.push(self.next().await.expect("one more event"));
        }
        sent
    }
}

fn parse(event: &str) -> Option<Sent> {
    let mut sent = Sent::default();
    for line in event.lines() {
        match line.split_once(": ") {
            Some(("id", id)) => sent.id = id.parse().unwrap(),
            Some(("event", name)) => sent.name = name.to_owned(),
            Some(("data", data)) => sent.data = serde_json::from_str(data).unwrap(),
            _ => {}
        }
    }
    (sent != Sent::default()).then_some(sent)
}

fn ids(sent: &[Sent]) -> Vec<u64> {
    sent.iter().map(|sent| sent.id).collect()
}

async fn last_seq(server: &Server) -> u64 {
    server.get("/api/v1/health").await.json()["lastSeq"].as_u64().unwrap()
}

const ONE: &str = "startTime: '2015-09-13T15:00Z'";

#[tokio::test(flavor = "multi_thread")]
async fn what_happens_is_sent_as_it_is_listed() {
    let server = Server::start(&workflow("w", ONE)).await;
    let before = last_seq(&server).await;
    let mut followed = EventStream::open(&server, "/api/v1/events/stream", None).await;
    server.step(NOW).await;
    let after = last_seq(&server).await;
    let sent = followed.take(after - before).await;
    assert_eq!(ids(&sent), (before + 1..=after).collect::<Vec<_>>());
    let listed = server.get(&format!("/api/v1/events?after={before}")).await.ok().json();
    let data: Vec<_> = sent.iter().map(|sent| sent.data.clone()).collect();
    assert_eq!(&data, listed["items"].as_array().unwrap());
    assert!(sent.iter().all(|sent| sent.name == sent.data["subject"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_comes_back_misses_nothing() {
    for on_disk in [false, true] {
        // More than a stream reads in one go.
        let setup = crate::support::Setup { on_disk, ..Default::default() };
        let server = Server::with(setup, &workflow("w", "schedule: celos.cronSchedule('0 0/10 * * * ?')")).await;
        server.step(NOW).await;
        let last = last_seq(&server).await;
        assert!(last > 1500, "{last}");
        let mut first = EventStream::open(&server, "/api/v1/events/stream?after=0", None).await;
        let seen = first.take(700).await;
        drop(first);
        // A browser sends the address as it was, and the header.
        let mut second = EventStream::open(&server, "/api/v1/events/stream?after=0", Some(700)).await;
        let rest = second.take(last - 700).await;
        assert_eq!([ids(&seen), ids(&rest)].concat(), (1..=last).collect::<Vec<_>>());
        server.post("/pause?id=w&paused=true").await.ok();
        assert_eq!(second.next().await.unwrap().data["event"], "paused");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_workflow_can_be_followed() {
    let server = Server::start(&[workflow("w", ONE), workflow("other", ONE)].join("\n")).await;
    server.step(NOW).await;
    let mut followed = EventStream::open(&server, "/api/v1/events/stream?after=0&workflow=w", None).await;
    server.post("/pause?id=other&paused=true").await.ok();
    server.post("/pause?id=w&paused=true").await.ok();
    loop {
        let sent = followed.next().await.unwrap();
        assert_eq!(sent.data["workflow"], "w");
        if sent.data["event"] == "paused" {
            break;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_client_holds_nobody_up() {
    let server = Server::start(&workflow("w", ONE)).await;
    let mut slow = EventStream::open(&server, "/api/v1/events/stream?after=0", None).await;
    for paused in [true, false].repeat(300) {
        server.post(&format!("/pause?id=w&paused={paused}")).await.ok();
    }
    let last = last_seq(&server).await;
    assert_eq!(ids(&slow.take(last).await), (1..=last).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_end_with_the_server() {
    let server = Server::start("").await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (end, ended) = tokio::sync::oneshot::channel::<()>();
    let serving = tokio::spawn(kelos_server::serve(listener, server.router.clone(), Limits::of_process(), async {
        let _ = ended.await;
    }));
    let mut client = tokio::net::TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    client.write_all(b"GET /api/v1/events/stream HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    let mut head = [0; 15];
    client.read_exact(&mut head).await.unwrap();
    assert_eq!(&head, b"HTTP/1.1 200 OK");
    end.send(()).unwrap();
    let mut rest = Vec::new();
    tokio::time::timeout(PATIENCE, client.read_to_end(&mut rest)).await.unwrap().unwrap();
    tokio::time::timeout(PATIENCE, serving).await.unwrap().unwrap().unwrap();
}
