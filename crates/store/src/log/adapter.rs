//! The parts that adapters of logs over a network have in common: addresses, and snapshots in parts.

use std::collections::BTreeMap;
use std::io::Read;

use super::LogError;

/// The address of a log, such as `postgres://kelos@db.example/kelos?schema=etl`: the part that the client of the store reads,
/// and options behind it that the adapter takes one by one.
pub struct LogAddress {
    base: String,
    options: BTreeMap<String, String>,
    example: &'static str,
}

impl LogAddress {
    /// Reads an address with one of the schemes. The example is shown where an address can't be used.
    ///
    /// # Errors
    /// When it has another scheme, or an option twice. The address is not shown: it may have a password.
    pub fn read(text: &str, schemes: &[&str], example: &'static str) -> Result<LogAddress, LogError> {
        let (base, query) = text.split_once('?').unwrap_or((text, ""));
        let mut address = LogAddress { base: base.to_owned(), options: BTreeMap::new(), example };
        if !schemes.iter().any(|scheme| base.strip_prefix(scheme).is_some_and(|rest| rest.starts_with("://"))) {
            return Err(address.refuse(&format!("its scheme is not {}", schemes.join(" or "))));
        }
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            if address.options.insert(name.clone().into_owned(), value.into_owned()).is_some() {
                return Err(address.refuse(&format!("it has the option {name} twice")));
            }
        }
        Ok(address)
    }

    /// The address without options. It may have a password.
    #[must_use]
    pub fn base(&self) -> &str {
        &self.base
    }

    /// The address without options and password.
    #[must_use]
    pub fn name(&self) -> String {
        let (scheme, rest) = self.base.split_once("://").unwrap_or(("", &self.base));
        match rest.rsplit_once('@') {
            Some((login, place)) => match login.split(':').next().unwrap_or_default() {
                "" => format!("{scheme}://{place}"),
                user => format!("{scheme}://{user}@{place}"),
            },
            None => self.base.clone(),
        }
    }

    /// Takes an option.
    pub fn option(&mut self, name: &str) -> Option<String> {
        self.options.remove(name)
    }

    /// Takes an option that is one of two words, of which the first is the default; whether it is the second.
    ///
    /// # Errors
    /// When it is neither.
    pub fn switch(&mut self, name: &str, [usual, other]: [&str; 2]) -> Result<bool, LogError> {
        match self.option(name) {
            Some(value) if value == other => Ok(true),
            Some(value) if value != usual => {
                Err(self.refuse(&format!("its option {name} is \"{value}\", expected {usual} or {other}")))
            }
            _ => Ok(false),
        }
    }

    /// Refuses options that were not taken.
    ///
    /// # Errors
    /// When there is one; `known` lists those that exist.
    pub fn finish(&self, known: &str) -> Result<(), LogError> {
        match self.options.keys().next() {
            Some(name) => Err(self.refuse(&format!("it has no option \"{name}\", expected {known}"))),
            None => Ok(()),
        }
    }

    /// The error of an address that can't be used.
    #[must_use]
    pub fn refuse(&self, why: &str) -> LogError {
        let cause = format!("{why}; expected such as {}", self.example);
        LogError::Medium { doing: "read the address of the log".to_owned(), cause }
    }
}

/// An action of an adapter: its words, and the meaning of an answer that was lost.
#[derive(Clone, Copy)]
pub struct Action<'a> {
    doing: &'a str,
    is_writing: bool,
}

