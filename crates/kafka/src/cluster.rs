//! A cluster of brokers, as the file of a server describes it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use kelos_model::secret::SecretSource;
use serde::Deserialize;

use crate::topic::Topic;

/// The form that messages about mistakes show.
const FORM: &str = "{\"kafka\": [{\"name\": \"…\", \"brokers\": \"HOST:9092\", \"settings\": {}, \"topics\": [{\"topic\": \"…\", \"dataset\": \"…\"}]}]}";

/// Settings of the client that Kelos makes itself, since what it promises depends on them.
const OWN: [&str; 12] = [
    "acks",
    "auto.offset.reset",
    "bootstrap.servers",
    "enable.auto.commit",
    "enable.auto.offset.store",
    "enable.idempotence",
    "enable.partition.eof",
    "group.id",
    "group.instance.id",
    "metadata.broker.list",
    "request.required.acks",
    "transactional.id",
];

/// Settings of the client that are secrets.
const SECRET: [&str; 5] =
    ["sasl.oauthbearer.client.secret", "sasl.password", "ssl.key.password", "ssl.key.pem", "ssl.keystore.password"];

/// A cluster of brokers.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Cluster {
    /// Its name, by which jobs say where to send messages.
    pub name: String,
    /// The addresses of some of its brokers: `HOST:PORT,HOST:PORT`.
    pub brokers: String,
    /// Settings of the client, librdkafka, by their names: `security.protocol`, `sasl.username`.
    #[serde(default)]
    pub settings: BTreeMap<String, Setting>,
    /// The topics that are read.
    #[serde(default)]
    pub topics: Vec<Topic>,
}

/// The value of a setting of the client.
#[derive(Clone, PartialEq, Eq)]
pub enum Setting {
    /// The value as text.
    Value(String),
    /// The place of a secret, which is read when the client connects.
    Secret(SecretSource),
}

impl fmt::Debug for Setting {
    /// A value may be a secret of a setting that is not known here.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Setting::Value(_) => f.write_str("Value"),
            Setting::Secret(source) => f.debug_tuple("Secret").field(&source.to_string()).finish(),
        }
    }
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a text, a number, true, false or {\"secret\": \"env:NAME\"}")]
enum SettingForm {
    Text(String),
    Number(i64),
    Flag(bool),
    Elsewhere(Elsewhere),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Elsewhere {
    secret: String,
}

impl<'de> Deserialize<'de> for Setting {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Setting, D::Error> {
        Ok(match SettingForm::deserialize(deserializer)? {
            SettingForm::Text(text) => Setting::Value(text),
            SettingForm::Number(number) => Setting::Value(number.to_string()),
            SettingForm::Flag(flag) => Setting::Value(flag.to_string()),
            SettingForm::Elsewhere(Elsewhere { secret }) => {
                Setting::Secret(SecretSource::parse(&secret).map_err(serde::de::Error::custom)?)
            }
        })
    }
}

/// The part of a server's file that is about Kafka.
#[derive(Deserialize)]
struct File {
    #[serde(default)]
    kafka: Vec<Cluster>,
}

impl Cluster {
    /// A cluster whose topics are not read, reached without a login.
    #[must_use]
    pub fn new(name: &str, brokers: &str) -> Cluster {
        Cluster { name: name.to_owned(), brokers: brokers.to_owned(), settings: BTreeMap::new(), topics: Vec::new() }
    }

    /// The same with one more setting of the client.
    #[must_use]
    pub fn setting(mut self, name: &str, value: Setting) -> Cluster {
        self.settings.insert(name.to_owned(), value);
        self
    }

    /// The same with one more topic that is read.
    #[must_use]
    pub fn topic(mut self, topic: Topic) -> Cluster {
        self.topics.push(topic);
        self
    }

    /// Parses the text of the file that a server is started with; its other parts are ignored.
    ///
    /// # Errors
    /// The mistake, and what was expected.
    pub fn parse(text: &str) -> Result<Vec<Cluster>, String> {
        let File { kafka } = serde_json::from_str(text).map_err(|error| format!("{error}; expected {FORM}"))?;
        let mut names = BTreeSet::new();
        for cluster in &kafka {
            if !names.insert(cluster.name.as_str()) {
                return Err(format!("two Kafka clusters are named \"{}\": expected a name for each", cluster.name));
            }
            cluster.check()?;
        }
        Ok(kafka)
    }

