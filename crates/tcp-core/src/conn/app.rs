//! The application's calls.

use super::{Connection, Notices, header_len};
use crate::State;
use crate::ctx::Ctx;
use crate::error::StreamError;
use crate::info::Info;
use crate::memory::budget::{Budget, Grant};
use crate::policy::spec::PolicyKind;
use crate::policy::{AckPolicy, CongestionControl, Metric, Metrics, RtoResponse};
use crate::snd::{Usage, WriteSpace, is_shared};
use crate::time::Instant;
use bytes::Bytes;

impl Connection {
    fn check_writable(&self) -> Result<(), StreamError> {
        if let Some(error) = self.error {
            return Err(error.into());
        }
        if self.shut || !self.state.may_send() {
            return Err(StreamError::SendClosed);
        }
        Ok(())
    }

    /// Takes the memory to write `bytes`, as far as there is some. Whoever writes asks for it
    /// first.
    pub(crate) fn ask_for_memory(&mut self, budget: &mut Budget, bytes: usize) {
        self.ask_beyond(budget, self.snd.usage(), bytes);
    }

    /// The same, to share the memory of a chunk of `bytes`: what is free in the send buffer does
    /// not count.
    fn ask_to_share(&mut self, budget: &mut Budget, bytes: usize) {
        let Usage { capacity, .. } = self.snd.usage();
        self.ask_beyond(budget, Usage { used: capacity, capacity }, bytes);
    }

    fn ask_beyond(&mut self, budget: &mut Budget, usage: Usage, bytes: usize) {
        let Usage { used, capacity } = usage;
        if used.saturating_add(bytes) <= capacity {
            return;
        }
        let total = used.saturating_add(bytes.min(self.snd.write_space(&self.config)));
        if total > capacity {
            let granted = budget.request(capacity, total);
            self.send_grant = budget.grant_to(granted);
        }
    }

    /// Notes how large the send buffer may become at present.
    pub(crate) fn look_at_memory(&mut self, budget: &Budget) {
        self.send_grant = budget.grant_to(self.snd.usage().capacity);
    }

    /// Copies as much of `data` as fits into the send buffer.
    pub(crate) fn write(&mut self, data: &[u8]) -> Result<usize, StreamError> {
        self.check_writable()?;
        let fits = data.len().min(self.write_space());
        let written = self.snd.write(&self.config, &data[..fits]);
        self.snd.note_write(written == data.len());
        Ok(written)
    }

    /// Takes as much of the first `most` bytes of `chunk` as fits into the send buffer.
    pub(crate) fn write_chunk(
        &mut self,
        budget: &mut Budget,
        chunk: &mut Bytes,
        most: usize,
    ) -> Result<usize, StreamError> {
        self.check_writable()?;
        let wanted = chunk.len().min(most);
        if is_shared(chunk) {
            self.ask_to_share(budget, wanted);
        } else {
            self.ask_for_memory(budget, wanted);
        }
        let fits = wanted.min(self.write_space());
        let written = self.snd.write_chunk(&self.config, chunk, fits);
        self.snd.note_write(written == wanted);
        Ok(written)
    }

    /// Lets `fill` write into free send buffer in place.
    pub(crate) fn write_with(
        &mut self,
        max: usize,
        fill: impl FnOnce([&mut [u8]; 2]) -> usize,
    ) -> Result<usize, StreamError> {
        self.check_writable()?;
        let slices = self.snd.writable_slices(&self.config, max.min(self.write_space()));
        let room = slices[0].len() + slices[1].len();
        if room == 0 {
            self.snd.note_write(max == 0);
            return Ok(0);
        }
        let written = fill(slices).min(room);
        self.snd.commit_write(written);
        self.snd.note_write(true);
        Ok(written)
    }

    /// A record ends with what is written.
    pub(crate) fn end_record(&mut self) {
        self.snd.end_record();
    }

    /// True if a write would take something, or fail at once. Otherwise the application waits for
    /// the usual space, as after a partial write.
    pub(crate) fn is_writable(&mut self) -> bool {
        if self.check_writable().is_err() {
            return true;
        }
        if !self.snd.is_space_wanted() && self.write_space() == 0 {
            self.snd.want_space(WriteSpace::USUAL);
        }
        !self.snd.is_space_wanted()
    }

    /// Bytes that a write would take, as far as there was memory for them when it was last asked
    /// for.
    pub(crate) fn write_space(&self) -> usize {
        self.space_in(self.send_grant)
    }

    /// Free bytes of the send buffer, as far as there is memory for them.
    pub(crate) fn write_space_within(&self, budget: &Budget) -> usize {
        self.space_in(budget.grant_to(self.snd.usage().capacity))
    }

    /// Free bytes of a send buffer that memory limits to `grant`.
    fn space_in(&self, grant: Grant) -> usize {
        let free = (grant.bytes() as usize).saturating_sub(self.snd.usage().used);
        self.snd.write_space(&self.config).min(free)
    }

    /// The application waits for `bytes` free bytes.
    pub(crate) fn want_space(&mut self, bytes: usize) {
        self.snd.want_space(WriteSpace::bytes(bytes));
    }

