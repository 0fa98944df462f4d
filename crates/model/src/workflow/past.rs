//! Slots of the past that definitions open once they are in force, and those that they hold back: told before it happens.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use super::endless_wait::{EndlessWait, EndlessWaits, WaitCause, WaitExtent};
use super::opening::{HoldBack, Opening, PlannedTimes};
use super::{Workflow, WorkflowRow};
use crate::id::WorkflowId;
use crate::ranges::Range;
use crate::time::{CronSchedule, resolve, text};

/// The most workflows that are named.
const MOST_NAMED: usize = 5;

/// The most times that are compared one by one with those of an earlier schedule; further ones count as new.
const MOST_COMPARED: usize = 100_000;

/// Times of a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct PastTimes {
    /// Their number.
    pub slots: u64,
    /// The first of them.
    pub first: Timestamp,
    /// The last of them.
    pub last: Timestamp,
}

/// Times since the start of a workflow that its definition leaves alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct HeldBack {
    /// The times.
    #[serde(flatten)]
    pub times: PastTimes,
    /// The first moment beyond them.
    pub until: Timestamp,
    /// The reason.
    pub by: HoldBack,
}

/// The past of one workflow, as a definition opens it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkflowPast {
    /// The slots that it opens at once, without those that wait forever. Slots of its times that somebody requested count, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opened: Option<PastTimes>,
    /// The times that it leaves alone, where it is new, or its start, its schedule or its catch-up policy changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_back: Option<HeldBack>,
    /// Its first slots, if they wait forever for slots that passed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<EndlessWait>,
}

impl WorkflowPast {
    /// The past of a definition beside the row that is stored of its workflow, with a planning window that ends now.
    #[must_use]
    pub fn of(
        definition: &Workflow,
        row: Option<&WorkflowRow>,
        schedule: &CronSchedule,
        window: SignedDuration,
        now: Timestamp,
    ) -> WorkflowPast {
        let Some(opening) = Opening::of(definition, row, schedule, window, now) else {
            return WorkflowPast::default();
        };
        let Opening { known, bounds, from, .. } = &opening;
        let opened = known.missing(schedule, opening.past());
        let start = definition.start_time.filter(|_| moves_history(definition, row, known.is_same));
        let until = (*from).min(opening.due).min(bounds.end);
        let held = start.and_then(|start| known.missing(schedule, Range::new(start, until)));
        let held_back = held.map(|times| HeldBack { times, until, by: HoldBack::of(definition.catch_up) });
        WorkflowPast { opened, held_back, waiting: Vec::new() }
    }

    /// The same without the slots that wait forever.
    fn without(&mut self, waiting: &BTreeSet<Timestamp>, schedule: &CronSchedule) {
        let Some(PastTimes { slots, first, last }) = self.opened.take() else { return };
        let beyond = last.checked_add(SignedDuration::from_millis(1)).unwrap_or(Timestamp::MAX);
        let out = waiting.range(first..beyond).count();
        let mut left = schedule.times(first, beyond).filter(|time| !waiting.contains(time));
        let Some(first) = left.next() else { return };
        let last = left.last().unwrap_or(first);
        let slots = slots.saturating_sub(out as u64);
        self.opened = (slots > 0).then_some(PastTimes { slots, first, last });
    }
}

/// Whether a definition may reach further back than the one before it.
fn moves_history(definition: &Workflow, row: Option<&WorkflowRow>, has_same_schedule: bool) -> bool {
    let Some(before) = row.filter(|_| has_same_schedule).map(|row| &row.definition) else { return true };
    (before.start_time, before.catch_up) != (definition.start_time, definition.catch_up)
}

impl PlannedTimes<'_> {
    /// The times of a range that are not planned.
    fn missing(&self, schedule: &CronSchedule, range: Range) -> Option<PastTimes> {
        let gaps = self.planned.ranges.gaps(range);
        let Some((planned, before)) = &self.earlier else { return PastTimes::of(schedule, gaps) };
        let free = gaps.iter().flat_map(|gap| planned.gaps(*gap));
        let other =
            gaps.iter().flat_map(|gap| planned.within(*gap)).flat_map(|part| schedule.times(part.start, part.end));
        let new = other.enumerate().filter(|(n, at)| *n >= MOST_COMPARED || !before.contains(*at));
        let each = new.map(|(_, at)| PastTimes { slots: 1, first: at, last: at });
        PastTimes::of(schedule, free).into_iter().chain(each).reduce(PastTimes::with)
    }
}

