//! The scheduler in a minimal environment: a store in memory, and executors that confirm each start at once.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::Arc;

use jiff::Timestamp;
use kelos_core::{
    Ask, Command, Config, Core, Deployment, Input, Past, RestoredState, Step, StepError, Surroundings, TakenName,
    WorkflowFilter, live_through,
};
use kelos_model::backfill::Backfill;
use kelos_model::event::Event;
use kelos_model::jobs::Relation;
use kelos_model::ranges::Range;
use kelos_model::run::Report;
use kelos_model::workflow::{DefinedVersion, DefinitionVersion, Provenance, WorkflowRow};
use kelos_model::{
    Actor, BackfillId, Breach, EventRecord, FactKey, Recall, Run, RunId, Slot, SlotRef, Workflow, WorkflowEvent,
    WorkflowId, slot,
};

use super::words::Words;

/// The stored state, which survives a restart.
#[derive(Default)]
pub(crate) struct Disk {
    seq: u64,
    pub(crate) slots: BTreeMap<SlotRef, Slot>,
    runs: BTreeMap<u64, Run>,
    pub(crate) workflows: BTreeMap<WorkflowId, WorkflowRow>,
    pub(crate) backfills: BTreeMap<BackfillId, Backfill>,
    facts: BTreeMap<FactKey, u64>,
    versions: BTreeMap<WorkflowId, Vec<DefinedVersion>>,
    definitions: BTreeMap<(WorkflowId, u32), Arc<Workflow>>,
    /// The reads of the past in the current turn.
    reads: Vec<Recall>,
}

/// The inputs of a script's step, and its results so far.
#[derive(Default)]
struct Stepped {
    only: WorkflowFilter,
    look_again: bool,
    turns: usize,
    lines: Vec<String>,
}

/// A scheduler and its environment.
pub(crate) struct World {
    pub(crate) config: Config,
    pub(crate) core: Core,
    pub(crate) now: Timestamp,
    pub(crate) disk: Disk,
    pub(crate) defined: BTreeMap<WorkflowId, Arc<Workflow>>,
    /// The definitions of a program beside the files, if there is one.
    pub(crate) of_program: Option<BTreeMap<WorkflowId, Arc<Workflow>>>,
    /// Whether new definitions are a deployment, and whether that updates event schedules; none if they are no
    /// deployment.
    pub(crate) deploys: Option<bool>,
    /// Workflows whose slots are jobs.
    pub(crate) jobs: BTreeSet<WorkflowId>,
    /// Workflows whose slots are named by moments.
    pub(crate) moments: BTreeSet<WorkflowId>,
    /// The questions to functions without answers.
    pub(crate) asked: BTreeSet<Relation>,
    /// Whether executors confirm a start at once.
    pub(crate) prompt: bool,
    /// Whether reports are followed by a tick.
    pub(crate) ticks: bool,
    /// The day whose times are written without their date.
    pub(crate) day: Option<Timestamp>,
    stepped: Stepped,
}

impl World {
    pub(crate) fn new() -> World {
        let config = Config::default();
        World {
            core: Core::new(config.clone()),
            config,
            now: Timestamp::UNIX_EPOCH,
            disk: Disk::default(),
            defined: BTreeMap::new(),
            of_program: None,
            deploys: Some(true),
            jobs: BTreeSet::new(),
            moments: BTreeSet::new(),
            asked: BTreeSet::new(),
            prompt: true,
            ticks: true,
            day: None,
            stepped: Stepped::default(),
        }
    }

    /// Takes a turn as the engine does: the inputs, then a tick, then the immediate reports of the executors.
    pub(crate) fn turn(&mut self, inputs: Vec<Input>) -> Vec<String> {
        self.step(inputs, None, false)
    }

    /// The same with a tick that is limited to some workflows, or evaluates everything again.
    pub(crate) fn step(&mut self, inputs: Vec<Input>, only: WorkflowFilter, look_again: bool) -> Vec<String> {
        self.stepped = Stepped { only, look_again, ..Stepped::default() };
        let Ok(()) = live_through(self, inputs);
        std::mem::take(&mut self.stepped.lines)
    }

