//! The schemas accept what the program accepts, and nothing else that can be told by its form.

use std::path::Path;

use kelos_engine::sources::Watch;
use kelos_front::{Groups, LimitSettings, Links, MetricSettings};
use kelos_kafka::Cluster;
use kelos_model::history::HistorySettings;
use kelos_model::secret::AllowList;
use kelos_sandbox::apps::Settings;
use kelos_tls::TrustSettings;
use regex_lite::Regex;
use serde_json::{Value, json};

use super::SchemaFile;

/// Whether a value is of the type of a schema.
fn is_of_type(name: &str, value: &Value) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        other => panic!("the type {other} is not known here"),
    }
}

/// Whether a value fits a schema: the keywords that the schemas here have.
fn fits(root: &Value, schema: &Value, value: &Value) -> bool {
    let below = |schema: &Value, value: &Value| fits(root, schema, value);
    let list = |schema: &Value| schema.as_array().cloned().unwrap_or_default();
    schema.as_object().expect("a schema").iter().all(|(keyword, wanted)| match keyword.as_str() {
        "$ref" => {
            let pointer = wanted.as_str().and_then(|text| text.strip_prefix('#')).expect("a reference to the file");
            below(root.pointer(pointer).expect("a definition"), value)
        }
        "type" => match wanted {
            Value::String(name) => is_of_type(name, value),
            several => list(several).iter().any(|name| is_of_type(name.as_str().expect("a name"), value)),
        },
        "enum" => list(wanted).contains(value),
        "const" => wanted == value,
        "anyOf" => list(wanted).iter().any(|one| below(one, value)),
        "not" => !below(wanted, value),
        "required" => value
            .as_object()
            .is_none_or(|object| list(wanted).iter().all(|name| object.contains_key(name.as_str().expect("a name")))),
        "properties" => value.as_object().is_none_or(|object| {
            let wanted = wanted.as_object().expect("schemas by name");
            object.iter().all(|(name, value)| wanted.get(name).is_none_or(|schema| below(schema, value)))
        }),
        "additionalProperties" => value.as_object().is_none_or(|object| {
            let mut others = object.iter().filter(|(name, _)| schema["properties"].get(name.as_str()).is_none());
            match wanted {
                Value::Bool(false) => others.next().is_none(),
                wanted => others.all(|(_, value)| below(wanted, value)),
            }
        }),
        "propertyNames" => value.as_object().is_none_or(|object| object.keys().all(|name| below(wanted, &json!(name)))),
        "items" => value.as_array().is_none_or(|items| items.iter().all(|item| below(wanted, item))),
        "minItems" => value.as_array().is_none_or(|items| items.len() as u64 >= wanted.as_u64().expect("a number")),
        "maxItems" => value.as_array().is_none_or(|items| items.len() as u64 <= wanted.as_u64().expect("a number")),
        "uniqueItems" => {
            value.as_array().is_none_or(|items| items.iter().enumerate().all(|(n, item)| !items[..n].contains(item)))
        }
        "pattern" => {
            let pattern = Regex::new(wanted.as_str().expect("a pattern")).expect("a pattern");
            value.as_str().is_none_or(|text| pattern.is_match(text))
        }
        "maxLength" => {
            value.as_str().is_none_or(|text| text.chars().count() as u64 <= wanted.as_u64().expect("a number"))
        }
        "minimum" => value.as_f64().is_none_or(|number| number >= wanted.as_f64().expect("a number")),
        "maximum" => value.as_f64().is_none_or(|number| number <= wanted.as_f64().expect("a number")),
        "if" => {
            let branch = if below(wanted, value) { "then" } else { "else" };
            schema.get(branch).is_none_or(|schema| below(schema, value))
        }
        "then" | "else" | "$schema" | "title" | "description" | "definitions" => true,
        other => panic!("the keyword {other} is not known here"),
    })
}

