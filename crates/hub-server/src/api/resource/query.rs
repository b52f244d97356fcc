//! A request for rows of a list, and the query that it comes to.

use super::{Column, Kind, LIMIT_MAX, Resource};
use crate::api::sign_in::Holder;
use crate::devices::receipts::time;
use crate::store::sql::{self, Connection, Next, Value, Words};

/// The most filters of one request: each is a condition of the query, whose depth the database bounds.
const FILTERS_MAX: usize = 32;
/// The rows of a page, unless the request says how many.
const LIMIT: u64 = 100;

/// The function that says where in a text another one begins, from 1 on.
const PLACE: Words = Words::each("instr", "strpos");

/// A value of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cell {
    Text(String),
    Number(i64),
    None,
}

impl Cell {
    /// It as text; a moment as RFC 3339 has it.
    pub(crate) fn text(&self, kind: Kind) -> String {
        match (self, kind) {
            (Self::None, _) => String::new(),
            (Self::Text(text), _) => text.clone(),
            (Self::Number(seconds), Kind::Time) => time(u64::try_from(*seconds).unwrap_or(0)),
            (Self::Number(number), _) => number.to_string(),
        }
    }
}

/// A request for rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Request {
    /// Rows in which some column contains this.
    pub(crate) words: String,
    /// Rows in which the column with this index has this value.
    pub(crate) filters: Vec<(usize, String)>,
    /// For how many seconds back to look, if the list is made of what happened.
    pub(crate) within_s: Option<u64>,
    /// The column to sort by, and whether the largest comes first.
    pub(crate) sort: Option<(usize, bool)>,
    /// How many rows, at most.
    pub(crate) limit: u64,
    /// How many rows to skip.
    pub(crate) skip: u64,
}

/// Rows, and how many to skip for the next ones, if there are more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rows {
    pub(crate) rows: Vec<Vec<Cell>>,
    pub(crate) next: Option<u64>,
}

impl Request {
    /// Reads the parameters of an address.
    ///
    /// # Errors
    /// The parameter that isn't known or can't be read, in words.
    pub(crate) fn parse(
        resource: &Resource,
        parameters: &[(String, String)],
    ) -> Result<Self, String> {
        let mut request = Self { limit: LIMIT, ..Self::default() };
        let index_of = |name: &str| resource.columns.iter().position(|column| column.name == name);
        for (name, value) in parameters {
            let number = || value.parse().map_err(|_| format!("`{name}` must be a whole number"));
            match name.as_str() {
                "q" => request.words = value.clone(),
                "limit" => request.limit = number()?,
                "skip" => request.skip = number()?,
                "within_s" if resource.within_s.is_some() => request.within_s = Some(number()?),
                "sort" => {
                    let (name, descending) = match value.strip_prefix('-') {
                        Some(name) => (name, true),
                        None => (value.as_str(), false),
                    };
                    let index = index_of(name).ok_or(format!("no column `{name}` to sort by"))?;
                    request.sort = Some((index, descending));
                }
                name => {
                    let index = index_of(name).ok_or(format!("no parameter `{name}`"))?;
                    request.filters.push((index, value.clone()));
                }
            }
        }
        if request.filters.len() > FILTERS_MAX {
            return Err(format!("there are more than {FILTERS_MAX} filters"));
        }
        if request.limit == 0 || request.limit > LIMIT_MAX {
            return Err(format!("`limit` must be between 1 and {LIMIT_MAX}"));
        }
        Ok(request)
    }
}

impl Resource {
    /// The rows that `holder` may see and `request` asks for.
    ///
    /// # Errors
    /// The database fails.
    pub(crate) fn rows(
        &self,
        connection: &Connection,
        holder: &Holder,
        request: &Request,
    ) -> Result<Rows, sql::Error> {
        let mut rows = Vec::new();
        let one_more = Request { limit: request.limit.saturating_add(1), ..request.clone() };
        self.each(connection, holder, &one_more, |row| {
            rows.push(row);
            Next::Row
        })?;
        let has_more = rows.len() as u64 > request.limit;
        rows.truncate(usize::try_from(request.limit).unwrap_or(usize::MAX));
        Ok(Rows { rows, next: has_more.then(|| request.skip.saturating_add(request.limit)) })
    }

