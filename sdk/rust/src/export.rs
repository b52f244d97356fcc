//! Functions that others can call.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{self, Display, Write as _};

use crate::http::Request;
use crate::log::{Line, write_line};
use crate::{Level, calls, host};

/// Names the functions of this module that others can call, and `entry`, which runs when the machine
/// starts.
///
/// A function takes nothing, or the call's parameter as `Option<&[u8]>`, `Option<&str>`, `&[u8]`,
/// `&str` or a visitor's [`Request`](crate::http::Request), and returns what is a [`Reply`]. If the parameter is null and the function can't take
/// that, or isn't the text it must be, the call fails, and the function isn't run.
///
/// ```
/// tenure::export!(entry, double);
///
/// fn entry() {}
///
/// fn double(number: &str) -> Result<String, core::num::ParseIntError> {
///     Ok((number.parse::<i32>()? * 2).to_string())
/// }
/// ```
#[macro_export]
macro_rules! export {
    ($($function:ident),+ $(,)?) => {
        $(
            const _: () = {
                #[cfg_attr(target_arch = "wasm32", unsafe(export_name = stringify!($function)))]
                #[cfg_attr(
                    target_os = "none",
                    unsafe(export_name = concat!("tenure_export_", stringify!($function)))
                )]
                #[allow(dead_code)]
                extern "C" fn exported() {
                    $crate::private::serve($function);
                }
            };
        )+
    };
}

/// Serves the call with `function`.
pub fn serve<Marker>(function: impl Function<Marker>) {
    let parameter = match calls::parameter() {
        Ok(parameter) => parameter,
        Err(error) => return fail(format_args!("the parameter can't be had: {error}")),
    };
    function.serve(parameter.as_deref());
}

/// A function that can serve a call. `Marker` tells apart how it takes the parameter.
pub trait Function<Marker> {
    /// Runs it and replies.
    fn serve(self, parameter: Option<&[u8]>);
}

/// A type that a function can return: `()` and `None` are null; texts and bytes are themselves; an error is
/// logged, and the call fails.
pub trait Reply {
    /// Makes this the result of the call being served.
    fn reply(self);
}

macro_rules! functions {
    ($($marker:ty, ($($type:ty)?), |$parameter:ident| $argument:expr;)+) => {
        $(
            impl<F, R> Function<$marker> for F
            where
                F: FnOnce($($type)?) -> R,
                R: Reply,
            {
                fn serve(self, $parameter: Option<&[u8]>) {
                    match $argument {
                        Ok(_argument) => functions!(@call self, ($($type)?), _argument).reply(),
                        Err(reason) => fail(format_args!("{reason}")),
                    }
                }
            }
        )+
    };
    (@call $function:ident, (), $argument:ident) => { $function() };
    (@call $function:ident, ($type:ty), $argument:ident) => { $function($argument) };
}

functions! {
    (), (), |parameter| Ok::<_, &str>(parameter);
    (Option<&[u8]>,), (Option<&[u8]>), |parameter| Ok::<_, &str>(parameter);
    (Option<&str>,), (Option<&str>), |parameter| parameter.map(text).transpose();
    (&[u8],), (&[u8]), |parameter| given(parameter);
    (&str,), (&str), |parameter| given(parameter).and_then(text);
    (Request<'_>,), (Request<'_>), |parameter| given(parameter).and_then(Request::parse);
}

fn given(parameter: Option<&[u8]>) -> Result<&[u8], &'static str> {
    parameter.ok_or("the parameter is null")
}

fn text(parameter: &[u8]) -> Result<&str, &'static str> {
    core::str::from_utf8(parameter).map_err(|_| "the parameter is not text")
}

/// Makes the call being served fail, and says why: in the log, and to a caller who may know.
fn fail(reason: fmt::Arguments<'_>) {
    let mut line = Line::default();
    let _ = line.write_fmt(reason);
    write_line(Level::Error, &line);
    let _ = calls::reply(Some(line.as_str().as_bytes()));
    // SAFETY: the call touches no memory.
    unsafe { host::fail() }
}

/// Replies with bytes or null.
fn send(value: Option<&[u8]>) {
    if let Err(error) = calls::reply(value) {
        fail(format_args!("the result can't be sent: {error}"));
    }
}

impl Reply for () {
    fn reply(self) {}
}

impl Reply for &[u8] {
    fn reply(self) {
        send(Some(self));
    }
}

impl Reply for Vec<u8> {
    fn reply(self) {
        send(Some(&self));
    }
}

impl Reply for &str {
    fn reply(self) {
        send(Some(self.as_bytes()));
    }
}

impl Reply for String {
    fn reply(self) {
        send(Some(self.as_bytes()));
    }
}

impl<T: Reply> Reply for Option<T> {
    fn reply(self) {
        match self {
            Some(value) => value.reply(),
            None => send(None),
        }
    }
}

impl<T: Reply, E: Display> Reply for Result<T, E> {
    fn reply(self) {
        match self {
            Ok(value) => value.reply(),
            Err(error) => fail(format_args!("{error}")),
        }
    }
}
