//! Rehearsals: the workflows of a folder, played through over a virtual clock with what a test supposes, and held
//! against what it expects.
//!
//! The scheduler is the real one, with its turns and a store in memory. Nothing of the outside is touched, unless
//! the test asks for real commands: those run in a folder of the test's own.

pub mod assumed;
mod disk;
pub mod dry_run;
mod expect;
mod files;
mod inputs;
mod outside;
mod past;
mod real;
mod report;
pub(crate) mod stage;
mod steps;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use jiff::{SignedDuration, Timestamp};
use kelos_core::{Config, Input, SetRegister, Surroundings as _};
use kelos_model::{Actor, Trigger, Workflow, WorkflowId};
use kelos_sandbox::apps::AppFormat;
use kelos_sandbox::{
    Before, Folders, Host, Limits, LoadResult, NoRegisters, Problem, RegisterError, Registers, Sandbox, Scripts,
    TestCase, TestExecutors, TestFile, TestPlan, TestSource, closest,
};
use kelos_scripts::ScriptFunctions;
use kelos_store::{Journal, MemoryStore, Queries, RegisterKeys, StoreError, StoredState};
use serde_json::Value;

pub use real::Real;
pub use report::{Mismatch, Report, Verdict};

use files::Files;
use outside::{Agenda, Outside, SharedFiles, VirtualClock, lock};
use past::PastStore;
use real::RealRuns;
use report::Trouble;
use stage::{Past, enabled, from_then_on, resolved};
use steps::FlowNews;

use kelos_engine::turn::Turns;

/// The folders of the workflows under test, and the limits and resources of tests.
pub struct Rehearsals {
    /// The scripts.
    pub folders: Folders,
    /// The format of the apps that scripts describe.
    pub format: Arc<dyn AppFormat>,
    /// The resources that scripts and test files may use.
    pub limits: Limits,
    /// The folder that paths of `copy` are relative to.
    pub project: PathBuf,
    /// The environment of real commands; tests that need it are skipped without.
    pub real: Option<Real>,
}

impl Rehearsals {
    /// Evaluates a test file.
    ///
    /// # Errors
    /// The problems of the file.
    pub fn open(&self, source: &TestSource) -> Result<TestFile, Vec<Problem>> {
        let host = Host::new(Arc::new(NoRegisters), |_| Ok(false)).with_sandbox(Sandbox::default());
        TestFile::open(source.clone(), self.limits.clone(), host)
    }

    /// Rehearses a test. `beside` is the folder of its file. The file is evaluated anew, so that tests don't see
    /// each other's variables.
    #[must_use]
    pub fn rehearse(&self, source: &TestSource, beside: &Path, name: &str) -> Report {
        let file = match self.open(source) {
            Ok(file) => file,
            Err(problems) => return Report::broken(problems),
        };
        let Some(test) = file.tests().iter().find(|test| test.name == name) else {
            let words =
                format!("there is no test {name:?} any more: expected the file to make the same tests each time");
            return Report::broken(vec![problem(&source.file, 0, words, None)]);
        };
        let play = Play { rehearsals: self, source, beside, file: &file, test };
        play.through().unwrap_or_else(|trouble| Report::broken(trouble.problems(&source.file, test)))
    }
}

/// One test, and all around it.
struct Play<'a> {
    rehearsals: &'a Rehearsals,
    source: &'a TestSource,
    beside: &'a Path,
    file: &'a TestFile,
    test: &'a TestCase,
}

