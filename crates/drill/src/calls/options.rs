//! `setsockopt` and `getsockopt`. An option becomes a setting of the connection, or of the listener
//! whose connections will have it.

use super::{Kind, Socket, Sockets, arg, compare, compare_error};
use crate::host::Attempt;
use crate::script::{Call, Expr};
use crate::symbols;
use crate::world::World;
use ackline_tcp_core::config::{FastOpen, KeepAlive, MIN_BUFFER, Nagle};
use ackline_tcp_core::{ConnConfig, Duration, State};
use std::sync::Arc;

/// Linux doubles what `SO_SNDBUF` and `SO_RCVBUF` are given, for its own bookkeeping; half of the
/// double is for data.
const BOOKKEEPING: i64 = 2;

/// A level by its several names.
fn level(call: &Call) -> Result<&'static str, String> {
    match arg(call, 1)? {
        Expr::Int(1) => Ok("SOL_SOCKET"),
        Expr::Int(6) => Ok("SOL_TCP"),
        Expr::Int(0) => Ok("SOL_IP"),
        other => match symbols::name(other)? {
            "SOL_SOCKET" => Ok("SOL_SOCKET"),
            "SOL_TCP" | "IPPROTO_TCP" => Ok("SOL_TCP"),
            "SOL_IP" | "IPPROTO_IP" => Ok("SOL_IP"),
            "SOL_IPV6" | "IPPROTO_IPV6" => Ok("SOL_IPV6"),
            other => Err(format!("socket options of the level {other}")),
        },
    }
}

impl Sockets {
    pub(super) fn set_option(&mut self, world: &mut World, fd: i64, call: &Call) -> Result<Attempt, String> {
        let (level, name) = (level(call)?, symbols::name(arg(call, 2)?)?.to_owned());
        let (registry, profile) = (self.registry.clone(), self.profile);
        let fast_open = self.fast_open;
        let Some(socket) = self.get(fd) else { return Ok(Attempt::Failed("EBADF")) };
        if name == "TCP_CONGESTION" {
            let Expr::Text(spec) = arg(call, 3)? else {
                return Err("TCP_CONGESTION without a name".to_owned());
            };
            let Ok(cc) = profile.cc(&registry, spec) else { return Ok(Attempt::Failed("ENOENT")) };
            socket.config.policies.cc = cc.clone();
            if let Kind::Conn(id) = socket.kind
                && let Some(mut conn) = world.endpoint.conn(id)
            {
                conn.set_congestion_control(world.now, &*cc);
            }
            socket.share_settings(world);
            return Ok(Attempt::Returned(0));
        }
        if name == "SO_LINGER" {
            let field = |name| arg(call, 3)?.field(name).map_or(Ok(0), symbols::value);
            let time = Duration::from_secs(u64::try_from(field("linger")?).unwrap_or(0));
            socket.linger = (field("onoff")? != 0).then_some(time);
            return Ok(Attempt::Returned(0));
        }
        // FreeBSD's choice among its own stacks.
        if name == "TCP_FUNCTION_BLK" {
            return Ok(Attempt::Returned(0));
        }
        if name == "TCP_FASTOPEN_KEY" {
            return fast_open_key(world, arg(call, 3)?);
        }
        let value = symbols::listed(arg(call, 3)?)?;
        if let Some(failed) = socket.apply(world, level, &name, value, fast_open)? {
            return Ok(failed);
        }
        socket.set.insert((level.to_owned(), name), value);
        socket.share_settings(world);
        Ok(Attempt::Returned(0))
    }

    pub(super) fn get_option(&mut self, world: &mut World, fd: i64, call: &Call) -> Result<Attempt, String> {
        let (level, name) = (level(call)?, symbols::name(arg(call, 2)?)?);
        let Some(socket) = self.get(fd) else { return Ok(Attempt::Failed("EBADF")) };
        if name == "TCP_CONGESTION" {
            let Expr::Text(expected) = arg(call, 3)? else { return Ok(Attempt::Returned(0)) };
            let Kind::Conn(id) = socket.kind else {
                return Err("TCP_CONGESTION of no connection".to_owned());
            };
            let actual = world.endpoint.conn(id).map_or("", |conn| conn.info().cc);
            return Ok(if actual == expected {
                Attempt::Returned(0)
            } else {
                Attempt::Differs(format!("TCP_CONGESTION: expected {expected:?}, got {actual:?}"))
            });
        }
        if name == "TCP_INFO" {
            return socket.compare_info(world, arg(call, 3)?);
        }
        let actual = socket.value(world, level, name)?;
        if *arg(call, 3)? == Expr::Ellipsis {
            return Ok(Attempt::Returned(0));
        }
        if name == "SO_ERROR" {
            let error = socket.take_error(world);
            return Ok(compare_error(arg(call, 3)?, error));
        }
        Ok(compare(name, symbols::listed(arg(call, 3)?)?, actual))
    }
}

