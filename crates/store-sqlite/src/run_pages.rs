//! Pages of runs: along the log, along an index of the few that failed or are live, along the chain of the runs of a
//! workflow or a slot, or along the part of the log that belongs to a range of time.

use std::cmp::Reverse;

use kelos_model::history::RemovedHistory;
use kelos_model::ranges::Range;
use kelos_model::{Run, RunState, SlotRef};
use kelos_store::adapter::Span;
use kelos_store::{CLOCK_SLACK_MILLIS, Order, Page, PageRequest, RUN_LOOK_BACK_MILLIS, RunFilter};
use rusqlite::{Connection, OptionalExtension, Row};

use super::fault::Fault;
use super::listing::{PageBuilder, known_workflow};
use super::lookups;
use super::rows::{Names, RUN, column, counted_of, read_run_state, test_run};
use super::trim;

type FoundRuns = PageBuilder<Reverse<u64>, Run>;

/// The column `earlier` among [`RUN`].
const EARLIER: usize = 13;

/// A page of runs.
pub(super) fn runs(
    conn: &Connection,
    names: &Names,
    filter: &RunFilter,
    paging: &PageRequest<'_>,
) -> Result<Page<Run>, Fault> {
    let span = Span::WHOLE.of(paging)?;
    let Some(workflow) = known_workflow(names, filter.workflow.as_ref()) else {
        return Ok(Page { rows: Vec::new(), next: None });
    };
    let part = filter.range.map(|range| part_of(conn, range)).transpose()?;
    let trimmed = trim::read(conn)?;
    let walk = RunWalk { conn, names, filter, workflow, paging, span, part, trimmed };
    Ok(PageBuilder::page(walk.all()?, paging, |Reverse(seq)| seq.to_string()))
}

/// The part of the log in which the runs of a range were dispatched, except for live ones.
fn part_of(conn: &Connection, range: Range) -> Result<Span, Fault> {
    let (start, end) = (range.start.as_millisecond(), range.end.as_millisecond());
    let last: Option<i64> = conn.prepare_cached("SELECT max(seq) FROM runs")?.query_row([], |row| row.get(0))?;
    let size = last.map_or(0, |last| last + 1);
    let first = first_since(conn, size, start.saturating_sub(RUN_LOOK_BACK_MILLIS + CLOCK_SLACK_MILLIS))?;
    Ok(Span { first, end: first_since(conn, size, end.saturating_add(CLOCK_SLACK_MILLIS))? })
}

/// The position from which on runs were dispatched at a moment or later, found by halving a log of that size. Where the
/// clock was put back there may be several; then it is one of them.
fn first_since(conn: &Connection, size: i64, moment: i64) -> Result<i64, Fault> {
    let (mut low, mut high) = (0, size);
    let mut next = conn.prepare_cached("SELECT seq, dispatched_at FROM runs WHERE seq >= ?1 ORDER BY seq LIMIT 1")?;
    while low < high {
        let middle = low + (high - low) / 2;
        let found = next.query_row([middle], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?))).optional()?;
        match found {
            Some((seq, at)) if at < moment => low = seq + 1,
            _ => high = middle,
        }
    }
    Ok(low)
}

/// The index of all runs but those of steps, and its condition.
const RUNS_OF_SLOTS: (&str, &str) = ("INDEXED BY runs_of_slots", "kind <> 4 AND ");

struct RunWalk<'a> {
    conn: &'a Connection,
    names: &'a Names,
    filter: &'a RunFilter,
    workflow: Option<i64>,
    paging: &'a PageRequest<'a>,
    /// The rest of the log for this page.
    span: Span,
    /// The part of the log with the runs of the filter's range, if it has one.
    part: Option<Span>,
    /// The part of the history that was removed.
    trimmed: RemovedHistory,
}

