//! What web servers, name nodes behind HTTP and object stores answer when something is odd.

use crate::stub::{Stub, answer};
use kelos_storage::{Entry, HadoopConf, Place, S3Keys, S3Settings, Secret, Storage, StorageConfig};

const PAGE: &str = "<!DOCTYPE html><html><body>Please log in</body></html>";

fn place(storage: &Storage, uri: &str) -> Place {
    storage.place(uri).unwrap()
}

async fn look(storage: &Storage, uri: &str) -> Result<Option<Entry>, String> {
    let place = place(storage, uri);
    place.files.stat(&place.path).await.map_err(|error| error.to_string())
}

async fn refusal(storage: &Storage, uri: &str) -> String {
    look(storage, uri).await.expect_err("it should be refused")
}

fn plain() -> Storage {
    Storage::new(StorageConfig::default())
}

async fn http(answer: impl Fn(&str) -> String + Send + Sync + 'static) -> (Stub, String) {
    let stub = Stub::answering(answer).await;
    let uri = format!("http://{}/a%20b/file.csv?sig=geheim", stub.address);
    (stub, uri)
}

#[tokio::test]
async fn a_web_file_is_looked_at_by_its_head() {
    let (stub, uri) = http(|_| {
        let about = "Last-Modified: Wed, 21 Oct 2015 07:28:00 GMT\r\n";
        format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1234\r\n{about}\r\n")
    })
    .await;
    let found = look(&plain(), &uri).await.unwrap().unwrap();
    assert_eq!((found.name.as_str(), found.bytes), ("file.csv", 1234));
    assert_eq!(found.modified.unwrap().to_string(), "2015-10-21T07:28:00Z");
    assert_eq!(stub.seen(), ["HEAD /a%20b/file.csv?sig=geheim HTTP/1.1"]);
}

#[tokio::test]
async fn a_server_without_head_is_asked_for_one_byte() {
    let (stub, uri) = http(|request| {
        if request.starts_with("HEAD") {
            return answer("405 Method Not Allowed", "", "");
        }
        assert!(request.to_lowercase().contains("range: bytes=0-0"), "{request}");
        answer("206 Partial Content", "Content-Range: bytes 0-0/987\r\n", "x")
    })
    .await;
    assert_eq!(look(&plain(), &uri).await.unwrap().unwrap().bytes, 987);
    assert_eq!(stub.seen().len(), 2);
}

#[tokio::test]
async fn web_answers_mean_what_they_say_and_hide_the_query() {
    for (status, expected) in [
        ("403 Forbidden", "use http://HOST/a%20b/file.csv: permission denied (403 Forbidden)"),
        ("401 Unauthorized", "use http://HOST/a%20b/file.csv: permission denied (401 Unauthorized)"),
        ("500 Internal Server Error", "look at http://HOST/a%20b/file.csv: 500 Internal Server Error"),
        ("503 Service Unavailable", "reach http://HOST: 503 Service Unavailable"),
    ] {
        let (stub, uri) = http(move |_| answer(status, "", "")).await;
        assert_eq!(refusal(&plain(), &uri).await.replace(&stub.address, "HOST"), expected);
    }
    let (_, uri) = http(|_| answer("404 Not Found", "", "")).await;
    assert_eq!(look(&plain(), &uri).await, Ok(None));
}

#[tokio::test]
async fn web_files_are_read_within_limits_and_never_listed_or_changed() {
    let (stub, uri) = http(|_| answer("200 OK", "", "a,b\n")).await;
    let place = place(&plain(), &uri);
    assert_eq!(place.files.read(&place.path, 4).await.unwrap(), "a,b\n");
    let told = |error: kelos_storage::StorageError| error.to_string().replace(&stub.address, "HOST");
    assert_eq!(
        told(place.files.read(&place.path, 3).await.unwrap_err()),
        "read http://HOST/a%20b/file.csv: it is larger than the 3 bytes that are read at most"
    );
    assert_eq!(
        told(place.files.list(&place.path).await.unwrap_err()),
        "list http://HOST/a%20b/file.csv: web servers have no way of listing; wait for a file that is written last"
    );
    assert_eq!(
        told(place.files.put(&place.path, &mut b"x".as_slice()).await.unwrap_err()),
        "write http://HOST/a%20b/file.csv: files of web servers can be looked at and read only"
    );
}

/// An address where nothing listens.
async fn nobody() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    listener.local_addr().unwrap().to_string()
}

#[tokio::test]
async fn connections_that_are_refused_are_told_alike() {
    let address = nobody().await;
    let s3 = S3Settings { endpoint: Some(format!("http://{address}")), keys: Some(keys()), ..S3Settings::default() };
    let storage = Storage::new(StorageConfig { s3, ..StorageConfig::default() });
    for endpoint in
        [format!("http://{address}"), format!("webhdfs://{address}"), format!("hdfs://{address}"), "s3://box".into()]
    {
        let expected = format!("reach {endpoint}: connection refused");
        assert_eq!(refusal(&storage, &format!("{endpoint}/x")).await, expected);
    }
    // Two looks each, and one more breaks it.
    let uri = format!("hdfs://{address}/x");
    refusal(&storage, &uri).await;
    let told = refusal(&storage, &uri).await;
    assert!(told.starts_with(&format!("reach hdfs://{address}: failing since 20")), "{told}");
    assert!(told.ends_with("Z: connection refused; next try in 1 s"), "{told}");
    let broken: Vec<String> =
        storage.health().into_iter().filter(|one| one.broken.is_some()).map(|one| one.endpoint).collect();
    assert_eq!(broken, [format!("hdfs://{address}")]);
}