fn accepts(file: SchemaFile, text: &str) -> bool {
    let schema: Value = serde_json::from_str(file.schema()).expect("JSON");
    fits(&schema, &schema, &serde_json::from_str(text).expect("JSON"))
}

fn is_config(text: &str) -> bool {
    Groups::of_file(text).is_ok()
        && Links::parse(text).is_ok()
        && Watch::parse(text).is_ok()
        && Cluster::parse(text).is_ok()
        && TrustSettings::default().with_file(text).is_ok()
        && LimitSettings::parse(text).is_ok()
        && MetricSettings::parse(text).is_ok()
        && HistorySettings::parse(text).is_ok()
        && kelos_checkpoints::Settings::parse(text).is_ok()
        && kelos_telemetry::TelemetrySettings::parse(text).is_ok()
        && kelos_alerts::Settings::parse(text).is_ok()
        && AllowList::parse(text).is_ok()
        && kelos_trust::Rules::parse(text).is_ok()
}

fn is_tasks(text: &str) -> bool {
    let identifiers = r#"{"date": "date", "n": "integer"}"#;
    let settings = Settings::new(Some("{date}_{n}"), Some(identifiers)).expect("settings");
    kelos_door_stolos::apps(text, "tasks.json", &settings).is_ok_and(|apps| {
        let unread = apps.warnings.iter().any(|warning| warning.what.contains("which nothing reads"));
        apps.mistakes.is_empty() && !unread
    })
}

fn is_identifiers(text: &str) -> bool {
    Settings::new(None, Some(text)).is_ok()
}

/// Asserts that both the program and the schema take these texts, or that neither does.
#[track_caller]
fn agree(file: SchemaFile, program: fn(&str) -> bool, good: &[&str], bad: &[&str]) {
    for text in good {
        assert!(program(text), "the program refuses {text}");
        assert!(accepts(file, text), "the schema refuses {text}");
    }
    for text in bad {
        assert!(!program(text), "the program takes {text}");
        assert!(!accepts(file, text), "the schema takes {text}");
    }
}

