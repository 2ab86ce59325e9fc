//! Names that scripts use for numbers, with their values on Linux.

use crate::script::Expr;

/// An error of a system call, by its name.
pub type Errno = &'static str;

pub(crate) const O_RDWR: i64 = 0o2;
pub(crate) const O_NONBLOCK: i64 = 0o4000;

pub(crate) const POLLIN: i64 = 0x1;
pub(crate) const POLLPRI: i64 = 0x2;
pub(crate) const POLLOUT: i64 = 0x4;
pub(crate) const POLLERR: i64 = 0x8;
pub(crate) const POLLHUP: i64 = 0x10;
pub(crate) const POLLRDNORM: i64 = 0x40;
pub(crate) const POLLWRNORM: i64 = 0x100;
pub(crate) const POLLRDHUP: i64 = 0x2000;
pub(crate) const EPOLLONESHOT: i64 = 1 << 30;
pub(crate) const EPOLLET: i64 = 1 << 31;

pub(crate) const MSG_OOB: i64 = 0x1;
pub(crate) const MSG_PEEK: i64 = 0x2;
pub(crate) const MSG_TRUNC: i64 = 0x20;
pub(crate) const MSG_DONTWAIT: i64 = 0x40;
pub(crate) const MSG_EOR: i64 = 0x80;
pub(crate) const MSG_WAITALL: i64 = 0x100;
pub(crate) const MSG_ERRQUEUE: i64 = 0x2000;
pub(crate) const MSG_NOSIGNAL: i64 = 0x4000;
pub(crate) const MSG_MORE: i64 = 0x8000;
pub(crate) const MSG_ZEROCOPY: i64 = 0x400_0000;
pub(crate) const MSG_FASTOPEN: i64 = 0x2000_0000;

/// Names and values. Levels and options of `setsockopt` are compared as names instead.
const NAMES: &[(&str, i64)] = &[
    ("NULL", 0),
    ("O_RDONLY", 0),
    ("O_RDWR", O_RDWR),
    ("O_NONBLOCK", O_NONBLOCK),
    ("SOCK_STREAM", 1),
    ("SOCK_NONBLOCK", O_NONBLOCK),
    ("SOCK_CLOEXEC", 0o2_000_000),
    ("POLLIN", POLLIN),
    ("POLLPRI", POLLPRI),
    ("POLLOUT", POLLOUT),
    ("POLLERR", POLLERR),
    ("POLLHUP", POLLHUP),
    ("POLLRDNORM", POLLRDNORM),
    ("POLLWRNORM", POLLWRNORM),
    ("POLLRDHUP", POLLRDHUP),
    ("EPOLLIN", POLLIN),
    ("EPOLLPRI", POLLPRI),
    ("EPOLLOUT", POLLOUT),
    ("EPOLLERR", POLLERR),
    ("EPOLLHUP", POLLHUP),
    ("EPOLLRDNORM", POLLRDNORM),
    ("EPOLLWRNORM", POLLWRNORM),
    ("EPOLLRDHUP", POLLRDHUP),
    ("EPOLLONESHOT", EPOLLONESHOT),
    ("EPOLLET", EPOLLET),
    ("MSG_OOB", MSG_OOB),
    ("MSG_PEEK", MSG_PEEK),
    ("MSG_TRUNC", MSG_TRUNC),
    ("MSG_DONTWAIT", MSG_DONTWAIT),
    ("MSG_EOR", MSG_EOR),
    ("MSG_WAITALL", MSG_WAITALL),
    ("MSG_ERRQUEUE", MSG_ERRQUEUE),
    ("MSG_NOSIGNAL", MSG_NOSIGNAL),
    ("MSG_MORE", MSG_MORE),
    ("MSG_ZEROCOPY", MSG_ZEROCOPY),
    ("MSG_FASTOPEN", MSG_FASTOPEN),
    ("IP_PMTUDISC_DONT", 0),
    ("IP_PMTUDISC_WANT", 1),
    ("IP_PMTUDISC_DO", 2),
    ("IP_PMTUDISC_PROBE", 3),
    ("SHUT_RD", 0),
    ("SHUT_WR", 1),
    ("SHUT_RDWR", 2),
    ("SO_EE_ORIGIN_NONE", 0),
    ("SO_EE_ORIGIN_LOCAL", 1),
    ("SO_EE_ORIGIN_ZEROCOPY", 5),
    ("SO_EE_CODE_ZEROCOPY_COPIED", 1),
    // Bits and states of `tcp_info`; FreeBSD's names have Linux's values here, as its fields do.
    ("TCPI_OPT_TIMESTAMPS", 1),
    ("TCPI_OPT_SACK", 2),
    ("TCPI_OPT_WSCALE", 4),
    ("TCPI_OPT_ECN", 8),
    ("TCP_ESTABLISHED", 1),
    ("TCP_SYN_SENT", 2),
    ("TCP_SYN_RECV", 3),
    ("TCP_FIN_WAIT1", 4),
    ("TCP_FIN_WAIT2", 5),
    ("TCP_TIME_WAIT", 6),
    ("TCP_CLOSE", 7),
    ("TCP_CLOSE_WAIT", 8),
    ("TCP_LAST_ACK", 9),
    ("TCP_LISTEN", 10),
    ("TCP_CLOSING", 11),
    ("TCPS_ESTABLISHED", 1),
    ("TCPS_SYN_SENT", 2),
    ("TCPS_SYN_RECEIVED", 3),
    ("TCPS_FIN_WAIT_1", 4),
    ("TCPS_FIN_WAIT_2", 5),
    ("TCPS_TIME_WAIT", 6),
    ("TCPS_CLOSED", 7),
    ("TCPS_CLOSE_WAIT", 8),
    ("TCPS_LAST_ACK", 9),
    ("TCPS_LISTEN", 10),
    ("TCPS_CLOSING", 11),
];

/// The value of a number or of names joined by `|`.
///
/// # Errors
/// A name that has no value here, or what stands in place of a number.
pub(crate) fn value(expr: &Expr) -> Result<i64, String> {
    match expr {
        Expr::Int(number) => Ok(*number),
        Expr::Names(names) => names.iter().try_fold(0, |sum, name| {
            let known = NAMES.iter().find(|(known, _)| known == name).map(|(_, value)| *value);
            known
                .or_else(|| name.parse().ok())
                .map(|value| sum | value)
                .ok_or_else(|| format!("the constant {name}"))
        }),
        other => Err(format!("{other:?} in place of a number")),
    }
}

/// The only name in an expression.
pub(crate) fn name(expr: &Expr) -> Result<&str, String> {
    match expr {
        Expr::Names(names) => match names.as_slice() {
            [name] => Ok(name),
            _ => Err("several names in place of one".to_owned()),
        },
        other => Err(format!("{other:?} in place of a name")),
    }
}

/// The one number in a list: `[4]`.
pub(crate) fn listed(expr: &Expr) -> Result<i64, String> {
    match expr {
        Expr::List(items) => match items.as_slice() {
            [item] => value(item),
            _ => Err("a list of another length than one".to_owned()),
        },
        other => value(other),
    }
}
