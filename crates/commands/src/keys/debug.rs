//! The parts of DEBUG that look at one key. The server reads the subcommand and calls these with the key's slot held.

use super::digest::Digest;
use super::object::{look, reference_count};
use crate::ctx::Ctx;
use crate::error::{CmdError, CmdResult, NO_SUCH_KEY};
use keyspace::ValueRef;
use keyspace::codec::write_value;
use keyspace::list::NodeBytes;
use rdb::codec::Writer;
use resp::Args;
use std::fmt::Write as _;

/// DEBUG OBJECT key: replies one line about the entry.
///
/// # Errors
/// No such key.
pub fn object(ctx: &mut Ctx<'_>, key: &[u8]) -> CmdResult {
    let clock = ctx.db.access_clock();
    let entry = ctx.db.entry(key).ok_or(NO_SUCH_KEY)?;
    let mut serialized = Vec::new();
    write_value(&mut Writer::compressing(&mut serialized), entry.value());
    let mut line = format!(
        "Value at:{:p} refcount:{} encoding:{} serializedlength:{} lru:{} lru_seconds_idle:{}",
        entry.key().as_ptr(),
        reference_count(entry.value()),
        entry.encoding(),
        serialized.len(),
        entry.access(),
        if clock.lfu { 0 } else { clock.idle_seconds(entry.access()) },
    );
    if let ValueRef::List(list) = entry.value()
        && list.as_listpack().is_none()
    {
        let nodes = list.nodes_len();
        let bytes: usize = list
            .nodes()
            .map(|node| match node {
                NodeBytes::Packed(bytes) | NodeBytes::Plain(bytes) => bytes.len(),
            })
            .sum();
        #[allow(clippy::cast_precision_loss)]
        let average = list.len() as f64 / nodes.max(1) as f64;
        // Writing to a String cannot fail.
        let _ = write!(
            line,
            " ql_nodes:{nodes} ql_avg_node:{average:.2} ql_listpack_max:{} ql_compressed:0 ql_uncompressed_size:{bytes}",
            ctx.settings.list.max_listpack_size,
        );
    }
    ctx.out.simple(line);
    Ok(())
}

/// DEBUG DIGEST-VALUE key …: replies an array of digests, zeros for keys that are not there. `keys` are the keys alone.
pub fn digest_value(ctx: &mut Ctx<'_>, keys: Args<'_>) {
    ctx.out.array(keys.len());
    for key in keys {
        let mut digest = Digest::default();
        if let Some(entry) = ctx.db.entry(key) {
            digest.add_value(entry);
        }
        ctx.out.simple(digest.to_hex());
    }
}

/// DEBUG LISTPACK key: the elements of a value that is one listpack, for the server's standard output, and the reply.
///
/// # Errors
/// No such key, or no listpack.
pub fn listpack(ctx: &mut Ctx<'_>, key: &[u8]) -> Result<String, CmdError> {
    let entry = look(ctx, key).ok_or(NO_SUCH_KEY)?;
    let listpack = match entry.value() {
        ValueRef::List(list) => list.as_listpack(),
        ValueRef::Set(set) => set.as_listpack(),
        ValueRef::ZSet(zset) => zset.as_listpack(),
        ValueRef::Hash(hash) => hash.as_listpack(),
        ValueRef::Str(_) | ValueRef::Stream(_) => None,
    };
    let listpack = listpack.ok_or(CmdError::new("ERR Not a listpack encoded object."))?;
    let mut text = format!("{{total bytes {}}} {{num entries {}}}\n", listpack.bytes_len(), listpack.len());
    for (index, element) in listpack.iter().enumerate() {
        let _ = writeln!(text, "{index}: {}", element.to_vec().escape_ascii());
    }
    ctx.out.simple("Listpack structure printed on stdout");
    Ok(text)
}

/// DEBUG HTSTATS-KEY key: replies what there is to tell of a value kept as a table.
///
/// # Errors
/// No such key, or no table.
pub fn table_stats(ctx: &mut Ctx<'_>, key: &[u8]) -> CmdResult {
    let entry = look(ctx, key).ok_or(NO_SUCH_KEY)?;
    let elements = match entry.value() {
        ValueRef::Set(set) if set.as_table().is_some() => Some(set.len()),
        ValueRef::Hash(hash) if hash.as_table().is_some() => Some(hash.len()),
        ValueRef::ZSet(zset) if zset.as_listpack().is_none() => Some(zset.len()),
        _ => None,
    };
    let elements = elements
        .ok_or(CmdError::new("ERR The value stored at the specified key is not represented using an hash table"))?;
    let bytes = entry.memory_bytes(0);
    let text = format!("Hash table 0 stats (main hash table):\n number of elements: {elements}\n bytes: {bytes}\n");
    ctx.out.verbatim(text, "txt");
    Ok(())
}
