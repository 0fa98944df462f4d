//! Profiles: names that properties of schedules may refer to, and that can be disabled. Where runs go is for executors to
//! say, so nothing else hangs on them. They are kept as registers.

use axum::Json;
use axum::body::Bytes;
use kelos_core::SetRegister;
use kelos_front::App;
use kelos_front::fault::{Fault, plain};
use kelos_model::Workflow;
use kelos_model::project::ProjectName;
use kelos_store::{Queries, RegisterKeys, StoreError};
use serde_json::{Value, json};

use super::asked::CdapRequest;
use super::catalogue::{Catalogue, events, look};
use super::fields;

/// The bucket of registers that holds them.
const BUCKET: &str = "cdap.profiles";

/// The property of a schedule that names one.
const PROPERTY: &str = "system.profile.name";

/// The namespace of those that all may use.
const SYSTEM: &str = "system";

/// The one that is always there.
const NATIVE: &str = "native";

/// The key of its register.
fn key(namespace: &str, name: &str) -> String {
    // A name in a path may have a slash in it that is no separator.
    let namespace = namespace.replace('%', "%25").replace('/', "%2F");
    format!("{namespace}/{name}")
}

/// A profile by its name in a property: `SYSTEM:native`, `USER:mine` or `mine`.
fn named<'a>(text: &'a str, namespace: &'a str) -> (&'a str, &'a str) {
    match text.split_once(':') {
        Some((scope, name)) if scope.eq_ignore_ascii_case(SYSTEM) => (SYSTEM, name),
        Some((scope, name)) if scope.eq_ignore_ascii_case("user") => (namespace, name),
        _ => (namespace, text),
    }
}

fn find(reader: &dyn Queries, namespace: &str, name: &str) -> Result<Option<Value>, StoreError> {
    if namespace == SYSTEM && name == NATIVE {
        return Ok(Some(native()));
    }
    reader.register(BUCKET, &key(namespace, name))
}

fn native() -> Value {
    json!({ "name": NATIVE, "label": "Native", "description": "The executors of Kelos", "scope": "SYSTEM", "status": "ENABLED" })
}

fn need(reader: &dyn Queries, namespace: &str, name: &str) -> Result<Value, Fault> {
    let missing = || plain::not_found(format!("no profile \"{name}\" in namespace \"{namespace}\""));
    find(reader, namespace, name)?.ok_or_else(missing)
}

fn is_enabled(profile: &Value) -> bool {
    profile["status"] != "DISABLED"
}

/// Checks that the profile that a schedule names is there and enabled.
pub(super) fn check(catalogue: &Catalogue<'_>, project: &ProjectName, schedule: &Workflow) -> Result<(), Fault> {
    let property = schedule.keys.events().and_then(|keys| keys.properties.get(PROPERTY));
    let Some(text) = property else { return Ok(()) };
    let (namespace, name) = named(text, &project.namespace);
    if is_enabled(&need(catalogue.reader(), namespace, name)?) {
        return Ok(());
    }
    Err(plain::conflict(format!("the profile \"{name}\" of namespace \"{namespace}\" is disabled: enable it first")))
}

fn names(asked: &CdapRequest) -> (String, String) {
    let namespace = Some(asked.name("namespace")).filter(|name| !name.is_empty()).unwrap_or(SYSTEM);
    (namespace.to_owned(), asked.name("profile").to_owned())
}

pub(super) async fn list(asked: CdapRequest, app: App) -> Result<Json<Value>, Fault> {
    let (namespace, _) = names(&asked);
    look(&app, move |catalogue| {
        let mut all = vec![];
        if namespace == SYSTEM || asked.get("includeSystem") == Some("true") {
            all.push(native());
        }
        let found = catalogue.reader().registers(Some(BUCKET), RegisterKeys::Prefix(&key(&namespace, "")))?;
        all.extend(found.into_iter().map(|register| register.value));
        Ok(Json(Value::Array(all)))
    })
    .await
}

pub(super) async fn get(asked: CdapRequest, app: App) -> Result<Json<Value>, Fault> {
    let (namespace, name) = names(&asked);
    look(&app, move |catalogue| need(catalogue.reader(), &namespace, &name).map(Json)).await
}

pub(super) async fn put(asked: CdapRequest, app: App, body: Bytes) -> Result<(), Fault> {
    let mut profile = fields::object(&body)?;
    let (namespace, name) = names(&asked);
    if namespace == SYSTEM && name == NATIVE {
        return Err(plain::conflict("the profile \"native\" is always there and can't be changed"));
    }
    let old = find_one(&app, &namespace, &name).await?;
    let status = old.as_ref().filter(|old| !is_enabled(old)).map_or("ENABLED", |_| "DISABLED");
    profile["name"] = json!(name);
    profile["scope"] = json!(if namespace == SYSTEM { "SYSTEM" } else { "USER" });
    profile["status"] = json!(status);
    set(&app, &asked, Some(profile)).await
}

async fn find_one(app: &App, namespace: &str, name: &str) -> Result<Option<Value>, Fault> {
    let (namespace, name) = (namespace.to_owned(), name.to_owned());
    Ok(app.read(move |reader| find(reader, &namespace, &name)).await?)
}

async fn set(app: &App, asked: &CdapRequest, value: Option<Value>) -> Result<(), Fault> {
    let (namespace, name) = names(asked);
    let ask = SetRegister { bucket: BUCKET.to_owned(), key: key(&namespace, &name), value, reason: None };
    app.ask(&asked.by, ask).await?;
    Ok(())
}

pub(super) async fn act(asked: CdapRequest, app: App) -> Result<(), Fault> {
    let (namespace, name) = names(&asked);
    let status = match asked.name("action") {
        "enable" => "ENABLED",
        "disable" => "DISABLED",
        other => {
            return Err(plain::bad_request(format!(
                "\"{other}\" can't be done to a profile, expected enable or disable"
            )));
        }
    };
    let mut profile = look(&app, move |catalogue| need(catalogue.reader(), &namespace, &name)).await?;
    if profile["status"] == status {
        return Err(plain::conflict(format!("the profile is {status} already")));
    }
    profile["status"] = json!(status);
    set(&app, &asked, Some(profile)).await
}

pub(super) async fn delete(asked: CdapRequest, app: App) -> Result<(), Fault> {
    let (namespace, name) = names(&asked);
    look(&app, move |catalogue| may_go(catalogue, &namespace, &name)).await?;
    set(&app, &asked, None).await
}

fn may_go(catalogue: &Catalogue<'_>, namespace: &str, name: &str) -> Result<(), Fault> {
    if is_enabled(&need(catalogue.reader(), namespace, name)?) {
        return Err(plain::conflict(format!("the profile \"{name}\" is enabled: disable it first")));
    }
    for row in catalogue.all()?.iter() {
        let project = ProjectName::read(&row.definition.project);
        let property = events(row).and_then(|keys| keys.properties.get(PROPERTY));
        if property.is_some_and(|text| named(text, &project.namespace) == (namespace, name)) {
            return Err(plain::conflict(format!("the profile \"{name}\" is that of {}: delete it first", row.id)));
        }
    }
    Ok(())
}
