//! Every command shape, by family. See [`super::grammar`] for the language.
//!
//! A weight before the shape says how often it comes in comparison with others of its family.

/// Shapes of the families, in the order of [`super::vocabulary::FAMILIES`].
pub const SHAPES: [&[(u8, &str)]; 6] = [KEYS, STRINGS, LISTS, HASHES, SETS, ZSETS];

/// Names for COMMAND INFO, DOCS and GETKEYS.
pub const COMMAND_NAMES: &[&str] = &[
    "get",
    "SET",
    "mset",
    "sort",
    "zunionstore",
    "zunion",
    "lmpop",
    "blmpop",
    "object|encoding",
    "eval",
    "nosuch",
    "zinter",
    "copy",
    "sintercard",
    "bitop",
    "ping",
    "config|get",
    "client|kill",
    "",
    "lcs",
    "memory|usage",
];

/// Generic commands, and those of no data type.
pub const KEYS: &[(u8, &str)] = &[
    (10, "DEL <key>+"),
    (4, "UNLINK <anykey>+"),
    (6, "EXISTS <anykey>+"),
    (6, "TYPE <anykey>"),
    (2, "TOUCH <anykey>+"),
    (8, "EXPIRE <anykey> <ttl> [NX|XX|GT|LT]"),
    (6, "PEXPIRE <anykey> <ttlms> [NX|XX|GT|LT]"),
    (5, "EXPIREAT <anykey> <at> [NX|XX|GT|LT]"),
    (5, "PEXPIREAT <anykey> <atms> [NX|XX|GT|LT]"),
    (1, "EXPIRE <anykey> <ttl> (NX XX|GT LT|NX GT|XX GT|ABC)"),
    (4, "PERSIST <anykey>"),
    (3, "TTL <anykey>"),
    (3, "PTTL <anykey>"),
    (3, "EXPIRETIME <anykey>"),
    (3, "PEXPIRETIME <anykey>"),
    (6, "RENAME <anykey> <anykey>"),
    (6, "RENAMENX <anykey> <anykey>"),
    (8, "COPY <anykey> <anykey> {[DB <db>] [REPLACE]}"),
    (5, "MOVE <anykey> <db>"),
    (10, "OBJECT ENCODING <anykey>"),
    (1, "OBJECT (FREQ|IDLETIME|REFCOUNT|XYZ) <anykey>"),
    (1, "OBJECT HELP"),
    (2, "RANDOMKEY"),
    (3, "DBSIZE"),
    (3, "KEYS <pattern>"),
    (
        5,
        "SCAN <cursor> {[MATCH <pattern>] [COUNT <count>] [TYPE <type>]}",
    ),
    (6, "DUMP <anykey>"),
    (
        8,
        "RESTORE <anykey> <ttlms> <dump> {[REPLACE] [IDLETIME <count>|FREQ <count>]}",
    ),
    (2, "RESTORE <anykey> <atms> <dump> ABSTTL REPLACE"),
    (1, "RESTORE <anykey> 0 <value> [REPLACE]"),
    (
        10,
        "SORT <anykey> {[BY <sortpattern>] [LIMIT <index> <count>] [GET <sortpattern>] [GET <sortpattern>] [ASC|DESC] [ALPHA] [STORE <anykey>]}",
    ),
    (
        5,
        "SORT_RO <anykey> {[BY <sortpattern>] [LIMIT <index> <count>] [GET <sortpattern>] [ASC|DESC] [ALPHA]}",
    ),
    (
        3,
        "SORT (lists1|sets1|zsets1|lists2) {[LIMIT <index> <count>] [GET #] [DESC] ALPHA [STORE <key>]}",
    ),
    (6, "MSET (w_0 <int>|w_1 <int>|w_2 <float>|w_3 <value>)+"),
    (4, "SELECT <db>"),
    (1, "SWAPDB <db> <db>"),
    (1, "FLUSHDB [ASYNC|SYNC|XYZ]"),
    (1, "WAIT 0 <count>"),
    (3, "PING [<value>]"),
    (2, "ECHO <value>"),
    (1, "HELLO [(2|3|4|abc|1) [SETNAME <short>]]"),
    (1, "RESET"),
    (1, "QUIT"),
    (1, "AUTH <value> [<value>]"),
    (
        1,
        "CLIENT (GETNAME|SETNAME <short>|ID|INFO|NO-EVICT on|NO-EVICT <any>|SETNAME a b|LIST ID <count>|LIST TYPE <any>|KILL <any>|KILL ID <any>|REPLY <any>|UNPAUSE|XYZ|TRACKINGINFO|GETREDIR|UNBLOCK <count> [TIMEOUT|ERROR|XYZ])",
    ),
    (
        2,
        "COMMAND GETKEYS (<command> <anykey>+|MSET <key> <value> <key> <value>|ZUNIONSTORE <key> <keys>|SORT <key> STORE <key>|EVAL x <keys> a|LMPOP <keys> LEFT|GET|SET <key> v GET|MEMORY USAGE <key>|MIGRATE h p <key> 0 1 KEYS <key> <key>|BITOP AND <key>+|XREAD COUNT 2 STREAMS a b 0 0|OBJECT ENCODING <key>)",
    ),
    (
        1,
        "COMMAND GETKEYSANDFLAGS (<command> <anykey>+|SET <key> v GET|COPY <key> <key>|SORT <key> STORE <key>|LMOVE <key> <key> LEFT LEFT)",
    ),
    (
        1,
        "COMMAND (COUNT|LIST|XYZ|LIST FILTERBY (ACLCAT hash|PATTERN h*|MODULE x|XYZ y)|INFO <command>)",
    ),
    (1, "TIME"),
    (1, "PUBLISH <channel> <value>"),
    (
        1,
        "PUBSUB (CHANNELS [<pattern>]|NUMSUB <channel>+|NUMPAT|XYZ|SHARDCHANNELS|SHARDNUMSUB <channel>)",
    ),
    (
        1,
        "CONFIG (GET <any>|GET maxmemory-policy|GET hash-max-*|SET nosuch 1|SET maxmemory|SET maxmemory abc|SET hash-max-listpack-entries abc|RESETSTAT|XYZ)",
    ),
    (
        1,
        "DEBUG (STRINGMATCH-LEN 10 a|XYZ|OBJECT none|SET-ACTIVE-EXPIRE x y)",
    ),
    (1, "SLOWLOG (LEN a|GET abc|GET -2|XYZ)"),
    (1, "LATENCY (RESET <any>|HISTORY <any>|XYZ|LATEST a)"),
    (
        1,
        "MEMORY (USAGE <anykey> [SAMPLES <count>]|XYZ|USAGE <anykey> ABC 1)",
    ),
    (1, "(NOSUCH|nosuch|GETX|\u{1}|SETGET) <any>+"),
    (1, "<any> <any>+"),
    (
        1,
        "(GET|SET|CONFIG|OBJECT|CLIENT|COMMAND|SUBSCRIBE|HELLO|PUBSUB|MEMORY|SLOWLOG|LATENCY|DEBUG)",
    ),
];

