//! Programs and event schedules of a file, as the prelude describes them, and what they become once the file is read.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use jiff::Timestamp;
use kelos_model::arguments::{MAPPING, check_mapping};
use kelos_model::mistakes::parameter_mistakes;
use kelos_model::nesting;
use kelos_model::parameter::Parameters;
use kelos_model::project::{self, Member, ProjectName};
use kelos_model::sharing::Shares;
use kelos_model::time::{Firing, Zone};
use kelos_model::workflow::{About, CatchUp, EVENT_TIMEOUT_MILLIS, EventKeys, Keys, Program, Source};
use kelos_model::{Deadline, Job, PoolUse, RetryPolicy, Trigger, Workflow, WorkflowId};
use rquickjs::{Ctx, Function, Object};
use serde::Deserialize;

use crate::application::{BuildStage, OpenSchedule};
use crate::closest;
use crate::code::{ProblemCode, ScriptRefusal, refused};
use crate::desk::Desk;
use crate::draft::{ConstraintDraft, ascending};
use crate::fault;
use crate::problem::{Problem, SourcePosition};

#[derive(Debug, Deserialize)]
struct ProgramDraft {
    name: String,
    kind: Option<String>,
    job: Job,
    retry: RetryPolicy,
    #[serde(default)]
    pools: Vec<PoolUse>,
    #[serde(default)]
    parameters: Parameters,
    about: About,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct EventDraft {
    name: String,
    program: String,
    trigger: Trigger,
    constraints: Vec<ConstraintDraft>,
    #[serde(default)]
    deadline: Option<Deadline>,
    properties: BTreeMap<String, String>,
    timeout_millis: Option<u64>,
    start_time: Option<i64>,
    end_time: Option<i64>,
    #[serde(default)]
    jitter_millis: u64,
    #[serde(default)]
    catch_up: CatchUp,
    #[serde(default)]
    enabled: bool,
    about: About,
}

impl EventDraft {
    /// The schedule; its program is found once the whole file is read.
    fn workflow(self, id: WorkflowId, program: WorkflowId) -> Result<Workflow, String> {
        let moment = |millis: Option<i64>, what: &str| {
            let read = millis.map(Timestamp::from_millisecond).transpose();
            read.map_err(|error| format!("{what}: {error}"))
        };
        let (start_time, end_time) = (moment(self.start_time, "startTime")?, moment(self.end_time, "endTime")?);
        if let (Some(start), Some(end)) = (start_time, end_time)
            && end <= start
        {
            return Err("it ends before it starts: expected an endTime after the startTime".to_owned());
        }
        let keys = EventKeys {
            timeout_millis: self.timeout_millis.unwrap_or(EVENT_TIMEOUT_MILLIS),
            properties: self.properties,
            end_time,
            jitter_millis: self.jitter_millis,
            catch_up: self.catch_up,
            enabled: self.enabled,
            ..EventKeys::new(&self.name, program)
        };
        let nothing = Job::new("command", serde_json::Map::new());
        Ok(Workflow {
            trigger: self.trigger,
            constraints: self.constraints.into_iter().map(ConstraintDraft::constraint).collect(),
            concurrency: None,
            start_time,
            deadline: self.deadline,
            about: self.about,
            shares: Shares::default(),
            ..Workflow::keyed(id, Keys::Events(Box::new(keys)), nothing)
        })
    }
}

impl Desk {
    fn application(&self, json: &str) -> Result<(), ScriptRefusal> {
        self.is_defining()?;
        if !self.workflows.borrow().is_empty() || !self.open_schedules.borrow().is_empty() {
            let words = "something is defined already: expected it before all definitions of the file";
            return Err(ScriptRefusal::new(ProblemCode::OutOfPlace, words));
        }
        if self.application.borrow().is_some() {
            let words = "the file has said already which application it is: expected that once";
            return Err(ScriptRefusal::new(ProblemCode::OutOfPlace, words));
        }
        let told = serde_json::from_str(json).map_err(|error| error.to_string())?;
        self.application.replace(Some(told));
        let project = self.project();
        if !project.is_sound() {
            self.application.replace(None);
            return Err(ScriptRefusal::new(ProblemCode::BadName, unsound(&project)));
        }
        let member = project.member(None, "name");
        member.map(drop).map_err(|error| ScriptRefusal::new(ProblemCode::BadName, error.to_string()))
    }

