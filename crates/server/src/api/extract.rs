//! Parts of requests: queries, paths, bodies and headers, with faults that say what was expected.

use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;
use jiff::civil::Date;
use kelos_front::fault::Fault;
use kelos_front::query::{bad_query, plain_words};
use kelos_front::{App, key};
use kelos_model::json;
use kelos_model::nesting::{self, ValueError};
use kelos_model::time::Zone;
use kelos_model::{BackfillId, RunId, RunState, SlotRef, SlotState, WorkflowId};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use utoipa::IntoParams;

use super::{LARGEST_BODY, LARGEST_PROJECT};

/// The default number of rows on a page.
const USUAL_PAGE: usize = 100;
/// Rows on the longest page.
const LONGEST_PAGE: usize = 1000;

/// The query of a request. Types deny unknown fields, so that a misspelt parameter is not ignored.
pub(super) struct Query<T>(pub(super) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Query<T> {
    type Rejection = Fault;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Fault> {
        let read = axum::extract::Query::<T>::try_from_uri(&parts.uri);
        read.map(|query| Query(query.0)).map_err(|rejection| bad_query(&rejection.body_text()))
    }
}

/// For requests that take no query parameters.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NoParameters {}

/// The names in the path of a request.
pub(super) struct Path<T>(pub(super) T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for Path<T> {
    type Rejection = Fault;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Fault> {
        let read = axum::extract::Path::<T>::from_request_parts(parts, state).await;
        read.map(|path| Path(path.0)).map_err(|rejection| {
            let said = rejection.body_text();
            {
                let said = said.strip_prefix("Invalid URL: ").unwrap_or(&said);
                Fault::bad_request("bad-path", plain_words(said))
            }
        })
    }
}

/// The body of a request, JSON whatever its type is called; an empty one means all defaults.
pub(super) struct Body<T>(pub(super) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Body<T> {
    type Rejection = Fault;

    async fn from_request(request: Request, state: &S) -> Result<Self, Fault> {
        let bytes = whole_body(request, state, LARGEST_BODY).await?;
        parse(if bytes.is_empty() { b"{}" } else { &bytes }).map(Body)
    }
}

/// The body of a request that may be larger than others.
pub(super) struct LargeBody<T>(pub(super) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for LargeBody<T> {
    type Rejection = Fault;

    async fn from_request(request: Request, state: &S) -> Result<Self, Fault> {
        parse(&whole_body(request, state, LARGEST_PROJECT).await?).map(LargeBody)
    }
}

/// A body that must be there, of any JSON.
pub(super) struct AnyJson(pub(super) serde_json::Value);

impl<S: Send + Sync> FromRequest<S> for AnyJson {
    type Rejection = Fault;

    async fn from_request(request: Request, state: &S) -> Result<Self, Fault> {
        parse(&whole_body(request, state, LARGEST_BODY).await?).map(AnyJson)
    }
}

/// A body that is text, to be read elsewhere.
pub(super) struct Text(pub(super) String);

impl<S: Send + Sync> FromRequest<S> for Text {
    type Rejection = Fault;

    async fn from_request(request: Request, state: &S) -> Result<Self, Fault> {
        let bytes = whole_body(request, state, LARGEST_BODY).await?;
        let text = String::from_utf8(bytes.to_vec());
        text.map(Text).map_err(|_| Fault::bad_request("bad-body", "the body is no text in UTF-8"))
    }
}

async fn whole_body<S: Send + Sync>(request: Request, state: &S, largest: usize) -> Result<Bytes, Fault> {
    Bytes::from_request(request, state).await.map_err(|rejection| {
        let too_large = rejection.status() == StatusCode::PAYLOAD_TOO_LARGE;
        let kind = if too_large { "too-large" } else { "bad-body" };
        let said = if too_large {
            format!("the body is too large, expected at most {largest} bytes")
        } else {
            rejection.body_text()
        };
        Fault::new(rejection.status(), kind, said)
    })
}

fn parse<T: DeserializeOwned>(text: &[u8]) -> Result<T, Fault> {
    let text = json::checked(text).map_err(|error| Fault::bad_request("bad-body", format!("the body: {error}")))?;
    let mut json = serde_json::Deserializer::from_slice(text);
    let read = match serde_path_to_error::deserialize(&mut json) {
        Ok(read) => read,
        Err(error) if error.inner().is_syntax() => return deep(text).unwrap_or_else(|| Err(unread_at(&error))),
        Err(error) => return Err(unread_at(&error)),
    };
    json.end().map_err(|error| unread(&error, ""))?;
    Ok(read)
}

/// Reads a body that is deeper than the reader of JSON goes, so that the refusal says which value is nested too deeply. None if it is not.
fn deep<T: DeserializeOwned>(text: &[u8]) -> Option<Result<T, Fault>> {
    match (nesting::read(text), nesting::value(text)) {
        (Ok(value), _) => Some(part(value)),
        (Err(_), Err(ValueError::TooDeep(error))) => {
            Some(Err(Fault::bad_request("too-deep", format!("the body is {error}"))))
        }
        _ => None,
    }
}

/// Something in a body of JSON.
pub(super) fn part<T: DeserializeOwned>(value: serde_json::Value) -> Result<T, Fault> {
    serde_path_to_error::deserialize(value).map_err(|error| unread_at(&error))
}

/// The fault of a body, with the path of the field that is wrong.
fn unread_at(error: &serde_path_to_error::Error<serde_json::Error>) -> Fault {
    let path = error.path().to_string();
    let said = error.inner().to_string();
    let field = match path.as_str() {
        "." => "",
        // The message of an unknown field names it; the path is that of its object.
        path if said.starts_with("unknown field") => path.rsplit_once('.').map_or("", |(object, _)| object),
        path => path,
    };
    unread(error.inner(), field)
}

fn unread(error: &serde_json::Error, field: &str) -> Fault {
    let what = if error.is_data() { "the body is JSON, but not as expected" } else { "the body is not JSON" };
    let said = with_numbers_in_words(&without_type_names(&error.to_string()));
    let place = if field.is_empty() || !error.is_data() { String::new() } else { format!("`{field}`: ") };
    Fault::bad_request("bad-body", format!("{what}: {place}{said}"))
}

/// Rewords `expected u32`, which only people who know Rust understand.
fn with_numbers_in_words(said: &str) -> String {
    let words = [
        ("expected u32", "expected a whole number from 0 to 4294967295"),
        ("expected u64", "expected a whole number from 0"),
        ("expected i32", "expected a whole number from -2147483648 to 2147483647"),
        ("expected i64", "expected a whole number"),
    ];
    words.iter().fold(said.to_owned(), |said, (type_name, words)| said.replace(type_name, words))
}

/// Rewords `expected struct Request with 7 elements at line 1 …`, which is internal to this program.
fn without_type_names(said: &str) -> String {
    match said.split_once("expected struct ") {
        Some((before, after)) => {
            let place = after.find(" at line").map_or("", |at| &after[at..]);
            format!("{before}expected an object{place}")
        }
        None => said.to_owned(),
    }
}

/// Reads a value from a text, with an error message for people.
fn from_text<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    read: impl FnOnce(&str) -> Result<T, String>,
) -> Result<T, D::Error> {
    let text = String::deserialize(deserializer)?;
    read(&text).map_err(D::Error::custom)
}

/// A day: `2026-03-29`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Day(pub(super) Date);

impl<'de> Deserialize<'de> for Day {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_text(deserializer, |text| {
            let read = text.parse::<Date>().ok().filter(|day| day.to_string() == text);
            read.map(Day).ok_or_else(|| format!("\"{text}\" is no day, expected one such as 2026-03-29"))
        })
    }
}

/// A zone, by its name.
#[derive(Debug, Clone)]
pub(super) struct ZoneName(pub(super) Zone);

impl<'de> Deserialize<'de> for ZoneName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_text(deserializer, |text| Zone::parse(text).map(ZoneName).map_err(|error| error.to_string()))
    }
}

