//! Grants: roles for all projects or for one.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use kelos_model::id::is_invisible;
use kelos_model::sharing::Scope;
use serde::{Deserialize, Serialize};

use crate::right::{Right, Role};

/// A role for all projects, or for one: `view`, `operate@warehouse`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Grant {
    /// The role.
    pub role: Role,
    /// The only project that it is for; none where it is for all.
    pub project: Option<Arc<str>>,
}

/// The error of a text that is no grant. Completes "failed to …".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GrantError {
    /// There is no such role, or no project after the `@`.
    #[error("read \"{0}\" as a role: expected one of {names}, alone or for one project as in operate@warehouse", names = names())]
    Role(String),
    /// A worker for one project.
    #[error("read \"{0}\" as a role: a worker does runs of all projects, expected worker")]
    Worker(String),
    /// No project can have the name.
    #[error(
        "read \"{}\" as a role: no project can have that name, expected 1 to {LONGEST_PROJECT} bytes without blanks at its ends, * and \
         invisible characters; a role for all projects has no @", .0.escape_debug()
    )]
    Project(String),
}

/// Longest name of a project, in bytes.
const LONGEST_PROJECT: usize = 255;

fn names() -> String {
    Role::ALL.map(Role::name).join(", ")
}

impl Grant {
    /// A role for all projects.
    #[must_use]
    pub fn everywhere(role: Role) -> Grant {
        Grant { role, project: None }
    }

    /// A role for one project.
    #[must_use]
    pub fn of(role: Role, project: &str) -> Grant {
        Grant { role, project: Some(project.into()) }
    }

    /// Whether a project can have the name that it is for. Records from before this was asked may have others, and stay readable.
    ///
    /// # Errors
    /// When no project can.
    pub fn check(&self) -> Result<(), GrantError> {
        let is_possible = |name: &str| {
            let is_plain = name.trim() == name && !name.contains('*') && !name.contains(is_invisible);
            (1..=LONGEST_PROJECT).contains(&name.len()) && is_plain
        };
        match &self.project {
            Some(project) if !is_possible(project) => Err(GrantError::Project(self.to_string())),
            _ => Ok(()),
        }
    }

    fn covers(&self, right: Right, project: Option<&str>) -> bool {
        let reaches = match (&self.project, project) {
            (None, _) => true,
            (Some(own), Some(project)) => **own == *project,
            (Some(_), None) => false,
        };
        reaches && self.role.rights().has(right)
    }
}

impl FromStr for Grant {
    type Err = GrantError;

    fn from_str(text: &str) -> Result<Grant, GrantError> {
        let error = || GrantError::Role(text.to_owned());
        let (role, project) = match text.split_once('@') {
            Some((role, project)) => (role, Some(project)),
            None => (text, None),
        };
        let role = Role::named(role).ok_or_else(error)?;
        match project {
            // A worker does runs of all projects or of none.
            Some("") => Err(error()),
            Some(_) if role == Role::Worker => Err(GrantError::Worker(text.to_owned())),
            project => Ok(Grant { role, project: project.map(Arc::from) }),
        }
    }
}

impl TryFrom<String> for Grant {
    type Error = GrantError;

    fn try_from(text: String) -> Result<Grant, GrantError> {
        text.parse()
    }
}

impl From<Grant> for String {
    fn from(grant: Grant) -> String {
        grant.to_string()
    }
}

impl fmt::Display for Grant {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.project {
            None => write!(to, "{}", self.role),
            Some(project) => write!(to, "{}@{project}", self.role),
        }
    }
}

/// Grants, of which each adds to the others; within limits, if there are any: a token never has more rights than its owner.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Grants {
    own: Vec<Grant>,
    within: Option<Vec<Grant>>,
}

impl Grants {
    /// No right at all.
    #[must_use]
    pub fn none() -> Grants {
        Grants::default()
    }

    /// All rights.
    #[must_use]
    pub fn all() -> Grants {
        Grants::of(vec![Grant::everywhere(Role::Admin)])
    }

    /// The rights of these grants together.
    #[must_use]
    pub fn of(own: Vec<Grant>) -> Grants {
        Grants { own, within: None }
    }

