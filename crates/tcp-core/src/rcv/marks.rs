//! What a receiver tells its peer of ECN marks: the echo of classic ECN and DCTCP (RFC 3168, RFC
//! 8257), or the counts of accurate ECN (RFC 9768).
//!
//! Packets are counted when they arrive, before their data is processed
//! ([`Marks::on_packets`]); the echo follows data ([`Marks::on_data`]). The fields of an ACK are
//! asked for with [`Marks::fields`], and [`Marks::on_ack_sent`] is called once it was sent.

use super::accecn::{AccEcnReport, Arrival, Counts, Demand, Room};
use super::assembler::Assembler;
use super::echo::{Echo, MarkedArrival};
use super::{AckNumbers, AckRoom, Counted, EcnStart};
use crate::config::Ecn;
use crate::counters::Counters;
use crate::info::Info;
use crate::seq::SeqNum;
use crate::time::{Duration, Instant};
use crate::wire::{self, AccEcnOption, SackBlocks, TcpFlags};

/// What a receiver tells of marks. See the [module documentation](self).
#[derive(Debug)]
pub(super) enum Marks {
    /// Classic ECN's echo, or DCTCP's.
    Echo(Echo),
    /// The counts of accurate ECN.
    Counts(Counts),
}

/// Which ACKs the peer waits for when packets arrive.
#[derive(Clone, Copy, Debug)]
pub(super) struct PendingAcks {
    /// Data has not been acknowledged yet, or arrives.
    pub(super) unacked: bool,
    /// The ACK policy withholds ACKs.
    pub(super) withholding: bool,
    /// An ACK is due.
    pub(super) due: bool,
}

/// The ACK whose fields are asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct AckContext<'a> {
    pub(super) now: Instant,
    pub(super) rcv_nxt: SeqNum,
    /// `accecn_option` of the configuration.
    pub(super) frequency: u8,
    /// Smoothed RTT, or that of the handshake.
    pub(super) srtt: Option<Duration>,
    /// An ACK is due.
    pub(super) due: bool,
    pub(super) room: AckRoom,
    /// What SACK blocks would report.
    pub(super) waiting: Option<&'a Assembler>,
}

/// What an ACK tells of marks.
#[derive(Clone, Copy, Debug)]
pub(super) struct MarkFields {
    /// Acknowledgment number.
    pub(super) ack: SeqNum,
    /// ECE of classic ECN and DCTCP's, or ACE.
    pub(super) flags: TcpFlags,
    /// The option of accurate ECN.
    pub(super) option: Option<AccEcnOption>,
    /// An option was due, and there was no room.
    pub(super) crowded: bool,
    /// Accurate ECN: it tells of marks of which no ACK has told.
    pub(super) news: bool,
    /// It is to have no SACK blocks.
    pub(super) forbids_sack: bool,
}

impl Marks {
    /// The handshake is done.
    pub(super) fn new(start: EcnStart) -> Self {
        match start {
            EcnStart { mode: Ecn::Accurate, marked, echo } => Self::Counts(Counts::new(marked, echo)),
            EcnStart { mode, .. } => Self::Echo(Echo::new(mode)),
        }
    }

    /// The kind of ECN in use.
    pub(super) const fn mode(&self) -> Ecn {
        match self {
            Self::Echo(echo) => echo.mode(),
            Self::Counts(_) => Ecn::Accurate,
        }
    }

    /// Accurate ECN is in use.
    pub(super) const fn counts_codepoints(&self) -> bool {
        matches!(self, Self::Counts(_))
    }

    /// Acceptable packets arrived; their data is not processed yet (RFC 9768, section 3.2.2.5.1).
    /// True if an ACK must be sent. `frequency` is `accecn_option` of the configuration.
    pub(super) fn on_packets(
        &mut self,
        now: Instant,
        frequency: u8,
        packets: &Counted,
        acks: PendingAcks,
    ) -> bool {
        let Self::Counts(counts) = self else { return false };
        let Counted { ecn, seq, bytes, packets } = *packets;
        let ace_only = counts.is_ace_only(now, frequency);
        let arrival = Arrival { ecn, bytes, packets, seq, unacked: acks.unacked, ace_only };
        let demand = counts.on_arrival(&arrival, acks.withholding);
        if bytes > 0 {
            counts.on_data();
        } else if demand != Demand::None && !acks.due {
            counts.ask_for_bare();
        }
        match demand {
            Demand::None => false,
            Demand::Soft | Demand::Hard => true,
        }
    }

