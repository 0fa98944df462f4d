//! A topic as a source of facts.
//!
//! Its partitions are assigned by hand, from the stored position on; no consumer group decides who reads what, and no offset is committed to the cluster.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::{BoxFuture, FutureExt};
use jiff::Timestamp;
use kelos_engine::sources::{FactSource, Findings};
use kelos_model::Fact;
use rdkafka::consumer::{Consumer, StreamConsumer};
use rdkafka::error::{KafkaError as ClientError, RDKafkaErrorCode};
use rdkafka::message::{BorrowedMessage, Headers, Message};
use rdkafka::{Offset, TopicPartitionList};
use serde_json::Value;

use super::connection::{ANSWER_WITHIN, Context, Kafka, KafkaError, LastError, is_away, words};
use super::producer::OutgoingMessage;
use crate::message::IncomingMessage;
use crate::position::{PartitionPosition, TopicPosition};
use crate::topic::{Mapping, Start, Topic};

/// The wait after a poll without messages, in which they are fetched in the background.
const EVERY: Duration = Duration::from_millis(50);

/// The longest wait between two polls that fail.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// The time that a poll waits for the first message.
const FIRST_WITHIN: Duration = Duration::from_millis(500);

/// The time that a poll waits for each further message: those that have been fetched are there at once.
const NEXT_WITHIN: Duration = Duration::from_millis(5);

/// The time that the client has to give the reason of an error.
const REASON_WITHIN: Duration = Duration::from_millis(200);

/// The most messages of a poll: they are one batch of a commit.
const MOST: usize = 1000;

/// The most bytes of a poll; the last message may go beyond it.
const MOST_BYTES: usize = 8 << 20;

/// The interval at which new partitions are looked for.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// The most messages that are described among those that a poll passed over.
const DESCRIBED: usize = 5;

/// The header that says why a message was rejected.
const REASON: &str = "kelos-reason";

/// The header with the name of a message that was rejected.
const REJECTED: &str = "kelos-message";

impl Kafka {
    /// A source of facts for each topic that is read.
    #[must_use]
    pub fn sources(&self) -> Vec<Box<dyn FactSource>> {
        let source = |topic| Box::new(TopicSource::new(self.clone(), topic)) as Box<dyn FactSource>;
        self.cluster().topics.iter().cloned().map(source).collect()
    }
}

/// A topic that is read.
struct TopicSource {
    kafka: Kafka,
    topic: Topic,
    mapping: Result<Mapping, String>,
    name: Arc<str>,
    reading: Option<TopicReader>,
}

/// A topic whose partitions are assigned.
struct TopicReader {
    consumer: Arc<StreamConsumer<Context>>,
    trouble: LastError,
    /// The position up to which it has been read.
    position: TopicPosition,
    looked_at: Instant,
    /// A partition is read no further by this consumer.
    is_broken: bool,
}

/// The messages that a poll has read.
#[derive(Default)]
struct Batch {
    facts: Vec<Fact>,
    rejected: Vec<(IncomingMessage, String, String)>,
    messages: usize,
    bytes: usize,
}

/// The partitions of a topic, and what people should know of them.
struct Partitions {
    position: TopicPosition,
    notices: Vec<String>,
}

impl TopicSource {
    fn new(kafka: Kafka, topic: Topic) -> TopicSource {
        let name = format!("kafka:{}/{}", kafka.name(), topic.topic).into();
        TopicSource { mapping: topic.mapping(), kafka, topic, name, reading: None }
    }

