//! Name nodes that are silent, dead, or change places.

use std::time::Instant;

use kelos_storage::{HadoopConf, LOOK, Storage, StorageConfig, StorageError};
use tokio::net::TcpListener;

/// A server that accepts connections and never says a word.
async fn silent() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    (listener, address)
}

fn of_user(user: &str, hadoop: Option<HadoopConf>) -> Storage {
    Storage::new(StorageConfig { hadoop, hadoop_user: Some(user.to_owned()), ..StorageConfig::default() })
}

async fn look(storage: &Storage, uri: &str) -> Result<bool, StorageError> {
    let place = storage.place(uri).unwrap();
    place.files.stat(&place.path).await.map(|found| found.is_some())
}

#[tokio::test(start_paused = true)]
async fn a_silent_name_node_ends_in_time() {
    let (_listener, address) = silent().await;
    let storage = of_user("eve", None);
    let start = tokio::time::Instant::now();
    let error = look(&storage, &format!("hdfs://{address}/x")).await.unwrap_err();
    assert_eq!(error.to_string(), format!("get an answer from hdfs://{address} within 10 s"));
    assert_eq!(start.elapsed(), LOOK);
}

mod real {
    use super::{HadoopConf, Instant, LOOK, Storage, StorageError, TcpListener, look, of_user, silent};
    use std::time::Duration;
    use tokio::time::sleep;

    /// How long servers may take to come and go on a busy machine.
    const PATIENCE: Duration = Duration::from_secs(120);

    #[tokio::test]
    #[ignore = "needs a real server: servers/run with hdfs -- cargo test -- --ignored real::"]
    async fn a_silent_name_node_delays_no_other() {
        let Some(well) = kelos_test_servers::address("KELOS_TEST_HDFS") else { return };
        let (_listener, address) = silent().await;
        let storage = of_user("eve", None);
        let (sick, well) = (format!("hdfs://{address}/x"), format!("{well}/tmp"));
        let many = (0..100).map(|_| look(&storage, &sick));
        let start = Instant::now();
        let looks = async {
            for _ in 0..50 {
                assert!(look(&storage, &well).await.unwrap());
            }
            start.elapsed()
        };
        let (all, fifty) = tokio::join!(futures_util::future::join_all(many), looks);
        println!("50 looks at the other: {fifty:?}; 100 at the silent one: {:?}", start.elapsed());
        assert!(fifty < LOOK, "the other had to wait: {fifty:?}");
        assert!(all.iter().all(Result::is_err));
        let told = look(&storage, &sick).await.unwrap_err().to_string();
        assert!(told.contains(": no answer within 10 s; next try in "), "{told}");
    }

    /// A pair of name nodes, the second of which is a real one.
    fn pair(sick: &str, well: &str) -> Storage {
        let property =
            |name: &str, value: &str| format!("<property><name>{name}</name><value>{value}</value></property>");
        let hdfs_site = [
            property("dfs.ha.namenodes.pair", "sick,well"),
            property("dfs.namenode.rpc-address.pair.sick", sick),
            property("dfs.namenode.rpc-address.pair.well", well.trim_start_matches("hdfs://")),
        ]
        .concat();
        let conf = HadoopConf::Texts {
            core_site: "<configuration/>".to_owned(),
            hdfs_site: format!("<configuration>{hdfs_site}</configuration>"),
        };
        of_user("eve", Some(conf))
    }

    /// A port that takes no connection any more and refuses none, like a machine without power.
    async fn full() -> (TcpListener, Vec<tokio::task::JoinHandle<()>>, String) {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let listener = socket.listen(0).unwrap();
        let address = listener.local_addr().unwrap();
        let fill = || async move {
            let _open = tokio::net::TcpStream::connect(address).await;
            std::future::pending::<()>().await;
        };
        let filling = (0..8).map(|_| tokio::spawn(fill())).collect();
        while is_open(&address.to_string()).await {}
        (listener, filling, address.to_string())
    }