/// Strings and bit operations.
pub const STRINGS: &[(u8, &str)] = &[
    (12, "SET <key> <short>"),
    (
        10,
        "SET <key> <short> {[NX|XX] [GET] [EX <ttl>|PX <ttlms>|EXAT <at>|PXAT <atms>|KEEPTTL]}",
    ),
    (
        2,
        "SET <key> <value> {(NX|XX|GET|EX <ttl>|PX <ttlms>|KEEPTTL|EXAT <at>|ABC) (NX|XX|GET|EX <ttl>|KEEPTTL)}",
    ),
    (8, "GET <key>"),
    (3, "GETSET <key> <value>"),
    (3, "GETDEL <key>"),
    (
        5,
        "GETEX <key> [EX <ttl>|PX <ttlms>|EXAT <at>|PXAT <atms>|PERSIST|EX <ttl> PERSIST|ABC]",
    ),
    (3, "SETNX <key> <value>"),
    (3, "SETEX <key> <ttl> <value>"),
    (3, "PSETEX <key> <ttlms> <value>"),
    (4, "MSET (<key> <value>)+"),
    (4, "MSETNX (<key> <value>)+"),
    (4, "MGET <anykey>+"),
    (6, "APPEND <key> <value>"),
    (4, "STRLEN <key>"),
    (6, "SETRANGE <key> (<index>|0|3|10|536870912) <value>"),
    (6, "GETRANGE <key> <index> <index>"),
    (2, "SUBSTR <key> <index> <index>"),
    (6, "INCR <key>"),
    (4, "DECR <key>"),
    (6, "INCRBY <key> <int>"),
    (6, "DECRBY <key> <int>"),
    (6, "INCRBYFLOAT <key> <float>"),
    (6, "SETBIT <key> <bitoffset> <bit>"),
    (4, "GETBIT <key> <bitoffset>"),
    (6, "BITCOUNT <key> [<index> <index> [BYTE|BIT|XYZ]|<index>]"),
    (6, "BITPOS <key> <bit> [<index> [<index> [BYTE|BIT|XYZ]]]"),
    (8, "BITOP (AND|OR|XOR|NOT|nand) <key> <key>+"),
    (
        10,
        "BITFIELD <key> ((GET <bittype> <bitoffset>|SET <bittype> <bitoffset> <int>|INCRBY <bittype> <bitoffset> <int>|OVERFLOW (WRAP|SAT|FAIL|XYZ)))+",
    ),
    (
        4,
        "BITFIELD <key> [OVERFLOW (WRAP|SAT|FAIL)] (SET|INCRBY) <bittype> <bitoffset> <int> GET <bittype> <bitoffset>",
    ),
    (
        4,
        "BITFIELD_RO <key> (GET <bittype> <bitoffset>|SET u8 0 1)+",
    ),
    (
        6,
        "LCS <key> <key> {[LEN] [IDX] [MINMATCHLEN <count>] [WITHMATCHLEN]}",
    ),
    (3, "OBJECT ENCODING <key>"),
];

