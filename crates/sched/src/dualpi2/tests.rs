use super::*;
use crate::testing::{ANY, Load, conform};
use ackline_tcp_core::packet::SendReason;
use std::string::String;
use std::vec::Vec;

#[test]
fn it_keeps_the_rules() {
    for name in ["dualpi2", "dualpi2:target=0,mark_from=0,mark_range=0,mark_packets=0", "dualpi2:split=off"] {
        conform(name);
    }
}

/// Packets `queue/codepoint/sojourn in us/packets of L` with a constant p': `.` passes, `m` is
/// marked, `d` dropped.
fn departures(prob: f64, packets: &str) -> String {
    let mut queue = DualPi2::default();
    let one = |packet: &str| {
        let parts: Vec<&str> = packet.split('/').collect();
        let number = |place: usize| parts[place].parse::<u64>().unwrap();
        let verdict = match parts[0] {
            "L" => queue.l4s(Duration::from_micros(number(2)), number(3) as usize, prob, true),
            _ => queue.classic(prob, parts[1] != "not", true),
        };
        match verdict {
            Verdict::Pass => '.',
            Verdict::Mark => 'm',
            Verdict::Drop => 'd',
        }
    };
    packets.split(' ').map(one).collect()
}

/// The vectors that the simulator's queue passes, too.
#[test]
fn marks_and_drops_as_the_rfc_says() {
    let both = "L/ect1/500/3 L/ect1/500/3 L/ect1/500/3 C/not/0/0 C/ect0/0/0 L/ect1/1000/3 L/ect1/1300/1 \
                L/ect1/1300/2 C/not/0/0 C/ect0/0/0";
    assert_eq!(departures(0.2, both), "..m...mm..");
    let overload = "L/ect1/0/5 L/ect1/0/5 L/ect1/0/5 L/ect1/0/5 L/ect1/0/5 L/ect1/0/5 C/ect0/0/0 C/ect0/0/0 \
                    C/ect0/0/0 C/ect0/0/0 C/ect0/0/0";
    assert_eq!(departures(0.5, overload), ".mmmdm....d");
    let classic = "C/not/0/0 C/ect0/0/0 C/not/0/0 C/ect0/0/0 C/not/0/0 C/ect0/0/0 C/ect0/0/0 C/not/0/0 \
                   C/ect0/0/0 C/ect0/0/0";
    assert_eq!(departures(0.45, classic), "....d....m");
}

/// Queues data of connection 0 with these codepoints, a packet for each.
fn push(load: &mut Load<DualPi2>, at: Instant, packets: impl IntoIterator<Item = (Ecn, u32)>) {
    for (ecn, len) in packets {
        let mut packet = load.packet("x", SegmentClass::Data, 0, len);
        (packet.ecn, packet.queued_at) = (ecn, at);
        load.scheduler.push(at, packet);
    }
}

/// The queues in which packets of these sizes leave.
fn order(l4s: &[u32], classic: &[u32]) -> String {
    let mut load = Load::new(DualPi2::default());
    push(&mut load, Instant::ZERO, l4s.iter().map(|len| (Ecn::Ect1, *len)));
    push(&mut load, Instant::ZERO, classic.iter().map(|len| (Ecn::NotEct, *len)));
    let name = |packet: &Descriptor| if is_l4s(packet) { 'L' } else { 'C' };
    let mut next = || load.scheduler.pop(Instant::ZERO, &ANY).packet().map(name);
    core::iter::from_fn(&mut next).collect()
}

#[test]
fn shares_turns_by_weight() {
    assert_eq!(order(&[1_514; 20], &[1_514; 4]), "LLLLLLLLLCLLLLLLLLLCLLCC");
    assert_eq!(order(&[100, 1_514, 1_514], &[1_514, 1_514]), "LLLCC");
}

/// At 1 ms for each packet: in each millisecond so many packets of the two kinds come. Returns what
/// became of those that left: their ECN field, delay, and whether they were dropped.
fn load(arrivals: [(Ecn, f64); 2], millis: u64) -> Vec<(Ecn, Duration, bool)> {
    let mut load = Load::new(DualPi2::default());
    let (mut owed, mut left) = ([0.0; 2], Vec::new());
    for milli in 0..millis {
        let now = Instant::from_millis(milli);
        for (owed, (ecn, rate)) in owed.iter_mut().zip(arrivals) {
            *owed += rate;
            while *owed >= 1.0 {
                push(&mut load, now, [(ecn, 1_000)]);
                *owed -= 1.0;
            }
        }
        loop {
            let popped = load.scheduler.pop(now, &ANY);
            let Some(packet) = popped.packet() else { break };
            let dropped = matches!(popped, Popped::Drop(_));
            left.push((packet.ecn, now.since(packet.queued_at), dropped));
            if !dropped {
                break;
            }
        }
    }
    left
}

