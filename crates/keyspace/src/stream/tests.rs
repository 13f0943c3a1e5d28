#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
use super::*;
use resp::Args;
use std::collections::BTreeMap;

type Model = BTreeMap<StreamId, Vec<Vec<u8>>>;

fn content(entry: StreamEntry<'_>) -> (StreamId, Vec<Vec<u8>>) {
    let id = entry.id;
    let len = entry.len();
    let fields: Vec<Vec<u8>> = entry.fields().flat_map(|(name, value)| [name.to_vec(), value.to_vec()]).collect();
    assert_eq!(fields.len(), 2 * len);
    (id, fields)
}

fn compare(log: &Log, model: &Model, start: StreamId, end: StreamId) {
    let expected: Vec<_> = if start <= end {
        model.range(start..=end).map(|(id, fields)| (*id, fields.clone())).collect()
    } else {
        Vec::new()
    };
    let found: Vec<_> = log.range(start, end).map(content).collect();
    assert_eq!(found, expected);
    let mut back: Vec<_> = log.range_back(start, end).map(content).collect();
    back.reverse();
    assert_eq!(back, expected);
}

/// What Redis' rule for trimming says, on the model with the borders of blocks.
fn model_trim(model: &mut Model, blocks: &[(StreamId, StreamId, usize)], trim: Trim) -> u64 {
    let mut deleted = 0;
    for (first, last, live) in blocks {
        let live = *live as u64;
        let len = model.len() as u64;
        if matches!(trim.to, TrimTo::Len(max) if len <= max) || (trim.limit > 0 && deleted + live > trim.limit) {
            break;
        }
        let whole = match trim.to {
            TrimTo::Len(max) => len - live >= max,
            TrimTo::MinId(id) => *last < id,
        };
        if !whole && trim.approximate {
            break;
        }
        let doomed: Vec<StreamId> = model.range(*first..=*last).map(|(id, _)| *id).collect();
        for id in doomed {
            let stays = match trim.to {
                TrimTo::Len(max) => model.len() as u64 <= max,
                TrimTo::MinId(min) => id >= min,
            };
            if !whole && stays {
                break;
            }
            model.remove(&id);
            deleted += 1;
        }
        if !whole {
            break;
        }
    }
    deleted
}

#[test]
fn a_log_is_an_ordered_map() {
    for seed in 0..60 {
        let mut random = fastrand::Rng::with_seed(seed);
        let limits = StreamLimits {
            node_max_bytes: [0, 60, 300, 4096][random.usize(0..4)],
            node_max_entries: [0, 1, 3, 10, 100][random.usize(0..5)],
        };
        let mut log = Log::default();
        let mut model = Model::new();
        let mut added = 0;
        for _ in 0..600 {
            match random.u8(0..20) {
                0..=11 => {
                    let last = log.last_id();
                    let id = if random.bool() {
                        StreamId::new(last.ms, last.seq + random.u64(1..400))
                    } else {
                        StreamId::new(last.ms + random.u64(1..70_000), random.u64(0..300))
                    };
                    let len = random.usize(1..4);
                    let fields: Vec<Vec<u8>> = (0..2 * len)
                        .map(|_| match random.u8(0..4) {
                            0 => random.i32(-300..300).to_string().into_bytes(),
                            1 => vec![random.u8(..); random.usize(0..90)],
                            _ => b"field".to_vec(),
                        })
                        .collect();
                    let slices: Vec<&[u8]> = fields.iter().map(Vec::as_slice).collect();
                    log.append(id, Args::from_slices(&slices), &limits);
                    model.insert(id, fields);
                    added += 1;
                }
                12..=15 => {
                    let ids: Vec<StreamId> = model.keys().copied().collect();
                    let id = if ids.is_empty() || random.u8(0..4) == 0 {
                        StreamId::new(random.u64(0..1000), 1)
                    } else {
                        ids[random.usize(0..ids.len())]
                    };
                    assert_eq!(log.delete(id), model.remove(&id).is_some());
                    assert!(!log.delete(id));
                }
                16 => {
                    let ids: Vec<StreamId> = model.keys().copied().collect();
                    let to = match (random.bool(), ids.is_empty()) {
                        (true, false) => TrimTo::MinId(ids[random.usize(0..ids.len().min(20))]),
                        _ => TrimTo::Len(model.len().saturating_sub(random.usize(0..20)) as u64),
                    };
                    let approximate = random.bool();
                    let trim = Trim { to, approximate, limit: if approximate { random.u64(0..30) } else { 0 } };
                    let blocks: Vec<_> = log
                        .blocks()
                        .map(|(id, listpack)| {
                            let facts = block::check(id, listpack).unwrap();
                            (id, facts.last, usize::try_from(facts.live).unwrap())
                        })
                        .collect();
                    assert_eq!(log.trim(trim), model_trim(&mut model, &blocks, trim), "{trim:?}");
                }
                17 => {
                    let ids: Vec<StreamId> = model.keys().copied().collect();
                    let pick = |random: &mut fastrand::Rng| match ids.len() {
                        0 => StreamId::new(random.u64(0..9), 0),
                        len => ids[random.usize(0..len)],
                    };
                    let (start, end) = (pick(&mut random), pick(&mut random));
                    compare(&log, &model, start, end);
                    compare(&log, &model, start.next().unwrap(), end);
                    assert_eq!(
                        log.get(start).map(content),
                        model.get_key_value(&start).map(|(id, fields)| (*id, fields.clone()))
                    );
                }
                18 => {
                    let top = log.last_live_id().unwrap_or(StreamId::MIN);
                    log.set_last_id(top, None, None);
                }
                _ => {
                    let copy = log.clone();
                    let mut read = Log::default();
                    for (id, listpack) in copy.blocks() {
                        read.push_block(id, listpack.clone()).unwrap();
                    }
                    read.finish(log.len(), log.last_id(), log.max_deleted_id(), log.entries_added()).unwrap();
                    log = read;
                }
            }
            assert_eq!(log.len(), model.len() as u64);
            assert_eq!(log.entries_added(), added);
            assert_eq!(log.last_live_id(), model.last_key_value().map(|(id, _)| *id));
        }
        log.check();
        compare(&log, &model, StreamId::MIN, StreamId::MAX);
    }
}

