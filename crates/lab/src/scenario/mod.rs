//! Scenarios: texts in TOML that say what network there is, who talks over it, what is measured,
//! and what is varied.
//!
//! ```toml
//! duration = "30s"
//!
//! [[node]]
//! name = "a"
//! [[node]]
//! name = "b"
//!
//! [[link]]
//! name = "wire"
//! between = ["a", "b"]
//! rate = "10mbit"
//! delay = "20ms"
//! queue = { kind = "drop-tail", limit = "50p" }
//!
//! [[app]]
//! kind = "bulk"
//! from = "a"
//! to = "b"
//!
//! [sweep]
//! conn.cc = ["reno", "cubic"]
//! link.wire.delay = { from = "5ms", to = "80ms", steps = 5, scale = "log" }
//! ```
//!
//! A key that is not known is refused, with its line and what would be allowed. Quantities are
//! texts with their units: rates (`"10mbit"`), times (`"20ms"`), sizes (`"64k"`), buffers in bytes,
//! packets (`"50p"`) or time.
//!
//! # Keys
//!
//! [`keys`] is the table of all keys, with types, ranges and defaults. `ackline list scenario`
//! prints it, and `docs/scenario-format.md` in the repository has it with an example of each
//! section.

mod app;
pub(crate) mod examples;
pub mod keys;
mod link;
mod options;
pub mod paths;
pub(crate) mod quantity;
mod reader;
pub(crate) mod setup;
pub mod stis;
mod sweep;
#[cfg(test)]
mod tests;
mod tree;
mod world;

pub use app::AppKind;
pub(crate) use app::{End, Ends, Opening};
pub use quantity::Unit;
pub use world::{KernelSetting, KernelSettings, World};

use crate::error::{Location, ScenarioError};
use ackline_netsim::LinkSpec;
use ackline_registry::Registry;
use reader::Item;
use setup::Setup;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use sweep::Axis;
use tree::{Node, Source};

/// A scenario that was read and found to be right, at each of its points.
#[derive(Clone)]
pub struct Scenario {
    source: Source,
    root: Node,
    folder: PathBuf,
    registry: Registry,
    given: Vec<String>,
    /// Paths that were set, and are swept no more.
    fixed: Vec<String>,
    axes: Vec<Axis>,
    base: Arc<Setup>,
}

impl fmt::Debug for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scenario")
            .field("name", &self.source.name)
            .field("given", &self.given)
            .field("points", &self.points())
            .finish_non_exhaustive()
    }
}

/// One value of a sweep.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Param {
    /// The path that was set, or `case`.
    pub path: String,
    /// Its value, as it would be written.
    pub value: String,
}

impl Scenario {
    /// Reads a scenario. `name` stands in error messages; files that it names are found from the
    /// current folder on.
    ///
    /// # Errors
    /// What is wrong, and where.
    pub fn parse(text: &str, name: &str) -> Result<Self, ScenarioError> {
        Self::parse_with(text, name, Path::new(""), Registry::default())
    }

    /// The same, with files found from `folder` on, and policies from `registry`.
    ///
    /// # Errors
    /// What is wrong, and where.
    pub fn parse_with(
        text: &str,
        name: &str,
        folder: &Path,
        registry: Registry,
    ) -> Result<Self, ScenarioError> {
        let source = Source { name: name.into(), text: text.into() };
        let root = source.parse()?;
        Self::check(source, root, folder.to_owned(), registry, vec![], vec![])
    }

    fn check(
        source: Source,
        root: Node,
        folder: PathBuf,
        registry: Registry,
        given: Vec<String>,
        fixed: Vec<String>,
    ) -> Result<Self, ScenarioError> {
        let base = Setup::read(&Item::root(&source, &registry, &root), &registry, &folder)?;
        let mut axes = sweep::axes(&Item::root(&source, &registry, &root))?;
        axes.retain(|axis| !fixed.contains(&axis.path));
        let scenario = Self { source, root, folder, registry, given, fixed, axes, base: Arc::new(base) };
        for point in 0..scenario.points() {
            scenario.setup(point)?;
        }
        Ok(scenario)
    }

