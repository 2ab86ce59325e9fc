//! `--pcap`, read by tshark.

use crate::common::{BackgroundCommand, Exit, ackline, run, scratch, text};
use crate::net::*;
use ackline::runtime::testing::{has_programs, skip};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

/// What no dissector of tshark takes for a protocol.
fn dull(length: usize) -> Vec<u8> {
    vec![b'Z'; length]
}

/// What tshark prints of the packets that `filter` takes: these fields, with tabs between them.
pub(crate) fn tshark(file: &Path, filter: &str, fields: &[&str]) -> Vec<Vec<String>> {
    let mut command = Command::new("tshark");
    command.args(["-n", "-r", text(file), "-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"]);
    command.args(["-Y", filter, "-T", "fields"]);
    for field in fields {
        command.args(["-e", field]);
    }
    let output = command.output().expect("tshark runs");
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect()
}

/// No packet is broken, and every checksum that can be checked is right. Linux writes 0xffff for 0
/// (`skb_checksum_help`), which is the same number in ones' complement; tshark takes it for an
/// error.
pub(crate) fn assert_sound(file: &Path) {
    let broken = "_ws.malformed || (tcp.checksum.status == 0 && tcp.checksum != 0xffff) || ip.checksum.status == 0 \
                  || tcp.analysis.lost_segment || tcp.analysis.ack_lost_segment";
    let fields = ["frame.number", "_ws.col.Info", "tcp.checksum.status"];
    assert_eq!(tshark(file, broken, &fields), Vec::<Vec<String>>::new());
    assert!(!tshark(file, "tcp.checksum.status == 1", &["frame.number"]).is_empty(), "some were checked");
}

/// Data that left, and data that arrived, for the first time.
const OUT: &str = "frame.packet_flags_direction == 2 && frame.comment contains \"class: data\"";
const IN: &str = "frame.packet_flags_direction == 1 && !tcp.analysis.retransmission";

/// Bytes of data in the packets that `filter` takes.
fn payload(file: &Path, filter: &str) -> usize {
    let lengths = tshark(file, filter, &["tcp.len"]);
    lengths.iter().map(|row| row[0].parse::<usize>().expect("a length")).sum()
}

#[test]
fn tshark_reads_what_send_sent_and_why() {
    const NAME: &str = "watchers::capture::tshark_reads_what_send_sent_and_why";
    if !has_programs(NAME, &["tshark"]) {
        return;
    }
    with_tun(NAME, || {
        let split_and_cut = ["--pcap-split", "--pcap-snaplen", "128"];
        for options in [&[][..], &["--pcap-split"], &["--plain"], &split_and_cut[1..], &split_and_cut] {
            let (directory, path) = scratch("data");
            let capture = directory.path().join("out.pcapng");
            std::fs::write(&path, dull(3_000_001)).expect("written");
            let (listener, to) = kernel_listener();
            let args = ["send", text(&path), &to, "--pcap", text(&capture), "--pcap-buffer", "256M"];
            let child = BackgroundCommand::start(&mut ackline(&[&args[..], options].concat()));
            let (stream, _) = accept(&listener);
            read_all(stream).expect("read to the end");
            let ended = child.end();
            succeeded(&ended);
            let all = tshark(&capture, "frame", &["frame.len"]);
            assert!(ended.stderr.contains(&format!("captured {} packets in ", all.len())), "{ended:?}");
            assert_sound(&capture);
            assert_eq!(payload(&capture, OUT), 3_000_001, "{options:?}");
            let longest = all.iter().map(|row| row[0].parse::<usize>().expect("a length")).max();
            let whole = !options.contains(&"--plain") && !options.contains(&"--pcap-split");
            assert_eq!(longest > Some(1500), whole, "{options:?}: {longest:?}");
            let ours = |filter: &str| {
                let filter = format!("frame.packet_flags_direction == 2 && ({filter})");
                tshark(&capture, &filter, &["frame.comment"])
            };
            let syns = ours("tcp.flags.syn == 1");
            assert!(
                syns.iter().all(|row| row[0].starts_with("sent: syn; class: syn; connection: ")),
                "{syns:?}"
            );
            // A slow machine brings probes and retransmissions, too.
            let data = ours("tcp.len > 0");
            assert!(data.iter().all(|row| row[0].starts_with("sent: ")), "{data:?}");
            assert!(data.iter().any(|row| row[0].starts_with("sent: new-data; class: data; ")), "{data:?}");
        }
    });
}

