//! HDFS by its own protocol.
//!
//! A client whose call was given up or failed is dropped: a connection to a machine that vanished never
//! ends by itself, and if there are several name nodes the next client begins with another one that can be reached.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::future::join_all;
use hdfs_native::client::FileStatus;
use hdfs_native::{Client, ClientBuilder, HdfsError, WriteOptions};
use jiff::Timestamp;
use tokio::io::AsyncRead;
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::file_system::MOST_ENTRIES;
use crate::hadoop::{NameNode, Properties};
use crate::java::{Operation, first_line, is_broken_off, words_of};
use crate::kerberos::{self, Kerberos, LOG_IN, TO_TELL};
use crate::local::{file_name, unfinished_name};
use crate::transfer::{Source, collect, in_time, next_piece};
use crate::{Entry, FileSystem, Kind, StorageError};

/// A folder that does not exist: the library should not look for a configuration itself.
const NO_FOLDER: &str = "/dev/null";
/// How long name nodes have to accept a connection before others are tried first.
const KNOCK: Duration = Duration::from_secs(2);
/// How often a pair of name nodes is asked again: enough for a failover, and to report in time that there is none.
const ATTEMPTS_WITH_PAIR: u32 = 5;
/// How long the removal of the rest of a failed write may take.
const TIDY_UP: Duration = Duration::from_secs(5);

/// The files of one cluster.
pub(crate) struct HdfsFiles {
    endpoint: String,
    /// The name service, if there is one.
    service: Option<String>,
    name_nodes: Vec<NameNode>,
    properties: Arc<Properties>,
    kerberos: Kerberos,
    user: Option<String>,
    client: Mutex<Option<Arc<Client>>>,
    /// How many clients were dropped so far.
    forgotten: AtomicUsize,
    /// A lock that is held while a client is made, so that one is made for all.
    making: tokio::sync::Mutex<()>,
}

/// A client in use by one call. If it is dropped before the call ended, it is not used again.
struct ClientLoan<'a> {
    files: &'a HdfsFiles,
    client: Arc<Client>,
    has_ended: bool,
}

/// Opens the cluster of an authority. Contacts no server.
pub(crate) fn open(
    authority: &str,
    properties: Arc<Properties>,
    kerberos: &Kerberos,
    user: Option<&str>,
) -> Result<HdfsFiles, String> {
    let name_nodes = properties.name_nodes(authority)?;
    kerberos.check()?;
    let is_service = name_nodes.iter().any(|node| node.id.is_some());
    Ok(HdfsFiles {
        endpoint: endpoint_of(authority, &properties)?,
        service: is_service.then(|| authority.to_owned()),
        name_nodes,
        properties,
        kerberos: kerberos.clone(),
        user: user.map(str::to_owned),
        client: Mutex::default(),
        forgotten: AtomicUsize::new(0),
        making: tokio::sync::Mutex::default(),
    })
}

/// The endpoint of an authority: a name service keeps its name, a host gets its port.
pub(crate) fn endpoint_of(authority: &str, properties: &Properties) -> Result<String, String> {
    let nodes = properties.name_nodes(authority)?;
    let server = match nodes.as_slice() {
        [NameNode { id: None, address }] => address,
        _ => authority,
    };
    Ok(format!("hdfs://{server}"))
}

