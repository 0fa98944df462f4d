//! Problems of workflows, at the places of their definitions.

use kelos_model::Workflow;

use crate::code::ProblemCode;
use crate::load::LoadResult;
use crate::problem::{Problem, Severity};

/// A warning about a workflow, at its definition.
pub(crate) fn warning(
    loaded: &LoadResult,
    workflow: &Workflow,
    code: ProblemCode,
    message: String,
    hint: Option<String>,
) -> Problem {
    let source = &workflow.source;
    let line = usize::try_from(source.line).unwrap_or(0).saturating_sub(1);
    let text = loaded.sources.get(&source.file).and_then(|text| text.lines().nth(line));
    Problem {
        severity: Severity::Warning,
        line: source.line,
        column: u32::from(source.line > 0),
        hint,
        workflow: Some(workflow.id.clone()),
        source_line: text.map(str::to_owned),
        ..Problem::error(&source.file, code, message)
    }
}

/// Moves a problem of a workflow to where a text stands: between its definition and the next one, or else at the only place of the
/// file that has it.
pub(crate) fn at_text(loaded: &LoadResult, workflow: &Workflow, problem: Problem, text: &str) -> Problem {
    let Some(source) = loaded.sources.get(&workflow.source.file) else { return problem };
    let all = loaded.refused.iter().chain(&loaded.workflows);
    let lines = all.filter(|one| one.source.file == workflow.source.file).map(|one| one.source.line);
    let next = lines.filter(|line| *line > workflow.source.line).min().unwrap_or(u32::MAX);
    let places: Vec<(u32, usize, &str)> = (1..)
        .zip(source.lines())
        .flat_map(|(number, line)| line.match_indices(text).map(move |(at, _)| (number, at, line)))
        .collect();
    let within = places.iter().find(|(line, ..)| (workflow.source.line..next).contains(line));
    let only = || places.first().filter(|_| places.len() == 1);
    let Some((line, at, text)) = within.or_else(only) else { return problem };
    let column = text.get(..*at).map_or(0, |before| before.chars().count()) + 1;
    Problem {
        line: *line,
        column: u32::try_from(column).unwrap_or(1),
        source_line: Some((*text).to_owned()),
        ..problem
    }
}
