//! The database of a server, and the log that nodes share.

use std::time::Duration;

use super::clock::ClockReading;
use super::named;
use crate::doctor::diagnosis::Diagnosis;
use crate::text::grouped;

const CHECK: &str = "store";

/// The time for an answer of the store of a log that is worth a warning: a turn takes at least as long.
const SLOW: Duration = Duration::from_millis(200);
/// Entries that a node may lack without a warning: it follows in pages of as many.
const BEHIND: u64 = 1000;

/// The database in the folder of state.
#[derive(Debug, Clone)]
pub(in crate::doctor) enum Database {
    /// It could be read.
    Readable(Box<DatabaseState>),
    /// There is none yet.
    Missing,
    /// An older program wrote it; a message.
    TooOld(String),
    /// A newer program wrote it; a message.
    TooNew(String),
    /// Its data does not agree with itself; a message.
    Damaged(String),
    /// It can't be read; a message.
    Unusable(String),
}

/// The state of a database that could be read.
#[derive(Debug, Clone)]
pub(in crate::doctor) struct DatabaseState {
    /// The process that leads on it.
    pub(in crate::doctor) leader: Option<String>,
    /// The last entry of a shared log that it has followed; none where it has its own.
    pub(in crate::doctor) followed: Option<u64>,
    /// The number of its last turns that were verified.
    pub(in crate::doctor) verified: u64,
    /// The disagreements among them, in words.
    pub(in crate::doctor) disagreements: Vec<String>,
    /// The version of its schema.
    pub(in crate::doctor) schema: usize,
}

/// The log that nodes share.
#[derive(Debug, Clone)]
pub(in crate::doctor) enum SharedLog {
    /// It answered.
    Reached(Box<LogReading>),
    /// It did not; the reason completes "failed to …".
    Unreachable(String),
}

/// The state of a log that answered.
#[derive(Debug, Clone)]
pub(in crate::doctor) struct LogReading {
    /// Its address, without passwords.
    pub(in crate::doctor) name: String,
    /// The time that it took to answer.
    pub(in crate::doctor) took: Duration,
    /// The holder of the lease, or the last one.
    pub(in crate::doctor) holder: String,
    /// Whether the lease is given back, or was never taken.
    pub(in crate::doctor) is_free: bool,
    pub(in crate::doctor) epoch: u64,
    /// The form in which entries are written, the newest that this program reads.
    pub(in crate::doctor) forms: [u32; 2],
    /// The first entry that is kept.
    pub(in crate::doctor) first: u64,
    pub(in crate::doctor) last: u64,
    /// The clock of the store, which the check of clocks judges.
    pub(in crate::doctor) clock: Option<ClockReading>,
}

/// Judges the database and the log.
pub(in crate::doctor) fn judge(database: Option<&Database>, log: Option<&SharedLog>) -> Vec<Diagnosis> {
    let followed = match database {
        Some(Database::Readable(state)) => state.followed,
        _ => None,
    };
    let of_database = database.map(of_database);
    let of_log = log.map(|log| of_log(log, followed)).unwrap_or_default();
    of_database.into_iter().chain(of_log).collect()
}

fn of_database(database: &Database) -> Diagnosis {
    let state = match database {
        Database::Readable(state) => state,
        Database::Missing => {
            return Diagnosis::ok(CHECK, "there is no database yet; a server makes it at its start");
        }
        Database::TooOld(why) => {
            let advice = "start the server with this program, which brings it up to date; take a backup first";
            return Diagnosis::warning(CHECK, format!("failed to {why}"), advice);
        }
        Database::TooNew(why) => {
            return Diagnosis::wrong(CHECK, format!("failed to {why}"), "install the program that wrote it");
        }
        Database::Damaged(why) => {
            return Diagnosis::wrong(
                CHECK,
                format!("failed to {why}"),
                "`kelos verify` says what is damaged; restore a backup, or accept it",
            );
        }
        Database::Unusable(why) => {
            let advice = "look at its folder, at the disk and at the rights of this user";
            return Diagnosis::wrong(CHECK, format!("failed to {why}"), advice);
        }
    };
    if !state.disagreements.is_empty() {
        let advice = "`kelos verify` reads everything; then restore a backup, or accept the database as it is";
        return Diagnosis::wrong(CHECK, format!("the database is damaged: {}", named(&state.disagreements)), advice);
    }
    let turns = match state.verified {
        0 => "it has no turn yet".to_owned(),
        1 => "the last turn matches its digest".to_owned(),
        many => format!("the last {} turns match their digests", grouped(many)),
    };
    let sound = format!("its schema is version {}, and {turns}", state.schema);
    let leads = match (&state.leader, state.followed) {
        (_, Some(entry)) => format!("it has followed a log up to entry {}", grouped(entry)),
        (Some(leader), None) if leader.is_empty() => "a server leads on it".to_owned(),
        (Some(leader), None) => format!("{leader} leads on it"),
        (None, None) => "no server leads on it".to_owned(),
    };
    Diagnosis::ok(CHECK, format!("kelos.db: {sound}; {leads}"))
}

