//! Leaders that stand still, and data that is damaged: with real processes.

use std::path::Path;

use crate::support::{Folder, Server, eventually};
use serde_json::Value;

const TICK: &str = r#"celos.defineWorkflow({
    "id": "tick",
    "schedule": celos.minutelySchedule(),
    "schedulingStrategy": celos.serialSchedulingStrategy(9),
    "trigger": celos.alwaysTrigger(),
    "externalService": celos.commandExternalService({"shell": "true"})
});
"#;

fn folder() -> Folder {
    let folder = Folder::with(&[("workflows/tick.js", TICK)]);
    for name in ["defaults", "db"] {
        std::fs::create_dir(folder.path().join(name)).expect("a folder");
    }
    folder
}

fn serve(dir: &Path) -> Server {
    let mut args = vec!["serve", "--port=0", "--workflows=workflows", "--defaults=defaults"];
    args.extend(["--db=db", "--autoSchedule=1", "--planning-window=10m"]);
    Server::start(dir, &args, "every 1 s\n")
}

/// What a server says of itself, with the status of the answer.
fn health(server: &Server) -> (u16, Value) {
    let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let mut answer = agent.get(format!("{}/api/v1/health", server.address())).call().expect("an answer");
    let body = answer.body_mut().read_to_string().expect("text");
    (answer.status().as_u16(), serde_json::from_str(&body).expect("JSON"))
}

fn becomes(server: &Server, status: &str) -> Value {
    eventually(status, || Some(health(server).1).filter(|health| health["status"] == status))
}

/// How many slots have succeeded, as a server sees it.
fn succeeded(folder: &Folder, server: &Server) -> usize {
    folder.run(&["slots", "tick", "--all", "--server", server.address()]).ok().matches("succeeded").count()
}

#[test]
fn a_leader_that_stands_still_is_taken_over_and_stands_by_when_it_goes_on() {
    let folder = folder();
    let first = serve(folder.path());
    becomes(&first, "leading");
    eventually("succeeded", || (succeeded(&folder, &first) >= 9).then_some(()));
    let second = serve(folder.path());
    becomes(&second, "standby");
    first.signal("STOP");
    becomes(&second, "leading");
    // It schedules: what is opened now runs.
    let address = second.address().to_owned();
    let slots = folder.json(&["slots", "tick", "--json", "--server", &address]);
    let mut slots = slots["items"].as_array().expect("items").iter();
    // The newest may have come to be with the minute that has just begun.
    let ended = slots.find(|slot| slot["state"] == "succeeded").expect("one that succeeded");
    let time = ended["time"].as_str().expect("a time").to_owned();
    folder.run(&["rerun", "tick", &time, "--server", &address]).ok();
    let runs = |number: usize| {
        let slot = folder.json(&["why", "tick", &time, "--json", "--server", &address]).to_string();
        (slot.matches("succeeded").count() >= number).then_some(())
    };
    eventually("run again", || runs(1));
    first.signal("CONT");
    becomes(&first, "standby");
    assert_eq!(health(&second).1["status"], "leading");
    // Whichever ends makes room for the other one.
    second.crash();
    becomes(&first, "leading");
    assert!(first.stop().success());
}

#[test]
fn a_database_that_goes_under_a_server_is_told_by_everything_that_it_says() {
    let folder = folder();
    let mut server = serve(folder.path());
    becomes(&server, "leading");
    std::fs::rename(folder.path().join("db/kelos.db"), folder.path().join("db/away")).expect("another name");
    becomes(&server, "damaged");
    let (status, health) = health(&server);
    assert_eq!(status, 503);
    assert!(health["reason"].as_str().expect("a reason").contains("was deleted while it was in use"), "{health}");
    assert!(health["hint"].as_str().expect("a hint").contains("kelos verify"), "{health}");
    let page = ureq::get(format!("{}/ui", server.address()))
        .call()
        .expect("a page")
        .body_mut()
        .read_to_string()
        .expect("text");
    assert!(page.contains("The database is damaged, and nothing is scheduled."), "{page}");
    // Put back, it goes on by itself.
    std::fs::rename(folder.path().join("db/away"), folder.path().join("db/kelos.db")).expect("its old name");
    becomes(&server, "leading");
    std::fs::remove_file(folder.path().join("db/kelos.db")).expect("to be deleted");
    becomes(&server, "damaged");
    server.signal("TERM");
    let ended = eventually("ended", || server.try_wait());
    assert_eq!(ended.code(), Some(4));
}

#[test]
fn a_log_that_is_lost_is_missed_until_people_say_that_it_may_be() {
    let folder = Folder::with(&[("workflows/tick.js", TICK)]);
    let server = Server::up(&folder);
    eventually("succeeded", || {
        (folder.run(&["slots", "tick", "--all"]).ok().matches("succeeded").count() >= 9).then_some(())
    });
    assert!(folder.run(&["verify", "--accept"]).fails(1).contains("a server uses"), "while it runs");
    assert!(folder.run(&["verify"]).ok().contains("matches its checksums"));
    server.crash();
    std::fs::remove_file(folder.path().join(".kelos/kelos.db-wal")).expect("to be deleted");
    let said = folder.run(&["up", "--port", "0"]).fails(4);
    assert!(said.contains("had been committed") && said.contains("kelos verify --accept"), "{said}");
    let said = folder.run(&["verify"]);
    assert!(said.code == 4 && said.out.contains("had been committed"), "{}{}", said.out, said.err);
    assert!(folder.run(&["verify", "--accept"]).ok().contains("is accepted as it is"));
    let server = Server::up(&folder);
    assert!(server.stop().success());
}
