//! Signing in and out, and the page about access: what the caller may do, users, tokens, and what is on record.

use std::sync::Arc;

use axum::Form;
use axum::Router;
use axum::extract::rejection::{FormRejection, QueryRejection};
use axum::extract::{Extension, Query};
use axum::http::{HeaderMap, header};
use axum::response::Response;
use axum::routing::{get, post};
use kelos_front::fault::Fault;
use kelos_front::identity::Identity;
use kelos_front::{Access, App, ClientAddress, Front};
use kelos_model::{Event, EventRecord};
use kelos_store::{About, EventFilter, PageRequest};
use kelos_trust::{Directory, Grant, ProviderAnswer, Right};
use maud::{Markup, html};
use serde::Deserialize;

use super::page::{Page, segment};
use super::viewer::SIGN_IN;
use super::{asked, events, time, viewer};

/// The address that leads to the provider of OpenID Connect.
const OPENID: &str = "/ui/sign-in/openid";
/// Events about access that are shown.
const SHOWN: usize = 100;

pub(super) fn router() -> Router<Front> {
    Router::new()
        .route("/ui/sign-in", get(form).post(sign_in))
        .route("/ui/sign-in/openid", get(visit))
        .route("/ui/sign-in/openid/callback", get(vouched))
        .route("/ui/sign-out", post(sign_out))
        .route("/ui/access", get(show))
}

