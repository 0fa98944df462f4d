//! Retry policies: when a retry is due, whatever the numbers.

use jiff::Timestamp;
use kelos_model::RetryPolicy;
use kelos_model::retry::{Growth, OnUnknown, scramble};
use proptest::prelude::*;

fn policy() -> impl Strategy<Value = RetryPolicy> {
    let growth = prop::sample::select(vec![Growth::Fixed, Growth::Exponential]);
    let on_unknown = prop::sample::select(vec![OnUnknown::Retry, OnUnknown::Fail, OnUnknown::Again]);
    let seconds = prop_oneof![0_u64..100_000, any::<u64>()];
    (any::<u32>(), seconds.clone(), growth, prop::option::of(seconds), any::<u8>(), on_unknown).prop_map(
        |(count, delay_seconds, growth, cap_seconds, jitter_percent, on_unknown)| RetryPolicy {
            count,
            delay_seconds,
            growth,
            cap_seconds,
            jitter_percent,
            on_unknown,
        },
    )
}

/// The wait in milliseconds; where it leads past the end of time, what is left of it.
fn wait(policy: &RetryPolicy, retry: u32, seed: u64) -> i64 {
    policy.due(retry, Timestamp::UNIX_EPOCH, seed).as_millisecond()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1024) })]

    #[test]
    fn no_retry_is_due_before_its_run_ended(
        policy in policy(),
        retry: u32,
        seed: u64,
        ended in -1_000_000_000_000_i64..4_000_000_000_000,
    ) {
        let ended = Timestamp::from_millisecond(ended).unwrap();
        let due = policy.due(retry, ended, seed);
        prop_assert!(due >= ended);
        prop_assert_eq!(due, policy.due(retry, ended, seed), "the same draw each time");
    }

    #[test]
    fn no_wait_is_longer_than_the_cap(policy in policy(), retry: u32, seed: u64, cap in 0_u64..1_000_000) {
        let policy = RetryPolicy { cap_seconds: Some(cap), ..policy };
        prop_assert!(wait(&policy, retry, seed) <= i64::try_from(cap).unwrap() * 1000);
    }

    #[test]
    fn jitter_takes_off_no_more_than_its_share(policy in policy(), retry in 1_u32..80, seed: u64) {
        let delay_seconds = policy.delay_seconds % 100_000;
        let policy = RetryPolicy { delay_seconds, cap_seconds: Some(1_000_000), ..policy };
        let whole = wait(&RetryPolicy { jitter_percent: 0, ..policy }, retry, seed);
        let least = whole - whole / 100 * i64::from(policy.jitter_percent.min(100));
        prop_assert!((least..=whole).contains(&wait(&policy, retry, seed)));
    }

    #[test]
    fn without_jitter_waits_never_shrink(policy in policy(), retry in 1_u32..200) {
        let policy = RetryPolicy { jitter_percent: 0, ..policy };
        prop_assert!(wait(&policy, retry, 0) <= wait(&policy, retry + 1, 0));
    }

    #[test]
    fn waits_are_whole_milliseconds(policy in policy(), retry: u32, seed: u64) {
        let due = policy.due(retry, Timestamp::UNIX_EPOCH, seed);
        prop_assert!(due == Timestamp::MAX || due.subsec_nanosecond() % 1_000_000 == 0, "{}", due);
    }

    #[test]
    fn policies_survive_their_json(policy in policy()) {
        let json = serde_json::to_string(&policy).unwrap();
        prop_assert_eq!(serde_json::from_str::<RetryPolicy>(&json).unwrap(), policy);
    }

    #[test]
    fn scrambling_loses_nothing(a: u64, b: u64) {
        prop_assert_eq!(a == b, scramble(a) == scramble(b));
    }
}

#[test]
fn what_is_not_said_is_celos() {
    let policy: RetryPolicy = serde_json::from_str(r#"{"count": 3}"#).unwrap();
    assert_eq!(policy, RetryPolicy::immediate(3));
    assert_eq!(wait(&policy, 1, 9), 0, "at once");
    assert_eq!(policy.on_unknown, OnUnknown::Retry);
}
