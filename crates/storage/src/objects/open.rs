//! Opening buckets: servers and credentials.

use http::{Request, Response};
use opendal::services::{Azdls, Gcs, S3};
use opendal::{Buffer, Error, ErrorKind, HttpBody, HttpTransport, HttpTransporter, OperationContext, Operator};
use opendal_http_transport_reqwest::ReqwestTransport;

use super::Objects;
use crate::Secret;
use crate::java::first_line;

/// The default region, which AWS's older tools have, too.
const REGION: &str = "us-east-1";

/// The endpoint and the credentials of S3.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct S3Settings {
    /// Another store with S3's API: `AWS_ENDPOINT_URL_S3`, else `AWS_ENDPOINT_URL`.
    pub endpoint: Option<String>,
    /// The region: `AWS_REGION`, else `AWS_DEFAULT_REGION`, else that of the profile.
    pub region: Option<String>,
    /// Keys that replace those that AWS's own tools would find.
    pub keys: Option<S3Keys>,
    /// Whether requests are not signed, for public buckets: `KELOS_S3_ANONYMOUS=true`.
    pub is_anonymous: bool,
}

/// A key and its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct S3Keys {
    /// The access key's id.
    pub id: String,
    /// Its secret.
    pub secret: Secret,
}

/// The endpoint of Google's storage.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GcsSettings {
    /// An emulator, which needs no credentials: `STORAGE_EMULATOR_HOST`.
    pub emulator: Option<String>,
}

/// The endpoint and the credentials of Azure. Missing ones are found in the same way as by Azure's own tools.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AzureSettings {
    /// An emulator in place of `https://ACCOUNT.dfs.core.windows.net`.
    pub endpoint: Option<String>,
    /// The key of the account: `AZURE_STORAGE_ACCOUNT_KEY`, else `AZURE_STORAGE_KEY`.
    pub account_key: Option<Secret>,
    /// The shared access signature: `AZURE_STORAGE_SAS_TOKEN`.
    pub sas_token: Option<Secret>,
    /// A client's tenant, id and secret: `AZURE_TENANT_ID`, `AZURE_CLIENT_ID` and `AZURE_CLIENT_SECRET`.
    pub client: Option<(String, String, Secret)>,
}

impl S3Settings {
    /// Reads the settings from the environment.
    #[must_use]
    pub fn from_env() -> Self {
        let anonymous = crate::environment::text("KELOS_S3_ANONYMOUS");
        Self {
            endpoint: crate::environment::first(&["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"]),
            region: crate::environment::first(&["AWS_REGION", "AWS_DEFAULT_REGION"]).or_else(region_of_profile),
            keys: None,
            is_anonymous: anonymous.is_some_and(|value| value == "true" || value == "1"),
        }
    }
}

impl AzureSettings {
    /// Reads the settings from the environment.
    #[must_use]
    pub fn from_env() -> Self {
        let text = crate::environment::text;
        let client =
            || Some((text("AZURE_TENANT_ID")?, text("AZURE_CLIENT_ID")?, Secret(text("AZURE_CLIENT_SECRET")?)));
        Self {
            endpoint: None,
            account_key: crate::environment::first(&["AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_KEY"]).map(Secret),
            sas_token: text("AZURE_STORAGE_SAS_TOKEN").map(Secret),
            client: client(),
        }
    }
}

/// The region of the active profile in AWS's own configuration.
fn region_of_profile() -> Option<String> {
    let file = crate::environment::text("AWS_CONFIG_FILE")
        .or_else(|| Some(format!("{}/.aws/config", crate::environment::text("HOME")?)))?;
    let profile = crate::environment::text("AWS_PROFILE").unwrap_or_else(|| "default".to_owned());
    region_in(&std::fs::read_to_string(file).ok()?, &profile)
}

fn region_in(config: &str, profile: &str) -> Option<String> {
    let is_heading = |line: &str| {
        let name = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')).map(str::trim);
        name.is_some_and(|name| name.strip_prefix("profile ").map_or(name, str::trim) == profile)
    };
    let mut lines = config.lines().map(str::trim).skip_while(|line| !is_heading(line)).skip(1);
    let of_profile = lines.by_ref().take_while(|line| !line.starts_with('['));
    let mut pairs = of_profile.filter_map(|line| line.split_once('='));
    pairs.find(|(name, _)| name.trim() == "region").map(|(_, value)| value.trim().to_owned())
}