#[test]
fn a_last_id_set_back_leaves_order() {
    let limits = StreamLimits { node_max_entries: 3, ..StreamLimits::default() };
    let mut log = Log::default();
    let fields: [&[u8]; 2] = [b"a", b"b"];
    for ms in 1..=8 {
        log.append(StreamId::new(ms, 0), Args::from_slices(&fields), &limits);
    }
    for ms in 4..=8 {
        log.delete(StreamId::new(ms, 0));
    }
    log.set_last_id(StreamId::new(4, 0), None, None);
    log.check();
    log.append(StreamId::new(5, 0), Args::from_slices(&fields), &limits);
    log.check();
    assert_eq!(log.range(StreamId::MIN, StreamId::MAX).count(), 4);
}

#[test]
fn blocks_that_lie_are_refused() {
    let limits = StreamLimits::default();
    let mut log = Log::default();
    let fields: [&[u8]; 2] = [b"a", b"b"];
    for ms in 1..=3 {
        log.append(StreamId::new(ms, 0), Args::from_slices(&fields), &limits);
    }
    let (id, listpack) = log.blocks().next().unwrap();
    let damaged = |index: i64, value: i64| {
        let mut copy = listpack.clone();
        let pos = copy.seek(index).unwrap();
        copy.replace_int(pos, value);
        Log::default().push_block(id, copy)
    };
    // Live entries, deleted ones, number of names, the zero, flags, milliseconds, pieces.
    for (index, value) in [
        (0, 2),
        (0, -1),
        (1, 1),
        (2, 2),
        (2, -1),
        (2, i64::MAX),
        (4, 1),
        (5, 0),
        (5, 4),
        (10, -1),
        (10, 0),
        (9, 3),
        (9, i64::MAX),
    ] {
        assert!(damaged(index, value).is_err(), "{index} {value}");
    }
    assert!(damaged(0, 3).is_ok());
    let mut other = Log::default();
    other.push_block(id, listpack.clone()).unwrap();
    assert!(other.push_block(StreamId::new(3, 0), listpack.clone()).is_err(), "blocks overlap");
    assert!(other.clone().finish(2, StreamId::new(9, 0), StreamId::MIN, 3).is_err(), "another length");
    assert!(other.clone().finish(3, StreamId::new(2, 0), StreamId::MIN, 3).is_err(), "the last id is passed");
    assert!(other.finish(3, StreamId::new(3, 0), StreamId::MIN, 3).is_ok());
}

#[test]
fn groups_keep_both_sides_alike() {
    let mut random = fastrand::Rng::with_seed(3);
    let mut group = Group::new(StreamId::MIN, None);
    let mut model: BTreeMap<StreamId, Vec<u8>> = BTreeMap::new();
    for round in 0..5000 {
        let entry = StreamId::new(random.u64(0..200), 0);
        let name = vec![b'a' + random.u8(0..6)];
        match random.u8(0..10) {
            0..=5 => {
                let consumer = group.find_consumer(&name).unwrap_or_else(|| group.add_consumer(&name, round).unwrap());
                group.assign(entry, Pending { consumer, delivered_ms: round, deliveries: 1 });
                model.insert(entry, name);
            }
            6..=8 => assert_eq!(group.acknowledge(entry), model.remove(&entry).is_some()),
            _ => {
                let had = group.find_consumer(&name).is_some();
                let count = model.values().filter(|owner| **owner == name).count();
                assert_eq!(group.remove_consumer(&name), had.then_some(count));
                model.retain(|_, owner| *owner != name);
            }
        }
    }
    group.check();
    let owners: BTreeMap<StreamId, Vec<u8>> =
        group.pending().iter().map(|(id, pending)| (*id, group.consumer_name(pending.consumer).to_vec())).collect();
    assert_eq!(owners, model);
}

#[test]
fn ids_have_neighbours() {
    assert_eq!(StreamId::new(1, u64::MAX).next(), Some(StreamId::new(2, 0)));
    assert_eq!(StreamId::MAX.next(), None);
    assert_eq!(StreamId::new(2, 0).previous(), Some(StreamId::new(1, u64::MAX)));
    assert_eq!(StreamId::MIN.previous(), None);
    let id = StreamId::new(0x0102_0304_0506_0708, 9);
    assert_eq!(StreamId::from_raw(id.to_raw()), id);
    assert_eq!(id.to_string(), "72623859790382856-9");
}
