//! Channels: how one notice is handed over.

mod mail;
mod mail_line;

use std::process::Stdio;
use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use jiff::Timestamp;
use kelos_engine::secrets::{Mask, read_secret};
use kelos_executors::http::{Answer, Http, Method, StatusCode, Url};
use kelos_model::secret::SecretSource;
use kelos_tls::Trust;
use serde_json::Value;
use sha2::Sha256;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use tokio::time::timeout;

use crate::details::Details;
use crate::notice::Notice;
use crate::template::Template;
pub(crate) use mail::MailOutlet;
pub(crate) use mail_line::{MailServer, Protection};

/// The time that a command may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// The header with the key of a notice.
const KEY: &str = "idempotency-key";
/// The header with the signature.
const SIGNATURE: &str = "kelos-signature";
/// The length from which on a part of an address may be a secret by itself.
const SHORTEST_PART: usize = 6;
/// More of what a command says about its failure is not shown.
const LONGEST_WORDS: usize = 200;

/// A text of the settings that may be a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PrivateText {
    /// It is in the file.
    Plain(String),
    /// It is elsewhere, and read each time it is used.
    Secret(SecretSource),
}

/// A way to hand notices over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outlet {
    /// It is posted to an address.
    Webhook {
        /// The address.
        url: PrivateText,
        /// The form of the body.
        template: Template,
        /// The secret that signs it, or the routing key of PagerDuty.
        secret: Option<PrivateText>,
    },
    /// It is given to a command as JSON on its standard input.
    Command(Vec<String>),
    /// It is sent by mail.
    Mail(MailOutlet),
}

/// The clients by which channels are reached.
#[derive(Clone)]
pub struct Clients {
    http: Http,
    trust: Trust,
}

impl Clients {
    /// Clients with this trust in servers.
    #[must_use]
    pub fn new(trust: &Trust) -> Clients {
        Clients { http: Http::new(trust), trust: trust.clone() }
    }
}

/// A channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Channel {
    /// The way.
    pub outlet: Outlet,
}

/// The reason for which a notice was not accepted. Messages complete "failed to …" and contain no secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SendError {
    /// The channel is away; it may take it later.
    Away(String),
    /// The channel will not take this notice, however often it is sent.
    Refused(String),
}

impl std::fmt::Display for SendError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (SendError::Away(why) | SendError::Refused(why)) = self;
        f.write_str(why)
    }
}

impl PrivateText {
    async fn read(&self) -> Result<String, String> {
        match self {
            PrivateText::Plain(text) => Ok(text.clone()),
            PrivateText::Secret(source) => {
                let (name, source) = (source.to_string(), source.clone());
                let read = tokio::task::spawn_blocking(move || read_secret(&source)).await;
                let read = read.map_err(|error| error.to_string()).and_then(|read| read);
                read.map_err(|why| format!("read the secret {name}: {why}"))
            }
        }
    }
}

impl Channel {
    /// Its kind and its place for people, without anything secret.
    #[must_use]
    pub fn kind(&self) -> String {
        match &self.outlet {
            Outlet::Command(words) => format!("command {}", words.first().map_or("", String::as_str)),
            Outlet::Mail(mail) => mail.kind(),
            Outlet::Webhook { url: PrivateText::Secret(source), .. } => format!("webhook at {source}"),
            Outlet::Webhook { url: PrivateText::Plain(url), .. } => match Url::parse(url) {
                // The path of such addresses is often the secret.
                Ok(url) => format!("webhook at {}", url.host_str().unwrap_or_default()),
                Err(_) => "webhook".to_owned(),
            },
        }
    }

