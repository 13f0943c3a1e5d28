//! Random arguments: few keys, so that types collide; values on both sides of each threshold;
//! numbers at each border; times far from now, so that nothing expires while two servers differ
//! by a millisecond.

use fastrand::Rng;

/// The kind of a random argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slot {
    /// A key, mostly one of the family that the command belongs to.
    Key,
    /// A key of any family.
    AnyKey,
    /// A key of a sorted set whose scores are all equal.
    LexKey,
    /// A count of keys, then those keys; the count is wrong now and then.
    Keys,
    /// A string value.
    Value,
    /// A short string value or a number, for things that are stored as numbers.
    Short,
    /// An integer, often at a border.
    Int,
    /// A small positive count, rarely at a border.
    Count,
    /// An index into a list or string, often negative or past the end.
    Index,
    /// An index of at most 32 bits: Redis 7.2 cuts that of LSET.
    NearIndex,
    /// A float, often at a border.
    Float,
    /// Seconds, far from now or long past.
    Ttl,
    /// Milliseconds, far from now or long past.
    TtlMs,
    /// A unix time in seconds.
    At,
    /// A unix time in milliseconds.
    AtMs,
    /// A short timeout in seconds, or one that is refused.
    Timeout,
    /// A score of a sorted set.
    Score,
    /// A bound on scores.
    ScoreBound,
    /// A bound on members.
    LexBound,
    /// A member of a set or sorted set, or an element of a list.
    Member,
    /// A field of a hash.
    Field,
    /// `0` or `1`, rarely something else.
    Bit,
    /// A bit offset.
    BitOffset,
    /// A type of BITFIELD.
    BitType,
    /// A cursor of the SCAN family.
    Cursor,
    /// A glob pattern.
    Pattern,
    /// A pattern of SORT BY or GET.
    SortPattern,
    /// A database number.
    Db,
    /// A channel.
    Channel,
    /// Anything at all.
    Any,
    /// The DUMP of a key: the driver replaces it when it sends the command.
    Dump,
    /// The name of a type.
    Type,
    /// The name of a command.
    Command,
    /// A longitude and a latitude: two arguments.
    Place,
    /// A distance, rarely none.
    Length,
    /// The id of a new stream entry, mostly above all before it.
    NewId,
    /// The id of a stream entry, mostly one that may exist.
    OldId,
    /// An id above all before it. Redis 7.2 refuses to set a last ID below the greatest deleted one, 7.0 takes it.
    TopId,
    /// A bound of a range of stream ids.
    IdBound,
    /// A consumer group.
    Group,
    /// A consumer of a group.
    Consumer,
    /// An idle time that all pending entries have reached, or none.
    Idle,
    /// The text of a script without commands.
    Script,
    /// The digest of a script.
    Digest,
    /// Two keys and two ids, as they stand after STREAMS.
    Streams,
    /// A user of the access control list.
    User,
    /// A rule of ACL SETUSER.
    Rule,
}

impl Slot {
    /// The slot that a shape writes as `<name>`.
    pub fn named(name: &str) -> Option<Slot> {
        Some(match name {
            "key" => Slot::Key,
            "anykey" => Slot::AnyKey,
            "lexkey" => Slot::LexKey,
            "keys" => Slot::Keys,
            "value" => Slot::Value,
            "short" => Slot::Short,
            "int" => Slot::Int,
            "count" => Slot::Count,
            "index" => Slot::Index,
            "nearindex" => Slot::NearIndex,
            "float" => Slot::Float,
            "ttl" => Slot::Ttl,
            "ttlms" => Slot::TtlMs,
            "at" => Slot::At,
            "atms" => Slot::AtMs,
            "timeout" => Slot::Timeout,
            "score" => Slot::Score,
            "scorebound" => Slot::ScoreBound,
            "lexbound" => Slot::LexBound,
            "member" => Slot::Member,
            "field" => Slot::Field,
            "bit" => Slot::Bit,
            "bitoffset" => Slot::BitOffset,
            "bittype" => Slot::BitType,
            "cursor" => Slot::Cursor,
            "pattern" => Slot::Pattern,
            "sortpattern" => Slot::SortPattern,
            "db" => Slot::Db,
            "channel" => Slot::Channel,
            "any" => Slot::Any,
            "dump" => Slot::Dump,
            "type" => Slot::Type,
            "command" => Slot::Command,
            "place" => Slot::Place,
            "length" => Slot::Length,
            "newid" => Slot::NewId,
            "oldid" => Slot::OldId,
            "topid" => Slot::TopId,
            "idbound" => Slot::IdBound,
            "group" => Slot::Group,
            "consumer" => Slot::Consumer,
            "idle" => Slot::Idle,
            "script" => Slot::Script,
            "digest" => Slot::Digest,
            "streams" => Slot::Streams,
            "user" => Slot::User,
            "rule" => Slot::Rule,
            _ => return None,
        })
    }
}

