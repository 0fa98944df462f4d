//! The output of a run on its page: lines with times, streams and colours, a piece at a time and live.

mod ansi;
mod live;
mod mistake;

use kelos_executors::local::{LocalError, LogLine, LogLines, Stream};
use kelos_executors::workers::OutputReader;
use kelos_front::App;
use kelos_model::RunId;
use kelos_model::time::format_full;
use kelos_store::KnownRun;
use maud::{Markup, html};

use self::ansi::{Part, Style};
use super::page::slot_href;
use super::runs::download_href;
use super::words;

pub(super) use live::follow;

/// Bytes of output that a page shows of a run at a time.
const SHOWN: usize = 64 << 10;
/// The most lines of it: each takes some room of its own.
const MOST_LINES: usize = 10_000;
/// Bytes that are read at a time while the first error is searched.
const PIECE: usize = 1 << 20;
/// Bytes in which it is searched: more than is kept, unless a job keeps more than usual.
const SEARCHED: u64 = 64 << 20;
/// Bytes before the first error that are shown.
const BEFORE_ERROR: u64 = 4 << 10;

/// The part of an output to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum From {
    /// Its end.
    End,
    /// From the line on that begins at this offset.
    Offset(u64),
    /// Up to the line that begins at this offset.
    Before(u64),
    /// Around the first line that looks like an error.
    Error,
}

impl From {
    /// The part that a parameter of a page names.
    pub(super) fn read(text: Option<&str>) -> Option<From> {
        match text {
            None | Some("") => Some(From::End),
            Some("error") => Some(From::Error),
            Some(text) => match text.strip_prefix("before-") {
                Some(offset) => offset.parse().ok().map(From::Before),
                None => text.parse().ok().map(From::Offset),
            },
        }
    }
}

/// A part of a run's output.
pub(super) struct Output {
    run: RunId,
    /// The run whose output it is: the same, or of a batch the first slot's.
    source: RunId,
    is_over: bool,
    wanted: From,
    read: Result<LogLines, LocalError>,
    /// Whether nothing was written behind it so far.
    is_end: bool,
    /// Whether bytes right before it were dropped.
    is_behind_gap: bool,
    first_error: Option<u64>,
}

impl Output {
    /// Reads a part of a run's output so far.
    pub(super) async fn read(app: &App, run: &KnownRun, wanted: From) -> Output {
        let mut output = Output {
            run: run.id().clone(),
            source: run.leader(),
            is_over: run.is_over(),
            wanted,
            read: Ok(LogLines::default()),
            is_end: true,
            is_behind_gap: false,
            first_error: None,
        };
        if let Err(error) = output.fill(app).await {
            output.read = Err(error);
        }
        output
    }

    async fn fill(&mut self, app: &App) -> Result<(), LocalError> {
        let output = app.node().output(&self.source).await;
        let end = output.length().await?;
        if self.wanted == From::Error {
            self.first_error = first_error(&output).await?;
        }
        let read = match (self.wanted, self.first_error) {
            (From::Offset(offset), _) => output.lines(offset, SHOWN).await?,
            (From::Before(offset), _) => before(&output, offset).await?,
            (From::Error, Some(at)) => around(&output, at).await?,
            (From::End | From::Error, _) => output.last_lines(MOST_LINES, SHOWN).await?,
        };
        let mut read = if self.is_over { read.of_ended_run() } else { read };
        if let Some(beyond) = read.lines.get(MOST_LINES) {
            read.next_offset = beyond.offset;
            read.lines.truncate(MOST_LINES);
        }
        // An unfinished line is the end, too.
        self.is_end = read.next_offset >= end || read.lines.last().is_some_and(|last| last.offset == read.next_offset);
        if let Some(before) = read.lines.first().and_then(|first| first.offset.checked_sub(1)) {
            self.is_behind_gap = output.piece(before, 1).await?.offset > before;
        }
        // Of another part it is not known whether it is the first one.
        if read.lines.first().is_some_and(|first| first.offset == 0) {
            self.first_error = self.first_error.or_else(|| mistake::first(&read.lines));
        }
        self.read = Ok(read);
        Ok(())
    }

