//! Every entry of the table keeps the rules of its trait, with every value of its parameters that
//! is a choice.

use super::RTO;
use ackline_tcp_core::policy::conformance;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// The parameters of an entry, each alone with each of its choices.
fn settings(params: &[ackline_tcp_core::policy::spec::ParamRow]) -> Vec<String> {
    let mut settings = Vec::from([String::new()]);
    for info in params {
        let choices = info.range.split('|').filter(|_| info.range.contains('|'));
        settings.extend(choices.map(|choice| format!("{}={choice}", info.name)));
        settings.push(format!("{}={}", info.name, info.default));
    }
    settings
}

#[test]
fn every_entry_keeps_the_rules() {
    for entry in RTO {
        for text in settings(&entry.rows()) {
            let make = (entry.make)(&text.parse().unwrap()).unwrap();
            assert_eq!(make().name(), entry.name);
            for seed in 0..20 {
                conformance::rto_response(&*make, seed);
            }
        }
    }
}
