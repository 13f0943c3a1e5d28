//! The commands of `oxidis admin`: a row each, and what it asks the manager.

use options::nearest;
use serde_json::{Value, json};

use crate::http::{Client, Failure, Method};
use crate::shapes::{
    Event, Group, Move, NewMove, Plan, PlanWish, Proxy, Server, Settings, SlotRange, SlotsWish, Topology,
};

use super::command::{Options, Out, bytes};
use super::{show, watch};

/// A command.
#[derive(Debug)]
pub(super) struct Command {
    /// The words that name it.
    pub(super) words: &'static str,
    /// What follows them.
    pub(super) operands: &'static str,
    /// What it does, in a few words.
    pub(super) summary: &'static str,
    pub(super) run: fn(&Asked<'_>, &mut Out) -> Outcome,
}

/// A command with what belongs to it.
pub(super) struct Asked<'a> {
    pub(super) client: &'a Client,
    pub(super) options: &'a Options,
    pub(super) arguments: &'a [String],
}

/// Why a command was not done.
pub(super) enum Trouble {
    /// Its operands are wrong.
    Usage(String),
    /// The manager said no, or nothing.
    Failed(Failure),
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        Trouble::Failed(failure)
    }
}

/// The exit code, or what went wrong.
pub(super) type Outcome = Result<i32, Trouble>;

