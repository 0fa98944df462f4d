//! The one loop around a scheduler. Each turn feeds inputs and a tick to the scheduler, commits the result, and only
//! then performs the commands. Results of the commands that are available at once are the inputs of the next turn.
//! Without any, the loop waits for the next input, or for the moment at which the scheduler is due by time alone.
//!
//! What is *absent*: the clock, the store and the performance of commands. All of them belong to the [`Surroundings`].

use jiff::Timestamp;

use crate::{Command, Core, Input};

/// The environment of a scheduler: its clock, its store, and the performer of its commands.
pub trait Surroundings {
    /// The error that ends the loop.
    type Trouble;

    /// The scheduler.
    fn core(&self) -> &Core;

    /// The current moment, as the scheduler is to see it.
    fn now(&self) -> Timestamp;

    /// Waits for the next inputs and returns them, but no longer than until `due`, the moment at which the scheduler
    /// has something to do without any input: not at all if that is past, without limit if it is none. The result
    /// `None` ends the loop.
    ///
    /// # Errors
    /// If the loop can't continue.
    fn wait(&mut self, due: Option<Timestamp>) -> Result<Option<Vec<Input>>, Self::Trouble>;

    /// The inputs that make the scheduler act within a turn; none if it is to act later.
    fn tick(&mut self) -> Vec<Input> {
        vec![Input::Woke { only: None, look_again: false }]
    }

    /// Feeds inputs and commits their results atomically. Returns the commands; none of them is performed yet.
    ///
    /// # Errors
    /// If the loop can't continue. Nothing is performed then.
    fn turn(&mut self, now: Timestamp, inputs: Vec<Input>) -> Result<Vec<Command>, Self::Trouble>;

    /// Performs commands in order. Returns the inputs that are available at once.
    ///
    /// # Errors
    /// If the loop can't continue.
    fn perform(&mut self, now: Timestamp, commands: Vec<Command>) -> Result<Vec<Input>, Self::Trouble>;
}

/// Takes turns until the surroundings end the loop.
///
/// # Errors
/// If the loop can't continue.
pub fn drive<S: Surroundings>(surroundings: &mut S) -> Result<(), S::Trouble> {
    loop {
        let due = due(surroundings.core(), surroundings.now());
        let Some(happened) = surroundings.wait(due)? else { return Ok(()) };
        live_through(surroundings, happened)?;
    }
}

/// Takes turns for some inputs until no further input follows from them at once.
///
/// # Errors
/// If the loop can't continue.
pub fn live_through<S: Surroundings>(surroundings: &mut S, happened: Vec<Input>) -> Result<(), S::Trouble> {
    let mut inputs = happened;
    loop {
        inputs.extend(surroundings.tick());
        if inputs.is_empty() {
            return Ok(());
        }
        let now = surroundings.now();
        let commands = surroundings.turn(now, inputs)?;
        inputs = surroundings.perform(now, commands)?;
        if inputs.is_empty() {
            return Ok(());
        }
    }
}

/// The moment at which the scheduler has something to do without any input; at most `now` if work is left over.
fn due(core: &Core, now: Timestamp) -> Option<Timestamp> {
    if core.is_due(now) { Some(now) } else { core.next_wake() }
}