impl HdfsFiles {
    fn asked<'a>(&'a self, what: &'static str, path: &'a str) -> Operation<'a> {
        Operation { what, endpoint: &self.endpoint, path }
    }

    async fn borrow(&self) -> Result<ClientLoan<'_>, StorageError> {
        if let Some(client) = self.current().clone() {
            return Ok(ClientLoan { files: self, client, has_ended: false });
        }
        let _making = self.making.lock().await;
        if let Some(client) = self.current().clone() {
            return Ok(ClientLoan { files: self, client, has_ended: false });
        }
        let client = self.connect().await?;
        *self.current() = Some(client.clone());
        Ok(ClientLoan { files: self, client, has_ended: false })
    }

    async fn connect(&self) -> Result<Arc<Client>, StorageError> {
        let builder = self.builder(&reachable_first(self.in_turn()).await);
        if !self.properties.is_secure() {
            return builder.build().map(Arc::new).map_err(|error| self.fault(&self.asked("reach", ""), error));
        }
        // If the call is given up meanwhile, nobody reports it: it counts as failed until the login has succeeded.
        self.forgotten.fetch_add(1, Ordering::Relaxed);
        let client = self.log_in(builder).await?;
        self.forgotten.fetch_sub(1, Ordering::Relaxed);
        Ok(client)
    }

    /// Connects on a thread of its own: the library blocks while it asks the KDC for a ticket.
    async fn log_in(&self, builder: ClientBuilder) -> Result<Arc<Client>, StorageError> {
        let asked = self.asked("look at", "/");
        self.kerberos.check_keytab().map_err(|why| asked.login(why))?;
        let runtime = Handle::current();
        let connecting = move || {
            let client = Arc::new(builder.build()?);
            let looked = runtime.block_on(timeout(LOG_IN, client.get_file_info("/")));
            Ok((client, looked))
        };
        let connected = timeout(LOG_IN + TO_TELL, spawn_blocking(connecting)).await;
        let connected = connected.map_err(|_| asked.login(kerberos::silent_kdc()))?;
        let connected = connected.map_err(|_| asked.login("it broke off"))?;
        let (client, looked) = connected.map_err(|error| self.fault(&asked, error))?;
        let looked = looked
            .map_err(|_| StorageError::TimedOut { endpoint: self.endpoint.clone(), after: LOG_IN })?
            .map_err(|error| self.fault(&asked, error));
        match looked {
            Err(error) if error.is_of_endpoint() => Err(error),
            // Any other error shows at the call itself.
            _ => Ok(client),
        }
    }

    /// The name nodes, beginning with the next one at each call: one that hangs accepts connections like any other.
    fn in_turn(&self) -> Vec<NameNode> {
        let mut nodes = self.name_nodes.clone();
        let turn = self.forgotten.load(Ordering::Relaxed) % nodes.len().max(1);
        nodes.rotate_left(turn);
        nodes
    }

    fn builder(&self, order: &[NameNode]) -> ClientBuilder {
        let mut settings: Vec<(String, String)> = self.properties.all().collect();
        let attempts = if order.len() > 1 { ATTEMPTS_WITH_PAIR } else { 0 };
        settings.push(("dfs.client.failover.max.attempts".to_owned(), attempts.to_string()));
        let server = self.service.as_deref().or(order.first().map(|node| node.address.as_str())).unwrap_or_default();
        if let Some(service) = &self.service {
            let ids: Vec<&str> = order.iter().filter_map(|node| node.id.as_deref()).collect();
            settings.push((format!("dfs.ha.namenodes.{service}"), ids.join(",")));
            let random = format!("dfs.client.failover.random.order.{service}");
            settings.push((random, "false".to_owned()));
        }
        let builder = ClientBuilder::new().with_config_dir(NO_FOLDER).with_config(settings);
        self.with_identity(builder.with_url(format!("hdfs://{server}")))
    }

    fn with_identity(&self, mut builder: ClientBuilder) -> ClientBuilder {
        if !self.properties.is_secure() {
            return match &self.user {
                Some(user) => builder.with_user(user),
                None => builder,
            };
        }
        if let Some(principal) = &self.kerberos.principal {
            builder = builder.with_kerberos_principal(principal);
        }
        if let Some(keytab) = &self.kerberos.keytab {
            builder = builder.with_kerberos_keytab(keytab);
        }
        builder
    }

    fn current(&self) -> MutexGuard<'_, Option<Arc<Client>>> {
        self.client.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn forget(&self, client: &Arc<Client>) {
        let mut current = self.current();
        if current.as_ref().is_some_and(|current| Arc::ptr_eq(current, client)) {
            *current = None;
            self.forgotten.fetch_add(1, Ordering::Relaxed);
        }
    }

    async fn write(
        &self,
        client: &Client,
        unfinished: &str,
        path: &str,
        content: &mut (dyn AsyncRead + Send + Unpin),
    ) -> Result<(), StorageError> {
        let asked = self.asked("write", path);
        let options = WriteOptions::default().overwrite(true);
        let created = client.create(unfinished, options).await;
        let mut writer = created.map_err(|error| self.fault(&asked, error))?;
        loop {
            let piece = next_piece(&asked.place(), content).await?;
            if piece.is_empty() {
                break;
            }
            writer.write_bytes(piece).await.map_err(|error| self.of_data_node(&asked, error))?;
        }
        in_time(&self.endpoint, writer.close()).await?.map_err(|error| self.of_data_node(&asked, error))?;
        client.rename(unfinished, path, true).await.map_err(|error| self.fault(&asked, error))
    }

    /// The entries of a folder; none if it is a file.
    async fn listed(&self, client: &Client, asked: &Operation<'_>) -> Result<Option<Vec<Entry>>, StorageError> {
        let mut entries = Vec::new();
        let statuses = client.list_status_iter(asked.path, false);
        while let Some(status) = statuses.next().await {
            let status = status.map_err(|error| self.fault(asked, error))?;
            if status.path.trim_end_matches('/') == asked.path.trim_end_matches('/') {
                return Ok(None);
            }
            if entries.len() == MOST_ENTRIES {
                return Err(crate::file_system::too_many(&asked.place()));
            }
            entries.push(entry(file_name(&status.path), &status));
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Some(entries))
    }

    fn fault(&self, asked: &Operation<'_>, error: HdfsError) -> StorageError {
        match error {
            HdfsError::GSSAPIError(_, _, detail) => asked.login(self.kerberos.advice(&detail)),
            // This is how a server answers a client that does not begin with Kerberos.
            HdfsError::IOError(error) if is_broken_off(&error) && !self.properties.is_secure() => asked.unreachable(
                "the connection broke; is it the right port? where it wants Kerberos, core-site.xml has to say so",
            ),
            other => fault(asked, other),
        }
    }

    /// The error of a transfer: there are many data nodes, and the name node may be well.
    fn of_data_node(&self, asked: &Operation<'_>, error: HdfsError) -> StorageError {
        match error {
            HdfsError::IOError(error) => asked.other(format!("a data node: {}", words_of(&error))),
            other => self.fault(asked, other),
        }
    }
}

