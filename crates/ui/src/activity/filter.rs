//! The part of the log that is shown, from the address: by kind, workflow, person and time.

use jiff::Timestamp;
use kelos_front::fault::{Fault, plain};
use kelos_model::similar::closest;
use kelos_model::time::{TypedTime, parse_typed};
use kelos_model::{EventRecord, WorkflowId};
use kelos_wire::words::NAMES;
use serde::Deserialize;

use crate::page::segment;
use crate::{asked, events, viewer};

/// The kinds of a failure, under one name.
const FAILURES: (&str, &[&str]) = ("failures", &["failed", "expired", "backed-off", "aborted", "missed", "frozen"]);

/// The part of the log to show.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LogQuery {
    /// Only of this workflow, its slots and backfills.
    workflow: Option<String>,
    /// Only events of these names, with commas between; `failures` are several.
    kind: Option<String>,
    /// Only actions of this person; `*` is any person.
    who: Option<String>,
    /// Only since this time, as people type it.
    from: Option<String>,
    /// Only before this time.
    to: Option<String>,
    /// Also evaluations that changed nothing but the text.
    looks: Option<String>,
    /// Only before this position of the log.
    pub(super) before: Option<u64>,
}

/// A time as it was typed.
pub(super) struct TimeLimit {
    pub(super) text: String,
    pub(super) at: Timestamp,
}

/// The same, read.
pub(super) struct Filter {
    pub(super) workflow: Option<WorkflowId>,
    pub(super) kind: Option<String>,
    pub(super) who: Option<String>,
    pub(super) from: Option<TimeLimit>,
    pub(super) to: Option<TimeLimit>,
    pub(super) looks: bool,
}

/// A condition of a filter, which can be taken away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Condition {
    Workflow,
    Kind,
    Who,
    Time,
    Looks,
}

impl Filter {
    /// Reads an address; a mistake is named.
    pub(super) fn read(wanted: LogQuery, now: Timestamp) -> Result<Filter, Fault> {
        let workflow = asked::filled(wanted.workflow).map(|id| asked::workflow(&id)).transpose()?;
        let kind = asked::filled(wanted.kind);
        kind.iter().flat_map(|kind| kind.split(',')).try_for_each(known)?;
        let from = asked::filled(wanted.from).map(|text| typed("from", text, now)).transpose()?;
        let to = asked::filled(wanted.to).map(|text| typed("to", text, now)).transpose()?;
        if let (Some(from), Some(to)) = (&from, &to)
            && from.at >= to.at
        {
            let why = format!("\"from\" is \"{}\", which is not before \"to\", \"{}\".", from.text, to.text);
            return Err(plain::bad_request(format!("The parameter {why}")));
        }
        let looks = asked::filled(wanted.looks).is_some();
        Ok(Filter { workflow, kind, who: asked::filled(wanted.who), from, to, looks })
    }

    /// Whether an event is shown.
    pub(super) fn accepts(&self, record: &EventRecord) -> bool {
        let in_time = self.from.as_ref().is_none_or(|from| record.at >= from.at)
            && self.to.as_ref().is_none_or(|to| record.at < to.at);
        if !in_time || !self.is_kind(record) {
            return false;
        }
        match self.who.as_deref() {
            None => true,
            Some("*") => events::by(record).is_some(),
            Some(who) => events::by(record).is_some_and(|by| by == who),
        }
    }

    fn is_kind(&self, record: &EventRecord) -> bool {
        match &self.kind {
            None => self.looks || !events::is_a_look(record),
            Some(kinds) => {
                let name = events::name(record);
                kinds.split(',').any(|kind| kind == name || kind == FAILURES.0 && FAILURES.1.contains(&name.as_str()))
            }
        }
    }

    /// The conditions that hold.
    pub(super) fn conditions(&self) -> Vec<Condition> {
        let all = [
            (Condition::Workflow, self.workflow.is_some()),
            (Condition::Kind, self.kind.is_some()),
            (Condition::Who, self.who.is_some()),
            (Condition::Time, self.from.is_some() || self.to.is_some()),
            (Condition::Looks, self.looks),
        ];
        all.into_iter().filter(|(_, holds)| *holds).map(|(condition, _)| condition).collect()
    }

    /// The address of this part of the log, before a position.
    pub(super) fn href(&self, before: Option<u64>) -> String {
        self.href_without(None, before)
    }

