//! Mail: a notice becomes a message that is handed to a server of mail, whose word decides.

use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use kelos_model::secret::SecretSource;
use kelos_tls::Trust;
use lettre::Message;
use lettre::message::Mailbox;
use lettre::message::header::{ContentType, HeaderName, HeaderValue};
use lettre::transport::smtp::Error;
use lettre::transport::smtp::authentication::{Credentials, DEFAULT_MECHANISMS};
use lettre::transport::smtp::client::AsyncSmtpConnection;
use lettre::transport::smtp::commands::{Data, Mail, Rcpt};
use tokio::time::timeout;

use super::mail_line::{self, MailServer};
use super::{PrivateText, SendError};
use crate::details::Details;
use crate::notice::Notice;
use crate::template;

/// The time for a whole delivery, and for the farewell after it.
const PATIENCE: Duration = Duration::from_secs(60);
const FAREWELL: Duration = Duration::from_secs(1);

/// The way of a notice by mail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MailOutlet {
    /// Those who get it.
    pub to: Vec<Mailbox>,
    /// The sender.
    pub from: Mailbox,
    /// The server that takes it.
    pub server: MailServer,
    /// The name and the password for the server.
    pub login: Option<(String, SecretSource)>,
}

impl MailOutlet {
    /// Its kind and its place for people.
    pub(super) fn kind(&self) -> String {
        let to: Vec<String> = self.to.iter().map(|to| to.email.to_string()).collect();
        format!("mail to {} by {}", to.join(", "), self.server.host)
    }

    /// Hands a notice to the server.
    pub(super) async fn send(
        &self,
        notice: &Notice,
        details: &Details,
        trust: &Trust,
        now: Timestamp,
    ) -> Result<(), SendError> {
        let host = &self.server.host;
        let away = |why: String| SendError::Away(format!("send mail by {host}: {why}"));
        let message = self.message(notice, details, now);
        let message = message.map_err(|why| SendError::Refused(format!("write the mail: {why}")))?;
        let handed = timeout(PATIENCE, async {
            let mut line = self.connect(trust).await.map_err(away)?;
            let handed = self.hand_over(&mut line, &message.formatted()).await;
            Ok((handed, line))
        });
        let late = || away(format!("it did not answer within {} s", PATIENCE.as_secs()));
        let (handed, mut line) = handed.await.map_err(|_| late())??;
        // A message that it has taken it delivers, whatever it answers to the farewell.
        let _ = timeout(FAREWELL, line.quit()).await;
        handed
    }

    async fn connect(&self, trust: &Trust) -> Result<AsyncSmtpConnection, String> {
        let domain = self.from.email.domain();
        let mut line = mail_line::connect(&self.server, domain, trust).await?;
        if let Some((user, password)) = &self.login {
            let password = PrivateText::Secret(password.clone()).read().await?;
            let credentials = Credentials::new(user.clone(), password);
            let accepted = line.auth(DEFAULT_MECHANISMS, &credentials).await;
            accepted.map_err(|error| format!("sign in as {user}: {error}"))?;
        }
        Ok(line)
    }

    /// A recipient whom the server refuses does not keep the others from getting it.
    async fn hand_over(&self, line: &mut AsyncSmtpConnection, message: &[u8]) -> Result<(), SendError> {
        let judge = |error: Error| self.judge(&error);
        line.command(Mail::new(Some(self.from.email.clone()), Vec::new())).await.map_err(judge)?;
        let mut refused = Vec::new();
        for to in &self.to {
            let accepted = line.command(Rcpt::new(to.email.clone(), Vec::new())).await.map_err(judge);
            match accepted {
                Ok(_) => {}
                Err(SendError::Refused(why)) => refused.push(why),
                Err(away) => return Err(away),
            }
        }
        if refused.len() == self.to.len() {
            return Err(SendError::Refused(refused.join("; ")));
        }
        refused.iter().for_each(|why| tracing::warn!("failed to {why}; the others get it"));
        line.command(Data).await.map_err(judge)?;
        line.message(message).await.map_err(judge)?;
        Ok(())
    }

    /// A server that says 5xx will not take this message. That it asks for a name and a password can be put right.
    fn judge(&self, error: &Error) -> SendError {
        let why = format!("send mail by {}: {error}", self.server.host);
        let asks_for_login = error.status().is_some_and(|code| (530..540).contains(&u16::from(code)));
        if error.is_permanent() && !asks_for_login { SendError::Refused(why) } else { SendError::Away(why) }
    }

    /// The message. Its id follows from the key, so that receivers know it again; all of an incident refer to one id, and are shown together.
    fn message(&self, notice: &Notice, details: &Details, now: Timestamp) -> Result<Message, lettre::error::Error> {
        let domain = self.from.email.domain();
        let incident = format!("<{}@{domain}>", notice.incident);
        let mut message = Message::builder()
            .from(self.from.clone())
            .subject(template::subject(notice))
            .date(SystemTime::from(now))
            .message_id(Some(format!("<{}@{domain}>", notice.key)))
            .in_reply_to(incident.clone())
            .references(incident)
            .header(ContentType::TEXT_PLAIN);
        for to in &self.to {
            message = message.to(to.clone());
        }
        // Such a mail is answered by no notice of absence.
        let automatic = HeaderName::new_from_ascii_str("Auto-Submitted");
        let message = message.raw_header(HeaderValue::new(automatic, "auto-generated".to_owned()));
        message.body(template::text(notice, details))
    }
}

#[cfg(test)]
mod tests;