    /// Takes the pending notices for the application. Acknowledgments, departures, a larger window
    /// and new settings can all make the space that it waits for, so this is asked here, once after
    /// each burst of events.
    #[inline]
    pub(crate) fn take_notices(&mut self) -> Notices {
        if self.snd.is_space_wanted() {
            self.look_for_space();
        }
        core::mem::take(&mut self.notices)
    }

    /// Tells a writer that waits for space if there is enough.
    fn look_for_space(&mut self) {
        // If memory is short, there may never be as much as the application waits for.
        // Nor is what chunks hold beside the bytes of the buffer available.
        let idle = self.snd.usage().used - self.snd.buffered();
        let most = self.send_grant.bytes().saturating_sub(idle as u32);
        if self.snd.take_offer(&self.config, most) {
            self.notices.add(Notices::WRITABLE);
        }
    }

    /// Copies received data into `buf`.
    pub(crate) fn read(&mut self, ctx: &mut Ctx<'_>, buf: &mut [u8]) -> Result<usize, StreamError> {
        let read = self.rcv.read(ctx, &self.config, buf);
        if read == 0 && !buf.is_empty() {
            self.check_readable()?;
        }
        Ok(read)
    }

    /// Takes a chunk of received data, of at most `max` bytes.
    pub(crate) fn read_chunk(&mut self, ctx: &mut Ctx<'_>, max: usize) -> Result<Option<Bytes>, StreamError> {
        let chunk = self.rcv.read_chunk(ctx, &self.config, max);
        if chunk.is_none() && max > 0 {
            self.check_readable()?;
        }
        Ok(chunk)
    }

    /// Nothing is there to be read. Fails if nothing will be, although the peer's stream has not
    /// ended, or not yet.
    fn check_readable(&self) -> Result<(), StreamError> {
        if self.rcv.fin_received() {
            return Ok(());
        }
        if let Some(error) = self.error {
            return Err(error.into());
        }
        if self.handshake.is_some() && !self.is_early() {
            return Err(StreamError::NotConnected);
        }
        Ok(())
    }

    /// The received data, in place.
    pub(crate) fn peek(&self) -> [&[u8]; 2] {
        self.rcv.peek()
    }

    /// Frees received bytes.
    pub(crate) fn consume(&mut self, ctx: &mut Ctx<'_>, n: usize) {
        self.rcv.consume(ctx, &self.config, n);
    }

    /// True if the peer has closed its side and everything received was read. How the connection
    /// ends after that does not matter: the stream was complete.
    pub(crate) fn at_end(&self) -> bool {
        let complete = self.rcv.fin_received() || (self.state == State::Closed && self.error.is_none());
        self.rcv.readable() == 0 && complete
    }

    /// True if the peer has acknowledged everything written and the FIN.
    pub(crate) const fn is_flushed(&self) -> bool {
        self.flushed
    }

    /// `None` before the connection is established.
    pub(crate) fn congestion_control(&mut self) -> Option<&mut (dyn CongestionControl + 'static)> {
        self.snd.cc()
    }

    /// `None` before the connection is established.
    pub(crate) fn ack_policy(&mut self) -> Option<&mut (dyn AckPolicy + 'static)> {
        self.rcv.policy()
    }

    /// `None` before the connection is established.
    pub(crate) fn rto_response(&mut self) -> Option<&mut (dyn RtoResponse + 'static)> {
        self.snd.rto_response(&self.config)
    }

    /// Calls `visit` with the variables that the policies show.
    pub(crate) fn metrics(&self, visit: &mut dyn FnMut(PolicyKind, Metric)) {
        if let Some(cc) = self.snd.shown_cc() {
            cc.metrics(&mut Metrics::new(&mut |metric| visit(PolicyKind::Cc, metric)));
        }
        if let Some(ack) = self.rcv.shown_policy() {
            ack.metrics(&mut Metrics::new(&mut |metric| visit(PolicyKind::Ack, metric)));
        }
        let mut show = |metric| visit(PolicyKind::Rto, metric);
        self.snd.rto_metrics(&self.config, &mut Metrics::new(&mut show));
    }

    /// A snapshot at `now`.
    pub(crate) fn info(&self, now: Instant) -> Info {
        let mut info = Info {
            now,
            timestamps: self.ts.enabled(),
            sack: self.rcv.has_sack(),
            syn_data: self.syn_data,
            wscale: self.scaling.then(|| (self.snd_wscale, self.rcv.wscale())),
            rto: self.config.initial_rto,
            snd_buf: self.snd.allowance(&self.config),
            segs_out: self.segs_out,
            segs_in: self.segs_in,
            last_ack_recv: self.last_arrival,
            memory: self.memory() as u64,
            ..Info::empty(self.state, self.tuple.local(), self.tuple.remote())
        };
        self.snd.info(&self.config, &mut info);
        self.rcv.info(&mut info);
        info.last_data_recv = (info.data_segs_in > 0).then(|| self.last_arrival.before(self.last_data));
        info.pmtu = info.snd_mss + header_len(&self.tuple.remote_ip()) + self.option_len();
        info
    }
}
