//! Errors of object stores.

use std::error::Error as _;

use kelos_tls::explain;
use opendal::{Error, ErrorKind};

use crate::StorageError;
use crate::java::{Operation, first_line, words_of};

/// S3's codes for unknown or invalid credentials.
const LOGINS: &[&str] = &[
    "InvalidAccessKeyId",
    "SignatureDoesNotMatch",
    "ExpiredToken",
    "InvalidToken",
    "TokenRefreshRequired",
    "RequestTimeTooSkewed",
    "AuthenticationFailed",
    "InvalidAuthenticationInfo",
];

/// The library's text for an answer in XML without any of S3's codes.
const NO_CODE: &str = "S3Error { code: \"\", message: \"\"";

pub(super) fn fault(asked: &Operation<'_>, error: Error) -> StorageError {
    let message = error.message();
    if LOGINS.iter().any(|code| message.contains(code)) {
        return asked.login(login_hint(asked, &words(message)));
    }
    match error.kind() {
        ErrorKind::NotFound => asked.not_found(),
        ErrorKind::PermissionDenied if message.trim().is_empty() || message.contains(NO_CODE) => {
            asked.denied("the store gives no reason")
        }
        ErrorKind::PermissionDenied => asked.denied(words(message)),
        ErrorKind::IsADirectory => asked.other("it is a folder"),
        ErrorKind::ConfigInvalid if message.contains("NoSuchBucket") => asked.other("there is no such bucket"),
        ErrorKind::Unsupported => asked.unsupported(words(message)),
        ErrorKind::RateLimited => asked.unreachable("it asks for fewer requests"),
        _ => unexpected(asked, &error),
    }
}

fn unexpected(asked: &Operation<'_>, error: &Error) -> StorageError {
    if let Some(words) = of_connection(error) {
        return asked.unreachable(words);
    }
    let all = error.to_string();
    if all.contains("credential") {
        return asked.login(login_hint(asked, "no credentials were found"));
    }
    let words = words(error.message());
    if is_page(error.message()) || error.message().contains(NO_CODE) {
        return asked.unreachable("it answered with a web page: is it the right address, or a proxy?");
    }
    if error.is_temporary() { asked.unreachable(words) } else { asked.other(words) }
}

/// The error of the connection, if that is the cause.
fn of_connection(error: &Error) -> Option<String> {
    if let Some(distrust) = explain(error) {
        return Some(distrust.to_string());
    }
    let mut cause = error.source();
    let mut is_of_request = false;
    while let Some(deeper) = cause {
        if let Some(io) = deeper.downcast_ref::<std::io::Error>()
            && io.get_ref().is_none()
        {
            return Some(words_of(io));
        }
        is_of_request |= deeper.is::<reqwest::Error>();
        if deeper.source().is_none() && is_of_request {
            let words = deeper.to_string();
            return Some(if words.contains("lookup address") { "unknown host".to_owned() } else { first_line(&words) });
        }
        cause = deeper.source();
    }
    None
}

fn is_page(message: &str) -> bool {
    let start = message.trim_start().get(..5).unwrap_or_default();
    start.starts_with("<!") || start.eq_ignore_ascii_case("<html")
}

/// `S3Error { code: "C", message: "M", … }` becomes `C: M`.
fn words(message: &str) -> String {
    let field = |name: &str| {
        let (_, rest) = message.split_once(&format!("{name}: \""))?;
        rest.split_once('"').map(|(value, _)| value).filter(|value| !value.is_empty())
    };
    match (field("code"), field("message")) {
        (Some(code), Some(words)) => first_line(&format!("{code}: {words}")),
        (Some(code), None) => code.to_owned(),
        _ if is_page(message) => "it answered with a web page".to_owned(),
        _ => first_line(message),
    }
}

fn login_hint(asked: &Operation<'_>, words: &str) -> String {
    let places = match asked.endpoint.split(':').next() {
        Some("s3") => "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE, or the role of the machine",
        Some("gs") => "GOOGLE_APPLICATION_CREDENTIALS, or the account of the machine",
        _ => "AZURE_STORAGE_ACCOUNT_KEY, AZURE_STORAGE_SAS_TOKEN, or AZURE_CLIENT_ID and its like",
    };
    format!("{words}; credentials come from {places}")
}
