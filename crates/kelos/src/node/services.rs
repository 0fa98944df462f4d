//! The executors that reach services outside of this machine.

#[cfg(feature = "http")]
use std::sync::Arc;

use kelos_engine::executor::Executors;
#[cfg(feature = "http")]
use kelos_engine::job::Functions;
#[cfg(feature = "kafka")]
use kelos_engine::secrets::Secrets;
#[cfg(feature = "kafka")]
use kelos_engine::sources::FactSource;
#[cfg(feature = "http")]
use kelos_executors::http::Http;
#[cfg(feature = "http")]
use kelos_executors::{HttpExecutor, NodeRecords, OozieExecutor};
#[cfg(feature = "kafka")]
use kelos_kafka::{EXECUTOR as KAFKA, Kafka, KafkaExecutor};
#[cfg(feature = "http")]
use kelos_store::Queries;
use tokio::runtime::Handle as Runtime;

#[cfg(feature = "http")]
use super::NodeConfig;

/// Adds the executors of services with an HTTP API; with their client and their records.
#[cfg(feature = "http")]
pub(super) fn services(
    executors: Executors,
    config: &NodeConfig,
    reader: &Arc<dyn Queries>,
    functions: &Arc<dyn Functions>,
    runtime: &Runtime,
) -> (Http, Arc<NodeRecords>, Executors) {
    let http = Http::new(&config.trust);
    let records = Arc::new(NodeRecords::new(reader.clone(), functions.clone()));
    let services = HttpExecutor::new(http.clone(), records.clone(), config.clock.clone(), runtime.clone());
    let oozie = OozieExecutor::new(http.clone(), config.secrets.clone(), records.clone(), runtime.clone());
    let ours = Executors::default().with("oozie", oozie);
    let ours = ours.with("http", services.with_secrets(config.secrets.clone()));
    (http, records, executors.and(ours))
}

/// The executors with that of Kafka, if there is a cluster; its topics become sources.
#[cfg(feature = "kafka")]
pub(super) fn with_kafka(
    executors: Executors,
    clusters: Vec<Kafka>,
    sources: &mut Vec<Box<dyn FactSource>>,
    secrets: &Secrets,
    runtime: &Runtime,
) -> Executors {
    if clusters.is_empty() {
        return executors;
    }
    sources.extend(clusters.iter().flat_map(Kafka::sources));
    executors.with(KAFKA, KafkaExecutor::new(clusters, runtime.clone()).with_secrets(secrets.clone()))
}
