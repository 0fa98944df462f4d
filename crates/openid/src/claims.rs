//! The claims of an ID token: whether they are meant for this server and this visit, and what they say of the person.

use jiff::Timestamp;
use kelos_trust::{OpenIdSettings, Person, ProviderError, same};
use serde_json::{Map, Value};

/// How far the clocks of the provider and of this server may be apart, in seconds.
const SKEW: i64 = 60;
/// How much of a text of the provider is shown, in characters.
const SHOWN: usize = 200;

pub(crate) fn refused(why: impl Into<String>) -> ProviderError {
    ProviderError::Refused(why.into())
}

/// A text of the provider, as it may be shown: short, and without characters that can't be seen.
pub(crate) fn shown(text: &str) -> String {
    text.chars().take(SHOWN).flat_map(char::escape_debug).collect()
}

/// Checks that an ID token is the provider's, for this server, of now and for this visit (OpenID Connect Core, 3.1.3.7).
///
/// # Errors
/// When it is not.
pub(crate) fn check(
    claims: &Map<String, Value>,
    settings: &OpenIdSettings,
    nonce: &str,
    now: Timestamp,
) -> Result<(), ProviderError> {
    let text = |name: &str| claims.get(name).and_then(Value::as_str);
    if text("iss") != Some(&settings.issuer) {
        let other = shown(text("iss").unwrap_or_default());
        return Err(refused(format!("the ID token is of the issuer \"{other}\", expected \"{}\"", settings.issuer)));
    }
    let own = settings.client_id.as_str();
    let is_for_us = match claims.get("aud") {
        Some(Value::String(audience)) => audience == own,
        // With more than one, the token must have been asked for by this server.
        Some(Value::Array(all)) => {
            all.iter().any(|audience| audience == own) && (all.len() == 1 || text("azp").is_some())
        }
        _ => false,
    };
    if !is_for_us || claims.get("azp").is_some_and(|azp| azp != own) {
        return Err(refused(format!("the ID token is for another client than \"{own}\"")));
    }
    if text("sub").is_none_or(str::is_empty) {
        return Err(refused("the ID token has no subject"));
    }
    let now = now.as_second();
    let second = |name: &str| {
        let number = claims.get(name)?;
        // Some providers write fractions.
        #[expect(clippy::cast_possible_truncation, reason = "it is a moment in seconds")]
        number.as_i64().or_else(|| number.as_f64().map(|number| number as i64))
    };
    let end = second("exp").ok_or_else(|| refused("the ID token has no end (\"exp\")"))?;
    if end.saturating_add(SKEW) <= now {
        return Err(refused(
            "the ID token has expired: sign in again, or compare the clocks of this server and of the provider",
        ));
    }
    let issued = second("iat").ok_or_else(|| refused("the ID token does not say when it was issued (\"iat\")"))?;
    if issued.max(second("nbf").unwrap_or(issued)).saturating_sub(SKEW) > now {
        return Err(refused("the ID token is of the future: compare the clocks of this server and of the provider"));
    }
    if !text("nonce").is_some_and(|own| same(own.as_bytes(), nonce.as_bytes())) {
        return Err(refused("the ID token belongs to another sign-in (\"nonce\")"));
    }
    Ok(())
}

/// The person of whom claims speak.
///
/// # Errors
/// When they don't say the name, or something else in its place or that of the groups.
pub(crate) fn person(claims: &Map<String, Value>, settings: &OpenIdSettings) -> Result<Person, ProviderError> {
    let claim = settings.name_claim.as_str();
    let name = match claims.get(claim) {
        Some(Value::String(name)) => name.clone(),
        Some(_) => return Err(refused(format!("the claim \"{claim}\" is no text, expected the name of a person"))),
        None => {
            let told = "the provider does not tell your name: it has no claim";
            return Err(refused(format!("{told} \"{claim}\" (\"nameClaim\" and \"scopes\" of this server choose it)")));
        }
    };
    // Where addresses are not verified, anybody may have entered that of somebody else.
    if claim == "email" && claims.get("email_verified") != Some(&Value::Bool(true)) {
        return Err(refused("the provider has not verified your address, or does not say so (\"email_verified\")"));
    }
    let claim = settings.groups_claim.as_str();
    let expected = || refused(format!("the claim \"{claim}\" is no list of texts, expected the names of groups"));
    let groups = match claims.get(claim) {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::String(group)) => vec![group.clone()],
        Some(Value::Array(groups)) => {
            let all = groups.iter().map(|group| group.as_str().map(str::to_owned));
            all.collect::<Option<Vec<String>>>().ok_or_else(expected)?
        }
        Some(_) => return Err(expected()),
    };
    Ok(Person { name, groups })
}

/// Adds what the provider tells of a person beside the ID token, if it is the same person.
///
/// # Errors
/// When it is another.
pub(crate) fn complete(claims: &mut Map<String, Value>, told: Value) -> Result<(), ProviderError> {
    let Value::Object(told) = told else {
        return Err(refused("the provider tells no claims of the person, expected an object"));
    };
    // One that tells less about the subject could be of anybody (OpenID Connect Core, 5.3.2).
    if told.get("sub").is_none_or(|sub| Some(sub) != claims.get("sub")) {
        return Err(refused("the provider tells claims of another person than the one who signed in"));
    }
    for (name, value) in told {
        claims.entry(name).or_insert(value);
    }
    Ok(())
}
