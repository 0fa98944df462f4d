//! Servlets for registers: JSON values that scripts read.

use axum::response::Response;
use kelos_core::SetRegister;
use kelos_front::App;
use kelos_front::fault::{Fault, plain};
use kelos_front::scope::refuse_reserved;
use kelos_model::Actor;
use kelos_model::json::{self, JsonError};
use kelos_model::register::ACCESS_BUCKET;
use kelos_store::RegisterKeys;
use serde::Serialize;
use serde_json::Value;

use super::as_json;
use super::params::{Params, register_name};

#[derive(Serialize)]
struct Keys {
    keys: Vec<String>,
}

fn name(params: &Params, name: &str) -> Result<String, Fault> {
    register_name(name, params.require(name)?)
}

pub(super) async fn get(app: App, params: Params) -> Result<Response, Fault> {
    let (bucket, key) = (shown_bucket(&params)?, name(&params, "key")?);
    let value = app.read(move |reader| reader.register(&bucket, &key)).await?;
    let value = value.ok_or_else(|| plain::not_found("Register not found"))?;
    Ok(as_json(&value))
}

pub(super) async fn put(app: App, params: Params) -> Result<(), Fault> {
    let (bucket, key) = (name(&params, "bucket")?, name(&params, "key")?);
    let value = json::value(&params.body).map_err(|error| match error {
        JsonError::TooDeep(error) => Fault::bad_request("too-deep", format!("The value is {error}")),
        error => plain::bad_request(format!("The body must be JSON: {error}")),
    })?;
    set(&app, &params.by, bucket, key, Some(value)).await
}

/// Deletes one register, or all whose key begins with `prefix`.
pub(super) async fn delete(app: App, params: Params) -> Result<(), Fault> {
    let bucket = name(&params, "bucket")?;
    let Some(prefix) = params.get("prefix").filter(|_| params.get("key").is_none()) else {
        return set(&app, &params.by, bucket, name(&params, "key")?, None).await;
    };
    let (of, prefix) = (bucket.clone(), register_name("prefix", prefix)?);
    for register in app.read(move |reader| reader.registers(Some(&of), RegisterKeys::Prefix(&prefix))).await? {
        set(&app, &params.by, bucket.clone(), register.key, None).await?;
    }
    Ok(())
}

pub(super) async fn list(app: App, params: Params) -> Result<Response, Fault> {
    let bucket = shown_bucket(&params)?;
    let prefix = register_name("prefix", params.get("prefix").unwrap_or_default())?;
    let found = app.read(move |reader| reader.registers(Some(&bucket), RegisterKeys::Prefix(&prefix))).await?;
    Ok(as_json(&Keys { keys: found.into_iter().map(|register| register.key).collect() }))
}

/// The bucket to read: the one of users and tokens looks as if it had no registers.
fn shown_bucket(params: &Params) -> Result<String, Fault> {
    let bucket = name(params, "bucket")?;
    Ok(if bucket == ACCESS_BUCKET { String::new() } else { bucket })
}

async fn set(app: &App, by: &Actor, bucket: String, key: String, value: Option<Value>) -> Result<(), Fault> {
    refuse_reserved(&bucket)?;
    app.ask(by, SetRegister { bucket, key, value, reason: None }).await?;
    Ok(())
}
