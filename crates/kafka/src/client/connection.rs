//! A cluster that can be asked: its settings resolved, its producer connected once it is needed.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rdkafka::client::ClientContext;
use rdkafka::config::{ClientConfig, RDKafkaLogLevel};
use rdkafka::consumer::ConsumerContext;
use rdkafka::error::{KafkaError as ClientError, RDKafkaErrorCode};
use rdkafka::producer::FutureProducer;

use crate::cluster::Cluster;

/// The time limit of a question to a broker.
pub(super) const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// The longest time in which a message that was sent has to be confirmed, unless a setting says otherwise.
const CONFIRMED_WITHIN: &str = "60000";

/// An error of Kafka. Messages complete "failed to …".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KafkaError {
    /// The cluster is described wrongly, or a secret can't be read.
    #[error("{0}")]
    Settings(String),
    /// No broker answers.
    #[error("reach Kafka \"{cluster}\" at {brokers}: {reason}")]
    Away {
        /// The name of the cluster.
        cluster: String,
        /// The addresses of its brokers.
        brokers: String,
        /// The reason.
        reason: String,
    },
    /// The cluster refuses.
    #[error("{action} of Kafka \"{cluster}\": {reason}")]
    Refused {
        /// The name of the cluster.
        cluster: String,
        /// The action that was refused: `send a message to orders`.
        action: String,
        /// The reason.
        reason: String,
    },
    /// The value of a message can't be JSON.
    #[error("write the value of a message to {topic} as JSON: {reason}")]
    Value {
        /// The topic.
        topic: String,
        /// The reason.
        reason: String,
    },
}

/// A cluster of brokers that can be asked. Cheap to clone; clones share one producer.
#[derive(Clone)]
pub struct Kafka(Arc<KafkaState>);

struct KafkaState {
    cluster: Cluster,
    settings: BTreeMap<String, String>,
    producer: FutureProducer<Context>,
    trouble: LastError,
}

impl fmt::Debug for Kafka {
    /// The settings have secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Kafka").field(&self.0.cluster.name).finish()
    }
}

/// The last error of a client, until somebody takes it.
#[derive(Clone, Default)]
pub(super) struct LastError(Arc<Mutex<Option<String>>>);

impl LastError {
    pub(super) fn note(&self, words: String) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(words);
    }

    pub(super) fn last(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

/// Keeps the errors of a client, and has its log in that of Kelos.
pub(super) struct Context {
    cluster: String,
    trouble: LastError,
}

impl ClientContext for Context {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        // Errors are told as problems of the source or the run that they stop.
        tracing::debug!(target: "kelos::kafka", cluster = self.cluster, ?level, facility, "{message}");
        if matches!(facility, "FAIL" | "ERROR") && (level as i32) <= RDKafkaLogLevel::Error as i32 {
            self.trouble.note(reason_of(message));
        }
    }

    fn error(&self, error: ClientError, reason: &str) {
        tracing::debug!(target: "kelos::kafka", cluster = self.cluster, %error, "{reason}");
        if error.rdkafka_error_code() != Some(RDKafkaErrorCode::AllBrokersDown) {
            self.trouble.note(reason_of(reason));
        }
    }
}

impl ConsumerContext for Context {}

/// The last part of what the client says, which is why: of `[thrd:…]: 127.0.0.1:9092/bootstrap: Connect to ipv4#127.0.0.1:9092 failed: Connection
/// refused (after 0ms in state CONNECT)` the words `Connection refused`.
fn reason_of(message: &str) -> String {
    let message = message.split(" (after ").next().unwrap_or(message);
    let reason = message.rsplit(": ").find(|part| !part.is_empty()).unwrap_or(message);
    reason.to_owned()
}

impl Kafka {
    /// Reads the secrets of a cluster, and checks its settings. No broker is asked yet.
    ///
    /// # Errors
    /// When the cluster is described wrongly, or a secret can't be read.
    pub fn new(cluster: Cluster) -> Result<Kafka, KafkaError> {
        cluster.check().map_err(|why| KafkaError::Settings(format!("set up Kafka: {why}")))?;
        let settings = cluster.resolved(kelos_engine::secrets::read_secret).map_err(KafkaError::Settings)?;
        let trouble = LastError::default();
        let mut config = config(&cluster, &settings);
        if !settings.contains_key("message.timeout.ms") && !settings.contains_key("delivery.timeout.ms") {
            config.set("message.timeout.ms", CONFIRMED_WITHIN);
        }
        config.set("enable.idempotence", "true").set("acks", "all");
        let context = Context { cluster: cluster.name.clone(), trouble: trouble.clone() };
        let producer = config.create_with_context(context).map_err(|error| unsound(&cluster, &error))?;
        Ok(Kafka(Arc::new(KafkaState { cluster, settings, producer, trouble })))
    }

