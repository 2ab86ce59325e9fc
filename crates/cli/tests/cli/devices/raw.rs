//! `--raw`: the stack on some ports of its host's own address, and the host beside it.

use crate::common::{BackgroundCommand, Exit, ackline, noise, run, scratch, text, until};
use crate::devices::dev::{change, no_device, reach, send_nothing, start, with_ethernet};
use crate::net::*;
use ackline::runtime::netlink::{InterfaceAddress, Netlink};
use ackline::runtime::netns::Namespace;
use ackline::runtime::testing::{has_programs, skip};
use rustix::process::Signal;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;

/// The Ethernet of two hosts on which the near one has the addresses 10.9.0.2 and fd09::2, unless
/// `name` is skipped because its kernel has no tables with an owner.
fn with_hosts(name: &str, body: impl FnOnce(&Namespace) + Send) {
    with_ethernet(name, |near| {
        for address in ["10.9.0.2/24", "fd09::2/64"] {
            let address = InterfaceAddress::network(address.parse().expect("a network"));
            change(near, "near0", move |netlink, index| netlink.add_address(index, address));
        }
        near.run(|| Netlink::open()?.await_address("fd09::2".parse().expect("an address")))
            .expect("inside")
            .expect("usable");
        // Nobody has this port, so the command ends at once unless there is no table.
        let ended = start(near, &send_nothing(&["--raw", "near0"])).end();
        if ended.stderr.contains("cannot make the firewall's table") {
            return skip(name, &ended.stderr);
        }
        assert_eq!(ended.status, Some(4), "refused by the other host, which has no such port: {ended:?}");
        body(near);
    });
}

/// A counter of the kernel's TCP in a namespace.
fn counted(at: &Namespace, name: &str) -> u64 {
    let text = at.run(|| std::fs::read_to_string("/proc/thread-self/net/snmp")).expect("inside");
    let text = text.expect("statistics");
    let mut lines = text.lines().filter(|line| line.starts_with("Tcp:")).map(str::split_whitespace);
    let (Some(names), Some(values)) = (lines.next(), lines.next()) else { panic!("{text}") };
    let mut fields = names.zip(values);
    let value = fields.find(|(field, _)| *field == name).and_then(|(_, value)| value.parse().ok());
    value.unwrap_or_else(|| panic!("no {name} in {text}"))
}

/// Resets that the host of the stack has sent by its kernel.
fn resets(near: &Namespace) -> u64 {
    counted(near, "OutRsts")
}

/// A program of the host binds the port.
fn bound(near: &Namespace, to: &str) -> std::io::Result<TcpListener> {
    near.run(|| TcpListener::bind(to)).expect("inside")
}

#[test]
fn a_file_goes_each_way_from_the_hosts_own_address() {
    with_hosts("devices::raw::a_file_goes_each_way_from_the_hosts_own_address", |near| {
        let data = noise(3_000_001, 41);
        let (_directory, path) = scratch("data");
        std::fs::write(&path, &data).expect("written");
        for (far, own) in [("10.9.0.1", "10.9.0.2"), ("[fd09::1]", "[fd09::2]")] {
            for options in [&[][..], &["--plain", "--mtu", "1400"]] {
                let listener = TcpListener::bind(format!("{far}:0")).expect("a listener");
                let to = listener.local_addr().expect("bound").to_string();
                let args = ["send", "--json", "--raw", "near0", text(&path), &to];
                let child = start(near, &[&args, options].concat());
                let (stream, from) = accept(&listener);
                assert!(from.to_string().starts_with(own) && from.port() >= 61_000, "{from}");
                assert!(read_all(stream).expect("read to the end") == data, "{own} {options:?}");
                let ended = child.end();
                succeeded(&ended);
                assert_eq!(ended.json()["offload"], options.is_empty());

                let child =
                    start(near, &[&["recv", "-q", "--raw", "near0", "-l", ":5001"], options].concat());
                let ended = child.end_while(|| {
                    // Until the command has its ports the kernel refuses.
                    assert_eq!(deliver(reach(&format!("{own}:5001")), &data).expect("taken"), 0);
                });
                succeeded(&ended);
                assert!(ended.stdout == data, "{own} {options:?}: {} bytes", ended.stdout.len());
            }
        }
    });
}

