//! `kelos why`: the account of a slot as a tree, or what determined when it ended.

use jiff::Timestamp;
use kelos_model::time::Zone;
use kelos_wire::{Code, CriticalPathDto, EvidenceDto, ExplanationDto, Instant, RootDto, RunDto, WhyDto};
use serde_json::json;

use crate::address::{Query, slot_path};
use crate::client::{Client, Reply};
use crate::connection::Connection;
use crate::failure::Failure;
use crate::options::Door;
use crate::selection::{self, SlotChoice, zone_of};
use crate::text as words;
use crate::times::Moment;
use crate::{days, render, times};

#[derive(clap::Args)]
pub(crate) struct WhyArgs {
    /// Workflow of the slot
    workflow: String,
    /// Slot: its time or job id [default: the newest]
    #[arg(value_name = "TIME|JOB_ID", value_parser = selection::key, allow_negative_numbers = true)]
    key: Option<String>,
    /// Explain the slot as it was at this time [default: now]
    #[arg(long, value_name = "TIME", value_parser = times::moment)]
    at: Option<Moment>,
    /// Time zone of times without an offset, such as Europe/Berlin [default: that of the workflow's schedule]
    #[arg(long, value_name = "ZONE", value_parser = times::zone)]
    zone: Option<Zone>,
    /// Print the critical path instead: the slots and waits that determined when it ended, or that delay it now
    #[arg(long, conflicts_with = "at")]
    path: bool,
    #[command(flatten)]
    door: Door,
}

const DOING: &str = "explain the slot";

pub(crate) fn run(args: &WhyArgs) -> Result<u8, Failure> {
    let client = Connection::to_read(&args.door)?;
    let mut workflow = client.workflow(DOING, &args.workflow)?;
    if let Some(zone) = &args.zone {
        workflow.summary.zone = Some(zone.name().to_owned());
    }
    let ([at, _], understood) = times::range(DOING, &zone_of(&workflow), [args.at.as_ref(), None])?;
    understood.filter(|_| !args.door.form.json).into_iter().for_each(words::note);
    let mut query = Query::new();
    query.add_some("at", at.map(words::wire));
    let id = &workflow.summary.id;
    let key = match &args.key {
        Some(text) => client.key(DOING, &workflow, text)?,
        None => newest(&client, at, id)?,
    };
    let slot = slot_path(id, &key);
    if args.path {
        let path: Reply<CriticalPathDto> = client.get(DOING, &format!("{slot}/critical-path"), &query)?;
        return Ok(print(args, &path, critical_path));
    }
    let why: Reply<WhyDto> = client.get(DOING, &format!("{slot}/why"), &query)?;
    Ok(print(args, &why, |why: &WhyDto| account(why, &days::name(&workflow, &why.slot))))
}

fn print<T>(args: &WhyArgs, found: &Reply<T>, lines: impl Fn(&T) -> Vec<String>) -> u8 {
    if args.door.form.json {
        words::json(found);
    } else {
        let told: &T = found;
        words::print(&(lines(told).join("\n") + "\n"));
    }
    0
}

/// The newest slot of the workflow, of those that there were at the moment that is asked about.
fn newest(client: &Client, at: Option<Timestamp>, id: &str) -> Result<String, Failure> {
    let doing = "find the newest slot";
    let found = client.newest(doing, id, &SlotChoice { before: at, ..SlotChoice::default() })?;
    found.map(|row| row.slot.key.to_string()).ok_or_else(|| {
        let when = at.map(|_| " at that moment").unwrap_or_default();
        let none = format!("{doing}: {id} has no slot yet{when}");
        Failure::bad(none)
            .hint("`kelos slots WORKFLOW` lists its slots, `kelos schedule show` what an event schedule waits for")
    })
}