/// Opens a bucket of S3, or of another store with its API.
pub(crate) fn s3(bucket: &str, settings: &S3Settings, client: reqwest::Client) -> Result<Objects, String> {
    let region = settings.region.as_deref().unwrap_or(REGION);
    let mut builder = S3::default().bucket(bucket).region(region);
    if let Some(endpoint) = &settings.endpoint {
        builder = builder.endpoint(endpoint);
    }
    if let Some(keys) = &settings.keys {
        builder = builder.access_key_id(&keys.id).secret_access_key(&keys.secret.0);
    }
    if settings.is_anonymous {
        builder = builder.skip_signature();
    }
    Ok(objects(format!("s3://{bucket}"), Operator::new(builder).map_err(words)?, client))
}

/// Opens a bucket of Google's storage.
pub(crate) fn gcs(bucket: &str, settings: &GcsSettings, client: reqwest::Client) -> Result<Objects, String> {
    let mut builder = Gcs::default().bucket(bucket);
    if let Some(emulator) = &settings.emulator {
        let is_url = emulator.starts_with("http");
        let endpoint = if is_url { emulator.clone() } else { format!("http://{emulator}") };
        builder = builder.endpoint(&endpoint).skip_signature();
    }
    Ok(objects(format!("gs://{bucket}"), Operator::new(builder).map_err(words)?, client))
}

/// Opens a container of Azure: `CONTAINER@ACCOUNT.dfs.core.windows.net`.
pub(crate) fn azure(authority: &str, settings: &AzureSettings, client: reqwest::Client) -> Result<Objects, String> {
    let (container, host) = authority.split_once('@').unwrap_or((authority, ""));
    let account = host.split('.').next().unwrap_or_default();
    let endpoint = settings.endpoint.clone().unwrap_or_else(|| format!("https://{host}"));
    let mut builder = Azdls::default().filesystem(container).endpoint(&endpoint).account_name(account);
    if let Some(key) = &settings.account_key {
        builder = builder.account_key(&key.0);
    }
    if let Some(token) = &settings.sas_token {
        builder = builder.sas_token(&token.0);
    }
    if let Some((tenant, id, secret)) = &settings.client {
        builder = builder.tenant_id(tenant).client_id(id).client_secret(&secret.0);
    }
    Ok(objects(format!("abfs://{authority}"), Operator::new(builder).map_err(words)?, client))
}

/// A transport that refuses a web page in place of a list, which would be read as an empty one.
struct NoPages(ReqwestTransport);

impl HttpTransport for NoPages {
    async fn fetch(&self, request: Request<Buffer>) -> opendal::Result<Response<HttpBody>> {
        let is_list = request.uri().query().is_some_and(|query| query.contains("list-type="));
        let response = self.0.fetch(request).await?;
        let kind = response.headers().get("content-type").and_then(|kind| kind.to_str().ok());
        if is_list && response.status().is_success() && kind.is_some_and(|kind| kind.starts_with("text/html")) {
            return Err(Error::new(ErrorKind::Unexpected, "<html>"));
        }
        Ok(response)
    }
}

fn objects(endpoint: String, operator: Operator, client: reqwest::Client) -> Objects {
    let transport = HttpTransporter::new(NoPages(ReqwestTransport::new(client)));
    Objects::new(endpoint, operator.with_context(OperationContext::new().with_http_transport(transport)))
}

fn words(error: opendal::Error) -> String {
    first_line(error.message())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_is_that_of_the_profile() {
        let config = "[default]\nregion = eu-west-1\n[profile other]\noutput=json\nregion=us-west-2\n[profile none]\n";
        assert_eq!(region_in(config, "default").as_deref(), Some("eu-west-1"));
        assert_eq!(region_in(config, "other").as_deref(), Some("us-west-2"));
        assert_eq!(region_in(config, "none"), None);
        assert_eq!(region_in(config, "absent"), None);
    }

    #[test]
    fn secrets_are_not_shown() {
        let keys = S3Keys { id: "AK".to_owned(), secret: Secret("geheim".to_owned()) };
        assert!(!format!("{keys:?}").contains("geheim"));
    }
}
