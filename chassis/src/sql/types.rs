//! The column types of our own types.

use std::fmt;
use std::str::FromStr;

use sqlx::encode::IsNull;
use sqlx::error::BoxDynError;
use sqlx::{Database, Decode, Encode, Type};

use crate::clock::Timestamp;

/// A value that is stored as text, such as an id: sqlx encodes UUIDs differently for PostgreSQL and SQLite.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Text<T>(pub T);

impl<DB: Database, T> Type<DB> for Text<T>
where
    String: Type<DB>,
{
    fn type_info() -> DB::TypeInfo {
        <String as Type<DB>>::type_info()
    }

    fn compatible(ty: &DB::TypeInfo) -> bool {
        <String as Type<DB>>::compatible(ty)
    }
}

impl<'q, DB: Database, T: fmt::Display> Encode<'q, DB> for Text<T>
where
    String: Encode<'q, DB>,
{
    fn encode_by_ref(&self, buffer: &mut DB::ArgumentBuffer) -> Result<IsNull, BoxDynError> {
        <String as Encode<'q, DB>>::encode(self.0.to_string(), buffer)
    }
}

impl<'r, DB: Database, T> Decode<'r, DB> for Text<T>
where
    &'r str: Decode<'r, DB>,
    T: FromStr<Err: std::error::Error + Send + Sync + 'static>,
{
    fn decode(value: DB::ValueRef<'r>) -> Result<Self, BoxDynError> {
        Ok(Self(<&str as Decode<'r, DB>>::decode(value)?.parse()?))
    }
}

/// A BIGINT of microseconds since the Unix epoch.
impl<DB: Database> Type<DB> for Timestamp
where
    i64: Type<DB>,
{
    fn type_info() -> DB::TypeInfo {
        <i64 as Type<DB>>::type_info()
    }

    fn compatible(ty: &DB::TypeInfo) -> bool {
        <i64 as Type<DB>>::compatible(ty)
    }
}

impl<'q, DB: Database> Encode<'q, DB> for Timestamp
where
    i64: Encode<'q, DB>,
{
    fn encode_by_ref(&self, buffer: &mut DB::ArgumentBuffer) -> Result<IsNull, BoxDynError> {
        <i64 as Encode<'q, DB>>::encode(self.as_micros(), buffer)
    }
}

impl<'r, DB: Database> Decode<'r, DB> for Timestamp
where
    i64: Decode<'r, DB>,
{
    fn decode(value: DB::ValueRef<'r>) -> Result<Self, BoxDynError> {
        Ok(Self::from_micros(<i64 as Decode<'r, DB>>::decode(value)?))
    }
}
