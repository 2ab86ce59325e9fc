//! Segments before ESTABLISHED, beyond the ordinary handshake.

use super::*;

/// RFC 9293, section 3.10.7.1.
#[test]
fn a_segment_of_no_connection_is_answered_with_a_reset_that_its_sender_accepts() {
    let seq = SeqNum(u32::MAX - 1);
    let answer = |flags, data| RstSpec::answer_to(&segment(flags, seq, SeqNum(77), data));
    assert_eq!(answer(ACK, b"ab"), Some(RstSpec { seq: SeqNum(77), ack: None }));
    assert_eq!(answer(SYN, b""), Some(RstSpec { seq: SeqNum(0), ack: Some(SeqNum(u32::MAX)) }));
    assert_eq!(answer(SYN | FIN, b"ab"), Some(RstSpec { seq: SeqNum(0), ack: Some(SeqNum(2)) }));
    assert_eq!(answer(RST, b""), None);
    assert_eq!(answer(RST | ACK, b""), None);

    let mut bench = Bench::in_state(State::Established);
    bench.conn.abort(ctx!(bench), ConnError::Aborted);
    bench.drain();
    let late = segment(ACK, IRS + 1, ISS + 1, b"late");
    assert_eq!(bench.arrive(&late), Disposition::Reset(RstSpec { seq: ISS + 1, ack: None }));
    assert_eq!(bench.arrive(&segment(RST, IRS + 1, SeqNum(0), &[])), Disposition::Handled);
}

#[test]
fn segments_are_counted_as_they_were_on_the_wire() {
    let mut bench = Bench::active(config());
    bench.arrive(&segment(SYN | ACK, IRS, ISS + 1, &[]));
    bench.arrive(&TcpSegment { wire_segments: 3, ..segment(ACK, IRS + 1, ISS + 1, b"abc") });
    assert_eq!(bench.conn.info(bench.now).segs_in, 4);
}

#[test]
fn an_attempt_that_is_refused_or_given_up_is_counted_once() {
    let mut bench = Bench::in_state(State::SynSent);
    bench.arrive(&segment(RST | ACK, IRS, ISS + 1, &[]));
    assert_eq!(bench.observe.counters.tcp_attempt_fails, 1);
    for flags in [RST, SYN] {
        let mut bench = Bench::in_state(State::SynReceived);
        bench.arrive(&segment(flags, IRS + 1, SeqNum(0), &[]));
        assert_eq!((bench.conn.state(), bench.observe.counters.tcp_attempt_fails), (State::Closed, 1));
        assert_eq!(bench.conn.error(), None, "nobody knows of it yet");
    }
}

#[test]
fn timeouts_of_syns_are_timeouts() {
    let mut bench = Bench::in_state(State::SynSent);
    bench.now = bench.conn.next_deadline().expect("a SYN waits").0;
    bench.conn.on_timeout(ctx!(bench));
    bench.drain();
    let counters = &bench.observe.counters;
    assert_eq!((counters.tcp_timeouts, counters.tcp_syn_retrans, counters.tcp_retrans_segs), (1, 1, 1));
}

/// Nothing that was not sent can be acknowledged, whatever the number.
#[test]
fn a_syn_that_did_not_leave_cannot_be_acknowledged() {
    let reset = Disposition::Reset(RstSpec { seq: ISS + 1, ack: None });
    let mut bench = Bench::with(|ctx| Connection::connect(ctx, tuple(), Arc::new(config()), ISS, 0));
    assert_eq!(bench.arrive(&segment(SYN | ACK, IRS, ISS + 1, &[])), reset);
    assert_eq!(bench.arrive(&segment(RST | ACK, IRS, ISS + 1, &[])), Disposition::Handled);
    assert_eq!(bench.conn.state(), State::SynSent);

    let syn = segment(SYN, IRS, SeqNum(0), &[]);
    let mut bench = Bench::with(|ctx| accepted(ctx, Arc::new(config()), 0, &syn));
    for flags in [ACK, SYN | ACK] {
        let seq = if flags == ACK { IRS + 1 } else { IRS };
        bench.arrive(&segment(flags, seq, ISS + 1, &[]));
        assert_eq!(bench.conn.state(), State::SynReceived, "{flags:?}");
    }
    assert_eq!(bench.arrive(&segment(ACK, IRS + 1, ISS + 1, &[])), reset);
}

#[test]
fn data_on_a_syn_ack_is_taken() {
    let mut bench = Bench::in_state(State::SynSent);
    bench.arrive(&segment(SYN | ACK, IRS, ISS + 1, b"early"));
    assert_eq!(bench.conn.peek()[0], b"early");
    assert_eq!(bench.drain()[0].ack, IRS + 6);

    let mut bench = Bench::in_state(State::SynSent);
    bench.arrive(&segment(SYN, IRS, SeqNum(0), &[]));
    bench.drain();
    bench.arrive(&segment(SYN | ACK, IRS, ISS + 1, b"early"));
    assert_eq!((bench.conn.state(), bench.conn.peek()[0]), (State::Established, &b"early"[..]));
    let acks = bench.drain();
    assert_eq!((acks.len(), acks[0].ack), (1, IRS + 6));
}