impl ClientLoan<'_> {
    /// Ends the call, whether it succeeded or not.
    fn end<T>(mut self, result: Result<T, StorageError>) -> Result<T, StorageError> {
        let is_well = !result.as_ref().is_err_and(StorageError::is_of_endpoint);
        self.has_ended = is_well;
        result
    }

    fn judge<T>(self, asked: &Operation<'_>, result: hdfs_native::Result<T>) -> Result<T, StorageError> {
        let files = self.files;
        self.end(result.map_err(|error| files.fault(asked, error)))
    }
}

impl Drop for ClientLoan<'_> {
    fn drop(&mut self) {
        if !self.has_ended {
            self.files.forget(&self.client);
        }
    }
}

#[async_trait]
impl FileSystem for HdfsFiles {
    async fn stat(&self, path: &str) -> Result<Option<Entry>, StorageError> {
        let borrowed = self.borrow().await?;
        let found = borrowed.client.get_file_info(path).await.map(|status| entry(file_name(path), &status));
        absent_is_none(borrowed.judge(&self.asked("look at", path), found))
    }

    async fn list(&self, folder: &str) -> Result<Option<Vec<Entry>>, StorageError> {
        let borrowed = self.borrow().await?;
        let listed = self.listed(&borrowed.client, &self.asked("list", folder)).await;
        absent_is_none(borrowed.end(listed)).map(Option::flatten)
    }

