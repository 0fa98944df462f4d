//! `kelos events`: the log, and what is added to it.

use std::collections::VecDeque;
use std::io::BufReader;

use kelos_model::nesting;
use kelos_wire::{EventDto, EventPageDto, HealthDto, words as log};

use crate::address::Query;
use crate::client::{Client, Reply};
use crate::connection::Connection;
use crate::failure::{Failure, UNREACHABLE};
use crate::options::Door;
use crate::text as words;
use crate::{render, stream};

#[derive(Clone, clap::Args)]
pub(crate) struct EventsArgs {
    /// Only events of this workflow
    #[arg(long, value_name = "ID")]
    workflow: Option<String>,
    /// Follow new events
    #[arg(short, long)]
    follow: bool,
    /// Only events after this position in the log [default: the last 50]
    #[arg(long, value_name = "POSITION")]
    after: Option<u64>,
    /// Show at most this many
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: usize,
    #[command(flatten)]
    door: Door,
}

const DOING: &str = "read the events";

/// Positions of the log that are searched for the latest events of one workflow.
const SEARCHED: u64 = 50_000;

pub(crate) fn run(args: &EventsArgs) -> Result<u8, Failure> {
    let client = Connection::open(&args.door)?;
    let named = args.workflow.as_ref().map(|name| client.workflow(DOING, name)).transpose()?;
    let args = &EventsArgs { workflow: named.map(|workflow| workflow.summary.id), ..args.clone() };
    let (events, last) = match args.after {
        Some(after) => onward(&client, args, after)?,
        None => latest(&client, args)?,
    };
    events.iter().for_each(|event| print(args, event));
    if args.follow {
        follow(&client, args, last)?;
    }
    Ok(0)
}

fn page(
    client: &Client,
    args: &EventsArgs,
    after: u64,
    limit: usize,
) -> Result<EventPageDto<Reply<EventDto>>, Failure> {
    let mut query = Query::new();
    query.add("after", after);
    query.add("limit", limit.clamp(1, 1000));
    query.add_some("workflow", args.workflow.as_ref());
    client.get(DOING, "/events", &query)
}

/// The first events after a position, and the position up to which was read.
fn onward(client: &Client, args: &EventsArgs, after: u64) -> Result<(Vec<Reply<EventDto>>, u64), Failure> {
    let (mut events, mut last) = (Vec::new(), after);
    loop {
        let page = page(client, args, last, 1000)?;
        events.extend(page.items);
        last = page.last.max(last);
        if events.len() > args.limit {
            events.truncate(args.limit);
            last = events.last().map_or(last, |event| event.seq);
            return Ok((events, last));
        }
        if page.end {
            return Ok((events, last));
        }
    }
}

/// The last events, and the position up to which was read.
fn latest(client: &Client, args: &EventsArgs) -> Result<(Vec<Reply<EventDto>>, u64), Failure> {
    let newest = client.get::<HealthDto>(DOING, "/health", &Query::new())?.last_seq.unwrap_or(0);
    let wanted = u64::try_from(args.limit).unwrap_or(u64::MAX);
    let back = if args.workflow.is_some() { SEARCHED.max(wanted) } else { wanted };
    let mut last = newest.saturating_sub(back);
    let mut events = VecDeque::new();
    loop {
        let page = page(client, args, last, 1000)?;
        last = page.last.max(last);
        for event in page.items {
            events.push_back(event);
            if events.len() > args.limit {
                events.pop_front();
            }
        }
        if page.end {
            return Ok((events.into(), last));
        }
    }
}

fn follow(client: &Client, args: &EventsArgs, after: u64) -> Result<(), Failure> {
    let mut query = Query::new();
    query.add("after", after);
    query.add_some("workflow", args.workflow.as_ref());
    let answer = client.open(DOING, "/events/stream", &query)?;
    let mut lines = BufReader::new(answer.into_body().into_reader());
    while let Ok(Some(data)) = stream::next(&mut lines) {
        if let Ok(event) = nesting::read(data.as_bytes()) {
            print(args, &event);
        }
    }
    Err(Failure::new(UNREACHABLE, "follow the events: the server has ended"))
}

fn print(args: &EventsArgs, event: &Reply<EventDto>) {
    if args.door.form.json {
        words::line(serde_json::to_string(event).unwrap_or_default());
    } else {
        words::line(told(event));
    }
}

/// One line: when, what it happened to, what happened.
fn told(event: &EventDto) -> String {
    let (name, details) = (log::name(event), log::details(event));
    let name = render::paint(name, if name == "backed-off" { "failed" } else { name });
    let colon = if details.is_empty() { "" } else { ": " };
    format!("{:<20}  {}  {name}{colon}{details}", event.at.short(), log::subject(event))
}
