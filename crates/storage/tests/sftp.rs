//! Files behind a real SSH server.

use kelos_storage::{Storage, StorageConfig};

#[tokio::test]
async fn a_server_that_is_gone_is_told() {
    let place = Storage::new(StorageConfig::default()).place("sftp://ann@127.0.0.1:1/x").unwrap();
    let told = place.files.stat("/").await.unwrap_err().to_string();
    assert_eq!(told, "reach sftp://ann@127.0.0.1:1: Connection refused (os error 111)");
}

mod real {
    use std::path::PathBuf;
    use std::sync::Arc;

    use kelos_storage::{FileSystem, Kind, SshSettings, Storage, StorageConfig, StorageError};

    struct Server {
        uri: String,
        dir: String,
        ssh: SshSettings,
    }

    impl Server {
        /// The server, and a folder on it that no other test uses; logs in with the key of a file.
        fn find(test: &str) -> Option<Server> {
            let uri = kelos_test_servers::address("KELOS_TEST_SFTP")?;
            let path = |name: &str| std::env::var(name).ok().map(PathBuf::from);
            let dir = format!("{}/{test}-{}", std::env::var("KELOS_TEST_SFTP_DIR").ok()?, std::process::id());
            let ssh = SshSettings {
                known_hosts: path("KELOS_TEST_SFTP_KNOWN_HOSTS"),
                key: path("KELOS_TEST_SFTP_KEY"),
                ..SshSettings::default()
            };
            Some(Server { uri, dir, ssh })
        }

        fn files(&self) -> Arc<dyn FileSystem> {
            let config = StorageConfig { ssh: self.ssh.clone(), ..StorageConfig::default() };
            Storage::new(config).place(&format!("{}/x", self.uri)).unwrap().files
        }

        async fn refusal(&self) -> String {
            let error = self.files().stat("/").await.unwrap_err();
            assert!(matches!(error, StorageError::Login { .. }), "{error}");
            error.to_string()
        }
    }

    async fn put(files: &dyn FileSystem, path: &str, text: &str) {
        files.put(path, &mut text.as_bytes()).await.unwrap();
    }

    #[tokio::test]
    #[ignore = "needs a real server: servers/run with sftp -- cargo test -- --ignored real::"]
    async fn files_and_folders() {
        let Some(server) = Server::find("files") else { return };
        let (files, dir) = (server.files(), server.dir.as_str());
        assert_eq!(files.stat(dir).await.unwrap(), None);
        assert_eq!(files.list(dir).await.unwrap(), None);
        let odd = format!("{dir}/a b/c%20ü#.js");
        put(&*files, &odd, "one").await;
        put(&*files, &odd, "two!").await;
        assert_eq!(files.read(&odd, 4).await.unwrap(), "two!");
        let error = files.read(&odd, 3).await.unwrap_err().to_string();
        assert!(error.ends_with("it is larger than the 3 bytes that are read at most"), "{error}");
        let found = files.stat(&odd).await.unwrap().unwrap();
        assert_eq!((found.kind, found.bytes, found.name.as_str()), (Kind::File, 4, "c%20ü#.js"));
        assert!(found.modified.is_some());
        let names = |entries: Vec<kelos_storage::Entry>| entries.into_iter().map(|one| one.name).collect::<Vec<_>>();
        let listed = files.list(&format!("{dir}/a b")).await.unwrap().unwrap();
        assert_eq!(names(listed), ["c%20ü#.js"], "nothing unfinished is left");
        assert_eq!(files.list(&odd).await.unwrap(), None, "a file is no folder");
        files.rename(&format!("{dir}/a b"), &format!("{dir}/b")).await.unwrap();
        put(&*files, &format!("{dir}/c"), "").await;
        let error = files.rename(&format!("{dir}/c"), &format!("{dir}/b")).await.unwrap_err().to_string();
        assert!(error.ends_with(&format!("{dir}/b exists already")), "{error}");
        files.remove(dir).await.unwrap();
        files.remove(dir).await.unwrap();
        assert_eq!(files.stat(dir).await.unwrap(), None);
    }

