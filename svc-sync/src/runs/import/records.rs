//! The records of an import: made with what needs nothing else, then related to each other.

use std::collections::HashSet;

use cairn_import::{Property, Value};
use uuid::Uuid;

use super::values::{Which, values};
use super::{Import, ranges};
use crate::content::{Payload, Work};
use crate::decision::Verdict;
use crate::model::{Kind, Step, Write};
use crate::reading::{Failure, Made, Told, Values, What};
use crate::runs::held::{BATCH_BYTES, BATCH_STEPS, Halt};

impl Import<'_, '_> {
    /// Makes records; or, when all are there, relates those that were made, and changes those that have changed.
    pub(super) async fn write_records(&mut self, related: bool) -> Result<(), Halt> {
        let wanted = self.databases_with_records();
        let complete = self.related();
        let (mut batch, mut bytes): (Vec<Work>, usize) = (Vec::new(), 0);
        let mut answers = self.ask(What::Records(ranges(&wanted))).await?;
        while let Some(told) = self.hear(&mut answers).await? {
            let Told::Records { .. } = told else { return Err(Failure::Lost.into()) };
            for (place, record) in answers.body::<Vec<Values>>().await? {
                let Some(work) = self.work_of_record(place, &record, related, &complete) else { continue };
                bytes += work.1.bytes();
                batch.push(work);
                if batch.len() >= BATCH_STEPS || bytes >= BATCH_BYTES {
                    bytes = 0;
                    self.held.carry_out(std::mem::take(&mut batch)).await?;
                }
            }
        }
        if batch.is_empty() { Ok(()) } else { self.held.carry_out(batch).await }
    }

    /// Databases of whose records one may have to be written.
    fn databases_with_records(&self) -> Vec<usize> {
        let mut databases: Vec<usize> = Vec::new();
        for (item, decided) in self.planned.items.iter().zip(&self.decisions.items) {
            let Made::Record { database, .. } = item.made else { continue };
            let is_wanted = !matches!(decided.verdict, Verdict::Skip | Verdict::Conflict(..));
            if is_wanted && databases.last() != Some(&database) {
                databases.push(database);
            }
        }
        databases.sort_unstable();
        databases.dedup();
        databases
    }

    /// `complete` is what this run has related already.
    fn work_of_record(
        &self,
        place: usize,
        record: &[(usize, Value)],
        related: bool,
        complete: &HashSet<Uuid>,
    ) -> Option<Work> {
        let (item, decided) = self.at(place)?;
        let Made::Record { database, body } = item.made else { return None };
        let properties = self.properties(database)?;
        let database = self.live_id(database)?;
        let id_of = |target| self.live_id(target);
        let body = body.and_then(id_of);
        let told = |which| values(properties, record, which, id_of);
        let (write, values) = match (related, decided.verdict) {
            (false, Verdict::Create | Verdict::Beside) => {
                let (name, folder) = (item.name.clone(), Some(database));
                let write = Write::Create { name, folder, file_type: None };
                (write, told(Which::Plain).unwrap_or_default())
            }
            (true, Verdict::Create | Verdict::Beside | Verdict::Done) => {
                if complete.contains(&decided.id) {
                    return None;
                }
                (Write::Relate, told(Which::Relations)?)
            }
            (true, Verdict::Update) => (Write::Update, told(Which::All)?),
            _ => return None,
        };
        let mut step = Step { body, ..self.step(item, decided, write) };
        if step.write == Write::Relate {
            // As it was made, or it was refused and is not there.
            let entry = self.held.memory.get(Kind::Record, &item.identity)?;
            if entry.id != decided.id {
                return None;
            }
            (step.version, step.before) = (entry.version, None);
        }
        let body = body.filter(|_| step.write != Write::Relate);
        Some((step, Payload::Record { values, body }))
    }

    fn properties(&self, database: usize) -> Option<&[Property]> {
        match &self.planned.items.get(database)?.made {
            Made::Database(properties) => Some(properties),
            Made::Folder | Made::File(_) | Made::Asset { .. } | Made::Record { .. } => None,
        }
    }
}