    /// Whether it makes sense.
    ///
    /// # Errors
    /// The mistake, and what was expected.
    pub fn check(&self) -> Result<(), String> {
        let fail = |why: String| Err(format!("the Kafka cluster \"{}\": {why}", self.name));
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
        if self.name.is_empty() || self.name.len() > 100 || !self.name.chars().all(is_plain) {
            return fail("expected a name of 1 to 100 letters, digits, \"-\", \"_\" and \".\"".to_owned());
        }
        if self.brokers.split(',').any(|broker| broker.trim().is_empty()) {
            return fail("expected the addresses of brokers such as \"kafka1:9092,kafka2:9092\"".to_owned());
        }
        if self.brokers.contains('@') {
            return fail("a broker is HOST:PORT; the name and the password are `settings`".to_owned());
        }
        for (name, value) in &self.settings {
            if OWN.contains(&name.as_str()) {
                return fail(format!("Kelos makes the setting \"{name}\" itself: remove it"));
            }
            if SECRET.contains(&name.as_str()) && matches!(value, Setting::Value(_)) {
                return fail(format!(
                    "the setting \"{name}\" is a secret: expected the place where it is, {{\"secret\": \"env:KAFKA_PASSWORD\"}} \
                     or {{\"secret\": \"file:/run/secrets/kafka\"}}"
                ));
            }
        }
        let mut read = BTreeSet::new();
        for topic in &self.topics {
            topic.check().or_else(&fail)?;
            if !read.insert(topic.topic.as_str()) {
                return fail(format!("the topic \"{}\" is listed twice: expected it once", topic.topic));
            }
        }
        Ok(())
    }

    /// The same with these authorities, in PEM, for its brokers, where it speaks TLS and names none itself.
    #[must_use]
    pub fn with_authorities(self, pem: &str) -> Cluster {
        let is = |name: &str, values: &[&str]| match self.settings.get(name) {
            Some(Setting::Value(value)) => values.iter().any(|one| one.eq_ignore_ascii_case(value)),
            _ => false,
        };
        let speaks_tls = is("security.protocol", &["ssl", "sasl_ssl"]);
        if !speaks_tls || self.settings.keys().any(|name| name.starts_with("ssl.ca.")) {
            return self;
        }
        self.setting("ssl.ca.pem", Setting::Value(pem.to_owned()))
    }