impl PastTimes {
    /// The times in some ranges; none if there are none.
    fn of(schedule: &CronSchedule, ranges: impl IntoIterator<Item = Range>) -> Option<PastTimes> {
        let of_one = |range: Range| {
            let first = schedule.first_from(range.start).filter(|first| *first < range.end)?;
            let last = schedule.previous_before(range.end).unwrap_or(first);
            Some(PastTimes { slots: schedule.count(range), first, last })
        };
        ranges.into_iter().filter_map(of_one).reduce(PastTimes::with)
    }

    fn with(self, other: PastTimes) -> PastTimes {
        let (first, last) = (self.first.min(other.first), self.last.max(other.last));
        PastTimes { slots: self.slots + other.slots, first, last }
    }
}

/// The past that definitions open and hold back, by workflow.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct PastSlots(BTreeMap<WorkflowId, WorkflowPast>);

impl PastSlots {
    /// The past of definitions beside the rows that are stored, with a planning window that ends now.
    #[must_use]
    pub fn of(all: &[Arc<Workflow>], rows: &[WorkflowRow], window: SignedDuration, now: Timestamp) -> PastSlots {
        let schedules = all.iter().filter_map(|one| Some((one.id.clone(), one.keys.ticks()?))).collect();
        let schedules = resolve(&schedules);
        let rows: BTreeMap<&WorkflowId, &WorkflowRow> = rows.iter().map(|row| (&row.id, row)).collect();
        let endless = EndlessWaits::by_schedules(all, &rows, &schedules, window, now);
        let of_one = |one: &Arc<Workflow>| {
            let schedule = schedules.get(&one.id)?.as_ref().ok()?;
            let mut past = WorkflowPast::of(one, rows.get(&one.id).copied(), schedule, window, now);
            if let Some(waiting) = endless.slots(&one.id) {
                past.without(waiting, schedule);
            }
            let waiting = endless.waits.iter().filter(|wait| wait.workflow == one.id && !wait.is_mistake);
            past.waiting = waiting.cloned().collect();
            // A feed opens as many jobs at each of its times.
            let jobs = one.keys.jobs().map_or(1, |jobs| jobs.fed_at(now).len() as u64);
            past.opened.iter_mut().for_each(|opened| opened.slots *= jobs);
            past.opened = past.opened.filter(|opened| opened.slots > 0);
            (past != WorkflowPast::default()).then(|| (one.id.clone(), past))
        };
        PastSlots(all.iter().filter_map(of_one).collect())
    }

    /// Whether nothing is opened, and nothing held back.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The past by workflow.
    #[must_use]
    pub fn by_workflow(&self) -> &BTreeMap<WorkflowId, WorkflowPast> {
        &self.0
    }

    /// The same with what is held back, and what waits forever, alone.
    #[must_use]
    pub fn held_back(mut self) -> PastSlots {
        self.0.values_mut().for_each(|past| past.opened = None);
        self.0.retain(|_, past| *past != WorkflowPast::default());
        self
    }

    /// How many slots are opened.
    #[must_use]
    pub fn opened(&self) -> u64 {
        self.0.values().filter_map(|past| past.opened).map(|opened| opened.slots).sum()
    }

