//! A real browser, by the little of WebDriver and of Chromium's own commands that tests of pages need.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use ureq::Agent;

use crate::support::{PATIENCE, eventually};

/// How big pages are shown where a test says nothing else.
pub(crate) const WINDOW: (u32, u32) = (1400, 900);
/// A phone.
pub(crate) const PHONE: (u32, u32) = (390, 844);

/// The name under which WebDriver hands elements around.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// Keys without a letter, as WebDriver writes them.
pub(crate) const ENTER: &str = "\u{e007}";
pub(crate) const ESCAPE: &str = "\u{e00c}";
pub(crate) const SHIFT: &str = "\u{e008}";
pub(crate) const CONTROL: &str = "\u{e009}";
pub(crate) const TAB: &str = "\u{e004}";
pub(crate) const RIGHT: &str = "\u{e014}";
pub(crate) const DOWN: &str = "\u{e015}";

/// Told by the page itself before anything of it runs: what a policy refused, and what no console tells.
const WATCH: &str = "
    window.refused = [];
    document.addEventListener('securitypolicyviolation', (event) => refused.push(event.violatedDirective + ' ' + event.blockedURI));
";

/// A window of its own, without anything kept from another; closed when the test ends.
pub(crate) struct Browser {
    agent: Agent,
    session: String,
    /// The server whose pages are looked at.
    server: String,
}

impl Browser {
    /// Opens a window onto a server, where there is a driver.
    pub(crate) fn onto(driver: &str, server: &str) -> Browser {
        let config = Agent::config_builder().http_status_as_error(false).timeout_global(Some(PATIENCE));
        let agent: Agent = config.build().into();
        let wanted = json!({"capabilities": {"alwaysMatch": {
            "browserName": "chrome",
            "goog:loggingPrefs": {"browser": "ALL"},
            "goog:chromeOptions": {"args": [
                "--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--force-color-profile=srgb", "--hide-scrollbars",
                "--disable-background-networking", "--lang=en", "--font-render-hinting=none",
            ]},
        }}});
        let answer = agent.post(format!("{driver}/session")).send(wanted.to_string()).expect("a driver");
        let session = value(answer.into_body().read_to_string().expect("text"));
        let session = session["sessionId"].as_str().expect("a session");
        let browser = Browser { agent, session: format!("{driver}/session/{session}"), server: server.to_owned() };
        browser.own("Page.addScriptToEvaluateOnNewDocument", &json!({ "source": WATCH }));
        browser.size(WINDOW, false);
        browser
    }

    fn post(&self, path: &str, body: &Value) -> Value {
        value(self.asked(path, body))
    }

    fn get(&self, path: &str) -> Value {
        let answer = self.agent.get(format!("{}/{path}", self.session)).call().expect("an answer");
        value(answer.into_body().read_to_string().expect("text"))
    }

    /// A command of Chromium's own.
    pub(crate) fn own(&self, command: &str, parameters: &Value) -> Value {
        self.post("goog/cdp/execute", &json!({"cmd": command, "params": parameters}))
    }

    /// Shows so much of a page, as a phone does where it is one.
    pub(crate) fn size(&self, (width, height): (u32, u32), is_phone: bool) {
        let shape = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": is_phone});
        self.own("Emulation.setDeviceMetricsOverride", &shape);
    }

    /// Has pages believe that they are on paper, or that their reader likes them dark.
    pub(crate) fn pretend(&self, media: &str, scheme: &str) {
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        self.own("Emulation.setEmulatedMedia", &json!({"media": media, "features": features}));
    }

    /// Opens a page of the server, and returns when it is loaded.
    pub(crate) fn open(&self, path: &str) {
        self.post("url", &json!({"url": format!("{}{path}", self.server)}));
    }

    /// Where it is, without the server.
    pub(crate) fn place(&self) -> String {
        let url = self.get("url");
        url.as_str().expect("an address").trim_start_matches(&self.server).to_owned()
    }

    /// Runs the body of a function in the page, and gives what it returned.
    pub(crate) fn ask(&self, body: &str) -> Value {
        self.ask_of(body, &[])
    }

    /// The same, of some `arguments`.
    pub(crate) fn ask_of(&self, body: &str, arguments: &[Value]) -> Value {
        self.post("execute/sync", &json!({"script": body, "args": arguments}))
    }

    /// The same, where the last argument is a function that is called with the answer.
    pub(crate) fn ask_later(&self, body: &str) -> Value {
        self.post("execute/async", &json!({"script": body, "args": []}))
    }

    /// What a page says in a place, as people read it.
    #[track_caller]
    pub(crate) fn text(&self, css: &str) -> String {
        let text = self.ask_of("return document.querySelector(arguments[0])?.innerText ?? null", &[json!(css)]);
        text.as_str().unwrap_or_else(|| panic!("{} has no {css}", self.place())).to_owned()
    }