/// Lists.
pub const LISTS: &[(u8, &str)] = &[
    (10, "(RPUSH|LPUSH) <key> <member>++"),
    (6, "(RPUSHX|LPUSHX) <key> <value>++"),
    (8, "(LPOP|RPOP) <key> [<count>]"),
    (6, "LRANGE <key> <index> <index>"),
    (3, "LRANGE <key> 0 -1"),
    (3, "LLEN <key>"),
    (4, "LINDEX <key> <index>"),
    (6, "LSET <key> <nearindex> <value>"),
    (6, "LINSERT <key> (BEFORE|AFTER|xyz) <member> <value>"),
    (6, "LREM <key> <index> <member>"),
    (5, "LTRIM <key> <index> <index>"),
    (
        6,
        "LPOS <key> <member> {[RANK <index>] [COUNT <count>] [MAXLEN <count>]}",
    ),
    (4, "RPOPLPUSH <key> <key>"),
    (6, "LMOVE <key> <key> (LEFT|RIGHT|up) (LEFT|RIGHT)"),
    (6, "LMPOP <keys> (LEFT|RIGHT|xyz) [COUNT <count>]"),
    (1, "(BLPOP|BRPOP) <key>+ <timeout>"),
    (1, "BLMOVE <key> <key> (LEFT|RIGHT) (LEFT|RIGHT) <timeout>"),
    (1, "BRPOPLPUSH <key> <key> <timeout>"),
    (1, "BLMPOP <timeout> <keys> (LEFT|RIGHT) [COUNT <count>]"),
    (4, "OBJECT ENCODING <key>"),
];

