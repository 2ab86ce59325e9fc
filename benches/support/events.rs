//! What a connection and a link ask of policies, event by event.

use ackline::core::policy::cc::{AckSample, CcInit, CongestionControl, FlowView, SentSegment};
use ackline::core::policy::sched::{
    Ask, Descriptor, DescriptorId, EgressScheduler, LinkView, Popped, SegmentClass,
};
use ackline::core::{ConnId, Duration, Instant, SeqNum, Window};

pub(crate) const SMSS: u32 = 1448;

/// A flow of 100 segments and 20 ms, and what its algorithm begins with: in congestion avoidance,
/// where the arithmetic is.
pub(crate) fn flow() -> (CcInit, FlowView, AckSample) {
    let mut init = CcInit::new(Instant::ZERO, SMSS, Window::from_bytes(100 * u64::from(SMSS)));
    init.ssthresh = init.initial_window;
    let mut view = FlowView::new(Instant::from_secs(1), SMSS);
    view.flight_size = 100 * SMSS;
    view.pipe = view.flight_size;
    view.srtt = Some(Duration::from_millis(20));
    let mut ack = AckSample::new(2 * SMSS, 2);
    ack.rtt = Some(Duration::from_millis(20));
    (init, view, ack)
}

/// The sender's part for one ACK of two segments: the departure of what it released, the ACK, the
/// decision.
pub(crate) fn ack_cycle<C: CongestionControl + ?Sized>(
    cc: &mut C,
    view: &mut FlowView,
    ack: &AckSample,
) -> u64 {
    view.now += Duration::from_micros(10);
    view.snd_una += ack.acked;
    view.snd_nxt += ack.acked;
    cc.on_ack(view, ack);
    let decision = cc.decision();
    cc.on_sent(view, &SentSegment::new(view.snd_nxt, ack.acked, false));
    decision.window.bytes()
}

/// One packet through the scheduler: may it, in, out, gone.
pub(crate) fn packet_cycle<S: EgressScheduler + ?Sized>(
    scheduler: &mut S,
    serial: &mut u64,
    link: &LinkView,
) -> bool {
    *serial += 1;
    let now = Instant::from_nanos(*serial * 1_000);
    let conn = Some(ConnId::for_test(3, 1));
    scheduler.admit(now, &Ask::new(conn, SegmentClass::Data, 1500));
    let id = DescriptorId::new(*serial, SeqNum(0), SMSS);
    scheduler.push(now, Descriptor::new(id, conn, SegmentClass::Data, 1500));
    let popped = scheduler.pop(now, link);
    if let Popped::Packet(packet) = &popped {
        scheduler.departed(now, packet);
    }
    matches!(popped, Popped::Packet(_)) && scheduler.poll_resume().is_none()
}