    /// The id of a program. The parts of the name that are left out are those of this application.
    fn program_id(
        &self,
        owner: [Option<String>; 3],
        kind: Option<&str>,
        name: &str,
    ) -> Result<WorkflowId, ScriptRefusal> {
        let own = self.project();
        let project = match owner {
            [None, None, None] => own,
            [namespace, application, version] => ProjectName {
                namespace: namespace.unwrap_or(own.namespace),
                application: application.unwrap_or(own.application),
                version: version.unwrap_or_else(|| project::DEFAULT_VERSION.to_owned()),
            },
        };
        if !project.is_sound() {
            return Err(ScriptRefusal::new(ProblemCode::BadName, unsound(&project)));
        }
        project.member(kind, name).map_err(|error| ScriptRefusal::new(ProblemCode::BadName, error.to_string()))
    }

    /// The name of a dataset in triggers and facts: in the given namespace, or else in that of this application.
    fn dataset(&self, namespace: Option<&str>, name: &str) -> String {
        match namespace {
            None if name.contains(':') => project::dataset_named(name),
            None => project::dataset(&self.project().namespace, name),
            Some(namespace) => project::dataset(namespace, name),
        }
    }

    fn define_program(&self, json: &str, stack: &str) -> Result<(), ScriptRefusal> {
        self.is_defining()?;
        let draft: ProgramDraft = nesting::read(json.as_bytes()).map_err(|error| error.to_string())?;
        let id = self.program_id([None, None, None], draft.kind.as_deref(), &draft.name)?;
        self.is_free(&id, "a program")?;
        let keys = Keys::Requests(Box::new(Program { name: draft.name, kind: draft.kind }));
        self.add(Workflow {
            source: Source::file(&*self.file, self.line(stack)),
            retry: draft.retry,
            pools: ascending(draft.pools),
            parameters: draft.parameters.0,
            about: draft.about,
            concurrency: None,
            ..Workflow::keyed(id, keys, draft.job)
        })
    }

    fn define_schedule(&self, json: &str, stack: &str) -> Result<(), ScriptRefusal> {
        self.is_defining()?;
        let draft: EventDraft = nesting::read(json.as_bytes()).map_err(|error| error.to_string())?;
        let id = self.program_id([None, None, None], None, &draft.name)?;
        self.is_free(&id, "a schedule")?;
        let program = self.program_id([None, None, None], None, &draft.program)?;
        let source = Source::file(&*self.file, self.line(stack));
        self.add(Workflow { source, ..draft.workflow(id, program)? })
    }

    /// Programs and schedules of an application share their names.
    fn is_free(&self, id: &WorkflowId, what: &str) -> Result<(), ScriptRefusal> {
        let taken = |first: &Workflow| match first.keys {
            Keys::Events(_) => ("a schedule", first.source.line),
            Keys::Requests(_) => ("a program", first.source.line),
            _ => ("a workflow", first.source.line),
        };
        let Some((taken, line)) = self.defined(id, taken) else { return Ok(()) };
        let project = self.project();
        let words = format!(
            "{taken} of that name is defined in line {line}: expected a name for {what} that is unique in application {project}"
        );
        Err(ScriptRefusal::new(ProblemCode::NameTaken, words))
    }

    /// A schedule is begun: gives its number.
    fn begin(&self, name: String, stack: &str) -> Result<usize, ScriptRefusal> {
        self.is_defining()?;
        self.program_id([None, None, None], None, &name)?;
        let place = fault::places(stack).into_iter().next();
        let begun = &mut self.open_schedules.borrow_mut();
        begun.push(OpenSchedule { name, place, stage: BuildStage::Open });
        Ok(begun.len() - 1)
    }

    fn proceed(&self, number: usize, stage: u8) {
        if let Some(begun) = self.open_schedules.borrow_mut().get_mut(number) {
            begun.stage = if stage == 1 { BuildStage::Built } else { BuildStage::Taken };
        }
    }

