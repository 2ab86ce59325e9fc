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
mod value;

pub use conn::CONN;
pub use host::HOST;

use super::ConnConfig;
#[cfg(doc)]
use super::EndpointConfig;
use crate::policy::SpecError;
use crate::policy::spec::{Param, nearest};
use alloc::format;
use alloc::string::String;
use core::fmt;
use value::Value;

/// One setting of `C`, as text.
pub struct ConfigKey<C> {
    /// The key: the field's name.
    pub name: &'static str,
    /// Aliases of the key.
    pub aliases: &'static [&'static str],
    /// What the setting does, in one line.
    pub summary: &'static str,
    /// Its source: RFC and section, or the socket option or sysctl that Linux users know. May be
    /// empty.
    pub source: &'static str,
    value: Value<C>,
}

impl<C> fmt::Debug for ConfigKey<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConfigKey").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<C: Clone> ConfigKey<C> {
    /// Whether `name` is the key or one of its aliases.
    #[must_use]
    pub fn is_called(&self, name: &str) -> bool {
        self.name == name || self.aliases.contains(&name)
    }

    /// The accepted values: `on|off`, `0..63`, `1ns..500ms`.
    #[must_use]
    pub fn range(&self) -> String {
        self.value.range()
    }

    /// The value in `config`, as text.
    #[must_use]
    pub fn get(&self, config: &C) -> String {
        self.value.get(config)
    }

    /// Sets the value in `config`; leaves it unchanged on an error.
    ///
    /// # Errors
    /// What `text` must be.
    pub fn set(&self, config: &mut C, text: &str) -> Result<(), SpecError> {
        self.value.set(config, Param::new(self.name, text))
    }
}

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
                    value::written(value),
                    value::written(self.max_rto)
                )));
            }
        }
        Ok(())
    }
}
