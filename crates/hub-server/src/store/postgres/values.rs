//! Values of parameters and rows, as PostgreSQL's types hold them.

use bytes::BytesMut;
use postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

use super::text::storable;
use crate::store::sql::{Columns, Error, Value};

type Fault = Box<dyn std::error::Error + Sync + Send>;

impl ToSql for Value<'_> {
    fn to_sql(&self, kind: &Type, out: &mut BytesMut) -> Result<IsNull, Fault> {
        match (*self, kind) {
            (Value::Null, _) => Ok(IsNull::Yes),
            (Value::Integer(number), &Type::INT8) => number.to_sql(kind, out),
            (Value::Integer(number), &Type::INT4) => i32::try_from(number)?.to_sql(kind, out),
            // A parameter that is compared with itself alone is a text to PostgreSQL.
            (Value::Integer(number), &Type::TEXT) => number.to_string().to_sql(kind, out),
            (Value::Real(number), &Type::FLOAT8) => number.to_sql(kind, out),
            (Value::Text(text), &Type::TEXT | &Type::VARCHAR) => storable(text).to_sql(kind, out),
            (Value::Blob(bytes), &Type::BYTEA) => bytes.to_sql(kind, out),
            (Value::Array(values), &Type::TEXT_ARRAY | &Type::BYTEA_ARRAY | &Type::INT8_ARRAY) => {
                values.to_sql(kind, out)
            }
            (value, kind) => Err(format!("{value:?} is no value of the type {kind}").into()),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

/// A value of a row, of one of the types that the hub's statements have.
struct Cell<'r>(Value<'r>);

impl<'r> FromSql<'r> for Cell<'r> {
    fn from_sql(kind: &Type, raw: &'r [u8]) -> Result<Self, Fault> {
        Ok(Self(match *kind {
            Type::INT8 => Value::Integer(i64::from_sql(kind, raw)?),
            Type::INT4 => Value::Integer(i32::from_sql(kind, raw)?.into()),
            Type::BOOL => Value::Integer(bool::from_sql(kind, raw)?.into()),
            Type::FLOAT8 => Value::Real(f64::from_sql(kind, raw)?),
            Type::TEXT | Type::VARCHAR => Value::Text(<&str>::from_sql(kind, raw)?),
            Type::BYTEA => Value::Blob(raw),
            _ => return Err(format!("the type {kind} isn't read").into()),
        }))
    }

    fn from_sql_null(_: &Type) -> Result<Self, Fault> {
        Ok(Self(Value::Null))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

impl Columns for postgres::Row {
    fn value(&self, column: usize) -> Result<Value<'_>, Error> {
        match self.try_get::<_, Cell<'_>>(column) {
            Ok(Cell(value)) => Ok(value),
            Err(error) => Err(Error::Column { column, reason: error.to_string() }),
        }
    }
}
