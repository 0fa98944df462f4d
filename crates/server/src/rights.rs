//! The right that each route needs, and the layer that lets requests in.
//!
//! The table is the only place that says so. A route that it does not have is refused to everybody, and a test compares it with the
//! routes of the router. For which *project* a right is needed depends on what a request is about: the application checks that where it
//! reads and where it asks the scheduler.

use std::collections::HashMap;
use std::sync::LazyLock;

use axum::body::{Body, to_bytes};
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};
use kelos_front::App;
use kelos_front::fault::Fault;
use kelos_front::identity::{Credential, Door, Identity};
use kelos_trust::{Right, Session};
use kelos_ui as ui;

use crate::api::unknown_worker;
use crate::limited::unknown;
use crate::metrics;

/// Methods, a route, and the rights of which one is needed, for any project; `public` where none is.
const TABLE: &str = include_str!("rights.txt");

/// Largest form of a page.
const LARGEST_FORM: usize = 1 << 20;
/// The field of a form, and the header of a script, with the proof that it comes from a page of this server.
const PROOF: &str = "kelos-proof";

/// The rights of which a route needs one; none where it is public.
type RouteRights = Option<Vec<Right>>;

static NEEDS: LazyLock<HashMap<&str, Vec<(Method, RouteRights)>>> = LazyLock::new(|| {
    let mut needs: HashMap<&str, Vec<(Method, RouteRights)>> = HashMap::new();
    for line in TABLE.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let mut words = line.split_whitespace();
        let (Some(methods), Some(path), Some(rights)) = (words.next(), words.next(), words.next()) else { continue };
        let right = |name: &str| Right::ALL.into_iter().find(|right| right.name() == name);
        let needed = (rights != "public").then(|| rights.split('|').filter_map(right).collect());
        for method in methods.split('|').filter_map(|name| Method::from_bytes(name.as_bytes()).ok()) {
            needs.entry(path).or_default().push((method, needed.clone()));
        }
    }
    needs
});

/// An answer of the table about a method and a route.
enum Entry {
    /// The rights that it needs.
    Needs(&'static RouteRights),
    /// The route is there, but not with that method.
    OtherMethods,
    /// The route is not there.
    Missing,
}

fn entry(method: &Method, path: &str) -> Entry {
    let method = if *method == Method::HEAD { &Method::GET } else { method };
    // The programs of an application are the same in each of its versions.
    let path = path.replace("/versions/{version}", "");
    let Some(methods) = NEEDS.get(path.as_str()) else { return Entry::Missing };
    methods.iter().find(|(of, _)| of == method).map_or(Entry::OtherMethods, |(_, needed)| Entry::Needs(needed))
}

/// Makes the identity of a request, and lets it through if that has the right which the route needs.
pub(crate) async fn admit(State(app): State<App>, mut request: Request, next: Next) -> Response {
    // A path that has no route, or not with that method, is answered by the fallbacks, which tell nothing about the server.
    let route = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let Some(route) = route else { return next.run(request).await };
    let door = Door::of(request.uri().path());
    let identity = match app.access().identify(app.node().handle(), request.headers(), request.extensions(), door) {
        Ok(identity) => identity,
        Err(fault) => return limited(&app, &request, challenged(fault, door)),
    };
    match entry(request.method(), &route) {
        Entry::Needs(None) => {}
        Entry::Needs(Some(_)) if route == metrics::PATH && app.metrics().public => {}
        Entry::Needs(Some(rights)) => {
            if let Err(response) = check(&app, &identity, rights, &request, &route) {
                return limited(&app, &request, response);
            }
        }
        Entry::OtherMethods => return wrong_method(request, next).await,
        Entry::Missing => {
            let what = format!("{} {route} declares no right; this is a bug in the server", request.method());
            return Fault::new(StatusCode::FORBIDDEN, "bug", what).into_response();
        }
    }
    if let Credential::Session { session, .. } = &identity.credential
        && !matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS)
        // Choices of how pages look are cookies, and parts of pages that arrive later have no proof.
        && route != "/ui/display"
    {
        request = match proven(&app, session, request).await {
            Ok(request) => request,
            Err(fault) => return fault.into_response(),
        };
    }
    request.extensions_mut().insert(std::sync::Arc::new(identity));
    next.run(request).await
}

/// The answer to a request that is not let in, unless its address has sent too many of them.
fn limited(app: &App, request: &Request, response: Response) -> Response {
    unknown(app.limiter(), request.extensions()).unwrap_or(response)
}

