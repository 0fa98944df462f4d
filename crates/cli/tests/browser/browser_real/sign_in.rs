//! People sign in and out, with and without rights.

use serde_json::json;

use crate::house::House;

const SCRIPT: &str = "kelos.workflow('shop', {schedule: 'hourly', catchUp: 'skip', shell: 'true'});";
const PASSWORD: &str = "correct horse battery";

/// Fills the form for signing in, and sends it.
fn sign_in(house: &House, name: &str, password: &str) {
    let fill = "document.querySelector('#sign-in-name').value = arguments[0];
        document.querySelector('#sign-in-password').value = arguments[1];";
    house.ask_of(fill, &[json!(name), json!(password)]);
    house.click("main form button.primary");
}

#[test]
#[ignore = "needs a real server: servers/run with chromium -- cargo test -- --ignored real::"]
fn a_person_signs_in_changes_something_and_signs_out() {
    let Some(house) = House::with(&[("workflows/shop.js", SCRIPT)], &["--auth"]) else { return };
    let password = house.folder.write("password", PASSWORD);
    let password = password.to_str().expect("a path");
    house.folder.run(&["user", "add", "anna", "--role", "operate@shop", "--password-file", password]).ok();
    house.folder.run(&["user", "add", "ben", "--role", "view@shop", "--password-file", password]).ok();
    house.open("/ui/workflows/shop");
    house.until_says("h1", "Sign in");
    sign_in(&house, "anna", "wrong wrong wrong");
    house.until_says("main", "Not signed in");
    sign_in(&house, "anna", PASSWORD);
    // Back where they wanted to go.
    house.until_says("h1", "shop");
    house.until_says("#account", "anna");
    house.click("form[action$='/pause'] button");
    house.until("document.querySelector(\"form[action$='/resume'] button\")");
    house.click("#account");
    house.until_says("main", "operate@shop");
    house.click("form[action='/ui/sign-out'] button");
    house.until_says("h1", "Sign in");
    // A person who may only look sees nothing to press.
    sign_in(&house, "ben", PASSWORD);
    house.until_says("#account", "ben");
    house.open("/ui/workflows/shop");
    house.until_says("h1", "shop");
    let shown = "return [...document.querySelectorAll('main form[method=post]')].filter((form) => form.checkVisibility()).length;";
    assert_eq!(house.ask(shown), json!(0));
    assert_eq!(house.complaints().into_iter().filter(|line| !line.contains("401")).collect::<Vec<_>>(), [""; 0]);
}