/// A key, or two: 16 octets each, in hexadecimal with dashes (as `tcp_fastopen_key`).
fn fast_open_key(world: &mut World, key: &Expr) -> Result<Attempt, String> {
    let Expr::Text(text) = key else { return Err("TCP_FASTOPEN_KEY without a text".to_owned()) };
    match crate::settings::fast_open_keys(text) {
        Some((current, previous)) => {
            world.endpoint.set_fast_open_keys(current, previous);
            Ok(Attempt::Returned(0))
        }
        None => Ok(Attempt::Failed("EINVAL")),
    }
}

impl Socket {
    /// A listener's connections get its settings.
    fn share_settings(&self, world: &mut World) {
        if let Kind::Listener { id, .. } = self.kind
            && let Some(accept) = world.endpoint.accept_config(id)
        {
            accept.conn = Arc::new(self.config.clone());
        }
    }

    /// `TCP_INFO`: each field that the script names.
    fn compare_info(&self, world: &mut World, expected: &Expr) -> Result<Attempt, String> {
        let Expr::Struct(fields) = expected else { return Ok(Attempt::Returned(0)) };
        let known = match self.kind {
            Kind::Conn(id) => {
                let now = world.now;
                world.endpoint.inspect(id).map(|conn| crate::info::assignments(&conn.info_at(now)))
            }
            _ => None,
        };
        let known = known.unwrap_or_else(|| crate::info::CLOSED.to_owned());
        for field in fields.iter().filter(|field| field.value != Expr::Ellipsis) {
            let named = known.lines().filter_map(|line| line.split_once(" = "));
            let value =
                named.filter(|(name, _)| *name == field.name).find_map(|(_, value)| value.parse().ok());
            let Some(actual) = value else { return Err(format!("tcp_info: {}", field.name)) };
            if let differs @ Attempt::Differs(_) = compare(&field.name, symbols::value(&field.value)?, actual)
            {
                return Ok(differs);
            }
        }
        Ok(Attempt::Returned(0))
    }

    fn keep_alive(&self) -> KeepAlive {
        let set = |name: &str| self.set.get(&("SOL_TCP".to_owned(), name.to_owned())).copied();
        let seconds = |name, default: Duration| {
            set(name).and_then(|value| u64::try_from(value).ok()).map_or(default, Duration::from_secs)
        };
        let default = self.config.keep_alive.unwrap_or_default();
        KeepAlive {
            idle: seconds("TCP_KEEPIDLE", default.idle),
            interval: seconds("TCP_KEEPINTVL", default.interval),
            count: set("TCP_KEEPCNT").and_then(|value| u8::try_from(value).ok()).unwrap_or(default.count),
            spread: default.spread,
        }
    }

