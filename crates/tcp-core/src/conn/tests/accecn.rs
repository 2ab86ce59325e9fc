//! Accurate ECN on a connection (RFC 9768): what the handshake agrees on with every fall-back, what
//! its segments say, and that marks arrive at the sender.

use super::*;
use crate::config::Ecn as Mode;
use crate::info::Info;
use crate::wire::AccEcnOption;
use std::vec;

fn mode(name: &str) -> Mode {
    match name {
        "accecn" => Mode::Accurate,
        "classic" => Mode::Classic,
        _ => Mode::Off,
    }
}

fn with_ecn(ecn: Mode) -> ConnConfig {
    ConnConfig { ecn, ..config() }
}

fn bits(text: &str) -> TcpFlags {
    TcpFlags::ace_of(u32::from_str_radix(text, 2).expect("three bits"))
}

fn codepoint(name: &str) -> Ecn {
    match name {
        "not" => Ecn::NotEct,
        "ect0" => Ecn::Ect0,
        "ect1" => Ecn::Ect1,
        "ce" => Ecn::Ce,
        _ => panic!("{name} is no codepoint"),
    }
}

fn info(bench: &Bench) -> Info {
    bench.conn.info(bench.now)
}

/// What was sent, in words.
fn words(sent: &[SentSegment]) -> Vec<String> {
    let word = |sent: &SentSegment| {
        let kind = match (sent.flags.contains(SYN), sent.flags.contains(ACK)) {
            (true, false) => "syn",
            (true, true) => "sa",
            _ => "ack",
        };
        let option = if sent.options.accecn.is_some() { "+opt" } else { "" };
        format!("{kind}:{:03b}{option}", sent.flags.ace())
    };
    sent.iter().map(word).collect()
}

/// Plays events of a handshake, and returns what our side does, and what it has agreed on.
fn play(own: &str, events: &str) -> String {
    let config = Arc::new(with_ecn(mode(own)));
    let mut bench: Option<Bench> = None;
    let mut client = false;
    let mut out = Vec::new();
    for event in events.split(' ') {
        let parts: Vec<&str> = event.split(':').collect();
        let syn = |extra: TcpFlags, ack| segment(SYN | extra | bits(parts[1]), IRS, ack, &[]);
        let disposition = match (parts[0], bench.as_mut()) {
            ("open", None) => {
                let config = config.clone();
                bench = Some(Bench::with(|ctx| Connection::connect(ctx, tuple(), config, ISS, 0)));
                client = true;
                Disposition::Handled
            }
            ("syn", None) => {
                let offer = Offer::of(&syn(TcpFlags::NONE, SeqNum(0)), codepoint(parts[2]));
                let half_open =
                    HalfOpen { syns: Syns::passive(ISS, IRS, offer), first_sent: None, segs_in: 1 };
                let config = config.clone();
                bench = Some(Bench::with(|ctx| Connection::accept(ctx, tuple(), config, 0, half_open)));
                Disposition::Handled
            }
            ("t", Some(bench)) => {
                bench.now += Duration::from_secs(100);
                bench.conn.on_timeout(ctx!(bench));
                Disposition::Handled
            }
            ("syn", Some(bench)) => bench.arrive_marked(&syn(TcpFlags::NONE, SeqNum(0)), codepoint(parts[2])),
            ("sa", Some(bench)) => bench.arrive_marked(&syn(ACK, ISS + 1), codepoint(parts[2])),
            ("ack", Some(bench)) => bench.arrive(&segment(ACK | bits(parts[1]), IRS + 1, ISS + 1, &[])),
            _ => panic!("{event} is no event here"),
        };
        let bench = bench.as_mut().expect("the first event makes one");
        if let Disposition::Reset(_) = disposition {
            out.push("rst".into());
            return out.join(" ");
        }
        out.extend(words(&bench.drain()));
        if parts[0] == "ack" {
            assert_eq!(bench.conn.state(), State::Established);
            out.push("est".into());
        }
    }
    let mut bench = bench.expect("there were events");
    if bench.conn.state() != State::Established {
        return out.join(" ");
    }
    let info = info(&bench);
    let mode = match info.ecn {
        Mode::Accurate => "accecn",
        Mode::Classic => "classic",
        _ => "none",
    };
    bench.conn.write(b"data").expect("the connection is open");
    let sent = bench.drain();
    let data = sent.iter().find(|sent| sent.len > 0).expect("the window is open");
    let ect = if data.ecn == Ecn::NotEct { "no" } else { "yes" };
    let mut line = format!("{} | mode={mode} ect={ect}", out.join(" "));
    if info.ecn == Mode::Accurate {
        line += &if client {
            format!(" r.cep={}", 5 + info.ce_received)
        } else {
            format!(" s.cep={}", 5 + info.delivered_ce)
        };
    }
    line
}

