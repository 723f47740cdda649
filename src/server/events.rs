//! The live stream: server-sent events to every page that listens.

use hyper::body::{Body, Bytes, Frame, SizeHint};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Mutex;
use std::task::{Context, Poll};
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// Maximum pages that listen at once.
const PAGES: usize = 32;
/// Maximum events that wait for a slow page. A slower page is disconnected; it connects again and reads everything.
const WAITING: usize = 64;

/// The pages that listen.
#[derive(Debug, Default)]
pub struct Listeners(Mutex<Vec<Sender<Bytes>>>);

impl Listeners {
    /// A stream for one more page; `None` if there are too many.
    pub fn add(&self) -> Option<Events> {
        let mut all = self.0.lock().ok()?;
        all.retain(|page| !page.is_closed());
        if all.len() >= PAGES {
            return None;
        }
        let (to, from) = channel(WAITING);
        // Tells the page that it is connected, and when to retry.
        let _ = to.try_send(Bytes::from_static(b"retry: 2000\n\n"));
        all.push(to);
        Some(Events(from))
    }

    pub fn are_any(&self) -> bool {
        self.0.lock().is_ok_and(|all| all.iter().any(|page| !page.is_closed()))
    }

    /// Sends an event; `data` is one line.
    pub fn send(&self, name: &str, data: &str) {
        self.send_bytes(format!("event: {name}\ndata: {data}\n\n").into());
    }

    /// Sends a comment, to detect pages that have disconnected.
    pub fn ping(&self) {
        self.send_bytes(Bytes::from_static(b": ping\n\n"));
    }

    fn send_bytes(&self, bytes: Bytes) {
        if let Ok(mut all) = self.0.lock() {
            all.retain(|page| page.try_send(bytes.clone()).is_ok());
        }
    }
}

/// The body of a streaming answer.
#[derive(Debug)]
pub struct Events(Receiver<Bytes>);

impl Body for Events {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(context).map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}
