//! `kelos rerun`, `kill`, `pause` and `resume`: asking for changes.

use jiff::Timestamp;
use kelos_model::SlotState;
use serde_json::{Value, json};

use crate::args::{ChangeArgs, NamesArgs};
use crate::client::{Client, Query, escape, slot_path, text};
use crate::failure::{BAD, Failure};
use crate::render;
use crate::text::{self as words, count, short};

/// What can be done to a slot.
struct Change {
    verb: &'static str,
    /// Whether it is done to slots that have ended, or to those that have not.
    to_final: bool,
}

pub(crate) fn rerun(args: &ChangeArgs) -> Result<u8, Failure> {
    change(args, &Change { verb: "rerun", to_final: true })
}

pub(crate) fn kill(args: &ChangeArgs) -> Result<u8, Failure> {
    change(args, &Change { verb: "kill", to_final: false })
}

fn change(args: &ChangeArgs, change: &Change) -> Result<u8, Failure> {
    let client = Client::new(&args.door)?;
    let doing = format!("{} {}", change.verb, args.workflow);
    let times = match (args.from, args.to) {
        (Some(from), Some(to)) => in_range(&client, args, change, &doing, from, to)?,
        _ => args.times.clone(),
    };
    let body = match &args.reason {
        Some(reason) => json!({ "reason": reason }),
        None => json!({}),
    };
    let (mut done, mut refused) = (Vec::new(), Vec::new());
    for time in times {
        let path = format!("{}/{}", slot_path(&args.workflow, time), change.verb);
        match client.post(&doing, &path, &body) {
            Ok(slot) => done.push(slot),
            Err(failure) if failure.code == BAD => refused.push((time, failure)),
            Err(failure) => return Err(failure),
        }
    }
    if args.door.json {
        let refused: Vec<Value> = refused
            .iter()
            .map(|(time, failure)| json!({ "time": words::wire(*time), "error": failure.message }))
            .collect();
        let bad = !refused.is_empty();
        words::json(&json!({ "items": done, "refused": refused }));
        return Ok(if bad { BAD } else { 0 });
    }
    for slot in &done {
        let (state, name) = (text(slot, "state"), format!("{}@{}", text(slot, "workflow"), short(text(slot, "time"))));
        words::line(format!("{name} is {}", render::paint(state, state)));
    }
    if done.is_empty() && refused.is_empty() {
        words::line(format!("no slot to {} in that range", change.verb));
    } else if done.len() > 1 {
        words::line(count(done.len(), "slot"));
    }
    refused.iter().for_each(|(_, failure)| failure.print());
    Ok(if refused.is_empty() { 0 } else { BAD })
}

/// The existing slots of a range that it can be done to, oldest first.
fn in_range(
    client: &Client,
    args: &ChangeArgs,
    change: &Change,
    doing: &str,
    from: Timestamp,
    to: Timestamp,
) -> Result<Vec<Timestamp>, Failure> {
    client.get(doing, &format!("/workflows/{}", escape(&args.workflow)), &Query::new())?;
    let states = SlotState::ALL.into_iter().filter(|state| state.is_final() == change.to_final);
    let states: Vec<&str> = states.map(SlotState::as_str).collect();
    let mut query = Query::new();
    query.add("workflow", &args.workflow);
    query.add("state", states.join(","));
    query.add("from", words::wire(from));
    query.add("to", words::wire(to));
    let (rows, _) = client.list(doing, "/slots", &query, usize::MAX)?;
    Ok(rows.iter().rev().filter_map(|row| words::time(text(row, "time")).ok()).collect())
}

pub(crate) fn pause(args: &NamesArgs, pause: bool) -> Result<u8, Failure> {
    let client = Client::new(&args.door)?;
    let (verb, past) = if pause { ("pause", "paused") } else { ("resume", "resumed") };
    let mut done = Vec::new();
    for id in &args.workflows {
        let answer = client.post(&format!("{verb} {id}"), &format!("/workflows/{}/{verb}", escape(id)), &json!({}))?;
        if !args.door.json {
            words::line(format!("{id} is {past}"));
        }
        done.push(answer);
    }
    if args.door.json {
        words::json(&json!({ "items": done }));
    }
    Ok(0)
}
