//! A host with several addresses: RFC 8305, Happy Eyeballs. What it costs if an address does not
//! answer is a quarter of a second.
//!
//! The resolver's answers for both versions of IP come together, in the order of RFC 6724.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;
use tokio::time::sleep;

/// RFC 8305, section 8: Connection Attempt Delay.
const ATTEMPT_DELAY: Duration = Duration::from_millis(250);

/// Connects to the address that answers first. The next attempt begins when the latest has failed,
/// or has lasted for [`ATTEMPT_DELAY`] (section 5); those that lose are dropped.
///
/// # Errors
/// That of the last attempt to fail; `NotFound` without an address.
pub(crate) async fn connect<T, F: Future<Output = io::Result<T>>>(
    addresses: impl IntoIterator<Item = SocketAddr>,
    attempt: impl Fn(SocketAddr) -> F,
) -> io::Result<T> {
    let mut left = alternating(addresses);
    let mut running = vec![];
    let mut last = ErrorKind::NotFound.into();
    loop {
        match left.pop_front() {
            Some(address) => running.push(Box::pin(attempt(address))),
            None if running.is_empty() => return Err(last),
            None => {}
        }
        let mut next = pin!(sleep(ATTEMPT_DELAY));
        let ended = poll_fn(|cx| {
            for at in 0..running.len() {
                if let Poll::Ready(outcome) = running[at].as_mut().poll(cx) {
                    drop(running.swap_remove(at));
                    return Poll::Ready(Some(outcome));
                }
            }
            if left.is_empty() { Poll::Pending } else { next.as_mut().poll(cx).map(|()| None) }
        });
        match ended.await {
            Some(Ok(connected)) => return Ok(connected),
            Some(Err(error)) => last = error,
            None => {}
        }
    }
}

/// The versions of IP take turns, in the order that each has; the first address stays first
/// (section 4).
fn alternating(addresses: impl IntoIterator<Item = SocketAddr>) -> VecDeque<SocketAddr> {
    let mut addresses = addresses.into_iter().peekable();
    let first_is_v4 = addresses.peek().is_some_and(SocketAddr::is_ipv4);
    let (first, second): (Vec<_>, Vec<_>) = addresses.partition(|address| address.is_ipv4() == first_is_v4);
    let (mut first, mut second) = (first.into_iter(), second.into_iter());
    let mut mixed = VecDeque::new();
    while let (Some(address), other) | (other, Some(address)) = (first.next(), second.next()) {
        mixed.push_back(address);
        mixed.extend(other);
    }
    mixed
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use tokio::time::Instant;

    fn addresses(texts: &[&str]) -> Vec<SocketAddr> {
        texts.iter().map(|text| text.parse().expect("an address")).collect()
    }

    #[test]
    fn versions_take_turns_and_the_resolvers_first_stays_first() {
        let mixed = |texts: &[&str]| Vec::from(alternating(addresses(texts)));
        assert_eq!(
            mixed(&["[::1]:1", "[::2]:1", "[::3]:1", "1.1.1.1:1", "1.1.1.2:1"]),
            addresses(&["[::1]:1", "1.1.1.1:1", "[::2]:1", "1.1.1.2:1", "[::3]:1"])
        );
        assert_eq!(
            mixed(&["1.1.1.1:1", "[::1]:1", "[::2]:1"]),
            addresses(&["1.1.1.1:1", "[::1]:1", "[::2]:1"])
        );
        assert_eq!(mixed(&[]), []);
    }

    /// What is asked of each address, in the order of attempts, and when; ports tell what the
    /// address does: 1 refuses after 20 ms, 2 never answers, 3 answers after 30 ms.
    async fn tried(texts: &[&str]) -> (Vec<(u128, SocketAddr)>, io::Result<SocketAddr>, u128) {
        let begun = Instant::now();
        let log = RefCell::new(vec![]);
        let attempt = async |address: SocketAddr| {
            log.borrow_mut().push((begun.elapsed().as_millis(), address));
            match address.port() {
                1 => sleep(Duration::from_millis(20)).await,
                2 => std::future::pending().await,
                _ => {
                    sleep(Duration::from_millis(30)).await;
                    return Ok(address);
                }
            }
            Err(ErrorKind::ConnectionRefused.into())
        };
        let outcome = connect(addresses(texts), attempt).await;
        (log.into_inner(), outcome, begun.elapsed().as_millis())
    }

    #[tokio::test(start_paused = true)]
    async fn silence_costs_a_quarter_of_a_second_and_a_refusal_nothing() {
        let [v6, v4, v4_too] = ["[::1]", "1.1.1.1", "1.1.1.2"];
        let at = |host: &str, port: u16| format!("{host}:{port}").parse::<SocketAddr>().expect("an address");
        // t = 0, ::1 is silent; 250, so is 1.1.1.1; 500, 1.1.1.2 is asked; 530, it has answered.
        let (log, outcome, end) = tried(&["[::1]:2", "1.1.1.1:2", "1.1.1.2:3"]).await;
        assert_eq!(log, [(0, at(v6, 2)), (250, at(v4, 2)), (500, at(v4_too, 3))]);
        assert_eq!((outcome.expect("connected"), end), (at(v4_too, 3), 530));
        // A refusal is not waited for, and one that comes while another attempt lasts begins the
        // next one.
        let (log, outcome, end) = tried(&["[::1]:1", "1.1.1.1:3"]).await;
        assert_eq!(log, [(0, at(v6, 1)), (20, at(v4, 3))]);
        assert_eq!((outcome.expect("connected"), end), (at(v4, 3), 50));
        // Nobody answers: the last to fail tells why.
        let (log, outcome, end) = tried(&["[::1]:1", "1.1.1.1:1"]).await;
        assert_eq!((log.len(), end), (2, 40));
        assert_eq!(outcome.expect_err("refused").kind(), ErrorKind::ConnectionRefused);
        assert_eq!(tried(&[]).await.1.expect_err("nothing").kind(), ErrorKind::NotFound);
    }
}
