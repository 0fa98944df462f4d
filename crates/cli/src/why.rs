//! `kelos why`: the account of a slot as a tree, or what determined when it ended.

use jiff::Timestamp;
use serde_json::Value;

use crate::client::{Client, Query, escape, items, key, number, slot as name, slot_path, text};
use crate::failure::Failure;
use crate::options::Door;
use crate::render;
use crate::text::{self as words, short};

#[derive(clap::Args)]
pub(crate) struct WhyArgs {
    /// Workflow of the slot
    workflow: String,
    /// Slot: its time or job id [default: the newest]
    #[arg(value_name = "TIME|JOB_ID", value_parser = words::key, allow_negative_numbers = true)]
    key: Option<String>,
    /// Explain the slot as it was at this time [default: now]
    #[arg(long, value_name = "TIME", value_parser = words::time)]
    at: Option<Timestamp>,
    /// Print the critical path instead: the slots and waits that determined when it ended, or that delay it now
    #[arg(long, conflicts_with = "at")]
    path: bool,
    #[command(flatten)]
    door: Door,
}

pub(crate) fn run(args: &WhyArgs) -> Result<u8, Failure> {
    let client = Client::new(&args.door)?;
    let mut query = Query::new();
    query.add_some("at", args.at.map(words::wire));
    let key = args.key.clone().map_or_else(|| newest(&client, args), Ok)?;
    let slot = slot_path(&args.workflow, &key);
    let (what, tell): (_, fn(&Value) -> Vec<String>) =
        if args.path { ("critical-path", critical_path) } else { ("why", account) };
    let found = client.get("explain the slot", &format!("{slot}/{what}"), &query)?;
    if args.door.form.json {
        words::json(&found);
        return Ok(0);
    }
    words::print(&(tell(&found).join("\n") + "\n"));
    Ok(0)
}

/// The newest slot of the workflow, of those that there were at the moment that is asked about.
fn newest(client: &Client, args: &WhyArgs) -> Result<String, Failure> {
    let doing = "find the newest slot";
    client.get(doing, &format!("/workflows/{}", escape(&args.workflow)), &Query::new())?;
    let mut query = Query::new();
    query.add("workflow", &args.workflow);
    query.add_some("to", args.at.map(words::wire));
    let (found, _) = client.list(doing, "/slots", &query, 1)?;
    found.first().map(key).ok_or_else(|| {
        let when = args.at.map(|_| " at that moment").unwrap_or_default();
        let none = format!("{doing}: {} has no slot yet{when}", args.workflow);
        Failure::bad(none)
            .hint("`kelos slots WORKFLOW` lists its slots, `kelos schedule show` what an event schedule waits for")
    })
}

/// The slots that lead up to its end, the furthest back first, each with its share of the time.
fn critical_path(path: &Value) -> Vec<String> {
    let until = if path["isOver"] == true { "it ended at" } else { "it has not ended by" };
    let (from, to) = (short(text(path, "from")), short(text(path, "until")));
    let mut lines = vec![format!("{}: the critical path begins at {from}; {until} {to}", name(path)), String::new()];
    for link in items(path, "links") {
        let state = link["state"].as_str().unwrap_or("not there");
        let percent = format!("{:.0} %", link["percent"].as_f64().unwrap_or_default());
        lines.push(format!("{percent:>6}  {}  {}", name(link), render::paint(state, state)));
        lines.push(format!("        {}", text(link, "sentence")));
        let besides = items(link, "besides").iter().filter_map(Value::as_str);
        lines.extend(besides.map(|besides| format!("        also blocked by: {besides}")));
    }
    lines.extend(path["cut"].as_str().map(|cut| format!("\nit is not traced further back: {cut}")));
    lines
}

