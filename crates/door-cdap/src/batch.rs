//! Requests about many programs at once: each gets an answer with its own status.

use axum::Json;
use kelos_front::App;
use kelos_front::fault::{Fault, plain};
use kelos_model::project::DEFAULT_VERSION;
use serde_json::{Value, json};

use super::asked::{self, CdapRequest};
use super::catalogue::{Catalogue, ProgramName, look};
use super::fault::told;
use super::fields::{self, Field};
use super::kind::{self, Kind};

/// How many programs one request may name.
const LARGEST: usize = 1000;

/// A field of an answer.
pub(super) type Answer = (&'static str, Value);

/// Answers about each program of a body. The rows that all answers need are read once.
pub(super) async fn answer<Each>(
    asked: &CdapRequest,
    app: &App,
    body: &[u8],
    prepare: impl FnOnce(&Catalogue<'_>) -> Result<Each, Fault> + Send + 'static,
) -> Result<Json<Value>, Fault>
where
    Each: Fn(&Catalogue<'_>, &ProgramName) -> Result<Answer, Fault>,
{
    let body = fields::json(body)?;
    let namespace = asked.name("namespace").to_owned();
    look(app, move |catalogue| {
        let about = Field::whole(&body).elements()?;
        if about.len() > LARGEST {
            let many = about.len();
            return Err(plain::bad_request(format!("the body has {many} programs, expected at most {LARGEST}")));
        }
        let each = prepare(catalogue)?;
        let answers = about.iter().map(|about| one(catalogue, about, &namespace, &each));
        Ok(Json(answers.collect::<Result<Value, Fault>>()?))
    })
    .await
}

fn one(
    catalogue: &Catalogue<'_>,
    about: &Field<'_>,
    namespace: &str,
    each: impl Fn(&Catalogue<'_>, &ProgramName) -> Result<Answer, Fault>,
) -> Result<Value, Fault> {
    let text = |name: &str| about.need(name, "a name")?.name();
    let (app, name) = (text("appId")?, text("programId")?);
    let kind = about.need("programType", "a name")?;
    let kind = kind_named(kind.name()?).ok_or_else(|| kind.wrong(kind::NAMES))?;
    let answered = asked::project(namespace, app, DEFAULT_VERSION)
        .and_then(|project| each(catalogue, &ProgramName { project, kind, name: name.to_owned() }));
    let mut answer = json!({ "appId": app, "programType": kind.pretty, "programId": name });
    match answered {
        Ok((field, value)) => {
            answer["statusCode"] = json!(200);
            answer[field] = value;
        }
        Err(fault) => {
            let (status, error) = told(&fault);
            answer["statusCode"] = json!(status.as_u16());
            answer["error"] = json!(error);
        }
    }
    Ok(answer)
}

fn kind_named(text: &str) -> Option<Kind> {
    Kind::named(text).or_else(|| Kind::of_category(&text.to_ascii_lowercase()))
}
