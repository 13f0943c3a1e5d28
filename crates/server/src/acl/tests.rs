#![allow(clippy::unwrap_used, clippy::expect_used)]

use super::check::{self, Denied, check};
use super::log::{AclLog, Context, Reason, Refusal};
use super::rules::{self, RuleError, Rules, merge_selectors};
use super::{Acl, file};
use commands::table;
use fastrand::Rng;

fn user(words: &str) -> Rules {
    let mut user = Rules::new(false);
    let words: Vec<Vec<u8>> = words.split(' ').map(|word| word.as_bytes().to_vec()).collect();
    for word in merge_selectors(&words).expect("parentheses match") {
        user.apply(&word, false).unwrap_or_else(|error| panic!("{}: {error:?}", String::from_utf8_lossy(&word)));
    }
    user
}

fn verdict(user: &Rules, call: &str) -> Result<(), Denied> {
    let args: Vec<&[u8]> = call.split(' ').map(str::as_bytes).collect();
    let spec = table::resolve(args.as_slice()).expect("a known command");
    check(user, spec, args.as_slice())
}

fn error(words: &str) -> RuleError {
    let mut user = Rules::new(false);
    words.split(' ').find_map(|word| user.apply(word.as_bytes(), false).err()).expect("a rule that is refused")
}

#[test]
fn what_one_rule_allows() {
    let key = |at| Err(Denied::Key(at));
    for (words, call, expected) in [
        ("+@all ~a*", "GET a", Ok(())),
        ("+@all ~a*", "GET b", key(1)),
        ("+@all ~a*", "MSET a 1 b 2", key(3)),
        ("+get ~a*", "SET a 1", Err(Denied::Command)),
        ("+@all %R~a", "SET a 1", key(1)),
        ("+@all %W~a", "SET a 1", Ok(())),
        ("+@all %W~a", "SET a 1 GET", key(1)),
        ("+@all %R~a %W~b", "COPY a b", Ok(())),
        ("+@all %R~a %W~b", "COPY b a", key(1)),
        ("+@all %R~a %W~a", "SET a 1 GET", Ok(())),
        ("+@all ~a", "EVAL x 2 a b", key(4)),
        ("+@all ~a", "GEORADIUS a 0 0 1 m STORE a STORE b", key(9)),
        ("+@all ~a", "PFMERGE b", key(1)),
        ("+@all %R~*", "OBJECT ENCODING k", Ok(())),
        ("+config|get", "CONFIG GET x", Ok(())),
        ("+config|get", "CONFIG SET x y", Err(Denied::Command)),
        ("+config -config|set", "CONFIG SET x y", Err(Denied::Command)),
        ("-@all +select|1", "SELECT 1", Ok(())),
        ("-@all +select|1", "SELECT 2", Err(Denied::Command)),
        ("-@all", "AUTH x", Ok(())),
        ("+@all &a*", "PUBLISH ab 1", Ok(())),
        ("+@all &a*", "PUBLISH b 1", Err(Denied::Channel(1))),
        ("+@all &a*", "SUBSCRIBE ab b", Err(Denied::Channel(2))),
        ("+@all &a*", "PSUBSCRIBE a*", Ok(())),
        ("+@all &a*", "PSUBSCRIBE ab", Err(Denied::Channel(1))),
        ("+@all &a*", "UNSUBSCRIBE b", Ok(())),
        ("-@all (+get ~a) (+set ~b)", "GET a", Ok(())),
        ("-@all (+get ~a) (+set ~b)", "GET b", key(1)),
        ("-@all (+mget ~a) (+mget ~b)", "MGET a b", key(2)),
    ] {
        assert_eq!(verdict(&user(words), call), expected, "{words}: {call}");
    }
}

#[test]
fn rules_are_shown_as_they_were_given() {
    for (words, shown) in [
        ("on", "on sanitize-payload resetchannels -@all"),
        ("+@all ~* &* nopass", "off nopass sanitize-payload ~* &* +@all"),
        ("+get +set +get ~a %R~b %W~a", "off sanitize-payload ~a %R~b resetchannels -@all +set +get"),
        ("+config|get +config", "off sanitize-payload resetchannels -@all +config"),
        ("+config -config|get", "off sanitize-payload resetchannels -@all +config -config|get"),
        ("+@all -@write +set", "off sanitize-payload resetchannels +@all -@write +set"),
        (
            "(+get ~a) &x (+set ~b)",
            "off sanitize-payload resetchannels &x -@all (~a resetchannels -@all +get) (~b resetchannels -@all +set)",
        ),
    ] {
        assert_eq!(String::from_utf8(user(words).describe()).unwrap(), shown, "{words}");
    }
}

#[test]
fn what_is_no_rule() {
    for (words, expected) in [
        ("foo", RuleError::Syntax),
        ("+nope", RuleError::UnknownCommand),
        ("-@nope", RuleError::UnknownCommand),
        ("+get|", RuleError::Syntax),
        ("+config|nope", RuleError::UnknownCommand),
        ("+config|get|x", RuleError::FirstArgumentOfSubcommand),
        ("%~x", RuleError::Syntax),
        ("%", RuleError::Syntax),
        ("%RR~x", RuleError::Syntax),
        ("~* ~a", RuleError::PatternAfterAllKeys),
        ("&* &a", RuleError::PatternAfterAllChannels),
        ("#abc", RuleError::BadHash),
        ("<none", RuleError::NoSuchPassword),
    ] {
        assert_eq!(error(words), expected, "{words}");
    }
}

#[test]
fn a_first_argument_that_could_not_be_read_back_is_refused() {
    let mut user = Rules::new(false);
    for word in ["+select|1 2", "+select|\"1", "+select|'1"] {
        assert_eq!(user.apply(word.as_bytes(), false), Err(RuleError::Syntax), "{word}");
    }
}