/// A simultaneous open whose peer acknowledges something else, or resets.
#[test]
fn a_simultaneous_open_takes_only_the_ack_of_its_syn() {
    let open = || {
        let mut bench = Bench::in_state(State::SynSent);
        bench.arrive(&segment(SYN, IRS, SeqNum(0), &[]));
        bench.drain();
        bench
    };
    for ack in [ISS, ISS + 2] {
        assert_eq!(open().reaction(&segment(SYN | ACK, IRS, ack, &[])), "SYN-RECEIVED ChallengeAck");
        assert_eq!(open().reaction(&segment(ACK, IRS + 1, ack, &[])), "reset SYN-RECEIVED ");
    }
    assert_eq!(
        open().reaction(&segment(SYN | RST, IRS, ISS + 1, &[])),
        "SYN-RECEIVED ",
        "outside the window"
    );
    assert_eq!(open().reaction(&segment(SYN, IRS + 1, ISS + 1, &[])), "SYN-RECEIVED ChallengeAck");
    let mut bench = open();
    bench.arrive(&segment(SYN, IRS + 1, ISS + 1, &[]));
    assert_eq!(bench.observe.counters.tcp_syn_challenge, 1);
    bench.arrive(&segment(RST, IRS + 1, SeqNum(0), &[]));
    assert_eq!(bench.conn.error(), Some(ConnError::Refused));

    // A close before the end of the handshake moves on with it.
    for flags in [ACK, SYN | ACK] {
        let mut bench = open();
        bench.conn.write(b"x").unwrap();
        bench.conn.shutdown(ctx!(bench));
        let seq = if flags == ACK { IRS + 1 } else { IRS };
        bench.arrive(&segment(flags, seq, ISS + 1, &[]));
        assert_eq!(bench.conn.state(), State::FinWait1, "{flags:?}");
    }
}

/// The window of SYN-RECEIVED is what our SYN announced: 65,535 bytes from IRS + 1.
#[test]
fn the_window_of_syn_received_has_two_ends() {
    let reaction =
        |flags, seq, data| Bench::in_state(State::SynReceived).reaction(&segment(flags, seq, ISS + 1, data));
    let challenged = "SYN-RECEIVED ChallengeAck";
    let edge = IRS + 1 + 65_535;
    assert_eq!(reaction(RST, edge - 1, b""), challenged);
    assert_eq!(reaction(RST, edge, b""), "SYN-RECEIVED ");
    assert_eq!(reaction(RST, IRS, b""), "SYN-RECEIVED ");
    assert_eq!(reaction(ACK, edge, b""), challenged);
    assert_eq!(reaction(ACK, edge - 1, b""), "ESTABLISHED ");
    assert_eq!(reaction(ACK, IRS, b""), challenged);
    assert_eq!(reaction(ACK, IRS, b"x"), challenged, "ends before the window");
    let mut bench = Bench::in_state(State::SynReceived);
    bench.arrive(&segment(ACK, IRS, ISS + 1, b"xy"));
    assert_eq!((bench.conn.state(), bench.conn.peek()[0]), (State::Established, &b"y"[..]), "ends in it");
    assert_eq!(bench.observe.counters.tcp_out_of_window, 0);
}

/// RFC 7323, section 2.2: the window of a SYN is never scaled, every other one is.
#[test]
fn the_peers_window_is_scaled_but_in_its_syn() {
    let scaled = TcpOptions { window_scale: Some(3), ..TcpOptions::NONE };
    let with_window = |window, seg| TcpSegment { window, ..seg };
    let mut bench = Bench::in_state(State::SynSent);
    let syn_ack = TcpSegment { options: scaled, ..segment(SYN | ACK, IRS, ISS + 1, &[]) };
    bench.arrive(&with_window(1_000, syn_ack));
    assert_eq!(bench.conn.info(bench.now).snd_wnd, 1_000);
    bench.arrive(&with_window(1_001, segment(ACK, IRS + 1, ISS + 1, &[])));
    assert_eq!(bench.conn.info(bench.now).snd_wnd, 8_008);
    bench.arrive(&with_window(1_001, segment(ACK, IRS + 1, ISS + 1, b"predicted")));
    assert_eq!((bench.conn.info(bench.now).snd_wnd, bench.observe.counters.tcp_hp_hits), (8_008, 1));

    let syn = TcpSegment { options: scaled, ..segment(SYN, IRS, SeqNum(0), &[]) };
    let mut bench = Bench::passive(config(), &with_window(1_000, syn));
    bench.arrive(&with_window(1_001, segment(ACK, IRS + 1, ISS + 1, &[])));
    assert_eq!(bench.conn.info(bench.now).snd_wnd, 8_008);
}

