//! Groups of the board: the workflows that are shown together.

use axum::Json;
use kelos_front::App;
use kelos_front::fault::Fault;
use kelos_front::groups::{self, BoardGroups, Group, Groups};
use kelos_wire::{BoardGroupDto, GroupsDto, ProblemDetailsDto};
use utoipa::ToSchema;

use super::extract::{NoParameters, Query, Text};
use kelos_front::identity::Caller;

/// The groups that are to hold.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only the description has it: the text is read where files of groups are")]
pub(super) struct WantedGroups {
    /// The groups, in their order; each workflow once.
    groups: Vec<BoardGroupDto>,
}

async fn in_force(app: &App) -> Result<GroupsDto, Fault> {
    let file = app.groups_of_file();
    let read = app.read(move |reader| Ok((BoardGroups::read(reader, &file)?, reader.workflows(None)?)));
    let (found, workflows) = read.await?;
    let group = |one: Group| BoardGroupDto { name: one.name, workflows: one.workflows };
    let from = found.from.as_str().into();
    let groups = found.spelled_out(&workflows).into_iter().map(group).collect();
    Ok(GroupsDto { groups, from })
}

/// Shows the groups of the board.
#[utoipa::path(get, path = "/board/groups", tag = "board", responses(
    (status = 200, description = "The groups; where none are set, one for each project", body = GroupsDto),
    (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
))]
pub(super) async fn get(_: Query<NoParameters>, app: App) -> Result<Json<GroupsDto>, Fault> {
    Ok(Json(in_force(&app).await?))
}

/// Sets the groups of the board, in the form that Celos's interface reads. They win over those of a file.
#[utoipa::path(put, path = "/board/groups", tag = "board", request_body = WantedGroups, responses(
    (status = 200, description = "They are set", body = GroupsDto),
    (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
))]
pub(super) async fn put(
    _: Query<NoParameters>,
    Caller(by): Caller,
    app: App,
    Text(text): Text,
) -> Result<Json<GroupsDto>, Fault> {
    let groups = Groups::parse(&text)
        .map_err(|why| Fault::bad_request("bad-groups", format!("failed to read the groups: {why}")))?;
    app.ask(&by, groups::request(Some(&groups))).await?;
    Ok(Json(in_force(&app).await?))
}

/// Goes back to the groups of the file that the server was started with, or to those by project.
#[utoipa::path(delete, path = "/board/groups", tag = "board", responses(
    (status = 200, description = "The groups that hold then", body = GroupsDto),
    (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
))]
pub(super) async fn delete(_: Query<NoParameters>, Caller(by): Caller, app: App) -> Result<Json<GroupsDto>, Fault> {
    app.ask(&by, groups::request(None)).await?;
    Ok(Json(in_force(&app).await?))
}