    async fn is_open(address: &str) -> bool {
        let connecting = tokio::net::TcpStream::connect(address);
        tokio::time::timeout(Duration::from_millis(300), connecting).await.is_ok()
    }

    #[tokio::test]
    #[ignore = "needs a real server: servers/run with hdfs -- cargo test -- --ignored real::"]
    async fn a_name_node_whose_machine_is_gone_is_passed_over() {
        let Some(well) = kelos_test_servers::address("KELOS_TEST_HDFS") else { return };
        let (_listener, _filling, gone) = full().await;
        let start = Instant::now();
        assert!(look(&pair(&gone, &well), "hdfs://pair/tmp").await.unwrap());
        println!("a machine that is gone: passed over in {:?}", start.elapsed());
    }

    #[tokio::test]
    #[ignore = "needs a real server: servers/run with hdfs -- cargo test -- --ignored real::"]
    async fn a_name_node_that_hangs_is_asked_once() {
        let Some(well) = kelos_test_servers::address("KELOS_TEST_HDFS") else { return };
        let (_listener, hanging) = silent().await;
        let storage = pair(&hanging, &well);
        let error = look(&storage, "hdfs://pair/tmp").await.unwrap_err();
        assert_eq!(error.to_string(), "get an answer from hdfs://pair within 10 s");
        assert!(look(&storage, "hdfs://pair/tmp").await.unwrap());
    }

    /// Both name nodes of a service die, one after the other, and come back.
    #[tokio::test(flavor = "multi_thread")]
    #[ignore = "needs a real server: servers/run with hdfs-ha -- cargo test -- --ignored real::"]
    async fn a_service_loses_one_name_node_then_all_and_gets_them_back() {
        let Some(address) = kelos_test_servers::address("KELOS_TEST_HDFS_HA") else { return };
        let Some(folder) = kelos_test_servers::address("KELOS_TEST_HDFS_HA_CONF_DIR") else { return };
        let storage = of_user("hdfs", Some(HadoopConf::Folder(folder.into())));
        let uri = format!("{address}/tmp/kelos-trouble");
        let place = storage.place(&uri).unwrap();
        place.files.make_folder(&place.path).await.unwrap();

        servers("crash").await;
        println!("one dead: found again after {:?}", until(&storage, &uri, |look| look.is_ok()).await);
        servers("crash").await;
        let broken = |look: &Result<bool, StorageError>| matches!(look, Err(StorageError::Broken { .. }));
        println!("all dead: broken after {:?}", until(&storage, &uri, broken).await);
        let told = look(&storage, &uri).await.unwrap_err().to_string();
        println!("failed to {told}");
        assert!(told.starts_with(&format!("reach {address}: failing since ")), "{told}");
        assert!(storage.health()[0].broken.is_some());

        servers("up").await;
        println!("back: found again after {:?}", until(&storage, &uri, |look| look.is_ok()).await);
        assert!(storage.health()[0].broken.is_none());
        place.files.remove(&place.path).await.unwrap();
    }

    async fn servers(word: &'static str) {
        let run = move || match word {
            "crash" => kelos_test_servers::crash("hdfs-ha"),
            _ => kelos_test_servers::up("hdfs-ha"),
        };
        tokio::task::spawn_blocking(run).await.unwrap();
    }

    /// Looks again and again until it is as wanted. No look takes longer than it may.
    async fn until(storage: &Storage, uri: &str, is_wanted: impl Fn(&Result<bool, StorageError>) -> bool) -> Duration {
        let start = Instant::now();
        loop {
            let before = Instant::now();
            let looked = look(storage, uri).await;
            assert!(before.elapsed() < LOOK + Duration::from_secs(5), "a look took {:?}", before.elapsed());
            if is_wanted(&looked) {
                return start.elapsed();
            }
            assert!(start.elapsed() < PATIENCE, "{looked:?}");
            sleep(Duration::from_millis(200)).await;
        }
    }
}
