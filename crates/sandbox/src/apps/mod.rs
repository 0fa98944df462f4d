//! Apps with job ids that are described in the words of another system.
//!
//! A door knows those words and reads them, as an [`AppFormat`]; this room keeps what it read together with the scripts, whole or not
//! at all, and hands it the apps that scripts describe by the same words.

mod file;
mod settings;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use kelos_model::jobs::Fault;
use kelos_model::{Workflow, WorkflowId};

use crate::code::ProblemCode;

pub(crate) use file::AppsFile;
pub use file::AppsSource;
pub use settings::{SCHEMA, Settings, SettingsError};

/// Reads apps in the words of another system.
pub trait AppFormat: Send + Sync {
    /// Parses a text into the apps that can be run; they may depend on apps of other files. `file` names the text in
    /// messages.
    ///
    /// # Errors
    /// The mistakes that leave no app of the text known.
    fn apps(&self, text: &str, file: &str, settings: &Settings) -> Result<Apps, Vec<Mistake>>;
}

/// A format that a program was given, if any.
pub(crate) type Format = Option<Arc<dyn AppFormat>>;

/// A position in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line, from 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
}

/// Something wrong in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// Its position.
    pub place: Position,
    /// Its kind.
    pub code: ProblemCode,
    /// A description, with what was expected.
    pub what: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.place.line, self.place.column, self.what)
    }
}

/// The members of each dependency group of an app, with the position of the group and of each member.
pub type GroupPositions = BTreeMap<String, (Position, Vec<Position>)>;

/// The apps of a file, each checked by itself.
#[derive(Debug, Default)]
pub struct Apps {
    /// The apps, in the order of the file. What is wrong with one is in its keys.
    pub workflows: Vec<Workflow>,
    /// Mistakes in apps, including those that only keep jobs from being run, in the order of the file.
    pub mistakes: Vec<Mistake>,
    /// Oddities that do no harm.
    pub warnings: Vec<Mistake>,
    /// The position of each app and of its groups.
    pub places: BTreeMap<WorkflowId, (Position, GroupPositions)>,
}

impl Apps {
    /// The app that contains a position of the file.
    #[must_use]
    pub fn at(&self, place: Position) -> Option<&WorkflowId> {
        self.places
            .iter()
            .filter(|(_, (begin, _))| *begin <= place)
            .max_by_key(|(_, (begin, _))| *begin)
            .map(|(id, _)| id)
    }

    /// The apps in the order of the file, each with its position.
    #[must_use]
    pub fn in_order(&self) -> Vec<(Position, &WorkflowId)> {
        let mut all: Vec<_> = self.places.iter().map(|(id, (place, _))| (*place, id)).collect();
        all.sort();
        all
    }

    /// The position of a fault between apps.
    #[must_use]
    pub fn place(&self, fault: &Fault) -> Option<Position> {
        let (app, places) = self.places.get(&fault.workflow)?;
        let group = fault.group.as_ref().and_then(|group| places.get(group));
        let member = fault.member.and_then(|member| group?.1.get(member - 1));
        Some(*member.or(group.map(|(place, _)| place)).unwrap_or(app))
    }
}
