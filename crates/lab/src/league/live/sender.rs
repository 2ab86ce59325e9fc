//! Who sends under test: ackline's stack or the kernel's, with a congestion control.

use super::super::cell::Cell;
use super::super::contestant::Contestant;
use super::machine::Machine;
use ackline_registry::Registry;
use ackline_tcp_core::policy::spec::nearest;
use serde::{Deserialize, Serialize};

/// Stands before the name of a control that is the kernel's.
const PREFIX: &str = "linux:";
/// Those that take part if nobody is named; the kernel's as far as it has them.
const USUAL: [&str; 6] = ["reno", "cubic", "bbr", "linux:reno", "linux:cubic", "linux:bbr"];
/// What all hosts of the kernel have: nothing that a connection has learnt is for those after it,
/// and buffers grow to what cells give ackline.
const SYSCTLS: &str = "\"net.ipv4.tcp_no_metrics_save\" = 1, \"net.ipv4.tcp_wmem\" = \"4096 16384 33554432\", \
     \"net.ipv4.tcp_rmem\" = \"4096 131072 33554432\"";

/// A stack with a congestion control.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sender {
    /// `bbr`, or `linux:bbr` for the kernel's.
    pub name: String,
    /// The kernel's name of the control; `None` if ackline's stack sends.
    pub kernel: Option<String>,
    /// ackline's control, which sends in the simulated twin; `None` if ackline has none like the
    /// kernel's.
    pub twin: Option<Contestant>,
}

impl Sender {
    /// The sender of this name.
    ///
    /// # Errors
    /// If the registry or the kernel does not have the control.
    pub fn named(name: &str, machine: &Machine, registry: &Registry) -> Result<Self, String> {
        let Some(control) = name.strip_prefix(PREFIX) else {
            let twin = Contestant::cc(name, registry).map_err(|error| error.to_string())?;
            return Ok(Self { name: name.to_owned(), kernel: None, twin: Some(twin) });
        };
        let known = machine.controls.iter().map(String::as_str);
        if !known.clone().any(|known| known == control) {
            let near = nearest(control, known)
                .map_or(String::new(), |near| format!("; did you mean \"{PREFIX}{near}\"?"));
            return Err(format!(
                "the kernel has no congestion control {control:?}{near} (it has {}; modprobe tcp_NAME loads others)",
                machine.controls.join(", ")
            ));
        }
        // One control has another name there.
        let twin = if control == "highspeed" { "hstcp" } else { control };
        let twin = Contestant::cc(twin, registry).ok();
        Ok(Self { name: name.to_owned(), kernel: Some(control.to_owned()), twin })
    }

    /// Those that `names` name, each once; Reno, CUBIC and BBR of both stacks if there is none.
    ///
    /// # Errors
    /// If the registry or the kernel does not have one.
    pub fn all(names: &[String], machine: &Machine, registry: &Registry) -> Result<Vec<Self>, String> {
        let mut all: Vec<Self> = vec![];
        let has = |name: &&str| {
            let control = name.strip_prefix(PREFIX);
            control.is_none_or(|control| machine.controls.iter().any(|known| known == control))
        };
        let usual: Vec<&str> = USUAL.into_iter().filter(has).collect();
        let named: Vec<&str> = names.iter().map(String::as_str).collect();
        for name in if named.is_empty() { usual } else { named } {
            if !all.iter().any(|sender| sender.name == name) {
                all.push(Self::named(name, machine, registry)?);
            }
        }
        Ok(all)
    }

    /// The scenario of a cell with this sender.
    #[must_use]
    pub fn text(&self, cell: &Cell) -> String {
        let (policy, ecn) = match &self.twin {
            Some(twin) => (twin.spec.as_str(), twin.ecn_word()),
            // The host's setting comes before that of the flow.
            None => ("reno", "classic"),
        };
        let host = self.kernel.as_deref().map_or_else(|| "world = \"live\"".to_owned(), kernel_with);
        cell.text_with(policy, ecn, &host)
    }
}

/// The world of a host of the kernel whose flows say which control they have.
pub(super) fn kernel() -> String {
    format!("world = \"kernel\"\nkernel = {{ sysctl = {{ {SYSCTLS} }} }}")
}

fn kernel_with(control: &str) -> String {
    format!("world = \"kernel\"\nkernel = {{ cc = \"{control}\", sysctl = {{ {SYSCTLS} }} }}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(controls: &[&str]) -> Machine {
        let controls = controls.iter().map(|name| (*name).to_owned()).collect();
        Machine { controls, ..Machine::default() }
    }

    #[test]
    fn a_control_of_the_kernel_has_the_twin_of_its_name() {
        let (machine, registry) = (machine(&["reno", "bbr", "highspeed", "lp"]), Registry::default());
        let named = |name: &str| Sender::named(name, &machine, &registry).unwrap();
        let twin = |name: &str| named(name).twin.map(|twin| twin.spec);
        assert_eq!(twin("linux:bbr").as_deref(), Some("bbr"));
        assert_eq!(twin("linux:highspeed").as_deref(), Some("hstcp"));
        assert_eq!(twin("linux:lp"), None);
        let ours = named("cubic:beta=0.8");
        assert_eq!((ours.kernel, ours.twin.unwrap().spec.as_str()), (None, "cubic:beta=0.8"));
    }

    #[test]
    fn a_control_that_the_kernel_lacks_is_refused_and_not_one_of_the_usual() {
        let (machine, registry) = (machine(&["reno", "cubic"]), Registry::default());
        let all = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            Sender::all(&names, &machine, &registry)
                .map(|all| all.into_iter().map(|sender| sender.name).collect::<Vec<_>>())
        };
        assert_eq!(all(&[]).unwrap(), ["reno", "cubic", "bbr", "linux:reno", "linux:cubic"]);
        assert_eq!(all(&["bbr", "linux:reno", "bbr"]).unwrap(), ["bbr", "linux:reno"]);
        let error = all(&["linux:cubik"]).unwrap_err();
        assert!(
            error.contains("did you mean \"linux:cubic\"?") && error.contains("it has reno, cubic;"),
            "{error}"
        );
        assert!(all(&["linux:bbr"]).unwrap_err().contains("no congestion control \"bbr\""));
        assert!(all(&["linux"]).is_err() && all(&["linux:"]).is_err());
    }
}