#[test]
fn nothing_is_reset_and_the_hosts_own_traffic_goes_on() {
    with_hosts("devices::raw::nothing_is_reset_and_the_hosts_own_traffic_goes_on", |near| {
        let data = noise(2_000_001, 42);
        let child = start(near, &["recv", "-v", "--raw", "near0", "-l", ":5001"]);
        // It says so when it has its ports.
        let mut first = until("a connection", || {
            TcpStream::connect_timeout(&"10.9.0.2:5001".parse().expect("an address"), Duration::from_secs(1))
                .ok()
        });
        let before = resets(near);
        let ended = child.end_while(|| {
            first.write_all(&data[..1_000_000]).expect("taken");
            let host = bound(near, "10.9.0.2:5002").expect("not the stack's");
            let mut to_host = TcpStream::connect("10.9.0.2:5002").expect("the kernel listens");
            let (mut at_host, _) = host.accept().expect("a connection");
            for turn in 0..100u8 {
                to_host.write_all(&[turn]).expect("sent");
                let mut echo = [0];
                at_host.read_exact(&mut echo).expect("received");
                at_host.write_all(&echo).expect("sent");
                to_host.read_exact(&mut echo).expect("received");
                assert_eq!(echo, [turn]);
            }
            assert_eq!(resets(near), before, "the kernel has reset something");
            let refused = TcpStream::connect("10.9.0.2:5003").expect_err("nobody listens");
            assert_eq!(refused.kind(), ErrorKind::ConnectionRefused, "the kernel still refuses for itself");
            assert_eq!(resets(near), before + 1);
            assert_eq!(deliver(first, &data[1_000_000..]).expect("taken"), 0);
        });
        succeeded(&ended);
        assert!(ended.stdout == data, "{} bytes", ended.stdout.len());
    });
}

#[test]
fn without_a_rule_the_kernel_resets() {
    with_hosts("devices::raw::without_a_rule_the_kernel_resets", |near| {
        let listener = TcpListener::bind("10.9.0.1:0").expect("a listener");
        let to = listener.local_addr().expect("bound").to_string();
        let options = ["--raw", "near0", "--raw-firewall", "none", "--ports", "7000-7001"];
        let before = resets(near);
        let ended = start(near, &[&["send", "/dev/null", &to], &options[..]].concat()).end();
        assert_ne!(ended.status, Some(0), "{ended:?}");
        assert!(resets(near) > before, "the tests of resets show nothing");
    });
}

#[test]
fn ports_are_reserved_meanwhile_and_free_afterwards() {
    with_hosts("devices::raw::ports_are_reserved_meanwhile_and_free_afterwards", |near| {
        let taken = |to: &str| bound(near, to).is_err_and(|error| error.kind() == ErrorKind::AddrInUse);
        let child = start(near, &["recv", "--raw", "near0", "-l", ":5001", "--ports", "5001-5003"]);
        drop(reach("10.9.0.2:5001"));
        let ended = child.end();
        assert_eq!(ended.status, Some(0), "an empty stream: {ended:?}");
        let child = start(near, &["recv", "--raw", "near0", "-l", ":5001", "--ports", "5001-5003"]);
        let stream = reach("[fd09::2]:5001");
        for to in ["10.9.0.2:5001", "0.0.0.0:5002", "[fd09::2]:5003", "[::]:5001"] {
            assert!(taken(to), "{to}");
        }
        drop(bound(near, "0.0.0.0:5004").expect("none of the stack's"));
        let complaint = no_device(near, &["recv", "--raw", "near0", "-l", ":5002"]);
        assert!(complaint.starts_with("the port 10.9.0.2:5002 is taken on this machine"), "{complaint}");
        drop(stream);
        succeeded(&child.end());
        for to in ["10.9.0.2:5001", "0.0.0.0:5002", "[fd09::2]:5003"] {
            drop(bound(near, to).unwrap_or_else(|error| panic!("{to}: {error}")));
        }
        let _listener = bound(near, "0.0.0.0:5001").expect("free");
        let complaint = no_device(near, &["recv", "--raw", "near0", "-l", ":5001"]);
        assert!(
            complaint.contains("10.9.0.2:5001 is taken") && complaint.contains("ss -tanp"),
            "{complaint}"
        );
        drop(TcpStream::connect("10.9.0.2:5001").expect("the kernel's listener is left alone"));
    });
}

