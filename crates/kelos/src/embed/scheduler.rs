//! Schedulers of one's own, which plan the slots of a job.

use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use kelos_core::FireRequest;
use kelos_engine::{AskError, Handle};
use kelos_model::event::Event;
use kelos_model::{Actor, SlotKey, SlotRef, SlotState, WorkflowId};
use kelos_store::{About, EventFilter, PageRequest, Queries, SlotFilter, StoreError};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::function::panicked;
use super::input::{self, INPUT};

/// The longest time between two looks at the clock.
const LONGEST: Duration = Duration::from_secs(60);

/// So many slots that a scheduler opens at once are taken for a mistake.
const LARGEST_BURST: usize = 10_000;

/// A scheduler that plans the slots of a job: from the clock, and from what became of the slots so far.
///
/// It is asked when the project starts, whenever a slot of its job has changed, and at the moment that its last plan named; and again after
/// each plan that opened slots. So a plan says what is to be opened *beside* the slots that are there, and in the end it opens none. All that it
/// has to know is in the slots: they are kept where the project is kept, and a program that starts again goes on where the last one ended.
///
/// Slots wait, retry, are paused, killed and explained as those of all jobs.
///
/// ```
/// use jiff::Timestamp;
/// use kelos::SlotState;
/// use kelos::embed::{Context, Plan, PlannedSlots, Project, Rehearsal, Scheduler, job};
///
/// /// Runs a job a number of times, each once the one before has succeeded.
/// struct Times(u32);
///
/// impl Scheduler for Times {
///     type Context = u32;
///
///     fn plan(&mut self, _: Timestamp, slots: &PlannedSlots<u32>) -> Plan<u32> {
///         let all_succeeded = slots.iter().all(|slot| slot.state == SlotState::Succeeded);
///         let next = slots.len() as u32 + 1;
///         if all_succeeded && next <= self.0 { Plan::none().start(next) } else { Plan::none() }
///     }
/// }
///
/// async fn hello(context: Context, time: u32, _: ()) -> Result<(), String> {
///     context.log(format!("hello for the time {time}"));
///     Ok(())
/// }
///
/// let project = Project::new("hello", "1.0").add(job("hello", hello).with(()).planned_by(Times(3)));
/// let mut rehearsal = Rehearsal::at("2026-03-28T00:00Z", project)?;
/// rehearsal.run_until("2026-03-28T00:01Z")?;
/// assert_eq!(rehearsal.slots("hello")?.len(), 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Scheduler: Send + 'static {
    /// The input of the job's function. It is kept with its slot, as JSON.
    type Context: Serialize + DeserializeOwned + Send + 'static;

    /// The slots to open now, and the moment to be asked again although nothing has changed.
    fn plan(&mut self, now: Timestamp, slots: &PlannedSlots<Self::Context>) -> Plan<Self::Context>;
}

/// The slots that a [`Scheduler`] starts, and when it plans again.
///
/// ```
/// use kelos::embed::Plan;
///
/// let plan = Plan::none().start("orders").start_at_priority("refunds", 1);
/// assert_ne!(plan, Plan::none());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan<C> {
    starts: Vec<(C, i32)>,
    again: Option<Timestamp>,
}

impl<C> Plan<C> {
    /// Nothing to open, until a slot changes.
    ///
    /// ```
    /// # use kelos::embed::Plan;
    /// let nothing: Plan<u32> = Plan::none();
    /// ```
    #[must_use]
    pub fn none() -> Plan<C> {
        Plan { starts: Vec::new(), again: None }
    }

    /// Another slot. Slots of a plan stand in lines in the order in which it names them.
    ///
    /// ```
    /// # use kelos::embed::Plan;
    /// let two = Plan::none().start(1).start(2);
    /// ```
    #[must_use]
    pub fn start(self, context: C) -> Plan<C> {
        self.start_at_priority(context, 0)
    }

    /// Another slot, which stands in the lines for [places](super::Places) before all of a lower priority, whichever job they are of.
    ///
    /// ```
    /// # use kelos::embed::Plan;
    /// let urgent = Plan::none().start_at_priority("refunds", 10);
    /// ```
    #[must_use]
    pub fn start_at_priority(mut self, context: C, priority: i32) -> Plan<C> {
        self.starts.push((context, priority));
        self
    }

    /// Asks for a plan at a moment, although nothing has changed by then.
    ///
    /// ```
    /// # use kelos::embed::Plan;
    /// let later: Plan<u32> = Plan::none().again_at("2026-03-28T06:00:00Z".parse()?);
    /// # Ok::<(), jiff::Error>(())
    /// ```
    #[must_use]
    pub fn again_at(mut self, moment: Timestamp) -> Plan<C> {
        self.again = Some(self.again.map_or(moment, |other| other.min(moment)));
        self
    }
}