/// Marks an argument that stands for the DUMP of the key after it.
pub const DUMP_MARK: &[u8] = b"\x01dump:";

/// Prefixes of the keys of each family; also the names of the families.
pub const FAMILIES: [&str; 11] =
    ["keys", "strings", "lists", "hashes", "sets", "zsets", "geos", "hlls", "streams", "scripts", "acl"];

/// Families whose commands are about keys and nothing else, and whose effects do not depend on the time.
pub const VALUES: [&str; 8] = ["keys", "strings", "lists", "hashes", "sets", "zsets", "geos", "hlls"];

const KEYS_PER_FAMILY: usize = 4;
const BORDERS: [&str; 22] = [
    "0",
    "1",
    "-1",
    "2",
    "10",
    "-2",
    "127",
    "128",
    "-128",
    "255",
    "32767",
    "32768",
    "2147483647",
    "-2147483648",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "-9223372036854775809",
    "18446744073709551615",
    "18446744073709551616",
];
/// Numbers that are none, as replacements: none of them is a small positive number, which could
/// become a short time to live or a long wait.
const NOT_NUMBERS: [&str; 14] = [
    "",
    " ",
    "abc",
    "+1",
    "01",
    " 1",
    "1 ",
    "-0",
    "0x10",
    "1.5",
    "nan",
    "--",
    "-9223372036854775809",
    "9223372036854775808",
];

/// A source of random arguments. Equal seeds give equal arguments.
#[derive(Debug)]
pub struct Vocabulary {
    random: Rng,
    family: usize,
    /// Differs for each time to live, so that GT and LT never meet a tie.
    times: u64,
    /// Grows with each new stream id.
    stream_ms: u64,
    int_members_only: bool,
}

impl Vocabulary {
    /// A source with this seed.
    pub fn new(seed: u64) -> Vocabulary {
        Vocabulary { random: Rng::with_seed(seed), family: 0, times: 0, stream_ms: 0, int_members_only: false }
    }

    /// Prepares for one command of a family (an index into [`FAMILIES`]).
    pub fn begin(&mut self, family: usize) {
        self.family = family;
        self.int_members_only = self.chance(40);
    }

    /// True in `percent` of 100 calls.
    pub fn chance(&mut self, percent: u8) -> bool {
        self.random.u8(0..100) < percent
    }

    /// A number below `limit`, or 0 when that is 0.
    pub fn below(&mut self, limit: usize) -> usize {
        self.random.usize(0..limit.max(1))
    }

