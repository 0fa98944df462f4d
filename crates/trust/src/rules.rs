//! The rules of a server beside its users and tokens: address ranges, a trusted proxy, a provider, groups, certificates.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;
use serde::Deserialize;

use crate::grant::{Grant, Grants};
use crate::openid::OpenIdSettings;

/// The rules of access, in the file of a server's settings. Without any, only users and tokens come in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Rules {
    /// Requests without a credential that come in by their address, the first that fits.
    pub addresses: Vec<AddressRule>,
    /// The headers of a proxy that signs people in.
    pub proxy: Option<ForwardedHeaders>,
    /// The provider of OpenID Connect at which people sign in.
    pub openid: Option<OpenIdSettings>,
    /// The roles of groups that a proxy or a provider names.
    pub groups: BTreeMap<String, Vec<Grant>>,
    /// The roles of client certificates, by a name in them.
    pub certificates: BTreeMap<String, Vec<Grant>>,
    /// The projects whose changes need a reason; `*` for all.
    #[serde(rename = "reasons")]
    pub reasons_for: Vec<String>,
}

/// Requests without a credential that come in by their address.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AddressRule {
    /// The addresses.
    pub from: IpNet,
    /// The name that the log has for them.
    pub name: String,
    /// Their roles.
    pub roles: Vec<Grant>,
}

/// The headers by which a trusted proxy says who it signed in.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ForwardedHeaders {
    /// The addresses of the proxy. The headers of others don't count.
    pub from: Vec<IpNet>,
    /// The header with the name of the person.
    #[serde(default = "user_header")]
    pub user: String,
    /// The header with their groups, separated by commas.
    #[serde(default = "groups_header")]
    pub groups: String,
}

fn user_header() -> String {
    "x-forwarded-user".to_owned()
}

fn groups_header() -> String {
    "x-forwarded-groups".to_owned()
}

/// The error of rules that can't be used. Completes "failed to …".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("read \"access\": {0}")]
pub struct RulesError(String);

/// The part of the file of settings that is about access; the rest is read elsewhere.
#[derive(Deserialize)]
struct File {
    #[serde(default)]
    access: Option<Rules>,
}

impl Rules {
    /// The rules in the text of a file of settings; none where it has none.
    ///
    /// # Errors
    /// The mistake in them, and what was expected.
    pub fn parse(text: &str) -> Result<Option<Rules>, RulesError> {
        let file: File = serde_json::from_str(text).map_err(|error| {
            RulesError(format!(
                "{error}; expected {{\"addresses\": [{{\"from\": \"10.0.0.0/8\", \"name\": \"…\", \"roles\": [\"view\"]}}], \"groups\": \
                 {{\"…\": [\"operate@…\"]}}}}"
            ))
        })?;
        let Some(rules) = file.access else { return Ok(None) };
        for header in rules.proxy.iter().flat_map(|proxy| [&proxy.user, &proxy.groups]) {
            let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
            if header.is_empty() || !header.bytes().all(fits) {
                return Err(RulesError(format!("\"{header}\" is no name of a header")));
            }
        }
        if let Some(rule) = rules.addresses.iter().find(|rule| rule.from.prefix_len() == 0) {
            let why =
                format!("the addresses {} are all there are; give people and machines accounts instead", rule.from);
            return Err(RulesError(why));
        }
        if let Some(openid) = &rules.openid {
            openid.check().map_err(RulesError)?;
        }
        let named = rules.groups.values().chain(rules.certificates.values()).flatten();
        let roles = rules.addresses.iter().flat_map(|rule| &rule.roles).chain(named);
        roles.into_iter().try_for_each(Grant::check).map_err(|error| RulesError(format!("failed to {error}")))?;
        Ok(Some(rules))
    }

    /// The first rule for an address.
    #[must_use]
    pub fn of_address(&self, address: IpAddr) -> Option<&AddressRule> {
        self.addresses.iter().find(|rule| rule.from.contains(&address))
    }

    /// The proxy whose headers count for a request from this address.
    #[must_use]
    pub fn proxy_at(&self, address: IpAddr) -> Option<&ForwardedHeaders> {
        self.proxy.as_ref().filter(|proxy| proxy.from.iter().any(|range| range.contains(&address)))
    }

    /// The roles of somebody who is in these groups.
    #[must_use]
    pub fn of_groups<'a>(&self, groups: impl IntoIterator<Item = &'a str>) -> Vec<Grant> {
        groups.into_iter().filter_map(|group| self.groups.get(group)).flatten().cloned().collect()
    }

    /// Those of these groups that have roles.
    #[must_use]
    pub fn known_groups(&self, groups: Vec<String>) -> Vec<String> {
        groups.into_iter().filter(|group| self.groups.contains_key(group)).collect()
    }

    /// The rights of a client certificate with these names, and the name that gave them.
    #[must_use]
    pub fn of_certificate<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Option<(&'a str, Grants)> {
        names.into_iter().find_map(|name| Some((name, Grants::of(self.certificates.get(name)?.clone()))))
    }

    /// Whether changes of a project need a reason.
    #[must_use]
    pub fn needs_reason(&self, project: &str) -> bool {
        self.reasons_for.iter().any(|named| named == "*" || named == project)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::right::Right;

    #[test]
    fn rules_are_read_with_their_defaults() {
        let text = r#"{"groups": [], "access": {
            "addresses": [{"from": "10.1.0.0/16", "name": "hadoop", "roles": ["operate@celos"]}],
            "proxy": {"from": ["127.0.0.1/32", "::1/128"]},
            "groups": {"data": ["author@a", "view"]}, "certificates": {"w1": ["worker"]}, "reasons": ["a"]}}"#;
        let rules = Rules::parse(text).expect("rules").expect("some");
        assert_eq!(rules.of_address("10.1.2.3".parse().unwrap()).map(|rule| rule.name.as_str()), Some("hadoop"));
        assert!(rules.of_address("10.2.2.3".parse().unwrap()).is_none());
        assert_eq!(rules.proxy_at("::1".parse().unwrap()).map(|proxy| proxy.user.as_str()), Some("x-forwarded-user"));
        assert!(rules.proxy_at("10.0.0.1".parse().unwrap()).is_none());
        assert_eq!(rules.of_groups(["x", "data"]).len(), 2);
        assert!(rules.of_certificate(["w0", "w1"]).expect("a name").1.allow(Right::Work, None));
        assert!(rules.needs_reason("a") && !rules.needs_reason("b"));
        assert_eq!(Rules::parse("{}"), Ok(None));
    }

    #[test]
    fn mistakes_are_told() {
        for (access, told) in [
            (r#"{"adresses": []}"#, "unknown field `adresses`"),
            (r#"{"addresses": [{"from": "10.0.0.0/40", "name": "x", "roles": []}]}"#, "expected"),
            (r#"{"addresses": [{"from": "0.0.0.0/0", "name": "x", "roles": ["admin"]}]}"#, "all there are"),
            (r#"{"groups": {"a": ["owner"]}}"#, "expected one of view, operate"),
            (r#"{"proxy": {"from": [], "user": "a b"}}"#, "\"a b\" is no name of a header"),
        ] {
            let error = Rules::parse(&format!("{{\"access\": {access}}}")).expect_err(access).to_string();
            assert!(error.contains(told), "{error}");
        }
    }
}