    /// Applies an option to the settings, and to the connection if there is one.
    fn apply(
        &mut self,
        world: &mut World,
        level: &str,
        name: &str,
        value: i64,
        fast_open: i64,
    ) -> Result<Option<Attempt>, String> {
        let invalid = Ok(Some(Attempt::Failed("EINVAL")));
        let bytes = u32::try_from(value).unwrap_or(u32::MAX >> 2).clamp(MIN_BUFFER, 1 << 30);
        let now = world.now;
        let id = match self.kind {
            Kind::Conn(id) => Some(id),
            _ => None,
        };
        let mut conn = id.and_then(|id| world.endpoint.conn(id));
        let config: &mut ConnConfig = &mut self.config;
        match (level, name) {
            (
                "SOL_SOCKET",
                "SO_REUSEADDR" | "SO_REUSEPORT" | "SO_DEBUG" | "SO_PRIORITY" | "SO_MARK" | "SO_BUSY_POLL"
                | "SO_RCVLOWAT",
            ) if name != "SO_RCVLOWAT" || value <= 1 => {}
            ("SOL_SOCKET", "SO_ZEROCOPY") => match value {
                0 => self.zero_copy = None,
                1 => self.zero_copy = Some(self.zero_copy.take().unwrap_or_default()),
                _ => return invalid,
            },
            ("SOL_SOCKET", "SO_SNDBUF" | "SO_SNDBUFFORCE") => {
                (config.send_buffer, config.min_send_buffer) = (bytes, None);
                if let Some(conn) = &mut conn {
                    conn.set_send_buffer(now, bytes);
                    conn.set_min_send_buffer(now, None);
                }
            }
            ("SOL_SOCKET", "SO_RCVBUF" | "SO_RCVBUFFORCE") => {
                (config.recv_buffer, config.initial_recv_window) = (bytes, None);
                if let Some(conn) = &mut conn {
                    conn.set_recv_buffer(now, bytes);
                }
            }
            ("SOL_SOCKET", "SO_KEEPALIVE") => {
                let keep_alive = (value != 0).then(|| self.keep_alive());
                self.config.keep_alive = keep_alive;
                if let Some(conn) = &mut conn {
                    conn.set_keep_alive(now, keep_alive);
                }
            }
            ("SOL_TCP", "TCP_KEEPIDLE" | "TCP_KEEPINTVL" | "TCP_KEEPCNT") => {
                if value < 1 || value > if name == "TCP_KEEPCNT" { 127 } else { 32_767 } {
                    return invalid;
                }
                self.set.insert((level.to_owned(), name.to_owned()), value);
                if self.config.keep_alive.is_some() {
                    let keep_alive = Some(self.keep_alive());
                    self.config.keep_alive = keep_alive;
                    if let Some(conn) = &mut conn {
                        conn.set_keep_alive(now, keep_alive);
                    }
                }
            }
            ("SOL_TCP", "TCP_NODELAY") => {
                config.nagle = if value != 0 { Nagle::Off } else { Nagle::Minshall };
                let corked = config.cork;
                if let Some(conn) = &mut conn {
                    conn.set_nodelay(now, value != 0);
                    if value != 0 && corked {
                        // tcp(7): it pushes what waits, though the cork stays.
                        conn.set_cork(now, false);
                    }
                }
                if value != 0 && corked {
                    world.settle();
                    if let Some(mut conn) = id.and_then(|id| world.endpoint.conn(id)) {
                        conn.set_cork(now, true);
                    }
                }
            }
            ("SOL_TCP", "TCP_CORK") => {
                config.cork = value != 0;
                if let Some(conn) = &mut conn {
                    conn.set_cork(now, value != 0);
                }
            }
            ("SOL_TCP", "TCP_MAXSEG") => match u16::try_from(value) {
                Ok(mss @ 88..=32_767) if conn.is_none() => config.mss = Some(mss),
                Ok(88..=32_767) => return Err("TCP_MAXSEG of a connection that there is already".to_owned()),
                _ => return invalid,
            },
            ("SOL_TCP", "TCP_QUICKACK") => {
                if let Some(conn) = &mut conn {
                    conn.set_quick_acks(now, value != 0);
                }
            }
            ("SOL_TCP", "TCP_FASTOPEN") if fast_open & 2 != 0 => {
                let is_on = value > 0;
                config.fast_open = if is_on { FastOpen::Server } else { FastOpen::Off };
            }
            ("SOL_TCP", "TCP_FASTOPEN") => {}
            ("SOL_TCP", "TCP_FASTOPEN_CONNECT") => self.fast_open_connect = value != 0,
            ("SOL_TCP", "TCP_FASTOPEN_NO_COOKIE") => config.fast_open_cookies = value == 0,
            ("SOL_TCP", "TCP_NOTSENT_LOWAT") => {
                let limit = u32::try_from(value).ok().filter(|limit| (1..=1 << 30).contains(limit));
                config.notsent_lowat = limit;
                if let Some(conn) = &mut conn {
                    conn.set_notsent_lowat(now, limit);
                }
            }
            ("SOL_TCP", "TCP_SYNCNT") => match u8::try_from(value) {
                Ok(retries @ 1..=127) => {
                    config.syn_retries = retries;
                    if let Some(conn) = &mut conn {
                        conn.set_syn_retries(now, retries);
                    }
                }
                _ => return invalid,
            },
            ("SOL_TCP", "TCP_USER_TIMEOUT") => {
                let Ok(millis) = u64::try_from(value) else { return invalid };
                let limit = (millis > 0).then(|| Duration::from_millis(millis));
                config.user_timeout = limit;
                if let Some(conn) = &mut conn {
                    conn.set_user_timeout(now, limit);
                }
            }
            ("SOL_TCP", "TCP_LINGER2") => {
                let time = Duration::from_secs(u64::try_from(value).unwrap_or(0));
                config.fin_wait_2 = time;
                if let Some(conn) = &mut conn {
                    conn.set_fin_wait_2(now, time);
                }
            }
            ("SOL_TCP", "TCP_DEFER_ACCEPT") => {
                let seconds = u64::try_from(value).unwrap_or(0);
                config.defer_accept = (seconds > 0).then(|| Duration::from_secs(seconds));
            }
            ("SOL_TCP", "TCP_INQ") if (0..=1).contains(&value) => {}
            ("SOL_TCP", "TCP_INQ") => return invalid,
            ("SOL_IP", "IP_TOS") | ("SOL_IPV6", "IPV6_TCLASS") => {
                let Ok(tos) = u8::try_from(value) else { return invalid };
                // TCP sets the two bits of ECN itself.
                config.dscp = tos >> 2;
                if let Some(conn) = &mut conn {
                    conn.set_dscp(now, tos >> 2);
                }
            }
            ("SOL_IP", "IP_TTL") | ("SOL_IPV6", "IPV6_UNICAST_HOPS") => {
                let Ok(ttl) = u8::try_from(value) else { return invalid };
                config.ttl = Some(ttl);
                if let Some(conn) = &mut conn {
                    conn.set_ttl(now, Some(ttl));
                }
            }
            ("SOL_IP", "IP_FREEBIND" | "IP_BIND_ADDRESS_NO_PORT") => {}
            // Segments always have DF, and their size follows what ICMP reports.
            ("SOL_IP", "IP_MTU_DISCOVER") if (1..=2).contains(&value) => {}
            ("SOL_IPV6", "IPV6_MTU_DISCOVER") if (1..=2).contains(&value) => {}
            (level, name) => return Err(format!("the socket option {level}, {name} with {value}")),
        }
        Ok(None)
    }