const fn command(
    words: &'static str,
    operands: &'static str,
    summary: &'static str,
    run: fn(&Asked<'_>, &mut Out) -> Outcome,
) -> Command {
    Command { words, operands, summary, run }
}

/// All commands. [`TOPIC`] shows them; a test holds both equal.
pub(super) const COMMANDS: &[Command] = &[
    command("topology", "", "groups, servers, proxies and moves on a screen", topology),
    command("members", "", "servers and proxies with what they tell of themselves", members),
    command("group list", "", "the groups", groups),
    command("group add", "[NUMBER]", "a group without servers", group_add),
    command("group remove", "NUMBER", "takes away a group without slots; its servers leave", group_remove),
    command("server list", "", "the servers", servers),
    command("server add", "GROUP ADDRESS", "a server for a group: the first is its primary", server_add),
    command("server remove", "ADDRESS", "takes a replica, or the last server, out of its group", server_remove),
    command("proxy list", "", "the proxies", proxies),
    command("proxy add", "NAME ADDRESS", "makes a proxy known that does not do so itself", proxy_add),
    command("proxy remove", "NAME", "forgets a proxy", proxy_remove),
    command("slots", "", "who owns which slots", slots),
    command(
        "slots assign",
        "RANGES|all [GROUP]",
        "gives slots that nobody owns to a group, or evenly to all",
        slots_assign,
    ),
    command("moves", "", "moves that go on, and the last that ended", moves),
    command("move start", "RANGES GROUP", "moves slots to a group", move_start),
    command("move show", "ID", "one move", move_show),
    command("move pause", "ID|all", "lets it stand still", move_pause),
    command("move resume", "ID|all", "lets it go on", move_resume),
    command("move cancel", "ID|all", "gives it up; the slots stay where they are", move_cancel),
    command("move rate", "ID BYTES|none", "most bytes per second of a move", move_rate),
    command("rebalance", "", "makes groups even", rebalance),
    command("scale-out", "GROUP", "fills a new group", scale_out),
    command("scale-in", "GROUP", "empties a group", scale_in),
    command("events", "", "what was asked for, and what happened", events),
    command("settings", "[NAME VALUE]", "what the manager goes by while it runs", settings),
];

/// The list of commands for the help.
pub(super) const TOPIC: &str = "  \
  topology                       groups, servers, proxies and moves on a screen
  members                        servers and proxies with what they tell of themselves
  group list                     the groups
  group add [NUMBER]             a group without servers
  group remove NUMBER            takes away a group without slots; its servers leave
  server list                    the servers
  server add GROUP ADDRESS       a server for a group: the first is its primary
  server remove ADDRESS          takes a replica, or the last server, out of its group
  proxy list                     the proxies
  proxy add NAME ADDRESS         makes a proxy known that does not do so itself
  proxy remove NAME              forgets a proxy
  slots                          who owns which slots
  slots assign RANGES|all [GROUP]
                                 gives slots that nobody owns to a group, or evenly to all
  moves                          moves that go on, and the last that ended
  move start RANGES GROUP        moves slots to a group
  move show ID                   one move
  move pause ID|all              lets it stand still
  move resume ID|all             lets it go on
  move cancel ID|all             gives it up; the slots stay where they are
  move rate ID BYTES|none        most bytes per second of a move
  rebalance                      makes groups even
  scale-out GROUP                fills a new group
  scale-in GROUP                 empties a group
  events                         what was asked for, and what happened
  settings [NAME VALUE]          what the manager goes by while it runs
";

/// The command that `words` begin with, and its operands.
pub(super) fn find(words: &[String]) -> Result<(&'static Command, Vec<String>), String> {
    let Some(first) = words.first() else {
        return Err("which command? 'oxidis help admin commands' lists them".into());
    };
    let named = |words: &str| COMMANDS.iter().find(|command| command.words == words);
    if let Some(second) = words.get(1)
        && let Some(command) = named(&format!("{first} {second}"))
    {
        return Ok((command, words.get(2..).unwrap_or_default().to_vec()));
    }
    if let Some(command) = named(first) {
        return Ok((command, words.get(1..).unwrap_or_default().to_vec()));
    }
    let seconds: Vec<&str> =
        COMMANDS.iter().filter_map(|command| command.words.strip_prefix(&format!("{first} "))).collect();
    if !seconds.is_empty() {
        let list = seconds.join(", ");
        return Err(match words.get(1) {
            None => format!("{first} needs one of: {list}"),
            Some(second) => match nearest(second, seconds.iter().copied()) {
                Some(meant) => format!("there is no '{first} {second}'. Did you mean '{first} {meant}'?"),
                None => format!("there is no '{first} {second}', but {list}"),
            },
        });
    }
    let firsts = COMMANDS.iter().map(|command| command.words.split(' ').next().unwrap_or_default());
    let meant = nearest(first, firsts).map(|meant| format!(" Did you mean '{meant}'?")).unwrap_or_default();
    Err(format!("there is no command '{first}'.{meant} 'oxidis help admin commands' lists them"))
}

impl Asked<'_> {
    fn nothing_more(&self) -> Result<(), Trouble> {
        match self.arguments.first() {
            None => Ok(()),
            Some(word) => Err(Trouble::Usage(format!("'{word}' is too much"))),
        }
    }

    fn operands<const N: usize>(&self) -> Result<[&str; N], Trouble> {
        let words: Vec<&str> = self.arguments.iter().map(String::as_str).collect();
        words.try_into().map_err(|words: Vec<&str>| {
            Trouble::Usage(if words.len() < N { "something is missing".into() } else { "there is too much".into() })
        })
    }

    /// Asks, shows the JSON if that is wanted, and else what `text` makes of it.
    fn get<T: serde::de::DeserializeOwned>(
        &self,
        out: &mut Out,
        path: &str,
        text: impl FnOnce(&T, &mut Out),
    ) -> Outcome {
        let value = self.client.call(Method::Get, path, None)?;
        self.show(out, value, text)
    }

    fn show<T: serde::de::DeserializeOwned>(
        &self,
        out: &mut Out,
        value: Value,
        text: impl FnOnce(&T, &mut Out),
    ) -> Outcome {
        if self.options.is_json {
            out.text.push_str(&format!("{value:#}\n"));
            return Ok(0);
        }
        let read = serde_json::from_value(value).map_err(|error| Failure {
            status: None,
            error: format!("the answer of {} is not as expected: {error}", self.client.base()),
            hint: "are the manager and this program of the same version? --json shows the answer as it is".into(),
        })?;
        text(&read, out);
        Ok(0)
    }

    /// Asks for a change; `said` tells that it was made.
    fn change(
        &self,
        out: &mut Out,
        method: Method,
        path: &str,
        body: Value,
        said: impl FnOnce(&Value) -> String,
    ) -> Outcome {
        let body = (method != Method::Delete).then_some(body);
        let value = self.client.call(method, path, body)?;
        if self.options.is_json {
            out.text.push_str(&format!("{value:#}\n"));
        } else {
            out.text.push_str(&said(&value));
            out.text.push('\n');
        }
        Ok(0)
    }
}

fn number<N: std::str::FromStr>(text: &str, what: &str) -> Result<N, Trouble> {
    text.parse().map_err(|_| Trouble::Usage(format!("'{text}' is no {what}")))
}

