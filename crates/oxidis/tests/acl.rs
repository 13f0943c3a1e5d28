//! Users and their rights over sockets, on four workers: what is refused, where, and in which words.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::time::Duration;

use testkit::{Client, Launch, Reply, Server, wait_until};

fn server() -> Server {
    Server::oxidis(&["--io-threads", "4"])
}

fn logged_in(server: &Server, user: &str, password: &str) -> Client {
    let mut client = server.client();
    assert_eq!(client.call(&["AUTH", user, password]).unwrap().text(), "OK", "{user} logs in");
    client
}

fn error(reply: &Reply) -> String {
    assert!(reply.is_error(), "an error, not {reply}");
    reply.text()
}

#[test]
fn each_refusal_has_its_words() {
    let server = server();
    let mut admin = server.client();
    let rules = "ACL SETUSER al on >x ~a* %R~r* %W~w* +@all -debug -config|set resetchannels &news*";
    admin.check(rules, "+OK");
    let mut al = logged_in(&server, "al", "x");
    al.check("ACL WHOAMI; SET a1 1; GET a1; GET r1; SET w1 1", "al; +OK; 1; nil; +OK");
    let key = "NOPERM No permissions to access a key";
    for refused in [
        "GET b",
        "SET r1 1",
        "GET w1",
        "SET w1 1 GET",
        "MSET a 1 b 2",
        "COPY w1 r1",
        "RENAME a1 b1",
        "GEORADIUS a1 0 0 1 m STORE b",
        "GEORADIUS a1 0 0 1 m STORE a STORE b",
        "PFMERGE b",
        "XREADGROUP GROUP g c STREAMS b >",
        "BITFIELD r1 SET u8 0 1",
        "SINTERCARD 1 b",
        "LMPOP 1 b LEFT",
        "OBJECT ENCODING b",
        "BLPOP a b 0",
    ] {
        assert_eq!(error(&al.run(refused)), key, "{refused}");
    }
    let channel = "NOPERM No permissions to access a channel";
    for refused in ["PUBLISH bar 1", "SPUBLISH bar 1", "SUBSCRIBE foo", "PSUBSCRIBE news", "SSUBSCRIBE news1 foo"] {
        assert_eq!(error(&al.run(refused)), channel, "{refused}");
    }
    assert_eq!(error(&al.run("DEBUG SLEEP 0")), "NOPERM User al has no permissions to run the 'debug' command");
    assert_eq!(
        error(&al.run("CONFIG SET maxmemory 0")),
        "NOPERM User al has no permissions to run the 'config|set' command"
    );
    assert_eq!(error(&al.run("SORT a1 BY x*")), "ERR BY option of SORT denied due to insufficient ACL permissions.");
    assert_eq!(
        error(&al.run("SORT_RO a1 GET #")),
        "ERR GET option of SORT denied due to insufficient ACL permissions."
    );
    al.check("CONFIG GET maxmemory; PUBLISH news1 x; BITFIELD r1 GET u8 0", "[maxmemory 0]; :0; [:0]");
    al.check("PSUBSCRIBE news*", "[psubscribe \"news*\" :1]");
}

#[test]
fn pipelines_of_a_restricted_user_are_checked_one_by_one() {
    let server = server();
    let mut admin = server.client();
    admin.check("ACL SETUSER al on nopass ~a* +get +set +select|1; SET b hidden", "+OK; +OK");
    let mut al = logged_in(&server, "al", "any");
    let commands: Vec<Vec<String>> = (0..200)
        .map(|index| match index % 4 {
            0 => vec!["SET".to_owned(), format!("a{index}"), "1".to_owned()],
            1 => vec!["GET".to_owned(), format!("a{}", index - 1)],
            2 => vec!["GET".to_owned(), "b".to_owned()],
            _ => vec!["STRLEN".to_owned(), "a0".to_owned()],
        })
        .collect();
    for (index, reply) in al.pipeline(&commands).unwrap().iter().enumerate() {
        let expected = match index % 4 {
            0 => "OK",
            1 => "1",
            2 => "NOPERM No permissions to access a key",
            _ => "NOPERM User al has no permissions to run the 'strlen' command",
        };
        assert_eq!(reply.text(), expected, "command {index}");
    }
    al.check("SELECT 1", "+OK");
    assert_eq!(error(&al.run("SELECT 2")), "NOPERM User al has no permissions to run the 'select' command");
}