    /// The file is read to its end: what it has begun must be whole, and schedules find their programs.
    pub(crate) fn finish(&self) -> Result<(), Problem> {
        self.all_taken()?;
        let targets = Targets::of(&self.workflows.borrow(), self.project());
        let mut workflows = self.workflows.borrow_mut();
        let mut jobs = BTreeMap::new();
        let shares = self.shares.borrow();
        for workflow in workflows.iter_mut() {
            if let Some(shares) = &*shares {
                workflow.shares.clone_from(shares);
            }
            targets.settle(&mut workflow.trigger);
            if let Keys::Events(events) = &mut workflow.keys {
                let found = targets.target(&events.program);
                events.program = found.map_err(|words| {
                    self.misses(ProblemCode::UnknownProgram, &events.name, &words, &workflow.source)
                })?;
                let begin = workflow.trigger.check_begin();
                begin.map_err(|words| {
                    self.misses(ProblemCode::TriggerNeverMet, &events.name, words, &workflow.source)
                })?;
                let mapping = events.properties.get(MAPPING).map_or(Ok(()), |mapping| check_mapping(mapping));
                mapping
                    .map_err(|words| self.misses(ProblemCode::BadArgument, &events.name, &words, &workflow.source))?;
            } else {
                jobs.insert(workflow.id.clone(), workflow.clone());
            }
        }
        for workflow in workflows.iter_mut() {
            let job = workflow.keys.events().and_then(|events| jobs.get(&events.program));
            let Some(program) = job else { continue };
            (workflow.job, workflow.flow) = (program.job.clone(), program.flow.clone());
            (workflow.retry, workflow.pools) = (program.retry, program.pools.clone());
            workflow.parameters.clone_from(&program.parameters);
            let mistakes = parameter_mistakes(workflow);
            if let (Some(events), false) = (workflow.keys.events(), mistakes.is_empty()) {
                return Err(self.misses(
                    ProblemCode::BadArgument,
                    &events.name,
                    &mistakes.join("; "),
                    &workflow.source,
                ));
            }
        }
        Ok(())
    }

    fn all_taken(&self) -> Result<(), Problem> {
        let schedules = self.open_schedules.borrow();
        let Some(open) = schedules.iter().find(|one| one.stage != BuildStage::Taken) else { return Ok(()) };
        let words = match open.stage {
            BuildStage::Open => {
                "has no trigger: expected triggerByTime, triggerOnPartitions, triggerOnProgramStatus or triggerOn at its end"
            }
            _ => "is built and then dropped: expected schedule(...) around it",
        };
        let mut problem =
            Problem::error(&self.file, ProblemCode::ScheduleUnfinished, format!("schedule {:?} {words}", open.name));
        fault::locate(&mut problem, open.place.as_slice(), &|file| self.source(file));
        Err(problem)
    }

    fn misses(&self, code: ProblemCode, name: &str, words: &str, source: &Source) -> Problem {
        let mut problem = Problem::error(&self.file, code, format!("schedule {name:?}: {words}"));
        let place = SourcePosition { file: source.file.clone(), line: source.line, column: 1 };
        fault::locate(&mut problem, &[place], &|file| self.source(file));
        problem
    }
}

/// The workflows and programs that a file defines, by the names that its schedules use.
struct Targets {
    project: ProjectName,
    /// The workflows that a schedule can run.
    runnable: BTreeSet<WorkflowId>,
    /// Programs that are no workflows, by name.
    others: BTreeMap<String, (WorkflowId, String)>,
}

impl Targets {
    fn of(workflows: &[Workflow], project: ProjectName) -> Targets {
        let mut targets = Targets { project, runnable: BTreeSet::new(), others: BTreeMap::new() };
        for one in workflows.iter().filter(|one| one.keys.events().is_none()) {
            match &one.keys {
                Keys::Requests(program) if program.kind.is_some() => {
                    let kind = program.kind.clone().unwrap_or_default();
                    targets.others.insert(program.name.clone(), (one.id.clone(), kind));
                }
                _ => drop(targets.runnable.insert(one.id.clone())),
            }
        }
        targets
    }

    /// The short name of what an id of this project names.
    fn name(&self, id: &WorkflowId) -> Option<String> {
        match self.project.member_name(id)? {
            Member { kind: None, name, .. } => Some(name),
            _ => None,
        }
    }

    /// The workflow that a name refers to: a program of the application, or a workflow of the file.
    fn found(&self, id: &WorkflowId) -> Option<WorkflowId> {
        let other = match self.name(id) {
            Some(name) => WorkflowId::new(&name),
            None => self.project.member(None, id.as_str()),
        };
        let named = [Some(id.clone()), other.ok()];
        named.into_iter().flatten().find(|one| self.runnable.contains(one))
    }

