//! The warrant of a request: the rights with which somebody asks, as they were when the request came in.

use std::collections::BTreeSet;
use std::sync::Arc;

use kelos_model::sharing::{EVERYONE, Scope};

/// The rights with which somebody asks. A request without a warrant is Kelos's own, or comes in where nobody is asked who they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warrant {
    /// The projects that they may see.
    pub view: Scope,
    /// The projects that they may operate.
    pub operate: Scope,
    /// The projects whose definitions they may change.
    pub author: Scope,
    /// The projects whose changes need a reason; `*` for all.
    pub reasons: BTreeSet<Arc<str>>,
}

/// A right that requests to the scheduler need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Right {
    View,
    Operate,
    Author,
}

impl Right {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Right::View => "view",
            Right::Operate => "operate",
            Right::Author => "author",
        }
    }
}

impl Warrant {
    /// The projects for which it gives a right.
    pub(crate) fn scope(&self, right: Right) -> &Scope {
        match right {
            Right::View => &self.view,
            Right::Operate => &self.operate,
            Right::Author => &self.author,
        }
    }

    /// Whether changes of a project need a reason.
    pub(crate) fn needs_reason(&self, project: &str) -> bool {
        self.reasons.contains(EVERYONE) || self.reasons.contains(project)
    }
}
