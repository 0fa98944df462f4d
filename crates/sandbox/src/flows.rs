//! Problems of the steps of flows, each where its step stands.

use kelos_model::flow::{FlowFlaw, FlowGraph};
use kelos_model::{PoolUse, Workflow};

use crate::code::ProblemCode;
use crate::desk::Desk;
use crate::fault;
use crate::problem::{Problem, SourcePosition};

impl Desk {
    /// Reports how the steps of a flow don't fit together, and don't fit the flow: everything at once.
    pub(crate) fn judge_flow(&self, workflow: &Workflow, stack: &str, call: &str) {
        let Some(flow) = &workflow.flow else { return };
        for step in &flow.steps {
            let is_held = |pool: &PoolUse| workflow.pools.iter().any(|held| held.pool == pool.pool);
            let Some(both) = step.pools.iter().find(|pool| is_held(pool)) else { continue };
            let words = format!(
                "{call} \"{}\": step {}: each run of the flow holds pool \"{}\" until it ends, so that the step would wait for its own \
                 run: expected the pool in the flow or in its steps",
                workflow.id, step.name, both.pool
            );
            self.blame_step(ProblemCode::BadFlow, words, stack, [step.name.as_str(), "pools"]);
        }
        for flaw in FlowGraph::new(flow).err().into_iter().flatten() {
            let step = flaw.step().map_or("", |step| step.as_str());
            let text = match &flaw {
                FlowFlaw::Unknown { other, .. } => other.as_str(),
                FlowFlaw::BothWays { .. } | FlowFlaw::Circle { .. } => "needs",
                FlowFlaw::Doubled { .. } | FlowFlaw::TooMany { .. } => "",
            };
            let words = format!("{call} \"{}\": {flaw}", workflow.id);
            self.blame_step(ProblemCode::BadFlow, words, stack, [step, text]);
        }
    }

    /// Reports an error in a step where it stands: at a text behind the name of the step, or else at the name, or else at the call.
    pub(crate) fn blame_step(&self, code: ProblemCode, message: String, stack: &str, [step, text]: [&str; 2]) {
        let mut places = fault::places(stack);
        if let Some(place) = places.first_mut()
            && let Some(source) = self.source(&place.file)
            && let Some(found) = place_of_step(&source, place, step, text)
        {
            *place = found;
        }
        let mut problem = Problem::error(&self.file, code, message);
        fault::locate(&mut problem, &places, &|file| self.source(file));
        self.note(problem);
    }
}

/// The place of a text within a step of the flow whose definition begins at a place.
fn place_of_step(source: &str, call: &SourcePosition, step: &str, text: &str) -> Option<SourcePosition> {
    let skipped = usize::try_from(call.line).ok()?.saturating_sub(1);
    let from: usize = source.split_inclusive('\n').take(skipped).map(str::len).sum();
    let definition = source.get(from..)?;
    let begins = from + step_at(definition, step).or_else(|| keys_at(definition, step).next())?;
    let within = source.get(begins + step.len()..)?;
    let at = words_at(within, text).next().map_or(begins, |at| begins + step.len() + at);
    position(source, at, &call.file)
}

/// The line and the column of a byte of a source.
pub(crate) fn position(source: &str, at: usize, file: &str) -> Option<SourcePosition> {
    let before = source.get(..at)?;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    let line = before.matches('\n').count() + 1;
    Some(SourcePosition { file: file.to_owned(), line: u32::try_from(line).ok()?, column: u32::try_from(column).ok()? })
}

/// The place of a step in the object of all steps: its name may be that of a field, too.
fn step_at(definition: &str, name: &str) -> Option<usize> {
    let depth = |at: usize| {
        let before = definition.get(..at).unwrap_or_default();
        before.matches('{').count().saturating_sub(before.matches('}').count())
    };
    let steps = keys_at(definition, "steps").next()?;
    let inside = depth(steps) + 1;
    keys_at(definition, name).find(|at| *at > steps && depth(*at) == inside)
}

/// The places of a name as the key of an object: `load: {`, `"load": {`.
pub(crate) fn keys_at<'s>(source: &'s str, name: &'s str) -> impl Iterator<Item = usize> + 's {
    words_at(source, name).filter(|at| {
        let after = source.get(at + name.len()..).unwrap_or_default();
        after.trim_start_matches(['"', '\'', '`', ']']).trim_start().starts_with(':')
    })
}

/// The places of a text as a word of its own; none if it is empty.
fn words_at<'s>(source: &'s str, word: &'s str) -> impl Iterator<Item = usize> + 's {
    let is_of_word = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '$' | '-');
    let all = source.match_indices(word).filter(move |_| !word.is_empty());
    all.map(|(at, _)| at).filter(move |at| {
        let before = source.get(..*at).and_then(|before| before.chars().next_back());
        let after = source.get(at + word.len()..).and_then(|after| after.chars().next());
        !before.is_some_and(is_of_word) && !after.is_some_and(is_of_word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistake_is_told_where_its_step_says_it() {
        let source = "let load = 1;\nkelos.flow(\"etl\", { steps: {\n    extract: {needs: 'a'},\n    'load': {\n        needs: \"extrct\",\n}}});";
        let call = SourcePosition { file: "a.js".to_owned(), line: 2, column: 1 };
        let place = |step, text| place_of_step(source, &call, step, text).map(|place| (place.line, place.column));
        assert_eq!(place("load", "needs"), Some((5, 9)));
        assert_eq!(place("load", "extrct"), Some((5, 17)));
        assert_eq!(place("load", ""), Some((4, 6)));
        assert_eq!(place("load", "nothing"), Some((4, 6)));
        assert_eq!(place("extract", "needs"), Some((3, 15)));
        assert_eq!(place("missing", "needs"), None);
    }
}
