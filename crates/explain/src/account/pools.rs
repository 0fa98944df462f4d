//! Pools in the explanation of a queued slot.

use kelos_core::{PoolPlace, PoolState};
use kelos_model::time as text;

/// Holders that are named; of the others there is a number.
const NAMED: usize = 3;

/// The reason for which a pool keeps a slot queued; none if it has the permits and no slot comes first.
pub(super) fn blocker(place: &PoolPlace) -> Option<String> {
    let state = &place.state;
    let (pool, takes) = (&state.pool, place.permits);
    let ahead = match place.ahead {
        0 => String::new(),
        1 => ", and 1 queued slot is ahead".to_owned(),
        ahead => format!(", and {ahead} queued slots are ahead"),
    };
    if let Some(words) = tokens(place) {
        return Some(format!("{words}{ahead}"));
    }
    let size = state.size?;
    if takes > size {
        return Some(format!("its run takes {takes} permits of pool {pool}, which has {size}: it can never run"));
    }
    let free = u64::from(size).saturating_sub(state.held);
    if free < u64::from(takes) {
        let takes = if takes == 1 { String::new() } else { format!("; it takes {takes}") };
        let held = state.held;
        return Some(format!("{held} of {size} permits of pool {pool} are held by {}{takes}{ahead}", holders(state)));
    }
    let first = state.first.first().filter(|_| place.ahead > 0)?;
    let kept =
        format!("{free} of {size} permits of pool {pool} are free, and may be reserved for {}", first.slot.short());
    Some(format!("{kept}, which takes {}{ahead}", first.permits))
}

/// The reason for which the rate of a pool keeps a slot queued; none if the tokens are there, or its permits are not.
fn tokens(place: &PoolPlace) -> Option<String> {
    let (state, takes) = (&place.state, place.permits);
    let (pool, rate) = (&state.pool, state.rate.as_ref()?);
    let burst = rate.rate.burst;
    if takes > burst {
        return Some(format!(
            "its run takes {takes} tokens of {pool}, of which at most {burst} add up: it can never run"
        ));
    }
    let has_places = state.size.is_none_or(|size| state.held + u64::from(takes) <= u64::from(size));
    let at = place.tokens_at.filter(|_| has_places && rate.tokens < takes)?;
    let what = if takes == 1 { "next token".to_owned() } else { format!("{takes} tokens") };
    Some(format!("waits for {pool}: {what} at {}", text::format_short(at)))
}

/// `a@2016-01-01T00:00Z(2), b@2016-01-01T01:00Z and 4 more`
fn holders(state: &PoolState) -> String {
    let name = |one: &kelos_core::Holder| match one.permits {
        1 => one.run.slot.short(),
        permits => format!("{}({permits})", one.run.slot.short()),
    };
    let named: Vec<String> = state.holders.iter().take(NAMED).map(name).collect();
    let more = state.more_holders + state.holders.len().saturating_sub(NAMED) as u64;
    match more {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use kelos_core::{Holder, RateState, Waiter};
    use kelos_model::{PoolId, RunId, SlotRef, TokenRate, WorkflowId};

    use super::*;

    fn slot(id: &str) -> SlotRef {
        SlotRef::at(WorkflowId::new(id).unwrap(), "2016-01-01T00:00Z".parse().unwrap())
    }

    fn place(held: &[(&str, u32)], permits: u32, first: &[&str]) -> PoolPlace {
        let since = Timestamp::UNIX_EPOCH;
        let holder = |(id, permits): &(&str, u32)| Holder {
            run: RunId { slot: slot(id), number: 1 },
            permits: *permits,
            since,
            is_within: false,
        };
        let waiter = |id: &&str| Waiter { slot: slot(id), permits: 3, priority: 0, since, behind: 0, is_within: false };
        let state = PoolState {
            pool: PoolId::new("spark").unwrap(),
            size: Some(4),
            rate: None,
            is_disputed: false,
            held: held.iter().map(|(_, permits)| u64::from(*permits)).sum(),
            holders: held.iter().map(holder).collect(),
            more_holders: 0,
            queued: 1,
            oldest_since: None,
            first: first.iter().map(waiter).collect(),
        };
        PoolPlace { state, permits, tokens_at: None, ahead: first.len() as u64 }
    }

    #[test]
    fn who_holds_what_is_named() {
        let words = |held: &[(&str, u32)], permits, first: &[&str]| blocker(&place(held, permits, first));
        assert_eq!(words(&[], 1, &[]), None);
        assert_eq!(
            words(&[("a", 2), ("b", 1), ("c", 1)], 1, &[]).unwrap(),
            "4 of 4 permits of pool spark are held by a@2016-01-01T00:00Z(2), b@2016-01-01T00:00Z, c@2016-01-01T00:00Z"
        );
        assert_eq!(
            words(&[("a", 1), ("b", 1), ("c", 1), ("d", 1)], 2, &["x"]).unwrap(),
            "4 of 4 permits of pool spark are held by a@2016-01-01T00:00Z, b@2016-01-01T00:00Z, c@2016-01-01T00:00Z \
             and 1 more; it takes 2, and 1 queued slot is ahead"
        );
        assert_eq!(
            words(&[("a", 2)], 1, &["x"]).unwrap(),
            "2 of 4 permits of pool spark are free, and may be reserved for x@2016-01-01T00:00Z, which takes 3, and 1 queued \
             slot is ahead"
        );
        let limited = |tokens, at: &str| {
            let mut place = place(&[("a", 1)], 1, &["x"]);
            let rate = TokenRate { tokens: 60, millis: 60_000, burst: 1 };
            place.state.rate = Some(RateState { rate, tokens, next: None });
            (place.state.size, place.tokens_at) = (None, Some(at.parse().unwrap()));
            blocker(&place)
        };
        assert_eq!(
            limited(0, "2016-01-01T12:00:01Z").unwrap(),
            "waits for spark: next token at 2016-01-01T12:00:01Z, and 1 queued slot is ahead"
        );
        assert_eq!(words(&[], 5, &[]).unwrap(), "its run takes 5 permits of pool spark, which has 4: it can never run");
    }
}