impl Play<'_> {
    fn plan(&self) -> &TestPlan {
        &self.test.plan
    }

    fn through(&self) -> Result<Report, Trouble> {
        let plan = self.plan();
        if plan.executors == TestExecutors::Real && self.rehearsals.real.is_none() {
            return Ok(Report::skipped("it runs real commands"));
        }
        let real = match (&self.rehearsals.real, plan.executors) {
            (Some(real), TestExecutors::Real) => {
                Some(RealRuns::prepare(real, &self.rehearsals.project, &plan.copy).map_err(Trouble::Files)?)
            }
            _ => None,
        };
        let clock = VirtualClock::default();
        clock.set(plan.from);
        let files = match &real {
            Some(real) => Files::in_sandbox(&real.root().to_string_lossy()),
            None => Files::default(),
        };
        let files: SharedFiles = Arc::new(Mutex::new(files));
        let mut outside = self.outside(&clock, &files, real)?;
        self.prepare(&mut outside)?;
        let (loaded, functions) = self.load(&outside)?;
        outside.functions = Arc::new(ScriptFunctions(functions));
        let workflows = self.taking_part(&loaded)?;
        self.check_names(&workflows)?;
        self.supply(&mut outside, &workflows)?;
        outside.store.past = (plan.before == Before::Succeeded).then(|| Past::of(&workflows, plan.from));
        let staged = workflows.iter().map(|workflow| self.staged(workflow)).collect();
        outside.play(staged)?;
        let warnings = loaded.problems.into_iter().chain(self.file.warnings().iter().cloned()).collect();
        expect::judge(self, outside, &workflows, warnings)
    }

    /// The moment at which the clock stops.
    fn end(&self) -> Timestamp {
        let plan = self.plan();
        plan.until.checked_add(outside::millis(plan.settle_ms)).unwrap_or(Timestamp::MAX)
    }

    fn outside(
        &self,
        clock: &VirtualClock,
        files: &SharedFiles,
        real: Option<RealRuns>,
    ) -> Result<Outside<'_>, Trouble> {
        let plan = self.plan();
        let mut store = PastStore { inner: MemoryStore::new(), past: None, news: FlowNews::default() };
        let lease = store.lease("test", plan.from, u64::MAX)?;
        let lease = lease.ok_or(Trouble::Files("lead: somebody else holds the lease".to_owned()))?;
        let (turns, _) = Turns::restore(self.config(), &mut store, lease, plan.from)?;
        Ok(Outside {
            plan,
            file: self.file,
            functions: Arc::new(kelos_engine::job::NoFunctions),
            clock: clock.clone(),
            end: self.end(),
            files: files.clone(),
            store,
            turns,
            agenda: Agenda::default(),
            real,
            workflows: Vec::new(),
            live: BTreeMap::new(),
            given: BTreeMap::new(),
            mismatches: Vec::new(),
            turns_left: outside::MOST_TURNS,
            taken: (Timestamp::MIN, 0),
            inspected: None,
        })
    }

    fn config(&self) -> Config {
        let plan = self.plan();
        let never = SignedDuration::from_hours(24 * 366 * 1000);
        Config {
            planning_window: self.end().duration_since(plan.from) + SignedDuration::from_secs(1),
            // The outside reports each change, and asks functions again by itself; no run stops reporting.
            probe_first: never,
            probe_longest: never,
            patience: never,
            max_running: plan.max_running.unwrap_or(Config::default().max_running),
            by_workers: BTreeSet::new(),
            isolated: false,
            // A rehearsal is finite, and nothing else waits for it.
            at_once: usize::MAX,
            frontier: usize::MAX,
            planted: None,
        }
    }

    /// Creates the inputs that exist before the scripts are read, which may ask for them.
    fn prepare(&self, outside: &mut Outside<'_>) -> Result<(), Trouble> {
        let plan = self.plan();
        let registers = plan.registers.iter().map(|(bucket, key, value)| {
            let ask =
                SetRegister { bucket: bucket.clone(), key: key.clone(), value: Some(value.clone()), reason: None };
            Input::Asked { token: 0, by: Actor::system("test"), ask: ask.into(), warrant: None }
        });
        outside.turn(plan.from, registers.collect())?;
        for input in plan.inputs.iter().filter(|input| input.paths.each.is_none()) {
            inputs::add(self, input, &[], outside)?;
        }
        // Nothing has been asked yet, so nothing has to be notified.
        outside.due(plan.from)?;
        for (number, action) in plan.actions.iter().enumerate() {
            outside.agenda.add(action.at, outside::OutsideEvent::Acts(number));
        }
        Ok(())
    }

    /// Reads the scripts: all of them have to be good.
    fn load(&self, outside: &Outside<'_>) -> Result<(LoadResult, Scripts), Trouble> {
        let (clock, files) = (outside.clock.clone(), outside.files.clone());
        let sandbox = outside.real.as_ref().map_or_else(Sandbox::default, |real| Sandbox {
            prefix: real.root().to_string_lossy().into_owned(),
            suffix: format!("_{}", real.name()),
        });
        let registers = TestRegisters(outside.store.reader());
        let host = Host::new(Arc::new(registers), move |uri| Ok(lock(&files).is_there(uri)))
            .with_clock(move || clock.now())
            .with_format(self.rehearsals.format.clone())
            .with_sandbox(sandbox);
        let scripts = Scripts::start(self.rehearsals.folders.clone(), self.rehearsals.limits.clone(), host);
        let scripts = scripts.map_err(|error| Trouble::Files(format!("start a thread: {error}")))?;
        let mut loaded = scripts.load();
        if loaded.has_errors() {
            loaded.problems.retain(Problem::is_error);
            return Err(Trouble::Scripts(loaded.problems));
        }
        Ok((loaded, scripts))
    }

    /// The workflows of the test. Each has to have slots.
    fn taking_part(&self, loaded: &LoadResult) -> Result<Vec<Arc<Workflow>>, Trouble> {
        let all = &loaded.workflows;
        if let Some(wanted) = &self.plan().workflows {
            let ids: Vec<&str> = all.iter().map(|one| one.id.as_str()).collect();
            if let Some(id) = wanted.iter().find(|id| !ids.contains(&id.as_str())) {
                return Err(self.unknown("workflows", id.as_str(), &ids));
            }
        }
        let part = |one: &&Arc<Workflow>| self.plan().workflows.as_ref().is_none_or(|wanted| wanted.contains(&one.id));
        let part: Vec<Arc<Workflow>> = all.iter().filter(part).cloned().collect();
        if self.plan().workflows.is_some() {
            for (id, schedule) in resolved(&part) {
                let Err(problem) = schedule else { continue };
                let hint = "a workflow takes part in the test together with the one whose schedule it has".to_owned();
                return Err(self.wrong(format!("workflows: \"{id}\" has no slots: {problem}"), Some(hint)));
            }
        }
        Ok(part)
    }

    /// Every workflow that the test names takes part.
    fn check_names(&self, workflows: &[Arc<Workflow>]) -> Result<(), Trouble> {
        let plan = self.plan();
        let ids: Vec<&str> = workflows.iter().map(|one| one.id.as_str()).collect();
        let known = |field: &str, id: &str| match ids.contains(&id) {
            true => Ok(()),
            false => Err(self.unknown(field, id, &ids)),
        };
        let names = steps::names(workflows);
        let with_steps: Vec<&str> = ids.iter().copied().chain(names.iter().map(String::as_str)).collect();
        let known_with_steps = |field: &str, id: &str| match steps::named(id, workflows) {
            None if !ids.contains(&id) => Err(self.unknown(field, id, &with_steps)),
            _ => Ok(()),
        };
        for id in &plan.met {
            known("met", id.as_str())?;
        }
        for (id, fake) in plan.runs.iter().filter(|(id, _)| id != "*") {
            known_with_steps("runs", id)?;
            if steps::is_signal_that_fails(id, fake, workflows) {
                let hint = "with hangs: true no signal comes, and what it waits for does not come in time".to_owned();
                let words = format!("runs: {id} waits for a signal: expected takes, gives or hangs");
                return Err(self.wrong(words, Some(hint)));
            }
        }
        for action in &plan.actions {
            if let Some(id) = inputs::workflow_of(&action.what) {
                known_with_steps("actions", id.as_str())?;
            }
            if let Some(early) = inputs::earliest_of(&action.what).filter(|at| *at < plan.from) {
                let early = kelos_model::time::format_short(early);
                let hint = "what lies before is only supposed; let the test start earlier".to_owned();
                return Err(self.wrong(format!("actions: {early} lies before the start of the test"), Some(hint)));
            }
            if action.at < plan.from || action.at > self.end() {
                let at = kelos_model::time::format_short(action.at);
                return Err(self.wrong(format!("actions: {at} is not between the start and the end of the test"), None));
            }
        }
        let expect = &plan.expect;
        expect.slots.iter().try_for_each(|(id, _)| known_with_steps("expect: slots", id.as_str()))?;
        expect.most_at_once.iter().try_for_each(|(id, _)| known_with_steps("expect: mostAtOnce", id.as_str()))?;
        expect.states.iter().try_for_each(|one| known_with_steps("expect: states", one.slot.workflow.as_str()))?;
        expect.runs.iter().try_for_each(|one| known_with_steps("expect: runs", one.slot.workflow.as_str()))
    }

    fn supply(&self, outside: &mut Outside<'_>, workflows: &[Arc<Workflow>]) -> Result<(), Trouble> {
        for input in self.plan().inputs.iter().filter(|input| input.paths.each.is_some()) {
            inputs::add(self, input, workflows, outside)?;
        }
        Ok(())
    }

    /// A workflow with the changes that the test makes to it.
    fn staged(&self, workflow: &Workflow) -> Arc<Workflow> {
        let mut workflow = enabled(from_then_on(workflow, self.plan().from));
        if self.plan().met.contains(&workflow.id) {
            workflow.trigger = Trigger::Always;
        }
        Arc::new(workflow)
    }

    fn unknown(&self, field: &str, id: &str, known: &[&str]) -> Trouble {
        let hint = match closest(id, known.iter().copied()) {
            Some(close) => format!("did you mean \"{close}\"?"),
            None => format!("there are: {}", known.join(", ")),
        };
        self.wrong(format!("{field}: no workflow of this test is named \"{id}\""), Some(hint))
    }

    /// A mistake of the test.
    fn wrong(&self, words: String, hint: Option<String>) -> Trouble {
        let words = format!("kelos.test {:?}: {words}", self.test.name);
        Trouble::Scripts(vec![problem(&self.source.file, self.test.line, words, hint)])
    }
}

/// A problem of a test file.
fn problem(file: &str, line: u32, message: String, hint: Option<String>) -> Problem {
    Problem {
        severity: kelos_sandbox::Severity::Error,
        code: kelos_sandbox::ProblemCode::BadTest,
        file: file.to_owned(),
        line,
        column: u32::from(line > 0),
        message,
        hint,
        workflow: None::<WorkflowId>,
        kept_last_good: false,
        source_line: None,
    }
}

struct TestRegisters(Arc<dyn Queries>);

fn unreadable(error: StoreError) -> RegisterError {
    RegisterError::Unreadable(format!("failed to {error}"))
}

impl Registers for TestRegisters {
    fn get(&self, _project: &str, bucket: &str, key: &str) -> Result<Option<Value>, RegisterError> {
        self.0.register(bucket, key).map_err(unreadable)
    }

    fn all(&self, _project: &str, bucket: &str) -> Result<Vec<(String, Value)>, RegisterError> {
        let registers = self.0.registers(Some(bucket), RegisterKeys::Prefix("")).map_err(unreadable)?;
        Ok(registers.into_iter().map(|register| (register.key, register.value)).collect())
    }
}
