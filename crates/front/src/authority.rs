//! The rights of a caller, as the scheduler is told them, and the checks that concern no request to it.
//!
//! What a request to the scheduler needs, and for which projects, the scheduler itself decides in the turn that carries it out; this is
//! where its refusals are put on record.

use kelos::Node;
use kelos_core::Warrant;
use kelos_engine::AskError;
use kelos_trust::{Grants, Right};

use crate::access::Access;
use crate::identity::Identity;

/// The rights of one caller at one moment.
pub(crate) struct Authority<'a> {
    pub(crate) node: &'a Node,
    pub(crate) access: &'a Access,
    pub(crate) identity: &'a Identity,
    pub(crate) grants: Grants,
}

impl Authority<'_> {
    /// Refuses a caller without a right for a project; for none, without the right for all projects. The refusal is put on record.
    pub(crate) fn require(&self, right: Right, project: Option<&str>, action: &str) -> Result<(), AskError> {
        if self.grants.allow(right, project) {
            return Ok(());
        }
        self.access.refused(self.node.handle(), self.identity, right, project, action);
        let actor = self.identity.actor.to_string();
        Err(AskError::Forbidden { actor, right: right.name(), project: project.map(str::to_owned) })
    }

    /// The rights that go with a request to the scheduler.
    pub(crate) fn warrant(&self) -> Warrant {
        let scope = |right| self.grants.scope(right);
        Warrant {
            view: scope(Right::View),
            operate: scope(Right::Operate),
            author: scope(Right::Author),
            reasons: self.access.rules().reasons_for.iter().map(|project| project.as_str().into()).collect(),
        }
    }

    /// Puts a refusal of the scheduler on record.
    pub(crate) fn note(&self, error: &AskError) {
        let AskError::Forbidden { right, project, .. } = error else { return };
        if let Some(right) = Right::ALL.into_iter().find(|one| one.name() == *right) {
            let action = "a request to the scheduler";
            self.access.refused(self.node.handle(), self.identity, right, project.as_deref(), action);
        }
    }
}