/// The most NOPs in a row among a header's options, which are hexadecimal.
fn nops_in_a_row(options: &str) -> usize {
    let octets: Vec<u8> = (0..options.len() / 2)
        .map(|at| u8::from_str_radix(&options[2 * at..2 * at + 2], 16).expect("hexadecimal"))
        .collect();
    let (mut at, mut row, mut most) = (0, 0, 0);
    while let Some(kind) = octets.get(at) {
        row = if *kind == 1 { row + 1 } else { 0 };
        most = most.max(row);
        at += if *kind == 1 { 1 } else { usize::from(octets[at + 1]).max(2) };
    }
    most
}

/// L4S from one host of ackline's to another, which the kernel joins: accurate ECN in the
/// handshake, ACE in each segment, the option on ACKs, ECT(1) on data. tshark has nothing to warn
/// of.
#[test]
fn tshark_reads_accurate_ecn_and_prague_without_a_warning() {
    const NAME: &str = "watchers::capture::tshark_reads_accurate_ecn_and_prague_without_a_warning";
    if !has_programs(NAME, &["tshark"]) {
        return;
    }
    with_tun(NAME, || {
        std::fs::write("/proc/sys/net/ipv4/ip_forward", "1").expect("the namespace is ours");
        for options in [&["--pcap-split"][..], &["--plain"], &["-o", "ecn_control=on"]] {
            let (directory, path) = scratch("data");
            let capture = directory.path().join("out.pcapng");
            std::fs::write(&path, dull(1_000_001)).expect("written");
            let copy = directory.path().join("copy");
            let there = ["--local", "198.18.4.2/24", "--peer", "198.18.4.1", "--tun", "there"];
            let recv = ["recv", "-l", "198.18.4.2:5001", "-o", "ecn=accurate", "-O", text(&copy)];
            let recv = BackgroundCommand::start(&mut ackline(&[&recv[..], &there].concat()));
            crate::common::until("the interface", || std::net::TcpListener::bind("198.18.4.1:0").ok());
            let send = ["send", "-o", "ecn=accurate", "--cc", "prague", text(&path), "198.18.4.2:5001"];
            let more = ["--pcap", text(&capture), "--pcap-buffer", "256M"];
            succeeded(&run(&[&send[..], &more, options].concat()));
            succeeded(&recv.end());
            assert_sound(&capture);
            // Notes are below 0x00600000. tshark adds up the NOPs of a header for one of its warnings.
            let warned =
                tshark(&capture, "_ws.expert.severity >= 0x00600000", &["_ws.expert.message", "tcp.options"]);
            let other = warned.iter().find(|row| {
                !row[0].contains("NOP in a row") || row[1].is_empty() || nops_in_a_row(&row[1]) > 3
            });
            assert_eq!(other, None, "{options:?}");
            let count = |filter: &str| tshark(&capture, filter, &["frame.number"]).len();
            // SYN with AE, CWR and ECE, and the SYN-ACK that says how it arrived: Not-ECT, or ECT(0).
            let answer = if options.contains(&"ecn_control=on") { "0x112" } else { "0x092" };
            assert_eq!(count("tcp.flags == 0x1c2"), 1, "{options:?}");
            assert_eq!(count(&format!("tcp.flags == {answer}")), 1, "{options:?}");
            let (l4s, all) = (
                count("tcp.len > 0 && ip.dsfield.ecn == 1"),
                count("tcp.len > 0 && !tcp.analysis.retransmission"),
            );
            assert!(l4s == all && l4s > 10, "{options:?}: {l4s} of {all} packets with data are L4S");
            assert!(count("tcp.option_kind == 172 || tcp.option_kind == 174") > 2, "{options:?}");
        }
    });
}

