//! The API and the pages of a project that a program runs inside of itself.

use std::io;
use std::net::SocketAddr;

use kelos::embed::RunningProject;
use kelos_front::App;
use kelos_front::guard::Hosts;
use tokio::net::{TcpListener, ToSocketAddrs, lookup_host};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::serve::{Limits, serve};

/// A server that runs beside a project. It ends with [`ProjectServer::stop`], or with the runtime.
#[derive(Debug)]
pub struct ProjectServer {
    address: SocketAddr,
    end: watch::Sender<bool>,
    task: JoinHandle<io::Result<()>>,
}

/// Answers requests about a project at an address of this machine, such as `127.0.0.1:7437`: the pages are under `/ui`, the API
/// is under `/api/v1`, and the command line takes the address with `--server`.
///
/// ```
/// use kelos::embed::{Context, Project, job};
///
/// async fn greet(_: Context, name: String, _: ()) -> Result<String, String> {
///     Ok(format!("hello {name}"))
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// let running = Project::new("hello", "1.0").add(job("greet", greet).with(()).on_demand()).start().await?;
/// let served = kelos_server::serve_project(&running, "127.0.0.1:0").await?;
/// println!("see http://{}/ui", served.address());
/// served.stop().await?;
/// running.stop().await;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// When the address can't be listened on, or is open to other machines: whoever reaches the port may do everything.
pub async fn serve_project(running: &RunningProject, address: impl ToSocketAddrs) -> io::Result<ProjectServer> {
    let addresses: Vec<SocketAddr> = lookup_host(address).await?.collect();
    if let Some(open) = addresses.iter().find(|one| !one.ip().is_loopback()) {
        let words = format!("{open} is open to other machines, expected one of this machine's own, such as 127.0.0.1");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, words));
    }
    let listener = TcpListener::bind(&*addresses).await?;
    let address = listener.local_addr()?;
    let app = App::new(running.node().clone(), env!("CARGO_PKG_VERSION")).with_hosts(Hosts::for_bind(address, []));
    let (end, mut ended) = watch::channel(false);
    let ended = async move {
        let _ = ended.wait_for(|ended| *ended).await;
    };
    let task = tokio::spawn(serve(listener, crate::router(app), Limits::of_process(), ended));
    Ok(ProjectServer { address, end, task })
}

impl ProjectServer {
    /// The address, with the port that was chosen for port 0.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends the server in good order. The project goes on.
    ///
    /// # Errors
    /// When the server had ended because its port failed.
    pub async fn stop(self) -> io::Result<()> {
        self.end.send_replace(true);
        self.task.await.unwrap_or_else(|error| Err(io::Error::other(error)))
    }
}

#[cfg(test)]
mod tests {
    use kelos::embed::Project;

    use super::*;

    #[tokio::test]
    async fn addresses_that_others_reach_are_refused() {
        let running = Project::new("hello", "1.0").start().await.unwrap();
        let refused = serve_project(&running, "0.0.0.0:0").await.unwrap_err();
        assert_eq!(
            refused.to_string(),
            "0.0.0.0:0 is open to other machines, expected one of this machine's own, such as 127.0.0.1"
        );
        running.stop().await;
    }
}
