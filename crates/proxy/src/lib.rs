#![doc = include_str!("../README.md")]
//!
//! | file | holds |
//! |---|---|
//! | `proxy` | what comes to a stack, and which way it takes |
//! | `connection`, `relay` | one connection: held until its destination answers, then copied both ways |
//! | `publish/` | ports of this machine that lead to a guest |
//! | `flow`, `mapping` | one UDP flow; the port that all flows of a client's socket have outside |
//! | `dns/` | questions of clients, and the resolvers that answer them |
//! | `upstream/` | sockets of the kernel, SOCKS5, HTTP CONNECT |
//! | `rules/`, `file` | rules, decisions, names that clients state; the file with the rules |
//! | `throttle/` | turns at the rates of rules |
//! | `first_flight` | waiting for a client to state the server's name |
//! | `machine` | this machine's own addresses and routes |
//! | `names` | names of addresses, from the resolver's answers |
//! | `clients`, `counters`, `notices` | limits, numbers, lines |
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

mod backlog;
mod clients;
mod connection;
mod counters;
mod dns;
mod ends;
mod file;
mod filtering;
mod first_flight;
mod flow;
mod mapping;
mod names;
mod notices;
mod outside;
mod proxy;
mod publish;
mod relay;
mod resolution;
mod rules;
mod shared;
mod target;
mod throttle;
mod upstream;

pub use clients::{FileLimits, Limits};
pub use counters::{Counter, Kind, Stats};
pub use dns::{Hosts, Resolver, Resolvers};
pub use file::{ConfigFile, FileError};
pub use filtering::Filtering;
pub use names::NameUse;
pub use notices::Say;
pub use outside::Exit;
pub use outside::machine::Interface;
pub use proxy::{Meter, Proxy};
pub use publish::{ProxyHeader, Publish, PublishError, PublishSyntax, Published, Publisher};
pub use rules::decision::{Decision, Log, Reason};
pub use rules::rate::RateLimit;
pub use rules::{Action, Rule, Rules};
pub use shared::Config;
pub use target::{Protocol, Target};
pub use upstream::{Server, Upstream, UrlError, without_credentials};
