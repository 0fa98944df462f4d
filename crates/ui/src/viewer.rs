//! The choices of the person who looks at a page: time zone, theme, direction, folded groups. Cookies keep them.
//!
//! They belong to the request and are known wherever a page is written, so that a page comes from the server as it is chosen:
//! nothing flickers, and it is the same without scripts. What is *absent*: anything that scheduling depends on.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;

use axum::http::{Extensions, HeaderMap, HeaderValue, Uri, header};
use kelos_front::identity::{Credential, of_request};
use kelos_model::time::Zone;
use kelos_trust::{Grants, Right};
use maud::{Markup, html};
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// The address of the form for signing in.
pub(super) const SIGN_IN: &str = "/ui/sign-in";
/// The address to which a provider sends people back.
pub(super) const CALLBACK: &str = "/ui/sign-in/openid/callback";

tokio::task_local! {
    static VIEWER: Viewer;
}

/// How long a browser keeps a choice: a year.
const KEPT_SECONDS: u32 = 31_536_000;

/// Light or dark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Theme {
    Light,
    Dark,
}

impl Theme {
    /// Its name in cookies, forms and styles.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Theme::Light => "light",
            Theme::Dark => "dark",
        }
    }

    /// The theme of this name.
    pub(super) fn named(name: &str) -> Option<Theme> {
        [Theme::Light, Theme::Dark].into_iter().find(|theme| theme.name() == name)
    }
}

/// A choice that a cookie keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Choice {
    /// The zone of times, by name.
    Zone,
    /// The theme; none follows the system.
    Theme,
    /// The end at which the oldest slots are.
    Order,
    /// The groups of the board that are folded.
    Folded,
    /// How many pixels the board has for its columns; the script measures it.
    Room,
}

impl Choice {
    /// The name of its cookie.
    pub(super) const fn cookie(self) -> &'static str {
        match self {
            Choice::Zone => "kelos-zone",
            Choice::Theme => "kelos-theme",
            Choice::Order => "kelos-order",
            Choice::Folded => "kelos-folded",
            Choice::Room => "kelos-room",
        }
    }

    /// The header that has a browser keep it.
    pub(super) fn keep(self, value: &str) -> HeaderValue {
        let value = utf8_percent_encode(value, NON_ALPHANUMERIC);
        let kept = format!("{}={value}; Path=/ui; Max-Age={KEPT_SECONDS}; SameSite=Lax", self.cookie());
        HeaderValue::try_from(kept).unwrap_or_else(|_| HeaderValue::from_static(""))
    }
}

/// The choices of the person who looks at a page, and the address of the page.
#[derive(Debug, Clone)]
pub(super) struct Viewer {
    pub(super) zone: Zone,
    pub(super) theme: Option<Theme>,
    /// Whether the oldest slots are on the left.
    pub(super) oldest_first: bool,
    pub(super) folded: BTreeSet<String>,
    /// The pixels that the board has for its columns, where they were measured.
    pub(super) room: Option<u32>,
    /// The address of the page, without the server.
    pub(super) place: String,
    /// The name of the person who is signed in.
    pub(super) name: Option<String>,
    /// The proof that forms carry, of a person who is signed in.
    pub(super) proof: Option<String>,
    /// The rights of the person.
    pub(super) grants: Arc<Grants>,
}

/// The address of a page, to which its links lead back. In place of a provider's answer it is the form for signing in: the answer counts
/// once, and no page shows its code.
fn place(uri: &Uri) -> String {
    if uri.path() == CALLBACK { SIGN_IN.to_owned() } else { uri.to_string() }
}

impl Default for Viewer {
    fn default() -> Viewer {
        Viewer {
            zone: Zone::utc(),
            theme: None,
            oldest_first: false,
            folded: BTreeSet::new(),
            room: None,
            place: String::new(),
            name: None,
            proof: None,
            grants: Arc::new(Grants::all()),
        }
    }
}