/// Files that are taken.
const GOOD_CONFIGS: &[&str] = &[
    "{}",
    r#"{"$schema": "./config.schema.json", "groups": []}"#,
    r#"{"groups": [{"name": "Group 1", "workflows": ["workflow-1", "b"]}, {"name": "Group 2", "workflows": []}]}"#,
    r#"{"groups": [], "links": [{"name": "Logs", "url": "https://logs.example/${workflow}/${year}?job=${externalId}", "executor": "command"}]}"#,
    r#"{"watch": [{"prefix": "s3://bucket/in/", "dataset": "purchases", "every": "10s", "pattern": "*.parquet"},
        {"prefix": "/data/daily", "dataset": "daily", "minAge": "1m", "since": "2026-01-01T00:00:00Z"}]}"#,
    r#"{"traces": {"to": "http://127.0.0.1:4318/v1/traces"}, "lineage": {"to": "https://host/api/v1/lineage", "namespace": "shop"}}"#,
    r#"{"traces": {"to": "https://host/v1/traces", "service": "shop", "headers": {"x-team": "data", "authorization": {"secret": "env:A", "prefix": "Bearer "}}}}"#,
    r#"{"alerts": {"channels": {"team": {"webhook": {"secret": "env:SLACK_URL"}, "template": "slack"}}, "rules": [{"to": ["team"]}]}}"#,
    r#"{"alerts": {"channels": {"run": {"command": ["tell", "--team"]}, "pager": {"template": "pagerduty", "secret": {"secret": "file:/run/pd"}},
        "own": {"webhook": "https://host/hook", "secret": {"secret": "env:KEY"}}}, "url": "https://kelos.example", "rules": [{"name": "etl",
        "when": ["failed", "late", "disk"], "project": "shop", "tags": ["etl"], "workflow": "reports.*", "to": ["run", "own"],
        "quiet": {"from": "22:00", "until": "07:00", "zone": "Europe/Berlin"}, "repeat": "4h", "after": "30m"}]}}"#,
    r#"{"alerts": {"channels": {"mail": {"mail": {"to": ["Team <team@example.com>", "ann@example.com"], "from": "kelos@example.com",
        "server": "smtps://mail.example.com:465", "user": "kelos", "password": {"secret": "env:SMTP_PASSWORD"}}},
        "local": {"mail": {"to": ["a@b.example"], "from": "k@b.example", "server": "smtp://relay.b.example", "plain": true}}},
        "rules": [{"to": ["mail"], "when": ["will-be-late", "stuck"]}]}}"#,
    r#"{"checkpoints": {}}"#,
    r#"{"checkpoints": {"every": "15m", "to": ["s3://bucket/checkpoints", "/backup", "https://host/hook"], "key": "/etc/key", "instance": "shop"}}"#,
    r#"{"secrets": {"*": ["env:KELOS_SECRET_*"], "a": ["env:*", "file:/run/secrets/*", "file:/etc/x", "exec:pass show a"]}, "runAs": {"a": ["etl"]}}"#,
    r#"{"kafka": [{"name": "main", "brokers": "kafka1:9092, kafka2:9092"}]}"#,
    r#"{"kafka": [{"name": "main", "brokers": "kafka1:9092",
        "settings": {"security.protocol": "SASL_SSL", "socket.timeout.ms": 5000, "sasl.password": {"secret": "env:KAFKA_PASSWORD"}},
        "topics": [
            {"topic": "orders", "dataset": "purchases", "partition": "${value/day}", "from": "latest"},
            {"topic": "approvals", "signal": "approval", "workflow": "buy", "run": "${key}", "payload": {"by": "${value/by}"},
                "when": {"/kind": ["approved"]}, "rejectedTo": "approvals.rejected"}
        ]}]}"#,
    r#"{"tls": {}, "limits": {}}"#,
    r#"{"tls": {"ca": "ca.pem", "cert": "own.pem", "key": "own-key.pem",
        "pin": {"oozie.example": "sha256:00000000000000000000000000000000000000000000000000000000000000aF"}}}"#,
    r#"{"tls": {"ca": ["a.pem", "b.pem"], "pin": {"::1": ["sha256:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00"]}}}"#,
    r#"{"limits": {"connections": 100, "connectionsPerAddress": 10, "requestsPerSecond": 5, "burst": 20, "streams": 3, "allStreams": 30}}"#,
    r#"{"metrics": {}}"#,
    r#"{"history": "all"}"#,
    r#"{"history": {"days": 30, "runs": 0, "output": "500 MB", "archive": "file:/backup", "projects": {"warehouse": {"days": 365}}}}"#,
    r#"{"metrics": {"workflows": 0, "public": true}}"#,
    r#"{"access": {}}"#,
    r#"{"access": {"openid": {"issuer": "https://login.example/realms/x", "clientId": "kelos", "publicAddress": "https://kelos.example"}}}"#,
    r#"{"access": {"openid": {"issuer": "http://127.0.0.1:8080", "clientId": "kelos", "clientSecret": {"secret": "env:SECRET"}, "publicAddress": "http://localhost:7437/", "nameClaim": "email", "groupsClaim": "roles", "scopes": ["email"]}}}"#,
    r#"{"access": {"addresses": [{"from": "10.1.0.0/16", "name": "hadoop", "roles": ["operate@celos"]}], "proxy": {"from": ["10.2.0.1/32", "::1/128"]}, "groups": {"data": ["view"]}, "certificates": {"w.example": ["worker"]}, "reasons": ["*"]}}"#,
];

