//! `kelos nodes`: the nodes that share a log, and who led when; and the form in which its entries are written.

use kelos_wire::{NodeStateDto, NodesDto, RaiseFormRequest, RaisedFormDto};

use crate::address::Query;
use crate::client::Reply;
use crate::connection::Connection;
use crate::failure::Failure;
use crate::options::Door;
use crate::{render, text as words};

#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct NodesArgs {
    #[command(subcommand)]
    what: Option<NodesAction>,
    #[command(flatten)]
    door: Door,
}

#[derive(clap::Subcommand)]
enum NodesAction {
    /// Raise the form of the log's entries after an upgrade; programs that do not read it neither follow nor lead from then on
    Raise(RaiseArgs),
}

#[derive(clap::Args)]
struct RaiseArgs {
    /// The form [default: the newest that the leader's program writes]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=9))]
    form: Option<u32>,
    /// Preview only: change nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    door: Door,
}

/// Changes of leader that are shown.
const LEADERS: usize = 5;

pub(crate) fn run(args: &NodesArgs) -> Result<u8, Failure> {
    if let Some(NodesAction::Raise(args)) = &args.what {
        return raise(args);
    }
    let connection = Connection::open(&args.door)?;
    let found: Reply<NodesDto> = connection.get("list the nodes", "/nodes", &Query::new())?;
    if args.door.form.json {
        words::json(&found);
        return Ok(0);
    }
    let Some(store) = &found.store else {
        words::line("this server is no node of several: it has its own log");
        return Ok(0);
    };
    let mut table = render::table(&["NODE", "ROLE", "ADDRESS", "VERSION", "BEHIND", "HEARD", "LOAD", "NOTE"]);
    for node in &found.nodes {
        table.add_row([
            node.name.clone(),
            if node.leads { "leads".to_owned() } else { "stands by".to_owned() },
            node.address.clone().unwrap_or_default(),
            node.version.clone(),
            node.behind.to_string(),
            heard(node),
            node.load.map(|load| format!("{load:.1}")).unwrap_or_default(),
            note(node),
        ]);
    }
    render::print(table);
    words::line(format!("the log is {store}, and its last entry {}", found.last_entry));
    if !found.nodes.iter().any(|node| node.leads) {
        words::line("no node leads at the moment");
    }
    if let Some(line) = can_be_raised(&found) {
        words::line(line);
    }
    for leader in found.leaders.iter().take(LEADERS) {
        words::line(format!("epoch {}: {} since {} ({})", leader.epoch, leader.node, leader.since.0, leader.reason));
    }
    Ok(0)
}

/// The troubles of a node, as it says itself.
fn note(node: &NodeStateDto) -> String {
    let failures = [&node.trouble, &node.unreached];
    let failures = failures.into_iter().flatten().map(|what| format!("failed to {what}"));
    failures.collect::<Vec<_>>().join("; ")
}

/// The hint that the last step of an upgrade is due.
fn can_be_raised(found: &NodesDto) -> Option<String> {
    let writes = found.writes;
    let readable = found.nodes.iter().map(|node| node.reads).min().filter(|reads| *reads > writes)?;
    Some(format!(
        "entries are written in form {writes}, and all nodes read form {readable}: `kelos nodes raise` raises it"
    ))
}

fn raise(args: &RaiseArgs) -> Result<u8, Failure> {
    let request = RaiseFormRequest { form: args.form, dry_run: args.dry_run };
    let connection = Connection::open(&args.door)?;
    let raised: Reply<RaisedFormDto> = connection.post("raise the form of entries", "/log/form", &request)?;
    if args.door.form.json {
        words::json(&raised);
        return Ok(0);
    }
    said(&raised).into_iter().for_each(words::line);
    Ok(0)
}

fn said(raised: &RaisedFormDto) -> Vec<String> {
    let RaisedFormDto { from, to, nodes, is_raised } = raised;
    if from == to {
        return vec![format!("entries are written in form {from} already: there is nothing to raise")];
    }
    let nodes = if *nodes == 1 { "the only node reads".to_owned() } else { format!("all {nodes} nodes read") };
    let first = format!("entries were written in form {from}, and {nodes} form {to}");
    let then = "programs that do not read it neither follow nor lead";
    let second = match is_raised {
        true => format!("raised: entries are written in form {to} from now on, and {then}"),
        false => format!("it would be raised to form {to}; {then} from then on. Nothing was changed"),
    };
    vec![first, second]
}

fn heard(node: &NodeStateDto) -> String {
    match node.heard_millis {
        0..5000 => "now".to_owned(),
        millis => format!("{} s ago", millis / 1000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_says_what_was_raised_or_would_be() {
        let told = |from, to, nodes, is_raised| said(&RaisedFormDto { from, to, nodes, is_raised }).join("\n");
        assert_eq!(told(1, 1, 3, false), "entries are written in form 1 already: there is nothing to raise");
        assert_eq!(
            told(1, 2, 3, true),
            "entries were written in form 1, and all 3 nodes read form 2\n\
             raised: entries are written in form 2 from now on, and programs that do not read it neither follow nor lead"
        );
        let dry = told(1, 2, 1, false);
        assert!(dry.contains("the only node reads form 2\nit would be raised to form 2; "), "{dry}");
        assert!(dry.ends_with("Nothing was changed"), "{dry}");
    }
}
