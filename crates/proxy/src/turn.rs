//! What clients get in the present turn of the loop: all pieces in one buffer, and per client the list of its pieces, so that
//! each client's output of a turn is one `send`, and nothing is allocated for it.

use net::{ConnId, Conns, Service};

use crate::client::{Client, NO_CHUNK};

/// Capacity of the buffers that is kept between turns.
const KEPT_CAPACITY: usize = 1024 * 1024;

/// See the module.
#[derive(Default)]
pub struct Turn {
    /// The pieces.
    pub bytes: Vec<u8>,
    chunks: Vec<Chunk>,
    /// Where the pieces of a client with several are joined.
    joined: Vec<u8>,
}

#[derive(Clone, Copy)]
struct Chunk {
    conn: ConnId,
    /// The client's place.
    place: u32,
    start: usize,
    end: usize,
    /// The next piece of the same client.
    next: u32,
    is_first: bool,
}

impl Turn {
    /// What was appended to [`Turn::bytes`] since it was `start` long is for this client.
    #[inline]
    pub fn give(&mut self, place: u32, client: &mut Client, start: usize) {
        let end = self.bytes.len();
        if end == start {
            return;
        }
        let new = u32::try_from(self.chunks.len()).unwrap_or(NO_CHUNK);
        if let Some(last) = self.chunks.get_mut(client.last_chunk as usize) {
            if last.end == start {
                last.end = end;
                return;
            }
            last.next = new;
        } else {
            client.first_chunk = new;
        }
        client.last_chunk = new;
        let is_first = client.first_chunk == new;
        self.chunks.push(Chunk { conn: client.conn, place, start, end, next: NO_CHUNK, is_first });
    }

    /// Whether there is nothing to send.
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// Sends everything; `sent` is told of each client that got something, by its place and connection: it is to have no
    /// chunks any more.
    pub fn flush<S: Service>(&mut self, conns: &mut Conns<S>, mut sent: impl FnMut(&mut Conns<S>, u32, ConnId)) {
        let Turn { bytes, chunks, joined } = self;
        for chunk in chunks.iter().filter(|chunk| chunk.is_first) {
            let piece = bytes.get(chunk.start..chunk.end).unwrap_or(&[]);
            if chunk.next == NO_CHUNK {
                conns.send(chunk.conn, piece);
            } else {
                joined.clear();
                let mut part = Some(chunk);
                while let Some(chunk) = part {
                    joined.extend_from_slice(bytes.get(chunk.start..chunk.end).unwrap_or(&[]));
                    part = chunks.get(chunk.next as usize);
                }
                conns.send(chunk.conn, joined);
            }
            sent(conns, chunk.place, chunk.conn);
        }
        chunks.clear();
        bytes.clear();
        if bytes.capacity() + joined.capacity() > KEPT_CAPACITY {
            *bytes = Vec::new();
            *joined = Vec::new();
        }
    }
}
