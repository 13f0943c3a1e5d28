//! How evenly the connections were served: requests per connection, and Jain's index of them.
//!
//! The index is `(Σ x)² / (n · Σ x²)`: 1 when all got the same, `1/n` when one got everything (Jain, Chiu, Hawe 1984).

use std::collections::BTreeMap;

/// Requests answered per connection, as a count of connections for each number of requests.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Fairness {
    connections: BTreeMap<u32, u64>,
}

impl Fairness {
    /// Takes in a connection that got `requests` answers.
    pub(crate) fn add(&mut self, requests: u32) {
        self.add_many(requests, 1);
    }

    /// Takes in several connections that got `requests` answers each.
    pub(crate) fn add_many(&mut self, requests: u32, connections: u64) {
        *self.connections.entry(requests).or_default() += connections;
    }

    /// Takes in what another thread or machine has.
    pub(crate) fn merge(&mut self, other: &Fairness) {
        for (requests, connections) in &other.connections {
            self.add_many(*requests, *connections);
        }
    }

    /// Pairs of requests and connections.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, u64)> {
        self.connections.iter().map(|(requests, connections)| (*requests, *connections))
    }

    /// All connections.
    pub(crate) fn connections(&self) -> u64 {
        self.connections.values().sum()
    }

    /// Connections that got at least one answer.
    pub(crate) fn served(&self) -> u64 {
        self.connections() - self.connections.get(&0).copied().unwrap_or(0)
    }

    /// Least, middle and most requests of a connection.
    pub(crate) fn spread(&self) -> (u32, u32, u32) {
        let middle = self.connections() / 2;
        let mut seen = 0;
        let median = self.connections.iter().find(|(_, connections)| {
            seen += *connections;
            seen > middle
        });
        let edge = |entry: Option<(&u32, &u64)>| entry.map_or(0, |(requests, _)| *requests);
        (edge(self.connections.first_key_value()), edge(median), edge(self.connections.last_key_value()))
    }

    /// Jain's index.
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    pub(crate) fn jain_index(&self) -> f64 {
        let (mut sum, mut squares) = (0.0, 0.0);
        for (requests, connections) in self.iter() {
            let (x, n) = (f64::from(requests), connections as f64);
            sum += x * n;
            squares += x * x * n;
        }
        if squares == 0.0 { 1.0 } else { sum * sum / (self.connections() as f64 * squares) }
    }

    /// The line of the report.
    pub(crate) fn line(&self) -> String {
        let (least, median, most) = self.spread();
        format!(
            "  fairness: {} clients connected, {} served; requests per client: min {least}, median {median}, max {most}; \
             Jain index {:.4}\n",
            self.connections(),
            self.served(),
            self.jain_index()
        )
    }
}

/// Clients from which on the report tells of fairness by itself. redis-benchmark drives no more than 10,230 of them, so
/// there is no output of its to be equal to.
pub(crate) const SHOWN_FROM_CLIENTS: usize = 10_231;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_shares_are_fair_and_one_taker_is_not() {
        let mut fair = Fairness::default();
        fair.add_many(7, 100);
        assert!((fair.jain_index() - 1.0).abs() < 1e-9);
        let mut greedy = Fairness::default();
        greedy.add_many(0, 99);
        greedy.add(1000);
        assert!((greedy.jain_index() - 0.01).abs() < 1e-9);
        assert_eq!((greedy.connections(), greedy.served()), (100, 1));
        assert_eq!(greedy.spread(), (0, 0, 1000));
    }

    #[test]
    fn merged_shares_are_those_of_all() {
        let (mut a, mut b) = (Fairness::default(), Fairness::default());
        a.add(1);
        b.add_many(3, 2);
        a.merge(&b);
        assert_eq!(a.spread(), (1, 3, 3));
        assert_eq!(a.connections(), 3);
        assert_eq!(Fairness::default().spread(), (0, 0, 0));
    }
}