/// A slot of a job that is planned by a [`Scheduler`].
///
/// ```
/// # use kelos::SlotState;
/// # use kelos::embed::PlannedSlots;
/// fn failed(slots: &PlannedSlots<String>) -> Vec<&str> {
///     slots.iter().filter(|slot| slot.state == SlotState::Failed).map(|slot| slot.context.as_str()).collect()
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedSlot<C> {
    /// The slot.
    pub slot: SlotRef,
    /// Its context: the input of the function.
    pub context: C,
    /// Its state.
    pub state: SlotState,
    /// Since when.
    pub since: Timestamp,
    /// Its priority.
    pub priority: i32,
}

/// The slots of a job that is planned by a [`Scheduler`], also those that people opened. A slot whose input is none of the scheduler's is left out.
///
/// ```
/// # use kelos::SlotState;
/// # use kelos::embed::PlannedSlots;
/// fn are_done(slots: &PlannedSlots<String>) -> bool {
///     slots.iter().all(|slot| slot.state.is_final())
/// }
/// ```
#[derive(Debug)]
pub struct PlannedSlots<C>(BTreeMap<SlotKey, PlannedSlot<C>>);

impl<C> PlannedSlots<C> {
    /// The slots, in the order in which they were opened.
    ///
    /// ```
    /// # use kelos::SlotState;
    /// # use kelos::embed::PlannedSlots;
    /// fn latest(slots: &PlannedSlots<u32>) -> Option<SlotState> {
    ///     slots.iter().next_back().map(|slot| slot.state)
    /// }
    /// ```
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &PlannedSlot<C>> {
        self.0.values()
    }

    /// The number of slots.
    ///
    /// ```
    /// # use kelos::embed::PlannedSlots;
    /// fn next(slots: &PlannedSlots<usize>) -> usize {
    ///     slots.len() + 1
    /// }
    /// ```
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    ///
    /// ```
    /// # use kelos::embed::PlannedSlots;
    /// fn is_first(slots: &PlannedSlots<usize>) -> bool {
    ///     slots.is_empty()
    /// }
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<C: DeserializeOwned> PlannedSlots<C> {
    /// Reads a slot anew.
    fn update(&mut self, reader: &dyn Queries, id: SlotRef) -> Result<(), StoreError> {
        let Some(slot) = reader.slot(&id)? else { return Ok(()) };
        let asked = slot.collected.as_ref().and_then(|collected| collected.asked.as_ref());
        let Some(json) = asked.and_then(|asked| input::json(&asked.arguments)) else { return Ok(()) };
        let Ok(context) = serde_json::from_str(&json) else { return Ok(()) };
        let (state, since, priority) = (slot.state, slot.since, slot.priority);
        self.0.insert(id.key.clone(), PlannedSlot { slot: id, context, state, since, priority });
        Ok(())
    }
}

/// A plan with its contexts as JSON.
pub(super) struct PlannedStarts {
    pub(super) starts: Vec<FireRequest>,
    pub(super) again: Option<Timestamp>,
}

/// A scheduler and what it knows of its slots.
struct Planner<S: Scheduler> {
    scheduler: S,
    slots: PlannedSlots<S::Context>,
    /// The position of the log up to which the slots are known.
    seen: Option<u64>,
    /// The slots that it has opened since it last opened none.
    burst: usize,
}

trait PlannerFace: Send {
    fn refresh(&mut self, workflow: &WorkflowId, reader: &dyn Queries) -> Result<bool, StoreError>;
    fn plan(&mut self, workflow: &WorkflowId, now: Timestamp) -> PlannedStarts;
}

impl<S: Scheduler> PlannerFace for Planner<S> {
    fn refresh(&mut self, workflow: &WorkflowId, reader: &dyn Queries) -> Result<bool, StoreError> {
        const PAGE: usize = 1000;
        let until = reader.last_seq()?;
        let Some(seen) = self.seen.replace(until) else {
            let filter = SlotFilter { workflow: Some(workflow.clone()), ..SlotFilter::default() };
            let mut cursor = None;
            loop {
                let page =
                    reader.slots(&filter, PageRequest { from: cursor.as_deref(), ..PageRequest::oldest(PAGE) })?;
                for row in page.rows {
                    self.slots.update(reader, row.id)?;
                }
                cursor = page.next;
                if cursor.is_none() {
                    return Ok(true);
                }
            }
        };
        let filter = EventFilter { about: About::Workflow(workflow.clone()), after: seen, until };
        let mut cursor = None;
        let mut changed = false;
        loop {
            let page = reader.events(&filter, PageRequest { from: cursor.as_deref(), ..PageRequest::oldest(PAGE) })?;
            for record in page.rows {
                if let Event::Slot { slot, .. } = record.event {
                    self.slots.update(reader, slot)?;
                    changed = true;
                }
            }
            cursor = page.next;
            if cursor.is_none() {
                return Ok(changed);
            }
        }
    }

