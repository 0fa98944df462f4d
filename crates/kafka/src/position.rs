//! The position up to which a topic has been read. It is stored with the facts that were read, as a register.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The position up to which a topic has been read, by partition.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TopicPosition(pub BTreeMap<i32, PartitionPosition>);

/// The position up to which a partition has been read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartitionPosition {
    /// The offset of the next message.
    pub next: i64,
    /// The number of times that the partition was found to be another one of the same name: its topic was deleted and created again.
    #[serde(default, skip_serializing_if = "is_first")]
    pub recreated: u32,
}

fn is_first(recreated: &u32) -> bool {
    *recreated == 0
}

impl TopicPosition {
    /// Reads what is stored.
    ///
    /// # Errors
    /// In words, when a person wrote something else there.
    pub fn read(stored: Value) -> Result<TopicPosition, String> {
        serde_json::from_value(stored).map_err(|error| format!("{error}, expected such as {{\"0\": {{\"next\": 17}}}}"))
    }

    /// The form in which it is stored.
    #[must_use]
    pub fn stored(&self) -> Value {
        let partition = |(number, position): (&i32, &PartitionPosition)| {
            let mut form = serde_json::Map::from_iter([("next".to_owned(), position.next.into())]);
            if position.recreated > 0 {
                form.insert("recreated".to_owned(), position.recreated.into());
            }
            (number.to_string(), Value::Object(form))
        };
        Value::Object(self.0.iter().map(partition).collect())
    }
}

impl PartitionPosition {
    /// The name of a message: `orders/0/17`, of a topic that was created again `orders/0/17/1`.
    #[must_use]
    pub fn message(&self, topic: &str, partition: i32, offset: i64) -> String {
        match self.recreated {
            0 => format!("{topic}/{partition}/{offset}"),
            recreated => format!("{topic}/{partition}/{offset}/{recreated}"),
        }
    }

    /// The position to go on from, in a partition that has the messages from `low` on and before `high`; and what people should know of it.
    #[must_use]
    pub fn within(self, low: i64, high: i64) -> (PartitionPosition, Option<String>) {
        if self.next > high {
            let why = format!(
                "its next message was {}, and it ends at {high}: the topic was created again, and is read from its beginning",
                self.next
            );
            return (PartitionPosition { next: low, recreated: self.recreated + 1 }, Some(why));
        }
        if self.next < low {
            let (gone, next) = (low - self.next, self.next);
            let messages = if gone == 1 { "1 message is" } else { "messages are" };
            let why = if gone == 1 {
                format!("{messages} gone before it was read, {next}: the topic keeps messages for too short a time")
            } else {
                format!(
                    "{gone} {messages} gone before they were read, {next} to {}: the topic keeps messages for too short a time",
                    low - 1
                )
            };
            return (PartitionPosition { next: low, ..self }, Some(why));
        }
        (self, None)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_position_is_read_as_it_is_stored() {
        let at = |next, recreated| PartitionPosition { next, recreated };
        let position = TopicPosition([(0, at(17, 0)), (10, at(3, 2))].into());
        let stored = json!({"0": {"next": 17}, "10": {"next": 3, "recreated": 2}});
        assert_eq!(position.stored(), stored);
        assert_eq!(TopicPosition::read(stored).unwrap(), position);
        let told = TopicPosition::read(json!({"0": 17})).unwrap_err();
        assert!(told.ends_with("expected such as {\"0\": {\"next\": 17}}"), "{told}");
    }

    #[test]
    fn messages_that_are_gone_are_counted_and_a_topic_of_the_same_name_is_another_one() {
        let at = |next, recreated| PartitionPosition { next, recreated };
        assert_eq!(at(5, 0).within(0, 9), (at(5, 0), None));
        assert_eq!(at(9, 0).within(9, 9), (at(9, 0), None));
        let (position, said) = at(5, 0).within(8, 9);
        assert_eq!(position, at(8, 0));
        assert_eq!(
            said.unwrap(),
            "3 messages are gone before they were read, 5 to 7: the topic keeps messages for too short a time"
        );
        let (_, said) = at(7, 0).within(8, 9);
        assert_eq!(
            said.unwrap(),
            "1 message is gone before it was read, 7: the topic keeps messages for too short a time"
        );
        let (position, said) = at(12, 0).within(0, 3);
        assert_eq!((position, position.message("orders", 0, 2)), (at(0, 1), "orders/0/2/1".to_owned()));
        assert_eq!(
            said.unwrap(),
            "its next message was 12, and it ends at 3: the topic was created again, and is read from its beginning"
        );
    }
}
