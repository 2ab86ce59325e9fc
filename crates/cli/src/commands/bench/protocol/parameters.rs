//! What the client wants to be tested.

use super::state::ServerError;
use super::values::{bounded, flag, text};
use crate::args::limits::{MAX_BLOCK, MAX_BURST, MAX_OMIT, MAX_STREAMS, MAX_TIME, MAX_WINDOW, MSS_RANGE};
use crate::commands::bench::report::record::{Direction, Length, Parameters};
use serde_json::{Map, Value, json};

/// A test as the client describes it to the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TestParameters {
    pub(crate) direction: Direction,
    /// Streams in each direction.
    pub(crate) streams: u32,
    /// When it ends.
    pub(crate) length: Length,
    /// Seconds before that which do not count.
    pub(crate) omit: u32,
    /// Bytes per write.
    pub(crate) block: u64,
    /// Send and receive buffers of both ends, in bytes.
    pub(crate) window: Option<u64>,
    /// Maximum segment size, in bytes.
    pub(crate) mss: Option<u32>,
    /// Without Nagle's algorithm.
    pub(crate) no_delay: bool,
    /// Bits per second and stream; 0 is unlimited.
    pub(crate) bitrate: u64,
    /// Blocks that leave at once; 0 is as many as the bitrate has room for.
    pub(crate) burst: u32,
    /// IP's type of service.
    pub(crate) tos: u8,
    pub(crate) title: Option<String>,
    pub(crate) extra_data: Option<String>,
    /// Congestion control of both ends.
    pub(crate) congestion: Option<String>,
    /// The client wants to see what the server shows.
    pub(crate) server_output: bool,
}

/// Why parameters are not accepted: for the server's user, and for the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) why: String,
    pub(crate) error: ServerError,
}

#[cfg(test)]
impl TestParameters {
    /// One stream from the client, and nothing that an option asks for.
    pub(crate) fn plain(length: Length) -> Self {
        Self {
            direction: Direction::Forward,
            streams: 1,
            length,
            omit: 0,
            block: 128 << 10,
            window: None,
            mss: None,
            no_delay: false,
            bitrate: 0,
            burst: 0,
            tos: 0,
            title: None,
            extra_data: None,
            congestion: None,
            server_output: false,
        }
    }
}

impl TestParameters {
    /// The document for the server.
    pub(crate) fn to_json(&self) -> Value {
        let (time, bytes, blocks) = match self.length {
            Length::Seconds(time) => (time, 0, 0),
            Length::Bytes(bytes) => (0, bytes, 0),
            Length::Blocks(blocks) => (0, 0, blocks),
        };
        let mut document = Map::new();
        let mut add = |name: &str, value: Value| {
            document.insert(name.to_owned(), value);
        };
        add("tcp", json!(true));
        add("omit", json!(self.omit));
        add("time", json!(time));
        add("num", json!(bytes));
        add("blockcount", json!(blocks));
        add("parallel", json!(self.streams));
        add("len", json!(self.block));
        match self.direction {
            Direction::Forward => {}
            Direction::Reverse => add("reverse", json!(true)),
            Direction::Bidirectional => add("bidirectional", json!(true)),
        }
        if let Some(window) = self.window {
            add("window", json!(window));
        }
        if let Some(mss) = self.mss {
            add("MSS", json!(mss));
        }
        if self.no_delay {
            add("nodelay", json!(true));
        }
        if self.bitrate > 0 {
            add("bandwidth", json!(self.bitrate));
        }
        if self.burst > 0 {
            add("burst", json!(self.burst));
        }
        if self.tos > 0 {
            add("TOS", json!(self.tos));
        }
        // iperf3's own: microseconds between two looks at the bitrate.
        add("pacing_timer", json!(1000));
        let texts =
            [("title", &self.title), ("extra_data", &self.extra_data), ("congestion", &self.congestion)];
        for (name, text) in texts {
            if let Some(text) = text {
                add(name, json!(text));
            }
        }
        if self.server_output {
            add("get_server_output", json!(1));
        }
        // What iperf3 writes who speaks this version of the protocol.
        add("client_version", json!("3.12"));
        Value::Object(document)
    }

