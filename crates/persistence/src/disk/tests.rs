#![allow(clippy::unwrap_used, clippy::expect_used)]

use super::*;

#[test]
fn a_crash_takes_what_was_not_forced_to_disk() {
    let disk = SimulatedDisk::new();
    let mut file = disk.create(Path::new("d/a")).unwrap();
    file.write_all(b"first").unwrap();
    file.sync().unwrap();
    file.write_all(b" second").unwrap();
    // The name is not on disk yet.
    assert_eq!(disk.crash(|_| 0).read("d/a"), None);
    assert_eq!(disk.crash(|most| most).read("d/a").unwrap(), b"first second");
    disk.sync_directory(Path::new("d")).unwrap();
    assert_eq!(disk.crash(|_| 0).read("d/a").unwrap(), b"first");
    assert_eq!(disk.crash(|most| most.min(3)).read("d/a").unwrap(), b"first se");
    disk.rename(Path::new("d/a"), Path::new("d/b")).unwrap();
    assert_eq!(disk.crash(|_| 0).names(), [Path::new("d/a")]);
    assert_eq!(disk.list(Path::new("d")).unwrap(), ["b"]);
    disk.remove(Path::new("d/b")).unwrap();
    assert!(disk.names().is_empty());
}

#[test]
fn calls_fail_when_they_are_told_to() {
    let disk = SimulatedDisk::new();
    disk.set_fault(Some(Fault::Room(4)));
    let mut file = disk.create(Path::new("a")).unwrap();
    assert_eq!(file.write_all(b"123456").unwrap_err().raw_os_error(), Some(28));
    assert_eq!(disk.read("a").unwrap(), b"1234");
    disk.set_fault(Some(Fault::Call(1, 5)));
    file.write_all(b"x").unwrap();
    assert_eq!(file.sync().unwrap_err().raw_os_error(), Some(5));
    file.sync().unwrap();
    assert_eq!(disk.calls(), 3);
    disk.set_fault(Some(Fault::Every(Operation::Rename, 5)));
    assert!(disk.rename(Path::new("a"), Path::new("b")).is_err());
}

#[test]
fn the_real_disk_does_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a");
    let mut file = RealDisk.create(&path).unwrap();
    file.write_all(b"12345").unwrap();
    file.truncate(4).unwrap();
    file.sync().unwrap();
    RealDisk.append(&path).unwrap().write_all(b"!").unwrap();
    RealDisk.rename(&path, &directory.path().join("b")).unwrap();
    RealDisk.sync_directory(directory.path()).unwrap();
    RealDisk.create_directory(&directory.path().join("c")).unwrap();
    RealDisk.create_directory(&directory.path().join("c")).unwrap();
    let mut names = RealDisk.list(directory.path()).unwrap();
    names.sort();
    assert_eq!(names, ["b", "c"]);
    let (mut file, len) = RealDisk.open(&directory.path().join("b")).unwrap();
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).unwrap();
    assert_eq!((bytes.as_slice(), len), (&b"1234!"[..], 5));
    RealDisk.remove(&directory.path().join("b")).unwrap();
}
