//! The settings of connections and hosts in one text: `cc=cubic:beta=0.8,sack=off,mtu=1400`.

use crate::Registry;
use ackline_tcp_core::config::options::{self, CONN, ConfigKey, HOST};
use ackline_tcp_core::config::{ConnConfig, Ecn, EndpointConfig};
use ackline_tcp_core::policy::spec::{ParamRow, PolicyKind, SpecError};
use ackline_tcp_core::policy::{NewAckPolicy, NewCongestionControl, NewEgressScheduler, NewRtoResponse};
use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

/// What an option applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// A connection: its three policies, and [`ConnConfig`].
    Conn,
    /// A host: its egress scheduler, and [`EndpointConfig`].
    Host,
}

/// One option, for listings.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OptionInfo {
    /// What it applies to.
    pub scope: Scope,
    /// The key.
    pub name: &'static str,
    /// Aliases of the key.
    pub aliases: &'static [&'static str],
    /// The accepted values.
    pub range: String,
    /// The default value; empty if the device determines it.
    pub default: String,
    /// A description in one line.
    pub summary: &'static str,
    /// Its source: RFC and section, or the socket option or sysctl of Linux.
    pub source: &'static str,
}

/// Parsed options, each valid by itself.
#[derive(Clone, Default)]
pub struct Options {
    /// Full keys, and values as written.
    pairs: Vec<(&'static str, String)>,
    cc: Option<(Arc<NewCongestionControl>, Ecn)>,
    ack: Option<Arc<NewAckPolicy>>,
    rto: Option<Arc<NewRtoResponse>>,
    sched: Option<Arc<NewEgressScheduler>>,
    /// The ECN mode of the registry's default congestion control: a base with this mode did not set
    /// another one explicitly.
    default_ecn: Ecn,
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.pairs.iter().map(|(key, value)| (key, value))).finish()
    }
}

impl Options {
    /// True if there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// The value of `key` as written.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.iter().find(|(known, _)| *known == key).map(|(_, value)| value)
    }

    /// Full keys and values, in the order given.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.pairs.iter().map(|(key, value)| (*key, value.as_str()))
    }

    /// These options and `others`.
    ///
    /// # Errors
    /// If both have the same key.
    pub fn and(mut self, others: Self) -> Result<Self, SpecError> {
        if let Some((key, _)) = others.iter().find(|(key, _)| self.get(key).is_some()) {
            return Err(SpecError::new(format!("option {key:?} is given twice")));
        }
        if !others.is_empty() {
            self.default_ecn = others.default_ecn;
        }
        self.pairs.extend(others.pairs);
        self.cc = self.cc.or(others.cc);
        self.ack = self.ack.or(others.ack);
        self.rto = self.rto.or(others.rto);
        self.sched = self.sched.or(others.sched);
        Ok(self)
    }

    /// These options, plus those of `base` for other keys.
    #[must_use]
    pub fn over(mut self, base: &Self) -> Self {
        if self.is_empty() {
            return base.clone();
        }
        let inherited: Vec<_> =
            base.pairs.iter().filter(|(key, _)| self.get(key).is_none()).cloned().collect();
        self.pairs.splice(0..0, inherited);
        self.cc = self.cc.or_else(|| base.cc.clone());
        self.ack = self.ack.or_else(|| base.ack.clone());
        self.rto = self.rto.or_else(|| base.rto.clone());
        self.sched = self.sched.or_else(|| base.sched.clone());
        self
    }

    /// Applies the connection options to `base`. A congestion control designed for ECN requests it,
    /// unless `ecn` is given, or `base` has a different mode from the registry's default control.
    ///
    /// # Errors
    /// If settings contradict each other, such as `min_rto` and `max_rto`.
    pub fn conn(&self, base: &ConnConfig) -> Result<ConnConfig, SpecError> {
        let mut config = base.clone();
        if let Some((cc, ecn)) = &self.cc {
            config.policies.cc = cc.clone();
            if config.ecn == self.default_ecn {
                config.ecn = *ecn;
            }
        }
        if let Some(ack) = &self.ack {
            config.policies.ack = ack.clone();
        }
        if let Some(rto) = &self.rto {
            config.policies.rto = rto.clone();
        }
        self.apply(CONN, &mut config)?;
        config.check()?;
        Ok(config)
    }

    /// Applies the host options to `base`.
    ///
    /// # Errors
    /// None at present: no two settings of a host can conflict.
    pub fn host(&self, base: &EndpointConfig) -> Result<EndpointConfig, SpecError> {
        let mut config = base.clone();
        self.apply(HOST, &mut config)?;
        Ok(config)
    }

    /// The egress scheduler, if one is given.
    #[must_use]
    pub const fn sched(&self) -> Option<&Arc<NewEgressScheduler>> {
        self.sched.as_ref()
    }

    fn apply<C: Clone>(&self, table: &'static [ConfigKey<C>], config: &mut C) -> Result<(), SpecError> {
        for (key, value) in self.iter() {
            if let Some(key) = options::find(table, key) {
                key.set(config, value)?;
            }
        }
        Ok(())
    }
}

/// The keys with policies as values.
const POLICIES: [(PolicyKind, Scope, &str); 4] = [
    (PolicyKind::Cc, Scope::Conn, "congestion control: how much to send"),
    (PolicyKind::Ack, Scope::Conn, "ACK policy: when to acknowledge"),
    (PolicyKind::Rto, Scope::Conn, "response to a retransmission timeout"),
    (PolicyKind::Sched, Scope::Host, "egress scheduler: what leaves the host next"),
];

