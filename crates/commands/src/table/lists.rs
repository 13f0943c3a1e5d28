//! Lists.

use super::docs::{Group, docs, double, integer, key_argument, one_of, string, token};
use super::id::CommandId::{
    Blmove, Blmpop, Blpop, Brpop, Brpoplpush, Lindex, Linsert, Llen, Lmove, Lmpop, Lpop, Lpos, Lpush, Lpushx, Lrange,
    Lrem, Lset, Ltrim, Rpop, Rpoplpush, Rpush, Rpushx,
};
use super::row::category::LIST;
use super::row::flag::{BLOCKING, DENYOOM, FAST, READONLY, WRITE};
use super::row::usage::{ACCESS, DELETE, INSERT, RO, RW, UPDATE};
use super::row::{counted_keys, key, key_range, row};
use super::spec::{CommandSpec, GetKeys};

pub(super) static ROWS: [CommandSpec; 22] = [
    row(Blmove, "blmove", 6, WRITE | DENYOOM | BLOCKING, LIST)
        .keys(&[key(1, RW | ACCESS | DELETE), key(2, RW | INSERT)])
        .docs(
            &docs(
                Group::List,
                "6.2.0",
                "O(1)",
                "Moves an element from one list to another, and waits for one if \
                     there is none.",
            )
            .arguments(&[
                key_argument("source", 0),
                key_argument("destination", 1),
                one_of("wherefrom", &[token("left", "LEFT"), token("right", "RIGHT")]),
                one_of("whereto", &[token("left", "LEFT"), token("right", "RIGHT")]),
                double("timeout"),
            ]),
        ),
    row(Blmpop, "blmpop", -5, WRITE | BLOCKING, LIST)
        .keys(&[counted_keys(2, RW | ACCESS | DELETE)])
        .get_keys(GetKeys::Counted { store_at: 0, count_at: 2, first: 3 })
        .docs(
            &docs(
                Group::List,
                "7.0.0",
                "O(N+M), N: keys, M: elements taken.",
                "Takes elements from the first list that has some, and waits if none has.",
            )
            .arguments(&[
                double("timeout"),
                integer("numkeys"),
                key_argument("key", 0).multiple(),
                one_of("where", &[token("left", "LEFT"), token("right", "RIGHT")]),
                integer("count").after("COUNT").optional(),
            ]),
        ),
    row(Blpop, "blpop", -3, WRITE | BLOCKING, LIST).keys(&[key_range(1, -2, RW | ACCESS | DELETE)]).docs(
        &docs(
            Group::List,
            "2.0.0",
            "O(N), N: keys.",
            "Takes the first element of the first list that has one, and waits if \
                     none has.",
        )
        .history(&[("6.0.0", "The timeout may have a fraction.")])
        .arguments(&[key_argument("key", 0).multiple(), double("timeout")]),
    ),
    row(Brpop, "brpop", -3, WRITE | BLOCKING, LIST).keys(&[key_range(1, -2, RW | ACCESS | DELETE)]).docs(
        &docs(
            Group::List,
            "2.0.0",
            "O(N), N: keys.",
            "Takes the last element of the first list that has one, and waits if \
                     none has.",
        )
        .history(&[("6.0.0", "The timeout may have a fraction.")])
        .arguments(&[key_argument("key", 0).multiple(), double("timeout")]),
    ),
    row(Brpoplpush, "brpoplpush", 4, WRITE | DENYOOM | BLOCKING, LIST)
        .keys(&[key(1, RW | ACCESS | DELETE), key(2, RW | INSERT)])
        .docs(
            &docs(
                Group::List,
                "2.2.0",
                "O(1)",
                "Moves the last element of a list to the front of another, and waits \
                     for one if there is none.",
            )
            .deprecated("6.2.0", "`BLMOVE` with the `RIGHT` and `LEFT` arguments")
            .history(&[("6.0.0", "The timeout may have a fraction.")])
            .arguments(&[key_argument("source", 0), key_argument("destination", 1), double("timeout")]),
        ),
    row(Lindex, "lindex", 3, READONLY, LIST).keys(&[key(1, RO | ACCESS)]).docs(
        &docs(
            Group::List,
            "1.0.0",
            "O(N), N: elements between the nearer end and the index; O(1) at both \
                     ends.",
            "Returns the element at an index.",
        )
        .arguments(&[key_argument("key", 0), integer("index")]),
    ),
    row(Linsert, "linsert", 5, WRITE | DENYOOM, LIST).keys(&[key(1, RW | INSERT)]).docs(
        &docs(
            Group::List,
            "2.2.0",
            "O(N), N: elements in front of the pivot; O(1) near the front.",
            "Puts an element before or behind another.",
        )
        .arguments(&[
            key_argument("key", 0),
            one_of("where", &[token("before", "BEFORE"), token("after", "AFTER")]),
            string("pivot"),
            string("element"),
        ]),
    ),
    row(Llen, "llen", 2, READONLY | FAST, LIST).keys(&[key(1, RO)]).docs(
        &docs(Group::List, "1.0.0", "O(1)", "Counts the elements of a list.").arguments(&[key_argument("key", 0)]),
    ),
    row(Lmove, "lmove", 5, WRITE | DENYOOM, LIST).keys(&[key(1, RW | ACCESS | DELETE), key(2, RW | INSERT)]).docs(
        &docs(Group::List, "6.2.0", "O(1)", "Moves an element from one list to another and returns it.").arguments(&[
            key_argument("source", 0),
            key_argument("destination", 1),
            one_of("wherefrom", &[token("left", "LEFT"), token("right", "RIGHT")]),
            one_of("whereto", &[token("left", "LEFT"), token("right", "RIGHT")]),
        ]),
    ),
    row(Lmpop, "lmpop", -4, WRITE, LIST)
        .keys(&[counted_keys(1, RW | ACCESS | DELETE)])
        .get_keys(GetKeys::Counted { store_at: 0, count_at: 1, first: 2 })
        .docs(
            &docs(
                Group::List,
                "7.0.0",
                "O(N+M), N: keys, M: elements taken.",
                "Takes elements from the first list that has some.",
            )
            .arguments(&[
                integer("numkeys"),
                key_argument("key", 0).multiple(),
                one_of("where", &[token("left", "LEFT"), token("right", "RIGHT")]),
                integer("count").after("COUNT").optional(),
            ]),
        ),
    row(Lpop, "lpop", -2, WRITE | FAST, LIST).keys(&[key(1, RW | ACCESS | DELETE)]).docs(
        &docs(Group::List, "1.0.0", "O(N), N: elements returned.", "Takes elements from the front of a list.")
            .history(&[("6.2.0", "The count.")])
            .arguments(&[key_argument("key", 0), integer("count").since("6.2.0").optional()]),
    ),
    row(Lpos, "lpos", -3, READONLY, LIST).keys(&[key(1, RO | ACCESS)]).docs(
        &docs(
            Group::List,
            "6.0.6",
            "O(N) on average, N: elements of the list; O(1) near an end or if \
                     MAXLEN is small.",
            "Finds where a list holds an element.",
        )
        .arguments(&[
            key_argument("key", 0),
            string("element"),
            integer("rank").after("RANK").optional(),
            integer("num-matches").after("COUNT").optional(),
            integer("len").after("MAXLEN").optional(),
        ]),
    ),
    row(Lpush, "lpush", -3, WRITE | DENYOOM | FAST, LIST).keys(&[key(1, RW | INSERT)]).docs(
        &docs(Group::List, "1.0.0", "O(1) for each element, O(N) for N elements.", "Puts elements in front of a list.")
            .history(&[("2.4.0", "Takes several elements.")])
            .arguments(&[key_argument("key", 0), string("element").multiple()]),
    ),
    row(Lpushx, "lpushx", -3, WRITE | DENYOOM | FAST, LIST).keys(&[key(1, RW | INSERT)]).docs(
        &docs(
            Group::List,
            "2.2.0",
            "O(1) for each element, O(N) for N elements.",
            "Puts elements in front of a list if it exists.",
        )
        .history(&[("4.0.0", "Takes several elements.")])
        .arguments(&[key_argument("key", 0), string("element").multiple()]),
    ),
    row(Lrange, "lrange", 4, READONLY, LIST).keys(&[key(1, RO | ACCESS)]).docs(
        &docs(
            Group::List,
            "1.0.0",
            "O(S+N), S: distance of the start from the front, or from the nearer \
                     end if the list is large, N: elements of the range.",
            "Returns a range of a list.",
        )
        .arguments(&[key_argument("key", 0), integer("start"), integer("stop")]),
    ),
    row(Lrem, "lrem", 4, WRITE, LIST).keys(&[key(1, RW | DELETE)]).docs(
        &docs(
            Group::List,
            "1.0.0",
            "O(N+M), N: elements of the list, M: elements removed.",
            "Removes elements that equal a value.",
        )
        .arguments(&[key_argument("key", 0), integer("count"), string("element")]),
    ),
    row(Lset, "lset", 4, WRITE | DENYOOM, LIST).keys(&[key(1, RW | UPDATE)]).docs(
        &docs(
            Group::List,
            "1.0.0",
            "O(N), N: elements of the list; O(1) at both ends.",
            "Replaces the element at an index.",
        )
        .arguments(&[key_argument("key", 0), integer("index"), string("element")]),
    ),
    row(Ltrim, "ltrim", 4, WRITE, LIST).keys(&[key(1, RW | DELETE)]).docs(
        &docs(Group::List, "1.0.0", "O(N), N: elements removed.", "Keeps a range of a list and removes the rest.")
            .arguments(&[key_argument("key", 0), integer("start"), integer("stop")]),
    ),
    row(Rpop, "rpop", -2, WRITE | FAST, LIST).keys(&[key(1, RW | ACCESS | DELETE)]).docs(
        &docs(Group::List, "1.0.0", "O(N), N: elements returned.", "Takes elements from the end of a list.")
            .history(&[("6.2.0", "The count.")])
            .arguments(&[key_argument("key", 0), integer("count").since("6.2.0").optional()]),
    ),
    row(Rpoplpush, "rpoplpush", 3, WRITE | DENYOOM, LIST)
        .keys(&[key(1, RW | ACCESS | DELETE), key(2, RW | INSERT)])
        .docs(
            &docs(
                Group::List,
                "1.2.0",
                "O(1)",
                "Moves the last element of a list to the front of another and returns it.",
            )
            .deprecated("6.2.0", "`LMOVE` with the `RIGHT` and `LEFT` arguments")
            .arguments(&[key_argument("source", 0), key_argument("destination", 1)]),
        ),
    row(Rpush, "rpush", -3, WRITE | DENYOOM | FAST, LIST).keys(&[key(1, RW | INSERT)]).docs(
        &docs(
            Group::List,
            "1.0.0",
            "O(1) for each element, O(N) for N elements.",
            "Puts elements at the end of a list.",
        )
        .history(&[("2.4.0", "Takes several elements.")])
        .arguments(&[key_argument("key", 0), string("element").multiple()]),
    ),
    row(Rpushx, "rpushx", -3, WRITE | DENYOOM | FAST, LIST).keys(&[key(1, RW | INSERT)]).docs(
        &docs(
            Group::List,
            "2.2.0",
            "O(1) for each element, O(N) for N elements.",
            "Puts elements at the end of a list if it exists.",
        )
        .history(&[("4.0.0", "Takes several elements.")])
        .arguments(&[key_argument("key", 0), string("element").multiple()]),
    ),
];
