//! The shaper keeps its rate although the driver wakes late: two endpoints, a path of 5 ms, and an
//! uploading driver that comes to each departure late by a time that is drawn anew, as on a busy
//! host. All time is simulated.

use ackline_sched::SCHED;
use ackline_tcp_core::wire::RxPacket;
use ackline_tcp_core::{
    AcceptConfig, ConnConfig, Duration, Endpoint, EndpointConfig, Event, Instant, ListenOn, Target, TxBudget,
    WakeReason,
};
use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

const RATE: u64 = 950_000;
const SECONDS: u64 = 20;
const DELAY: Duration = Duration::from_millis(5);

/// What a run shows: wire bytes that left as a share of the rate, a digest of all departures, and
/// late wake-ups.
#[derive(Debug, PartialEq)]
struct Run {
    share: f64,
    digest: u64,
    late: u64,
    /// The most that left within 10 ms, in bytes.
    burst: usize,
}

fn endpoint(address: &str, sched: &str) -> Endpoint {
    let mut config = EndpointConfig::default();
    config.addresses = vec![address.parse().unwrap()];
    let (name, params) = sched.split_once(':').unwrap_or((sched, ""));
    let entry = SCHED.iter().find(|entry| entry.name == name).unwrap();
    Endpoint::new(config, (entry.make)(&params.parse().unwrap()).unwrap()(), [7; 32])
}

/// Uploads with a scheduler behind the shaper. The driver is late by up to `latest`, evenly spread.
fn upload(sched: &str, latest: Duration) -> Run {
    let far: IpAddr = "10.0.0.2".parse().unwrap();
    let mut hosts = [endpoint("10.0.0.1", sched), endpoint("10.0.0.2", "fifo")];
    hosts[1].listen(Instant::ZERO, ListenOn::Port(7), AcceptConfig::default()).unwrap();
    let target = Target::new(SocketAddr::new(far, 7));
    let upload = hosts[0].connect(Instant::ZERO, target, Arc::new(ConnConfig::default())).unwrap();
    let mut wires: [Vec<(Instant, Vec<u8>)>; 2] = [vec![], vec![]];
    let (mut now, mut state, mut digest) = (Instant::ZERO, 0x9e37_79b9_u64, 0_u64);
    let mut sent: Vec<(Instant, usize)> = vec![];
    // When the driver really wakes for a departure that is due at the first instant.
    let mut waking: Option<(Instant, Instant)> = None;
    while now < Instant::from_secs(SECONDS) {
        for side in [0, 1] {
            let (due, later) = std::mem::take(&mut wires[side]).into_iter().partition(|(at, _)| *at <= now);
            wires[side] = later;
            for (_, packet) in due {
                hosts[side].ingest(now, RxPacket::new(&packet));
            }
            // Only the near driver sleeps until a departure; what wakes it before finds nothing
            // that may leave.
            hosts[side].handle_timeout(now);
            if let Some(mut conn) = hosts[side].conn(upload).filter(|_| side == 0) {
                while conn.write(now, &[0; 16_384]).is_ok_and(|written| written > 0) {}
            }
            loop {
                let asleep = side == 0 && waking.is_some_and(|(_, wakes)| now < wakes);
                let mut out = vec![];
                if !asleep {
                    let Ok(_) = hosts[side].transmit(now, TxBudget::UNLIMITED, |packet| {
                        out.push([packet.header, packet.payload[0], packet.payload[1]].concat());
                        Ok::<_, Infallible>(())
                    });
                }
                for packet in out {
                    if side == 0 {
                        sent.push((now, packet.len()));
                        digest =
                            (digest ^ now.as_nanos()).wrapping_mul(0x0100_0000_01b3) ^ packet.len() as u64;
                    }
                    wires[1 - side].push((now + DELAY, packet));
                }
                let mut news = false;
                while let Some(event) = hosts[side].poll_event() {
                    news = true;
                    if let Event::Readable(id) = event
                        && let Some(mut conn) = hosts[side].conn(id)
                    {
                        while conn.read(now, &mut [0; 65_536]).is_ok_and(|read| read > 0) {}
                    }
                }
                if !news {
                    break;
                }
            }
        }
        let near = hosts[0].poll_timeout().map(|wakeup| {
            if wakeup.reason != WakeReason::Shaper {
                return wakeup.at;
            }
            let (_, wakes) = *match &mut waking {
                Some(known) if known.0 == wakeup.at || now < known.1 => known,
                other => {
                    state ^= state << 13;
                    state ^= state >> 7;
                    state ^= state << 17;
                    let late = latest.mul_ratio(state % 1_000, 1_000);
                    other.insert((wakeup.at, wakeup.at.max(now) + late))
                }
            };
            wakes
        });
        let far = hosts[1].poll_timeout().map(|wakeup| wakeup.at);
        let wires = wires.iter().flatten().map(|(at, _)| *at);
        let next = near.into_iter().chain(far).chain(wires).min().expect("something to come");
        now = next.max(now + Duration::from_nanos(1));
    }
    let bytes: usize = sent.iter().map(|(_, len)| len).sum();
    let within = |start: usize| {
        let (begin, _) = sent[start];
        let window = sent[start..].iter().take_while(|(at, _)| at.since(begin) < Duration::from_millis(10));
        window.map(|(_, len)| len).sum::<usize>()
    };
    Run {
        share: bytes as f64 * 8.0 / (RATE * SECONDS) as f64,
        digest,
        late: hosts[0].counters().egress_late,
        burst: (0..sent.len()).map(within).max().unwrap_or(0),
    }
}

#[test]
fn a_driver_that_wakes_late_does_not_lose_rate() {
    for sched in ["fifo", "drr", "kalampoukas:f=0.5", "backpressure:b=1"] {
        let shaped = |late: &str| {
            let separator = if sched.contains(':') { ',' } else { ':' };
            format!("{sched}{separator}rate={RATE}bit,burst=1ms,late={late}")
        };
        for latest in [5, 20, 60].map(Duration::from_millis) {
            let run = upload(&shaped("100ms"), latest);
            assert!((0.98..=1.005).contains(&run.share), "{sched}, {latest:?} late: {run:?}");
            assert!(run.late > 100, "{run:?}");
        }
        let run = upload(&shaped("0ms"), Duration::from_millis(60));
        assert!(run.share < 0.6, "the test shows nothing: {sched} without it: {run:?}");
    }
}

#[test]
fn what_is_made_up_for_is_bounded() {
    // 100 ms of lateness of which 20 ms are made up for: a packet takes 12.6 ms, so a round of 50
    // ms plus one packet on average has the time of the packet, and up to 20 ms, to send.
    let run = upload(&format!("fifo:rate={RATE}bit,burst=1ms,late=20ms"), Duration::from_millis(100));
    assert!((0.3..0.7).contains(&run.share), "{run:?}");
    // 20 ms, the burst, a packet, and what 10 ms bring.
    let most = (RATE as f64 / 8.0 * 0.031) as usize + 2 * 1_500;
    assert!(run.burst <= most, "{} of at most {most}", run.burst);
}

#[test]
fn a_driver_on_time_sees_no_difference() {
    for sched in ["fifo", "kalampoukas:f=0.5", "backpressure:b=1"] {
        let separator = if sched.contains(':') { ',' } else { ':' };
        let run = |late: &str| {
            upload(&format!("{sched}{separator}rate={RATE}bit,burst=1ms,late={late}"), Duration::ZERO)
        };
        let exact = run("100ms");
        assert_eq!((exact.late, &exact), (0, &run("0ms")));
    }
}