    /// Puts a list in random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        self.random.shuffle(items);
    }

    fn pick(&mut self, words: &[&str]) -> Vec<u8> {
        words[self.below(words.len())].as_bytes().to_vec()
    }

    /// Appends a random argument (or several, for [`Slot::Keys`] and [`Slot::Place`]).
    pub fn emit(&mut self, slot: Slot, out: &mut Vec<Vec<u8>>) {
        if slot == Slot::Keys {
            let count = 1 + self.below(3);
            let said = if self.chance(6) { self.border() } else { count.to_string().into_bytes() };
            out.push(said);
            for _ in 0..count {
                out.push(self.key());
            }
            return;
        }
        if slot == Slot::Place {
            let (longitude, latitude) = self.place();
            out.extend([longitude, latitude]);
            return;
        }
        if slot == Slot::Streams {
            let count = 1 + self.below(2);
            for _ in 0..count {
                out.push(self.key());
            }
            for _ in 0..count {
                let id = self.argument(Slot::OldId);
                out.push(id);
            }
            return;
        }
        let argument = self.argument(slot);
        out.push(argument);
    }

    fn argument(&mut self, slot: Slot) -> Vec<u8> {
        match slot {
            Slot::Key | Slot::Keys => self.key(),
            Slot::AnyKey => self.any_key(),
            Slot::LexKey => self.pick(&["lex0", "lex1"]),
            Slot::Value => self.value(),
            Slot::Short => self.short(),
            Slot::Int => self.int(),
            Slot::Count => self.count(),
            Slot::Index => self.index(),
            Slot::NearIndex if self.chance(5) => self.pick(&NOT_NUMBERS),
            Slot::NearIndex => self.random.i64(-8..12).to_string().into_bytes(),
            Slot::Float => self.float(),
            Slot::Ttl => self.time(1_000, &["0", "-1", "-100"], "9223372036854775807"),
            Slot::TtlMs => self.time(1_000_000, &["0", "-1", "-100"], "9223372036854775807"),
            Slot::At => self.time(2_000_000_000, &["0", "1", "-1", "1000000000"], "9223372036854775"),
            Slot::AtMs => self.time(2_000_000_000_000, &["0", "1", "-1", "1000000000000"], "9223372036854775807"),
            Slot::Timeout => self.pick(&["0.01", "0.02", ".01", "-1", "abc", "1e400", "-0.1", ""]),
            Slot::Score => self.score(),
            Slot::ScoreBound => self.score_bound(),
            Slot::LexBound => self.lex_bound(),
            Slot::Member => self.member(),
            Slot::Field => self.field(),
            Slot::Bit if self.chance(90) => self.pick(&["0", "1"]),
            Slot::Bit => self.pick(&["2", "-1", "a", ""]),
            Slot::BitOffset => self.bit_offset(),
            Slot::BitType => self.bit_type(),
            Slot::Cursor if self.chance(90) => b"0".to_vec(),
            Slot::Cursor => self.pick(&["abc", "-1", "18446744073709551616", "1.5", ""]),
            Slot::Pattern => self.pick(&[
                "*", "*", "s*", "?1", "[ls]*", "[^s]*", "[a-m]?", "*:*", "\\*", "m*", "f*", "", "[", "s1", "**1",
                "*e*t*", "c*",
            ]),
            Slot::SortPattern => self.pick(&["w_*", "nosort", "hashes1->f*", "h*->f1", "#", "*", "w_*->f1", "lists*"]),
            Slot::Db if self.chance(90) => self.below(3).to_string().into_bytes(),
            Slot::Db => self.pick(&["15", "16", "-1", "abc", "99999999999", ""]),
            Slot::Channel => self.pick(&["c1", "c2", "c3", "", "c\r\n4"]),
            Slot::Any => self.any(),
            Slot::Dump => [DUMP_MARK, &self.any_key()].concat(),
            Slot::Type => self.pick(&["string", "list", "hash", "set", "zset", "stream", "none", "STRING", "xyz"]),
            Slot::Command => self.pick(super::shapes::COMMAND_NAMES),
            Slot::Place => self.place().0,
            Slot::Length => self.length(),
            Slot::NewId => self.new_id(),
            Slot::OldId => self.old_id(),
            Slot::TopId => {
                self.stream_ms += 1;
                format!("{}-9", self.stream_ms).into_bytes()
            }
            Slot::IdBound => self.id_bound(),
            Slot::Group => self.pick(&["g0", "g0", "g0", "g1", "g1", "none", ""]),
            Slot::Consumer => self.pick(&["c0", "c0", "c1", "c2", ""]),
            Slot::Idle => self.pick(&["0", "0", "0", "1000000000", "-1", "abc"]),
            Slot::Script => self.pick(super::scripts::PLAIN),
            Slot::Digest => super::scripts::digest(self).into_bytes(),
            Slot::Streams => self.key(),
            Slot::User => self.pick(&["u0", "u0", "u1", "u2", "nobody", ""]),
            Slot::Rule => self.pick(super::shapes::RULES),
        }
    }

    /// Never `*` alone: what each server makes of it is its own time.
    fn new_id(&mut self) -> Vec<u8> {
        match self.below(20) {
            0 => self.pick(&["0-0", "0-1", "0", "18446744073709551615-18446744073709551615", "18446744073709551616-1"]),
            1 => self.pick(&["", "-", "+", "abc", "1-", "-1", "1-x", "1-2-3", "$", ">", "5-**", "0-*"]),
            2..5 => format!("{}-*", self.stream_ms).into_bytes(),
            5 => {
                let sequence = self.below(5);
                format!("{}-{sequence}", self.stream_ms.saturating_sub(1)).into_bytes()
            }
            _ => {
                self.stream_ms += u64::from(self.random.u8(0..3));
                let sequence = self.below(9);
                format!("{}-{sequence}", self.stream_ms).into_bytes()
            }
        }
    }

    fn old_id(&mut self) -> Vec<u8> {
        let ms = self.stream_ms.saturating_sub(u64::from(self.random.u8(0..40)));
        match self.below(20) {
            0..3 => b"0".to_vec(),
            3 => self.pick(&["$", ">", "-", "+", "", "abc", "0-0", "18446744073709551615"]),
            4..8 => ms.to_string().into_bytes(),
            _ => format!("{ms}-{}", self.below(9)).into_bytes(),
        }
    }

    fn id_bound(&mut self) -> Vec<u8> {
        match self.below(12) {
            0..4 => b"-".to_vec(),
            4..8 => b"+".to_vec(),
            8 => self.pick(&["(", "(-", "(+", "(0-0", "[1", "(18446744073709551615-18446744073709551615", "x", ""]),
            9 => [b"(".as_slice(), &self.old_id()].concat(),
            _ => self.old_id(),
        }
    }

    fn key(&mut self) -> Vec<u8> {
        if self.chance(75) {
            return self.key_of(self.family);
        }
        self.any_key()
    }

    fn any_key(&mut self) -> Vec<u8> {
        match self.below(20) {
            0 => b"\x00k\r\n\xff".to_vec(),
            1 => b"{tag}a".to_vec(),
            2 => b"none".to_vec(),
            3 => Vec::new(),
            4..7 => format!("w_{}", self.below(6)).into_bytes(),
            _ => {
                let family = self.below(FAMILIES.len());
                self.key_of(family)
            }
        }
    }

    fn key_of(&mut self, family: usize) -> Vec<u8> {
        format!("{}{}", FAMILIES[family], self.below(KEYS_PER_FAMILY)).into_bytes()
    }

    fn border(&mut self) -> Vec<u8> {
        self.pick(&BORDERS)
    }

    fn int(&mut self) -> Vec<u8> {
        match self.below(10) {
            0..5 => (self.random.i64(-20..100)).to_string().into_bytes(),
            5 => self.random.i64(..).to_string().into_bytes(),
            6..9 => self.border(),
            _ => self.pick(&NOT_NUMBERS),
        }
    }

    fn count(&mut self) -> Vec<u8> {
        match self.below(12) {
            0..10 => self.random.i64(0..12).to_string().into_bytes(),
            10 => self.pick(&["-1", "-3", "-9223372036854775808", "9223372036854775807", "100000"]),
            _ => self.pick(&NOT_NUMBERS),
        }
    }

    fn index(&mut self) -> Vec<u8> {
        match self.below(12) {
            0..8 => self.random.i64(-8..12).to_string().into_bytes(),
            8 => self.random.i64(-300..300).to_string().into_bytes(),
            9..11 => self.border(),
            _ => self.pick(&NOT_NUMBERS),
        }
    }

    /// Nothing out of range: Redis remembers such a number (`errno`) and fails the next numeric SORT for it.
    fn float(&mut self) -> Vec<u8> {
        match self.below(10) {
            0..4 => format!("{}", f64::from(self.random.i32(-400..400)) / 8.0).into_bytes(),
            4 => format!("{}", self.random.f64()).into_bytes(),
            5 => self.int(),
            6 => self.pick(&["1e5", "1E-5", "3.0", "-0", "0.1", "5.0e3", "1e17", "1e308", "17179869184.5"]),
            7 => self.pick(&["inf", "-inf", "+inf", "Infinity", "nan", "-nan"]),
            _ => self.pick(&["", "abc", " 1", "1 ", "0x1p3", "1,5", "1e", "."]),
        }
    }

    /// Sums of scores must not depend on their order, so most are multiples of an eighth.
    fn score(&mut self) -> Vec<u8> {
        match self.below(24) {
            0..12 => self.random.i64(-10..20).to_string().into_bytes(),
            12..18 => format!("{}", f64::from(self.random.i32(-400..400)) / 8.0).into_bytes(),
            18 => self.pick(&["1e10", "123456789012", "-0", "1e20", "9007199254740993", "4503599627370497.5"]),
            19 => self.pick(&["inf", "+inf"]),
            20 => self.pick(&["-inf", "3.0", "0.1", "1e-7", "123456.789"]),
            _ => self.pick(&["nan", "", "abc", " 1", "1 ", "0x10", "5", "6", "7"]),
        }
    }

    fn score_bound(&mut self) -> Vec<u8> {
        match self.below(10) {
            0..2 => b"-inf".to_vec(),
            2..4 => b"+inf".to_vec(),
            4..6 => [b"(", self.random.i64(-10..20).to_string().as_bytes()].concat(),
            6 => self.pick(&["(inf", "(-inf", "inf", "nan", "(", "abc", "", "(abc", "[1"]),
            _ => self.score(),
        }
    }

    fn lex_bound(&mut self) -> Vec<u8> {
        match self.below(10) {
            0..2 => b"-".to_vec(),
            2..4 => b"+".to_vec(),
            4..6 => [b"[".as_slice(), &self.member()].concat(),
            6..8 => [b"(".as_slice(), &self.member()].concat(),
            8 => self.pick(&["[", "(", "-x", "+x", "", "abc", "[m"]),
            _ => self.pick(&["[m1", "(m9", "[1", "(5"]),
        }
    }

    /// Near one another, anywhere, at the edges of the map, or nowhere.
    fn place(&mut self) -> (Vec<u8>, Vec<u8>) {
        let degrees = |degrees: f64| degrees.to_string().into_bytes();
        match self.below(16) {
            0 => (self.pick(&["180", "-180", "0", "179.9999"]), self.pick(&["85", "-85.05112878", "0", "66.5"])),
            1 => (self.float(), self.float()),
            2..8 => (degrees(13.0 + self.random.f64() / 10.0), degrees(52.0 + self.random.f64() / 10.0)),
            8..12 => (degrees(f64::from(self.random.i8(-5..5))), degrees(f64::from(self.random.i8(-5..5)))),
            _ => (degrees(self.random.f64() * 360.0 - 180.0), degrees(self.random.f64() * 170.0 - 85.0)),
        }
    }

    fn length(&mut self) -> Vec<u8> {
        match self.below(20) {
            0 => self.float(),
            1 => self.pick(&["0", "-1", "inf", "1e300", "20038"]),
            _ => format!("{:.3}", 10_f64.powf(self.random.f64() * 5.0)).into_bytes(),
        }
    }

    fn member(&mut self) -> Vec<u8> {
        if self.int_members_only {
            return match self.below(12) {
                0 => self.border(),
                1 => self.random.i64(..).to_string().into_bytes(),
                2 => self.random.i64(-40_000..40_000).to_string().into_bytes(),
                _ => self.random.i64(-5..25).to_string().into_bytes(),
            };
        }
        match self.below(14) {
            0..6 => format!("m{}", self.below(12)).into_bytes(),
            6..9 => self.below(20).to_string().into_bytes(),
            9 => format!("m{}", self.below(400)).into_bytes(),
            _ => self.value(),
        }
    }

    fn field(&mut self) -> Vec<u8> {
        match self.below(12) {
            0..8 => format!("f{}", self.below(8)).into_bytes(),
            8 => format!("f{}", self.below(400)).into_bytes(),
            9 => self.below(20).to_string().into_bytes(),
            _ => self.value(),
        }
    }

    fn short(&mut self) -> Vec<u8> {
        match self.below(3) {
            0 => self.int(),
            1 => self.float(),
            _ => self.value(),
        }
    }

    fn value(&mut self) -> Vec<u8> {
        match self.below(20) {
            0..7 => self.random.i64(-50..200).to_string().into_bytes(),
            7 => self.border(),
            8..12 => format!("v{}", self.below(30)).into_bytes(),
            12 => Vec::new(),
            13 => b"\x00\xffbin\r\n".to_vec(),
            // embstr to raw, listpack to hash table, one-byte to two-byte listpack length,
            // the size at which a quicklist gives an element a node of its own.
            14 => self.sized(&[43, 44, 45, 46]),
            15 => self.sized(&[62, 63, 64, 65, 66]),
            16 => self.sized(&[20, 21, 127, 128, 253, 254, 255, 256]),
            17 if self.chance(8) => self.sized(&[4095, 4096, 8190, 8192, 9000, 16384]),
            17 => self.float(),
            _ => {
                let length = self.below(24);
                (0..length).map(|_| self.random.alphanumeric() as u8).collect()
            }
        }
    }

    fn sized(&mut self, lengths: &[usize]) -> Vec<u8> {
        let length = lengths[self.below(lengths.len())];
        vec![b'a' + self.random.u8(0..3); length]
    }

    fn bit_offset(&mut self) -> Vec<u8> {
        match self.below(10) {
            0..6 => self.below(100).to_string().into_bytes(),
            6 => self.below(3000).to_string().into_bytes(),
            7 => self.pick(&["#0", "#1", "#7", "#-1", "#abc", "#", "#4294967296"]),
            8 => self.pick(&["4294967296", "-1", "4294967295x", "9223372036854775807", "18446744073709551615"]),
            _ => self.pick(&["0", "7", "8", "63", "64"]),
        }
    }

    fn bit_type(&mut self) -> Vec<u8> {
        match self.below(10) {
            0..5 => self.pick(&["u1", "u2", "u8", "i8", "u16", "i16", "u31", "i32", "u63", "i64", "i5", "u4"]),
            5..9 => {
                let sign = if self.chance(50) { 'i' } else { 'u' };
                format!("{sign}{}", 1 + self.below(64)).into_bytes()
            }
            _ => self.pick(&["u64", "i65", "u0", "i0", "x8", "u", "", "8", "i-1"]),
        }
    }

    /// Mostly a time far away, made different from all before it.
    fn time(&mut self, base: u64, past: &[&str], limit: &str) -> Vec<u8> {
        match self.below(20) {
            0 => self.pick(past),
            1 => self.pick(&NOT_NUMBERS),
            2 => limit.as_bytes().to_vec(),
            _ => {
                self.times += 1;
                let far = base + base / 100 * (self.times * 7919 % 1009) + self.times % 7;
                far.to_string().into_bytes()
            }
        }
    }

    fn any(&mut self) -> Vec<u8> {
        match self.below(5) {
            0 => self.any_key(),
            1 => self.value(),
            2 => self.pick(&NOT_NUMBERS),
            3 => self.pick(&["NX", "XX", "GET", "COUNT", "LIMIT", "WITHSCORES", "STORE", "EX", "KEEPTTL", "0", "-1"]),
            _ => self.member(),
        }
    }

    /// Damages a command: drops, doubles, replaces or appends an argument, or changes the case
    /// of a word. `waits` says that a number in it may make the server wait.
    pub fn damage(&mut self, args: &mut Vec<Vec<u8>>, waits: bool) {
        let index = self.below(args.len());
        match self.below(8) {
            0 if args.len() > 1 && index > 0 => {
                args.remove(index);
            }
            1 => args.truncate(1 + self.below(args.len())),
            2 => {
                let any = self.pick(&NOT_NUMBERS);
                args.push(any);
            }
            3 => {
                let last = args[args.len() - 1].clone();
                args.push(last);
            }
            4 if index > 0 => args[index] = self.pick(&NOT_NUMBERS),
            5 if index > 0 && !waits => {
                args[index] = self.pick(&["-1", "-9223372036854775808", "9223372036854775807"]);
            }
            6 => args[0] = args[0].to_ascii_lowercase(),
            _ => args.iter_mut().for_each(|arg| {
                if arg.iter().all(u8::is_ascii_uppercase) {
                    arg.make_ascii_lowercase();
                }
            }),
        }
    }
}
