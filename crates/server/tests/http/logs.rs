//! The output of runs. The files are written by the tests, as a shim writes them.

use std::io::Write;
use std::path::PathBuf;

use kelos_core::TrimHistory;
use kelos_executors::local::RunDirs;
use kelos_executors::run_ref;
use kelos_model::history::Trim;
use kelos_model::{Actor, RunId, SlotRef};
use kelos_store::PageRequest;
use serde_json::json;

use crate::streams::EventStream;
use crate::support::{NOW, Server, Setup, slot, workflow};

const LOG: &str = "/api/v1/workflows/w/slots/2015-09-13T15:00Z/runs/1/log";

async fn running() -> (Server, SlotRef, PathBuf) {
    let server = Server::start(&workflow("w", "startTime: '2015-09-13T15:00Z'")).await;
    server.step(NOW).await;
    let slot = slot("w", "2015-09-13T15:00Z");
    let run = RunId { slot: slot.clone(), number: 1 };
    let folder = server.node.launcher().dirs().path(&run_ref(&run));
    std::fs::create_dir_all(&folder).unwrap();
    (server, slot, folder)
}

fn write(folder: &std::path::Path, bytes: &[u8]) {
    let mut file = std::fs::File::options().create(true).append(true).open(folder.join("log")).unwrap();
    file.write_all(bytes).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn output_is_read_piece_by_piece() {
    let (server, slot, folder) = running().await;
    let piece = async |query: &str| {
        let reply = server.get(&format!("{LOG}{query}")).await.ok();
        let headers = ["kelos-next-offset", "kelos-dropped", "kelos-ended"].map(|name| reply.header(name).to_owned());
        (reply.text, headers.join(" "))
    };
    assert_eq!(piece("").await, (String::new(), "0 0 false".to_owned()));
    write(&folder, b"one\ntwo\n");
    assert_eq!(piece("?limit=4").await, ("one\n".to_owned(), "4 0 false".to_owned()));
    assert_eq!(piece("?offset=4").await, ("two\n".to_owned(), "8 0 false".to_owned()));
    // The tail of a long output, behind what is not kept.
    std::fs::write(folder.join("log.tail.100"), "the end").unwrap();
    assert_eq!(piece("?offset=8").await, ("the end".to_owned(), "107 92 false".to_owned()));
    server.end(&slot, 1, true).await;
    assert_eq!(piece("?offset=107").await, (String::new(), "107 0 true".to_owned()));
    assert_eq!(server.get(&format!("{LOG}?limit=0")).await.status, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn output_is_followed_until_the_run_ends() {
    let (server, slot, folder) = running().await;
    let mut followed = EventStream::open(&server, &format!("{LOG}/stream"), None).await;
    // Half a character waits for the other half.
    write(&folder, b"caf\xc3");
    let sent = followed.next().await.unwrap();
    assert_eq!((sent.name.as_str(), sent.id), ("log", 3));
    assert_eq!(sent.data, json!({ "offset": 0, "nextOffset": 3, "dropped": 0, "text": "caf" }));
    write(&folder, b"\xa9\r\n");
    let sent = followed.next().await.unwrap();
    assert_eq!((sent.id, &sent.data["text"]), (7, &"é\r\n".into()));
    write(&folder, b"last");
    server.end(&slot, 1, false).await;
    assert_eq!(followed.next().await.unwrap().data["text"], "last");
    let end = followed.next().await.unwrap();
    assert_eq!((end.name.as_str(), end.id), ("end", 11));
    assert_eq!(end.data["outcome"]["exitStatus"], 3);
    assert_eq!(followed.next().await, None);

    let mut resumed = EventStream::open(&server, &format!("{LOG}/stream"), Some(7)).await;
    assert_eq!(resumed.next().await.unwrap().data["text"], "last");
    let request = axum::http::Request::get(format!("{LOG}/stream")).header("last-event-id", "11");
    let over = server.send(request.body(axum::body::Body::empty()).unwrap()).await;
    assert_eq!(over.told(), (204, ""), "so that browsers stop coming back");
}

#[tokio::test(flavor = "multi_thread")]
async fn output_that_ends_within_a_character_is_told_all_the_same() {
    let (server, slot, folder) = running().await;
    write(&folder, b"caf\xc3");
    server.end(&slot, 1, true).await;
    let mut followed = EventStream::open(&server, &format!("{LOG}/stream"), None).await;
    assert_eq!(followed.next().await.unwrap().data["text"], "caf");
    assert_eq!(followed.next().await.unwrap().data["text"], "\u{fffd}");
    assert_eq!(followed.next().await.unwrap().name, "end");
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_have_times_and_streams() {
    let (server, slot, folder) = running().await;
    let lines = async |query: &str| server.get(&format!("{LOG}/lines{query}")).await.ok().json();
    assert_eq!(lines("").await, json!({ "lines": [], "nextOffset": 0, "dropped": 0, "ended": false }));
    write(&folder, b"one\nbad \xff\nhalf");
    // From 0 on standard output at 1970-01-01T00:00:01Z, from 4 on standard error a millisecond later.
    std::fs::write(folder.join("log.marks"), [0x00, 0xd0, 0x0f, 0x11, 0x02]).unwrap();
    let one =
        json!({ "offset": 0, "at": "1970-01-01T00:00:01.000Z", "stream": "stdout", "text": "one", "whole": true });
    let line = |offset: u64, text: &str, whole: bool| json!({ "offset": offset, "at": "1970-01-01T00:00:01.001Z", "stream": "stderr", "text": text, "whole": whole });
    let (bad, half) = (line(4, "bad \u{fffd}", true), line(10, "half", false));
    assert_eq!(lines("").await, json!({ "lines": [one, bad, half], "nextOffset": 10, "dropped": 0, "ended": false }));
    assert_eq!(lines("?limit=9").await["lines"], json!([one]));
    assert_eq!(lines("?tail=2").await["lines"], json!([bad, half]));
    server.end(&slot, 1, true).await;
    assert_eq!(lines("?offset=10").await, json!({ "lines": [half], "nextOffset": 14, "dropped": 0, "ended": true }));
    assert_eq!(lines("?offset=14").await["ended"], true);
    for wrong in ["?limit=0", "?limit=1048577", "?tail=0", "?tail=10001", "?tail=1&offset=0"] {
        assert_eq!(server.get(&format!("{LOG}/lines{wrong}")).await.status, 400, "{wrong}");
    }
}

const PAGE: &str = "/ui/workflows/w/slots/2015-09-13T15:00Z";

/// Removes the history of slots, whose last event is not the last of the log.
async fn trim(server: &Server, slots: &[&SlotRef]) {
    let reader = server.node.reader();
    let until = reader.turns(PageRequest::newest(1)).unwrap().rows[0].turn;
    let own = slots.iter().flat_map(|slot| reader.history(slot).unwrap());
    let trim = Trim::of(until, own.map(|record| record.seq).collect());
    server.node.handle().ask(&Actor::system("history"), TrimHistory { trim }).await.unwrap();
    assert!(slots.iter().all(|slot| reader.slot_runs(slot).unwrap().is_empty()));
}

#[tokio::test(flavor = "multi_thread")]
async fn output_of_a_run_whose_record_was_removed_is_read_from_its_copy_and_is_gone_without_one() {
    let script = workflow("w", "startTime: '2015-09-13T15:00Z'");
    let server = Server::with(Setup { on_disk: true, has_copies: true, ..Setup::default() }, &script).await;
    let [copied, lost] = ["2015-09-13T15:00Z", "2015-09-13T16:00Z"].map(|time| slot("w", time));
    for (hour, slot) in [(15, &copied), (16, &lost)] {
        server.step(&format!("2015-09-13T{hour}:01:00.000Z")).await;
        server.end(slot, 1, true).await;
    }
    server.step("2015-09-13T17:01:00.000Z").await;
    let run = run_ref(&RunId { slot: copied.clone(), number: 1 });
    let copy = RunDirs::new(server.folder.path().join("copies")).path(&run);
    std::fs::create_dir_all(&copy).unwrap();
    write(&copy, b"one\ntwo\n");
    std::fs::write(copy.join("exit.json"), "{}").unwrap();
    trim(&server, &[&copied, &lost]).await;

    let read = server.get(LOG).await.ok();
    assert_eq!((read.text.as_str(), read.header("kelos-ended")), ("one\ntwo\n", "true"));
    let lines = server.get(&format!("{LOG}/lines?tail=1")).await.ok().json();
    assert_eq!((&lines["lines"][0]["text"], &lines["ended"]), (&"two".into(), &true.into()));
    let mut followed = EventStream::open(&server, &format!("{LOG}/stream"), None).await;
    let sent = followed.next().await.unwrap();
    assert_eq!((sent.name.as_str(), sent.id, &sent.data["text"]), ("log", 8, &"one\ntwo\n".into()));
    assert_eq!(followed.next().await, None, "no record of its end is left");
    let request = axum::http::Request::get(format!("{LOG}/stream")).header("last-event-id", "8");
    let over = server.send(request.body(axum::body::Body::empty()).unwrap()).await;
    assert_eq!(over.told(), (204, ""));
    let page = server.get(PAGE).await.ok().text;
    assert!(page.contains("Removed with the history.") && page.contains("two"), "{page}");
    assert_eq!(server.get(&format!("{PAGE}/runs/1/log.txt")).await.ok().text, "one\ntwo\n");

    let gone = LOG.replace("15:00Z", "16:00Z");
    for path in [gone.clone(), format!("{gone}/lines")] {
        let refused = server.get(&path).await;
        let problem = refused.json();
        assert_eq!((refused.status.as_u16(), &problem["code"]), (410, &"output-removed".into()), "{problem}");
        let detail = "failed to read the output of run w@2015-09-13T16:00:00.000Z#1: \
            it was removed with the history up to 2015-09-13T17:01Z, or there was none";
        assert_eq!(problem["detail"], detail);
    }
    // The record itself is gone, and there never was a second run.
    let record = server.get(gone.trim_end_matches("/log")).await;
    let words = "run 1 of slot w@2015-09-13T16:00Z was removed with the history up to 2015-09-13T17:01Z";
    assert_eq!((record.status.as_u16(), &record.json()["detail"]), (404, &words.into()));
    let never = server.get(&gone.replace("/runs/1/", "/runs/2/")).await;
    assert_eq!((never.status.as_u16(), &never.json()["code"]), (404, &"run-not-found".into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_shows_lines_with_colours_times_and_streams() {
    let (server, slot, folder) = running().await;
    let page = async |query: &str| server.get(&format!("{PAGE}{query}")).await.ok().text;
    write(&folder, b"one\n\x1b[31mKeyError\x1b[0m: <b>\n");
    // From 0 on standard output at 1970-01-01T00:00:01Z, from 4 on standard error a millisecond later.
    std::fs::write(folder.join("log.marks"), [0x00, 0xd0, 0x0f, 0x11, 0x02]).unwrap();
    server.end(&slot, 1, false).await;
    let told = page("").await;
    let out = "<span class=\"row\" data-offset=\"0\" data-at=\"00:00:01.000\" title=\"1970-01-01T00:00:01.000Z, standard output\">one\n</span>";
    assert!(told.contains(out), "{told}");
    let err = "<span id=\"first-error\" class=\"row err\" data-offset=\"4\" data-at=\"00:00:01.001\" \
               title=\"1970-01-01T00:00:01.001Z, standard error\"><span class=\"f1\">KeyError</span>: &lt;b&gt;\n</span>";
    assert!(told.contains(err), "{told}");
    assert!(told.contains("run=1&amp;from=error#first-error"), "{told}");
    assert!(!told.contains("data-stream"), "it is over");
    assert_eq!(server.get(&format!("{PAGE}?from=x")).await.status, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_error_is_found_far_from_the_end() {
    let (server, slot, folder) = running().await;
    let page = async |query: &str| server.get(&format!("{PAGE}{query}")).await.ok().text;
    let quiet = "all is well here\n".repeat(20_000);
    write(&folder, quiet.as_bytes());
    server.end(&slot, 1, false).await;
    assert!(page("?from=error").await.contains("No line of it looks like an error."));
    write(&folder, b"12:00 ERROR it broke\n");
    write(&folder, quiet.as_bytes());
    let told = page("").await;
    assert!(!told.contains("it broke") && told.contains("Show more of its beginning"), "its end is shown");
    assert!(told.len() < 2_000_000, "{} bytes", told.len());
    let told = page("?from=error").await;
    assert!(told.contains("id=\"first-error\"") && told.contains("ERROR it broke"), "{told}");
    assert!(told.contains("id=\"log-later\"") && told.contains("id=\"log-earlier\""), "{told}");
    let told = page("?from=0").await;
    assert!(
        told.contains("data-offset=\"0\"") && told.contains("id=\"log-later\"") && !told.contains("id=\"log-earlier\"")
    );
    let told = page("?from=before-17017").await;
    assert!(told.contains("data-offset=\"17000\"") && !told.contains("data-offset=\"17017\""), "{told}");
    let told = page("?from=before-170000").await;
    let first = told.split("data-offset=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
    assert_eq!(first.parse::<u64>().unwrap() % 17, 0, "whole lines alone");
    // Behind what was dropped.
    std::fs::write(folder.join("log.tail.1000000"), "the end\n").unwrap();
    let told = page("").await;
    assert!(
        told.contains("too long to be kept")
            && told.contains("data-offset=\"1000000\"")
            && told.contains("Show its beginning")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_follows_lines_until_the_run_ends() {
    let (server, slot, folder) = running().await;
    write(&folder, b"one\n");
    let told = server.get(PAGE).await.ok().text;
    let path = format!("{PAGE}/runs/1/lines?from=4");
    assert!(told.contains(&format!("data-stream=\"{path}\"")), "{told}");
    let mut lines = EventStream::open(&server, &path, None).await;
    write(&folder, b"\x1b[32mha");
    let sent = lines.next().await.unwrap().data["rows"].as_str().unwrap().to_owned();
    assert!(sent.contains("<span class=\"f2\">ha</span></span>"), "{sent}");
    write(&folder, b"lf\r\nnext");
    let sent = lines.next().await.unwrap().data["rows"].as_str().unwrap().to_owned();
    assert!(
        sent.contains("data-offset=\"4\"")
            && sent.contains("half</span>")
            && sent.contains("<span class=\"f2\">next</span>"),
        "{sent}"
    );
    server.end(&slot, 1, true).await;
    assert_eq!(lines.next().await.unwrap().name, "end");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_shows_each_command_as_it_was_started_and_no_secrets() {
    let (server, slot, folder) = running().await;
    let env = json!({ "KELOS_SLOT": "w@x", "DB_PASSWORD": "hunter2", "PATH": "/opt/bin" });
    let spec = json!({
        "run": { "workflow": "w", "key": "k", "number": 1 }, "run_id": "w@k#1", "env": env, "inherit_env": true,
        "argv": ["load", "--password", "hunter2", "it's <b>"], "cwd": "/srv", "timeout_ms": 90_000, "log_limit_bytes": null,
    });
    std::fs::write(folder.join("spec.json"), spec.to_string()).unwrap();
    server.end(&slot, 1, false).await;
    let told = server.get(PAGE).await.ok().text;
    let command = "<dt>Command</dt><dd><code>load --password •••••• 'it'\\''s &lt;b&gt;'</code></dd>";
    assert!(told.contains(command), "{told}");
    assert!(told.contains("<dt>Folder</dt><dd><code>/srv</code></dd><dt>Time limit</dt><dd>1 min 30 s</dd>"), "{told}");
    for (name, value) in [("KELOS_SLOT", "w@x"), ("DB_PASSWORD", "••••••"), ("PATH", "/opt/bin")] {
        assert!(told.contains(&format!("<code>{name}</code></dt><dd><code>{value}</code>")), "{name}: {told}");
    }
    assert!(!told.contains("hunter2"), "{told}");
    assert!(told.contains("<dt>Exit status</dt><dd>3</dd>") && told.contains(">version 1</a>"), "{told}");
}
