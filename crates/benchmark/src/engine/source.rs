//! Hot path: which command comes next, and its bytes. Nothing is allocated here per request.

use std::{ops::Range, sync::Arc};

use crate::{
    keys::{Distribution, Keys, mix},
    replay::Log,
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
    /// Each command chosen for itself. The choice is a pure function of the batch's position and the command's place in
    /// it, so that a reply finds its operation without a queue.
    Drawn { groups: Vec<Group>, weight_total: u64, order: Order },
    /// Recorded commands. Positions are places in the record; a client goes through a range of them.
    Recorded(Arc<Log>),
}

/// An operation with the forms that its command has.
#[derive(Debug, Clone)]
pub(crate) struct Group {
    operation: u16,
    /// Sum of the weights up to this operation.
    weight_end: u64,
    templates: Vec<Template>,
    /// Numbers of its own.
    keys: Option<Keys>,
}

impl Source {
    /// Builds the commands of a test. Operations without key settings of their own take the test's numbers.
    pub(crate) fn new(test: &Test, pipeline: usize, substitution: Substitution, seed: u32) -> Source {
        let substitution_of = |value: &[u8]| Substitution {
            value_bytes: if substitution.value_bytes == 0 { 0 } else { value.len() },
            ..substitution
        };
        let names = test.operation_names();
        let index_of = |name: &str| {
            let index = names.iter().position(|known| known == name).unwrap_or(0);
            u16::try_from(index).unwrap_or(u16::MAX)
        };
        let is_plain = test.operations.iter().all(|operation| operation.forms.len() == 1 && operation.keys.is_none());
        if test.order == Order::Sequence && is_plain {
            let (mut commands, mut operations) = (Vec::new(), Vec::new());
            let mut value: &[u8] = &[];
            for operation in &test.operations {
                for form in &operation.forms {
                    value = &form.value;
                    for _ in 0..operation.weight {
                        commands.push(form.command.clone());
                        operations.push(index_of(&operation.name));
                    }
                }
            }
            let template = Template::new(&commands, pipeline, substitution_of(value), value);
            return Source::Sequence { template, operations };
        }
        let (mut groups, mut weight_total) = (Vec::new(), 0_u64);
        for operation in &test.operations {
            weight_total += u64::from(operation.weight);
            let own = operation.keys.as_ref();
            let templates = operation.forms.iter().map(|form| {
                let mut substitution = substitution_of(&form.value);
                substitution.numbers |= own.is_some_and(|keys| keys.span > 0);
                Template::new(std::slice::from_ref(&form.command), 1, substitution, &form.value)
            });
            let seed = seed.wrapping_add(u32::from(index_of(&operation.name)) << 16);
            groups.push(Group {
                operation: index_of(&operation.name),
                weight_end: weight_total,
                templates: templates.collect(),
                keys: own
                    .map(|own| Keys::new(own.distribution.unwrap_or(Distribution::Uniform), own.low, own.span, seed)),
            });
        }
        Source::Drawn { groups, weight_total, order: test.order }
    }

    /// Nothing to send.
    pub(crate) fn empty() -> Source {
        Source::Drawn { groups: Vec::new(), weight_total: 0, order: Order::Sequence }
    }

    /// The copy of another thread: its random numbers differ.
    pub(crate) fn for_thread(&self, seed: u32) -> Source {
        let mut source = self.clone();
        source.each_keys(|keys| *keys = keys.for_thread(seed));
        source
    }

    /// Does something with the key numbers that operations have of their own.
    pub(crate) fn each_keys(&mut self, mut change: impl FnMut(&mut Keys)) {
        if let Source::Drawn { groups, .. } = self {
            groups.iter_mut().filter_map(|group| group.keys.as_mut()).for_each(&mut change);
        }
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
            Source::Drawn { groups, weight_total, order } => {
                for index in first..first + count {
                    let at = draw(groups, *weight_total, *order, position, index);
                    let Some(Group { templates, keys, .. }) = groups.get_mut(at) else { continue };
                    let form = match templates.len() {
                        1 => 0,
                        count => as_index(mix(!position ^ (u64::from(index) << 24)) % count.max(1) as u64),
                    };
                    if let Some(keys) = keys {
                        let asked = filler.asked.as_deref_mut();
                        let mut own = Filler { keys, random: filler.random, asked, ..*filler };
                        templates[form].render(0, 1, &mut own, out);
                    } else {
                        templates[form].render(0, 1, filler, out);
                    }
                }
            }
            Source::Recorded(log) => {
                let start = as_index(position) + first as usize;
                out.extend_from_slice(log.bytes(start..start + count as usize));
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
            Source::Drawn { groups, weight_total, order } => {
                let at = draw(groups, *weight_total, *order, position, index);
                groups.get(at).map_or(0, |group| usize::from(group.operation))
            }
            Source::Recorded(log) => log.operation(as_index(position) + index as usize),
        }
    }

