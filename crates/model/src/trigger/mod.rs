//! Triggers: predicates on a slot, which say whether it may start.

mod certain;
mod check;
mod dependencies;
mod evaluate;
mod node;
mod path;
mod periods;
mod prerequisites;
mod without;
mod words;

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use dependencies::Dependencies;
pub use evaluate::{Evaluation, Facts, Waker, evaluate};
pub use node::{FactLeaf, Leaf, Node};
pub(crate) use path::normal;
pub use path::{FileSystem, PathCheck};
pub use periods::{Coverage, PeriodsOf, SlotTimes};
pub use prerequisites::{Prerequisite, Prerequisites};
pub use words::node_words;

use crate::facts::{Collection, Subject};
use crate::function::FunctionRef;
use crate::id::WorkflowId;
use crate::state::SlotState;
use crate::time::{Firing, Zone};

/// A tree over leaves that look at the clock, at other slots, or at the outside world.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Trigger {
    /// Always met.
    Always,
    /// Met when all are; an empty one is.
    And {
        /// The nested triggers.
        triggers: Vec<Trigger>,
    },
    /// Met when one is; an empty one isn't, ever.
    Or {
        /// The nested triggers.
        triggers: Vec<Trigger>,
    },
    /// Met when the nested one isn't.
    Not {
        /// The nested trigger.
        trigger: Box<Trigger>,
    },
    /// Asks the nested trigger about the slot that lies `seconds` later. The clock stays as it is.
    Offset {
        /// Seconds into the future, or into the past where negative.
        seconds: i64,
        /// The nested trigger.
        trigger: Box<Trigger>,
    },
    /// Met once more than `seconds` have passed since the slot's time.
    Delay {
        /// The delay, in seconds.
        seconds: i64,
    },
    /// Met when the slot of another workflow with the same key has succeeded. Of a job that names a day it is the slot at that
    /// day's start, in UTC.
    Success {
        /// The other workflow.
        workflow: WorkflowId,
    },
    /// Met when each slot of another workflow whose period intersects the slot's own has succeeded; of its own workflow only earlier
    /// slots count.
    Covers {
        /// The other workflow.
        workflow: WorkflowId,
        /// So many seconds after the start of its own period the interval begins, before it where negative.
        #[serde(default)]
        from: i64,
        /// So many seconds after the end of its own period the interval ends, before it where negative.
        #[serde(default)]
        to: i64,
    },
    /// Met when a job has succeeded: a slot of a workflow that is keyed by job ids.
    Job {
        /// The workflow of the job.
        workflow: WorkflowId,
        /// A template of its job id: `${year}${month}${day}_1`.
        job: String,
    },
    /// Met when something is at a path, and is as it should be.
    Path(PathCheck),
    /// Met once so many new partitions of a dataset have come since the slot began to collect.
    Partitions {
        /// The dataset.
        dataset: Arc<str>,
        /// The number of partitions, from 1.
        count: u32,
    },
    /// Met once a run of a program has ended in one of these states since the slot began to collect.
    Ended {
        /// The program.
        program: WorkflowId,
        /// The states in which it may end, some of [`crate::facts::ENDS`].
        states: Vec<SlotState>,
    },
    /// Met once a time of a cron expression has passed since the slot began to collect.
    Fired {
        /// The times.
        #[serde(flatten)]
        firing: Firing,
    },
    /// Met once a signal was given since the slot began to collect.
    Signal {
        /// Its name.
        name: Arc<str>,
    },
    /// Met when a script's function says so.
    Function {
        /// The function.
        function: FunctionRef,
    },
}

impl Trigger {
    /// The subjects of facts that can make it met, each once.
    #[must_use]
    pub fn subjects(&self) -> BTreeSet<Subject> {
        let subjects = |leaf| if let Leaf::Facts(awaited) = leaf { awaited.subjects } else { Vec::new() };
        self.of_leaves(subjects).into_iter().collect()
    }

    /// Whether nothing but facts decides about it.
    #[must_use]
    pub fn is_of_facts(&self) -> bool {
        match self.node() {
            Node::All(triggers) | Node::Any(triggers) => {
                !triggers.is_empty() && triggers.iter().all(Trigger::is_of_facts)
            }
            Node::Leaf(leaf) => matches!(leaf, Leaf::Facts(_)),
            Node::Not(_) | Node::Later(..) => false,
        }
    }

    /// Whether what was collected meets it: the answer of [`evaluate`], without its reasons, where nothing but facts decides.
    #[must_use]
    pub fn is_met_by(&self, collected: &Collection) -> bool {
        match self.node() {
            Node::All(triggers) => triggers.iter().all(|one| one.is_met_by(collected)),
            Node::Any(triggers) => triggers.iter().any(|one| one.is_met_by(collected)),
            Node::Leaf(Leaf::Facts(awaited)) => awaited.is_met_by(collected),
            Node::Not(_) | Node::Later(..) | Node::Leaf(_) => false,
        }
    }

