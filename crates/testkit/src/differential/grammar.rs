//! The language in which command shapes are written, one line per shape.
//!
//! | text | emits |
//! |---|---|
//! | `WORD` | the word |
//! | `<slot>` | a random argument of that kind, see [`Slot`] |
//! | `<slot>+`, `(…)+` | one to three times; `++` now and then up to 200 times |
//! | `[a\|b]` | nothing, or one of the alternatives |
//! | `(a\|b)` | one of the alternatives |
//! | `{a b c}` | all of them, in random order |

use super::vocabulary::{Slot, Vocabulary};

/// A parsed shape.
#[derive(Debug, Clone)]
pub struct Shape {
    nodes: Vec<Node>,
}

#[derive(Debug, Clone)]
enum Node {
    Word(Vec<u8>),
    Slot(Slot),
    Optional(Vec<Vec<Node>>),
    Choice(Vec<Vec<Node>>),
    Shuffled(Vec<Node>),
    Repeated(Box<Node>, Times),
}

#[derive(Debug, Clone, Copy)]
enum Times {
    Few,
    Many,
}

impl Shape {
    /// Parses a shape.
    ///
    /// # Panics
    /// On a mistake in the text, which is part of a table in this crate.
    pub fn parse(text: &str) -> Shape {
        let mut parser = Parser { text, rest: text };
        let nodes = parser.sequence();
        assert!(parser.rest.is_empty(), "unbalanced {:?} in shape: {text}", parser.rest);
        Shape { nodes }
    }

    /// Appends the arguments of one random command of this shape.
    pub fn emit(&self, vocabulary: &mut Vocabulary, out: &mut Vec<Vec<u8>>) {
        emit_all(&self.nodes, vocabulary, out);
    }
}

fn emit_all(nodes: &[Node], vocabulary: &mut Vocabulary, out: &mut Vec<Vec<u8>>) {
    for node in nodes {
        emit(node, vocabulary, out);
    }
}

fn emit(node: &Node, vocabulary: &mut Vocabulary, out: &mut Vec<Vec<u8>>) {
    match node {
        Node::Word(word) => out.push(word.clone()),
        Node::Slot(slot) => vocabulary.emit(*slot, out),
        Node::Optional(_) if vocabulary.chance(50) => {}
        Node::Optional(choices) | Node::Choice(choices) => {
            let index = vocabulary.below(choices.len());
            emit_all(&choices[index], vocabulary, out);
        }
        Node::Shuffled(nodes) => {
            let mut order: Vec<usize> = (0..nodes.len()).collect();
            vocabulary.shuffle(&mut order);
            for index in order {
                emit(&nodes[index], vocabulary, out);
            }
        }
        Node::Repeated(node, times) => {
            let count = match times {
                Times::Many if vocabulary.chance(12) => 1 + vocabulary.below(200),
                Times::Many => 1 + vocabulary.below(6),
                Times::Few => 1 + vocabulary.below(3),
            };
            for _ in 0..count {
                emit(node, vocabulary, out);
            }
        }
    }
}

struct Parser<'a> {
    text: &'a str,
    rest: &'a str,
}

impl Parser<'_> {
    fn sequence(&mut self) -> Vec<Node> {
        let mut nodes = Vec::new();
        loop {
            self.rest = self.rest.trim_start();
            let Some(first) = self.rest.chars().next() else {
                return nodes;
            };
            let node = match first {
                '|' | ']' | ')' | '}' => return nodes,
                '[' => Node::Optional(self.alternatives(']')),
                '(' => Node::Choice(self.alternatives(')')),
                '{' => {
                    self.rest = &self.rest[1..];
                    let nodes = self.sequence();
                    self.expect('}');
                    Node::Shuffled(nodes)
                }
                '<' => {
                    let end = self.rest.find('>').unwrap_or_else(|| self.fail("a < without its >"));
                    let name = &self.rest[1..end];
                    let slot = Slot::named(name).unwrap_or_else(|| self.fail(name));
                    self.rest = &self.rest[end + 1..];
                    Node::Slot(slot)
                }
                _ => {
                    let end = self.rest.find([' ', '|', ']', ')', '}']).unwrap_or(self.rest.len());
                    let (word, rest) = self.rest.split_at(end);
                    self.rest = rest;
                    Node::Word(word.as_bytes().to_vec())
                }
            };
            nodes.push(self.repetition(node));
        }
    }

    fn repetition(&mut self, node: Node) -> Node {
        for (suffix, times) in [("++", Times::Many), ("+", Times::Few)] {
            if let Some(rest) = self.rest.strip_prefix(suffix) {
                self.rest = rest;
                return Node::Repeated(Box::new(node), times);
            }
        }
        node
    }

    fn alternatives(&mut self, close: char) -> Vec<Vec<Node>> {
        let mut choices = Vec::new();
        loop {
            self.rest = &self.rest[1..];
            choices.push(self.sequence());
            if !self.rest.starts_with('|') {
                self.expect(close);
                return choices;
            }
        }
    }

    fn expect(&mut self, close: char) {
        match self.rest.strip_prefix(close) {
            Some(rest) => self.rest = rest,
            None => self.fail("something is not closed"),
        }
    }

    fn fail(&self, what: &str) -> ! {
        panic!("{what}: at {:?} in shape {:?}", self.rest, self.text)
    }
}