#[test]
fn tshark_reads_what_recv_received_over_ipv6() {
    const NAME: &str = "watchers::capture::tshark_reads_what_recv_received_over_ipv6";
    if !has_programs(NAME, &["tshark"]) {
        return;
    }
    with_tun(NAME, || {
        for options in [&["--pcap-split"][..], &["--pcap-snaplen", "128"]] {
            let (directory, path) = scratch("copy");
            let capture = directory.path().join("in.pcapng");
            let args = ["recv", "-l", "[fd00::2]:5001", "-O", text(&path), "--pcap", text(&capture)];
            let child = BackgroundCommand::start(&mut ackline(&[&args[..], options].concat()));
            let stream =
                crate::common::until("a connection", || std::net::TcpStream::connect("[fd00::2]:5001").ok());
            deliver(stream, &dull(1_000_000)).expect("delivered");
            succeeded(&child.end());
            assert_sound(&capture);
            assert_eq!(payload(&capture, IN), 1_000_000);
            let acks = tshark(&capture, "frame.comment contains \"sent: ack-by-\"", &["ipv6.src", "tcp.len"]);
            assert!(!acks.is_empty() && acks.iter().all(|row| row[..] == ["fd00::2", "0"]), "{acks:?}");
        }
    });
}

#[test]
fn snap_length_and_rotation_bound_the_files() {
    let (directory, path) = scratch("out.pcapng");
    let sizes = ["--pcap-snaplen", "128", "--pcap-size", "16K", "--pcap-files", "3"];
    let args = ["demo", "--device", "channel", "--size", "8M", "--plain", "--pcap", text(&path)];
    let ended = run(&[&args[..], &sizes].concat());
    succeeded(&ended);
    let files: Vec<_> = std::fs::read_dir(directory.path()).expect("a directory").flatten().collect();
    assert_eq!(files.len(), 3, "{files:?}");
    for file in files {
        assert!(file.metadata().expect("a file").len() <= 16 << 10, "{file:?}");
    }
}

/// Runs `demo` with `option`, a file on a disk of 256 KiB and what follows that; `None` if there
/// can be no such disk. How it ended, and the last file.
pub(crate) fn demo_on_a_small_disk(name: &str, option: &str, more: &str) -> Option<(Exit, Vec<u8>)> {
    let (directory, copy) = scratch("copy");
    let disk = directory.path().join("disk");
    std::fs::create_dir(&disk).expect("a directory");
    let script = format!(
        "mount -t tmpfs -o size=256k none {disk} || exit 77
         {program} demo --device channel --json --plain --size 16M {option} {disk}/out {more}
         status=$?
         cp $(ls {disk}/out* | tail -n 1) {copy}
         exit $status",
        disk = text(&disk),
        program = env!("CARGO_BIN_EXE_ackline"),
        copy = text(&copy),
    );
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", &script]);
    let ended = Exit::from(command.output().ok()?);
    if ended.status == Some(77) || !copy.exists() {
        skip(name, &format!("no disk of its own: {}", ended.stderr.trim()));
        return None;
    }
    Some((ended, std::fs::read(&copy).expect("readable")))
}

#[test]
fn a_full_disk_cuts_the_capture_short_and_not_the_transfer() {
    const NAME: &str = "watchers::capture::a_full_disk_cuts_the_capture_short_and_not_the_transfer";
    let Some((ended, file)) = demo_on_a_small_disk(NAME, "--pcap", "") else { return };
    assert_is_cut_short(&ended, &file);
}

