//! Fences between projects: a workflow whose definition refers to something that another project does not share lies dormant, and what a
//! run or a slot is given of another project is no more than that shares.
//!
//! A server without `--auth` has no fences.

use std::borrow::Cow;

use kelos_model::sharing::Reference;
use kelos_model::{Arguments, Occurrence, SlotRef, WorkflowId};
use serde_json::Map;

use crate::masked::refuse_masks;
use crate::rights::{Rights, definitions_of};
use crate::warrant::Warrant;
use crate::{Ask, Core, Refusal};

impl Core {
    /// Judges the references again that changes of definitions may have decided otherwise.
    pub(crate) fn fence(&mut self) {
        for id in self.workflows.take_concerned() {
            if self.config.isolated && self.workflows.judge_references(&id) {
                self.agree_on_terms(&id);
                self.wake_all(&id);
            }
        }
    }

    /// The rights of a request that has a warrant.
    pub(crate) fn rights<'a>(&'a self, warrant: Option<&'a Warrant>) -> Option<Rights<'a>> {
        let (sharing, backfills) = (self.workflows.sharing(), &self.backfills);
        warrant.map(|warrant| Rights { warrant, sharing, backfills })
    }

    /// Refuses a request for which a right is missing, which has a mask for a value, or whose definitions refer to what others don't share.
    pub(crate) fn check_rights(&self, warrant: Option<&Warrant>, ask: &Ask) -> Result<(), Refusal> {
        let rights = self.rights(warrant);
        rights.as_ref().map_or(Ok(()), |rights| rights.check(ask))?;
        refuse_masks(ask)?;
        if !self.config.isolated {
            return Ok(());
        }
        let unshared =
            definitions_of(ask).iter().find_map(|one| self.workflows.sharing().unshared_by(one).into_iter().next());
        unshared.map_or(Ok(()), |unshared| Err(Refusal::NotShared(Box::new(unshared))))
    }

    /// Refuses the change of slots that a request reaches beyond its own workflow.
    pub(crate) fn check_spread<'s>(
        &self,
        warrant: Option<&Warrant>,
        slots: impl Iterator<Item = &'s SlotRef>,
    ) -> Result<(), Refusal> {
        self.rights(warrant).map_or(Ok(()), |rights| rights.check_spread(slots))
    }

    /// Whether a workflow may have a reference to another one.
    pub(crate) fn shares(&self, with: &WorkflowId, reference: &Reference) -> bool {
        let sharing = self.workflows.sharing();
        !self.config.isolated || sharing.project_of(with).is_some_and(|project| sharing.allows(project, reference))
    }

    /// A fact as a workflow may see it: without the arguments and outputs of runs that their project does not share.
    pub(crate) fn seen_by<'o>(&self, id: &WorkflowId, what: &'o Occurrence) -> Cow<'o, Occurrence> {
        match what {
            Occurrence::Ended { program, state, run, .. } if !self.shares(id, &Reference::Runs(program.clone())) => {
                let (program, state, run) = (program.clone(), *state, run.clone());
                let (arguments, outputs) = (Arguments::new(), Map::new());
                Cow::Owned(Occurrence::Ended { program, state, run, arguments, outputs })
            }
            _ => Cow::Borrowed(what),
        }
    }
}