#[test]
fn a_command_that_is_killed_leaves_nothing() {
    let name = "devices::raw::a_command_that_is_killed_leaves_nothing";
    let has_nft = has_programs(&format!("{name}: the firewall's tables"), &["nft"]);
    with_hosts(name, |near| {
        let child = start(near, &["recv", "--raw", "near0", "-l", ":5001"]);
        let mut stream = reach("10.9.0.2:5001");
        stream.write_all(b"x").expect("taken");
        assert!(!has_nft || ruleset(near).contains("ackline-raw-"), "no table while it runs");
        child.signal(Signal::KILL);
        drop(child.end());
        if has_nft {
            let rules = ruleset(near);
            assert!(!rules.contains("ackline"), "{rules}");
        }
        // The kernel is asked again: nothing keeps the segments from it any more.
        let refused = TcpStream::connect_timeout(
            &"10.9.0.2:5001".parse().expect("an address"),
            Duration::from_secs(30),
        );
        assert_eq!(refused.expect_err("nobody listens").kind(), ErrorKind::ConnectionRefused);
        drop(bound(near, "10.9.0.2:5001").expect("free"));
    });
}

/// The tables of the firewall.
fn ruleset(at: &Namespace) -> String {
    let output = at.run(|| Command::new("nft").args(["list", "ruleset"]).output()).expect("inside");
    String::from_utf8_lossy(&output.expect("it runs").stdout).into_owned()
}

#[test]
fn a_rule_by_hand_takes_the_place_of_the_table() {
    const NAME: &str = "devices::raw::a_rule_by_hand_takes_the_place_of_the_table";
    if !has_programs(NAME, &["nft"]) {
        return;
    }
    with_hosts(NAME, |near| {
        // Root without one of its capabilities.
        let limited = |args: &[&str]| {
            let mut command = Command::new("setpriv");
            command.arg("--bounding-set=-net_admin").arg(env!("CARGO_BIN_EXE_ackline")).args(args);
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
            near.run(|| BackgroundCommand::start(&mut command)).expect("inside")
        };
        let ended = limited(&send_nothing(&["--raw", "near0"])).end();
        if ended.stderr.starts_with("setpriv") {
            return skip(NAME, &ended.stderr);
        }
        assert_eq!(ended.status, Some(3), "{ended:?}");
        let complaint = ended.complaint();
        assert!(complaint.contains("it needs CAP_NET_ADMIN in this network namespace"), "{complaint}");
        // What it says works.
        let (_, rest) = complaint.split_once("install the rule as root: ").expect("a command");
        let (command, options) = rest.split_once(" and add ").expect("options");
        let made = near.run(|| Command::new("sh").args(["-c", command]).status()).expect("inside");
        assert!(made.is_ok_and(|status| status.success()), "{command}");
        let options: Vec<&str> = options.split(' ').collect();
        let listener = TcpListener::bind("10.9.0.1:0").expect("a listener");
        let to = listener.local_addr().expect("bound").to_string();
        let child = limited(&[&["send", "/dev/null", "--raw", "near0", &to], &options[..]].concat());
        let (stream, _) = accept(&listener);
        assert!(read_all(stream).expect("read to the end").is_empty());
        succeeded(&child.end());
    });
}

