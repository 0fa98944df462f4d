//! The executor of jobs that send a message.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kelos_engine::executor::{Executor, Reports, Start};
use kelos_engine::secrets::{Mask, SecretError, Secrets};
use kelos_model::run::Report;
use kelos_model::{Outcome, RunId};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

use super::connection::{Kafka, KafkaError};
use super::producer::OutgoingMessage;

/// The output with the name of the message that was sent.
const MESSAGE: &str = "message";

/// Sends messages. A run succeeds once the cluster has confirmed its message.
///
/// A start whose confirmation was lost is repeated, so that a message may be there twice; both have the name of the run in a header.
#[derive(Clone)]
pub struct KafkaExecutor {
    clusters: Arc<BTreeMap<String, Kafka>>,
    runtime: Handle,
    secrets: Secrets,
    /// The messages that are being sent.
    live: Arc<Mutex<BTreeMap<RunId, AbortHandle>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Settings {
    cluster: Option<String>,
    topic: String,
    partition: Option<i32>,
    key: Option<String>,
    value: Option<Value>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
}

impl KafkaExecutor {
    /// Sends to these clusters, which are known by their names.
    #[must_use]
    pub fn new(clusters: impl IntoIterator<Item = Kafka>, runtime: Handle) -> KafkaExecutor {
        let clusters = clusters.into_iter().map(|kafka| (kafka.name().to_owned(), kafka)).collect();
        KafkaExecutor { clusters: Arc::new(clusters), runtime, secrets: Secrets::default(), live: Arc::default() }
    }

    /// The same, with the secrets that its operator allows.
    #[must_use]
    pub fn with_secrets(self, secrets: Secrets) -> KafkaExecutor {
        KafkaExecutor { secrets, ..self }
    }

    /// The cluster of a job, and its message with the secrets in it.
    async fn read(&self, start: &Start) -> Result<(Kafka, OutgoingMessage, Mask), Outcome> {
        let filled = self.secrets.fill(&start.workflow.project, &start.whole_settings()).await;
        let filled = filled.map_err(SecretError::outcome)?;
        let mask = filled.mask();
        let (kafka, message) = self.message(start, filled.settings).map_err(|why| Outcome::refused(mask.text(&why)))?;
        Ok((kafka, message, mask))
    }

    fn message(&self, start: &Start, settings: Map<String, Value>) -> Result<(Kafka, OutgoingMessage), String> {
        let has_value = settings.contains_key("value");
        let read = serde_json::from_value(Value::Object(settings));
        let Settings { cluster, topic, partition, key, value, headers } = read.map_err(|error| {
            format!("the settings of the message make no sense: {error}, expected such as {{topic: \"orders\", key: \"${{run}}\", value: {{...}}}}")
        })?;
        let value = match value {
            Some(Value::String(text)) => Some(text.into_bytes()),
            Some(other) => Some(other.to_string().into_bytes()),
            None if has_value => None,
            // The inputs of the run, where nothing else is said.
            None => Some(json!(start.given.arguments).to_string().into_bytes()),
        };
        let mut message =
            OutgoingMessage { topic, partition, key: key.map(String::into_bytes), value, headers: Vec::new() };
        for (name, value) in headers {
            message = message.header(&name, &value);
        }
        Ok((self.cluster(cluster.as_deref())?, message.of_run(&start.run)))
    }

    fn cluster(&self, name: Option<&str>) -> Result<Kafka, String> {
        let known = || self.clusters.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        match name {
            Some(name) => self
                .clusters
                .get(name)
                .cloned()
                .ok_or_else(|| format!("no Kafka cluster is named \"{name}\", expected one of {}", known())),
            None if self.clusters.len() == 1 => {
                self.clusters.values().next().cloned().ok_or_else(|| "there is no Kafka cluster".to_owned())
            }
            None => Err(format!("there are several Kafka clusters: expected `cluster`, one of {}", known())),
        }
    }

    fn live(&self) -> MutexGuard<'_, BTreeMap<RunId, AbortHandle>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn send(self, start: Start, reports: Reports) {
        let run = start.run.clone();
        let (kafka, message, mask) = match self.read(&start).await {
            Ok(read) => read,
            Err(outcome) => {
                // Whoever takes it out of the live ones reports its end.
                if self.live().remove(&run).is_some() {
                    reports.run(&run, Report::Ended { outcome });
                }
                return;
            }
        };
        let answers = kafka.answers().await;
        let sent = match answers {
            Ok(()) => Ok(kafka.deliver(message).await),
            Err(away) => Err(away),
        };
        if self.live().remove(&run).is_none() {
            return;
        }
        match sent {
            Ok(Ok(delivered)) => {
                let name = delivered.name();
                reports.run(&run, Report::Started { external_id: name.clone() });
                reports.run(&run, Report::Gave { outputs: Map::from_iter([(MESSAGE.to_owned(), name.into())]) });
                reports.run(&run, Report::Ended { outcome: Outcome::Succeeded });
            }
            Ok(Err(error)) => reports.run(&run, Report::Ended { outcome: failed(&error, &mask) }),
            Err(away) => reports.run(&run, Report::Deferred { reason: format!("failed to {away}") }),
        }
    }
}

fn failed(error: &KafkaError, mask: &Mask) -> Outcome {
    let reason = match error {
        KafkaError::Away { .. } => format!("failed to {error}; the message was not confirmed, and may have arrived"),
        _ => format!("failed to {error}"),
    };
    Outcome::Failed { reason: mask.text(&reason), exit_status: None, code: None }
}

impl Executor for KafkaExecutor {
    fn start(&self, start: Start, reports: Reports) {
        let run = start.run.clone();
        let mut live = self.live();
        if live.contains_key(&run) {
            return;
        }
        let sending = self.runtime.spawn(self.clone().send(start, reports));
        live.insert(run, sending.abort_handle());
    }

    fn check(&self, run: &RunId, _: Option<&str>, reports: Reports) {
        // A start is confirmed together with its end, so that one whose end is not known has to be repeated.
        if !self.live().contains_key(run) {
            reports.run(run, Report::NeverStarted);
        }
    }

    fn cancel(&self, run: &RunId, _: Option<&str>, reports: Reports) {
        if let Some(sending) = self.live().remove(run) {
            sending.abort();
        }
        reports.run(run, Report::Ended { outcome: Outcome::Killed });
    }

    fn note(&self, run: &RunId) -> Option<String> {
        self.live().contains_key(run).then(|| "the message is sent, and not confirmed yet".to_owned())
    }
}
