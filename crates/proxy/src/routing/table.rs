//! The decision for each command.

use super::{Merge, Route, Split};
use commands::CommandId;

const SERVER_ONLY: &str = "it is about one server: send it to the server itself";
const TOPOLOGY: &str = "the cluster's servers are arranged by `oxidis admin` or the cluster's own tools";
const LINK: &str = "it belongs to the protocol between servers";
const MOVES_KEYS: &str = "keys move between servers only with their slots: use `oxidis admin slots move`";

/// How a command is treated.
#[inline]
pub(super) const fn route_of(id: CommandId) -> Route {
    use CommandId as C;
    match id {
        // Strings.
        C::Append | C::Decr | C::Decrby | C::Get | C::Getdel | C::Getex | C::Getrange | C::Getset => Route::Slot,
        C::Incr | C::Incrby | C::Incrbyfloat | C::Lcs | C::Msetnx | C::Psetex | C::Set | C::Setex => Route::Slot,
        C::Setnx | C::Setrange | C::Strlen | C::Substr => Route::Slot,
        C::Mget => Route::Split(Split::Values),
        C::Mset => Route::Split(Split::Pairs),
        // Hashes.
        C::Hdel | C::Hexists | C::Hget | C::Hgetall | C::Hincrby | C::Hincrbyfloat | C::Hkeys => Route::Slot,
        C::Hlen | C::Hmget | C::Hmset | C::Hrandfield | C::Hscan | C::Hset | C::Hsetnx => Route::Slot,
        C::Hstrlen | C::Hvals => Route::Slot,
        // Lists.
        C::Blmove | C::Blmpop | C::Blpop | C::Brpop | C::Brpoplpush => Route::Blocking,
        C::Lindex | C::Linsert | C::Llen | C::Lmove | C::Lmpop | C::Lpop | C::Lpos | C::Lpush => Route::Slot,
        C::Lpushx | C::Lrange | C::Lrem | C::Lset | C::Ltrim | C::Rpop | C::Rpoplpush => Route::Slot,
        C::Rpush | C::Rpushx => Route::Slot,
        // Sets.
        C::Sadd | C::Scard | C::Sdiff | C::Sdiffstore | C::Sinter | C::Sintercard | C::Sinterstore => Route::Slot,
        C::Sismember | C::Smembers | C::Smismember | C::Smove | C::Spop | C::Srandmember | C::Srem => Route::Slot,
        C::Sscan | C::Sunion | C::Sunionstore => Route::Slot,
        // Sorted sets.
        C::Bzmpop | C::Bzpopmax | C::Bzpopmin => Route::Blocking,
        C::Zadd | C::Zcard | C::Zcount | C::Zdiff | C::Zdiffstore | C::Zincrby | C::Zinter => Route::Slot,
        C::Zintercard | C::Zinterstore | C::Zlexcount | C::Zmpop | C::Zmscore | C::Zpopmax => Route::Slot,
        C::Zpopmin | C::Zrandmember | C::Zrange | C::Zrangebylex | C::Zrangebyscore => Route::Slot,
        C::Zrangestore | C::Zrank | C::Zrem | C::Zremrangebylex | C::Zremrangebyrank => Route::Slot,
        C::Zremrangebyscore | C::Zrevrange | C::Zrevrangebylex | C::Zrevrangebyscore => Route::Slot,
        C::Zrevrank | C::Zscan | C::Zscore | C::Zunion | C::Zunionstore => Route::Slot,
        // Keys of any type.
        C::Del | C::Exists | C::Touch | C::Unlink => Route::Split(Split::Sum),
        C::Copy | C::Dump | C::Expire | C::Expireat | C::Expiretime | C::Move | C::Persist => Route::Slot,
        C::Pexpire | C::Pexpireat | C::Pexpiretime | C::Pttl | C::Rename | C::Renamenx => Route::Slot,
        C::Restore | C::Sort | C::SortRo | C::Ttl | C::Type => Route::Slot,
        C::ObjectEncoding | C::ObjectFreq | C::ObjectIdletime | C::ObjectRefcount => Route::Slot,
        C::Object | C::ObjectHelp => Route::Local,
        C::Keys => Route::Broadcast(Merge::Concat),
        C::Randomkey => Route::RandomKey,
        C::Scan => Route::Scan,
        C::Migrate => Route::Refused(MOVES_KEYS),
        C::Wait | C::Waitaof => Route::Refused(
            "it is about the writes of one server connection, and the proxy's are shared by many clients: \
             use min-replicas-to-write or appendfsync always on the servers",
        ),
        // The connection itself.
        C::Auth | C::Echo | C::Hello | C::Ping | C::Quit | C::Reset | C::Select => Route::Local,
        // Transactions.
        C::Discard | C::Exec | C::Multi | C::Unwatch | C::Watch => Route::Transaction,
        // Streams.
        C::Xack | C::Xadd | C::Xautoclaim | C::Xclaim | C::Xdel | C::Xlen | C::Xpending => Route::Slot,
        C::XgroupCreate | C::XgroupCreateconsumer | C::XgroupDelconsumer | C::XgroupDestroy => Route::Slot,
        C::XgroupSetid | C::XinfoConsumers | C::XinfoGroups | C::XinfoStream => Route::Slot,
        C::Xrange | C::Xrevrange | C::Xsetid | C::Xtrim => Route::Slot,
        C::Xread | C::Xreadgroup => Route::Blocking,
        C::Xgroup | C::XgroupHelp | C::Xinfo | C::XinfoHelp => Route::Local,
        // Publish and subscribe.
        C::Subscribe | C::Psubscribe | C::Ssubscribe => Route::Subscribe,
        C::Unsubscribe | C::Punsubscribe | C::Sunsubscribe => Route::Subscribe,
        C::Publish => Route::Publish,
        C::Spublish => Route::Slot,
        C::PubsubChannels | C::PubsubNumpat | C::PubsubNumsub => Route::PubSub,
        C::PubsubShardchannels | C::PubsubShardnumsub => Route::PubSub,
        C::Pubsub | C::PubsubHelp => Route::Local,
        // Scripts and functions.
        C::Eval | C::EvalRo | C::Evalsha | C::EvalshaRo | C::Fcall | C::FcallRo => Route::Script,
        C::FunctionDelete | C::FunctionFlush | C::FunctionLoad => Route::Broadcast(Merge::AllSucceeded),
        C::FunctionRestore => Route::Broadcast(Merge::AllSucceeded),
        C::FunctionDump | C::FunctionList | C::FunctionStats => Route::Fixed,
        C::FunctionKill | C::ScriptKill => Route::Kill,
        C::ScriptExists => Route::Broadcast(Merge::And),
        C::ScriptFlush | C::ScriptLoad => Route::Broadcast(Merge::AllSucceeded),
        C::Function | C::FunctionHelp | C::Script | C::ScriptHelp => Route::Local,
        C::ScriptDebug => Route::Refused("it takes over the whole server connection: debug on a server of your own"),
        // Bitmaps, HyperLogLogs, geospatial indexes.
        C::Bitcount | C::Bitfield | C::BitfieldRo | C::Bitop | C::Bitpos | C::Getbit | C::Setbit => Route::Slot,
        C::Pfadd | C::Pfcount | C::Pfdebug | C::Pfmerge => Route::Slot,
        C::Pfselftest => Route::Refused(SERVER_ONLY),
        C::Geoadd | C::Geodist | C::Geohash | C::Geopos | C::Georadius | C::GeoradiusRo => Route::Slot,
        C::Georadiusbymember | C::GeoradiusbymemberRo | C::Geosearch | C::Geosearchstore => Route::Slot,
        // CLIENT.
        C::Client | C::ClientHelp | C::ClientGetname | C::ClientSetname | C::ClientSetinfo => Route::Local,
        C::ClientId | C::ClientInfo | C::ClientList | C::ClientKill | C::ClientReply => Route::Local,
        C::ClientNoEvict | C::ClientUnblock | C::ClientTrackinginfo | C::ClientGetredir => Route::Local,
        C::ClientCaching | C::ClientTracking => Route::Refused(
            "what a server remembers of reads would be that of all the proxy's clients: read without a client-side cache",
        ),
        C::ClientNoTouch => Route::Refused("server connections are shared, so it would hold for other clients too"),
        C::ClientPause | C::ClientUnpause => Route::Refused(SERVER_ONLY),
        // The server.
        C::Flushall | C::Flushdb => Route::Broadcast(Merge::AllSucceeded),
        C::Config | C::ConfigGet | C::ConfigHelp | C::ConfigResetstat => Route::Local,
        C::ConfigRewrite | C::ConfigSet => Route::Local,
        C::Bgrewriteaof | C::Bgsave | C::Lastsave | C::Save | C::Shutdown => Route::Refused(SERVER_ONLY),
        C::Module | C::ModuleHelp | C::ModuleList => Route::Local,
        C::ModuleLoad | C::ModuleLoadex | C::ModuleUnload => Route::Refused(SERVER_ONLY),
        C::Failover | C::Replicaof | C::Slaveof => Route::Refused(TOPOLOGY),
        C::Psync | C::Replconf | C::Sync | C::RestoreAsking => Route::Refused(LINK),
        C::Swapdb => Route::Refused("the groups of a cluster cannot swap databases at one instant"),
        // What the server tells of itself.
        C::Command | C::CommandCount | C::CommandDocs | C::CommandGetkeys => Route::Local,
        C::CommandGetkeysandflags | C::CommandHelp | C::CommandInfo | C::CommandList => Route::Local,
        C::Dbsize => Route::Broadcast(Merge::Sum),
        C::Debug => Route::Refused(SERVER_ONLY),
        C::Info | C::Role | C::Time | C::Lolwut => Route::Local,
        C::Latency | C::LatencyDoctor | C::LatencyGraph | C::LatencyHelp | C::LatencyHistogram => Route::Local,
        C::LatencyHistory | C::LatencyLatest | C::LatencyReset => Route::Local,
        C::Memory | C::MemoryHelp => Route::Local,
        C::MemoryPurge => Route::Broadcast(Merge::AllSucceeded),
        C::MemoryUsage => Route::Slot,
        C::MemoryDoctor | C::MemoryMallocStats | C::MemoryStats => Route::Refused(SERVER_ONLY),
        C::Monitor => Route::Refused("it would show each client's commands to another: use it on a server"),
        C::Slowlog | C::SlowlogGet | C::SlowlogHelp | C::SlowlogLen | C::SlowlogReset => Route::Local,
        // ACL.
        C::Acl | C::AclCat | C::AclDeluser | C::AclDryrun | C::AclGenpass | C::AclGetuser => Route::Local,
        C::AclHelp | C::AclList | C::AclLoad | C::AclLog | C::AclSave | C::AclSetuser => Route::Local,
        C::AclUsers | C::AclWhoami => Route::Local,
        // Redis Cluster: to its clients the proxy is one server without cluster support.
        C::Cluster | C::ClusterAddslots | C::ClusterAddslotsrange | C::ClusterBumpepoch => Route::Local,
        C::ClusterCountFailureReports | C::ClusterCountkeysinslot | C::ClusterDelslots => Route::Local,
        C::ClusterDelslotsrange | C::ClusterFailover | C::ClusterFlushslots | C::ClusterForget => Route::Local,
        C::ClusterGetkeysinslot | C::ClusterHelp | C::ClusterInfo | C::ClusterKeyslot => Route::Local,
        C::ClusterLinks | C::ClusterMeet | C::ClusterMyid | C::ClusterMyshardid => Route::Local,
        C::ClusterNodes | C::ClusterReplicas | C::ClusterReplicate | C::ClusterReset => Route::Local,
        C::ClusterSaveconfig | C::ClusterSetConfigEpoch | C::ClusterSetslot | C::ClusterShards => Route::Local,
        C::ClusterSlaves | C::ClusterSlots | C::Asking | C::Readonly | C::Readwrite => Route::Local,
        // Beyond Redis 7.2.
        C::Delifeq | C::Hexpire | C::Hexpireat | C::Hexpiretime | C::Hgetdel | C::Hgetex | C::Hpersist => Route::Slot,
        C::Hpexpire | C::Hpexpireat | C::Hpexpiretime | C::Hpttl | C::Hsetex | C::Httl => Route::Slot,
        C::Hotkeys | C::Bigkeys => Route::Refused(SERVER_ONLY),
        C::Oxidis | C::OxidisImport | C::OxidisJoin | C::OxidisLeave | C::OxidisMove => Route::Refused(TOPOLOGY),
        C::OxidisHelp | C::OxidisProxy | C::OxidisSlots | C::OxidisView => Route::Refused(TOPOLOGY),
    }
}
