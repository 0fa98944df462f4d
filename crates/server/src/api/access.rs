//! The routes about access: who the caller is, tokens for names and passwords, users, tokens, and what is on record.

use std::sync::Arc;

use axum::Json;
use axum::extract::Extension;
use axum::http::StatusCode;
use jiff::{SignedDuration, Timestamp};

use kelos_front::fault::Fault;
use kelos_front::identity::{Caller, Identity};
use kelos_front::{App, Front};
use kelos_model::{Actor, ActorKind, EventRecord};
use kelos_store::{EventFilter, PageRequest};
use kelos_trust::{AccountName, Directory, Grant, Right, Token, TokenId, TokenRecord, UserRecord};
use kelos_wire::{
    AuditDto, EventDto, IdentityDto, ListDto, LoginRequest, NewTokenDto, PageDto, ProblemDetailsDto, ReasonRequest,
    TokenDto, TokenRequest, UserDto, UserRequest,
};
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::extract::{Body, Limit, NoParameters, Path, Query};

/// The routes.
pub(super) fn routes() -> OpenApiRouter<Front> {
    OpenApiRouter::new()
        .routes(routes!(whoami))
        .routes(routes!(login))
        .routes(routes!(users))
        .routes(routes!(put_user, delete_user))
        .routes(routes!(tokens, make_token))
        .routes(routes!(revoke))
        .routes(routes!(audit))
}

/// The longest time for which a token for a name and a password is made.
const LONGEST_LOGIN: u64 = 366 * 86_400;
/// Events that are read at a time to find those that somebody caused.
const READ_AT_ONCE: usize = 1_000;
/// Most events that one page of the record reads through. A page that ends there may be short, and the list goes on.
const MOST_READ: usize = 100_000;

/// A user in the path.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct UserPath {
    /// The name of the user.
    name: String,
}

/// A token in the path.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct TokenPath {
    /// The id of the token, or its name if no other token has it.
    id: String,
}

/// Says who the caller is, and what they may do.
#[utoipa::path(get, path = "/whoami", tag = "access", responses(
    (status = 200, description = "The caller", body = IdentityDto),
    (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
))]
pub(super) async fn whoami(
    _: Query<NoParameters>,
    Extension(identity): Extension<Arc<Identity>>,
    app: App,
) -> Json<IdentityDto> {
    Json(IdentityDto {
        name: identity.actor.to_string(),
        kind: identity.actor.kind.as_str().into(),
        credential: identity.actor.credential.as_ref().map(ToString::to_string),
        roles: identity.grants.own().iter().map(ToString::to_string).collect(),
        required: app.access().is_required(),
    })
}

/// Makes a token for a user who gives their name and password.
#[utoipa::path(post, path = "/login", tag = "access", request_body = LoginRequest, responses(
    (status = 200, description = "The token, which is shown this once", body = NewTokenDto),
    (status = 401, description = "The name or the password is wrong", body = ProblemDetailsDto, content_type = "application/problem+json"),
    (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
))]
pub(super) async fn login(
    _: Query<NoParameters>,
    Extension(identity): Extension<Arc<Identity>>,
    app: App,
    Body(asked): Body<LoginRequest>,
) -> Result<Json<NewTokenDto>, Fault> {
    if !app.access().is_required() {
        let what = "this server asks nobody who they are, so there is nothing to log in to";
        return Err(Fault::conflict("no-access-control", what).with_hint("start it with --auth"));
    }
    let from = identity.actor.address;
    app.access().sign_in(app.node().handle(), &asked.user, &asked.password, from).await?;
    let owner = name(&asked.user)?;
    let roles = directory(&app)?.user(owner.as_str()).map(|user| user.roles.clone()).unwrap_or_default();
    let by = Actor::person(owner.as_str()).with_address(from);
    let expires_in = Some(asked.expires_in.unwrap_or(LONGEST_LOGIN).min(LONGEST_LOGIN));
    let new = NewToken { name: new_name(&asked.name)?, roles, owner: Some(owner), expires_in, reason: None };
    new.make(&app, &by).await.map(Json)
}

