//! From `--cc`, `--ack`, `--rto` and `--sched` to what they name.

use crate::args::{EcnKind, EgressArgs, LossKind, PolicyArgs, RecoveryPart};
use crate::failure::Failure;
use ackline::Registry;
use ackline::core::config::{Ecn, LossDetection};
use ackline::core::policy::spec::{PolicySpec, SpecError, parse_rate};
use ackline::core::policy::{NewEgressScheduler, Policies};
use ackline::core::{ConnConfig, Rate};
use std::sync::Arc;

/// What a stack is built with.
#[derive(Clone)]
pub(crate) struct Chosen {
    connection: Policies,
    pub(crate) scheduler: Arc<NewEgressScheduler>,
    /// The shaper's rate.
    rate: Option<Rate>,
    ecn: Ecn,
    loss: LossKind,
    without: Vec<RecoveryPart>,
}

impl Chosen {
    /// Lets a connection take no more than leaves in about a second behind the shaper, but at least 64 KiB: whoever
    /// sends for some time does not wait minutes for the buffer to drain.
    pub(crate) fn shorten_send_buffer(&self, connections: &mut ConnConfig) {
        let Some(rate) = self.rate else { return };
        let second = u32::try_from(rate.bytes_per_second()).unwrap_or(u32::MAX);
        connections.send_buffer = connections.send_buffer.min(second.max(64 << 10));
    }

    /// Puts what was chosen for connections into their settings.
    pub(crate) fn set(&self, connections: &mut ConnConfig) {
        connections.policies = self.connection.clone();
        connections.ecn = self.ecn;
        connections.loss = match self.loss {
            LossKind::Rack => LossDetection::Rack,
            LossKind::Dupack => LossDetection::DupAck,
        };
        for part in &self.without {
            match part {
                RecoveryPart::Tlp => connections.tlp = false,
                RecoveryPart::Prr => connections.prr = false,
                RecoveryPart::Undo => connections.undo = false,
                RecoveryPart::Dsack => connections.dsack = false,
                RecoveryPart::LimitedTransmit => connections.limited_transmit = false,
            }
        }
    }
}

impl PolicyArgs {
    /// Finds all of them.
    pub(crate) fn resolve(&self) -> Result<Chosen, Failure> {
        let option =
            |name: &'static str| move |error: SpecError| Failure::usage(format!("--{name}: {error}"));
        let scheduler = self.scheduler()?;
        let rate = scheduler.parse::<PolicySpec>().ok().and_then(|spec| {
            let rate = spec.params.get("rate")?;
            parse_rate(rate.text())
        });
        Ok(Chosen {
            connection: Policies {
                cc: Registry::default().cc(&self.cc).map_err(option("cc"))?,
                ack: Registry::default().ack(&self.ack).map_err(option("ack"))?,
                rto: Registry::default().rto(&self.rto).map_err(option("rto"))?,
            },
            scheduler: Registry::default().sched(&scheduler).map_err(option("sched"))?,
            rate,
            ecn: match self.ecn {
                None => Registry::default().ecn(&self.cc).map_err(option("cc"))?,
                Some(EcnKind::Off) => Ecn::Off,
                Some(EcnKind::Classic) => Ecn::Classic,
                Some(EcnKind::Dctcp) => Ecn::Dctcp,
            },
            loss: self.loss,
            without: self.without.clone(),
        })
    }

    /// The scheduler with the shaper that the options beside it describe.
    pub(crate) fn scheduler(&self) -> Result<String, Failure> {
        let EgressArgs { egress_rate, egress_burst, egress_late, egress_overhead } = &self.egress;
        let overhead = egress_overhead.map(|bytes| bytes.to_string());
        let options = [
            ("rate", egress_rate.as_ref()),
            ("burst", egress_burst.as_ref()),
            ("late", egress_late.as_ref()),
            ("overhead", overhead.as_ref()),
        ];
        let mut spec: PolicySpec =
            self.sched.parse().map_err(|error| Failure::usage(format!("--sched: {error}")))?;
        let mut text = self.sched.trim_end_matches([',', ':']).to_owned();
        for (name, value) in options {
            let Some(value) = value else { continue };
            if spec.params.get(name).is_some() {
                return Err(Failure::usage(format!(
                    "--sched has {name}= already; leave that or --egress-{name} out"
                )));
            }
            text += &format!("{}{name}={value}", if text.contains(':') { ',' } else { ':' });
        }
        spec = text.parse().map_err(|error| Failure::usage(format!("--sched: {error}")))?;
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
