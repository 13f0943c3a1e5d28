//! The script for fish: a function per tool that registers its options for a command, called for `oxidis` and each link.

use std::fmt::Write as _;

use super::{brief, identifier, links, listed, valued, words_of};
use crate::{Operands, Row, Tool, Values};

const HEAD: &str = r#"# Completion for PROGRAM and the links to it. To use it: PROGRAM completions fish | source

# Whether the word behind PROGRAM is this one.
function __oxidis_tool
    set -l words (commandline -opc)
    test (count $words) -ge 2; and test $words[2] = $argv[1]
end

# The words before the cursor that are no options; $argv: options with a value.
function __oxidis_operands
    set -l words (commandline -opc)
    set -l start 2
    if string match -qr '(^|/)PROGRAM$' -- $words[1]
        set start 3
    end
    set -l is_value 0
    for word in $words[$start..-1]
        if test $is_value = 1
            set is_value 0
        else if string match -q -- '-?*' $word
            if contains -- $word $argv
                set is_value 1
            end
        else
            echo $word
        end
    end
end
"#;

pub(super) fn script(program: &str, tools: &[&Tool]) -> String {
    let mut out = HEAD.replace("PROGRAM", program);
    let with_name: Vec<&&Tool> = tools.iter().filter(|tool| !tool.name.is_empty()).collect();
    let names: Vec<&str> = with_name.iter().map(|tool| tool.name).collect();
    for tool in &with_name {
        function(&mut out, tool);
    }
    let _ = writeln!(out, "\ncomplete -c {program} -f");
    for tool in &with_name {
        let _ = writeln!(
            out,
            "complete -c {program} -n __fish_is_first_token -a {} -d {}",
            tool.name,
            quote(&brief(tool.summary))
        );
    }
    let _ = writeln!(out, "complete -c {program} -n __fish_is_first_token -a help -d 'Shows what a tool can do'");
    let _ = writeln!(out, "complete -c {program} -n '__oxidis_tool help' -a '{}'", names.join(" "));
    for tool in &with_name {
        let _ = writeln!(out, "__oxidis_complete_{} -c {program} -n '__oxidis_tool {}'", identifier(tool), tool.name);
        for link in links(tool) {
            let _ = writeln!(out, "__oxidis_complete_{} -c {link}", identifier(tool));
        }
    }
    out
}

fn function(out: &mut String, tool: &Tool) {
    let name = identifier(tool);
    if let Operands::Words(list) = &tool.operands {
        let _ = writeln!(
            out,
            "\nfunction __oxidis_words_{name}\n    set -l operands (__oxidis_operands {})",
            valued(tool).join(" ")
        );
        out.push_str("    switch (count $operands)\n        case 0\n");
        let first: Vec<&str> = list.iter().map(|word| word.name.as_str()).collect();
        let _ = writeln!(out, "            string split ' ' -- '{}'", first.join(" "));
        out.push_str("        case 1\n            switch (string lower -- $operands[1])\n");
        for word in list.iter().filter(|word| !word.next.is_empty()) {
            let _ = writeln!(
                out,
                "                case {}\n                    string split ' ' -- '{}'",
                word.name,
                word.next.join(" ")
            );
        }
        out.push_str("            end\n    end\nend\n");
    }
    let _ = writeln!(out, "\nfunction __oxidis_complete_{name}");
    for row in listed(tool) {
        let _ = writeln!(out, "    complete $argv{}", arguments(row));
    }
    match &tool.operands {
        Operands::None => out.push_str("    complete $argv -f\n"),
        Operands::Files => out.push_str("    complete $argv -F\n"),
        Operands::Words(_) => {
            let _ = writeln!(out, "    complete $argv -f -a '(__oxidis_words_{name})'");
        }
    }
    out.push_str("end\n");
}

fn arguments(row: &Row) -> String {
    let mut out = String::new();
    for name in row.names() {
        match name.strip_prefix("--") {
            Some(long) => {
                let _ = write!(out, " -l {long}");
            }
            None => {
                let _ = write!(out, " -s {}", name.trim_start_matches('-'));
            }
        }
    }
    if row.needs_value() {
        match &row.values {
            Values::Free => out.push_str(" -x"),
            Values::Files => out.push_str(" -r -F"),
            Values::Folders => out.push_str(" -x -a '(__fish_complete_directories)'"),
            values => {
                let _ = write!(out, " -x -a '{}'", words_of(values).unwrap_or_default());
            }
        }
    }
    let _ = write!(out, " -d {}", quote(&brief(&row.help)));
    out
}

fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}
