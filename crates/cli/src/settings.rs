//! From the options of a command line to the settings of connections and of their host.

use crate::args::{EgressArgs, PolicyArgs};
use crate::failure::Failure;
use ackline::Registry;
use ackline::core::policy::NewEgressScheduler;
use ackline::core::policy::spec::{PolicyKind, PolicySpec, SpecError};
use ackline::core::quantity::parse_rate;
use ackline::core::{ConnConfig, EndpointConfig, Rate};
use ackline::registry::Options;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What a stack is built with.
#[derive(Clone)]
pub(crate) struct Settings {
    registry: Registry,
    options: Options,
    pub(crate) scheduler: Arc<NewEgressScheduler>,
    /// The shaper's rate.
    rate: Option<Rate>,
    pub(crate) names: PolicyNames,
}

/// The policies as the command line names them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct PolicyNames {
    pub(crate) cc: String,
    pub(crate) ack: String,
    pub(crate) rto: String,
    pub(crate) sched: String,
}

/// Settings of a host that options of the device decide: the option to use instead.
const DEVICES: [(&str, &str); 5] = [
    ("addresses", "--local gives the stack its address"),
    ("any_address", "--local gives the stack its address"),
    ("mtu", "the device has an MTU: --mtu"),
    ("max_super_packet", "the device segments or not: --plain"),
    ("tx_checksum", "the device fills in checksums or not: --plain"),
];

impl Settings {
    /// The settings of connections: the registry's defaults, changed by `tune` and then by the
    /// command line.
    ///
    /// # Errors
    /// If what the command line says contradicts what `tune` does.
    pub(crate) fn connections(&self, tune: impl FnOnce(&mut ConnConfig)) -> Result<ConnConfig, Failure> {
        let mut base = self.registry.conn_config();
        tune(&mut base);
        self.options.conn(&base).map_err(|error| option_failure(&error))
    }

    /// Changes the settings of the host.
    pub(crate) fn host(&self, endpoint: &mut EndpointConfig) -> Result<(), Failure> {
        *endpoint = self.options.host(endpoint).map_err(|error| option_failure(&error))?;
        Ok(())
    }

    /// The same without a shaper and with the default scheduler.
    pub(crate) fn with_usual_egress(&self) -> Self {
        Self { scheduler: self.registry.scheduler(), rate: None, ..self.clone() }
    }

    /// Whether the command line sets `key`.
    pub(crate) fn sets(&self, key: &str) -> bool {
        self.options.get(key).is_some()
    }

    /// The policies that can be named.
    pub(crate) const fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Lets a connection take no more than leaves in about a second behind the shaper, but at least
    /// 64 KiB: whoever sends for some time does not wait minutes for the buffer to drain.
    pub(crate) fn shorten_send_buffer(&self, connections: &mut ConnConfig) {
        let Some(rate) = self.rate else { return };
        let second = u32::try_from(rate.bytes_per_second()).unwrap_or(u32::MAX);
        connections.send_buffer = connections.send_buffer.min(second.max(64 << 10));
    }
}

fn option_failure(error: &SpecError) -> Failure {
    Failure::usage(format!("-o: {error}"))
}

impl PolicyArgs {
    /// Reads all of them.
    pub(crate) fn resolve(&self, registry: &Registry) -> Result<Settings, Failure> {
        let mut options = Options::default();
        for text in &self.options {
            let more = registry.options(text).map_err(|error| option_failure(&error))?;
            options = options.and(more).map_err(|error| option_failure(&error))?;
        }
        if let Some((key, instead)) = DEVICES.iter().find(|(key, _)| options.get(key).is_some()) {
            return Err(Failure::usage(format!("-o {key}: not here; {instead}")));
        }
        let named = [
            ("cc", &self.cc),
            ("ack", &self.ack),
            ("rto", &self.rto),
            ("sched", &self.sched),
            ("ecn", &self.ecn),
        ];
        for (name, value) in named {
            let Some(value) = value else { continue };
            if options.get(name).is_some() {
                return Err(Failure::usage(format!("--{name} and -o {name}= say the same; leave one out")));
            }
            let usage = |error: SpecError| Failure::usage(format!("--{name}: {error}"));
            options = options.and(registry.option(name, value).map_err(usage)?).map_err(usage)?;
        }
        let name = |kind: PolicyKind| {
            options.get(kind.keyword()).unwrap_or_else(|| registry.default_of(kind)).to_owned()
        };
        let sched = self.egress.shaped(&name(PolicyKind::Sched))?;
        let shaper = |error: SpecError| Failure::usage(format!("--sched: {error}"));
        let spec: PolicySpec = sched.parse().map_err(shaper)?;
        let settings = Settings {
            scheduler: registry.sched(&sched).map_err(shaper)?,
            rate: spec.params.get("rate").and_then(|rate| parse_rate(rate.text())),
            names: PolicyNames {
                cc: name(PolicyKind::Cc),
                ack: name(PolicyKind::Ack),
                rto: name(PolicyKind::Rto),
                sched,
            },
            registry: registry.clone(),
            options,
        };
        // Settings that contradict each other are found before anything is opened.
        settings.connections(|_| {})?;
        Ok(settings)
    }
}

