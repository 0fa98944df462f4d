//! The HTTP client for providers: small answers, in time, from where they were asked for.

use std::error::Error;
use std::time::Duration;

use kelos_tls::{Trust, explain};
use kelos_trust::ProviderError;
use reqwest::{RequestBuilder, StatusCode, header};
use serde_json::Value;
use url::Url;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Largest answer.
const LARGEST: usize = 1 << 20;

/// The client of a provider.
pub(crate) struct Client(reqwest::Client);

/// An answer of a provider.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) kind: String,
    body: Vec<u8>,
}

impl Client {
    /// A client that trusts servers so.
    ///
    /// # Errors
    /// When it can't be set up. The message completes "failed to …".
    pub(crate) fn new(trust: &Trust) -> Result<Client, String> {
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(trust.config())
            .user_agent(concat!("kelos/", env!("CARGO_PKG_VERSION")))
            .default_headers(
                [(header::ACCEPT_ENCODING, header::HeaderValue::from_static("identity"))].into_iter().collect(),
            )
            .timeout(PATIENCE)
            // An answer from elsewhere is none of the provider's.
            .redirect(reqwest::redirect::Policy::none())
            .build();
        client.map(Client).map_err(|error| format!("set up the HTTP client for OpenID Connect: {}", cause(&error)))
    }

    /// Reads a document of the provider.
    pub(crate) async fn document(&self, address: &Url) -> Result<Value, ProviderError> {
        let answer = self.send(address, self.0.get(address.clone())).await?;
        match answer.status {
            StatusCode::OK => answer.json(address),
            status => Err(unusable(address, format!("it answered {status}"))),
        }
    }

    /// Reads what the provider tells about the person to whom an access token belongs.
    pub(crate) async fn told(&self, address: &Url, token: &str) -> Result<Answer, ProviderError> {
        self.send(address, self.0.get(address.clone()).bearer_auth(token)).await
    }

    /// Sends a form, with a name and a secret where there are some.
    pub(crate) async fn form(
        &self,
        address: &Url,
        form: String,
        login: Option<(&str, &str)>,
    ) -> Result<Answer, ProviderError> {
        let request = self.0.post(address.clone()).header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
        let request = match login {
            Some((name, secret)) => request.basic_auth(encoded(name), Some(encoded(secret))),
            None => request,
        };
        self.send(address, request.body(form)).await
    }

    async fn send(&self, address: &Url, request: RequestBuilder) -> Result<Answer, ProviderError> {
        let failed = |error: reqwest::Error| unusable(address, cause(&error));
        let mut response = request.header(header::ACCEPT, "application/json").send().await.map_err(failed)?;
        let kind = response.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let mut answer =
            Answer { status: response.status(), kind: kind.unwrap_or_default().to_owned(), body: Vec::new() };
        while let Some(chunk) = response.chunk().await.map_err(failed)? {
            if answer.body.len() + chunk.len() > LARGEST {
                return Err(unusable(address, format!("its answer has more than {LARGEST} bytes")));
            }
            answer.body.extend_from_slice(&chunk);
        }
        Ok(answer)
    }
}

impl Answer {
    /// The answer as JSON.
    pub(crate) fn json(&self, address: &Url) -> Result<Value, ProviderError> {
        // The body is not repeated: it may have a token.
        serde_json::from_slice(&self.body).map_err(|_| unusable(address, "its answer is no JSON".to_owned()))
    }
}

/// The error of an address of the provider that can't be used.
pub(crate) fn unusable(address: &Url, why: String) -> ProviderError {
    let mut shown = address.clone();
    shown.set_query(None);
    ProviderError::Unusable(format!("the provider can't be asked at {shown}: {why}"))
}

/// A name or a secret of a client, by RFC 6749, 2.3.1.
fn encoded(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

/// The cause of an error, which says more than the error itself.
fn cause(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return format!("no answer within {} s", PATIENCE.as_secs());
    }
    if let Some(distrust) = explain(error) {
        return distrust.to_string();
    }
    let mut cause: &dyn Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}
