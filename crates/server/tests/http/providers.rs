//! Sign-in at a provider: visits, their cookies, and who comes in. What the provider proves is tested where that is verified.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use kelos_model::AccessEvent;
use kelos_trust::{Person, Provider, ProviderAnswer, ProviderError, VisitSecrets};
use serde_json::json;

use crate::access::{By, Guarded, OWNER};
use crate::support::{Reply, workflow};

const CALLBACK: &str = "/ui/sign-in/openid/callback";

/// A provider that vouches for whom the code says: a name, and groups after a colon.
struct Login;

#[async_trait]
impl Provider for Login {
    fn issuer(&self) -> &str {
        "https://login.example/realms/team"
    }

    async fn entrance(&self, secrets: &VisitSecrets, _: Timestamp) -> Result<String, ProviderError> {
        Ok(format!("https://login.example/authorize?state={}", secrets.state))
    }

    async fn person(&self, _: &VisitSecrets, answer: &ProviderAnswer, _: Timestamp) -> Result<Person, ProviderError> {
        let Some(code) = &answer.code else { return Err(ProviderError::Refused("no <code>".to_owned())) };
        let (name, groups) = code.split_once(':').unwrap_or((code, ""));
        Ok(Person { name: name.to_owned(), groups: groups.split(',').map(str::to_owned).collect() })
    }
}

async fn guarded() -> Guarded {
    let rules = json!({"groups": {"data": ["operate@a"]}});
    Guarded::with_provider(rules, Some(Arc::new(Login)), &[("a.js", workflow("a", ""))]).await
}

/// A cookie that an answer sets, as the browser sends it.
fn cookie(reply: &Reply, name: &str) -> Option<String> {
    let set = reply.headers.get_all("set-cookie").iter().map(|cookie| cookie.to_str().unwrap());
    set.filter_map(|cookie| cookie.split(';').next()).find(|pair| pair.starts_with(name)).map(str::to_owned)
}

/// Begins a visit; the state, and the cookie by which the browser is known again.
async fn begin(guarded: &Guarded, back: &str) -> (String, String) {
    let reply = guarded.get(By::Nobody, &format!("/ui/sign-in/openid?back={back}")).await;
    let state = reply.header("location").strip_prefix("https://login.example/authorize?state=").expect("the provider");
    let set = reply.header("set-cookie");
    assert!(set.ends_with("; Path=/; Max-Age=600; HttpOnly; SameSite=Lax"), "{set}");
    assert!(!set.contains(state), "{set}");
    (state.to_owned(), cookie(&reply, "kelos-visit").unwrap())
}

/// Comes back from the provider.
async fn end(guarded: &Guarded, cookie: &str, state: &str, code: &str) -> Reply {
    guarded.get(By::Session(cookie), &format!("{CALLBACK}?state={state}&code={code}&session_state=x")).await
}

/// A whole visit.
async fn sign_in(guarded: &Guarded, code: &str) -> Reply {
    let (state, cookie) = begin(guarded, "/ui").await;
    end(guarded, &cookie, &state, code).await
}