#[test]
fn missing_rights_are_told_with_how_to_get_them() {
    const NAME: &str = "devices::raw::missing_rights_are_told_with_how_to_get_them";
    with_hosts(NAME, |near| {
        let Some(ended) = near.run(|| as_nobody(&send_nothing(&["--raw", "near0"]))).expect("inside") else {
            return skip(NAME, &"cannot become another user");
        };
        assert_eq!(ended.status, Some(3), "{ended:?}");
        let complaint = ended.complaint();
        assert!(
            complaint.contains("needs CAP_NET_RAW, and the firewall's table CAP_NET_ADMIN"),
            "{complaint}"
        );
        assert!(complaint.contains("setcap cap_net_raw,cap_net_admin+ep /"), "{complaint}");
    });
}

#[test]
fn an_interface_that_is_removed_ends_the_transfer_and_one_that_comes_back_does_not() {
    with_hosts(
        "devices::raw::an_interface_that_is_removed_ends_the_transfer_and_one_that_comes_back_does_not",
        |near| {
            let data = noise(20_000_000, 43);
            let (_directory, path) = scratch("data");
            std::fs::write(&path, &data).expect("written");
            let begin = || -> (BackgroundCommand, TcpStream) {
                let listener = TcpListener::bind("10.9.0.1:0").expect("a listener");
                let to = listener.local_addr().expect("bound").to_string();
                let child = start(near, &["send", "--raw", "near0", text(&path), &to]);
                let (mut stream, _) = accept(&listener);
                stream.read_exact(&mut [0; 100_000]).expect("data");
                (child, stream)
            };
            let (child, stream) = begin();
            change(near, "near0", Netlink::set_down);
            #[expect(clippy::disallowed_methods, reason = "the interface is down for a while")]
            std::thread::sleep(Duration::from_millis(600));
            change(near, "near0", Netlink::set_up);
            let ended: Exit = child.end_while(|| {
                let rest = read_all(stream).expect("read to the end");
                assert!(rest[..] == data[100_000..], "{} bytes differ", rest.len());
            });
            succeeded(&ended);
            assert!(
                ended.stderr.contains("the interface near0 is down: nothing moves until it is up"),
                "{ended:?}"
            );

            let (child, _stream) = begin();
            change(near, "near0", Netlink::remove);
            let ended = child.end();
            assert_eq!(ended.status, Some(3), "{ended:?}");
            assert!(
                ended.complaint().starts_with("ackline: the interface near0 was removed after "),
                "{ended:?}"
            );
        },
    );
}

#[test]
fn an_interface_that_cannot_be_used_is_told() {
    with_ethernet("devices::raw::an_interface_that_cannot_be_used_is_told", |near| {
        let with = |name| no_device(near, &send_nothing(&["--raw", name]));
        assert_eq!(with("near9"), "there is no interface near9; there are: lo (up), near0 (up)");
        assert_eq!(with("lo"), "--raw lo: the kernel's loopback, where no other host is");
        // A link-local address may be there.
        let quiet = near.run(|| Netlink::open()?.addresses()).expect("inside").expect("listed");
        if !quiet.iter().any(|(_, net)| !net.addr().is_loopback()) {
            assert!(with("near0").contains("the interface has no address to share"), "{}", with("near0"));
        }
        let address = InterfaceAddress::network("10.9.0.2/24".parse().expect("a network"));
        change(near, "near0", move |netlink, index| netlink.add_address(index, address));
        let usage = |options: &[&str], to: &str| {
            let ended = start(near, &[&["send", "/dev/null", to, "--raw", "near0"], options].concat()).end();
            assert_eq!(ended.status, Some(2), "{ended:?}");
            ended.complaint().to_owned()
        };
        let complaint = usage(&["--local", "10.9.0.7/24"], "10.9.0.1:9");
        assert!(complaint.contains("10.9.0.7 is none of the addresses of near0: 10.9.0.2"), "{complaint}");
        assert!(usage(&[], "10.9.0.2:9").contains("this machine's own address"));
        assert!(
            usage(&["--mtu", "9000"], "10.9.0.1:9").contains("more than the 1500 bytes that near0 carries")
        );
        assert!(usage(&["--raw-firewall", "none"], "10.9.0.1:9").contains("needs --ports LOW-HIGH"));
        change(near, "near0", Netlink::set_down);
        assert_eq!(with("near0"), "the interface near0 is down: ip link set near0 up");
    });
    for options in [
        &["--raw", "nic0", "--dev", "nic0"][..],
        &["--raw", "nic0", "--tun", "ack0"],
        &["--raw", "nic0", "--socket", "vm"],
        &["--raw", "nic0", "--ports", "0-5"],
        &["--raw", "nic0", "--ports", "9-5"],
        &["--ports", "5001"],
        &["--raw-firewall", "none"],
    ] {
        let ended = run(&send_nothing(options));
        assert_eq!(ended.status, Some(2), "{ended:?}");
    }
}

