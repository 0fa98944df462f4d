//! Editing the groups of the board: a form with their text, in which the script makes them movable.

use axum::Form;
use axum::extract::rejection::FormRejection;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use kelos_front::App;
use kelos_front::fault::Fault;
use kelos_front::groups::{self, BoardGroups, Groups, GroupsSource};
use kelos_front::identity::Caller;
use kelos_model::workflow::WorkflowRow;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::json;

use crate::asked;
use crate::page::{Page, Tab};
use crate::viewer;

/// The address of the form.
const HREF: &str = "/ui/board/groups";

/// The groups in force, as the form shows them.
struct Now {
    said_by: GroupsSource,
    trouble: Option<String>,
    text: String,
    workflows: Vec<WorkflowRow>,
}

/// The form as a browser sends it.
#[derive(Deserialize)]
pub(super) struct GroupsForm {
    groups: String,
    /// The groups in force when the form was made.
    before: String,
    /// The button: `save` or `reset`.
    act: String,
}

async fn now(app: &App) -> Result<Now, Fault> {
    let file = app.groups_of_file();
    let read = app.read(move |reader| Ok((BoardGroups::read(reader, &file)?, reader.workflows(None)?)));
    let (found, workflows) = read.await?;
    let (said_by, trouble) = (found.from, found.trouble.clone());
    let listed = json!({ "groups": found.spelled_out(&workflows) });
    let text = serde_json::to_string_pretty(&listed).unwrap_or_default();
    Ok(Now { said_by, trouble, text, workflows })
}

pub(super) async fn show(app: App) -> Result<Response, Fault> {
    let now = now(&app).await?;
    Ok(page(&app, &now, &now.text, None))
}

pub(super) async fn save(
    app: App,
    Caller(by): Caller,
    sent: Result<Form<GroupsForm>, FormRejection>,
) -> Result<Response, Fault> {
    let sent = asked::form(sent)?;
    if sent.act == "reset" {
        app.ask(&by, groups::request(None)).await?;
        return Ok(asked::back_to(HREF));
    }
    let now = now(&app).await?;
    // Browsers send other line ends than they got.
    if sent.before.replace("\r\n", "\n") != now.text {
        let why =
            "The groups or the workflows have changed meanwhile. Your version is below; save again to replace theirs";
        return Ok((StatusCode::CONFLICT, page(&app, &now, &sent.groups, Some(why))).into_response());
    }
    match Groups::parse(&sent.groups) {
        Ok(groups) => {
            app.ask(&by, groups::request(Some(&groups))).await?;
            Ok(asked::back_to("/ui"))
        }
        Err(why) => {
            let why = format!("Not saved: {why}");
            Ok((StatusCode::BAD_REQUEST, page(&app, &now, &sent.groups, Some(&why))).into_response())
        }
    }
}

/// The form with `text` in it, and what went wrong with it.
fn page(app: &App, now: &Now, text: &str, wrong: Option<&str>) -> Response {
    let page = Page::new(app, "Groups").at(Tab::Board).style("pages.css").style("groups.css").script("groups.js");
    page.show(&html! {
        p.crumbs { a href="/ui" { "Board" } " › Groups" }
        h1 { "Groups of the board" }
        p { (said_by(now.said_by)) " Workflows without a group come last. To see who set them, open " a href="/ui/activity?who=*" { "Activity" } "." }
        @if let Some(trouble) = &now.trouble { p.note { "What was set is left out: " (trouble) "." } }
        @if let Some(wrong) = wrong { p.note.wrong role="alert" { (wrong) "." } }
        (form(now, text))
    })
}

fn said_by(said_by: GroupsSource) -> &'static str {
    match said_by {
        GroupsSource::Api => "These were set here, or by the API.",
        GroupsSource::File => "These come from the server's --config file; what you save here replaces them.",
        GroupsSource::Projects => "None are set: there is one group per project.",
    }
}

fn form(now: &Now, text: &str) -> Markup {
    let ids: Vec<&str> = now.workflows.iter().filter(|row| row.present).map(|row| row.id.as_str()).collect();
    let ids = serde_json::to_string(&ids).unwrap_or_default();
    html! {
        form #groups-form method="post" action=(HREF) { (viewer::proof())
            input type="hidden" name="before" value=(now.text);
            div #editor data-workflows=(ids) hidden {}
            p #said.unseen role="status" {}
            details #as-text open {
                summary { "As JSON, as " code { "--config" } " reads it" }
                textarea #text name="groups" rows="16" spellcheck="false" aria-label="Groups as JSON" { "\n" (text) }
            }
            p.buttons {
                button.primary name="act" value="save" { "Save" }
                @if now.said_by == GroupsSource::Api {
                    button name="act" value="reset" formnovalidate { "Back to the file, or to projects" }
                }
                a.button href="/ui" { "Cancel" }
            }
        }
    }
}
