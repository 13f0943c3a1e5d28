//! What the loop asks of an application.

use std::io;
use std::time::Duration;

use crate::{ConnId, Conns, Context, Peer};

/// An application on a loop. All calls come from the loop's thread, one at a time; none may block.
pub trait Service: Sized {
    /// What the application keeps per connection.
    type State;
    /// What other threads send to this loop's mailbox.
    type Message: Send + 'static;

    /// A client was accepted. An error's bytes are written as far as the kernel takes them at once, then the connection
    /// is closed; there is no [`Service::closed`] for it. To an encrypted listener's client nothing is written, as no hands
    /// were shaken yet.
    ///
    /// # Errors
    /// When the client is refused.
    fn accepted(&mut self, cx: &mut Context<Self::Message>, id: ConnId, peer: &Peer) -> Result<Self::State, Vec<u8>>;

    /// A connection made by [`Conns::connect`] stands, or could not be made; then [`Service::closed`] follows. An encrypted
    /// one stands when hands were shaken.
    fn connected(
        &mut self,
        cx: &mut Context<Self::Message>,
        id: ConnId,
        state: &mut Self::State,
        result: io::Result<()>,
    ) {
        let _ = (cx, id, state, result);
    }

    /// A client on an encrypted listener did not come through the handshake; [`Service::closed`] follows.
    fn handshake_failed(
        &mut self,
        cx: &mut Context<Self::Message>,
        peer: Option<Peer>,
        local: Option<Peer>,
        why: &str,
    ) {
        let _ = (cx, peer, local, why);
    }

    /// Bytes are there. `input` is everything not consumed so far. What is appended to `out`, which comes empty, is
    /// sent behind all earlier output of this connection.
    fn data(
        &mut self,
        cx: &mut Context<Self::Message>,
        id: ConnId,
        state: &mut Self::State,
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> Flow;

    /// The connection is gone.
    fn closed(&mut self, cx: &mut Context<Self::Message>, id: ConnId, state: Self::State, why: CloseReason);

    /// A message came through a [`crate::Mailbox`].
    fn message(&mut self, cx: &mut Context<Self::Message>, conns: &mut Conns<Self>, message: Self::Message);

    /// Called once per turn, after events and messages and before the loop sleeps; gives the longest time until it
    /// wants to be called again, or `None` for no limit.
    fn turn(&mut self, cx: &mut Context<Self::Message>, conns: &mut Conns<Self>) -> Option<Duration>;

    /// The kernel did not take all output of a connection: `pending_bytes` are kept. `false` closes it at once.
    fn output_pending(
        &mut self,
        cx: &mut Context<Self::Message>,
        id: ConnId,
        state: &mut Self::State,
        pending_bytes: usize,
    ) -> bool {
        let _ = (cx, id, state, pending_bytes);
        true
    }

    /// The peer of a *paused* connection will send nothing more. `true` closes it now; otherwise it is closed when it
    /// has been resumed and all its input is used. (A connection that is not paused always ends in the latter way.)
    fn half_closed(&mut self, cx: &mut Context<Self::Message>, id: ConnId, state: &mut Self::State) -> bool {
        let _ = (cx, id, state);
        true
    }

    /// The peer of a connection that is *not* paused will send nothing more, and all that it sent is used. `true` when
    /// it has answers to come: then the connection counts as paused, and the service closes it after them.
    fn awaits_answers(&mut self, cx: &mut Context<Self::Message>, id: ConnId, state: &mut Self::State) -> bool {
        let _ = (cx, id, state);
        false
    }

    /// Accepting failed, for example for want of descriptors. The loop tries again after a connection was closed, or
    /// 100 ms.
    fn accept_failed(&mut self, cx: &mut Context<Self::Message>, error: io::Error) {
        let _ = (cx, error);
    }
}

/// What [`Service::data`] did with its input and what is to happen next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Flow {
    /// Bytes of the input that were used.
    pub consumed: usize,
    /// What is to happen next.
    pub then: Then,
}

/// What is to happen next with a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// Call again when more bytes arrive.
    Continue,
    /// Call again when the input left over has grown to this many bytes (those left over now count).
    NeedMore(usize),
    /// Keep the rest of the input and stop reading until [`Conns::resume`].
    Pause,
    /// Complete requests are left, but the connection has used its share: call again after the others had their turn.
    Yield,
    /// Use no more input; close when all output is sent.
    Close,
    /// Close at once; output that is not sent yet is lost.
    CloseNow,
}

/// Why a connection was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// The peer closed its side.
    Peer,
    /// Reading or writing failed, for example because the peer reset the connection.
    Failed(io::ErrorKind),
    /// The service asked for it.
    Service,
    /// [`Service::output_pending`] refused to keep more output.
    OutputLimit,
    /// A connection of ours could not be made.
    ConnectFailed(io::ErrorKind),
    /// The loop was stopped.
    Stopped,
}