impl Viewer {
    /// Reads the cookies of a request. What can't be read is not chosen: no page fails for a cookie.
    pub(super) fn of(headers: &HeaderMap, uri: &Uri) -> Viewer {
        let mut viewer = Viewer { place: place(uri), ..Viewer::default() };
        let cookies = headers.get_all(header::COOKIE).into_iter().filter_map(|value| value.to_str().ok());
        for (name, value) in cookies.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('=')) {
            let Ok(value) = percent_decode_str(value).decode_utf8() else { continue };
            viewer.take(name, &value);
        }
        viewer
    }

    /// The same, for the identity of the request.
    pub(super) fn with_identity(self, extensions: &Extensions) -> Viewer {
        let Ok(identity) = of_request(extensions) else { return self };
        let is_known = !matches!(identity.credential, Credential::Open | Credential::Missing);
        Viewer {
            name: is_known.then(|| identity.actor.to_string()),
            proof: identity.session().map(|(_, proof)| proof.to_owned()),
            grants: Arc::new(identity.grants.clone()),
            ..self
        }
    }

    /// Whether the person may change something of a project; without one, of any.
    pub(super) fn operates(&self, project: Option<&str>) -> bool {
        match project {
            Some(project) => self.grants.allow(Right::Operate, Some(project)),
            None => self.grants.allow_somewhere(Right::Operate),
        }
    }

    fn take(&mut self, name: &str, value: &str) {
        if name == Choice::Zone.cookie() {
            self.zone = Zone::parse(value).unwrap_or_else(|_| Zone::utc());
        } else if name == Choice::Theme.cookie() {
            self.theme = Theme::named(value);
        } else if name == Choice::Order.cookie() {
            self.oldest_first = value == "oldest";
        } else if name == Choice::Folded.cookie() {
            self.folded = value.split('\n').filter(|group| !group.is_empty()).map(str::to_owned).collect();
        } else if name == Choice::Room.cookie() {
            self.room = value.parse().ok();
        }
    }

    /// Runs something for this person: all that it writes is as they chose.
    pub(super) async fn scope<F: Future>(self, work: F) -> F::Output {
        VIEWER.scope(self, work).await
    }

    /// The same for what does not wait.
    pub(super) fn sync_scope<T>(self, work: impl FnOnce() -> T) -> T {
        VIEWER.sync_scope(self, work)
    }
}

/// The person whose request is answered; outside of a request, one who has chosen nothing.
pub(super) fn current() -> Viewer {
    VIEWER.try_with(Clone::clone).unwrap_or_default()
}

/// The field of a form with the proof that it comes from a page of this server.
pub(super) fn proof() -> Markup {
    let proof = VIEWER.try_with(|viewer| viewer.proof.clone()).ok().flatten();
    html! { @if let Some(proof) = proof { input type="hidden" name="kelos-proof" value=(proof); } }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn viewer(cookies: &str) -> Viewer {
        let mut headers = HeaderMap::new();
        headers.insert(header::COOKIE, HeaderValue::from_str(cookies).unwrap());
        Viewer::of(&headers, &Uri::from_static("/ui?zoom=60"))
    }

    #[test]
    fn choices_are_read_from_cookies_and_nonsense_is_no_choice() {
        let chosen = viewer(
            "a=b; kelos-zone=Europe%2FBerlin;kelos-theme=dark; kelos-order=oldest; kelos-folded=a%0Ab%20c; kelos-room=900",
        );
        assert_eq!((chosen.zone.name(), chosen.theme, chosen.oldest_first), ("Europe/Berlin", Some(Theme::Dark), true));
        assert_eq!((chosen.folded.len(), chosen.room, chosen.place.as_str()), (2, Some(900), "/ui?zoom=60"));
        let nonsense = viewer("kelos-zone=Moon; kelos-theme=<b>; kelos-order=; kelos-room=wide; =; kelos-folded=%ff");
        assert_eq!((nonsense.zone.name(), nonsense.theme, nonsense.oldest_first), ("UTC", None, false));
        assert_eq!((nonsense.folded.len(), nonsense.room), (0, None));
    }

    #[test]
    fn a_choice_is_kept_for_pages_alone_and_can_hold_anything() {
        let kept = Choice::Folded.keep("a; b\nc");
        assert_eq!(kept, "kelos-folded=a%3B%20b%0Ac; Path=/ui; Max-Age=31536000; SameSite=Lax");
    }

    #[test]
    fn outside_of_a_request_nothing_is_chosen() {
        assert_eq!(current().zone.name(), "UTC");
        let dark = Viewer { theme: Some(Theme::Dark), ..Viewer::default() };
        assert_eq!(dark.sync_scope(|| current().theme), Some(Theme::Dark));
    }
}