#[test]
fn rights_hold_at_the_moment_of_execution() {
    let server = server();
    let mut admin = server.client();
    admin.check("ACL SETUSER al on nopass ~* &* +@all; RPUSH l 1", "+OK; :1");
    let mut al = logged_in(&server, "al", "any");
    al.check("MULTI; GET a; SET a 1; PUBLISH c 1; INCR b", "+OK; +QUEUED; +QUEUED; +QUEUED; +QUEUED");
    admin.check("ACL SETUSER al -set resetkeys ~a resetchannels", "+OK");
    let changed = "NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. This command is no longer allowed for the following reason: ";
    let replies = al.run("EXEC");
    let texts: Vec<String> = replies.items().unwrap().iter().map(Reply::text).collect();
    assert_eq!(texts[1], format!("{changed}no permission to execute the command or subcommand"));
    assert_eq!(texts[2], format!("{changed}no permission to access one of the channels used as arguments"));
    assert_eq!(texts[3], format!("{changed}no permission to touch the specified keys"));
    assert!(replies.items().unwrap()[0].is_null());
    // A refusal while queueing spoils the transaction.
    al.check("MULTI", "+OK");
    assert_eq!(error(&al.run("GET b")), "NOPERM No permissions to access a key");
    assert_eq!(error(&al.run("EXEC")), "EXECABORT Transaction discarded because of previous errors.");
    // A transaction that takes its own rights away.
    admin.check("ACL SETUSER al ~* +@all", "+OK");
    al.check("MULTI; ACL SETUSER al -get; GET a; EXEC", "+OK; +QUEUED; +QUEUED; [+OK -NOPERM ACLs rules changed...");
}

#[test]
fn a_waiting_command_is_checked_again_when_it_can_go_on() {
    let server = server();
    let mut admin = server.client();
    admin.check("ACL SETUSER al on nopass ~l* +@all", "+OK");
    let mut al = logged_in(&server, "al", "any");
    al.send(&["BLPOP", "l1", "0"]).unwrap();
    let blocked = |admin: &mut Client| {
        wait_until("a blocked client", Duration::from_secs(10), || match admin.info("blocked_clients").as_deref() {
            Some("1") => Ok(()),
            other => Err(format!("{other:?}")),
        });
    };
    blocked(&mut admin);
    admin.check("ACL SETUSER al -blpop; RPUSH l1 v", "+OK; :1");
    assert_eq!(error(&al.read().unwrap()), "NOPERM User al has no permissions to run the 'blpop' command");
    admin.check("LRANGE l1 0 -1; ACL SETUSER al +blpop", "[v]; +OK");
    al.send(&["BLPOP", "l2", "0"]).unwrap();
    blocked(&mut admin);
    admin.check("ACL SETUSER al resetkeys ~l1; RPUSH l2 v", "+OK; :1");
    assert_eq!(error(&al.read().unwrap()), "NOPERM No permissions to access a key");
    admin.check("ACL SETUSER al resetkeys ~l*; DEL l2", "+OK; :1");
    al.send(&["BLPOP", "l2", "0"]).unwrap();
    blocked(&mut admin);
    admin.check("RPUSH l2 v", ":1");
    assert_eq!(al.read().unwrap().to_string(), "[l2 v]");
    let log = admin.run("ACL LOG");
    let newest = log.items().unwrap()[0].items().unwrap().to_vec();
    assert!(newest[13].text().contains("user=al"), "the client is described: {}", newest[13]);
}

#[test]
fn clients_of_a_removed_user_are_closed() {
    let server = server();
    let mut admin = server.client();
    admin.check("ACL SETUSER al on nopass +@all ~*", "+OK");
    let mut clients: Vec<Client> = (0..20).map(|_| logged_in(&server, "al", "x")).collect();
    assert_eq!(error(&admin.run("ACL DELUSER default")), "ERR The 'default' user cannot be removed");
    admin.check("ACL DELUSER al nobody", ":1");
    for client in &mut clients {
        // Nothing runs by the rights of a user that is gone, however fast it is asked.
        let reply = client.call(&["SET", "k", "1"]);
        assert!(reply.is_err(), "{reply:?}");
    }
    admin.check("EXISTS k", ":0");
    admin.check("ACL SETUSER me on nopass +@all ~*", "+OK");
    let mut me = logged_in(&server, "me", "x");
    me.check("ACL DELUSER me", ":1");
    assert!(me.closes_within(Duration::from_secs(5)));
}