impl RunWalk<'_> {
    /// Reads the runs of the filter by all indexes that have some.
    fn all(&self) -> Result<Vec<FoundRuns>, Fault> {
        if let Some(slot) = &self.filter.slot {
            return Ok(vec![self.of_slot(slot)?]);
        }
        let states = &self.filter.states;
        let any_open = states.is_empty() || states.iter().any(|state| !state.is_final());
        let mut ways = Vec::new();
        if states.is_empty() || states.contains(&RunState::Succeeded) {
            ways.push(match (self.part, self.workflow) {
                (None, Some(workflow)) if self.paging.order == Order::Newest && !self.filter.with_steps => {
                    return Ok(vec![self.chain(workflow)?]);
                }
                (part, _) => self.everything(part.unwrap_or(Span::WHOLE))?,
            });
            if let Some(part) = self.part.filter(|_| any_open) {
                self.open(Span { end: part.first, ..Span::WHOLE }, &mut ways)?;
            }
            return Ok(ways);
        }
        if any_open {
            self.open(Span { first: 0, ..self.part.unwrap_or(Span::WHOLE) }, &mut ways)?;
        }
        if states.iter().any(|state| *state > RunState::Succeeded) {
            self.troubled(self.part.unwrap_or(Span::WHOLE), &mut ways)?;
        }
        Ok(ways)
    }

    /// The runs of slots, and where the filter asks for them those of steps: the halves of an index, as SQL writes them.
    fn halves(&self) -> &'static [&'static str] {
        if self.filter.with_steps { &["(kind = 4) = 0 AND ", "(kind = 4) = 1 AND "] } else { &["(kind = 4) = 0 AND "] }
    }

    fn everything(&self, part: Span) -> Result<FoundRuns, Fault> {
        match self.filter.with_steps {
            true => self.index("NOT INDEXED", "", part),
            false => self.index(RUNS_OF_SLOTS.0, RUNS_OF_SLOTS.1, part),
        }
    }

    fn open(&self, part: Span, ways: &mut Vec<FoundRuns>) -> Result<(), Fault> {
        for half in self.halves() {
            ways.push(self.index("INDEXED BY runs_open", &format!("state < 2 AND {half}"), part)?);
        }
        Ok(())
    }

    fn troubled(&self, part: Span, ways: &mut Vec<FoundRuns>) -> Result<(), Fault> {
        for half in self.halves() {
            ways.push(match self.workflow {
                Some(workflow) => {
                    let condition = format!("state > 2 AND workflow = {workflow} AND {half}");
                    self.index("INDEXED BY runs_troubled_of", &condition, part)?
                }
                None => self.index("INDEXED BY runs_troubled", &format!("state > 2 AND {half}"), part)?,
            });
        }
        Ok(())
    }

    fn index(&self, index: &str, prefix: &str, part: Span) -> Result<FoundRuns, Fault> {
        let mut found = PageBuilder::new(self.paging);
        self.walk((index, prefix), part, &mut found)?;
        Ok(found)
    }

    fn walk(&self, (index, prefix): (&str, &str), part: Span, found: &mut FoundRuns) -> Result<(), Fault> {
        let backwards = if self.paging.order == Order::Newest { " DESC" } else { "" };
        let sql =
            format!("SELECT {RUN} FROM runs {index} WHERE {prefix}seq < ?1 AND seq >= ?2 ORDER BY seq{backwards}");
        let mut statement = self.conn.prepare_cached(&sql)?;
        let Span { first, end } = part.and(self.span);
        let mut rows = statement.query([end, first])?;
        while !found.is_full() {
            let Some(row) = rows.next()? else { break };
            self.look(row, found)?;
        }
        Ok(())
    }

    fn look(&self, row: &Row<'_>, found: &mut FoundRuns) -> Result<(), Fault> {
        let states = &self.filter.states;
        let (seq, state) = (Reverse(row.get(0)?), read_run_state(row, 6)?);
        let right_state = states.is_empty() || states.contains(&state);
        let right_workflow = self.workflow.is_none_or(|workflow| row.get(1) == Ok(workflow));
        if right_state && right_workflow && self.filter.has_time(state, row.get(9)?, row.get(11)?) {
            found.rows.push((seq, self.names.read_run(row)?));
        } else {
            found.pass_over(seq);
        }
        Ok(())
    }

    /// Each run of a slot names the one before it.
    fn of_slot(&self, slot: &SlotRef) -> Result<FoundRuns, Fault> {
        let mut found = PageBuilder::new(self.paging);
        let head = lookups::slot(self.conn, self.names, slot)?.map_or(0, |slot| slot.last_run_seq);
        let link = |seq| self.found(seq);
        found.follow(self.span, head, link, |run| run.previous, |run| self.filter.passes(run))?;
        Ok(found)
    }

    /// A run; none if it was removed.
    fn found(&self, seq: u64) -> Result<Option<Run>, Fault> {
        match lookups::run(self.conn, self.names, seq)? {
            None if !self.trimmed.covers(seq) => Err(missing(seq)),
            found => Ok(found),
        }
    }

    /// The run of a workflow before one of its own.
    fn earlier(&self, workflow: i64, run: i64) -> Result<Option<u64>, Fault> {
        let sql = format!("SELECT {RUN} FROM runs WHERE workflow = ?1 AND seq = ?2");
        let mut statement = self.conn.prepare_cached(&sql)?;
        let mut rows = statement.query([workflow, run])?;
        let Some(row) = rows.next()? else { return Ok(None) };
        test_run(row)?;
        Ok(Some(row.get(EARLIER)?))
    }

    /// From a workflow's latest run, or the one that the page before ended with, to the one before it.
    fn chain(&self, workflow: i64) -> Result<FoundRuns, Fault> {
        let head = match self.paging.from {
            None => counted_of(self.conn, workflow)?.map(|counted| counted.last_run),
            Some(_) => self.earlier(workflow, self.span.end)?,
        };
        let Some(mut seq) = head else {
            // The cursor comes from another list: it is no run of this workflow.
            return self.everything(Span::WHOLE);
        };
        let mut found = PageBuilder::new(self.paging);
        let mut statement = self.conn.prepare_cached(&format!("SELECT {RUN} FROM runs WHERE seq = ?1"))?;
        while seq > 0 && !found.is_full() {
            let mut rows = statement.query([column(seq)])?;
            let Some(row) = rows.next()? else {
                if !self.trimmed.covers(seq) {
                    return Err(missing(seq));
                }
                // Those that are left below it are not linked: they are looked for among all runs, which may take more than one page.
                let below = Span { end: column(seq), ..Span::WHOLE };
                self.walk(RUNS_OF_SLOTS, below, &mut found)?;
                break;
            };
            self.look(row, &mut found)?;
            let earlier = row.get(EARLIER)?;
            if earlier >= seq {
                return Err(Fault::Damaged(format!("run number {seq} names number {earlier} as an earlier one")));
            }
            seq = earlier;
        }
        Ok(found)
    }
}

fn missing(seq: u64) -> Fault {
    Fault::Damaged(format!("there is no run number {seq}"))
}