fn check(app: &App, identity: &Identity, rights: &[Right], request: &Request, route: &str) -> Result<(), Response> {
    if rights.iter().any(|right| identity.grants.allow_somewhere(*right)) {
        return Ok(());
    }
    let Some(right) = rights.first().copied() else { return Ok(()) };
    let door = Door::of(request.uri().path());
    let is_of_workers = *rights == [Right::Work];
    match identity.credential {
        Credential::Open | Credential::Missing if is_of_workers => Err(unknown_worker(app).into_response()),
        Credential::Missing if door == Door::Web => Err(to_sign_in(request)),
        Credential::Missing => {
            let what = "a credential is needed, expected `authorization: Bearer TOKEN`";
            let fault = Fault::new(StatusCode::UNAUTHORIZED, "no-credential", what);
            Err(challenged(fault.with_hint("`kelos login` keeps a token for this server"), door))
        }
        _ => {
            let action = format!("{} {route}", request.method());
            app.access().refused(app.node().handle(), identity, right, None, &action);
            let what = format!("{} needs the role {}", identity.actor, right.role().name());
            Err(Fault::new(StatusCode::FORBIDDEN, "forbidden", what).into_response())
        }
    }
}

/// A method that no route has.
const NO_METHOD: &str = "NO-SUCH-METHOD";

/// The answer of a route to a method that the table does not have for it. The route gets to see another method, which none has: so what
/// is left out of the table by mistake is closed, and each door says in its own way what is possible.
async fn wrong_method(mut request: Request, next: Next) -> Response {
    let asked = request.method().to_string();
    if let Ok(none) = Method::from_bytes(NO_METHOD.as_bytes()) {
        *request.method_mut() = none;
    }
    let mut response = next.run(request).await;
    if let Some(fault) = response.extensions_mut().get_mut::<Fault>() {
        fault.what = fault.what.replace(NO_METHOD, &asked);
    }
    response
}

/// The answer to a request whose credential is missing or wrong: it says which kind is expected.
fn challenged(fault: Fault, door: Door) -> Response {
    let is_challenge = fault.status == StatusCode::UNAUTHORIZED && door != Door::Web;
    let mut response = fault.into_response();
    if is_challenge {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"kelos\""));
    }
    response
}

/// A page asks people to sign in, and brings them back; a part of a page or a change only says that they are not signed in.
fn to_sign_in(request: &Request) -> Response {
    let accepts_pages = request.headers().get(header::ACCEPT).is_some_and(|accepts| {
        accepts.to_str().is_ok_and(|accepts| accepts.contains("text/html") || accepts.contains("*/*"))
    });
    if request.method() == Method::GET && accepts_pages {
        let place = request.uri().path_and_query().map_or("/ui", |place| place.as_str());
        return Redirect::to(&ui::sign_in_href(place)).into_response();
    }
    Fault::new(StatusCode::UNAUTHORIZED, "no-credential", "Sign in first.").into_response()
}

/// Refuses changes in the name of a session that don't prove that they come from a page of this server: a foreign page can have a
/// browser send the cookie, but can't read the proof.
async fn proven(app: &App, session: &Session, request: Request) -> Result<Request, Fault> {
    let refused = || {
        let what =
            "the form does not come from a page of this server, or from one that was loaded before you signed in";
        Fault::new(StatusCode::FORBIDDEN, "no-proof", what).with_hint("load the page again")
    };
    if let Some(proof) = request.headers().get(PROOF) {
        let is_proven = proof.to_str().is_ok_and(|proof| app.access().proves(session, proof));
        return if is_proven { Ok(request) } else { Err(refused()) };
    }
    let is_form = request
        .headers()
        .get(header::CONTENT_TYPE)
        .is_some_and(|kind| kind.to_str().is_ok_and(|kind| kind.starts_with("application/x-www-form-urlencoded")));
    if !is_form {
        return Err(refused());
    }
    let (mut parts, body) = request.into_parts();
    let bytes = to_bytes(body, LARGEST_FORM).await.map_err(|_| {
        Fault::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", format!("the form has more than {LARGEST_FORM} bytes"))
    })?;
    let (mut others, mut is_proven) = (form_urlencoded::Serializer::new(String::new()), false);
    for (name, value) in form_urlencoded::parse(&bytes) {
        match &*name {
            PROOF => is_proven = app.access().proves(session, &value),
            // Forms deny unknown fields, and this one is not theirs.
            _ => {
                others.append_pair(&name, &value);
            }
        }
    }
    let others = others.finish();
    parts.headers.insert(header::CONTENT_LENGTH, HeaderValue::from(others.len()));
    if is_proven { Ok(Request::from_parts(parts, Body::from(others))) } else { Err(refused()) }
}