#[test]
fn a_listener_agrees_to_what_the_syn_asks_for() {
    for (own, syn, ecn, expected) in [
        ("accecn", "111", "not", "sa:010+opt"),
        ("accecn", "111", "ect1", "sa:011+opt"),
        ("accecn", "111", "ect0", "sa:100+opt"),
        ("accecn", "111", "ce", "sa:110+opt"),
        ("accecn", "000", "not", "sa:000"),
        ("accecn", "011", "ect0", "sa:001"),
        ("accecn", "001", "not", "sa:010+opt"),
        ("accecn", "101", "ce", "sa:110+opt"),
        ("classic", "111", "not", "sa:001"),
        ("classic", "011", "not", "sa:001"),
        ("off", "111", "ce", "sa:000"),
        ("classic", "101", "not", "sa:000"),
    ] {
        assert_eq!(play(own, &format!("syn:{syn}:{ecn}")), expected, "{own} {syn} {ecn}");
    }
}

#[test]
fn a_client_takes_the_answer_or_falls_back() {
    for (own, answer, expected) in [
        ("accecn", "000", "syn:111 ack:000 | mode=none ect=no"),
        ("accecn", "001", "syn:111 ack:000 | mode=classic ect=yes"),
        ("accecn", "010", "syn:111 ack:010+opt | mode=accecn ect=yes r.cep=5"),
        ("accecn", "111", "syn:111 ack:000 | mode=none ect=no"),
        ("accecn", "101", "syn:111 ack:010+opt | mode=accecn ect=yes r.cep=5"),
        // A SYN that left without ECT cannot arrive with it.
        ("accecn", "011", "syn:111 ack:010+opt | mode=accecn ect=no r.cep=5"),
        ("accecn", "100", "syn:111 ack:010+opt | mode=accecn ect=no r.cep=5"),
        ("accecn", "110", "syn:111 ack:010+opt | mode=accecn ect=no r.cep=5"),
        ("classic", "001", "syn:011 ack:000 | mode=classic ect=yes"),
        ("classic", "011", "syn:011 ack:000 | mode=none ect=no"),
        ("classic", "101", "syn:011 ack:000 | mode=classic ect=yes"),
        ("off", "010", "syn:000 ack:000 | mode=none ect=no"),
    ] {
        assert_eq!(play(own, &format!("open sa:{answer}:not")), expected, "{own} {answer}");
    }
}

#[test]
fn a_listener_survives_repeated_syns_and_lost_syn_acks() {
    for (own, events, expected) in [
        ("accecn", "syn:111:not ack:010", "sa:010+opt est | mode=accecn ect=yes s.cep=5"),
        (
            "accecn",
            "syn:111:ect0 t t t ack:101",
            "sa:100+opt sa:100 sa:000 sa:000 est | mode=accecn ect=no s.cep=5",
        ),
        ("accecn", "syn:111:not syn:111:ce ack:010", "sa:010+opt sa:110 est | mode=accecn ect=yes s.cep=5"),
        ("accecn", "syn:111:ect0 syn:000:not ack:010", "sa:100+opt sa:010 est | mode=accecn ect=no s.cep=5"),
        ("accecn", "syn:000:not syn:111:ect0 ack:000", "sa:000 sa:000 est | mode=none ect=no"),
        ("accecn", "syn:111:not syn:011:not", "sa:010+opt rst"),
        ("accecn", "syn:011:not syn:000:not ack:000", "sa:001 sa:000 est | mode=classic ect=no"),
        ("accecn", "syn:111:not ack:100", "sa:010+opt est | mode=accecn ect=no s.cep=5"),
        ("accecn", "syn:111:not ack:000", "sa:010+opt est | mode=accecn ect=no s.cep=5"),
        ("classic", "syn:111:ect0 syn:000:not ack:000", "sa:001 sa:000 est | mode=classic ect=no"),
    ] {
        assert_eq!(play(own, events), expected, "{events}");
    }
}