    #[tokio::test]
    #[ignore = "needs a real server: servers/run with sftp -- cargo test -- --ignored real::"]
    async fn large_files_go_over_in_pieces() {
        let Some(server) = Server::find("large") else { return };
        let (files, path) = (server.files(), format!("{}/large", server.dir));
        let bytes: Vec<u8> = (0..3_000_001_u32).map(|n| (n % 251) as u8).collect();
        files.put(&path, &mut bytes.as_slice()).await.unwrap();
        assert!(files.read(&path, 4_000_000).await.unwrap() == bytes);
        files.remove(&server.dir).await.unwrap();
    }

    #[tokio::test]
    #[ignore = "needs a real server: servers/run with sftp -- cargo test -- --ignored real::"]
    async fn links_are_followed_but_not_removed_through() {
        let Some(server) = Server::find("links") else { return };
        let (files, dir) = (server.files(), server.dir.as_str());
        put(&*files, &format!("{dir}/kept/file"), "x").await;
        files.make_folder(&format!("{dir}/gone")).await.unwrap();
        std::os::unix::fs::symlink(format!("{dir}/kept"), format!("{dir}/gone/link")).unwrap();
        std::os::unix::fs::symlink("/nowhere", format!("{dir}/gone/dangling")).unwrap();
        let listed = files.list(&format!("{dir}/gone")).await.unwrap().unwrap();
        assert_eq!(
            listed.iter().map(|one| (one.name.as_str(), one.kind)).collect::<Vec<_>>(),
            [("link", Kind::Folder)]
        );
        files.remove(&format!("{dir}/gone")).await.unwrap();
        assert_eq!(files.read(&format!("{dir}/kept/file"), 9).await.unwrap(), "x");
        files.remove(dir).await.unwrap();
    }

    #[tokio::test]
    #[ignore = "needs a real server: servers/run with sftp -- cargo test -- --ignored real::"]
    async fn an_agent_lets_in() {
        let Some(mut server) = Server::find("agent") else { return };
        server.ssh.key = None;
        server.ssh.agent = std::env::var("KELOS_TEST_SFTP_AGENT").ok().map(PathBuf::from);
        assert!(server.files().stat("/").await.unwrap().is_some());
    }

    #[tokio::test]
    #[ignore = "needs a real server: servers/run with sftp -- cargo test -- --ignored real::"]
    async fn a_key_that_the_server_does_not_take_is_named() {
        let Some(mut server) = Server::find("wrong") else { return };
        let wrong = std::env::var("KELOS_TEST_SFTP_WRONG_KEY").unwrap();
        server.ssh.key = Some(PathBuf::from(&wrong));
        let told = server.refusal().await;
        assert!(told.contains(&format!("is not let in: the server refused the key {wrong}. Expected a key")), "{told}");
        server.ssh.key = Some("/nowhere/key".into());
        let told = server.refusal().await;
        assert!(told.contains("is not let in: there is no key /nowhere/key. Expected a key"), "{told}");
        server.ssh.key = None;
        let told = server.refusal().await;
        assert!(told.contains("is not let in: there is no key to try. Expected a key"), "{told}");
    }

    #[tokio::test]
    #[ignore = "needs a real server: servers/run with sftp -- cargo test -- --ignored real::"]
    async fn a_key_with_a_passphrase_is_left_to_agents() {
        let Some(mut server) = Server::find("passphrase") else { return };
        let folder = tempfile::tempdir().unwrap();
        let key = folder.path().join("key");
        let args = ["-q", "-t", "ed25519", "-N", "secret", "-f", key.to_str().unwrap()];
        assert!(std::process::Command::new("ssh-keygen").args(args).status().unwrap().success());
        server.ssh.key = Some(key.clone());
        let told = server.refusal().await;
        let key = key.display();
        let expected = format!("the key {key} has a passphrase, which only an agent is told: ssh-add {key}");
        assert!(told.contains(&expected), "{told}");
    }

