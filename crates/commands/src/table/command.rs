//! Replies of COMMAND and its subcommands, as functions of the table alone.
//!
//! Redis: its order of commands is that of a hash table and changes from run to run; ours is the
//! order of the rows.

use keyspace::glob;
use resp::Reply;

use super::bits::{Categories, KeyFlags};
use super::docs::{Argument, ArgumentKind, Docs};
use super::keys::{ArgView, TailView, keys};
use super::spec::{BeginSearch, CommandSpec, FindKeys, KeySpec};
use super::{Flags, arity_ok, lookup_full_name, resolve, top_level, top_level_count};

const SYNTAX_ERROR: &str = "ERR syntax error";
const INVALID_COMMAND: &str = "ERR Invalid command specified";
const NO_KEY_ARGUMENTS: &str = "ERR The command has no key arguments";
const INVALID_ARGUMENT_COUNT: &str = "ERR Invalid number of arguments specified for command";
const INVALID_ARGUMENTS: &str = "ERR Invalid arguments specified for command";

/// COMMAND: describes all commands.
pub fn all(reply: &mut Reply) {
    reply.array(top_level_count());
    for spec in top_level() {
        write_info(spec, reply);
    }
}

/// COMMAND COUNT.
pub fn count(reply: &mut Reply) {
    reply.count(top_level_count());
}

/// COMMAND INFO [name …]: null for each name that is not known.
pub fn info<A: ArgView + ?Sized>(args: &A, reply: &mut Reply) {
    if args.arg_count() <= 2 {
        return all(reply);
    }
    reply.array(args.arg_count() - 2);
    for position in 2..args.arg_count() {
        match args.arg(position).and_then(lookup_full_name) {
            Some(spec) => write_info(spec, reply),
            None => reply.null(),
        }
    }
}

/// COMMAND DOCS [name …]: names that are not known are left out.
pub fn docs<A: ArgView + ?Sized>(args: &A, reply: &mut Reply) {
    if args.arg_count() <= 2 {
        reply.map(top_level_count());
        for spec in top_level() {
            write_named_docs(spec, reply);
        }
        return;
    }
    let known = (2..args.arg_count()).filter_map(|position| args.arg(position).and_then(lookup_full_name));
    reply.map(known.clone().count());
    for spec in known {
        write_named_docs(spec, reply);
    }
}

/// COMMAND LIST [FILTERBY MODULE name | ACLCAT category | PATTERN pattern].
pub fn list<A: ArgView + ?Sized>(args: &A, reply: &mut Reply) {
    let filter = match args.arg_count() {
        2 => Some(ListFilter::Everything),
        5 if is_word(args, 2, "filterby") => list_filter(args),
        _ => None,
    };
    let Some(filter) = filter else {
        return reply.error(SYNTAX_ERROR);
    };
    let listed =
        top_level().flat_map(|spec| std::iter::once(spec).chain(spec.subcommands)).filter(|spec| filter.admits(spec));
    reply.array(listed.clone().count());
    for spec in listed {
        reply.bulk(spec.name);
    }
}

/// COMMAND GETKEYS command [argument …].
pub fn get_keys<A: ArgView + ?Sized>(args: &A, reply: &mut Reply) {
    write_keys(args, reply, |key, _, reply| reply.bulk(key));
}

/// COMMAND GETKEYSANDFLAGS command [argument …].
pub fn get_keys_and_flags<A: ArgView + ?Sized>(args: &A, reply: &mut Reply) {
    write_keys(args, reply, |key, flags, reply| {
        reply.array(2);
        reply.bulk(key);
        write_names(flags.names(), reply);
    });
}

/// Which commands COMMAND LIST names.
#[derive(Clone, Copy)]
enum ListFilter<'a> {
    Everything,
    /// Those of a module; there are no modules.
    Module,
    /// Those in a category; `None` if there is no such category.
    Category(Option<Categories>),
    Pattern(&'a [u8]),
}

impl ListFilter<'_> {
    fn admits(self, spec: &CommandSpec) -> bool {
        match self {
            Self::Everything => true,
            Self::Module | Self::Category(None) => false,
            Self::Category(Some(category)) => spec.categories.intersects(category),
            Self::Pattern(pattern) => glob::matches(pattern, spec.name.as_bytes(), true),
        }
    }
}