fn account(why: &Value) -> Vec<String> {
    let state = why["state"].as_str();
    let slot = name(why);
    let mut lines = vec![match state {
        Some(state) => format!("{slot}  {}", render::paint(state, state)),
        None => slot,
    }];
    lines.push(format!("  {}", text(why, "headline")));
    lines.extend(why["noGroup"].as_str().map(|no_group| format!("  it waits for no job: {no_group}")));
    let nameless = why["namelessChildren"].as_str();
    lines.extend(nameless.map(|children| format!("  it does not open all of its children: {children}")));
    if let Some(trigger) = why["trigger"].as_object() {
        let found = why["foundAt"].as_str().map(|at| format!(", as of {}", short(at))).unwrap_or_default();
        lines.push(String::new());
        lines.push(format!("trigger{found}"));
        branch(&Value::Object(trigger.clone()), "  ", "  ", &mut lines);
    }
    if let Some(constraints) = why["constraints"].as_object() {
        let found = why["constraintsAt"].as_str().map(|at| format!(", as of {}", short(at))).unwrap_or_default();
        lines.push(String::new());
        lines.push(format!("constraints{found}"));
        for constraint in constraints.get("nested").and_then(Value::as_array).into_iter().flatten() {
            branch(constraint, "  ", "  ", &mut lines);
        }
    }
    if let Some(expires) = why["expires"].as_str() {
        lines.push(String::new());
        lines.push(format!("expires     {}", short(expires)));
    }
    // A trigger of one leaf has said it, and so has the first sentence of a job.
    let blockers = items(why, "blockers");
    let is_told = |blocker: &Value| blocker.as_str().is_some_and(|blocker| text(why, "headline").contains(blocker));
    let is_told = why["job"].is_string() && blockers.iter().all(is_told);
    if !blockers.is_empty() && !is_told && blockers != [why["trigger"]["text"].clone()] {
        lines.push(String::new());
        lines.push("blocked by".to_owned());
        lines.extend(blockers.iter().filter_map(Value::as_str).map(|blocker| format!("  {blocker}")));
    }
    if let Some(next) = why["nextLook"].as_str() {
        lines.push(String::new());
        lines.push(format!("next check  {}", short(next)));
    }
    let runs = items(why, "runs");
    if !runs.is_empty() {
        lines.push(String::new());
        lines.push("runs".to_owned());
        lines.extend(runs.iter().map(run_line));
    }
    lines
}

/// A node of the trigger's tree, and those below it.
fn branch(node: &Value, first: &str, rest: &str, lines: &mut Vec<String>) {
    let nested = items(node, "nested");
    let mark = render::mark(text(node, "answer"));
    // The words of a node repeat those of its leaves.
    let said = if nested.is_empty() { text(node, "text").to_owned() } else { combined(node) };
    lines.push(format!("{first}{mark} {said}{}", evidence(&said, node)));
    let (tee, corner, pipe) = if render::unicode() { ("├ ", "└ ", "│ ") } else { ("|-", "`-", "| ") };
    for (n, inner) in nested.iter().enumerate() {
        let last = n + 1 == nested.len();
        let first = format!("{rest}{}", if last { corner } else { tee });
        let below = format!("{rest}{}", if last { "  " } else { pipe });
        branch(inner, &first, &below, lines);
    }
}

fn combined(node: &Value) -> String {
    match text(node, "type") {
        "and" => "all of".to_owned(),
        "or" => "one of".to_owned(),
        "not" => "not".to_owned(),
        _ => text(node, "text").to_owned(),
    }
}

/// What a leaf read, without what its words say already.
fn evidence(said: &str, node: &Value) -> String {
    let evidence = &node["evidence"];
    let is_path = text(node, "type") != "function";
    let at = |name: &str| evidence[name].as_str().map(short).unwrap_or_default();
    let new = |what: String| {
        if said.contains(what.trim_start_matches("file://").trim_start_matches("file:")) {
            String::new()
        } else {
            what + " "
        }
    };
    match text(evidence, "read") {
        "clock" if said.contains(text(evidence, "until")) => format!("  [checked {}]", at("now")),
        "clock" => format!("  [until {}, checked {}]", at("until"), at("now")),
        "slot" => {
            let state = evidence["state"].as_str().unwrap_or("not there");
            let slot = new(name(evidence));
            format!("  [{slot}is {state}]")
        }
        "probe" => {
            let detail = evidence["detail"].as_str().filter(|detail| !said.contains(detail));
            let detail = detail.map(|detail| format!(": {detail}"));
            let verdict = match text(evidence, "verdict") {
                "yes" if is_path => "there",
                "no" if is_path => "not there",
                "failed" => "check failed",
                verdict => verdict,
            };
            // A function has no name; which workflow's and which slot's it is, the heading says.
            let probe = if is_path { new(text(evidence, "probe").to_owned()) } else { String::new() };
            format!("  [{probe}{verdict}{}, checked {}]", detail.unwrap_or_default(), at("lookedAt"))
        }
        "asked" => "  [asked, no answer yet]".to_owned(),
        _ => String::new(),
    }
}

