//! `--dev`: the stack on an Ethernet, and everything that can be wrong with a device.

use crate::common::{BackgroundCommand, Exit, ackline, noise, run, scratch, text, until};
use crate::net::*;
use crate::usage::refused;
use crate::watchers::capture::{assert_sound, tshark};
use ackline::runtime::Error;
use ackline::runtime::device::tun::{Tun, TunConfig};
use ackline::runtime::netlink::{InterfaceAddress, Netlink};
use ackline::runtime::netns::Namespace;
use ackline::runtime::testing::{has_programs, isolated, skip};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

const LOCAL: &str = "10.9.0.2/24";

/// An Ethernet of two hosts: this thread's namespace has `far0` with the addresses 10.9.0.1 and
/// fd09::1, the one that the test is given has `near0`, which is up and has none.
pub(crate) fn with_ethernet(name: &str, body: impl FnOnce(&Namespace) + Send) {
    isolated(name, || {
        let near =
            std::thread::scope(|scope| scope.spawn(Namespace::new_for_thread).join().expect("no panic"))?;
        let mut netlink = Netlink::open()?;
        netlink.add_veth("far0", "near0", &near)?;
        let far = netlink.interface("far0")?.index;
        for address in ["10.9.0.1/24", "fd09::1/64"] {
            netlink.add_address(far, InterfaceAddress::network(address.parse().expect("a network")))?;
        }
        netlink.set_up(far)?;
        change(&near, "near0", Netlink::set_up);
        netlink.await_address("fd09::1".parse().expect("an address"))?;
        body(&near);
        Ok(())
    });
}

/// Changes an interface of a namespace.
pub(crate) fn change(
    at: &Namespace,
    name: &str,
    act: impl Fn(&mut Netlink, u32) -> Result<(), Error> + Sync,
) {
    let changed = at.run(|| {
        let mut netlink = Netlink::open()?;
        let index = netlink.interface(name)?.index;
        act(&mut netlink, index)
    });
    changed.and_then(|outcome| outcome).expect("changed");
}

/// Starts `ackline` in a namespace.
pub(crate) fn start(at: &Namespace, args: &[&str]) -> BackgroundCommand {
    at.run(|| BackgroundCommand::start(&mut ackline(args))).expect("in the namespace")
}

/// Runs `ackline` in a namespace, if it is to fail with one line and status 3.
pub(crate) fn no_device(at: &Namespace, args: &[&str]) -> String {
    let ended = start(at, args).end();
    assert_eq!(ended.status, Some(3), "{ended:?}");
    assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
    ended.complaint().strip_prefix("ackline: ").expect("it begins so").to_owned()
}

pub(crate) fn send_nothing<'a>(options: &[&'a str]) -> Vec<&'a str> {
    [&["send", "/dev/null", "10.9.0.1:9"], options].concat()
}

#[test]
fn a_file_goes_each_way_over_an_ethernet() {
    with_ethernet("devices::dev::a_file_goes_each_way_over_an_ethernet", |near| {
        let data = noise(3_000_001, 21);
        let (_directory, path) = scratch("data");
        std::fs::write(&path, &data).expect("written");
        let options = [
            &[][..],
            &["--plain", "--mtu", "1400"],
            &["--mac", "02:00:00:00:00:77", "--gateway", "10.9.0.1"],
            &["--qdisc-bypass"],
            &["--shards", "2"],
        ];
        for options in options {
            let listener = TcpListener::bind("10.9.0.1:0").expect("a listener");
            let to = listener.local_addr().expect("bound").to_string();
            let args = ["send", "--json", "--dev", "near0", "--local", LOCAL, text(&path), &to];
            let child = start(near, &[&args, options].concat());
            let (stream, from) = accept(&listener);
            assert_eq!(from.ip().to_string(), "10.9.0.2");
            assert!(read_all(stream).expect("read to the end") == data, "{options:?}");
            let ended = child.end();
            succeeded(&ended);
            assert_eq!(ended.json()["offload"], !options.contains(&"--plain"));

            let args = ["recv", "-q", "--dev", "near0", "--local", LOCAL, "-l", ":5001"];
            let child = start(near, &[&args, options].concat());
            let ended = child.end_while(|| {
                assert_eq!(deliver(reach("10.9.0.2:5001"), &data).expect("taken"), 0);
            });
            succeeded(&ended);
            assert!(ended.stdout == data, "{options:?}: {} bytes", ended.stdout.len());
        }
    });
}