/// Lists the users, ascending by name.
#[utoipa::path(get, path = "/users", tag = "access", responses(
    (status = 200, description = "The users", body = ListDto<UserDto>),
    (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
))]
pub(super) async fn users(_: Query<NoParameters>, app: App) -> Result<Json<ListDto<UserDto>>, Fault> {
    app.require(Right::Audit, None, "GET /api/v1/users")?;
    let directory = directory(&app)?;
    Ok(Json(ListDto { items: directory.users().map(|(name, user)| shown(name, user)).collect() }))
}

fn shown(name: &str, user: &UserRecord) -> UserDto {
    UserDto {
        name: name.to_owned(),
        roles: user.roles.iter().map(ToString::to_string).collect(),
        has_password: user.password.is_some(),
        disabled: user.disabled,
    }
}

/// Makes a user, or changes what the body names of one.
#[utoipa::path(put, path = "/users/{name}", tag = "access", params(UserPath), request_body = UserRequest, responses(
    (status = 200, description = "The user", body = UserDto),
    (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
))]
pub(super) async fn put_user(
    Path(path): Path<UserPath>,
    _: Query<NoParameters>,
    Caller(by): Caller,
    app: App,
    Body(asked): Body<UserRequest>,
) -> Result<Json<UserDto>, Fault> {
    app.require(Right::Admin, None, "PUT /api/v1/users/{name}")?;
    let name = name(&path.name)?;
    let known = directory(&app)?.user(name.as_str()).cloned();
    if known.is_none() {
        new_name(name.as_str())?;
    }
    let roles = asked.roles.map(|roles| grants(&roles)).transpose()?;
    let mut user = match (known, roles.clone()) {
        (Some(user), _) => user,
        (None, Some(roles)) => UserRecord { roles, password: None, disabled: false, epoch: 0 },
        (None, None) => {
            let what = format!("the user \"{name}\" is new, expected `roles` such as [\"operate@warehouse\"]");
            return Err(Fault::bad_request("bad-body", what));
        }
    };
    user.roles = roles.unwrap_or(user.roles);
    user.disabled = asked.disabled.unwrap_or(user.disabled);
    if let Some(password) = asked.password {
        user.password = Some(app.access().hash_of(password).await?);
        user.epoch = user.epoch.saturating_add(1);
    }
    let value = serde_json::to_value(&user).map_err(|error| Fault::bad_request("bad-body", error.to_string()))?;
    app.access().set(app.node().handle(), &by, UserRecord::key(&name), Some(value), asked.reason).await?;
    Ok(Json(shown(name.as_str(), &user)))
}

/// Removes a user, whose sessions and tokens end with it.
#[utoipa::path(delete, path = "/users/{name}", tag = "access", params(UserPath, ReasonRequest), responses(
    (status = 204, description = "There is no such user any more"),
    (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
))]
pub(super) async fn delete_user(
    Path(path): Path<UserPath>,
    Query(because): Query<ReasonRequest>,
    Caller(by): Caller,
    app: App,
) -> Result<StatusCode, Fault> {
    app.require(Right::Admin, None, "DELETE /api/v1/users/{name}")?;
    let name = name(&path.name)?;
    let directory = directory(&app)?;
    if directory.user(name.as_str()).is_none() {
        return Err(Fault::not_found("user-not-found", format!("there is no user \"{name}\"")));
    }
    let owned = directory.tokens().filter(|(_, token)| token.owner.as_ref() == Some(&name));
    for (id, _) in owned {
        app.access().set(app.node().handle(), &by, TokenRecord::key(id), None, because.reason.clone()).await?;
    }
    app.access().set(app.node().handle(), &by, UserRecord::key(&name), None, because.reason).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Lists tokens: all of them for auditors, their own for others.
#[utoipa::path(get, path = "/tokens", tag = "access", responses(
    (status = 200, description = "The tokens, without their secrets", body = ListDto<TokenDto>),
    (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
))]
pub(super) async fn tokens(
    _: Query<NoParameters>,
    Caller(by): Caller,
    app: App,
) -> Result<Json<ListDto<TokenDto>>, Fault> {
    let directory = directory(&app)?;
    let sees_all = app.may(Right::Audit, None);
    let seen = directory.tokens().filter(|(_, token)| sees_all || is_own(token, &by));
    Ok(Json(ListDto { items: seen.map(|(id, token)| of_token(&app, id, token)).collect() }))
}