#[test]
fn subscribers_that_lose_their_channels_are_closed() {
    let server = server();
    let mut admin = server.client();
    admin.check("ACL SETUSER s on nopass +@all &a* &b", "+OK");
    let mut on_a = logged_in(&server, "s", "x");
    let mut on_b = logged_in(&server, "s", "x");
    let mut on_pattern = logged_in(&server, "s", "x");
    let mut on_shard = logged_in(&server, "s", "x");
    on_a.check("SUBSCRIBE a1", "[subscribe a1 :1]");
    on_b.check("SUBSCRIBE b", "[subscribe b :1]");
    on_pattern.check("PSUBSCRIBE a*", "[psubscribe \"a*\" :1]");
    on_shard.check("SSUBSCRIBE a2", "[ssubscribe a2 :1]");
    admin.check("ACL SETUSER s &c; PUBLISH a1 x", "+OK; :2");
    assert_eq!(on_a.read().unwrap().to_string(), "[message a1 x]");
    admin.check("ACL SETUSER s resetchannels &b", "+OK");
    for client in [&mut on_a, &mut on_shard] {
        assert!(client.closes_within(Duration::from_secs(5)));
    }
    assert_eq!(on_pattern.read().unwrap().to_string(), "[pmessage \"a*\" a1 x]");
    assert!(on_pattern.closes_within(Duration::from_secs(5)));
    on_b.check("PING", "[pong \"\"]");
}

#[test]
fn the_default_user_may_be_restricted_too() {
    let server = Server::oxidis(&["--io-threads", "4", "--requirepass", "pw"]);
    let mut first = server.client();
    assert_eq!(error(&first.run("GET k")), "NOAUTH Authentication required.");
    first.check("AUTH pw; ACL SETUSER adm on >z ~* &* +@all", "+OK; +OK");
    let mut adm = logged_in(&server, "adm", "z");
    adm.check("ACL SETUSER default -get resetkeys ~k*", "+OK");
    assert_eq!(error(&first.run("GET k")), "NOPERM User default has no permissions to run the 'get' command");
    assert_eq!(error(&first.run("SET x 1")), "NOPERM No permissions to access a key");
    first.check("SET k 1", "+OK");
    adm.check("ACL SETUSER default off", "+OK");
    first.check("SET k 2", "+OK");
    let mut late = server.client();
    assert_eq!(error(&late.run("PING")), "NOAUTH Authentication required.");
    assert_eq!(error(&late.run("AUTH pw")), "WRONGPASS invalid username-password pair or user is disabled.");
    adm.check("ACL SETUSER default on +@all allkeys; CONFIG SET requirepass other", "+OK; +OK");
    first.check("GET k", "2");
    late.check("AUTH other; GET k; RESET", "+OK; 2; +RESET");
    assert_eq!(error(&late.run("GET k")), "NOAUTH Authentication required.");
    assert_eq!(
        error(&late.run("HELLO 3 AUTH adm wrong")),
        "WRONGPASS invalid username-password pair or user is disabled."
    );
    late.run("HELLO 3 AUTH adm z");
    late.check("ACL WHOAMI", "adm");
}