/// Files that are refused.
const BAD_CONFIGS: &[&str] = &[
    r#"{"alerts": {"channel": {}}}"#,
    r#"{"alerts": {"channels": {"a": {}}}}"#,
    r#"{"alerts": {"channels": {"a": {"webhook": "https://host/", "secret": "plain"}}}}"#,
    r#"{"alerts": {"channels": {"a": {"template": "pagerduty"}}}}"#,
    r#"{"alerts": {"channels": {"a": {"command": []}}}}"#,
    r#"{"alerts": {"channels": {"a": {"mail": {"to": [], "from": "k@b.example", "server": "smtps://m"}}}}}"#,
    r#"{"alerts": {"channels": {"a": {"mail": {"to": ["team"], "from": "k@b.example", "server": "smtps://m"}}}}}"#,
    r#"{"alerts": {"channels": {"a": {"mail": {"to": ["a@b.example"], "from": "k@b.example", "server": "https://m"}}}}}"#,
    r#"{"alerts": {"channels": {"a": {"mail": {"to": ["a@b.example"], "from": "k@b.example", "server": "smtps://m", "user": "k"}}}}}"#,
    r#"{"alerts": {"channels": {"a": {"command": ["x"]}}, "rules": [{"to": []}]}}"#,
    r#"{"alerts": {"channels": {"a": {"command": ["x"]}}, "rules": [{"to": ["a"], "when": ["soon"]}]}}"#,
    r#"{"alerts": {"channels": {"a": {"command": ["x"]}}, "rules": [{"to": ["a"], "quiet": {"from": "24:00", "until": "07:00"}}]}}"#,
    "[]",
    r#"{"tls": []}"#,
    r#"{"tls": {"ca": ""}}"#,
    r#"{"tls": {"ca": [7]}}"#,
    r#"{"tls": {"cas": "ca.pem"}}"#,
    r#"{"tls": {"cert": "own.pem"}}"#,
    r#"{"tls": {"key": "own-key.pem"}}"#,
    r#"{"tls": {"pin": {"oozie.example": "sha256:00"}}}"#,
    r#"{"tls": {"pin": {"https://oozie.example": "sha256:0000000000000000000000000000000000000000000000000000000000000000"}}}"#,
    r#"{"limits": {"burst": 0}}"#,
    r#"{"limits": {"burst": "1"}}"#,
    r#"{"limits": {"requests": 1}}"#,
    r#"{"metrics": {"workflows": -1}}"#,
    r#"{"history": "none"}"#,
    r#"{"history": {"days": 0}}"#,
    r#"{"history": {"output": "0 GB"}}"#,
    r#"{"history": {"output": "10"}}"#,
    r#"{"history": {"projects": {"warehouse": {"output": "1 GB"}}}}"#,
    r#"{"metrics": {"public": "yes"}}"#,
    r#"{"metrics": {"labels": []}}"#,
    r#"{"group": []}"#,
    r#"{"$schema": 7}"#,
    r#"{"groups": [{"name": "a"}]}"#,
    r#"{"groups": [{"name": " ", "workflows": []}]}"#,
    r#"{"groups": [{"name": "a", "workflows": ["a/b"]}]}"#,
    r#"{"groups": [{"name": "a", "workflows": ["a", "a"]}]}"#,
    r#"{"links": [{"name": "Logs", "url": "logs.example"}]}"#,
    r#"{"links": [{"name": "Logs", "url": "https://${workflow}.example/"}]}"#,
    r#"{"links": [{"name": "Logs", "url": "https://logs.example", "excutor": "command"}]}"#,
    r#"{"watch": [{"prefix": "/data"}]}"#,
    r#"{"traces": {}}"#,
    r#"{"traces": {"to": "collector:4318"}}"#,
    r#"{"traces": {"to": "http://me:word@host/"}}"#,
    r#"{"lineage": {"to": "http://host/", "headers": {"a": 1}}}"#,
    r#"{"lineage": {"to": "http://host/", "service": "shop"}}"#,
    r#"{"checkpoints": []}"#,
    r#"{"checkpoints": {"to": "s3://bucket"}}"#,
    r#"{"checkpoints": {"to": ["backup"]}}"#,
    r#"{"checkpoints": {"to": ["/backup", "/backup"]}}"#,
    r#"{"checkpoints": {"every": 60}}"#,
    r#"{"checkpoints": {"instance": " "}}"#,
    r#"{"checkpoints": {"where": []}}"#,
    r#"{"kafka": [{"name": "main", "brokers": "kafka1:9092", "settings": {"sasl.password": {"secret": "hunter2"}}}]}"#,
    r#"{"secrets": ["env:A"]}"#,
    r#"{"secrets": {"a": ["hunter2"]}}"#,
    r#"{"secrets": {"a": ["exec:pass show *"]}}"#,
    r#"{"secrets": {"a": ["file:etc/x"]}}"#,
    r#"{"runAs": {"a": []}}"#,
    r#"{"runAs": {"a": ["x y"]}}"#,
    r#"{"kafka": [{"name": "main"}]}"#,
    r#"{"kafka": [{"name": "a b", "brokers": "kafka1:9092"}]}"#,
    r#"{"kafka": [{"name": "main", "brokers": "me@kafka1:9092"}]}"#,
    r#"{"kafka": [{"name": "main", "brokers": "kafka1:9092", "settings": {"sasl.password": "secret"}}]}"#,
    r#"{"kafka": [{"name": "main", "brokers": "kafka1:9092", "settings": {"a": [1]}}]}"#,
    r#"{"kafka": [{"name": "main", "brokers": "kafka1:9092", "topics": [{"topic": "orders"}]}]}"#,
    r#"{"kafka": [{"name": "main", "brokers": "kafka1:9092", "topics": [{"topic": "my orders", "signal": "go"}]}]}"#,
    r#"{"kafka": [{"name": "main", "brokers": "kafka1:9092", "topics": [{"topic": "orders", "signal": "go", "from": "now"}]}]}"#,
    r#"{"watch": [{"prefix": "/data", "dataset": "d", "every": 10}]}"#,
    r#"{"watch": [{"prefix": "/data", "dataset": "d", "min_age": "10s"}]}"#,
    r#"{"access": {"adresses": []}}"#,
    r#"{"access": {"openid": {"issuer": "https://login.example", "publicAddress": "https://kelos.example"}}}"#,
    r#"{"access": {"openid": {"issuer": "http://login.example", "clientId": "kelos", "publicAddress": "https://kelos.example"}}}"#,
    r#"{"access": {"openid": {"issuer": "https://login.example", "clientId": "kelos", "clientSecret": "x", "publicAddress": "https://kelos.example"}}}"#,
    r#"{"access": {"openid": {"issuer": "https://login.example", "clientId": "kelos", "publicAddress": "https://kelos.example/x"}}}"#,
    r#"{"access": {"openid": {"issuer": "https://login.example", "clientId": "kelos", "publicAddress": "https://kelos.example", "scopes": ["a b"]}}}"#,
    r#"{"access": {"addresses": [{"from": "10.1.0.0/16", "roles": []}]}}"#,
    r#"{"access": {"groups": {"data": ["owner"]}}}"#,
    r#"{"access": {"certificates": {"w": ["worker@a"]}}}"#,
    r#"{"access": {"proxy": {"from": [], "user": "a b"}}}"#,
];