    /// The same without a condition.
    pub(super) fn href_without(&self, condition: Option<Condition>, before: Option<u64>) -> String {
        let text = |of: Condition, name: &str, value: Option<&str>| {
            value.filter(|_| condition != Some(of)).map(|value| format!("{name}={}", segment(value)))
        };
        let parts = [
            text(Condition::Workflow, "workflow", self.workflow.as_ref().map(WorkflowId::as_str)),
            text(Condition::Kind, "kind", self.kind.as_deref()),
            text(Condition::Who, "who", self.who.as_deref()),
            text(Condition::Time, "from", self.from.as_ref().map(|from| from.text.as_str())),
            text(Condition::Time, "to", self.to.as_ref().map(|to| to.text.as_str())),
            text(Condition::Looks, "looks", self.looks.then_some("1")),
            before.map(|before| format!("before={before}")),
        ];
        let query: Vec<String> = parts.into_iter().flatten().collect();
        if query.is_empty() { "/ui/activity".to_owned() } else { format!("/ui/activity?{}", query.join("&")) }
    }

    /// The kinds to choose from, with the chosen one if it is none of them.
    pub(super) fn kinds(&self) -> Vec<&str> {
        let mut kinds: Vec<&str> = std::iter::once(FAILURES.0).chain(NAMES.iter().copied()).collect();
        kinds.extend(self.kind.as_deref().filter(|kind| !kinds.contains(kind)));
        kinds
    }
}

/// Refuses a kind that no event has.
fn known(kind: &str) -> Result<(), Fault> {
    let mut names = NAMES.iter().copied().chain([FAILURES.0]);
    if names.any(|name| name == kind) {
        return Ok(());
    }
    let likely = closest(kind, NAMES.iter().copied().chain([FAILURES.0]));
    let likely = likely.map(|name| format!(" Did you mean \"{name}\"?")).unwrap_or_default();
    let all = NAMES.join(", ");
    Err(plain::bad_request(format!(
        "The parameter \"kind\" is \"{kind}\", which no event is.{likely} Expected {} or one of: {all}.",
        FAILURES.0
    )))
}

fn typed(name: &str, text: String, now: Timestamp) -> Result<TimeLimit, Fault> {
    let read = parse_typed(&text, now, &viewer::current().zone)
        .map_err(|error| plain::bad_request(format!("The parameter \"{name}\" is not understood: {error}.")))?;
    // A day that ends something belongs to it.
    let at = match read {
        TypedTime::Day { end, .. } if name == "to" => end,
        other => other.at(),
    };
    Ok(TimeLimit { text, at })
}

#[cfg(test)]
mod tests {
    use kelos_model::time::{Zone, parse_instant};

    use super::*;
    use crate::viewer::Viewer;

    fn read(query: LogQuery) -> Result<Filter, String> {
        let now = parse_instant("2026-11-23T15:00Z").unwrap();
        Filter::read(query, now).map_err(|fault| fault.what.to_string())
    }

    fn times(from: &str, to: &str) -> LogQuery {
        LogQuery { from: Some(from.to_owned()), to: Some(to.to_owned()), ..LogQuery::default() }
    }

    #[test]
    fn times_are_typed_as_on_the_command_line_in_the_chosen_zone() {
        let filter = read(times("-2d", "today")).unwrap();
        let told = |typed: &Option<TimeLimit>| typed.as_ref().map(|typed| typed.at.to_string()).unwrap_or_default();
        assert_eq!(
            (told(&filter.from), told(&filter.to)),
            ("2026-11-21T15:00:00Z".into(), "2026-11-24T00:00:00Z".into())
        );
        let berlin = Viewer { zone: Zone::parse("Europe/Berlin").unwrap(), ..Viewer::default() };
        let filter = berlin.sync_scope(|| read(times("yesterday", "yesterday"))).unwrap();
        assert_eq!(
            (told(&filter.from), told(&filter.to)),
            ("2026-11-21T23:00:00Z".into(), "2026-11-22T23:00:00Z".into())
        );
        assert_eq!(filter.href(Some(7)), "/ui/activity?from=yesterday&to=yesterday&before=7");
        assert_eq!(filter.href_without(Some(Condition::Time), None), "/ui/activity");
    }

    #[test]
    fn mistakes_are_named() {
        let wrong = |query| read(query).err().expect("a fault");
        assert!(wrong(times("yesteday", "")).contains("\"from\" is not understood"), "a word");
        assert!(wrong(times("-1h", "-2h")).contains("which is not before"), "the wrong way round");
        let kind = |kind: &str| LogQuery { kind: Some(kind.to_owned()), ..LogQuery::default() };
        let told = wrong(kind("failed,suceeded"));
        assert!(told.contains("is \"suceeded\"") && told.contains("Did you mean \"succeeded\"?"), "{told}");
        assert!(read(kind("failures,killed")).is_ok());
    }
}
