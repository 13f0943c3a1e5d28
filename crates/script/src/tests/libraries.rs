//! Function libraries.

use super::{MEMORY_MAX, host};
use crate::{Ended, Kind, Libraries, LibraryFunction, Run, ScriptFlags, Vm, VmLimits, shebang};
use resp::{Args, Reply};

fn vm() -> Vm {
    Vm::new(Kind::Function, VmLimits { memory_max: MEMORY_MAX }).unwrap()
}

fn load(code: &str) -> Result<Vec<LibraryFunction>, String> {
    let line = shebang::library_line(code.as_bytes()).map_err(|text| text.into_owned())?;
    vm().load(code.as_bytes(), line.len, true)
}

fn error(code: &str) -> String {
    load(code).map(|_| ()).unwrap_err()
}

#[test]
fn functions_are_registered() {
    let functions = load(
        "#!lua name=lib\nredis.register_function('f', function() end)\nredis.register_function{function_name='g', callback=function() end, flags={'no-writes'}, description='what'}",
    )
    .unwrap();
    assert_eq!(functions.iter().map(|f| f.name.as_str()).collect::<Vec<_>>(), ["f", "g"]);
    assert_eq!(functions[1].flags, ScriptFlags::NO_WRITES);
    assert_eq!(functions[1].description.as_deref(), Some(&b"what"[..]));
}

#[test]
fn bad_libraries() {
    assert_eq!(error("return 1"), "Missing library metadata");
    assert_eq!(error("#!lua\n"), "Library name was not given");
    assert_eq!(error("#!lua name=a b=c\n"), "Invalid metadata value given: b=c");
    assert_eq!(error("#!foo name=a\n"), "Engine 'foo' not found");
    assert_eq!(error("#!lua name=a\nif"), "Error compiling function: user_function:2: unexpected symbol near '<eof>'");
    assert_eq!(
        error("#!lua name=a\nredis.call('ping')"),
        "Error registering functions: ERR user_function:2: Script attempted to access nonexistent global variable 'call'"
    );
    assert_eq!(
        error("#!lua name=a\nredis.register_function('a b', function() end)"),
        "Error registering functions: ERR Library names can only contain letters, numbers, or underscores(_) and must be at least one character long"
    );
    assert_eq!(
        error("#!lua name=a\nwhile true do pcall(function() end) end"),
        "Error registering functions: ERR user_function:2: Script attempted to access nonexistent global variable 'pcall'"
    );
    assert_eq!(error("#!lua name=a\nwhile true do end"), "Error registering functions: ERR FUNCTION LOAD timeout");
}

#[test]
fn functions_are_called() {
    let code = "#!lua name=lib\nlocal function f(keys, args) return {keys[1], args[1], redis.call('int')} end\nredis.register_function('f', f)\nredis.register_function('e', function() error('x') end)";
    let libraries = Libraries::default();
    let line = shebang::library_line(code.as_bytes()).unwrap();
    let mut vm = vm();
    let functions = vm.load(code.as_bytes(), line.len, true).unwrap();
    let library = libraries.library(line.name, code.as_bytes(), line.len, functions);
    libraries.change(|set| set.insert(library.clone())).unwrap();
    assert_eq!(libraries.current().counts(), (1, 2));
    let args: [&[u8]; 2] = [b"k", b"a"];
    let mut call = |name: &str| {
        let mut out = Reply::new();
        let run = Run { args: Args::from_slices(&args), keys: 1, name };
        match vm.call(&mut host(), &library, name, run, &mut out) {
            Ended::Done(_) => String::from_utf8(out.take()).unwrap(),
            Ended::Failed(failure) => String::from_utf8(failure.text).unwrap(),
            Ended::Restart => "restart".to_owned(),
        }
    };
    assert_eq!(call("f"), "*3\r\n$1\r\nk\r\n$1\r\na\r\n:7\r\n");
    assert_eq!(call("e"), "ERR user_function:4: x script: e, on @user_function:4.");
    assert_eq!(call("none"), "ERR Function not found");
    let clash = libraries.library("other".to_owned(), b"", 0, vec![]);
    libraries.change(|set| set.insert(clash)).unwrap();
    libraries.change(|set| set.remove("lib").ok_or("Library not found")).unwrap();
    assert_eq!(libraries.current().counts(), (1, 0));
}