    async fn look(&mut self, stored: Option<Value>) -> Result<Findings, String> {
        let stored = stored.map(|stored| {
            let wrong = |why| format!("read the position of {}, a register: {why}", self.name);
            TopicPosition::read(stored).map_err(wrong)
        });
        let stored = stored.transpose()?;
        let mut findings = Findings::default();
        let is_current = |reading: &TopicReader| {
            !reading.is_broken
                && reading.trouble.last().is_none()
                && reading.looked_at.elapsed() < LOOK_EVERY
                && stored.as_ref() == Some(&reading.position)
        };
        if !self.reading.as_ref().is_some_and(is_current) {
            let Partitions { position, notices } = self.assign(stored.clone()).await?;
            findings.notices = notices;
            // The messages that are gone, and the beginning of a topic, are stored before anything is read from there.
            if stored.as_ref() != Some(&position) {
                findings.position = Some(position.stored());
                return Ok(findings);
            }
        }
        let batch = self.read().await?;
        let Some(reading) = &self.reading else { return Ok(findings) };
        if batch.messages > 0 {
            findings.position = Some(reading.position.stored());
        }
        findings.passed_over = u64::try_from(batch.rejected.len()).unwrap_or(u64::MAX);
        let rejected = self.reject(batch.rejected).await;
        if rejected.is_err() {
            // They are read again.
            self.reading = None;
        }
        findings.notices = rejected.map_err(|error| error.to_string())?;
        findings.facts = batch.facts;
        Ok(findings)
    }

    /// Assigns the partitions of the topic, each from the stored position on as far as its messages are still there.
    async fn assign(&mut self, stored: Option<TopicPosition>) -> Result<Partitions, String> {
        let former = self.reading.take().filter(|reading| !reading.is_broken);
        let (consumer, trouble) = match &former {
            Some(reading) => (reading.consumer.clone(), reading.trouble.clone()),
            None => self.connect().map_err(|error| error.to_string())?,
        };
        let (kafka, topic) = (self.kafka.clone(), self.topic.clone());
        let (asked, heard) = (consumer.clone(), trouble.clone());
        let found = tokio::task::spawn_blocking(move || partitions(&kafka, &topic, &asked, &heard, stored));
        let found = match found.await.map_err(|error| error.to_string())? {
            Ok(found) => found,
            Err(error) if former.is_some() => return Err(error.to_string()),
            Err(error) => return Err(self.told_by(&consumer, &trouble, error).await.to_string()),
        };
        trouble.clear();
        let position = found.position.clone();
        let (consumer, trouble) = match former {
            Some(reading) if reading.position == position => (consumer, trouble),
            // Messages that were fetched of another position must not be taken for those that come next.
            Some(_) => {
                let (consumer, trouble) = self.connect().map_err(|error| error.to_string())?;
                self.begin(&consumer, &position)?;
                (consumer, trouble)
            }
            None => {
                self.begin(&consumer, &position)?;
                (consumer, trouble)
            }
        };
        self.reading = Some(TopicReader { consumer, trouble, position, looked_at: Instant::now(), is_broken: false });
        Ok(found)
    }

    /// An error with the reason that the client gives: a new consumer tells it once it is polled, and has no messages that could be missed.
    async fn told_by(&self, consumer: &StreamConsumer<Context>, trouble: &LastError, error: KafkaError) -> KafkaError {
        let until = Instant::now() + REASON_WITHIN;
        while trouble.last().is_none() && Instant::now() < until {
            let _ = tokio::time::timeout(NEXT_WITHIN, consumer.recv()).await;
        }
        match (error, trouble.last()) {
            (KafkaError::Away { .. }, Some(reason)) => self.kafka.away(reason),
            (error, _) => error,
        }
    }

    /// Has a new consumer read from a position on.
    fn begin(&self, consumer: &StreamConsumer<Context>, position: &TopicPosition) -> Result<(), String> {
        let topic = &self.topic.topic;
        let failed = |error| format!("assign the partitions of {topic}: {error}");
        let mut list = TopicPartitionList::new();
        for (partition, position) in &position.0 {
            list.add_partition_offset(topic, *partition, Offset::Offset(position.next)).map_err(failed)?;
        }
        consumer.assign(&list).map_err(failed)
    }