    fn plan(&mut self, workflow: &WorkflowId, now: Timestamp) -> PlannedStarts {
        let Plan { starts, again } = self.scheduler.plan(now, &self.slots);
        self.burst = if starts.is_empty() { 0 } else { self.burst + starts.len() };
        if self.burst > LARGEST_BURST {
            let burst = std::mem::take(&mut self.burst);
            tracing::error!(job = %workflow, "failed to plan slots: the scheduler wants {burst} at once, and has a pause of a minute; it has to open none when there is nothing more to do");
            return PlannedStarts { starts: Vec::new(), again: now.checked_add(LONGEST).ok() };
        }
        let request = |(context, priority): (S::Context, i32)| {
            // What can't be written is refused when it is read as the input of its function.
            let json = serde_json::to_string(&context).unwrap_or_default();
            let (workflow, arguments) = (workflow.clone(), [(INPUT.to_owned(), json.into())].into());
            FireRequest { workflow, arguments, key: None, priority, unconstrained: false, reason: None }
        };
        PlannedStarts { starts: starts.into_iter().map(request).collect(), again }
    }
}

/// A planned slot that was not opened.
#[derive(Debug, thiserror::Error)]
enum PlanError {
    #[error(transparent)]
    Ask(#[from] AskError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The planner of a job, whatever its scheduler.
#[derive(Clone)]
pub(super) struct OwnPlanner(Arc<Mutex<dyn PlannerFace>>);

impl fmt::Debug for OwnPlanner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OwnPlanner")
    }
}

impl OwnPlanner {
    pub(super) fn new(scheduler: impl Scheduler) -> OwnPlanner {
        let slots = PlannedSlots(BTreeMap::new());
        OwnPlanner(Arc::new(Mutex::new(Planner { scheduler, slots, seen: None, burst: 0 })))
    }

    /// Reads what has become of the slots, and says whether anything has.
    pub(super) fn refresh(&self, workflow: &WorkflowId, reader: &dyn Queries) -> Result<bool, StoreError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).refresh(workflow, reader)
    }

    /// The plan of this moment. A scheduler that panics plans nothing, and is asked again after a change, or a minute later.
    pub(super) fn plan(&self, workflow: &WorkflowId, now: Timestamp) -> PlannedStarts {
        let mut planner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        catch_unwind(AssertUnwindSafe(|| planner.plan(workflow, now))).unwrap_or_else(|panic| {
            tracing::error!(job = %workflow, "failed to plan slots: {}", panicked(&*panic).reason);
            PlannedStarts { starts: Vec::new(), again: now.checked_add(LONGEST).ok() }
        })
    }

    /// Plans as long as the engine runs.
    pub(super) async fn follow(self, workflow: WorkflowId, handle: Handle, reader: Arc<dyn Queries>, by: Actor) {
        let mut commits = handle.watch_commits();
        loop {
            commits.borrow_and_update();
            let again = match self.advance(&workflow, &handle, &*reader, &by).await {
                Ok(again) => again,
                Err(error) => {
                    tracing::warn!(job = %workflow, "failed to open a planned slot: {error}");
                    None
                }
            };
            // The clock on the wall may be set meanwhile, so that no sleep is long.
            let left = again.and_then(|again| Duration::try_from(again.duration_since(Timestamp::now())).ok());
            let sleep = if again.is_some() { left.unwrap_or_default().min(LONGEST) } else { LONGEST };
            if let Ok(Err(_)) = tokio::time::timeout(sleep, commits.changed()).await {
                return;
            }
        }
    }

    /// Opens what is to be opened, until there is nothing more to open; says when to ask again.
    async fn advance(
        &self,
        workflow: &WorkflowId,
        handle: &Handle,
        reader: &dyn Queries,
        by: &Actor,
    ) -> Result<Option<Timestamp>, PlanError> {
        loop {
            self.refresh(workflow, reader)?;
            let PlannedStarts { starts, again } = self.plan(workflow, Timestamp::now());
            if starts.is_empty() {
                return Ok(again);
            }
            for start in starts {
                handle.ask(by, start).await?;
            }
        }
    }
}