/// Hashes.
pub const HASHES: &[(u8, &str)] = &[
    (12, "HSET <key> (<field> <value>)++"),
    (3, "HMSET <key> (<field> <value>)+"),
    (4, "HSETNX <key> <field> <value>"),
    (5, "HGET <key> <field>"),
    (4, "HMGET <key> <field>+"),
    (6, "HDEL <key> <field>+"),
    (3, "HLEN <key>"),
    (3, "HSTRLEN <key> <field>"),
    (3, "HEXISTS <key> <field>"),
    (4, "HGETALL <key>"),
    (3, "HKEYS <key>"),
    (3, "HVALS <key>"),
    (6, "HINCRBY <key> <field> <int>"),
    (6, "HINCRBYFLOAT <key> <field> <float>"),
    (4, "HRANDFIELD <key> [<count> [WITHVALUES|XYZ]]"),
    (
        4,
        "HSCAN <key> <cursor> {[MATCH <pattern>] [COUNT <count>]}",
    ),
    (4, "OBJECT ENCODING <key>"),
];

/// Sets.
pub const SETS: &[(u8, &str)] = &[
    (12, "SADD <key> <member>++"),
    (6, "SREM <key> <member>+"),
    (4, "SISMEMBER <key> <member>"),
    (4, "SMISMEMBER <key> <member>+"),
    (4, "SCARD <key>"),
    (4, "SMEMBERS <key>"),
    (4, "SMOVE <key> <key> <member>"),
    (4, "SPOP <key> [<count>]"),
    (4, "SRANDMEMBER <key> [<count>]"),
    (4, "(SINTER|SUNION|SDIFF) <key>+"),
    (5, "(SINTERSTORE|SUNIONSTORE|SDIFFSTORE) <key> <key>+"),
    (4, "SINTERCARD <keys> [LIMIT <count>]"),
    (
        4,
        "SSCAN <key> <cursor> {[MATCH <pattern>] [COUNT <count>]}",
    ),
    (4, "OBJECT ENCODING <key>"),
];

/// Sorted sets.
pub const ZSETS: &[(u8, &str)] = &[
    (10, "ZADD <key> (<score> <member>)++"),
    (
        10,
        "ZADD <key> {[NX|XX] [GT|LT] [CH] [INCR]} (<score> <member>)+",
    ),
    (5, "ZINCRBY <key> <score> <member>"),
    (4, "ZSCORE <key> <member>"),
    (3, "ZMSCORE <key> <member>+"),
    (3, "ZCARD <key>"),
    (5, "ZREM <key> <member>+"),
    (5, "(ZRANK|ZREVRANK) <key> <member>"),
    (4, "ZCOUNT <key> <scorebound> <scorebound>"),
    (3, "ZLEXCOUNT <lexkey> <lexbound> <lexbound>"),
    (5, "ZRANGE <key> <index> <index> {[REV] [WITHSCORES]}"),
    (
        4,
        "ZRANGE <key> <scorebound> <scorebound> {BYSCORE [REV] [LIMIT <index> <count>] [WITHSCORES]}",
    ),
    (
        3,
        "ZRANGE <lexkey> <lexbound> <lexbound> {BYLEX [REV] [LIMIT <index> <count>] [WITHSCORES]}",
    ),
    (2, "ZREVRANGE <key> <index> <index> [WITHSCORES]"),
    (
        3,
        "(ZRANGEBYSCORE|ZREVRANGEBYSCORE) <key> <scorebound> <scorebound> {[WITHSCORES] [LIMIT <index> <count>]}",
    ),
    (
        3,
        "(ZRANGEBYLEX|ZREVRANGEBYLEX) <lexkey> <lexbound> <lexbound> [LIMIT <index> <count>]",
    ),
    (4, "ZRANGESTORE <key> <key> <index> <index> {[REV]}"),
    (
        3,
        "ZRANGESTORE <key> <key> <scorebound> <scorebound> {BYSCORE [REV] [LIMIT <index> <count>] [WITHSCORES]}",
    ),
    (
        2,
        "ZRANGESTORE <key> <lexkey> <lexbound> <lexbound> {BYLEX [REV] [LIMIT <index> <count>]}",
    ),
    (6, "ZADD <lexkey> (0 <member>)++"),
    (1, "ZREM <lexkey> <member>+"),
    (1, "OBJECT ENCODING <lexkey>"),
    (2, "ZREMRANGEBYRANK <key> <index> <index>"),
    (2, "ZREMRANGEBYSCORE <key> <scorebound> <scorebound>"),
    (2, "ZREMRANGEBYLEX <lexkey> <lexbound> <lexbound>"),
    (4, "(ZPOPMIN|ZPOPMAX) <key> [<count>]"),
    (4, "ZMPOP <keys> (MIN|MAX|xyz) [COUNT <count>]"),
    (1, "(BZPOPMIN|BZPOPMAX) <key>+ <timeout>"),
    (1, "BZMPOP <timeout> <keys> (MIN|MAX) [COUNT <count>]"),
    (
        5,
        "(ZUNIONSTORE|ZINTERSTORE) <key> <keys> {[WEIGHTS <score>+] [AGGREGATE (SUM|MIN|MAX|xyz)]}",
    ),
    (
        4,
        "(ZUNIONSTORE|ZINTERSTORE) <key> 2 <anykey> <key> {[WEIGHTS 2 0.5|WEIGHTS 1 -1] [AGGREGATE (SUM|MIN|MAX)]}",
    ),
    (
        4,
        "(ZUNION|ZINTER) <keys> {[WEIGHTS <score>+] [AGGREGATE (SUM|MIN|MAX)] [WITHSCORES]}",
    ),
    (
        3,
        "(ZUNION|ZINTER) 2 <anykey> <key> {[WEIGHTS 2 0.5] [AGGREGATE (SUM|MIN|MAX)] [WITHSCORES]}",
    ),
    (3, "ZDIFF <keys> [WITHSCORES]"),
    (3, "ZDIFFSTORE <key> <keys>"),
    (3, "ZINTERCARD <keys> [LIMIT <count>]"),
    (4, "ZRANDMEMBER <key> [<count> [WITHSCORES|XYZ]]"),
    (
        4,
        "ZSCAN <key> <cursor> {[MATCH <pattern>] [COUNT <count>]}",
    ),
    (4, "OBJECT ENCODING <key>"),
];

