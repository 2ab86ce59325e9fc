//! The machine's network interfaces: what `list interfaces` shows, and what errors about `--dev`
//! suggest.

use crate::failure::Failure;
use ackline::runtime::MacAddress;
use ackline::runtime::netlink::{Interface as Link, Netlink};
use comfy_table::Table;
use ipnet::IpNet;
use serde::{Serialize, Serializer};
use std::net::IpAddr;

/// An interface of this network namespace.
#[derive(Debug, Serialize)]
pub(crate) struct Interface {
    pub(crate) name: String,
    index: u32,
    mac: Option<String>,
    pub(crate) mtu: u32,
    pub(crate) up: bool,
    /// It has a carrier.
    running: bool,
    /// The kernel's own, with their networks.
    #[serde(serialize_with = "as_text")]
    pub(crate) addresses: Vec<IpNet>,
    /// `--dev` can use it.
    pub(crate) usable: bool,
    /// Why not; `None` if it can.
    pub(crate) problem: Option<String>,
}

fn as_text<S: Serializer>(nets: &[IpNet], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(nets.iter().map(ToString::to_string))
}

/// Every interface, in the kernel's order.
pub(crate) fn all() -> Result<Vec<Interface>, Failure> {
    let listed = list(&mut Netlink::open()?)?;
    Ok(listed.into_iter().map(|(link, addresses)| Interface::new(link, addresses)).collect())
}

impl Interface {
    fn new(link: Link, addresses: Vec<IpNet>) -> Self {
        let problem = if link.loopback {
            Some("the kernel's loopback, where no other host is".to_owned())
        } else if !link.ethernet {
            Some("carries no Ethernet frames".to_owned())
        } else if !link.up {
            Some(format!("is down: ip link set {} up", link.name))
        } else {
            None
        };
        Self {
            index: link.index,
            mac: link.mac.filter(|mac| *mac != MacAddress::default()).map(|mac| mac.to_string()),
            mtu: link.mtu,
            up: link.up,
            running: link.running,
            name: link.name,
            addresses,
            usable: problem.is_none(),
            problem,
        }
    }
}

#[cfg(feature = "pnet")]
use by_pnet as list;

#[cfg(not(feature = "pnet"))]
use by_netlink as list;

/// As the crate pnet finds them, and netlink describes them.
#[cfg(feature = "pnet")]
fn by_pnet(netlink: &mut Netlink) -> Result<Vec<(Link, Vec<IpNet>)>, Failure> {
    // The list comes from a socket of its own, and is empty if that cannot be opened.
    drop(Netlink::open()?);
    let mut found: Vec<(Link, Vec<IpNet>)> = Vec::new();
    for listed in pnet_datalink::interfaces() {
        // An address with a label comes under that: eth0:1.
        let name = listed.name.split(':').next().unwrap_or_default();
        let addresses = listed.ips.iter().filter_map(|net| IpNet::new(net.ip(), net.prefix()).ok());
        if let Some((_, known)) = found.iter_mut().find(|(known, _)| known.name == name) {
            known.extend(addresses);
        } else if let Ok(link) = netlink.interface(name) {
            // One that went away meanwhile is not listed.
            found.push((link, addresses.collect()));
        }
    }
    Ok(found)
}

/// As netlink lists them.
#[cfg(any(test, not(feature = "pnet")))]
fn by_netlink(netlink: &mut Netlink) -> Result<Vec<(Link, Vec<IpNet>)>, Failure> {
    let addresses = netlink.addresses()?;
    let with_addresses = |link: Link| {
        let own = addresses.iter().filter(|(index, _)| *index == link.index).map(|(_, net)| *net).collect();
        (link, own)
    };
    Ok(netlink.interfaces()?.into_iter().map(with_addresses).collect())
}

/// The table of `list interfaces`.
pub(crate) fn table(interfaces: &[Interface]) -> String {
    let mut table = Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    let width = u16::try_from(ackline_lab::WIDTH).unwrap_or(u16::MAX);
    table.set_content_arrangement(comfy_table::ContentArrangement::Dynamic).set_width(width);
    table.set_header(["name", "state", "MTU", "MAC address", "the kernel's addresses", "for --dev"]);
    for interface in interfaces {
        let state = match (interface.up, interface.running) {
            (false, _) => "down",
            (true, false) => "up, no carrier",
            (true, true) => "up",
        };
        let addresses: Vec<String> = interface.addresses.iter().map(ToString::to_string).collect();
        let or_none = |text: String| if text.is_empty() { "-".to_owned() } else { text };
        table.add_row([
            interface.name.clone(),
            state.to_owned(),
            interface.mtu.to_string(),
            or_none(interface.mac.clone().unwrap_or_default()),
            or_none(addresses.join(", ")),
            interface.problem.as_ref().map_or_else(|| "yes".to_owned(), |why| format!("no: {why}")),
        ]);
    }
    table.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}

