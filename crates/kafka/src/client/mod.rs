//! The client: topics as sources of facts, the producer of messages, and the executor of jobs that send one.

mod connection;
mod executor;
mod producer;
mod source;

pub use connection::{Kafka, KafkaError};
pub use executor::KafkaExecutor;
pub use producer::{Delivery, OutgoingMessage};
