//! The stack as a host on an Ethernet: a packet socket on one end of a pair of virtual interfaces,
//! the kernel's TCP of another namespace on the other.

use crate::links::link_state::{self, LONG, SHORT};
use crate::links::mtu;
use crate::support::stream::{read_all, write_all};
use crate::support::{Ip, Opens, STACK4, Setup, World};
use crate::{many, transfer};
use ackline_runtime::Error;
use ackline_runtime::netlink::{InterfaceAddress, Netlink};
use ackline_runtime::testing::{has_programs, skip};
use std::process::Command;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net;

const MIB: u64 = 1 << 20;

fn offload() -> Setup {
    Setup::offload().ethernet()
}

fn plain() -> Setup {
    Setup::plain().ethernet()
}

/// The far kernel's card cuts no super-packets, completes no checksums, and joins nothing that it
/// receives.
fn bare(setup: Setup) -> Setup {
    setup.far_card_without(&[
        "tx-checksum-ip-generic",
        "tx-tcp-segmentation",
        "tx-tcp6-segmentation",
        "tx-generic-segmentation",
        "rx-gro",
    ])
}

/// `LEN` bytes each way, one way after the other, and how many packets of the device that took.
async fn count(world: &World, len: u64) -> (u64, u64) {
    let (mut kernel, mut stack) = world.connection(Opens::Kernel, Ip::V4).await;
    tokio::join!(write_all(&mut stack, 1, len), read_all(&mut kernel, 1, len));
    let sent = world.stack.stats().device.tx_packets;
    let received = world.stack.stats().device.rx_packets;
    tokio::join!(write_all(&mut kernel, 2, len), read_all(&mut stack, 2, len));
    world.check_device();
    (sent, world.stack.stats().device.rx_packets - received)
}

/// Segments with a time stamp, of an MTU of 1500.
const fn segments(len: u64) -> u64 {
    len / 1448
}

/// The near namespace's kernel said nothing to anybody, whose connections it does not know.
fn check_silence(world: &World) {
    assert_eq!(world.near_kernel_resets(), 0, "resets of the near kernel");
}

/// The near kernel has the stack's address, too.
fn share_address(world: &World) {
    world.near(|| {
        let mut netlink = Netlink::open()?;
        let index = netlink.interface(world.interface())?.index;
        let own = format!("{STACK4}/24").parse().expect("a network");
        netlink.add_address(index, InterfaceAddress::network(own))
    });
}

/// Loads a ruleset into the near kernel's firewall; why not, if that cannot be done.
fn firewall(world: &World, rules: &str) -> Result<(), String> {
    world.near(|| {
        let output = Command::new("nft").args(rules.split(' ')).output().expect("it runs");
        let complaint = String::from_utf8_lossy(&output.stderr).lines().next().unwrap_or("").to_owned();
        Ok::<_, Error>(if output.status.success() { Ok(()) } else { Err(complaint) })
    })
}

async fn exchange(world: &World, opens: Opens) {
    let (mut kernel, mut stack) = world.connection(opens, Ip::V4).await;
    tokio::join!(write_all(&mut kernel, 1, MIB), read_all(&mut stack, 1, MIB));
    tokio::join!(write_all(&mut stack, 2, MIB), read_all(&mut kernel, 2, MIB));
}