    fn connect(&self) -> Result<(Arc<StreamConsumer<Context>>, LastError), KafkaError> {
        let (mut config, context, trouble) = self.kafka.consumer_config();
        // The client wants a group to have a name, although nothing joins it.
        config
            .set("group.id", "kelos")
            .set("enable.auto.commit", "false")
            .set("enable.auto.offset.store", "false")
            .set("auto.offset.reset", "error")
            .set("isolation.level", "read_committed")
            .set("queued.max.messages.kbytes", "16384");
        let consumer = config.create_with_context(context).map_err(|error| self.kafka.unsound(&error))?;
        Ok((Arc::new(consumer), trouble))
    }

    /// Reads what has come.
    async fn read(&mut self) -> Result<Batch, String> {
        let mapping = self.mapping.as_ref().map_err(|why| format!("read {}: {why}", self.name))?;
        let mut batch = Batch::default();
        let Some(reading) = &mut self.reading else { return Ok(batch) };
        let consumer = reading.consumer.clone();
        let mut wait = FIRST_WITHIN;
        while batch.messages < MOST && batch.bytes < MOST_BYTES {
            let error = match tokio::time::timeout(wait, consumer.recv()).await {
                Err(_) => break,
                Ok(Ok(message)) => {
                    batch.take(&message, mapping, &mut reading.position, &self.name);
                    wait = NEXT_WITHIN;
                    continue;
                }
                Ok(Err(error)) => error,
            };
            let code = error.rdkafka_error_code();
            if let Some(code) = code.filter(|code| is_away(*code)) {
                // The client connects again by itself; the next poll tells whether somebody answers. The reason that its log gives may come a
                // moment later, and replaces these words.
                if reading.trouble.last().is_none() {
                    reading.trouble.note(words(code));
                }
                break;
            }
            reading.is_broken = true;
            if batch.messages > 0 || code == Some(RDKafkaErrorCode::AutoOffsetReset) {
                // Messages that are gone are told once the partitions have been looked at.
                break;
            }
            let action = format!("read the topic {}", self.topic.topic);
            return Err(self.kafka.failed(action, &error, &reading.trouble).to_string());
        }
        Ok(batch)
    }

    /// Sends messages that make no sense to the topic for such messages, if there is one; returns what people should know.
    async fn reject(&self, rejected: Vec<(IncomingMessage, String, String)>) -> Result<Vec<String>, KafkaError> {
        let all = rejected.len();
        let mut notices = Vec::new();
        for (message, name, why) in rejected {
            let became = match &self.topic.rejected_to {
                None => "was passed over".to_owned(),
                Some(to) => self.send_rejected(to, message, &name, &why).await?,
            };
            if notices.len() < DESCRIBED {
                notices.push(format!("message {name} {became}: {why}"));
            }
        }
        if all > DESCRIBED {
            notices.push(format!("{} more messages of {} were rejected", all - DESCRIBED, self.topic.topic));
        }
        Ok(notices)
    }

    async fn send_rejected(
        &self,
        to: &str,
        message: IncomingMessage,
        name: &str,
        why: &str,
    ) -> Result<String, KafkaError> {
        let IncomingMessage { key, value, headers, .. } = message;
        let message = OutgoingMessage { topic: to.to_owned(), partition: None, key, value, headers };
        match self.kafka.deliver(message.header(REASON, why).header(REJECTED, name)).await {
            Ok(_) => Ok(format!("was sent to {to}")),
            Err(away @ KafkaError::Away { .. }) => Err(away),
            // A topic that takes no messages must not stop the one that is read.
            Err(error) => Ok(format!("was passed over, since Kelos failed to {error}")),
        }
    }
}