    /// The last lines of it, rendered; none if it can't be read.
    pub(super) fn last_lines(&self, most: usize) -> Option<Markup> {
        let lines = &self.read.as_ref().ok().filter(|_| self.is_end)?.lines;
        let last = &lines[lines.len().saturating_sub(most)..];
        (!last.is_empty()).then(|| html! { @for line in last { (row(line, &mut Style::default(), None)) } })
    }

    /// The address of another part of it.
    fn href(&self, from: &str, to: &str) -> String {
        format!("{}?run={}&from={from}#{to}", slot_href(&self.run.slot), self.run.number)
    }

    /// The address of the place of its first error.
    pub(super) fn error_href(&self) -> String {
        self.href("error", "first-error")
    }

    /// The output, and where scripts find more of it.
    pub(super) fn show(&self) -> Markup {
        let number = self.run.number;
        let nothing = LogLines::default();
        let read = self.read.as_ref().unwrap_or(&nothing);
        let start = read.lines.first().map_or(0, |first| first.offset);
        let lives = !self.is_over && self.is_end && self.read.is_ok();
        let stream =
            lives.then(|| format!("{}/runs/{number}/lines?from={}", slot_href(&self.run.slot), read.next_offset));
        html! {
            section #log data-run=(number) data-stream=[stream] {
                h2 { "Output of run " (number) }
                div.bar {
                    label.scripted-only { "Find " input #log-find type="search" autocomplete="off"; }
                    output #log-found aria-live="polite" {}
                    label.scripted-only hidden[!lives] { input #log-follow type="checkbox" checked; " follow" }
                    @if !read.lines.is_empty() { a.button #log-error href=(self.error_href()) { "First error" } }
                    @if start > 0 { a.button #log-earlier data-jumps[self.is_behind_gap] href=(self.earlier_href(start)) { (self.earlier_words()) } }
                    a.button href=(download_href(&self.run)) download { "Download" }
                }
                @match &self.read {
                    Ok(read) => (self.lines(read)),
                    Err(error) => p { "Failed to " (error) "." },
                }
            }
        }
    }

    fn lines(&self, read: &LogLines) -> Markup {
        let mut style = Style::default();
        html! {
            @if self.wanted == From::Error && self.first_error.is_none() {
                p.note role="status" { "No line of it looks like an error." }
            }
            @if self.is_behind_gap { p.soft { "The output before this was too long to be kept." } }
            pre #log-text .output tabindex="0" role="group" aria-label="output" {
                @for line in &read.lines { (row(line, &mut style, self.first_error)) }
            }
            p #log-empty .soft hidden[!read.lines.is_empty()] {
                @if self.is_over { "It has written nothing here." } @else { "It has written nothing yet." }
            }
            @if !self.is_end {
                p.bar {
                    a.button #log-later href=(self.href(&read.next_offset.to_string(), "log")) { "Show more" }
                    a.button href=(self.href("", "log")) { "Show its end" }
                }
            }
        }
    }

    /// The part before this one; behind a gap, the beginning.
    fn earlier_href(&self, start: u64) -> String {
        let from = if self.is_behind_gap { "0".to_owned() } else { format!("before-{start}") };
        self.href(&from, "log")
    }

    const fn earlier_words(&self) -> &'static str {
        if self.is_behind_gap { "Show its beginning" } else { "Show more of its beginning" }
    }
}

/// The last lines of a run's output as text; none if it can't be read.
pub async fn last_lines(app: &App, run: &RunId, most: usize) -> Vec<String> {
    let read = app.node().output(run).await.last_lines(most, SHOWN).await.unwrap_or_default();
    read.lines.iter().map(|line| ansi::plain(&line.bytes)).collect()
}

/// The lines before the one that begins at an offset.
async fn before(output: &OutputReader, at: u64) -> Result<LogLines, LocalError> {
    let start = at.saturating_sub(SHOWN as u64);
    // From one byte before, so that a line which begins there is seen to begin.
    let from = start.saturating_sub(1);
    let length = usize::try_from(at - from).unwrap_or(SHOWN);
    let mut read = output.lines(from, length.max(1)).await?;
    if start > 0 && read.dropped == 0 && read.lines.len() > 1 {
        read.lines.remove(0);
    }
    read.lines.retain(|line| line.offset < at);
    read.lines.drain(..read.lines.len().saturating_sub(MOST_LINES));
    Ok(read)
}

