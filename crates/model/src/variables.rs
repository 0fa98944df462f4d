//! The environment variables of Kelos, and which of them a command may inherit.
//!
//! Each variable that the program or the Python package reads, or that a command is given, is in one of these lists.
//! `cargo xtask tidy` refuses one that is in none, so that nobody adds a credential that every command inherits.

use crate::secret::SECRET_VARIABLES;

/// Variables whose values are credentials of Kelos itself, or addresses with a password. No shim and no command inherits them.
pub const CREDENTIALS: [&str; 5] =
    ["KELOS_REDIS_PASSWORD", "KELOS_STORE", "KELOS_TASKS_REDIS", "KELOS_TOKEN", "KELOS_WEBHDFS_TOKEN"];

/// The beginnings of the names of variables that are treated as [`CREDENTIALS`]: people choose the rest.
const CREDENTIAL_FAMILIES: [&str; 2] = [SECRET_VARIABLES, "KELOS_STORE_"];

/// Variables that Kelos reads and that commands inherit: names of files, addresses and choices.
pub const SETTINGS: [&str; 13] = [
    "KELOS_CA",
    "KELOS_CLIENT_CERT",
    "KELOS_CLIENT_KEY",
    "KELOS_KERBEROS_KEYTAB",
    "KELOS_KERBEROS_PRINCIPAL",
    "KELOS_LOG",
    "KELOS_PIN",
    "KELOS_S3_ANONYMOUS",
    "KELOS_SERVER",
    "KELOS_SSH_KEY",
    "KELOS_SSH_KNOWN_HOSTS",
    "KELOS_TASKS_COMMAND",
    "KELOS_TOKEN_FILE",
];

/// Variables that Kelos sets for the commands that it runs.
pub const GIVEN: [&str; 16] = [
    "KELOS_ALERT_KEY",
    "KELOS_ARG_",
    "KELOS_ARGUMENTS",
    "KELOS_END",
    "KELOS_JOB",
    "KELOS_LAST",
    "KELOS_OUTPUTS",
    "KELOS_RUN",
    "KELOS_RUN_ID",
    "KELOS_RUN_TAG",
    "KELOS_SLOT",
    "KELOS_SLOTS",
    "KELOS_TIME",
    "KELOS_TRIGGERED_BY",
    "KELOS_VALUE_",
    "KELOS_WORKFLOW",
];

/// Whether the value of a variable is a credential of Kelos, which no command may inherit.
#[must_use]
pub fn is_credential(name: &str) -> bool {
    CREDENTIALS.contains(&name) || CREDENTIAL_FAMILIES.iter().any(|family| name.starts_with(family))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_and_what_people_name_like_them_are_withheld() {
        for name in ["KELOS_TOKEN", "KELOS_REDIS_PASSWORD", "KELOS_SECRET_DB", "KELOS_STORE", "KELOS_STORE_OLD"] {
            assert!(is_credential(name), "{name}");
        }
        for name in SETTINGS.iter().chain(&GIVEN).chain(&["PATH", "KELOS_SECRETARY", "MY_KELOS_TOKEN"]) {
            assert!(!is_credential(name), "{name}");
        }
    }
}
