//! Options of Stolos's runner, which commands may name as they name identifiers: `{tasks_json}`, `{max_retry}`.

/// The option for the most attempts of a job.
pub(crate) const MAX_RETRY: &str = "max_retry";
/// After how many seconds a job is ended.
pub(crate) const WATCH: &str = "watch";

/// The options, each with the default that Stolos has for it, as a text.
const OPTIONS: [(&str, Option<&str>); 26] = [
    (MAX_RETRY, Some("5")),
    (WATCH, Some("-1")),
    ("timeout", Some("2")),
    ("bypass_scheduler", Some("False")),
    ("redirect_to_stderr", Some("False")),
    ("job_id_default_template", None),
    ("job_id_validations", None),
    ("job_id_delimiter", Some("_")),
    ("dependency_group_default_name", Some("default")),
    ("tasks_json", None),
    ("configuration_backend", Some("json")),
    ("redis_host", Some("localhost")),
    ("redis_port", Some("6379")),
    ("redis_db", Some("0")),
    ("redis_key_prefix", Some("stolos/")),
    ("redis_connection_opts", Some("None")),
    ("queue_backend", Some("redis")),
    ("qb_redis_host", Some("None")),
    ("qb_redis_port", Some("6379")),
    ("qb_redis_db", Some("0")),
    ("qb_redis_lock_timeout", Some("60")),
    ("qb_redis_max_network_delay", Some("30")),
    ("qb_redis_socket_timeout", Some("15")),
    ("qb_zookeeper_hosts", None),
    ("qb_zookeeper_timeout", Some("5")),
    ("qb_redis_connection_opts", Some("None")),
];

/// The names of the options.
pub(crate) fn option_names() -> impl Iterator<Item = &'static str> {
    OPTIONS.iter().map(|(name, _)| *name)
}

/// The value of an option: that of its variable `STOLOS_…`, or else its default. None if there is neither.
#[must_use]
pub(crate) fn option_value(name: &str, variable: impl Fn(&str) -> Option<String>) -> Option<String> {
    let (name, usual) = OPTIONS.iter().find(|(known, _)| *known == name)?;
    let said = variable(&format!("STOLOS_{}", name.to_uppercase())).filter(|value| !value.is_empty());
    said.or_else(|| usual.map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_is_what_its_variable_says_or_what_it_is_usually() {
        let port = |name: &str| (name == "STOLOS_REDIS_PORT").then(|| "7000".to_owned());
        assert_eq!(option_value("redis_port", port).as_deref(), Some("7000"));
        assert_eq!(option_value("qb_redis_port", port).as_deref(), Some("6379"));
        assert_eq!(option_value("tasks_json", port), None);
        assert_eq!(option_value("client", |_| Some("x".to_owned())), None);
    }
}