/// The lines around the one that begins at an offset.
async fn around(output: &OutputReader, at: u64) -> Result<LogLines, LocalError> {
    let from = at.saturating_sub(BEFORE_ERROR);
    let mut read = output.lines(from, SHOWN).await?;
    // The first line begins somewhere before.
    if from > 0 && read.dropped == 0 && read.lines.first().is_some_and(|first| first.offset < at) {
        read.lines.remove(0);
    }
    // It may lie behind a gap, or a line that is longer than what is shown.
    if !read.lines.iter().any(|line| line.offset == at) {
        read = output.lines(at, SHOWN).await?;
    }
    Ok(read)
}

/// The offset of the first line of a run's output that looks like an error.
async fn first_error(output: &OutputReader) -> Result<Option<u64>, LocalError> {
    let (mut offset, mut searched) = (0, 0);
    while searched < SEARCHED {
        let read = output.lines(offset, PIECE).await?;
        if let Some(found) = mistake::first(&read.lines) {
            return Ok(Some(found));
        }
        if read.next_offset <= offset {
            break;
        }
        searched += read.lines.first().map_or(0, |first| read.next_offset.saturating_sub(first.offset));
        offset = read.next_offset;
    }
    Ok(None)
}

/// A line. What the shell pastes and what is searched is its text alone: its time and stream are drawn by the style.
fn row(line: &LogLine, style: &mut Style, first_error: Option<u64>) -> Markup {
    let exact = line.at.map(format_full);
    let clock = line.at.map(words::clock);
    let (class, said) = match line.stream {
        Some(Stream::Stderr) => ("row err", "standard error"),
        Some(Stream::Kelos) => ("row kls", "by Kelos"),
        Some(Stream::Stdout) => ("row", "standard output"),
        None => ("row", "its time and stream were not kept"),
    };
    let title = exact.as_ref().map_or_else(|| said.to_owned(), |exact| format!("{exact}, {said}"));
    let is_first_error = first_error == Some(line.offset);
    html! {
        span id=[is_first_error.then_some("first-error")] class=(class)
            data-offset=(line.offset) data-at=[clock] title=(title) {
            @for part in ansi::parts(&line.bytes, style) { (shown(&part)) }
            @if line.whole { "\n" }
        }
    }
}

fn shown(part: &Part) -> Markup {
    match part {
        Part::Text(style, text) if *style == Style::default() => html! { (text) },
        Part::Text(style, text) => html! { span class=(classes(*style)) { (text) } },
        // A line of progress that is written over.
        Part::Sign('\r') => html! { span.sign title="U+000D" { "␍" } "\n" },
        Part::Sign(sign) => {
            let code = u32::from(*sign);
            let picture = char::from_u32(0x2400 + code).filter(|_| code < 0x20);
            html! { span.sign title=(format!("U+{code:04X}")) { @match picture { Some(picture) => (picture), None => { "U+" (format!("{code:04X}")) } } } }
        }
    }
}

/// The classes of a style. On a coloured ground the text is black or white, whatever its colour: it is to be read.
fn classes(style: Style) -> String {
    let mut classes = Vec::new();
    match (style.inverse, style.ink, style.ground) {
        (false, ink, None) => classes.extend(ink.map(|ink| format!("f{ink}"))),
        (false, _, Some(ground)) => classes.push(format!("b{ground}")),
        (true, Some(ink), _) => classes.push(format!("b{ink}")),
        (true, None, _) => classes.push("inverse".to_owned()),
    }
    let named = [
        (style.bold, "bold"),
        (style.faint, "faint"),
        (style.italic, "italic"),
        (style.underlined && style.struck, "both-lines"),
        (style.underlined && !style.struck, "underlined"),
        (style.struck && !style.underlined, "struck"),
    ];
    classes.extend(named.into_iter().filter(|(holds, _)| *holds).map(|(_, name)| name.to_owned()));
    classes.join(" ")
}

#[cfg(test)]
mod tests;
