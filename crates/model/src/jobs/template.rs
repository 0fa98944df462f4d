//! Templates of job ids: `{date}_{client_id}`.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Kind;
use super::flaw::Flaw;
use crate::id::is_invisible;

/// Longest job id accepted, in bytes: it must fit a file name on every platform once escaped.
pub(super) const LONGEST_JOB_ID: usize = 512;
/// Letters of a text from outside that are shown.
const SHOWN: usize = 80;

/// A template of job ids: identifiers in braces, with texts between them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct JobTemplate {
    text: Arc<str>,
    /// Before the first identifier.
    prefix: Arc<str>,
    /// Each identifier with the text that follows it.
    parts: Vec<(Arc<str>, Arc<str>)>,
}

/// A text that is no template of job ids.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{text}\" is no template of job ids: {why}")]
pub struct TemplateError {
    /// The text as given.
    pub text: String,
    /// The problem, in words.
    pub why: String,
}

/// The reason that a text is not a job id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JobIdError {
    /// It does not have the parts that the template wants.
    #[error("\"{}\" is no job id of the form {template}: {why}", shown(id))]
    Form {
        /// The text as given.
        id: String,
        /// The template.
        template: String,
        /// The part that is missing, or too much.
        why: String,
    },
    /// One of its parts is not what the identifier allows.
    #[error(
        "\"{}\" is no job id of the form {template}: {identifier} is \"{}\", expected {expected}",
        shown(id),
        shown(part)
    )]
    Part {
        /// The text as given.
        id: String,
        /// The template.
        template: String,
        /// The identifier.
        identifier: Arc<str>,
        /// The text in its place.
        part: String,
        /// The expected form.
        expected: String,
    },
}

/// A text from outside as an error quotes it: what a terminal would obey is escaped, and what is long is cut.
#[must_use]
pub fn shown(text: &str) -> String {
    let mut shown = String::new();
    for (at, letter) in text.chars().enumerate() {
        match letter {
            _ if at == SHOWN => {
                shown.push('…');
                break;
            }
            '\'' | '"' | '\\' => shown.push(letter),
            letter => shown.extend(letter.escape_debug()),
        }
    }
    shown
}

impl JobTemplate {
    /// Reads a template.
    ///
    /// # Errors
    /// When it has no identifier, the same one twice, braces that don't match, or two identifiers with nothing between.
    pub fn new(text: &str) -> Result<JobTemplate, TemplateError> {
        let refuse = |why: String| TemplateError { text: text.to_owned(), why };
        let mut pieces = text.split('{');
        let prefix = pieces.next().unwrap_or_default();
        let mut parts: Vec<(Arc<str>, Arc<str>)> = Vec::new();
        for piece in pieces {
            let Some((name, after)) = piece.split_once('}') else {
                return Err(refuse(format!("the brace before \"{piece}\" is not closed")));
            };
            let fits = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
            if name.is_empty() || !name.chars().all(fits) {
                return Err(refuse(format!("\"{{{name}}}\" names no identifier, expected letters, digits, - and _")));
            }
            if parts.iter().any(|(known, _)| **known == *name) {
                return Err(refuse(format!("it has the identifier {name} twice")));
            }
            if let Some((before, _)) = parts.last().filter(|(_, after)| after.is_empty()) {
                return Err(refuse(format!("nothing tells where {before} ends and {name} begins")));
            }
            parts.push((name.into(), after.into()));
        }
        let stray = parts.iter().map(|(_, after)| &**after).chain([prefix]).any(|literal| literal.contains('}'));
        if stray {
            return Err(refuse("a brace is closed that was not opened".to_owned()));
        }
        if parts.is_empty() {
            return Err(refuse("it has no identifier, expected one such as {date}".to_owned()));
        }
        Ok(JobTemplate { text: text.into(), prefix: prefix.into(), parts })
    }

    /// The template as it was given.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The identifiers in their order.
    pub fn identifiers(&self) -> impl ExactSizeIterator<Item = &Arc<str>> {
        self.parts.iter().map(|(name, _)| name)
    }

    /// The position of an identifier among the others.
    #[must_use]
    pub fn position(&self, identifier: &str) -> Option<usize> {
        self.parts.iter().position(|(name, _)| **name == *identifier)
    }

    /// The values of a job id in the order of the identifiers, each in its normal form. Each identifier ends where the text that
    /// follows it is met first; the last one has all that is left, so it may contain what separates the others.
    ///
    /// # Errors
    /// Which identifier is missing or not what it should be.
    pub fn read(&self, kinds: &BTreeMap<Arc<str>, Kind>, id: &str) -> Result<Vec<Arc<str>>, JobIdError> {
        let pieces = self.split(id)?;
        self.parts.iter().zip(pieces).map(|((name, _), piece)| self.read_part(kinds, id, name, piece)).collect()
    }

