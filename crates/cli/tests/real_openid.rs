//! Sign-in at a real provider of OpenID Connect: a browser that follows redirects, keeps cookies, and fills in the provider's forms.

mod support;

mod real {
    use std::collections::BTreeMap;
    use std::net::TcpListener;

    use serde_json::{Value, json};
    use ureq::Agent;
    use ureq::http::StatusCode;

    use crate::support::{Folder, Server};

    const SCRIPT: &str = r#"kelos.workflow("a", { project: "warehouse", shell: "true" });"#;

    /// A browser with the cookies of each server.
    struct Browser {
        agent: Agent,
        cookies: BTreeMap<String, BTreeMap<String, String>>,
    }

    struct Page {
        address: String,
        status: StatusCode,
        text: String,
    }

    impl Browser {
        fn open() -> Browser {
            let config = Agent::config_builder().http_status_as_error(false).max_redirects(0).build();
            Browser { agent: config.new_agent(), cookies: BTreeMap::new() }
        }

        /// Opens an address, or sends a form there, and goes where it leads.
        fn go(&mut self, address: &str, form: Option<&str>) -> Page {
            let (mut address, mut form) = (address.to_owned(), form);
            for _ in 0..20 {
                let origin = address.splitn(4, '/').take(3).collect::<Vec<_>>().join("/");
                let jar = self.cookies.entry(origin.clone()).or_default();
                let cookies = jar.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("; ");
                let answer = match form.take() {
                    None => self.agent.get(&address).header("accept", "text/html").header("cookie", cookies).call(),
                    Some(form) => {
                        let kind = "application/x-www-form-urlencoded";
                        let request = self.agent.post(&address).header("content-type", kind);
                        request.header("cookie", cookies).send(form)
                    }
                };
                let mut answer = answer.unwrap_or_else(|error| panic!("{address}: {error}"));
                for cookie in answer.headers().get_all("set-cookie") {
                    let pair = cookie.to_str().unwrap().split(';').next().unwrap();
                    let (name, value) = pair.split_once('=').unwrap();
                    match value {
                        "" => drop(jar.remove(name)),
                        value => drop(jar.insert(name.to_owned(), value.to_owned())),
                    }
                }
                match answer.headers().get("location") {
                    Some(next) if answer.status().is_redirection() => {
                        let next = next.to_str().unwrap();
                        address = if next.starts_with('/') { format!("{origin}{next}") } else { next.to_owned() };
                    }
                    _ => {
                        let (status, text) = (answer.status(), answer.body_mut().read_to_string().unwrap());
                        return Page { address, status, text };
                    }
                }
            }
            panic!("{address} leads nowhere");
        }

        /// Signs in, from the page of this server to the forms of the provider and back.
        fn sign_in(&mut self, server: &str, name: &str) -> Page {
            let page = self.go(&format!("{server}/ui/stuck"), None);
            assert!(page.text.contains("Sign in with 127.0.0.1"), "{}", page.text);
            let href = page.text.split("href=\"").find(|text| text.starts_with("/ui/sign-in/openid?")).unwrap();
            let page = self.go(&format!("{server}{}", href.split('"').next().unwrap()), None);
            assert!(page.address.contains("/interaction/"), "{}: {}", page.address, page.text);
            let page = self.go(&page.address, Some(&format!("prompt=login&login={name}&password=x")));
            self.go(&page.address, Some("prompt=consent"))
        }
    }

    fn serve(client: &Value) -> Option<(Folder, Server, String)> {
        let issuer = kelos_test_servers::address("KELOS_TEST_OPENID")?;
        let folder = Folder::with(&[("a.js", SCRIPT)]);
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let address = format!("http://127.0.0.1:{port}");
        let mut openid = json!({"issuer": issuer, "publicAddress": address, "scopes": ["profile", "groups"]});
        openid.as_object_mut().unwrap().extend(client.as_object().unwrap().clone());
        let groups = json!({"data": ["operate@warehouse"]});
        folder.write("config.json", &json!({"access": {"openid": openid, "groups": groups}}).to_string());
        let port = port.to_string();
        let server =
            Server::start(folder.path(), &["up", "--config", "config.json", "--port", &port], "Stop with Ctrl-C");
        Some((folder, server, address))
    }

    fn secret() -> Value {
        let file = kelos_test_servers::address("KELOS_TEST_OPENID_SECRET_FILE").unwrap_or_default();
        json!({"clientId": "kelos", "clientSecret": {"secret": format!("file:{file}")}})
    }

    #[test]
    #[ignore = "needs a real server: servers/run with openid -- cargo test -- --ignored real::"]
    fn a_person_signs_in_with_the_roles_of_their_groups() {
        for client in [secret(), json!({"clientId": "kelos-public"})] {
            let Some((folder, _server, address)) = serve(&client) else { return };
            let mut browser = Browser::open();
            let page = browser.sign_in(&address, "anna");
            assert_eq!((page.address.as_str(), page.status.as_u16()), (format!("{address}/ui/stuck").as_str(), 200));
            let own = browser.go(&format!("{address}/ui/access"), None).text;
            assert!(own.contains("<b>anna</b>") && own.contains("operate@warehouse"), "{own}");
            let record = folder.run(&["audit"]).ok();
            assert!(record.contains("anna") && record.contains("openid"), "{record}");
            // The user of that name may be kept out.
            folder.run(&["user", "add", "anna", "--no-password", "--role", "view"]).ok();
            folder.run(&["user", "change", "anna", "--disable"]).ok();
            let page = browser.go(&format!("{address}/ui/stuck"), None);
            assert!(page.address.contains("/ui/sign-in?"), "{}", page.address);
        }
    }

    #[test]
    #[ignore = "needs a real server: servers/run with openid -- cargo test -- --ignored real::"]
    fn a_secret_that_the_provider_does_not_know_is_told_on_the_page() {
        let folder = Folder::with(&[("secret", "not the secret")]);
        let client = json!({"clientId": "kelos", "clientSecret": {"secret": format!("file:{}/secret", folder.text())}});
        let Some((_folder, _server, address)) = serve(&client) else { return };
        let page = Browser::open().sign_in(&address, "anna");
        assert_eq!(page.status, StatusCode::BAD_GATEWAY);
        assert!(page.text.contains("does not know this server by its"), "{}", page.text);
    }
}