    /// Sends a notice. `now` is the moment in its signature.
    ///
    /// # Errors
    /// When it was not accepted, or it is not known whether it was.
    pub async fn send(
        &self,
        notice: &Notice,
        details: &Details,
        clients: &Clients,
        now: Timestamp,
    ) -> Result<(), SendError> {
        match &self.outlet {
            Outlet::Command(words) => {
                let body = Template::Plain.body(notice, details, None);
                run(words, &notice.key, &body).await.map_err(SendError::Away)
            }
            Outlet::Mail(mail) => mail.send(notice, details, &clients.trust, now).await,
            Outlet::Webhook { url, template, secret } => {
                let read = async || {
                    let url = url.read().await?;
                    let secret = match secret {
                        Some(secret) => Some(secret.read().await?),
                        None => None,
                    };
                    Ok((url, secret))
                };
                let (url, secret) = read().await.map_err(SendError::Away)?;
                let url = Url::parse(&url).map_err(|error| SendError::Away(format!("read the address: {error}")))?;
                let body = template.body(notice, details, secret.as_deref()).to_string();
                let mask = mask_of(&url, secret.as_deref());
                let is_keyed = *template == Template::Pagerduty;
                let signs = secret.filter(|_| !is_keyed).map(|secret| (secret, now));
                let answer = post(&clients.http, &url, &notice.key, body, signs).await?.masked(&mask);
                judge(&answer, is_keyed).map_err(|is_final| {
                    let why = format!("post to {}: {}", url.host_str().unwrap_or_default(), answer.summary());
                    if is_final { SendError::Refused(why) } else { SendError::Away(why) }
                })
            }
        }
    }
}

async fn post(
    http: &Http,
    url: &Url,
    key: &str,
    body: String,
    signs: Option<(String, Timestamp)>,
) -> Result<Answer, SendError> {
    let away = |why: String| SendError::Away(format!("post to {}: {why}", url.host_str().unwrap_or_default()));
    let request = http.request(Method::POST, url.clone()).map_err(|error| away(error.to_string()))?;
    let mut request = request.header("content-type", "application/json").header(KEY, key);
    if let Some((secret, now)) = signs {
        request = request.header(SIGNATURE, signature(&secret, now, &body));
    }
    http.send_and_hear(request.body(body)).await.map_err(|error| away(error.to_string()))
}

/// Hides in an answer what is secret in a request: the secret, and the path of the address, which servers like to repeat.
fn mask_of(url: &Url, secret: Option<&str>) -> Mask {
    let path = url.query().map_or_else(|| url.path().to_owned(), |query| format!("{}?{query}", url.path()));
    let segments = url.path_segments().into_iter().flatten().map(str::to_owned);
    let values = url.query_pairs().map(|(_, value)| value.into_owned());
    let parts = segments.chain(values).filter(|part| part.len() >= SHORTEST_PART);
    let whole = [path, url.path().to_owned()].into_iter().filter(|path| path.len() > 1);
    Mask::of(&whole.chain(parts).chain(secret.map(str::to_owned)).collect::<Vec<_>>())
}

/// Whether an answer accepts; if not, whether that is final. An address or a secret that is wrong can be put right, a body can't, unless
/// the secret is in it.
fn judge(answer: &Answer, is_keyed: bool) -> Result<(), bool> {
    match answer.status {
        status if status.is_success() => Ok(()),
        // It has it already.
        StatusCode::CONFLICT => Ok(()),
        StatusCode::BAD_REQUEST => Err(!is_keyed),
        StatusCode::PAYLOAD_TOO_LARGE | StatusCode::UNPROCESSABLE_ENTITY => Err(true),
        _ => Err(false),
    }
}

/// The moment, and the HMAC of the moment, a dot and the body: so that a copy that is sent later is known.
fn signature(secret: &str, now: Timestamp, body: &str) -> String {
    let seconds = now.as_second();
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret.as_bytes()) else { return String::new() };
    mac.update(format!("{seconds}.{body}").as_bytes());
    let digest: String = mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("t={seconds},v1={digest}")
}

