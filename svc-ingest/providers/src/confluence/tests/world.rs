//! All of the contract, on the scripted service.

use super::*;

#[async_trait]
impl contract::World for Setting {
    fn provider(&self) -> Box<dyn Provider> {
        self.connect()
    }

    fn names(&self) -> Vec<String> {
        (1..=25).map(|id| id.to_string()).collect()
    }

    async fn put(&self, name: &str, text: &str) {
        let mut wiki = self.wiki.lock().unwrap();
        let last = wiki.pages.values().map(|page| page.minute).max().unwrap_or_default();
        let id = name.parse().unwrap();
        let revision = wiki.pages.get(&id).map_or(1, |page| page.revision + 1);
        let page = Leaf { space: 1, text: text.to_owned(), minute: last + 1, revision, is_trashed: false };
        wiki.pages.insert(id, page);
    }

    async fn remove(&self, name: &str) {
        self.wiki.lock().unwrap().pages.remove(&name.parse().unwrap());
    }

    async fn id(&self, name: &str) -> ExternalId {
        ExternalId::new(name).unwrap()
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
        "t-x"
    }
}

#[tokio::test]
async fn it_keeps_the_contract() {
    let setting = Setting::new().await;
    *setting.wiki.lock().unwrap() = Wiki::default();
    contract::holds(&setting).await;
}
