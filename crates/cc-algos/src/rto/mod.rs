//! Responses to a retransmission timeout.

use ackline_tcp_core::policy::NewRtoResponse;
use ackline_tcp_core::policy::builtin::Conventional;
use ackline_tcp_core::policy::spec::Entry;
use alloc::boxed::Box;
use alloc::sync::Arc;

/// The RTO responses of this crate.
pub const RTO: &[Entry<NewRtoResponse>] = &[Entry {
    name: "conventional",
    aliases: &[],
    summary: "what is not SACKed is lost; one segment, then slow start",
    source: "RFC 6298 section 5, RFC 5681 section 3.1",
    params: &[],
    make: |params| {
        params.reject_all("conventional")?;
        Ok(Arc::new(|| Box::new(Conventional::default())))
    },
}];

#[cfg(test)]
mod tests {
    use super::RTO;
    use ackline_tcp_core::policy::conformance;

    #[test]
    fn every_entry_keeps_the_rules() {
        for entry in RTO {
            let make = (entry.make)(&"".parse().unwrap()).unwrap();
            assert_eq!(make().name(), entry.name);
            for seed in 0..20 {
                conformance::rto_response(&*make, seed);
            }
        }
    }
}
