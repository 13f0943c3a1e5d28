//! Sessions that clients may take up again, each for a limited time.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustls::server::StoresServerSessions;

use super::settings::SessionCache;

/// Sessions by their names, oldest first in `order`.
#[derive(Debug)]
pub(super) struct Sessions {
    limits: SessionCache,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    by_name: HashMap<Vec<u8>, (Instant, Vec<u8>)>,
    order: VecDeque<(Instant, Vec<u8>)>,
}

impl Kept {
    /// Forgets the oldest if it is older than `life`, or if there are more than `most`.
    fn tidy(&mut self, now: Instant, life: Duration, most: usize) {
        while let Some((since, _)) = self.order.front()
            && (now.saturating_duration_since(*since) >= life || self.order.len() > most)
        {
            let Some((since, name)) = self.order.pop_front() else { return };
            // The same name may have been stored anew meanwhile.
            if self.by_name.get(&name).is_some_and(|(stored, _)| *stored == since) {
                self.by_name.remove(&name);
            }
        }
    }
}

impl Sessions {
    pub(super) fn new(limits: SessionCache) -> Sessions {
        Sessions { limits, kept: Mutex::default() }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let most = if self.limits.entries == 0 { usize::MAX } else { self.limits.entries };
        kept.tidy(Instant::now(), self.limits.life, most);
        kept
    }
}

impl StoresServerSessions for Sessions {
    fn put(&self, key: Vec<u8>, value: Vec<u8>) -> bool {
        let now = Instant::now();
        let mut kept = self.kept();
        kept.order.push_back((now, key.clone()));
        kept.by_name.insert(key, (now, value));
        true
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.kept().by_name.get(key).map(|(_, value)| value.clone())
    }

    fn take(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.kept().by_name.remove(key).map(|(_, value)| value)
    }

    fn can_cache(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(entries: usize, life: Duration) -> Sessions {
        Sessions::new(SessionCache { entries, life })
    }

    #[test]
    fn the_oldest_go_first() {
        let sessions = cache(2, Duration::from_secs(60));
        for name in [b"a", b"b", b"c"] {
            assert!(sessions.put(name.to_vec(), b"value".to_vec()));
        }
        assert_eq!(sessions.get(b"a"), None);
        assert_eq!(sessions.get(b"c"), Some(b"value".to_vec()));
        assert_eq!(sessions.take(b"c"), Some(b"value".to_vec()));
        assert_eq!(sessions.take(b"c"), None);
    }

    #[test]
    fn none_lives_longer_than_it_may() {
        let sessions = cache(0, Duration::ZERO);
        sessions.put(b"a".to_vec(), b"value".to_vec());
        assert_eq!(sessions.get(b"a"), None);
        assert!(sessions.kept().by_name.is_empty());
    }
}
