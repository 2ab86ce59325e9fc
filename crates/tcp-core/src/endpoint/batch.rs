//! Packets that a driver received together: what follows each other in one connection is one
//! arrival.
//!
//! Most of what a segment of a bulk transfer costs is not its data: parsing, the look-up, the
//! prediction, the call of the policy. A [`Run`] of such segments does all that once. Whatever is
//! not predicted data takes the way of single packets, and so does everything while somebody
//! traces.
//!
//! All packets of a batch have one instant, so there is no first and last, and nothing has to be
//! averaged. An ACK policy is told of each segment, unless it promises that one call comes to the
//! same (`AckPolicy::takes_runs`). A test gives packets to two endpoints, one by one and in
//! batches, and compares everything that they say and show. Captures see packets before they are
//! joined.

use super::Owners;
use super::ingest::{arrival, named_by};
use crate::id::ConnId;
use crate::share::Cx;
use crate::wire::{self, Datagram, Ecn, Leader, Run, RxPacket, Transport};

impl Owners {
    /// See [`Endpoint::ingest_batch`].
    pub(super) fn take_batch(&mut self, cx: &mut Cx<'_>, packets: &[RxPacket<'_>]) {
        let mut rest = packets;
        while let Some(first) = rest.first() {
            let taken = if rest.len() > 1 && cx.observe.tracer.is_none() {
                self.take_first(cx, first, rest)
            } else {
                self.take_packet(cx, first);
                1
            };
            rest = rest.get(taken..).unwrap_or_default();
        }
    }

    /// Takes the first of `packets`, and with it those that continue a run of it. Their number.
    fn take_first(&mut self, cx: &mut Cx<'_>, first: &RxPacket<'_>, packets: &[RxPacket<'_>]) -> usize {
        // By reference: it is large.
        let parsed = wire::parse(first);
        if let Ok(datagram) = &parsed
            && let Some(leader) = Leader::new(first, datagram)
            && packets.get(1).is_some_and(|next| leader.is_followed_by(next))
            && let Some(taken) = self.take_run(cx, datagram, &leader, packets)
        {
            return taken;
        }
        self.take_parsed(cx, first, &parsed);
        1
    }

    /// Takes the run of `leader`, which begins `packets`, if the connection predicts it: the number
    /// of packets.
    fn take_run(
        &mut self,
        cx: &mut Cx<'_>,
        datagram: &Datagram<'_>,
        leader: &Leader<'_>,
        packets: &[RxPacket<'_>],
    ) -> Option<usize> {
        let Datagram { ip, transport: Transport::Tcp(segment) } = datagram else { return None };
        let index = if self.table.is_named(self.table.latest, ip, segment) {
            self.table.latest
        } else {
            self.table.look_up(&named_by(ip, segment))?
        };
        let slot = self.table.slots.slot_mut(index)?;
        let id = slot.id(index);
        let conn = slot.conn.as_deref_mut()?;
        let most = conn.predicts_run(cx.now, segment)?;
        let run = leader.gather(packets, most, conn.room_for_run(segment));
        if run.segments() < 2 {
            return None;
        }
        let mut ctx = cx.conn(id);
        if !conn.has_memory(&ctx, run.bytes()) {
            for packet in run.packets() {
                self.take_packet(cx, packet);
            }
            return Some(run.packets().len());
        }
        ctx.observe.counters.ip_in_receives += u64::from(run.segments());
        ctx.observe.counters.tcp_in_segs += u64::from(run.segments());
        ctx.observe.counters.segments_merged += u64::from(run.segments() - 1);
        conn.take_run(&mut ctx, ip, segment, &run);
        if ip.ecn != Ecn::NotEct {
            cx.count_codepoint(ip.ecn, run.segments());
        }
        if self.egress.properties.sees_arrivals {
            self.tell_scheduler(cx, id, ip.total_len - segment.payload.len() as u32, &run);
        }
        self.table.latest = index;
        self.touch(cx, index);
        Some(run.packets().len())
    }

    /// The scheduler is told of each segment of a run, each of which has `headers` bytes of
    /// headers.
    fn tell_scheduler(&mut self, cx: &mut Cx<'_>, conn: ConnId, headers: u32, run: &Run<'_>) {
        for (payload, _) in run.segments_data() {
            let arrival = arrival(conn, headers, payload.len() as u32, 1, cx.config.pricing);
            self.egress.scheduler.arrived(cx.now, &arrival);
        }
    }
}
