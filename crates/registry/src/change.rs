//! Settings of a live connection in text: `cc=reno,nagle=off`.

use crate::{Options, Registry};
use ackline_tcp_core::endpoint::Conn;
use ackline_tcp_core::policy::spec::SpecError;
use ackline_tcp_core::{ConnConfig, Instant};
use alloc::format;
use alloc::vec::Vec;

/// Sets one option of a connection to its value in the given settings.
type Setter = fn(&mut Conn<'_>, Instant, &ConnConfig);

/// The options that can change while a connection lives.
const LIVE: [(&str, Setter); 15] = [
    ("cc", |conn, now, to| conn.set_congestion_control(now, &*to.policies.cc)),
    ("ack", |conn, now, to| conn.set_ack_policy(now, &*to.policies.ack)),
    ("rto", |conn, now, to| conn.set_rto_response(now, &*to.policies.rto)),
    ("send_buffer", |conn, now, to| conn.set_send_buffer(now, to.send_buffer)),
    ("min_send_buffer", |conn, now, to| conn.set_min_send_buffer(now, to.min_send_buffer)),
    ("notsent_lowat", |conn, now, to| conn.set_notsent_lowat(now, to.notsent_lowat)),
    ("recv_buffer", |conn, now, to| conn.set_recv_buffer(now, to.recv_buffer)),
    ("nagle", |conn, now, to| conn.set_nagle(now, to.nagle)),
    ("cork", |conn, now, to| conn.set_cork(now, to.cork)),
    ("keep_alive", |conn, now, to| conn.set_keep_alive(now, to.keep_alive)),
    ("user_timeout", |conn, now, to| conn.set_user_timeout(now, to.user_timeout)),
    ("syn_retries", |conn, now, to| conn.set_syn_retries(now, to.syn_retries)),
    ("fin_wait_2", |conn, now, to| conn.set_fin_wait_2(now, to.fin_wait_2)),
    ("dscp", |conn, now, to| conn.set_dscp(now, to.dscp)),
    ("ttl", |conn, now, to| conn.set_ttl(now, to.ttl)),
];

/// A change of some settings of live connections: policies and options, each of which can change
/// while a connection lives.
#[derive(Clone, Debug)]
pub struct Change {
    options: Options,
    setters: Vec<Setter>,
}

impl Change {
    /// Reads `key=value,...`, as [`Registry::options`] does.
    ///
    /// # Errors
    /// As [`Registry::options`]; if there are none, or one cannot change on a live connection: then
    /// it says which can.
    pub fn parse(registry: &Registry, text: &str) -> Result<Self, SpecError> {
        let options = registry.options(text)?;
        let setters = options.iter().map(|(key, _)| setter(key)).collect::<Result<Vec<_>, _>>()?;
        if setters.is_empty() {
            return Err(SpecError::new("nothing to set; write KEY=VALUE, such as cc=reno"));
        }
        Ok(Self { options, setters })
    }

    /// Changes one connection.
    ///
    /// # Errors
    /// If settings contradict each other; the connection is as it was.
    pub fn apply(&self, conn: &mut Conn<'_>, now: Instant) -> Result<(), SpecError> {
        let to = self.options.conn(conn.config())?;
        for set in &self.setters {
            set(conn, now, &to);
        }
        Ok(())
    }
}

fn setter(key: &str) -> Result<Setter, SpecError> {
    let found = LIVE.iter().find(|(known, _)| *known == key);
    found.map(|(_, set)| *set).ok_or_else(|| {
        let known: Vec<&str> = LIVE.iter().map(|(known, _)| *known).collect();
        SpecError::new(format!("{key} cannot change on a live connection; these can: {}", known.join(", ")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn an_error_says_what_can_be_set() {
        let refused = |text| Change::parse(&Registry::default(), text).expect_err("wrong").to_string();
        assert!(
            refused("sack=off")
                .starts_with("sack cannot change on a live connection; these can: cc, ack, rto")
        );
        assert!(refused("cc=cubik").contains("did you mean \"cubic\"?"));
        assert!(refused("").contains("write KEY=VALUE"));
        Change::parse(&Registry::default(), "cc=reno,ack=immediate,nagle=off,ttl=9")
            .expect("all of them live");
    }
}
