//! How many of what, on which ports.
//!
//! From port P on: proxies P, P+1 …, the manager P+80, and the server m (from 1) of group g (from 1) P+100+10·(g−1)+m.

use std::fs;
use std::io;
use std::net::TcpListener;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// The file of a folder that remembers its layout.
const FILE: &str = "up.json";
const PROXIES_MAX: u16 = 80;
const REPLICAS_MAX: u16 = 8;
const GROUPS_MAX: u16 = 200;

/// What is started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Layout {
    pub(super) groups: u16,
    pub(super) proxies: u16,
    pub(super) replicas: u16,
    /// The first port.
    pub(super) port: u16,
    /// etcd's addresses; empty for the manager's own store.
    #[serde(default)]
    pub(super) etcd: String,
}

/// What the command line says of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Wish {
    pub(super) groups: Option<u16>,
    pub(super) proxies: Option<u16>,
    pub(super) replicas: Option<u16>,
    pub(super) port: Option<u16>,
    pub(super) etcd: Option<String>,
}

/// A server's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) group: u16,
    /// From 1; the first is the primary at the start.
    pub(super) member: u16,
    pub(super) port: u16,
}

impl Layout {
    /// What was there before with what is wished now, or what is wrong with that.
    pub(super) fn of(before: Option<&Layout>, wish: &Wish) -> Result<Layout, String> {
        let old = |field: fn(&Layout) -> u16| before.map(field);
        let layout = Layout {
            groups: wish.groups.or(old(|layout| layout.groups)).unwrap_or(3),
            proxies: wish.proxies.or(old(|layout| layout.proxies)).unwrap_or(2),
            replicas: wish.replicas.or(old(|layout| layout.replicas)).unwrap_or(1),
            port: wish.port.or(old(|layout| layout.port)).unwrap_or(7000),
            etcd: wish.etcd.clone().or(before.map(|layout| layout.etcd.clone())).unwrap_or_default(),
        };
        let bounds = [
            ("--groups", layout.groups, 1, GROUPS_MAX),
            ("--proxies", layout.proxies, 0, PROXIES_MAX),
            ("--replicas", layout.replicas, 0, REPLICAS_MAX),
        ];
        for (name, value, least, most) in bounds {
            if !(least..=most).contains(&value) {
                return Err(format!("{name} is {least} to {most}, not {value}"));
            }
        }
        let last = u32::from(layout.port) + 100 + 10 * u32::from(layout.groups);
        if layout.port < 1024 || last > 65_535 {
            let most = 65_535 - 100 - 10 * u32::from(layout.groups);
            return Err(format!("--port is 1024 to {most} for {} groups, not {}", layout.groups, layout.port));
        }
        if let Some(before) = before {
            let fewer = [("groups", layout.groups, before.groups), ("replicas", layout.replicas, before.replicas)];
            for (name, now, then) in fewer {
                if now < then {
                    return Err(format!(
                        "the folder holds a cluster with {then} {name}, {now} would leave some out: empty them first \
                         (oxidis admin scale-in, group remove, server remove), or take another --dir"
                    ));
                }
            }
            if layout.port != before.port {
                return Err(format!(
                    "the folder's cluster lives from port {} on; its servers are known by their addresses. Leave --port \
                     out, or take another --dir",
                    before.port
                ));
            }
            if layout.etcd != before.etcd {
                return Err(
                    "the folder's cluster keeps its record elsewhere: leave --etcd as it was, or take another \
                            --dir"
                        .into(),
                );
            }
        }
        Ok(layout)
    }

