//! `kelos queue`: how many jobs of an app could start, for people and for programs that start and stop workers.

use kelos_wire::QueueDto;

use crate::address::{Query, escape};
use crate::client::Reply;
use crate::connection::Connection;
use crate::failure::Failure;
use crate::options::Door;
use crate::text as words;
use crate::times;

#[derive(clap::Args)]
pub(crate) struct QueueArgs {
    /// App or other workflow
    #[arg(value_name = "APP")]
    workflow: String,
    #[command(flatten)]
    door: Door,
}

const DOING: &str = "read the queue";

pub(crate) fn run(args: &QueueArgs) -> Result<u8, Failure> {
    let client = Connection::to_read(&args.door)?;
    let id = client.workflow(DOING, &args.workflow)?.summary.id;
    let found: Reply<QueueDto> = client.get(DOING, &format!("/workflows/{}/queue", escape(&id)), &Query::new())?;
    if args.door.form.json {
        words::json(&found);
    } else {
        words::line(line(&found));
    }
    Ok(0)
}

/// `report: 3 queued, the oldest since 12 s; 1 running, 5 waiting, 0 in back-off, 2 failed`
fn line(found: &QueueDto) -> String {
    let oldest = found.oldest_since.map(|since| format!(", the oldest since {}", times::since(since)));
    let paused = if found.paused { "; it is paused" } else { "" };
    format!(
        "{}: {} queued{}; {} running, {} waiting, {} in back-off, {} failed{paused}",
        found.workflow,
        found.queued,
        oldest.unwrap_or_default(),
        found.running,
        found.waiting,
        found.backoff,
        found.failed
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_is_one_line() {
        let empty = QueueDto { workflow: "report".to_owned(), waiting: 5, paused: true, ..QueueDto::default() };
        let expected = "report: 0 queued; 0 running, 5 waiting, 0 in back-off, 0 failed; it is paused";
        assert_eq!(line(&empty), expected);
    }
}
