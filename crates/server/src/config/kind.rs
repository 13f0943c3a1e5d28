//! What kinds of value a directive can hold: how each is parsed, bounded and printed.
//!
//! The texts of the errors are Redis's, since tools and test suites compare them.

use super::special;

/// The parsed value of a directive, on its way between text and the typed field of
/// [`Config`](super::Config).
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `yes` or `no`.
    Bool(bool),
    /// Any number; wide enough for every signed and unsigned 64-bit field.
    Number(i128),
    /// Free text, byte for byte.
    Text(Vec<u8>),
    /// The number of one enum word, or the union of several flag words.
    Word(u32),
    /// `save`: pairs of seconds and changes.
    SavePoints(Vec<special::SavePoint>),
    /// `client-output-buffer-limit`.
    BufferLimits(special::BufferLimits),
    /// `oom-score-adj-values`.
    OomScores([i32; 3]),
    /// `notify-keyspace-events`.
    Events(special::EventClasses),
    /// `bind`: the addresses as written.
    Addresses(Vec<Vec<u8>>),
    /// `replicaof`.
    Primary(Option<special::PrimaryAddress>),
    /// `latency-tracking-info-percentiles`.
    Percentiles(Vec<f64>),
}

/// How a number is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A decimal integer.
    Plain,
    /// Bytes, with an optional unit such as `kb` or `g`.
    Memory,
    /// As `Memory`, or a percentage `n%`, kept as the negative number.
    MemoryOrPercent,
    /// An octal integer, as file modes are.
    Octal,
}

/// Checks a text value beyond its being text; the error is the text Redis answers with.
pub(super) type TextCheck = fn(&[u8]) -> Result<(), &'static str>;

/// Checks a parsed flag union; the error is the text Redis answers with.
pub(super) type WordCheck = fn(u32) -> Result<(), &'static str>;

/// The words of an enum directive with their numbers; the first word of a number is the one printed.
pub type Words = &'static [(&'static str, u32)];

/// How a directive is parsed and printed.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// `yes` or `no`.
    Bool,
    /// A number between two bounds, both included.
    Number {
        /// The lowest value allowed.
        min: i128,
        /// The highest value allowed.
        max: i128,
        /// How it is written.
        unit: Unit,
    },
    /// Free text.
    Text {
        /// Whether an empty text means "not set", so that a rewritten file leaves the line out.
        empty_is_unset: bool,
        /// A further check.
        check: Option<TextCheck>,
    },
    /// Exactly one of some words, in any case.
    Enum(Words),
    /// One or more of some words.
    Flags(Words, WordCheck),
    /// `dir`: setting it changes the working directory of the process.
    Directory,
    /// `save`.
    SavePoints,
    /// `client-output-buffer-limit`.
    BufferLimits,
    /// `oom-score-adj-values`.
    OomScores,
    /// `notify-keyspace-events`.
    Events,
    /// `bind`.
    Addresses,
    /// `replicaof`.
    Primary,
    /// `latency-tracking-info-percentiles`.
    Percentiles,
}

impl Kind {
    /// Whether the directive may have any number of arguments.
    #[must_use]
    pub fn is_multi_argument(self) -> bool {
        matches!(
            self,
            Kind::Flags(..)
                | Kind::SavePoints
                | Kind::BufferLimits
                | Kind::OomScores
                | Kind::Addresses
                | Kind::Primary
                | Kind::Percentiles
        )
    }

    /// Parses the arguments of a directive.
    ///
    /// `current` is the present value, for the directives of which a line sets only a part. The
    /// error is the text a client or the starting user gets to see.
    pub fn parse(self, arguments: &[Vec<u8>], current: &Value) -> Result<Value, String> {
        let first = arguments.first().map_or(&b""[..], Vec::as_slice);
        let parsed = match self {
            Kind::Bool => Value::Bool(parse_bool(first)?),
            Kind::Number { min, max, unit } => Value::Number(parse_number(first, min, max, unit)?),
            Kind::Text { check, .. } => {
                if let Some(check) = check {
                    check(first)?;
                }
                Value::Text(first.to_vec())
            }
            Kind::Directory => {
                exactly(arguments, 1)?;
                Value::Text(first.to_vec())
            }
            Kind::Enum(words) => {
                let [word] = arguments else {
                    return Err(unknown_word(words));
                };
                Value::Word(find_word(words, word).ok_or_else(|| unknown_word(words))?)
            }
            Kind::Flags(words, check) => {
                if arguments.is_empty() {
                    return Err(unknown_word(words));
                }
                let mut union = 0;
                for word in arguments {
                    union |= find_word(words, word).ok_or_else(|| unknown_word(words))?;
                }
                check(union)?;
                Value::Word(union)
            }
            Kind::SavePoints => Value::SavePoints(special::parse_save_points(arguments)?),
            Kind::BufferLimits => {
                let Value::BufferLimits(current) = current else {
                    return Err("wrong number of arguments".into());
                };
                Value::BufferLimits(special::parse_buffer_limits(arguments, *current)?)
            }
            Kind::OomScores => {
                exactly(arguments, 3)?;
                Value::OomScores(special::parse_oom_scores(arguments)?)
            }
            Kind::Events => {
                exactly(arguments, 1)?;
                Value::Events(special::EventClasses::parse(first)?)
            }
            Kind::Addresses => Value::Addresses(special::parse_addresses(arguments)?),
            Kind::Primary => {
                exactly(arguments, 2)?;
                Value::Primary(special::parse_primary(arguments)?)
            }
            Kind::Percentiles => Value::Percentiles(special::parse_percentiles(arguments)?),
        };
        Ok(parsed)
    }

