//! Requests to a scheduler: all that its pages, its API and its command line ask of it.
//!
//! They are asked by a [`Handle`](crate::Handle) in the name of an actor, by [`RunningProject::ask`](crate::embed::RunningProject::ask) in that
//! of the program, and by [`Rehearsal::ask`](crate::embed::Rehearsal::ask) in a test.
//!
//! ```
//! use kelos::embed::{Calendar, Context, Period, Project, Rehearsal, Zone, job};
//! use kelos::requests::{BackfillRequest, Range};
//!
//! async fn visits(_: Context, day: Period, _: ()) -> Result<i64, String> {
//!     Ok(day.hours())
//! }
//!
//! let days = Calendar::daily(Zone::parse("Europe/Paris")?);
//! let project = Project::new("shop", "1.0").add(job("visits", visits).with(()).every(&days));
//! let mut rehearsal = Rehearsal::at("2026-06-01T00:00Z", project)?;
//! let march = Range::new("2026-03-01T00:00+01:00".parse()?, "2026-04-01T00:00+02:00".parse()?);
//! let outcome = rehearsal.ask(BackfillRequest {
//!     priority: -1,
//!     reason: Some("a new definition of visits".to_owned()),
//!     ..BackfillRequest::of("march".parse()?, "visits".parse()?, march)
//! })?;
//! assert_eq!(outcome.created.count, 31);
//! rehearsal.run_until("2026-06-01T01:00Z")?;
//! assert_eq!(rehearsal.output::<i64>("visits", "2026-03-29T00:00+01:00")?, 23);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub use kelos_core::{
    BackfillOutcome, BackfillRequest, CancelBackfill, DownstreamOutcome, DownstreamRequest, FireRequest, Inspect,
    InspectCapacity, Kill, MarkSuccess, Pause, PauseBackfill, PrioritiseBackfill, RepeatStep, Request, Rerun,
    RerunBackfill, Resume, ResumeBackfill, Skip, SlotList, StartAnswer, Tell,
};
pub use kelos_model::backfill::BackfillMode;
pub use kelos_model::ranges::Range;
pub use kelos_model::{BackfillId, RunName};