    /// How much of what it waits for was collected, from 0 to 1. Leaves that ask for more than facts count as 0.
    #[must_use]
    pub fn share(&self, collected: &Collection) -> f64 {
        let shares = |triggers: &[Trigger]| triggers.iter().map(|one| one.share(collected)).collect::<Vec<f64>>();
        match self.node() {
            Node::All(triggers) => shares(triggers).iter().sum::<f64>() / triggers.len().max(1) as f64,
            Node::Any(triggers) => shares(triggers).into_iter().fold(0.0, f64::max),
            Node::Leaf(Leaf::Facts(awaited)) => awaited.share(collected),
            Node::Not(_) | Node::Later(..) | Node::Leaf(_) => 0.0,
        }
    }

    /// The cron expressions in it, in order of appearance, each once.
    #[must_use]
    pub fn firings(&self) -> Vec<&Firing> {
        let mut firings = self.of_leaves(|leaf| if let Leaf::Facts(awaited) = leaf { awaited.firing } else { None });
        let mut seen = BTreeSet::new();
        firings.retain(|firing| seen.insert(firing.name()));
        firings
    }

    /// The slots that it looks at by time, in order of appearance: of which workflow, and how many seconds later.
    #[must_use]
    pub fn looks_at(&self) -> Vec<(&WorkflowId, i64)> {
        match self.node() {
            Node::Leaf(Leaf::Slot(workflow)) => vec![(workflow, 0)],
            Node::Later(seconds, trigger) => {
                let nested = trigger.looks_at().into_iter();
                nested.filter_map(|(workflow, later)| Some((workflow, later.checked_add(seconds)?))).collect()
            }
            _ => self.nested().iter().flat_map(Trigger::looks_at).collect(),
        }
    }

    /// The periods of other workflows that it waits for, in order of appearance.
    #[must_use]
    pub fn covered(&self) -> Vec<Coverage<'_>> {
        match self.node() {
            Node::Leaf(Leaf::Periods(covered)) => vec![covered],
            Node::Later(seconds, trigger) => {
                let nested = trigger.covered().into_iter();
                nested.filter_map(|one| Some(Coverage { later: one.later.checked_add(seconds)?, ..one })).collect()
            }
            _ => self.nested().iter().flat_map(Trigger::covered).collect(),
        }
    }

    /// The workflows whose jobs it looks at, in order of appearance.
    #[must_use]
    pub fn upstream_jobs(&self) -> Vec<&WorkflowId> {
        self.of_leaves(|leaf| if let Leaf::Job(workflow, _) = leaf { Some(workflow) } else { None })
    }

    /// The workflows whose slots it looks at, by time, by period or by job id, in order of appearance.
    #[must_use]
    pub fn upstream(&self) -> Vec<&WorkflowId> {
        self.of_leaves(|leaf| match leaf {
            Leaf::Slot(workflow) | Leaf::Periods(Coverage { workflow, .. }) | Leaf::Job(workflow, _) => Some(workflow),
            _ => None,
        })
    }

    /// The paths that it asks about, in order of appearance.
    #[must_use]
    pub fn paths(&self) -> Vec<&PathCheck> {
        match self {
            Trigger::Path(check) => vec![check],
            _ => self.nested().iter().flat_map(Trigger::paths).collect(),
        }
    }

    /// The longest time that one of its leaves has every slot wait, in seconds; 0 where none does.
    #[must_use]
    pub fn longest_delay(&self) -> i64 {
        let delays = self.of_leaves(|leaf| if let Leaf::Clock(seconds) = leaf { Some(seconds) } else { None });
        delays.into_iter().fold(0, i64::max)
    }

    /// Whether it waits for runs of a program.
    #[must_use]
    pub fn waits_for(&self, program: &WorkflowId) -> bool {
        self.has_leaf(|leaf| matches!(leaf, Leaf::Facts(awaited) if awaited.program == Some(program)))
    }

    /// Whether it asks a function of a script.
    #[must_use]
    pub fn asks_function(&self) -> bool {
        matches!(self, Trigger::Function { .. }) || self.nested().iter().any(Trigger::asks_function)
    }

    /// The same trigger with all its times in another zone.
    #[must_use]
    pub fn within(mut self, zone: &Zone) -> Trigger {
        self.change_leaves(&mut |leaf| {
            if let Trigger::Fired { firing } = leaf {
                *firing = firing.within(zone.clone());
            }
        });
        self
    }

    /// Reads each cron expression of five fields that an earlier definition has, too, as that one does.
    pub fn keep_readings(&mut self, before: &Trigger) {
        let known: Vec<Firing> = before.firings().into_iter().filter(|one| one.is_of_quartz_alone()).cloned().collect();
        self.change_leaves(&mut |leaf| {
            if let Trigger::Fired { firing } = leaf
                && let Some(kept) = known.iter().find(|one| one.name() == firing.name())
            {
                *firing = kept.clone();
            }
        });
    }

    /// Gives the programs whose runs it waits for other names.
    pub fn rename_programs(&mut self, rename: &dyn Fn(&WorkflowId) -> Option<WorkflowId>) {
        self.change_leaves(&mut |leaf| {
            if let Trigger::Ended { program, .. } = leaf
                && let Some(name) = rename(program)
            {
                *program = name;
            }
        });
    }
}
