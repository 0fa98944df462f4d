//! One truth about failure: whatever happened, each surface shows the same failures, and none of their followers.

use std::collections::{BTreeMap, BTreeSet};

use axum::http::Method;
use serde_json::Value;

use crate::board::between;
use crate::dice::{Dice, seeds};
use crate::support::{NOW, Server, Setup, slot, workflow};

/// A workflow upstream, and how many hours earlier its slot is.
type Parent = Option<(&'static str, i64)>;

/// Each workflow with the one that it waits for, how many hours earlier, and more of its definition.
const WORKFLOWS: [(&str, Parent, &str); 6] = [
    ("a", None, ""),
    ("b", Some(("a", 0)), "waitTimeoutSeconds: 5400"),
    ("c", Some(("b", 0)), ""),
    ("d", Some(("c", 0)), "waitTimeoutSeconds: 5400"),
    ("e", Some(("e", 1)), "waitTimeoutSeconds: 5400"),
    ("f", Some(("d", 1)), ""),
];

fn script(without: &str) -> String {
    let define = |(id, on, more): &(&str, Parent, &str)| {
        let trigger = match on {
            None => "celos.alwaysTrigger()".to_owned(),
            Some((on, 0)) => format!("celos.successTrigger('{on}')"),
            Some((on, hours)) => format!("celos.offsetTrigger(-{}, celos.successTrigger('{on}'))", hours * 3600),
        };
        workflow(id, &format!("startTime: '2015-09-13T10:00Z', trigger: {trigger}, {more}"))
    };
    WORKFLOWS.iter().filter(|(id, _, _)| *id != without).map(define).collect()
}

/// Workflow and hour.
type Name = (String, i64);

fn short((workflow, hour): &Name) -> String {
    format!("{workflow}@2015-09-13T{hour:02}:00Z")
}

/// The states of the slots, from the list of slots.
async fn states(server: &Server) -> BTreeMap<Name, String> {
    let list = server.get("/api/v1/slots?limit=1000").await.ok().json();
    let name = |slot: &Value| {
        (slot["workflow"].as_str().unwrap().to_owned(), slot["time"].as_str().unwrap()[11..13].parse().unwrap())
    };
    let items = list["items"].as_array().unwrap();
    items.iter().map(|slot| (name(slot), slot["state"].as_str().unwrap().to_owned())).collect()
}

/// The failures and followers among slots, by the definition.
struct Expected {
    failures: BTreeSet<Name>,
    followers: BTreeSet<Name>,
}

impl Expected {
    fn of(states: &BTreeMap<Name, String>, removed: &str) -> Expected {
        let state = |name: &Name| states.get(name).map(String::as_str);
        let is_troubled = |name: &Name| matches!(state(name), Some("failed" | "expired")) && name.0 != removed;
        // All that a slot waits for has one name: that of what its trigger looks at, unless it has succeeded.
        let waits_for = |name: &Name| {
            let (on, earlier) = WORKFLOWS.iter().find(|(id, _, _)| *id == name.0)?.1?;
            let waits = matches!(state(name), Some("waiting" | "expired")) && name.0 != removed;
            Some((on.to_owned(), name.1 - earlier)).filter(|_| waits)
        };
        let follows =
            |name: &Name| std::iter::successors(waits_for(name), waits_for).any(|upstream| is_troubled(&upstream));
        let followers = states.keys().filter(|name| follows(name)).cloned().collect();
        let failures = states.keys().filter(|name| is_troubled(name) && !follows(name)).cloned().collect();
        Expected { failures, followers }
    }

    fn names(&self) -> BTreeSet<String> {
        self.failures.iter().map(short).collect()
    }

    fn counts(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        self.failures.iter().for_each(|(workflow, _)| *counts.entry(workflow.clone()).or_default() += 1);
        counts
    }
}

/// Lets something happen at random.
async fn happen(server: &Server, dice: &mut Dice) {
    let states = states(server).await;
    let chosen: Vec<&Name> = states.keys().collect();
    if chosen.is_empty() || dice.one_in(3) {
        return server.step(NOW).await;
    }
    let name = *dice.pick(&chosen);
    let run = slot(&name.0, &format!("2015-09-13T{:02}:00Z", name.1));
    let number = server.node.reader().slot(&run).unwrap().map_or(0, |slot| slot.last_run);
    if server.is_running(&run, number) {
        return server.end(&run, number, dice.one_in(2)).await;
    }
    let (action, body) =
        *dice.pick(&[("rerun", ""), ("mark", r#"{"state": "succeeded"}"#), ("skip", ""), ("kill", "")]);
    if dice.one_in(3) {
        // A request that is not possible now is refused, which is fine.
        let path = format!("/api/v1/workflows/{}/slots/2015-09-13T{:02}:00Z/{action}", name.0, name.1);
        server.ask(Method::POST, &path, body).await;
    }
}

/// Asks each surface.
async fn compare(server: &Server, removed: &str, seed: u64) {
    // Reopened slots are evaluated first.
    server.step(NOW).await;
    let expected = Expected::of(&states(server).await, removed);
    let (names, counts) = (expected.names(), expected.counts());
    let total = names.len();
    let workflows: Vec<&String> = counts.keys().collect();

    // The API, which is what the command line prints.
    let list = server.get("/api/v1/failures").await.ok().json();
    let items = list["items"].as_array().unwrap();
    let name =
        |slot: &Value| format!("{}@{}Z", slot["workflow"].as_str().unwrap(), &slot["time"].as_str().unwrap()[..16]);
    assert_eq!(items.iter().map(name).collect::<BTreeSet<_>>(), names, "seed {seed}: {list}");
    let followers = items.iter().flat_map(|item| item["followers"].as_array().unwrap()).map(name);
    let expected_followers: BTreeSet<String> = expected.followers.iter().map(short).collect();
    assert_eq!(followers.collect::<BTreeSet<_>>(), expected_followers, "seed {seed}: {list}");
    assert_eq!(list["byWorkflow"], serde_json::to_value(&counts).unwrap(), "seed {seed}");
    assert_eq!((&list["more"], &list["partial"]), (&0.into(), &false.into()));

    // Stuck slots.
    let stuck = server.get("/api/v1/stuck").await.ok().json();
    let rows: Vec<&Value> = stuck["items"].as_array().unwrap().iter().collect();
    let failed = rows.iter().filter(|row| row["kind"] == "failed");
    let of =
        |row: &&&Value| (row["workflow"].as_str().unwrap().to_owned(), row["others"].as_u64().unwrap() as usize + 1);
    assert_eq!(failed.clone().map(|row| of(&row)).collect::<BTreeMap<_, _>>(), counts, "seed {seed}: {stuck}");
    let followed: u64 = failed.map(|row| row["followers"].as_u64().unwrap()).sum();
    assert_eq!(followed, expected.followers.len() as u64, "seed {seed}: {stuck}");
    let late = rows.iter().filter(|row| row["kind"] == "late").map(|row| name(row));
    assert_eq!(late.filter(|name| expected_followers.contains(name)).count(), 0, "seed {seed}: {stuck}");
    let page = server.get("/ui/stuck").await.ok().text;
    assert_eq!(page.contains(&format!("{total} failed")), total > 0, "seed {seed}: {page}");

    // Health.
    assert_eq!(server.get("/api/v1/health").await.ok().json()["failures"], total, "seed {seed}");

    // The pages.
    let problems = server.get("/ui/problems").await.ok().text;
    let listed: BTreeSet<String> = between(&problems, "data-failure=\"", "\"").into_iter().map(str::to_owned).collect();
    assert_eq!(listed, names, "seed {seed}: {problems}");
    let graph = server.get("/ui/graph").await.ok().text;
    let mut failing = between(&graph, "data-failing=\"", "\"");
    failing.sort_unstable();
    assert_eq!(failing, workflows, "seed {seed}: {graph}");
    assert_eq!(graph.contains("Nothing has failed"), total == 0, "seed {seed}: {graph}");
    let activity = server.get("/ui/activity").await.ok().text;
    let line = between(&activity, "data-failures=\"", "\"").first().map_or(0, |count| count.parse().unwrap());
    assert_eq!(line, total, "seed {seed}: {activity}");
    let hour = expected.failures.iter().filter(|(_, hour)| *hour == 13).count();
    for (view, shown) in [("?time=2015-09-13T13:30Z&zoom=1", hour), ("", total)] {
        let board = server.get(&format!("/ui{view}")).await.ok().text;
        let told = between(&board, "data-failing=\"", "\"")[0].replace("&quot;", "\"");
        assert_eq!(told, serde_json::to_string(&workflows).unwrap(), "seed {seed}: {board}");
        let outside = between(&board, "data-outside=\"", "\"")[0];
        assert_eq!(outside, (total - shown).to_string(), "seed {seed}: {board}");
        assert_eq!(board.contains("All fine"), total == 0, "seed {seed}: {board}");
        let again = server.get(&format!("/ui/board/failing{view}")).await.ok().json();
        assert_eq!(again, serde_json::json!({ "failing": workflows, "outside": total - shown }), "seed {seed}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_surface_shows_the_same_failures() {
    let mut seen = 0;
    for seed in seeds(6) {
        let mut dice = Dice(seed);
        let server = Server::with(Setup { on_disk: dice.one_in(3), ..Setup::default() }, &script("")).await;
        for _ in 0..3 {
            for _ in 0..12 {
                happen(&server, &mut dice).await;
            }
            compare(&server, "", seed).await;
        }
        seen += Expected::of(&states(&server).await, "").failures.len();
        let removed = dice.of(&["a", "b", "c", "d"]);
        server.write("test.js", &script(removed));
        server.step(NOW).await;
        compare(&server, removed, seed).await;
    }
    assert!(seen > 0, "no failure was compared");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_of_yesterday_is_told_though_later_slots_succeeded() {
    let server = Server::start(&workflow("w", "startTime: '2015-09-12T14:00Z'")).await;
    let old = slot("w", "2015-09-12T14:00Z");
    server.step(NOW).await;
    server.end(&old, 1, false).await;
    server.step(NOW).await;
    server.end(&slot("w", "2015-09-12T15:00Z"), 1, true).await;
    let list = server.get("/api/v1/failures").await.ok().json();
    let expected = (&"failed".into(), &"exited with status 3".into(), &1.into());
    assert_eq!((&list["items"][0]["state"], &list["items"][0]["outcome"], &list["items"][0]["lastRun"]), expected);
    let graph = server.get("/ui/graph?hours=6").await.ok().text;
    assert!(graph.contains("Failing") && !graph.contains("Nothing has failed"), "{graph}");
    // The board shows the last two days; an hour of today says that there is more.
    let board = server.get("/ui?time=2015-09-13T14:30Z&zoom=1").await.ok().text;
    assert!(board.contains("1 failure outside of what is shown"), "{board}");
    server.post("/api/v1/workflows/w/slots/2015-09-12T14:00Z/rerun").await.ok();
    assert_eq!(server.get("/api/v1/failures").await.ok().json()["items"], serde_json::json!([]));
    assert!(server.get("/ui/problems").await.ok().text.contains("nothing has failed"));
}
