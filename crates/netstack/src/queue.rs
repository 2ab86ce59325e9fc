//! A bounded queue between two sides that wait for each other.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// The two ends of a queue of at most `most` items, at least one.
pub(crate) fn queue<T>(most: usize) -> (Sender<T>, Receiver<T>) {
    let state = State {
        items: VecDeque::new(),
        most: most.max(1),
        receiver: None,
        senders: vec![],
        count: 1,
        is_received: true,
    };
    let shared = Arc::new(Mutex::new(state));
    (Sender(shared.clone()), Receiver(shared))
}

struct State<T> {
    items: VecDeque<T>,
    most: usize,
    /// The receiver, if it waits for an item.
    receiver: Option<Waker>,
    /// The senders that wait for room.
    senders: Vec<Waker>,
    /// How many senders there are.
    count: usize,
    /// The receiver exists.
    is_received: bool,
}

/// Why an item was not taken.
#[derive(Debug)]
pub(crate) enum NotSent<T> {
    /// There is no room. The item comes back.
    Full(T),
    /// The receiver is gone.
    Closed,
}

/// Puts items into a queue. There may be several.
pub(crate) struct Sender<T>(Arc<Mutex<State<T>>>);

impl<T> Sender<T> {
    pub(crate) fn try_send(&self, item: T) -> Result<(), NotSent<T>> {
        let mut state = lock(&self.0);
        if !state.is_received {
            return Err(NotSent::Closed);
        }
        if state.items.len() >= state.most {
            return Err(NotSent::Full(item));
        }
        state.items.push_back(item);
        let receiver = state.receiver.take();
        drop(state);
        wake(receiver);
        Ok(())
    }

    /// True if an item would be taken, or the receiver is gone.
    pub(crate) fn has_room(&self) -> bool {
        let state = lock(&self.0);
        !state.is_received || state.items.len() < state.most
    }

    /// Ready when [`has_room`](Self::has_room).
    pub(crate) fn poll_room(&self, cx: &Context<'_>) -> Poll<()> {
        let mut state = lock(&self.0);
        if !state.is_received || state.items.len() < state.most {
            return Poll::Ready(());
        }
        if !state.senders.iter().any(|known| known.will_wake(cx.waker())) {
            state.senders.push(cx.waker().clone());
        }
        Poll::Pending
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        lock(&self.0).count += 1;
        Self(self.0.clone())
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        let mut state = lock(&self.0);
        state.count -= 1;
        let receiver = if state.count == 0 { state.receiver.take() } else { None };
        drop(state);
        wake(receiver);
    }
}

/// Takes items out of a queue.
pub(crate) struct Receiver<T>(Arc<Mutex<State<T>>>);

impl<T> Receiver<T> {
    /// Moves up to `most` items to `out`. False if there was none.
    pub(crate) fn take(&self, most: usize, out: &mut Vec<T>) -> bool {
        let mut state = lock(&self.0);
        let count = state.items.len().min(most);
        out.extend(state.items.drain(..count));
        let senders = if count > 0 { std::mem::take(&mut state.senders) } else { vec![] };
        drop(state);
        senders.into_iter().for_each(Waker::wake);
        count > 0
    }

    /// The next item; `None` after the last if all senders are gone.
    pub(crate) fn poll_next(&self, cx: &Context<'_>) -> Poll<Option<T>> {
        let mut state = lock(&self.0);
        let Some(item) = state.items.pop_front() else { return state.wait(cx).map(|()| None) };
        let senders = std::mem::take(&mut state.senders);
        drop(state);
        senders.into_iter().for_each(Waker::wake);
        Poll::Ready(Some(item))
    }

    /// Ready when an item waits, or none can come any more.
    pub(crate) fn poll_filled(&self, cx: &Context<'_>) -> Poll<()> {
        let mut state = lock(&self.0);
        if state.items.is_empty() { state.wait(cx) } else { Poll::Ready(()) }
    }

    /// True if all senders are gone, and what they have sent has been taken.
    pub(crate) fn is_at_end(&self) -> bool {
        let state = lock(&self.0);
        state.items.is_empty() && state.count == 0
    }

    /// Nothing is taken any more. What waits can still be received.
    pub(crate) fn close(&self) {
        let mut state = lock(&self.0);
        state.is_received = false;
        let senders = std::mem::take(&mut state.senders);
        drop(state);
        senders.into_iter().for_each(Waker::wake);
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        self.close();
        let items = std::mem::take(&mut lock(&self.0).items);
        drop(items);
    }
}

impl<T> State<T> {
    /// Registers the receiver of an empty queue. Ready if nothing can come any more.
    fn wait(&mut self, cx: &Context<'_>) -> Poll<()> {
        if self.count == 0 || !self.is_received {
            return Poll::Ready(());
        }
        match &mut self.receiver {
            Some(known) => known.clone_from(cx.waker()),
            None => self.receiver = Some(cx.waker().clone()),
        }
        Poll::Pending
    }
}

fn lock<T>(state: &Mutex<State<T>>) -> MutexGuard<'_, State<T>> {
    // Only the allocator can panic under the lock.
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;

    #[tokio::test]
    async fn both_sides_wait_for_each_other() {
        const ITEMS: u32 = 10_000;
        let (sender, receiver) = queue(3);
        let sending = tokio::spawn(async move {
            for item in 0..ITEMS {
                while sender.try_send(item).is_err() {
                    poll_fn(|cx| sender.poll_room(cx)).await;
                }
            }
        });
        let receiving = async {
            let mut items = vec![];
            while let Some(item) = poll_fn(|cx| receiver.poll_next(cx)).await {
                items.push(item);
            }
            items
        };
        let items = tokio::time::timeout(std::time::Duration::from_secs(60), receiving).await;
        assert!(items.expect("no lost wake-up").into_iter().eq(0..ITEMS));
        sending.await.expect("no panic");
    }

    #[tokio::test]
    async fn after_the_last_sender_is_gone_comes_the_end_and_after_the_receiver_nothing_is_taken() {
        let (sender, receiver) = queue(2);
        let other = sender.clone();
        sender.try_send(1).expect("room");
        drop(sender);
        other.try_send(2).expect("room");
        assert!(matches!(other.try_send(3), Err(NotSent::Full(3))));
        drop(other);
        let mut taken = vec![];
        assert!(receiver.take(9, &mut taken) && receiver.is_at_end());
        assert_eq!(taken, [1, 2]);
        assert_eq!(poll_fn(|cx| receiver.poll_next(cx)).await, None);

        let (sender, receiver) = queue(1);
        sender.try_send(1).expect("room");
        drop(receiver);
        assert!(sender.has_room());
        assert!(matches!(sender.try_send(2), Err(NotSent::Closed)));
    }
}