#[test]
fn equal_refusals_are_one_entry() {
    let server = server();
    let mut admin = server.client();
    admin.check("ACL SETUSER al on >x ~a +get +multi", "+OK");
    let mut al = server.client();
    for _ in 0..3 {
        assert!(al.run("AUTH al wrong").is_error());
    }
    al.check("AUTH al x", "+OK");
    for command in ["GET b", "GET b", "SET a 1", "MULTI", "GET b", "PUBLISH c 1"] {
        al.run(command);
    }
    let log = admin.run("ACL LOG");
    let entries: Vec<Vec<String>> =
        log.items().unwrap().iter().map(|entry| entry.items().unwrap().iter().map(Reply::text).collect()).collect();
    let facts: Vec<String> = entries
        .iter()
        .map(|entry| [&entry[1], &entry[3], &entry[5], &entry[7], &entry[9]].map(String::as_str).join(" "))
        .collect();
    assert_eq!(
        facts,
        [
            ":1 command multi publish al",
            ":1 key multi b al",
            ":1 command toplevel set al",
            ":2 key toplevel b al",
            ":3 auth toplevel AUTH al"
        ]
    );
    assert_eq!(
        entries[0].iter().step_by(2).map(String::as_str).collect::<Vec<_>>().join(" "),
        "count reason context object username age-seconds client-info entry-id timestamp-created timestamp-last-updated"
    );
    wait_until("the client's whole line", Duration::from_secs(5), || {
        let log = admin.run("ACL LOG 1").to_string();
        if log.contains("cmd=publish user=al") && !log.contains("fd=-1") { Ok(()) } else { Err(log) }
    });
    for (field, count) in [("auth", "3"), ("cmd", "2"), ("key", "3"), ("channel", "0")] {
        assert_eq!(admin.info(&format!("acl_access_denied_{field}")).as_deref(), Some(count), "{field}");
    }
    admin.check("CONFIG SET acllog-max-len 1", "+OK");
    al.run("DEL a");
    admin.check("ACL LOG RESET; ACL LOG", "+OK; []");
}

#[test]
fn clients_are_listed_and_killed_by_user() {
    let server = server();
    let mut admin = server.client();
    admin.check("ACL SETUSER al on nopass +@all", "+OK");
    let mut al = logged_in(&server, "al", "x");
    assert!(admin.run("CLIENT LIST").text().contains(" user=al "));
    assert_eq!(error(&admin.run("CLIENT KILL USER nobody")), "ERR No such user 'nobody'");
    admin.check("CLIENT KILL USER al", ":1");
    assert!(al.closes_within(Duration::from_secs(5)));
}

#[test]
fn users_survive_in_the_config_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("redis.conf");
    std::fs::write(&file, "io-threads 2\nuser al on >secret ~a* +get (+set ~b*)\n# a remark\n").unwrap();
    let path = file.to_str().unwrap();
    let expected = "user al on sanitize-payload #2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b ~a* resetchannels -@all +get (~b* resetchannels -@all +set)";
    let (mut list, users) = (String::new(), |client: &mut Client| client.run("ACL LIST").to_string());
    {
        let server = Launch::oxidis().args(&[path]).directory(folder.path()).start();
        let mut admin = server.client();
        assert!(users(&mut admin).contains(expected), "{}", users(&mut admin));
        admin.check(
            "ACL SETUSER bo on nopass allcommands allchannels; ACL SETUSER default >pw; CONFIG REWRITE",
            "+OK; +OK; +OK",
        );
        list.push_str(&users(&mut admin));
    }
    let written = std::fs::read_to_string(&file).unwrap();
    assert!(written.contains("# a remark") && written.contains(expected), "{written}");
    let server = Launch::oxidis().args(&[path]).directory(folder.path()).try_start();
    // The default user has a password now, so the readiness probe's PING is refused, which is an answer too.
    let server = server.unwrap();
    let mut admin = server.client();
    admin.check("AUTH pw", "+OK");
    assert_eq!(users(&mut admin), list);
}

#[test]
fn users_live_in_a_file_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("users.acl");
    std::fs::write(&file, "user al on nopass ~* +@all\n\nuser bo off\n").unwrap();
    let path = file.to_str().unwrap();
    let server = Server::oxidis(&["--aclfile", path, "--io-threads", "2"]);
    let mut admin = server.client();
    admin.check("ACL USERS", "[al bo default]");
    let mut al = logged_in(&server, "al", "x");
    admin.check("ACL SETUSER cy on nopass (+get ~c*); ACL SAVE", "+OK; +OK");
    let saved = std::fs::read_to_string(&file).unwrap();
    assert_eq!(
        saved,
        "user al on nopass sanitize-payload ~* resetchannels +@all\n\
         user bo off sanitize-payload resetchannels -@all\n\
         user cy on nopass sanitize-payload resetchannels -@all (~c* resetchannels -@all +get)\n\
         user default on nopass sanitize-payload ~* &* +@all\n"
    );
    std::fs::write(&file, "user al on +@nope\nuser al on\nnothing\nuser bo #x >p\nuser cy (+get\n").unwrap();
    assert_eq!(
        error(&admin.run("ACL LOAD")),
        format!(
            "ERR {path}:1: Error in applying operation '+@nope': Unknown command or category name in ACL. WARNING: Duplicate user 'al' found on line 2. {path}:3 should start with user keyword followed by the username. {path}:4: The password hash must be exactly 64 characters and contain only lowercase hexadecimal characters. {path}:5: Unmatched parenthesis in selector definition.WARNING: ACL errors detected, no change to the previously active ACL rules was performed"
        )
    );
    al.check("PING", "+PONG");
    std::fs::write(&file, &saved).unwrap();
    admin.check("ACL LOAD; ACL USERS", "+OK; [al bo cy default]");
    // Redis: whoever is not the default user's has to log in again.
    assert!(al.closes_within(Duration::from_secs(5)));
    std::fs::remove_file(&file).unwrap();
    assert_eq!(
        error(&admin.run("ACL LOAD")),
        format!("ERR Error loading ACLs, opening file '{path}': No such file or directory")
    );
}

