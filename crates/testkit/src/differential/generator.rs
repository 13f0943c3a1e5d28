//! Random episodes: a few hundred commands on two connections, from an empty keyspace.

use super::grammar::Shape;
use super::rules::{
    Rule, asks_lex_order_of_scores, differs_when_queued, leaves_state_open, may_wait, rule_of, subscribes,
};
use super::scripts;
use super::shapes::{BLOCKING, PUBSUB, SHAPES};
use super::vocabulary::{FAMILIES, VALUES, Vocabulary};

/// One command of an episode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Which of the connections sends it.
    pub connection: usize,
    /// The command.
    pub args: Vec<Vec<u8>>,
    /// Whether replies are read before the next command is sent.
    pub ends_batch: bool,
    /// Whether the server is expected to hold the reply back until a later command.
    pub parks: bool,
}

/// A list of steps with the settings under which they run.
#[derive(Debug, Clone)]
pub struct Episode {
    /// Seed from which it was made.
    pub seed: u64,
    /// Protocol of the connections: 2 or 3.
    pub protocol: u8,
    /// Directives that are set first, on servers that know them.
    pub settings: Vec<(&'static str, &'static str)>,
    /// The commands.
    pub steps: Vec<Step>,
}

/// Makes episodes.
#[derive(Debug)]
pub struct Generator {
    families: Vec<Family>,
    /// What scripts run: commands of every family of values and of streams.
    inner: Vec<Family>,
    pubsub: Vec<Shape>,
    blocking: Vec<(Shape, Shape)>,
    protocol: Option<u8>,
    /// Whether the episodes are for a proxy.
    pub(super) is_proxied: bool,
}

#[derive(Debug)]
struct Family {
    index: usize,
    shapes: Vec<Shape>,
    /// One entry per unit of weight: an index into `shapes`.
    lots: Vec<usize>,
}

/// Steps of one episode.
const EPISODE_STEPS: usize = 400;

impl Generator {
    /// A generator over these families (all of [`FAMILIES`] when empty) and one protocol, or
    /// both by turns.
    ///
    /// # Errors
    /// When a family is unknown.
    pub fn new(families: &[String], protocol: Option<u8>) -> Result<Generator, String> {
        for name in families {
            if !FAMILIES.contains(&name.as_str()) {
                return Err(format!("no family {name:?}; choose from {}", FAMILIES.join(", ")));
            }
        }
        let wanted = |name: &str| families.is_empty() || families.iter().any(|family| family == name);
        let families = (0..FAMILIES.len()).filter(|&index| wanted(FAMILIES[index])).map(Family::new).collect();
        let inner = (0..=VALUES.len()).map(Family::new).collect();
        Ok(Generator {
            families,
            inner,
            pubsub: PUBSUB.iter().map(|text| Shape::parse(text)).collect(),
            blocking: BLOCKING.iter().map(|(first, second)| (Shape::parse(first), Shape::parse(second))).collect(),
            protocol,
            is_proxied: false,
        })
    }

    /// The episode of a seed.
    pub fn episode(&self, seed: u64) -> Episode {
        let mut vocabulary = Vocabulary::new(seed);
        let protocol = self.protocol.unwrap_or(if seed.is_multiple_of(2) { 2 } else { 3 });
        let settings = settings(&mut vocabulary);
        let mut steps = Vec::new();
        while steps.len() < EPISODE_STEPS {
            let connection = usize::from(vocabulary.chance(25));
            let length = 1 + vocabulary.below(24);
            match vocabulary.below(100) {
                0..8 => self.transaction(&mut vocabulary, connection, &mut steps),
                8..10 => self.subscription(&mut vocabulary, &mut steps),
                10 => self.blocked(&mut vocabulary, &mut steps),
                _ => {
                    for _ in 0..length {
                        let args = self.command(&mut vocabulary);
                        steps.push(Step { connection, args, ends_batch: false, parks: false });
                    }
                    end_batch(&mut steps);
                }
            }
        }
        let steps = if self.is_proxied { super::proxied::fit(steps) } else { steps };
        Episode { seed, protocol, settings, steps }
    }

