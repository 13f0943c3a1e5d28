//! The script for bash. It splits the line at blanks itself: bash would split addresses at their colons.

use std::fmt::Write as _;

use super::{identifier, links, listed, valued, words_of};
use crate::{Operands, Row, Tool, Values};

const HEAD: &str = r#"# Completion for PROGRAM and the links to it. To use it: source <(PROGRAM completions bash)

# The words up to the cursor.
_oxidis_split() {
    local line=${COMP_LINE:0:COMP_POINT}
    read -ra words <<< "$line"
    if [[ -z $line || $line == *[[:blank:]] ]]; then words+=(''); fi
    current=${words[${#words[@]}-1]}
}

# Whose value the word at the cursor is (pending), and the words before it that are no options (operands).
# $1: the first word to look at; $2: options with a value; $3: 1 if the first operand ends the options.
_oxidis_place() {
    local index word
    pending='' operands=()
    for ((index = $1; index < ${#words[@]} - 1; index++)); do
        word=${words[index]}
        if [[ -n $pending ]]; then
            pending=''
        elif [[ $word == -?* && ( $3 == 0 || ${#operands[@]} == 0 ) ]]; then
            if [[ " $2 " == *" $word "* ]]; then pending=$word; fi
        else
            operands+=("$word")
        fi
    done
}

_oxidis_offer() { COMPREPLY=($(compgen -W "$1" -- "$current")); }
_oxidis_files() { compopt -o filenames 2> /dev/null; COMPREPLY=($(compgen "$1" -- "$current")); }
"#;

pub(super) fn script(program: &str, tools: &[&Tool]) -> String {
    let mut out = HEAD.replace("PROGRAM", program);
    for tool in tools {
        function(&mut out, tool);
    }
    let names: Vec<&str> = tools.iter().map(|tool| tool.name).filter(|name| !name.is_empty()).collect();
    out.push_str("\n_oxidis() {\n    local words current pending operands\n    COMPREPLY=()\n    _oxidis_split\n");
    out.push_str("    case ${1##*/} in\n");
    let mut commands = vec![program.to_owned()];
    for tool in tools {
        let links = links(tool);
        if !links.is_empty() {
            let _ = writeln!(out, "        {}) _oxidis_tool_{} 1 ;;", links.join("|"), identifier(tool));
        }
        commands.extend(links);
    }
    out.push_str("        *)\n            if ((${#words[@]} <= 2)); then\n");
    let _ = writeln!(out, "                _oxidis_offer '{} help --help --version'", names.join(" "));
    out.push_str("                return\n            fi\n            case ${words[1]} in\n");
    for tool in tools.iter().filter(|tool| !tool.name.is_empty()) {
        let _ = writeln!(out, "                {}) _oxidis_tool_{} 2 ;;", tool.name, identifier(tool));
    }
    let _ = writeln!(
        out,
        "                help) if ((${{#words[@]}} == 3)); then _oxidis_offer '{}'; fi ;;",
        names.join(" ")
    );
    out.push_str("            esac\n            ;;\n    esac\n}\n");
    let _ = writeln!(out, "\ncomplete -F _oxidis {}", commands.join(" "));
    out
}

fn function(out: &mut String, tool: &Tool) {
    if tool.name.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n_oxidis_tool_{}() {{", identifier(tool));
    let ends = u8::from(tool.rules.operand_ends_options);
    let _ = writeln!(out, "    _oxidis_place \"$1\" '{}' {ends}", valued(tool).join(" "));
    out.push_str("    case $pending in\n        '') ;;\n");
    for row in tool.rows().filter(|row| row.needs_value()) {
        let action = match &row.values {
            Values::Free => continue,
            Values::Files => "_oxidis_files -f".to_owned(),
            Values::Folders => "_oxidis_files -d".to_owned(),
            values => format!("_oxidis_offer '{}'", words_of(values).unwrap_or_default()),
        };
        let names: Vec<&str> = row.names().collect();
        let _ = writeln!(out, "        {}) {action}; return ;;", names.join("|"));
    }
    out.push_str("        *) return ;;\n    esac\n");
    let names: Vec<&str> = listed(tool).flat_map(Row::names).filter(|name| !name.contains('=')).collect();
    let condition =
        if tool.rules.operand_ends_options { "$current == -* && ${#operands[@]} == 0" } else { "$current == -*" };
    let _ = writeln!(out, "    if [[ {condition} ]]; then _oxidis_offer '{}'; return; fi", names.join(" "));
    match &tool.operands {
        Operands::None => {}
        Operands::Files => out.push_str("    _oxidis_files -f\n"),
        Operands::Words(list) => {
            let first: Vec<&str> = list.iter().map(|word| word.name.as_str()).collect();
            let _ = writeln!(out, "    case ${{#operands[@]}} in\n        0) _oxidis_offer '{}' ;;", first.join(" "));
            out.push_str("        1)\n            case ${operands[0],,} in\n");
            for word in list.iter().filter(|word| !word.next.is_empty()) {
                let _ = writeln!(out, "                {}) _oxidis_offer '{}' ;;", word.name, word.next.join(" "));
            }
            out.push_str("                *) ;;\n            esac\n            ;;\n    esac\n");
        }
    }
    out.push_str("}\n");
}
