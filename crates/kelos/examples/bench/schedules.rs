//! What lists and pages of event schedules read, where there are many of them and some have a long past.

use std::time::Instant;

use jiff::Timestamp;
use kelos_explain::schedules::{decisions, overview};
use kelos_model::workflow::WorkflowRow;
use kelos_store::{About, EventFilter, PageRequest, Queries, StoreError, StoredState};
use kelos_store_sqlite::SqliteStore;

use crate::schedules_past::{MOST, fill, schedule_id};
use crate::support::{Outcome, figures, folder, load};

/// How often each is read.
const ROUNDS: usize = 200;
/// Rows of a page.
const PAGE: usize = 100;

pub(crate) fn run(schedules: usize) -> Outcome {
    let folder = folder()?;
    let path = folder.path().join("kelos.db");
    let now = Timestamp::from_second(Timestamp::now().as_second() / 60 * 60)?;
    let begin = Instant::now();
    let slots = fill(&path, schedules, now)?;
    println!("{schedules} event schedules with {slots} slots, one with {MOST}, written in {:.0?}", begin.elapsed());
    let store = SqliteStore::open(&path)?;
    let reader = store.reader();
    let reader = &*reader;
    println!("read (load {}):", load());
    let begin = Instant::now();
    let rows: Vec<WorkflowRow> = reader.workflows(None)?.into_iter().filter(is_schedule).collect();
    println!("  {:<62} {:.2?}", "all definitions, for the first time", begin.elapsed());
    time("all definitions", || Ok(reader.workflows(None)?.len()))?;
    time("a page of 100 schedules and how each stands", || page(reader, &rows[..PAGE.min(rows.len())], now))?;
    for (number, what) in [(0, "that of 90,000 slots"), (1, "one with 5,000 facts pending"), (100, "one of five slots")]
    {
        let id = schedule_id(number);
        let row = reader.workflow(&id)?.ok_or("it is there")?;
        time(&format!("how it stands: {what}"), || Ok(overview::read(reader, &row, now)?.pending.len()))?;
        time(&format!("… how many slots it has in each state: {what}"), || Ok(overview::counts(reader, &id)?.len()))?;
        time(&format!("… its 100 newest decisions: {what}"), || {
            Ok(decisions::read(reader, &id, None, PAGE)?.rows.len())
        })?;
    }
    let id = schedule_id(0);
    let mut pages = Vec::new();
    let mut from: Option<String> = None;
    loop {
        let begin = Instant::now();
        let page = decisions::read(reader, &id, from.as_deref(), PAGE)?;
        pages.push(begin.elapsed());
        from = page.next;
        if from.is_none() {
            break;
        }
    }
    println!("  {:<62} {}", "every page of its 90,000 decisions", figures(&mut pages));
    time("100 facts", || Ok(reader.events(&EventFilter::about(About::Facts), PageRequest::newest(PAGE))?.rows.len()))?;
    Ok(())
}

fn is_schedule(row: &WorkflowRow) -> bool {
    row.definition.keys.events().is_some()
}

fn page(reader: &dyn Queries, rows: &[WorkflowRow], now: Timestamp) -> Result<usize, StoreError> {
    let mut pending = 0;
    for row in rows {
        pending += overview::read(reader, row, now)?.pending.len();
    }
    Ok(pending)
}

fn time(what: &str, read: impl Fn() -> Result<usize, StoreError>) -> Outcome {
    let mut spent = Vec::new();
    let mut size = 0;
    for _ in 0..ROUNDS {
        let begin = Instant::now();
        size = read()?;
        spent.push(begin.elapsed());
    }
    println!("  {what:<62} {}; {size}", figures(&mut spent));
    Ok(())
}