#[test]
fn a_file_goes_over_an_ethernet_by_ipv6() {
    with_ethernet("devices::dev::a_file_goes_over_an_ethernet_by_ipv6", |near| {
        let data = noise(500_000, 22);
        let args = ["recv", "--dev", "near0", "--local", "fd09::2/64", "-l", "[fd09::2]:5001"];
        let child = start(near, &args);
        let ended = child.end_while(|| {
            assert_eq!(deliver(reach("[fd09::2]:5001"), &data).expect("taken"), 0);
        });
        succeeded(&ended);
        assert!(ended.stdout == data);
        assert!(ended.stderr.contains("listening on [fd09::2]:5001 (Ethernet near0)"), "{}", ended.stderr);
    });
}

#[test]
fn captures_have_the_ethernet_headers_or_not() {
    const NAME: &str = "devices::dev::captures_have_the_ethernet_headers_or_not";
    if !has_programs(NAME, &["tshark"]) {
        return;
    }
    with_ethernet(NAME, |near| {
        let far = Netlink::open().and_then(|mut netlink| netlink.interface("far0")).expect("ours");
        let far = far.mac.expect("an Ethernet").to_string();
        let near_mac = "02:00:00:00:00:77";
        let (directory, path) = scratch("data");
        std::fs::write(&path, vec![b'Z'; 300_001]).expect("written");
        let capture = directory.path().join("out.pcapng");
        for options in [
            &[][..],
            &["--pcap-split", "--pcap-snaplen", "100"],
            &["--pcap-link", "ethernet"],
            &["--pcap-link", "raw"],
        ] {
            let listener = TcpListener::bind("10.9.0.1:0").expect("a listener");
            let to = listener.local_addr().expect("bound").to_string();
            let args = ["send", "--dev", "near0", "--local", LOCAL, "--mac", near_mac, text(&path), &to];
            let child = start(near, &[&args[..], &["--pcap", text(&capture)], options].concat());
            let (stream, _) = accept(&listener);
            assert_eq!(read_all(stream).expect("read to the end").len(), 300_001);
            succeeded(&child.end());
            assert_sound(&capture);
            // The station of the SYN is not known yet.
            let rows = tshark(
                &capture,
                "tcp.flags.syn == 0",
                &["frame.packet_flags_direction", "eth.src", "eth.dst"],
            );
            assert!(!rows.is_empty(), "{options:?}");
            for row in rows {
                let [direction, rest @ ..] = &row[..] else { panic!("{row:?}") };
                let expected = match direction.ends_with('1') {
                    _ if options.contains(&"raw") => ["", ""],
                    true => [&*far, near_mac],
                    false => [near_mac, &far],
                };
                assert_eq!(rest, expected, "{options:?}");
            }
            let ended = run(&["explain", text(&capture)]);
            succeeded(&ended);
            assert!(String::from_utf8_lossy(&ended.stdout).contains("10.9.0.2"), "{ended:?}");
        }
    });
}

/// A connection to a stack that may not listen yet.
pub(crate) fn reach(to: &str) -> TcpStream {
    let to: SocketAddr = to.parse().expect("an address");
    until("a connection", || TcpStream::connect_timeout(&to, Duration::from_secs(1)).ok())
}

#[test]
fn interfaces_are_listed_with_what_they_are_good_for() {
    with_ethernet("devices::dev::interfaces_are_listed_with_what_they_are_good_for", |near| {
        let address = InterfaceAddress::network("192.0.2.9/25".parse().expect("a network"));
        change(near, "near0", |netlink, index| netlink.add_address(index, address));
        let ended = start(near, &["list", "interfaces"]).end();
        succeeded(&ended);
        let table = String::from_utf8(ended.stdout).expect("UTF-8");
        let line = |name: &str| {
            let found = table.lines().find(|line| line.trim_start().starts_with(name));
            found.unwrap_or_else(|| panic!("no {name} in {table}")).to_owned()
        };
        assert!(line("lo").contains("no: the kernel's loopback"), "{table}");
        assert!(line("near0").contains("192.0.2.9/25") && line("near0").ends_with("yes"), "{table}");

        change(near, "near0", Netlink::set_down);
        let ended = start(near, &["list", "interfaces", "--json"]).end();
        succeeded(&ended);
        let rows = ended.json();
        let rows = rows.as_array().expect("an array");
        let row = rows.iter().find(|row| row["name"] == "near0").expect("listed");
        assert_eq!((&row["mtu"], &row["up"], &row["usable"]), (&1500.into(), &false.into(), &false.into()));
        assert_eq!(row["addresses"], serde_json::json!(["192.0.2.9/25"]));
        assert_eq!(row["mac"].as_str().map(str::len), Some(17), "{row}");
        assert_eq!(row["problem"], "is down: ip link set near0 up");
    });
}

