//! The records of an import: created with their plain values, then related to each other.

use std::collections::HashSet;

use cairn_import::{Property, Value};
use uuid::Uuid;

use super::values::{Which, values};
use super::{Import, ranges};
use crate::content::{Payload, Work};
use crate::decision::Verdict;
use crate::model::{Kind, Step, Write};
use crate::reading::{Failure, Frame, ItemDetails, Query, Values};
use crate::runs::active::{BATCH_BYTES, BATCH_STEPS, Halt};

impl Import<'_, '_> {
    /// Creates records; or, once all exist, writes the relations of new ones and updates those that changed.
    pub(super) async fn write_records(&mut self, related: bool) -> Result<(), Halt> {
        let wanted = self.databases_with_records();
        let complete = self.related();
        let (mut batch, mut bytes): (Vec<Work>, usize) = (Vec::new(), 0);
        let mut answers = self.ask(Query::Records(ranges(&wanted))).await?;
        while let Some(told) = self.next_frame(&mut answers).await? {
            let Frame::Records { .. } = told else { return Err(Failure::Lost.into()) };
            for (place, record) in answers.body::<Vec<Values>>().await? {
                let Some(work) = self.work_of_record(place, &record, related, &complete) else { continue };
                bytes += work.1.bytes();
                batch.push(work);
                if batch.len() >= BATCH_STEPS || bytes >= BATCH_BYTES {
                    bytes = 0;
                    self.active.carry_out(std::mem::take(&mut batch)).await?;
                }
            }
        }
        if batch.is_empty() { Ok(()) } else { self.active.carry_out(batch).await }
    }

    /// Databases with at least one record to write.
    fn databases_with_records(&self) -> Vec<usize> {
        let mut databases: Vec<usize> = Vec::new();
        for (item, decision) in self.planned.items.iter().zip(&self.decisions.items) {
            let ItemDetails::Record { database, .. } = item.made else { continue };
            let is_wanted = !matches!(decision.verdict, Verdict::Skip | Verdict::Conflict(..));
            if is_wanted && databases.last() != Some(&database) {
                databases.push(database);
            }
        }
        databases.sort_unstable();
        databases.dedup();
        databases
    }

    /// `complete` are the ids of objects whose relations this run has written.
    fn work_of_record(
        &self,
        place: usize,
        record: &[(usize, Value)],
        related: bool,
        complete: &HashSet<Uuid>,
    ) -> Option<Work> {
        let (item, decision) = self.at(place)?;
        let ItemDetails::Record { database, body } = item.made else { return None };
        let properties = self.properties(database)?;
        let database = self.live_id(database)?;
        let id_of = |target| self.live_id(target);
        let body = body.and_then(id_of);
        let told = |which| values(properties, record, which, id_of);
        let (write, values) = match (related, decision.verdict) {
            (false, Verdict::Create | Verdict::Beside) => {
                let (name, folder) = (item.name.clone(), Some(database));
                let write = Write::Create { name, folder, file_type: None };
                (write, told(Which::Plain).unwrap_or_default())
            }
            (true, Verdict::Create | Verdict::Beside | Verdict::Done) => {
                if complete.contains(&decision.id) {
                    return None;
                }
                (Write::Relate, told(Which::Relations)?)
            }
            (true, Verdict::Update) => (Write::Update, told(Which::All)?),
            _ => return None,
        };
        let mut step = Step { body, ..self.step(item, decision, write) };
        if step.write == Write::Relate {
            // Without a matching entry, its creation was refused.
            let entry = self.active.baseline.get(Kind::Record, &item.identity)?;
            if entry.id != decision.id {
                return None;
            }
            (step.version, step.before) = (entry.version, None);
        }
        let body = body.filter(|_| step.write != Write::Relate);
        Some((step, Payload::Record { values, body }))
    }

    fn properties(&self, database: usize) -> Option<&[Property]> {
        match &self.planned.items.get(database)?.made {
            ItemDetails::Database(properties) => Some(properties),
            ItemDetails::Folder
            | ItemDetails::File(_)
            | ItemDetails::Asset { .. }
            | ItemDetails::Record { .. } => None,
        }
    }
}
