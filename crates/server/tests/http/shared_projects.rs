//! Projects that are kept apart, over HTTP: facts, consent, names that are taken, reading what was just made, and masks.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::access::{By, Guarded, OWNER};

const ALPHA: &str = r#"
    celos.application({ name: "alpha" });
    program("run", celos.commandExternalService({ command: ["true"] }));
"#;

fn beta(shares: &str) -> String {
    format!(
        r#"
        celos.application({{ name: "beta" }});
        {shares}
        const job = celos.commandExternalService({{ command: ["true"] }});
        program("other", job);
        kelos.workflow("beta-load", {{ schedule: "hourly", command: ["true"] }});
        "#
    )
}

async fn server(shares: &str) -> Guarded {
    Guarded::start(&[("alpha.js", ALPHA.to_owned()), ("beta.js", beta(shares))]).await
}

fn schedule(project: &str, name: &str, program: &str, trigger: Value) -> String {
    json!({ "project": project, "name": name, "program": program, "trigger": trigger, "enabled": true }).to_string()
}

fn signal(name: &str) -> Value {
    json!({ "type": "signal", "signal": name })
}

fn code(text: &str) -> String {
    serde_json::from_str::<Value>(text)
        .map_or_else(|_| text.to_owned(), |one| one["code"].as_str().unwrap_or("").to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_reports_nothing_about_another_project() {
    let server = server("").await;
    let owner = By::Token(OWNER);
    let ended = json!({ "type": "ended", "workflow": "beta.other", "states": ["succeeded"] });
    for (name, trigger) in [("ends", ended), ("signals", signal("beta.sig"))] {
        let new = schedule("beta", name, "beta.other", trigger);
        server.send(owner, "POST", "/api/v1/schedules", &new).await.ok();
    }
    let [alpha, both] = [
        server.token("alpha", &["operate@alpha"]).await,
        server.token("both", &["operate@alpha", "operate@beta"]).await,
    ];
    let facts = [
        json!({ "program": "beta.other", "state": "succeeded", "arguments": { "target": "/EVIL" } }),
        json!({ "signal": "beta.sig", "payload": "x" }),
    ];
    for fact in &facts {
        let refused = server.send(By::Token(&alpha), "POST", "/api/v1/facts", &fact.to_string()).await;
        assert_eq!((refused.status, code(&refused.text)), (StatusCode::FORBIDDEN, "forbidden".to_owned()));
        let nobodys = fact.to_string().replace("beta.other", "ghost.other").replace("beta.sig", "ghostsig");
        let same = server.send(By::Token(&alpha), "POST", "/api/v1/facts", &nobodys).await;
        assert_eq!(refused.text, same.text, "what is there and what is not are answered alike");
        server.send(By::Token(&both), "POST", "/api/v1/facts", &fact.to_string()).await.ok();
    }
    let seen = server.get(By::Token(&alpha), "/api/v1/facts").await.ok().json();
    assert_eq!(seen["items"], json!([]));
    assert_eq!(server.get(By::Token(&both), "/api/v1/facts").await.ok().json()["items"].as_array().unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_on_a_signal_of_another_project_needs_the_line_that_the_refusal_names() {
    let declaring = |project: &str| {
        format!(r#"kelos.project({{ shares: {{ {project}: {{ sees: {{ signals: ["beta.sig"] }} }} }} }});"#)
    };
    let server = server(&declaring("gamma")).await;
    let author = server.token("author", &["author@alpha"]).await;
    let new = schedule("alpha", "spy", "alpha.run", signal("beta.sig"));
    let refused = server.send(By::Token(&author), "POST", "/api/v1/schedules", &new).await;
    assert_eq!((refused.status, code(&refused.text)), (StatusCode::FORBIDDEN, "not-shared".to_owned()));
    let line = r#"kelos.project({ shares: { "alpha": { sees: { signals: ["beta.sig"] } } } })"#;
    assert!(refused.json()["detail"].as_str().unwrap().contains(line), "{}", refused.text);
    assert!(!refused.text.contains("beta.js"), "{}", refused.text);
    server.server.write("beta.js", &beta(&declaring("alpha")));
    server.server.post("/clear-cache").await.ok();
    server.send(By::Token(&author), "POST", "/api/v1/schedules", &new).await.ok();
    // Once the consent is gone, the schedule lies dormant, and Problems says why.
    server.server.write("beta.js", &beta(&declaring("gamma")));
    server.server.post("/clear-cache").await.ok();
    let problems = server.get(By::Token(OWNER), "/api/v1/problems").await.ok().json();
    let of_spy = |one: &&Value| one["workflow"] == "alpha.spy" && one["code"] == "not-shared";
    let problem = problems["items"].as_array().unwrap().iter().find(of_spy).unwrap_or_else(|| panic!("{problems}"));
    assert!(problem["hint"].as_str().unwrap().contains(line), "{problem}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_makes_a_schedule_sees_it_at_once_whatever_door_they_come_by() {
    let server = server("").await;
    let author = server.token("author", &["author@alpha"]).await;
    let by = By::Token(&author);
    for n in 0..20 {
        let new = schedule("alpha", &format!("native-{n}"), "alpha.run", signal("alpha.go"));
        let made = server.send(by, "POST", "/api/v1/schedules", &new).await;
        assert_eq!(made.status, StatusCode::CREATED, "{n}: {}", made.text);
        server.get(by, &format!("/api/v1/schedules/alpha.native-{n}")).await.ok();
        let path = format!("/v3/namespaces/default/apps/alpha/schedules/cdap-{n}");
        let body = json!({ "program": { "programName": "run", "programType": "WORKFLOW" }, "trigger": { "type": "TIME", "cronExpression": "0 4 * * *" } });
        server.send(by, "PUT", &path, &body.to_string()).await.ok();
        server.get(by, &path).await.ok();
        server.send(by, "DELETE", &path, "").await.ok();
        assert_eq!(server.get(by, &path).await.status, StatusCode::NOT_FOUND);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_another_project_has_is_refused_without_a_word_about_where() {
    let server = server("").await;
    let author = server.token("author", &["author@alpha"]).await;
    let script = format!("{ALPHA}\nkelos.workflow('beta-load', {{ schedule: 'hourly', command: ['true'] }});");
    let bundle = json!({ "workflow": script }).to_string();
    let refused = server.send(By::Token(&author), "PUT", "/api/v1/projects/alpha", &bundle).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{}", refused.text);
    assert!(refused.text.contains("a workflow named beta-load exists already"), "{}", refused.text);
    assert!(!refused.text.contains("beta.js") && !refused.text.contains("defined in"), "{}", refused.text);
    let worker = server.token("worker", &["worker"]).await;
    let nothing = json!({ "workflows": [] }).to_string();
    let [there, not] = ["beta", "ghost"].map(|project| format!("/api/v1/projects/{project}/definitions"));
    let there = server.send(By::Token(&worker), "PUT", &there, &nothing).await;
    let not = server.send(By::Token(&worker), "PUT", &not, &nothing).await;
    assert_eq!((there.status, there.text.replace("beta", "ghost")), (not.status, not.text));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_lists_the_references_that_need_consent_and_a_deployment_is_refused() {
    let server = server("").await;
    let author = server.token("author", &["author@alpha"]).await;
    let script = r#"
        celos.application({ name: "alpha" });
        kelos.workflow("alpha-report", { schedule: "hourly", after: "beta-load", command: ["echo", "${rows}"] });
    "#;
    let bundle = json!({ "workflow": script }).to_string();
    let plan = server.send(By::Token(&author), "PUT", "/api/v1/projects/alpha?plan=true", &bundle).await.ok().json();
    let warning = &plan["warnings"][0];
    assert_eq!(warning["code"], "not-shared", "{plan}");
    let line = r#"kelos.project({ shares: { "alpha": { sees: { runs: ["beta-load"] } } } })"#;
    assert!(warning["hint"].as_str().unwrap().contains(line), "{plan}");
    let refused = server.send(By::Token(&author), "PUT", "/api/v1/projects/alpha", &bundle).await;
    assert_eq!((refused.status, code(&refused.text)), (StatusCode::FORBIDDEN, "not-shared".to_owned()));
    let waiting = bundle.replace("${rows}", "done");
    server.send(By::Token(&author), "PUT", "/api/v1/projects/alpha", &waiting).await.ok();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mask_is_never_stored_and_keeps_a_value_that_is_there() {
    const MASK: &str = "••••••";
    let server = server("").await;
    let by = By::Token(OWNER);
    let properties = json!({ "someKey": "k", "sortKey": "s", "apiKey": "a", "url": "ftp://u:p@h/" });
    let native = |properties: &Value| {
        let mut new: Value =
            serde_json::from_str(&schedule("alpha", "native", "alpha.run", signal("alpha.go"))).expect("json");
        new["properties"] = properties.clone();
        new.to_string()
    };
    let cdap = |properties: &Value| {
        json!({
            "program": { "programName": "run", "programType": "WORKFLOW" }, "properties": properties,
            "trigger": { "type": "TIME", "cronExpression": "0 4 * * *" },
        })
        .to_string()
    };
    let path = "/v3/namespaces/default/apps/alpha/schedules/cdap";
    for masked in [json!({ "someKey": MASK }), json!({ "url": format!("ftp://u:{MASK}@h/") })] {
        let refused = server.send(by, "POST", "/api/v1/schedules", &native(&masked)).await;
        assert_eq!((refused.status, code(&refused.text)), (StatusCode::BAD_REQUEST, "masked-value".to_owned()));
        assert_eq!(server.send(by, "PUT", path, &cdap(&masked)).await.status, StatusCode::BAD_REQUEST);
    }
    let made = server.send(by, "POST", "/api/v1/schedules", &native(&properties)).await.ok().json();
    assert_eq!(made["properties"], properties, "data is shown as it was sent");
    server.send(by, "PUT", path, &cdap(&properties)).await.ok();
    assert_eq!(server.get(by, path).await.ok().json()["properties"], properties);
    // A client that got masks from an earlier version changes one property, and sends the others back.
    let sent = json!({ "someKey": MASK, "sortKey": "new", "apiKey": MASK, "url": format!("ftp://u:{MASK}@h/") });
    let kept = json!({ "someKey": "k", "sortKey": "new", "apiKey": "a", "url": "ftp://u:p@h/" });
    let change = json!({ "properties": sent }).to_string();
    let changed = server.send(by, "PATCH", "/api/v1/schedules/alpha.native", &change).await.ok().json();
    assert_eq!(changed["properties"], kept);
    server.send(by, "POST", &format!("{path}/update"), &change).await.ok();
    assert_eq!(server.get(by, path).await.ok().json()["properties"], kept);
    for (method, path, body) in [
        ("PUT", "/api/v1/registers/alpha/k", json!(MASK)),
        ("POST", "/api/v1/workflows/alpha.run/start", json!({ "arguments": { "a": { "b": MASK } } })),
        ("POST", "/api/v1/facts", json!({ "signal": "alpha.go", "payload": [MASK] })),
    ] {
        let refused = server.send(by, method, path, &body.to_string()).await;
        assert_eq!(
            (refused.status, code(&refused.text)),
            (StatusCode::BAD_REQUEST, "masked-value".to_owned()),
            "{path}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn roles_that_no_project_can_have_and_names_that_look_alike_are_refused() {
    let server = server("").await;
    let by = By::Token(OWNER);
    for role in ["view@*", "view@alpha ", &format!("view@{}", "x".repeat(300)), "worker@alpha"] {
        let body = json!({ "name": "t", "roles": [role] }).to_string();
        let refused = server.send(by, "POST", "/api/v1/tokens", &body).await;
        assert_eq!((refused.status, code(&refused.text)), (StatusCode::BAD_REQUEST, "bad-role".to_owned()), "{role}");
    }
    for name in ["ａnn", "аnn", "owner", "cli"] {
        let body = json!({ "name": name, "roles": ["view@alpha"] }).to_string();
        let refused = server.send(by, "POST", "/api/v1/tokens", &body).await;
        assert_eq!((refused.status, code(&refused.text)), (StatusCode::BAD_REQUEST, "bad-name".to_owned()), "{name}");
    }
}

/// A script of alpha that reads a register of beta.
fn reading(bucket: &str) -> String {
    format!(
        r#"
        celos.application({{ name: "alpha" }});
        const secret = celos.getRegister("{bucket}", "k");
        kelos.workflow("alpha-reads", {{ schedule: "hourly", command: ["echo", String(secret)] }});
        "#
    )
}

fn sharing_registers(project: &str) -> String {
    beta(&format!(r#"kelos.project({{ shares: {{ {project}: {{ sees: {{ registers: ["beta.state"] }} }} }} }});"#))
}

impl Guarded {
    async fn reload(&self) {
        self.server.post("/clear-cache").await.ok();
    }

    async fn set_register(&self, bucket: &str, value: &str) {
        let path = format!("/api/v1/registers/{bucket}/k");
        self.send(By::Token(OWNER), "PUT", &path, &json!(value).to_string()).await.ok();
    }

    /// The definition of a workflow, as its owner sees it.
    async fn definition(&self, workflow: &str) -> String {
        self.get(By::Token(OWNER), &format!("/api/v1/workflows/{workflow}")).await.text
    }

    async fn problem(&self, code: &str, file: &str) -> Option<Value> {
        let problems = self.get(By::Token(OWNER), "/api/v1/problems").await.ok().json();
        let all = problems["items"].as_array().expect("problems").clone();
        all.into_iter().find(|one| one["code"] == code && one["file"] == file)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_reads_registers_of_another_project_only_with_its_consent() {
    const LINE: &str = r#"kelos.project({ shares: { "alpha": { sees: { registers: ["beta.state"] } } } })"#;
    let server = server("").await;
    server.set_register("beta.state", "first").await;
    let script = reading("beta.state");
    // From the disk.
    server.server.write("alpha.js", &script);
    server.reload().await;
    let problem = server.problem("not-shared", "alpha.js").await.expect("a problem");
    assert!(problem["message"].as_str().unwrap().contains(LINE), "{problem}");
    assert_eq!(server.get(By::Token(OWNER), "/api/v1/workflows/alpha-reads").await.status, StatusCode::NOT_FOUND);
    // Over HTTP, and in its plan.
    let author = server.token("author", &["author@alpha"]).await;
    let bundle = json!({ "workflow": script }).to_string();
    server.server.write("alpha.js", ALPHA);
    server.reload().await;
    let plan = server.send(By::Token(&author), "PUT", "/api/v1/projects/alpha?plan=true", &bundle).await.ok().text;
    assert!(plan.contains("not-shared") && plan.contains("registers of the bucket"), "{plan}");
    let refused = server.send(By::Token(&author), "PUT", "/api/v1/projects/alpha", &bundle).await;
    assert_eq!((refused.status, code(&refused.text)), (StatusCode::FORBIDDEN, "not-shared".to_owned()));
    assert!(refused.json()["detail"].as_str().unwrap().contains(LINE), "{}", refused.text);
    // The consent of beta to another project is none for alpha.
    for (project, may) in [("gamma", false), ("alpha", true)] {
        server.server.write("beta.js", &sharing_registers(project));
        server.reload().await;
        let deployed = server.send(By::Token(&author), "PUT", "/api/v1/projects/alpha", &bundle).await;
        assert_eq!(deployed.status.is_success(), may, "{project}: {}", deployed.text);
    }
    assert!(server.definition("alpha-reads").await.contains("first"));
    // Once the consent is taken back, no new value is read, and the last good version stays.
    server.server.write("beta.js", &beta(""));
    server.reload().await;
    server.set_register("beta.state", "second").await;
    server.reload().await;
    assert!(server.problem("not-shared", "alpha.js").await.is_some());
    let definition = server.definition("alpha-reads").await;
    assert!(definition.contains("first") && !definition.contains("second"), "{definition}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_reads_its_own_and_common_buckets_and_none_of_kelos_itself() {
    let server = server("").await;
    for (bucket, is_read) in [("alpha", true), ("alpha.state", true), ("common", true), ("kelos.access", false)] {
        if is_read {
            server.set_register(bucket, "value").await;
        }
        server.server.write("alpha.js", &reading(bucket));
        server.reload().await;
        let problem = server.problem("register-unreadable", "alpha.js").await;
        assert_eq!(problem.is_none(), is_read, "{bucket}: {problem:?}");
        if is_read {
            assert!(server.definition("alpha-reads").await.contains("value"), "{bucket}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn defaults_are_common_to_all_projects_of_a_server() {
    let server = server("").await;
    server.server.write("../defaults/beta.js", "var GREETING = \"hello\";");
    let script = reading("alpha").replace("const secret", "celos.importDefaults(\"beta\"); const secret");
    server.server.write("alpha.js", &script.replace("String(secret)", "GREETING"));
    server.reload().await;
    assert!(server.definition("alpha-reads").await.contains("hello"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deployment_notices_a_consent_that_was_taken_back_after_it_was_checked() {
    let consent = |project: &str| {
        beta(&format!(r#"kelos.project({{ shares: {{ {project}: {{ sees: {{ runs: ["beta-load"] }} }} }} }});"#))
    };
    let server = server("").await;
    let author = server.token("author", &["author@alpha"]).await;
    server.server.write("beta.js", &consent("alpha"));
    server.reload().await;
    let script = r#"
        celos.application({ name: "alpha" });
        kelos.workflow("alpha-report", { schedule: "hourly", after: "beta-load", command: ["echo", "${rows}"] });
    "#;
    let bundle = json!({ "workflow": script }).to_string();
    // It is checked against what is in force; the turn that defines it takes this in, too.
    server.server.write("beta.js", &consent("gamma"));
    let refused = server.send(By::Token(&author), "PUT", "/api/v1/projects/alpha", &bundle).await;
    assert_eq!((refused.status, code(&refused.text)), (StatusCode::FORBIDDEN, "not-shared".to_owned()));
    let line = r#"kelos.project({ shares: { "alpha": { sees: { runs: ["beta-load"] } } } })"#;
    assert!(refused.text.contains("lies dormant") && refused.json()["hint"].as_str().unwrap().contains(line));
    // Dormant definitions of one project are in the way of no other one.
    let other = server.token("other", &["author@beta"]).await;
    let bundle = json!({ "workflow": consent("delta") }).to_string();
    server.send(By::Token(&other), "PUT", "/api/v1/projects/beta", &bundle).await.ok();
}