    /// The immediate reports of the executors.
    fn started(&mut self, commands: &[Command]) -> Vec<Input> {
        self.asked.extend(commands.iter().filter_map(|command| match command {
            Command::Relate(relation) => Some(relation.clone()),
            _ => None,
        }));
        let runs = commands.iter().filter_map(|command| match command {
            Command::StartRun { run, .. } if self.prompt => Some(run.clone()),
            _ => None,
        });
        let report = |run: RunId| {
            let external_id = format!("x{}", run.number);
            Input::RunReported { run, report: Report::Started { external_id } }
        };
        runs.map(report).collect()
    }

    /// Takes a turn without a tick: a report between two steps of a server that is stepped by hand.
    pub(crate) fn note(&mut self, input: Input) -> Vec<String> {
        let acted = self.commit(vec![input]);
        self.tell(&acted)
    }

    /// The reads and the results of a turn in words.
    fn tell(&mut self, acted: &Step) -> Vec<String> {
        let reads = std::mem::take(&mut self.disk.reads);
        Words { day: self.day }.step(&reads, acted)
    }

    /// Feeds the inputs of a turn and commits the results. If an invariant breaks, the inputs are fed one by one.
    fn commit(&mut self, inputs: Vec<Input>) -> Step {
        if let Ok(turn) = self.attempt(&inputs) {
            return turn;
        }
        let mut turn = self.start_over();
        inputs.into_iter().for_each(|input| self.feed(input, &mut turn));
        turn
    }

    /// Feeds one input. If it breaks an invariant, the workflow is frozen and the input is fed again; if the workflow
    /// is already frozen, the input is set aside.
    fn feed(&mut self, input: Input, turn: &mut Step) {
        loop {
            let breach = match self.attempt(std::slice::from_ref(&input)) {
                Ok(step) => return add(turn, step),
                Err(breach) => breach,
            };
            add(turn, self.start_over());
            if self.core.is_frozen(&breach.workflow) == Some(true) {
                let set_aside = Input::SetAside { breach, input: Box::new(input) };
                return add(turn, self.attempt(&[set_aside]).expect("nothing breaks by it"));
            }
            add(turn, self.attempt(&[Input::Freeze(breach)]).expect("nothing breaks by it"));
        }
    }

    /// Feeds inputs and commits the results, or nothing if an invariant breaks.
    fn attempt(&mut self, inputs: &[Input]) -> Result<Step, Breach> {
        let mut turn = Step::default();
        for input in inputs {
            match self.core.step(self.now, input.clone(), &mut self.disk) {
                Ok(step) => add(&mut turn, step),
                Err(StepError::Broken(breach)) => return Err(breach),
                Err(StepError::Past(error)) => match error {},
            }
        }
        let rows = self.core.rows();
        for record in &turn.events {
            self.disk.log(record);
        }
        for (id, slot) in rows.slots {
            assert_eq!(self.disk.slots.get(&id), Some(&slot), "the log folds to the row of {id}");
        }
        self.disk.runs.extend(rows.runs.into_iter().map(|run| (run.seq, run)));
        rows.workflows.iter().for_each(|row| self.disk.name_version(row));
        self.disk.workflows.extend(rows.workflows.into_iter().map(|row| (row.id.clone(), row)));
        self.disk.facts.extend(rows.facts);
        self.disk.backfills.extend(rows.backfills.into_iter().map(|row| (row.id.clone(), row)));
        self.core.settle();
        Ok(turn)
    }

    /// Restores the scheduler after a dropped turn, with the definitions that only memory had.
    fn start_over(&mut self) -> Step {
        let commands = self.recall_stored();
        let mut turn = Step { events: Vec::new(), commands };
        add(&mut turn, self.attempt(&[self.definitions(None)]).expect("nothing breaks by definitions"));
        turn
    }

    /// Makes a request.
    pub(crate) fn ask(&mut self, request: impl Into<Ask>) -> Vec<String> {
        let ask = request.into();
        self.turn(vec![Input::Asked { token: 0, by: Actor::person("ann"), ask, warrant: None }])
    }