    /// Acceptable data arrived; RCV.NXT has not moved yet.
    pub(super) fn on_data(&mut self, counters: &mut Counters, arrival: &MarkedArrival) {
        if let Self::Echo(echo) = self {
            echo.on_data(counters, arrival);
        }
    }

    /// A segment contained nothing new.
    pub(super) fn on_duplicate(&mut self, counters: &mut Counters, now: Instant) {
        if let Self::Counts(counts) = self {
            counts.on_repeat(counters, now);
        }
    }

    /// True if the ACK of the SYN-ACK is still to leave: alone, before data (RFC 9768, section
    /// 3.2.2.1).
    pub(super) const fn answers_syn_ack(&self) -> bool {
        matches!(self, Self::Counts(counts) if counts.answers_syn_ack())
    }

    /// The peer has sent its SYN-ACK again.
    pub(super) fn on_syn_ack_again(&mut self, ecn: wire::Ecn) {
        if let Self::Counts(counts) = self {
            counts.on_syn_ack_again(ecn);
        }
    }

    /// ACE of the next segment with data.
    pub(super) fn ace(&self, rcv_nxt: SeqNum) -> TcpFlags {
        match self {
            Self::Echo(_) => TcpFlags::NONE,
            Self::Counts(counts) => counts.ace(rcv_nxt, false).0,
        }
    }

    /// The fields of an ACK.
    pub(super) fn fields(&self, cx: &AckContext<'_>) -> MarkFields {
        let counts = match self {
            Self::Echo(echo) => {
                let (ack, ece) = echo.next(cx.rcv_nxt);
                let flags = if ece { TcpFlags::ECE } else { TcpFlags::NONE };
                return MarkFields {
                    ack,
                    flags,
                    option: None,
                    crowded: false,
                    news: false,
                    forbids_sack: false,
                };
            }
            Self::Counts(counts) => counts,
        };
        let (flags, ack) = counts.ace(cx.rcv_nxt, cx.room.bare);
        let forbids_sack = counts.forbids_sack();
        let waiting = cx.waiting.filter(|_| !forbids_sack);
        let blocks = waiting.map_or(0, |waiting| waiting.sack_blocks(SackBlocks::MAX).count());
        let fits = Room { octets: cx.room.options, blocks };
        let report = counts.option(cx.now, cx.frequency, cx.srtt, (cx.due, cx.room.bare), fits);
        MarkFields {
            ack,
            flags,
            option: if let AccEcnReport::Option(option) = report { Some(option) } else { None },
            crowded: matches!(report, AccEcnReport::NoRoom),
            news: !counts.is_told(),
            forbids_sack,
        }
    }

    /// A segment with `numbers` was sent; `pure`: without data and FIN. True if another one must
    /// follow.
    // Inlined, it would take registers of every segment that leaves without ECN.
    #[inline(never)]
    pub(super) fn on_ack_sent(
        &mut self,
        counters: &mut Counters,
        now: Instant,
        numbers: &AckNumbers,
        pure: bool,
    ) -> bool {
        match self {
            Self::Echo(echo) => echo.on_ack_sent(numbers.ack),
            Self::Counts(counts) => {
                counters.acc_ecn_options_omitted += u64::from(numbers.crowded);
                counts.on_sent(counters, now, numbers.accecn.as_ref(), pure)
            }
        }
    }

    /// Fills in what a snapshot says of marks.
    pub(super) fn info(&self, info: &mut Info) {
        match self {
            Self::Echo(echo) => info.ce_received = echo.marked,
            Self::Counts(counts) => {
                info.ce_received = u64::from(counts.marked());
                info.received_bytes = counts.bytes();
            }
        }
    }
}
