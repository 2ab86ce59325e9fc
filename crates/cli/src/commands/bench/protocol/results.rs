//! What one end measured, as it tells the other.

use super::values::{lines, number, text};
use crate::args::limits::MAX_STREAMS;
use crate::commands::bench::report::record::{Cpu, ServerOutput};
use serde_json::{Map, Value, json};
use std::time::Duration;

/// One end's results.
#[derive(Clone, Debug, Default)]
pub(crate) struct Results {
    pub(crate) cpu: Cpu,
    /// This end sends on at least one stream.
    pub(crate) sends: bool,
    pub(crate) congestion: Option<String>,
    /// What a server showed its user, if the client wants to see that.
    pub(crate) server_output: Option<ServerOutput>,
    pub(crate) streams: Vec<StreamResult>,
}

/// One end's view of a stream.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct StreamResult {
    /// 1, 3, 4, 5 and so on, in the order of connecting.
    pub(crate) id: u32,
    pub(crate) bytes: u64,
    /// Of a sender that counts them.
    pub(crate) retransmits: Option<u64>,
    pub(crate) time: Duration,
}

impl Results {
    pub(crate) fn to_json(&self) -> Value {
        let streams: Vec<Value> = self.streams.iter().map(|stream| stream.to_json()).collect();
        let mut document = Map::new();
        let mut add = |name: &str, value: Value| {
            document.insert(name.to_owned(), value);
        };
        add("cpu_util_total", json!(self.cpu.total));
        add("cpu_util_user", json!(self.cpu.user));
        add("cpu_util_system", json!(self.cpu.system));
        add("sender_has_retransmits", json!(if self.sends { 1 } else { -1 }));
        if let Some(congestion) = &self.congestion {
            add("congestion_used", json!(congestion));
        }
        match &self.server_output {
            Some(ServerOutput::Text(text)) => add("server_output_text", json!(text)),
            Some(ServerOutput::Json(json)) => add("server_output_json", json.clone()),
            None => {}
        }
        add("streams", Value::Array(streams));
        Value::Object(document)
    }

    /// The error says what is missing.
    pub(crate) fn from_json(document: &Value) -> Result<Self, String> {
        let percent = |name: &str| {
            document.get(name).and_then(Value::as_f64).filter(|percent| percent.is_finite()).unwrap_or(0.0)
        };
        let streams = document.get("streams").and_then(Value::as_array).ok_or("they have no streams")?;
        if streams.len() > 2 * MAX_STREAMS as usize {
            return Err(format!("they have {} streams", streams.len()));
        }
        let sends = document.get("sender_has_retransmits").and_then(Value::as_i64);
        let server_output = match (lines(document, "server_output_text"), document.get("server_output_json"))
        {
            (Some(text), _) => Some(ServerOutput::Text(text)),
            (None, Some(json)) => Some(ServerOutput::Json(json.clone())),
            (None, None) => None,
        };
        Ok(Self {
            cpu: Cpu {
                total: percent("cpu_util_total"),
                user: percent("cpu_util_user"),
                system: percent("cpu_util_system"),
            },
            sends: sends.is_some_and(|sends| sends > 0),
            congestion: text(document, "congestion_used"),
            server_output,
            streams: streams.iter().map(StreamResult::from_json).collect::<Result<_, _>>()?,
        })
    }

    /// The result of a stream.
    pub(crate) fn of(&self, id: u32) -> Option<&StreamResult> {
        self.streams.iter().find(|stream| stream.id == id)
    }
}

impl StreamResult {
    fn to_json(self) -> Value {
        json!({
            "id": self.id,
            "bytes": self.bytes,
            // A receiver has none to tell, which iperf3 says with -1.
            "retransmits": self.retransmits.map_or(json!(-1), |count| json!(count)),
            "jitter": 0,
            "errors": 0,
            "packets": 0,
            "start_time": 0,
            "end_time": self.time.as_secs_f64(),
        })
    }

    fn from_json(document: &Value) -> Result<Self, String> {
        let id = document.get("id").and_then(number).and_then(|id| u32::try_from(id).ok());
        let bytes = document.get("bytes").and_then(number);
        let (Some(id), Some(bytes)) = (id, bytes) else {
            return Err("a stream has no id or no bytes".to_owned());
        };
        let seconds = |name: &str| document.get(name).and_then(Value::as_f64).unwrap_or(0.0);
        let time = Duration::try_from_secs_f64(seconds("end_time") - seconds("start_time"));
        // iperf3 writes the -1 of one that does not count as an unsigned number.
        let retransmits = document.get("retransmits").and_then(Value::as_u64).filter(|n| *n < 1 << 62);
        Ok(Self { id, bytes, retransmits, time: time.unwrap_or_default() })
    }
}
