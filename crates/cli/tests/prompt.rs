//! The prompt, through a pseudo-terminal.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::os::unix::fs::PermissionsExt;

use support::{Server, Terminal};

/// Our program at the prompt of a server, with history and preferences of its own.
fn prompt(server: &Server, options: &[&str]) -> Terminal {
    let socket = server.socket();
    let history = server.folder.path().join("history").display().to_string();
    let arguments: Vec<&str> = [&["-s", &socket], options].concat();
    let mut terminal =
        Terminal::start(&arguments, &[("REDISCLI_HISTFILE", &history), ("REDISCLI_RCFILE", "/dev/null")]);
    terminal.expect(&format!("redis {socket}"));
    terminal.expect("> ");
    terminal
}

#[test]
fn prompt_tells_database_and_transaction() {
    let server = Server::start(&[]);
    let mut terminal = prompt(&server, &[]);
    terminal.press("select 3\r");
    terminal.expect("OK");
    terminal.expect("[3]> ");
    terminal.press("multi\r");
    terminal.expect("[3](TX)> ");
    terminal.press("set a 1\r");
    terminal.expect("QUEUED");
    terminal.press("exec\r");
    terminal.expect("1) OK");
    terminal.expect("[3]> ");
    terminal.press("2 incr a\r");
    terminal.expect("(integer) 2");
    terminal.expect("(integer) 3");
    terminal.press("get \"a\"b\r");
    terminal.expect("Invalid argument(s)");
    terminal.press("quit\r");
    assert_eq!(terminal.end(), Some(0));
}

#[test]
fn hints_completion_and_help() {
    let server = Server::start(&[]);
    let mut terminal = prompt(&server, &[]);
    terminal.press("hset ");
    terminal.expect("key field value [field value ...]");
    terminal.press("mykey ");
    terminal.expect("field value [field value ...]");
    terminal.press("f v\r");
    terminal.expect("(integer) 1");
    terminal.press("config ge\t");
    terminal.expect("CONFIG");
    terminal.expect("GET");
    terminal.press(" maxclients\r");
    terminal.expect("1) \"maxclients\"");
    // A key of this session.
    terminal.press("hlen my\t\r");
    terminal.expect("mykey");
    terminal.expect("(integer) 1");
    terminal.press("help @pubsub\r");
    terminal.expect("PUBLISH");
    terminal.press("help get\r");
    terminal.expect("summary:");
    terminal.expect("group:");
    terminal.press(":set nohints\r");
    terminal.expect("> ");
    terminal.press("peek mykey\r");
    terminal.expect("type: hash (listpack)");
}

#[test]
fn history_keeps_commands_but_no_secrets() {
    let server = Server::start(&[]);
    let path = server.folder.path().join("history");
    std::fs::write(&path, "get old\n").unwrap();
    let mut terminal = prompt(&server, &[]);
    terminal.press("set a 1\r");
    terminal.expect("OK");
    terminal.press("auth secret\r");
    terminal.expect("(error)");
    terminal.press("acl setuser u >secret\r");
    terminal.expect("OK");
    terminal.press("auth \"secret\"secret\r");
    terminal.expect("Invalid argument(s)");
    terminal.press("get a\r");
    terminal.expect("\"1\"");
    // Up twice, past the command before.
    terminal.expect("> ");
    terminal.press("\x1b[A\x1b[A\r");
    terminal.expect("OK");
    // Between two prompts the terminal itself takes control keys.
    terminal.expect("> ");
    terminal.press("\x04");
    assert_eq!(terminal.end(), Some(0));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "get old\nset a 1\nget a\nset a 1\n");
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn control_c_clears_the_line_then_leaves() {
    let server = Server::start(&[]);
    let mut terminal = prompt(&server, &[]);
    terminal.press("get abc");
    terminal.expect("abc");
    terminal.press("\x03");
    terminal.expect("> ");
    terminal.press("ping\r");
    terminal.expect("PONG");
    terminal.expect("> ");
    terminal.press("\x03");
    assert_eq!(terminal.end(), Some(0));
}

#[test]
fn control_c_leaves_a_wait() {
    let server = Server::start(&[]);
    let mut terminal = prompt(&server, &[]);
    terminal.press("blpop list 0\r");
    let blocked = || server.redis(&["info", "clients"]).contains("blocked_clients:1");
    while !blocked() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    terminal.press("\x03");
    terminal.expect("Interrupted");
    terminal.expect("not connected> ");
    terminal.press("ping\r");
    terminal.expect("PONG");
    terminal.press("monitor\r");
    terminal.expect("OK");
    server.redis(&["get", "seen"]);
    terminal.expect("\"get\" \"seen\"");
    terminal.press("\x03");
    terminal.expect("> ");
    terminal.press("ping\r");
    terminal.expect("PONG");
}

