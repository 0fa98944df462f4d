//! The legs of a node, while it leads.

use std::sync::Arc;

use futures_util::future::join_all;
use kelos_engine::Handle;
use kelos_executors::http::Http;
use kelos_tls::Trust;
use tokio::runtime::Handle as Runtime;

use crate::leg::{Leg, Subject};
use crate::settings::TelemetrySettings;

/// The parts that telemetry is made of.
pub struct TelemetryParts<'a> {
    /// The collectors.
    pub settings: TelemetrySettings,
    /// The trust in collectors.
    pub trust: &'a Trust,
    /// The engine whose log is read.
    pub handle: Handle,
}

/// The status of a leg.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LegStatus {
    /// Its subject: `traces` or `lineage`.
    pub subject: &'static str,
    /// The reason for which nothing goes out, as a message that completes "failed to …".
    pub problem: Option<String>,
}

/// Sends traces and lineage. Cheap to clone.
#[derive(Clone)]
pub struct Telemetry {
    legs: Arc<Vec<Leg>>,
}

impl Telemetry {
    /// Sends what the settings name until the engine ends, and while it leads.
    #[must_use]
    pub fn start(parts: TelemetryParts<'_>, runtime: &Runtime) -> Telemetry {
        let TelemetryParts { settings, trust, handle } = parts;
        let collectors = [(Subject::Traces, settings.traces), (Subject::Lineage, settings.lineage)];
        let legs = collectors
            .into_iter()
            .filter_map(|(subject, collector)| Some(Leg::new(subject, collector?, Http::new(trust), handle.clone())));
        let telemetry = Telemetry { legs: Arc::new(legs.collect()) };
        if !telemetry.legs.is_empty() {
            runtime.spawn(telemetry.clone().run(handle));
        }
        telemetry
    }

    /// The statuses of the legs.
    #[must_use]
    pub fn legs(&self) -> Vec<LegStatus> {
        self.legs.iter().map(|leg| LegStatus { subject: leg.subject.name(), problem: leg.problem() }).collect()
    }

    async fn run(self, handle: Handle) {
        let send = async || drop(join_all(self.legs.iter().map(Leg::run)).await);
        while handle.while_leading(send()).await {}
    }
}