    fn read_part(
        &self,
        kinds: &BTreeMap<Arc<str>, Kind>,
        id: &str,
        name: &Arc<str>,
        piece: &str,
    ) -> Result<Arc<str>, JobIdError> {
        let normal = kinds.get(name).map_or_else(|| Ok(piece.into()), |kind| kind.normal(piece));
        normal.map_err(|expected| JobIdError::Part {
            id: id.to_owned(),
            template: self.text.to_string(),
            identifier: name.clone(),
            part: piece.to_owned(),
            expected,
        })
    }

    fn split<'a>(&self, id: &'a str) -> Result<Vec<&'a str>, JobIdError> {
        let refuse = |why: String| JobIdError::Form { id: id.to_owned(), template: self.text.to_string(), why };
        if id.len() > LONGEST_JOB_ID {
            return Err(refuse(format!("it is {} bytes long, expected at most {LONGEST_JOB_ID}", id.len())));
        }
        if id.is_empty() {
            return Err(refuse("it is empty".to_owned()));
        }
        if let Some(odd) = id.chars().find(|c| *c == '/' || is_invisible(*c)) {
            return Err(refuse(format!("it can't contain {odd:?}")));
        }
        let Some(mut rest) = id.strip_prefix(&*self.prefix) else {
            return Err(refuse(format!("it does not begin with \"{}\"", self.prefix)));
        };
        let mut pieces = Vec::with_capacity(self.parts.len());
        for (at, (name, after)) in self.parts.iter().enumerate() {
            if at + 1 == self.parts.len() {
                let Some(piece) = rest.strip_suffix(&**after) else {
                    return Err(refuse(format!("it does not end with \"{after}\"")));
                };
                pieces.push(piece);
            } else {
                let Some((piece, left)) = rest.split_once(&**after) else {
                    return Err(refuse(format!("nothing follows {name}, expected \"{after}\"")));
                };
                pieces.push(piece);
                rest = left;
            }
        }
        Ok(pieces)
    }

    /// The job id of values in their normal form, in the order of the identifiers, where it reads back to the same values.
    ///
    /// # Errors
    /// Why it can't be written.
    pub fn id_of(&self, values: &[Arc<str>]) -> Result<Arc<str>, Flaw> {
        let odd = |value: &Arc<str>| value.contains('/') || value.contains(char::is_control);
        if let Some((name, value)) = self.identifiers().zip(values).find(|(_, value)| odd(value)) {
            return Err(Flaw::OddLetter { identifier: name.clone(), value: shown(value).to_string().into() });
        }
        if let Some(flaw) = values.iter().enumerate().find_map(|(position, value)| self.flaw(position, value)) {
            return Err(flaw);
        }
        let id = self.fill(values);
        if id.len() > LONGEST_JOB_ID { Err(self.too_long()) } else { Ok(id) }
    }

    /// The reason that no job id can have a value at a position.
    #[must_use]
    pub fn flaw(&self, position: usize, value: &str) -> Option<Flaw> {
        let (name, after) = self.parts.get(position)?;
        if value.is_empty() && self.parts.len() == 1 && self.prefix.is_empty() && after.is_empty() {
            return Some(Flaw::EmptyId { identifier: name.clone(), template: self.text.clone() });
        }
        let ambiguous = || Flaw::Ambiguous {
            identifier: name.clone(),
            value: shown(value).to_string().into(),
            template: self.text.clone(),
        };
        (!self.tells(position, value)).then(ambiguous)
    }

    /// The flaw of a job id that is too long.
    pub(super) fn too_long(&self) -> Flaw {
        Flaw::TooLong { template: self.text.clone(), most: LONGEST_JOB_ID }
    }

    /// Whether a value can be told from what follows it when it stands there.
    fn tells(&self, position: usize, value: &str) -> bool {
        let Some((_, after)) = self.parts.get(position) else { return false };
        if position + 1 == self.parts.len() {
            return true;
        }
        // A value that ends with a part of the separator would be cut too early, too.
        let met = value.len() + after.len();
        let mut tail = String::with_capacity(met);
        tail.push_str(value);
        tail.push_str(after);
        tail.find(&**after) == Some(value.len())
    }

    /// A letter between its identifiers that no job id may have.
    pub(super) fn odd_letter(&self) -> Option<char> {
        let mut literals = std::iter::once(&self.prefix).chain(self.parts.iter().map(|(_, after)| after));
        literals.find_map(|literal| literal.chars().find(|c| *c == '/' || c.is_control()))
    }

    /// Appends the job id that these values make, in the order of the identifiers.
    pub(super) fn write<'a>(&self, values: impl Iterator<Item = &'a str>, into: &mut String) {
        into.push_str(&self.prefix);
        for ((_, after), value) in self.parts.iter().zip(values) {
            into.push_str(value);
            into.push_str(after);
        }
    }

    /// The job id that these values make, in the order of the identifiers.
    #[must_use]
    pub fn fill(&self, values: &[Arc<str>]) -> Arc<str> {
        let mut id = String::new();
        self.write(values.iter().map(|value| &**value), &mut id);
        id.into()
    }
}