/// `#2  failed at …: exited with status 1`.
fn run_line(run: &Value) -> String {
    let state = text(run, "state");
    let begin = run["startedAt"].as_str().or(run["dispatchedAt"].as_str()).map(short).unwrap_or_default();
    let end = run["endedAt"].as_str().map(|end| format!(" to {}", short(end))).unwrap_or_default();
    let name = run["externalId"].as_str().map(|name| format!("  {} {name}", text(run, "executor"))).unwrap_or_default();
    let how =
        run["outcome"]["text"].as_str().filter(|how| *how != state).map(|how| format!("  {how}")).unwrap_or_default();
    let said = ["arguments", "outputs"].map(|what| match &run[what] {
        Value::Object(fields) => format!("\n      {what} {}", Value::Object(fields.clone())),
        _ => String::new(),
    });
    format!("  #{}  {}  {begin}{end}{name}{how}{}", number(run, "number"), render::paint(state, state), said.concat())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_path_is_told_link_by_link() {
        let link = |workflow: &str, percent: f64, sentence: &str| {
            let (state, besides) = ("succeeded", json!([]));
            json!({ "workflow": workflow, "time": "2016-01-01T00:00:00.000Z", "percent": percent, "state": state, "sentence": sentence, "besides": besides })
        };
        let path = json!({
            "workflow": "down", "time": "2016-01-01T00:00:00.000Z", "isOver": true, "cut": null,
            "from": "2016-01-01T00:00:00.000Z", "until": "2016-01-01T00:44:00.000Z",
            "links": [link("up", 93.2, "ran 41 min"), link("down", 6.8, "ran 3 min")],
        });
        let expected = [
            "down@2016-01-01T00:00Z: the critical path begins at 2016-01-01T00:00Z; it ended at 2016-01-01T00:44Z",
            "",
            "  93 %  up@2016-01-01T00:00Z  succeeded",
            "        ran 41 min",
            "   7 %  down@2016-01-01T00:00Z  succeeded",
            "        ran 3 min",
        ];
        assert_eq!(critical_path(&path), expected);
    }

    #[test]
    fn what_the_first_sentence_says_of_a_job_is_not_said_again() {
        let mut why = json!({
            "workflow": "c", "job": "1", "state": "waiting", "headline": "waiting since noon: waits for 1 job: a@1 has waited for 2 s",
            "blockers": ["waits for 1 job: a@1 has waited for 2 s"], "trigger": null, "runs": [],
        });
        assert_eq!(account(&why).len(), 2, "{:?}", account(&why));
        why["blockers"] = json!(["its place is taken"]);
        assert_eq!(account(&why)[3..], ["blocked by", "  its place is taken"]);
    }

    #[test]
    fn a_leaf_says_everything_once() {
        let leaf = json!({
            "type": "function", "answer": "not-yet", "text": "Function of b.js can't be checked: b.js:3:1: stopped", "nested": [],
            "evidence": {
                "read": "probe", "probe": "function 0 of b.js for fn@2016-01-01T00:00:00.000Z", "verdict": "failed",
                "detail": "b.js:3:1: stopped", "lookedAt": "2016-01-01T00:00:00.000Z",
            },
        });
        assert_eq!(evidence(text(&leaf, "text"), &leaf), "  [check failed, checked 2016-01-01T00:00Z]");
    }
}
