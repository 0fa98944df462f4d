//! The environment of a scenario.

pub(crate) mod events;
pub(crate) mod flows;
pub(crate) mod jobs;
pub(crate) mod script;
pub(crate) mod words;
pub(crate) mod world;