#[test]
fn a_client_survives_lost_syns_and_repeated_syn_acks() {
    for (events, expected) in [
        ("open sa:010:not", "syn:111 ack:010+opt | mode=accecn ect=yes r.cep=5"),
        ("open sa:010:ce sa:010:ce", "syn:111 ack:110+opt ack:110 | mode=accecn ect=yes r.cep=6"),
        ("open t t t sa:000:not", "syn:111 syn:111 syn:000 syn:000 ack:000 | mode=none ect=no"),
        ("open t t sa:010:ect1", "syn:111 syn:111 syn:000 ack:011+opt | mode=accecn ect=yes r.cep=5"),
        ("open t t sa:001:not", "syn:111 syn:111 syn:000 ack:000 | mode=classic ect=no"),
        ("open sa:101:ect1", "syn:111 ack:011+opt | mode=accecn ect=yes r.cep=5"),
        ("open sa:110:not", "syn:111 ack:010+opt | mode=accecn ect=no r.cep=5"),
        // A SYN-ACK without AccECN is answered with the counter (5), not with a code.
        ("open sa:010:not sa:000:not", "syn:111 ack:010+opt ack:101 | mode=accecn ect=yes r.cep=5"),
    ] {
        assert_eq!(play("accecn", events), expected, "{events}");
    }
}

#[test]
fn the_syn_decides_in_a_simultaneous_open() {
    assert_eq!(play("accecn", "open syn:111:ect1"), "syn:111 sa:011+opt");
    assert_eq!(
        play("accecn", "open syn:111:ect1 sa:010:not"),
        "syn:111 sa:011+opt ack:010+opt | mode=accecn ect=yes r.cep=5"
    );
}

/// A listener with accurate ECN whose client has answered, of an MTU of 1,500 bytes.
fn established() -> Bench {
    let syn = segment(SYN | bits("111"), IRS, SeqNum(0), &[]);
    let options = TcpOptions { mss: Some(1_460), sack_permitted: true, ..TcpOptions::NONE };
    let mut bench = Bench::passive(with_ecn(Mode::Accurate), &TcpSegment { options, ..syn });
    bench.arrive(&segment(ACK | bits("010"), IRS + 1, ISS + 1, &[]));
    assert_eq!(bench.conn.state(), State::Established);
    bench
}

fn data(bench: &mut Bench, offset: u32, ecn: Ecn) -> Vec<SentSegment> {
    bench.arrive_marked(&segment(ACK | bits("101"), IRS + 1 + offset, ISS + 1, &[0; 600]), ecn);
    bench.drain()
}

#[test]
fn marks_are_acknowledged_at_once_and_counted() {
    let mut bench = established();
    assert!(data(&mut bench, 0, Ecn::Ect0).is_empty(), "held back");
    let told = data(&mut bench, 600, Ecn::Ce);
    assert_eq!(words(&told), ["ack:110+opt"]);
    let option = told[0].options.accecn.expect("it was there");
    assert_eq!((option.ect0(), option.ce()), (Some(601), Some(600)));
    // No CWR ends this: the count stays what it is.
    assert!(data(&mut bench, 1_200, Ecn::Ect0).is_empty());
    assert_eq!(words(&data(&mut bench, 1_800, Ecn::Ect0)), ["ack:110+opt"]);
    let info = info(&bench);
    assert_eq!((info.ecn, info.ce_received), (Mode::Accurate, 1));
    assert_eq!((info.received_bytes.ect0, info.received_bytes.ce, info.received_bytes.ect1), (1_800, 600, 0));
    // The counters are in every segment, an RST's included.
    bench.conn.write(b"data").unwrap();
    assert_eq!(bench.drain()[0].flags, ACK | TcpFlags::PSH | bits("110"));
}

#[test]
fn marks_outside_the_window_count_nowhere() {
    let mut bench = established();
    data(&mut bench, 0, Ecn::Ect0);
    data(&mut bench, 600, Ecn::Ect0);
    data(&mut bench, 0, Ecn::Ce);
    assert_eq!(info(&bench).ce_received, 0);
}

