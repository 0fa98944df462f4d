//! Celos's names of the states of a slot, and the corresponding states of Kelos.

use kelos_model::SlotState;

/// The status of a slot, in Celos's terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// Its trigger is not met.
    Waiting,
    /// Its trigger is met.
    Ready,
    /// Its job was submitted.
    Running,
    /// Its job succeeded.
    Success,
    /// Its job failed and no retry is left.
    Failure,
    /// It waited too long.
    WaitTimeout,
    /// A person ended it.
    Killed,
}

impl Status {
    /// Every status.
    pub const ALL: [Status; 7] = [
        Status::Waiting,
        Status::Ready,
        Status::Running,
        Status::Success,
        Status::Failure,
        Status::WaitTimeout,
        Status::Killed,
    ];

    /// The name in files and answers.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Waiting => "WAITING",
            Status::Ready => "READY",
            Status::Running => "RUNNING",
            Status::Success => "SUCCESS",
            Status::Failure => "FAILURE",
            Status::WaitTimeout => "WAIT_TIMEOUT",
            Status::Killed => "KILLED",
        }
    }

    /// Reads [`Status::as_str`] back.
    #[must_use]
    pub fn parse(name: &str) -> Option<Status> {
        Status::ALL.into_iter().find(|status| status.as_str() == name)
    }

    /// The status for a state of Kelos.
    #[must_use]
    pub fn of(state: SlotState) -> Status {
        match state {
            SlotState::Waiting | SlotState::Backoff => Status::Waiting,
            SlotState::Held | SlotState::Queued | SlotState::Dispatched => Status::Ready,
            SlotState::Running => Status::Running,
            SlotState::Succeeded => Status::Success,
            SlotState::Failed => Status::Failure,
            SlotState::Expired => Status::WaitTimeout,
            SlotState::Skipped | SlotState::Killed => Status::Killed,
        }
    }

    /// The state in which a slot is imported. A slot that was ready in Celos waits here: its trigger is evaluated
    /// again.
    #[must_use]
    pub fn state(self) -> SlotState {
        match self {
            Status::Waiting | Status::Ready => SlotState::Waiting,
            Status::Running => SlotState::Running,
            Status::Success => SlotState::Succeeded,
            Status::Failure => SlotState::Failed,
            Status::WaitTimeout => SlotState::Expired,
            Status::Killed => SlotState::Killed,
        }
    }

    /// Whether the slot stays in this status unless a person changes it.
    #[must_use]
    pub fn is_final(self) -> bool {
        self.state().is_final()
    }
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_states_go_both_ways() {
        for status in Status::ALL {
            assert_eq!(Status::parse(status.as_str()), Some(status));
            let back = Status::of(status.state());
            assert_eq!(back, if status == Status::Ready { Status::Waiting } else { status });
        }
        assert_eq!(Status::parse("success"), None);
    }
}
