//! The reports of a node to the leader.

use std::sync::Arc;

use kelos::Node;
use kelos::nodes::{REPORT_EVERY, load};
use kelos_executors::http::{Http, Method, Url};
use kelos_store::log::LogState;
use kelos_wire::NodeReportRequest;

/// Tells the leader of this node, again and again, for as long as it serves.
pub(crate) async fn report(node: Node, address: Option<String>, token: Option<Arc<str>>) {
    let Some(log) = node.log().cloned() else { return };
    loop {
        if let Err(why) = once(node.http(), &log, address.clone(), token.as_deref()).await {
            tracing::debug!("failed to tell the leader of this node: {why}");
        }
        tokio::time::sleep(REPORT_EVERY).await;
    }
}

async fn once(http: &Http, log: &LogState, address: Option<String>, token: Option<&str>) -> Result<(), String> {
    let status = log.status();
    let Some(leader) = status.lease.holder.address.filter(|_| !status.leads && !status.lease.is_free) else {
        return Ok(());
    };
    let mut url: Url = leader.parse().map_err(|_| format!("{leader} is no URL"))?;
    url.path_segments_mut().map_err(|()| format!("{leader} has no path"))?.extend(["api", "v1", "nodes", log.node()]);
    let report = NodeReportRequest {
        address,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        reads: log.form(),
        followed: status.followed,
        load: load(),
        trouble: status.trouble,
    };
    let request = http.request(Method::POST, url).map_err(|error| error.to_string())?.json(&report);
    let request = match token {
        Some(token) => request.bearer_auth(token),
        None => request,
    };
    let answer = http.send(request).await.map_err(|error| error.to_string())?;
    if answer.status.is_success() { Ok(()) } else { Err(answer.summary()) }
}