#[test]
fn a_full_disk_cuts_a_rotation_short_and_not_the_transfer() {
    const NAME: &str = "watchers::capture::a_full_disk_cuts_a_rotation_short_and_not_the_transfer";
    let more = "--pcap-size 100K --pcap-files 9";
    let Some((ended, file)) = demo_on_a_small_disk(NAME, "--pcap", more) else { return };
    assert_is_cut_short(&ended, &file);
    assert!(file.len() < 100 << 10, "the third file: {}", file.len());
}

/// The transfer went on, and both the warning and the file say what the file lacks.
fn assert_is_cut_short(ended: &Exit, file: &[u8]) {
    succeeded(ended);
    assert_eq!(ended.json()["ok"], true);
    let warning = ended.stderr.lines().find(|line| line.starts_with("warning: ")).expect("a warning");
    assert!(
        warning.contains("is cut short after") && warning.ends_with("no space left on device"),
        "{warning}"
    );
    let blocks = blocks(file);
    assert!(blocks.len() > 3 && file.len() <= 256 << 10, "{}", file.len());
    let (kind, last) = blocks.last().expect("blocks");
    assert_eq!(*kind, 5, "interface statistics");
    let said = b"cut short: ";
    assert!(last.windows(said.len()).any(|window| window == said), "the file says it, too");
}

/// The type and bytes of each block, all of which are whole.
fn blocks(mut file: &[u8]) -> Vec<(u32, &[u8])> {
    let number = |bytes: &[u8]| u32::from_le_bytes(bytes[..4].try_into().expect("four bytes"));
    let mut blocks = vec![];
    while !file.is_empty() {
        let length = number(&file[4..]) as usize;
        let (block, rest) = file.split_at(length);
        assert_eq!(number(&block[length - 4..]) as usize, length);
        blocks.push((number(block), block));
        file = rest;
    }
    blocks
}

#[test]
fn wrong_options_are_one_error_before_anything_starts() {
    for args in [
        &["--pcap-split"][..],
        &["--pcap-snaplen", "128"],
        &["--pcap", "x", "--pcap-files", "2"],
        &["--pcap", "x", "--pcap-size", "100"],
        &["--pcap", "x", "--pcap-size", "1M", "--pcap-files", "0"],
        &["--pcap", "x", "--pcap-buffer", "1K"],
        &["--pcap-link", "raw"],
        &["--pcap", "x", "--pcap-link", "ethernet"],
        &["--trace-size", "1M"],
        &["--trace", "x", "--trace-size", "100"],
        &["--trace", "x", "--trace-buffer", "1K"],
    ] {
        let ended = run(&[&["demo", "--device", "channel", "--size", "1"], args].concat());
        assert_eq!(ended.status, Some(2), "{args:?}: {ended:?}");
    }
    let (directory, _) = scratch("x");
    let nowhere = directory.path().join("none/out.pcapng");
    for option in ["--pcap", "--trace"] {
        let ended = run(&["demo", "--device", "channel", "--size", "1", "--quiet", option, text(&nowhere)]);
        assert_eq!(ended.status, Some(5), "{ended:?}");
        let complaint = ended.complaint();
        assert!(
            complaint.contains(&format!("cannot write {option} "))
                && complaint.ends_with("no such file or directory"),
            "{complaint}"
        );
    }
}

/// It holds what others have said.
#[test]
fn a_capture_is_its_users_alone() {
    let (_directory, file) = scratch("a.pcapng");
    let args = ["demo", "--json", "--device", "channel", "--size", "100k", "--pcap", text(&file)];
    succeeded(&run(&args));
    let mode = std::fs::metadata(&file).expect("written").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // Whoever has made it for others has a reason.
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).expect("ours");
    succeeded(&run(&args));
    assert_eq!(std::fs::metadata(&file).expect("written").permissions().mode() & 0o777, 0o644);
}
