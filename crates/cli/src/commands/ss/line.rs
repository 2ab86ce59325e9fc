//! A connection in the words of `ss -tino`, in Linux's units.

use serde_json::Value;
use std::fmt::Write as _;

/// The numbers of one connection as its stack sent them.
pub(crate) struct Connection<'a>(pub(crate) &'a Value);

impl Connection<'_> {
    fn number(&self, key: &str) -> Option<u64> {
        self.0.get(key)?.as_u64()
    }

    /// A count that was sent; 0 if it was not.
    pub(crate) fn count(&self, key: &str) -> u64 {
        self.number(key).unwrap_or(0)
    }

    pub(crate) fn text(&self, key: &str) -> &str {
        self.0.get(key).and_then(Value::as_str).unwrap_or("")
    }

    fn flag(&self, key: &str) -> bool {
        self.0.get(key).and_then(Value::as_bool).unwrap_or(false)
    }

    /// A time in nanoseconds as milliseconds with up to three digits, as `ss` has round trips.
    fn millis(&self, key: &str) -> Option<String> {
        self.number(key).map(|nanos| trimmed(nanos as f64 / 1e6))
    }

    /// Whole milliseconds since an instant.
    fn since(&self, key: &str) -> Option<u64> {
        Some(self.count("now").saturating_sub(self.number(key)?) / 1_000_000)
    }

    /// Bytes as segments of the sender, rounded up.
    fn segments(&self, key: &str) -> u64 {
        self.count(key).div_ceil(self.count("snd_mss").max(1))
    }

    /// `timer:(on,200ms,0)`; empty if none runs.
    pub(crate) fn timer(&self) -> String {
        let timer = self.0.get("timer").and_then(Value::as_array);
        let Some((name, at)) = timer.and_then(|pair| Some((pair.first()?.as_str()?, pair.get(1)?.as_u64()?)))
        else {
            return String::new();
        };
        let left = at.saturating_sub(self.count("now")) / 1_000_000;
        let tries = self.count(if name == "persist" { "probes" } else { "retransmits" });
        format!("timer:({name},{},{tries})", duration(left))
    }

    /// What `-m` shows, as far as a stack in userspace has it: memory received into and room for
    /// it, room to send, memory held beyond what is queued, and what is queued to be sent.
    pub(crate) fn memory(&self) -> String {
        let received = self.count("unread_bytes") + self.count("ooo_bytes");
        let queued = self.count("unacked") + self.count("notsent_bytes");
        let (rb, tb) = (self.count("rcv_space"), self.count("snd_buf"));
        let beyond = self.count("memory").saturating_sub(received + queued);
        format!("skmem:(r{received},rb{rb},t0,tb{tb},f{beyond},w{queued},o0,bl0,d0)")
    }

    /// The line of `-i`, in the order of iproute2.
    pub(crate) fn info(&self) -> String {
        let mut line = String::new();
        for (flag, name) in [(self.flag("timestamps"), "ts"), (self.flag("sack"), "sack")] {
            if flag {
                let _ = write!(line, "{name} ");
            }
        }
        if self.text("ecn") == "accurate" {
            line += "accecn ";
        } else if !matches!(self.text("ecn"), "off" | "") {
            line += "ecn ";
        }
        if self.flag("syn_data") {
            line += "fastopen ";
        }
        line += self.text("cc");
        if let Some([snd, rcv]) = self.0.get("wscale").and_then(Value::as_array).map(Vec::as_slice) {
            let _ = write!(line, " wscale:{snd},{rcv}");
        }
        let mut add = |name: &str, value: Option<String>| {
            if let Some(value) = value {
                let _ = write!(line, " {name}{value}");
            }
        };
        let always = |key: &str| Some(self.count(key).to_string());
        let some =
            |key: &str| Some(self.count(key)).filter(|count| *count > 0).map(|count| count.to_string());
        add("rto:", self.millis("rto"));
        add("backoff:", some("backoff"));
        let rtt = self.millis("rtt").zip(self.millis("rttvar"));
        add("rtt:", rtt.map(|(rtt, variation)| format!("{rtt}/{variation}")));
        add("ato:", self.millis("ato"));
        add("mss:", always("snd_mss"));
        add("pmtu:", always("pmtu"));
        add("rcvmss:", always("rcv_mss"));
        add("advmss:", always("advmss"));
        add("cwnd:", Some(self.segments("snd_cwnd").to_string()));
        add("ssthresh:", self.number("snd_ssthresh").map(|_| self.segments("snd_ssthresh").to_string()));
        for name in ["bytes_sent", "bytes_retrans", "bytes_acked", "bytes_received"] {
            add(&format!("{name}:"), some(name));
        }
        for name in ["segs_out", "segs_in", "data_segs_out", "data_segs_in"] {
            add(&format!("{name}:"), some(name));
        }
        let rtt = self.number("rtt").filter(|rtt| *rtt > 0);
        let send = rtt.map(|rtt| self.count("snd_cwnd") as f64 * 8e9 / rtt as f64);
        add("send ", send.map(|rate| format!("{rate:.0}bps")));
        add("lastsnd:", self.since("last_data_sent").map(|ms| ms.to_string()));
        add("lastrcv:", self.since("last_data_recv").map(|ms| ms.to_string()));
        add("lastack:", self.since("last_ack_recv").map(|ms| ms.to_string()));
        let rate = |key: &str| self.number(key).map(|rate| format!("{rate}bps"));
        add("pacing_rate ", rate("pacing_rate"));
        add("delivery_rate ", rate("delivery_rate"));
        let delivered = Some(self.segments("delivered")).filter(|count| *count > 0);
        add("delivered:", delivered.map(|count| count.to_string()));
        add("delivered_ce:", some("delivered_ce"));
        add("app_limited", self.flag("app_limited").then(String::new));
        let busy = self.count("busy_time");
        add("busy:", (busy > 0).then(|| format!("{}ms", busy / 1_000_000)));
        let share = |key: &str| {
            let limited = Some(self.count(key)).filter(|time| *time > 0 && busy > 0)?;
            Some(format!("{}ms({:.1}%)", limited / 1_000_000, 100.0 * limited as f64 / busy as f64))
        };
        for name in ["rwnd_limited", "sndbuf_limited"] {
            add(&format!("{name}:"), share(name));
        }
        add(
            "unacked:",
            Some(self.segments("unacked")).filter(|count| *count > 0).map(|count| count.to_string()),
        );
        let (now, total) = (self.segments("retrans"), self.count("total_retrans"));
        add("retrans:", (total > 0).then(|| format!("{now}/{total}")));
        for (name, key) in [("lost:", "lost"), ("sacked:", "sacked")] {
            add(name, Some(self.segments(key)).filter(|count| *count > 0).map(|count| count.to_string()));
        }
        add("dsack_dups:", some("dsack_dups"));
        add("reordering:", some("reordering").filter(|count| count != "3"));
        add("reord_seen:", some("reord_seen"));
        add("rcv_rtt:", self.millis("rcv_rtt").filter(|rtt| rtt != "0"));
        add("rcv_space:", some("rcv_space"));
        add("notsent:", some("notsent_bytes"));
        add("minrtt:", self.millis("min_rtt"));
        add("rcv_ooopack:", some("rcv_ooopack"));
        add("snd_wnd:", some("snd_wnd"));
        add("rcv_wnd:", some("rcv_wnd"));
        // What Linux has no name for.
        add("sched_limited:", share("sched_limited"));
        for (name, key) in
            [("ack_policy:", "ack_policy"), ("rto_response:", "rto_response"), ("blocked:", "blocked")]
        {
            add(name, Some(self.text(key).to_owned()).filter(|text| !text.is_empty()));
        }
        line
    }
}

