//! A database of the fourth schema, whose ids of schedules and programs did not escape separators inside of their parts.

use kelos_model::workflow::{EventKeys, Keys, Program};
use kelos_model::{Collection, SlotState, Trigger};
use kelos_store::StoredState;

use super::*;

fn id(name: &str) -> WorkflowId {
    WorkflowId::new(name).unwrap()
}

fn program(project: &str, kind: Option<&str>, name: &str, old: &str) -> Workflow {
    let keys = Keys::Requests(Box::new(Program { name: name.to_owned(), kind: kind.map(str::to_owned) }));
    let mut settings = serde_json::Map::new();
    settings.insert("workflow".to_owned(), "A.b.c".into());
    let workflow = Workflow::keyed(id(old), keys, Job::new("command", settings));
    Workflow { project: project.to_owned(), ..workflow }
}

/// A schedule that runs a program once another has ended.
fn schedule(project: &str, name: &str, old: &str, runs: &str, after: &str) -> Workflow {
    let keys = EventKeys::new(name, id(runs));
    let trigger = Trigger::Ended { program: id(after), states: vec![SlotState::Succeeded] };
    let workflow = Workflow::keyed(id(old), Keys::Events(Box::new(keys)), Job::new("command", serde_json::Map::new()));
    Workflow { project: project.to_owned(), trigger, ..workflow }
}

fn ended(program: &str) -> Occurrence {
    let arguments = [("program".to_owned(), "A.b.c".into())].into();
    let (state, run) = (SlotState::Succeeded, Some("1".to_owned()));
    Occurrence::Ended { program: id(program), state, run, arguments, outputs: serde_json::Map::new() }
}

fn fill(conn: &Connection, definitions: &[Workflow]) {
    for (number, definition) in definitions.iter().enumerate() {
        let (number, name) = (number as i64 + 1, definition.id.as_str());
        let sql = "INSERT INTO workflows (id, name, slots, version, present, paused, planned) VALUES
            (?1, ?2, ?1 = 1, 1, 1, 1, '{\"ranges\":[],\"schedule\":\"\"}')";
        conn.execute(sql, rusqlite::params![number, name]).unwrap();
        let sql = "INSERT INTO definitions (workflow, version, at, definition) VALUES (?1, 1, 5, ?2)";
        conn.execute(sql, rusqlite::params![number, serde_json::to_string(definition).unwrap()]).unwrap();
    }
    let what = ended("A.b.c");
    let mut collected = Collection::new(moment(5));
    collected.add(&what);
    let sql =
        "INSERT INTO slots (scheduled_at, workflow, key, state, since, retries, last_run, last_run_seq, run_alive,
            priority, said, last_event, collected) VALUES (60000, 1, '', 0, 5, 0, 0, 0, 0, 0, 0, 3, ?1)";
    conn.execute(sql, [serde_json::to_string(&collected).unwrap()]).unwrap();
    let fact = Fact { source: "runs".into(), key: Some("1".into()), what: what.clone() };
    let sql = "INSERT INTO facts (source, about, key, seq) VALUES ('runs', 'ended:succeeded:A.b.c', '1', 1)";
    conn.execute(sql, []).unwrap();
    let planned = SlotEvent::planned(Origin::Fact, 0);
    let told = SlotEvent::Collected { what, fact: Some(1) };
    let bodies = [
        (None, None, serde_json::to_string(&Event::Fact { fact, by: None }).unwrap()),
        (Some(1), Some(60_000), serde_json::to_string(&planned).unwrap()),
        (Some(1), Some(60_000), serde_json::to_string(&told).unwrap()),
    ];
    for (index, (workflow, at, body)) in bodies.into_iter().enumerate() {
        let seq = index as i64 + 1;
        let key = at.map(|_: i64| "");
        let sql = "INSERT INTO events (seq, at, previous, workflow, scheduled_at, key, body) VALUES (?1, 5, ?2, ?3, ?4, ?5, ?6)";
        let previous = if seq == 3 { 2 } else { 0 };
        conn.execute(sql, rusqlite::params![seq, previous, workflow, at, key, body]).unwrap();
    }
}

