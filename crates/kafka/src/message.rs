//! A message as it was read from a topic.

use jiff::Timestamp;

/// A message as it was read from a topic.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IncomingMessage {
    /// The topic.
    pub topic: String,
    /// The partition.
    pub partition: i32,
    /// The offset in the partition.
    pub offset: i64,
    /// The key, where it has one.
    pub key: Option<Vec<u8>>,
    /// The value; none of a deletion.
    pub value: Option<Vec<u8>>,
    /// The headers, in their order.
    pub headers: Vec<(String, Vec<u8>)>,
    /// The time that its producer or its broker gave it.
    pub time: Option<Timestamp>,
}

impl IncomingMessage {
    /// Its name: `orders/0/17`.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}/{}/{}", self.topic, self.partition, self.offset)
    }

    /// The key as text.
    pub(crate) fn key_text(&self) -> Result<&str, String> {
        let key = self.key.as_deref().ok_or("it has no key")?;
        std::str::from_utf8(key).map_err(|_| "its key is no text in UTF-8".to_owned())
    }

    /// A header as text; of several of a name the last.
    pub(crate) fn header(&self, name: &str) -> Result<&str, String> {
        let found = self.headers.iter().rev().find(|(one, _)| one == name);
        let (_, value) = found.ok_or_else(|| format!("it has no header \"{name}\""))?;
        std::str::from_utf8(value).map_err(|_| format!("its header \"{name}\" is no text in UTF-8"))
    }
}