#[test]
fn bench_takes_as_many_ports_as_it_has_streams() {
    with_hosts("devices::raw::bench_takes_as_many_ports_as_it_has_streams", |near| {
        let server = start(near, &["bench", "-s", "-1", "--raw", "near0", "-p", "5201"]);
        // From the far host, whose own address is used in the same way.
        let far = |args: &[&str]| BackgroundCommand::start(&mut ackline(args));
        let ended = until("a test", || {
            let client = far(&[
                "bench", "-c", "10.9.0.2", "-p", "5201", "--raw", "far0", "-n", "4M", "-P", "12", "--bidir",
            ]);
            let ended = client.end();
            (ended.status == Some(0)).then_some(ended)
        });
        succeeded(&ended);
        succeeded(&server.end());
    });
}

#[test]
fn a_stock_nc_is_a_peer_in_both_directions() {
    const NAME: &str = "devices::raw::a_stock_nc_is_a_peer_in_both_directions";
    if !has_programs(NAME, &["nc"]) {
        return;
    }
    with_hosts(NAME, |near| {
        let data = noise(1_000_001, 44);
        let (directory, path) = scratch("data");
        std::fs::write(&path, &data).expect("written");
        let copy = directory.path().join("copy");
        let file = std::fs::File::create(&copy).expect("made");
        let listening = BackgroundCommand::start(
            Command::new("nc").args(["-l", "5001"]).stdin(Stdio::null()).stdout(file),
        );
        let sent = until("a transfer", || {
            let ended = start(near, &["send", "--raw", "near0", text(&path), "10.9.0.1:5001"]).end();
            (ended.status == Some(0)).then_some(ended)
        });
        succeeded(&sent);
        drop(listening.end());
        assert!(std::fs::read(&copy).expect("there") == data);

        let receiving = start(
            near,
            &["recv", "-q", "--raw", "near0", "-l", ":5002", "--keep", "-O", text(directory.path())],
        );
        let to: SocketAddr = "10.9.0.2:5002".parse().expect("an address");
        drop(until("a listener", || TcpStream::connect_timeout(&to, Duration::from_secs(1)).ok()));
        let input = std::fs::File::open(&path).expect("there");
        let delivered = BackgroundCommand::start(
            Command::new("nc").args(["-N", "10.9.0.2", "5002"]).stdin(input).stdout(Stdio::null()),
        );
        assert_eq!(delivered.end().status, Some(0));
        until("the file", || {
            let entries = std::fs::read_dir(directory.path()).expect("a directory");
            let contents = entries.filter_map(|entry| std::fs::read(entry.ok()?.path()).ok());
            (contents.filter(|found| *found == data).count() == 3).then_some(())
        });
        receiving.signal(Signal::TERM);
        drop(receiving.end());
    });
}
