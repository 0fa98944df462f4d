//! `kelos logs`: what a run wrote, byte by byte or line by line.

mod lines;

use std::io::Read;
use std::time::Duration;

use kelos_wire::{RunDto, SlotDto};

use crate::address::{Query, slot_path};
use crate::client::Client;
use crate::connection::Connection;
use crate::failure::{Failure, UNREACHABLE};
use crate::no_job::is_final;
use crate::options::{Door, OneSlot};
use crate::text as words;

#[derive(clap::Args)]
pub(crate) struct LogsArgs {
    #[command(flatten)]
    slot: OneSlot,
    /// Run number, from 1 [default: the latest]
    #[arg(long, value_name = "N")]
    run: Option<u32>,
    /// Follow the output until the run has ended
    #[arg(short, long)]
    follow: bool,
    #[command(flatten)]
    form: lines::LineForm,
    #[command(flatten)]
    door: Door,
}

/// How often more is asked for while the run goes on.
const LOOK_EVERY: Duration = Duration::from_millis(200);

const DOING: &str = "print the output";

/// A piece of output.
struct Piece {
    bytes: Vec<u8>,
    next: u64,
    dropped: u64,
    ended: bool,
}

pub(crate) fn run(args: &LogsArgs) -> Result<u8, Failure> {
    let client = Connection::open(&args.door)?;
    let workflow = client.workflow(DOING, &args.slot.workflow)?;
    let id = &workflow.summary.id;
    let key = match &args.slot.key {
        Some(text) => client.key(DOING, &workflow, text)?,
        None => newest(&client, id)?,
    };
    let slot = slot_path(id, &key);
    let number = match args.run {
        Some(number) => number,
        None => latest(&client, &slot, args)?,
    };
    let path = format!("{slot}/runs/{number}/log");
    let wrote = if args.door.form.json {
        return lines::json(&client, &path, number, &args.form);
    } else if args.form.is_plain() {
        bytes(&client, &path, args.follow)?
    } else {
        lines::print(&client, &path, args.follow, &args.form)?
    };
    if !wrote {
        eprintln!("{}", args.form.nothing_chosen(number).unwrap_or_else(|| silence(&client, &slot, number)));
    }
    Ok(0)
}

/// Prints the output as it is; whether there was any.
fn bytes(client: &Client, path: &str, follow: bool) -> Result<bool, Failure> {
    let (mut offset, mut wrote) = (0, false);
    loop {
        let piece = read(client, path, offset)?;
        wrote |= !piece.bytes.is_empty() || piece.dropped > 0;
        if piece.dropped > 0 {
            eprintln!("[{} bytes are not kept]", piece.dropped);
        }
        words::print_bytes(&piece.bytes);
        offset = piece.next;
        match (piece.bytes.is_empty(), piece.ended || !follow) {
            (true, true) => return Ok(wrote),
            (true, false) => std::thread::sleep(LOOK_EVERY),
            (false, _) => {}
        }
    }
}

/// The newest slot with a run, which is said beside the output.
fn newest(client: &Client, workflow: &str) -> Result<String, Failure> {
    let slot = client.newest_with_run(DOING, workflow)?.slot;
    words::note(format!("{slot} is the newest slot with a run"));
    Ok(slot.key.to_string())
}

/// The number of the latest run; waits for the first one where output is followed.
fn latest(client: &Client, slot: &str, args: &LogsArgs) -> Result<u32, Failure> {
    let mut told = false;
    loop {
        let row: SlotDto = client.get(DOING, slot, &Query::new())?;
        match row.last_run {
            // A slot that ended without a run has none later either, unless somebody opens it again.
            0 if args.follow && !is_final(&row.state) => {
                if !told {
                    words::note(format!("no run yet: the slot is {}", row.state));
                }
                told = true;
                std::thread::sleep(LOOK_EVERY);
            }
            0 => {
                let (id, at) = (words::operand(&row.slot.workflow), words::quoted(&row.slot.key.to_string()));
                return Err(Failure::bad(format!("{DOING}: {} is {}, and has not run yet", row.slot, row.state))
                    .hint(format!("`kelos why {id} {at}` says what it waits for")));
            }
            number => return Ok(number),
        }
    }
}

/// The message about a run without output, with its outcome.
fn silence(client: &Client, slot: &str, number: u32) -> String {
    match client.get::<RunDto>(DOING, &format!("{slot}/runs/{number}"), &Query::new()) {
        Ok(run) if run.ended_at.is_some() => {
            let how = run.outcome.map_or_else(|| run.state.to_string(), |outcome| outcome.text);
            format!("run {number} wrote nothing: {how}")
        }
        _ => format!("run {number} has written nothing yet"),
    }
}

fn read(client: &Client, path: &str, offset: u64) -> Result<Piece, Failure> {
    let mut query = Query::new();
    query.add("offset", offset);
    query.add("limit", 1 << 20);
    let answer = client.open(DOING, path, &query)?;
    let header =
        |name: &str| answer.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
    let (next, dropped, ended) = (header("kelos-next-offset"), header("kelos-dropped"), header("kelos-ended"));
    let mut bytes = Vec::new();
    let heard = answer.into_body().into_reader().read_to_end(&mut bytes);
    heard.map_err(|error| Failure::new(UNREACHABLE, format!("{DOING}: the server stopped answering: {error}")))?;
    let length = u64::try_from(bytes.len()).unwrap_or(0);
    Ok(Piece {
        next: next.parse().unwrap_or(offset + length),
        dropped: dropped.parse().unwrap_or(0),
        ended: ended == "true",
        bytes,
    })
}
