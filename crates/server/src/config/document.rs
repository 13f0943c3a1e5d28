//! `docs/config.md`, made from the table of directives.

use super::directive::Applies;
use super::table::{Config, DIRECTIVES, STATEMENTS};

/// The whole text of `docs/config.md`. A test holds the file equal to it.
#[must_use]
pub fn document() -> String {
    let default = Config::default();
    let mut rows: Vec<[String; 6]> = DIRECTIVES
        .iter()
        .map(|directive| {
            let default = match directive.name {
                // These depend on the machine.
                "io-threads" => "number of processors".to_owned(),
                "dir" => "where the server starts".to_owned(),
                _ => code(&String::from_utf8_lossy(&directive.print(&default))),
            };
            let name = match directive.alias {
                Some(alias) => format!("{} ({})", code(directive.name), code(alias)),
                None => code(directive.name),
            };
            let settable = match (directive.is_fixed(), directive.is_protected()) {
                (true, _) => "at start",
                (false, true) => "protected",
                (false, false) => "yes",
            };
            let applies = describe(directive.applies);
            [directive.name.to_owned(), name, default, settable.to_owned(), applies, directive.doc.to_owned()]
        })
        .chain(STATEMENTS.iter().map(|(name, applies, doc)| {
            [(*name).to_owned(), code(name), String::new(), "file only".into(), describe(*applies), (*doc).to_owned()]
        }))
        .collect();
    rows.sort();

    let mut text = String::from(HEAD);
    for [_, name, default, settable, applies, doc] in rows {
        text.push_str(&format!("| {name} | {default} | {settable} | {applies} | {doc} |\n"));
    }
    text
}

const HEAD: &str = "\
# Configuration

<!-- Made from the table in crates/server/src/config/table.rs; a test compares. To write it anew:
     OXIDIS_WRITE_DOCS=1 cargo test -p server document -->

`oxidis server [config-file] [--directive value …] [-]` reads the configuration of Redis 7.2: the same
directives, the same file format (comments, quotes, memory units, `include` with patterns), the same
order (file, then standard input if `-` asks for it, then options; the last word counts). An unknown
directive or a bad value ends the start with the line and its number.

Every directive of Redis is accepted. The column *acts* says whether it has an effect: `acts`; *follows
with …*, when the part of the server that it is about is still to come; or `cannot apply`, when there is
nothing here that it could change, and why. A directive that has no effect and is set to something else
than its default is logged as a warning, at start and at CONFIG SET.

*Set* tells how it can be changed: by CONFIG SET (`yes`), by CONFIG SET if `enable-protected-configs`
allows it (`protected`), or only `at start`.

| directive | default | set | acts | meaning |
|---|---|---|---|---|
";

fn describe(applies: Applies) -> String {
    match applies {
        Applies::Acts => "acts".into(),
        Applies::Later(work) => format!("follows with {}", work.name()),
        Applies::Never(reason) => format!("cannot apply: {reason}"),
    }
}

fn code(text: &str) -> String {
    if text.is_empty() { "empty".into() } else { format!("`{text}`") }
}
