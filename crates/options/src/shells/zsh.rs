//! The script for zsh: `_arguments` does the work.

use std::fmt::Write as _;

use super::{brief, identifier, links, listed, words_of};
use crate::{Operands, Row, Tool, Values};

pub(super) fn script(program: &str, tools: &[&Tool]) -> String {
    let mut commands = vec![program.to_owned()];
    tools.iter().for_each(|tool| commands.extend(links(tool)));
    let mut out = format!(
        "#compdef {}\n# Completion for {program} and the links to it. To use it: save it as _{program} in a folder of \
         $fpath,\n# or: source <({program} completions zsh)\n",
        commands.join(" ")
    );
    let with_name: Vec<&&Tool> = tools.iter().filter(|tool| !tool.name.is_empty()).collect();
    for tool in &with_name {
        function(&mut out, tool);
    }
    out.push_str("\n_oxidis() {\n    case $service in\n");
    for tool in &with_name {
        let links = links(tool);
        if !links.is_empty() {
            let _ = writeln!(out, "        {}) _oxidis_tool_{}; return ;;", links.join("|"), identifier(tool));
        }
    }
    out.push_str("    esac\n    if (( CURRENT == 2 )); then\n        local -a tools=(\n");
    for tool in &with_name {
        let _ = writeln!(out, "            {}", quote(&format!("{}:{}", tool.name, tool.summary.replace(':', "\\:"))));
    }
    out.push_str("            'help:shows what a tool can do'\n        )\n        _describe tool tools\n        return\n    fi\n");
    out.push_str("    shift words\n    (( CURRENT-- ))\n    case $words[1] in\n");
    for tool in &with_name {
        let _ = writeln!(out, "        {}) _oxidis_tool_{} ;;", tool.name, identifier(tool));
    }
    let names: Vec<&str> = with_name.iter().map(|tool| tool.name).collect();
    let _ = writeln!(out, "        help) (( CURRENT == 2 )) && compadd -- {} ;;", names.join(" "));
    out.push_str("    esac\n}\n");
    let _ = write!(
        out,
        "\n# Called as a completion function, or read by source.\n\
         if [[ $funcstack[1] == _oxidis ]]; then _oxidis \"$@\"; else compdef _oxidis {}; fi\n",
        commands.join(" ")
    );
    out
}

fn function(out: &mut String, tool: &Tool) {
    let _ = writeln!(out, "\n_oxidis_tool_{}() {{", identifier(tool));
    let ends = if tool.rules.operand_ends_options { " -A '-*'" } else { "" };
    let _ = writeln!(out, "    _arguments -S{ends} \\");
    for row in listed(tool) {
        let _ = writeln!(out, "        {} \\", spec(row));
    }
    let rest = match &tool.operands {
        Operands::None => "'*: :'".to_owned(),
        Operands::Files => "'*:file:_files'".to_owned(),
        Operands::Words(_) => format!("'*::argument:_oxidis_operands_{}'", identifier(tool)),
    };
    let _ = writeln!(out, "        {rest}\n}}");
    let Operands::Words(list) = &tool.operands else {
        return;
    };
    let first: Vec<&str> = list.iter().map(|word| word.name.as_str()).collect();
    let _ = writeln!(out, "\n_oxidis_operands_{}() {{\n    if (( CURRENT == 1 )); then", identifier(tool));
    let _ = writeln!(out, "        compadd -M 'm:{{A-Z}}={{a-z}}' -- {}", first.join(" "));
    out.push_str("    elif (( CURRENT == 2 )); then\n        case ${(L)words[1]} in\n");
    for word in list.iter().filter(|word| !word.next.is_empty()) {
        let _ =
            writeln!(out, "            {}) compadd -M 'm:{{A-Z}}={{a-z}}' -- {} ;;", word.name, word.next.join(" "));
    }
    out.push_str("        esac\n    fi\n}\n");
}

/// `'(-a --pass)'{-a,--pass}'[Password]:word: '`.
fn spec(row: &Row) -> String {
    let names: Vec<&str> = row.names().collect();
    let text = brief(&row.help).replace('\\', "\\\\").replace('[', "\\[").replace(']', "\\]").replace(':', "\\:");
    let mut tail = format!("[{text}]");
    if row.needs_value() {
        let action = match &row.values {
            Values::Free => " ".to_owned(),
            Values::Files => "_files".to_owned(),
            Values::Folders => "_files -/".to_owned(),
            values => format!("({})", words_of(values).unwrap_or_default().replace(':', "\\:")),
        };
        let _ = write!(tail, ":{}:{action}", row.value_name().replace(':', "\\:"));
    }
    match names.as_slice() {
        [name] => quote(&format!("{name}{tail}")),
        names => format!("{}{{{}}}{}", quote(&format!("({})", names.join(" "))), names.join(","), quote(&tail)),
    }
}

fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}
