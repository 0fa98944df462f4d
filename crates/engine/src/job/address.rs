//! Templates of URLs: a value fills one part of the URL, and can't change where it leads.
//!
//! Secrets are sent to the host of a URL, so a value may choose neither the host nor another path than the template
//! has.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Characters that are escaped in values.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// The part of a URL that a position belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// Before the path, in a URL with a host.
    Host,
    Path,
    /// The query, or the fragment.
    Rest,
}

/// A URL while values are put into it.
#[derive(Debug, Default)]
pub struct Address {
    text: String,
    /// The end of the last value in the host.
    host_value: Option<usize>,
    /// The positions of values in the path.
    path_values: Vec<usize>,
}

impl Address {
    /// Appends text of the template.
    pub fn push(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Whether nothing was appended yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Appends a value as a part of the URL.
    ///
    /// # Errors
    /// A message, if the value would change the destination of the request.
    pub fn push_value(&mut self, name: &str, value: &str) -> Result<(), String> {
        match self.part() {
            Part::Host => {
                let is_port = self.text.rsplit('/').next().is_some_and(|host| host.contains(':'));
                let fits =
                    |byte: u8| byte.is_ascii_digit() || (!is_port && (byte.is_ascii_alphabetic() || byte == b'-'));
                if value.is_empty() || !value.bytes().all(fits) {
                    return Err(format!(
                        "${{{name}}} stands in the host of a URL and is {value:?}, expected letters, digits and - only"
                    ));
                }
                self.text.push_str(value);
                self.host_value = (!is_port).then_some(self.text.len());
            }
            part => {
                if part == Part::Path {
                    self.path_values.push(self.text.len());
                }
                self.text.extend(utf8_percent_encode(value, ESCAPED));
            }
        }
        Ok(())
    }

    fn part(&self) -> Part {
        if self.text.contains(['?', '#']) {
            return Part::Rest;
        }
        let after_scheme =
            self.text.split_once("://").map_or_else(|| self.text.strip_prefix("//"), |(_, rest)| Some(rest));
        match after_scheme {
            Some(rest) if !rest.contains(['/', '\\']) => Part::Host,
            None if self.text.is_empty() => Part::Host,
            _ => Part::Path,
        }
    }

    /// The URL with its values.
    ///
    /// # Errors
    /// In words, where a value would lead out of the path, or is a whole host.
    pub fn finish(self) -> Result<String, String> {
        if let Some(end) = self.host_value {
            let rest = self.text.get(end..).unwrap_or_default();
            let host = rest.split(['/', '\\', '?', '#', ':']).next().unwrap_or_default();
            if !(host.contains('.') && host.contains(|letter: char| letter.is_ascii_alphabetic())) {
                return Err(format!(
                    "the host of the URL {:?} ends with a value, expected one that the template itself ends, such as \
                     \"https://${{region}}.example.org/\"",
                    self.text
                ));
            }
        }
        let path_end = self.text.find(['?', '#']).unwrap_or(self.text.len());
        for at in &self.path_values {
            let before = self.text.get(..*at).and_then(|before| before.rfind(['/', '\\'])).map_or(0, |slash| slash + 1);
            let after = self.text.get(*at..path_end).unwrap_or_default();
            let end = after.find(['/', '\\']).map_or(path_end, |slash| at + slash);
            let segment = self.text.get(before..end).unwrap_or_default();
            let dots = segment.replace("%2e", ".").replace("%2E", ".");
            if matches!(&*dots, "" | "." | "..") {
                return Err(format!(
                    "a value makes \"{segment}\" a part of the path of the URL {:?}, expected a name that is not empty, . or ..",
                    self.text
                ));
            }
        }
        Ok(self.text)
    }
}

/// Fills the known names of a template; others stay for later.
///
/// # Errors
/// As [`Address::push_value`] and [`Address::finish`] say.
pub(super) fn filled_url<N: AsRef<str>>(template: &str, values: &[(N, String)]) -> Result<String, String> {
    let mut address = Address::default();
    let mut rest = template;
    while let Some(at) = rest.find("${") {
        let (before, from) = rest.split_at(at);
        address.push(before);
        let end = from.find('}').unwrap_or(from.len() - 1);
        let name = from.get(2..end).unwrap_or_default();
        match values.iter().find(|(known, _)| known.as_ref() == name) {
            Some((_, value)) => address.push_value(name, value)?,
            None => address.push(&from[..=end]),
        }
        rest = &from[end + 1..];
    }
    address.push(rest);
    address.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(template: &str, value: &str) -> Result<String, String> {
        filled_url(template, &[("c", value.to_owned())])
    }

    #[test]
    fn a_value_is_one_segment_of_a_path_or_one_value_of_a_query() {
        let good = [
            ("https://a.org/v1/${c}/run", "../../admin", "https://a.org/v1/..%2F..%2Fadmin/run"),
            ("https://a.org/v1/${c}/run", "x?y#z", "https://a.org/v1/x%3Fy%23z/run"),
            ("https://a.org/v1/${c}/run", "%2e%2e", "https://a.org/v1/%252e%252e/run"),
            ("https://a.org/v1/${c}", "..\\..", "https://a.org/v1/..%5C.."),
            ("https://a.org/v1/x${c}", "..", "https://a.org/v1/x.."),
            (
                "https://a.org/?day=${c}&x=${answer/id}",
                "1&t=2 é",
                "https://a.org/?day=1%26t%3D2%20%C3%A9&x=${answer/id}",
            ),
            ("https://${c}.example.org:80/", "eu-1", "https://eu-1.example.org:80/"),
            ("http://localhost:${c}/", "8080", "http://localhost:8080/"),
            ("/v1/${c}", "a/b", "/v1/a%2Fb"),
            ("v1/${c}", "20160101", "v1/20160101"),
            ("https://a.org/${", "x", "https://a.org/${"),
        ];
        for (template, value, expected) in good {
            assert_eq!(filled(template, value).as_deref(), Ok(expected), "{template} with {value}");
        }
    }

    #[test]
    fn a_value_leads_to_no_other_path_or_host() {
        for (template, value) in [
            ("https://a.org/v1/${c}/run", ".."),
            ("https://a.org/v1/${c}/run", "."),
            ("https://a.org/v1/${c}/run", ""),
            ("https://a.org/v1/.${c}/run", "."),
            ("https://a.org/v1/%2e${c}", "."),
            ("https://a.org/v1/${c}${c}", "."),
            ("https://a.org/v1/${c}?x", ".."),
            ("${c}/run", "https://evil.org"),
            ("//${c}/run", "evil"),
            ("https://${c}/run", "evil.org"),
            ("https://${c}/run", "evil"),
            ("https://a.${c}/run", "org"),
            ("https://${c}.example.org/", "evil.org/"),
            ("https://${c}.example.org/", "evil.org"),
            ("https://${c}example.org/", "me@"),
            ("http://localhost:${c}/", "80@evil.org"),
        ] {
            assert!(filled(template, value).is_err(), "{template} with {value}: {:?}", filled(template, value));
        }
        assert_eq!(
            filled("https://a.org/v1/${c}/run", "..").unwrap_err(),
            "a value makes \"..\" a part of the path of the URL \"https://a.org/v1/../run\", expected a name that is not empty, . or .."
        );
    }
}