fn is_own(token: &TokenRecord, by: &Actor) -> bool {
    by.kind == ActorKind::Person && token.owner.as_ref().is_some_and(|owner| owner.as_str() == &*by.name)
}

fn of_token(app: &App, id: &TokenId, token: &TokenRecord) -> TokenDto {
    TokenDto {
        id: id.to_string(),
        name: token.name.to_string(),
        roles: token.roles.iter().map(ToString::to_string).collect(),
        owner: token.owner.as_ref().map(ToString::to_string),
        made_at: token.made_at.into(),
        expires_at: token.expires_at.map(Into::into),
        last_used_at: app.access().last_use(app.node().handle(), id).map(Into::into),
    }
}

/// Makes a token: for a machine, if an administrator asks; for themselves, if another user does.
#[utoipa::path(post, path = "/tokens", tag = "access", request_body = TokenRequest, responses(
    (status = 200, description = "The token, which is shown this once", body = NewTokenDto),
    (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
))]
pub(super) async fn make_token(
    _: Query<NoParameters>,
    Extension(identity): Extension<Arc<Identity>>,
    app: App,
    Body(asked): Body<TokenRequest>,
) -> Result<Json<NewTokenDto>, Fault> {
    let roles = grants(&asked.roles)?;
    let is_admin = app.may(Right::Admin, None);
    let mut owner = None;
    if !is_admin {
        let user = directory(&app)?.user(&identity.actor.name).is_some();
        if identity.actor.kind != ActorKind::Person || !user {
            app.require(Right::Admin, None, "POST /api/v1/tokens")?;
        }
        owner = Some(name(&identity.actor.name)?);
        if let Some(role) = roles.iter().find(|role| !identity.grants.cover(role)) {
            let what = format!("{} does not have the role {role}, and can't hand it on", identity.actor);
            return Err(Fault::new(StatusCode::FORBIDDEN, "forbidden", what));
        }
    }
    let new =
        NewToken { name: new_name(&asked.name)?, roles, owner, expires_in: asked.expires_in, reason: asked.reason };
    new.make(&app, &identity.actor).await.map(Json)
}

/// Revokes a token. What is under way in its name goes on.
#[utoipa::path(delete, path = "/tokens/{id}", tag = "access", params(TokenPath, ReasonRequest), responses(
    (status = 204, description = "The token opens nothing any more"),
    (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
))]
pub(super) async fn revoke(
    Path(path): Path<TokenPath>,
    Query(because): Query<ReasonRequest>,
    Caller(by): Caller,
    app: App,
) -> Result<StatusCode, Fault> {
    let directory = directory(&app)?;
    let is_admin = app.may(Right::Admin, None);
    let found = directory.token(&path.id).filter(|(_, token)| is_admin || is_own(token, &by));
    let Some((id, _)) = found else {
        let what = format!("there is no token \"{}\", or several have that name", path.id.escape_debug());
        return Err(Fault::not_found("token-not-found", what).with_hint("`kelos token list` shows their ids"));
    };
    app.access().set(app.node().handle(), &by, TokenRecord::key(id), None, because.reason.clone()).await?;
    app.access().set(app.node().handle(), &by, Directory::key_of_use(id), None, because.reason).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The part of the record that is asked for.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct AuditQuery {
    /// Only what this actor did, by name.
    who: Option<String>,
    /// Only what somebody did with this credential.
    credential: Option<String>,
    /// The `next` of the page before.
    cursor: Option<String>,
    /// Events on a page.
    #[serde(default)]
    #[param(value_type = Option<u32>)]
    limit: Limit,
}

/// Lists what people, programs and machines did, newest first: with who it was, from where, and by which credential.
#[utoipa::path(get, path = "/audit", tag = "access", params(AuditQuery), responses(
    (status = 200, description = "A page of the record", body = PageDto<AuditDto>),
    (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
))]
pub(super) async fn audit(Query(wanted): Query<AuditQuery>, app: App) -> Result<Json<PageDto<AuditDto>>, Fault> {
    app.require(Right::Audit, None, "GET /api/v1/audit")?;
    let page = app.read(move |reader| {
        let is_wanted = |by: &Actor| {
            by.kind != ActorKind::System
                && wanted.who.as_ref().is_none_or(|who| **who == *by.name)
                && wanted.credential.as_ref().is_none_or(|one| by.credential.as_deref() == Some(one))
        };
        let (mut items, mut from, mut was_read) = (Vec::new(), wanted.cursor.clone(), 0);
        loop {
            let limit = READ_AT_ONCE;
            let page = reader.events(&EventFilter::default(), PageRequest::newest(limit).after(from.as_deref()))?;
            was_read += page.rows.len();
            for record in page.rows {
                let position = record.seq;
                items.extend(record.event.by().cloned().filter(is_wanted).map(|by| row(&by, record)));
                if items.len() == wanted.limit.0 {
                    return Ok(PageDto { items, next: Some(position.to_string()) });
                }
            }
            from = page.next;
            if from.is_none() || was_read >= MOST_READ {
                return Ok(PageDto { items, next: from });
            }
        }
    });
    Ok(Json(page.await?))
}