    fn command(&self, vocabulary: &mut Vocabulary) -> Vec<Vec<u8>> {
        loop {
            let family = &self.families[vocabulary.below(self.families.len())];
            let mut args = if FAMILIES[family.index] == "scripts" && vocabulary.chance(70) {
                let first = self.inner_command(vocabulary);
                let second = self.inner_command(vocabulary);
                scripts::wrap(vocabulary, first, second)
            } else {
                family.emit(vocabulary)
            };
            // The members of a lex key share one score: what Redis answers otherwise is undefined.
            let keeps_one_score = args.iter().skip(1).any(|key| key.starts_with(b"lex"));
            if vocabulary.chance(7) && !keeps_one_score {
                let waits = may_wait(&args);
                vocabulary.damage(&mut args, waits);
            }
            if is_usable(&args) && scripts::inner(&args).is_none_or(is_usable_within) {
                return args;
            }
        }
    }

    /// A command that a script runs: none whose effect is open.
    fn inner_command(&self, vocabulary: &mut Vocabulary) -> Vec<Vec<u8>> {
        loop {
            let family = &self.inner[vocabulary.below(self.inner.len())];
            let args = family.emit(vocabulary);
            if is_usable(&args) && is_usable_within(&args) {
                return args;
            }
        }
    }

    fn transaction(&self, vocabulary: &mut Vocabulary, connection: usize, steps: &mut Vec<Step>) {
        let mut add = |connection: usize, args: Vec<Vec<u8>>| {
            steps.push(Step { connection, args, ends_batch: false, parks: false });
        };
        let watched = vocabulary.chance(50);
        if watched {
            let mut args = vec![b"WATCH".to_vec()];
            Shape::parse("<anykey>+").emit(vocabulary, &mut args);
            add(connection, args);
            if vocabulary.chance(50) {
                add(1 - connection, self.command(vocabulary));
            }
            if vocabulary.chance(10) {
                add(connection, vec![b"UNWATCH".to_vec()]);
            }
        }
        add(connection, vec![b"MULTI".to_vec()]);
        for _ in 0..1 + vocabulary.below(8) {
            let args = match vocabulary.below(40) {
                0 => vec![b"MULTI".to_vec()],
                1 => vec![b"WATCH".to_vec(), b"a".to_vec()],
                _ => self.command(vocabulary),
            };
            if !matches!(rule_of(&args), Rule::Pop | Rule::Claim) && !differs_when_queued(&args) {
                add(connection, args);
            }
        }
        let end: &[&str] = match vocabulary.below(12) {
            0 => &["DISCARD"],
            1 => &["EXEC", "EXEC"],
            2 => &["DISCARD", "DISCARD"],
            _ => &["EXEC"],
        };
        for word in end {
            add(connection, vec![word.as_bytes().to_vec()]);
        }
        end_batch(steps);
    }

    fn subscription(&self, vocabulary: &mut Vocabulary, steps: &mut Vec<Step>) {
        for _ in 0..1 + vocabulary.below(4) {
            let mut args = Vec::new();
            self.pubsub[vocabulary.below(self.pubsub.len())].emit(vocabulary, &mut args);
            steps.push(Step { connection: 1, args, ends_batch: true, parks: false });
            if vocabulary.chance(60) {
                let mut args = Vec::new();
                Shape::parse("(PUBLISH|PUBLISH|SPUBLISH) <channel> <value>").emit(vocabulary, &mut args);
                steps.push(Step { connection: 0, args, ends_batch: true, parks: false });
            }
        }
        if vocabulary.chance(70) {
            for name in ["UNSUBSCRIBE", "PUNSUBSCRIBE", "SUNSUBSCRIBE"] {
                let args = vec![name.as_bytes().to_vec()];
                steps.push(Step { connection: 1, args, ends_batch: true, parks: false });
            }
        }
    }

    fn blocked(&self, vocabulary: &mut Vocabulary, steps: &mut Vec<Step>) {
        let (waiting, serving) = &self.blocking[vocabulary.below(self.blocking.len())];
        for (shape, connection, parks) in [(waiting, 1, true), (serving, 0, false)] {
            let mut args = Vec::new();
            shape.emit(vocabulary, &mut args);
            steps.push(Step { connection, args, ends_batch: true, parks });
        }
    }
}

