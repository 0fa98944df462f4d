//! `kelos failures`: slots that failed or expired and were not repaired since, the latest first.

use comfy_table::Cell;
use kelos_wire::{FailureDto, FailureListDto};

use crate::address::Query;
use crate::client::{Client, Reply};
use crate::connection::Connection;
use crate::failure::Failure;
use crate::options::Door;
use crate::render;
use crate::text::{self as words, count};

#[derive(clap::Args)]
pub(crate) struct FailuresArgs {
    #[command(flatten)]
    door: Door,
}

/// Followers that a line names.
const NAMED: usize = 3;

/// The failures, as the server answers.
pub(crate) fn read(client: &Client) -> Result<Reply<FailureListDto>, Failure> {
    client.get("list the failures", "/failures", &Query::new())
}

pub(crate) fn run(args: &FailuresArgs) -> Result<u8, Failure> {
    let client = Connection::open(&args.door)?;
    let found = read(&client)?;
    if args.door.form.json {
        words::json(&found);
        return Ok(0);
    }
    if found.items.is_empty() {
        words::line("no failures");
        return Ok(0);
    }
    let mut table = render::table(&["SLOT", "STATE", "SINCE", "WHY", "FOLLOWERS"]);
    for row in &found.items {
        table.add_row([
            Cell::new(&row.slot),
            render::state(row.state.as_str()),
            Cell::new(row.since.short()),
            Cell::new(reason(row)),
            Cell::new(followers(row)),
        ]);
    }
    render::print(table);
    if found.more > 0 {
        words::line(format!("and {} more", found.more));
    }
    if found.partial {
        words::line("there are more than were read");
    }
    words::line(
        "`kelos logs WORKFLOW TIME` prints the output, `kelos rerun WORKFLOW TIME` repairs; `kelos mark` and `kelos skip` do, too",
    );
    Ok(0)
}

/// The outcome of the run that failed; what expired has none.
fn reason(row: &FailureDto) -> &str {
    match &row.outcome {
        Some(outcome) if row.state == "failed" => outcome,
        _ => &row.reason,
    }
}

/// `4: b@2016-01-01T12:00Z, … and 1 more`
fn followers(row: &FailureDto) -> String {
    let total = row.followers.len() + row.more_followers;
    if total == 0 {
        return String::new();
    }
    let named: Vec<String> = row.followers.iter().take(NAMED).map(|follower| follower.slot.to_string()).collect();
    let more = if total > NAMED { format!(", and {} more", total - NAMED) } else { String::new() };
    format!("{}: {}{more}", count(total, "slot"), named.join(", "))
}

#[cfg(test)]
mod tests {
    use kelos_wire::{FollowerDto, SlotNameDto};
    use serde_json::json;

    use super::*;

    fn slot(workflow: &str) -> SlotNameDto {
        serde_json::from_value(json!({ "workflow": workflow, "time": "2016-01-01T04:00:00.000Z" })).expect("a name")
    }

    #[test]
    fn a_row_names_the_nearest_followers() {
        let follower = |name: &str| FollowerDto { slot: slot(name), ..FollowerDto::default() };
        let names = ["b", "c", "d", "e"];
        let row = FailureDto { followers: names.map(follower).into(), more_followers: 2, ..FailureDto::default() };
        let named = "b@2016-01-01T04:00Z, c@2016-01-01T04:00Z, d@2016-01-01T04:00Z";
        assert_eq!(followers(&row), format!("6 slots: {named}, and 3 more"));
        assert_eq!(followers(&FailureDto::default()), "");
    }

    #[test]
    fn what_expired_says_what_it_waited_for_and_not_how_it_ran_before() {
        let outcome = Some("exited with status 3".to_owned());
        let row =
            FailureDto { outcome, reason: "expired".to_owned(), state: "expired".into(), ..FailureDto::default() };
        assert_eq!(reason(&row), "expired");
        assert_eq!(reason(&FailureDto { state: "failed".into(), ..row }), "exited with status 3");
    }
}
