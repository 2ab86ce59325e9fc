//! The state diagram of RFC 9293 (section 3.3.2, figure 5) as a total function.
//!
//! ```text
//!                    CLOSED ──active open──► SYN-SENT ──syn+ack──► ESTABLISHED ──fin──► CLOSE-WAIT
//!                      │                        │ syn                 │ close              │ close
//!                 passive open                  ▼                     ▼                    ▼
//!                      └──► LISTEN ──syn──► SYN-RECEIVED          FIN-WAIT-1            LAST-ACK
//!                                             │ ack of syn     fin │     │ ack of fin       │ ack of fin
//!                                             ▼                    ▼     ▼                  ▼
//!                                        ESTABLISHED          CLOSING  FIN-WAIT-2        CLOSED
//!                                                          ack of fin│  │fin
//!                                                                    ▼  ▼
//!                                                                  TIME-WAIT ──2 MSL──► CLOSED
//! ```

use crate::State;

/// An input of the state diagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    /// The application opens actively.
    ActiveOpen,
    /// The application listens.
    PassiveOpen,
    /// A SYN without an acceptable ACK arrived.
    Syn,
    /// A SYN that also acknowledges ours arrived.
    SynAck,
    /// Our SYN was acknowledged by a segment without SYN.
    AckOfSyn,
    /// The application closes its sending side.
    Close,
    /// The peer's FIN arrived in order.
    Fin,
    /// Our FIN was acknowledged.
    AckOfFin,
    /// TIME-WAIT is over.
    TimeWaitOver,
    /// RST, abort, or a fatal timeout.
    Abort,
}

#[cfg(test)]
impl Input {
    /// All of them.
    pub(crate) const ALL: [Self; 10] = [
        Self::ActiveOpen,
        Self::PassiveOpen,
        Self::Syn,
        Self::SynAck,
        Self::AckOfSyn,
        Self::Close,
        Self::Fin,
        Self::AckOfFin,
        Self::TimeWaitOver,
        Self::Abort,
    ];
}

/// The state after `input`. Inputs that have no meaning in a state leave it unchanged.
pub(crate) const fn next(state: State, input: Input) -> State {
    use Input as I;
    use State as S;
    match (state, input) {
        (_, I::Abort) => S::Closed,

        (S::Closed, I::ActiveOpen) | (S::Listen, I::ActiveOpen) => S::SynSent,
        (S::Closed, I::PassiveOpen) => S::Listen,
        (S::Listen, I::Syn) => S::SynReceived,
        (S::Listen, I::Close) => S::Closed,

        (S::SynSent, I::Syn) => S::SynReceived,
        (S::SynSent, I::SynAck) => S::Established,
        (S::SynSent, I::Close) => S::Closed,

        (S::SynReceived, I::AckOfSyn) => S::Established,
        (S::SynReceived, I::Close) => S::FinWait1,
        (S::SynReceived, I::Fin) => S::CloseWait,

        (S::Established, I::Close) => S::FinWait1,
        (S::Established, I::Fin) => S::CloseWait,

        (S::FinWait1, I::AckOfFin) => S::FinWait2,
        (S::FinWait1, I::Fin) => S::Closing,
        (S::FinWait2, I::Fin) => S::TimeWait,
        (S::CloseWait, I::Close) => S::LastAck,
        (S::Closing, I::AckOfFin) => S::TimeWait,
        (S::LastAck, I::AckOfFin) => S::Closed,
        (S::TimeWait, I::TimeWaitOver) => S::Closed,

        (state, _) => state,
    }
}

#[cfg(test)]
mod tests {
    use super::{Input, next};
    use crate::State;

    #[test]
    fn every_state_can_be_left_and_reached() {
        for state in State::ALL {
            assert_eq!(next(state, Input::Abort), State::Closed);
            if state != State::Closed {
                let reached = State::ALL.iter().any(|from| {
                    *from != state && Input::ALL.iter().any(|input| next(*from, *input) == state)
                });
                assert!(reached, "{state} cannot be reached");
            }
        }
    }

    #[test]
    fn an_orderly_close_from_either_side_ends_in_closed() {
        let active = [Input::Close, Input::AckOfFin, Input::Fin, Input::TimeWaitOver];
        let passive = [Input::Fin, Input::Close, Input::AckOfFin];
        let simultaneous = [Input::Close, Input::Fin, Input::AckOfFin, Input::TimeWaitOver];
        for path in [&active[..], &passive[..], &simultaneous[..]] {
            assert_eq!(
                path.iter().fold(State::Established, |state, input| next(state, *input)),
                State::Closed
            );
        }
    }

    #[test]
    fn data_never_reopens_a_closed_side() {
        for state in [State::LastAck, State::Closing, State::TimeWait, State::CloseWait] {
            assert_eq!(next(state, Input::Fin), state);
            assert_eq!(next(state, Input::Syn), state);
        }
    }
}
