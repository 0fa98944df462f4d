//! Workers, and what they offer to do.

use std::sync::Arc;

use crate::{Core, Offer};

impl Core {
    pub(crate) fn offered(&mut self, _worker: Arc<str>, _offer: Option<Offer>) {}
}
