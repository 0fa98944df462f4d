//! The limits of a server as its file of settings gives them.

use serde::Deserialize;

/// The form that messages about mistakes show.
const FORM: &str = "{\"limits\": {\"connections\": 4096, \"connectionsPerAddress\": 256, \"requestsPerSecond\": 100, \"burst\": 1000, \"streams\": 64, \"allStreams\": 1024}}";

/// The most streams at a time, where the file does not say so, however many connections there may be.
const MOST_STREAMS: u32 = 1024;
/// The part of the connections that may be streams.
const SHARE_OF_STREAMS: usize = 4;

/// The limits of each client, and of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Requests per second in the long run.
    pub requests_per_second: u32,
    /// Requests at once, after a time without any.
    pub burst: u32,
    /// Streams at a time.
    pub streams: u32,
    /// Streams of all clients at a time. Those of this machine may have half of them.
    pub all_streams: u32,
}

impl Default for Quota {
    /// More than people and their programs ask for.
    fn default() -> Quota {
        Quota { requests_per_second: 100, burst: 1000, streams: 64, all_streams: MOST_STREAMS }
    }
}

/// The limits that a file sets; the others are the usual ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LimitSettings {
    /// Connections at a time.
    pub connections: Option<u32>,
    /// Connections of one address at a time.
    pub connections_per_address: Option<u32>,
    requests_per_second: Option<u32>,
    burst: Option<u32>,
    streams: Option<u32>,
    all_streams: Option<u32>,
}

/// The part of a server's file that is about limits.
#[derive(Deserialize)]
struct LimitsFile {
    #[serde(default)]
    limits: LimitSettings,
}

impl LimitSettings {
    /// Parses the text of the file that a server is started with; its other parts are ignored.
    ///
    /// # Errors
    /// The mistake, and what was expected.
    pub fn parse(text: &str) -> Result<LimitSettings, String> {
        let LimitsFile { limits } = serde_json::from_str(text).map_err(|error| format!("{error}; expected {FORM}"))?;
        let all = [
            ("connections", limits.connections),
            ("connectionsPerAddress", limits.connections_per_address),
            ("requestsPerSecond", limits.requests_per_second),
            ("burst", limits.burst),
            ("streams", limits.streams),
            ("allStreams", limits.all_streams),
        ];
        match all.into_iter().find(|(_, value)| *value == Some(0)) {
            Some((name, _)) => Err(format!("\"{name}\" of \"limits\" is 0, expected 1 or more")),
            None => Ok(limits),
        }
    }

    /// The limits of each client, and of all, in a server that takes so many connections.
    #[must_use]
    pub fn quota(&self, connections: usize) -> Quota {
        let usual = Quota::default();
        let requests_per_second = self.requests_per_second.unwrap_or(usual.requests_per_second);
        // A rate alone has the burst of some seconds.
        let burst =
            self.burst.unwrap_or_else(|| requests_per_second.saturating_mul(usual.burst / usual.requests_per_second));
        let room = u32::try_from(connections / SHARE_OF_STREAMS).unwrap_or(MOST_STREAMS).clamp(1, MOST_STREAMS);
        let all_streams = self.all_streams.unwrap_or(room);
        Quota { requests_per_second, burst, streams: self.streams.unwrap_or(usual.streams), all_streams }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_a_file() {
        let read = |text| LimitSettings::parse(text).unwrap();
        assert_eq!(read("{}").quota(8192), Quota::default());
        assert_eq!(read("{}").quota(512), Quota { all_streams: 128, ..Quota::default() });
        assert_eq!(read(r#"{"limits": {"allStreams": 3}}"#).quota(512).all_streams, 3);
        let set = read(r#"{"groups": [], "limits": {"connections": 10, "requestsPerSecond": 5, "streams": 2}}"#);
        assert_eq!((set.connections, set.connections_per_address), (Some(10), None));
        assert_eq!(set.quota(8192), Quota { requests_per_second: 5, burst: 50, streams: 2, ..Quota::default() });
    }

    #[test]
    fn mistakes_say_what_was_expected() {
        for (text, why) in [
            (r#"{"limits": {"conections": 1}}"#, "unknown field `conections`"),
            (r#"{"limits": {"burst": "many"}}"#, "invalid type: string \"many\""),
            (r#"{"limits": {"burst": -1}}"#, "invalid value: integer `-1`"),
            (r#"{"limits": {"streams": 0}}"#, "\"streams\" of \"limits\" is 0, expected 1 or more"),
        ] {
            let told = LimitSettings::parse(text).unwrap_err();
            assert!(told.contains(why) && told.contains("expected"), "{told}");
        }
    }
}
