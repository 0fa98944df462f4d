//! Time: cron expressions, zones, schedules, and the text forms of instants.
//!
//! Everything is a pure function of its arguments; nothing here asks what time it is.

mod calendar;
pub mod cron;
mod cron_schedule;
mod dates;
mod duration;
mod firing;
mod legacy;
mod resolve;
pub mod schedule;
pub mod text;
mod times;
mod transitions;
mod typed;
mod window;
pub mod zone;

pub use calendar::{Calendar, CalendarError, CalendarUnit, HOURS, Period, WEEKEND};
pub use cron::{Cron, CronDialect, CronError, CronField};
pub use cron_schedule::{CronSchedule, Fold, Gap};
pub use dates::{Dates, DatesError};
pub use duration::{DurationError, format_duration, format_millis, parse_duration, parse_millis};
pub use firing::{Firing, FiringError};
pub use resolve::{ScheduleProblem, resolve};
pub use schedule::Schedule;
pub use text::{TimeTextError, format_full, format_short, moment_of_millis, parse_instant};
pub use times::Times;
pub use typed::{TYPED_FORMS, TypedTime, TypedTimeError, has_offset, parse_typed, parse_written};
pub(crate) use window::DayTime;
pub use window::{Window, WindowError};
pub use zone::{Zone, ZoneError};
