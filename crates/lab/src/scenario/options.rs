//! Options in tables: the settings of connections (`conn`, `accept`) and of hosts (`host`, and each `node`).

use super::reader::{Item, Table};
use crate::error::ScenarioError;
use ackline_registry::{Options, Registry, Scope};
use ackline_tcp_core::ConnConfig;
use std::sync::Arc;

type Result<T> = std::result::Result<T, ScenarioError>;

/// The keys of `scope`, short ones included.
pub(crate) fn keys(registry: &Registry, scope: Scope) -> Vec<&'static str> {
    let infos = registry.option_infos(scope).into_iter();
    infos.flat_map(|info| std::iter::once(info.name).chain(info.aliases.iter().copied())).collect()
}

/// The options among the entries of `table`: those whose key is in `keys`.
pub(crate) fn options(table: &Table<'_>, registry: &Registry, keys: &[&str]) -> Result<Options> {
    let mut options = Options::default();
    for (key, item) in table.iter().filter(|(key, _)| keys.contains(key)) {
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
    pub(crate) config: Arc<ConnConfig>,
}

impl ConnSettings {
    /// The defaults of `registry`.
    pub(crate) fn of(registry: &Registry) -> Self {
        Self { options: Options::default(), config: Arc::new(registry.conn_config()) }
    }

    /// These, with what a table says over them.
    pub(crate) fn with(&self, item: &Item<'_>, registry: &Registry) -> Result<Self> {
        let table = item.table()?;
        let keys = keys(registry, Scope::Conn);
        table.only(&keys)?;
        let options = options(&table, registry, &keys)?.over(&self.options);
        let config = options.conn(&registry.conn_config()).map_err(|error| table.error(error.to_string()))?;
        Ok(Self { options, config: Arc::new(config) })
    }
}
