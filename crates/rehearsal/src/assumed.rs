//! The assumptions of a dry run about the outside, which it never asks.

use std::collections::BTreeMap;

use kelos_model::{Probe, Workflow};

/// The assumptions that a dry run made, as far as it needed them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Assumptions {
    /// Paths that were taken to be there or not, with those together that differ in digits alone.
    pub paths: Vec<AssumedPaths>,
    /// The number of functions of scripts whose answer was taken to be yes.
    pub answers: u64,
    /// The number of runs that were taken to succeed, by executor.
    pub runs: BTreeMap<String, u64>,
    /// The sizes of the pools whose permits these runs took.
    pub pools: BTreeMap<String, u32>,
    /// Whether slots before the range were taken to have succeeded.
    pub past: bool,
}

/// Paths that differ in digits alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AssumedPaths {
    /// The first of them.
    pub first: String,
    /// The number of them.
    pub count: u64,
    /// Whether they were taken to be there.
    pub there: bool,
}

/// The assumptions as they are made.
#[derive(Default)]
pub(crate) struct Ledger {
    /// By their text without digits, and whether they are there.
    paths: BTreeMap<(String, bool), AssumedPaths>,
    found: Assumptions,
}

impl Ledger {
    /// Notes the answer to a question to the outside.
    pub(crate) fn answered(&mut self, probe: &Probe, there: bool) {
        match probe {
            Probe::Path { uri, .. } => {
                let like = uri.replace(|letter: char| letter.is_ascii_digit(), "#");
                let none = || AssumedPaths { first: uri.clone(), count: 0, there };
                self.paths.entry((like, there)).or_insert_with(none).count += 1;
            }
            Probe::Function { .. } => self.found.answers += 1,
        }
    }

    /// Notes a run by an executor.
    pub(crate) fn ran(&mut self, workflow: &Workflow, executor: &str) {
        *self.found.runs.entry(executor.to_owned()).or_default() += 1;
        let pools = workflow.pools.iter().map(|pool| (pool.pool.to_string(), pool.size));
        self.found.pools.extend(pools);
    }

    /// Notes that a slot of before the range was asked for.
    pub(crate) fn looked_back(&mut self) {
        self.found.past = true;
    }

    /// All of them.
    pub(crate) fn close(self) -> Assumptions {
        Assumptions { paths: self.paths.into_values().collect(), ..self.found }
    }
}