    fn target(&self, id: &WorkflowId) -> Result<WorkflowId, String> {
        if let Some(found) = self.found(id) {
            return Ok(found);
        }
        let name = self.name(id).unwrap_or_else(|| id.to_string());
        if let Some((_, kind)) = self.others.get(&name) {
            return Err(format!("only workflows can be scheduled, and {name:?} is a program of kind {kind}"));
        }
        let known: Vec<String> =
            self.runnable.iter().map(|id| self.name(id).unwrap_or_else(|| id.to_string())).collect();
        let close = closest(&name, known.iter().map(String::as_str)).map(|close| format!("; did you mean {close:?}?"));
        let has = || match known.len() {
            0 => ", which has none: define it by program(name, job)".to_owned(),
            1..=10 => format!(", which has {}", known.join(", ")),
            many => format!(", which has {many} others"),
        };
        let advice = close.unwrap_or_else(has);
        Err(format!("there is no program {name:?} in application {}{advice}", self.project))
    }

    /// Names in a trigger are short: they become ids of what this file has, or stay as they are.
    fn settle(&self, trigger: &mut Trigger) {
        trigger.rename_programs(&|program| self.found(program));
    }
}

/// The message for an application name that isn't valid.
fn unsound(project: &ProjectName) -> String {
    format!("{project} is no name: expected no : in namespace, name and version, and no ~ in the name")
}

/// The message of an error without its position, which refers to generated JSON.
fn without_place(words: &str) -> String {
    words.rsplit_once(" at line ").map_or(words, |(words, _)| words).to_owned()
}

/// Checks parameters that are given as JSON.
fn parameters(json: &str) -> Result<(), String> {
    let read: Result<Parameters, _> = nesting::read(json.as_bytes());
    read.map(drop).map_err(|error| without_place(&error.to_string()))
}

/// Checks a constraint that is given as JSON.
fn constraint(json: &str) -> Result<(), String> {
    let read: Result<ConstraintDraft, _> = serde_json::from_str(json);
    read.map_err(|error| without_place(&error.to_string()))?.constraint().check()
}

/// An answer for the prelude, or the code and the words of what is refused.
fn told<T: ToString>(answer: Result<T, ScriptRefusal>) -> Vec<String> {
    answer.map_or_else(ScriptRefusal::told, |answer| vec![answer.to_string()])
}

/// Adds the functions that programs and schedules need.
pub(crate) fn install<'js>(ctx: &Ctx<'js>, host: &Object<'js>, desk: &Rc<Desk>) -> rquickjs::Result<()> {
    let define = |name: &str, function: Function<'js>| host.set(name, function);
    let firing = |cron: String| Firing::parse(&cron, Zone::utc()).err().map(|error| error.to_string());
    define("firing", Function::new(ctx.clone(), firing)?)?;
    define("constraint", Function::new(ctx.clone(), |json: String| constraint(&json).err())?)?;
    define("parameters", Function::new(ctx.clone(), |json: String| parameters(&json).err())?)?;
    let d = desk.clone();
    define("application", Function::new(ctx.clone(), move |json: String| refused(d.application(&json)))?)?;
    let d = desk.clone();
    define("shares", Function::new(ctx.clone(), move |json: String| refused(d.share(&json)))?)?;
    let d = desk.clone();
    let dataset = move |namespace: Option<String>, name: String| d.dataset(namespace.as_deref(), &name);
    define("dataset", Function::new(ctx.clone(), dataset)?)?;
    let d = desk.clone();
    let program =
        move |namespace: Option<String>,
              application: Option<String>,
              version: Option<String>,
              kind: Option<String>,
              name: String| { told(d.program_id([namespace, application, version], kind.as_deref(), &name)) };
    define("program", Function::new(ctx.clone(), program)?)?;
    let d = desk.clone();
    let program = move |json: String, stack: String| refused(d.define_program(&json, &stack));
    define("defineProgram", Function::new(ctx.clone(), program)?)?;
    let d = desk.clone();
    let schedule = move |json: String, stack: String| refused(d.define_schedule(&json, &stack));
    define("defineSchedule", Function::new(ctx.clone(), schedule)?)?;
    let d = desk.clone();
    define("begin", Function::new(ctx.clone(), move |name: String, stack: String| told(d.begin(name, &stack)))?)?;
    let d = desk.clone();
    define("proceed", Function::new(ctx.clone(), move |number: usize, stage: u8| d.proceed(number, stage))?)
}