impl<'a> Action<'a> {
    /// An action that changes nothing; the words complete "failed to …".
    #[must_use]
    pub fn read(doing: &'a str) -> Action<'a> {
        Action { doing, is_writing: false }
    }

    /// An action that changes the store: a lost answer leaves unknown whether it was done.
    #[must_use]
    pub fn write(doing: &'a str) -> Action<'a> {
        Action { doing, is_writing: true }
    }

    /// The same action while it only asks, before it changes anything.
    #[must_use]
    pub fn asking(self) -> Action<'a> {
        Action { is_writing: false, ..self }
    }

    /// The error of an answer that was lost.
    #[must_use]
    pub fn lost(self, cause: String) -> LogError {
        let doing = self.doing.to_owned();
        if self.is_writing { LogError::Unknown { doing, cause } } else { LogError::Medium { doing, cause } }
    }

    /// The error of an action that was not done.
    #[must_use]
    pub fn failed(self, cause: impl Into<String>) -> LogError {
        LogError::Medium { doing: self.doing.to_owned(), cause: cause.into() }
    }
}

/// Reads the next part of a snapshot: `size` bytes, or fewer if it is the last one.
///
/// # Errors
/// When the source fails.
pub fn next_part(source: &mut dyn Read, size: usize) -> Result<Vec<u8>, LogError> {
    let mut part = Vec::new();
    let read = source.take(size as u64).read_to_end(&mut part);
    read.map_err(|error| LogError::Medium {
        doing: "read the state for a snapshot".to_owned(),
        cause: error.to_string(),
    })?;
    Ok(part)
}

/// Refuses to trim entries that the latest snapshot does not cover.
///
/// # Errors
/// When `before` is beyond the entry after that snapshot.
pub fn check_trim(before: u64, snapshot: Option<u64>) -> Result<(), LogError> {
    let covered = snapshot.unwrap_or(0);
    if before <= covered + 1 {
        return Ok(());
    }
    let cause = format!("its latest snapshot is that of entry {covered}");
    Err(LogError::Medium { doing: format!("trim the log before entry {before}"), cause })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<LogAddress, LogError> {
        LogAddress::read(text, &["redis", "rediss"], "redis://host/0?prefix=kelos")
    }

    #[test]
    fn names_have_no_passwords() {
        for (text, name) in [
            ("redis://h:1/2?prefix=a", "redis://h:1/2"),
            ("rediss://u:se:cr@et@h,g:2/db", "rediss://u@h,g:2/db"),
            ("redis://:secret@h", "redis://h"),
            ("redis://u@h", "redis://u@h"),
        ] {
            assert_eq!(read(text).unwrap().name(), name);
        }
    }

    #[test]
    fn options_are_taken_once() {
        let mut address = read("redis://h?prefix=a%20b&durability=relaxed").unwrap();
        assert_eq!(address.base(), "redis://h");
        assert_eq!(address.option("prefix").as_deref(), Some("a b"));
        assert!(address.switch("durability", ["strict", "relaxed"]).unwrap());
        assert!(!address.switch("durability", ["strict", "relaxed"]).unwrap());
        address.finish("prefix or durability").unwrap();
    }

    #[test]
    fn an_address_that_makes_no_sense_is_refused_without_its_password() {
        let refused = |text: &str| {
            let read = read(text).and_then(|mut address| {
                address.switch("durability", ["strict", "relaxed"])?;
                address.finish("durability")
            });
            let error = read.unwrap_err().to_string();
            assert!(!error.contains("secret"), "{error}");
            error
        };
        insta::assert_snapshot!(
            ["http://u:secret@h", "redis:h", "redis://u:secret@h?a=1", "redis://h?a=1&a=2", "redis://h?durability=no"]
                .map(refused)
                .join("\n"),
            @r#"
        read the address of the log: its scheme is not redis or rediss; expected such as redis://host/0?prefix=kelos
        read the address of the log: its scheme is not redis or rediss; expected such as redis://host/0?prefix=kelos
        read the address of the log: it has no option "a", expected durability; expected such as redis://host/0?prefix=kelos
        read the address of the log: it has the option a twice; expected such as redis://host/0?prefix=kelos
        read the address of the log: its option durability is "no", expected strict or relaxed; expected such as redis://host/0?prefix=kelos
        "#
        );
    }
}
