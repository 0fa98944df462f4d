//! Hold what came of a rehearsal against what was expected.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use kelos_explain::why;
use kelos_model::ranges::Range;
use kelos_model::time::{format_full, format_short};
use kelos_model::{Run, Slot, SlotRef, SlotState, Workflow, WorkflowId};
use kelos_sandbox::{ExpectedCounts, ExpectedRun, ExpectedState, Problem, TestPaths};
use kelos_store::{PageRequest, Queries, RunFilter, SlotFilter, SlotRow, StoredState};
use serde_json::{Map, Value, json};

use super::files::Place;
use super::outside::{Outside, lock};
use super::real::RealRuns;
use super::report::{Mismatch, Report, Trouble, Verdict};
use super::{Play, disk, inputs, steps};

/// Slots and paths that one mismatch names.
const EXAMPLES: usize = 3;

/// Rows read at a time.
const PAGE: usize = 10_000;

/// Judges what came of a test.
pub(super) fn judge(
    play: &Play<'_>,
    outside: Outside<'_>,
    workflows: &[Arc<Workflow>],
    warnings: Vec<Problem>,
) -> Result<Report, Trouble> {
    let reader = outside.store.reader();
    let range = Range::new(play.plan().from, play.plan().until);
    let mut slots = slots(&*reader, &SlotFilter { range: Some(range), ..SlotFilter::default() })?;
    for workflow in workflows.iter().filter(|one| one.keys.schedule().is_none() && one.flow.is_some()) {
        let filter = SlotFilter { workflow: Some(workflow.id.clone()), ..SlotFilter::default() };
        slots.extend(self::slots(&*reader, &filter)?);
    }
    let steps = steps_of(&*reader, &slots, workflows)?;
    let runs = runs(&*reader)?;
    let mut judging = TestJudge { play, outside, reader, slots, steps, runs, workflows, found: Vec::new() };
    judging.all()?;
    let acted = std::mem::take(&mut judging.outside.mismatches);
    let mismatches: Vec<Mismatch> = acted.into_iter().chain(judging.found).collect();
    let verdict = if mismatches.is_empty() { Verdict::Passed } else { Verdict::Failed(mismatches) };
    let folder = judging.outside.real.as_ref().and_then(RealRuns::kept);
    Ok(Report { verdict, slots: judging.slots.len(), runs: judging.runs.len(), warnings, folder })
}

/// The slots of a choice, by workflow and key.
fn slots(reader: &dyn Queries, filter: &SlotFilter) -> Result<BTreeMap<SlotRef, SlotState>, Trouble> {
    let mut slots = BTreeMap::new();
    let mut next = None;
    loop {
        let page = reader.slots(filter, PageRequest::newest(PAGE).after(next.as_deref()))?;
        slots.extend(page.rows.into_iter().map(|SlotRow { id, slot }| (id, slot.state)));
        next = page.next;
        if next.is_none() {
            return Ok(slots);
        }
    }
}

/// The steps of the runs of flows, with the items of their lists.
fn steps_of(
    reader: &dyn Queries,
    slots: &BTreeMap<SlotRef, SlotState>,
    workflows: &[Arc<Workflow>],
) -> Result<BTreeMap<SlotRef, Slot>, Trouble> {
    let flows: BTreeSet<&WorkflowId> = workflows.iter().filter(|one| one.flow.is_some()).map(|one| &one.id).collect();
    let mut steps = BTreeMap::new();
    for run in slots.keys().filter(|slot| flows.contains(&slot.workflow)) {
        let mut next = None;
        loop {
            let page = reader.steps(run, PageRequest::newest(PAGE).after(next.as_deref()))?;
            steps.extend(page.rows.into_iter().map(|SlotRow { id, slot }| (id, slot)));
            next = page.next;
            if next.is_none() {
                break;
            }
        }
    }
    Ok(steps)
}

