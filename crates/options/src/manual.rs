//! Manual pages in the language of `man(7)`.

use std::fmt::Write as _;

use crate::{Operands, Tool};

/// The page of a tool. `others` are the tools to see also.
#[must_use]
pub fn manual(tool: &Tool, others: &[&Tool], version: &str) -> String {
    let page = tool.page_name();
    let program = if tool.name.is_empty() { "oxidis".to_owned() } else { format!("oxidis {}", tool.name) };
    let mut out = String::new();
    let _ = writeln!(out, ".TH {} 1 \"\" \"oxidis {version}\" \"Oxidis\"", page.to_uppercase().replace('-', "\\-"));
    let _ = writeln!(out, ".SH NAME\n{} \\- {}", escape(&page), escape(tool.summary));
    // Names of options must not be cut, nor words be spread over the line.
    out.push_str(".nh\n.ad l\n.SH SYNOPSIS\n");
    for (index, usage) in tool.usage.iter().enumerate() {
        if index > 0 {
            out.push_str(".br\n");
        }
        line(&mut out, &usage.replace("PROGRAM", &program));
    }
    out.push_str(".SH DESCRIPTION\n");
    for (index, paragraph) in tool.about.split("\n\n").filter(|paragraph| !paragraph.is_empty()).enumerate() {
        if index > 0 {
            out.push_str(".PP\n");
        }
        line(&mut out, &paragraph.replace("PROGRAM", &program));
    }
    if !tool.links.is_empty() {
        out.push_str(".PP\n");
        line(&mut out, &format!("A link to the binary named {} starts this tool too.", tool.links.join(" or ")));
    }
    if let (Operands::Words(words), "") = (&tool.operands, tool.name) {
        let words: Vec<(&str, &str)> = words.iter().map(|word| (word.name.as_str(), word.summary.as_str())).collect();
        list(&mut out, "TOOLS", &words);
    }
    if tool.rows().any(|row| row.is_listed) {
        out.push_str(".SH OPTIONS\n");
    }
    for section in tool.sections.iter() {
        let rows: Vec<_> = section.rows.iter().filter(|row| row.is_listed).collect();
        if rows.is_empty() {
            continue;
        }
        let _ = writeln!(out, ".SS {}", escape(section.title));
        for row in rows {
            out.push_str(".TP\n");
            let names: Vec<String> = row.names().map(|name| format!("\\fB{}\\fR", escape(name))).collect();
            let _ = write!(out, "{}", names.join(", "));
            let value = row.placeholder();
            match value.is_empty() {
                true => out.push('\n'),
                false => {
                    let _ = writeln!(out, " \\fI{}\\fR", escape(value));
                }
            }
            line(&mut out, &row.help.replace("PROGRAM", &program));
        }
    }
    for topic in tool.topics {
        let _ = writeln!(out, ".SH {}\n.nf", escape(&topic.title.to_uppercase()));
        topic.text.lines().for_each(|text| verbatim(&mut out, text));
        out.push_str(".fi\n");
    }
    list(&mut out, "ENVIRONMENT", tool.environment);
    list(&mut out, "FILES", tool.files);
    list(&mut out, "EXIT STATUS", tool.exit_codes);
    if !tool.examples.is_empty() {
        out.push_str(".SH EXAMPLES\n");
        for (command, text) in tool.examples {
            out.push_str(".TP\n");
            let _ = writeln!(out, "\\fB{}\\fR", escape(&command.replace("PROGRAM", &program)));
            line(&mut out, text);
        }
    }
    let others: Vec<String> = others
        .iter()
        .filter(|other| other.name != tool.name)
        .map(|other| format!("{}(1)", other.page_name()))
        .collect();
    if !others.is_empty() {
        out.push_str(".SH SEE ALSO\n");
        line(&mut out, &others.join(", "));
    }
    out
}

fn list(out: &mut String, title: &str, entries: &[(&str, &str)]) {
    if entries.is_empty() {
        return;
    }
    let _ = writeln!(out, ".SH {title}");
    for (name, text) in entries {
        let _ = writeln!(out, ".TP\n\\fB{}\\fR", escape(name));
        line(out, text);
    }
}

/// A line of text; a dot or an apostrophe at its start would be a command.
fn line(out: &mut String, text: &str) {
    let text: Vec<&str> = text.split_ascii_whitespace().collect();
    let text = escape(&text.join(" "));
    if text.starts_with(['.', '\'']) {
        out.push_str("\\&");
    }
    out.push_str(&text);
    out.push('\n');
}

/// A line that is laid out as it stands.
fn verbatim(out: &mut String, text: &str) {
    if text.starts_with(['.', '\'']) {
        out.push_str("\\&");
    }
    out.push_str(&escape(text));
    out.push('\n');
}

fn escape(text: &str) -> String {
    text.replace('\\', "\\e")
        .replace('-', "\\-")
        .replace('\'', "\\(aq")
        .replace('`', "\\(ga")
        .replace('~', "\\(ti")
        .replace('…', "...")
}
