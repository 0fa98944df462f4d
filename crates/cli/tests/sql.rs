//! `kelos sql`, while a server runs and after it.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Stdio};

use crate::support::{Folder, Server, eventually, kelos};
use serde_json::json;

const SCRIPT: &str = r#"
celos.defineWorkflow({ id: "report", schedule: celos.cronSchedule("0 0 * * * ?"), startTime: "2026-01-01T00:00Z",
  schedulingStrategy: celos.serialSchedulingStrategy(), trigger: celos.fileCheckTrigger("/nowhere/${year}"),
  externalService: celos.commandExternalService({ command: ["sh", "-c", "exit $KELOS_ARG_code"] }) });
"#;

#[test]
fn the_data_are_queried_while_the_server_goes_on_and_afterwards() {
    let folder = Folder::with(&[("workflows/report.js", SCRIPT)]);
    let server = Server::up(&folder);
    eventually("the workflow", || folder.run(&["ls"]).ok().contains("report").then_some(()));
    for code in ["0", "3"] {
        folder.run(&["start", "report", "--argument", &format!("code={code}")]).ok();
    }
    let ended = "select workflow, number, state, reason from runs where ended_at is not null order by state desc";
    let found = eventually("both ends", || {
        let found = folder.json(&["sql", "--json", ended]);
        (found.as_array().map(Vec::len) == Some(2)).then_some(found)
    });
    assert_eq!(found[0], json!({ "workflow": "report", "number": 1, "state": "succeeded", "reason": null }));
    assert_eq!(found[1]["state"], "failed");
    let key = folder.json(&["sql", "--json", "select key from slots where state = 'failed'"])[0]["key"].clone();
    let why = folder.run(&["why", "report", key.as_str().expect("a key")]).ok();
    assert!(why.contains("failed"), "the key is one that other commands take: {why}");
    assert!(server.stop().success());

    let csv = folder.run(&["sql", "--csv", "select 'a \"b\", c' as text, null as empty, 1.5 as number"]).ok();
    assert_eq!(csv, "text,empty,number\n\"a \"\"b\"\", c\",,1.5\n");
    let table = folder.run(&["sql", "select workflow, count(*) as runs from runs group by 1"]).ok();
    assert_eq!(
        table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).collect::<Vec<_>>(),
        [["WORKFLOW", "RUNS"], ["report", "2"]]
    );
    assert_eq!(folder.run(&["sql", "--json", "select 1 as one from runs limit 0"]).ok(), "[]\n");
    let views = folder.run(&["sql"]).ok();
    assert!(views.contains("registers") && views.contains("bucket, key, value"), "{views}");
    let views = folder.json(&["sql", "--json"]);
    assert_eq!(views["facts"], json!(["source", "about", "key", "position"]));

    for (query, told) in [
        ("select * from slot", "failed to answer the query: no such table: slot"),
        ("select * from main.slots", "slots.scheduled_at is prohibited; a query can read workflows"),
    ] {
        let said = folder.run(&["sql", query]);
        assert_eq!(said.code, 2, "{said:?}");
        assert!(said.err.contains(told) && said.err.contains("lists the views"), "{said:?}");
    }
    let said = Folder::with(&[]).run(&["sql", "select 1"]);
    assert!(said.code == 2 && said.err.contains("there is no such database") && said.err.contains("--db"), "{said:?}");
}

/// Five thousand rows of four thousand bytes: more than waits between two programs.
const LONG: &str = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 5000) \
                    select i, hex(zeroblob(2000)) as text from n";

/// A query of which nothing is read yet.
fn unread(folder: &Folder, timeout: &str, form: &str) -> Child {
    let form = if form == "--table" { &[][..] } else { &[form] };
    let mut command = kelos(&[&["sql", "--timeout", timeout], form, &[LONG]].concat());
    let piped = command.current_dir(folder.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
    piped.spawn().expect("kelos sql starts")
}

fn ended(query: &mut Child) -> (Option<i32>, String) {
    let status = eventually("the end of the query", || query.try_wait().expect("a status"));
    let mut said = String::new();
    query.stderr.take().expect("a pipe").read_to_string(&mut said).expect("text");
    (status.code(), said)
}

#[test]
fn a_query_whose_output_nobody_takes_ends_with_its_time_and_one_whose_reader_goes_away_ends_quietly() {
    let folder = Folder::with(&[("workflows/report.js", SCRIPT)]);
    assert!(Server::up(&folder).stop().success());
    for form in ["--csv", "--json", "--table"] {
        let (code, said) = ended(&mut unread(&folder, "1", form));
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains("failed to print the answer: its reader did not take it within 1 s"), "{said}");

        let mut query = unread(&folder, "60", form);
        let mut first = String::new();
        BufReader::new(query.stdout.take().expect("a pipe")).read_line(&mut first).expect("a line");
        assert_eq!(ended(&mut query), (Some(0), String::new()), "{first}");
    }
    let all = folder.run(&["sql", "--csv", LONG]).ok();
    assert_eq!((all.lines().count(), all.lines().last().map(|line| &line[..8])), (5_001, Some("5000,000")));
    // A table has the same rows, below one line of headings, in the columns of its first part.
    let all = folder.run(&["sql", LONG]).ok();
    let (first, last) = (all.lines().next().unwrap(), all.lines().last().unwrap());
    assert_eq!((all.lines().count(), &first[..7], &last[..9]), (5_001, "I    TE", "5000  000"));
}

#[test]
fn a_query_that_never_ends_ends_with_its_time_in_every_form_and_a_value_has_a_longest_length() {
    let folder = Folder::with(&[("workflows/report.js", SCRIPT)]);
    assert!(Server::up(&folder).stop().success());
    let endless = "with recursive n(i) as (select 1 union all select i + 1 from n) select i, i * 2 as twice from n";
    // A text is searched within one function, which can't be interrupted.
    let stubborn = "select instr(printf('%.60000000c', 'a'), printf('%.30000000c', 'a') || 'b') as found";
    for form in ["--csv", "--json", "--"] {
        let said = folder.run(&["sql", "--timeout", "1", form, endless]);
        assert!(said.code == 1 && said.err.contains("it took longer than 1 s"), "{form}: {} {}", said.code, said.err);
        let said = folder.run(&["sql", "--timeout", "1", form, stubborn]);
        assert!(said.code == 1 && said.err.contains("it took longer than 1 s"), "{form}: {said:?}");
        let said = folder.run(&["sql", "--timeout", "8", form, "select hex(zeroblob(400000000)) as long"]);
        assert!(said.code == 2 && said.err.contains("string or blob too big"), "{form}: {said:?}");
    }
    let table = folder.run(&["sql", "select hex(zeroblob(10000000)) as long"]).ok();
    assert!(table.len() < 11_000 && table.contains("0… (cut: 20000000 bytes; --json prints all)"), "{}", table.len());
    let json = folder.json(&["sql", "--json", "select hex(zeroblob(10000000)) as long"]);
    assert_eq!(json[0]["long"].as_str().map(str::len), Some(20_000_000));
}