fn of_log(log: &SharedLog, followed: Option<u64>) -> Vec<Diagnosis> {
    let log = match log {
        SharedLog::Reached(log) => log,
        SharedLog::Unreachable(why) => {
            let advice =
                "nothing is scheduled while the log is away; bring its store back, or correct --store or KELOS_STORE";
            return vec![Diagnosis::wrong(CHECK, format!("failed to {why}"), advice)];
        }
    };
    let LogReading { name, took, holder, is_free, epoch, forms: [writes, reads], first, last, .. } = &**log;
    let mut found = Vec::new();
    if writes > reads {
        let words = format!("{name} has entries in form {writes}, and this program reads up to form {reads}");
        found.push(Diagnosis::wrong(CHECK, words, "install the program of the node that leads"));
    }
    if *is_free {
        let words = format!("no node leads over {name}");
        found.push(Diagnosis::warning(CHECK, words, "start a node: kelos serve --store URL --state DIR"));
    }
    match followed {
        Some(entry) if entry > *last => {
            let words = format!("this node has entry {entry}, and {name} ends with entry {last}: it lost its end");
            found.push(Diagnosis::wrong(
                CHECK,
                words,
                "stop all nodes, then run `kelos recover` at the one with the largest entry",
            ));
        }
        Some(entry) if last - entry > BEHIND => {
            let words = format!("this node is {} behind {name}", count_of(last - entry, "entry", "entries"));
            let advice = "start it, or see on the page Nodes what it fails at; below the first entry that is kept it begins with a snapshot";
            found.push(Diagnosis::warning(CHECK, words, advice));
        }
        _ => {}
    }
    if *took > SLOW {
        let words = format!("{name} took {} ms to answer", took.as_millis());
        found.push(Diagnosis::warning(
            CHECK,
            words,
            "each turn takes longer than that: move the store nearer, or look at its load",
        ));
    }
    if found.is_empty() {
        let behind = followed.map(|entry| format!(", this node is {} behind", last.saturating_sub(entry)));
        let words = format!(
            "{name} answered in {} ms: {holder} leads in epoch {epoch}, entries {first} to {last}, form {writes}{}",
            took.as_millis(),
            behind.unwrap_or_default()
        );
        found.push(Diagnosis::ok(CHECK, words));
    }
    found
}

fn count_of(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(number), if number == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(change: impl Fn(&mut DatabaseState)) -> Database {
        let mut state =
            DatabaseState { leader: None, followed: None, verified: 200, disagreements: Vec::new(), schema: 21 };
        change(&mut state);
        Database::Readable(Box::new(state))
    }

    fn log(change: impl Fn(&mut LogReading)) -> SharedLog {
        let mut log = LogReading {
            name: "redis://a".to_owned(),
            took: Duration::from_millis(3),
            holder: "n1".to_owned(),
            is_free: false,
            epoch: 4,
            forms: [1, 2],
            first: 10,
            last: 90,
            clock: None,
        };
        change(&mut log);
        SharedLog::Reached(Box::new(log))
    }

    fn told(database: Option<&Database>, log: Option<&SharedLog>) -> Vec<String> {
        judge(database, log).iter().map(|one| format!("{:?} {}", one.level, one.found)).collect()
    }

    #[test]
    fn a_database_says_which_server_leads_on_it() {
        let words = "kelos.db: its schema is version 21, and the last 200 turns match their digests";
        assert_eq!(told(Some(&state(|_| {})), None), [format!("Ok {words}; no server leads on it")]);
        let led = state(|state| state.leader = Some("h:1".to_owned()));
        assert_eq!(told(Some(&led), None), [format!("Ok {words}; h:1 leads on it")]);
        assert!(told(Some(&Database::Missing), None)[0].starts_with("Ok there is no database yet"));
    }

    #[test]
    fn a_database_that_can_not_be_used_says_what_to_do() {
        let damaged = state(|state| state.disagreements = vec!["turn 3: it does not agree with its digest".to_owned()]);
        assert_eq!(
            told(Some(&damaged), None),
            ["Wrong the database is damaged: turn 3: it does not agree with its digest"]
        );
        let of = |make: fn(String) -> Database| told(Some(&make("read x: why".to_owned())), None);
        assert_eq!(of(Database::TooOld), ["Warning failed to read x: why"]);
        for make in [Database::TooNew, Database::Damaged, Database::Unusable] {
            assert_eq!(of(make), ["Wrong failed to read x: why"]);
        }
    }

    #[test]
    fn a_log_says_which_node_leads_and_how_far_this_one_is_behind() {
        let node = |entry| state(move |state| state.followed = Some(entry));
        let well = told(Some(&node(88)), Some(&log(|_| {})));
        let words = "redis://a answered in 3 ms: n1 leads in epoch 4, entries 10 to 90, form 1, this node is 2 behind";
        assert_eq!(well[1], format!("Ok {words}"));
        assert!(well[0].ends_with("it has followed a log up to entry 88"), "{well:?}");
        let lost = told(Some(&node(91)), Some(&log(|_| {})));
        assert_eq!(lost[1], "Wrong this node has entry 91, and redis://a ends with entry 90: it lost its end");
        let far = told(Some(&node(1)), Some(&log(|log| log.last = 5002)));
        assert_eq!(far[1], "Warning this node is 5,001 entries behind redis://a");
    }

    #[test]
    fn a_log_without_a_leader_or_of_a_newer_form_is_named() {
        let free = told(None, Some(&log(|log| log.is_free = true)));
        assert_eq!(free, ["Warning no node leads over redis://a"]);
        let newer = told(None, Some(&log(|log| log.forms = [3, 2])));
        assert_eq!(newer, ["Wrong redis://a has entries in form 3, and this program reads up to form 2"]);
        let slow = told(None, Some(&log(|log| log.took = Duration::from_millis(900))));
        assert_eq!(slow, ["Warning redis://a took 900 ms to answer"]);
        let away = told(None, Some(&SharedLog::Unreachable("reach it: refused".to_owned())));
        assert_eq!(away, ["Wrong failed to reach it: refused"]);
    }
}
