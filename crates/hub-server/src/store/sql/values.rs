//! Values of parameters and of columns.

use super::Error;

/// A value, as it stands in a parameter or in a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Value<'v> {
    Null,
    Integer(i64),
    Real(f64),
    Text(&'v str),
    Blob(&'v [u8]),
    /// Values of one kind, as a parameter at a server.
    Array(&'v [Value<'v>]),
}

/// A value that can be a parameter.
pub(crate) trait ToSql {
    fn value(&self) -> Value<'_>;
}

/// A value that can be read from a column.
pub(crate) trait FromSql: Sized {
    /// # Errors
    /// What the value is instead, in words.
    fn from_value(value: Value<'_>) -> Result<Self, String>;
}

/// The parameters of a statement, the first one being `?1`.
pub(crate) trait Params {
    fn with<T>(self, run: impl FnOnce(&[Value<'_>]) -> T) -> T;
}

/// The columns of a row, as an engine has them.
pub(in crate::store) trait Columns {
    /// # Errors
    /// There is no such column, or its type isn't one that the hub's tables have.
    fn value(&self, column: usize) -> Result<Value<'_>, Error>;
}

/// A row.
pub(crate) struct Row<'r>(&'r dyn Columns);

impl<'r> Row<'r> {
    pub(in crate::store) fn of(columns: &'r dyn Columns) -> Self {
        Self(columns)
    }

    /// The value of a column, from 0 on.
    ///
    /// # Errors
    /// There is no such column, or it holds something else.
    pub(crate) fn get<T: FromSql>(&self, column: usize) -> Result<T, Error> {
        T::from_value(self.value(column)?).map_err(|reason| Error::Column { column, reason })
    }

    /// The same as it stands there.
    ///
    /// # Errors
    /// There is no such column.
    pub(crate) fn value(&self, column: usize) -> Result<Value<'_>, Error> {
        self.0.value(column)
    }
}

/// Parameters of several types.
macro_rules! params {
    ($($value:expr),+ $(,)?) => {
        &[$(&$value as &dyn $crate::store::sql::ToSql),+] as &[&dyn $crate::store::sql::ToSql]
    };
}
pub(crate) use params;

impl Params for &[&dyn ToSql] {
    fn with<T>(self, run: impl FnOnce(&[Value<'_>]) -> T) -> T {
        let values: Vec<Value<'_>> = self.iter().map(|value| value.value()).collect();
        run(&values)
    }
}

impl Params for &[Value<'_>] {
    fn with<T>(self, run: impl FnOnce(&[Value<'_>]) -> T) -> T {
        run(self)
    }
}

impl Params for [&dyn ToSql; 0] {
    fn with<T>(self, run: impl FnOnce(&[Value<'_>]) -> T) -> T {
        run(&[])
    }
}

macro_rules! params_of_one_type {
    ($($count:literal)+) => {$(
        impl<P: ToSql> Params for [P; $count] {
            fn with<T>(self, run: impl FnOnce(&[Value<'_>]) -> T) -> T {
                run(&self.each_ref().map(ToSql::value))
            }
        }
    )+};
}

params_of_one_type!(1 2 3 4);

impl<T: ToSql + ?Sized> ToSql for &T {
    fn value(&self) -> Value<'_> {
        (**self).value()
    }
}

impl<T: ToSql> ToSql for Option<T> {
    fn value(&self) -> Value<'_> {
        self.as_ref().map_or(Value::Null, ToSql::value)
    }
}

impl ToSql for str {
    fn value(&self) -> Value<'_> {
        Value::Text(self)
    }
}

impl ToSql for String {
    fn value(&self) -> Value<'_> {
        Value::Text(self)
    }
}

impl ToSql for [u8] {
    fn value(&self) -> Value<'_> {
        Value::Blob(self)
    }
}

impl ToSql for Vec<u8> {
    fn value(&self) -> Value<'_> {
        Value::Blob(self)
    }
}

impl<const N: usize> ToSql for [u8; N] {
    fn value(&self) -> Value<'_> {
        Value::Blob(self)
    }
}

impl FromSql for String {
    fn from_value(value: Value<'_>) -> Result<Self, String> {
        match value {
            Value::Text(text) => Ok(text.to_string()),
            other => Err(format!("{} and no text", kind(other))),
        }
    }
}

impl FromSql for Vec<u8> {
    fn from_value(value: Value<'_>) -> Result<Self, String> {
        match value {
            Value::Blob(bytes) => Ok(bytes.to_vec()),
            other => Err(format!("{} and no bytes", kind(other))),
        }
    }
}

impl<const N: usize> FromSql for [u8; N] {
    fn from_value(value: Value<'_>) -> Result<Self, String> {
        let bytes = Vec::from_value(value)?;
        let length = bytes.len();
        bytes.try_into().map_err(|_| format!("{length} bytes and not {N}"))
    }
}

impl<T: FromSql> FromSql for Option<T> {
    fn from_value(value: Value<'_>) -> Result<Self, String> {
        match value {
            Value::Null => Ok(None),
            value => T::from_value(value).map(Some),
        }
    }
}

impl FromSql for bool {
    fn from_value(value: Value<'_>) -> Result<Self, String> {
        i64::from_value(value).map(|number| number != 0)
    }
}

macro_rules! whole_numbers {
    ($($number:ty)+) => {$(
        impl ToSql for $number {
            fn value(&self) -> Value<'_> {
                Value::Integer(i64::from(*self))
            }
        }

        impl FromSql for $number {
            fn from_value(value: Value<'_>) -> Result<Self, String> {
                match value {
                    Value::Integer(number) => {
                        number.try_into().map_err(|_| format!("{number}, which is out of range"))
                    }
                    other => Err(format!("{} and no whole number", kind(other))),
                }
            }
        }
    )+};
}

whole_numbers!(i64 i32 u32 u16 u8);

fn kind(value: Value<'_>) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Integer(_) => "a whole number",
        Value::Real(_) => "a fraction",
        Value::Text(_) => "a text",
        Value::Blob(_) => "bytes",
        Value::Array(_) => "a list",
    }
}
