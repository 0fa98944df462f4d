//! Messages out: sent at least once, confirmed by all replicas.

use kelos_model::RunId;
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{FutureRecord, Producer};
use rdkafka::util::Timeout;
use serde::Serialize;

use super::connection::{ANSWER_WITHIN, Kafka, KafkaError};
use crate::topic::is_topic;

/// The header with the name of the run that sends a message: the same if its start is repeated.
const RUN: &str = "kelos-run";

/// The header with the name of the slot that sends a message: the same in each of its runs.
const SLOT: &str = "kelos-slot";

/// A message that is to be sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OutgoingMessage {
    /// The topic.
    pub topic: String,
    /// The partition; by default that of the key, or any.
    pub partition: Option<i32>,
    /// The key.
    pub key: Option<Vec<u8>>,
    /// The value; none deletes the key from a compacted topic.
    pub value: Option<Vec<u8>>,
    /// The headers, in their order.
    pub headers: Vec<(String, Vec<u8>)>,
}

/// The place of a message that the cluster has confirmed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// The topic.
    pub topic: String,
    /// The partition.
    pub partition: i32,
    /// The offset.
    pub offset: i64,
}

impl Delivery {
    /// The name of the message: `orders/0/17`.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}/{}/{}", self.topic, self.partition, self.offset)
    }
}

impl OutgoingMessage {
    /// A message whose value is JSON.
    ///
    /// # Errors
    /// When the value can't be JSON.
    pub fn json(topic: &str, key: &str, value: &impl Serialize) -> Result<OutgoingMessage, KafkaError> {
        let unfit = |error: serde_json::Error| KafkaError::Value { topic: topic.to_owned(), reason: error.to_string() };
        let value = Some(serde_json::to_vec(value).map_err(unfit)?);
        Ok(OutgoingMessage { topic: topic.to_owned(), key: Some(key.as_bytes().to_vec()), value, ..Self::default() })
    }

    /// The same with one more header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> OutgoingMessage {
        self.headers.push((name.to_owned(), value.as_bytes().to_vec()));
        self
    }

    /// The same with the names of a run and its slot in the headers `kelos-run` and `kelos-slot`, by which receivers recognise a message that was sent
    /// twice.
    #[must_use]
    pub fn of_run(self, run: &RunId) -> OutgoingMessage {
        self.header(RUN, &run.to_string()).header(SLOT, &run.slot.to_string())
    }
}

impl Kafka {
    /// Sends a message whose value is JSON, and waits until the cluster has confirmed it.
    ///
    /// # Errors
    /// When the value can't be JSON, or the message is not confirmed: it may have arrived all the same.
    pub async fn send(&self, topic: &str, key: &str, value: &impl Serialize) -> Result<Delivery, KafkaError> {
        self.deliver(OutgoingMessage::json(topic, key, value)?).await
    }

    /// Sends a message, and waits until the cluster has confirmed it.
    ///
    /// # Errors
    /// When the message is not confirmed: it may have arrived all the same.
    pub async fn deliver(&self, message: OutgoingMessage) -> Result<Delivery, KafkaError> {
        let OutgoingMessage { topic, partition, key, value, headers } = message;
        let action = || format!("send a message to the topic {topic}");
        if !is_topic(&topic) {
            let reason = format!("\"{}\" is no name of a topic", topic.escape_debug());
            return Err(KafkaError::Refused { cluster: self.name().to_owned(), action: action(), reason });
        }
        let mut all = OwnedHeaders::new_with_capacity(headers.len());
        for (name, value) in &headers {
            all = all.insert(Header { key: name, value: Some(value) });
        }
        let record = FutureRecord {
            topic: &topic,
            partition,
            payload: value.as_deref(),
            key: key.as_deref(),
            timestamp: None,
            headers: Some(all),
        };
        match self.producer().send::<[u8], [u8], _>(record, Timeout::After(ANSWER_WITHIN)).await {
            Ok(delivery) => {
                self.trouble().clear();
                Ok(Delivery { partition: delivery.partition, offset: delivery.offset, topic })
            }
            Err((error, _)) => Err(self.failed(action(), &error, self.trouble())),
        }
    }

    /// Whether a broker answers: asked only after an error, so that a run does not wait for a cluster that is known to be away.
    pub(super) async fn answers(&self) -> Result<(), KafkaError> {
        if self.trouble().last().is_none() {
            return Ok(());
        }
        let this = self.clone();
        let asked = tokio::task::spawn_blocking(move || {
            let found = this.producer().client().fetch_metadata(None, ANSWER_WITHIN);
            found
                .map(|_| this.trouble().clear())
                .map_err(|error| this.failed("ask for topics".to_owned(), &error, this.trouble()))
        });
        asked.await.unwrap_or_else(|error| Err(self.away(error.to_string())))
    }
}
