//! TCP Fast Open of an endpoint (RFC 7413). As a server: which SYNs make a connection at once, and
//! how many such connections may be pending. As a client: the cookies, and which servers cannot be
//! reached with them.

use super::fast_open_cookies::{FastOpenCookies, Validity};
use super::segments::Inbound;
use super::{Below, Opens};
use crate::config::ConnConfig;
use crate::conn::{HalfOpen, Offer};
use crate::four_tuple::FourTuple;
use crate::id::ConnId;
use crate::seq::SeqNum;
use crate::share::{AddressTable, Cx, Ingested};
use crate::table::{Flags, Table, takes_connection};
use crate::time::{Duration, Instant};
use crate::wire::{FastOpenCookie, TcpFlags};
use core::net::IpAddr;
use core::num::NonZeroU32;

/// Both sides' state.
#[derive(Debug)]
pub(crate) struct FastOpens {
    cookies: FastOpenCookies,
    /// Connections that came with their SYN and whose SYN-ACK is not acknowledged.
    pending: u32,
    servers: AddressTable<Server>,
}

/// What a client remembers of a server.
#[derive(Clone, Copy, Debug)]
struct Server {
    /// The last cookie; a request if there is none.
    cookie: FastOpenCookie,
    /// Its MSS; 0 if it gave none.
    mss: u16,
    /// SYNs with the option that were dropped one after the other.
    drops: u8,
    /// The option of RFC 7413 was not answered, so the experimental one is tried; once that was not
    /// answered either, the first again (Linux, `tcp_rcv_fastopen_synack`).
    asks: Asks,
    /// SYNs to it have no option until then.
    avoided_until: Instant,
}

/// The option with which a client asks a server for a cookie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asks {
    Standard,
    Experimental,
    /// The standard one again, for good.
    StandardOnly,
}

/// A server is remembered for so long after its last answer. It may renew its cookie at any time,
/// so that an old one costs nothing but the chance of an answer within the first round trip.
const MEMORY: Duration = Duration::from_secs(86_400);
/// The first dropped SYN may be a coincidence: as many are needed to avoid fast open (Linux,
/// `tcp_fastopen_cookie_check`).
const DROPS: u8 = 2;
/// The time for which it is avoided doubles so often (Linux, `tcp_fastopen_active_should_disable`).
const MAX_DOUBLINGS: u8 = 6;

/// What the SYN-ACK of a server tells a client with fast open, or that none came.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FastOpenNews {
    /// Its cookie.
    pub(crate) cookie: Option<FastOpenCookie>,
    /// It was asked for one, in the experimental option or not, and has given none.
    pub(crate) not_given: Option<bool>,
    /// Its MSS.
    pub(crate) mss: Option<u16>,
    /// Nobody answered the SYN with fast open (RFC 7413, section 4.1.3).
    pub(crate) dropped: bool,
}

/// What a SYN is to a listener with fast open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FastOpenSyn {
    /// The beginning of a handshake.
    Ordinary,
    /// The same, and the SYN-ACK brings a cookie.
    WithoutCookie {
        /// In the experimental option, as the SYN has it.
        experimental: bool,
    },
    /// It makes a connection, whose SYN-ACK brings a cookie if there is one.
    Valid(Option<FastOpenCookie>),
}

impl FastOpens {
    /// With secret keys for the server's cookies and for the table of the client's.
    pub(crate) fn new(cookies: [u8; 16], servers: [u8; 16]) -> Self {
        Self { cookies: FastOpenCookies::new(cookies), pending: 0, servers: AddressTable::new(servers) }
    }

    pub(crate) fn set_keys(&mut self, current: [u8; 16], previous: Option<[u8; 16]>) {
        self.cookies.set_keys(current, previous);
    }

    pub(crate) const fn pending(&self) -> u32 {
        self.pending
    }

    /// The handshake of a pending connection is complete, or the connection has ended.
    pub(crate) const fn leave(&mut self) {
        self.pending -= 1;
    }