    /// Gives the scheduler all definitions.
    pub(crate) fn define(&mut self) -> Vec<String> {
        let definitions = self.definitions(self.deploys);
        self.turn(vec![definitions])
    }

    fn definitions(&self, deploys: Option<bool>) -> Input {
        let projects = self.defined.values().map(|one| one.project.clone());
        let deployment = |update_schedules| Deployment { digest: Some("now".to_owned()), update_schedules, by: None };
        let deployed = deploys.map(deployment).into_iter();
        let deployed = deployed.flat_map(|how| projects.clone().map(move |project| (project, how.clone())));
        let deployed = deployed.chain(deploys.map(|how| ("app".to_owned(), deployment(how)))).collect();
        let all = self.defined.values().cloned().collect();
        Input::Definitions { provenance: Provenance::File, all, deployed }
    }

    /// Gives the scheduler all definitions of the program.
    pub(crate) fn define_by_program(&mut self) -> Vec<String> {
        let all = self.of_program.iter().flat_map(|all| all.values().cloned()).collect();
        self.turn(vec![Input::Definitions { provenance: Provenance::Code, all, deployed: BTreeMap::new() }])
    }

    /// The definitions that are not in force because their names belong to others.
    pub(crate) fn taken_names(&self) -> Vec<String> {
        let words = |one: &TakenName| {
            let TakenName { workflow, source, holder } = one;
            format!("  {workflow} of {} is left out: it is one of {}", source.provenance.as_str(), holder.as_str())
        };
        self.core.taken_names().iter().map(words).collect()
    }

    /// Restarts from the stored state: executors are asked, and the definitions are given again.
    pub(crate) fn restart(&mut self) -> Vec<String> {
        let mut lines = self.restore();
        let deploys = self.deploys.take();
        lines.extend(self.define());
        if self.of_program.is_some() {
            lines.extend(self.define_by_program());
        }
        self.deploys = deploys;
        lines
    }

    /// Restarts without a past definition, which can't be read any more; what follows it is frozen, as the engine does.
    pub(crate) fn lose_definition(&mut self, workflow: WorkflowId, number: u32) -> Vec<String> {
        self.disk.definitions.remove(&(workflow, number));
        let mut lines = self.restore();
        let breaches: Vec<Input> = self.core.lost_runs().map(Input::Freeze).collect();
        lines.extend(self.turn(breaches));
        lines.extend(self.define());
        lines
    }

    /// The same, before any definitions are given.
    pub(crate) fn restore(&mut self) -> Vec<String> {
        let commands = self.recall_stored();
        self.tell(&Step { events: Vec::new(), commands })
    }

    /// Restores a scheduler from the stored state. Returns its commands.
    fn recall_stored(&mut self) -> Vec<Command> {
        let restored = RestoredState {
            seq: self.disk.seq,
            workflows: self.disk.workflows.values().cloned().collect(),
            slots: self.disk.live(),
            runs: self.disk.runs.values().filter(|run| run.ended_at.is_none()).cloned().collect(),
            backfills: self.disk.backfills.values().cloned().collect(),
            pinned: self.disk.definitions.iter().map(|((_, number), one)| (*number, one.clone())).collect(),
        };
        let (core, commands) = Core::restore(self.config.clone(), restored, self.now);
        self.core = core;
        commands
    }
}

fn add(turn: &mut Step, step: Step) {
    turn.events.extend(step.events);
    turn.commands.extend(step.commands);
}

impl Surroundings for World {
    type Trouble = Infallible;

    fn core(&self) -> &Core {
        &self.core
    }

    fn now(&self) -> Timestamp {
        self.now
    }

    /// There are no inputs but those of the script.
    fn wait(&mut self, _: Option<Timestamp>) -> Result<Option<Vec<Input>>, Infallible> {
        Ok(None)
    }

    fn tick(&mut self) -> Vec<Input> {
        let look_again = std::mem::take(&mut self.stepped.look_again);
        vec![Input::Woke { only: self.stepped.only.clone(), look_again }]
    }

    fn turn(&mut self, _: Timestamp, inputs: Vec<Input>) -> Result<Vec<Command>, Infallible> {
        self.stepped.turns += 1;
        let acted = self.commit(inputs);
        let lines = self.tell(&acted);
        self.stepped.lines.extend(lines);
        assert!(self.stepped.turns <= 20, "the executors are asked without end: {:#?}", self.stepped.lines);
        Ok(acted.commands)
    }