    /// The lines of the text: `170 past slots will run: hourly 168, daily 2`, and one for each workflow that holds some back, or whose
    /// first slots wait forever.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.opened_line().into_iter().collect();
        let held: Vec<_> = self.0.iter().filter_map(|(id, past)| Some((id, past.held_back?))).collect();
        lines.extend(held.iter().take(MOST_NAMED).map(|(id, held)| held.line(id)));
        if let Some(more) = held.get(MOST_NAMED..).filter(|more| !more.is_empty()) {
            let rest: u64 = more.iter().map(|(_, held)| held.times.slots).sum();
            lines.push(format!("{rest} past slots of {} more are not planned", more.len()));
        }
        let waiting: Vec<_> = self.0.values().flat_map(|past| &past.waiting).collect();
        lines.extend(waiting.iter().take(MOST_NAMED).map(|wait| wait.line()));
        if let Some(more) = waiting.len().checked_sub(MOST_NAMED).filter(|more| *more > 0) {
            lines.push(format!("the first slots of {more} more wait forever for slots that passed"));
        }
        lines
    }

    fn opened_line(&self) -> Option<String> {
        let mut all: Vec<_> = self.0.iter().filter_map(|(id, past)| Some((id, past.opened?.slots))).collect();
        all.sort_by_key(|(id, slots)| (std::cmp::Reverse(*slots), *id));
        let mut named: Vec<String> = all.iter().take(MOST_NAMED).map(|(id, slots)| format!("{id} {slots}")).collect();
        if let Some(more) = all.len().checked_sub(MOST_NAMED).filter(|more| *more > 0) {
            let rest: u64 = all.iter().skip(MOST_NAMED).map(|(_, slots)| *slots).sum();
            named.push(format!("{more} more {rest}"));
        }
        (!all.is_empty()).then(|| format!("{} will run: {}", past_slots(self.opened()), named.join(", ")))
    }
}

impl HeldBack {
    /// `8760 past slots of visits are not planned, 2025-01-01T00:00Z to 2025-12-31T23:00Z: catchUp is "latest"; …`.
    fn line(&self, id: &WorkflowId) -> String {
        let PastTimes { slots, first, last } = self.times;
        let (from, to) = (text::format_short(first), text::format_short(last));
        let are = if slots == 1 { "is" } else { "are" };
        let way = format!("kelos backfill {id} --from {from} --to {}", text::format_short(self.until));
        format!(
            "{} of {id} {are} not planned, {from} to {to}: {}; `{way}` opens them",
            past_slots(slots),
            self.by.words()
        )
    }
}

impl EndlessWait {
    /// `the first slot of daily, 2026-11-21T00:00Z, waits forever for hourly@2026-11-21T00:00Z, which passed before planning began; …`.
    fn line(&self) -> String {
        let EndlessWait { workflow, upstream, slot, awaited, .. } = self;
        let [slot, awaited] = [*slot, *awaited].map(text::format_short);
        let WaitExtent::First { slots, last, next } = self.extent else { return String::new() };
        let (slots, wait, them) = match slots {
            1 => (format!("the first slot of {workflow}, {slot},"), "waits", "it"),
            slots => {
                let last = text::format_short(last);
                (format!("the first {slots} slots of {workflow}, {slot} to {last},"), "wait", "them")
            }
        };
        let why = match self.cause {
            WaitCause::Passed(HoldBack::Latest) => ": catchUp is \"latest\"",
            WaitCause::Passed(HoldBack::Skip) => ": catchUp is \"skip\"",
            _ => ": it lies before the planning window",
        };
        let next = text::format_short(next);
        format!(
            "{slots} {wait} forever for {upstream}@{awaited}, which is not planned{why}; startTime: \"{next}\" of {workflow} leaves {them} out"
        )
    }
}

fn past_slots(number: u64) -> String {
    if number == 1 { "1 past slot".to_owned() } else { format!("{number} past slots") }
}

