//! Servlets that change something. All answer with an empty body.

use std::collections::BTreeSet;
use std::sync::Arc;

use kelos_core::{Kill, Pause, Refusal, Rerun, Resume, WorkflowFilter};
use kelos_engine::AskError;
use kelos_front::App;
use kelos_front::fault::{Fault, plain};
use kelos_model::WorkflowId;
use kelos_trust::Right;

use super::params::Params;
use super::slots;

/// A scheduler step at a moment, until nothing more can happen at that moment.
pub(super) async fn step(app: App, params: Params) -> Result<(), Fault> {
    app.require(Right::Operate, None, "POST /scheduler")?;
    let at = params.time("time")?.unwrap_or_else(|| app.handle().now());
    app.node().step(at, only(&params)?).await?;
    Ok(())
}

/// The workflows in `ids`; unknown ones are ignored.
fn only(params: &Params) -> Result<WorkflowFilter, Fault> {
    let Some(ids) = params.get("ids") else {
        return Ok(None);
    };
    let ids: Result<BTreeSet<_>, _> = ids.split(',').map(WorkflowId::new).collect();
    match ids {
        Ok(ids) => Ok(Some(Arc::new(ids))),
        Err(error) => Err(plain::bad_request(format!("ids: {error}"))),
    }
}

pub(super) async fn clear_cache(app: App) -> Result<(), Fault> {
    app.require(Right::Operate, None, "POST /clear-cache")?;
    app.node().reload().await;
    app.settle().await?;
    Ok(())
}

pub(super) async fn rerun(app: App, params: Params) -> Result<(), Fault> {
    let slot = params.slot(&app).await?;
    let asked = app.ask(&params.by, Rerun::of(slot.clone())).await;
    match asked {
        // Celos has no record of it: it marks the slot, which starts anyway.
        Err(AskError::Refused(Refusal::StillLive(..))) if !slots::is_recorded(&app, &slot).await? => Ok(()),
        other => Ok(other?),
    }
}

pub(super) async fn kill(app: App, params: Params) -> Result<(), Fault> {
    let slot = params.slot(&app).await?;
    slots::check_time(&app, &slot).await?;
    app.ask(&params.by, Kill { slot, reason: None }).await?;
    Ok(())
}

/// Without a value a pause ends, as in Celos. There anything but `true` ends it, also `yes` and `ture`; to start
/// a workflow because of a typing mistake is not worth the compatibility.
pub(super) async fn pause(app: App, params: Params) -> Result<(), Fault> {
    let id = params.id()?;
    let paused = match params.get("paused").unwrap_or("false") {
        text if text.eq_ignore_ascii_case("true") => true,
        text if text.eq_ignore_ascii_case("false") => false,
        other => {
            return Err(plain::bad_request(format!("paused is \"{other}\", expected true or false")));
        }
    };
    match paused {
        true => app.ask(&params.by, Pause { workflow: id, reason: None }).await?,
        false => app.ask(&params.by, Resume { workflow: id, reason: None }).await?,
    }
    Ok(())
}
