//! Pages of events: along the log, along an index of the few that are about no slot, or along the chain of a slot's own.

use std::cmp::Reverse;

use kelos_model::{Event, EventRecord, SlotRef};
use kelos_store::adapter::Span;
use kelos_store::{About, EventFilter, Order, Page, PageRequest};
use rusqlite::Connection;

use super::fault::Fault;
use super::listing::PageBuilder;
use super::lookups;
use super::rows::{EVENT, Names};
use super::trim;

/// A page of events.
pub(super) fn events(
    conn: &Connection,
    names: &Names,
    filter: &EventFilter,
    paging: &PageRequest<'_>,
) -> Result<Page<EventRecord>, Fault> {
    let span = Span::between(filter.after, filter.until).of(paging)?;
    let mut found = PageBuilder::new(paging);
    match &filter.about {
        About::Slot(id) => of_slot(conn, names, id, span, &mut found)?,
        about => along(conn, names, about, span, &mut found)?,
    }
    Ok(PageBuilder::page(vec![found], paging, |Reverse(seq)| seq.to_string()))
}

type FoundEvents = PageBuilder<Reverse<u64>, EventRecord>;

/// The index by which events about something are found, and the condition for it; none if the workflow doesn't exist.
fn road(names: &Names, about: &About) -> Option<(&'static str, String)> {
    Some(match about {
        About::Anything | About::Slot(_) => ("NOT INDEXED", String::new()),
        About::Workflow(id) => names.number(id).map(|_| ("NOT INDEXED", String::new()))?,
        About::WorkflowItself(id) => {
            let number = names.number(id)?;
            ("INDEXED BY events_of_workflows", format!("workflow = {number} AND kind IS NULL AND "))
        }
        About::Facts | About::Access => ("INDEXED BY events_outside", "workflow IS NULL AND ".to_owned()),
    })
}

fn along(conn: &Connection, names: &Names, about: &About, span: Span, found: &mut FoundEvents) -> Result<(), Fault> {
    let Some((index, prefix)) = road(names, about) else { return Ok(()) };
    let of = match about {
        About::Workflow(id) => names.number(id),
        _ => None,
    };
    let backwards = if found.order() == Order::Newest { " DESC" } else { "" };
    let sql =
        format!("SELECT {EVENT} FROM events {index} WHERE {prefix}seq >= ?1 AND seq < ?2 ORDER BY seq{backwards}");
    let mut statement = conn.prepare_cached(&sql)?;
    let mut rows = statement.query([span.first, span.end])?;
    while !found.is_full() {
        let Some(row) = rows.next()? else { break };
        let seq = Reverse(row.get(0)?);
        if of.is_some() && row.get::<_, Option<i64>>(3)? != of {
            found.pass_over(seq);
            continue;
        }
        let Ok(record) = names.read_event(row)? else {
            found.pass_over(seq);
            continue;
        };
        let is_about = match about {
            About::Facts => matches!(record.event, Event::Fact { .. }),
            About::Access => record.event.is_about_access(),
            _ => true,
        };
        if is_about {
            found.rows.push((seq, record));
        } else {
            found.pass_over(seq);
        }
    }
    Ok(())
}

/// Each event of a slot names the one before it.
fn of_slot(conn: &Connection, names: &Names, id: &SlotRef, span: Span, found: &mut FoundEvents) -> Result<(), Fault> {
    let trimmed = trim::read(conn)?;
    let link = |seq: u64| match lookups::event(conn, names, seq)? {
        None if !trimmed.covers(seq) => Err(Fault::Damaged(format!("event {seq} of {id} is missing"))),
        found => Ok(found),
    };
    let head = lookups::slot(conn, names, id)?.map_or(0, |slot| slot.last_event);
    found.follow(span, head, link, |record| record.previous, |_| true)
}
