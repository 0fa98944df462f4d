//! Requests that browsers of people who visit other pages would send.

use axum::body::Body;
use axum::http::Request;

use crate::support::{Reply, Server, workflow};

async fn pause(server: &Server, headers: &[(&str, &str)]) -> Reply {
    let mut request = Request::post("/api/v1/workflows/w/pause");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    server.send(request.body(Body::empty()).unwrap()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_others_change_nothing() {
    let server = Server::start(&workflow("w", "")).await;
    for headers in [
        &[][..],
        &[("host", "localhost:8080")],
        &[("host", "localhost:8080"), ("origin", "http://localhost:8080")],
        &[("host", "localhost:8080"), ("sec-fetch-site", "same-origin"), ("origin", "http://other.example")],
        &[("host", "localhost:8080"), ("sec-fetch-site", "none")],
    ] {
        assert_eq!(pause(&server, headers).await.status, 200, "{headers:?}");
    }
    for headers in [
        &[("host", "localhost:8080"), ("origin", "http://localhost:3000")][..],
        &[("host", "localhost:8080"), ("origin", "http://evil.example")],
        &[("host", "localhost:8080"), ("origin", "null")],
        &[("host", "localhost:8080"), ("sec-fetch-site", "cross-site")],
        &[("host", "localhost:8080"), ("sec-fetch-site", "same-site"), ("origin", "http://localhost:3000")],
    ] {
        let reply = pause(&server, headers).await;
        assert_eq!(reply.json()["type"], "urn:kelos:problem:cross-site", "{headers:?}");
    }
    let celos = Request::post("/scheduler").header("origin", "http://evil.example").header("host", "localhost");
    let reply = server.send(celos.body(Body::empty()).unwrap()).await;
    assert_eq!(reply.told(), (403, "a web page of http://evil.example may not change anything on this server"));
}

#[tokio::test(flavor = "multi_thread")]
async fn names_that_are_made_to_point_here_are_not_answered() {
    let server = Server::start("").await;
    let get = |path: &str, host: &str| Request::get(path).header("host", host).body(Body::empty()).unwrap();
    for host in ["localhost:8080", "127.0.0.1", "[::1]:80"] {
        assert_eq!(server.send(get("/api/v1/health", host)).await.status, 200, "{host}");
    }
    let native = server.send(get("/api/v1/health", "rebound.example:8080")).await;
    assert_eq!((native.status.as_u16(), &native.json()["type"]), (403, &"urn:kelos:problem:unknown-host".into()));
    assert_eq!(server.send(get("/workflow-list", "rebound.example")).await.status, 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_meant_for_another_server_is_refused_and_nothing_is_done() {
    let server = Server::start(&workflow("w", "")).await;
    let meant = [("host", "localhost"), (kelos_front::INSTANCE, "another")];
    let reply = pause(&server, &meant).await;
    assert_eq!((reply.status.as_u16(), &reply.json()["code"]), (421, &"other-server".into()));
    let celos = Request::post("/scheduler").header("host", "localhost").header(kelos_front::INSTANCE, "another");
    let reply = server.send(celos.body(Body::empty()).unwrap()).await;
    assert_eq!(reply.told(), (421, "the request is meant for another server, which had this address before"));
    assert_eq!(pause(&server, &[("host", "localhost")]).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_names_its_host_once() {
    let server = Server::start(&workflow("w", "")).await;
    type Case<'a> = (&'a [(&'a str, &'a str)], u16, &'a str);
    let cases: [Case<'_>; 6] = [
        (&[], 400, "the header `Host` is missing, expected the name of this server"),
        (&[("host", "localhost"), ("host", "evil.example")], 400, "the header `host` is there more than once"),
        (&[("host", "localhost"), ("host", "localhost")], 400, "the header `host` is there more than once"),
        (&[("host", "")], 403, "this server does not answer to the host name \"\""),
        (&[("host", "localhost"), ("origin", "http://localhost"), ("origin", "http://evil.example")], 400, "`origin`"),
        (&[("host", "localhost"), ("kelos-user", "ann"), ("kelos-user", "bob")], 400, "`kelos-user`"),
    ];
    for path in ["/api/v1/workflows/w/pause", "/pause?id=w&paused=true", "/v3/namespaces", "/ui/board"] {
        for (headers, status, why) in cases {
            let request =
                headers.iter().fold(Request::post(path), |request, (name, value)| request.header(*name, *value));
            let response = server.open_as_is(request.body(Body::empty()).unwrap()).await;
            assert_eq!(response.status(), status, "{path} {headers:?}");
            let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
            let told = String::from_utf8(body.to_vec()).unwrap().replace("\\\"", "\"");
            assert!(told.contains(why), "{path} {headers:?}: {told}");
        }
    }
    // A name in the first line counts, and doesn't hide another one in the header.
    for (uri, host) in
        [("http://evil.example/api/v1/health", "localhost"), ("http://localhost/api/v1/health", "evil.example")]
    {
        let request = Request::get(uri).header("host", host).body(Body::empty()).unwrap();
        assert_eq!(server.open_as_is(request).await.status(), 403, "{uri} {host}");
    }
}