    /// Shows `see` one after the other, until it has seen enough.
    ///
    /// # Errors
    /// The database fails.
    pub(crate) fn each(
        &self,
        connection: &Connection,
        holder: &Holder,
        request: &Request,
        mut see: impl FnMut(Vec<Cell>) -> Next,
    ) -> Result<(), sql::Error> {
        let dialect = connection.dialect();
        let words = request.words.to_ascii_lowercase();
        let mut values = vec![Value::Text(&holder.who)];
        if let Some(usual_s) = self.within_s {
            let within_s = request
                .within_s
                .map_or(usual_s, |within_s| i64::try_from(within_s).unwrap_or(i64::MAX));
            values.push(Value::Integer(within_s));
        }
        let mut conditions = vec![format!("({})", self.visible)];
        if let (Some(column), Some(person)) = (self.of_person, holder.sees_alone()) {
            values.push(Value::Integer(person));
            conditions.push(format!("{column} = ?{}", values.len()));
        }
        for (index, value) in &request.filters {
            values.push(Value::Text(value));
            let Column { sql, kind, .. } = &self.columns[*index];
            let sql = sql.of(dialect);
            // A column that is text already is compared as it is, so that an index finds its rows.
            let text = match kind {
                Kind::Text | Kind::Line | Kind::Key | Kind::Device => sql.to_string(),
                Kind::Number | Kind::Time | Kind::Rollout => format!("CAST({sql} AS TEXT)"),
            };
            conditions.push(format!("{text} = ?{}", values.len()));
        }
        if !request.words.is_empty() {
            values.push(Value::Text(&words));
            let (number, place) = (values.len(), PLACE.of(dialect));
            let contains = |column: &Column| {
                let sql = column.sql.of(dialect);
                format!("{place}(lower(coalesce(CAST({sql} AS TEXT), '')), ?{number}) > 0")
            };
            let any: Vec<String> = self.columns.iter().map(contains).collect();
            conditions.push(format!("({})", any.join(" OR ")));
        }
        let columns: Vec<&str> = self.columns.iter().map(|column| column.sql.of(dialect)).collect();
        let order = match request.sort {
            // What isn't known comes before all else.
            Some((index, true)) => format!("{} DESC NULLS LAST, {}", columns[index], self.order),
            Some((index, false)) => format!("{} NULLS FIRST, {}", columns[index], self.order),
            None => self.order.to_string(),
        };
        values.push(Value::Integer(i64::try_from(request.limit).unwrap_or(i64::MAX)));
        values.push(Value::Integer(i64::try_from(request.skip).unwrap_or(i64::MAX)));
        let (columns, conditions) = (columns.join(", "), conditions.join(" AND "));
        let query = format!(
            "SELECT {columns} FROM {} WHERE {conditions} ORDER BY {order} LIMIT ?{} OFFSET ?{}",
            self.from.of(dialect),
            values.len() - 1,
            values.len()
        );
        connection.statement(&query).each(values.as_slice(), |row| {
            let cells = (0..self.columns.len()).map(|index| Ok(cell(row.value(index)?)));
            Ok(see(cells.collect::<Result<_, sql::Error>>()?))
        })
    }
}

fn cell(value: Value<'_>) -> Cell {
    match value {
        // No column is a list.
        Value::Null | Value::Array(_) => Cell::None,
        Value::Integer(number) => Cell::Number(number),
        Value::Real(number) => Cell::Number(number as i64),
        Value::Text(text) => Cell::Text(text.to_string()),
        Value::Blob(bytes) => Cell::Text(String::from_utf8_lossy(bytes).into_owned()),
    }
}
