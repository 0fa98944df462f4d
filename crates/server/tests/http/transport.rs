//! Protection of the server and of browsers: limits, proxies, headers.

use axum::body::Body;
use axum::extract::Request;
use axum::http::Response;
use kelos_front::limits::Quota;
use kelos_front::{App, ClientAddress, Limiter, TrustedProxies};
use kelos_server::{Limits, Transport, router};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tower::ServiceExt;

use crate::support::{PATIENCE, Server, workflow};

/// A server with these limits on each client.
async fn limited(quota: Quota) -> (Server, axum::Router) {
    let server = Server::start(&workflow("w", "")).await;
    let app = App::new(server.node.clone(), "test").with_limiter(Limiter::new(quota));
    let router = router(app);
    (server, router)
}

async fn ask(router: &axum::Router, path: &str, from: ClientAddress) -> Response<Body> {
    let mut request = Request::get(path).header("host", "localhost").body(Body::empty()).unwrap();
    request.extensions_mut().insert(from);
    timeout(PATIENCE, router.clone().oneshot(request)).await.unwrap().unwrap()
}

fn client(ip: &str) -> ClientAddress {
    ClientAddress::direct(ip.parse().unwrap(), true)
}

async fn text(response: Response<Body>) -> String {
    let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
    String::from_utf8(body.to_vec()).unwrap()
}

