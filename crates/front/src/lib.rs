//! The front of all HTTP doors: the application that routes work on, the actor behind a request, its faults, and the guard.
//!
//! The native API, the pages and the dialects depend on it and never on each other. What is *absent*: routes, and state that is
//! needed after a restart. In memory are the [directory](access) and the projects of workflows as they were last read, failed sign-ins, when
//! tokens were last used, the [quotas and open streams](limiter) of clients, and the locks of deployments and of changes of schedules. All
//! else is read from the store or requested from the engine.

pub mod access;
pub mod address;
mod alerts;
mod app;
mod authority;
pub mod backfill;
mod blocking;
pub mod certificate;
mod evidence;
pub mod fault;
pub mod groups;
pub mod guard;
pub mod identity;
pub mod key;
pub mod known;
pub mod limiter;
pub mod limits;
mod links;
mod machines;
mod metric_settings;
pub mod proxies;
pub mod query;
pub mod scope;
mod storage;
pub mod stream;
pub mod zone;

pub use access::{Access, AccessSettings};
pub use address::ClientAddress;
pub use app::{App, Front};
pub use certificate::ClientCertificate;
pub use evidence::EVIDENCE;
pub use groups::Groups;
pub use guard::{Hosts, INSTANCE};
pub use limiter::Limiter;
pub use limits::LimitSettings;
pub use links::Links;
pub use metric_settings::MetricSettings;
pub use proxies::TrustedProxies;
