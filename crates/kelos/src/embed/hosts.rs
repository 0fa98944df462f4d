//! Rates by host, for functions that call services over HTTP with whatever client they like.

use std::collections::BTreeMap;

use super::platform::{Platform, PlatformUse, Rate};

/// A host that has no rate. Messages complete "failed to …".
///
/// ```
/// # use std::time::Duration;
/// # use kelos::embed::{Hosts, Rate};
/// let hosts = Hosts::new();
/// assert!(hosts.of("https://api.crm.example/customers").is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// The text is no URL with a host.
    #[error("find the host of \"{0}\": expected a URL such as https://api.crm.com/v1")]
    Url(String),
    /// Nothing says how fast it may be called.
    #[error("find the rate of {0}: add `.host(\"{0}\", rate)` or `.otherwise(rate)`")]
    Unknown(String),
}

/// The rates of hosts: how fast each may be called. A job [may use](super::Job::may_use) all of them, and takes a token for each call.
///
/// ```
/// use std::time::Duration;
/// use kelos::embed::{Context, Hosts, Project, Rate, job};
///
/// async fn sync(context: Context, customer: u32, hosts: Hosts) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
///     let url = format!("https://api.crm.com/customers/{customer}");
///     let _call = context.on(hosts.of(&url)?).await?;
///     // client.get(&url).send().await?
///     Ok(())
/// }
///
/// let hosts = Hosts::new()
///     .host("api.crm.com", Rate::new("crm-api", 60, Duration::from_secs(60)).burst(10))
///     .otherwise(Rate::new("other hosts", 5, Duration::from_secs(1)));
/// let sync = job("sync", sync).with(hosts.clone()).may_use(&hosts).on_demand();
/// assert!(Project::new("customers", "1.0").add(sync).check().is_ok());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Hosts {
    by_name: BTreeMap<String, Rate>,
    otherwise: Option<Rate>,
}

impl Hosts {
    /// No hosts.
    ///
    /// ```
    /// let hosts = kelos::embed::Hosts::new();
    /// ```
    #[must_use]
    pub fn new() -> Hosts {
        Hosts::default()
    }

    /// The rate of a host. Hosts may share a rate.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use kelos::embed::{Hosts, Rate};
    /// let hosts = Hosts::new().host("api.crm.example", Rate::new("crm", 60, Duration::from_secs(60)));
    /// ```
    #[must_use]
    pub fn host(mut self, name: &str, rate: Rate) -> Hosts {
        self.by_name.insert(name.to_ascii_lowercase(), rate);
        self
    }

    /// The rate that all other hosts share.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use kelos::embed::{Hosts, Rate};
    /// let hosts = Hosts::new().otherwise(Rate::new("others", 1, Duration::from_secs(1)));
    /// assert!(hosts.of("https://example.org/").is_ok());
    /// ```
    #[must_use]
    pub fn otherwise(mut self, rate: Rate) -> Hosts {
        self.otherwise = Some(rate);
        self
    }

    /// The rate of the host of a URL.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use kelos::embed::{Context, Hosts, Rate};
    /// async fn fetch(context: Context, url: String, hosts: Hosts) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    ///     let _call = context.on(hosts.of(&url)?).await?;
    ///     context.log(format!("fetching {url}"));
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// When the text is no URL with a host, or its host has no rate.
    pub fn of(&self, url: &str) -> Result<&Rate, HostError> {
        let host = host_of(url).ok_or_else(|| HostError::Url(url.to_owned()))?;
        self.by_name.get(&host).or(self.otherwise.as_ref()).ok_or(HostError::Unknown(host))
    }
}

/// One token of each.
impl Platform for Hosts {
    fn uses(&self) -> Vec<PlatformUse> {
        let rates = self.by_name.values().chain(&self.otherwise);
        let mut uses: Vec<PlatformUse> = Vec::new();
        for one in rates.flat_map(Platform::uses) {
            if !uses.contains(&one) {
                uses.push(one);
            }
        }
        uses
    }
}

/// The host of a URL, in lower case, without its port.
fn host_of(url: &str) -> Option<String> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let host = match host.strip_prefix('[') {
        Some(address) => address.split(']').next()?,
        None => host.split(':').next()?,
    };
    Some(host.to_ascii_lowercase()).filter(|host| !host.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_of_a_url_is_found() {
        for (url, host) in [
            ("https://api.crm.com/v1?x=1", Some("api.crm.com")),
            ("http://user:word@API.crm.com:8080", Some("api.crm.com")),
            ("http://[::1]:80/", Some("::1")),
            ("https://crm.com?x=a@b", Some("crm.com")),
            ("api.crm.com", None),
            ("https:///x", None),
        ] {
            assert_eq!(host_of(url).as_deref(), host, "{url}");
        }
    }
}