#[test]
fn an_interface_that_cannot_be_used_is_told_with_those_that_can() {
    with_ethernet("devices::dev::an_interface_that_cannot_be_used_is_told_with_those_that_can", |near| {
        let with = |name| no_device(near, &send_nothing(&["--dev", name, "--local", LOCAL]));
        assert_eq!(with("near9"), "there is no interface near9; there are: lo (up), near0 (up)");
        assert_eq!(
            with("lo"),
            "--dev lo: the kernel's loopback, where no other host is; --dev can use near0"
        );
        let tun = near.run(|| Tun::create(&TunConfig::new().name("tun7"))).expect("in the namespace");
        match tun {
            Ok(_tun) => {
                let complaint = with("tun7");
                assert_eq!(complaint, "--dev tun7: carries no Ethernet frames; --dev can use near0");
            }
            Err(why) => skip(
                "devices::dev::an_interface_that_cannot_be_used_is_told_with_those_that_can (a TUN device)",
                &why,
            ),
        }
        change(near, "near0", Netlink::set_down);
        assert_eq!(with("near0"), "the interface near0 is down: ip link set near0 up");
    });
}

#[test]
fn an_address_in_use_is_told_with_who_has_it() {
    with_ethernet("devices::dev::an_address_in_use_is_told_with_who_has_it", |near| {
        let own = InterfaceAddress::network("10.9.0.5/24".parse().expect("a network"));
        change(near, "near0", |netlink, index| netlink.add_address(index, own));
        let complaint = no_device(near, &send_nothing(&["--dev", "near0", "--local", "10.9.0.5/24"]));
        assert!(complaint.starts_with("10.9.0.5 is this machine's own address (on near0)"), "{complaint}");
        assert!(complaint.contains("ip addr del 10.9.0.5/24 dev near0"), "{complaint}");
        assert!(complaint.contains("--share-address"), "{complaint}");
        let ended =
            start(near, &["send", "/dev/null", "10.9.0.5:9", "--dev", "near0", "--local", LOCAL]).end();
        assert_eq!(ended.status, Some(2), "{ended:?}");
        assert!(ended.complaint().contains("10.9.0.5 is this machine's own address on near0"), "{ended:?}");
        // The other host's, which answers a probe.
        let complaint = no_device(near, &["recv", "-l", ":1", "--dev", "near0", "--local", "10.9.0.1/24"]);
        let mac = Netlink::open().and_then(|mut netlink| netlink.interface("far0")).expect("there").mac;
        let mac = mac.expect("an Ethernet address").to_string();
        assert!(complaint.contains("10.9.0.1") && complaint.contains(&mac), "{complaint}");
        let complaint = no_device(near, &["recv", "-l", ":1", "--dev", "near0", "--local", "fd09::1/64"]);
        assert!(complaint.contains("fd09::1") && complaint.contains(&mac), "{complaint}");
        // With --share-address the kernel's own may be tried, and this one is free on the wire.
        let args = ["--dev", "near0", "--local", "10.9.0.5/24", "--share-address"];
        let ended = start(near, &send_nothing(&args)).end();
        assert_eq!(ended.status, Some(4), "refused by the other host, which has no such port: {ended:?}");
    });
}

