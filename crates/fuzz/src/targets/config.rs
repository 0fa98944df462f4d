//! Files of settings and answers of other systems: `--config`, `tasks.json`, URIs, answers of Celos.

use kelos_door_celos::shadow::{read_list, read_slots};
use kelos_door_stolos::import::StateSource;
use kelos_engine::sources::Watch;
use kelos_front::{Groups, Links};
use kelos_kafka::{Cluster, IncomingMessage};
use kelos_sandbox::apps::Settings;
use kelos_storage::{Storage, StorageConfig};

use super::text;
use crate::Target;
use crate::corpus::{file, texts};

pub(super) fn targets() -> Vec<Target> {
    vec![config(), tasks(), uris(), answers()]
}

fn config() -> Target {
    let corpus = texts(&[
        r#"{"groups": [{"name": "Group 1", "workflows": ["workflow-1", "b"]}], "links": [{"name": "Logs", "url": "https://logs.example/${workflow}/${year}?job=${externalId}"}]}"#,
        r#"{"watch": [{"prefix": "s3://bucket/in/", "dataset": "purchases", "every": "10s", "pattern": "*.parquet", "minAge": "1m", "since": "2026-01-01T00:00:00Z"}]}"#,
        r#"{"kafka": [{"name": "main", "brokers": "kafka1:9092", "settings": {"socket.timeout.ms": 5000, "sasl.password": {"env": "P"}},
            "topics": [{"topic": "orders", "dataset": "purchases", "partition": "${value/day}", "from": "latest"},
            {"topic": "approvals", "signal": "${value/kind}", "workflow": "buy", "run": "${key}", "payload": {"by": "${value/by}"}, "when": {"/kind": ["approved"]}}]}]}"#,
        r#"{"checkpoints": {"every": "15m", "to": ["s3://bucket/checkpoints", "https://host/hook"], "key": "/etc/key", "instance": "shop"}}"#,
    ]);
    let words = &[
        "${value/",
        "${key}",
        "${header/",
        "\"when\":",
        "\"every\":",
        "0s",
        "1h",
        "[a-",
        "{a,b}",
        "**",
        "\"to\":",
        "https://",
        "s3://",
    ];
    text("config", corpus, words, |input| {
        let _ = (
            Groups::of_file(input),
            Links::parse(input),
            Watch::parse(input),
            kelos_checkpoints::Settings::parse(input),
            kelos_telemetry::TelemetrySettings::parse(input),
            kelos_alerts::Settings::parse(input),
        );
        for topic in Cluster::parse(input).into_iter().flatten().flat_map(|cluster| cluster.topics) {
            let Ok(mapping) = topic.mapping() else { continue };
            for value in [input, r#"{"kind": "approved", "day": "2026-01-01", "by": null}"#, "[1]", "\u{0}"] {
                let message = IncomingMessage {
                    topic: topic.topic.clone(),
                    partition: 0,
                    offset: 7,
                    time: None,
                    key: Some(value.as_bytes().to_vec()),
                    value: Some(value.as_bytes().to_vec()),
                    headers: Vec::new(),
                };
                let _ = mapping.read(&message);
            }
        }
        Ok(())
    })
}

fn tasks() -> Target {
    let with = |tasks: &str, identifiers: &str| [file(tasks), b"\n----\n".to_vec(), file(identifiers)].concat();
    let corpus = vec![
        with("fixtures/stolos/example/tasks.json", "fixtures/stolos/example/identifiers.json"),
        with("fixtures/stolos/readme/tasks.json", "fixtures/stolos/example/identifiers.json"),
        with("samples/jobs/tasks.json", "fixtures/stolos/example/identifiers.json"),
        br#"{"a": {"job_type": "bash", "bash_opts": "echo {date}", "depends_on": {"app_name": ["b"], "date": "all"}}, "b": {}}
----
{"date": "date", "n": "integer", "p": {"type": "pattern", "pattern": "[a-z]+"}}"#
            .to_vec(),
    ];
    let words = &[
        "depends_on",
        "app_name",
        "valid_if_or",
        "autofill_values",
        "_func",
        "job_type",
        "bash",
        "{date}",
        "all",
        "dependency_group_1",
        "pattern",
        "choice",
        "integer",
    ];
    text("tasks", corpus, words, |input| {
        let (tasks, identifiers) = input.split_once("\n----\n").unwrap_or((input, "{}"));
        // The first settings that have the identifiers: a large range takes its time.
        let templates = [Some("{date}_{client_id}_{collection_name}"), Some("{date}_{n}"), None];
        if let Some(settings) = templates.iter().find_map(|template| Settings::new(*template, Some(identifiers)).ok()) {
            let _ =
                (kelos_door_stolos::apps(tasks, "tasks.json", &settings), kelos_door_stolos::read(tasks, &settings));
        }
        Ok(())
    })
}

fn uris() -> Target {
    let corpus = texts(&[
        "file:/a%20b",
        "hdfs://[::1]:8020/p",
        "hdfs://nn/./in",
        "s3a://Bucket/key with#all?",
        "abfss://box@acc.dfs.core.windows.net/a",
        "https://host:8443/a/?b=c%20d#e",
        "sftp://me@host:22/a%20b",
        "webhdfs://NN:9870/x?y",
        "/a b/%20/",
        "gs://b",
        "zookeepers://ann@a:2181,[::1]:7/x/y",
        "rediss://ops@h:6379/3?prefix=p",
    ]);
    let config = StorageConfig::default();
    let trust = config.trust.clone();
    let storage = Storage::new(config);
    let words = &["://", "@", ":", "%2e%2e", "[::1]", "..", "hdfs", "s3", "sftp", "zookeeper", "redis", ","];
    text("uris", corpus, words, move |input| {
        let _ = (storage.check(input), StateSource::new(input, Some("secret"), &trust).is_ok());
        Ok(())
    })
}

fn answers() -> Target {
    let corpus = texts(&[
        r#"{"ids": ["workflow-1", "b"]}"#,
        r#"{"slots": [{"time": "2015-09-13T15:00:00.000Z", "status": "SUCCESS", "externalID": "1", "retryCount": 0}], "paused": false}"#,
    ]);
    text("celos-answers", corpus, &["\"slots\":", "SUCCESS", "WAITING", "\"paused\":"], |input| {
        let _ = (read_list(input), read_slots(input));
        Ok(())
    })
}