    /// What a client wants, as far as this server can do that.
    pub(crate) fn from_json(document: &Value) -> Result<Self, Refused> {
        let unknown = |why: &str| Refused { why: why.to_owned(), error: ServerError::UNIMPLEMENTED };
        if flag(document, "udp") {
            return Err(unknown("the client wants UDP (-u); there is TCP only"));
        }
        if flag(document, "sctp") {
            return Err(unknown("the client wants SCTP; there is TCP only"));
        }
        if flag(document, "reverse") && flag(document, "bidirectional") {
            return Err(unknown("the client wants one direction and both"));
        }
        Self::checked(document).map_err(|why| Refused {
            why: format!("the client's parameters are wrong: {why}"),
            error: ServerError::PARAMETERS,
        })
    }

    fn checked(document: &Value) -> Result<Self, String> {
        if !document.is_object() {
            return Err("they are no JSON object".to_owned());
        }
        let small = |name, most: u32| {
            bounded(document, name, u64::from(most)).map(|number| u32::try_from(number).unwrap_or(most))
        };
        let time = small("time", MAX_TIME)?;
        let (bytes, blocks) =
            (bounded(document, "num", u64::MAX)?, bounded(document, "blockcount", u64::MAX)?);
        let length = match (time, bytes, blocks) {
            (_, 0, 0) => Length::Seconds(time),
            (_, bytes, 0) => Length::Bytes(bytes),
            (_, _, blocks) => Length::Blocks(blocks),
        };
        let mss = match small("MSS", *MSS_RANGE.end())? {
            0 => None,
            mss if MSS_RANGE.contains(&mss) => Some(mss),
            _ => return Err(format!("MSS is less than {}", MSS_RANGE.start())),
        };
        Ok(Self {
            direction: match (flag(document, "reverse"), flag(document, "bidirectional")) {
                (false, false) => Direction::Forward,
                (true, _) => Direction::Reverse,
                (false, true) => Direction::Bidirectional,
            },
            streams: small("parallel", MAX_STREAMS)?.max(1),
            length,
            omit: small("omit", MAX_OMIT)?,
            block: match bounded(document, "len", MAX_BLOCK)? {
                0 => return Err("len is missing".to_owned()),
                block => block,
            },
            window: Some(bounded(document, "window", MAX_WINDOW)?).filter(|window| *window > 0),
            mss,
            no_delay: flag(document, "nodelay"),
            bitrate: bounded(document, "bandwidth", u64::MAX)?,
            burst: small("burst", MAX_BURST)?,
            tos: u8::try_from(small("TOS", 255)?).unwrap_or(0),
            title: text(document, "title"),
            extra_data: text(document, "extra_data"),
            congestion: text(document, "congestion"),
            server_output: flag(document, "get_server_output"),
        })
    }

    /// Refuses buffers of more than `most` bytes in all connections together. Each of them has two:
    /// a client may fill both.
    pub(crate) fn buffers_within(&self, most: u64) -> Result<(), Refused> {
        let Some(window) = self.window else { return Ok(()) };
        let connections = self.connections();
        let wanted = window.saturating_mul(2).saturating_mul(connections.into());
        if wanted <= most {
            return Ok(());
        }
        Err(Refused {
            why: format!(
                "the client wants windows (-w) of {window} bytes for {connections} connections, which takes {wanted} bytes \
                 of buffers; --max-buffers is {most}"
            ),
            error: ServerError::BUFFERS,
        })
    }

    /// For the report.
    pub(crate) fn described(&self) -> Parameters {
        Parameters {
            direction: self.direction,
            streams: self.streams,
            block_size: self.block,
            omit: self.omit,
            length: self.length,
            tos: self.tos,
            target_bitrate: self.bitrate,
            mss: self.mss,
        }
    }

    /// Connections for data, of both directions.
    pub(crate) fn connections(&self) -> u32 {
        match self.direction {
            Direction::Bidirectional => self.streams.saturating_mul(2),
            Direction::Forward | Direction::Reverse => self.streams,
        }
    }
}
