//! Time zones by their IANA names, from data bundled with the program.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;
use std::sync::{Arc, LazyLock};

use jiff::tz::{TimeZone, TimeZoneDatabase};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::legacy::{self, Legacy};

/// The zone data compiled into the program, so that every node and every replay sees the same.
static BUNDLED: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

/// A time zone and its IANA name, such as `Europe/Berlin`. The default is UTC. Cheap to clone;
/// equal if the names are equal.
#[derive(Clone)]
pub struct Zone {
    name: Arc<str>,
    rules: TimeZone,
}

/// A name that is no time zone. Lists zones of a similar name, if there are any.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown time zone {name:?}: expected {}", expectation(.similar))]
pub struct ZoneError {
    /// The name that was given.
    pub name: String,
    /// Names that look alike, at most three.
    pub similar: Vec<String>,
}

fn expectation(similar: &[String]) -> String {
    match similar {
        [] => "an IANA name such as \"UTC\", \"Europe/Berlin\" or \"America/New_York\"".to_owned(),
        _ => format!("an IANA name such as {similar:?}").replace(['[', ']'], ""),
    }
}

impl Zone {
    /// Coordinated universal time.
    pub fn utc() -> Zone {
        Zone { name: "UTC".into(), rules: TimeZone::UTC }
    }

    /// Finds a zone by its IANA name, in any case, or by one of the older names that Java reads: `PST`, which is that of Los
    /// Angeles with its daylight saving, or `GMT+02:00`. An older name stays as it was given.
    ///
    /// # Errors
    ///
    /// If no zone has that name. Offsets such as `+02:00` are no zones.
    pub fn parse(name: &str) -> Result<Zone, ZoneError> {
        let unknown = || ZoneError { name: name.to_owned(), similar: similar(name) };
        let old = legacy::read(name);
        if let Some(Legacy::Fixed(rules)) = old {
            return Ok(Zone { name: name.into(), rules });
        }
        if let Some(Legacy::Iana(iana)) = old {
            let rules = BUNDLED.get(iana).map_err(|_| unknown())?;
            return Ok(Zone { name: name.into(), rules });
        }
        let rules = BUNDLED.get(name).map_err(|_| unknown())?;
        let name = rules.iana_name().ok_or_else(unknown)?.into();
        Ok(Zone { name, rules })
    }

    /// The IANA name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The rules of the zone, for computing with `jiff`.
    pub fn rules(&self) -> &TimeZone {
        &self.rules
    }
}

/// Up to three zones whose name has the same last part, or contains the name or is contained in it.
fn similar(name: &str) -> Vec<String> {
    let wanted = name.to_ascii_lowercase().replace(' ', "_");
    let city = wanted.rsplit('/').next().unwrap_or_default().to_owned();
    if city.len() < 3 {
        return Vec::new();
    }
    let names: Vec<String> = BUNDLED.available().map(|name| name.to_string()).collect();
    let matching = |test: &dyn Fn(&str) -> bool| -> Vec<String> {
        names.iter().filter(|name| test(&name.to_ascii_lowercase())).take(3).cloned().collect()
    };
    let same_city = matching(&|name| name.rsplit('/').next() == Some(&city));
    match same_city.is_empty() {
        true => matching(&|name| name.contains(&city)),
        false => same_city,
    }
}

impl Default for Zone {
    fn default() -> Zone {
        Zone::utc()
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl fmt::Debug for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Zone({:?})", self.name)
    }
}

impl PartialEq for Zone {
    fn eq(&self, other: &Zone) -> bool {
        self.name == other.name
    }
}

impl Eq for Zone {}

impl Hash for Zone {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl FromStr for Zone {
    type Err = ZoneError;

    fn from_str(name: &str) -> Result<Zone, ZoneError> {
        Zone::parse(name)
    }
}

impl Serialize for Zone {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.name)
    }
}

impl<'de> Deserialize<'de> for Zone {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Zone, D::Error> {
        let name = String::deserialize(deserializer)?;
        Zone::parse(&name).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_any_case_and_written_as_they_are() {
        assert_eq!(Zone::parse("europe/berlin").expect("a zone").name(), "Europe/Berlin");
        assert_eq!(Zone::parse("UTC").expect("a zone"), Zone::default());
        let json = serde_json::to_string(&Zone::default()).expect("json");
        assert_eq!(serde_json::from_str::<Zone>(&json).expect("a zone"), Zone::utc());
    }

    #[test]
    fn older_names_are_read_as_java_reads_them() {
        let offset = |name: &str, at: &str| {
            let at: jiff::Timestamp = at.parse().expect("an instant");
            Zone::parse(name).expect("a zone").rules().to_offset(at).seconds() / 60
        };
        assert_eq!((offset("PST", "2020-01-01T00:00Z"), offset("PST", "2020-07-01T00:00Z")), (-480, -420));
        assert_eq!((offset("EST", "2020-01-01T00:00Z"), offset("EST", "2020-07-01T00:00Z")), (-300, -300));
        assert_eq!((offset("GMT+02:30", "2020-07-01T00:00Z"), offset("GMT-5", "2020-07-01T00:00Z")), (150, -300));
        assert_eq!((offset("GMT-0930", "2020-07-01T00:00Z"), offset("IST", "2020-07-01T00:00Z")), (-570, 330));
        assert_eq!(Zone::parse("PST").expect("a zone").name(), "PST");
        for name in ["GMT+24", "GMT+1:5", "GMT+12345", "GMT+x", "XYZ"] {
            assert!(Zone::parse(name).is_err(), "{name}");
        }
        for (name, _) in super::super::legacy::NAMES {
            assert!(Zone::parse(name).is_ok(), "{name}");
        }
    }

    #[test]
    fn errors_list_what_was_expected() {
        let message = |name| Zone::parse(name).expect_err("no zone").to_string();
        assert_eq!(message("Berlin"), r#"unknown time zone "Berlin": expected an IANA name such as "Europe/Berlin""#);
        assert_eq!(
            message("+02:00"),
            r#"unknown time zone "+02:00": expected an IANA name such as "UTC", "Europe/Berlin" or "America/New_York""#
        );
        assert!(message("America/New York").contains("America/New_York"));
    }
}
