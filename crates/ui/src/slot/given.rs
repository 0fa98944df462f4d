//! The job, arguments and outputs of each run of a slot, without secrets.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use kelos_engine::executor::RunInput;
use kelos_engine::job::{Functions, JobInput, calls_a_script, filled_with};
use kelos_executors::local::RunSpec;
use kelos_executors::run_ref;
use kelos_front::App;
use kelos_front::fault::Fault;
use kelos_model::flow::Flow;
use kelos_model::secret::{DeclaredSecret, masks};
use kelos_model::workflow::{DefinitionVersion, Properties};
use kelos_model::{Batch, Collection, Outcome, Run, StepKey, Workflow};
use kelos_store::{Queries, StoreError};
use maud::{Markup, html};
use serde_json::{Map, Value};

use crate::page::slot_href;
use crate::{settings, time, versions, words};

/// How many bytes of JSON are shown expanded.
const SHORT: usize = 2000;
/// The newest runs, whose commands and settings are read.
const NEWEST: usize = 20;

/// A run, with the definition, command and settings with which it was started.
pub(super) struct RunAccount {
    run: Run,
    version: Option<DefinitionVersion>,
    /// The definition of that version, if it is kept.
    definition: Option<Arc<Workflow>>,
    /// Its command, as it was started.
    command: Option<RunSpec>,
    /// Of a run without a command, its job as that definition fills it in.
    job: Option<Result<JobInput, String>>,
}

/// Reads what the runs of a slot were given, oldest first.
pub(super) async fn read(
    app: &App,
    runs: &[Run],
    versions: &[Option<DefinitionVersion>],
    collected: Option<Box<Collection>>,
) -> Result<Vec<RunAccount>, Fault> {
    let old = runs.len().saturating_sub(NEWEST);
    let mut all = Vec::new();
    for (index, (run, version)) in runs.iter().zip(versions).enumerate() {
        // A command that can't be read is one that is not there.
        let launcher = app.node().launcher();
        let command = if index < old { None } else { launcher.spec(&run_ref(&run.leader())).await.unwrap_or_default() };
        all.push(RunAccount { run: run.clone(), version: version.clone(), definition: None, command, job: None });
    }
    let functions = app.node().functions();
    let filled = app.read(move |reader| {
        let mut definitions = BTreeMap::new();
        for given in all.iter_mut().skip(old) {
            given.fill(reader, &mut definitions, collected.as_deref(), &*functions)?;
        }
        Ok(all)
    });
    Ok(filled.await?)
}

impl RunAccount {
    fn fill(
        &mut self,
        reader: &dyn Queries,
        definitions: &mut BTreeMap<u32, Option<Arc<Workflow>>>,
        collected: Option<&Collection>,
        functions: &dyn Functions,
    ) -> Result<(), StoreError> {
        let Some(version) = self.version.as_ref().map(|version| version.number) else { return Ok(()) };
        let definition = match definitions.entry(version) {
            Entry::Occupied(known) => known.get().clone(),
            Entry::Vacant(unknown) => {
                let past = reader.definitions(&self.run.id.slot.workflow, Some(version))?;
                unknown.insert(past.into_iter().next().map(|past| past.definition.into())).clone()
            }
        };
        let step = self.run.id.slot.key.step();
        let of_step = |whole: &Workflow, key: &StepKey| {
            let step = whole.flow.as_deref()?.step(key.step())?;
            Some(Arc::new(Flow::as_workflow(whole, step, key.item_number().is_some())))
        };
        let definition = match step {
            Some(key) => definition.and_then(|whole| of_step(&whole, key)),
            None => definition,
        };
        let Some(definition) = definition else { return Ok(()) };
        // A function of today may give something else than it gave the run, and a step is filled in with its inputs.
        if self.command.is_none() && step.is_none() && !calls_a_script(&definition) {
            let of = self.run.leader();
            let given = RunInput::of(&definition, &of.slot.key, collected, self.run.arguments.clone());
            let given = given.serving(self.run.batch);
            self.job = Some(filled_with(&definition, &of.slot.key, &given, functions));
        }
        self.definition = Some(definition);
        Ok(())
    }

    fn show(&self, is_shown: bool) -> Markup {
        let number = self.run.id.number;
        let arguments: Map<String, Value> = self.run.arguments.clone().into_iter().collect();
        let nothing = Map::new();
        let outputs = self.run.outputs.as_deref().unwrap_or(&nothing);
        let is_short = length(&arguments) + length(outputs) <= SHORT;
        html! {
            details.job id=(format!("run-{number}-given")) open[is_shown && is_short] {
                summary { "What run " (number) " was given and gave" }
                h3 { "Job" }
                dl.facts {
                    (self.started())
                    @if let Some(command) = &self.command { (self.command(command)) }
                    @match &self.job {
                        Some(Ok(job)) => { (settings::rows(&job.settings)) (settings::rows(&job.properties)) }
                        Some(Err(error)) => { dt { "Properties" } dd.bad-text { "failed to fill them in: " (error) } }
                        None => {}
                    }
                }
                @if !arguments.is_empty() { h3 { "Arguments" } dl.facts { (settings::rows(&arguments)) } }
                h3 { "Outcome" }
                dl.facts { (self.ended()) }
                @if self.run.outputs.is_some() {
                    h3 { "Outputs" }
                    @if outputs.is_empty() { p.soft { "It gave no outputs." } }
                    @else { dl.facts { (settings::rows(outputs)) } }
                }
            }
        }
    }

