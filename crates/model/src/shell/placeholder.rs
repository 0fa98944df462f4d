//! Texts in which `{name}` stands for a value of the job: commands, and paths of Spark applications.

/// A text with placeholders, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placeholders {
    /// Its pieces in their order.
    pub pieces: Vec<Piece>,
}

/// A piece of such a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// Literal text; doubled braces are single ones already.
    Text(String),
    /// A value.
    Value {
        /// Its name.
        name: String,
        /// Whether it is wanted as it is, without being quoted: `{name:raw}`.
        raw: bool,
    },
}

impl Placeholders {
    /// Takes a text apart.
    ///
    /// # Errors
    /// In words, when a brace is left open, or holds something else than a name.
    pub fn read(text: &str) -> Result<Placeholders, String> {
        let mut pieces = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            let (before, from) = rest.split_at(at);
            plain.push_str(before);
            if from.starts_with("{{") || from.starts_with("}}") {
                plain.push_str(&from[..1]);
                rest = &from[2..];
                continue;
            }
            let (value, after) = value(from)?;
            if !plain.is_empty() {
                pieces.push(Piece::Text(std::mem::take(&mut plain)));
            }
            pieces.push(value);
            rest = after;
        }
        plain.push_str(rest);
        if !plain.is_empty() {
            pieces.push(Piece::Text(plain));
        }
        Ok(Placeholders { pieces })
    }

    /// The names of the values, as often as they occur.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Text(_) => None,
            Piece::Value { name, .. } => Some(name.as_str()),
        })
    }

    /// The text with its values as they are.
    ///
    /// # Errors
    /// In words, when a value is not there.
    pub fn fill(&self, value: impl Fn(&str) -> Option<String>) -> Result<String, String> {
        let mut filled = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => filled.push_str(text),
                Piece::Value { name, .. } => {
                    filled.push_str(&value(name).ok_or_else(|| format!("{{{name}}} is not known"))?)
                }
            }
        }
        Ok(filled)
    }
}

const BRACES: &str = "write {{ and }} for braces that are meant as they are";

/// The value that a text begins with, and what follows it.
fn value(from: &str) -> Result<(Piece, &str), String> {
    let inside = from.strip_prefix('{').ok_or_else(|| format!("a brace is closed that was not opened: {BRACES}"))?;
    let (inside, after) = inside.split_once('}').ok_or_else(|| format!("a brace is not closed: {BRACES}"))?;
    let (name, form) = inside.split_once(':').map_or((inside, None), |(name, form)| (name, Some(form)));
    let fits = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '-';
    if name.is_empty() || !name.chars().all(fits) {
        return Err(format!("{{{inside}}} names no value, expected such as {{date}} or {{date:raw}}: {BRACES}"));
    }
    if form.is_some_and(|form| form != "raw") {
        return Err(format!("{{{inside}}} asks for a form that there is not, expected {{{name}}} or {{{name}:raw}}"));
    }
    Ok((Piece::Value { name: name.to_owned(), raw: form.is_some() }, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_taken_apart() {
        let read = Placeholders::read("echo base-{app_name}-${{HOME}} {date:raw}}}").unwrap();
        let value = |name: &str, raw| Piece::Value { name: name.to_owned(), raw };
        let text = |text: &str| Piece::Text(text.to_owned());
        let expected =
            [text("echo base-"), value("app_name", false), text("-${HOME} "), value("date", true), text("}")];
        assert_eq!(read.pieces, expected);
        assert_eq!(read.fill(|name| Some(name.to_uppercase())).as_deref(), Ok("echo base-APP_NAME-${HOME} DATE}"));
        assert!(Placeholders::read("").unwrap().pieces.is_empty());
    }

    #[test]
    fn what_is_no_placeholder_is_told() {
        let told = |text: &str| Placeholders::read(text).unwrap_err();
        assert_eq!(told("a {b"), format!("a brace is not closed: {BRACES}"));
        assert_eq!(told("a } b"), format!("a brace is closed that was not opened: {BRACES}"));
        assert!(told("awk '{print $1}'").starts_with("{print $1} names no value, expected such as {date}"));
        assert_eq!(told("{date:>9}"), "{date:>9} asks for a form that there is not, expected {date} or {date:raw}");
        let unknown = Placeholders::read("{x}").unwrap().fill(|_| None);
        assert_eq!(unknown.unwrap_err(), "{x} is not known");
    }
}