/// The address of the form for signing in, which leads back to a place.
#[must_use]
pub fn sign_in_href(place: &str) -> String {
    format!("{SIGN_IN}?back={}", segment(place))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SignInQuery {
    back: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SignInForm {
    name: String,
    password: String,
    back: Option<String>,
}

async fn form(app: App, wanted: Result<Query<SignInQuery>, QueryRejection>) -> Result<Response, Fault> {
    let back = own_place(asked::query(wanted)?.back);
    Ok(page(&app, &back, "", None))
}

/// A place on this server; a form that came from elsewhere could name another.
fn own_place(back: Option<String>) -> String {
    let is_own = |place: &String| {
        (place == "/ui" || place.starts_with("/ui/") || place.starts_with("/ui?"))
            && !place.contains(['\\', '\r', '\n'])
    };
    back.filter(is_own).unwrap_or_else(|| "/ui".to_owned())
}

fn page(app: &App, back: &str, name: &str, fault: Option<&Fault>) -> Response {
    let body = html! {
        h1 { "Sign in" }
        @if let Some(fault) = fault { p.bad-text role="alert" { "Not signed in: " (fault.what) "." } }
        @if let Some(issuer) = app.access().issuer() {
            p { a.button.primary href=(format!("{OPENID}?back={}", segment(back))) { "Sign in with " (host(issuer)) } }
            p.soft { "Or with a password of this server:" }
        }
        form.display method="post" action=(SIGN_IN) {
            input type="hidden" name="back" value=(back);
            p { label { "Name " input #sign-in-name name="name" value=(name) required maxlength="64" autocomplete="username" autofocus[name.is_empty()] spellcheck="false"; } }
            p { label { "Password " input #sign-in-password type="password" name="password" required maxlength="1024" autocomplete="current-password" autofocus[!name.is_empty()]; } }
            p { button.primary { "Sign in" } }
        }
        p.soft { "Who may sign in is said by `kelos user list`, on the server." }
    };
    let mut response = Page::bare("Sign in").style("pages.css").show(&body);
    if let Some(fault) = fault {
        *response.status_mut() = fault.status;
    }
    response
}

/// The host of an address, by which people know it.
fn host(address: &str) -> &str {
    let (_, rest) = address.split_once("://").unwrap_or(("", address));
    rest.split('/').next().unwrap_or(rest)
}

/// Sends a browser to the provider.
async fn visit(
    app: App,
    client: Option<Extension<ClientAddress>>,
    wanted: Result<Query<SignInQuery>, QueryRejection>,
) -> Result<Response, Fault> {
    let back = own_place(asked::query(wanted)?.back);
    let is_secure = client.is_some_and(|client| client.is_secure);
    match app.access().begin_visit(app.node().handle(), &back, is_secure).await {
        Ok((entrance, cookie)) => {
            let mut response = asked::back_to(&entrance);
            response.headers_mut().append(header::SET_COOKIE, cookie);
            Ok(response)
        }
        Err(fault) if app.access().issuer().is_some() => Ok(page(&app, &back, "", Some(&fault))),
        Err(fault) => Err(fault),
    }
}

/// Takes the answer with which the provider sends a browser back.
async fn vouched(
    app: App,
    Extension(identity): Extension<Arc<Identity>>,
    client: Option<Extension<ClientAddress>>,
    headers: HeaderMap,
    answer: Result<Query<ProviderAnswer>, QueryRejection>,
) -> Result<Response, Fault> {
    let answer = asked::query(answer)?;
    let is_secure = client.is_some_and(|client| client.is_secure);
    let ended = app.access().end_visit(app.node().handle(), &headers, &answer, identity.actor.address).await;
    let mut response = match ended {
        Ok((session, back)) => {
            let mut response = asked::back_to(&back);
            response.headers_mut().append(header::SET_COOKIE, app.access().cookie(&session, is_secure));
            response
        }
        Err(fault) if app.access().issuer().is_some() => page(&app, "/ui", "", Some(&fault)),
        Err(fault) => return Err(fault),
    };
    response.headers_mut().append(header::SET_COOKIE, Access::no_visit(is_secure));
    Ok(response)
}

async fn sign_in(
    app: App,
    Extension(identity): Extension<Arc<Identity>>,
    client: Option<Extension<ClientAddress>>,
    sent: Result<Form<SignInForm>, FormRejection>,
) -> Result<Response, Fault> {
    let sent = asked::form(sent)?;
    let back = own_place(sent.back);
    let is_secure = client.is_some_and(|client| client.is_secure);
    if !app.access().is_required() {
        return Ok(asked::back_to(&back));
    }
    let session = app.access().sign_in(app.node().handle(), &sent.name, &sent.password, identity.actor.address).await;
    let session = match session {
        Ok(session) => session,
        Err(fault) if fault.status.is_client_error() => return Ok(page(&app, &back, &sent.name, Some(&fault))),
        Err(fault) => return Err(fault),
    };
    let mut response = asked::back_to(&back);
    response.headers_mut().append(header::SET_COOKIE, app.access().cookie(&session, is_secure));
    Ok(response)
}

async fn sign_out(
    app: App,
    Extension(identity): Extension<Arc<Identity>>,
    client: Option<Extension<ClientAddress>>,
) -> Result<Response, Fault> {
    let is_secure = client.is_some_and(|client| client.is_secure);
    if let Some((session, _)) = identity.session() {
        app.access().sign_out(app.node().handle(), &identity.actor, session).await?;
    }
    let mut response = asked::back_to(SIGN_IN);
    response.headers_mut().append(header::SET_COOKIE, Access::no_cookie(is_secure));
    Ok(response)
}

async fn show(app: App, Extension(identity): Extension<Arc<Identity>>) -> Result<Response, Fault> {
    let directory = app.access().directory(app.node().handle())?;
    let is_auditor = app.may(Right::Audit, None);
    let body = html! {
        h1 { "Access" }
        (own(&app, &identity))
        @if is_auditor {
            (users(&directory))
            (tokens(&app, &directory))
            (recorded(&app).await?)
        }
    };
    Ok(Page::new(&app, "Access").style("pages.css").show(&body))
}

fn own(app: &App, identity: &Identity) -> Markup {
    html! {
        section {
            h2 { "You" }
            @if app.access().is_required() {
                p { b { (identity.actor) } ", by " (identity.actor.credential.as_deref().unwrap_or("no credential")) ": " (roles(identity.grants.own())) }
            } @else {
                p { "This server asks nobody who they are: whoever reaches its port may do everything. Start it with " code { "--auth" } " to change that." }
            }
            @if let Some((session, _)) = identity.session() {
                p.soft { "The session ends " (time::at(session.until)) "." }
                form method="post" action="/ui/sign-out" { (viewer::proof()) button { "Sign out" } }
            }
        }
    }
}

fn roles(grants: &[Grant]) -> String {
    let named: Vec<String> = grants.iter().map(ToString::to_string).collect();
    if named.is_empty() { "no role".to_owned() } else { named.join(", ") }
}

fn users(directory: &Directory) -> Markup {
    html! {
        section {
            h2 { "Users" }
            table {
                thead { tr { th { "Name" } th { "Roles" } th { "Comes in by" } } }
                tbody {
                    @for (name, user) in directory.users() {
                        tr {
                            td { (name) }
                            td { (roles(&user.roles)) }
                            td { @if user.disabled { "may not come in" } @else if user.password.is_some() { "password" } @else { "a proxy or provider" } }
                        }
                    }
                }
            }
        }
    }
}

fn tokens(app: &App, directory: &Directory) -> Markup {
    let now = app.handle().now();
    html! {
        section {
            h2 { "Tokens" }
            table {
                thead { tr { th { "Id" } th { "Name" } th { "Roles" } th { "Owner" } th { "Expires" } th { "Last used" } } }
                tbody {
                    @for (id, token) in directory.tokens() {
                        tr {
                            td { code { (id) } }
                            td { (token.name) }
                            td { (roles(&token.roles)) }
                            td { (token.owner.as_ref().map_or("–", |owner| owner.as_str())) }
                            td { @match token.expires_at { None => "never", Some(end) if end <= now => { "expired " (time::at(end)) } Some(end) => (time::at(end)) } }
                            td { @match app.access().last_use(app.node().handle(), id) { Some(at) => (time::at(at)), None => "never" } }
                        }
                    }
                }
            }
        }
    }
}

/// The record of access, newest first.
async fn recorded(app: &App) -> Result<Markup, Fault> {
    let found = app.read(|reader| {
        let page = reader.events(&EventFilter::about(About::Access), PageRequest::newest(SHOWN))?;
        Ok(page.rows)
    });
    let found: Vec<EventRecord> = found.await?;
    Ok(html! {
        section {
            h2 { "On record" }
            @if found.is_empty() {
                p.soft { "Nobody has signed in or was refused." }
            } @else {
                table {
                    thead { tr { th { "Time" } th { "Event" } th { "Record" } } }
                    tbody {
                        @for record in &found {
                            tr { td { (time::at(record.at)) } td { (events::what(record)) } td { (changed(record)) } }
                        }
                    }
                }
            }
        }
    })
}

/// The record of a user or token that was changed.
fn changed(record: &EventRecord) -> Markup {
    match &record.event {
        Event::Register { key, .. } => html! { code { (key) } },
        _ => html! {},
    }
}
