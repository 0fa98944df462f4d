//! Kafka: messages of a topic become facts and signals, and runs send messages.
//!
//! - *Nothing is lost, nothing counts twice.* Topics are read without a consumer group: how far each partition has been read is stored in the same
//!   turn as the facts that were read, and the idempotency key of a fact is `TOPIC/PARTITION/OFFSET`.
//! - *A message that makes no sense blocks nothing.* It is counted, told, and passed over or sent to a topic for such messages.
//! - *Messages are sent at least once*, with `acks=all` by an idempotent producer, and headers that name their run.
//!
//! Without the feature `client` there is no client: the configuration is read and checked, and no broker is asked.

#[cfg(feature = "client")]
mod client;
mod cluster;
mod message;
mod position;
mod template;
mod topic;

#[cfg(feature = "client")]
pub use client::{Delivery, Kafka, KafkaError, KafkaExecutor, OutgoingMessage};
pub use cluster::{Cluster, Setting};
pub use message::IncomingMessage;
pub use position::{PartitionPosition, TopicPosition};
pub use topic::{Mapping, Start, Topic};

/// The name of the executor of jobs that send a message.
pub const EXECUTOR: &str = "kafka";