    /// The settings of the client, with secrets as `read` reads them.
    ///
    /// # Errors
    /// When a secret can't be read. The message completes "failed to …".
    pub fn resolved(
        &self,
        read: impl Fn(&SecretSource) -> Result<String, String>,
    ) -> Result<BTreeMap<String, String>, String> {
        let resolve = |(name, setting): (&String, &Setting)| {
            let value = match setting {
                Setting::Value(text) => text.clone(),
                Setting::Secret(source) => read(source).map_err(|why| {
                    format!("set up Kafka \"{}\": read the secret {source} of {name}: {why}", self.name)
                })?,
            };
            Ok((name.clone(), value))
        };
        self.settings.iter().map(resolve).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(cluster: &str) -> String {
        Cluster::parse(&format!("{{\"kafka\": [{{\"name\": \"main\", {cluster}}}]}}")).unwrap_err()
    }

    #[test]
    fn a_cluster_is_read_from_the_file_of_a_server() {
        let text = r#"{"groups": [], "kafka": [{"name": "main", "brokers": "a:9092,b:9092",
            "settings": {"security.protocol": "SASL_SSL", "socket.timeout.ms": 5000, "log.queue": true, "sasl.password": {"secret": "env:P"}},
            "topics": [{"topic": "orders", "dataset": "purchases"}]}]}"#;
        let all = Cluster::parse(text).unwrap();
        let settings = &all[0].settings;
        assert_eq!(settings["security.protocol"], Setting::Value("SASL_SSL".to_owned()));
        assert_eq!(settings["socket.timeout.ms"], Setting::Value("5000".to_owned()));
        assert_eq!(settings["sasl.password"], Setting::Secret(SecretSource::Env("P".to_owned())));
        assert_eq!(all[0].topics[0].topic, "orders");
        assert!(Cluster::parse("{}").unwrap().is_empty());
    }

    #[test]
    fn authorities_are_for_brokers_that_speak_tls_and_name_none() {
        let set = |name: &str, value: &str| (name.to_owned(), Setting::Value(value.to_owned()));
        let with = |settings: &[(String, Setting)]| {
            let cluster = Cluster::new("main", "a:9093");
            let cluster = settings.iter().fold(cluster, |cluster, (name, value)| cluster.setting(name, value.clone()));
            cluster.with_authorities("PEM").settings.get("ssl.ca.pem").cloned()
        };
        let pem = Some(Setting::Value("PEM".to_owned()));
        assert_eq!(with(&[set("security.protocol", "SASL_SSL")]), pem);
        assert_eq!(with(&[set("security.protocol", "ssl")]), pem);
        assert_eq!(with(&[]), None);
        assert_eq!(with(&[set("security.protocol", "ssl"), set("ssl.ca.location", "ca.pem")]), None);
    }

    #[test]
    fn mistakes_say_what_was_expected() {
        assert_eq!(
            wrong(r#""brokers": "a:9092", "settings": {"sasl.password": "x"}"#),
            "the Kafka cluster \"main\": the setting \"sasl.password\" is a secret: expected the place where it is, \
             {\"secret\": \"env:KAFKA_PASSWORD\"} or {\"secret\": \"file:/run/secrets/kafka\"}"
        );
        assert_eq!(
            wrong(r#""brokers": "a:9092", "settings": {"group.id": "x"}"#),
            "the Kafka cluster \"main\": Kelos makes the setting \"group.id\" itself: remove it"
        );
        assert_eq!(
            wrong(r#""brokers": "a,,b""#),
            "the Kafka cluster \"main\": expected the addresses of brokers such as \"kafka1:9092,kafka2:9092\""
        );
        let told = wrong(r#""brokers": "a", "settings": {"x": [1]}"#);
        assert!(told.starts_with("expected a text, a number, true, false or {\"secret\": \"env:NAME\"}"), "{told}");
        let told = wrong(r#""brokers": "a", "topic": []"#);
        assert!(told.starts_with("unknown field `topic`") && told.contains("; expected {\"kafka\""), "{told}");
        let twice = r#"{"topic": "t", "dataset": "d"}, {"topic": "t", "signal": "s"}"#;
        assert_eq!(
            wrong(&format!(r#""brokers": "a", "topics": [{twice}]"#)),
            "the Kafka cluster \"main\": the topic \"t\" is listed twice: expected it once"
        );
        let two = r#"{"kafka": [{"name": "a", "brokers": "x"}, {"name": "a", "brokers": "y"}]}"#;
        assert_eq!(Cluster::parse(two).unwrap_err(), "two Kafka clusters are named \"a\": expected a name for each");
    }

    #[test]
    fn a_secret_is_read_from_where_it_is_and_never_shown() {
        let source = SecretSource::parse("file:/run/secrets/kafka").unwrap();
        let cluster = Cluster::new("main", "a:9092").setting("sasl.password", Setting::Secret(source.clone()));
        let read = |asked: &SecretSource| if *asked == source { Ok("s3cret".to_owned()) } else { Err(String::new()) };
        assert_eq!(cluster.resolved(read).unwrap()["sasl.password"], "s3cret");
        assert_eq!(
            cluster.resolved(|_| Err("it is empty".to_owned())).unwrap_err(),
            "set up Kafka \"main\": read the secret file:/run/secrets/kafka of sasl.password: it is empty"
        );
        assert!(
            !format!("{:?}", Cluster::new("m", "a").setting("x", Setting::Value("s3cret".to_owned())))
                .contains("s3cret")
        );
    }
}
