//! The responses that are compared.

/// A response to a timeout, and the hosts that have it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Response {
    /// Its name in jobs and checks.
    pub(super) id: &'static str,
    /// Its name in tables and figures.
    pub(super) label: &'static str,
    /// What is set in a scenario.
    pub(super) sets: &'static [&'static str],
}

/// All of them; those that the draft has first.
pub(super) const RESPONSES: [Response; 10] = [
    Response {
        id: "dclor",
        label: "DCLOR",
        sets: &["conn.rto=dclor:profile=paper", "conn.max_undecided_rtos=0"],
    },
    // Timestamps take 12 bytes of each segment: 1,448 are left.
    Response {
        id: "eifel-full",
        label: "Eifel, full",
        sets: &["conn.rto=eifel:restore=full", "conn.timestamps=true"],
    },
    Response { id: "go-back-n", label: "Go-back-N", sets: &["conn.rto=go-back-n"] },
    Response { id: "frto-halve", label: "F-RTO, half", sets: &["conn.rto=frto:response=halve"] },
    Response { id: "dclor-conservative", label: "DCLOR, conservative", sets: &["conn.rto=dclor"] },
    Response {
        id: "eifel-rfc4015",
        label: "Eifel, RFC 4015",
        sets: &["conn.rto=eifel:restore=rfc4015", "conn.timestamps=true"],
    },
    Response { id: "frto-rfc4015", label: "F-RTO, RFC 4015", sets: &["conn.rto=frto:response=rfc4015"] },
    Response {
        id: "linux",
        label: "Linux",
        sets: &["conn.rto=linux", "conn.loss=rack", "conn.tlp=true", "conn.prr=true", "conn.undo=true"],
    },
    Response {
        id: "linux-timestamps",
        label: "Linux, timestamps",
        sets: &[
            "conn.rto=linux",
            "conn.timestamps=true",
            "conn.loss=rack",
            "conn.tlp=true",
            "conn.prr=true",
            "conn.undo=true",
        ],
    },
    Response {
        id: "linux-today",
        label: "Linux, today's host",
        sets: &[
            "conn.rto=linux",
            "conn.timestamps=true",
            "conn.window_scale=true",
            "conn.initial_window=10",
            "conn.initial_rto=1s",
            "conn.loss=rack",
            "conn.tlp=true",
            "conn.prr=true",
            "conn.undo=true",
        ],
    },
];

/// Those that the draft has.
pub(super) fn of_the_draft() -> &'static [Response] {
    &RESPONSES[..4]
}
