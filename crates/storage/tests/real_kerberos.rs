//! HDFS that wants Kerberos, with a real name node and a real KDC.
//!
//! Where tickets and keys lie is known by a process's environment, which a process of many threads must not change.
//! So each test starts itself once more, with an environment of its own.

mod real {
    use std::path::{Path, PathBuf};
    use std::process::Command;
    use std::time::{Duration, Instant};

    use kelos_storage::{Kind, Place, Storage, StorageConfig, StorageError};

    /// Tells a test that it is the one with the environment.
    const ALONE: &str = "KELOS_TEST_ALONE";
    /// How long a test may take, servers that come and go included.
    const PATIENCE: Duration = Duration::from_secs(120);

    /// What the environment of a test is made of.
    struct Realm {
        variables: Vec<(&'static str, String)>,
        folder: tempfile::TempDir,
    }

    impl Realm {
        /// That of the test server, without any credentials.
        fn find() -> Option<Realm> {
            let folder = tempfile::tempdir().unwrap();
            let variables = vec![
                ("HADOOP_CONF_DIR", server("_CONF_DIR")?),
                ("KRB5_CONFIG", server("_KRB5_CONFIG")?),
                ("KRB5CCNAME", format!("FILE:{}", folder.path().join("tickets").display())),
                ("HADOOP_USER_NAME", "eve".to_owned()),
            ];
            Some(Realm { variables, folder })
        }

        fn with(mut self, name: &'static str, value: impl Into<String>) -> Realm {
            self.variables.retain(|(known, _)| *known != name);
            self.variables.push((name, value.into()));
            self
        }

        fn with_keytab(self) -> Realm {
            let (principal, keytab) = (server("_PRINCIPAL").unwrap(), server("_KEYTAB").unwrap());
            self.with("KELOS_KERBEROS_PRINCIPAL", principal).with("KELOS_KERBEROS_KEYTAB", keytab)
        }

        fn with_tickets(self, lifetime: &str) -> Realm {
            kinit(&self.variables, lifetime);
            self
        }

        /// The configuration of the test server with another KDC, or other defaults.
        fn with_krb5(self, change: impl Fn(String) -> String) -> Realm {
            let text = std::fs::read_to_string(server("_KRB5_CONFIG").unwrap()).unwrap();
            let file = self.file("krb5.conf", &change(text));
            self.with("KRB5_CONFIG", file.display().to_string())
        }

        /// A name service, `pair`, the second of whose name nodes is the test server.
        fn with_pair(self, sick: &str) -> Realm {
            let conf = PathBuf::from(server("_CONF_DIR").unwrap());
            let core_site = std::fs::read_to_string(conf.join("core-site.xml")).unwrap();
            let property =
                |name: &str, value: &str| format!("<property><name>{name}</name><value>{value}</value></property>");
            let hdfs_site = [
                property("dfs.ha.namenodes.pair", "sick,well"),
                property("dfs.namenode.rpc-address.pair.sick", sick),
                property("dfs.namenode.rpc-address.pair.well", server("").unwrap().trim_start_matches("hdfs://")),
            ];
            self.file("conf/hdfs-site.xml", &format!("<configuration>{}</configuration>", hdfs_site.concat()));
            let core_site = self.file("conf/core-site.xml", &core_site);
            self.with("HADOOP_CONF_DIR", folder_of(&core_site))
        }

        fn file(&self, name: &str, text: &str) -> PathBuf {
            let file = self.folder.path().join(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, text).unwrap();
            file
        }

        /// Runs the test that calls it once more, in this environment. In there it runs what it was given instead.
        #[track_caller]
        fn run(self, test: &str) {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command
                .args(["--exact", &format!("real_kerberos::real::{test}"), "--ignored", "--nocapture"])
                .env(ALONE, test);
            for name in ["KELOS_KERBEROS_PRINCIPAL", "KELOS_KERBEROS_KEYTAB", "KRB5_CLIENT_KTNAME"] {
                command.env_remove(name);
            }
            let status = command.envs(self.variables).status().unwrap();
            assert!(status.success(), "{test} in its own process: {status}");
        }
    }

    fn server(end: &str) -> Option<String> {
        kelos_test_servers::address(&format!("KELOS_TEST_HDFS_KERBEROS{end}"))
    }