fn row(by: &Actor, record: EventRecord) -> AuditDto {
    AuditDto {
        who: by.to_string(),
        kind: by.kind.as_str().into(),
        credential: by.credential.as_ref().map(ToString::to_string),
        address: by.address.map(|address| address.to_string()),
        event: EventDto::from(record),
    }
}

/// A token that is to be made.
struct NewToken {
    name: AccountName,
    roles: Vec<Grant>,
    owner: Option<AccountName>,
    expires_in: Option<u64>,
    reason: Option<String>,
}

impl NewToken {
    async fn make(self, app: &App, by: &Actor) -> Result<NewTokenDto, Fault> {
        let NewToken { name, roles, owner, expires_in, reason } = self;
        let now = app.handle().now();
        let expires_at = expires_in.map(|seconds| end(now, seconds)).transpose()?;
        let token = Token::draw().map_err(|error| {
            let what = format!("no token could be made: {error}");
            Fault::new(StatusCode::INTERNAL_SERVER_ERROR, "bug", what)
        })?;
        let record = TokenRecord { name, digest: token.digest(), roles, owner, made_at: now, expires_at };
        let value = serde_json::to_value(&record).map_err(|error| Fault::bad_request("bad-body", error.to_string()))?;
        app.access().set(app.node().handle(), by, TokenRecord::key(token.id()), Some(value), reason).await?;
        Ok(NewTokenDto { secret: token.reveal().to_owned(), token: of_token(app, token.id(), &record) })
    }
}

fn end(now: Timestamp, seconds: u64) -> Result<Timestamp, Fault> {
    let lasts = i64::try_from(seconds).ok().filter(|seconds| *seconds > 0).map(SignedDuration::from_secs);
    lasts.and_then(|lasts| now.checked_add(lasts).ok()).ok_or_else(|| {
        Fault::bad_request("bad-body", format!("`expiresIn` is {seconds}, expected a number of seconds from 1"))
    })
}

fn directory(app: &App) -> Result<Arc<Directory>, Fault> {
    Ok(app.access().directory(app.node().handle())?)
}

fn name(text: &str) -> Result<AccountName, Fault> {
    AccountName::new(text).map_err(|error| Fault::bad_request("bad-name", format!("failed to {error}")))
}

/// A name that somebody is about to be given.
fn new_name(text: &str) -> Result<AccountName, Fault> {
    AccountName::given(text).map_err(|error| Fault::bad_request("bad-name", format!("failed to {error}")))
}

fn grants(texts: &[String]) -> Result<Vec<Grant>, Fault> {
    let read = texts.iter().map(|text| text.parse::<Grant>().and_then(|grant| grant.check().map(|()| grant)));
    read.collect::<Result<_, _>>().map_err(|error| Fault::bad_request("bad-role", format!("failed to {error}")))
}