/// The slots that lead up to its end, the furthest back first, each with its share of the time.
fn critical_path(path: &CriticalPathDto) -> Vec<String> {
    let until = if path.is_over { "it ended at" } else { "it has not ended by" };
    let (from, to) = (path.from.short(), path.until.short());
    let mut lines = vec![format!("{}: the critical path begins at {from}; {until} {to}", path.slot), String::new()];
    for link in &path.links {
        let state = link.state.as_ref().map_or("not there", Code::as_str);
        let percent = format!("{:.0} %", link.percent);
        lines.push(format!("{percent:>6}  {}  {}", link.slot, render::paint(state, state)));
        lines.push(format!("        {}", link.sentence));
        lines.extend(link.besides.iter().map(|besides| format!("        also blocked by: {besides}")));
    }
    lines.extend(path.cut.as_ref().map(|cut| format!("\nit is not traced further back: {cut}")));
    lines
}

/// The account of a slot below its name.
fn account(why: &WhyDto, slot: &str) -> Vec<String> {
    let mut lines = vec![match &why.state {
        Some(state) => format!("{slot}  {}", render::paint(state.as_str(), state.as_str())),
        None => slot.to_owned(),
    }];
    lines.push(format!("  {}", why.headline));
    lines.extend([&why.deadline_words, &why.outlook].into_iter().flatten().map(|words| format!("  {words}")));
    lines.extend(maker(why));
    lines.extend(why.out_of_range.as_ref().map(|reason| format!("  out of range: {reason}")));
    lines.extend(why.no_group.as_ref().map(|no_group| format!("  it waits for no job: {no_group}")));
    lines.extend(roots(why));
    let nameless = why.nameless_children.as_ref();
    lines.extend(nameless.map(|children| format!("  it does not open all of its children: {children}")));
    let found = |at: Option<Instant>| at.map(|at| format!(", as of {}", at.short())).unwrap_or_default();
    if let Some(trigger) = &why.trigger {
        lines.extend([String::new(), format!("trigger{}", found(why.found_at))]);
        branch(trigger, "  ", "  ", &mut lines);
    }
    if let Some(constraints) = &why.constraints {
        lines.extend([String::new(), format!("constraints{}", found(why.constraints_at))]);
        constraints.nested.iter().for_each(|constraint| branch(constraint, "  ", "  ", &mut lines));
    }
    if let Some(expires) = why.expires {
        lines.extend([String::new(), format!("expires     {}", expires.short())]);
    }
    if names_blockers(why) {
        lines.extend([String::new(), "blocked by".to_owned()]);
        lines.extend(why.blockers.iter().map(|blocker| format!("  {blocker}")));
    }
    if let Some(next) = why.next_look {
        lines.extend([String::new(), format!("next check  {}", next.short())]);
    }
    if !why.runs.is_empty() {
        lines.extend([String::new(), "runs".to_owned()]);
        lines.extend(why.runs.iter().map(run_line));
    }
    lines
}

/// The version of the project that made what is done; none where the project has none.
fn maker(why: &WhyDto) -> Option<String> {
    let is_done = why.state.as_ref().is_some_and(|state| state.as_str() == "succeeded");
    let version = why.project_version.as_ref().filter(|_| is_done)?;
    let number = why.definition_version.map(|number| format!(" (definition {number})")).unwrap_or_default();
    Some(format!("  made by version {version}{number}"))
}

/// Lines of output of a failed run that are printed.
const LINES_SHOWN: usize = 5;

/// The root causes of its wait, unless the first sentence has said them.
fn roots(why: &WhyDto) -> Vec<String> {
    let is_news = |root: &&RootDto| root.way.len() > 1 || root.kind == "circle" || !root.last_lines.is_empty();
    let told: Vec<&RootDto> = why.roots.iter().filter(is_news).collect();
    if told.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![String::new(), if told.len() == 1 { "root cause" } else { "root causes" }.to_owned()];
    for root in told {
        let last = root.last_lines.len().saturating_sub(LINES_SHOWN);
        let (alike, last_lines) = (alike(root.alike), root.last_lines.iter().skip(last));
        let colon = if root.last_lines.is_empty() { "" } else { "; last lines:" };
        lines.push(format!("  {}{alike}{colon}", root.text));
        lines.extend(last_lines.map(|line| format!("    | {line}")));
    }
    if why.more_roots > 0 {
        lines.push(format!("  and {} of other kinds", words::count(why.more_roots, "root cause")));
    }
    if why.unexamined > 0 {
        lines.push(format!("  {} on the way not examined", words::count(why.unexamined, "slot")));
    }
    lines
}

