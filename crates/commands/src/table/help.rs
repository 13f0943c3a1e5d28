//! Replies of the HELP subcommands. The lines that show how to write a subcommand are those of
//! Redis; explanations are ours.

use resp::Reply;

use super::id::CommandId;
use super::keys::ArgView;

/// One way to call a subcommand, and its explanation in lines.
type Entry = (&'static str, &'static [&'static str]);

/// Writes the help of a container; the heading repeats its name as the client wrote it, in
/// capitals. Returns whether the command has a help; nothing is written otherwise.
pub fn write<A: ArgView + ?Sized>(container: CommandId, args: &A, reply: &mut Reply) -> bool {
    let Some(entries) = entries(container) else {
        return false;
    };
    let line_count: usize = entries.iter().map(|(_, explanation)| 1 + explanation.len()).sum();
    reply.array(1 + line_count + 2);
    let mut heading = args.arg(0).unwrap_or_default().to_ascii_uppercase();
    heading.extend_from_slice(b" <subcommand> [<arg> [value] [opt] ...]. Subcommands are:");
    reply.simple(heading);
    for (usage, explanation) in entries {
        reply.simple(usage);
        for line in *explanation {
            reply.simple(format!("    {line}"));
        }
    }
    reply.simple("HELP");
    reply.simple("    Print this help.");
    true
}

/// The subcommands of a container in the order of its help.
fn entries(container: CommandId) -> Option<&'static [Entry]> {
    Some(match container {
        CommandId::Acl => ACL,
        CommandId::Client => CLIENT,
        CommandId::Cluster => CLUSTER,
        CommandId::Command => COMMAND,
        CommandId::Config => CONFIG,
        CommandId::Debug => super::help_debug::DEBUG,
        CommandId::Function => FUNCTION,
        CommandId::Latency => LATENCY,
        CommandId::Memory => MEMORY,
        CommandId::Module => MODULE,
        CommandId::Object => OBJECT,
        CommandId::Pubsub => PUBSUB,
        CommandId::Script => SCRIPT,
        CommandId::Oxidis => OXIDIS,
        CommandId::Slowlog => SLOWLOG,
        CommandId::Xgroup => XGROUP,
        CommandId::Xinfo => XINFO,
        _ => return None,
    })
}

const OXIDIS: &[Entry] = &[
    ("IMPORT BEGIN|COMMIT|ABORT <move> ...", &["Take slots over from another server."]),
    ("JOIN <member> <manager> [<manager> ...]", &["Make this server a member of the cluster of these managers."]),
    ("LEAVE", &["Make it a plain server again."]),
    (
        "MOVE START|STATUS|RATE|PAUSE|RESUME|CANCEL|FREEZE|FINISH <move> ...",
        &["Move slots to another server, as the manager decides."],
    ),
    ("PROXY <name>", &["Say that this connection is a proxy's."]),
    ("SLOTS STATS [<ranges>]", &["Show what slots hold and how much they are used."]),
    ("VIEW", &["Show what this server knows of its cluster."]),
];

const ACL: &[Entry] = &[
    ("CAT [<category>]", &["Name the categories, or the commands of <category>."]),
    ("DELUSER <username> [<username> ...]", &["Remove users and close their connections."]),
    ("DRYRUN <username> <command> [<arg> ...]", &["Tell whether the user could run the command; it is not run."]),
    ("GETUSER <username>", &["Show the rules of a user."]),
    ("GENPASS [<bits>]", &["Make a random password of 256 bits, or of as many as `bits` says."]),
    ("LIST", &["Show each user as a line of the ACL file."]),
    ("LOAD", &["Read the ACL file again and take the users from there."]),
    ("LOG [<count> | RESET]", &["Show the latest refusals, or forget them."]),
    ("SAVE", &["Write the users to the ACL file."]),
    ("SETUSER <username> <attribute> [<attribute> ...]", &["Apply rules to a user, who is made if need be."]),
    ("USERS", &["Name all users."]),
    ("WHOAMI", &["Name the user of this connection."]),
];

const CLIENT: &[Entry] = &[
    ("CACHING (YES|NO)", &["Track the keys of the next command, or not, in OPTIN or OPTOUT mode."]),
    ("GETREDIR", &["Show which client gets the invalidations of this connection's tracking."]),
    ("GETNAME", &["Show the name of this connection."]),
    ("ID", &["Show the number of this connection."]),
    ("INFO", &["Describe this connection."]),
    ("KILL <ip:port>", &["Close the connection from <ip:port>."]),
    (
        "KILL <option> <value> [<option> <value> [...]]",
        &[
            "Close all connections that fit every option:",
            "* ADDR (<ip:port>|<unixsocket>:0)",
            "  They come from this address.",
            "* LADDR (<ip:port>|<unixsocket>:0)",
            "  They reached the server at this address.",
            "* TYPE (NORMAL|MASTER|REPLICA|PUBSUB)",
            "  They are of this type.",
            "* USER <username>",
            "  They are logged in as this user.",
            "* SKIPME (YES|NO)",
            "  Whether to spare this connection (default: yes).",
        ],
    ),
    (
        "LIST [options ...]",
        &[
            "Describe the connections. Options are:",
            "* TYPE (NORMAL|MASTER|REPLICA|PUBSUB)",
            "  Only those of this type.",
        ],
    ),
    ("UNPAUSE", &["End a pause: commands that were held back go on."]),
    ("PAUSE <timeout> [WRITE|ALL]", &["Hold back writing commands, or all, for <timeout> milliseconds."]),
    ("REPLY (ON|OFF|SKIP)", &["Choose whether this connection gets replies."]),
    ("SETNAME <name>", &["Name this connection <name>."]),
    (
        "SETINFO <option> <value>",
        &[
            "Store a fact about the client. Options are:",
            "* LIB-NAME: its library.",
            "* LIB-VER: the version of its library.",
        ],
    ),
    ("UNBLOCK <clientid> [TIMEOUT|ERROR]", &["End the wait of a blocked client."]),
    ("TRACKING (ON|OFF) [REDIRECT <id>] [BCAST] [PREFIX <prefix> [...]]", &[]),
    (
        "         [OPTIN] [OPTOUT] [NOLOOP]",
        &["Choose whether this connection hears of changes to keys it may have cached."],
    ),
    ("TRACKINGINFO", &["Show how tracking is set for this connection."]),
    ("NO-EVICT (ON|OFF)", &["Never close this connection to free memory."]),
    ("NO-TOUCH (ON|OFF)", &["Let this connection's commands not count as use of keys."]),
];

const CLUSTER: &[Entry] = &[
    ("ADDSLOTS <slot> [<slot> ...]", &["Give slots to this node."]),
    (
        "ADDSLOTSRANGE <start slot> <end slot> [<start slot> <end slot> ...]",
        &["Give the slots from <start slot> to <end slot> to this node."],
    ),
    ("BUMPEPOCH", &["Raise the configuration epoch."]),
    ("COUNT-FAILURE-REPORTS <node-id>", &["Count the nodes that report <node-id> as failing."]),
    ("COUNTKEYSINSLOT <slot>", &["Count the keys of <slot>."]),
    ("DELSLOTS <slot> [<slot> ...]", &["Take slots from this node's map."]),
    (
        "DELSLOTSRANGE <start slot> <end slot> [<start slot> <end slot> ...]",
        &["Take the slots from <start slot> to <end slot> from this node's map."],
    ),
    ("FAILOVER [FORCE|TAKEOVER]", &["Let this replica take over from its primary."]),
    ("FORGET <node-id>", &["Drop a node from the list of nodes."]),
    ("GETKEYSINSLOT <slot> <count>", &["Name up to <count> keys of <slot>."]),
    ("FLUSHSLOTS", &["Take all slots from this node."]),
    ("INFO", &["Describe the state of the cluster."]),
    ("KEYSLOT <key>", &["Compute the slot of <key>."]),
    ("MEET <ip> <port> [<bus-port>]", &["Join this node and another into one cluster."]),
    ("MYID", &["Show this node's ID."]),
    ("MYSHARDID", &["Show the ID of this node's shard."]),
    (
        "NODES",
        &[
            "List all nodes as this node knows them, one on a line:",
            "<id> <ip:port@bus-port[,hostname]> <flags> <master> <pings> <pongs> <epoch> <link> \
             <slot> ...",
        ],
    ),
    ("REPLICATE <node-id>", &["Make this node a replica of <node-id>."]),
    ("RESET [HARD|SOFT]", &["Forget the cluster (default: soft)."]),
    ("SET-CONFIG-EPOCH <epoch>", &["Give this new node its configuration epoch."]),
    (
        "SETSLOT <slot> (IMPORTING <node-id>|MIGRATING <node-id>|STABLE|NODE <node-id>)",
        &["Set the owner of a slot, or mark it as moving."],
    ),
    ("REPLICAS <node-id>", &["List the replicas of <node-id>."]),
    ("SAVECONFIG", &["Write the state of the cluster to disk."]),
    (
        "SLOTS",
        &[
            "List ranges of slots, each with its start, its end, and the address, port and ID of",
            "its primary and replicas.",
        ],
    ),
    ("SHARDS", &["List the shards, each with its ranges of slots and its nodes."]),
    ("LINKS", &["List the connections to and from other nodes, each as a map."]),
];

const COMMAND: &[Entry] = &[
    ("(no subcommand)", &["Describe all commands."]),
    ("COUNT", &["Count the commands."]),
    ("LIST", &["Name all commands."]),
    ("INFO [<command-name> ...]", &["Describe these commands, or all."]),
    ("DOCS [<command-name> ...]", &["Document these commands, or all."]),
    ("GETKEYS <full-command>", &["Show which arguments of a command are keys."]),
    ("GETKEYSANDFLAGS <full-command>", &["Show which arguments of a command are keys, and what it does with them."]),
];

const CONFIG: &[Entry] = &[
    ("GET <pattern>", &["Show the parameters whose names match <pattern>."]),
    ("SET <directive> <value>", &["Change a parameter of the running server."]),
    ("RESETSTAT", &["Set the statistics of INFO back to zero."]),
    ("REWRITE", &["Bring the configuration file in line with the running configuration."]),
];

const FUNCTION: &[Entry] = &[
    ("LOAD [REPLACE] <FUNCTION CODE>", &["Add a library, or replace the one of that name."]),
    ("DELETE <LIBRARY NAME>", &["Remove a library."]),
    (
        "LIST [LIBRARYNAME PATTERN] [WITHCODE]",
        &[
            "Describe the libraries, or those whose names match PATTERN:",
            "* Name",
            "* Engine",
            "* Functions",
            "* Code, if WITHCODE is given",
        ],
    ),
    (
        "STATS",
        &[
            "Describe the function that runs, or nil if none does:",
            "* Name",
            "* Command that called it",
            "* Milliseconds it has been running",
            "The engines are listed too.",
        ],
    ),
    ("KILL", &["Stop the function that runs."]),
    (
        "FLUSH [ASYNC|SYNC]",
        &[
            "Remove all libraries. Without a mode, lazyfree-lazy-user-flush decides:",
            "* ASYNC: free their memory in the background.",
            "* SYNC: free their memory before the reply.",
        ],
    ),
    ("DUMP", &["Return all libraries as bytes that FUNCTION RESTORE takes."]),
    (
        "RESTORE <PAYLOAD> [FLUSH|APPEND|REPLACE]",
        &[
            "Add the libraries of a dump. What becomes of those that exist (default APPEND):",
            "* FLUSH: all are removed first.",
            "* APPEND: all stay; nothing is added if a name is taken.",
            "* REPLACE: those of equal name are replaced; nothing is added if a function of",
            "  another library has a name that is needed.",
        ],
    ),
];

const LATENCY: &[Entry] = &[
    ("DOCTOR", &["Explain in plain words what was slow and why."]),
    ("GRAPH <event>", &["Draw the latency of <event> as text."]),
    ("HISTORY <event>", &["Show the samples of <event> with their times."]),
    ("LATEST", &["Show the latest sample of each event."]),
    ("RESET [<event> ...]", &["Throw the samples of these events away, or those of all."]),
    ("HISTOGRAM [COMMAND ...]", &["Show how the latencies of these commands are distributed, or those of all."]),
];

const MEMORY: &[Entry] = &[
    ("DOCTOR", &["Explain in plain words what is wrong with memory use."]),
    ("MALLOC-STATS", &["Return the allocator's own statistics."]),
    ("PURGE", &["Ask the allocator to give unused pages back."]),
    ("STATS", &["Show where memory goes."]),
    (
        "USAGE <key> [SAMPLES <count>]",
        &[
            "Estimate the bytes that <key> and its value take, from up to <count> of its",
            "elements (default: 5, 0: all).",
        ],
    ),
];

const MODULE: &[Entry] = &[
    ("LIST", &["List the modules."]),
    ("LOAD <path> [<arg> ...]", &["Load the module at <path> with these arguments."]),
    (
        "LOADEX <path> [[CONFIG NAME VALUE] [CONFIG NAME VALUE]] [ARGS ...]",
        &["Load the module at <path> with these parameters and arguments."],
    ),
    ("UNLOAD <name>", &["Unload a module."]),
];

const OBJECT: &[Entry] = &[
    ("ENCODING <key>", &["Name the form in which the value of <key> is kept in memory."]),
    ("FREQ <key>", &["Show how often <key> is used of late, on a logarithmic scale."]),
    ("IDLETIME <key>", &["Show for about how many seconds <key> has not been used."]),
    ("REFCOUNT <key>", &["Show how many references the value of <key> has."]),
];

const PUBSUB: &[Entry] = &[
    ("CHANNELS [<pattern>]", &["Name the channels with subscribers that match (default: '*')."]),
    ("NUMPAT", &["Count the patterns that have subscribers."]),
    ("NUMSUB [<channel> ...]", &["Count the subscribers of each channel, those by pattern left aside."]),
    ("SHARDCHANNELS [<pattern>]", &["Name the shard channels with subscribers that match (default: '*')."]),
    ("SHARDNUMSUB [<shardchannel> ...]", &["Count the subscribers of each shard channel."]),
];

const SCRIPT: &[Entry] = &[
    ("DEBUG (YES|SYNC|NO)", &["Choose how the scripts of this connection are debugged."]),
    ("EXISTS <sha1> [<sha1> ...]", &["Tell which scripts are cached."]),
    (
        "FLUSH [ASYNC|SYNC]",
        &[
            "Empty the cache of scripts. Without a mode, lazyfree-lazy-user-flush decides:",
            "* ASYNC: free its memory in the background.",
            "* SYNC: free its memory before the reply.",
        ],
    ),
    ("KILL", &["Stop the script that runs."]),
    ("LOAD <script>", &["Cache a script; it is not run."]),
];

const SLOWLOG: &[Entry] = &[
    (
        "GET [<count>]",
        &[
            "Show the latest <count> entries (default: 10, -1: all). Each has a number, its",
            "time, its microseconds, the arguments, and the client's address and name.",
        ],
    ),
    ("LEN", &["Count the entries."]),
    ("RESET", &["Remove all entries."]),
];

const XGROUP: &[Entry] = &[
    (
        "CREATE <key> <groupname> <id|$> [option]",
        &[
            "Make a consumer group. Options are:",
            "* MKSTREAM",
            "  Make an empty stream if there is none.",
            "* ENTRIESREAD entries_read",
            "  Set how many entries the group counts as read; replication uses it.",
        ],
    ),
    ("CREATECONSUMER <key> <groupname> <consumer>", &["Make a consumer in a group."]),
    ("DELCONSUMER <key> <groupname> <consumer>", &["Remove a consumer from a group."]),
    ("DESTROY <key> <groupname>", &["Remove a group."]),
    (
        "SETID <key> <groupname> <id|$> [ENTRIESREAD entries_read]",
        &["Set up to which entry a group has read, and its count of entries read."],
    ),
];

const XINFO: &[Entry] = &[
    ("CONSUMERS <key> <groupname>", &["Describe the consumers of a group."]),
    ("GROUPS <key>", &["Describe the groups of a stream."]),
    ("STREAM <key> [FULL [COUNT <count>]", &["Describe a stream."]),
];
