//! `kelos source`: the file that a workflow was defined by, now or in an earlier version.

use comfy_table::Cell;
use serde_json::Value;

use crate::client::{Client, Query, escape, items, number, text};
use crate::failure::Failure;
use crate::options::Door;
use crate::render;
use crate::text::{self as words, short};

#[derive(clap::Args)]
pub(crate) struct SourceArgs {
    /// Whose source
    workflow: String,
    /// As it was in this version [default: the latest]
    #[arg(long, value_name = "N")]
    version: Option<u64>,
    /// List the versions instead
    #[arg(long, conflicts_with = "version")]
    versions: bool,
    #[command(flatten)]
    door: Door,
}

pub(crate) fn run(args: &SourceArgs) -> Result<u8, Failure> {
    let client = Client::new(&args.door)?;
    let path = format!("/workflows/{}/definitions", escape(&args.workflow));
    let past = client.get("read the definitions", &path, &Query::new())?;
    let all = items(&past, "items");
    if args.versions {
        return Ok(list(args, &past, all));
    }
    let wanted = |one: &&Value| args.version.is_none_or(|version| number(one, "version") == version);
    let Some(one) = all.iter().find(wanted) else {
        let known: Vec<String> = all.iter().map(|one| number(one, "version").to_string()).collect();
        let fail = format!("show version {} of {}: there is none", args.version.unwrap_or_default(), args.workflow);
        return Err(Failure::bad(fail).hint(format!("there are: {}", known.join(", "))));
    };
    if args.door.form.json {
        words::json(one);
        return Ok(0);
    }
    let Some(source) = one["source"].as_str() else {
        let fail = format!("show version {} of {}: its text was not kept", number(one, "version"), args.workflow);
        return Err(Failure::bad(fail).hint("--json prints the definition itself"));
    };
    words::print(source);
    Ok(0)
}

fn list(args: &SourceArgs, past: &Value, all: &[Value]) -> u8 {
    if args.door.form.json {
        words::json(past);
        return 0;
    }
    let mut table = render::table(&["VERSION", "SINCE"]);
    for one in all {
        table.add_row([Cell::new(number(one, "version")), Cell::new(short(text(one, "at")))]);
    }
    render::print(table);
    0
}