#[test]
fn a_name_in_use_is_told() {
    with_ethernet("devices::dev::a_name_in_use_is_told", |near| {
        if let Err(why) = near.run(|| Tun::create(&TunConfig::new().name("probe")).map(drop)).expect("inside")
        {
            return skip("devices::dev::a_name_in_use_is_told", &why);
        }
        let _holder =
            near.run(|| Tun::create(&TunConfig::new().name("busy0"))).expect("inside").expect("made");
        change(near, "busy0", Netlink::set_up);
        let complaint = no_device(near, &["send", "/dev/null", "198.18.0.1:9", "--tun", "busy0"]);
        assert!(complaint.starts_with("the interface name \"busy0\" is in use"), "{complaint}");
        let complaint = no_device(near, &["send", "/dev/null", "198.18.0.1:9", "--tun", "near0"]);
        assert!(complaint.contains("--dev near0 --local CIDR"), "{complaint}");
    });
}

#[test]
fn missing_rights_for_a_packet_socket_are_told_with_how_to_get_them() {
    const NAME: &str = "devices::dev::missing_rights_for_a_packet_socket_are_told_with_how_to_get_them";
    with_ethernet(NAME, |near| {
        let run = || as_nobody(&send_nothing(&["--dev", "near0", "--local", LOCAL]));
        let Some(ended) = near.run(run).expect("in the namespace") else {
            return skip(NAME, &"cannot become another user");
        };
        assert_eq!(ended.status, Some(3), "{ended:?}");
        let complaint = ended.complaint();
        assert!(complaint.contains("needs CAP_NET_RAW; run as root"), "{complaint}");
        assert!(complaint.contains("setcap cap_net_raw+ep /"), "{complaint}");
    });
}

#[test]
fn what_cannot_be_is_refused_before_anything_is_opened() {
    let cases: [(&[&str], &str); 7] = [
        (&[], "--dev nic0 needs --local CIDR, an address for the stack that no other host"),
        (&["--local", "10.9.0.2"], "--local \"10.9.0.2\": the prefix length is missing; write 10.9.0.2/24"),
        (&["--local", LOCAL, "--gateway", "10.8.0.1"], "--gateway 10.8.0.1 is not in 10.9.0.0/24"),
        (&["--local", LOCAL, "--gateway", "fd09::1"], "no --local of the same IP version"),
        (&["--local", LOCAL, "--mac", "nonsense"], "--mac \"nonsense\": not an Ethernet address; write 02:"),
        (&["--local", LOCAL, "--mac", "ff:ff:ff:ff:ff:ff"], "the address of a group or of nobody"),
        (&["--local", "10.8.0.2/24"], "10.9.0.1 is outside of 10.8.0.0/24; name that network's router"),
    ];
    for (options, expected) in cases {
        let args = send_nothing(&[&["--dev", "nic0"], options].concat());
        let complaint = refused(&args, 2);
        assert!(complaint.contains(expected), "{options:?}: {complaint}");
    }
    for options in [&["--dev", "nic0", "--tun", "ack0"][..], &["--gateway", "10.9.0.1"], &["--mac", "02::1"]]
    {
        let ended = run(&send_nothing(options));
        assert_eq!(ended.status, Some(2), "{ended:?}");
    }
}

/// A transfer over a device of each kind, that is interrupted by `interrupt`.
fn interrupted(
    name: &str,
    options: &[&str],
    check: impl Fn(&Namespace, &str, BackgroundCommand, TcpStream) + Sync,
) {
    with_ethernet(name, |near| {
        let (_directory, path) = scratch("data");
        std::fs::write(&path, noise(30_000_000, 23)).expect("written");
        // The other end of a TUN device is in the namespace of the device.
        let here = Namespace::of_thread().expect("a namespace");
        for (place, interface, device, address) in [
            (near, "near0", &["--dev", "near0", "--local", LOCAL][..], "10.9.0.1"),
            (&here, "gone0", &["--tun", "gone0"], "198.18.0.1"),
        ] {
            if interface == "gone0"
                && let Err(why) = Tun::create(&TunConfig::new().name("probe")).map(drop)
            {
                return skip(name, &why);
            }
            let listener = TcpListener::bind(("0.0.0.0", 0)).expect("a listener");
            let to = format!("{address}:{}", listener.local_addr().expect("bound").port());
            let child = start(place, &[&["send", text(&path), &to][..], device, options].concat());
            let (mut stream, _) = accept(&listener);
            // In the middle of the transfer, which cannot go on before this reader does.
            stream.read_exact(&mut [0; 100_000]).expect("data");
            check(place, interface, child, stream);
        }
    });
}