fn list_filter<A: ArgView + ?Sized>(args: &A) -> Option<ListFilter<'_>> {
    let value = args.arg(4)?;
    if is_word(args, 3, "module") {
        Some(ListFilter::Module)
    } else if is_word(args, 3, "aclcat") {
        Some(ListFilter::Category(Categories::by_name(value)))
    } else if is_word(args, 3, "pattern") {
        Some(ListFilter::Pattern(value))
    } else {
        None
    }
}

fn write_keys<A: ArgView + ?Sized>(args: &A, reply: &mut Reply, write_key: fn(&[u8], KeyFlags, &mut Reply)) {
    let call = TailView::new(args, 2);
    let Ok(spec) = resolve(&call) else {
        return reply.error(INVALID_COMMAND);
    };
    if !spec.has_keys() {
        return reply.error(NO_KEY_ARGUMENTS);
    }
    if !arity_ok(spec, call.arg_count()) {
        return reply.error(INVALID_ARGUMENT_COUNT);
    }
    let found = keys(spec, &call).unwrap_or_default();
    if found.is_empty() && !spec.flags.contains(Flags::NO_MANDATORY_KEYS) {
        return reply.error(INVALID_ARGUMENTS);
    }
    reply.array(found.len());
    for key in found {
        write_key(call.arg(key.position as usize).unwrap_or_default(), key.flags, reply);
    }
}

/// The ten fields of a command, its subcommands included.
fn write_info(spec: &CommandSpec, reply: &mut Reply) {
    reply.array(10);
    reply.bulk(spec.name);
    reply.int(i64::from(spec.arity));
    write_names(spec.flags.names(), reply);
    reply.int(i64::from(spec.first_key));
    reply.int(i64::from(spec.last_key));
    reply.int(i64::from(spec.step));
    let categories = spec.categories.names();
    reply.set(categories.clone().count());
    for category in categories {
        reply.simple(format!("@{category}"));
    }
    reply.set(spec.tips.len());
    for tip in spec.tips {
        reply.bulk(tip);
    }
    reply.set(spec.key_specs.len());
    for key_spec in spec.key_specs {
        write_key_spec(key_spec, reply);
    }
    if spec.is_container() {
        reply.array(spec.subcommands.len());
    } else {
        reply.set(0);
    }
    for subcommand in spec.subcommands {
        write_info(subcommand, reply);
    }
}

fn write_names(names: impl Iterator<Item = &'static str> + Clone, reply: &mut Reply) {
    reply.set(names.clone().count());
    for name in names {
        reply.simple(name);
    }
}

fn write_key_spec(key_spec: &KeySpec, reply: &mut Reply) {
    reply.map(3 + usize::from(key_spec.notes.is_some()));
    if let Some(notes) = key_spec.notes {
        reply.bulk("notes");
        reply.bulk(notes);
    }
    reply.bulk("flags");
    write_names(key_spec.flags.names(), reply);
    reply.bulk("begin_search");
    match key_spec.begin_search {
        BeginSearch::Unknown => write_search("unknown", &[], reply),
        BeginSearch::Index(index) => write_search("index", &[("index", index)], reply),
        BeginSearch::Keyword { keyword, start_from } => {
            write_search_head("keyword", 2, reply);
            reply.bulk("keyword");
            reply.bulk(keyword);
            reply.bulk("startfrom");
            reply.int(i64::from(start_from));
        }
    }
    reply.bulk("find_keys");
    match key_spec.find_keys {
        FindKeys::Unknown => write_search("unknown", &[], reply),
        FindKeys::Range { last, step, limit } => {
            write_search("range", &[("lastkey", last), ("keystep", step), ("limit", limit)], reply);
        }
        FindKeys::Counted { count_at, first, step } => {
            let numbers = [("keynumidx", count_at), ("firstkey", first), ("keystep", step)];
            write_search("keynum", &numbers, reply);
        }
    }
}

fn write_search(kind: &str, numbers: &[(&str, i32)], reply: &mut Reply) {
    write_search_head(kind, numbers.len(), reply);
    for (name, number) in numbers {
        reply.bulk(name);
        reply.int(i64::from(*number));
    }
}