#[test]
fn names_with_separators_in_their_parts_are_those_that_they_are_by_now() {
    let folder = Folder::new();
    let mut conn = Connection::open(folder.path()).unwrap();
    migrate(&mut conn, &STEPS[..4], "x").unwrap();
    let definitions = [
        schedule("V~1.2", "3.S", "V~1.2.3.S", "V~1.2.3.W", "A.b.c"),
        program("V~1.2", None, "3.W", "V~1.2.3.W"),
        program("A", None, "b.c", "A.b.c"),
        program("A", Some("spark"), "x:y", "A.spark:x:y"),
        // These have the same ids as ever.
        program("V~1.2.4", None, "W", "V~1.2.4.W"),
        schedule("V~1.2.4", "S", "V~1.2.4.S", "V~1.2.4.W", "Other.p.q"),
        // A workflow of a script that has a dot in its name belongs to no project in this way.
        Workflow::new(
            id("hourly.report"),
            Schedule::Cron(CronSchedule::hourly()),
            Job::new("command", serde_json::Map::new()),
        ),
    ];
    fill(&conn, &definitions);
    drop(conn);

    let mut store = folder.open();
    let rows = store.restore().unwrap().workflows;
    let names: Vec<&str> = rows.iter().map(|row| row.id.as_str()).collect();
    let expected = ["A.b~.c", "A.spark:x~:y", "V~1.2.3~.S", "V~1.2.3~.W", "V~1.2.4.S", "V~1.2.4.W", "hourly.report"];
    let sorted =
        |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<std::collections::BTreeSet<_>>();
    assert_eq!(sorted(&names), sorted(&expected));
    assert!(rows.iter().all(|row| row.id == row.definition.id && row.paused != row.definition.keys.events().is_some()));
    let reader = store.reader();
    let schedule = reader.workflow(&id("V~1.2.3~.S")).unwrap().unwrap().definition;
    assert_eq!(schedule.program(), &id("V~1.2.3~.W"));
    let states = vec![SlotState::Succeeded];
    assert_eq!(schedule.trigger, Trigger::Ended { program: id("A.b~.c"), states: states.clone() });
    let kept = reader.workflow(&id("V~1.2.4.S")).unwrap().unwrap().definition;
    assert_eq!(kept.trigger, Trigger::Ended { program: id("Other.p.q"), states }, "it was never defined");
    let job = &reader.workflow(&id("A.b~.c")).unwrap().unwrap().definition.job;
    assert_eq!(job.settings["workflow"], "A.b.c", "that is what a person wrote");

    let slot = SlotRef::moment(id("V~1.2.3~.S"), moment(60_000));
    let found = store.restore().unwrap().slots.into_iter().find(|row| row.id == slot).unwrap().slot;
    let collected = found.collected.clone().unwrap();
    assert_eq!(collected.tallies.values().next().unwrap().first.as_deref(), Some(&ended("A.b~.c")));
    assert_eq!(collected.of(&ended("A.b~.c").subject()).unwrap().facts, 1);
    // The log folds to the row.
    let folded = reader.history(&slot).unwrap().iter().fold(None, |slot, record| {
        let Event::Slot { what, .. } = &record.event else { panic!("{record:?}") };
        Some(apply(slot, what, record.at, record.seq).unwrap())
    });
    assert_eq!(folded.unwrap().collected.unwrap().tallies, collected.tallies);
    let Event::Fact { fact, .. } =
        &reader.events(&EventFilter::about(About::Facts), PageRequest::newest(9)).unwrap().rows[0].event
    else {
        panic!("no fact")
    };
    assert_eq!(fact.what, ended("A.b~.c"));
    assert_eq!(store.known_facts(&[fact.name().unwrap()]).unwrap(), [fact.name().unwrap()]);
    assert_eq!(store.damage(99).unwrap(), [] as [&str; 0]);
}
