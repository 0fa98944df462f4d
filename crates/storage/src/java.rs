//! Exceptions of name nodes, by their classes, over either protocol.

use std::io;

use crate::StorageError;

/// How many bytes of a server's message are shown.
const LONGEST_WORDS: usize = 200;

/// An operation at a path, for messages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Operation<'a> {
    pub(crate) what: &'static str,
    pub(crate) endpoint: &'a str,
    pub(crate) path: &'a str,
}

impl Operation<'_> {
    pub(crate) fn place(&self) -> String {
        format!("{}{}", self.endpoint, self.path)
    }

    pub(crate) fn not_found(&self) -> StorageError {
        StorageError::NotFound { place: self.place() }
    }

    pub(crate) fn denied(&self, detail: impl Into<String>) -> StorageError {
        StorageError::Denied { place: self.place(), detail: detail.into() }
    }

    pub(crate) fn login(&self, detail: impl Into<String>) -> StorageError {
        StorageError::Login { endpoint: self.endpoint.to_owned(), detail: detail.into() }
    }

    pub(crate) fn unreachable(&self, detail: impl Into<String>) -> StorageError {
        StorageError::Unreachable { endpoint: self.endpoint.to_owned(), detail: detail.into() }
    }

    pub(crate) fn unsupported(&self, reason: impl Into<String>) -> StorageError {
        StorageError::Unsupported { what: self.what, place: self.place(), reason: reason.into() }
    }

    pub(crate) fn other(&self, detail: impl Into<String>) -> StorageError {
        StorageError::Other { what: self.what, place: self.place(), detail: detail.into() }
    }

    /// The error that an exception of a name node stands for.
    pub(crate) fn exception(&self, class: &str, message: &str) -> StorageError {
        let (name, words) = (simple_name(class), first_line(message));
        match name {
            "FileNotFoundException" | "ParentNotDirectoryException" => self.not_found(),
            // This is the answer for a path below a file.
            "AccessControlException" if words.contains("is not a directory") => self.not_found(),
            "AccessControlException" if is_login(&words) => self.login(words),
            "AccessControlException" => self.denied(words),
            "AuthorizationException" | "InvalidToken" | "SaslException" | "SecretManager$InvalidToken" => {
                self.login(words)
            }
            "SecurityException" => self.login(words),
            "StandbyException" | "ObserverRetryOnActiveException" => {
                self.unreachable("no name node is active; all that answered stand by")
            }
            "SafeModeException" => self.other("the name node is in safe mode, and changes nothing until it leaves it"),
            "FileAlreadyExistsException" | "AlreadyBeingCreatedException" => self.other("something is there already"),
            _ if words.is_empty() => self.other(format!("the name node answered {name}")),
            _ => self.other(format!("{words} ({name})")),
        }
    }
}

/// Whether an exception means a refused login: it has the same class as that of a refused path.
fn is_login(words: &str) -> bool {
    words.contains("authentication is not enabled") || words.contains("not allowed to impersonate")
}

fn simple_name(class: &str) -> &str {
    class.rsplit('.').next().unwrap_or(class)
}

/// The first line of a server's message, shortened: the rest is a stack trace.
pub(crate) fn first_line(message: &str) -> String {
    let line = message.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    match line.char_indices().nth(LONGEST_WORDS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

/// The error of a connection, in few words.
pub(crate) fn words_of(error: &io::Error) -> String {
    let words = error.to_string();
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "connection refused".to_owned(),
        io::ErrorKind::ConnectionReset => "the connection was reset".to_owned(),
        _ if is_broken_off(error) => "the connection broke; is it the right port?".to_owned(),
        io::ErrorKind::TimedOut => "the connection timed out".to_owned(),
        _ if words.contains("lookup address") => "unknown host".to_owned(),
        _ => first_line(&words),
    }
}

pub(crate) fn is_broken_off(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::UnexpectedEof)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exceptions_say_whose_fault_it_is() {
        let asked = Operation { what: "list", endpoint: "hdfs://nn:8020", path: "/a" };
        let told = |class: &str, message: &str| asked.exception(class, message).to_string();
        let denied = "Permission denied: user=eve, access=READ_EXECUTE, inode=\"/a\"\n\tat org.apache";
        assert_eq!(
            told("org.apache.hadoop.security.AccessControlException", denied),
            "use hdfs://nn:8020/a: permission denied (Permission denied: user=eve, access=READ_EXECUTE, inode=\"/a\")"
        );
        assert_eq!(
            told("org.apache.hadoop.ipc.StandbyException", "Operation category READ is not supported"),
            "reach hdfs://nn:8020: no name node is active; all that answered stand by"
        );
        assert_eq!(told("java.io.FileNotFoundException", "x"), "find hdfs://nn:8020/a: nothing is there");
        assert_eq!(
            told("org.apache.hadoop.security.AccessControlException", "SIMPLE authentication is not enabled."),
            "log in to hdfs://nn:8020: SIMPLE authentication is not enabled."
        );
        assert_eq!(told("a.OddException", "what\nat"), "list hdfs://nn:8020/a: what (OddException)");
        assert_eq!(told("a.OddException", ""), "list hdfs://nn:8020/a: the name node answered OddException");
    }
}