impl TryFrom<String> for JobTemplate {
    type Error = TemplateError;
    fn try_from(text: String) -> Result<Self, TemplateError> {
        JobTemplate::new(&text)
    }
}

impl From<JobTemplate> for String {
    fn from(template: JobTemplate) -> String {
        template.text.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::{DateForm, Pattern};

    fn kinds() -> BTreeMap<Arc<str>, Kind> {
        BTreeMap::from([
            ("date".into(), Kind::Date { form: DateForm::Compact }),
            ("client_id".into(), Kind::Integer { min: None, max: None }),
            (
                "collection_name".into(),
                Kind::Pattern { pattern: Pattern::new("^(client|profile|purchase|content)").unwrap() },
            ),
        ])
    }

    fn read(template: &str, id: &str) -> Result<String, String> {
        let values = JobTemplate::new(template).unwrap().read(&kinds(), id).map_err(|error| error.to_string())?;
        Ok(values.join(" "))
    }

    #[test]
    fn job_ids_are_read_as_stolos_reads_them() {
        let usual = "{date}_{client_id}_{collection_name}";
        assert_eq!(read(usual, "20140606_1111_profile").as_deref(), Ok("20140606 1111 profile"));
        assert_eq!(read(usual, "20140606_1_purchase_x_y").as_deref(), Ok("20140606 1 purchase_x_y"));
        assert_eq!(read("{date}_{client_id}_{free}", "20130101_876_equal2me").as_deref(), Ok("20130101 876 equal2me"));
        assert_eq!(read("{client_id}", "007").as_deref(), Ok("7"));
        assert_eq!(read("{date}_{testID}", "20151015_").as_deref(), Ok("20151015 "));
        assert_eq!(
            read(usual, "20149606_1_profile").unwrap_err(),
            "\"20149606_1_profile\" is no job id of the form {date}_{client_id}_{collection_name}: date is \"20149606\", \
             expected a day of the calendar as yyyymmdd"
        );
        for (id, what) in [
            ("20140606_1_", "collection_name is \"\""),
            ("20140606_11aa_profile", "client_id is \"11aa\", expected a whole number"),
            ("20140606_1_Profile", "collection_name is \"Profile\""),
            ("20140606_1111", "nothing follows client_id, expected \"_\""),
            ("bad", "nothing follows date"),
            ("a/b", "it can't contain '/'"),
        ] {
            let said = read(usual, id).unwrap_err();
            assert!(said.contains(what), "{said}");
        }
    }

    #[test]
    fn what_is_quoted_obeys_nobody_and_has_an_end() {
        let odd = read("{date}", "a\u{1b}[31m\u{202e}é\"").unwrap_err();
        assert!(odd.starts_with("\"a\\u{1b}[31m\\u{202e}é\"\" is no job id"), "{odd}");
        let long = read("{date}", &"x".repeat(5000)).unwrap_err();
        let cut = format!("\"{}…\" is no job id of the form {{date}}: it is 5000 bytes long", "x".repeat(80));
        assert!(long.starts_with(&cut), "{long}");
        let part = read("{date}", &"y".repeat(500)).unwrap_err();
        assert!(part.contains(&format!("date is \"{}…\", expected a day", "y".repeat(80))), "{part}");
    }

    #[test]
    fn texts_between_identifiers_count() {
        assert_eq!(read("run-{date}:{x}.v1", "run-20140606:a.b.v1").as_deref(), Ok("20140606 a.b"));
        assert!(read("run-{date}:{x}.v1", "20140606:a.v1").unwrap_err().contains("it does not begin with \"run-\""));
        assert!(read("run-{date}:{x}.v1", "run-20140606:a").unwrap_err().contains("it does not end with \".v1\""));
        let template = JobTemplate::new("run-{date}:{x}.v1").unwrap();
        assert_eq!(&*template.fill(&["20140606".into(), "a".into()]), "run-20140606:a.v1");
    }

    #[test]
    fn templates_that_could_not_be_read_back_are_refused() {
        for (text, why) in [
            ("", "it has no identifier, expected one such as {date}"),
            ("date", "it has no identifier"),
            ("{date}{x}", "nothing tells where date ends and x begins"),
            ("{date}_{date}", "it has the identifier date twice"),
            ("{date", "the brace before \"date\" is not closed"),
            ("{date}}", "a brace is closed that was not opened"),
            ("{}", "\"{}\" names no identifier"),
        ] {
            let said = JobTemplate::new(text).unwrap_err().to_string();
            assert!(said.contains(why), "{text}: {said}");
        }
    }
}
