//! `kelos groups`: which workflows stand together on the board.

use std::io::Read;
use std::path::{Path, PathBuf};

use kelos_wire::GroupsDto;
use serde_json::Value;

use crate::address::Query;
use crate::client::Reply;
use crate::connection::Connection;
use crate::failure::Failure;
use crate::options::Door;
use crate::text as words;

const PATH: &str = "/board/groups";

#[derive(clap::Args)]
pub(crate) struct GroupsArgs {
    /// Set the groups from this file, in the format of --config; `-` reads standard input
    #[arg(long, value_name = "FILE", conflicts_with = "reset")]
    set: Option<PathBuf>,
    /// Go back to the groups of the server's --config file, or to one group per project
    #[arg(long)]
    reset: bool,
    #[command(flatten)]
    door: Door,
}

pub(crate) fn run(args: &GroupsArgs) -> Result<u8, Failure> {
    let client = Connection::open(&args.door)?;
    let found: Reply<GroupsDto> = match &args.set {
        Some(file) => client.put("set the groups", PATH, &Query::new(), &read(file)?)?,
        None if args.reset => client.delete("reset the groups", PATH, &Query::new())?,
        None => client.get("read the groups", PATH, &Query::new())?,
    };
    if args.door.form.json {
        words::json(&found);
        return Ok(0);
    }
    words::line(match found.from.as_str() {
        "api" => "Set by people, with this command, on the page or through the API:",
        "file" => "From the server's --config file:",
        _ => "None are set; there is one group per project:",
    });
    for group in &found.groups {
        words::line(format!("\n{}", group.name));
        group.workflows.iter().for_each(|id| words::line(format!("  {id}")));
    }
    Ok(0)
}

/// Longest file of groups.
const LONGEST: u64 = 16 << 20;

fn read(file: &Path) -> Result<Value, Failure> {
    let fail = |why: String| Failure::usage(format!("use {} as the file of groups: {why}", file.display()));
    let mut text = String::new();
    let read = match file.to_str() {
        Some("-") => std::io::stdin().read_to_string(&mut text).map(drop).map_err(|error| error.to_string()),
        _ => kelos_sandbox::read_text(file, LONGEST)
            .map(|read| text = read.to_string())
            .map_err(|why| format!("it {why}")),
    };
    read.map_err(fail)?;
    serde_json::from_str(&text).map_err(|error| {
        fail(format!("{error}; expected {{\"groups\": [{{\"name\": \"…\", \"workflows\": [\"…\"]}}]}}"))
    })
}