    /// Looks until an expression holds in the page, whichever page that is by then.
    #[track_caller]
    pub(crate) fn until(&self, holds: &str) {
        let until = Instant::now() + PATIENCE;
        // A page that goes away meanwhile can't answer; the next one can.
        let body = json!({"script": format!("return Boolean({holds})"), "args": []});
        loop {
            let answer: Value = serde_json::from_str(&self.asked("execute/sync", &body)).expect("JSON");
            if answer["value"] == json!(true) {
                return;
            }
            if Instant::now() > until {
                panic!("still not {holds} at {}: {answer}\n{}", self.place(), self.text("body"));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Looks until a page says this somewhere in a place.
    #[track_caller]
    pub(crate) fn until_says(&self, css: &str, words: &str) {
        self.until(&format!("document.querySelector({css:?})?.innerText.includes({words:?})"));
    }

    fn element(&self, css: &str) -> Value {
        let found = self.post("element", &json!({"using": "css selector", "value": css}));
        json!({ELEMENT: found[ELEMENT]})
    }

    /// Clicks as a person does: on what can be seen and reached, once it is there.
    #[track_caller]
    pub(crate) fn click(&self, css: &str) {
        // A page that follows may not have it yet, or may have put another element into its place meanwhile.
        const LATER: [&str; 4] =
            ["no such element", "stale element reference", "element not interactable", "element click intercepted"];
        let until = Instant::now() + PATIENCE;
        loop {
            let found = self.asked("element", &json!({"using": "css selector", "value": css}));
            let element = serde_json::from_str::<Value>(&found).expect("JSON")["value"][ELEMENT].clone();
            let answer = match element.as_str() {
                Some(element) => self.asked(&format!("element/{element}/click"), &json!({})),
                None => found,
            };
            if !LATER.iter().any(|later| answer.contains(later)) {
                value(answer);
                return;
            }
            assert!(Instant::now() < until, "still no click on {css} at {}: {answer}", self.place());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// The answer of the driver as it is, also where that is an error.
    fn asked(&self, path: &str, body: &Value) -> String {
        let answer = self.agent.post(format!("{}/{path}", self.session)).send(body.to_string()).expect("an answer");
        answer.into_body().read_to_string().expect("text")
    }

    /// Clicks with a key held.
    pub(crate) fn click_with(&self, key: &str, css: &str) {
        let found = self.element(css);
        let pause = json!({"type": "pause"});
        self.post("actions", &json!({"actions": [
            {"type": "key", "id": "keys", "actions": [{"type": "keyDown", "value": key}, pause, pause, pause, {"type": "keyUp", "value": key}]},
            {"type": "pointer", "id": "mouse", "actions": [
                pause, {"type": "pointerMove", "origin": found, "x": 0, "y": 0},
                {"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}, pause,
            ]},
        ]}));
    }

    /// Presses keys one after the other, wherever the focus is.
    pub(crate) fn press(&self, keys: &[&str]) {
        let both = |key: &&str| [json!({"type": "keyDown", "value": key}), json!({"type": "keyUp", "value": key})];
        let actions: Vec<Value> = keys.iter().flat_map(both).collect();
        self.post("actions", &json!({"actions": [{"type": "key", "id": "keys", "actions": actions}]}));
    }

    /// Presses a key while another is held.
    pub(crate) fn press_with(&self, held: &str, key: &str) {
        let actions = json!([
            {"type": "keyDown", "value": held}, {"type": "keyDown", "value": key},
            {"type": "keyUp", "value": key}, {"type": "keyUp", "value": held},
        ]);
        self.post("actions", &json!({"actions": [{"type": "key", "id": "keys", "actions": actions}]}));
    }

    /// Errors that the console has told since it was last asked, and what the policy of this page refused.
    pub(crate) fn complaints(&self) -> Vec<String> {
        let told = self.post("se/log", &json!({"type": "browser"}));
        let told = told.as_array().expect("lines").iter().filter(|line| line["level"] == "SEVERE");
        let mut all: Vec<String> = told.map(|line| line["message"].to_string()).collect();
        all.extend(self.ask("return window.refused ?? []").as_array().expect("lines").iter().map(Value::to_string));
        all
    }

    /// Looks until nothing on the page moves any more, and takes a picture.
    pub(crate) fn picture(&self) -> Vec<u8> {
        use base64::Engine as _;
        eventually("still", || {
            let moves = "return document.getAnimations().filter((one) => one.playState === 'running' && one.effect.getComputedTiming().endTime < 1e4).length";
            (self.ask(moves) == json!(0)).then_some(())
        });
        let shot = self.get("screenshot");
        base64::engine::general_purpose::STANDARD.decode(shot.as_str().expect("a picture")).expect("base64")
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.agent.delete(&self.session).call();
    }
}

/// What an answer carries, or what went wrong.
#[track_caller]
fn value(answer: String) -> Value {
    let mut answer: Value = serde_json::from_str(&answer).unwrap_or_else(|error| panic!("{error}: {answer}"));
    let value = answer["value"].take();
    assert!(
        value["error"].is_null() || value["message"].is_null(),
        "the driver: {}: {}",
        value["error"],
        value["message"]
    );
    value
}