fn write_search_head(kind: &str, field_count: usize, reply: &mut Reply) {
    reply.map(2);
    reply.bulk("type");
    reply.bulk(kind);
    reply.bulk("spec");
    reply.map(field_count);
}

fn write_named_docs(spec: &CommandSpec, reply: &mut Reply) {
    reply.bulk(spec.name);
    write_docs(spec, reply);
}

fn write_docs(spec: &CommandSpec, reply: &mut Reply) {
    let Docs { summary, since, group, complexity, deprecated, system, .. } = *spec.docs;
    let Docs { deprecated_since, replaced_by, history, arguments, .. } = *spec.docs;
    let optional_fields = [
        complexity.is_some(),
        deprecated || system,
        deprecated_since.is_some(),
        replaced_by.is_some(),
        !history.is_empty(),
        !arguments.is_empty(),
        spec.is_container(),
    ];
    reply.map(3 + optional_fields.iter().filter(|present| **present).count());
    write_text("summary", summary, reply);
    write_text("since", since, reply);
    write_text("group", group.name(), reply);
    write_optional_text("complexity", complexity, reply);
    if deprecated || system {
        reply.bulk("doc_flags");
        let flags = [(deprecated, "deprecated"), (system, "syscmd")];
        write_names(flags.into_iter().filter(|(set, _)| *set).map(|(_, name)| name), reply);
    }
    write_optional_text("deprecated_since", deprecated_since, reply);
    write_optional_text("replaced_by", replaced_by, reply);
    if !history.is_empty() {
        reply.bulk("history");
        reply.set(history.len());
        for (version, change) in history {
            reply.array(2);
            reply.bulk(version);
            reply.bulk(change);
        }
    }
    if !arguments.is_empty() {
        reply.bulk("arguments");
        write_arguments(arguments, reply);
    }
    if spec.is_container() {
        reply.bulk("subcommands");
        reply.map(spec.subcommands.len());
        for subcommand in spec.subcommands {
            write_named_docs(subcommand, reply);
        }
    }
}

fn write_arguments(arguments: &[Argument], reply: &mut Reply) {
    reply.array(arguments.len());
    for argument in arguments {
        write_argument(argument, reply);
    }
}

fn write_argument(argument: &Argument, reply: &mut Reply) {
    let is_group = matches!(argument.kind, ArgumentKind::OneOf | ArgumentKind::Block);
    let has_flags = argument.optional || argument.multiple || argument.multiple_token;
    let optional_fields = [
        argument.key_spec.is_some(),
        argument.token.is_some(),
        argument.since.is_some(),
        argument.deprecated_since.is_some(),
        has_flags,
    ];
    // Name, kind, and either the text to show or the parts.
    reply.map(3 + optional_fields.iter().filter(|present| **present).count());
    write_text("name", argument.name, reply);
    write_text("type", argument.kind.name(), reply);
    if !is_group {
        write_text("display_text", argument.display.unwrap_or(argument.name), reply);
    }
    if let Some(key_spec) = argument.key_spec {
        reply.bulk("key_spec_index");
        reply.int(i64::from(key_spec));
    }
    write_optional_text("token", argument.token, reply);
    write_optional_text("since", argument.since, reply);
    write_optional_text("deprecated_since", argument.deprecated_since, reply);
    if has_flags {
        reply.bulk("flags");
        let flags = [
            (argument.optional, "optional"),
            (argument.multiple, "multiple"),
            (argument.multiple_token, "multiple_token"),
        ];
        write_names(flags.into_iter().filter(|(set, _)| *set).map(|(_, name)| name), reply);
    }
    if is_group {
        reply.bulk("arguments");
        write_arguments(argument.arguments, reply);
    }
}

fn write_text(field: &str, text: &str, reply: &mut Reply) {
    reply.bulk(field);
    reply.bulk(text);
}

fn write_optional_text(field: &str, text: Option<&str>, reply: &mut Reply) {
    if let Some(text) = text {
        write_text(field, text, reply);
    }
}

fn is_word<A: ArgView + ?Sized>(args: &A, position: usize, word: &str) -> bool {
    args.arg(position).is_some_and(|argument| argument.eq_ignore_ascii_case(word.as_bytes()))
}

#[cfg(test)]
mod tests;