/// RFC 5681, section 3.1, reduces the initial window if a SYN is lost, and a timestamp can show
/// that it was not.
#[test]
fn a_syn_that_was_only_late_does_not_reduce_the_initial_window() {
    for (stamps, first, segments) in [(true, true, 10), (true, false, 1), (false, false, 1)] {
        let config = ConnConfig { timestamps: stamps, ..ConnConfig::default() };
        let mut bench = Bench::with(|ctx| Connection::connect(ctx, tuple(), Arc::new(config), ISS, 0));
        let sent = bench.drain()[0].options;
        bench.now = bench.conn.next_deadline().expect("the SYN's timer").0;
        bench.conn.on_timeout(ctx!(bench));
        let again = bench.drain()[0].options;
        bench.now += Duration::from_millis(300);
        let echoed = if first { sent.timestamps } else { again.timestamps };
        let timestamps = echoed.map(|ts| Timestamps { val: 77, ecr: ts.val });
        let options = TcpOptions { mss: Some(1_460), timestamps, ..TcpOptions::NONE };
        bench.arrive(&TcpSegment { options, ..segment(SYN | ACK, IRS, ISS + 1, &[]) });
        let info = bench.conn.info(bench.now);
        assert_eq!(info.snd_cwnd, segments * u64::from(info.snd_mss), "{stamps} {first}");
        assert_eq!(info.rto, Duration::from_secs(3), "RFC 6298, 5.7");
    }
}

/// A peer that still has an old connection of these addresses and ports answers the SYN with a
/// challenge ACK (RFC 5961), or with a SYN-ACK of its own. Our RST ends that, and the SYN follows
/// soon (Linux, `tcp_rcv_synsent_state_process`), not after a second. Whoever forges such answers
/// gets one SYN for all of them.
#[test]
fn an_answer_of_an_old_connection_makes_the_syn_follow_the_reset_soon_but_once() {
    for old in [segment(ACK, IRS, ISS - 5_000, &[]), segment(SYN | ACK, IRS, ISS + 7, &[])] {
        let mut bench = Bench::in_state(State::SynSent);
        let start = bench.now;
        bench.now += Duration::from_millis(1);
        let mut syns = Vec::new();
        for _ in 0..100 {
            assert!(matches!(bench.arrive(&old), Disposition::Reset(_)));
        }
        while syns.len() < 4 {
            bench.now = bench.conn.next_deadline().unwrap().0;
            bench.conn.on_timeout(ctx!(bench));
            assert_eq!(bench.drain()[0].flags, SYN);
            syns.push(bench.now.since(start).as_millis());
            bench.arrive(&old);
        }
        // Then one second, doubled each time, as if the first SYN had left then.
        assert_eq!(syns, [11, 1_011, 3_011, 7_011]);
        assert_eq!(bench.observe.counters.tcp_timeouts, 3, "the early one is none");
    }
    // Nothing was lost: the window is the initial one.
    let mut bench = Bench::in_state(State::SynSent);
    bench.arrive(&segment(ACK, IRS, ISS - 5_000, &[]));
    bench.now = bench.conn.next_deadline().unwrap().0;
    bench.conn.on_timeout(ctx!(bench));
    bench.drain();
    bench.arrive(&segment(SYN | ACK, IRS, ISS + 1, &[]));
    let info = bench.conn.info(bench.now);
    assert_eq!((info.state, info.snd_cwnd), (State::Established, 10 * u64::from(info.snd_mss)));
}

/// Hosts that get no answer to a SYN with options repeat it without them, and then do without them
/// whichever SYN is answered (BSD, `tcp_rexmit_drop_options`).
#[test]
fn a_syn_repeated_without_options_withdraws_them() {
    let offer = TcpOptions {
        mss: Some(1_000),
        sack_permitted: true,
        window_scale: Some(7),
        timestamps: Some(Timestamps { val: 77, ecr: 0 }),
        ..TcpOptions::NONE
    };
    let bare = TcpOptions { mss: Some(1_000), ..TcpOptions::NONE };
    let syn = |options| TcpSegment { options, ..segment(SYN, IRS, SeqNum(0), &[]) };
    let mut bench = Bench::with(|ctx| accepted(ctx, Arc::new(ConnConfig::default()), 5, &syn(offer)));
    let options = |bench: &mut Bench| {
        let options = bench.drain()[0].options;
        (options.sack_permitted, options.window_scale.is_some(), options.timestamps.is_some())
    };
    assert_eq!(options(&mut bench), (true, true, true));
    bench.now += Duration::from_secs(1);
    bench.arrive(&syn(offer));
    assert_eq!(options(&mut bench), (true, true, true), "repeated as it was");
    bench.now += Duration::from_secs(1);
    bench.arrive(&syn(bare));
    assert_eq!(options(&mut bench), (false, false, false));
    bench.arrive(&segment(ACK, IRS + 1, ISS + 1, b"hello"));
    let info = bench.conn.info(bench.now);
    assert_eq!(
        (info.state, info.sack, info.wscale, info.timestamps),
        (State::Established, false, None, false)
    );
    assert_eq!((info.snd_mss, info.snd_wnd), (1_000, 60_000), "the window is not scaled");
    assert_eq!(bench.conn.peek().concat(), b"hello");
}