#[test]
fn subscribed_mode_shows_messages_and_takes_commands() {
    let server = Server::start(&[]);
    for options in [&["-2"][..], &["-3"]] {
        let mut terminal = prompt(&server, options);
        terminal.press("subscribe news\r");
        terminal.expect("1) \"subscribe\"");
        terminal.expect("Reading messages... (press Ctrl-C to quit or any key to type command)");
        server.redis(&["publish", "news", "first"]);
        terminal.expect("\"first\"");
        terminal.expect("Reading messages");
        terminal.press("ping\r");
        terminal.expect("(subscribed mode)> ");
        terminal.expect(if options == ["-2"] { "1) \"pong\"" } else { "PONG" });
        terminal.expect("Reading messages");
        terminal.press("\x03");
        terminal.expect("> ");
        terminal.press("get a\r");
        terminal.expect("(nil)");
        terminal.press("quit\r");
        assert_eq!(terminal.end(), Some(0));
    }
}

#[test]
fn comes_back_after_a_restart() {
    let mut server = Server::start(&[]);
    let mut terminal = prompt(&server, &["-n", "2"]);
    terminal.press("get a\r");
    terminal.expect("(nil)");
    server.restart();
    terminal.press("get a\r");
    terminal.expect("Error: ");
    terminal.expect("not connected> ");
    terminal.press("set a 1\r");
    terminal.expect("OK");
    terminal.expect("[2]> ");
}

#[test]
fn asks_before_danger() {
    let server = Server::start(&[]);
    server.redis(&["set", "a", "1"]);
    let mut terminal = prompt(&server, &[]);
    terminal.press("flushall\r");
    terminal.expect("(type 'yes' to accept): ");
    terminal.press("no\r");
    terminal.expect("Not sent.");
    assert_eq!(server.redis(&["dbsize"]), "1");
    terminal.press("flushall\r");
    terminal.expect("(type 'yes' to accept): ");
    terminal.press("yes\r");
    terminal.expect("OK");
    let mut terminal = prompt(&server, &["--yes"]);
    terminal.press("flushall\r");
    terminal.expect("OK");
}

#[test]
fn invalidations_are_shown_between_replies() {
    let server = Server::start(&[]);
    let mut terminal = prompt(&server, &["-3"]);
    terminal.press("client tracking on\r");
    terminal.expect("OK");
    terminal.press("get foo\r");
    terminal.expect("(nil)");
    server.redis(&["set", "foo", "bar"]);
    terminal.press("ping\r");
    terminal.expect("-> invalidate: 'foo'");
    terminal.expect("PONG");
}

#[test]
fn replies_go_to_programs_and_pagers() {
    let server = Server::start(&[]);
    server.redis(&["rpush", "list", "one", "two", "three"]);
    let mut terminal = prompt(&server, &[]);
    terminal.press("lrange list 0 -1 | grep -c o\r");
    terminal.expect("\r\n2\r\n");
    terminal.expect("> ");
    terminal.press("monitor | head -1\r");
    terminal.expect("\r\nOK\r\n");
    terminal.press("\x03");
    terminal.expect("> ");
    terminal.press(":set timing\r");
    terminal.expect("> ");
    terminal.press("llen list\r");
    terminal.expect("(integer) 3");
    terminal.expect(" ms; O(1)");
    terminal.press("set doc '{\"a\":[1]}'\r");
    terminal.expect("OK");
    terminal.press(":decode json\r");
    terminal.expect("> ");
    terminal.press("get doc\r");
    terminal.expect("{\r\n  \"a\": [\r\n    1\r\n  ]\r\n}");
    terminal.press(":topology\r");
    terminal.expect("role:master");
    terminal.press(":slot foo\r");
    terminal.expect("12182");
}

#[test]
fn the_bottom_line_tells_time_and_cost() {
    let server = Server::start(&[]);
    let mut terminal = prompt(&server, &[]);
    terminal.resize(24, 60);
    terminal.press(":set bottomline\r");
    // Only the lines above it scroll.
    terminal.expect("\x1b[1;23r");
    terminal.expect("> ");
    terminal.press("get a\r");
    terminal.expect("(nil)");
    terminal.expect("\x1b7\x1b[24;1H\x1b[7m GET: ");
    terminal.expect(" ms; O(1) ");
    terminal.expect("\x1b[0m\x1b8");
    terminal.expect("> ");
    // Another size of the screen.
    terminal.resize(30, 60);
    terminal.press("exists a\r");
    terminal.expect("\x1b[1;29r");
    terminal.expect("\x1b[30;1H\x1b[7m EXISTS: ");
    terminal.expect("> ");
    // Other programs get the whole screen.
    terminal.press("get a | cat\r");
    terminal.expect("\x1b7\x1b[r\x1b[30;1H\x1b[2K\x1b8");
    terminal.expect("\x1b[1;29r");
    terminal.expect("> ");
    terminal.press("quit\r");
    terminal.expect("\x1b[r\x1b[30;1H\x1b[2K");
    assert_eq!(terminal.end(), Some(0));
}

#[test]
fn profiles_bring_their_options() {
    let server = Server::start(&[]);
    let profiles = server.folder.path().join("profiles");
    std::fs::write(&profiles, format!("other -p 1\nprod -s {} --readonly --red-prompt\n", server.socket())).unwrap();
    let mut terminal = Terminal::start(
        &["--profile", "prod", "-n", "1"],
        &[
            ("OXIDIS_PROFILES", profiles.to_str().unwrap()),
            ("REDISCLI_HISTFILE", "/dev/null"),
            ("REDISCLI_RCFILE", "/dev/null"),
        ],
    );
    terminal.expect("\x1b[1;31mredis ");
    terminal.expect("[1]> ");
    terminal.press("set a 1\r");
    terminal.expect("Not sent");
    terminal.press("get a\r");
    terminal.expect("(nil)");
}