    /// The same, as far as others have them, too.
    #[must_use]
    pub fn within(self, limits: &[Grant]) -> Grants {
        Grants { within: Some(limits.to_vec()), ..self }
    }

    /// The grants, without their limits.
    #[must_use]
    pub fn own(&self) -> &[Grant] {
        &self.own
    }

    /// Whether they give a right for a project; for none, whether they give it for all projects.
    #[must_use]
    pub fn allow(&self, right: Right, project: Option<&str>) -> bool {
        let given = |grants: &[Grant]| grants.iter().any(|grant| grant.covers(right, project));
        given(&self.own) && self.within.as_deref().is_none_or(given)
    }

    /// Whether they give a right for any project.
    #[must_use]
    pub fn allow_somewhere(&self, right: Right) -> bool {
        match self.scope(right) {
            Scope::All => true,
            Scope::Only(projects) => !projects.is_empty(),
        }
    }

    /// The projects for which they give a right.
    #[must_use]
    pub fn scope(&self, right: Right) -> Scope {
        if self.allow(right, None) {
            return Scope::All;
        }
        let named = self.own.iter().chain(self.within.iter().flatten()).filter_map(|grant| grant.project.clone());
        Scope::Only(named.filter(|project| self.allow(right, Some(project))).collect())
    }

    /// Whether they give every right that a grant gives.
    #[must_use]
    pub fn cover(&self, grant: &Grant) -> bool {
        let mut rights = Right::ALL.into_iter().filter(|right| grant.role.rights().has(*right));
        rights.all(|right| self.allow(right, grant.project.as_deref()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grants(texts: &[&str]) -> Grants {
        Grants::of(texts.iter().map(|text| text.parse().expect("a grant")).collect())
    }

    #[test]
    fn a_role_is_for_all_projects_or_for_one() {
        let some = grants(&["view", "operate@a"]);
        assert!(some.allow(Right::View, None) && some.allow(Right::View, Some("b")));
        assert!(some.allow(Right::Operate, Some("a")) && !some.allow(Right::Operate, Some("b")));
        assert!(!some.allow(Right::Operate, None) && some.allow_somewhere(Right::Operate));
        assert_eq!(some.scope(Right::View), Scope::All);
        assert_eq!(some.scope(Right::Operate), Scope::Only(["a".into()].into()));
        assert!(!some.allow_somewhere(Right::Author));
    }

    #[test]
    fn a_token_has_no_more_rights_than_its_owner() {
        let token = grants(&["operate"]).within(grants(&["view", "author@a"]).own());
        assert!(token.allow(Right::Operate, Some("a")) && !token.allow(Right::Operate, Some("b")));
        assert!(token.allow(Right::View, None) && !token.allow(Right::Author, Some("a")));
        assert_eq!(token.scope(Right::Operate), Scope::Only(["a".into()].into()));
        assert!(token.cover(&"operate@a".parse().unwrap()) && !token.cover(&"operate".parse().unwrap()));
    }

    #[test]
    fn texts_that_are_no_grants_say_what_was_expected() {
        for text in ["", "owner", "view@", "View", "@a"] {
            let error = text.parse::<Grant>().expect_err(text).to_string();
            assert!(error.contains("expected one of view, operate, author, admin, audit, worker"), "{error}");
        }
        for text in ["view", "author@team/x", "admin@a@b", "view@prod:Purchase~1.2"] {
            let grant = text.parse::<Grant>().expect(text);
            assert_eq!((grant.to_string().as_str(), grant.check()), (text, Ok(())));
        }
    }

    #[test]
    fn a_worker_is_for_all_projects() {
        let error = "worker@a".parse::<Grant>().expect_err("a worker of one project").to_string();
        assert_eq!(error, "read \"worker@a\" as a role: a worker does runs of all projects, expected worker");
    }

    #[test]
    fn a_role_for_a_name_that_no_project_can_have_is_refused_and_stays_readable() {
        for text in ["view@*", "view@alpha ", "view@ alpha", "view@a\u{202e}b", &format!("view@{}", "x".repeat(300))] {
            let grant = text.parse::<Grant>().expect("readable, for it may be stored");
            let error = grant.check().expect_err(text).to_string();
            assert!(error.contains("no project can have that name") && !error.contains('\u{202e}'), "{error}");
        }
    }
}