    /// Number of servers that are remembered.
    pub(crate) const fn servers(&self) -> usize {
        self.servers.len()
    }

    /// Bytes held.
    pub(crate) const fn memory(&self) -> usize {
        self.servers.memory()
    }

    /// The cookie for the client of `tuple`.
    pub(crate) fn cookie(&self, now: Instant, lifetime: Duration, tuple: &FourTuple) -> FastOpenCookie {
        self.cookies.make(now, lifetime, tuple)
    }
}

impl Opens {
    /// What a SYN for a listener with these settings is (RFC 7413, section 4.2.2). A SYN with FIN
    /// begins a handshake, so the FIN comes again.
    pub(crate) fn fast_open_syn(
        &mut self,
        cx: &mut Cx<'_>,
        config: &ConnConfig,
        inbound: &Inbound<'_>,
    ) -> FastOpenSyn {
        let Inbound { ref tuple, segment: syn, .. } = *inbound;
        if !config.fast_open.serves() {
            return FastOpenSyn::Ordinary;
        }
        let lifetime = cx.config.fast_open_key_lifetime;
        let counters = &mut cx.observe.counters;
        let renewed = match syn.fast_open() {
            // Whoever may leave the cookie out is believed without, or with any (Linux,
            // `TFO_SERVER_COOKIE_NOT_REQD`).
            shown if !config.fast_open_cookies && (shown.is_some() || !syn.payload.is_empty()) => None,
            None => return FastOpenSyn::Ordinary,
            Some(shown) if shown.is_request() => {
                counters.tcp_fast_open_cookie_reqd += 1;
                return FastOpenSyn::WithoutCookie { experimental: shown.is_experimental() };
            }
            Some(shown) => match self.fast_opens.cookies.check(cx.now, lifetime, tuple, &shown) {
                Validity::Current => None,
                Validity::Previous => Some(shown.is_experimental()),
                Validity::Invalid => {
                    counters.tcp_fast_open_passive_fail += 1;
                    return FastOpenSyn::WithoutCookie { experimental: shown.is_experimental() };
                }
            },
        };
        if !cx.limits.fast_open.has_room(self.fast_opens.pending as usize) {
            counters.tcp_fast_open_listen_overflow += 1;
            return FastOpenSyn::Ordinary;
        }
        if syn.flags.contains(TcpFlags::FIN) || !takes_connection(&mut cx.observe.budget) {
            return FastOpenSyn::Ordinary;
        }
        let renewed = renewed.map(|form| self.fast_opens.cookie(cx.now, lifetime, tuple).experimental(form));
        counters.tcp_fast_open_passive_alt_key += u64::from(renewed.is_some());
        FastOpenSyn::Valid(renewed)
    }

    /// A SYN with a valid cookie makes a connection of the listener with this number. `cookie`:
    /// what its SYN-ACK brings.
    pub(crate) fn accept_early(
        &mut self,
        below: &mut Below<'_>,
        cx: &mut Cx<'_>,
        number: NonZeroU32,
        inbound: &Inbound<'_>,
        iss: SeqNum,
        cookie: Option<FastOpenCookie>,
    ) -> Ingested {
        let Inbound { ref tuple, ip, segment: syn } = *inbound;
        let Some(listener) = self.listeners.get(number) else { return Ingested::Handled };
        let config = listener.accept.conn.clone();
        let half_open = HalfOpen::begun_by(syn, iss, Offer::of(syn, inbound.ip.ecn));
        let id = self.add_accepted(below, cx, Some(number), tuple, config, half_open);
        cx.observe.counters.tcp_fast_open_passive += 1;
        self.fast_opens.pending += 1;
        if let Some(slot) = below.table.slots.get_mut(id) {
            slot.flags.set(Flags::EARLY);
            if let Some(conn) = slot.conn.as_deref_mut() {
                conn.open_early(&mut cx.conn(id), ip, syn, cookie);
            }
        }
        below.egress.touch(below.table, cx, id.index);
        Ingested::Accepted(id)
    }