impl EgressArgs {
    /// The scheduler that `sched` names, with the shaper that the options beside it describe.
    fn shaped(&self, sched: &str) -> Result<String, Failure> {
        let Self { egress_rate, egress_burst, egress_late, egress_overhead } = self;
        let overhead = egress_overhead.map(|bytes| bytes.to_string());
        let options = [
            ("rate", egress_rate.as_ref()),
            ("burst", egress_burst.as_ref()),
            ("late", egress_late.as_ref()),
            ("overhead", overhead.as_ref()),
        ];
        let parsed = |text: &str| -> Result<PolicySpec, Failure> {
            text.parse().map_err(|error| Failure::usage(format!("--sched: {error}")))
        };
        let mut spec = parsed(sched)?;
        let mut text = sched.trim_end_matches([',', ':']).to_owned();
        for (name, value) in options {
            let Some(value) = value else { continue };
            if spec.params.get(name).is_some() {
                return Err(Failure::usage(format!(
                    "--sched has {name}= already; leave that or --egress-{name} out"
                )));
            }
            text += &format!("{}{name}={value}", if text.contains(':') { ',' } else { ':' });
        }
        spec = parsed(&text)?;
        if spec.params.get("rate").is_none_or(|rate| rate.text() == "off")
            && let Some((name, _)) = options[1..].iter().find(|(_, value)| value.is_some())
        {
            return Err(Failure::usage(format!(
                "--egress-{name} shapes nothing without a rate; add --egress-rate, such as 100kbit"
            )));
        }
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command};
    use ackline::core::config::options::CONN;
    use ackline::core::policy::ack::AckInit;
    use ackline::core::policy::cc::CcInit;
    use ackline::core::{Instant, Window};
    use clap::Parser as _;

    fn settings(options: &str) -> Settings {
        let words = ["ackline", "send", "-", "h:1"].into_iter().chain(options.split_whitespace());
        match Cli::try_parse_from(words).expect("understood").command {
            Command::Send(send) => send.policies.resolve(&Registry::default()).expect("right"),
            _ => unreachable!("it is send"),
        }
    }

    #[test]
    fn what_the_command_line_says_goes_over_what_the_command_wants() {
        let wanted = settings("-o iw=4,keep_alive=off -o send_buffer=1M --cc dctcp");
        let config = wanted
            .connections(|config| {
                config.keep_alive = Some(ackline::core::config::KeepAlive::default());
                config.send_buffer = 1;
                config.dscp = 7;
            })
            .expect("no contradiction");
        assert_eq!((config.initial_window, config.send_buffer, config.dscp), (4, 1 << 20, 7));
        assert!(config.keep_alive.is_none());
        assert_eq!(config.ecn, ackline::core::config::Ecn::Dctcp);
        assert!(wanted.sets("initial_window") && !wanted.sets("sack"));
        assert_eq!(wanted.names.cc, "dctcp");
        assert_eq!(wanted.names.rto, "linux", "the registry's default");
    }

    /// What connections of these settings are: every option, and the policies with their
    /// parameters.
    fn described(config: &ConnConfig) -> Vec<String> {
        let policies = &config.policies;
        let mut all = vec![
            format!("{:?}", (policies.cc)(&CcInit::new(Instant::ZERO, 1448, Window::from_bytes(14_480)))),
            format!("{:?}", (policies.ack)(&AckInit::new(Instant::ZERO, 1448, None))),
            format!("{:?}", (policies.rto)()),
        ];
        all.extend(CONN.iter().map(|key| format!("{}={}", key.name, key.get(config))));
        all
    }

    /// As `tests/cli/worlds.rs` has it of scenarios and stacks.
    #[test]
    fn a_command_makes_the_connections_of_a_stack_with_the_same_options() {
        let registry = Registry::default();
        let text = "cc=cubic:beta=0.8,ack=delayed:delay=100ms,rto=dclor:max_probes=1,sack=off,iw=4";
        let flags =
            "--cc cubic:beta=0.8 --ack delayed:delay=100ms --rto dclor:max_probes=1 -o sack=off -o iw=4";
        for (words, text) in [("", ""), (&*format!("-o {text}"), text), (flags, text)] {
            let command = settings(words).connections(|_| {}).expect("no contradiction");
            let options = registry.options(text).expect("right");
            let stack = options.conn(&registry.conn_config()).expect("no contradiction");
            assert_eq!(described(&command), described(&stack), "{words}");
        }
    }

    #[test]
    fn the_scheduler_of_dash_o_gets_the_shaper_too() {
        let shaped = settings("-o sched=drr --egress-rate 1mbit -o default_ttl=9");
        assert_eq!(shaped.names.sched, "drr:rate=1mbit");
        let mut host = EndpointConfig::default();
        shaped.host(&mut host).expect("right");
        assert_eq!(host.default_ttl, 9);
    }
}