/// How many rows a page has at the most.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limit(pub(super) usize);

impl Default for Limit {
    fn default() -> Limit {
        Limit(USUAL_PAGE)
    }
}

impl<'de> Deserialize<'de> for Limit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_text(deserializer, |text| match text.parse() {
            Ok(limit @ 1..=LONGEST_PAGE) => Ok(Limit(limit)),
            _ => Err(format!("\"{text}\" is no number of rows, expected 1 to {LONGEST_PAGE}")),
        })
    }
}

/// States, by their names with commas between.
#[derive(Debug, Clone)]
pub(super) struct Names<T>(pub(super) Vec<T>);

impl<T> Default for Names<T> {
    fn default() -> Self {
        Names(Vec::new())
    }
}

pub(super) trait NamedParameter: Sized + Copy + 'static {
    const ALL: &'static [Self];
    fn name(self) -> &'static str;
}

impl NamedParameter for SlotState {
    const ALL: &'static [SlotState] = &SlotState::ALL;
    fn name(self) -> &'static str {
        self.as_str()
    }
}

impl NamedParameter for RunState {
    const ALL: &'static [RunState] = &RunState::ALL;
    fn name(self) -> &'static str {
        self.as_str()
    }
}

impl<'de, T: NamedParameter> Deserialize<'de> for Names<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let find = |name: &str| {
            let found = T::ALL.iter().copied().find(|state| state.name() == name);
            found.ok_or_else(|| {
                let known: Vec<_> = T::ALL.iter().map(|state| state.name()).collect();
                format!("\"{name}\" is no state, expected some of {} with commas between", known.join(", "))
            })
        };
        from_text(deserializer, |text| {
            text.split(',').map(|name| find(name.trim())).collect::<Result<_, _>>().map(Names)
        })
    }
}

