//! Tests that go well: both ends agree about them, and say it in the same form.

use super::schema;
use super::world::{Both, KERNEL6, Link, STACK6, World, with};
use serde_json::Value;

over_each_device! {
    amounts
    many_streams
    #[ignore = "slow"]
    both_directions
    #[ignore = "slow"]
    rates
    #[ignore = "slow"]
    omission
    settings
    version_6
}

/// The same test with `ackline bench` as the client and as the server, and what arrived in each.
fn both_roles(world: &World, options: &[&str]) -> [(Both, Vec<u64>); 2] {
    compared(world.our_client(options), world.our_server(options), options)
}

fn compared(as_client: Both, as_server: Both, options: &[&str]) -> [(Both, Vec<u64>); 2] {
    let what = options.join(" ");
    schema::compare(&as_client.client, &as_server.client, &format!("client {what}"));
    schema::compare(&as_server.server, &as_client.server, &format!("server {what}"));
    schema::compare_own_part(&as_client.client, &what);
    schema::compare_own_part(&as_server.server, &what);
    [as_client, as_server].map(|both| {
        let arrived = both.agree();
        (both, arrived)
    })
}

fn sent(both: &Both) -> u64 {
    both.client["end"]["sum_sent"]["bytes"].as_u64().expect("a number")
}

fn amounts(world: &World) {
    for (options, bytes, block) in
        [(["-n", "20M", "-l", "128K"], 20 << 20, 128 << 10), (["-k", "100", "-l", "8K"], 100 * 8192, 8192)]
    {
        let [(ours, arrived), (theirs, _)] = both_roles(world, &options);
        assert_eq!(sent(&ours), bytes, "{options:?}: {ours:#?}");
        // It waits for the peer's TCP, whose program may have some left to read.
        assert!(arrived[0] <= bytes, "{options:?}: {ours:#?}");
        // iperf3 writes up to ten blocks between two looks at what it has written.
        assert!((bytes..=bytes + 10 * block).contains(&sent(&theirs)), "{options:?}: {theirs:#?}");
        // The client ends the test when so much has arrived; iperf3 counts a read of any size as a
        // block.
        let options = [&options[..], &["-R"]].concat();
        let [(ours, arrived), _] = both_roles(world, &options);
        assert!(arrived[0] >= bytes, "{options:?}: {ours:#?}");
    }
}

fn many_streams(world: &World) {
    // Buffers of a known size, so that not much more is sent than arrives.
    for options in
        [&["-n", "16M", "-P", "8", "-w", "256K"][..], &["-n", "16M", "-P", "8", "-w", "256K", "-R"]]
    {
        for (both, arrived) in both_roles(world, options) {
            for end in [&both.client, &both.server] {
                assert_eq!(end["start"]["connected"].as_array().map(Vec::len), Some(8), "{end:#}");
                assert_eq!(end["end"]["streams"].as_array().map(Vec::len), Some(8), "{end:#}");
            }
            assert!(sent(&both) >= 16 << 20, "{both:#?}");
            assert!(arrived[0] >= 12 << 20, "{both:#?}");
        }
    }
}

fn both_directions(world: &World) {
    for options in [&["--bidir"][..], &["--bidir", "-P", "2"]] {
        // Long enough that both ends have some time even if others keep the processors busy.
        let options = [&["-t", "2", "-b", "20M"], options].concat();
        for (both, arrived) in both_roles(world, &options) {
            assert_eq!(arrived.len(), 2, "{both:#?}");
        }
    }
}

fn rates(world: &World) {
    const BLOCK: f64 = (128 << 10) as f64;
    for options in [&["-t", "2", "-b", "20M"][..], &["-t", "2", "-b", "20M", "-i", "0.5", "-R"]] {
        for (both, arrived) in both_roles(world, options) {
            assert_eq!(both.server["start"]["test_start"]["target_bitrate"], 20_000_000);
            // In whole blocks. It is a limit, which a sender without a processor falls short of,
            // but not by the factors between bits and bytes, or between units.
            let seconds = seconds(&both.client["end"]["sum_received"]);
            let (wanted, arrived) = (seconds * 20e6 / 8.0, arrived[0] as f64);
            assert!(arrived <= 1.05 * wanted + 2.0 * BLOCK, "{arrived} instead of {wanted}: {both:#?}");
            assert!(arrived >= 0.2 * wanted, "{arrived} instead of {wanted}: {both:#?}");
        }
    }
}