/// ` (and 743 more like it)`
fn alike(alike: u64) -> String {
    if alike == 0 { String::new() } else { format!(" (and {alike} more like it)") }
}

/// Whether what is in the way is worth a list: a trigger of one leaf has said it, and so has the first sentence of a job.
fn names_blockers(why: &WhyDto) -> bool {
    let in_headline = why.slot.key.job.is_some() && why.blockers.iter().all(|blocker| why.headline.contains(blocker));
    let in_trigger = why.trigger.as_ref().is_some_and(|trigger| why.blockers == [trigger.text.as_str()]);
    !why.blockers.is_empty() && !in_headline && !in_trigger
}

/// A node of the trigger's tree, and those below it.
fn branch(node: &ExplanationDto, first: &str, rest: &str, lines: &mut Vec<String>) {
    let mark = render::mark(node.answer.as_str());
    // The words of a node repeat those of its leaves.
    let said = if node.nested.is_empty() { &node.text } else { combined(node) };
    lines.push(format!("{first}{mark} {said}{}", evidence(said, node)));
    let (tee, corner, pipe) = if render::unicode() { ("├ ", "└ ", "│ ") } else { ("|-", "`-", "| ") };
    for (n, inner) in node.nested.iter().enumerate() {
        let last = n + 1 == node.nested.len();
        let first = format!("{rest}{}", if last { corner } else { tee });
        let below = format!("{rest}{}", if last { "  " } else { pipe });
        branch(inner, &first, &below, lines);
    }
}

fn combined(node: &ExplanationDto) -> &str {
    match node.kind.as_str() {
        "and" => "all of",
        "or" => "one of",
        "not" => "not",
        _ => &node.text,
    }
}

/// The evidence of a leaf, without what its text says already.
fn evidence(said: &str, node: &ExplanationDto) -> String {
    let is_path = node.kind != "function";
    let new = |what: &str| {
        if said.contains(what.trim_start_matches("file://").trim_start_matches("file:")) {
            String::new()
        } else {
            format!("{what} ")
        }
    };
    match &node.evidence {
        Some(EvidenceDto::Clock { now, until }) if said.contains(&until.to_string()) => {
            format!("  [checked {}]", now.short())
        }
        Some(EvidenceDto::Clock { now, until }) => format!("  [until {}, checked {}]", until.short(), now.short()),
        Some(EvidenceDto::Slot { slot, state }) => {
            let state = state.as_ref().map_or("not there", Code::as_str);
            format!("  [{}is {state}]", new(&slot.to_string()))
        }
        Some(EvidenceDto::Probe { probe, verdict, detail, looked_at }) => {
            let detail = detail.as_ref().filter(|detail| !said.contains(detail.as_str()));
            let detail = detail.map(|detail| format!(": {detail}")).unwrap_or_default();
            let verdict = match verdict.as_str() {
                "yes" if is_path => "there",
                "no" if is_path => "not there",
                "failed" => "check failed",
                verdict => verdict,
            };
            // A function has no name; which workflow's and which slot's it is, the heading says.
            let probe = if is_path { new(probe) } else { String::new() };
            format!("  [{probe}{verdict}{detail}, checked {}]", looked_at.short())
        }
        Some(EvidenceDto::Asked {}) => "  [asked, no answer yet]".to_owned(),
        Some(EvidenceDto::Other { .. }) | None => String::new(),
    }
}

/// Characters of the arguments or outputs of a run that are printed.
const FIELDS_SHOWN: usize = 2_000;

/// The beginning of a long text, and how much of it is missing.
fn cut(text: &str) -> String {
    let Some((end, _)) = text.char_indices().nth(FIELDS_SHOWN) else { return text.to_owned() };
    let (shown, rest) = text.split_at(end);
    format!("{shown}… {} KB more, all with --json", rest.len().div_ceil(1_000))
}