    #[tokio::test]
    #[ignore = "needs a real server: servers/run with sftp -- cargo test -- --ignored real::"]
    async fn a_server_that_is_not_known_or_has_changed_is_refused() {
        let Some(mut server) = Server::find("hosts") else { return };
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("known_hosts");
        let known = std::fs::read_to_string(server.ssh.known_hosts.take().unwrap()).unwrap();
        server.ssh.known_hosts = Some(file.clone());
        let told = server.refusal().await;
        let name = known.split(' ').next().unwrap();
        let expected = format!(
            "its host key is not known: {name} is not in {}, and it offers ssh-ed25519 SHA256:",
            file.display()
        );
        assert!(told.contains(&expected), "{told}");
        std::fs::write(
            &file,
            format!("{name} ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJdD7y3aLq454yWBdwLWbieU1ebz9/cu7/QEXn9OIeZJ\n"),
        )
        .unwrap();
        let told = server.refusal().await;
        assert!(told.contains("its host key has changed: it offers ssh-ed25519 SHA256:"), "{told}");
        std::fs::write(&file, &known).unwrap();
        let args = ["-q", "-H", "-f", file.to_str().unwrap()];
        assert!(std::process::Command::new("ssh-keygen").args(args).output().unwrap().status.success());
        assert!(std::fs::read_to_string(&file).unwrap().starts_with("|1|"), "names are hashed now");
        assert!(server.files().stat("/").await.unwrap().is_some());
    }

    #[tokio::test]
    #[ignore = "needs a real server: servers/run with sftp -- cargo test -- --ignored real::"]
    async fn calls_side_by_side_share_a_connection() {
        let Some(server) = Server::find("shared") else { return };
        let files = server.files();
        let folder = format!("{}/many", server.dir);
        let put = (0..40).map(|n| {
            let (files, path) = (files.clone(), format!("{folder}/{n}"));
            tokio::spawn(async move { files.put(&path, &mut path.as_bytes()).await })
        });
        for one in put.collect::<Vec<_>>() {
            one.await.unwrap().unwrap();
        }
        assert_eq!(files.list(&folder).await.unwrap().unwrap().len(), 40);
        files.remove(&server.dir).await.unwrap();
    }

    /// Hands bytes on to a server, and cuts all lines when it is told to.
    async fn proxy(to: String) -> (u16, tokio::sync::watch::Sender<u32>) {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (cut, cuts) = tokio::sync::watch::channel(0);
        tokio::spawn(async move {
            while let Ok((mut near, _)) = listener.accept().await {
                let (to, mut cuts) = (to.clone(), cuts.clone());
                cuts.mark_unchanged();
                tokio::spawn(async move {
                    let mut far = tokio::net::TcpStream::connect(to).await.unwrap();
                    tokio::select! {
                        _ = tokio::io::copy_bidirectional(&mut near, &mut far) => {}
                        _ = cuts.changed() => {}
                    }
                });
            }
        });
        (port, cut)
    }

    #[tokio::test]
    #[ignore = "needs a real server: servers/run with sftp -- cargo test -- --ignored real::"]
    async fn a_connection_that_broke_is_made_again() {
        let Some(mut server) = Server::find("broken") else { return };
        let (user, host) = server.uri.strip_prefix("sftp://").unwrap().split_once('@').unwrap();
        let (port, cut) = proxy(host.to_owned()).await;
        let folder = tempfile::tempdir().unwrap();
        let known = std::fs::read_to_string(server.ssh.known_hosts.take().unwrap()).unwrap();
        let (_, key) = known.split_once(' ').unwrap();
        std::fs::write(folder.path().join("known_hosts"), format!("[127.0.0.1]:{port} {key}")).unwrap();
        server.ssh.known_hosts = Some(folder.path().join("known_hosts"));
        server.uri = format!("sftp://{user}@127.0.0.1:{port}");
        let files = server.files();
        put(&*files, &format!("{}/file", server.dir), "x").await;
        cut.send_replace(1);
        // A call that was already under way may fail with the connection; what matters is that the next one goes.
        let first = files.read(&format!("{}/file", server.dir), 9).await;
        assert!(first.is_ok() || matches!(first, Err(StorageError::Unreachable { .. })), "{first:?}");
        assert_eq!(files.read(&format!("{}/file", server.dir), 9).await.unwrap(), "x");
        files.remove(&server.dir).await.unwrap();
    }
}
