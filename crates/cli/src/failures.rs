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
use crate::times;

#[derive(clap::Args)]
pub(crate) struct FailuresArgs {
    /// Print each slot, also where many of a workflow failed alike
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    door: Door,
}

/// Slots of a workflow that failed alike and have a line each; of more, the latest stands for all.
const ALIKE: usize = 3;

/// Followers that a line names.
const NAMED: usize = 3;

/// The failures, as the server answers.
pub(crate) fn read(client: &Client) -> Result<Reply<FailureListDto>, Failure> {
    client.get("list the failures", "/failures", &Query::new())
}

pub(crate) fn run(args: &FailuresArgs) -> Result<u8, Failure> {
    let client = Connection::to_read(&args.door)?;
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
    for group in groups(&found.items, if args.all { usize::MAX } else { ALIKE }) {
        table.add_row([
            Cell::new(group.slots()),
            render::state(group.latest.state.as_str()),
            Cell::new(times::since(group.latest.since)),
            Cell::new(reason(group.latest)),
            Cell::new(group.followers()),
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
        "`kelos logs WORKFLOW TIME` prints the output, `kelos rerun WORKFLOW TIME` repairs, `kelos rerun WORKFLOW --failed` all of a workflow; \
         `kelos mark` and `kelos skip` do, too",
    );
    Ok(0)
}

/// A line of the table: a failure, or several of a workflow that failed alike.
struct Group<'a> {
    latest: &'a FailureDto,
    /// The others, of which some have followers.
    others: Vec<&'a FailureDto>,
}

/// The lines of the table, in the order of the latest failure of each. Up to so many that are alike have a line each.
fn groups(rows: &[FailureDto], most: usize) -> Vec<Group<'_>> {
    let alike = |a: &FailureDto, b: &FailureDto| {
        a.slot.workflow == b.slot.workflow && a.state == b.state && reason(a) == reason(b)
    };
    let mut groups: Vec<Group<'_>> = Vec::new();
    for row in rows {
        if rows.iter().filter(|other| alike(row, other)).count() > most
            && let Some(group) = groups.iter_mut().find(|group| alike(group.latest, row))
        {
            group.others.push(row);
        } else {
            groups.push(Group { latest: row, others: Vec::new() });
        }
    }
    groups
}

impl Group<'_> {
    /// `report@2016-01-01T12:00Z and 160 more`
    fn slots(&self) -> String {
        let more = if self.others.is_empty() { String::new() } else { format!(" and {} more", self.others.len()) };
        format!("{}{more}", self.latest.slot)
    }

    fn followers(&self) -> String {
        if self.others.is_empty() {
            return followers(self.latest);
        }
        let all = [self.latest].into_iter().chain(self.others.iter().copied());
        match all.map(|row| row.followers.len() + row.more_followers).sum() {
            0 => String::new(),
            total => count(total, "slot"),
        }
    }
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
    fn many_that_failed_alike_have_one_line() {
        let failed = |workflow: &str, outcome: &str, more_followers| FailureDto {
            slot: slot(workflow),
            state: "failed".into(),
            outcome: Some(outcome.to_owned()),
            more_followers,
            ..FailureDto::default()
        };
        let mut rows = vec![failed("a", "exited with status 1", 0), failed("b", "exited with status 1", 2)];
        rows.extend((0..3).map(|_| failed("a", "exited with status 1", 1)));
        rows.push(failed("a", "timed out", 0));
        let lines = |most| -> Vec<String> {
            groups(&rows, most).iter().map(|group| format!("{}: {}", group.slots(), group.followers())).collect()
        };
        let at = "2016-01-01T04:00Z";
        let one = [format!("a@{at} and 3 more: 3 slots"), format!("b@{at}: 2 slots: "), format!("a@{at}: ")];
        assert_eq!(lines(ALIKE), one);
        assert_eq!(lines(usize::MAX).len(), rows.len());
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
