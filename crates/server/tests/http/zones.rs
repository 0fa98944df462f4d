//! Times of requests without an offset: those of the zone of the workflow that the request is about.

use serde_json::{Value, json};

use crate::support::{NOW, Server, at, workflow};

/// A workflow with a day of Berlin, one that borrows its times, and one with hours in UTC.
async fn server() -> Server {
    let berlin = "schedule: celos.cronSchedule('0 0 0 * * ?', {timeZone: 'Europe/Berlin'})";
    let scripts = [
        workflow("berlin", berlin),
        workflow("after", "schedule: celos.dependentSchedule('berlin')"),
        workflow("hello", "startTime: '2015-09-13T00:00Z'"),
    ];
    Server::start(&scripts.join("\n")).await
}

async fn backfill(server: &Server, body: Value) -> Value {
    server.post_json("/api/v1/backfills", &body.to_string()).await.ok().json()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_month_of_a_backfill_is_one_of_the_workflow() {
    let server = server().await;
    let month =
        |workflow: &str| json!({ "workflow": workflow, "from": "2015-08-01", "to": "2015-09-01", "dryRun": true });
    for id in ["berlin", "after"] {
        let made = backfill(&server, month(id)).await;
        assert_eq!((&made["zone"], &made["created"]["count"]), (&"Europe/Berlin".into(), &31.into()), "{made}");
        assert_eq!(made["from"], "2015-07-31T22:00:00.000Z");
        assert_eq!(made["to"], "2015-08-31T22:00:00.000Z");
        let times = made["created"]["times"].as_array().unwrap();
        assert_eq!((&times[0], &times[30]), (&"2015-07-31T22:00:00.000Z".into(), &"2015-08-30T22:00:00.000Z".into()));
        assert_eq!(made["id"], format!("{id}-2015-08-01-2015-09-01"));
    }
    let mut in_utc = month("berlin");
    in_utc["zone"] = "UTC".into();
    let made = backfill(&server, in_utc).await;
    assert_eq!((&made["zone"], &made["from"]), (&"UTC".into(), &"2015-08-01T00:00:00.000Z".into()));
    let made = backfill(&server, month("hello")).await;
    assert_eq!((&made["zone"], &made["from"]), (&"UTC".into(), &"2015-08-01T00:00:00.000Z".into()));
    // An offset says it all.
    let exact =
        json!({ "workflow": "berlin", "from": "2015-08-01T00:00Z", "to": "2015-08-02T00:00+01:00", "dryRun": true });
    let made = backfill(&server, exact).await;
    assert_eq!((&made["from"], &made["to"]), (&"2015-08-01T00:00:00.000Z".into(), &"2015-08-01T23:00:00.000Z".into()));

    let gap = json!({ "workflow": "berlin", "from": "2015-03-29T02:30", "to": "2015-04-01" });
    let refused = server.post_json("/api/v1/backfills", &gap.to_string()).await;
    assert_eq!(refused.status.as_u16(), 400);
    let detail = refused.json()["detail"].to_string();
    assert!(
        detail.contains("`from`: ") && detail.contains("does not exist on 2015-03-29 in Europe/Berlin"),
        "{detail}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn slots_of_several_zones_are_listed_by_one_that_is_named() {
    let server = server().await;
    server.step(NOW).await;
    let refused = server.get("/api/v1/slots?from=2015-09-13").await;
    assert_eq!(refused.status.as_u16(), 400);
    let (said, hint) = (refused.json()["detail"].to_string(), refused.json()["hint"].to_string());
    let expected = "`from` is 2015-09-13, which is another moment in Europe/Berlin (after) than in UTC (hello)";
    assert!(said.contains(expected) && hint.contains("name a `zone` or a `workflow`"), "{said} {hint}");

    let times = async |query: &str| {
        let list = server.get(&format!("/api/v1/slots?{query}")).await.ok().json();
        let items = list["items"].as_array().unwrap().iter();
        items.map(|slot| slot["time"].as_str().unwrap().replace(":00.000Z", "Z")).collect::<Vec<_>>()
    };
    assert_eq!(
        times("workflow=berlin&from=2015-09-12&to=2015-09-14").await,
        ["2015-09-12T22:00Z", "2015-09-11T22:00Z"]
    );
    assert_eq!(times("workflow=berlin&from=2015-09-12T00:00Z&to=2015-09-14T00:00Z").await, ["2015-09-12T22:00Z"]);
    assert_eq!(times("workflow=berlin&zone=UTC&from=2015-09-12&to=2015-09-13").await, ["2015-09-12T22:00Z"]);
    assert_eq!(times("zone=Europe/Berlin&from=2015-09-13&to=2015-09-13T01:00").await.len(), 2, "two days, no hour");
    assert_eq!(server.get("/api/v1/runs?from=2015-09-13").await.status.as_u16(), 400);
    server.get("/api/v1/runs?from=2015-09-13&zone=UTC").await.ok();

    let listed = server.get("/api/v1/workflows").await.ok().json();
    let zones: Vec<&Value> = listed["items"].as_array().unwrap().iter().map(|one| &one["zone"]).collect();
    assert_eq!(zones, ["Europe/Berlin", "Europe/Berlin", "UTC"]);
    let next = server.get("/api/v1/workflows/berlin/times?after=2015-10-25&count=2").await.ok().json();
    assert_eq!(next["times"], json!(["2015-10-25T23:00:00.000Z", "2015-10-26T23:00:00.000Z"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn forms_have_the_zone_of_the_workflow() {
    let server = server().await;
    let page = async |uri: &str| server.get(uri).await.ok().text;
    let empty = page("/ui/new-backfill").await;
    assert!(empty.contains("in the time zone of the workflow"), "{empty}");
    let form = page("/ui/new-backfill?workflow=berlin").await;
    assert!(form.contains("value=\"2015-09-13T17:01\"") && form.contains(" Europe/Berlin</label>"), "{form}");
    let preview = page("/ui/new-backfill?workflow=berlin&from=2015-08-01T00:00&to=2015-09-01T00:00").await;
    assert!(preview.contains("It would affect 31 slots"), "{preview}");
    assert!(preview.contains("(2015-08-01 00:00 to before 2015-09-01 00:00 in Europe/Berlin)"), "{preview}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_column_of_the_board_is_a_day_of_its_zone() {
    let server = server().await;
    server.step(NOW).await;
    let page = async |query: &str| server.get(&format!("/ui?zoom=1440&zone=Europe/Berlin{query}")).await.ok().text;
    let board = page("").await;
    let first = at("2015-09-06T22:00Z").as_millisecond();
    assert!(board.contains(&format!("data-start=\"{first}\"")) && !board.contains("data-edges"), "{board}");
    // The day that began at 22:00 in UTC is today's, and has its slot in the newest column.
    let row = board.split_once("data-w=\"berlin\"").expect("a row").1;
    let cells = row.split_once("class=\"cells\"").expect("cells").1;
    let letters = cells.split(['>', '<']).nth(1).expect("letters");
    assert!(letters.len() == 7 && !letters.contains('.'), "{letters}");
    // On 25 October the clocks were put back.
    let autumn = page("&time=2015-10-26T12:00Z&columns=4").await;
    let edges =
        ["2015-10-22T22:00Z", "2015-10-23T22:00Z", "2015-10-24T22:00Z", "2015-10-25T23:00Z", "2015-10-26T23:00Z"];
    let edges = edges.map(|edge| at(edge).as_millisecond().to_string()).join(",");
    assert!(autumn.contains(&format!("data-edges=\"{edges}\"")), "{autumn}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_of_a_day_says_which_day_it_is() {
    let day = "schedule: celos.calendar('daily', {timeZone: 'Europe/Paris'}), startTime: '2015-09-10T22:00Z'";
    let server = Server::start(&workflow("visits", day)).await;
    server.step(NOW).await;
    let page = server.get("/ui/workflows/visits/slots/2015-09-11T22:00Z").await.ok().text;
    assert!(page.contains("whose period begins on 2015-09-12 in Europe/Paris"), "{page}");
}
