//! Hot path: which command comes next, and its bytes. Nothing is allocated here per request.

use crate::{
    keys::mix,
    suite::{Order, Test},
    template::{Filler, Substitution, Template},
};

/// The commands of a test, ready to send; each thread has its own copy.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    /// The same commands in the same order, a batch at a time.
    Sequence {
        template: Template,
        /// Operation of each command of the sequence.
        operations: Vec<u16>,
    },
    /// Each command drawn by weight. The draw is a pure function of the batch's seed and the
    /// command's place in it, so that a reply finds its operation without a queue.
    Drawn { variants: Vec<Variant>, weight_total: u64 },
}

/// One command that may be drawn.
#[derive(Debug, Clone)]
pub(crate) struct Variant {
    template: Template,
    operation: u16,
    /// Sum of the weights up to this variant.
    weight_end: u64,
}

/// A value that a test is built with, and the commands that carry it.
#[derive(Debug)]
pub(crate) struct Form {
    /// The test with this value in its commands.
    pub(crate) test: Test,
    /// The value.
    pub(crate) value: Vec<u8>,
}

impl Source {
    /// Builds the commands of a test. `forms` holds the same test once per value size.
    pub(crate) fn new(forms: &[Form], pipeline: usize, substitution: Substitution) -> Source {
        let substitution_of = |form: &Form| Substitution {
            value_bytes: if substitution.value_bytes == 0 { 0 } else { form.value.len() },
            ..substitution
        };
        if let [form] = forms
            && form.test.order == Order::Sequence
        {
            let (mut commands, mut operations) = (Vec::new(), Vec::new());
            for (index, operation) in form.test.operations.iter().enumerate() {
                for _ in 0..operation.weight {
                    commands.push(operation.command.clone());
                    operations.push(operation_index(index));
                }
            }
            let template = Template::new(&commands, pipeline, substitution_of(form), &form.value);
            return Source::Sequence { template, operations };
        }
        let (mut variants, mut weight_total) = (Vec::new(), 0_u64);
        for form in forms {
            for (index, operation) in form.test.operations.iter().enumerate() {
                weight_total += u64::from(operation.weight);
                let command = [operation.command.clone()];
                variants.push(Variant {
                    template: Template::new(&command, 1, substitution_of(form), &form.value),
                    operation: operation_index(index),
                    weight_end: weight_total,
                });
            }
        }
        Source::Drawn { variants, weight_total }
    }

    /// Appends `count` commands of the batch that began at `position`, from its `first` on.
    #[inline]
    pub(crate) fn render(&mut self, position: u64, first: u32, count: u32, filler: &mut Filler<'_>, out: &mut Vec<u8>) {
        match self {
            Source::Sequence { template, .. } => {
                let length = template.sequence_length() as u64;
                let start = if length == 1 { 0 } else { (position + u64::from(first)) % length };
                template.render(as_index(start), count as usize, filler, out);
            }
            Source::Drawn { variants, weight_total } => {
                for index in first..first + count {
                    let at = draw(variants, *weight_total, position, index);
                    variants[at].template.render(0, 1, filler, out);
                }
            }
        }
    }

    /// The operation of the command at `index` of the batch that began at `position`.
    #[inline]
    pub(crate) fn operation(&self, position: u64, index: u32) -> usize {
        match self {
            Source::Sequence { operations, .. } if operations.len() <= 1 => 0,
            Source::Sequence { operations, .. } => {
                let at = (position + u64::from(index)) % operations.len() as u64;
                usize::from(operations[as_index(at)])
            }
            Source::Drawn { variants, weight_total } => {
                usize::from(variants[draw(variants, *weight_total, position, index)].operation)
            }
        }
    }

    /// Whether commands carry a `{tag}`.
    pub(crate) fn has_tags(&self) -> bool {
        match self {
            Source::Sequence { template, .. } => template.has_tags(),
            Source::Drawn { variants, .. } => variants.iter().any(|v| v.template.has_tags()),
        }
    }
}

#[inline]
fn draw(variants: &[Variant], weight_total: u64, position: u64, index: u32) -> usize {
    let point = mix(position ^ (u64::from(index) << 32)) % weight_total.max(1);
    variants.iter().position(|variant| point < variant.weight_end).unwrap_or(0)
}

fn operation_index(index: usize) -> u16 {
    u16::try_from(index).unwrap_or(u16::MAX)
}

/// An index below a length that was a `usize`.
#[inline]
fn as_index(value: u64) -> usize {
    usize::try_from(value).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::{
        keys::{Distribution, Keys},
        options::Options,
        random::AdditiveRandom,
        suite,
    };

    #[test]
    fn drawn_commands_and_their_operations_agree() {
        let test = suite::mix("set=1,get=3", &Options::default(), b"VXK").unwrap();
        let forms = [Form { test, value: b"VXK".to_vec() }];
        let mut source = Source::new(&forms, 8, Substitution::default());
        let mut keys = Keys::new(Distribution::Uniform, 0, 10, 1);
        let mut random = AdditiveRandom::new(1);
        let mut counts = [0_u32; 2];
        for position in 0..1_000 {
            for index in 0..4 {
                let mut filler = Filler { keys: &mut keys, random: &mut random, tags: &[], value_pool: &[] };
                let mut out = Vec::new();
                source.render(position, index, 1, &mut filler, &mut out);
                let operation = source.operation(position, index);
                let expected: &[u8] = if operation == 0 { b"$3\r\nSET" } else { b"$3\r\nGET" };
                assert_eq!(&out[4..11], expected);
                counts[operation] += 1;
            }
        }
        assert!((900..1_100).contains(&counts[0]), "{counts:?}");
    }
}