    /// The name of the cluster.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.cluster.name
    }

    pub(super) fn cluster(&self) -> &Cluster {
        &self.0.cluster
    }

    pub(super) fn producer(&self) -> &FutureProducer<Context> {
        &self.0.producer
    }

    /// The trouble of the producer.
    pub(super) fn trouble(&self) -> &LastError {
        &self.0.trouble
    }

    /// A consumer whose errors are kept, with its configuration begun.
    pub(super) fn consumer_config(&self) -> (ClientConfig, Context, LastError) {
        let trouble = LastError::default();
        let context = Context { cluster: self.0.cluster.name.clone(), trouble: trouble.clone() };
        (config(&self.0.cluster, &self.0.settings), context, trouble)
    }

    /// The error that no broker answers.
    pub(super) fn away(&self, reason: String) -> KafkaError {
        let Cluster { name, brokers, .. } = &self.0.cluster;
        KafkaError::Away { cluster: name.clone(), brokers: brokers.clone(), reason }
    }

    /// The error of something that was asked of a broker.
    pub(super) fn failed(&self, action: String, error: &ClientError, trouble: &LastError) -> KafkaError {
        match error.rdkafka_error_code() {
            Some(code) if is_away(code) => self.away(trouble.last().unwrap_or_else(|| words(code))),
            Some(code) => KafkaError::Refused { cluster: self.name().to_owned(), action, reason: words(code) },
            None => KafkaError::Refused { cluster: self.name().to_owned(), action, reason: error.to_string() },
        }
    }

    pub(super) fn unsound(&self, error: &ClientError) -> KafkaError {
        unsound(&self.0.cluster, error)
    }
}

fn config(cluster: &Cluster, settings: &BTreeMap<String, String>) -> ClientConfig {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", &cluster.brokers).set("client.id", "kelos").set_log_level(RDKafkaLogLevel::Info);
    for (name, value) in settings {
        config.set(name, value);
    }
    config
}

fn unsound(cluster: &Cluster, error: &ClientError) -> KafkaError {
    let why = match error {
        // The value may be a secret.
        ClientError::ClientConfig(_, why, name, _) => format!("the setting \"{name}\" is refused: {why}"),
        other => other.to_string(),
    };
    KafkaError::Settings(format!("set up Kafka \"{}\": {why}", cluster.name))
}

/// Whether an error says that no broker answers, so that it may go away by itself.
pub(super) fn is_away(code: RDKafkaErrorCode) -> bool {
    matches!(
        code,
        RDKafkaErrorCode::AllBrokersDown
            | RDKafkaErrorCode::BrokerTransportFailure
            | RDKafkaErrorCode::MessageTimedOut
            | RDKafkaErrorCode::OperationTimedOut
            | RDKafkaErrorCode::TimedOutQueue
            | RDKafkaErrorCode::RequestTimedOut
            | RDKafkaErrorCode::Resolve
            | RDKafkaErrorCode::Authentication
            | RDKafkaErrorCode::SSL
            | RDKafkaErrorCode::NodeUpdate
            | RDKafkaErrorCode::NetworkException
            | RDKafkaErrorCode::BrokerNotAvailable
            | RDKafkaErrorCode::LeaderNotAvailable
            | RDKafkaErrorCode::NotLeaderForPartition
            | RDKafkaErrorCode::NotEnoughReplicas
            | RDKafkaErrorCode::NotEnoughReplicasAfterAppend
    )
}

/// An error in words: librdkafka's, without the name of whoever said it.
pub(super) fn words(code: RDKafkaErrorCode) -> String {
    let told = code.to_string();
    let told = told.split_once(" (").map_or(told.as_str(), |(_, rest)| rest.strip_suffix(')').unwrap_or(rest));
    let told = told.strip_prefix("Broker: ").or_else(|| told.strip_prefix("Local: ")).unwrap_or(told);
    let mut letters = told.chars();
    letters.next().map(|first| first.to_lowercase().chain(letters).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::Setting;

    #[test]
    fn a_setting_that_there_is_not_is_told_without_its_value() {
        let cluster = Cluster::new("main", "127.0.0.1:1").setting("sasl.pasword", Setting::Value("s3cret".to_owned()));
        let told = Kafka::new(cluster).unwrap_err().to_string();
        assert_eq!(
            told,
            "set up Kafka \"main\": the setting \"sasl.pasword\" is refused: No such configuration property: \"sasl.pasword\""
        );
    }

    #[test]
    fn errors_are_words() {
        assert_eq!(words(RDKafkaErrorCode::UnknownTopicOrPartition), "unknown topic or partition");
        assert_eq!(words(RDKafkaErrorCode::AllBrokersDown), "all broker connections are down");
        let reason = "127.0.0.1:1/bootstrap: Connect to ipv4#127.0.0.1:1 failed: Connection refused (after 0ms in state CONNECT)";
        assert_eq!(reason_of(reason), "Connection refused");
    }
}