    /// The scenario with other values: each is `path=value`, such as `link.bottleneck.rate=20mbit`.
    /// In a list of tables the path names one by its `name`, by its place from 0, or all by `*`. A
    /// key that is set so is swept no more.
    ///
    /// # Errors
    /// What is wrong with a path or a value.
    pub fn with_set<S: AsRef<str>>(
        &self,
        values: impl IntoIterator<Item = S>,
    ) -> Result<Self, ScenarioError> {
        let mut root = self.root.clone();
        let mut given = self.given.clone();
        let mut fixed = self.fixed.clone();
        for text in values {
            let text = text.as_ref();
            let place = Location::Given(format!("--set {text}"));
            let error = |key: &str, message: String| ScenarioError {
                name: self.source.name.to_string(),
                place: place.clone(),
                key: key.to_owned(),
                message,
            };
            let Some((path, value)) = text.split_once('=') else {
                return Err(error("", "write path=value, such as link.bottleneck.rate=20mbit".to_owned()));
            };
            let (path, value) = (path.trim(), value.trim());
            let node = tree::given(value, &Arc::from(format!("--set {text}")));
            tree::set(&mut root, path, &node).map_err(|message| error(path, message))?;
            fixed.push(path.to_owned());
            given.push(format!("{path}={value}"));
        }
        Self::check(self.source.clone(), root, self.folder.clone(), self.registry.clone(), given, fixed)
    }

    /// The name: its file.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.source.name
    }

    /// The text as it was read.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.source.text
    }

    /// Values that were set beside the text, in order.
    #[must_use]
    pub fn given(&self) -> &[String] {
        &self.given
    }

    /// The title; the name if there is none.
    #[must_use]
    pub fn title(&self) -> &str {
        if self.base.title.is_empty() { &self.source.name } else { &self.base.title }
    }

    /// What it says about itself.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.base.description
    }

    /// Points of the sweep; one if nothing is swept.
    #[must_use]
    pub fn points(&self) -> usize {
        self.axes.iter().map(|axis| axis.values.len()).product()
    }

    /// Runs of each point, with different seeds.
    #[must_use]
    pub fn repetitions(&self) -> u32 {
        self.base.repeat
    }

    /// Runs altogether.
    #[must_use]
    pub fn runs(&self) -> usize {
        self.points() * self.base.repeat as usize
    }

    /// The seed of a repetition, the same at every point, so that points differ by their values and
    /// by nothing else.
    #[must_use]
    pub fn seed(&self, repetition: u32) -> u64 {
        self.base.seed.wrapping_add(u64::from(repetition))
    }

    /// What is varied: paths, in order.
    pub fn swept(&self) -> impl Iterator<Item = &str> + Clone {
        self.axes.iter().map(|axis| axis.path.as_str())
    }

    /// The links without the sweep's values: the name of each, and what its direction is made of.
    #[must_use]
    pub fn links(&self) -> Vec<(String, LinkSpec)> {
        self.base.links.iter().map(|link| (link.name.clone(), link.path.build())).collect()
    }

    /// The values of a point.
    #[must_use]
    pub fn params(&self, point: usize) -> Vec<Param> {
        let choices = sweep::choices(&self.axes, point);
        let params = self.axes.iter().zip(choices);
        params.map(|(axis, choice)| Param { path: axis.path.clone(), value: choice.label.clone() }).collect()
    }

    /// The text, preceded by what was set beside it.
    #[must_use]
    pub fn to_toml(&self) -> String {
        let given: String = self.given.iter().map(|given| format!("# --set {given}\n")).collect();
        given + self.text()
    }

    /// True if it asks for time series.
    pub(crate) fn wants_series(&self) -> bool {
        self.base.measure.series
    }

    /// What a simulation of a point is built from.
    pub(crate) fn setup(&self, point: usize) -> Result<Setup, ScenarioError> {
        if self.axes.is_empty() {
            return Ok((*self.base).clone());
        }
        let mut root = self.root.clone();
        for (axis, choice) in self.axes.iter().zip(sweep::choices(&self.axes, point)) {
            for (path, node) in &choice.sets {
                tree::set(&mut root, path, node).map_err(|message| {
                    self.source.error(&node.origin, &format!("{} -> {path}", axis.path), message)
                })?;
            }
        }
        let mut setup =
            Setup::read(&Item::root(&self.source, &self.registry, &root), &self.registry, &self.folder);
        if let Err(error) = &mut setup {
            let params: Vec<String> =
                self.params(point).iter().map(|param| format!("{}={}", param.path, param.value)).collect();
            error.message += &format!(" [at {}]", params.join(", "));
        }
        setup
    }

    /// Everything on which the results of a run depend, as a text: what is hashed to recognise it.
    #[must_use]
    pub fn identity(&self, point: usize, repetition: u32) -> String {
        let params: Vec<String> =
            self.params(point).iter().map(|param| format!("{}={}", param.path, param.value)).collect();
        format!(
            "{}\n{}\n{}\n{}\n{}",
            env!("CARGO_PKG_VERSION"),
            self.source.text,
            self.given.join("\n"),
            params.join("\n"),
            self.seed(repetition)
        )
    }
}
