//! In steady state no scheduler takes memory for a packet, with many connections and while packets
//! wait.

use ackline_sched::SCHED;
use ackline_tcp_core::policy::sched::{
    Admission, Ask, Descriptor, DescriptorId, EgressScheduler, LinkView, Popped, SegmentClass,
};
use ackline_tcp_core::{ConnId, Instant, SeqNum};

const CONNECTIONS: u32 = 500;

/// Each connection asks to send one data packet and one ACK, and as many packets leave; `rounds`
/// times.
fn rounds(scheduler: &mut dyn EgressScheduler, (now, serial): (&mut Instant, &mut u64), rounds: u32) {
    let link = LinkView::new(u32::MAX);
    for _ in 0..rounds {
        for index in 0..CONNECTIONS {
            let conn = Some(ConnId::for_test(index, 0));
            for (class, len) in [(SegmentClass::Data, 1500), (SegmentClass::PureAck, 52)] {
                if scheduler.admit(*now, &Ask::new(conn, class, len)) == Admission::Granted {
                    *serial += 1;
                    let id = DescriptorId::new(*serial, SeqNum(*serial as u32), 0);
                    scheduler.push(*now, Descriptor::new(id, conn, class, len));
                }
            }
        }
        let mut left = 2 * CONNECTIONS;
        while left > 0 {
            match scheduler.pop(*now, &link) {
                Popped::Packet(packet) => scheduler.departed(*now, &packet),
                Popped::NotBefore(at) => {
                    *now = at;
                    continue;
                }
                Popped::Drop(_) => {}
                Popped::Empty => break,
            }
            left -= 1;
            while scheduler.poll_resume().is_some() {}
        }
    }
}

#[test]
fn packets_allocate_nothing() {
    for entry in SCHED {
        for params in ["", "limit=100", "rate=1gbit,limit=300"] {
            let mut scheduler = (entry.make)(&params.parse().unwrap()).unwrap()();
            let (mut now, mut serial) = (Instant::ZERO, 0);
            rounds(&mut *scheduler, (&mut now, &mut serial), 20);
            let taken = allocation_counter::measure(|| rounds(&mut *scheduler, (&mut now, &mut serial), 20));
            assert_eq!(taken.count_total, 0, "{}:{params}: {taken:?}", entry.name);
        }
    }
}
