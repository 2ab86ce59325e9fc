//! Options in tables: the settings of connections (`conn`, `accept`) and of hosts (`host`, and each
//! `node`).

use super::reader::{Item, Table};
use crate::error::ScenarioError;
use ackline_registry::{Options, Registry};
use ackline_tcp_core::ConnConfig;
use std::sync::Arc;

type Result<T> = std::result::Result<T, ScenarioError>;

/// The options among the entries of `table`.
pub(crate) fn options(table: &Table<'_>) -> Result<Options> {
    let registry = table.registry();
    let mut options = Options::default();
    for (key, item) in table.options() {
        let value = item.spelled()?;
        let option = registry.option(key, &value).map_err(|error| match error.expectation() {
            // The place names the key already.
            Some((wrong, expected)) if wrong == key => item.expected(expected),
            _ => item.error(error.to_string()),
        })?;
        options = options.and(option).map_err(|error| item.error(error.to_string()))?;
    }
    Ok(options)
}

/// Settings of connections: what tables say, one over the other, and what comes of it.
#[derive(Clone, Debug)]
pub(crate) struct ConnSettings {
    options: Options,
    /// Where the congestion control is named: file, line, column and key.
    pub(crate) cc_place: Option<String>,
    pub(crate) config: Arc<ConnConfig>,
}

impl ConnSettings {
    /// The defaults of `registry`.
    pub(crate) fn of(registry: &Registry) -> Self {
        Self { options: Options::default(), cc_place: None, config: Arc::new(registry.conn_config()) }
    }

    /// These, with what a table says over them.
    pub(crate) fn with(&self, item: &Item<'_>) -> Result<Self> {
        let table = item.table()?;
        let options = options(&table)?.over(&self.options);
        let config =
            options.conn(&table.registry().conn_config()).map_err(|error| table.error(error.to_string()))?;
        let named = table.options().find(|(key, _)| *key == "cc").map(|(_, item)| item.place());
        Ok(Self { options, cc_place: named.or_else(|| self.cc_place.clone()), config: Arc::new(config) })
    }
}