/// All runs, oldest first.
fn runs(reader: &dyn Queries) -> Result<Vec<Run>, Trouble> {
    let all = RunFilter { with_steps: true, ..RunFilter::default() };
    let mut runs = Vec::new();
    let mut next = None;
    loop {
        let page = reader.runs(&all, PageRequest::newest(PAGE).after(next.as_deref()))?;
        runs.extend(page.rows);
        next = page.next;
        if next.is_none() {
            runs.reverse();
            return Ok(runs);
        }
    }
}

struct TestJudge<'a> {
    play: &'a Play<'a>,
    outside: Outside<'a>,
    reader: Arc<dyn Queries>,
    slots: BTreeMap<SlotRef, SlotState>,
    steps: BTreeMap<SlotRef, Slot>,
    runs: Vec<Run>,
    workflows: &'a [Arc<Workflow>],
    found: Vec<Mismatch>,
}

impl TestJudge<'_> {
    fn all(&mut self) -> Result<(), Trouble> {
        let play = self.play;
        let expect = &play.plan().expect;
        for (workflow, counts) in &expect.slots {
            self.counts(workflow, counts)?;
        }
        for state in &expect.states {
            self.state(state)?;
        }
        for paths in &expect.outputs {
            self.paths(paths, true)?;
        }
        for paths in &expect.missing {
            self.paths(paths, false)?;
        }
        for run in &expect.runs {
            self.run(run)?;
        }
        for (workflow, most) in &expect.most_at_once {
            self.at_once(workflow, *most);
        }
        self.files()?;
        expect.check.map_or(Ok(()), |function| self.check(function))
    }

    /// The slots of a workflow, or of a step of one; items of lists are no slots of the step.
    fn of<'s>(&'s self, name: &'s WorkflowId) -> impl Iterator<Item = (&'s SlotRef, SlotState)> {
        let own = self.slots.iter().filter(move |(slot, _)| slot.workflow == *name);
        let step = steps::named(name.as_str(), self.workflows);
        let of_step = self.steps.iter().filter(move |(slot, _)| {
            step.is_some_and(|(workflow, step, _)| {
                let key = slot.key.step().filter(|_| slot.workflow == workflow.id);
                key.is_some_and(|key| key.within_run() == step.name.as_str())
            })
        });
        own.map(|(slot, state)| (slot, *state)).chain(of_step.map(|(id, slot)| (id, slot.state)))
    }

    fn state_of(&self, slot: &SlotRef) -> Option<SlotState> {
        self.slots.get(slot).copied().or_else(|| Some(self.steps.get(slot)?.state))
    }

    fn counts(&mut self, workflow: &WorkflowId, expected: &ExpectedCounts) -> Result<(), Trouble> {
        let mut found: BTreeMap<SlotState, u64> = BTreeMap::new();
        for (_, state) in self.of(workflow) {
            *found.entry(state).or_default() += 1;
        }
        let (fits, words) = match expected {
            ExpectedCounts::All(state) => (found.len() == 1 && found.contains_key(state), format!("all slots {state}")),
            ExpectedCounts::Counts(counts) => {
                let wanted: BTreeMap<_, _> = counts.iter().filter(|(_, n)| **n > 0).map(|(s, n)| (*s, *n)).collect();
                (wanted == found, counted(&wanted))
            }
        };
        if fits {
            return Ok(());
        }
        let surplus = |state: SlotState| match expected {
            ExpectedCounts::All(wanted) => state != *wanted,
            ExpectedCounts::Counts(counts) => found.get(&state) > counts.get(&state),
        };
        let odd: Vec<SlotRef> =
            self.of(workflow).filter(|(_, state)| surplus(*state)).map(|(id, _)| id.clone()).collect();
        let absence = self.absence(workflow).filter(|_| found.is_empty()).unwrap_or_default();
        let found = format!("{}{absence}", counted(&found));
        let mut mismatch = Mismatch::new(format!("slots of {workflow}"), words, found);
        let succeeded_too = odd.iter().all(|slot| self.state_of(slot) == Some(SlotState::Succeeded));
        if !succeeded_too {
            self.explain(&odd, &mut mismatch)?;
        }
        self.found.push(mismatch);
        Ok(())
    }

    /// The bound of a workflow that leaves out all of the range; none where it has none.
    fn absence(&self, workflow: &WorkflowId) -> Option<String> {
        let (id, plan) = (workflow, self.play.plan());
        let workflow = self.workflows.iter().find(|one| one.id == *id)?;
        let begins = workflow.start_time.filter(|start| *start >= plan.until);
        let begins = begins.map(|start| format!(": {id} begins at {}", format_short(start)));
        let ended = workflow.end_time.filter(|end| *end <= plan.from);
        begins.or_else(|| Some(format!(": {id} has ended at {}", format_short(ended?))))
    }

    /// Adds to a mismatch the reasons for which some slots are in their states.
    fn explain(&mut self, slots: &[SlotRef], mismatch: &mut Mismatch) -> Result<(), Trouble> {
        for slot in slots.iter().take(EXAMPLES) {
            let why = self.why(slot)?;
            mismatch.because.push(format!("{}: {}", slot.short(), why.headline));
            mismatch.hint = mismatch.hint.take().or_else(|| self.would_go_on(slot, &why));
        }
        if slots.len() > EXAMPLES {
            mismatch.because.push(format!("and {} more", slots.len() - EXAMPLES));
        }
        Ok(())
    }

    fn why(&mut self, slot: &SlotRef) -> Result<why::Account, Trouble> {
        let inspection = self.outside.inspect(slot);
        Ok(why::read(&*self.reader, slot, self.play.end(), true, inspection.as_ref())?)
    }

    /// The hint for a slot that only lacked time.
    fn would_go_on(&self, slot: &SlotRef, why: &why::Account) -> Option<String> {
        let soon = self.play.end().checked_add(jiff::SignedDuration::from_hours(14 * 24)).ok()?;
        let run_ends = self.outside.live.iter().filter(|(run, _)| run.slot == *slot).find_map(|(_, run)| run.ends_at);
        let next = run_ends.or(why.next_look).filter(|next| *next <= soon)?;
        let end = format_short(self.play.end());
        let next = format_short(next);
        Some(format!(
            "the clock stopped at {end}, and this slot goes on at {next}: settle, such as settle: \"1h\", lets the clock go on"
        ))
    }

    fn state(&mut self, expected: &ExpectedState) -> Result<(), Trouble> {
        let slot = &steps::slot(&expected.slot, self.workflows);
        let why = self.why(slot)?;
        let has_recovered = self.outside.store.news.recovered.contains(slot);
        let mut mismatch = match why.state {
            Some(SlotState::Succeeded) if expected.recovered && !has_recovered => {
                Mismatch::new(slot.short(), "recovered", "succeeded, and no step failed")
            }
            Some(state) if expected.recovered && state != SlotState::Succeeded => {
                Mismatch::new(slot.short(), "recovered", state.to_string())
            }
            None => Mismatch::new(slot.short(), expected.state.to_string(), "no such slot"),
            Some(state) if state != expected.state => {
                Mismatch::new(slot.short(), expected.state.to_string(), state.to_string())
            }
            Some(_) => {
                let Some(words) = expected.because.as_ref().filter(|words| !says(&why, words)) else { return Ok(()) };
                Mismatch::new(slot.short(), format!("a reason with {words:?}"), "another one")
            }
        };
        mismatch.hint = self.would_go_on(slot, &why);
        mismatch.because.push(why.headline);
        self.found.push(mismatch);
        Ok(())
    }

    fn paths(&mut self, paths: &TestPaths, there: bool) -> Result<(), Trouble> {
        let spots = inputs::spots(self.play, paths, self.workflows)?;
        let all = spots.len();
        let files = lock(&self.outside.files);
        let wrong: Vec<String> = spots
            .into_iter()
            .map(|spot| spot.path)
            .filter(|path| files.find(&Place::named(path)).is_some() != there)
            .collect();
        drop(files);
        let Some(first) = wrong.first() else { return Ok(()) };
        let about = paths.path.as_ref().filter(|_| all > 1).unwrap_or(first);
        let (expected, found) = if there { ("it there", "nothing") } else { ("nothing", "it there") };
        let mut mismatch = Mismatch::new(about, expected, found);
        if all > 1 {
            mismatch.found = format!("{found} for {} of {all}", wrong.len());
            mismatch.because = wrong.iter().take(EXAMPLES).cloned().collect();
            mismatch.because.extend((wrong.len() > EXAMPLES).then(|| format!("and {} more", wrong.len() - EXAMPLES)));
        }
        self.found.push(mismatch);
        Ok(())
    }

    fn run(&mut self, expected: &ExpectedRun) -> Result<(), Trouble> {
        let slot = steps::slot(&expected.slot, self.workflows);
        let of_slot = |run: &&Run| run.id.slot == slot;
        let run = match expected.number {
            Some(number) => self.runs.iter().filter(of_slot).find(|run| run.id.number == number),
            None => self.runs.iter().rfind(of_slot),
        };
        let about = |number: Option<u32>| {
            let number = number.map(|number| format!("run {number} of ")).unwrap_or_default();
            format!("{number}{}", slot.short())
        };
        let Some(run) = run.cloned() else {
            let mut mismatch = Mismatch::new(about(expected.number), "a run", "none");
            mismatch.because.push(self.why(&slot)?.headline);
            self.found.push(mismatch);
            return Ok(());
        };
        let about = about(Some(run.id.number));
        if let Some(state) = expected.state.filter(|state| *state != run.state) {
            let mut mismatch = Mismatch::new(&about, state.as_str(), run.state.as_str());
            mismatch.because.extend(run.outcome.as_ref().map(ToString::to_string));
            self.found.push(mismatch);
        }
        let given = self.outside.given.get(&run.leader()).cloned();
        let (settings, properties) = given.map(|given| (given.settings, given.properties)).unwrap_or_default();
        self.found.extend(unlike(&about, "setting", &expected.settings, &settings));
        self.found.extend(unlike(&about, "property", &expected.properties, &properties));
        self.found.extend(unlike(&about, "input", &expected.inputs, &self.inputs_of(&run)));
        self.found.extend(unlike(&about, "output", &expected.gives, run.outputs.as_deref().unwrap_or(&Map::new())));
        Ok(())
    }

    /// The inputs of a run: those of a step, or the arguments.
    fn inputs_of(&self, run: &Run) -> Map<String, Value> {
        let step = self.steps.get(&run.id.slot).and_then(Slot::step_of_run);
        let arguments = || run.arguments.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
        step.map_or_else(arguments, |step| step.inputs.clone())
    }

    /// Whether runs of a slot are those of a workflow or a step: of a list those of its items.
    fn counts_for(&self, slot: &SlotRef, name: &WorkflowId) -> bool {
        let Some((workflow, step, _)) = steps::named(name.as_str(), self.workflows) else {
            return steps::name_of(slot) == name.as_str();
        };
        let key = slot.key.step().filter(|key| slot.workflow == workflow.id && key.step() == step.name.as_str());
        key.is_some_and(|key| key.item_number().is_some() == step.for_each.is_some())
    }

    fn at_once(&mut self, workflow: &WorkflowId, expected: u32) {
        let mut changes: Vec<(Timestamp, i32)> = Vec::new();
        for run in self.runs.iter().filter(|run| self.counts_for(&run.id.slot, workflow) && !run.is_follower()) {
            changes.push((run.dispatched_at, 1));
            changes.extend(run.ended_at.map(|at| (at, -1)));
        }
        // At one moment, ends come first.
        changes.sort_unstable();
        let mut alive = 0;
        let most = changes.into_iter().map(|(_, change)| {
            alive += change;
            alive
        });
        let most = most.max().unwrap_or(0);
        if most != i32::try_from(expected).unwrap_or(i32::MAX) {
            let about = format!("most runs of {workflow} at once");
            self.found.push(Mismatch::new(about, expected.to_string(), most.to_string()));
        }
    }

    fn files(&mut self) -> Result<(), Trouble> {
        let Some(real) = &self.outside.real else { return Ok(()) };
        for (path, expected) in &self.play.plan().expect.files {
            let found = real.root().join(lock(&self.outside.files).place(Place::named(path)).path);
            let like = self.play.beside.join(&expected.like);
            let differences = disk::differences(&like, &found, expected.compare).map_err(Trouble::Files)?;
            if !differences.is_empty() {
                let mut mismatch = Mismatch::new(path, format!("what is in {}", expected.like), "something else");
                mismatch.because = differences;
                self.found.push(mismatch);
            }
        }
        Ok(())
    }

    fn check(&mut self, function: u32) -> Result<(), Trouble> {
        let said = self.play.file.call(function, &self.result())?;
        let words = said.as_array().into_iter().flatten().filter_map(Value::as_str);
        self.found.extend(words.map(|words| Mismatch::new("check", "nothing to be wrong", words)));
        Ok(())
    }

    /// All that came of it, for a function.
    fn result(&self) -> Value {
        let mut runs: BTreeMap<&SlotRef, Vec<Value>> = BTreeMap::new();
        for run in &self.runs {
            runs.entry(&run.id.slot).or_default().push(self.run_json(run));
        }
        let slot = |(id, state): (&SlotRef, SlotState)| {
            let runs = runs.get(id).cloned().unwrap_or_default();
            let time = id.key.of_run().time().map(format_full);
            json!({ "workflow": steps::name_of(id), "key": steps::key_of(id), "time": time, "state": state, "runs": runs })
        };
        let steps = self.steps.iter().map(|(id, step)| (id, step.state));
        let slots: Vec<Value> = self.slots.iter().map(|(id, state)| (id, *state)).chain(steps).map(slot).collect();
        json!({ "slots": slots, "paths": lock(&self.outside.files).paths() })
    }

    fn run_json(&self, run: &Run) -> Value {
        let given = self.outside.given.get(&run.leader());
        json!({
            "number": run.id.number,
            "state": run.state,
            "dispatchedAt": format_full(run.dispatched_at),
            "endedAt": run.ended_at.map(format_full),
            "outcome": run.outcome.as_ref().map(ToString::to_string),
            "settings": given.map(|given| &given.settings),
            "properties": given.map(|given| &given.properties),
            "inputs": self.inputs_of(run),
            "gives": run.outputs,
        })
    }
}

/// Whether the reason for a slot's state has these words.
fn says(why: &why::Account, words: &str) -> bool {
    let all = why.blockers.iter().chain([&why.headline]);
    all.map(|text| text.to_lowercase()).any(|text| text.contains(&words.to_lowercase()))
}

/// `743 succeeded, 1 waiting`.
fn counted(counts: &BTreeMap<SlotState, u64>) -> String {
    if counts.is_empty() {
        return "no slots".to_owned();
    }
    counts.iter().map(|(state, count)| format!("{count} {state}")).collect::<Vec<_>>().join(", ")
}

/// The named values that are not as expected.
fn unlike(about: &str, kind: &str, expected: &Map<String, Value>, found: &Map<String, Value>) -> Vec<Mismatch> {
    let wrong = expected.iter().filter(|(name, value)| found.get(*name) != Some(*value));
    let mismatch = |(name, value): (&String, &Value)| {
        let there = found.get(name).map_or("none".to_owned(), ToString::to_string);
        Mismatch::new(format!("{kind} \"{name}\" of {about}"), value.to_string(), there)
    };
    wrong.map(mismatch).collect()
}
