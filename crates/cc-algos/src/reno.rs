//! `reno`: the NewReno that the core has built in.

use ackline_tcp_core::policy::NewCongestionControl;
use ackline_tcp_core::policy::builtin::NewReno;
use ackline_tcp_core::policy::spec::Entry;

pub(crate) const ENTRY: Entry<NewCongestionControl> = Entry {
    aliases: &["newreno"],
    source: "RFC 5681, RFC 6582, RFC 3465",
    ..Entry::growth::<NewReno>("halves the window on loss, adds one segment per round trip")
};

#[cfg(test)]
mod tests {
    use super::ENTRY;
    use ackline_tcp_core::policy::conformance;

    #[test]
    fn keeps_the_rules() {
        let make = (ENTRY.make)(&"".parse().unwrap()).unwrap();
        for seed in 0..20 {
            conformance::congestion_control(&*make, seed);
        }
    }

    #[test]
    fn takes_no_parameters() {
        assert!((ENTRY.make)(&"beta=0.5".parse().unwrap()).is_err());
    }
}