    /// The range of the record that the client with this number goes through, of so many clients.
    pub(crate) fn recorded_range(&self, client: usize) -> Option<Range<u64>> {
        match self {
            Source::Recorded(log) => Some(log.range(client)),
            _ => None,
        }
    }

    /// Whether commands carry a `{tag}`.
    pub(crate) fn has_tags(&self) -> bool {
        match self {
            Source::Sequence { template, .. } => template.has_tags(),
            Source::Drawn { groups, .. } => groups.iter().flat_map(|group| &group.templates).any(Template::has_tags),
            Source::Recorded(_) => false,
        }
    }
}

#[inline]
fn draw(groups: &[Group], weight_total: u64, order: Order, position: u64, index: u32) -> usize {
    let point = match order {
        Order::Sequence => position + u64::from(index),
        Order::Weighted => mix(position ^ (u64::from(index) << 32)),
    };
    let point = point % weight_total.max(1);
    groups.iter().position(|group| point < group.weight_end).unwrap_or(0)
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
        extended::{self, Extended},
        options::Options,
        random::AdditiveRandom,
        suite::{self, Payload},
    };

    fn render(source: &mut Source, position: u64, index: u32) -> String {
        let mut keys = Keys::new(Distribution::Uniform, 0, 10, 1);
        let mut random = AdditiveRandom::new(1);
        let mut filler = Filler { keys: &mut keys, random: &mut random, tags: &[], value_pool: &[], asked: None };
        let mut out = Vec::new();
        source.render(position, index, 1, &mut filler, &mut out);
        String::from_utf8(out).unwrap()
    }

    fn of_mix(options: &Options, payloads: &[Payload]) -> Source {
        let test = suite::mix(options, payloads).unwrap();
        Source::new(&test, 8, Substitution::default(), 1)
    }

    #[test]
    fn drawn_commands_and_their_operations_agree() {
        let extended = Extended { mix: Some("set=1,get=3".to_owned()), ..Extended::default() };
        let mut source = of_mix(&Options { extended, ..Options::default() }, &[Payload::of(b"VXK")]);
        let mut counts = [0_u32; 2];
        for position in 0..1_000 {
            for index in 0..4 {
                let out = render(&mut source, position, index);
                let operation = source.operation(position, index);
                let expected = if operation == 0 { "$3\r\nSET" } else { "$3\r\nGET" };
                assert_eq!(&out[4..11], expected);
                counts[operation] += 1;
            }
        }
        assert!((900..1_100).contains(&counts[0]), "{counts:?}");
    }

    #[test]
    fn operations_have_keys_and_sizes_of_their_own() {
        let mut extended = Extended::default();
        for text in ["set weight=1 keys=seq key-min=500 key-max=599 size=5,9", "get weight=1"] {
            extended::apply(&mut extended, "--op", text).unwrap();
        }
        let mut source = of_mix(&Options { extended, ..Options::default() }, &[Payload::of(b"VXK")]);
        let mut sizes = [0; 2];
        let mut expected = 500;
        for position in 0..100 {
            let out = render(&mut source, position, 0);
            if source.operation(position, 0) == 1 {
                assert!(out.contains("key:__rand_int__"), "{out}");
                continue;
            }
            assert!(out.contains(&format!("key:{expected:012}\r\n")), "{out} {expected}");
            expected += 1;
            sizes[usize::from(out.contains("$9\r\n"))] += 1;
        }
        assert!(sizes.iter().all(|count| *count > 5), "{sizes:?}");
    }
}
