//! The one loop around a scheduler: what happened is fed with a tick behind it, committed, and only then is done what it led to. What
//! comes of that at once is fed in the next turn; when nothing does, the loop waits for whatever happens next, or for the moment at which
//! time alone gives the scheduler something to do.
//!
//! What is *absent*: which clock, which store, who does what is to be done. All that is the [`Surroundings`]'.

use jiff::Timestamp;

use crate::{Command, Core, Input};

/// What surrounds a scheduler: a clock, a store, and those who do what it asks for.
pub trait Surroundings {
    /// Why the loop can't go on.
    type Trouble;

    /// The scheduler.
    fn core(&self) -> &Core;

    /// The moment, as the scheduler is to take it.
    fn now(&self) -> Timestamp;

    /// Waits until something happens, and gives what did. It waits no longer than until `due`, when the scheduler has something to do
    /// whatever happens: at once where that is past, and as long as it likes where there is no such moment. Nothing ends the loop.
    ///
    /// # Errors
    /// Why the loop can't go on.
    fn wait(&mut self, due: Option<Timestamp>) -> Result<Option<Vec<Input>>, Self::Trouble>;

    /// What makes the scheduler act on what it is told in a turn; where it is to act later this is nothing.
    fn tick(&mut self) -> Vec<Input> {
        vec![Input::Woke { only: None, look_again: false }]
    }

    /// Feeds inputs and commits what they led to, all or nothing. Gives what is to be done, none of which has been.
    ///
    /// # Errors
    /// Why the loop can't go on. Nothing is done then.
    fn turn(&mut self, now: Timestamp, inputs: Vec<Input>) -> Result<Vec<Command>, Self::Trouble>;

    /// Does what is to be done, in order. Gives what came of it at once.
    ///
    /// # Errors
    /// Why the loop can't go on.
    fn perform(&mut self, now: Timestamp, commands: Vec<Command>) -> Result<Vec<Input>, Self::Trouble>;
}

/// Takes turns until the surroundings end it.
///
/// # Errors
/// Why it can't go on.
pub fn drive<S: Surroundings>(surroundings: &mut S) -> Result<(), S::Trouble> {
    loop {
        let due = due(surroundings.core(), surroundings.now());
        let Some(happened) = surroundings.wait(due)? else { return Ok(()) };
        live_through(surroundings, happened)?;
    }
}

/// Takes turns for what happened until nothing more comes of it at once.
///
/// # Errors
/// Why it can't go on.
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

/// When the scheduler has something to do though nothing happens; not after `now` where it has some left.
fn due(core: &Core, now: Timestamp) -> Option<Timestamp> {
    if core.is_due(now) { Some(now) } else { core.next_wake() }
}
