//! The system calls that have no safe face in our libraries. The only `unsafe` of the crate.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    os::fd::{AsRawFd, OwnedFd},
};

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, socket_with};

/// Gives the calling thread a descriptor table of its own: a copy of what is open now. What it opens later counts against
/// the limit of this table only, and is unknown to other threads.
pub(crate) fn use_private_table() -> io::Result<()> {
    // SAFETY: unshare takes flags only; this thread uses no descriptor that another opens after it.
    match unsafe { libc::unshare(libc::CLONE_FILES) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// A socket on its way to `address` from the local address `source`, from one of `ports` where the kernel can.
pub(crate) fn start_connect_from(source: IpAddr, ports: (u16, u16), address: SocketAddr) -> io::Result<OwnedFd> {
    let family = if address.is_ipv6() { AddressFamily::INET6 } else { AddressFamily::INET };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(family, SocketType::STREAM, flags, None)?;
    // The kernel chooses the port when it knows the peer as well: then a port is taken only for this peer, and one that
    // rests after an earlier run can be used again.
    set_ip_option(&socket, libc::IP_BIND_ADDRESS_NO_PORT, 1)?;
    // Left alone it looks through all even ports before it takes an odd one, which is slow when half of them are in
    // use; with a range of its own a socket may have any. Kernels before 6.3 do not know the option.
    let range = i32::from(ports.1.cast_signed()) << 16 | i32::from(ports.0);
    let _ = set_ip_option(&socket, IP_LOCAL_PORT_RANGE, range);
    bind(&socket, &SocketAddr::new(source, 0))?;
    match connect(&socket, &address) {
        Ok(()) | Err(rustix::io::Errno::INPROGRESS) => Ok(socket),
        Err(errno) => Err(errno.into()),
    }
}

fn set_ip_option(socket: &OwnedFd, name: libc::c_int, value: libc::c_int) -> io::Result<()> {
    let length = libc::socklen_t::try_from(size_of_val(&value)).map_err(io::Error::other)?;
    // SAFETY: the option takes an int, which lives across the call, and its size is passed.
    let result =
        unsafe { libc::setsockopt(socket.as_raw_fd(), libc::IPPROTO_IP, name, (&raw const value).cast(), length) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// From `linux/in.h`.
const IP_LOCAL_PORT_RANGE: libc::c_int = 51;
