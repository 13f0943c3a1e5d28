//! What the binary says about its tools: help, suggestions, manual pages, and completion in the shells themselves.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::path::Path;

use common::{Ran, oxidis, run};
use testkit::binary;

const TOOLS: [&str; 12] = [
    "server",
    "proxy",
    "cli",
    "benchmark",
    "up",
    "manager",
    "admin",
    "doctor",
    "check-rdb",
    "check-aof",
    "completions",
    "man",
];

fn found(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

fn is_fine(ran: &Ran) -> bool {
    ran.code == Some(0) && ran.err.is_empty() && !ran.out.is_empty()
}

#[test]
fn help_is_by_task_with_examples_and_fits_the_screen() {
    let overview = oxidis(&["help"], "");
    assert!(is_fine(&overview) && oxidis(&["--help"], "").out == overview.out, "{overview:?}");
    for tool in TOOLS {
        assert!(overview.out.contains(&format!("\n  {tool} ")), "{overview:?}");
        let help = oxidis(&["help", tool], "");
        assert!(is_fine(&help), "{help:?}");
        assert_eq!(oxidis(&[tool, "--help"], "").out, help.out, "{tool}");
        assert!(help.out.starts_with(&format!("Usage: oxidis {tool}")), "{help:?}");
        assert!(help.out.contains("\nExamples:\n"), "{help:?}");
        let long: Vec<_> = help.out.lines().filter(|line| line.chars().count() > 80).collect();
        assert!(long.is_empty(), "{long:?}");
    }
    let section = oxidis(&["help", "cli", "write"], "");
    assert!(section.out.starts_with("Write much:\n  --pipe "), "{section:?}");
    assert!(oxidis(&["help", "server", "directives"], "").out.contains("\n  --tcp-keepalive <value>"));
    let wrong = oxidis(&["help", "cli", "nothing"], "");
    assert!(wrong.code == Some(1) && wrong.err.contains("it has connect, run, show"), "{wrong:?}");
}

#[test]
fn the_old_name_keeps_the_old_way() {
    let folder = tempfile::tempdir().unwrap();
    common::link_tools(folder.path());
    let help = run(&folder.path().join("redis-server"), &["--help"], "");
    assert_eq!((help.code, help.out.as_str()), (Some(1), ""), "Redis: help is an error");
    assert!(help.err.starts_with("Usage: redis-server "), "{help:?}");
    let help = run(&folder.path().join("redis-cli"), &["--help"], "");
    assert!(is_fine(&help) && help.out.starts_with("Usage: redis-cli "), "{help:?}");
}

#[test]
fn mistyped_words_are_answered_with_the_nearest() {
    for (arguments, code, suggestion) in [
        (&["sevrer"][..], 1, "Did you mean 'server'?"),
        (&["bench"], 1, "Did you mean 'benchmark'?"),
        (&["help", "doktor"], 1, "Did you mean 'doctor'?"),
        (&["man", "clii"], 1, "Did you mean 'cli'?"),
        (&["cli", "--bigkey"], 1, "Did you mean '--bigkeys'?"),
        (&["benchmark", "--thread", "4"], 1, "Did you mean '--threads'?"),
        (&["doctor", "--cleints", "4"], 2, "Did you mean '--clients'?"),
        (&["server", "--maxmemroy", "1gb"], 1, "Did you mean 'maxmemory'?"),
        (&["man", "--dri", "x"], 1, "Did you mean '--dir'?"),
    ] {
        let ran = oxidis(arguments, "");
        assert!(ran.code == Some(code) && ran.err.contains(suggestion), "{arguments:?}: {ran:?}");
    }
    let far = oxidis(&["qqqq"], "");
    assert!(far.code == Some(1) && !far.err.contains("Did you mean"), "{far:?}");
}

#[test]
fn manual_pages_are_read_without_complaint() {
    let folder = tempfile::tempdir().unwrap();
    let ran = oxidis(&["man", "--dir", folder.path().to_str().unwrap()], "");
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    for tool in TOOLS {
        let path = folder.path().join(format!("oxidis-{tool}.1"));
        let page = std::fs::read_to_string(&path).unwrap();
        assert_eq!(oxidis(&["man", tool], "").out, page, "the same page");
        assert!(page.starts_with(&format!(".TH OXIDIS\\-{} 1 ", tool.to_uppercase().replace('-', "\\-"))), "{page}");
        let is_request = |line: &str| {
            [".TH ", ".SH ", ".SS ", ".TP", ".PP", ".br", ".nh", ".ad l", ".nf", ".fi"]
                .iter()
                .any(|known| line.starts_with(known))
        };
        for line in page.lines() {
            assert!(!line.starts_with(['.', '\'']) || is_request(line), "{line}");
        }
        if found("man") && found("groff") {
            let shown = run(Path::new("man"), &["--warnings", "-l", path.to_str().unwrap()], "");
            assert!(is_fine(&shown), "{tool}: {shown:?}");
            assert!(shown.out.contains("EXAMPLES") && shown.out.contains(&format!("oxidis-{tool} - ")), "{shown:?}");
        }
        if found("mandoc") {
            let judged = run(Path::new("mandoc"), &["-T", "lint", "-W", "error", path.to_str().unwrap()], "");
            assert_eq!((judged.code, judged.out.as_str()), (Some(0), ""), "{tool}");
        }
    }
    assert!(folder.path().join("oxidis.1").exists());
}

/// A line up to the cursor, and what the shells must offer: all of these, and nothing that does not begin like them.
const COMPLETIONS: [(&str, &[&str]); 12] = [
    ("oxidis ser", &["server"]),
    ("oxidis c", &["check-aof", "check-rdb", "cli", "completions"]),
    ("oxidis cli --dec", &["--decode"]),
    ("oxidis cli --decode m", &["msgpack"]),
    ("redis-cli -h 10.0.0.1 -p 7000 hgetal", &["hgetall"]),
    ("redis-cli config re", &["resetstat", "rewrite"]),
    ("oxidis-cli --memkeys-", &["--memkeys-samples"]),
    ("redis-server --maxmemory-pol", &["--maxmemory-policy"]),
    ("redis-server --maxmemory-policy allkeys-l", &["allkeys-lfu", "allkeys-lru"]),
    ("redis-benchmark --find", &["--find-max"]),
    ("oxidis doctor --cl", &["--clients"]),
    ("oxidis completions z", &["zsh"]),
];

fn script(shell: &str, folder: &Path) -> String {
    let ran = oxidis(&["completions", shell], "");
    assert!(is_fine(&ran), "{ran:?}");
    let path = folder.join(shell);
    std::fs::write(&path, ran.out).unwrap();
    path.display().to_string()
}

fn offered(out: &str) -> Vec<String> {
    let mut words: Vec<String> = out.lines().filter_map(|line| line.split('\t').next()).map(str::to_owned).collect();
    words.sort();
    words
}

#[test]
fn bash_completes() {
    let folder = tempfile::tempdir().unwrap();
    let script = script("bash", folder.path());
    let complete = |line: &str| {
        let program = line.split(' ').next().unwrap();
        let code = format!(
            "source {script}; complete -p {program} >/dev/null || exit 3; COMP_LINE='{line}'; \
             COMP_POINT=${{#COMP_LINE}}; _oxidis {program}; printf '%s\\n' \"${{COMPREPLY[@]}}\""
        );
        run(Path::new("bash"), &["--norc", "--noprofile", "-c", &code], "")
    };
    for (line, want) in COMPLETIONS {
        let ran = complete(line);
        assert!(ran.code == Some(0) && ran.err.is_empty(), "{line}: {ran:?}");
        assert_eq!(offered(&ran.out), *want, "{line}");
    }
    // Behind a command its words are arguments; a value that is free text is not completed.
    for line in ["redis-cli get --", "redis-cli -a --", "oxidis nothing --"] {
        assert_eq!(complete(line).out.trim(), "", "{line}");
    }
    std::fs::write(folder.path().join("passwords"), "").unwrap();
    let file = complete(&format!("redis-cli --pass-file {}/passw", folder.path().display()));
    assert!(file.out.ends_with("/passwords\n"), "{file:?}");
}

#[test]
fn fish_completes() {
    if !found("fish") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let script = script("fish", folder.path());
    for (line, want) in COMPLETIONS {
        let ran = run(Path::new("fish"), &["-c", &format!("source {script}; complete -C '{line}'")], "");
        assert_eq!(offered(&ran.out), *want, "{line}: {ran:?}");
    }
}

/// Through a terminal of zsh's own: its completion works at the prompt only.
#[test]
fn zsh_completes() {
    if !found("zsh") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let script = script("zsh", folder.path());
    let syntax = run(Path::new("zsh"), &["-n", &script], "");
    assert_eq!((syntax.code, syntax.err.as_str()), (Some(0), ""));
    let mut code = format!(
        "zmodload zsh/zpty\nzpty shell TERM=dumb zsh -f -i\n\
         zpty -w shell \"PS1='P> '; autoload -U compinit; compinit -u -D; source {script}; echo re''ady\"\n\
         zpty -r shell out '*ready*' || exit 3\n"
    );
    for (line, want) in COMPLETIONS.iter().filter(|(_, want)| want.len() == 1) {
        code.push_str(&format!("zpty -w -n shell $'{line}\\t'\nzpty -r shell out '*{}*' || exit 4\n", want[0]));
        code.push_str("print -r -- \"${out##*$'\\r'}\"\nzpty -w -n shell $'\\025'\n");
    }
    code.push_str("zpty -d shell\n");
    let ran = run(Path::new("timeout"), &["20", "zsh", "-f", "-c", &code], "");
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

#[test]
fn links_have_scripts_too() {
    for shell in ["bash", "zsh", "fish"] {
        let script = oxidis(&["completions", shell], "").out;
        for name in ["redis-server", "redis-cli", "redis-benchmark", "oxidis-cli"] {
            assert!(script.contains(name), "{shell}: {name}");
        }
    }
    let wrong = oxidis(&["completions", "tcsh"], "");
    assert!(wrong.code == Some(1) && wrong.err.contains("bash, zsh and fish"), "{wrong:?}");
    assert!(binary::oxidis().exists());
}
