//! The places to which checkpoints are sent.

use std::fmt;

use kelos_executors::http::{Http, Method, Url, shown};
use kelos_storage::{Place, Storage};

use crate::checkpoint::Checkpoint;

/// The largest object that is compared with a checkpoint.
const LARGEST_OBJECT: u64 = 64 << 10;

/// A place to which checkpoints are sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    /// A folder in which each is an object of its own, by its URI.
    Folder(String),
    /// An address to which each is posted.
    Webhook(Url),
}

impl Target {
    /// Reads the URI of a folder, an absolute path, or the address of a webhook.
    pub(crate) fn read(text: &str) -> Result<Target, String> {
        const EXPECTED: &str = "expected a URI of a folder such as s3://bucket/folder, an absolute path, or the https: address of a webhook";
        let scheme = text.split_once(':').map_or("", |(scheme, _)| scheme).to_ascii_lowercase();
        if scheme == "http" || scheme == "https" {
            let url = Url::parse(text).map_err(|error| format!("{error}; {EXPECTED}"))?;
            return match url.username().is_empty() && url.password().is_none() {
                true => Ok(Target::Webhook(url)),
                false => Err("a name or password does not belong in a URL: it would be seen in logs".to_owned()),
            };
        }
        if !text.starts_with('/') && !text.contains("://") {
            return Err(EXPECTED.to_owned());
        }
        let whole = text.trim_end_matches('/');
        Ok(Target::Folder(if whole.is_empty() || whole.ends_with(':') { text } else { whole }.to_owned()))
    }

    /// A text of the file for a message, without what might be a password.
    pub(crate) fn safe(text: &str) -> String {
        match Url::parse(text) {
            Ok(url) if url.has_host() => shown(&url),
            _ => text.to_owned(),
        }
    }

    /// Delivers a checkpoint. One that is there already is delivered. Errors complete "failed to …".
    pub(crate) async fn deliver(&self, checkpoint: &Checkpoint, storage: &Storage, http: &Http) -> Result<(), String> {
        match self {
            Target::Folder(folder) => {
                let place = storage.place(folder).map_err(|error| error.to_string())?;
                add_object(&place, checkpoint).await
            }
            Target::Webhook(url) => post(url, checkpoint, http).await,
        }
    }
}

/// Adds the object of a checkpoint to a folder, and replaces none.
async fn add_object(place: &Place, checkpoint: &Checkpoint) -> Result<(), String> {
    let path = format!("{}/{}", place.path.trim_end_matches('/'), checkpoint.object_name());
    let words = |error: kelos_storage::StorageError| error.to_string();
    if place.files.stat(&path).await.map_err(words)?.is_some() {
        let bytes = place.files.read(&path, LARGEST_OBJECT).await.map_err(words)?;
        let is_same = Checkpoint::read(&String::from_utf8_lossy(&bytes)).is_ok_and(|found| {
            (found.turn, found.digest, found.key) == (checkpoint.turn, checkpoint.digest, checkpoint.key)
        });
        return if is_same {
            Ok(())
        } else {
            Err(format!("write {path}: something else is there, and nothing is replaced"))
        };
    }
    let content = format!("{}\n", checkpoint.json());
    place.files.put(&path, &mut content.as_bytes()).await.map_err(words)
}

async fn post(url: &Url, checkpoint: &Checkpoint, http: &Http) -> Result<(), String> {
    let fail = |why: String| format!("post to {}: {why}", shown(url));
    let request = http.request(Method::POST, url.clone()).map_err(|error| fail(error.to_string()))?;
    let answer = http.send_and_hear(request.json(&checkpoint.json())).await.map_err(|error| fail(error.to_string()))?;
    if answer.status.is_success() { Ok(()) } else { Err(fail(answer.summary())) }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Folder(folder) => f.write_str(folder),
            Target::Webhook(url) => f.write_str(&shown(url)),
        }
    }
}