fn exception(class: &str, message: &str) -> String {
    format!(
        "{{\"RemoteException\":{{\"exception\":\"{class}\",\"javaClassName\":\"x.{class}\",\"message\":\"{message}\"}}}}"
    )
}

fn of_user(user: &str, hadoop: Option<HadoopConf>) -> Storage {
    Storage::new(StorageConfig { hadoop, hadoop_user: Some(user.to_owned()), ..StorageConfig::default() })
}

#[tokio::test]
async fn webhdfs_says_who_asks_and_what_is_wrong() {
    for (status, headers, body, expected) in [
        (
            "200 OK",
            "",
            PAGE.to_owned(),
            "reach webhdfs://HOST: expected the JSON of WebHDFS, and got a web page (200 OK): is it the right port, or a proxy?",
        ),
        (
            "401 Unauthorized",
            "WWW-Authenticate: Negotiate\r\n",
            PAGE.to_owned(),
            "log in to webhdfs://HOST: it wants Kerberos over HTTP (SPNEGO), which webhdfs: does not have; \
             use hdfs:, or set KELOS_WEBHDFS_TOKEN",
        ),
        (
            "403 Forbidden",
            "",
            exception("AccessControlException", "Permission denied: user=eve"),
            "use webhdfs://HOST/a b: permission denied (Permission denied: user=eve)",
        ),
        (
            "403 Forbidden",
            "",
            exception("StandbyException", "Operation category READ is not supported in state standby"),
            "reach webhdfs://HOST: no name node is active; all that answered stand by",
        ),
        ("502 Bad Gateway", "", PAGE.to_owned(), "reach webhdfs://HOST: 502 Bad Gateway"),
        (
            "404 Not Found",
            "",
            "It looks like you are making an HTTP request to a Hadoop IPC port.".to_owned(),
            "reach webhdfs://HOST: expected the JSON of WebHDFS, and got no JSON (404 Not Found): is it the right port, or a proxy?",
        ),
    ] {
        let stub = Stub::answering(move |_| answer(status, headers, &body)).await;
        let uri = format!("webhdfs://{}/a b", stub.address);
        let told = refusal(&of_user("a&b", None), &uri).await;
        assert_eq!(told.replace(&stub.address, "HOST"), expected);
        assert_eq!(stub.seen()[0], "GET /webhdfs/v1/a%20b?op=GETFILESTATUS&user.name=a%26b HTTP/1.1");
    }
}

#[tokio::test]
async fn a_token_stands_for_the_user_and_is_never_told() {
    let stub = Stub::answering(|_| answer("500 Oops", "", "no")).await;
    let token = Some(Secret("geheim/1".to_owned()));
    let storage = Storage::new(StorageConfig { webhdfs_token: token, ..StorageConfig::default() });
    let told = refusal(&storage, &format!("webhdfs://{}/a", stub.address)).await;
    assert!(!told.contains("geheim"), "{told}");
    assert_eq!(stub.seen(), ["GET /webhdfs/v1/a?op=GETFILESTATUS&delegation=geheim%2F1 HTTP/1.1"]);
}

#[tokio::test]
async fn webhdfs_asks_the_other_name_node_of_a_service() {
    let standby = Stub::answering(|_| answer("403 Forbidden", "", &exception("StandbyException", "standby"))).await;
    let status = r#"{"FileStatus":{"length":7,"modificationTime":1700000000123,"type":"FILE","pathSuffix":""}}"#;
    let active = Stub::answering(move |_| answer("200 OK", "", status)).await;
    let property = |name: &str, value: &str| format!("<property><name>{name}</name><value>{value}</value></property>");
    let hdfs_site = [
        property("dfs.ha.namenodes.Service", "a,b,c"),
        property("dfs.namenode.http-address.Service.a", &nobody().await),
        property("dfs.namenode.http-address.Service.b", &standby.address),
        property("dfs.namenode.http-address.Service.c", &active.address),
    ]
    .concat();
    let conf = HadoopConf::Texts {
        core_site: "<configuration/>".to_owned(),
        hdfs_site: format!("<configuration>{hdfs_site}</configuration>"),
    };
    let storage = of_user("eve", Some(conf));
    for _ in 0..3 {
        let found = look(&storage, "webhdfs://Service/x").await.unwrap().unwrap();
        assert_eq!((found.bytes, found.modified.unwrap().as_millisecond()), (7, 1_700_000_000_123));
    }
    assert_eq!((standby.seen().len(), active.seen().len()), (1, 3), "the active one is remembered");
}