/// The partitions of a topic, and how far each has been read. Blocks.
fn partitions(
    kafka: &Kafka,
    topic: &Topic,
    consumer: &StreamConsumer<Context>,
    trouble: &LastError,
    stored: Option<TopicPosition>,
) -> Result<Partitions, KafkaError> {
    let action = || format!("find the topic {}", topic.topic);
    let failed = |error: ClientError| kafka.failed(action(), &error, trouble);
    let refused = |reason| KafkaError::Refused { cluster: kafka.name().to_owned(), action: action(), reason };
    let metadata = consumer.fetch_metadata(Some(&topic.topic), ANSWER_WITHIN).map_err(failed)?;
    let found = metadata.topics().first().ok_or_else(|| refused("there is none of this name".to_owned()))?;
    if let Some(error) = found.error().map(RDKafkaErrorCode::from) {
        return Err(match error {
            RDKafkaErrorCode::UnknownTopicOrPartition => refused("there is none of this name".to_owned()),
            code if is_away(code) => kafka.away(words(code)),
            code => refused(words(code)),
        });
    }
    let (is_first, stored) = (stored.is_none(), stored.unwrap_or_default().0);
    let (mut all, mut notices) = (BTreeMap::new(), Vec::new());
    for partition in found.partitions().iter().map(|partition| partition.id()) {
        let (low, high) = consumer.fetch_watermarks(&topic.topic, partition, ANSWER_WITHIN).map_err(failed)?;
        let position = match stored.get(&partition) {
            Some(position) => {
                let (position, said) = position.within(low, high);
                notices.extend(said.map(|said| format!("partition {partition} of {}: {said}", topic.topic)));
                position
            }
            // A partition that was added has not been read, wherever the topic began.
            None if is_first && topic.from == Start::Latest => PartitionPosition { next: high, recreated: 0 },
            None => PartitionPosition { next: low, recreated: 0 },
        };
        all.insert(partition, position);
    }
    // The position of a partition that is not there now is kept: its topic may be created again.
    for (partition, position) in stored {
        all.entry(partition).or_insert(position);
    }
    Ok(Partitions { position: TopicPosition(all), notices })
}

impl Batch {
    /// Takes a message in.
    fn take(
        &mut self,
        message: &BorrowedMessage<'_>,
        mapping: &Mapping,
        position: &mut TopicPosition,
        source: &Arc<str>,
    ) {
        let message = incoming(message);
        let at = position.0.entry(message.partition).or_insert(PartitionPosition { next: 0, recreated: 0 });
        let name = at.message(&message.topic, message.partition, message.offset);
        at.next = message.offset + 1;
        self.messages += 1;
        self.bytes += message.key.as_ref().map_or(0, Vec::len) + message.value.as_ref().map_or(0, Vec::len);
        match mapping.read(&message) {
            Ok(Some(what)) => self.facts.push(Fact { source: source.clone(), key: Some(name.into()), what }),
            Ok(None) => {}
            Err(why) => self.rejected.push((message, name, why)),
        }
    }
}

fn incoming(message: &BorrowedMessage<'_>) -> IncomingMessage {
    let headers = message.headers().into_iter().flat_map(Headers::iter);
    let headers = headers.map(|header| (header.key.to_owned(), header.value.unwrap_or_default().to_vec())).collect();
    IncomingMessage {
        topic: message.topic().to_owned(),
        partition: message.partition(),
        offset: message.offset(),
        key: message.key().map(<[u8]>::to_vec),
        value: message.payload().map(<[u8]>::to_vec),
        headers,
        time: message.timestamp().to_millis().and_then(|millis| Timestamp::from_millisecond(millis).ok()),
    }
}

impl FactSource for TopicSource {
    fn name(&self) -> Arc<str> {
        self.name.clone()
    }

    fn every(&self) -> Duration {
        EVERY
    }

    fn longest_wait(&self) -> Duration {
        LONGEST_WAIT
    }

    fn poll(&mut self, position: Option<Value>) -> BoxFuture<'_, Result<Findings, String>> {
        self.look(position).boxed()
    }

    fn acknowledge(&mut self) -> BoxFuture<'_, Result<(), String>> {
        // The stored position is all that counts.
        async { Ok(()) }.boxed()
    }
}