#[test]
fn an_open_quote_goes_on_in_the_next_line() {
    let server = Server::start(&[]);
    let path = server.folder.path().join("history");
    let mut terminal = prompt(&server, &[]);
    terminal.press("set poem \"one\r");
    terminal.press("two\" ex 100\r");
    terminal.expect("OK");
    assert_eq!(server.redis(&["get", "poem"]), "one\ntwo");
    terminal.expect("> ");
    // Ctrl-C gives it up.
    terminal.press("get 'never\r");
    terminal.expect("never");
    terminal.press("ending\x03");
    terminal.expect_prompt();
    terminal.press("strlen poem\r");
    terminal.expect("(integer) 7");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "set poem \"one\\ntwo\" ex 100\nstrlen poem\n");
}

#[test]
fn pasted_lines_run_one_by_one() {
    let server = Server::start(&[]);
    let mut terminal = prompt(&server, &[]);
    terminal.press("\x1b[200~set a 1\nincr a\nget a\x1b[201~\r");
    terminal.expect("OK");
    terminal.expect("(integer) 2");
    terminal.expect("\"2\"");
}

#[test]
fn mistakes_are_shown_while_they_are_typed() {
    let server = Server::start(&[]);
    let mut terminal = prompt(&server, &[]);
    for (line, problem) in [
        ("gett k ", "<- no command of Redis 7.2; GET?"),
        ("get k x ", "<- too many arguments"),
        ("expire k soon ", "<- 'soon' does not fit: sec"),
        ("2 set k v FX ", "<- 'FX' does not fit: "),
        ("get \"k\"x", "<- a space must follow the closing quote"),
    ] {
        terminal.press(line);
        terminal.expect(problem);
        terminal.press("\x03");
        terminal.expect_prompt();
    }
    terminal.shown.clear();
    // Nothing is blamed on a line that is right so far.
    terminal.press("set k v EX 5 ");
    terminal.expect("[NX|XX]");
    assert!(!terminal.shown.contains("<-"), "{:?}", terminal.shown);
}

#[test]
fn completion_of_arguments_and_own_words() {
    let server = Server::start(&[]);
    let mut terminal = prompt(&server, &[]);
    for (line, completed) in [
        ("expire k 5 N\t", "NX"),
        ("zadd z INC\t", "INCR"),
        (":se\t", ":set"),
        (":set nop\t", "nopager"),
        (":decode msg\t", "msgpack"),
        ("3 HGETA\t", "HGETALL"),
        ("help @pubs\t", "@pubsub"),
    ] {
        terminal.press(line);
        terminal.expect(completed);
        terminal.press("\x03");
        terminal.expect_prompt();
    }
    terminal.press("select 7\r");
    terminal.expect("[7]> ");
    terminal.press("select 0\r");
    terminal.expect("OK");
    terminal.expect("> ");
    terminal.press("select 7\t\r");
    terminal.expect("[7]> ");
}

/// Between two prompts the terminal is not the editor's; the key must wait for it.
#[test]
fn control_d_ahead_of_the_prompt_is_kept() {
    let server = Server::start(&[]);
    let mut terminal = prompt(&server, &[]);
    terminal.press("blpop list 0.5\r");
    let blocked = || server.redis(&["info", "clients"]).contains("blocked_clients:1");
    while !blocked() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    terminal.press("\x04");
    terminal.expect("(nil)");
    assert_eq!(terminal.end(), Some(0));
}

#[test]
fn history_is_searched() {
    let server = Server::start(&[]);
    let path = server.folder.path().join("history");
    std::fs::write(&path, "set needle 1\nget other\n").unwrap();
    let mut terminal = prompt(&server, &[]);
    terminal.press("\x12need");
    terminal.expect("need': ");
    terminal.expect("needle 1");
    terminal.press("\r");
    terminal.expect("OK");
    assert_eq!(server.redis(&["get", "needle"]), "1");
    // A line of the history is offered behind the cursor and taken with the right arrow.
    terminal.expect("> ");
    terminal.press("ge");
    terminal.expect("t other");
    terminal.press("\x1b[C\r");
    terminal.expect("(nil)");
}

#[test]
fn nothing_but_replies_goes_to_a_file() {
    let server = Server::start(&[]);
    let path = server.folder.path().join("out");
    let socket = server.socket();
    let environment = [("REDISCLI_HISTFILE", "/dev/null"), ("REDISCLI_RCFILE", "/dev/null")];
    let file = std::fs::File::create(&path).unwrap();
    let mut terminal = Terminal::start_with(&["-s", &socket], &environment, Some(file));
    terminal.press("set a 1\rget a\rflushall\rquit\r");
    assert_eq!(terminal.end(), Some(0));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "OK\n1\nOK\n");
}
