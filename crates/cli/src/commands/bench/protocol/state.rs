//! The octets of the control connection.

/// What comes next, as one end says it to the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TestState {
    /// Both ends get ready.
    TestStart,
    /// Data flows from here on.
    TestRunning,
    /// The client has had enough.
    TestEnd,
    /// The server waits for parameters.
    ParamExchange,
    /// The server waits for the connections that carry data.
    CreateStreams,
    /// The server was stopped by its user.
    ServerTerminate,
    /// The client was stopped by its user.
    ClientTerminate,
    /// The server waits for results, and then gives its own.
    ExchangeResults,
    /// All is known.
    DisplayResults,
    /// The client says good-bye.
    IperfDone,
    /// The server runs another test.
    AccessDenied,
    /// The server cannot do what it was asked for; two numbers follow, see [`ServerError`].
    ServerError,
}

/// Every state with its octet, which is a signed number.
const OCTETS: [(TestState, i8); 12] = [
    (TestState::TestStart, 1),
    (TestState::TestRunning, 2),
    (TestState::TestEnd, 4),
    (TestState::ParamExchange, 9),
    (TestState::CreateStreams, 10),
    (TestState::ServerTerminate, 11),
    (TestState::ClientTerminate, 12),
    (TestState::ExchangeResults, 13),
    (TestState::DisplayResults, 14),
    (TestState::IperfDone, 16),
    (TestState::AccessDenied, -1),
    (TestState::ServerError, -2),
];

impl TestState {
    pub(crate) fn octet(self) -> u8 {
        let found = OCTETS.iter().find(|(state, _)| *state == self);
        found.map_or(0, |(_, octet)| octet.cast_unsigned())
    }

    /// `None` for an octet that means nothing.
    pub(crate) fn from_octet(octet: u8) -> Option<Self> {
        OCTETS.iter().find(|(_, known)| known.cast_unsigned() == octet).map(|(state, _)| *state)
    }
}

/// Why a server refuses: iperf3's number of the error, and the operating system's, 0 if it has
/// none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ServerError {
    pub(crate) code: u32,
    pub(crate) errno: u32,
}

impl ServerError {
    /// iperf3's "this feature is not implemented".
    pub(crate) const UNIMPLEMENTED: Self = Self { code: 13, errno: 0 };
    /// iperf3's "unable to receive parameters".
    pub(crate) const PARAMETERS: Self = Self { code: 114, errno: 0 };
    /// iperf3's "unable to set socket buffer size", and `ENOBUFS`.
    pub(crate) const BUFFERS: Self = Self { code: 124, errno: 105 };
    /// iperf3's "unable to create a stream".
    pub(crate) const STREAMS: Self = Self { code: 200, errno: 0 };

    /// The words for the numbers that matter to a client.
    pub(crate) fn words(self) -> String {
        let what = match self.code {
            13 => "it does not have this feature",
            27 => "its limit of the bitrate is exceeded",
            113 | 114 => "it does not take the parameters",
            122 => "it cannot switch Nagle's algorithm off (-N)",
            123 => "it cannot set this maximum segment size (-M)",
            124 | 130 | 141 => "it cannot have buffers of this size (-w)",
            125 => "it cannot set this type of service",
            134 => "it cannot use this congestion control (-C; --cc is of this end only)",
            142 => "it wants a login",
            200..=204 => "it has no connections for the data",
            205 => "it can no longer send",
            206 => "it can no longer receive",
            207 => "a data connection of it was closed",
            _ => "",
        };
        let numbers = format!("error {}, errno {}", self.code, self.errno);
        if what.is_empty() { numbers } else { format!("{what} ({numbers})") }
    }
}
