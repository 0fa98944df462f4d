//! Alerts: rules over the log, and the channels by which people hear of what they say.
//!
//! Two parts. The pure one has neither clock nor IO: [`signal`] reads what an event means, [`Book`] groups signals by their cause into
//! incidents and says which notices are due by a moment, so that the same log and the same rules always give the same notices, with the
//! same keys. The other one, [`Alerts`], follows the log while its engine leads, keeps the book in a register where the next leader finds
//! it, and sends.
//!
//! A notice is stored before it is sent and forgotten after it was accepted: a crash in between sends it again under the same key, and
//! nothing is lost. Nothing is written while there is nothing to tell. What is *absent*: deadlines, which are a matter of the
//! scheduler and its log.

mod alerts;
mod book;
mod channel;
mod condition;
mod details;
mod incident;
mod notice;
mod phase;
mod rule;
mod settings;
mod signal;
mod status;
mod stored_directory;
mod stored_look;
mod template;

pub use alerts::{AlertParts, Alerts, Lookout, TestError};
pub use book::{Book, Observation, Trouble};
pub use channel::{Channel, Clients, Outlet, SendError};
pub use condition::Condition;
pub use details::Details;
pub use incident::{Concern, Incident, RuleReport};
pub use notice::Notice;
pub use phase::Phase;
pub use rule::{About, Rule};
pub use settings::Settings;
pub use signal::{Change, Directory, Signal, signals};
pub use status::{AlertsStatus, ChannelStatus};
