#![allow(clippy::unwrap_used, clippy::expect_used)]
use std::ffi::OsString;

use super::shells::{Shell, script};
use super::*;

const CONNECT: &[Row] = &[
    row("-h <host>", "Host (127.0.0.1). Never \\empty: it's a name."),
    row("-a, --pass <word>", "Password."),
    file("--pass-file <file>", "Password from a file."),
    choice("--decode <name>", &["utf8", "hex"], "Show strings so."),
    row("-2, -3", "Protocol."),
];
const HELP: &[Row] = &[row("--help [section]", "This."), unlisted("--old <x>")];
const SECTIONS: &[Section] = &[section("connect", "Connect", CONNECT), section("help", "Help", HELP)];

fn tool(rules: Rules) -> Tool {
    Tool {
        name: "probe",
        links: &["redis-probe"],
        summary: "looks at things",
        usage: &["PROGRAM [OPTIONS] [COMMAND]"],
        about: "First paragraph of PROGRAM.\n\nSecond paragraph.",
        sections: Cow::Borrowed(SECTIONS),
        operands: Operands::Words(vec![Word {
            name: "config".into(),
            summary: String::new(),
            next: vec!["get".into(), "set".into()],
        }]),
        rules,
        topics: &[Topic { name: "shapes", title: "Shapes of things", text: "  a  b\n.c\n" }],
        examples: &[("PROGRAM -h a get x", "Gets x.")],
        environment: &[("PROBE_AUTH", "Password.")],
        files: &[],
        exit_codes: &[("0", "All is well.")],
    }
}

fn read(rules: Rules, line: &str) -> Vec<String> {
    let tool = tool(rules);
    let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
    let mut reader = Reader::new(&tool, &words);
    let mut items = Vec::new();
    while let Some(item) = reader.read() {
        items.push(match item {
            Item::Option { row, value, .. } => {
                format!("{}={}", row.key(), String::from_utf8(value.unwrap_or_default()).unwrap())
            }
            Item::Unknown(name) => format!("unknown {name}"),
            Item::NoValue(name) => format!("no value {name}"),
            Item::NeedlessValue(name) => format!("needless {name}"),
            Item::Word(word) => String::from_utf8(word).unwrap(),
        });
    }
    items
}

#[test]
fn rows_are_read_as_they_are_written() {
    let tool = tool(Rules::COMMAND);
    let seen: Vec<String> = tool
        .rows()
        .map(|row| {
            format!("{} | {} | {}", row.names().collect::<Vec<_>>().join(" "), row.placeholder(), row.needs_value())
        })
        .collect();
    assert_eq!(
        seen,
        [
            "-h | <host> | true",
            "-a --pass | <word> | true",
            "--pass-file | <file> | true",
            "--decode | <name> | true",
            "-2 -3 |  | false",
            "--help | [section] | false",
            "--old | <x> | true",
        ]
    );
}

#[test]
fn command_lines() {
    assert_eq!(read(Rules::COMMAND, "-h x --pass y -3 get -h"), ["-h=x", "-a=y", "-2=", "get", "no value -h"]);
    assert_eq!(read(Rules::COMMAND, "--nope --pass=x -"), ["unknown --nope", "unknown --pass=x", "-"]);
    assert_eq!(read(Rules::FREE, "--pass=x --help=connect"), ["-a=x", "--help=connect"]);
    assert_eq!(read(Rules::FREE, "--help"), ["--help="]);
}

#[test]
fn help_fits_its_width() {
    let tool = tool(Rules::COMMAND);
    for width in [50, 80] {
        let text = help(&tool, "oxidis probe", None, Look { width, is_bold: false }).unwrap();
        assert!(text.lines().all(|line| line.chars().count() <= width), "{text}");
        assert!(
            text.starts_with("Usage: oxidis probe [OPTIONS] [COMMAND]\n\nFirst paragraph of oxidis probe.\n\nSecond")
        );
        assert!(!text.contains("--old") && !text.contains("PROGRAM"));
        assert!(text.contains("\n  -h <host>            Host (127.0.0.1)."), "{text}");
    }
    assert!(help(&tool, "p", Some("nothing"), Look::PLAIN).is_none());
    assert_eq!(help(&tool, "p", Some("shapes"), Look::PLAIN).unwrap(), "Shapes of things:\n  a  b\n.c\n");
    assert_eq!(help(&tool, "p", Some("help"), Look::PLAIN).unwrap(), "Help:\n  --help [section]     This.\n");
    assert_eq!(help(&tool, "p", Some("examples"), Look::PLAIN).unwrap(), "Examples:\n  p -h a get x\n      Gets x.\n");
}

#[test]
fn long_examples_go_on_in_the_next_line() {
    let tool =
        Tool { examples: &[("PROGRAM --first 'a b c d' --second-one word --third 3", "Why.")], ..tool(Rules::COMMAND) };
    let look = Look { width: 32, is_bold: false };
    assert_eq!(
        help(&tool, "oxidis probe", Some("examples"), look).unwrap(),
        "Examples:\n  oxidis probe --first \\\n    'a b c d' --second-one \\\n    word --third 3\n      Why.\n"
    );
}

#[test]
fn mistyped_words() {
    let tool = tool(Rules::COMMAND);
    let suggest = |word: &str| suggestion(&tool, word).unwrap_or_default();
    assert_eq!(suggest("--dcode"), "Did you mean '--decode'?");
    assert_eq!(suggest("--deocde=hex"), "Did you mean '--decode'?");
    assert_eq!(suggest("--pas-file"), "Did you mean '--pass-file'?");
    assert_eq!(suggest("--nothing"), "");
    assert_eq!(suggest("-z"), "");
    assert_eq!(nearest("sevrer", ["server", "cli"].into_iter()), Some("server"));
    assert_eq!(nearest("bench", ["server", "benchmark"].into_iter()), Some("benchmark"));
    assert_eq!(nearest("xyz", ["cli", "man"].into_iter()), None);
}

#[test]
fn manual_pages_are_well_formed() {
    let tool = tool(Rules::COMMAND);
    let page = manual(&tool, &[&tool], "1.2.3");
    let sections: Vec<&str> = page.lines().filter(|line| line.starts_with(".S")).collect();
    assert_eq!(
        sections,
        [
            ".SH NAME",
            ".SH SYNOPSIS",
            ".SH DESCRIPTION",
            ".SH OPTIONS",
            ".SS Connect",
            ".SS Help",
            ".SH SHAPES OF THINGS",
            ".SH ENVIRONMENT",
            ".SH EXIT STATUS",
            ".SH EXAMPLES"
        ]
    );
    assert!(page.contains(".TP\n\\fB\\-a\\fR, \\fB\\-\\-pass\\fR \\fI<word>\\fR\nPassword.\n"), "{page}");
    assert!(page.contains("\n.nf\n  a  b\n\\&.c\n.fi\n"), "{page}");
    assert!(page.contains("Never \\eempty: it\\(aqs a name."), "{page}");
}

#[test]
fn scripts_name_every_listed_option() {
    let tool = tool(Rules::COMMAND);
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        let script = script(shell, "oxidis", &[&tool]);
        for name in tool.rows().filter(|row| row.is_listed).flat_map(Row::names) {
            let shown = match (shell, name.strip_prefix("--")) {
                (Shell::Fish, Some(long)) => format!("-l {long}"),
                (Shell::Fish, None) => format!("-s {}", name.trim_start_matches('-')),
                _ => name.to_owned(),
            };
            assert!(script.contains(&shown), "{shell:?}: {name}\n{script}");
        }
    }
}
