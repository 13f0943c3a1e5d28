//! `cargo xtask tidy`: what a reviewer would otherwise have to remember.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use lexopt::prelude::*;

use crate::steps::root;

const HELP: &str = "\
usage: cargo xtask tidy

Checks which crate depends on which, file sizes, banned words, where unsafe code may be and how
much of it there is, and that each file says what it is for. The tables are in xtask/src/tidy.rs.
";

/// Which of our crates each of our crates may use. An arrow the other way is a design change:
/// make it here first, with its reason in ARCHITECTURE.md.
const EDGES: &[(&str, &[&str])] = &[
    ("resp", &[]),
    ("rdb", &["resp"]),
    ("net", &[]),
    ("keyspace", &["rdb", "resp"]),
    ("commands", &["keyspace", "rdb", "resp"]),
    ("persistence", &["keyspace", "rdb", "resp"]),
    ("options", &[]),
    ("script", &["resp"]),
    ("replication", &[]),
    ("topology", &[]),
    ("member", &["topology"]),
    ("doctor", &["options", "resp"]),
    (
        "server",
        &[
            "commands",
            "doctor",
            "keyspace",
            "member",
            "net",
            "options",
            "persistence",
            "rdb",
            "replication",
            "resp",
            "script",
            "topology",
        ],
    ),
    // The server's users, log and process: what both are to clients and to the machine.
    ("proxy", &["commands", "keyspace", "member", "net", "options", "resp", "server", "topology"]),
    ("benchmark", &["net", "options", "resp"]),
    ("cli", &["commands", "net", "options", "resp"]),
    ("manager", &["options", "resp", "topology"]),
    ("oxidis", &["benchmark", "cli", "doctor", "keyspace", "manager", "options", "persistence", "proxy", "server"]),
    ("testkit", &[]),
    ("fuzzing", &["keyspace", "persistence", "rdb", "replication", "resp", "script", "server"]),
    ("xtask", &["testkit"]),
    ("end-to-end", &[]),
];
/// Crates that only tests may use.
const DEV_ONLY: &[&str] = &["testkit"];

/// Where `unsafe` may be written, by the start of the path, and for what.
const UNSAFE_MODULES: &[(&str, &str)] = &[
    ("crates/keyspace/src/", "entries in one allocation, the table's buckets, slot locks"),
    ("crates/rdb/src/", "packed bytes"),
    ("crates/rdb/tests/memory.rs", "a counting allocator"),
    ("crates/keyspace/tests/", "a counting allocator"),
    ("crates/server/src/", "allocator figures, signal handlers"),
    ("crates/testkit/src/process.rs", "kill, sched_setaffinity, and the ioctl that cuts a file system's power"),
];
/// Shipped crates that have unsafe code; all others say `#![forbid(unsafe_code)]`.
const UNSAFE_CRATES: &[&str] = &["keyspace", "rdb", "server"];
/// Lines within unsafe blocks: this many, or this share of all lines, whichever is more.
const UNSAFE_LINES_MAX: usize = 300;
const UNSAFE_PER_MILLE_MAX: usize = 5;

/// Lines of a file: flagged past the first unless listed with a reason, refused past the second.
const LINES_MAX: usize = 800;
const LINES_LIMIT: usize = 1_000;
const LONG_FILES: &[(&str, &str)] =
    &[("crates/keyspace/src/db.rs", "one type's face: a short method for each thing a command may ask")];