/// Shapes that only come outside MULTI and on the second connection.
pub const PUBSUB: &[&str] = &[
    "SUBSCRIBE <channel>+",
    "PSUBSCRIBE (c*|c?|*)+",
    "UNSUBSCRIBE [<channel>+]",
    "PUNSUBSCRIBE [(c*|c?)]",
    "SSUBSCRIBE <channel>",
    "SUNSUBSCRIBE [<channel>]",
    "PING [<value>]",
    "GET <anykey>",
];

/// Pairs of a command that blocks and one that may serve it.
pub const BLOCKING: &[(&str, &str)] = &[
    ("BLPOP lists0 lists1 0.2", "RPUSH (lists0|lists1) <member>+"),
    ("BRPOP lists1 lists0 0.2", "LPUSH (lists0|lists1) <member>+"),
    (
        "BLMOVE lists0 lists2 LEFT RIGHT 0.2",
        "RPUSH lists0 <member>+",
    ),
    ("BRPOPLPUSH lists0 lists0 0.2", "RPUSH lists0 <member>+"),
    (
        "BLMPOP 0.2 2 lists0 lists1 LEFT COUNT 2",
        "RPUSH lists1 <member>+",
    ),
    ("BZPOPMIN zsets0 zsets1 0.2", "ZADD (zsets0|zsets1) 1 a 2 b"),
    ("BZPOPMAX zsets0 0.2", "ZADD zsets0 1 a 2.5 b"),
    ("BZMPOP 0.2 1 zsets0 MIN COUNT 3", "ZADD zsets0 1 a 2.5 b"),
    ("BLPOP lists3 0.2", "RENAME lists0 lists3"),
    ("BLPOP lists3 0.2", "COPY lists0 lists3 REPLACE"),
    ("BLPOP lists3 0.2", "SORT lists0 ALPHA STORE lists3"),
    ("BZPOPMIN zsets3 0.2", "ZUNIONSTORE zsets3 1 sets0"),
];