#[tokio::test]
async fn a_data_node_that_is_away_is_named() {
    let away = nobody().await;
    let location = format!("Location: http://{away}/webhdfs/v1/x?op=OPEN&token=geheim\r\n");
    let stub = Stub::answering(move |_| answer("307 Temporary Redirect", &location, "")).await;
    let place = place(&plain(), &format!("webhdfs://{}/x", stub.address));
    let told = place.files.read("/x", 10).await.unwrap_err().to_string();
    assert_eq!(told, format!("read webhdfs://{}/x: the data node {away}: connection refused", stub.address));
}

fn keys() -> S3Keys {
    S3Keys { id: "AKIA".to_owned(), secret: Secret("geheim".to_owned()) }
}

fn bucket(stub: &Stub) -> Storage {
    let endpoint = Some(format!("http://{}", stub.address));
    let s3 = S3Settings { endpoint, keys: Some(keys()), ..S3Settings::default() };
    Storage::new(StorageConfig { s3, ..StorageConfig::default() })
}

fn s3_error(code: &str) -> String {
    format!("<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>words</Message><RequestId>1</RequestId></Error>")
}

#[tokio::test]
async fn object_stores_say_what_is_wrong() {
    for (status, body, expected) in [
        (
            "403 Forbidden",
            s3_error("InvalidAccessKeyId"),
            "log in to s3://box: InvalidAccessKeyId: words; credentials come from \
             AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE, or the role of the machine",
        ),
        ("403 Forbidden", s3_error("AccessDenied"), "use s3://box/a: permission denied (AccessDenied: words)"),
        ("404 Not Found", s3_error("NoSuchBucket"), "list s3://box/a: there is no such bucket"),
        ("404 Not Found", PAGE.to_owned(), "list s3://box/a: there is no such bucket"),
        ("503 Slow Down", s3_error("SlowDown"), "reach s3://box: it asks for fewer requests"),
        (
            "502 Bad Gateway",
            PAGE.to_owned(),
            "reach s3://box: it answered with a web page: is it the right address, or a proxy?",
        ),
        (
            "200 OK",
            PAGE.to_owned(),
            "reach s3://box: it answered with a web page: is it the right address, or a proxy?",
        ),
    ] {
        let kind = if body == PAGE { "Content-Type: text/html\r\n" } else { "Content-Type: application/xml\r\n" };
        let stub = Stub::answering(move |_| answer(status, kind, &body)).await;
        let place = place(&bucket(&stub), "s3://box/a");
        let told = place.files.list("/a").await.unwrap_err().to_string();
        assert_eq!(told, expected, "{status}");
    }
}

#[tokio::test]
async fn a_bucket_is_listed_page_by_page() {
    let stub = Stub::answering(|request| {
        let is_second = request.lines().next().unwrap().contains("continuation-token=next");
        let key = if is_second { "a/2" } else { "a/1" };
        let more = if is_second { "" } else { "<NextContinuationToken>next</NextContinuationToken>" };
        let body = format!(
            "<ListBucketResult><IsTruncated>{}</IsTruncated>{more}<Contents><Key>{key}</Key>\
             <LastModified>2015-10-21T07:28:00.000Z</LastModified><ETag>\"x\"</ETag><Size>5</Size></Contents></ListBucketResult>",
            !is_second
        );
        answer("200 OK", "Content-Type: application/xml\r\n", &body)
    })
    .await;
    let place = place(&bucket(&stub), "s3://box/a");
    let listed = place.files.list("/a").await.unwrap().unwrap();
    let names: Vec<&str> = listed.iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(names, ["1", "2"]);
    assert_eq!(stub.seen().len(), 2);
}

#[test]
fn a_place_is_opened_once_for_all_that_mean_the_same() {
    let storage = plain();
    for uri in [
        "s3://box/a",
        "s3a://box/b",
        "s3n://box",
        "HTTP://Host/x",
        "http://host/y",
        "hdfs://nn/x",
        "hdfs://me@nn:8020/y",
    ] {
        place(&storage, uri);
    }
    let endpoints: Vec<String> = storage.health().into_iter().map(|one| one.endpoint).collect();
    assert_eq!(endpoints, ["hdfs://nn:8020", "http://host", "s3://box"]);
}

#[test]
fn what_a_uri_lacks_is_said() {
    let told = |uri: &str| plain().place(uri).map(|_| ()).unwrap_err().to_string();
    assert_eq!(
        told("hdfs:///a"),
        "understand \"hdfs:///a\": without a server it needs fs.defaultFS in core-site.xml (in the folder \
         HADOOP_CONF_DIR); or name one: hdfs://SERVER/…"
    );
    let conf = Some(HadoopConf::Folder("/no/such/folder".into()));
    let told = of_user("eve", conf).place("hdfs://nn/a").map(|_| ()).unwrap_err().to_string();
    assert_eq!(
        told,
        "read /no/such/folder/core-site.xml: nothing is there; HADOOP_CONF_DIR has to name the folder with core-site.xml"
    );
}