impl Family {
    fn new(index: usize) -> Family {
        let shapes = SHAPES[index].iter().map(|(_, text)| Shape::parse(text)).collect();
        let mut lots = Vec::new();
        for (shape, (weight, _)) in SHAPES[index].iter().enumerate() {
            lots.extend(std::iter::repeat_n(shape, usize::from(*weight)));
        }
        Family { index, shapes, lots }
    }

    fn emit(&self, vocabulary: &mut Vocabulary) -> Vec<Vec<u8>> {
        vocabulary.begin(self.index);
        let shape = &self.shapes[self.lots[vocabulary.below(self.lots.len())]];
        let mut args = Vec::new();
        shape.emit(vocabulary, &mut args);
        args
    }
}

/// Whether both servers must come to the same.
fn is_usable(args: &[Vec<u8>]) -> bool {
    let is_open = args.is_empty() || leaves_state_open(args) || asks_lex_order_of_scores(args);
    !is_open && !subscribes(args) && !waits_long(args)
}

/// Whether that holds for a command of a script, too, whose effects nobody can mend afterwards. What says how the
/// server is set up is no script's business.
fn is_usable_within(args: &[Vec<u8>]) -> bool {
    let plain = [
        Rule::Exact,
        Rule::Unordered,
        Rule::UnorderedPairs,
        Rule::Kind,
        Rule::Near(1),
        Rule::Near(2_000),
        Rule::Length,
        Rule::Times,
    ];
    let name = args.first().map(|name| name.to_ascii_uppercase()).unwrap_or_default();
    let is_of_server = matches!(
        name.as_slice(),
        b"CONFIG"
            | b"DEBUG"
            | b"CLIENT"
            | b"COMMAND"
            | b"LATENCY"
            | b"SLOWLOG"
            | b"MEMORY"
            | b"HELLO"
            | b"FUNCTION"
            | b"SCRIPT"
            | b"ACL"
            | b"WAIT"
            | b"TIME"
            | b"LPOS"
    );
    let is_help = args.get(1).is_some_and(|word| word.eq_ignore_ascii_case(b"HELP"));
    plain.contains(&rule_of(args)) && !is_of_server && !is_help && !may_wait(args) && !differs_when_queued(args)
}

fn end_batch(steps: &mut [Step]) {
    if let Some(last) = steps.last_mut() {
        last.ends_batch = true;
    }
}

/// A damaged blocking command may have got a timeout that is no short one.
fn waits_long(args: &[Vec<u8>]) -> bool {
    let name = args[0].to_ascii_uppercase();
    if !may_wait(args) || name == b"WAIT" {
        return false;
    }
    let timeout = if name == b"BLMPOP" || name == b"BZMPOP" { args.get(1) } else { args.last() };
    // strtold reads hexadecimal numbers, too.
    let is_hexadecimal = |text: &[u8]| text.starts_with(b"0x") || text.starts_with(b"0X");
    timeout.is_some_and(|text| is_hexadecimal(text))
        || timeout
            .and_then(|text| std::str::from_utf8(text).ok()?.trim().parse::<f64>().ok())
            .is_some_and(|seconds| !(seconds < 0.0 || (0.001..=0.5).contains(&seconds)))
}

fn settings(vocabulary: &mut Vocabulary) -> Vec<(&'static str, &'static str)> {
    let mut settings = vec![
        ("hash-max-listpack-entries", "128"),
        ("hash-max-listpack-value", "64"),
        ("zset-max-listpack-entries", "128"),
        ("zset-max-listpack-value", "64"),
        ("set-max-intset-entries", "512"),
        ("set-max-listpack-entries", "128"),
        ("set-max-listpack-value", "64"),
        ("list-max-listpack-size", "-2"),
        ("list-compress-depth", "0"),
        ("hll-sparse-max-bytes", "3000"),
        ("stream-node-max-entries", "100"),
        ("stream-node-max-bytes", "4096"),
    ];
    // Small thresholds make every command meet both encodings.
    let small = ["4", "8", "4", "8", "4", "4", "8", "4", "1", "40", "3", "90"];
    if vocabulary.chance(60) {
        for (setting, value) in settings.iter_mut().zip(small) {
            if vocabulary.chance(60) {
                setting.1 = value;
            }
        }
    }
    settings
}
