//! Recovery from a log that lost its end: what a node has and its log lacks, what the log has instead, and which of the two goes.
//!
//! Turns are compared by their digests, which cover all that was before. Numbers alone say nothing: a log that lost its end and went on has
//! other entries under the same numbers.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use kelos_model::{EventRecord, Run};
use kelos_store::log::{EntryBody, FORM, LocalState, Log, Reign, entry_bytes, read_entry};
use kelos_store::{EventFilter, PageRequest, Queries, StoredState, TurnRecord};
use kelos_store_sqlite::SqliteState;

use super::LogPlace;
use super::moving::{MoveError, MoveReport, PAGE, refused, take_when_silent};

/// The difference between the state of a node and its log.
#[derive(Debug, Clone)]
pub struct Tail {
    /// The last entry of the node.
    pub local: u64,
    /// The last entry of the log.
    pub log: u64,
    /// The turns that only the node has.
    pub own: TurnsOf,
    /// The turns that only the log has, although the node is that far.
    pub foreign: TurnsOf,
    /// The entry of the first of these.
    pub foreign_from: Option<u64>,
    /// The runs that were live when the node saw them last: their commands may be at work.
    pub live: Vec<Run>,
}

/// Turns that one side lacks.
#[derive(Debug, Clone, Default)]
pub struct TurnsOf {
    /// How many there are.
    pub turns: u64,
    /// The nodes that led them, as far as known, in order.
    pub by: Vec<String>,
    /// The moments of the first and the last.
    pub times: Option<(Timestamp, Timestamp)>,
    /// Their events.
    pub events: Vec<EventRecord>,
}

impl TurnsOf {
    fn add(&mut self, record: TurnRecord, by: &str, events: Vec<EventRecord>) {
        self.turns += 1;
        self.times = Some((self.times.map_or(record.at, |(first, _)| first), record.at));
        if self.by.last().is_none_or(|last| last != by) {
            self.by.push(by.to_owned());
        }
        self.events.extend(events);
    }
}

/// Compares the state of a node, which does not run, with its log.
///
/// # Errors
/// When the log or the state can't be read.
pub fn tail(place: &LogPlace, folder: &Path) -> Result<Tail, MoveError> {
    let mut log = place.store()?.open()?;
    let mut state = SqliteState::open(folder.join("kelos.db"))?;
    compare(&mut state, &mut *log)
}

fn compare(state: &mut SqliteState, log: &mut dyn Log) -> Result<Tail, MoveError> {
    let (position, reader, ends) = (state.position()?, state.reader(), log.ends()?);
    let mut tail = Tail {
        local: position.entry,
        log: ends.last,
        own: TurnsOf::default(),
        foreign: TurnsOf::default(),
        foreign_from: None,
        live: state.restore()?.runs,
    };
    let last_own = position.turn.map_or(0, |turn| turn.turn);
    // Turns up to here are the same on both sides; none where what is left of the log begins later.
    let mut common = None;
    let mut leader = String::from("an unknown node");
    let mut after = ends.first.saturating_sub(1);
    loop {
        let entries = log.read(after, PAGE)?;
        let Some(last) = entries.last() else { break };
        after = last.position;
        for entry in &entries {
            match read_entry(entry, FORM)? {
                EntryBody::Plug(reign) => leader = reign.node,
                EntryBody::Turn { record, commit } => match turn_at(&*reader, record.turn)? {
                    Some(own) if own == record => common = Some(record.turn),
                    // The node has not come so far, or has removed that history.
                    None if tail.foreign_from.is_none() => {}
                    _ => {
                        tail.foreign_from.get_or_insert(entry.position);
                        tail.foreign.add(record, &leader, commit.events.clone());
                    }
                },
            }
        }
    }
    if common.is_none() && ends.last > 0 && tail.foreign_from.is_none() && tail.local <= ends.last {
        // The rest of the log has no turn to compare.
        return Ok(tail);
    }
    let from = match common {
        Some(common) => common,
        None if ends.first <= 1 => 0,
        None => before_foreign(&tail, last_own)?,
    };
    own_tail(state, &*reader, from, &mut tail.own)?;
    Ok(tail)
}

/// The last turn that both sides may have where none of those that were compared is the same: the ones before are not kept in the log.
fn before_foreign(tail: &Tail, last_own: u64) -> Result<u64, MoveError> {
    match tail.foreign_from {
        Some(_) => Err(refused(
            "compare this node with the log: none of the entries that the log keeps is that of the node; restore a backup of one of them",
        )),
        // The rest of the log has no turns.
        None => Ok(last_own.saturating_sub(tail.local.saturating_sub(tail.log))),
    }
}

/// Adds the turns of a node after one.
fn own_tail(state: &mut SqliteState, reader: &dyn Queries, from: u64, own: &mut TurnsOf) -> Result<(), MoveError> {
    let reigns = state.reigns(usize::MAX)?;
    let by =
        |epoch: u64| reigns.iter().find(|reign| reign.epoch == epoch).map_or("an unknown node", |reign| &reign.node);
    let mut cursor = from;
    loop {
        let after = cursor.to_string();
        let page = PageRequest::oldest(PAGE);
        let rows = reader.turns(if cursor == 0 { page } else { page.after(Some(&after)) })?.rows;
        let Some(last) = rows.last() else { return Ok(()) };
        cursor = last.turn;
        for record in rows {
            own.add(record, by(record.epoch), events_of(reader, &record)?);
        }
    }
}

