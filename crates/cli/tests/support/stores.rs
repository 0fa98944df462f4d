//! Real stores under test, and numbers by chance.

use std::time::Duration;

/// A store under test.
pub(crate) struct Store {
    pub(crate) name: &'static str,
    /// Its own host and port, as they stand in the address.
    pub(crate) at: String,
    /// Whether it keeps what it has when it is killed.
    pub(crate) keeps: bool,
    /// The address of a log of its own.
    url: String,
    /// Variables of the nodes over it.
    variables: Vec<(&'static str, String)>,
}

impl Store {
    pub(crate) fn postgres() -> Option<Store> {
        let url = kelos_test_servers::address("KELOS_TEST_POSTGRES")?;
        let file = std::env::var_os("KELOS_TEST_POSTGRES_PASSWORD_FILE").expect("it is set with the address");
        let password = std::fs::read_to_string(file).expect("a password");
        let at = host_of(&url);
        let url = url.replace("kelos@", &format!("kelos:{}@", password.trim()));
        Some(Store::new("postgres", at, format!("{url}?schema={}&sslmode=disable", unique())))
    }

    /// A primary and its standby; its address is those of both.
    pub(crate) fn postgres_pair() -> Option<Store> {
        let url = kelos_test_servers::address("KELOS_TEST_POSTGRES_PAIR")?;
        Some(Store::new("postgres-pair", host_of(&url), url))
    }

    pub(crate) fn redis() -> Option<Store> {
        let url = kelos_test_servers::address("KELOS_TEST_REDIS")?;
        Some(Store::new("redis", host_of(&url), format!("{url}?prefix={}", unique())))
    }

    pub(crate) fn zookeeper() -> Option<Store> {
        let at = kelos_test_servers::address("KELOS_TEST_ZOOKEEPER")?;
        let url = format!("zookeeper://{at}/{}", unique());
        Some(Store::new("zookeeper", at, url))
    }

    pub(crate) fn s3() -> Option<Store> {
        let endpoint = kelos_test_servers::address("KELOS_TEST_S3")?;
        let bucket = kelos_test_servers::address("KELOS_TEST_S3_BUCKET").expect("it is set with the address");
        let variables = vec![
            ("AWS_ENDPOINT_URL_S3", endpoint.clone()),
            ("AWS_REGION", "us-east-1".to_owned()),
            ("AWS_ACCESS_KEY_ID", "test".to_owned()),
            ("AWS_SECRET_ACCESS_KEY", "test".to_owned()),
        ];
        let store = Store::new("s3", host_of(&endpoint), format!("s3://{bucket}/{}", unique()));
        Some(Store { keeps: false, variables, ..store })
    }

    fn new(name: &'static str, at: String, url: String) -> Store {
        Store { name, at, keeps: true, url, variables: Vec::new() }
    }

    /// The variables of a node that reaches it at another host and port.
    pub(crate) fn variables(&self, at: &str) -> Vec<(String, String)> {
        let log = ("KELOS_STORE", self.url.clone());
        let moved = |(name, value): &(&str, String)| ((*name).to_owned(), value.replace(&self.at, at));
        self.variables.iter().chain([&log]).map(moved).collect()
    }
}

/// A name that no other log of this store has.
fn unique() -> String {
    static LOGS: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let log = LOGS.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    format!("chaos{}x{}x{log}", std::process::id(), jiff::Timestamp::now().as_millisecond())
}

fn host_of(address: &str) -> String {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    let rest = rest.split('/').next().unwrap_or(rest);
    rest.rsplit_once('@').map_or(rest, |(_, host)| host).to_owned()
}

/// Random numbers, the same for the same seed.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }

    pub(crate) fn below_size(&mut self, limit: usize) -> usize {
        usize::try_from(self.below(limit as u64)).expect("a small number")
    }

    pub(crate) fn millis(&mut self, least: u64, most: u64) -> Duration {
        Duration::from_millis(least + self.below(most - least))
    }
}

/// A number that a variable of the environment may give.
pub(crate) fn number(variable: &str, usual: u64) -> u64 {
    std::env::var(variable).map_or(usual, |text| text.parse().expect("a number"))
}