    /// What the test `test` does: `within` in an environment that `realm` makes of the test server's.
    #[track_caller]
    fn alone<F: Future<Output = ()>>(test: &str, realm: impl FnOnce(Realm) -> Realm, within: impl FnOnce(House) -> F) {
        if std::env::var(ALONE).is_ok_and(|name| name == test) {
            let runtime = tokio::runtime::Runtime::new().unwrap();
            let house = House { storage: Storage::new(StorageConfig::from_env()), address: server("").unwrap() };
            runtime.block_on(within(house));
            runtime.shutdown_background();
        } else if let Some(found) = Realm::find() {
            realm(found).run(test);
        }
    }

    /// Gets tickets for the user of the test server, as people do.
    fn kinit(variables: &[(&'static str, String)], lifetime: &str) {
        let (principal, keytab) = (server("_PRINCIPAL").unwrap(), server("_KEYTAB").unwrap());
        let mut command = Command::new("kinit");
        command.args(["-l", lifetime, "-k", "-t", &keytab, &principal]);
        let status = command.envs(variables.iter().map(|(name, value)| (name, value))).status().unwrap();
        assert!(status.success(), "kinit: {status}");
    }

    type Looked = Result<Option<Kind>, StorageError>;

    /// What a test has in its own process.
    struct House {
        storage: Storage,
        address: String,
    }

    impl House {
        fn place(&self, path: &str) -> Place {
            self.storage.place(&format!("{}{path}", self.address)).unwrap()
        }

        async fn look(&self, path: &str) -> Looked {
            let place = self.place(path);
            place.files.stat(&place.path).await.map(|found| found.map(|entry| entry.kind))
        }

        /// What a look fails with. Where the server is, is left out.
        async fn told(&self, path: &str) -> String {
            let start = Instant::now();
            let error = self.look(path).await.unwrap_err();
            let told = error.to_string().replace(&self.address, "SERVER");
            println!("after {:?}: failed to {told}", start.elapsed());
            told
        }

        /// Looks until what comes of it is as wanted.
        async fn until(&self, is_wanted: impl Fn(&Looked) -> bool) -> Looked {
            let start = Instant::now();
            loop {
                let looked = self.look("/user/celos").await;
                if is_wanted(&looked) {
                    return looked;
                }
                assert!(start.elapsed() < PATIENCE, "{looked:?}");
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        }
    }

    /// Waits until the tickets of this process are of no more use.
    async fn end_of_tickets() {
        let start = Instant::now();
        while Command::new("klist").arg("-s").status().unwrap().success() {
            assert!(start.elapsed() < PATIENCE, "the tickets are still good");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    async fn restart() {
        let restart = || {
            kelos_test_servers::crash("hdfs-kerberos");
            kelos_test_servers::up("hdfs-kerberos");
        };
        tokio::task::spawn_blocking(restart).await.unwrap();
    }

    /// Everything that works without a data node, as the user that the name node knows by the ticket.
    async fn works(house: House) {
        let start = Instant::now();
        assert_eq!(house.look("/user/celos").await, Ok(Some(Kind::Folder)));
        println!("logged in after {:?}", start.elapsed());
        let folder = house.place("/user/celos/kelos kerberos");
        folder.files.remove(&folder.path).await.unwrap();
        folder.files.make_folder(&format!("{}/a", folder.path)).await.unwrap();
        folder.files.rename(&format!("{}/a", folder.path), &format!("{}/b", folder.path)).await.unwrap();
        let names: Vec<String> =
            folder.files.list(&folder.path).await.unwrap().unwrap().into_iter().map(|entry| entry.name).collect();
        assert_eq!(names, ["b"]);
        folder.files.put(&format!("{}/c", folder.path), &mut &b""[..]).await.unwrap();
        assert_eq!(house.look("/user/celos/kelos kerberos/c").await, Ok(Some(Kind::File)));
        folder.files.remove(&folder.path).await.unwrap();
        assert_eq!(house.look("/user/celos/kelos kerberos").await, Ok(None));
        let told = house.told("/private/secret").await;
        assert!(
            told.starts_with("use SERVER/private/secret: permission denied (Permission denied: user=celos,"),
            "{told}"
        );
    }

    #[test]
    #[ignore = "needs a real server: servers/run with hdfs-kerberos -- cargo test -- --ignored real::"]
    fn a_keytab_lets_in() {
        alone("a_keytab_lets_in", Realm::with_keytab, works);
    }

    #[test]
    #[ignore = "needs a real server: servers/run with hdfs-kerberos -- cargo test -- --ignored real::"]
    fn tickets_let_in() {
        alone("tickets_let_in", |realm| realm.with_tickets("1h"), works);
    }

    #[test]
    #[ignore = "needs a real server: servers/run with hdfs-kerberos -- cargo test -- --ignored real::"]
    fn without_credentials_it_says_so() {
        alone(
            "without_credentials_it_says_so",
            |realm| realm,
            |house| async move {
                let told = house.told("/").await;
                assert!(
                    told.starts_with("log in to SERVER: No Kerberos credentials available (default cache: FILE:"),
                    "{told}"
                );
                assert!(
                    told.ends_with("; run kinit, or set KELOS_KERBEROS_PRINCIPAL and KELOS_KERBEROS_KEYTAB"),
                    "{told}"
                );
            },
        );
    }

    #[test]
    #[ignore = "needs a real server: servers/run with hdfs-kerberos -- cargo test -- --ignored real::"]
    fn a_keytab_that_is_not_there_is_named() {
        let realm = |realm: Realm| realm.with_keytab().with("KELOS_KERBEROS_KEYTAB", "/no/such.keytab");
        alone("a_keytab_that_is_not_there_is_named", realm, |house| async move {
            let told = house.told("/").await;
            let expected = "log in to SERVER: KELOS_KERBEROS_KEYTAB (/no/such.keytab) can't be read: nothing is there";
            assert_eq!(told, expected);
        });
    }

    #[test]
    #[ignore = "needs a real server: servers/run with hdfs-kerberos -- cargo test -- --ignored real::"]
    fn a_principal_without_keys_is_named() {
        let realm = |realm: Realm| realm.with_keytab().with("KELOS_KERBEROS_PRINCIPAL", "mallory@KELOS.TEST");
        alone("a_principal_without_keys_is_named", realm, |house| async move {
            let told = house.told("/").await;
            let expected =
                "log in to SERVER: no ticket was given; are keys of mallory@KELOS.TEST in KELOS_KERBEROS_KEYTAB?";
            assert!(told.starts_with(expected), "{told}");
        });
    }

    #[test]
    #[ignore = "needs a real server: servers/run with hdfs-kerberos -- cargo test -- --ignored real::"]
    fn tickets_of_another_are_not_used() {
        let realm = |realm: Realm| realm.with_tickets("1h").with("KELOS_KERBEROS_PRINCIPAL", "mallory@KELOS.TEST");
        alone("tickets_of_another_are_not_used", realm, |house| async move {
            let told = house.told("/").await;
            assert!(told.ends_with("; run kinit mallory@KELOS.TEST, or set KELOS_KERBEROS_KEYTAB"), "{told}");
        });
    }

    #[test]
    #[ignore = "needs a real server: servers/run with hdfs-kerberos -- cargo test -- --ignored real::"]
    fn a_cluster_that_wants_kerberos_is_told_of() {
        let realm = |realm: Realm| {
            let conf = realm.file("conf/core-site.xml", "<configuration/>");
            realm.with_keytab().with("HADOOP_CONF_DIR", folder_of(&conf))
        };
        alone("a_cluster_that_wants_kerberos_is_told_of", realm, |house| async move {
            let told = house.told("/").await;
            let expected = "reach SERVER: the connection broke; is it the right port? \
                            where it wants Kerberos, core-site.xml has to say so";
            assert_eq!(told, expected);
        });
    }

    #[test]
    #[ignore = "needs a real server: servers/run with hdfs-kerberos -- cargo test -- --ignored real::"]
    fn kerberos_over_http_is_refused_with_a_way_out() {
        alone("kerberos_over_http_is_refused_with_a_way_out", Realm::with_keytab, |mut house| async move {
            house.address = server("_WEB").unwrap().replace("http://", "webhdfs://");
            let told = house.told("/").await;
            let expected = "log in to SERVER: it wants Kerberos over HTTP (SPNEGO), which webhdfs: does not have; \
                            use hdfs:, or set KELOS_WEBHDFS_TOKEN";
            assert_eq!(told, expected);
        });
    }

    #[test]
    #[ignore = "needs a real server: servers/run with hdfs-kerberos -- cargo test -- --ignored real::"]
    fn without_the_systems_library_it_is_named() {
        let realm = |realm: Realm| {
            let library = realm.file("lib/libgssapi_krb5.so.2", "");
            realm.with_keytab().with("LD_LIBRARY_PATH", folder_of(&library))
        };
        alone("without_the_systems_library_it_is_named", realm, |house| async move {
            let told = house.told("/").await;
            let expected = "log in to SERVER: Kerberos needs libgssapi_krb5.so.2 (Debian: libgssapi-krb5-2)";
            assert_eq!(told, expected);
        });
    }

    #[test]
    #[ignore = "needs a real server: servers/run with hdfs-kerberos -- cargo test -- --ignored real::"]
    fn tickets_that_ended_are_told_of_and_new_ones_are_found() {
        let realm = |realm: Realm| realm.with_tickets("3s");
        alone("tickets_that_ended_are_told_of_and_new_ones_are_found", realm, |house| async move {
            assert_eq!(house.look("/user/celos").await, Ok(Some(Kind::Folder)));
            end_of_tickets().await;
            // Who is in stays in; the next connection needs another ticket.
            assert_eq!(house.look("/user/celos").await, Ok(Some(Kind::Folder)));
            restart().await;
            let is_login = |looked: &Looked| matches!(looked, Err(StorageError::Login { .. }));
            let error = house.until(is_login).await.unwrap_err().to_string();
            println!("failed to {error}");
            let expected = "Ticket expired; run kinit, or set KELOS_KERBEROS_PRINCIPAL and KELOS_KERBEROS_KEYTAB";
            assert!(error.ends_with(expected), "{error}");
            kinit(&[], "1h");
            house.until(Result::is_ok).await.unwrap();
        });
    }

    #[test]
    #[ignore = "needs a real server: servers/run with hdfs-kerberos -- cargo test -- --ignored real::"]
    fn a_keytab_gets_new_tickets() {
        let short = |text: String| text.replace("[libdefaults]", "[libdefaults]\n  ticket_lifetime = 2s");
        let realm = |realm: Realm| realm.with_keytab().with_krb5(short);
        alone("a_keytab_gets_new_tickets", realm, |house| async move {
            assert_eq!(house.look("/user/celos").await, Ok(Some(Kind::Folder)));
            restart().await;
            house.until(Result::is_ok).await.unwrap();
        });
    }

    #[test]
    #[ignore = "needs a real server: servers/run with hdfs-kerberos -- cargo test -- --ignored real::"]
    fn a_kdc_that_is_gone_is_told_of() {
        let realm = |realm: Realm| realm.with_keytab().with_krb5(|text| with_kdc(&text, "127.0.0.1:1"));
        alone("a_kdc_that_is_gone_is_told_of", realm, |house| async move {
            let told = house.told("/").await;
            let expected = "log in to SERVER: Cannot contact any KDC for realm 'KELOS.TEST'; \
                            is the KDC up that krb5.conf (KRB5_CONFIG) names?";
            assert_eq!(told, expected);
        });
    }

    #[test]
    #[ignore = "needs a real server: servers/run with hdfs-kerberos -- cargo test -- --ignored real::"]
    fn a_kdc_that_hangs_is_told_of_and_delays_no_other() {
        let hangs = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = hangs.local_addr().unwrap().to_string();
        let realm = |realm: Realm| realm.with_keytab().with_krb5(|text| with_kdc(&text, &address));
        alone("a_kdc_that_hangs_is_told_of_and_delays_no_other", realm, |house| async move {
            let start = Instant::now();
            let local = async {
                let folder = house.storage.place("/").unwrap();
                folder.files.stat(&folder.path).await.unwrap();
                start.elapsed()
            };
            let (told, local) = tokio::join!(house.told("/"), local);
            let expected =
                "log in to SERVER: no ticket came within 9 s; is the KDC well that krb5.conf (KRB5_CONFIG) names?";
            assert_eq!(told, expected);
            assert!(local < Duration::from_secs(5), "a look at this machine took {local:?}");
        });
    }

    #[test]
    #[ignore = "needs a real server: servers/run with hdfs-kerberos -- cargo test -- --ignored real::"]
    fn a_name_node_that_hangs_is_passed_over() {
        let hangs = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let sick = hangs.local_addr().unwrap().to_string();
        alone(
            "a_name_node_that_hangs_is_passed_over",
            |realm| realm.with_keytab().with_pair(&sick),
            |mut house| async move {
                house.address = "hdfs://pair".to_owned();
                assert_eq!(house.told("/user/celos").await, "get an answer from SERVER within 8 s");
                assert_eq!(house.look("/user/celos").await, Ok(Some(Kind::Folder)));
            },
        );
    }

    fn with_kdc(text: &str, address: &str) -> String {
        let line = |line: &str| match line.split_once("kdc = ") {
            Some((before, _)) => format!("{before}kdc = {address}"),
            None => line.to_owned(),
        };
        text.lines().map(line).collect::<Vec<_>>().join("\n")
    }

    fn folder_of(file: &Path) -> String {
        file.parent().unwrap().display().to_string()
    }
}