/// Gives a notice to a command; it is accepted if that ends with status 0.
async fn run(words: &[String], key: &str, body: &Value) -> Result<(), String> {
    let Some((program, arguments)) = words.split_first() else { return Err("run the command: it is empty".to_owned()) };
    let fail = |why: String| format!("run {program}: {why}");
    let mut command = Command::new(program);
    command.args(arguments).env("KELOS_ALERT_KEY", key).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut child =
        command.stderr(Stdio::piped()).kill_on_drop(true).spawn().map_err(|error| fail(error.to_string()))?;
    let input = child.stdin.take();
    let body = format!("{body}\n");
    let finished = timeout(PATIENCE, async {
        if let Some(mut input) = input {
            // A command may end without having read it.
            let _ = input.write_all(body.as_bytes()).await;
        }
        child.wait_with_output().await
    });
    match finished.await {
        Ok(Ok(output)) if output.status.success() => Ok(()),
        Ok(Ok(output)) => {
            let words = String::from_utf8_lossy(&output.stderr);
            let words: String =
                words.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(LONGEST_WORDS).collect();
            let words = if words.is_empty() { words } else { format!(": {words}") };
            Err(fail(format!("{}{words}", output.status)))
        }
        Ok(Err(error)) => Err(fail(error.to_string())),
        Err(_) => Err(fail(format!("it did not end within {} s", PATIENCE.as_secs()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signature_is_that_of_the_moment_and_the_body() {
        let now = Timestamp::from_second(1_700_000_000).unwrap();
        // printf '1700000000.{}' | openssl dgst -sha256 -hmac key
        assert!(signature("key", now, "{}").starts_with("t=1700000000,v1="));
        assert_ne!(signature("key", now, "{}"), signature("kez", now, "{}"));
    }

    #[test]
    fn what_a_server_repeats_of_an_address_or_a_secret_is_hidden() {
        let url = Url::parse("https://chat.example/hooks/T0KEN-123?key=q7w8e9").unwrap();
        let mask = mask_of(&url, Some("routing-key-1"));
        for (said, shown) in [
            ("Cannot POST /hooks/T0KEN-123", "Cannot POST ••••••"),
            ("no hook T0KEN-123, key q7w8e9", "no hook ••••••, key ••••••"),
            ("/hooks/T0KEN-123?key=q7w8e9: routing-key-1 is unknown", "••••••: •••••• is unknown"),
            ("the text has no hooks", "the text has no hooks"),
        ] {
            assert_eq!(mask.text(said), shown);
        }
        assert!(mask_of(&Url::parse("http://127.0.0.1:9000/").unwrap(), None).is_empty());
    }

    #[tokio::test]
    async fn a_command_gets_the_notice_on_its_input() {
        let folder = std::env::temp_dir().join(format!("kelos-alert-{}", std::process::id()));
        let words = ["sh", "-c", "cat > \"$0\"; echo \"$KELOS_ALERT_KEY\" >> \"$0\""].map(str::to_owned);
        let words = words.into_iter().chain([folder.display().to_string()]).collect();
        let channel = Channel { outlet: Outlet::Command(words) };
        let notice = Notice::test("run", Timestamp::UNIX_EPOCH, "ann");
        channel
            .send(&notice, &Details::default(), &Clients::new(&Trust::default()), Timestamp::UNIX_EPOCH)
            .await
            .unwrap();
        let text = std::fs::read_to_string(&folder).unwrap();
        std::fs::remove_file(&folder).unwrap();
        assert!(text.contains("\"phase\":\"test\"") && text.trim_end().ends_with(&notice.key), "{text}");
    }

    #[tokio::test]
    async fn a_command_that_fails_is_told_in_its_words() {
        let words = ["sh", "-c", "cat > /dev/null; echo no room >&2; exit 3"].map(str::to_owned).to_vec();
        let channel = Channel { outlet: Outlet::Command(words) };
        let notice = Notice::test("run", Timestamp::UNIX_EPOCH, "ann");
        let sent =
            channel.send(&notice, &Details::default(), &Clients::new(&Trust::default()), Timestamp::UNIX_EPOCH).await;
        assert_eq!(sent, Err(SendError::Away("run sh: exit status: 3: no room".to_owned())));
    }
}