/// A word as a part of a path.
fn path_word(word: &str) -> String {
    let mut out = String::new();
    for byte in word.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~:".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

fn topology(asked: &Asked<'_>, out: &mut Out) -> Outcome {
    asked.nothing_more()?;
    asked.get(out, "/topology", show::topology)
}

fn members(asked: &Asked<'_>, out: &mut Out) -> Outcome {
    asked.nothing_more()?;
    asked.get(out, "/topology", |topology: &Topology, out| show::members(topology, out))
}

fn groups(asked: &Asked<'_>, out: &mut Out) -> Outcome {
    asked.nothing_more()?;
    asked.get(out, "/groups", |groups: &Vec<Group>, out| show::groups(groups, out))
}

fn group_add(asked: &Asked<'_>, out: &mut Out) -> Outcome {
    let body = match asked.arguments {
        [] => json!({}),
        [id] => json!({ "id": number::<u32>(id, "group number")? }),
        _ => return Err(Trouble::Usage("one number is enough".into())),
    };
    asked.change(out, Method::Post, "/groups", body, |group| {
        let id = &group["id"];
        format!("group {id} added; next: oxidis admin server add {id} HOST:PORT")
    })
}

fn group_remove(asked: &Asked<'_>, out: &mut Out) -> Outcome {
    let [id] = asked.operands()?;
    let id: u32 = number(id, "group number")?;
    asked.change(out, Method::Delete, &format!("/groups/{id}"), Value::Null, |_| format!("group {id} removed"))
}

fn servers(asked: &Asked<'_>, out: &mut Out) -> Outcome {
    asked.nothing_more()?;
    asked.get(out, "/servers", |servers: &Vec<Server>, out| show::servers(servers, out))
}

fn server_add(asked: &Asked<'_>, out: &mut Out) -> Outcome {
    let [group, address] = asked.operands()?;
    let group: u32 = number(group, "group number")?;
    let body = json!({ "address": address, "zone": asked.options.zone, "force": asked.options.is_forced });
    asked.change(out, Method::Post, &format!("/groups/{group}/servers"), body, |server| {
        let role = server["role"].as_str().unwrap_or("server");
        format!("{address} is a {role} of group {group}")
    })
}

fn server_remove(asked: &Asked<'_>, out: &mut Out) -> Outcome {
    let [name] = asked.operands()?;
    let servers: Vec<Server> = asked.client.get("/servers")?;
    let Some(server) = servers.iter().find(|server| server.id == name || server.address == name) else {
        let addresses = servers.iter().map(|server| server.address.as_str());
        let meant = nearest(name, addresses).map(|meant| format!(". Did you mean '{meant}'?")).unwrap_or_default();
        return Err(Trouble::Failed(Failure {
            status: None,
            error: format!("there is no server '{name}'{meant}"),
            hint: "oxidis admin server list shows them".into(),
        }));
    };
    let path = format!("/groups/{}/servers/{}", server.group, path_word(&server.id));
    asked.change(out, Method::Delete, &path, Value::Null, |_| format!("{} left group {}", server.address, server.group))
}

fn proxies(asked: &Asked<'_>, out: &mut Out) -> Outcome {
    asked.nothing_more()?;
    asked.get(out, "/proxies", |proxies: &Vec<Proxy>, out| show::proxies(proxies, out))
}

fn proxy_add(asked: &Asked<'_>, out: &mut Out) -> Outcome {
    let [name, address] = asked.operands()?;
    let body = json!({ "id": name, "address": address, "zone": asked.options.zone });
    asked.change(out, Method::Post, "/proxies", body, |_| format!("proxy {name} is known"))
}

fn proxy_remove(asked: &Asked<'_>, out: &mut Out) -> Outcome {
    let [name] = asked.operands()?;
    let path = format!("/proxies/{}", path_word(name));
    asked.change(out, Method::Delete, &path, Value::Null, |_| format!("proxy {name} is forgotten"))
}

fn slots(asked: &Asked<'_>, out: &mut Out) -> Outcome {
    asked.nothing_more()?;
    asked.get(out, "/slots", |ranges: &Vec<SlotRange>, out| show::slots(ranges, out))
}

fn slots_assign(asked: &Asked<'_>, out: &mut Out) -> Outcome {
    let (ranges, group) = match asked.arguments {
        [ranges] => (ranges, None),
        [ranges, group] => (ranges, Some(number::<u32>(group, "group number")?)),
        _ => return Err(Trouble::Usage("which slots?".into())),
    };
    let mut body = json!({ "slots": ranges });
    if let Some(group) = group {
        body["group"] = json!(group);
    }
    asked.change(out, Method::Post, "/slots/assign", body, |answer| {
        let count = &answer["assigned"];
        match group {
            Some(group) => format!("{count} slots belong to group {group}"),
            None => format!("{count} slots were given out evenly"),
        }
    })
}

fn moves(asked: &Asked<'_>, out: &mut Out) -> Outcome {
    asked.nothing_more()?;
    if asked.options.has_watch {
        return watch::moves(asked.client, None, out.is_terminal);
    }
    asked.get(out, "/moves", |moves: &Vec<Move>, out| show::moves(moves, out))
}

fn move_start(asked: &Asked<'_>, out: &mut Out) -> Outcome {
    let [slots, to] = asked.operands()?;
    let to = number(to, "group number")?;
    let wish = NewMove { slots: SlotsWish::Text(slots.to_owned()), to, rate: asked.options.rate };
    let value: Value = asked.client.post("/moves", &wish)?;
    let begun: Vec<u64> = read_ids(&value);
    asked.show(out, value, |moves: &Vec<Move>, out| show::begun(moves, out))?;
    after_begin(asked, out, &begun)
}

/// The numbers of moves in an answer: of a list of moves, or of a plan.
fn read_ids(value: &Value) -> Vec<u64> {
    match value {
        Value::Array(moves) => moves.iter().filter_map(|one| one["id"].as_u64()).collect(),
        plan => plan["begun"].as_array().into_iter().flatten().filter_map(Value::as_u64).collect(),
    }
}

fn after_begin(asked: &Asked<'_>, out: &mut Out, begun: &[u64]) -> Outcome {
    if !asked.options.has_watch || begun.is_empty() {
        return Ok(0);
    }
    // What was said so far comes before the bars.
    print!("{}", std::mem::take(&mut out.text));
    watch::moves(asked.client, Some(begun), out.is_terminal)
}

fn move_show(asked: &Asked<'_>, out: &mut Out) -> Outcome {
    let [id] = asked.operands()?;
    let id: u64 = number(id, "number of a move")?;
    if asked.options.has_watch {
        return watch::moves(asked.client, Some(&[id]), out.is_terminal);
    }
    asked.get(out, &format!("/moves/{id}"), |one: &Move, out| show::one_move(one, out))
}

fn move_pause(asked: &Asked<'_>, out: &mut Out) -> Outcome {
    for_moves(asked, out, "pause", "stands still")
}

fn move_resume(asked: &Asked<'_>, out: &mut Out) -> Outcome {
    for_moves(asked, out, "resume", "goes on")
}

fn move_cancel(asked: &Asked<'_>, out: &mut Out) -> Outcome {
    for_moves(asked, out, "cancel", "is given up")
}

fn for_moves(asked: &Asked<'_>, out: &mut Out, verb: &str, said: &str) -> Outcome {
    let [which] = asked.operands()?;
    if which != "all" {
        let id: u64 = number(which, "number of a move, nor 'all'")?;
        return asked
            .change(out, Method::Post, &format!("/moves/{id}/{verb}"), json!({}), |_| format!("move {id} {said}"));
    }
    let open: Vec<Move> = asked.client.get("/moves")?;
    let open = open.iter().filter(|one| !one.is_over() && (verb != "resume" || one.is_paused));
    let (mut worst, mut count) = (0, 0);
    for one in open {
        count += 1;
        match asked.client.call(Method::Post, &format!("/moves/{}/{verb}", one.id), Some(json!({}))) {
            Ok(_) => out.text.push_str(&format!("move {} {said}\n", one.id)),
            Err(failure) => {
                worst = 1;
                eprintln!("move {}: {failure}", one.id);
            }
        }
    }
    if count == 0 {
        out.text.push_str("there is no such move\n");
    }
    Ok(worst)
}

fn move_rate(asked: &Asked<'_>, out: &mut Out) -> Outcome {
    let [id, rate] = asked.operands()?;
    let id: u64 = number(id, "number of a move")?;
    let rate = bytes(rate).map_err(Trouble::Usage)?;
    asked.change(out, Method::Post, &format!("/moves/{id}/rate"), json!({ "rate": rate }), |_| match rate {
        0 => format!("move {id} goes as fast as it can"),
        rate => format!("move {id} sends at most {}/s", show::size(rate)),
    })
}

fn plan(asked: &Asked<'_>, out: &mut Out, kind: &str, group: Option<u32>) -> Outcome {
    let options = asked.options;
    let wish = PlanWish { by: options.by.clone(), group, dry_run: options.is_dry, rate: options.rate };
    let value: Value = asked.client.post(&format!("/plans/{kind}"), &wish)?;
    let begun = read_ids(&value);
    asked.show(out, value, |plan: &Plan, out| show::plan(plan, out))?;
    after_begin(asked, out, &begun)
}

fn rebalance(asked: &Asked<'_>, out: &mut Out) -> Outcome {
    asked.nothing_more()?;
    plan(asked, out, "rebalance", None)
}

fn scale_out(asked: &Asked<'_>, out: &mut Out) -> Outcome {
    let [group] = asked.operands()?;
    plan(asked, out, "scale-out", Some(number(group, "group number")?))
}

fn scale_in(asked: &Asked<'_>, out: &mut Out) -> Outcome {
    let [group] = asked.operands()?;
    plan(asked, out, "scale-in", Some(number(group, "group number")?))
}

fn events(asked: &Asked<'_>, out: &mut Out) -> Outcome {
    asked.nothing_more()?;
    let limit = asked.options.limit.unwrap_or(50);
    if !asked.options.has_follow {
        return asked.get(out, &format!("/events?limit={limit}"), |events: &Vec<Event>, out| show::events(events, out));
    }
    let mut path = format!("/events?limit={limit}");
    loop {
        let events: Vec<Event> = asked.client.get(&path)?;
        let mut piece = Out { text: String::new(), is_terminal: false };
        if asked.options.is_json {
            for event in &events {
                piece.text.push_str(&format!("{}\n", serde_json::to_string(event).unwrap_or_default()));
            }
        } else {
            show::events(&events, &mut piece);
        }
        print!("{}", piece.text);
        let after = events.last().map(|event| event.seq);
        if let Some(after) = after {
            path = format!("/events?limit=1000&wait_ms=5000&after={after}");
        } else if !path.contains("wait_ms") {
            path = "/events?limit=1000&wait_ms=5000&after=0".into();
        }
    }
}

fn settings(asked: &Asked<'_>, out: &mut Out) -> Outcome {
    let shown = |settings: &Settings, out: &mut Out| show::settings(settings, out);
    match asked.arguments {
        [] => asked.get(out, "/settings", shown),
        [name, value] => {
            let field = name.replace('-', "_");
            let value = match field.as_str() {
                "move_rate" => bytes(value).map_err(Trouble::Usage)?,
                "moves_per_group" | "freeze_ms" => number(value, "number")?,
                _ => {
                    return Err(Trouble::Usage(format!(
                        "there is no setting '{name}', but moves-per-group, move-rate and freeze-ms"
                    )));
                }
            };
            let value = asked.client.call(Method::Put, "/settings", Some(json!({ field: value })))?;
            asked.show(out, value, shown)
        }
        _ => Err(Trouble::Usage("a name and its value".into())),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn found(words: &[&str]) -> Result<(&'static str, Vec<String>), String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        find(&words).map(|(command, rest)| (command.words, rest))
    }

    #[test]
    fn commands_are_found_by_one_or_two_words() {
        assert_eq!(found(&["slots"]).unwrap().0, "slots");
        assert_eq!(found(&["slots", "assign", "0-5", "1"]).unwrap(), ("slots assign", vec!["0-5".into(), "1".into()]));
        assert_eq!(found(&["topology"]).unwrap().0, "topology");
        assert_eq!(found(&["group"]).unwrap_err(), "group needs one of: list, add, remove");
        assert!(found(&["move", "strat"]).unwrap_err().contains("Did you mean 'move start'?"));
        assert!(found(&["rebalence"]).unwrap_err().contains("Did you mean 'rebalance'?"));
        assert!(found(&[]).is_err());
    }

    #[test]
    fn the_help_lists_every_command() {
        let mut expected = String::new();
        for command in COMMANDS {
            let head = format!("{} {}", command.words, command.operands);
            let head = head.trim_end();
            if head.len() > 29 {
                expected.push_str(&format!("  {head}\n{:33}{}\n", "", command.summary));
            } else {
                expected.push_str(&format!("  {head:<31}{}\n", command.summary));
            }
        }
        assert_eq!(TOPIC, expected);
    }

    #[test]
    fn words_of_paths_are_escaped() {
        assert_eq!(path_word("127.0.0.1:7000"), "127.0.0.1:7000");
        assert_eq!(path_word("a/b ?"), "a%2Fb%20%3F");
    }
}