    /// The value as CONFIG GET prints it.
    #[must_use]
    pub fn print(self, value: &Value) -> Vec<u8> {
        match value {
            Value::Bool(true) => b"yes".to_vec(),
            Value::Bool(false) => b"no".to_vec(),
            Value::Number(number) => self.print_number(*number).into_bytes(),
            Value::Text(text) => text.clone(),
            Value::Word(word) => match self {
                Kind::Enum(words) => word_name(words, *word).as_bytes().to_vec(),
                Kind::Flags(words, _) => flag_names(words, *word).into_bytes(),
                _ => b"unknown".to_vec(),
            },
            Value::SavePoints(points) => special::print_save_points(points).into_bytes(),
            Value::BufferLimits(limits) => limits.print().into_bytes(),
            Value::OomScores(scores) => special::print_oom_scores(scores).into_bytes(),
            Value::Events(classes) => classes.print().into_bytes(),
            Value::Addresses(addresses) => addresses.join(&b' '),
            Value::Primary(None) => Vec::new(),
            Value::Primary(Some(primary)) => primary.print(),
            Value::Percentiles(percentiles) => special::print_percentiles(percentiles).into_bytes(),
        }
    }

    fn print_number(self, number: i128) -> String {
        match self {
            Kind::Number { unit: Unit::Octal, .. } => format!("{number:o}"),
            Kind::Number { unit: Unit::MemoryOrPercent, .. } if number < 0 => format!("{}%", -number),
            _ => number.to_string(),
        }
    }
}

/// Parses `yes` or `no`, in any case.
pub fn parse_bool(text: &[u8]) -> Result<bool, &'static str> {
    if text.eq_ignore_ascii_case(b"yes") {
        Ok(true)
    } else if text.eq_ignore_ascii_case(b"no") {
        Ok(false)
    } else {
        Err("argument must be 'yes' or 'no'")
    }
}

/// Parses an amount of memory: digits and an optional unit, in any case. `k`, `m` and `g` are powers
/// of 1000; `kb`, `mb` and `gb` powers of 1024. `None`: not an amount, or over 64 bits.
#[must_use]
pub fn parse_memory(text: &[u8]) -> Option<u64> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (number, unit) = text.split_at(digits);
    let factor: u64 = match unit.to_ascii_lowercase().as_slice() {
        b"" | b"b" => 1,
        b"k" => 1_000,
        b"kb" => 1 << 10,
        b"m" => 1_000_000,
        b"mb" => 1 << 20,
        b"g" => 1_000_000_000,
        b"gb" => 1 << 30,
        _ => return None,
    };
    // No digits at all count as zero, as they do for Redis.
    let number = if number.is_empty() { 0 } else { decimal::<u64>(number)? };
    number.checked_mul(factor)
}

/// Parses a whole decimal number in plain form: no blanks, no plus sign, no leading zeros.
pub(super) fn plain_integer(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    match digits {
        [] => return None,
        [b'0', ..] if text.len() > 1 => return None,
        digits if !digits.iter().all(u8::is_ascii_digit) => return None,
        _ => {}
    }
    decimal::<i64>(text)
}

/// Parses a number as C's `strtoll` does with base 10 when nothing may follow it: leading blanks, a
/// sign and leading zeros are fine, an empty text is zero.
pub(super) fn lenient_integer(text: &[u8]) -> Option<i64> {
    let start = text.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    let number = text.get(start..).unwrap_or_default();
    if text.is_empty() { Some(0) } else { decimal::<i64>(number) }
}

fn decimal<T: std::str::FromStr>(text: &[u8]) -> Option<T> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

