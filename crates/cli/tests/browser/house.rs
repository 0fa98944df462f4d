//! The servers whose pages are looked at.

use std::ops::Deref;
use std::path::Path;

use serde_json::{Value, json};

use crate::driver::Browser;
use crate::support::{Folder, Server, eventually};

/// A server with a folder of scripts, and a browser that looks at it.
pub(crate) struct House {
    pub(crate) browser: Browser,
    // It ends before its folder goes.
    server: Server,
    pub(crate) folder: Folder,
}

impl Deref for House {
    type Target = Browser;

    fn deref(&self) -> &Browser {
        &self.browser
    }
}

impl House {
    /// A server of these files, where there is a browser.
    pub(crate) fn of(files: &[(&str, &str)]) -> Option<House> {
        House::with(files, &[])
    }

    /// The same, told more on its command line.
    pub(crate) fn with(files: &[(&str, &str)], options: &[&str]) -> Option<House> {
        let driver = kelos_test_servers::address("KELOS_TEST_WEBDRIVER")?;
        Some(House::serve(&driver, Folder::with(files), options))
    }

    /// The quickstart, in a folder of its own.
    pub(crate) fn quickstart() -> Option<House> {
        let driver = kelos_test_servers::address("KELOS_TEST_WEBDRIVER")?;
        let folder = Folder::with(&[]);
        let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples/quickstart");
        for part in ["bin", "defaults", "workflows"] {
            copy(&sample.join(part), &folder.path().join(part));
        }
        Some(House::serve(&driver, folder, &[]))
    }

    /// A server of these files that has been up before, and whose state has been added to since.
    pub(crate) fn with_past(files: &[(&str, &str)], add: impl FnOnce(&Folder)) -> Option<House> {
        let driver = kelos_test_servers::address("KELOS_TEST_WEBDRIVER")?;
        let folder = Folder::with(files);
        Server::start(folder.path(), &["up", "--port", "0"], "Stop with Ctrl-C").stop();
        add(&folder);
        Some(House::serve(&driver, folder, &[]))
    }

    fn serve(driver: &str, folder: Folder, options: &[&str]) -> House {
        let args = [&["up", "--port", "0"], options].concat();
        let server = Server::start(folder.path(), &args, "Stop with Ctrl-C");
        House { browser: Browser::onto(driver, server.address()), server, folder }
    }

    /// The server dies, and comes back at the same address after something was done.
    pub(crate) fn away(&mut self, meanwhile: impl FnOnce(&House)) {
        let port = self.server.address().rsplit(':').next().expect("a port").to_owned();
        self.server.die();
        meanwhile(self);
        self.server = Server::start(self.folder.path(), &["up", "--port", &port], "Stop with Ctrl-C");
    }

    /// Sends the server a signal.
    pub(crate) fn signal(&self, name: &str) {
        self.server.signal(name);
    }

    /// Asks the native API.
    #[track_caller]
    pub(crate) fn get(&self, path: &str) -> Value {
        let answer = ureq::get(format!("{}/api/v1/{path}", self.server.address())).call();
        let text = answer.expect("an answer").into_body().read_to_string().expect("text");
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    /// Asks the native API for a change.
    #[track_caller]
    pub(crate) fn post(&self, path: &str, body: &Value) {
        let asked = ureq::post(format!("{}/api/v1/{path}", self.server.address()));
        asked.header("content-type", "application/json").send(body.to_string()).expect("an answer");
    }

    /// Waits until a workflow has so many slots of a state, and gives their times, newest first.
    #[track_caller]
    pub(crate) fn until_slots(&self, workflow: &str, state: &str, count: usize) -> Vec<String> {
        eventually(&format!("{count} slots of {workflow} {state}"), || {
            let times = self.slots(workflow, state);
            (times.len() >= count).then_some(times)
        })
    }

    /// The times of a workflow's slots of a state, newest first.
    pub(crate) fn slots(&self, workflow: &str, state: &str) -> Vec<String> {
        let page = self.get(&format!("slots?workflow={workflow}&state={state}&limit=1000"));
        let items = page["items"].as_array().expect("items").iter();
        items.map(|slot| slot["time"].as_str().expect("a time").to_owned()).collect()
    }

    /// Where the navigation leads to.
    pub(crate) fn tabs(&self) -> Vec<String> {
        self.open("/ui");
        let tabs = self
            .ask("return [...document.querySelectorAll('nav[aria-label=Pages] a')].map((a) => a.getAttribute('href'))");
        tabs.as_array().expect("tabs").iter().map(|tab| tab.as_str().expect("text").to_owned()).collect()
    }

    /// A text as a part of an address.
    pub(crate) fn encoded(&self, text: &str) -> String {
        percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
    }

    pub(crate) fn pause(&self, workflow: &str) {
        self.post(&format!("workflows/{workflow}/pause"), &json!({}));
    }
}

/// Copies a folder with all that is in it.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for entry in std::fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &to)
        } else {
            std::fs::copy(entry.path(), to).map(drop).expect("a copy")
        }
    }
}
