//! The policies of one kind.

use ackline_tcp_core::policy::spec::{Entry, ParamRow, PolicyKind, PolicySpec, SpecError, find, resolve};
use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

/// The policies of one kind, and the default.
pub struct Table<T: ?Sized> {
    kind: PolicyKind,
    entries: Vec<Entry<T>>,
    default: String,
    default_maker: Arc<T>,
}

impl<T: ?Sized> Clone for Table<T> {
    fn clone(&self) -> Self {
        Self {
            kind: self.kind,
            entries: self.entries.clone(),
            default: self.default.clone(),
            default_maker: self.default_maker.clone(),
        }
    }
}

impl<T: ?Sized> fmt::Debug for Table<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table")
            .field("entries", &self.entries)
            .field("default", &self.default)
            .finish_non_exhaustive()
    }
}

/// A policy, for listings.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PolicyInfo {
    /// Its kind.
    pub kind: PolicyKind,
    /// Its name.
    pub name: &'static str,
    /// Aliases of the name.
    pub aliases: &'static [&'static str],
    /// Whether it is the default of its kind.
    pub is_default: bool,
    /// A description in one line.
    pub summary: &'static str,
    /// Its source: RFC or paper.
    pub source: &'static str,
    /// Its parameters.
    pub params: Vec<ParamRow>,
}

impl PolicyInfo {
    /// Whether `name` is the policy's name or one of its aliases.
    #[must_use]
    pub fn is_called(&self, name: &str) -> bool {
        self.name == name || self.aliases.contains(&name)
    }
}

impl<T: ?Sized> Table<T> {
    /// `maker` must be what `default` names; a test checks that.
    pub(crate) fn new(kind: PolicyKind, entries: &[Entry<T>], default: &str, maker: Arc<T>) -> Self {
        Self { kind, entries: entries.to_vec(), default: default.to_owned(), default_maker: maker }
    }

    /// The policies, in listing order.
    #[must_use]
    pub fn entries(&self) -> &[Entry<T>] {
        &self.entries
    }

    /// The default, as text.
    #[must_use]
    pub fn default(&self) -> &str {
        &self.default
    }

    pub(crate) const fn default_maker(&self) -> &Arc<T> {
        &self.default_maker
    }

    pub(crate) fn resolve(&self, spec: &str) -> Result<Arc<T>, SpecError> {
        resolve(&self.entries, self.kind, spec)
    }

    /// The policy that `spec` names.
    ///
    /// # Errors
    /// If there is none of this name, or the text is no name with parameters.
    pub fn entry(&self, spec: &str) -> Result<&Entry<T>, SpecError> {
        find(&self.entries, self.kind, &spec.parse()?)
    }

    pub(crate) fn set_default(&mut self, spec: &str) -> Result<(), SpecError> {
        self.default_maker = self
            .resolve(spec)
            .map_err(|error| SpecError::new(format!("{spec:?} cannot be the default: {error}")))?;
        self.default = spec.to_owned();
        Ok(())
    }

    /// Adds `entry`, after checking it for anything that would fail later.
    pub(crate) fn add(&mut self, entry: Entry<T>) -> Result<(), SpecError> {
        let kind = self.kind;
        let refuse =
            |why: String| SpecError::new(format!("the {kind} {:?} was not added: {why}", entry.name));
        for (at, name) in [&[entry.name], entry.aliases].concat().into_iter().enumerate() {
            if !is_name(name) {
                return Err(refuse(format!(
                    "{name:?} is not a name; use lower-case letters, digits, - and _"
                )));
            }
            if let Some(other) = self.entries.iter().find(|other| other.is_called(name)) {
                let about =
                    if other.summary.is_empty() { String::new() } else { format!(" ({})", other.summary) };
                return Err(refuse(format!("the name {name:?} is taken by {:?}{about}", other.name)));
            }
            if [&[entry.name], entry.aliases].concat()[..at].contains(&name) {
                return Err(refuse(format!("it has the name {name:?} twice")));
            }
        }
        let params = entry.rows();
        for (at, param) in params.iter().enumerate() {
            if !is_name(param.name) {
                return Err(refuse(format!("the parameter {:?} has no proper name", param.name)));
            }
            if params[..at].iter().any(|other| other.name == param.name) {
                return Err(refuse(format!("it has the parameter {:?} twice", param.name)));
            }
            let spec: PolicySpec = format!("{}:{}={}", entry.name, param.name, param.default)
                .parse()
                .map_err(|error| refuse(format!("the default of {:?} is malformed: {error}", param.name)))?;
            (entry.make)(&spec.params).map_err(|error| {
                refuse(format!(
                    "it refuses its own default {}={} (range {}): {error}",
                    param.name, param.default, param.range
                ))
            })?;
        }
        (entry.make)(&PolicySpec::named(entry.name).params)
            .map_err(|error| refuse(format!("it cannot be made without parameters: {error}")))?;
        self.entries.push(entry);
        Ok(())
    }

    pub(crate) fn list(&self) -> Vec<PolicyInfo> {
        let default: Option<PolicySpec> = self.default.parse().ok();
        let is_default = |entry: &Entry<T>| default.as_ref().is_some_and(|spec| entry.is_called(&spec.name));
        self.entries
            .iter()
            .map(|entry| PolicyInfo {
                kind: self.kind,
                name: entry.name,
                aliases: entry.aliases,
                is_default: is_default(entry),
                summary: entry.summary,
                source: entry.source,
                params: entry.rows(),
            })
            .collect()
    }
}

/// True for a word that can be used in `name:key=value,...`.
fn is_name(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_');
    !name.is_empty() && name.chars().all(fits)
}