fn parse_number(text: &[u8], min: i128, max: i128, unit: Unit) -> Result<i128, String> {
    let parsed = match unit {
        Unit::Plain => plain_integer(text).map(i128::from),
        Unit::Memory => parse_memory(text).map(i128::from),
        Unit::MemoryOrPercent => parse_memory(text).map(i128::from).or_else(|| {
            let percent = plain_integer(text.strip_suffix(b"%")?)?;
            (percent >= 0).then(|| -i128::from(percent))
        }),
        Unit::Octal => {
            std::str::from_utf8(text).ok().and_then(|text| i64::from_str_radix(text, 8).ok()).map(i128::from)
        }
    };
    let number = parsed.ok_or(match unit {
        Unit::Plain => "argument couldn't be parsed into an integer",
        Unit::Memory => "argument must be a memory value",
        Unit::MemoryOrPercent => "argument must be a memory or percent value",
        Unit::Octal => "argument couldn't be parsed as an octal number",
    })?;
    let is_percent = unit == Unit::MemoryOrPercent && number < 0;
    if is_percent && number < min {
        return Err(format!("percentage argument must be less or equal to {}", -min));
    }
    if number < min || number > max {
        return Err(match unit {
            Unit::Octal => format!("argument must be between {min:o} and {max:o} inclusive"),
            _ => format!("argument must be between {min} and {max} inclusive"),
        });
    }
    Ok(number)
}

fn exactly(arguments: &[Vec<u8>], count: usize) -> Result<(), &'static str> {
    if arguments.len() == count { Ok(()) } else { Err("wrong number of arguments") }
}

fn find_word(words: Words, text: &[u8]) -> Option<u32> {
    words.iter().find(|(name, _)| text.eq_ignore_ascii_case(name.as_bytes())).map(|(_, number)| *number)
}

fn unknown_word(words: Words) -> String {
    let names: Vec<&str> = words.iter().map(|(name, _)| *name).collect();
    format!("argument(s) must be one of the following: {}", names.join(", "))
}

/// The first word of `number`.
#[must_use]
pub(super) fn word_name(words: Words, number: u32) -> &'static str {
    words.iter().find(|(_, candidate)| *candidate == number).map_or("unknown", |(name, _)| name)
}

fn flag_names(words: Words, union: u32) -> String {
    if let Some((name, _)) = words.iter().find(|(_, flag)| *flag == union) {
        return (*name).to_owned();
    }
    let names: Vec<&str> =
        words.iter().filter(|(_, flag)| *flag != 0 && union & flag == *flag).map(|(name, _)| *name).collect();
    names.join(" ")
}

/// A Rust type that a directive's field can have: converts to and from [`Value`].
///
/// `from_value` is only called with a value that the directive's own [`Kind`] parsed; a value of
/// another shape would be a mistake in the table, which a test excludes, and gives `None`.
pub(super) trait Field: Sized {
    /// The field's value as a [`Value`].
    fn to_value(&self) -> Value;
    /// The field from a [`Value`] of the right shape.
    fn from_value(value: Value) -> Option<Self>;
}

impl Field for bool {
    fn to_value(&self) -> Value {
        Value::Bool(*self)
    }
    fn from_value(value: Value) -> Option<Self> {
        if let Value::Bool(flag) = value { Some(flag) } else { None }
    }
}

macro_rules! number_fields {
    ($($type:ty),*) => {$(
        impl Field for $type {
            fn to_value(&self) -> Value {
                // Lossless: every field type fits in 128 bits, also `usize`, which has no `From`.
                #[allow(clippy::cast_lossless)]
                Value::Number(*self as i128)
            }
            fn from_value(value: Value) -> Option<Self> {
                if let Value::Number(number) = value { Self::try_from(number).ok() } else { None }
            }
        }
    )*};
}
number_fields!(u16, i32, u32, i64, u64, usize);

macro_rules! shaped_fields {
    ($($type:ty => $variant:ident),* $(,)?) => {$(
        impl Field for $type {
            fn to_value(&self) -> Value {
                Value::$variant(self.clone())
            }
            fn from_value(value: Value) -> Option<Self> {
                if let Value::$variant(inner) = value { Some(inner) } else { None }
            }
        }
    )*};
}
shaped_fields! {
    Vec<u8> => Text,
    Vec<special::SavePoint> => SavePoints,
    special::BufferLimits => BufferLimits,
    [i32; 3] => OomScores,
    special::EventClasses => Events,
    Vec<Vec<u8>> => Addresses,
    Option<special::PrimaryAddress> => Primary,
    Vec<f64> => Percentiles,
}
