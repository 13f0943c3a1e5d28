//! System calls for very many connections: a descriptor table of one's own, and ports chosen late.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    os::fd::OwnedFd,
};

use nix::sched::CloneFlags;
use nix::sys::socket::{setsockopt, sockopt::IpBindAddressNoPort};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, socket_with};

/// Gives the calling thread a descriptor table of its own: a copy of what is open now. What it opens later counts against
/// the limit of this table only, and is unknown to other threads.
pub(crate) fn use_private_table() -> io::Result<()> {
    Ok(nix::sched::unshare(CloneFlags::CLONE_FILES)?)
}

/// A socket on its way to `address` from the local address `source`, from one of `ports` where the kernel can.
pub(crate) fn start_connect_from(source: IpAddr, ports: (u16, u16), address: SocketAddr) -> io::Result<OwnedFd> {
    let family = if address.is_ipv6() { AddressFamily::INET6 } else { AddressFamily::INET };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(family, SocketType::STREAM, flags, None)?;
    // The kernel chooses the port when it knows the peer as well: then a port is taken only for this peer, and one that
    // rests after an earlier run can be used again.
    setsockopt(&socket, IpBindAddressNoPort, &true)?;
    // Left alone it looks through all even ports before it takes an odd one, which is slow when half of them are in
    // use; with a range of its own a socket may have any. Kernels before 6.3 do not know the option.
    let range = i32::from(ports.1.cast_signed()) << 16 | i32::from(ports.0);
    let _ = setsockopt(&socket, LocalPortRange, &range);
    bind(&socket, &SocketAddr::new(source, 0))?;
    match connect(&socket, &address) {
        Ok(()) | Err(rustix::io::Errno::INPROGRESS) => Ok(socket),
        Err(errno) => Err(errno.into()),
    }
}

/// `IP_LOCAL_PORT_RANGE` of `linux/in.h`.
const IP_LOCAL_PORT_RANGE: libc::c_int = 51;

/// The ports that a socket may be given: the lowest in the low half, the highest in the high half.
#[derive(Clone, Copy, Debug)]
struct LocalPortRange;

nix::setsockopt_impl!(
    LocalPortRange,
    libc::IPPROTO_IP,
    IP_LOCAL_PORT_RANGE,
    i32,
    nix::sys::socket::sockopt::SetStruct<'_, i32>
);
