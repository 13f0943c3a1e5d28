//! What a row of the table of directives says, and how rows are found.

use super::kind::{Kind, Value};
use super::table::{Config, DIRECTIVES};

/// One directive of the configuration file.
#[derive(Debug)]
pub struct Directive {
    /// Its name.
    pub name: &'static str,
    /// It as an option of the command line, with its value.
    pub option: &'static str,
    /// A second, older name.
    pub alias: Option<&'static str>,
    /// How its value is parsed and printed.
    pub kind: Kind,
    /// What it does, in one sentence.
    pub doc: &'static str,
    /// Whether it acts in this version.
    pub applies: Applies,
    pub(super) traits: Traits,
    pub(super) read: fn(&Config) -> Value,
    /// False: the value did not fit the field, which the parse excludes.
    pub(super) write: fn(&mut Config, Value) -> bool,
}

/// Whether a directive does what it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applies {
    /// It does.
    Acts,
    /// It is accepted and kept, and acts once this part of the server is there.
    Later(Work),
    /// It is accepted and kept, but there is nothing here it could change: why.
    Never(&'static str),
}

/// Parts of the server that directives wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Snapshots and the log of changes.
    Durability,
    /// Cluster mode.
    Cluster,
}

impl Work {
    /// The name of the part in running text.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Work::Durability => "durability",
            Work::Cluster => "cluster",
        }
    }
}

/// What may be done with a directive, as a union of bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Traits(u8);

/// CONFIG SET may change it.
pub(super) const MUTABLE: Traits = Traits(0);
/// It can only be set at start.
pub(super) const FIXED: Traits = Traits(1);
/// Its value is a secret: not to be shown in logs, MONITOR or SLOWLOG.
pub(super) const SECRET: Traits = Traits(2);
/// CONFIG SET needs `enable-protected-configs`.
pub(super) const PROTECTED: Traits = Traits(4);
/// CONFIG GET shows it only by its exact name.
pub(super) const HIDDEN: Traits = Traits(8);
/// CONFIG SET refuses it while a data set is being loaded.
pub(super) const DENIED_WHILE_LOADING: Traits = Traits(16);
/// Setting it to the same value counts as a change, because files behind it may have changed.
pub(super) const RELOADS: Traits = Traits(32);

impl Traits {
    pub(super) const fn and(self, other: Traits) -> Traits {
        Traits(self.0 | other.0)
    }

    fn has(self, other: Traits) -> bool {
        self.0 & other.0 != 0
    }
}

impl Directive {
    /// Whether it can only be set at start.
    #[must_use]
    pub fn is_fixed(&self) -> bool {
        self.traits.has(FIXED)
    }

    /// Whether its value must not be shown in logs.
    #[must_use]
    pub fn is_secret(&self) -> bool {
        self.traits.has(SECRET)
    }

    /// Whether CONFIG SET needs `enable-protected-configs`.
    #[must_use]
    pub fn is_protected(&self) -> bool {
        self.traits.has(PROTECTED)
    }

    /// Whether patterns of CONFIG GET pass over it.
    #[must_use]
    pub fn is_hidden(&self) -> bool {
        self.traits.has(HIDDEN)
    }

    /// Whether CONFIG SET refuses it while a data set is being loaded.
    #[must_use]
    pub fn is_denied_while_loading(&self) -> bool {
        self.traits.has(DENIED_WHILE_LOADING)
    }

    pub(super) fn reloads(&self) -> bool {
        self.traits.has(RELOADS)
    }

    /// The present value as CONFIG GET prints it.
    #[must_use]
    pub fn print(&self, config: &Config) -> Vec<u8> {
        self.kind.print(&(self.read)(config))
    }

    /// Whether the present value differs from the default.
    #[must_use]
    pub fn is_changed(&self, config: &Config, default: &Config) -> bool {
        (self.read)(config) != (self.read)(default)
    }

    /// Parses `arguments` and writes them into `config`. Returns whether that changed anything.
    ///
    /// # Errors
    /// The text for the user.
    pub fn set(&self, config: &mut Config, arguments: &[Vec<u8>]) -> Result<bool, String> {
        let current = (self.read)(config);
        let value = self.kind.parse(arguments, &current)?;
        let changed = value != current || self.reloads();
        if changed && !(self.write)(config, value) {
            return Err("argument is out of range".into());
        }
        Ok(changed)
    }

    /// The line for the log when the directive has a value of its own but does not act. `None`: it
    /// acts.
    #[must_use]
    pub fn inert_warning(&self) -> Option<String> {
        match self.applies {
            Applies::Acts => None,
            Applies::Later(work) => Some(format!(
                "WARNING: the directive '{}' is accepted but has no effect yet: it follows with the {} work.",
                self.name,
                work.name()
            )),
            Applies::Never(reason) => {
                Some(format!("WARNING: the directive '{}' is accepted but has no effect: {reason}.", self.name))
            }
        }
    }
}

/// A directive together with the name it was asked for by, its own or its alias.
#[derive(Clone, Copy, Debug)]
pub struct Named {
    /// The name in the table.
    pub name: &'static str,
    /// The row.
    pub directive: &'static Directive,
}

/// Finds a directive by name or alias, in any case.
#[must_use]
pub fn find(name: &[u8]) -> Option<Named> {
    all_names().find(|named| named.name.as_bytes().eq_ignore_ascii_case(name))
}

/// Every name and alias.
pub fn all_names() -> impl Iterator<Item = Named> {
    DIRECTIVES.iter().flat_map(|directive| {
        std::iter::once(directive.name).chain(directive.alias).map(move |name| Named { name, directive })
    })
}