against_kernel! {
    fn kernel_opens_ipv4(world) from offload(); { transfer::sizes(&world, Opens::Kernel, Ip::V4).await; }
    fn kernel_opens_ipv6(world) from offload(); { transfer::sizes(&world, Opens::Kernel, Ip::V6).await; }
    fn stack_opens_ipv4(world) from offload(); { transfer::sizes(&world, Opens::Stack, Ip::V4).await; }
    fn stack_opens_ipv6(world) from offload(); { transfer::sizes(&world, Opens::Stack, Ip::V6).await; }
    fn kernel_opens_ipv4_plain(world) from plain(); { transfer::sizes(&world, Opens::Kernel, Ip::V4).await; }
    fn stack_opens_ipv6_plain(world) from plain(); { transfer::sizes(&world, Opens::Stack, Ip::V6).await; }

    fn super_packets_go_both_ways(world) from offload(); {
        let (sent, received) = count(&world, 64 * MIB).await;
        assert!(sent < segments(64 * MIB) / 4, "{sent} packets sent");
        assert!(received < segments(64 * MIB) / 4, "{received} packets received");
        check_silence(&world);
    }

    fn single_packets_leave_without_offload(world) from plain(); {
        let (sent, _) = count(&world, 32 * MIB).await;
        assert!(sent >= segments(32 * MIB), "{sent} packets sent");
        check_silence(&world);
    }

    fn a_far_card_without_offloads(world) from bare(offload()); {
        let (_, received) = count(&world, 16 * MIB).await;
        assert!(received > segments(16 * MIB) / 2, "{received} packets received: its card has offloads");
    }

    fn nobody_has_offloads(world) from bare(plain()); {
        let (sent, received) = count(&world, 16 * MIB).await;
        assert!(sent >= segments(16 * MIB), "{sent} packets sent");
        assert!(received >= segments(16 * MIB), "{received} packets received");
    }

    fn both_ways_at_once(world) from offload(); {
        transfer::both_ways_at_once(&world, Opens::Stack, Ip::V6, 32 * MIB).await;
        world.check_device();
        check_silence(&world);
    }

    fn ipv4_9000(world) from offload().mtu(9000); { mtu::transfer(world, 9000, Ip::V4).await; }
    fn ipv6_9000_plain(world) from plain().mtu(9000); { mtu::transfer(world, 9000, Ip::V6).await; }
    fn the_mtu_changes(world) from offload().mtu(9000); { mtu::changes(world, Ip::V6).await; }
    fn the_mtu_changes_plain(world) from plain().mtu(9000); { mtu::changes(world, Ip::V4).await; }
    fn ipv6_1280(world) from offload().mtu(1280); { mtu::transfer(world, 1280, Ip::V6).await; }

    fn kernel_opens_a_hundred(world) from offload(); { many::kernel_opens(world).await; }
    fn stack_opens_a_hundred_plain(world) from plain(); { many::stack_opens(world).await; }

    fn an_idle_connection_is_not_reset(world) from offload(); {
        let (mut kernel, mut stack) = world.connection(Opens::Stack, Ip::V4).await;
        for _ in 0..5 {
            kernel.write_all(b"still there?").await.expect("written");
            stack.read_exact(&mut [0; 12]).await.expect("the connection lives");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        check_silence(&world);
    }

    fn without_a_rule_the_kernel_resets_a_shared_address(world) from offload(); {
        share_address(&world);
        let _listener = net::TcpListener::bind((Ip::V4.kernel(), 7)).await.expect("bound");
        // Whether the connection comes about is a race with the near kernel's reset, which nobody
        // should have to run.
        for _ in 0..20 {
            let _ = tokio::time::timeout(Duration::from_millis(500), world.connect((Ip::V4.kernel(), 7))).await;
            if world.near_kernel_resets() > 0 {
                break;
            }
        }
        assert!(world.near_kernel_resets() > 0, "the near kernel was silent: it does not take part");
    }

    fn with_a_rule_an_address_can_be_shared(world) from offload(); {
        const NAME: &str = "links::ethernet::with_a_rule_an_address_can_be_shared";
        if !has_programs(NAME, &["nft"]) {
            return;
        }
        for rule in [
            "add table inet ackline",
            "add chain inet ackline out { type filter hook output priority 0 ; }",
            "add rule inet ackline out ip saddr 10.79.0.2 tcp flags & rst == rst drop",
        ] {
            if let Err(why) = firewall(&world, rule) {
                return skip(NAME, &why);
            }
        }
        share_address(&world);
        exchange(&world, Opens::Stack).await;
        exchange(&world, Opens::Kernel).await;
    }

    fn an_ethernet_is_down_while_the_stack_sends(world) from offload(); {
        link_state::down_and_up(world, true, SHORT).await;
    }
    fn a_plain_ethernet_is_down_while_the_stack_sends(world) from plain(); {
        link_state::down_and_up(world, true, LONG).await;
    }
    fn an_ethernet_is_down_while_the_stack_receives(world) from offload(); {
        link_state::down_and_up(world, false, SHORT).await;
    }
    fn an_ethernet_is_down_while_the_stack_connects(world) from offload(); {
        link_state::connects_when_it_is_up(world).await;
    }
    fn an_ethernet_is_down_for_too_long(world) from link_state::impatient(offload()); {
        link_state::down_for_too_long(world).await;
    }
    fn an_ethernet_is_removed(world) from offload(); { link_state::removed(world).await; }
    fn an_idle_ethernet_is_removed(world) from plain(); { link_state::removed_while_idle(world).await; }
}
