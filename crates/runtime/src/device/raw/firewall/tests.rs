//! The table as the kernel lists it, with the command nft as another reader of the format.

use super::{Rules, Table, command};
use crate::error::Error;
use crate::testing::{has_programs, isolated, skip};
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::process::Command;

const PORTS: [RangeInclusive<u16>; 2] = [80..=80, 5001..=5003];

fn own() -> [IpAddr; 2] {
    ["192.0.2.5", "2001:db8::5"].map(|text| text.parse().expect("an address"))
}

/// What `nft ARGUMENTS` prints.
fn nft(arguments: &[&str]) -> String {
    let output = Command::new("nft").args(arguments).output().expect("it runs");
    assert!(output.status.success(), "nft {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// The table, unless the kernel has none of its kind.
fn table(test: &str, name: &str, rules: Rules<'_>) -> Result<Option<Table>, Error> {
    match Table::new(name, rules) {
        Err(error @ Error::NoFirewall { .. }) => {
            skip(test, &error);
            Ok(None)
        }
        made => made.map(Some),
    }
}

#[test]
fn the_table_says_what_is_dropped_and_goes_with_its_owner() {
    const NAME: &str = "device::raw::firewall::tests::the_table_says_what_is_dropped_and_goes_with_its_owner";
    if !has_programs(NAME, &["nft"]) {
        return;
    }
    isolated(NAME, || {
        let own = own();
        let rules = Rules { interface: 1, name: "lo", addresses: &own, ports: &PORTS };
        let Some(made) = table(NAME, "ackline-raw-1", rules)? else { return Ok(()) };
        let listed = nft(&["list", "ruleset"]);
        assert!(listed.contains("table inet ackline-raw-1"), "{listed}");
        assert!(listed.contains("flags owner"), "{listed}");
        assert!(listed.contains("hook input"), "{listed}");
        let drops: Vec<&str> = listed.lines().filter(|line| line.trim_end().ends_with("drop")).collect();
        assert_eq!(drops.len(), 4, "{listed}");
        for (line, expected) in drops.iter().zip([
            ["iif \"lo\"", "ip daddr 192.0.2.5", "dport"],
            ["iif \"lo\"", "ip daddr 192.0.2.5", "5001"],
            ["iif \"lo\"", "ip6 daddr 2001:db8::5", "dport"],
            ["iif \"lo\"", "ip6 daddr 2001:db8::5", "5003"],
        ]) {
            assert!(expected.iter().all(|part| line.contains(part)), "{line}: {expected:?}");
        }
        let taken = Table::new("ackline-raw-1", rules).map(drop);
        assert!(matches!(taken, Err(Error::NoFirewall { .. })), "{taken:?}");
        drop(made);
        // A process that another test is just starting has a copy of the socket until it runs its
        // program.
        for _ in 0..3_000 {
            if !nft(&["list", "ruleset"]).contains("ackline") {
                return Ok(());
            }
            #[expect(
                clippy::disallowed_methods,
                reason = "a test that waits for another process needs the clock"
            )]
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        panic!("the table is left")
    });
}

#[test]
fn the_command_by_hand_is_what_nft_understands() {
    const NAME: &str = "device::raw::firewall::tests::the_command_by_hand_is_what_nft_understands";
    if !has_programs(NAME, &["nft"]) {
        return;
    }
    isolated(NAME, || {
        let own = own();
        let rules = Rules { interface: 1, name: "lo", addresses: &own, ports: &PORTS };
        // The table is only made to know whether this kernel has any.
        let Some(_probe) = table(NAME, "probe", rules)? else { return Ok(()) };
        let shell = Command::new("sh").args(["-c", &command(rules)]).output().expect("a shell");
        assert!(shell.status.success(), "{}: {}", command(rules), String::from_utf8_lossy(&shell.stderr));
        let listed = nft(&["list", "table", "inet", "ackline"]);
        for rule in [
            "iifname \"lo\" ip daddr 192.0.2.5 tcp dport { 80, 5001-5003 } drop",
            "iifname \"lo\" ip6 daddr 2001:db8::5 tcp dport { 80, 5001-5003 } drop",
        ] {
            assert!(listed.contains(rule), "{listed}");
        }
        Ok(())
    });
}