/// Whatever bytes come in, nothing breaks; and what is shown, read again, is the same user.
#[test]
fn shown_rules_read_back_to_the_same_user() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut rng = Rng::with_seed(seed);
    let names: Vec<&str> = table::all().map(|spec| spec.name).collect();
    let letters = b"+-@~%&|()<>#!RWrw*?[]ag 1\0\"'\\\xff";
    for _ in 0..3000 {
        let mut user = Rules::new(rng.bool());
        for _ in 0..rng.usize(..12) {
            let word = match rng.u8(..4) {
                0 => (0..rng.usize(..12)).map(|_| letters[rng.usize(..letters.len())]).collect(),
                1 => {
                    let names = table::Categories::NAMES;
                    format!("{}@{}", if rng.bool() { '+' } else { '-' }, names[rng.usize(..names.len())].1).into_bytes()
                }
                2 => format!("{}{}", if rng.bool() { '+' } else { '-' }, names[rng.usize(..names.len())]).into_bytes(),
                _ => {
                    let words = [
                        "~a*",
                        "%R~b",
                        "&c",
                        "+@all",
                        "-@all",
                        "(+get ~x)",
                        "on",
                        "nopass",
                        ">p",
                        "reset",
                        "+select|3",
                    ];
                    words[rng.usize(..words.len())].as_bytes().to_vec()
                }
            };
            let _ = user.apply(&word, false);
        }
        let shown = user.describe();
        let words: Vec<Vec<u8>> = shown.split(|byte| *byte == b' ').map(<[u8]>::to_vec).collect();
        let mut again = Rules::new(false);
        for word in merge_selectors(&words).expect("parentheses match") {
            again.apply(&word, false).unwrap_or_else(|error| {
                panic!("{error:?} for {:?} in {:?}", String::from_utf8_lossy(&word), String::from_utf8_lossy(&shown))
            });
        }
        assert_eq!(again.describe(), shown, "{}", String::from_utf8_lossy(&shown));
        for selectors in user.selectors().zip(again.selectors()) {
            assert_eq!(selectors.0.commands, selectors.1.commands, "{}", String::from_utf8_lossy(&shown));
        }
    }
}

#[test]
fn sort_needs_the_right_to_read_all_keys() {
    let refusal = |words: &str, call: &str| {
        let args: Vec<&[u8]> = call.split(' ').map(str::as_bytes).collect();
        let spec = table::resolve(args.as_slice()).unwrap();
        check::sort_refusal(&user(words), spec, args.as_slice()).map(|error| error.0.into_owned())
    };
    let by = Some("ERR BY option of SORT denied due to insufficient ACL permissions.".to_owned());
    let get = Some("ERR GET option of SORT denied due to insufficient ACL permissions.".to_owned());
    assert_eq!(refusal("+@all ~a", "SORT a BY w_*"), by);
    assert_eq!(refusal("+@all ~a", "SORT a BY nosort GET #"), get);
    assert_eq!(refusal("+@all ~a", "SORT_RO a GET x"), get);
    assert_eq!(refusal("+@all ~a", "SORT a BY nosort"), None);
    assert_eq!(refusal("+@all ~a", "SORT a LIMIT x 1 GET #"), None);
    assert_eq!(refusal("+@all ~a %R~*", "SORT a GET # BY x*"), None);
    assert_eq!(refusal("+@all ~a (+sort %R~*)", "SORT a GET #"), None);
    assert_eq!(refusal("+@all ~a (+get %R~*)", "SORT a GET #"), get);
}

#[test]
fn equal_refusals_are_counted_together() {
    let log = AclLog::default();
    let refusal = |object: &str| Refusal {
        reason: Reason::Key,
        context: Context::Toplevel,
        object: object.into(),
        user: b"al".to_vec(),
        client: Vec::new(),
    };
    let first = log.add(refusal("a"), 1_000, 3);
    assert_eq!(log.add(refusal("a"), 61_000, 3), first);
    assert_ne!(log.add(refusal("a"), 122_000, 3), first);
    for name in ["b", "c", "d"] {
        log.add(refusal(name), 122_000, 3);
    }
    let mut reply = resp::Reply::new();
    log.write(&mut reply, 10, 122_000);
    assert!(reply.as_slice().starts_with(b"*3\r\n"));
    assert_eq!(log.count(Reason::Key), 6);
    log.reset_counts();
    assert_eq!(log.count(Reason::Key), 0);
}

#[test]
fn the_password_of_the_default_user_follows_requirepass() {
    let acl = Acl::new(b"");
    assert!(!acl.default_needs_password() && acl.default_has_no_password());
    let version = acl.version();
    acl.set_required_password(b"x");
    assert!(acl.default_needs_password() && acl.version() > version);
    assert_eq!(acl.default_user().rules().passwords, [rules::hash(b"x")]);
    acl.set_user(b"default", &[b"off".to_vec(), b"nopass".to_vec()], false).unwrap();
    assert!(acl.default_needs_password() && acl.default_has_no_password());
    assert!(acl.delete(b"default").is_none());
}

#[test]
fn declarations_are_checked_when_they_are_read() {
    let words = |text: &str| text.split(' ').map(|word| word.as_bytes().to_vec()).collect::<Vec<_>>();
    assert_eq!(file::check_declaration(&words("al on +nosuch"), &[]), Ok(()));
    assert_eq!(file::check_declaration(&words("al on nonsense"), &[]), Err((1, "Syntax error")));
    assert_eq!(file::check_declaration(&words("al (+get"), &[]), Err((0, "Wrong format")));
    assert!(file::check_declaration(&words("al on"), &[words("al off")]).is_err());
}
