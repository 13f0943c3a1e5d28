//! Who listens to what, over all workers of the proxy: for the numbers that PUBLISH and PUBSUB answer.
//!
//! A server counts the proxy's connections, each once, however many clients are behind it. Its numbers are put right here:
//! minus the proxy's own subscriptions at that server, plus the proxy's clients.

use std::collections::HashMap;

use keyspace::glob;
use parking_lot::RwLock;

use super::hub::{Kind, Name};

/// Those of one name.
#[derive(Clone, Default, Debug)]
struct Tally {
    clients: usize,
    /// Subscriptions of workers, by backend.
    upstream: Vec<(std::net::SocketAddr, usize)>,
}

/// See the module.
#[derive(Default)]
pub struct Board(RwLock<[HashMap<Name, Tally>; 3]>);

impl Board {
    fn change(&self, kind: Kind, name: &Name, change: impl FnOnce(&mut Tally)) {
        let mut tallies = self.0.write();
        let of_kind = &mut tallies[kind as usize];
        let tally = of_kind.entry(name.clone()).or_default();
        change(tally);
        if tally.clients == 0 && tally.upstream.is_empty() {
            of_kind.remove(name);
        }
    }

    /// A client begins or ends listening.
    pub(crate) fn client(&self, kind: Kind, name: &Name, begins: bool) {
        self.change(kind, name, |tally| {
            tally.clients = if begins { tally.clients + 1 } else { tally.clients.saturating_sub(1) };
        });
    }

    /// A worker begins or ends a subscription at a server.
    pub(crate) fn upstream(&self, kind: Kind, name: &Name, server: std::net::SocketAddr, begins: bool) {
        self.change(kind, name, |tally| {
            let at = tally.upstream.iter().position(|(other, _)| *other == server);
            match (at, begins) {
                (Some(at), _) => {
                    if let Some((_, count)) = tally.upstream.get_mut(at) {
                        *count = if begins { *count + 1 } else { count.saturating_sub(1) };
                    }
                }
                (None, true) => tally.upstream.push((server, 1)),
                (None, false) => {}
            }
            tally.upstream.retain(|(_, count)| *count > 0);
        });
    }

    /// The number of receivers of a message on a channel, from what the server said that it was published at.
    pub(crate) fn receivers(&self, channel: &[u8], said: i64, server: std::net::SocketAddr) -> i64 {
        let tallies = self.0.read();
        let by_name = tallies[Kind::Channel as usize].get(channel).into_iter();
        let patterns = tallies[Kind::Pattern as usize].iter();
        let by_pattern = patterns.filter(|(pattern, _)| glob::matches(pattern, channel, false)).map(|(_, tally)| tally);
        by_name.chain(by_pattern).fold(said, |count, tally| count + tally.correction(server)).max(0)
    }

    /// The number of those who listen to a name, from what the server said that counts.
    pub(crate) fn listeners(&self, kind: Kind, name: &[u8], said: i64, server: std::net::SocketAddr) -> i64 {
        let tallies = self.0.read();
        let correction = tallies[kind as usize].get(name).map_or(0, |tally| tally.correction(server));
        (said + correction).max(0)
    }

    /// How many clients listen to anything.
    pub fn names(&self, kind: Kind) -> usize {
        self.0.read()[kind as usize].values().filter(|tally| tally.clients > 0).count()
    }
}

impl Tally {
    fn correction(&self, server: std::net::SocketAddr) -> i64 {
        let own = self.upstream.iter().find(|(other, _)| *other == server).map_or(0, |(_, count)| *count);
        i64::try_from(self.clients).unwrap_or(0) - i64::try_from(own).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;

    #[test]
    fn numbers_are_put_right() {
        let board = Board::default();
        let (here, there) = (SocketAddr::from(([127, 0, 0, 1], 1)), SocketAddr::from(([127, 0, 0, 1], 2)));
        let channel: Name = b"a"[..].into();
        let pattern: Name = b"*"[..].into();
        for _ in 0..3 {
            board.client(Kind::Channel, &channel, true);
        }
        board.client(Kind::Pattern, &pattern, true);
        board.upstream(Kind::Channel, &channel, here, true);
        board.upstream(Kind::Channel, &channel, here, true);
        board.upstream(Kind::Pattern, &pattern, here, true);
        // Two workers, one with the pattern, and one client of the server itself.
        assert_eq!(board.receivers(b"a", 4, here), 5);
        assert_eq!(board.receivers(b"b", 1, here), 1);
        assert_eq!(board.listeners(Kind::Channel, b"a", 0, there), 3);
        for _ in 0..3 {
            board.client(Kind::Channel, &channel, false);
        }
        board.upstream(Kind::Channel, &channel, here, false);
        assert_eq!(board.receivers(b"a", 2, here), 1);
        board.upstream(Kind::Channel, &channel, here, false);
        assert!(!board.0.read()[0].contains_key(&channel[..]));
    }
}
