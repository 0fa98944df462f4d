//! The workflow and the slots of a command: names in full or short, times as they are typed, or the newest slot.

use jiff::{SignedDuration, Timestamp};
use kelos_model::project::is_short_for;
use kelos_model::similar::closest;
use kelos_model::time::{TypedTime, Zone, parse_instant};
use kelos_model::{RunName, SlotKey, SlotState, StepName, WorkflowId};
use kelos_wire::{ListDto, SlotDto, WorkflowDetailDto, WorkflowDto};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::address::{Query, escape, slot_path};
use crate::client::Client;
use crate::failure::Failure;
use crate::text as words;
use crate::times;

/// Slots that are searched for the newest one with a run.
const SEARCHED: usize = 10_000;

/// The code of the server for a name that no workflow has.
const NO_WORKFLOW: &str = "workflow-not-found";

/// Reads the key of a slot. Whether it is a time or a job id is known once its workflow is.
pub(crate) fn key(text: &str) -> Result<String, String> {
    match text {
        "" => Err("expected a time such as 2016-01-01T12:00Z or \"yesterday 06:00\", or a job id".to_owned()),
        _ => Ok(text.to_owned()),
    }
}

/// A choice among the slots of a workflow.
#[derive(Default)]
pub(crate) struct SlotChoice<'a> {
    /// The states to choose from; all where the list is empty.
    pub(crate) states: &'a [SlotState],
    /// The moment before which their times are.
    pub(crate) before: Option<Timestamp>,
}

impl Client {
    /// A workflow, by its id or by what that ends with, where that is unambiguous; also one whose definition went away.
    ///
    /// # Errors
    /// When there is none, with the name that was probably meant, or several.
    pub(crate) fn workflow(&self, doing: &str, name: &str) -> Result<WorkflowDetailDto, Failure> {
        match self.by_id(doing, name) {
            Err(failure) if is_unknown(&failure) => self.by_short_name(doing, name, failure),
            found => found,
        }
    }

    /// Asks about workflows by the names that were typed, and by their ids where the server does not know those.
    ///
    /// # Errors
    /// When they stand for no workflows, or the request fails.
    pub(crate) fn by_names<T>(
        &self,
        doing: &str,
        names: &[String],
        ask: impl Fn(&[String]) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        match ask(names) {
            Err(failure) if is_unknown(&failure) => {
                let id = |name: &String| self.workflow(doing, name).map(|workflow| workflow.summary.id);
                ask(&names.iter().map(id).collect::<Result<Vec<_>, _>>()?)
            }
            answer => answer,
        }
    }

    /// The same, about one workflow.
    pub(crate) fn by_name<T>(
        &self,
        doing: &str,
        name: &str,
        ask: impl Fn(&str) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        match ask(name) {
            Err(failure) if is_unknown(&failure) => ask(&self.workflow(doing, name)?.summary.id),
            answer => answer,
        }
    }

    fn by_id(&self, doing: &str, id: &str) -> Result<WorkflowDetailDto, Failure> {
        self.get(doing, &format!("/workflows/{}", escape(id)), &Query::new())
    }

    fn by_short_name(&self, doing: &str, name: &str, failure: Failure) -> Result<WorkflowDetailDto, Failure> {
        let all = self.get::<ListDto<WorkflowDto>>(doing, "/workflows", &Query::new());
        let Ok(ids) = all.map(|list| list.items.into_iter().map(|one| one.id).collect::<Vec<String>>()) else {
            return Err(failure);
        };
        match in_full(doing, name, &ids)? {
            Some(id) => self.by_id(doing, id),
            None => Err(suggest(failure, name, &ids)),
        }
    }

    /// A failure to find something by its name, with the name that was probably meant: one of those in a list of the server.
    pub(crate) fn suggest_of<T: DeserializeOwned>(
        &self,
        failure: Failure,
        name: &str,
        list: &str,
        names: impl Fn(T) -> Vec<String>,
    ) -> Failure {
        match self.get::<ListDto<T>>("list the names", list, &Query::new()) {
            Ok(all) => suggest(failure, name, &all.items.into_iter().flat_map(names).collect::<Vec<_>>()),
            Err(_) => failure,
        }
    }

    /// The newest slot of a workflow; none where there is none.
    pub(crate) fn newest(
        &self,
        doing: &str,
        workflow: &str,
        choice: &SlotChoice<'_>,
    ) -> Result<Option<SlotDto>, Failure> {
        Ok(self.list::<SlotDto>(doing, "/slots", &choice.query(workflow), 1)?.0.pop())
    }

    /// The newest slot of a workflow that has a run.
    pub(crate) fn newest_with_run(&self, doing: &str, workflow: &str) -> Result<SlotDto, Failure> {
        let query = SlotChoice::default().query(workflow);
        let has_run = |slot: &SlotDto| slot.last_run > 0;
        let none = || Failure::bad(format!("{doing}: none of the newest slots of {workflow} has run"));
        let found = self.find(doing, "/slots", &query, SEARCHED, has_run)?;
        found.ok_or_else(|| {
            none().hint(format!("`kelos why {}` says what the newest waits for", words::operand(workflow)))
        })
    }

