//! Registers: small JSON values that scripts read.

use axum::Json;
use kelos_core::SetRegister;
use kelos_front::App;
use kelos_front::fault::Fault;
use kelos_front::scope::refuse_reserved;
use kelos_model::id::is_invisible;
use kelos_model::register::ACCESS_BUCKET;
use kelos_store::{Register, RegisterKeys};
use kelos_wire::{ListDto, ProblemDetailsDto, ReasonRequest, RegisterDto};
use serde::Deserialize;
use utoipa::IntoParams;

use super::extract::{AnyJson, BucketPath, NoParameters, Path, Query, RegisterPath};
use kelos_front::identity::Caller;

/// Longest bucket or key, in bytes.
const LONGEST_NAME: usize = 512;

/// The registers to list.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct RegisterListQuery {
    /// Only those whose key begins with this.
    #[serde(default)]
    #[param(value_type = Option<String>)]
    prefix: String,
}

/// Lists the registers of a bucket, ascending by key.
#[utoipa::path(get, path = "/registers/{bucket}", tag = "registers", params(BucketPath, RegisterListQuery), responses(
    (status = 200, description = "The registers; none where there is no such bucket", body = ListDto<RegisterDto>),
    (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
))]
pub(super) async fn list(
    Path(path): Path<BucketPath>,
    Query(wanted): Query<RegisterListQuery>,
    app: App,
) -> Result<Json<ListDto<RegisterDto>>, Fault> {
    if path.bucket == ACCESS_BUCKET {
        return Ok(Json(ListDto { items: Vec::new() }));
    }
    let found =
        app.read(move |reader| reader.registers(Some(&path.bucket), RegisterKeys::Prefix(&wanted.prefix))).await?;
    let register = |Register { bucket, key, value }| RegisterDto { bucket, key, value };
    Ok(Json(ListDto { items: found.into_iter().map(register).collect() }))
}

/// Shows a register.
#[utoipa::path(get, path = "/registers/{bucket}/{key}", tag = "registers", params(RegisterPath), responses(
    (status = 200, description = "The register", body = RegisterDto),
    (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
))]
pub(super) async fn get(
    Path(path): Path<RegisterPath>,
    _: Query<NoParameters>,
    app: App,
) -> Result<Json<RegisterDto>, Fault> {
    let RegisterPath { bucket, key } = path;
    let name = (bucket.clone(), key.clone());
    match app.read(move |reader| reader.register(&name.0, &name.1)).await?.filter(|_| bucket != ACCESS_BUCKET) {
        Some(value) => Ok(Json(RegisterDto { bucket, key, value })),
        None => {
            let detail = format!("bucket \"{bucket}\" has no register \"{key}\"");
            Err(Fault::not_found("register-not-found", detail))
        }
    }
}

/// Sets a register to the JSON value in the body.
#[utoipa::path(
    put,
    path = "/registers/{bucket}/{key}",
    tag = "registers",
    params(RegisterPath, ReasonRequest),
    request_body = Value,
    responses(
        (status = 200, description = "It is set", body = RegisterDto),
        (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
    )
)]
pub(super) async fn put(
    Path(path): Path<RegisterPath>,
    Query(because): Query<ReasonRequest>,
    Caller(by): Caller,
    app: App,
    AnyJson(value): AnyJson,
) -> Result<Json<RegisterDto>, Fault> {
    let RegisterPath { bucket, key } = path;
    refuse_reserved(&bucket)?;
    for name in [&bucket, &key] {
        if name.len() > LONGEST_NAME || name.chars().any(is_invisible) {
            let detail = format!("the name of a register has at most {LONGEST_NAME} bytes and no invisible characters");
            return Err(Fault::bad_request("bad-path", detail));
        }
    }
    let ask =
        SetRegister { bucket: bucket.clone(), key: key.clone(), value: Some(value.clone()), reason: because.reason };
    app.ask(&by, ask).await?;
    Ok(Json(RegisterDto { bucket, key, value }))
}

/// Deletes a register. One that is not there is fine too.
#[utoipa::path(delete, path = "/registers/{bucket}/{key}", tag = "registers", params(RegisterPath, ReasonRequest), responses(
    (status = 204, description = "It is not there"),
    (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
))]
pub(super) async fn delete(
    Path(path): Path<RegisterPath>,
    Query(because): Query<ReasonRequest>,
    Caller(by): Caller,
    app: App,
) -> Result<axum::http::StatusCode, Fault> {
    let RegisterPath { bucket, key } = path;
    refuse_reserved(&bucket)?;
    app.ask(&by, SetRegister { bucket, key, value: None, reason: because.reason }).await?;
    Ok(axum::http::StatusCode::NO_CONTENT)
}
