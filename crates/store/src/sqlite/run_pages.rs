//! Pages of runs: along the log, along an index of the few that failed or go on, or along the chain of a
//! workflow's runs.

use std::cmp::Reverse;

use kelos_model::{Run, RunState};
use rusqlite::{Connection, OptionalExtension, Row};

use super::fault::Fault;
use super::pages::{Found, known_workflow};
use super::rows::{Names, RUN, column, read_run_state};
use crate::contract::{Page, RunFilter};
use crate::cursor::parse_seq;

type FoundRuns = Found<Reverse<u64>, Run>;

/// The column `earlier` among [`RUN`].
const EARLIER: usize = 13;

/// A page of runs.
pub(super) fn runs(
    conn: &Connection,
    names: &Names,
    filter: &RunFilter,
    from: Option<&str>,
    limit: usize,
) -> Result<Page<Run>, Fault> {
    let before = from.map(parse_seq).transpose()?;
    let Some(workflow) = known_workflow(names, filter.workflow.as_ref()) else {
        return Ok(Page { rows: Vec::new(), next: None });
    };
    let limit = limit.max(1);
    let walk = RunWalk { conn, names, filter, workflow, before, limit };
    Ok(Found::page(walk.all()?, limit, |Reverse(seq)| seq.to_string()))
}

struct RunWalk<'a> {
    conn: &'a Connection,
    names: &'a Names,
    filter: &'a RunFilter,
    workflow: Option<i64>,
    /// The run after which the page begins.
    before: Option<u64>,
    limit: usize,
}

impl RunWalk<'_> {
    /// Goes all ways that lead to runs of the filter.
    fn all(&self) -> Result<Vec<FoundRuns>, Fault> {
        let states = &self.filter.states;
        if states.is_empty() || states.contains(&RunState::Succeeded) {
            return Ok(vec![match self.workflow {
                Some(workflow) => self.chain(workflow)?,
                None => self.index("NOT INDEXED", "")?,
            }]);
        }
        let mut ways = Vec::new();
        if states.iter().any(|state| !state.is_final()) {
            ways.push(self.index("INDEXED BY runs_open", "state < 2 AND ")?);
        }
        if states.iter().any(|state| *state > RunState::Succeeded) {
            ways.push(match self.workflow {
                Some(workflow) => {
                    self.index("INDEXED BY runs_troubled_of", &format!("state > 2 AND workflow = {workflow} AND "))?
                }
                None => self.index("INDEXED BY runs_troubled", "state > 2 AND ")?,
            });
        }
        Ok(ways)
    }

    fn index(&self, index: &str, prefix: &str) -> Result<FoundRuns, Fault> {
        let mut found = Found::new(self.limit);
        let sql = format!("SELECT {RUN} FROM runs {index} WHERE {prefix}seq < ?1 ORDER BY seq DESC");
        let mut statement = self.conn.prepare_cached(&sql)?;
        let mut rows = statement.query([self.before.map_or(i64::MAX, column)])?;
        while !found.is_full() {
            let Some(row) = rows.next()? else { break };
            self.look(row, &mut found)?;
        }
        Ok(found)
    }

    fn look(&self, row: &Row<'_>, found: &mut FoundRuns) -> Result<(), Fault> {
        let states = &self.filter.states;
        let seq = Reverse(row.get(0)?);
        let right_state = states.is_empty() || states.contains(&read_run_state(row, 6)?);
        let right_workflow = self.workflow.is_none_or(|workflow| row.get(1) == Ok(workflow));
        if right_state && right_workflow {
            found.rows.push((seq, self.names.read_run(row)?));
        } else {
            found.pass_over(seq);
        }
        Ok(())
    }

    /// From a workflow's latest run, or the one that the page before ended with, to the one before it.
    fn chain(&self, workflow: i64) -> Result<FoundRuns, Fault> {
        let (sql, values) = match self.before {
            None => ("SELECT last_run FROM workflows WHERE id = ?1", [workflow, 0]),
            Some(before) => ("SELECT earlier FROM runs WHERE workflow = ?1 AND seq = ?2", [workflow, column(before)]),
        };
        let values = &values[..if self.before.is_some() { 2 } else { 1 }];
        let head = self.conn.prepare_cached(sql)?.query_row(rusqlite::params_from_iter(values), |row| row.get(0));
        let Some(mut seq) = head.optional()? else {
            // The cursor comes from another list: it is no run of this workflow.
            return self.index("NOT INDEXED", "");
        };
        let mut found = Found::new(self.limit);
        let mut statement = self.conn.prepare_cached(&format!("SELECT {RUN} FROM runs WHERE seq = ?1"))?;
        while seq > 0 && !found.is_full() {
            let mut rows = statement.query([column(seq)])?;
            let row = rows.next()?.ok_or_else(|| Fault::Nonsense(format!("there is no run number {seq}")))?;
            self.look(row, &mut found)?;
            let earlier = row.get(EARLIER)?;
            if earlier >= seq {
                return Err(Fault::Nonsense(format!("run number {seq} names number {earlier} as an earlier one")));
            }
            seq = earlier;
        }
        Ok(found)
    }
}
