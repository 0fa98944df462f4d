//! A collector, as it is posted to.

use kelos_engine::secrets::read_secret;
use kelos_executors::http::{Http, Method, StatusCode, header, shown};
use serde_json::Value;

use crate::settings::{Collector, HeaderValue};

/// The fate of a post.
pub(crate) enum Fate {
    /// The collector has it.
    Taken,
    /// The collector refuses it, and will do so again. In words.
    Refused(String),
    /// It may be taken later. In words that complete "failed to …".
    Away(String),
}

/// Posts a document to a collector.
pub(crate) async fn post(http: &Http, collector: &Collector, document: &Value) -> Fate {
    let fail = |why: String| format!("post to {}: {why}", shown(&collector.to));
    let mut request = match http.request(Method::POST, collector.to.clone()) {
        Ok(request) => request.header(header::CONTENT_TYPE, "application/json").body(document.to_string()),
        Err(error) => return Fate::Away(fail(error.to_string())),
    };
    for (name, value) in &collector.headers {
        match value_of(value).await {
            Ok(value) => request = request.header(name, value),
            Err(why) => return Fate::Away(fail(format!("its header {name}: {why}"))),
        }
    }
    let answer = match http.send_and_hear(request).await {
        Ok(answer) => answer,
        Err(error) => return Fate::Away(fail(error.to_string())),
    };
    match answer.status {
        status if status.is_success() => Fate::Taken,
        // Whoever may not come in today may have a credential tomorrow.
        status if status.is_server_error() || may_pass(status) => Fate::Away(fail(answer.summary())),
        _ => Fate::Refused(fail(answer.summary())),
    }
}

fn may_pass(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::UNAUTHORIZED
            | StatusCode::FORBIDDEN
            | StatusCode::NOT_FOUND
            | StatusCode::METHOD_NOT_ALLOWED
            | StatusCode::REQUEST_TIMEOUT
            | StatusCode::TOO_MANY_REQUESTS
    ) || status.is_redirection()
}

async fn value_of(value: &HeaderValue) -> Result<header::HeaderValue, String> {
    let text = match value {
        HeaderValue::Plain(text) => text.clone(),
        HeaderValue::Secret { source, prefix } => {
            let read = source.clone();
            let secret = tokio::task::spawn_blocking(move || read_secret(&read)).await;
            let secret = secret.map_err(|error| error.to_string()).and_then(|secret| secret);
            format!("{prefix}{}", secret.map_err(|why| format!("the secret {source}: {why}"))?)
        }
    };
    let mut value = header::HeaderValue::try_from(text).map_err(|_| "its value has more than one line".to_owned())?;
    value.set_sensitive(true);
    Ok(value)
}