fn seconds(part: &Value) -> f64 {
    part["seconds"].as_f64().unwrap_or_else(|| panic!("seconds in {part:#}"))
}

fn omission(world: &World) {
    for (options, client_sends) in
        [(&["-t", "1", "-O", "1"][..], true), (&["-t", "1", "-O", "1", "-R"], false)]
    {
        let options = [options, &["-b", "20M"]].concat();
        for (both, _) in both_roles(world, &options) {
            for (end, sends) in [(&both.client, client_sends), (&both.server, !client_sends)] {
                let sums: Vec<&Value> =
                    end["intervals"].as_array().expect("intervals").iter().map(|it| &it["sum"]).collect();
                let counted = sums.iter().position(|sum| sum["omitted"] == false).expect("some count");
                assert!(counted > 0 && sums[..counted].iter().all(|sum| sum["omitted"] == true), "{end:#}");
                // What was omitted is a second; that bytes add up without it is a part of the
                // agreement.
                let by_interval: f64 = sums[counted..].iter().map(|sum| seconds(sum)).sum();
                let total = seconds(&end["end"][if sends { "sum_sent" } else { "sum_received" }]);
                assert!((by_interval - total).abs() < 0.5, "{by_interval} s, not {total} s: {end:#}");
            }
        }
    }
}

fn settings(world: &World) {
    let start = |both: &Both, key: &str| [&both.client, &both.server].map(|end| end["start"][key].clone());
    let roles = both_roles(world, &["-n", "4M", "-w", "128K", "-N", "-T", "label"]);
    for ((both, _), client_is_ours) in roles.into_iter().zip([true, false]) {
        assert_eq!(start(&both, "sock_bufsize"), [131_072, 131_072], "{both:#?}");
        assert_eq!([&both.client["title"], &both.server["title"]], ["label", "label"], "{both:#?}");
        // Our end takes what it is asked for; a kernel, twice as much.
        let actual = if client_is_ours { [131_072, 262_144] } else { [262_144, 131_072] };
        for key in ["sndbuf_actual", "rcvbuf_actual"] {
            assert_eq!(start(&both, key), actual, "{key}: {both:#?}");
        }
    }
    let roles = both_roles(world, &["-n", "4M", "-M", "1000", "-l", "1000"]);
    for ((both, _), client_is_ours) in roles.into_iter().zip([true, false]) {
        assert_eq!(start(&both, "tcp_mss"), [1000, 1000], "{both:#?}");
        assert!(sent(&both) >= 4 << 20, "{both:#?}");
        if client_is_ours {
            // What was sent are packets with so much in them, and headers of 40 bytes; timestamps
            // are a part of the 1000.
            assert_eq!(both.client["intervals"][0]["streams"][0]["pmtu"], 1040, "{both:#?}");
        }
    }
    for (both, _) in both_roles(world, &["-n", "4M", "-C", "reno"]) {
        assert_eq!(both.client["end"]["sender_tcp_congestion"], "reno", "{both:#?}");
        assert_eq!(both.client["end"]["receiver_tcp_congestion"], "reno", "{both:#?}");
    }
    for (both, _) in both_roles(world, &["-n", "4M", "-C", "reno", "-R"]) {
        assert_eq!(both.client["end"]["sender_tcp_congestion"], "reno", "{both:#?}");
    }
}

fn version_6(world: &World) {
    let options = ["-6", "-n", "4M"];
    let as_client = world.our_client_to(KERNEL6, &options);
    let as_server = world.our_server_at(STACK6, &options);
    for (both, _) in compared(as_client, as_server, &options) {
        let connected = &both.client["start"]["connected"][0];
        let [local, remote] =
            ["local_host", "remote_host"].map(|key| connected[key].as_str().expect("an address"));
        let mut ends = [local, remote];
        ends.sort_unstable();
        assert_eq!(ends, ["fd00::1", "fd00::2"], "{both:#?}");
    }
}

#[test]
fn two_of_ours() {
    with("bench::transfers::two_of_ours", Link::Ethernet, |world| {
        for options in
            [&["-n", "8M", "-P", "2"][..], &["-n", "8M", "-R"], &["-t", "1", "-b", "20M", "--bidir"]]
        {
            let both = world.two_of_ours(options);
            let arrived = both.agree();
            assert_eq!(arrived.len(), if options.contains(&"--bidir") { 2 } else { 1 });
            assert_eq!(both.client["start"]["version"], both.server["start"]["version"]);
        }
    });
}
