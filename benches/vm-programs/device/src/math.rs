//! Functions of `math.h`, for programs compiled for this processor and for interpreters in C: those that tenure-vm uses.

macro_rules! functions {
    ($($name:ident($($argument:ident),*) -> $float:ty;)*) => {
        $(
            #[unsafe(no_mangle)]
            extern "C" fn $name($($argument: $float),*) -> $float {
                libm::$name($($argument),*)
            }
        )*
    };
}

functions! {
    ceilf(a) -> f32;
    copysignf(a, b) -> f32;
    fabsf(a) -> f32;
    floorf(a) -> f32;
    rintf(a) -> f32;
    sqrtf(a) -> f32;
    truncf(a) -> f32;
    ceil(a) -> f64;
    copysign(a, b) -> f64;
    fabs(a) -> f64;
    floor(a) -> f64;
    rint(a) -> f64;
    sqrt(a) -> f64;
    trunc(a) -> f64;
}