#[test]
fn a_server_with_broken_users_does_not_start() {
    let folder = tempfile::tempdir().unwrap();
    let start = |text: &str, more: &[&str]| {
        let file = folder.path().join("redis.conf");
        std::fs::write(&file, text).unwrap();
        let mut args = vec![file.to_str().unwrap()];
        args.extend_from_slice(more);
        Launch::oxidis().args(&args).try_start().map(drop).unwrap_err().to_string()
    };
    let log = start("user al on ~* +nosuch\n", &[]);
    assert!(
        log.contains(
            "Error loading ACL rule '+nosuch' for the user named 'al': Unknown command or category name in ACL"
        ),
        "{log}"
    );
    assert!(log.contains("Critical error while loading ACLs. Exiting."), "{log}");
    let log = start("user al on\nuser al off\n", &[]);
    assert!(
        log.contains(
            "Error in user declaration 'al': Duplicate user found. A user can only be defined once in config files"
        ),
        "{log}"
    );
    let log = start("user al on\n", &["--aclfile", "/nonexistent"]);
    assert!(
        log.contains("please define either an ACL file or declare users directly in your redis.conf, but not both."),
        "{log}"
    );
    let log = start("aclfile /nonexistent\n", &[]);
    assert!(log.contains("Aborting Redis startup because of ACL errors: Error loading ACLs, opening file '/nonexistent': No such file or directory"), "{log}");
}

#[test]
fn secrets_show_up_nowhere() {
    const SECRETS: [&str; 4] = ["planted-one", "planted-two", "planted-three", "planted-four"];
    let server = Server::oxidis(&["--io-threads", "2", "--slowlog-log-slower-than", "0", "--loglevel", "debug"]);
    let mut admin = server.client();
    let mut monitor = server.client();
    monitor.check("MONITOR", "+OK");
    for command in [
        "ACL SETUSER al on >planted-one +@all ~*",
        "ACL SETUSER al <planted-two",
        "ACL SETUSER planted-three >planted-one nonsense",
        "AUTH al planted-one",
        "AUTH planted-four",
        "AUTH al planted-two planted-three",
        "HELLO 3 AUTH al planted-one SETNAME x",
        "HELLO 3 SETNAME y AUTH al planted-two",
        "CONFIG SET requirepass planted-two",
        "CONFIG SET maxmemory 0 masterauth planted-three",
        "CONFIG SET masterauth planted-three nosuch 1",
        "MIGRATE h 1 k 0 1 AUTH planted-one",
        "MIGRATE h 1 k 0 1 AUTH2 al planted-one",
        "PING",
    ] {
        admin.run(command);
    }
    let shown = [
        admin.run("SLOWLOG GET -1").to_string(),
        admin.run("INFO everything").to_string(),
        admin.run("CLIENT LIST").to_string(),
        admin.run("ACL LIST").to_string(),
        admin.run("ACL LOG").to_string(),
        admin.run("LATENCY DOCTOR").to_string(),
        String::from_utf8_lossy(&monitor.read_to_end(Duration::from_millis(300)).0).into_owned(),
        server.log(),
    ];
    for secret in SECRETS {
        for text in &shown {
            // A name that is no user's is told to those who may read ACL LOG, as in Redis.
            assert!(!text.contains(secret), "{secret} in {text}");
        }
    }
}
