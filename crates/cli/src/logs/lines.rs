//! Output line by line, with times and streams.

use std::time::Duration;

use kelos_wire::{OutputLineDto, OutputLinesDto};
use serde::Serialize;

use super::{DOING, LOOK_EVERY};
use crate::address::Query;
use crate::client::Client;
use crate::failure::Failure;
use crate::{render, terminal, text as words};

/// Bytes that are asked for at a time.
const PIECE: usize = 1 << 20;

/// The choice of lines, and what stands before each.
#[derive(clap::Args)]
pub(super) struct LineForm {
    /// Begin each line with the time at which it came
    #[arg(short, long)]
    timestamps: bool,
    /// Begin each line with its stream: out, err, or kelos
    #[arg(long)]
    streams: bool,
    /// Print only what was written to standard error
    #[arg(long)]
    stderr: bool,
    /// Print only what was written to standard output
    #[arg(long, conflicts_with = "stderr")]
    stdout: bool,
}

impl LineForm {
    /// Whether the output is printed as it is: on a terminal with colours, standard error has its own.
    pub(super) fn is_plain(&self) -> bool {
        !(self.timestamps || self.streams || self.stderr || self.stdout || render::coloured())
    }

    fn takes(&self, line: &OutputLineDto) -> bool {
        match (&line.stream, self.stdout, self.stderr) {
            (_, false, false) => true,
            (Some(stream), out, err) => (out && *stream == "stdout") || (err && *stream == "stderr"),
            // From before streams were told apart.
            (None, ..) => false,
        }
    }

    /// The message about a run that wrote nothing of what was chosen.
    pub(super) fn nothing_chosen(&self, number: u32) -> Option<String> {
        let stream = match (self.stdout, self.stderr) {
            (true, _) => "standard output",
            (_, true) => "standard error",
            _ => return None,
        };
        Some(format!("nothing of run {number} is known to be of {stream}"))
    }

    /// The time and stream before a line.
    fn head(&self, line: &OutputLineDto) -> String {
        let mut head = String::new();
        if self.timestamps {
            let at = line.at.map_or_else(|| "-".to_owned(), |at| at.to_string());
            head = format!("{at:<24} ");
        }
        if self.streams {
            let stream = match line.stream.as_ref().map_or("-", |stream| stream.as_str()) {
                "stdout" => "out",
                "stderr" => "err",
                other => other,
            };
            head += &format!("{stream:<5} ");
        }
        head
    }
}

/// Prints lines, also those that have not ended yet.
struct Printer<'a> {
    form: &'a LineForm,
    coloured: bool,
    /// The offset of the line that is not ended yet, and how much of it is printed.
    open: Option<(u64, usize)>,
    wrote: bool,
}

impl Printer<'_> {
    fn lines(&mut self, read: &OutputLinesDto) {
        let mut printed = String::new();
        for line in read.lines.iter().filter(|line| self.form.takes(line)) {
            let known = match self.open.take() {
                Some((offset, known)) if offset == line.offset => known,
                _ => {
                    printed += &self.form.head(line);
                    0
                }
            };
            // The end of an unfinished line may be the beginning of a character.
            let is_open = line.offset == read.next_offset;
            let text = if is_open { line.text.trim_end_matches(char::REPLACEMENT_CHARACTER) } else { &line.text };
            let rest = text.get(known..).unwrap_or_default();
            let is_marked = self.coloured && line.stream.as_ref().is_some_and(|stream| *stream == "stderr");
            printed += &if is_marked { render::paint(rest, "failed") } else { rest.to_owned() };
            if is_open {
                self.open = Some((line.offset, text.len().max(known)));
            } else {
                printed.push('\n');
            }
        }
        self.wrote |= !printed.is_empty();
        // Output is printed as it is.
        words::raw(&terminal::with_colours(&printed));
    }
}

/// Prints the output line by line; whether there was any.
pub(super) fn print(client: &Client, path: &str, follow: bool, form: &LineForm) -> Result<bool, Failure> {
    let mut printer = Printer { form, coloured: render::coloured(), open: None, wrote: false };
    let mut offset = 0;
    loop {
        let read = read(client, path, offset)?;
        if read.dropped > 0 {
            eprintln!("[{} bytes are not kept]", read.dropped);
        }
        printer.lines(&read);
        let came = read.next_offset > offset;
        offset = read.next_offset;
        if read.ended || !(came || follow) {
            break;
        }
        std::thread::sleep(if came { Duration::ZERO } else { LOOK_EVERY });
    }
    if printer.open.is_some() {
        words::print("\n");
    }
    Ok(printer.wrote)
}

/// All of an output.
#[derive(Serialize)]
struct Whole {
    run: u32,
    lines: Vec<OutputLineDto>,
    dropped: u64,
    ended: bool,
}

/// Prints all of the output so far as JSON.
pub(super) fn json(client: &Client, path: &str, run: u32, form: &LineForm) -> Result<u8, Failure> {
    let mut whole = Whole { run, lines: Vec::new(), dropped: 0, ended: false };
    let mut offset = 0;
    loop {
        let read = read(client, path, offset)?;
        let came = read.next_offset > offset;
        whole.dropped += read.dropped;
        whole.ended = read.ended;
        offset = read.next_offset;
        whole.lines.extend(read.lines.into_iter().filter(|line| form.takes(line)));
        if whole.ended || !came {
            break;
        }
        // The unfinished line is read again.
        if whole.lines.last().is_some_and(|last| last.offset == offset) {
            whole.lines.pop();
        }
    }
    words::json(&whole);
    Ok(0)
}

fn read(client: &Client, path: &str, offset: u64) -> Result<OutputLinesDto, Failure> {
    let mut query = Query::new();
    query.add("offset", offset);
    query.add("limit", PIECE);
    client.get(DOING, &format!("{path}/lines"), &query)
}
