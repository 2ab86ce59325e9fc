//! The first record: qlog's container (draft-ietf-quic-qlog-main-schema-14, section 6).

use super::TraceOptions;
use super::date;
use serde::{Deserialize, Serialize};

/// The only schema that a [`Reader`](super::Reader) takes.
pub(super) const FILE_SCHEMA: &str = "urn:ietf:params:qlog:file:sequential";
/// RFC 7464 for qlog.
const SERIALIZATION_FORMAT: &str = "application/qlog+json-seq";
/// The namespaces of [`Event`](super::Event); docs/traces.md is what they say.
const EVENT_SCHEMAS: [&str; 2] = ["urn:ackline:qlog:events:recovery", "urn:ackline:qlog:events:ackline"];

/// What a file says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Header {
    /// qlog's schema of the file.
    pub file_schema: String,
    /// How it is written.
    pub serialization_format: String,
    /// A name.
    #[serde(default)]
    pub title: String,
    /// More about it, such as the policies in use.
    #[serde(default)]
    pub description: String,
    /// Of all records.
    pub trace: TraceSeq,
}

/// What all records have in common.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TraceSeq {
    /// Of all records.
    #[serde(default)]
    pub common_fields: CommonFields,
    /// Where they were seen.
    #[serde(default)]
    pub vantage_point: VantagePoint,
    /// The namespaces of events.
    pub event_schemas: Vec<String>,
}

/// Fields that every record has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CommonFields {
    /// `relative_to_epoch`.
    #[serde(default)]
    pub time_format: String,
    /// The clock.
    #[serde(default)]
    pub reference_time: ReferenceTime,
}

/// What times are measured with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ReferenceTime {
    /// `monotonic`.
    pub clock_type: String,
    /// `unknown`, as it must be for a monotonic clock.
    pub epoch: String,
    /// The date of time 0, in nanoseconds (RFC 3339).
    #[serde(default)]
    pub wall_clock_time: String,
}

/// Where events were seen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct VantagePoint {
    /// A name.
    #[serde(default)]
    pub name: String,
    /// `unknown`: a stack opens connections and accepts them. Each `ackline:connection_opened` has
    /// its role.
    #[serde(rename = "type")]
    pub kind: String,
}

impl Header {
    pub(super) fn of(options: &TraceOptions) -> Self {
        Self {
            file_schema: FILE_SCHEMA.to_owned(),
            serialization_format: SERIALIZATION_FORMAT.to_owned(),
            title: options.title.clone(),
            description: options.description.clone(),
            trace: TraceSeq {
                common_fields: CommonFields {
                    time_format: "relative_to_epoch".to_owned(),
                    reference_time: ReferenceTime {
                        clock_type: "monotonic".to_owned(),
                        epoch: "unknown".to_owned(),
                        wall_clock_time: date::rfc3339(options.origin_unix_ns),
                    },
                },
                vantage_point: VantagePoint {
                    name: options.vantage_point.clone(),
                    kind: "unknown".to_owned(),
                },
                event_schemas: EVENT_SCHEMAS.map(str::to_owned).to_vec(),
            },
        }
    }
}
