//! Texts with places for parts of a message: `${key}`, `${value/order/id}`.

use kelos_model::json::{Document, JsonError};
use serde_json::Value;

use crate::message::IncomingMessage;

/// The places that there are, for messages.
const PLACES: &str =
    "${key}, ${value}, ${value/FIELD/FIELD}, ${headers/NAME}, ${topic}, ${partition}, ${offset}, ${time}";

/// A text with places for parts of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Template(Vec<Piece>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Placeholder(Placeholder),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Placeholder {
    Key,
    /// A JSON pointer into the value; empty for all of it.
    Value(String),
    Header(String),
    Topic,
    Partition,
    Offset,
    Time,
}

/// A message whose value is read as JSON once somebody needs it.
pub(crate) struct MessageView<'m> {
    message: &'m IncomingMessage,
    value: Result<Option<Document>, String>,
}

impl<'m> MessageView<'m> {
    pub(crate) fn new(message: &'m IncomingMessage) -> MessageView<'m> {
        let value = match message.value.as_deref() {
            None => Ok(None),
            Some(bytes) => Document::read(bytes).map(Some).map_err(|error| match error {
                JsonError::Json(error) => format!("its value is no JSON: {error}"),
                error => format!("its value can't be used: {error}"),
            }),
        };
        MessageView { message, value }
    }

    pub(crate) fn message(&self) -> &IncomingMessage {
        self.message
    }

    /// The value as JSON, to be compared.
    pub(crate) fn value(&self) -> Result<&Value, String> {
        Ok(self.document()?.map_or(&Value::Null, Document::value))
    }

    /// The part of the value at a JSON pointer, to be kept.
    fn part(&self, pointer: &str) -> Result<Option<&Value>, String> {
        match self.document()? {
            Some(document) => {
                document.part(pointer).map_err(|number| format!("its value at \"{pointer}\" can't be used: {number}"))
            }
            None => Ok(Value::Null.pointer(pointer).map(|_| &Value::Null)),
        }
    }

    fn document(&self) -> Result<Option<&Document>, String> {
        self.value.as_ref().map(Option::as_ref).map_err(Clone::clone)
    }
}

impl Template {
    /// Parses a template.
    ///
    /// # Errors
    /// A place that there is not, and what was expected.
    pub(crate) fn parse(text: &str) -> Result<Template, String> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            let (name, behind) =
                after.split_once('}').ok_or_else(|| format!("\"{text}\": expected a \"}}\" after \"${{\""))?;
            if !before.is_empty() {
                pieces.push(Piece::Text(before.to_owned()));
            }
            let place = Placeholder::parse(name);
            pieces.push(Piece::Placeholder(
                place.ok_or_else(|| format!("\"{text}\": nothing is known as ${{{name}}}, expected {PLACES}"))?,
            ));
            rest = behind;
        }
        if !rest.is_empty() || pieces.is_empty() {
            pieces.push(Piece::Text(rest.to_owned()));
        }
        Ok(Template(pieces))
    }

    /// The text for a message.
    ///
    /// # Errors
    /// In words, when the message lacks a part.
    pub(crate) fn text(&self, reading: &MessageView<'_>) -> Result<String, String> {
        let mut filled = String::new();
        for piece in &self.0 {
            match piece {
                Piece::Text(text) => filled.push_str(text),
                Piece::Placeholder(place) => match place.value(reading)? {
                    Value::String(text) => filled.push_str(&text),
                    Value::Null => return Err(format!("{} is null, expected a text", place.words())),
                    other => filled.push_str(&other.to_string()),
                },
            }
        }
        Ok(filled)
    }

    /// The value for a message: of a template that is nothing but one place what stands there, be it no text either.
    ///
    /// # Errors
    /// In words, when the message lacks a part.
    pub(crate) fn value(&self, reading: &MessageView<'_>) -> Result<Value, String> {
        match self.0.as_slice() {
            [Piece::Placeholder(place)] => place.value(reading),
            _ => self.text(reading).map(Value::String),
        }
    }

    /// The text itself, if nothing of it depends on the message.
    pub(crate) fn fixed(&self) -> Option<&str> {
        match self.0.as_slice() {
            [Piece::Text(text)] => Some(text),
            _ => None,
        }
    }
}