    /// The slots that ran together, with a way to the one whose run did the work.
    fn together(&self, batch: &Batch) -> Markup {
        let first = self.run.leader().slot;
        html! {
            (words::count(u64::from(batch.slots), "slot")) " together, from "
            @if self.run.is_follower() { a href=(slot_href(&first)) { (time::at(batch.first)) } } @else { (time::at(batch.first)) }
            " to " (time::at(batch.last))
            @if self.run.is_follower() { ", in run " (batch.run) " of the first" }
        }
    }

    /// By whom, and by which definition.
    fn started(&self) -> Markup {
        let id = &self.run.id.slot.workflow;
        html! {
            dt { "Executor" } dd { (self.run.executor) }
            @if let Some(batch) = &self.run.batch { dt { "Batch" } dd { (self.together(batch)) } }
            @if let Some(version) = &self.version {
                dt { "Definition" } dd { (versions::link(id, version)) }
            }
        }
    }

    fn command(&self, spec: &RunSpec) -> Markup {
        let limit = spec.timeout.map(|limit| words::span(i64::try_from(limit.as_secs()).unwrap_or(i64::MAX)));
        let environment = self.environment(spec);
        html! {
            dt { "Command" } dd { code { (command_line(&spec.argv)) } }
            @if let Some(folder) = &spec.cwd { dt { "Folder" } dd { code { (folder.display()) } } }
            @if let Some(limit) = limit { dt { "Time limit" } dd { (limit) } }
            @if let Some(user) = &spec.run_as { dt { "User" } dd { (user) } }
            dt { "Environment" }
            dd {
                @if spec.run_as.is_some() { "that of the user, and " } @else if spec.inherit_env { "that of the server, and " }
                details id=(format!("run-{}-environment", self.run.id.number)) {
                    summary { (words::count(environment.len() as u64, "variable")) }
                    dl.facts { @for (name, value) in &environment { dt { code { (name) } } dd { code { (value) } } } }
                }
            }
        }
    }

    /// The variables that were set for the command. Those of the definition are masked unless known to be harmless, and those
    /// that Kelos makes of the slot and the arguments if they look like secrets. Of a declared secret the source is shown.
    fn environment(&self, spec: &RunSpec) -> BTreeMap<String, String> {
        let (own, made): (BTreeMap<_, _>, BTreeMap<_, _>) = spec
            .env
            .iter()
            .map(|(name, value)| (name.clone(), value.clone()))
            .partition(|(name, _)| !name.starts_with("KELOS_") && self.may_define(name));
        let mut shown = masks::masked_texts(&made);
        let own: Map<String, Value> = own.into_iter().map(|(name, value)| (name, Value::String(value))).collect();
        let masked = masks::masked_fields(&Map::from_iter([("env".to_owned(), Value::Object(own))]));
        for (name, value) in masked.get("env").and_then(Value::as_object).into_iter().flatten() {
            shown.insert(name.clone(), value.as_str().unwrap_or_default().to_owned());
        }
        let variables = self.definition.as_ref().and_then(|definition| definition.job.settings.get("env")?.as_object());
        for (name, value) in variables.into_iter().flatten() {
            if let Some(Ok(declared)) = DeclaredSecret::of(value) {
                shown.insert(name.clone(), format!("the secret {}", declared.source));
            }
        }
        shown
    }

    /// Whether the definition may have set a variable.
    fn may_define(&self, name: &str) -> bool {
        let Some(job) = self.definition.as_ref().map(|definition| &definition.job) else { return true };
        let sets = |fields: &Map<String, Value>| fields.get("env").is_some_and(|env| env.get(name).is_some());
        match &job.properties {
            Properties::Fixed(properties) => sets(&job.settings) || sets(properties),
            Properties::Function(_) => true,
        }
    }

    fn ended(&self) -> Markup {
        let status = match &self.run.outcome {
            Some(Outcome::Succeeded) if self.command.is_some() => Some(0),
            Some(Outcome::Failed { exit_status, .. }) => *exit_status,
            _ => None,
        };
        html! {
            dt { "Outcome" }
            dd {
                @match &self.run.outcome { Some(outcome) => (outcome), None => { "none yet: it is " (self.run.state.as_str()) } }
            }
            @if let Some(status) = status { dt { "Exit status" } dd { (status) } }
            @if let (Some(start), Some(end)) = (self.run.started_at, self.run.ended_at) { dt { "Took" } dd { (words::took(start, end)) } }
        }
    }
}

/// The accounts of all runs, newest first; that of the shown run is expanded if it is short.
pub(super) fn show(runs: &[RunAccount], shown: Option<u32>) -> Markup {
    html! { @for given in runs.iter().rev() { (given.show(shown == Some(given.run.id.number))) } }
}

/// A command as a shell would take it, without secrets; of a script the script.
fn command_line(argv: &[String]) -> String {
    if let [shell, option, script] = argv
        && shell == "/bin/sh"
        && option == "-c"
    {
        return masks::masked_text(script);
    }
    let masked = masks::masked(&Value::from(argv.to_vec()));
    let quoted = |word: &Value| {
        let word = word.as_str().unwrap_or_default();
        let is_plain = !word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || "-_.@:/=,+%•".contains(c));
        if is_plain { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
    };
    masked.as_array().into_iter().flatten().map(quoted).collect::<Vec<_>>().join(" ")
}

fn length(fields: &Map<String, Value>) -> usize {
    serde_json::to_vec(fields).map_or(0, |json| json.len())
}