    /// The key of the slot that a text names. A moment that is relative to now names the newest slot of up to then, and a day
    /// its only slot. The id of a job is passed on as it is.
    ///
    /// # Errors
    /// When the text is no time, or names no slot or several, where the workflow has times.
    pub(crate) fn key(&self, doing: &str, workflow: &WorkflowDetailDto, text: &str) -> Result<String, Failure> {
        let summary = &workflow.summary;
        // A complete key shows its kind with its first letter.
        if has_jobs(workflow) || text.starts_with(['~', '_', '.']) {
            return Ok(text.to_owned());
        }
        let zone = zone_of(workflow);
        let time = match times::typed(text, &zone) {
            Ok(time) => time,
            // A name, or a step of a run that has a name or a time.
            Err(_) if is_named(text) => return Ok(text.to_owned()),
            Err(why) => {
                let failure = Failure::usage(format!("{doing}: {why}"));
                let dotted = format!(".{text}");
                let Ok(key) = SlotKey::parse(&dotted) else { return Err(failure) };
                let run = key.of_run();
                if self.has_slot(doing, &summary.id, &run)? {
                    return Ok(dotted);
                }
                let (id, name) = (&summary.id, run.short());
                let hint =
                    format!("no run of {id} is named {name}; one that nobody has started yet is written {dotted}");
                return Err(failure.hint(hint));
            }
        };
        match time {
            TypedTime::Absolute(at) | TypedTime::Local(at) => Ok(words::wire(at)),
            TypedTime::Relative(at) => self.latest_at(doing, &summary.id, at),
            TypedTime::Day { start, end } if text.starts_with(|first: char| first.is_ascii_digit()) => {
                self.of_date(doing, &summary.id, text, (start, end))
            }
            TypedTime::Day { start, end } => self.only_of_day(doing, &summary.id, text, (start, end)),
        }
    }

    /// The slot that a date names: the only one of that day, else the one of its first instant, whether there is one or not.
    fn of_date(
        &self,
        doing: &str,
        workflow: &str,
        date: &str,
        (start, end): (Timestamp, Timestamp),
    ) -> Result<String, Failure> {
        let found = self.of_range(doing, workflow, (start, end))?;
        let [one] = &found[..] else { return Ok(words::wire(start)) };
        let key = one.slot.key.to_string();
        // Its name has another date, or a time of day.
        if key != format!("{date}T00:00Z") {
            words::note(format!("{} is the slot of {date}", one.slot));
        }
        Ok(key)
    }

    /// Up to two slots of a stretch of time.
    fn of_range(
        &self,
        doing: &str,
        workflow: &str,
        (start, end): (Timestamp, Timestamp),
    ) -> Result<Vec<SlotDto>, Failure> {
        let mut query = SlotChoice { before: Some(end), ..SlotChoice::default() }.query(workflow);
        query.add("from", words::wire(start));
        Ok(self.list::<SlotDto>(doing, "/slots", &query, 2)?.0)
    }

    /// Whether a workflow has a slot.
    fn has_slot(&self, doing: &str, workflow: &str, key: &SlotKey) -> Result<bool, Failure> {
        match self.get::<Value>(doing, &slot_path(workflow, &key.to_string()), &Query::new()) {
            Err(failure) if failure.refusal.as_deref() == Some("slot-not-found") => Ok(false),
            found => found.map(|_| true),
        }
    }

    /// The keys of the slots that texts name.
    pub(crate) fn keys(
        &self,
        doing: &str,
        workflow: &WorkflowDetailDto,
        texts: &[String],
    ) -> Result<Vec<String>, Failure> {
        let texts = if has_jobs(workflow) { texts.to_vec() } else { joined(texts) };
        texts.iter().map(|text| self.key(doing, workflow, text)).collect()
    }

    fn latest_at(&self, doing: &str, workflow: &str, at: Timestamp) -> Result<String, Failure> {
        let after = at.checked_add(SignedDuration::from_millis(1)).ok();
        let found = self.newest(doing, workflow, &SlotChoice { before: after, ..SlotChoice::default() })?;
        let moment = words::to_the_second(at);
        let slot = found.ok_or_else(|| Failure::bad(format!("{doing}: {workflow} has no slot of up to {moment}")))?;
        words::note(format!("{} is the newest slot of up to {moment}", slot.slot));
        Ok(slot.slot.key.to_string())
    }

    fn only_of_day(
        &self,
        doing: &str,
        workflow: &str,
        day: &str,
        (start, end): (Timestamp, Timestamp),
    ) -> Result<String, Failure> {
        let found = self.of_range(doing, workflow, (start, end))?;
        let (from, to) = (words::to_the_second(start), words::to_the_second(end));
        match &found[..] {
            [one] => {
                words::note(format!("{} is the slot of {day}", one.slot));
                Ok(one.slot.key.to_string())
            }
            [] => Err(Failure::bad(format!("{doing}: {workflow} has no slot from {from} to {to}"))),
            _ => Err(Failure::usage(format!("{doing}: {workflow} has several slots from {from} to {to}")).hint(
                format!("name one, such as \"{day} 06:00\"; `kelos slots {}` lists them", words::operand(workflow)),
            )),
        }
    }
}