#[test]
fn an_interface_that_is_removed_ends_the_transfer() {
    let name = "devices::dev::an_interface_that_is_removed_ends_the_transfer";
    interrupted(name, &["--json"], |place, interface, child, _stream| {
        change(place, interface, Netlink::remove);
        let ended = child.end();
        assert_eq!(ended.status, Some(3), "{ended:?}");
        let complaint = ended.complaint();
        assert!(
            complaint.starts_with(&format!("ackline: the interface {interface} was removed after ")),
            "{complaint}"
        );
        let report = ended.json();
        assert_eq!(report["error"]["kind"], "device");
        assert_eq!(ended.stderr.matches("was removed").count(), 1, "{ended:?}");
    });
}

#[test]
#[ignore = "slow"]
fn an_interface_that_stays_down_is_blamed() {
    let name = "devices::dev::an_interface_that_stays_down_is_blamed";
    interrupted(name, &["--json", "--timeout", "1500ms"], |place, interface, child, mut stream| {
        change(place, interface, Netlink::set_down);
        // So that it is the interface, not the reader, who holds the transfer up.
        let ended = child.end_while(|| {
            stream.set_read_timeout(Some(Duration::from_millis(300))).expect("an option");
            while stream.read(&mut [0; 65_536]).is_ok_and(|count| count > 0) {}
        });
        assert_eq!(ended.status, Some(3), "{ended:?}");
        let complaint = ended.complaint();
        assert!(
            complaint.starts_with(&format!("ackline: the interface {interface} is down: no progress with ")),
            "{complaint}"
        );
        assert!(
            ended
                .stderr
                .contains(&format!("the interface {interface} is down: nothing moves until it is up")),
            "{ended:?}"
        );
        let cpu = ended.json()["cpu_s"].as_f64().expect("a number");
        assert!(cpu < 1.0, "{cpu} s of CPU time in two seconds of waiting");
    });
}

#[test]
fn an_interface_that_comes_back_lets_the_transfer_finish() {
    let name = "devices::dev::an_interface_that_comes_back_lets_the_transfer_finish";
    interrupted(name, &[], |place, interface, child, stream| {
        change(place, interface, Netlink::set_down);
        let down = Duration::from_millis(600);
        #[expect(clippy::disallowed_methods, reason = "the interface is down for a while")]
        std::thread::sleep(down);
        change(place, interface, Netlink::set_up);
        let ended: Exit = child.end_while(|| {
            let rest = read_all(stream).expect("read to the end");
            assert!(rest[..] == noise(30_000_000, 23)[100_000..], "{} bytes differ", rest.len());
        });
        succeeded(&ended);
        let told = format!("the interface {interface} is down: nothing moves until it is up");
        assert!(ended.stderr.contains(&told), "{ended:?}");
    });
}

#[test]
fn a_receiver_without_data_learns_of_a_removal() {
    with_ethernet("devices::dev::a_receiver_without_data_learns_of_a_removal", |near| {
        let directory = tempfile::tempdir().expect("a directory");
        for options in [&[][..], &["--keep", "-O", text(directory.path())]] {
            let again = near.run(|| Netlink::open()?.interface("near0")).expect("inside");
            if again.is_err() {
                let mut netlink = Netlink::open().expect("a socket");
                netlink.add_veth("far0", "near0", near).expect("made");
                let far = netlink.interface("far0").expect("made").index;
                let address = InterfaceAddress::network("10.9.0.1/24".parse().expect("a network"));
                netlink.add_address(far, address).expect("added");
                netlink.set_up(far).expect("up");
                change(near, "near0", Netlink::set_up);
            }
            let args = ["recv", "-l", ":5001", "--dev", "near0", "--local", LOCAL];
            let child = start(near, &[&args, options].concat());
            let mut stream = reach("10.9.0.2:5001");
            stream.write_all(b"x").expect("taken");
            change(near, "near0", Netlink::remove);
            let ended = child.end();
            assert_eq!(ended.status, Some(3), "{ended:?}");
            assert!(ended.stderr.contains("the interface near0 was removed"), "{ended:?}");
        }
    });
}
