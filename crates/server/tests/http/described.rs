//! The description of the native API.

use axum::http::Method;
use serde_json::Value;

use crate::support::{Server, workflow};

#[tokio::test(flavor = "multi_thread")]
async fn every_route_is_described() {
    let server = Server::start("").await;
    let described = server.get("/api/v1/openapi.json").await.ok().json();
    let mut routes = Vec::new();
    for (path, methods) in described["paths"].as_object().unwrap() {
        for (method, route) in methods.as_object().unwrap() {
            let names = |route: &Value| -> Vec<String> {
                let parameters = route["parameters"].as_array().into_iter().flatten();
                parameters
                    .map(|one| format!("{}:{}", one["in"].as_str().unwrap(), one["name"].as_str().unwrap()))
                    .collect()
            };
            assert!(route["summary"].as_str().is_some_and(|text| !text.is_empty()), "{method} {path} says nothing");
            routes.push(format!("{} {path} {}", method.to_uppercase(), names(route).join(" ")));
        }
    }
    insta::assert_snapshot!(routes.join("\n"));
}

/// Each described route is there, and none takes a parameter that it doesn't know.
#[tokio::test(flavor = "multi_thread")]
async fn every_described_route_answers_and_knows_its_parameters() {
    let server = Server::start(&workflow("w", "")).await;
    let described = server.get("/api/v1/openapi.json").await.ok().json();
    for (path, methods) in described["paths"].as_object().unwrap() {
        let filled = path.replace("{id}", "w").replace("{time}", "2015-09-13T15:00Z").replace("{number}", "1");
        let filled =
            filled.replace("{bucket}", "b").replace("{key}", "k").replace("{workflow}", "w").replace("{job}", "1");
        let filled = filled.replace("{version}", "1");
        for method in methods.as_object().unwrap().keys() {
            let method: Method = method.to_uppercase().parse().unwrap();
            let reply = server.ask(method.clone(), &format!("{filled}?nonsense=1"), "").await;
            // Only the owner of a server that asks for no credential may change users and agree, only workers offer to work, and only nodes report.
            let is_of_others =
                path.starts_with("/api/v1/nodes/") || path.ends_with("/offer") || path.ends_with("/agree");
            if path.starts_with("/api/v1/users/") || is_of_others {
                continue;
            }
            assert_eq!(reply.status, 400, "{method} {path}: {reply:?}");
            assert!(reply.text.contains("unknown query parameter `nonsense`"), "{method} {path}: {reply:?}");
        }
    }
}

#[test]
fn the_whole_description_is_a_document_of_openapi_3_1() {
    let described = serde_json::to_value(kelos_server::openapi()).unwrap();
    assert_eq!(described["openapi"], "3.1.0");
    assert_eq!(described["info"]["title"], "Kelos");
    let mut operations = std::collections::BTreeSet::new();
    for route in described["paths"].as_object().unwrap().values().flat_map(|path| path.as_object().unwrap().values()) {
        let name = route["operationId"].as_str().unwrap();
        assert!(operations.insert(name), "two operations are named {name}");
    }
    let text = described.to_string();
    for reference in text.split("\"#/components/schemas/").skip(1) {
        let name = reference.split('"').next().unwrap();
        assert!(described["components"]["schemas"][name].is_object(), "there is no schema {name}");
    }
}

/// What a request is said to have is what is read: types of one name would stand for each other.
#[tokio::test(flavor = "multi_thread")]
async fn described_bodies_have_the_fields_that_are_read() {
    let server = Server::start(&workflow("w", "")).await;
    let described = server.get("/api/v1/openapi.json").await.ok().json();
    let mut checked = Vec::new();
    for (path, methods) in described["paths"].as_object().unwrap() {
        let filled = path.replace("{id}", "w").replace("{time}", "2015-09-13T15:00Z").replace("{key}", "k");
        for (method, route) in methods.as_object().unwrap() {
            let schema = &route["requestBody"]["content"]["application/json"]["schema"];
            let referred = schema["$ref"]
                .as_str()
                .or_else(|| schema["oneOf"].as_array()?.iter().find_map(|one| one["$ref"].as_str()));
            let Some(name) = referred.and_then(|text| text.rsplit('/').next()) else { continue };
            let verb: Method = method.to_uppercase().parse().unwrap();
            let reply = server.ask(verb, &filled, r#"{ "nonsense": 1 }"#).await;
            let Some((_, fields)) = reply.text.split_once("unknown field `nonsense`, expected") else { continue };
            let read: Vec<&str> = fields.split('`').skip(1).step_by(2).collect();
            let said = described["components"]["schemas"][name]["properties"].as_object();
            for said in said.into_iter().flat_map(serde_json::Map::keys) {
                assert!(
                    read.contains(&said.as_str()),
                    "{method} {path} is said to take {said} of {name}, and takes {read:?}"
                );
            }
            checked.push(format!("{method} {path}"));
        }
    }
    for one in ["post /api/v1/jobs", "post /api/v1/backfills", "post /api/v1/workflows/{id}/slots/{time}/rerun"] {
        assert!(checked.iter().any(|checked| checked == one), "{one} is not among {checked:?}");
    }
}

/// The description of a trigger is made from the signatures by which it is read.
#[test]
fn each_kind_of_trigger_is_described() {
    let described = serde_json::to_value(kelos_server::openapi()).unwrap();
    let forms = described["components"]["schemas"]["TriggerDto"]["oneOf"].as_array().unwrap();
    let kinds: Vec<_> = forms.iter().filter_map(|form| form["properties"]["type"]["enum"][0].as_str()).collect();
    assert_eq!(kinds.len(), 17);
    let fired = forms.iter().find(|form| form["properties"]["type"]["enum"][0] == "fired").unwrap();
    assert_eq!(fired["required"], serde_json::json!(["type", "cron"]));
    assert_eq!(forms.last().unwrap()["type"], "string");
}
