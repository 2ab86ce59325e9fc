//! The cells of the table.

use std::fmt;

/// The subject's state when the event comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SubjectState {
    Established,
    FinWait1,
    FinWait2,
    CloseWait,
    Closing,
    LastAck,
    TimeWait,
}

impl SubjectState {
    pub(super) const ALL: [Self; 7] = [
        Self::Established,
        Self::FinWait1,
        Self::FinWait2,
        Self::CloseWait,
        Self::Closing,
        Self::LastAck,
        Self::TimeWait,
    ];

    /// The peer's FIN has come.
    pub(super) const fn fin_came(self) -> bool {
        matches!(self, Self::CloseWait | Self::Closing | Self::LastAck | Self::TimeWait)
    }
}

/// What became of the data before the event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Data {
    /// All that the subject wrote was acknowledged; it has read all that came.
    Delivered,
    /// The peer's window is closed, and the subject has more to send.
    Unsent,
    /// The subject has sent what the peer has not acknowledged.
    Unacked,
    /// The subject has not read what came.
    Unread,
}

impl Data {
    pub(super) const ALL: [Self; 4] = [Self::Delivered, Self::Unsent, Self::Unacked, Self::Unread];
}

/// What happens then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Event {
    /// The peer sends an RST.
    Rst,
    /// The peer sends its FIN.
    Fin,
    /// The subject's application aborts the connection and keeps the handle: `abort`; in the kernel
    /// a connect to `AF_UNSPEC`.
    Abort,
    /// It drops the handle.
    Drop,
    /// It drops the handle, and linger is on with no time.
    LingerZero,
    /// The same with a second, in which the peer does nothing.
    LingerTimeout,
    /// The user timeout passes, in which the peer does nothing.
    UserTimeout,
    /// The interface between the two goes away.
    DeviceGone,
}

impl Event {
    pub(super) const ALL: [Self; 8] = [
        Self::Rst,
        Self::Fin,
        Self::Abort,
        Self::Drop,
        Self::LingerZero,
        Self::LingerTimeout,
        Self::UserTimeout,
        Self::DeviceGone,
    ];
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Cell {
    pub(super) event: Event,
    pub(super) state: SubjectState,
    pub(super) data: Data,
}

impl Cell {
    /// All that can be.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        Event::ALL
            .into_iter()
            .flat_map(|event| SubjectState::ALL.map(|state| (event, state)))
            .flat_map(|(event, state)| Data::ALL.map(|data| Self { event, state, data }))
            .filter(Self::is_possible)
    }

    fn is_possible(&self) -> bool {
        let Self { event, state, data } = *self;
        let event = match event {
            Event::Fin => !state.fin_came(),
            // The peer has closed, and forgotten the connection.
            Event::Rst => state != SubjectState::TimeWait,
            _ => true,
        };
        // In these states the subject's FIN was acknowledged, and all before it.
        let data = match data {
            Data::Unsent | Data::Unacked => !matches!(state, SubjectState::FinWait2 | SubjectState::TimeWait),
            Data::Delivered | Data::Unread => true,
        };
        event && data
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { event, state, data } = self;
        write!(f, "{event:?}, {state:?}, {data:?}")
    }
}
