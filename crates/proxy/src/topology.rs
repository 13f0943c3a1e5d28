//! The directive `topology`: who says which backend owns which slot.

use std::net::{SocketAddr, ToSocketAddrs as _};

use keyspace::slot::SlotSpace;

use crate::slots::{BackendAddress, Kind, SlotMap};

/// What `topology` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Topology {
    /// One server has everything.
    Server(String),
    /// Slots are given with their servers.
    Static(Vec<(Vec<(usize, usize)>, String)>),
    /// The nodes of a stock cluster know; any of these is asked.
    Cluster(Vec<String>),
    /// A manager says; these are the URLs of all there are.
    Manager(Vec<String>),
}

impl Topology {
    /// Reads the directive's value.
    ///
    /// # Errors
    /// What is wrong, for the user.
    pub fn parse(text: &str) -> Result<Topology, String> {
        let mut words = text.split_ascii_whitespace();
        let kind = words.next().ok_or("is not set: 'topology server host:port' is the simplest")?;
        let rest: Vec<&str> = words.collect();
        match (kind, rest.as_slice()) {
            ("server", [address]) => Ok(Topology::Server(checked(address)?)),
            ("static", [_, ..]) => {
                rest.iter().map(|word| slots_at(word)).collect::<Result<_, _>>().map(Topology::Static)
            }
            ("cluster", [_, ..]) => {
                let nodes = rest.iter().flat_map(|word| word.split(',')).filter(|word| !word.is_empty());
                nodes.map(checked).collect::<Result<_, _>>().map(Topology::Cluster)
            }
            ("manager", [_, ..]) => {
                let urls = rest.iter().flat_map(|word| word.split(',')).filter(|word| !word.is_empty());
                let checked = |url: &str| match url.strip_prefix("http://") {
                    Some(rest) if !rest.is_empty() => Ok(url.to_owned()),
                    _ => Err(format!("'{url}' is no manager's URL: give one like http://127.0.0.1:7080")),
                };
                urls.map(checked).collect::<Result<_, _>>().map(Topology::Manager)
            }
            ("server", _) => Err("'server' takes one host:port".to_owned()),
            ("static" | "cluster" | "manager", _) => Err(format!("'{kind}' needs at least one address")),
            _ => Err(format!("'{kind}' is none of server, static, cluster, manager")),
        }
    }

    /// The map to begin with. One that has to be asked for is empty.
    ///
    /// # Errors
    /// A host that cannot be resolved, or slots beyond the space.
    pub fn first_map(&self, space: SlotSpace) -> Result<SlotMap, String> {
        let mut map = SlotMap::empty(space, Kind::Plain);
        match self {
            Topology::Server(address) => {
                let owner = add(&mut map, address)?;
                map.assign(0..=space.count() - 1, owner);
            }
            Topology::Static(parts) => {
                for (ranges, address) in parts {
                    let owner = add(&mut map, address)?;
                    for (first, last) in ranges {
                        if *last >= space.count() {
                            return Err(format!("there is no slot {last}: the last one is {}", space.count() - 1));
                        }
                        map.assign(*first..=*last, owner);
                    }
                }
            }
            Topology::Cluster(_) => map.kind = Kind::Cluster,
            Topology::Manager(_) => map.kind = Kind::Native,
        }
        Ok(map)
    }
}

fn add(map: &mut SlotMap, name: &str) -> Result<u16, String> {
    let address = resolve(name)?;
    map.backend(BackendAddress { name: name.to_owned(), address }).ok_or_else(|| "too many servers".to_owned())
}

/// The address of a `host:port`; may ask a name server, so not for workers.
///
/// # Errors
/// The text for the user.
pub fn resolve(name: &str) -> Result<SocketAddr, String> {
    let found = name.to_socket_addrs().map_err(|error| format!("{name}: {}", server::process::error_text(&error)))?;
    found.into_iter().next().ok_or_else(|| format!("{name}: the host has no address"))
}

fn checked(address: &str) -> Result<String, String> {
    match address.rsplit_once(':') {
        Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0) => {
            Ok(address.to_owned())
        }
        _ => Err(format!("'{address}' is not host:port")),
    }
}

/// `0-5460,9000@host:port`.
fn slots_at(word: &str) -> Result<(Vec<(usize, usize)>, String), String> {
    let (slots, address) = word.split_once('@').ok_or_else(|| format!("'{word}' is not slots@host:port"))?;
    let ranges: Option<Vec<(usize, usize)>> = slots
        .split(',')
        .map(|range| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let (first, last) = (first.parse().ok()?, last.parse().ok()?);
            (first <= last).then_some((first, last))
        })
        .collect();
    Ok((ranges.ok_or_else(|| format!("'{slots}' are no slots: write 0-5460 or 1,7,9-20"))?, checked(address)?))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;

    #[test]
    fn the_forms_are_read() {
        assert_eq!(Topology::parse("server a:1"), Ok(Topology::Server("a:1".into())));
        assert_eq!(
            Topology::parse("static 0-5,9@a:1 6@b:2"),
            Ok(Topology::Static(vec![(vec![(0, 5), (9, 9)], "a:1".into()), (vec![(6, 6)], "b:2".into())]))
        );
        assert_eq!(
            Topology::parse("cluster a:1,b:2 c:3"),
            Ok(Topology::Cluster(vec!["a:1".into(), "b:2".into(), "c:3".into()]))
        );
    }

    #[test]
    fn mistakes_are_told() {
        for (text, wanted) in [
            ("", "is not set"),
            ("servers a:1", "none of"),
            ("server a", "not host:port"),
            ("server a:1 b:2", "one host:port"),
            ("static 5-1@a:1", "are no slots"),
            ("static a:1", "slots@host:port"),
            ("cluster", "at least one"),
        ] {
            assert!(Topology::parse(text).unwrap_err().contains(wanted), "{text}");
        }
        let beyond = Topology::parse("static 0-20000@127.0.0.1:1").unwrap();
        assert!(beyond.first_map(SlotSpace::Redis).unwrap_err().contains("no slot 20000"));
    }

    #[test]
    fn one_server_owns_everything() {
        let map = Topology::parse("server 127.0.0.1:6379").unwrap().first_map(SlotSpace::Codis).unwrap();
        assert_eq!((map.owners.len(), map.only_owner()), (1024, Some(0)));
    }
}
