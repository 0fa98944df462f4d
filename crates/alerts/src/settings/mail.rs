//! The settings of a channel by mail.

use kelos_executors::http::Url;
use lettre::message::Mailbox;
use serde::Deserialize;
use serde_json::Value;

use super::private;
use crate::channel::{MailOutlet, MailServer, PrivateText, Protection};

/// The most recipients of a channel.
const MOST_RECIPIENTS: usize = 100;
/// The ports of servers that take mail encrypted, and of those that encrypt it by `STARTTLS`.
const TLS_PORT: u16 = 465;
const SUBMISSION_PORT: u16 = 587;
/// The forms of the address of a server.
const SERVER: &str = "expected smtps://HOST, or smtp://HOST where STARTTLS encrypts";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MailPart {
    to: Vec<String>,
    from: String,
    server: String,
    user: Option<String>,
    password: Option<Value>,
    #[serde(default)]
    plain: bool,
}

/// Reads the part of a channel. The message says what was expected.
pub(super) fn mail(part: MailPart) -> Result<MailOutlet, String> {
    let MailPart { to, from, server, user, password, plain } = part;
    if to.is_empty() || to.len() > MOST_RECIPIENTS {
        return Err(format!("`to` has {} addresses, expected 1 to {MOST_RECIPIENTS}", to.len()));
    }
    let to = to.iter().map(|one| mailbox("to", one)).collect::<Result<_, _>>()?;
    let (from, server) = (mailbox("from", &from)?, read_server(&server, plain)?);
    let password = password.map(|value| private("password", value)).transpose()?;
    let login = match (user, password) {
        (None, None) => None,
        (Some(user), Some(PrivateText::Secret(source))) => Some((user, source)),
        (_, Some(PrivateText::Plain(_))) => {
            return Err(
                "`password` has the password itself, expected its source: {\"secret\": \"env:NAME\"}".to_owned()
            );
        }
        _ => return Err("expected both `user` and `password`, or none".to_owned()),
    };
    if login.is_some() && plain {
        return Err("`plain` would show the password to whoever listens, expected no `user` and `password`".to_owned());
    }
    Ok(MailOutlet { to, from, server, login })
}

fn mailbox(field: &str, text: &str) -> Result<Mailbox, String> {
    let read: Result<Mailbox, _> = text.parse();
    let read = read.map_err(|error| format!("`{field}` has \"{text}\": {error}; expected name@example.com"))?;
    // The others need servers that know of them.
    let is_plain = read.email.user().is_ascii() && read.email.domain().is_ascii();
    if is_plain { Ok(read) } else { Err(format!("`{field}` has \"{text}\", expected an address in ASCII")) }
}

fn read_server(text: &str, plain: bool) -> Result<MailServer, String> {
    let url = Url::parse(text).map_err(|error| format!("`server`: {error}; {SERVER}"))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err("`server` has a name or password, expected them in `user` and `password`".to_owned());
    }
    let host = url.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']').to_owned();
    let is_bare = matches!(url.path(), "" | "/") && url.query().is_none() && url.fragment().is_none();
    if host.is_empty() || !is_bare {
        return Err(format!("`server` is \"{text}\", {SERVER}"));
    }
    let protection = match (url.scheme(), plain) {
        ("smtps", false) => Protection::Tls,
        ("smtps", true) => return Err("`plain` and smtps:// contradict each other".to_owned()),
        ("smtp", plain) if plain || is_of_this_machine(&host) => Protection::Plain,
        ("smtp", _) => Protection::StartTls,
        _ => return Err(format!("`server` is \"{text}\", {SERVER}")),
    };
    let usual = if protection == Protection::Tls { TLS_PORT } else { SUBMISSION_PORT };
    Ok(MailServer { host, port: url.port().unwrap_or(usual), protection })
}

/// Whether nobody can listen on the way to a host.
fn is_of_this_machine(host: &str) -> bool {
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<MailOutlet, String> {
        let part: MailPart = serde_json::from_str(text).map_err(|error| error.to_string())?;
        mail(part)
    }

    #[test]
    fn the_server_says_how_mail_is_protected() {
        let server = |server: &str| {
            let text =
                format!(r#"{{"to": ["Team <team@example.com>"], "from": "kelos@example.com", "server": "{server}"}}"#);
            read(&text).map(|mail| (mail.server.host, mail.server.port, mail.server.protection))
        };
        assert_eq!(server("smtps://mail.example.com"), Ok(("mail.example.com".to_owned(), 465, Protection::Tls)));
        assert_eq!(server("smtp://mail.example.com"), Ok(("mail.example.com".to_owned(), 587, Protection::StartTls)));
        assert_eq!(server("smtp://localhost:25"), Ok(("localhost".to_owned(), 25, Protection::Plain)));
        assert_eq!(server("smtp://[::1]:25"), Ok(("::1".to_owned(), 25, Protection::Plain)));
        assert_eq!(server("https://a"), Err(format!("`server` is \"https://a\", {SERVER}")));
        let named = "`server` has a name or password, expected them in `user` and `password`";
        assert_eq!(server("smtps://me:pass@mail.example.com"), Err(named.to_owned()));
    }

    #[test]
    fn a_password_is_named_and_never_sent_where_it_can_be_read() {
        let with = |more: &str| {
            let start =
                r#"{"to": ["team@example.com"], "from": "kelos@example.com", "server": "smtp://mail.example.com""#;
            read(&format!("{start}, {more}}}")).map(|mail| mail.server.protection)
        };
        assert_eq!(with(r#""plain": true"#), Ok(Protection::Plain));
        assert_eq!(with(r#""user": "kelos", "password": {"secret": "env:SMTP_PASSWORD"}"#), Ok(Protection::StartTls));
        assert_eq!(with(r#""user": "kelos""#), Err("expected both `user` and `password`, or none".to_owned()));
        let mistakes = [
            (r#""user": "kelos", "password": "abc""#, "`password` has the password itself, expected its source"),
            (r#""plain": true, "user": "k", "password": {"secret": "env:P"}"#, "`plain` would show the password"),
        ];
        for (more, words) in mistakes {
            assert!(with(more).unwrap_err().starts_with(words), "{more}");
        }
    }

    #[test]
    fn addresses_are_read_before_anything_is_sent() {
        let of =
            |to: &str| read(&format!(r#"{{"to": {to}, "from": "k@example.com", "server": "smtps://m"}}"#)).unwrap_err();
        assert_eq!(of("[]"), "`to` has 0 addresses, expected 1 to 100");
        assert!(of(r#"["team"]"#).starts_with("`to` has \"team\": "), "{}", of(r#"["team"]"#));
        assert_eq!(of(r#"["tëam@example.com"]"#), "`to` has \"tëam@example.com\", expected an address in ASCII");
    }
}