#[tokio::test(flavor = "multi_thread")]
async fn people_come_in_with_the_roles_of_their_groups_and_leave() {
    let guarded = guarded().await;
    let form = guarded.get(By::Nobody, "/ui/sign-in?back=%2Fui%2Fstuck").await.ok().text;
    assert!(form.contains("href=\"/ui/sign-in/openid?back=%2Fui%2Fstuck\">Sign in with login.example<"), "{form}");
    let (state, visit) = begin(&guarded, "/ui/stuck").await;
    let reply = end(&guarded, &visit, &state, "anna@example.com:data,unknown").await;
    assert_eq!((reply.status.as_u16(), reply.header("location")), (303, "/ui/stuck"));
    assert_eq!(cookie(&reply, "kelos-visit").as_deref(), Some("kelos-visit="));
    let session = cookie(&reply, "kelos-session").unwrap();
    let by = By::Session(&session);
    let own = guarded.get(by, "/ui/access").await.ok().text;
    assert!(own.contains("<b>anna@example.com</b>") && own.contains(": operate@a<"), "{own}");
    guarded.until_recorded(|what| *what == AccessEvent::SignedIn).await;
    let record = guarded.get(By::Token(OWNER), "/api/v1/audit?who=anna@example.com").await.ok().json();
    let row = &record["items"][0];
    assert_eq!((&row["credential"], &row["address"]), (&json!("openid"), &json!("10.0.0.9")), "{row}");
    let (_, proof) = own.split_once("name=\"kelos-proof\" value=\"").unwrap();
    let form = format!("kelos-proof={}", proof.split('"').next().unwrap());
    let headers = [("content-type", "application/x-www-form-urlencoded")];
    assert_eq!(guarded.send_from(by, "POST", "/ui/sign-out", &form, &headers).await.status.as_u16(), 303);
    assert_eq!(guarded.get(by, "/api/v1/slots").await.status.as_u16(), 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_of_that_name_adds_roles_or_is_kept_out() {
    let guarded = guarded().await;
    for code in ["anna", "anna:unknown"] {
        let reply = sign_in(&guarded, code).await;
        assert_eq!(reply.status.as_u16(), 403);
        assert!(reply.text.contains("Not signed in: anna has no role here"), "{}", reply.text);
        assert_eq!(cookie(&reply, "kelos-session"), None);
    }
    guarded.user("anna", &["view"]).await;
    let session = cookie(&sign_in(&guarded, "anna:data").await, "kelos-session").unwrap();
    let own = guarded.get(By::Session(&session), "/ui/access").await.ok().text;
    assert!(own.contains(": view, operate@a<"), "{own}");
    let disabled = json!({"roles": ["view"], "disabled": true}).to_string();
    guarded.send(By::Token(OWNER), "PUT", "/api/v1/users/anna", &disabled).await.ok();
    assert_eq!(guarded.get(By::Session(&session), "/api/v1/slots").await.status.as_u16(), 401);
    let reply = sign_in(&guarded, "anna:data").await;
    assert!(reply.text.contains("Not signed in: the user anna may not come in here"), "{}", reply.text);
    let reply = sign_in(&guarded, "an%3Cna:data").await;
    assert_eq!(reply.status.as_u16(), 403);
    assert!(reply.text.contains("name for you can't be a name here"), "{}", reply.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_that_belong_to_no_visit_of_the_browser_are_refused() {
    let guarded = guarded().await;
    let (state, visit) = begin(&guarded, "/ui").await;
    let (other_state, other_visit) = begin(&guarded, "/ui").await;
    let session = cookie(&sign_in(&guarded, "anna:data").await, "kelos-session").unwrap();
    let forged = format!("{}x", &visit[..visit.len() - 1]);
    // One cookie can't stand for the other.
    let (as_session, as_visit) = (visit.replace("visit", "session"), session.replace("session", "visit"));
    for (cookie, state, why) in [
        ("", &state, "this browser began no sign-in"),
        (&forged, &state, "this browser began no sign-in"),
        (&as_visit, &state, "this browser began no sign-in"),
        (&visit, &other_state, "another sign-in than the last one"),
        (&visit, &String::new(), "another sign-in than the last one"),
        (&other_visit, &state, "another sign-in than the last one"),
    ] {
        let reply = end(&guarded, cookie, state, "root:data").await;
        assert_eq!(reply.status.as_u16(), 400, "{cookie}");
        assert!(reply.text.contains(why) && !reply.text.contains("root"), "{}", reply.text);
        assert_eq!(self::cookie(&reply, "kelos-session"), None);
    }
    assert_eq!(guarded.get(By::Session(&as_session), "/api/v1/slots").await.status.as_u16(), 401);
    let later = crate::support::at("2015-09-13T15:15:00Z");
    guarded.server.set_clock(later);
    let reply = end(&guarded, &visit, &state, "anna:data").await;
    assert!(reply.text.contains("within the last ten minutes"), "{}", reply.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_are_readable_on_record_and_limited() {
    let guarded = guarded().await;
    for _ in 0..6 {
        let (state, visit) = begin(&guarded, "/ui").await;
        let reply = guarded.get(By::Session(&visit), &format!("{CALLBACK}?state={state}&error=x")).await;
        assert_eq!(reply.status.as_u16(), 401);
        assert!(reply.text.contains("Not signed in: no &lt;code&gt;."), "{}", reply.text);
    }
    assert_eq!(sign_in(&guarded, "anna:data").await.status.as_u16(), 429);
    guarded.until_recorded(|what| matches!(what, AccessEvent::SignInFailed { .. })).await;
    // A place on another server is none to come back to.
    let reply = guarded.get(By::Nobody, "/ui/sign-in/openid?back=https://evil.example").await;
    assert_eq!(reply.status.as_u16(), 303);
    let twice = guarded.get(By::Nobody, &format!("{CALLBACK}?state=a&state=b&code=secret-code")).await;
    assert!(twice.status.as_u16() == 400 && !twice.text.contains("secret-code"), "{}", twice.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_provider_there_is_nothing_to_visit() {
    let guarded = Guarded::with_provider(json!({}), None, &[]).await;
    for path in ["/ui/sign-in/openid", CALLBACK] {
        let reply = guarded.get(By::Nobody, path).await;
        assert_eq!(reply.status.as_u16(), 404);
        assert!(reply.text.contains("This server has no provider"), "{}", reply.text);
    }
    assert!(!guarded.get(By::Nobody, "/ui/sign-in").await.ok().text.contains("Sign in with"));
}
