//! All of the contract, on the scripted service.

use super::*;

#[async_trait]
impl contract::World for Setting {
    fn provider(&self) -> Box<dyn Provider> {
        self.connect()
    }

    async fn put(&self, name: &str, text: &str) {
        let mut workspace = self.workspace.lock().unwrap();
        let last = workspace.pages.values().map(|page| page.minute).max().unwrap_or_default();
        let page = Paper { text: text.to_owned(), minute: last + 1, is_searched: true, ..Paper::default() };
        workspace.pages.insert(id_of(name), page);
    }

    async fn remove(&self, name: &str) {
        self.change(&id_of(name), |page| page.is_in_trash = true);
    }

    async fn id(&self, name: &str) -> ExternalId {
        ExternalId::new(id_of(name)).unwrap()
    }

    async fn limit(&self) -> bool {
        self.fake.set_mood(Mood::Once(Reply::refusal(429).header("retry-after", "7")));
        true
    }

    async fn refuse(&self) -> bool {
        self.fake.set_mood(Mood::Always(Reply::refusal(401)));
        true
    }

    fn secret(&self) -> &'static str {
        "ntn_x"
    }
}

/// Ids of Notion have no other signs than hyphens.
fn id_of(name: &str) -> String {
    name.replace(['/', '.'], "-")
}

#[tokio::test]
async fn it_keeps_the_contract() {
    let setting = Setting::new().await;
    *setting.workspace.lock().unwrap() = Workspace::default();
    contract::holds(&setting).await;
}