/// A state as `ss` abbreviates it.
pub(crate) fn state(name: &str) -> &str {
    match name {
        "ESTABLISHED" => "ESTAB",
        "SYN-RECEIVED" => "SYN-RECV",
        "CLOSED" => "UNCONN",
        other => other,
    }
}

/// At most three digits behind the point, and no zeros at the end.
fn trimmed(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A time as `ss -o` has it: `1min20sec`, `1.2sec` or `200ms`.
fn duration(ms: u64) -> String {
    match ms {
        ms if ms >= 60_000 && (ms / 1_000) % 60 == 0 => format!("{}min", ms / 60_000),
        ms if ms >= 60_000 => format!("{}min{}sec", ms / 60_000, (ms / 1_000) % 60),
        ms if ms >= 1_000 => format!("{}sec", trimmed((ms / 100) as f64 / 10.0)),
        ms => format!("{ms:03}ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_line_has_the_units_of_linux() {
        let value = json!({
            "now": 5_000_000_000_u64, "timer": ["on", 5_204_000_000_u64], "backoff": 0, "timestamps": true, "sack": true,
            "ecn": "off", "cc": "cubic", "wscale": [7, 10], "rto": 204_000_000, "rtt": 500_000, "rttvar": 250_000,
            "snd_mss": 1448, "pmtu": 1500, "rcv_mss": 536, "advmss": 1448, "snd_cwnd": 14_480, "snd_ssthresh": null,
            "bytes_sent": 2000, "delivered": 2000, "last_data_sent": 4_988_000_000_u64, "min_rtt": 400_000,
            "delivery_rate": 1_000_000, "app_limited": true, "total_retrans": 2, "retrans": 0, "reordering": 3,
            "ato": 40_000_000, "last_data_recv": 4_990_000_000_u64, "busy_time": 1_200_900_000_u64, "rwnd_limited": 600_450_000,
            "sndbuf_limited": 0, "reord_seen": 4, "rcv_ooopack": 7, "rcv_wnd": 65_536,
        });
        let connection = Connection(&value);
        assert_eq!(connection.timer(), "timer:(on,204ms,0)");
        assert_eq!(
            connection.info(),
            "ts sack cubic wscale:7,10 rto:204 rtt:0.5/0.25 ato:40 mss:1448 pmtu:1500 rcvmss:536 advmss:1448 cwnd:10 bytes_sent:2000 \
             send 231680000bps lastsnd:12 lastrcv:10 delivery_rate 1000000bps delivered:2 app_limited busy:1200ms \
             rwnd_limited:600ms(50.0%) retrans:0/2 reord_seen:4 minrtt:0.4 rcv_ooopack:7 rcv_wnd:65536"
        );
    }

    #[test]
    fn timers_are_written_as_ss_does() {
        assert_eq!([7, 1_234, 60_000, 119_900].map(duration), ["007ms", "1.2sec", "1min", "1min59sec"]);
    }
}
