//! Every page of a list of many finished runs, and of their slots, read one after the other.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use kelos_model::{RunState, SlotState, WorkflowId};
use kelos_store::{Page, PageRequest, RunFilter, SlotFilter, StoreError, StoredState};
use kelos_store_sqlite::SqliteStore;

use crate::fill::{self, History};
use crate::support::{Outcome, figures, folder, load};

const ROWS: usize = 100;
/// Of as many workflows all pages are read.
const SOME: usize = 50;

pub(crate) fn run(runs: usize) -> Outcome {
    let folder = folder()?;
    let path = folder.path().join("kelos.db");
    let begin = Instant::now();
    fill::fill(&path, runs, Timestamp::now(), History::Whole)?;
    println!("{runs} finished runs with their whole history, written in {:.0?}", begin.elapsed());
    let store = SqliteStore::open(&path)?;
    let reader = store.reader();
    println!("pages of {ROWS}, all of a list, one after the other (load {}):", load());
    let some: Vec<_> = fill::workflows().into_iter().step_by(fill::WORKFLOWS / SOME).map(|one| one.id).collect();
    for states in [vec![], vec![RunState::Succeeded], vec![RunState::Failed], vec![RunState::Running]] {
        let filter =
            |workflow: Option<WorkflowId>| RunFilter { workflow, states: states.clone(), ..RunFilter::default() };
        let words = in_words(states.iter().map(|state| state.as_str()));
        let mut all = Walk::default();
        all.walk(|from| reader.runs(&filter(None), PageRequest::newest(ROWS).after(from)))?;
        all.print(&format!("runs, {words}"));
        let mut of_some = Walk::default();
        for id in &some {
            of_some.walk(|from| reader.runs(&filter(Some(id.clone())), PageRequest::newest(ROWS).after(from)))?;
        }
        of_some.print(&format!("runs of a workflow, {words}"));
    }
    for states in [vec![], vec![SlotState::Succeeded], vec![SlotState::Failed], vec![SlotState::Waiting]] {
        let filter =
            |workflow: Option<WorkflowId>| SlotFilter { workflow, states: states.clone(), ..SlotFilter::default() };
        let words = in_words(states.iter().map(|state| state.as_str()));
        let mut all = Walk::default();
        all.walk(|from| reader.slots(&filter(None), PageRequest::newest(ROWS).after(from)))?;
        all.print(&format!("slots, {words}"));
        let mut of_some = Walk::default();
        for id in &some {
            of_some.walk(|from| reader.slots(&filter(Some(id.clone())), PageRequest::newest(ROWS).after(from)))?;
        }
        of_some.print(&format!("slots of a workflow, {words}"));
    }
    Ok(())
}

fn in_words<'a>(states: impl Iterator<Item = &'a str>) -> String {
    let states: Vec<_> = states.collect();
    match states.is_empty() {
        true => "any state".to_owned(),
        false => states.join(" or "),
    }
}

/// Pages read so far.
#[derive(Default)]
struct Walk {
    spent: Vec<Duration>,
    rows: usize,
}

impl Walk {
    fn walk<T>(&mut self, page: impl Fn(Option<&str>) -> Result<Page<T>, StoreError>) -> Outcome {
        let mut from = None;
        loop {
            let begin = Instant::now();
            let Page { rows, next } = page(from.as_deref())?;
            self.spent.push(begin.elapsed());
            self.rows += rows.len();
            match next {
                Some(next) => from = Some(next),
                None => return Ok(()),
            }
        }
    }

    fn print(mut self, what: &str) {
        println!("  {what:<42} {:>7} rows: {}", self.rows, figures(&mut self.spent));
    }
}