/// `#2  failed at …: exited with status 1`.
fn run_line(run: &RunDto) -> String {
    let state = run.state.as_str();
    let begin = run.started_at.unwrap_or(run.dispatched_at).short();
    let end = run.ended_at.map(|end| format!(" to {}", end.short())).unwrap_or_default();
    let name = run.external_id.as_ref().map(|name| format!("  {} {name}", run.executor)).unwrap_or_default();
    let how = run.outcome.as_ref().map(|outcome| outcome.text.as_str()).filter(|how| *how != state);
    let how = how.map(|how| format!("  {how}")).unwrap_or_default();
    let arguments = (!run.arguments.is_empty()).then(|| json!(run.arguments)).map(|all| ("arguments", all));
    let outputs = run.outputs.as_ref().map(|all| ("outputs", json!(all)));
    let said = arguments.into_iter().chain(outputs);
    let said = said.map(|(what, fields)| format!("\n      {what} {}", cut(&fields.to_string())));
    let said: String = said.collect();
    format!("  #{}  {}  {begin}{end}{name}{how}{said}", run.number, render::paint(state, state))
}

#[cfg(test)]
mod tests {
    use kelos_wire::{LinkDto, SlotNameDto};

    use super::*;

    fn slot(workflow: &str) -> SlotNameDto {
        serde_json::from_value(json!({ "workflow": workflow, "time": "2016-01-01T00:00:00.000Z" })).expect("a name")
    }

    fn at(text: &str) -> Instant {
        Instant(kelos_model::time::parse_instant(text).expect("a moment"))
    }

    #[test]
    fn a_path_is_told_link_by_link() {
        let link = |workflow: &str, percent: f64, sentence: &str| LinkDto {
            slot: slot(workflow),
            percent,
            state: Some("succeeded".into()),
            sentence: sentence.to_owned(),
            ..LinkDto::default()
        };
        let path = CriticalPathDto {
            slot: slot("down"),
            is_over: true,
            from: at("2016-01-01T00:00Z"),
            until: at("2016-01-01T00:44Z"),
            links: vec![link("up", 93.2, "ran 41 min"), link("down", 6.8, "ran 3 min")],
            ..CriticalPathDto::default()
        };
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
        let mut why = WhyDto {
            slot: serde_json::from_value(json!({ "workflow": "c", "job": "1" })).expect("a name"),
            state: Some("waiting".into()),
            headline: "waiting since noon: waits for 1 job: a@1 has waited for 2 s".to_owned(),
            blockers: vec!["waits for 1 job: a@1 has waited for 2 s".to_owned()],
            ..WhyDto::default()
        };
        assert_eq!(account(&why, "c@1").len(), 2, "{:?}", account(&why, "c@1"));
        why.blockers = vec!["its place is taken".to_owned()];
        assert_eq!(account(&why, "c@1")[3..], ["blocked by", "  its place is taken"]);
    }

    #[test]
    fn long_arguments_are_cut() {
        assert_eq!(cut(&"x".repeat(2_000)), "x".repeat(2_000));
        let long = cut(&"é".repeat(32_000));
        assert!(long.starts_with("éé") && long.ends_with("é… 60 KB more, all with --json"), "{long}");
    }

    #[test]
    fn a_leaf_says_everything_once() {
        let leaf = ExplanationDto {
            kind: "function".into(),
            answer: "not-yet".into(),
            text: "Function of b.js can't be checked: b.js:3:1: stopped".to_owned(),
            evidence: Some(EvidenceDto::Probe {
                probe: "function 0 of b.js for fn@2016-01-01T00:00:00.000Z".to_owned(),
                verdict: "failed".into(),
                detail: Some("b.js:3:1: stopped".to_owned()),
                looked_at: at("2016-01-01T00:00Z"),
            }),
            ..ExplanationDto::default()
        };
        assert_eq!(evidence(&leaf.text, &leaf), "  [check failed, checked 2016-01-01T00:00Z]");
    }
}
