//! Mistakes that definitions show before anything runs: pure functions, which find a mistake and leave its place and its
//! words to the rooms that report it.

mod deadlock;
mod parameters;
mod placeholder;
mod shut;
mod utc;
mod weekday;

pub use deadlock::{Deadlock, deadlocks};
pub use parameters::parameter_mistakes;
pub use placeholder::{PlaceholderUse, UnknownPlaceholder, unknown_placeholders};
pub use shut::{ShutWindow, never_fires, shut_windows};
pub use utc::{UtcPlaceholder, utc_placeholder};
pub use weekday::{WeekdayReadings, ambiguous_weekdays, ignored_steps, steps_without_effect, weekday_names};
