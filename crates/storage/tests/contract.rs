//! One suite for every file system that can be written to: this machine's here, the others' against real servers.

use kelos_storage::{Storage, StorageConfig};

use crate::suite::suite;

#[tokio::test]
async fn local_files() {
    let folder = tempfile::tempdir().unwrap();
    let root = format!("{}/root with space", folder.path().display());
    let place = Storage::new(StorageConfig::default()).place(&root).unwrap();
    suite(&*place.files, &place.path).await;
}

mod real {
    use crate::suite::{forbidden, suite};
    use kelos_storage::{HadoopConf, S3Keys, S3Settings, Secret, SshSettings, Storage, StorageConfig};

    fn conf_dir() -> Option<HadoopConf> {
        kelos_test_servers::address("KELOS_TEST_HADOOP_CONF_DIR").map(|folder| HadoopConf::Folder(folder.into()))
    }

    fn of_user(user: &str, hadoop: Option<HadoopConf>) -> Storage {
        Storage::new(StorageConfig { hadoop, hadoop_user: Some(user.to_owned()), ..StorageConfig::default() })
    }

    async fn holds(storage: &Storage, uri: &str) {
        let place = storage.place(uri).unwrap();
        suite(&*place.files, &place.path).await;
    }

    async fn forbids(storage: &Storage, uri: &str) {
        let place = storage.place(uri).unwrap();
        forbidden(&*place.files, &place.path).await;
    }

    #[tokio::test]
    #[ignore = "needs a real server: servers/run with hdfs -- cargo test -- --ignored real::"]
    async fn hdfs() {
        let Some(address) = kelos_test_servers::address("KELOS_TEST_HDFS") else { return };
        let storage = of_user("eve", None);
        holds(&storage, &format!("{address}/tmp/kelos contract")).await;
        forbids(&storage, &format!("{address}/private")).await;
    }

    #[tokio::test]
    #[ignore = "needs a real server: servers/run with hdfs -- cargo test -- --ignored real::"]
    async fn hdfs_by_its_configuration() {
        let Some(HadoopConf::Folder(folder)) = conf_dir() else { return };
        let text = |name| std::fs::read_to_string(folder.join(name)).unwrap();
        let texts = HadoopConf::Texts { core_site: text("core-site.xml"), hdfs_site: text("hdfs-site.xml") };
        for conf in [HadoopConf::Folder(folder.clone()), texts] {
            let storage = of_user("eve", Some(conf));
            for uri in ["hdfs:/tmp", "hdfs:///tmp"] {
                let place = storage.place(uri).unwrap();
                assert!(place.files.stat(&place.path).await.unwrap().is_some());
            }
            assert_eq!(storage.health().len(), 1, "both are one endpoint");
        }
    }

    #[tokio::test]
    #[ignore = "needs a real server: servers/run with hdfs -- cargo test -- --ignored real::"]
    async fn hdfs_that_asks_for_no_login() {
        let Some(address) = kelos_test_servers::address("KELOS_TEST_HDFS") else { return };
        let property = "<property><name>hadoop.security.authentication</name><value>kerberos</value></property>";
        let core_site = format!("<configuration>{property}</configuration>");
        let conf = HadoopConf::Texts { core_site, hdfs_site: "<configuration/>".to_owned() };
        let place = of_user("eve", Some(conf)).place(&format!("{address}/tmp")).unwrap();
        assert!(place.files.stat(&place.path).await.unwrap().is_some());
    }

    #[tokio::test]
    #[ignore = "needs a real server: servers/run with hdfs -- cargo test -- --ignored real::"]
    async fn webhdfs() {
        let Some(address) = kelos_test_servers::address("KELOS_TEST_WEBHDFS") else { return };
        let address = address.replace("http://", "webhdfs://");
        let storage = of_user("eve", None);
        holds(&storage, &format!("{address}/tmp/kelos web contract")).await;
        forbids(&storage, &format!("{address}/private")).await;
    }

    #[tokio::test]
    #[ignore = "needs a real server: servers/run with s3 -- cargo test -- --ignored real::"]
    async fn s3() {
        let Some(endpoint) = kelos_test_servers::address("KELOS_TEST_S3") else { return };
        let Some(bucket) = kelos_test_servers::address("KELOS_TEST_S3_BUCKET") else { return };
        let keys = S3Keys { id: "kelos".to_owned(), secret: Secret("secret".to_owned()) };
        let s3 = S3Settings { endpoint: Some(endpoint), keys: Some(keys), ..S3Settings::default() };
        let storage = Storage::new(StorageConfig { s3, ..StorageConfig::default() });
        holds(&storage, &format!("s3a://{bucket}/kelos contract")).await;
        let absent = storage.place("s3://no-such-bucket-here/x").unwrap();
        let error = absent.files.stat(&absent.path).await.unwrap_err();
        assert_eq!(error.to_string(), "look at s3://no-such-bucket-here/x: there is no such bucket");
    }

    #[tokio::test]
    #[ignore = "needs a real server: servers/run with sftp -- cargo test -- --ignored real::"]
    async fn sftp() {
        let [Some(uri), Some(folder), Some(key), Some(known_hosts)] = ["", "_DIR", "_KEY", "_KNOWN_HOSTS"]
            .map(|end| kelos_test_servers::address(&format!("KELOS_TEST_SFTP{end}")))
        else {
            return;
        };
        let ssh =
            SshSettings { key: Some(key.into()), known_hosts: Some(known_hosts.into()), ..SshSettings::default() };
        let storage = Storage::new(StorageConfig { ssh, ..StorageConfig::default() });
        holds(&storage, &format!("{uri}{folder}/kelos%20contract")).await;
    }
}
