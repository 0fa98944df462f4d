//! The durability of a server, by its configuration.

use redis::{Connection, RedisResult};

/// The settings of a server that say how much of what it acknowledged a crash can lose.
#[derive(Debug, Default)]
pub(crate) struct Durability {
    pub(crate) appendonly: String,
    pub(crate) appendfsync: String,
    pub(crate) maxmemory_policy: String,
}

impl Durability {
    /// Reads them; none where the server does not tell.
    pub(crate) fn read(connection: &mut Connection) -> Option<Durability> {
        let mut setting = |name: &str| -> Option<String> {
            let answer: RedisResult<Vec<String>> = redis::cmd("CONFIG").arg("GET").arg(name).query(connection);
            answer.ok()?.into_iter().nth(1)
        };
        Some(Durability {
            appendonly: setting("appendonly")?,
            appendfsync: setting("appendfsync")?,
            maxmemory_policy: setting("maxmemory-policy")?,
        })
    }

    /// The reason for which it can't keep a log; none if it can.
    pub(crate) fn objection(&self) -> Option<String> {
        let (setting, risk) = match (self.appendonly.as_str(), self.appendfsync.as_str()) {
            ("no", _) => (
                "appendonly no",
                "a restart loses what came since its last dump; set appendonly yes and appendfsync always",
            ),
            (_, "no") => ("appendfsync no", "a crash of its machine loses up to half a minute; set appendfsync always"),
            (_, "everysec") => {
                ("appendfsync everysec", "a crash of its machine loses up to two seconds; set appendfsync always")
            }
            // The keys of a log never expire, so the policies for keys that do are harmless.
            _ if self.maxmemory_policy.starts_with("allkeys") => {
                let risk = "it deletes the log when its memory is full; set maxmemory-policy noeviction";
                return Some(self.said(&format!("maxmemory-policy {}", self.maxmemory_policy), risk));
            }
            _ => return None,
        };
        Some(self.said(setting, risk))
    }

    fn said(&self, setting: &str, risk: &str) -> String {
        format!("it has {setting}: {risk}, or accept that with durability=relaxed in the address")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_loses_entries_is_refused() {
        let objection = |appendonly: &str, appendfsync: &str, policy: &str| {
            let [appendonly, appendfsync, maxmemory_policy] = [appendonly, appendfsync, policy].map(str::to_owned);
            Durability { appendonly, appendfsync, maxmemory_policy }.objection()
        };
        assert_eq!(objection("yes", "always", "noeviction"), None);
        assert_eq!(objection("yes", "always", "volatile-lru"), None);
        let refused = [
            objection("no", "always", "noeviction"),
            objection("yes", "no", "noeviction"),
            objection("yes", "everysec", "noeviction"),
            objection("yes", "always", "allkeys-lru"),
        ];
        insta::assert_snapshot!(refused.map(Option::unwrap).join("\n"), @r#"
        it has appendonly no: a restart loses what came since its last dump; set appendonly yes and appendfsync always, or accept that with durability=relaxed in the address
        it has appendfsync no: a crash of its machine loses up to half a minute; set appendfsync always, or accept that with durability=relaxed in the address
        it has appendfsync everysec: a crash of its machine loses up to two seconds; set appendfsync always, or accept that with durability=relaxed in the address
        it has maxmemory-policy allkeys-lru: it deletes the log when its memory is full; set maxmemory-policy noeviction, or accept that with durability=relaxed in the address
        "#);
    }
}