#[test]
fn classic_data_that_does_not_respond_is_dropped_until_the_delay_is_the_target() {
    let left = load([(Ecn::NotEct, 1.2), (Ecn::Ect1, 0.0)], 60_000);
    let late = &left[left.len() / 2..];
    let dropped = late.iter().filter(|(_, _, dropped)| *dropped).count() as f64 / late.len() as f64;
    assert!((dropped - 1.0 / 6.0).abs() < 0.01, "{dropped}: of 1.2 packets, 0.2 are too many");
    let mean = late.iter().map(|(_, delay, _)| delay.as_secs_f64()).sum::<f64>() / late.len() as f64;
    assert!((0.010..0.020).contains(&mean), "{mean} s");
}

#[test]
fn l4s_data_hardly_waits_beside_it_and_is_marked() {
    let left = load([(Ecn::NotEct, 0.6), (Ecn::Ect1, 0.5)], 60_000);
    let l4s: Vec<_> = left.iter().skip(10_000).filter(|(ecn, _, _)| *ecn != Ecn::NotEct).collect();
    let marked = l4s.iter().filter(|(ecn, _, _)| *ecn == Ecn::Ce).count();
    assert!(marked * 2 > l4s.len(), "{marked} of {} marked", l4s.len());
    assert!(l4s.iter().all(|(_, delay, dropped)| *delay <= Duration::from_millis(20) && !*dropped));
    let mean = l4s.iter().map(|(_, delay, _)| delay.as_secs_f64()).sum::<f64>() / l4s.len() as f64;
    assert!(mean < 0.002, "{mean} s");
}

/// With p' at 1 everything that may be is dropped.
#[test]
fn what_is_no_data_leaves_and_so_does_what_an_expired_timer_sends() {
    let mut load = Load::new(DualPi2::from(DualPi2Params { mark_packets: 0, ..DualPi2Params::default() }));
    push(&mut load, Instant::ZERO, [(Ecn::NotEct, 1_500); 4]);
    let classes = [
        SegmentClass::PureAck,
        SegmentClass::Control(ControlKind::Syn),
        SegmentClass::Control(ControlKind::Fin),
        SegmentClass::Control(ControlKind::Rst),
        SegmentClass::Control(ControlKind::Probe),
        SegmentClass::Control(ControlKind::Other),
    ];
    for class in classes {
        let packet = load.packet("a", class, 1, 40);
        load.scheduler.push(Instant::ZERO, packet);
    }
    let mut timer = load.packet("timer", SegmentClass::Retransmit, 0, 1_500);
    timer.id.reason = SendReason::RtoRetransmit;
    load.scheduler.push(Instant::ZERO, timer);
    push(&mut load, Instant::ZERO, [(Ecn::NotEct, 1_500); 4]);
    let now = Instant::from_secs(10);
    let fates: String = core::iter::from_fn(|| match load.scheduler.pop(now, &ANY) {
        Popped::Packet(_) => Some('.'),
        Popped::Drop(_) => Some('d'),
        _ => None,
    })
    .collect();
    // The first mark at p = 1 comes with the second packet; the last two are no queue to control.
    assert_eq!(fates, ".ddd.......dd..");
}

#[test]
fn without_splitting_a_super_packet_counts_as_one() {
    let largest = |text: &str| {
        let mut queue = DualPi2::default();
        queue.configure(&text.parse().unwrap()).unwrap();
        queue.properties().largest_packet
    };
    assert_eq!((largest("split=on"), largest("split=off")), (0, u32::MAX));
}

#[test]
fn parameters_change_while_it_runs() {
    let mut load = Load::new(DualPi2::default());
    load.scheduler.configure(&"classic_share=50,target=1ms,coupling=1".parse().unwrap()).unwrap();
    push(&mut load, Instant::ZERO, [Ecn::Ect1; 4].map(|ecn| (ecn, 1_514)));
    push(&mut load, Instant::ZERO, [Ecn::NotEct; 4].map(|ecn| (ecn, 1_514)));
    load.scheduler.pop(Instant::ZERO, &ANY);
    assert!(load.scheduler.configure(&"classic_share=100".parse().unwrap()).is_err());
    assert_eq!(load.scheduler.params().classic_share, 50);
    let ids: Vec<_> =
        (0..7).filter_map(|_| load.scheduler.pop(Instant::ZERO, &ANY).packet().map(is_l4s)).collect();
    let l4s = ids.iter().take(4).filter(|l4s| **l4s).count();
    assert!((1..=3).contains(&l4s), "{ids:?}");
}
