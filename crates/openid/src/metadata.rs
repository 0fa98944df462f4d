//! The addresses and the keys that a provider publishes about itself, kept for a while.

use jiff::{SignedDuration, Timestamp};
use kelos_trust::{OpenIdSettings, ProviderError, protected};
use serde::Deserialize;
use url::Url;

use crate::claims::shown;
use crate::client::{Client, unusable};
use crate::keys::Keys;
use crate::signed::SignedToken;

/// How long addresses and keys are believed.
const BELIEVED: SignedDuration = SignedDuration::from_hours(1);
/// How often keys are asked for because a token names one that is not known.
const KEYS_EVERY: SignedDuration = SignedDuration::from_mins(1);
/// How long a provider that can't be asked is left alone.
const LEFT_ALONE: SignedDuration = SignedDuration::from_secs(5);

/// The addresses of a provider, and what it supports (OpenID Connect Discovery).
#[derive(Clone)]
pub(crate) struct Metadata {
    pub(crate) authorization: Url,
    pub(crate) token: Url,
    keys: Url,
    pub(crate) userinfo: Option<Url>,
    /// Whether a secret goes into the form, because the provider does not take it in a header.
    pub(crate) is_secret_in_form: bool,
    /// Whether each answer names its issuer.
    pub(crate) names_issuer: bool,
}

#[derive(Deserialize)]
struct Document {
    issuer: String,
    authorization_endpoint: String,
    token_endpoint: String,
    jwks_uri: String,
    userinfo_endpoint: Option<String>,
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
    #[serde(default)]
    authorization_response_iss_parameter_supported: bool,
}

/// The addresses and keys of a provider, with the moments at which they were read.
#[derive(Default)]
pub(crate) struct Knowledge {
    metadata: Option<(Metadata, Timestamp)>,
    keys: Option<(Keys, Timestamp)>,
    failed: Option<(ProviderError, Timestamp)>,
}

fn is_within(since: Timestamp, lasts: SignedDuration, now: Timestamp) -> bool {
    // A clock that was set back makes what is known no younger.
    since <= now && now.duration_since(since) < lasts
}

impl Knowledge {
    /// The addresses of the provider.
    pub(crate) async fn metadata(
        &mut self,
        client: &Client,
        settings: &OpenIdSettings,
        now: Timestamp,
    ) -> Result<Metadata, ProviderError> {
        if let Some((metadata, since)) = &self.metadata
            && is_within(*since, BELIEVED, now)
        {
            return Ok(metadata.clone());
        }
        if let Some((error, since)) = &self.failed
            && is_within(*since, LEFT_ALONE, now)
        {
            return Err(error.clone());
        }
        match discover(client, settings).await {
            Ok(metadata) => {
                (self.metadata, self.failed) = (Some((metadata.clone(), now)), None);
                Ok(metadata)
            }
            Err(error) => {
                self.failed = Some((error.clone(), now));
                Err(error)
            }
        }
    }

    /// The keys of the provider; asked for again if a token names one that is not among them.
    pub(crate) async fn keys(
        &mut self,
        client: &Client,
        metadata: &Metadata,
        token: &SignedToken<'_>,
        now: Timestamp,
    ) -> Result<&Keys, ProviderError> {
        let is_enough = self.keys.as_ref().is_some_and(|(keys, since)| {
            is_within(*since, BELIEVED, now) && (token.is_known(keys) || is_within(*since, KEYS_EVERY, now))
        });
        if !is_enough {
            let document = client.document(&metadata.keys).await?;
            let keys = Keys::of(&document).map_err(|why| unusable(&metadata.keys, why))?;
            self.keys = Some((keys, now));
        }
        self.keys.as_ref().map(|(keys, _)| keys).ok_or_else(|| unusable(&metadata.keys, "it has no keys".to_owned()))
    }
}

async fn discover(client: &Client, settings: &OpenIdSettings) -> Result<Metadata, ProviderError> {
    let address = format!("{}/.well-known/openid-configuration", settings.issuer.trim_end_matches('/'));
    let address = protected(&address).map_err(|why| ProviderError::Unusable(format!("the issuer {why}")))?;
    let document = client.document(&address).await?;
    let document = serde_path_to_error::deserialize::<_, Document>(document)
        .map_err(|error| unusable(&address, shown(&error.to_string())))?;
    if document.issuer != settings.issuer {
        let why = format!(
            "it names itself \"{}\", expected \"{}\", the \"issuer\" of the settings, letter by letter",
            shown(&document.issuer),
            settings.issuer
        );
        return Err(unusable(&address, why));
    }
    let endpoint = |name: &str, text: &str| {
        protected(text).map_err(|why| unusable(&address, format!("its \"{name}\" {}", shown(&why))))
    };
    let takes = |method: &str| {
        document.token_endpoint_auth_methods_supported.as_ref().map(|all| all.iter().any(|one| one == method))
    };
    Ok(Metadata {
        authorization: endpoint("authorization_endpoint", &document.authorization_endpoint)?,
        token: endpoint("token_endpoint", &document.token_endpoint)?,
        keys: endpoint("jwks_uri", &document.jwks_uri)?,
        userinfo: match &document.userinfo_endpoint {
            Some(text) => Some(endpoint("userinfo_endpoint", text)?),
            None => None,
        },
        is_secret_in_form: takes("client_secret_basic") == Some(false) && takes("client_secret_post") == Some(true),
        names_issuer: document.authorization_response_iss_parameter_supported,
    })
}
