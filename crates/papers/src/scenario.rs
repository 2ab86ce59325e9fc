//! The scenarios of the studies: files of `scenarios/`, compiled in.

use super::error::ReproduceError;
use ackline_lab::Scenario;
use std::sync::Arc;

/// A scenario with its name, made by `scenario!`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScenarioText {
    name: &'static str,
    text: &'static str,
}

impl ScenarioText {
    /// The file `scenarios/NAME.toml` with its content; `scenario!` calls it.
    #[must_use]
    pub const fn new(name: &'static str, text: &'static str) -> Self {
        Self { name, text }
    }

    /// Its folder and name, without ending: `a3/buffers`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The file's content.
    #[must_use]
    pub const fn text(&self) -> &'static str {
        self.text
    }

    /// The scenario as it stands in the file.
    ///
    /// # Errors
    /// If it is not a scenario; says where.
    pub fn parse(&self) -> Result<Arc<Scenario>, ReproduceError> {
        Ok(Arc::new(Scenario::parse(self.text, &format!("scenarios/{}.toml", self.name))?))
    }

    /// The scenario with settings such as `conn.rto=eifel`, as `ackline sim --set` takes them.
    ///
    /// # Errors
    /// If the scenario or a setting cannot be read.
    pub fn with_set<S: AsRef<str>>(
        &self,
        set: impl IntoIterator<Item = S>,
    ) -> Result<Arc<Scenario>, ReproduceError> {
        Ok(Arc::new(self.parse()?.with_set(set)?))
    }
}

/// A file of `scenarios/`, by its folder and name: `scenario!("a3/buffers")`.
macro_rules! scenario {
    ($name:literal) => {
        $crate::scenario::ScenarioText::new(
            $name,
            include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/scenarios/", $name, ".toml")),
        )
    };
}

pub(crate) use scenario;