fn header<'a>(response: &'a Response<Body>, name: &str) -> &'a str {
    response.headers().get(name).map_or("", |value| value.to_str().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn too_many_requests_are_refused_in_the_form_of_each_door() {
    let (_server, router) = limited(Quota { requests_per_second: 1, burst: 1, ..Quota::default() }).await;
    let greedy = client("192.0.2.7");
    assert_eq!(ask(&router, "/api/v1/version", greedy).await.status(), 200);
    let why = "192.0.2.7 asks more than 1 times a second";
    for (path, kind) in [
        ("/api/v1/version", "application/problem+json"),
        ("/ui/board", "text/html"),
        ("/v3/namespaces", ""),
        ("/workflow-list", "text/plain"),
    ] {
        let response = ask(&router, path, greedy).await;
        assert_eq!((response.status().as_u16(), header(&response, "retry-after")), (429, "1"), "{path}");
        assert!(header(&response, "content-type").starts_with(kind), "{path} {response:?}");
        let told = text(response).await;
        assert!(told.contains(why), "{path}: {told}");
    }
    // Others, and this machine, are answered.
    assert_eq!(ask(&router, "/api/v1/version", client("192.0.2.8")).await.status(), 200);
    for _ in 0..3 {
        assert_eq!(ask(&router, "/api/v1/version", client("127.0.0.1")).await.status(), 200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_of_one_client_are_counted() {
    let (_server, router) = limited(Quota { streams: 2, ..Quota::default() }).await;
    let watcher = client("192.0.2.7");
    let first = ask(&router, "/api/v1/events/stream", watcher).await;
    let second = ask(&router, "/ui/stream", watcher).await;
    assert_eq!((first.status().as_u16(), second.status().as_u16()), (200, 200));
    let third = ask(&router, "/api/v1/events/stream", watcher).await;
    assert_eq!((third.status().as_u16(), header(&third, "retry-after")), (429, "5"));
    assert!(text(third).await.contains("192.0.2.7 has 2 open streams, and may have no more"));
    // Other requests, and others' streams, go on.
    assert_eq!(ask(&router, "/api/v1/version", watcher).await.status(), 200);
    assert_eq!(ask(&router, "/api/v1/events/stream", client("192.0.2.8")).await.status(), 200);
    drop(first);
    assert_eq!(ask(&router, "/api/v1/events/stream", watcher).await.status(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_of_this_machine_and_of_all_clients_have_a_limit() {
    let (_server, router) = limited(Quota { streams: 2, all_streams: 6, ..Quota::default() }).await;
    let mut open = Vec::new();
    for _ in 0..3 {
        open.push(ask(&router, "/api/v1/events/stream", client("127.0.0.1")).await);
    }
    let fourth = ask(&router, "/api/v1/events/stream", client("127.0.0.1")).await;
    assert_eq!((fourth.status().as_u16(), header(&fourth, "retry-after")), (429, "5"));
    assert!(text(fourth).await.contains("this machine has 3 open streams, and may have no more"));
    for ip in ["192.0.2.7", "192.0.2.7", "192.0.2.8"] {
        open.push(ask(&router, "/api/v1/events/stream", client(ip)).await);
    }
    assert!(open.iter().all(|stream| stream.status() == 200));
    let one_more = ask(&router, "/api/v1/events/stream", client("192.0.2.9")).await;
    assert_eq!((one_more.status().as_u16(), header(&one_more, "retry-after")), (503, "5"));
    let told = text(one_more).await;
    assert!(
        told.contains("\"all-streams-open\"") && told.contains("all clients together have 6 open streams"),
        "{told}"
    );
    // Other requests are answered, and the next stream once another has ended.
    assert_eq!(ask(&router, "/api/v1/version", client("127.0.0.1")).await.status(), 200);
    drop(open.pop());
    assert_eq!(ask(&router, "/api/v1/events/stream", client("192.0.2.9")).await.status(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_tells_browsers_what_not_to_do_with_it() {
    let (_server, router) = limited(Quota::default()).await;
    let protected = |response: &Response<Body>| {
        assert_eq!(header(response, "x-content-type-options"), "nosniff");
        assert_eq!(header(response, "referrer-policy"), "no-referrer");
        assert!(header(response, "content-security-policy").contains("frame-ancestors 'none'"));
    };
    for path in
        ["/api/v1/workflows", "/api/v1/nothing", "/ui/board", "/ui/nothing", "/v3/namespaces", "/workflow-list", "/x"]
    {
        let response = ask(&router, path, client("192.0.2.7")).await;
        protected(&response);
        assert_eq!(header(&response, "cache-control"), "no-store", "{path}");
        assert_eq!(header(&response, "strict-transport-security"), "max-age=2592000", "{path}");
    }
    // Refused by the guard, before any door.
    let foreign = Request::get("/ui/board").header("host", "evil.example").body(Body::empty()).unwrap();
    let response = router.clone().oneshot(foreign).await.unwrap();
    assert_eq!(response.status(), 403);
    protected(&response);
    // Without TLS, and on this machine, whose names are those of other servers, too, nothing is said of TLS.
    for from in [ClientAddress::direct([192, 0, 2, 7].into(), false), client("127.0.0.1")] {
        let response = ask(&router, "/api/v1/version", from).await;
        assert_eq!(header(&response, "strict-transport-security"), "");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_names_the_client() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let who = |request: Request| async move {
        let client = request.extensions().get::<ClientAddress>().unwrap();
        format!("{} {} {}", client.ip, client.is_secure, client.is_local)
    };
    let router = axum::Router::new().fallback(who);
    let proxies = TrustedProxies::parse(["127.0.0.1"]).unwrap();
    let transport = Transport { proxies: Some(proxies), ..Limits::of_process().into() };
    tokio::spawn(kelos_server::serve(listener, router, transport, std::future::pending()));
    let ask = async |headers: &str| {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        timeout(PATIENCE, stream.read_to_string(&mut answer)).await.unwrap().unwrap();
        answer
    };
    let answer = ask("X-Forwarded-For: 1.2.3.4, 192.0.2.7\r\nX-Forwarded-Proto: https\r\n").await;
    assert!(answer.ends_with("192.0.2.7 true false"), "{answer}");
    let answer = ask("X-Forwarded-For: somebody\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    assert!(
        answer.contains("failed to answer: the header `X-Forwarded-For` of the proxy has \"somebody\""),
        "{answer}"
    );
}
