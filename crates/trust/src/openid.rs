//! The settings of sign-in by OpenID Connect.

use kelos_model::secret::{DeclaredSecret, SecretSource};
use serde::Deserialize;
use serde_json::Value;
use url::{Host, Url};

/// The settings of a provider of OpenID Connect at which people sign in.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct OpenIdSettings {
    /// The address of the provider, exactly as it names itself.
    pub issuer: String,
    /// The name under which this server is registered there.
    pub client_id: String,
    /// The place of the secret of that name; none for a client that has none.
    pub client_secret: Option<SecretPlace>,
    /// The address of this server as browsers know it.
    pub public_address: String,
    /// The claim with the name of the person.
    #[serde(default = "name_claim")]
    pub name_claim: String,
    /// The claim with the person's groups.
    #[serde(default = "groups_claim")]
    pub groups_claim: String,
    /// The scopes that are asked for, beside `openid`.
    #[serde(default = "scopes")]
    pub scopes: Vec<String>,
}

/// A secret, by its place: it is never in the file of settings itself.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Value")]
pub struct SecretPlace(pub SecretSource);

impl TryFrom<Value> for SecretPlace {
    type Error = String;

    fn try_from(value: Value) -> Result<SecretPlace, String> {
        match DeclaredSecret::of(&value) {
            Some(Ok(declared)) if declared.prefix.is_empty() => Ok(SecretPlace(declared.source)),
            Some(Err(why)) => Err(why),
            _ => Err(
                "\"clientSecret\" is no secret by its place, expected {\"secret\": \"env:NAME\"}, or file: or exec:"
                    .to_owned(),
            ),
        }
    }
}

fn name_claim() -> String {
    "preferred_username".to_owned()
}

fn groups_claim() -> String {
    "groups".to_owned()
}

fn scopes() -> Vec<String> {
    vec!["profile".to_owned(), "email".to_owned()]
}

impl OpenIdSettings {
    /// Whether they can be used.
    ///
    /// # Errors
    /// The mistake, and what was expected.
    pub fn check(&self) -> Result<(), String> {
        let fail = |name: &str, why: String| Err(format!("\"{name}\" of \"openid\" {why}"));
        if let Err(why) = protected(&self.issuer).and_then(bare) {
            return fail("issuer", why);
        }
        match protected(&self.public_address).and_then(bare) {
            Err(why) => return fail("publicAddress", why),
            Ok(address) if address.path() != "/" => {
                return fail(
                    "publicAddress",
                    "has a path, expected the address alone: https://kelos.example".to_owned(),
                );
            }
            Ok(_) => {}
        }
        for (name, text) in
            [("clientId", &self.client_id), ("nameClaim", &self.name_claim), ("groupsClaim", &self.groups_claim)]
        {
            if text.is_empty() {
                return fail(name, "is empty".to_owned());
            }
        }
        // By RFC 6749, 3.3.
        let fits = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\';
        match self.scopes.iter().find(|scope| scope.is_empty() || !scope.bytes().all(fits)) {
            Some(scope) => {
                fail("scopes", format!("has \"{}\", expected words such as \"email\"", scope.escape_debug()))
            }
            None => Ok(()),
        }
    }

    /// The address to which the provider sends people back.
    #[must_use]
    pub fn callback(&self) -> String {
        format!("{}/ui/sign-in/openid/callback", self.public_address.trim_end_matches('/'))
    }
}

/// An address to which secrets may be sent: one with TLS, or one of this machine.
///
/// # Errors
/// The mistake, and what was expected; a fragment after its name.
pub fn protected(text: &str) -> Result<Url, String> {
    let expected = "expected an address such as https://login.example";
    let url = Url::parse(text).map_err(|error| format!("is no address: {error}, {expected}"))?;
    let is_local = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    };
    match url.scheme() {
        "https" => {}
        "http" if is_local => {}
        "http" => return Err(format!("has no TLS, which is for addresses of this machine alone: {expected}")),
        other => return Err(format!("begins with {other}:, {expected}")),
    }
    Ok(url)
}

/// An address of a host and a path.
fn bare(url: Url) -> Result<Url, String> {
    let has_more =
        !url.username().is_empty() || url.password().is_some() || url.query().is_some() || url.fragment().is_some();
    if has_more { Err("has more than a host and a path, expected these alone".to_owned()) } else { Ok(url) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::rules::Rules;

    fn parsed(changes: &Value) -> Result<OpenIdSettings, String> {
        let mut openid =
            json!({"issuer": "https://login.example", "clientId": "kelos", "publicAddress": "https://kelos.example"});
        for (name, value) in changes.as_object().expect("changes") {
            openid[name] = value.clone();
        }
        let text = json!({"access": {"openid": openid}}).to_string();
        let rules = Rules::parse(&text).map_err(|error| error.to_string())?.expect("rules");
        Ok(rules.openid.expect("openid"))
    }

    #[test]
    fn settings_are_read_with_their_defaults() {
        let settings = parsed(&json!({"clientSecret": {"secret": "env:SECRET"}})).expect("settings");
        assert_eq!(settings.client_secret, Some(SecretPlace(SecretSource::Env("SECRET".to_owned()))));
        assert_eq!(settings.name_claim, "preferred_username");
        assert_eq!(settings.callback(), "https://kelos.example/ui/sign-in/openid/callback");
        let local = json!({"issuer": "http://127.0.0.1:8080/realms/x", "publicAddress": "http://localhost:7437/"});
        assert_eq!(parsed(&local).expect("settings").callback(), "http://localhost:7437/ui/sign-in/openid/callback");
    }

    #[test]
    fn mistakes_are_told() {
        for (changes, told) in [
            (json!({"issuer": "http://login.example"}), "\"issuer\" of \"openid\" has no TLS"),
            (json!({"issuer": "login.example"}), "\"issuer\" of \"openid\" is no address"),
            (json!({"issuer": "ftp://login.example"}), "begins with ftp:"),
            (json!({"issuer": "https://a:b@login.example"}), "more than a host and a path"),
            (json!({"publicAddress": "https://kelos.example/kelos"}), "\"publicAddress\" of \"openid\" has a path"),
            (json!({"publicAddress": "http://kelos.example"}), "\"publicAddress\" of \"openid\" has no TLS"),
            (json!({"clientId": ""}), "\"clientId\" of \"openid\" is empty"),
            (json!({"scopes": ["a b"]}), "\"scopes\" of \"openid\" has \"a b\""),
            (json!({"client": "x"}), "unknown field `client`"),
        ] {
            let error = parsed(&changes).expect_err(told);
            assert!(error.contains(told), "{error}");
        }
    }

    #[test]
    fn a_secret_in_the_file_is_refused_and_not_repeated() {
        for secret in [json!("hunter2"), json!({"secret": "hunter2"}), json!({"env": "hunter2"})] {
            let error = parsed(&json!({"clientSecret": secret})).expect_err("a refusal");
            assert!(error.contains("expected") && !error.contains("hunter2"), "{error}");
        }
    }
}