impl SlotChoice<'_> {
    /// The query of a list of them.
    pub(crate) fn query(&self, workflow: &str) -> Query {
        let mut query = Query::new();
        query.add("workflow", workflow);
        if !self.states.is_empty() {
            let states: Vec<&str> = self.states.iter().map(|state| state.as_str()).collect();
            query.add("state", states.join(","));
        }
        query.add_some("to", self.before.map(words::wire));
        query
    }
}

/// Whether a failure is the server's about a name that no workflow has.
fn is_unknown(failure: &Failure) -> bool {
    failure.refusal.as_deref() == Some(NO_WORKFLOW)
}

/// Whether a text names a run or a step rather than a time with a mistake.
fn is_named(text: &str) -> bool {
    let name = |text: &str| RunName::new(text).is_ok_and(|name| !name.reads_as_time());
    let step = |text: &str| StepName::new(text.split_once(':').map_or(text, |(step, _)| step)).is_ok();
    let of_run =
        |(run, after): (&str, &str)| step(after) && (name(run) || parse_instant(run.trim_start_matches('_')).is_ok());
    name(text) || text.rsplit_once('.').is_some_and(of_run)
}

/// The zone of a workflow's times, in which times without an offset are read: UTC where it has none.
pub(crate) fn zone_of(workflow: &WorkflowDetailDto) -> Zone {
    let name = workflow.summary.zone.as_deref();
    name.and_then(|name| Zone::parse(name).ok()).unwrap_or_default()
}

fn has_jobs(workflow: &WorkflowDetailDto) -> bool {
    workflow.summary.schedule.job_id.is_some()
}

/// The id that a short name stands for; none where it stands for none.
pub(crate) fn in_full<'a>(doing: &str, name: &str, ids: &'a [String]) -> Result<Option<&'a str>, Failure> {
    let is_meant = |id: &&String| WorkflowId::new(id).is_ok_and(|id| is_short_for(name, &id));
    let meant: Vec<&str> = ids.iter().filter(is_meant).map(String::as_str).collect();
    match meant[..] {
        [] => Ok(None),
        [one] => Ok(Some(one)),
        _ => {
            Err(Failure::usage(format!("{doing}: \"{name}\" could be {}", meant.join(", ")))
                .hint("give the name in full"))
        }
    }
}

/// A failure to find something, with the name that was probably meant.
pub(crate) fn suggest(failure: Failure, name: &str, ids: &[String]) -> Failure {
    let last = |id: &'_ String| id.rsplit('.').next().map(str::to_owned).unwrap_or_default();
    let short: Vec<String> = ids.iter().map(last).collect();
    let known = ids.iter().chain(&short).map(String::as_str);
    let Some(meant) = closest(name, known) else { return failure };
    let hint = failure.hint.as_ref().map(|hint| format!(" {hint}")).unwrap_or_default();
    failure.hint(format!("did you mean \"{meant}\"?{hint}"))
}

/// Texts of which a time of day behind a day belongs to it, as in `yesterday 06:00` without quotes.
fn joined(texts: &[String]) -> Vec<String> {
    let is_day = |text: &str| matches!(text, "today" | "yesterday") || text.parse::<jiff::civil::Date>().is_ok();
    let mut all: Vec<String> = Vec::new();
    for text in texts {
        match all.last_mut() {
            Some(day) if is_day(day) && text.contains(':') && !text.contains('T') => *day = format!("{day} {text}"),
            _ => all.push(text.clone()),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owned(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn a_time_of_day_belongs_to_the_day_before_it() {
        let keys = owned(&["yesterday", "06:00", "07:00", "2026-11-21T06:00Z", "2026-11-21", "08:00", "today"]);
        let expected = ["yesterday 06:00", "07:00", "2026-11-21T06:00Z", "2026-11-21 08:00", "today"];
        assert_eq!(joined(&keys), expected);
    }

    #[test]
    fn names_are_short_mistyped_or_unclear() {
        let ids = owned(&["Purchase.History", "Sales.History", "Sales.report", "wordcount"]);
        assert_eq!(in_full("do it", "report", &ids).ok().flatten(), Some("Sales.report"));
        assert_eq!(in_full("do it", "repotr", &ids).ok().flatten(), None);
        let unclear = in_full("do it", "History", &ids).expect_err("two");
        assert_eq!(unclear.message, "do it: \"History\" could be Purchase.History, Sales.History");
        let hint = |name: &str| suggest(Failure::bad("do it").hint("`kelos ls`"), name, &ids).hint.unwrap_or_default();
        assert_eq!(hint("repotr"), "did you mean \"report\"? `kelos ls`");
        assert_eq!(hint("word-count"), "did you mean \"wordcount\"? `kelos ls`");
        assert_eq!(hint("nothing"), "`kelos ls`");
    }
}