    /// What a folder remembers.
    pub(super) fn load(folder: &Path) -> Result<Option<Layout>, String> {
        let path = folder.join(FILE);
        match fs::read_to_string(&path) {
            Ok(text) => serde_json::from_str(&text).map(Some).map_err(|error| format!("{}: {error}", path.display())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(format!("cannot read {}: {error}", path.display())),
        }
    }

    /// Lets a folder remember it.
    pub(super) fn save(&self, folder: &Path) -> io::Result<()> {
        let text = serde_json::to_string_pretty(self).map_err(io::Error::other)?;
        // A complete file is replaced by renaming only.
        let new = folder.join(format!("{FILE}.new"));
        fs::write(&new, text)?;
        fs::File::open(&new)?.sync_all()?;
        fs::rename(new, folder.join(FILE))
    }

    pub(super) fn manager_port(&self) -> u16 {
        self.port + 80
    }

    pub(super) fn manager_url(&self) -> String {
        format!("http://127.0.0.1:{}", self.manager_port())
    }

    pub(super) fn proxy_ports(&self) -> impl Iterator<Item = u16> {
        let first = self.port;
        (0..self.proxies).map(move |index| first + index)
    }

    /// The servers: of each group the primary first.
    pub(super) fn servers(&self) -> Vec<Place> {
        let members = 1..=self.replicas + 1;
        let groups = 1..=self.groups;
        let base = self.port + 100;
        groups
            .flat_map(|group| {
                members.clone().map(move |member| Place { group, member, port: base + 10 * (group - 1) + member })
            })
            .collect()
    }

    /// Ports that somebody else has.
    pub(super) fn taken_ports(&self) -> Vec<u16> {
        let servers = self.servers().into_iter().map(|place| place.port);
        let ports = self.proxy_ports().chain([self.manager_port()]).chain(servers);
        ports.filter(|port| TcpListener::bind(("127.0.0.1", *port)).is_err()).collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn ports_are_where_one_expects_them() {
        let layout = Layout::of(None, &Wish::default()).unwrap();
        assert_eq!((layout.groups, layout.proxies, layout.replicas, layout.port), (3, 2, 1, 7000));
        assert_eq!(layout.proxy_ports().collect::<Vec<_>>(), [7000, 7001]);
        assert_eq!(layout.manager_url(), "http://127.0.0.1:7080");
        let ports: Vec<u16> = layout.servers().iter().map(|place| place.port).collect();
        assert_eq!(ports, [7101, 7102, 7111, 7112, 7121, 7122]);
    }

    #[test]
    fn a_folder_remembers_and_may_grow() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Layout::load(folder.path()).unwrap(), None);
        let first = Layout::of(None, &Wish { groups: Some(2), port: Some(8000), ..Wish::default() }).unwrap();
        first.save(folder.path()).unwrap();
        let before = Layout::load(folder.path()).unwrap().unwrap();
        assert_eq!(Layout::of(Some(&before), &Wish::default()).unwrap(), first);
        let grown = Layout::of(Some(&before), &Wish { groups: Some(4), ..Wish::default() }).unwrap();
        assert_eq!((grown.groups, grown.port), (4, 8000));
        let error = Layout::of(Some(&grown), &Wish { groups: Some(1), ..Wish::default() }).unwrap_err();
        assert!(error.contains("scale-in"), "{error}");
        assert!(Layout::of(Some(&before), &Wish { port: Some(9000), ..Wish::default() }).is_err());
        fs::write(folder.path().join(FILE), "{").unwrap();
        assert!(Layout::load(folder.path()).is_err());
    }

    #[test]
    fn bounds_are_told() {
        let wish = Wish { groups: Some(0), ..Wish::default() };
        assert_eq!(Layout::of(None, &wish).unwrap_err(), "--groups is 1 to 200, not 0");
        let wish = Wish { port: Some(65_000), groups: Some(100), ..Wish::default() };
        assert!(Layout::of(None, &wish).unwrap_err().starts_with("--port is 1024 to 64435"));
    }

    #[test]
    fn taken_ports_are_found() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let layout = Layout { groups: 1, proxies: 1, replicas: 0, port, etcd: String::new() };
        assert!(layout.taken_ports().contains(&port));
    }
}