pub(crate) fn main(mut parser: lexopt::Parser) -> Result<ExitCode> {
    if let Some(arg) = parser.next()? {
        if arg != Long("help") && arg != Short('h') {
            return Err(arg.unexpected().into());
        }
        print!("{HELP}");
        return Ok(ExitCode::SUCCESS);
    }
    let problems = problems()?;
    for problem in &problems {
        println!("{problem}");
    }
    println!("{} problems", problems.len());
    Ok(if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Everything that is wrong, one line each.
pub(crate) fn problems() -> Result<Vec<String>> {
    let mut problems = Vec::new();
    check_edges(&mut problems)?;
    check_forbidden(&mut problems)?;
    let mut files = Vec::new();
    for directory in ["crates", "xtask", "tests"] {
        collect(&root().join(directory), &mut files)?;
    }
    let (mut unsafe_lines, mut all_lines) = (0, 0);
    for file in &files {
        let text = fs::read_to_string(file).with_context(|| file.display().to_string())?;
        let path = file.strip_prefix(root()).unwrap_or(file).display().to_string();
        check_file(&path, &text, &mut problems);
        let is_test = path.ends_with("/tests.rs") || path.contains("/tests/");
        let count = if is_test { 0 } else { count_unsafe_lines(&text) };
        if count > 0 && !UNSAFE_MODULES.iter().any(|(start, _)| path.starts_with(start)) {
            problems.push(format!("{path}: unsafe code outside the listed modules (UNSAFE_MODULES)"));
        }
        unsafe_lines += count;
        all_lines += text.lines().count();
    }
    let limit = UNSAFE_LINES_MAX.max(all_lines * UNSAFE_PER_MILLE_MAX / 1_000);
    if unsafe_lines > limit {
        problems.push(format!("{unsafe_lines} lines of unsafe code, of {all_lines}: the limit is {limit}"));
    }
    Ok(problems)
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    if !directory.is_dir() {
        return Ok(());
    }
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    Ok(())
}

fn check_edges(problems: &mut Vec<String>) -> Result<()> {
    let mut manifests = vec![root().join("xtask/Cargo.toml"), root().join("tests/Cargo.toml")];
    for entry in fs::read_dir(root().join("crates"))? {
        manifests.push(entry?.path().join("Cargo.toml"));
    }
    for manifest in manifests.iter().filter(|manifest| manifest.is_file()) {
        let text = fs::read_to_string(manifest)?;
        let (mut section, mut name) = ("", "");
        for line in text.lines() {
            if line.starts_with('[') {
                section = line.trim_matches(['[', ']']);
            }
            let Some((key, value)) = line.split_once(['.', ' ', '=']) else {
                continue;
            };
            if section == "package" && key == "name" {
                name = value.trim_matches(['=', ' ', '"']);
            }
            let is_ours = EDGES.iter().any(|(ours, _)| *ours == key);
            let allowed = EDGES.iter().find(|(ours, _)| *ours == name).map(|(_, allowed)| *allowed);
            match (section, allowed) {
                (_, None) if section == "dependencies" => {
                    problems.push(format!("{name}: a crate that EDGES in xtask/src/tidy.rs does not know"));
                }
                ("dependencies", Some(allowed)) if is_ours && !allowed.contains(&key) => {
                    problems.push(format!("{name} may not depend on {key} (EDGES in xtask/src/tidy.rs)"));
                }
                ("dev-dependencies", Some(allowed))
                    if is_ours && !allowed.contains(&key) && !DEV_ONLY.contains(&key) && name != "end-to-end" =>
                {
                    problems.push(format!("{name}: its tests may not depend on {key}"));
                }
                _ => {}
            }
        }
    }
    Ok(())
}

/// Crates that need no unsafe code say so, and the compiler keeps them to it.
fn check_forbidden(problems: &mut Vec<String>) -> Result<()> {
    for (name, _) in EDGES.iter().filter(|(name, _)| !UNSAFE_CRATES.contains(name) && !DEV_ONLY.contains(name)) {
        let mut heads = ["lib.rs", "main.rs"].map(|file| root().join("crates").join(name).join("src").join(file));
        if *name == "xtask" || *name == "end-to-end" {
            heads = [root().join("xtask/src/main.rs"), root().join("tests/lib.rs")];
        }
        for head in heads.iter().filter(|head| head.is_file()) {
            if !fs::read_to_string(head)?.contains("#![forbid(unsafe_code)]") {
                problems.push(format!("{}: say #![forbid(unsafe_code)]", head.display()));
            }
        }
    }
    Ok(())
}

fn check_file(path: &str, text: &str, problems: &mut Vec<String>) {
    let lines = text.lines().count();
    let has_reason = LONG_FILES.iter().any(|(file, _)| *file == path);
    if lines > LINES_LIMIT || (lines > LINES_MAX && !has_reason) {
        problems.push(format!("{path}: {lines} lines: split it, or give a reason in LONG_FILES up to {LINES_LIMIT}"));
    }
    let needs_head = !path.ends_with("/tests.rs");
    if needs_head && !text.starts_with("//!") && !text.starts_with("#!") {
        problems.push(format!("{path}: say in a `//!` head what the file is for"));
    }
    // Written apart, so that this file does not hold them itself.
    let banned = [
        concat!("TO", "DO"),
        concat!("FIX", "ME"),
        concat!("unimple", "mented!"),
        concat!("to", "do!("),
        concat!("dbg", "!("),
        concat!("/wo", "rk/"),
    ];
    for (index, line) in text.lines().enumerate() {
        for word in banned {
            if line.contains(word) {
                problems.push(format!("{path}:{}: {word}", index + 1));
            }
        }
        // A fact of a test is one line of text, however long the reply.
        let is_fact = path.ends_with("/tests.rs") || line.contains('"');
        if line.chars().count() > 160 && !is_fact {
            problems.push(format!("{path}:{}: a line of {} characters", index + 1, line.chars().count()));
        }
    }
}

/// Lines of code within unsafe blocks, and one for each unsafe function, trait or implementation: their bodies are
/// safe code but for the blocks in them. Tests at the end of a file do not count.
fn count_unsafe_lines(text: &str) -> usize {
    let (mut count, mut depth) = (0, 0_i64);
    for line in text.lines().take_while(|line| *line != "#[cfg(test)]") {
        let code = line.split("//").next().unwrap_or("");
        let block = code.find("unsafe {").filter(|_| !code.contains('"'));
        if depth > 0 {
            count += usize::from(!code.trim().is_empty());
            depth += nesting(code);
        } else if let Some(at) = block {
            count += 1;
            depth = nesting(&code[at..]).max(0);
        } else if ["unsafe fn", "unsafe impl", "unsafe trait"].iter().any(|word| code.contains(word)) {
            count += usize::from(!code.contains('"'));
        }
    }
    count
}

/// Braces opened and not closed in a line.
fn nesting(code: &str) -> i64 {
    let count = |brace| i64::try_from(code.matches(brace).count()).unwrap_or(0);
    count('{') - count('}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsafe_blocks_are_counted_to_their_end() {
        let text = "fn a() {\n    // unsafe { no }\n    unsafe { one() };\n    unsafe {\n        two();\n    }\n}\n";
        assert_eq!(count_unsafe_lines(text), 4);
    }

    #[test]
    fn only_blocks_count_in_unsafe_functions() {
        let text = "unsafe fn a() {\n    safe();\n    // SAFETY: so.\n    let x = unsafe { one() };\n}\n\
            #[cfg(test)]\nmod tests { fn b() { unsafe { c() } } }\n";
        assert_eq!(count_unsafe_lines(text), 2);
    }

    #[test]
    fn banned_words_and_missing_heads_are_found() {
        let mut problems = Vec::new();
        check_file("x.rs", concat!("fn a() {} // TO", "DO later\n"), &mut problems);
        assert_eq!(problems.len(), 2);
    }
}