#[test]
fn the_schema_of_config_agrees_with_the_program() {
    agree(SchemaFile::Config, is_config, GOOD_CONFIGS, BAD_CONFIGS);
}

#[test]
fn the_schema_of_apps_agrees_with_the_program() {
    let example = |path: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
        let text = std::fs::read_to_string(path).expect("an example");
        // Neither calls a function of Python.
        text.replace(r#"{"_func": "weekdays.of_one_client"}"#, "{}")
    };
    for path in ["samples/jobs/tasks.json", "fixtures/stolos/example/tasks.json"] {
        assert!(accepts(SchemaFile::Tasks, &example(path)), "{path}");
    }
    for path in ["samples/jobs/identifiers.json", "fixtures/stolos/example/identifiers.json"] {
        agree(SchemaFile::Identifiers, is_identifiers, &[&example(path)], &[]);
    }
    agree(
        SchemaFile::Tasks,
        is_tasks,
        &[
            "{}",
            r#"{"$schema": "./tasks.schema.json", "a": {"bash_cmd": "true"}}"#,
            r#"{"a": {"autofill_values": {"n": "1:9:2"}, "bash_cmd": "echo {n}", "concurrency": 3, "max_retry": 1, "timeout": 60,
                "pools": [{"pool": "db", "size": 4, "permits": 2}], "valid_if_or": {"n": [1, "2"]},
                "feed": {"identifier": "date", "cron": "0 0 3 * * ?", "zone": "Europe/Berlin", "catchUp": "all"}, "writes": ["/out/{date}/{n}"]}}"#,
            r#"{"c": {"bash_cmd": "true", "env": {"DB": {"secret": "env:KELOS_SECRET_DB"}}, "runAs": "etl"}}"#,
            r#"{"b": {"job_id": "{n}", "job_type": "pyspark", "pymodule": "m", "spark_conf": {"x": 1}, "env": {"A": "b"}, "env_from_os": ["HOME"],
                "uris": ["lib.zip"], "read_fp": "/in/{n}", "minPartitions": 2}}"#,
            r#"{"a": {"bash_cmd": "true"}, "b": {"bash_cmd": "true", "depends_on": {"one": {"app_name": ["a"], "n": [1]}, "two": [{"app_name": "a", "n": "all"}]}}}"#,
        ],
        &[
            "[]",
            r#"{"a/b": {"bash_cmd": "true"}}"#,
            r#"{"a": []}"#,
            r#"{"a": {"bash_cmd": 1}}"#,
            r#"{"a": {"bash_cmd": "true", "dependson": {}}}"#,
            r#"{"a": {"bash_cmd": "true", "max_retry": 0}}"#,
            r#"{"a": {"bash_cmd": "true", "concurrency": "many"}}"#,
            r#"{"a": {"bash_cmd": "true", "autofill_values": {"n": "1-3"}}}"#,
            r#"{"a": {"bash_cmd": "true", "pools": [{"pool": "x", "size": 1}]}}"#,
            r#"{"a": {"bash_cmd": "true", "feed": {"identifier": "date"}}}"#,
            r#"{"a": {"bash_cmd": "true", "feed": {"identifier": "date", "cron": "0 3 * * *", "catchUp": "none"}}}"#,
            r#"{"a": {"bash_cmd": "true", "writes": "/out"}}"#,
            r#"{"a": {"bash_cmd": "true", "depends_on": {"one": "b"}}}"#,
            r#"{"a": {"bash_cmd": "true", "depends_on": {"app_name": ["a"], "_func": "m.f"}}}"#,
            r#"{"a": {"bash_cmd": "true", "depends_on": {"app_name": ["a"], "n": "some"}}}"#,
        ],
    );
}

#[test]
fn the_schema_of_identifiers_agrees_with_the_program() {
    agree(
        SchemaFile::Identifiers,
        is_identifiers,
        &[
            r#"{"date": "date", "day": "yyyy-mm-dd", "client": "integer", "free": "text", "target": ["a", "b"],
                "name": {"pattern": "^x"}, "n": {"kind": "integer", "min": 1}, "d": {"kind": "date", "form": "yyyy-mm-dd"},
                "c": {"kind": "choice", "of": ["a"]}}"#,
            r#"{"$schema": "./identifiers.schema.json", "n": "integer"}"#,
        ],
        &["[]", r#"{"date": "day"}"#, r#"{"target": [true]}"#, r#"{"n": {"kind": "number"}}"#, r#"{"n": {}}"#],
    );
}
