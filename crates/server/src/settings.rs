//! The configuration as commands and notifications want it.

use crate::config::{Config, EventClasses, MaxmemoryPolicy};
use crate::shared::Shared;
use commands::Settings;
use keyspace::NotifyClass;
use keyspace::eviction::Policy;
use std::sync::atomic::Ordering;

/// The settings that commands follow.
pub fn of(config: &Config, shared: &Shared) -> Settings {
    Settings {
        hash: keyspace::hash::Limits {
            max_listpack_entries: config.hash_max_listpack_entries,
            max_listpack_value: config.hash_max_listpack_value,
        },
        set: keyspace::set::Limits {
            max_intset_entries: config.set_max_intset_entries,
            max_listpack_entries: config.set_max_listpack_entries,
            max_listpack_value: config.set_max_listpack_value,
        },
        zset: keyspace::zset::ZSetLimits {
            max_listpack_entries: config.zset_max_listpack_entries,
            max_listpack_value: config.zset_max_listpack_value,
        },
        list: keyspace::list::ListLimits {
            max_listpack_size: config.list_max_listpack_size,
            packed_threshold: shared.quicklist_packed_threshold.load(Ordering::Relaxed),
        },
        hll_sparse_max_bytes: config.hll_sparse_max_bytes,
        stream: keyspace::stream::StreamLimits {
            node_max_bytes: config.stream_node_max_bytes,
            node_max_entries: config.stream_node_max_entries,
        },
        max_bulk: usize::try_from(config.proto_max_bulk_len).unwrap_or(usize::MAX),
        policy: policy(config.maxmemory_policy),
    }
}

/// The eviction policy of a config word.
pub fn policy(word: MaxmemoryPolicy) -> Policy {
    match word {
        MaxmemoryPolicy::NoEviction => Policy::NoEviction,
        MaxmemoryPolicy::AllkeysLru => Policy::AllKeysLru,
        MaxmemoryPolicy::AllkeysLfu => Policy::AllKeysLfu,
        MaxmemoryPolicy::AllkeysRandom => Policy::AllKeysRandom,
        MaxmemoryPolicy::VolatileLru => Policy::VolatileLru,
        MaxmemoryPolicy::VolatileLfu => Policy::VolatileLfu,
        MaxmemoryPolicy::VolatileRandom => Policy::VolatileRandom,
        MaxmemoryPolicy::VolatileTtl => Policy::VolatileTtl,
    }
}

/// The notifications that are wanted: none unless a class and one of `K` and `E` are set.
pub fn wanted_notifications(config: &Config) -> NotifyClass {
    let events = config.notify_keyspace_events;
    let letters: [(EventClasses, NotifyClass); 13] = [
        (EventClasses::KEYSPACE, NotifyClass::KEYSPACE),
        (EventClasses::KEYEVENT, NotifyClass::KEYEVENT),
        (EventClasses::GENERIC, NotifyClass::GENERIC),
        (EventClasses::STRING, NotifyClass::STRING),
        (EventClasses::LIST, NotifyClass::LIST),
        (EventClasses::SET, NotifyClass::SET),
        (EventClasses::HASH, NotifyClass::HASH),
        (EventClasses::SORTED_SET, NotifyClass::ZSET),
        (EventClasses::EXPIRED, NotifyClass::EXPIRED),
        (EventClasses::EVICTED, NotifyClass::EVICTED),
        (EventClasses::STREAM, NotifyClass::STREAM),
        (EventClasses::KEY_MISS, NotifyClass::KEY_MISS),
        (EventClasses::NEW, NotifyClass::NEW),
    ];
    let bits = letters.iter().filter(|(letter, _)| events.contains(*letter)).fold(0, |bits, (_, class)| bits | class.0);
    let wanted = NotifyClass(bits);
    let somewhere = NotifyClass(NotifyClass::KEYSPACE.0 | NotifyClass::KEYEVENT.0);
    if wanted.intersects(somewhere) { wanted } else { NotifyClass::default() }
}