    /// An active open uses what is known of its server.
    pub(crate) fn expect_fast_open(&self, table: &mut Table, cx: &Cx<'_>, id: ConnId) {
        let Some(conn) = table.slots.conn_mut(id.index) else { return };
        let cookies = conn.config().fast_open_cookies;
        if (cx.config.max_fast_open_entries == 0 && cookies) || !conn.connects_fast() {
            return;
        }
        let server = self.fast_opens.servers.find(cx.now, conn.tuple().remote_ip()).map(|entry| entry.value);
        if server.is_some_and(|server| server.avoided_until > cx.now) {
            return;
        }
        let mss = server.map_or(0, |server| server.mss);
        if !cookies {
            conn.send_without_cookie(mss);
            return;
        }
        let cookie = server.map_or(FastOpenCookie::REQUEST, |server| server.cookie);
        let asks = server.is_some_and(|server| server.asks == Asks::Experimental);
        let experimental = cookie.is_experimental() || (cookie.is_request() && asks);
        conn.try_fast_open(cookie.experimental(experimental), mss);
    }

    /// The connection at `index` has ended. If that is because nobody answered its SYNs, the first
    /// of which had a fast open option, a middlebox may drop whatever follows such a SYN.
    pub(crate) fn note_unanswered_fast_open(&mut self, table: &mut Table, cx: &mut Cx<'_>, index: u32) {
        if let Some(conn) = table.slots.conn_mut(index)
            && conn.take_unanswered_fast_open()
        {
            let to = conn.tuple().remote_ip();
            self.learn_fast_open(cx, to, &FastOpenNews { dropped: true, ..FastOpenNews::default() });
        }
    }

    /// A server has answered a SYN with fast open, or has not.
    pub(crate) fn learn_fast_open(&mut self, cx: &mut Cx<'_>, to: IpAddr, news: &FastOpenNews) {
        if cx.config.max_fast_open_entries == 0 {
            return;
        }
        let (servers, counters) = (&mut self.fast_opens.servers, &mut cx.observe.counters);
        let known = servers.find(cx.now, to).map(|entry| entry.value);
        let mut server = known.unwrap_or(Server {
            cookie: FastOpenCookie::REQUEST,
            mss: 0,
            drops: 0,
            asks: Asks::Standard,
            avoided_until: Instant::ZERO,
        });
        if let Some(cookie) = news.cookie {
            server.cookie = cookie;
        } else if let Some(experimental) = news.not_given
            && server.cookie.is_request()
        {
            server.asks = match (server.asks, experimental) {
                (Asks::Standard, false) => Asks::Experimental,
                (_, true) => Asks::StandardOnly,
                (asks, false) => asks,
            };
        }
        // The MSS may change with the path or the server, whether that gives a cookie again or not.
        server.mss = news.mss.unwrap_or(server.mss);
        server.drops = if news.dropped { server.drops.saturating_add(1) } else { 0 };
        if server.drops >= DROPS {
            let doublings = (server.drops - DROPS).min(MAX_DOUBLINGS);
            let timeout = cx.config.fast_open_blackhole_timeout;
            server.avoided_until = cx.now + timeout.saturating_mul(1 << doublings);
            counters.tcp_fast_open_blackhole += u64::from(!timeout.is_zero());
        }
        let until = server.avoided_until.max(cx.now) + MEMORY;
        let replaced = servers.learn(cx.now, to, server, until, cx.config.max_fast_open_entries);
        counters.tcp_fast_open_replaced += u64::from(replaced);
    }
}

#[cfg(test)]
mod tests {
    use super::Server;
    use crate::share::AddressEntry;

    #[test]
    fn a_server_takes_at_most_64_bytes() {
        assert!(size_of::<Option<AddressEntry<Server>>>() <= 64);
    }
}