/// Windows of data leave, and the peer counts marks.
#[test]
fn growth_of_ace_reduces_the_window_once_per_round_trip() {
    let mut bench = established();
    bench.conn.write(&[0; 100_000]).unwrap();
    let first = bench.drain();
    assert!(first.len() >= 10 && first.iter().all(|sent| sent.ecn == Ecn::Ect0 && sent.len > 0));
    let cwnd = |bench: &Bench| info(bench).snd_cwnd;
    let before = cwnd(&bench);
    let end = |sent: &SentSegment| sent.seq + sent.len;
    bench.arrive(&segment(ACK | bits("101"), IRS + 1, end(&first[1]), &[]));
    assert!(cwnd(&bench) > before, "no mark");
    let before = cwnd(&bench);
    bench.arrive(&segment(ACK | bits("110"), IRS + 1, end(&first[3]), &[]));
    let reduced = cwnd(&bench);
    assert!(reduced < before);
    bench.arrive(&segment(ACK | bits("000"), IRS + 1, end(&first[5]), &[]));
    assert_eq!(cwnd(&bench), reduced, "the same window of data");
    let info = info(&bench);
    assert_eq!((info.delivered_ce, bench.observe.counters.tcp_delivered_ce), (3, 3));
    assert!(bench.drain().iter().all(|sent| !sent.flags.contains(TcpFlags::CWR)), "CWR is a bit of 5");
}

#[test]
fn an_ack_that_is_superseded_says_nothing() {
    let mut bench = established();
    bench.conn.write(&[0; 20_000]).unwrap();
    let sent = bench.drain();
    let end = |n: usize| sent[n].seq + sent[n].len;
    bench.arrive(&segment(ACK | bits("111"), IRS + 1, end(3), &[]));
    assert_eq!(info(&bench).delivered_ce, 2);
    // It was overtaken, and its count is older.
    bench.arrive(&segment(ACK | bits("110"), IRS + 1, end(1), &[]));
    assert_eq!(info(&bench).delivered_ce, 2);
}

#[test]
fn a_cleared_ace_is_not_heard() {
    let syn = segment(SYN | bits("111"), IRS, SeqNum(0), &[]);
    let mut bench = Bench::passive(with_ecn(Mode::Accurate), &syn);
    bench.arrive(&segment(ACK, IRS + 1, ISS + 1, &[]));
    bench.conn.write(&[0; 20_000]).unwrap();
    let sent = bench.drain();
    assert!(sent.iter().all(|sent| sent.ecn == Ecn::NotEct));
    bench.arrive(&segment(ACK, IRS + 1, sent[0].seq + sent[0].len, &[]));
    assert_eq!((info(&bench).delivered_ce, bench.observe.counters.acc_ecn_ace_zero), (0, 1));
    // It still tells the peer what it counts.
    assert_eq!(words(&data(&mut bench, 0, Ecn::Ce)).last().map(String::as_str), Some("ack:110"));
}

#[test]
fn options_can_be_switched_off() {
    let config = ConnConfig { accecn_option: 0, ..with_ecn(Mode::Accurate) };
    let syn = segment(SYN | bits("111"), IRS, SeqNum(0), &[]);
    let mut bench = Bench::with(|ctx| accepted(ctx, Arc::new(config), 0, &syn));
    assert_eq!(words(&bench.drain()), ["sa:010"]);
    bench.arrive(&segment(ACK | bits("010"), IRS + 1, ISS + 1, &[]));
    assert_eq!(words(&data(&mut bench, 0, Ecn::Ce)), ["ack:110"]);
}

#[test]
fn an_option_corrects_what_ace_leaves_open() {
    let mut bench = established();
    bench.conn.write(&[0; 100_000]).unwrap();
    let sent = bench.drain();
    let end = |n: usize| sent[n].seq + sent[n].len;
    let len = u64::from(sent[0].len);
    let ack = |n: usize, ace: &str, ce: u64, ect0: u64| {
        let option = AccEcnOption::new(crate::wire::AccEcnOrder::Ect0First, 2, 1 + ect0, ce, 1);
        let options = TcpOptions { accecn: Some(option), ..TcpOptions::NONE };
        TcpSegment { options, ..segment(ACK | bits(ace), IRS + 1, end(n), &[]) }
    };
    bench.arrive(&ack(0, "101", 0, len));
    // Nine segments and one mark more than ACE can tell from none, if only bytes did not.
    bench.arrive(&ack(9, "110", len, 9 * len));
    let info = info(&bench);
    assert_eq!((info.delivered_ce, info.delivered_bytes.ce), (1, len));
    assert_eq!(vec![bench.observe.counters.acc_ecn_safe_readings], [0]);
}