impl Placeholder {
    fn parse(name: &str) -> Option<Placeholder> {
        Some(match name {
            "key" => Placeholder::Key,
            "value" => Placeholder::Value(String::new()),
            "topic" => Placeholder::Topic,
            "partition" => Placeholder::Partition,
            "offset" => Placeholder::Offset,
            "time" => Placeholder::Time,
            other => match other.split_once('/')? {
                ("value", pointer) => Placeholder::Value(format!("/{pointer}")),
                ("headers", header) if !header.is_empty() => Placeholder::Header(header.to_owned()),
                _ => return None,
            },
        })
    }

    fn value(&self, reading: &MessageView<'_>) -> Result<Value, String> {
        let message = reading.message();
        Ok(match self {
            Placeholder::Key => message.key_text()?.into(),
            Placeholder::Header(name) => message.header(name)?.into(),
            Placeholder::Topic => message.topic.clone().into(),
            Placeholder::Partition => message.partition.into(),
            Placeholder::Offset => message.offset.into(),
            Placeholder::Time => message.time.ok_or("it has no time")?.to_string().into(),
            Placeholder::Value(pointer) => {
                let part = reading.part(pointer)?;
                part.cloned().ok_or_else(|| format!("its value has no {pointer}"))?
            }
        })
    }

    fn words(&self) -> String {
        match self {
            Placeholder::Value(pointer) if pointer.is_empty() => "its value".to_owned(),
            Placeholder::Value(pointer) => format!("{pointer} of its value"),
            other => format!("{other:?}").to_lowercase(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn message() -> IncomingMessage {
        IncomingMessage {
            topic: "orders".to_owned(),
            partition: 3,
            offset: 17,
            key: Some(b"order-42".to_vec()),
            value: Some(br#"{"order": {"id": 42, "by": "Ann", "none": null}, "days": ["mon"]}"#.to_vec()),
            headers: vec![("kind".to_owned(), b"new".to_vec())],
            time: Some("2026-11-21T03:00:00Z".parse().unwrap()),
        }
    }

    fn text(template: &str) -> Result<String, String> {
        Template::parse(template)?.text(&MessageView::new(&message()))
    }

    #[test]
    fn places_are_filled_in() {
        assert_eq!(text("${key}").unwrap(), "order-42");
        assert_eq!(text("${value/order/id} by ${value/order/by}, ${value/days/0}").unwrap(), "42 by Ann, mon");
        assert_eq!(
            text("${topic}/${partition}/${offset} ${headers/kind} ${time}").unwrap(),
            "orders/3/17 new 2026-11-21T03:00:00Z"
        );
        assert_eq!(text("plain").unwrap(), "plain");
        let value = |template: &str| Template::parse(template).unwrap().value(&MessageView::new(&message())).unwrap();
        assert_eq!(value("${value/order}"), json!({"id": 42, "by": "Ann", "none": null}));
        assert_eq!(value("${value/order/id}"), json!(42));
        assert_eq!(value("no ${value/order/id}"), json!("no 42"));
    }

    #[test]
    fn what_is_missing_is_said() {
        assert_eq!(text("${value/order/day}").unwrap_err(), "its value has no /order/day");
        assert_eq!(text("${value/order/none}").unwrap_err(), "/order/none of its value is null, expected a text");
        assert_eq!(text("${headers/x}").unwrap_err(), "it has no header \"x\"");
        assert_eq!(
            text("${values}").unwrap_err(),
            "\"${values}\": nothing is known as ${values}, expected ${key}, ${value}, ${value/FIELD/FIELD}, ${headers/NAME}, ${topic}, \
             ${partition}, ${offset}, ${time}"
        );
        assert_eq!(text("${key").unwrap_err(), "\"${key\": expected a \"}\" after \"${\"");
        let odd = IncomingMessage { key: None, value: Some(b"{".to_vec()), time: None, ..message() };
        let read = |template: &str| Template::parse(template).unwrap().text(&MessageView::new(&odd)).unwrap_err();
        assert_eq!(read("${key}"), "it has no key");
        assert_eq!(read("${time}"), "it has no time");
        assert!(read("${value/a}").starts_with("its value is no JSON: "));
    }
}