impl Registry {
    /// Parses options: `key=value` pairs separated by commas. The keys are those of
    /// [`option_infos`](Self::option_infos).
    ///
    /// A policy may have parameters: `cc=cubic:beta=0.8,hystart=off,sack=off` is two options. After
    /// a policy with a colon, anything that is not an option is one of its parameters. If the text
    /// contains a semicolon, only semicolons separate options.
    ///
    /// # Errors
    /// What is wrong with a key or value, and what would be right: the nearest key, or the range.
    pub fn options(&self, text: &str) -> Result<Options, SpecError> {
        let mut options = Options::default();
        for (key, value) in self.pairs(text)? {
            options = options.and(self.option(key, &value)?)?;
        }
        Ok(options)
    }

    /// Parses one option.
    ///
    /// # Errors
    /// As [`options`](Self::options).
    pub fn option(&self, key: &str, value: &str) -> Result<Options, SpecError> {
        self.check()?;
        let mut options = Options { default_ecn: self.ecn(self.cc_table().default())?, ..Options::default() };
        let name = if let Some((kind, ..)) = POLICIES.iter().find(|(kind, ..)| kind.keyword() == key) {
            match kind {
                PolicyKind::Cc => options.cc = Some((self.cc(value)?, self.ecn(value)?)),
                PolicyKind::Ack => options.ack = Some(self.ack(value)?),
                PolicyKind::Rto => options.rto = Some(self.rto(value)?),
                PolicyKind::Sched => options.sched = Some(self.sched(value)?),
            }
            kind.keyword()
        } else if let Some(known) = options::find(CONN, key) {
            known.set(&mut ConnConfig::default(), value)?;
            known.name
        } else if let Some(known) = options::find(HOST, key) {
            known.set(&mut EndpointConfig::default(), value)?;
            known.name
        } else {
            return Err(unknown(key));
        };
        options.pairs = vec![(name, value.to_owned())];
        Ok(options)
    }

    /// The options of `scope`, with their defaults.
    #[must_use]
    pub fn option_infos(&self, scope: Scope) -> Vec<OptionInfo> {
        let policies =
            POLICIES.iter().filter(|(_, of, _)| *of == scope).map(|(kind, _, summary)| OptionInfo {
                scope,
                name: kind.keyword(),
                aliases: &[],
                range: format!("NAME[:KEY=VALUE,...], see: ackline list {}", kind.keyword()),
                default: self.default_of(*kind).to_owned(),
                summary,
                source: "",
            });
        let mut infos: Vec<OptionInfo> = policies.collect();
        match scope {
            Scope::Conn => infos.extend(described(scope, CONN, &ConnConfig::default())),
            Scope::Host => infos.extend(described(scope, HOST, &EndpointConfig::default())),
        }
        infos
    }

    /// Splits a text into keys and values.
    fn pairs<'a>(&self, text: &'a str) -> Result<Vec<(&'a str, String)>, SpecError> {
        let split = |pair: &'a str| match pair.split_once('=').map(|(key, value)| (key.trim(), value.trim()))
        {
            Some((key, value)) if !key.is_empty() && !value.is_empty() => Ok((key, value)),
            _ => Err(SpecError::new(format!("option {pair:?} is not of the form key=value"))),
        };
        let parts = |separator| text.split(separator).map(str::trim).filter(|part| !part.is_empty());
        let mut pairs: Vec<(&str, String)> = vec![];
        if text.contains(';') {
            for part in parts(';') {
                let (key, value) = split(part)?;
                pairs.push((key, value.to_owned()));
            }
            return Ok(pairs);
        }
        for part in parts(',') {
            let (key, value) = split(part)?;
            match pairs.last_mut() {
                Some((policy, spec)) if spec.contains(':') => {
                    let is_parameter = self.takes(policy, spec, key);
                    if is_parameter && is_option(key) {
                        return Err(SpecError::new(format!(
                            "{key}= is an option, and a parameter of {policy}={spec}; separate options by semicolons"
                        )));
                    }
                    if is_parameter || !is_option(key) {
                        spec.push(',');
                        spec.push_str(part);
                        continue;
                    }
                }
                _ => {}
            }
            pairs.push((key, value.to_owned()));
        }
        Ok(pairs)
    }

    /// Whether the policy `spec` of the option `kind` has the parameter `key`.
    fn takes(&self, kind: &str, spec: &str, key: &str) -> bool {
        let name = spec.split(':').next().unwrap_or_default();
        let Some((kind, ..)) = POLICIES.iter().find(|(known, ..)| known.keyword() == kind) else {
            return false;
        };
        let has = |params: &[ParamRow]| params.iter().any(|param| param.name == key);
        self.list(*kind).iter().any(|policy| policy.is_called(name) && has(&policy.params))
    }
}

fn is_option(key: &str) -> bool {
    keys().any(|known| known == key)
}

/// Every key and alias.
fn keys() -> impl Iterator<Item = &'static str> {
    fn names<C>(key: &'static ConfigKey<C>) -> impl Iterator<Item = &'static str> {
        core::iter::once(key.name).chain(key.aliases.iter().copied())
    }
    let policies = POLICIES.iter().map(|(kind, ..)| kind.keyword());
    policies.chain(CONN.iter().flat_map(names)).chain(HOST.iter().flat_map(names))
}

fn unknown(key: &str) -> SpecError {
    SpecError::new(format!("{} (ackline list conn, ackline list host)", options::unknown(key, keys())))
}

fn described<C: Clone>(
    scope: Scope,
    table: &'static [ConfigKey<C>],
    default: &C,
) -> impl Iterator<Item = OptionInfo> {
    table.iter().map(move |key| OptionInfo {
        scope,
        name: key.name,
        aliases: key.aliases,
        range: key.range(),
        default: key.get(default),
        summary: key.summary,
        source: key.source,
    })
}