    async fn read(&self, path: &str, limit: u64) -> Result<Bytes, StorageError> {
        let borrowed = self.borrow().await?;
        let asked = self.asked("read", path);
        let read = async {
            let opened = in_time(&self.endpoint, borrowed.client.read(path)).await?;
            let reader = opened.map_err(|error| self.fault(&asked, error))?;
            if reader.file_length() as u64 > limit {
                return Err(StorageError::too_large(&asked.place(), limit));
            }
            let source = Source { endpoint: &self.endpoint, place: &asked.place() };
            let pieces = reader.read_range_stream(0, reader.file_length());
            collect(pieces, limit, source, |error| self.of_data_node(&asked, error)).await
        };
        let result = read.await;
        borrowed.end(result)
    }

    async fn put(&self, path: &str, content: &mut (dyn AsyncRead + Send + Unpin)) -> Result<(), StorageError> {
        let borrowed = self.borrow().await?;
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let unfinished = format!("{folder}/{}", unfinished_name(path));
        let written = self.write(&borrowed.client, &unfinished, path, content).await;
        if written.is_err() {
            let _ = timeout(TIDY_UP, borrowed.client.delete(&unfinished, false)).await;
        }
        borrowed.end(written)
    }

    async fn make_folder(&self, path: &str) -> Result<(), StorageError> {
        let borrowed = self.borrow().await?;
        let made = borrowed.client.mkdirs(path, 0o755, true).await;
        borrowed.judge(&self.asked("make the folder", path), made)
    }

    async fn rename(&self, from: &str, to: &str) -> Result<(), StorageError> {
        let borrowed = self.borrow().await?;
        let renamed = borrowed.client.rename(from, to, false).await;
        borrowed.judge(&self.asked("rename", from), renamed)
    }

    async fn remove(&self, path: &str) -> Result<(), StorageError> {
        let borrowed = self.borrow().await?;
        let removed = borrowed.client.delete(path, true).await;
        absent_is_none(borrowed.judge(&self.asked("remove", path), removed)).map(drop)
    }
}

/// Puts name nodes that accept a connection before those that don't. A single one is not tried.
async fn reachable_first(nodes: Vec<NameNode>) -> Vec<NameNode> {
    if nodes.len() < 2 {
        return nodes;
    }
    let open = join_all(nodes.iter().map(|node| is_open(&node.address))).await;
    let mut order: Vec<(bool, NameNode)> = open.into_iter().zip(nodes).collect();
    order.sort_by_key(|(is_open, _)| !is_open);
    order.into_iter().map(|(_, node)| node).collect()
}

async fn is_open(address: &str) -> bool {
    timeout(KNOCK, TcpStream::connect(address)).await.is_ok_and(|open| open.is_ok())
}

fn absent_is_none<T>(result: Result<T, StorageError>) -> Result<Option<T>, StorageError> {
    match result {
        Err(StorageError::NotFound { .. }) => Ok(None),
        other => other.map(Some),
    }
}

fn entry(name: String, status: &FileStatus) -> Entry {
    let modified = i64::try_from(status.modification_time).ok().and_then(|at| Timestamp::from_millisecond(at).ok());
    let (kind, bytes) = if status.isdir { (Kind::Folder, 0) } else { (Kind::File, status.length as u64) };
    Entry { name, kind, bytes, modified }
}

fn fault(asked: &Operation<'_>, error: HdfsError) -> StorageError {
    match error {
        HdfsError::IOError(error) => asked.unreachable(words_of(&error)),
        HdfsError::FileNotFound(_) => asked.not_found(),
        HdfsError::AlreadyExists(_) => asked.other("something is there already"),
        HdfsError::IsADirectoryError(_) => asked.other("it is a folder"),
        HdfsError::RPCError(class, message) | HdfsError::FatalRPCError(class, message) => {
            asked.exception(&class, &message)
        }
        HdfsError::SASLError(detail) => asked.login(first_line(&detail)),
        HdfsError::NoSASLMechanism => {
            asked.login("it offers no way of logging in that is known here; Kerberos and simple are")
        }
        HdfsError::OperationFailed(detail) if detail.contains("libgssapi") => {
            asked.login("Kerberos needs libgssapi_krb5.so.2 (Debian: libgssapi-krb5-2)")
        }
        HdfsError::BlocksNotFound(_) => asked.other("no data node that can be reached has its blocks"),
        other => asked.other(first_line(&other.to_string())),
    }
}