    fn perform(&mut self, _: Timestamp, commands: Vec<Command>) -> Result<Vec<Input>, Infallible> {
        Ok(self.started(&commands))
    }
}

impl Disk {
    fn log(&mut self, record: &EventRecord) {
        assert_eq!(record.seq, self.seq + 1, "the log has no gaps");
        self.seq = record.seq;
        if let Event::Slot { slot: id, what } = &record.event {
            let before = self.slots.get(id).cloned();
            assert_eq!(
                record.previous,
                before.as_ref().map_or(0, |slot| slot.last_event),
                "the history of {id} is a chain"
            );
            let after = slot::apply(before, what, record.at, record.seq);
            let after = after.unwrap_or_else(|| panic!("it can't happen to {id}: {what:?}"));
            self.slots.insert(id.clone(), after);
        }
        if let Event::Workflow { workflow, what: WorkflowEvent::Defined { version: number, .. } } = &record.event {
            let known = self.versions.entry(workflow.clone()).or_default();
            if known.last().is_none_or(|last| last.version.number != *number) {
                let version = DefinitionVersion { number: *number, project: None };
                known.push(DefinedVersion { seq: record.seq, version });
            }
        }
    }

    fn name_version(&mut self, row: &WorkflowRow) {
        self.definitions.insert((row.id.clone(), row.version), row.definition.clone());
        let known = self.versions.get_mut(&row.id).into_iter().flatten().map(|one| &mut one.version);
        known.filter(|one| one.number == row.version).for_each(|one| one.project.clone_from(&row.definition.version));
    }

    fn read(&self, wanted: impl Fn(&SlotRef) -> bool) -> Vec<(SlotRef, Slot)> {
        self.slots.iter().filter(|(id, _)| wanted(id)).map(|(id, slot)| (id.clone(), slot.clone())).collect()
    }

    fn live(&self) -> Vec<(SlotRef, Slot)> {
        self.slots.iter().filter(|(_, slot)| slot.is_live()).map(|(id, slot)| (id.clone(), slot.clone())).collect()
    }
}

impl Past for Disk {
    type Error = Infallible;

    fn slots(&mut self, ids: &[SlotRef]) -> Result<Vec<(SlotRef, Slot)>, Infallible> {
        self.reads.push(Recall::Slots(ids.to_vec()));
        Ok(self.read(|id| ids.contains(id)))
    }

    fn range(&mut self, workflow: &WorkflowId, range: Range) -> Result<Vec<(SlotRef, Slot)>, Infallible> {
        self.reads.push(Recall::Range { workflow: workflow.clone(), start: range.start, end: range.end });
        Ok(self.read(|id| id.workflow == *workflow && range.holds(&id.key)))
    }

    fn facts(&mut self, names: &[FactKey]) -> Result<Vec<FactKey>, Infallible> {
        Ok(names.iter().filter(|name| self.facts.contains_key(name)).cloned().collect())
    }

    fn definitions(&mut self, workflow: &WorkflowId) -> Result<Vec<DefinedVersion>, Infallible> {
        Ok(self.versions.get(workflow).cloned().unwrap_or_default())
    }

    fn definition(&mut self, workflow: &WorkflowId, number: u32) -> Result<Option<Arc<Workflow>>, Infallible> {
        Ok(self.definitions.get(&(workflow.clone(), number)).cloned())
    }

    fn steps(&mut self, run: &SlotRef) -> Result<Vec<(SlotRef, Slot)>, Infallible> {
        self.reads.push(Recall::Steps(run.clone()));
        let of_run = |id: &SlotRef| id.key.step().is_some_and(|step| step.run() == run.key);
        Ok(self.read(|id| id.workflow == run.workflow && of_run(id)))
    }

    fn runs(&mut self, dispatched: &[u64]) -> Result<Vec<Run>, Infallible> {
        Ok(dispatched.iter().filter_map(|seq| self.runs.get(seq).cloned()).collect())
    }
}