/// All of them with their state, for an error: `lo (up), veth0 (up), eth0 (down)`.
pub(crate) fn summary(interfaces: &[Interface]) -> String {
    let state = |interface: &Interface| if interface.up { "up" } else { "down" };
    let each: Vec<String> =
        interfaces.iter().map(|interface| format!("{} ({})", interface.name, state(interface))).collect();
    if each.is_empty() { "none".to_owned() } else { each.join(", ") }
}

/// Those that `--dev` can use, for an error.
pub(crate) fn choices(interfaces: &[Interface]) -> String {
    let usable: Vec<&str> =
        interfaces.iter().filter(|known| known.usable).map(|known| known.name.as_str()).collect();
    if usable.is_empty() {
        "there is none that --dev can use (ackline list interfaces)".to_owned()
    } else {
        format!("--dev can use {}", usable.join(", "))
    }
}

/// The interface on which the kernel has `address`.
pub(crate) fn holder(interfaces: &[Interface], address: IpAddr) -> Option<(&Interface, IpNet)> {
    interfaces.iter().find_map(|known| {
        let net = known.addresses.iter().find(|net| net.addr() == address)?;
        Some((known, *net))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interface(name: &str, up: bool, addresses: &[&str], problem: Option<&str>) -> Interface {
        Interface {
            name: name.to_owned(),
            index: 1,
            mac: problem.is_none().then(|| "02:00:00:00:00:01".to_owned()),
            mtu: 1500,
            up,
            running: up,
            addresses: addresses.iter().map(|text| text.parse().expect("a network")).collect(),
            usable: problem.is_none(),
            problem: problem.map(str::to_owned),
        }
    }

    /// Each is the other's independent source.
    #[cfg(feature = "pnet")]
    #[test]
    fn pnet_and_netlink_list_the_same() {
        use ackline::runtime::netlink::InterfaceAddress;

        ackline::runtime::testing::isolated(
            "network::interfaces::tests::pnet_and_netlink_list_the_same",
            || {
                let mut netlink = Netlink::open()?;
                let here = ackline::runtime::netns::Namespace::of_thread()?;
                netlink.add_veth("one", "two", &here)?;
                let index = netlink.interface("one")?.index;
                for net in ["10.1.0.1/24", "10.2.0.1/32", "fd01::1/64"] {
                    let net = net.parse().expect("a network");
                    netlink.add_address(index, InterfaceAddress::network(net))?;
                }
                let peer = InterfaceAddress::point_to_point([10, 3, 0, 1].into(), [10, 4, 0, 1].into());
                netlink.add_address(index, peer)?;
                netlink.set_up(index)?;

                let mut lists =
                    [by_pnet(&mut netlink), by_netlink(&mut netlink)].map(|list| list.expect("listed"));
                for list in &mut lists {
                    list.sort_by_key(|(link, _)| link.index);
                    list.iter_mut().for_each(|(_, nets)| nets.sort());
                }
                let [pnet, netlink] = lists;
                assert_eq!(pnet, netlink);
                let names: Vec<_> =
                    netlink.iter().map(|(link, _)| (link.name.as_str(), link.running)).collect();
                for expected in [("lo", true), ("one", false), ("two", false)] {
                    assert!(names.contains(&expected), "{names:?}");
                }
                let (_, nets) = netlink.iter().find(|(link, _)| link.name == "one").expect("listed");
                assert!(nets.contains(&"10.3.0.1/32".parse().expect("a network")), "{nets:?}");
                Ok(())
            },
        );
    }

    #[test]
    fn errors_name_what_there_is() {
        let all = [
            interface("lo", true, &["127.0.0.1/8", "::1/128"], Some("loops")),
            interface("veth0", true, &["10.0.0.5/24"], None),
            interface("eth1", false, &[], Some("is down")),
        ];
        assert_eq!(summary(&all), "lo (up), veth0 (up), eth1 (down)");
        assert_eq!(choices(&all), "--dev can use veth0");
        assert!(choices(&all[..1]).contains("none"));
        let (found, net) = holder(&all, [10, 0, 0, 5].into()).expect("held");
        assert_eq!((found.name.as_str(), net.prefix_len()), ("veth0", 24));
        assert!(holder(&all, [10, 0, 0, 6].into()).is_none());
    }

    #[test]
    fn the_table_has_a_line_for_each() {
        let text = table(&[
            interface("lo", true, &["127.0.0.1/8"], Some("loops")),
            interface("veth0", true, &[], None),
        ]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3, "{text}");
        assert!(lines[1].contains("no: loops") && lines[2].contains("02:00:00:00:00:01"), "{text}");
        assert!(lines[2].ends_with("yes"), "{text}");
    }
}
