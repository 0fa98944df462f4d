//! Sign-in at a provider: a browser visits it, and comes back with an answer by which the provider vouches for a person.

use std::net::IpAddr;
use std::sync::PoisonError;

use axum::http::{HeaderMap, HeaderValue, StatusCode};
use kelos_engine::Handle;
use kelos_model::{AccessEvent, Actor};
use kelos_trust::{AccountName, Person, Provider, ProviderAnswer, ProviderError, ProviderVisit, Session, same};

use super::{Access, cookie_of, cookies, no_session};
use crate::fault::Fault;

/// Answers about which the provider is asked at a time.
pub(super) const ASKED: usize = 8;
/// The name of the cookie of a visit, and of one that only comes over TLS.
const COOKIES: [&str; 2] = ["kelos-visit", "__Host-kelos-visit"];
/// How long a browser keeps it, in seconds.
const KEPT: u32 = 10 * 60;
/// The credential of somebody who signs in at a provider, as the log has it.
const CREDENTIAL: &str = "openid";

impl Access {
    /// The address of the provider at which people may sign in.
    #[must_use]
    pub fn issuer(&self) -> Option<&str> {
        self.0.provider.as_deref().map(Provider::issuer)
    }

    fn provider(&self) -> Result<&dyn Provider, Fault> {
        self.0.provider.as_deref().ok_or_else(|| {
            let what = "this server has no provider of OpenID Connect, expected \"openid\" in \"access\" of the file of --config";
            Fault::not_found("no-provider", what)
        })
    }

    /// Sends a browser to the provider, from which it comes back to a place on this server: the address there, and the header of
    /// the cookie by which it is known again.
    ///
    /// # Errors
    /// When there is no provider, or it can't be asked.
    pub async fn begin_visit(
        &self,
        handle: &Handle,
        back: &str,
        is_secure: bool,
    ) -> Result<(String, HeaderValue), Fault> {
        let now = handle.now();
        let provider = self.provider()?;
        let visit = ProviderVisit::begin(back, now).map_err(no_session)?;
        let entrance = {
            let _turn = self.0.asking.acquire().await;
            provider.entrance(&self.0.key.secrets_of(&visit), now).await.map_err(fault)?
        };
        Ok((entrance, cookie_of(COOKIES, &self.0.key.sign_visit(&visit), KEPT, is_secure)))
    }

    /// Begins a session for the person for whom the provider vouches by an answer: the session, and the place to which the person
    /// wanted to come.
    ///
    /// # Errors
    /// When the answer belongs to no visit of this browser, the provider vouches for nobody, or the person may not come in.
    pub async fn end_visit(
        &self,
        handle: &Handle,
        headers: &HeaderMap,
        answer: &ProviderAnswer,
        from: Option<IpAddr>,
    ) -> Result<(Session, String), Fault> {
        let now = handle.now();
        let provider = self.provider()?;
        let visit = cookies(headers, COOKIES).find_map(|text| self.0.key.read_visit(text, now));
        let visit = visit.ok_or_else(|| {
            let what = "this browser began no sign-in within the last ten minutes, or it keeps no cookies";
            Fault::bad_request("no-visit", what)
        })?;
        let secrets = self.0.key.secrets_of(&visit);
        if !same(secrets.state.as_bytes(), answer.state.as_bytes()) {
            let what = "the answer belongs to another sign-in than the last one of this browser";
            return Err(Fault::bad_request("wrong-state", what));
        }
        let tries = [format!("openid {}", from.map_or_else(|| "nowhere".to_owned(), |from| from.to_string()))];
        self.may_try(&tries, now)?;
        let person = {
            let _turn = self.0.asking.acquire().await;
            provider.person(&secrets, answer, now).await.map_err(fault)
        };
        let admitted = person.and_then(|person| self.admit(handle, person));
        let known = |actor: Actor| Actor { credential: Some(CREDENTIAL.into()), ..actor }.with_address(from);
        match admitted {
            Ok((name, groups)) => {
                let session = Session::begin(name.as_str(), 0, now).map_err(no_session)?;
                let session = session.of_provider(provider.issuer(), groups);
                self.0.tries.lock().unwrap_or_else(PoisonError::into_inner).succeeded(&tries[0]);
                self.record(handle, known(Actor::person(name.as_str())), AccessEvent::SignedIn);
                Ok((session, visit.back))
            }
            Err(fault) => {
                self.0.tries.lock().unwrap_or_else(PoisonError::into_inner).failed(&tries[0], now);
                self.record(handle, known(Actor::unknown("openid")), AccessEvent::SignInFailed { times: 1 });
                tracing::info!("access: not signed in from {}: {}", provider.issuer(), fault.what);
                Err(fault)
            }
        }
    }

    /// The name of a person who may come in, and those of the groups that give roles here: the others would make the cookie of the
    /// session too large for browsers.
    fn admit(&self, handle: &Handle, person: Person) -> Result<(AccountName, Vec<String>), Fault> {
        let refused = |code, what: String| Err(Fault::new(StatusCode::FORBIDDEN, code, what));
        let Ok(name) = AccountName::new(&person.name) else {
            let what =
                "the provider's name for you can't be a name here, which has 1 to 64 letters, digits and . _ - @ +";
            return refused("bad-name", what.to_owned());
        };
        let directory = self.directory(handle)?;
        let groups = self.0.rules.known_groups(person.groups);
        match self.vouched(&directory, name.as_str(), groups.iter().map(String::as_str)) {
            None => refused("disabled", format!("the user {name} may not come in here")),
            Some(grants) if grants.own().is_empty() => {
                let what = format!("{name} has no role here: there is none for your groups, and no user of that name");
                refused("no-role", what)
            }
            Some(_) => Ok((name, groups)),
        }
    }

    /// The header that has a browser forget its visit.
    #[must_use]
    pub fn no_visit(is_secure: bool) -> HeaderValue {
        cookie_of(COOKIES, "", 0, is_secure)
    }
}

fn fault(error: ProviderError) -> Fault {
    match error {
        ProviderError::Refused(what) => Fault::new(StatusCode::UNAUTHORIZED, "provider-refused", what),
        ProviderError::Unusable(what) => {
            tracing::warn!("failed to have somebody sign in: {what}");
            Fault::new(StatusCode::BAD_GATEWAY, "provider-unusable", what)
        }
    }
}