/// In words, on as many lines as are needed.
impl fmt::Display for PastSlots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.lines().join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::{Calendar, Cron, Schedule};
    use crate::workflow::{CatchUp, Job, Moments, PlanState};

    const WEEK: SignedDuration = SignedDuration::from_hours(168);
    const POLICIES: [Option<CatchUp>; 4] = [None, Some(CatchUp::All), Some(CatchUp::Latest), Some(CatchUp::Skip)];

    fn at(hours: i64) -> Timestamp {
        Timestamp::from_second(1_767_225_600 + hours * 3600).expect("a time")
    }

    fn scheduled(schedule: Schedule, catch_up: Option<CatchUp>) -> Workflow {
        let id = WorkflowId::new("a").expect("an id");
        Workflow { catch_up, ..Workflow::new(id, schedule, Job::new("command", serde_json::Map::new())) }
    }

    fn hourly(catch_up: Option<CatchUp>) -> Workflow {
        scheduled(Schedule::Cron(CronSchedule::hourly()), catch_up)
    }

    fn since(start: i64, definition: Workflow) -> Workflow {
        Workflow { start_time: Some(at(start)), ..definition }
    }

    /// Planned from hour 0 until an hour, and first seen at hour 0.
    fn row(definition: &Workflow, until: i64) -> WorkflowRow {
        let mut planned = PlanState { since: Some(at(0)), ..PlanState::default() };
        planned.schedule = serde_json::to_string(&CronSchedule::hourly()).expect("json");
        planned.ranges.insert(Range::new(at(0), at(until)));
        WorkflowRow {
            id: definition.id.clone(),
            definition: Arc::new(definition.clone()),
            version: 1,
            present: true,
            enabled: true,
            paused: false,
            planned,
            moments: Moments::default(),
        }
    }

    fn past(definition: &Workflow, row: Option<&WorkflowRow>, now: Timestamp) -> WorkflowPast {
        let schedule = resolve(&[(definition.id.clone(), definition.keys.schedule().expect("one"))].into());
        let schedule = schedule.into_values().next().expect("it").expect("a schedule");
        WorkflowPast::of(definition, row, &schedule, WEEK, now)
    }

    fn opened(definition: &Workflow, row: Option<&WorkflowRow>, now: Timestamp) -> u64 {
        past(definition, row, now).opened.map_or(0, |opened| opened.slots)
    }

    fn lines(definition: &Workflow, row: Option<&WorkflowRow>, now: Timestamp) -> Vec<String> {
        PastSlots([(definition.id.clone(), past(definition, row, now))].into()).lines()
    }

    #[test]
    fn what_is_new_opens_the_window_or_nothing() {
        assert_eq!(POLICIES.map(|catch_up| opened(&hourly(catch_up), None, at(0))), [168, 168, 0, 0]);
        let first = past(&hourly(None), None, at(0)).opened.map(|opened| (opened.first, opened.last));
        assert_eq!(first, Some((at(-168), at(-1))));
    }

    #[test]
    fn an_outage_is_caught_up_with_as_the_policy_has_it() {
        let now = at(10) + SignedDuration::from_mins(5);
        let count = |catch_up| opened(&hourly(catch_up), Some(&row(&hourly(catch_up), 6)), now);
        // The window reaches to before the schedule was first seen.
        assert_eq!(POLICIES.map(count), [162, 162, 1, 0]);
        let mut paused = row(&hourly(None), 6);
        paused.paused = true;
        assert_eq!(past(&hourly(None), Some(&paused), now), WorkflowPast::default());
        let unchanged = since(-9, hourly(Some(CatchUp::Skip)));
        let row = row(&unchanged, 6);
        assert_eq!(past(&unchanged, Some(&row), now).held_back, None, "it is told of what changes");
    }

    #[test]
    fn a_change_opens_what_it_adds() {
        let half = Schedule::Cron(CronSchedule::utc(Cron::parse("0,30 * * * *").expect("an expression")));
        let count = |catch_up| opened(&scheduled(half.clone(), catch_up), Some(&row(&hourly(catch_up), 6)), at(6));
        assert_eq!(count(None), 168 + 162, "those of six hours are there");
        assert_eq!(count(Some(CatchUp::Latest)), 0, "a changed schedule counts from its change");
        let wider = opened(&hourly(Some(CatchUp::All)), Some(&row(&hourly(Some(CatchUp::Skip)), 6)), at(6));
        assert_eq!(wider, 162);
    }

    #[test]
    fn what_a_start_in_the_past_holds_back_is_told() {
        let year = -8760;
        let told = |catch_up| lines(&since(year, hourly(catch_up)), None, at(0));
        let way = "opens them";
        let held = |to: &str, until: &str, slots: u64, why: &str| {
            format!(
                "{slots} past slots of a are not planned, 2025-01-01T00:00Z to {to}: {why}; \
                 `kelos backfill a --from 2025-01-01T00:00Z --to {until}` {way}"
            )
        };
        let whole = |why| vec![held("2025-12-31T23:00Z", "2026-01-01T00:00Z", 8760, why)];
        assert_eq!(told(Some(CatchUp::Latest)), whole("catchUp is \"latest\""));
        assert_eq!(told(Some(CatchUp::Skip)), whole("catchUp is \"skip\""));
        let before = held("2025-12-24T23:00Z", "2025-12-25T00:00Z", 8760 - 168, "they lie before the planning window");
        assert_eq!(told(None), ["168 past slots will run: a 168".to_owned(), before.clone()]);
        assert_eq!(told(Some(CatchUp::All)), told(None));
    }

    #[test]
    fn what_a_moved_start_opens_and_holds_back_is_told() {
        let now = at(6) + SignedDuration::from_mins(5);
        let moved = |catch_up| {
            let before = row(&since(0, hourly(catch_up)), 7);
            let past = past(&since(-200, hourly(catch_up)), Some(&before), now);
            let opened = past.opened.map(|opened| (opened.slots, opened.first, opened.last));
            (opened, past.held_back.map(|held| (held.times.slots, held.until, held.by)))
        };
        assert_eq!(moved(Some(CatchUp::Latest)), (None, Some((200, at(0), HoldBack::Latest))));
        assert_eq!(moved(Some(CatchUp::Skip)), (None, Some((200, at(0), HoldBack::Skip))));
        let all = (Some((161, at(-161), at(-1))), Some((39, now - WEEK, HoldBack::Window)));
        assert_eq!(moved(Some(CatchUp::All)), all);
        let later = row(&since(0, hourly(None)), 7);
        assert_eq!(
            past(&since(3, hourly(None)), Some(&later), now),
            WorkflowPast::default(),
            "a later start opens nothing"
        );
    }

    #[test]
    fn what_a_changed_calendar_opens_and_holds_back_is_told() {
        let now = at(100) + SignedDuration::from_mins(5);
        let before = row(&since(0, hourly(Some(CatchUp::Latest))), 101);
        let days =
            |catch_up| since(-48, scheduled(Schedule::Calendar(Calendar::hours(12).expect("a calendar")), catch_up));
        let latest = past(&days(Some(CatchUp::Latest)), Some(&before), now);
        // Those from hour 0 on have slots of the hours.
        assert_eq!(latest.opened, None);
        let held = latest.held_back.map(|held| (held.times.slots, held.times.first, held.times.last));
        assert_eq!(held, Some((4, at(-48), at(-12))));
        assert_eq!(opened(&days(Some(CatchUp::All)), Some(&before), now), 4);
    }

    #[test]
    fn they_are_told_by_workflow_and_in_sum() {
        let named = |n: u64| {
            let opened = Some(PastTimes { slots: n, first: at(0), last: at(1) });
            (WorkflowId::new(&format!("w{n}")).expect("an id"), WorkflowPast { opened, ..WorkflowPast::default() })
        };
        assert_eq!(PastSlots([named(1)].into()).to_string(), "1 past slot will run: w1 1");
        assert_eq!(PastSlots([named(1), named(2)].into()).to_string(), "3 past slots will run: w2 2, w1 1");
        let many: BTreeMap<_, _> = (1..8).map(named).collect();
        assert_eq!(PastSlots(many).to_string(), "28 past slots will run: w7 7, w6 6, w5 5, w4 4, w3 3, 2 more 3");
        let held = |n: u64| {
            let times = PastTimes { slots: n, first: at(0), last: at(n as i64) };
            let held_back = Some(HeldBack { times, until: at(n as i64 + 1), by: HoldBack::Skip });
            (WorkflowId::new(&format!("w{n}")).expect("an id"), WorkflowPast { held_back, ..WorkflowPast::default() })
        };
        let many = PastSlots((1..9).map(held).collect()).lines();
        let first = "1 past slot of w1 is not planned, 2026-01-01T00:00Z to 2026-01-01T01:00Z: catchUp is \"skip\"; \
                     `kelos backfill w1 --from 2026-01-01T00:00Z --to 2026-01-01T02:00Z` opens them";
        assert_eq!((many.len(), &*many[0], &*many[5]), (6, first, "21 past slots of 3 more are not planned"));
    }
}
