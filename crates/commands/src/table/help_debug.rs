//! The help of DEBUG, which is longer than any other.

/// The subcommands of DEBUG in the order of its help.
pub(super) const DEBUG: &[(&str, &[&str])] = &[
    (
        "AOF-FLUSH-SLEEP <microsec>",
        &["Sleep before each flush of the AOF; for tests."],
    ),
    ("ASSERT", &["Crash by a failed assertion."]),
    (
        "CHANGE-REPL-ID",
        &["Take new replication IDs; dangerous, for tests of replication."],
    ),
    (
        "CONFIG-REWRITE-FORCE-ALL",
        &["Like CONFIG REWRITE, but write every parameter, default or not."],
    ),
    (
        "CRASH-AND-RECOVER [<milliseconds>]",
        &["Crash, and start again after <milliseconds> (default 0)."],
    ),
    ("DIGEST", &["Compute a digest of all data, in hexadecimal."]),
    (
        "DIGEST-VALUE <key> [<key> ...]",
        &["Compute a digest of each value, in hexadecimal."],
    ),
    (
        "ERROR <string>",
        &["Reply with the error <string>, so that clients can be tested."],
    ),
    ("LEAK <string>", &["Leak the memory of <string>."]),
    ("LOG <message>", &["Write <message> to the log."]),
    (
        "HTSTATS <dbid> [full]",
        &["Show statistics of the hash tables of a database."],
    ),
    (
        "HTSTATS-KEY <key> [full]",
        &["Show statistics of the hash table of a value."],
    ),
    ("LOADAOF", &["Flush the AOF and load the data set from it."]),
    (
        "REPLICATE <string>",
        &["Send <string> to replicas, which may make them differ."],
    ),
    (
        "MALLCTL <key> [<val>]",
        &["Show or set a number inside the allocator."],
    ),
    (
        "MALLCTL-STR <key> [<val>]",
        &["Show or set a text inside the allocator."],
    ),
    (
        "OBJECT <key>",
        &["Describe how the value of `key` is kept."],
    ),
    (
        "DROP-CLUSTER-PACKET-FILTER <packet-type>",
        &["Drop all cluster packets of this type; -1: drop none."],
    ),
    ("OOM", &["Crash as if memory had run out."]),
    ("PANIC", &["Crash by a panic."]),
    (
        "POPULATE <count> [<prefix>] [<size>]",
        &[
            "Make <count> strings named key:<num>, or <prefix>:<num>. They are not sent to",
            "replicas, and in a cluster their slots may belong to other nodes.",
        ],
    ),
    (
        "PROTOCOL <type>",
        &[
            "Reply with a value of this type: string, integer, double, bignum, null, array,",
            "set, map, attrib, push, verbatim, true, false.",
        ],
    ),
    (
        "RELOAD [option ...]",
        &[
            "Save the data set to an RDB file and load it again. Options are:",
            "* MERGE: where a key exists, the one in the file wins.",
            "* NOFLUSH: keep the data set; a key that exists is a fatal error.",
            "* NOSAVE: load the file that is there.",
            "Examples:",
            "* DEBUG RELOAD: see whether saving, flushing and loading work.",
            "* DEBUG RELOAD NOSAVE: replace the data set by that in a file.",
            "* DEBUG RELOAD NOSAVE NOFLUSH MERGE: add the contents of a file.",
        ],
    ),
    (
        "RESTART [<milliseconds>]",
        &["Save configuration and data, and start again after <milliseconds> (default 0)."],
    ),
    (
        "SDSLEN <key>",
        &["Show lengths and memory of `key` and of its string."],
    ),
    ("SEGFAULT", &["Crash by a bad memory access."]),
    (
        "SET-ACTIVE-EXPIRE <0|1>",
        &["0: remove dead keys only when they are used."],
    ),
    (
        "QUICKLIST-PACKED-THRESHOLD <size>",
        &[
            "Let larger elements have a list node of their own: up to 4GB, 0 for the",
            "default of 1GB.",
        ],
    ),
    (
        "SET-SKIP-CHECKSUM-VALIDATION <0|1>",
        &["1: do not verify checksums of RDB files and of RESTORE."],
    ),
    (
        "SLEEP <seconds>",
        &["Stop the server for <seconds>, which may have a fraction."],
    ),
    (
        "STRINGMATCH-TEST",
        &["Run the pattern matcher on random input."],
    ),
    (
        "STRUCTSIZE",
        &["Show the sizes of the server's structures."],
    ),
    ("LISTPACK <key>", &["Describe the listpack of <key>."]),
    (
        "QUICKLIST <key> [<0|1>]",
        &["Describe the quicklist of <key>; 1: in detail."],
    ),
    (
        "CLIENT-EVICTION",
        &["Show the pools from which clients are closed to free memory."],
    ),
    ("PAUSE-CRON <0|1>", &["1: stop periodic work."]),
    (
        "REPLYBUFFER PEAK-RESET-TIME <NEVER||RESET|time>",
        &[
            "Set after how many milliseconds the peak of a reply buffer is forgotten;",
            "NEVER: keep it; RESET: use the default.",
        ],
    ),
    (
        "REPLYBUFFER RESIZING <0|1>",
        &["0: do not resize reply buffers."],
    ),
    (
        "CLUSTERLINK KILL <to|from|all> <node-id>",
        &["Close the connections to a node, from it, or both."],
    ),
];