/// A workflow in the path.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct WorkflowPath {
    /// The id of the workflow.
    #[param(value_type = String)]
    pub(super) id: WorkflowId,
}

/// A slot in the path.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct SlotPath {
    /// The id of the workflow.
    #[param(value_type = String)]
    pub(super) id: WorkflowId,
    /// The time of the slot, such as `2015-09-13T13:40Z`; a job id, with or without a `~` before it, where the workflow
    /// is keyed by job ids.
    pub(super) time: String,
}

impl SlotPath {
    pub(super) async fn slot(&self, app: &App) -> Result<SlotRef, Fault> {
        key::slot(app, &self.id, &self.time).await
    }
}

/// A run in the path.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct RunPath {
    /// The id of the workflow.
    #[param(value_type = String)]
    id: WorkflowId,
    /// The time of the slot, such as `2015-09-13T13:40Z`; a job id, with or without a `~` before it, where the workflow
    /// is keyed by job ids.
    time: String,
    /// The number of the run, from 1.
    pub(super) number: u32,
}

impl RunPath {
    pub(super) async fn slot(&self, app: &App) -> Result<SlotRef, Fault> {
        key::slot(app, &self.id, &self.time).await
    }

    pub(super) async fn run(&self, app: &App) -> Result<RunId, Fault> {
        Ok(RunId { slot: self.slot(app).await?, number: self.number })
    }
}

/// A backfill in the path.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct BackfillPath {
    /// The name of the backfill.
    #[param(value_type = String)]
    pub(super) id: BackfillId,
}

/// A register in the path.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct RegisterPath {
    /// The bucket of the register.
    pub(super) bucket: String,
    /// Its key in the bucket.
    pub(super) key: String,
}

/// A bucket in the path.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct BucketPath {
    /// The bucket.
    pub(super) bucket: String,
}