fn turn_at(reader: &dyn Queries, turn: u64) -> Result<Option<TurnRecord>, MoveError> {
    let before = turn.saturating_sub(1).to_string();
    let page = PageRequest::oldest(1);
    let found = reader.turns(if turn <= 1 { page } else { page.after(Some(&before)) })?.rows.pop();
    Ok(found.filter(|found| found.turn == turn))
}

fn events_of(reader: &dyn Queries, record: &TurnRecord) -> Result<Vec<EventRecord>, MoveError> {
    if record.events == 0 {
        return Ok(Vec::new());
    }
    let (after, until) = (record.first_event - 1, record.first_event - 1 + record.events);
    let limit = usize::try_from(record.events).unwrap_or(usize::MAX);
    let filter = EventFilter { after, until, ..EventFilter::default() };
    Ok(reader.events(&filter, PageRequest::oldest(limit))?.rows)
}

/// Makes the log what a node has: for a log that lost its end. All other nodes take the state over from there, and must not run meanwhile.
/// Entries that the log has instead are dropped, from one on that has to be named.
///
/// # Errors
/// When a node leads, the log has gone on and `discard_from` is not where, or the log fails; the same may be done again then.
pub fn append_tail(place: &LogPlace, folder: &Path, discard_from: Option<u64>) -> Result<MoveReport, MoveError> {
    let store = place.store()?;
    let mut log = store.open()?;
    let mut state = SqliteState::open(folder.join("kelos.db"))?;
    let found = compare(&mut state, &mut *log)?;
    check_discard(&found, discard_from)?;
    let position = state.position()?;
    let events = state.restore()?.last_seq;
    let report =
        |entry| MoveReport { entry, turn: position.turn, events, bytes: 0, files: Vec::new(), left: Vec::new() };
    if log.ends()?.last == 0 {
        let (_, mut copy) = state.copy(folder)?;
        log.put_snapshot(position.entry, &mut copy)?;
        let lease = take_when_silent(&mut *log, "kelos recover", None, position.epoch)?;
        log.release(&lease)?;
        return Ok(report(position.entry));
    }
    let lease = take_when_silent(&mut *log, "kelos recover", None, position.epoch)?;
    let reign = Reign {
        epoch: lease.epoch,
        node: lease.holder.node.clone(),
        address: None,
        at: Timestamp::from_millisecond(Timestamp::now().as_millisecond()).unwrap_or_default(),
        reason: "what a node had was put into the log, which had lost it".to_owned(),
    };
    let plug = entry_bytes(lease.writes(), &EntryBody::Plug(reign.clone())).map_err(refused)?;
    // The numbers that were lost are passed over; what they were is in the snapshot.
    let next = log.ends()?.last.max(position.entry) + 1;
    for entry in log.ends()?.last + 1..=next {
        log.append(lease.epoch, entry, &plug)?;
    }
    for entry in position.entry + 1..=next {
        state.begin(entry, &reign)?;
    }
    let (_, mut copy) = state.copy(folder)?;
    log.put_snapshot(next, &mut copy)?;
    log.trim(next + 1)?;
    log.release(&lease)?;
    Ok(report(next))
}

/// Refuses to drop entries that were not named.
fn check_discard(found: &Tail, discard_from: Option<u64>) -> Result<(), MoveError> {
    match (found.foreign_from, discard_from) {
        (None, None) => Ok(()),
        (None, Some(named)) => Err(refused(format!(
            "discard the log from entry {named}: it has nothing that this node lacks and would lose; leave --discard-log-from out"
        ))),
        (Some(from), Some(named)) if from == named => Ok(()),
        (Some(from), named) => {
            let turns = found.foreign.turns;
            let what = named.map_or_else(String::new, |named| format!(", and not with {named}"));
            Err(refused(format!(
                "append what this node has: the log went on without it, from entry {from}{what}, and {turns} turns would be lost; \
                 `--discard-log-from {from}` drops them, and --export keeps a copy"
            )))
        }
    }
}

/// Takes the log as it is: the state of the node is put aside, and is built again from there. Returns where the state is now.
///
/// # Errors
/// When the node runs, or its files can't be renamed.
pub fn accept_loss(folder: &Path) -> Result<PathBuf, MoveError> {
    let database = folder.join("kelos.db");
    drop(SqliteState::open(&database)?);
    let aside = folder.join(format!("kelos.db.ahead-{}", Timestamp::now().as_second()));
    for end in ["", "-wal", "-shm"] {
        let with = |path: &Path| PathBuf::from(format!("{}{end}", path.display()));
        match std::fs::rename(with(&database), with(&aside)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(refused(format!("rename {}: {error}", with(&database).display())));
            }
            _ => {}
        }
    }
    Ok(aside)
}
