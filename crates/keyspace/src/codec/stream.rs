//! Streams as RDB's bytes. The order of the parts is told in `rdb::value`.

use crate::stream::{ConsumerId, Group, InvalidStream, Log, Pending, Stream, StreamId};
use rdb::codec::{DecodeError, Writer};
use rdb::value::{StreamForm, StreamReader};
use std::collections::BTreeMap;

impl From<InvalidStream> for DecodeError {
    fn from(_: InvalidStream) -> DecodeError {
        DecodeError::Malformed("stream")
    }
}

fn write_id(writer: &mut Writer<'_>, id: StreamId) {
    writer.length(id.ms);
    writer.length(id.seq);
}

/// Writes a stream in the form of 7.0 or 7.2.
pub(super) fn write(writer: &mut Writer<'_>, stream: &Stream, form: StreamForm) {
    let log = stream.log();
    let blocks = log.blocks();
    writer.length_of(blocks.len());
    for (id, block) in blocks {
        writer.stream_block(&id.to_raw(), block);
    }
    writer.length(log.len());
    write_id(writer, log.last_id());
    write_id(writer, log.first_id());
    write_id(writer, log.max_deleted_id());
    writer.length(log.entries_added());
    writer.length_of(stream.groups().len());
    for (name, group) in stream.groups() {
        writer.string(name);
        write_group(writer, group, form);
    }
}

fn write_group(writer: &mut Writer<'_>, group: &Group, form: StreamForm) {
    write_id(writer, group.last_id);
    // "Not known" is -1.
    #[allow(clippy::cast_sign_loss)]
    writer.length(group.entries_read.unwrap_or(-1) as u64);
    writer.length_of(group.pending().len());
    for (id, pending) in group.pending() {
        writer.raw(&id.to_raw());
        writer.time_ms(pending.delivered_ms);
        writer.length(pending.deliveries);
    }
    writer.length_of(group.consumers_len());
    for consumer in group.consumers() {
        writer.string(consumer.name());
        writer.time_ms(consumer.seen_ms);
        if form >= StreamForm::V3 {
            writer.time_ms(consumer.active_ms);
        }
        writer.length_of(consumer.pending().len());
        for id in consumer.pending() {
            writer.raw(&id.to_raw());
        }
    }
}

fn read_id(reader: &mut StreamReader<'_, '_>) -> Result<StreamId, DecodeError> {
    Ok(StreamId { ms: reader.number()?, seq: reader.number()? })
}

/// Reads a stream of any form.
pub(super) fn read(mut reader: StreamReader<'_, '_>) -> Result<Stream, DecodeError> {
    let mut stream = Stream::new();
    let log = stream.log_mut();
    for _ in 0..reader.number()? {
        let (id, block) = reader.block()?;
        log.push_block(StreamId::from_raw(id), block)?;
    }
    read_counters(&mut reader, log)?;
    for _ in 0..reader.number()? {
        let name = reader.name()?.into_vec();
        let group = read_group(&mut reader, stream.log())?;
        let (_, groups) = stream.parts_mut();
        if groups.insert(name.into(), group).is_some() {
            return Err(DecodeError::Duplicate("stream groups"));
        }
    }
    Ok(stream)
}

fn read_counters(reader: &mut StreamReader<'_, '_>, log: &mut Log) -> Result<(), DecodeError> {
    let len = reader.number()?;
    let last_id = read_id(reader)?;
    let (mut max_deleted_id, mut entries_added) = (StreamId::MIN, len);
    if reader.form >= StreamForm::V2 {
        // The first id follows from the blocks.
        read_id(reader)?;
        max_deleted_id = read_id(reader)?;
        entries_added = reader.number()?;
    }
    Ok(log.finish(len, last_id, max_deleted_id, entries_added)?)
}

fn read_group(reader: &mut StreamReader<'_, '_>, log: &Log) -> Result<Group, DecodeError> {
    let last_id = read_id(reader)?;
    let entries_read =
        if reader.form >= StreamForm::V2 { i64::try_from(reader.number()?).ok() } else { log.entries_until(last_id) };
    let mut group = Group::new(last_id, entries_read);
    let mut pending: BTreeMap<StreamId, (i64, u64)> = BTreeMap::new();
    for _ in 0..reader.number()? {
        let id = StreamId::from_raw(reader.raw_id()?);
        if pending.insert(id, (reader.time_ms()?, reader.number()?)).is_some() {
            return Err(DecodeError::Duplicate("stream pending entries"));
        }
    }
    for _ in 0..reader.number()? {
        let name = reader.name()?.into_vec();
        let seen_ms = reader.time_ms()?;
        let active_ms = if reader.form >= StreamForm::V3 { reader.time_ms()? } else { seen_ms };
        let consumer = group.add_consumer(&name, seen_ms).ok_or(DecodeError::Duplicate("stream consumers"))?;
        if let Some(consumer) = group.consumer_mut(consumer) {
            consumer.active_ms = active_ms;
        }
        read_consumer(reader, &mut group, consumer, &mut pending)?;
    }
    // Every pending entry has an owner.
    if pending.is_empty() { Ok(group) } else { Err(DecodeError::Malformed("stream pending entries")) }
}

fn read_consumer(
    reader: &mut StreamReader<'_, '_>,
    group: &mut Group,
    consumer: ConsumerId,
    unowned: &mut BTreeMap<StreamId, (i64, u64)>,
) -> Result<(), DecodeError> {
    for _ in 0..reader.number()? {
        let id = StreamId::from_raw(reader.raw_id()?);
        let (delivered_ms, deliveries) = unowned.remove(&id).ok_or(DecodeError::Malformed("stream pending entries"))?;
        group.assign(id, Pending { consumer, delivered_ms, deliveries });
    }
    Ok(())
}
