//! Permits that a live run takes of pools, beside those that it was started with.
//!
//! A run counts its requests; each is granted as a whole or not at all.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::id::PoolId;

/// The permits that a live run holds by a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hold {
    /// The number of the request, by which the run counts its requests.
    pub request: u64,
    /// The number of permits by pool. What is limited by its rate alone is spent, not held, and not listed.
    pub permits: BTreeMap<PoolId, u32>,
    /// The moment since which it holds them.
    pub since: Timestamp,
}

/// The answer to a request for permits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PermitAnswer {
    /// They are taken, and some are held until the run returns them or ends.
    Held,
    /// They are taken, and nothing is to be returned.
    Spent,
    /// They can never be given.
    Refused(PermitRefusal),
}

/// The reason why a request for permits can never be met.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum PermitRefusal {
    /// It names no pool.
    Nothing,
    /// The definition of its workflow does not name the pool, or is gone.
    Undeclared {
        /// The pool.
        pool: PoolId,
    },
    /// The pool is smaller.
    TooMany {
        /// The pool.
        pool: PoolId,
        /// The number of permits that are asked for.
        permits: u32,
        /// The number of permits that it has.
        size: u32,
    },
    /// Not as many tokens add up.
    BeyondBurst {
        /// The pool.
        pool: PoolId,
        /// The number of tokens that are asked for.
        tokens: u32,
        /// The number of tokens that add up.
        burst: u32,
    },
}

impl fmt::Display for PermitRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PermitRefusal::Nothing => f.write_str("no permit is asked for: expected at least one"),
            PermitRefusal::Undeclared { pool } => {
                write!(f, "\"{pool}\" is no platform of this job: add `.may_use(&…)` with it to the job")
            }
            PermitRefusal::TooMany { pool, permits, size } => {
                write!(f, "{permits} permits of \"{pool}\" are asked for, which has {size}: ask for fewer")
            }
            PermitRefusal::BeyondBurst { pool, tokens, burst } => write!(
                f,
                "{tokens} tokens of \"{pool}\" are asked for, of which at most {burst} add up: ask for fewer, or give it a larger burst"
            ),
        }
    }
}

impl std::error::Error for PermitRefusal {}
