//! Settings in text: every field of [`ConnConfig`] and [`EndpointConfig`] as `key=value`.
//!
//! [`CONN`] and [`HOST`] are the tables. Scenario files, command lines,
//! [`Stack`](https://docs.rs/ackline)'s builder and the options page are all built from them, so a
//! key means the same everywhere. A connection's policies and the egress scheduler are not
//! included: their names are looked up in a registry, which the core does not have.
//!
//! ```
//! use ackline_tcp_core::ConnConfig;
//! use ackline_tcp_core::config::options::{self, CONN};
//!
//! let mut config = ConnConfig::default();
//! options::set(CONN, &mut config, "initial_window", "4").unwrap();
//! assert_eq!(config.initial_window, 4);
//!
//! let error = options::set(CONN, &mut config, "dscp", "64").unwrap_err();
//! assert_eq!(error.to_string(), "dscp=64 is not possible: dscp must be a whole number from 0 to 63");
//! ```

mod conn;
mod host;
#[cfg(test)]
mod tests;

pub use crate::policy::spec::Key as ConfigKey;
pub use conn::CONN;
pub use host::HOST;

use super::ConnConfig;
#[cfg(doc)]
use super::EndpointConfig;
use crate::policy::SpecError;
use crate::policy::spec::{nearest, written};
use alloc::format;

/// The key of `table` that is called `name`.
#[must_use]
pub fn find<C: Clone>(table: &'static [ConfigKey<C>], name: &str) -> Option<&'static ConfigKey<C>> {
    table.iter().find(|key| key.is_called(name))
}

/// Sets `name` to `text` in `config`.
///
/// # Errors
/// What the value must be; the nearest key if there is none with this name.
pub fn set<C: Clone>(
    table: &'static [ConfigKey<C>],
    config: &mut C,
    name: &str,
    text: &str,
) -> Result<(), SpecError> {
    find(table, name).ok_or_else(|| unknown(name, table.iter().map(|key| key.name)))?.set(config, text)
}

/// The error for an unknown key; `known` are all keys.
pub fn unknown<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> SpecError {
    let mut message = format!("unknown option {name:?}");
    if let Some(near) = nearest(name, known) {
        message += &format!("; did you mean {near:?}?");
    }
    SpecError::new(message)
}

impl ConnConfig {
    /// Checks that settings agree with each other.
    ///
    /// # Errors
    /// Names the two that conflict.
    pub fn check(&self) -> Result<(), SpecError> {
        for (name, value) in [("min_rto", self.min_rto), ("initial_rto", self.initial_rto)] {
            if value > self.max_rto {
                return Err(SpecError::new(format!(
                    "{name}={} is longer than max_rto={}",
                    written(value),
                    written(self.max_rto)
                )));
            }
        }
        Ok(())
    }
}