    /// The value of an option that reads as a number.
    fn value(&mut self, world: &mut World, level: &str, name: &str) -> Result<i64, String> {
        let set = self.set.get(&(level.to_owned(), name.to_owned())).copied();
        let keep_alive = self.keep_alive();
        let seconds = |time: Duration| (time.as_millis() / 1_000) as i64;
        let info = match self.kind {
            Kind::Conn(id) => world.endpoint.conn(id).map(|conn| conn.info()),
            _ => None,
        };
        Ok(match (level, name) {
            ("SOL_SOCKET", "SO_ERROR") => 0,
            ("SOL_SOCKET", "SO_SNDBUF") => i64::from(self.config.send_buffer) * BOOKKEEPING,
            ("SOL_SOCKET", "SO_RCVBUF") => i64::from(self.config.recv_buffer) * BOOKKEEPING,
            ("SOL_SOCKET", "SO_ACCEPTCONN") => i64::from(matches!(self.kind, Kind::Listener { .. })),
            ("SOL_SOCKET", "SO_TYPE") => 1,
            ("SOL_SOCKET", "SO_PROTOCOL") => 6,
            ("SOL_TCP", "TCP_KEEPIDLE") => seconds(keep_alive.idle),
            ("SOL_TCP", "TCP_KEEPINTVL") => seconds(keep_alive.interval),
            ("SOL_TCP", "TCP_KEEPCNT") => i64::from(keep_alive.count),
            ("SOL_TCP", "TCP_SYNCNT") => i64::from(self.config.syn_retries),
            ("SOL_TCP", "TCP_LINGER2") => set.unwrap_or(seconds(self.config.fin_wait_2)),
            ("SOL_TCP", "TCP_MAXSEG") => {
                let snd_mss =
                    info.filter(|info| info.state != State::Closed).map(|info| i64::from(info.snd_mss));
                snd_mss.or(set).unwrap_or(536)
            }
            (level, name) => match set {
                Some(value) => value,
                None if matches!(
                    name,
                    "TCP_NODELAY"
                        | "TCP_CORK"
                        | "SO_KEEPALIVE"
                        | "SO_REUSEADDR"
                        | "SO_REUSEPORT"
                        | "TCP_USER_TIMEOUT"
                        | "SO_ZEROCOPY"
                        | "TCP_INQ"
                        | "TCP_FASTOPEN_CONNECT"
                        | "IP_TOS"
                ) =>
                {
                    0
                }
                None => return Err(format!("the socket option {level}, {name}, which was not set")),
            },
        })
    }
}
