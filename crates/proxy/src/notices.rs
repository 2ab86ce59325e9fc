//! Lines for who runs the proxy: each trouble once, and again if it lasts.

use ackline_runtime::timer;
use ackline_tcp_core::{Duration, Instant};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// A trouble that lasts is told again after so long.
const AGAIN: Duration = Duration::from_secs(60);

/// Receiver of the notices.
pub type Say = Arc<dyn Fn(&str) + Send + Sync>;

/// Notices that have been printed.
pub(crate) struct Notices {
    say: Option<Say>,
    told: Mutex<HashMap<String, Instant>>,
}

impl Notices {
    pub(crate) fn new(say: Option<Say>) -> Self {
        Self { say, told: Mutex::default() }
    }

    /// `subject`, of which there are few, is in trouble.
    pub(crate) fn trouble(&self, subject: &str, what: impl fmt::Display) {
        let Some(say) = &self.say else { return };
        let now = timer::now();
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.get(subject).is_none_or(|last| now.since(*last) >= AGAIN) {
            told.insert(subject.to_owned(), now);
            drop(told);
            say(&format!("{subject}: {what}"));
        }
    }
}

impl fmt::Debug for Notices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notices").field("told", &self.told).finish_non_exhaustive()
    }
}
