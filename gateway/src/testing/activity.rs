//! A fake activity log of svc-content.

use cairn_proto::content::v1 as content;
use cairn_proto::content::v1::activity_service_server::ActivityService;
use cairn_proto::domain::{ActivityAction, TrashKind, UndoAction};
use prost_types::Timestamp;
use tonic::{Request, Response, Status};

use super::FILE;
use super::console::HOSTILE;

type Answered<T> = Result<Response<T>, Status>;

const AT: Option<Timestamp> = Some(Timestamp { seconds: 1_800_000_000, nanos: 0 });

pub(super) struct Activity;

fn author() -> content::Author {
    content::Author { kind: "token".into(), id: "x".into(), name: HOSTILE.into() }
}

fn entry(number: u64, action: ActivityAction, kind: TrashKind) -> content::ActivityEntry {
    content::ActivityEntry {
        id: format!("1800000000000000.{number}.0"),
        action: action.into(),
        kind: kind.into(),
        item_id: FILE.into(),
        name: HOSTILE.into(),
        path: format!("/{HOSTILE}"),
        database_id: (kind == TrashKind::Record).then(|| FILE.to_owned()),
        author: Some(author()),
        channel: Some("mcp".into()),
        happened_at: AT,
        change_position: number,
        former_name: Some(HOSTILE.into()),
        item_count: 2,
        version_before: Some(1),
        version_after: Some(2),
        // Two consecutive entries belong to one write.
        write_id: format!("1800000000000000.{}", number / 2),
        ..Default::default()
    }
}

#[tonic::async_trait]
impl ActivityService for Activity {
    async fn list_activity(
        &self,
        _: Request<content::ListActivityRequest>,
    ) -> Answered<content::ListActivityResponse> {
        let of_text = content::ActivityEntry {
            changed: vec!["content".into()],
            ..entry(7, ActivityAction::Updated, TrashKind::File)
        };
        let mut entries = vec![of_text];
        let numbered = ActivityAction::ALL.into_iter().zip(TrashKind::ALL.into_iter().cycle()).zip(8..);
        entries.extend(numbered.map(|((action, kind), number)| entry(number, action, kind)));
        Ok(Response::new(content::ListActivityResponse { entries, next_page_token: "1.2.0".into() }))
    }

    async fn list_actors(
        &self,
        _: Request<content::ListActorsRequest>,
    ) -> Answered<content::ListActorsResponse> {
        Ok(Response::new(content::ListActorsResponse { actors: vec![author()] }))
    }

    async fn plan_undo(&self, _: Request<content::PlanUndoRequest>) -> Answered<content::PlanUndoResponse> {
        let step = |action: UndoAction| content::UndoStep {
            action: action.into(),
            kind: TrashKind::File.into(),
            item_id: FILE.into(),
            name: HOSTILE.into(),
            path: format!("/{HOSTILE}"),
            ..Default::default()
        };
        let left_alone = content::LeftAlone {
            kind: TrashKind::Folder.into(),
            item_id: FILE.into(),
            name: HOSTILE.into(),
            path: format!("/{HOSTILE}"),
            code: "edited_since".into(),
            reason: "it was changed since: that stays as it is".into(),
            author: Some(author()),
            ..Default::default()
        };
        let steps = UndoAction::ALL.map(step).to_vec();
        Ok(Response::new(content::PlanUndoResponse { steps, left_alone: vec![left_alone] }))
    }

    async fn undo(&self, _: Request<content::UndoRequest>) -> Answered<content::UndoResponse> {
        Ok(Response::new(content::UndoResponse::default()))
    }
}
